/*
 * libFuzzer entry: bytes are choices of the differential tester's generator, and the first says which way the graph is compiled.
 * The oracle and compiled code agree (tests/differ/judge.h).
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/differ/judge.h"
#include "tests/differ/make.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    static const way ways[] = {{"x86-64-v2", "greedy", NULL, NULL}, {"x86-64-v3", "none", NULL, NULL},
                               {"x86-64-v3", "greedy", NULL, NULL}, {"native", "greedy", NULL, NULL},
                               {"x86-64-v3", WILD_STRATEGY, NULL, NULL}};
    judgement j;
    dlc_str text = {0};
    if (size_bytes < 2)
        return 0;
    draws from = {.bytes = bytes, .nbytes = size_bytes, .at = 2};
    make_graph(&from, 2 + bytes[1] % 9, &text);
    judge_graph(dlc_str_text(&text), &ways[bytes[0] % (sizeof ways / sizeof *ways)], 1, &j);
    if (j.verdict >= JUDGE_DIFFERS) {
        fprintf(stderr, "%s: %s\n%s", judge_names[j.verdict], j.text, dlc_str_text(&text));
        abort();
    }
    dlc_str_deinit(&text);
    return 0;
}
