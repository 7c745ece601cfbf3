/*
 * A text as --schedule takes it, behind a line that says for which processor. An entry begins with a comment that has the hash of
 * its kernel and the target, so that it is found when a better one comes.
 */
#include "compiler/tuned.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "compiler/machine.h"
#include "compiler/texts.h"
#include "dlc/checksum.h"
#include "dlc/dlc.h"

static const char begins[] = "# schedules measured by dlc compile --tune, format 1, on ";

static void head_of(dlc_str *out)
{
    char name[256];
    dlc_machine_name(name, sizeof name);
    dlc_str_printf(out, "%s%s\n", begins, name);
}

const char *dlc_tuned_file(const char *named, const char *target)
{
    const char *folder = dlc_cache_folder();
    dlc_texts *texts = dlc_thread_texts();
    char name[256];
    if (named)
        return named;
    if (!folder || !texts || (target && strncmp(target, "native", 6) != 0))
        return "";
    dlc_machine_name(name, sizeof name);
    uint64_t hash = dlc_hash(name, strlen(name), 0);
    size_t n = (size_t)snprintf(texts->tuned, sizeof texts->tuned, "%s/tuned-%016" PRIx64, folder, hash);
    return n < sizeof texts->tuned ? texts->tuned : "";
}

typedef enum { FOREIGN, OTHER_MACHINE, OURS } file_kind;

static file_kind kind_of(const char *text)
{
    dlc_str head = {0};
    head_of(&head);
    file_kind kind = !strncmp(text, dlc_str_text(&head), head.n)         ? OURS
                     : !strncmp(text, begins, sizeof begins - 1) ? OTHER_MACHINE
                                                                         : FOREIGN;
    dlc_str_deinit(&head);
    return kind;
}

/* NULL: it cannot be opened. */
static const char *text_of(const char *file, dlc_arena *arena, dlc_diag *diag)
{
    dlc_map map;
    if (!*file || access(file, F_OK) || dlc_map_open(file, &map, diag) != DLC_OK)
        return NULL;
    const char *text = dlc_arena_strndup(arena, (const char *)map.bytes, map.size_bytes);
    dlc_map_close(&map);
    return text;
}

const char *dlc_tuned_read(const char *file, dlc_arena *arena, dlc_diag *diag)
{
    dlc_diag unused;
    dlc_diag_init(&unused, arena);
    const char *text = text_of(file, arena, &unused);
    if (!text)
        return NULL;
    file_kind kind = kind_of(text);
    if (kind == OURS)
        return text;
    (void)dlc_diag_fail(diag, DLC_OK, file,
                        kind == FOREIGN ? "ignored: it is nothing that dlc compile --tune writes"
                                        : "ignored: it was measured on another processor");
    return NULL;
}

/* --- writing --- */

static const char entry_begins[] = "# kernel ";

void dlc_tuned_head(uint64_t kernel_hash, const char *target, dlc_str *out)
{
    dlc_str_printf(out, "%s%016" PRIx64 " for %s: ", entry_begins, kernel_hash, target);
}

static const char *next_entry(const char *at)
{
    for (at += strcspn(at, "\n"); *at; at += 1 + strcspn(at + 1, "\n"))
        if (!strncmp(at + 1, entry_begins, sizeof entry_begins - 1))
            return at + 1;
    return at;
}

dlc_status dlc_tuned_check(const char *file, dlc_arena *arena, dlc_diag *diag)
{
    const char *before = text_of(file, arena, diag);
    file_kind kind = before ? kind_of(before) : OURS;
    return kind == OURS ? DLC_OK
                        : dlc_diag_fail(diag, DLC_USAGE, file, "%s, and is kept; name another file",
                                        kind == FOREIGN ? "is nothing that dlc compile --tune writes"
                                                        : "was measured on another processor");
}

dlc_status dlc_tuned_write(const char *file, const char *entry, dlc_arena *arena, dlc_diag *diag)
{
    dlc_str text = {0};
    const char *before = text_of(file, arena, diag);
    size_t key = strcspn(entry, ":");
    DLC_TRY(dlc_tuned_check(file, arena, diag));
    if (!before)
        dlc_make_folders(file);
    head_of(&text);
    for (const char *at = before ? next_entry(before) : ""; *at; at = next_entry(at))
        if (strncmp(at, entry, key) != 0)
            dlc_str_addn(&text, at, (size_t)(next_entry(at) - at));
    dlc_str_add(&text, entry);
    dlc_status status = dlc_output_whole(file, text.data, text.n, diag);
    dlc_str_deinit(&text);
    return status;
}
