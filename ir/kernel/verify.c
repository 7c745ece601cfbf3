/*
 * What must hold of every kernel, checked part by part: the pool (operands below users, types as
 * expr.def says), axes and buffers, each stage, each load, and that outputs are written whole.
 * Bounds are checked where they can be decided: an unguarded index over constant extents has an
 * exact interval; symbolic ones rest on the plan's conditions.
 */
#include "ir/kernel/kernel.h"

#include <string.h>

typedef struct {
    const dlc_kernel *kernel;
    const dlc_pool *pool;
    dlc_arena *scratch;
    dlc_diag *diag;
    const dlc_stage *stage; /* being checked, for messages */
    dlc_ranges ranges;
    uint8_t *used_axes, *used_buffers, *used_stages;
} verifier;

static dlc_status wrong(verifier *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

static dlc_status wrong(verifier *v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *place = v->stage ? dlc_arena_printf(v->scratch, "kernel '%s', stage '%s'",
                                                    v->kernel->name, v->stage->name)
                                 : dlc_arena_printf(v->scratch, "kernel '%s'", v->kernel->name);
    dlc_status status = dlc_diag_vfail(v->diag, DLC_INTERNAL, place, format, args);
    va_end(args);
    return status;
}

/* --- the pool --- */

static dlc_dtype dtype_of(const verifier *v, dlc_expr expr)
{
    return (dlc_dtype)dlc_node_of(v->pool, expr)->dtype;
}

static int has_right_type(const verifier *v, dlc_expr id)
{
    const dlc_expr_node *node = dlc_node_of(v->pool, id);
    const dlc_expr_info *info = &dlc_exprs[node->op];
    dlc_dtype first = node->nargs ? dtype_of(v, dlc_arg(v->pool, id, 0)) : DLC_NONE;
    if (node->dtype == DLC_NONE || node->dtype >= DLC_DTYPE_COUNT)
        return 0;
    switch (info->result) {
    case DLC_RESULT_SAME:
    case DLC_RESULT_BOOL:
        for (uint32_t i = 1; i < node->nargs; i++)
            if (dtype_of(v, dlc_arg(v->pool, id, i)) != first)
                return 0;
        return node->dtype == (info->result == DLC_RESULT_BOOL ? DLC_BOOL : first) &&
               dlc_expr_admits((dlc_expr_op)node->op, first);
    case DLC_RESULT_SEL:
        return first == DLC_BOOL && node->dtype == dtype_of(v, dlc_arg(v->pool, id, 1)) &&
               node->dtype == dtype_of(v, dlc_arg(v->pool, id, 2));
    default:
        return node->op != DLC_EXPR_BITCAST ||
               dlc_dtypes[first].bits == dlc_dtypes[node->dtype].bits;
    }
}

static dlc_status verify_node(verifier *v, dlc_expr id)
{
    const dlc_expr_node *node = dlc_node_of(v->pool, id);
    if (node->op == DLC_EXPR_NONE || node->op >= DLC_EXPR_COUNT)
        return wrong(v, "node %u has the unknown operator %u", id, node->op);
    const dlc_expr_info *info = &dlc_exprs[node->op];
    if (info->nargs >= 0 ? node->nargs != info->nargs : node->nargs < 2)
        return wrong(v, "node %u (%s) has %u operands", id, info->text, node->nargs);
    for (uint32_t i = 0; i < node->nargs; i++) {
        dlc_expr arg = dlc_arg(v->pool, id, i);
        int may_be_absent = node->op == DLC_EXPR_LOAD && i + 2 >= node->nargs;
        if (arg >= id || (!arg && !may_be_absent))
            return wrong(v, "operand %u of node %u (%s) is node %u, not one below it", i, id,
                         info->text, arg);
    }
    if (!has_right_type(v, id))
        return wrong(v, "node %u (%s, %s) breaks the type rule of its row", id, info->text,
                     dlc_dtypes[node->dtype < DLC_DTYPE_COUNT ? node->dtype : 0].text);
    if (node->op == DLC_EXPR_AXIS && node->imm.id >= v->kernel->axes.n)
        return wrong(v, "node %u names axis %u of %u", id, node->imm.id, v->kernel->axes.n);
    if (node->op == DLC_EXPR_SYM && node->imm.id >= v->kernel->symbols.n)
        return wrong(v, "node %u names symbol %u of %u", id, node->imm.id, v->kernel->symbols.n);
    return DLC_OK;
}

/* Every node beneath root. */
static dlc_status verify_nodes(verifier *v, dlc_expr root, const char *what)
{
    if (!root || root >= v->pool->nodes.n)
        return wrong(v, "%s is missing", what);
    dlc_mark mark = dlc_arena_mark(v->scratch);
    uint8_t *marks = dlc_new_array(v->scratch, uint8_t, (size_t)root + 1);
    dlc_expr_reach(v->pool, root, marks);
    dlc_status status = DLC_OK;
    for (dlc_expr id = 1; id <= root && status == DLC_OK; id++)
        if (marks[id])
            status = verify_node(v, id);
    dlc_arena_release(v->scratch, mark);
    return status;
}

/* An i64 over symbols alone. */
static dlc_status verify_size(verifier *v, dlc_expr size, const char *what)
{
    DLC_TRY(verify_nodes(v, size, what));
    uint64_t *axes = dlc_new_array(v->scratch, uint64_t, (v->kernel->axes.n + 63) / 64);
    dlc_expr_axes(v->pool, size, axes);
    uint64_t any = 0;
    for (uint32_t w = 0; w < (v->kernel->axes.n + 63) / 64; w++)
        any |= axes[w];
    if (any || dlc_expr_has_load(v->pool, size) || dtype_of(v, size) != DLC_I64)
        return wrong(v, "%s is no i64 over symbols", what);
    return DLC_OK;
}

static dlc_status verify_head(verifier *v)
{
    const dlc_kernel *k = v->kernel;
    for (uint32_t i = 0; i < k->symbols.n; i++)
        if (k->symbols.data[i].lo > k->symbols.data[i].hi)
            return wrong(v, "symbol '%s' has no values", k->symbols.data[i].name);
    for (uint32_t a = 0; a < k->axes.n; a++)
        DLC_TRY(verify_size(v, k->axes.data[a].extent, k->axes.data[a].name));
    for (uint32_t b = 0; b < k->buffers.n; b++) {
        const dlc_buffer *buffer = &k->buffers.data[b];
        if (buffer->type.rank > DLC_MAX_RANK || buffer->type.dtype == DLC_NONE)
            return wrong(v, "buffer '%s' has no type", buffer->name);
        for (uint32_t d = 0; d < buffer->type.rank; d++)
            DLC_TRY(verify_size(v, buffer->type.dims[d], buffer->name));
        for (uint32_t i = 0; i < buffer->layout.nparts; i++)
            if (buffer->layout.part[i].dim >= buffer->type.rank || buffer->layout.part[i].block < 1)
                return wrong(v, "buffer '%s' of rank %u has a layout with dimension %u",
                             buffer->name, buffer->type.rank, buffer->layout.part[i].dim);
    }
    return DLC_OK;
}

/* --- loads --- */

/* A stage is read before it is done only at `axis - d`, d >= 1, along one of the reader's own axes.
 */
static int is_step_back(const verifier *v, dlc_expr load, const dlc_stage *source)
{
    for (uint32_t i = 0; i < source->axes.n; i++) {
        int64_t distance;
        dlc_expr own = dlc_expr_axis(v->kernel->pool, source->axes.data[i]);
        dlc_expr back = dlc_sub(v->kernel->pool, own, dlc_arg(v->pool, load, i));
        int is_own = 0;
        for (uint32_t a = 0; a < v->stage->axes.n; a++)
            is_own |= v->stage->axes.data[a] == source->axes.data[i];
        if (is_own && dlc_expr_is_int(v->pool, back, &distance) && distance >= 1)
            return 1;
    }
    return 0;
}

static dlc_status verify_stage_source(verifier *v, uint32_t s, dlc_expr load, uint32_t index)
{
    const dlc_stage *source = &v->kernel->stages.data[index];
    if (source->axes.n > DLC_MAX_RANK)
        return wrong(v, "stage '%s' has %u axes, more than %d", source->name, source->axes.n,
                     DLC_MAX_RANK);
    if (dlc_node_of(v->pool, load)->flags & DLC_LOAD_SECOND &&
        dlc_reduces[source->combine].naccs < 2)
        return wrong(v, "loads the second result of '%s', which has one", source->name);
    if (index >= s && !is_step_back(v, load, source))
        return wrong(v, "loads '%s', which is not computed yet, and not at an earlier step",
                     source->name);
    if (index >= s && !dlc_load_guard(v->pool, load))
        return wrong(v, "loads an earlier step of '%s' without a guard for the first",
                     source->name);
    if (index != s)
        v->used_stages[index] = 1;
    return DLC_OK;
}

static int has_symbol(const verifier *v, dlc_expr root)
{
    dlc_mark mark = dlc_arena_mark(v->scratch);
    uint8_t *marks = dlc_new_array(v->scratch, uint8_t, (size_t)root + 1);
    dlc_expr_reach(v->pool, root, marks);
    int found = 0;
    for (dlc_expr id = 1; id <= root && !found; id++)
        found = marks[id] && dlc_node_of(v->pool, id)->op == DLC_EXPR_SYM;
    dlc_arena_release(v->scratch, mark);
    return found;
}

/* Some axis beneath the expression has an extent that is no constant, or is empty. */
static int is_symbolic(const verifier *v, dlc_expr expr)
{
    for (uint32_t a = 0; a < v->kernel->axes.n; a++) {
        int64_t extent;
        if (dlc_expr_uses_axis(v->pool, expr, a) &&
            (!dlc_expr_is_int(v->pool, v->kernel->axes.data[a].extent, &extent) || extent < 1))
            return 1;
    }
    return has_symbol(v, expr);
}

/* The stage may have no points: some axis of it has an extent that is no constant, or is empty. */
static int may_be_empty(const verifier *v)
{
    const dlc_ids *lists[] = {&v->stage->axes, &v->stage->reduce};
    for (int l = 0; l < 2; l++)
        for (uint32_t i = 0; i < lists[l]->n; i++) {
            int64_t extent;
            if (!dlc_expr_is_int(v->pool, v->kernel->axes.data[lists[l]->data[i]].extent, &extent) || extent < 1)
                return 1;
        }
    return 0;
}

/* An index without guard whose interval, exact for constant extents and affine indices, leaves the
 * dimension. */
static dlc_status verify_bounds(verifier *v, dlc_expr index, dlc_expr dim, const char *name)
{
    int64_t size;
    if (!dlc_expr_is_int(v->pool, dim, &size) || dlc_expr_has_load(v->pool, index) ||
        is_symbolic(v, index) || (size == 0 && may_be_empty(v)))
        return DLC_OK;
    for (uint32_t a = 0; a < v->kernel->axes.n; a++) {
        dlc_expr coefficient, rest;
        if (!dlc_expr_linear(v->kernel->pool, index, a, &coefficient, &rest))
            return DLC_OK;
    }
    dlc_interval range =
        dlc_expr_range(v->pool, dlc_expr_simplify(v->kernel->pool, index, &v->ranges), &v->ranges);
    if (range.lo < 0 || range.hi >= size)
        return wrong(v,
                     "an index of '%s' runs from %lld to %lld, and its dimension has %lld elements",
                     name, (long long)range.lo, (long long)range.hi, (long long)size);
    return DLC_OK;
}

/* A data index whose own arithmetic keeps it in the dimension. */
static int is_clamped(const verifier *v, dlc_expr index, dlc_expr dim)
{
    dlc_interval range = dlc_expr_range(v->pool, index, &v->ranges);
    return range.lo >= 0 && range.hi < dlc_expr_range(v->pool, dim, &v->ranges).lo;
}

static dlc_status verify_load(verifier *v, uint32_t s, dlc_expr load)
{
    const dlc_kernel *k = v->kernel;
    const dlc_expr_node node = *dlc_node_of(v->pool, load);
    uint32_t index = DLC_SOURCE_INDEX(node.imm.id), rank = node.nargs - 2u;
    int is_stage = DLC_SOURCE_IS_STAGE(node.imm.id);
    if (index >= (is_stage ? k->stages.n : k->buffers.n))
        return wrong(v, "loads %s %u of %u", is_stage ? "stage" : "buffer", index,
                     is_stage ? k->stages.n : k->buffers.n);
    const char *name = is_stage ? k->stages.data[index].name : k->buffers.data[index].name;
    if (is_stage)
        DLC_TRY(verify_stage_source(v, s, load, index));
    else if (k->buffers.data[index].role == DLC_ROLE_OUT)
        return wrong(v, "loads the output '%s' instead of the stage that makes it", name);
    else
        v->used_buffers[index] = 1;
    dlc_type type = dlc_source_type(k, node.imm.id, node.flags & DLC_LOAD_SECOND);
    if (type.rank != rank || type.dtype != node.dtype)
        return wrong(v, "loads '%s', %s of rank %u, as %s with %u indices", name,
                     dlc_dtypes[type.dtype].text, type.rank, dlc_dtypes[node.dtype].text, rank);
    dlc_expr guard = dlc_arg(v->pool, load, rank), otherwise = dlc_arg(v->pool, load, rank + 1);
    if ((guard && dtype_of(v, guard) != DLC_BOOL) ||
        (otherwise && dtype_of(v, otherwise) != node.dtype))
        return wrong(v, "the guard or else value of a load of '%s' has the wrong type", name);
    for (uint32_t i = 0; i < rank; i++) {
        dlc_expr at = dlc_arg(v->pool, load, i);
        if (dtype_of(v, at) != DLC_I64)
            return wrong(v, "index %u of '%s' is %s, not i64", i, name,
                         dlc_dtypes[dtype_of(v, at)].text);
        if (guard || node.flags & DLC_LOAD_CHECKED)
            continue;
        if (dlc_expr_has_load(v->pool, at) && !is_clamped(v, at, type.dims[i]))
            return wrong(v, "index %u of '%s' depends on data and is neither checked nor guarded",
                         i, name);
        DLC_TRY(verify_bounds(v, at, type.dims[i], name));
    }
    return DLC_OK;
}

/* --- stages --- */

static uint32_t naccs(const dlc_stage *stage)
{
    return dlc_reduces[stage->combine].naccs;
}

/* Axes in range, each once among axes and reduce; allowed[axis] is set. */
static dlc_status verify_axes(verifier *v, uint8_t *allowed)
{
    const dlc_ids *lists[] = {&v->stage->axes, &v->stage->reduce};
    for (int l = 0; l < 2; l++)
        for (uint32_t i = 0; i < lists[l]->n; i++) {
            uint32_t axis = lists[l]->data[i];
            if (axis >= v->kernel->axes.n)
                return wrong(v, "runs over axis %u of %u", axis, v->kernel->axes.n);
            if (allowed[axis]++)
                return wrong(v, "runs over the axis '%s' twice", v->kernel->axes.data[axis].name);
            v->used_axes[axis] = 1;
        }
    return DLC_OK;
}

static dlc_status verify_expr(verifier *v, uint32_t s, dlc_expr root, const uint8_t *allowed,
                              const char *what)
{
    DLC_TRY(verify_nodes(v, root, what));
    uint8_t *marks = dlc_new_array(v->scratch, uint8_t, (size_t)root + 1);
    dlc_expr_reach(v->pool, root, marks);
    for (dlc_expr id = 1; id <= root; id++) {
        const dlc_expr_node *node = dlc_node_of(v->pool, id);
        if (!marks[id])
            continue;
        if (node->op == DLC_EXPR_AXIS && !allowed[node->imm.id])
            return wrong(v, "%s depends on the axis '%s', which is none of the stage's", what,
                         v->kernel->axes.data[node->imm.id].name);
        if (node->op == DLC_EXPR_LOAD)
            DLC_TRY(verify_load(v, s, id));
    }
    return DLC_OK;
}

static dlc_status verify_store(verifier *v, uint32_t s, const uint8_t *allowed)
{
    const dlc_stage *stage = v->stage;
    if (stage->buffer >= v->kernel->buffers.n ||
        v->kernel->buffers.data[stage->buffer].role != DLC_ROLE_OUT)
        return wrong(v, "stores to what is no output");
    const dlc_buffer *buffer = &v->kernel->buffers.data[stage->buffer];
    if (stage->store.n != buffer->type.rank || stage->second >= naccs(stage) ||
        stage->dtype[stage->second] != buffer->type.dtype)
        return wrong(v, "stores %s with %u indices into '%s', %s of rank %u",
                     dlc_dtypes[stage->dtype[stage->second]].text, stage->store.n, buffer->name,
                     dlc_dtypes[buffer->type.dtype].text, buffer->type.rank);
    for (uint32_t d = 0; d < stage->store.n; d++) {
        dlc_expr at = stage->store.data[d];
        DLC_TRY(verify_expr(v, s, at, allowed, "a store index"));
        if (dtype_of(v, at) != DLC_I64)
            return wrong(v, "store index %u is %s, not i64", d, dlc_dtypes[dtype_of(v, at)].text);
        if (stage->update)
            continue;
        if (dlc_expr_has_load(v->pool, at))
            return wrong(v, "store index %u depends on data, which only an update may", d);
        DLC_TRY(verify_bounds(v, at, buffer->type.dims[d], buffer->name));
    }
    return DLC_OK;
}

static dlc_status verify_stage(verifier *v, uint32_t s)
{
    const dlc_stage *stage = v->stage;
    uint8_t *allowed = dlc_new_array(v->scratch, uint8_t, v->kernel->axes.n);
    if (stage->combine >= DLC_REDUCE_COUNT || stage->update > DLC_UPDATE_MAX)
        return wrong(v, "combines by an unknown rule");
    if (stage->combine == DLC_REDUCE_NONE && stage->reduce.n)
        return wrong(v, "names reduced axes but no way to combine them");
    DLC_TRY(verify_axes(v, allowed));
    for (uint32_t a = 0; a < naccs(stage); a++) {
        DLC_TRY(verify_expr(v, s, stage->value[a], allowed, "the value"));
        if (dtype_of(v, stage->value[a]) != stage->dtype[a])
            return wrong(v, "has a value of type %s and says %s",
                         dlc_dtypes[dtype_of(v, stage->value[a])].text,
                         dlc_dtypes[stage->dtype[a]].text);
    }
    if (naccs(stage) > 1 && stage->dtype[1] != DLC_I64)
        return wrong(v, "has an index of type %s, not i64", dlc_dtypes[stage->dtype[1]].text);
    if (stage->buffer == DLC_NO_BUFFER)
        return DLC_OK;
    memset(allowed, 0, v->kernel->axes.n);
    for (uint32_t i = 0; i < stage->axes.n; i++)
        allowed[stage->axes.data[i]] = 1;
    return verify_store(v, s, allowed);
}

/* --- the whole --- */

/* The stages that store into an output have as many points as it has elements. */
static dlc_status verify_output(verifier *v, uint32_t b)
{
    dlc_pool *pool = v->kernel->pool;
    const dlc_buffer *buffer = &v->kernel->buffers.data[b];
    dlc_expr points = dlc_expr_i64(pool, 0);
    int is_scatter = 0, nstores = 0;
    for (uint32_t s = 0; s < v->kernel->stages.n; s++) {
        const dlc_stage *stage = &v->kernel->stages.data[s];
        if (stage->buffer != b)
            continue;
        dlc_expr count = dlc_expr_i64(pool, 1);
        for (uint32_t i = 0; i < stage->axes.n; i++)
            count = dlc_mul(pool, count, v->kernel->axes.data[stage->axes.data[i]].extent);
        points = dlc_add(pool, points, count);
        is_scatter |= stage->update != DLC_UPDATE_NONE;
        nstores++;
    }
    if (!nstores)
        return wrong(v, "no stage stores the output '%s'", buffer->name);
    dlc_expr elements = dlc_dims_product(pool, buffer->type.dims, buffer->type.rank);
    int64_t n, wanted;
    if (!is_scatter && dlc_expr_is_int(pool, points, &n) &&
        dlc_expr_is_int(pool, elements, &wanted) && (buffer->is_part ? n > wanted : n != wanted))
        return wrong(v, "the stages that store '%s' have %lld points for its %lld elements",
                     buffer->name, (long long)n, (long long)wanted);
    return DLC_OK;
}

static dlc_status verify_uses(verifier *v)
{
    const dlc_kernel *k = v->kernel;
    for (uint32_t s = 0; s < k->stages.n; s++)
        if (k->stages.data[s].buffer == DLC_NO_BUFFER && !v->used_stages[s])
            return wrong(v, "nothing uses the stage '%s'", k->stages.data[s].name);
    for (uint32_t b = 0; b < k->buffers.n; b++)
        if (k->buffers.data[b].role != DLC_ROLE_OUT && !v->used_buffers[b])
            return wrong(v, "nothing loads the buffer '%s'", k->buffers.data[b].name);
    for (uint32_t a = 0; a < k->axes.n; a++)
        if (!v->used_axes[a])
            return wrong(v, "no stage runs over the axis '%s'", k->axes.data[a].name);
    return DLC_OK;
}

static dlc_status verify_all(verifier *v)
{
    const dlc_kernel *k = v->kernel;
    DLC_TRY(verify_head(v));
    /* Ranges are wanted as they are now: the kernel is const for the caller, its arena takes them.
     */
    v->ranges = dlc_kernel_ranges((dlc_kernel *)(uintptr_t)k);
    for (uint32_t s = 0; s < k->stages.n; s++) {
        v->stage = &k->stages.data[s];
        DLC_TRY(verify_stage(v, s));
    }
    v->stage = NULL;
    for (uint32_t b = 0; b < k->buffers.n; b++) {
        const dlc_buffer *buffer = &k->buffers.data[b];
        if (buffer->is_bounded && (buffer->role != DLC_ROLE_CONST || !dlc_is_float(buffer->type.dtype)))
            return wrong(v, "'%s' is within a bound and no constant of floats", buffer->name);
        if (buffer->role == DLC_ROLE_OUT)
            DLC_TRY(verify_output(v, b));
    }
    return verify_uses(v);
}

dlc_status dlc_kernel_verify(const dlc_kernel *kernel, dlc_diag *diag)
{
    dlc_arena *scratch = dlc_arena_create(0);
    verifier v = {.kernel = kernel, .pool = kernel->pool, .scratch = scratch, .diag = diag};
    v.used_axes = dlc_new_array(scratch, uint8_t, kernel->axes.n);
    v.used_buffers = dlc_new_array(scratch, uint8_t, kernel->buffers.n);
    v.used_stages = dlc_new_array(scratch, uint8_t, kernel->stages.n);
    dlc_status status = verify_all(&v);
    dlc_arena_destroy(scratch);
    return status;
}
