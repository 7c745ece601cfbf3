/*
 * What a compilation printed, read back: the text of a module prints again as it is, and a model's own schedules, given as text,
 * make the same module and the same code, byte by byte.
 */
#ifndef DLC_TESTS_REPLAY_H
#define DLC_TESTS_REPLAY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "dlc/dlc.h"
#include "ir/module/module.h"

enum { REPLAY_REFUSED = 1, REPLAY_DIFFERS, REPLAY_RIGHT };

/* What one compilation gave: malloc'd, and the code mapped. */
typedef struct {
    char *schedules, *module;
    void *code;
    size_t code_bytes;
} replay_made;

static inline void replay_free(replay_made *made)
{
    free(made->schedules);
    free(made->module);
    if (made->code)
        munmap(made->code, made->code_bytes);
}

static inline void replay_message(dlc_model *model, char *message, size_t size_bytes)
{
    dlc_model_note note;
    for (uint32_t i = 0; dlc_model_message(model, i, &note); i++)
        if (note.status != DLC_OK)
            snprintf(message, size_bytes, "%s: %s", note.place, note.text);
}

/* A view, for weights make it large; NULL of nothing. */
static inline void *replay_map_fd(int fd, size_t *size_bytes)
{
    *size_bytes = (size_t)lseek(fd, 0, SEEK_END);
    void *bytes = *size_bytes ? mmap(NULL, *size_bytes, PROT_READ, MAP_SHARED, fd, 0) : NULL;
    if (bytes == MAP_FAILED)
        abort();
    return bytes;
}

/* kind: of code; what is not made of the model is NULL. */
static inline dlc_status replay_compile(const char *path, dlc_options *options, const char *kind, replay_made *made, char *message,
                                        size_t size_bytes)
{
    const char *text;
    dlc_model *model;
    int fd = memfd_create("code", MFD_CLOEXEC);
    *made = (replay_made){0};
    dlc_status status = dlc_model_open(path, options, &model);
    if (status == DLC_OK)
        status = dlc_model_text(model, DLC_TEXT_GRAPH, NULL, &text);
    if (status == DLC_OK)
        made->module = strdup(text);
    if (status == DLC_OK)
        status = dlc_model_text(model, DLC_TEXT_SCHEDULES, NULL, &text);
    if (status == DLC_OK)
        made->schedules = strdup(text);
    if (status == DLC_OK)
        status = dlc_model_write_fd(model, kind, fd, "replayed");
    if (status == DLC_OK)
        made->code = replay_map_fd(fd, &made->code_bytes);
    replay_message(model, message, size_bytes);
    dlc_model_close(model);
    close(fd);
    return status;
}

/* print(parse(text)) = text. */
static inline int replay_module_reads(const char *text, char *message, size_t size_bytes)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_module *module;
    dlc_str again = {0};
    dlc_diag_init(&diag, arena);
    int same = dlc_module_parse(text, "module", arena, &diag, &module) == DLC_OK;
    if (!same)
        snprintf(message, size_bytes, "the module is not read: %s", diag.messages[0].text);
    if (same) {
        dlc_module_print(module, &again);
        size_t at = 0;
        while (text[at] && text[at] == dlc_str_text(&again)[at])
            at++;
        same = !strcmp(text, dlc_str_text(&again));
        if (!same)
            snprintf(message, size_bytes, "the module prints another way where '%.40s' was '%.40s'", dlc_str_text(&again) + at, text + at);
    }
    dlc_str_deinit(&again);
    dlc_arena_destroy(arena);
    return same;
}

/* Code that is to be compared is made, not found (codegen/cache.c). */
static inline dlc_status replay_compile_anew(const char *path, dlc_options *options, const char *kind, replay_made *made, char *message,
                                             size_t size_bytes)
{
    const char *set = getenv("DLC_KERNEL_CACHE");
    char *folder = set ? strdup(set) : NULL;
    unsetenv("DLC_KERNEL_CACHE");
    dlc_status status = replay_compile(path, options, kind, made, message, size_bytes);
    if (folder)
        setenv("DLC_KERNEL_CACHE", folder, 1);
    free(folder);
    return status;
}

/* A model or module for one target; a message unless it is right. */
static inline int replay_model(const char *path, const char *target, char *message, size_t size_bytes)
{
    char file[] = "/proc/self/fd/0000000000";
    const char *kind = strncmp(target, "sm_", 3) ? "so" : "cu";
    dlc_options options = {.size_bytes = sizeof options, .target = target, .jobs = 1, .is_temporary = 1};
    replay_made first, again = {0};
    message[0] = '\0';
    if (replay_compile(path, &options, kind, &first, message, size_bytes) != DLC_OK) {
        replay_free(&first);
        return REPLAY_REFUSED;
    }
    int fd = memfd_create("schedules", MFD_CLOEXEC), is_right = replay_module_reads(first.module, message, size_bytes);
    (void)!write(fd, first.schedules, strlen(first.schedules));
    snprintf(file, sizeof file, "/proc/self/fd/%d", fd);
    options.schedules = file;
    if (is_right && replay_compile_anew(path, &options, kind, &again, message, size_bytes) != DLC_OK)
        is_right = 0;
    else if (is_right && (strcmp(first.module, again.module) || strcmp(first.schedules, again.schedules)))
        is_right = (snprintf(message, size_bytes, "its own schedules make another module"), 0);
    else if (is_right && (first.code_bytes != again.code_bytes || (first.code_bytes && memcmp(first.code, again.code, first.code_bytes))))
        is_right = (snprintf(message, size_bytes, "its own schedules make other code"), 0);
    close(fd);
    replay_free(&first);
    replay_free(&again);
    return is_right ? REPLAY_RIGHT : REPLAY_DIFFERS;
}

#endif
