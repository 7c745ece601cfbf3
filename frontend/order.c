/*
 * Nodes in an order in which each stands behind those it reads. The standard asks for one, but tools append nodes where they like (ONNX
 * Runtime's converter to f16 its casts of inputs), and other runtimes put up with that. A list that has such an order stays as it is;
 * else nodes keep theirs but for those that have to come first. A list in which nodes read each other in a circle stays as it is, and is
 * refused when it is read.
 */
#include "frontend/import_steps.h"

#include <string.h>

#define PLACED UINT32_MAX

typedef dlc_vec(uint32_t) numbers;

typedef struct {
    dlc_import *im;
    Onnx__NodeProto **nodes;
    uint32_t n;
    dlc_table makers; /* by name: the node that makes it, plus one */
    numbers *reads;   /* by node: nodes of the list */
} order;

/* Of several nodes that make it, which is wrong, the first. */
static void add_maker(order *o, const char *name, uint32_t node)
{
    int is_new = 0;
    void **maker = *name ? dlc_table_insert(&o->makers, o->im->arena, name, &is_new) : NULL;
    if (is_new)
        *maker = (void *)(uintptr_t)(node + 1);
}

static void add_read(order *o, uint32_t node, const char *name)
{
    void **maker = *name ? dlc_table_find(&o->makers, name) : NULL;
    uint32_t at = maker ? (uint32_t)(uintptr_t)*maker - 1 : node;
    if (at != node)
        dlc_vec_push(o->im->arena, &o->reads[node], at);
}

static void add_name(const order *o, dlc_table *names, const char *name)
{
    int is_new;
    if (name)
        *dlc_table_insert(names, o->im->arena, name, &is_new) = NULL;
}

static void add_names(const order *o, dlc_table *names, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_input; i++)
        add_name(o, names, graph->input[i]->name);
    for (size_t i = 0; i < graph->n_initializer; i++)
        add_name(o, names, graph->initializer[i]->name);
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++)
            add_name(o, names, graph->node[i]->output[k]);
}

/* What the node's graphs read that they do not make themselves: of those around. */
static void add_captures(order *o, uint32_t node)
{
    im_graphs all = {0};
    dlc_table own = {0};
    im_push_graphs(o->im, o->nodes[node], &all);
    for (uint32_t g = 0; g < all.n; g++) {
        add_names(o, &own, all.data[g]);
        for (size_t i = 0; i < all.data[g]->n_node; i++)
            im_push_graphs(o->im, all.data[g]->node[i], &all);
    }
    for (uint32_t g = 0; g < all.n; g++) {
        const Onnx__GraphProto *graph = all.data[g];
        for (size_t i = 0; i < graph->n_output; i++)
            if (graph->output[i]->name && !dlc_table_find(&own, graph->output[i]->name))
                add_read(o, node, graph->output[i]->name);
        for (size_t i = 0; i < graph->n_node; i++)
            for (size_t k = 0; k < graph->node[i]->n_input; k++)
                if (!dlc_table_find(&own, graph->node[i]->input[k]))
                    add_read(o, node, graph->node[i]->input[k]);
    }
}

/* False: the list is in order already. */
static int find_reads(order *o)
{
    int is_late = 0;
    for (uint32_t i = 0; i < o->n; i++)
        for (size_t k = 0; k < o->nodes[i]->n_output; k++)
            add_maker(o, o->nodes[i]->output[k], i);
    for (uint32_t i = 0; i < o->n; i++) {
        const Onnx__NodeProto *node = o->nodes[i];
        for (size_t k = 0; k < node->n_input; k++)
            add_read(o, i, node->input[k]);
        if (node->n_attribute)
            add_captures(o, i);
        for (uint32_t r = 0; r < o->reads[i].n; r++)
            is_late |= o->reads[i].data[r] > i;
    }
    return is_late;
}

static void sort_list(dlc_import *im, Onnx__NodeProto **nodes, size_t n)
{
    order o = {.im = im, .nodes = nodes, .n = (uint32_t)n, .reads = dlc_new_array(im->arena, numbers, n + 1)};
    if (!find_reads(&o))
        return;
    Onnx__NodeProto **before = dlc_arena_copy(im->arena, nodes, n * sizeof(Onnx__NodeProto *));
    uint32_t *next = dlc_new_array(im->arena, uint32_t, n), nplaced = 0; /* next: of what a node reads, plus one; 0: nobody asked for it */
    numbers open = {0};
    for (uint32_t i = 0; i < o.n; i++) {
        if (next[i])
            continue;
        next[i] = 1;
        dlc_vec_push(im->arena, &open, i);
        while (open.n) {
            uint32_t at = open.data[open.n - 1];
            if (next[at] > o.reads[at].n) {
                nodes[nplaced++] = before[at];
                next[at] = PLACED;
                open.n--;
                continue;
            }
            uint32_t read = o.reads[at].data[next[at]++ - 1];
            if (next[read] == PLACED)
                continue;
            if (next[read]) { /* what reads it is read by it */
                memcpy(nodes, before, n * sizeof *nodes);
                return;
            }
            next[read] = 1;
            dlc_vec_push(im->arena, &open, read);
        }
    }
}

static void sort_all(dlc_import *im, Onnx__NodeProto **nodes, size_t n)
{
    im_graphs left = {0};
    for (;;) {
        sort_list(im, nodes, n);
        for (size_t i = 0; i < n; i++)
            im_push_graphs(im, nodes[i], &left);
        if (!left.n)
            return;
        const Onnx__GraphProto *graph = left.data[--left.n];
        nodes = graph->node, n = graph->n_node;
    }
}

void im_sort(dlc_import *im)
{
    sort_all(im, im->proto->graph->node, im->proto->graph->n_node);
    for (size_t i = 0; i < im->proto->n_functions; i++)
        sort_all(im, im->proto->functions[i]->node, im->proto->functions[i]->n_node);
}
