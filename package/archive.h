/* Static libraries of one member. */
#ifndef DLC_PACKAGE_ARCHIVE_H
#define DLC_PACKAGE_ARCHIVE_H

#include "base/file.h"

/* Writes an archive (System V, GNU) with an index of `names`; no times, users or modes, so equal
 * input gives equal bytes. */
DLC_NODISCARD dlc_status dlc_archive_write(dlc_output *output, const char *member,
                                           const void *bytes, size_t size_bytes,
                                           const char *const *names, uint32_t nnames,
                                           dlc_diag *diag);

#endif
