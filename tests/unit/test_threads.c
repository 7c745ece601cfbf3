/* The thread pool: every unit exactly once, whatever the counts; sleep and wake; fork; creation and
 * end under load. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/internal.h"
#include "tests/unit/suite.h"

enum { MAX_UNITS = 5000 };
static uint8_t done[MAX_UNITS];
static _Alignas(64) unsigned char scratch[64 * 128];

/* Counts units; threads never share one, so a plain increment shows any double work to the checker
 * of races. */
static void count_units(const dlc_kernel_args *args, int64_t begin, int64_t end)
{
    unsigned char *own = args->scratch;
    for (int64_t i = begin; i < end; i++) {
        ((uint8_t *)args->buffers[0])[i]++;
        own[0]++; /* a thread's scratch is its own */
    }
}

static dlcrt_job job_of(void *const *buffers)
{
    return (dlcrt_job){
        .kernel = count_units, .buffers = buffers, .scratch = scratch, .scratch_stride = 128};
}

static void run_job(dlcrt_pool *pool, uint32_t is_backward, int64_t units, int64_t grain)
{
    void *buffers[] = {done};
    dlcrt_job job = job_of(buffers);
    job.is_backward = is_backward;
    for (int64_t i = 0; i < units; i++)
        done[i] = 0;
    dlcrt_pool_run(pool, &job, units, grain);
    for (int64_t i = 0; i < units; i++)
        ck_assert_msg(done[i] == 1, "unit %d of %d ran %d times", (int)i, (int)units, done[i]);
}

static void run_and_check(dlcrt_pool *pool, int64_t units, int64_t grain)
{
    run_job(pool, 0, units, grain);
}

/* Fills scratch where it says that nobody has, as a thread's first call of a job finds it. */
static void fill_once(const dlc_kernel_args *args, int64_t begin, int64_t end)
{
    int64_t *own = args->scratch, *values = args->buffers[0];
    if (!own[0])
        own[1] = *args->symbols;
    own[0] = 1;
    for (int64_t i = begin; i < end; i++)
        values[i] = own[1];
}

START_TEST(scratch_is_kept_for_a_job_alone)
{
    enum { JOBS = 400, UNITS = 64 };
    static int64_t values[UNITS];
    void *buffers[] = {values};
    dlcrt_job job = job_of(buffers);
    job.kernel = fill_once;
    for (uint32_t nthreads = 1; nthreads <= 4; nthreads++) {
        dlcrt_pool *pool = dlcrt_pool_create(nthreads);
        for (int64_t number = 0; number < JOBS; number++) {
            job.symbols = &number;
            job.is_backward = number & 1;
            dlcrt_pool_run(pool, &job, UNITS, 1);
            for (int64_t i = 0; i < UNITS; i++)
                ck_assert_int_eq(values[i], number);
        }
        dlcrt_pool_destroy(pool);
    }
}
END_TEST

/* Notes where each call begins. */
static void note_begin(const dlc_kernel_args *args, int64_t begin, int64_t end)
{
    int64_t *begins = args->buffers[0];
    (void)end;
    begins[++begins[0]] = begin;
}

/* What a loop's iteration read last comes first in the next one. */
START_TEST(backward_jobs_begin_at_the_end)
{
    int64_t begins[64] = {0};
    void *buffers[] = {begins};
    dlcrt_job job = job_of(buffers);
    dlcrt_pool *pool = dlcrt_pool_create(1);
    job.kernel = note_begin;
    dlcrt_pool_run(pool, &job, 100, 1);
    ck_assert_int_eq(begins[0], 1);
    ck_assert_int_eq(begins[1], 0);
    job.is_backward = 1;
    dlcrt_pool_run(pool, &job, 100, 1);
    ck_assert_int_gt(begins[0], 2);
    for (int64_t i = 3; i <= begins[0]; i++)
        ck_assert_int_lt(begins[i], begins[i - 1]);
    ck_assert_int_eq(begins[begins[0]], 0);
    dlcrt_pool_destroy(pool);
}
END_TEST

/* Notes a call's size at its first unit: calls that run at once write to places of their own. */
static void note_size(const dlc_kernel_args *args, int64_t begin, int64_t end)
{
    int64_t *sizes = args->buffers[0];
    sizes[begin] = end - begin;
}

/* Threads whose units differ in their work end apart by no more than a small chunk. */
START_TEST(chunks_taken_last_are_small)
{
    static const int64_t expected[2][6][2] = {{{0, 8}, {8, 8}, {16, 8}, {24, 4}, {28, 2}, {30, 2}}, {{0, 2}, {2, 2}, {4, 4}, {8, 8}, {16, 8}, {24, 8}}};
    dlcrt_pool *pool = dlcrt_pool_create(2);
    for (uint32_t is_backward = 0; is_backward < 2; is_backward++) {
        int64_t sizes[64] = {0};
        void *buffers[] = {sizes};
        dlcrt_job job = job_of(buffers);
        job.kernel = note_size;
        job.is_backward = is_backward;
        dlcrt_pool_run(pool, &job, 64, 1);
        for (int i = 0; i < 12; i++)
            ck_assert_int_eq(sizes[i / 6 * 32 + expected[is_backward][i % 6][0]], expected[is_backward][i % 6][1]);
    }
    dlcrt_pool_destroy(pool);
}
END_TEST

static const uint32_t counts[] = {1, 2, 3, 4, 7, 16, 64};

START_TEST(every_unit_runs_once)
{
    static const int64_t units[] = {0, 1, 2, 3, 7, 8, 63, 64, 65, 1000, MAX_UNITS},
                         grains[] = {1, 2, 5, 100, 1000000};
    dlcrt_pool *pool = dlcrt_pool_create(counts[_i]);
    ck_assert_ptr_nonnull(pool);
    ck_assert_uint_eq(dlcrt_pool_threads(pool), counts[_i]);
    for (int round = 0; round < (counts[_i] < 8 ? 5 : 1); round++)
        for (size_t u = 0; u < sizeof units / sizeof units[0]; u++)
            for (size_t g = 0; g < sizeof grains / sizeof grains[0]; g++)
                for (uint32_t is_backward = 0; is_backward < 2; is_backward++)
                    run_job(pool, is_backward, units[u], grains[g]);
    dlcrt_pool_destroy(pool);
}
END_TEST

START_TEST(many_small_jobs_follow_each_other)
{
    dlcrt_pool *pool = dlcrt_pool_create(counts[_i] < 8 ? counts[_i] : 8);
    for (int i = 0; i < 1000; i++)
        run_and_check(pool, 8 + i % 5, 1);
    dlcrt_pool_destroy(pool);
}
END_TEST

START_TEST(sleeping_workers_wake_up)
{
    dlcrt_pool *pool = dlcrt_pool_create(3);
    for (int i = 0; i < 30; i++) {
        nanosleep(&(struct timespec){.tv_nsec = i % 3 * 1000000}, NULL); /* longer than they spin */
        dlcrt_pool_enter(pool, i % 2);
        run_and_check(pool, 100, 1);
        dlcrt_pool_leave();
    }
    dlcrt_pool_destroy(pool);
}
END_TEST

enum { RUNS = 4096 }; /* more than a machine has cores */

static void enter_many(dlcrt_pool *pool)
{
    for (int i = 0; i < RUNS; i++)
        dlcrt_pool_enter(pool, 1);
}

/* Takes long enough for every thread to come by, and counts calls on threads that may not run where the first may. */
static void check_affinity(const dlc_kernel_args *args, int64_t begin, int64_t end)
{
    cpu_set_t own;
    int64_t until = dlcrt_clock_ns() + (end - begin) * 200000;
    if (sched_getaffinity(0, sizeof own, &own) || !CPU_EQUAL(&own, (const cpu_set_t *)args->buffers[0]))
        __atomic_fetch_add((int64_t *)args->buffers[1], 1, __ATOMIC_RELAXED);
    while (dlcrt_clock_ns() < until)
        ;
}

/* Wherever the system woke them and they went from there. */
START_TEST(woken_workers_may_run_everywhere)
{
    cpu_set_t all;
    int64_t nothers = 0;
    void *buffers[] = {&all, &nothers};
    dlcrt_job job = job_of(buffers);
    dlcrt_pool *pool = dlcrt_pool_create(dlcrt_cpu_count());
    job.kernel = check_affinity;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (int round = 0; round < 10; round++) {
        nanosleep(&(struct timespec){.tv_nsec = 12000000}, NULL);
        dlcrt_pool_run(pool, &job, 8, 1);
    }
    ck_assert_int_eq(nothers, 0);
    dlcrt_pool_destroy(pool);
}
END_TEST

START_TEST(runs_share_the_cores)
{
    dlcrt_pool *pool = dlcrt_pool_create(3);
    enter_many(pool);
    for (int t = 0; t < 3; t++)
        scratch[t * 128] = 0;
    run_and_check(pool, 250, 1);
    ck_assert_uint_eq(scratch[0], 250);
    for (int i = 0; i < RUNS; i++)
        dlcrt_pool_leave();
    run_and_check(pool, 250, 1);
    dlcrt_pool_destroy(pool);
}
END_TEST

/* Runs of the process that forked are none of the child's. */
START_TEST(a_forked_child_has_all_cores)
{
    dlcrt_pool *pool = dlcrt_pool_create(1);
    enter_many(pool);
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        pool = dlcrt_pool_create(3);
        dlcrt_pool_enter(pool, 1);
        while (!scratch[128] && !scratch[256]) /* until another thread had a unit */
            run_and_check(pool, 250, 1);
        _exit(0);
    }
    int state;
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    dlcrt_pool_destroy(pool);
}
END_TEST

START_TEST(pools_come_and_go)
{
    for (int i = 0; i < 100; i++) {
        dlcrt_pool *pool = dlcrt_pool_create(counts[i % 6]);
        if (i % 3)
            run_and_check(pool, 50, 1);
        dlcrt_pool_destroy(pool);
    }
    dlcrt_pool_destroy(NULL);
}
END_TEST

/* A forked child has no workers: it does all the work itself, and does not wait for them at the
 * end. */
START_TEST(a_forked_child_works_alone)
{
    dlcrt_pool *pool = dlcrt_pool_create(4);
    run_and_check(pool, 1000, 1);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            run_and_check(pool, 1000, 1);
            dlcrt_pool_destroy(pool);
            _exit(0);
        }
        int state;
        ck_assert_int_eq(waitpid(child, &state, 0), child);
        ck_assert(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    }
    run_and_check(pool, 1000, 1);
    dlcrt_pool_destroy(pool);
}
END_TEST

static void *own_pool(void *argument)
{
    uint8_t *units = argument;
    void *buffers[] = {units};
    unsigned char own_scratch[4 * 128];
    dlcrt_pool *pool = dlcrt_pool_create(4);
    dlcrt_job job = {
        .kernel = count_units, .buffers = buffers, .scratch = own_scratch, .scratch_stride = 128};
    for (int i = 0; pool && i < 200; i++)
        dlcrt_pool_run(pool, &job, 100, 1);
    dlcrt_pool_destroy(pool);
    return NULL;
}

START_TEST(pools_do_not_disturb_each_other)
{
    static uint8_t units[8][100];
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, own_pool, units[i]), 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 800; i++)
        ck_assert_uint_eq(units[i / 100][i % 100], 200);
}
END_TEST

START_TEST(processors_are_counted)
{
    ck_assert_uint_ge(dlcrt_cpu_count(), 1);
    ck_assert_uint_le(dlcrt_cpu_count(), (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads");
    TCase *tests = tcase_create("threads");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, scratch_is_kept_for_a_job_alone);
    tcase_add_test(tests, backward_jobs_begin_at_the_end);
    tcase_add_test(tests, chunks_taken_last_are_small);
    tcase_add_loop_test(tests, every_unit_runs_once, 0, sizeof counts / sizeof counts[0]);
    tcase_add_loop_test(tests, many_small_jobs_follow_each_other, 0,
                        sizeof counts / sizeof counts[0]);
    tcase_add_test(tests, sleeping_workers_wake_up);
    tcase_add_test(tests, woken_workers_may_run_everywhere);
    tcase_add_test(tests, runs_share_the_cores);
    tcase_add_test(tests, a_forked_child_has_all_cores);
    tcase_add_test(tests, pools_come_and_go);
    tcase_add_test(tests, a_forked_child_works_alone);
    tcase_add_test(tests, pools_do_not_disturb_each_other);
    tcase_add_test(tests, processors_are_counted);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
