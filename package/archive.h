/* Static libraries of one member. */
#ifndef DLC_PACKAGE_ARCHIVE_H
#define DLC_PACKAGE_ARCHIVE_H

#include "base/file.h"

/* Writes an archive (System V, GNU) with an index of `names` up to its member, whose size_bytes (an
 * even number) bytes follow; no times, users or modes, so equal input gives equal bytes. */
DLC_NODISCARD dlc_status dlc_archive_begin(dlc_output *output, const char *member,
                                           uint64_t size_bytes, const char *const *names,
                                           uint32_t nnames, dlc_diag *diag);

#endif
