/* Choice of schedules: what each target gets, that enough units of work are left, and what is refused. */
#include "passes/schedule/candidates.h"
#include "passes/schedule/choose.h"
#include "tests/unit/chosen.h"
#include "tests/unit/estimated.h"
#include "tests/unit/small_graph.h"
#include "tests/unit/suite.h"

#include <math.h>

/* The schedule of the graph's last kernel contains this. */
static const struct {
    const char *text, *target, *part;
} schedules[] = {
    /* register tiles by target */
    {"in x 128,64; const w 64,96; m = matmul x w; out m", "x86-64-v4", "par j:32, i:13 {\n    matmul = dot fma i x j over [k]\n"},
    {"in x 128,64; const w 64,96; m = matmul x w; out m", "x86-64-v3", "par j:16, i:6 {\n    matmul = dot fma"},
    {"in x 128,64; const w 64,96; m = matmul x w; out m", "x86-64-v2", "par j:8, i:6 {\n    matmul = dot fma"},
    {"in x 128,64; const w 64,96; m = matmul x w; out m", "aarch64", "par j:16, i:6 {\n    matmul = dot fma"},
    {"in x:f64 128,64; const w:f64 64,96; m = matmul x w; out m", "x86-64-v4", "par j:16, i:13 {\n    matmul = dot fma"},
    {"in x:i32 128,64; in w:i32 64,96; m = matmul x w; out m", "x86-64-v4", "par j:32, i:13 {\n    matmul = dot fma"},
    /* few rows: more columns at a time */
    {"in x 1,512; const w 512,96; m = matmul x w; out m", "x86-64-v4", "par j:64 {\n    matmul = dot fma 1 x j over [k:128]\n"},
    {"in x 4,512; const w 512,96; m = matmul x w; out m", "x86-64-v4", "par j:64, i:4 {\n    matmul = dot fma"},
    /* rows 4096 bytes apart: no more of them than L1 has ways */
    {"in x 140,1024; const w 1024,96; m = matmul x w; out m", "x86-64-v4", "par i:8, for j:32 {\n    matmul = dot fma"},
    {"in x 140,1000; const w 1000,96; m = matmul x w; out m", "x86-64-v4", "par i:14, for j:32 {\n    matmul = dot fma"},
    /* weights of which a panel comes from memory while the one before is multiplied; small ones stay near, and one row is no tile */
    {"in x 128,384; const w 384,384; m = matmul x w; out m", "x86-64-v4", "over [k:128] ahead 1 via L2\n"},
    {"in x 128,64; const w 64,96; m = matmul x w; out m", "x86-64-v4", "over [k]\n"},
    {"in x 1,384; const w 384,384; m = matmul x w; out m", "x86-64-v4", "dot fma 1 x j over [k:128]\n"},
    /* whose panels are lines: as many streams from memory as the tile has lines */
    {"in x 1,384; const w 384,384; m = matmul x w; out m", "x86-64-v4", "copy columns = matmul.w [j/16, k, j%16]\n"},
    {"in x 1,384; const w 384,384; m = matmul x w; out m", "x86-64-v3", "copy columns = matmul.w [j/16, k, j%16]\n"},
    {"in x 1,64; const w 64,96; m = matmul x w; out m", "x86-64-v4", "copy columns = matmul.w [j/64, k, j%64]\n"},
    {"in x 4,384; const w 384,384; m = matmul x w; out m", "x86-64-v4", "copy columns = matmul.w [j/16, k, j%16]\n"},
    {"in x 4,384; const w 384,384; m = matmul x w; out m", "x86-64-v4", "over [k:128]\n"},
    /* rows known at run time only */
    {"in x n,64; const w 64,96; m = matmul x w; out m", "x86-64-v4", "par j:32, i:12 {\n    matmul = dot fma"},
    /* samples, of which there is usually one: tiles as high as suit one of many rows, and more than one row where samples are rows */
    {"in x n,256,7,7 nhwc; const w 256,256,1,1; c = conv x w nhwc; out c", "x86-64-v4", "par oc:32, nohow:13 {\n"},
    {"in x n,256,7,7; const w 256,1000; p = reduce_mean x axes=2,3 keepdims=0; m = matmul p w; out m", "x86-64-v4", "par j:32, i:12 {\n"},
    /* which threads share where there are more */
    {"in x n,16,4,4; s = reduce_sum x axes=2,3 keepdims=0; out s", "x86-64-v4", "par i0"},
    /* too small, or with nothing along n: lanes */
    {"in x 4,8; const w 8,8; m = matmul x w; out m", "x86-64-v4", "lane j:8, unroll k {\n    matmul\n"},
    {"in x 1,32,9,9 nhwc; const w 32,1,3,3; c = conv x w group=32 nhwc; out c", "x86-64-v4", "lane oc"},
    /* a window is straight code, of a large one its inner axis; neighbours are computed side by side, as many as leave registers
       for a row of taps */
    {"in x 1,32,20,20 nhwc; const w 32,1,5,5; c = conv x w group=32 nhwc; out c", "x86-64-v4", "par ow:16, oh, lane oc:16, unroll ow, kh, kw {"},
    {"in x 1,32,20,20 nhwc; const w 32,1,7,7; c = conv x w group=32 nhwc; out c", "x86-64-v4", "par ow:14, oh, lane oc:16, unroll ow, for kh, unroll kw {"},
    {"in x 1,32,20,20 nhwc; const w 32,1,5,5; c = conv x w group=32 nhwc; out c", "x86-64-v3", "par ow:8, oh, lane oc:8, unroll ow, kh, kw {"},
    {"in x 1,32,20,20 nhwc; const w 32,1,7,7; c = conv x w group=32 nhwc; out c", "x86-64-v3", "par ow:7, oh, lane oc:8, unroll ow, for kh, unroll kw {"},
    /* or as many whose rows stay in L1 for the next row of results */
    {"in x 1,96,113,113 nhwc; const w 96,1,3,3; c = conv x w group=96 strides=2,2 nhwc; out c", "x86-64-v4", "par ow:10, oh, lane oc:16, unroll ow, kh, kw {"},
    {"in x 1,64,58,58 nhwc; const w 64,1,3,3; c = conv x w group=64 nhwc; out c", "x86-64-v4", "par ow:14, oh, lane oc:16, unroll ow, kh, kw {"},
    /* groups of few channels go along the lanes together, those that fill a vector do not */
    {"in x 1,64,20,20 nhwc; const w 64,4,3,3; c = conv x w group=16 nhwc; out c", "x86-64-v4", "lane (g, oc):16, unroll ow {\n    for kh, unroll ic, kw {"},
    {"in x 1,64,20,20 nhwc; const w 64,8,3,3; c = conv x w group=8 nhwc; out c", "x86-64-v3", "par g, oc:8, (oh, ow):14 {"},
    {"in x 1,32,20,20 nhwc; const w 64,1,3,3; c = conv x w group=32 nhwc; out c", "x86-64-v3", "lane (g, oc):8"},
    /* a reduction over contiguous elements folds across lanes, over strided ones it does not */
    {"in x 64,640; s = reduce_sum x axes=1 keepdims=0; out s", "x86-64-v4", "lane r1:16 x 4 {\n    reduce_sum\n"},
    {"in x 64,640; s = reduce_sum x axes=0 keepdims=0; out s", "x86-64-v4", "lane i1"},
    /* a few channels are written out, pixel by pixel, and stored in turns where vectors of each are loaded */
    {"in x 4,3,224,224; t = transpose x perm=0,2,3,1; out t", "x86-64-v4", "par i0, i1i2:7120, lane i1i2:16, unroll i3 {\n    transpose\n"},
    {"in x 4,3,224,1120; s = slice x starts=0,0,0,0 steps=1,1,1,5 dims=4,3,224,224; t = transpose s perm=0,2,3,1; out t", "x86-64-v4",
     "par i0, i1i2:2664, for i1i2, unroll i3 {\n    transpose\n"},
    /* these go down the rows side by side, in tiles of as many vectors as leave few over, and registers */
    {"in x 16,64,640; s = reduce_sum x axes=1 keepdims=0; out s", "x86-64-v4", "lane i2:16 x 8, for r1 {\n    reduce_sum\n"},
    {"in x 16,64,640; s = reduce_sum x axes=1 keepdims=0; out s", "x86-64-v3", "lane i2:8 x 8, for r1 {\n    reduce_sum\n"},
    {"in x 16,64,80; s = reduce_sum x axes=1 keepdims=0; out s", "x86-64-v4", "lane i2:16 x 4, for r1 {\n    reduce_sum\n"},
    /* what moves more than an L3 holds, through memory from end to end, reads ahead and stores past it; what is smaller, or jumps, does not */
    {"in x 8192,1024; e = exp x; m = reduce_sum e axes=1 keepdims=1; d = div e m; out d", "x86-64-v4", "exp in scratch ahead 3 via L2\n"},
    {"in x 8192,1024; e = exp x; m = reduce_sum e axes=1 keepdims=1; d = div e m; out d", "x86-64-v4", "div nontemporal\n"},
    {"in x 2048,1024; e = exp x; m = reduce_sum e axes=1 keepdims=1; d = div e m; out d", "x86-64-v4", "div\n"},
    {"in x 4096,8192; r = relu x; out r", "x86-64-v3", "relu nontemporal\n"},
    {"in x 8,512,64,64; t = transpose x perm=0,2,1,3; out t", "x86-64-v4", "transpose\n"},
    /* a constant that is converted is packed in its own type */
    {"in x:f16 64,48; const w:f16 48,96; m = matmul x w; out m", "x86-64-v3", "copy columns = matmul.w [j/16, k, j%16]"},
    /* an operand in place, and one whose rows are columns */
    {"in x 128,64; in y 64,96; m = matmul x y; out m", "x86-64-v3", "schedule x86-64-v3 grain 14 {\n  par j:16, i:6 {\n    matmul = dot fma"},
    {"in x 128,64; in y 96,64; t = transpose y perm=1,0; m = matmul x t; out m", "x86-64-v3", "copy columns = matmul.y [j/16, k, j%16]\n  par j:16 {\n    for k:8, lane j:8, unroll k {\n      columns in scratch\n"},
    /* loads that cross the store go through tiles on CUDA, not where a side is short, and by squares on a CPU */
    {"in x 4096,4096; t = transpose x perm=1,0; out t", "sm_80", "threads 256 {\n  copy tile0 = transpose.x [i1, i0+1]\n  par i0:32, i1:32 {\n    thread i1, i0 {\n      tile0 in scratch\n"},
    {"in x n,16; t = transpose x perm=1,0; r = relu t; out r", "sm_80", "par i0:32, i1:32 {\n    thread i1, i0 {\n      tile0 in scratch\n"},
    {"in x 2,64,7,7; t = transpose x perm=0,2,3,1; out t", "sm_80", "par i0, i1i2:32, i3:32 {\n    thread i3, i1i2 {\n      tile0 in scratch\n"},
    {"in x 40,33; in y 33,40; t = transpose x perm=1,0; a = add t y; out a", "sm_80", "thread i0, i1 {\n      add\n"},
    /* contractions go by slices of both factors in shared memory, in packs where neighbours lie together */
    {"in x 128,384; const w 384,384; m = matmul x w; out m", "sm_80",
     "for k:32 {\n    thread i, k:4, lane k:4 {\n      rows in scratch ahead 1 via reg\n    }\n"
     "    thread k, j:4, lane j:4 {\n      columns in scratch ahead 1 via reg\n"},
    {"in x 33,20; in y 20,41; m = matmul x y; r = relu m; out r", "sm_80", "as matmul {\n        relu\n"},
    {"in x 1,8,12,12 nhwc; const w 24,8,3,3; c = conv x w pads=1,1,1,1 nhwc; out c", "sm_80", "for (kh, kw, ic):32 {"},
    {"in x 1,8,12,12 nhwc; const w 24,8,3,3; c = conv x w pads=1,1,1,1 nhwc; out c", "sm_80", "const { columns_by_k }"},
    {"in x 2048,512; in y 512,2048; m = matmul x y; out m", "sm_90", "copy columns = matmul.y [k, j/32, j%32+4]\n  par i:128, j:128, for k:8 {"},
    /* … and what stands between products stays there */
    {"in q 12,128,32; in k 12,32,128; in v 12,128,32; s = matmul q k; m = reduce_max s axes=2 keepdims=1; d = sub s m; e = exp d; "
     "l = reduce_sum e axes=2 keepdims=1; p = div e l; o = matmul p v; out o", "sm_80", "    warp i {\n      lane j:32 x 4 {\n        reduce_max in reg\n"},
    /* … on a CPU with keys as the rows of its tile: scores of a few queries are all that there is */
    {"in q 4,1500,64; in k 4,1500,64; in v 4,1500,64; t = transpose k perm=0,2,1; s = matmul q t; m = reduce_max s axes=2 keepdims=1; d = sub s m; "
     "e = exp d; l = reduce_sum e axes=2 keepdims=1; p = div e l; o = matmul p v; out o", "x86-64-v4",
     "    lane i:32 {\n      for j {\n        reduce_max in reg\n      }\n      for j {\n        exp in scratch\n        reduce_sum in scratch\n      }\n    }\n"},
    {"in x:f16 2,32,4,48; t = transpose x perm=0,2,1,3; out t", "sm_80", "lane i3:32 {\n    transpose\n"},
    /* … and never is a warp at work on one point */
    {"in x 4096,3; t = transpose x perm=1,0; out t", "sm_80", "lane i1:32 {"},
    {"in x 3,4096; t = transpose x perm=1,0; out t", "sm_80", "lane i0:32 {"},
    {"in x 64,128; s = slice x starts=0,0 steps=1,2 dims=64,64; out s", "sm_80", "lane i0i1:32 {"},
    {"in x 512,384; s = slice x starts=511,0 steps=-1,1 dims=512,384; a = add x s; t = transpose a perm=1,0; out t", "sm_80",
     "par i1, i0:32, lane i0:32 {\n    transpose\n"},
    {"in x 4096,4096; t = transpose x perm=1,0; out t", "x86-64-v4", "par i0:16, lane i1:16, unroll i0 {\n    transpose\n"},
    /* rows shorter than a vector: no mask, and several of them in straight code */
    {"in x:u8 20,30,3; p = pad x pads=1,1,0,1,1,1 mode=constant; out p", "x86-64-v4", "i1:8, lane i2:4, unroll i1 {\n    pad\n"},
    /* a serial reduction, an index from data: one element at a time */
    {"in x 8,16; in i:i64 4,16; in u 4,16; s = scatter_elements x i u axis=0 reduction=add; out s", "x86-64-v4", "for i0_1, i1_1 {\n    "},
    /* … and whole rows at indices from data by lanes on CPUs */
    {"in x 8,16; in i:i64 4,1; in u 4,16; s = scatter_nd x i u reduction=add; out s", "x86-64-v4", "for i0_1, lane i1_1:16 {\n    "},
    {"in x 8,16; in i:i64 4,1; in u 4,16; s = scatter_nd x i u reduction=add; out s", "sm_80", "for i0_1, i1_1 {\n    "},
    /* recurrences from row to row: memory in its order, by parts of a page or more; along rows there are none */
    {"in x 512,4096; s = cumsum x axis=0 exclusive=0 reverse=0; out s", "x86-64-v4", "par i1:1024, for i0, lane i1:16 {\n    run\n"},
    {"in x 64,100,300; s = cumsum x axis=1 exclusive=0 reverse=0; out s", "x86-64-v3", "par i0, for i1, lane i2:8 {\n    run\n"},
    {"in x 20,10; s = cumsum x axis=0 exclusive=0 reverse=0; out s", "x86-64-v4", "for i0, lane i1:16 {\n    run\n"},
    {"in x 512,4096; s = cumsum x axis=1 exclusive=0 reverse=0; out s", "x86-64-v4", "for i1 {\n"},
};

static char *schedule_text(const small_graph *s, const dlc_module *module)
{
    const dlc_module_kernel *kernel = &module->kernels.data[module->kernels.n - 1];
    dlc_str text = {0};
    dlc_schedule_print(kernel->schedule, &text);
    char *copy = dlc_arena_strdup(s->arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

START_TEST(only_cuda_transposes)
{
    small_graph s = small_begin("in x 64,64; t = transpose x perm=1,0; out t");
    dlc_module *module = run_strategy(&s, "greedy", "sm_80");
    dlc_module_kernel *kernel = &module->kernels.data[0];
    kernel->schedule->target = dlc_target_find("x86-64-v3");
    ck_assert_int_eq(dlc_schedule_resolve(kernel->schedule, s.diag), DLC_INVALID);
    ck_assert_ptr_nonnull(strstr(s.diag->messages[0].text, "has no blocks of threads"));
    small_end(&s);
}
END_TEST

START_TEST(schedules_fit_the_target)
{
    small_graph s = small_begin(schedules[_i].text);
    dlc_module *module = run_strategy(&s, "greedy", schedules[_i].target);
    const char *text = schedule_text(&s, module);
    ck_assert_msg(strstr(text, schedules[_i].part) != NULL, "%s: no '%s' in\n%s", schedules[_i].text, schedules[_i].part,
                  text);
    for (uint32_t k = 0; k < module->kernels.n; k++)
        if (dlc_schedule_resolve(module->kernels.data[k].schedule, s.diag) != DLC_OK)
            small_fail(&s, schedules[_i].text);
    small_end(&s);
}
END_TEST

/* Work worth a thread is cut into enough units for eight of them. */
static const char *const large[] = {
    "in x 512,512; const w 512,512; m = matmul x w; out m",
    "in x 16,2048; const w 2048,1000; m = matmul x w; out m",
    "in x 1,2048; const w 2048,1000; m = matmul x w; out m",
    "in x 1,64,56,56 nhwc; const w 64,64,3,3; c = conv x w pads=1,1,1,1 nhwc; out c",
    "in x 1,512,7,7 nhwc; const w 512,512,3,3; c = conv x w pads=1,1,1,1 nhwc; out c",
    "in x 1000000; y = tanh x; out y",
    "in x 4,250000; y = exp x; out y",
    "in x 1000,384; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d",
};

START_TEST(large_kernels_have_units)
{
    small_graph s = small_begin(large[_i]);
    dlc_module *module = run_strategy(&s, "greedy", "x86-64-v4");
    const dlc_module_kernel *kernel = &module->kernels.data[module->kernels.n - 1];
    int64_t units = dlc_expr_value(kernel->schedule->kernel->pool, dlc_schedule_units(kernel->schedule->kernel, kernel->schedule));
    ck_assert_msg(units >= 16, "%s: %lld units\n%s", large[_i], (long long)units, schedule_text(&s, module));
    ck_assert_int_ge(kernel->schedule->grain, 1);
    small_end(&s);
}
END_TEST

/* A kernel is dealt among threads where it takes many times a fork and join, and is left to one where that would cost more. */
static const struct {
    const char *text, *target;
    int64_t least, most; /* parts */
} dealt[] = {
    {"in x 1,256; const w 256,1024; m = matmul x w; out m", "x86-64-v4", 2, 16}, /* 1 MB of weights: bytes count, too */
    {"in x 4,32; const w 32,32; m = matmul x w; out m", "x86-64-v4", 0, 1},
    {"in x 256; in y 256; s = sigmoid x; m = mul s y; out m", "x86-64-v4", 0, 1},
    {"in x 1,512; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d", "x86-64-v4", 0, 1},
    {"in x 256,1024; in y 256,1024; a = add x y; out a", "x86-64-v4", 4, 16},
    {"in x 49,64; r = relu x; out r", "x86-64-v4", 0, 1},
};

START_TEST(threads_are_worth_their_start)
{
    small_graph s = small_begin(dealt[_i].text);
    dlc_module *module = run_strategy(&s, "greedy", dealt[_i].target);
    const dlc_schedule *schedule = module->kernels.data[module->kernels.n - 1].schedule;
    int64_t units = dlc_expr_value(schedule->kernel->pool, dlc_schedule_units(schedule->kernel, schedule));
    int64_t parts = units / schedule->grain;
    ck_assert_msg(parts >= dealt[_i].least && parts <= dealt[_i].most, "%s: %lld parts\n%s", dealt[_i].text, (long long)parts,
                  schedule_text(&s, module));
    small_end(&s);
}
END_TEST

/* A packed constant holds the tensor's elements, each where the layout says, and zeros in the panels' ends. */
START_TEST(constants_are_packed)
{
    small_graph s = small_begin("in x 64,6; const w 6,40; m = matmul x w; out m");
    dlc_module *module = run_strategy(&s, "greedy", "x86-64-v3");
    const dlc_module_value *constant = &module->values.data[module->steps.data[0].values[1]];
    ck_assert_str_eq(constant->name, "w.packed");
    const float *from = dlc_module_bytes(module, constant->origin),
                *to = dlc_module_bytes(module, module->steps.data[0].values[1]);
    int64_t panel = module->kernels.data[0].schedule->nodes.data[0].tile; /* par j:16 */
    ck_assert_uint_eq(constant->data.size_bytes, (size_t)((40 + panel - 1) / panel * panel) * 6 * sizeof(float));
    for (int64_t j = 0; j < (40 + panel - 1) / panel * panel; j++)
        for (int64_t k = 0; k < 6; k++)
            ck_assert_float_eq(to[(j / panel * 6 + k) * panel + j % panel], j < 40 ? from[k * 40 + j] : 0);
    small_end(&s);
}
END_TEST

static dlc_schedule *schedule_of(const char *text, dlc_arena *arena, dlc_kernel **kernel, dlc_reason *reason, const char **detail)
{
    return schedule_on(dlc_target_find("x86-64-v3"), text, arena, kernel, reason, detail);
}

/* The first candidate is the choice; making them leaves no trace in the kernel, so they come out the same again. */
START_TEST(candidates_leave_no_trace)
{
    static const char kernel_text[] = "kernel @f(x: f32[64,96], w: f32[96,80]@const, b: f32[80]@const) -> (y: f32[64,80]) {\n"
                                      "  axis i=64, j=80, k=96\n  a[i,j] = sum(k) x[i, k] * w[k, j]\n"
                                      "  y[i,j] = max(0.0, b[j] + a)\n}\n";
    dlc_arena *arena = dlc_arena_create(0);
    dlc_candidates first, again;
    dlc_kernel *kernel;
    dlc_reason reason;
    const char *detail;
    dlc_schedule *chosen = schedule_of(kernel_text, arena, &kernel, &reason, &detail);
    uint32_t nnodes = kernel->pool->nodes.n;
    dlc_choose_candidates(kernel, chosen->target, arena, &first);
    dlc_choose_candidates(kernel, chosen->target, arena, &again);
    ck_assert_uint_eq(kernel->pool->nodes.n, nnodes);
    ck_assert_uint_ge(first.n, 2);
    ck_assert_uint_eq(first.n, again.n);
    ck_assert_str_eq(text_of(first.data[0].schedule, arena), text_of(chosen, arena));
    for (uint32_t i = 0; i < first.n; i++) {
        ck_assert_str_eq(text_of(first.data[i].schedule, arena), text_of(again.data[i].schedule, arena));
        ck_assert_double_gt(first.data[i].estimate.time_us, 0);
        for (uint32_t j = 0; j < i; j++)
            ck_assert_str_ne(text_of(first.data[i].schedule, arena), text_of(first.data[j].schedule, arena));
    }
    dlc_arena_destroy(arena);
}
END_TEST

/* Estimates rank schedules as measuring did (Zen 3, and Zen 4 for x86-64-v4): the first of each two is faster. */
#define MATRIX(k) "kernel @f(x: f32[96," #k "], w: f32[" #k ",96]@const) -> (y: f32[96,96]) {\n  axis i=96, j=96, k=" #k "\n" \
                  "  y[i,j] = sum(k) x[i, k] * w[k, j]\n}\n"
#define TILES(width, loops) "schedule x86-64-v3 {\n  copy columns = y.w [j/" #width ", k, j%" #width "]\n  const { columns }\n  " loops " {\n" \
                            "    y = dot fma i x j over [k]\n  }\n}\n"
#define TILE(loops) TILES(16, loops)
#define PAIR "kernel @f(x: f32[64,32], y: f32[64,32]) -> (z: f32[64,64]) {\n  axis i=64, j=64\n" \
             "  z[i,j] = select(j < 32, x[i, j if j < 32], y[i, j - 32 if 32 <= j])\n}\n"
#define ROWS(lanes) "schedule x86-64-v3 {\n  par i, lane j:" lanes " {\n    z\n  }\n}\n"
#define LONG_TILES(loops) "schedule x86-64-v4 {\n  copy columns = y.w [j/16, k, j%16]\n  const { columns }\n  " loops " {\n" \
                          "    y = dot fma i x j over [k]\n  }\n}\n"
#define FEW_ROWS "kernel @f(x: f32[48,1024], w: f32[1024,1024]@const) -> (y: f32[48,1024]) {\n  axis i=48, j=1024, k=1024\n" \
                 "  y[i,j] = sum(k) x[i, k] * w[k, j]\n}\n"
#define TWICE "kernel @f(x: f32[96,256], w: f32[256,96]@const) -> (y: f32[96,96]) {\n  axis i=96, j=96, k=256\n  e[i,k] = exp(x[i, k])\n" \
              "  y[i,j] = sum(k) e * w[k, j]\n}\n"
#define MADE(pars, loops) "schedule x86-64-v3 {\n  copy columns = y.w [j/16, k, j%16]\n  const { columns }\n  " pars " {\n    " loops " i, lane k:8 {\n" \
                          "      e in scratch\n    }\n    for i:6 {\n      y = dot fma i x j over [k]\n    }\n  }\n}\n"
#define POOL "kernel @f(x: f32[57,57,64]) -> (y: f32[28,28,64]) {\n  axis c=64, h=28, w=28, kh=3, kw=3\n" \
             "  y[c,h,w] = max(kh,kw) x[h * 2 + kh, w * 2 + kw, c] -> y[h, w, c]\n}\n"
#define WINDOW(loops) "schedule x86-64-v4 {\n  par h, for w, lane c:16, " loops " {\n    y\n  }\n}\n"
static const struct {
    const char *kernel, *faster, *slower;
    double threads;
} ranked[] = {
    {MATRIX(1000), TILE("par i:6, j:16"), TILE("par i:4, j:16"), 1},
    {MATRIX(1000), TILE("par i:4, j:16"), TILE("par i:3, j:16"), 1},
    {MATRIX(1000), TILE("par i:6, j:16"), TILE("for i:6, j:16"), 2}, /* one unit of work has one thread; */
    {MATRIX(1000), TILE("par j:48, for i:6, j:16"), TILE("par j:32, for i:6, j:16"), 2}, /* of three, one thread has two; */
    {MATRIX(1000), TILE("par j:48, for i:6, j:16"), TILE("par j:64, for i:6, j:16"), 2}, /* the last may be smaller */
    {FEW_ROWS, TILE("par j:16, i:6"), TILE("par i:6, j:16"), 1}, /* by rows all weights come while the first ones are multiplied, */
    {FEW_ROWS, TILE("par i:24, j:16, for i:6"), TILE("par i:6, j:16"), 1}, /* or more of them */
    {FEW_ROWS, TILE("par j:16, for i:6"), TILE("par i:24, j:16, for i:6"), 2}, /* two threads read half of the weights each, or all */
    {TWICE, MADE("par i:48, j:16", "kept for"), MADE("par i:96, j:16", "kept for"), 2}, /* each thread makes what units begin with alike */
    {MATRIX(1000), TILES(24, "par j:48, i:4, for j:24"), TILES(24, "par j:32, i:4, for j:24"), 1}, /* blocks share tiles */
    {MATRIX(512), LONG_TILES("par i:13, j:16"), LONG_TILES("par i:26, j:16"), 1}, /* every other row begins at the same place of L1 */
    {POOL, WINDOW("unroll kh, kw"), WINDOW("for kh, kw"), 1},
    {POOL, WINDOW("for kh, unroll kw"), WINDOW("for kh, kw"), 1},
    {PAIR, ROWS("8"), ROWS("8 x 4"), 1}, /* which asks at each vector where it is read */
};

START_TEST(estimates_rank_schedules)
{
    double faster = estimated_us(NULL, ranked[_i].kernel, ranked[_i].faster, ranked[_i].threads);
    double slower = estimated_us(NULL, ranked[_i].kernel, ranked[_i].slower, ranked[_i].threads);
    ck_assert_double_gt(slower, 1.04 * faster);
}
END_TEST

/* Rows that units of four results make of what two of these read each: the last unit has half of the others'. And of what neighbours read, too: the
 * last has a row fewer. */
#define DOUBLED "kernel @f(x: f32[7,4096]) -> (y: f32[14,4096]) {\n  axis i=14, j=4096, t=7\n  e[t,j] = exp(x[t, j])\n  y[i,j] = e[i // 2, j]\n}\n"
#define SUMMED "kernel @f(x: f32[7,4096]) -> (y: f32[7,4096]) {\n  axis i=7, j=4096, t=7\n  e[t,j] = exp(x[t, j])\n" \
               "  y[i,j] = e[i, j] + e[i + 1, j if i < 6]\n}\n"
#define OWN_ROWS(par) "schedule x86-64-v3 {\n  par i:" par " {\n    for t, lane j:8 {\n      e in scratch\n    }\n    for i, lane j:8 {\n      y\n" \
                      "    }\n  }\n}\n"
static const struct {
    const char *kernel, *schedule, *whole;
    double rows, whole_rows; /* that are made */
} made[] = {
    {DOUBLED, OWN_ROWS("4"), OWN_ROWS("2"), 7, 7},
    {DOUBLED, OWN_ROWS("6"), OWN_ROWS("2"), 7, 7},
    {SUMMED, OWN_ROWS("4"), OWN_ROWS("7"), 8, 7},
    {SUMMED, OWN_ROWS("2"), OWN_ROWS("7"), 10, 7},
};

START_TEST(last_blocks_may_be_smaller)
{
    double us = estimated_us(NULL, made[_i].kernel, made[_i].schedule, 1), whole_us = estimated_us(NULL, made[_i].kernel, made[_i].whole, 1);
    double more = made[_i].rows / made[_i].whole_rows;
    ck_assert_msg(us < whole_us * (more + 0.03) && us > whole_us * (1 + (more - 1) * 0.7) * 0.99, "%.2f and %.2f us", us, whole_us);
}
END_TEST

/* The same where estimates were fitted, with figures of a Zen 4, by one thread. */
#define DEEP(rows, k, columns) "kernel @f(x: f32[" #rows "," #k "], w: f32[" #k "," #columns "]@const) -> (y: f32[" #rows "," #columns "]) {\n" \
                               "  axis i=" #rows ", j=" #columns ", k=" #k "\n  y[i,j] = sum(k) x[i, k] * w[k, j]\n}\n"
#define PARTS(loops) "schedule x86-64-v4 {\n  copy columns = y.w [j/16, k, j%16]\n  const { columns }\n  " loops " {\n" \
                     "    y = dot fma i x j over [k:16]\n  }\n}\n"
#define STEM "kernel @f(x: f32[3,226,226], w: f32[32,3,3,3]@const) -> (y: f32[112,112,32]) {\n" \
             "  axis oc=32, oh=112, ow=112, ic=3, kh=3, kw=3\n" \
             "  y[oc,oh,ow] = sum(ic,kh,kw) x[ic, oh * 2 + kh, ow * 2 + kw] * w[oc, ic, kh, kw] -> y[oh, ow, oc]\n}\n"
#define STEM_TILES(loops) "schedule x86-64-v4 {\n  copy columns = y.w [oc/32, ic, kh, kw, oc%32]\n  const { columns }\n  " loops " {\n" \
                          "    y = dot fma oh_ow x oc over [ic:1, kh, kw]\n  }\n}\n"
#define STEM_LANES "schedule x86-64-v4 {\n  copy by_lanes = y.w [ic, kh, kw, oc]\n  const { by_lanes }\n" \
                   "  par ow:10, oh, lane oc:16, unroll ow, ic, kh, kw {\n    y\n  }\n}\n"
#define DEPTHWISE "kernel @f(x: f32[113,113,96], w: f32[3,3,96]@const) -> (y: f32[56,56,96]) {\n  axis c=96, oh=56, ow=56, kh=3, kw=3\n" \
                  "  y[c,oh,ow] = sum(kh,kw) x[oh * 2 + kh, ow * 2 + kw, c] * w[kh, kw, c] -> y[oh, ow, c]\n}\n"
#define NEIGHBOURS(lane) "schedule x86-64-v4 {\n  par ow:4, oh, lane c:" lane ", unroll ow {\n    for kh, unroll kw {\n      y\n    }\n  }\n}\n"
static const struct {
    const char *kernel, *faster, *slower;
} zen4[] = {
    {DEEP(3136, 256, 128), LONG_TILES("par i:14, for j:16"), LONG_TILES("par j:16, for i:14")}, /* all rows come by for each panel */
    {DEEP(96, 1024, 96), PARTS("par i:7, j:32"), PARTS("par i:14, j:32")},                      /* totals beside sums, or in memory */
    {STEM, STEM_TILES("par (oh, ow):7, oc:16"), STEM_TILES("par (oh, ow):7, oc:32")},           /* the next tile is begun meanwhile */
    {STEM, STEM_TILES("par (oh, ow):7, oc:16"), STEM_TILES("par (oh, ow):14, oc:16")},          /* rows' addresses fill the registers */
    {STEM, STEM_TILES("par (oh, ow):14, oc:32"), STEM_LANES},                                   /* elements spread before the lanes */
    {DEPTHWISE, NEIGHBOURS("32"), NEIGHBOURS("64")},                                            /* half of the second step is nothing */
    {DEEP(84, 1024, 96), LONG_TILES("par i:28, j:16, for i:13"), LONG_TILES("par i:56, j:16, for i:28, i:13")}, /* 2 rows of 28 are left over */
    {DEEP(98, 256, 160), LONG_TILES("par i:14, j:96, for j:48, j:16"), LONG_TILES("par i:14, j:80, for j:32")}, /* 48 and 16 columns of 64 */
};

static double fitted_us(const char *kernel_text, const char *schedule_text)
{
    dlc_target target = *dlc_target_find("x86-64-v4");
    dlc_machine machine = *target.machine;
    machine.cycles_per_us = 1835, machine.l3_bytes_per_us = 97000, machine.near_bytes_per_us = 117000;
    machine.sum_latency = 2, machine.element_loads = 20, machine.spread_cycles = 0.1, machine.tile_cycles = 0, machine.burst_cycles = 3;
    machine.row_cycles = 2, machine.step_bytes = 32, machine.lane_ops = 3.5, machine.fitted = 1;
    target.machine = &machine;
    return estimated_us(&target, kernel_text, schedule_text, 1);
}

START_TEST(fitted_estimates_rank_schedules)
{
    double faster = fitted_us(zen4[_i].kernel, zen4[_i].faster), slower = fitted_us(zen4[_i].kernel, zen4[_i].slower);
    ck_assert_msg(faster < slower * 0.98, "%.2f and %.2f us\n%s%s", faster, slower, zen4[_i].faster, zen4[_i].slower);
}
END_TEST

/* Rows so short that a tile's lie in one page come by as one stream, as often as they like. */
START_TEST(short_rows_come_by_for_nothing)
{
    double once = fitted_us(DEEP(125440, 16, 128), LONG_TILES("par i:14, for j:16"));
    double often = fitted_us(DEEP(125440, 16, 128), LONG_TILES("par j:16, for i:14"));
    ck_assert_msg(often < once * 1.01, "%.2f and %.2f us", once, often);
}
END_TEST

/* What is copied of parts of an array is chosen from them where two vectors a step are on both sides of a seam, and nowhere else. */
#define PARTS_OF_64(x) "kernel @f(a: f32[98,64], b: f32[98,16], c: f32[98,16], d: f32[98,16], w: f32[64,16]@const) -> (y: f32[98,16]) {\n" \
                       "  axis i=98, j=16, k=64\n  y[i,j] = sum(k) w[k, j] * (" x ")\n}\n"
#define FOUR PARTS_OF_64("1.0 + select(k < 16, b[i, k if k < 16], select(k < 32, c[i, k - 16 if 16 <= k and k < 32],\n" \
                         "    select(k < 48, d[i, k - 32 if 32 <= k and k < 48], a[i, k - 48 if 48 <= k])))")
#define ONE PARTS_OF_64("1.0 + a[i, k]")
#define COPIED(lanes) "schedule x86-64-v4 {\n  copy rows = y.left [i, k]\n  par i:14 {\n    for i, lane " lanes " {\n      rows in scratch\n    }\n" \
                      "    for j:16 {\n      y = dot fma i x j over [k]\n    }\n  }\n}\n"
START_TEST(pieces_choose_nothing)
{
    double one = fitted_us(ONE, COPIED("k:16")), four = fitted_us(FOUR, COPIED("k:16"));
    ck_assert_double_lt(fabs(four / one - 1), 0.02);
    ck_assert_double_gt(fitted_us(FOUR, COPIED("k:16 x 2")), 1.05 * fitted_us(ONE, COPIED("k:16 x 2")));
}
END_TEST

/* Rows whose number is not known go by few: an input of 128 is work for four threads. */
START_TEST(unknown_rows_go_by_few)
{
    static const char kernel_text[] = "kernel @f<n, m>(x: f32[n,m,384], w: f32[384,384]@const) -> (y: f32[n,m,384]) {\n"
                                      "  axis b=n, i=m, j=384, k=384, l=384\n  a[b,i,j] = sum(k) x[b, i, k] * w[k, j]\n"
                                      "  s[b,i] = sum(l) a[b, i, l]\n  y[b,i,j] = a / s\n}\n";
    dlc_arena *arena = dlc_arena_create(0);
    dlc_kernel *kernel;
    dlc_reason reason;
    const char *detail, *text = text_of(schedule_of(kernel_text, arena, &kernel, &reason, &detail), arena);
    ck_assert_msg(strstr(text, "par (b, i):32 {\n    for j:16, b_i:6 {") != NULL, "%s", text);
    dlc_arena_destroy(arena);
}
END_TEST

static int has_part(const dlc_candidates *list, const char *part)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (strstr(list->data[i].text, part))
            return 1;
    return 0;
}

/* Steps away from a schedule: other register tiles with their packed columns, blocks around them, loops in another order. */
START_TEST(neighbours_vary_tiles_and_loops)
{
    static const char kernel_text[] = "kernel @f(x: f32[64,96], w: f32[96,80]@const) -> (y: f32[64,80]) {\n"
                                      "  axis i=64, j=80, k=96\n  a[i,j] = sum(k) x[i, k] * w[k, j]\n"
                                      "  y[i,j] = max(0.0, a) -> y[i, j]\n}\n";
    static const char *const parts[] = {"par j:16, i:5 {", "columns = a.w [j/8, k, j%8]", "columns = a.w [j/24, k, j%24]",
                                        "par i:12, j:16, for i:6 {", "par i:6, j:16 {"};
    dlc_arena *arena = dlc_arena_create(0);
    dlc_candidates near;
    dlc_kernel *kernel;
    dlc_reason reason;
    const char *detail;
    dlc_schedule *chosen = schedule_of(kernel_text, arena, &kernel, &reason, &detail);
    dlc_choose_neighbours(kernel, chosen, arena, &near);
    for (uint32_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(has_part(&near, parts[i]), "no neighbour of\n%shas '%s'", text_of(chosen, arena), parts[i]);
    dlc_arena_destroy(arena);
}
END_TEST

/* Steps of a recurrence that several stages take together are a loop in order; rows of the batch stay parallel. */
START_TEST(recurrences_are_serial)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_kernel *kernel;
    dlc_reason reason;
    const char *detail;
    dlc_schedule *schedule = schedule_of("kernel @f(x: f32[20,8,4], w: f32[4,4]) -> (y: f32[20,8,4]) {\n"
                                         "  axis t=20, b=8, j=4, k=4\n"
                                         "  a[t,b,j]: f32 = sum(k) y1[t - 1, b, k if 1 <= t] * w[k, j]\n"
                                         "  y1[t,b,j]: f32 = tanh(a + x[t, b, j]) -> y[t, b, j]\n}\n",
                                         arena, &kernel, &reason, &detail);
    ck_assert_int_eq(reason, DLC_REASON_NONE);
    uint32_t serial = 0;
    for (uint32_t n = 0; n < schedule->nodes.n; n++) /* around both stages */
        serial += schedule->nodes.data[n].kind == DLC_LOOP_FOR && schedule->nodes.data[n].axis == 0;
    ck_assert_uint_eq(serial, 1);
    dlc_arena_destroy(arena);
}
END_TEST

/* What is needed whole and does not fit says how much it is; what no code could do has no schedule. */
START_TEST(refusals_have_numbers)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_kernel *kernel;
    dlc_reason reason;
    const char *detail;
    dlc_schedule *schedule = schedule_of("kernel @f(x: f32[1000,1000]) -> (y: f32[1000,1000]) {\n"
                                         "  axis i=1000, j=1000, k=1000\n"
                                         "  e[i,j] = exp(x[i, j])\n"
                                         "  y[i,j] = sum(k) e[j, k] * e[i, k] -> y[i, j]\n}\n",
                                         arena, &kernel, &reason, &detail);
    ck_assert_int_eq(reason, DLC_REASON_ROOT);
    ck_assert_ptr_nonnull(schedule);
    ck_assert_ptr_nonnull(strstr(detail, "3907 KiB"));
    dlc_arena_destroy(arena);
}
END_TEST

/* Convolutions of few tiles: each point of each is asked about, 64 at a time. */
static const char *const padded[] = {
    "in x 1,16,9,9 nhwc; const w 32,16,3,3; c = conv x w pads=1,1,1,1 nhwc; out c",
    "in x 1,16,9,9 nhwc; const w 32,16,3,3; c = conv x w pads=8,8,8,8 dilations=8,8 nhwc; out c",
    "in x 3,16,6,7 nhwc; const w 32,16,3,3; c = conv x w pads=1,2,1,0 strides=2,1 nhwc; out c",
    "in x 1,16,12,12 nhwc; const w 32,16,9,9; c = conv x w pads=4,4,4,4 nhwc; out c",
    "in x 1,16,5,5,5; const w 32,16,3,3,3; c = conv x w pads=1,1,1,1,1,1; out c",
};

/* The same by the definition: the condition with numbers for all axes. A tile counts by its rows. */
static double read_by_definition(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t n)
{
    const dlc_schedule_node *leaf = &schedule->nodes.data[n];
    dlc_kernel *kernel = c->kernel;
    dlc_expr inside = dlc_dot_inside(kernel, schedule, leaf, c->arena), *at = dlc_new_array(c->arena, dlc_expr, kernel->axes.n);
    uint32_t rows = dlc_schedule_rows(schedule, n);
    int64_t height = rows == DLC_ROOT_NODE ? 1 : schedule->nodes.data[rows].tile, all = 1, nread = 0;
    dlc_ids loops = {0}; /* over rows last: at once those of a tile */
    for (uint32_t i = 0; i < kernel->stages.data[leaf->stage].axes.n + leaf->nskipped; i++) {
        uint32_t nskipped = leaf->nskipped, axis = i < nskipped ? leaf->over.data[i] : kernel->stages.data[leaf->stage].axes.data[i - nskipped];
        if (axis != leaf->columns && axis != leaf->rows)
            dlc_vec_push(c->arena, &loops, axis);
    }
    int64_t nrows = leaf->rows == DLC_NO_AXIS ? 1 : dlc_choose_extent(c, leaf->rows);
    for (uint32_t i = 0; i < loops.n; i++)
        all *= dlc_choose_extent(c, loops.data[i]);
    for (int64_t number = 0; number < all; number++) {
        int64_t rest = number;
        for (uint32_t i = 0; i < loops.n; rest /= dlc_choose_extent(c, loops.data[i++]))
            at[loops.data[i]] = dlc_expr_i64(kernel->pool, rest % dlc_choose_extent(c, loops.data[i]));
        for (int64_t first = 0; first < nrows; first += height) {
            int is_read = 0;
            for (int64_t row = first; row < first + height && row < nrows && !is_read; row++) {
                if (leaf->rows != DLC_NO_AXIS)
                    at[leaf->rows] = dlc_expr_i64(kernel->pool, row);
                is_read = dlc_expr_eval(kernel->pool, dlc_expr_substitute(kernel->pool, inside, at, kernel->axes.n), c->symbols) != 0;
            }
            nread += is_read * (nrows - first < height ? nrows - first : height);
        }
    }
    return (double)nread / (double)(all * nrows);
}

START_TEST(padding_is_counted_as_it_lies)
{
    small_graph s = small_begin(padded[_i]);
    dlc_module *module = run_strategy(&s, "greedy", "x86-64-v3");
    uint32_t nasked = 0;
    for (uint32_t k = 0; k < module->kernels.n; k++) {
        dlc_schedule *schedule = module->kernels.data[k].schedule;
        dlc_chooser c;
        dlc_choose_facts(&c, dlc_kernel_clone(schedule->kernel, s.arena), schedule->target, s.arena);
        for (uint32_t n = 0; n < schedule->nodes.n; n++) {
            dlc_schedule_node *leaf = &schedule->nodes.data[n];
            uint32_t rows = leaf->row == DLC_DOT_NONE ? DLC_ROOT_NODE : dlc_schedule_rows(schedule, n);
            for (leaf->nskipped = 1; rows != DLC_ROOT_NODE && leaf->nskipped < leaf->over.n; leaf->nskipped++) {
                if (!dlc_dot_inside(c.kernel, schedule, leaf, s.arena))
                    continue;
                int64_t *height = &schedule->nodes.data[rows].tile, rule = *height;
                for (; *height * 2 > rule; --*height, nasked++)
                    ck_assert_double_eq(dlc_choose_read(&c, schedule, n), read_by_definition(&c, schedule, n));
                *height = rule;
            }
        }
    }
    ck_assert_uint_gt(nasked, 0);
    small_end(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("choose");
    TCase *tcase = tcase_create("choose");
    tcase_add_test(tcase, only_cuda_transposes);
    tcase_add_loop_test(tcase, schedules_fit_the_target, 0, sizeof schedules / sizeof *schedules);
    tcase_add_loop_test(tcase, large_kernels_have_units, 0, sizeof large / sizeof *large);
    tcase_add_test(tcase, unknown_rows_go_by_few);
    tcase_add_loop_test(tcase, threads_are_worth_their_start, 0, sizeof dealt / sizeof *dealt);
    tcase_add_test(tcase, constants_are_packed);
    tcase_add_test(tcase, candidates_leave_no_trace);
    tcase_add_loop_test(tcase, estimates_rank_schedules, 0, sizeof ranked / sizeof *ranked);
    tcase_add_loop_test(tcase, fitted_estimates_rank_schedules, 0, sizeof zen4 / sizeof *zen4);
    tcase_add_loop_test(tcase, last_blocks_may_be_smaller, 0, sizeof made / sizeof *made);
    tcase_add_test(tcase, pieces_choose_nothing);
    tcase_add_test(tcase, short_rows_come_by_for_nothing);
    tcase_add_test(tcase, neighbours_vary_tiles_and_loops);
    tcase_add_test(tcase, recurrences_are_serial);
    tcase_add_test(tcase, refusals_have_numbers);
    tcase_add_loop_test(tcase, padding_is_counted_as_it_lies, 0, sizeof padded / sizeof *padded);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
