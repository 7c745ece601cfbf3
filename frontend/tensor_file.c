/* TensorProto files of the ONNX test suites (*.pb): one message, decoded like a model's weights,
 * then copied. */
#include "frontend/model.h"

#include <string.h>

/* A sequence or optional has its elements in field 3, where a tensor has segments, which nobody
 * writes. */
static dlc_status refuse_others(const Onnx__TensorProto *proto, const char *path, dlc_diag *diag)
{
    if (proto->segment)
        return dlc_diag_fail(diag, DLC_UNSUPPORTED, path,
                             "holds a sequence or an optional; only tensors can be read");
    if (!proto->has_data_type)
        return dlc_diag_fail(diag, DLC_INVALID, path, "is no TensorProto: it states no data_type");
    return DLC_OK;
}

static dlc_status read_tensor(dlc_onnx *model, const Onnx__TensorProto *proto, dlc_arena *arena,
                              dlc_onnx_tensor *tensor)
{
    dlc_dense dense;
    DLC_TRY(refuse_others(proto, model->file, model->diag));
    DLC_TRY(dlc_tensor_decode(model, proto, model->file, &dense));
    *tensor = (dlc_onnx_tensor){.name = dlc_arena_strdup(arena, proto->name ? proto->name : ""),
                                .dtype = dense.dtype,
                                .rank = dense.rank,
                                .size_bytes = dense.size_bytes};
    memcpy(tensor->dims, dense.dims, sizeof dense.dims);
    tensor->bytes = dlc_arena_alloc(arena, dense.size_bytes, 64);
    if (dense.size_bytes)
        memcpy(tensor->bytes, dense.bytes, dense.size_bytes);
    return DLC_OK;
}

static dlc_status decode_tensor(dlc_onnx *model, dlc_arena *arena, dlc_onnx_tensor *tensor)
{
    ProtobufCMessage *message = dlc_onnx_decode(model, &onnx__tensor_proto__descriptor, NULL);
    dlc_status status = model->diag->status != DLC_OK ? model->diag->status : DLC_INVALID;
    if (message)
        status = read_tensor(model, (const Onnx__TensorProto *)(void *)message, arena, tensor);
    dlc_onnx_forget(model);
    dlc_external_close(model);
    return status;
}

dlc_status dlc_onnx_tensor_read(const char *path, dlc_arena *arena, dlc_diag *diag,
                                dlc_onnx_tensor *tensor)
{
    dlc_onnx model = {.arena = arena, .diag = diag, .file = path};
    DLC_TRY(dlc_map_open(path, &model.map, diag));
    model.bytes = model.map.bytes ? model.map.bytes : (const uint8_t *)"";
    model.size_bytes = model.map.size_bytes;
    dlc_status status = decode_tensor(&model, arena, tensor);
    dlc_map_close(&model.map);
    return status;
}

dlc_status dlc_onnx_tensor_parse(const void *bytes, size_t size_bytes, dlc_arena *arena,
                                 dlc_diag *diag, dlc_onnx_tensor *tensor)
{
    dlc_onnx model = {
        .arena = arena, .diag = diag, .file = "an item of a sequence", .bytes = bytes, .size_bytes = size_bytes};
    return decode_tensor(&model, arena, tensor);
}
