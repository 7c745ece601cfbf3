/* Rewrites of kernels: what comes out computes the same, is well formed, and can be scheduled for every kind of target. */
#include "ir/schedule/schedule.h"
#include "passes/rewrite/rewrite.h"
#include "tests/unit/small_graph.h"
#include "tests/unit/suite.h"

static const char *const graphs[] = {
    "in x 5,24; in w 24,7; y = matmul x w; out y",
    "in x n,24; in w 24,40; in b 40; m = matmul x w; s = add m b; y = tanh s; out y",
    "in x 3,5,24; in w 3,24,7; y = matmul x w; out y",
    "in x 1,16,6,6; const w 8,16,3,3; c = conv x w pads=1,1,1,1 nhwc; y = relu c; out y",
    "in x 2,24,5; const w 3,24,2; y = conv x w; z = exp y; out y z",
    "in x 16,24; const a 24,24; const b 24,24; p = matmul x a; q = matmul p b; out q",
};
enum { NGRAPHS = sizeof graphs / sizeof *graphs };

/* The graph as a module; `request`: what the pass rewrite is asked for. */
static const dlc_module *lowered(small_graph *s, const char *target, const char *request)
{
    s->ctx = (dlc_pass_ctx){.graph = s->graph,
                            .scratch = dlc_arena_create(0),
                            .target = dlc_target_find(target),
                            .diag = s->diag,
                            .fusion = "greedy",
                            .rewrite = request};
    if (dlc_pass_fuse(&s->ctx) != DLC_OK || dlc_pass_lower(&s->ctx) != DLC_OK || dlc_pass_rewrite(&s->ctx) != DLC_OK ||
        dlc_module_verify(s->ctx.module, DLC_INTERNAL, s->diag) != DLC_OK)
        small_fail(s, "rewrite");
    for (uint32_t k = 0; k < s->ctx.module->kernels.n; k++)
        if (dlc_kernel_verify(s->ctx.module->kernels.data[k].kernel, s->diag) != DLC_OK)
            small_fail(s, "kernel");
    dlc_arena_destroy(s->ctx.scratch);
    return s->ctx.module;
}

START_TEST(both_sides_are_equal)
{
    static const char *const requests[] = {"split=2", "split=4", "split=8"};
    small_graph s = small_begin(graphs[_i / 3]);
    const dlc_module *module = lowered(&s, "x86-64-v3", requests[_i % 3]);
    ck_assert_uint_gt(s.ctx.changes, 0);
    double difference = small_difference(&s, run_nodes(&s), run_module(&s, module));
    ck_assert_msg(difference <= 1e-6, "%s, %s: off by %g", graphs[_i / 3], requests[_i % 3], difference);
    small_end(&s);
}
END_TEST

START_TEST(what_comes_out_is_scheduled)
{
    static const char *const targets[] = {"x86-64-v3", "sm_80"};
    small_graph s = small_begin(graphs[_i / 2]);
    (void)lowered(&s, targets[_i % 2], "split=4");
    s.ctx.scratch = dlc_arena_create(0);
    if (dlc_pass_choose(&s.ctx) != DLC_OK)
        small_fail(&s, "choose");
    const dlc_module *module = s.ctx.module;
    for (uint32_t k = 0; k < module->kernels.n; k++)
        if (dlc_schedule_resolve(module->kernels.data[k].schedule, s.diag) != DLC_OK)
            small_fail(&s, "schedule");
    double difference = small_difference(&s, run_nodes(&s), run_module(&s, module));
    ck_assert_msg(difference <= 1e-6, "%s: off by %g", graphs[_i / 2], difference);
    dlc_arena_destroy(s.ctx.scratch);
    small_end(&s);
}
END_TEST

/* Convolutions by tiles: sizes that tiles fill and that they stick out of, borders, several images, what follows. */
static const char *const convolutions[] = {
    "in x 1,16,8,12; const w 32,16,3,3; c = conv x w pads=1,1,1,1 nhwc; y = relu c; out y",
    "in x 1,8,9,7; const w 16,8,3,3; const v 16,16,3,3; c = conv x w pads=1,1,1,1 nhwc; d = conv c v pads=1,1,1,1 nhwc; "
    "y = relu d; out y",
    "in x 1,8,11,6; const v 16,8,1,1; const w 40,16,3,3; const b 40,1,1; p = conv x v nhwc; c = conv p w nhwc; s = add c b; "
    "y = relu s; out y",
    "in x 3,16,7,7; in z 3,24,7,7; const w 24,16,3,3; c = conv x w pads=1,1,1,1 nhwc; s = add c z; y = relu s; out y s",
    "in x n,16,5,9; const w 16,16,3,3; c = conv x w pads=2,0,1,1 nhwc; y = abs c; out y",
    "in x 1,8,2,3; const v 16,8,1,1; const w 8,16,3,3; p = conv x v nhwc; c = conv p w pads=1,1,1,1 nhwc; y = abs c; out y",
    "in x:f16 1,16,9,7; const w:f16 32,16,3,3; c = conv x w pads=1,1,1,1 nhwc; y = relu c; out y",
    "in x:bf16 2,16,8,12; const w:bf16 16,16,3,3; c = conv x w nhwc; y = abs c; out y",
    "in x 1,16,h,9; const w 16,16,3,3; c = conv x w pads=1,1,1,1 nhwc; y = relu c; out y",
    "in x 1,16,9,w; const v 32,16,3,3; c = conv x v pads=1,0,0,1 nhwc; y = relu c; out y",
    "in x n,8,h,w; const v 16,8,1,1; const u 40,16,3,3; const b 40,1,1; p = conv x v nhwc; c = conv p u pads=1,1,1,1 nhwc; "
    "s = add c b; y = relu s; out y s",
    /* dilated: phases that fill the image, with what follows in the same kernel, and such that stick out of it; of one direction; of
       a point or two; of whatever size the run brings */
    "in x 2,16,16,12; in z 2,24,16,12; const w 24,16,3,3; c = conv x w pads=2,3,2,3 dilations=2,3 nhwc; s = add c z; y = relu s; out y s",
    "in x 1,8,13,17; const v 16,8,1,1; const w 32,16,3,3; p = conv x v nhwc; c = conv p w dilations=3,2 nhwc; y = relu c; out y",
    "in x 1,16,9,12; const w 16,16,3,3; c = conv x w pads=1,4,1,4 dilations=1,4 nhwc; y = abs c; out y",
    "in x 1,16,12,9; const w 16,16,3,3; c = conv x w pads=6,0,5,1 dilations=4,1 nhwc; y = relu c; out y",
    "in x 1,16,7,8; const w 16,16,3,3; c = conv x w pads=5,6,5,6 dilations=5,6 nhwc; y = relu c; out y",
    "in x:f16 1,16,8,8; const w:f16 16,16,3,3; c = conv x w pads=2,2,2,2 dilations=2,2 nhwc; y = relu c; out y",
    "in x n,16,h,w; const u 32,16,3,3; c = conv x u pads=3,2,3,2 dilations=3,2 nhwc; y = relu c; out y",
    "in x 1,16,10,w; const u 16,16,3,3; c = conv x u pads=2,1,2,1 dilations=2,1 nhwc; y = relu c; out y",
    /* several windows side by side in both directions */
    "in x 1,16,9,9; const w 16,16,5,5; c = conv x w pads=2,2,2,2 nhwc; y = abs c; out y",
};
enum { NCONVOLUTIONS = sizeof convolutions / sizeof *convolutions };

static int has_tiles(const dlc_module *module)
{
    for (uint32_t v = 0; v < module->values.n; v++)
        if (strstr(module->values.data[v].name, ".winograd"))
            return 1;
    return 0;
}

static const char *const of_tiles[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64"}; /* targets */
enum { NTARGETS = sizeof of_tiles / sizeof *of_tiles };

static void give_the_convolution(const char *graph, const char *request, const char *target)
{
    small_graph s = small_begin(graph);
    ck_assert_msg(has_tiles(lowered(&s, target, request)), "%s", graph);
    s.ctx.scratch = dlc_arena_create(0);
    if (dlc_pass_choose(&s.ctx) != DLC_OK)
        small_fail(&s, "choose");
    double difference = small_difference(&s, run_nodes(&s), run_module(&s, s.ctx.module));
    double allowed = strstr(graph, "bf16") ? 8e-3 : strstr(graph, "f16") ? 1e-3 : 4e-6; /* the results' own rounding */
    ck_assert_msg(difference <= allowed, "%s, %s: off by %g", graph, request, difference);
    dlc_arena_destroy(s.ctx.scratch);
    small_end(&s);
}

START_TEST(tiles_give_the_convolution)
{
    static const char *const requests[] = {"winograd=2", "winograd=4"};
    give_the_convolution(convolutions[_i / NTARGETS / 2], requests[_i / NTARGETS % 2], of_tiles[_i % NTARGETS]);
}
END_TEST

/* Windows two apart: sizes that tiles fill and that they stick out of, borders on every side, several images, sizes that a run brings. */
static const char *const strided[] = {
    "in x 1,16,9,13; const w 32,16,3,3; c = conv x w strides=2,2 pads=1,1,1,1 nhwc; y = relu c; out y",
    "in x 1,16,16,12; const w 32,16,3,3; c = conv x w strides=2,2 pads=1,1,1,1 nhwc; y = relu c; out y",
    "in x 2,16,15,9; in z 2,24,8,5; const w 24,16,3,3; c = conv x w strides=2,2 pads=1,1,1,1 nhwc; s = add c z; y = relu s; out y s",
    "in x 1,8,11,6; const v 16,8,1,1; const w 40,16,3,3; const b 40,1,1; p = conv x v nhwc; c = conv p w strides=2,2 pads=0,1,1,0 nhwc; s = add c b; "
    "y = relu s; out y",
    "in x n,16,5,9; const w 16,16,3,3; c = conv x w strides=2,2 pads=2,0,1,1 nhwc; y = abs c; out y",
    "in x 1,16,9,8; const w 16,16,3,3; c = conv x w strides=2,1 pads=1,1,1,1 nhwc; y = abs c; out y",
    "in x:f16 1,16,9,7; const w:f16 32,16,3,3; c = conv x w strides=2,2 pads=1,1,1,1 nhwc; y = relu c; out y",
    "in x 1,16,h,9; const w 16,16,3,3; c = conv x w strides=2,2 pads=1,1,1,1 nhwc; y = relu c; out y",
    "in x n,8,h,w; const v 16,8,1,1; const u 40,16,3,3; const b 40,1,1; p = conv x v nhwc; c = conv p u strides=2,2 pads=1,1,1,1 nhwc; "
    "s = add c b; y = relu s; out y s",
};
enum { NSTRIDED = sizeof strided / sizeof *strided };

START_TEST(tiles_of_windows_two_apart_give_the_convolution)
{
    give_the_convolution(strided[_i / NTARGETS], "winograd=2", of_tiles[_i % NTARGETS]);
}
END_TEST

/* Windows along one direction, and of more taps than a form has: of rows, of columns, with nothing beside them, side by side in both; with
 * borders, dilated, several images, of types that are summed in wider ones, of whatever size the run brings. */
static const char *const of_taps[] = {
    "in x 1,16,9,17; const w 32,16,1,7; c = conv x w pads=0,3,0,3 nhwc; y = relu c; out y",
    "in x 2,16,17,9; in z 2,24,17,9; const w 24,16,7,1; c = conv x w pads=3,0,3,0 nhwc; s = add c z; y = relu s; out y s",
    "in x 1,16,8,9; const w 16,16,1,4; c = conv x w pads=0,0,0,3 nhwc; y = abs c; out y",
    "in x 1,8,13,6; const v 16,8,1,1; const w 40,16,4,1; const b 40,1,1; p = conv x v nhwc; c = conv p w pads=1,0,1,0 nhwc; s = add c b; y = relu s; out y",
    "in x 1,16,30; const w 32,16,7; c = conv x w pads=3,3 nhwc; y = relu c; out y",
    "in x 3,16,11; const w 32,16,4; c = conv x w pads=1,2 dilations=3 nhwc; y = relu c; out y",
    "in x 1,16,9,8; const w 16,16,7,7; c = conv x w pads=3,3,3,3 nhwc; y = abs c; out y",
    "in x 1,16,5,9; const w 16,16,4,7; c = conv x w pads=1,3,2,3 nhwc; y = abs c; out y",
    "in x 1,16,12,9; const w 16,16,1,7; c = conv x w pads=0,6,0,6 dilations=1,2 nhwc; y = relu c; out y",
    "in x 1,16,13,9; const w 16,16,7,1; c = conv x w pads=6,0,6,0 dilations=2,1 nhwc; y = relu c; out y",
    "in x:f16 1,16,9,7; const w:f16 32,16,1,4; c = conv x w pads=0,1,0,1 nhwc; y = relu c; out y",
    "in x 1,16,h,9; const w 16,16,7,1; c = conv x w pads=3,0,3,0 nhwc; y = relu c; out y",
    "in x n,16,w; const u 16,16,4; c = conv x u pads=1,2 nhwc; y = relu c; out y",
    "in x 1,16,w; const u 16,16,4; c = conv x u pads=1,2 dilations=2 nhwc; y = relu c; out y",
    "in x n,16,h,w; const u 16,16,1,7; c = conv x u pads=0,3,0,3 nhwc; y = relu c; out y",
};
enum { NOF_TAPS = sizeof of_taps / sizeof *of_taps };

START_TEST(tiles_of_other_windows_give_the_convolution)
{
    give_the_convolution(of_taps[_i / NTARGETS], "winograd=3", of_tiles[_i % NTARGETS]);
}
END_TEST

/* Not of that form: other strides, of dilated ones too, groups, windows that no form's make up, weights that a run brings, channels that do not
 * lie side by side. */
static const char *const others[] = {
    "in x 1,16,9,9; const w 16,16,3,3; c = conv x w strides=3,3 pads=1,1,1,1 nhwc; y = abs c; out y",
    "in x 1,16,9,9; const w 16,16,3,3; c = conv x w strides=2,2 dilations=2,2 pads=1,1,1,1 nhwc; y = abs c; out y",
    "in x 1,16,9,9; const w 16,8,3,3; c = conv x w group=2 pads=1,1,1,1 nhwc; y = abs c; out y",
    "in x 1,16,9,9; const w 16,16,2,2; c = conv x w pads=1,1,1,1 nhwc; y = abs c; out y",
    "in x 1,16,9,9; const w 16,16,1,11; c = conv x w pads=0,5,0,5 nhwc; y = abs c; out y",
    "in x 1,16,9,9; const w 16,16,5,5; c = conv x w strides=2,2 pads=2,2,2,2 nhwc; y = abs c; out y",
    "in x 1,16,9,9; in w 16,16,3,3; c = conv x w pads=1,1,1,1 nhwc; y = abs c; out y",
    "in x 1,16,9; const w 16,16,3; c = conv x w; y = abs c; out y",
};

START_TEST(others_stay)
{
    small_graph s = small_begin(others[_i]);
    ck_assert_msg(!has_tiles(lowered(&s, "x86-64-v3", "winograd=2")), "%s", others[_i]);
    small_end(&s);
}
END_TEST

/* Windows by one axis after the other: of three, strided, dilated, with borders of every kind, of types that are summed in wider ones, of
 * values computed on the way, with what follows, of whatever size the run brings. */
static const char *const pools[] = {
    "in x 1,20,9,11; y = max_pool x kernel=5,5 pads=2,2,2,2; out y",
    "in x 2,20,9,11; const w 20,20,1,1; c = conv x w nhwc; p = max_pool c kernel=5,4 pads=2,1,1,3 nhwc; y = abs p; out y",
    "in x:u8 1,5,12,10; y = max_pool x kernel=3,3 strides=2,2 pads=1,1,1,1; out y",
    "in x 1,5,12,10; y = max_pool x kernel=3,2 dilations=1,3 pads=1,2,1,2; out y",
    "in x 1,5,12,10; y = max_pool x kernel=3,3 strides=1,2 dilations=3,1 pads=3,0,3,0; z = exp y; out z",
    "in x 1,3,6,7,8; y = max_pool x kernel=3,3,3 pads=1,1,1,1,1,1; out y",
    "in x 1,20,9,11; e = exp x; y = avg_pool e kernel=3,3 pads=1,1,1,1; z = relu y; out y z",
    "in x:f16 1,20,9,11; y = avg_pool x kernel=4,4 pads=2,2,1,1 count_pad=1; out y",
    "in x 1,7,9,11; y = lp_pool x kernel=3,3 pads=1,1,1,1 p=3; out y",
    "in x n,7,h,w; y = max_pool x kernel=3,3 pads=1,1,1,1; out y",
    "in x n,7,h,w; y = avg_pool x kernel=3,3 strides=2,2 pads=1,1,1,1; z = exp y; out z",
};
enum { NPOOLS = sizeof pools / sizeof *pools };

static uint32_t count_cuts(const dlc_module *module)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < module->kernels.n; k++)
        for (uint32_t s = 0; s < module->kernels.data[k].kernel->stages.n; s++)
            n += strstr(module->kernels.data[k].kernel->stages.data[s].name, "_in") != NULL;
    return n;
}

START_TEST(windows_give_the_pool)
{
    static const char *const targets[] = {"x86-64-v2", "x86-64-v4", "aarch64", "sm_80"};
    const char *graph = pools[_i / 4];
    small_graph s = small_begin(graph);
    uint32_t ncuts = count_cuts(lowered(&s, targets[_i % 4], "windows=2"));
    ck_assert_msg(ncuts == (strstr(graph, "3,3,3") ? 2 : 1), "%s: %u", graph, ncuts);
    s.ctx.scratch = dlc_arena_create(0);
    if (dlc_pass_choose(&s.ctx) != DLC_OK)
        small_fail(&s, "choose");
    for (uint32_t k = 0; k < s.ctx.module->kernels.n; k++)
        if (dlc_schedule_resolve(s.ctx.module->kernels.data[k].schedule, s.diag) != DLC_OK)
            small_fail(&s, "schedule");
    double difference = small_difference(&s, run_nodes(&s), run_module(&s, s.ctx.module));
    double allowed = strstr(graph, "max_pool") ? 0 : strstr(graph, "f16") ? 1e-3 : 1e-6;
    ck_assert_msg(difference <= allowed, "%s: off by %g", graph, difference);
    dlc_arena_destroy(s.ctx.scratch);
    small_end(&s);
}
END_TEST

/* Windows that share nothing, have one axis or weights, or whose greatest element's place is wanted. */
static const char *const uncut[] = {
    "in x 1,5,12,10; y = max_pool x kernel=2,2 strides=2,2; out y",
    "in x 1,5,12; y = max_pool x kernel=3; out y",
    "in x 1,5,12,10; const w 5,1,3,3; y = conv x w group=5; out y",
    "in x 1,5,12,10; y = reduce_max x axes=2,3; out y",
    "in x 1,5,4,5; y = max_pool x kernel=2,2 dilations=3,3; out y",
};

START_TEST(other_windows_stay)
{
    small_graph s = small_begin(uncut[_i]);
    ck_assert_msg(!count_cuts(lowered(&s, "x86-64-v3", "windows=2")), "%s", uncut[_i]);
    small_end(&s);
}
END_TEST

/* Whether windows are cut, by estimates: large ones, those of small steps; not on GPUs. */
static const struct {
    const char *graph, *target;
    uint32_t ncuts;
} worth[] = {
    {"in x 1,256,20,20; y = max_pool x kernel=5,5 pads=2,2,2,2; out y", "x86-64-v4", 1},
    {"in x 1,256,20,20; y = max_pool x kernel=5,5 pads=2,2,2,2; out y", "x86-64-v3", 1},
    {"in x 1,128,20,20; const w 128,128,1,1; c = conv x w nhwc; p = max_pool c kernel=13,13 pads=6,6,6,6 nhwc; y = conv p w; out y", "x86-64-v4", 1},
    {"in x 1,64,112,112; y = max_pool x kernel=3,3 strides=2,2 pads=1,1,1,1; out y", "x86-64-v4", 0},
    {"in x 1,64,112,112; y = max_pool x kernel=2,2 strides=2,2; out y", "x86-64-v4", 0},
    {"in x 1,256,20,20; y = max_pool x kernel=5,5 pads=2,2,2,2; out y", "sm_80", 0},
};

START_TEST(windows_are_cut_where_it_pays)
{
    small_graph s = small_begin(worth[_i].graph);
    ck_assert_msg(count_cuts(lowered(&s, worth[_i].target, NULL)) == worth[_i].ncuts, "%s for %s", worth[_i].graph, worth[_i].target);
    small_end(&s);
}
END_TEST

/* Indices by straight pieces: borders of every kind, rounded ones, a window behind them; several axes at once. */
static const struct {
    const char *graph;
    int has_pieces;
} bordered[] = {
    {"in x 1,3,9,20; y = pad x pads=0,0,3,3,0,0,3,3 mode=reflect; out y", 1},
    {"in x 1,3,9,20; y = pad x pads=0,0,2,7,0,0,1,30 mode=edge; z = exp y; out y z", 1},
    {"in x:u8 5,20; y = pad x pads=0,12,0,19 mode=wrap; out y", 1},
    {"in x 1,3,8,20; y = resize x dims=1,3,4,10 mode=nearest; out y", 1},
    {"in x n,3,9,20; y = pad x pads=0,0,0,3,0,0,0,3 mode=reflect; out y", 1},
    {"in x 1,3,9,w; y = pad x pads=0,0,0,3,0,0,0,3 mode=reflect; out y", 0},  /* of unknown size */
    {"in x 1,3,9,20; y = resize x dims=1,3,9,29 mode=nearest; out y", 0},     /* too many */
    {"in x 1,3,9,20; y = pad x pads=0,0,3,3,0,0,3,3; out y", 0},
    {"in x 4; y = pad x pads=1,1 mode=reflect; out y", 0},                    /* too short */
};

static int has_choice(const dlc_module *module)
{
    int found = 0;
    for (uint32_t k = 0; k < module->kernels.n; k++) {
        dlc_str text = {0};
        dlc_kernel_print(module->kernels.data[k].kernel, 1, &text);
        found |= strstr(dlc_str_text(&text), "select(i") != NULL || strstr(dlc_str_text(&text), "i3 * 2]") != NULL;
        dlc_str_deinit(&text);
    }
    return found;
}

START_TEST(pieces_give_the_index)
{
    static const char *const targets[] = {"x86-64-v2", "x86-64-v4", "aarch64", "sm_80"};
    small_graph s = small_begin(bordered[_i / 4].graph);
    ck_assert_msg(has_choice(lowered(&s, targets[_i % 4], "pieces=8")) == bordered[_i / 4].has_pieces, "%s", bordered[_i / 4].graph);
    s.ctx.scratch = dlc_arena_create(0);
    if (dlc_pass_choose(&s.ctx) != DLC_OK)
        small_fail(&s, "choose");
    double difference = small_difference(&s, run_nodes(&s), run_module(&s, s.ctx.module));
    ck_assert_msg(difference == 0, "%s: off by %g", bordered[_i / 4].graph, difference);
    dlc_arena_destroy(s.ctx.scratch);
    small_end(&s);
}
END_TEST

/* Only where lanes then go along the axis. */
static const struct {
    const char *graph, *target;
    int has_pieces;
} bordering[] = {
    {"in x 1,64,56,56; y = pad x pads=0,0,3,3,0,0,3,3 mode=reflect; out y", "x86-64-v4", 1},
    {"in x 1,64,56,56; y = pad x pads=0,0,3,3,0,0,3,3 mode=edge; out y", "x86-64-v3", 1},
    {"in x 1,64,56,56; y = resize x dims=1,64,28,28 mode=nearest; out y", "x86-64-v4", 1},
    {"in x 1,64,56,56; const w 64,64,1,1; c = conv x w nhwc; p = pad c pads=0,0,3,3,0,0,3,3 mode=reflect nhwc; y = conv p w; out y", "x86-64-v4", 0},
    {"in x 1,64,56,56; y = pad x pads=0,0,3,3,0,0,3,3 mode=reflect; out y", "sm_80", 0},
};

START_TEST(pieces_are_chosen_where_it_pays)
{
    small_graph s = small_begin(bordering[_i].graph);
    ck_assert_msg(has_choice(lowered(&s, bordering[_i].target, NULL)) == bordering[_i].has_pieces, "%s for %s", bordering[_i].graph,
                  bordering[_i].target);
    small_end(&s);
}
END_TEST

/* Sums along two axes, written out: of every kind of resizing, of types that are summed in wider ones, along three axes, with maps around;
 * not those along one axis, nor other sums, nor what is rounded to bytes. */
static const struct {
    const char *graph;
    uint32_t ncuts;
} sampled[] = {
    {"in x 1,3,9,20; y = resize x dims=1,3,18,40 mode=linear; out y", 1},
    {"in x 2,3,9,20; e = abs x; y = resize e dims=2,3,13,9 mode=cubic; z = relu y; out y z", 1},
    {"in x 1,3,9,20; y = resize x dims=1,3,4,9 mode=linear antialias=1; out y", 1},
    {"in x 1,3,9,20; y = resize x dims=1,3,20,33 mode=linear coord=align_corners; out y", 1},
    {"in x:f16 1,3,9,20; y = resize x dims=1,3,18,31 mode=linear; out y", 1},
    {"in x:u8 1,3,9,20; y = resize x dims=1,3,18,40 mode=linear; out y", 0},
    {"in x 1,2,5,6,7; y = resize x dims=1,2,10,12,14 mode=linear; out y", 1},
    {"in x n,3,9,20; y = resize x dims=n,3,18,40 mode=linear; out y", 1},
    {"in x 1,3,9,20; y = resize x dims=1,3,9,40 mode=linear; out y", 0},
    {"in x 1,3,9,20; y = resize x dims=1,3,18,40 mode=nearest; out y", 0},
    {"in x 1,3,9,20; in z 1,3,9,20; p = mul x z; q = mul x x; y = add p q; out y", 0},
};

START_TEST(taps_give_the_sum)
{
    static const char *const targets[] = {"x86-64-v2", "x86-64-v4", "aarch64", "sm_80"};
    const char *graph = sampled[_i / 4].graph;
    small_graph s = small_begin(graph);
    uint32_t ncuts = count_cuts(lowered(&s, targets[_i % 4], "taps=2"));
    ck_assert_msg(ncuts == sampled[_i / 4].ncuts, "%s: %u", graph, ncuts);
    s.ctx.scratch = dlc_arena_create(0);
    if (dlc_pass_choose(&s.ctx) != DLC_OK)
        small_fail(&s, "choose");
    double difference = small_difference(&s, run_nodes(&s), run_module(&s, s.ctx.module));
    ck_assert_msg(difference <= (strstr(graph, "f16") ? 1e-3 : strstr(graph, "u8") ? 0 : 1e-6), "%s: off by %g", graph, difference);
    dlc_arena_destroy(s.ctx.scratch);
    small_end(&s);
}
END_TEST

static const struct {
    const char *graph, *target;
    uint32_t ncuts;
} sampling[] = {
    {"in x 1,64,56,56; y = resize x dims=1,64,112,112 mode=linear; out y", "x86-64-v4", 1},
    {"in x 1,3,480,640; y = resize x dims=1,3,224,224 mode=linear antialias=1; out y", "x86-64-v3", 1},
    {"in x 1,64,56,56; const w 64,64,1,1; c = conv x w nhwc; p = resize c dims=1,64,112,112 mode=linear nhwc; y = conv p w; out y", "x86-64-v4", 0},
    {"in x 1,64,56,56; y = resize x dims=1,64,112,112 mode=linear; out y", "sm_80", 0},
};

START_TEST(taps_are_cut_where_it_pays)
{
    small_graph s = small_begin(sampling[_i].graph);
    ck_assert_msg(count_cuts(lowered(&s, sampling[_i].target, NULL)) == sampling[_i].ncuts, "%s for %s", sampling[_i].graph, sampling[_i].target);
    small_end(&s);
}
END_TEST

/* Transposed windows: a kernel for each phase of the points, of unequal sizes, of windows the stride does not divide, by groups, of one
 * tap and of several, of weights that a run brings, of whatever size; with what follows. Not where a phase would have no taps, or where
 * what follows goes by all points, nor by steps between taps. */
static const struct {
    const char *graph;
    uint32_t nparts;
} transposed[] = {
    {"in x 1,16,5,6; const w 16,24,3,3; c = conv_transpose x w strides=2,2 pads=1,1,1,1 nhwc; y = relu c; out y", 4},
    {"in x 2,8,5,6; const w 8,3,5,5; c = conv_transpose x w strides=2,2 pads=2,2,2,2 output_padding=1,1; y = abs c; out y c", 4},
    {"in x 1,8,4,5; const w 8,5,4,2; y = conv_transpose x w strides=3,2 pads=1,0,0,1; out y", 6},
    {"in x 2,8,7; const w 8,6,3; const b 6,1; c = conv_transpose x w strides=2; s = add c b; y = tanh s; out y", 2},
    {"in x 1,12,5,5; const w 12,4,3,3; y = conv_transpose x w group=3 strides=2,2; out y", 4},
    {"in x 1,20,5,5; const w 20,1,3,3; c = conv_transpose x w group=20 strides=2,2 pads=1,1,1,1 nhwc; y = relu c; out y", 4},
    {"in x 1,8,5,6; in w 8,16,3,3; y = conv_transpose x w strides=2,2 pads=1,1,1,1; out y", 4},
    {"in x n,8,h,w; const v 8,16,3,3; c = conv_transpose x v strides=2,2 pads=1,1,1,1 nhwc; y = relu c; out y", 4},
    {"in x:f16 1,8,5,6; const w:f16 8,16,3,3; y = conv_transpose x w strides=2,1 pads=1,1,1,1; out y", 2},
    {"in x 1,4,3,3,4; const w 4,5,3,3,3; y = conv_transpose x w strides=2,2,2 pads=1,1,1,1,1,1; out y", 8},
    {"in x 1,8,1,5; const w 8,16,3,3; y = conv_transpose x w strides=2,2 pads=1,1,1,1; out y", 2},
    {"in x 1,8,5,6; const w 8,16,2,3; y = conv_transpose x w strides=3,2; out y", 2},
    {"in x 1,8,5; const w 8,16,3; y = conv_transpose x w strides=3 dilations=2; out y", 0},
    {"in x 1,8,5; const w 8,16,3; c = conv_transpose x w strides=2; m = reduce_max c axes=2 keepdims=1; y = sub c m; out y", 0},
};

static uint32_t count_parts(const dlc_module *module)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < module->kernels.n; k++)
        for (uint32_t b = 0; b < module->kernels.data[k].kernel->buffers.n; b++)
            if (module->kernels.data[k].kernel->buffers.data[b].is_part) {
                n++;
                break;
            }
    return n;
}

START_TEST(phases_give_the_transposed)
{
    static const char *const targets[] = {"x86-64-v2", "x86-64-v4", "aarch64", "sm_80"};
    const char *graph = transposed[_i / 4].graph;
    small_graph s = small_begin(graph);
    uint32_t nparts = count_parts(lowered(&s, targets[_i % 4], "transposed=2"));
    ck_assert_msg(nparts == transposed[_i / 4].nparts, "%s: %u", graph, nparts);
    s.ctx.scratch = dlc_arena_create(0);
    if (dlc_pass_choose(&s.ctx) != DLC_OK)
        small_fail(&s, "choose");
    double difference = small_difference(&s, run_nodes(&s), run_module(&s, s.ctx.module));
    ck_assert_msg(difference <= (strstr(graph, "f16") ? 1e-3 : 1e-6), "%s: off by %g", graph, difference);
    dlc_arena_destroy(s.ctx.scratch);
    small_end(&s);
}
END_TEST

static const struct {
    const char *graph, *target;
    uint32_t nparts;
} spreading[] = {
    {"in x 1,128,32,32; const w 128,64,3,3; c = conv_transpose x w strides=2,2 pads=1,1,1,1 nhwc; y = relu c; out y", "x86-64-v4", 4},
    {"in x 1,128,32,32; const w 128,64,5,5; c = conv_transpose x w strides=2,2 pads=2,2,2,2 output_padding=1,1 nhwc; y = relu c; out y", "x86-64-v3", 4},
    {"in x 1,128,32,32; const w 128,64,4,4; c = conv_transpose x w strides=2,2 pads=1,1,1,1 nhwc; y = relu c; out y", "x86-64-v4", 0}, /* an axis of phases */
    {"in x 1,128,32,32; const w 128,64,3,3; c = conv_transpose x w strides=2,2 pads=1,1,1,1 nhwc; y = relu c; out y", "sm_80", 0},
    {"in x 4,16,20,20; const w 16,8,3,3; c = conv_transpose x w strides=2,2 pads=1,1,1,1 output_padding=1,1; y = relu c; out y", "x86-64-v4", 4},
};

START_TEST(phases_are_parted_where_it_pays)
{
    small_graph s = small_begin(spreading[_i].graph);
    uint32_t nparts = count_parts(lowered(&s, spreading[_i].target, NULL));
    ck_assert_msg(nparts == spreading[_i].nparts, "%s for %s: %u", spreading[_i].graph, spreading[_i].target, nparts);
    small_end(&s);
}
END_TEST

/* Equal layers share the new kernels as they shared the old one; each launch has parts of its own. */
START_TEST(equal_layers_stay_equal)
{
    small_graph s = small_begin("in x 16,384; const a 384,384; const b 384,384; p = matmul x a; q = matmul p b; out q");
    const dlc_module *module = lowered(&s, "sm_75", "split=4");
    ck_assert_uint_eq(module->kernels.n, 2);
    ck_assert_uint_eq(module->steps.n, 4);
    ck_assert_uint_ne(module->steps.data[0].values[2], module->steps.data[2].values[2]);
    ck_assert_str_eq(module->steps.data[1].name, module->steps.data[0].name);
    small_end(&s);
}
END_TEST

/* An axis by phases; what reads a stage at another point of it than its own does not go by them. */
static const struct {
    const char *kernel, *result;
} phased[] = {
    {"kernel @k(x: f32[9,4]) -> (y: f32[7,4]) {\n  axis oh=7, c=4, kh=3\n  s[oh,c] = sum(kh) x[oh + kh, c]\n  y[oh,c] = exp(s)\n}\n",
     "kernel @k(x: f32[9,4]) -> (y: f32[7,4]) {\n  axis oh=4, c=4, kh=3, oh_phase=2\n  s[oh_phase,oh,c] = sum(kh) x[oh * 2 + kh + oh_phase, c]\n"
     "  y[oh_phase,oh,c] = exp(s) -> y[oh * 2 + oh_phase, c]\n}\n"},
    {"kernel @k(x: f32[7]) -> (y: f32[7]) {\n  axis oh=7\n  s[oh] = exp(x[oh])\n  y[oh] = s + s[6 - oh]\n}\n", NULL},
};

START_TEST(axes_go_by_phases)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_kernel *kernel;
    dlc_str text = {0};
    dlc_diag_init(&diag, arena);
    if (dlc_kernel_parse(phased[_i].kernel, arena, &diag, &kernel) != DLC_OK)
        ck_abort_msg("%s", diag.messages[0].text);
    uint32_t phase = dlc_rewrite_phases(kernel, 0, 2);
    ck_assert_int_eq(phase == DLC_NO_AXIS, !phased[_i].result);
    dlc_kernel_print(kernel, 1, &text);
    if (phased[_i].result)
        ck_assert_str_eq(dlc_str_text(&text), phased[_i].result);
    dlc_str_deinit(&text);
    dlc_arena_destroy(arena);
}
END_TEST

static const struct {
    const char *graph, *target;
    uint32_t nsteps;
} chosen[] = {
    {"in x 16,16384; in w 16384,16; y = matmul x w; out y", "sm_80", 2},
    {"in x 16,16384; in w 16384,16; y = matmul x w; out y", "x86-64-v4", 1},
    {"in x 1,2048; in w 2048,1000; y = matmul x w; out y", "sm_75", 2},
    {"in x 1,2048; const w 2048,1000; y = matmul x w; out y", "sm_80", 1}, /* a warp to a column, which is laid out for it */
    {"in x 1024,512; in w 512,1024; y = matmul x w; out y", "sm_80", 1}, /* blocks enough */
    {"in x 1,64,64,64; const w 64,64,3,3; c = conv x w pads=4,4,4,4 dilations=4,4 nhwc; y = relu c; out y", "x86-64-v3", 3}, /* padded, by tiles, turned */
    {"in x 1,64,64,64; const w 64,64,3,3; c = conv x w pads=24,24,24,24 dilations=24,24 nhwc; y = relu c; out y", "x86-64-v3", 2}, /* 3 points a phase */
    {"in x 1,256,33,33; const w 256,256,3,3; c = conv x w pads=24,24,24,24 dilations=24,24; y = relu c; out y", "x86-64-v3", 2}, /* columns whose borders take divisions */
    {"in x 16,40; in w 40,16; y = matmul x w; out y", "sm_80", 1},       /* a second kernel costs more */
    {"in x 12544,32; y = reduce_sum x axes=0 keepdims=0; out y", "x86-64-v4", 2}, /* threads have rows each */
    {"in x 32,12544; y = reduce_sum x axes=1 keepdims=0; out y", "x86-64-v4", 1}, /* and here by themselves */
    {"in x 12544,320; y = reduce_sum x axes=0 keepdims=0; out y", "x86-64-v4", 1},
    {"in x 1254,32; y = reduce_sum x axes=0 keepdims=0; out y", "x86-64-v4", 1},
};

START_TEST(estimates_decide)
{
    small_graph s = small_begin(chosen[_i].graph);
    ck_assert_msg(lowered(&s, chosen[_i].target, NULL)->steps.n == chosen[_i].nsteps, "%s for %s: %u steps", chosen[_i].graph,
                  chosen[_i].target, s.ctx.module->steps.n);
    small_end(&s);
}
END_TEST

/* What weights take to come from memory hides behind the products, so a deep layer of few points goes by tiles, which have more of them. */
START_TEST(deep_layers_go_by_tiles)
{
    small_graph s = small_begin("in x 1,192,16,16; const w 320,192,3,3; c = conv x w strides=2,2 pads=1,1,1,1 nhwc; y = relu c; out y");
    ck_assert(has_tiles(lowered(&s, "x86-64-v3", NULL)));
    small_end(&s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel_rewrite");
    TCase *tcase = tcase_create("kernel_rewrite");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, both_sides_are_equal, 0, 3 * NGRAPHS);
    tcase_add_loop_test(tcase, what_comes_out_is_scheduled, 0, 2 * NGRAPHS);
    tcase_add_loop_test(tcase, tiles_give_the_convolution, 0, 8 * NCONVOLUTIONS);
    tcase_add_loop_test(tcase, tiles_of_windows_two_apart_give_the_convolution, 0, NSTRIDED * NTARGETS);
    tcase_add_loop_test(tcase, tiles_of_other_windows_give_the_convolution, 0, NOF_TAPS * NTARGETS);
    tcase_add_loop_test(tcase, others_stay, 0, sizeof others / sizeof *others);
    tcase_add_loop_test(tcase, windows_give_the_pool, 0, 4 * NPOOLS);
    tcase_add_loop_test(tcase, phases_give_the_transposed, 0, 4 * sizeof transposed / sizeof *transposed);
    tcase_add_loop_test(tcase, phases_are_parted_where_it_pays, 0, sizeof spreading / sizeof *spreading);
    tcase_add_loop_test(tcase, other_windows_stay, 0, sizeof uncut / sizeof *uncut);
    tcase_add_loop_test(tcase, windows_are_cut_where_it_pays, 0, sizeof worth / sizeof *worth);
    tcase_add_loop_test(tcase, pieces_give_the_index, 0, 4 * (int)(sizeof bordered / sizeof *bordered));
    tcase_add_loop_test(tcase, pieces_are_chosen_where_it_pays, 0, sizeof bordering / sizeof *bordering);
    tcase_add_loop_test(tcase, taps_give_the_sum, 0, 4 * (int)(sizeof sampled / sizeof *sampled));
    tcase_add_loop_test(tcase, taps_are_cut_where_it_pays, 0, sizeof sampling / sizeof *sampling);
    tcase_add_test(tcase, equal_layers_stay_equal);
    tcase_add_loop_test(tcase, axes_go_by_phases, 0, sizeof phased / sizeof *phased);
    tcase_add_loop_test(tcase, estimates_decide, 0, sizeof chosen / sizeof *chosen);
    tcase_add_test(tcase, deep_layers_go_by_tiles);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
