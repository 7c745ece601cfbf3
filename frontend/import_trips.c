/*
 * A Loop without a trip count whose condition compares a counter with a limit, as while loops over a sequence do:
 *     next = counter + step;  goes on: next < limit
 * The counter starts at a value of the run, the limit is carried unchanged or comes from outside. The loop turns at most
 * (limit - start) / step times, or once where that is less: the condition itself is seen to by the loop as before.
 */
#include "frontend/import_control.h"

#include <string.h>

enum { MOST_STEPS = 64 }; /* from a name to what it is a copy of, against circles */

typedef struct {
    dlc_import *im;
    const dlc_repeat *r;
} reader;

static const Onnx__NodeProto *maker(const reader *in, const char *name)
{
    const Onnx__GraphProto *graph = in->r->graph;
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            if (!strcmp(graph->node[i]->output[k], name))
                return graph->node[i];
    return NULL;
}

static int is_op(const Onnx__NodeProto *node, const char *op)
{
    return node && !strcmp(node->op_type, op) && node->n_input;
}

/* The name behind copies and casts. */
static const char *origin(const reader *in, const char *name)
{
    for (int i = 0; i < MOST_STEPS; i++) {
        const Onnx__NodeProto *node = maker(in, name);
        if (!is_op(node, "Identity") && !is_op(node, "Cast"))
            break;
        name = node->input[0];
    }
    return name;
}

/* Which state a name of the body is as an iteration begins; -1: none. */
static int64_t state_of(const reader *in, const char *name)
{
    for (uint32_t i = 0; i < in->r->nstates; i++)
        if (in->r->graph->input[in->r->nbefore + i]->name && !strcmp(in->r->graph->input[in->r->nbefore + i]->name, name))
            return i;
    return -1;
}

/* One whole number: of a value around the loop, or of a constant in the body. 0: it is none. */
static dlc_expr one_of(const reader *in, dlc_value *value)
{
    uint32_t n;
    int64_t elems;
    dlc_import *im = in->im;
    if (!value || value == &im->poison || (value->type.dtype != DLC_I64 && value->type.dtype != DLC_I32) || im_rank(value) > 1 ||
        !dlc_type_elems(im->pool, &value->type, &elems) || elems != 1)
        return 0;
    const dlc_expr *elements = im_elements(im, value, INT32_MIN, INT32_MAX, &n);
    return elements ? elements[0] : 0;
}

static dlc_expr constant_of(const reader *in, const Onnx__TensorProto *tensor)
{
    dlc_dense dense;
    int32_t narrow;
    int64_t value;
    if (!tensor || dlc_tensor_decode(in->im->model, tensor, in->im->graph->file, &dense) != DLC_OK)
        return 0;
    if (dense.dtype == DLC_I64 && dense.size_bytes == sizeof value)
        memcpy(&value, dense.bytes, sizeof value);
    else if (dense.dtype == DLC_I32 && dense.size_bytes == sizeof narrow)
        memcpy(&narrow, dense.bytes, sizeof narrow), value = narrow;
    else
        return 0;
    return im_i64(in->im, value);
}

/* A value that no iteration changes; 0: it is none, or no whole number. */
static dlc_expr steady(const reader *in, const char *name)
{
    dlc_value *value = NULL;
    name = origin(in, name);
    int64_t state = state_of(in, name);
    const Onnx__NodeProto *node = maker(in, name);
    if (state >= 0)
        return !strcmp(origin(in, in->r->graph->output[1 + state]->name), name) ? one_of(in, in->r->initial[state]) : 0;
    if (node && !strcmp(node->op_type, "Constant"))
        return node->n_attribute == 1 ? constant_of(in, node->attribute[0]->t) : 0;
    for (size_t i = 0; i < in->r->graph->n_initializer; i++)
        if (!strcmp(in->r->graph->initializer[i]->name, name))
            return constant_of(in, in->r->graph->initializer[i]);
    for (size_t i = 0; i < in->r->graph->n_input; i++)
        if (in->r->graph->input[i]->name && !strcmp(in->r->graph->input[i]->name, name))
            return 0; /* the iteration, or its condition */
    return !node && im_lookup(im_body(in->im)->scope, name, &value) ? one_of(in, value) : 0;
}

/* `name` is a counter's next value: where it starts, and by how much it grows. */
static dlc_expr counter(const reader *in, const char *name, int64_t *step)
{
    name = origin(in, name);
    const Onnx__NodeProto *node = maker(in, name);
    for (uint32_t k = 0; is_op(node, "Add") && node->n_input == 2 && k < 2; k++) {
        const char *before = origin(in, node->input[k]);
        int64_t state = state_of(in, before);
        int is_iteration = state < 0 && in->r->graph->input[0]->name && !strcmp(before, in->r->graph->input[0]->name);
        dlc_expr by = state < 0 && !is_iteration ? 0 : steady(in, node->input[1 - k]);
        if (by && is_iteration) { /* counts from 0 by 1 */
            *step = 1;
            return dlc_addi(in->im->pool, by, -1);
        }
        if (by && im_is_const(in->im, by, step) && *step > 0 && !strcmp(origin(in, in->r->graph->output[1 + state]->name), name))
            return one_of(in, in->r->initial[state]);
    }
    return 0;
}

/* max(1, ceil((limit - start) / step)); is_equal: while next <= limit. */
static dlc_expr most_of(const reader *in, const char *next, const char *limit, int is_equal)
{
    int64_t step = 0;
    dlc_pool *pool = in->im->pool;
    dlc_expr start = counter(in, next, &step), end = start ? steady(in, limit) : 0;
    if (!end)
        return 0;
    dlc_expr wide = dlc_addi(pool, dlc_sub(pool, end, start), step - 1 + is_equal);
    return im_size(in->im, dlc_max(pool, dlc_floordiv(pool, wide, im_i64(in->im, step)), im_i64(in->im, 1)));
}

dlc_expr im_trips_of_condition(dlc_import *im, const dlc_repeat *r)
{
    const reader in = {im, r};
    if (!r->nresults || r->graph->n_output < 1 + r->nstates || r->graph->n_input < r->nbefore + r->nstates)
        return 0;
    const char *names[MOST_STEPS] = {r->graph->output[0]->name}; /* conditions that must all hold */
    for (uint32_t n = 1, i = 0; i < n; i++) {
        const Onnx__NodeProto *node = names[i] ? maker(&in, origin(&in, names[i])) : NULL;
        dlc_expr most = 0;
        if (!node || node->n_input != 2)
            continue;
        int is_equal = strstr(node->op_type, "OrEqual") != NULL;
        if (is_op(node, "And") && n + 2 <= MOST_STEPS) {
            names[n++] = node->input[0];
            names[n++] = node->input[1];
        } else if (is_op(node, "Less") || is_op(node, "LessOrEqual")) {
            most = most_of(&in, node->input[0], node->input[1], is_equal);
        } else if (is_op(node, "Greater") || is_op(node, "GreaterOrEqual")) {
            most = most_of(&in, node->input[1], node->input[0], is_equal);
        }
        if (most)
            return most;
    }
    return 0;
}
