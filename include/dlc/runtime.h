/*
 * libdlcrt: runs what `dlc compile` made. C and C++; needs libc alone (and, to run on a CUDA
 * device, its driver).
 *
 *   dlcrt_executable *model;
 *   dlcrt_context *context;
 *   dlcrt_executable_open("model.so", &model);
 *   dlcrt_context_create(model, NULL, &context);
 *   dlcrt_context_run(context, inputs, 1, outputs, 1);
 *
 * Every call that can fail returns a dlc_status; dlcrt_last_error() then has the sentence (per
 * thread). Nothing aborts, prints or exits. Executables are immutable and shared by any number of
 * contexts; a context belongs to one thread at a time, and contexts run in parallel.
 *
 * Environment, read when a context or executable is created:
 *   DLC_NUM_THREADS=N           threads of a context whose options say 0; 0: as if it were not set
 *   DLC_DEVICE=cpu|cuda|cuda:N  device of executables whose options name none
 *   DLC_CPU=LIST                takes the CPU for one with only these features (x86-64-v2, -v3, -v4
 *                               and names of dlc/cpu.def, comma separated): to test refusals. A name
 *                               behind a '+' is there whatever the processor says, as an emulator
 *                               may have it (+amx-int8); a list of such names alone limits nothing
 */
#ifndef DLC_RUNTIME_H
#define DLC_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include "dlc/dtype.h"
#include "dlc/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DLCRT_API __attribute__((visibility("default")))
#define DLCRT_MAX_RANK 8

typedef struct dlcrt_executable dlcrt_executable;
typedef struct dlcrt_context dlcrt_context;
struct dlc_executable; /* dlc/abi.h: a model linked into the program */

/*
 * Why the last call on this thread that failed did: what was found, what was wanted. "" when none
 * failed. Holds until the next failure on this thread, or the next opening of an executable: one
 * that succeeds leaves "", or why a plan of it was passed over.
 */
DLCRT_API const char *dlcrt_last_error(void);
DLCRT_API const char *dlcrt_version(void);

/*
 * A tensor of the caller: row-major in the model's (ONNX's) order of dimensions, any alignment. Outputs that begin up to 512 bytes behind
 * an input, not counting whole pages, may be stored at a third of the speed (docs/speed.md, "Making it faster").
 *
 * Elements of strings (DLC_STR) are pointers to texts that end with a zero, UTF-8: an input's are the caller's, an output's
 * point to memory of the context until its next run, whose inputs they must not be.
 *
 * Inputs: name NULL is by position, else the input of that name; size_bytes 0 is not checked
 * against the shape.
 *
 * Outputs: name likewise. data is the caller's buffer of size_bytes bytes, or NULL: set to memory
 * of the context that holds until its next run, of which it is no input. dtype, rank, dims and (for
 * memory of the context) size_bytes are set by the run.
 */
typedef struct {
    const char *name;
    void *data;
    size_t size_bytes;
    dlc_dtype dtype;
    uint32_t rank;
    int64_t dims[DLCRT_MAX_RANK];
    uint32_t on_device; /* 1: data is memory of the executable's CUDA device, in its primary context:
                           used where it lies if aligned to 16 bytes, else copied there */
    uint32_t reserved;  /* 0 */
} dlcrt_tensor;

/* --- executables --- */
/*
 * Loads a .so made by `dlc compile`; it stays mapped, so replace it by renaming, as dlc does, and
 * do not write into it while it is open. DLC_IO: cannot be read. DLC_INVALID: not an executable of
 * dlc, damaged, or of another format version. DLC_NO_DEVICE: made for another processor; names the
 * missing feature. No code of the file runs before its checksum and tables were checked, but an
 * executable is code: open only those you trust. Opening reads code and tables alone; weights are
 * read, and checked against their checksums, by the first run, which refuses (DLC_INVALID) before
 * any output is touched. On CUDA devices that happens when the first context is created.
 */
DLCRT_API DLC_NODISCARD dlc_status dlcrt_executable_open(const char *path,
                                                         dlcrt_executable **result);
/* The same from a file descriptor (a memfd, say); it may be closed afterwards. */
DLCRT_API DLC_NODISCARD dlc_status dlcrt_executable_open_fd(int fd, dlcrt_executable **result);
/* A model linked into the program: &dlc_executable_NAME of its generated header. */
DLCRT_API DLC_NODISCARD dlc_status dlcrt_executable_from(const struct dlc_executable *image,
                                                         dlcrt_executable **result);
/*
 * The same with a choice of device. An executable may hold plans for several; without a wish the
 * best that is there is taken: a CUDA device (the driver library is opened only for executables
 * that hold a plan for one), else the plan that uses most of the processor. DLC_NO_DEVICE says what
 * the executable holds and why none of it runs here.
 */
typedef struct {
    const char *path;                   /* of a file; or */
    const struct dlc_executable *image; /* linked into the program; or, with neither, */
    int fd;
    const char *device; /* "cpu", "cuda", "cuda:1"; NULL: DLC_DEVICE, else any. "none": plan number
                           `plan` for reading alone: contexts can be sized, not run */
    uint32_t plan;
    uint32_t reserved[3]; /* 0 */
} dlcrt_executable_options;
DLCRT_API DLC_NODISCARD dlc_status
dlcrt_executable_open_with(const dlcrt_executable_options *options, dlcrt_executable **result);
/*
 * What "cuda" or "cuda:1" is on this machine: capability is 10 * major + minor. DLC_NO_DEVICE:
 * there is none, or no driver; the text says which.
 */
typedef struct {
    char name[64];
    uint32_t ordinal, capability;
} dlcrt_device_info;
DLCRT_API DLC_NODISCARD dlc_status dlcrt_device_describe(const char *device,
                                                         dlcrt_device_info *info);
/* Reads all weights and binaries of the file and checks them now; DLC_INVALID says what is damaged. Any thread. */
DLCRT_API DLC_NODISCARD dlc_status dlcrt_executable_verify(const dlcrt_executable *executable);
/* NULL is fine. Its contexts may live on. */
DLCRT_API void dlcrt_executable_close(dlcrt_executable *executable);

typedef struct {
    const char *name;
    const char *type; /* f32[batch,3,224,224] */
    dlc_dtype dtype;
    uint32_t rank;
    int64_t dims[DLCRT_MAX_RANK]; /* -1: known when the inputs' shapes are */
    const char
        *dim_names[DLCRT_MAX_RANK]; /* of symbols; NULL: a number, or an expression (see type) */
} dlcrt_tensor_info;
DLCRT_API uint32_t dlcrt_executable_ninputs(const dlcrt_executable *executable);
DLCRT_API uint32_t dlcrt_executable_noutputs(const dlcrt_executable *executable);
/* False when there is no such input or output. */
DLCRT_API int dlcrt_executable_input(const dlcrt_executable *executable, uint32_t i,
                                     dlcrt_tensor_info *info);
DLCRT_API int dlcrt_executable_output(const dlcrt_executable *executable, uint32_t i,
                                      dlcrt_tensor_info *info);

typedef struct {
    const char *model; /* name of the graph */
    const char *target;
    const char *producer; /* compiler and version */
    uint32_t nkernels, nsteps, nsymbols;
    uint64_t constants_bytes;
    uint32_t plan_bytes;
    int is_static;      /* no size depends on an input */
    uint32_t nplans;    /* of the file; the rest is about the one that was chosen */
    const char *device; /* "cpu", "cuda:0 (NVIDIA H200, sm_90)" */
    const char *passed; /* why it runs on the CPU though there is a CUDA device that it has a plan
                           for, in a line; "": it does not, or there is none */
} dlcrt_executable_info;
DLCRT_API void dlcrt_executable_describe(const dlcrt_executable *executable,
                                         dlcrt_executable_info *info);

/*
 * What the ONNX file said of itself: its fields producer_name, producer_version, domain,
 * model_version, doc_string and graph.doc_string, those that are not empty; then its
 * metadata_props. False when there is no row i.
 */
typedef struct {
    const char *key, *value;
    int is_field; /* 0: of metadata_props */
} dlcrt_metadata;
DLCRT_API int dlcrt_executable_metadata(const dlcrt_executable *executable, uint32_t i,
                                        dlcrt_metadata *row);

/* Steps in the order they run. */
typedef struct {
    const char *name;   /* origin nodes joined by '+' */
    const char *kernel; /* or "topk", "bind", "copy" … */
    const char *peak;   /* which of a processor's rates bounds a kernel's arithmetic (fma, vnni, …: `dlc
                           targets --probe`); "": none does */
    int is_kernel;
} dlcrt_step_info;
DLCRT_API int dlcrt_executable_step(const dlcrt_executable *executable, uint32_t i,
                                    dlcrt_step_info *info);
/* The plan as text, for people; like snprintf: returns the length it would have, writes at most
 * size_bytes with a NUL. */
DLCRT_API size_t dlcrt_executable_print(const dlcrt_executable *executable, char *text,
                                        size_t size_bytes);

/*
 * What has run since the executables were opened, as text that Prometheus reads: runs by status,
 * seconds they took, runs under way, contexts, bytes of weights; each with the labels `model` and
 * `file`, which of executables that were opened without a path is a checksum of their content. Executables
 * of one file are counted together; NULL among them is passed over. Returns and
 * writes as dlcrt_executable_print does. From any thread, while others run.
 */
DLCRT_API size_t dlcrt_counters_print(const dlcrt_executable *const *executables,
                                      uint32_t nexecutables, char *text, size_t size_bytes);

/* --- contexts: everything one run needs --- */
typedef struct {
    uint32_t threads; /* 0: DLC_NUM_THREADS, else the cores this process may use (affinity, cgroup
                         quota). Runs under way at once share those cores: then fewer work for each */
    uint32_t profile; /* 1: time every step */
    uint32_t poison; /* 1: fill the arena with 0xA5 before each run (to find reads of what was never
                        written) */
    uint32_t async;  /* CUDA, 1: a run whose outputs all are device memory returns once it is in the
                        stream, if no step runs on the CPU; its inputs stay as they are until it is
                        done. dlcrt_context_wait waits and tells what was refused while running; a
                        run of other shapes does so first */
    void *stream;    /* CUDA: a CUstream of the device's primary context that runs go into, not
                        captured meanwhile, and there until the context is destroyed (1 is the default
                        stream, CU_STREAM_LEGACY); NULL: one of the context's own, and device memory of
                        the caller must be ready when a run is called */
    uint32_t is_current;  /* CUDA, 1: in every thread that uses the context the device's primary
                             context is current already, so runs need not see to it */
    uint32_t max_mebibytes; /* a run that needs more memory of the host ends with DLC_LIMIT; 0: no limit */
    uint32_t reserved[2]; /* 0 */
} dlcrt_context_options;

/* options may be NULL. Fewer threads than asked for are used when the system refuses to create
 * them. */
DLCRT_API DLC_NODISCARD dlc_status dlcrt_context_create(dlcrt_executable *executable,
                                                        const dlcrt_context_options *options,
                                                        dlcrt_context **result);
DLCRT_API void dlcrt_context_destroy(dlcrt_context *context); /* NULL is fine */
DLCRT_API uint32_t dlcrt_context_threads(const dlcrt_context *context);

/*
 * Checks the inputs' names, dtypes and shapes (data may be NULL), and sizes everything for them, so
 * that the next run of these shapes allocates nothing. Models of fixed sizes need no such call:
 * they are sized when the context is created.
 */
DLCRT_API DLC_NODISCARD dlc_status dlcrt_context_prepare(dlcrt_context *context,
                                                         const dlcrt_tensor *inputs,
                                                         uint32_t ninputs);
/*
 * Output i for the shapes of the last run or prepare (or of the model, if fixed). A dimension that
 * depends on data is -1 until a run has found it. False when there is no such output.
 */
DLCRT_API int dlcrt_context_output(const dlcrt_context *context, uint32_t i,
                                   dlcrt_tensor_info *info);
/* Its bytes; 0 while a dimension is unknown. */
DLCRT_API size_t dlcrt_context_output_bytes(const dlcrt_context *context, uint32_t i);

/*
 * Runs the model once in this context; blocks until the outputs are written. inputs are borrowed for
 * the call. DLC_INVALID names the input with what was found and wanted, or the damage that the first
 * run found in the weights, before any output is touched; or the step whose data were refused while
 * running (an index out of range), then outputs hold anything. No allocation, lock or system call
 * while shapes stay within what the context has seen (one thread; with more, sleeping threads are
 * woken). The same bits for any number of threads. On a CUDA device inputs are copied to it and
 * outputs back, unless they are memory of it, which is used where it lies; weights are uploaded once
 * for all contexts of an executable; from the second run of the same shapes on, the steps are one CUDA
 * graph. A process forked after an executable found its CUDA device cannot use the driver: runs and
 * openings fail there, and say so.
 */
DLCRT_API DLC_NODISCARD dlc_status dlcrt_context_run(dlcrt_context *context,
                                                     const dlcrt_tensor *inputs, uint32_t ninputs,
                                                     dlcrt_tensor *outputs, uint32_t noutputs);

/*
 * End runs early. Both are checked before every step, in each round of a loop too, so a run ends when the kernel that is at work
 * does, and on a CUDA device when what was launched is done. Outputs hold anything then; the context can run again.
 * cancel, from any thread: with 1 the run under way and those that begin end with DLC_CANCELLED, until it is called with 0.
 * limit, between runs: a run that takes longer than so many seconds ends with DLC_LIMIT; 0: none.
 */
DLCRT_API void dlcrt_context_cancel(dlcrt_context *context, int is_cancelled);
DLCRT_API void dlcrt_context_limit(dlcrt_context *context, double seconds);

/* Until all runs of an async context are done; others have nothing to wait for. DLC_INVALID: a
 * step's data were refused. */
DLCRT_API DLC_NODISCARD dlc_status dlcrt_context_wait(dlcrt_context *context);

/* Of step i: its times in the last run, if that was profiled; its sizes for the shapes of the last
 * run or prepare. */
typedef struct {
    int64_t begin_ns, end_ns; /* since the run began; 0 when it was not profiled */
    int64_t units;
    double flops, bytes; /* of one time: estimates of the compiler; 0 while a size is unknown */
    int64_t runs;        /* how often it ran: in a loop, times are the sum of them; 0 when it was not profiled */
} dlcrt_step_profile;
DLCRT_API int dlcrt_context_profile(const dlcrt_context *context, uint32_t i,
                                    dlcrt_step_profile *profile);
/* What thread t (0: the caller's) did of step i in the last run, if that was profiled. A step on a device occupies no thread. Of a
 * step that ran more than once, in a loop, busy_ns is the sum. Returns 0 when there is no such step or thread. */
typedef struct {
    int64_t busy_ns, end_ns; /* time in the step's code; when it last left that, since the run began */
} dlcrt_thread_profile;
DLCRT_API int dlcrt_context_thread_profile(const dlcrt_context *context, uint32_t i, uint32_t t,
                                           dlcrt_thread_profile *profile);
/* Bytes of memory the context holds: arena, scratch of all threads, outputs of its own; on devices,
 * too. */
DLCRT_API size_t dlcrt_context_bytes(const dlcrt_context *context);

#ifdef __cplusplus
}
#endif

#endif
