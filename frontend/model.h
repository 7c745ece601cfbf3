/* A model's bytes: the mapped file, the decoded message, and the files beside it that hold its
 * weights. */
#ifndef DLC_FRONTEND_MODEL_H
#define DLC_FRONTEND_MODEL_H

#include "base/file.h"
#include "frontend/onnx.h"
#include "frontend/wire.h"

#include "onnx.pb-c.h"

typedef struct {
    const char *location; /* as the model spells it */
    dlc_map map;
} dlc_external;

typedef struct dlc_onnx_block dlc_onnx_block;

struct dlc_onnx {
    dlc_arena *arena;
    dlc_diag *diag;
    const char *file;   /* for messages */
    const char *folder; /* external data lies beneath; NULL: not allowed */
    const char *symlink_dir;
    dlc_map map; /* of the file; unset for models in memory */
    const uint8_t *bytes;
    size_t size_bytes;
    uint64_t heap_bytes, heap_limit; /* of the decoder */
    dlc_onnx_block *last_block;      /* of its large ones */
    uint8_t is_refused;              /* it asked for more than heap_limit */
    Onnx__ModelProto *proto;
    dlc_vec(dlc_external) externals;
    uint64_t dense_bytes; /* of sparse and widened tensors, held against dense_limit */
    uint64_t dense_limit;
};

/* Scans and decodes `bytes` as a message of the given type; NULL and a report when it is refused.
 */
ProtobufCMessage *dlc_onnx_decode(dlc_onnx *model, const ProtobufCMessageDescriptor *type,
                                  const dlc_onnx_options *options);

/* Drops the decoded message; what it was made of in the arena stays. */
void dlc_onnx_forget(dlc_onnx *model);

/* Of a file that is no ONNX model but one of a known kind: "is a zip archive, …"; else NULL. (foreign.c) */
const char *dlc_onnx_foreign(const uint8_t *bytes, size_t n);

/* The bytes [offset, offset + size) of an external file; size UINT64_MAX: to its end. (external.c)
 */
DLC_NODISCARD dlc_status dlc_external_bytes(dlc_onnx *model, const char *location, uint64_t offset,
                                            uint64_t size, const char *place, const uint8_t **bytes,
                                            size_t *size_bytes);
void dlc_external_close(dlc_onnx *model);
/* A tensor of the model, read or not, whose external data is the file at `path`, and how the model spells that; path NULL: the first
 * that has external data. NULL: there is none. (external_find.c) */
const Onnx__TensorProto *dlc_external_find(const Onnx__ModelProto *model, const char *folder, const char *path, const char **location);

/* A tensor's dtype, dimensions and elements (tensor.c): a view of the file where its bytes are what
 * dlc wants, else in the arena. */
typedef struct {
    dlc_dtype dtype;
    uint32_t rank;
    int64_t dims[DLC_MAX_RANK];
    const void *bytes;
    size_t size_bytes;
} dlc_dense;
DLC_NODISCARD dlc_status dlc_tensor_decode(dlc_onnx *model, const Onnx__TensorProto *proto,
                                           const char *place, dlc_dense *result);
DLC_NODISCARD dlc_status dlc_sparse_decode(dlc_onnx *model, const Onnx__SparseTensorProto *proto,
                                           const char *place, dlc_dense *result);
/* dlc's dtype of TensorProto.DataType, or DLC_NONE. */
dlc_dtype dlc_dtype_of_onnx(int64_t type);
const char *dlc_onnx_type_name(int64_t type); /* "FLOAT8E4M3FN"; "type 99" is the caller's */

#endif
