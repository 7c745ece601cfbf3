/*
 * Diagnostics of one compilation: messages in order, and the first failure's status. Whoever finds a problem adds it where
 * the fact is known; callers add nothing but their place. Wording: place, what was found with numbers, what is possible.
 */
#ifndef DLC_BASE_DIAG_H
#define DLC_BASE_DIAG_H

#include "base/arena.h"
#include "dlc/status.h"

typedef struct {
    dlc_status status; /* DLC_OK: a note or warning */
    const char *place; /* "model.onnx: node 'conv1' (Conv, opset 13)" or "" */
    const char *text;
    const char *detail; /* further lines, or NULL */
} dlc_message;

typedef struct dlc_diag {
    dlc_arena *arena;
    dlc_message *messages;
    uint32_t nmessages, capacity;
    dlc_status status; /* of the first failure */
} dlc_diag;

void dlc_diag_init(dlc_diag *diag, dlc_arena *arena);
/* Adds a message and returns `status`, so that `return dlc_diag_fail(…)` reads well. place may be NULL. */
dlc_status dlc_diag_fail(dlc_diag *diag, dlc_status status, const char *place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
dlc_status dlc_diag_vfail(dlc_diag *diag, dlc_status status, const char *place, const char *format, va_list args)
    __attribute__((format(printf, 4, 0), nonnull(4)));
/* Further lines under the newest message. */
void dlc_diag_detail(dlc_diag *diag, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
