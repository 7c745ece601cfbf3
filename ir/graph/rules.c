/*
 * What each operator does: the rule for its result's type and its meaning, by row of ops.def; and the
 * checks that follow from a row alone: how many inputs and outputs, which attributes, which dtypes.
 * What is left to a rule of infer_*.c is what only that operator knows.
 */
#include "ir/graph/infer.h"
#include "ir/graph/mean.h"

#include <string.h>

#define dlc_mean_NULL NULL /* opaque rows */

static const struct {
    dlc_infer_fn infer;
    dlc_mean_fn mean;
} rules[DLC_OP_COUNT] = {
#define DLC_OP(id, text, lo, hi, nout, infer, mean, traits, types, attrs)                          \
    [DLC_OP_##id] = {dlc_infer_##infer, dlc_mean_##mean},
#include "ir/graph/ops.def"
#undef DLC_OP
};

/* --- attributes --- */

/* What follows `name` in a row's list "pads strides! mode=edge|wrap", or NULL. */
static const char *listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; *at; at += strcspn(at, " "), at += *at == ' ')
        if (strncmp(at, name, length) == 0 && strcspn(at, " !=") == length)
            return at + length;
    return NULL;
}

static int is_word_of(const char *words, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = words; *at && *at != ' '; at += *at == '|') {
        size_t n = strcspn(at, "| ");
        if (n == length && strncmp(at, word, n) == 0)
            return 1;
        at += n;
    }
    return 0;
}

/* The value of a text or integer attribute is among the words after "=", if there are any. */
static dlc_status check_value(dlc_graph *graph, const dlc_node *node, const dlc_attr *attr,
                              const char *entry)
{
    const dlc_attr_info *info = &dlc_attrs[attr->id];
    const char *words = entry + (*entry == '!');
    if (*words++ != '=')
        return DLC_OK;
    const char *value = info->kind == DLC_ATTR_KIND_TEXT
                            ? attr->as.text
                            : dlc_arena_printf(graph->arena, "%" PRId64, attr->as.i);
    if (is_word_of(words, value))
        return DLC_OK;
    return DLC_REFUSE("%s = %.40s is not one of %.*s", info->text, value, (int)strcspn(words, " "),
                      words);
}

static dlc_status check_known(dlc_graph *graph, const dlc_node *node)
{
    const char *list = dlc_ops[node->op].attrs;
    for (uint32_t a = 0; a < node->nattrs; a++) {
        const char *name = dlc_attrs[node->attrs[a].id].text;
        const char *entry = listed(list, name);
        if (!entry)
            return DLC_REFUSE("%s has no attribute %s; it takes: %s", dlc_ops[node->op].text, name,
                              *list ? list : "none");
        for (uint32_t b = 0; b < a; b++)
            if (node->attrs[a].id == node->attrs[b].id)
                return DLC_REFUSE("attribute %s is given twice", name);
        DLC_TRY(check_value(graph, node, &node->attrs[a], entry));
    }
    return DLC_OK;
}

static int has_attr(const dlc_node *node, const char *name, size_t length)
{
    for (uint32_t a = 0; a < node->nattrs; a++) {
        const char *text = dlc_attrs[node->attrs[a].id].text;
        if (strncmp(text, name, length) == 0 && !text[length])
            return 1;
    }
    return 0;
}

static dlc_status check_required(dlc_graph *graph, const dlc_node *node)
{
    const char *list = dlc_ops[node->op].attrs;
    if (!strchr(list, '!')) /* most rows need none */
        return DLC_OK;
    for (const char *at = list; *at; at += strcspn(at, " "), at += *at == ' ') {
        size_t length = strcspn(at, " !=");
        if (at[length] == '!' && !has_attr(node, at, length))
            return DLC_REFUSE("attribute %.*s is absent; %s needs it", (int)length, at, dlc_ops[node->op].text);
    }
    return DLC_OK;
}

/* --- inputs and outputs --- */

static dlc_status check_arity(dlc_graph *graph, const dlc_node *node)
{
    const dlc_op_info *row = &dlc_ops[node->op];
    if (node->ninputs < (uint32_t)row->lo || (row->hi >= 0 && node->ninputs > (uint32_t)row->hi)) {
        if (row->hi < 0)
            return DLC_REFUSE("%" PRIu32 " inputs; %s takes %d or more", node->ninputs, row->text,
                              row->lo);
        return DLC_REFUSE("%" PRIu32 " inputs; %s takes %d to %d", node->ninputs, row->text,
                          row->lo, row->hi);
    }
    for (uint32_t i = 0; i < (uint32_t)row->lo; i++)
        DLC_TRY(dlc_infer_present(graph, node, i));
    if (node->noutputs > row->nout)
        return DLC_REFUSE("%" PRIu32 " outputs; %s has %d", node->noutputs, row->text, row->nout);
    return DLC_OK;
}

static int takes(dlc_types types, dlc_dtype dtype)
{
    int is_bool = dlc_dtypes[dtype].class_ == DLC_CLASS_BOOL;
    switch (types) {
    case DLC_TYPES_DATA:
        return 1;
    case DLC_TYPES_ANY:
        return !dlc_is_code(dtype) && !dlc_is_text(dtype);
    case DLC_TYPES_NUM:
        return !is_bool && !dlc_is_code(dtype) && !dlc_is_text(dtype);
    case DLC_TYPES_TEXT:
        return dlc_is_text(dtype);
    case DLC_TYPES_FLOAT:
        return dlc_is_float(dtype);
    case DLC_TYPES_INT:
        return dlc_is_int(dtype);
    case DLC_TYPES_BITS:
        return is_bool || dlc_is_int(dtype);
    case DLC_TYPES_BOOL:
        return is_bool;
    }
    return 0;
}

static dlc_status check_dtype(dlc_graph *graph, const dlc_node *node)
{
    static const char *const wanted[] = {
        "",           "no narrow type and no string", "a number", "a float",
        "an integer", "an integer or bool",           "bool",     "strings"};
    const dlc_op_info *row = &dlc_ops[node->op];
    if (!node->ninputs || !node->inputs[0] ||
        takes((dlc_types)row->types, dlc_infer_in(node, 0)->dtype))
        return DLC_OK;
    return DLC_REFUSE("input 0 is %s; %s takes %s", dlc_dtypes[dlc_infer_in(node, 0)->dtype].text,
                      row->text, wanted[row->types]);
}

/* Constant dimensions only: what symbols make of it, the run checks. */
static dlc_status check_size(dlc_graph *graph, const dlc_node *node, uint32_t output,
                             const dlc_type *type)
{
    int64_t elems = 1, dim;
    for (uint8_t d = 0; d < type->rank; d++) {
        if (!dlc_expr_is_int(graph->pool, type->dims[d], &dim))
            continue;
        if (dim < 0)
            return DLC_REFUSE("output %" PRIu32 " would be %s; dimension %d is negative", output,
                              dlc_type_text(graph, type), (int)d);
        if (!dlc_mul_i64(elems, dim ? dim : 1, &elems) || elems > DLC_MAX_ELEMS)
            return dlc_fail(graph, node, DLC_LIMIT,
                            "output %" PRIu32 " would be %s; up to 2^40 elements are possible",
                            output, dlc_type_text(graph, type));
    }
    return DLC_OK;
}

static dlc_status infer(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    DLC_TRY(check_arity(graph, node));
    DLC_TRY(check_known(graph, node));
    DLC_TRY(check_required(graph, node));
    DLC_TRY(check_dtype(graph, node));
    DLC_TRY(rules[node->op].infer(graph, node, result));
    for (uint32_t o = 0; o < node->noutputs; o++)
        DLC_TRY(check_size(graph, node, o, &result[o]));
    return DLC_OK;
}

dlc_status dlc_node_infer(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    dlc_node *before = graph->region;
    graph->region = node->region;
    dlc_status status = infer(graph, node, result);
    graph->region = before;
    return status;
}

/* --- meanings --- */

/* The rule and the meaning of a row, which know nothing of each other, agree about what the result is. */
static dlc_status check_result(dlc_mean *mean, uint32_t output)
{
    const dlc_stage *stage = &mean->kernel->stages.data[mean->out[output]];
    const dlc_type *type = &mean->node->outputs[output]->type;
    int is_same = stage->axes.n == type->rank && stage->dtype[0] == type->dtype;
    for (uint8_t d = 0; is_same && d < type->rank; d++)
        is_same = mean->kernel->axes.data[stage->axes.data[d]].extent == dlc_mean_dim(mean, type->dims[d]);
    if (is_same)
        return DLC_OK;
    return dlc_fail(mean->graph, mean->node, DLC_INTERNAL, "by its rule output %u is %s, by its meaning it is not", output,
                    dlc_type_text(mean->graph, type));
}

static dlc_status build(dlc_mean *mean)
{
    dlc_mean_fn meaning = rules[mean->node->op].mean;
    if (!meaning)
        return dlc_fail(mean->graph, mean->node, DLC_UNSUPPORTED,
                        "%s is a step of the plan, not an equation", dlc_ops[mean->node->op].text);
    DLC_TRY(meaning(mean));
    for (uint32_t o = 0; o < mean->node->noutputs; o++)
        if (mean->node->outputs[o])
            DLC_TRY(check_result(mean, o));
    return DLC_OK;
}

dlc_status dlc_mean_build(dlc_mean *mean)
{
    dlc_node *before = mean->graph->region;
    mean->graph->region = mean->node->region;
    dlc_status status = build(mean);
    mean->graph->region = before;
    return status;
}
