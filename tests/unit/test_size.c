/* The size program computes what dlc_expr_eval says, in any phase order; what passes 64 bits is
 * marked. */
#include "package/size.h"

#include <check.h>
#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/internal.h"
#include "tests/unit/random.h"
#include "tests/unit/small_pool.h"
#include "tests/unit/suite.h"

enum { NSYMBOLS = 3, NPHASES = 2 };

static const dlc_expr_op ops[] = {DLC_EXPR_ADD,      DLC_EXPR_SUB, DLC_EXPR_MUL, DLC_EXPR_MIN,
                                  DLC_EXPR_MAX,      DLC_EXPR_DIV, DLC_EXPR_REM, DLC_EXPR_MOD,
                                  DLC_EXPR_FLOORDIV, DLC_EXPR_SHR, DLC_EXPR_SHL, DLC_EXPR_AND,
                                  DLC_EXPR_OR,       DLC_EXPR_XOR};
static const dlc_expr_op compares[] = {DLC_EXPR_LT, DLC_EXPR_LE, DLC_EXPR_EQ, DLC_EXPR_NE};

/* A random i64 expression over symbols, with small types and floats in between. */
static dlc_expr random_expr(void)
{
    dlc_expr made[24];
    for (int i = 0; i < 24; i++) {
        dlc_expr a = i ? made[draw((uint32_t)i)] : 0, b = i ? made[draw((uint32_t)i)] : 0;
        uint32_t kind = i < 6 ? draw(2) : 2 + draw(8);
        static const int64_t values[] = {0, 1, 2, -1, 7, -13, 1000, INT64_MAX, INT64_MIN, 64};
        switch (kind) {
        case 0:
            made[i] = dlc_expr_i64(p, values[draw(10)]);
            break;
        case 1:
            made[i] = dlc_expr_sym(p, draw(NSYMBOLS));
            break;
        case 2:
            made[i] = dlc_select(p, dlc_expr2(p, compares[draw(4)], a, b), b, a);
            break;
        case 3:
            made[i] = dlc_expr_cast(p, DLC_I64, dlc_expr_cast(p, (dlc_dtype)(DLC_I8 + draw(7)), a));
            break;
        case 4: {
            dlc_expr half =
                dlc_mul(p, dlc_expr_cast(p, DLC_F32, a), dlc_expr_const(p, DLC_F32, 0.37));
            static const dlc_expr_op roundings[] = {DLC_EXPR_FLOOR, DLC_EXPR_CEIL, DLC_EXPR_RINT,
                                                    DLC_EXPR_TRUNC};
            made[i] = dlc_expr_cast(p, DLC_I64, dlc_expr1(p, roundings[draw(4)], half));
            break;
        }
        case 5: { /* in an integer type, the unsigned ones too */
            dlc_dtype dtype = (dlc_dtype)(DLC_I8 + draw(8));
            dlc_expr x = dlc_expr_cast(p, dtype, a), y = dlc_expr_cast(p, dtype, b);
            const dlc_expr_op *op =
                draw(4) ? &ops[draw(sizeof ops / sizeof ops[0])] : &compares[draw(4)];
            made[i] = dlc_expr_cast(p, DLC_I64, dlc_expr2(p, *op, x, y));
            break;
        }
        case 6: { /* to an integer type by way of a float or of u64, saturating or not */
            static const dlc_expr_op casts[] = {DLC_EXPR_CAST, DLC_EXPR_CAST_SAT};
            dlc_dtype by = draw(3) ? draw(2) ? DLC_F64 : DLC_F32 : DLC_U64;
            dlc_dtype to = (dlc_dtype)(DLC_I8 + draw(8));
            dlc_expr x = dlc_expr_cast(p, by, draw(2) ? dlc_expr_cast(p, DLC_U64, a) : a);
            dlc_expr y = dlc_expr_make(p, casts[draw(2)], to, &x, 1);
            made[i] = dlc_expr_cast(p, DLC_I64, y);
            break;
        }
        default:
            made[i] = dlc_expr2(p, ops[draw(sizeof ops / sizeof ops[0])], a, b);
            break;
        }
    }
    return made[23];
}

/* What a plan has of the size program, and nothing else. */
typedef struct {
    dlc_plan plan;
    dlc_size_inst insts[4096];
} tiny_plan;

static void lay_out(tiny_plan *tiny, const dlc_size_program *program)
{
    ck_assert_uint_le(program->insts.n, 4096);
    tiny->plan.insts = (dlc_plan_rows){offsetof(tiny_plan, insts), program->insts.n};
    memcpy(tiny->insts, program->insts.data, program->insts.n * sizeof *tiny->insts);
}

START_TEST(random_expressions_agree)
{
    static const uint32_t phases[NSYMBOLS] = {0, 0, 1};
    static const int64_t values[][NSYMBOLS] = {
        {1, 2, 3}, {0, 0, 0}, {-5, 1000, 77}, {INT64_MAX, -1, INT64_MIN}, {123456789, 64, 9}};
    tiny_plan *tiny = malloc(sizeof *tiny);
    for (int round = 0; round < 400; round++) {
        dlc_size_program program;
        dlc_expr expr = random_expr();
        uint32_t counts[NPHASES];
        dlc_size_init(&program, p, phases, arena);
        uint32_t cell = dlc_size_module(&program, expr);
        ck_assert_msg(!program.failure, "%s", program.failure);
        cell = dlc_size_finish(&program, NPHASES, counts)[cell];
        lay_out(tiny, &program);
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            int64_t cells[4096];
            uint8_t lost[4096];
            fesetround(round % 2 ? FE_UPWARD : FE_TONEAREST); /* which must not matter */
            dlcrt_size_run(&tiny->plan, (dlc_plan_rows){0, counts[0]}, values[v], cells, lost);
            dlcrt_size_run(&tiny->plan, (dlc_plan_rows){counts[0], counts[1]}, values[v], cells,
                           lost);
            fesetround(FE_TONEAREST);
            ck_assert_int_eq(cells[cell], dlc_expr_eval(p, expr, values[v]));
        }
    }
    free(tiny);
}
END_TEST

static const struct {
    dlc_size_op op;
    int64_t a, b;
    int is_lost;
} overflows[] = {
    {DLC_SIZE_MUL, INT64_C(1) << 32, INT64_C(1) << 31, 1},
    {DLC_SIZE_MUL, INT64_C(1) << 31, INT64_C(1) << 31, 0},
    {DLC_SIZE_ADD, INT64_MAX, 1, 1},
    {DLC_SIZE_ADD, INT64_MAX, 0, 0},
    {DLC_SIZE_SUB, INT64_MIN, 1, 1},
    {DLC_SIZE_MAX, INT64_MAX, 1, 0},
    {DLC_SIZE_SHL, INT64_C(1) << 62, 1, 1},
    {DLC_SIZE_SHL, INT64_C(1) << 61, 1, 0},
    {DLC_SIZE_SHL, 1, 64, 1},
    {DLC_SIZE_SHL, 0, 64, 0},
};

START_TEST(sizes_past_64_bits_are_marked)
{
    static const uint32_t phases[2] = {0, 0};
    dlc_size_program program;
    tiny_plan *tiny = malloc(sizeof *tiny);
    uint32_t count;
    dlc_size_init(&program, p, phases, arena);
    uint32_t a = dlc_size_module(&program, dlc_expr_sym(p, 0)),
             b = dlc_size_module(&program, dlc_expr_sym(p, 1));
    uint32_t cell = dlc_size_op2(&program, overflows[_i].op, a, b);
    uint32_t user = dlc_size_op2(&program, DLC_SIZE_FLOORDIV, cell, dlc_size_const(&program, 1000));
    const uint32_t *number = dlc_size_finish(&program, 1, &count);
    lay_out(tiny, &program);
    int64_t cells[64], symbols[] = {overflows[_i].a, overflows[_i].b};
    uint8_t lost[64];
    dlcrt_size_run(&tiny->plan, (dlc_plan_rows){0, count}, symbols, cells, lost);
    ck_assert_int_eq(lost[number[cell]], overflows[_i].is_lost);
    ck_assert_int_eq(lost[number[user]], overflows[_i].is_lost); /* whoever depends on it, too */
    free(tiny);
}
END_TEST

START_TEST(equal_sizes_share_a_cell)
{
    static const uint32_t phases[2] = {0, UINT32_MAX};
    dlc_size_program program;
    dlc_size_init(&program, p, phases, arena);
    uint32_t n = dlc_size_module(&program, dlc_expr_sym(p, 0)), two = dlc_size_const(&program, 2);
    ck_assert_uint_eq(dlc_size_op2(&program, DLC_SIZE_MUL, n, two),
                      dlc_size_op2(&program, DLC_SIZE_MUL, two, n));
    ck_assert_uint_eq(dlc_size_op2(&program, DLC_SIZE_MUL, n, dlc_size_const(&program, 1)), n);
    ck_assert_uint_eq(dlc_size_op2(&program, DLC_SIZE_MUL, two, two), dlc_size_const(&program, 4));
    ck_assert_ptr_null(program.failure);
    dlc_size_module(&program, dlc_expr_sym(p, 1));
    ck_assert_str_eq(program.failure, "a size depends on a symbol that no step binds");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("size");
    TCase *tests = tcase_create("size");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, random_expressions_agree);
    tcase_add_loop_test(tests, sizes_past_64_bits_are_marked, 0,
                        sizeof overflows / sizeof overflows[0]);
    tcase_add_test(tests, equal_sizes_share_a_cell);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
