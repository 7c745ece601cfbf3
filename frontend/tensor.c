/*
 * Tensors of a model. Elements whose bytes in the file are already what dlc wants stay there as
 * views; typed fields of other widths, sparse tensors and types below 8 bits are written out into
 * the arena, within a budget.
 */
#include "frontend/model.h"

#include "ir/expr/expr.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    uint8_t dtype, bits;
} types[] = {
#define DLC_ONNX_TYPE(number, name, dtype, bits) [number] = {name, DLC_##dtype, bits},
#include "frontend/onnx_types.def"
#undef DLC_ONNX_TYPE
};

static int is_known(int64_t type)
{
    return type >= 0 && type < (int64_t)(sizeof types / sizeof *types);
}

dlc_dtype dlc_dtype_of_onnx(int64_t type)
{
    return is_known(type) ? (dlc_dtype)types[type].dtype : DLC_NONE;
}

const char *dlc_onnx_type_name(int64_t type)
{
    return is_known(type) ? types[type].name : "an unknown type";
}

/* A code of `bits` as a byte. */
static uint8_t byte_of(int64_t type, uint32_t code)
{
    uint32_t bits = types[type].bits;
    int is_signed = types[type].dtype == DLC_I4 || types[type].dtype == DLC_I2;
    return (uint8_t)(is_signed && code >> (bits - 1) ? code | ~((1u << bits) - 1) : code);
}

static int is_packed(int64_t type)
{
    return types[type].bits < 8 && types[type].bits > 0;
}

/* Element i of a stream of `bits` wide codes, least significant bits first. */
static uint32_t code_at(const uint8_t *bytes, size_t i, uint32_t bits)
{
    size_t at = i * bits;
    uint32_t word = bytes[at / 8];
    if (at % 8 + bits > 8)
        word |= (uint32_t)bytes[at / 8 + 1] << 8;
    return word >> (at % 8) & ((1u << bits) - 1);
}

static dlc_status take_budget(dlc_onnx *model, size_t bytes, const char *place)
{
    uint64_t total;
    if (!__builtin_add_overflow(model->dense_bytes, (uint64_t)bytes, &total) &&
        total <= model->dense_limit) {
        model->dense_bytes = total;
        return DLC_OK;
    }
    return dlc_diag_fail(model->diag, DLC_LIMIT, place,
                         "writing it out dense takes %zu bytes; sparse and widened tensors "
                         "together may take %" PRIu64,
                         bytes, model->dense_limit);
}

static dlc_status allocate(dlc_onnx *model, size_t n, uint32_t each, const char *place,
                           void **bytes)
{
    size_t size;
    if (!dlc_mul_size(n, each, &size))
        size = SIZE_MAX;
    DLC_TRY(take_budget(model, size, place));
    *bytes = dlc_arena_alloc(model->arena, size, 64);
    return DLC_OK;
}

static dlc_status read_dims(dlc_onnx *model, const int64_t *dims, size_t rank, const char *place,
                            dlc_dense *result, size_t *n)
{
    if (rank > DLC_MAX_RANK)
        return dlc_diag_fail(model->diag, DLC_UNSUPPORTED, place,
                             "has rank %zu; at most %d is supported", rank, DLC_MAX_RANK);
    result->rank = (uint32_t)rank;
    *n = 1;
    int is_empty = 0;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return dlc_diag_fail(model->diag, DLC_INVALID, place, "dimension %zu is %" PRId64, i,
                                 dims[i]);
        result->dims[i] = dims[i];
        is_empty |= dims[i] == 0;
        if (dims[i] && (!dlc_mul_size(*n, (size_t)dims[i], n) || *n > (size_t)DLC_MAX_ELEMS))
            return dlc_diag_fail(model->diag, DLC_LIMIT, place, "has more than 2^40 elements");
    }
    if (is_empty)
        *n = 0;
    return DLC_OK;
}

/* Bytes of raw_data or an external file: a view where they are dlc's own form. */
static dlc_status take_raw(dlc_onnx *model, int64_t type, const uint8_t *raw, size_t size, size_t n,
                           const char *place, dlc_dense *result)
{
    size_t bits;
    if (!dlc_mul_size(n, types[type].bits, &bits) || size != (bits + 7) / 8)
        return dlc_diag_fail(model->diag, DLC_INVALID, place,
                             "holds %zu bytes where %zu elements of type %s take %zu", size, n,
                             types[type].name, (bits + 7) / 8);
    if (is_packed(type)) {
        void *wide;
        DLC_TRY(allocate(model, n, 1, place, &wide));
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)wide)[i] = byte_of(type, code_at(raw, i, types[type].bits));
        result->bytes = wide;
        return DLC_OK;
    }
    if (result->dtype == DLC_BOOL) {
        for (size_t i = 0; i < n; i++) {
            if (raw[i] > 1)
                return dlc_diag_fail(model->diag, DLC_INVALID, place,
                                     "element %zu is %u; a BOOL is 0 or 1", i, raw[i]);
        }
    }
    result->bytes = raw;
    return DLC_OK;
}

static dlc_status wrong_count(dlc_onnx *model, const char *place, const char *field, size_t found,
                              size_t wanted)
{
    return dlc_diag_fail(model->diag, DLC_INVALID, place,
                         "%s has %zu elements; its dimensions ask for %zu", field, found, wanted);
}

/* int32_data: one element each, or as many as fit a byte for the types below 8 bits (6-bit ones:
 * one). */
static dlc_status take_int32(dlc_onnx *model, const Onnx__TensorProto *proto, size_t n,
                             const char *place, dlc_dense *result)
{
    int64_t type = proto->data_type;
    uint32_t bits = types[type].bits, each = dlc_dtype_bytes(result->dtype),
             per = bits < 6 ? 8 / bits : 1;
    if (proto->n_int32_data != (n + per - 1) / per)
        return wrong_count(model, place, "int32_data", proto->n_int32_data, (n + per - 1) / per);
    if (result->dtype == DLC_I32) {
        result->bytes = proto->int32_data;
        return DLC_OK;
    }
    int is_signed = type == 3 || type == 5;
    uint32_t stored = bits < 6 ? 8 : bits;
    int32_t lo = is_signed ? -(1 << (stored - 1)) : 0,
            hi = (is_signed ? 1 << (stored - 1) : 1 << stored) - 1;
    if (result->dtype == DLC_BOOL)
        hi = 1;
    void *bytes;
    DLC_TRY(allocate(model, n, each, place, &bytes));
    for (size_t i = 0; i < proto->n_int32_data; i++) {
        int32_t value = proto->int32_data[i];
        if (value < lo || value > hi)
            return dlc_diag_fail(model->diag, DLC_INVALID, place,
                                 "int32_data[%zu] = %" PRId32 " is no %s", i, value,
                                 types[type].name);
        if (!is_packed(type))
            memcpy((uint8_t *)bytes + i * each, &value, each);
        else
            for (size_t k = 0; k < per && i * per + k < n; k++)
                ((uint8_t *)bytes)[i * per + k] =
                    byte_of(type, (uint32_t)value >> (k * bits) & ((1u << bits) - 1));
    }
    result->bytes = bytes;
    return DLC_OK;
}

static dlc_status take_uint64(dlc_onnx *model, const Onnx__TensorProto *proto, size_t n,
                              const char *place, dlc_dense *result)
{
    if (proto->n_uint64_data != n)
        return wrong_count(model, place, "uint64_data", proto->n_uint64_data, n);
    if (result->dtype == DLC_U64) {
        result->bytes = proto->uint64_data;
        return DLC_OK;
    }
    void *bytes;
    DLC_TRY(allocate(model, n, 4, place, &bytes));
    for (size_t i = 0; i < n; i++) {
        if (proto->uint64_data[i] > UINT32_MAX)
            return dlc_diag_fail(model->diag, DLC_INVALID, place,
                                 "uint64_data[%zu] = %" PRIu64 " is no UINT32", i,
                                 proto->uint64_data[i]);
        ((uint32_t *)bytes)[i] = (uint32_t)proto->uint64_data[i];
    }
    result->bytes = bytes;
    return DLC_OK;
}

/* Elements of strings are pointers until they become a constant (im_constant). */
static dlc_status take_strings(dlc_onnx *model, const Onnx__TensorProto *proto, size_t n, const char *place, dlc_dense *result)
{
    void *bytes;
    if (proto->raw_data.len || proto->n_external_data)
        return dlc_diag_fail(model->diag, DLC_INVALID, place, "has strings elsewhere than in string_data");
    if (proto->n_string_data != n)
        return wrong_count(model, place, "string_data", proto->n_string_data, n);
    DLC_TRY(allocate(model, n, sizeof(const char *), place, &bytes));
    for (size_t i = 0; i < n; i++) {
        const ProtobufCBinaryData *text = &proto->string_data[i];
        if (text->len && memchr(text->data, 0, text->len))
            return dlc_diag_fail(model->diag, DLC_UNSUPPORTED, place, "string %zu holds a NUL; strings without one are supported", i);
        ((const char **)bytes)[i] = dlc_arena_strndup(model->arena, text->len ? (const char *)text->data : "", text->len);
    }
    result->bytes = bytes;
    return DLC_OK;
}

static dlc_status take_typed(dlc_onnx *model, const Onnx__TensorProto *proto, size_t n,
                             const char *place, dlc_dense *result)
{
    size_t found;
    const char *field;
    switch (proto->data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
        field = "float_data", found = proto->n_float_data, result->bytes = proto->float_data;
        break;
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
        field = "double_data", found = proto->n_double_data, result->bytes = proto->double_data;
        break;
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
        field = "int64_data", found = proto->n_int64_data, result->bytes = proto->int64_data;
        break;
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32:
    case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
        return take_uint64(model, proto, n, place, result);
    default:
        return take_int32(model, proto, n, place, result);
    }
    return found == n ? DLC_OK : wrong_count(model, place, field, found, n);
}

static dlc_status read_number(dlc_onnx *model, const char *key, const char *text, const char *place,
                              uint64_t *value)
{
    *value = 0;
    if (!*text)
        return dlc_diag_fail(model->diag, DLC_INVALID, place, "external data: %s is empty", key);
    for (const char *at = text; *at; at++) {
        if (*at < '0' || *at > '9' || __builtin_mul_overflow(*value, (uint64_t)10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(*at - '0'), value))
            return dlc_diag_fail(model->diag, DLC_INVALID, place,
                                 "external data: %s = '%.40s' is no size", key, text);
    }
    return DLC_OK;
}

static dlc_status take_external(dlc_onnx *model, const Onnx__TensorProto *proto, size_t n,
                                const char *place, dlc_dense *result)
{
    const char *location = NULL;
    uint64_t offset = 0, length = UINT64_MAX;
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const char *key = proto->external_data[i]->key, *value = proto->external_data[i]->value;
        if (!key || !value)
            return dlc_diag_fail(model->diag, DLC_INVALID, place,
                                 "external data: entry %zu has no key or no value", i);
        if (strcmp(key, "location") == 0)
            location = value;
        else if (strcmp(key, "offset") == 0)
            DLC_TRY(read_number(model, key, value, place, &offset));
        else if (strcmp(key, "length") == 0)
            DLC_TRY(read_number(model, key, value, place, &length));
    }
    if (!location)
        return dlc_diag_fail(model->diag, DLC_INVALID, place, "external data without a location");
    size_t bits, size;
    if (length == UINT64_MAX && dlc_mul_size(n, types[proto->data_type].bits, &bits))
        length = (bits + 7) / 8;
    const uint8_t *bytes;
    DLC_TRY(dlc_external_bytes(model, location, offset, length, place, &bytes, &size));
    return take_raw(model, proto->data_type, bytes, size, n, place, result);
}

static size_t typed_count(const Onnx__TensorProto *proto)
{
    return proto->n_float_data + proto->n_int32_data + proto->n_int64_data + proto->n_double_data +
           proto->n_uint64_data + proto->n_string_data;
}

/* The reference that the splice left as raw_data: bytes of the file, from raw_data or from
 * float_data, double_data. */
static dlc_status take_reference(dlc_onnx *model, const Onnx__TensorProto *proto, size_t n,
                                 const char *place, dlc_dense *result)
{
    dlc_wire_ref ref = {0};
    if (proto->raw_data.len == sizeof ref)
        memcpy(&ref, proto->raw_data.data, sizeof ref);
    int wanted = ref.field == 4    ? ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT
                 : ref.field == 10 ? ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE
                                   : proto->data_type;
    if (wanted != proto->data_type)
        return dlc_diag_fail(model->diag, DLC_INVALID, place, "has %s for elements of type %s",
                             ref.field == 4 ? "float_data" : "double_data",
                             types[proto->data_type].name);
    return take_raw(model, proto->data_type, model->bytes + ref.offset, (size_t)ref.size_bytes, n,
                    place, result);
}

dlc_status dlc_tensor_decode(dlc_onnx *model, const Onnx__TensorProto *proto, const char *place,
                             dlc_dense *result)
{
    *result = (dlc_dense){0};
    size_t n;
    DLC_TRY(read_dims(model, proto->dims, proto->n_dims, place, result, &n));
    result->dtype = dlc_dtype_of_onnx(proto->data_type);
    if (result->dtype == DLC_NONE)
        return dlc_diag_fail(
            model->diag,
            is_known(proto->data_type) && proto->data_type ? DLC_UNSUPPORTED : DLC_INVALID, place,
            "has elements of type %" PRId32 " (%s); supported: bool, integers, floats and strings",
            proto->data_type, dlc_onnx_type_name(proto->data_type));
    if (proto->segment)
        return dlc_diag_fail(model->diag, DLC_UNSUPPORTED, place, "is stored in segments");
    result->size_bytes = n * dlc_dtype_bytes(result->dtype); /* n <= 2^40 */
    if (dlc_is_text(result->dtype))
        return take_strings(model, proto, n, place, result);
    int is_external = proto->has_data_location &&
                      proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    if (is_external && (proto->raw_data.len || typed_count(proto)))
        return dlc_diag_fail(model->diag, DLC_INVALID, place,
                             "has both external data and data of its own");
    if (is_external)
        return take_external(model, proto, n, place, result);
    if (proto->raw_data.len)
        return take_reference(model, proto, n, place, result);
    if (proto->n_external_data)
        return dlc_diag_fail(model->diag, DLC_INVALID, place,
                             "names external data, but its data_location is not EXTERNAL");
    return take_typed(model, proto, n, place, result);
}

/* Linear index of value i; indices are [nnz] (linear) or [nnz, rank]. */
static dlc_status sparse_index(dlc_onnx *model, const dlc_dense *dense, const dlc_dense *indices,
                               size_t i, const char *place, size_t n, size_t *result)
{
    uint32_t width = indices->rank == 2 ? (uint32_t)indices->dims[1] : 1;
    *result = 0;
    for (uint32_t k = 0; k < width; k++) {
        int64_t index, extent = indices->rank == 2 ? dense->dims[k] : (int64_t)n;
        memcpy(&index, (const uint8_t *)indices->bytes + (i * width + k) * 8, 8);
        if (index < 0 || index >= extent)
            return dlc_diag_fail(model->diag, DLC_INVALID, place,
                                 "index %" PRId64 " of value %zu is outside of %" PRId64, index, i,
                                 extent);
        *result = *result * (size_t)extent + (size_t)index;
    }
    return DLC_OK;
}

static dlc_status scatter(dlc_onnx *model, const dlc_dense *values, const dlc_dense *indices,
                          size_t n, const char *place, dlc_dense *result, void *bytes)
{
    uint32_t each = dlc_dtype_bytes(result->dtype);
    size_t previous = 0;
    for (size_t i = 0; i < (size_t)values->dims[0]; i++) {
        size_t at;
        DLC_TRY(sparse_index(model, result, indices, i, place, n, &at));
        if (i && at <= previous)
            return dlc_diag_fail(model->diag, DLC_INVALID, place,
                                 "indices are not in ascending order at value %zu", i);
        previous = at;
        memcpy((uint8_t *)bytes + at * each, (const uint8_t *)values->bytes + i * each, each);
    }
    return DLC_OK;
}

dlc_status dlc_sparse_decode(dlc_onnx *model, const Onnx__SparseTensorProto *proto,
                             const char *place, dlc_dense *result)
{
    *result = (dlc_dense){0};
    if (!proto->values || !proto->indices)
        return dlc_diag_fail(model->diag, DLC_INVALID, place, "a sparse tensor without %s",
                             proto->values ? "indices" : "values");
    dlc_dense values, indices;
    size_t n;
    DLC_TRY(read_dims(model, proto->dims, proto->n_dims, place, result, &n));
    DLC_TRY(dlc_tensor_decode(model, proto->values, place, &values));
    DLC_TRY(dlc_tensor_decode(model, proto->indices, place, &indices));
    if (dlc_is_text(values.dtype))
        return dlc_diag_fail(model->diag, DLC_UNSUPPORTED, place, "is a sparse tensor of strings; dense ones are supported");
    int is_linear = indices.rank == 1,
        is_full = indices.rank == 2 && indices.dims[1] == (int64_t)result->rank;
    if (values.rank != 1 || indices.dtype != DLC_I64 || !(is_linear || is_full) ||
        indices.dims[0] != values.dims[0])
        return dlc_diag_fail(
            model->diag, DLC_INVALID, place,
            "a sparse tensor wants values [nnz] and INT64 indices [nnz] or [nnz, %" PRIu32 "]",
            result->rank);
    result->dtype = values.dtype;
    result->size_bytes = n * dlc_dtype_bytes(result->dtype);
    void *bytes;
    DLC_TRY(allocate(model, n, dlc_dtype_bytes(result->dtype), place, &bytes));
    result->bytes = bytes;
    return scatter(model, &values, &indices, n, place, result, bytes);
}
