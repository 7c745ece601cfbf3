/*
 * Quantised models give the same bits under every fusion strategy, on every target that this machine runs, and those of the oracle:
 * scales are powers of two, so that no order of the arithmetic rounds.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dlc/dlc.h"
#include "tests/unit/suite.h"

static const char *const targets[] = {
#ifdef __x86_64__
    "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4+vnni",
#else
    "native",
#endif
};
static const char *const strategies[] = {"none", "pointwise", "greedy"};
enum { NTARGETS = sizeof targets / sizeof *targets, NSTRATEGIES = sizeof strategies / sizeof *strategies };

/* Codes of x with the zero point 117, and their numbers. */
#define CODES(shape, zero)                                                                         \
    "  %s0: f32[] = const [0.00390625]\n"                                                          \
    "  %z0: u8[] = const [" zero "]\n"                                                             \
    "  %d0: f32[" shape "] = div %x, %s0\n"                                                        \
    "  %r0: f32[" shape "] = round %d0\n"                                                          \
    "  %f0: f32[] = cast %z0 {dtype=f32}\n"                                                        \
    "  %a0: f32[" shape "] = add %r0, %f0\n"                                                       \
    "  %q0: u8[" shape "] = cast %a0 {dtype=u8, saturate=1}\n"                                     \
    "  %i0: i32[" shape "] = cast %q0 {dtype=i32}\n"                                               \
    "  %j0: i32[] = cast %z0 {dtype=i32}\n"                                                        \
    "  %k0: i32[" shape "] = sub %i0, %j0\n"                                                       \
    "  %l0: f32[" shape "] = cast %k0 {dtype=f32}\n"                                               \
    "  %x0: f32[" shape "] = mul %l0, %s0\n"
/* The same in whole numbers. */
#define WHOLE_CODES(shape) \
    "  %s: f32[] = const [256]\n" \
    "  %h: f32[] = const [117]\n" \
    "  %z: u8[] = const [117]\n" \
    "  %zi: i32[] = cast %z {dtype=i32}\n" \
    "  %xs: f32[" shape "] = mul %x, %s\n" \
    "  %xz: f32[" shape "] = add %xs, %h\n" \
    "  %q: u8[" shape "] = cast %xz {dtype=u8, saturate=1}\n" \
    "  %qi: i32[" shape "] = cast %q {dtype=i32}\n" \
    "  %qz: i32[" shape "] = sub %qi, %zi\n"
/* Codes of a result, and their numbers. */
#define AGAIN(shape)                                                                               \
    "  %sy: f32[] = const [0.0625]\n"                                                              \
    "  %zy: f32[] = const [99]\n"                                                                  \
    "  %dy: f32[" shape "] = div %c, %sy\n"                                                        \
    "  %ry: f32[" shape "] = round %dy\n"                                                          \
    "  %ay: f32[" shape "] = add %ry, %zy\n"                                                       \
    "  %qy: u8[" shape "] = cast %ay {dtype=u8, saturate=1}\n"                                     \
    "  %fy: f32[" shape "] = cast %qy {dtype=f32}\n"

static const char *const cases[] = {
    "graph @matmul(%x: f32[37,67]) -> %y {\n" CODES("37,67", "117")
    "  %w: i8[67,70] = const hash(3)\n"
    "  %s: f32[70] = const fill(0.25)\n"
    "  %wf: f32[67,70] = cast %w {dtype=f32}\n"
    "  %ws: f32[67,70] = mul %wf, %s\n"
    "  %c: f32[37,70] = matmul %x0, %ws\n" AGAIN("37,70")
    "  %y: f32[37,70] = add %fy, %c\n"
    "}\n",
    "graph @border(%x: f32[1,8,9,11]) -> %y {\n" CODES("1,8,9,11", "117")
    "  %w: u8[40,8,3,3] = const hash(5)\n"
    "  %z: u8[40,1,1,1] = const fill(9)\n"
    "  %s: f32[40,1,1,1] = const fill(0.5)\n"
    "  %wi: i32[40,8,3,3] = cast %w {dtype=i32}\n"
    "  %zi: i32[40,1,1,1] = cast %z {dtype=i32}\n"
    "  %wz: i32[40,8,3,3] = sub %wi, %zi\n"
    "  %wf: f32[40,8,3,3] = cast %wz {dtype=f32}\n"
    "  %ws: f32[40,8,3,3] = mul %wf, %s\n"
    "  %b: f32[40,1,1] = const fill(0.125)\n"
    "  %c0: f32[1,40,5,5] = conv %x0, %ws {pads=[1,0,1,1], strides=[2,2]}\n"
    "  %c: f32[1,40,5,5] = add %c0, %b\n" AGAIN("1,40,5,5")
    "  %y: f32[1,40,5,5] = add %fy, %c\n"
    "}\n",
    "graph @depthwise(%x: f32[1,24,9,10]) -> %y {\n" CODES("1,24,9,10", "117")
    "  %w: i8[24,1,3,3] = const hash(7)\n"
    "  %wf: f32[24,1,3,3] = cast %w {dtype=f32}\n"
    "  %c: f32[1,24,9,10] = conv %x0, %wf {pads=[1,1,1,1], group=24}\n" AGAIN("1,24,9,10")
    "  %y: f32[1,24,9,10] = mul %fy, %c\n"
    "}\n",
    "graph @grouped(%x: f32[1,8,20]) -> %y {\n" CODES("1,8,20", "0")
    "  %w: i8[12,4,3] = const hash(9)\n"
    "  %wf: f32[12,4,3] = cast %w {dtype=f32}\n"
    "  %c: f32[1,12,20] = conv %x0, %wf {pads=[2,2], dilations=[2], group=2}\n" AGAIN("1,12,20")
    "  %y: f32[1,12,20] = mul %fy, %c\n"
    "}\n",
    /* two layers, the first one's codes read twice */
    "graph @residual(%x: f32[19,40]) -> %y {\n" CODES("19,40", "117")
    "  %v: i8[64,40] = const hash(11)\n"
    "  %vf: f32[64,40] = cast %v {dtype=f32}\n"
    "  %vt: f32[40,64] = transpose %vf {perm=[1,0]}\n"
    "  %c: f32[19,64] = matmul %x0, %vt\n" AGAIN("19,64")
    "  %w: i8[64,64] = const hash(13)\n"
    "  %wf: f32[64,64] = cast %w {dtype=f32}\n"
    "  %e: f32[19,64] = matmul %fy, %wf\n"
    "  %y: f32[19,64] = add %e, %fy\n"
    "}\n",
    /* a zero point that is made at run time, as DynamicQuantizeLinear does */
    "graph @dynamic(%x: f32[21,48]) -> %y {\n"
    "  %m: f32[1,1] = reduce_max %x {axes=[0,1], keepdims=1}\n"
    "  %s: f32[] = const [256]\n"
    "  %ms: f32[1,1] = mul %m, %s\n"
    "  %z: u8[1,1] = cast %ms {dtype=u8, saturate=1}\n"
    "  %zi: i32[1,1] = cast %z {dtype=i32}\n"
    "  %xs: f32[21,48] = mul %x, %s\n"
    "  %xz: f32[21,48] = add %xs, %ms\n"
    "  %q: u8[21,48] = cast %xz {dtype=u8, saturate=1}\n"
    "  %qi: i32[21,48] = cast %q {dtype=i32}\n"
    "  %qz: i32[21,48] = sub %qi, %zi\n"
    "  %w: i8[48,64] = const hash(15)\n"
    "  %wi: i32[48,64] = cast %w {dtype=i32}\n"
    "  %c: i32[21,64] = matmul %qz, %wi\n"
    "  %y: f32[21,64] = cast %c {dtype=f32}\n"
    "}\n",
    /* the same of windows: padded, of 3 channels, of groups, each with another zero point or all with one */
    "graph @unsigned(%x: f32[1,3,9,11]) -> %y {\n" WHOLE_CODES("1,3,9,11")
    "  %w: u8[24,3,3,3] = const hash(15)\n"
    "  %u: u8[24,1,1,1] = const hash(18)\n"
    "  %wi: i32[24,3,3,3] = cast %w {dtype=i32}\n"
    "  %ui: i32[24,1,1,1] = cast %u {dtype=i32}\n"
    "  %wz: i32[24,3,3,3] = sub %wi, %ui\n"
    "  %c: i32[1,24,9,11] = conv %qz, %wz {pads=[1,1,1,1]}\n"
    "  %e: u8[1,24,9,11] = cast %c {dtype=u8, saturate=1}\n"
    "  %ei: i32[1,24,9,11] = cast %e {dtype=i32}\n"
    "  %v: u8[24,6,3,3] = const hash(16)\n"
    "  %vi: i32[24,6,3,3] = cast %v {dtype=i32}\n"
    "  %vz: i32[24,6,3,3] = sub %vi, %zi\n"
    "  %d: i32[1,24,5,6] = conv %ei, %vz {group=4, pads=[1,1,1,1], strides=[2,2]}\n"
    "  %y: f32[1,24,5,6] = cast %d {dtype=f32}\n"
    "}\n",
    /* windows along rows of pixels of three channels: 7 are 21 bytes, in steps of 3 of them */
    "graph @rows(%x: f32[1,3,9,11]) -> %y {\n" WHOLE_CODES("1,3,9,11")
    "  %w: u8[24,3,5,7] = const hash(15)\n"
    "  %u: u8[24,1,1,1] = const hash(18)\n"
    "  %wi: i32[24,3,5,7] = cast %w {dtype=i32}\n"
    "  %ui: i32[24,1,1,1] = cast %u {dtype=i32}\n"
    "  %wz: i32[24,3,5,7] = sub %wi, %ui\n"
    "  %c: i32[1,24,4,4] = conv %qz, %wz {pads=[2,3,1,2], strides=[2,3]}\n"
    "  %y: f32[1,24,4,4] = cast %c {dtype=f32}\n"
    "}\n",
    /* weights of u8 without a zero point in their middle: one that leaves no bytes, and another for each column */
    "graph @unsigned(%x: f32[21,48]) -> %y {\n" WHOLE_CODES("21,48")
    "  %w: u8[48,64] = const hash(15)\n"
    "  %wi: i32[48,64] = cast %w {dtype=i32}\n"
    "  %wz: i32[48,64] = sub %wi, %zi\n"
    "  %c: i32[21,64] = matmul %qz, %wz\n"
    "  %v: u8[64,64] = const hash(16)\n"
    "  %u: u8[1,64] = const hash(18)\n"
    "  %vi: i32[64,64] = cast %v {dtype=i32}\n"
    "  %ui: i32[1,64] = cast %u {dtype=i32}\n"
    "  %vz: i32[64,64] = sub %vi, %ui\n"
    "  %b: i8[21,64] = cast %c {dtype=i8}\n"
    "  %bi: i32[21,64] = cast %b {dtype=i32}\n"
    "  %d: i32[21,64] = matmul %bi, %vz\n"
    "  %y: f32[21,64] = cast %d {dtype=f32}\n"
    "}\n",
    /* neither factor is constant */
    "graph @both(%x: f32[40,40]) -> %y {\n"
    "  %s: f32[] = const [256]\n"
    "  %xs: f32[40,40] = mul %x, %s\n"
    "  %q: i8[40,40] = cast %xs {dtype=i8, saturate=1}\n"
    "  %u: u8[40,40] = cast %xs {dtype=u8, saturate=1}\n"
    "  %c: i32[40,40] = matmul %u, %q {dtype=i32}\n"
    "  %y: f32[40,40] = cast %c {dtype=f32}\n"
    "}\n",
    "graph @signed(%x: f32[30,36]) -> %y {\n"
    "  %s: f32[] = const [256]\n"
    "  %xs: f32[30,36] = mul %x, %s\n"
    "  %q: i8[30,36] = cast %xs {dtype=i8, saturate=1}\n"
    "  %qf: f32[30,36] = cast %q {dtype=f32}\n"
    "  %w: i8[36,48] = const hash(17)\n"
    "  %wf: f32[36,48] = cast %w {dtype=f32}\n"
    "  %y: f32[30,48] = matmul %qf, %wf\n"
    "}\n",
};
enum { NCASES = sizeof cases / sizeof *cases, MOST = 1 << 13 };

static char folder[64];

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/dlc_test_integers_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static const char *in_folder(const char *name)
{
    static char path[2][128];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof *path, "%s/%s", folder, name);
    return path[turn];
}

static void teardown(void)
{
    unlink(in_folder("m.dlc"));
    unlink(in_folder("m.so"));
    rmdir(folder);
}

static dlc_model *open_model(const char *text, const char *target, const char *strategy)
{
    FILE *file = fopen(in_folder("m.dlc"), "w");
    dlc_model *model;
    dlc_model_note note = {0};
    ck_assert(file && fputs(text, file) >= 0 && !fclose(file));
    dlc_status status = dlc_model_open(in_folder("m.dlc"), &(dlc_options){.target = target, .fusion = strategy, .jobs = 1}, &model);
    dlc_model_message(model, 0, &note);
    ck_assert_msg(status == DLC_OK, "%s", note.text);
    return model;
}

static void make_input(dlc_model *model, dlcrt_tensor *input)
{
    static float numbers[MOST];
    dlcrt_tensor_info info;
    ck_assert(dlc_model_input(model, 0, &info));
    *input = (dlcrt_tensor){.dtype = info.dtype, .rank = info.rank, .data = numbers};
    for (uint32_t d = 0; d < info.rank; d++)
        input->dims[d] = info.dims[d];
    for (int i = 0; i < MOST; i++)
        numbers[i] = (float)(i * 7919 % 1009) / 1024.0f - 0.5f;
}

/* False when this machine cannot run the target. */
static int run(const dlcrt_tensor *input, dlcrt_tensor *output)
{
    static float numbers[MOST];
    dlcrt_executable *executable;
    dlcrt_context *context;
    dlc_status status = dlcrt_executable_open(in_folder("m.so"), &executable);
    if (status == DLC_NO_DEVICE)
        return 0;
    ck_assert_msg(status == DLC_OK, "%s", dlcrt_last_error());
    ck_assert_int_eq(dlcrt_context_create(executable, NULL, &context), DLC_OK);
    ck_assert_int_eq(dlcrt_context_prepare(context, input, 1), DLC_OK);
    *output = (dlcrt_tensor){.size_bytes = dlcrt_context_output_bytes(context, 0), .data = numbers};
    ck_assert_uint_le(output->size_bytes, sizeof numbers);
    ck_assert_msg(dlcrt_context_run(context, input, 1, output, 1) == DLC_OK, "%s", dlcrt_last_error());
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
    return 1;
}

START_TEST(codes_are_multiplied_exactly)
{
    const char *target = targets[_i / NSTRATEGIES % NTARGETS], *strategy = strategies[_i % NSTRATEGIES];
    const char *text = cases[_i / NSTRATEGIES / NTARGETS];
    dlc_model *model = open_model(text, target, strategy), *oracle = open_model(text, target, NULL);
    dlcrt_tensor input, want = {0}, got = {0};
    ck_assert_int_eq(dlc_model_write(model, "so", in_folder("m.so"), NULL), DLC_OK);
    make_input(oracle, &input);
    if (run(&input, &got)) {
        ck_assert_int_eq(dlc_model_interpret(oracle, &input, 1, &want, 1), DLC_OK);
        for (size_t i = 0; i < got.size_bytes / sizeof(float); i++)
            ck_assert_msg(((float *)got.data)[i] == ((float *)want.data)[i], "%s %s: [%zu] = %.9g, not %.9g\n%s", target, strategy, i,
                          (double)((float *)got.data)[i], (double)((float *)want.data)[i], text);
    }
    dlc_model_close(model);
    dlc_model_close(oracle);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("integers");
    TCase *tests = tcase_create("integers");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, codes_are_multiplied_exactly, 0, NCASES * NTARGETS * NSTRATEGIES);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
