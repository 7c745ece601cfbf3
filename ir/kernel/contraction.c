/*
 * The recogniser of contractions: a sum whose value is a product. Factors free of the reduced axes
 * leave the sum (scale); the two that own most axes apart from each other found A and B, every
 * further factor joins the side that has its axes already. What matmul, convolution, einsum and
 * attention have in common is only this: axes in A alone, in B alone, in both.
 */
#include "ir/kernel/kernel.h"

#include <string.h>

typedef struct {
    dlc_expr expr;
    uint64_t *axes; /* bit set */
} factor;

typedef dlc_vec(factor) factors;

typedef struct {
    const dlc_kernel *kernel;
    const dlc_stage *stage;
    dlc_arena *arena;
    uint32_t words; /* of a bit set of axes */
    uint64_t *kept, *reduced;
    factors inner; /* depend on reduced axes */
    dlc_expr scale;
} product;

static int has(const uint64_t *set, uint32_t axis)
{
    return (int)(set[axis / 64] >> axis % 64 & 1);
}

static uint64_t *new_set(const product *p)
{
    return dlc_new_array(p->arena, uint64_t, p->words);
}

static int meets(const product *p, const uint64_t *a, const uint64_t *b)
{
    uint64_t common = 0;
    for (uint32_t w = 0; w < p->words; w++)
        common |= a[w] & b[w];
    return common != 0;
}

/* How many kept axes are in a and not in b. */
static uint32_t nown(const product *p, const uint64_t *a, const uint64_t *b)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < p->words; w++)
        n += (uint32_t)__builtin_popcountll(a[w] & ~b[w] & p->kept[w]);
    return n;
}

static dlc_expr times(dlc_pool *pool, dlc_expr a, dlc_expr b)
{
    return a && b ? dlc_mul(pool, a, b) : a ? a : b;
}

static void add_factor(product *p, dlc_expr expr)
{
    factor f = {expr, new_set(p)};
    dlc_expr_axes(p->kernel->pool, expr, f.axes);
    if (meets(p, f.axes, p->reduced))
        dlc_vec_push(p->arena, &p->inner, f);
    else
        p->scale = times(p->kernel->pool, p->scale, expr);
}

/* Products, and signs, which are exact factors; a cast, a select or a guard stays inside its
 * factor. */
static void split(product *p, dlc_expr value)
{
    dlc_pool *pool = p->kernel->pool;
    dlc_ids pending = {0};
    dlc_vec_push(p->arena, &pending, value);
    while (pending.n) {
        dlc_expr expr = pending.data[--pending.n];
        const dlc_expr_node *node = dlc_node_of(pool, expr);
        dlc_expr_op op = (dlc_expr_op)node->op;
        if (op == DLC_EXPR_MUL) {
            dlc_vec_push(p->arena, &pending, dlc_arg(pool, expr, 1));
            dlc_vec_push(p->arena, &pending, dlc_arg(pool, expr, 0));
        } else if (op == DLC_EXPR_NEG) {
            p->scale = times(pool, p->scale, dlc_expr_const_i(pool, (dlc_dtype)node->dtype, -1));
            dlc_vec_push(p->arena, &pending, dlc_arg(pool, expr, 0));
        } else {
            add_factor(p, expr);
        }
    }
}

static void choose_founders(const product *p, uint32_t *a, uint32_t *b)
{
    uint32_t best = 0;
    *a = 0;
    *b = 1;
    for (uint32_t i = 0; i < p->inner.n; i++)
        for (uint32_t j = i + 1; j < p->inner.n; j++) {
            uint32_t left = nown(p, p->inner.data[i].axes, p->inner.data[j].axes);
            uint32_t right = nown(p, p->inner.data[j].axes, p->inner.data[i].axes);
            uint32_t merit = 1 + left + right + (left && right ? 64 : 0);
            if (merit > best) {
                best = merit;
                *a = i;
                *b = j;
            }
        }
}

static void join(const product *p, factor *side, const factor *other)
{
    side->expr = dlc_mul(p->kernel->pool, side->expr, other->expr);
    for (uint32_t w = 0; w < p->words; w++)
        side->axes[w] |= other->axes[w];
}

/* The axes at which `load`, of stage s, reads an earlier step of this or a later stage. */
static void mark_steps(const dlc_kernel *kernel, uint32_t s, dlc_expr load, uint64_t *serial)
{
    const dlc_expr_node node = *dlc_node_of(kernel->pool, load);
    if (node.op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node.imm.id) ||
        DLC_SOURCE_INDEX(node.imm.id) < s)
        return;
    const dlc_ids *axes = &kernel->stages.data[DLC_SOURCE_INDEX(node.imm.id)].axes;
    for (uint32_t i = 0; i < axes->n; i++) {
        dlc_expr own = dlc_expr_axis(kernel->pool, axes->data[i]);
        int64_t distance;
        if (dlc_expr_is_int(kernel->pool,
                            dlc_sub(kernel->pool, own, dlc_arg(kernel->pool, load, i)),
                            &distance) &&
            distance > 0)
            serial[axes->data[i] / 64] |= UINT64_C(1) << axes->data[i] % 64;
    }
}

/* Axes along which a stage waits for its own past: they are serial, whatever factor holds them. */
static void mark_recurrences(const product *p, uint64_t *serial)
{
    const dlc_kernel *kernel = p->kernel;
    uint32_t n = kernel->pool->nodes.n; /* before the distances below add to it */
    uint8_t *marks = dlc_new_array(p->arena, uint8_t, n);
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        memset(marks, 0, n);
        for (uint32_t a = 0; a < dlc_reduces[kernel->stages.data[s].combine].naccs; a++)
            dlc_expr_reach(kernel->pool, kernel->stages.data[s].value[a], marks);
        for (dlc_expr id = 1; id < n; id++)
            if (marks[id])
                mark_steps(kernel, s, id, serial);
    }
}

static int is_constant_data(const dlc_kernel *kernel, dlc_expr expr, dlc_arena *arena)
{
    uint8_t *marks = dlc_new_array(arena, uint8_t, (size_t)expr + 1);
    dlc_expr_reach(kernel->pool, expr, marks);
    int all = 1;
    for (dlc_expr id = 1; id <= expr; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (marks[id] && node->op == DLC_EXPR_LOAD)
            all &= !DLC_SOURCE_IS_STAGE(node->imm.id) &&
                   kernel->buffers.data[node->imm.id].role == DLC_ROLE_CONST;
    }
    return all;
}

/* Constant data is B; else B is what has the stage's last axis to itself. */
static int is_b(const product *p, const factor *side, const factor *other)
{
    int is_const = is_constant_data(p->kernel, side->expr, p->arena),
        other_const = is_constant_data(p->kernel, other->expr, p->arena);
    if (is_const != other_const)
        return is_const;
    for (uint32_t i = p->stage->axes.n; i-- > 0;) {
        uint32_t axis = p->stage->axes.data[i];
        if (has(side->axes, axis) != has(other->axes, axis))
            return has(side->axes, axis);
    }
    return 0;
}

static void sort_axes(const product *p, const factor *a, const factor *b, dlc_contraction *result)
{
    uint64_t *serial = new_set(p);
    mark_recurrences(p, serial);
    for (uint32_t i = 0; i < p->stage->axes.n; i++) {
        uint32_t axis = p->stage->axes.data[i];
        int in_a = has(a->axes, axis), in_b = has(b->axes, axis);
        dlc_ids *kind = in_a == in_b || has(serial, axis) ? &result->batch
                        : in_a                            ? &result->m
                                                          : &result->n;
        dlc_vec_push(p->arena, kind, axis);
    }
    for (uint32_t i = 0; i < p->stage->reduce.n; i++)
        dlc_vec_push(p->arena, &result->k, p->stage->reduce.data[i]);
}

int dlc_contraction_of(dlc_kernel *kernel, const dlc_stage *stage, dlc_arena *arena,
                       dlc_contraction *result)
{
    *result = (dlc_contraction){0};
    if (stage->combine != DLC_REDUCE_SUM || stage->dtype[0] == DLC_BOOL)
        return 0;
    product p = {
        .kernel = kernel, .stage = stage, .arena = arena, .words = (kernel->axes.n + 63) / 64};
    p.kept = new_set(&p);
    p.reduced = new_set(&p);
    for (uint32_t i = 0; i < stage->axes.n; i++)
        p.kept[stage->axes.data[i] / 64] |= UINT64_C(1) << stage->axes.data[i] % 64;
    for (uint32_t i = 0; i < stage->reduce.n; i++)
        p.reduced[stage->reduce.data[i] / 64] |= UINT64_C(1) << stage->reduce.data[i] % 64;
    split(&p, stage->value[0]);
    if (p.inner.n < 2)
        return 0;
    uint32_t at_a, at_b;
    choose_founders(&p, &at_a, &at_b);
    factor a = p.inner.data[at_a], b = p.inner.data[at_b];
    for (uint32_t i = 0; i < p.inner.n; i++)
        if (i != at_a && i != at_b) {
            const factor *f = &p.inner.data[i];
            join(&p, nown(&p, f->axes, b.axes) < nown(&p, f->axes, a.axes) ? &b : &a, f);
        }
    int is_swapped = !is_b(&p, &b, &a) && is_b(&p, &a, &b);
    sort_axes(&p, is_swapped ? &b : &a, is_swapped ? &a : &b, result);
    result->a = is_swapped ? b.expr : a.expr;
    result->b = is_swapped ? a.expr : b.expr;
    result->scale = p.scale;
    return 1;
}
