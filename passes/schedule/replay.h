/* Schedules that are given as text, by kernel: in place of the chooser's (dlc_pass_ctx.schedules). */
#ifndef DLC_PASSES_SCHEDULE_REPLAY_H
#define DLC_PASSES_SCHEDULE_REPLAY_H

#include "passes/pass.h"

typedef struct {
    const char *name;   /* how the text calls the kernel */
    dlc_kernel *kernel; /* NULL: it is told by its hash or by a node */
    const char *identity; /* of `kernel` */
    const char *node;   /* NULL: by `hash` */
    uint64_t hash;
    dlc_lexer at;       /* its present token is the word `schedule` */
    uint32_t ntaken;    /* kernels of the module that have it now */
    uint8_t is_for_target;
} dlc_given_schedule;

typedef struct {
    dlc_arena *arena;
    const dlc_target *target;
    const char *file; /* NULL: there is no text */
    dlc_diag *diag;
    dlc_vec(dlc_given_schedule) rows; /* in the order of the text */
} dlc_replay;

/* Reads a text (NULL: nothing): kernels, each with schedules behind it, or a printed module. replay has arena, target and diag. */
DLC_NODISCARD dlc_status dlc_replay_read(const char *file, const char *text, dlc_replay *replay);
/* The first one for the target that is of the module's kernel k; *schedule NULL: there is none. DLC_INVALID: it is refused. */
DLC_NODISCARD dlc_status dlc_replay_find(dlc_replay *replay, const dlc_module *module, uint32_t k, dlc_schedule **schedule);
/* Notes how many were taken, and which fit no kernel. */
void dlc_replay_report(const dlc_replay *replay, const dlc_module *module);
/* Kernels of the module that have a schedule from it. */
uint32_t dlc_replay_ntaken(const dlc_replay *replay);

#endif
