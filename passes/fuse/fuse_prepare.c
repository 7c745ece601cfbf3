/*
 * The graph before fusion. Some things are made plain in it, so that the engine needs no special cases: each graph output is
 * a value of its own that some node makes; a division by what is constant along a row, and of a contraction's sum by one number, is a
 * multiplication by the reciprocal (the licence below); a convolution reads channels last; and a view or an unpacking has one reader, so
 * that it can belong to it.
 */
#include "ir/graph/form.h"
#include "passes/fuse/fuse_engine.h"

#include <math.h>
#include <string.h>

/* For `dlc explain`. */
static void note_rule(dlc_pass_ctx *ctx, const char *rule, const dlc_value *value)
{
    dlc_vec_push(ctx->graph->arena, &ctx->rules, ((dlc_rule_hit){rule, value->name}));
    ctx->changes++;
}

/* --- outputs --- */

/* A reshape to the shape the value has: a copy, when it must be made. */
static dlc_node *copy_of(dlc_graph *graph, dlc_value *value, const char *name)
{
    dlc_attr dims = dlc_attr_dims(DLC_ATTR_DIMS, value->type.dims, value->type.rank);
    dlc_node_spec spec = {.op = DLC_OP_RESHAPE, .name = name, .inputs = &value, .ninputs = 1, .attrs = &dims, .nattrs = 1};
    spec.origin = value->def ? value->def->origin : NULL;
    return dlc_graph_node(graph, &spec);
}

static dlc_status own_outputs(dlc_pass_ctx *ctx)
{
    dlc_graph *graph = ctx->graph;
    uint8_t *is_output = dlc_new_array(ctx->scratch, uint8_t, graph->nvalues); /* by value: an earlier one is it */
    for (uint32_t o = 0; o < graph->outputs.n; o++) {
        dlc_value *value = graph->outputs.data[o].value;
        if (value->def && !value->data && !is_output[value->id]) {
            is_output[value->id] = 1;
            continue;
        }
        dlc_node *copy = copy_of(graph, value, graph->outputs.data[o].name);
        if (!copy)
            return graph->diag->status;
        copy->outputs[0]->layout = value->layout;
        copy->outputs[0]->noutputs++;
        value->noutputs--;
        graph->outputs.data[o].value = copy->outputs[0];
        ctx->changes++;
    }
    return DLC_OK;
}

/* --- the licence: x / r = x * (1/r) --- */

/* Of views that add no number of their own. */
static dlc_value *before_views(dlc_pass_ctx *ctx, dlc_value *value)
{
    while (value->def) {
        dlc_form form = dlc_form_of(ctx->graph, value->def, ctx->scratch);
        if (!form.is_view || form.is_guarded)
            break;
        value = form.from.values.data[0];
    }
    return value;
}

static int is_positive_constant(const dlc_value *value)
{
    int64_t elems;
    if (!value->data || value->type.dtype != DLC_F32 || value->data->size_bytes != sizeof(float))
        return 0;
    elems = (int64_t)(value->data->size_bytes / sizeof(float));
    float at;
    memcpy(&at, value->data->bytes, sizeof at);
    return elems == 1 && at > 1e-30f;
}

static int is_op(const dlc_value *value, dlc_opcode op)
{
    return value->def && value->def->op == op;
}

/* sqrt(v + eps) or max(eps, norm): at least eps, far above the subnormals, unless v is negative or NaN in either form. */
static int is_bounded_root(const dlc_value *value)
{
    const dlc_value *root = value;
    if (is_op(value, DLC_OP_SQRT))
        root = value->def->inputs[0];
    else if (!is_op(value, DLC_OP_CLIP) && !is_op(value, DLC_OP_MAX))
        return 0;
    if (root != value && !is_op(root, DLC_OP_ADD))
        return 0;
    for (uint32_t i = 0; i < root->def->ninputs; i++)
        if (root->def->inputs[i] && (i > 0 || root->def->op != DLC_OP_CLIP) && is_positive_constant(root->def->inputs[i]))
            return i < 2;
    return 0;
}

/* sum(exp(x - max(x))): at least 1. */
static int is_softmax_sum(dlc_pass_ctx *ctx, dlc_value *value)
{
    dlc_value *exp = is_op(value, DLC_OP_REDUCE_SUM) ? before_views(ctx, value->def->inputs[0]) : value;
    if (!is_op(exp, DLC_OP_EXP))
        return 0;
    dlc_value *shifted = before_views(ctx, exp->def->inputs[0]);
    return is_op(shifted, DLC_OP_SUB) && is_op(before_views(ctx, shifted->def->inputs[1]), DLC_OP_REDUCE_MAX);
}

/* The divisor has one element where the quotient's last dimension has many. */
static int is_row_constant(const dlc_graph *graph, const dlc_value *divisor, const dlc_value *quotient)
{
    int64_t extent;
    if (quotient->type.rank == 0)
        return 0;
    dlc_expr last = quotient->type.dims[quotient->type.rank - 1];
    if (dlc_expr_is_int(graph->pool, last, &extent) && extent <= 1)
        return 0;
    return divisor->type.rank == 0 || (dlc_expr_is_int(graph->pool, divisor->type.dims[divisor->type.rank - 1], &extent) &&
                                       extent == 1);
}

/* A last bit may become a whole step there: the quotient, through maps and views, is rounded, compared or made an integer. */
static int feeds_a_step(dlc_pass_ctx *ctx, const dlc_value *quotient)
{
    enum { MOST = 64 };
    dlc_vec(const dlc_value *) todo = {0};
    dlc_vec_push(ctx->scratch, &todo, quotient);
    for (uint32_t i = 0; i < todo.n; i++) {
        for (const dlc_use *use = todo.data[i]->uses; use; use = use->next) {
            dlc_form form = dlc_form_of(ctx->graph, use->node, ctx->scratch);
            if (form.has_steps || todo.n > MOST)
                return 1;
            for (uint32_t o = 0; form.is_map && o < use->node->noutputs; o++)
                dlc_vec_push(ctx->scratch, &todo, use->node->outputs[o]);
        }
    }
    return 0;
}

/* What a contraction gave, with a bias or another sum: rounded more often than the quotient is. */
static int is_contracted(dlc_pass_ctx *ctx, dlc_value *value)
{
    value = before_views(ctx, value);
    for (uint32_t i = 0; is_op(value, DLC_OP_ADD) && i < 2; i++) {
        const dlc_value *term = before_views(ctx, value->def->inputs[i]);
        if (is_op(term, DLC_OP_CONV) || is_op(term, DLC_OP_MATMUL))
            return 1;
    }
    return is_op(value, DLC_OP_CONV) || is_op(value, DLC_OP_MATMUL);
}

/* 1 / c as a constant; NULL: one of both is no normal number, or there are several. */
static dlc_value *reciprocal_of_constant(dlc_pass_ctx *ctx, const dlc_value *divisor, const char *name)
{
    float value, inverse, *bytes;
    if (divisor->data->size_bytes != sizeof value)
        return NULL;
    memcpy(&value, divisor->data->bytes, sizeof value);
    inverse = 1 / value;
    if (!isnormal(value) || !isnormal(inverse))
        return NULL;
    bytes = dlc_arena_copy(ctx->graph->arena, &inverse, sizeof inverse);
    dlc_value *constant = dlc_graph_constant(ctx->graph, name, &divisor->type, bytes, sizeof inverse);
    if (constant)
        constant->layout = divisor->layout;
    return constant;
}

static dlc_value *reciprocal_of(dlc_pass_ctx *ctx, dlc_node *division, const char *name)
{
    if (division->inputs[1]->data)
        return reciprocal_of_constant(ctx, division->inputs[1], name);
    dlc_node_spec inverse = {.op = DLC_OP_RECIPROCAL, .origin = division->origin, .inputs = &division->inputs[1], .ninputs = 1};
    inverse.before = division;
    inverse.name = name;
    dlc_node *reciprocal = dlc_graph_node(ctx->graph, &inverse);
    if (!reciprocal)
        return NULL;
    reciprocal->outputs[0]->layout = division->inputs[1]->layout;
    return reciprocal->outputs[0];
}

static int is_licensed(dlc_pass_ctx *ctx, dlc_node *node)
{
    if (node->op != DLC_OP_DIV || node->outputs[0]->type.dtype != DLC_F32)
        return 0;
    if (node->inputs[1]->data)
        return is_contracted(ctx, node->inputs[0]);
    dlc_value *divisor = before_views(ctx, node->inputs[1]);
    return is_row_constant(ctx->graph, node->inputs[1], node->outputs[0]) && (is_bounded_root(divisor) || is_softmax_sum(ctx, divisor));
}

static dlc_status licence_division(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_graph *graph = ctx->graph;
    dlc_value *quotient = node->outputs[0];
    if (!is_licensed(ctx, node) || feeds_a_step(ctx, quotient))
        return DLC_OK;
    int is_by_constant = node->inputs[1]->data != NULL;
    dlc_value *inverse = reciprocal_of(ctx, node, dlc_arena_printf(graph->arena, "%s.reciprocal", quotient->name));
    if (!inverse)
        return graph->diag->status;
    dlc_value *factors[2] = {node->inputs[0], inverse};
    dlc_node_spec product = {.op = DLC_OP_MUL, .origin = node->origin, .inputs = factors, .ninputs = 2, .before = node};
    product.name = dlc_arena_printf(graph->arena, "%s.product", quotient->name);
    dlc_node *mul = dlc_graph_node(graph, &product);
    if (!mul)
        return graph->diag->status;
    mul->outputs[0]->layout = quotient->layout;
    note_rule(ctx, is_by_constant ? "reciprocal_of_constant" : "reciprocal_of_row_constant", quotient);
    dlc_value_replace(graph, quotient, mul->outputs[0]);
    dlc_graph_erase(graph, node);
    return DLC_OK;
}

static dlc_status license(dlc_pass_ctx *ctx)
{
    for (dlc_node *node = ctx->graph->first, *next; node; node = next) {
        next = node->next;
        DLC_TRY(licence_division(ctx, node));
    }
    return DLC_OK;
}

/* --- convolutions read channels last --- */

enum {
    FEW_CHANNELS = 8,
    LEAST_POINTS = 9,   /* of a window, for which a copy by planes pays */
    LEAST_BORDERED = 16 /* of one that meets a channel alone */
};

static int is_channels_last(const dlc_value *value)
{
    dlc_layout wanted = dlc_layout_channels_last(value->type.rank);
    return dlc_layout_equal(value->layout, &wanted);
}

static int has_padding(const dlc_graph *graph, const dlc_node *conv)
{
    uint32_t n = 0;
    const dlc_attr *attr = dlc_node_attr(conv, DLC_ATTR_PADS);
    const dlc_expr *pads = attr ? dlc_node_dims(conv, DLC_ATTR_PADS, &n) : NULL;
    for (uint32_t i = 0; i < n; i++)
        if (pads[i] != dlc_expr_i64(graph->pool, 0))
            return 1;
    return 0;
}

static int has_few_channels(const dlc_graph *graph, const dlc_value *x)
{
    int64_t channels;
    return dlc_expr_is_int(graph->pool, x->type.dims[1], &channels) && channels < FEW_CHANNELS;
}

/* With its border the image has at least twice its elements, as where dilations are large. Most of that is never read then: register tiles
 * leave out the points of a window at which they would meet only padding (ir/schedule/schedule.h). */
static int is_mostly_border(const dlc_graph *graph, const dlc_type *x, const dlc_expr *pads)
{
    double inside = 1, all = 1;
    uint32_t spatial = x->rank - 2u;
    if (!pads)
        return 0;
    for (uint32_t i = 0; i < spatial; i++) {
        int64_t extent, before, after;
        if (!dlc_expr_is_int(graph->pool, x->dims[2 + i], &extent) || !dlc_expr_is_int(graph->pool, pads[i], &before) ||
            !dlc_expr_is_int(graph->pool, pads[spatial + i], &after))
            return 0;
        inside *= (double)extent;
        all *= (double)(extent + before + after);
    }
    return all >= 2 * inside;
}

/* Taps along a dimension of the image. */
static int64_t taps_along(const dlc_graph *graph, const dlc_node *conv, uint32_t d)
{
    int64_t taps = 0;
    (void)dlc_expr_is_int(graph->pool, conv->inputs[1]->type.dims[2 + d], &taps);
    return taps;
}

/* Windows of known size, large enough; of a transposed convolution such that phases are convolutions (ir/kernel/phases.h). */
static int has_window(const dlc_graph *graph, const dlc_node *conv, int64_t least)
{
    int64_t points = 1;
    for (uint32_t d = 0; d + 2 < conv->inputs[0]->type.rank; d++) {
        int64_t taps = taps_along(graph, conv, d), stride = dlc_node_number(graph, conv, DLC_ATTR_STRIDES, d, 1);
        if (conv->op == DLC_OP_CONV_TRANSPOSE && (taps < stride || dlc_node_number(graph, conv, DLC_ATTR_DILATIONS, d, 1) != 1))
            return 0;
        points *= taps;
    }
    return points >= least;
}

/* Of a transposed convolution that goes by phases of one size (passes/lower/lower_phases.c). */
static int has_equal_phases(const dlc_graph *graph, const dlc_node *conv)
{
    for (uint32_t d = 0; d + 2 < conv->inputs[0]->type.rank; d++) {
        int64_t stride = dlc_node_number(graph, conv, DLC_ATTR_STRIDES, d, 1), result;
        if (taps_along(graph, conv, d) % stride || !dlc_expr_is_int(graph->pool, conv->outputs[0]->type.dims[2 + d], &result) || result % stride)
            return 0;
    }
    return 1;
}

/*
 * So few channels of a result leave most of a vector empty: neighbours in a row of the image fill it, whose planes are read for all of them
 * at once (passes/schedule/choose_dot.c). Of a transposed convolution neighbours of a phase.
 */
static int wants_planes(const dlc_pass_ctx *ctx, const dlc_node *conv)
{
    const dlc_graph *graph = ctx->graph;
    const dlc_type *x = &conv->inputs[0]->type, *y = &conv->outputs[0]->type;
    const dlc_attr *pads = dlc_node_attr(conv, DLC_ATTR_PADS);
    uint32_t last = y->rank - 3u, n;
    int64_t lanes = ctx->target->vector_bytes / dlc_dtype_bytes(y->dtype), extent = 0, channels;
    if (ctx->target->kind != DLC_TARGET_CPU || !conv->inputs[1]->data || (y->dtype != DLC_F32 && y->dtype != DLC_F64) ||
        !dlc_expr_is_int(graph->pool, y->dims[1], &channels) || channels * 2 > lanes || !has_window(graph, conv, LEAST_POINTS))
        return 0;
    for (uint32_t d = 0; d <= last; d++)
        if (!dlc_expr_is_int(graph->pool, x->dims[2 + d], &extent))
            return 0;
    if (conv->op == DLC_OP_CONV && (dlc_node_number(graph, conv, DLC_ATTR_STRIDES, last, 1) != 1 ||
                                    is_mostly_border(graph, x, pads ? dlc_node_dims(conv, DLC_ATTR_PADS, &n) : NULL)))
        return 0;
    if (conv->op == DLC_OP_CONV_TRANSPOSE && channels * 2 == lanes && !has_equal_phases(graph, conv))
        return 0; /* before its phases are parted it is a register tile by channels, into which the copy would go */
    return extent >= lanes;
}

/* The map that alone reads the value, which is no output of the model; NULL: there is none. */
static dlc_node *only_map(const dlc_pass_ctx *ctx, const dlc_value *value)
{
    const dlc_use *use = value->uses;
    return !value->noutputs && use && !use->next && dlc_form_of(ctx->graph, use->node, ctx->scratch).is_map ? use->node : NULL;
}

/* Maps alone lie between the value and an output of the model, which lies by planes. */
static int ends_in_planes(const dlc_pass_ctx *ctx, const dlc_value *value)
{
    dlc_node *map;
    while ((map = only_map(ctx, value)))
        value = map->outputs[0];
    return value->noutputs && !value->layout->nparts;
}

/* The same for what is between: of all of them nothing is read by channels. */
static void lay_by_planes(const dlc_pass_ctx *ctx, dlc_value *value)
{
    const dlc_layout planes = {0};
    dlc_node *map;
    for (; (map = only_map(ctx, value)); value = map->outputs[0])
        dlc_value_lay(ctx->graph, value, &planes);
}

/* A channel of its own for each result, from planes to planes: rows of a large window, whose border would be tested for every vector. */
static int wants_border(const dlc_pass_ctx *ctx, const dlc_node *conv)
{
    const dlc_graph *graph = ctx->graph;
    const dlc_value *x = conv->inputs[0];
    int64_t channels;
    return conv->op == DLC_OP_CONV && ctx->target->kind == DLC_TARGET_CPU && !x->layout->nparts && has_padding(graph, conv) &&
           dlc_expr_is_int(graph->pool, x->type.dims[1], &channels) && dlc_node_int(conv, DLC_ATTR_GROUP, 1) == channels &&
           has_window(graph, conv, LEAST_BORDERED) && !is_mostly_border(graph, &x->type, dlc_node_dims(conv, DLC_ATTR_PADS, &(uint32_t){0})) &&
           ends_in_planes(ctx, conv->outputs[0]);
}

/*
 * A window over rows of channels is read in runs; over planes it is read element by element, K times each: one copy into a padded
 * channels-last tensor is cheaper. A few channels are no run, and are read where they lie; but a border that is tested at each of them
 * costs more than a padded copy, which is of rows. Padding of a transposed convolution is none of its image.
 */
static int wants_copy(const dlc_pass_ctx *ctx, const dlc_node *conv)
{
    const dlc_graph *graph = ctx->graph;
    int64_t channels, extent, window = 1;
    if (conv->op != DLC_OP_CONV && conv->op != DLC_OP_CONV_TRANSPOSE)
        return 0;
    const dlc_value *x = conv->inputs[0];
    if (x->type.rank >= 3 && wants_border(ctx, conv))
        return 1;
    if (dlc_node_int(conv, DLC_ATTR_GROUP, 1) != 1 || x->type.rank < 3 ||
        !dlc_expr_is_int(graph->pool, x->type.dims[1], &channels))
        return 0;
    for (uint8_t d = 2; d < conv->inputs[1]->type.rank; d++)
        if (!dlc_expr_is_int(graph->pool, conv->inputs[1]->type.dims[d], &extent) || extent > 1)
            window = 2;
    if (window == 1)
        return 0;
    if (wants_planes(ctx, conv))
        return conv->op == DLC_OP_CONV_TRANSPOSE || has_padding(graph, conv) || x->layout->nparts > 0;
    if (has_few_channels(graph, x))
        return conv->op == DLC_OP_CONV && has_padding(graph, conv);
    return !is_channels_last(x);
}

/*
 * Register tiles leave out taps that have all of their rows in the border (choose_padding.c). An image of unknown size may be little larger
 * than its taps are apart; where it is large, copying its rows by windows takes no longer than reading them beside a copied border, if they meet
 * many columns. (Emerald Rapids, taps 12 apart, 256 channels to 256: .7 of the time at 33x33, .87 at 65x65, .9 at 129x129; to 64, 1.05.)
 */
static int may_be_mostly_border(const dlc_pass_ctx *ctx, const dlc_node *conv)
{
    enum { APART = 12, COLUMNS = 128 };
    const dlc_graph *graph = ctx->graph;
    const dlc_type *x = &conv->inputs[0]->type;
    int64_t extent, columns;
    int64_t border = dlc_node_number(graph, conv, DLC_ATTR_PADS, 0, 0) + dlc_node_number(graph, conv, DLC_ATTR_PADS, x->rank - 2u, 0);
    return ctx->target->kind == DLC_TARGET_CPU && x->rank > 3 && !dlc_expr_is_int(graph->pool, x->dims[2], &extent) && border >= APART &&
           taps_along(graph, conv, 0) > 1 && dlc_node_number(graph, conv, DLC_ATTR_DILATIONS, 0, 1) >= APART &&
           dlc_expr_is_int(graph->pool, conv->inputs[1]->type.dims[0], &columns) && columns >= COLUMNS;
}

/* As far as a transposed convolution's taps reach beyond the image along dimension d. The padding of its result grows by as much. */
static void pad_transposed(dlc_graph *graph, const dlc_node *conv, uint32_t d, dlc_expr *before, dlc_expr *after, dlc_expr *rest)
{
    uint32_t spatial = conv->inputs[0]->type.rank - 2u;
    int64_t image = dlc_expr_value(graph->pool, conv->inputs[0]->type.dims[2 + d]);
    int64_t result = dlc_expr_value(graph->pool, conv->outputs[0]->type.dims[2 + d]);
    int64_t stride = dlc_node_number(graph, conv, DLC_ATTR_STRIDES, d, 1), pad = dlc_node_number(graph, conv, DLC_ATTR_PADS, d, 0);
    int64_t reach = taps_along(graph, conv, d) - 1, first = reach > pad ? (reach - pad + stride - 1) / stride : 0;
    int64_t last = (result - 1 + pad) / stride - (image - 1);
    last = last > 0 ? last : 0;
    *before = dlc_expr_i64(graph->pool, first);
    *after = dlc_expr_i64(graph->pool, last);
    rest[d] = dlc_addi(graph->pool, rest[d], stride * first);
    rest[spatial + d] = dlc_addi(graph->pool, rest[spatial + d], stride * last);
}

/* The padding of the copy, and what that leaves to the convolution: one of them has none, but for planes of a transposed one. */
static dlc_attr padding_of(const dlc_pass_ctx *ctx, const dlc_node *conv, int is_planes, dlc_attr *left)
{
    dlc_graph *graph = ctx->graph;
    uint32_t rank = conv->inputs[0]->type.rank, spatial = rank - 2, n = 0;
    dlc_expr *pads = dlc_new_array(graph->arena, dlc_expr, 2 * rank);
    dlc_expr *rest = dlc_new_array(graph->arena, dlc_expr, 2 * spatial), zero = dlc_expr_i64(graph->pool, 0);
    const dlc_expr *own = dlc_node_attr(conv, DLC_ATTR_PADS) ? dlc_node_dims(conv, DLC_ATTR_PADS, &n) : NULL;
    int is_sparse = !has_few_channels(graph, conv->inputs[0]) &&
                    (is_mostly_border(graph, &conv->inputs[0]->type, own) || may_be_mostly_border(ctx, conv));
    int is_left = conv->op == DLC_OP_CONV_TRANSPOSE || (is_sparse && !is_planes);
    for (uint32_t i = 0; i < 2 * rank; i++)
        pads[i] = zero;
    for (uint32_t i = 0; i < 2 * spatial; i++) {
        rest[i] = own && is_left ? own[i] : zero;
        if (own && !is_left)
            pads[i < spatial ? 2 + i : rank + 2 + i - spatial] = own[i];
    }
    for (uint32_t d = 0; d < spatial && is_planes && is_left; d++)
        pad_transposed(graph, conv, d, &pads[2 + d], &pads[rank + 2 + d], rest);
    *left = dlc_attr_dims(DLC_ATTR_PADS, rest, 2 * spatial);
    return dlc_attr_dims(DLC_ATTR_PADS, pads, 2 * rank);
}

static void set_attr(dlc_graph *graph, dlc_node *node, dlc_attr attr)
{
    for (uint32_t a = 0; a < node->nattrs; a++)
        if (node->attrs[a].id == attr.id) {
            node->attrs[a] = attr;
            return;
        }
    dlc_attr *attrs = dlc_new_array(graph->arena, dlc_attr, node->nattrs + 1u);
    for (uint32_t a = 0; a < node->nattrs; a++)
        attrs[a] = node->attrs[a];
    attrs[node->nattrs++] = attr;
    node->attrs = attrs;
}

static dlc_status copy_for_conv(dlc_pass_ctx *ctx, dlc_node *conv)
{
    dlc_graph *graph = ctx->graph;
    int is_planes = wants_border(ctx, conv) || wants_planes(ctx, conv);
    dlc_attr left, attrs[] = {padding_of(ctx, conv, is_planes, &left), dlc_attr_text(DLC_ATTR_MODE, "constant")};
    dlc_node_spec spec = {.op = DLC_OP_PAD, .origin = conv->origin, .inputs = conv->inputs, .ninputs = 1, .attrs = attrs,
                          .nattrs = 2, .before = conv};
    spec.name = dlc_arena_printf(graph->arena, "%s.padded", conv->outputs[0]->name);
    dlc_node *pad = dlc_graph_node(graph, &spec);
    if (!pad)
        return graph->diag->status;
    const dlc_layout channels_last = dlc_layout_channels_last(conv->inputs[0]->type.rank), planes = {0};
    int is_few = has_few_channels(graph, conv->inputs[0]);
    dlc_value_lay(graph, pad->outputs[0], is_planes ? &planes : is_few ? conv->inputs[0]->layout : &channels_last);
    dlc_node_set_input(conv, 0, pad->outputs[0]);
    set_attr(graph, conv, left);
    if (is_planes && ends_in_planes(ctx, conv->outputs[0]))
        lay_by_planes(ctx, conv->outputs[0]);
    note_rule(ctx, is_planes ? "conv_reads_planes" : is_few ? "conv_reads_padded" : "conv_reads_channels_last", conv->outputs[0]);
    return DLC_OK;
}

static dlc_status copy_for_convs(dlc_pass_ctx *ctx)
{
    for (dlc_node *node = ctx->graph->first; node; node = node->next)
        if (wants_copy(ctx, node))
            DLC_TRY(copy_for_conv(ctx, node));
    return DLC_OK;
}

/* --- one view per reader --- */

static dlc_node *clone_view(dlc_graph *graph, dlc_node *view, dlc_node *before)
{
    dlc_node_spec spec = {.op = view->op, .origin = view->origin, .inputs = view->inputs, .ninputs = view->ninputs,
                          .attrs = view->attrs, .nattrs = view->nattrs, .before = before};
    spec.name = dlc_arena_printf(graph->arena, "%s.view", view->outputs[0]->name);
    dlc_node *clone = dlc_graph_node(graph, &spec);
    if (clone)
        clone->outputs[0]->layout = view->outputs[0]->layout;
    return clone;
}

/* The first reader keeps the view, unless the graph does: it is an output. */
static dlc_status split_view(dlc_pass_ctx *ctx, dlc_node *view)
{
    dlc_graph *graph = ctx->graph;
    dlc_vec(dlc_node *) readers = {0};
    dlc_value *value = view->outputs[0];
    for (const dlc_use *use = value->uses; use; use = use->next) {
        uint32_t i = 0;
        while (i < readers.n && readers.data[i] != use->node)
            i++;
        if (i == readers.n)
            dlc_vec_push(ctx->scratch, &readers, use->node);
    }
    for (uint32_t r = value->noutputs ? 0 : 1; r < readers.n; r++) {
        dlc_node *reader = readers.data[r], *clone = clone_view(graph, view, view->next);
        if (!clone)
            return graph->diag->status;
        for (uint32_t i = 0; i < reader->ninputs; i++)
            if (reader->inputs[i] == value)
                dlc_node_set_input(reader, i, clone->outputs[0]);
        ctx->changes++;
    }
    return DLC_OK;
}

/* The first reader keeps an unpacking, and so do all that would not take it as their own. */
static dlc_status split_unpacking(dlc_pass_ctx *ctx, dlc_node *node)
{
    dlc_graph *graph = ctx->graph;
    dlc_value *value = node->outputs[0];
    int is_kept = value->noutputs > 0;
    for (const dlc_use *use = value->uses, *next; use; use = next) {
        dlc_node *reader = use->node;
        next = use->next;
        if (!dlc_fuse_takes_unpacking(graph, value, reader, ctx->scratch) || (!is_kept && !next)) {
            is_kept = 1;
            continue;
        }
        dlc_node *clone = clone_view(graph, node, node->next);
        if (!clone)
            return graph->diag->status;
        for (uint32_t i = 0; i < reader->ninputs; i++)
            if (reader->inputs[i] == value) {
                while (next && next->node == reader)
                    next = next->next;
                dlc_node_set_input(reader, i, clone->outputs[0]);
            }
        ctx->changes++;
    }
    return DLC_OK;
}

static dlc_status split_unpackings(dlc_pass_ctx *ctx)
{
    for (dlc_node *node = ctx->graph->last, *previous; node; node = previous) {
        previous = node->prev; /* copies stand behind */
        if (node->noutputs == 1 && node->outputs[0]->uses && node->outputs[0]->uses->next &&
            dlc_fuse_is_unpacking(ctx->graph, node, ctx->scratch))
            DLC_TRY(split_unpacking(ctx, node));
    }
    return DLC_OK;
}

/* Views after views, by node id; 0: no view. Each copy of the last copies all before it, which a long chain cannot afford. */
static uint32_t *find_depths(dlc_pass_ctx *ctx)
{
    uint32_t *depth = dlc_new_array(ctx->scratch, uint32_t, ctx->graph->nnodes);
    uint8_t *is_view = dlc_new_array(ctx->scratch, uint8_t, ctx->graph->nnodes);
    dlc_form_memo memo = {0};
    dlc_mark mark = dlc_arena_mark(ctx->scratch);
    for (dlc_node *node = ctx->graph->first; node; node = node->next) {
        const dlc_node *like = dlc_form_like(&memo, node);
        is_view[node->id] = like ? is_view[like->id] : dlc_form_of(ctx->graph, node, ctx->scratch).is_view;
        const dlc_node *before = node->ninputs && node->inputs[0] ? node->inputs[0]->def : NULL;
        if (is_view[node->id])
            depth[node->id] = before ? depth[before->id] + 1 : 1;
        dlc_arena_release(ctx->scratch, mark);
    }
    return depth;
}

static dlc_status split_views(dlc_pass_ctx *ctx)
{
    enum { DEEPEST = 16 };
    const uint32_t *depth = find_depths(ctx);
    for (dlc_node *node = ctx->graph->last, *previous; node; node = previous) {
        previous = node->prev; /* copies stand behind */
        if (depth[node->id] && depth[node->id] <= DEEPEST)
            DLC_TRY(split_view(ctx, node));
    }
    return DLC_OK;
}

dlc_status dlc_fuse_prepare(dlc_pass_ctx *ctx)
{
    DLC_TRY(own_outputs(ctx));
    DLC_TRY(license(ctx));
    DLC_TRY(copy_for_convs(ctx));
    DLC_TRY(split_unpackings(ctx));
    return split_views(ctx);
}
