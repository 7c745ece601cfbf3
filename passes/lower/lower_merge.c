/*
 * Merging: neighbour axes a, b that every access runs through as one (its offset contains k*(a*B + b), B the extent of b)
 * become one axis, so that a map over equal shapes is one long loop and equal code is found whatever the rank was. Buffers
 * are first written in physical order (their layout is then row-major), and where a and b index neighbour dimensions of a
 * buffer, these become one dimension of it: the kernel's buffers are descriptions of memory, not the graph's types.
 */
#include "passes/lower/lower.h"

#include <string.h>

/* --- buffers in physical order --- */

static int is_permutation(const dlc_buffer *buffer)
{
    const dlc_layout *layout = &buffer->layout;
    if (layout->nparts != buffer->type.rank)
        return 0;
    for (uint32_t p = 0; p < layout->nparts; p++)
        if (layout->part[p].block != 1 || layout->part[p].inner)
            return 0;
    return 1;
}

static uint32_t physical_index(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    const dlc_kernel *kernel = user;
    int permuted = !DLC_SOURCE_IS_STAGE(source) && is_permutation(&kernel->buffers.data[source]);
    for (uint32_t d = 0; d < rank; d++)
        result[d] = index[permuted ? kernel->buffers.data[source].layout.part[d].dim : d];
    return rank;
}

static void to_physical_order(dlc_kernel *kernel)
{
    dlc_kernel_reindex(kernel, &(dlc_reindex){.index = physical_index, .user = kernel});
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        dlc_buffer *buffer = &kernel->buffers.data[b];
        dlc_type type = buffer->type;
        if (!is_permutation(buffer))
            continue;
        for (uint32_t d = 0; d < type.rank; d++)
            buffer->type.dims[d] = type.dims[buffer->layout.part[d].dim];
        memset(&buffer->layout, 0, sizeof buffer->layout);
    }
}

/* --- dimensions of extent 1 --- */

typedef struct {
    dlc_kernel *kernel;
    uint8_t *keep; /* [buffer * DLC_MAX_RANK + dimension] */
} unit_dims;

static uint32_t note_unit_index(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    unit_dims *u = user;
    if (rank)
        memcpy(result, index, rank * sizeof *index);
    for (uint32_t d = 0; d < rank && !DLC_SOURCE_IS_STAGE(source); d++) {
        int64_t at, extent;
        if (!dlc_expr_is_int(u->kernel->pool, index[d], &at) || at != 0 ||
            !dlc_expr_is_int(u->kernel->pool, u->kernel->buffers.data[source].type.dims[d], &extent) || extent != 1)
            u->keep[source * DLC_MAX_RANK + d] = 1;
    }
    return rank;
}

static uint32_t drop_unit_dims(void *user, dlc_source source, const dlc_expr *index, uint32_t rank, dlc_expr *result)
{
    const unit_dims *u = user;
    uint32_t n = 0;
    for (uint32_t d = 0; d < rank; d++)
        if (DLC_SOURCE_IS_STAGE(source) || u->keep[source * DLC_MAX_RANK + d])
            result[n++] = index[d];
    return n;
}

static void drop_units(dlc_kernel *kernel)
{
    unit_dims u = {kernel, dlc_new_array(kernel->arena, uint8_t, (size_t)kernel->buffers.n * DLC_MAX_RANK)};
    dlc_kernel_reindex(kernel, &(dlc_reindex){.index = note_unit_index, .user = &u});
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (kernel->buffers.data[b].layout.nparts)
            memset(u.keep + (size_t)b * DLC_MAX_RANK, 1, DLC_MAX_RANK);
    dlc_kernel_reindex(kernel, &(dlc_reindex){.index = drop_unit_dims, .user = &u});
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        dlc_type *type = &kernel->buffers.data[b].type;
        uint8_t n = 0;
        for (uint8_t d = 0; d < type->rank; d++)
            if (u.keep[b * DLC_MAX_RANK + d])
                type->dims[n++] = type->dims[d];
        type->rank = n;
    }
}

/* --- one merge --- */

typedef struct {
    dlc_kernel *kernel;
    uint32_t a, b, c;    /* a * B + b = c */
    dlc_expr extent_b;
    int8_t *joined;      /* per buffer: its dimensions d and d + 1 become one; -1: none */
} merge;

/* Whether the axis is a term of the sum, itself or in a product: loads and divisions inside are contexts of their own. */
static int is_term(const dlc_pool *pool, dlc_expr expr, uint32_t axis)
{
    dlc_expr stack[64];
    uint32_t n = 0;
    stack[n++] = expr;
    while (n) {
        dlc_expr top = stack[--n];
        const dlc_expr_node *node = dlc_node_of(pool, top);
        if (node->op == DLC_EXPR_AXIS && node->imm.id == axis)
            return 1;
        if ((node->op != DLC_EXPR_ADD && node->op != DLC_EXPR_MUL) || node->dtype != DLC_I64)
            continue;
        if (n + 2 > 64)
            return 1; /* too deep to tell: as if it were, which only prevents a merge */
        stack[n++] = dlc_arg(pool, top, 0);
        stack[n++] = dlc_arg(pool, top, 1);
    }
    return 0;
}

/* k*(a*B + b) + rest as k*c + rest; 0 when it is not of that form. */
static dlc_expr joined_sum(merge *m, dlc_expr expr)
{
    dlc_pool *pool = m->kernel->pool;
    dlc_expr of_a, of_b, rest;
    if (!dlc_expr_linear(pool, expr, m->a, &of_a, &rest) || !dlc_expr_linear(pool, rest, m->b, &of_b, &rest))
        return 0;
    if (of_a != dlc_mul(pool, of_b, m->extent_b) || dlc_expr_uses_axis(pool, of_b, m->a) ||
        dlc_expr_uses_axis(pool, rest, m->a))
        return 0;
    return dlc_add(pool, dlc_mul(pool, of_b, dlc_expr_axis(pool, m->c)), rest);
}

static int uses_either(const merge *m, dlc_expr expr)
{
    return dlc_node_of(m->kernel->pool, expr)->dtype == DLC_I64 &&
           (is_term(m->kernel->pool, expr, m->a) || is_term(m->kernel->pool, expr, m->b));
}

static int position_of(const merge *m, const dlc_expr *index, uint32_t rank, uint32_t axis)
{
    for (uint32_t d = 0; d < rank; d++)
        if (is_term(m->kernel->pool, index[d], axis))
            return (int)d;
    return -1;
}

static int count_terms(const merge *m, const dlc_expr *index, uint32_t rank)
{
    int n = 0;
    for (uint32_t d = 0; d < rank; d++)
        n += uses_either(m, index[d]);
    return n;
}

static dlc_expr two_dims(const merge *m, const dlc_buffer *buffer, const dlc_expr *index, uint32_t d)
{
    dlc_pool *pool = m->kernel->pool;
    return dlc_add(pool, dlc_mul(pool, index[d], buffer->type.dims[d + 1]), index[d + 1]);
}

static int can_join_dims(merge *m, uint32_t buffer, const dlc_expr *index, uint32_t rank, uint32_t d)
{
    const dlc_buffer *b = &m->kernel->buffers.data[buffer];
    if (d + 1 >= rank || b->layout.nparts || (m->joined[buffer] >= 0 && m->joined[buffer] != (int8_t)d))
        return 0;
    if (!joined_sum(m, two_dims(m, b, index, d)))
        return 0;
    m->joined[buffer] = (int8_t)d;
    return 1;
}

/* The positions of a and b among a stage's axes; false when it has neither. */
static int stage_positions(const merge *m, dlc_source source, uint32_t *at_a, uint32_t *at_b)
{
    if (!DLC_SOURCE_IS_STAGE(source))
        return 0;
    const dlc_ids *axes = &m->kernel->stages.data[DLC_SOURCE_INDEX(source)].axes;
    return dlc_ids_find(axes, m->a, at_a) && dlc_ids_find(axes, m->b, at_b);
}

static dlc_expr two_indices(const merge *m, dlc_expr outer, dlc_expr inner)
{
    return dlc_add(m->kernel->pool, dlc_mul(m->kernel->pool, outer, m->extent_b), inner);
}

/* (A stage that is read at windows keeps its rows: a schedule may keep a few of them at a time.) */
static int can_merge_access(merge *m, dlc_source source, const dlc_expr *index, uint32_t rank)
{
    int terms = count_terms(m, index, rank), at_a = position_of(m, index, rank, m->a);
    int at_b = position_of(m, index, rank, m->b);
    uint32_t axis_a, axis_b;
    if (stage_positions(m, source, &axis_a, &axis_b)) {
        int used = uses_either(m, index[axis_a]) + uses_either(m, index[axis_b]);
        if (dlc_lower_overlaps(m->kernel, index[axis_a]) || dlc_lower_overlaps(m->kernel, index[axis_b]))
            return 0;
        return used == terms && (!used || joined_sum(m, two_indices(m, index[axis_a], index[axis_b])));
    }
    if (!terms)
        return 1;
    if (terms > 2 || at_a < 0 || at_b < 0)
        return 0;
    if (terms == 1)
        return joined_sum(m, index[at_a]) != 0;
    return !DLC_SOURCE_IS_STAGE(source) && at_b == at_a + 1 && can_join_dims(m, source, index, rank, (uint32_t)at_a);
}

static int can_merge_node(merge *m, dlc_expr id)
{
    dlc_pool *pool = m->kernel->pool;
    dlc_expr_node node = *dlc_node_of(pool, id);
    dlc_expr index[DLC_MAX_INDEX];
    if ((node.op == DLC_EXPR_ADD || node.op == DLC_EXPR_MUL) && node.dtype == DLC_I64)
        return 1; /* checked where the sum is used */
    uint32_t first = 0;
    if (node.op == DLC_EXPR_LOAD) {
        first = node.nargs - 2u;
        for (uint32_t d = 0; d < first; d++)
            index[d] = dlc_arg(pool, id, d);
        if (!can_merge_access(m, node.imm.id, index, first))
            return 0;
    }
    for (uint32_t i = first; i < node.nargs; i++) {
        dlc_expr arg = dlc_arg(pool, id, i);
        if (arg && uses_either(m, arg) && !joined_sum(m, arg))
            return 0;
    }
    return 1;
}

static int can_merge_lists(const merge *m, const dlc_stage *stage)
{
    uint32_t at_a, at_b;
    int has_a = dlc_ids_find(&stage->axes, m->a, NULL), has_b = dlc_ids_find(&stage->axes, m->b, NULL);
    int folds_a = dlc_ids_find(&stage->reduce, m->a, &at_a), folds_b = dlc_ids_find(&stage->reduce, m->b, &at_b);
    if (has_a != has_b || folds_a != folds_b)
        return 0;
    if (has_a && stage->update != DLC_UPDATE_NONE && /* so does a scatter's */
        !(dlc_ids_find(&stage->axes, m->a, &at_a) && dlc_ids_find(&stage->axes, m->b, &at_b) && at_b == at_a + 1))
        return 0;
    return !folds_a || at_b == at_a + 1; /* the order of a strict sum stays */
}

static int has_checked_load(const dlc_kernel *kernel, const uint8_t *marks, uint32_t n, uint32_t buffer)
{
    for (dlc_expr id = 1; id < n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (marks[id] && node->op == DLC_EXPR_LOAD && node->imm.id == buffer && (node->flags & DLC_LOAD_CHECKED))
            return 1;
    }
    return 0;
}

static int can_merge(merge *m)
{
    dlc_kernel *kernel = m->kernel;
    memset(m->joined, -1, kernel->buffers.n);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (!can_merge_lists(m, &kernel->stages.data[s]))
            return 0;
    uint32_t n = kernel->pool->nodes.n;
    const uint8_t *marks = dlc_kernel_marks(kernel, kernel->arena);
    for (dlc_expr id = 1; id < n; id++)
        if (marks[id] && !can_merge_node(m, id))
            return 0;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const dlc_stage *stage = &kernel->stages.data[s];
        if (stage->buffer != DLC_NO_BUFFER && !can_merge_access(m, stage->buffer, stage->store.data, stage->store.n))
            return 0;
        if (stage->update != DLC_UPDATE_NONE && m->joined[stage->buffer] >= 0) /* its store tests each index against its dimension */
            return 0;
        for (uint32_t v = 0; v < dlc_reduces[stage->combine].naccs; v++)
            if (uses_either(m, stage->value[v]) && !joined_sum(m, stage->value[v]))
                return 0;
    }
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (m->joined[b] >= 0 && has_checked_load(kernel, marks, n, b))
            return 0;
    return 1;
}

/* The operand after the merge: `rewritten` unless a or b is a term of it. */
static dlc_expr merged_sum(merge *m, dlc_expr before, dlc_expr rewritten)
{
    return before && uses_either(m, before) ? joined_sum(m, before) : rewritten;
}

static uint32_t merged_index(merge *m, dlc_source source, const dlc_expr *before, const dlc_expr *rewritten, uint32_t rank,
                             dlc_expr *result)
{
    uint32_t n = 0, axis_a = UINT32_MAX, axis_b = UINT32_MAX;
    int is_stage = stage_positions(m, source, &axis_a, &axis_b);
    for (uint32_t d = 0; d < rank; d++) {
        if (is_stage && d == axis_b)
            continue;
        if (is_stage && d == axis_a) {
            dlc_expr as_was = two_indices(m, before[d], before[axis_b]);
            result[n++] = merged_sum(m, as_was, two_indices(m, rewritten[d], rewritten[axis_b]));
        } else if (!DLC_SOURCE_IS_STAGE(source) && m->joined[source] == (int8_t)d) {
            const dlc_buffer *buffer = &m->kernel->buffers.data[source];
            result[n++] = merged_sum(m, two_dims(m, buffer, before, d), two_dims(m, buffer, rewritten, d));
            d++;
        } else {
            result[n++] = merged_sum(m, before[d], rewritten[d]);
        }
    }
    return n;
}

static dlc_expr merge_visit(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    merge *m = ctx;
    dlc_expr before[DLC_MAX_INDEX], after[DLC_MAX_INDEX];
    if (node->nargs == 0 || ((node->op == DLC_EXPR_ADD || node->op == DLC_EXPR_MUL) && node->dtype == DLC_I64))
        return 0;
    for (uint32_t i = 0; i < node->nargs; i++)
        before[i] = to->args.data[node->args + i];
    if (node->op == DLC_EXPR_LOAD) {
        uint32_t rank = node->nargs - 2u;
        uint32_t n = merged_index(m, node->imm.id, before, args, rank, after);
        return dlc_expr_load(to, node->dtype, node->imm.id, after, n, merged_sum(m, before[rank], args[rank]),
                             merged_sum(m, before[rank + 1], args[rank + 1]), node->flags);
    }
    for (uint32_t i = 0; i < node->nargs; i++)
        after[i] = merged_sum(m, before[i], args[i]);
    return dlc_expr_make(to, node->op, node->dtype, after, node->nargs);
}

static void merge_lists(const merge *m, dlc_ids *axes)
{
    uint32_t at;
    if (!dlc_ids_find(axes, m->a, &at))
        return;
    axes->data[at] = m->c;
    if (dlc_ids_find(axes, m->b, &at))
        dlc_ids_remove(axes, at);
}

static void merge_stage(merge *m, dlc_stage *stage)
{
    dlc_pool *pool = m->kernel->pool;
    dlc_expr before[DLC_MAX_INDEX], index[DLC_MAX_INDEX];
    uint32_t rank = stage->store.n;
    if (rank)
        memcpy(before, stage->store.data, rank * sizeof *before);
    dlc_expr *root;
    for (uint32_t i = 0; (root = dlc_stage_root(stage, i)); i++)
        *root = merged_sum(m, *root, dlc_expr_rewrite(pool, pool, *root, merge_visit, m));
    if (stage->buffer == DLC_NO_BUFFER)
        return;
    /* joined dimensions need the stores as they were: sums above were formed one dimension at a time */
    for (uint32_t d = 0; d < rank; d++)
        index[d] = uses_either(m, before[d]) ? before[d] : stage->store.data[d];
    uint32_t n = merged_index(m, stage->buffer, before, index, rank, index);
    stage->store.n = 0;
    for (uint32_t d = 0; d < n; d++)
        dlc_vec_push(m->kernel->arena, &stage->store, index[d]);
}

static void apply_merge(merge *m)
{
    dlc_kernel *kernel = m->kernel;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        merge_stage(m, &kernel->stages.data[s]);
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        merge_lists(m, &kernel->stages.data[s].axes);
        merge_lists(m, &kernel->stages.data[s].reduce);
    }
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        dlc_type *type = &kernel->buffers.data[b].type;
        if (m->joined[b] < 0)
            continue;
        uint32_t d = (uint32_t)m->joined[b];
        type->dims[d] = dlc_mul(kernel->pool, type->dims[d], type->dims[d + 1]);
        for (uint32_t i = d + 1; i + 1 < type->rank; i++)
            type->dims[i] = type->dims[i + 1];
        type->rank--;
    }
}

/* --- candidates --- */

typedef struct {
    uint32_t a, b;
} pair;
typedef dlc_vec(pair) pairs;

static void add_pair(dlc_kernel *kernel, pairs *list, uint32_t a, uint32_t b)
{
    if (a == DLC_NO_AXIS || b == DLC_NO_AXIS || a == b)
        return;
    for (uint32_t i = 0; i < list->n; i++)
        if (list->data[i].a == a && list->data[i].b == b)
            return;
    dlc_vec_push(kernel->arena, list, ((pair){a, b}));
}

/* Neighbours in one index sum: coefficient of a = extent of b times coefficient of b. */
static void add_pairs_of_sum(dlc_kernel *kernel, pairs *list, dlc_expr index)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr of_a, of_b, rest;
    if (dlc_node_of(pool, index)->op != DLC_EXPR_ADD)
        return;
    for (uint32_t a = 0; a < kernel->axes.n; a++) {
        if (!is_term(pool, index, a) || !dlc_expr_linear(pool, index, a, &of_a, &rest))
            continue;
        for (uint32_t b = 0; b < kernel->axes.n; b++)
            if (a != b && is_term(pool, index, b) && dlc_expr_linear(pool, index, b, &of_b, &rest) &&
                of_a == dlc_mul(pool, of_b, kernel->axes.data[b].extent))
                add_pair(kernel, list, a, b);
    }
}

typedef struct {
    dlc_kernel *kernel;
    pairs *list;
} collector;

static void add_pairs_of(collector *c, const dlc_expr *index, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++) {
        if (d + 1 < rank)
            add_pair(c->kernel, c->list, dlc_bare_axis(c->kernel->pool, index[d]),
                     dlc_bare_axis(c->kernel->pool, index[d + 1]));
        add_pairs_of_sum(c->kernel, c->list, index[d]);
    }
}

static void collect_pairs(dlc_kernel *kernel, pairs *list)
{
    collector c = {kernel, list};
    const uint8_t *marks = dlc_kernel_marks(kernel, kernel->arena);
    uint32_t n = kernel->pool->nodes.n;
    dlc_expr index[DLC_MAX_INDEX];
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        add_pairs_of(&c, kernel->stages.data[s].store.data, kernel->stages.data[s].store.n);
    for (dlc_expr id = 1; id < n; id++) {
        if (!marks[id] || dlc_node_of(kernel->pool, id)->op != DLC_EXPR_LOAD)
            continue;
        uint32_t rank = dlc_load_rank(kernel->pool, id);
        for (uint32_t d = 0; d < rank; d++)
            index[d] = dlc_arg(kernel->pool, id, d);
        add_pairs_of(&c, index, rank);
    }
}

static int merge_one(dlc_kernel *kernel)
{
    pairs list = {0};
    collect_pairs(kernel, &list);
    for (uint32_t i = 0; i < list.n; i++) {
        uint32_t a = list.data[i].a, b = list.data[i].b;
        dlc_expr extent = dlc_mul(kernel->pool, kernel->axes.data[a].extent, kernel->axes.data[b].extent);
        merge m = {kernel, a, b, kernel->axes.n, kernel->axes.data[b].extent, NULL};
        m.joined = dlc_new_array(kernel->arena, int8_t, kernel->buffers.n);
        if (!can_merge(&m)) /* sums with the axis to come were tried: its id is the next one, nothing refers to them */
            continue;
        const char *name = dlc_arena_printf(kernel->arena, "%s%s", kernel->axes.data[a].name, kernel->axes.data[b].name);
        dlc_kernel_axis(kernel, name, extent);
        apply_merge(&m);
        return 1;
    }
    return 0;
}

static int has_update(const dlc_kernel *kernel)
{
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (kernel->stages.data[s].update != DLC_UPDATE_NONE)
            return 1;
    return 0;
}

void dlc_lower_merge(dlc_kernel *kernel)
{
    to_physical_order(kernel);
    if (!has_update(kernel)) /* a scatter's dimensions stay as they are */
        drop_units(kernel);
    while (merge_one(kernel))
        ;
    if (has_update(kernel)) /* and the axes of what is copied are not those of what is scattered */
        return;
    dlc_kernel_simplify(kernel);
    dlc_lower_unify(kernel);
}
