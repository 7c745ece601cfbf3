/*
 * Kernels whose stages follow one another by rows of an image: the choice keeps blocks of rows in scratch, products in register
 * tiles, and the numbers are the interpreter's, past borders too.
 */
#include "passes/fuse/fuse.h"
#include "tests/unit/schedule_cases.h"
#include "tests/unit/suite.h"

#define EXPAND "  e[h,w,c] = sum(i) x[h, w, i] * we[i, c]\n  f[h,w,c] = min(6.0, max(0.0, be[c] + e))\n"
#define PROJECT "  p[h1,w1,o] = sum(c) g[h1, w1, c] * wp[c, o]\n"
#define WEIGHTS "we: f32[24,40]@const, be: f32[40]@const, wd: f32[40,3,3]@const, wp: f32[40,20]@const"
#define AXES "axis h=12, w=15, c=40, i=24, kh=3, kw=3, o=20, "

static const struct {
    const char *kernel;
    uint32_t ndots;
} kernels[] = {
    {"kernel @same(x: f32[12,15,24], " WEIGHTS ", r: f32[12,15,20]) -> (y: f32[12,15,20]) {\n  " AXES "h1=12, w1=15\n" EXPAND
     "  d[h1,w1,c] = sum(kh,kw) wd[c, kh, kw] * f[h1 + kh - 1, w1 + kw - 1, c if 1 <= h1 + kh and h1 + kh < 13 and 1 <= w1 + kw"
     " and w1 + kw < 16]\n  g[h1,w1,c] = max(0.0, d)\n" PROJECT "  y[h1,w1,o] = p + r[h1, w1, o]\n}\n", 2},
    {"kernel @stride(x: f32[12,15,24], " WEIGHTS ") -> (y: f32[6,8,20]) {\n  " AXES "h1=6, w1=8\n" EXPAND
     "  d[h1,w1,c] = sum(kh,kw) wd[c, kh, kw] * f[h1 * 2 + kh - 1, w1 * 2 + kw - 1, c if 1 <= h1 * 2 + kh and 1 <= w1 * 2 + kw"
     " and w1 * 2 + kw < 16]\n  g[h1,w1,c] = max(0.0, d)\n" PROJECT "  y[h1,w1,o] = exp(p * 0.01)\n}\n", 2},
    {"kernel @half(x: f32[12,15,24], we: f32[24,40]@const, be: f32[40]@const, wd: f32[40,3,3]@const) -> (y: f32[12,15,40]) {\n"
     "  axis h=12, w=15, c=40, i=24, kh=3, kw=3, h1=12, w1=15\n" EXPAND
     "  d[h1,w1,c] = sum(kh,kw) wd[c, kh, kw] * f[h1 + kh - 1, w1 + kw - 1, c if 1 <= h1 + kh and h1 + kh < 13 and 1 <= w1 + kw"
     " and w1 + kw < 16]\n  y[h1,w1,c] = max(0.0, d)\n}\n", 1},
    {"kernel @pooled(x: f32[14,17,40], wp: f32[40,20]@const) -> (y: f32[12,15,20]) {\n  axis h1=12, w1=15, c=40, kh=3, kw=3, o=20\n"
     "  g[h1,w1,c] = max(kh,kw) x[h1 + kh, w1 + kw, c]\n" PROJECT "  y[h1,w1,o] = max(0.0, p)\n}\n", 1},
    {"kernel @gathered(x: f32[12,15,24], " WEIGHTS ") -> (y: f32[12,15,20]) {\n  " AXES "h1=12, w1=15\n" EXPAND
     "  d[h1,w1,c] = sum(kh,kw) wd[c, kh, kw] * f[h1 + kh - 1, w1 + kw - 1, c if 1 <= h1 + kh and h1 + kh < 13 and 1 <= w1 + kw"
     " and w1 + kw < 16]\n  p[h1,w1,o] = sum(c) max(0.0, d) * wp[c, o]\n  y[h1,w1,o] = max(0.0, p)\n}\n", 2},
    {"kernel @images(x: f32[n,12,15,24], " WEIGHTS ") -> (y: f32[n,12,15,20]) {\n  axis b=n, h=12, w=15, c=40, i=24, kh=3, kw=3,"
     " o=20, h1=12, w1=15\n  e[b,h,w,c] = sum(i) x[b, h, w, i] * we[i, c]\n  f[b,h,w,c] = max(be[c], e)\n"
     "  d[b,h1,w1,c] = sum(kh,kw) wd[c, kh, kw] * f[b, h1 + kh - 1, w1 + kw - 1, c if 1 <= h1 + kh and h1 + kh < 13 and"
     " 1 <= w1 + kw and w1 + kw < 16]\n  g[b,h1,w1,c] = max(0.0, d)\n  p[b,h1,w1,o] = sum(c) g[b, h1, w1, c] * wp[c, o]\n"
     "  y[b,h1,w1,o] = max(0.0, p)\n}\n", 2},
    {"kernel @rows(x: f32[n,15,24], " WEIGHTS ") -> (y: f32[n,15,20]) {\n  axis h=n, w=15, c=40, i=24, kh=3, kw=3, o=20, h1=n,"
     " w1=15\n" EXPAND
     "  d[h1,w1,c] = sum(kh,kw) wd[c, kh, kw] * f[h1 + kh - 1, w1 + kw - 1, c if 1 <= h1 + kh and h1 + kh < n + 1 and 1 <= w1 + kw"
     " and w1 + kw < 16]\n  g[h1,w1,c] = max(0.0, d)\n" PROJECT "  y[h1,w1,o] = max(0.0, p)\n}\n", 2},
    {"kernel @line(x: f32[40,24], " WEIGHTS ") -> (y: f32[40,20]) {\n  axis h=40, c=40, i=24, kh=3, o=20, h1=40\n"
     "  e[h,c] = sum(i) x[h, i] * we[i, c]\n  f[h,c] = max(be[c], e)\n"
     "  d[h1,c] = sum(kh) wd[c, kh, 1] * f[h1 + kh - 1, c if 1 <= h1 + kh and h1 + kh < 41]\n  g[h1,c] = max(0.0, d)\n"
     "  p[h1,o] = sum(c) g[h1, c] * wp[c, o]\n  y[h1,o] = max(0.0, p)\n}\n", 2},
};

static const char *const targets[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
enum { NKERNELS = sizeof kernels / sizeof *kernels, NTARGETS = sizeof targets / sizeof *targets };

static uint32_t count_dots(const dlc_schedule *schedule)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < schedule->nodes.n; i++)
        n += schedule->nodes.data[i].kind == DLC_LOOP_LEAF && schedule->nodes.data[i].row != DLC_DOT_NONE;
    return n;
}

START_TEST(rows_stay_in_scratch)
{
    const char *target = targets[_i % NTARGETS], *detail = NULL, *text = kernels[_i / NTARGETS].kernel;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_kernel *kernel = kernel_of(text, arena);
    dlc_schedule *schedule = NULL;
    dlc_str printed = {0};
    dlc_reason reason = dlc_choose(kernel, dlc_target_find(target), arena, &schedule, &detail);
    ck_assert_msg(reason == DLC_REASON_NONE, "%s%s", text, detail ? detail : "");
    dlc_schedule_print(schedule, &printed);
    ck_assert_msg(count_dots(schedule) == kernels[_i / NTARGETS].ndots, "%s%s", text, dlc_str_text(&printed));
    scheduled one = {.kernel = kernel, .schedule = schedule};
    const char *problem = schedules_run(&one, 1, target, arena);
    ck_assert_msg(!problem, "%s%s\n%s", text, dlc_str_text(&printed), problem);
    dlc_str_deinit(&printed);
    dlc_arena_destroy(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("halo");
    TCase *tests = tcase_create("halo");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, rows_stay_in_scratch, 0, NKERNELS * NTARGETS);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
