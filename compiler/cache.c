/*
 * A folder of executables by content. An executable's name is a hash of the bytes of the model and
 * of the files beside it, and of all that changes its code. Reading a large model only to hash it
 * would cost more than opening its executable, so a second kind of entry remembers, for a path and
 * options, the files' sizes, times and numbers and what they led to:
 *
 *   KEY.so                the executable
 *   KEY.files             its first line: KEY of a .so; then a line per file: size mtime ctime inode path
 *   DEVICE-INODE-TARGET.files    the same for options that name no more than a target, as long as this machine runs: first a
 *                         line that tells the boot, among others, and in the end lines of what was measured of the processor
 *
 * The last is what a second start reads first: what the processor is like need not be found out for it. python/dlc/_starts.py
 * reads it, too. Entries appear by renaming, whole or not at all; a missing or unreadable one is made again.
 */
#include "compiler/cache.h"
#include "compiler/driver.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Hashes the model as it was read: its own bytes and those of the files beside it. */
static dlc_status hash_model(dlc_cache_search *s, dlc_model *model, dlc_cache_key *result)
{
    dlc_map map;
    dlc_str text = {0};
    const void *bytes;
    size_t size_bytes;
    DLC_TRY(dlc_map_open(s->real, &map, &model->diag));
    dlc_cache_key k = dlc_cache_key_of(map.bytes ? map.bytes : (const uint8_t *)"", map.size_bytes);
    dlc_map_close(&map);
    dlc_str_printf(&text, "%s\n%s", k.text, dlc_str_text(&s->options));
    const char *path;
    for (uint32_t i = 0;
         model->onnx && (path = dlc_onnx_external(model->onnx, i, &bytes, &size_bytes)); i++) {
        k = dlc_cache_key_of(bytes ? bytes : "", size_bytes);
        dlc_str_printf(&text, "%s\n", k.text);
        char real[PATH_MAX];
        if (realpath(path, real))
            dlc_cache_add_file(&s->files, real);
    }
    *result = dlc_cache_key_of(text.data, text.n);
    dlc_str_deinit(&text);
    return DLC_OK;
}

static dlc_status make(dlc_cache_search *s, const dlc_options *options, dlc_model **model)
{
    dlc_cache_key k;
    dlc_cache_add_file(&s->files, s->real); /* before it is read: a later change is then seen */
    DLC_TRY(dlc_model_open(s->path, options, model));
    DLC_TRY(hash_model(s, *model, &k));
    if (!dlc_cache_fill(s, &k))
        return dlc_diag_fail(&(*model)->diag, DLC_USAGE, s->folder, "its path is too long");
    if (access(s->file, R_OK)) {
        dlc_make_folders(s->file);
        DLC_TRY(dlc_model_write(*model, "so", s->file, "model"));
    }
    dlc_cache_note(s, &k);
    return DLC_OK;
}

/* A model that can hold a message. */
static dlc_status refuse(dlc_model **model, const dlc_options *options, dlc_status status,
                         const char *place, const char *text)
{
    dlc_options empty = {.target = options->target};
    (void)!dlc_model_open_bytes("", 0, place, &empty, model);
    if (!*model)
        return DLC_LIMIT;
    (*model)->diag.nmessages = 0;
    (*model)->options.log = options->log;
    (*model)->options.user = options->user;
    return dlc_model_tell(*model, dlc_diag_fail(&(*model)->diag, status, place, "%s", text));
}

dlc_status dlc_cache_find(const char *path, const dlc_options *options, const char *folder,
                          char *file, size_t file_bytes, dlc_model **model)
{
    dlc_cache_search s = {.path = path, .folder = folder, .file = file, .file_bytes = file_bytes};
    dlc_options own;
    dlc_status status = DLC_OK;
    dlc_options_take(&own, options);
    *model = NULL;
    if (!dlc_cache_begin(&s, &own))
        status = refuse(model, &own, DLC_IO, path, strerror(errno));
    else if (!dlc_cache_is_known(&s, &own)) {
        status = !s.has_key ? refuse(model, &own, DLC_USAGE, path,
                                     "what a strategy or target that is a program makes of it cannot be cached")
                            : make(&s, &own, model);
        status = *model && s.has_key ? dlc_model_tell(*model, status) : status;
    }
    dlc_cache_end(&s);
    return status;
}
