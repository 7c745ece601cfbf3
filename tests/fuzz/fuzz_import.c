/*
 * libFuzzer entry: any bytes as a model. The import ends in a graph or in a message; memory beyond
 * the arena's budget ends it through the handler, as in the compiler's driver.
 */
#include "frontend/onnx.h"
#include "tests/fuzz/entry.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    static const dlc_onnx_options options = {.max_nodes = 10000};
    dlc_arena *arena = dlc_arena_create((size_t)256 << 20);
    static dlc_onnx *model; /* not on the stack: known after the jump */
    model = NULL;
    dlc_diag diag;
    jmp_buf out_of_memory;
    dlc_diag_init(&diag, arena);
    if (setjmp(out_of_memory) == 0) {
        dlc_graph *graph = NULL;
        dlc_arena_set_oom(leave, &out_of_memory);
        dlc_status status =
            dlc_onnx_read(bytes, size_bytes, "fuzz", &options, arena, &diag, &model, &graph);
        if ((status == DLC_OK) != (graph != NULL) || (status != DLC_OK && !diag.nmessages))
            abort();
        if (graph) {
            dlc_str text = {0};
            dlc_graph_print(graph, &text);
            dlc_str_deinit(&text);
        }
    }
    dlc_arena_set_oom(NULL, NULL);
    dlc_onnx_close(model);
    dlc_arena_destroy(arena);
    return 0;
}
