/*
 * Tabulate: what depends on one byte and on nothing else has 256 values. y = u8(gelu((x - zero) * scale) / …) of a quantised model
 * becomes table[x], and the table, a kernel that reads nothing, is computed at compile time. The interpreter, which runs that kernel,
 * and all targets compute elementary functions by the same expansions: where a target has fused multiply-add, no bit changes. The
 * index is the byte's bits, so that it lies in the table whatever the data are, and needs no check. Where the byte was made of a float and
 * becomes one again, it is no byte any more but a float that is one of 256 whole numbers (ir/expr/fold.c); that is as good.
 */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/rewrite.h"

enum {
    VALUES = DLC_LOOKUP,
    LEAST_WORK = 16,      /* operations that an element takes: below, vectors of them are faster than any table */
    MOST_WORK = 1 << 20,  /* counted: an expression as a tree may be as large as 2^its nodes */
    MOST_TABLES = 8,      /* of a kernel: they share L1 with the rest */
    WORTH_PERCENT = 90    /* of the time before: estimates are not finer */
};
#define MANY UINT32_MAX /* not a byte alone */

typedef struct {
    dlc_expr what, of;  /* the value, and the byte it depends on */
    dlc_expr of_now;    /* the byte, in the kernel that is being made */
    double first;       /* its value at 0 of the table */
} table;

typedef struct {
    const dlc_rewriting *in;
    dlc_kernel *kernel;
    table tables[MOST_TABLES];
    uint32_t ntables;
    uint32_t first; /* buffer of the first table */
} site;

/* --- what is worth a table --- */

static int is_byte(dlc_dtype dtype)
{
    return dtype == DLC_U8 || dtype == DLC_I8;
}

/* A byte, or a float that is as few whole numbers: of them the table has the first at 0. */
static int is_few(const dlc_pool *pool, dlc_expr expr, double *first)
{
    *first = 0;
    return is_byte((dlc_dtype)dlc_node_of(pool, expr)->dtype) || dlc_expr_is_limited(pool, expr, first);
}

/* By expression: the byte that it depends on and nothing else (0: it is a constant), and the operations from there, as a tree. */
static void find_bytes(const dlc_pool *pool, dlc_expr *bytes, uint32_t *work)
{
    double first;
    for (dlc_expr id = 1; id < pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        dlc_expr byte = node->op == DLC_EXPR_LOAD || node->op == DLC_EXPR_AXIS || node->op == DLC_EXPR_SYM ? MANY : 0;
        uint32_t sum = dlc_exprs[node->op].cost;
        for (uint32_t i = 0; byte != MANY && i < node->nargs; i++) {
            dlc_expr arg = dlc_arg(pool, id, i), of = bytes[arg];
            byte = !of || of == byte ? byte : byte ? MANY : of;
            sum += arg == of ? 0 : work[arg];
            sum = sum < MOST_WORK ? sum : MOST_WORK;
        }
        bytes[id] = byte == MANY && is_few(pool, id, &first) ? id : byte;
        work[id] = byte ? sum : 0;
    }
}

/* The outermost such values of those that the kernel computes. */
static void find_tables(site *at, uint32_t least_work)
{
    dlc_kernel *kernel = at->kernel;
    const dlc_pool *pool = kernel->pool;
    uint8_t *wanted = dlc_new_array(at->in->scratch, uint8_t, pool->nodes.n);
    dlc_expr *bytes = dlc_new_array(at->in->scratch, dlc_expr, pool->nodes.n), *root;
    uint32_t *work = dlc_new_array(at->in->scratch, uint32_t, pool->nodes.n);
    find_bytes(pool, bytes, work);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        for (uint32_t i = 0; (root = dlc_stage_root(&kernel->stages.data[s], i)); i++)
            wanted[*root] = 1;
    for (dlc_expr id = pool->nodes.n - 1; id > 0; id--) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        dlc_expr of = bytes[id];
        if (!wanted[id])
            continue;
        if (of && of != MANY && of != id && is_byte((dlc_dtype)node->dtype) && work[id] >= least_work && at->ntables < MOST_TABLES) {
            table *t = &at->tables[at->ntables++];
            *t = (table){.what = id, .of = of};
            (void)is_few(pool, of, &t->first);
            wanted[of] = 1;
            continue;
        }
        for (uint32_t i = 0; i < node->nargs; i++)
            wanted[dlc_arg(pool, id, i)] = 1;
    }
}

/* --- the kernels --- */

/* A node is known by its operands' place, which no other has: those of interest have some. */
static int is_node(const site *at, dlc_expr expr, const dlc_expr_node *node)
{
    const dlc_expr_node *other = dlc_node_of(at->kernel->pool, expr);
    return other->nargs && node->nargs && other->args == node->args;
}

/* The byte whose bits the axis counts. */
typedef struct {
    const site *at;
    const table *table;
    uint32_t axis;
} counting;

static dlc_expr byte_of_axis(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const counting *c = ctx;
    (void)args;
    double first = c->table->first;
    if (!is_node(c->at, c->table->of, node))
        return 0;
    dlc_expr value = dlc_expr_cast(to, (dlc_dtype)node->dtype, dlc_expr_axis(to, c->axis));
    return first < 0 || first > 0 ? dlc_expr2(to, DLC_EXPR_ADD, value, dlc_expr_const(to, (dlc_dtype)node->dtype, first)) : value;
}

/* Where the value of the byte, or of what stands for one, lies in the table. */
static dlc_expr index_of(const table *t, dlc_pool *to)
{
    dlc_expr value = t->of_now;
    if (t->first < 0 || t->first > 0)
        value = dlc_expr2(to, DLC_EXPR_SUB, value, dlc_expr_const(to, DLC_F32, t->first));
    return dlc_expr_cast(to, DLC_I64, dlc_expr_cast(to, DLC_U8, value));
}

/* table[c] = what(of := c) */
static void make_table(const site *at, const table *t, dlc_rewritten *out)
{
    dlc_kernel *kernel = dlc_kernel_create(at->in->arena, "table");
    counting c = {at, t, dlc_kernel_axis(kernel, "c", dlc_expr_i64(kernel->pool, VALUES))};
    dlc_expr value = dlc_expr_rewrite(kernel->pool, at->kernel->pool, t->what, byte_of_axis, &c);
    dlc_rewrite_add_table(at->in, kernel, value, "table", out);
}

static dlc_expr looked_up(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    site *at = ctx;
    dlc_expr remade = 0;
    for (uint32_t t = 0; t < at->ntables; t++)
        if (is_node(at, at->tables[t].what, node)) {
            dlc_expr bits = index_of(&at->tables[t], to);
            return dlc_expr_load(to, (dlc_dtype)node->dtype, at->first + t, &bits, 1, 0, 0, 0);
        }
    for (uint32_t t = 0; t < at->ntables; t++) {
        if (!is_node(at, at->tables[t].of, node))
            continue;
        if (!remade && node->op == DLC_EXPR_LOAD)
            remade = dlc_expr_load(to, (dlc_dtype)node->dtype, node->imm.id, args, node->nargs - 2u, args[node->nargs - 2],
                                   args[node->nargs - 1], node->flags);
        else if (!remade)
            remade = dlc_expr_make(to, (dlc_expr_op)node->op, (dlc_dtype)node->dtype, args, node->nargs);
        at->tables[t].of_now = remade;
    }
    return remade;
}

/* The kernel, with the tables' elements for what they hold. */
static void make_reader(site *at, dlc_rewritten *out)
{
    dlc_kernel *kernel = at->kernel;
    dlc_expr *root;
    at->first = dlc_rewrite_insert_tables(kernel, out);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        for (uint32_t i = 0; (root = dlc_stage_root(&kernel->stages.data[s], i)); i++)
            *root = dlc_expr_rewrite(kernel->pool, kernel->pool, *root, looked_up, at);
    dlc_rewrite_add_part(kernel, at->first, at->ntables, out);
}

static int tabulate(const dlc_rewriting *in, uint32_t least_work, dlc_rewritten *out)
{
    site at = {.in = in, .kernel = dlc_kernel_clone(in->kernel, in->arena)};
    find_tables(&at, least_work);
    *out = (dlc_rewritten){0};
    for (uint32_t t = 0; t < at.ntables; t++)
        make_table(&at, &at.tables[t], out);
    if (at.ntables)
        make_reader(&at, out);
    return at.ntables > 0;
}

/* --- whether it pays --- */

static int pays(const dlc_rewriting *in)
{
    dlc_rewriting trial = *in;
    dlc_rewritten out;
    double share;
    trial.arena = in->scratch;
    if (!tabulate(&trial, LEAST_WORK, &out))
        return 0;
    double before = dlc_rewrite_time(in, dlc_rewrite_expanded(in, in->kernel), &share),
           after = dlc_rewrite_time(in, out.parts.data[out.parts.n - 1].kernel, &share);
    return before >= 0 && after >= 0 && after <= before * WORTH_PERCENT / 100;
}

int dlc_rewrite_tabulate(const dlc_rewriting *in, dlc_rewritten *out)
{
    if (!in->wanted && !pays(in))
        return 0;
    return tabulate(in, in->wanted ? (uint32_t)in->wanted : LEAST_WORK, out);
}
