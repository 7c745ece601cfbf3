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
        DLC_TRY(dlc_cuda_source(entry->schedule, DLC_CUDA_FUNCTION, arena, diag, &kernel));
        sources->texts[i] = kernel.source;
        sources->launches[i] =
            (dlc_cuda_launch){kernel.threads, kernel.units_per_block, kernel.fixed_bytes, kernel.scratches};
        sources->shared_bytes[i] = kernel.fixed_bytes;
        if (kernel.scratches) {
            dlc_expr bytes = dlc_schedule_scratch(entry->schedule);
            int is_known = dlc_expr_is_int(entry->schedule->kernel->pool, bytes, &scratch);
            sources->shared_bytes[i] = is_known ? sources->shared_bytes[i] + scratch * kernel.scratches : -1;
        }
    }
    return DLC_OK;
}

/* --- jobs --- */
typedef struct {
    const char *text;
    int arch;
    dlc_arena *arena; /* of the result */
    dlc_diag diag;
    dlc_status status;
    dlc_nvrtc_code code;
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
    j->status = dlc_nvrtc_compile_both(q->nvrtc, dlc_str_text(&text), "kernel.cu", j->arch, j->arena, &j->diag, &j->code);
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

/* Of failures the first one's messages. */
static dlc_status judge(const queue *q, dlc_diag *diag)
{
    for (uint32_t i = 0; i < q->njobs; i++) {
        const job *j = &q->jobs[i];
        for (uint32_t m = 0; j->status && m < j->diag.nmessages; m++) {
            const dlc_message *message = &j->diag.messages[m];
            (void)dlc_diag_fail(diag, message->status, "CUDA kernel", "%s", message->text);
            if (message->detail)
                dlc_diag_detail(diag, "%s", message->detail);
        }
        if (j->status)
            return j->status;
    }
    return DLC_OK;
}

static void close_jobs(queue *q)
{
    for (uint32_t i = 0; i < q->njobs; i++)
        dlc_arena_destroy(q->jobs[i].arena);
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

static dlc_blob copy_of(const void *bytes, size_t size_bytes, dlc_arena *arena)
{
    return (dlc_blob){dlc_arena_copy(arena, bytes, size_bytes), size_bytes};
}

/* The blobs of a text whose jobs begin at `jobs`: cubins by architecture, PTX of the first. */
static void take_code(const job *jobs, uint32_t narchs, dlc_arena *arena, dlc_blob *blobs)
{
    for (uint32_t k = 0; k < narchs; k++)
        blobs[k] = copy_of(jobs[k].code.cubin, jobs[k].code.cubin_bytes, arena);
    blobs[narchs] = copy_of(jobs->code.ptx, jobs->code.ptx_bytes, arena);
}

static dlc_plan_binary describe_cubin(const dlc_blob *blob, int arch, const dlc_cuda_launch *launch, int64_t shared_bytes)
{
    dlc_plan_binary binary = {
        .kind = DLC_BINARY_CUBIN, .arch = (uint32_t)arch, .size_bytes = blob->size_bytes};
    if (dlc_cubin_report(blob->bytes, blob->size_bytes, &binary) && shared_bytes >= 0)
        binary.blocks = dlc_cuda_occupancy(binary.arch, launch->threads, binary.registers,
                                           (uint64_t)shared_bytes + binary.shared_bytes);
    return binary;
}

/* One job per architecture for each text that is the first of its kind. */
static void add_jobs(queue *q, const dlc_cuda_sources *sources, const uint32_t *equal, const int *archs, uint32_t narchs)
{
    for (uint32_t i = 0; i < sources->n; i++)
        for (uint32_t k = 0; equal[i] == i && k < narchs; k++)
            q->jobs[q->njobs++] = (job){.text = sources->texts[i], .arch = archs[k]};
}

/* Blobs from 1 on, and the rows that say whose they are. */
static void fill_tables(const queue *q, const dlc_cuda_sources *sources, const uint32_t *equal, const int *archs,
                        uint32_t narchs, dlc_arena *arena, dlc_blob *blobs)
{
    uint32_t per_kernel = narchs + 1, ntexts = 0;
    uint32_t *first = dlc_new_array(arena, uint32_t, sources->n + 1u);
    dlc_cuda_row *rows = dlc_new_array(arena, dlc_cuda_row, (size_t)sources->n * per_kernel + 1);
    for (uint32_t i = 0; i < sources->n; i++) {
        dlc_cuda_row *row = &rows[(size_t)i * per_kernel];
        if (equal[i] == i) {
            first[i] = 1 + ntexts * per_kernel;
            take_code(&q->jobs[ntexts++ * narchs], narchs, arena, &blobs[first[i]]);
        }
        for (uint32_t k = 0; k < per_kernel; k++)
            row[k].blob = first[equal[i]] + k;
        for (uint32_t k = 0; k < narchs; k++)
            row[k].binary = describe_cubin(&blobs[row[k].blob], archs[k], &sources->launches[i], sources->shared_bytes[i]);
        row[narchs].binary = (dlc_plan_binary){.kind = DLC_BINARY_PTX,
                                               .arch = (uint32_t)archs[0],
                                               .size_bytes = blobs[row[narchs].blob].size_bytes};
    }
    blobs[0] = (dlc_blob){rows, (size_t)sources->n * per_kernel * sizeof *rows};
}

dlc_status dlc_cuda_emit(const dlc_cuda_sources *sources, const int *archs, uint32_t narchs, uint32_t njobs,
                         dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs, uint32_t *nblobs)
{
    queue q = {.jobs = dlc_new_array(arena, job, (size_t)sources->n * narchs + 1u)};
    DLC_TRY(dlc_nvrtc_open(diag, &q.nvrtc));
    DLC_TRY(check_archs(q.nvrtc, archs, narchs, diag));
    const uint32_t *equal = find_equals(sources, arena);
    add_jobs(&q, sources, equal, archs, narchs);
    run_workers(&q, njobs ? njobs : 1);
    dlc_status status = judge(&q, diag);
    if (status == DLC_OK) {
        *nblobs = 1 + q.njobs / narchs * (narchs + 1);
        *blobs = dlc_new_array(arena, dlc_blob, *nblobs);
        fill_tables(&q, sources, equal, archs, narchs, arena, *blobs);
    }
    close_jobs(&q);
    return status;
}
