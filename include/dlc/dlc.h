/*
 * libdlc: the compiler. An ONNX model (or a graph in text form) in; an executable, text about it,
 * or computed outputs out.
 *
 *   dlc_model *model;
 *   if (dlc_model_open("m.onnx", &(dlc_options){.target = "x86-64-v3"}, &model) == DLC_OK)
 *       status = dlc_model_write(model, "so", "m.so", NULL);
 *   for (uint32_t i = 0; dlc_model_message(model, i, &message); i++) …
 *   dlc_model_close(model);
 *
 * Every call that can fail returns a dlc_status, and the model's messages say why. Nothing aborts,
 * prints or exits; running out of memory is DLC_LIMIT. A model belongs to one thread at a time; any
 * number of models may exist. The program's locale changes no number and no name in what is read
 * and written, and stays as it is.
 */
#ifndef DLC_DLC_H
#define DLC_DLC_H

#include "dlc/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DLC_API __attribute__((visibility("default")))

typedef struct dlc_model dlc_model;

/* A shape given by the user for an input; -1 keeps the model's dimension. */
typedef struct {
    const char *name;
    uint32_t rank;
    int64_t dims[DLCRT_MAX_RANK];
} dlc_shape;

/* A value given by the user for an input, which is a constant then: numbers, comma separated,
 * row-major. */
typedef struct {
    const char *name, *text;
} dlc_given;

/* A problem or a note. */
typedef struct {
    dlc_status status; /* DLC_OK: a note */
    const char *place; /* "m.onnx: node 'conv1' (Conv, opset 13)" or "" */
    const char *text;
    const char *detail; /* further lines or NULL */
} dlc_model_note;

/* Zero fields mean the defaults. Strings and arrays are borrowed until dlc_model_close. */
typedef struct {
    size_t size_bytes;      /* sizeof(dlc_options): which fields the caller knows of; 0: as in 0.1 */
    const char *target;     /* a name of dlc_catalogue(DLC_CATALOGUE_TARGETS); "native" */
    const char *fusion;     /* a strategy, a path to one (.so) or to a plan (.json); "greedy" */
    const char *passes;     /* comma separated; NULL: the default pipeline */
    const char *dump_after; /* a pass or "all": its result goes to `dump` */
    const dlc_shape *shapes;
    uint32_t nshapes;
    const dlc_given *values;
    uint32_t nvalues;
    uint32_t jobs;      /* threads of code generation; 0: one per CPU */
    uint32_t max_depth; /* nesting of the model's messages */
    uint64_t max_nodes;
    uint64_t max_heap_bytes; /* of the decoded model without its weights */
    uint64_t max_fold_bytes; /* of constants that folding may make */
    const char *link_dir; /* external data may follow links beneath this folder; NULL: no links */
    int verify_each;      /* check the graph after every pass */
    int emulate_gpu;      /* CUDA kernels run on this machine's processor, as emulated threads */
    const char *machine;  /* what was measured of `native`: a file; NULL: the cache's, if it is there */
    int is_temporary;     /* what is written is read once and removed: it is not synced to disk */
    void (*dump)(void *user, const char *pass, const char *text);
    void (*timing)(void *user, const char *pass, double seconds, uint32_t changes);
    void *user;
    const char *rewrite; /* of kernels: "none", NAME=N of DLC_CATALOGUE_REWRITES; NULL: where estimates say so */
    const char *schedules; /* a file with kernels and their schedules as text, or a printed module: taken for equal kernels */
    const char *tuned; /* the file of dlc_model_tune; NULL: the cache's of this processor, for the target native alone; "": none */
    uint64_t max_memory_bytes; /* 0: 512 MiB + 64 times the file + 4 times weights in other files, at most 3/4 of the machine's */
    uint32_t max_seconds;      /* of each call; 0: 600 */
    const char *winograd; /* "off", "2" or "4": the largest tiles by which convolutions are computed where it pays; NULL: "auto",
                             those whose errors are no larger than plain sums' (docs/numerics.md) */
    void (*log)(void *user, const dlc_model_note *note); /* with `user`: each message once, after the pass or call that found it;
                                                           of several targets what they said in common once. It runs in the
                                                           thread of the call; the note's texts are good until it returns, and
                                                           of this model it may call dlc_model_message alone */
    const char *precision; /* "bf16": convolutions and products of f32 by weights multiply bf16 and add up in f32 (docs/numerics.md);
                              NULL: "f32" */
    const char *matrix; /* "off": products of f32 by weights run by vectors alone; "on": on a matrix unit where estimates say that it
                           pays, by factors that are exact sums of three bf16 parts (docs/numerics.md); NULL: "auto", on, once
                           the machine is measured */
    const dlc_shape *typical; /* sizes of inputs' dimensions for which code is chosen, where only a run knows them; it runs at all. -1:
                                 as it is (docs/ir.md, Usual sizes) */
    uint32_t ntypical;
} dlc_options;

DLC_API const char *dlc_version(void);
/* What the compiler is built on: lines of NAME: TEXT about the format of executables, LLVM, NVRTC and
 * targets. Good until this thread asks again. */
DLC_API const char *dlc_about(void);

/*
 * Measures this processor, in some seconds: bandwidths of caches and memory, peaks of its
 * instructions, threads. The file keeps it for compilations for `native`; NULL: `machine` in the
 * cache's folder; "": nothing is kept. written: where; text: a line "name number" each, bytes or operations per
 * microsecond; after a failure its sentence. Both are good until this thread asks again.
 */
DLC_API DLC_NODISCARD dlc_status dlc_machine_probe(const char *file, const char **written,
                                                   const char **text);

/*
 * For a process that compiles many models: loads LLVM, which makes code for CPUs, into this process.
 * Each compilation's child process would else load it for itself, in some 15 ms. It takes 10 MiB,
 * and where memory runs out while it is loaded it may end the process: a child's end would have been
 * a message. why: the sentence after a failure, good until this thread asks again. Asking twice does
 * nothing more.
 */
DLC_API DLC_NODISCARD dlc_status dlc_preload(const char **why);

/* What can be named in options: row i, or 0 when there is none. help may be ""; it is good until
 * this thread asks again. */
typedef enum {
    DLC_CATALOGUE_TARGETS,
    DLC_CATALOGUE_PASSES,
    DLC_CATALOGUE_STRATEGIES,
    DLC_CATALOGUE_REWRITES
} dlc_catalogue_kind;
DLC_API int dlc_catalogue(dlc_catalogue_kind kind, uint32_t i, const char **name,
                          const char **help);

/*
 * Imports a model: an ONNX file, or a graph or a module in text form. *model is set whatever is returned, so
 * that its messages can be read; close it in any case.
 */
DLC_API DLC_NODISCARD dlc_status dlc_model_open(const char *path, const dlc_options *options,
                                                dlc_model **model);
/* The same from memory, borrowed until the model is closed; `name` is what messages call it. External
 * data cannot be found. */
DLC_API DLC_NODISCARD dlc_status dlc_model_open_bytes(const void *bytes, size_t size_bytes,
                                                      const char *name, const dlc_options *options,
                                                      dlc_model **model);
DLC_API void dlc_model_close(dlc_model *model); /* NULL is fine */

/* How the note of a node begins that draws random numbers. */
#define DLC_DRAWS "draws random numbers"
/* Problems and notes in the order they were found. False when there is no message i. */
DLC_API int dlc_model_message(const dlc_model *model, uint32_t i, dlc_model_note *note);

/* Inputs and outputs; false when there is no such one. */
DLC_API int dlc_model_input(dlc_model *model, uint32_t i, dlcrt_tensor_info *info);
DLC_API int dlc_model_output(dlc_model *model, uint32_t i, dlcrt_tensor_info *info);

/*
 * Computes the outputs with the kernel interpreter, in float64 between kernels: the oracle for
 * executables. No pass has run unless dlc_model_text or dlc_model_write was called before.
 * outputs[i].data is the model's until it is closed.
 */
DLC_API DLC_NODISCARD dlc_status dlc_model_interpret(dlc_model *model, const dlcrt_tensor *inputs,
                                                     uint32_t ninputs, dlcrt_tensor *outputs,
                                                     uint32_t noutputs);

/*
 * Has dlc_model_interpret show every value as soon as it is computed, inputs first, a loop's anew in each iteration; NULL: no longer.
 * Floats are float64 and may be changed: everything behind them is computed from what they are then.
 */
typedef struct {
    const char *value;    /* its name in the graph */
    const char *node, *op; /* of the model, where it comes from; "" where neither is known. An input has "input" for op */
    const char *does;     /* the operator of the graph (docs/ir.md) */
    dlc_dtype dtype;
    uint32_t rank;
    int64_t dims[DLCRT_MAX_RANK];
    size_t nelems;
    double *wide;      /* floats; else NULL */
    const void *bytes; /* of all others, as the dtype says */
} dlc_watched;
DLC_API void dlc_model_watch(dlc_model *model, void (*see)(void *user, const dlc_watched *seen), void *user);

/* The graph's nodes in order, constants left out. */
typedef struct {
    const char *value;     /* its first result */
    const char *node, *op; /* of the model; "" where neither is known */
    const char *does;      /* the operator of the graph */
    int can_begin;         /* a part may begin here: it is in no region */
} dlc_model_node;
DLC_API DLC_NODISCARD dlc_status dlc_model_nodes(dlc_model *model, void (*see)(void *user, const dlc_model_node *node), void *user);

/*
 * Leaves of the graph nodes first to end - 1, in that order: what they read of the others becomes inputs, what others read of them
 * outputs, by the values' names; with `every`, whatever stands in no region. Before any text but IMPORTED, and before anything is
 * written.
 */
DLC_API DLC_NODISCARD dlc_status dlc_model_part(dlc_model *model, uint32_t first, uint32_t end, int every);

/*
 * Text about the model, in memory of the model until it is closed. All but DLC_TEXT_IMPORTED run
 * the passes first.
 *
 *   IMPORTED  the graph (or module) as imported, in text form; format "whole": with every element of its constants
 *   GRAPH     the same after the passes of options.passes; from `lower` on a module
 *   INSPECT   operators, shapes, work, memory plan, kernels; format "text", "json" or "dot"
 *   EXPLAIN   for every edge whether it was fused, and why not; format "text" or "json"
 *   SCHEDULES kernels with their schedules, as options.schedules takes them; of all targets
 */
typedef enum {
    DLC_TEXT_IMPORTED,
    DLC_TEXT_GRAPH,
    DLC_TEXT_INSPECT,
    DLC_TEXT_EXPLAIN,
    DLC_TEXT_SCHEDULES
} dlc_text_kind;
DLC_API DLC_NODISCARD dlc_status dlc_model_text(dlc_model *model, dlc_text_kind kind,
                                                const char *format, const char **text);

/*
 * DLC_USAGE when `path` leads, by whatever links and spellings, to a file that the model was read from: its own, or one in which data
 * of its tensors lies (ONNX's external data), read or not. The message says which. It is asked whenever the model writes a file; ask
 * it of all else that is to be written, before that takes time.
 */
DLC_API DLC_NODISCARD dlc_status dlc_model_may_write(dlc_model *model, const char *path);

/*
 * Writes an executable or what led to it: kind "so", "o", "a", "h", "ll", "asm" (of CUDA: PTX) or
 * "cu". The file is whole or absent, and an older one survives a failure. name: C identifier in
 * symbols and the header; NULL: made from the path.
 */
DLC_API DLC_NODISCARD dlc_status dlc_model_write(dlc_model *model, const char *kind,
                                                 const char *path, const char *name);

/* The same into an open file for reading and writing, an empty regular file or a memfd, which stays
 * open: dlcrt_executable_open_fd runs it. */
DLC_API DLC_NODISCARD dlc_status dlc_model_write_fd(dlc_model *model, const char *kind, int fd,
                                                    const char *name);

/*
 * Tries schedules of the model's kernels on this machine and keeps the fastest in a file, which later compilations read. Those
 * whose sizes only a run knows are left out. `measure` runs an executable, preferably in a process of its own and with the threads
 * that a context has by itself, and fills in how long each of its steps takes; it fails when that process does. The file is whole at
 * any time, and grows as results come. `trial` is told each schedule that was measured, with what was estimated before, for as many
 * threads: for whoever tests estimates.
 */
typedef struct {
    const char *kernel, *schedule; /* texts, until the call returns */
    double estimate_us, measured_us;
    double own_us; /* measured in the same run: of the schedule that the kernel came with */
    double spread; /* |log| of measured_us / own_us in one executable of the schedules over that in another: what measuring may be off by */
} dlc_trial;
typedef struct {
    size_t size_bytes; /* sizeof(dlc_tuning) */
    const char *file;  /* NULL: the one that the model's options read */
    double seconds;    /* for all, about; 0: 60 */
    dlc_status (*measure)(void *user, int executable_fd, double seconds, double *step_us, uint32_t nsteps);
    void (*progress)(void *user, const char *text); /* may be NULL */
    void *user;
    void (*trial)(void *user, const dlc_trial *trial); /* may be NULL */
} dlc_tuning;
typedef struct {
    const char *file; /* of the model, until it is closed */
    uint32_t nkernels, nmeasured, ncandidates, nbetter; /* kernels: all, measured, of which a better schedule was found */
    double before_us, after_us; /* of all launches of kernels that were measured */
    double kendall; /* tau, -1 to 1, of estimates and measured times: of pairs further apart than 3 % and nine of ten of their kernel's spreads */
    double kendall_of_all; /* the same of all pairs, many of which differ by what measuring is off by */
} dlc_tuned;
DLC_API DLC_NODISCARD dlc_status dlc_model_tune(dlc_model *model, const dlc_tuning *tuning, dlc_tuned *result);

/*
 * The executable of a model from a folder of them, compiled first when it is not there. What decides
 * is the bytes of the model and of the files it names, the options that change the code, this
 * processor and this version. file: the path of the executable, to be opened at once; the folder may
 * be emptied at any time, and any number of processes may use it. DLC_USAGE: the options name a
 * strategy or target that is a program of the user's (.so), whose doings no key tells.
 * *model is set as by dlc_model_open when something had to be compiled, else NULL.
 */
DLC_API DLC_NODISCARD dlc_status dlc_cache_find(const char *path, const dlc_options *options,
                                                const char *folder, char *file, size_t file_bytes,
                                                dlc_model **model);
/*
 * Whether the folder has it, as it would be found: 1, and its path. It is in libdlccache, too, a small library without the compiler,
 * so that a program that starts a second time need not load libdlc.
 */
DLC_API int dlc_cache_look(const char *path, const dlc_options *options, const char *folder, char *file, size_t file_bytes);
/* The folder: DLC_CACHE_DIR, else dlc beneath XDG_CACHE_HOME or ~/.cache; NULL: there is none. Good
 * until this thread asks again. */
DLC_API const char *dlc_cache_folder(void);

/*
 * Post-training quantisation: an ONNX model with QuantizeLinear and DequantizeLinear around its products with constant weights.
 *
 *   open    finds the layers; per_channel: a scale for each channel of a weight; exclude: names of nodes and operators, comma
 *           separated, or NULL. *result is set whatever is returned, so that its message can be read; close it in any case
 *   probe   writes the model with the layers' inputs as outputs, by name: run it to learn their ranges
 *   write   writes the quantised model; lo[i] to hi[i] is the range of value i
 */
typedef struct dlc_quantizer dlc_quantizer;
typedef struct {
    const char *node, *op;
    const char *value;   /* the layer's input, whose range counts */
    uint32_t range;      /* its number */
    double weight_noise; /* mean square of the weight's rounding over its mean square */
} dlc_quantizer_row;
DLC_API DLC_NODISCARD dlc_status dlc_quantizer_open(const char *path, int per_channel, const char *exclude,
                                                    dlc_quantizer **result);
DLC_API DLC_NODISCARD dlc_status dlc_quantizer_probe(dlc_quantizer *quantizer, const char *path);
DLC_API DLC_NODISCARD dlc_status dlc_quantizer_write(dlc_quantizer *quantizer, const double *lo, const double *hi,
                                                     const char *path);
DLC_API void dlc_quantizer_close(dlc_quantizer *quantizer); /* NULL is fine */
/* False when there is no layer i, no range i. */
DLC_API int dlc_quantizer_layer(const dlc_quantizer *quantizer, uint32_t i, dlc_quantizer_row *row);
DLC_API int dlc_quantizer_value(const dlc_quantizer *quantizer, uint32_t i, const char **name);
DLC_API const char *dlc_quantizer_message(const dlc_quantizer *quantizer); /* why the last call failed */

/*
 * Reads a TensorProto file of an ONNX test suite. tensor->data and name are released by
 * dlc_tensor_release. A failure's sentence is put into message, cut to its size.
 */
DLC_API DLC_NODISCARD dlc_status dlc_tensor_read(const char *path, dlcrt_tensor *tensor,
                                                 char *message, size_t message_bytes);
/* The same of a message in memory, an item of a sequence. */
DLC_API DLC_NODISCARD dlc_status dlc_tensor_parse(const void *bytes, size_t size_bytes,
                                                  dlcrt_tensor *tensor, char *message,
                                                  size_t message_bytes);
DLC_API void dlc_tensor_release(dlcrt_tensor *tensor);

#ifdef __cplusplus
}
#endif

#endif
