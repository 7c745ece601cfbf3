/*
 * From what stands on the command line to something that runs. A model is compiled by a child process into a file without a name,
 * which nothing that ends this process can leave behind, so that the memory and the start-up time measured here are the runtime's,
 * and a compiler that dies is a message.
 */
#include "base/file.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- options ---- */

/* option: its name. */
static dlc_status parse_shape(dlc_cli *cli, const char *option, const char *text, dlc_shape *shape)
{
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text)
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                             "--%s is '%s', where NAME=1x3x224x224 is wanted", option, text);
    *shape = (dlc_shape){.name = dlc_arena_strndup(cli->arena, text, (size_t)(equals - text))};
    for (const char *at = equals + 1; *at;) {
        char *end = (char *)(uintptr_t)at + 1;
        errno = 0;
        int64_t dim = *at == '?' ? -1 : strtoll(at, &end, 10);
        if (errno || end == at || (dim < 0 && *at != '?') || (*end && *end != 'x') ||
            (*end == 'x' && !end[1]))
            return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                                 "--%s %s: '%s' is no list of dimensions such as 1x?x224", option, text, equals + 1);
        if (shape->rank == DLCRT_MAX_RANK)
            return dlc_diag_fail(&cli->diag, DLC_UNSUPPORTED, NULL,
                                 "--%s %s: more than %d dimensions", option, text, DLCRT_MAX_RANK);
        shape->dims[shape->rank++] = dim;
        at = *end ? end + 1 : end;
    }
    return DLC_OK;
}

static dlc_status parse_value(dlc_cli *cli, const char *text, dlc_given *value)
{
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                             "--value is '%s', where NAME=16000 is wanted", text);
    *value = (dlc_given){.name = dlc_arena_strndup(cli->arena, text, (size_t)(equals - text)),
                         .text = equals + 1};
    return DLC_OK;
}

static void print_dump(void *user, const char *pass, const char *text)
{
    dlc_cli *cli = user;
    fprintf(cli->args.json ? stderr : stdout, "# after %s\n%s", pass, text);
}

static void print_timing(void *user, const char *pass, double seconds, uint32_t changes)
{
    dlc_cli *cli = user;
    dlc_progress(cli, "%s …", pass);
    if (cli->args.time_passes)
        fprintf(stderr, "%12.3f ms  %-12s %" PRIu32 " changes\n", 1e3 * seconds, pass, changes);
}

dlc_status dlc_cli_options(dlc_cli *cli, dlc_options *options)
{
    const dlc_args *args = &cli->args;
    if (args->tuned && strcmp(args->tuned, "none") != 0 && !args->tune && access(args->tuned, R_OK) != 0)
        return dlc_diag_fail(&cli->diag, DLC_IO, args->tuned, "cannot be read: %s; --tune makes it", strerror(errno));
    *options = (dlc_options){
        .target = args->target,
        .machine = args->machine,
        .fusion = args->fusion,
        .rewrite = args->rewrite,
        .winograd = args->winograd,
        .matrix = args->matrix,
        .precision = args->precision,
        .schedules = args->schedule,
        .tuned = args->tuned && !strcmp(args->tuned, "none") ? "" : args->tuned,
        .passes = args->passes,
        .dump_after = args->dump_after,
        .jobs = (uint32_t)args->jobs,
        .max_depth = (uint32_t)args->max_depth,
        .max_nodes = args->max_nodes,
        .max_heap_bytes = args->max_heap,
        .max_fold_bytes = args->max_fold,
        .max_memory_bytes = args->max_memory,
        .max_seconds = (uint32_t)args->max_seconds,
        .link_dir = args->link_dir,
        .verify_each = args->verify_each,
        .emulate_gpu = args->emulate_gpu,
        .dump = print_dump,
        .timing = print_timing,
        .user = cli,
    };
    dlc_shape *shapes = dlc_new_array(cli->arena, dlc_shape, args->shape.n + 1);
    for (uint32_t i = 0; i < args->shape.n; i++)
        DLC_TRY(parse_shape(cli, "shape", args->shape.data[i], &shapes[i]));
    dlc_shape *typical = dlc_new_array(cli->arena, dlc_shape, args->typical.n + 1);
    for (uint32_t i = 0; i < args->typical.n; i++)
        DLC_TRY(parse_shape(cli, "typical", args->typical.data[i], &typical[i]));
    options->typical = typical;
    options->ntypical = args->typical.n;
    options->shapes = shapes;
    options->nshapes = args->shape.n;
    dlc_given *values = dlc_new_array(cli->arena, dlc_given, args->value.n + 1);
    for (uint32_t i = 0; i < args->value.n; i++)
        DLC_TRY(parse_value(cli, args->value.data[i], &values[i]));
    options->values = values;
    options->nvalues = args->value.n;
    return DLC_OK;
}

dlc_status dlc_cli_check_compiled(dlc_cli *cli, const char *path)
{
    const dlc_args *args = &cli->args;
    const struct {
        const char *name;
        int is_given;
    } rows[] = {{"target", args->target != NULL},     {"machine", args->machine != NULL},   {"fusion", args->fusion != NULL},
                {"rewrite", args->rewrite != NULL},   {"winograd", args->winograd != NULL}, {"schedule", args->schedule != NULL},
                {"matrix", args->matrix != NULL},     {"precision", args->precision != NULL},
                {"tuned", args->tuned != NULL},       {"passes", args->passes != NULL},     {"value", args->value.n > 0},
                {"typical", args->typical.n > 0},
                {"dump-after", args->dump_after != NULL}};
    if (!dlc_is_executable_file(path))
        return DLC_OK;
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_given)
            return dlc_diag_fail(&cli->diag, DLC_USAGE, path, "is compiled already; --%s wants the model it was made from", rows[i].name);
    return DLC_OK;
}

/* ---- standard input ---- */

static dlc_status pipe_failed(dlc_cli *cli)
{
    return dlc_diag_fail(&cli->diag, DLC_IO, "standard input", "cannot be read: %s",
                         strerror(errno));
}

dlc_status dlc_cli_pipe(dlc_cli *cli)
{
    const char **operand = cli->args.operands.data;
    char part[65536];
    if (cli->args.operands.n != 1 || strcmp(*operand, "-") != 0)
        return DLC_OK;
    cli->piped_fd = memfd_create("standard input", 0);
    if (cli->piped_fd < 0)
        return pipe_failed(cli);
    for (ssize_t n; (n = read(STDIN_FILENO, part, sizeof part)) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || write(cli->piped_fd, part, (size_t)n) != n)
            return pipe_failed(cli);
    }
    *operand = cli->piped = dlc_arena_printf(cli->arena, "/proc/self/fd/%d", cli->piped_fd);
    return DLC_OK;
}

/* Bytes called "standard input" in messages; mapped until the program ends. */
static dlc_status open_piped(dlc_cli *cli, const dlc_library *library, const dlc_options *options,
                             dlc_model **model)
{
    dlc_map map;
    DLC_TRY(dlc_map_fd(cli->piped_fd, "standard input", &map, &cli->diag));
    return library->model_open_bytes(map.bytes, map.size_bytes, "standard input", options, model);
}

/* ---- the compiler in this process ---- */

dlc_status dlc_cli_open(dlc_cli *cli, const char *path, const dlc_options *options,
                        dlc_model **model)
{
    const dlc_library *library;
    *model = NULL;
    DLC_TRY(dlc_library_load(&library, &cli->diag));
    dlc_status status = path == cli->piped ? open_piped(cli, library, options, model)
                                           : library->model_open(path, options, model);
    if (status == DLC_OK)
        status = dlc_cli_check_model(cli, library, path, *model);
    if (status == DLC_OK)
        return DLC_OK;
    if (!*model)
        return dlc_diag_fail(&cli->diag, status, path, "the system has no memory left");
    dlc_cli_close(cli, *model);
    *model = NULL;
    return status;
}

void dlc_cli_close(dlc_cli *cli, dlc_model *model)
{
    const dlc_library *library;
    dlc_model_note note;
    if (!model || dlc_library_load(&library, &cli->diag) != DLC_OK)
        return;
    for (uint32_t i = 0; library->model_message(model, i, &note); i++) {
        (void)dlc_diag_fail(&cli->diag, note.status, note.place, "%s", note.text);
        if (note.detail)
            dlc_diag_detail(&cli->diag, "%s", note.detail);
    }
    library->model_close(model);
}

/* ---- the compiler in a child ---- */

static dlc_status compile_to(dlc_cli *cli, const char *path, const dlc_options *options, int output)
{
    dlc_model *model;
    const dlc_library *library;
    DLC_TRY(dlc_cli_open(cli, path, options, &model));
    dlc_status status = dlc_library_load(&library, &cli->diag);
    if (status == DLC_OK)
        status = library->model_write_fd(model, "so", output, "model");
    dlc_cli_close(cli, model);
    return status;
}

/* The child's messages come back as JSON. */
static void send_messages(const dlc_diag *diag, int fd)
{
    cJSON *list = dlc_messages_json(diag);
    char *text = cJSON_PrintUnformatted(list);
    for (size_t at = 0, n = text ? strlen(text) : 0; at < n;) {
        ssize_t written = write(fd, text + at, n - at);
        if (written < 0 && errno != EINTR)
            break;
        at += written > 0 ? (size_t)written : 0;
    }
    cJSON_free(text);
    cJSON_Delete(list);
}

static void receive_messages(dlc_cli *cli, int fd)
{
    dlc_str text = {0};
    char part[4096];
    for (ssize_t n; (n = read(fd, part, sizeof part)) > 0 || (n < 0 && errno == EINTR);)
        if (n > 0)
            dlc_str_addn(&text, part, (size_t)n);
    cJSON *list = cJSON_Parse(dlc_str_text(&text)), *row;
    cJSON_ArrayForEach(row, list)
    {
        const char *detail = cJSON_GetStringValue(cJSON_GetObjectItem(row, "detail"));
        const cJSON *exit_code = cJSON_GetObjectItem(row, "exit");
        (void)dlc_diag_fail(&cli->diag, exit_code ? (dlc_status)exit_code->valueint : DLC_INTERNAL,
                            cJSON_GetStringValue(cJSON_GetObjectItem(row, "place")), "%s",
                            cJSON_GetStringValue(cJSON_GetObjectItem(row, "text")));
        if (detail)
            dlc_diag_detail(&cli->diag, "%s", detail);
    }
    cJSON_Delete(list);
    dlc_str_deinit(&text);
}

static dlc_status child_status(dlc_cli *cli, int state, const char *path)
{
    if (WIFEXITED(state))
        return (dlc_status)WEXITSTATUS(state);
    int signal = WTERMSIG(state);
    return dlc_diag_fail(&cli->diag, signal == SIGKILL ? DLC_LIMIT : DLC_INTERNAL, path,
                         signal == SIGKILL
                             ? "the compiler was killed (signal %d), most likely for want of memory"
                             : "the compiler ended by signal %d; this is a defect of dlc",
                         signal);
}

static dlc_status compile_in_child(dlc_cli *cli, const char *path, const dlc_options *options,
                                   int output)
{
    int pipe_fds[2];
    pid_t parent = getpid();
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return dlc_diag_fail(&cli->diag, DLC_LIMIT, NULL, "no pipe to the compiler: %s",
                             strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(pipe_fds[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits for what it makes */
        if (getppid() != parent)
            _exit(DLC_INTERNAL);
        dlc_options once = *options;
        once.is_temporary = 1;
        dlc_status status = compile_to(cli, path, &once, output);
        send_messages(&cli->diag, pipe_fds[1]);
        fflush(NULL);
        _exit((int)status);
    }
    close(pipe_fds[1]);
    int state = 0;
    if (child > 0)
        receive_messages(cli, pipe_fds[0]);
    close(pipe_fds[0]);
    if (child < 0)
        return dlc_diag_fail(&cli->diag, DLC_LIMIT, NULL, "no process for the compiler: %s",
                             strerror(errno));
    while (waitpid(child, &state, 0) < 0 && errno == EINTR)
        ;
    return child_status(cli, state, path);
}

/* ---- opening ---- */

int dlc_is_executable_file(const char *path)
{
    char magic[4] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return 0;
    int is_elf = read(fd, magic, sizeof magic) == sizeof magic && !memcmp(magic, "\177ELF", 4);
    close(fd);
    return is_elf;
}

static dlc_status open_executable(dlc_cli *cli, const char *path, const char *place,
                                  dlcrt_executable **result, dlc_load_info *info)
{
    struct stat file;
    double begin = dlc_seconds();
    dlcrt_executable_options options = {.path = path, .device = cli->args.device};
    dlc_status status = dlcrt_executable_open_with(&options, result);
    if (info)
        *info = (dlc_load_info){stat(path, &file) == 0 ? (uint64_t)file.st_size : 0,
                                1e3 * (dlc_seconds() - begin)};
    dlcrt_executable_info of = {.passed = ""};
    if (status == DLC_OK)
        dlcrt_executable_describe(*result, &of);
    if (*of.passed && !cli->args.quiet)
        (void)dlc_diag_fail(&cli->diag, DLC_OK, path, "%s", of.passed);
    return status == DLC_OK ? DLC_OK : dlc_runtime_failed(cli, status, place);
}

typedef struct {
    dlc_status status;
    dlcrt_device_info info;
    char error[512];
} device_answer;

/* In a child: a process that has used the driver must not be forked for the compiler. */
static dlc_status describe_device(dlc_cli *cli, const char *device, dlcrt_device_info *info)
{
    device_answer answer = {.status = DLC_NO_DEVICE};
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC) != 0)
        return dlc_diag_fail(&cli->diag, DLC_LIMIT, NULL, "no pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        answer.status = dlcrt_device_describe(device, &answer.info);
        snprintf(answer.error, sizeof answer.error, "%s", dlcrt_last_error());
        _exit(write(pipe_fds[1], &answer, sizeof answer) != sizeof answer);
    }
    close(pipe_fds[1]);
    ssize_t n = child > 0 ? read(pipe_fds[0], &answer, sizeof answer) : -1;
    close(pipe_fds[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (n != (ssize_t)sizeof answer)
        return dlc_diag_fail(&cli->diag, DLC_NO_DEVICE, NULL, "the CUDA driver gave no answer");
    *info = answer.info;
    return answer.status == DLC_OK
               ? DLC_OK
               : dlc_diag_fail(&cli->diag, answer.status, NULL, "%s", answer.error);
}

/* A model that is to run on a GPU is compiled for the one that is there, unless --target says
 * otherwise: for the highest capability among the targets that it has. */
static dlc_status choose_target(dlc_cli *cli, const dlc_library *library, dlc_options *options)
{
    const char *device = cli->args.device, *name, *help;
    dlcrt_device_info info;
    long best = 0;
    if (options->target || !device || strncmp(device, "cuda", 4) != 0)
        return DLC_OK;
    DLC_TRY(describe_device(cli, device, &info));
    for (uint32_t i = 0; library->catalogue(DLC_CATALOGUE_TARGETS, i, &name, &help); i++) {
        long capability = strncmp(name, "sm_", 3) ? 0 : strtol(name + 3, NULL, 10);
        if (capability > best && capability <= (long)info.capability) {
            best = capability;
            options->target = name;
        }
    }
    return best ? DLC_OK
                : dlc_diag_fail(&cli->diag, DLC_NO_DEVICE, NULL,
                                "%s (%s) is sm_%u, older than any target", device, info.name,
                                info.capability);
}

/* A file in the temporary folder that has no name, or -1. */
static int nameless_file(dlc_cli *cli)
{
    const char *base = getenv("TMPDIR");
    base = base && *base ? base : "/tmp";
    int fd = open(base, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    char *path = dlc_arena_printf(cli->arena, "%s/dlc.XXXXXX", base);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    else
        (void)dlc_diag_fail(&cli->diag, DLC_IO, path, "no temporary file can be made: %s",
                            strerror(errno));
    return fd;
}

/* An executable without a name, made of a model. */
static dlc_status make_executable(dlc_cli *cli, const char *path, const dlc_options *given, int *file)
{
    dlc_options options = *given;
    const dlc_library *library;
    DLC_TRY(dlc_library_load(&library, &cli->diag));
    DLC_TRY(choose_target(cli, library, &options));
    *file = nameless_file(cli);
    if (*file < 0)
        return DLC_IO;
    dlc_progress(cli, "compiling %s …", path);
    dlc_status status = compile_in_child(cli, path, &options, *file);
    dlc_progress(cli, NULL);
    if (status != DLC_OK)
        close(*file);
    return status;
}

static const char *path_of(dlc_cli *cli, int file)
{
    return dlc_arena_printf(cli->arena, "/proc/self/fd/%d", file);
}

dlc_status dlc_load(dlc_cli *cli, const char *path, const dlc_options *options, dlcrt_executable **result, dlc_load_info *info)
{
    int file;
    if (dlc_is_executable_file(path))
        return open_executable(cli, path, NULL, result, info);
    DLC_TRY(make_executable(cli, path, options, &file));
    dlc_status status = open_executable(cli, path_of(cli, file), path, result, info);
    close(file); /* the mapped file lives on */
    return status;
}

/* ---- copies ---- */

dlc_status dlc_artifact_make(dlc_cli *cli, const char *path, const dlc_options *options, int *file)
{
    if (!dlc_is_executable_file(path))
        return make_executable(cli, path, options, file);
    *file = open(path, O_RDONLY | O_CLOEXEC);
    return *file >= 0 ? DLC_OK : dlc_diag_fail(&cli->diag, DLC_IO, path, "%s", strerror(errno));
}

static int copy_bytes(int from, int to)
{
    off_t at = 0;
    for (ssize_t n; (n = sendfile(to, from, &at, 1 << 30)) != 0;)
        if (n < 0 && errno != EINTR)
            return 0;
    return 1;
}

dlc_status dlc_artifact_open(dlc_cli *cli, const char *path, int file, int is_copied, dlcrt_executable **result,
                             dlc_load_info *info)
{
    if (!is_copied && dlc_is_executable_file(path))
        return open_executable(cli, path, NULL, result, info);
    int copy = is_copied ? memfd_create("dlc", MFD_CLOEXEC) : dup(file);
    if (copy < 0)
        return dlc_diag_fail(&cli->diag, DLC_LIMIT, path, "no file in memory for a copy: %s", strerror(errno));
    dlc_status status = !is_copied || copy_bytes(file, copy)
                            ? open_executable(cli, path_of(cli, copy), path, result, info)
                            : dlc_diag_fail(&cli->diag, DLC_IO, path, "cannot be copied to measure it again: %s", strerror(errno));
    close(copy);
    return status;
}
