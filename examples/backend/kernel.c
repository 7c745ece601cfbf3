/*
 * A kernel as a function: loops over the open axes, then stage after stage a block with loops over
 * the axes that are left and those it folds. An expression is computed in the outermost of these
 * loops on whose axes it depends.
 */
#include "portable_c.h"

#include <stdlib.h>
#include <string.h>

static void line(const writer *w, const char *text)
{
    w->api->print(w->out, "%*s%s\n", 4 * w->depth, "", text);
}

static void open_loop(writer *w, uint32_t number)
{
    dlc_backend_axis axis;
    w->api->axis(w->module, w->kernel, number, &axis);
    w->api->print(w->out, "%*sfor (int32_t i%u = 0; i%u < %lld; i%u++) {\n", 4 * w->depth++, "",
                  number, number, (long long)axis.extent, number);
}

static void close_loop(writer *w)
{
    w->depth--;
    line(w, "}");
}

/* --- at which loop an expression stands --- */

typedef struct {
    writer *w;
    dlc_backend_stage stage;
    uint32_t number;
    uint32_t *loops, nloops, nkept; /* axes, outer to inner; the first nkept of them are kept */
    uint8_t *marks;
    uint32_t *level; /* by expression: how many of the loops must be open */
} block;

static uint32_t level_of_axis(const block *b, uint32_t axis)
{
    for (uint32_t i = 0; i < b->nloops; i++)
        if (b->loops[i] == axis)
            return i + 1;
    return 0;
}

static void find_levels(block *b, uint32_t nexprs)
{
    for (uint32_t e = nexprs; e-- > 1;) {
        dlc_backend_expr expr;
        b->w->api->expr(b->w->module, b->w->kernel, e, &expr);
        if (b->marks[e])
            mark_operands(&expr, b->marks);
    }
    b->marks[0] = 0;
    for (uint32_t e = 1; e < nexprs; e++) {
        dlc_backend_expr expr;
        b->w->api->expr(b->w->module, b->w->kernel, e, &expr);
        int is_load = !strcmp(expr.op, "load");
        uint32_t others[] = {expr.guard, expr.otherwise, expr.offset, expr.inside};
        if (!b->marks[e])
            continue;
        b->level[e] = !strcmp(expr.op, "axis") ? level_of_axis(b, expr.id) : 0;
        for (uint32_t i = 0; i < expr.nargs; i++)
            if ((!is_load || expr.of_stage) && b->level[expr.args[i]] > b->level[e])
                b->level[e] = b->level[expr.args[i]];
        for (uint32_t i = 0; is_load && i < 4; i++)
            if (b->level[others[i]] > b->level[e])
                b->level[e] = b->level[others[i]];
        if (is_load && expr.of_stage && expr.id == b->number && b->level[e] < b->nkept)
            b->level[e] = b->nkept; /* of itself: no earlier than its points are made */
    }
}

/* Of the value inside the folded loops, of the offset outside of them. */
static void define(block *b, uint32_t level, uint8_t *done)
{
    uint32_t n = b->w->api->expr_count(b->w->module, b->w->kernel);
    for (uint32_t e = 1; e < n; e++)
        if (b->marks[e] && b->level[e] == level && !done[e]) {
            print_definition(b->w, e);
            done[e] = 1;
        }
}

/* --- folding --- */

static void print_start(const block *b, uint32_t acc)
{
    const char *combine = b->stage.combine;
    dlc_dtype dtype = b->stage.dtype[acc];
    int is_max = !strcmp(combine, "max");
    b->w->api->print(b->w->out, "%*s%s a%u = ", 4 * b->w->depth, "", c_type(dtype), acc);
    if (strcmp(combine, "min") && !is_max)
        b->w->api->print(b->w->out, "%d", !strcmp(combine, "prod") || !strcmp(combine, "all"));
    else if (dlc_is_float(dtype))
        print_float(b->w, dtype, is_max ? -1e308 * 10 : 1e308 * 10);
    else if (is_max)
        print_int(b->w, dlc_dtype_lowest(dtype));
    else if (dtype == DLC_U64)
        b->w->api->print(b->w->out, "UINT64_MAX");
    else
        print_int(b->w, (int64_t)dlc_dtype_highest(dtype));
    b->w->api->print(b->w->out, ";\n");
}

static void print_fold(const block *b)
{
    static const struct {
        const char *combine, *floats, *ints, *bools;
    } folds[] = {
        {"sum", "a0 += v%u;", "a0 = (%s)((%s)a0 + (%s)v%u);", "a0 |= v%u;"},
        {"prod", "a0 *= v%u;", "a0 = (%s)((%s)a0 * (%s)v%u);", "a0 &= v%u;"},
        {"min", "a0 = v%u < a0 || v%u != v%u ? v%u : a0;", NULL, "a0 &= v%u;"},
        {"max", "a0 = v%u > a0 || v%u != v%u ? v%u : a0;", NULL, "a0 |= v%u;"},
        {"any", NULL, NULL, "a0 |= v%u;"},
        {"all", NULL, NULL, "a0 &= v%u;"},
    };
    uint32_t v = b->stage.value[0], i = 0;
    dlc_dtype dtype = b->stage.dtype[0];
    const char *type = c_type(dtype),
               *wide = dlc_dtypes[dtype].bits == 64 ? "uint64_t" : "uint32_t";
    while (strcmp(folds[i].combine, b->stage.combine))
        i++;
    b->w->api->print(b->w->out, "%*s", 4 * b->w->depth, "");
    if (dtype == DLC_BOOL)
        b->w->api->print(b->w->out, folds[i].bools, v);
    else if (dlc_is_float(dtype) || !folds[i].ints)
        b->w->api->print(b->w->out, folds[i].floats, v, v, v, v);
    else
        b->w->api->print(b->w->out, folds[i].ints, type, wide, wide, v);
    b->w->api->print(b->w->out, "\n");
}

/* The key that is better, or NaN; of equal ones the lower index, or for _last the higher. */
static void print_best(const block *b)
{
    uint32_t k = b->stage.value[0], i = b->stage.value[1];
    char better = !strncmp(b->stage.combine, "argmax", 6) ? '>' : '<',
         later = strstr(b->stage.combine, "_last") ? '>' : '<';
    b->w->api->print(b->w->out, "%*sif (!any || v%u %c a0 || (v%u != v%u && a0 == a0) ||\n",
                     4 * b->w->depth, "", k, better, k, k);
    b->w->api->print(b->w->out, "%*s    ((v%u == a0 || (v%u != v%u && a0 != a0)) && v%u %c a1))\n",
                     4 * b->w->depth, "", k, k, k, i, later);
    b->w->api->print(b->w->out, "%*s    any = 1, a0 = v%u, a1 = v%u;\n", 4 * b->w->depth, "", k, i);
}

/* --- results --- */

static void print_store(const block *b)
{
    static const struct {
        const char *update, *text;
    } updates[] = {{"none", "b%u[v%u] = %s;"},
                   {"set", "b%u[v%u] = %s;"},
                   {"sum", "b%u[v%u] += %s;"},
                   {"prod", "b%u[v%u] *= %s;"},
                   {"min", "if (%3$s < b%1$u[v%2$u] || %3$s != %3$s) b%1$u[v%2$u] = %3$s;"},
                   {"max", "if (%3$s > b%1$u[v%2$u] || %3$s != %3$s) b%1$u[v%2$u] = %3$s;"}};
    uint32_t i = 0;
    while (strcmp(updates[i].update, b->stage.update))
        i++;
    b->w->api->print(b->w->out, "%*s", 4 * b->w->depth, "");
    b->w->api->print(b->w->out, updates[i].text, b->stage.buffer, b->stage.offset,
                     b->stage.second ? "r1" : "r0");
    b->w->api->print(b->w->out, "\n");
}

static void print_result(const block *b)
{
    for (uint32_t i = 0; i < b->stage.naccs; i++) {
        b->w->api->print(b->w->out, "%*sconst %s r%u = %s%u;\n", 4 * b->w->depth, "",
                         c_type(b->stage.dtype[i]), i, b->stage.nreduce ? "a" : "v",
                         b->stage.nreduce ? i : b->stage.value[i]);
        if (b->w->places[b->number] == (uint32_t)UNREAD)
            continue;
        b->w->api->print(b->w->out, "%*s", 4 * b->w->depth, "");
        print_stage(b->w, b->number, i, NULL);
        b->w->api->print(b->w->out, " = r%u;\n", i);
    }
    if (b->stage.buffer != DLC_BACKEND_NONE)
        print_store(b);
}

/* --- stages --- */

static void print_loops(block *b, uint8_t *done)
{
    writer *w = b->w;
    define(b, 0, done);
    for (uint32_t i = 0; i < b->nkept; i++) {
        open_loop(w, b->loops[i]);
        define(b, i + 1, done);
    }
    for (uint32_t i = 0; b->stage.nreduce && i < b->stage.naccs; i++)
        print_start(b, i);
    if (b->stage.naccs == 2)
        line(w, "int any = 0;");
    for (uint32_t i = b->nkept; i < b->nloops; i++) {
        open_loop(w, b->loops[i]);
        define(b, i + 1, done);
    }
    if (b->stage.naccs == 2)
        print_best(b);
    else if (b->stage.nreduce)
        print_fold(b);
    for (uint32_t i = b->nkept; i < b->nloops; i++)
        close_loop(w);
    print_result(b);
    for (uint32_t i = 0; i < b->nkept; i++)
        close_loop(w);
}

static void print_block(writer *w, uint32_t number)
{
    uint32_t nexprs = w->api->expr_count(w->module, w->kernel);
    block b = {.w = w,
               .number = number,
               .marks = calloc(nexprs, 1),
               .level = calloc(nexprs, sizeof *b.level)};
    uint8_t *done = calloc(nexprs, 1);
    w->api->stage(w->module, w->kernel, number, &b.stage);
    b.loops = calloc(b.stage.naxes + b.stage.nreduce + 1, sizeof *b.loops);
    for (uint32_t i = 0; i < b.stage.naxes; i++)
        if (!w->is_open[b.stage.axes[i]])
            b.loops[b.nkept++] = b.stage.axes[i];
    b.nloops = b.nkept;
    for (uint32_t i = 0; i < b.stage.nreduce; i++)
        b.loops[b.nloops++] = b.stage.reduce[i];
    b.marks[b.stage.value[0]] = b.marks[b.stage.value[1]] = b.marks[b.stage.offset] = 1;
    find_levels(&b, nexprs);
    w->api->print(w->out, "%*s{%s%s%s\n", 4 * w->depth++, "", plain(b.stage.name) ? " /* " : "",
                  plain(b.stage.name) ? b.stage.name : "", plain(b.stage.name) ? " */" : "");
    print_loops(&b, done);
    close_loop(w);
    free(b.marks);
    free(b.level);
    free(b.loops);
    free(done);
}

/* Scalars, or arrays in the scratch. */
static void declare_stage(const writer *w, uint32_t number)
{
    dlc_backend_stage stage;
    w->api->stage(w->module, w->kernel, number, &stage);
    for (uint32_t i = 0; i < stage.naccs && w->places[number] != (uint32_t)UNREAD; i++) {
        const char *type = c_type(stage.dtype[i]), *name = i ? "_1" : "";
        uint32_t place = w->places[number];
        if (place == (uint32_t)SCALAR)
            w->api->print(w->out, "%*s%s s%u%s;\n", 4 * w->depth, "", type, number, name);
        else
            w->api->print(w->out, "%*s%s *const s%u%s = (%s *)(void *)(scratch + %u);\n",
                          4 * w->depth, "", type, number, name, type,
                          place + i * (stage_bytes(w, number) / stage.naccs));
    }
}

static void print_head(const writer *w)
{
    const char *name = w->api->kernel_name(w->module, w->kernel);
    w->api->print(w->out, "\n%s%s%sstatic void kernel%u(", plain(name) ? "/* " : "",
                  plain(name) ? name : "", plain(name) ? " */\n" : "", w->kernel);
    for (uint32_t i = 0; i < w->api->buffer_count(w->module, w->kernel); i++) {
        dlc_backend_buffer buffer;
        w->api->buffer(w->module, w->kernel, i, &buffer);
        w->api->print(w->out, "%s%s *b%u, ", buffer.role == DLC_BACKEND_OUTPUT ? "" : "const ",
                      c_type(buffer.dtype), i);
    }
    w->api->print(w->out,
                  "unsigned char *scratch, int *fault)\n{\n    (void)scratch, (void)fault;\n");
}

void print_kernel(writer *w)
{
    uint32_t nopen = 0, nstages = w->api->stage_count(w->module, w->kernel);
    dlc_backend_stage last;
    print_head(w);
    w->depth = 1;
    w->api->stage(w->module, w->kernel, nstages - 1, &last);
    for (uint32_t i = 0; i < last.naxes; i++)
        if (w->is_open[last.axes[i]]) {
            open_loop(w, last.axes[i]);
            nopen++;
        }
    for (uint32_t s = 0; s < nstages; s++)
        declare_stage(w, s);
    for (uint32_t s = 0; s < nstages; s++)
        print_block(w, s);
    while (nopen--)
        close_loop(w);
    w->api->print(w->out, "}\n");
}
