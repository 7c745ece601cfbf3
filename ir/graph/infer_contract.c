/* Result types of matmul and einsum. */
#include "ir/graph/infer.h"

#include "base/text.h"

#include <string.h>

dlc_status dlc_infer_matmul(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const dlc_type *a = dlc_infer_in(node, 0), *b = dlc_infer_in(node, 1);
    dlc_dtype dtype;
    DLC_TRY(dlc_infer_sum(graph, node, 2, &dtype));
    if (a->rank < 2 || b->rank < 2)
        return DLC_REFUSE("ranks are %d and %d; matmul takes two tensors of rank 2 or more",
                          a->rank, b->rank);
    dlc_expr k;
    DLC_TRY(dlc_infer_equal(graph, node, a->dims[a->rank - 1], b->dims[b->rank - 2],
                            "columns of input 0 and rows of input 1", &k));
    dlc_type batch_a = *a, batch_b = *b;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    result->dtype = dtype;
    DLC_TRY(dlc_infer_broadcast_dims(graph, node, &batch_a, &batch_b, result));
    result->dims[result->rank++] = a->dims[a->rank - 2];
    result->dims[result->rank++] = b->dims[b->rank - 1];
    return DLC_OK;
}

/* Letters of one operand of an equation and what follows them. */
static const char *operand_letters(const char *at, uint32_t *n)
{
    *n = (uint32_t)strcspn(at, ",-");
    return at + *n;
}

static dlc_status check_letters(dlc_graph *graph, const dlc_node *node, const char *equation)
{
    const char *arrow = strstr(equation, "->");
    if (!arrow)
        return DLC_REFUSE("equation \"%.80s\" has no \"->\"; an explicit output is wanted",
                          equation);
    for (const char *at = equation; *at; at++)
        if (!dlc_is_alpha(*at) && !(*at == ',' && at < arrow) && at != arrow && at != arrow + 1)
            return DLC_REFUSE(
                "equation \"%.80s\" has '%c' at %d; letters, ',' and \"->\" are possible", equation,
                *at, (int)(at - equation));
    return DLC_OK;
}

/* Sizes of letters from one operand; a letter met before must agree, or be 1 on either side. */
static dlc_status bind_letters(dlc_graph *graph, const dlc_node *node, const char *letters,
                               const dlc_type *type, dlc_expr *size)
{
    dlc_expr one = dlc_expr_i64(graph->pool, 1);
    for (uint8_t d = 0; d < type->rank; d++) {
        dlc_expr *known = &size[(unsigned char)letters[d]];
        if (!*known || *known == one)
            *known = type->dims[d];
        else if (type->dims[d] != one)
            DLC_TRY(dlc_infer_equal(graph, node, *known, type->dims[d],
                                    dlc_arena_printf(graph->arena, "sizes of '%c'", letters[d]),
                                    known));
    }
    return DLC_OK;
}

static dlc_status einsum_output(dlc_graph *graph, const dlc_node *node, const char *letters,
                                const dlc_expr *size, dlc_type *result)
{
    if (strlen(letters) > DLC_MAX_RANK)
        return dlc_fail(graph, node, DLC_UNSUPPORTED,
                        "the result has %zu dimensions; up to %d are possible", strlen(letters),
                        DLC_MAX_RANK);
    for (const char *at = letters; *at; at++) {
        if (!size[(unsigned char)*at])
            return DLC_REFUSE("'%c' of the output is in no operand", *at);
        if (strchr(at + 1, *at))
            return DLC_REFUSE("'%c' stands twice in the output", *at);
        result->dims[result->rank++] = size[(unsigned char)*at];
    }
    return DLC_OK;
}

dlc_status dlc_infer_einsum(dlc_graph *graph, dlc_node *node, dlc_type *result)
{
    const char *equation = dlc_node_text(node, DLC_ATTR_EQUATION, ""), *at = equation;
    dlc_expr size[128] = {0};
    DLC_TRY(check_letters(graph, node, equation));
    for (uint32_t i = 0; i < node->ninputs; i++) {
        uint32_t n;
        DLC_TRY(dlc_infer_present(graph, node, i));
        DLC_TRY(dlc_infer_same_dtype(graph, node, 0, i));
        const char *end = operand_letters(at, &n);
        if (n != dlc_infer_in(node, i)->rank)
            return DLC_REFUSE("operand %" PRIu32 " of \"%.80s\" has %" PRIu32
                              " letters; the input has %d dimensions",
                              i, equation, n, dlc_infer_in(node, i)->rank);
        DLC_TRY(bind_letters(graph, node, at, dlc_infer_in(node, i), size));
        if ((*end == ',') != (i + 1 < node->ninputs))
            return DLC_REFUSE("equation \"%.80s\" does not have %" PRIu32
                              " operands, as many as the inputs",
                              equation, node->ninputs);
        at = end + 1;
    }
    result->dtype = dlc_infer_in(node, 0)->dtype;
    return einsum_output(graph, node, at + 1, size, result);
}
