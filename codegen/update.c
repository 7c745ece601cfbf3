/*
 * A scatter's stores: in index order, one element at a time or lanes of a row, whose last index is the axis along them, all of it
 * (dlc_scatters_rows). An index out of range is a fault and stores nothing.
 */
#include "codegen/nest.h"

#include <assert.h>

static dlc_expr_op update_op(dlc_update update)
{
    static const dlc_expr_op ops[] = {[DLC_UPDATE_SUM] = DLC_EXPR_ADD,
                                      [DLC_UPDATE_PROD] = DLC_EXPR_MUL,
                                      [DLC_UPDATE_MIN] = DLC_EXPR_MIN,
                                      [DLC_UPDATE_MAX] = DLC_EXPR_MAX};
    return ops[update];
}

/* 0 <= index < extent, by one comparison where both are asked. */
static dlc_expr is_inside(dlc_nest *nest, dlc_expr index, dlc_expr extent)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr inside = dlc_expr_simplify(pool, dlc_in_range(pool, index, extent), &nest->ranges);
    if (dlc_node_of(pool, inside)->op != DLC_EXPR_AND)
        return inside;
    return dlc_lt(pool, dlc_expr_cast(pool, DLC_U64, index), dlc_expr_cast(pool, DLC_U64, extent));
}

void dlc_nest_update(dlc_nest *nest, const dlc_access *access, const dlc_expr *index, dlc_val value, dlc_update update)
{
    dlc_pool *pool = nest->kernel->pool;
    const dlc_type *type = &nest->kernel->buffers.data[access->buffer].type;
    dlc_expr in_range = dlc_expr_bool(pool, 1);
    int64_t always;
    assert(nest->width == 1 || access->mode == DLC_ACCESS_VECTOR);
    for (uint32_t d = 0; d + (nest->width > 1) < type->rank; d++)
        in_range = dlc_and(pool, in_range, is_inside(nest, index[d], type->dims[d]));
    dlc_val inside = dlc_nest_uniform(nest, in_range);
    if (!dlc_expr_is_int(pool, in_range, &always) || !always) {
        dlc_val bad = nest->emit->arith(nest->emit, DLC_EXPR_NOT, DLC_BOOL, DLC_BOOL, 1, &inside);
        nest->emit->fault(nest->emit, bad, 1);
    }
    nest->emit->if_begin(nest->emit, inside);
    dlc_nest_enter(nest);
    if (update != DLC_UPDATE_SET) {
        dlc_val old = nest->emit->load(nest->emit, access);
        nest->emit->sync(nest->emit, 0); /* all lanes have read it before one changes it */
        value = nest->emit->arith(nest->emit, update_op(update), type->dtype, type->dtype, access->width, (dlc_val[]){old, value});
    }
    nest->emit->store(nest->emit, access, value);
    dlc_nest_leave(nest);
    nest->emit->if_end(nest->emit);
}
