/* What both parts of the verifier of schedules say and ask; see verify.c and verify_deal.c. */
#ifndef DLC_IR_SCHEDULE_VERIFIER_H
#define DLC_IR_SCHEDULE_VERIFIER_H

#include "ir/schedule/resolve.h"

typedef struct {
    dlc_schedule *schedule;
    dlc_kernel *kernel;
    const dlc_reads *reads;
    dlc_diag *diag;
} dlc_verifier;

/* The message is a sentence about a stage or a loop, by the names the text has. */
DLC_NODISCARD dlc_status dlc_verifier_fail(const dlc_verifier *v, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A loop as the text has it, without its tile. */
const char *dlc_verifier_loop(const dlc_verifier *v, uint32_t n);

static inline const dlc_schedule_node *dlc_verifier_node(const dlc_verifier *v, uint32_t n)
{
    return &v->schedule->nodes.data[n];
}

#endif
