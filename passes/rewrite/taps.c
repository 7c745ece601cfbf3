/*
 * Taps: a sum that is a product of sums along two axes, written out, is computed along one of them first:
 *
 *     y[oh,ow] = Σi Σj (a_i(oh) * b_j(ow)) * x[r_i(oh), c_j(ow)]     becomes     rows[oh,w] = Σi a_i(oh) * x[r_i(oh), w]
 *                                                                                y[oh,ow]   = Σj b_j(ow) * rows[oh, c_j(ow)]
 *
 * as resized images have it: 36 terms of an antialiased one are 6 and 6. Whole rows are weighed as they lie, and what is gathered are the
 * terms of one axis. Sums of floats change in their last bits: weights are multiplied one after the other.
 */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/rewrite.h"

enum {
    LEAST_TERMS = 4,
    MOST_TERMS = 144,
    MOST_FACTORS = 16,
    WORTH_PERCENT = 80 /* of the time before: estimates are not finer */
};

/* A term of the sum, where `axis` is the columns' and h stands for dimension `dim` of what is read. */
typedef struct {
    dlc_expr read, across;   /* x[r_i(oh), h], a_i; 0: 1 */
    dlc_expr index, along;   /* c_j, b_j; 0: 1 */
} term;

typedef struct {
    dlc_kernel *kernel;
    dlc_arena *scratch;
    uint32_t stage, axis, dim, h;
    dlc_expr sum, extent; /* of h */
    uint32_t nterms, nrows, ncolumns;
    dlc_expr terms[MOST_TERMS];
    term rows[MOST_TERMS], columns[MOST_TERMS]; /* the different ones */
} site;

/* --- taking the sum apart --- */

/* The operands of nested operators of one kind; 0: too many. */
static uint32_t operands_of(const dlc_pool *pool, dlc_expr expr, dlc_expr_op op, dlc_expr *operands, uint32_t most)
{
    dlc_expr todo[MOST_TERMS];
    uint32_t ntodo = 0, n = 0;
    todo[ntodo++] = expr;
    while (ntodo) {
        dlc_expr next = todo[--ntodo];
        if (dlc_node_of(pool, next)->op != op) {
            if (n == most)
                return 0;
            operands[n++] = next;
            continue;
        }
        if (ntodo + 2 > MOST_TERMS)
            return 0;
        todo[ntodo++] = dlc_arg(pool, next, 1);
        todo[ntodo++] = dlc_arg(pool, next, 0);
    }
    return n;
}

static dlc_expr times(dlc_pool *pool, dlc_expr a, dlc_expr b)
{
    return !a || !b ? (a ? a : b) : dlc_mul(pool, a, b);
}

/* A factor while h takes the place of the index in what it reads along the axis. */
typedef struct {
    const site *at;
    dlc_expr index; /* 0: none yet */
    int is_other;   /* something is read in another way, or at two indices */
} reading;

static dlc_expr at_h(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    reading *r = ctx;
    const site *at = r->at;
    dlc_expr indices[DLC_MAX_INDEX];
    uint32_t rank = node->op == DLC_EXPR_LOAD ? node->nargs - 2u : 0, nuses = 0;
    for (uint32_t d = 0; d < rank; d++) {
        indices[d] = args[d];
        nuses += dlc_expr_uses_axis(to, args[d], at->axis) != 0;
        r->is_other |= dlc_expr_has_load(to, args[d]);
    }
    if (node->op != DLC_EXPR_LOAD || !nuses)
        return 0;
    r->is_other |= node->flags || args[rank] || (DLC_SOURCE_IS_STAGE(node->imm.id) && DLC_SOURCE_INDEX(node->imm.id) >= at->stage) ||
                   rank <= at->dim || nuses > 1 || !dlc_expr_uses_axis(to, args[at->dim], at->axis) ||
                   dlc_source_type(at->kernel, node->imm.id, 0).dims[at->dim] != at->extent || (r->index && r->index != args[at->dim]);
    if (r->is_other)
        return 0;
    r->index = args[at->dim];
    indices[at->dim] = dlc_expr_axis(to, at->h);
    return dlc_expr_load(to, (dlc_dtype)node->dtype, node->imm.id, indices, rank, 0, 0, 0);
}

/* The factor that is read, with h for its index; 0: it is read in another way. */
static dlc_expr read_at_h(const site *at, dlc_expr factor, dlc_expr *index)
{
    dlc_pool *pool = at->kernel->pool;
    reading r = {.at = at};
    dlc_expr result = dlc_expr_rewrite(pool, pool, factor, at_h, &r);
    *index = r.index;
    return r.is_other || !r.index || dlc_expr_uses_axis(pool, result, at->axis) ? 0 : result;
}

/* Nothing but the axis. */
static int is_along(const site *at, dlc_expr expr)
{
    for (uint32_t a = 0; a < at->kernel->axes.n; a++)
        if (a != at->axis && dlc_expr_uses_axis(at->kernel->pool, expr, a))
            return 0;
    return !dlc_expr_has_load(at->kernel->pool, expr);
}

static int read_term(const site *at, dlc_expr expr, term *t)
{
    dlc_pool *pool = at->kernel->pool;
    dlc_expr factors[MOST_FACTORS];
    uint32_t n = operands_of(pool, expr, DLC_EXPR_MUL, factors, MOST_FACTORS);
    *t = (term){0};
    for (uint32_t i = 0; i < n; i++) {
        int has_load = dlc_expr_has_load(pool, factors[i]), uses = dlc_expr_uses_axis(pool, factors[i], at->axis);
        if (has_load && (t->read || !(t->read = read_at_h(at, factors[i], &t->index))))
            return 0;
        if (!has_load && uses && !is_along(at, factors[i]))
            return 0;
        if (!has_load && uses)
            t->along = times(pool, t->along, factors[i]);
        else if (!has_load)
            t->across = times(pool, t->across, factors[i]);
    }
    return t->read && is_along(at, t->index);
}

static uint32_t number_of(term *list, uint32_t *n, const term *t, int is_row)
{
    for (uint32_t i = 0; i < *n; i++)
        if (is_row ? list[i].read == t->read && list[i].across == t->across : list[i].index == t->index && list[i].along == t->along)
            return i;
    list[*n] = *t;
    return (*n)++;
}

/* Every row with every column, once. */
static int is_product(site *at)
{
    uint8_t *seen = dlc_new_array(at->scratch, uint8_t, MOST_TERMS * MOST_TERMS);
    term t;
    at->nrows = at->ncolumns = 0;
    for (uint32_t i = 0; i < at->nterms; i++) {
        if (!read_term(at, at->terms[i], &t))
            return 0;
        uint32_t row = number_of(at->rows, &at->nrows, &t, 1), column = number_of(at->columns, &at->ncolumns, &t, 0);
        if (seen[row * MOST_TERMS + column]++)
            return 0;
    }
    return at->nrows > 1 && at->ncolumns > 1 && at->nrows * at->ncolumns == at->nterms;
}

/* What the sum's first term reads along the axis, to begin with; 0: nothing. */
static dlc_expr first_load(const site *at)
{
    const dlc_pool *pool = at->kernel->pool;
    uint8_t *marks = dlc_new_array(at->scratch, uint8_t, (size_t)at->terms[0] + 1);
    dlc_expr_reach(pool, at->terms[0], marks);
    for (dlc_expr id = 1; id <= at->terms[0]; id++)
        if (marks[id] && dlc_node_of(pool, id)->op == DLC_EXPR_LOAD && at->dim < dlc_load_rank(pool, id) &&
            dlc_expr_uses_axis(pool, dlc_arg(pool, id, at->dim), at->axis))
            return id;
    return 0;
}

/* --- the two stages --- */

static dlc_expr plus(dlc_pool *pool, dlc_expr a, dlc_expr b)
{
    return a ? dlc_add(pool, a, b) : b;
}

typedef struct {
    const site *at;
    dlc_expr instead;
} replacing;

static dlc_expr replaced(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const replacing *r = ctx;
    const dlc_expr_node *sum = dlc_node_of(r->at->kernel->pool, r->at->sum);
    (void)to, (void)args;
    return node->op == DLC_EXPR_ADD && node->args == sum->args ? r->instead : 0;
}

static void cut(const site *at)
{
    dlc_kernel *kernel = at->kernel;
    dlc_pool *pool = kernel->pool;
    dlc_dtype dtype = (dlc_dtype)dlc_node_of(pool, at->sum)->dtype;
    dlc_expr index[DLC_MAX_RANK], row = 0, instead = 0;
    dlc_stage *rows = dlc_rewrite_insert_stage(kernel, at->stage), *stage = rows + 1;
    for (uint32_t i = 0; i < at->nrows; i++)
        row = plus(pool, row, times(pool, at->rows[i].read, at->rows[i].across));
    rows->name = dlc_arena_printf(kernel->arena, "%s.%s", stage->name, kernel->axes.data[at->h].name);
    rows->dtype[0] = dtype;
    rows->value[0] = row;
    rows->origin = stage->origin;
    for (uint32_t j = 0; j < at->ncolumns; j++) {
        for (uint32_t i = 0; i < stage->axes.n; i++)
            index[i] = stage->axes.data[i] == at->axis ? at->columns[j].index : dlc_expr_axis(pool, stage->axes.data[i]);
        dlc_expr load = dlc_expr_load(pool, dtype, DLC_STAGE_SOURCE(at->stage), index, stage->axes.n, 0, 0, 0);
        instead = plus(pool, instead, times(pool, load, at->columns[j].along));
    }
    for (uint32_t i = 0; i < stage->axes.n; i++)
        dlc_vec_push(kernel->arena, &rows->axes, stage->axes.data[i] == at->axis ? at->h : stage->axes.data[i]);
    stage->value[0] = dlc_expr_rewrite(pool, pool, stage->value[0], replaced, &(replacing){at, instead});
}

/* --- where --- */

/* A copy of the kernel whose stage has its sum cut so that rows go along the dimension `dim` of what is read; NULL: it is no such sum. */
static dlc_kernel *cut_copy(const dlc_rewriting *in, const site *where, dlc_arena *arena)
{
    site *at = dlc_new(in->scratch, site);
    *at = *where;
    at->kernel = dlc_kernel_clone(in->kernel, arena);
    dlc_expr load = first_load(at);
    if (!load)
        return NULL;
    at->extent = dlc_source_type(at->kernel, dlc_node_of(at->kernel->pool, load)->imm.id, 0).dims[at->dim];
    const char *name = dlc_arena_printf(arena, "%s_in", at->kernel->axes.data[at->axis].name);
    at->h = dlc_kernel_axis(at->kernel, name, at->extent);
    if (!is_product(at) || (in->wanted && at->ncolumns < in->wanted))
        return NULL;
    cut(at);
    dlc_kernel_simplify(at->kernel);
    return at->kernel;
}

/* The stage's outermost sum of floats; 0: none. */
static dlc_expr find_sum(const dlc_kernel *kernel, const dlc_stage *stage, dlc_arena *scratch)
{
    const uint8_t *marks = dlc_stage_marks(kernel, stage, scratch);
    for (dlc_expr id = kernel->pool->nodes.n - 1; id > 0; id--)
        if (marks[id] && dlc_node_of(kernel->pool, id)->op == DLC_EXPR_ADD && dlc_is_float(dlc_node_of(kernel->pool, id)->dtype) &&
            dlc_expr_has_load(kernel->pool, id))
            return id;
    return 0;
}

/* Something that is no float is made of the sum. */
static int is_rounded(const dlc_kernel *kernel, const dlc_stage *stage, dlc_expr sum, dlc_arena *scratch)
{
    const uint8_t *marks = dlc_stage_marks(kernel, stage, scratch);
    uint8_t *made = dlc_new_array(scratch, uint8_t, kernel->pool->nodes.n);
    made[sum] = 1;
    for (dlc_expr id = sum + 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        for (uint32_t i = 0; marks[id] && i < node->nargs; i++)
            made[id] |= made[dlc_arg(kernel->pool, id, i)];
        if (made[id] && !dlc_is_float((dlc_dtype)node->dtype))
            return 1;
    }
    return 0;
}

/* What is rounded to a whole number next, as images of bytes are, may come out as the other neighbour: it stays. */
static int has_sum(const dlc_rewriting *in, site *at)
{
    const dlc_stage *stage = &in->kernel->stages.data[at->stage];
    if (stage->combine != DLC_REDUCE_NONE || stage->update != DLC_UPDATE_NONE || stage->axes.n > DLC_MAX_RANK ||
        !dlc_is_float(stage->dtype[0]))
        return 0;
    at->sum = find_sum(in->kernel, stage, in->scratch);
    if (at->sum && is_rounded(in->kernel, stage, at->sum, in->scratch))
        return 0;
    at->nterms = at->sum ? operands_of(in->kernel->pool, at->sum, DLC_EXPR_ADD, at->terms, MOST_TERMS) : 0;
    return at->nterms >= LEAST_TERMS;
}

/* The kernel with the stage cut where that takes least time; NULL: nowhere. */
static dlc_kernel *cut_stage(const dlc_rewriting *in, uint32_t s)
{
    const dlc_stage *stage = &in->kernel->stages.data[s];
    site *at = dlc_new(in->scratch, site), best = {0};
    double time = -1;
    *at = (site){.scratch = in->scratch, .stage = s};
    if (!has_sum(in, at))
        return NULL;
    for (uint32_t i = 0; i < stage->axes.n * DLC_MAX_RANK; i++) {
        at->axis = stage->axes.data[i / DLC_MAX_RANK];
        at->dim = i % DLC_MAX_RANK;
        const dlc_kernel *tried = best.sum && in->wanted ? NULL : cut_copy(in, at, in->scratch);
        if (!tried)
            continue;
        if (!in->wanted && time < 0)
            time = dlc_rewrite_time_of_fitting(in, in->kernel) * WORTH_PERCENT / 100;
        double after = in->wanted ? time : dlc_rewrite_time_of_fitting(in, tried);
        if (!in->wanted && (after < 0 || after > time))
            continue;
        time = after;
        best = *at;
    }
    return best.sum ? cut_copy(in, &best, in->arena) : NULL;
}

int dlc_rewrite_taps(const dlc_rewriting *in, dlc_rewritten *out)
{
    dlc_kernel *best = NULL;
    for (uint32_t s = 0; s < in->kernel->stages.n && !best; s++)
        best = cut_stage(in, s);
    if (best)
        dlc_rewrite_add_part(best, best->buffers.n, 0, out);
    return best != NULL;
}
