/*
 * A strategy of the user's, run in a process of its own: it may crash, exit or never end, and that must be a message that
 * names it. What it asks of the engine there is written into a pipe, call by call; here the same calls are made again, which
 * gives the same groups and the same reasons.
 */
#include "base/budget.h"
#include "passes/fuse/fuse_engine.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef enum { TRIED, MERGED, DONE, REFUSED } record_kind;

/* DONE: nothing more. REFUSED: a sentence of that many bytes follows. */
typedef struct {
    uint32_t kind, producer, consumer;
} record;

enum { EXIT_NO_PARENT = 72 };

/* --- in the child --- */

static const dlc_fusion_api *engine; /* of the one fusion that this process is for */
static int log_fd;

static void put(const void *bytes, size_t size_bytes)
{
    const char *from = bytes;
    while (size_bytes) {
        ssize_t n = write(log_fd, from, size_bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(EXIT_NO_PARENT);
        from += n;
        size_bytes -= (size_t)n;
    }
}

static void logged_try(dlc_fusion *fusion, uint32_t producer, uint32_t consumer, dlc_fusion_trial *trial)
{
    put(&(record){TRIED, producer, consumer}, sizeof(record));
    engine->try_merge(fusion, producer, consumer, trial);
}

static int logged_merge(dlc_fusion *fusion, uint32_t producer, uint32_t consumer)
{
    put(&(record){MERGED, producer, consumer}, sizeof(record));
    return engine->merge(fusion, producer, consumer);
}

static _Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

static _Noreturn void refuse(const char *format, ...)
{
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put(&(record){REFUSED, (uint32_t)strlen(text), 0}, sizeof(record));
    put(text, strlen(text));
    fflush(NULL); /* what it printed */
    _exit(0);
}

static _Noreturn void run_child(dlc_fusion *fusion, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        refuse("%s", dlerror());
    const dlc_fusion_strategy *(*get)(void) = NULL;
    *(void **)&get = dlsym(library, "dlc_fusion_strategy_get");
    if (!get)
        refuse("exports no dlc_fusion_strategy_get");
    const dlc_fusion_strategy *strategy = get();
    if (!strategy || !strategy->run)
        refuse("dlc_fusion_strategy_get gives no strategy");
    if (strategy->version < 1 || strategy->version > DLC_FUSION_VERSION)
        refuse("the strategy was built for version %u of dlc/fusion.h; this compiler has %d", strategy->version,
               DLC_FUSION_VERSION);
    dlc_fusion_api api = *engine;
    api.try_merge = logged_try;
    api.merge = logged_merge;
    int result = strategy->run(&api, fusion);
    if (result != 0)
        refuse("strategy '%.100s' gave up with %d", strategy->name ? strategy->name : "", result);
    put(&(record){DONE, 0, 0}, sizeof(record));
    fflush(NULL); /* what it printed */
    _exit(0);
}

static void leave(void *user, size_t size_bytes, int reason)
{
    (void)user;
    (void)size_bytes;
    refuse(reason == DLC_OUT_OF_TIME ? "it takes longer than it may; --max-seconds sets another limit"
                                     : "memory ran out while it was running");
}

/* What a strategy may take: it ends before this process's own time is over. */
static unsigned seconds_left(void)
{
    const dlc_budget *budget = dlc_budget_in_use();
    double left = budget && budget->deadline > 0 ? budget->deadline - dlc_budget_clock() : 600;
    return left > 2 ? (unsigned)left - 1 : 1;
}

static void enter_child(pid_t parent, unsigned seconds)
{
    const dlc_budget *budget = dlc_budget_in_use();
    sigset_t alarms;
    dlc_arena_set_oom(leave, NULL);
    setpgid(0, 0); /* what it starts ends with it */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_NO_PARENT);
    if (budget && budget->most_bytes)
        dlc_budget_limit_process(budget->most_bytes);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(seconds);
}

/* --- here --- */

/* The pipe from the child. A strategy that keeps SIGALRM from ending it, or stops, is late here. */
typedef struct {
    int fd, is_late;
    double until;
} pipe_end;

static int wait_for(pipe_end *from)
{
    struct pollfd poll_on = {.fd = from->fd, .events = POLLIN};
    int n;
    do { /* a host's signals end no wait: reading would wait for as long as somebody holds the pipe */
        double left = from->until - dlc_budget_clock();
        n = poll(&poll_on, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
    } while (n < 0 && errno == EINTR);
    from->is_late = n == 0;
    return n > 0;
}

static int take(pipe_end *from, void *bytes, size_t size_bytes)
{
    char *to = bytes;
    while (size_bytes) {
        if (!wait_for(from))
            return 0;
        ssize_t n = read(from->fd, to, size_bytes);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return 0;
        to += n;
        size_bytes -= (size_t)n;
    }
    return 1;
}

/* The calls again; what the child said at the end, or REFUSED + 1: it ended without a word. */
static uint32_t follow(dlc_fusion *fusion, pipe_end *from, char *text, size_t text_bytes)
{
    record r;
    while (take(from, &r, sizeof r)) {
        dlc_fusion_trial trial;
        if (r.kind == TRIED)
            fusion->api->try_merge(fusion, r.producer, r.consumer, &trial);
        else if (r.kind == MERGED)
            fusion->api->merge(fusion, r.producer, r.consumer);
        else if (r.kind != REFUSED || r.producer >= text_bytes || !take(from, text, r.producer))
            return r.kind == DONE ? DONE : REFUSED + 1;
        else {
            text[r.producer] = '\0';
            return REFUSED;
        }
    }
    return REFUSED + 1;
}

/* How it ended, once it has; what it started ends too. */
static int end_child(pid_t child, pipe_end *from)
{
    int state = 0;
    siginfo_t info;
    while (!from->is_late) {
        int waited = waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT | WNOHANG);
        if (waited ? errno != EINTR : info.si_pid == child)
            break;
        from->is_late = dlc_budget_clock() > from->until;
        usleep(1000);
    }
    kill(-child, SIGKILL); /* its number is not given away before it was waited for */
    if (from->is_late)
        kill(child, SIGKILL);
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    return state;
}

static dlc_status tell_end(dlc_fusion *fusion, const char *path, int state, int is_late)
{
    if (is_late || (WIFSIGNALED(state) && WTERMSIG(state) == SIGALRM))
        return dlc_diag_fail(fusion->diag, DLC_USAGE, path,
                             "the strategy takes longer than it may; --max-seconds sets another limit");
    if (WIFSIGNALED(state))
        return dlc_diag_fail(fusion->diag, DLC_USAGE, path, "the strategy was ended by signal %d (%s)", WTERMSIG(state),
                             strsignal(WTERMSIG(state)));
    return dlc_diag_fail(fusion->diag, DLC_USAGE, path, "the strategy ended its process with status %d",
                         WIFEXITED(state) ? WEXITSTATUS(state) : 0);
}

dlc_status dlc_fusion_run_plugin(dlc_fusion *fusion, const char *path)
{
    int ends[2];
    char text[600];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return dlc_diag_fail(fusion->diag, DLC_LIMIT, path, "no pipe to the strategy: %s", strerror(errno));
    pid_t parent = getpid();
    unsigned seconds = seconds_left();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        engine = fusion->api;
        log_fd = ends[1];
        enter_child(parent, seconds);
        run_child(fusion, path);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return dlc_diag_fail(fusion->diag, DLC_LIMIT, path, "no process for the strategy: %s", strerror(errno));
    }
    setpgid(child, child); /* here and there: whoever comes first */
    pipe_end from = {ends[0], 0, dlc_budget_clock() + seconds + 0.5};
    uint32_t end = follow(fusion, &from, text, sizeof text);
    close(ends[0]);
    int state = end_child(child, &from);
    if (end == DONE)
        return DLC_OK;
    return end == REFUSED ? dlc_diag_fail(fusion->diag, DLC_USAGE, path, "%s", text) : tell_end(fusion, path, state, from.is_late);
}
