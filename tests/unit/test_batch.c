/* Requests that run together: each gets what it gets alone, whatever stands beside it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dlc/batch.h"
#include "dlc/dlc.h"
#include "tests/unit/suite.h"

#define OK(call) ck_assert_msg((call) == DLC_OK, "%s", dlcrt_last_error())

/* Rows of a table, weighted and summed over a sentence; and the weighted rows themselves. */
static const char tokens[] = "graph @tokens(%ids: i64[batch,length], %weights: f32[batch,length]) -> %sum, %rows {\n"
                             "  %table: f32[4,2] = const [0, 1, 10, 20, 300, 400, 5000, 6000]\n"
                             "  %e: f32[batch,length,2] = gather %table, %ids {axis=0}\n"
                             "  %w: f32[batch,length,1] = reshape %weights {dims=[batch, length, 1]}\n"
                             "  %rows: f32[batch,length,2] = mul %e, %w\n"
                             "  %sum: f32[batch,2] = reduce_sum %rows {axes=[1], keepdims=0}\n"
                             "}\n";
/* Nothing to merge: a scalar and fixed sizes. */
static const char whole[] = "graph @whole(%x: f32[3], %s: f32[]) -> %y, %m {\n"
                            "  %y: f32[3] = mul %x, %s\n"
                            "  %m: f32[] = reduce_sum %y {axes=[0], keepdims=0}\n"
                            "}\n";
/* As many columns as rows: rows of several requests would not be apart. */
static const char square[] = "graph @square(%x: f32[batch,2]) -> %y {\n"
                             "  %t: f32[2,batch] = transpose %x {perm=[1, 0]}\n"
                             "  %y: f32[batch,batch] = matmul %x, %t\n"
                             "}\n";

/* Lengths in two dimensions: their product may be anything. */
static const char sheets[] = "graph @sheets(%x: f32[batch,s,t]) -> %y {\n"
                             "  %y: f32[batch,s,t] = add %x, %x\n"
                             "}\n";
/* The batch is called like the dtype. */
static const char strange[] = "graph @strange(%x: f32[f32,2]) -> %y {\n"
                              "  %y: f32[f32,2] = add %x, %x\n"
                              "}\n";
static const char pairs[] = "graph @pairs(%x: f32[batch,t]) -> %y {\n"
                            "  %y: f32[batch,t] = add %x, %x\n"
                            "}\n";

static dlcrt_executable *executable;
static dlcrt_batch *batch;

static void open_model(const char *text, const dlcrt_batch_options *options)
{
    dlc_model *model;
    dlc_options how = {.size_bytes = sizeof how, .target = "native"};
    dlc_model_note note = {0};
    int fd = memfd_create("executable", MFD_CLOEXEC);
    dlc_status status = dlc_model_open_bytes(text, strlen(text), "made.dlc", &how, &model);
    if (status == DLC_OK)
        status = dlc_model_write_fd(model, "so", fd, "made");
    dlc_model_message(model, 0, &note);
    ck_assert_msg(status == DLC_OK, "%s", note.text ? note.text : "no message");
    dlc_model_close(model);
    OK(dlcrt_executable_open_fd(fd, &executable));
    close(fd);
    if (options)
        OK(dlcrt_batch_create(executable, options, &batch));
}

static void teardown(void)
{
    dlcrt_batch_destroy(batch);
    dlcrt_executable_close(executable);
    batch = NULL;
    executable = NULL;
}

static dlcrt_tensor matrix(dlc_dtype dtype, void *data, int64_t rows, int64_t columns)
{
    size_t size_bytes = (size_t)(rows * columns) * dlc_dtype_bytes(dtype);
    return (dlcrt_tensor){.data = data, .size_bytes = size_bytes, .dtype = dtype, .rank = 2, .dims = {rows, columns}};
}

/* A request of `rows` sentences of `length` words, all of them word `id`, weighing 1. */
static void ask(int64_t rows, int64_t length, int64_t id)
{
    int64_t ids[64];
    float weights[64];
    for (int i = 0; i < 64; i++) {
        ids[i] = id;
        weights[i] = 1;
    }
    dlcrt_tensor tensors[] = {matrix(DLC_I64, ids, rows, length), matrix(DLC_F32, weights, rows, length)};
    OK(dlcrt_batch_begin(batch));
    OK(dlcrt_batch_input(batch, 0, &tensors[0]));
    OK(dlcrt_batch_input(batch, 1, &tensors[1]));
}

static void check_sentence(uint32_t request, int64_t rows, int64_t length, float first)
{
    dlcrt_tensor sum = {.name = "sum"}, words = {0};
    OK(dlcrt_batch_output(batch, request, 0, &sum));
    ck_assert_int_eq(sum.dims[0], rows);
    ck_assert_uint_eq(sum.size_bytes, (size_t)rows * 8);
    for (int64_t r = 0; r < rows; r++)
        ck_assert_float_eq(((float *)sum.data)[2 * r], (float)length * first);
    OK(dlcrt_batch_output(batch, request, 1, &words));
    ck_assert_uint_eq(words.rank, 3);
    ck_assert_int_eq(words.dims[0], rows);
    ck_assert_int_eq(words.dims[1], length);
    for (int64_t i = 0; i < rows * length; i++)
        ck_assert_float_eq(((float *)words.data)[2 * i], first);
}

static void check_refused(uint32_t request, const char *sentence)
{
    dlcrt_tensor sum = {0};
    ck_assert_int_eq(dlcrt_batch_output(batch, request, 0, &sum), DLC_INVALID);
    ck_assert_msg(strstr(dlcrt_last_error(), sentence) != NULL, "%s", dlcrt_last_error());
}

static uint32_t count_runs(void)
{
    uint32_t n = 0;
    while (dlcrt_batch_rows(batch, n) >= 0)
        n++;
    return n;
}

START_TEST(requests_of_equal_shapes_are_one_run)
{
    open_model(tokens, &(dlcrt_batch_options){.threads = 1});
    ck_assert_str_eq(dlcrt_executable_batch(executable), "batch");
    for (int round = 0; round < 3; round++) {
        for (int64_t r = 0; r < 40; r++)
            ask(1 + r % 3, 5, r % 4);
        dlcrt_batch_run(batch);
        ck_assert_uint_eq(count_runs(), 1);
        ck_assert_int_eq(dlcrt_batch_rows(batch, 0), 79);
        static const float first[] = {0, 10, 300, 5000};
        for (int64_t r = 0; r < 40; r++)
            check_sentence((uint32_t)r, 1 + r % 3, 5, first[r % 4]);
    }
}
END_TEST

START_TEST(other_lengths_are_other_runs)
{
    open_model(tokens, &(dlcrt_batch_options){.threads = 1});
    ask(1, 5, 1);
    ask(2, 5, 1);
    ask(1, 3, 2);
    ask(1, 5, 3);
    dlcrt_batch_run(batch);
    ck_assert_uint_eq(count_runs(), 3);
    check_sentence(0, 1, 5, 10);
    check_sentence(1, 2, 5, 10);
    check_sentence(2, 1, 3, 300);
    check_sentence(3, 1, 5, 5000);
}
END_TEST

START_TEST(lengths_are_filled_up_and_cut_off)
{
    open_model(tokens, &(dlcrt_batch_options){.threads = 1, .pads = 1});
    ask(1, 5, 1);
    ask(2, 3, 2);
    ask(1, 0, 3);
    ask(1, 7, 3);
    dlcrt_batch_run(batch);
    ck_assert_uint_eq(count_runs(), 1);
    check_sentence(0, 1, 5, 10);
    check_sentence(1, 2, 3, 300);
    check_sentence(2, 1, 0, 5000);
    check_sentence(3, 1, 7, 5000);
}
END_TEST

START_TEST(requests_may_be_kept_apart)
{
    open_model(tokens, &(dlcrt_batch_options){.threads = 1, .is_apart = 1});
    ask(1, 5, 1);
    ask(2, 5, 2);
    dlcrt_batch_run(batch);
    ck_assert_uint_eq(count_runs(), 2);
    check_sentence(0, 1, 5, 10);
    check_sentence(1, 2, 5, 300);
}
END_TEST

START_TEST(who_is_wrong_is_refused_alone)
{
    open_model(tokens, &(dlcrt_batch_options){.threads = 1});
    float weights[6] = {1, 1, 1, 1, 1, 1};
    int64_t ids[6] = {1, 1, 1, 1, 1, 1};
    dlcrt_tensor good = matrix(DLC_I64, ids, 1, 5), short_one = matrix(DLC_F32, weights, 1, 4), more = matrix(DLC_F32, weights, 2, 3),
                 typed = matrix(DLC_I32, ids, 1, 5), named = good, flat = good, lying = good;
    named.name = "id";
    flat.rank = 1;
    lying.size_bytes = 8;
    ask(1, 5, 1); /* 0 */
    OK(dlcrt_batch_begin(batch)); /* 1: an input is missing */
    OK(dlcrt_batch_input(batch, 0, &good));
    OK(dlcrt_batch_begin(batch)); /* 2: lengths differ */
    OK(dlcrt_batch_input(batch, 0, &good));
    OK(dlcrt_batch_input(batch, 1, &short_one));
    OK(dlcrt_batch_begin(batch)); /* 3 */
    ck_assert_int_eq(dlcrt_batch_input(batch, 0, &typed), DLC_INVALID);
    OK(dlcrt_batch_begin(batch)); /* 4 */
    ck_assert_int_eq(dlcrt_batch_input(batch, 0, &named), DLC_INVALID);
    OK(dlcrt_batch_begin(batch)); /* 5 */
    ck_assert_int_eq(dlcrt_batch_input(batch, 0, &flat), DLC_INVALID);
    OK(dlcrt_batch_begin(batch)); /* 6: the bytes of one word for five */
    OK(dlcrt_batch_input(batch, 0, &lying));
    OK(dlcrt_batch_begin(batch)); /* 7: as many words, but not as many rows */
    OK(dlcrt_batch_input(batch, 0, &good));
    OK(dlcrt_batch_input(batch, 1, &more));
    ask(1, 5, 77); /* 8: only the run finds out */
    ask(2, 5, 2);  /* 9 */
    OK(dlcrt_batch_begin(batch)); /* 10: and the last */
    dlcrt_batch_run(batch);
    ck_assert_uint_eq(count_runs(), 2); /* one by one, after the refusal */
    check_sentence(0, 1, 5, 10);
    check_refused(1, "'weights' is missing");
    check_refused(2, "'weights': dimension 1 is 4, another input has 5 for length");
    check_refused(3, "'ids': dtype i32, wanted i64[batch,length]");
    check_refused(4, "no input is called 'id'");
    check_refused(5, "'ids': rank 1, wanted i64[batch,length]");
    check_refused(6, "'ids': 8 bytes, wanted 40");
    check_refused(7, "'weights': dimension 0 is 2, another input has 1 for batch");
    check_refused(8, "out of range");
    check_sentence(9, 2, 5, 300);
    check_refused(10, "'ids' is missing");
    dlcrt_tensor none = {0};
    ck_assert_int_eq(dlcrt_batch_output(batch, 11, 0, &none), DLC_USAGE);
    ck_assert_int_eq(dlcrt_batch_output(batch, 0, 2, &none), DLC_INVALID);
    none.name = "total";
    ck_assert_int_eq(dlcrt_batch_output(batch, 0, 0, &none), DLC_INVALID);
    ck_assert_int_eq(dlcrt_batch_input(batch, 0, &good), DLC_USAGE); /* no request was begun since */
}
END_TEST

START_TEST(data_come_in_pieces_and_scalars_with_a_dimension)
{
    open_model(whole, &(dlcrt_batch_options){.threads = 1});
    ck_assert_ptr_null(dlcrt_executable_batch(executable));
    for (int r = 0; r < 3; r++) {
        float x[3] = {1, 2, 3}, s = (float)r;
        dlcrt_tensor part = {.name = "x", .data = x, .size_bytes = 4, .dtype = DLC_F32, .rank = 1, .dims = {3}};
        dlcrt_tensor rest = {.name = "x", .data = x + 1, .size_bytes = 8, .dtype = DLC_F32, .rank = 1, .dims = {3}};
        dlcrt_tensor scalar = {.name = "s", .data = &s, .size_bytes = 4, .dtype = DLC_F32, .rank = (uint32_t)r % 2, .dims = {1}};
        OK(dlcrt_batch_begin(batch));
        OK(dlcrt_batch_input(batch, 0, &scalar));
        OK(dlcrt_batch_input(batch, 0, &part));
        OK(dlcrt_batch_input(batch, 0, &rest));
    }
    dlcrt_batch_run(batch);
    ck_assert_uint_eq(count_runs(), 3);
    for (uint32_t r = 0; r < 3; r++) {
        dlcrt_tensor y = {0}, m = {0};
        OK(dlcrt_batch_output(batch, r, 0, &y));
        OK(dlcrt_batch_output(batch, r, 1, &m));
        ck_assert_float_eq(((float *)y.data)[2], 3.0f * (float)r);
        ck_assert_float_eq(*(float *)m.data, 6.0f * (float)r);
        ck_assert_uint_eq(m.rank, 0);
        ck_assert_int_eq(m.dims[0], 1);
    }
}
END_TEST

START_TEST(rows_that_depend_on_each_other_are_not_merged)
{
    open_model(square, &(dlcrt_batch_options){.threads = 1});
    ck_assert_ptr_null(dlcrt_executable_batch(executable));
    for (int64_t r = 1; r < 4; r++) {
        float x[6] = {1, 2, 3, 4, 5, 6};
        dlcrt_tensor tensor = matrix(DLC_F32, x, r, 2);
        OK(dlcrt_batch_begin(batch));
        OK(dlcrt_batch_input(batch, 0, &tensor));
    }
    dlcrt_batch_run(batch);
    for (uint32_t r = 0; r < 3; r++) {
        dlcrt_tensor y = {0};
        OK(dlcrt_batch_output(batch, r, 0, &y));
        ck_assert_int_eq(y.dims[1], r + 1);
        ck_assert_float_eq(*(float *)y.data, 5);
    }
}
END_TEST

/* A request of {rows, s, t}, all 1. */
static void ask_sheet(int64_t rows, int64_t s, int64_t t)
{
    float ones[16];
    for (int i = 0; i < 16; i++)
        ones[i] = 1;
    dlcrt_tensor tensor = {.data = ones, .dtype = DLC_F32, .rank = 3, .dims = {rows, s, t}};
    tensor.size_bytes = s && t ? (size_t)(rows * s * t) * sizeof *ones : 0;
    OK(dlcrt_batch_begin(batch));
    OK(dlcrt_batch_input(batch, 0, &tensor));
}

/* Too much to fill up, in elements or in bytes: one by one. */
START_TEST(what_is_too_long_is_not_filled_up)
{
    static const int64_t longest[] = {(int64_t)1 << 50, (int64_t)1 << 52, (int64_t)1 << 49};
    open_model(sheets, &(dlcrt_batch_options){.threads = 1, .pads = 1});
    for (int i = 0; i < 3; i++) {
        ask_sheet(1, 1024, 0);
        ask_sheet(1, 0, longest[i]);
        ask_sheet(2, 1, 1);
        dlcrt_batch_run(batch);
        dlcrt_tensor y = {0};
        OK(dlcrt_batch_output(batch, 2, 0, &y));
        ck_assert_int_eq(y.dims[0], 2);
        ck_assert_uint_eq(y.size_bytes, 8);
        ck_assert_float_eq(((float *)y.data)[1], 2);
        OK(dlcrt_batch_output(batch, 0, 0, &y));
        ck_assert_uint_eq(y.size_bytes, 0);
    }
}
END_TEST

START_TEST(rows_of_nothing_take_no_time)
{
    open_model(sheets, &(dlcrt_batch_options){.threads = 1, .pads = 1});
    ask_sheet((int64_t)1 << 30, 0, 5);
    ask_sheet(1, 0, 3);
    dlcrt_batch_run(batch);
    for (uint32_t r = 0; r < 2; r++) {
        dlcrt_tensor y = {0};
        OK(dlcrt_batch_output(batch, r, 0, &y));
        ck_assert_int_eq(y.dims[2], r ? 3 : 5);
        ck_assert_uint_eq(y.size_bytes, 0);
    }
}
END_TEST

START_TEST(more_rows_than_can_be_counted_are_not_merged)
{
    float ones[3] = {1, 1, 1};
    open_model(pairs, &(dlcrt_batch_options){.threads = 1});
    for (int r = 0; r < 3; r++) {
        dlcrt_tensor tensor = {.data = ones, .dtype = DLC_F32, .rank = 2, .dims = {r < 2 ? INT64_MAX : 3, 0}};
        OK(dlcrt_batch_begin(batch));
        OK(dlcrt_batch_input(batch, 0, &tensor));
    }
    dlcrt_batch_run(batch);
    ck_assert_int_ne(dlcrt_batch_rows(batch, 0), 1);
    dlcrt_tensor y = {0};
    OK(dlcrt_batch_output(batch, 2, 0, &y));
    ck_assert_int_eq(y.dims[0], 3);
    ck_assert_uint_eq(y.size_bytes, 0);
}
END_TEST

START_TEST(a_symbol_may_be_called_like_a_type)
{
    open_model(strange, &(dlcrt_batch_options){.threads = 1});
    ck_assert_str_eq(dlcrt_executable_batch(executable), "f32");
}
END_TEST

START_TEST(a_tensor_asks_by_position_again)
{
    open_model(tokens, &(dlcrt_batch_options){.threads = 1});
    ask(1, 5, 1);
    dlcrt_batch_run(batch);
    dlcrt_tensor tensor = {0};
    OK(dlcrt_batch_output(batch, 0, 0, &tensor));
    ck_assert_ptr_null(tensor.name);
    ck_assert_uint_eq(tensor.rank, 2);
    OK(dlcrt_batch_output(batch, 0, 1, &tensor));
    ck_assert_uint_eq(tensor.rank, 3);
}
END_TEST

START_TEST(null_is_told)
{
    dlcrt_tensor tensor = {0};
    dlcrt_batch *made = NULL;
    open_model(tokens, &(dlcrt_batch_options){.threads = 1});
    ck_assert_int_eq(dlcrt_batch_create(NULL, NULL, &made), DLC_USAGE);
    ck_assert_str_eq(dlcrt_last_error(), "dlcrt_batch_create: executable is NULL");
    ck_assert_int_eq(dlcrt_batch_create(executable, NULL, NULL), DLC_USAGE);
    ck_assert_str_eq(dlcrt_last_error(), "dlcrt_batch_create: result is NULL");
    ck_assert_int_eq(dlcrt_batch_begin(NULL), DLC_USAGE);
    ck_assert_str_eq(dlcrt_last_error(), "dlcrt_batch_begin: batch is NULL");
    ck_assert_int_eq(dlcrt_batch_input(NULL, 0, &tensor), DLC_USAGE);
    ck_assert_int_eq(dlcrt_batch_output(NULL, 0, 0, &tensor), DLC_USAGE);
    OK(dlcrt_batch_begin(batch));
    ck_assert_int_eq(dlcrt_batch_input(batch, 0, NULL), DLC_USAGE);
    dlcrt_batch_run(batch);
    ck_assert_int_eq(dlcrt_batch_output(batch, 0, 0, NULL), DLC_USAGE);
    ck_assert_int_eq(dlcrt_batch_output(batch, 0, 0, &tensor), DLC_USAGE);
    ck_assert_str_eq(dlcrt_last_error(), "dlcrt_batch_input: tensor is NULL");
    dlcrt_batch_run(NULL);
    ck_assert_int_eq(dlcrt_batch_rows(NULL, 0), -1);
    ck_assert_ptr_null(dlcrt_batch_context(NULL));
    ck_assert_ptr_null(dlcrt_executable_batch(NULL));
    ck_assert_int_eq(dlcrt_dtype_served(NULL), DLC_NONE);
}
END_TEST

START_TEST(servers_have_other_names_for_types)
{
    ck_assert_int_eq(dlcrt_dtype_served("FP32"), DLC_F32);
    ck_assert_int_eq(dlcrt_dtype_served("BF16"), DLC_BF16);
    ck_assert_int_eq(dlcrt_dtype_served("UINT8"), DLC_U8);
    ck_assert_int_eq(dlcrt_dtype_served("FP3"), DLC_NONE);
    ck_assert_int_eq(dlcrt_dtype_served(""), DLC_NONE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("batch");
    TCase *tests = tcase_create("batch");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, requests_of_equal_shapes_are_one_run);
    tcase_add_test(tests, other_lengths_are_other_runs);
    tcase_add_test(tests, lengths_are_filled_up_and_cut_off);
    tcase_add_test(tests, requests_may_be_kept_apart);
    tcase_add_test(tests, who_is_wrong_is_refused_alone);
    tcase_add_test(tests, data_come_in_pieces_and_scalars_with_a_dimension);
    tcase_add_test(tests, rows_that_depend_on_each_other_are_not_merged);
    tcase_add_test(tests, what_is_too_long_is_not_filled_up);
    tcase_add_test(tests, rows_of_nothing_take_no_time);
    tcase_add_test(tests, more_rows_than_can_be_counted_are_not_merged);
    tcase_add_test(tests, a_symbol_may_be_called_like_a_type);
    tcase_add_test(tests, a_tensor_asks_by_position_again);
    tcase_add_test(tests, null_is_told);
    tcase_add_test(tests, servers_have_other_names_for_types);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
