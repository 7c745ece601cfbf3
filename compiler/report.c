/*
 * What a target's kernels cost, for `dlc inspect`, where its back end can tell: they are compiled
 * as for an executable, and registers, stack, shared memory and the blocks a multiprocessor holds
 * at once are read from the code; and how long each would take on devices that run it, and what bounds
 * it there. No device takes part; without its compiler the reason stands there instead.
 */
#include "compiler/report.h"

#include "package/backend.h"

/* A frame is what was spilled, and arrays that found no place in registers: 0 in a good kernel. */
static void add_report(cJSON *row, const dlc_kernel_cost *cost)
{
    cJSON_AddNumberToObject(row, "threads", cost->threads);
    cJSON_AddNumberToObject(row, "units_per_block", cost->units_per_block);
    cJSON_AddNumberToObject(row, "registers", cost->registers);
    cJSON_AddNumberToObject(row, "frame_bytes", cost->frame_bytes);
    if (cost->shared_bytes >= 0)
        cJSON_AddNumberToObject(row, "shared_bytes", (double)cost->shared_bytes);
    if (cost->blocks)
        cJSON_AddNumberToObject(row, "blocks_per_multiprocessor", cost->blocks);
    cJSON_AddNumberToObject(row, "cubin_bytes", (double)cost->code_bytes);
    cJSON *prices = cJSON_AddArrayToObject(row, "predicted");
    for (uint32_t i = 0; i < cost->nprices; i++) {
        cJSON *price = cJSON_CreateObject();
        cJSON_AddStringToObject(price, "device", cost->prices[i].device);
        cJSON_AddNumberToObject(price, "us", cost->prices[i].us);
        cJSON_AddStringToObject(price, "bound", cost->prices[i].bound);
        cJSON_AddItemToArray(prices, price);
    }
}

void dlc_model_report(dlc_model *model, cJSON *json)
{
    const dlc_backend *backend = dlc_backend_of(model->ctx.target, 0);
    uint32_t njobs = model->options.jobs ? model->options.jobs : 2;
    dlc_kernel_cost *costs;
    cJSON *row;
    dlc_diag diag;
    if (!backend->report)
        return;
    dlc_diag_init(&diag, model->scratch);
    if (backend->report(model->ctx.module, njobs, model->scratch, &diag, &costs) != DLC_OK) {
        cJSON_AddStringToObject(json, "no_report",
                                diag.nmessages ? diag.messages[0].text
                                               : "the kernels do not compile");
        return;
    }
    if (diag.nmessages)
        cJSON_AddStringToObject(json, "no_prediction", diag.messages[0].text);
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "kernels"))
        add_report(row, &costs[(uint32_t)cJSON_GetObjectItem(row, "code")->valuedouble]);
}

/* --- predictions --- */
static const char *text_of(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(object, key));
    return text ? text : "";
}

/* The first kernel that has predictions: it names the devices. */
static const cJSON *first_prices(const cJSON *json)
{
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "kernels"))
    {
        const cJSON *prices = cJSON_GetObjectItem(row, "predicted");
        if (cJSON_GetArraySize(prices))
            return prices;
    }
    return NULL;
}

static void print_prices(dlc_str *out, dlc_arena *arena, const cJSON *row, int ndevices)
{
    const cJSON *prices = cJSON_GetObjectItem(row, "predicted"), *price;
    dlc_str_printf(out, "  %4.0f ", cJSON_GetObjectItem(row, "code")->valuedouble);
    cJSON_ArrayForEach(price, prices)
        dlc_str_printf(out, " %9.2f %-7s", cJSON_GetObjectItem(price, "us")->valuedouble, text_of(price, "bound"));
    for (int i = cJSON_GetArraySize(prices); i < ndevices; i++)
        dlc_str_printf(out, " %9s %-7s", "?", "");
    dlc_str_printf(out, "  %s\n", dlc_arena_line(arena, text_of(row, "name")));
}

static void print_predictions(dlc_str *out, dlc_arena *arena, const cJSON *json)
{
    const cJSON *devices = first_prices(json), *row;
    const char *reason = cJSON_GetStringValue(cJSON_GetObjectItem(json, "no_prediction"));
    if (reason)
        dlc_str_printf(out, "\nno prediction of times: %s\n", reason);
    if (!devices)
        return;
    dlc_str_add(out, "\npredicted us of a launch, and what bounds it; no GPU has calibrated this\n  code ");
    cJSON_ArrayForEach(row, devices) dlc_str_printf(out, " %9s %-7s", text_of(row, "device"), "bound");
    dlc_str_add(out, "  nodes\n");
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "kernels")) print_prices(out, arena, row, cJSON_GetArraySize(devices));
}

void dlc_model_print_report(dlc_str *out, dlc_arena *arena, const cJSON *json)
{
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "kernels"), 0);
    const char *reason = cJSON_GetStringValue(cJSON_GetObjectItem(json, "no_report"));
    if (reason) {
        dlc_str_printf(out, "\nno report of the kernels: %s\n", reason);
        return;
    }
    if (!cJSON_GetObjectItem(row, "threads"))
        return;
    dlc_str_printf(out, "\n  %4s %8s %10s %8s %8s %8s  %s\n", "code", "threads", "registers",
                   "frame", "shared", "blocks", "nodes");
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "kernels"))
    {
        static const char *const keys[] = {"code",         "threads",
                                           "registers",    "frame_bytes",
                                           "shared_bytes", "blocks_per_multiprocessor"};
        static const int widths[] = {6, 8, 10, 8, 8, 8};
        for (int k = 0; k < 6; k++) {
            const cJSON *cell = cJSON_GetObjectItem(row, keys[k]);
            if (cell)
                dlc_str_printf(out, "%*.0f ", widths[k], cell->valuedouble);
            else
                dlc_str_printf(out, "%*s ", widths[k], "?");
        }
        dlc_str_printf(out, " %s\n", dlc_arena_line(arena, cJSON_GetStringValue(cJSON_GetObjectItem(row, "name"))));
    }
    print_predictions(out, arena, json);
}
