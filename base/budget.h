/*
 * The memory and the time that one piece of work may take, and where in it we are, for the message when that is too much. A
 * budget is its owner's; the thread that works uses it. Arenas count into the budget in use when they were created. What it
 * does not allow ends through the out-of-memory handler of base/arena.h.
 */
#ifndef DLC_BASE_BUDGET_H
#define DLC_BASE_BUDGET_H

#include "base/arena.h"

typedef struct dlc_file_span dlc_file_span; /* memory that is a file's, which is read again when the memory was let go */

typedef struct dlc_budget {
    size_t most_bytes; /* 0: no limit */
    size_t ceiling_bytes; /* 0: most_bytes is what somebody asked for; else grants raise it so far */
    size_t bytes;      /* of its arenas */
    dlc_arena *newest; /* of its arenas that are still there */
    uint64_t narenas;  /* made so far */
    dlc_file_span *spans;
    size_t read_bytes; /* of constants since spans were let go */
    double deadline;   /* on dlc_budget_clock; 0: none */
    const char *step;  /* "import", a pass; NULL: not known */
    const char *node;  /* NULL: none, or not known */
} dlc_budget;

/* NULL: none. Returns the one that was in use. */
dlc_budget *dlc_budget_use(dlc_budget *budget);
dlc_budget *dlc_budget_in_use(void);
double dlc_budget_clock(void); /* seconds, monotonic */
/* A child: it may have so much more data than it has now, or 2 GiB, as LLVM by itself may need. */
void dlc_budget_limit_process(uint64_t most_bytes);
/* What is being worked at; texts are borrowed until the next call. Ends the work when its time is over. */
void dlc_budget_at(const char *step, const char *node);
/* The work needs so much more than its file let expect, and that is all right: weights written as one number and a shape. */
void dlc_budget_grant(size_t size_bytes);
/* Work that was left by a jump leaves its arenas: destroys those in the budget that were made after the first `narenas`. */
void dlc_budget_drop(dlc_budget *budget, uint64_t narenas);
/*
 * Weights lie in memory only while they are read. A span is a read-only map of a file, noted in the budget in use until it is
 * dropped, before the map is closed; NULL when there is no budget or no memory for it, which drop takes, too.
 */
dlc_file_span *dlc_budget_span(const void *bytes, size_t size_bytes);
void dlc_budget_drop_span(dlc_file_span *span);
/* So many bytes of constants were read or written just now: after many, the memory of all spans is let go. */
void dlc_budget_read(size_t size_bytes);

/* For arenas. */
void dlc_budget_take(dlc_budget *budget, size_t size_bytes);
void dlc_budget_give(dlc_budget *budget, size_t size_bytes);

/* The default for a file of that many bytes: 512 MiB + 64 times the file, at most three quarters of the machine's memory. */
uint64_t dlc_memory_budget(uint64_t file_bytes);
uint64_t dlc_memory_most(void); /* these three quarters */

#endif
