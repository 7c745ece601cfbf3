/*
 * The pass manager: turns an order ("dce,const_fold,…") into rows of passes.def and runs them. Its
 * one idea: what a pass may assume is a set of facts; a pass runs only while its `needs` hold, adds
 * what it makes and takes away what it breaks, so any order a user types either works or is refused
 * by name.
 */
#include "base/budget.h"
#include "base/near.h"
#include "base/verify.h"
#include "passes/pass.h"
#include "passes/plan_memory.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

const dlc_pass_info dlc_passes[] = {
#define DLC_PASS(name, needs, makes, breaks, in_default, help)                                     \
    {#name, dlc_pass_##name, DLC_FACT_##needs, DLC_FACT_##makes, DLC_FACT_##breaks, in_default,    \
     help},
#include "passes/passes.def"
#undef DLC_PASS
};
const uint32_t dlc_npasses = sizeof dlc_passes / sizeof *dlc_passes;

/* Products of quantised values are found while their weights are codes, so before folding. Folding runs before simplify, whose rules
 * look for constants, and after it, for what the rules made constant; cse runs first so that equal constants of the model are folded
 * once. */
const char *const dlc_pipeline_default =
    "dce,cse,integers,dce,const_fold,simplify,const_fold,simplify,precision,cse,dce,layout,fuse,lower,"
    "samples,rewrite,slices,variants,choose,transfer,plan_memory";

static const dlc_pass_info *find_pass(const char *name, size_t nchars)
{
    for (uint32_t i = 0; i < dlc_npasses; i++)
        if (strlen(dlc_passes[i].name) == nchars && !memcmp(dlc_passes[i].name, name, nchars))
            return &dlc_passes[i];
    return NULL;
}

static dlc_status refuse_name(dlc_pass_ctx *ctx, const char *name, size_t nchars)
{
    const char **names = dlc_new_array(ctx->scratch, const char *, dlc_npasses);
    dlc_str list = {0};
    char word[65];
    snprintf(word, sizeof word, "%.*s", nchars > 64 ? 64 : (int)nchars, name);
    for (uint32_t i = 0; i < dlc_npasses; i++) {
        names[i] = dlc_passes[i].name;
        dlc_str_printf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = dlc_nearest(word, names, dlc_npasses);
    dlc_status status = dlc_diag_fail(
        ctx->diag, DLC_USAGE, NULL, "there is no pass '%s'%s%s%s; the passes are %s", word,
        near ? "; '" : "", near ? near : "", near ? "' is near it" : "", dlc_str_text(&list));
    dlc_str_deinit(&list);
    return status;
}

static const char *first_fact(uint32_t facts)
{
    static const char *const names[] = {"layouts", "fusion groups", "kernels", "schedules",
                                        "places"};
    return names[__builtin_ctz(facts)];
}

static const char *maker_of(uint32_t fact)
{
    for (uint32_t i = 0; i < dlc_npasses; i++)
        if (dlc_passes[i].makes & fact)
            return dlc_passes[i].name;
    return "no pass";
}

static dlc_status check_needs(dlc_pass_ctx *ctx, const dlc_pass_info *pass)
{
    uint32_t missing = pass->needs & ~ctx->facts;
    if (!ctx->graph && (pass->makes | pass->breaks) & DLC_FACT_KERNELS)
        return dlc_diag_fail(ctx->diag, DLC_USAGE, NULL,
                             "pass '%s' works on graphs; this is a module, what 'lower' makes of one", pass->name);
    if (!missing)
        return DLC_OK;
    return dlc_diag_fail(ctx->diag, DLC_USAGE, NULL,
                         "pass '%s' needs %s, which do not hold here; put '%s' before it",
                         pass->name, first_fact(missing), maker_of(missing & -missing));
}

/* Everything that exists at this point, verified: where asked for, and always once there are kernels,
 * which is where a row of ops.def whose rule does not fit its meaning ends. */
static dlc_status verify(dlc_pass_ctx *ctx)
{
    if (ctx->graph)
        DLC_TRY(dlc_graph_verify(ctx->graph, ctx->diag));
    if (!ctx->module || !(ctx->facts & DLC_FACT_KERNELS))
        return DLC_OK;
    DLC_TRY(dlc_module_verify(ctx->module, DLC_INTERNAL, ctx->diag));
    for (uint32_t i = 0; i < ctx->module->kernels.n; i++) {
        const dlc_module_kernel *kernel = &ctx->module->kernels.data[i];
        DLC_TRY(dlc_kernel_verify(kernel->kernel, ctx->diag));
        if (ctx->facts & DLC_FACT_SCHEDULES)
            DLC_TRY(dlc_schedule_resolve(kernel->schedule, ctx->diag));
    }
    return DLC_OK;
}

/* The graph until `lower` makes a module of it. */
static void dump(const dlc_pass_ctx *ctx, const dlc_pipeline_options *options, const char *pass)
{
    dlc_str text = {0};
    if (ctx->facts & DLC_FACT_KERNELS)
        dlc_module_print(ctx->module, &text);
    else
        dlc_graph_print(ctx->graph, &text);
    options->dump(options->user, pass, dlc_str_text(&text));
    dlc_str_deinit(&text);
}

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int wants_dump(const dlc_pipeline_options *options, const char *pass)
{
    return options->dump && options->dump_after &&
           (!strcmp(options->dump_after, pass) || !strcmp(options->dump_after, "all"));
}

static dlc_status run_pass(dlc_pass_ctx *ctx, const dlc_pass_info *pass,
                           const dlc_pipeline_options *options)
{
    DLC_TRY(check_needs(ctx, pass));
    dlc_mark mark = dlc_arena_mark(ctx->scratch);
    double start = now_s();
    ctx->changes = 0;
    dlc_budget_at(pass->name, NULL);
    dlc_status status = pass->run(ctx);
    double seconds = now_s() - start;
    dlc_arena_release(ctx->scratch, mark);
    DLC_TRY(status);
    ctx->facts = (ctx->facts & ~pass->breaks) | pass->makes;
    if (ctx->facts & DLC_FACT_KERNELS)
        ctx->module->after = pass->name;
    if (options->timing)
        options->timing(options->user, pass->name, seconds, ctx->changes);
    if (wants_dump(options, pass->name))
        dump(ctx, options, pass->name);
    if ((ctx->is_verifying || pass->makes & DLC_FACT_KERNELS) && verify(ctx) != DLC_OK)
        return dlc_diag_fail(ctx->diag, DLC_INTERNAL, ctx->graph ? ctx->graph->file : ctx->module->file,
                             "pass '%s' left this behind", pass->name);
    return DLC_OK;
}

/* The next name of a comma-separated list, blanks around it dropped. False at its end. */
static int next_name(const char **list, const char **name, size_t *nchars)
{
    const char *text = *list;
    if (!*text)
        return 0;
    size_t n = strcspn(text, ",");
    *list = text + n + (text[n] == ',');
    size_t skip = strspn(text, " \t\n");
    skip = skip < n ? skip : n;
    text += skip, n -= skip;
    while (n && strchr(" \t\n", text[n - 1]))
        n--;
    *name = text, *nchars = n;
    return 1;
}

static dlc_status check_names(dlc_pass_ctx *ctx, const char *order, const char *dump_after)
{
    const char *name;
    size_t nchars;
    while (next_name(&order, &name, &nchars))
        if (!find_pass(name, nchars))
            return refuse_name(ctx, name, nchars);
    if (dump_after && strcmp(dump_after, "all") && !find_pass(dump_after, strlen(dump_after)))
        return refuse_name(ctx, dump_after, strlen(dump_after));
    return DLC_OK;
}

dlc_status dlc_pipeline_run(dlc_pass_ctx *ctx, const dlc_pipeline_options *options)
{
    const char *order = options->passes ? options->passes : dlc_pipeline_default;
    const char *name;
    size_t nchars;
    DLC_TRY(check_names(ctx, order, options->dump_after));
    ctx->is_verifying = options->verify_each || dlc_is_verifying();
    while (next_name(&order, &name, &nchars))
        DLC_TRY(run_pass(ctx, find_pass(name, nchars), options));
    return DLC_OK;
}

dlc_status dlc_pipeline_resume(dlc_pass_ctx *ctx, dlc_module *module, const char **passes)
{
    const char *name = module->after, *at = NULL;
    size_t n = strlen(name);
    const dlc_pass_info *pass = find_pass(name, n);
    if (!pass)
        return refuse_name(ctx, name, n);
    for (const char *next = dlc_pipeline_default; (next = strstr(next, name)); next += n)
        if (next[n] == ',' || !next[n])
            at = next + n;
    if (!at || !strstr(strstr(dlc_pipeline_default, "lower"), name))
        return dlc_diag_fail(ctx->diag, DLC_INVALID, module->file, "pass '%s' leaves no module; 'lower' and those behind it do",
                             name);
    ctx->module = module;
    ctx->facts = DLC_FACT_KERNELS | (module->arena_bytes ? DLC_FACT_PLACED : 0) | DLC_FACT_SCHEDULES;
    for (uint32_t k = 0; k < module->kernels.n; k++)
        if (!module->kernels.data[k].schedule)
            ctx->facts &= ~(uint32_t)(DLC_FACT_SCHEDULES | DLC_FACT_PLACED);
    *passes = at + (*at == ',');
    ctx->schedules.keeps = strstr(*passes, "choose") != NULL;
    return ctx->facts & DLC_FACT_PLACED ? dlc_places_verify(ctx) : DLC_OK;
}
