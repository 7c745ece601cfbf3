/*
 * Axes: those of extent 1 go; axes of different stages that always meet become one (union-find over "S loads T at its bare
 * axis"), so that stages share loops; and an axis c whose accesses contain `c floordiv k` or `c mod k` is split into
 * (c floordiv k, c mod k), until every access is affine or no split is exact; pieces that a stage is read by split its axis, too.
 * Head splits and merges, flattened batches, channel shuffles and pixel shuffles become plain index sums that way.
 */
#include "passes/lower/lower.h"

#include <string.h>

/* --- axes of extent 1 --- */

typedef struct {
    const dlc_kernel *kernel;
    uint8_t *is_unit; /* by axis */
} units;

/* The index of a checked load is reported where it is not 0: the axis it stands for stays. */
static void keep_checked(const units *u, dlc_expr load)
{
    const dlc_pool *pool = u->kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, load);
    if (node->op != DLC_EXPR_LOAD || !(node->flags & DLC_LOAD_CHECKED) || !DLC_SOURCE_IS_STAGE(node->imm.id))
        return;
    const dlc_stage *source = &u->kernel->stages.data[DLC_SOURCE_INDEX(node->imm.id)];
    for (uint32_t d = 0; d < source->axes.n; d++) {
        int64_t number = 0;
        if (dlc_expr_has_load(pool, dlc_arg(pool, load, d)) || (dlc_expr_is_int(pool, dlc_arg(pool, load, d), &number) && number))
            u->is_unit[source->axes.data[d]] = 0;
    }
}

static units find_units(const dlc_kernel *kernel)
{
    units u = {kernel, dlc_new_array(kernel->arena, uint8_t, kernel->axes.n + 1)};
    const uint8_t *marks = dlc_kernel_marks(kernel, kernel->arena);
    int64_t extent;
    for (uint32_t a = 0; a < kernel->axes.n; a++)
        u.is_unit[a] = dlc_const_extent(kernel, a, &extent) && extent == 1;
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++)
        if (marks[id])
            keep_checked(&u, id);
    return u;
}

static uint32_t drop_unit_index(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    const units *u = user;
    uint32_t n = 0;
    for (uint32_t d = 0; d < rank; d++)
        if (!DLC_SOURCE_IS_STAGE(source) || !u->is_unit[u->kernel->stages.data[DLC_SOURCE_INDEX(source)].axes.data[d]])
            result[n++] = index[d];
    return n;
}

static void drop_units_of(const units *u, dlc_ids *axes)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < axes->n; i++)
        if (!u->is_unit[axes->data[i]])
            axes->data[n++] = axes->data[i];
    axes->n = n;
}

/* A sum or product over one element is that element; a pair keeps its axes, since its index needs one. */
static void drop_units(dlc_kernel *kernel)
{
    dlc_expr *with = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n);
    units u = find_units(kernel);
    int has_units = 0;
    for (uint32_t a = 0; a < kernel->axes.n; a++) {
        with[a] = u.is_unit[a] ? dlc_expr_i64(kernel->pool, 0) : 0;
        has_units |= with[a] != 0;
    }
    if (has_units)
        dlc_kernel_reindex(kernel, &(dlc_reindex){with, drop_unit_index, &u});
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        dlc_stage *stage = &kernel->stages.data[s];
        uint32_t first = stage->reduce.n ? stage->reduce.data[0] : 0;
        drop_units_of(&u, &stage->axes);
        drop_units_of(&u, &stage->reduce);
        if (stage->reduce.n || stage->combine == DLC_REDUCE_NONE)
            continue;
        if (dlc_reduces[stage->combine].naccs == 1)
            stage->combine = DLC_REDUCE_NONE;
        else
            dlc_vec_push(kernel->arena, &stage->reduce, first);
    }
}

/* --- one axis for what is one --- */

typedef struct {
    dlc_kernel *kernel;
    uint32_t *parent;
    uint64_t *stages; /* per class: the stages its axes belong to */
    uint32_t nwords;
} classes;

static uint32_t find(classes *c, uint32_t axis)
{
    while (c->parent[axis] != axis)
        axis = c->parent[axis] = c->parent[c->parent[axis]];
    return axis;
}

static uint64_t *stages_of(classes *c, uint32_t root)
{
    return c->stages + (size_t)root * c->nwords;
}

/* Unites two axes unless some stage has both. True when they are one afterwards. */
static int unite(classes *c, uint32_t a, uint32_t b)
{
    a = find(c, a), b = find(c, b);
    if (a == b)
        return 1;
    if (c->kernel->axes.data[a].extent != c->kernel->axes.data[b].extent)
        return 0;
    for (uint32_t w = 0; w < c->nwords; w++)
        if (stages_of(c, a)[w] & stages_of(c, b)[w])
            return 0;
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    c->parent[high] = low;
    for (uint32_t w = 0; w < c->nwords; w++)
        stages_of(c, low)[w] |= stages_of(c, high)[w];
    return 1;
}

static void unite_loads(classes *c, uint32_t s)
{
    dlc_kernel *kernel = c->kernel;
    const uint8_t *marks = dlc_stage_marks(kernel, &kernel->stages.data[s], kernel->arena);
    for (uint32_t id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (!marks[id] || node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id))
            continue;
        const dlc_stage *source = &kernel->stages.data[DLC_SOURCE_INDEX(node->imm.id)];
        for (uint32_t d = 0; d < source->axes.n && source != &kernel->stages.data[s]; d++) {
            uint32_t axis = dlc_bare_axis(kernel->pool, dlc_arg(kernel->pool, id, d));
            if (axis != DLC_NO_AXIS)
                unite(c, source->axes.data[d], axis);
        }
    }
}

/* Stages that do not read each other but are defined over equal shapes step together too. */
static void unite_shapes(classes *c)
{
    dlc_kernel *kernel = c->kernel;
    const dlc_stage *lead = &kernel->stages.data[kernel->stages.n - 1];
    for (uint32_t s = kernel->stages.n - 1; s-- > 0;) {
        const dlc_stage *stage = &kernel->stages.data[s];
        for (uint32_t i = 0; i < stage->axes.n && i < lead->axes.n; i++)
            if (!unite(c, stage->axes.data[i], lead->axes.data[i]))
                break;
    }
}

static int loads_stage(const dlc_kernel *kernel, const dlc_stage *reader, uint32_t s)
{
    const uint8_t *marks = dlc_stage_marks(kernel, reader, kernel->arena);
    for (uint32_t id = 1; id < kernel->pool->nodes.n; id++)
        if (marks[id] && dlc_node_of(kernel->pool, id)->op == DLC_EXPR_LOAD && dlc_node_of(kernel->pool, id)->imm.id == DLC_STAGE_SOURCE(s))
            return 1;
    return 0;
}

/* Some load of buffers that the stage has, its axes replaced, is one that `marks` has. */
static int loads_the_same(const classes *c, const dlc_stage *stage, const dlc_expr *with, const uint8_t *marks, uint32_t nmarks)
{
    dlc_pool *pool = c->kernel->pool;
    const uint8_t *own = dlc_stage_marks(c->kernel, stage, c->kernel->arena);
    for (uint32_t id = 1, n = pool->nodes.n; id < n; id++) {
        if (!own[id] || dlc_node_of(pool, id)->op != DLC_EXPR_LOAD || DLC_SOURCE_IS_STAGE(dlc_node_of(pool, id)->imm.id))
            continue;
        uint32_t replaced = dlc_expr_substitute(pool, id, with, c->kernel->axes.n);
        if (replaced < nmarks && marks[replaced])
            return 1;
    }
    return 0;
}

/* Neighbours that fold what is read of the same elements, as a least and a greatest, go through them together. */
static void unite_folds(classes *c, uint32_t s)
{
    dlc_kernel *kernel = c->kernel;
    const dlc_stage *stage = &kernel->stages.data[s], *next = stage + 1;
    dlc_expr *with = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n);
    uint32_t nmarks = kernel->pool->nodes.n;
    if (!stage->reduce.n || stage->reduce.n != next->reduce.n || stage->axes.n != next->axes.n)
        return;
    for (uint32_t i = 0; i < stage->axes.n; i++) {
        if (find(c, stage->axes.data[i]) != find(c, next->axes.data[i]))
            return;
        with[next->axes.data[i]] = dlc_expr_axis(kernel->pool, stage->axes.data[i]);
    }
    for (uint32_t i = 0; i < stage->reduce.n; i++) {
        if (kernel->axes.data[stage->reduce.data[i]].extent != kernel->axes.data[next->reduce.data[i]].extent)
            return;
        with[next->reduce.data[i]] = dlc_expr_axis(kernel->pool, stage->reduce.data[i]);
    }
    const uint8_t *marks = dlc_stage_marks(kernel, stage, kernel->arena);
    if (loads_stage(kernel, next, s) || !loads_the_same(c, next, with, marks, nmarks))
        return;
    for (uint32_t i = 0; i < stage->reduce.n; i++)
        unite(c, stage->reduce.data[i], next->reduce.data[i]);
}

static void replace_axes(classes *c, dlc_ids *axes)
{
    for (uint32_t i = 0; i < axes->n; i++)
        axes->data[i] = find(c, axes->data[i]);
}

static void note_members(classes *c)
{
    for (uint32_t s = 0; s < c->kernel->stages.n; s++) {
        const dlc_stage *stage = &c->kernel->stages.data[s];
        for (uint32_t i = 0; i < stage->axes.n; i++)
            stages_of(c, stage->axes.data[i])[s / 64] |= 1ull << s % 64;
        for (uint32_t i = 0; i < stage->reduce.n; i++)
            stages_of(c, stage->reduce.data[i])[s / 64] |= 1ull << s % 64;
    }
}

void dlc_lower_unify(dlc_kernel *kernel)
{
    classes c = {kernel, dlc_new_array(kernel->arena, uint32_t, kernel->axes.n), NULL, (kernel->stages.n + 63) / 64};
    if (kernel->stages.n < 2)
        return;
    c.stages = dlc_arena_array(kernel->arena, (size_t)kernel->axes.n * c.nwords, sizeof(uint64_t), sizeof(uint64_t));
    for (uint32_t a = 0; a < kernel->axes.n; a++)
        c.parent[a] = a;
    note_members(&c);
    for (uint32_t s = kernel->stages.n; s-- > 0;)
        unite_loads(&c, s);
    unite_shapes(&c);
    for (uint32_t s = 0; s + 1 < kernel->stages.n; s++)
        unite_folds(&c, s);
    dlc_expr *with = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n);
    for (uint32_t a = 0; a < kernel->axes.n; a++)
        with[a] = find(&c, a) != a ? dlc_expr_axis(kernel->pool, find(&c, a)) : 0;
    dlc_kernel_reindex(kernel, &(dlc_reindex){.axes = with});
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        replace_axes(&c, &kernel->stages.data[s].axes);
        replace_axes(&c, &kernel->stages.data[s].reduce);
    }
}

/* --- splits --- */

typedef struct {
    uint32_t axis;
    dlc_expr factor; /* axis = outer * factor + inner */
    dlc_expr outer_extent;
} axis_split;

static int is_exact(dlc_kernel *kernel, uint32_t axis, dlc_expr factor, axis_split *result)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr extent = kernel->axes.data[axis].extent;
    int64_t constant_factor, constant_extent;
    if (dlc_expr_is_int(pool, factor, &constant_factor) && constant_factor <= 1)
        return 0;
    if (dlc_expr_is_int(pool, extent, &constant_extent) && constant_extent < 1)
        return 0;
    dlc_expr quotient = dlc_floordiv(pool, extent, factor);
    int64_t q;
    if (factor == extent || dlc_mul(pool, quotient, factor) != extent || (dlc_expr_is_int(pool, quotient, &q) && q < 2))
        return 0;
    *result = (axis_split){axis, factor, quotient};
    return 1;
}

/* A split of an axis of `x` that lets `x floordiv k` or `x mod k` be computed without a division. */
static int split_for_quotient(dlc_kernel *kernel, dlc_expr x, dlc_expr k, axis_split *result)
{
    dlc_pool *pool = kernel->pool;
    int64_t divisor, step;
    if (dlc_bare_axis(pool, x) != DLC_NO_AXIS)
        return is_exact(kernel, dlc_bare_axis(pool, x), k, result);
    if (!dlc_expr_is_int(pool, k, &divisor) || divisor < 2)
        return 0;
    for (uint32_t a = 0; a < kernel->axes.n; a++) {
        dlc_expr coefficient, rest;
        if (!dlc_expr_uses_axis(pool, x, a) || !dlc_expr_linear(pool, x, a, &coefficient, &rest))
            continue;
        if (!dlc_expr_is_int(pool, coefficient, &step) || step < 1 || divisor % step)
            continue;
        if (is_exact(kernel, a, dlc_expr_i64(pool, divisor / step), result))
            return 1;
    }
    return 0;
}

/* A load T[64 h + d] splits T's axis by 64 when d stays below 64: then T is read at bare axes. */
static int split_for_sum(dlc_kernel *kernel, const dlc_ranges *ranges, uint32_t axis, dlc_expr index, axis_split *result)
{
    dlc_pool *pool = kernel->pool;
    if (dlc_bare_axis(pool, index) != DLC_NO_AXIS)
        return 0;
    for (uint32_t a = 0; a < kernel->axes.n; a++) {
        dlc_expr coefficient, rest;
        if (!dlc_expr_uses_axis(pool, index, a) || !dlc_expr_linear(pool, index, a, &coefficient, &rest))
            continue;
        if (is_exact(kernel, axis, coefficient, result) && /* asked first: it costs least and seldom holds */
            (dlc_floordiv(pool, dlc_expr_simplify(pool, rest, ranges), coefficient) == dlc_expr_i64(pool, 0) ||
             dlc_expr_simplify(pool, dlc_floordiv(pool, rest, coefficient), ranges) == dlc_expr_i64(pool, 0)))
            return 1;
    }
    return 0;
}

/* T read as T[j] and T[j + 256] for j below 256: pieces of its axis, the gates of a recurrence above all. */
static int split_for_piece(dlc_kernel *kernel, uint32_t axis, dlc_expr index, axis_split *result)
{
    dlc_expr coefficient, rest;
    int64_t first, piece;
    for (uint32_t a = 0; a < kernel->axes.n; a++) {
        if (!dlc_expr_uses_axis(kernel->pool, index, a) || !dlc_const_extent(kernel, a, &piece) || piece < 1 ||
            !dlc_expr_linear(kernel->pool, index, a, &coefficient, &rest))
            continue;
        if (coefficient == dlc_expr_i64(kernel->pool, 1) && dlc_expr_is_int(kernel->pool, rest, &first) && first % piece == 0)
            return is_exact(kernel, axis, kernel->axes.data[a].extent, result);
    }
    return 0;
}

static int find_split_in(dlc_kernel *kernel, const dlc_ranges *ranges, dlc_expr id, axis_split *result)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr_node node = *dlc_node_of(pool, id);
    if ((node.op == DLC_EXPR_FLOORDIV || node.op == DLC_EXPR_MOD) && node.dtype == DLC_I64)
        return split_for_quotient(kernel, dlc_arg(pool, id, 0), dlc_arg(pool, id, 1), result);
    if (node.op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node.imm.id))
        return 0;
    const dlc_stage *source = &kernel->stages.data[DLC_SOURCE_INDEX(node.imm.id)];
    for (uint32_t d = 0; d < source->axes.n; d++)
        if (split_for_sum(kernel, ranges, source->axes.data[d], dlc_arg(pool, id, d), result) ||
            split_for_piece(kernel, source->axes.data[d], dlc_arg(pool, id, d), result))
            return 1;
    return 0;
}

static int find_split(dlc_kernel *kernel, axis_split *result)
{
    uint32_t n = kernel->pool->nodes.n; /* what is looked at; the pool grows meanwhile */
    const uint8_t *marks = dlc_kernel_marks(kernel, kernel->arena);
    dlc_ranges ranges = dlc_kernel_ranges(kernel);
    for (dlc_expr id = 1; id < n; id++)
        if (marks[id] && find_split_in(kernel, &ranges, id, result))
            return 1;
    return 0;
}

typedef struct {
    dlc_kernel *kernel;
    axis_split split;
} splitting;

static uint32_t split_index(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    const splitting *s = user;
    dlc_pool *pool = s->kernel->pool;
    uint32_t n = 0;
    for (uint32_t d = 0; d < rank; d++) {
        int is_split = DLC_SOURCE_IS_STAGE(source) &&
                       s->kernel->stages.data[DLC_SOURCE_INDEX(source)].axes.data[d] == s->split.axis;
        if (is_split)
            result[n++] = dlc_floordiv(pool, index[d], s->split.factor);
        result[n++] = is_split ? dlc_mod(pool, index[d], s->split.factor) : index[d];
    }
    return n;
}

static void split_list(dlc_kernel *kernel, dlc_ids *axes, uint32_t axis, uint32_t outer, uint32_t inner)
{
    uint32_t position;
    if (!dlc_ids_find(axes, axis, &position))
        return;
    dlc_vec_push(kernel->arena, axes, inner);
    for (uint32_t i = axes->n - 1; i > position + 1; i--)
        axes->data[i] = axes->data[i - 1];
    axes->data[position] = outer;
    axes->data[position + 1] = inner;
}

static void apply_split(dlc_kernel *kernel, const axis_split *split)
{
    dlc_pool *pool = kernel->pool;
    const char *name = kernel->axes.data[split->axis].name;
    uint32_t outer = dlc_kernel_axis(kernel, dlc_arena_printf(kernel->arena, "%so", name), split->outer_extent);
    uint32_t inner = dlc_kernel_axis(kernel, dlc_arena_printf(kernel->arena, "%si", name), split->factor);
    dlc_expr *with = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n);
    with[split->axis] = dlc_add(pool, dlc_mul(pool, dlc_expr_axis(pool, outer), split->factor),
                                dlc_expr_axis(pool, inner));
    splitting s = {kernel, *split};
    dlc_kernel_reindex(kernel, &(dlc_reindex){with, split_index, &s});
    for (uint32_t i = 0; i < kernel->stages.n; i++) {
        split_list(kernel, &kernel->stages.data[i].axes, split->axis, outer, inner);
        split_list(kernel, &kernel->stages.data[i].reduce, split->axis, outer, inner);
    }
}

/* Rank of every stage stays within what one access can index, and of one that is read within that of a value. */
static int has_room(const dlc_kernel *kernel)
{
    const uint8_t *marks = dlc_kernel_marks(kernel, kernel->arena);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (kernel->stages.data[s].axes.n + 1 > DLC_MAX_INDEX - 8)
            return 0;
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (marks[id] && node->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(node->imm.id) &&
            kernel->stages.data[DLC_SOURCE_INDEX(node->imm.id)].axes.n + 1 > DLC_MAX_RANK)
            return 0;
    }
    return 1;
}

void dlc_lower_axes(dlc_kernel *kernel)
{
    enum { MOST_SPLITS = 64 };
    axis_split split;
    drop_units(kernel);
    dlc_lower_unify(kernel);
    dlc_kernel_simplify(kernel);
    for (uint32_t i = 0; i < MOST_SPLITS && has_room(kernel) && find_split(kernel, &split); i++) {
        apply_split(kernel, &split);
        dlc_kernel_simplify(kernel);
        dlc_lower_unify(kernel);
    }
}

/* --- guards --- */

/* A temporary read at its own point has a value there whatever the guard says: the guard only chooses. */
static dlc_expr guard_visit(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const dlc_kernel *kernel = ctx;
    uint32_t rank = node->nargs - 2u;
    if (node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id) || !args[rank])
        return 0;
    const dlc_ids *axes = &kernel->stages.data[DLC_SOURCE_INDEX(node->imm.id)].axes;
    for (uint32_t d = 0; d < rank; d++)
        if (dlc_bare_axis(to, args[d]) != axes->data[d])
            return 0;
    dlc_expr otherwise = args[rank + 1];
    if (!otherwise)
        otherwise = dlc_is_float(node->dtype) ? dlc_expr_const(to, node->dtype, 0)
                                              : dlc_expr_const_i(to, node->dtype, 0);
    return dlc_select(to, args[rank], dlc_expr_load(to, node->dtype, node->imm.id, args, rank, 0, 0, node->flags),
                      otherwise);
}

void dlc_lower_guards(dlc_kernel *kernel)
{
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        dlc_expr *root;
        for (uint32_t i = 0; (root = dlc_stage_root(&kernel->stages.data[s], i)); i++)
            *root = dlc_expr_rewrite(kernel->pool, kernel->pool, *root, guard_visit, kernel);
    }
}

/* --- windows --- */

/* The size of the axis's steps in the index; 0: there are none, or it is not known. */
static int64_t step_of(const dlc_kernel *kernel, dlc_expr index, uint32_t axis)
{
    dlc_expr coefficient, rest;
    int64_t step, extent;
    if ((dlc_const_extent(kernel, axis, &extent) && extent < 2) || !dlc_expr_uses_axis(kernel->pool, index, axis) ||
        !dlc_expr_linear(kernel->pool, index, axis, &coefficient, &rest) ||
        !dlc_expr_is_int(kernel->pool, coefficient, &step))
        return 0;
    return step < 0 ? -step : step;
}

int dlc_lower_overlaps(const dlc_kernel *kernel, dlc_expr index)
{
    for (uint32_t a = 0; a < kernel->axes.n; a++) {
        int64_t step = step_of(kernel, index, a), extent;
        if (!step || !dlc_const_extent(kernel, a, &extent))
            continue;
        for (uint32_t b = 0; b < kernel->axes.n; b++) {
            int64_t other = b == a ? 0 : step_of(kernel, index, b);
            if (other >= step && step * (extent - 1) >= other)
                return 1;
        }
    }
    return 0;
}
