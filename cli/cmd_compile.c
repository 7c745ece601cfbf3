/* dlc compile: a model to one or several kinds of output. */
#include "cli/inputs.h"
#include "cli/tune.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const kinds_known[] = {
#define DLC_ARTIFACT(id, text, ending, help) text,
#include "dlc/artifacts.def"
#undef DLC_ARTIFACT
};
static const char *const endings[] = {
#define DLC_ARTIFACT(id, text, ending, help) ending,
#include "dlc/artifacts.def"
#undef DLC_ARTIFACT
};
enum { NKINDS = sizeof endings / sizeof *endings };

static const char *ending_of(const char *kind)
{
    for (uint32_t i = 0; i < NKINDS; i++)
        if (!strcmp(kinds_known[i], kind))
            return endings[i];
    return NULL;
}

static dlc_status refuse_kind(dlc_cli *cli, const char *kind)
{
    const char *near = dlc_nearest(kind, kinds_known, NKINDS), *names = "";
    for (uint32_t i = 0; i < NKINDS; i++)
        names = dlc_arena_printf(cli->arena, "%s%s%s", names,
                                 !i                ? ""
                                 : i + 1 == NKINDS ? " and "
                                                   : ", ",
                                 kinds_known[i]);
    return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL, "--emit '%s' is unknown; there are %s%s%s",
                         kind, names, near ? "; near it: " : "", near ? near : "");
}

/* A target that is a plug-in has kinds of its own, which only it knows. */
static int is_plugin(const dlc_cli *cli)
{
    return cli->args.target && strchr(cli->args.target, '/');
}

static dlc_status check_kinds(dlc_cli *cli, const dlc_texts *kinds)
{
    for (uint32_t i = 0; i < kinds->n; i++)
        if (!is_plugin(cli) && !ending_of(kinds->data[i]))
            return refuse_kind(cli, kinds->data[i]);
    return kinds->n ? DLC_OK : dlc_diag_fail(&cli->diag, DLC_USAGE, NULL, "--emit is empty");
}

/* `stem`: what stands before the last dot of the file's name. */
static const char *stem_of(dlc_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    if (!dot || (slash && dot < slash) || dot == path || dot[-1] == '/')
        return path;
    return dlc_arena_strndup(arena, path, (size_t)(dot - path));
}

/* With one kind -o is the file itself; with several its ending changes with the kind. */
static const char *output_of(dlc_cli *cli, const dlc_texts *kinds, uint32_t i)
{
    const char *output = cli->args.output;
    if (output && kinds->n == 1)
        return output;
    const char *slash = strrchr(cli->args.operands.data[0], '/');
    const char *from = output ? output : slash ? slash + 1 : cli->args.operands.data[0];
    const char *ending = ending_of(kinds->data[i]);
    return dlc_arena_printf(cli->arena, "%s%s%s", stem_of(cli->arena, from), ending ? "" : ".",
                            ending ? ending : kinds->data[i]);
}

static void report(dlc_cli *cli, cJSON *files, const char *kind, const char *path)
{
    struct stat info = {0};
    stat(path, &info);
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "kind", kind);
    cJSON_AddStringToObject(row, "path", path);
    cJSON_AddNumberToObject(row, "bytes", (double)info.st_size);
    cJSON_AddItemToArray(files, row);
    if (!cli->args.quiet)
        dlc_say(cli, "%s  %.1f KB\n", path, (double)info.st_size / 1e3);
}

/* Executables are written with gaps filled in later: into memory first. */
static dlc_status write_stdout(dlc_cli *cli, dlc_model *model, const char *kind,
                               const dlc_library *library)
{
    int fd = memfd_create("standard output", MFD_CLOEXEC);
    char part[65536];
    if (fd < 0)
        return dlc_diag_fail(&cli->diag, DLC_IO, NULL, "no memory file: %s", strerror(errno));
    dlc_status status = library->model_write_fd(model, kind, fd, cli->args.name);
    ssize_t n;
    for (off_t at = 0; status == DLC_OK && (n = pread(fd, part, sizeof part, at)) > 0; at += n)
        fwrite(part, 1, (size_t)n, stdout); /* a failure is seen when the program ends */
    close(fd);
    return status;
}

static dlc_status check_stdout(dlc_cli *cli, const dlc_texts *kinds)
{
    if (dlc_cli_is_stdout(cli) && (kinds->n != 1 || cli->args.json))
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                             cli->args.json ? "standard output (-o -) takes the file or --json's "
                                              "object, not both"
                                            : "standard output (-o -) takes one kind of --emit");
    if (dlc_cli_is_stdout(cli) && !cli->has_stdout)
        return dlc_diag_fail(&cli->diag, DLC_IO, NULL, "standard output (-o -) is closed");
    if (cli->piped && !cli->args.output)
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                             "a model from standard input has no name: say -o FILE or -o -");
    return DLC_OK;
}

static dlc_status check_files(dlc_cli *cli, const dlc_texts *kinds)
{
    for (uint32_t i = 0; i < kinds->n && !dlc_cli_is_stdout(cli); i++)
        DLC_TRY(dlc_cli_can_write(cli, output_of(cli, kinds, i)));
    if (cli->args.trials && !cli->args.tune)
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL, "--trials FILE is about what --tune measures, which is not asked for");
    if (cli->args.trials)
        DLC_TRY(dlc_cli_can_write(cli, cli->args.trials));
    if (cli->args.tune && cli->args.tuned && strcmp(cli->args.tuned, "none") != 0)
        DLC_TRY(dlc_cli_may_write(cli, cli->args.tuned)); /* its folder is made when it is written */
    return cli->args.schedule_out ? dlc_cli_can_write(cli, cli->args.schedule_out) : DLC_OK;
}

static dlc_status write_all(dlc_cli *cli, dlc_model *model, const dlc_texts *kinds,
                            const dlc_library *library)
{
    if (dlc_cli_is_stdout(cli))
        return write_stdout(cli, model, kinds->data[0], library);
    cJSON *files = cJSON_AddArrayToObject(cli->json, "files");
    for (uint32_t i = 0; i < kinds->n; i++) {
        const char *path = output_of(cli, kinds, i);
        dlc_progress(cli, "writing %s …", path);
        dlc_status status = library->model_write(model, kinds->data[i], path, cli->args.name);
        dlc_progress(cli, NULL);
        DLC_TRY(status);
        report(cli, files, kinds->data[i], path);
    }
    return DLC_OK;
}

static dlc_status write_schedules(dlc_cli *cli, dlc_model *model, const dlc_library *library)
{
    const char *text;
    DLC_TRY(library->model_text(model, DLC_TEXT_SCHEDULES, NULL, &text));
    return dlc_write_text(cli, cli->args.schedule_out, text);
}

dlc_status dlc_cmd_compile(dlc_cli *cli)
{
    dlc_texts kinds = dlc_split(cli->arena, cli->args.emit ? cli->args.emit : "so");
    const dlc_library *library;
    dlc_options options;
    dlc_model *model;
    double begin = dlc_seconds();
    DLC_TRY(check_kinds(cli, &kinds));
    DLC_TRY(check_stdout(cli, &kinds));
    DLC_TRY(dlc_cli_options(cli, &options));
    DLC_TRY(check_files(cli, &kinds));
    DLC_TRY(dlc_library_load(&library, &cli->diag));
    cli->json = cJSON_CreateObject();
    if (cli->args.tune)
        DLC_TRY(dlc_cli_tune(cli, &options, library));
    DLC_TRY(dlc_cli_open(cli, cli->args.operands.data[0], &options, &model));
    dlc_status status = write_all(cli, model, &kinds, library);
    if (status == DLC_OK && cli->args.schedule_out)
        status = write_schedules(cli, model, library);
    dlc_cli_close(cli, model);
    cJSON_AddNumberToObject(cli->json, "seconds", dlc_seconds() - begin);
    return status;
}
