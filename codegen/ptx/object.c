/*
 * Kernels to cubins and PTX. Texts come first, on one thread; equal ones are compiled once, each (text, architecture) a job
 * that any thread may take. A job's arena is its own and its result goes to its own place, so the bytes depend on the texts
 * alone.
 */
#include "codegen/ptx/object.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/str.h"
#include "codegen/ptx/nvrtc.h"
#include "codegen/ptx/text.h"

dlc_status dlc_cuda_sources_make(const dlc_module *module, dlc_arena *arena, dlc_diag *diag, dlc_cuda_sources *sources)
{
    uint32_t n = module->kernels.n;
    sources->n = n;
    sources->texts = dlc_new_array(arena, const char *, n + 1u);
    sources->launches = dlc_new_array(arena, dlc_cuda_launch, n + 1u);
    sources->shared_bytes = dlc_new_array(arena, int64_t, n + 1u);
    for (uint32_t i = 0; i < n; i++) {
        const dlc_module_kernel *entry = &module->kernels.data[i];
        dlc_cuda_kernel kernel;
        int64_t scratch;
        DLC_TRY(dlc_cuda_source(entry->kernel, entry->schedule, DLC_CUDA_FUNCTION, arena, diag, &kernel));
        sources->texts[i] = kernel.source;
        sources->launches[i] =
            (dlc_cuda_launch){kernel.threads, kernel.units_per_block, kernel.fixed_bytes, kernel.scratches};
        sources->shared_bytes[i] = kernel.fixed_bytes;
        if (kernel.scratches) {
            dlc_expr bytes = dlc_schedule_scratch(entry->kernel, entry->schedule);
            int is_known = dlc_expr_is_int(entry->kernel->pool, bytes, &scratch);
            sources->shared_bytes[i] = is_known ? sources->shared_bytes[i] + scratch * kernel.scratches : -1;
        }
    }
    return DLC_OK;
}

/* --- jobs --- */
typedef struct {
    const char *text;
    int arch, ptx;
    dlc_arena *arena; /* of the result */
    dlc_diag diag;
    dlc_status status;
    const void *bytes;
    size_t size_bytes;
} job;

typedef struct {
    const dlc_nvrtc *nvrtc;
    job *jobs;
    uint32_t njobs;
    atomic_uint next;
} queue;

static void compile(const queue *q, job *j)
{
    dlc_str text = {0};
    j->arena = dlc_arena_create(0);
    dlc_diag_init(&j->diag, j->arena);
    dlc_str_add(&text, dlc_cuda_prelude);
    dlc_str_add(&text, j->text);
    j->status = dlc_nvrtc_compile(q->nvrtc, dlc_str_text(&text), "kernel.cu", j->arch, j->ptx, j->arena, &j->diag,
                                  &j->bytes, &j->size_bytes);
    dlc_str_deinit(&text);
}

static void *worker(void *argument)
{
    queue *q = argument;
    for (uint32_t i; (i = atomic_fetch_add(&q->next, 1)) < q->njobs;)
        compile(q, &q->jobs[i]);
    return NULL;
}

static void run_workers(queue *q, uint32_t nthreads)
{
    enum { MAX_THREADS = 64 };
    pthread_t threads[MAX_THREADS];
    uint32_t started = 0;
    for (; started + 1 < nthreads && started < MAX_THREADS && started + 1 < q->njobs; started++)
        if (pthread_create(&threads[started], NULL, worker, q))
            break;
    worker(q);
    while (started)
        pthread_join(threads[--started], NULL);
}

/* Results to the caller's arena; of failures the first one's messages. */
static dlc_status collect(queue *q, dlc_arena *arena, dlc_diag *diag, dlc_blob *blobs)
{
    dlc_status status = DLC_OK;
    for (uint32_t i = 0; i < q->njobs; i++) {
        job *j = &q->jobs[i];
        for (uint32_t m = 0; status == DLC_OK && m < j->diag.nmessages; m++) {
            const dlc_message *message = &j->diag.messages[m];
            (void)dlc_diag_fail(diag, message->status, "CUDA kernel", "%s", message->text);
            if (message->detail)
                dlc_diag_detail(diag, "%s", message->detail);
        }
        if (j->status && !status)
            status = j->status;
        if (!j->status)
            blobs[i] = (dlc_blob){dlc_arena_copy(arena, j->bytes, j->size_bytes), j->size_bytes};
        dlc_arena_destroy(j->arena);
    }
    return status;
}

/* --- tables --- */
/* By kernel: the first one with the same text. */
static uint32_t *find_equals(const dlc_cuda_sources *sources, dlc_arena *arena)
{
    uint32_t *first = dlc_new_array(arena, uint32_t, sources->n + 1u);
    for (uint32_t i = 0; i < sources->n; i++)
        for (first[i] = 0; first[i] < i; first[i]++)
            if (!strcmp(sources->texts[first[i]], sources->texts[i]))
                break;
    return first;
}

static dlc_status check_archs(const dlc_nvrtc *nvrtc, const int *archs, uint32_t narchs, dlc_diag *diag)
{
    uint32_t n;
    const int *known = dlc_nvrtc_archs(nvrtc, &n);
    for (uint32_t i = 0; i < narchs; i++) {
        uint32_t k = 0;
        while (k < n && known[k] != archs[i])
            k++;
        if (k < n)
            continue;
        dlc_str list = {0};
        for (k = 0; k < n; k++)
            dlc_str_printf(&list, "%ssm_%d", k ? ", " : "", known[k]);
        dlc_status status = dlc_diag_fail(diag, DLC_NO_DEVICE, NULL, "NVRTC %d.%d (%s) makes no code for sm_%d; it knows %s",
                                          dlc_nvrtc_version(nvrtc) / 100, dlc_nvrtc_version(nvrtc) % 100,
                                          dlc_nvrtc_path(nvrtc), archs[i], dlc_str_text(&list));
        dlc_str_deinit(&list);
        return status;
    }
    return DLC_OK;
}

static dlc_plan_binary describe(const job *j, const dlc_blob *blob, const dlc_cuda_launch *launch, int64_t shared_bytes)
{
    dlc_plan_binary binary = {.kind = j->ptx ? DLC_BINARY_PTX : DLC_BINARY_CUBIN,
                              .arch = (uint32_t)j->arch,
                              .size_bytes = blob->size_bytes};
    if (!j->ptx && dlc_cubin_report(blob->bytes, blob->size_bytes, &binary) && shared_bytes >= 0)
        binary.blocks = dlc_cuda_occupancy(binary.arch, launch->threads, binary.registers,
                                           (uint64_t)shared_bytes + binary.shared_bytes);
    return binary;
}

dlc_status dlc_cuda_emit(const dlc_cuda_sources *sources, const int *archs, uint32_t narchs, uint32_t njobs,
                         dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs, uint32_t *nblobs)
{
    const dlc_nvrtc *nvrtc;
    DLC_TRY(dlc_nvrtc_open(diag, &nvrtc));
    DLC_TRY(check_archs(nvrtc, archs, narchs, diag));
    uint32_t per_kernel = narchs + 1, *equal = find_equals(sources, arena);
    uint32_t *first_job = dlc_new_array(arena, uint32_t, sources->n + 1u);
    queue q = {.nvrtc = nvrtc, .jobs = dlc_new_array(arena, job, (size_t)sources->n * per_kernel + 1u)};
    for (uint32_t i = 0; i < sources->n; i++) {
        first_job[i] = equal[i] == i ? q.njobs : first_job[equal[i]];
        for (uint32_t k = 0; equal[i] == i && k < per_kernel; k++)
            q.jobs[q.njobs++] =
                (job){.text = sources->texts[i], .arch = archs[k < narchs ? k : 0], .ptx = k == narchs};
    }
    *nblobs = q.njobs + 1;
    *blobs = dlc_new_array(arena, dlc_blob, *nblobs);
    run_workers(&q, njobs ? njobs : 1);
    DLC_TRY(collect(&q, arena, diag, *blobs + 1));
    size_t nrows = (size_t)sources->n * per_kernel;
    dlc_cuda_row *rows = dlc_new_array(arena, dlc_cuda_row, nrows + 1);
    for (size_t r = 0; r < nrows; r++) {
        uint32_t i = (uint32_t)(r / per_kernel), at = first_job[i] + (uint32_t)(r % per_kernel);
        rows[r].blob = at + 1;
        rows[r].binary = describe(&q.jobs[at], &(*blobs)[at + 1], &sources->launches[i], sources->shared_bytes[i]);
    }
    (*blobs)[0] = (dlc_blob){rows, nrows * sizeof *rows};
    return DLC_OK;
}
