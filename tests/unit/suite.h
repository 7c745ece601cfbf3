/* What every unit test begins and ends with: Check, and a main that runs the suite and prints what failed. */
#ifndef DLC_TESTS_SUITE_H
#define DLC_TESTS_SUITE_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Check writes to a file at every assertion that holds, to name the last one where a test crashes: in loops that was most of what
 * tests did. Each is told the first few times; in a long loop the last that was told is near enough. */
#define _mark_point(file, line)                  \
    __extension__({                              \
        static _Thread_local int ntold;          \
        if (ntold < 8 && ++ntold)                \
            (_mark_point)(file, line);           \
    })

/* How often the part is in the text. */
static inline uint32_t count_of(const char *text, const char *part)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

static inline int suite_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    fflush(stdout);                  /* or every test's process prints it again */
    srunner_run_all(runner, CK_ENV); /* CK_VERBOSITY, CK_FORK, … */
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
