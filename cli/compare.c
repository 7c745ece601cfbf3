/* Comparing outputs: as onnx's own runner does, element by element, and where the largest error is.
 */
#include "cli/tensors.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static double half_to_double(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31)
        return fraction ? NAN : sign * INFINITY;
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

static double bfloat_to_double(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

double dlc_tensor_element(const dlcrt_tensor *tensor, uint64_t i)
{
    uint32_t n = dlc_dtype_bytes(tensor->dtype);
    const char *at = (const char *)tensor->data + i * n;
    uint64_t bits = 0;
    float f32;
    double f64;
    memcpy(&bits, at, n);
    switch (dlc_dtypes[tensor->dtype].class_) {
    case DLC_CLASS_INT:
        return (double)((int64_t)(bits << (64 - 8 * n)) >> (64 - 8 * n));
    case DLC_CLASS_FLOAT:
        break;
    default:
        return (double)bits;
    }
    if (tensor->dtype == DLC_F16)
        return half_to_double((uint16_t)bits);
    if (tensor->dtype == DLC_BF16)
        return bfloat_to_double((uint16_t)bits);
    if (tensor->dtype == DLC_F32) {
        memcpy(&f32, at, sizeof f32);
        return f32;
    }
    memcpy(&f64, at, sizeof f64);
    return f64;
}

/* 0 for equal bits and equal values, NaN with NaN included. */
static double error_of(double found, double expected)
{
    if (found == expected || (isnan(found) && isnan(expected)))
        return 0;
    double error = fabs(found - expected);
    return isnan(error) ? INFINITY : error;
}

static void compare_strings(const dlcrt_tensor *found, const dlcrt_tensor *expected, dlc_difference *d)
{
    for (uint64_t i = d->nelems; i-- > 0;) {
        const char *a = dlc_tensor_string(found, i), *b = dlc_tensor_string(expected, i);
        int is_other = strcmp(a, b) != 0;
        d->noutside += (uint64_t)is_other;
        if (!is_other && i)
            continue;
        if (!is_other && d->noutside)
            break;
        *d = (dlc_difference){d->nelems, d->noutside, is_other, i, 0, 0, a, b, 0, is_other};
    }
}

void dlc_difference_print(const dlc_difference *difference, dlc_str *out)
{
    if (!difference->found_text) {
        dlc_str_printf(out, "%.9g, expected %.9g", difference->found, difference->expected);
        return;
    }
    dlc_str_add_quoted(out, difference->found_text);
    dlc_str_add(out, ", expected ");
    dlc_str_add_quoted(out, difference->expected_text);
}

dlc_difference dlc_compare(const dlcrt_tensor *found, const dlcrt_tensor *expected,
                           dlc_tolerance tolerance)
{
    assert(found->dtype == expected->dtype && found->size_bytes == expected->size_bytes);
    dlc_difference d = {.nelems = found->size_bytes / dlc_dtype_bytes(found->dtype)};
    size_t element_bytes = dlc_dtype_bytes(found->dtype);
    if (dlc_is_text(found->dtype)) {
        compare_strings(found, expected, &d);
        return d;
    }
    for (uint64_t i = 0; i < d.nelems; i++) {
        double a = dlc_tensor_element(found, i), b = dlc_tensor_element(expected, i),
               error = error_of(a, b);
        /* integers beyond 2^53 may be equal as doubles only */
        if (error == 0 && !dlc_is_float(found->dtype) &&
            memcmp((char *)found->data + i * element_bytes,
                   (char *)expected->data + i * element_bytes, element_bytes) != 0)
            error = 1;
        d.noutside += isinf(error) || error > tolerance.atol + tolerance.rtol * fabs(b);
        if (isfinite(b) && fabs(b) > d.max_expected)
            d.max_expected = fabs(b);
        if (error > d.max_abs || i == 0) {
            d.max_abs = error;
            d.at = i;
            d.found = a;
            d.expected = b;
        }
    }
    d.max_rel = d.max_expected > 0 ? d.max_abs / d.max_expected : d.max_abs;
    return d;
}

dlc_status dlc_compare_types(const char *name, const dlcrt_tensor *found,
                             const dlcrt_tensor *expected, dlc_diag *diag)
{
    int equal = found->dtype == expected->dtype && found->rank == expected->rank;
    for (uint32_t d = 0; equal && d < found->rank; d++)
        equal = found->dims[d] == expected->dims[d];
    if (equal)
        return DLC_OK;
    dlc_str a = {0}, b = {0};
    dlc_tensor_type(found, &a);
    dlc_tensor_type(expected, &b);
    dlc_status status =
        dlc_diag_fail(diag, DLC_MISMATCH, NULL, "output '%s' is %s, where %s is expected", name,
                      dlc_str_text(&a), dlc_str_text(&b));
    dlc_str_deinit(&a);
    dlc_str_deinit(&b);
    return status;
}
