/* libFuzzer entry: any bytes as the plan of a fusion strategy (JSON). It is followed, or refused in words. */
#include "dlc/dlc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static const char model_text[] = "graph @f(%x: f32[4,8]) -> %y, %z {\n  %a: f32[4,8] = neg %x\n  %b: f32[4,8] = exp %a\n"
                                 "  %c: f32[4,1] = reduce_sum %b {axes=[1], keepdims=1}\n  %d: f32[4,8] = div %b, %c\n"
                                 "  %e: f32[8,4] = transpose %d {perm=[1, 0]}\n  %y: f32[4,4] = matmul %d, %e\n"
                                 "  %z: f32[4,8] = mul %a, %b\n}\n";

static char path[64];

static void remove_file(void)
{
    unlink(path);
}

static void write_plan(const uint8_t *bytes, size_t size_bytes)
{
    if (!*path) {
        snprintf(path, sizeof path, "/tmp/dlc-fuzz-%d.json", (int)getpid());
        atexit(remove_file);
    }
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size_bytes, file) != size_bytes || fclose(file))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    dlc_model *model;
    dlc_model_note note;
    const char *text;
    write_plan(bytes, size_bytes);
    dlc_options options = {.target = "x86-64-v3", .fusion = path, .passes = "layout,fuse,lower", .tuned = ""};
    dlc_status status = dlc_model_open_bytes(model_text, strlen(model_text), "fuzz", &options, &model);
    if (status == DLC_OK)
        status = dlc_model_text(model, DLC_TEXT_GRAPH, "text", &text);
    if (status == DLC_INTERNAL || (status != DLC_OK && !dlc_model_message(model, 0, &note)))
        abort();
    dlc_model_close(model);
    return 0;
}
