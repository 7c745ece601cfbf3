/* Attributes of nodes: making and reading them. A node has a handful, so looking one up is a walk
 * over them. */
#include "ir/graph/op.h"

#include <assert.h>

const dlc_attr *dlc_node_attr(const dlc_node *node, dlc_attr_id id)
{
    for (uint32_t a = 0; a < node->nattrs; a++)
        if (node->attrs[a].id == id)
            return &node->attrs[a];
    return NULL;
}

static const dlc_attr *attr_of_kind(const dlc_node *node, dlc_attr_id id, dlc_attr_kind kind)
{
    const dlc_attr *attr = dlc_node_attr(node, id);
    assert(dlc_attrs[id].kind == kind);
    (void)kind;
    return attr;
}

int64_t dlc_node_int(const dlc_node *node, dlc_attr_id id, int64_t otherwise)
{
    const dlc_attr *attr = attr_of_kind(node, id, DLC_ATTR_KIND_INT);
    return attr ? attr->as.i : otherwise;
}

double dlc_node_float(const dlc_node *node, dlc_attr_id id, double otherwise)
{
    const dlc_attr *attr = attr_of_kind(node, id, DLC_ATTR_KIND_FLOAT);
    return attr ? attr->as.f : otherwise;
}

const char *dlc_node_text(const dlc_node *node, dlc_attr_id id, const char *otherwise)
{
    const dlc_attr *attr = attr_of_kind(node, id, DLC_ATTR_KIND_TEXT);
    return attr ? attr->as.text : otherwise;
}

const dlc_expr *dlc_node_dims(const dlc_node *node, dlc_attr_id id, uint32_t *n)
{
    const dlc_attr *attr = attr_of_kind(node, id, DLC_ATTR_KIND_DIMS);
    *n = attr ? attr->n : 0;
    return attr ? attr->as.dims : NULL;
}

int64_t dlc_node_number(const dlc_graph *graph, const dlc_node *node, dlc_attr_id id, uint32_t i, int64_t otherwise)
{
    uint32_t n;
    const dlc_expr *dims = dlc_node_dims(node, id, &n);
    int64_t number = otherwise;
    if (dims && i < n && !dlc_expr_is_int(graph->pool, dims[i], &number))
        return -1;
    return number;
}

dlc_attr dlc_attr_int(dlc_attr_id id, int64_t value)
{
    return (dlc_attr){.id = (uint8_t)id, .as.i = value};
}

dlc_attr dlc_attr_float(dlc_attr_id id, double value)
{
    return (dlc_attr){.id = (uint8_t)id, .as.f = value};
}

dlc_attr dlc_attr_text(dlc_attr_id id, const char *text)
{
    return (dlc_attr){.id = (uint8_t)id, .as.text = text};
}

dlc_attr dlc_attr_dims(dlc_attr_id id, const dlc_expr *dims, uint32_t n)
{
    return (dlc_attr){.id = (uint8_t)id, .n = n, .as.dims = dims};
}

dlc_attr dlc_attr_ints(dlc_graph *graph, dlc_attr_id id, const int64_t *values, uint32_t n)
{
    dlc_expr *dims = dlc_new_array(graph->arena, dlc_expr, n);
    for (uint32_t i = 0; i < n; i++)
        dims[i] = dlc_expr_i64(graph->pool, values[i]);
    return dlc_attr_dims(id, dims, n);
}

dlc_attr dlc_attr_floats(dlc_attr_id id, const double *values, uint32_t n)
{
    return (dlc_attr){.id = (uint8_t)id, .n = n, .as.floats = values};
}
