/* Tensors in files (npy, npz, pb), made up (random), and compared. Memory of all that is read lives
 * in the given arena. */
#ifndef DLC_CLI_TENSORS_H
#define DLC_CLI_TENSORS_H

#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "dlc/runtime.h"

typedef dlc_vec(dlcrt_tensor) dlc_tensors;

/* Bytes of a tensor of this dtype and shape; 0 when they pass 64 bits (*overflow set) or a
 * dimension is 0. */
size_t dlc_tensor_bytes(dlc_dtype dtype, const int64_t *dims, uint32_t rank, int *overflow);
/* f32[2,3] */
void dlc_tensor_type(const dlcrt_tensor *tensor, dlc_str *out);
const dlcrt_tensor *dlc_tensors_find(const dlc_tensors *tensors, const char *name); /* or NULL */

/* npy.c: one array; `place` names it in messages. Column-major arrays are turned; big-endian and
 * object arrays are refused. */
DLC_NODISCARD dlc_status dlc_npy_parse(const void *bytes, size_t size_bytes, const char *place,
                                       dlc_arena *arena, dlc_diag *diag, dlcrt_tensor *tensor);
DLC_NODISCARD dlc_status dlc_npy_read(const char *path, dlc_arena *arena, dlc_diag *diag,
                                      dlcrt_tensor *tensor);
/* The header of an npy file, magic and padding included. */
void dlc_npy_header(const dlcrt_tensor *tensor, dlc_str *out);

/* npz.c: stored and deflated members; zip64 when written or read sizes need it. Members are named
 * as in the file, less .npy. */
DLC_NODISCARD dlc_status dlc_npz_read(const char *path, dlc_arena *arena, dlc_diag *diag,
                                      dlc_tensors *tensors);
/* Stored members, whole or not at all. */
DLC_NODISCARD dlc_status dlc_npz_write(const char *path, const dlc_tensors *tensors,
                                       dlc_diag *diag);

/* pb.c: TensorProto. Reading goes through libdlc.so. */
DLC_NODISCARD dlc_status dlc_pb_read(const char *path, dlc_arena *arena, dlc_diag *diag,
                                     dlcrt_tensor *tensor);
DLC_NODISCARD dlc_status dlc_pb_write(const char *path, const dlcrt_tensor *tensor, dlc_diag *diag);

/* By the file's ending: .npy or .pb. */
int dlc_tensor_file_is(const char *path); /* by its name */
DLC_NODISCARD dlc_status dlc_tensor_file_read(const char *path, dlc_arena *arena, dlc_diag *diag,
                                              dlcrt_tensor *tensor);
/* Fills a tensor whose dtype and shape are set: floats uniform in [-1, 1), integers and bools 0
 * or 1. */
DLC_NODISCARD dlc_status dlc_tensor_random(dlcrt_tensor *tensor, uint64_t seed, dlc_arena *arena,
                                           dlc_diag *diag);

/* strings.c: tensors of strings */
size_t dlc_tensor_elems(const dlcrt_tensor *tensor);
const char *dlc_tensor_string(const dlcrt_tensor *tensor, uint64_t i);
/* Copies what its elements point to, if they are strings; `data` is its own. */
void dlc_tensor_own_strings(dlcrt_tensor *tensor, dlc_arena *arena);
/* The most characters of one, at least 1; and all of them as so many characters of four bytes. */
uint32_t dlc_strings_width(const dlcrt_tensor *tensor);
void dlc_strings_pack(const dlcrt_tensor *tensor, dlc_str *out);
/* n strings of `width` characters of `unit` bytes, 4 or 1. */
void dlc_strings_unpack(const void *bytes, uint32_t unit, uint32_t width, size_t n, dlc_arena *arena, const char **texts);

/* compare.c */
typedef struct {
    double rtol, atol;
} dlc_tolerance;
typedef struct {
    uint64_t nelems, noutside; /* elements compared, and outside the tolerance */
    double max_abs; /* largest |found - expected|; infinite when only one is NaN or infinite */
    uint64_t at;    /* its element */
    double found, expected; /* there */
    const char *found_text, *expected_text; /* of strings; else NULL */
    double max_expected;    /* largest finite |expected| */
    double max_rel;         /* max_abs / max_expected; max_abs when all expected are 0 */
} dlc_difference;
/* "2.5, expected 3" or, of strings, "\"a\", expected \"b\"" */
void dlc_difference_print(const dlc_difference *difference, dlc_str *out);
/* Elements of equal dtype and shape (asserted); strings are equal or not. found is within if |found - expected| <= atol +
 * rtol * |expected|. */
dlc_difference dlc_compare(const dlcrt_tensor *found, const dlcrt_tensor *expected,
                           dlc_tolerance tolerance);
/* Whether dtype and shape agree; the sentence in diag otherwise. */
DLC_NODISCARD dlc_status dlc_compare_types(const char *name, const dlcrt_tensor *found,
                                           const dlcrt_tensor *expected, dlc_diag *diag);
double dlc_tensor_element(const dlcrt_tensor *tensor, uint64_t i); /* rounded to double */

#endif
