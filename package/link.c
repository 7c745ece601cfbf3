/*
 * Links by running ld.lld: no shell, no C compiler, no driver. What it prints becomes part of the
 * message when it fails. Its output depends on the objects alone: no build id, no times, no paths.
 */
#include "package/link.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"

extern char **environ;

static const char *const programs[] = {"ld.lld-19", "ld.lld"};

static const char *const shared_flags[] = {
    "-shared",
    "-e",
    "dlc_executable",
    "--no-undefined",
    "--hash-style=gnu",
    "--build-id=none",
    "--pack-dyn-relocs=none",
    "-z",
    "now",
    "-z",
    "relro",
    "-z",
    "noexecstack",
    NULL,
};
static const char *const relocatable_flags[] = {"-r", NULL};

typedef dlc_vec(char *) arguments;

static void add_argument(arguments *args, dlc_arena *arena, const char *text)
{
    char *copy = dlc_arena_strdup(arena, text);
    dlc_vec_push(arena, args, copy);
}

static arguments command_line(dlc_link_kind kind, const char *const *objects, uint32_t nobjects,
                              const char *output, dlc_arena *arena)
{
    arguments args = {0};
    const char *const *flags = kind == DLC_LINK_SHARED ? shared_flags : relocatable_flags;
    add_argument(&args, arena, "ld.lld");
    for (; *flags; flags++)
        add_argument(&args, arena, *flags);
    add_argument(&args, arena, "-o");
    add_argument(&args, arena, output);
    for (uint32_t i = 0; i < nobjects; i++)
        add_argument(&args, arena, objects[i]);
    dlc_vec_push(arena, &args, (char *)NULL);
    return args;
}

/* Starts the first of `programs` that is there, its messages going to `messages`. 0 or errno's
 * value. */
static int spawn(char *const *args, int messages, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, messages, STDERR_FILENO);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, messages, STDOUT_FILENO);
    for (size_t i = 0; !error && i < sizeof programs / sizeof programs[0]; i++) {
        error = posix_spawnp(child, programs[i], &actions, NULL, args, environ);
        if (error != ENOENT)
            break;
        if (i + 1 < sizeof programs / sizeof programs[0])
            error = 0;
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* What the linker said, at most a few lines. */
static char *read_messages(int fd, dlc_arena *arena)
{
    enum { MAX_CHARS = 2000 };
    char *text = dlc_new_array(arena, char, MAX_CHARS + 1);
    ssize_t n = pread(fd, text, MAX_CHARS, 0);
    text[n < 0 ? 0 : n] = '\0';
    return text;
}

static dlc_status judge(int state, int messages, dlc_arena *arena, dlc_diag *diag)
{
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return DLC_OK;
    dlc_status status;
    if (WIFSIGNALED(state))
        status = dlc_diag_fail(diag, WTERMSIG(state) == SIGKILL ? DLC_LIMIT : DLC_INTERNAL, NULL,
                               "the linker was ended by signal %d (%s)", WTERMSIG(state),
                               strsignal(WTERMSIG(state)));
    else
        status =
            dlc_diag_fail(diag, DLC_INTERNAL, NULL,
                          "the linker refused the generated code (status %d)", WEXITSTATUS(state));
    dlc_diag_detail(diag, "%s", read_messages(messages, arena));
    return status;
}

static dlc_status run(char *const *args, int messages, dlc_arena *arena, dlc_diag *diag)
{
    pid_t child;
    int error = spawn(args, messages, &child);
    if (error)
        return dlc_diag_fail(diag, DLC_IO, NULL,
                             "the linker ld.lld cannot be started: %s; install lld-19",
                             strerror(error));
    int state;
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            return dlc_diag_fail(diag, DLC_INTERNAL, NULL, "the linker's end was not seen: %s",
                                 strerror(errno));
    return judge(state, messages, arena, diag);
}

dlc_status dlc_link(dlc_link_kind kind, const char *const *objects, uint32_t nobjects,
                    const char *output, dlc_arena *arena, dlc_diag *diag)
{
    arguments args = command_line(kind, objects, nobjects, output, arena);
    int messages = memfd_create("linker", MFD_CLOEXEC);
    if (messages < 0)
        return dlc_diag_fail(diag, DLC_IO, NULL, "no memory file for the linker's messages: %s",
                             strerror(errno));
    dlc_status status = run(args.data, messages, arena, diag);
    close(messages);
    return status;
}
