/* What `dlc targets` says of a row: the processor, and for CUDA whether the NVRTC found makes code
 * for it. */
#include "cli/driver_target.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "codegen/ptx/nvrtc.h"

enum { MOST_ARCHS = 64, LINE = 160 };

static struct {
    int arch;
    char text[LINE];
} rows[MOST_ARCHS];
static uint32_t nrows;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int makes(const dlc_nvrtc *nvrtc, int arch)
{
    uint32_t n;
    const int *archs = dlc_nvrtc_archs(nvrtc, &n);
    for (uint32_t i = 0; i < n; i++)
        if (archs[i] == arch)
            return 1;
    return 0;
}

static void describe(int arch, char *text)
{
    dlc_arena *arena = dlc_arena_create(0);
    const dlc_nvrtc *nvrtc;
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    int n = snprintf(text, LINE, "NVIDIA GPUs of compute capability %d.%d; ", arch / 10, arch % 10);
    if (dlc_nvrtc_open(&diag, &nvrtc) != DLC_OK)
        snprintf(text + n, (size_t)(LINE - n),
                 "NVRTC was not found: compiled code cannot be made, emulation can");
    else
        snprintf(text + n, (size_t)(LINE - n), "NVRTC %d.%d %s code for it",
                 dlc_nvrtc_version(nvrtc) / 100, dlc_nvrtc_version(nvrtc) % 100,
                 makes(nvrtc, arch) ? "makes" : "makes no");
    dlc_arena_destroy(arena);
}

static const char *cuda_help(int arch)
{
    uint32_t i = 0;
    pthread_mutex_lock(&lock);
    while (i < nrows && rows[i].arch != arch)
        i++;
    if (i == nrows && nrows < MOST_ARCHS) {
        rows[i].arch = arch;
        describe(arch, rows[i].text);
        nrows++;
    }
    pthread_mutex_unlock(&lock);
    return i < MOST_ARCHS ? rows[i].text : "";
}

const char *dlc_target_help(const dlc_target *target)
{
    if (!target)
        return "";
    return target->kind == DLC_TARGET_CUDA ? cuda_help(atoi(target->cpu)) : "";
}
