/*
 * i64 arithmetic in 32 bits (ir/expr/narrow.c): the same values as before, of data around the limits of both types, by the interpreter;
 * and what must stay.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/interp/interp.h"
#include "tests/unit/suite.h"

enum { N = 24 };

static const float floats[N] = {0,          -0.0F,         0.5F,          -0.5F,     1,       -1,     62,       63,
                                64,         65,            -2.5F,         1e10F,     -1e10F,  9.3e18F, -9.3e18F, 2147483520,
                                2147483648, -2147483648.F, -2147483904.F, INFINITY,  -INFINITY, NAN,  4294967296, 2.5F};
static const int64_t ints[N] = {0,          1,          63,         64,        65,         -1,        -64,       INT32_MAX,
                                INT32_MIN,  2147483648, -2147483649, INT64_MAX, INT64_MIN, 4294967296, 4294967301, 8589934592,
                                -4294967295, 5,         7,          62,        33,         2147483646, -2147483647, 12};

static const struct {
    const char *value;
    int is_changed;
} cases[] = {
    /* comparisons */
    {"i64(i64(x[i]) < 64)", 1},
    {"i64(i64(x[i]) + 1 < 64)", 0}, /* the largest number wraps */
    {"i64(i64(x[i]) + 1 < 64 and 0 <= i64(x[i]) + 1)", 1}, /* and is not within */
    {"i64(i64(x[i]) - 2 < 64 and -7 < i64(x[i]) - 2)", 1},
    {"i64(i64(x[i]) - 2 < 64 and -7 < i64(x[i]))", 1}, /* the second */
    {"i64(i64(x[i]) + 1 < 64 and i64(x[i]) + 1 < 7)", 0},
    {"i64(i64(x[i]) + 3 == 66)", 1},
    {"i64(i64(x[i]) <= -3)", 1},
    {"i64(0 <= i64(x[i]) - 1)", 0},
    {"i64(i64(x[i]) == 63)", 1},
    {"i64(i64(x[i]) < 2147483646)", 1},
    {"i64(i64(x[i]) < 2147483647)", 0}, /* where the narrow one saturates */
    {"i64(-2147483647 <= i64(x[i]))", 1},
    {"i64(-2147483648 < i64(x[i]))", 0},
    {"i64(i64(x[i]) + 2147483640 < 5 and 1 < i64(x[i]) + 2147483640)", 1},
    {"i64(i64(x[i]) - 2147483640 < 5 and -9 < i64(x[i]) - 2147483640)", 1},
    {"i64(i64(x[i]) < i * 3)", 1},
    {"i64(i64(x[i]) < m[i])", 0},
    {"i64(m[i] < 5)", 0},
    {"i64(i * i == 3 * i - 2)", 1},
    {"i64(i * i * 4000000 + i < 900000000)", 1},
    {"i64(i * i * 10000000 + i < 900000000)", 0},
    {"i64(i * i * 5000000 + i * -86000001 < 7)", 0}, /* the sum fits, not what it is made of */
    /* casts */
    {"i64(f32(i * 3 + 1))", 1},
    {"i64(i8(i * 100))", 1},
    {"i64(i8(i))", 0}, /* i8(i32(i)) is that */
    {"i64(f32(i % 7 * 5 - (i - 3) // 4))", 1},
    {"i64(f32(select(m[i] < 0, i, 5 * i + 64)))", 1},
    {"i64(f32(max(0, min(63, i64(x[i])))))", 1},
    {"i64(f32(max(0, min(63, i64(x[i]) + 3))))", 0},
    {"i64(f32(min(63, max(-5, i64(x[i])))))", 1},
    {"i64(f32(min(63, i64(x[i]))))", 0},
    {"i64(f32(m[i]))", 0},
    {"i64(f32(max(0, min(63, m[i]))))", 0},
    /* indices */
    {"t[i64(x[i]) if 0 <= i64(x[i]) and i64(x[i]) < 64]", 1},
    {"t[i64(x[i]) + 1 if 0 <= i64(x[i]) + 1 and i64(x[i]) + 1 < 64]", 1},
    {"t[2 * m[i] + 1 if 0 <= m[i] and m[i] < 32]", 1},
    {"t[m[i] * 2 if 0 <= m[i] * 2 and m[i] * 2 < 64]", 0}, /* of the product, not of what is read */
    {"t[m[i] - 1 if 1 <= m[i] and m[i] <= 64]", 0} /* nothing is gained */,
};

typedef struct {
    const dlc_kernel *kernel;
    dlc_ranges ranges;
    int nchanged;
} rewriting;

static dlc_expr narrowed(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    rewriting *r = ctx;
    if (node->op == DLC_EXPR_LOAD && dlc_dtype_bytes(node->dtype) == 8 && node->nargs == 3 && args[1]) {
        dlc_bounds bounds = {.n = 0};
        dlc_bounds_add(&bounds, to, args[1], &r->ranges);
        dlc_expr index = dlc_expr_narrow(to, args[0], &r->ranges, &bounds, 0);
        r->nchanged += index != 0;
        index = index ? dlc_expr_cast(to, DLC_I64, index) : args[0];
        return dlc_expr_load(to, DLC_I64, node->imm.id, &index, 1, args[1], 0, 0);
    }
    if (node->nargs == 0 || node->op == DLC_EXPR_LOAD)
        return 0;
    dlc_expr whole = dlc_expr_make(to, (dlc_expr_op)node->op, (dlc_dtype)node->dtype, args, node->nargs);
    dlc_expr result = dlc_node_of(to, whole)->nargs ? dlc_expr_narrow_operands(to, whole, &r->ranges, 0) : 0;
    r->nchanged += result != 0;
    return result ? result : whole;
}

static void run(const dlc_kernel *kernel, int64_t *result)
{
    int64_t table[64];
    void *buffers[] = {(void *)floats, (void *)ints, table, result};
    void *given[4];
    uint32_t n = 0;
    dlc_diag diag;
    for (int64_t i = 0; i < 64; i++)
        table[i] = 1000 + i;
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        given[n++] = buffers[strchr("xmty", kernel->buffers.data[b].name[0]) - "xmty"];
    dlc_diag_init(&diag, kernel->arena);
    ck_assert_int_eq(dlc_interp_run(kernel, DLC_STRICT, &(dlc_interp_args){.buffers = given}, &diag), DLC_OK);
}

START_TEST(values_stay)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_kernel *kernel;
    int64_t before[N], after[N];
    dlc_diag_init(&diag, arena);
    const char *text = dlc_arena_printf(arena, "kernel @k(%s%s%s) -> (y: i64[24]) {\n  axis i=24\n  v[i] = %s -> y[i]\n}\n",
                            strstr(cases[_i].value, "x[") ? "x: f32[24]" : "m: i64[24]",
                            strstr(cases[_i].value, "x[") && strstr(cases[_i].value, "m[") ? ", m: i64[24]" : "",
                            strstr(cases[_i].value, "t[") ? ", t: i64[64]" : "", cases[_i].value);
    ck_assert_msg(dlc_kernel_parse(text, arena, &diag, &kernel) == DLC_OK, "%s", text);
    dlc_expr *value = &kernel->stages.data[0].value[0];
    rewriting r = {kernel, dlc_kernel_ranges(kernel), 0};
    run(kernel, before);
    *value = dlc_expr_rewrite(kernel->pool, kernel->pool, *value, narrowed, &r);
    run(kernel, after);
    ck_assert_msg(!!r.nchanged == cases[_i].is_changed, "%s: %d narrowed", cases[_i].value, r.nchanged);
    for (int i = 0; i < N; i++)
        ck_assert_msg(before[i] == after[i], "%s at %d: %lld became %lld", cases[_i].value, i, (long long)before[i], (long long)after[i]);
    dlc_arena_destroy(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("narrow");
    TCase *tests = tcase_create("narrow");
    tcase_add_loop_test(tests, values_stay, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
