/* Every row of expr.def over strips of the interpreter is dlc_scalar_apply, point by point. */
#include "ir/interp/interp.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

enum { POINTS = 1500 };

/* Values a type is difficult at, then pseudo-random bits. */
static dlc_scalar difficult(dlc_dtype dtype, uint32_t i)
{
    static const double floats[] = {0.0, -0.0, 1,     -1,   INFINITY, -INFINITY, NAN,  0.5,  -0.5,
                                    1.5, 2.5,  1e-40, 3e38, 255.5,    -129,      1e10, -1e19};
    static const int64_t ints[] = {0,         1,         -1,  2,    7,         -7,
                                   31,        32,        63,  64,   INT64_MAX, INT64_MIN,
                                   INT32_MIN, INT32_MAX, 127, -128, 255,       65535};
    uint64_t bits = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    if (dlc_is_float(dtype)) {
        double value = i % 3 ? floats[i / 3 % (sizeof floats / sizeof *floats)]
                             : (double)(int64_t)bits / (double)(INT64_C(1) << (bits % 7 * 10));
        return (dlc_scalar){.f = dlc_round_to(dtype, value)};
    }
    uint64_t element =
        i % 3 ? (uint64_t)ints[i / 3 % (sizeof ints / sizeof *ints)] : bits >> (bits % 60);
    if (dtype == DLC_BOOL)
        element &= 1;
    return dlc_scalar_read(dtype, &element);
}

/* Codes of narrow types and numbers of strings are moved and reinterpreted alone. */
static int is_legal(dlc_expr_op op, dlc_dtype dtype)
{
    if (dlc_is_code(dtype) || dlc_is_text(dtype))
        return op == DLC_EXPR_BITCAST || op == DLC_EXPR_SELECT;
    switch ((dlc_expr_class)dlc_exprs[op].class_) {
    case DLC_EXPR_CLASS_INT:
        return dlc_is_int(dtype);
    case DLC_EXPR_CLASS_FLOAT:
        return dlc_is_float(dtype);
    case DLC_EXPR_CLASS_NUM:
        return dtype != DLC_BOOL;
    case DLC_EXPR_CLASS_BITS:
        return !dlc_is_float(dtype);
    default:
        return 1;
    }
}

typedef struct {
    dlc_arena *arena;
    dlc_kernel *kernel;
    uint32_t nargs;
    dlc_dtype types[3], to;
    void *memory[4]; /* operands, then the result */
} row_kernel;

static void *add_buffer(row_kernel *r, const char *name, dlc_role role, dlc_dtype dtype)
{
    dlc_type type = {.dtype = dtype, .rank = 1, .dims = {dlc_expr_i64(r->kernel->pool, POINTS)}};
    dlc_kernel_buffer(r->kernel, name, &type, NULL, role);
    return dlc_arena_array(r->arena, POINTS, dlc_dtype_bytes(dtype), 16);
}

/* y[i] = op(a[i], b[i], c[i]); operand k reads element 5 only where bit k of `uniform` is set. */
static void build_row(row_kernel *r, dlc_expr_op op, dlc_dtype dtype, unsigned uniform)
{
    static const char *const names[] = {"a", "b", "c"};
    dlc_pool *pool = r->kernel->pool;
    dlc_expr args[3];
    dlc_expr at = dlc_expr_axis(pool, dlc_kernel_axis(r->kernel, "i", dlc_expr_i64(pool, POINTS)));
    for (uint32_t k = 0; k < r->nargs; k++) {
        dlc_expr index = uniform >> k & 1 ? dlc_expr_i64(pool, 5) : at;
        r->types[k] = op == DLC_EXPR_SELECT && k == 0 ? DLC_BOOL : dtype;
        r->memory[k] = add_buffer(r, names[k], DLC_ROLE_IN, r->types[k]);
        args[k] = dlc_expr_load(pool, r->types[k], k, &index, 1, 0, 0, 0);
        for (uint32_t i = 0; i < POINTS; i++)
            dlc_scalar_write(r->types[k], (char *)r->memory[k] + i * dlc_dtype_bytes(r->types[k]),
                             difficult(r->types[k], k == 0 ? i : i * (k == 1 ? 7 : 11) + 3));
    }
    r->memory[r->nargs] = add_buffer(r, "y", DLC_ROLE_OUT, r->to);
    dlc_stage *stage = dlc_kernel_stage(r->kernel, "y");
    dlc_vec_push(r->arena, &stage->axes, 0);
    dlc_vec_push(r->arena, &stage->store, at);
    stage->value[0] = dlc_expr_make(pool, op, r->to, args, r->nargs);
    stage->dtype[0] = r->to;
    stage->buffer = r->nargs;
}

static void check_point(const row_kernel *r, dlc_expr_op op, dlc_dtype dtype, unsigned uniform,
                        uint32_t i)
{
    dlc_scalar values[3];
    uint64_t want = 0, got = 0;
    for (uint32_t k = 0; k < r->nargs; k++)
        values[k] =
            dlc_scalar_read(r->types[k], (char *)r->memory[k] + (uniform >> k & 1 ? 5 : i) *
                                                                    dlc_dtype_bytes(r->types[k]));
    dlc_scalar_write(r->to, &want, dlc_scalar_apply(op, dtype, r->to, values));
    memcpy(&got, (char *)r->memory[r->nargs] + i * dlc_dtype_bytes(r->to), dlc_dtype_bytes(r->to));
    int is_nan = dlc_is_float(r->to) && isnan(dlc_scalar_read(r->to, &want).f) &&
                 isnan(dlc_scalar_read(r->to, &got).f);
    ck_assert_msg(is_nan || want == got, "%s %s -> %s, uniform %u, point %u: %#lx, not %#lx",
                  dlc_exprs[op].text, dlc_dtypes[dtype].text, dlc_dtypes[r->to].text, uniform, i,
                  (unsigned long)got, (unsigned long)want);
}

static void check_row(dlc_expr_op op, dlc_dtype dtype, dlc_dtype to, unsigned uniform)
{
    row_kernel r = {.arena = dlc_arena_create(0), .nargs = (uint32_t)dlc_exprs[op].nargs, .to = to};
    dlc_diag diag;
    dlc_diag_init(&diag, r.arena);
    r.kernel = dlc_kernel_create(r.arena, "row");
    build_row(&r, op, dtype, uniform);
    dlc_interp_args args = {.buffers = r.memory};
    ck_assert_int_eq(dlc_interp_run(r.kernel, DLC_STRICT, &args, &diag), DLC_OK);
    for (uint32_t i = 0; i < POINTS; i++)
        check_point(&r, op, dtype, uniform, i);
    dlc_arena_destroy(r.arena);
}

START_TEST(rows_of_expr)
{
    dlc_expr_op op = (dlc_expr_op)_i;
    int is_cast = op == DLC_EXPR_CAST || op == DLC_EXPR_CAST_SAT || op == DLC_EXPR_CAST_FTZ || op == DLC_EXPR_BITCAST;
    if (dlc_exprs[op].nargs < 1 || op >= DLC_EXPR_EXP)
        return;
    for (int dtype = DLC_BOOL; dtype < DLC_DTYPE_COUNT; dtype++) {
        if (!is_legal(op, (dlc_dtype)dtype))
            continue;
        if (!is_cast) {
            dlc_dtype to = dlc_exprs[op].result == DLC_RESULT_BOOL ? DLC_BOOL : (dlc_dtype)dtype;
            for (unsigned uniform = 0; uniform < 1u << dlc_exprs[op].nargs; uniform++)
                check_row(op, (dlc_dtype)dtype, to, uniform);
            continue;
        }
        for (int to = DLC_BOOL; to < DLC_DTYPE_COUNT; to++)
            if (op != DLC_EXPR_BITCAST ? !dlc_is_code((dlc_dtype)to) && !dlc_is_text((dlc_dtype)to)
                                       : (dlc_dtypes[to].bits == dlc_dtypes[dtype].bits &&
                                          to != DLC_BOOL && dtype != DLC_BOOL))
                check_row(op, (dlc_dtype)dtype, (dlc_dtype)to, 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("strips");
    TCase *tcase = tcase_create("strips");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, rows_of_expr, 0, DLC_EXPR_COUNT);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
