/*
 * libFuzzer entry: any bytes as a graph's text, or a module's. What is accepted passes the verifier, every meaning
 * makes a kernel that passes its own, and printing reads back as the same text.
 */
#include "ir/graph/op.h"
#include "ir/module/module.h"
#include "tests/fuzz/entry.h"

#include <string.h>

static void check_meanings(dlc_graph *graph, dlc_arena *arena, dlc_diag *diag)
{
    for (dlc_node *node = graph->first; node; node = node->next) {
        dlc_node_kernel built;
        if (dlc_op_is_opaque(node->op) || node->op == DLC_OP_CONSTANT)
            continue;
        must(dlc_node_kernel_of(graph, node, arena, &built) == DLC_OK);
        dlc_kernel_simplify(built.kernel);
        dlc_kernel_compact(built.kernel);
        must(dlc_kernel_verify(built.kernel, diag) == DLC_OK);
    }
}

/* One trip may move terms of sums into their own order; a second one changes nothing. */
static void check_round_trip(dlc_graph *graph, dlc_arena *arena, dlc_diag *diag)
{
    dlc_str text[3] = {{0}};
    dlc_graph_print(graph, &text[0]);
    for (int i = 0; i < 2; i++) {
        dlc_graph *again = NULL;
        must(dlc_graph_parse(dlc_str_text(&text[i]), "again", arena, diag, &again) == DLC_OK);
        dlc_graph_print(again, &text[i + 1]);
    }
    must(strcmp(dlc_str_text(&text[1]), dlc_str_text(&text[2])) == 0);
    for (int i = 0; i < 3; i++)
        dlc_str_deinit(&text[i]);
}

static void check_module(const char *text, dlc_arena *arena, dlc_diag *diag)
{
    dlc_module *module;
    dlc_str texts[3] = {{0}};
    if (dlc_module_parse(text, "fuzz", arena, diag, &module) != DLC_OK) {
        must(diag->nmessages > 0);
        return;
    }
    dlc_module_print(module, &texts[0]);
    for (int i = 0; i < 2; i++) {
        must(dlc_module_parse(dlc_str_text(&texts[i]), "again", arena, diag, &module) == DLC_OK);
        dlc_module_print(module, &texts[i + 1]);
    }
    must(strcmp(dlc_str_text(&texts[1]), dlc_str_text(&texts[2])) == 0);
    for (int i = 0; i < 3; i++)
        dlc_str_deinit(&texts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    dlc_arena *arena = dlc_arena_create((size_t)256 << 20);
    dlc_diag diag;
    jmp_buf out_of_memory;
    dlc_diag_init(&diag, arena);
    if (setjmp(out_of_memory) == 0) {
        dlc_graph *graph = NULL;
        dlc_arena_set_oom(leave, &out_of_memory);
        const char *text = dlc_arena_strndup(arena, (const char *)bytes, size_bytes);
        if (!strncmp(text, "module", 6))
            check_module(text, arena, &diag);
        dlc_status status = dlc_graph_parse(text, "fuzz", arena, &diag, &graph);
        must(status == DLC_OK ? graph != NULL : diag.nmessages > 0);
        if (graph) {
            must(dlc_graph_verify(graph, &diag) == DLC_OK);
            check_meanings(graph, arena, &diag);
            check_round_trip(graph, arena, &diag);
        }
    }
    dlc_arena_set_oom(NULL, NULL);
    dlc_arena_destroy(arena);
    return 0;
}
