/*
 * In what order bytes come that L2 does not hold. Its prefetcher follows a few pages at a time, along which lines come one after the other. Of what
 * is done by pieces of lines, each for many rows before the next, more pages are in use than that, and each is met again for each piece: its
 * lines are waited for. (Emerald Rapids: two products, 12544 rows of 16 and 64, the second by panels of 32 columns, then rows: 274 us, by rows
 * 228; 3x3 windows in steps of two over 112x112x96 by 16 lanes, then 3, 7, 14 and 28 neighbours: 208, 209, 254 and 274 us; two products, two threads,
 * 12544 rows of 32, 16 and 96, the second by panels of 16, 32 and 64 columns: 266, 228 and 209 us.)
 */
#include "passes/schedule/choose.h"

#include <math.h>

enum { FEW_PAGES = 5, /* at a time that are followed */
       PAGE_BYTES = 4096 };

typedef struct {
    const dlc_chooser *c;
    const dlc_schedule *schedule;
    uint32_t leaf;
    dlc_expr offset;
    double size; /* of an element */
} piece;

static double points_inside(const piece *p, uint32_t n, uint32_t axis)
{
    return dlc_estimate_points_inside(p->c, p->schedule, p->leaf, n, axis);
}

/* Pages that an iteration of loop n meets beside the axis's own; 0: not known. */
static double pages_inside(const piece *p, uint32_t n, uint32_t along)
{
    double pages = 1, span = 0;
    for (uint32_t a = 0; a < p->c->naxes; a++) {
        int64_t stride = a == along ? 0 : dlc_choose_stride(p->c, p->offset, a);
        double points = stride ? points_inside(p, n, a) : 1, bytes = fabs((double)stride) * p->size;
        if (stride == DLC_ODD_STRIDE && points > 1)
            return 0;
        if (points > 1 && bytes >= PAGE_BYTES)
            pages *= points;
        else if (points > 1)
            span += (points - 1) * bytes;
    }
    return pages * (1 + span / PAGE_BYTES);
}

/* The share of a piece's lines that is waited for: of one that is alone all, of more the first, while those behind it are fetched in its wake. */
static double waited_of(double bytes)
{
    return bytes > DLC_LINE_BYTES ? sqrt(DLC_LINE_BYTES / bytes) : 1;
}

/* The worst of the loops over the axis along which elements lie together: of pieces of a page each, pages are met once. */
static double strewn_along(const piece *p, uint32_t axis)
{
    double worst = 0;
    for (uint32_t n = dlc_schedule_parent(p->schedule, p->leaf); n != DLC_ROOT_NODE; n = dlc_schedule_parent(p->schedule, n)) {
        const dlc_schedule_node *node = &p->schedule->nodes.data[n];
        if (node->kind == DLC_LOOP_AS || node->axis != axis)
            continue;
        double bytes = (double)node->tile * (node->count > 1 ? node->count : 1) * p->size;
        if (points_inside(p, dlc_schedule_parent(p->schedule, n), axis) <= (double)node->tile || bytes >= PAGE_BYTES)
            continue;
        double pages = pages_inside(p, n, axis), share = pages > FEW_PAGES ? (1 - FEW_PAGES / pages) * (1 - bytes / PAGE_BYTES) : 0;
        share *= waited_of(bytes);
        worst = share > worst ? share : worst;
    }
    return worst;
}

static double strewn_of(const piece *p)
{
    for (uint32_t a = 0; a < p->c->naxes; a++)
        if (dlc_choose_stride(p->c, p->offset, a) == 1 && p->c->extent[a] > 1)
            return strewn_along(p, a);
    return 0;
}

double dlc_estimate_strewn(const dlc_chooser *c, const dlc_schedule *schedule)
{
    double *shares = dlc_new_array(c->arena, double, c->kernel->buffers.n + 1), strewn = 0, all = 0;
    for (uint32_t n = 0; n < schedule->nodes.n; n++) {
        const dlc_schedule_node *leaf = &schedule->nodes.data[n];
        if (leaf->kind != DLC_LOOP_LEAF)
            continue;
        for (uint32_t i = 0; i < c->accesses[leaf->stage].n; i++) {
            const dlc_access_fact *access = &c->accesses[leaf->stage].data[i];
            uint32_t source = access->load ? access->source : c->kernel->stages.data[leaf->stage].buffer;
            if (source == DLC_NO_BUFFER || DLC_SOURCE_IS_STAGE(source) || c->kernel->buffers.data[source].role == DLC_ROLE_CONST)
                continue;
            piece p = {c, schedule, n, access->offset, dlc_dtype_bytes(c->kernel->buffers.data[source].type.dtype)};
            double share = strewn_of(&p);
            shares[source] = share > shares[source] ? share : shares[source];
        }
    }
    for (uint32_t b = 0; b < c->kernel->buffers.n; b++) {
        const dlc_buffer *buffer = &c->kernel->buffers.data[b];
        double bytes = buffer->role == DLC_ROLE_CONST ? 0 : dlc_choose_elems(c, b) * dlc_dtype_bytes(buffer->type.dtype);
        strewn += bytes * shares[b];
        all += bytes;
    }
    return all > 0 ? strewn / all : 0;
}
