/* Trials as C in a process of their own (tests/ptx/emulated.c), and what it shares with trial.c. */
#ifndef DLC_TESTS_PTX_EMULATED_H
#define DLC_TESTS_PTX_EMULATED_H

#include "tests/ptx/trial.h"

const char *emulated_unavailable(trial_way way, dlc_arena *arena);
const char *emulated_run(const trial *trials, uint32_t n, trial_way way,
                         const trial_mutation *mutation, dlc_arena *arena);

/* NULL: the text does not have what is to be replaced. */
const char *trial_mutate(const char *text, const trial_mutation *mutation, dlc_arena *arena);
const char *trial_compare(const trial *t, uint32_t buffer, const void *got, const uint8_t *written,
                          dlc_arena *arena);

#endif
