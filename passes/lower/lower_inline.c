/*
 * Inlining: a map T read as `T[e… if g else v]` becomes its value with axes := e, and g joins the guard of each load inside.
 * Which maps stay: decided from the last stage to the first, since whether T is read by one stage or by several depends on
 * which of its readers are themselves inlined.
 */
#include "passes/lower/lower.h"

#include <string.h>

enum {
    CHEAP = 8,     /* flops below which computing twice beats keeping: an elementary function costs more */
    MOST_WORK = 64 /* flops one reader may spend on the points it reads of one map */
};

typedef struct {
    uint32_t reader, count; /* distinct loads of the stage in the reader */
} read;

typedef struct {
    dlc_vec(read) reads; /* who loads this stage */
    uint8_t is_map;      /* may be inlined at all */
    uint8_t is_view;     /* one load and index arithmetic, or no load: costs nothing where it is read */
    uint8_t of_product;  /* reads a contraction, itself or through maps: values that are kept anyway */
    uint8_t at_window;   /* some reader takes an element of it more than once */
    uint8_t inlined;
    uint32_t cost;       /* of the value, inlined operands included */
    uint32_t own_cost;
    uint32_t last_reader; /* of the readers after inlining; */
    uint8_t several;      /* …more than one of them */
    uint64_t points;      /* loads of it, all readers together */
} fact;

typedef struct {
    dlc_kernel *kernel;
    fact *facts;
    dlc_expr *with;  /* by axis, for one substitution */
    dlc_expr guard;  /* joins the loads inside */
} inliner;

/* --- facts --- */

/* Of one point: what depends on all the stage's axes. The rest is computed further out. */
static uint32_t cost_of(const dlc_kernel *kernel, const dlc_stage *stage, const uint8_t *marks)
{
    uint32_t cost = 0, words;
    const uint64_t *axes = dlc_kernel_axes_of(kernel, marks, kernel->arena, &words);
    const uint64_t *all = axes + (size_t)stage->value[0] * words;
    for (uint32_t id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (marks[id] && node->dtype != DLC_I64 && node->dtype != DLC_BOOL &&
            !memcmp(axes + (size_t)id * words, all, words * sizeof *all))
            cost += dlc_exprs[node->op].cost;
    }
    return cost;
}

static void note_loads(inliner *in, uint32_t s, const uint8_t *marks)
{
    const dlc_pool *pool = in->kernel->pool;
    for (uint32_t id = 1; id < pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (!marks[id] || node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id))
            continue;
        fact *source = &in->facts[DLC_SOURCE_INDEX(node->imm.id)];
        in->facts[s].of_product |= source->of_product;
        for (uint32_t d = 0; d + 2u < node->nargs && !source->at_window; d++)
            source->at_window = (uint8_t)dlc_lower_overlaps(in->kernel, dlc_arg(pool, id, d));
        if (DLC_SOURCE_INDEX(node->imm.id) >= s || node->flags) /* a recurrence, a pair, an index from data */
            source->is_map = 0;
        if (source->reads.n && source->reads.data[source->reads.n - 1].reader == s)
            source->reads.data[source->reads.n - 1].count++;
        else
            dlc_vec_push(in->kernel->arena, &source->reads, ((read){s, 1}));
    }
}

static int is_view(const dlc_pool *pool, dlc_expr value)
{
    const dlc_expr_node *node = dlc_node_of(pool, value);
    if (node->op != DLC_EXPR_LOAD)
        return !dlc_expr_has_load(pool, value) && (node->nargs == 0 || node->dtype == DLC_I64);
    for (uint32_t i = 0; i + 1 < node->nargs; i++)
        if (dlc_arg(pool, value, i) && dlc_expr_has_load(pool, dlc_arg(pool, value, i)))
            return 0;
    return 1;
}

static void collect_facts(inliner *in)
{
    dlc_contraction form;
    for (uint32_t s = 0; s < in->kernel->stages.n; s++) {
        const dlc_stage *stage = &in->kernel->stages.data[s];
        fact *f = &in->facts[s];
        f->is_map = stage->combine == DLC_REDUCE_NONE && stage->update == DLC_UPDATE_NONE;
        f->is_view = f->is_map && is_view(in->kernel->pool, stage->value[0]);
        f->of_product = dlc_contraction_of(in->kernel, stage, in->kernel->arena, &form) && form.m.n && form.n.n;
    }
    for (uint32_t s = 0; s < in->kernel->stages.n; s++) {
        const uint8_t *marks = dlc_stage_marks(in->kernel, &in->kernel->stages.data[s], in->kernel->arena);
        in->facts[s].own_cost = in->facts[s].is_view ? 0 : cost_of(in->kernel, &in->kernel->stages.data[s], marks);
        note_loads(in, s, marks);
    }
}

/* cost of each map with the maps it reads written out, those known to stay apart. */
static void add_up_costs(inliner *in)
{
    uint32_t n = in->kernel->stages.n;
    for (uint32_t s = 0; s < n; s++)
        in->facts[s].cost = in->facts[s].own_cost;
    for (uint32_t s = 0; s < n; s++)
        for (uint32_t r = 0; in->facts[s].inlined && r < in->facts[s].reads.n; r++) {
            fact *reader = &in->facts[in->facts[s].reads.data[r].reader];
            reader->cost = reader->cost + in->facts[s].cost < 1u << 20 ? reader->cost + in->facts[s].cost : 1u << 20;
        }
}

/* --- decisions --- */

static void add_reader(fact *f, uint32_t reader)
{
    if (f->points && f->last_reader != reader)
        f->several = 1;
    f->last_reader = reader;
}

static void sum_readers(inliner *in, uint32_t s)
{
    fact *f = &in->facts[s];
    f->several = 0;
    f->points = 0;
    for (uint32_t r = 0; r < f->reads.n; r++) {
        const fact *reader = &in->facts[f->reads.data[r].reader];
        uint64_t times = 1;
        if (reader->inlined) {
            add_reader(f, reader->last_reader);
            f->several |= reader->several;
            times = reader->points;
        } else {
            add_reader(f, f->reads.data[r].reader);
        }
        f->points += times * f->reads.data[r].count;
        if (f->points > 1u << 20)
            f->points = 1u << 20;
    }
}

static int stays(const inliner *in, uint32_t s)
{
    const fact *f = &in->facts[s];
    int is_stored = in->kernel->stages.data[s].buffer != DLC_NO_BUFFER;
    if (!f->is_map || !f->reads.n)
        return 1;
    if (f->is_view)
        return 0;
    if (is_stored || (f->at_window && f->of_product)) /* readers take the value, not its computation */
        return 1;
    return (f->several && f->cost >= CHEAP) || (f->points > 1 && f->points * f->cost > MOST_WORK);
}

static void decide(inliner *in)
{
    for (uint32_t s = in->kernel->stages.n; s-- > 0;) {
        sum_readers(in, s);
        in->facts[s].inlined = !stays(in, s);
    }
}

/* --- substitution --- */

static dlc_expr substitute_visit(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const inliner *in = ctx;
    if (node->op == DLC_EXPR_AXIS)
        return in->with[node->imm.id];
    if (node->op != DLC_EXPR_LOAD || !in->guard)
        return 0;
    uint32_t rank = node->nargs - 2u;
    dlc_expr guard = args[rank] ? dlc_and(to, in->guard, args[rank]) : in->guard;
    return dlc_expr_load(to, node->dtype, node->imm.id, args, rank, guard, args[rank + 1], node->flags);
}

static dlc_expr zero_of(dlc_pool *pool, dlc_dtype dtype)
{
    return dlc_is_float(dtype) ? dlc_expr_const(pool, dtype, 0) : dlc_expr_const_i(pool, dtype, 0);
}

static dlc_expr guarded_off_visit(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    (void)ctx;
    if (node->op != DLC_EXPR_LOAD)
        return 0;
    return args[node->nargs - 1] ? args[node->nargs - 1] : zero_of(to, node->dtype);
}

/* What the value is where all its loads are guarded off equals `otherwise`: then no select is needed (relu of a zero pad). */
static int is_same_off(dlc_pool *pool, dlc_expr value, dlc_expr otherwise)
{
    return dlc_expr_rewrite(pool, pool, value, guarded_off_visit, NULL) == otherwise &&
           dlc_node_of(pool, otherwise)->op == DLC_EXPR_CONST;
}

static dlc_expr value_at(inliner *in, const dlc_stage *stage, const dlc_expr *index, dlc_expr guard, dlc_expr otherwise)
{
    dlc_pool *pool = in->kernel->pool;
    for (uint32_t d = 0; d < stage->axes.n; d++)
        in->with[stage->axes.data[d]] = index[d];
    in->guard = guard;
    dlc_expr value = dlc_expr_rewrite(pool, pool, stage->value[0], substitute_visit, in);
    for (uint32_t d = 0; d < stage->axes.n; d++)
        in->with[stage->axes.data[d]] = 0;
    if (!guard)
        return value;
    if (!otherwise)
        otherwise = zero_of(pool, stage->dtype[0]);
    return is_same_off(pool, stage->value[0], otherwise) ? value : dlc_select(pool, guard, value, otherwise);
}

static dlc_expr inline_visit(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    inliner *in = ctx;
    (void)to;
    if (node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id))
        return 0;
    uint32_t source = DLC_SOURCE_INDEX(node->imm.id), rank = node->nargs - 2u;
    if (!in->facts[source].inlined)
        return 0;
    return value_at(in, &in->kernel->stages.data[source], args, args[rank], args[rank + 1]);
}

static void join_origins(dlc_kernel *kernel, dlc_stage *reader, const dlc_stage *source)
{
    for (uint32_t i = 0; i < source->origin.n; i++)
        if (!dlc_ids_find(&reader->origin, source->origin.data[i], NULL))
            dlc_vec_push(kernel->arena, &reader->origin, source->origin.data[i]);
}

void dlc_lower_inline(dlc_kernel *kernel)
{
    inliner in = {kernel, dlc_new_array(kernel->arena, fact, kernel->stages.n), NULL, 0};
    in.with = dlc_new_array(kernel->arena, dlc_expr, kernel->axes.n);
    collect_facts(&in);
    for (uint32_t s = 0; s < kernel->stages.n; s++) /* at first every map counts as written out, then what stays is known */
        in.facts[s].inlined = in.facts[s].is_map;
    for (uint32_t round = 0; round < 2; round++) {
        add_up_costs(&in);
        decide(&in);
    }
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        dlc_expr *root;
        for (uint32_t i = 0; (root = dlc_stage_root(&kernel->stages.data[s], i)); i++)
            *root = dlc_expr_rewrite(kernel->pool, kernel->pool, *root, inline_visit, &in);
        for (uint32_t r = 0; in.facts[s].inlined && r < in.facts[s].reads.n; r++)
            join_origins(kernel, &kernel->stages.data[in.facts[s].reads.data[r].reader], &kernel->stages.data[s]);
    }
}
