/* Tensors for a run: each of the model's inputs gets one from the sources on the command line, or a
 * refusal by name. */
#include "cli/inputs.h"

#include "base/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void read_infos(dlcrt_tensor_info **infos, uint32_t n, dlc_arena *arena,
                       int (*get)(const void *, uint32_t, dlcrt_tensor_info *), const void *from)
{
    *infos = dlc_new_array(arena, dlcrt_tensor_info, n + 1);
    for (uint32_t i = 0; i < n; i++)
        get(from, i, &(*infos)[i]);
}

static int executable_input(const void *from, uint32_t i, dlcrt_tensor_info *info)
{
    return dlcrt_executable_input(from, i, info);
}

static int executable_output(const void *from, uint32_t i, dlcrt_tensor_info *info)
{
    return dlcrt_executable_output(from, i, info);
}

dlc_signature dlc_signature_of_executable(const dlcrt_executable *executable, dlc_arena *arena)
{
    dlc_signature s = {.ninputs = dlcrt_executable_ninputs(executable),
                       .noutputs = dlcrt_executable_noutputs(executable)};
    read_infos(&s.inputs, s.ninputs, arena, executable_input, executable);
    read_infos(&s.outputs, s.noutputs, arena, executable_output, executable);
    return s;
}

dlc_signature dlc_signature_of_model(dlc_model *model, const dlc_library *library, dlc_arena *arena)
{
    dlc_signature s = {0};
    dlcrt_tensor_info info;
    while (library->model_input(model, s.ninputs, &info))
        s.ninputs++;
    while (library->model_output(model, s.noutputs, &info))
        s.noutputs++;
    s.inputs = dlc_new_array(arena, dlcrt_tensor_info, s.ninputs + 1);
    s.outputs = dlc_new_array(arena, dlcrt_tensor_info, s.noutputs + 1);
    for (uint32_t i = 0; i < s.ninputs; i++)
        library->model_input(model, i, &s.inputs[i]);
    for (uint32_t i = 0; i < s.noutputs; i++)
        library->model_output(model, i, &s.outputs[i]);
    return s;
}

dlc_texts dlc_split(dlc_arena *arena, const char *text)
{
    dlc_texts list = {.data = dlc_new_array(arena, const char *, strlen(text) + 1)};
    while (*text) {
        size_t n = strcspn(text, ",");
        if (n)
            list.data[list.n++] = dlc_arena_strndup(arena, text, n);
        text += n + (text[n] == ',');
    }
    return list;
}

/* "a, b, c" of names, for messages. */
static const char *join_names(dlc_arena *arena, const dlcrt_tensor_info *infos, uint32_t n)
{
    enum { MOST_NAMES = 20 };
    const char *text = "";
    for (uint32_t i = 0; i < n && i < MOST_NAMES; i++)
        text = dlc_arena_printf(arena, "%s%s'%s'", text, i ? ", " : "", infos[i].name);
    return n > MOST_NAMES ? dlc_arena_printf(arena, "%s and %u more", text, n - MOST_NAMES) : text;
}

static int find_info(const dlcrt_tensor_info *infos, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(infos[i].name, name))
            return (int)i;
    return -1;
}

/* ---- random ---- */

static void shape_of_random(dlc_cli *cli, const dlcrt_tensor_info *info, const dlc_options *options,
                            dlcrt_tensor *tensor)
{
    *tensor = (dlcrt_tensor){.name = info->name, .dtype = info->dtype, .rank = info->rank};
    memcpy(tensor->dims, info->dims, sizeof tensor->dims);
    for (uint32_t s = 0; s < options->nshapes; s++) {
        const dlc_shape *shape = &options->shapes[s];
        for (uint32_t d = 0;
             !strcmp(shape->name, info->name) && shape->rank == info->rank && d < info->rank; d++)
            if (tensor->dims[d] < 0)
                tensor->dims[d] = shape->dims[d];
    }
    for (uint32_t d = 0; d < info->rank; d++) {
        if (tensor->dims[d] >= 0)
            continue;
        tensor->dims[d] = 1;
        (void)dlc_diag_fail(&cli->diag, DLC_OK, NULL,
                            "input '%s' is %s: dimension %u is taken as 1; --shape sets it",
                            info->name, info->type, d);
    }
}

static dlc_status make_random(dlc_cli *cli, const dlcrt_tensor_info *info,
                              const dlc_options *options, uint64_t seed, dlcrt_tensor *tensor)
{
    shape_of_random(cli, info, options, tensor);
    return dlc_tensor_random(tensor, seed, cli->arena, &cli->diag);
}

/* ---- --input NAME=SOURCE ---- */

static int read_seed(const char *text, uint64_t *seed)
{
    char *end;
    errno = 0;
    *seed = strtoull(text, &end, 10);
    return dlc_is_digit(*text) && !*end && !errno;
}

static dlc_status read_source(dlc_cli *cli, const dlc_signature *signature,
                              const dlc_options *options, const char *text, dlc_tensors *inputs)
{
    const char *equals = strchr(text, '=');
    while (equals && find_info(signature->inputs, signature->ninputs,
                               dlc_arena_strndup(cli->arena, text, (size_t)(equals - text))) < 0)
        equals = strchr(equals + 1, '='); /* a name may hold '=' itself */
    if (!equals)
        return dlc_diag_fail(
            &cli->diag, DLC_USAGE, NULL,
            "--input is '%s', where NAME=SOURCE is wanted with an input of the model: %s", text,
            join_names(cli->arena, signature->inputs, signature->ninputs));
    const char *name = dlc_arena_strndup(cli->arena, text, (size_t)(equals - text)),
               *source = equals + 1;
    int i = find_info(signature->inputs, signature->ninputs, name);
    dlcrt_tensor *tensor = &inputs->data[i];
    uint64_t seed;
    if (strncmp(source, "random:", 7) != 0 && !strrchr(source, '.'))
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL, "--input %s: '%s' is no source; there are F.npy, F.pb and random:SEED", text, source);
    if (strncmp(source, "random:", 7) != 0)
        DLC_TRY(dlc_tensor_file_read(source, cli->arena, &cli->diag, tensor));
    else if (!read_seed(source + 7, &seed))
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                             "--input %s: a seed is a whole number, as in random:7", text);
    else
        DLC_TRY(make_random(cli, &signature->inputs[i], options, seed, tensor));
    tensor->name = signature->inputs[i].name;
    return DLC_OK;
}

/* ---- files ---- */

static int is_npz(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && !strcmp(path + n - 4, ".npz");
}

/* Files in the order of infos; each gets the name of its place. */
static dlc_status read_list(dlc_cli *cli, const char *files, const char *option,
                            const dlcrt_tensor_info *infos, uint32_t n, dlc_tensors *tensors)
{
    dlc_texts paths = dlc_split(cli->arena, files);
    if (paths.n == 1 && !dlc_tensor_file_is(files))
        return dlc_diag_fail(&cli->diag, DLC_USAGE, files, "ends in none of .npz, .npy and .pb");
    if (paths.n > n)
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                             "--%s names %u files, where the model has %u: %s", option, paths.n, n,
                             join_names(cli->arena, infos, n));
    for (uint32_t i = 0; i < paths.n; i++) {
        dlcrt_tensor tensor;
        DLC_TRY(dlc_tensor_file_read(paths.data[i], cli->arena, &cli->diag, &tensor));
        tensor.name = infos[i].name;
        dlc_vec_push(cli->arena, tensors, tensor);
    }
    return DLC_OK;
}

static dlc_status read_files(dlc_cli *cli, const char *files, const char *option,
                             const dlcrt_tensor_info *infos, uint32_t n, dlc_tensors *tensors)
{
    if (is_npz(files) && !strchr(files, ','))
        return dlc_npz_read(files, cli->arena, &cli->diag, tensors);
    return read_list(cli, files, option, infos, n, tensors);
}

dlc_status dlc_read_expected(dlc_cli *cli, const dlc_signature *signature, const char *files,
                             dlc_tensors *expected)
{
    return read_files(cli, files, "expect", signature->outputs, signature->noutputs, expected);
}

/* ---- all of them ---- */

static dlc_status refuse_missing(dlc_cli *cli, const dlcrt_tensor_info *info,
                                 const dlc_tensors *found)
{
    enum { MOST_NAMES = 20 };
    const char *there = "";
    for (uint32_t i = 0; i < found->n && i < MOST_NAMES; i++)
        there = dlc_arena_printf(cli->arena, "%s%s'%s'", there, i ? ", " : "", found->data[i].name);
    if (found->n > MOST_NAMES)
        there = dlc_arena_printf(cli->arena, "%s and %u more", there, found->n - MOST_NAMES);
    if (!cli->args.inputs)
        return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                             "input '%s' (%s) is not given; --input %s=random:0 makes one up",
                             info->name, info->type, info->name);
    return dlc_diag_fail(&cli->diag, DLC_INVALID, cli->args.inputs,
                         "input '%s' (%s) is missing; there are %s", info->name, info->type,
                         *there ? there : "no tensors");
}

static dlc_status check_shapes(dlc_cli *cli, const dlc_signature *signature,
                               const dlc_options *options)
{
    for (uint32_t s = 0; s < options->nshapes; s++)
        if (find_info(signature->inputs, signature->ninputs, options->shapes[s].name) < 0)
            return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                                 "--shape names '%s', which is no input; the inputs are %s",
                                 options->shapes[s].name,
                                 join_names(cli->arena, signature->inputs, signature->ninputs));
    return DLC_OK;
}

/* Numbers of made-up inputs mean nothing: whoever looks at them is told. */
static void say_random(dlc_cli *cli)
{
    if (cli->json)
        cJSON_AddStringToObject(cli->json, "inputs", "random");
    if (cli->args.command == DLC_COMMAND_run && !cli->args.quiet)
        (void)dlc_diag_fail(&cli->diag, DLC_OK, NULL,
                            "the inputs are random numbers; --inputs or --input gives others");
}

dlc_status dlc_gather_inputs(dlc_cli *cli, const dlc_signature *signature,
                             const dlc_options *options, dlc_tensors *inputs)
{
    const dlc_args *args = &cli->args;
    int make_up = !args->inputs && !args->input.n;
    dlc_tensors found = {0};
    DLC_TRY(check_shapes(cli, signature, options));
    if (make_up && signature->ninputs)
        say_random(cli);
    if (args->inputs)
        DLC_TRY(
            read_files(cli, args->inputs, "inputs", signature->inputs, signature->ninputs, &found));
    *inputs = (dlc_tensors){0};
    for (uint32_t i = 0; i < signature->ninputs; i++) {
        const dlcrt_tensor *tensor = dlc_tensors_find(&found, signature->inputs[i].name);
        dlc_vec_push(cli->arena, inputs, tensor ? *tensor : (dlcrt_tensor){0});
    }
    for (uint32_t i = 0; i < args->input.n; i++)
        DLC_TRY(read_source(cli, signature, options, args->input.data[i], inputs));
    for (uint32_t i = 0; i < signature->ninputs; i++) {
        if (make_up)
            DLC_TRY(make_random(cli, &signature->inputs[i], options, i, &inputs->data[i]));
        else if (!inputs->data[i].name)
            return refuse_missing(cli, &signature->inputs[i], &found);
    }
    return DLC_OK;
}
