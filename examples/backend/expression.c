/* Expressions: a constant variable for each node. Index arithmetic is in int32_t wherever its
 * interval says that this is enough, and integers of data wrap as docs/ir.md says, which in C only
 * unsigned ones do. */
#include "portable_c.h"

#include <stdio.h>
#include <string.h>

const char *c_type(dlc_dtype dtype)
{
    return dtype == DLC_BOOL ? "uint8_t" : dlc_dtypes[dtype].ctype;
}

int plain(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~' || *text == '*' || *text == '/' || *text == '\\')
            return 0;
    return 1;
}

void print_float(const writer *w, dlc_dtype dtype, double value)
{
    const char *f = dtype == DLC_F32 ? "f" : "";
    if (value != value)
        w->api->print(w->out, "(0.0%s / 0.0%s)", f, f);
    else if (value - value != 0)
        w->api->print(w->out, "(%s1.0%s / 0.0%s)", value < 0 ? "-" : "", f, f);
    else
        w->api->print(w->out, "%a%s", value, f);
}

void print_int(const writer *w, int64_t value)
{
    if (value == INT64_MIN)
        w->api->print(w->out, "INT64_MIN");
    else if (value > INT32_MAX || value <= INT32_MIN)
        w->api->print(w->out, "INT64_C(%lld)", (long long)value);
    else
        w->api->print(w->out, "%lld", (long long)value);
}

void mark_operands(const dlc_backend_expr *expr, uint8_t *marks)
{
    if (!strcmp(expr->op, "load")) {
        marks[expr->guard] = marks[expr->otherwise] = marks[expr->offset] = marks[expr->inside] = 1;
        if (!expr->of_stage)
            return;
    }
    for (uint32_t i = 0; i < expr->nargs; i++)
        marks[expr->args[i]] = 1;
}

/* --- types --- */

static dlc_backend_expr expr_of(const writer *w, uint32_t number)
{
    dlc_backend_expr expr;
    w->api->expr(w->module, w->kernel, number, &expr);
    return expr;
}

static int is_small(const writer *w, uint32_t number)
{
    int64_t lo, hi;
    if (expr_of(w, number).dtype != DLC_I64)
        return 0;
    w->api->range(w->module, w->kernel, number, &lo, &hi);
    return lo >= INT32_MIN && hi <= INT32_MAX;
}

const char *type_of(const writer *w, uint32_t number)
{
    return is_small(w, number) ? "int32_t" : c_type(expr_of(w, number).dtype);
}

static const char *suffix(dlc_dtype dtype)
{
    return dtype == DLC_F32 ? "f32" : "f64";
}

static int bits_of(dlc_dtype dtype)
{
    return dlc_dtypes[dtype].bits;
}

/* --- operators --- */

/* How an operator reads in C. %T the result's type, %U the unsigned type at least as wide in which
 * it wraps, %0 … the operands, %f f32 or f64, %b the bits of a type. */
typedef struct {
    const char *op, *kinds, *text; /* kinds: of operands: f floats, b bool, s small integers, i
                                      signed, u unsigned; "" all */
} rule;
static const rule rules[] = {
    {"add", "fs", "%0 + %1"},
    {"add", "iu", "(%T)((%U)%0 + (%U)%1)"},
    {"sub", "fs", "%0 - %1"},
    {"sub", "iu", "(%T)((%U)%0 - (%U)%1)"},
    {"mul", "fs", "%0 * %1"},
    {"mul", "iu", "(%T)((%U)%0 * (%U)%1)"},
    {"neg", "fs", "-%0"},
    {"neg", "iu", "(%T)(0 - (%U)%0)"},
    {"abs", "f", "dlc_abs_%f(%0)"},
    {"abs", "s", "%0 < 0 ? -%0 : %0"},
    {"abs", "i", "%0 < 0 ? (%T)(0 - (%U)%0) : %0"},
    {"abs", "u", "%0"},
    {"muladd", "f", "%0 * %1 + %2"},
    {"min", "f", "%0 < %1 || %0 != %0 ? %0 : %1"},
    {"max", "f", "%0 > %1 || %0 != %0 ? %0 : %1"},
    {"min", "", "%0 < %1 ? %0 : %1"},
    {"max", "", "%0 > %1 ? %0 : %1"},
    {"div", "f", "%0 / %1"},
    {"div", "si", "(%T)dlc_div(%0, %1)"},
    {"div", "u", "(%T)dlc_udiv(%0, %1)"},
    {"rem", "si", "(%T)dlc_rem(%0, %1)"},
    {"rem", "u", "(%T)dlc_urem(%0, %1)"},
    {"floordiv", "u", "(%T)dlc_udiv(%0, %1)"},
    {"floordiv", "si", "(%T)dlc_floordiv(%0, %1)"},
    {"mod", "u", "(%T)dlc_urem(%0, %1)"},
    {"mod", "si", "(%T)dlc_mod(%0, %1)"},
    {"shl", "siu", "(%T)dlc_shl((%U)%0, (int64_t)%1, %b)"},
    {"shr", "si", "(%T)dlc_sar(%0, %1, %b)"},
    {"shr", "u", "(%T)dlc_shr(%0, (int64_t)%1, %b)"},
    {"and", "", "%0 & %1"},
    {"or", "", "%0 | %1"},
    {"xor", "", "%0 ^ %1"},
    {"not", "b", "!%0"},
    {"not", "", "(%T)~(%U)%0"},
    {"lt", "", "%0 < %1"},
    {"le", "", "%0 <= %1"},
    {"eq", "", "%0 == %1"},
    {"ne", "", "%0 != %1"},
    {"select", "", "%0 ? %1 : %2"},
    {"floor", "f", "dlc_floor_%f(%0)"},
    {"ceil", "f", "dlc_ceil_%f(%0)"},
    {"rint", "f", "dlc_rint_%f(%0)"},
    {"trunc", "f", "dlc_trunc_%f(%0)"},
    {"sqrt", "f", "dlc_sqrt_%f(%0)"},
};

/* What divides is a size and what it divides no less than 0, so that C's operators are right. */
static int is_plain_division(const writer *w, const dlc_backend_expr *expr)
{
    int64_t lo, hi;
    if (strcmp(expr->op, "floordiv") && strcmp(expr->op, "mod"))
        return 0;
    if (!is_small(w, expr->args[0]) || !is_small(w, expr->args[1]))
        return 0;
    w->api->range(w->module, w->kernel, expr->args[0], &lo, &hi);
    if (lo < 0)
        return 0;
    w->api->range(w->module, w->kernel, expr->args[1], &lo, &hi);
    return lo > 0;
}

static char kind_of(const writer *w, uint32_t number, uint32_t operand)
{
    dlc_dtype dtype = expr_of(w, operand).dtype;
    if (dlc_is_float(dtype))
        return 'f';
    if (dtype == DLC_BOOL)
        return 'b';
    if (is_small(w, number) && is_small(w, operand))
        return 's';
    return dlc_is_unsigned(dtype) ? 'u' : 'i';
}

/* An operand in the type of the result's arithmetic: an index that is small beside one that is not.
 */
static void print_operand(const writer *w, uint32_t number, uint32_t operand)
{
    int widens =
        expr_of(w, number).dtype == DLC_I64 && !is_small(w, number) && is_small(w, operand);
    w->api->print(w->out, widens ? "(int64_t)v%u" : "v%u", operand);
}

static void print_rule(const writer *w, uint32_t number, const dlc_backend_expr *expr,
                       const char *text)
{
    dlc_dtype dtype = expr_of(w, expr->args[0]).dtype;
    for (; *text; text++) {
        if (*text != '%')
            w->api->print(w->out, "%c", *text);
        else if (*++text == 'T')
            w->api->print(w->out, "%s", type_of(w, number));
        else if (*text == 'U')
            w->api->print(w->out, "%s", bits_of(dtype) == 64 ? "uint64_t" : "uint32_t");
        else if (*text == 'f')
            w->api->print(w->out, "%s", suffix(dtype));
        else if (*text == 'b')
            w->api->print(w->out, "%d", bits_of(dtype));
        else
            print_operand(w, number, expr->args[*text - '0']);
    }
}

/* --- conversions --- */

static void print_limit(const writer *w, dlc_dtype to, int highest)
{
    if (!highest)
        print_int(w, dlc_dtype_lowest(to));
    else if (to == DLC_U64)
        w->api->print(w->out, "UINT64_MAX");
    else
        print_int(w, (int64_t)dlc_dtype_highest(to));
}

static void print_from_float(const writer *w, const dlc_backend_expr *expr, dlc_dtype from)
{
    double above = dlc_is_unsigned(expr->dtype) ? 1 : 0.5;
    for (int i = 0; i < bits_of(expr->dtype); i++)
        above *= 2;
    uint32_t a = expr->args[0];
    w->api->print(w->out, "v%u != v%u ? 0 : v%u >= ", a, a, a);
    print_float(w, from, above);
    w->api->print(w->out, " ? ");
    print_limit(w, expr->dtype, 1);
    w->api->print(w->out, " : v%u <= ", a);
    print_float(w, from, dlc_is_unsigned(expr->dtype) ? 0 : -above);
    w->api->print(w->out, " ? ");
    print_limit(w, expr->dtype, 0);
    w->api->print(w->out, " : (%s)v%u", c_type(expr->dtype), a);
}

static void print_clamped(const writer *w, const dlc_backend_expr *expr, dlc_dtype from)
{
    uint32_t a = expr->args[0];
    if (dlc_dtype_lowest(from) < dlc_dtype_lowest(expr->dtype)) {
        w->api->print(w->out, "v%u < ", a);
        print_limit(w, expr->dtype, 0);
        w->api->print(w->out, " ? ");
        print_limit(w, expr->dtype, 0);
        w->api->print(w->out, " : ");
    }
    if (dlc_dtype_highest(from) > dlc_dtype_highest(expr->dtype)) {
        w->api->print(w->out, "v%u > ", a);
        print_limit(w, expr->dtype, 1);
        w->api->print(w->out, " ? ");
        print_limit(w, expr->dtype, 1);
        w->api->print(w->out, " : ");
    }
    w->api->print(w->out, "(%s)v%u", c_type(expr->dtype), a);
}

static void print_cast(const writer *w, uint32_t number, const dlc_backend_expr *expr)
{
    dlc_dtype from = expr_of(w, expr->args[0]).dtype;
    if (expr->dtype == DLC_BOOL)
        w->api->print(w->out, "v%u != 0", expr->args[0]);
    else if (dlc_is_float(from) && !dlc_is_float(expr->dtype))
        print_from_float(w, expr, from);
    else if (!strcmp(expr->op, "cast.sat") && dlc_is_int(from) && dlc_is_int(expr->dtype))
        print_clamped(w, expr, from);
    else
        w->api->print(w->out, "(%s)v%u", type_of(w, number), expr->args[0]);
}

static void print_bitcast(const writer *w, const dlc_backend_expr *expr)
{
    dlc_dtype from = expr_of(w, expr->args[0]).dtype;
    if (dlc_is_float(expr->dtype) && !dlc_is_float(from))
        w->api->print(w->out, "dlc_as_%s(v%u)", suffix(expr->dtype), expr->args[0]);
    else if (dlc_is_float(from) && !dlc_is_float(expr->dtype))
        w->api->print(w->out, "(%s)dlc_of_%s(v%u)", c_type(expr->dtype), suffix(from),
                      expr->args[0]);
    else
        w->api->print(w->out, "(%s)v%u", c_type(expr->dtype), expr->args[0]);
}

/* --- loads --- */

void print_stage(const writer *w, uint32_t number, uint32_t second, const uint32_t *indices)
{
    dlc_backend_stage stage;
    dlc_backend_axis axis;
    w->api->stage(w->module, w->kernel, number, &stage);
    w->api->print(w->out, "s%u%s", number, second ? "_1" : "");
    if (w->places[number] == (uint32_t)SCALAR)
        return;
    w->api->print(w->out, "[");
    uint32_t n = 0; /* row-major, by Horner's rule: ((i * J + j) * K + k) */
    for (uint32_t i = 0; i < stage.naxes; i++)
        n += !w->is_open[stage.axes[i]];
    for (uint32_t i = 1; i < n; i++)
        w->api->print(w->out, "(");
    n = 0;
    for (uint32_t i = 0; i < stage.naxes; i++) {
        if (w->is_open[stage.axes[i]])
            continue;
        w->api->axis(w->module, w->kernel, stage.axes[i], &axis);
        if (n++)
            w->api->print(w->out, " * %lld + ", (long long)axis.extent);
        w->api->print(w->out, indices ? "v%u" : "i%u", indices ? indices[i] : stage.axes[i]);
        w->api->print(w->out, n > 1 ? ")" : "");
    }
    w->api->print(w->out, "]");
}

static void print_load(const writer *w, const dlc_backend_expr *expr)
{
    if (expr->guard)
        w->api->print(w->out, "!v%u ? ", expr->guard);
    if (expr->guard && expr->otherwise)
        w->api->print(w->out, "v%u : ", expr->otherwise);
    else if (expr->guard)
        w->api->print(w->out, "0 : ");
    if (expr->checked && expr->otherwise)
        w->api->print(w->out, "!v%u ? (*fault = 1, v%u) : ", expr->inside, expr->otherwise);
    else if (expr->checked)
        w->api->print(w->out, "!v%u ? (*fault = 1, 0) : ", expr->inside);
    if (expr->of_stage)
        print_stage(w, expr->id, expr->second, expr->args);
    else
        w->api->print(w->out, "b%u[v%u]", expr->id, expr->offset);
}

void print_definition(const writer *w, uint32_t number)
{
    dlc_backend_expr expr = expr_of(w, number);
    w->api->print(w->out, "%*sconst %s v%u = ", 4 * w->depth, "", type_of(w, number), number);
    if (!strcmp(expr.op, "const") && dlc_is_float(expr.dtype))
        print_float(w, expr.dtype, expr.f);
    else if (!strcmp(expr.op, "const") && expr.dtype == DLC_U64)
        w->api->print(w->out, "UINT64_C(%llu)", (unsigned long long)expr.i);
    else if (!strcmp(expr.op, "const"))
        print_int(w, expr.i);
    else if (!strcmp(expr.op, "axis"))
        w->api->print(w->out, "i%u", expr.id);
    else if (!strcmp(expr.op, "load"))
        print_load(w, &expr);
    else if (!strcmp(expr.op, "cast") || !strcmp(expr.op, "cast.sat"))
        print_cast(w, number, &expr);
    else if (!strcmp(expr.op, "bitcast"))
        print_bitcast(w, &expr);
    else if (is_plain_division(w, &expr))
        w->api->print(w->out, "v%u %c v%u", expr.args[0], expr.op[0] == 'm' ? '%' : '/',
                      expr.args[1]);
    else {
        uint32_t i = 0, n = sizeof rules / sizeof *rules,
                 last = expr.nargs ? expr.args[expr.nargs - 1] : 0;
        while (i < n && (strcmp(rules[i].op, expr.op) ||
                         (*rules[i].kinds && !strchr(rules[i].kinds, kind_of(w, number, last)))))
            i++;
        if (i == n)
            w->api->refuse(w->module, "the operator %s on %s is not supported here", expr.op,
                           dlc_dtypes[expr.dtype].text);
        else
            print_rule(w, number, &expr, rules[i].text);
    }
    w->api->print(w->out, ";\n");
}
