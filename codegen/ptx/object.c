/*
 * Kernels to cubins and PTX: one program for all kernels of a module, so that a driver loads it once and a profiler shows which
 * nodes a kernel computes. Each architecture is a job that any thread may take, with an arena of its own; the bytes depend on
 * the texts alone.
 */
#include "codegen/ptx/object.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "codegen/ptx/nvrtc.h"
#include "codegen/ptx/text.h"

/* --- names --- */
/* Nodes of the first step that launches the kernel, joined by '+'. */
static const char *nodes_of(const dlc_module *module, uint32_t kernel)
{
    for (uint32_t i = 0; i < module->steps.n; i++) {
        const dlc_step *step = &module->steps.data[i];
        if (step->kind == DLC_STEP_LAUNCH && step->kernel == kernel && step->name)
            return step->name;
    }
    return module->kernels.data[kernel].kernel->name;
}

/* A C identifier: k3_layer1_conv1_relu. */
static const char *name_function(const dlc_module *module, uint32_t kernel, dlc_arena *arena)
{
    enum { LONGEST = 60 };
    char name[LONGEST + 1];
    size_t n = 0;
    for (const char *from = nodes_of(module, kernel); *from && n < LONGEST; from++) {
        int is_letter = dlc_is_alnum((unsigned char)*from);
        if (is_letter || (n && name[n - 1] != '_'))
            name[n++] = (char)(is_letter ? *from : '_');
    }
    while (n && name[n - 1] == '_')
        n--;
    name[n] = '\0';
    return dlc_arena_printf(arena, "k%u%s%s", kernel, n ? "_" : "", name);
}

/* By kernel: the first one with the same text. */
static void name_all(const dlc_module *module, dlc_arena *arena, dlc_cuda_sources *sources)
{
    for (uint32_t i = 0; i < sources->n; i++) {
        uint32_t first = 0;
        while (first < i && strcmp(sources->texts[first], sources->texts[i]) != 0)
            first++;
        sources->functions[i] = first < i ? sources->functions[first] : name_function(module, i, arena);
    }
}

static int is_first(const dlc_cuda_sources *sources, uint32_t kernel)
{
    uint32_t i = 0;
    while (sources->functions[i] != sources->functions[kernel])
        i++;
    return i == kernel;
}

/* --- texts --- */
dlc_status dlc_cuda_sources_make(const dlc_module *module, dlc_arena *arena, dlc_diag *diag, dlc_cuda_sources *sources)
{
    uint32_t n = module->kernels.n;
    sources->n = n;
    sources->texts = dlc_new_array(arena, const char *, n + 1u);
    sources->functions = dlc_new_array(arena, const char *, n + 1u);
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
    name_all(module, arena, sources);
    return DLC_OK;
}

const char *dlc_cuda_program(const dlc_cuda_sources *sources, dlc_arena *arena)
{
    dlc_str text = {0};
    dlc_str_add(&text, dlc_cuda_prelude);
    for (uint32_t i = 0; i < sources->n; i++)
        if (is_first(sources, i)) {
            dlc_str_printf(&text, "#undef " DLC_CUDA_FUNCTION "\n#define " DLC_CUDA_FUNCTION " %s\n", sources->functions[i]);
            dlc_str_add(&text, sources->texts[i]);
        }
    const char *program = dlc_arena_strdup(arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return program;
}

/* --- jobs --- */
typedef struct {
    int arch;
    dlc_arena *arena; /* of the result */
    dlc_diag diag;
    dlc_status status;
    dlc_nvrtc_code code;
} job;

typedef struct {
    const dlc_nvrtc *nvrtc;
    const char *program;
    job *jobs;
    uint32_t njobs;
    atomic_uint next;
} queue;

static void compile(const queue *q, job *j)
{
    j->arena = dlc_arena_create(0);
    dlc_diag_init(&j->diag, j->arena);
    j->status = dlc_nvrtc_compile_both(q->nvrtc, q->program, "kernels.cu", j->arch, j->arena, &j->diag, &j->code);
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

/* --- PTX --- */
static const struct {
    int ptx;
    uint32_t cuda;
} languages[] = {
#define DLC_PTX(ptx, cuda) {ptx, cuda},
#include "codegen/ptx/ptx.def"
#undef DLC_PTX
};

/* A pragma of PTX 8.3 (bytes of a vector that nobody uses; `ptxas` may then load fewer) becomes a comment of the same length. */
static void hide_pragmas(char *text)
{
    static const char pragma[] = ".pragma \"used_bytes_mask ", comment[] = "// used_bytes_mask ";
    for (char *at = strstr(text, pragma); at; at = strstr(at, pragma)) {
        size_t digits = strspn(at + sizeof pragma - 1, "0123456789"), whole = strcspn(at, "\n");
        memmove(at + sizeof comment - 1, at + sizeof pragma - 1, digits);
        memcpy(at, comment, sizeof comment - 1);
        memset(at + sizeof comment - 1 + digits, ' ', whole - (sizeof comment - 1 + digits));
    }
}

uint32_t dlc_ptx_settle(char *text, int arch, uint32_t cuda)
{
    enum { OLDEST = 80, NEWEST_GPU = 90 }; /* of the language that is asked for */
    char *version = strstr(text, "\n.version ");
    if (!version || !dlc_is_digit((unsigned char)version[10]) || version[11] != '.' || !dlc_is_digit((unsigned char)version[12]))
        return cuda;
    int ptx = 10 * (version[10] - '0') + (version[12] - '0');
    if (ptx > OLDEST && arch <= NEWEST_GPU && !dlc_is_digit((unsigned char)version[13])) {
        version[10] = '0' + OLDEST / 10;
        version[12] = '0' + OLDEST % 10;
        ptx = OLDEST;
        hide_pragmas(text);
    }
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++)
        if (languages[i].ptx >= ptx)
            return languages[i].cuda;
    return cuda;
}

/* --- tables --- */
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
    return (dlc_blob){dlc_arena_copy(arena, bytes, size_bytes), size_bytes, NULL};
}

static dlc_plan_binary describe_cubin(const dlc_blob *blob, int arch, uint32_t cuda, const dlc_cuda_sources *sources,
                                      uint32_t kernel)
{
    const dlc_cuda_launch *launch = &sources->launches[kernel];
    int64_t shared_bytes = sources->shared_bytes[kernel];
    dlc_plan_binary binary = {.kind = DLC_BINARY_CUBIN,
                              .arch = (uint32_t)arch,
                              .driver = cuda / 1000 * 1000, /* any of the same major version */
                              .size_bytes = blob->size_bytes};
    if (dlc_cubin_report(blob->bytes, blob->size_bytes, sources->functions[kernel], &binary) && shared_bytes >= 0)
        binary.blocks = dlc_cuda_occupancy(binary.arch, launch->threads, binary.registers,
                                           (uint64_t)shared_bytes + binary.shared_bytes);
    return binary;
}

/* Blobs from 1 on: cubins by architecture, PTX of the first; and the rows that say so for each kernel. */
static void fill_tables(const queue *q, const dlc_cuda_sources *sources, const int *archs, dlc_arena *arena, dlc_blob *blobs)
{
    uint32_t per_kernel = q->njobs + 1, cuda = (uint32_t)dlc_nvrtc_version(q->nvrtc) / 100 * 1000;
    cuda += (uint32_t)dlc_nvrtc_version(q->nvrtc) % 100 * 10;
    dlc_cuda_row *rows = dlc_new_array(arena, dlc_cuda_row, (size_t)sources->n * per_kernel + 1);
    char *ptx = dlc_arena_copy(arena, q->jobs->code.ptx, q->jobs->code.ptx_bytes);
    uint32_t driver = dlc_ptx_settle(ptx, archs[0], cuda);
    for (uint32_t k = 0; k < q->njobs; k++)
        blobs[1 + k] = copy_of(q->jobs[k].code.cubin, q->jobs[k].code.cubin_bytes, arena);
    blobs[per_kernel] = (dlc_blob){ptx, q->jobs->code.ptx_bytes, NULL};
    for (uint32_t i = 0; i < sources->n; i++) {
        dlc_cuda_row *row = &rows[(size_t)i * per_kernel];
        for (uint32_t k = 0; k < per_kernel; k++)
            row[k].blob = 1 + k;
        for (uint32_t k = 0; k < q->njobs; k++)
            row[k].binary = describe_cubin(&blobs[1 + k], archs[k], cuda, sources, i);
        row[q->njobs].binary = (dlc_plan_binary){.kind = DLC_BINARY_PTX,
                                                 .arch = (uint32_t)archs[0],
                                                 .driver = driver,
                                                 .size_bytes = q->jobs->code.ptx_bytes};
    }
    blobs[0] = (dlc_blob){rows, (size_t)sources->n * per_kernel * sizeof *rows, NULL};
}

dlc_status dlc_cuda_emit(const dlc_cuda_sources *sources, const int *archs, uint32_t narchs, uint32_t njobs,
                         dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs, uint32_t *nblobs)
{
    queue q = {.jobs = dlc_new_array(arena, job, narchs + 1u), .njobs = narchs};
    DLC_TRY(dlc_nvrtc_open(diag, &q.nvrtc));
    DLC_TRY(check_archs(q.nvrtc, archs, narchs, diag));
    q.program = dlc_cuda_program(sources, arena);
    for (uint32_t k = 0; k < narchs; k++)
        q.jobs[k].arch = archs[k];
    run_workers(&q, njobs ? njobs : 1);
    dlc_status status = judge(&q, diag);
    if (status == DLC_OK) {
        *nblobs = narchs + 2;
        *blobs = dlc_new_array(arena, dlc_blob, *nblobs);
        fill_tables(&q, sources, archs, arena, *blobs);
    }
    close_jobs(&q);
    return status;
}
