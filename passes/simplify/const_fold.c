/*
 * Constant folding: nodes whose inputs are all constant are run by the interpreter in strict mode,
 * so the bits are those the generated code would give. Its idea is to ask first whether the result
 * is worth its bytes: what is only index arithmetic (a fill, a broadcast, a mask) and larger than
 * what it is made from stays a node, is *lazily known*, and is computed only when something that
 * must be computed here, or a contraction's weight, wants its bytes.
 *
 * Codes of few bits stay packed: what is computed of unpacked ones is several times as large.
 *
 * Nothing that could fail at run time is hidden: a node that cannot be computed stays a node.
 * Budgets (per node, per model, and on work) hold off folding bombs; a node over budget stays a
 * node, silently.
 */
#include "passes/simplify/const_fold.h"
#include "base/budget.h"
#include "ir/interp/interp.h"
#include "ir/graph/form.h"

#include <string.h>

enum {
    NODE_BYTES = 64 << 20,  /* default budget of one node, and of a model without weights */
    WEIGHT_BYTES = 1 << 30, /* for weights given as fills, or scaled: VGG-19's are 548 MiB */
    GRANT = 4,              /* times the bytes of such a weight: what compiling takes for each that a file holds */
    SMALL_BYTES = 64 << 10, /* always worth storing */
    GROWTH = 2,             /* as is what is at most so much larger than its constants */
    ELEMENTARY_COST = 16    /* expr.def: exp and the like cost at least this */
};
static const double least_work = 4e9, /* scalar evaluations that a pass may take: some ten seconds */
    work_per_byte = 4;                /* and for each byte of the model's constants: reading what is there is never a bomb */

static const dlc_tensor pending; /* marks a lazily known value that has no bytes yet */

typedef struct {
    dlc_pass_ctx *ctx;
    const dlc_tensor **lazy; /* by value id: NULL unless lazily known; &pending until computed */
    uint32_t nvalues;
} known_set;

static int is_constant(const dlc_value *value)
{
    return value->def && value->def->op == DLC_OP_CONSTANT;
}

static int is_lazy(const known_set *known, const dlc_value *value)
{
    return value->id < known->nvalues && known->lazy[value->id];
}

/* Bytes of the model's own constants. */
static size_t constants_bytes(const dlc_graph *graph)
{
    size_t total = 0;
    for (const dlc_node *node = graph->first; node && node->op == DLC_OP_CONSTANT;
         node = node->next)
        if (!dlc_add_size(total, node->outputs[0]->data->size_bytes, &total))
            return SIZE_MAX;
    return total;
}

/* The defaults are taken once, before folding adds constants of its own. */
static void set_budgets(dlc_pass_ctx *ctx)
{
    if (!ctx->fold_node_bytes)
        ctx->fold_node_bytes = NODE_BYTES;
    if (ctx->fold_total_work > 0)
        return;
    size_t constants = constants_bytes(ctx->graph);
    ctx->fold_total_work = work_per_byte * (double)constants > least_work ? work_per_byte * (double)constants : least_work;
    if (!ctx->fold_total_bytes)
        ctx->fold_total_bytes = constants > NODE_BYTES ? constants : NODE_BYTES;
}

/* --- computing one node --- */

/* Bytes of all results together; false when one is not static. */
static int results_bytes(const dlc_graph *graph, const dlc_node *node, size_t *total)
{
    *total = 0;
    for (uint32_t o = 0; o < node->noutputs; o++) {
        size_t bytes;
        if (!node->outputs[o])
            continue;
        if (!dlc_type_bytes(graph->pool, &node->outputs[o]->type, &bytes) ||
            !dlc_add_size(*total, bytes, total))
            return 0;
    }
    return 1;
}

static double points(const dlc_kernel *kernel, const dlc_ids *axes)
{
    double product = 1;
    for (uint32_t i = 0; i < axes->n; i++) {
        int64_t extent;
        if (!dlc_expr_is_int(kernel->pool, kernel->axes.data[axes->data[i]].extent, &extent))
            return 1e300;
        product *= (double)extent;
    }
    return product;
}

static int is_plain_load(const dlc_pool *pool, dlc_expr value)
{
    const dlc_expr_node *node = dlc_node_of(pool, value);
    return node->op == DLC_EXPR_LOAD && !node->flags && !dlc_load_guard(pool, value);
}

/* Steps of the interpreter for each term of a sum of numbers, or of products of two, as they lie in memory, a vector at a time: one
 * multiplies and adds, one more for each factor widens it. 0: it is no such sum. */
static double steps_of_sum(const dlc_kernel *kernel, const dlc_stage *stage)
{
    const dlc_pool *pool = kernel->pool;
    uint32_t nfactors = dlc_node_of(pool, stage->value[0])->op == DLC_EXPR_MUL ? 2 : 1;
    double steps = 1;
    if (stage->combine != DLC_REDUCE_SUM)
        return 0;
    for (uint32_t i = 0; i < nfactors; i++) {
        dlc_expr factor = nfactors > 1 ? dlc_arg(pool, stage->value[0], i) : stage->value[0];
        if (dlc_node_of(pool, factor)->op == DLC_EXPR_CAST) {
            factor = dlc_arg(pool, factor, 0);
            steps++;
        }
        if (!is_plain_load(pool, factor))
            return 0;
    }
    return steps;
}

/* Scalar evaluations, each stage taken to have its share of the expressions. */
static double kernel_work(const dlc_kernel *kernel)
{
    double work = 0, share = kernel->pool->nodes.n / (kernel->stages.n ? kernel->stages.n : 1) + 1;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const dlc_stage *stage = &kernel->stages.data[s];
        double steps = steps_of_sum(kernel, stage);
        work += (steps > 0 ? steps : share) * points(kernel, &stage->axes) * points(kernel, &stage->reduce);
    }
    return work;
}

/* No reduction and no elementary function: reading the result costs no more than computing it. */
static int is_index_arithmetic(const dlc_kernel *kernel)
{
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (kernel->stages.data[s].combine != DLC_REDUCE_NONE)
            return 0;
    for (uint32_t i = 1; i < kernel->pool->nodes.n; i++)
        if (dlc_exprs[kernel->pool->nodes.data[i].op].cost >= ELEMENTARY_COST)
            return 0;
    return 1;
}

/* The node's kernel over row-major buffers, or false. Complaints go to a diagnostic nobody reads.
 */
static int kernel_of(dlc_pass_ctx *ctx, dlc_node *node, dlc_node_kernel *result)
{
    dlc_graph *graph = ctx->graph;
    dlc_diag *diag = graph->diag, quiet;
    dlc_diag_init(&quiet, ctx->scratch);
    graph->diag = &quiet;
    dlc_status status = dlc_node_kernel_of(graph, node, ctx->scratch, result);
    graph->diag = diag;
    if (status != DLC_OK || result->kernel->symbols.n)
        return 0;
    for (uint32_t b = 0; b < result->kernel->buffers.n; b++)
        result->kernel->buffers.data[b].layout = (dlc_layout){0};
    return 1;
}

static const dlc_tensor *tensor_of(const known_set *known, const dlc_value *value)
{
    if (is_constant(value))
        return value->data;
    return known && is_lazy(known, value) ? known->lazy[value->id] : NULL;
}

static int output_of(const dlc_node *node, const dlc_value *value)
{
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o] == value)
            return (int)o;
    return -1;
}

/* Runs the kernel into fresh memory of the graph; results[] by output. */
static int run_kernel(dlc_pass_ctx *ctx, const known_set *known, const dlc_node *node,
                      const dlc_node_kernel *kernel, dlc_tensor *results)
{
    void **buffers = dlc_new_array(ctx->scratch, void *, kernel->values.n + 1);
    for (uint32_t b = 0; b < kernel->values.n; b++) {
        const dlc_value *value = kernel->values.data[b];
        int o = output_of(node, value);
        buffers[b] = o >= 0 ? (void *)results[o].bytes : (void *)tensor_of(known, value)->bytes;
    }
    dlc_diag quiet;
    dlc_diag_init(&quiet, ctx->scratch);
    dlc_interp_args args = {.buffers = buffers, .budget_bytes = 4 * ctx->fold_node_bytes};
    return dlc_interp_run(kernel->kernel, DLC_STRICT, &args, &quiet) == DLC_OK;
}

static int allocate_results(dlc_graph *graph, const dlc_node *node, dlc_tensor *results)
{
    for (uint32_t o = 0; o < node->noutputs; o++) {
        if (!node->outputs[o])
            continue;
        if (!dlc_type_bytes(graph->pool, &node->outputs[o]->type, &results[o].size_bytes))
            return 0;
        results[o].bytes = dlc_arena_bulk(graph->arena, results[o].size_bytes + 1);
    }
    return 1;
}

/* One element repeated: no interpreter for what may be hundreds of megabytes. */
static int is_fill(const dlc_node *node)
{
    if (node->op != DLC_OP_EXPAND || !is_constant(node->inputs[0]))
        return 0;
    return node->inputs[0]->data->size_bytes == dlc_dtype_bytes(node->inputs[0]->type.dtype);
}

static void run_fill(const dlc_node *node, dlc_tensor *result)
{
    const dlc_tensor *element = node->inputs[0]->data;
    uint8_t *to = (uint8_t *)result->bytes;
    size_t done = element->size_bytes;
    if (!result->size_bytes)
        return;
    memcpy(to, element->bytes, done);
    for (; done < result->size_bytes; done *= 2)
        memcpy(to + done, to, done < result->size_bytes - done ? done : result->size_bytes - done);
}

/* Largest constant the node reads: moving what is there already is never a bomb. */
static size_t largest_input(const known_set *known, const dlc_node *node)
{
    size_t largest = 0;
    for (uint32_t i = 0; i < node->ninputs; i++) {
        const dlc_tensor *tensor = node->inputs[i] ? tensor_of(known, node->inputs[i]) : NULL;
        if (tensor && tensor->size_bytes > largest)
            largest = tensor->size_bytes;
    }
    return largest;
}

static int within_budget(const dlc_pass_ctx *ctx, const known_set *known, const dlc_node *node,
                         size_t bytes)
{
    if (ctx->folded_bytes > ctx->fold_total_bytes ||
        bytes > ctx->fold_total_bytes - ctx->folded_bytes)
        return 0;
    return bytes <= ctx->fold_node_bytes || bytes <= largest_input(known, node);
}

/* Results may leave memory, and inputs may, which have been read. */
static void settle_results(dlc_graph *graph, const known_set *known, const dlc_node *node, const dlc_tensor *results)
{
    for (uint32_t o = 0; o < node->noutputs; o++) {
        dlc_arena_settle(graph->arena, (void *)(uintptr_t)results[o].bytes);
        dlc_budget_read(results[o].size_bytes);
    }
    for (uint32_t i = 0; i < node->ninputs; i++) {
        const dlc_tensor *tensor = node->inputs[i] ? tensor_of(known, node->inputs[i]) : NULL;
        dlc_budget_read(tensor ? tensor->size_bytes : 0);
    }
}

/* Runs a node whose inputs all have bytes, whatever the budget. NULL: not computable. */
static dlc_tensor *run_node(dlc_pass_ctx *ctx, const known_set *known, dlc_node *node,
                            const dlc_node_kernel *kernel)
{
    dlc_tensor *results = dlc_new_array(ctx->graph->arena, dlc_tensor, node->noutputs);
    if (!allocate_results(ctx->graph, node, results))
        return NULL;
    if (is_fill(node))
        run_fill(node, results);
    else if (!run_kernel(ctx, known, node, kernel, results))
        return NULL;
    settle_results(ctx->graph, known, node, results);
    return results;
}

static int within_work(const dlc_pass_ctx *ctx, const dlc_node *node, const dlc_node_kernel *kernel,
                       double *work)
{
    *work = is_fill(node) ? 0 : kernel_work(kernel->kernel);
    return *work <= ctx->fold_total_work - ctx->folded_work;
}

/* The same within the budget, which is charged. */
static dlc_tensor *compute(dlc_pass_ctx *ctx, const known_set *known, dlc_node *node,
                           const dlc_node_kernel *kernel)
{
    size_t bytes;
    double work;
    set_budgets(ctx);
    if (!results_bytes(ctx->graph, node, &bytes) || !within_budget(ctx, known, node, bytes) ||
        !within_work(ctx, node, kernel, &work))
        return NULL;
    dlc_tensor *results = run_node(ctx, known, node, kernel);
    if (results) {
        ctx->folded_bytes += bytes;
        ctx->folded_work += work;
    }
    return results;
}

/* Weights of a contraction have a budget of their own: the model meant them to be stored, to be
 * packed. */
static dlc_tensor *compute_weights(dlc_pass_ctx *ctx, dlc_node *node, const dlc_node_kernel *kernel)
{
    size_t bytes;
    double work;
    set_budgets(ctx);
    if (!results_bytes(ctx->graph, node, &bytes) ||
        bytes > WEIGHT_BYTES - ctx->folded_weight_bytes || !within_work(ctx, node, kernel, &work))
        return NULL;
    dlc_budget_grant(GRANT * bytes);
    dlc_tensor *results = run_node(ctx, NULL, node, kernel);
    if (results) {
        ctx->folded_weight_bytes += bytes;
        ctx->folded_work += work;
    }
    return results;
}

/* What stands for a value takes its name: both names stay unique. */
static dlc_value *take_name(dlc_value *made, dlc_value *value)
{
    const char *name = value->name;
    value->name = made->name;
    made->name = name;
    return made;
}

static dlc_value *make_constant(dlc_graph *graph, dlc_value *value, const dlc_tensor *tensor)
{
    return take_name(
        dlc_graph_constant(graph, value->name, &value->type, tensor->bytes, tensor->size_bytes),
        value);
}

static dlc_value *fold_node(dlc_pass_ctx *ctx, dlc_node *node, int are_weights)
{
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (node->inputs[i] && !is_constant(node->inputs[i]))
            return NULL;
    dlc_mark mark = dlc_arena_mark(ctx->scratch);
    dlc_node_kernel kernel;
    dlc_tensor *results = NULL;
    if (kernel_of(ctx, node, &kernel))
        results =
            are_weights ? compute_weights(ctx, node, &kernel) : compute(ctx, NULL, node, &kernel);
    dlc_arena_release(ctx->scratch, mark);
    return results ? make_constant(ctx->graph, node->outputs[0], &results[0]) : NULL;
}

dlc_value *dlc_fold(dlc_pass_ctx *ctx, dlc_node *node)
{
    return fold_node(ctx, node, 0);
}

dlc_value *dlc_fold_weights(dlc_pass_ctx *ctx, dlc_node *node)
{
    return fold_node(ctx, node, 1);
}

/* --- what is known by its content: shape arithmetic --- */

static int content_tensor(const dlc_graph *graph, const dlc_value *value, dlc_arena *arena,
                          dlc_tensor *tensor)
{
    int64_t nelems;
    if (!value->content || !dlc_type_elems(graph->pool, &value->type, &nelems))
        return 0;
    uint32_t size = dlc_dtype_bytes(value->type.dtype);
    uint8_t *bytes = dlc_arena_alloc(arena, (size_t)nelems * size + 1, 64);
    for (int64_t i = 0; i < nelems; i++) {
        dlc_scalar scalar;
        if (!dlc_expr_is_int(graph->pool, value->content[i], &scalar.i) &&
            !dlc_expr_is_float(graph->pool, value->content[i], &scalar.f))
            return 0;
        dlc_scalar_write(value->type.dtype, bytes + (size_t)i * size, scalar);
    }
    *tensor = (dlc_tensor){.bytes = bytes, .size_bytes = (size_t)nelems * size};
    return 1;
}

/* A value whose elements are expressions over symbols, as the one node that says so. */
static dlc_value *symbols_node(dlc_graph *graph, const dlc_node *node)
{
    dlc_value *value = node->outputs[0];
    int64_t nelems;
    if (node->op == DLC_OP_SYMBOLS || node->noutputs != 1 || value->type.dtype != DLC_I64 ||
        value->type.rank > 1 || !dlc_type_elems(graph->pool, &value->type, &nelems))
        return NULL;
    dlc_attr attrs[2] = {dlc_attr_dims(DLC_ATTR_DIMS, value->content, (uint32_t)nelems),
                         dlc_attr_text(DLC_ATTR_MODE, "scalar")};
    dlc_node_spec spec = {.op = DLC_OP_SYMBOLS,
                          .origin = node->origin,
                          .name = value->name,
                          .attrs = attrs,
                          .nattrs = value->type.rank ? 1 : 2,
                          .before = (dlc_node *)node};
    dlc_node *made = dlc_graph_node(graph, &spec);
    return made ? take_name(made->outputs[0], value) : NULL;
}

static dlc_value *from_content(dlc_pass_ctx *ctx, const dlc_node *node)
{
    dlc_tensor tensor;
    if (!node->outputs[0] || !node->outputs[0]->content)
        return NULL;
    if (content_tensor(ctx->graph, node->outputs[0], ctx->graph->arena, &tensor))
        return make_constant(ctx->graph, node->outputs[0], &tensor);
    return symbols_node(ctx->graph, node);
}

/* --- what is known by computing it --- */

static int all_inputs_known(const known_set *known, const dlc_node *node)
{
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (node->inputs[i] && !is_constant(node->inputs[i]) && !is_lazy(known, node->inputs[i]))
            return 0;
    return 1;
}

static size_t constant_input_bytes(const dlc_node *node)
{
    size_t total = 0;
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (node->inputs[i] && is_constant(node->inputs[i]) &&
            !dlc_add_size(total, node->inputs[i]->data->size_bytes, &total))
            return SIZE_MAX;
    return total;
}

static int is_pending(const known_set *known, const dlc_value *value)
{
    return value && is_lazy(known, value) && known->lazy[value->id] == &pending;
}

static dlc_node *pending_input(const known_set *known, const dlc_node *node)
{
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (is_pending(known, node->inputs[i]))
            return node->inputs[i]->def;
    return NULL;
}

/* Gives a lazily known node its bytes. */
static int compute_lazy(known_set *known, dlc_node *node)
{
    dlc_node_kernel kernel;
    if (!kernel_of(known->ctx, node, &kernel))
        return 0;
    dlc_tensor *results = compute(known->ctx, known, node, &kernel);
    if (!results)
        return 0;
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o])
            known->lazy[node->outputs[o]->id] = &results[o];
    return 1;
}

/* Gives every lazily known value below `node` its bytes: depth first, on a stack of our own. */
static int compute_below(known_set *known, dlc_node *node)
{
    dlc_arena *scratch = known->ctx->scratch;
    dlc_vec(dlc_node *) stack = {0};
    dlc_vec_push(scratch, &stack, node);
    while (stack.n) {
        dlc_node *top = stack.data[stack.n - 1], *below = pending_input(known, top);
        if (below) {
            dlc_vec_push(scratch, &stack, below);
            continue;
        }
        stack.n--;
        if (top != node && !compute_lazy(known, top))
            return 0;
    }
    return 1;
}

static void mark_lazy(known_set *known, const dlc_node *node)
{
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o])
            known->lazy[node->outputs[o]->id] = &pending;
}

static void replace_outputs(dlc_graph *graph, dlc_node *node, const dlc_tensor *results)
{
    for (uint32_t o = 0; o < node->noutputs; o++)
        if (node->outputs[o] && dlc_value_is_used(node->outputs[o]))
            dlc_value_replace(graph, node->outputs[o],
                              make_constant(graph, node->outputs[o], &results[o]));
    dlc_graph_erase(graph, node);
}

/* Folds a node whose inputs are known, or marks it lazily known. True when it was replaced. */
static int fold_known(known_set *known, dlc_node *node)
{
    dlc_graph *graph = known->ctx->graph;
    dlc_node_kernel kernel;
    size_t bytes;
    if (!results_bytes(graph, node, &bytes) || !kernel_of(known->ctx, node, &kernel))
        return 0;
    size_t inputs = constant_input_bytes(node);
    if (bytes > SMALL_BYTES && bytes / GROWTH > inputs && is_index_arithmetic(kernel.kernel)) {
        mark_lazy(known, node);
        return 0;
    }
    if (!within_budget(known->ctx, known, node, bytes) || !compute_below(known, node))
        return 0;
    dlc_tensor *results = compute(known->ctx, known, node, &kernel);
    if (!results)
        return 0;
    replace_outputs(graph, node, results);
    return 1;
}

/* Bytes of the largest constant that a lazily known value is made of; of values behind many others, of those seen first. */
static size_t bytes_below(const known_set *known, const dlc_value *value)
{
    enum { MOST_SEEN = 64 };
    const dlc_value *seen[MOST_SEEN] = {value};
    size_t largest = 0;
    for (uint32_t n = 1, at = 0; at < n; at++) {
        if (is_constant(seen[at])) {
            largest = seen[at]->data->size_bytes > largest ? seen[at]->data->size_bytes : largest;
            continue;
        }
        const dlc_node *node = seen[at]->def;
        for (uint32_t i = 0; i < node->ninputs && n < MOST_SEEN; i++)
            if (node->inputs[i] && (is_constant(node->inputs[i]) || is_lazy(known, node->inputs[i])))
                seen[n++] = node->inputs[i];
    }
    return largest;
}

/* Numbers made of narrower codes, which a matrix product reads as fast as it makes them: for few rows it waits for memory alone. (A
 * convolution reads each for many points of an image, and may go by Winograd's tiles.) */
static int stays_narrow(const known_set *known, const dlc_node *node, const dlc_value *value)
{
    size_t bytes = 0, below = bytes_below(known, value);
    return node->op == DLC_OP_MATMUL && below > SMALL_BYTES && dlc_type_bytes(known->ctx->graph->pool, &value->type, &bytes) &&
           bytes / GROWTH > below;
}

/* The lazily known operands of a contraction become constants. */
static uint32_t store_weights(known_set *known, const dlc_node *node)
{
    dlc_graph *graph = known->ctx->graph;
    uint32_t stored = 0;
    for (uint32_t i = 0; i < node->ninputs; i++) {
        dlc_value *value = node->inputs[i];
        if (!value || !is_lazy(known, value) || stays_narrow(known, node, value))
            continue;
        if (is_fill(value->def)) {
            const dlc_tensor *fill =
                is_pending(known, value) ? compute_weights(known->ctx, value->def, NULL) : NULL;
            known->lazy[value->id] = fill ? fill : known->lazy[value->id];
        } else if (compute_below(known, value->def) && is_pending(known, value)) {
            compute_lazy(known, value->def);
        }
        if (is_pending(known, value))
            continue;
        dlc_value_replace(graph, value, make_constant(graph, value, known->lazy[value->id]));
        stored++;
    }
    return stored;
}

static int has_lazy_input(const known_set *known, const dlc_node *node)
{
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (node->inputs[i] && is_lazy(known, node->inputs[i]))
            return 1;
    return 0;
}

static int has_used_output(const dlc_node *node)
{
    int used = 0;
    for (uint32_t o = 0; o < node->noutputs; o++) {
        if (node->outputs[o] && node->outputs[o]->nbinds)
            return 0; /* a symbol reads it: it must stay */
        used |= node->outputs[o] && dlc_value_is_used(node->outputs[o]);
    }
    return used;
}

static uint32_t visit(known_set *known, dlc_node *node)
{
    dlc_graph *graph = known->ctx->graph;
    if (node->op == DLC_OP_CONSTANT || !has_used_output(node))
        return 0;
    dlc_value *value = node->noutputs == 1 ? from_content(known->ctx, node) : NULL;
    if (value) {
        dlc_value_replace(graph, node->outputs[0], value);
        dlc_graph_erase(graph, node);
        return 1;
    }
    if (!dlc_op_is_opaque(node->op) && node->op != DLC_OP_SYMBOLS && !(dlc_ops[node->op].traits & DLC_TRAIT_UNPACKS) &&
        all_inputs_known(known, node) && fold_known(known, node))
        return 1;
    return has_lazy_input(known, node) && dlc_form_of(graph, node, known->ctx->scratch).is_contraction
               ? store_weights(known, node)
               : 0;
}

dlc_status dlc_pass_const_fold(dlc_pass_ctx *ctx)
{
    set_budgets(ctx);
    known_set known = {ctx,
                       dlc_new_array(ctx->scratch, const dlc_tensor *, ctx->graph->nvalues + 1),
                       ctx->graph->nvalues};
    dlc_mark mark = dlc_arena_mark(ctx->scratch);
    for (dlc_node *node = ctx->graph->first, *next; node; node = next) {
        next = node->next;
        ctx->changes += visit(&known, node);
        dlc_arena_release(ctx->scratch, mark);
    }
    return DLC_OK;
}
