/*
 * Loads that cross: neighbours in memory are points of an unrolled loop, while lanes around it stride. Where the loop has as many points
 * as there are lanes, they are read as rows, a vector each, and the square is turned in registers; its columns are then known values of
 * the loads, which nothing gathers any more.
 */
#include "codegen/nest.h"

enum { LEAST_LANES = 4, MOST_LANES = 32 };

/* The loads of a plain map's value that cross, or none where the loop holds anything else. */
static uint32_t find_loads(dlc_nest *nest, uint32_t loop, dlc_expr *loads)
{
    const dlc_schedule_node *node = &nest->schedule->nodes.data[loop], *leaf = node + 1;
    uint32_t n = 0, w = nest->width;
    if (!nest->emit->turn || nest->lane >= nest->kernel->axes.n || w < LEAST_LANES || w > MOST_LANES || w & (w - 1))
        return 0;
    if (node->end != loop + 2 || leaf->kind != DLC_LOOP_LEAF || leaf->row != DLC_DOT_NONE)
        return 0;
    const dlc_stage *stage = &nest->kernel->stages.data[leaf->stage];
    if (stage->combine != DLC_REDUCE_NONE)
        return 0;
    const uint8_t *marks = dlc_stage_marks(nest->kernel, stage, nest->arena);
    uint32_t nnodes = nest->kernel->pool->nodes.n; /* asking for strides makes more */
    for (dlc_expr id = 1; id < nnodes && id <= stage->value[0] && n < DLC_MOST_TURNED; id++)
        if (marks[id] && dlc_nest_crosses(nest, id, node->axis) &&
            dlc_node_of(nest->kernel->pool, id)->imm.id != DLC_STAGE_SOURCE(leaf->stage))
            loads[n++] = id;
    return n;
}

int dlc_turn_fits(dlc_nest *nest, uint32_t loop)
{
    dlc_expr loads[DLC_MOST_TURNED];
    return find_loads(nest, loop, loads) > 0;
}

/* The load's rows: for each lane, its points along the loop; for lanes that are off, those of the last one. */
static void read_rows(dlc_nest *nest, dlc_expr load, uint32_t axis, uint32_t base, dlc_val *rows)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr *with = dlc_new_array(nest->arena, dlc_expr, nest->kernel->axes.n), lanes = dlc_expr_axis(pool, nest->lane_base);
    uint32_t lane = nest->lane, lane_base = nest->lane_base;
    dlc_val mask = nest->mask;
    dlc_expr last = dlc_addi(pool, nest->kernel->axes.data[lane].extent, -1);
    uint32_t along = dlc_nest_axis(nest, nest->kernel->axes.data[axis].extent); /* not the axis: what was computed of it is forgotten */
    load = dlc_nest_here(nest, load);
    nest->lane = along;
    nest->lane_base = base;
    nest->mask = NULL;
    for (uint32_t r = 0; r < nest->width; r++) {
        with[lane] = mask ? dlc_min(pool, dlc_addi(pool, lanes, r), last) : dlc_addi(pool, lanes, r);
        with[axis] = dlc_expr_axis(pool, along);
        rows[r] = dlc_nest_value_at(nest, dlc_nest_substitute(nest, load, with));
    }
    nest->lane = lane;
    nest->lane_base = lane_base;
    nest->mask = mask;
}

uint32_t dlc_turn_begin(dlc_nest *nest, uint32_t loop, dlc_expr lo, dlc_turned *turned)
{
    dlc_expr loads[DLC_MOST_TURNED];
    uint32_t axis = nest->schedule->nodes.data[loop].axis, n = find_loads(nest, loop, loads);
    if (!n)
        return 0;
    uint32_t base = dlc_nest_axis(nest, nest->kernel->axes.data[axis].extent);
    dlc_nest_bind(nest, base, dlc_nest_uniform(nest, lo), 1);
    for (uint32_t i = 0; i < n; i++) {
        dlc_val rows[MOST_LANES];
        turned[i].load = loads[i];
        turned[i].columns = dlc_new_array(nest->arena, dlc_val, nest->width);
        read_rows(nest, loads[i], axis, base, rows);
        nest->emit->turn(nest->emit, nest->width, rows, turned[i].columns);
    }
    return n;
}

void dlc_turn_know(dlc_nest *nest, const dlc_turned *turned, uint32_t n, uint32_t point)
{
    for (uint32_t i = 0; i < n; i++)
        dlc_nest_know(nest, dlc_nest_here(nest, turned[i].load), turned[i].columns[point]);
}
