/* Kernels for one sample of a batch after the other: which can be, and that they compute the same. */
#include "tests/unit/small_graph.h"
#include "tests/unit/suite.h"

/* The graph as a module whose kernels go over samples one by one wherever they can. */
static const dlc_module *sampled(small_graph *s, const char *request)
{
    s->ctx = (dlc_pass_ctx){.graph = s->graph,
                            .scratch = dlc_arena_create(0),
                            .target = dlc_target_find("x86-64-v3"),
                            .diag = s->diag,
                            .fusion = "none",
                            .rewrite = request};
    if (dlc_pass_fuse(&s->ctx) != DLC_OK || dlc_pass_lower(&s->ctx) != DLC_OK || dlc_pass_samples(&s->ctx) != DLC_OK ||
        dlc_pass_rewrite(&s->ctx) != DLC_OK || dlc_pass_slices(&s->ctx) != DLC_OK ||
        dlc_module_verify(s->ctx.module, DLC_INTERNAL, s->diag) != DLC_OK)
        small_fail(s, "samples");
    for (uint32_t k = 0; k < s->ctx.module->kernels.n; k++)
        if (dlc_kernel_verify(s->ctx.module->kernels.data[k].kernel, s->diag) != DLC_OK)
            small_fail(s, "kernel");
    dlc_arena_destroy(s->ctx.scratch);
    return s->ctx.module;
}

/* Launches in a loop; 0: there is none. */
static uint32_t steps_in_loop(const dlc_module *module)
{
    uint32_t n = 0, is_in = 0;
    for (uint32_t i = 0; i < module->steps.n; i++) {
        is_in = module->steps.data[i].kind == DLC_STEP_LOOP || (is_in && module->steps.data[i].kind != DLC_STEP_END);
        n += is_in && module->steps.data[i].kind == DLC_STEP_LAUNCH;
    }
    return n;
}

static const struct {
    uint32_t steps; /* that go by samples, at least */
    const char *graph;
} batches[] = {
    {2, "in x 4,8,9,9; const w 16,8,3,3; const v 8,16,1,1; c = conv x w pads=1,1,1,1 nhwc; r = relu c nhwc; d = conv r v; out d"},
    /* results in the middle, and a first input at the end: some are read within and outside */
    {3, "in x 4,8,9,9; const w 8,8,3,3; c = conv x w pads=1,1,1,1 nhwc; r = relu c; s = add r x; out r s"},
    {2, "in x 3,8,12; const w 12,20; m = matmul x w; e = exp m; out e"},
    /* several points a sample: one axis over samples and rows */
    {3, "in x 3,8,12; const w 12,20; const b 20; m = matmul x w; a = add m b; t = tanh a; out t"},
    {2, "in x 3,5,7; m = reduce_max x axes=2 keepdims=1; y = sub x m; out y"},
    {2, "in x 4,6,5; in z 4,6,5; a = add x z; b = mul a z; out b"},
    /* one operand is the same for all samples */
    {2, "in x 4,6,5; in z 1,6,5; a = add x z; b = mul a z; out b"},
    {2, "in x 4,6,5; in z 6,5; a = add x z; b = mul a z; out a b"},
    {2, "in x 4,8,h,w; const k 8,8,1,1; c = conv x k nhwc; y = relu c; out y"},
    {2, "in x 4,6; in z 4,9; a = exp x; y = concat a z axis=1; u = tanh y; out u"},
    /* up to where samples meet */
    {2, "in x 4,6; a = exp x; b = tanh a; y = reduce_sum b axes=0 keepdims=1; out y"},
    {2, "in x 4,6; a = exp x; b = tanh a; c = relu b; y = transpose c perm=1,0; out y"},
    {2, "in x 5; a = exp x; b = tanh a; out b"},
    {2, "in x:i64 4,6; in z:i64 4,6; a = add x z; b = mul a z; out b"},
    /* as many as the run brings */
    {2, "in x n,6; a = exp x; b = tanh a; out b"},
    {2, "in x n,8,9,9; const w 16,8,3,3; const v 8,16,1,1; c = conv x w pads=1,1,1,1 nhwc; r = relu c nhwc; d = conv r v; out d"},
    {3, "in x n,8,12; const w 12,20; const b 20; m = matmul x w; a = add m b; t = tanh a; out t"},
    {2, "in x n,t,12; const w 12,20; m = matmul x w; r = relu m; out r m"},
    {2, "in x n,8,h,w; const k 8,8,1,1; c = conv x k nhwc; y = relu c; out y"},
    {2, "in x n,6; a = exp x; b = tanh a; y = reduce_sum b axes=0 keepdims=1; out y"},
    {2, "in x n,6; in z 1,6; a = add x z; b = mul a z; out b"},
};
enum { NBATCHES = sizeof batches / sizeof *batches };

START_TEST(samples_give_the_batch)
{
    small_graph s = small_begin(batches[_i].graph);
    const dlc_module *module = sampled(&s, "samples=2");
    ck_assert_msg(steps_in_loop(module) >= batches[_i].steps, "%s: %u steps go by samples", batches[_i].graph, steps_in_loop(module));
    double difference = small_difference(&s, run_nodes(&s), run_module(&s, module));
    ck_assert_msg(difference <= 1e-6, "%s: off by %g", batches[_i].graph, difference);
    small_end(&s);
}
END_TEST

/* Samples that meet, one that there is, and what was not asked for. */
static const char *const others[] = {
    "in x 1,6; a = exp x; b = tanh a; out b",
    "in x 4,6; a = exp x; out a",
    "in x 4,6; a = transpose x perm=1,0; b = exp a; out b",
    "in x 4,6; a = reduce_sum x axes=0 keepdims=1; b = exp a; out b",
    "in x 4,6; a = cumsum x axis=0; b = reduce_max a axes=0 keepdims=0; out b",
    "in x 4,4; y = matmul x x; z = matmul y y; out z",
    "in x n,n; a = exp x; b = tanh a; out b",
    "in x n,6; a = reduce_sum x axes=0 keepdims=1; b = exp a; out b",
};

START_TEST(others_stay)
{
    small_graph s = small_begin(others[_i]);
    ck_assert_msg(!steps_in_loop(sampled(&s, "samples=2")), "%s", others[_i]);
    small_end(&s);
}
END_TEST

START_TEST(fewer_than_asked_stay)
{
    static const char *const requests[] = {"samples=5", "none", NULL};
    small_graph s = small_begin(batches[0].graph);
    ck_assert_uint_eq(steps_in_loop(sampled(&s, requests[_i])), 0);
    small_end(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("samples");
    TCase *tcase = tcase_create("samples");
    tcase_add_loop_test(tcase, samples_give_the_batch, 0, NBATCHES);
    tcase_add_loop_test(tcase, others_stay, 0, sizeof others / sizeof *others);
    tcase_add_loop_test(tcase, fewer_than_asked_stay, 0, 3);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
