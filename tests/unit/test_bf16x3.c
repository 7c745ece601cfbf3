/* Products of f32 by factors in three parts of bf16: the parts are the number, so what is computed is what was. */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/rewrite.h"
#include "tests/unit/small_graph.h"
#include "tests/unit/suite.h"

/* The graph as a module; rewrite, matrix, precision: as passes are asked. */
static const dlc_module *lowered_for(small_graph *s, const dlc_target *target, dlc_pass_ctx asked)
{
    s->ctx = asked;
    s->ctx.graph = s->graph;
    s->ctx.scratch = dlc_arena_create(0);
    s->ctx.target = target;
    s->ctx.diag = s->diag;
    s->ctx.fusion = "greedy";
    if (dlc_pass_fuse(&s->ctx) != DLC_OK || dlc_pass_lower(&s->ctx) != DLC_OK || dlc_pass_rewrite(&s->ctx) != DLC_OK ||
        dlc_module_verify(s->ctx.module, DLC_INTERNAL, s->diag) != DLC_OK)
        small_fail(s, "rewrite");
    for (uint32_t k = 0; k < s->ctx.module->kernels.n; k++)
        if (dlc_kernel_verify(s->ctx.module->kernels.data[k].kernel, s->diag) != DLC_OK)
            small_fail(s, "kernel");
    dlc_arena_destroy(s->ctx.scratch);
    return s->ctx.module;
}

static const dlc_module *lowered(small_graph *s, const char *target, dlc_pass_ctx asked)
{
    return lowered_for(s, dlc_target_find(target), asked);
}

/* The module has schedules that resolve, and gives what the graph does. */
static void check_module(small_graph *s, const dlc_module *module, const char *graph)
{
    s->ctx.scratch = dlc_arena_create(0);
    if (dlc_pass_choose(&s->ctx) != DLC_OK)
        small_fail(s, "choose");
    for (uint32_t k = 0; k < module->kernels.n; k++)
        if (dlc_schedule_resolve(module->kernels.data[k].schedule, s->diag) != DLC_OK)
            small_fail(s, "schedule");
    double difference = small_difference(s, run_nodes(s), run_module(s, module));
    ck_assert_msg(difference == 0, "%s: off by %g", graph, difference);
    dlc_arena_destroy(s->ctx.scratch);
}

/* Weights and rows that were taken apart. */
static uint32_t count_parted(const dlc_module *module)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < module->values.n; v++)
        n += strstr(module->values.data[v].name, ".bf16x3") != NULL;
    return n;
}

/* Rows, batches of them by the same weights and by weights of their own, windows with borders and steps, images whose channels only the
 * layout puts last, weights as the left factor, sizes of a run, what follows. */
static const char *const graphs[] = {
    "in x 5,64; const w 64,7; y = matmul x w; out y",
    "in x 20,64; const w 64,24; const b 24; in z 20,24; m = matmul x w; s = add m b; r = add s z; y = relu r; out y r",
    "in x 3,5,64; const w 64,24; m = matmul x w; y = tanh m; out y",
    "in x 3,5,64; const w 3,64,24; y = matmul x w; out y",
    "in x n,40; const w 40,24; y = matmul x w; out y",
    "in x 2,8,9,9; const v 64,8,3,3; const w 304,64,1,1; p = conv x v strides=2,2 nhwc; c = conv p w nhwc; y = relu c; out y",
    "in x 1,16,9,8; const v 32,16,1,1; const w 20,32,3,3; const b 20,1,1; in z 1,20,5,4; p = conv x v nhwc; "
    "c = conv p w pads=1,1,1,1 strides=2,2 nhwc; s = add c b; r = add s z; y = relu r; out y",
    "in x 1,8,6,7; const v 32,8,1,1; const w 24,32,3,3; p = conv x v nhwc; c = conv p w pads=2,0,1,3 dilations=2,1 nhwc; y = abs c; out y",
    "in x 1,8,h,9; const v 32,8,1,1; const w 24,32,3,3; p = conv x v nhwc; c = conv p w pads=1,1,1,1 nhwc; y = relu c; out y",
};
enum { NGRAPHS = sizeof graphs / sizeof *graphs };

START_TEST(parts_give_the_product)
{
    static const char *const targets[] = {"x86-64-v3", "x86-64-v4+bf16+amx_bf16", "aarch64"};
    const char *graph = graphs[_i / 3];
    small_graph s = small_begin(graph);
    const dlc_module *module = lowered(&s, targets[_i % 3], (dlc_pass_ctx){.rewrite = "bf16x3=40"});
    ck_assert_msg(count_parted(module) == 2, "%s: %u", graph, count_parted(module));
    check_module(&s, module, graph);
    small_end(&s);
}
END_TEST

/* What is computed in front of a product, and rows that lie apart, have parts of their own. */
static const char *const computed[] = {
    "in x 20,64; const a 64; const b 64; const w 64,24; p = mul x a; q = add p b; r = relu q; y = matmul r w; out y",
    "in x 20,40; in z 20,24; const w 64,24; c = concat x z axis=1; r = relu c; y = matmul r w; out y",
    "in x 1,16,9,8; const v 64,16,3,3; const w 160,64,1,1; p = conv x v pads=1,1,1,1 nhwc; c = conv p w strides=2,2 nhwc; y = abs c; out y",
};
enum { NCOMPUTED = sizeof computed / sizeof *computed };

START_TEST(parts_are_of_what_is_computed)
{
    static const char *const targets[] = {"x86-64-v3", "x86-64-v4+bf16+amx_bf16"};
    const char *graph = computed[_i / 2];
    small_graph s = small_begin(graph);
    const dlc_module *module = lowered(&s, targets[_i % 2], (dlc_pass_ctx){.rewrite = "bf16x3=40"});
    ck_assert_msg(dlc_module_find_value(module, "matmul.bf16x3") != DLC_NO_VALUE || dlc_module_find_value(module, "conv.bf16x3") != DLC_NO_VALUE,
                  "%s", graph);
    check_module(&s, module, graph);
    small_end(&s);
}
END_TEST

/* Terms that are too few or do not lie together, groups, weights that a run brings, two constants, other types; GPUs. */
static const struct {
    const char *graph, *target;
} others[] = {
    {"in x 20,32; const w 32,24; y = matmul x w; out y", "x86-64-v4"},
    {"in x 64,20; const w 64,24; t = transpose x perm=1,0; y = matmul t w; out y", "x86-64-v4"},
    {"in x 1,64,5,6; const w 24,64,1,1; c = conv x w; y = relu c; out y", "x86-64-v4"},
    {"in x 1,8,5,6; const v 64,8,1,1; const w 64,1,8,8; p = conv x v nhwc; c = conv p w pads=4,4,4,4 group=64 nhwc; y = relu c; out y", "x86-64-v4"},
    {"in x 20,64; in w 64,24; y = matmul x w; out y", "x86-64-v4"},
    {"in x:f64 20,64; const w:f64 64,24; y = matmul x w; out y", "x86-64-v4"},
    {"in x:f16 20,64; const w:f16 64,24; y = matmul x w; out y", "x86-64-v4"},
    {"in x 20,64; const w 64,24; y = matmul x w; out y", "sm_80"},
};

START_TEST(others_stay)
{
    small_graph s = small_begin(others[_i].graph);
    ck_assert_msg(!count_parted(lowered(&s, others[_i].target, (dlc_pass_ctx){.rewrite = "bf16x3=40"})), "%s", others[_i].graph);
    small_end(&s);
}
END_TEST

/* --- the parts of a number --- */

enum { NROWS = 16, NTERMS = 64, NNUMBERS = NROWS * NTERMS, NPARTS = 3 };

static const dlc_kernel *parting_kernel(const dlc_module *module)
{
    for (uint32_t k = 0; k < module->kernels.n; k++)
        if (!strcmp(module->kernels.data[k].kernel->name, "x.bf16x3"))
            return module->kernels.data[k].kernel;
    ck_abort_msg("no kernel takes x apart");
}

static float bf16_at(const uint16_t *parts, uint32_t i, uint32_t part)
{
    return (float)dlc_scalar_read(DLC_BF16, &parts[(i / NTERMS * NPARTS + part) * NTERMS + i % NTERMS]).f;
}


static void check_number(float x, const uint16_t *parts, uint32_t i)
{
    float p0 = bf16_at(parts, i, 0), p1 = bf16_at(parts, i, 1), p2 = bf16_at(parts, i, 2), sum = p0 + (p1 + p2);
    if (!isfinite(x)) {
        ck_assert_msg(isnan(x) ? isnan(p0) : p0 == x, "%g becomes %g", x, p0);
        ck_assert_msg(p1 == 0 && p2 == 0, "%g leaves %g and %g", x, p1, p2);
        return;
    }
    ck_assert_msg(fabsf(sum - x) <= 0x1p-133f, "%a: %a, %a, %a", x, p0, p1, p2); /* the least bf16 */
    if (x != 0 && fabsf(x) < 0x1p-110f)
        return;
    ck_assert_msg(sum == x, "%a: %a, %a, %a", x, p0, p1, p2);
    ck_assert_msg(fabsf(p0) <= fabsf(x) && fabsf(p1) <= fabsf(x) * 0x1p-7f && fabsf(p2) <= fabsf(x) * 0x1p-16f, "%a: %a, %a, %a", x, p0, p1, p2);
}

static void check_numbers(const small_graph *s, const dlc_kernel *kernel, const float *x)
{
    uint16_t parts[NNUMBERS * NPARTS];
    void *buffers[] = {(void *)(uintptr_t)x, parts};
    if (dlc_interp_run(kernel, DLC_STRICT, &(dlc_interp_args){.buffers = buffers}, s->diag) != DLC_OK)
        small_fail(s, "interpreter");
    for (uint32_t i = 0; i < NNUMBERS; i++)
        check_number(x[i], parts, i);
}

/* All bits alike, and every pattern of few of them at every exponent. */
START_TEST(parts_are_the_number)
{
    enum { ROUNDS = 40 };
    static const uint32_t patterns[] = {0, 1, 0x7fffff, 0x7f8000, 0x007fff, 0x008000, 0x008001, 0x00ffff, 0x400000, 0x3fffff, 0x000080, 0x00007f, 0x7fff80, 0x017f80};
    small_graph s = small_begin("in x 16,64; const w 64,16; y = matmul x w; out y");
    const dlc_kernel *kernel = parting_kernel(lowered(&s, "x86-64-v4", (dlc_pass_ctx){.rewrite = "bf16x3=2"}));
    uint64_t state = 1;
    float x[NNUMBERS];
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < NNUMBERS; i++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            uint32_t bits = (uint32_t)(state >> 32), n = round * NNUMBERS + i;
            if (round % 2)
                bits = (n / 512 % 2 << 31) | (n % 256 << 23) | patterns[(n / 1024 / 2) % (sizeof patterns / sizeof *patterns)];
            memcpy(&x[i], &bits, sizeof bits);
        }
        check_numbers(&s, kernel, x);
    }
    static const float specials[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 3.4028234e38f, -3.4028234e38f, 1e-45f, 0x1p-126f, 0x1p-110f};
    const uint32_t low_nan = 0x7f800001u;
    for (uint32_t i = 0; i < NNUMBERS; i++)
        x[i] = specials[i % (sizeof specials / sizeof *specials)];
    memcpy(&x[0], &low_nan, sizeof low_nan);
    check_numbers(&s, kernel, x);
    small_end(&s);
}
END_TEST

/* --- when --- */

static const char plain[] = "in x 128,768; const w 768,768; y = matmul x w; out y", amx[] = "x86-64-v4+bf16+amx_bf16";

static const struct {
    const char *target, *matrix, *precision;
    uint32_t nparted;
} whens[] = {{amx, "on", NULL, 2}, /* where estimates say so */
             {"x86-64-v3", "on", NULL, 0}, {"x86-64-v4+bf16", "on", NULL, 0},
             {amx, "on", "bf16", 0}, /* parts of bf16 would be the number alone */
             {amx, "off", NULL, 0}, {amx, NULL, NULL, 0} /* not measured */};

START_TEST(it_is_done_where_it_pays)
{
    small_graph s = small_begin(plain);
    dlc_pass_ctx asked = {.matrix = whens[_i].matrix, .precision = whens[_i].precision};
    ck_assert_uint_eq(count_parted(lowered(&s, whens[_i].target, asked)), whens[_i].nparted);
    small_end(&s);
}
END_TEST

/* At full rate, and at a rate at which six products take longer than a float's. */
START_TEST(what_was_measured_decides)
{
    static const double rates[] = {2300e3, 800e3};
    const dlc_target *base = dlc_target_find(amx);
    dlc_machine machine = *base->machine;
    machine.ops_per_us[DLC_IS_FMA] = 166e3;
    machine.ops_per_us[DLC_IS_AMX_BF16] = rates[_i];
    small_graph s = small_begin(plain);
    ck_assert_uint_eq(count_parted(lowered_for(&s, dlc_target_on(base, &machine), (dlc_pass_ctx){0})), _i ? 0 : 2);
    small_end(&s);
}
END_TEST

START_TEST(matrix_is_auto_on_or_off)
{
    small_graph s = small_begin(plain);
    s.ctx = (dlc_pass_ctx){.graph = s.graph, .scratch = s.arena, .target = dlc_target_find(amx), .diag = s.diag, .fusion = "greedy", .matrix = "yes"};
    ck_assert_int_eq(dlc_pass_fuse(&s.ctx), DLC_OK);
    ck_assert_int_eq(dlc_pass_lower(&s.ctx), DLC_OK);
    ck_assert_int_eq(dlc_pass_rewrite(&s.ctx), DLC_USAGE);
    ck_assert_str_eq(s.diag->messages[s.diag->nmessages - 1].text, "matrix 'yes' is none of auto, on and off");
    small_end(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bf16x3");
    TCase *tcase = tcase_create("bf16x3");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, parts_give_the_product, 0, 3 * NGRAPHS);
    tcase_add_loop_test(tcase, parts_are_of_what_is_computed, 0, 2 * NCOMPUTED);
    tcase_add_loop_test(tcase, others_stay, 0, sizeof others / sizeof *others);
    tcase_add_test(tcase, parts_are_the_number);
    tcase_add_loop_test(tcase, it_is_done_where_it_pays, 0, sizeof whens / sizeof *whens);
    tcase_add_loop_test(tcase, what_was_measured_decides, 0, 2);
    tcase_add_test(tcase, matrix_is_auto_on_or_off);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
