/*
 * One graph, run by the oracle and as compiled code. How far apart they may be is measured, not guessed: the oracle runs again with
 * every value rounded to its type and moved by a few units of its last place, and what that changes in an output is what rounding
 * may change. Where it changes everything (a comparison that hangs on a last bit) the element is not judged.
 */
#ifndef DLC_TESTS_DIFFER_JUDGE_H
#define DLC_TESTS_DIFFER_JUDGE_H

#include <stddef.h>
#include <stdint.h>

/* One way to compile. */
typedef struct {
    const char *target, *fusion;
    const char *rewrite, *winograd; /* NULL: as by default */
} way;

typedef enum {
    JUDGE_AGREES,
    JUDGE_REFUSED, /* by both, or the compiler says that it is not supported */
    JUDGE_DIFFERS,
    JUDGE_FAILS,   /* one runs and the other does not, or dlc calls it a defect of its own */
    JUDGE_CRASHES  /* only judge_apart says so */
} verdict;
extern const char *const judge_names[];

typedef struct {
    verdict verdict;
    uint32_t way;              /* of those given, the first that is wrong */
    uint64_t nelems, nskipped; /* judged, and not */
    char text[600];
} judgement;

void judge_graph(const char *text, const way *ways, uint32_t nways, judgement *j);
/* The same in a process of its own, which may crash or never end. */
void judge_apart(const char *text, const way *ways, uint32_t nways, judgement *j);
/* The plan of each strategy, exported and read back, gives the same bytes; folder: for the plan. */
void judge_plans(const char *text, const char *folder, judgement *j);
/* The same text with less in it that `w` still gets as wrong as `j` says; malloc. */
char *shrink_text(const char *text, const way *w, const judgement *j);

#endif
