/*
 * AMX in software, for tests on machines without it: linked into a program, or put before one by LD_PRELOAD, it answers the signal that an
 * unknown instruction raises, executes LDTILECFG, STTILECFG, TILERELEASE, TILEZERO, TILELOADD, TILELOADDT1, TILESTORED, TDPBF16PS
 * and TDPB[SU][SU]D on tiles of the thread, with the checks and to the bits of Intel's definition, and goes on behind them. What that
 * refuses ends the program with a sentence. Where DLC_CPU is not set it says that these are there. On a processor that has AMX, where the
 * system allows the process to use it, nothing is done here.
 */
#ifndef DLC_TESTS_AMX_EMULATE_H
#define DLC_TESTS_AMX_EMULATE_H

#include <stdint.h>

/* Products of tiles, and changes of their shape, that were executed here by all threads so far. */
extern _Atomic uint64_t dlc_amx_products, dlc_amx_shapes;

/* What is refused: called with a sentence in place of ending the program, when it is set; the instruction then does nothing. */
extern void (*dlc_amx_refused)(const char *sentence);

#endif
