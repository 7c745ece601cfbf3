/*
 * Precision: contractions of weights in a narrower type, where the user asks for it. What such a contraction reads is cut to bf16, once,
 * where it is made; products of bf16 are exact in f32, and sums stay f32. So each result is off by what its factors lost, 2^-8 of each at
 * most, and what is less than 2^-126 is zero, which instructions take it for anyway. (docs/numerics.md)
 *
 *     conv(x, w) = conv(bf16(x), bf16(w)) {dtype=f32}       matmul likewise; x or w is a constant
 *     matmul(x * a, y) = matmul(bf16(x), bf16(y)) {dtype=f32} * a       of many rows (attention); a is a number
 *
 * What is cut and read by others too is bf16 to them as well, and of two such contractions that are added (a block's branches) both results
 * are, for one of them goes through memory: so it holds half the bytes. The cut of a pool's maximum goes in front of it, where it is the
 * same, and those of all parts of a value go in front of the views that take it apart. Inputs and outputs of the model keep f32. A
 * convolution of narrow groups stays as it is, but one of single channels that is large, which gains half its bytes, or has large windows; and so
 * does one of few channels, and a product of two activations or a convolution of wide groups where no instruction multiplies bf16 faster
 * than f32: what they would save is less than the cuts cost. Where there is one, an image of few channels has its pixels' channels side by
 * side, as a wider one of one channel, whose windows' rows are long enough:
 *
 *     conv(x[n,c,h,w], f[oc,c,kh,kw]) = conv(x'[n,1,h,w*c], f'[oc,1,kh,kw*c])       steps and padding of columns c times as large
 *
 * Where a row of f' is odd it has a zero behind, so an infinity or NaN right of a window reaches its result.
 */
#include "ir/schedule/schedule.h"
#include "passes/pass.h"
#include "passes/simplify/const_fold.h"
#include "passes/simplify/simplify.h"

#include <string.h>

enum {
    LEAST_TERMS = 16,     /* along the innermost dimension of a sum */
    LEAST_COLUMNS = 3,    /* of a window that is multiplied by pairs; */
    LEAST_IN_TILES = 5,   /* in tile registers, where rows of three are as well off in f32 */
    MOST_VIEWS = 4,       /* that are looked through */
    MOST_TAPS = 25,       /* of a depthwise window; */
    MOST_PAIRED_TAPS = 49, /* by pairs, */
    FEW_TAPS = 9,         /* which gain less of small images than their cuts cost */
    LEAST_BYTES = 1 << 20 /* of f32 that does not stay in the caches from one kernel to the next */
};

/* The dimension along which factors lie together. */
static dlc_expr innermost(const dlc_node *node, uint32_t input)
{
    const dlc_type *type = &node->inputs[input]->type;
    if (node->op == DLC_OP_CONV)
        return type->dims[1];
    return type->dims[input && type->rank > 1 ? type->rank - 2 : type->rank - 1];
}

static int is_product_of_two(const dlc_node *node)
{
    return node->op == DLC_OP_MATMUL && !dlc_is_constant(node->inputs[0]) && !dlc_is_constant(node->inputs[1]);
}

static int has_row(const dlc_target *target)
{
    return dlc_dot_pays(target, DLC_DOT_VDPBF16PS) || dlc_dot_pays(target, DLC_DOT_TDPBF16PS);
}

/* Of two activations: the product takes so much less that the cuts pay, if rows are many. */
static int has_many_rows(const dlc_pass_ctx *ctx, const dlc_node *node)
{
    const dlc_type *a = &node->inputs[0]->type, *b = &node->inputs[1]->type;
    int64_t rows, columns, terms;
    return has_row(ctx->target) && a->rank > 1 && b->rank > 1 &&
           dlc_expr_is_int(ctx->graph->pool, a->dims[a->rank - 2], &rows) && rows >= DLC_LEAST_COPIED_FOR &&
           dlc_expr_is_int(ctx->graph->pool, b->dims[b->rank - 1], &columns) && columns >= LEAST_TERMS &&
           dlc_expr_is_int(ctx->graph->pool, innermost(node, 0), &terms) && terms >= LEAST_TERMS;
}

/* A convolution of each channel by itself gains half its bytes, where these are many. Where an instruction multiplies pairs of its window's
 * rows, a large window gains more than cutting an image costs, however small that is; where none does, it has more to widen than memory takes. */
static int is_depthwise(const dlc_pass_ctx *ctx, const dlc_node *node)
{
    const dlc_type *image = &node->inputs[0]->type, *filter = &node->inputs[1]->type;
    const dlc_graph *graph = ctx->graph;
    int64_t elems, channels, weights, outputs, has_pairs = dlc_dot_pays(ctx->target, DLC_DOT_VDPBF16PS);
    return node->op == DLC_OP_CONV && node->inputs[0]->def && !dlc_is_constant(node->inputs[0]) && dlc_is_constant(node->inputs[1]) &&
           dlc_expr_is_int(graph->pool, filter->dims[0], &outputs) && dlc_expr_is_int(graph->pool, filter->dims[1], &channels) &&
           channels == 1 && dlc_type_elems(graph->pool, filter, &weights) && dlc_type_elems(graph->pool, image, &elems) &&
           weights <= (has_pairs ? MOST_PAIRED_TAPS : MOST_TAPS) * outputs &&
           (elems * dlc_dtype_bytes(DLC_F32) > LEAST_BYTES || (has_pairs && weights > FEW_TAPS * outputs));
}

/* Each group is a contraction of its own, of which one tile takes no more columns than the group has: by pairs, not by tile registers, which
 * would hold few rows of it. */
static int has_wide_groups(const dlc_pass_ctx *ctx, const dlc_node *node)
{
    const dlc_type *filter = &node->inputs[1]->type;
    int64_t outputs, channels;
    return node->op == DLC_OP_CONV && dlc_dot_pays(ctx->target, DLC_DOT_VDPBF16PS) && dlc_is_constant(node->inputs[1]) &&
           !dlc_is_constant(node->inputs[0]) &&
           dlc_expr_is_int(ctx->graph->pool, filter->dims[0], &outputs) && dlc_expr_is_int(ctx->graph->pool, filter->dims[1], &channels) &&
           channels >= LEAST_TERMS && outputs / dlc_node_int(node, DLC_ATTR_GROUP, 1) >= LEAST_TERMS;
}

static int is_suitable(const dlc_pass_ctx *ctx, const dlc_node *node)
{
    const dlc_graph *graph = ctx->graph;
    int64_t terms;
    if ((node->op != DLC_OP_CONV && node->op != DLC_OP_MATMUL) || dlc_node_attr(node, DLC_ATTR_DTYPE))
        return 0;
    for (uint32_t i = 0; i < 2; i++)
        if (node->inputs[i]->type.dtype != DLC_F32)
            return 0;
    if (dlc_node_int(node, DLC_ATTR_GROUP, 1) != 1)
        return is_depthwise(ctx, node) || has_wide_groups(ctx, node);
    if (is_product_of_two(node))
        return has_many_rows(ctx, node);
    return dlc_is_constant(node->inputs[0]) != dlc_is_constant(node->inputs[1]) &&
           (!dlc_expr_is_int(graph->pool, innermost(node, 1), &terms) || terms >= LEAST_TERMS);
}

/* What was made of the value; of weights as a constant. NULL: it was not made. */
static dlc_value *made_of(dlc_pass_ctx *ctx, const dlc_value *value, dlc_value *made)
{
    return made && dlc_is_constant(value) ? dlc_fold_weights(ctx, made->def) : made;
}

static dlc_value *cut(dlc_pass_ctx *ctx, dlc_node *at, dlc_value *value)
{
    dlc_attr attrs[] = {dlc_attr_int(DLC_ATTR_DTYPE, DLC_BF16), dlc_attr_text(DLC_ATTR_MODE, "ftz")};
    return made_of(ctx, value, dlc_build(ctx->graph, at, DLC_OP_CAST, &value, 1, attrs, 2));
}

static dlc_status replace(dlc_pass_ctx *ctx, dlc_node *node, dlc_value *result)
{
    if (!result)
        return ctx->graph->diag->status;
    dlc_value *old = node->outputs[0];
    const char *name = old->name;
    old->name = result->name;
    result->name = name;
    dlc_value_replace(ctx->graph, old, result);
    dlc_graph_erase(ctx->graph, node);
    ctx->changes++;
    return DLC_OK;
}

static dlc_status narrow(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_value *inputs[2];
    dlc_attr attrs[DLC_ATTR_COUNT];
    for (uint32_t i = 0; i < 2; i++)
        if (!(inputs[i] = cut(ctx, node, node->inputs[i])))
            return ctx->graph->diag->status;
    for (uint32_t a = 0; a < node->nattrs; a++)
        attrs[a] = node->attrs[a];
    attrs[node->nattrs] = dlc_attr_int(DLC_ATTR_DTYPE, DLC_F32);
    return replace(ctx, node, dlc_build(ctx->graph, node, node->op, inputs, 2, attrs, node->nattrs + 1u));
}

/* --- products of two activations --- */

static int is_view(const dlc_node *node)
{
    return node && (node->op == DLC_OP_RESHAPE || node->op == DLC_OP_TRANSPOSE || node->op == DLC_OP_SLICE);
}

/* By one node, and nobody else. */
static int is_read_once(const dlc_value *value)
{
    return dlc_value_nuses(value) == 1 && !value->noutputs && !value->nbinds;
}

static int is_number(const dlc_pass_ctx *ctx, const dlc_value *value)
{
    int64_t elems;
    return dlc_is_constant(value) && dlc_type_elems(ctx->graph->pool, &value->type, &elems) && elems == 1 && value->type.rank < 2;
}

/* The view of another value, of the same type as what it views. */
static dlc_value *same_view(dlc_pass_ctx *ctx, const dlc_node *view, dlc_node *at, dlc_value *of)
{
    return dlc_build(ctx->graph, at, view->op, &of, 1, view->attrs, view->nattrs);
}

/*
 * The factor as it was before a number multiplied it, which views of it alone read, and the number; *number 0: nothing did. So what is cut is
 * what a kernel before has stored, and the number goes behind the product, where others are.
 */
static dlc_value *unscaled(dlc_pass_ctx *ctx, dlc_node *at, dlc_value *factor, dlc_value **number)
{
    dlc_node *views[MOST_VIEWS], *mul = factor->def;
    uint32_t n = 0;
    dlc_value *value = factor;
    *number = NULL;
    for (; is_view(mul) && n < MOST_VIEWS && is_read_once(value); mul = value->def) {
        views[n++] = mul;
        value = mul->inputs[0];
    }
    if (!mul || mul->op != DLC_OP_MUL || !is_read_once(value))
        return factor;
    int second = is_number(ctx, mul->inputs[1]);
    if (!second && !is_number(ctx, mul->inputs[0]))
        return factor;
    *number = mul->inputs[second];
    for (value = mul->inputs[!second]; value && n;)
        value = same_view(ctx, views[--n], at, value);
    return value;
}

/* The views behind `end` that nobody reads any more; NULL: up to the product with a number that they view, and that. */
static void erase_unread(dlc_pass_ctx *ctx, dlc_value *value, const dlc_value *end)
{
    while (value != end && !value->uses) {
        dlc_node *node = value->def;
        value = is_view(node) ? node->inputs[0] : NULL;
        dlc_graph_erase(ctx->graph, node);
    }
}

static dlc_status narrow_product(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_value *inputs[2], *numbers[2], *before[] = {node->inputs[0], node->inputs[1]};
    dlc_attr dtype = dlc_attr_int(DLC_ATTR_DTYPE, DLC_F32);
    for (uint32_t i = 0; i < 2; i++) {
        inputs[i] = unscaled(ctx, node, node->inputs[i], &numbers[i]);
        if (!inputs[i] || !(inputs[i] = cut(ctx, node, inputs[i])))
            return ctx->graph->diag->status;
    }
    dlc_value *number = numbers[0] ? numbers[0] : numbers[1];
    if (numbers[0] && numbers[1] && (number = dlc_build(ctx->graph, node, DLC_OP_MUL, numbers, 2, NULL, 0)))
        number = dlc_fold_weights(ctx, number->def);
    dlc_value *product = dlc_build(ctx->graph, node, DLC_OP_MATMUL, inputs, 2, &dtype, 1);
    if (product && (numbers[0] || numbers[1]))
        product = number ? dlc_build(ctx->graph, node, DLC_OP_MUL, (dlc_value *[]){product, number}, 2, NULL, 0) : NULL;
    DLC_TRY(replace(ctx, node, product));
    for (uint32_t i = 0; i < 2; i++)
        if (numbers[i])
            erase_unread(ctx, before[i], NULL);
    return DLC_OK;
}

/* --- images of few channels --- */

enum { IMAGE_RANK = 4, WINDOW_RANK = 2 };

static int has_numbers(const dlc_graph *graph, const dlc_node *node)
{
    for (uint32_t i = 0; i < 2 * WINDOW_RANK; i++)
        if (dlc_node_number(graph, node, DLC_ATTR_PADS, i, 0) < 0 || dlc_node_number(graph, node, DLC_ATTR_STRIDES, i / 2, 1) < 1)
            return 0;
    return dlc_node_number(graph, node, DLC_ATTR_DILATIONS, 0, 1) >= 1 && dlc_node_number(graph, node, DLC_ATTR_DILATIONS, 1, 1) == 1;
}

/* Channels, and columns of the window; 0: it is no such convolution, or as well off as it is. */
static int64_t few_channels(const dlc_pass_ctx *ctx, const dlc_node *node, int64_t *columns)
{
    if (node->op != DLC_OP_CONV)
        return 0;
    const dlc_type *x = &node->inputs[0]->type, *w = &node->inputs[1]->type;
    int64_t channels;
    if (dlc_node_attr(node, DLC_ATTR_DTYPE) || dlc_node_int(node, DLC_ATTR_GROUP, 1) != 1 ||
        x->dtype != DLC_F32 || w->dtype != DLC_F32 || x->rank != IMAGE_RANK || dlc_is_constant(node->inputs[0]) ||
        !dlc_is_constant(node->inputs[1]) || !has_numbers(ctx->graph, node) ||
        !dlc_expr_is_int(ctx->graph->pool, w->dims[1], &channels) || !dlc_expr_is_int(ctx->graph->pool, w->dims[3], columns))
        return 0;
    int64_t least = dlc_dot_pays(ctx->target, DLC_DOT_VDPBF16PS) ? LEAST_COLUMNS : LEAST_IN_TILES;
    int is_worth = channels > 1 && channels < LEAST_TERMS && *columns >= least && has_row(ctx->target);
    return is_worth ? channels : 0;
}

/* Dimensions 2 and 3 with the channels behind: [n, 1, h, w * c]. */
static dlc_value *in_rows(dlc_pass_ctx *ctx, dlc_node *at, dlc_value *value)
{
    static const int64_t channels_last[] = {0, 2, 3, 1};
    const dlc_type *type = &value->type;
    dlc_pool *pool = ctx->graph->pool;
    dlc_expr dims[] = {type->dims[0], dlc_expr_i64(pool, 1), type->dims[2], dlc_mul(pool, type->dims[3], type->dims[1])};
    dlc_value *last = made_of(ctx, value, dlc_build_transpose(ctx->graph, at, value, channels_last));
    return last ? made_of(ctx, last, dlc_build_reshape(ctx->graph, at, last, dims, IMAGE_RANK)) : NULL;
}

/* A zero behind each row of the window. */
static dlc_value *with_zero(dlc_pass_ctx *ctx, dlc_node *at, dlc_value *filter)
{
    const int64_t pads[2 * IMAGE_RANK] = {[2 * IMAGE_RANK - 1] = 1};
    dlc_attr attrs[] = {dlc_attr_ints(ctx->graph, DLC_ATTR_PADS, pads, 2 * IMAGE_RANK), dlc_attr_text(DLC_ATTR_MODE, "constant")};
    return made_of(ctx, filter, dlc_build(ctx->graph, at, DLC_OP_PAD, &filter, 1, attrs, 2));
}

static dlc_status lay_in_rows(dlc_pass_ctx *ctx, dlc_node *node, int64_t channels, int64_t columns)
{
    dlc_graph *graph = ctx->graph;
    int64_t odd = channels * columns % 2, pads[2 * WINDOW_RANK], strides[WINDOW_RANK];
    int64_t dilations[] = {dlc_node_number(graph, node, DLC_ATTR_DILATIONS, 0, 1), 1};
    for (uint32_t i = 0; i < 2 * WINDOW_RANK; i++)
        pads[i] = dlc_node_number(graph, node, DLC_ATTR_PADS, i, 0) * (i % 2 ? channels : 1);
    pads[3] += odd ? channels : 0; /* for the window's zero; a whole pixel, so that rows are of pixels: as many windows fit as with one column */
    for (uint32_t i = 0; i < WINDOW_RANK; i++)
        strides[i] = dlc_node_number(graph, node, DLC_ATTR_STRIDES, i, 1) * (i % 2 ? channels : 1);
    dlc_value *inputs[] = {in_rows(ctx, node, node->inputs[0]), in_rows(ctx, node, node->inputs[1])};
    if (odd && inputs[1])
        inputs[1] = with_zero(ctx, node, inputs[1]);
    for (uint32_t i = 0; i < 2; i++)
        if (!inputs[i] || !(inputs[i] = cut(ctx, node, inputs[i])))
            return graph->diag->status;
    dlc_attr attrs[] = {dlc_attr_ints(graph, DLC_ATTR_PADS, pads, 2 * WINDOW_RANK),
                        dlc_attr_ints(graph, DLC_ATTR_STRIDES, strides, WINDOW_RANK),
                        dlc_attr_ints(graph, DLC_ATTR_DILATIONS, dilations, WINDOW_RANK), dlc_attr_int(DLC_ATTR_DTYPE, DLC_F32)};
    return replace(ctx, node, dlc_build(graph, node, DLC_OP_CONV, inputs, 2, attrs, sizeof attrs / sizeof *attrs));
}

/* --- what lies in memory --- */

static int is_cut(const dlc_node *node)
{
    return node->op == DLC_OP_CAST && node->outputs[0]->type.dtype == DLC_BF16;
}

/* Makes the value's readers read what is left of it as bf16; those that cut it read that. */
static dlc_status store_narrow(dlc_pass_ctx *ctx, dlc_value *value)
{
    dlc_value *narrow = cut(ctx, value->def->next, value);
    dlc_value *again = narrow ? dlc_build_cast(ctx->graph, narrow->def->next, narrow, DLC_F32) : NULL;
    if (!again)
        return ctx->graph->diag->status;
    for (dlc_use *use = value->uses, *next; use; use = next) {
        next = use->next;
        if (!is_cut(use->node))
            dlc_node_set_input(use->node, use->input, again);
    }
    ctx->changes++;
    return DLC_OK;
}

/* By a kernel, once a run: what iterations of a loop carry on would lose more with each. */
static int is_made_here(const dlc_value *value)
{
    const dlc_node *node = value->def;
    return node && node->next && !node->region && !dlc_op_is_opaque(node->op) && value->type.dtype == DLC_F32 && !value->noutputs &&
           !value->nbinds && !dlc_is_constant(value);
}

static uint32_t count_cuts(const dlc_value *value)
{
    uint32_t n = 0;
    for (const dlc_use *use = value->uses; use; use = use->next)
        n += (uint32_t)is_cut(use->node);
    return n;
}

/* Some of the value's readers cut it, and others do not. */
static int is_read_twice(const dlc_value *value)
{
    uint32_t n = count_cuts(value);
    return n && n < dlc_value_nuses(value);
}

/* What a contraction gave, with its bias. */
static int is_sum_of_cuts(const dlc_value *value)
{
    const dlc_node *node = value->def;
    if (node && node->op == DLC_OP_ADD && dlc_is_constant(node->inputs[0]) != dlc_is_constant(node->inputs[1]))
        node = node->inputs[dlc_is_constant(node->inputs[0])]->def;
    return node && (node->op == DLC_OP_CONV || node->op == DLC_OP_MATMUL) && node->inputs[0]->type.dtype == DLC_BF16 &&
           value->type.dtype == DLC_F32;
}

/* The larger of two is the larger of what is left of them: cuts of a maximum go in front of it. */
static dlc_status cut_before_maximum(dlc_pass_ctx *ctx, dlc_node *pool)
{
    dlc_value *of = pool->inputs[0], *maximum = pool->outputs[0];
    if ((pool->noutputs > 1 && pool->outputs[1]) || !maximum->uses || count_cuts(maximum) < dlc_value_nuses(maximum) || !is_made_here(of) ||
        dlc_value_nuses(of) > 1)
        return DLC_OK;
    dlc_value *narrow = cut(ctx, pool, of);
    dlc_value *result = narrow ? dlc_build(ctx->graph, pool, DLC_OP_MAX_POOL, &narrow, 1, pool->attrs, pool->nattrs) : NULL;
    for (dlc_use *use = maximum->uses, *next; use; use = next) {
        next = use->next;
        DLC_TRY(replace(ctx, use->node, result));
    }
    return DLC_OK;
}

/* The cut that the views from the node on lead to, each the only reader of the one before; NULL: none. */
static dlc_node *cut_behind(dlc_node *node)
{
    while (is_view(node) && is_read_once(node->outputs[0]))
        node = node->outputs[0]->uses->node;
    return is_cut(node) ? node : NULL;
}

/* All readers are views that are cut: what heads read of one product, for queries, keys and values. */
static int is_cut_in_parts(const dlc_value *value)
{
    uint32_t nviews = 0;
    for (const dlc_use *use = dlc_value_nuses(value) > 1 ? value->uses : NULL; use; use = use->next) {
        nviews += (uint32_t)is_view(use->node);
        if (!cut_behind(use->node))
            return 0;
    }
    return nviews > 1;
}

/* The value cut, in front of the views that it is of what a kernel computes. */
static dlc_value *cut_before_own_views(dlc_pass_ctx *ctx, dlc_value *value)
{
    dlc_node *views[MOST_VIEWS], *at = value->def->next;
    uint32_t n = 0;
    while (n < MOST_VIEWS && is_view(value->def) && is_made_here(value->def->inputs[0]) && is_read_once(value->def->inputs[0])) {
        views[n++] = value->def;
        value = value->def->inputs[0];
    }
    dlc_value *narrow = cut(ctx, value->def->next, value);
    while (narrow && n)
        narrow = same_view(ctx, views[--n], at, narrow);
    return narrow;
}

/* One cut in front of them all. */
static dlc_status cut_before_views(dlc_pass_ctx *ctx, dlc_value *value)
{
    dlc_value *narrow = cut_before_own_views(ctx, value);
    for (dlc_use *use = value->uses, *next; narrow && use; use = next) {
        dlc_node *node = use->node, *old = cut_behind(node);
        dlc_value *part = narrow;
        next = use->next;
        if (node == narrow->def)
            continue;
        dlc_value *last = old->inputs[0];
        for (; part && node != old; node = node->outputs[0]->uses->node)
            part = same_view(ctx, node, old, part);
        DLC_TRY(replace(ctx, old, part));
        erase_unread(ctx, last, value);
    }
    return ctx->graph->diag->status;
}

static dlc_status narrow_memory(dlc_pass_ctx *ctx)
{
    for (dlc_node *node = ctx->graph->first; node; node = node->next) {
        for (uint32_t o = 0; o < node->noutputs; o++)
            if (node->outputs[o] && is_made_here(node->outputs[o]) && is_cut_in_parts(node->outputs[o]))
                DLC_TRY(cut_before_views(ctx, node->outputs[o]));
            else if (node->outputs[o] && is_made_here(node->outputs[o]) && is_read_twice(node->outputs[o]))
                DLC_TRY(store_narrow(ctx, node->outputs[o]));
        if (node->op == DLC_OP_ADD && is_sum_of_cuts(node->inputs[0]) && is_sum_of_cuts(node->inputs[1]))
            for (uint32_t i = 0; i < 2; i++)
                if (is_made_here(node->inputs[i]))
                    DLC_TRY(store_narrow(ctx, node->inputs[i]));
        if (node->op == DLC_OP_MAX_POOL)
            DLC_TRY(cut_before_maximum(ctx, node));
    }
    return DLC_OK;
}

int dlc_is_bf16_asked(const dlc_pass_ctx *ctx)
{
    return ctx->precision && !strcmp(ctx->precision, "bf16");
}

/* Numbers of f16 have bits that bf16 has not, and what is asked for is about f32. */
static int reads_halves(const dlc_node *node)
{
    for (uint32_t i = 0; i < node->ninputs; i++) {
        const dlc_node *def = node->inputs[i] ? node->inputs[i]->def : NULL;
        if (def && def->op == DLC_OP_CAST && def->inputs[0]->type.dtype == DLC_F16)
            return 1;
    }
    return 0;
}

dlc_status dlc_pass_precision(dlc_pass_ctx *ctx)
{
    const char *wanted = ctx->precision ? ctx->precision : "f32";
    if (!strcmp(wanted, "f32"))
        return DLC_OK;
    if (!dlc_is_bf16_asked(ctx))
        return dlc_diag_fail(ctx->diag, DLC_USAGE, NULL, "precision '%s' is none of f32 and bf16", wanted);
    for (dlc_node *node = ctx->graph->first, *next; node; node = next) {
        next = node->next;
        int64_t columns, channels = few_channels(ctx, node, &columns);
        if (reads_halves(node))
            continue;
        if (channels)
            DLC_TRY(lay_in_rows(ctx, node, channels, columns));
        else if (is_suitable(ctx, node))
            DLC_TRY(is_product_of_two(node) ? narrow_product(ctx, node) : narrow(ctx, node));
    }
    return narrow_memory(ctx);
}
