/* The steps of a module as data: for `dlc inspect --format json` and what is drawn of it. */
#ifndef DLC_COMPILER_PLAN_H
#define DLC_COMPILER_PLAN_H

#include "compiler/driver.h"
#include "compiler/json.h"

/*
 * Adds to json:
 *   plan   a row per step, in their order: name; does (conv, matmul, …; reduction; map; a step in C); kernel, the row of
 *          "kernels"; code, equal ones run the same; result, the type of the first value written
 *   links  a row per value that one step (from) writes and another (to) reads: value, type, bytes, and the verdict of fusion:
 *          reason and text, "" where no edge of the graph is known
 *   lives  a row per value in the arena: value, offset, bytes, and the first and last step of the plan that use it
 * Sizes are those for `symbols`.
 */
void dlc_model_add_plan(dlc_model *model, cJSON *json, const int64_t *symbols);

#endif
