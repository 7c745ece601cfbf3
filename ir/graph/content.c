/*
 * What the elements of small values are, over the graph's symbols: the shape arithmetic of models
 * (Shape, Gather, Concat, …) becomes dimension expressions here. The one idea: a node's meaning is
 * evaluated point by point, with the axes replaced by numbers and each load by the content of what
 * it reads, so every operator takes part without a line of its own.
 *
 * Integers are i64 expressions whatever their dtype; where a narrower one might wrap, the content
 * stays unknown. Floats take part while they are constants. Of a value only some elements may be
 * known: sizes of an image beside what data says.
 */
#include "ir/graph/op.h"

enum { MAX_ELEMS = 64, MAX_REDUCED = 4096 };

/* Evaluation of one node. */
typedef struct {
    dlc_graph *graph;
    dlc_pool *pool; /* the graph's */
    dlc_arena *scratch;
    const dlc_kernel *kernel;
    dlc_value *const *values; /* per buffer */
    dlc_expr **elems;         /* per stage: its elements so far, row-major */
    int64_t *at;              /* per axis */
    dlc_expr *map;            /* per kernel expression: its value at this point, 0: unknown */
    dlc_ranges ranges;
    uint8_t have_ranges;
} eval;

/* --- scalars --- */

static int is_constant(const eval *e, dlc_expr value, dlc_scalar *scalar)
{
    int64_t i;
    double f;
    if (dlc_expr_is_int(e->pool, value, &i)) {
        scalar->i = i;
        return 1;
    }
    if (dlc_expr_is_float(e->pool, value, &f)) {
        scalar->f = f;
        return 1;
    }
    return 0;
}

static dlc_expr constant(const eval *e, dlc_dtype dtype, dlc_scalar scalar)
{
    if (dlc_is_float(dtype))
        return dlc_expr_const(e->pool, dtype, scalar.f);
    if (dtype == DLC_BOOL)
        return dlc_expr_bool(e->pool, scalar.i != 0);
    return dtype == DLC_U64 && scalar.i < 0 ? 0 : dlc_expr_i64(e->pool, scalar.i);
}

static const dlc_ranges *ranges_of(eval *e)
{
    if (!e->have_ranges)
        e->ranges = dlc_graph_ranges(e->graph);
    e->have_ranges = 1;
    return &e->ranges;
}

/* `value` if it cannot leave its dtype, else unknown. */
static dlc_expr kept_in(eval *e, dlc_dtype dtype, dlc_expr value)
{
    if (!dlc_is_int(dtype) || dtype == DLC_I64)
        return value;
    int64_t lo = dlc_dtype_lowest(dtype),
            hi = dtype == DLC_U64 ? INT64_MAX : (int64_t)dlc_dtype_highest(dtype);
    dlc_interval range = dlc_expr_range(e->pool, value, ranges_of(e));
    return range.lo >= lo && range.hi <= hi ? value : 0;
}

static dlc_dtype dtype_of(const dlc_pool *pool, dlc_expr expr)
{
    return (dlc_dtype)dlc_node_of(pool, expr)->dtype;
}

/* --- expressions at one point --- */

static dlc_expr apply_constants(const eval *e, const dlc_expr_node *node, dlc_dtype from,
                                const dlc_expr *args)
{
    dlc_scalar scalars[4];
    if (node->nargs > 4 || node->op >= DLC_EXPR_EXP)
        return 0;
    for (uint8_t i = 0; i < node->nargs; i++)
        if (!is_constant(e, args[i], &scalars[i]))
            return 0;
    return constant(e, (dlc_dtype)node->dtype,
                    dlc_scalar_apply((dlc_expr_op)node->op, from, (dlc_dtype)node->dtype, scalars));
}

static dlc_expr apply_cast(eval *e, const dlc_expr_node *node, dlc_dtype from, dlc_expr x)
{
    if (dlc_is_float(from) || dlc_is_float((dlc_dtype)node->dtype))
        return 0;
    if (node->dtype == DLC_BOOL)
        return from == DLC_BOOL ? x : dlc_expr2(e->pool, DLC_EXPR_NE, x, dlc_expr_i64(e->pool, 0));
    if (from == DLC_BOOL)
        return dlc_select(e->pool, x, dlc_expr_i64(e->pool, 1), dlc_expr_i64(e->pool, 0));
    return kept_in(e, (dlc_dtype)node->dtype, x);
}

static dlc_expr apply_symbols(eval *e, const dlc_expr_node *node, dlc_dtype from,
                              const dlc_expr *args)
{
    switch (node->op) {
    case DLC_EXPR_CAST:
        return apply_cast(e, node, from, args[0]);
    case DLC_EXPR_ADD:
    case DLC_EXPR_SUB:
    case DLC_EXPR_MUL:
    case DLC_EXPR_NEG:
    case DLC_EXPR_ABS:
    case DLC_EXPR_MIN:
    case DLC_EXPR_MAX:
    case DLC_EXPR_DIV:
    case DLC_EXPR_REM:
    case DLC_EXPR_FLOORDIV:
    case DLC_EXPR_MOD:
        return dlc_is_int(from) ? kept_in(e, from,
                                          dlc_expr_make(e->pool, (dlc_expr_op)node->op, DLC_I64,
                                                        args, node->nargs))
                                : 0;
    case DLC_EXPR_LT:
    case DLC_EXPR_LE:
    case DLC_EXPR_EQ:
    case DLC_EXPR_NE:
        return dlc_is_float(from)
                   ? 0
                   : dlc_expr_make(e->pool, (dlc_expr_op)node->op, DLC_BOOL, args, node->nargs);
    case DLC_EXPR_AND:
    case DLC_EXPR_OR:
    case DLC_EXPR_XOR:
    case DLC_EXPR_NOT:
        return from == DLC_BOOL
                   ? dlc_expr_make(e->pool, (dlc_expr_op)node->op, DLC_BOOL, args, node->nargs)
                   : 0;
    default:
        return 0;
    }
}

/* Only the side that is chosen need be known; between two known integers a symbol may choose. */
static dlc_expr apply_select(eval *e, const dlc_expr *args)
{
    int64_t chosen;
    if (!args[0])
        return 0;
    if (dlc_expr_is_int(e->pool, args[0], &chosen))
        return args[chosen ? 1 : 2];
    if (!args[1] || !args[2] || dlc_is_float(dtype_of(e->pool, args[1])))
        return 0;
    return dlc_select(e->pool, args[0], args[1], args[2]);
}

/* Row-major number of a constant index within constant extents, or -1. */
static int64_t element_number(const eval *e, const dlc_pool *extents_pool, const dlc_expr *extents,
                              const dlc_expr *index, uint32_t rank)
{
    int64_t number = 0, i, extent;
    for (uint32_t d = 0; d < rank; d++) {
        if (!index[d] || !dlc_expr_is_int(e->pool, index[d], &i) ||
            !dlc_expr_is_int(extents_pool, extents[d], &extent) || i < 0 || i >= extent)
            return -1;
        number = number * extent + i;
    }
    return number;
}

static void stage_extents(const eval *e, const dlc_stage *stage, dlc_expr *extents)
{
    for (uint32_t i = 0; i < stage->axes.n; i++)
        extents[i] = e->kernel->axes.data[stage->axes.data[i]].extent;
}

static dlc_expr element_of(eval *e, dlc_source source, const dlc_expr *index, uint32_t rank)
{
    uint32_t which = DLC_SOURCE_INDEX(source);
    dlc_expr extents[UINT8_MAX];
    if (!DLC_SOURCE_IS_STAGE(source)) {
        const dlc_value *value = e->values[which];
        int64_t number = element_number(e, e->pool, value->type.dims, index, rank);
        const dlc_expr *known = value->content ? value->content : value->partly;
        return number < 0 || !known ? 0 : known[number];
    }
    const dlc_stage *stage = &e->kernel->stages.data[which];
    stage_extents(e, stage, extents);
    int64_t number = element_number(e, e->kernel->pool, extents, index, rank);
    return number < 0 || !e->elems[which] ? 0 : e->elems[which][number];
}

static dlc_expr load_at(eval *e, const dlc_expr_node *node, const dlc_expr *args)
{
    uint32_t rank = node->nargs - 2u;
    const dlc_expr *kernel_args = e->kernel->pool->args.data + node->args;
    int64_t is_guarded_on = 1;
    if (node->flags & DLC_LOAD_SECOND)
        return 0;
    if (kernel_args[rank] && (!args[rank] || !dlc_expr_is_int(e->pool, args[rank], &is_guarded_on)))
        return 0;
    if (is_guarded_on)
        return element_of(e, node->imm.id, args, rank);
    if (kernel_args[rank + 1])
        return args[rank + 1];
    return constant(e, (dlc_dtype)node->dtype, (dlc_scalar){0});
}

static dlc_expr leaf_at(const eval *e, const dlc_expr_node *node)
{
    switch (node->op) {
    case DLC_EXPR_CONST: {
        dlc_scalar scalar = {.i = node->imm.i};
        if (dlc_is_float((dlc_dtype)node->dtype))
            scalar.f = node->imm.f;
        return constant(e, (dlc_dtype)node->dtype, scalar);
    }
    case DLC_EXPR_AXIS:
        return dlc_expr_i64(e->pool, e->at[node->imm.id]);
    case DLC_EXPR_SYM:
        return e->kernel->symbols.data[node->imm.id].outer;
    default:
        return 0;
    }
}

static dlc_expr node_at(eval *e, dlc_expr id)
{
    const dlc_expr_node *node = dlc_node_of(e->kernel->pool, id);
    dlc_expr args[UINT8_MAX];
    int is_known = 1;
    for (uint8_t i = 0; i < node->nargs; i++) {
        dlc_expr arg = dlc_arg(e->kernel->pool, id, i);
        args[i] = arg ? e->map[arg] : 0;
        is_known &= args[i] != 0;
    }
    if (node->nargs == 0)
        return leaf_at(e, node);
    if (node->op == DLC_EXPR_LOAD)
        return load_at(e, node, args);
    if (node->op == DLC_EXPR_SELECT)
        return apply_select(e, args);
    if (!is_known)
        return 0;
    dlc_dtype from = dtype_of(e->kernel->pool, dlc_arg(e->kernel->pool, id, 0));
    dlc_expr known = apply_constants(e, node, from, args);
    return known ? known : apply_symbols(e, node, from, args);
}

static dlc_expr value_at(eval *e, const uint8_t *marks, dlc_expr root)
{
    for (dlc_expr id = 1; id <= root; id++)
        if (marks[id])
            e->map[id] = node_at(e, id);
    return e->map[root];
}

/* --- stages --- */

static dlc_expr combined(eval *e, uint8_t combine, dlc_dtype dtype, dlc_expr a, dlc_expr b)
{
    static const uint8_t ops[DLC_REDUCE_COUNT] = {
        [DLC_REDUCE_SUM] = DLC_EXPR_ADD, [DLC_REDUCE_PROD] = DLC_EXPR_MUL,
        [DLC_REDUCE_MIN] = DLC_EXPR_MIN, [DLC_REDUCE_MAX] = DLC_EXPR_MAX,
        [DLC_REDUCE_ANY] = DLC_EXPR_OR,  [DLC_REDUCE_ALL] = DLC_EXPR_AND,
    };
    dlc_expr_node node = {.op = ops[combine], .dtype = (uint8_t)dtype, .nargs = 2};
    dlc_expr args[] = {a, b};
    if (!a || !b || !ops[combine])
        return 0;
    dlc_expr known = apply_constants(e, &node, dtype, args);
    return known ? known : apply_symbols(e, &node, dtype, args);
}

/* Constant extents of the axes and their product; false when unknown or too many. */
static int sizes_of(const eval *e, const dlc_ids *axes, int64_t limit, int64_t *sizes,
                    int64_t *count)
{
    *count = 1;
    for (uint32_t i = 0; i < axes->n; i++)
        if (!dlc_expr_is_int(e->kernel->pool, e->kernel->axes.data[axes->data[i]].extent,
                             &sizes[i]) ||
            !dlc_mul_i64(*count, sizes[i], count) || *count > limit)
            return 0;
    return 1;
}

/* Sets the axes to point `number` of their row-major order. */
static void move_to(eval *e, const dlc_ids *axes, const int64_t *sizes, int64_t number)
{
    for (uint32_t i = axes->n; i-- > 0;) {
        e->at[axes->data[i]] = number % sizes[i];
        number /= sizes[i];
    }
}

static dlc_expr point_of(eval *e, const dlc_stage *stage, const uint8_t *marks,
                         const int64_t *sizes, int64_t nreduced)
{
    dlc_expr sum = 0;
    if (stage->combine == DLC_REDUCE_NONE)
        return value_at(e, marks, stage->value[0]);
    for (int64_t r = 0; r < nreduced; r++) {
        move_to(e, &stage->reduce, sizes, r);
        dlc_expr term = value_at(e, marks, stage->value[0]);
        sum = r ? combined(e, stage->combine, stage->dtype[0], sum, term) : term;
        if (!sum)
            return 0;
    }
    return sum; /* of nothing: unknown */
}

/* One update of the copy that the stage before holds. */
static int update_at(eval *e, uint32_t number, const uint8_t *marks)
{
    static const uint8_t combines[] = {[DLC_UPDATE_SUM] = DLC_REDUCE_SUM,
                                       [DLC_UPDATE_PROD] = DLC_REDUCE_PROD,
                                       [DLC_UPDATE_MIN] = DLC_REDUCE_MIN,
                                       [DLC_UPDATE_MAX] = DLC_REDUCE_MAX};
    const dlc_stage *stage = &e->kernel->stages.data[number], *copy = stage - 1;
    dlc_expr index[DLC_MAX_RANK], extents[DLC_MAX_RANK], *target;
    dlc_expr value = value_at(e, marks, stage->value[0]);
    for (uint32_t d = 0; d < stage->store.n; d++)
        index[d] = value_at(e, marks, stage->store.data[d]);
    stage_extents(e, copy, extents);
    int64_t at = element_number(e, e->kernel->pool, extents, index, stage->store.n);
    if (at < 0 || !value)
        return 0;
    target = &e->elems[number - 1][at];
    *target = stage->update == DLC_UPDATE_SET
                  ? value
                  : combined(e, combines[stage->update], stage->dtype[0], *target, value);
    return 1;
}

static int eval_stage(eval *e, uint32_t number)
{
    const dlc_stage *stage = &e->kernel->stages.data[number];
    int64_t sizes[UINT8_MAX], reduced[UINT8_MAX], count, nreduced;
    if (stage->axes.n >= UINT8_MAX || stage->reduce.n >= UINT8_MAX || stage->value[1] ||
        !sizes_of(e, &stage->axes, MAX_ELEMS, sizes, &count) ||
        !sizes_of(e, &stage->reduce, MAX_REDUCED, reduced, &nreduced))
        return 0;
    uint8_t *marks = dlc_new_array(e->scratch, uint8_t, e->kernel->pool->nodes.n);
    dlc_expr_reach(e->kernel->pool, stage->value[0], marks);
    for (uint32_t d = 0; d < stage->store.n; d++)
        dlc_expr_reach(e->kernel->pool, stage->store.data[d], marks);
    e->elems[number] = dlc_new_array(e->scratch, dlc_expr, (size_t)count + 1);
    for (int64_t i = 0; i < count; i++) {
        move_to(e, &stage->axes, sizes, i);
        if (stage->update != DLC_UPDATE_NONE && !update_at(e, number, marks))
            return 0;
        if (stage->update == DLC_UPDATE_NONE)
            e->elems[number][i] = point_of(e, stage, marks, reduced, nreduced);
    }
    return 1;
}

/* --- nodes and values --- */

static int is_small(const dlc_graph *graph, const dlc_value *value)
{
    int64_t elems;
    return dlc_type_elems(graph->pool, &value->type, &elems) && elems <= MAX_ELEMS;
}

/* The stage that stores output o gives its elements. */
static void take_content(eval *e, dlc_value *value, uint32_t buffer)
{
    int64_t elems;
    for (uint32_t s = 0; s < e->kernel->stages.n; s++) {
        const dlc_stage *stage = &e->kernel->stages.data[s];
        if (stage->buffer != buffer || stage->update != DLC_UPDATE_NONE ||
            !dlc_type_elems(e->pool, &value->type, &elems))
            continue;
        dlc_expr *content = dlc_new_array(e->graph->arena, dlc_expr, (size_t)elems + 1);
        int64_t nknown = 0;
        for (int64_t i = 0; i < elems; i++) {
            dlc_scalar scalar;
            dlc_expr element = e->elems[s][i];
            if (!element || (dlc_is_float(value->type.dtype) && !is_constant(e, element, &scalar)))
                continue;
            content[i] = dlc_expr_simplify(e->pool, element, ranges_of(e));
            nknown++;
        }
        if (nknown == elems)
            value->content = content;
        else if (nknown)
            value->partly = content;
    }
}

static void eval_node(dlc_graph *graph, dlc_node *node, dlc_arena *scratch)
{
    dlc_node_kernel built;
    if (dlc_node_kernel_of(graph, node, scratch, &built) != DLC_OK)
        return;
    const dlc_kernel *kernel = built.kernel;
    eval e = {.graph = graph,
              .pool = graph->pool,
              .scratch = scratch,
              .kernel = kernel,
              .values = built.values.data};
    e.elems = dlc_new_array(scratch, dlc_expr *, kernel->stages.n + 1);
    e.at = dlc_new_array(scratch, int64_t, kernel->axes.n + 1);
    e.map = dlc_new_array(scratch, dlc_expr, kernel->pool->nodes.n + 1);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (!eval_stage(&e, s))
            return;
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (kernel->buffers.data[b].role == DLC_ROLE_OUT)
            take_content(&e, built.values.data[b], b);
}

void dlc_node_content(dlc_graph *graph, dlc_node *node)
{
    if (dlc_op_is_opaque(node->op) || node->op == DLC_OP_CONSTANT)
        return;
    uint32_t nknown = 0, nunknown = 0;
    for (uint32_t i = 0; i < node->ninputs; i++) {
        const dlc_value *input = node->inputs[i];
        if (input && !input->content && !is_small(graph, input))
            return;
        nknown += input && (input->content || input->partly);
        nunknown += input && !input->content;
    }
    if (nunknown && !nknown)
        return;
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (!is_small(graph, node->outputs[o]))
            return;
    dlc_arena *scratch = dlc_arena_create(0);
    eval_node(graph, node, scratch);
    dlc_arena_destroy(scratch);
}

static int ints_from_data(const dlc_value *value, int64_t *out, uint32_t n)
{
    uint32_t size = dlc_dtype_bytes(value->type.dtype);
    for (uint32_t i = 0; i < n; i++)
        out[i] =
            dlc_scalar_read(value->type.dtype, (const char *)value->data->bytes + (size_t)i * size)
                .i;
    return 1;
}

int dlc_value_ints(const dlc_graph *graph, const dlc_value *value, int64_t *out, uint32_t capacity,
                   uint32_t *n)
{
    int64_t elems;
    if (dlc_is_float(value->type.dtype) || !dlc_type_elems(graph->pool, &value->type, &elems) ||
        elems > capacity)
        return 0;
    *n = (uint32_t)elems;
    if (value->data)
        return ints_from_data(value, out, *n);
    if (!value->content)
        return 0;
    for (uint32_t i = 0; i < *n; i++)
        if (!dlc_expr_is_int(graph->pool, value->content[i], &out[i]))
            return 0;
    return 1;
}
