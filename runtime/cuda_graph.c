/*
 * A run as one CUDA graph. The plan is walked once more and gives nodes, one behind the other, where it
 * gave work to the stream: the inputs' shapes decide how often a loop of such a plan turns, so its turns
 * are nodes, too. Nodes are made by hand rather than recorded from a stream, so that nobody's recording is
 * in the way, and what each was given is kept: when the caller brings other memory, those that read or write
 * it are given its address.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda.h"

/* CUDA_MEMCPY3D: a copy of one row. */
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
} copy_of_rows;
enum { OF_DEVICE = 2 }; /* CUmemorytype */

static const char graph[] = "the graph of the steps";

static const dlc_plan_step *step_of(const dlcrt_context *context, uint32_t step)
{
    return (const dlc_plan_step *)dlcrt_rows(context->plan, context->plan->steps) + step;
}

static uint32_t nwords_of(const dlc_plan_step *step)
{
    return step->refs.count + (step->kind == DLC_DO_LAUNCH ? step->symbols.count + 3 : 0);
}

/* --- nodes --- */
static dlc_status reserve(void **rows, size_t *room, size_t n, size_t row_bytes)
{
    if (n <= *room)
        return DLC_OK;
    size_t more = 2 * n + 64;
    void *larger = realloc(*rows, more * row_bytes);
    if (!larger)
        return dlcrt_no_memory(more * row_bytes);
    *rows = larger;
    *room = more;
    return DLC_OK;
}

/* Room for the next node and its words. */
static dlc_status reserve_node(dlcrt_cuda_run *run, const dlc_plan_step *step)
{
    void *nodes = run->nodes, *words = run->words;
    dlc_status status = reserve(&nodes, &run->nodes_room, run->nnodes + 1, sizeof *run->nodes);
    run->nodes = nodes;
    DLC_TRY(status);
    status = reserve(&words, &run->words_room, run->nwords + nwords_of(step), sizeof *run->words);
    run->words = words;
    return status;
}

/* Behind the node that was made before. */
static size_t after(const dlcrt_cuda_run *run)
{
    return run->newest ? 1 : 0;
}

/* The words of the node, which are about to be written. */
static uint64_t *keep(dlcrt_context *context, const dlc_plan_step *step, dlcrt_cuda_node made)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    made.step = dlcrt_cuda_number(context, step);
    made.first_word = run->nwords;
    run->newest = made.node;
    run->nodes[run->nnodes++] = made;
    run->nwords += nwords_of(step);
    return run->words + made.first_word;
}

dlc_status dlcrt_graph_kernel(dlcrt_context *context, const dlc_plan_step *step,
                              const dlcrt_cuda_kernel *kernel)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    dlcrt_cuda_node made = {.nblocks = kernel->grid[0], .shared_bytes = kernel->shared_bytes};
    DLC_TRY(reserve_node(run, step));
    DLCRT_CUDA(dlcrt_driver_in(context), graph_kernel, dlcrt_string(context->plan, step->name),
               &made.node, run->graph, &run->newest, after(run), kernel);
    uint64_t *words = keep(context, step, made);
    for (uint32_t i = 0; i < nwords_of(step); i++)
        memcpy(&words[i], kernel->parameters[i], sizeof words[i]);
    return DLC_OK;
}

static copy_of_rows row_of(uint64_t to, uint64_t from, size_t size_bytes)
{
    return (copy_of_rows){.from_type = OF_DEVICE,
                          .from = from,
                          .to_type = OF_DEVICE,
                          .to = to,
                          .width = size_bytes,
                          .height = 1,
                          .depth = 1};
}

static void *device_context(const dlcrt_context *context)
{
    return ((const dlcrt_cuda *)context->executable->loaded)->context;
}

dlc_status dlcrt_graph_copy(dlcrt_context *context, const dlc_plan_step *step, uint64_t to,
                            uint64_t from, size_t size_bytes)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    const copy_of_rows row = row_of(to, from, size_bytes);
    dlcrt_cuda_node made = {.size_bytes = size_bytes};
    DLC_TRY(reserve_node(run, step));
    DLCRT_CUDA(dlcrt_driver_in(context), graph_copy, dlcrt_string(context->plan, step->name),
               &made.node, run->graph, &run->newest, after(run), &row, device_context(context));
    uint64_t *words = keep(context, step, made);
    words[0] = from;
    words[1] = to;
    return DLC_OK;
}

dlc_status dlcrt_graph_event(dlcrt_context *context, void *event, const char *what)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    void *node;
    DLCRT_CUDA(dlcrt_driver_in(context), graph_event, what, &node, run->graph, &run->newest, after(run),
               event);
    run->newest = node;
    return DLC_OK;
}

/* --- the graph --- */
void dlcrt_graph_drop(dlcrt_context *context)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    if (run->exec)
        dlcrt_driver_in(context)->exec_destroy(run->exec);
    if (run->graph)
        dlcrt_driver_in(context)->graph_destroy(run->graph);
    run->exec = run->graph = NULL;
    run->nalike = 0;
}

dlc_status dlcrt_graph_begin(dlcrt_context *context)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    DLCRT_CUDA(dlcrt_driver_in(context), graph_create, graph, &run->graph, 0);
    run->newest = NULL;
    run->nnodes = run->nwords = 0;
    run->way = DLCRT_WAY_GRAPH;
    return DLC_OK;
}

dlc_status dlcrt_graph_end(dlcrt_context *context, dlc_status walked)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    run->way = DLCRT_WAY_STREAM;
    DLC_TRY(walked);
    DLCRT_CUDA(dlcrt_driver_in(context), graph_instantiate, graph, &run->exec, run->graph, 0);
    return DLC_OK;
}

/* --- other memory --- */
static dlc_status update_kernel(dlcrt_context *context, const dlcrt_cuda_node *node)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    const dlc_plan_step *step = step_of(context, node->step);
    const dlc_plan_kernel *kernel =
        (const dlc_plan_kernel *)dlcrt_rows(context->plan, context->plan->kernels) + step->what;
    const dlcrt_cuda *cuda = context->executable->loaded;
    const dlcrt_cuda_kernel l = {.function = cuda->functions[step->what],
                                 .grid = {node->nblocks, 1, 1},
                                 .block = {kernel->threads, 1, 1},
                                 .shared_bytes = node->shared_bytes,
                                 .parameters = run->parameters};
    for (uint32_t i = 0; i < nwords_of(step); i++)
        run->parameters[i] = &run->words[node->first_word + i];
    DLCRT_CUDA(dlcrt_driver_in(context), exec_kernel, dlcrt_string(context->plan, step->name), run->exec,
               node->node, &l);
    return DLC_OK;
}

static dlc_status update(dlcrt_context *context, const dlcrt_cuda_node *node)
{
    dlcrt_cuda_run *run = dlcrt_run_of(context);
    const dlc_plan_step *step = step_of(context, node->step);
    if (step->kind == DLC_DO_LAUNCH)
        return update_kernel(context, node);
    const copy_of_rows row =
        row_of(run->words[node->first_word + 1], run->words[node->first_word], node->size_bytes);
    DLCRT_CUDA(dlcrt_driver_in(context), exec_copy, dlcrt_string(context->plan, step->name), run->exec,
               node->node, &row, device_context(context));
    return DLC_OK;
}

/* Whether one of the node's addresses of the caller's memory is another one now; its words have it then. */
static int has_moved(dlcrt_context *context, const dlcrt_cuda_node *node)
{
    const dlc_plan_step *step = step_of(context, node->step);
    const dlc_plan_ref *refs = (const dlc_plan_ref *)dlcrt_rows(context->plan, context->plan->refs) + step->refs.first;
    uint64_t *words = dlcrt_run_of(context)->words + node->first_word;
    int result = 0;
    for (uint32_t i = 0; i < step->refs.count; i++) {
        uint64_t at = (uint64_t)(uintptr_t)context->pointers[step->refs.first + i];
        if ((refs[i].place != DLC_REF_INPUT && refs[i].place != DLC_REF_OUTPUT) || at == words[i])
            continue;
        words[i] = at;
        result = 1;
    }
    return result;
}

dlc_status dlcrt_graph_rebind(dlcrt_context *context)
{
    const dlcrt_cuda_run *run = dlcrt_run_of(context);
    for (size_t i = 0; run->exec && i < run->nnodes; i++)
        if (has_moved(context, &run->nodes[i]))
            DLC_TRY(update(context, &run->nodes[i]));
    return DLC_OK;
}
