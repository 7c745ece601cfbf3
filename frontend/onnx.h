/* ONNX files to graphs, and ONNX tensors from files. Nothing outside frontend/ sees protobuf. */
#ifndef DLC_FRONTEND_ONNX_H
#define DLC_FRONTEND_ONNX_H

#include "ir/graph/graph.h"

/* Limits on what a model may ask for; zero fields mean the defaults in parentheses. */
typedef struct {
    uint32_t max_depth;      /* nesting of messages (100) */
    uint64_t max_nodes;      /* after functions are inlined (10 M) */
    uint64_t max_heap_bytes; /* of the decoded model without weights (64 MiB + 32 x the file without
                                its weights) */
    const char
        *symlink_dir; /* external data may follow links beneath this folder; NULL: no links */
    /* Shapes given by the user: input name -> dimensions (-1: keep). */
    struct {
        const char *name;
        const int64_t *dims;
        uint32_t rank;
    } * shapes;
    uint32_t nshapes;
    /* Values given by the user for inputs: numbers, comma separated, row-major. */
    struct {
        const char *name, *text;
    } * values;
    uint32_t nvalues;
} dlc_onnx_options;

/*
 * Reads a model. The file stays mapped until dlc_onnx_close: weights in the graph are views of it.
 * DLC_INVALID / DLC_UNSUPPORTED: all problems are in diag, not only the first.
 */
typedef struct dlc_onnx dlc_onnx;
DLC_NODISCARD dlc_status dlc_onnx_open(const char *path, const dlc_onnx_options *options,
                                       dlc_arena *arena, dlc_diag *diag, dlc_onnx **model,
                                       dlc_graph **graph);
/* The same from memory (fuzzing, tests); no external data. */
DLC_NODISCARD dlc_status dlc_onnx_read(const void *bytes, size_t size_bytes, const char *name,
                                       const dlc_onnx_options *options, dlc_arena *arena,
                                       dlc_diag *diag, dlc_onnx **model, dlc_graph **graph);
void dlc_onnx_close(dlc_onnx *model);
/* Path of the i-th file beside the model that holds data of it, and its bytes; NULL: no such one. */
const char *dlc_onnx_external(const dlc_onnx *model, uint32_t i, const void **bytes,
                              size_t *size_bytes);
/* The name of a tensor, read or not, whose data is in the file at `path`, by whatever links, and how the model spells that file; NULL:
 * there is none. */
const char *dlc_onnx_holder(const dlc_onnx *model, const char *path, const char **location);

/* A TensorProto file (*.pb of the ONNX test suites). Data row-major in the arena. */
typedef struct {
    const char *name;
    dlc_dtype dtype;
    uint32_t rank;
    int64_t dims[DLC_MAX_RANK];
    void *bytes;
    size_t size_bytes;
} dlc_onnx_tensor;
DLC_NODISCARD dlc_status dlc_onnx_tensor_read(const char *path, dlc_arena *arena, dlc_diag *diag,
                                              dlc_onnx_tensor *tensor);
DLC_NODISCARD dlc_status dlc_onnx_tensor_parse(const void *bytes, size_t size_bytes,
                                               dlc_arena *arena, dlc_diag *diag,
                                               dlc_onnx_tensor *tensor);

#endif
