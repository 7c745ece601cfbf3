/*
 * How long kernels would take on real GPUs: the virtual GPU (vgpu/) executes two or three blocks of each,
 * over memory of zeros, counts what they do, and its bound model makes of that a time for each GPU that
 * runs the target's code. Sizes that depend on symbols are those that estimates assume.
 */
#include "package/predict_cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "codegen/ptx/object.h"
#include "package/child.h"
#include "vgpu/predict.h"

enum { SAMPLE = 2, FIRST_BUFFER_LOG2 = 41, BUFFER_LOG2 = 40, MOST_WORKERS = 64 };
static const uint64_t most_instructions = UINT64_C(1) << 22; /* of a warp: beyond that nothing is predicted */

/* One kernel's launch. */
typedef struct {
    const char *function;
    const dlc_cuda_launch *launch;
    const dlc_kernel_cost *cost;
    size_t *buffer_bytes;
    uint64_t *parameters; /* addresses of buffers, symbols, the fault's address, first, units */
    uint32_t nbuffers, nsymbols, shared_bytes;
    int64_t units;
    vgpu_record_row row; /* what was counted; launches 0: nothing */
} trial;

typedef struct {
    const ptx_module *ptx;
    trial *trials;
    uint32_t n, next;
    pthread_mutex_t lock;
} queue;

/* --- what is launched --- */
static const dlc_step *first_launch(const dlc_module *module, uint32_t kernel)
{
    for (uint32_t i = 0; i < module->steps.n; i++)
        if (module->steps.data[i].kind == DLC_STEP_LAUNCH && module->steps.data[i].kernel == kernel)
            return &module->steps.data[i];
    return NULL;
}

/* False: nobody launches it, or it has no work at these sizes. */
static int set_up(const dlc_module *module, uint32_t k, const int64_t *sizes, dlc_arena *arena, trial *t)
{
    const dlc_step *step = first_launch(module, k);
    const dlc_schedule *schedule = module->kernels.data[k].schedule;
    dlc_kernel *kernel = schedule->kernel; /* expressions are added, nothing changes */
    if (!step)
        return 0;
    int64_t *symbols = dlc_new_array(arena, int64_t, kernel->symbols.n + 1);
    for (uint32_t s = 0; s < kernel->symbols.n; s++)
        symbols[s] = dlc_expr_eval(module->pool, step->symbols[s], sizes);
    t->nbuffers = kernel->buffers.n;
    t->nsymbols = kernel->symbols.n;
    t->buffer_bytes = dlc_new_array(arena, size_t, t->nbuffers + 1);
    t->parameters = dlc_new_array(arena, uint64_t, t->nbuffers + t->nsymbols + 3);
    for (uint32_t b = 0; b < t->nbuffers; b++) {
        const dlc_buffer *buffer = &kernel->buffers.data[b];
        dlc_expr elems = dlc_layout_elems(kernel->pool, &buffer->layout, buffer->type.rank, buffer->type.dims);
        t->buffer_bytes[b] =
            (size_t)dlc_expr_eval(kernel->pool, elems, symbols) * dlc_dtype_bytes(buffer->type.dtype);
    }
    t->buffer_bytes[t->nbuffers] = sizeof(int64_t); /* the fault word */
    for (uint32_t s = 0; s < t->nsymbols; s++)
        t->parameters[t->nbuffers + s] = (uint64_t)symbols[s];
    t->units = dlc_expr_eval(kernel->pool, dlc_schedule_units(kernel, schedule), symbols);
    t->parameters[t->nbuffers + t->nsymbols + 2] = (uint64_t)t->units;
    t->shared_bytes = t->launch->fixed_bytes +
                      t->launch->scratches * (uint32_t)dlc_expr_eval(kernel->pool, dlc_schedule_scratch(schedule), symbols);
    return t->units > 0;
}

/* --- a launch on the virtual GPU --- */
static const ptx_function *function_called(const ptx_module *ptx, const char *name)
{
    for (uint32_t i = 0; i < ptx->functions.n; i++)
        if (!strcmp(ptx->functions.data[i].name, name))
            return &ptx->functions.data[i];
    return NULL;
}

static uint64_t address_of(uint32_t buffer)
{
    return (UINT64_C(1) << FIRST_BUFFER_LOG2) + ((uint64_t)buffer << BUFFER_LOG2);
}

/* Memory of zeros, of which what is touched is there. */
static int place_all(const trial *t, vgpu_memory *memory, void **bytes)
{
    for (uint32_t b = 0; b <= t->nbuffers; b++) {
        bytes[b] = mmap(NULL, t->buffer_bytes[b] + 1, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (bytes[b] == MAP_FAILED) {
            bytes[b] = NULL;
            return 0;
        }
        vgpu_memory_add(memory, &(vgpu_region){.base = address_of(b),
                                               .size_bytes = t->buffer_bytes[b],
                                               .bytes = bytes[b],
                                               .is_writable = 1});
        t->parameters[b < t->nbuffers ? b : t->nbuffers + t->nsymbols] = address_of(b);
    }
    return 1;
}

static void run(const ptx_module *ptx, trial *t, vgpu_memory *memory, dlc_arena *arena)
{
    const ptx_function *function = function_called(ptx, t->function);
    uint64_t nblocks = ((uint64_t)t->units + t->launch->units_per_block - 1) / t->launch->units_per_block;
    vgpu_counts counts = {0};
    vgpu_record_table table = {0};
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    if (!function || nblocks > INT32_MAX)
        return;
    vgpu_code *code = vgpu_decode(ptx, function, arena);
    vgpu_launch launch = {.grid = {(uint32_t)nblocks, 1, 1},
                          .block = {t->launch->threads, 1, 1},
                          .shared_bytes = t->shared_bytes,
                          .parameters = (const uint8_t *)t->parameters,
                          .memory = memory,
                          .limit = most_instructions,
                          .stride = nblocks > SAMPLE ? (uint32_t)((nblocks + SAMPLE - 1) / SAMPLE) : 0,
                          .counts = &counts};
    if (vgpu_run(code, &launch, &diag) != DLC_OK)
        return;
    vgpu_record_row *row = vgpu_record_find(&table, 0, code, &launch);
    t->row = *row;
    free(table.rows);
    t->row.launches = 1;
    t->row.counts = counts;
    t->row.shared_bytes += t->cost->shared_bytes >= 0 ? (uint32_t)t->cost->shared_bytes - t->shared_bytes : 0;
    if (t->cost->registers)
        t->row.registers = t->cost->registers;
}

static void try_kernel(const ptx_module *ptx, trial *t)
{
    dlc_arena *arena = dlc_arena_create(0);
    vgpu_memory memory = {0};
    void **bytes = dlc_new_array(arena, void *, t->nbuffers + 1);
    if (place_all(t, &memory, bytes))
        run(ptx, t, &memory, arena);
    vgpu_memory_deinit(&memory);
    for (uint32_t b = 0; b <= t->nbuffers; b++)
        if (bytes[b])
            munmap(bytes[b], t->buffer_bytes[b] + 1);
    dlc_arena_destroy(arena);
}

/* --- all kernels --- */
static void *work(void *argument)
{
    queue *q = argument;
    for (;;) {
        pthread_mutex_lock(&q->lock);
        uint32_t k = q->next++;
        pthread_mutex_unlock(&q->lock);
        if (k >= q->n)
            return NULL;
        if (q->trials[k].units > 0)
            try_kernel(q->ptx, &q->trials[k]);
    }
}

static void run_all(queue *q, uint32_t njobs)
{
    pthread_t workers[MOST_WORKERS];
    uint32_t n = 0;
    pthread_mutex_init(&q->lock, NULL);
    while (n + 1 < njobs && n + 1 < q->n && n < MOST_WORKERS && !pthread_create(&workers[n], NULL, work, q))
        n++;
    work(q);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(workers[i], NULL);
    pthread_mutex_destroy(&q->lock);
}

/* --- prices: a child finds them, and hands them back by number --- */
typedef struct {
    uint32_t kernel, gpu, bound, zero;
    double us;
} numbered_price;

typedef struct {
    const dlc_module *module;
    const dlc_cuda_sources *sources;
    const char *text;
    const dlc_kernel_cost *costs;
    uint32_t njobs;
} job;

static uint32_t price(const queue *q, int arch, numbered_price *prices)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < q->n; k++)
        for (uint32_t g = 0; q->trials[k].row.launches && g < VGPU_GPU_COUNT; g++) {
            vgpu_bound bound;
            if (vgpu_gpus[g].capability < arch)
                continue;
            double us = vgpu_predict(&vgpu_gpus[g], &q->trials[k].row, &bound);
            prices[n++] = (numbered_price){k, g, bound, 0, us};
        }
    return n;
}

static dlc_status find_prices(const void *work, dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs, uint32_t *nblobs)
{
    const job *asked = work;
    uint32_t n = asked->sources->n;
    const int64_t *sizes = dlc_module_usual_values(asked->module, DLC_NOMINAL_SYMBOL, arena);
    numbered_price *prices = dlc_new_array(arena, numbered_price, (size_t)n * VGPU_GPU_COUNT + 1);
    queue q = {.trials = dlc_new_array(arena, trial, n + 1u), .n = n};
    ptx_module *ptx;
    DLC_TRY(ptx_parse(asked->text, arena, diag, &ptx));
    q.ptx = ptx;
    for (uint32_t k = 0; k < n; k++) {
        q.trials[k] = (trial){
            .function = asked->sources->functions[k], .launch = &asked->sources->launches[k], .cost = &asked->costs[k]};
        if (!set_up(asked->module, k, sizes, arena, &q.trials[k]))
            q.trials[k].units = 0;
    }
    run_all(&q, asked->njobs);
    *blobs = dlc_new(arena, dlc_blob);
    **blobs = (dlc_blob){.bytes = prices,
                         .size_bytes = price(&q, atoi(asked->module->target->cpu), prices) * sizeof *prices};
    *nblobs = 1;
    return DLC_OK;
}

/* A kernel's prices stand together. */
static void take_prices(const dlc_blob *blob, dlc_arena *arena, dlc_kernel_cost *costs)
{
    size_t n = blob->size_bytes / sizeof(numbered_price);
    dlc_kernel_price *prices = dlc_new_array(arena, dlc_kernel_price, n + 1);
    for (size_t i = 0; i < n; i++) {
        numbered_price found;
        memcpy(&found, (const char *)blob->bytes + i * sizeof found, sizeof found);
        prices[i] = (dlc_kernel_price){vgpu_gpus[found.gpu].name, vgpu_bounds[found.bound], found.us};
        if (!costs[found.kernel].nprices++)
            costs[found.kernel].prices = &prices[i];
    }
}

dlc_status dlc_cuda_predict(const dlc_module *module, const dlc_cuda_sources *sources, const char *text, uint32_t njobs,
                            dlc_arena *arena, dlc_diag *diag, dlc_kernel_cost *costs)
{
    const job asked = {module, sources, text, costs, njobs};
    dlc_child_code code;
    DLC_TRY(dlc_child_emit(find_prices, &asked, arena, diag, &code));
    take_prices(&code.blobs[0], arena, costs);
    dlc_child_close(&code);
    return DLC_OK;
}
