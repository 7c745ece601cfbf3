/*
 * Random schedules of random kernels: each is refused in a sentence, or prints and reads back the same and gives the right
 * numbers; none crashes or hangs. `test_schedules KERNELS SCHEDULES [SEED]` tries so many per kernel instead of a few hundred in
 * all; every tenth batch runs in the CUDA emulation.
 */
#include "tests/unit/random_schedule.h"

#include <check.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/random_kernel.h"
#include "tests/unit/run_schedule.h"
#include "tests/unit/suite.h"

enum { KERNELS = 40, SCHEDULES = 6, BATCH = 10, SECONDS = 60, MOST_IN_BATCH = 4096 };

static struct {
    uint32_t kernels, schedules;
    uint64_t seed;
} wanted = {KERNELS, SCHEDULES, 1};

/* Between a batch's process and its parent. */
typedef struct {
    uint32_t tried, ran, kernels;
    char refusals[8][160]; /* some of them */
    uint32_t nrefusals;
} tally;
static tally *counts;

static const char *target_of(uint32_t batch)
{
#ifdef __x86_64__
    static const char *const targets[] = {"x86-64-v3", "x86-64-v4", "x86-64-v2"};
    return batch % 10 == 9 ? "sm_75" : targets[batch % 3];
#else
    return batch % 10 == 9 ? "sm_75" : "aarch64";
#endif
}

static const char *text_of(const dlc_schedule *schedule, dlc_arena *arena)
{
    dlc_str text = {0};
    dlc_schedule_print(schedule, &text);
    const char *copy = dlc_arena_strdup(arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

static void show(const scheduled *s, const char *schedule, const char *problem)
{
    dlc_str text = {0};
    dlc_kernel_print(s->kernel, 1, &text);
    fprintf(stderr, "%s\n%s%s\n", problem, dlc_str_text(&text), schedule);
    dlc_str_deinit(&text);
}

static void note_refusal(const dlc_diag *diag)
{
    const char *text = diag->nmessages ? diag->messages[diag->nmessages - 1].text : "";
    if (!*text)
        fprintf(stderr, "refused without a sentence\n"), exit(3);
    snprintf(counts->refusals[counts->nrefusals++ % 8], sizeof counts->refusals[0], "%s", text);
}

/* Schedule j of kernel number k: false when it was refused. */
static int make_schedule(const dlc_kernel *kernel, uint64_t k, uint32_t j, const char *target, dlc_arena *arena, scheduled *s)
{
    dlc_diag diag;
    dlc_schedule *read = NULL;
    dlc_diag_init(&diag, arena);
    random_state = wanted.seed * 15485863 + k * 32452843 + j * 49979687;
    s->kernel = kernel;
    const char *text = text_of(draw_schedule(kernel, dlc_target_find(target), arena), arena);
    if (getenv("DLC_SHOW"))
        show(s, text, "tried");
    counts->tried++;
    if (dlc_schedule_parse(text, kernel, NULL, arena, &diag, &read) != DLC_OK) {
        note_refusal(&diag);
        return 0;
    }
    s->schedule = read;
    const char *again = text_of(read, arena);
    if (strcmp(text, again) != 0)
        show(s, text, dlc_arena_printf(arena, "reads back as\n%s", again)), exit(3);
    counts->ran++;
    return 1;
}

/* A schedule may take so much of the processor; what waits for nothing gets ten times as long by the clock, for machines with other work. */
static void limit_seconds(unsigned seconds)
{
    setrlimit(RLIMIT_CPU, &(struct rlimit){seconds, seconds});
    alarm(10 * seconds);
}

/* In a process of its own. only: this one of the batch, or -1. */
static void run_batch(uint32_t batch, int only)
{
    dlc_arena *arena = dlc_arena_create(0);
    scheduled *all = dlc_new_array(arena, scheduled, MOST_IN_BATCH);
    uint32_t n = 0, number = 0;
    const char *target = target_of(batch), *problem;
    for (uint32_t k = 0; k < BATCH && batch * BATCH + k < wanted.kernels; k++) {
        dlc_kernel *kernel = make_kernel(wanted.seed, batch * BATCH + k, arena);
        counts->kernels++;
        for (uint32_t j = 0; j < wanted.schedules; j++, number++)
            if (only < 0 || (uint32_t)only == number)
                n += (uint32_t)make_schedule(kernel, batch * BATCH + k, j, target, arena, &all[n]);
    }
    problem = n ? schedules_run(all, n, target, arena) : NULL;
    if (problem) {
        if (only >= 0)
            show(&all[0], text_of(all[0].schedule, arena), problem);
        exit(2);
    }
    exit(0);
}

/* 0: well. */
static int in_child(uint32_t batch, int only)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (only < 0 && !freopen("/dev/null", "w", stderr))
            exit(4);
        limit_seconds(only < 0 ? 5 * SECONDS : SECONDS);
        run_batch(batch, only);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status) && only >= 0)
        fprintf(stderr, "batch %u, schedule %d, %s: signal %d\n", batch, only, target_of(batch), WTERMSIG(status));
    else if (status && only >= 0)
        fprintf(stderr, "batch %u, schedule %d, %s\n", batch, only, target_of(batch));
    return status;
}

static uint32_t find_culprits(uint32_t batch)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < BATCH * wanted.schedules && found < 12; i++)
        found += in_child(batch, (int)i) != 0;
    return found;
}

START_TEST(random_schedules_are_refused_or_right)
{
    uint32_t nbatches = (wanted.kernels + BATCH - 1) / BATCH, failed = 0;
    const char *one = getenv("DLC_BATCH");
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(counts != MAP_FAILED);
    for (uint32_t b = 0; b < nbatches; b++)
        if ((!one || (uint32_t)atoi(one) == b) && in_child(b, -1))
            failed += find_culprits(b);
    printf("%u schedules of %u kernels: %u ran, %u were refused, such as\n", counts->tried, counts->kernels, counts->ran,
           counts->tried - counts->ran);
    for (uint32_t i = 0; i < 8 && i < counts->nrefusals; i++)
        printf("    %s\n", counts->refusals[i]);
    fflush(stdout);
    ck_assert_msg(!failed, "%u schedules failed", failed);
    ck_assert_uint_gt(counts->ran, counts->tried / 2); /* or little is tested */
}
END_TEST

/* As text: outputs lie at each multiple of 4 bytes, kernel by kernel (scheduled_room). */
static void runs_under(const char *kernel_text, const char *body, const char *target)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    scheduled all[NALIGNED] = {0};
    const char *text = dlc_arena_printf(arena, "schedule %s grain 1 {\n%s}\n", target, body);
    dlc_kernel *kernel = NULL;
    dlc_schedule *schedule = NULL;
    ck_assert_msg(dlc_kernel_parse(kernel_text, arena, &diag, &kernel) == DLC_OK, "%s", diag.messages[0].text);
    ck_assert_msg(dlc_schedule_parse(text, kernel, NULL, arena, &diag, &schedule) == DLC_OK, "%s", diag.messages[0].text);
    for (uint32_t k = 0; k < NALIGNED; k++)
        all[k] = (scheduled){.kernel = kernel, .schedule = schedule};
    const char *problem = schedules_run(all, NALIGNED, target, arena);
    ck_assert_msg(!problem, "%s: %s", target, problem);
    dlc_arena_destroy(arena);
}

START_TEST(nontemporal_stores_begin_anywhere)
{
    static const char *const targets[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2"};
    for (uint32_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        const char *rows = "kernel @k(x: f32[9,64]) -> (y: f32[9,64]) {\n  axis i=9, j=64\n  a[i,j] = x[i, j] * 2.0 -> y[i, j]\n}\n";
        runs_under(rows, "  par i {\n    lane j:16 {\n      a nontemporal\n    }\n  }\n", targets[t]);
        const char *odd = "kernel @k(x: f32[9,61]) -> (y: f32[9,61]) {\n  axis i=9, j=61\n  a[i,j] = x[i, j] * 2.0 -> y[i, j]\n}\n";
        runs_under(odd, "  par i {\n    lane j:16 {\n      a nontemporal\n    }\n  }\n", targets[t]);
        const char *halves = "kernel @k(x: f32[600]) -> (y: f16[600]) {\n  axis i=600\n  a[i] = f16(x[i]) -> y[i]\n}\n";
        runs_under(halves, "  lane i:16 {\n    a nontemporal\n  }\n", targets[t]);
        const char *again = "kernel @k(x: f32[40]) -> (y: f32[40], s: f32[]) {\n  axis i=40\n  a[i] = exp(x[i]) -> y[i]\n"
                            "  b[] = sum(i) a -> s[]\n}\n";
        runs_under(again, "  lane i:16 {\n    a nontemporal\n  }\n  lane i:16 {\n    b\n  }\n", targets[t]);
    }
}
END_TEST

/* Parallel loops, from the innermost, that what units begin with does not meet. */
static uint32_t alike_under(const char *kernel_text, const char *body, const char *target)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    dlc_kernel *kernel = NULL;
    dlc_schedule *schedule = NULL;
    const char *text = dlc_arena_printf(arena, "schedule %s grain 1 {\n%s}\n", target, body);
    ck_assert_int_eq(dlc_kernel_parse(kernel_text, arena, &diag, &kernel), DLC_OK);
    ck_assert_int_eq(dlc_schedule_parse(text, kernel, NULL, arena, &diag, &schedule), DLC_OK);
    ck_assert_int_eq(dlc_schedule_resolve(schedule, &diag), DLC_OK);
    uint32_t npars = schedule->kept.first < schedule->kept.end ? schedule->kept.npars : 0;
    dlc_arena_destroy(arena);
    return npars;
}

/* Scratch that units of one row of blocks fill alike is filled by the first of each thread's; what begins otherwise in each unit is not taken
 * for it. */
START_TEST(units_begin_alike)
{
    static const char *const targets[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2"};
    const char *kernel = "kernel @k(x: f32[12,24], w: f32[24,40]) -> (y: f32[12,40]) {\n  axis i=12, j=40, k=24\n  e[i,k] = exp(x[i, k])\n"
                         "  f[i,k] = e * e\n  s[i,j] = sum(k) f * w[k, j]\n  a[i,j] = s + 1.0 -> y[i, j]\n}\n";
    static const uint32_t alike[] = {1, 0, 1};
    static const char *const bodies[] = {
        "  par i:3, j:8 {\n    kept for i, lane k:4 {\n      e in scratch\n    }\n    kept for i, lane k:4 {\n      f in scratch\n    }\n"
        "    for i, lane j:4 {\n      for k {\n        s in reg\n      }\n      a\n    }\n  }\n",
        "  par j:8, i:3 {\n    for i, lane k:4 {\n      e in scratch\n      f in scratch\n    }\n"
        "    for i, lane j:4 {\n      for k {\n        s in reg\n      }\n      a\n    }\n  }\n",
        "  par j:4 {\n    kept for i, lane k:4 {\n      e in reg\n      f in scratch\n    }\n"
        "    for i, lane j:4 {\n      for k {\n        s in reg\n      }\n      a\n    }\n  }\n",
    };
    for (uint32_t t = 0; t < sizeof targets / sizeof *targets; t++)
        for (uint32_t b = 0; b < sizeof bodies / sizeof *bodies; b++) {
            ck_assert_uint_eq(alike_under(kernel, bodies[b], targets[t]), alike[b]);
            runs_under(kernel, bodies[b], targets[t]);
        }
}
END_TEST

/* Each kernel under each body, for vectors of three sizes. */
static void run_all(const char *const *kernels, size_t nkernels, const char *const *bodies, size_t nbodies)
{
    static const char *const targets[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2"};
    for (uint32_t t = 0; t < sizeof targets / sizeof *targets; t++)
        for (uint32_t k = 0; k < nkernels; k++)
            for (uint32_t b = 0; b < nbodies; b++)
                runs_under(kernels[k], bodies[b], targets[t]);
}

/* Windows of neighbours that are written out, of images whose sizes the run brings: whole tiles inside of the image, at its borders, and what is
 * left over. */
START_TEST(windows_of_any_image)
{
    static const char *const kernels[] = {
        "kernel @k<n, m>(x: f32[n,m,16], w: f32[3,3,16]) -> (y: f32[n,m,16]) {\n  axis i=n, j=m, c=16, p=3, q=3\n"
        "  a[i,j,c] = sum(p,q) x[i + p - 1, j + q - 1, c if 1 <= i + p and i + p <= n and 1 <= j + q and j + q <= m] * w[p, q, c] -> y[i, j, c]\n}\n",
        /* two apart, and of every second element */
        "kernel @k<n, m>(x: f32[n,m,16], w: f32[3,3,16]) -> (y: f32[(n + 1) // 2,(m + 1) // 2,16]) {\n"
        "  axis i=(n + 1) // 2, j=(m + 1) // 2, c=16, p=3, q=3\n"
        "  a[i,j,c] = sum(p,q) x[i * 2 + p - 1, j * 2 + q - 1, c if 1 <= i * 2 + p and i * 2 + p <= n and 1 <= j * 2 + q and j * 2 + q <= m]"
        " * w[p, q, c] -> y[i, j, c]\n}\n",
        "kernel @k<n, m>(x: f32[n,m,16], w: f32[3,3,16]) -> (y: f32[n,m,16]) {\n  axis i=n, j=m, c=16, p=3, q=3\n"
        "  a[i,j,c] = max(p,q) x[i + p * 2 - 2, j + q * 2 - 2, c if 2 <= i + p * 2 and i + p * 2 < n + 2 and 2 <= j + q * 2 and j + q * 2 < m + 2]"
        " + w[p, q, c] -> y[i, j, c]\n}\n",
        /* as many columns as there are rows */
        "kernel @k<n, m>(x: f32[n,n,16], w: f32[3,3,16]) -> (y: f32[n,n,16]) {\n  axis i=n, j=n, c=16, p=3, q=3\n"
        "  a[i,j,c] = sum(p,q) x[i + p - 1, j + q - 1, c if 1 <= i + p and i + p <= n and 1 <= j + q and j + q <= n] * w[p, q, c] -> y[i, j, c]\n}\n",
    };
    static const char *const bodies[] = {
        "  par j:4, i, lane c:4, unroll j {\n    unroll p, q {\n      a in reg\n    }\n  }\n",
        "  par i, for j:3, lane c:4, unroll j {\n    unroll p, q {\n      a in reg\n    }\n  }\n",
        "  par j:8, i, lane c:4, unroll j {\n    for p, unroll q {\n      a in reg\n    }\n  }\n",
    };
    run_all(kernels, sizeof kernels / sizeof *kernels, bodies, sizeof bodies / sizeof *bodies);
}
END_TEST

/* Sums of more terms than are added one by one, of points side by side: each point's parts end by themselves. */
START_TEST(long_sums_side_by_side)
{
    static const char *const kernels[] = {
        "kernel @k(x: f32[7,11,16], w: f32[8,3,3,16]) -> (y: f32[7,11,16]) {\n  axis i=7, j=11, c=16, e=8, p=3, q=3\n"
        "  a[i,j,c] = sum(e,p,q) x[i + p - 1, j + q - 1, c // 8 * 8 + e if 1 <= i + p and i + p <= 7 and 1 <= j + q and j + q <= 11]"
        " * w[e, p, q, c] -> y[i, j, c]\n}\n",
        "kernel @k<n, m>(x: f32[n,m,16], w: f32[8,3,5,16]) -> (y: f32[n,m,16]) {\n  axis i=n, j=m, c=16, e=8, p=3, q=5\n"
        "  a[i,j,c] = sum(e,p,q) x[i + p - 1, j + q - 2, c // 8 * 8 + e if 1 <= i + p and i + p <= n and 2 <= j + q and j + q <= m + 1]"
        " * w[e, p, q, c] -> y[i, j, c]\n}\n",
    };
    static const char *const bodies[] = {
        "  par j:4, i, lane c:4, unroll j {\n    for p, unroll e, q {\n      a in reg\n    }\n  }\n",
        "  par i, for j:3, lane c:4, unroll j {\n    for e, unroll p, q {\n      a in reg\n    }\n  }\n",
        "  par j:5, i, lane c:4, unroll j {\n    for e, p, unroll q {\n      a in reg\n    }\n  }\n",
        "  par j:2, i, lane c:4, unroll j {\n    unroll e, p, q {\n      a in reg\n    }\n  }\n",
    };
    run_all(kernels, sizeof kernels / sizeof *kernels, bodies, sizeof bodies / sizeof *bodies);
}
END_TEST

/* Rows that memory takes while the next one is computed; where they cannot wait, they are right as well. */
START_TEST(rows_are_stored_a_unit_later)
{
    static const char *const targets[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2"};
    static const char *const lanes[] = {"16", "16 x 2"};
    const char *softmax = "kernel @k(x: f32[9,%u]) -> (y: f32[9,%u]) {\n  axis i=9, r=%u, j=%u\n  m[i] = max(r) x[i, r]\n  e[i,j] = exp(x[i, j] - m)\n"
                          "  s[i] = sum(j) e\n  a[i,j] = e * (1.0 / s) -> y[i, j]\n}\n";
    const char *weighed = "kernel @k(x: f32[3,5,40], w: f32[40], b: f32[3,5]) -> (y: f16[3,5,40]) {\n  axis h=3, i=5, j=40\n"
                          "  e[h,i,j] = x[h, i, j] * x[h, i, j]\n  s[h,i] = sum(j) e\n"
                          "  a[h,i,j] = f16(e * w[j] + (e - s) * b[h, i] + x[h, i, j]) -> y[h, i, j]\n}\n";
    const char *two = "kernel @k(x: f32[9,48]) -> (y: f32[9,48]) {\n  axis i=9, j=48\n  e[i,j] = x[i, j] * 2.0\n  d[i,j] = e + 1.0\n"
                      "  s[i] = sum(j) e * d\n  a[i,j] = e * s -> y[i, j]\n}\n";
    const uint32_t whole = 64, odd = 61;
    dlc_arena *arena = dlc_arena_create(0);
    for (uint32_t t = 0; t < sizeof targets / sizeof *targets; t++)
        for (uint32_t l = 0; l < 2; l++) {
            const char *body = dlc_arena_printf(arena,
                                                "  par i {\n    lane r:16 {\n      m in reg\n    }\n    lane j:%s {\n      e in scratch ahead 3 via L2\n"
                                                "      s in reg\n    }\n    lane j:16 {\n      a nontemporal\n    }\n  }\n",
                                                lanes[l]);
            runs_under(dlc_arena_printf(arena, softmax, whole, whole, whole, whole), body, targets[t]);
            runs_under(dlc_arena_printf(arena, softmax, odd, odd, odd, odd), body, targets[t]);
            body = dlc_arena_printf(arena,
                                    "  par h, i {\n    lane j:%s {\n      e in scratch ahead 1 via L2\n      s in reg\n    }\n    lane j:16 {\n"
                                    "      a nontemporal\n    }\n  }\n",
                                    lanes[l]);
            runs_under(weighed, body, targets[t]);
            runs_under(two,
                       "  par i {\n    lane j:16 {\n      e in scratch ahead 1 via L2\n      d in scratch\n    }\n    lane j:16 {\n      s in reg\n"
                       "    }\n    lane j:16 {\n      a nontemporal\n    }\n  }\n",
                       targets[t]);
        }
    dlc_arena_destroy(arena);
}
END_TEST

/* What units begin with otherwise, or what they leave where others find it, is not kept. */
START_TEST(what_cannot_be_kept_is_refused)
{
    static const char *const bodies[] = {
        "  par j:8, i:3 {\n    kept for i, lane k:4 {\n      e in scratch\n    }\n    for i, lane j:4 {\n      for k {\n        s in reg\n      }\n"
        "      a\n    }\n  }\n",
        "  par i:3, j:8 {\n    for i, lane k:4 {\n      e in scratch\n    }\n    kept for i, lane j:4 {\n      for k {\n        s in reg\n      }\n"
        "      a\n    }\n  }\n",
    };
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    dlc_kernel *kernel = NULL;
    dlc_schedule *schedule = NULL;
    ck_assert_int_eq(dlc_kernel_parse("kernel @k(x: f32[12,24], w: f32[24,40]) -> (y: f32[12,40]) {\n  axis i=12, j=40, k=24\n  e[i,k] = exp(x[i, k])\n"
                                      "  s[i,j] = sum(k) e * w[k, j]\n  a[i,j] = s + 1.0 -> y[i, j]\n}\n", arena, &diag, &kernel), DLC_OK);
    const char *text = dlc_arena_printf(arena, "schedule x86-64-v3 grain 1 {\n%s}\n", bodies[_i]);
    ck_assert_int_eq(dlc_schedule_parse(text, kernel, NULL, arena, &diag, &schedule), DLC_INVALID);
    ck_assert_msg(strstr(diag.messages[0].text, "for i cannot be kept: such loops stand first") != NULL, "%s", diag.messages[0].text);
    dlc_arena_destroy(arena);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 2)
        wanted.kernels = (uint32_t)atoi(argv[1]), wanted.schedules = (uint32_t)atoi(argv[2]);
    if (argc > 3)
        wanted.seed = (uint64_t)atoll(argv[3]);
    Suite *suite = suite_create("schedules");
    TCase *tests = tcase_create("schedules");
    tcase_set_timeout(tests, argc > 2 ? 3600 : 240);
    tcase_add_test(tests, random_schedules_are_refused_or_right);
    tcase_add_test(tests, nontemporal_stores_begin_anywhere);
    tcase_add_test(tests, units_begin_alike);
    tcase_add_loop_test(tests, what_cannot_be_kept_is_refused, 0, 2);
    tcase_add_test(tests, windows_of_any_image);
    tcase_add_test(tests, long_sums_side_by_side);
    tcase_add_test(tests, rows_are_stored_a_unit_later);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
