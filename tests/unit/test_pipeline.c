/* The pass manager: orders are run or refused by name, facts are enforced, passes are timed and
 * dumped. */
#include "passes/pass.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

static dlc_arena *arena, *scratch;
static dlc_diag diag;
static dlc_pass_ctx ctx;
static dlc_str log_text;

static void setup(void)
{
    static const char text[] = "graph @f(%x: f32[4]) -> %y {\n"
                               "  %dead: f32[4] = exp %x\n"
                               "  %a: f32[4] = relu %x\n"
                               "  %y: f32[4] = relu %a\n"
                               "}\n";
    dlc_graph *graph;
    arena = dlc_arena_create(0);
    scratch = dlc_arena_create(0);
    log_text = (dlc_str){0};
    dlc_diag_init(&diag, arena);
    ck_assert_msg(dlc_graph_parse(text, "f.dlc", arena, &diag, &graph) == DLC_OK, "%s",
                  diag.nmessages ? diag.messages[0].text : "");
    ctx = (dlc_pass_ctx){.graph = graph,
                         .scratch = scratch,
                         .diag = &diag,
                         .fusion = "none",
                         .target = dlc_target_find("x86-64-v3")};
}

static void teardown(void)
{
    dlc_str_deinit(&log_text);
    dlc_arena_destroy(scratch);
    dlc_arena_destroy(arena);
}

static void log_dump(void *user, const char *pass, const char *text)
{
    (void)user;
    ck_assert(strstr(text, "graph @f"));
    dlc_str_printf(&log_text, "dump %s\n", pass);
}

static void log_timing(void *user, const char *pass, double seconds, uint32_t changes)
{
    (void)user;
    ck_assert(seconds >= 0);
    dlc_str_printf(&log_text, "%s %u\n", pass, changes);
}

START_TEST(passes_run_in_order)
{
    dlc_pipeline_options options = {.passes = " dce , simplify,dce",
                                    .dump_after = "simplify",
                                    .dump = log_dump,
                                    .timing = log_timing,
                                    .verify_each = 1};
    ck_assert_int_eq(dlc_pipeline_run(&ctx, &options), DLC_OK);
    ck_assert_str_eq(dlc_str_text(&log_text), "dce 1\nsimplify 1\ndump simplify\ndce 0\n");
    ck_assert_uint_eq(ctx.rules.n, 1);
    ck_assert_str_eq(ctx.rules.data[0].rule, "idempotent");
}
END_TEST

START_TEST(all_passes_are_dumped)
{
    dlc_pipeline_options options = {.passes = "dce,cse", .dump_after = "all", .dump = log_dump};
    ck_assert_int_eq(dlc_pipeline_run(&ctx, &options), DLC_OK);
    ck_assert_str_eq(dlc_str_text(&log_text), "dump dce\ndump cse\n");
}
END_TEST

static const struct {
    const char *passes, *dump_after, *found;
} refusals[] = {
    {"dce,const_flod", NULL,
     "there is no pass 'const_flod'; 'const_fold' is near it; the passes are dce, integers, const_fold, simplify"},
    {"", "nothing", "there is no pass 'nothing'"},
    {"dce,,cse", NULL, "there is no pass ''"},
    {"fuse", NULL, "pass 'fuse' needs layouts, which do not hold here; put 'layout' before it"},
    {"layout,simplify,fuse", NULL, "pass 'fuse' needs layouts"}, /* what simplify makes has none */
    {"layout,fuse,dce,lower", NULL, "pass 'lower' needs fusion groups"},
    {"plan_memory", NULL, "pass 'plan_memory' needs schedules"},
};

START_TEST(orders_are_refused)
{
    dlc_pipeline_options options = {.passes = refusals[_i].passes,
                                    .dump_after = refusals[_i].dump_after};
    ck_assert_int_eq(dlc_pipeline_run(&ctx, &options), DLC_USAGE);
    ck_assert_uint_eq(diag.nmessages, 1);
    ck_assert_msg(strstr(diag.messages[0].text, refusals[_i].found) != NULL, "%s",
                  diag.messages[0].text);
}
END_TEST

START_TEST(no_passes_are_fine)
{
    dlc_pipeline_options options = {.passes = "", .timing = log_timing};
    ck_assert_int_eq(dlc_pipeline_run(&ctx, &options), DLC_OK);
    ck_assert_str_eq(dlc_str_text(&log_text), "");
}
END_TEST

START_TEST(the_default_places_everything)
{
    dlc_pipeline_options options = {.timing = log_timing, .verify_each = 1};
    ck_assert_int_eq(dlc_pipeline_run(&ctx, &options), DLC_OK);
    ck_assert_uint_eq(ctx.facts, DLC_FACT_ALL);
    ck_assert_uint_eq(ctx.module->steps.n, 1);
    const dlc_module *module = ctx.module;
    ck_assert_int_eq(module->values.data[module->inputs.data[0]].role, DLC_VALUE_INPUT);
    ck_assert_int_eq(module->values.data[module->outputs.data[0].value].role, DLC_VALUE_OUTPUT);
    ck_assert_int_eq(dlc_expr_value(module->pool, module->arena_bytes), 0);
}
END_TEST

/* Every row that says so is in the default order, and no other. */
START_TEST(the_table_and_the_order_agree)
{
    const dlc_pass_info *pass = &dlc_passes[_i];
    size_t n = strlen(pass->name);
    int is_listed = 0;
    for (const char *at = dlc_pipeline_default; (at = strstr(at, pass->name)); at += n)
        is_listed |= (at == dlc_pipeline_default || at[-1] == ',') && (at[n] == ',' || !at[n]);
    ck_assert_int_eq(is_listed, pass->in_default);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pipeline");
    TCase *tcase = tcase_create("pipeline");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, passes_run_in_order);
    tcase_add_test(tcase, all_passes_are_dumped);
    tcase_add_loop_test(tcase, orders_are_refused, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(tcase, no_passes_are_fine);
    tcase_add_test(tcase, the_default_places_everything);
    tcase_add_loop_test(tcase, the_table_and_the_order_agree, 0, (int)dlc_npasses);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
