/*
 * The compiler as a library (dlc/dlc.h): import, passes, code. Its one idea: every entry runs under
 * a guard, so that memory running out anywhere beneath it comes back as a status.
 */
#include "compiler/driver.h"
#include "compiler/machine.h"
#include "compiler/tuned.h"

#include "base/near.h"
#include "base/text.h"
#include "package/backend.h"
#include "package/plugin.h"
#include "passes/rewrite/rewrite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifndef DLC_VERSION
#define DLC_VERSION "0"
#endif

const char *dlc_version(void)
{
    return DLC_VERSION;
}

/* ---- memory ---- */

/* " at node 'conv1', in fuse" */
static void print_place(const dlc_budget *budget, char *text, size_t size_bytes)
{
    snprintf(text, size_bytes, "%s%.100s%s%s%s", budget->node ? " at node '" : "", budget->node ? budget->node : "",
             budget->node ? "'" : "", budget->step ? ", in " : "", budget->step ? budget->step : "");
}

static void leave(void *user, size_t size_bytes, int over_budget)
{
    dlc_model *model = user;
    char place[200];
    print_place(&model->budget, place, sizeof place);
    model->is_limit_logged = 0;
    if (over_budget == DLC_OUT_OF_TIME)
        snprintf(model->limit_text, sizeof model->limit_text,
                 "takes longer than the %u s it may%s; --max-seconds sets another limit", model->max_seconds, place);
    else if (over_budget == DLC_OUT_OF_BUDGET)
        snprintf(model->limit_text, sizeof model->limit_text,
                 "takes more than the %zu MiB of memory it may%s; --max-memory sets another limit",
                 model->budget.most_bytes >> 20, place);
    else
        snprintf(model->limit_text, sizeof model->limit_text, "%zu more bytes of memory were asked for%s and %s", size_bytes,
                 place, over_budget ? "pass the limit given" : "the system has none left");
    longjmp(*model->out_of_memory, 1);
}

/* Each counts as told before it is: the callback may lead back here. The limit's message stands behind all others. */
static void log_messages(dlc_model *model)
{
    dlc_model_note note;
    if (!model->options.log)
        return;
    while (model->nlogged < model->diag.nmessages && dlc_model_message(model, model->nlogged, &note)) {
        model->nlogged++;
        model->options.log(model->options.user, &note);
    }
    if (model->is_limit_logged || !dlc_model_message(model, model->diag.nmessages, &note))
        return;
    model->is_limit_logged = 1;
    model->options.log(model->options.user, &note);
}

dlc_status dlc_model_tell(dlc_model *model, dlc_status status)
{
    log_messages(model);
    return status;
}

dlc_status dlc_model_guard(dlc_model *model, dlc_model_body body, void *args)
{
    static DLC_THREAD_LOCAL dlc_model *guarded; /* whose handler the thread has */
    volatile dlc_status status = DLC_LIMIT; /* its value survives the jump */
    dlc_model *outer = guarded;
    jmp_buf here, *outer_jump = model->out_of_memory;
    guarded = model;
    model->out_of_memory = &here;
    dlc_arena_set_oom(leave, model);
    dlc_budget *before = dlc_budget_use(&model->budget);
    const dlc_budget around = model->budget;
    if (setjmp(here) == 0)
        status = body(model, args);
    else
        dlc_budget_drop(&model->budget, around.narenas);
    guarded = outer;
    model->out_of_memory = outer_jump;
    dlc_arena_set_oom(outer ? leave : NULL, outer);
    dlc_budget_use(before);
    model->budget.step = around.step;
    model->budget.node = around.node;
    model->budget.deadline = around.deadline;
    log_messages(model);
    return status;
}

/* From now on; interpreting and tuning take what they take. */
static void limit_time(dlc_model *model)
{
    model->budget.deadline = dlc_budget_clock() + model->max_seconds;
}

/* ---- messages ---- */

int dlc_model_message(const dlc_model *model, uint32_t i, dlc_model_note *note)
{
    if (!model || !note || i > model->diag.nmessages ||
        (i == model->diag.nmessages && !model->limit_text[0]))
        return 0;
    if (i == model->diag.nmessages) {
        *note = (dlc_model_note){DLC_LIMIT, model->path ? model->path : "", model->limit_text, NULL};
        return 1;
    }
    const dlc_message *message = &model->diag.messages[i];
    *note = (dlc_model_note){message->status, message->place, message->text, message->detail};
    return 1;
}

/* ---- import ---- */

/* The first word after blanks and comments; an ONNX file begins with a field's tag. */
static int begins_with(const dlc_map *map, const char *word)
{
    size_t i = 0, n = strlen(word);
    while (i < map->size_bytes) {
        if (map->bytes[i] == '#')
            while (i < map->size_bytes && map->bytes[i] != '\n')
                i++;
        else if (dlc_is_space(map->bytes[i]))
            i++;
        else
            break;
    }
    return map->size_bytes - i > n && !memcmp(map->bytes + i, word, n);
}

static dlc_onnx_options import_options(dlc_model *model)
{
    const dlc_options *options = &model->options;
    dlc_onnx_options result = {
        .max_depth = options->max_depth,
        .max_nodes = options->max_nodes,
        .max_heap_bytes = options->max_heap_bytes,
        .symlink_dir = options->link_dir,
        .nshapes = options->nshapes,
        .nvalues = options->nvalues,
    };
    result.shapes =
        dlc_arena_array(model->arena, options->nshapes, sizeof *result.shapes, _Alignof(void *));
    for (uint32_t i = 0; i < options->nshapes; i++) {
        result.shapes[i].name = options->shapes[i].name;
        result.shapes[i].dims = options->shapes[i].dims;
        result.shapes[i].rank = options->shapes[i].rank;
    }
    result.values =
        dlc_arena_array(model->arena, options->nvalues, sizeof *result.values, _Alignof(void *));
    for (uint32_t i = 0; i < options->nvalues; i++) {
        result.values[i].name = options->values[i].name;
        result.values[i].text = options->values[i].text;
    }
    return result;
}

/* Where a model comes from: a file, or bytes that are called `path` in messages. */
typedef struct {
    const char *path;
    const void *bytes; /* NULL: the file */
    size_t size_bytes;
} source;

/* A target that was asked for, where the module's kernels have schedules for none yet. */
static dlc_status choose_target(dlc_model *model, dlc_module *module)
{
    const dlc_target *wanted = model->ctx.target;
    if (!model->has_target || !strcmp(wanted->name, module->target->name)) {
        model->ctx.target = module->target;
        return DLC_OK;
    }
    for (uint32_t k = 0; k < module->kernels.n; k++)
        if (module->kernels.data[k].schedule)
            return dlc_diag_fail(&model->diag, DLC_USAGE, module->file,
                                 "its schedules are for %s, not for %s", module->target->name,
                                 wanted->name);
    module->target = wanted;
    return DLC_OK;
}

/* Schedules are given for a module that has some: back to where they are chosen, which keeps those nobody gives others for. */
static void override_schedules(dlc_model *model)
{
    model->ctx.schedules.keeps = 1;
    model->ctx.facts &= ~(uint32_t)(DLC_FACT_SCHEDULES | DLC_FACT_PLACED);
    model->rest = dlc_arena_printf(model->arena, "choose,%s", *model->rest ? model->rest : "plan_memory");
}

static dlc_status import_module(dlc_model *model, const char *text, const char *path)
{
    dlc_module *module;
    DLC_TRY(dlc_module_parse(text, path, model->arena, &model->diag, &module));
    DLC_TRY(choose_target(model, module));
    dlc_module_drop_kernels(module); /* a text may have more than its steps launch: nobody has code for them made */
    model->ctx.scratch = model->scratch;
    model->ctx.diag = &model->diag;
    DLC_TRY(dlc_pipeline_resume(&model->ctx, module, &model->rest));
    if (model->ctx.schedules.text && model->ctx.facts & DLC_FACT_SCHEDULES)
        override_schedules(model);
    return DLC_OK;
}

static dlc_status import_text(dlc_model *model, const char *path)
{
    int is_module = begins_with(&model->text, "module");
    if (model->options.nshapes || model->options.nvalues)
        return dlc_diag_fail(&model->diag, DLC_USAGE, path, "%s can be given for ONNX models; this is a %s in text form",
                             model->options.nshapes ? "shapes" : "values", is_module ? "module" : "graph");
    const char *text =
        dlc_arena_strndup(model->arena, (const char *)model->text.bytes, model->text.size_bytes);
    if (is_module)
        return import_module(model, text, path);
    return dlc_graph_parse(text, path, model->arena, &model->diag, &model->graph);
}

static dlc_status import_map(dlc_model *model, const source *from)
{
    if (model->text.size_bytes >= 4 && !memcmp(model->text.bytes, "\177ELF", 4))
        return dlc_diag_fail(
            &model->diag, DLC_USAGE, from->path,
            "is compiled code, where an ONNX model, or a graph or module in text form, is wanted");
    if (begins_with(&model->text, "graph") || begins_with(&model->text, "symbol") || begins_with(&model->text, "string") ||
        begins_with(&model->text, "module"))
        return import_text(model, from->path);
    dlc_onnx_options options = import_options(model);
    if (from->bytes)
        return dlc_onnx_read(from->bytes, from->size_bytes, from->path, &options, model->arena,
                             &model->diag, &model->onnx, &model->graph);
    dlc_map_close(&model->text);
    return dlc_onnx_open(from->path, &options, model->arena, &model->diag, &model->onnx,
                         &model->graph);
}

static dlc_status read_schedules(dlc_model *model)
{
    const char *file = model->options.schedules;
    if (!file)
        return DLC_OK;
    DLC_TRY(dlc_map_open(file, &model->schedules, &model->diag));
    model->ctx.schedules.file = file;
    model->ctx.schedules.text =
        dlc_arena_strndup(model->arena, (const char *)model->schedules.bytes, model->schedules.size_bytes);
    dlc_map_close(&model->schedules);
    return DLC_OK;
}

static void read_tuned(dlc_model *model)
{
    const char *file = dlc_tuned_file(model->options.tuned, model->options.target);
    model->ctx.tuned.file = dlc_arena_strdup(model->arena, file);
    model->ctx.tuned.text = dlc_tuned_read(model->ctx.tuned.file, model->arena, &model->diag);
}

/* What a model may take: of memory a multiple of its file, and of what its weights take beside it. */
static void set_budget(dlc_model *model, uint64_t file_bytes)
{
    uint64_t most = model->options.max_memory_bytes;
    if (!most) {
        most = dlc_memory_budget(file_bytes);
        model->budget.ceiling_bytes = (size_t)dlc_memory_most();
    }
    model->budget.most_bytes = most < SIZE_MAX ? (size_t)most : SIZE_MAX;
}

static uint64_t weight_bytes(const dlc_graph *graph)
{
    uint64_t bytes = 0;
    for (const dlc_node *node = graph->first; node && node->op == DLC_OP_CONSTANT; node = node->next)
        bytes += node->outputs[0]->data ? node->outputs[0]->data->size_bytes : 0;
    return bytes;
}

static dlc_status import_source(dlc_model *model, const source *from);

static dlc_status state_typical(dlc_model *model)
{
    const dlc_options *options = &model->options;
    if (options->ntypical && !model->graph)
        return dlc_diag_fail(&model->diag, DLC_USAGE, model->ctx.module ? model->ctx.module->file : NULL,
                             "typical sizes can be given for graphs; this is a module, whose symbols have theirs");
    dlc_usual *stated = dlc_new_array(model->arena, dlc_usual, options->ntypical + 1);
    for (uint32_t i = 0; i < options->ntypical; i++)
        stated[i] = (dlc_usual){options->typical[i].name, options->typical[i].rank, options->typical[i].dims};
    return options->ntypical ? dlc_graph_state_usual(model->graph, stated, options->ntypical) : DLC_OK;
}

static dlc_status import(dlc_model *model, void *args)
{
    const source *from = args;
    struct stat info;
    uint64_t file_bytes = from->bytes ? from->size_bytes : stat(from->path, &info) ? 0 : (uint64_t)info.st_size;
    set_budget(model, file_bytes);
    limit_time(model);
    dlc_budget_at("import", NULL);
    DLC_TRY(import_source(model, from));
    DLC_TRY(state_typical(model));
    if (model->graph)
        set_budget(model, file_bytes + weight_bytes(model->graph) / 16); /* four times those in other files */
    return DLC_OK;
}

static dlc_status import_source(dlc_model *model, const source *from)
{
    DLC_TRY(read_schedules(model));
    read_tuned(model);
    if (!from->bytes) {
        DLC_TRY(dlc_map_open(from->path, &model->text, &model->diag));
        return import_map(model, from);
    }
    model->text = (dlc_map){.bytes = from->bytes, .size_bytes = from->size_bytes};
    dlc_status status = import_map(model, from);
    model->text = (dlc_map){0}; /* the caller's */
    return status;
}

static dlc_status refuse_target(dlc_model *model)
{
    const char *wanted = model->options.target, *const *names = dlc_target_names();
    dlc_str list = {0};
    uint32_t n = 0;
    for (; names[n]; n++)
        dlc_str_printf(&list, "%s%s", n ? ", " : "", names[n]);
    const char *near = dlc_nearest(wanted, names, n);
    dlc_status status =
        dlc_diag_fail(&model->diag, DLC_USAGE, NULL,
                      "there is no target '%s'%s%s%s; the targets are %s, with facts such as "
                      "x86-64-v4+vnni, or a plug-in such as ./mine.so",
                      wanted, near ? "; '" : "", near ? near : "", near ? "' is near it" : "",
                      dlc_str_text(&list));
    dlc_str_deinit(&list);
    return status;
}

static dlc_status check_target(dlc_model *model)
{
    model->has_target = model->options.target != NULL;
    if (!model->options.target)
        model->options.target = "native";
    if (strchr(model->options.target, '/'))
        DLC_TRY(dlc_plugin_open(model->options.target, &model->diag, &model->ctx.target));
    else
        DLC_TRY(dlc_machine_target(model->options.target, model->options.machine, &model->diag,
                                   &model->ctx.target));
    if (model->ctx.target && model->options.emulate_gpu && !dlc_backend_of(model->ctx.target, 1))
        return dlc_diag_fail(
            &model->diag, DLC_USAGE, NULL,
            "the emulation runs kernels of CUDA targets such as sm_80; the target is %s",
            model->options.target);
    if (model->ctx.target)
        return DLC_OK;
    return refuse_target(model);
}

/* What another target's model had to say of its failure. */
static dlc_status other_failed(dlc_model *model, const dlc_model *other, dlc_status status)
{
    dlc_model_note note;
    for (uint32_t i = 0; dlc_model_message(other, i, &note); i++) {
        if (note.status == DLC_OK)
            continue;
        (void)dlc_diag_fail(&model->diag, note.status, note.place, "%s", note.text);
        if (note.detail)
            dlc_diag_detail(&model->diag, "%s", note.detail);
    }
    return status;
}

static int has_message(const dlc_model *model, const dlc_model_note *wanted)
{
    dlc_model_note note;
    for (uint32_t i = 0; dlc_model_message(model, i, &note); i++)
        if (!strcmp(note.text, wanted->text) && !strcmp(note.place, wanted->place))
            return 1;
    return 0;
}

/* What passes noted for another target and not for this one. */
static void take_notes(dlc_model *model, const dlc_model *other)
{
    dlc_model_note note;
    for (uint32_t i = 0; dlc_model_message(other, i, &note); i++) {
        if (has_message(model, &note))
            continue;
        (void)dlc_diag_fail(&model->diag, note.status, note.place, "%s", note.text);
        if (note.detail)
            dlc_diag_detail(&model->diag, "%s", note.detail);
    }
}

/* Passes rewrite the graph for one target, so each further name of --target has a model of its own.
 */
static dlc_status open_source(const source *from, const dlc_options *options, dlc_model **result);

static dlc_status open_others(dlc_model *model, const source *from)
{
    const char *comma = model->options.target ? strchr(model->options.target, ',') : NULL;
    if (!comma)
        return DLC_OK;
    dlc_options options = model->options;
    options.log = NULL; /* this model has their messages in the end */
    size_t first = (size_t)(comma - model->options.target), n = 0;
    for (const char *at = comma; at; at = strchr(at + 1, ','))
        n++;
    model->options.target = dlc_arena_strndup(model->arena, model->options.target, first);
    model->others = dlc_new_array(model->arena, dlc_model *, n);
    while (comma) {
        const char *name = comma + 1;
        comma = strchr(name, ',');
        options.target =
            dlc_arena_strndup(model->arena, name, comma ? (size_t)(comma - name) : strlen(name));
        dlc_model **other = &model->others[model->nothers++];
        dlc_status status = open_source(from, &options, other);
        if (status != DLC_OK)
            return *other ? other_failed(model, *other, status) : status;
    }
    return DLC_OK;
}

/* The model of each target of a file, in the order they were named. */
static dlc_model *model_of(dlc_model *model, uint32_t i)
{
    return i ? model->others[i - 1] : model;
}

/* Bytes of the widest vectors among the file's targets for these processors. */
static uint32_t widest_vector(dlc_model *model, const dlc_target *of)
{
    uint32_t widest = of->vector_bytes;
    for (uint32_t i = 0; i <= model->nothers; i++) {
        const dlc_target *target = model_of(model, i)->ctx.target;
        if (target->kind == of->kind && !strcmp(target->triple, of->triple) && target->vector_bytes > widest)
            widest = target->vector_bytes;
    }
    return widest;
}

/* What several targets pack, they pack alike, so that it stands in the file once. */
static dlc_status agree_on_panels(dlc_model *model)
{
    for (uint32_t i = 0; i <= model->nothers; i++) {
        dlc_pass_ctx *ctx = &model_of(model, i)->ctx;
        if (ctx->target->kind != DLC_TARGET_CPU || ctx->target->plugin)
            continue;
        const dlc_target *beside = dlc_target_beside(ctx->target, widest_vector(model, ctx->target));
        if (!beside)
            return dlc_diag_fail(&model->diag, DLC_LIMIT, NULL, "there is no memory for the target %s", ctx->target->name);
        ctx->target = beside;
    }
    return DLC_OK;
}

static dlc_status start(dlc_model *model, const source *from)
{
    if (!from->path)
        return dlc_diag_fail(&model->diag, DLC_USAGE, NULL, "the path of the model is NULL");
    if (!from->bytes)
        model->path = dlc_arena_strdup(model->notes, from->path);
    DLC_TRY(open_others(model, from));
    DLC_TRY(check_target(model));
    DLC_TRY(dlc_model_guard(model, import, (void *)(uintptr_t)from));
    return model->nothers ? agree_on_panels(model) : DLC_OK;
}

static dlc_status open_source(const source *from, const dlc_options *options, dlc_model **result)
{
    dlc_model *model = *result = calloc(1, sizeof *model);
    if (!model)
        return DLC_LIMIT;
    dlc_options_take(&model->options, options);
    dlc_budget *before = dlc_budget_use(&model->budget);
    model->arena = dlc_arena_create(0);
    model->scratch = dlc_arena_create(0);
    dlc_budget_use(NULL); /* there is always room for messages */
    model->notes = dlc_arena_create(0);
    dlc_budget_use(before);
    dlc_diag_init(&model->diag, model->notes);
    model->max_seconds = model->options.max_seconds ? model->options.max_seconds : 600;
    return dlc_model_tell(model, start(model, from));
}

dlc_status dlc_model_open(const char *path, const dlc_options *options, dlc_model **result)
{
    return open_source(&(source){.path = path}, options, result);
}

dlc_status dlc_model_open_bytes(const void *bytes, size_t size_bytes, const char *name,
                                const dlc_options *options, dlc_model **result)
{
    source from = {name ? name : "model", bytes ? bytes : "", size_bytes};
    return open_source(&from, options, result);
}

void dlc_model_close(dlc_model *model)
{
    if (!model)
        return;
    for (uint32_t i = 0; i < model->nothers; i++)
        dlc_model_close(model->others[i]);
    dlc_onnx_close(model->onnx);
    dlc_map_close(&model->text);
    dlc_str_deinit(&model->buffer);
    free(model->output_block);
    dlcrt_strings_free(&model->strings);
    dlc_arena_destroy(model->scratch);
    dlc_arena_destroy(model->arena);
    dlc_arena_destroy(model->notes);
    free(model);
}

/* ---- inputs and outputs ---- */

static void describe(dlc_model *model, const char *name, const dlc_type *type,
                     dlcrt_tensor_info *info)
{
    const dlc_graph *graph = model->graph;
    const dlc_module *module = model->ctx.module;
    const dlc_pool *pool = graph ? graph->pool : module->pool;
    dlc_str text = {0};
    dlc_model_type_print(model, type, &text);
    *info = (dlcrt_tensor_info){.name = name,
                                .type = dlc_arena_strdup(model->notes, dlc_str_text(&text)),
                                .dtype = type->dtype,
                                .rank = type->rank};
    dlc_str_deinit(&text);
    for (uint32_t d = 0; d < type->rank; d++) {
        const dlc_expr_node *node = dlc_node_of(pool, type->dims[d]);
        if (!dlc_expr_is_int(pool, type->dims[d], &info->dims[d]))
            info->dims[d] = -1;
        if (node->op == DLC_EXPR_SYM)
            info->dim_names[d] = graph ? graph->symbols.data[node->imm.id].name
                                       : module->symbols.data[node->imm.id].name;
    }
}

int dlc_model_input(dlc_model *model, uint32_t i, dlcrt_tensor_info *info)
{
    const char *name;
    const dlc_type *type = model && info ? dlc_model_input_type(model, i, &name) : NULL;
    if (type)
        describe(model, name, type, info);
    return type != NULL;
}

int dlc_model_output(dlc_model *model, uint32_t i, dlcrt_tensor_info *info)
{
    const char *name;
    const dlc_type *type = model && info ? dlc_model_output_type(model, i, &name) : NULL;
    if (type)
        describe(model, name, type, info);
    return type != NULL;
}

/* ---- passes ---- */

static void after_pass(void *user, const char *pass, double seconds, uint32_t changes)
{
    dlc_model *model = user;
    if (model->options.timing)
        model->options.timing(model->options.user, pass, seconds, changes);
    log_messages(model);
}

static void dump(void *user, const char *pass, const char *text)
{
    const dlc_model *model = user;
    model->options.dump(model->options.user, pass, text);
}

dlc_status dlc_model_run_passes(dlc_model *model)
{
    if (model->has_run)
        return model->run_status;
    model->has_run = 1;
    dlc_pass_ctx *ctx = &model->ctx;
    ctx->graph = model->graph;
    ctx->scratch = model->scratch;
    ctx->diag = &model->diag;
    ctx->rewrite = model->options.rewrite;
    ctx->winograd = model->options.winograd;
    ctx->matrix = model->options.matrix;
    ctx->precision = model->options.precision;
    ctx->is_emulated = model->options.emulate_gpu != 0;
    ctx->fusion = model->options.fusion ? model->options.fusion : "greedy";
    ctx->fold_total_bytes = model->options.max_fold_bytes;
    dlc_pipeline_options options = {
        .passes = model->options.passes ? model->options.passes : model->rest,
        .dump_after = model->options.dump_after,
        .dump = model->options.dump ? dump : NULL,
        .timing = model->options.timing || model->options.log ? after_pass : NULL,
        .user = model,
        .verify_each = model->options.verify_each,
    };
    model->run_status = DLC_LIMIT; /* what stays when memory runs out below */
    model->run_status = dlc_pipeline_run(ctx, &options);
    if (model->run_status == DLC_OK && ctx->schedules.text && !ctx->schedules.is_read)
        model->run_status = dlc_diag_fail(ctx->diag, DLC_USAGE, ctx->schedules.file,
                                          "schedules are taken by the pass 'choose', which is not among those that ran");
    return model->run_status;
}

/* ---- texts ---- */

struct text_args {
    dlc_text_kind kind;
    const char *format;
};

/* The graph until `lower` made a module of it. */
static void print_stage(dlc_model *model, int is_module)
{
    if (is_module)
        dlc_module_print(model->ctx.module, &model->buffer);
    else
        dlc_graph_print(model->graph, &model->buffer);
}

/* Kernels as a file of schedules has them, each with what --schedule may call it. */
static dlc_status print_schedules(dlc_model *model)
{
    const dlc_module *module = model->ctx.module;
    if (!(model->ctx.facts & DLC_FACT_SCHEDULES))
        return dlc_diag_fail(&model->diag, DLC_USAGE, NULL, "the pass 'choose', which makes schedules, is not among those that ran");
    for (uint32_t k = 0; k < module->kernels.n; k++) {
        uint32_t s = 0;
        while (module->steps.data[s].kind != DLC_STEP_LAUNCH || module->steps.data[s].kernel != k)
            s++; /* every kernel is launched */
        dlc_str_printf(&model->buffer, "%s# hash(%016" PRIx64 "), of %s\n", model->buffer.n ? "\n" : "",
                       module->kernels.data[k].hash, module->steps.data[s].name);
        dlc_kernel_print(module->kernels.data[k].kernel, 1, &model->buffer);
        dlc_schedule_print(module->kernels.data[k].schedule, &model->buffer);
    }
    return DLC_OK;
}

static dlc_status make_text(dlc_model *model, void *opaque)
{
    const struct text_args *args = opaque;
    limit_time(model);
    dlc_str_deinit(&model->buffer);
    model->buffer = (dlc_str){0};
    if (args->kind == DLC_TEXT_IMPORTED && model->graph && !strcmp(args->format, "whole")) {
        dlc_graph_print_whole(model->graph, &model->buffer);
        return DLC_OK;
    }
    if (args->kind == DLC_TEXT_IMPORTED) {
        print_stage(model, !model->graph);
        return DLC_OK;
    }
    DLC_TRY(dlc_model_run_passes(model));
    if (args->kind == DLC_TEXT_INSPECT)
        return dlc_model_inspect(model, args->format);
    if (args->kind == DLC_TEXT_EXPLAIN)
        return dlc_model_explain(model, args->format);
    if (args->kind == DLC_TEXT_SCHEDULES)
        return print_schedules(model);
    print_stage(model, (model->ctx.facts & DLC_FACT_KERNELS) != 0);
    return DLC_OK;
}

static dlc_status text_guarded(dlc_model *model, dlc_text_kind kind, const char *format, const char **text)
{
    if (model->nothers && kind != DLC_TEXT_SCHEDULES)
        return dlc_diag_fail(&model->diag, DLC_USAGE, NULL,
                             "texts are about one target; %u are named", model->nothers + 1);
    struct text_args args = {kind, format ? format : "text"};
    DLC_TRY(dlc_model_guard(model, make_text, &args));
    for (uint32_t i = 0; i < model->nothers; i++) {
        dlc_status status = dlc_model_guard(model->others[i], make_text, &args);
        if (status != DLC_OK)
            return other_failed(model, model->others[i], status);
        dlc_str_printf(&model->buffer, "\n%s", dlc_str_text(&model->others[i]->buffer));
    }
    *text = dlc_str_text(&model->buffer);
    return DLC_OK;
}

dlc_status dlc_model_text(dlc_model *model, dlc_text_kind kind, const char *format,
                          const char **text)
{
    if (!model || !text)
        return DLC_USAGE;
    *text = "";
    return dlc_model_tell(model, text_guarded(model, kind, format, text));
}

/* ---- executables ---- */

struct write_args {
    const char *kind, *path, *name; /* path NULL: fd */
    int fd;
};

/* "out/my-model.v2.so" -> my_model: what stands before the first dot, as a C identifier. */
static const char *identifier_of(dlc_model *model, const char *path)
{
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t n = strcspn(base, ".");
    char *name =
        dlc_arena_printf(model->arena, "%s%.*s", dlc_is_digit(*base) ? "_" : "", (int)n, base);
    for (char *c = name; *c; c++)
        if (!dlc_is_alnum(*c))
            *c = '_';
    return *name ? name : "model";
}

static int is_identifier(const char *name)
{
    if (!dlc_is_alpha(*name) && *name != '_')
        return 0;
    for (; *name; name++)
        if (!dlc_is_alnum(*name) && *name != '_')
            return 0;
    return 1;
}

/* A text that only another kind of target has is refused before anything is compiled. */
static dlc_status find_artifact(dlc_model *model, const char *kind, dlc_artifact *artifact)
{
    const dlc_backend *backend = dlc_backend_of(model->ctx.target, model->options.emulate_gpu);
    *artifact = dlc_artifact_find(kind);
    int is_known = *artifact != DLC_ARTIFACT_COUNT;
    if (is_known && dlc_backend_has(backend, *artifact))
        return DLC_OK;
    dlc_str list = {0};
    dlc_artifact_list(is_known ? backend : NULL, &list);
    dlc_status status =
        is_known
            ? dlc_diag_fail(&model->diag, DLC_USAGE, NULL, "'%s' is not made for %s; there are %s",
                            kind, model->ctx.target->name, dlc_str_text(&list))
            : dlc_diag_fail(&model->diag, DLC_USAGE, NULL, "'%s' is nothing to emit; there are %s",
                            kind, dlc_str_text(&list));
    dlc_str_deinit(&list);
    return status;
}

static dlc_status run_passes(dlc_model *model, void *unused)
{
    (void)unused;
    limit_time(model);
    DLC_TRY(dlc_model_run_passes(model));
    if (model->ctx.facts & DLC_FACT_PLACED)
        return DLC_OK;
    return dlc_diag_fail(&model->diag, DLC_USAGE, NULL,
                         "the passes '%s' end before code can be made; the default is %s",
                         model->options.passes, dlc_pipeline_default);
}

/* A part per target, in the order they were named. */
static dlc_status write_parts(dlc_model *model, const dlc_executable_options *options)
{
    dlc_executable_part *parts =
        dlc_new_array(model->arena, dlc_executable_part, model->nothers + 1u);
    parts[0].module = model->ctx.module;
    for (uint32_t i = 0; i < model->nothers; i++)
        parts[i + 1].module = model->others[i]->ctx.module;
    return dlc_executable_write_parts(parts, model->nothers + 1, options, &model->diag);
}

/* Of a target outside the tree: one of its own forms. */
static dlc_status write_form(dlc_model *model, const char *kind,
                             const dlc_executable_options *options)
{
    const dlc_backend_plugin *plugin = dlc_plugin_of(model->ctx.target);
    const dlc_backend_form *form = dlc_plugin_form(plugin, kind);
    if (!form) {
        dlc_str list = {0};
        dlc_plugin_list(plugin, &list);
        dlc_status status =
            dlc_diag_fail(&model->diag, DLC_USAGE, NULL, "'%s' is not made for %s; there are %s",
                          kind, model->ctx.target->name, dlc_str_text(&list));
        dlc_str_deinit(&list);
        return status;
    }
    DLC_TRY(run_passes(model, NULL));
    return dlc_plugin_write(model->ctx.module, form, options, &model->diag);
}

static dlc_status write_executable(dlc_model *model, void *opaque)
{
    const struct write_args *args = opaque;
    limit_time(model);
    dlc_executable_options options = {
        .path = args->path,
        .fd = args->fd,
        .name = args->name ? args->name : identifier_of(model, args->path ? args->path : "model"),
        .njobs = model->options.jobs ? model->options.jobs : dlc_host_threads(),
        .is_temporary = model->options.is_temporary != 0,
        .emulate = model->options.emulate_gpu != 0,
    };
    if (!is_identifier(options.name))
        return dlc_diag_fail(&model->diag, DLC_USAGE, NULL, "'%s' is no C identifier",
                             options.name);
    if (dlc_plugin_of(model->ctx.target))
        return write_form(model, args->kind, &options);
    DLC_TRY(find_artifact(model, args->kind, &options.artifact));
    DLC_TRY(dlc_model_check_room(model, args->path));
    DLC_TRY(run_passes(model, NULL));
    return write_parts(model, &options);
}

/* Code of a plug-in shares no file with another's. */
static dlc_status check_alone(dlc_model *model)
{
    const dlc_target *alone =
        model->ctx.target && dlc_plugin_of(model->ctx.target) ? model->ctx.target : NULL;
    for (uint32_t i = 0; i < model->nothers && !alone; i++)
        if (model->others[i]->ctx.target && dlc_plugin_of(model->others[i]->ctx.target))
            alone = model->others[i]->ctx.target;
    if (!alone || !model->nothers)
        return DLC_OK;
    return dlc_diag_fail(&model->diag, DLC_USAGE, NULL,
                         "%s is a plug-in, whose files hold nothing for another target",
                         alone->name);
}

static dlc_status write_guarded(dlc_model *model, struct write_args *args)
{
    DLC_TRY(dlc_model_check_apart(model, args->path));
    DLC_TRY(check_alone(model));
    for (uint32_t i = 0; i < model->nothers; i++) {
        dlc_status status = dlc_model_guard(model->others[i], run_passes, NULL);
        if (status != DLC_OK)
            return other_failed(model, model->others[i], status);
    }
    DLC_TRY(dlc_model_guard(model, write_executable, args));
    for (uint32_t i = 0; i < model->nothers; i++)
        take_notes(model, model->others[i]);
    return DLC_OK;
}

dlc_status dlc_model_may_write(dlc_model *model, const char *path)
{
    return model && path ? dlc_model_tell(model, dlc_model_check_apart(model, path)) : DLC_USAGE;
}

static dlc_status write_and_tell(dlc_model *model, struct write_args *args)
{
    return model && args->kind ? dlc_model_tell(model, write_guarded(model, args)) : DLC_USAGE;
}

dlc_status dlc_model_write(dlc_model *model, const char *kind, const char *path, const char *name)
{
    return write_and_tell(model, &(struct write_args){kind, path, name, -1});
}

dlc_status dlc_model_write_fd(dlc_model *model, const char *kind, int fd, const char *name)
{
    return write_and_tell(model, &(struct write_args){kind, NULL, name, fd});
}
