/* What kernels cost. */
#ifndef DLC_COMPILER_REPORT_H
#define DLC_COMPILER_REPORT_H

#include "compiler/driver.h"
#include "compiler/json.h"

/* Where the target's back end tells costs: adds threads, registers, frame_bytes, shared_bytes (when it depends on no symbol),
 * blocks_per_multiprocessor (when known), cubin_bytes and predicted, rows of device, us and bound, to every row of json's
 * "kernels", or "no_report", a sentence, to json; where only predicting failed, "no_prediction". Children do it, so a compiler that
 * crashes or takes too long is such a sentence. */
void dlc_model_report(dlc_model *model, cJSON *json);
/* The same as a table; nothing when there is none. */
void dlc_model_print_report(dlc_str *out, dlc_arena *arena, const cJSON *json);

#endif
