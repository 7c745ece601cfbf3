/* Memory that need not be there while nobody reads it. */
#ifndef DLC_BASE_KEEP_H
#define DLC_BASE_KEEP_H

#include <stddef.h>

/* Puts whole pages of private memory down in a file without a name, in TMPDIR, and maps that, read-only, in their place; false,
 * and nothing happened: there is no room for it. */
int dlc_file_keep(void *bytes, size_t size_bytes);

#endif
