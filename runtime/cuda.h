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

/* CUresult, as far as anything depends on it. */
enum {
    DLCRT_CU_INVALID_VALUE = 1,
    DLCRT_CU_OUT_OF_MEMORY = 2,
    DLCRT_CU_NOT_INITIALIZED = 3,
    DLCRT_CU_INVALID_HANDLE = 400,
    DLCRT_CU_FIRST_OF_LAUNCH = 700,
    DLCRT_CU_LAST_OF_LAUNCH = 719
};

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

/* Device `ordinal`, or for -1 the first whose capability is highest, of those that answer; without
 * its row. Opens the driver when nobody has. */
dlc_status dlcrt_cuda_find(int ordinal, dlcrt_device *device);

/* --- binary.c --- */
/* The binary of a kernel that suits the device: a cubin before PTX, then the highest capability;
 * NULL: none does. */
const dlc_plan_binary *dlcrt_binary_find(const dlc_plan *plan, uint32_t kernel,
                                         uint32_t capability);
/* Of the row: device.h. */
uint32_t dlcrt_cuda_rank(const dlcrt_candidate *of, const dlcrt_device *device);
dlc_status dlcrt_cuda_check(const dlcrt_candidate *of);

/* --- cuda.c --- */
/* Of an executable on its device: kernels and weights, shared by its contexts, made for the first
 * of them. */
typedef struct {
    pthread_mutex_t lock;
    int is_ready;
    void *context;     /* the device's primary one */
    void **modules;    /* by kernel; NULL: the function is of an equal kernel's module */
    void **functions;  /* by kernel */
    int *shared_bytes; /* by kernel: dynamic shared memory it was last allowed, when more than 48
                          KiB */
    uint64_t weights;  /* address; those at [weights_begin, weights_end) of the constants */
    uint64_t weights_begin, weights_end;
} dlcrt_cuda;

typedef struct {
    uint64_t at;
    size_t size_bytes;
    int is_own; /* an allocation of its own, else part of the context's block */
} dlcrt_region;

/* Of a context. */
typedef struct {
    void *stream;       /* ours: for captures, and for runs when the caller gave none */
    void *used;         /* what runs go into */
    dlcrt_region block; /* arena, inputs, outputs and faults of phase 0 together */
    dlcrt_region arena;
    dlcrt_region *inputs, *outputs;
    uint64_t faults;      /* address; a word per step, 0 until a kernel of it faults */
    int64_t *host_faults; /* where they are read to */
    void **parameters;    /* of one launch */
    void *exec;           /* the steps as a graph; NULL: none yet */
    uint32_t nalike;      /* runs since anything was placed */
    uint8_t is_graph;     /* every step runs on the device */
    uint8_t is_async;
    uint8_t is_pending; /* the stream may hold work, the fault words may tell of it */
} dlcrt_cuda_run;

#endif
