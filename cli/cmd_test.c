/*
 * dlc test: folders of an ONNX backend test suite, a line each. Every case runs in a child process
 * of its own, so that one that crashes or hangs is one line; the library is loaded before, so that
 * a child costs a fork.
 */
#include "cli/case.h"
#include "cli/tests_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    uint32_t row; /* of the results */
    pid_t child;
    int fd; /* its messages */
    double begin;
    dlc_str why;
} slot;

typedef struct {
    dlc_cli *cli;
    dlc_results results;
    slot *slots; /* running children */
    struct pollfd *fds;
    uint32_t nslots, njobs;
    const char *temporary; /* folder of executables */
    double timeout;
} suite;

/* ---- which cases ---- */

static int has(dlc_arena *arena, const char *folder, const char *file)
{
    return access(dlc_arena_printf(arena, "%s/%s", folder, file), F_OK) == 0;
}

static int has_model(dlc_arena *arena, const char *folder)
{
    return has(arena, folder, "model.onnx") || has(arena, folder, "model.so");
}

static void add_case(suite *s, const char *folder)
{
    const char *slash = strrchr(folder, '/');
    dlc_result result = {.folder = folder, .name = slash ? slash + 1 : folder};
    dlc_vec_push(s->cli->arena, &s->results, result);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const dlc_result *)a)->name, ((const dlc_result *)b)->name);
}

static const char *without_slash(dlc_arena *arena, const char *folder)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    return dlc_arena_strndup(arena, folder, n);
}

/* A folder that is a case, or one of cases. */
static dlc_status collect(suite *s, const char *operand)
{
    dlc_arena *arena = s->cli->arena;
    const char *folder = without_slash(arena, operand);
    uint32_t before = s->results.n;
    if (has_model(arena, folder)) {
        add_case(s, folder);
        return DLC_OK;
    }
    DIR *dir = opendir(folder);
    if (!dir)
        return dlc_diag_fail(&s->cli->diag, DLC_IO, folder, "cannot be read: %s", strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir));) {
        char *path = dlc_arena_printf(arena, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.' && has_model(arena, path))
            add_case(s, path);
    }
    closedir(dir);
    if (s->results.n == before)
        return dlc_diag_fail(&s->cli->diag, DLC_USAGE, folder,
                             "holds neither a model.onnx (or model.so) nor folders with one");
    qsort(s->results.data + before, s->results.n - before, sizeof *s->results.data, by_name);
    return DLC_OK;
}

/* ---- children ---- */

/* The first problem on one line, without the folder's path. */
static void write_why(const dlc_cli *cli, int fd)
{
    dlc_str text = {0};
    uint32_t nmore = 0;
    for (uint32_t i = 0; i < cli->diag.nmessages; i++) {
        const dlc_message *message = &cli->diag.messages[i];
        const char *place = strstr(message->place, "model.onnx: ");
        if (!strcmp(message->text, DLC_CASE_DRAWN) && !text.n)
            dlc_str_add(&text, message->text);
        else if (message->status == DLC_OK || text.n)
            nmore += message->status != DLC_OK;
        else
            dlc_str_printf(&text, "%s%s%s", place ? place + 12 : "", place ? ": " : "",
                           message->text);
    }
    if (nmore)
        dlc_str_printf(&text, " (and %u more)", nmore);
    for (size_t i = 0; i < text.n; i++)
        if (text.data[i] == '\n')
            text.data[i] = ' ';
    if (text.n && write(fd, text.data, text.n) < 0)
        fprintf(stderr, "dlc: a case's message was lost\n");
    dlc_str_deinit(&text);
}

static char *output_path(const suite *s, uint32_t row)
{
    return dlc_arena_printf(s->cli->arena, "%s/%u.so", s->temporary, row);
}

static dlc_status start(suite *s, uint32_t row)
{
    dlc_cli *cli = s->cli;
    slot *free_slot = &s->slots[s->nslots];
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0)
        return dlc_diag_fail(&cli->diag, DLC_LIMIT, NULL, "no pipe to a case: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        return dlc_diag_fail(&cli->diag, DLC_LIMIT, NULL, "no process for a case: %s",
                             strerror(errno));
    if (child == 0) {
        setpgid(0, 0);
        dlc_status status = dlc_case_run(cli, s->results.data[row].folder, output_path(s, row));
        write_why(cli, fds[1]);
        _exit((int)status);
    }
    setpgid(child, child);
    close(fds[1]);
    *free_slot = (slot){.row = row, .child = child, .fd = fds[0], .begin = dlc_seconds()};
    s->nslots++;
    return DLC_OK;
}

static void judge(suite *s, slot *ended, int state, int is_late)
{
    dlc_result *result = &s->results.data[ended->row];
    dlc_arena *arena = s->cli->arena;
    result->seconds = dlc_seconds() - ended->begin;
    result->why = dlc_arena_strdup(arena, dlc_str_text(&ended->why));
    result->outcome = DLC_OUTCOME_FAIL;
    if (is_late)
        result->why = dlc_arena_printf(arena, "took longer than %g s", s->timeout);
    else if (WIFSIGNALED(state))
        result->why = dlc_arena_printf(arena, "ended by signal %d (%s)", WTERMSIG(state),
                                       strsignal(WTERMSIG(state)));
    else if (WEXITSTATUS(state) == DLC_OK)
        result->outcome = *result->why ? DLC_OUTCOME_RANDOM : DLC_OUTCOME_PASS;
    else if (WEXITSTATUS(state) == DLC_UNSUPPORTED)
        result->outcome = DLC_OUTCOME_UNSUPPORTED;
    if (result->outcome == DLC_OUTCOME_UNSUPPORTED)
        dlc_say(s->cli, "UNSUPPORTED(%s) %s\n", result->why, result->name);
    else if (result->outcome == DLC_OUTCOME_RANDOM)
        dlc_say(s->cli, "RANDOM(%s) %s\n", result->why, result->name);
    else if (result->outcome == DLC_OUTCOME_FAIL)
        dlc_say(s->cli, "FAIL %s: %s\n", result->name, result->why);
    else if (!s->cli->args.quiet)
        dlc_say(s->cli, "PASS %s\n", result->name);
}

static void finish(suite *s, uint32_t i, int is_late)
{
    slot ended = s->slots[i];
    int state = 0;
    if (is_late)
        kill(-ended.child, SIGKILL);
    close(ended.fd);
    while (waitpid(ended.child, &state, 0) < 0 && errno == EINTR)
        ;
    unlink(output_path(s, ended.row));
    judge(s, &ended, state, is_late);
    dlc_str_deinit(&ended.why);
    s->slots[i] = s->slots[--s->nslots];
}

/* Waits for any child to say something, end, or be late. */
static void attend(suite *s)
{
    struct pollfd *fds = s->fds;
    uint32_t n = s->nslots;
    for (uint32_t i = 0; i < n; i++)
        fds[i] = (struct pollfd){.fd = s->slots[i].fd, .events = POLLIN};
    poll(fds, n, 200);
    for (uint32_t i = n; i-- > 0;) { /* backwards: finish() moves the last slot into the gap */
        char part[4096];
        ssize_t got = fds[i].revents ? read(s->slots[i].fd, part, sizeof part) : -1;
        if (got > 0)
            dlc_str_addn(&s->slots[i].why, part, (size_t)got);
        else if (got == 0)
            finish(s, i, 0);
        else if (dlc_seconds() - s->slots[i].begin > s->timeout)
            finish(s, i, 1);
    }
}

static dlc_status run_all(suite *s)
{
    uint32_t next = 0;
    while (next < s->results.n || s->nslots) {
        if (next < s->results.n && s->nslots < s->njobs) {
            DLC_TRY(start(s, next++));
            continue;
        }
        attend(s);
        dlc_progress(s->cli, "%u of %u", next - s->nslots, s->results.n);
    }
    dlc_progress(s->cli, NULL);
    return DLC_OK;
}

/* ---- the command ---- */

/* Loaded once, before the children; not at all when every case was compiled before. */
static dlc_status load_library(suite *s)
{
    const dlc_args *args = &s->cli->args;
    const dlc_library *library;
    const char *why;
    int is_needed = args->interpret;
    for (uint32_t i = 0; i < s->results.n && !is_needed; i++)
        is_needed = !has(s->cli->arena, s->results.data[i].folder, "model.so");
    if (!is_needed)
        return DLC_OK;
    DLC_TRY(dlc_library_load(&library, &s->cli->diag));
    dlc_status status = args->interpret ? DLC_OK : library->preload(&why);
    return status ? dlc_diag_fail(&s->cli->diag, status, NULL, "%s", why) : DLC_OK;
}

static uint32_t default_jobs(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

static dlc_status run_suite(suite *s)
{
    char *folder = dlc_arena_printf(s->cli->arena, "%s/dlc.XXXXXX",
                                    getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (!mkdtemp(folder))
        return dlc_diag_fail(&s->cli->diag, DLC_IO, folder, "no temporary folder can be made: %s",
                             strerror(errno));
    s->temporary = folder;
    double begin = dlc_seconds();
    dlc_status status = run_all(s);
    rmdir(folder);
    DLC_TRY(status);
    return dlc_results_report(s->cli, &s->results, dlc_seconds() - begin);
}

dlc_status dlc_cmd_test(dlc_cli *cli)
{
    suite s = {.cli = cli, .timeout = cli->args.timeout > 0 ? cli->args.timeout : 60};
    for (uint32_t i = 0; i < cli->args.operands.n; i++)
        DLC_TRY(collect(&s, cli->args.operands.data[i]));
    DLC_TRY(load_library(&s));
    s.njobs = cli->args.jobs ? (uint32_t)cli->args.jobs : default_jobs();
    s.slots = dlc_new_array(cli->arena, slot, s.njobs);
    s.fds = dlc_new_array(cli->arena, struct pollfd, s.njobs);
    cli->json = cJSON_CreateObject();
    return run_suite(&s);
}
