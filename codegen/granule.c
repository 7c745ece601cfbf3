/* Granules of rows of dot.def where there is no instruction for them: a value is the bits of one, taken apart by shifts. */
#include "codegen/nest.h"

dlc_expr dlc_granule_load(dlc_pool *pool, dlc_expr load, uint32_t granule)
{
    uint32_t bytes = granule * dlc_dtype_bytes(dlc_node_of(pool, load)->dtype);
    dlc_expr index[DLC_MAX_INDEX];
    uint32_t rank = dlc_load_rank(pool, load);
    for (uint32_t i = 0; i < rank; i++)
        index[i] = dlc_arg(pool, load, i);
    return dlc_expr_load(pool, bytes == 2 ? DLC_I16 : DLC_I32, dlc_node_of(pool, load)->imm.id, index, rank, 0, 0, DLC_LOAD_GRANULE);
}

dlc_expr dlc_granule_codes(dlc_pool *pool, dlc_expr granule, dlc_expr shift, uint32_t mask)
{
    dlc_dtype dtype = (dlc_dtype)dlc_node_of(pool, granule)->dtype;
    dlc_expr shifted = dlc_expr_make(pool, DLC_EXPR_SHR, dtype, (dlc_expr[]){granule, dlc_expr_cast(pool, dtype, shift)}, 2);
    return dlc_expr_make(pool, DLC_EXPR_AND, dtype, (dlc_expr[]){shifted, dlc_expr_const_i(pool, dtype, (int32_t)(mask * 0x01010101u))}, 2);
}

dlc_val dlc_granule_value(dlc_nest *nest, dlc_dot row, dlc_expr load, dlc_expr operand)
{
    dlc_dtype dtype = dlc_node_of(nest->kernel->pool, operand)->dtype;
    dlc_val value = dlc_nest_value_at(nest, load);
    return dlc_dot_widens(row, dtype) ? nest->emit->widen(nest->emit, dtype, nest->width, value) : value;
}

dlc_val dlc_granule_word(dlc_nest *nest, uint32_t width, uint32_t bits)
{
    return nest->emit->konst(nest->emit, DLC_I32, (dlc_scalar){.i = (int32_t)bits}, width);
}

static dlc_val arith2(dlc_nest *nest, uint32_t width, dlc_expr_op op, dlc_dtype dtype, dlc_val a, dlc_val b)
{
    return nest->emit->arith(nest->emit, op, dtype, dtype, width, (dlc_val[]){a, b});
}

dlc_val dlc_granule_element(dlc_nest *nest, uint32_t width, dlc_dtype dtype, dlc_val granule, uint32_t i)
{
    enum { WORD = 32 };
    uint32_t bits = dlc_dtypes[dtype].bits, above = WORD - bits * (i + 1);
    dlc_val high = granule;
    if (above)
        high = arith2(nest, width, DLC_EXPR_SHL, DLC_I32, granule, dlc_granule_word(nest, width, above));
    if (dtype != DLC_BF16)
        return arith2(nest, width, DLC_EXPR_SHR, dlc_is_unsigned(dtype) ? DLC_U32 : DLC_I32, high,
                      dlc_granule_word(nest, width, WORD - bits));
    high = arith2(nest, width, DLC_EXPR_AND, DLC_I32, high, dlc_granule_word(nest, width, 0xffff0000u));
    return nest->emit->arith(nest->emit, DLC_EXPR_BITCAST, DLC_I32, DLC_F32, width, &high);
}

dlc_val dlc_granule_multiply(dlc_nest *nest, dlc_dot row, uint32_t width, dlc_val a, dlc_val b, uint32_t at, dlc_val acc)
{
    dlc_dtype type = (dlc_dtype)dlc_dots[row].acc;
    dlc_val args[] = {dlc_granule_element(nest, width, dlc_dots[row].a, a, at), dlc_granule_element(nest, width, dlc_dots[row].b, b, at),
                      acc};
    return nest->emit->arith(nest->emit, type == DLC_F32 ? DLC_EXPR_FMA : DLC_EXPR_MULADD, type, type, width, args);
}
