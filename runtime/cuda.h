/* CUDA inside the runtime: the driver, opened on demand (driver.c), and what an executable and its
 * contexts keep on a device (cuda.c). Addresses of device memory are numbers, held in void * where
 * host addresses may stand as well. */
#ifndef DLCRT_CUDA_H
#define DLCRT_CUDA_H

#include <pthread.h>
#include <sys/types.h>

#include "runtime/device.h"

/* --- driver.c --- */
typedef enum {
#define DLC_DRIVER(field, symbol, parameters) DLCRT_CU_##field,
#include "runtime/driver.def"
#undef DLC_DRIVER
    DLCRT_CU_COUNT
} dlcrt_driver_call;

/* CUresult, as far as anything but its status (driver_errors.def) depends on it. */
enum { DLCRT_CU_INVALID_VALUE = 1, DLCRT_CU_NOT_INITIALIZED = 3 };

typedef struct {
    void *library;
    pid_t pid;   /* the process it works in */
    int version; /* of CUDA: 1000 * major + 10 * minor */
#define DLC_DRIVER(field, symbol, parameters) int(*field) parameters;
#include "runtime/driver.def"
#undef DLC_DRIVER
} dlcrt_driver;

/* Sets the text "CUDA driver: cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (out of memory): WHAT" and
 * returns its status. */
dlc_status dlcrt_driver_fail(const dlcrt_driver *driver, int result, dlcrt_driver_call call,
                             const char *what);
/* Leaves the calling function with a status when the driver refuses. */
#define DLCRT_CUDA(driver, field, what, ...)                                                       \
    do {                                                                                           \
        int result_ = (driver)->field(__VA_ARGS__);                                                \
        if (result_)                                                                               \
            return dlcrt_driver_fail(driver, result_, DLCRT_CU_##field, what);                     \
    } while (0)

/* Allocations, releases and loading neither end nor are refused by what another library records: the
 * thread says so before (mode: what it said until then) and takes it back behind them. */
dlc_status dlcrt_capture_relax(const dlcrt_driver *driver, int *mode);
void dlcrt_capture_restore(const dlcrt_driver *driver, int mode);

/* Device `ordinal`, or for -1 the first whose capability is highest, of those that answer; without
 * its row. Opens the driver when nobody has. */
dlc_status dlcrt_cuda_find(int ordinal, dlcrt_device *device);

/* --- binary.c --- */
/* The nth best binary of a kernel that suits the device and its driver: cubins before PTX, then by
 * capability; NULL: there are no more. */
const dlc_plan_binary *dlcrt_binary_find(const dlc_plan *plan, uint32_t kernel,
                                         const dlcrt_device *device, uint32_t nth);
/* Of the row: device.h. */
uint32_t dlcrt_cuda_rank(const dlcrt_candidate *of, const dlcrt_device *device);
dlc_status dlcrt_cuda_check(const dlcrt_candidate *of);

/* --- cuda_load.c --- */
typedef struct {
    uint64_t offset; /* of the binary it is made of */
    void *handle;    /* NULL: the driver did not take it */
} dlcrt_cuda_module;

/* Of an executable on its device: kernels, loaded when it is opened, and weights, uploaded for its
 * first context; shared by all. */
typedef struct {
    pthread_mutex_t lock;
    int is_ready;      /* the weights are there */
    void *context;     /* the device's primary one */
    dlcrt_cuda_module *modules; /* as many as were tried; room for the plan's binaries */
    uint32_t nmodules;
    void **functions;  /* by kernel */
    int *shared_bytes; /* by kernel: dynamic shared memory it was last allowed, when more than 48
                          KiB */
    uint64_t weights;  /* address; those at [weights_begin, weights_end) of the constants */
    uint64_t weights_begin, weights_end;
} dlcrt_cuda;

/* Of the row: device.h. */
dlc_status dlcrt_cuda_load(dlcrt_executable *executable);
void dlcrt_cuda_unload(dlcrt_executable *executable);
/* The weights are there, or come now. */
dlc_status dlcrt_cuda_use(dlcrt_executable *executable);

/* --- cuda.c --- */
typedef struct {
    uint64_t at;
    size_t size_bytes;
    int is_own; /* an allocation of its own, else part of the context's block */
} dlcrt_region;

/* An input or output of this run: the caller's memory of the device, or ours. */
typedef struct {
    uint64_t at;   /* what kernels are given */
    uint64_t seen; /* the address of the caller's that was last looked at */
    int is_fit;    /* it is memory of this device that kernels may be given */
} dlcrt_bound;

/* CUDA_KERNEL_NODE_PARAMS as drivers have had it since CUDA 10 */
typedef struct {
    void *function;
    unsigned grid[3], block[3], shared_bytes;
    void **parameters, **extra;
} dlcrt_cuda_kernel;

/* A node of the graph: one launch or copy of a step, of which a loop makes as many as it has turns. Its
 * words are the addresses of the step's refs, in their order, and a kernel's other parameters. */
typedef struct {
    void *node;
    size_t first_word;
    uint32_t step, nblocks, shared_bytes;
    size_t size_bytes; /* of a copy */
} dlcrt_cuda_node;

typedef struct dlcrt_cuda_times dlcrt_cuda_times; /* cuda_times.c */

/* Of a context. */
typedef struct {
    void *stream;       /* ours: for runs when the caller gave none */
    void *used;         /* what runs go into */
    dlcrt_region block; /* arena, inputs and outputs of phase 0 together */
    dlcrt_region arena;
    dlcrt_region *inputs, *outputs;
    dlcrt_bound *in, *out;
    volatile int64_t *faults; /* of the host, written by the device: a word per step, 0 until a
                                 kernel of it faults */
    uint64_t device_faults;   /* their address there */
    void **parameters;        /* of one launch */
    void *graph, *exec;       /* the steps as a graph; NULL: none yet */
    void *newest;             /* node of the graph while it is made */
    dlcrt_cuda_node *nodes;   /* of the graph, without those of events */
    uint64_t *words;          /* what they were given */
    size_t nnodes, nodes_room, nwords, words_room;
    dlcrt_cuda_times *times;  /* of a profile; NULL: none is wanted */
    uint64_t ngiven;          /* launches and copies that the last walk gave to the stream */
    uint32_t nalike;          /* runs since anything was placed */
    uint8_t way;              /* dlcrt_way */
    uint8_t is_graph;         /* shapes say which steps run, all of them on the device */
    uint8_t is_async;
    uint8_t is_current; /* the caller sees to the thread's context */
    uint8_t is_pending; /* the stream may hold work, the fault words may tell of it */
} dlcrt_cuda_run;

static inline const dlcrt_driver *dlcrt_driver_in(const dlcrt_context *context)
{
    return context->executable->device.driver;
}
static inline dlcrt_cuda_run *dlcrt_run_of(const dlcrt_context *context)
{
    return context->held;
}
/* Where the step stands in the plan. */
static inline uint32_t dlcrt_cuda_number(const dlcrt_context *context, const dlc_plan_step *step)
{
    return (uint32_t)(step - (const dlc_plan_step *)dlcrt_rows(context->plan, context->plan->steps));
}

/* --- cuda_steps.c --- */
typedef enum { DLCRT_WAY_STREAM, DLCRT_WAY_GRAPH } dlcrt_way;
/* Of the row: device.h. They give the step's work to the stream or to the graph, as `way` says. */
dlc_status dlcrt_cuda_size_launch(dlcrt_context *context, const dlc_plan_step *step,
                                  size_t *scratch_bytes);
dlc_status dlcrt_cuda_launch(dlcrt_context *context, const dlc_plan_step *step);
dlc_status dlcrt_cuda_copy(dlcrt_context *context, const dlc_plan_step *step);
/* --- cuda_graph.c --- */
/* Launches and copies beyond which a run is walked rather than recorded: a node takes memory of the
 * driver, and a graph is made whole before its first launch. */
#ifndef DLCRT_MOST_NODES /* tests say fewer */
#define DLCRT_MOST_NODES 32768
#endif
/* Around a walk of the plan's steps: what that gives are nodes of a graph, which is made at the end, unless it failed. */
dlc_status dlcrt_graph_begin(dlcrt_context *context);
dlc_status dlcrt_graph_end(dlcrt_context *context, dlc_status walked);
/* A node of it, behind the newest. */
dlc_status dlcrt_graph_kernel(dlcrt_context *context, const dlc_plan_step *step,
                              const dlcrt_cuda_kernel *kernel);
dlc_status dlcrt_graph_copy(dlcrt_context *context, const dlc_plan_step *step, uint64_t to,
                            uint64_t from, size_t size_bytes);
dlc_status dlcrt_graph_event(dlcrt_context *context, void *event, const char *what);
/* Nodes that read or write the caller's memory are given the addresses that context->pointers has for it
 * now, from the next launch on. */
dlc_status dlcrt_graph_rebind(dlcrt_context *context);
void dlcrt_graph_drop(dlcrt_context *context);

/* --- cuda_times.c --- */
/* Room for a profile; then, around each step, what records events. */
dlc_status dlcrt_times_create(dlcrt_context *context);
void dlcrt_times_destroy(dlcrt_context *context);
dlc_status dlcrt_times_begin(dlcrt_context *context);
dlc_status dlcrt_times_stamp(dlcrt_context *context, const dlc_plan_step *step, int is_behind);
/* Behind the last step, when all is done: into the context's profile. */
dlc_status dlcrt_times_read(dlcrt_context *context);

#endif
