/* Lowering: whatever is grouped, inlined, split, merged and packed, the kernels compute what the nodes mean. */
#include "tests/unit/small_graph.h"

#include <stdarg.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

#define LAYER_NORM                                                                                                        \
    "const gamma 48; const beta 48; const eps scalar 1e-5;"                                                               \
    "m = reduce_mean x axes=2 keepdims=1; d = sub x m; q = mul d d; v = reduce_mean q axes=2 keepdims=1; ve = add v eps;" \
    "s = sqrt ve; n = div d s; ng = mul n gamma; y = add ng beta;"
#define SOFTMAX "m = reduce_max x axes=2 keepdims=1; d = sub x m; e = exp d; l = reduce_sum e axes=2 keepdims=1; y = div e l;"

static const struct {
    const char *text;
    uint32_t kernels; /* steps with `greedy` */
} cases[] = {
    {"in x 2,3,4; in y 4; a = add x y; r = relu a; out r", 1},
    {"in x 2,3,4; in y 3,1; a = add x y; b = tanh a; c = mul b a; d = add c x; out d a", 1},
    {"in x 2,5,48;" SOFTMAX "out y", 1},
    {"in x n,7,48;" SOFTMAX "out y", 1},
    {"in x 2,7,6; m = reduce_max x axes=1 keepdims=1; d = sub x m; e = exp d; l = reduce_sum e axes=1 keepdims=1;"
     "y = div e l; out y", 1},
    {"in x 2,5,48;" LAYER_NORM "out y", 1},
    {"in z 2,5,48; in w 2,5,48; x = add z w;" LAYER_NORM "out y x", 1},
    {"in x 3,40; const w 40,70; const b 70; c = matmul x w; a = add c b; g = gelu a; out g", 1},
    {"in x n,5,40; const w 40,70; const b 70; c = matmul x w; a = add c b; g = gelu a; out g", 1},
    {"in x 1,16,9,9 nhwc; const w 33,16,3,3; const b 33,1,1; in r 1,33,9,9 nhwc; c = conv x w pads=1,1,1,1 nhwc;"
     "a = add c b nhwc; s = relu a nhwc; y = add s r nhwc; out y", 1},
    {"in x 1,16,9,9; const w 32,16,3,3; c = conv x w pads=1,1,1,1 strides=2,2; s = relu c; out s", 2},
    {"in x 2,8,9,9 nhwc; const w 32,4,3,3; c = conv x w group=2 nhwc; out c", 1},
    {"in x 2,32,9,9 nhwc; const w 32,1,3,3; c = conv x w group=32 pads=1,1,1,1 nhwc; s = relu c nhwc; out s", 1},
    {"in x 1,12,96; const w 96,96; in k 1,4,24,13; q = matmul x w; r = reshape q dims=1,12,4,24;"
     "t = transpose r perm=0,2,1,3; s = matmul t k; out s", 1},
    {"in x 4,12,13; in v 4,13,24; const w 96,20; o = matmul x v; t = transpose o perm=1,0,2; r = reshape t dims=12,96;"
     "y = matmul r w; out y", 1},
    {"in x 4,12,64; in y 4,33,64; t = transpose y perm=0,2,1; s = matmul x t; out s", 1},
    {"in x 4,6; a = mul x x; r = reshape a dims=3,8; out r a", 1},
    {"in x 2,12,5,5; r = reshape x dims=2,3,4,5,5; t = transpose r perm=0,2,1,3,4; y = reshape t dims=2,12,5,5;"
     "z = relu y; out z", 1},
    {"in x 2,12,3,5; r = reshape x dims=2,3,2,2,3,5; t = transpose r perm=0,1,4,2,5,3; y = reshape t dims=2,3,6,10;"
     "z = relu y; out z", 1},
    {"in x 3,7; in y 3,5; a = relu x; c = concat a y axis=1; s = slice c starts=0,2 steps=1,2 dims=3,4; e = exp s; out e", 1},
    {"in x 3,7; a = exp x; p = pad a pads=0,2,0,3 mode=constant; r = relu p; out r", 1},
    {"in x 1,4,9,9; r = relu x; p = max_pool r kernel=3,3 strides=2,2 dims=4,4; out p", 1},
    {"in x 2,6,5; e = exp x; c = cumsum e axis=1; y = relu c; out y", 1},
    {"in x 3,17; a = argmax x axis=1 keepdims=1; out a", 1},
    {"const t 20,8; in i:i64 3,4; g = gather t i axis=0; y = relu g; out y", 1},
    {"in x 20,8; in i:i64 3; r = relu x; g = gather r i axis=0; out g", 2},
    {"in x 4,4; out x x", 2},
    {"in x 1,64; const w 64,100; const b 100; m = matmul x w; y = add m b; out y", 1},
    {"in x 7,3; t = transpose x perm=1,0; a = relu t; b = tanh t; out a b t", 3},
    {"in x n,s,24; r = reshape x dims=n,s,4,6; t = transpose r perm=0,2,1,3; y = relu t; out y", 1},
};

/* parse(print(x)) = x. Models whose inputs have a layout are none, but kernels of them are tried. */
static void check_text(small_graph *s, dlc_module *module)
{
    dlc_str once = {0}, twice = {0};
    dlc_module *again;
    module->after = "choose";
    for (uint32_t v = 0; v < module->values.n; v++) {
        const dlc_module_value *value = &module->values.data[v];
        if ((value->role == DLC_VALUE_INPUT || value->role == DLC_VALUE_OUTPUT) && !dlc_module_is_row_major(value))
            return;
    }
    dlc_module_print(module, &once);
    if (dlc_module_parse(dlc_str_text(&once), "again.dlc", s->arena, s->diag, &again) != DLC_OK)
        ck_abort_msg("%s\n%s", s->diag->messages[s->diag->nmessages - 1].text, dlc_str_text(&once));
    dlc_module_print(again, &twice);
    ck_assert_str_eq(dlc_str_text(&once), dlc_str_text(&twice));
    dlc_str_deinit(&once);
    dlc_str_deinit(&twice);
}

static void check_case(const char *text, const char *strategy, const char *target, uint32_t kernels)
{
    small_graph s = small_begin(text);
    dlc_module *module = run_strategy(&s, strategy, target);
    void **expected = run_nodes(&s), **got = run_module(&s, module);
    for (uint32_t k = 0; k < module->kernels.n; k++) {
        const dlc_module_kernel *kernel = &module->kernels.data[k];
        dlc_str printed = {0};
        dlc_kernel_print(kernel->kernel, 1, &printed);
        if (dlc_kernel_verify(kernel->kernel, s.diag) != DLC_OK ||
            dlc_schedule_resolve(kernel->schedule, s.diag) != DLC_OK)
            ck_abort_msg("%s, %s: %s\n%s", strategy, text, s.diag->messages[s.diag->nmessages - 1].text,
                         dlc_str_text(&printed));
        dlc_str_deinit(&printed);
    }
    double difference = small_difference(&s, expected, got);
    ck_assert_msg(difference <= 2e-6, "%s, %s: differs by %g", strategy, text, difference);
    if (kernels)
        ck_assert_msg(module->steps.n == kernels, "%s: %u steps instead of %u", text, module->steps.n, kernels);
    check_text(&s, module);
    small_end(&s);
}

START_TEST(kernels_mean_what_nodes_mean)
{
    check_case(cases[_i].text, "greedy", "x86-64-v4", cases[_i].kernels);
    check_case(cases[_i].text, "none", "x86-64-v3", 0);
    check_case(cases[_i].text, "pointwise", "x86-64-v2", 0);
    check_case(cases[_i].text, "greedy", "aarch64", cases[_i].kernels);
}
END_TEST

/* Equal layers share one kernel, whatever their constants. */
START_TEST(equal_kernels_are_one)
{
    small_graph s = small_begin("in x 4,8; const a 8; const b 8; p = add x a; q = add p b; out q");
    dlc_module *module = run_strategy(&s, "none", "x86-64-v3");
    ck_assert_uint_eq(module->steps.n, 2);
    ck_assert_uint_eq(module->kernels.n, 1);
    ck_assert_uint_ne(module->steps.data[0].values[1], module->steps.data[1].values[1]);
    small_end(&s);
}
END_TEST

/* --- random graphs --- */

typedef struct {
    char text[8192];
    size_t length;
    uint32_t nvalues;
    int64_t dims[64][3];
} random_graph;

static void say(random_graph *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(random_graph *g, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g->length += (size_t)vsnprintf(g->text + g->length, sizeof g->text - g->length, format, args);
    va_end(args);
    ck_assert_uint_lt(g->length, sizeof g->text);
}

static void new_value(random_graph *g, int64_t a, int64_t b, int64_t c)
{
    g->dims[g->nvalues][0] = a, g->dims[g->nvalues][1] = b, g->dims[g->nvalues][2] = c;
    g->nvalues++;
}

/* A value of the same shape, or one that broadcasts to it. */
static uint32_t partner(random_graph *g, uint32_t v)
{
    for (uint32_t tries = 0; tries < 8; tries++) {
        uint32_t w = draw(g->nvalues);
        int fits = 1;
        for (int d = 0; d < 3; d++)
            fits &= g->dims[w][d] == g->dims[v][d] || g->dims[w][d] == 1;
        if (fits)
            return w;
    }
    return v;
}

static void random_view(random_graph *g, uint32_t v, uint32_t n)
{
    static const int perms[][3] = {{0, 2, 1}, {1, 0, 2}, {2, 0, 1}, {2, 1, 0}};
    const int64_t *d = g->dims[v];
    uint32_t p = draw(4), before = draw(3), after = draw(3);
    switch (draw(4)) {
    case 0:
        say(g, "v%u = transpose v%u perm=%d,%d,%d;", n, v, perms[p][0], perms[p][1], perms[p][2]);
        new_value(g, d[perms[p][0]], d[perms[p][1]], d[perms[p][2]]);
        break;
    case 1:
        if (d[0] % 2 == 0) {
            say(g, "v%u = reshape v%u dims=%d,%d,%d;", n, v, (int)d[0] / 2, (int)d[1] * 2, (int)d[2]);
            new_value(g, d[0] / 2, d[1] * 2, d[2]);
        } else {
            say(g, "v%u = reshape v%u dims=1,%d,%d;", n, v, (int)(d[0] * d[1]), (int)d[2]);
            new_value(g, 1, d[0] * d[1], d[2]);
        }
        break;
    case 2:
        say(g, "v%u = pad v%u pads=0,%u,0,0,0,%u mode=constant;", n, v, before, after);
        new_value(g, d[0], d[1] + before, d[2] + after);
        break;
    default:
        say(g, "v%u = slice v%u starts=0,0,%d steps=1,1,1 dims=%d,%d,%d;", n, v, d[2] > 1, (int)d[0], (int)d[1],
            (int)d[2] - (d[2] > 1));
        new_value(g, d[0], d[1], d[2] - (d[2] > 1));
    }
}

static void random_node(random_graph *g)
{
    static const char *const unary[] = {"relu", "tanh", "neg", "sigmoid"}, *const binary[] = {"add", "mul", "max", "sub"};
    static const char *const folds[] = {"reduce_sum", "reduce_max", "reduce_mean"};
    uint32_t n = g->nvalues, v = draw(n), w = partner(g, v), axis = draw(3);
    const int64_t *d = g->dims[v];
    switch (draw(8)) {
    case 0:
    case 1:
        say(g, "v%u = %s v%u;", n, unary[draw(4)], v);
        new_value(g, d[0], d[1], d[2]);
        break;
    case 2:
    case 3:
        say(g, "v%u = %s v%u v%u;", n, binary[draw(4)], v, w);
        new_value(g, d[0], d[1], d[2]);
        break;
    case 4:
        say(g, "v%u = %s v%u axes=%u keepdims=1;", n, folds[draw(3)], v, axis);
        new_value(g, axis == 0 ? 1 : d[0], axis == 1 ? 1 : d[1], axis == 2 ? 1 : d[2]);
        break;
    case 5:
        if (g->dims[w][0] == d[0] && g->dims[w][1] == d[1]) {
            say(g, "v%u = concat v%u v%u axis=2;", n, v, w);
            new_value(g, d[0], d[1], d[2] + g->dims[w][2]);
        } else {
            say(g, "t%u = transpose v%u perm=0,2,1; v%u = matmul v%u t%u;", n, v, n, v, n);
            new_value(g, d[0], d[1], d[1]);
        }
        break;
    default:
        random_view(g, v, n);
    }
}

/* Random graphs of maps, reductions, views and products, some values given away: every strategy computes what the nodes do. */
START_TEST(random_graphs_keep_their_meaning)
{
    static const char *const strategies[] = {"greedy", "none", "pointwise"};
    random_graph g = {.length = 0};
    random_state = (uint64_t)_i;
    int64_t a = 1 + draw(3), b = 1 + draw(5), c = 1 + draw(9);
    say(&g, "in v0 %d,%d,%d; in v1 1,%d,%d;", (int)a, (int)b, (int)c, (int)b, (int)c);
    new_value(&g, a, b, c);
    new_value(&g, 1, b, c);
    for (uint32_t i = 0, n = 3 + draw(10); i < n; i++)
        random_node(&g);
    say(&g, "out v%u", g.nvalues - 1);
    for (uint32_t i = 0; i < 2 && g.nvalues > 4; i++)
        say(&g, " v%u", 2 + draw(g.nvalues - 3));
    check_case(g.text, strategies[_i % 3], "x86-64-v3", 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lower");
    TCase *tcase = tcase_create("lower");
    tcase_add_loop_test(tcase, kernels_mean_what_nodes_mean, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tcase, equal_kernels_are_one);
    tcase_add_loop_test(tcase, random_graphs_keep_their_meaning, 0, 300);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
