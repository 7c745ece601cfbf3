/*
 * Forms of nodes. All of them ask how the loads of the meaning are indexed: by bare axes of the result (pointwise), by
 * integers alone (a view), by one axis each (an order), by axes that are reduced (reductions and contractions).
 */
#include "ir/graph/form.h"
#include "ir/kernel/algebra.h"

#include <string.h>

/* --- walking --- */

static const dlc_stage *stage_at(const dlc_form *form, uint32_t s)
{
    return &form->from.kernel->stages.data[s];
}

static uint32_t nvalues(const dlc_stage *stage)
{
    return dlc_reduces[stage->combine].naccs;
}

static int is_load(const dlc_pool *pool, dlc_expr expr)
{
    return dlc_node_of(pool, expr)->op == DLC_EXPR_LOAD;
}

static int is_float_data(const dlc_pool *pool, dlc_expr expr)
{
    return dlc_is_float((dlc_dtype)dlc_node_of(pool, expr)->dtype) && dlc_expr_has_load(pool, expr);
}

/* marks[id] = 1 for what the values of a stage are made of; a load's indices are not among it. */
static uint8_t *formula_marks(const dlc_kernel *kernel, const dlc_stage *stage, dlc_arena *arena)
{
    const dlc_pool *pool = kernel->pool;
    uint8_t *marks = dlc_new_array(arena, uint8_t, pool->nodes.n);
    for (uint32_t v = 0; v < nvalues(stage); v++)
        marks[stage->value[v]] = 1;
    for (dlc_expr id = pool->nodes.n; id-- > 1;)
        for (uint32_t i = 0; marks[id] && !is_load(pool, id) && i < dlc_node_of(pool, id)->nargs; i++)
            marks[dlc_arg(pool, id, i)] = 1;
    return marks;
}

/* Made of integers and without data. */
static int is_index_arithmetic(const dlc_pool *pool, dlc_expr expr, dlc_arena *arena)
{
    uint8_t *marks = dlc_new_array(arena, uint8_t, (size_t)expr + 1);
    dlc_expr_reach(pool, expr, marks);
    for (dlc_expr id = 1; id <= expr; id++)
        if (marks[id] && (is_load(pool, id) || dlc_is_float((dlc_dtype)dlc_node_of(pool, id)->dtype)))
            return 0;
    return 1;
}

/* --- maps --- */

static int is_recurrence(const dlc_form *form, uint32_t s, dlc_arena *arena)
{
    const dlc_kernel *kernel = form->from.kernel;
    const uint8_t *marks = dlc_stage_marks(kernel, stage_at(form, s), arena);
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (marks[id] && node->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(node->imm.id) &&
            DLC_SOURCE_INDEX(node->imm.id) >= s)
            return 1;
    }
    return 0;
}

static int has_update(const dlc_form *form)
{
    for (uint32_t s = 0; s < form->from.kernel->stages.n; s++)
        if (stage_at(form, s)->update != DLC_UPDATE_NONE)
            return 1;
    return 0;
}

static int is_map(const dlc_form *form, dlc_arena *arena)
{
    for (uint32_t s = 0; s < form->from.kernel->stages.n; s++)
        if (stage_at(form, s)->combine != DLC_REDUCE_NONE || is_recurrence(form, s, arena))
            return 0;
    return !form->has_update;
}

/* Trailing dimensions at the stage's axes, or at 0 where there is one element. */
static int is_aligned(const dlc_pool *pool, const dlc_stage *stage, dlc_expr load)
{
    uint32_t rank = dlc_load_rank(pool, load);
    if (rank > stage->axes.n || dlc_node_of(pool, load)->flags || dlc_load_guard(pool, load))
        return 0;
    for (uint32_t d = 0; d < rank; d++) {
        dlc_expr index = dlc_arg(pool, load, d);
        int64_t at;
        if (dlc_bare_axis(pool, index) != stage->axes.data[stage->axes.n - rank + d] &&
            !(dlc_expr_is_int(pool, index, &at) && at == 0))
            return 0;
    }
    return 1;
}

static int is_pointwise(const dlc_form *form, dlc_arena *arena)
{
    const dlc_kernel *kernel = form->from.kernel;
    if (!form->is_map || form->is_view || kernel->stages.n != 1 || !form->node->ninputs)
        return 0;
    const uint8_t *marks = formula_marks(kernel, stage_at(form, 0), arena);
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (marks[id] && (node->op == DLC_EXPR_AXIS || node->op == DLC_EXPR_SYM ||
                          (node->op == DLC_EXPR_LOAD && !is_aligned(kernel->pool, stage_at(form, 0), id))))
            return 0;
    }
    return 1;
}

/* What stands behind a guard that fails may be read from memory: pad's number. */
static int is_view(const dlc_form *form, dlc_arena *arena)
{
    const dlc_pool *pool = form->from.kernel->pool;
    if (!form->is_map || form->from.kernel->stages.n != 1)
        return 0;
    dlc_expr load = stage_at(form, 0)->value[0];
    if (!is_load(pool, load) || dlc_node_of(pool, load)->flags)
        return 0;
    for (uint32_t i = 0; i <= dlc_load_rank(pool, load); i++)
        if (dlc_arg(pool, load, i) && !is_index_arithmetic(pool, dlc_arg(pool, load, i), arena))
            return 0;
    return 1;
}

/* --- what reduces --- */

static int is_contraction(const dlc_form *form, dlc_arena *arena)
{
    dlc_kernel *kernel = form->from.kernel;
    dlc_contraction found;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (dlc_contraction_of(kernel, stage_at(form, s), arena, &found) && (found.m.n || found.n.n) &&
            dlc_expr_has_load(kernel->pool, found.a) && dlc_expr_has_load(kernel->pool, found.b))
            return 1;
    return 0;
}

static int is_in_axes(const dlc_graph *graph, const dlc_node *node, uint32_t dim)
{
    uint32_t n = 0;
    const dlc_expr *axes = dlc_node_attr(node, DLC_ATTR_AXES) ? dlc_node_dims(node, DLC_ATTR_AXES, &n) : NULL;
    for (uint32_t i = 0; i < n; i++)
        if (dlc_expr_value(graph->pool, axes[i]) == dim)
            return 1;
    return 0;
}

/* Each dimension at an axis of its own: a reduced one where AXES has it, else the next that is kept. */
static int folds_axes(const dlc_graph *graph, const dlc_node *node, const dlc_kernel *kernel, dlc_expr load)
{
    const dlc_stage *stage = &kernel->stages.data[0];
    uint32_t rank = dlc_load_rank(kernel->pool, load), kept = 0, reduced = 0;
    int keepdims = stage->axes.n == rank;
    if (dlc_node_of(kernel->pool, load)->flags || dlc_load_guard(kernel->pool, load))
        return 0;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t axis = dlc_bare_axis(kernel->pool, dlc_arg(kernel->pool, load, d)), at;
        if (is_in_axes(graph, node, d)) {
            if (!dlc_ids_find(&stage->reduce, axis, &at) || at != reduced++)
                return 0;
            kept += (uint32_t)keepdims;
        } else if (!dlc_ids_find(&stage->axes, axis, &at) || at != kept++) {
            return 0;
        }
    }
    return kept == stage->axes.n && reduced == stage->reduce.n;
}

/* Behind a reduction: a formula of what it left, at the same place. */
static int follows_reduction(const dlc_kernel *kernel, dlc_expr load)
{
    const dlc_stage *stage = &kernel->stages.data[1];
    return dlc_node_of(kernel->pool, load)->imm.id == DLC_STAGE_SOURCE(0) &&
           dlc_load_rank(kernel->pool, load) == stage->axes.n && is_aligned(kernel->pool, stage, load);
}

static int is_reduction(dlc_graph *graph, const dlc_node *node, const dlc_form *form, dlc_arena *arena)
{
    const dlc_kernel *kernel = form->from.kernel;
    const dlc_pool *pool = kernel->pool;
    if (kernel->stages.n > 2 || nvalues(stage_at(form, 0)) != 1 || !stage_at(form, 0)->reduce.n ||
        (kernel->stages.n == 2 && stage_at(form, 1)->combine != DLC_REDUCE_NONE))
        return 0;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const uint8_t *marks = formula_marks(kernel, stage_at(form, s), arena);
        for (dlc_expr id = 1; id < pool->nodes.n; id++)
            if (marks[id] && (dlc_node_of(pool, id)->op == DLC_EXPR_AXIS ||
                              (is_load(pool, id) && !(s ? follows_reduction(kernel, id)
                                                        : folds_axes(graph, node, kernel, id)))))
                return 0;
    }
    return !form->has_update;
}

/* --- steps --- */

static int is_comparison(const dlc_pool *pool, dlc_expr expr)
{
    dlc_expr_op op = (dlc_expr_op)dlc_node_of(pool, expr)->op;
    return (op == DLC_EXPR_LT || op == DLC_EXPR_LE || op == DLC_EXPR_EQ || op == DLC_EXPR_NE) &&
           (is_float_data(pool, dlc_arg(pool, expr, 0)) || is_float_data(pool, dlc_arg(pool, expr, 1)));
}

/* By itself; comparisons are a matter of what is chosen by them. */
static int is_step(const dlc_pool *pool, dlc_expr expr)
{
    const dlc_expr_node *node = dlc_node_of(pool, expr);
    int reads_floats = 0;
    for (uint32_t i = 0; i < node->nargs && node->op != DLC_EXPR_LOAD; i++)
        reads_floats |= is_float_data(pool, dlc_arg(pool, expr, i));
    if (!reads_floats)
        return 0;
    switch ((dlc_expr_op)node->op) {
    case DLC_EXPR_FLOOR:
    case DLC_EXPR_CEIL:
    case DLC_EXPR_RINT:
    case DLC_EXPR_TRUNC:
    case DLC_EXPR_MOD:
    case DLC_EXPR_REM:
        return 1;
    case DLC_EXPR_CAST:
    case DLC_EXPR_CAST_SAT:
    case DLC_EXPR_BITCAST:
        return !dlc_is_float((dlc_dtype)node->dtype);
    default:
        return 0;
    }
}

typedef struct {
    dlc_expr_node at; /* what is replaced: an expression of the pool */
    dlc_expr by;
} border;

/* At 0, what is multiplied is 0. */
static dlc_expr at_border(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const border *b = ctx;
    double zero;
    if (node->op == b->at.op && node->dtype == b->at.dtype && node->imm.id == b->at.imm.id && node->args == b->at.args)
        return b->by;
    for (uint32_t i = 0; node->op == DLC_EXPR_MUL && i < 2; i++)
        if (dlc_expr_is_float(to, args[i], &zero) && zero == 0)
            return args[i];
    return 0;
}

/* select(x < c, f(x), g(x)) where f(c) = g(c): a bend, no step. */
static int is_bend(dlc_pool *pool, dlc_expr select)
{
    dlc_expr comparison = dlc_arg(pool, select, 0), x = dlc_arg(pool, comparison, 0), c = dlc_arg(pool, comparison, 1);
    double left, right;
    if (dlc_expr_is_float(pool, x, &left)) {
        dlc_expr other = x;
        x = c;
        c = other;
    }
    if (!dlc_expr_is_float(pool, c, &right) || dlc_node_of(pool, comparison)->op == DLC_EXPR_EQ ||
        dlc_node_of(pool, comparison)->op == DLC_EXPR_NE)
        return 0;
    border b = {.at = *dlc_node_of(pool, x), .by = c};
    dlc_expr side[2];
    for (uint32_t i = 0; i < 2; i++)
        side[i] = dlc_expr_expand(pool, dlc_expr_rewrite(pool, pool, dlc_arg(pool, select, i + 1), at_border, &b));
    return dlc_expr_is_float(pool, side[0], &left) && dlc_expr_is_float(pool, side[1], &right) && left == right;
}

static int stage_has_steps(dlc_kernel *kernel, const dlc_stage *stage, dlc_arena *arena)
{
    dlc_pool *pool = kernel->pool;
    uint32_t n = pool->nodes.n; /* before what borders add */
    uint8_t *marks = dlc_stage_marks(kernel, stage, arena);
    for (uint32_t v = 0; v < nvalues(stage); v++)
        if (is_comparison(pool, stage->value[v]))
            return 1;
    for (dlc_expr id = 1; id < n; id++) {
        if (!marks[id])
            continue;
        if (is_step(pool, id))
            return 1;
        for (uint32_t i = 0; i < dlc_node_of(pool, id)->nargs; i++) {
            int is_select = dlc_node_of(pool, id)->op == DLC_EXPR_SELECT && i == 0;
            if (dlc_arg(pool, id, i) && is_comparison(pool, dlc_arg(pool, id, i)) && !(is_select && is_bend(pool, id)))
                return 1;
        }
    }
    return 0;
}

static int has_steps(const dlc_form *form, dlc_arena *arena)
{
    dlc_kernel *kernel = form->from.kernel;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (stage_has_steps(kernel, stage_at(form, s), arena))
            return 1;
    return 0;
}

/* --- forms --- */

/* The node's kernel, or false. Complaints go to a diagnostic nobody reads: who needs the kernel will hear them. */
static int find_kernel(dlc_graph *graph, dlc_node *node, dlc_arena *arena, dlc_node_kernel *result)
{
    dlc_diag *diag = graph->diag, quiet;
    dlc_diag_init(&quiet, arena);
    graph->diag = &quiet;
    dlc_status status = dlc_node_kernel_of(graph, node, arena, result);
    graph->diag = diag;
    return status == DLC_OK && result->kernel->stages.n;
}

dlc_form dlc_form_of(dlc_graph *graph, dlc_node *node, dlc_arena *arena)
{
    dlc_form form = {.node = node};
    if (dlc_op_is_opaque(node->op) || node->op == DLC_OP_CONSTANT || !find_kernel(graph, node, arena, &form.from))
        return (dlc_form){0};
    form.has_update = (uint8_t)has_update(&form);
    form.is_map = (uint8_t)is_map(&form, arena);
    form.is_view = (uint8_t)is_view(&form, arena);
    form.is_guarded = (uint8_t)(form.is_view && dlc_load_guard(form.from.kernel->pool, stage_at(&form, 0)->value[0]));
    form.is_pointwise = (uint8_t)is_pointwise(&form, arena);
    form.is_contraction = (uint8_t)is_contraction(&form, arena);
    form.is_reduction = (uint8_t)is_reduction(graph, node, &form, arena);
    form.has_steps = (uint8_t)has_steps(&form, arena);
    return form;
}

static int has_same_type(const dlc_value *a, const dlc_value *b)
{
    return a->type.dtype == b->type.dtype && a->type.rank == b->type.rank &&
           !memcmp(a->type.dims, b->type.dims, a->type.rank * sizeof *a->type.dims);
}

/* Nothing is known of its elements. */
static int is_mere_data(const dlc_value *value)
{
    return value && !value->data && !value->content && !value->partly;
}

static int is_alike(const dlc_node *a, const dlc_node *b)
{
    if (a->op != b->op || a->nattrs || b->nattrs || a->region || b->region || a->ninputs != b->ninputs || a->noutputs != 1 ||
        b->noutputs != 1 || !has_same_type(a->outputs[0], b->outputs[0]))
        return 0;
    for (uint32_t i = 0; i < a->ninputs; i++) {
        if (!is_mere_data(a->inputs[i]) || !is_mere_data(b->inputs[i]) || !has_same_type(a->inputs[i], b->inputs[i]))
            return 0;
        for (uint32_t j = 0; j < i; j++)
            if ((a->inputs[j] == a->inputs[i]) != (b->inputs[j] == b->inputs[i]))
                return 0;
    }
    return 1;
}

const dlc_node *dlc_form_like(dlc_form_memo *memo, const dlc_node *node)
{
    const dlc_node **last = &memo->last[node->op];
    if (*last && is_alike(*last, node))
        return *last;
    *last = node;
    return NULL;
}

/* --- orders --- */

enum { FREE = 0xff, ANYWHERE = 0xfe }; /* a dimension not read yet; of one element, read at 0 */

/* The stage's axis that an index moves along, ANYWHERE for 0, FREE when it is not that simple. */
static uint8_t read_along(const dlc_kernel *kernel, const dlc_stage *stage, dlc_expr index)
{
    dlc_arena *arena = kernel->arena;
    int64_t at;
    if (dlc_expr_is_int(kernel->pool, index, &at))
        return at == 0 ? ANYWHERE : FREE;
    uint32_t words = kernel->axes.n / 64 + 1, found = 0, naxes = 0;
    uint64_t *axes = dlc_new_array(arena, uint64_t, words);
    dlc_expr_axes(kernel->pool, index, axes);
    for (uint32_t w = 0; w < words; w++)
        naxes += (uint32_t)__builtin_popcountll(axes[w]);
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (axes[stage->axes.data[i] / 64] >> stage->axes.data[i] % 64 & 1)
            found = i;
    int is_own = stage->axes.n && axes[stage->axes.data[found] / 64] >> stage->axes.data[found] % 64 & 1;
    return naxes == 1 && is_own && is_index_arithmetic(kernel->pool, index, arena) ? (uint8_t)found : FREE;
}

/* Adds one load to what is known of its buffer. False when they disagree. */
static int add_order(const dlc_kernel *kernel, const dlc_stage *stage, dlc_expr load, uint8_t rank, uint8_t *dims)
{
    if (stage->axes.n != rank)
        return 0;
    for (uint8_t d = 0; d < rank; d++) {
        uint8_t along = read_along(kernel, stage, dlc_arg(kernel->pool, load, d));
        if (along == FREE || (dims[d] != FREE && dims[d] != along))
            return 0;
        dims[d] = along;
    }
    return 1;
}

/* Dimensions of one element go, in their order, with those of the result that nothing is read along. */
static int place_units(dlc_pool *pool, const dlc_type *result, uint8_t *dims)
{
    uint8_t is_taken[DLC_MAX_RANK] = {0}, next = 0;
    for (uint8_t d = 0; d < result->rank; d++)
        if (dims[d] < ANYWHERE && is_taken[dims[d]]++)
            return 0;
    for (uint8_t d = 0; d < result->rank; d++) {
        if (dims[d] < ANYWHERE)
            continue;
        while (is_taken[next])
            next++;
        dims[d] = next++;
        if (result->dims[dims[d]] != dlc_expr_i64(pool, 1))
            return 0;
    }
    return 1;
}

int dlc_form_order(const dlc_form *form, const dlc_value *input, uint8_t dims[DLC_MAX_RANK])
{
    const dlc_kernel *kernel = form->from.kernel;
    uint32_t nloads = 0, buffer = 0, result = 0;
    if (!kernel || form->has_update)
        return 0;
    while (buffer < form->from.values.n && form->from.values.data[buffer] != input)
        buffer++;
    while (result < kernel->buffers.n && kernel->buffers.data[result].role != DLC_ROLE_OUT)
        result++;
    if (buffer == form->from.values.n || result == kernel->buffers.n ||
        input->type.rank != kernel->buffers.data[result].type.rank)
        return 0;
    for (uint8_t d = 0; d < DLC_MAX_RANK; d++)
        dims[d] = d < input->type.rank ? FREE : d;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const uint8_t *marks = dlc_stage_marks(kernel, stage_at(form, s), kernel->arena);
        for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
            if (!marks[id] || !is_load(kernel->pool, id) || dlc_node_of(kernel->pool, id)->imm.id != buffer)
                continue;
            nloads++;
            if (!add_order(kernel, stage_at(form, s), id, input->type.rank, dims))
                return 0;
        }
    }
    return nloads && place_units(kernel->pool, &kernel->buffers.data[result].type, dims);
}

/* --- formulas --- */

typedef struct {
    const dlc_form *form, *other; /* inputs are told apart as `other` tells them */
} formula;

/* The first input of `other` that is the same value as its input at the place where the node has `value`. */
static uint32_t input_of(const formula *f, const dlc_value *value)
{
    uint32_t at = 0, first = 0;
    while (at < f->form->node->ninputs && f->form->node->inputs[at] != value)
        at++;
    while (first < at && f->other->node->inputs[first] != f->other->node->inputs[at])
        first++;
    return first;
}

/* Loads without their indices, a constant where the other node has one, and symbols of the graph. */
static dlc_expr as_formula(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const formula *f = ctx;
    const dlc_kernel *kernel = f->form->from.kernel;
    (void)args;
    if (node->op == DLC_EXPR_SYM)
        return dlc_expr_sym(to, kernel->symbols.data[node->imm.id].outer);
    if (node->op != DLC_EXPR_LOAD)
        return 0;
    if (DLC_SOURCE_IS_STAGE(node->imm.id))
        return dlc_expr_load(to, (dlc_dtype)node->dtype, node->imm.id, NULL, 0, 0, 0, node->flags);
    uint32_t input = input_of(f, f->form->from.values.data[node->imm.id]);
    const dlc_value *value = f->other->node->inputs[input];
    if (!dlc_input_is_inline(f->other->node, input) || !value->data->size_bytes)
        return dlc_expr_load(to, (dlc_dtype)node->dtype, input, NULL, 0, 0, 0, node->flags);
    dlc_scalar scalar = dlc_scalar_read(value->type.dtype, value->data->bytes);
    return dlc_is_float(value->type.dtype) ? dlc_expr_const(to, value->type.dtype, scalar.f)
                                           : dlc_expr_const_i(to, value->type.dtype, scalar.i);
}

static dlc_expr formula_of(dlc_pool *to, const dlc_form *form, const dlc_form *other, dlc_expr value)
{
    formula f = {form, other};
    return dlc_expr_rewrite(to, form->from.kernel->pool, value, as_formula, &f);
}

int dlc_form_equal(const dlc_form *a, const dlc_form *b)
{
    if (!(a->is_pointwise && b->is_pointwise) && !(a->is_reduction && b->is_reduction))
        return 0;
    dlc_pool *pool = dlc_pool_create(b->from.kernel->arena);
    if (a->node->ninputs != b->node->ninputs || a->from.kernel->stages.n != b->from.kernel->stages.n)
        return 0;
    for (uint32_t s = 0; s < a->from.kernel->stages.n; s++) {
        const dlc_stage *x = stage_at(a, s), *y = stage_at(b, s);
        if (x->combine != y->combine || x->dtype[0] != y->dtype[0])
            return 0;
        for (uint32_t v = 0; v < nvalues(x); v++)
            if (formula_of(pool, a, b, x->value[v]) != formula_of(pool, b, b, y->value[v]))
                return 0;
    }
    return 1;
}
