/*
 * dlc compare: what compiled code computes beside what is right, for whoever holds a wrong answer. Where they part is found by
 * trying parts of the model, each compiled as a model of its own and given right inputs: the shortest beginning that is wrong, of
 * that the shortest end. A pass is found by adding one after the other.
 */
#include "cli/probe.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- what is right ---- */

static void *copy_of(dlc_cli *cli, const void *bytes, size_t size_bytes)
{
    void *copy = dlc_arena_alloc(cli->arena, size_bytes + 1, 64);
    if (size_bytes)
        memcpy(copy, bytes, size_bytes);
    return copy;
}

static void keep_value(void *user, const dlc_watched *seen)
{
    comparison *c = user;
    int is_new;
    dlcrt_tensor *tensor = dlc_new(c->cli->arena, dlcrt_tensor);
    *tensor = (dlcrt_tensor){.name = dlc_arena_strdup(c->cli->arena, seen->value), .dtype = seen->dtype, .rank = seen->rank};
    memcpy(tensor->dims, seen->dims, sizeof tensor->dims);
    tensor->size_bytes = seen->nelems * dlc_dtype_bytes(seen->dtype);
    tensor->data = copy_of(c->cli, seen->bytes, tensor->size_bytes);
    dlc_tensor_own_strings(tensor, c->cli->arena);
    *dlc_table_insert(&c->values, c->cli->arena, tensor->name, &is_new) = tensor;
}

static dlc_status ask_oracle(comparison *c)
{
    for (uint32_t i = 0; i < c->signature.noutputs; i++)
        dlc_vec_push(c->cli->arena, &c->outputs, ((dlcrt_tensor){.name = c->signature.outputs[i].name}));
    dlc_progress(c->cli, "the interpreter …");
    if (c->cli->args.bisect || c->cli->args.values)
        c->library->model_watch(c->model, keep_value, c);
    dlc_status status = c->library->model_interpret(c->model, c->inputs.data, c->inputs.n, c->outputs.data, c->outputs.n);
    c->library->model_watch(c->model, NULL, NULL);
    for (uint32_t i = 0; i < c->outputs.n && status == DLC_OK; i++) {
        c->outputs.data[i].data = copy_of(c->cli, c->outputs.data[i].data, c->outputs.data[i].size_bytes);
        dlc_tensor_own_strings(&c->outputs.data[i], c->cli->arena);
    }
    return status;
}

static dlc_status find_peer(comparison *c)
{
    const char *against = c->cli->args.against ? c->cli->args.against : "oracle";
    c->is_oracle = !strcmp(against, "oracle");
    if (c->is_oracle)
        return ask_oracle(c);
    if (!strcmp(against, "onnxruntime"))
        return dlc_peer_values(c);
    return dlc_diag_fail(&c->cli->diag, DLC_USAGE, NULL, "--against is '%s', where oracle or onnxruntime is wanted", against);
}

/* ---- what is said ---- */

static void say_row(comparison *c, const probe_row *row)
{
    const char *name = dlc_arena_line(c->cli->arena, row->name);
    dlc_say(c->cli, "%s %-28s %-20s largest error %.3g", row->noutside ? "≠" : "=", name, row->type, row->max_abs);
    if (row->noutside)
        dlc_say(c->cli, " at element %" PRIu64 " (%.9g, expected %.9g); %" PRIu64 " of %" PRIu64 " outside", row->at, row->found,
                row->expected, row->noutside, row->nelems);
    dlc_say(c->cli, "\n");
}

static void note_row(cJSON *list, const probe_row *row)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", row->name);
    cJSON_AddStringToObject(json, "type", row->type);
    cJSON_AddNumberToObject(json, "elements", (double)row->nelems);
    cJSON_AddNumberToObject(json, "outside", (double)row->noutside);
    cJSON_AddNumberToObject(json, "max_abs_err", row->max_abs);
    cJSON_AddNumberToObject(json, "max_rel_err", row->max_rel);
    cJSON_AddItemToArray(list, json);
}

static void report_rows(comparison *c, const char *key)
{
    cJSON *list = cJSON_AddArrayToObject(c->cli->json, key);
    for (uint32_t i = 0; i < c->result->nrows; i++) {
        say_row(c, &c->result->rows[i]);
        note_row(list, &c->result->rows[i]);
    }
}

static const char *peer_name(const comparison *c)
{
    return c->is_oracle ? "the oracle" : "ONNX Runtime";
}

/* Why the newest probe is wrong. */
static const char *wrong_text(comparison *c)
{
    const probe_row *row = &c->result->rows[c->result->first_wrong];
    if (c->result->status != DLC_OK)
        return dlc_arena_printf(c->cli->arena, "it does not run: %s", c->result->text);
    return dlc_arena_printf(c->cli->arena, "'%s' %s is off by %.3g at element %" PRIu64 " (%.9g, expected %.9g)", row->name,
                            row->type, row->max_abs, row->at, row->found, row->expected);
}

/* ---- nodes ---- */

static void keep_node(void *user, const dlc_model_node *node)
{
    comparison *c = user;
    dlc_vec_push(c->cli->arena, &c->nodes, *node);
}

/* Node i ends a part: another begins behind it, and somebody knows what is right there. */
static int can_end(const comparison *c, uint32_t i)
{
    return i == c->nodes.n || (c->nodes.data[i].can_begin && probe_value(c, c->nodes.data[i - 1].value));
}

static int part_is_wrong(comparison *c, uint32_t first, uint32_t end)
{
    int is_wrong = probe_is_wrong(c, &(probe){.first = first, .end = end});
    if (is_wrong && (c->result->status == DLC_USAGE || c->result->status == DLC_UNSUPPORTED))
        return 0; /* it is no model by itself, or nobody knows what is right */
    dlc_progress(c->cli, "nodes %u to %u of %u %s …", first, end - 1, c->nodes.n, is_wrong ? "differ" : "agree");
    return is_wrong;
}

/* The shortest beginning that is wrong; 0: none is, not even the whole. */
static uint32_t find_end(comparison *c)
{
    uint32_t good = 0, bad = c->nodes.n;
    if (!part_is_wrong(c, 0, bad))
        return 0;
    while (bad - good > 1) {
        uint32_t middle = good + (bad - good) / 2, end = middle;
        while (end > good && !can_end(c, end))
            end--;
        if (end == good)
            for (end = middle + 1; end < bad && !can_end(c, end);)
                end++;
        if (end == bad)
            return bad;
        *(part_is_wrong(c, 0, end) ? &bad : &good) = end;
    }
    return bad;
}

/* The latest node from which on a part that ends there is wrong still. */
static uint32_t find_first(comparison *c, uint32_t end)
{
    uint32_t bad = 0, good = end;
    while (good - bad > 1) {
        uint32_t first = bad + (good - bad) / 2;
        while (first > bad && !c->nodes.data[first].can_begin)
            first--;
        if (first == bad)
            for (first = bad + (good - bad) / 2 + 1; first < good && !c->nodes.data[first].can_begin;)
                first++;
        if (first == good)
            return bad;
        *(part_is_wrong(c, first, end) ? &bad : &good) = first;
    }
    return bad;
}

/* "node 'conv5' (Conv)", or the value's name where the model has none. */
static const char *node_name(comparison *c, uint32_t i)
{
    const dlc_model_node *node = &c->nodes.data[i];
    if (*node->node)
        return dlc_arena_printf(c->cli->arena, "node '%s' (%s), value '%s'", node->node, node->op, node->value);
    return dlc_arena_printf(c->cli->arena, "node %u (%s), value '%s'", i, node->does, node->value);
}

/* ---- the small model ---- */

static const char *output_path(dlc_cli *cli)
{
    const char *path = cli->args.operands.data[0], *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    size_t n = strlen(name), ending = strcspn(name, ".");
    return cli->args.output ? cli->args.output : dlc_arena_printf(cli->arena, "%.*s.wrong.dlc", (int)(ending ? ending : n), name);
}

static const char *inputs_path(dlc_cli *cli)
{
    const char *path = output_path(cli);
    size_t n = strlen(path);
    return dlc_arena_printf(cli->arena, "%.*s.npz", (int)(n > 4 && !strcmp(path + n - 4, ".dlc") ? n - 4 : n), path);
}

static dlc_status write_small(comparison *c, uint32_t first, uint32_t end)
{
    const char *path = output_path(c->cli), *given = inputs_path(c->cli), *text;
    dlc_tensors inputs;
    DLC_TRY(c->library->model_part(c->model, first, end, 0));
    DLC_TRY(probe_inputs(c, c->model, &inputs));
    DLC_TRY(c->library->model_text(c->model, DLC_TEXT_IMPORTED, "whole", &text));
    DLC_TRY(dlc_write_text(c->cli, path, text));
    DLC_TRY(dlc_npz_write(given, &inputs, &c->cli->diag));
    cJSON_AddStringToObject(c->cli->json, "model", path);
    cJSON_AddStringToObject(c->cli->json, "inputs", given);
    dlc_say(c->cli, "it is in %s: dlc compare %s --inputs %s\n", path, path, given);
    return DLC_OK;
}

static dlc_status bisect_nodes(comparison *c)
{
    DLC_TRY(c->library->model_nodes(c->model, keep_node, c));
    uint32_t end = c->nodes.n ? find_end(c) : 0;
    dlc_progress(c->cli, NULL);
    if (!end)
        return dlc_diag_fail(&c->cli->diag, DLC_MISMATCH, c->path,
                             "no part that begins at the inputs differs by its values alone; --bisect passes goes by passes");
    uint32_t first = find_first(c, end);
    (void)part_is_wrong(c, first, end);
    dlc_progress(c->cli, NULL);
    const char *why = wrong_text(c), *name = node_name(c, end - 1);
    cJSON *found = cJSON_AddObjectToObject(c->cli->json, "first");
    cJSON_AddStringToObject(found, "node", c->nodes.data[end - 1].node);
    cJSON_AddStringToObject(found, "value", c->nodes.data[end - 1].value);
    cJSON_AddNumberToObject(found, "nodes", end - first);
    cJSON_AddStringToObject(found, "text", why);
    dlc_say(c->cli, "first wrong: %s, of %u nodes, by %u trials\n", name, c->nodes.n, c->nprobes);
    if (end - first > 1)
        dlc_say(c->cli, "wrong only with the %u nodes before it, from %s on\n", end - first - 1, node_name(c, first));
    dlc_say(c->cli, "on right inputs %s\n", why);
    return write_small(c, first, end);
}

/* ---- passes ---- */

typedef struct {
    comparison *c;
    dlc_vec(const char *) names;
} pass_list;

static void keep_pass(void *user, const char *pass, double seconds, uint32_t changes)
{
    pass_list *list = user;
    (void)seconds;
    (void)changes;
    dlc_vec_push(list->c->cli->arena, &list->names, dlc_arena_strdup(list->c->cli->arena, pass));
}

/* Those that run on the graph, in order, up to the first that only code can judge. */
static dlc_status list_passes(comparison *c, pass_list *list)
{
    dlc_model *model;
    const char *text;
    dlc_options options = c->options;
    options.timing = keep_pass;
    options.user = list;
    options.dump_after = NULL;
    DLC_TRY(dlc_cli_open(c->cli, c->path, &options, &model));
    dlc_status status = c->library->model_text(model, DLC_TEXT_GRAPH, "text", &text);
    dlc_cli_close(c->cli, model);
    for (uint32_t i = 0; i < list->names.n; i++)
        if (!strcmp(list->names.data[i], "layout"))
            list->names.n = i;
    return status;
}

static dlc_status found_pass(comparison *c, const char *pass, uint32_t at, const char *before)
{
    const char *why = wrong_text(c);
    cJSON *found = cJSON_AddObjectToObject(c->cli->json, "first");
    cJSON_AddStringToObject(found, "pass", pass);
    cJSON_AddStringToObject(found, "behind", before);
    cJSON_AddStringToObject(found, "text", why);
    dlc_progress(c->cli, NULL);
    if (at)
        dlc_say(c->cli, "first wrong: pass '%s' (number %u, behind %s)\n", pass, at, *before ? before : "the import");
    else
        dlc_say(c->cli, "first wrong: %s\n", pass);
    dlc_say(c->cli, "behind it %s\n", why);
    return DLC_OK;
}

/* Passes on the graph, judged by the interpreter. False: all are right. */
static int find_graph_pass(comparison *c, const pass_list *list, dlc_status *status)
{
    const char *order = "";
    for (uint32_t i = 0; i < list->names.n; i++) {
        const char *before = order;
        order = dlc_arena_printf(c->cli->arena, "%s%s%s", order, i ? "," : "", list->names.data[i]);
        if (i && !strcmp(list->names.data[i], list->names.data[i - 1]))
            continue;
        dlc_progress(c->cli, "%s …", order);
        if (probe_is_wrong(c, &(probe){.passes = order, .is_interpreted = 1})) {
            *status = found_pass(c, list->names.data[i], i + 1, before);
            return 1;
        }
    }
    return 0;
}

/* What only code can judge: one thing after the other is added to the plainest. */
static dlc_status find_module_pass(comparison *c)
{
    const struct {
        const char *name;
        probe with;
    } steps[] = {
        {"pass 'layout', 'lower' or 'choose', or code generation: without fusion and rewrites it is wrong already",
         {.is_plain = 1, .fusion = "none", .rewrite = "none", .winograd = "off"}},
        {"pass 'fuse'", {.is_plain = 1, .rewrite = "none", .winograd = "off"}},
        {"pass 'rewrite'", {.is_plain = 1, .winograd = "off"}},
        {"pass 'rewrite', by Winograd's convolutions", {.is_plain = 1}},
        {"pass 'choose', by schedules given or measured", {0}},
    };
    for (uint32_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        dlc_progress(c->cli, "%s …", steps[i].name);
        if (probe_is_wrong(c, &steps[i].with))
            return found_pass(c, steps[i].name, 0, "");
    }
    return dlc_diag_fail(&c->cli->diag, DLC_MISMATCH, c->path, "no pass is wrong in a second trial: the runs differ from each other");
}

static dlc_status bisect_passes(comparison *c)
{
    pass_list list = {.c = c};
    dlc_status status = DLC_OK;
    DLC_TRY(list_passes(c, &list));
    return find_graph_pass(c, &list, &status) ? status : find_module_pass(c);
}

/* ---- the command ---- */

static dlc_status check_bisect(dlc_cli *cli)
{
    const char *what = cli->args.bisect;
    if (!what || !strcmp(what, "passes"))
        return DLC_OK;
    if (!strcmp(what, "nodes")) {
        DLC_TRY(dlc_cli_may_write(cli, output_path(cli)));
        return dlc_cli_may_write(cli, inputs_path(cli));
    }
    return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL, "--bisect is '%s', where nodes or passes is wanted", what);
}

static dlc_status show_values(comparison *c)
{
    (void)probe_is_wrong(c, &(probe){.end = UINT32_MAX, .every = 1});
    if (c->result->status != DLC_OK)
        return dlc_diag_fail(&c->cli->diag, c->result->status, c->path, "with all values as outputs: %s", c->result->text);
    dlc_say(c->cli, "with every value as an output:\n");
    report_rows(c, "values");
    return DLC_OK;
}

static dlc_status compare(comparison *c)
{
    DLC_TRY(dlc_gather_inputs(c->cli, &c->signature, &c->options, &c->inputs));
    DLC_TRY(find_peer(c));
    dlc_progress(c->cli, "compiled code …");
    int is_wrong = probe_is_wrong(c, &(probe){0});
    dlc_status status = c->result->status;
    dlc_progress(c->cli, NULL);
    cJSON_AddStringToObject(c->cli->json, "against", c->is_oracle ? "oracle" : "onnxruntime");
    report_rows(c, "outputs");
    if (status != DLC_OK)
        (void)dlc_diag_fail(&c->cli->diag, status, c->path, "compiled code does not run: %s", c->result->text);
    else if (is_wrong)
        (void)dlc_diag_fail(&c->cli->diag, DLC_MISMATCH, c->path, "%u of %u outputs differ from those of %s", c->result->nwrong,
                            c->result->nrows, peer_name(c));
    uint32_t nrows = c->result->nrows;
    if (c->cli->args.values)
        DLC_TRY(show_values(c));
    if (!is_wrong)
        return nrows ? DLC_OK : dlc_diag_fail(&c->cli->diag, DLC_INVALID, c->path, "%s gave none of the outputs", peer_name(c));
    if (c->cli->args.bisect)
        DLC_TRY(!strcmp(c->cli->args.bisect, "nodes") ? bisect_nodes(c) : bisect_passes(c));
    return status == DLC_OK ? DLC_MISMATCH : status;
}

dlc_status dlc_cmd_compare(dlc_cli *cli)
{
    comparison c = {.cli = cli, .path = cli->args.operands.data[0]};
    DLC_TRY(check_bisect(cli));
    DLC_TRY(dlc_cli_options(cli, &c.options));
    if (dlc_is_executable_file(c.path))
        return dlc_diag_fail(&cli->diag, DLC_USAGE, c.path, "is an executable; compare wants the model it was made from");
    DLC_TRY(dlc_library_load(&c.library, &cli->diag));
    DLC_TRY(dlc_cli_open(cli, c.path, &c.options, &c.model));
    cli->json = cJSON_CreateObject();
    c.signature = dlc_signature_of_model(c.model, c.library, cli->arena);
    dlc_status status = compare(&c);
    dlc_cli_close(cli, c.model);
    return status;
}
