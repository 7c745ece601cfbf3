/* What cache.c and cache_look.c share: keys of a folder of executables, and what a path led to. Private to this folder. */
#ifndef DLC_COMPILER_CACHE_H
#define DLC_COMPILER_CACHE_H

#include <limits.h>

#include "base/str.h"
#include "dlc/dlc.h"

/* Two unlike 64-bit hashes as text. */
typedef struct {
    char text[33];
} dlc_cache_key;

typedef struct {
    const char *path, *folder;
    char real[PATH_MAX];
    dlc_str options, files; /* what changes the code; what the model was read from, a line each */
    dlc_str sides;          /* what was measured of this processor, a line each; before it was read */
    int has_key;            /* 0: a program of the user's takes part, whose doings no key tells */
    char *start;            /* the path of the entry of this boot; NULL: the options have none, or no memory */
    char *entry;            /* the path of KEY.files; NULL: no memory */
    char *file;             /* the caller's, for the path of KEY.so */
    size_t file_bytes;
} dlc_cache_search;

dlc_cache_key dlc_cache_key_of(const void *bytes, size_t size_bytes);
/* A line that tells the file as it is now, or that there is none. */
void dlc_cache_add_file(dlc_str *out, const char *path);
/* False: the path is too long. */
int dlc_cache_fill(dlc_cache_search *s, const dlc_cache_key *key);
/* False, with errno: there is no such model. Ends with dlc_cache_end in any case. */
int dlc_cache_begin(dlc_cache_search *s, const dlc_options *options);
/* s->file is the executable of the model as it is now. Else has_key is set. */
int dlc_cache_is_known(dlc_cache_search *s, const dlc_options *options);
/* s->files led to s->file: for the next start. Lost when it cannot be written: that one hashes again. */
void dlc_cache_note(const dlc_cache_search *s, const dlc_cache_key *key);
void dlc_cache_end(dlc_cache_search *s);

#endif
