/* In which order a contraction goes through what it reduces, and what it asks memory for early. */
#include "passes/schedule/choose.h"

#include <string.h>

/* --- order of the reduction --- */

/* Of an access along an axis, whichever way it goes. */
static int64_t step_of(const dlc_chooser *c, const dlc_access_fact *access, uint32_t axis)
{
    int64_t stride = access ? dlc_choose_stride(c, access->offset, axis) : 0;
    return stride < 0 ? -stride : stride;
}

void dlc_choose_order_reduction(const dlc_chooser *c, uint32_t s, dlc_expr factor, dlc_ids *order)
{
    const dlc_stage *stage = &c->kernel->stages.data[s];
    uint8_t *reach = dlc_new_array(c->arena, uint8_t, c->kernel->pool->nodes.n);
    const dlc_access_fact *lead = NULL;
    dlc_expr_reach(c->kernel->pool, factor, reach);
    for (uint32_t i = 0; i < c->accesses[s].n && !lead; i++)
        if (c->accesses[s].data[i].load && reach[c->accesses[s].data[i].load])
            lead = &c->accesses[s].data[i];
    *order = (dlc_ids){0};
    for (uint32_t i = 0; i < stage->reduce.n; i++) {
        uint32_t axis = stage->reduce.data[i], at = i;
        int64_t step = step_of(c, lead, axis);
        dlc_vec_push(c->arena, order, axis);
        for (; lead && at > 0 && step_of(c, lead, order->data[at - 1]) < step; at--)
            order->data[at] = order->data[at - 1];
        order->data[at] = axis;
    }
}

/* --- weights from memory --- */

int dlc_choose_exceeds_l1(const dlc_chooser *c, uint32_t buffer)
{
    size_t bytes;
    return !dlc_type_bytes(c->kernel->pool, &c->kernel->buffers.data[buffer].type, &bytes) || bytes > c->target->l1_bytes;
}

/* All columns pass by for every few rows, from L2 but the first time: what tile registers lose to asking for lines, a fifth, they lose
 * each time. */
static int has_many_rows(const dlc_chooser *c, const dlc_schedule_node *leaf)
{
    const dlc_ids *axes = &c->kernel->stages.data[leaf->stage].axes;
    dlc_ids rows = {0};
    for (uint32_t i = 0; i < axes->n; i++)
        if (axes->data[i] != leaf->columns)
            dlc_vec_push(c->arena, &rows, axes->data[i]);
    return dlc_choose_points(c, &rows) > DLC_FEW_TILED_ROWS;
}

/*
 * Weights are read once a run, so they come from L3 or memory, a panel of columns after the other, and the first rows that meet a panel
 * wait for it; what fetches in hardware begins anew with every page. A line for each of the next panel's costs the port of a load.
 */
void dlc_choose_ahead(dlc_chooser *c)
{
    const dlc_kernel *kernel = c->kernel;
    const dlc_schedule *schedule = c->schedule;
    dlc_schedule_node *leaf = &schedule->nodes.data[schedule->nodes.n - 1];
    int is_in_tiles = dlc_dots[leaf->row].family == DLC_FAMILY_TILE;
    if ((dlc_dots[leaf->row].family != DLC_FAMILY_LANES && !is_in_tiles) || leaf->rows == DLC_NO_AXIS || (is_in_tiles && has_many_rows(c, leaf)))
        return;
    for (uint32_t i = 0; i < schedule->copies.n; i++) {
        const dlc_schedule_copy *copy = &schedule->copies.data[i];
        for (uint32_t b = 0; b < kernel->buffers.n && copy->stage == leaf->stage && copy->copy == DLC_NO_STAGE; b++)
            if (strcmp(kernel->buffers.data[b].name, copy->operand) == 0 && dlc_choose_exceeds_l1(c, b))
                leaf->ahead = 1;
    }
}

/* A residual, say: of a tensor that L1 does not hold, as many elements as the tile has. */
static int reads_tensor(const dlc_chooser *c, uint32_t s, uint32_t rows, uint32_t columns)
{
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        if (access->load && !DLC_SOURCE_IS_STAGE(access->source) && dlc_choose_stride(c, access->offset, columns) == 1 &&
            dlc_choose_stride(c, access->offset, rows) != 0 && dlc_choose_exceeds_l1(c, access->source))
            return 1;
    }
    return 0;
}

/* Tiles that take little time beside what they read: in tile registers, or of bytes. */
void dlc_choose_maps_ahead(dlc_chooser *c, uint32_t dot)
{
    enum { BYTES_A_STEP = 4 };
    dlc_schedule_node *nodes = c->schedule->nodes.data;
    int is_fast = dlc_dots[nodes[dot].row].family == DLC_FAMILY_TILE || dlc_dots[nodes[dot].row].granule == BYTES_A_STEP;
    if (!is_fast || nodes[dot].rows == DLC_NO_AXIS)
        return;
    for (uint32_t n = dot + 1; n < c->schedule->nodes.n; n++)
        if (nodes[n].kind == DLC_LOOP_LEAF && reads_tensor(c, nodes[n].stage, nodes[dot].rows, nodes[dot].columns))
            nodes[n].ahead = 1;
}
