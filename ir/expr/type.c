/*
 * Tensor types and layouts. The one idea: a layout is a list of parts from outer to inner, and the
 * place of an element is a sum of part * stride, so every layout (row-major, channels last, packed
 * panels) is the same loop.
 */
#include "ir/expr/type.h"

#include <stdlib.h>
#include <string.h>

/* The parts of row-major order, written out. */
static dlc_layout spelled_out(uint8_t rank)
{
    dlc_layout layout = {.nparts = rank};
    for (uint8_t d = 0; d < rank; d++) {
        layout.part[d].dim = d;
        layout.part[d].block = 1;
    }
    return layout;
}

static int same_parts(const dlc_layout *a, const dlc_layout *b)
{
    if (a->nparts != b->nparts)
        return 0;
    for (uint8_t p = 0; p < a->nparts; p++)
        if (a->part[p].dim != b->part[p].dim || a->part[p].inner != b->part[p].inner ||
            a->part[p].block != b->part[p].block || a->part[p].pad != b->part[p].pad)
            return 0;
    return 1;
}

int dlc_layout_equal(const dlc_layout *a, const dlc_layout *b)
{
    if (a->nparts && b->nparts)
        return same_parts(a, b);
    const dlc_layout *spelled = a->nparts ? a : b; /* row-major may be written out, too */
    dlc_layout plain = spelled_out(spelled->nparts);
    return same_parts(spelled, &plain);
}

dlc_layout dlc_layout_permuted(uint8_t rank, const uint8_t *order)
{
    dlc_layout layout = spelled_out(rank), plain = layout;
    for (uint8_t p = 0; p < rank; p++)
        layout.part[p].dim = order[p];
    if (same_parts(&layout, &plain))
        layout = (dlc_layout){0};
    return layout;
}

dlc_layout dlc_layout_channels_last(uint8_t rank)
{
    uint8_t order[DLC_MAX_RANK] = {0};
    for (uint8_t p = 1; p + 1 < rank; p++)
        order[p] = (uint8_t)(p + 1);
    order[rank - 1] = 1;
    return dlc_layout_permuted(rank, order);
}

/* Extent of part p: a block, the number of blocks, or the dimension. */
static dlc_expr part_extent(dlc_pool *pool, const dlc_layout *layout, uint8_t p,
                            const dlc_expr *dims)
{
    int32_t block = layout->part[p].block;
    if (layout->part[p].inner)
        return dlc_expr_i64(pool, block);
    dlc_expr dim = dims[layout->part[p].dim];
    if (block == 1)
        return dim;
    return dlc_floordiv(pool, dlc_addi(pool, dim, block - 1), dlc_expr_i64(pool, block));
}

static dlc_expr part_index(dlc_pool *pool, const dlc_layout *layout, uint8_t p,
                           const dlc_expr *index)
{
    int32_t block = layout->part[p].block;
    dlc_expr i = index[layout->part[p].dim];
    if (layout->part[p].inner)
        return dlc_mod(pool, i, dlc_expr_i64(pool, block));
    return block == 1 ? i : dlc_floordiv(pool, i, dlc_expr_i64(pool, block));
}

dlc_expr dlc_layout_offset(dlc_pool *pool, const dlc_layout *layout, uint8_t rank,
                           const dlc_expr *dims, const dlc_expr *index)
{
    dlc_layout plain = spelled_out(rank);
    const dlc_layout *parts = layout->nparts ? layout : &plain;
    dlc_expr offset = dlc_expr_i64(pool, 0), stride = dlc_expr_i64(pool, 1);
    for (uint8_t p = parts->nparts; p-- > 0;) {
        offset = dlc_add(pool, offset, dlc_mul(pool, part_index(pool, parts, p, index), stride));
        stride = dlc_mul(pool, stride, dlc_addi(pool, part_extent(pool, parts, p, dims), parts->part[p].pad));
    }
    return offset;
}

dlc_expr dlc_layout_elems(dlc_pool *pool, const dlc_layout *layout, uint8_t rank,
                          const dlc_expr *dims)
{
    if (!layout->nparts)
        return dlc_dims_product(pool, dims, rank);
    dlc_expr elems = dlc_expr_i64(pool, 1);
    for (uint8_t p = 0; p < layout->nparts; p++)
        elems = dlc_mul(pool, elems, dlc_addi(pool, part_extent(pool, layout, p, dims), layout->part[p].pad));
    return elems;
}

dlc_expr dlc_dims_product(dlc_pool *pool, const dlc_expr *dims, uint32_t n)
{
    dlc_expr product = dlc_expr_i64(pool, 1);
    for (uint32_t d = 0; d < n; d++)
        product = dlc_mul(pool, product, dims[d]);
    return product;
}

int dlc_type_elems(const dlc_pool *pool, const dlc_type *type, int64_t *elems)
{
    int64_t size = 1; /* as if no dimension were empty: strides stay small, too */
    *elems = 1;
    for (uint8_t d = 0; d < type->rank; d++) {
        int64_t dim;
        if (!dlc_expr_is_int(pool, type->dims[d], &dim) || dim < 0)
            return 0;
        if (!dlc_mul_i64(size, dim ? dim : 1, &size) || size > DLC_MAX_ELEMS)
            return 0;
        *elems *= dim;
    }
    return 1;
}

int dlc_type_bytes(const dlc_pool *pool, const dlc_type *type, size_t *size_bytes)
{
    int64_t elems;
    return dlc_type_elems(pool, type, &elems) &&
           dlc_mul_size((size_t)elems, dlc_dtype_bytes(type->dtype), size_bytes);
}

/* Names for channels last, by rank. */
static const char *const channels_last[] = {[3] = "nwc", [4] = "nhwc", [5] = "ndhwc"};
enum { NAMED_RANKS = 6 };

static const char *layout_name(const dlc_layout *layout, uint8_t rank)
{
    if (rank >= NAMED_RANKS || !channels_last[rank])
        return NULL;
    dlc_layout named = dlc_layout_channels_last(rank);
    return same_parts(layout, &named) ? channels_last[rank] : NULL;
}

void dlc_layout_print(const dlc_layout *layout, uint8_t rank, dlc_str *out)
{
    dlc_layout row_major = {0};
    if (dlc_layout_equal(layout, &row_major))
        return;
    const char *name = layout_name(layout, rank);
    if (name) {
        dlc_str_printf(out, "@%s", name);
        return;
    }
    dlc_str_add(out, "@{");
    for (uint8_t p = 0; p < layout->nparts; p++) {
        dlc_str_printf(out, "%s%u", p ? "," : "", layout->part[p].dim);
        if (layout->part[p].inner || layout->part[p].block > 1)
            dlc_str_printf(out, "%c%d", layout->part[p].inner ? '%' : '/',
                           (int)layout->part[p].block);
    }
    dlc_str_add(out, "}");
}

static int parse_part(const char **text, uint8_t rank, dlc_layout *layout)
{
    char *end;
    long dim = strtol(*text, &end, 10), block = 1;
    if (end == *text || dim < 0 || dim >= rank || layout->nparts == DLC_MAX_PARTS)
        return 0;
    uint8_t inner = *end == '%';
    if (*end == '/' || *end == '%') {
        const char *digits = end + 1;
        block = strtol(digits, &end, 10);
        if (end == digits || block < 1 || block > INT32_MAX)
            return 0;
    }
    uint8_t p = layout->nparts++;
    layout->part[p].dim = (uint8_t)dim;
    layout->part[p].inner = inner;
    layout->part[p].block = (int32_t)block;
    *text = end;
    return 1;
}

/* Each dimension is there once whole, or once as blocks and, further in, once as the rest of equal
 * size. */
static int is_complete(const dlc_layout *layout, uint8_t rank)
{
    int32_t open[DLC_MAX_RANK] = {0}, seen[DLC_MAX_RANK] = {0};
    for (uint8_t p = 0; p < layout->nparts; p++) {
        uint8_t dim = layout->part[p].dim;
        int32_t block = layout->part[p].block;
        if (layout->part[p].inner ? open[dim] != block || block == 1 : seen[dim]++)
            return 0;
        open[dim] = layout->part[p].inner ? 0 : block > 1 ? block : 0;
    }
    for (uint8_t d = 0; d < rank; d++)
        if (!seen[d] || open[d])
            return 0;
    return 1;
}

static int parse_parts(const char **text, uint8_t rank, dlc_layout *layout)
{
    do {
        ++*text; /* the bracket or the comma */
        if (!parse_part(text, rank, layout))
            return 0;
    } while (**text == ',');
    if (**text != '}' || !is_complete(layout, rank))
        return 0;
    ++*text;
    dlc_layout row_major = {0};
    if (dlc_layout_equal(layout, &row_major))
        *layout = row_major;
    return 1;
}

int dlc_layout_parse(const char **text, uint8_t rank, dlc_layout *layout)
{
    *layout = (dlc_layout){0};
    if (**text != '@')
        return 1;
    ++*text;
    if (**text == '{')
        return parse_parts(text, rank, layout);
    const char *name = rank < NAMED_RANKS ? channels_last[rank] : NULL;
    size_t length = name ? strlen(name) : 0;
    if (!length || strncmp(*text, name, length) != 0)
        return 0;
    *text += length;
    *layout = dlc_layout_channels_last(rank);
    return 1;
}
