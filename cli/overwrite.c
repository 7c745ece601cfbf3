/* What a command writes is none of the files its line names for reading: a slip must not cost the
 * user a model. Files are compared by what they are, so that links do not hide it. */
#include "cli/inputs.h"

#include "base/file.h"

#include <string.h>
#include <sys/stat.h>

typedef struct {
    dlc_cli *cli;
    const char *path;
    struct stat file;
} target;

static dlc_status check(const target *to, const char *read)
{
    struct stat file;
    if (!read || stat(read, &file) != 0 || !S_ISREG(file.st_mode) ||
        file.st_dev != to->file.st_dev || file.st_ino != to->file.st_ino)
        return DLC_OK;
    return dlc_diag_fail(&to->cli->diag, DLC_USAGE, to->path,
                         "is what this command reads%s%s%s; another file is wanted to write to",
                         strcmp(read, to->path) ? " ('" : "", strcmp(read, to->path) ? read : "",
                         strcmp(read, to->path) ? "')" : "");
}

static dlc_status check_list(const target *to, const char *list)
{
    dlc_texts files = dlc_split(to->cli->arena, list ? list : "");
    for (uint32_t i = 0; i < files.n; i++)
        DLC_TRY(check(to, files.data[i]));
    return DLC_OK;
}

dlc_status dlc_cli_may_write(dlc_cli *cli, const char *path)
{
    const dlc_args *args = &cli->args;
    const char *const lists[] = {args->inputs,  args->expect, args->schedule, args->data,
                                 args->machine, args->fusion, args->target};
    target to = {.cli = cli, .path = path};
    if (stat(path, &to.file) != 0)
        return DLC_OK;
    for (uint32_t i = 0; i < args->operands.n; i++)
        DLC_TRY(check(&to, args->operands.data[i]));
    for (uint32_t i = 0; i < sizeof lists / sizeof *lists; i++)
        DLC_TRY(check_list(&to, lists[i]));
    for (uint32_t i = 0; i < args->input.n; i++) {
        const char *source = strrchr(args->input.data[i], '=');
        DLC_TRY(check(&to, source ? source + 1 : NULL));
    }
    return DLC_OK;
}

dlc_status dlc_cli_can_write(dlc_cli *cli, const char *path)
{
    DLC_TRY(dlc_cli_may_write(cli, path));
    return dlc_output_try(path, &cli->diag);
}
