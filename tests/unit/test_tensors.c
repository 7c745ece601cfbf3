/* npy, npz and comparison: what is written reads back, and damaged files are refused with a reason.
 */
#include "cli/tensors.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static dlc_arena *arena;
static dlc_diag diag;
static char folder[64];

static void setup(void)
{
    arena = dlc_arena_create(0);
    dlc_diag_init(&diag, arena);
    strcpy(folder, "/tmp/dlc-tensors.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    unlink(dlc_arena_printf(arena, "%s/a.npz", folder));
    rmdir(folder);
    dlc_arena_destroy(arena);
}

static const struct {
    const char *name;
    dlc_dtype dtype;
    uint32_t rank;
    int64_t dims[4];
} shapes[] = {
    {"scalar", DLC_F64, 0, {0}},          {"empty", DLC_F32, 2, {0, 5}},
    {"images", DLC_F32, 4, {2, 3, 4, 5}}, {"ids", DLC_I64, 1, {7}},
    {"mask", DLC_BOOL, 2, {3, 3}},        {"half", DLC_F16, 1, {9}},
    {"brain", DLC_BF16, 1, {9}},          {"bytes", DLC_U8, 3, {1, 1, 300}},
};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

START_TEST(npz_reads_back)
{
    dlc_tensors written = {0}, read = {0};
    char *path = dlc_arena_printf(arena, "%s/a.npz", folder);
    for (int i = 0; i < NSHAPES; i++) {
        dlcrt_tensor tensor = {
            .name = shapes[i].name, .dtype = shapes[i].dtype, .rank = shapes[i].rank};
        memcpy(tensor.dims, shapes[i].dims, sizeof shapes[i].dims);
        ck_assert_int_eq(dlc_tensor_random(&tensor, (uint64_t)i, arena, &diag), DLC_OK);
        dlc_vec_push(arena, &written, tensor);
    }
    ck_assert_int_eq(dlc_npz_write(path, &written, &diag), DLC_OK);
    ck_assert_int_eq(dlc_npz_read(path, arena, &diag, &read), DLC_OK);
    ck_assert_uint_eq(read.n, NSHAPES);
    for (int i = 0; i < NSHAPES; i++) {
        const dlcrt_tensor *tensor = dlc_tensors_find(&read, shapes[i].name);
        ck_assert_ptr_nonnull(tensor);
        ck_assert_int_eq(dlc_compare_types(shapes[i].name, tensor, &written.data[i], &diag),
                         DLC_OK);
        ck_assert_int_eq(memcmp(tensor->data, written.data[i].data, tensor->size_bytes), 0);
    }
}
END_TEST

/* Every truncation of a file is refused, and so is a changed byte of its elements. */
START_TEST(npz_damage)
{
    dlc_tensors written = {0};
    char *path = dlc_arena_printf(arena, "%s/a.npz", folder), bytes[1024];
    dlcrt_tensor tensor = {.name = "x", .dtype = DLC_F32, .rank = 1, .dims = {8}};
    ck_assert_int_eq(dlc_tensor_random(&tensor, 1, arena, &diag), DLC_OK);
    dlc_vec_push(arena, &written, tensor);
    ck_assert_int_eq(dlc_npz_write(path, &written, &diag), DLC_OK);
    FILE *file = fopen(path, "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t cut = 0; cut < n; cut++) {
        dlc_tensors read = {0};
        file = fopen(path, "wb");
        ck_assert_uint_eq(fwrite(bytes, 1, cut, file), cut);
        fclose(file);
        ck_assert_int_eq(dlc_npz_read(path, arena, &diag, &read), DLC_INVALID);
    }
    bytes[30 + 5 + 20 + 128 + 3] ^=
        1; /* local header, "x.npy", zip64 field, npy header, an element */
    file = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    fclose(file);
    dlc_tensors read = {0};
    ck_assert_int_eq(dlc_npz_read(path, arena, &diag, &read), DLC_INVALID);
    ck_assert_str_eq(diag.messages[diag.nmessages - 1].text, "member 'x.npy' is damaged");
}
END_TEST

static const struct {
    const char *header;
    size_t nbytes;
    dlc_status status;
    const char *text; /* of the message, or the elements as they must come out */
} headers[] = {
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)}", 12, DLC_OK, "abcdefghijkl"},
    {"{'shape': (2,3,), 'fortran_order': True, 'descr': '<i2', }", 12, DLC_OK, "abefijcdghkl"},
    {"{'descr': '|b1', 'fortran_order': False, 'shape': ()}", 1, DLC_OK, "a"},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", 4, DLC_UNSUPPORTED,
     "its elements are '>f4'; bool, integers, f16, f32 and f64 in little-endian order and strings "
     "(<U…, |S…) are supported"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", 8, DLC_UNSUPPORTED,
     "its elements are '|O'; bool, integers, f16, f32 and f64 in little-endian order and strings "
     "(<U…, |S…) are supported"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", 4, DLC_INVALID,
     "holds 4 bytes of elements, where its shape asks for 8"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296)}", 4, DLC_INVALID,
     NULL},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4, DLC_INVALID,
     "is no npy file: a dimension is no whole number"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, DLC_UNSUPPORTED,
     "its elements are records, where numbers are wanted"},
    {"{'descr': '<f4', 'shape': (1,)}", 4, DLC_INVALID,
     "is no npy file: its header lacks descr, fortran_order or shape"},
    {"{'descr': '<f4', 'colour': 1}", 4, DLC_INVALID,
     "is no npy file: its header has an unknown key"},
    {"", 4, DLC_INVALID, "is no npy file: its header is no dictionary"},
};

START_TEST(npy_headers)
{
    char bytes[512] = "\x93NUMPY\x01\x00";
    size_t n = strlen(headers[_i].header);
    dlcrt_tensor tensor;
    bytes[8] = (char)n;
    bytes[9] = 0;
    memcpy(bytes + 10, headers[_i].header, n);
    memcpy(bytes + 10 + n, "abcdefghijkl", headers[_i].nbytes);
    dlc_status status =
        dlc_npy_parse(bytes, 10 + n + headers[_i].nbytes, "x.npy", arena, &diag, &tensor);
    ck_assert_int_eq(status, headers[_i].status);
    if (status == DLC_OK)
        ck_assert_int_eq(memcmp(tensor.data, headers[_i].text, headers[_i].nbytes), 0);
    else if (headers[_i].text)
        ck_assert_str_eq(diag.messages[0].text, headers[_i].text);
}
END_TEST

/* Strings written and read, and one of numpy's of two columns, turned. */
START_TEST(strings_survive_npz)
{
    static const char *texts[6] = {"", "a", "é☃😀", "two words", "b", "c"};
    char *path = dlc_arena_printf(arena, "%s/a.npz", folder);
    dlcrt_tensor tensor = {.name = "s", .data = texts, .size_bytes = sizeof texts, .dtype = DLC_STR, .rank = 2, .dims = {2, 3}};
    dlc_tensors written = {0}, read = {0};
    dlc_vec_push(arena, &written, tensor);
    ck_assert_int_eq(dlc_npz_write(path, &written, &diag), DLC_OK);
    ck_assert_int_eq(dlc_npz_read(path, arena, &diag, &read), DLC_OK);
    ck_assert_int_eq(dlc_compare_types("s", &read.data[0], &tensor, &diag), DLC_OK);
    ck_assert_uint_eq(dlc_compare(&read.data[0], &tensor, (dlc_tolerance){0, 0}).noutside, 0);
    texts[2] = "other";
    dlc_difference d = dlc_compare(&read.data[0], &tensor, (dlc_tolerance){0, 0});
    ck_assert_uint_eq(d.noutside, 1);
    ck_assert_uint_eq(d.at, 2);
    ck_assert_str_eq(d.expected_text, "other");
    static const char turned[] = "\x93NUMPY\x01\x00\x40\x00{'descr': '|S2', 'fortran_order': True, 'shape': (2, 2), }     \n"
                                "a\0bbc\0d\0";
    ck_assert_int_eq(dlc_npy_parse(turned, sizeof turned - 1, "x.npy", arena, &diag, &tensor), DLC_OK);
    ck_assert_str_eq(dlc_tensor_string(&tensor, 0), "a");
    ck_assert_str_eq(dlc_tensor_string(&tensor, 1), "c");
    ck_assert_str_eq(dlc_tensor_string(&tensor, 2), "bb");
}
END_TEST

static const struct {
    float found, expected;
    int within;
} pairs[] = {
    {1, 1, 1},        {1.0009f, 1, 1},  {1.002f, 1, 0},          {NAN, NAN, 1},
    {NAN, 1, 0},      {1, NAN, 0},      {INFINITY, INFINITY, 1}, {INFINITY, -INFINITY, 0},
    {5, INFINITY, 0}, {INFINITY, 5, 0}, {0, -0.0f, 1},
};

START_TEST(differences)
{
    float found = pairs[_i].found, expected = pairs[_i].expected;
    dlcrt_tensor a = {.data = &found, .size_bytes = 4, .dtype = DLC_F32},
                 b = {.data = &expected, .size_bytes = 4, .dtype = DLC_F32};
    dlc_difference d = dlc_compare(&a, &b, (dlc_tolerance){1e-3, 1e-7});
    ck_assert_uint_eq(d.noutside, !pairs[_i].within);
}
END_TEST

START_TEST(large_integers_differ)
{
    int64_t found = (INT64_C(1) << 60) + 1, expected = INT64_C(1) << 60;
    dlcrt_tensor a = {.data = &found, .size_bytes = 8, .dtype = DLC_I64},
                 b = {.data = &expected, .size_bytes = 8, .dtype = DLC_I64};
    ck_assert_uint_eq(dlc_compare(&a, &b, (dlc_tolerance){0, 0}).noutside, 1);
    ck_assert_uint_eq(dlc_compare(&a, &a, (dlc_tolerance){0, 0}).noutside, 0);
}
END_TEST

START_TEST(half_elements)
{
    uint16_t bits = 0x3c01;
    dlcrt_tensor half = {.data = &bits, .size_bytes = 2, .dtype = DLC_F16}, brain = half;
    brain.dtype = DLC_BF16;
    ck_assert_double_eq(dlc_tensor_element(&half, 0), 1 + 0x1p-10);
    ck_assert_double_eq(dlc_tensor_element(&brain, 0), 0x1p-7 * (1 + 0x1p-7));
    bits = 0x8001;
    ck_assert_double_eq(dlc_tensor_element(&half, 0), -0x1p-24);
    bits = 0xfc00;
    ck_assert(isinf(dlc_tensor_element(&half, 0)));
    int8_t byte = -3;
    dlcrt_tensor small = {.data = &byte, .size_bytes = 1, .dtype = DLC_I8};
    ck_assert_double_eq(dlc_tensor_element(&small, 0), -3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tensors");
    TCase *tcase = tcase_create("files");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, npz_reads_back);
    tcase_add_test(tcase, npz_damage);
    tcase_add_test(tcase, strings_survive_npz);
    tcase_add_loop_test(tcase, npy_headers, 0, sizeof headers / sizeof *headers);
    tcase_add_loop_test(tcase, differences, 0, sizeof pairs / sizeof *pairs);
    tcase_add_test(tcase, large_integers_differ);
    tcase_add_test(tcase, half_elements);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
