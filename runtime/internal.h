/* What the files of the runtime share. Nothing here is visible outside libdlcrt. */
#ifndef DLCRT_INTERNAL_H
#define DLCRT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "dlc/abi.h"
#include "dlc/runtime.h"
#include "runtime/strings.h"

/* --- error.c --- */
/* Sets this thread's text and returns `status`. */
dlc_status dlcrt_fail(dlc_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Zeroed, size overflow checked; NULL after a failure, whose text is set. */
void *dlcrt_alloc(size_t count, size_t size_bytes);
dlc_status dlcrt_no_memory(size_t size_bytes);

/* Nanoseconds of the clock that does not jump. */
static inline int64_t dlcrt_clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* --- text.c: text into a fixed buffer, never past its end --- */
typedef struct {
    char *text;
    size_t size_bytes, n; /* n counts what did not fit too */
} dlcrt_text;
void dlcrt_text_add(dlcrt_text *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void dlcrt_text_dims(dlcrt_text *out, uint32_t rank, const int64_t *dims); /* [1,3] */

/* --- cpu.c --- */
/* Bits of cpu.def this process may use; leave is asked of the system for those of `wanted` that
 * need it. */
uint64_t dlcrt_cpu_features(uint64_t wanted);
DLC_NODISCARD dlc_status dlcrt_cpu_check(void); /* DLC_CPU names nothing that is unknown */
dlc_arch dlcrt_cpu_arch(void);
const char *dlcrt_arch_name(unsigned arch);
const char *dlcrt_cpu_feature_name(unsigned bit);
uint32_t dlcrt_cpu_count(void); /* cores this process may use: affinity and cgroup quota */
/* Threads of a context with these options, which may be NULL. DLC_USAGE: DLC_NUM_THREADS is no number. */
dlc_status dlcrt_wanted_threads(const dlcrt_context_options *options, uint32_t *nthreads);
/* Default floating-point environment for kernels and sizes; the caller's comes back. */
uint32_t dlcrt_float_enter(void);
void dlcrt_float_leave(uint32_t state);

/* --- load.c: an ELF file to memory --- */
/* A part that is checked when something reads it. */
typedef struct {
    uint64_t at, size_bytes, checksum; /* bytes from the base */
} dlcrt_sealed;
enum { DLCRT_MOST_SEGMENTS = 16 };
typedef struct {
    unsigned char *base; /* NULL: linked into the program, nothing is known about its bounds */
    size_t size_bytes;
    size_t code_begin, code_end; /* offsets of the executable segment */
    struct {
        size_t begin, end;
    } readable[DLCRT_MOST_SEGMENTS]; /* offsets of what may be read: between segments there is nothing */
    uint32_t nreadable;
    const dlc_executable *entry;
    const uint64_t *sums; /* of the constants, one per DLC_SEAL_CHUNK bytes */
    dlcrt_sealed constants, binaries;
    uint64_t checksum; /* of its seal, and so of all that is loaded */
} dlcrt_image;
dlc_status dlcrt_image_load(int fd, const char *name, dlcrt_image *image);
void dlcrt_image_unload(dlcrt_image *image);

/* --- device.c: see runtime/device.h for what a row does --- */
typedef struct dlcrt_device_row dlcrt_device_row;
typedef struct {
    const dlcrt_device_row *row; /* NULL: none was found */
    const void *driver;          /* what the row opened, if anything */
    int handle, ordinal;
    uint32_t capability;  /* 10 * major + minor */
    int max_shared_bytes; /* dynamic shared memory of a block */
    char name[64];        /* the maker's */
    char text[96];        /* ours: "cuda:0 (…, sm_90)" */
    char passed[512];     /* why another device that is there was passed over; "" */
} dlcrt_device;
/* "cpu", "cuda", "cuda:1", "none"; NULL: any. */
typedef struct {
    uint32_t device; /* DLC_DEVICE_COUNT: any */
    int ordinal;     /* -1: any */
    int is_none;     /* nothing will run */
} dlcrt_wish;
dlc_status dlcrt_wish_read(const char *text, dlcrt_wish *wish);
/* The plan that runs best on what is there, of those whose bit is not in `passed`; for "none" plan
 * `number`. All plans' heads are checked. */
dlc_status dlcrt_choose(const dlcrt_image *image, const char *name, const dlcrt_wish *wish,
                        uint32_t number, uint64_t passed, const dlc_plan_entry **result,
                        dlcrt_device *device);

/* --- check.c --- */
/*
 * Every number of the executable that the runtime follows is in bounds. Chooses the plan: the best
 * this machine can run, or the best for the device that was asked for; for "none" plan `number`.
 */
dlc_status dlcrt_check(const dlcrt_image *image, const char *name, const char *wanted,
                       uint32_t number, uint64_t passed, const dlc_plan_entry **entry,
                       dlcrt_device *device);
/* --- executable.c --- */
/* --- counters.c: what has run --- */
enum { DLCRT_NSTATUSES = DLC_CANCELLED + 2 }; /* that a run ends with; the last is for those that have no row */
typedef struct {
    atomic_uint_least64_t nended[DLCRT_NSTATUSES];
    atomic_uint_least64_t time_ns;
    atomic_uint nactive;
} dlcrt_counters;

struct dlcrt_executable {
    atomic_uint users; /* itself and its contexts */
    dlcrt_image image;
    const dlc_plan_entry *entry;
    const dlc_plan *plan;
    const unsigned char *constants;
    dlcrt_device device;
    void *loaded; /* the device's: kernels and weights */
    int is_inert; /* no context may run it */
    atomic_int is_whole; /* what its plan reads of constants and binaries has been checked */
    pthread_mutex_t lock; /* held while it is */
    dlcrt_counters counters;
    uint64_t content;    /* a checksum that tells it from others without a file's name; 0: it has one */
    char name[];         /* of the file, for messages */
};
void dlcrt_executable_retain(dlcrt_executable *executable);

static inline int64_t dlcrt_count_begin(dlcrt_executable *executable)
{
    atomic_fetch_add_explicit(&executable->counters.nactive, 1, memory_order_relaxed);
    return dlcrt_clock_ns();
}
static inline void dlcrt_count_end(dlcrt_executable *executable, int64_t begin_ns, dlc_status status)
{
    dlcrt_counters *counters = &executable->counters;
    uint32_t row = (uint32_t)status < DLCRT_NSTATUSES ? (uint32_t)status : DLCRT_NSTATUSES - 1;
    atomic_fetch_add_explicit(&counters->time_ns, (uint64_t)(dlcrt_clock_ns() - begin_ns), memory_order_relaxed);
    atomic_fetch_add_explicit(&counters->nended[row], 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&counters->nactive, 1, memory_order_relaxed);
}

/* --- damage.c --- */
/* Before the plan's constants and binaries are read: checks them, once, by the threads of the pool (NULL: by this one).
 * DLC_INVALID names the bytes that are wrong. */
typedef struct dlcrt_pool dlcrt_pool;
dlc_status dlcrt_executable_check(dlcrt_executable *executable, dlcrt_pool *pool);
/* The binaries alone, for devices that load them. */
dlc_status dlcrt_executable_check_code(const dlcrt_executable *executable);

static inline const void *dlcrt_rows(const dlc_plan *plan, dlc_plan_rows rows)
{
    return (const unsigned char *)plan + rows.first;
}
static inline const char *dlcrt_string(const dlc_plan *plan, uint32_t string)
{
    return (const char *)dlcrt_rows(plan, plan->strings) + string;
}
/* Dimensions known without inputs, names of symbols; cells NULL: none is known. */
void dlcrt_tensor_describe(const dlc_plan *plan, const dlc_plan_tensor *tensor,
                           const int64_t *cells, uint32_t ncells, dlcrt_tensor_info *info);

/* --- size.c --- */
/* Runs instructions [first, first + count). lost[i]: cell i passed 64 bits. */
void dlcrt_size_run(const dlc_plan *plan, dlc_plan_rows insts, const int64_t *symbols,
                    int64_t *cells, uint8_t *lost);

/* --- threads.c --- */
typedef struct {
    dlc_kernel_fn kernel;
    void *const *buffers;
    const int64_t *symbols;
    unsigned char *scratch; /* of thread 0; thread t's is at t * scratch_stride */
    size_t scratch_stride;
    int64_t *fault;
    dlcrt_thread_profile *times; /* by thread; NULL: not wanted */
    int64_t start_ns;            /* of the run */
    uint32_t is_backward;        /* chunks are taken from the last to the first; a chunk's units still go forward */
} dlcrt_job;
/* Up to nthreads threads, the caller counted; NULL after a failure. */
dlcrt_pool *dlcrt_pool_create(uint32_t nthreads);
void dlcrt_pool_destroy(dlcrt_pool *pool);
uint32_t dlcrt_pool_threads(const dlcrt_pool *pool);
/* Around a run: the cores are shared among the runs that are under way. is_parallel: wakes sleeping workers ahead of the work. */
void dlcrt_pool_enter(dlcrt_pool *pool, int is_parallel);
void dlcrt_pool_leave(void);
/* Units [0, units) of the job over the threads; returns when all are done. */
void dlcrt_pool_run(dlcrt_pool *pool, const dlcrt_job *job, int64_t units, int64_t grain);
/* The same of what is no kernel; `work` is its only buffer, and a unit reads `unit_elems` elements. Pool NULL: this thread alone. */
void dlcrt_pool_run_units(dlcrt_pool *pool, dlc_kernel_fn run, void *work, int64_t units, int64_t unit_elems);

/* --- opaque.c --- */
typedef struct {
    void *data;
    dlc_dtype dtype;
    uint32_t rank;
    int64_t dims[DLCRT_MAX_RANK];
} dlcrt_operand;
typedef struct {
    const dlcrt_operand *operands; /* inputs, then outputs */
    const int64_t *attrs;
    const char *name; /* of the step, for messages */
    dlcrt_strings *strings;
    dlcrt_pool *pool; /* NULL: this thread alone */
} dlcrt_opaque_args;
typedef struct {
    const char *text;
    uint8_t ninputs, noutputs, nattrs;
    dlc_status (*count)(const dlcrt_opaque_args *args,
                        int64_t *symbol); /* NULL: no size depends on data */
    dlc_status (*run)(const dlcrt_opaque_args *args);
} dlcrt_opaque_info;
extern const dlcrt_opaque_info dlcrt_opaques[DLC_OPAQUE_COUNT];

/* --- context.c --- */
typedef struct {
    unsigned char *bytes;
    size_t size_bytes;
} dlcrt_memory; /* whole pages from the system */

struct dlcrt_context {
    dlcrt_executable *executable;
    const dlc_plan *plan;
    dlcrt_pool *pool;
    int64_t *symbols; /* by symbol */
    int64_t *cells;   /* by instruction */
    uint8_t *lost;
    int64_t *values;             /* by row of plan->cells: what kernels and shapes read */
    void **pointers;             /* by row of plan->refs */
    uint32_t *step_phase;        /* by step: the last phase that its sizes are of; 0: sized once and for all */
    uint64_t *step_sized;        /* by step: when it was, by nentered */
    uint64_t nentered;           /* phases behind the first entered so far */
    int64_t *input_dims;         /* DLCRT_MAX_RANK per input: the shapes everything is sized for */
    const dlcrt_tensor **inputs; /* of this run, by input */
    dlcrt_tensor **outputs;
    dlcrt_memory *own; /* by output: memory for callers that bring none */
    dlcrt_memory arena, scratch;
    dlcrt_memory host; /* of steps on the CPU in a plan of a device; arena is the device's then */
    const dlcrt_device_row *device; /* the executable's */
    void *held;                     /* what the device keeps for this context */
    size_t scratch_stride;
    uint32_t reached;            /* the phase that was computed last; later ones are of an earlier run, or lowest */
    uint32_t sized;              /* 1 + the last phase whose sizes hold; 0: none */
    uint32_t is_parallel;        /* some step has work for two threads */
    uint32_t nturns;             /* CPU: how often a loop of this run has begun anew */
    dlcrt_step_profile *profile; /* by step; NULL: not wanted */
    dlcrt_thread_profile *thread_times; /* by step, then thread of the pool; NULL with profile */
    int64_t start_ns;                   /* of a profiled run */
    dlcrt_strings strings;
    dlcrt_memory *numbers; /* by input: of its strings */
    int has_strings;       /* an input, output or operand is of strings */
    int poison;
    size_t held_bytes;      /* by dlcrt_context_grow */
    uint32_t max_mebibytes; /* of them; 0: no limit */
    int64_t fault;
    atomic_int is_cancelled;
    int64_t limit_ns, end_ns; /* 0: no limit; when this run has taken it */
};
/* Keeps the first `keep_bytes`. */
dlc_status dlcrt_memory_grow(dlcrt_memory *memory, size_t size_bytes, size_t keep_bytes);
void dlcrt_memory_free(dlcrt_memory *memory);
/* The same for memory of a context, which may have a limit. */
dlc_status dlcrt_context_grow(dlcrt_context *context, dlcrt_memory *memory, size_t size_bytes, size_t keep_bytes);
dlc_status dlcrt_context_size(dlcrt_context *context, const dlcrt_tensor *const *inputs);
/* Enters phase `phase`: sizes, conditions, memory and the pointers of its steps. */
dlc_status dlcrt_phase_enter(dlcrt_context *context, uint32_t phase);
/* Whether elements of its type in its shape, as cells have it, take so many bytes. */
int dlcrt_tensor_takes(const dlcrt_context *context, const dlc_plan_tensor *tensor, int64_t size_bytes);
/* Sizes and pointers of a step, anew if a phase was entered since; of one that binds, those before it does. */
dlc_status dlcrt_step_size(dlcrt_context *context, uint32_t step);
/* Those of a step that has bound its symbol. */
dlc_status dlcrt_step_size_bound(dlcrt_context *context, const dlc_plan_step *step);
/* The caller's buffer for output i is there and large enough, or the context's own is made so. */
dlc_status dlcrt_output_place(dlcrt_context *context, uint32_t i);

/* Of a step, by thread; NULL: no profile is wanted. */
static inline dlcrt_thread_profile *dlcrt_thread_times(const dlcrt_context *context, const dlc_plan_step *step)
{
    const dlc_plan_step *steps = dlcrt_rows(context->plan, context->plan->steps);
    return context->thread_times ? context->thread_times + (size_t)(step - steps) * dlcrt_pool_threads(context->pool) : NULL;
}

#endif
