/*
 * What the kernels of a CUDA target cost, for `dlc inspect`: they are compiled as for an
 * executable, and registers, stack, shared memory and the blocks a multiprocessor holds at once are
 * read from the cubins. No GPU takes part; without NVRTC the reason stands there instead.
 */
#include "compiler/report.h"

#include "codegen/ptx/object.h"

#include <stdlib.h>

static dlc_status compile(dlc_model *model, dlc_diag *diag, dlc_cuda_sources *sources,
                          const dlc_cuda_row **rows)
{
    int arch = atoi(model->ctx.target->cpu);
    dlc_blob *blobs;
    uint32_t nblobs, njobs = model->options.jobs ? model->options.jobs : 2;
    DLC_TRY(dlc_cuda_sources_make(model->ctx.module, model->scratch, diag, sources));
    DLC_TRY(dlc_cuda_emit(sources, &arch, 1, njobs, model->scratch, diag, &blobs, &nblobs));
    *rows = blobs[0].bytes;
    return DLC_OK;
}

/* A frame is what was spilled, and arrays that found no place in registers: 0 in a good kernel. */
static void add_report(cJSON *row, const dlc_plan_binary *binary, const dlc_cuda_launch *launch,
                       int64_t dynamic_bytes)
{
    cJSON_AddNumberToObject(row, "threads", launch->threads);
    cJSON_AddNumberToObject(row, "units_per_block", launch->units_per_block);
    cJSON_AddNumberToObject(row, "registers", binary->registers);
    cJSON_AddNumberToObject(row, "frame_bytes", binary->frame_bytes);
    if (dynamic_bytes >= 0)
        cJSON_AddNumberToObject(row, "shared_bytes", (double)dynamic_bytes + binary->shared_bytes);
    if (binary->blocks)
        cJSON_AddNumberToObject(row, "blocks_per_multiprocessor", binary->blocks);
    cJSON_AddNumberToObject(row, "cubin_bytes", (double)binary->size_bytes);
}

void dlc_model_report_cuda(dlc_model *model, cJSON *json)
{
    const dlc_cuda_row *rows;
    dlc_cuda_sources sources;
    cJSON *row;
    dlc_diag diag;
    dlc_diag_init(&diag, model->scratch);
    if (compile(model, &diag, &sources, &rows) != DLC_OK) {
        cJSON_AddStringToObject(json, "no_report",
                                diag.nmessages ? diag.messages[0].text
                                               : "the kernels do not compile");
        return;
    }
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(json, "kernels"))
    {
        uint32_t code = (uint32_t)cJSON_GetObjectItem(row, "code")->valuedouble;
        const dlc_plan_binary *binary = &rows[2 * (size_t)code].binary; /* a cubin and PTX each */
        add_report(row, binary, &sources.launches[code], sources.shared_bytes[code]);
    }
}

void dlc_model_print_cuda(dlc_str *out, const cJSON *json)
{
    const cJSON *row;
    const char *reason = cJSON_GetStringValue(cJSON_GetObjectItem(json, "no_report"));
    if (reason) {
        dlc_str_printf(out, "\nno report of the kernels: %s\n", reason);
        return;
    }
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
        dlc_str_printf(out, " %s\n", cJSON_GetStringValue(cJSON_GetObjectItem(row, "name")));
    }
}
