/*
 * The driver's graphs: recorded from a stream or made by hand. What no edge orders, a launch does in
 * the order that a program expects least: the node that was made last comes first.
 */
#include <stdlib.h>
#include <string.h>

#include "vgpu/device.h"

static void *handle_of(uint64_t id)
{
    return (void *)(uintptr_t)id;
}

static uint64_t id_of(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

/* NULL: no node of the graph is called so. */
static node *find_node(const graph *g, const void *handle)
{
    for (size_t i = 0; i < g->nnodes; i++)
        if (g->nodes[i].id == id_of(handle))
            return &g->nodes[i];
    return NULL;
}

/* --- made by hand --- */
DRIVER(cuGraphCreate, void **handle, unsigned flags)
{
    GUARD();
    vgpu_needs_context();
    ENTER();
    if (flags)
        return INVALID_VALUE;
    *handle = vgpu_add(GRAPH, 0);
    return 0;
}

/* Takes the node over. */
static int add(void **made, void *handle, void *const *after, size_t nafter, node n)
{
    graph *g = (graph *)vgpu_find(handle, GRAPH);
    uint64_t *ids = calloc(nafter + 1, sizeof *ids);
    int is_known = ids != NULL;
    for (size_t i = 0; is_known && i < nafter; i++) {
        ids[i] = id_of(after[i]);
        is_known = find_node(g, after[i]) != NULL;
    }
    if (is_known)
        *made = handle_of(vgpu_add_node(g, n, ids, nafter));
    else
        vgpu_free_node(&n);
    free(ids);
    return is_known ? 0 : INVALID_VALUE;
}

/* CUDA_KERNEL_NODE_PARAMS; the second version has two members more, which are not looked at. */
typedef struct {
    void *function;
    unsigned grid[3], block[3], shared_bytes;
    void **parameters, **extra;
} kernel_parameters;

static int make_kernel(const kernel_parameters *p, node *made)
{
    if (p->extra)
        vgpu_die("parameters in a buffer of the program's");
    return vgpu_make_launch(p->function, p->grid, p->block, p->shared_bytes, p->parameters, made);
}

DRIVER(cuGraphAddKernelNode, void **made, void *handle, void *const *after, size_t nafter,
       const void *parameters)
{
    node n;
    GUARD();
    vgpu_needs_context();
    ENTER();
    int result = make_kernel(parameters, &n);
    return result ? result : add(made, handle, after, nafter, n);
}

/* CUDA_MEMCPY3D; one row of memory of the device is known. */
typedef struct {
    size_t from_x, from_y, from_z, from_level;
    int from_type;
    const void *from_host;
    uint64_t from;
    void *from_array, *zero;
    size_t from_pitch, from_height;
    size_t to_x, to_y, to_z, to_level;
    int to_type;
    void *to_host;
    uint64_t to;
    void *to_array, *zero2;
    size_t to_pitch, to_height;
    size_t width, height, depth;
} copy_parameters;

static int make_copy(const copy_parameters *p, node *made)
{
    enum { OF_DEVICE = 2 };
    if (p->from_type != OF_DEVICE || p->to_type != OF_DEVICE || p->height != 1 || p->depth != 1)
        vgpu_die("a copy that is not one row of memory of the device");
    if (!vgpu_holder(p->from + p->from_x, p->width) || !vgpu_holder(p->to + p->to_x, p->width))
        return INVALID_VALUE;
    *made = (node){.what = COPY,
                   .to = p->to + p->to_x,
                   .from = p->from + p->from_x,
                   .size_bytes = p->width};
    return 0;
}

DRIVER(cuGraphAddMemcpyNode, void **made, void *handle, void *const *after, size_t nafter,
       const void *parameters, void *context)
{
    node n;
    GUARD();
    vgpu_needs_context();
    ENTER();
    if (context != &vgpu_device)
        return INVALID_CONTEXT;
    int result = make_copy(parameters, &n);
    return result ? result : add(made, handle, after, nafter, n);
}

DRIVER(cuGraphAddEventRecordNode, void **made, void *handle, void *const *after, size_t nafter,
       void *of)
{
    GUARD();
    vgpu_needs_context();
    ENTER();
    node n = {.what = RECORD, .event = (event *)vgpu_find(of, EVENT)};
    return add(made, handle, after, nafter, n);
}

/* --- launched --- */
static int is_among(const node *nodes, size_t n, uint64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (nodes[i].id == id)
            return 1;
    return 0;
}

/* All that it comes after is among the first n of `done`. */
static int is_ready(const node *of, const node *done, size_t n)
{
    for (size_t i = 0; i < of->nafter; i++)
        if (!is_among(done, n, of->after[i]))
            return 0;
    return 1;
}

DRIVER(cuGraphInstantiateWithFlags, void **exec, void *handle, unsigned long long flags)
{
    (void)flags;
    GUARD();
    vgpu_needs_context();
    const graph *from = (const graph *)vgpu_find(handle, GRAPH);
    ENTER();
    graph *made = vgpu_add(EXEC, 0);
    made->nodes = calloc(from->nnodes + 1, sizeof *made->nodes);
    if (!made->nodes)
        vgpu_die("out of memory");
    for (; made->nnodes < from->nnodes; made->nnodes++) {
        size_t i = from->nnodes - 1;
        while (is_among(made->nodes, made->nnodes, from->nodes[i].id) ||
               !is_ready(&from->nodes[i], made->nodes, made->nnodes))
            i--;
        made->nodes[made->nnodes] = vgpu_copy_node(&from->nodes[i]);
    }
    *exec = made;
    return 0;
}

DRIVER(cuGraphLaunch, void *exec, void *handle)
{
    GUARD();
    vgpu_needs_context();
    stream *s = vgpu_stream(handle);
    const graph *g = (const graph *)vgpu_find(exec, EXEC);
    ENTER();
    for (size_t i = 0; i < g->nnodes; i++) {
        event *e = g->nodes[i].what == RECORD ? g->nodes[i].event : NULL;
        vgpu_put(s, vgpu_copy_node(&g->nodes[i]));
        if (e && !s->recording) {
            e->in = s;
            e->sequence = s->ndone + s->nqueued;
        }
    }
    return 0;
}

/* --- looked at and changed --- */
DRIVER(cuGraphGetNodes, void *handle, void **nodes, size_t *n)
{
    GUARD();
    vgpu_needs_context();
    const graph *g = (const graph *)vgpu_find(handle, GRAPH);
    ENTER();
    for (size_t i = 0; nodes && i < *n && i < g->nnodes; i++)
        nodes[i] = handle_of(g->nodes[i].id);
    *n = g->nnodes;
    return 0;
}

/* CUgraphNodeType */
DRIVER(cuGraphNodeGetType, void *handle, int *type)
{
    enum { KERNEL_NODE = 0, COPY_NODE = 1, FILL_NODE = 2, AWAIT_NODE = 6, RECORD_NODE = 7 };
    static const int types[] = {[LAUNCH] = KERNEL_NODE,
                                [COPY] = COPY_NODE,
                                [FILL] = FILL_NODE,
                                [AWAIT] = AWAIT_NODE,
                                [RECORD] = RECORD_NODE};
    GUARD();
    ENTER();
    for (unsigned i = 0; i < vgpu_device.nobjects; i++) {
        const graph *g = (const graph *)vgpu_device.objects[i];
        const node *n = g->head.what == GRAPH ? find_node(g, handle) : NULL;
        if (!n)
            continue;
        *type = types[n->what];
        return 0;
    }
    return INVALID_VALUE;
}

/* The node of what was instantiated does something else of its kind from now on. */
static int change(void *exec, const void *handle, int result, node made)
{
    node *n = find_node((const graph *)vgpu_find(exec, EXEC), handle);
    if (result)
        return result;
    if (!n || n->what != made.what) {
        vgpu_free_node(&made);
        return INVALID_VALUE;
    }
    made.id = n->id;
    made.after = n->after;
    made.nafter = n->nafter;
    n->after = NULL;
    vgpu_free_node(n);
    *n = made;
    return 0;
}

static int change_kernel(void *exec, const void *handle, const void *parameters)
{
    node made;
    int result = make_kernel(parameters, &made);
    return change(exec, handle, result, made);
}

DRIVER(cuGraphExecKernelNodeSetParams, void *exec, void *handle, const void *parameters)
{
    GUARD();
    vgpu_needs_context();
    ENTER();
    return change_kernel(exec, handle, parameters);
}

DRIVER(cuGraphExecKernelNodeSetParams_v2, void *exec, void *handle, const void *parameters)
{
    GUARD();
    vgpu_needs_context();
    ENTER();
    return change_kernel(exec, handle, parameters);
}

DRIVER(cuGraphExecMemcpyNodeSetParams, void *exec, void *handle, const void *parameters,
       void *context)
{
    node made;
    GUARD();
    vgpu_needs_context();
    ENTER();
    if (context != &vgpu_device)
        return INVALID_CONTEXT;
    int result = make_copy(parameters, &made);
    return change(exec, handle, result, made);
}

DRIVER(cuGraphDestroy, void *handle)
{
    GUARD();
    vgpu_needs_context();
    vgpu_drop(vgpu_find(handle, GRAPH));
    ENTER();
    return 0;
}

DRIVER(cuGraphExecDestroy, void *exec)
{
    GUARD();
    vgpu_needs_context();
    vgpu_drop(vgpu_find(exec, EXEC));
    ENTER();
    return 0;
}
