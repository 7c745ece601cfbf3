/*
 * The interpreter: stages in order, each compiled for this run's sizes and run by strips
 * (ir/interp/program.c, ir/interp/run.c). Here: memory of buffers and temporaries, the choice of loops,
 * and recurrences, whose stages run together, step by step.
 *
 * Loops are chosen by estimated cost among: the innermost output axes flattened, each output axis
 * alone, the reduced axes flattened. Whatever is chosen, a reduction runs in index order and a
 * scatter in the order of its axes.
 */
#include "ir/interp/run.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- set-up --- */

/* A dimension that symbols, sizes and dtypes leave sensible: elements fit into memory's arithmetic.
 */
static int count_elems(const dlc_interp *interp, const dlc_expr *dims, uint32_t n, int64_t *elems)
{
    *elems = 1;
    for (uint32_t d = 0; d < n; d++) {
        int64_t dim = dlc_expr_eval(interp->kernel->pool, dims[d], interp->args->symbols);
        if (dim < 0 || !dlc_mul_i64(*elems, dim, elems))
            return 0;
    }
    return 1;
}

static dlc_status set_buffers(dlc_interp *interp)
{
    const dlc_kernel *kernel = interp->kernel;
    interp->buffers = dlc_new_array(interp->arena, dlc_interp_memory, kernel->buffers.n);
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        const dlc_buffer *buffer = &kernel->buffers.data[b];
        double *wide = interp->is_wide && interp->args->wide ? interp->args->wide[b] : NULL;
        dlc_interp_memory *memory = &interp->buffers[b];
        int64_t logical;
        if (!count_elems(interp, buffer->type.dims, buffer->type.rank, &logical))
            return dlc_diag_fail(interp->diag, DLC_LIMIT, kernel->name,
                                 "the size of buffer '%s' overflows", buffer->name);
        dlc_expr dims[DLC_MAX_RANK];
        for (uint32_t d = 0; d < buffer->type.rank; d++)
            dims[d] = dlc_interp_local(interp, buffer->type.dims[d]);
        dlc_expr elems = dlc_layout_elems(interp->pool, &buffer->layout, buffer->type.rank, dims);
        *memory =
            (dlc_interp_memory){.base = interp->args->buffers ? interp->args->buffers[b] : NULL,
                                .dtype = (uint8_t)buffer->type.dtype,
                                .nelems = dlc_expr_value(interp->pool, elems),
                                .name = buffer->name};
        if (wide && dlc_is_float(buffer->type.dtype)) {
            memory->base = wide;
            memory->dtype = DLC_F64;
        }
    }
    return DLC_OK;
}

/* Which accumulators of which stages some stage loads. */
static void find_loaded(const dlc_interp *interp, uint8_t *loaded)
{
    const dlc_kernel *kernel = interp->kernel;
    uint8_t *marks = dlc_new_array(interp->arena, uint8_t, kernel->pool->nodes.n);
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const dlc_stage *stage = &kernel->stages.data[s];
        for (int v = 0; v < 2; v++)
            if (stage->value[v])
                dlc_expr_reach(kernel->pool, stage->value[v], marks);
        for (uint32_t d = 0; d < stage->store.n; d++)
            dlc_expr_reach(kernel->pool, stage->store.data[d], marks);
    }
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (marks[id] && node->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(node->imm.id))
            loaded[DLC_SOURCE_INDEX(node->imm.id)] |= node->flags & DLC_LOAD_SECOND ? 2 : 1;
    }
}

/* Memory of a temporary, from the heap: the only part that grows with the data. */
static dlc_status add_temp(dlc_interp *interp, uint32_t index, int second, size_t *total)
{
    const dlc_stage *stage = &interp->kernel->stages.data[index];
    dlc_interp_memory *temp = &interp->temps[second][index];
    size_t bytes = 0;
    temp->dtype = (uint8_t)stage->dtype[second];
    if (interp->is_wide && dlc_is_float(stage->dtype[second]))
        temp->dtype = DLC_F64;
    temp->name = stage->name;
    temp->nelems = 1;
    int fits = 1;
    for (uint32_t d = 0; d < stage->axes.n; d++)
        fits &= dlc_mul_i64(temp->nelems, interp->extents[stage->axes.data[d]], &temp->nelems);
    fits = fits && dlc_mul_size((size_t)temp->nelems, dlc_dtype_bytes(temp->dtype), &bytes) &&
           dlc_add_size(*total, bytes, total);
    size_t budget = interp->args->budget_bytes;
    if (fits && (!budget || *total <= budget))
        temp->base = calloc(bytes ? bytes : 1, 1);
    if (temp->base)
        return DLC_OK;
    return dlc_diag_fail(interp->diag, DLC_LIMIT, interp->kernel->name,
                         "stage '%s' takes the temporaries to %zu bytes; the budget is %zu",
                         stage->name, *total, budget);
}

static dlc_status set_temps(dlc_interp *interp)
{
    uint32_t nstages = interp->kernel->stages.n;
    uint8_t *loaded = dlc_new_array(interp->arena, uint8_t, nstages);
    size_t total = 0;
    find_loaded(interp, loaded);
    for (uint32_t s = 0; s < nstages; s++)
        for (int second = 0; second < 2; second++)
            if (loaded[s] >> second & 1)
                DLC_TRY(add_temp(interp, s, second, &total));
    return DLC_OK;
}

static void free_temps(dlc_interp *interp)
{
    for (uint32_t s = 0; s < interp->kernel->stages.n; s++)
        for (int second = 0; second < 2; second++)
            free(interp->temps[second][s].base);
}

static dlc_status set_extents(dlc_interp *interp)
{
    const dlc_kernel *kernel = interp->kernel;
    interp->extents = dlc_new_array(interp->arena, int64_t, kernel->axes.n);
    for (uint32_t a = 0; a < kernel->axes.n; a++) {
        interp->extents[a] =
            dlc_expr_eval(kernel->pool, kernel->axes.data[a].extent, interp->args->symbols);
        if (interp->extents[a] < 0)
            return dlc_diag_fail(interp->diag, DLC_INVALID, kernel->name,
                                 "axis '%s' has extent %" PRId64, kernel->axes.data[a].name,
                                 interp->extents[a]);
    }
    return DLC_OK;
}

/* --- choice of loops --- */

static void add_axis_loop(const dlc_interp *interp, dlc_interp_loops *loops, uint32_t axis,
                          int is_strip, int is_reduced)
{
    dlc_interp_loop loop = {.trip = interp->extents[axis],
                            .is_strip = (uint8_t)is_strip,
                            .is_reduced = (uint8_t)is_reduced};
    dlc_vec_push(interp->arena, &loop.axes, axis);
    dlc_vec_push(interp->arena, loops, loop);
}

/* Loops over `axes`; those from `first_flat` on flattened into one strip loop. Axes `skip` marks
 * are loops already. */
static void add_loops(const dlc_interp *interp, dlc_interp_loops *loops, const dlc_ids *axes,
                      const uint8_t *skip, uint32_t first_flat, int is_reduced)
{
    dlc_interp_loop flat = {.trip = 1, .is_strip = 1, .is_reduced = (uint8_t)is_reduced};
    for (uint32_t k = 0; k < axes->n; k++) {
        uint32_t axis = axes->data[k];
        if (skip[axis])
            continue;
        if (k < first_flat) {
            add_axis_loop(interp, loops, axis, 0, is_reduced);
            continue;
        }
        dlc_vec_push(interp->arena, &flat.axes, axis);
        flat.trip *= interp->extents[axis];
    }
    if (flat.axes.n)
        dlc_vec_push(interp->arena, loops, flat);
}

/* The fewest trailing axes whose points fill half a strip. */
static uint32_t first_to_flatten(const dlc_interp *interp, const dlc_ids *axes, const uint8_t *skip)
{
    uint32_t first = axes->n;
    for (int64_t points = 1; first > 0 && points < DLC_STRIP / 2; first--)
        if (!skip[axes->data[first - 1]])
            points *= interp->extents[axes->data[first - 1]];
    return first;
}

typedef struct {
    dlc_interp *interp;
    uint32_t stage;
    const dlc_ids *steps; /* axes of a recurrence: the outermost loops, whose position is given */
    uint8_t *skip;        /* by axis: 1 for steps */
    dlc_interp_program *best;
} candidates;

static void consider(candidates *choice, const dlc_interp_loops *loops)
{
    dlc_interp_program *program =
        dlc_interp_compile(choice->interp, choice->stage, loops, choice->steps->n > 0);
    if (!choice->best || program->cost < choice->best->cost)
        choice->best = program;
}

static dlc_interp_loops step_loops(const candidates *choice)
{
    dlc_interp_loops loops = {0};
    for (uint32_t k = 0; k < choice->steps->n; k++)
        add_axis_loop(choice->interp, &loops, choice->steps->data[k], 0, 0);
    return loops;
}

/* Output axes from `first` on as the strip; first = axes.n: no output axis. */
static void consider_flat(candidates *choice, uint32_t first)
{
    const dlc_stage *stage = &choice->interp->kernel->stages.data[choice->stage];
    dlc_interp_loops loops = step_loops(choice);
    add_loops(choice->interp, &loops, &stage->axes, choice->skip, first, 0);
    add_loops(choice->interp, &loops, &stage->reduce, choice->skip, stage->reduce.n, 1);
    consider(choice, &loops);
}

/* One output axis as the strip, innermost of the output loops. */
static void consider_axis(candidates *choice, uint32_t k)
{
    const dlc_stage *stage = &choice->interp->kernel->stages.data[choice->stage];
    dlc_interp_loops loops = step_loops(choice);
    uint32_t axis = stage->axes.data[k];
    choice->skip[axis] = 1;
    add_loops(choice->interp, &loops, &stage->axes, choice->skip, stage->axes.n, 0);
    choice->skip[axis] = 0;
    add_axis_loop(choice->interp, &loops, axis, 1, 0);
    add_loops(choice->interp, &loops, &stage->reduce, choice->skip, stage->reduce.n, 1);
    consider(choice, &loops);
}

static void consider_reduced(candidates *choice)
{
    const dlc_stage *stage = &choice->interp->kernel->stages.data[choice->stage];
    dlc_interp_loops loops = step_loops(choice);
    add_loops(choice->interp, &loops, &stage->axes, choice->skip, stage->axes.n, 0);
    add_loops(choice->interp, &loops, &stage->reduce, choice->skip,
              first_to_flatten(choice->interp, &stage->reduce, choice->skip), 1);
    consider(choice, &loops);
}

static dlc_interp_program *choose(dlc_interp *interp, uint32_t index, const dlc_ids *steps)
{
    enum { WORTH_A_STRIP = 8 };
    const dlc_stage *stage = &interp->kernel->stages.data[index];
    candidates choice = {.interp = interp, .stage = index, .steps = steps};
    choice.skip = dlc_new_array(interp->arena, uint8_t, interp->kernel->axes.n);
    for (uint32_t k = 0; k < steps->n; k++)
        choice.skip[steps->data[k]] = 1;
    dlc_interp_specialize(interp, index);
    consider_flat(&choice, first_to_flatten(interp, &stage->axes, choice.skip));
    if (stage->update != DLC_UPDATE_NONE)
        return choice.best; /* its order is that of the axes */
    for (uint32_t k = 0; k < stage->axes.n; k++)
        if (!choice.skip[stage->axes.data[k]] &&
            interp->extents[stage->axes.data[k]] >= WORTH_A_STRIP)
            consider_axis(&choice, k);
    if (stage->reduce.n)
        consider_reduced(&choice);
    return choice.best;
}

/* --- running --- */

static dlc_status report(const dlc_interp *interp, uint32_t index, const dlc_interp_fault *fault)
{
    const dlc_stage *stage = &interp->kernel->stages.data[index];
    if (fault->status == DLC_OK)
        return DLC_OK;
    const char *what =
        fault->status == DLC_INVALID ? "index out of range" : "defect of dlc: access out of bounds";
    uint32_t node = stage->origin.n ? stage->origin.data[0] : UINT32_MAX;
    if (node == UINT32_MAX)
        return dlc_diag_fail(interp->diag, fault->status, interp->kernel->name,
                             "stage '%s': %s, in '%s' of %" PRId64 " elements", stage->name, what,
                             fault->memory->name, fault->memory->nelems);
    return dlc_diag_fail(interp->diag, fault->status, interp->kernel->name,
                         "node %" PRIu32 ", stage '%s': %s, in '%s' of %" PRId64 " elements", node,
                         stage->name, what, fault->memory->name, fault->memory->nelems);
}

static dlc_status run_stage(dlc_interp *interp, uint32_t index)
{
    dlc_ids none = {0};
    dlc_interp_fault fault = {0};
    dlc_mark mark = dlc_arena_mark(interp->arena);
    dlc_interp_run_program(interp, choose(interp, index, &none), index, NULL, 0, &fault);
    dlc_arena_release(interp->arena, mark);
    return report(interp, index, &fault);
}

/* --- recurrences --- */

/* A load of `source` by `user`, source not above it: the axes at which it looks back. */
typedef struct {
    uint32_t user, source;
    dlc_expr load;
} back_load;
typedef dlc_vec(back_load) back_loads;

static void find_back_loads(const dlc_interp *interp, back_loads *loads)
{
    const dlc_kernel *kernel = interp->kernel;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        uint8_t *marks = dlc_new_array(interp->arena, uint8_t, kernel->pool->nodes.n);
        for (int v = 0; v < 2; v++)
            if (kernel->stages.data[s].value[v])
                dlc_expr_reach(kernel->pool, kernel->stages.data[s].value[v], marks);
        for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
            const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
            if (!marks[id] || node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id))
                continue;
            uint32_t source = DLC_SOURCE_INDEX(node->imm.id);
            if (source >= s)
                dlc_vec_push(interp->arena, loads, ((back_load){s, source, id}));
        }
    }
}

/* The kernel axis `a` when index is a - d with constant d >= 1; DLC_NO_INSTR otherwise. */
static uint32_t stepped_axis(dlc_interp *interp, dlc_expr index)
{
    dlc_expr local = dlc_interp_local(interp, index);
    for (uint32_t a = 0; a < interp->kernel->axes.n; a++) {
        int64_t distance;
        if (!dlc_expr_uses_axis(interp->pool, local, a))
            continue;
        dlc_expr back = dlc_sub(interp->pool, dlc_expr_axis(interp->pool, a), local);
        if (dlc_expr_is_int(interp->pool, back, &distance) && distance >= 1)
            return a;
    }
    return DLC_NO_INSTR;
}

/* Stages [first, last] run together, one step at a time. steps[s - first]: their own axes, outer to
 * inner; equally many. */
typedef struct {
    uint32_t first, last;
    dlc_ids *steps;
} recurrence;

/*
 * Adds one step axis to each stage of the group: the first at which the first unordered back load
 * looks back. That orders every load that looks back there; for others the next step axis, inside
 * it, does. False: no such axis.
 */
static int add_step(dlc_interp *interp, recurrence *group, const back_loads *loads,
                    uint8_t *is_ordered)
{
    const dlc_kernel *kernel = interp->kernel;
    uint32_t l = 0, axis = DLC_NO_INSTR;
    while (l < loads->n && is_ordered[l])
        l++;
    for (uint32_t p = 0;
         p < dlc_load_rank(kernel->pool, loads->data[l].load) && axis == DLC_NO_INSTR; p++)
        axis = stepped_axis(interp, dlc_arg(kernel->pool, loads->data[l].load, p));
    if (axis == DLC_NO_INSTR)
        return 0;
    for (uint32_t s = group->first; s <= group->last; s++) {
        const dlc_ids *axes = &kernel->stages.data[s].axes;
        uint32_t k = 0;
        while (k < axes->n && axes->data[k] != axis)
            k++;
        if (k == axes->n)
            return 0;
        dlc_vec_push(interp->arena, &group->steps[s - group->first], axis);
    }
    for (uint32_t i = l; i < loads->n; i++)
        for (uint32_t p = 0; p < dlc_load_rank(kernel->pool, loads->data[i].load); p++)
            is_ordered[i] |=
                stepped_axis(interp, dlc_arg(kernel->pool, loads->data[i].load, p)) == axis;
    return 1;
}

static dlc_status find_steps(dlc_interp *interp, recurrence *group, const back_loads *all)
{
    back_loads loads = {0};
    for (uint32_t i = 0; i < all->n; i++)
        if (all->data[i].user >= group->first && all->data[i].source <= group->last)
            dlc_vec_push(interp->arena, &loads, all->data[i]);
    uint8_t *is_ordered = dlc_new_array(interp->arena, uint8_t, loads.n);
    group->steps = dlc_new_array(interp->arena, dlc_ids, group->last - group->first + 1);
    for (uint32_t i = 0; i < loads.n; i++)
        if (!is_ordered[i] && !add_step(interp, group, &loads, is_ordered))
            return dlc_diag_fail(
                interp->diag, DLC_UNSUPPORTED, interp->kernel->name,
                "stage '%s' loads stage '%s' other than at an axis minus a constant",
                interp->kernel->stages.data[loads.data[i].user].name,
                interp->kernel->stages.data[loads.data[i].source].name);
    return DLC_OK;
}

/* Counts step[0 .. n) up over the axes' extents; false after the last. */
static int next_step(const dlc_interp *interp, const dlc_ids *axes, int64_t *step)
{
    for (uint32_t k = axes->n; k-- > 0;) {
        if (++step[k] < interp->extents[axes->data[k]])
            return 1;
        step[k] = 0;
    }
    return 0;
}

static dlc_status run_recurrence(dlc_interp *interp, const recurrence *group)
{
    uint32_t n = group->last - group->first + 1;
    const dlc_ids *axes = &group->steps[0];
    dlc_interp_program **programs = dlc_new_array(interp->arena, dlc_interp_program *, n);
    int64_t *step = dlc_new_array(interp->arena, int64_t, axes->n);
    for (uint32_t s = 0; s < n; s++)
        programs[s] = choose(interp, group->first + s, &group->steps[s]);
    for (uint32_t k = 0; k < axes->n; k++)
        if (interp->extents[axes->data[k]] == 0)
            return DLC_OK;
    do {
        for (uint32_t s = 0; s < n; s++) {
            dlc_interp_fault fault = {0};
            dlc_interp_run_program(interp, programs[s], group->first + s, step, axes->n, &fault);
            DLC_TRY(report(interp, group->first + s, &fault));
        }
    } while (next_step(interp, axes, step));
    return DLC_OK;
}

static dlc_status run_stages(dlc_interp *interp)
{
    back_loads loads = {0};
    find_back_loads(interp, &loads);
    for (uint32_t s = 0; s < interp->kernel->stages.n;) {
        recurrence group = {.first = s, .last = s};
        int is_recurrence = 0;
        for (int grows = 1; grows;) { /* back loads of the group may reach further down */
            uint32_t last = group.last;
            for (uint32_t i = 0; i < loads.n; i++) {
                if (loads.data[i].user < group.first || loads.data[i].user > group.last)
                    continue;
                is_recurrence = 1;
                last = loads.data[i].source > last ? loads.data[i].source : last;
            }
            grows = last != group.last;
            group.last = last;
        }
        if (is_recurrence) {
            DLC_TRY(find_steps(interp, &group, &loads));
            DLC_TRY(run_recurrence(interp, &group));
        } else {
            DLC_TRY(run_stage(interp, s));
        }
        s = group.last + 1;
    }
    return DLC_OK;
}

static dlc_status run(dlc_interp *interp)
{
    DLC_TRY(set_extents(interp));
    DLC_TRY(set_buffers(interp));
    DLC_TRY(set_temps(interp));
    return run_stages(interp);
}

dlc_status dlc_interp_run(const dlc_kernel *kernel, dlc_interp_mode mode,
                          const dlc_interp_args *args, dlc_diag *diag)
{
    dlc_arena *arena = dlc_arena_create(0), *pool_arena = dlc_arena_create(0);
    dlc_interp interp = {
        .kernel = kernel, .args = args, .diag = diag, .is_wide = mode == DLC_WIDE, .arena = arena};
    interp.pool = dlc_pool_create(pool_arena);
    interp.stages = dlc_new_array(arena, dlc_interp_exprs, kernel->stages.n);
    for (int second = 0; second < 2; second++)
        interp.temps[second] = dlc_new_array(arena, dlc_interp_memory, kernel->stages.n);
    dlc_status status = run(&interp);
    free_temps(&interp);
    dlc_arena_destroy(arena);
    dlc_arena_destroy(pool_arena);
    return status;
}
