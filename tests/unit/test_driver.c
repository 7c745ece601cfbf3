/*
 * The compiler as a library: what it says, what it refuses, and that no damage to a model does more
 * than end in a status.
 */
#include "dlc/dlc.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

static const char good[] = "tests/cli/models/good.onnx";

START_TEST(describes_inputs_and_outputs)
{
    dlc_model *model;
    dlcrt_tensor_info info;
    ck_assert_int_eq(dlc_model_open(good, NULL, &model), DLC_OK);
    ck_assert(dlc_model_input(model, 0, &info));
    ck_assert_str_eq(info.name, "x");
    ck_assert_str_eq(info.type, "f32[batch,3]");
    ck_assert_int_eq(info.dims[0], -1);
    ck_assert_str_eq(info.dim_names[0], "batch");
    ck_assert(!dlc_model_input(model, 1, &info));
    ck_assert(dlc_model_output(model, 0, &info));
    ck_assert_int_eq(info.dims[1], 4);
    dlc_model_close(model);
}
END_TEST

START_TEST(shapes_are_fixed)
{
    dlc_shape shape = {.name = "x", .rank = 2, .dims = {7, -1}};
    dlc_model *model;
    dlcrt_tensor_info info;
    ck_assert_int_eq(dlc_model_open(good, &(dlc_options){.shapes = &shape, .nshapes = 1}, &model),
                     DLC_OK);
    ck_assert(dlc_model_output(model, 0, &info));
    ck_assert_str_eq(info.type, "f32[7,4]");
    dlc_model_close(model);
}
END_TEST

static const struct {
    const char *path;
    dlc_options options;
    dlc_status status;
    const char *text; /* within the first message */
} refusals[] = {
    {"nowhere.onnx", {0}, DLC_IO, "cannot be opened"},
    {good, {.target = "pdp11"}, DLC_USAGE, "there is no target 'pdp11'"},
    {good, {.shapes = &(dlc_shape){.name = "z", .rank = 1}, .nshapes = 1}, DLC_USAGE, "'z'"},
    {good, {.shapes = &(dlc_shape){.name = "x", .rank = 1}, .nshapes = 1}, DLC_USAGE, "'x'"},
    {good, {.max_nodes = 1}, DLC_LIMIT, "1"},
    {"tests/cli/models/unknown_op.onnx", {0}, DLC_UNSUPPORTED, "FooBar"},
    {"tests/cli/models/matmul_k.onnx", {0}, DLC_INVALID, "5 and 3 differ"},
};

START_TEST(refuses)
{
    dlc_model *model;
    dlc_model_note note;
    ck_assert_int_eq(dlc_model_open(refusals[_i].path, &refusals[_i].options, &model),
                     refusals[_i].status);
    ck_assert(dlc_model_message(model, 0, &note));
    ck_assert_int_eq(note.status, refusals[_i].status);
    ck_assert_msg(strstr(note.text, refusals[_i].text) != NULL, "'%s' does not say '%s'", note.text,
                  refusals[_i].text);
    dlc_model_close(model);
}
END_TEST

START_TEST(texts)
{
    const char *text;
    dlc_model *model;
    ck_assert_int_eq(dlc_model_open(good, NULL, &model), DLC_OK);
    ck_assert_int_eq(dlc_model_text(model, DLC_TEXT_IMPORTED, NULL, &text), DLC_OK);
    ck_assert_ptr_nonnull(strstr(text, "matmul %x, %w"));
    ck_assert_int_eq(dlc_model_text(model, DLC_TEXT_INSPECT, "json", &text), DLC_OK);
    ck_assert_ptr_nonnull(strstr(text, "\"kernels\""));
    ck_assert_int_eq(dlc_model_text(model, DLC_TEXT_INSPECT, "html", &text), DLC_USAGE);
    ck_assert_int_eq(dlc_model_text(model, DLC_TEXT_EXPLAIN, "text", &text), DLC_OK);
    ck_assert_ptr_nonnull(strstr(text, "edges fused"));
    ck_assert_int_eq(dlc_model_write(model, "exe", "/tmp/x", NULL), DLC_USAGE);
    ck_assert_int_eq(dlc_model_write(model, "so", "/tmp/x", "no-identifier"), DLC_USAGE);
    dlc_model_close(model);
}
END_TEST

START_TEST(interprets)
{
    float x[2][3] = {{1, 0, 0}, {0, 1, 0}};
    dlcrt_tensor input = {.name = "x", .data = x, .dtype = DLC_F32, .rank = 2, .dims = {2, 3}},
                 output;
    dlc_model *model;
    dlc_model_note note;
    ck_assert_int_eq(dlc_model_open(good, NULL, &model), DLC_OK);
    ck_assert_int_eq(dlc_model_interpret(model, &input, 1, &output, 1), DLC_OK);
    ck_assert_int_eq(output.dims[0], 2);
    ck_assert_double_eq_tol(((float *)output.data)[0], 0.345584, 1e-6);
    ck_assert_double_eq(((float *)output.data)[6], 0); /* relu(-0.5369…) */
    input.dims[1] = 4;
    ck_assert_int_eq(dlc_model_interpret(model, &input, 1, &output, 1), DLC_INVALID);
    ck_assert(dlc_model_message(model, 0, &note));
    ck_assert_str_eq(note.text, "input 'x' is f32[2,4], where f32[batch,3] is wanted");
    ck_assert_int_eq(dlc_model_interpret(model, NULL, 0, &output, 1), DLC_INVALID);
    dlc_model_close(model);
}
END_TEST

/* ---- damage ---- */

typedef struct {
    unsigned char bytes[65536];
    size_t n;
    char path[64]; /* of a memory file that holds the damaged bytes */
    int fd;
} victim;

static void open_victim(victim *v, const char *path)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    v->n = fread(v->bytes, 1, sizeof v->bytes, file);
    fclose(file);
    v->fd = memfd_create("victim", 0);
    snprintf(v->path, sizeof v->path, "/proc/self/fd/%d", v->fd);
}

/* Whatever came in: all the way to the memory plan, or a status with a message. */
static dlc_status compile_bytes(const victim *v, size_t n)
{
    dlc_model *model;
    dlc_model_note note;
    const char *text;
    ck_assert_int_eq(ftruncate(v->fd, 0), 0);
    ck_assert_int_eq(pwrite(v->fd, v->bytes, n, 0), (ssize_t)n);
    dlc_status status = dlc_model_open(v->path, NULL, &model);
    if (status == DLC_OK)
        status = dlc_model_text(model, DLC_TEXT_GRAPH, NULL, &text);
    if (status != DLC_OK)
        ck_assert(dlc_model_message(model, 0, &note));
    ck_assert_int_ne(status, DLC_INTERNAL);
    dlc_model_close(model);
    return status;
}

START_TEST(every_truncation_is_refused)
{
    victim v;
    open_victim(&v, good);
    for (size_t n = 0; n < v.n; n++)
        ck_assert_int_ne(compile_bytes(&v, n), DLC_OK);
    ck_assert_int_eq(compile_bytes(&v, v.n), DLC_OK);
    close(v.fd);
}
END_TEST

static const char *const flipped[] = {"tests/cli/models/good.onnx",
                                      "tests/cli/models/conv_group.onnx", "models/digits.onnx"};

/* Weights fill most of the digits model: its flips stay in the first bytes (the nodes) and the last
 * (the interface). */
START_TEST(flips_end_in_a_status)
{
    victim v;
    open_victim(&v, flipped[_i]);
    random_state = (uint64_t)_i;
    size_t edge = v.n < 1200 ? v.n : 600;
    for (int i = 0; i < 3400; i++) {
        size_t at = draw((uint32_t)(2 * edge));
        at = at < edge || v.n == edge ? at % v.n : v.n - 1 - (at - edge);
        unsigned char mask = (unsigned char)(1u << draw(8));
        v.bytes[at] ^= mask;
        (void)compile_bytes(&v, v.n);
        v.bytes[at] ^= mask;
    }
    close(v.fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("driver");
    TCase *tcase = tcase_create("library");
    tcase_set_timeout(tcase, 200);
    tcase_add_test(tcase, describes_inputs_and_outputs);
    tcase_add_test(tcase, shapes_are_fixed);
    tcase_add_loop_test(tcase, refuses, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(tcase, texts);
    tcase_add_test(tcase, interprets);
    tcase_add_test(tcase, every_truncation_is_refused);
    tcase_add_loop_test(tcase, flips_end_in_a_status, 0, 3);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
