/* What CUDA kernels cost. */
#ifndef DLC_COMPILER_REPORT_H
#define DLC_COMPILER_REPORT_H

#include "compiler/driver.h"

#include <cjson/cJSON.h>

/* Adds threads, registers, frame_bytes, shared_bytes (when it depends on no symbol),
 * blocks_per_multiprocessor (when known) and cubin_bytes to every row of json's "kernels"; or
 * "no_report", a sentence, to json. */
void dlc_model_report_cuda(dlc_model *model, cJSON *json);
/* The same as a table. */
void dlc_model_print_cuda(dlc_str *out, const cJSON *json);

#endif
