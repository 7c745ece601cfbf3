/* Running a compiled stage; see ir/interp/run.c. */
#ifndef DLC_IR_INTERP_RUN_H
#define DLC_IR_INTERP_RUN_H

#include "ir/interp/program.h"

/* The first fault of a run: DLC_INVALID, an index that depends on data was outside `memory`;
 * DLC_INTERNAL, any other was. */
typedef struct {
    dlc_status status;
    const dlc_interp_memory *memory;
} dlc_interp_fault;

/* fixed[l]: where loop l stands, for the outermost nfixed loops (a step of a recurrence). */
void dlc_interp_run_program(dlc_interp *interp, dlc_interp_program *program, uint32_t stage,
                            const int64_t *fixed, uint32_t nfixed, dlc_interp_fault *fault);

#endif
