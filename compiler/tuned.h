/* Schedules that were measured best on this machine, and the file that keeps them (`dlc compile --tune`). Private to this folder. */
#ifndef DLC_COMPILER_TUNED_H
#define DLC_COMPILER_TUNED_H

#include "base/diag.h"
#include "base/str.h"

/*
 * The file that a compilation reads: `named`; where that is NULL, the cache's of this processor, for the target native alone;
 * where it is "", none. "" when there is none. Good until this thread asks again.
 */
const char *dlc_tuned_file(const char *named, const char *target);
/*
 * The file's kernels and schedules, memory of the arena; NULL: there is no such file. One that is not for this processor, or
 * none of ours, is a note and NULL.
 */
const char *dlc_tuned_read(const char *file, dlc_arena *arena, dlc_diag *diag);
/* Begins an entry: the line that says which kernel and target it is for, behind which something may be said. */
void dlc_tuned_head(uint64_t kernel_hash, const char *target, dlc_str *out);
/* DLC_USAGE: the file is there and none of ours. */
DLC_NODISCARD dlc_status dlc_tuned_check(const char *file, dlc_arena *arena, dlc_diag *diag);
/*
 * Puts an entry, a head, a kernel and its schedule, in place of an older one with the same head. The file is whole at any
 * time.
 */
DLC_NODISCARD dlc_status dlc_tuned_write(const char *file, const char *entry, dlc_arena *arena, dlc_diag *diag);

#endif
