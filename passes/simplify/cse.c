/*
 * Common subexpressions: a forward walk with a hash table of what is already computed. Inputs are
 * replaced as the walk goes, so equal trees meet as equal nodes, and one run reaches the end.
 * Constants are compared by type and bytes.
 */
#include "base/budget.h"
#include "ir/graph/region.h"
#include "passes/pass.h"

#include <string.h>

typedef struct {
    dlc_node **slots;
    uint64_t *hashes;
    uint64_t *bytes; /* of large constants that another resembles: the hash of all bytes, 0 where not known yet */
    uint32_t mask;
} table;

enum { SAMPLE = 256, LARGE = 16 * SAMPLE };

static uint64_t mix(uint64_t hash, uint64_t word)
{
    return dlc_hash(&word, sizeof word, hash);
}

/* Operands of a commutative operator in order of id, so that a+b and b+a meet. */
static void operands(const dlc_node *node, const dlc_value *pair[2])
{
    pair[0] = node->inputs[0], pair[1] = node->inputs[1];
    if (pair[0] && pair[1] && pair[0]->id > pair[1]->id)
        pair[0] = node->inputs[1], pair[1] = node->inputs[0];
}

static int commutes(const dlc_node *node)
{
    return node->ninputs == 2 && (dlc_ops[node->op].traits & DLC_TRAIT_COMMUTES);
}

static uint64_t hash_value(uint64_t hash, const dlc_value *value)
{
    return mix(hash, value ? value->id : UINT32_MAX);
}

static uint64_t hash_inputs(uint64_t hash, const dlc_node *node)
{
    if (commutes(node)) {
        const dlc_value *pair[2];
        operands(node, pair);
        return hash_value(hash_value(hash, pair[0]), pair[1]);
    }
    for (uint32_t i = 0; i < node->ninputs; i++)
        hash = hash_value(hash, node->inputs[i]);
    return hash;
}

static size_t attr_bytes(const dlc_attr *attr, const void **bytes)
{
    switch (dlc_attrs[attr->id].kind) {
    case DLC_ATTR_KIND_TEXT:
        *bytes = attr->as.text;
        return strlen(attr->as.text);
    case DLC_ATTR_KIND_DIMS:
        *bytes = attr->as.dims;
        return attr->n * sizeof *attr->as.dims;
    case DLC_ATTR_KIND_FLOATS:
        *bytes = attr->as.floats;
        return attr->n * sizeof *attr->as.floats;
    default:
        *bytes = &attr->as;
        return sizeof attr->as.i;
    }
}

static uint64_t hash_type(uint64_t hash, const dlc_type *type)
{
    return dlc_hash(type->dims, type->rank * sizeof *type->dims,
                    mix(mix(hash, type->dtype), type->rank));
}

static int is_large(const dlc_node *node)
{
    return node->op == DLC_OP_CONSTANT && node->outputs[0]->data->size_bytes >= LARGE;
}

/* Where large constants differ they nearly always do so at once: weights are read as a whole only where these bytes are equal. */
static uint64_t hash_sample(const dlc_tensor *tensor, uint64_t hash)
{
    const char *bytes = tensor->bytes;
    hash = dlc_hash_bulk(bytes, SAMPLE, mix(hash, tensor->size_bytes));
    hash = dlc_hash_bulk(bytes + tensor->size_bytes / 2, SAMPLE, hash);
    return dlc_hash_bulk(bytes + tensor->size_bytes - SAMPLE, SAMPLE, hash);
}

/* Piece by piece, so that weights need not be in memory as a whole. */
static uint64_t hash_tensor(const dlc_tensor *tensor, uint64_t hash)
{
    const size_t most = (size_t)8 << 20;
    for (size_t at = 0, n; at < tensor->size_bytes; at += n) {
        n = tensor->size_bytes - at < most ? tensor->size_bytes - at : most;
        hash = dlc_hash_bulk((const char *)tensor->bytes + at, n, hash);
        dlc_budget_read(n);
    }
    return hash;
}

static uint64_t hash_node(const dlc_node *node)
{
    uint64_t hash = hash_inputs(mix(0, node->op), node);
    for (uint32_t a = 0; a < node->nattrs; a++) {
        const void *bytes;
        size_t nbytes = attr_bytes(&node->attrs[a], &bytes);
        hash = dlc_hash(bytes, nbytes, mix(hash, node->attrs[a].id));
    }
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o])
            hash = hash_type(mix(hash, o), &node->outputs[o]->type);
    if (is_large(node))
        return hash_sample(node->outputs[0]->data, hash);
    if (node->op == DLC_OP_CONSTANT)
        hash = hash_tensor(node->outputs[0]->data, hash);
    return hash;
}

static int same_inputs(const dlc_node *a, const dlc_node *b)
{
    if (a->ninputs != b->ninputs)
        return 0;
    if (commutes(a)) {
        const dlc_value *left[2], *right[2];
        operands(a, left), operands(b, right);
        return left[0] == right[0] && left[1] == right[1];
    }
    for (uint32_t i = 0; i < a->ninputs; i++)
        if (a->inputs[i] != b->inputs[i])
            return 0;
    return 1;
}

static int same_attrs(const dlc_node *a, const dlc_node *b)
{
    if (a->nattrs != b->nattrs)
        return 0;
    for (uint32_t i = 0; i < a->nattrs; i++) {
        const void *left, *right;
        size_t nleft = attr_bytes(&a->attrs[i], &left), nright = attr_bytes(&b->attrs[i], &right);
        if (a->attrs[i].id != b->attrs[i].id || nleft != nright ||
            (nleft && memcmp(left, right, nleft)))
            return 0;
    }
    return 1;
}

static int same_type(const dlc_type *a, const dlc_type *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

/* Every output that `b` has must exist in `a`, with the same type. */
static int covers_outputs(const dlc_node *a, const dlc_node *b)
{
    if (a->noutputs < b->noutputs)
        return 0;
    for (uint32_t o = 0; o < b->noutputs; o++)
        if (b->outputs[o] &&
            (!a->outputs[o] || !same_type(&a->outputs[o]->type, &b->outputs[o]->type)))
            return 0;
    return 1;
}

static int same_data(const dlc_node *a, const dlc_node *b)
{
    if (a->op != DLC_OP_CONSTANT)
        return 1;
    const dlc_tensor *left = a->outputs[0]->data, *right = b->outputs[0]->data;
    return left->size_bytes == right->size_bytes &&
           (left->bytes == right->bytes || !memcmp(left->bytes, right->bytes, left->size_bytes));
}

/* So that many large constants of equal samples are read a few times each, not once for every other. */
static int may_be_same_data(table *known, uint32_t at, const dlc_node *node, uint64_t *bytes)
{
    const dlc_node *other = known->slots[at];
    if (!is_large(node) || !is_large(other) || other->outputs[0]->data->bytes == node->outputs[0]->data->bytes)
        return 1;
    if (!known->bytes[at])
        known->bytes[at] = hash_tensor(other->outputs[0]->data, 0) | 1;
    if (!*bytes)
        *bytes = hash_tensor(node->outputs[0]->data, 0) | 1;
    return known->bytes[at] == *bytes;
}

/* A symbol is bound to this node's data: it cannot be anyone else's. */
static int binds(const dlc_node *node)
{
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o] && node->outputs[o]->nbinds)
            return 1;
    return 0;
}

/* The node in the table that computes the same, or NULL after `node` was entered. */
static dlc_node *meet(table *known, dlc_node *node)
{
    uint64_t hash = hash_node(node), bytes = 0;
    for (uint32_t at = (uint32_t)hash & known->mask;; at = (at + 1) & known->mask) {
        dlc_node *other = known->slots[at];
        if (!other) {
            known->slots[at] = node;
            known->hashes[at] = hash;
            known->bytes[at] = bytes;
            return NULL;
        }
        if (known->hashes[at] != hash || other->op != node->op || !same_inputs(other, node) ||
            !same_attrs(other, node) || !covers_outputs(other, node) ||
            !may_be_same_data(known, at, node, &bytes) || !same_data(other, node))
            continue;
        if (dlc_region_is_in(node->region, other->region))
            return other;
        known->slots[at] = node; /* the other one's region is behind us */
        return NULL;
    }
}

static void merge(dlc_graph *graph, dlc_node *kept, dlc_node *node)
{
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o])
            dlc_value_replace(graph, node->outputs[o], kept->outputs[o]);
    dlc_graph_erase(graph, node);
}

static table table_create(dlc_arena *scratch, uint32_t nnodes)
{
    uint32_t size = 16;
    while (size < 2 * (uint64_t)nnodes && size < (1u << 31))
        size *= 2;
    return (table){dlc_new_array(scratch, dlc_node *, size), dlc_new_array(scratch, uint64_t, size),
                   dlc_new_array(scratch, uint64_t, size), size - 1};
}

dlc_status dlc_pass_cse(dlc_pass_ctx *ctx)
{
    uint32_t nnodes = 0;
    for (const dlc_node *node = ctx->graph->first; node; node = node->next)
        nnodes++;
    table known = table_create(ctx->scratch, nnodes);
    for (dlc_node *node = ctx->graph->first, *next; node; node = next) {
        next = node->next;
        if (binds(node) || dlc_op_is_mark(node->op) || node->op == DLC_OP_STATE)
            continue; /* states that begin alike go on by themselves */
        dlc_node *kept = meet(&known, node);
        if (!kept)
            continue;
        merge(ctx->graph, kept, node);
        ctx->changes++;
    }
    return DLC_OK;
}
