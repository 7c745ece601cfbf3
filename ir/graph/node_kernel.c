/* A node as a kernel of its own: a buffer per input and output around the stages of its meaning. */
#include "ir/graph/mean.h"

#include <string.h>

static uint32_t add_buffer(dlc_mean *mean, dlc_node_kernel *result, dlc_value *value, dlc_role role)
{
    dlc_type type = value->type;
    dlc_mean_dims(mean, &value->type, type.dims);
    dlc_vec_push(mean->kernel->arena, &result->values, value);
    return dlc_kernel_buffer(mean->kernel, value->name, &type, value->layout, role);
}

static uint32_t input_buffer(dlc_mean *mean, dlc_node_kernel *result, uint32_t input)
{
    dlc_value *value = mean->node->inputs[input];
    if (!value || dlc_input_is_inline(mean->node, input))
        return DLC_ABSENT;
    for (uint32_t b = 0; b < result->values.n; b++)
        if (result->values.data[b] == value)
            return b;
    return add_buffer(mean, result, value, value->data ? DLC_ROLE_CONST : DLC_ROLE_IN);
}

/* Inputs that no expression reads after all (a branch that a constant decides) leave no buffer. */
static void drop_unused(dlc_node_kernel *result)
{
    uint32_t from = 0;
    dlc_kernel_compact(result->kernel);
    for (uint32_t b = 0; b < result->kernel->buffers.n; b++, from++) {
        while (strcmp(result->values.data[from]->name, result->kernel->buffers.data[b].name) != 0)
            from++;
        result->values.data[b] = result->values.data[from];
    }
    result->values.n = result->kernel->buffers.n;
}

static dlc_status build(dlc_graph *graph, dlc_node *node, dlc_arena *arena, dlc_node_kernel *result)
{
    *result = (dlc_node_kernel){.kernel = dlc_kernel_create(arena, dlc_ops[node->op].text)};
    dlc_mean mean = {.graph = graph, .node = node, .kernel = result->kernel};
    dlc_source *in = dlc_new_array(arena, dlc_source, node->ninputs + 1);
    for (uint32_t i = 0; i < node->ninputs; i++)
        in[i] = input_buffer(&mean, result, i);
    mean.in = in;
    DLC_TRY(dlc_mean_build(&mean));
    for (uint32_t o = 0; o < node->noutputs; o++)
        dlc_mean_store(&mean, o, add_buffer(&mean, result, node->outputs[o], DLC_ROLE_OUT));
    drop_unused(result);
    return DLC_OK;
}

dlc_status dlc_node_kernel_of(dlc_graph *graph, dlc_node *node, dlc_arena *arena,
                              dlc_node_kernel *result)
{
    dlc_node *before = graph->region;
    graph->region = node->region;
    dlc_status status = build(graph, node, arena, result);
    graph->region = before;
    return status;
}
