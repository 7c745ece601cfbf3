/*
 * Slices: who reads x[…, i] for i < 64 and y[…, i - 64] behind it reads one value, z[…, i], if those who make x and y store them
 * where they lie in z. The choice between sources goes, and of a concatenation alone nothing is left: its result is z.
 *
 * For that x and y are temporaries that one launch writes, and nobody else reads. A kernel that stores into a slice has an output
 * that is marked as a part; the other parts are other kernels'.
 *
 * A value that is copied as a whole, in other dimensions, is written where the copy would go.
 */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/rewrite.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SOURCES = 64, MOST_TERMS = 16 };

/* A choice between buffers along an axis: source k has the points [starts[k], starts[k + 1]). */
typedef struct {
    dlc_expr root;
    uint32_t axis, dim, n;
    uint32_t buffers[MOST_SOURCES];
    dlc_expr loads[MOST_SOURCES], rest; /* rest: what all of their guards ask beside the choice, or 0 */
    int64_t starts[MOST_SOURCES + 1];
} choice;

typedef struct {
    dlc_pass_ctx *ctx;
    dlc_module *module;
    uint32_t *nreaders, *nwriters, *writer; /* by value: steps; the last that writes it */
    uint32_t *region;                       /* by step: the mark that opens the loop or branch it stands in; 0: none */
    uint8_t *is_dropped;                    /* by step */
} slicing;

/* --- choices --- */

typedef struct {
    dlc_expr terms[MOST_TERMS];
    uint32_t n;
    int is_much;
} conjunction;

static void take_apart(const dlc_pool *pool, dlc_expr guard, conjunction *all)
{
    if (guard && dlc_node_of(pool, guard)->op == DLC_EXPR_AND) {
        take_apart(pool, dlc_arg(pool, guard, 0), all);
        take_apart(pool, dlc_arg(pool, guard, 1), all);
    } else if (guard && all->n < MOST_TERMS) {
        all->terms[all->n++] = guard;
    } else if (guard) {
        all->is_much = 1;
    }
}

/* The guard without the bounds that its place in the choice gives; the terms that are left, in the order of the pool. */
static int guard_rest(dlc_pool *pool, const choice *c, uint32_t k, dlc_expr *rest)
{
    conjunction all = {0};
    dlc_expr axis = dlc_expr_axis(pool, c->axis), bounds[2] = {dlc_le(pool, dlc_expr_i64(pool, c->starts[k]), axis),
                                                             dlc_lt(pool, axis, dlc_expr_i64(pool, c->starts[k + 1]))};
    take_apart(pool, dlc_load_guard(pool, c->loads[k]), &all);
    *rest = 0;
    for (uint32_t i = 0; i < all.n; i++)
        if (all.terms[i] != bounds[0] && all.terms[i] != bounds[1])
            *rest = *rest ? dlc_and(pool, *rest, all.terms[i]) : all.terms[i];
    return !all.is_much;
}

static int const_dim(const dlc_kernel *kernel, uint32_t buffer, uint32_t dim, int64_t *size)
{
    return dlc_expr_is_int(kernel->pool, kernel->buffers.data[buffer].type.dims[dim], size);
}

/* Load k as load 0 is, but `starts[k]` later along the dimension. */
static int is_like_first(dlc_kernel *kernel, choice *c, uint32_t k)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr load = c->loads[k], first = c->loads[0], rest;
    const dlc_buffer *buffer = &kernel->buffers.data[c->buffers[k]], *like = &kernel->buffers.data[c->buffers[0]];
    int64_t size;
    if (buffer->type.rank != like->type.rank || buffer->type.dtype != like->type.dtype || buffer->layout.nparts ||
        buffer->role != DLC_ROLE_IN || dlc_node_of(pool, load)->flags || dlc_load_else(pool, load) != dlc_load_else(pool, first))
        return 0;
    for (uint32_t d = 0; d < buffer->type.rank; d++) {
        dlc_expr index = d == c->dim ? dlc_addi(pool, dlc_expr_axis(pool, c->axis), -c->starts[k]) : dlc_arg(pool, first, d);
        if (dlc_arg(pool, load, d) != index || (d != c->dim && buffer->type.dims[d] != like->type.dims[d]))
            return 0;
    }
    for (uint32_t i = 0; i < k; i++)
        if (c->buffers[i] == c->buffers[k])
            return 0;
    return const_dim(kernel, c->buffers[k], c->dim, &size) && size == c->starts[k + 1] - c->starts[k] &&
           guard_rest(pool, c, k, &rest) && rest == c->rest;
}

static int find_dim(dlc_kernel *kernel, choice *c)
{
    int64_t size;
    for (uint32_t d = 0; d < kernel->buffers.data[c->buffers[0]].type.rank; d++)
        if (dlc_bare_axis(kernel->pool, dlc_arg(kernel->pool, c->loads[0], d)) == c->axis) {
            c->dim = d;
            for (uint32_t i = d + 1; i < kernel->buffers.data[c->buffers[0]].type.rank; i++)
                if (!const_dim(kernel, c->buffers[0], i, &size))
                    return 0;
            return guard_rest(kernel->pool, c, 0, &c->rest);
        }
    return 0;
}

static int add_source(const dlc_pool *pool, choice *c, dlc_expr load)
{
    const dlc_expr_node *node = dlc_node_of(pool, load);
    if (node->op != DLC_EXPR_LOAD || DLC_SOURCE_IS_STAGE(node->imm.id) || c->n == MOST_SOURCES)
        return 0;
    c->buffers[c->n] = (uint32_t)node->imm.id;
    c->loads[c->n++] = load;
    return 1;
}

/* select(axis < c0, load, select(axis < c1, load, … load)) */
static int match(dlc_kernel *kernel, dlc_expr root, choice *c)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr at = root;
    *c = (choice){.root = root, .axis = DLC_NO_AXIS};
    for (; dlc_node_of(pool, at)->op == DLC_EXPR_SELECT; at = dlc_arg(pool, at, 2)) {
        dlc_expr condition = dlc_arg(pool, at, 0);
        if (dlc_node_of(pool, condition)->op != DLC_EXPR_LT)
            return 0;
        uint32_t axis = dlc_bare_axis(pool, dlc_arg(pool, condition, 0));
        if (axis == DLC_NO_AXIS || (c->axis != DLC_NO_AXIS && axis != c->axis) || !add_source(pool, c, dlc_arg(pool, at, 1)) ||
            !dlc_expr_is_int(pool, dlc_arg(pool, condition, 1), &c->starts[c->n]))
            return 0;
        c->axis = axis;
    }
    if (!c->n || !add_source(pool, c, at) || !dlc_const_extent(kernel, c->axis, &c->starts[c->n]) || !find_dim(kernel, c))
        return 0;
    for (uint32_t k = 0; k < c->n; k++)
        if (c->starts[k] >= c->starts[k + 1] || !is_like_first(kernel, c, k))
            return 0;
    return 1;
}

typedef dlc_vec(choice) choices;

static int is_same(const choice *a, const choice *b)
{
    int same = a->n == b->n && a->dim == b->dim;
    for (uint32_t k = 0; same && k < a->n; k++)
        same = a->buffers[k] == b->buffers[k] && a->starts[k + 1] == b->starts[k + 1];
    return same;
}

/* The choices between the sources of the first one; none if these are read anywhere else. */
static void find_choices(dlc_kernel *kernel, dlc_arena *arena, choices *found)
{
    const uint8_t *marks = dlc_kernel_marks(kernel, arena);
    uint32_t n = kernel->pool->nodes.n, nloads = 0;
    found->n = 0;
    for (dlc_expr id = n; id-- > 1;) {
        choice c;
        if (marks[id] && dlc_node_of(kernel->pool, id)->op == DLC_EXPR_SELECT && match(kernel, id, &c) &&
            (!found->n || is_same(&c, &found->data[0])))
            dlc_vec_push(arena, found, c);
    }
    for (dlc_expr id = 1; found->n && id < n; id++)
        for (uint32_t k = 0; k < found->data[0].n && marks[id] && dlc_node_of(kernel->pool, id)->op == DLC_EXPR_LOAD; k++)
            nloads += dlc_node_of(kernel->pool, id)->imm.id == found->data[0].buffers[k];
    if (found->n && nloads != found->n * found->data[0].n)
        found->n = 0;
}

/* --- who makes the sources --- */

static void count_steps(slicing *s)
{
    const dlc_module *module = s->module;
    uint32_t most = module->values.n + module->steps.n + 1; /* a step is given one new value at most */
    s->nreaders = dlc_new_array(s->ctx->scratch, uint32_t, most);
    s->nwriters = dlc_new_array(s->ctx->scratch, uint32_t, most);
    s->writer = dlc_new_array(s->ctx->scratch, uint32_t, most);
    for (uint32_t i = 0; i < module->steps.n; i++)
        for (uint32_t v = 0; v < module->steps.data[i].nvalues; v++) {
            uint32_t value = module->steps.data[i].values[v];
            if (value == DLC_NO_VALUE)
                continue;
            int writes = dlc_step_writes(module, &module->steps.data[i], v);
            s->nreaders[value] += !writes;
            s->nwriters[value] += (uint32_t)writes;
            s->writer[value] = writes ? i : s->writer[value];
        }
}

static int64_t elems_behind(const dlc_kernel *kernel, const dlc_buffer *buffer, uint32_t dim)
{
    int64_t elems = 1, size;
    for (uint32_t d = dim + 1; d < buffer->type.rank; d++)
        elems = dlc_expr_is_int(kernel->pool, buffer->type.dims[d], &size) ? elems * size : -1;
    return elems;
}

static const dlc_kernel *kernel_of(const slicing *s, const dlc_step *step)
{
    return s->module->kernels.data[step->kernel].kernel;
}

/* In the kernel that writes it: the buffer, and its dimension of `size` that lies as the reader's does. */
static int find_written(const slicing *s, const dlc_step *step, uint32_t value, int64_t size, int64_t behind, uint32_t *buffer,
                        uint32_t *dim)
{
    const dlc_kernel *kernel = kernel_of(s, step);
    for (*buffer = 0; step->values[*buffer] != value || kernel->buffers.data[*buffer].role != DLC_ROLE_OUT;)
        ++*buffer;
    const dlc_buffer *out = &kernel->buffers.data[*buffer];
    for (uint32_t t = 0; t < kernel->stages.n; t++)
        if (kernel->stages.data[t].buffer == *buffer && kernel->stages.data[t].update != DLC_UPDATE_NONE)
            return 0;
    for (*dim = 0; *dim < out->type.rank && !out->layout.nparts && !out->is_part; ++*dim) {
        int64_t here;
        if (dlc_expr_is_int(kernel->pool, out->type.dims[*dim], &here) && here == size && elems_behind(kernel, out, *dim) == behind)
            return 1;
    }
    return 0;
}

/* Who writes the value runs before the step, as often as that does. */
static int is_written_for(const slicing *s, uint32_t value, uint32_t at)
{
    return s->nwriters[value] == 1 && s->writer[value] < at && s->region[s->writer[value]] == s->region[at];
}

static int can_slice(const slicing *s, const dlc_kernel *kernel, uint32_t at, const choice *c)
{
    const dlc_step *step = &s->module->steps.data[at];
    for (uint32_t k = 0; k < c->n; k++) {
        uint32_t value = step->values[c->buffers[k]], buffer, dim;
        const dlc_step *writer = &s->module->steps.data[s->writer[value]];
        if (s->module->values.data[value].role != DLC_VALUE_TEMP || s->module->values.data[value].skip || s->nreaders[value] != 1 || !is_written_for(s, value, at) ||
            writer->kind != DLC_STEP_LAUNCH ||
            !find_written(s, writer, value, c->starts[k + 1] - c->starts[k],
                          elems_behind(kernel, &kernel->buffers.data[c->buffers[k]], c->dim), &buffer, &dim))
            return 0;
        for (uint32_t i = 0; i < k; i++) /* a launch has one buffer for each value */
            if (s->writer[step->values[c->buffers[i]]] == s->writer[value])
                return 0;
    }
    return 1;
}

/* --- the new kernels --- */

typedef struct {
    const dlc_kernel *from;
    const choices *all;
    uint32_t whole; /* buffer */
} reading;

static dlc_expr read_whole(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    const reading *r = ctx;
    (void)args;
    for (uint32_t i = 0; i < r->all->n; i++) {
        const choice *c = &r->all->data[i];
        dlc_expr index[DLC_MAX_RANK];
        uint32_t rank = r->from->buffers.data[c->buffers[0]].type.rank;
        if (node->op != DLC_EXPR_SELECT || node->args != dlc_node_of(r->from->pool, c->root)->args)
            continue;
        for (uint32_t d = 0; d < rank; d++)
            index[d] = dlc_arg(r->from->pool, c->loads[0], d); /* one pool is a copy of the other */
        return dlc_expr_load(to, (dlc_dtype)node->dtype, r->whole, index, rank, c->rest, dlc_load_else(r->from->pool, c->loads[0]), 0);
    }
    return 0;
}

/* The reader with the whole as one buffer. */
static void make_reader(slicing *s, const dlc_kernel *from, const choices *all, dlc_rewritten *out)
{
    const choice *c = &all->data[0];
    dlc_kernel *kernel = dlc_kernel_clone(from, s->module->arena);
    dlc_buffer whole = from->buffers.data[c->buffers[0]];
    whole.type.dims[c->dim] = dlc_expr_i64(kernel->pool, c->starts[c->n]);
    whole.name = dlc_arena_printf(kernel->arena, "%s.whole", whole.name);
    reading r = {from, all, dlc_rewrite_insert(kernel, whole)};
    for (uint32_t t = 0; t < kernel->stages.n; t++) {
        dlc_expr *root;
        for (uint32_t i = 0; (root = dlc_stage_root(&kernel->stages.data[t], i)); i++)
            *root = *root ? dlc_expr_rewrite(kernel->pool, from->pool, *root, read_whole, &r) : 0;
    }
    *out = (dlc_rewritten){0};
    dlc_rewrite_add_part(kernel, r.whole, 1, out);
}

/* y[i,j] = x[i, j], in the same order. */
static int is_copy(const dlc_kernel *kernel)
{
    const dlc_stage *stage = &kernel->stages.data[0];
    const dlc_pool *pool = kernel->pool;
    if (kernel->stages.n != 1 || kernel->buffers.n != 2 || stage->reduce.n || stage->update || stage->value[1] ||
        dlc_node_of(pool, stage->value[0])->op != DLC_EXPR_LOAD || dlc_load_guard(pool, stage->value[0]) ||
        dlc_node_of(pool, stage->value[0])->flags || dlc_load_rank(pool, stage->value[0]) != stage->store.n ||
        kernel->buffers.data[0].layout.nparts || kernel->buffers.data[1].layout.nparts || kernel->buffers.data[1].is_part)
        return 0;
    for (uint32_t d = 0; d < stage->store.n; d++)
        if (dlc_arg(pool, stage->value[0], d) != stage->store.data[d] ||
            kernel->buffers.data[0].type.dims[d] != kernel->buffers.data[1].type.dims[d])
            return 0;
    return 1;
}

static dlc_expr outer_size(void *ctx, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    (void)to, (void)args;
    return node->op == DLC_EXPR_SYM ? ((const dlc_expr *)ctx)[node->imm.id] : 0;
}

static uint32_t make_whole(slicing *s, const dlc_kernel *kernel, uint32_t buffer, dlc_expr *symbols)
{
    dlc_module_value value = {.name = kernel->buffers.data[buffer].name, .type = kernel->buffers.data[buffer].type,
                              .origin = DLC_NO_VALUE};
    for (uint32_t d = 0; d < value.type.rank; d++)
        value.type.dims[d] = dlc_expr_rewrite(s->module->pool, kernel->pool, value.type.dims[d], outer_size, symbols);
    return dlc_module_add_value(s->module, &value);
}

/* The launch that made source k stores it into the whole. */
static void store_slice(slicing *s, const dlc_kernel *reader, const choice *c, uint32_t k, uint32_t value, uint32_t whole)
{
    dlc_step *step = &s->module->steps.data[s->writer[value]];
    uint32_t buffer, dim;
    (void)find_written(s, step, value, c->starts[k + 1] - c->starts[k],
                       elems_behind(reader, &reader->buffers.data[c->buffers[k]], c->dim), &buffer, &dim);
    dlc_kernel *kernel = dlc_kernel_clone(kernel_of(s, step), s->module->arena);
    kernel->buffers.data[buffer].type.dims[dim] = dlc_expr_i64(kernel->pool, c->starts[c->n]);
    kernel->buffers.data[buffer].is_part = 1;
    for (uint32_t t = 0; t < kernel->stages.n; t++)
        if (kernel->stages.data[t].buffer == buffer)
            kernel->stages.data[t].store.data[dim] = dlc_addi(kernel->pool, kernel->stages.data[t].store.data[dim], c->starts[k]);
    step->values = dlc_arena_copy(s->module->arena, step->values, step->nvalues * sizeof *step->values);
    step->values[buffer] = whole;
    step->kernel = dlc_module_add_kernel(s->module, kernel);
}

/* A step that is gone was the last writer's as well, for those who look for its nodes. */
static void name_both(slicing *s, dlc_step *step, const dlc_step *gone)
{
    const char **nodes = dlc_new_array(s->ctx->scratch, const char *, step->nnodes + gone->nnodes + 1);
    for (uint32_t i = 0; i < step->nnodes + gone->nnodes; i++)
        nodes[i] = i < step->nnodes ? step->nodes[i] : gone->nodes[i - step->nnodes];
    dlc_step_set_nodes(s->module, step, nodes, step->nnodes + gone->nnodes);
}

static void slice(slicing *s, uint32_t at, const dlc_kernel *reader, const choices *all)
{
    const choice *c = &all->data[0];
    dlc_rewritten out;
    dlc_step old = s->module->steps.data[at];
    make_reader(s, reader, all, &out);
    const dlc_rewrite_part *part = &out.parts.data[0];
    uint32_t whole = DLC_NO_VALUE, last = s->writer[old.values[c->buffers[c->n - 1]]];
    dlc_expr *symbols = dlc_new_array(s->module->arena, dlc_expr, part->symbols.n + 1);
    uint32_t *values = dlc_new_array(s->module->arena, uint32_t, part->buffers.n + 1);
    for (uint32_t i = 0; i < part->symbols.n; i++)
        symbols[i] = old.symbols[part->symbols.data[i]];
    for (uint32_t b = 0; b < part->buffers.n; b++)
        values[b] = part->buffers.data[b] & DLC_REWRITE_MADE ? DLC_NO_VALUE : old.values[part->buffers.data[b]];
    if (is_copy(part->kernel)) {
        whole = values[1];
        s->is_dropped[at] = 1;
        name_both(s, &s->module->steps.data[last], &old);
    }
    for (uint32_t b = 0; b < part->buffers.n && whole == DLC_NO_VALUE; b++)
        if (values[b] == DLC_NO_VALUE) {
            whole = values[b] = make_whole(s, part->kernel, b, symbols);
            s->nreaders[whole] = 1;
        }
    s->nwriters[whole] = c->n; /* so it is no slice of another */
    for (uint32_t k = 0; k < c->n; k++)
        store_slice(s, reader, c, k, old.values[c->buffers[k]], whole);
    if (s->is_dropped[at])
        return;
    dlc_step *step = &s->module->steps.data[at];
    step->kernel = dlc_module_add_kernel(s->module, part->kernel);
    step->values = values;
    step->nvalues = part->buffers.n;
    step->symbols = symbols;
    step->nsymbols = part->symbols.n;
}

/* --- whole values --- */

/* Elements, where both types count them by the same expression: then what one's size waits for the other's does, too. */
static int are_as_many(dlc_module *module, const dlc_type *a, const dlc_type *b)
{
    dlc_expr elems[2] = {dlc_expr_i64(module->pool, 1), dlc_expr_i64(module->pool, 1)};
    for (uint32_t d = 0; d < a->rank; d++)
        elems[0] = dlc_mul(module->pool, elems[0], a->dims[d]);
    for (uint32_t d = 0; d < b->rank; d++)
        elems[1] = dlc_mul(module->pool, elems[1], b->dims[d]);
    return elems[0] == elems[1];
}

static int has_dims_of(const dlc_type *a, const dlc_type *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof *a->dims);
}

/* Kernels take the value's bytes whatever its dimensions, and one buffer for each value; steps in C ask for its dimensions and that it be
 * row-major, others for its type. */
static int can_stand_for(const slicing *s, uint32_t at, uint32_t from, uint32_t to)
{
    const dlc_module_value *source = dlc_module_value_of(s->module, from), *result = dlc_module_value_of(s->module, to);
    int is_for_steps = dlc_module_is_row_major(result) && has_dims_of(&source->type, &result->type);
    for (uint32_t i = 0; i < s->module->steps.n; i++) {
        const dlc_step *step = &s->module->steps.data[i];
        int has_from = 0, has_to = 0;
        for (uint32_t v = 0; v < step->nvalues && !s->is_dropped[i]; v++) {
            has_from |= step->values[v] == from;
            has_to |= step->values[v] == to && i != at;
        }
        if (has_from && (has_to || (step->kind != DLC_STEP_LAUNCH && (step->kind != DLC_STEP_OPAQUE || !is_for_steps))))
            return 0;
    }
    return 1;
}

/* What one step writes and the next copies as a whole, a scatter's result in other dimensions, is written where it goes. */
static int try_copy(slicing *s, uint32_t at)
{
    const dlc_step *step = &s->module->steps.data[at];
    if (step->kind != DLC_STEP_LAUNCH || !is_copy(kernel_of(s, step)))
        return 0;
    uint32_t from = step->values[0], to = step->values[1];
    const dlc_module_value *source = dlc_module_value_of(s->module, from), *result = dlc_module_value_of(s->module, to);
    if (from == to || source->role != DLC_VALUE_TEMP || source->skip || (result->role != DLC_VALUE_TEMP && result->role != DLC_VALUE_OUTPUT) ||
        result->skip || !is_written_for(s, from, at) || s->nwriters[to] != 1 || source->type.dtype != result->type.dtype ||
        !are_as_many(s->module, &source->type, &result->type) || !can_stand_for(s, at, from, to))
        return 0;
    for (uint32_t i = 0; i < s->module->steps.n; i++)
        for (uint32_t v = 0; v < s->module->steps.data[i].nvalues; v++)
            if (s->module->steps.data[i].values[v] == from)
                s->module->steps.data[i].values[v] = to;
    s->is_dropped[at] = 1;
    s->writer[to] = s->writer[from];
    s->nreaders[to] += s->nreaders[from] - 1;
    return 1;
}

/* --- the pass --- */

static int has_choice(const dlc_kernel *kernel)
{
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++)
        if (dlc_node_of(kernel->pool, id)->op == DLC_EXPR_SELECT)
            return 1;
    return 0;
}

static int try_step(slicing *s, uint32_t at)
{
    const dlc_step *step = &s->module->steps.data[at];
    choices all = {0};
    if (step->kind != DLC_STEP_LAUNCH || !has_choice(kernel_of(s, step)))
        return 0;
    dlc_kernel *kernel = dlc_kernel_clone(kernel_of(s, step), s->ctx->scratch); /* matching grows its pool */
    find_choices(kernel, s->ctx->scratch, &all);
    if (!all.n || !can_slice(s, kernel, at, &all.data[0]))
        return 0;
    slice(s, at, kernel, &all);
    return 1;
}

static void find_regions(slicing *s)
{
    dlc_ids open = {0};
    s->region = dlc_new_array(s->ctx->scratch, uint32_t, s->module->steps.n + 1);
    for (uint32_t i = 0; i < s->module->steps.n; i++) {
        uint8_t kind = s->module->steps.data[i].kind;
        if (kind == DLC_STEP_ELSE || kind == DLC_STEP_END)
            open.n--;
        s->region[i] = open.n ? open.data[open.n - 1] : 0;
        if (kind == DLC_STEP_ELSE || kind == DLC_STEP_IF || kind == DLC_STEP_LOOP)
            dlc_vec_push(s->ctx->scratch, &open, i + 1);
    }
}

static void drop_steps(slicing *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->module->steps.n; i++)
        if (!s->is_dropped[i])
            s->module->steps.data[n++] = s->module->steps.data[i];
    s->module->steps.n = n;
}

dlc_status dlc_pass_slices(dlc_pass_ctx *ctx)
{
    slicing s = {.ctx = ctx, .module = ctx->module};
    s.is_dropped = dlc_new_array(ctx->scratch, uint8_t, ctx->module->steps.n + 1);
    count_steps(&s);
    find_regions(&s);
    for (uint32_t i = 0; i < ctx->module->steps.n; i++)
        ctx->changes += (uint32_t)try_copy(&s, i);
    for (uint32_t i = 0; i < ctx->module->steps.n; i++)
        while (!s.is_dropped[i] && try_step(&s, i))
            ctx->changes++;
    if (ctx->changes) {
        drop_steps(&s);
        dlc_module_drop_kernels(ctx->module);
    }
    return DLC_OK;
}
