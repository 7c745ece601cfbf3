/* What `dlc targets` says of a row: for CUDA, whether the NVRTC found makes code for it. */
#include "compiler/target.h"

#include <stdio.h>
#include <stdlib.h>

#include "codegen/ptx/nvrtc.h"

static int makes(const dlc_nvrtc *nvrtc, int arch)
{
    uint32_t n;
    const int *archs = dlc_nvrtc_archs(nvrtc, &n);
    for (uint32_t i = 0; i < n; i++)
        if (archs[i] == arch)
            return 1;
    return 0;
}

static void describe(int arch, char *text, size_t size_bytes)
{
    dlc_arena *arena = dlc_arena_create(0);
    const dlc_nvrtc *nvrtc;
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    int n = snprintf(text, size_bytes, "NVIDIA GPUs of compute capability %d.%d; ", arch / 10,
                     arch % 10);
    text += n;
    size_bytes -= (size_t)n;
    if (dlc_nvrtc_open(&diag, &nvrtc) != DLC_OK)
        snprintf(text, size_bytes, "NVRTC was not found, so it can only be emulated");
    else
        snprintf(text, size_bytes, "NVRTC %d.%d %s code for it", dlc_nvrtc_version(nvrtc) / 100,
                 dlc_nvrtc_version(nvrtc) % 100, makes(nvrtc, arch) ? "makes" : "makes no");
    dlc_arena_destroy(arena);
}

const char *dlc_target_help(const dlc_target *target)
{
    static _Thread_local char text[160];
    if (!target || target->kind != DLC_TARGET_CUDA)
        return "";
    describe(atoi(target->cpu), text, sizeof text);
    return text;
}
