/* The fusion engine: what is legal, what is said of the rest, strategies from outside, and how long large graphs take. */
#include "tests/unit/small_graph.h"

#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/budget.h"
#include "dlc/fusion.h"
#include "tests/unit/suite.h"

static const char *const mlp = "in x 512,64; in w 64,1024; in v 512,64; m = matmul x w; a = relu m; t = transpose a perm=1,0;"
                                "p = matmul t v; b = tanh p; out b";

static const dlc_edge *find_edge(const small_graph *s, const char *from, const char *to)
{
    for (uint32_t e = 0; e < s->ctx.edges.n; e++)
        if (!strcmp(s->ctx.edges.data[e].from->outputs[0]->name, from) &&
            !strcmp(s->ctx.edges.data[e].to->outputs[0]->name, to))
            return &s->ctx.edges.data[e];
    ck_abort_msg("no edge %s -> %s", from, to);
}

/* Every edge that was not fused says why. */
static const struct {
    const char *text, *from, *to, *strategy;
    dlc_reason reason;
} verdicts[] = {
    {"in x 32,64; in w 64,64; m = matmul x w; a = relu m; out a", "m", "a", "greedy", DLC_REASON_NONE},
    {"in x 32,64; in w 64,64; m = matmul x w; a = relu m; out a", "m", "a", "none", DLC_REASON_NOT_CHOSEN},
    /* two products over the same rows are one kernel, also where what is summed by the other are columns (.93 of the time of two, Zen 3) */
    {"in x 32,64; in w 64,64; in v 64,64; m = matmul x w; p = matmul m v; out p", "m", "p", "greedy", DLC_REASON_NONE},
    {"in x 256,64; in w 64,1024; in v 256,64; m = matmul x w; r = relu m; t = transpose r perm=1,0; p = matmul t v; out p",
     "r", "t", "greedy", DLC_REASON_NONE},
    /* a convolution at windows takes tiles of its own; where both images do not fit scratch, that is the reason */
    {"in x 1,64,28,28 nhwc; const w 64,64,1,1; const v 64,64,3,3; c = conv x w nhwc; r = relu c nhwc;"
     " d = conv r v pads=1,1,1,1 nhwc; out d",
     "r", "d", "greedy", DLC_REASON_ROOT},
    {"in x 1,64,20,20 nhwc; const w 64,64,1,1; const v 64,64,3,3; c = conv x w nhwc; r = relu c nhwc;"
     " d = conv r v pads=1,1,1,1 nhwc; out d",
     "r", "d", "greedy", DLC_REASON_LOST_DOT},
    /* weights that caches do not hold, again for each block of rows; where rows are many, that costs less than it saves */
    {"in x n,384; const w 384,1536; const v 1536,384; m = matmul x w; r = relu m; p = matmul r v; out p", "r", "p", "greedy",
     DLC_REASON_LOST_REUSE},
    {"in x 128,384; const w 384,1536; const v 1536,384; m = matmul x w; r = relu m; p = matmul r v; out p", "r", "p", "greedy",
     DLC_REASON_SMALL_SAVING},
    {"in x 4096,32; const w 32,256; const v 256,32; m = matmul x w; r = relu m; p = matmul r v; out p", "r", "p",
     "greedy", DLC_REASON_NONE},
    /* a kernel of two products takes a third only where that pays by itself */
    {"in x 4096,32; const w 32,256; const v 256,32; const u 32,512; m = matmul x w; r = relu m; p = matmul r v; q = matmul p u; out q",
     "p", "q", "greedy", DLC_REASON_SMALL_SAVING},
    {"in x 4,64; a = tanh x; t = topk a axis=1 largest=1 sorted=1 dims=64; out t", "a", "t", "greedy", DLC_REASON_OPAQUE},
    {"in x 4,64; a = tanh x; t = topk a axis=1 largest=1 sorted=1 dims=64; y = add a t; out y", "a", "y", "greedy",
     DLC_REASON_CYCLE},
    {"in x 20,8; in i:i64 3; r = tanh x; g = gather r i axis=0; out g", "r", "g", "greedy", DLC_REASON_ROOT},
    {"in x 8,200000; m = reduce_max x axes=1 keepdims=1; e = exp x; s = mul e m; q = reduce_sum s axes=1 keepdims=1;"
     "z = div e q; out z", "q", "z", "greedy", DLC_REASON_SCRATCH},
    /* a map of many units behind one number, which is one unit */
    {"in x 500,800; m = reduce_max x axes=0,1 keepdims=1; e = exp x; s = mul e m; q = reduce_sum s axes=0,1 keepdims=1;"
     "z = div e q; out z", "q", "z", "greedy", DLC_REASON_LOST_PARALLELISM},
    {"in x 1,96; const w 96,4; const v 4,96; in y 3136,96; a = matmul x w; r = relu a; b = matmul r v; s = sigmoid b; z = mul y s; out z", "s",
     "z", "greedy", DLC_REASON_LOST_PARALLELISM},
    {"in x 1,96; const w 96,4; const v 4,96; in y 64,96; a = matmul x w; r = relu a; b = matmul r v; s = sigmoid b; z = mul y s; out z", "s",
     "z", "greedy", DLC_REASON_NONE},
    /* sums of a product's blocks are worth more than what its rows share with another product, which is read through views */
    {"in x 128,18,32; const w 18,32,768; const v 18,32,768; s = reduce_sum x axes=2 keepdims=1; z = mul s s; q = transpose x perm=1,0,2;"
     "t = transpose z perm=1,0,2; a = matmul q w; b = sub a t; c = mul b t; y = reduce_sum c axes=0; d = matmul q v; e = sub d t;"
     "f = mul e t; g = reduce_sum f axes=0; out y; out g", "c", "y", "greedy", DLC_REASON_NONE},
    {"in x 8,16; in i:i64 4,16; in u 4,16; s = scatter_elements x i u axis=0 reduction=none; y = relu s; out y", "s", "y",
     "greedy", DLC_REASON_SCATTER},
};

START_TEST(edges_have_reasons)
{
    small_graph s = small_begin(verdicts[_i].text);
    run_strategy(&s, verdicts[_i].strategy, "x86-64-v3");
    const dlc_edge *edge = find_edge(&s, verdicts[_i].from, verdicts[_i].to);
    ck_assert_msg(edge->reason == verdicts[_i].reason, "%s: %s (%s)", verdicts[_i].text,
                  dlc_reason_text((dlc_reason)edge->reason), edge->text);
    ck_assert_int_eq(edge->fused, verdicts[_i].reason == DLC_REASON_NONE);
    ck_assert(edge->text && *edge->text && edge->bytes_saved > 0);
    small_end(&s);
}
END_TEST

/* Groups partition the nodes, and their order respects every edge. */
START_TEST(groups_are_in_order)
{
    small_graph s = small_begin(mlp);
    run_strategy(&s, "greedy", "x86-64-v3");
    const dlc_groups *groups = s.ctx.groups;
    uint32_t *position = dlc_new_array(s.arena, uint32_t, groups->ngroups + 1), nodes = 0;
    for (uint32_t i = 0; i < groups->ngroups; i++) {
        position[groups->order[i]] = i;
        nodes += groups->members[i].n;
    }
    ck_assert_uint_eq(groups->ngroups, 2);
    ck_assert_uint_eq(nodes, 5);
    for (uint32_t e = 0; e < s.ctx.edges.n; e++)
        ck_assert_uint_le(position[groups->of_node[s.ctx.edges.data[e].from->id]],
                          position[groups->of_node[s.ctx.edges.data[e].to->id]]);
    small_end(&s);
}
END_TEST

/* The plug-in of the documentation gives the right numbers, and finds what greedy finds. */
START_TEST(plugin_is_loaded)
{
    small_graph s = small_begin(mlp);
    dlc_module *module = run_strategy(&s, DLC_EXAMPLE_STRATEGY, "x86-64-v3");
    ck_assert_uint_eq(module->steps.n, 2);
    ck_assert_double_le(small_difference(&s, run_nodes(&s), run_module(&s, module)), 1e-6);
    small_end(&s);
}
END_TEST

static dlc_status fuse_with(small_graph *s, const char *strategy)
{
    s->ctx = (dlc_pass_ctx){.graph = s->graph, .scratch = dlc_arena_create(0), .target = dlc_target_find("x86-64-v3"),
                            .diag = s->diag, .fusion = strategy};
    dlc_status status = dlc_pass_fuse(&s->ctx);
    dlc_arena_destroy(s->ctx.scratch);
    return status;
}

START_TEST(wild_requests_are_answered)
{
    small_graph s = small_begin(mlp);
    ck_assert_msg(fuse_with(&s, DLC_WILD_STRATEGY) == DLC_OK, "%s",
                  s.diag->nmessages ? s.diag->messages[s.diag->nmessages - 1].text : "");
    ck_assert_uint_eq(s.ctx.groups->ngroups, 4);
    small_end(&s);
}
END_TEST

static void ignore(int signal)
{
    (void)signal;
}

/* A signal that a host handles interrupts whatever waits: what a strategy leaves behind ends with its time. */
START_TEST(signals_end_no_wait)
{
    small_graph s = small_begin(mlp);
    dlc_budget budget = {.deadline = dlc_budget_clock() + 2.5}, *before = dlc_budget_use(&budget);
    const struct itimerval once = {{0, 0}, {0, 300000}};
    struct sigaction ignored = {.sa_handler = ignore}, usual;
    sigaction(SIGALRM, &ignored, &usual);
    setitimer(ITIMER_REAL, &once, NULL);
    double start = dlc_budget_clock();
    dlc_status status = fuse_with(&s, DLC_PARTING_STRATEGY);
    sigaction(SIGALRM, &usual, NULL);
    dlc_budget_use(before);
    ck_assert_int_eq(status, DLC_USAGE);
    ck_assert(strstr(s.diag->messages[s.diag->nmessages - 1].text, "takes longer than it may"));
    ck_assert_double_le(dlc_budget_clock() - start, 30);
    small_end(&s);
}
END_TEST

static char plan_path[] = "/tmp/dlc_test_fuse_XXXXXX.json";

static void fuse_as_planned(small_graph *s, const char *plan)
{
    strcpy(strchr(plan_path, '.') - 6, "XXXXXX.json");
    int fd = mkstemps(plan_path, 5);
    ck_assert(fd >= 0 && write(fd, plan, strlen(plan)) == (ssize_t)strlen(plan) && !close(fd));
    dlc_status status = fuse_with(s, plan_path);
    unlink(plan_path);
    if (status != DLC_OK)
        small_fail(s, plan);
}

/* What a plan puts together, and what keeps the rest apart. */
static const struct {
    const char *text, *plan;
    uint32_t ngroups;
    dlc_reason reason; /* told; NONE: nothing */
} plans[] = {
    {"in x 4,64; a = tanh x; b = relu a; c = neg b; y = add a c; out y", "{\"groups\": [[\"a\", \"b\", \"c\", \"y\"]]}", 1,
     DLC_REASON_NONE},
    {"in x 4,64; a = tanh x; b = relu a; y = add a b; out y", "{\"groups\": [[\"a\", \"y\"]]}", 3, DLC_REASON_CYCLE},
    /* either would be a kernel, but not both */
    {"in x 4,64; a = tanh x; c = neg x; b = add a c; d = mul c a; out b d", "{\"groups\": [[\"a\", \"b\"], [\"c\", \"d\"]]}", 3,
     DLC_REASON_CYCLE},
    {"in x 4,64; a = tanh x; t = topk a axis=1 largest=1 sorted=1 dims=64; y = relu t; out y",
     "{\"groups\": [[\"a\", \"t\", \"y\"]]}", 3, DLC_REASON_OPAQUE},
    {"in x 8,16; in i:i64 4,16; in u 4,16; a = tanh x; s = scatter_elements a i u axis=0 reduction=none; y = relu s; out y",
     "{\"groups\": [[\"s\", \"y\"]]}", 3, DLC_REASON_SCATTER},
    {"in x 8,16; in i:i64 4,16; in u 4,16; in v 4,16; a = tanh x; s = scatter_elements a i u axis=0 reduction=none;"
     "t = scatter_elements a i v axis=0 reduction=none; out s t",
     "{\"groups\": [[\"a\", \"s\", \"t\"]]}", 2, DLC_REASON_SCATTER},
    {"in x 4,64; a = tanh x; b = relu x; out a b", "{\"groups\": [[\"a\", \"b\"]]}", 2, DLC_REASON_COUNT},
};

START_TEST(plans_are_followed)
{
    small_graph s = small_begin(plans[_i].text);
    fuse_as_planned(&s, plans[_i].plan);
    ck_assert_msg(s.ctx.groups->ngroups == plans[_i].ngroups, "%s: %u groups", plans[_i].text, s.ctx.groups->ngroups);
    ck_assert_uint_eq(s.diag->nmessages, plans[_i].reason != DLC_REASON_NONE);
    const char *why = plans[_i].reason == DLC_REASON_COUNT ? "nothing leads" : dlc_reason_sentence(plans[_i].reason);
    if (s.diag->nmessages)
        ck_assert_msg(strstr(s.diag->messages[0].text, why) != NULL, "%s: %s", plans[_i].text, s.diag->messages[0].text);
    small_end(&s);
}
END_TEST

/* So many maps that only all of them may join what puts them side by side: with fewer there are too many buffers. */
enum { SIDE_BY_SIDE = 70 };

static small_graph maps_side_by_side(void)
{
    small_graph s = small_begin("in x 4,4");
    dlc_value *parts[SIDE_BY_SIDE];
    dlc_attr axis = dlc_attr_int(DLC_ATTR_AXIS, 0);
    for (uint32_t i = 0; i < SIDE_BY_SIDE; i++) {
        dlc_node_spec map = {.op = DLC_OP_TANH, .inputs = s.graph->inputs.data, .ninputs = 1};
        map.name = dlc_arena_printf(s.arena, "m%u", i);
        parts[i] = dlc_graph_node(s.graph, &map)->outputs[0];
    }
    dlc_node_spec concat = {.op = DLC_OP_CONCAT, .name = "c", .inputs = parts, .ninputs = SIDE_BY_SIDE};
    concat.attrs = &axis;
    concat.nattrs = 1;
    dlc_graph_output(s.graph, "y", dlc_graph_node(s.graph, &concat)->outputs[0]);
    return s;
}

static void plan_maps(dlc_str *plan, uint32_t nmaps)
{
    dlc_str_printf(plan, "{\"groups\": [[");
    for (uint32_t i = 0; i < nmaps; i++)
        dlc_str_printf(plan, "\"%%m%u\", ", i);
    dlc_str_printf(plan, "\"%%c\"]]}");
}

START_TEST(sets_are_judged_whole)
{
    for (uint32_t nmissing = 0; nmissing < 70; nmissing += 69) {
        small_graph s = maps_side_by_side();
        dlc_str plan = {0};
        plan_maps(&plan, SIDE_BY_SIDE - nmissing);
        fuse_as_planned(&s, dlc_str_text(&plan));
        ck_assert_uint_eq(s.ctx.groups->ngroups, nmissing ? SIDE_BY_SIDE + 1 : 1);
        ck_assert_uint_eq(s.diag->nmessages, nmissing > 0);
        if (nmissing)
            ck_assert_ptr_nonnull(strstr(s.diag->messages[0].text, dlc_reason_sentence(DLC_REASON_PARAMS)));
        dlc_str_deinit(&plan);
        small_end(&s);
    }
}
END_TEST

START_TEST(unknown_strategies_are_refused)
{
    static const char *const names[] = {"best", "./missing.so", "missing.json"};
    small_graph s = small_begin(mlp);
    ck_assert_int_ne(fuse_with(&s, names[_i]), DLC_OK);
    ck_assert_ptr_nonnull(strstr(s.diag->messages[s.diag->nmessages - 1].text, _i == 0 ? "none, pointwise, greedy" : ""));
    small_end(&s);
}
END_TEST

/* A chain of maps with a residual sum now and then: time grows with its length, not with its square. */
static double seconds_for(uint32_t nnodes)
{
    small_graph s = small_begin("in x 4,4");
    dlc_value *value = s.graph->inputs.data[0], *before = value;
    for (uint32_t i = 0; i < nnodes; i++) {
        dlc_value *inputs[] = {value, before};
        dlc_node_spec spec = {.op = i % 7 == 6 ? DLC_OP_ADD : DLC_OP_RELU, .inputs = inputs, .ninputs = i % 7 == 6 ? 2 : 1};
        spec.name = dlc_arena_printf(s.arena, "n%u", i);
        if (i % 7 == 6)
            before = value;
        value = dlc_graph_node(s.graph, &spec)->outputs[0];
    }
    dlc_graph_output(s.graph, "y", value);
    struct timespec start, end;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start); /* whatever else runs */
    ck_assert_int_eq(fuse_with(&s, "greedy"), DLC_OK);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    ck_assert_uint_lt(s.ctx.groups->ngroups, nnodes / 8);
    small_end(&s);
    return (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
}

START_TEST(long_chains_are_not_quadratic)
{
    double thousand = seconds_for(1000), many = seconds_for(16000);
    ck_assert_msg(thousand < 1, "1000 nodes took %.2f s", thousand);
    ck_assert_msg(many < 48 * (thousand + 0.01), "16000 nodes took %.2f s, 1000 took %.3f s", many, thousand);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fuse");
    TCase *tcase = tcase_create("fuse");
    tcase_add_loop_test(tcase, edges_have_reasons, 0, sizeof verdicts / sizeof *verdicts);
    tcase_add_test(tcase, groups_are_in_order);
    tcase_add_test(tcase, plugin_is_loaded);
    tcase_add_test(tcase, wild_requests_are_answered);
    tcase_add_test(tcase, signals_end_no_wait);
    tcase_add_loop_test(tcase, plans_are_followed, 0, sizeof plans / sizeof *plans);
    tcase_add_test(tcase, sets_are_judged_whole);
    tcase_add_loop_test(tcase, unknown_strategies_are_refused, 0, 3);
    tcase_add_test(tcase, long_chains_are_not_quadratic);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
