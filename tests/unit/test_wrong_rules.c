/*
 * Rows of ops.def whose rule for the result's type is another operator's. What passes may do with a node follows from its
 * meaning, so each such row either still computes what its meaning says, whatever stands around it, or is refused. The table
 * of operators is compiled here once more, with these rules in it.
 */
#define dlc_infer_cumsum dlc_infer_same
#define dlc_infer_trilu dlc_infer_same
#define dlc_infer_reverse_sequence dlc_infer_same
#define dlc_infer_gather_elements dlc_infer_same
#define dlc_infer_transpose dlc_infer_same
#define dlc_infer_slice dlc_infer_same
#define dlc_infer_pad dlc_infer_same
#define dlc_infer_tile dlc_infer_same
#define dlc_infer_reduce dlc_infer_same
#define dlc_infer_arg_reduce dlc_infer_same
#define dlc_infer_matmul dlc_infer_broadcast
#include "ir/graph/rules.c"

#include "tests/unit/small_graph.h"
#include "tests/unit/suite.h"

/* `op` is the node in question, on p: a permuted or an expanded value; what it makes is permuted back. */
static const char *const around[] = {
    "in x 4,4; p = transpose x perm=1,0; op = %s; r = relu op; y = transpose r perm=1,0; out y",
    "in x 4,1; p = expand x dims=4,4; op = %s; y = exp op; out y",
    "in x 4,4; in z 4,4; s = round x; p = mul s z; op = %s; y = sub op p; out y",
};

static const struct {
    const char *op;
    int is_refused;
} rows[] = {
    {"cumsum p axis=1", 0},
    {"cumsum p axis=0 reverse=1", 0},
    {"cumsum p axis=0 exclusive=1", 0},
    {"trilu p", 0},
    {"trilu p upper=0", 0},
    {"gather_elements p i axis=1", 0},
    {"reverse_sequence p l axes=0,1", 0},
    {"transpose p perm=1,0", 0},
    {"slice p starts=3,0 steps=-1,1 dims=4,4", 0},
    {"pad p pads=1,0,-1,0", 0},
    {"matmul p w", 0},
    {"tile p dims=8,4", 0}, /* by its rule 4,4: the part that is there is right */
    {"slice p starts=1,0 steps=1,1 dims=3,4", 1},  /* reads past the end */
    {"slice p starts=0,0 steps=2,1 dims=2,4", 1},
    {"reduce_sum p axes=1", 1}, /* by its meaning of rank 1 */
    {"reduce_max p axes=0 keepdims=1", 1},
    {"argmax p axis=1", 1},
    {"matmul p v", 1},
};

static small_graph graph_of(uint32_t row, const char *pattern)
{
    char text[512], node[400];
    snprintf(node, sizeof node, pattern, rows[row].op);
    snprintf(text, sizeof text, "in w 4,4; in v 4,1; in q:i64 4,4; in n:i64 4; const four:i64 scalar 4; i = mod q four; "
             "l = mod n four; %s", node);
    return small_begin(text);
}

/* The passes over graphs, then kernels. */
static dlc_status compile(small_graph *s)
{
    s->ctx = (dlc_pass_ctx){.graph = s->graph, .scratch = dlc_arena_create(0), .target = dlc_target_find("x86-64-v3"),
                            .diag = s->diag};
    dlc_pipeline_options options = {.passes = "dce,cse,const_fold,simplify,const_fold,simplify,cse,dce,layout,fuse,lower,choose"};
    dlc_status status = dlc_pipeline_run(&s->ctx, &options);
    dlc_arena_destroy(s->ctx.scratch);
    return status;
}

static double number_at(const small_graph *s, void **memory, uint32_t i)
{
    const dlc_value *value = s->graph->outputs.data[0].value;
    return dlc_scalar_read(value->type.dtype, (char *)memory[value->id] + i * sizeof(float)).f;
}

static void check_row(uint32_t row, const char *pattern)
{
    small_graph plain = graph_of(row, pattern), passed = graph_of(row, pattern);
    dlc_status status = compile(&passed);
    const char *said = passed.diag->nmessages ? passed.diag->messages[0].text : "";
    ck_assert_msg(status == (rows[row].is_refused ? DLC_INTERNAL : DLC_OK), "%s in %s: %d %s", rows[row].op, pattern, status, said);
    if (status == DLC_OK) {
        void **wanted = run_nodes(&plain), **found = run_module(&passed, passed.ctx.module);
        for (uint32_t i = 0; i < 16; i++)
            ck_assert_msg(number_at(&plain, wanted, i) == number_at(&passed, found, i), "%s in %s: element %u is %g, not %g",
                          rows[row].op, pattern, i, number_at(&passed, found, i), number_at(&plain, wanted, i));
    }
    small_end(&plain);
    small_end(&passed);
}

START_TEST(a_wrong_rule_makes_no_wrong_program)
{
    for (uint32_t a = 0; a < sizeof around / sizeof *around; a++)
        check_row((uint32_t)_i, around[a]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wrong_rules");
    TCase *tcase = tcase_create("wrong_rules");
    tcase_add_loop_test(tcase, a_wrong_rule_makes_no_wrong_program, 0, sizeof rows / sizeof *rows);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
