/*
 * Elementary functions as plain arithmetic: replaces each exp, log, tanh, … of an expression by its
 * expansion. The functions themselves are in expand_exp.c, expand_log.c, expand_trig.c and
 * expand_pow.c, their coefficients in expand_table.h, and their measured errors in
 * docs/numerics.md. One source for the strict interpreter and every target: their bits agree.
 */
#include "ir/expr/expand.h"

#include <math.h>

static const dlc_expander expanders[DLC_EXPR_COUNT] = {
#define DLC_EXPANDER(id, name) [DLC_EXPR_##id] = dlc_expand_##name,
    DLC_EXPANDERS(DLC_EXPANDER)
#undef DLC_EXPANDER
};

/* The powers that were met last: where the node's argument stands in the pool, and what it was expanded to. */
typedef struct {
    uint32_t args[8];
    dlc_expr of[8];
    uint32_t n;
    dlc_expr root;
    dlc_arena *scratch; /* NULL: nothing has been asked yet */
    uint8_t *marks;     /* what the root is made of */
    uint32_t has;       /* dlc_expand_has */
} powers;

static void remember(powers *seen, const dlc_expr_node *node, dlc_expr of)
{
    uint32_t at = seen->n++ % (sizeof seen->of / sizeof *seen->of);
    seen->args[at] = node->args;
    seen->of[at] = of;
}

/* What reads the power needs the whole of it. */
static int is_read_twice(powers *seen, const dlc_pool *pool, dlc_expr power)
{
    uint32_t readers = 0;
    if (!seen->scratch) {
        seen->scratch = dlc_arena_create(0);
        seen->marks = dlc_new_array(seen->scratch, uint8_t, (size_t)seen->root + 1);
        dlc_expr_reach(pool, seen->root, seen->marks);
    }
    for (dlc_expr id = power + 1; id <= seen->root; id++)
        for (uint32_t i = 0; seen->marks[id] && i < dlc_node_of(pool, id)->nargs; i++)
            readers += dlc_arg(pool, id, i) == power;
    return readers > 1;
}

/* exp(x) + c, as sigmoids have it, to the bits of both expanded; 0: something else. */
static dlc_expr power_and_number(powers *seen, dlc_pool *pool, const dlc_expr_node *node, const dlc_expr *args)
{
    const double least = 0x1p-60;
    for (uint32_t i = 0; i < 2 && (node->dtype == DLC_F32 || node->dtype == DLC_F64); i++) {
        dlc_expr id = pool->args.data[node->args + i];
        const dlc_expr_node power = *dlc_node_of(pool, id), *number = dlc_node_of(pool, args[1 - i]);
        if (power.op != DLC_EXPR_EXP || number->op != DLC_EXPR_CONST || !(fabs(number->imm.f) >= least) || is_read_twice(seen, pool, id))
            continue;
        dlc_expand e = dlc_expand_as(pool, (dlc_dtype)node->dtype);
        for (uint32_t k = 0; k < seen->n && k < sizeof seen->of / sizeof *seen->of; k++)
            if (seen->args[k] == power.args)
                return dlc_x_add(&e, dlc_expand_exp_beside(&e, seen->of[k]), args[1 - i]);
    }
    return 0;
}

static dlc_expr rounded_quotient(const powers *seen, dlc_pool *pool, dlc_expr of)
{
    const dlc_expr_node quotient = *dlc_node_of(pool, of);
    const dlc_expr_node *divisor = quotient.op == DLC_EXPR_DIV ? dlc_node_of(pool, dlc_arg(pool, of, 1)) : NULL;
    if (!divisor || divisor->op != DLC_EXPR_CONST)
        return 0;
    dlc_expand e = dlc_expand_as(pool, (dlc_dtype)quotient.dtype);
    e.fuses = (seen->has & DLC_EXPAND_FMA) != 0;
    return dlc_expand_rounded_quotient(&e, dlc_arg(pool, of, 0), divisor->imm.f);
}

static dlc_expr expand_node(void *ctx, dlc_pool *pool, const dlc_expr_node *node,
                            const dlc_expr *args)
{
    powers *seen = ctx;
    if (node->op == DLC_EXPR_ADD)
        return power_and_number(seen, pool, node, args);
    if (node->op == DLC_EXPR_RINT)
        return rounded_quotient(seen, pool, args[0]);
    dlc_expander expander = expanders[node->op];
    dlc_dtype dtype = (dlc_dtype)node->dtype;
    uint8_t nargs = node->nargs;
    if (!expander || !dlc_is_float(dtype)) /* rem and mod of integers are rows of their own right */
        return 0;
    if (node->op == DLC_EXPR_SCALE && seen->has & DLC_EXPAND_SCALE && (dtype == DLC_F32 || dtype == DLC_F64))
        return 0;
    dlc_dtype type = dtype == DLC_F64 ? DLC_F64 : DLC_F32;
    dlc_expand e = dlc_expand_as(pool, type);
    e.scales = (seen->has & DLC_EXPAND_SCALE) != 0;
    dlc_expr operands[2] = {0};
    for (uint8_t i = 0; i < nargs; i++)
        operands[i] = dlc_expr_cast(pool, type, args[i]);
    if (node->op == DLC_EXPR_EXP)
        remember(seen, node, operands[0]);
    return dlc_expr_cast(pool, dtype, expander(&e, operands));
}

dlc_expr dlc_expr_expand_with(dlc_pool *pool, dlc_expr root, uint32_t has)
{
    powers seen = {.root = root, .has = has};
    dlc_expr result = dlc_expr_rewrite(pool, pool, root, expand_node, &seen);
    if (seen.scratch)
        dlc_arena_destroy(seen.scratch);
    return result;
}

dlc_expr dlc_expr_expand(dlc_pool *pool, dlc_expr root)
{
    return dlc_expr_expand_with(pool, root, 0);
}
