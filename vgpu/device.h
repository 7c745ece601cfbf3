/* Inside the driver: objects behind handles, streams of work, and what the one kind of device is
 * like. */
#ifndef DLC_VGPU_DEVICE_H
#define DLC_VGPU_DEVICE_H

#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include "vgpu/control.h"
#include "vgpu/predict.h"

/* CUresult */
enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX = 222,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    OUT_OF_RESOURCES = 701,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901
};
enum { PLAIN_SHARED_BYTES = 48 << 10, MAX_THREADS = 1024 };
enum { CAPTURE_GLOBAL, CAPTURE_THREAD, CAPTURE_RELAXED };

typedef enum { MEMORY = 1, HOST_MEMORY, MODULE, FUNCTION, STREAM, GRAPH, EXEC, EVENT } kind;
typedef struct {
    kind what;
    unsigned char *bytes, *written; /* MEMORY, HOST_MEMORY; written NULL: nobody looks */
    size_t size_bytes;
    const void *image; /* MODULE */
    dlc_arena *arena;  /* MODULE */
    ptx_module *parsed;
} object;

typedef struct {
    object head;
    object *module;
    vgpu_code *code;       /* NULL: opaque */
    unsigned shared_bytes; /* what a launch may ask for */
    uint64_t number;       /* since the start */
} function;

typedef enum { COPY, FILL, LAUNCH, RECORD, AWAIT } action;
typedef struct {
    action what;
    uint64_t id;           /* in the graph it is of, and in what was made of that */
    uint64_t *after;       /* ids of those that must be done before */
    size_t nafter;
    uint64_t to, from;     /* COPY, FILL */
    size_t size_bytes;     /* COPY, FILL */
    unsigned char *staged; /* COPY of host memory */
    unsigned char value;   /* FILL */
    function *kernel;      /* LAUNCH */
    unsigned grid[3], block[3], shared_bytes;
    unsigned char *parameters; /* LAUNCH: the block of them */
    size_t parameter_bytes;
    struct event *event; /* RECORD, AWAIT */
    uint64_t sequence;   /* AWAIT: how far the event's stream must come */
} node;

typedef struct graph {
    object head;
    node *nodes;
    size_t nnodes, capacity;
} graph;

typedef struct stream {
    object head;
    unsigned flags;
    node *queue;
    size_t nqueued, capacity;
    uint64_t ndone; /* since it was made */
    double time_us; /* of the device, as predicted */
    graph *recording;
    int mode, is_invalid;
    pthread_t owner; /* who records */
} stream;

typedef struct event {
    object head;
    stream *in; /* where it was recorded last; NULL: nowhere */
    uint64_t sequence;
    double time_us;
} event;

typedef struct {
    pthread_mutex_t lock;
    object **objects;
    unsigned nobjects, capacity, nlive;
    int nretained, npushed; /* of all threads */
    pid_t pid;              /* that called cuInit */
    char failing[64];
    unsigned fail_in;
    int has_failed;
    int ndevices, capability, version, is_opaque, is_backwards;
    uint64_t limit; /* control.h */
    unsigned sample; /* blocks of a launch that run, about; 0: all. Then nobody looks for what nobody wrote */
    int sticky; /* the fault that all calls tell until the context is gone */
    char fault[512];
    const vgpu_kernels *kernels;
    const void *newest_image;
    uint64_t bias; /* device address - host address: host code that follows one ends */
    vgpu_memory memory;
    stream legacy, orphans; /* orphans: work of streams that are gone; done when all must be */
    uint64_t nfunctions, nnodes; /* so far */
    vgpu_record_table records;
    const vgpu_gpu *gpu;
} device;

extern device vgpu_device;

_Noreturn void vgpu_die(const char *what);
void *vgpu_add(kind what, size_t size_bytes);
/* Not one: the process ends. */
object *vgpu_find(void *handle, kind what);
/* As vgpu_find, or the stream that is always there. */
stream *vgpu_stream(void *handle);
void vgpu_drop(object *o);
/* Drops what no stream needs any more; else the process ends. */
void vgpu_release(object *o);
/* The allocation that holds these bytes, or NULL. */
object *vgpu_holder(uint64_t at, size_t size_bytes);
unsigned char *vgpu_host(uint64_t at);

/* Into the graph, behind those with these ids; its own. */
uint64_t vgpu_add_node(graph *g, node n, const uint64_t *after, size_t nafter);
/* Into the stream, or into the graph that it records. */
void vgpu_put(stream *s, node n);
/* All that is in the stream is done; 0, or what went wrong. */
int vgpu_finish(stream *s);
int vgpu_finish_until(stream *s, uint64_t sequence);
/* Bytes that the host gets: 0, or the fault that nobody has written some of them. */
int vgpu_must_be_written(uint64_t from, size_t size_bytes);
/* What the stream has not done is left to be done some time. */
void vgpu_abandon(stream *s);
void vgpu_free_node(node *n);
node vgpu_copy_node(const node *n);

/* driver.c: a launch as work; 0, or why a driver would refuse it. */
int vgpu_make_launch(void *handle, const unsigned *grid, const unsigned *block, unsigned shared,
                     void **parameters, node *made);

/* image.c: 0, or why a driver of the version and a device of the capability refuse it, in words as
 * well. */
int vgpu_load_image(object *module, const void *image, char *log, size_t log_bytes);

/* The CUDA version of a driver's branch, 0: there is none; the newest GPU that a driver knows. */
int vgpu_driver_version(int branch);
int vgpu_newest_capability(int version);

/* A call may be made now: 0, or the fault that sticks. */
int vgpu_entry(const char *symbol);
/* As a driver refuses what might disturb a capture, which then is worth nothing: 0 or
 * CAPTURE_UNSUPPORTED. */
int vgpu_unsafe(void);
void vgpu_needs_context(void);
extern _Thread_local int vgpu_npushed, vgpu_capture_mode;

static inline void vgpu_unlock(const int *unused)
{
    (void)unused;
    pthread_mutex_unlock(&vgpu_device.lock);
}

#define EXPORT __attribute__((visibility("default")))
/* A function of the driver: declared, and begun. */
#define DRIVER(name, ...)                                                                          \
    EXPORT int name(__VA_ARGS__);                                                                  \
    int name(__VA_ARGS__)
/* Of every call but cuInit: one at a time, and only in the process that called it. */
#define GUARD()                                                                                    \
    __attribute__((cleanup(vgpu_unlock))) const int guard_ =                                       \
        pthread_mutex_lock(&vgpu_device.lock);                                                     \
    (void)guard_;                                                                                  \
    if (vgpu_device.pid != getpid())                                                               \
    return NOT_INITIALIZED
#define ENTER()                                                                                    \
    do {                                                                                           \
        int refused_ = vgpu_entry(__func__);                                                       \
        if (refused_)                                                                              \
            return refused_;                                                                       \
    } while (0)
/* Of calls that may not be made while somebody records. */
#define SAFE()                                                                                     \
    do {                                                                                           \
        int unsafe_ = vgpu_unsafe();                                                               \
        if (unsafe_)                                                                               \
            return unsafe_;                                                                        \
    } while (0)

#endif
