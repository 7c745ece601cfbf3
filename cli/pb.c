/*
 * TensorProto files of the ONNX test suites. Reading is the importer's (in libdlc.so); writing
 * takes five fields of the wire format: dims = 1, data_type = 2, string_data = 6, name = 8, raw_data = 9.
 */
#include "cli/library.h"
#include "cli/tensors.h"

#include "base/file.h"

#include <string.h>

static void add_varint(dlc_str *out, uint64_t value)
{
    for (; value > 127; value >>= 7)
        dlc_str_addn(out, (char[]){(char)(value | 128)}, 1);
    dlc_str_addn(out, (char[]){(char)value}, 1);
}

static void add_tag(dlc_str *out, uint32_t field, uint32_t wire)
{
    add_varint(out, field << 3 | wire);
}

/* Bits of an element in the file: types below 8 bits are packed there, low bits first. */
static uint32_t bits_in_file(dlc_dtype dtype)
{
    switch (dtype) {
    case DLC_I2:
    case DLC_U2:
        return 2;
    case DLC_I4:
    case DLC_U4:
    case DLC_F4E2M1:
        return 4;
    case DLC_F6E2M3:
    case DLC_F6E3M2:
        return 6;
    default:
        return dlc_dtypes[dtype].bits;
    }
}

static void add_packed(dlc_str *out, const dlcrt_tensor *tensor, uint32_t bits)
{
    uint32_t word = 0, nbits = 0;
    for (size_t i = 0; i < tensor->size_bytes; i++) {
        word |= (((const uint8_t *)tensor->data)[i] & ((1u << bits) - 1)) << nbits;
        nbits += bits;
        for (; nbits >= 8 || (nbits && i + 1 == tensor->size_bytes);
             nbits = nbits > 8 ? nbits - 8 : 0, word >>= 8)
            dlc_str_addn(out, (char[]){(char)word}, 1);
    }
}

static void add_strings(dlc_str *out, const dlcrt_tensor *tensor)
{
    for (size_t i = 0; i < dlc_tensor_elems(tensor); i++) {
        const char *text = dlc_tensor_string(tensor, i);
        add_tag(out, 6, 2);
        add_varint(out, strlen(text));
        dlc_str_add(out, text);
    }
}

dlc_status dlc_pb_write(const char *path, const dlcrt_tensor *tensor, dlc_diag *diag)
{
    dlc_str text = {0};
    for (uint32_t d = 0; d < tensor->rank; d++) {
        add_tag(&text, 1, 0);
        add_varint(&text, (uint64_t)tensor->dims[d]);
    }
    add_tag(&text, 2, 0);
    add_varint(&text, dlc_dtypes[tensor->dtype].onnx);
    add_tag(&text, 8, 2);
    add_varint(&text, strlen(tensor->name));
    dlc_str_add(&text, tensor->name);
    uint32_t bits = bits_in_file(tensor->dtype);
    int is_text = dlc_is_text(tensor->dtype), is_packed = bits < 8;
    if (is_text) {
        add_strings(&text, tensor);
    } else {
        add_tag(&text, 9, 2);
        add_varint(&text, is_packed ? (tensor->size_bytes * bits + 7) / 8 : tensor->size_bytes);
    }
    if (is_packed)
        add_packed(&text, tensor, bits);
    dlc_output output;
    dlc_status status = dlc_output_open(&output, path, diag);
    if (status == DLC_OK)
        status = dlc_output_write(&output, text.data, text.n, diag);
    if (status == DLC_OK && tensor->size_bytes && !is_packed && !is_text)
        status = dlc_output_write(&output, tensor->data, tensor->size_bytes, diag);
    if (status == DLC_OK)
        status = dlc_output_commit(&output, 0666, diag);
    if (status != DLC_OK)
        dlc_output_abandon(&output);
    dlc_str_deinit(&text);
    return status;
}

dlc_status dlc_pb_read(const char *path, dlc_arena *arena, dlc_diag *diag, dlcrt_tensor *tensor)
{
    const dlc_library *library;
    char message[512] = "is no tensor";
    dlcrt_tensor read;
    DLC_TRY(dlc_library_load(&library, diag));
    dlc_status status = library->tensor_read(path, &read, message, sizeof message);
    if (status != DLC_OK)
        return dlc_diag_fail(diag, status, NULL, "%s", message);
    *tensor = read;
    tensor->name = dlc_arena_strdup(arena, read.name);
    tensor->data = dlc_arena_alloc(arena, read.size_bytes ? read.size_bytes : 1, 64);
    memcpy(tensor->data, read.data, read.size_bytes);
    dlc_tensor_own_strings(tensor, arena);
    library->tensor_release(&read);
    return DLC_OK;
}
