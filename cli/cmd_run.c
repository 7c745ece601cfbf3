/* dlc run: one run of a model, by compiled code or by the interpreter; its outputs shown, written,
 * compared. */
#include "cli/inputs.h"
#include "cli/profile.h"

#include "base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_SHOWN = 16 };

/* ---- what to do with the outputs ---- */

static void index_text(const dlcrt_tensor *tensor, uint64_t at, dlc_str *out)
{
    uint64_t index[DLCRT_MAX_RANK];
    for (uint32_t d = tensor->rank; d-- > 0;) {
        index[d] = at % (uint64_t)tensor->dims[d];
        at /= (uint64_t)tensor->dims[d];
    }
    dlc_str_add(out, "[");
    for (uint32_t d = 0; d < tensor->rank; d++)
        dlc_str_printf(out, "%s%" PRIu64, d ? "," : "", index[d]);
    dlc_str_add(out, "]");
}

static void show_strings(dlc_cli *cli, const dlcrt_tensor *tensor)
{
    dlc_str text = {0};
    size_t nelems = dlc_tensor_elems(tensor);
    dlc_tensor_type(tensor, &text);
    for (size_t i = 0; i < nelems && nelems <= MOST_SHOWN; i++) {
        dlc_str_add(&text, i ? " " : "\n    ");
        dlc_str_add_quoted(&text, dlc_tensor_string(tensor, i));
    }
    dlc_say(cli, "%s  %s\n", dlc_arena_line(cli->arena, tensor->name), dlc_str_text(&text));
    dlc_str_deinit(&text);
}

static void show_output(dlc_cli *cli, const dlcrt_tensor *tensor)
{
    if (dlc_is_text(tensor->dtype)) {
        show_strings(cli, tensor);
        return;
    }
    dlc_str text = {0};
    double least = INFINITY, most = -INFINITY, sum = 0;
    size_t nelems = tensor->size_bytes / dlc_dtype_bytes(tensor->dtype);
    for (size_t i = 0; i < nelems; i++) {
        double value = dlc_tensor_element(tensor, i);
        least = value < least ? value : least;
        most = value > most ? value : most;
        sum += value;
    }
    dlc_tensor_type(tensor, &text);
    if (nelems)
        dlc_str_printf(&text, "  least %g, most %g, mean %g", least, most, sum / (double)nelems);
    for (size_t i = 0; i < nelems && nelems <= MOST_SHOWN; i++)
        dlc_str_printf(&text, "%s%g", i ? " " : "\n    ", dlc_tensor_element(tensor, i));
    dlc_say(cli, "%s  %s\n", dlc_arena_line(cli->arena, tensor->name), dlc_str_text(&text));
    dlc_str_deinit(&text);
}

static void note_output(cJSON *list, const dlcrt_tensor *tensor)
{
    cJSON *row = cJSON_CreateObject(), *dims = NULL;
    cJSON_AddStringToObject(row, "name", tensor->name);
    cJSON_AddStringToObject(row, "dtype", dlc_dtypes[tensor->dtype].text);
    dims = cJSON_AddArrayToObject(row, "dims");
    for (uint32_t d = 0; d < tensor->rank; d++)
        cJSON_AddItemToArray(dims, cJSON_CreateNumber((double)tensor->dims[d]));
    cJSON_AddItemToArray(list, row);
}

static dlc_status write_folder(dlc_cli *cli, const char *folder, const dlc_tensors *outputs)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return dlc_diag_fail(&cli->diag, DLC_IO, folder, "cannot be made: %s", strerror(errno));
    for (uint32_t i = 0; i < outputs->n; i++)
        DLC_TRY(dlc_pb_write(dlc_cli_output(cli, i), &outputs->data[i], &cli->diag));
    return DLC_OK;
}

/* ---- comparison ---- */

static dlc_tolerance tolerance_of(const dlc_cli *cli)
{
    const dlc_args *args = &cli->args;
    return (dlc_tolerance){args->rtol >= 0 ? args->rtol : 1e-3,
                           args->atol >= 0 ? args->atol : 1e-5};
}

static dlc_status compare_one(dlc_cli *cli, const dlcrt_tensor *found, const dlcrt_tensor *expected,
                              cJSON *rows)
{
    DLC_TRY(dlc_compare_types(found->name, found, expected, &cli->diag));
    dlc_tolerance tolerance = tolerance_of(cli);
    dlc_difference d = dlc_compare(found, expected, tolerance);
    dlc_str at = {0}, where = {0};
    if (d.nelems)
        index_text(found, d.at, &at);
    dlc_difference_print(&d, &where);
    cJSON *row = cJSON_CreateObject();
    cJSON_AddStringToObject(row, "name", found->name);
    cJSON_AddNumberToObject(row, "elements", (double)d.nelems);
    cJSON_AddNumberToObject(row, "outside", (double)d.noutside);
    cJSON_AddNumberToObject(row, "max_abs_err", d.max_abs);
    cJSON_AddNumberToObject(row, "max_rel_err", d.max_rel);
    cJSON_AddStringToObject(row, "at", dlc_str_text(&at));
    cJSON_AddItemToArray(rows, row);
    dlc_say(cli,
            "%s: largest error %.3g at %s (%s); largest error over largest value "
            "%.3g\n",
            dlc_arena_line(cli->arena, found->name), d.max_abs, dlc_str_text(&at), dlc_str_text(&where), d.max_rel);
    dlc_status status = DLC_OK;
    if (d.noutside)
        status = dlc_diag_fail(&cli->diag, DLC_MISMATCH, NULL,
                               "output '%s': %" PRIu64 " of %" PRIu64
                               " elements differ by more than %g + %g * |expected|; the "
                               "largest error is %.3g at %s (%s)",
                               found->name, d.noutside, d.nelems, tolerance.atol, tolerance.rtol,
                               d.max_abs, dlc_str_text(&at), dlc_str_text(&where));
    dlc_str_deinit(&at);
    dlc_str_deinit(&where);
    return status;
}

static dlc_status compare_all(dlc_cli *cli, const dlc_signature *signature,
                              const dlc_tensors *outputs)
{
    dlc_tensors expected = {0};
    uint32_t ncompared = 0;
    dlc_status status = DLC_OK;
    DLC_TRY(dlc_read_expected(cli, signature, cli->args.expect, &expected));
    cJSON *rows = cJSON_AddArrayToObject(cli->json, "compared");
    for (uint32_t i = 0; i < outputs->n; i++) {
        const dlcrt_tensor *wanted = dlc_tensors_find(&expected, outputs->data[i].name);
        if (!wanted) {
            (void)dlc_diag_fail(&cli->diag, DLC_OK, cli->args.expect,
                                "has no '%s'; it is not compared", outputs->data[i].name);
            continue;
        }
        ncompared++;
        dlc_status one = compare_one(cli, &outputs->data[i], wanted, rows);
        status = status == DLC_OK ? one : status;
    }
    if (!ncompared)
        return dlc_diag_fail(&cli->diag, DLC_INVALID, cli->args.expect, "has none of the outputs");
    return status;
}

static dlc_status deliver(dlc_cli *cli, const dlc_signature *signature, const dlc_tensors *outputs)
{
    cJSON *list = cJSON_AddArrayToObject(cli->json, "outputs");
    for (uint32_t i = 0; i < outputs->n; i++) {
        note_output(list, &outputs->data[i]);
        if (!cli->args.quiet && !cli->args.expect && !cli->args.outputs && !cli->args.output_dir)
            show_output(cli, &outputs->data[i]);
    }
    if (cli->args.outputs)
        DLC_TRY(dlc_npz_write(cli->args.outputs, outputs, &cli->diag));
    if (cli->args.output_dir)
        DLC_TRY(write_folder(cli, cli->args.output_dir, outputs));
    return cli->args.expect ? compare_all(cli, signature, outputs) : DLC_OK;
}

/* ---- profile ---- */

/* status: what the run ended with. */
static dlc_status tell_profile(dlc_cli *cli, const dlcrt_executable *executable, const dlcrt_context *context, dlc_status status)
{
    dlc_profile profile = dlc_profile_read(cli, executable, context);
    dlc_roofs roofs = {0};
    DLC_TRY(dlc_profile_write(cli, cli->args.profile, &profile, 1));
    if (profile.is_host)
        dlc_roofs_measure(cli, profile.nthreads, &roofs);
    cJSON_AddItemToObject(cli->json, "profile", dlc_profile_json(&profile, &roofs));
    dlc_profile_show(cli, &profile, &roofs);
    return status;
}

/* ---- the two ways to run ---- */

static dlc_tensors empty_outputs(dlc_cli *cli, const dlc_signature *signature)
{
    dlc_tensors outputs = {0};
    for (uint32_t i = 0; i < signature->noutputs; i++)
        dlc_vec_push(cli->arena, &outputs, ((dlcrt_tensor){.name = signature->outputs[i].name}));
    return outputs;
}

static dlc_status run_context(dlc_cli *cli, dlcrt_executable *executable, dlcrt_context *context,
                              const dlc_options *options)
{
    dlc_signature signature = dlc_signature_of_executable(executable, cli->arena);
    dlc_tensors inputs, outputs = empty_outputs(cli, &signature);
    DLC_TRY(dlc_cli_may_write_outputs(cli, signature.noutputs));
    DLC_TRY(dlc_gather_inputs(cli, &signature, options, &inputs));
    double begin = dlc_seconds();
    dlc_status status = dlcrt_context_run(context, inputs.data, inputs.n, outputs.data, outputs.n);
    if (status != DLC_OK)
        return dlc_runtime_failed(cli, status, NULL);
    cJSON_AddNumberToObject(cli->json, "run_ms", 1e3 * (dlc_seconds() - begin));
    status = deliver(cli, &signature, &outputs);
    return cli->args.profile && (status == DLC_OK || status == DLC_MISMATCH) ? tell_profile(cli, executable, context, status) : status;
}

static dlc_status run_compiled(dlc_cli *cli, const char *path, const dlc_options *options)
{
    dlcrt_executable *executable;
    dlcrt_context *context;
    dlcrt_context_options context_options = {.threads = (uint32_t)cli->args.threads,
                                             .profile = cli->args.profile != NULL};
    DLC_TRY(dlc_load(cli, path, options, &executable, NULL));
    dlc_status status = dlcrt_context_create(executable, &context_options, &context);
    if (status != DLC_OK) {
        dlcrt_executable_close(executable);
        return dlc_runtime_failed(cli, status, NULL);
    }
    status = run_context(cli, executable, context, options);
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
    return status;
}

static dlc_status run_interpreted(dlc_cli *cli, const char *path, const dlc_options *options)
{
    const dlc_library *library;
    dlc_model *model;
    dlc_tensors inputs;
    if (dlc_is_executable_file(path))
        return dlc_diag_fail(&cli->diag, DLC_USAGE, path,
                             "is an executable; --interpret wants the model it was made from");
    if (cli->args.profile)
        return dlc_diag_fail(
            &cli->diag, DLC_USAGE, NULL,
            "--profile times compiled code; it cannot be combined with --interpret");
    DLC_TRY(dlc_library_load(&library, &cli->diag));
    DLC_TRY(dlc_cli_open(cli, path, options, &model));
    dlc_signature signature = dlc_signature_of_model(model, library, cli->arena);
    dlc_tensors outputs = empty_outputs(cli, &signature);
    dlc_status status = dlc_gather_inputs(cli, &signature, options, &inputs);
    if (status == DLC_OK)
        status = library->model_interpret(model, inputs.data, inputs.n, outputs.data, outputs.n);
    if (status == DLC_OK)
        status = deliver(cli, &signature, &outputs);
    dlc_cli_close(cli, model);
    return status;
}

dlc_status dlc_cmd_run(dlc_cli *cli)
{
    dlc_options options;
    const char *path = cli->args.operands.data[0];
    DLC_TRY(dlc_cli_options(cli, &options));
    DLC_TRY(dlc_cli_check_compiled(cli, path));
    if (cli->args.outputs)
        DLC_TRY(dlc_cli_can_write(cli, cli->args.outputs));
    if (cli->args.profile)
        DLC_TRY(dlc_cli_can_write(cli, cli->args.profile));
    cli->json = cJSON_CreateObject();
    return cli->args.interpret ? run_interpreted(cli, path, &options)
                               : run_compiled(cli, path, &options);
}
