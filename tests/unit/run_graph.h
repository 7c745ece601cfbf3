/* A whole graph interpreted node by node, on inputs full of -0.0, infinities and NaN; and two of them compared. */
#ifndef TESTS_UNIT_RUN_GRAPH_H
#define TESTS_UNIT_RUN_GRAPH_H

#include "ir/graph/op.h"
#include "ir/interp/interp.h"
#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#include <math.h>

/* --- interpreting a whole graph, node by node --- */

typedef struct {
    dlc_graph *graph;
    dlc_arena *arena;
    int64_t *symbols;
    void **buffers;    /* by value id */
    uint8_t *is_fixed; /* by value id: it depends on no input */
    int is_whole;      /* all nodes have been run */
} run;

static double special_number(uint32_t i)
{
    static const double numbers[] = {-0.0, 0.0, 1,    -1,   INFINITY, -INFINITY, NAN,
                                     6,    0.5, -2.5, 3e38, 1e-38,    100,       -7};
    uint32_t n = sizeof numbers / sizeof *numbers;
    return i % 3 ? numbers[draw(n)] : (double)draw(2000) / 100 - 10;
}

static size_t buffer_bytes(const run *r, const dlc_value *value)
{
    dlc_expr elems =
        dlc_layout_elems(r->graph->pool, value->layout, value->type.rank, value->type.dims);
    return (size_t)dlc_expr_eval(r->graph->pool, elems, r->symbols) *
           dlc_dtype_bytes(value->type.dtype);
}

static void fill_input(run *r, const dlc_value *value)
{
    size_t size = dlc_dtype_bytes(value->type.dtype), n = buffer_bytes(r, value) / size;
    for (size_t i = 0; i < n; i++) {
        dlc_scalar scalar = {.i = value->type.dtype == DLC_BOOL ? draw(2) : draw(7)};
        if (dlc_is_float(value->type.dtype))
            scalar.f = dlc_round_to(value->type.dtype, special_number((uint32_t)i));
        dlc_scalar_write(value->type.dtype, (char *)r->buffers[value->id] + i * size, scalar);
    }
}

static void *buffer_of(run *r, const dlc_value *value)
{
    if (value->data)
        return (void *)value->data->bytes;
    if (!r->buffers[value->id])
        r->buffers[value->id] = dlc_arena_alloc(r->arena, buffer_bytes(r, value) + 1, 64);
    return r->buffers[value->id];
}

/* False: an opaque operator, or an index out of range. */
static int run_node(run *r, dlc_node *node)
{
    dlc_node_kernel nk;
    dlc_diag diag;
    if (dlc_op_is_opaque(node->op))
        return 0;
    dlc_diag_init(&diag, r->arena);
    ck_assert_int_eq(dlc_node_kernel_of(r->graph, node, r->arena, &nk), DLC_OK);
    void **buffers = dlc_new_array(r->arena, void *, nk.values.n + 1);
    int64_t *symbols = dlc_new_array(r->arena, int64_t, nk.kernel->symbols.n + 1);
    for (uint32_t b = 0; b < nk.values.n; b++)
        buffers[b] = buffer_of(r, nk.values.data[b]);
    for (uint32_t s = 0; s < nk.kernel->symbols.n; s++)
        symbols[s] = dlc_expr_eval(r->graph->pool, nk.kernel->symbols.data[s].outer, r->symbols);
    dlc_interp_args args = {.buffers = buffers, .symbols = symbols};
    return dlc_interp_run(nk.kernel, DLC_STRICT, &args, &diag) == DLC_OK;
}

static int depends_on_inputs(const run *r, const dlc_node *node)
{
    for (uint32_t i = 0; i < node->ninputs; i++)
        if (node->inputs[i] && !node->inputs[i]->data && !r->is_fixed[node->inputs[i]->id])
            return 1;
    return 0;
}

/* What depends on no input is computed once: of a run of this graph that was whole (or zero), *r keeps it. */
static int run_graph(run *r, dlc_graph *graph, dlc_arena *arena, uint64_t seed)
{
    const run last = *r;
    *r = (run){graph, arena, dlc_new_array(arena, int64_t, graph->symbols.n + 1),
               dlc_new_array(arena, void *, graph->nvalues + 1), dlc_new_array(arena, uint8_t, graph->nvalues + 1), 0};
    for (uint32_t s = 0; s < graph->symbols.n; s++)
        r->symbols[s] = 3;
    random_state = seed;
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        buffer_of(r, graph->inputs.data[i]);
        fill_input(r, graph->inputs.data[i]);
    }
    for (dlc_node *node = graph->first; node; node = node->next) {
        int is_fixed = !depends_on_inputs(r, node), is_kept = is_fixed && last.is_whole;
        for (uint32_t i = 0; i < node->noutputs; i++) {
            const dlc_value *value = node->outputs[i];
            if (!value)
                continue;
            r->is_fixed[value->id] = (uint8_t)is_fixed;
            r->buffers[value->id] = is_kept ? last.buffers[value->id] : NULL;
        }
        if (node->op != DLC_OP_CONSTANT && !is_kept && !run_node(r, node))
            return 0;
    }
    return r->is_whole = 1;
}

/* --- comparing --- */

static int same_scalar(dlc_dtype dtype, dlc_scalar a, dlc_scalar b, int is_licensed)
{
    if (!dlc_is_float(dtype))
        return a.i == b.i;
    if (isnan(a.f) || isnan(b.f))
        return is_licensed || (isnan(a.f) && isnan(b.f));
    if (is_licensed)
        return a.f == b.f || fabs(a.f - b.f) <= 1e-5 * (1 + fabs(a.f)) || isinf(a.f) || isinf(b.f);
    return a.f == b.f && !signbit(a.f) == !signbit(b.f);
}

static void compare_outputs(run *a, run *b, int is_licensed, const char *what)
{
    ck_assert_uint_eq(a->graph->outputs.n, b->graph->outputs.n);
    for (uint32_t o = 0; o < a->graph->outputs.n; o++) {
        const dlc_value *va = a->graph->outputs.data[o].value,
                        *vb = b->graph->outputs.data[o].value;
        ck_assert_uint_eq(vb->layout->nparts, 0);
        size_t size = dlc_dtype_bytes(va->type.dtype), n = buffer_bytes(a, va) / size;
        ck_assert_uint_eq(n, buffer_bytes(b, vb) / size);
        for (size_t i = 0; i < n; i++) {
            dlc_scalar sa = dlc_scalar_read(va->type.dtype, (char *)buffer_of(a, va) + i * size);
            dlc_scalar sb = dlc_scalar_read(vb->type.dtype, (char *)buffer_of(b, vb) + i * size);
            if (same_scalar(va->type.dtype, sa, sb, is_licensed))
                continue;
            dlc_str text = {0};
            dlc_graph_print(a->graph, &text);
            dlc_graph_print(b->graph, &text);
            ck_abort_msg("%s: output %u element %zu is %g, then %g (as integers %lld, %lld)\n%s",
                         what, o, i, sa.f, sb.f, (long long)sa.i, (long long)sb.i,
                         dlc_str_text(&text));
        }
    }
}

#endif
