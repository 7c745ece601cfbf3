/* Targets by name: every row is found and makes sense, "native" is a row of the host's kind. */
#include "ir/schedule/target.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

START_TEST(every_row_is_found)
{
    const char *const *names = dlc_target_names();
    int n = 0;
    for (; names[n]; n++) {
        const dlc_target *target = dlc_target_find(names[n]);
        ck_assert_ptr_nonnull(target);
        ck_assert_str_eq(target->name, names[n]);
        ck_assert_uint_ge(target->vector_bytes, 16);
        ck_assert_uint_ge(target->vector_registers, 16);
        ck_assert_uint_ge(target->l2_bytes, target->l1_bytes);
        ck_assert_uint_eq(target->scratch_bytes,
                          target->kind == DLC_TARGET_CUDA ? target->l1_bytes : target->l2_bytes / 2);
        ck_assert_ptr_eq(target, dlc_target_find(names[n]));
    }
    ck_assert_int_gt(n, 4);
    ck_assert_ptr_null(dlc_target_find("x86-64"));
    ck_assert_ptr_null(dlc_target_find(""));
}
END_TEST

START_TEST(native_is_a_row_with_its_own_caches)
{
    const dlc_target *native = dlc_target_find("native");
    const char *const *names = dlc_target_names();
    int same = 0;
    for (int n = 0; names[n]; n++) {
        const dlc_target *target = dlc_target_find(names[n]);
        same += target != native && strcmp(target->triple, native->triple) == 0 &&
                strcmp(target->cpu, native->cpu) == 0 &&
                target->vector_bytes == native->vector_bytes && target->fma == native->fma;
    }
    ck_assert_int_eq(same, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("target");
    TCase *tests = tcase_create("target");
    tcase_add_test(tests, every_row_is_found);
    tcase_add_test(tests, native_is_a_row_with_its_own_caches);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
