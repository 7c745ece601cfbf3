/* Results of a test suite, and the committed list of what does not pass. */
#ifndef DLC_CLI_TESTS_LIST_H
#define DLC_CLI_TESTS_LIST_H

#include "base/vec.h"
#include "cli/cli.h"

typedef enum {
    DLC_OUTCOME_PASS,
    DLC_OUTCOME_FAIL,
    DLC_OUTCOME_UNSUPPORTED,
    DLC_OUTCOME_RANDOM, /* types and shapes are right, and the numbers are drawn */
    DLC_OUTCOME_COUNT
} dlc_outcome;
typedef struct {
    const char *folder, *name;
    dlc_outcome outcome;
    const char *why;
    double seconds;
} dlc_result;
typedef dlc_vec(dlc_result) dlc_results;

/*
 * Prints the summary. Without --list: DLC_MISMATCH when a case failed. With it: DLC_MISMATCH when a
 * case does worse than the list says, or passes and still stands there (--update takes it off). the
 * list   a line per case that does not pass, "NAME FAIL", "NAME UNSUPPORTED" or "NAME RANDOM"; # begins a comment
 */
DLC_NODISCARD dlc_status dlc_results_report(dlc_cli *cli, const dlc_results *results,
                                            double seconds);

#endif
