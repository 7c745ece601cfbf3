/* Small things about tensors: sizes, names, files by ending, made-up data. */
#include "cli/tensors.h"

#include <inttypes.h>
#include <string.h>

void dlc_tensor_type(const dlcrt_tensor *tensor, dlc_str *out)
{
    dlc_str_printf(out, "%s[", dlc_dtypes[tensor->dtype].text);
    for (uint32_t d = 0; d < tensor->rank; d++)
        dlc_str_printf(out, "%s%" PRId64, d ? "," : "", tensor->dims[d]);
    dlc_str_add(out, "]");
}

const dlcrt_tensor *dlc_tensors_find(const dlc_tensors *tensors, const char *name)
{
    for (uint32_t i = 0; i < tensors->n; i++)
        if (tensors->data[i].name && !strcmp(tensors->data[i].name, name))
            return &tensors->data[i];
    return NULL;
}

static int ends_in(const char *path, const char *ending)
{
    size_t n = strlen(path), k = strlen(ending);
    return n > k && !strcmp(path + n - k, ending);
}

int dlc_tensor_file_is(const char *path)
{
    return ends_in(path, ".npy") || ends_in(path, ".pb");
}

dlc_status dlc_tensor_file_read(const char *path, dlc_arena *arena, dlc_diag *diag,
                                dlcrt_tensor *tensor)
{
    if (ends_in(path, ".npy"))
        return dlc_npy_read(path, arena, diag, tensor);
    if (ends_in(path, ".pb"))
        return dlc_pb_read(path, arena, diag, tensor);
    return dlc_diag_fail(diag, DLC_USAGE, path, "ends in neither .npy nor .pb");
}

/* splitmix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Multiples of 1/64 for the 16-bit types, which both hold exactly. */
static uint16_t half_bits(dlc_dtype dtype, uint64_t random)
{
    float value = (float)((int)(random >> 57) - 64) / 64.0f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (dtype == DLC_BF16)
        return (uint16_t)(bits >> 16);
    uint32_t exponent = bits >> 23 & 255;
    return value == 0
               ? 0
               : (uint16_t)((bits >> 16 & 0x8000) | (exponent - 112) << 10 | (bits >> 13 & 0x3ff));
}

static void put_random(dlcrt_tensor *tensor, size_t i, uint64_t random)
{
    float f32 = (float)(random >> 40) * 0x1p-23f - 1.0f;
    double f64 = (double)(random >> 11) * 0x1p-52 - 1.0;
    uint16_t f16 = 0;
    uint64_t bit = random >> 63; /* little-endian: its low bytes are every integer type's 0 or 1 */
    const void *from = &bit;
    if (tensor->dtype == DLC_F32)
        from = &f32;
    else if (tensor->dtype == DLC_F64)
        from = &f64;
    else if (dlc_is_float(tensor->dtype)) {
        f16 = half_bits(tensor->dtype, random);
        from = &f16;
    }
    size_t element_bytes = dlc_dtype_bytes(tensor->dtype);
    memcpy((char *)tensor->data + i * element_bytes, from, element_bytes);
}

dlc_status dlc_tensor_random(dlcrt_tensor *tensor, uint64_t seed, dlc_arena *arena, dlc_diag *diag)
{
    int overflow;
    tensor->size_bytes = dlc_tensor_bytes(tensor->dtype, tensor->dims, tensor->rank, &overflow);
    if (overflow)
        return dlc_diag_fail(diag, DLC_LIMIT, NULL, "a random input would not fit into memory");
    tensor->data = dlc_arena_alloc(arena, tensor->size_bytes ? tensor->size_bytes : 1, 64);
    size_t nelems = tensor->size_bytes / dlc_dtype_bytes(tensor->dtype);
    for (size_t i = 0; i < nelems; i++)
        put_random(tensor, i, next_random(&seed));
    for (size_t i = 0; dlc_is_text(tensor->dtype) && i < nelems; i++) /* words of a letter */
        ((const char **)tensor->data)[i] = dlc_arena_printf(arena, "%c", (int)('a' + next_random(&seed) % 26));
    return DLC_OK;
}
