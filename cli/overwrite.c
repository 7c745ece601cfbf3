/* What a command writes is none of the files its line names for reading, and none that its model was read from: a slip must not cost
 * the user a model or its weights. Files are compared by what they are, so that links do not hide it. */
#include "cli/inputs.h"

#include "base/file.h"

#include <assert.h>
#include <string.h>

static dlc_status check(dlc_cli *cli, const char *path, const char *read)
{
    if (!read || !dlc_is_one_file(read, path))
        return DLC_OK;
    return dlc_diag_fail(&cli->diag, DLC_USAGE, path, "is what this command reads%s%s%s; another file is wanted to write to",
                         strcmp(read, path) ? " ('" : "", strcmp(read, path) ? read : "", strcmp(read, path) ? "')" : "");
}

static dlc_status check_list(dlc_cli *cli, const char *path, const char *list)
{
    dlc_texts files = dlc_split(cli->arena, list ? list : "");
    for (uint32_t i = 0; i < files.n; i++)
        DLC_TRY(check(cli, path, files.data[i]));
    return DLC_OK;
}

int dlc_cli_is_stdout(const dlc_cli *cli)
{
    return cli->args.output && !strcmp(cli->args.output, "-");
}

dlc_status dlc_cli_may_write(dlc_cli *cli, const char *path)
{
    const dlc_args *args = &cli->args;
    const char *const lists[] = {args->inputs,  args->expect, args->schedule, args->data,
                                 args->machine, args->fusion, args->target};
    if (!strcmp(path, "-"))
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                             "'-' is standard output, which takes what compile and opt make alone; a file of that name is './-'");
    for (uint32_t i = 0; i < args->operands.n; i++)
        DLC_TRY(check(cli, path, args->operands.data[i]));
    for (uint32_t i = 0; i < sizeof lists / sizeof *lists; i++)
        DLC_TRY(check_list(cli, path, lists[i]));
    for (uint32_t i = 0; i < args->input.n; i++) {
        const char *source = strrchr(args->input.data[i], '=');
        DLC_TRY(check(cli, path, source ? source + 1 : NULL));
    }
    dlc_vec_push(cli->arena, &cli->written, path);
    return DLC_OK;
}

dlc_status dlc_cli_can_write(dlc_cli *cli, const char *path)
{
    DLC_TRY(dlc_cli_may_write(cli, path));
    return dlc_output_try(path, &cli->diag);
}

const char *dlc_cli_output(dlc_cli *cli, uint32_t i)
{
    return dlc_arena_printf(cli->arena, "%s/output_%u.pb", cli->args.output_dir, i);
}

dlc_status dlc_cli_may_write_outputs(dlc_cli *cli, uint32_t noutputs)
{
    for (uint32_t i = 0; cli->args.output_dir && i < noutputs; i++)
        DLC_TRY(dlc_cli_may_write(cli, dlc_cli_output(cli, i)));
    return DLC_OK;
}

static int is_operand(const dlc_cli *cli, const char *path)
{
    uint32_t i = 0;
    while (i < cli->args.operands.n && strcmp(cli->args.operands.data[i], path) != 0)
        i++;
    return i < cli->args.operands.n;
}

dlc_status dlc_cli_check_model(dlc_cli *cli, const dlc_library *library, const char *path, dlc_model *model)
{
    uint32_t noutputs = 0;
    dlcrt_tensor_info info;
    if (!is_operand(cli, path)) /* what the command made itself */
        return DLC_OK;
    while (cli->args.output_dir && library->model_output(model, noutputs, &info))
        noutputs++;
    DLC_TRY(dlc_cli_may_write_outputs(cli, noutputs));
    for (uint32_t i = 0; i < cli->written.n; i++)
        DLC_TRY(library->model_may_write(model, cli->written.data[i]));
    return DLC_OK;
}

dlc_status dlc_write_bytes(dlc_cli *cli, const char *path, const void *bytes, size_t size_bytes)
{
    uint32_t i = 0;
    while (i < cli->written.n && strcmp(cli->written.data[i], path) != 0)
        i++;
    assert(i < cli->written.n && "dlc_cli_may_write was not asked");
    return dlc_output_whole(path, bytes, size_bytes, &cli->diag);
}
