/* See probe.h. A process inherits the model and the wanted values, makes of the model what is to be tried, runs it and leaves the
 * differences in shared memory. */
#include "cli/probe.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- tolerance ---- */

static double rtol_of(dlc_dtype dtype)
{
    switch (dtype) {
#define DLC_TOLERANCE(id, operator, model) \
    case DLC_##id:                         \
        return model;
#include "cli/tolerance.def"
#undef DLC_TOLERANCE
    default:
        return 0;
    }
}

static double largest(const dlcrt_tensor *tensor)
{
    double most = 0;
    for (uint64_t i = 0, n = tensor->size_bytes / dlc_dtype_bytes(tensor->dtype); i < n; i++) {
        double size = fabs(dlc_tensor_element(tensor, i));
        most = isfinite(size) && size > most ? size : most;
    }
    return most;
}

dlc_tolerance probe_tolerance(const dlc_cli *cli, const dlcrt_tensor *expected)
{
    const dlc_args *args = &cli->args;
    if (args->rtol >= 0 || args->atol >= 0)
        return (dlc_tolerance){args->rtol >= 0 ? args->rtol : 0, args->atol >= 0 ? args->atol : 0};
    return (dlc_tolerance){0, rtol_of(expected->dtype) * largest(expected)};
}

/* ---- wanted values ---- */

const dlcrt_tensor *probe_value(const comparison *c, const char *name)
{
    void **item = dlc_table_find(&c->values, name);
    return item ? *item : NULL;
}

static const dlcrt_tensor *known_value(const comparison *c, const char *name)
{
    const dlcrt_tensor *input = dlc_tensors_find(&c->inputs, name);
    return input ? input : probe_value(c, name);
}

dlc_status probe_inputs(comparison *c, dlc_model *model, dlc_tensors *inputs)
{
    dlcrt_tensor_info info;
    *inputs = (dlc_tensors){0};
    for (uint32_t i = 0; c->library->model_input(model, i, &info); i++) {
        const dlcrt_tensor *known = known_value(c, info.name);
        if (!known)
            return dlc_diag_fail(&c->cli->diag, DLC_UNSUPPORTED, NULL, "'%s' is not known there", info.name);
        dlc_vec_push(c->cli->arena, inputs, *known);
    }
    return DLC_OK;
}

/* ---- in the child ---- */

static dlc_status fail(comparison *c, dlc_status status, const char *text)
{
    snprintf(c->result->text, sizeof c->result->text, "%s", text);
    return status;
}

static dlc_status model_failed(comparison *c, dlc_model *model, dlc_status status)
{
    dlc_model_note note;
    for (uint32_t i = 0; model && c->library->model_message(model, i, &note); i++)
        if (note.status != DLC_OK)
            snprintf(c->result->text, sizeof c->result->text, "%s%s%s", note.place ? note.place : "",
                     note.place && *note.place ? ": " : "", note.text);
    return status;
}

static void add_row(comparison *c, const dlcrt_tensor *found, const dlcrt_tensor *expected, const char *name)
{
    probe_result *r = c->result;
    if (r->nrows == PROBE_MOST_ROWS)
        return;
    probe_row *row = &r->rows[r->nrows++];
    dlc_str type = {0};
    dlc_tensor_type(found, &type);
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->type, sizeof row->type, "%s", dlc_str_text(&type));
    dlc_str_deinit(&type);
    dlc_diag unheard;
    dlc_diag_init(&unheard, c->cli->arena);
    if (dlc_compare_types(name, found, expected, &unheard) == DLC_OK) {
        dlc_difference d = dlc_compare(found, expected, probe_tolerance(c->cli, expected));
        row->nelems = d.nelems, row->noutside = d.noutside, row->at = d.at;
        row->max_abs = d.max_abs, row->max_rel = d.max_rel, row->found = d.found, row->expected = d.expected;
    } else {
        row->noutside = 1, row->max_abs = row->max_rel = INFINITY;
        strcat(row->type, "?");
    }
    if (row->noutside && !r->nwrong++)
        r->first_wrong = r->nrows - 1;
}

static void compare_all(comparison *c, const probe *p, const dlc_tensors *found, const dlc_tensors *expected)
{
    for (uint32_t i = 0; i < found->n; i++) {
        const char *name = found->data[i].name;
        const dlcrt_tensor *wanted = expected      ? &expected->data[i]
                                     : p->end      ? probe_value(c, name)
                                                   : dlc_tensors_find(&c->outputs, name);
        if (wanted)
            add_row(c, &found->data[i], wanted, name);
    }
}

static dlc_tensors outputs_of(comparison *c, dlc_model *model)
{
    dlc_tensors outputs = {0};
    dlcrt_tensor_info info;
    for (uint32_t i = 0; c->library->model_output(model, i, &info); i++)
        dlc_vec_push(c->cli->arena, &outputs, ((dlcrt_tensor){.name = info.name}));
    return outputs;
}

static dlc_status run_compiled(comparison *c, dlc_model *model, const dlc_tensors *inputs, dlc_tensors *outputs)
{
    dlcrt_executable *executable;
    dlcrt_context *context;
    dlcrt_context_options options = {.threads = (uint32_t)c->cli->args.threads};
    int fd = memfd_create("part", MFD_CLOEXEC);
    if (fd < 0)
        return fail(c, DLC_LIMIT, "no file in memory can be made");
    dlc_status status = c->library->model_write_fd(model, "so", fd, "part");
    if (status != DLC_OK)
        return model_failed(c, model, status);
    status = dlcrt_executable_open_fd(fd, &executable);
    if (status == DLC_OK)
        status = dlcrt_context_create(executable, &options, &context);
    if (status == DLC_OK)
        status = dlcrt_context_run(context, inputs->data, inputs->n, outputs->data, outputs->n);
    return status == DLC_OK ? DLC_OK : fail(c, status, dlcrt_last_error());
}

/* A part's inputs are rounded, so what is right of them is asked for anew. */
static dlc_status expect_part(comparison *c, dlc_model *model, const dlc_tensors *inputs, dlc_tensors *expected)
{
    *expected = outputs_of(c, model);
    c->library->model_watch(model, NULL, NULL);
    dlc_status status = c->library->model_interpret(model, inputs->data, inputs->n, expected->data, expected->n);
    for (uint32_t i = 0; i < expected->n && status == DLC_OK; i++) {
        void *copy = dlc_arena_alloc(c->cli->arena, expected->data[i].size_bytes + 1, 64);
        memcpy(copy, expected->data[i].data, expected->data[i].size_bytes);
        expected->data[i].data = copy;
    }
    return status == DLC_OK ? DLC_OK : model_failed(c, model, status);
}

static dlc_status open_other(comparison *c, const probe *p, dlc_model **model)
{
    dlc_options options = c->options;
    options.passes = p->passes ? p->passes : options.passes;
    options.fusion = p->fusion ? p->fusion : options.fusion;
    options.rewrite = p->rewrite ? p->rewrite : options.rewrite;
    options.winograd = p->winograd ? p->winograd : options.winograd;
    options.dump_after = NULL;
    options.timing = NULL;
    options.is_temporary = 1;
    if (p->is_plain) {
        options.tuned = "";
        options.schedules = NULL;
    }
    dlc_status status = dlc_cli_open(c->cli, c->path, &options, model);
    return status == DLC_OK ? DLC_OK : fail(c, status, "it cannot be opened with these options");
}

static dlc_status try_part(comparison *c, const probe *p)
{
    dlc_model *model = c->model;
    dlc_tensors inputs, outputs, expected;
    int is_anew = c->is_oracle && p->first > 0;
    dlc_status status = c->library->model_part(model, p->first, p->end, p->every);
    if (status != DLC_OK)
        return model_failed(c, model, status);
    DLC_TRY(probe_inputs(c, model, &inputs));
    if (is_anew)
        DLC_TRY(expect_part(c, model, &inputs, &expected));
    outputs = outputs_of(c, model);
    DLC_TRY(run_compiled(c, model, &inputs, &outputs));
    compare_all(c, p, &outputs, is_anew ? &expected : NULL);
    return c->result->nrows ? DLC_OK : DLC_UNSUPPORTED;
}

static dlc_status try_whole(comparison *c, const probe *p)
{
    dlc_model *model;
    dlc_status status;
    const char *text;
    DLC_TRY(open_other(c, p, &model));
    dlc_tensors outputs = outputs_of(c, model);
    if (!p->is_interpreted) {
        DLC_TRY(run_compiled(c, model, &c->inputs, &outputs));
    } else if ((status = c->library->model_text(model, DLC_TEXT_GRAPH, "text", &text)) != DLC_OK ||
               (status = c->library->model_interpret(model, c->inputs.data, c->inputs.n, outputs.data, outputs.n)) != DLC_OK) {
        return model_failed(c, model, status);
    }
    compare_all(c, p, &outputs, NULL);
    return DLC_OK;
}

/* ---- in the parent ---- */

static void wait_for(comparison *c, pid_t child)
{
    int state = 0;
    while (waitpid(child, &state, 0) < 0)
        ;
    if (WIFEXITED(state) || !WIFSIGNALED(state))
        return;
    c->result->status = DLC_INTERNAL;
    snprintf(c->result->text, sizeof c->result->text, "it ends by signal %d (%s)", WTERMSIG(state), strsignal(WTERMSIG(state)));
}

int probe_is_wrong(comparison *c, const probe *p)
{
    if (!c->result) {
        c->result = mmap(NULL, sizeof *c->result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (c->result == MAP_FAILED)
            c->result = NULL;
    }
    if (!c->result)
        return 1;
    c->result->status = DLC_INTERNAL;
    c->result->nrows = c->result->nwrong = 0;
    c->result->text[0] = 0;
    c->nprobes++;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody waits for what it finds */
        c->result->status = p->end ? try_part(c, p) : try_whole(c, p);
        _exit(0);
    }
    if (child > 0)
        wait_for(c, child);
    return c->result->status != DLC_OK || c->result->nwrong > 0;
}
