/*
 * Requests that run together. Where the first dimension of all inputs and outputs is one symbol, requests are put one behind the
 * other, run once, and the outputs are cut apart again; servers call that dynamic batching. Requests to other models run one by one.
 *
 *   dlcrt_batch_create(executable, NULL, &batch);
 *   for each request:
 *       dlcrt_batch_begin(batch);
 *       dlcrt_batch_input(batch, 0, &ids);
 *       dlcrt_batch_input(batch, 1, &weights);
 *   dlcrt_batch_run(batch);
 *   for each request i:
 *       dlcrt_batch_output(batch, i, 0, &logits);
 *
 * A request that is wrong is refused alone: those beside it are answered. A batch is a context with memory for its inputs: it
 * belongs to one thread at a time, batches run in parallel, and their memory grows to the most they have seen.
 */
#ifndef DLC_BATCH_H
#define DLC_BATCH_H

#include "dlc/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dlcrt_batch dlcrt_batch;

/* The symbol that is the first dimension of all inputs and outputs; NULL: there is none, and requests run one by one. */
DLCRT_API const char *dlcrt_executable_batch(const dlcrt_executable *executable);

typedef struct {
    uint32_t threads;  /* as in dlcrt_context_options */
    uint32_t is_apart; /* 1: never together, for models that mix the rows of a batch */
    uint32_t pads;     /* 1: requests of different lengths run together, the shorter ones filled up with zeros, and what the outputs
                          have more is cut off. Lengths are dimensions behind the first that are symbols. For models that pass over
                          zeros, by a mask that is one of their inputs, say: others give numbers that depend on the neighbours */
    uint32_t reserved[5]; /* 0 */
} dlcrt_batch_options;

/* options may be NULL. DLC_UNSUPPORTED: an input or output is of strings; or with `pads` an output's length is computed from others. */
DLCRT_API DLC_NODISCARD dlc_status dlcrt_batch_create(dlcrt_executable *executable, const dlcrt_batch_options *options,
                                                      dlcrt_batch **result);
DLCRT_API void dlcrt_batch_destroy(dlcrt_batch *batch); /* NULL is fine */

/* For its sizes, limits and cancelling. */
DLCRT_API dlcrt_context *dlcrt_batch_context(dlcrt_batch *batch);

/* The next request; they count from 0, and after a run the next one is number 0 again. */
DLCRT_API DLC_NODISCARD dlc_status dlcrt_batch_begin(dlcrt_batch *batch);
/*
 * An input of the request that was begun last: the one called tensor->name, or with NULL number `position`. The data, of the host,
 * are copied. Data in pieces come by several calls, each with the whole shape and the size_bytes of its piece. A scalar may come as
 * [1]. What fails here refuses the request, and only it.
 */
DLCRT_API DLC_NODISCARD dlc_status dlcrt_batch_input(dlcrt_batch *batch, uint32_t position, const dlcrt_tensor *tensor);
/* Runs all requests: neighbours of the same shapes together, and where that is refused one by one. What is wrong with a request is
 * said when its outputs are asked for. */
DLCRT_API void dlcrt_batch_run(dlcrt_batch *batch);
/*
 * An output of a request: the one called tensor->name, or with NULL number `position`. data, size_bytes, dtype, rank and dims are
 * set; the memory holds until the next request is begun, or, if padding was cut off, until the next call. A scalar
 * has dims[0] 1. Otherwise the status that the request was refused with, and its sentence.
 */
DLCRT_API DLC_NODISCARD dlc_status dlcrt_batch_output(dlcrt_batch *batch, uint32_t request, uint32_t position, dlcrt_tensor *tensor);
/* Rows of the i-th run that succeeded, of the last dlcrt_batch_run; -1: there is no such run. Models that run requests one by one
 * have a row each. */
DLCRT_API int64_t dlcrt_batch_rows(const dlcrt_batch *batch, uint32_t i);

/* --- what servers ask besides --- */
/* The dtype called so in the Open Inference Protocol (dlc_dtypes[dtype].served): "FP32" is DLC_F32; DLC_NONE: there is none. */
DLCRT_API dlc_dtype dlcrt_dtype_served(const char *name);
/* Nanoseconds on the clock that does not jump, as profiles have them. */
DLCRT_API uint64_t dlcrt_now_ns(void);

#ifdef __cplusplus
}
#endif

#endif
