/*
 * Quotients of neighbours by a size that only the run knows, as the rows of a register tile have them over an image whose lines are of any
 * length: a division for each would take as long as a good part of the tile. Behind x, whose quotient and remainder are there, x + 1 has
 * the same quotient and a remainder greater by one, unless that is the divisor: then the next quotient, and 0.
 */
#include "codegen/nest.h"

enum { MOST_BEFORE = 64 }; /* that are looked at: rows of a tile follow each other, with few other divisors between them */

static const dlc_quotient *find(const dlc_nest *nest, dlc_expr x, dlc_expr by)
{
    uint32_t n = nest->quotients.n;
    for (uint32_t i = n; i-- > 0 && n - i <= MOST_BEFORE;)
        if (nest->quotients.data[i].x == x && nest->quotients.data[i].by == by)
            return &nest->quotients.data[i];
    return NULL;
}

/* By a size that the run knows, of something that depends on a loop: where the size is 0 the loop has no iteration. Lanes are divided otherwise. */
static int is_of_interest(const dlc_nest *nest, const dlc_expr_node *node, dlc_expr x, dlc_expr by)
{
    const dlc_pool *pool = nest->kernel->pool;
    int64_t size;
    return nest->emit->target->kind == DLC_TARGET_CPU && !nest->emit->target->plugin && node->dtype == DLC_I64 &&
           !dlc_expr_has_load(pool, x) && !dlc_expr_has_load(pool, by) && !dlc_expr_is_int(pool, by, &size) &&
           pool->facts.data[x].axes && !pool->facts.data[by].axes &&
           (nest->lane == DLC_NO_AXIS || nest->width == 1 || !dlc_expr_uses_axis(pool, x, nest->lane)) &&
           dlc_expr_range(pool, by, &nest->ranges).lo >= 0;
}

dlc_expr dlc_nest_next_quotient(dlc_nest *nest, dlc_expr expr)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_expr_node node = *dlc_node_of(pool, expr);
    if (node.op != DLC_EXPR_FLOORDIV && node.op != DLC_EXPR_MOD)
        return 0;
    dlc_expr x = dlc_arg(pool, expr, 0), by = dlc_arg(pool, expr, 1), zero = dlc_expr_i64(pool, 0);
    if (!is_of_interest(nest, &node, x, by))
        return 0;
    const dlc_quotient *found = find(nest, x, by), *before = found ? NULL : find(nest, dlc_addi(pool, x, -1), by);
    dlc_quotient of = {x, by, dlc_floordiv(pool, x, by), dlc_mod(pool, x, by), 0};
    if (before) {
        dlc_expr next = dlc_addi(pool, before->rest, 1), one = dlc_expr_i64(pool, 1);
        of.before = before->quotient;
        of.quotient = dlc_add(pool, before->quotient, dlc_select(pool, dlc_eq(pool, next, by), one, zero));
        of.rest = dlc_select(pool, dlc_lt(pool, next, by), next, zero);
    }
    if (found)
        of = *found;
    else
        dlc_vec_push(nest->arena, &nest->quotients, of);
    /* Elsewhere than with the one before it, a division is shorter than going on from that. */
    dlc_expr instead = node.op == DLC_EXPR_FLOORDIV ? of.quotient : of.rest;
    return of.before && dlc_nest_is_known(nest, of.before) && instead != expr ? instead : 0;
}
