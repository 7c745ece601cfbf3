/* The end of every unit test: runs the suite, prints what failed, and gives main's result. */
#ifndef DLC_TESTS_SUITE_H
#define DLC_TESTS_SUITE_H

#include <check.h>
#include <stdio.h>

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
