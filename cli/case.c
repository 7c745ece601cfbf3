/*
 * One case of a test suite: the model once, its data sets one after another. Inputs are matched to
 * the model's by the name stored in the file, else by position; outputs by position; dtype and
 * shape must be equal.
 */
#include "cli/case.h"

#include "base/file.h"
#include "cli/inputs.h"
#include "cli/lists.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    dlc_cli *cli;
    const char *folder;
    const dlc_library *library;
    dlc_tolerance tolerance;
    dlc_signature signature;
    dlc_model *model;       /* interpreted, or */
    dlcrt_context *context; /* compiled */
    int is_drawn;           /* an output has other numbers, which are drawn */
    dlc_ports inputs, outputs; /* of the ONNX file, where there is one */
} test_case;

/* ---- tolerance ---- */

static dlc_status read_tolerance(test_case *t)
{
    dlc_cli *cli = t->cli;
    char *path = dlc_arena_printf(cli->arena, "%s/data.json", t->folder);
    dlc_map map;
    t->tolerance = (dlc_tolerance){1e-3, 1e-7};
    if (access(path, F_OK) == 0) {
        DLC_TRY(dlc_map_open(path, &map, &cli->diag));
        cJSON *json = cJSON_ParseWithLength((const char *)map.bytes, map.size_bytes);
        const cJSON *rtol = cJSON_GetObjectItem(json, "rtol"),
                    *atol = cJSON_GetObjectItem(json, "atol");
        t->tolerance.rtol = cJSON_IsNumber(rtol) ? rtol->valuedouble : t->tolerance.rtol;
        t->tolerance.atol = cJSON_IsNumber(atol) ? atol->valuedouble : t->tolerance.atol;
        cJSON_Delete(json);
        dlc_map_close(&map);
    }
    t->tolerance.rtol = cli->args.rtol >= 0 ? cli->args.rtol : t->tolerance.rtol;
    t->tolerance.atol = cli->args.atol >= 0 ? cli->args.atol : t->tolerance.atol;
    return DLC_OK;
}

/* ---- data ---- */

/* KIND_i.pb, or KIND_i.npy, which needs no compiler to be read and has no name of its own. */
static dlc_status read_part(test_case *t, const char *set, const char *kind, uint32_t i,
                            dlcrt_tensor *tensor, int *exists)
{
    dlc_cli *cli = t->cli;
    char *stem = dlc_arena_printf(cli->arena, "%s/%s/%s_%u", t->folder, set, kind, i);
    char *pb = dlc_arena_printf(cli->arena, "%s.pb", stem);
    char *npy = dlc_arena_printf(cli->arena, "%s.npy", stem);
    *exists = 1;
    if (access(pb, F_OK) == 0)
        return dlc_pb_read(pb, cli->arena, &cli->diag, tensor);
    *exists = access(npy, F_OK) == 0;
    if (!*exists)
        return DLC_OK;
    DLC_TRY(dlc_npy_read(npy, cli->arena, &cli->diag, tensor));
    tensor->name = "";
    return DLC_OK;
}

static int slot_of(const dlc_signature *signature, const dlcrt_tensor *tensor, uint32_t position)
{
    for (uint32_t i = 0; i < signature->ninputs; i++)
        if (*tensor->name && !strcmp(tensor->name, signature->inputs[i].name))
            return (int)i;
    return position < signature->ninputs ? (int)position : -1;
}

static int is_list(const dlc_ports *ports, uint32_t i)
{
    return i < ports->n && ports->data[i].is_list;
}

static dlc_status read_list(test_case *t, const char *set, const char *kind, uint32_t i,
                            const char *name, dlc_tensors *tensors)
{
    dlc_cli *cli = t->cli;
    return dlc_list_read(dlc_arena_printf(cli->arena, "%s/%s/%s_%u.pb", t->folder, set, kind, i),
                         name, cli->arena, &cli->diag, tensors);
}

/* Test data of onnx up to 1.12 has bfloat16 as u16 of the same bits. */
static void take_bits(dlcrt_tensor *tensor, int wanted)
{
    if (tensor->dtype == DLC_U16 && wanted == DLC_BF16)
        tensor->dtype = DLC_BF16;
}

/* The items of input i, which are inputs of the model. */
static dlc_status read_items(test_case *t, const char *set, uint32_t i, dlc_tensors *inputs)
{
    dlc_tensors items = {0};
    DLC_TRY(read_list(t, set, "input", i, t->inputs.data[i].name, &items));
    for (uint32_t k = 0; k < items.n; k++) {
        int slot = slot_of(&t->signature, &items.data[k], UINT32_MAX);
        if (slot >= 0)
            inputs->data[slot] = items.data[k];
    }
    return DLC_OK;
}

static dlc_status read_inputs(test_case *t, const char *set, dlc_tensors *inputs)
{
    dlc_cli *cli = t->cli;
    for (uint32_t i = 0; i < t->signature.ninputs; i++)
        dlc_vec_push(cli->arena, inputs, (dlcrt_tensor){0});
    for (uint32_t i = 0;; i++) {
        dlcrt_tensor tensor;
        int exists;
        if (is_list(&t->inputs, i)) {
            DLC_TRY(read_items(t, set, i, inputs));
            continue;
        }
        DLC_TRY(read_part(t, set, "input", i, &tensor, &exists));
        if (!exists)
            break;
        int slot = slot_of(&t->signature, &tensor, i);
        if (slot < 0)
            return dlc_diag_fail(&cli->diag, DLC_INVALID, set,
                                 "input_%u is one more than the model has inputs", i);
        tensor.name = t->signature.inputs[slot].name;
        take_bits(&tensor, t->signature.inputs[slot].dtype);
        inputs->data[slot] = tensor;
    }
    for (uint32_t i = 0; i < t->signature.ninputs; i++)
        if (!inputs->data[i].name)
            return dlc_diag_fail(&cli->diag, DLC_INVALID, set, "input '%s' is missing",
                                 t->signature.inputs[i].name);
    return DLC_OK;
}

static dlc_status run_model(test_case *t, const dlc_tensors *inputs, dlc_tensors *outputs)
{
    if (t->model)
        return t->library->model_interpret(t->model, inputs->data, inputs->n, outputs->data,
                                           outputs->n);
    dlc_status status =
        dlcrt_context_run(t->context, inputs->data, inputs->n, outputs->data, outputs->n);
    return status == DLC_OK ? DLC_OK : dlc_runtime_failed(t->cli, status, NULL);
}

static int says_so(const char *text)
{
    return strncmp(text, DLC_DRAWS, strlen(DLC_DRAWS)) == 0;
}

/* The model has random numbers, of which only type and shape are known. It says so itself while it is open. */
static int draws(const test_case *t)
{
    dlc_model_note note;
    for (uint32_t i = 0; t->model && t->library->model_message(t->model, i, &note); i++)
        if (says_so(note.text))
            return 1;
    for (uint32_t i = 0; i < t->cli->diag.nmessages; i++)
        if (says_so(t->cli->diag.messages[i].text))
            return 1;
    return 0;
}

/* bfloat16 gets two units in its last place, as in onnx's own runner. */
static dlc_status compare_output(test_case *t, const char *set, const dlcrt_tensor *found,
                                 dlcrt_tensor *expected)
{
    dlc_tolerance tolerance = t->tolerance;
    take_bits(expected, found->dtype);
    DLC_TRY(dlc_compare_types(found->name, found, expected, &t->cli->diag));
    if (found->dtype == DLC_BF16 && tolerance.rtol < 0x1p-6)
        tolerance.rtol = 0x1p-6;
    dlc_difference d = dlc_compare(found, expected, tolerance);
    if (d.noutside && draws(t)) {
        if (!t->is_drawn++)
            (void)dlc_diag_fail(&t->cli->diag, DLC_OK, NULL, "%s", DLC_CASE_DRAWN);
        return DLC_OK;
    }
    if (!d.noutside)
        return DLC_OK;
    dlc_str where = {0};
    dlc_difference_print(&d, &where);
    dlc_status status = dlc_diag_fail(
        &t->cli->diag, DLC_MISMATCH, NULL,
        "%s: output '%s': %" PRIu64 " of %" PRIu64 " elements differ, at most by %.3g at element %" PRIu64 " (%s)",
        set, found->name, d.noutside, d.nelems, d.max_abs, d.at, dlc_str_text(&where));
    dlc_str_deinit(&where);
    return status;
}

/* Tensors, and the items of lists in their places. */
static dlc_status read_expected(test_case *t, const char *set, uint32_t n, dlc_tensors *expected)
{
    for (uint32_t i = 0; i < t->outputs.n || (!t->outputs.n && i < n); i++) {
        dlcrt_tensor tensor;
        dlc_tensors items = {0};
        int exists;
        if (is_list(&t->outputs, i)) {
            DLC_TRY(read_list(t, set, "output", i, t->outputs.data[i].name, &items));
            for (uint32_t k = 0; k < items.n; k++)
                dlc_vec_push(t->cli->arena, expected, items.data[k]);
            continue;
        }
        DLC_TRY(read_part(t, set, "output", i, &tensor, &exists));
        if (!exists)
            return dlc_diag_fail(&t->cli->diag, DLC_INVALID, set, "output_%u is missing", i);
        dlc_vec_push(t->cli->arena, expected, tensor);
    }
    return DLC_OK;
}

static dlc_status run_set(test_case *t, const char *set)
{
    dlc_cli *cli = t->cli;
    dlc_tensors inputs = {0}, outputs = {0};
    DLC_TRY(read_inputs(t, set, &inputs));
    for (uint32_t i = 0; i < t->signature.noutputs; i++)
        dlc_vec_push(cli->arena, &outputs, ((dlcrt_tensor){.name = t->signature.outputs[i].name}));
    DLC_TRY(run_model(t, &inputs, &outputs));
    dlc_tensors expected = {0};
    DLC_TRY(read_expected(t, set, outputs.n, &expected));
    if (expected.n != outputs.n)
        return dlc_diag_fail(&cli->diag, DLC_MISMATCH, set, "has %u outputs; the model has %u",
                             expected.n, outputs.n);
    for (uint32_t i = 0; i < outputs.n; i++)
        DLC_TRY(compare_output(t, set, &outputs.data[i], &expected.data[i]));
    return DLC_OK;
}

static dlc_status run_sets(test_case *t)
{
    for (uint32_t i = 0;; i++) {
        char *set = dlc_arena_printf(t->cli->arena, "test_data_set_%u", i);
        if (access(dlc_arena_printf(t->cli->arena, "%s/%s", t->folder, set), F_OK) == 0)
            DLC_TRY(run_set(t, set));
        else
            return i ? DLC_OK
                     : dlc_diag_fail(&t->cli->diag, DLC_INVALID, t->folder,
                                     "has no test_data_set_0");
    }
}

/* ---- the model ---- */

static dlc_status run_executable(test_case *t, const char *path)
{
    dlc_cli *cli = t->cli;
    dlcrt_executable *executable;
    dlcrt_context_options options = {.threads =
                                         cli->args.threads ? (uint32_t)cli->args.threads : 1};
    dlcrt_executable_options from = {.path = path, .device = cli->args.device};
    dlc_status status = dlcrt_executable_open_with(&from, &executable);
    if (status == DLC_OK)
        status = dlcrt_context_create(executable, &options, &t->context);
    if (status != DLC_OK)
        return dlc_runtime_failed(cli, status, NULL);
    t->signature = dlc_signature_of_executable(executable, cli->arena);
    return run_sets(t);
}

static dlc_status run_compiled(test_case *t, const char *output)
{
    dlc_status status = t->library->model_write(t->model, "so", output, "model");
    dlc_cli_close(t->cli, t->model);
    t->model = NULL;
    DLC_TRY(status);
    return run_executable(t, output);
}

static dlc_status run_interpreted(test_case *t)
{
    t->signature = dlc_signature_of_model(t->model, t->library, t->cli->arena);
    dlc_status status = run_sets(t);
    dlc_cli_close(t->cli, t->model);
    return status;
}

/* An executable compiled beforehand, or NULL. */
static const char *compiled_before(const dlc_cli *cli, const char *folder)
{
    const char *path = dlc_arena_printf(cli->arena, "%s/model.so", folder);
    return !cli->args.interpret && access(path, F_OK) == 0 ? path : NULL;
}

/* What the model leaves open is fixed by the first data: how many items a list has, and their
 * shapes. */
static dlc_status shape_lists(test_case *t, const char *path, dlc_options *options)
{
    dlc_arena *arena = t->cli->arena;
    dlc_vec(dlc_shape) shapes = {0};
    DLC_TRY(dlc_ports_read(path, arena, &t->cli->diag, &t->inputs, &t->outputs));
    for (uint32_t i = 0; i < options->nshapes; i++)
        dlc_vec_push(arena, &shapes, options->shapes[i]);
    for (uint32_t i = 0; i < t->inputs.n; i++) {
        dlc_tensors items = {0};
        if (!t->inputs.data[i].is_list)
            continue;
        DLC_TRY(read_list(t, "test_data_set_0", "input", i, t->inputs.data[i].name, &items));
        dlc_shape length = {.name = t->inputs.data[i].name, .rank = 1, .dims = {items.n}};
        dlc_vec_push(arena, &shapes, length);
        for (uint32_t k = 0; k < items.n; k++) {
            dlc_shape shape = {.name = items.data[k].name, .rank = items.data[k].rank};
            memcpy(shape.dims, items.data[k].dims, sizeof shape.dims);
            dlc_vec_push(arena, &shapes, shape);
        }
    }
    options->shapes = shapes.data;
    options->nshapes = shapes.n;
    return DLC_OK;
}

static int is_other_shape(const dlcrt_tensor_info *info, const dlcrt_tensor *tensor)
{
    int is_other = info->rank != tensor->rank;
    for (uint32_t d = 0; !is_other && d < info->rank; d++)
        is_other = info->dims[d] >= 0 && info->dims[d] != tensor->dims[d];
    return is_other;
}

/* Declared shapes are hints: where the first data have another, theirs is given. *n: how many. */
static dlc_status shape_as_data(test_case *t, dlc_options *options, uint32_t *n)
{
    dlc_arena *arena = t->cli->arena;
    dlc_vec(dlc_shape) shapes = {0};
    t->signature = dlc_signature_of_model(t->model, t->library, arena);
    *n = 0;
    for (uint32_t i = 0; i < options->nshapes; i++)
        dlc_vec_push(arena, &shapes, options->shapes[i]);
    for (uint32_t i = 0; i < t->inputs.n; i++) {
        dlcrt_tensor tensor;
        int exists = !is_list(&t->inputs, i), slot = -1;
        if (exists)
            DLC_TRY(read_part(t, "test_data_set_0", "input", i, &tensor, &exists));
        if (exists)
            slot = slot_of(&t->signature, &tensor, i);
        if (slot < 0 || !is_other_shape(&t->signature.inputs[slot], &tensor))
            continue;
        dlc_shape shape = {.name = t->signature.inputs[slot].name, .rank = tensor.rank};
        shape.name = dlc_arena_strdup(arena, shape.name); /* of the model, which is opened anew */
        memcpy(shape.dims, tensor.dims, sizeof shape.dims);
        dlc_vec_push(arena, &shapes, shape);
        ++*n;
    }
    options->shapes = shapes.data;
    options->nshapes = shapes.n;
    return DLC_OK;
}

dlc_status dlc_case_run(dlc_cli *cli, const char *folder, const char *output)
{
    test_case t = {.cli = cli, .folder = folder};
    const char *made = compiled_before(cli, folder);
    dlc_options options;
    DLC_TRY(read_tolerance(&t));
    if (made)
        return run_executable(&t, made);
    DLC_TRY(dlc_cli_options(cli, &options));
    options.timing = NULL;
    options.is_temporary = 1;
    options.jobs = 1;
    DLC_TRY(dlc_library_load(&t.library, &cli->diag));
    const char *path = dlc_arena_printf(cli->arena, "%s/model.onnx", folder);
    DLC_TRY(shape_lists(&t, path, &options));
    DLC_TRY(dlc_cli_open(cli, path, &options, &t.model));
    uint32_t nother = 0;
    dlc_status status = shape_as_data(&t, &options, &nother);
    if (status != DLC_OK || nother) {
        dlc_cli_close(cli, t.model);
        t.model = NULL;
        DLC_TRY(status);
        DLC_TRY(dlc_cli_open(cli, path, &options, &t.model));
    }
    return cli->args.interpret ? run_interpreted(&t) : run_compiled(&t, output);
}
