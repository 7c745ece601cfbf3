/*
 * NVIDIA GPUs: kernels are CUDA C, compiled through NVRTC to cubins and PTX that the file carries.
 * Their emulation compiles the same text for this machine's processor, and its kernels are
 * functions like a CPU's.
 */
#include "package/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/ptx/nvrtc.h"
#include "codegen/ptx/object.h"
#include "codegen/ptx/text.h"
#include "package/child.h"
#include "package/predict_cuda.h"

/* --- text --- */
static const dlc_cuda_sources *sources_of(const dlc_part *part)
{
    return part->prepared;
}

static dlc_status prepare(dlc_part *part, dlc_arena *arena, dlc_diag *diag)
{
    dlc_cuda_sources *sources = dlc_new(arena, dlc_cuda_sources);
    part->prepared = sources;
    DLC_TRY(dlc_cuda_sources_make(part->module, arena, diag, sources));
    part->cuda.launches = sources->launches;
    part->cuda.functions = sources->functions;
    part->cuda.emulate = part->backend->emulated;
    return DLC_OK;
}

static int is_same(const dlc_part *a, const dlc_part *b)
{
    const dlc_cuda_sources *of_a = sources_of(a), *of_b = sources_of(b);
    if (of_a->n != of_b->n)
        return 0;
    for (uint32_t i = 0; i < of_a->n; i++)
        if (strcmp(of_a->texts[i], of_b->texts[i]) != 0)
            return 0;
    return 1;
}

static dlc_status write(dlc_output *output, const char *text, dlc_diag *diag)
{
    return dlc_output_write(output, text, strlen(text), diag);
}

static dlc_status write_cuda_c(dlc_part *part, dlc_output *output, dlc_arena *arena, dlc_diag *diag)
{
    const dlc_cuda_sources *sources = sources_of(part);
    for (uint32_t i = 0; i < sources->n; i++)
        DLC_TRY(write(output,
                      dlc_arena_printf(arena, "/* kernel %u: %s; %u threads, %u units per block */\n",
                                       i, sources->functions[i], sources->launches[i].threads,
                                       sources->launches[i].units_per_block),
                      diag));
    return write(output, dlc_cuda_program(sources, arena), diag);
}

/* --- binaries --- */
static dlc_status emit(const void *work, dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs,
                       uint32_t *nblobs)
{
    const dlc_part *part = work;
    return dlc_cuda_emit(sources_of(part), part->archs.data, part->archs.n, part->emit.njobs, arena,
                         diag, blobs, nblobs);
}

static dlc_status take(dlc_part *part, dlc_pieces *all, dlc_arena *arena, dlc_diag *diag)
{
    size_t nrows = part->code.blobs[0].size_bytes / sizeof(dlc_cuda_row);
    const dlc_cuda_row *rows =
        dlc_arena_copy(arena, part->code.blobs[0].bytes, part->code.blobs[0].size_bytes);
    dlc_plan_binary *binaries = dlc_new_array(arena, dlc_plan_binary, nrows + 1);
    for (size_t i = 0; i < nrows; i++) {
        binaries[i] = rows[i].binary;
        if (!dlc_pieces_add(all, &part->code.blobs[rows[i].blob], arena, &binaries[i].offset))
            return dlc_diag_fail(diag, DLC_LIMIT, NULL, "the kernels for %s are larger than memory",
                                 part->module->target->name);
    }
    part->cuda.binaries = binaries;
    part->cuda.nbinaries = part->archs.n + 1;
    return DLC_OK;
}

static int no_functions(const dlc_part *part)
{
    (void)part;
    return -1;
}

static dlc_status write_ptx(dlc_part *part, dlc_output *output, dlc_arena *arena, dlc_diag *diag)
{
    DLC_TRY(dlc_child_emit(emit, part, arena, diag, &part->code));
    const dlc_blob *text = &part->code.blobs[1 + part->archs.n];
    return dlc_output_write(output, text->bytes, text->size_bytes - 1, diag); /* without the NUL */
}

/* --- what is known without a GPU --- */
static int makes(const dlc_nvrtc *nvrtc, int arch)
{
    uint32_t n;
    const int *archs = dlc_nvrtc_archs(nvrtc, &n);
    for (uint32_t i = 0; i < n; i++)
        if (archs[i] == arch)
            return 1;
    return 0;
}

static void describe(const dlc_target *target, char *text, size_t size_bytes)
{
    dlc_arena *arena = dlc_arena_create(0);
    const dlc_nvrtc *nvrtc;
    dlc_diag diag;
    int arch = atoi(target->cpu);
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

/* What the cubins of one target are compiled of, by a child, as an executable's. */
typedef struct {
    const dlc_cuda_sources *sources;
    int arch;
    uint32_t njobs;
} report_job;

static dlc_status emit_one(const void *work, dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs, uint32_t *nblobs)
{
    const report_job *job = work;
    return dlc_cuda_emit(job->sources, &job->arch, 1, job->njobs, arena, diag, blobs, nblobs);
}

/* Registers, stack, shared memory and blocks are read from the cubins; times are predicted where that succeeds, else
 * diag says why not. */
static dlc_status report(const dlc_module *module, uint32_t njobs, dlc_arena *arena, dlc_diag *diag,
                         dlc_kernel_cost **costs)
{
    dlc_cuda_sources sources;
    report_job job = {&sources, atoi(module->target->cpu), njobs};
    dlc_child_code code;
    DLC_TRY(dlc_cuda_sources_make(module, arena, diag, &sources));
    DLC_TRY(dlc_child_emit(emit_one, &job, arena, diag, &code));
    const dlc_cuda_row *rows = dlc_arena_copy(arena, code.blobs[0].bytes, code.blobs[0].size_bytes);
    *costs = dlc_new_array(arena, dlc_kernel_cost, sources.n + 1u);
    for (uint32_t i = 0; i < sources.n; i++) {
        const dlc_plan_binary *cubin = &rows[2 * (size_t)i].binary; /* and PTX */
        (*costs)[i] = (dlc_kernel_cost){
            .threads = sources.launches[i].threads,
            .units_per_block = sources.launches[i].units_per_block,
            .registers = cubin->registers,
            .frame_bytes = cubin->frame_bytes,
            .blocks = cubin->blocks,
            .shared_bytes =
                sources.shared_bytes[i] < 0 ? -1 : sources.shared_bytes[i] + cubin->shared_bytes,
            .code_bytes = (int64_t)cubin->size_bytes,
        };
    }
    (void)!dlc_cuda_predict(module, &sources, code.blobs[2].bytes, njobs, arena, diag, *costs);
    dlc_child_close(&code);
    return DLC_OK;
}

static const dlc_text_form texts[] = {
    {DLC_ARTIFACT_CU, write_cuda_c}, {DLC_ARTIFACT_ASM, write_ptx}, {DLC_ARTIFACT_PTX, write_ptx}};

extern const dlc_backend dlc_backend_CUDA, dlc_backend_EMULATION;
const dlc_backend dlc_backend_CUDA = {
    .texts = texts,
    .ntexts = 3,
    .prepare = prepare,
    .is_same = is_same,
    .emit = emit,
    .take = take,
    .arch = no_functions,
    .describe = describe,
    .report = report,
};

/* --- the emulation --- */
static dlc_status emulate(const void *work, dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs,
                          uint32_t *nblobs)
{
    const dlc_part *part = work;
    return dlc_cuda_emulate(part->module, &part->emit, arena, diag, blobs, nblobs);
}

static int host_arch(const dlc_part *part)
{
    (void)part;
    return dlc_host_arch;
}

const dlc_backend dlc_backend_EMULATION = {
    .emulated = 1,
    .is_function = 1,
    .texts = texts,
    .ntexts = 1,
    .prepare = prepare,
    .emit = emulate,
    .arch = host_arch,
    .describe = describe,
    .report = report,
};
