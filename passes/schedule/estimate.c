/*
 * Estimates: bytes, operations and a time bound of a kernel under its schedule. They rank alternatives (fuse or not, which
 * merge first) and are printed by `dlc explain`; nobody takes them for measurements.
 */
#include "passes/schedule/choose.h"

enum {
    DOT_LOSS_PERCENT = 10, /* a register tile's distance from peak */
    RUN_CYCLES = 25        /* starting a run of elements to copy: address, border test */
};

static double elems_of(const dlc_chooser *c, const dlc_buffer *buffer)
{
    double elems = 1;
    for (uint8_t d = 0; d < buffer->type.rank; d++)
        elems *= (double)dlc_expr_eval(c->kernel->pool, buffer->type.dims[d], c->symbols);
    return elems;
}

/* A table that is gathered from is touched where it is read only. */
static double bytes_of(const dlc_chooser *c)
{
    double *touched = dlc_new_array(c->arena, double, c->kernel->buffers.n + 1), bytes = 0;
    for (uint32_t s = 0; s < c->kernel->stages.n; s++) {
        const dlc_stage *stage = &c->kernel->stages.data[s];
        double points = dlc_choose_points(c, &stage->axes) * dlc_choose_points(c, &stage->reduce);
        for (uint32_t i = 0; i < c->accesses[s].n; i++)
            if (!DLC_SOURCE_IS_STAGE(c->accesses[s].data[i].source))
                touched[c->accesses[s].data[i].source] += points;
    }
    for (uint32_t b = 0; b < c->kernel->buffers.n; b++) {
        double elems = elems_of(c, &c->kernel->buffers.data[b]);
        bytes += (elems < touched[b] ? elems : touched[b]) * dlc_dtype_bytes(c->kernel->buffers.data[b].type.dtype);
    }
    return bytes;
}

static uint32_t innermost(const dlc_ids *axes)
{
    return axes->n ? axes->data[axes->n - 1] : DLC_NO_AXIS;
}

/* Copying K elements of a row of A: runs along the innermost reduced axis, as vectors where they lie together. */
static double row_copy_cycles(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t s, dlc_expr a)
{
    const dlc_stage *stage = &c->kernel->stages.data[s];
    uint32_t inner = innermost(&stage->reduce);
    double depth = dlc_choose_points(c, &stage->reduce), run = (double)c->extent[inner];
    uint8_t *marks = dlc_new_array(c->arena, uint8_t, c->kernel->pool->nodes.n);
    int together = 1;
    dlc_expr_reach(c->kernel->pool, a, marks);
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        int64_t stride = access->load && marks[access->load] ? dlc_choose_stride(c, access->offset, inner) : 0;
        together &= stride == 0 || stride == 1;
    }
    double vectors = (double)(((int64_t)run + schedule->width - 1) / schedule->width);
    return depth / run * (RUN_CYCLES + vectors * (together ? 2 : 2 * schedule->width));
}

static double dot_cycles(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t s)
{
    const dlc_stage_plan *plan = &schedule->plans[s];
    const dlc_stage *stage = &c->kernel->stages.data[s];
    dlc_dot_loops at;
    if (!dlc_schedule_dot_loops(c->kernel, schedule, s, &at))
        return c->work[s];
    double depth = dlc_choose_points(c, &stage->reduce), points = dlc_choose_points(c, &stage->axes);
    double per_cycle = (schedule->target->facts & DLC_HAS_FMA ? 2.0 : 1.0) * schedule->width;
    double cycles = points * depth / per_cycle * (100 + DOT_LOSS_PERCENT) / 100;
    double columns = dlc_choose_points(c, &at.contraction.n), rows = dlc_choose_points(c, &at.contraction.m);
    double pieces = at.n < at.m ? 1 : columns / (double)schedule->loops.data[at.n].tile;
    double product = c->work[s] - 2 * points * depth; /* what computing the factors takes beyond the product */
    pieces = pieces < 1 ? 1 : pieces;
    if (plan->copy_a)
        cycles += pieces * points / columns * row_copy_cycles(c, schedule, s, at.contraction.a);
    if (plan->copy_b)
        cycles += points / rows * depth * 1.3;
    return product > 0 ? cycles + product * (plan->copy_a ? pieces : 1) / schedule->width : cycles;
}

/* Every access is of neighbours; one through a tile is two more, of shared memory. */
static double transpose_cycles(const dlc_chooser *c, const dlc_schedule *schedule)
{
    const dlc_loop *loops = &schedule->loops.data[schedule->loops.n - 2];
    const dlc_stage *stage = &c->kernel->stages.data[0];
    dlc_crossing crossing;
    dlc_schedule_crossing(c->kernel, schedule->target, loops[0].axes.data[0], loops[1].axes.data[0], &crossing);
    double accesses = c->accesses[0].n + 2.0 * crossing.loads.n;
    return (c->work[0] + dlc_choose_points(c, &stage->axes) * accesses) / schedule->width / 2; /* two operations a cycle */
}

static double cycles_of(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t *ndots)
{
    double cycles = 0;
    uint32_t column = DLC_NO_AXIS;
    for (uint32_t s = 0; s < c->kernel->stages.n; s++) {
        const dlc_stage_plan *plan = &schedule->plans[s];
        if (plan->method == DLC_METHOD_DOT) {
            dlc_dot_loops at;
            if (dlc_schedule_dot_loops(c->kernel, schedule, s, &at))
                column = innermost(&at.contraction.n);
            cycles += dot_cycles(c, schedule, s);
            ++*ndots;
            continue;
        }
        if (plan->method == DLC_METHOD_TRANSPOSE) {
            cycles += transpose_cycles(c, schedule);
            continue;
        }
        uint32_t lane = column != DLC_NO_AXIS ? column : schedule->lane != DLC_NO_AXIS ? schedule->lane : plan->lane;
        cycles += dlc_choose_stage_cycles(c, s, lane, lane == DLC_NO_AXIS ? 1 : schedule->width / schedule->pack);
    }
    return cycles;
}

/* Workers wait for nobody but for want of work or of memory: where many could work, few units are slow units. */
static double time_of(const dlc_estimate *e, const dlc_target *target, dlc_method method)
{
    const dlc_machine *machine = target->machine;
    double wanted = e->units * (method == DLC_METHOD_LANES ? 1 : machine->block_workers);
    double workers = wanted < 1 ? 1 : wanted > machine->workers ? machine->workers : wanted;
    double computing = e->cycles / workers / machine->cycles_per_us;
    double moving = e->bytes / (e->bytes > target->l2_bytes ? machine->far_bytes_per_us : machine->near_bytes_per_us);
    return (computing > moving ? computing : moving) + machine->step_us;
}

void dlc_estimate_kernel(dlc_kernel *kernel, const dlc_schedule *schedule, dlc_arena *scratch, dlc_estimate *result)
{
    dlc_chooser c;
    *result = (dlc_estimate){0};
    dlc_choose_facts(&c, kernel, schedule->target, scratch);
    c.schedule = (dlc_schedule *)schedule; /* read only */
    result->bytes = bytes_of(&c);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        result->flops += c.work[s];
    result->cycles = cycles_of(&c, schedule, &result->ndots);
    result->units = (double)dlc_expr_eval(kernel->pool, dlc_schedule_units(kernel, schedule), c.symbols);
    result->scratch_bytes = (double)dlc_expr_eval(kernel->pool, dlc_schedule_scratch(kernel, schedule), c.symbols);
    result->time_us = time_of(result, schedule->target, dlc_schedule_method(kernel, schedule));
}
