/*
 * Positions: what depends on one axis and on nothing else is computed again for all points along the others. Sampling positions and
 * weights of a resize, in f64 where ONNX wants them so, or a window's cosine, become a table along the axis that is made at compile time:
 *
 *     y[c,h,w] = x[c,h,max(min(i64(floor(w / 0.35)), 639), 0)] * weight(w)     becomes     y[c,h,w] = x[c,h,at[w]] * by[w]
 *
 * The interpreter, which makes the tables, and all targets compute elementary functions by the same expansions (tabulate.c). Arithmetic
 * of integers alone stays: loops are split and vectors made by what it says. An index in a table has 32 bits where its range allows, and
 * keeps that range by a min and a max, so that what reads by it still needs no check.
 */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/rewrite.h"
#include "passes/schedule/choose.h"

enum {
    LEAST_WORK = 8,       /* operations that a value takes: a load, and the room that it takes in caches, cost some */
    MOST_WORK = 1 << 20,  /* counted: an expression as a tree may be as large as 2^its nodes */
    MOST_TABLES = 16,     /* of a kernel */
    MOST_BYTES = 1 << 16, /* of them all: they share L2 with the rest */
    LEAST_LOOKUPS = 4,    /* of each value in a run; bytes in the file must be worth it */
    MOST_PERCENT = 115    /* of the estimate before */
};
#define NO_AXIS (UINT32_MAX - 1) /* a constant */
#define MANY UINT32_MAX          /* of several axes, or of data */

typedef struct {
    dlc_expr what;
    uint32_t axis;
    int64_t size;
    dlc_dtype dtype;    /* of the table */
    dlc_interval range; /* of an index whose table is narrower */
    uint32_t work;
} table;

typedef struct {
    const dlc_rewriting *in;
    dlc_kernel *kernel;
    table tables[MOST_TABLES];
    uint32_t ntables;
    uint32_t first; /* buffer of the first table */
    int64_t bytes;
} site;

/* --- what is worth a table --- */

/* By expression. */
typedef struct {
    uint32_t axis, work; /* what it depends on; operations, as a tree */
    int has_floats;
} fact;

static uint32_t joined(uint32_t a, uint32_t b)
{
    return a == NO_AXIS || a == b ? b : b == NO_AXIS ? a : MANY;
}

static fact *find_facts(const dlc_pool *pool, dlc_arena *arena)
{
    fact *facts = dlc_new_array(arena, fact, pool->nodes.n);
    for (dlc_expr id = 1; id < pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        fact f = {NO_AXIS, dlc_exprs[node->op].cost, dlc_is_float((dlc_dtype)node->dtype)};
        f.axis = node->op == DLC_EXPR_AXIS ? node->imm.id : node->op == DLC_EXPR_LOAD || node->op == DLC_EXPR_SYM ? MANY : NO_AXIS;
        for (uint32_t i = 0; f.axis != MANY && i < node->nargs; i++) {
            const fact *arg = &facts[dlc_arg(pool, id, i)];
            f.axis = joined(f.axis, arg->axis);
            f.has_floats |= arg->has_floats;
            f.work += arg->axis == NO_AXIS ? 0 : arg->work;
            f.work = f.work < MOST_WORK ? f.work : MOST_WORK;
        }
        facts[id] = f;
    }
    return facts;
}

/* How often a run computes the value, as far as sizes are known; in_rows: no more than once a row where it is of another axis. */
static double points(const dlc_kernel *kernel, dlc_expr what, int in_rows, dlc_arena *scratch)
{
    const int64_t *symbols = dlc_kernel_usual_values(kernel, DLC_NOMINAL_SYMBOL, scratch);
    double all = 0;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const dlc_stage *stage = &kernel->stages.data[s];
        double n = dlc_stage_marks(kernel, stage, scratch)[what];
        for (uint32_t i = 0; i < stage->axes.n + stage->reduce.n; i++) {
            uint32_t axis = i < stage->axes.n ? stage->axes.data[i] : stage->reduce.data[i - stage->axes.n];
            int is_row = i + 1 == stage->axes.n && !dlc_expr_uses_axis(kernel->pool, what, axis);
            n *= in_rows && is_row ? 1 : (double)dlc_expr_eval(kernel->pool, kernel->axes.data[axis].extent, symbols);
        }
        all += n;
    }
    return all;
}

/* A float, or an index made of one. */
static int has_table(const site *at, const dlc_ranges *ranges, dlc_expr id, table *t)
{
    const dlc_pool *pool = at->kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, id);
    t->dtype = (dlc_dtype)node->dtype;
    if (dlc_is_float(t->dtype))
        return 1;
    if (t->dtype != DLC_I64)
        return 0;
    t->range = dlc_expr_range(pool, id, ranges);
    if (t->range.lo >= INT32_MIN && t->range.hi <= INT32_MAX)
        t->dtype = DLC_I32;
    return t->dtype == DLC_I32 || (node->op == DLC_EXPR_CAST && dlc_is_float((dlc_dtype)dlc_node_of(pool, dlc_arg(pool, id, 0))->dtype));
}

static int is_worth(const site *at, const dlc_ranges *ranges, const fact *f, dlc_expr id, uint32_t least_work, table *t)
{
    *t = (table){.what = id, .axis = f->axis, .work = f->work};
    if (f->axis >= NO_AXIS || !f->has_floats || f->work < least_work || at->ntables == MOST_TABLES ||
        !dlc_const_extent(at->kernel, f->axis, &t->size) || t->size < 1 || t->size > MOST_BYTES || !has_table(at, ranges, id, t))
        return 0;
    return at->bytes + t->size * (int64_t)dlc_dtype_bytes(t->dtype) <= MOST_BYTES &&
           points(at->kernel, id, 0, at->in->scratch) >= LEAST_LOOKUPS * (double)t->size;
}

/* The outermost such values of those that the kernel computes. Where results are stored says itself that each is stored once. */
static void find_tables(site *at, uint32_t least_work)
{
    const dlc_kernel *kernel = at->kernel;
    const dlc_pool *pool = kernel->pool;
    const fact *facts = find_facts(pool, at->in->scratch);
    uint8_t *wanted = dlc_new_array(at->in->scratch, uint8_t, pool->nodes.n);
    dlc_ranges ranges = dlc_kernel_ranges(at->kernel);
    table t;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        for (uint32_t i = 0; i < 2; i++)
            wanted[kernel->stages.data[s].value[i]] = 1;
    for (dlc_expr id = pool->nodes.n - 1; id > 0; id--) {
        if (!wanted[id])
            continue;
        if (is_worth(at, &ranges, &facts[id], id, least_work, &t)) {
            at->tables[at->ntables++] = t;
            at->bytes += t.size * (int64_t)dlc_dtype_bytes(t.dtype);
            continue;
        }
        for (uint32_t i = 0; i < dlc_node_of(pool, id)->nargs; i++)
            wanted[dlc_arg(pool, id, i)] = 1;
    }
}

/* --- the kernels --- */

/* at[i] = what(axis := i) */
static void make_table(const site *at, const table *t, dlc_rewritten *out)
{
    dlc_kernel *kernel = dlc_kernel_create(at->in->arena, "table");
    dlc_pool *pool = kernel->pool;
    uint32_t axis = dlc_kernel_axis(kernel, at->kernel->axes.data[t->axis].name, dlc_expr_i64(pool, t->size));
    dlc_expr *with = dlc_new_array(at->in->scratch, dlc_expr, at->kernel->axes.n);
    with[t->axis] = dlc_expr_axis(pool, axis);
    dlc_expr value = dlc_expr_rewrite(pool, at->kernel->pool, t->what, NULL, NULL);
    value = dlc_expr_cast(pool, t->dtype, dlc_expr_substitute(pool, value, with, at->kernel->axes.n));
    dlc_rewrite_add_table(at->in, kernel, value, "along", out);
}

static dlc_expr looked_up(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const site *at = ctx;
    (void)args;
    for (uint32_t i = 0; i < at->ntables; i++) {
        const table *t = &at->tables[i];
        const dlc_expr_node *what = dlc_node_of(at->kernel->pool, t->what); /* known by its operands' place, which no other has */
        if (!node->nargs || what->args != node->args)
            continue;
        dlc_expr axis = dlc_expr_axis(to, t->axis), value = dlc_expr_load(to, t->dtype, at->first + i, &axis, 1, 0, 0, 0);
        if (t->dtype == (dlc_dtype)node->dtype)
            return value;
        value = dlc_min(to, value, dlc_expr_const_i(to, t->dtype, t->range.hi));
        return dlc_expr_cast(to, (dlc_dtype)node->dtype, dlc_max(to, value, dlc_expr_const_i(to, t->dtype, t->range.lo)));
    }
    return 0;
}

/* The kernel, with the tables' elements for what they hold. */
static void make_reader(site *at, dlc_rewritten *out)
{
    dlc_kernel *kernel = at->kernel;
    at->first = dlc_rewrite_insert_tables(kernel, out);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        for (uint32_t i = 0; i < 2; i++)
            if (kernel->stages.data[s].value[i])
                kernel->stages.data[s].value[i] =
                    dlc_expr_rewrite(kernel->pool, kernel->pool, kernel->stages.data[s].value[i], looked_up, at);
    dlc_rewrite_add_part(kernel, at->first, at->ntables, out);
}

/* What computing the indices takes, in microseconds, by vectors of f64: estimates of kernels leave it out. */
static double index_time(const site *at)
{
    const dlc_target *target = at->in->target;
    double operations = 0;
    for (uint32_t i = 0; i < at->ntables; i++)
        if (!dlc_is_float(at->tables[i].dtype))
            operations += at->tables[i].work * points(at->kernel, at->tables[i].what, 1, at->in->scratch);
    return operations / ((double)target->vector_bytes / (double)sizeof(double)) / dlc_lane_ops(target) / target->machine->cycles_per_us;
}

static int make_tables(const dlc_rewriting *in, uint32_t least_work, dlc_rewritten *out, double *saved_us)
{
    site at = {.in = in, .kernel = dlc_kernel_clone(in->kernel, in->arena)};
    find_tables(&at, least_work);
    *out = (dlc_rewritten){0};
    *saved_us = at.ntables ? index_time(&at) : 0;
    for (uint32_t i = 0; i < at.ntables; i++)
        make_table(&at, &at.tables[i], out);
    if (at.ntables)
        make_reader(&at, out);
    return at.ntables > 0;
}

/* A load for eight operations or more pays wherever it stands. Estimates are rough about it, so they may say a little more than before;
 * what they say beyond that is another, worse schedule. */
static int pays(const dlc_rewriting *in)
{
    dlc_rewriting trial = *in;
    dlc_rewritten out;
    double share, saved_us;
    trial.arena = in->scratch;
    if (!make_tables(&trial, LEAST_WORK, &out, &saved_us))
        return 0;
    const dlc_kernel *reader = out.parts.data[out.parts.n - 1].kernel;
    double before = dlc_rewrite_time(in, dlc_rewrite_expanded(in, in->kernel), &share),
           after = dlc_rewrite_time(in, dlc_rewrite_expanded(in, reader), &share);
    return before >= 0 && after >= 0 && after <= (before + saved_us) * MOST_PERCENT / 100;
}

int dlc_rewrite_positions(const dlc_rewriting *in, dlc_rewritten *out)
{
    double saved_us;
    if (!in->wanted && !pays(in))
        return 0;
    return make_tables(in, in->wanted ? (uint32_t)in->wanted : LEAST_WORK, out, &saved_us);
}
