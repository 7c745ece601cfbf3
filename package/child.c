/*
 * The child inherits the module by fork and hands its results back through a memory file: a head,
 * the messages of its diagnostics, the sizes of the blobs, their bytes. What it printed is kept in
 * a second file. The parent judges by how it ended; a host that ignores SIGCHLD, or reaps every
 * child, takes that away, and then what came back decides.
 */
#include "package/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/str.h"

typedef struct {
    uint32_t status, nmessages, nblobs, zero;
} head;

typedef struct {
    uint32_t status, has_detail;
    uint32_t place, text, detail; /* bytes, NULs included */
    uint32_t zero;
} message_head;

enum { EXIT_NO_MEMORY = 7, EXIT_NO_RESULT = 71 };

/* --- the child --- */
static void leave_without_memory(void *user, size_t size_bytes, int over_budget)
{
    (void)user;
    (void)size_bytes;
    (void)over_budget;
    _exit(EXIT_NO_MEMORY);
}

/* The work's budget holds here too. */
static void take_limits(void)
{
    const dlc_budget *budget = dlc_budget_in_use();
    sigset_t alarms;
    if (!budget)
        return;
    if (budget->most_bytes)
        dlc_budget_limit_process(budget->most_bytes);
    double left = budget->deadline > 0 ? budget->deadline - dlc_budget_clock() : 0;
    if (budget->deadline <= 0 || left > 1e6)
        return;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(left > 1 ? (unsigned)left : 1);
}

static void put(int fd, const void *bytes, size_t size_bytes)
{
    const char *from = bytes;
    while (size_bytes) {
        ssize_t n = write(fd, from, size_bytes < ((size_t)1 << 30) ? size_bytes : (size_t)1 << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            _exit(errno == ENOSPC || errno == ENOMEM ? EXIT_NO_MEMORY : EXIT_NO_RESULT);
        from += n;
        size_bytes -= (size_t)n;
    }
}

static void put_messages(int fd, const dlc_diag *diag)
{
    for (uint32_t i = 0; i < diag->nmessages; i++) {
        const dlc_message *m = &diag->messages[i];
        const char *place = m->place ? m->place : "", *text = m->text ? m->text : "",
                   *detail = m->detail ? m->detail : "";
        message_head h = {m->status,
                          m->detail != NULL,
                          (uint32_t)strlen(place) + 1,
                          (uint32_t)strlen(text) + 1,
                          (uint32_t)strlen(detail) + 1,
                          0};
        put(fd, &h, sizeof h);
        put(fd, place, h.place);
        put(fd, text, h.text);
        put(fd, detail, h.detail);
    }
}

static _Noreturn void child_main(dlc_child_body body, const void *work, dlc_arena *arena,
                                 int result, int output, pid_t parent)
{
    dlc_arena_set_oom(leave_without_memory, NULL);
    take_limits();
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits for what it makes */
    if (getppid() != parent)
        _exit(EXIT_NO_RESULT);
    dup2(output, STDERR_FILENO);
    dup2(output, STDOUT_FILENO);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    dlc_blob *blobs = NULL;
    uint32_t nblobs = 0;
    dlc_status status = body(work, arena, &diag, &blobs, &nblobs);
    head h = {status, diag.nmessages, status ? 0 : nblobs, 0};
    put(result, &h, sizeof h);
    put_messages(result, &diag);
    for (uint32_t i = 0; i < h.nblobs; i++)
        put(result, &(uint64_t){blobs[i].size_bytes}, sizeof(uint64_t));
    for (uint32_t i = 0; i < h.nblobs; i++)
        put(result, blobs[i].bytes, blobs[i].size_bytes);
    _exit(0);
}

/* --- the parent --- */
typedef struct {
    const unsigned char *at, *end;
} reader;

/* The next n bytes, or NULL past the end. */
static const void *take(reader *r, uint64_t n)
{
    if (n > (uint64_t)(r->end - r->at))
        return NULL;
    const void *bytes = r->at;
    r->at += n;
    return bytes;
}

static int take_message(reader *r, dlc_arena *arena, dlc_diag *diag)
{
    message_head h;
    const void *bytes = take(r, sizeof h);
    if (!bytes)
        return 0;
    memcpy(&h, bytes, sizeof h);
    const char *place = take(r, h.place), *text = take(r, h.text), *detail = take(r, h.detail);
    if (!place || !text || !detail)
        return 0;
    (void)dlc_diag_fail(diag, (dlc_status)h.status, *place ? dlc_arena_strdup(arena, place) : NULL,
                        "%s", text);
    if (h.has_detail)
        dlc_diag_detail(diag, "%s", detail);
    return 1;
}

static dlc_status no_result(dlc_diag *diag)
{
    return dlc_diag_fail(diag, DLC_INTERNAL, NULL, "the code generator ended without a result");
}

static dlc_status read_result(dlc_child_code *code, dlc_arena *arena, dlc_diag *diag)
{
    reader r = {code->map, (const unsigned char *)code->map + code->map_bytes};
    const head *h = take(&r, sizeof *h);
    if (!h)
        return no_result(diag);
    for (uint32_t i = 0; i < h->nmessages; i++)
        if (!take_message(&r, arena, diag))
            return no_result(diag);
    if (h->status)
        return (dlc_status)h->status;
    code->nblobs = h->nblobs;
    code->blobs = dlc_new_array(arena, dlc_blob, h->nblobs + 1u);
    for (uint32_t i = 0; i < h->nblobs; i++) {
        const void *size_bytes = take(&r, sizeof(uint64_t));
        if (!size_bytes)
            return no_result(diag);
        memcpy(&code->blobs[i].size_bytes, size_bytes, sizeof(uint64_t));
    }
    for (uint32_t i = 0; i < h->nblobs; i++)
        if (!(code->blobs[i].bytes = take(&r, code->blobs[i].size_bytes)))
            return no_result(diag);
    return DLC_OK;
}

static dlc_status map_result(int fd, dlc_child_code *code, dlc_diag *diag)
{
    struct stat info;
    if (fstat(fd, &info) || info.st_size == 0)
        return no_result(diag);
    void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return dlc_diag_fail(diag, DLC_LIMIT, NULL, "the generated code cannot be mapped: %s",
                             strerror(errno));
    code->map = map;
    code->map_bytes = (size_t)info.st_size;
    return DLC_OK;
}

/* LLVM and the dynamic linker print before they give up; one of these means memory. */
static int is_memory_message(const char *text)
{
    return strstr(text, "out of memory") || strstr(text, "bad_alloc") || strstr(text, "Allocation failed") ||
           strstr(text, "cannot allocate memory");
}

static dlc_status judge(int state, int output, dlc_arena *arena, dlc_diag *diag)
{
    enum { MAX_CHARS = 1000 };
    char *text = dlc_new_array(arena, char, MAX_CHARS + 1);
    ssize_t n = pread(output, text, MAX_CHARS, 0);
    text[n < 0 ? 0 : n] = '\0';
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return DLC_OK;
    int is_memory = (WIFEXITED(state) && WEXITSTATUS(state) == EXIT_NO_MEMORY) ||
                    is_memory_message(text);
    dlc_status status;
    if (is_memory)
        status = dlc_diag_fail(diag, DLC_LIMIT, NULL, "the code generator ran out of memory");
    else if (WIFSIGNALED(state) && WTERMSIG(state) == SIGALRM)
        status = dlc_diag_fail(diag, DLC_LIMIT, NULL,
                               "generating code takes longer than it may; --max-seconds sets another limit");
    else if (WIFSIGNALED(state) && WTERMSIG(state) == SIGXCPU)
        status = dlc_diag_fail(diag, DLC_LIMIT, NULL, "generating code takes more processor time than a process may have here (ulimit -t)");
    else if (WIFSIGNALED(state) && WTERMSIG(state) == SIGKILL)
        status = dlc_diag_fail(diag, DLC_LIMIT, NULL,
                               "the code generator was killed from outside (signal %d): by a user, "
                               "or by the system, which does so when memory runs out",
                               SIGKILL);
    else if (WIFSIGNALED(state))
        status = dlc_diag_fail(diag, DLC_INTERNAL, NULL,
                               "the code generator was ended by signal %d (%s)", WTERMSIG(state),
                               strsignal(WTERMSIG(state)));
    else
        status = dlc_diag_fail(diag, DLC_INTERNAL, NULL, "the code generator ended with status %d",
                               WEXITSTATUS(state));
    if (*text)
        dlc_diag_detail(diag, "%s", text);
    return status;
}

static dlc_status emit(dlc_child_body body, const void *work, dlc_arena *arena, dlc_diag *diag,
                       int result, int output, dlc_child_code *code)
{
    pid_t parent = getpid(), child = fork();
    if (child < 0)
        return dlc_diag_fail(diag, DLC_LIMIT, NULL, "no process for the code generator: %s",
                             strerror(errno));
    if (child == 0)
        child_main(body, work, arena, result, output, parent);
    int state = 0;
    while (waitpid(child, &state, 0) < 0) {
        if (errno == ECHILD)
            break; /* it has ended, and somebody else knows how */
        if (errno != EINTR)
            return dlc_diag_fail(diag, DLC_INTERNAL, NULL,
                                 "the code generator's end was not seen: %s", strerror(errno));
    }
    DLC_TRY(judge(state, output, arena, diag));
    DLC_TRY(map_result(result, code, diag));
    return read_result(code, arena, diag);
}

/* Above the standard descriptors, which a daemon may have closed and the child gives to `output`. */
static int memory_file(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), reason = errno;
    close(fd);
    errno = reason;
    return above;
}

dlc_status dlc_child_emit(dlc_child_body body, const void *work, dlc_arena *arena, dlc_diag *diag,
                          dlc_child_code *code)
{
    *code = (dlc_child_code){0};
    int result = memory_file("code"), output = memory_file("output");
    dlc_status status;
    if (result < 0 || output < 0)
        status = dlc_diag_fail(diag, DLC_LIMIT, NULL, "no memory file for the generated code: %s",
                               strerror(errno));
    else
        status = emit(body, work, arena, diag, result, output, code);
    if (result >= 0)
        close(result);
    if (output >= 0)
        close(output);
    if (status)
        dlc_child_close(code);
    return status;
}

void dlc_child_close(dlc_child_code *code)
{
    if (code->map)
        munmap(code->map, code->map_bytes);
    *code = (dlc_child_code){0};
}
