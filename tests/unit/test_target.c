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
        ck_assert_uint_eq(target->scratch_bytes, target->kind == DLC_TARGET_CUDA
                                                     ? target->l1_bytes
                                                     : target->l2_bytes / 2);
        ck_assert_ptr_eq(target, dlc_target_find(names[n]));
        const dlc_machine *machine = target->machine;
        ck_assert(machine->cycles_per_us > 0 && machine->near_bytes_per_us > 0 &&
                  machine->far_bytes_per_us > 0 && machine->workers >= 1 &&
                  machine->block_workers >= 1 && machine->step_us > 0);
    }
    ck_assert_int_gt(n, 4);
    ck_assert_ptr_null(dlc_target_find("x86-64"));
    ck_assert_ptr_null(dlc_target_find(""));
}
END_TEST

START_TEST(native_is_a_row_with_its_own_caches_and_facts)
{
    const dlc_target *native = dlc_target_find("native");
    const char *const *names = dlc_target_names();
    int same = 0;
    for (int n = 0; names[n]; n++) {
        const dlc_target *target = dlc_target_find(names[n]);
        same += target != native && strcmp(target->triple, native->triple) == 0 &&
                strcmp(target->cpu, native->cpu) == 0 &&
                target->vector_bytes == native->vector_bytes &&
                (target->facts & ~native->facts) == 0;
    }
    ck_assert_int_eq(same, 1);
}
END_TEST

/* Figures of known processors are of a target's row, and native has those of its own kind. */
START_TEST(known_hosts_are_of_a_row)
{
    const dlc_target *native = dlc_target_find("native");
    double cycles_per_us = dlc_target_find(native->cpu) ? dlc_target_find(native->cpu)->machine->cycles_per_us : native->machine->cycles_per_us;
#if defined(__x86_64__)
#define DLC_HOST(vendor, family, models, row, cycles, l1, l2, l3, memory, latency, loads, spread, narrow, tile, burst, part, rows, again, panel, \
                 step, ops, streams, ...)                                                                    \
    ck_assert_ptr_nonnull(dlc_target_find(row));                                                   \
    ck_assert((cycles) > 0 && (l1) >= (l2) && (l2) >= (l3) && (l3) >= (memory) && (memory) > 0);   \
    ck_assert((latency) > 0 && (loads) > 0 && (spread) >= 0 && (narrow) >= 0 && (tile) >= 0);                \
    ck_assert((burst) >= 0 && (part) > 0 && (rows) >= 0);                                          \
    ck_assert((again) >= 0 && (panel) >= 0 && (step) >= 0 && (ops) >= 0);                          \
    ck_assert((streams) == 0 || (streams) == 1);                                                   \
    for (int i = 0; i < DLC_NFACTS; i++)                                                           \
        ck_assert(((const double[DLC_NFACTS]){__VA_ARGS__})[i] >= 0);                              \
    ck_assert(!dlc_host_is("NobodysPower", family, models) && !dlc_host_is(vendor, family, DLC_MODELS(0xff))); \
    if (dlc_host_is(vendor, family, models) && !strcmp(row, native->cpu))                          \
        cycles_per_us = cycles;
#include "ir/schedule/hosts.def"
#undef DLC_HOST
#endif
    ck_assert(native->machine->cycles_per_us == cycles_per_us);
}
END_TEST

START_TEST(a_machine_makes_a_target_of_its_own)
{
    const dlc_target *base = dlc_target_find("x86-64-v4+vnni");
    dlc_machine machine = *base->machine;
    machine.far_bytes_per_us = 1;
    const dlc_target *other = dlc_target_on(base, &machine);
    ck_assert_ptr_ne(other, base);
    ck_assert_str_eq(other->name, base->name);
    ck_assert_uint_eq(other->facts, base->facts);
    ck_assert(other->machine->far_bytes_per_us == 1);
    ck_assert_ptr_eq(other, dlc_target_on(base, &machine));
    ck_assert_ptr_eq(base, dlc_target_find("x86-64-v4+vnni"));
}
END_TEST

START_TEST(beside_others_a_target_packs_as_they_do)
{
    const dlc_target *base = dlc_target_find("x86-64-v3"), *beside = dlc_target_beside(base, 64);
    ck_assert_uint_eq(base->panel_bytes, 0);
    ck_assert_uint_eq(beside->panel_bytes, 64);
    ck_assert_str_eq(beside->name, base->name);
    ck_assert_uint_eq(beside->vector_bytes, base->vector_bytes);
    ck_assert_ptr_eq(beside, dlc_target_beside(base, 64));
    ck_assert_ptr_ne(beside, dlc_target_beside(base, 32));
    ck_assert_uint_eq(dlc_target_on(beside, base->machine)->panel_bytes, 64);
}
END_TEST

static const struct {
    const char *name;
    uint32_t facts;
} rows[] = {
    {"x86-64-v2", DLC_HAS_PMADDWD},
    {"x86-64-v4", DLC_HAS_FMA | DLC_HAS_PMADDWD},
    {"x86-64-v4+vnni", DLC_HAS_FMA | DLC_HAS_PMADDWD | DLC_HAS_VNNI},
    {"x86-64-v4+bf16+amx_int8", DLC_HAS_FMA | DLC_HAS_PMADDWD | DLC_HAS_BF16 | DLC_HAS_AMX_INT8},
    {"x86-64-v3+avx_vnni", DLC_HAS_FMA | DLC_HAS_PMADDWD | DLC_HAS_AVX_VNNI},
    {"aarch64+dotprod+i8mm", DLC_HAS_FMA | DLC_HAS_DOTPROD | DLC_HAS_I8MM},
    {"sm_75", DLC_HAS_FMA | DLC_HAS_SM_75},
    {"sm_89", DLC_HAS_FMA | DLC_HAS_SM_75 | DLC_HAS_SM_80 | DLC_HAS_SM_89},
};

START_TEST(facts_are_those_of_the_row_and_of_the_name)
{
    const dlc_target *target = dlc_target_find(rows[_i].name);
    ck_assert_ptr_nonnull(target);
    ck_assert_str_eq(target->name, rows[_i].name);
    ck_assert_uint_eq(target->facts, rows[_i].facts);
    ck_assert_ptr_eq(target, dlc_target_find(rows[_i].name));
}
END_TEST

static const char *const refused[] = {"x86-64-v4+",    "x86-64-v4+sse9",  "x86-64-v4+dotprod",
                                      "x86-64-v4+fma", "aarch64+vnni",    "sm_80+sm_90",
                                      "+vnni",         "x86-64-v4+vnni+", "x86-64-v4 +vnni"};

START_TEST(facts_of_other_targets_are_refused)
{
    ck_assert_ptr_null(dlc_target_find(refused[_i]));
}
END_TEST

START_TEST(each_fact_beyond_a_row_needs_features_of_the_processor)
{
    for (uint32_t i = 0; i < DLC_NFACTS; i++)
        ck_assert_int_eq(dlc_target_features(UINT32_C(1) << i) != 0,
                         *dlc_target_facts[i].arch != 0);
    uint64_t amx = dlc_target_features(DLC_HAS_AMX_INT8 | DLC_HAS_AMX_BF16);
    ck_assert_uint_eq(amx, UINT64_C(7) << 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("target");
    TCase *tests = tcase_create("target");
    tcase_add_test(tests, every_row_is_found);
    tcase_add_test(tests, native_is_a_row_with_its_own_caches_and_facts);
    tcase_add_test(tests, known_hosts_are_of_a_row);
    tcase_add_test(tests, a_machine_makes_a_target_of_its_own);
    tcase_add_test(tests, beside_others_a_target_packs_as_they_do);
    tcase_add_loop_test(tests, facts_are_those_of_the_row_and_of_the_name, 0,
                        sizeof rows / sizeof *rows);
    tcase_add_loop_test(tests, facts_of_other_targets_are_refused, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(tests, each_fact_beyond_a_row_needs_features_of_the_processor);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
