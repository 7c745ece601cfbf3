/*
 * Constants as text. Small ones are listed, so that they can be edited; of others only a hash of the bytes is kept, from which
 * reading makes numbers that print as the same hash again: structure and shapes survive, weights do not.
 */
#include "ir/expr/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { LISTED_ELEMS = 32 };

static void print_element(dlc_dtype dtype, const void *element, dlc_str *out)
{
    dlc_scalar scalar = dlc_scalar_read(dtype, element);
    if (dlc_is_float(dtype))
        dlc_str_add_double(out, scalar.f);
    else if (dtype == DLC_BOOL)
        dlc_str_add(out, scalar.i ? "true" : "false");
    else if (dlc_is_unsigned(dtype))
        dlc_str_printf(out, "%" PRIu64, (uint64_t)scalar.i);
    else
        dlc_str_printf(out, "%" PRId64, scalar.i);
}

void dlc_tensor_print_whole(const dlc_tensor *tensor, dlc_dtype dtype, dlc_str *out)
{
    const char *bytes = tensor->bytes;
    size_t size = dlc_dtype_bytes(dtype), n = tensor->size_bytes / size;
    dlc_str_add(out, "[");
    for (size_t i = 0; i < n; i++) {
        dlc_str_add(out, i ? ", " : "");
        print_element(dtype, bytes + i * size, out);
    }
    dlc_str_add(out, "]");
}

void dlc_tensor_print(const dlc_tensor *tensor, dlc_dtype dtype, dlc_str *out)
{
    const char *bytes = tensor->bytes;
    size_t size = dlc_dtype_bytes(dtype), n = tensor->size_bytes / size;
    if (tensor->text_hash) {
        dlc_str_printf(out, "hash(%016" PRIx64 ")", tensor->text_hash);
    } else if (n <= LISTED_ELEMS || dlc_is_text(dtype)) {
        dlc_tensor_print_whole(tensor, dtype, out);
    } else if (memcmp(bytes, bytes + size, tensor->size_bytes - size) == 0) {
        dlc_str_add(out, "fill(");
        print_element(dtype, bytes, out);
        dlc_str_add(out, ")");
    } else {
        dlc_str_printf(out, "hash(%016" PRIx64 ")", dlc_hash(bytes, tensor->size_bytes, 0));
    }
}

void dlc_tensor_fill(dlc_dtype dtype, void *bytes, int64_t n)
{
    uint32_t size = dlc_dtype_bytes(dtype);
    for (int64_t i = 1; i < n; i++)
        memcpy((char *)bytes + i * size, bytes, size);
}

void dlc_tensor_limit(dlc_dtype dtype, void *bytes, size_t size_bytes, int log2)
{
    uint32_t size = dlc_dtype_bytes(dtype);
    double most = 0;
    for (size_t at = 0; at < size_bytes; at += size)
        most = fmax(most, fabs(dlc_scalar_read(dtype, (const char *)bytes + at).f));
    double by = 1;
    while (most * by > ldexp(1, log2))
        by /= 2;
    for (size_t at = 0; by < 1 && at < size_bytes; at += size) {
        dlc_scalar scalar = dlc_scalar_read(dtype, (const char *)bytes + at);
        scalar.f *= by;
        dlc_scalar_write(dtype, (char *)bytes + at, scalar);
    }
}

void dlc_tensor_invent(dlc_dtype dtype, uint64_t hash, void *bytes, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t number = (uint64_t)i, mixed = dlc_hash(&number, sizeof number, hash);
        dlc_scalar scalar = {.i = (int64_t)(mixed & 15) - (dlc_is_unsigned(dtype) ? 0 : 8)};
        if (dlc_is_float(dtype))
            scalar.f = dlc_round_to(dtype, (double)(mixed >> 12) / 2251799813685248.0 - 1);
        else if (dtype == DLC_BOOL || dlc_is_text(dtype))
            scalar.i = dtype == DLC_BOOL ? mixed & 1 : 0;
        dlc_scalar_write(dtype, (char *)bytes + i * dlc_dtype_bytes(dtype), scalar);
    }
}
