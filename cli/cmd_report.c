/*
 * dlc report: what the compiler tells of a model, what a profiled run of it takes and what this
 * processor could do, drawn on one page. A model for another machine is drawn with the compiler's
 * estimates.
 */
#include "cli/inputs.h"
#include "cli/page.h"

#include <string.h>

static const char *text_of(const cJSON *row, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(row, key));
    return text ? text : "";
}

static double number_of(const cJSON *row, const char *key)
{
    const cJSON *number = cJSON_GetObjectItem(row, key);
    return cJSON_IsNumber(number) ? number->valuedouble : 0;
}

/* ---- what the compiler says ---- */

static void take_steps(const cJSON *json, dlc_page *page)
{
    const cJSON *row, *kernels = cJSON_GetObjectItem(json, "kernels");
    double begin = 0;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "plan"))
    {
        const cJSON *at = cJSON_GetObjectItem(row, "kernel");
        const cJSON *kernel = at ? cJSON_GetArrayItem(kernels, at->valueint) : NULL;
        dlc_page_step step = {.name = text_of(row, "name"),
                              .does = text_of(row, "does"),
                              .result = text_of(row, "result"),
                              .peak = "",
                              .code = at ? (int64_t)number_of(row, "code") : -1,
                              .flops = number_of(kernel, "flops"),
                              .bytes = number_of(kernel, "bytes"),
                              .begin_us = begin,
                              .us = number_of(kernel, "estimate_us")};
        begin += step.us;
        dlc_vec_push(page->arena, &page->steps, step);
    }
}

static void take_links(const cJSON *json, dlc_page *page)
{
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "links"))
        dlc_vec_push(page->arena, &page->links,
                     ((dlc_page_link){.from = (uint32_t)number_of(row, "from"),
                                      .to = (uint32_t)number_of(row, "to"),
                                      .value = text_of(row, "value"),
                                      .type = text_of(row, "type"),
                                      .reason = text_of(row, "reason"),
                                      .text = text_of(row, "text"),
                                      .bytes = number_of(row, "bytes")}));
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "lives"))
        dlc_vec_push(page->arena, &page->lives,
                     ((dlc_page_life){.value = text_of(row, "value"),
                                      .type = text_of(row, "type"),
                                      .offset = number_of(row, "offset"),
                                      .bytes = number_of(row, "bytes"),
                                      .first = (uint32_t)number_of(row, "first"),
                                      .last = (uint32_t)number_of(row, "last")}));
}

/* Which sizes the memory plan is drawn for, where the model has symbols. */
static const char *sizes_text(const cJSON *json, dlc_arena *arena)
{
    const cJSON *row;
    dlc_str text = {0};
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "symbols"))
        dlc_str_printf(&text, "%s%s = %.0f", text.n ? ", " : "; memory for ", row->string, row->valuedouble);
    const char *copy = dlc_arena_strdup(arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

/* The page's texts are the JSON's, which lives as long. */
static dlc_status describe(dlc_cli *cli, const dlc_options *options, cJSON **json)
{
    const dlc_library *library;
    dlc_model *model;
    const char *text;
    DLC_TRY(dlc_library_load(&library, &cli->diag));
    DLC_TRY(dlc_cli_open(cli, cli->args.operands.data[0], options, &model));
    dlc_status status = library->model_text(model, DLC_TEXT_INSPECT, "json", &text);
    *json = status == DLC_OK ? cJSON_Parse(text) : NULL;
    dlc_cli_close(cli, model);
    return status == DLC_OK && !*json ? DLC_INTERNAL : status;
}

/* ---- a run ---- */

static void take_run(const dlc_profile *run, dlc_page *page)
{
    for (uint32_t i = 0; i < page->steps.n; i++) {
        dlc_page_step *step = &page->steps.data[i];
        const dlc_timed_step *timed = &run->steps[i];
        step->begin_us = timed->begin_us;
        step->us = timed->us;
        step->flops = timed->flops;
        step->bytes = timed->bytes;
        step->peak = dlc_arena_strdup(page->arena, timed->peak); /* the executable is closed before the page is written */
    }
    page->runs = run->nruns;
    page->threads = run->nthreads;
}

static dlc_status run_context(dlc_cli *cli, dlcrt_executable *executable, dlcrt_context *context,
                              const dlc_options *options, dlc_page *page)
{
    dlc_signature signature = dlc_signature_of_executable(executable, cli->arena);
    dlc_tensors inputs, outputs = {0};
    dlcrt_executable_info info;
    DLC_TRY(dlc_gather_inputs(cli, &signature, options, &inputs));
    for (uint32_t i = 0; i < signature.noutputs; i++)
        dlc_vec_push(cli->arena, &outputs, ((dlcrt_tensor){.name = signature.outputs[i].name}));
    dlcrt_executable_describe(executable, &info);
    if (info.nsteps != page->steps.n)
        return dlc_diag_fail(&cli->diag, DLC_INTERNAL, NULL, "the executable has %u steps, its module %u", info.nsteps,
                             page->steps.n);
    page->device = dlc_arena_strdup(cli->arena, info.device);
    page->constants_bytes = (double)info.constants_bytes;
    dlc_profile run;
    DLC_TRY(dlc_profile_runs(cli, executable, context, &inputs, &outputs, cli->args.seconds >= 0 ? cli->args.seconds : 1, &run));
    take_run(&run, page);
    page->context_bytes = (double)dlcrt_context_bytes(context);
    return DLC_OK;
}

static dlc_status run_model(dlc_cli *cli, const dlc_options *options, dlc_page *page)
{
    dlcrt_executable *executable;
    dlcrt_context *context;
    dlcrt_context_options context_options = {.threads = (uint32_t)cli->args.threads, .profile = 1};
    uint32_t nmessages = cli->diag.nmessages;
    dlc_status status = dlc_load(cli, cli->args.operands.data[0], options, &executable, NULL);
    if (status == DLC_NO_DEVICE) { /* estimates are drawn then */
        cli->diag.nmessages = nmessages;
        return DLC_OK;
    }
    DLC_TRY(status);
    status = dlcrt_context_create(executable, &context_options, &context);
    if (status == DLC_OK) {
        status = run_context(cli, executable, context, options, page);
        dlcrt_context_destroy(context);
    } else {
        status = dlc_runtime_failed(cli, status, NULL);
    }
    dlcrt_executable_close(executable);
    return status;
}

/* ---- the file ---- */

static const char *output_of(const dlc_cli *cli)
{
    return cli->args.output ? cli->args.output : "report.html";
}

static dlc_status write_page(dlc_cli *cli, const dlc_page *page)
{
    const char *path = output_of(cli);
    dlc_str text = {0};
    dlc_page_print(page, &text);
    dlc_status status = dlc_write_bytes(cli, path, text.data, text.n);
    dlc_str_deinit(&text);
    cli->json = cli->json ? cli->json : cJSON_CreateObject();
    cJSON_AddStringToObject(cli->json, "file", path);
    cJSON_AddNumberToObject(cli->json, "steps", page->steps.n);
    cJSON_AddNumberToObject(cli->json, "run_ms", page->total_us / 1e3);
    if (status == DLC_OK && !cli->args.quiet)
        dlc_say(cli, "%s\n", path);
    return status;
}

static dlc_status report(dlc_cli *cli, const dlc_options *options, const cJSON *json, dlc_page *page)
{
    page->model = text_of(json, "model");
    page->target = text_of(json, "target");
    page->sizes = sizes_text(json, cli->arena);
    page->arena_bytes = number_of(cJSON_GetObjectItem(json, "memory"), "arena_bytes");
    page->constants_bytes = number_of(json, "constants_bytes");
    page->context_bytes = page->arena_bytes;
    take_steps(json, page);
    take_links(json, page);
    DLC_TRY(run_model(cli, options, page));
    if (page->runs && !strncmp(page->device, "cpu", 3))
        dlc_roofs_measure(cli, page->threads, &page->roofs);
    dlc_page_reckon(page);
    return write_page(cli, page);
}

dlc_status dlc_cmd_report(dlc_cli *cli)
{
    const char *path = cli->args.operands.data[0];
    const dlc_library *library;
    dlc_options options;
    cJSON *json = NULL;
    if (dlc_is_executable_file(path))
        return dlc_diag_fail(&cli->diag, DLC_USAGE, path,
                             "is an executable, which does not hold why its kernels are as they are; the page is made "
                             "of the model; `dlc inspect` shows what an executable holds");
    DLC_TRY(dlc_cli_can_write(cli, output_of(cli)));
    DLC_TRY(dlc_library_load(&library, &cli->diag));
    dlc_page page = {.arena = cli->arena, .version = library->version()};
    DLC_TRY(dlc_cli_options(cli, &options));
    cli->json = cJSON_CreateObject();
    dlc_status status = describe(cli, &options, &json);
    if (status == DLC_OK)
        status = report(cli, &options, json, &page);
    cJSON_Delete(json);
    return status;
}
