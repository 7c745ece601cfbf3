/*
 * dlc targets --calibrate: gpu_check's results as lines for the virtual GPU (DLC_VGPU_GPU). The step micro measured what a GPU is; the
 * step experiments measured kernels whose time was predicted, so a line "scale_BOUND" is the median of measured over predicted of those
 * that the prediction says are bound so, and prediction_error the median distance, before and behind.
 */
#include "cli/calibrate.h"

#include "base/file.h"
#include "base/vec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A number or the name, as a line. */
static void say_measured(dlc_cli *cli, const cJSON *of)
{
    static const char *const known[] = {
#define DLC_MEASURE(name) name,
#include "cli/measures.def"
#undef DLC_MEASURE
    };
    for (size_t i = 0; of->string && i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i], of->string) != 0)
            continue;
        if (cJSON_IsNumber(of))
            dlc_say(cli, "%s %.6g\n", of->string, of->valuedouble);
        if (cJSON_IsString(of))
            dlc_say(cli, "%s %s\n", of->string, of->valuestring);
        cJSON_AddItemToObject(cli->json, of->string, cJSON_Duplicate(of, 0));
    }
}

static int say_micro(dlc_cli *cli, const cJSON *rows)
{
    const cJSON *row, *of;
    int nmeasured = 0;
    cJSON_ArrayForEach(row, rows)
    {
        cJSON_ArrayForEach(of, row) say_measured(cli, of);
        nmeasured += !cJSON_GetObjectItem(row, "why") && !cJSON_GetObjectItem(row, "peer_problems");
    }
    return nmeasured;
}

/* --- experiments --- */

/* A kernel that ran: the logarithm of measured over predicted microseconds. */
typedef struct {
    const char *bound;
    double ratio;
} trial;
typedef dlc_vec(trial) trial_list;
typedef dlc_vec(double) number_list;

static void add_kernels(dlc_cli *cli, const cJSON *kernels, trial_list *trials)
{
    const cJSON *kernel;
    cJSON_ArrayForEach(kernel, kernels)
    {
        const cJSON *us = cJSON_GetObjectItem(kernel, "us"), *predicted = cJSON_GetObjectItem(kernel, "predicted_us");
        const char *bound = cJSON_GetStringValue(cJSON_GetObjectItem(kernel, "bound"));
        if (cJSON_IsNumber(us) && cJSON_IsNumber(predicted) && bound && us->valuedouble > 0 && predicted->valuedouble > 0)
            dlc_vec_push(cli->arena, trials, ((trial){bound, log(us->valuedouble / predicted->valuedouble)}));
    }
}

static double median_ratio(dlc_cli *cli, const trial_list *trials, const char *bound)
{
    number_list ratios = {0};
    for (uint32_t i = 0; i < trials->n; i++)
        if (!strcmp(trials->data[i].bound, bound))
            dlc_vec_push(cli->arena, &ratios, trials->data[i].ratio);
    return dlc_median(ratios.data, ratios.n);
}

static int is_first(const trial_list *trials, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (!strcmp(trials->data[k].bound, trials->data[i].bound))
            return 0;
    return 1;
}

static void say_number(dlc_cli *cli, const char *name, double value)
{
    dlc_say(cli, "%s %.6g\n", name, value);
    cJSON_AddNumberToObject(cli->json, name, value);
}

static void say_scales(dlc_cli *cli, const trial_list *trials)
{
    number_list before = {0}, behind = {0};
    for (uint32_t i = 0; i < trials->n; i++) {
        double scale = median_ratio(cli, trials, trials->data[i].bound);
        if (is_first(trials, i))
            say_number(cli, dlc_arena_printf(cli->arena, "scale_%s", trials->data[i].bound), exp(scale));
        dlc_vec_push(cli->arena, &before, fabs(trials->data[i].ratio));
        dlc_vec_push(cli->arena, &behind, fabs(trials->data[i].ratio - scale));
    }
    say_number(cli, "kernels_measured", trials->n);
    say_number(cli, "prediction_error", exp(dlc_median(before.data, before.n)) - 1);
    say_number(cli, "prediction_error_scaled", exp(dlc_median(behind.data, behind.n)) - 1);
}

static void say_experiments(dlc_cli *cli, const cJSON *rows)
{
    const cJSON *row, *of;
    trial_list trials = {0};
    cJSON_ArrayForEach(row, rows)
        cJSON_ArrayForEach(of, cJSON_GetObjectItem(row, "experiments"))
            add_kernels(cli, cJSON_GetObjectItem(of, "kernels"), &trials);
    if (trials.n)
        say_scales(cli, &trials);
}

static const cJSON *rows_of(const cJSON *results, const char *step)
{
    return cJSON_GetObjectItem(cJSON_GetObjectItem(results, step), "rows");
}

dlc_status dlc_cli_calibrate(dlc_cli *cli)
{
    const char *path = cli->args.calibrate;
    dlc_map map;
    DLC_TRY(dlc_map_open(path, &map, &cli->diag));
    cJSON *results = cJSON_ParseWithLength((const char *)map.bytes, map.size_bytes);
    dlc_map_close(&map);
    cli->json = cJSON_CreateObject();
    int nmeasured = say_micro(cli, rows_of(results, "micro"));
    say_experiments(cli, rows_of(results, "experiments"));
    cJSON_Delete(results);
    return nmeasured ? DLC_OK
                     : dlc_diag_fail(&cli->diag, DLC_INVALID, path, "no results of gpu_check with its step micro");
}
