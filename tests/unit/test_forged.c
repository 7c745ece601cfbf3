/*
 * Plans whose words were changed, of models that have every kind of step: each change is refused when the plan is loaded, or it
 * is sized and run without anything being read or written that is not there. Kernels do nothing: their code is believed.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>

#include "tests/fuzz/forge.h"
#include "tests/unit/suite.h"

START_TEST(every_word_of_a_plan_may_be_wrong)
{
    static const uint32_t values[] = {0, 1, 2, 5, 64, 0x7fffffff, 0x80000000, 0xffffffff};
    forge_base base;
    uint32_t nrefused = 0;
    forge_open((uint32_t)_i, &base);
    ck_assert_msg(forge_try(&base, base.plan), "%s", dlcrt_last_error());
    unsigned char *bytes = malloc(base.plan_bytes);
    for (size_t at = 0; at + 4 <= base.plan_bytes; at += 4)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            memcpy(bytes, base.plan, base.plan_bytes);
            memcpy(bytes + at, &values[v], 4);
            if (memcmp(bytes, base.plan, base.plan_bytes) != 0)
                nrefused += !forge_try(&base, bytes);
        }
    ck_assert_uint_gt(nrefused, base.plan_bytes / 4);
    free(bytes);
    forge_close(&base);
}
END_TEST

/* Rows of the table of steps, of every kind that a model has. */
static dlc_plan_step *step_of(const forge_base *base, unsigned char *bytes, uint32_t kind, uint32_t which)
{
    dlc_plan *plan = (dlc_plan *)bytes;
    memcpy(bytes, base->plan, base->plan_bytes);
    dlc_plan_step *step = (dlc_plan_step *)(bytes + plan->steps.first);
    for (uint32_t i = 0; i < plan->steps.count; i++)
        if (step[i].kind == kind && !which--)
            return &step[i];
    return NULL;
}

static const char *name_of(uint32_t kind)
{
    static const char *const names[] = {"launch", "opaque", "bind", "copy", "set", "if", "else", "loop", "end"};
    return names[kind];
}

/* What no step may say, whatever its kind. */
enum { FAR = 0x7ffffff0 };
static const struct {
    const char *what;
    size_t offset, size_bytes;
    uint32_t value;
    uint32_t kinds; /* of which it is wrong; 0: of all */
} wrongs[] = {
#define FIELD(field) offsetof(dlc_plan_step, field), sizeof(((dlc_plan_step *)NULL)->field)
#define KIND(id) (1u << DLC_DO_##id)
    {"a kind that is none", FIELD(kind), 9, 0},
    {"another device", FIELD(device), 77, 0},
    {"a name outside the strings", FIELD(name), FAR, 0},
    {"a target behind the steps", FIELD(what), FAR,
     KIND(LAUNCH) | KIND(OPAQUE) | KIND(IF) | KIND(ELSE) | KIND(LOOP) | KIND(END)},
    {"a target before the steps", FIELD(what), 0, KIND(IF) | KIND(ELSE)},
    {"a phase that is none", FIELD(phase), FAR, 0},
    {"no phase", FIELD(phase), 0, KIND(BIND) | KIND(SET)},
    {"a symbol that is none", FIELD(symbol), FAR, KIND(BIND) | KIND(SET)},
    {"a cell of units that is none", FIELD(units), FAR, 0},
    {"a cell of scratch that is none", FIELD(scratch_bytes), FAR, 0},
    {"a cell of work that is none", FIELD(flops), FAR, 0},
    {"references behind their table", FIELD(refs.first), FAR, 0},
    {"references past their table", FIELD(refs.count), FAR, 0},
    {"operands behind their table", FIELD(operands.first), FAR, 0},
    {"operands past their table", FIELD(operands.count), FAR, 0},
    {"no references", FIELD(refs.count), 0, KIND(OPAQUE) | KIND(BIND) | KIND(COPY)},
    {"no operands", FIELD(operands.count), 0, KIND(OPAQUE) | KIND(BIND)},
    {"one reference", FIELD(refs.count), 1, KIND(COPY) | KIND(SET) | KIND(IF) | KIND(ELSE) | KIND(LOOP) | KIND(END)},
    {"symbols past their table", FIELD(symbols.count), FAR, 0},
    {"attributes past their table", FIELD(attrs.count), FAR, 0},
    {"no grain", FIELD(grain), 0, 0},
};

START_TEST(what_no_step_may_say_is_refused)
{
    forge_base base;
    uint32_t seen = 0;
    for (uint32_t m = 0; m < FORGE_NMODELS; m++) {
        forge_open(m, &base);
        unsigned char *bytes = malloc(base.plan_bytes);
        for (uint32_t kind = 0; kind <= DLC_DO_END; kind++)
            for (uint32_t which = 0; step_of(&base, bytes, kind, which); which++)
                for (size_t w = 0; w < sizeof wrongs / sizeof *wrongs; w++) {
                    dlc_plan_step *step = step_of(&base, bytes, kind, which);
                    if (wrongs[w].kinds && !(wrongs[w].kinds & 1u << kind))
                        continue;
                    size_t size_bytes = wrongs[w].size_bytes;
                    memset((char *)step + wrongs[w].offset, 0, size_bytes);
                    memcpy((char *)step + wrongs[w].offset, &wrongs[w].value, size_bytes < 4 ? size_bytes : 4);
                    ck_assert_msg(!forge_try(&base, bytes), "model %u, %s %u: %s is taken", m, name_of(kind), which,
                                  wrongs[w].what);
                    ck_assert_str_ne(dlcrt_last_error(), "");
                    seen |= 1u << kind;
                }
        free(bytes);
        forge_close(&base);
    }
    ck_assert_uint_eq(seen | KIND(COPY), (1u << (DLC_DO_END + 1)) - 1); /* copies are of devices and of states */
}
END_TEST

/* Where a buffer is: each reference's place, number, offset and size. */
START_TEST(what_no_reference_may_say_is_refused)
{
    static const struct {
        size_t offset;
        uint32_t value;
    } changes[] = {{offsetof(dlc_plan_ref, place), 6},        {offsetof(dlc_plan_ref, place), DLC_REF_HOST},
                   {offsetof(dlc_plan_ref, index), FAR},      {offsetof(dlc_plan_ref, size_bytes), FAR},
                   {offsetof(dlc_plan_ref, skip), FAR}};
    forge_base base;
    for (uint32_t m = 0; m < FORGE_NMODELS; m++) {
        forge_open(m, &base);
        unsigned char *bytes = malloc(base.plan_bytes);
        uint32_t n = ((dlc_plan *)base.plan)->refs.count;
        for (uint32_t r = 0; r < n; r++)
            for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
                memcpy(bytes, base.plan, base.plan_bytes);
                dlc_plan_ref *ref = (dlc_plan_ref *)(bytes + ((dlc_plan *)bytes)->refs.first) + r;
                if (ref->place == DLC_REF_NONE)
                    continue;
                memcpy((char *)ref + changes[k].offset, &changes[k].value, 4);
                ck_assert_msg(!forge_try(&base, bytes), "model %u, reference %u, change %zu is taken", m, r, k);
            }
        free(bytes);
        forge_close(&base);
    }
}
END_TEST

static dlc_status prepared;

static void prepare(const forge_base *base, dlcrt_executable *executable)
{
    dlcrt_context *context = NULL;
    prepared = dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 1}, &context);
    if (prepared == DLC_OK)
        prepared = dlcrt_context_prepare(context, base->inputs, base->ninputs);
    dlcrt_context_destroy(context);
}

/* A caller's buffer is as large as the shape says, whatever size the plan has beside it. */
START_TEST(an_input_is_as_large_as_its_shape)
{
    static const int64_t sizes[] = {0, 3, 1 << 20, INT64_C(1) << 45};
    forge_base base;
    for (uint32_t m = 0; m < FORGE_NMODELS; m++) {
        forge_open(m, &base);
        unsigned char *bytes = malloc(base.plan_bytes);
        ck_assert(forge_with(&base, base.plan, prepare) && prepared == DLC_OK);
        for (uint32_t i = 0; i < base.ninputs; i++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                memcpy(bytes, base.plan, base.plan_bytes);
                dlc_plan *plan = (dlc_plan *)bytes;
                uint32_t cell = ((dlc_plan_tensor *)(bytes + plan->inputs.first))[i].size_bytes;
                dlc_size_inst *inst = (dlc_size_inst *)(bytes + plan->insts.first) + cell;
                *inst = (dlc_size_inst){.op = DLC_SIZE_CONST, .dtype = DLC_I64, .imm = sizes[s]};
                ck_assert(forge_with(&base, bytes, prepare));
                ck_assert_msg(prepared == DLC_INVALID || prepared == DLC_LIMIT, "model %u, input %u, %" PRId64 " bytes: %d", m, i, sizes[s],
                              (int)prepared);
            }
        free(bytes);
        forge_close(&base);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("forged");
    TCase *tests = tcase_create("forged");
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, every_word_of_a_plan_may_be_wrong, 0, FORGE_NMODELS);
    tcase_add_test(tests, what_no_step_may_say_is_refused);
    tcase_add_test(tests, what_no_reference_may_say_is_refused);
    tcase_add_test(tests, an_input_is_as_large_as_its_shape);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
