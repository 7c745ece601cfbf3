/* What was measured of this machine, and kept in a file: `dlc targets --probe`. */
#ifndef DLC_COMPILER_MACHINE_H
#define DLC_COMPILER_MACHINE_H

#include "base/diag.h"
#include "base/str.h"
#include "ir/schedule/target.h"

/*
 * The target called so; native (and native+facts) as it was measured, in `file` or, when that is NULL, in the cache's folder if
 * anything is there for this processor. *target is NULL when there is no such target. Fails when `file` was named and cannot be read.
 */
DLC_NODISCARD dlc_status dlc_machine_target(const char *name, const char *file, dlc_diag *diag, const dlc_target **target);

/* The file in the cache's folder, whether it is there or not; NULL: there is no such folder, or its path is too long. */
const char *dlc_machine_file(char *path, size_t size_bytes);

/* Measures this processor in some seconds, on one thread. Everything not measured is `native`'s. */
void dlc_machine_measure(const dlc_target *native, dlc_machine *machine);

/* A line for `dlc targets`: native's row, its facts, and what was measured. */
void dlc_machine_describe(char *text, size_t size_bytes);

/* This processor, as the system calls it. */
void dlc_machine_name(char *name, size_t size_bytes);

/* The file's text: "processor NAME", then a line "field number" for each that was measured. */
void dlc_machine_print(const dlc_machine *machine, dlc_str *out);

#endif
