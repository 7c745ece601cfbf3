/*
 * Passes over graphs keep what is computed: every golden input, and random graphs made of what the
 * rules look for, are interpreted before and after on inputs full of -0.0, infinities and NaN.
 * EXACT rules must give the same bits (any NaN for a NaN), LICENSED ones nearly.
 */
#include "passes/pass.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/run_graph.h"
#include "tests/unit/suite.h"

static int is_licensed_rule(const char *name)
{
    static const char *const licensed[] = {
#define DLC_RULE(rule, op, class_, algebra) #class_ " " #rule,
#include "passes/simplify/integer_rules.def"
#include "passes/simplify/simplify_rules.def"
#undef DLC_RULE
        NULL};
    for (uint32_t i = 0; licensed[i]; i++)
        if (!strcmp(strchr(licensed[i], ' ') + 1, name))
            return licensed[i][0] == 'L';
    ck_abort_msg("no rule is called %s", name);
    return 0;
}

/* Runs the passes on `after`, and both graphs on one input. */
static void check_equal(dlc_graph *before, dlc_graph *after, const char *passes, dlc_arena *arena,
                        const char *what)
{
    run a = {0}, b = {0};
    dlc_diag *diag = after->diag;
    dlc_arena *scratch = dlc_arena_create(0);
    dlc_pass_ctx ctx = {.graph = after, .scratch = scratch, .diag = diag};
    dlc_pipeline_options options = {.passes = passes, .verify_each = 1};
    dlc_status status = dlc_pipeline_run(&ctx, &options);
    ck_assert_msg(status == DLC_OK, "%s: %s", what, diag->nmessages ? diag->messages[0].text : "");
    int is_licensed = 0;
    for (uint32_t i = 0; i < ctx.rules.n; i++)
        is_licensed |= is_licensed_rule(ctx.rules.data[i].rule);
    for (uint64_t seed = 1; seed <= 3; seed++)
        if (run_graph(&a, before, arena, seed * 88172645463325252u) &&
            run_graph(&b, after, arena, seed * 88172645463325252u))
            compare_outputs(&a, &b, is_licensed, what);
    dlc_arena_destroy(scratch);
}

/* --- golden inputs --- */

static const char *const folders[] = {"integers", "simplify", "const_fold", "cse", "dce", "layout"};

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = calloc(1, 1 << 16);
    size_t n = fread(text, 1, (1 << 16) - 1, file);
    fclose(file);
    text[n] = 0;
    char *expect = strstr(text, "\n# expect:");
    if (expect)
        expect[1] = 0;
    return text;
}

static void check_file(const char *path)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_graph *before, *after;
    char *text = read_file(path);
    dlc_diag_init(&diag, arena);
    ck_assert_int_eq(dlc_graph_parse(text, path, arena, &diag, &before), DLC_OK);
    ck_assert_int_eq(dlc_graph_parse(text, path, arena, &diag, &after), DLC_OK);
    check_equal(before, after, "dce,cse,integers,const_fold,simplify,const_fold,simplify,cse,dce,layout",
                arena, path);
    free(text);
    dlc_arena_destroy(arena);
}

START_TEST(golden_inputs_compute_the_same)
{
    char path[512];
    snprintf(path, sizeof path, "tests/golden/%s", folders[_i]);
    DIR *folder = opendir(path);
    ck_assert_msg(folder != NULL, "%s", path);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!strstr(entry->d_name, ".dlc") || !strcmp(entry->d_name, "work.dlc") ||
            !strcmp(entry->d_name, "bomb.dlc"))
            continue; /* those are large on purpose */
        snprintf(path, sizeof path, "tests/golden/%s/%s", folders[_i], entry->d_name);
        check_file(path);
    }
    closedir(folder);
}
END_TEST

/* --- random graphs --- */

enum { MOST_VALUES = 64 };
typedef struct {
    dlc_graph *graph;
    dlc_value *values[MOST_VALUES];
    uint32_t n;
} maker;

static dlc_value *make(maker *m, dlc_opcode op, dlc_value *const *inputs, uint32_t ninputs,
                       const dlc_attr *attrs, uint32_t nattrs)
{
    dlc_node_spec spec = {
        .op = op, .inputs = inputs, .ninputs = ninputs, .attrs = attrs, .nattrs = nattrs};
    dlc_node *node = dlc_graph_node(m->graph, &spec);
    ck_assert_msg(node != NULL, "%s", m->graph->diag->messages[0].text);
    m->values[m->n++] = node->outputs[0];
    return node->outputs[0];
}

static int64_t extent(const maker *m, const dlc_value *value, uint32_t d)
{
    return dlc_expr_value(m->graph->pool, value->type.dims[d]);
}

/* A constant that broadcasts to the value: a number, a vector along one dimension, or a whole
 * tensor. */
static dlc_value *random_constant(maker *m, const dlc_value *like)
{
    static const float favourites[] = {-0.0f, 0, 1, -1, 2, 3, 6};
    dlc_type type = {.dtype = DLC_F32, .rank = draw(2) ? like->type.rank : 0};
    uint32_t shape = draw(3);
    int64_t n = 1;
    for (uint32_t d = 0; d < type.rank; d++) {
        int64_t size = shape == 0 || (shape == 1 && d != draw(type.rank)) ? 1 : extent(m, like, d);
        type.dims[d] = dlc_expr_i64(m->graph->pool, size);
        n *= size;
    }
    float *bytes = dlc_new_array(m->graph->arena, float, (size_t)n + 1);
    float favourite = favourites[draw(7)];
    uint32_t is_mixed = draw(2);
    for (int64_t i = 0; i < n; i++)
        bytes[i] = is_mixed ? favourites[draw(7)] : favourite;
    return dlc_graph_constant(m->graph, "c", &type, bytes, (size_t)n * sizeof *bytes);
}

static dlc_value *same_shape(maker *m, const dlc_value *like)
{
    for (uint32_t tries = 0; tries < 8; tries++) {
        dlc_value *value = m->values[draw(m->n)];
        if (value->type.rank == like->type.rank &&
            !memcmp(value->type.dims, like->type.dims, like->type.rank * sizeof(dlc_expr)))
            return value;
    }
    return random_constant(m, like);
}

static void make_unary(maker *m, dlc_value *x)
{
    static const dlc_opcode ops[] = {DLC_OP_NEG,  DLC_OP_RELU,  DLC_OP_ABS, DLC_OP_FLOOR,
                                     DLC_OP_SIGN, DLC_OP_ROUND, DLC_OP_SQRT};
    make(m, ops[draw(7)], &x, 1, NULL, 0);
}

static void make_binary(maker *m, dlc_value *x)
{
    static const dlc_opcode ops[] = {DLC_OP_ADD, DLC_OP_SUB, DLC_OP_MUL,
                                     DLC_OP_DIV, DLC_OP_MAX, DLC_OP_MIN};
    dlc_value *inputs[2] = {x, draw(2) ? random_constant(m, x) : same_shape(m, x)};
    if (draw(4) == 0 && inputs[1]->type.rank <= x->type.rank)
        inputs[0] = inputs[1], inputs[1] = x;
    make(m, ops[draw(6)], inputs, 2, NULL, 0);
}

static void make_power(maker *m, dlc_value *x)
{
    static const double exponents[] = {1, 2, -1};
    dlc_value *inputs[2] = {x, dlc_graph_scalar(m->graph, DLC_F32, exponents[draw(3)])};
    make(m, DLC_OP_POW, inputs, 2, NULL, 0);
}

static void make_clip(maker *m, dlc_value *x)
{
    dlc_value *inputs[3] = {
        x, draw(3) ? dlc_graph_scalar(m->graph, DLC_F32, (double)draw(6) - 3) : NULL,
        draw(3) ? dlc_graph_scalar(m->graph, DLC_F32, (double)draw(6)) : NULL};
    make(m, DLC_OP_CLIP, inputs, 3, NULL, 0);
}

static void make_transpose(maker *m, dlc_value *x)
{
    int64_t perm[DLC_MAX_RANK] = {0};
    for (uint32_t d = 0; d < x->type.rank; d++) {
        uint32_t at = draw(d + 1);
        perm[d] = perm[at];
        perm[at] = d;
    }
    dlc_attr attr = dlc_attr_ints(m->graph, DLC_ATTR_PERM, perm, x->type.rank);
    make(m, DLC_OP_TRANSPOSE, &x, 1, &attr, 1);
}

/* Two dimensions that are neighbours become one, or one of extent 1 comes in. */
static void make_reshape(maker *m, dlc_value *x)
{
    dlc_expr dims[DLC_MAX_RANK];
    uint32_t rank = 0, at = draw(x->type.rank + 1u), is_insert = x->type.rank < 5 && draw(2);
    for (uint32_t d = 0; d <= x->type.rank; d++) {
        if (is_insert && d == at)
            dims[rank++] = dlc_expr_i64(m->graph->pool, 1);
        if (d == x->type.rank)
            break;
        if (!is_insert && d == at && d > 0)
            dims[rank - 1] = dlc_mul(m->graph->pool, dims[rank - 1], x->type.dims[d]);
        else
            dims[rank++] = x->type.dims[d];
    }
    dlc_attr attr = dlc_attr_dims(DLC_ATTR_DIMS, dims, rank);
    make(m, DLC_OP_RESHAPE, &x, 1, &attr, 1);
}

static void make_slice(maker *m, dlc_value *x)
{
    int64_t starts[DLC_MAX_RANK], steps[DLC_MAX_RANK], dims[DLC_MAX_RANK];
    for (uint32_t d = 0; d < x->type.rank; d++) {
        int64_t size = extent(m, x, d);
        int is_whole = size < 2 || draw(2);
        dims[d] = is_whole ? size : 1 + draw((uint32_t)size);
        steps[d] = draw(4) || dims[d] > size ? 1 : -1;
        starts[d] =
            (int64_t)draw((uint32_t)(size - dims[d] + 1)) + (steps[d] < 0 ? dims[d] - 1 : 0);
    }
    dlc_attr attrs[3] = {dlc_attr_ints(m->graph, DLC_ATTR_STARTS, starts, x->type.rank),
                         dlc_attr_ints(m->graph, DLC_ATTR_STEPS, steps, x->type.rank),
                         dlc_attr_ints(m->graph, DLC_ATTR_DIMS, dims, x->type.rank)};
    make(m, DLC_OP_SLICE, &x, 1, attrs, 3);
}

static void make_concat(maker *m, dlc_value *x)
{
    dlc_value *inputs[2] = {x, same_shape(m, x)};
    int64_t elems;
    dlc_type_elems(m->graph->pool, &x->type, &elems);
    if (inputs[1]->type.rank != x->type.rank || dlc_value_nuses(inputs[1]) == 0 || elems > 2000)
        inputs[1] = x;
    if (elems > 2000 || memcmp(inputs[1]->type.dims, x->type.dims, x->type.rank * sizeof(dlc_expr)))
        return;
    dlc_attr attr = dlc_attr_int(DLC_ATTR_AXIS, draw(x->type.rank));
    make(m, DLC_OP_CONCAT, inputs, 2, &attr, 1);
}

static void make_pad(maker *m, dlc_value *x)
{
    int64_t pads[2 * DLC_MAX_RANK];
    for (uint32_t d = 0; d < 2u * x->type.rank; d++)
        pads[d] = draw(3) ? 0 : 1;
    dlc_attr attr = dlc_attr_ints(m->graph, DLC_ATTR_PADS, pads, 2u * x->type.rank);
    make(m, DLC_OP_PAD, &x, 1, &attr, 1);
}

static void make_expand(maker *m, dlc_value *x)
{
    dlc_expr dims[DLC_MAX_RANK];
    for (uint32_t d = 0; d < x->type.rank; d++)
        dims[d] = extent(m, x, d) == 1 && draw(2) ? dlc_expr_i64(m->graph->pool, 1 + draw(3))
                                                  : x->type.dims[d];
    dlc_attr attr = dlc_attr_dims(DLC_ATTR_DIMS, dims, x->type.rank);
    make(m, DLC_OP_EXPAND, &x, 1, &attr, 1);
}

static void make_casts(maker *m, dlc_value *x)
{
    static const dlc_dtype between[] = {DLC_F32, DLC_F64, DLC_F16, DLC_BF16};
    dlc_attr there = dlc_attr_int(DLC_ATTR_DTYPE, between[draw(4)]),
             back = dlc_attr_int(DLC_ATTR_DTYPE, DLC_F32);
    dlc_value *y = make(m, DLC_OP_CAST, &x, 1, &there, 1);
    m->n--;
    make(m, DLC_OP_CAST, &y, 1, &back, 1);
}

static void make_gather(maker *m, dlc_value *x)
{
    uint32_t axis = draw(x->type.rank);
    int64_t size = extent(m, x, axis), start = draw((uint32_t)size);
    int64_t indices[2] = {draw(2) ? start : start - size, draw((uint32_t)size)};
    dlc_value *inputs[2] = {x, dlc_graph_ints(m->graph, indices, 1 + draw(2))};
    dlc_attr attr = dlc_attr_int(DLC_ATTR_AXIS, axis);
    make(m, DLC_OP_GATHER, inputs, 2, &attr, 1);
}

static void make_reduce(maker *m, dlc_value *x)
{
    int64_t axes[DLC_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t d = 0; d < x->type.rank; d++)
        if (draw(2))
            axes[n++] = d;
    if (!n || n == x->type.rank)
        return;
    dlc_value *y =
        make(m, DLC_OP_ABS, &x, 1, NULL, 0); /* a zero's sign may follow the order of a reduction */
    dlc_attr attrs[2] = {dlc_attr_ints(m->graph, DLC_ATTR_AXES, axes, n),
                         dlc_attr_int(DLC_ATTR_KEEPDIMS, draw(2))};
    make(m, DLC_OP_REDUCE_MAX, &y, 1, attrs, 2);
}

static void make_graph(maker *m, dlc_graph *graph, uint32_t nsteps)
{
    static void (*const steps[])(maker *, dlc_value *) = {
        make_unary,     make_binary,    make_binary,  make_binary, make_power,  make_clip,
        make_transpose, make_transpose, make_reshape, make_slice,  make_concat, make_pad,
        make_expand,    make_casts,     make_gather,  make_reduce};
    *m = (maker){.graph = graph};
    dlc_type type = {.dtype = DLC_F32, .rank = 3};
    for (uint32_t i = 0; i < 2; i++) {
        static const int64_t dims[] = {2, 3, 4};
        for (uint32_t d = 0; d < 3; d++)
            type.dims[d] = dlc_expr_i64(graph->pool, dims[d]);
        m->values[m->n++] = dlc_graph_input(graph, i ? "z" : "x", &type);
    }
    while (nsteps-- && m->n < MOST_VALUES - 2) {
        dlc_value *x = m->values[draw(3) ? m->n - 1 : draw(m->n)];
        steps[x->type.rank ? draw(sizeof steps / sizeof *steps) : 0](m, x);
    }
    dlc_graph_output(graph, "y", m->values[m->n - 1]);
    dlc_graph_output(graph, "w", m->values[draw(m->n)]);
}

START_TEST(random_graphs_compute_the_same)
{
    for (uint32_t round = 0; round < 40; round++) {
        dlc_arena *arena = dlc_arena_create(0);
        dlc_graph *graphs[2];
        dlc_diag diag;
        maker m;
        char what[64];
        uint64_t seed = 1000003u * (uint64_t)(_i + 1) + round;
        dlc_diag_init(&diag, arena);
        for (uint32_t g = 0; g < 2; g++) {
            graphs[g] = dlc_graph_create(arena, &diag, "random");
            random_state = seed;
            make_graph(&m, graphs[g], 30);
        }
        snprintf(what, sizeof what, "random graph %d.%u", _i, round);
        check_equal(graphs[0], graphs[1],
                    "dce,cse,integers,const_fold,simplify,const_fold,simplify,cse,dce,layout", arena, what);
        dlc_arena_destroy(arena);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rewrites");
    TCase *tcase = tcase_create("rewrites");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, golden_inputs_compute_the_same, 0, sizeof folders / sizeof *folders);
    tcase_add_loop_test(tcase, random_graphs_compute_the_same, 0, 25);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
