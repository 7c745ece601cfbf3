/*
 * The thread pool: fork and join without locks.
 *
 * A job's units are cut into one part per thread, a part into a few chunks (dlc/deal.h). A part's state is one
 * word (chunks << 32 | next); taking a chunk is one compare-and-swap on it. A thread takes its own
 * part's chunks first, so it finds its rows of the last step in its cache, then what is left of the
 * others': a worker that is late or preempted delays nobody, and a pool whose workers are gone
 * (after fork) still finishes. Which thread computes a unit never changes its bits.
 *
 * The caller writes the job, then the words (release); a successful take (acquire) sees the job of
 * that word. A job ends when `left` reaches 0, so nobody reads it while the next is written. Idle
 * workers spin for spin_ns, then sleep in a futex on `epoch`. Linux wakes them on the caller's own
 * processor where it takes the others for busy, as a virtual machine's are while they idle: they go
 * elsewhere then, for the caller computes, too, and both would take turns until the load is balanced.
 *
 * Runs that are under way at once share the cores: each has its part of them, so pools of as many
 * threads as there are cores do not fight, and the workers of a crowded process sleep.
 */
#include "runtime/internal.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dlc/deal.h"

/* A fork and join takes 0.1 us while the workers spin and 50 us when they sleep, so a gap between
 * two steps is worth some spinning; with more threads than processors it only takes time from those
 * who work. */
enum { SPIN_NS = 50000, CROWDED_SPIN_NS = 1000, ALONE_CHUNKS = 8 /* of a job that one thread does backwards */ };

typedef struct {
    _Alignas(64) _Atomic uint64_t word; /* chunks << 32 | next chunk to take */
    int64_t begin, end;
} part;

typedef struct {
    dlcrt_pool *pool;
    pthread_t thread;
    uint32_t index;
} worker;

struct dlcrt_pool {
    dlcrt_job job;
    uint64_t njobs; /* that were posted, this one counted */
    uint32_t nparts;
    uint32_t nthreads; /* the caller is thread 0 */
    uint32_t ncores;   /* this process may use */
    int64_t spin_ns;
    pid_t owner;                         /* the process whose threads they are */
    worker *workers;                     /* nthreads - 1 */
    part *parts;                         /* nthreads */
    _Alignas(64) _Atomic uint32_t epoch; /* counts jobs and calls to wake */
    _Atomic uint32_t sleepers, is_stopping;
    _Atomic int caller; /* the processor that the workers were woken from last, or -1 */
    _Alignas(64) _Atomic uint32_t left; /* chunks of the job not yet done */
    _Atomic uint32_t is_waiting;        /* the caller sleeps on `left` */
};

static _Atomic uint32_t nrunning; /* runs under way in this process */

/* The runs of other threads stay behind in the process that forked. */
static void forget_runs(void)
{
    atomic_store(&nrunning, 0);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_runs);
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int nthreads)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, nthreads, NULL, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Waits a little for *word to differ from `value`; true when it does. */
static int spin_while(_Atomic uint32_t *word, uint32_t value, int64_t spin_ns)
{
    int64_t end = dlcrt_clock_ns() + spin_ns;
    do
        for (int i = 0; i < 32; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value)
                return 1;
            relax();
        }
    while (dlcrt_clock_ns() < end);
    return 0;
}

/* The next chunk of a part, or -1. */
static int64_t take(part *p)
{
    uint64_t word = atomic_load_explicit(&p->word, memory_order_relaxed);
    do
        if ((uint32_t)word >= word >> 32)
            return -1;
    while (!atomic_compare_exchange_weak_explicit(&p->word, &word, word + 1, memory_order_acq_rel,
                                                  memory_order_relaxed));
    return (int64_t)word;
}

static void finish_chunk(dlcrt_pool *pool)
{
    if (atomic_fetch_sub(&pool->left, 1) == 1 && atomic_load(&pool->is_waiting))
        futex_wake(&pool->left, 1);
}

static unsigned char *scratch_of(const dlcrt_job *job, uint32_t thread)
{
    return job->scratch ? job->scratch + thread * job->scratch_stride : NULL;
}

/* A thread's scratch says of itself that nothing of this job is in it. */
static void begin_job(const dlcrt_job *job, uint32_t thread)
{
    if (job->scratch)
        *(int64_t *)scratch_of(job, thread) = 0;
}

static void run_chunk(const dlcrt_job *job, uint32_t thread, int64_t begin, int64_t end)
{
    dlc_kernel_args args = {job->buffers, job->symbols, scratch_of(job, thread), job->fault};
    dlcrt_thread_profile *times = job->times ? &job->times[thread] : NULL;
    int64_t start = times ? dlcrt_clock_ns() : 0;
    job->kernel(&args, begin, end);
    if (times) {
        int64_t now = dlcrt_clock_ns();
        times->busy_ns += now - start;
        times->end_ns = now - job->start_ns;
    }
}

/*
 * Takes chunks until none is left. A part's bounds and the job are read after a take only: before
 * it they may belong to a job that ends, or to one that is being written.
 */
static void work(dlcrt_pool *pool, uint32_t thread)
{
    uint64_t job = 0; /* that the thread works on */
    for (uint32_t i = 0; i < pool->nthreads; i++) {
        part *p = &pool->parts[(thread + i) % pool->nthreads];
        for (int64_t word; (word = take(p)) >= 0;) {
            if (job != pool->njobs)
                begin_job(&pool->job, thread);
            job = pool->njobs;
            int64_t nchunks = word >> 32, chunk = word & 0xffffffff, units = p->end - p->begin;
            int64_t from = dlc_deal_chunk(units, chunk, nchunks), to = dlc_deal_chunk(units, chunk + 1, nchunks);
            if (pool->job.is_backward)
                run_chunk(&pool->job, thread, p->end - to, p->end - from);
            else
                run_chunk(&pool->job, thread, p->begin + from, p->begin + to);
            finish_chunk(pool);
        }
    }
}

/* Moves a worker that was woken where the caller computes; it may run everywhere again behind that. */
static void leave_caller(const dlcrt_pool *pool)
{
    cpu_set_t all, others;
    int here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE || here != atomic_load_explicit(&pool->caller, memory_order_relaxed) ||
        pool->nthreads > pool->ncores || sched_getaffinity(0, sizeof all, &all))
        return;
    others = all;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) && sched_setaffinity(0, sizeof others, &others) == 0)
        (void)sched_setaffinity(0, sizeof all, &all);
}

/* Until `epoch` leaves `seen`: spinning, then asleep. */
static uint32_t wait_for_work(dlcrt_pool *pool, uint32_t seen)
{
    if (!spin_while(&pool->epoch, seen, pool->spin_ns)) {
        atomic_fetch_add(&pool->sleepers, 1);
        while (atomic_load(&pool->epoch) == seen)
            futex_wait(&pool->epoch, seen);
        atomic_fetch_sub(&pool->sleepers, 1);
        leave_caller(pool);
    }
    return atomic_load(&pool->epoch);
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    dlcrt_pool *pool = self->pool;
    (void)dlcrt_float_enter();
    for (uint32_t seen = 0;;) {
        seen = wait_for_work(pool, seen);
        if (atomic_load(&pool->is_stopping))
            return NULL;
        work(pool, self->index);
    }
}

static void announce(dlcrt_pool *pool)
{
    if (atomic_load_explicit(&pool->sleepers, memory_order_relaxed))
        atomic_store_explicit(&pool->caller, sched_getcpu(), memory_order_relaxed);
    atomic_fetch_add(&pool->epoch, 1);
    if (atomic_load(&pool->sleepers)) {
        futex_wake(&pool->epoch, INT_MAX);
        sched_yield(); /* to one that was woken here, so that it can leave */
    }
}

/* Threads that a job of this pool gets now; a run that is alone has all. */
static uint32_t threads_now(const dlcrt_pool *pool)
{
    uint32_t runs = atomic_load_explicit(&nrunning, memory_order_relaxed);
    if (runs < 2 || pool->nthreads == 1)
        return pool->nthreads;
    uint32_t fair = (pool->ncores + runs / 2) / runs;
    return fair < 1 ? 1 : fair < pool->nthreads ? fair : pool->nthreads;
}

void dlcrt_pool_enter(dlcrt_pool *pool, int is_parallel)
{
    atomic_fetch_add_explicit(&nrunning, 1, memory_order_relaxed);
    if (is_parallel && threads_now(pool) > 1 && atomic_load_explicit(&pool->sleepers, memory_order_relaxed))
        announce(pool);
}

void dlcrt_pool_leave(void)
{
    atomic_fetch_sub_explicit(&nrunning, 1, memory_order_relaxed);
}

static void run_alone(const dlcrt_job *job, int64_t units, int64_t grain)
{
    int64_t n = job->is_backward ? dlc_deal_parts(units, grain, ALONE_CHUNKS) : 1;
    begin_job(job, 0);
    for (int64_t i = n; i-- > 0;)
        run_chunk(job, 0, dlc_deal_bound(0, units, i, n), dlc_deal_bound(0, units, i + 1, n));
}

static void post(dlcrt_pool *pool, const dlcrt_job *job, int64_t units, int64_t nparts,
                 int64_t grain)
{
    int64_t nchunks = dlc_deal_chunks(units, nparts, grain);
    pool->job = *job;
    pool->njobs++;
    atomic_store_explicit(&pool->left, (uint32_t)(nparts * nchunks), memory_order_relaxed);
    for (int64_t i = 0; i < nparts; i++) {
        part *p = &pool->parts[i];
        p->begin = dlc_deal_bound(0, units, i, nparts);
        p->end = dlc_deal_bound(0, units, i + 1, nparts);
        atomic_store_explicit(&p->word, (uint64_t)nchunks << 32, memory_order_release);
    }
}

void dlcrt_pool_run(dlcrt_pool *pool, const dlcrt_job *job, int64_t units, int64_t grain)
{
    int64_t nparts = dlc_deal_parts(units, grain, threads_now(pool));
    if (nparts < 2) {
        if (units > 0)
            run_alone(job, units, grain);
        return;
    }
    post(pool, job, units, nparts, grain);
    announce(pool);
    work(pool, 0);
    for (uint32_t left; (left = atomic_load_explicit(&pool->left, memory_order_acquire)) != 0;) {
        if (spin_while(&pool->left, left, pool->spin_ns))
            continue;
        atomic_store(&pool->is_waiting, 1);
        left = atomic_load(&pool->left);
        if (left)
            futex_wait(&pool->left, left);
        atomic_store(&pool->is_waiting, 0);
    }
}

void dlcrt_pool_run_units(dlcrt_pool *pool, dlc_kernel_fn run, void *work, int64_t units, int64_t unit_elems)
{
    enum { ELEMS_PER_THREAD = 32768 }; /* some 20 us */
    void *buffers[1] = {work};
    int64_t fault = 0, grain = unit_elems < ELEMS_PER_THREAD ? ELEMS_PER_THREAD / (unit_elems > 0 ? unit_elems : 1) : 1;
    const dlcrt_job job = {.kernel = run, .buffers = buffers, .fault = &fault};
    if (pool)
        dlcrt_pool_run(pool, &job, units, grain);
    else
        run_chunk(&job, 0, 0, units);
}

uint32_t dlcrt_pool_threads(const dlcrt_pool *pool)
{
    return pool->nthreads;
}

/* Workers take no signals of the program, but those that their own instructions raise. When one cannot be created, those before it are the pool.
 */
static uint32_t start_workers(dlcrt_pool *pool, uint32_t nworkers)
{
    static const int own[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP, SIGSYS};
    sigset_t all, old;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&all, own[i]);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    uint32_t n = 0;
    for (; n < nworkers; n++) {
        pool->workers[n] = (worker){.pool = pool, .index = n + 1};
        if (pthread_create(&pool->workers[n].thread, NULL, worker_main, &pool->workers[n]))
            break;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return n;
}

static void stop_workers(dlcrt_pool *pool, uint32_t nworkers)
{
    atomic_store(&pool->is_stopping, 1);
    atomic_fetch_add(&pool->epoch, 1);
    futex_wake(&pool->epoch, INT_MAX);
    for (uint32_t i = 0; i < nworkers; i++)
        pthread_join(pool->workers[i].thread, NULL);
}

static void free_pool(dlcrt_pool *pool)
{
    free(pool->workers);
    free(pool->parts);
    free(pool);
}

dlcrt_pool *dlcrt_pool_create(uint32_t nthreads)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_forks);
    dlcrt_pool *pool = aligned_alloc(64, (sizeof *pool + 63) / 64 * 64);
    if (!pool) {
        (void)dlcrt_no_memory(sizeof *pool);
        return NULL;
    }
    *pool = (dlcrt_pool){.owner = getpid(), .nthreads = 1, .caller = -1};
    pool->ncores = nthreads > 1 ? dlcrt_cpu_count() : 1;
    pool->spin_ns = nthreads > pool->ncores ? CROWDED_SPIN_NS : SPIN_NS;
    pool->workers = dlcrt_alloc(nthreads, sizeof *pool->workers);
    pool->parts = aligned_alloc(64, nthreads * sizeof *pool->parts);
    if (!pool->workers || !pool->parts) {
        (void)dlcrt_no_memory(nthreads * sizeof *pool->parts);
        free_pool(pool);
        return NULL;
    }
    for (uint32_t i = 0; i < nthreads; i++)
        pool->parts[i] = (part){0};
    /* Set before they start: workers read it. A pool that got fewer has parts nobody owns, which
     * others take. */
    pool->nthreads = nthreads;
    uint32_t nworkers = nthreads > 1 ? start_workers(pool, nthreads - 1) : 0;
    if (nworkers + 1 < nthreads && nthreads > 1) {
        stop_workers(pool, nworkers);
        free_pool(pool);
        return dlcrt_pool_create(nworkers + 1);
    }
    return pool;
}

void dlcrt_pool_destroy(dlcrt_pool *pool)
{
    if (!pool)
        return;
    if (pool->owner == getpid()) /* in a forked child the workers do not exist */
        stop_workers(pool, pool->nthreads - 1);
    free_pool(pool);
}
