/*
 * Bugs planted into the runtime: runtime_mutants SOURCE_DIR LIBDLCRT_A FOLDER of executables PART, 0 or 1, a half of them. Each changes one
 * of its files, which is compiled and linked with scenario.c in place of the original; what the
 * program prints or how it ends must differ from the unchanged one's.
 */
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ptx/emulated.h"
#include "tests/unit/suite.h"

static const char *source_dir, *library, *executables;
static char folder[64];

struct mutant {
    const char *bug, *file, *from, *to;
    uint32_t nth; /* 0: everywhere */
};
#define IN(name, bug, from, to) {bug, "runtime/" name ".c", from, to, 0}
static const struct mutant mutants[] = {
    IN("cuda_load", "weights that nobody waits for",
       "DLCRT_CUDA(driver, stream_wait, \"the weights\", stream);", ""),
    IN("cuda_load", "half the weights", "(size_t)(cuda->weights_end - cuda->weights_begin)",
       "(size_t)(cuda->weights_end - cuda->weights_begin) / 2"),
    IN("cuda_load", "the first kernel's code for all", "bytes + binary->offset", "bytes"),
    IN("cuda_load", "no other code than the first", "if (status != DLC_NO_DEVICE)", "if (status)"),
    IN("binary", "PTX before machine code", "a->kind < b->kind", "a->kind > b->kind"),
    IN("driver", "a recording of others that is ended", "*mode = CAPTURE_RELAXED;", "*mode = 0;"),
    IN("driver", "a thread that minds no recording any more", "(void)driver->capture_mode(&mode);",
       "(void)driver, (void)mode;"),
    IN("cuda", "weights a place too far", "cuda->weights + (ref->offset - cuda->weights_begin)",
       "cuda->weights + 4 + (ref->offset - cuda->weights_begin)"),
    IN("cuda", "regions that are not aligned",
       "(size_bytes + REGION_ALIGN - 1) / REGION_ALIGN * REGION_ALIGN", "size_bytes"),
    IN("cuda", "regions that lie in one place", "*at += region_up(size_bytes);", ""),
    IN("cuda_steps", "fault words of 4 bytes", "number(context, step) * sizeof(int64_t)",
       "number(context, step) * 4"),
    IN("cuda_steps", "the first step's fault word for all",
       "run->device_faults + dlcrt_cuda_number(context, step) * sizeof(int64_t)", "run->device_faults"),
    IN("cuda", "faults that are not looked at", "    return check_faults(context);",
       "    return DLC_OK;"),
    IN("cuda", "faults that nobody waits for", "    run->is_pending = 1;\n    if (run->is_async",
       "    if (run->is_async"),
    IN("cuda", "a fault of another step", "dlcrt_string(context->plan, steps[i].name)",
       "dlcrt_string(context->plan, steps[0].name)"),
    IN("cuda", "fault words that nobody clears", "dlcrt_run_of(context)->faults[i] = 0;", ";"),
    IN("cuda_steps", "a launch without its first unit", "run->parameters[n++] = &first;",
       "run->parameters[n++] = &units;"),
    IN("cuda_steps", "a launch that begins at unit 1", "units = context->cells[step->units], first = 0;",
       "units = context->cells[step->units], first = 1;"),
    IN("cuda_steps", "a launch of one unit more", "run->parameters[n++] = &units;",
       "units++; run->parameters[n++] = &units;"),
    IN("cuda_steps", "parameters in another order", "&context->pointers[step->refs.first + i];",
       "&context->pointers[step->refs.first + step->refs.count - 1 - i];"),
    IN("cuda_steps", "one pointer for all", "&context->pointers[step->refs.first + i];",
       "&context->pointers[step->refs.first];"),
    IN("cuda_steps", "no size of the batch", "&context->values[step->symbols.first + i]", "&first"),
    IN("cuda_steps", "blocks that are rounded down",
       "(left + kernel->units_per_block - 1) / kernel->units_per_block",
       "(left > kernel->units_per_block ? left / kernel->units_per_block : 1)"),
    IN("cuda_steps", "half the threads", "{kernel->threads, 1, 1}", "{kernel->threads / 2, 1, 1}"),
    IN("cuda_steps", "threads along y", "{kernel->threads, 1, 1}", "{1, kernel->threads, 1}"),
    IN("cuda_steps", "no shared memory", "(unsigned)shared_bytes_of(context, step)", "0"),
    IN("cuda", "inputs of the run before",
       "if (!size_bytes || run->in[i].at != run->inputs[i].at)",
       "if (!size_bytes || run->in[i].at != run->inputs[i].at || run->exec)"),
    IN("cuda", "inputs that are copied short", "run->inputs[i].at, tensor->data, size_bytes,",
       "run->inputs[i].at, tensor->data, size_bytes / 2,"),
    IN("cuda", "a graph in another stream", "run->exec, run->used);", "run->exec, NULL);"),
    IN("cuda", "a graph of other shapes", "    dlcrt_graph_drop(context);\n    if (total",
       "    if (total"),
    IN("cuda", "steps that are done twice", "    *done = 1;", ""),
    IN("cuda", "copies the wrong way", "driver->copy_within(to, from, size_bytes",
       "driver->copy_within(from, to, size_bytes"),
    IN("cuda", "memory freed under work",
       "    if (run->is_pending)\n        driver->stream_wait(run->used);", ""),
    IN("cuda", "a context that stays current", "dlcrt_driver_in(context)->context_pop(&popped);",
       "(void)popped;"),
    IN("cuda", "memory that is never freed", "driver->memory_free(region->at);", ""),
    IN("cuda", "a stream that is never destroyed", "driver->stream_destroy(run->stream);", ""),
    IN("cuda", "fault words that are never freed",
       "driver->host_free((void *)(uintptr_t)run->faults);", ""),
    IN("cuda", "accesses that are not aligned", "at % ACCESS_ALIGN == 0 && ", ""),
    IN("cuda", "an input that is the output", " && !is_ours(context, at)", ""),
    IN("cuda", "memory of which only the first byte is looked at", "is_fit && is_last", "is_fit"),
    IN("cuda", "memory that is looked at once for all", "if (theirs != bound->seen)",
       "if (!bound->seen)"),
    IN("cuda", "memory of the device that is copied", "at = bound->is_fit ? theirs : own;",
       "at = own;"),
    IN("cuda", "the memory of the run before", "context->pointers[i] = address(context, &refs[i]);",
       "(void)address(context, &refs[i]);"),
    IN("cuda", "a graph that keeps its memory", "return dlcrt_graph_rebind(context);", "return DLC_OK;"),
    IN("cuda", "an output that is copied onto itself, or is not there",
       "to == run->out[i].at))", "to == run->outputs[i].at))"),
    IN("cuda", "a stream of ours for the caller's",
       "options->stream ? options->stream : run->stream",
       "0 ? options->stream : run->stream"),
    IN("cuda", "a wait for another stream", "\"the device ended its work\", dlcrt_run_of(context)->used",
       "\"the device ended its work\", dlcrt_run_of(context)->stream"),
    IN("cuda", "inputs copied in another stream",
       "run->inputs[i].at, tensor->data, size_bytes,\n                       run->used",
       "run->inputs[i].at, tensor->data, size_bytes,\n                       run->stream"),
    IN("cuda", "a stream that others record", "return status ? dlcrt_fail(DLC_USAGE, \"the stream",
       "return 0 ? dlcrt_fail(DLC_USAGE, \"the stream"),
    IN("cuda", "memory placed anew under work",
       "        DLC_TRY(finish(context));\n    dlcrt_graph_drop",
       "        ;\n    dlcrt_graph_drop"),
    IN("cuda", "an end that is looked at one byte too late", "at + size_bytes - 1, &is_last", "at + size_bytes, &is_last"),
    IN("cuda", "a context made current though it is", "run->is_current = (uint8_t)(options && options->is_current);", ""),
    IN("cuda", "a run that is not waited for though its outputs are the host's",
       "all_on_device &= tensor->on_device != 0;",
       ""),
    IN("cuda", "work behind a failure that is not waited for",
       "(void)dlcrt_driver_in(context)->stream_wait(run->used);\n    clear",
       "clear"),
    IN("cuda_graph", "one changed node of several", "            DLC_TRY(update(context, &run->nodes[i]));",
       "            return update(context, &run->nodes[i]);"),
    IN("cuda", "outputs that are not bound",
       "i < plan->outputs.count; i++)\n        if (outputs[i].size_bytes < known_cells(plan, 0))\n            "
       "DLC_TRY(bind(",
       "i < 0; i++)\n        if (outputs[i].size_bytes < known_cells(plan, 0))\n            DLC_TRY(bind("),
    IN("cuda_graph", "an update of the node before", "node->node, &l)", "(node > run->nodes ? node[-1].node : node->node), &l)"),
    IN("cuda_graph", "a graph that is never dropped",
       "    if (run->exec)\n        dlcrt_driver_in(context)->exec_destroy(run->exec);",
       ""),
    IN("cuda_graph", "a step's parameters for its update as they were", "        words[i] = at;\n", ""),
    IN("cuda_times", "events that are used again", "times->spans[times->n++].end", "times->spans[times->n].end"),
    IN("cuda_times", "an event of the begin that moves",
       "    times->n = 0;\n    return stamp(context, times->begin);",
       "    times->n = 0;\n    return DLC_OK;"),
    IN("cuda_load", "weights freed at once", "    driver->stream_destroy(stream);\n    return status;",
       "    driver->stream_destroy(stream);\n    driver->memory_free(cuda->weights);\n    return status;"),
    IN("cuda_load", "weights copied in every context", "cuda->is_ready = status == DLC_OK;", ""),
    IN("cuda_load", "modules that are loaded for each kernel", "if (cuda->modules[i].offset == binary->offset)", "if (0)"),
    IN("cuda_load", "weights without their last part", "end = last > end ? last : end;", "end = end ? end : last;"),
    IN("cuda_graph", "nodes without order", "return run->newest ? 1 : 0;", "return 0;"),
    IN("cuda_graph", "all nodes behind the first", "    run->newest = made.node;",
       "    if (!run->newest) run->newest = made.node;"),
    IN("cuda_graph", "another step's node", "node->node, &l)", "run->nodes[node == run->nodes].node, &l)"),
    IN("cuda_graph", "a graph that is never destroyed",
       "dlcrt_driver_in(context)->graph_destroy(run->graph);", ";"),
    IN("cuda_graph", "a graph's runs that go on being made", "run->way = DLCRT_WAY_STREAM;", ""),
    IN("cuda_times", "a step's begin for its end", "times->spans[times->n++].end", "times->spans[times->n++].begin"),
    IN("cuda_times", "events that are never destroyed",
       "dlcrt_driver_in(context)->event_destroy(event);", ";"),
    IN("cuda_times", "times that nobody reads", "times && i < times->n; i++", "i < 0; i++"),

    /* Streams and waits. */
    IN("cuda", "outputs copied in another stream",
       "run->outputs[i].at, size_bytes,\n                       run->used", "run->outputs[i].at, size_bytes,\n                       NULL"),
    IN("cuda", "the caller's memory copied in another stream", "size_bytes, dlcrt_run_of(context)->used);\n    if (result ==",
       "size_bytes, NULL);\n    if (result =="),
    IN("cuda", "an arena poisoned in another stream", "run->arena.size_bytes,\n                   run->used",
       "run->arena.size_bytes,\n                   NULL"),
    IN("cuda_steps", "launches in another stream", "run->used, l->parameters, NULL", "NULL, l->parameters, NULL"),
    IN("cuda_steps", "a copy of a step in another stream", "from, size_bytes,\n               run->used",
       "from, size_bytes,\n               NULL"),
    IN("cuda", "a run that is not waited for", "    DLC_TRY(finish(context));\n    return dlcrt_times_read(context);",
       "    return dlcrt_times_read(context);"),
    IN("cuda", "faults looked at before the end", "    DLC_TRY(wait(context));\n    return check_faults", "    return check_faults"),
    IN("plan", "steps of the host that do not wait for the device", "        DLC_TRY(context->device->wait(context));\n", ""),
    /* Nodes of a graph. */
    IN("cuda_graph", "the node before the one that changed", "DLC_TRY(update(context, &run->nodes[i]));",
       "DLC_TRY(update(context, &run->nodes[i ? i - 1 : 0]));"),
    IN("cuda_graph", "an update with another node's parameters", "&run->words[node->first_word + i];", "&run->words[i];"),
    IN("cuda_graph", "nodes of the graph before", "run->nnodes = run->nwords = 0;", "run->nwords = 0;"),
    IN("cuda_graph", "all nodes' parameters in one place", "    run->nwords += nwords_of(step);\n", ""),
    IN("cuda_graph", "an update without the parameters behind the buffers",
       "step->kind == DLC_DO_LAUNCH ? step->symbols.count + 3 : 0", "0"),
    IN("cuda_graph", "an update of one block", ".grid = {node->nblocks, 1, 1}", ".grid = {1, 1, 1}"),
    IN("cuda_graph", "an update of half the threads", ".block = {kernel->threads, 1, 1}", ".block = {kernel->threads / 2, 1, 1}"),
    IN("cuda_graph", "an update without shared memory", ".shared_bytes = node->shared_bytes", ".shared_bytes = 0"),
    IN("cuda_graph", "an update with another kernel", "cuda->functions[step->what]", "cuda->functions[step->what ? 0 : 1]"),
    IN("cuda_graph", "a copy that turns round when it changes",
       "row_of(run->words[node->first_word + 1], run->words[node->first_word], node->size_bytes)",
       "row_of(run->words[node->first_word], run->words[node->first_word + 1], node->size_bytes)"),
    IN("cuda_graph", "half a copy when it changes", "run->words[node->first_word], node->size_bytes)",
       "run->words[node->first_word], node->size_bytes / 2)"),
    IN("cuda_graph", "a copy of another context's device", "return ((const dlcrt_cuda *)context->executable->loaded)->context;",
       "return NULL;"),
    IN("cuda_graph", "a node that counts as the first step's", "made.step = dlcrt_cuda_number(context, step);", "made.step = 0;"),
    IN("cuda_graph", "addresses of the first step for all", "context->pointers[step->refs.first + i];", "context->pointers[i];"),
    IN("cuda_graph", "room that does not grow with the words",
       "status = reserve(&words, &run->words_room, run->nwords + nwords_of(step), sizeof *run->words);",
       "status = reserve(&words, &run->words_room, 1, sizeof *run->words);"),
    /* Shapes, loops, and what is placed. */
    IN("cuda", "a loop recorded before anything was placed", "run->times && context->plan->phases.count == 1", "run->times != NULL"),
    IN("cuda", "a graph at the first run", "(is_first && !may_be_first) ||", ""),
    IN("cuda", "loops that are never a graph", "if (step->device != DLC_DEVICE_CUDA && step->kind < DLC_DO_SET)",
       "if (step->device != DLC_DEVICE_CUDA)"),
    IN("cuda", "a graph of steps of the host", "steps_are_of_device(context->plan) &&", ""),
    IN("cuda", "a graph with outputs of late sizes", "&& outputs_are_known(context->plan)", ""),
    IN("cuda", "memory of a later phase that is taken to be there", "int result = phase && arena_bytes <= run->arena.size_bytes;",
       "int result = phase != 0;"),
    IN("cuda", "late outputs that are taken to be there",
       "(size_t)context->cells[outputs[i].size_bytes] < run->outputs[i].size_bytes;", "1;"),
    IN("cuda", "memory of shapes before", "    bind_own(context);\n    return DLC_OK;", "    return DLC_OK;"),
    IN("cuda", "too little memory for inputs", "context->cells[inputs[i].size_bytes] + 1, &at, &run->inputs[i]", "1, &at, &run->inputs[i]"),
    IN("cuda", "too little memory for outputs", "context->cells[outputs[i].size_bytes] + 1, &at, &run->outputs[i]",
       "1, &at, &run->outputs[i]"),
    IN("context", "addresses of a loop's first turn", "context->step_sized[i] == context->nentered", "context->step_sized[i]"),
    IN("context", "turns that count for nothing", "    context->nentered++;\n", ""),
    IN("context", "parts of a buffer at its beginning", "        offset += skip;\n", ""),
    IN("cuda_steps", "another kernel's block", "context->plan->kernels) + step->what;", "context->plan->kernels);"),
    IN("cuda_steps", "the size of the first buffer for a copy", "context->cells[refs[1].size_bytes]",
       "context->cells[refs[0].size_bytes] / 2"),
    /* Errors that nobody is told. */
    IN("cuda", "a graph that is not launched", "    DLCRT_CUDA(dlcrt_driver_in(context), graph_launch, \"the steps\", run->exec, run->used);",
       "    (void)dlcrt_driver_in(context)->graph_launch(run->exec, run->used);"),
    IN("cuda", "a run that went wrong and goes on", "    if (status)\n        abandon(context);\n    return status;", "    return status;"),
    IN("cuda", "memory that is not there", "    DLCRT_CUDA(driver, memory_alloc, \"memory of the device for a run\", &larger.at,\n               larger.size_bytes);",
       "    (void)driver->memory_alloc(&larger.at, larger.size_bytes);"),
    IN("cuda_graph", "a graph that is not made", "    DLCRT_CUDA(dlcrt_driver_in(context), graph_instantiate, graph, &run->exec, run->graph, 0);",
       "    (void)dlcrt_driver_in(context)->graph_instantiate(&run->exec, run->graph, 0);"),
    IN("cuda_graph", "an update that is refused", "    DLCRT_CUDA(dlcrt_driver_in(context), exec_kernel, dlcrt_string(context->plan, step->name), run->exec,\n               node->node, &l);",
       "    (void)dlcrt_driver_in(context)->exec_kernel(run->exec, node->node, &l);"),
    IN("cuda_times", "times that are not taken", "    DLCRT_CUDA(dlcrt_driver_in(context), event_record, what, event, run->used);",
       "    (void)dlcrt_driver_in(context)->event_record(event, run->used);"),
    IN("cuda_times", "half a span when events run out", "        driver->event_destroy(made.begin);\n", ""),
    IN("cuda_times", "the time of the last turn alone", "profile->begin_ns = begin - spent;", "profile->begin_ns = begin;"),
    IN("cuda_load", "weights that did not come", "    dlc_status status = copy_weights(executable, size_bytes, stream);",
       "    dlc_status status = DLC_OK; (void)copy_weights(executable, size_bytes, stream);"),
    IN("cuda_load", "weights that failed and are kept", "    if (status && cuda->weights) {", "    if (0) {"),
    /* Contexts, files and others' recordings. */
    IN("cuda", "fault words that contexts share", "    run->faults = at;",
       "    static void *first;\n    run->faults = first = first ? first : at;"),
    IN("cuda", "one state for all contexts", "    dlcrt_cuda_run *run = context->held = dlcrt_alloc(1, sizeof *run);",
       "    static dlcrt_cuda_run *run; run = context->held = run ? run : dlcrt_alloc(1, sizeof *run);"),
    IN("context", "a file that goes before its contexts", "    dlcrt_executable_retain(executable);\n", ""),
    IN("cuda", "recordings that mind a larger run", "    DLC_TRY(dlcrt_capture_relax(dlcrt_driver_in(context), &mode));\n    dlc_status status = place_relaxed",
       "    mode = 0;\n    dlc_status status = place_relaxed"),
    IN("cuda_load", "recordings that mind the weights", "    dlc_status status = dlcrt_capture_relax(driver, &mode);",
       "    dlc_status status = DLC_OK; mode = 0;"),
    /* What a file falls back to. */
    IN("binary", "code for a newer driver", "binary->driver <= (uint32_t)driver->version", "1"),
    IN("binary", "machine code of another generation",
       "(binary->kind == DLC_BINARY_PTX || binary->arch / 10 == capability / 10)", "1"),
    IN("binary", "code of a newer device", "binary->arch <= capability &&", ""),
    IN("binary", "a plan without code for the device", "        if (dlcrt_binary_find(plan, i, device, 0))\n            continue;",
       "        continue;"),
    IN("device", "a device that is passed over in silence", "        memcpy(device->passed, unfit, sizeof unfit);", "        ;"),
    IN("cuda_load", "a module that did not load", "status ? status : module->handle ? DLC_OK : DLC_NO_DEVICE", "DLC_OK"),
    IN("cuda_load", "the reason of the last code alone", "\"%s%s\", nth ? \"; \" : \"\", dlcrt_last_error());",
       "\"%s\", nth ? \"\" : \"\");"),
    IN("cuda", "weights behind those of the CPU, twice as far", "cuda->weights + (ref->offset - cuda->weights_begin)",
       "cuda->weights + (ref->offset + cuda->weights_begin)"),
    IN("cuda_load", "weights of the CPU's steps in place of the kernels'", "executable->constants + cuda->weights_begin,",
       "executable->constants,"),
    IN("cuda", "faults that outlive a run that failed", "    clear_faults(context);\n    run->is_pending = 0;", "    run->is_pending = 0;"),
    IN("cuda", "outputs of a run that failed, not looked at anew", "        run->out[i].seen = 0;\n", "        ;\n"),
    IN("cuda", "inputs of a run that failed, not looked at anew", "        run->in[i].seen = 0;\n", "        ;\n"),
    IN("cuda", "memory that is looked at behind its begin alone", "DLC_TRY(is_of_device(context, at, &is_fit));", ";"),
    IN("cuda_load", "weights that are given back twice", "        cuda->weights = 0;\n", ""),
};

/* Tried in the long form alone (DLC_LONG). */
static const struct mutant more[] = {
    IN("cuda", "nothing of the arena that moves", "grow(context, &run->arena, arena_bytes, run->arena.size_bytes)",
       "grow(context, &run->arena, arena_bytes, 0)"),
    IN("cuda", "half the arena that moves", "grow(context, &run->arena, arena_bytes, run->arena.size_bytes)",
       "grow(context, &run->arena, arena_bytes, run->arena.size_bytes / 2)"),
    IN("cuda", "memory freed before what is kept has moved",
       "    DLCRT_CUDA(driver, stream_wait, \"memory is placed anew\", stream);\n", ""),
    IN("cuda", "memory that is not freed when it grows",
       "    free_region(driver, region);\n    *region = larger;", "    *region = larger;"),
    IN("cuda", "memory that grows once", "if (size_bytes <= region->size_bytes)", "if (region->size_bytes)"),
    IN("cuda", "outputs of late sizes where they were", "        if (run->outputs[i].at != before)\n", "        if (0)\n"),
    IN("cuda", "regions for 4 bytes", "REGION_ALIGN = 256", "REGION_ALIGN = 4"),
    IN("cuda", "accesses of 4 bytes", "ACCESS_ALIGN = 16", "ACCESS_ALIGN = 4"),
    IN("cuda", "a context that tells of no memory", "    return total;", "    return 0;"),
    IN("cuda", "a graph that outlives a failure", "    run->way = DLCRT_WAY_STREAM;\n    dlcrt_graph_drop(context);\n    for",
       "    run->way = DLCRT_WAY_STREAM;\n    for"),
    IN("cuda_graph", "inputs alone given another address", "(refs[i].place != DLC_REF_INPUT && refs[i].place != DLC_REF_OUTPUT)",
       "refs[i].place != DLC_REF_INPUT"),
    IN("cuda_graph", "outputs alone given another address", "(refs[i].place != DLC_REF_INPUT && refs[i].place != DLC_REF_OUTPUT)",
       "refs[i].place != DLC_REF_OUTPUT"),
    IN("cuda", "the last tensor that changed", "*has_changed |= at != bound->at;", "*has_changed = at != bound->at;"),
    IN("cuda_graph", "the last reference that changed", "        result = 1;", "        result = i + 1 == step->refs.count;"),
    IN("cuda", "times of a run that nobody waited for", "run->is_graph && !context->profile)", "run->is_graph)"),
    IN("cuda", "outputs of the run before, read while they are written",
       "        is_own |= lies_in(&run->outputs[i], at);", "        ;"),
    IN("cuda", "faults of the first step alone",
       "    for (uint32_t i = 0; i < context->plan->steps.count; i++) {\n        if (!dlcrt_run_of(context)->faults[i])",
       "    for (uint32_t i = 0; i < 1; i++) {\n        if (!dlcrt_run_of(context)->faults[i])"),
    IN("cuda_steps", "no leave for more shared memory",
       "    if (bytes <= PLAIN_SHARED_BYTES)", "    if (bytes <= 10 * PLAIN_SHARED_BYTES)"),
    IN("cuda_steps", "leave for a byte less",
       "FUNCTION_MAX_DYNAMIC_SHARED, (int)bytes)", "FUNCTION_MAX_DYNAMIC_SHARED, (int)bytes - 1)"),
    IN("cuda_steps", "leave for the first kernel", "functions[step->what],\n                                    FUNCTION",
       "functions[0],\n                                    FUNCTION"),
    IN("cuda_steps", "leave for something else", "FUNCTION_MAX_DYNAMIC_SHARED = 8", "FUNCTION_MAX_DYNAMIC_SHARED = 9"),
    IN("cuda_steps", "a step's copy in another stream, in",
       "copy_in, name, to, pointers[0], size_bytes,\n                   dlcrt_run_of(context)->used",
       "copy_in, name, to, pointers[0], size_bytes,\n                   NULL"),
    IN("cuda_steps", "a step's copy in another stream, out",
       "copy_out, name, pointers[1], from, size_bytes,\n                   dlcrt_run_of(context)->used",
       "copy_out, name, pointers[1], from, size_bytes,\n                   NULL"),
    IN("cuda_steps", "half a step's copy in",
       "copy_in, name, to, pointers[0], size_bytes,", "copy_in, name, to, pointers[0], size_bytes / 2,"),
    IN("cuda_steps", "half a step's copy out", "copy_out, name, pointers[1], from, size_bytes,",
       "copy_out, name, pointers[1], from, size_bytes / 2,"),
    IN("cuda_steps", "scratch of one warp", "kernel->fixed_bytes + scratch * kernel->scratches", "kernel->fixed_bytes + scratch"),
    IN("cuda_steps", "a unit less for the last block",
       "left + kernel->units_per_block - 1", "left + kernel->units_per_block - 2"),
    IN("cuda_steps", "blocks along y", "one.grid[0] =", "one.grid[1] ="),
    IN("cuda_steps", "faults told to nobody",
       "uint64_t fault = run->device_faults + dlcrt_cuda_number(context, step) * sizeof(int64_t);", "uint64_t fault = 0;"),
    IN("cuda_steps", "sizes in another order", "&context->values[step->symbols.first + i]",
       "&context->values[step->symbols.first + step->symbols.count - 1 - i]"),
    IN("cuda_graph", "the newest node of the graph before", "    run->newest = NULL;\n", ""),
    IN("cuda_graph", "runs that were alike before shapes changed", "    run->nalike = 0;\n", ""),
    IN("cuda_graph", "a graph that is remembered when it is gone", "    run->exec = run->graph = NULL;\n", ""),
};

static int command(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int command(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    int status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

enum { MOST_TEXT = 1 << 16, PATIENCE_MS = 30000 };

/* What a program prints, until it ends, is silent for too long or has printed something else than what is wanted, if that is not NULL.
 * Whether it has ended. */
static int read_output(int from, const char *wanted, char *text)
{
    struct pollfd wait = {.fd = from, .events = POLLIN};
    ssize_t n = 0, got = 1;
    while (n < MOST_TEXT - 64 && poll(&wait, 1, PATIENCE_MS) > 0 && (got = read(from, text + n, (size_t)(MOST_TEXT - 64 - n))) > 0) {
        n += got;
        if (wanted && strncmp(text, wanted, (size_t)n) != 0)
            break;
    }
    return got == 0;
}

/* The program at that path, run in a group of processes that ends with it: what it printed, and how it ended. */
static char *output_of(const char *path, const char *log, const char *wanted)
{
    char *text = calloc(1, MOST_TEXT);
    int ends[2], status = 0;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        setpgid(0, 0);
        if (dup2(ends[1], STDOUT_FILENO) < 0 || !freopen(log, "w", stderr))
            _Exit(127);
        close(ends[0]);
        close(ends[1]);
        execl(path, path, executables, (char *)NULL);
        _Exit(127);
    }
    ck_assert_int_gt(child, 0);
    setpgid(child, child);
    close(ends[1]);
    if (!read_output(ends[0], wanted, text))
        kill(-child, SIGKILL);
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    sprintf(text + strlen(text), "ends with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    return text;
}

/* The program of that number, compiled and run: what it printed, and how it ended; no more of it than tells it from what is wanted. */
static char *outcome(int number, const char *text, const char *wanted)
{
    char path[128], log[128];
    snprintf(path, sizeof path, "%s/%d.c", folder, number);
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    ck_assert_msg(!command("cc -w -O0 -std=gnu17 -D_GNU_SOURCE -I%s -I%s/include %s %s/scenario.o "
                           "%s -o %s/%d -ldl -lpthread -lm 2>%s/%d.log",
                           source_dir, source_dir, path, folder, library, folder, number, folder,
                           number),
                  "cc: %s/%d.log", folder, number);
    snprintf(path, sizeof path, "%s/%d", folder, number);
    snprintf(log, sizeof log, "%s/%d.err", folder, number);
    char *result = output_of(path, log, wanted);
    unlink(path);
    return result;
}

static char *read_source(const char *name, dlc_arena *arena)
{
    char path[1024], *text = dlc_arena_alloc(arena, 1 << 18, 1);
    snprintf(path, sizeof path, "%s/%s", source_dir, name);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_lt(fread(text, 1, 1 << 18, file), 1 << 18);
    fclose(file);
    return text;
}

static char *expected;

static void make_expected(void)
{
    dlc_arena *arena = dlc_arena_create(0);
    expected = outcome(1000, read_source("runtime/cuda.c", arena), NULL);
    ck_assert_msg(strstr(expected, "left: 0;") && strstr(expected, "ends with 0"), "%s", expected);
    dlc_arena_destroy(arena);
}

/* With lower limits, as if there were more units than a launch may have, more launches than a graph, or more turns than events,
 * results are the same, by other calls. */
static const struct mutant limits[] = {
    IN("cuda_steps", "launches of two blocks", "DLCRT_MAX_BLOCKS INT32_MAX", "DLCRT_MAX_BLOCKS 2"),
    IN("cuda", "graphs of six nodes", "#include \"runtime/cuda.h\"", "#define DLCRT_MOST_NODES 6\n#include \"runtime/cuda.h\""),
    IN("cuda_times", "times of two turns at once", "DLCRT_MOST_SPANS 4096", "DLCRT_MOST_SPANS 2"),
};

START_TEST(test_limit)
{
    dlc_arena *arena = dlc_arena_create(0);
    const trial_mutation mutation = {limits[_i].from, limits[_i].to, 0};
    const char *text = trial_mutate(read_source(limits[_i].file, arena), &mutation, arena);
    ck_assert_msg(text != NULL, "%s: not in %s", limits[_i].bug, limits[_i].file);
    char *found = outcome(1001 + _i, text, NULL);
    char *end = strstr(found, "left: 0;"), *of_expected = strstr(expected, "left: 0;");
    ck_assert_msg(end && strstr(end, "ends with 0"), "%s", found);
    ck_assert(end - found == of_expected - expected && !memcmp(found, expected, (size_t)(end - found)));
    ck_assert_str_ne(end, of_expected);
    free(found);
    dlc_arena_destroy(arena);
}
END_TEST

enum { NMUTANTS = sizeof mutants / sizeof *mutants, NMORE = sizeof more / sizeof *more };

START_TEST(test_mutant)
{
    dlc_arena *arena = dlc_arena_create(0);
    const struct mutant *mutant = _i < NMUTANTS ? &mutants[_i] : &more[_i - NMUTANTS];
    const trial_mutation mutation = {mutant->from, mutant->to, mutant->nth};
    const char *text = trial_mutate(read_source(mutant->file, arena), &mutation, arena);
    ck_assert_msg(text != NULL, "%s: '%s' is not in %s", mutant->bug, mutant->from, mutant->file);
    char *found = outcome(_i, text, expected);
    ck_assert_msg(strcmp(found, expected) != 0, "%s: not seen", mutant->bug);
    free(found);
    dlc_arena_destroy(arena);
}
END_TEST

int main(int argc, char **argv)
{
    int n = getenv("DLC_LONG") ? NMUTANTS + NMORE : NMUTANTS, part = argc == 5 && argv[4][0] == '1';
    if (argc != 5)
        return 2;
    if (system("cc --version >/dev/null 2>&1")) {
        printf("skipped: it needs the C compiler cc\n");
        return 77;
    }
    source_dir = argv[1], library = argv[2], executables = argv[3];
    snprintf(folder, sizeof folder, "/tmp/dlc_runtime_mutants_%d", (int)getpid());
    if (command("mkdir -p %s && cc -w -O0 -std=gnu17 -D_GNU_SOURCE -I%s -I%s/include -c "
                "%s/tests/vgpu/scenario.c -o %s/scenario.o",
                folder, source_dir, source_dir, source_dir, folder))
        return 1;
    Suite *suite = suite_create("runtime mutants");
    TCase *cases = tcase_create("mutants");
    tcase_add_unchecked_fixture(cases, make_expected, NULL);
    tcase_add_loop_test(cases, test_limit, 0, part ? 0 : sizeof limits / sizeof *limits);
    tcase_add_loop_test(cases, test_mutant, part ? n / 2 : 0, part ? n : n / 2);
    tcase_set_timeout(cases, 200);
    suite_add_tcase(suite, cases);
    int failed = suite_run(suite);
    command("rm -rf %s", folder);
    return failed;
}
