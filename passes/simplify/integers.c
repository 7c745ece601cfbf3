/*
 * Products of quantised values as products of integers. A quantised value is (codes - zero) * scale, codes of u8 or i8; so
 *
 *     sum (x - zx) sx * (w - zw) sw  =  f32(sum x (w - zw) - zx * sum (w - zw)) * (sx * sw)
 *
 * where the scales do not vary along the sum. What is summed is exact in i32 (a sum that could leave it is not rewritten), so the
 * result is rounded three times instead of once per term: docs/numerics.md. Sums over constant weights are folded. Where w - zw is no
 * byte, as that of u8 weights is whose zero point is not their middle, w is kept and zw * sum (x - zx) taken off, which a convolution by
 * ones adds up for windows. Outside of its input a convolution reads zx instead of 0. Sums that the model itself makes of integers are
 * taken alike, to the same bits.
 *
 * Where the target has no instruction for it, sums of floats stay. These rules run before constants are folded, while weights are
 * codes: they stay so in the executable.
 */
#include "ir/schedule/schedule.h"
#include "passes/simplify/const_fold.h"
#include "passes/simplify/simplify.h"

#include <string.h>

typedef struct {
    dlc_value *codes; /* u8 or i8 */
    dlc_value *zero;  /* i32, broadcast to the codes; NULL: 0 */
    dlc_value *scale; /* f32, broadcast to the codes; NULL: 1 */
} quantised;

/* --- reading --- */

static int is_cast(const dlc_value *value, dlc_dtype dtype)
{
    return dlc_is_op(value, DLC_OP_CAST) && value->type.dtype == dtype;
}

static int has_same_dims(const dlc_value *a, const dlc_value *b)
{
    return a->type.rank == b->type.rank && !memcmp(a->type.dims, b->type.dims, a->type.rank * sizeof *a->type.dims);
}

/* codes, or codes - zero in i32. */
static int read_codes(dlc_value *value, quantised *q)
{
    dlc_value *wide = value;
    q->zero = NULL;
    if (dlc_is_op(value, DLC_OP_SUB) && value->type.dtype == DLC_I32) {
        wide = value->def->inputs[0];
        q->zero = value->def->inputs[1];
        if (!is_cast(wide, DLC_I32))
            return 0;
    }
    q->codes = is_cast(wide, DLC_I32) ? wide->def->inputs[0] : wide;
    return (q->codes->type.dtype == DLC_U8 || q->codes->type.dtype == DLC_I8) && has_same_dims(q->codes, value);
}

/* f32(codes - zero) * scale in either order, or without a scale. */
static int read_scaled(dlc_value *value, quantised *q)
{
    q->scale = NULL;
    if (is_cast(value, DLC_F32))
        return read_codes(value->def->inputs[0], q);
    for (uint32_t i = 0; dlc_is_op(value, DLC_OP_MUL) && i < 2; i++) {
        dlc_value *number = value->def->inputs[i];
        q->scale = value->def->inputs[1 - i];
        if (is_cast(number, DLC_F32) && has_same_dims(number, value) && read_codes(number->def->inputs[0], q))
            return 1;
    }
    return 0;
}

/* A value that is broadcast to `rank` dimensions, transposed as they are. */
static dlc_value *transposed(dlc_graph *graph, dlc_node *at, dlc_value *value, uint32_t rank, const int64_t *perm)
{
    dlc_expr dims[DLC_MAX_RANK];
    if (!value || value->type.rank == 0)
        return value;
    for (uint32_t d = 0; d < rank; d++)
        dims[d] = d + value->type.rank < rank ? dlc_expr_i64(graph->pool, 1) : value->type.dims[d + value->type.rank - rank];
    if (value->type.rank < rank)
        value = dlc_build_reshape(graph, at, value, dims, rank);
    return value ? dlc_build_transpose(graph, at, value, perm) : NULL;
}

/* What a node reads, through transposes; `is_float`: with a scale. */
static int read_operand(dlc_graph *graph, dlc_node *at, dlc_value *value, int is_float, quantised *q)
{
    if (!dlc_is_op(value, DLC_OP_TRANSPOSE)) {
        q->scale = NULL;
        return is_float ? read_scaled(value, q) : read_codes(value, q);
    }
    int64_t perm[DLC_MAX_RANK];
    uint32_t rank = value->type.rank;
    if (!read_operand(graph, at, value->def->inputs[0], is_float, q))
        return 0;
    dlc_transpose_perm(graph, value->def, perm);
    q->codes = transposed(graph, at, q->codes, rank, perm);
    q->zero = transposed(graph, at, q->zero, rank, perm);
    q->scale = transposed(graph, at, q->scale, rank, perm);
    return q->codes != NULL;
}

/* --- along which dimensions zeros and scales vary --- */

/* The value, broadcast to `rank` dimensions, has one element along d. */
static int is_uniform(const dlc_graph *graph, const dlc_value *value, uint32_t rank, uint32_t d)
{
    if (!value || d + value->type.rank < rank)
        return 1;
    return value->type.dims[d + value->type.rank - rank] == dlc_expr_i64(graph->pool, 1);
}

static int is_uniform_but(const dlc_graph *graph, const dlc_value *value, uint32_t rank, uint32_t but)
{
    int result = 1;
    for (uint32_t d = 0; d < rank; d++)
        result &= d == but || is_uniform(graph, value, rank, d);
    return result;
}

/* --- weights --- */

static int is_made_of_codes(const dlc_value *value)
{
    return dlc_is_op(value, DLC_OP_TRANSPOSE) || dlc_is_op(value, DLC_OP_RESHAPE) || dlc_is_op(value, DLC_OP_CAST) ||
           dlc_is_op(value, DLC_OP_SUB);
}

/* What views, casts and differences make of constants, as one; NULL: the value is no such. */
static dlc_value *as_constant(dlc_pass_ctx *ctx, dlc_node *at, dlc_value *value)
{
    dlc_value *inputs[2];
    if (dlc_is_constant(value))
        return value;
    if (!is_made_of_codes(value))
        return NULL;
    const dlc_node *node = value->def;
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (!(inputs[i] = as_constant(ctx, at, node->inputs[i])))
            return NULL;
    value = dlc_build(ctx->graph, at, node->op, inputs, node->ninputs, node->attrs, node->nattrs);
    return value ? dlc_fold_weights(ctx, value->def) : NULL;
}

/* i32 that all fit one of the byte types, as that type; NULL: they do not. */
static dlc_value *narrowed(dlc_graph *graph, const dlc_value *wide)
{
    int64_t n, low = 0, high = 0;
    if (!dlc_type_elems(graph->pool, &wide->type, &n))
        return NULL;
    for (int64_t i = 0; i < n; i++) {
        int64_t number = dlc_scalar_read(DLC_I32, (const uint8_t *)wide->data->bytes + i * 4).i;
        low = number < low ? number : low;
        high = number > high ? number : high;
    }
    dlc_type type = wide->type;
    type.dtype = low >= INT8_MIN && high <= INT8_MAX ? DLC_I8 : DLC_U8;
    if (low < INT8_MIN || high > UINT8_MAX || (low < 0 && high > INT8_MAX))
        return NULL;
    uint8_t *bytes = dlc_arena_alloc(graph->arena, (size_t)n + 1, 64);
    for (int64_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)dlc_scalar_read(DLC_I32, (const uint8_t *)wide->data->bytes + i * 4).i;
    return dlc_graph_constant(graph, wide->name, &type, bytes, (size_t)n);
}

/* Constant codes of bytes without a zero point, or with a constant one that does not vary along the sum. */
static int read_weights(dlc_pass_ctx *ctx, dlc_node *at, quantised *w)
{
    dlc_value *zero = w->zero ? as_constant(ctx, at, w->zero) : NULL;
    w->codes = as_constant(ctx, at, w->codes);
    if (!w->codes || (w->zero && !zero))
        return 0;
    if (zero && !dlc_is_filled_with(zero, 0)) {
        dlc_value *wide = dlc_build_cast(ctx->graph, at, w->codes, DLC_I32);
        dlc_value *moved = wide ? dlc_build2(ctx->graph, at, DLC_OP_SUB, wide, zero) : NULL;
        moved = moved ? as_constant(ctx, at, moved) : NULL;
        dlc_value *bytes = moved ? narrowed(ctx->graph, moved) : NULL;
        uint32_t rank = w->codes->type.rank;
        w->zero = bytes ? NULL : zero;
        if (bytes)
            w->codes = bytes;
        int is_uniform_in_sum = at->op == DLC_OP_CONV ? is_uniform_but(ctx->graph, zero, rank, 0) : is_uniform(ctx->graph, zero, rank, rank - 2);
        return bytes || (moved && is_uniform_in_sum);
    }
    w->zero = NULL;
    return 1;
}

/* --- the sum --- */

typedef struct {
    dlc_pass_ctx *ctx;
    dlc_graph *graph;
    dlc_node *node; /* the contraction */
    quantised x, w;
    uint32_t kept;  /* the weights' dimension that the result has */
} product;

/* Terms of one sum, or 0 if they are not known. */
static int64_t count_terms(const product *p)
{
    const dlc_type *type = &p->w.codes->type;
    int64_t n = 1, extent;
    for (uint32_t d = 0; d < type->rank; d++) {
        if (d == p->kept || (p->node->op == DLC_OP_MATMUL && d + 2 < type->rank))
            continue;
        if (!dlc_expr_is_int(p->graph->pool, type->dims[d], &extent) || extent > INT32_MAX)
            return 0;
        n *= extent;
        if (n > INT32_MAX)
            return 0;
    }
    return n;
}

/* No sum of so many terms leaves i32. */
static int is_exact(const product *p)
{
    enum { MOST = UINT8_MAX, MOST_WEIGHT = UINT8_MAX };
    int64_t n = count_terms(p);
    return n > 0 && n <= INT32_MAX / (MOST * MOST_WEIGHT);
}

/* sum(k) w, of the shape that the result's channels have. */
static dlc_value *sums_of_weights(const product *p)
{
    dlc_graph *graph = p->graph;
    const dlc_type *type = &p->w.codes->type;
    int64_t axes[DLC_MAX_RANK];
    uint32_t n = 0, is_conv = p->node->op == DLC_OP_CONV;
    dlc_expr dims[DLC_MAX_RANK];
    for (uint32_t d = 0; d < type->rank; d++)
        if (is_conv ? d != p->kept : d == type->rank - 2u)
            axes[n++] = d;
    dlc_attr attrs[] = {dlc_attr_ints(graph, DLC_ATTR_AXES, axes, n), dlc_attr_int(DLC_ATTR_KEEPDIMS, 1),
                        dlc_attr_int(DLC_ATTR_DTYPE, DLC_I32)}; /* no wider copy: it might be more than folding may make */
    dlc_value *sums = dlc_build(graph, p->node, DLC_OP_REDUCE_SUM, &p->w.codes, 1, attrs, 3);
    if (!sums || !is_conv)
        return sums;
    for (uint32_t d = 0; d + 1 < type->rank; d++)
        dims[d] = d ? dlc_expr_i64(graph->pool, 1) : type->dims[0];
    return dlc_build_reshape(graph, p->node, sums, dims, type->rank - 1u);
}

static dlc_value *as_scalar(dlc_graph *graph, dlc_node *at, dlc_value *value)
{
    return value->type.rank ? dlc_build_reshape(graph, at, value, NULL, 0) : value;
}

static int is_padded(const product *p, const dlc_expr **pads)
{
    uint32_t n = 0;
    *pads = dlc_node_attr(p->node, DLC_ATTR_PADS) ? dlc_node_dims(p->node, DLC_ATTR_PADS, &n) : NULL;
    for (uint32_t i = 0; *pads && i < n; i++)
        if ((*pads)[i] != dlc_expr_i64(p->graph->pool, 0))
            return 1;
    return 0;
}

/* The target has an instruction of the family that takes so many terms at most at once: without one, floats are faster. */
static int multiplies_bytes(const dlc_target *target, dlc_dot_family family, int64_t terms)
{
    int result = !target;
    for (uint32_t row = DLC_DOT_NONE + 1; row < DLC_DOT_COUNT && target; row++)
        result |= dlc_dots[row].order == DLC_ORDER_EXACT && dlc_dots[row].family == family && dlc_dot_fact(target, (dlc_dot)row) &&
                  dlc_dots[row].granule <= terms;
    return result;
}

enum { GRANULE = 4, FEW_CHANNELS = 16 }; /* bytes are multiplied by granules of neighbours */

static int64_t missing(int64_t bytes)
{
    return (GRANULE - bytes % GRANULE) % GRANULE;
}

/* Those of a window over few of them; 0: it is no such. */
static int64_t few_channels(const product *p)
{
    const dlc_type *w = &p->w.codes->type;
    int64_t channels, window = 1, extent;
    if (p->node->op != DLC_OP_CONV || dlc_node_int(p->node, DLC_ATTR_GROUP, 1) != 1 ||
        !dlc_expr_is_int(p->graph->pool, w->dims[1], &channels) || channels > FEW_CHANNELS)
        return 0;
    for (uint32_t d = 2; d < w->rank; d++)
        window *= dlc_expr_is_int(p->graph->pool, w->dims[d], &extent) ? extent : 1;
    return window > 1 ? channels : 0;
}

static dlc_value *padded(const product *p, dlc_value *codes, dlc_value *zero, const dlc_expr *pads, int64_t channels)
{
    dlc_graph *graph = p->graph;
    uint32_t rank = codes->type.rank;
    dlc_expr *all = dlc_new_array(graph->arena, dlc_expr, 2 * rank);
    dlc_value *inputs[2] = {codes, zero ? as_scalar(graph, p->node, zero) : NULL};
    for (uint32_t d = 0; d < rank; d++) {
        all[d] = pads && d > 1 ? pads[d - 2] : dlc_expr_i64(graph->pool, 0);
        all[rank + d] = pads && d > 1 ? pads[rank - 2 + d - 2] : dlc_expr_i64(graph->pool, d == 1 ? channels : 0);
    }
    inputs[1] = inputs[1] ? dlc_build_cast(graph, p->node, inputs[1], (dlc_dtype)codes->type.dtype) : NULL;
    dlc_attr attrs[] = {dlc_attr_dims(DLC_ATTR_PADS, all, 2 * rank), dlc_attr_text(DLC_ATTR_MODE, "constant")};
    return dlc_build(graph, p->node, DLC_OP_PAD, inputs, inputs[1] ? 2 : 1, attrs, 2);
}

/* The node over codes, in i32. strides: other ones, or NULL. */
static dlc_value *sum_of_codes(const product *p, dlc_value *x, dlc_value *w, int is_pad_done, const int64_t *strides)
{
    dlc_attr attrs[DLC_ATTR_COUNT];
    dlc_value *inputs[2] = {x, w};
    uint32_t n = 0;
    for (uint32_t a = 0; a < p->node->nattrs; a++)
        if (!(is_pad_done && p->node->attrs[a].id == DLC_ATTR_PADS) && !(strides && p->node->attrs[a].id == DLC_ATTR_STRIDES))
            attrs[n++] = p->node->attrs[a];
    if (strides)
        attrs[n++] = dlc_attr_ints(p->graph, DLC_ATTR_STRIDES, strides, p->w.codes->type.rank - 2u);
    attrs[n++] = dlc_attr_int(DLC_ATTR_DTYPE, DLC_I32);
    return x && w ? dlc_build(p->graph, p->node, p->node->op, inputs, 2, attrs, n) : NULL;
}

/*
 * Pixels of few channels lie one after the other: a window's row of them is one of so many columns of an image of one channel, in steps of as
 * many columns as there are channels. 7 pixels of 3 channels are 6 granules then, and 7 with a channel of zeros.
 */
static int goes_along_rows(const product *p, int64_t channels)
{
    uint32_t last = p->w.codes->type.rank - 1u;
    int64_t taps, image;
    return channels > 1 && multiplies_bytes(p->ctx->target, DLC_FAMILY_LANES, INT64_MAX) &&
           dlc_expr_is_int(p->graph->pool, p->w.codes->type.dims[last], &taps) &&
           dlc_expr_is_int(p->graph->pool, p->x.codes->type.dims[last], &image) &&
           dlc_node_number(p->graph, p->node, DLC_ATTR_DILATIONS, last - 2, 1) == 1 &&
           taps * channels + missing(taps * channels) < taps * (channels + missing(channels));
}

/* N, C, ..., W as N, 1, ..., W * C. */
static dlc_value *as_rows(const product *p, dlc_value *codes, int64_t channels)
{
    uint32_t rank = codes->type.rank;
    int64_t perm[DLC_MAX_RANK] = {0}, columns = dlc_expr_value(p->graph->pool, codes->type.dims[rank - 1]) * channels;
    dlc_expr dims[DLC_MAX_RANK] = {codes->type.dims[0], dlc_expr_i64(p->graph->pool, 1)};
    for (uint32_t d = 1; d < rank; d++)
        perm[d] = d + 1 < rank ? d + 1 : 1;
    for (uint32_t d = 2; d < rank; d++)
        dims[d] = d + 1 < rank ? codes->type.dims[d] : dlc_expr_i64(p->graph->pool, columns);
    codes = dlc_build_transpose(p->graph, p->node, codes, perm);
    return codes ? dlc_build_reshape(p->graph, p->node, codes, dims, rank) : NULL;
}

static dlc_value *sum_along_rows(const product *p, dlc_value *zero, const dlc_expr *pads, int64_t channels)
{
    dlc_graph *graph = p->graph;
    dlc_value *x = as_rows(p, p->x.codes, channels), *w = as_rows(p, p->w.codes, channels);
    uint32_t n = p->w.codes->type.rank - 2u, last = n - 1;
    int64_t extra = missing(channels * dlc_expr_value(graph->pool, p->w.codes->type.dims[n + 1])), strides[DLC_MAX_RANK];
    dlc_expr around[2 * DLC_MAX_RANK], behind[2 * DLC_MAX_RANK];
    for (uint32_t d = 0; d < n; d++)
        strides[d] = dlc_node_number(graph, p->node, DLC_ATTR_STRIDES, d, 1) * (d == last ? channels : 1);
    for (uint32_t i = 0; i < 2 * n; i++) {
        behind[i] = dlc_expr_i64(graph->pool, i == n + last ? extra : 0);
        around[i] = pads ? pads[i] : dlc_expr_i64(graph->pool, 0);
        if (i % n == last)
            around[i] = dlc_add(graph->pool, dlc_mul(graph->pool, around[i], dlc_expr_i64(graph->pool, channels)), behind[i]);
    }
    w = w ? as_constant(p->ctx, p->node, w) : NULL;
    w = w && extra ? padded(p, w, NULL, behind, 0) : w;
    w = w && extra ? dlc_fold_weights(p->ctx, w->def) : w;
    return sum_of_codes(p, x ? padded(p, x, zero, around, 0) : NULL, w, 1, strides);
}

/* sum x w. Outside of x it reads the zero point, and of what is added for whole granules the weights are 0. */
static dlc_value *padded_sum(const product *p, dlc_value *zero)
{
    const dlc_expr *pads = NULL;
    int64_t few = few_channels(p), channels = missing(few);
    int has_pads = p->node->op == DLC_OP_CONV && is_padded(p, &pads);
    if (goes_along_rows(p, few))
        return sum_along_rows(p, zero, has_pads ? pads : NULL, few);
    if (!channels && !(zero && has_pads))
        return sum_of_codes(p, p->x.codes, p->w.codes, 0, NULL);
    dlc_value *w = channels ? padded(p, p->w.codes, NULL, NULL, channels) : p->w.codes;
    if (channels && w)
        w = dlc_fold_weights(p->ctx, w->def);
    return sum_of_codes(p, padded(p, p->x.codes, zero, has_pads ? pads : NULL, channels), w, 1, NULL);
}

/* sum - a * b; NULL: one of them is. */
static dlc_value *less_product(const product *p, dlc_value *sum, dlc_value *a, dlc_value *b)
{
    dlc_value *times = sum && a && b ? dlc_build2(p->graph, p->node, DLC_OP_MUL, a, b) : NULL;
    return times ? dlc_build2(p->graph, p->node, DLC_OP_SUB, sum, times) : NULL;
}

/* sum(k) (x - zx), of a matrix product; zero: zx, or NULL. */
static dlc_value *sums_of_rows(const product *p, dlc_value *zero)
{
    int64_t last = (int64_t)p->x.codes->type.rank - 1;
    dlc_attr attrs[] = {dlc_attr_ints(p->graph, DLC_ATTR_AXES, &last, 1), dlc_attr_int(DLC_ATTR_KEEPDIMS, 1)};
    dlc_value *wide = dlc_build_cast(p->graph, p->node, p->x.codes, DLC_I32);
    dlc_value *sums = wide ? dlc_build(p->graph, p->node, DLC_OP_REDUCE_SUM, &wide, 1, attrs, 2) : NULL;
    return zero ? less_product(p, sums, zero, dlc_graph_scalar(p->graph, DLC_I32, (double)count_terms(p))) : sums;
}

/* What weights have one of, or one for each channel, as the result of a convolution meets it. */
static dlc_value *by_channels(const product *p, dlc_value *value)
{
    dlc_expr dims[DLC_MAX_RANK];
    uint32_t rank = p->w.codes->type.rank;
    for (uint32_t d = 0; d + 1 < rank; d++)
        dims[d] = d || is_uniform(p->graph, value, rank, 0) ? dlc_expr_i64(p->graph->pool, 1) : p->w.codes->type.dims[0];
    return dlc_build_reshape(p->graph, p->node, value, dims, rank - 1);
}

/* Weights of 1 for one channel, which all others share, or with groups for each. */
static dlc_value *ones(const product *p)
{
    dlc_type type = p->w.codes->type;
    int64_t n = count_terms(p), channels;
    type.dtype = DLC_I8;
    if (dlc_node_int(p->node, DLC_ATTR_GROUP, 1) == 1)
        type.dims[0] = dlc_expr_i64(p->graph->pool, 1);
    if (!dlc_expr_is_int(p->graph->pool, type.dims[0], &channels))
        return NULL;
    uint8_t *bytes = dlc_arena_alloc(p->graph->arena, (size_t)(n * channels) + 1, 64);
    memset(bytes, 1, (size_t)(n * channels));
    return dlc_graph_constant(p->graph, p->w.codes->name, &type, bytes, (size_t)(n * channels));
}

/* sum(k) (x - zx), of a convolution. */
static dlc_value *sums_of_windows(const product *p, dlc_value *zero)
{
    product same = *p;
    same.w.codes = ones(p);
    dlc_value *sums = same.w.codes ? padded_sum(&same, zero) : NULL;
    if (!sums || !zero)
        return sums;
    return less_product(p, sums, as_scalar(p->graph, p->node, zero), dlc_graph_scalar(p->graph, DLC_I32, (double)count_terms(p)));
}

/* sum x w - zx * sum w - zw * sum (x - zx) */
static dlc_value *integer_sum(const product *p)
{
    int is_conv = p->node->op == DLC_OP_CONV;
    dlc_value *zero = p->x.zero && !dlc_is_filled_with(p->x.zero, 0) ? p->x.zero : NULL;
    dlc_value *sum = padded_sum(p, zero);
    if (sum && zero)
        sum = less_product(p, sum, sums_of_weights(p), is_conv ? as_scalar(p->graph, p->node, zero) : zero);
    if (!sum || !p->w.zero)
        return sum;
    if (is_conv)
        return less_product(p, sum, by_channels(p, p->w.zero), sums_of_windows(p, zero));
    return less_product(p, sum, p->w.zero, sums_of_rows(p, zero));
}

/* --- the whole --- */

/* Scales as the result's shape meets them. */
static dlc_value *result_scale(const product *p)
{
    dlc_value *x = p->x.scale, *w = p->w.scale;
    if (p->node->op == DLC_OP_CONV) {
        x = x ? as_scalar(p->graph, p->node, x) : NULL;
        w = w ? by_channels(p, w) : NULL;
    }
    return x && w ? dlc_build2(p->graph, p->node, DLC_OP_MUL, x, w) : x ? x : w;
}

/* Neither zeros nor scales vary along the sum, and weights' scales along their channels alone. */
static int is_separable(const product *p)
{
    const dlc_graph *graph = p->graph;
    uint32_t rank_x = p->x.codes->type.rank, rank_w = p->w.codes->type.rank;
    if (p->node->op == DLC_OP_CONV)
        return is_uniform_but(graph, p->x.zero, rank_x, rank_x) && is_uniform_but(graph, p->x.scale, rank_x, rank_x) &&
               is_uniform_but(graph, p->w.scale, rank_w, 0);
    return is_uniform(graph, p->x.zero, rank_x, rank_x - 1) && is_uniform(graph, p->x.scale, rank_x, rank_x - 1) &&
           is_uniform(graph, p->w.scale, rank_w, rank_w - 2);
}

/* A warp's matrices are copied four bytes at a time along one axis: a window's bytes would go one by one, and floats are faster, as they
 * are where there are fewer terms than a matrix has. */
static int suits_warps(const product *p)
{
    const dlc_type *w = &p->node->inputs[1]->type;
    int is_conv = p->node->op == DLC_OP_CONV;
    int64_t terms;
    for (uint32_t d = 2; is_conv && d < w->rank; d++)
        if (w->dims[d] != dlc_expr_i64(p->graph->pool, 1))
            return 0;
    if (w->rank < 2 || !dlc_expr_is_int(p->graph->pool, w->dims[is_conv ? 1 : w->rank - 2], &terms))
        terms = INT64_MAX;
    return multiplies_bytes(p->ctx->target, DLC_FAMILY_WARP, terms);
}

static int read_product(product *p)
{
    dlc_node *node = p->node;
    int is_float = node->outputs[0]->type.dtype == DLC_F32;
    int is_faster = is_float && (multiplies_bytes(p->ctx->target, DLC_FAMILY_LANES, INT64_MAX) || suits_warps(p));
    return (is_faster || node->outputs[0]->type.dtype == DLC_I32) &&
           !dlc_node_attr(node, DLC_ATTR_DTYPE) && read_operand(p->graph, node, node->inputs[0], is_float, &p->x) &&
           read_operand(p->graph, node, node->inputs[1], is_float, &p->w) && is_separable(p) && (!is_float || is_exact(p)) &&
           !dlc_is_constant(p->x.codes) && read_weights(p->ctx, node, &p->w) && (!p->w.zero || count_terms(p) > 0);
}

static dlc_value *integer_product(dlc_pass_ctx *ctx, dlc_node *node, uint32_t kept)
{
    product p = {.ctx = ctx, .graph = ctx->graph, .node = node, .kept = kept};
    if (!read_product(&p))
        return NULL;
    dlc_value *zero = p.x.zero ? as_constant(ctx, node, p.x.zero) : NULL;
    p.x.zero = zero ? zero : p.x.zero;
    dlc_value *sum = integer_sum(&p), *scale = sum ? result_scale(&p) : NULL;
    if (node->outputs[0]->type.dtype == DLC_I32 || !sum)
        return sum;
    sum = dlc_build_cast(ctx->graph, node, sum, DLC_F32);
    return sum && scale ? dlc_build2(ctx->graph, node, DLC_OP_MUL, sum, scale) : sum;
}

/* conv((x - zx) sx, (w - zw) sw) = f32(conv(x, w - zw) - zx sum(w - zw)) (sx sw) */
dlc_value *dlc_rule_integer_conv(dlc_pass_ctx *ctx, dlc_node *node)
{
    return integer_product(ctx, node, 0);
}

/* matmul((x - zx) sx, (w - zw) sw) = f32(matmul(x, w - zw) - zx sum(w - zw)) (sx sw) */
dlc_value *dlc_rule_integer_matmul(dlc_pass_ctx *ctx, dlc_node *node)
{
    return integer_product(ctx, node, node->inputs[1]->type.rank - 1u);
}

/* --- what quantised values keep --- */

/* A number that scales to and fro without a trace, times any code. */
static int is_plain_scale(const dlc_value *scale)
{
    dlc_scalar number;
    return scale && dlc_is_filled(scale, &number) && number.f > 1e-30 && number.f < 1e30;
}

static dlc_value *dequantised(dlc_graph *graph, dlc_node *at, dlc_value *codes, const quantised *q)
{
    dlc_value *number = q->zero ? dlc_build_cast(graph, at, codes, DLC_I32) : codes;
    if (number && q->zero)
        number = dlc_build2(graph, at, DLC_OP_SUB, number, q->zero);
    number = number ? dlc_build_cast(graph, at, number, DLC_F32) : NULL;
    return number && q->scale ? dlc_build2(graph, at, DLC_OP_MUL, number, q->scale) : number;
}

/* max_pool((x - z) * s) = (max_pool(x) - z) * s, s > 0: the greatest code is the greatest number */
dlc_value *dlc_rule_pool_of_codes(dlc_pass_ctx *ctx, dlc_node *node)
{
    quantised q;
    if (!read_scaled(node->inputs[0], &q) || !is_plain_scale(q.scale) ||
        !is_uniform_but(ctx->graph, q.zero, q.codes->type.rank, 1))
        return NULL;
    dlc_value *pooled = dlc_build_like(ctx->graph, node, &q.codes);
    return pooled ? dequantised(ctx->graph, node, pooled, &q) : NULL;
}

/* The zero point of a quantisation, as f32: NULL is 0. */
static int is_same_zero(const dlc_value *number, const dlc_value *zero)
{
    if (!number || !zero)
        return number == zero;
    return is_cast(number, DLC_F32) && is_cast(zero, DLC_I32) && number->def->inputs[0] == zero->def->inputs[0];
}

/* sat(round((x - z) * s / s) + z) = x: the product and the quotient are off by less than half a step */
dlc_value *dlc_rule_codes_again(dlc_pass_ctx *ctx, dlc_node *node)
{
    quantised q;
    dlc_value *rounded = node->inputs[0], *zero = NULL;
    (void)ctx;
    if (!dlc_node_int(node, DLC_ATTR_SATURATE, 0))
        return NULL;
    if (dlc_is_op(rounded, DLC_OP_ADD)) {
        zero = rounded->def->inputs[1];
        rounded = rounded->def->inputs[0];
    }
    dlc_value *quotient = dlc_is_op(rounded, DLC_OP_ROUND) ? rounded->def->inputs[0] : NULL;
    if (!dlc_is_op(quotient, DLC_OP_DIV) || !read_scaled(quotient->def->inputs[0], &q) || q.scale != quotient->def->inputs[1] ||
        !is_plain_scale(q.scale) || !is_same_zero(zero, q.zero) || !dlc_same_type(&q.codes->type, &node->outputs[0]->type))
        return NULL;
    return q.codes;
}
