/* Files: read-only maps, and output that is whole or absent. */
#ifndef DLC_BASE_FILE_H
#define DLC_BASE_FILE_H

#include "base/diag.h"

typedef struct {
    const uint8_t *bytes; /* NULL when empty */
    size_t size_bytes;
    struct dlc_file_span *span; /* in the budget in use when it was opened, which outlives it; or NULL */
} dlc_map;

/* Maps a regular file read-only. DLC_IO names the path and the system's reason. */
DLC_NODISCARD dlc_status dlc_map_open(const char *path, dlc_map *map, dlc_diag *diag);
DLC_NODISCARD dlc_status dlc_map_fd(int fd, const char *path_for_messages, dlc_map *map, dlc_diag *diag);
void dlc_map_close(dlc_map *map);

/*
 * Output in two steps: a file without a name beside `path`, then fsync, rename, fsync of the folder. An existing file survives
 * every failure whole. dlc_output_abandon after any failure, or the end of the process, leaves nothing behind.
 */
typedef struct {
    int fd;           /* the file, open for reading and writing */
    char *temporary;  /* its path, where it needs one before it is whole; else NULL */
    char *path;
    int is_named;     /* it takes the place of `path`; 0: the caller's */
    int is_temporary; /* set after open: not synced to disk; for what is read once and removed */
    size_t block_bytes; /* set after open: the file grows by whole blocks of so many, which the system may then keep as one page; 0: by each write */
    char *held;         /* what is not written yet */
    size_t nheld;
    uint64_t written_bytes; /* in the file */
} dlc_output;
/* The caller's open file as output: nothing is renamed or synced, and it stays open. */
DLC_NODISCARD dlc_status dlc_output_take(dlc_output *output, int fd, dlc_diag *diag);
DLC_NODISCARD dlc_status dlc_output_open(dlc_output *output, const char *path, dlc_diag *diag);
DLC_NODISCARD dlc_status dlc_output_write(dlc_output *output, const void *bytes, size_t size_bytes, dlc_diag *diag);
/* Writes what is held: before the file is read, or written elsewhere than at its end. */
DLC_NODISCARD dlc_status dlc_output_flush(dlc_output *output, dlc_diag *diag);
DLC_NODISCARD dlc_status dlc_output_commit(dlc_output *output, unsigned mode, dlc_diag *diag);
void dlc_output_abandon(dlc_output *output);
/* All of it in one call: the file is these bytes, or what it was. */
/* Whether a file can be made there; none is. */
DLC_NODISCARD dlc_status dlc_output_try(const char *path, dlc_diag *diag);
DLC_NODISCARD dlc_status dlc_output_whole(const char *path, const void *bytes, size_t size_bytes, dlc_diag *diag);
/* Whether both paths lead to one regular file, by whatever links and spellings. */
int dlc_is_one_file(const char *a, const char *b);
/* The folders that `path` stands in, as far as they can be made: who opens it says what is missing. */
void dlc_make_folders(const char *path);

#endif
