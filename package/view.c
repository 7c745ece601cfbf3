/*
 * What dlc/backend.h shows of a module. Its one idea: kernels are rebuilt into pools of their own
 * in which accesses have become element offsets, ahead of the loads that use them, and elementary
 * functions arithmetic. So a back end needs to know neither layouts nor how exp is computed, and
 * nothing it is shown changes when the compiler's structures do.
 */
#include <stdarg.h>
#include <string.h>

#include "codegen/nest.h"
#include "package/plugin.h"

/* Per load, by its number in the view's pool. */
typedef struct {
    dlc_expr offset, inside;
} access;

typedef struct {
    const dlc_kernel *source; /* a private copy */
    dlc_pool *pool;
    dlc_expr *dims;        /* DLC_MAX_RANK per buffer */
    dlc_expr *extents;     /* by axis */
    dlc_expr (*values)[2]; /* by stage */
    dlc_expr *stores;      /* by stage: element offset, or 0 */
    dlc_vec(access) accesses;
    dlc_ranges ranges;
    dlc_arena *arena;
} kernel_view;

struct dlc_backend_module {
    const dlc_module *module;
    const char *identifier;
    kernel_view *kernels;
    uint32_t *
        *values; /* by step: constants as the model has them, whatever form a schedule wants */
    dlc_diag *diag;
    dlc_status status;
};

/* --- kernels rebuilt --- */
static dlc_expr copied(kernel_view *view, dlc_expr expr)
{
    return expr ? dlc_expr_rewrite(view->pool, view->source->pool, expr, NULL, NULL) : 0;
}

static dlc_expr offset_in(kernel_view *view, uint32_t buffer, const dlc_expr *index)
{
    const dlc_buffer *of = &view->source->buffers.data[buffer];
    return dlc_layout_offset(view->pool, &of->layout, of->type.rank,
                             &view->dims[(size_t)buffer * DLC_MAX_RANK], index);
}

static dlc_expr inside_of(kernel_view *view, dlc_source source, const dlc_expr *index,
                          uint32_t rank)
{
    dlc_expr all = 0;
    for (uint32_t d = 0; d < rank; d++) {
        const dlc_stage *stage = DLC_SOURCE_IS_STAGE(source)
                                     ? &view->source->stages.data[DLC_SOURCE_INDEX(source)]
                                     : NULL;
        dlc_expr extent = stage ? view->extents[stage->axes.data[d]]
                                : view->dims[(size_t)DLC_SOURCE_INDEX(source) * DLC_MAX_RANK + d];
        all = dlc_and(view->pool, all, dlc_in_range(view->pool, index[d], extent));
    }
    return all;
}

/* A load's offset is made before the load, so that it has the lower number. */
static dlc_expr visit(void *user, dlc_pool *to, const dlc_expr_node *node, const dlc_expr *args)
{
    kernel_view *view = user;
    if (node->op != DLC_EXPR_LOAD)
        return 0;
    uint32_t rank = node->nargs - 2u;
    access made = {0};
    if (!DLC_SOURCE_IS_STAGE(node->imm.id))
        made.offset = offset_in(view, node->imm.id, args);
    if (node->flags & DLC_LOAD_CHECKED)
        made.inside = inside_of(view, node->imm.id, args, rank);
    dlc_expr load = dlc_expr_load(to, (dlc_dtype)node->dtype, node->imm.id, args, rank, args[rank],
                                  args[rank + 1], node->flags);
    while (view->accesses.n <= load)
        dlc_vec_push(view->arena, &view->accesses, (access){0});
    if (to->nodes.data[load].op == DLC_EXPR_LOAD)
        view->accesses.data[load] = made;
    return load;
}

static void rebuild_stage(kernel_view *view, uint32_t s)
{
    const dlc_stage *stage = &view->source->stages.data[s];
    dlc_expr index[DLC_MAX_RANK];
    for (uint32_t i = 0; i < dlc_reduces[stage->combine].naccs; i++)
        view->values[s][i] =
            dlc_expr_rewrite(view->pool, view->source->pool, stage->value[i], visit, view);
    for (uint32_t d = 0; d < stage->store.n; d++)
        index[d] =
            dlc_expr_rewrite(view->pool, view->source->pool, stage->store.data[d], visit, view);
    view->stores[s] = stage->buffer == DLC_NO_BUFFER ? 0 : offset_in(view, stage->buffer, index);
}

static void rebuild(kernel_view *view, const dlc_kernel *kernel, dlc_arena *arena)
{
    const dlc_kernel *source = dlc_nest_private_kernel(kernel, NULL, arena);
    *view = (kernel_view){.source = source, .pool = dlc_pool_create(arena), .arena = arena};
    view->ranges = dlc_kernel_ranges((dlc_kernel *)source);
    view->ranges.extents = NULL; /* of the other pool */
    view->dims = dlc_new_array(arena, dlc_expr, source->buffers.n * DLC_MAX_RANK + 1u);
    view->extents = dlc_new_array(arena, dlc_expr, source->axes.n + 1u);
    view->values =
        dlc_arena_array(arena, source->stages.n + 1u, sizeof *view->values, _Alignof(dlc_expr));
    view->stores = dlc_new_array(arena, dlc_expr, source->stages.n + 1u);
    for (uint32_t b = 0; b < source->buffers.n; b++)
        for (uint32_t d = 0; d < source->buffers.data[b].type.rank; d++)
            view->dims[(size_t)b * DLC_MAX_RANK + d] =
                copied(view, source->buffers.data[b].type.dims[d]);
    for (uint32_t a = 0; a < source->axes.n; a++)
        view->extents[a] = copied(view, source->axes.data[a].extent);
    for (uint32_t s = 0; s < source->stages.n; s++)
        rebuild_stage(view, s);
    while (view->accesses.n < view->pool->nodes.n)
        dlc_vec_push(arena, &view->accesses, (access){0});
}

static uint32_t *plain_values(const dlc_module *module, const dlc_step *step, dlc_arena *arena)
{
    uint32_t *values = dlc_new_array(arena, uint32_t, step->nvalues + 1u);
    for (uint32_t i = 0; i < step->nvalues; i++) {
        const dlc_module_value *of;
        values[i] = step->values[i];
        while (values[i] != DLC_NO_VALUE &&
               (of = &module->values.data[values[i]])->role == DLC_VALUE_CONST &&
               of->origin != DLC_NO_VALUE)
            values[i] = of->origin;
    }
    return values;
}

dlc_backend_module *dlc_view_create(const dlc_module *module, const char *identifier,
                                    dlc_arena *arena, dlc_diag *diag)
{
    dlc_backend_module *view = dlc_new(arena, dlc_backend_module);
    *view = (dlc_backend_module){.module = module, .identifier = identifier, .diag = diag};
    view->kernels = dlc_new_array(arena, kernel_view, module->kernels.n + 1u);
    for (uint32_t i = 0; i < module->kernels.n; i++)
        rebuild(&view->kernels[i], module->kernels.data[i].kernel, arena);
    view->values = dlc_new_array(arena, uint32_t *, module->steps.n + 1u);
    for (uint32_t i = 0; i < module->steps.n; i++)
        view->values[i] = plain_values(module, &module->steps.data[i], arena);
    return view;
}

dlc_status dlc_view_status(const dlc_backend_module *view)
{
    return view->status;
}

/* --- the module --- */
static int64_t known(const dlc_pool *pool, dlc_expr expr)
{
    int64_t value;
    return expr && dlc_expr_is_int(pool, expr, &value) ? value : -1;
}

static const char *identifier(const dlc_backend_module *view)
{
    return view->identifier;
}

static const char *model(const dlc_backend_module *view)
{
    return view->module->name;
}

static int64_t arena_bytes(const dlc_backend_module *view)
{
    return known(view->module->pool, view->module->arena_bytes);
}

static uint32_t value_count(const dlc_backend_module *view)
{
    return view->module->values.n;
}

static void value(const dlc_backend_module *view, uint32_t i, dlc_backend_value *result)
{
    static const dlc_backend_role roles[] = {[DLC_VALUE_TEMP] = DLC_BACKEND_TEMP,
                                             [DLC_VALUE_INPUT] = DLC_BACKEND_INPUT,
                                             [DLC_VALUE_OUTPUT] = DLC_BACKEND_OUTPUT,
                                             [DLC_VALUE_CONST] = DLC_BACKEND_CONST,
                                             [DLC_VALUE_HOST] = DLC_BACKEND_TEMP};
    const dlc_module_value *of = &view->module->values.data[i];
    const dlc_pool *pool = view->module->pool;
    *result = (dlc_backend_value){.name = of->name,
                                  .dtype = of->type.dtype,
                                  .rank = of->type.rank,
                                  .role = roles[of->role],
                                  .index = of->index,
                                  .offset = of->skip ? -1 : known(pool, of->offset)};
    for (uint32_t d = 0; d < of->type.rank; d++)
        result->dims[d] = known(pool, of->type.dims[d]);
    result->size_bytes = known(pool, dlc_module_value_bytes(view->module, i));
    if (of->role != DLC_VALUE_CONST)
        return;
    result->data = dlc_module_bytes(view->module, i);
    result->size_bytes = (int64_t)of->data.size_bytes;
}

static uint32_t input_count(const dlc_backend_module *view)
{
    return view->module->inputs.n;
}

static uint32_t input(const dlc_backend_module *view, uint32_t i)
{
    return view->module->inputs.data[i];
}

static uint32_t output_count(const dlc_backend_module *view)
{
    return view->module->outputs.n;
}

static uint32_t output(const dlc_backend_module *view, uint32_t i, const char **name)
{
    *name = view->module->outputs.data[i].name;
    return view->module->outputs.data[i].value;
}

static uint32_t step_count(const dlc_backend_module *view)
{
    return view->module->steps.n;
}

static void step(const dlc_backend_module *view, uint32_t i, dlc_backend_step *result)
{
    static const char *const opaques[] = {
#define DLC_OPAQUE(id, number, text, inputs, outputs, attrs, names, count, run) [number] = text,
#include "dlc/opaque.def"
#undef DLC_OPAQUE
    };
    static const char *const kinds[] = {
        [DLC_STEP_LAUNCH] = "launch", [DLC_STEP_BIND] = "bind", [DLC_STEP_COPY] = "copy",
        [DLC_STEP_SET] = "set", [DLC_STEP_IF] = "if", [DLC_STEP_ELSE] = "else", [DLC_STEP_LOOP] = "loop",
        [DLC_STEP_END] = "end"};
    const dlc_step *of = &view->module->steps.data[i];
    *result = (dlc_backend_step){
        .kind = of->kind == DLC_STEP_OPAQUE ? opaques[of->opaque] : kinds[of->kind],
        .name = of->name ? of->name : "",
        .kernel = of->kind == DLC_STEP_LAUNCH ? of->kernel : DLC_BACKEND_NONE,
        .nvalues = of->nvalues,
        .values = view->values[i]};
}

/* --- kernels --- */
static uint32_t kernel_count(const dlc_backend_module *view)
{
    return view->module->kernels.n;
}

static const char *kernel_name(const dlc_backend_module *view, uint32_t kernel)
{
    return view->kernels[kernel].source->name;
}

static uint32_t axis_count(const dlc_backend_module *view, uint32_t kernel)
{
    return view->kernels[kernel].source->axes.n;
}

static void axis(const dlc_backend_module *view, uint32_t kernel, uint32_t i,
                 dlc_backend_axis *result)
{
    const kernel_view *of = &view->kernels[kernel];
    *result = (dlc_backend_axis){.name = of->source->axes.data[i].name,
                                 .extent = known(of->pool, of->extents[i])};
}

static uint32_t buffer_count(const dlc_backend_module *view, uint32_t kernel)
{
    return view->kernels[kernel].source->buffers.n;
}

static void buffer(const dlc_backend_module *view, uint32_t kernel, uint32_t i,
                   dlc_backend_buffer *result)
{
    static const dlc_backend_role roles[] = {[DLC_ROLE_IN] = DLC_BACKEND_INPUT,
                                             [DLC_ROLE_OUT] = DLC_BACKEND_OUTPUT,
                                             [DLC_ROLE_CONST] = DLC_BACKEND_CONST};
    const dlc_buffer *of = &view->kernels[kernel].source->buffers.data[i];
    *result =
        (dlc_backend_buffer){.name = of->name, .dtype = of->type.dtype, .role = roles[of->role]};
}

static uint32_t stage_count(const dlc_backend_module *view, uint32_t kernel)
{
    return view->kernels[kernel].source->stages.n;
}

static void stage(const dlc_backend_module *view, uint32_t kernel, uint32_t i,
                  dlc_backend_stage *result)
{
    static const char *const updates[] = {"none", "set", "sum", "prod", "min", "max"};
    const dlc_stage *of = &view->kernels[kernel].source->stages.data[i];
    const kernel_view *in = &view->kernels[kernel];
    *result = (dlc_backend_stage){.name = of->name,
                                  .naxes = of->axes.n,
                                  .nreduce = of->reduce.n,
                                  .axes = of->axes.data,
                                  .reduce = of->reduce.data,
                                  .combine = dlc_reduces[of->combine].text,
                                  .naccs = dlc_reduces[of->combine].naccs,
                                  .value = {in->values[i][0], in->values[i][1]},
                                  .dtype = {of->dtype[0], of->dtype[1]},
                                  .buffer = of->buffer,
                                  .second = of->second,
                                  .offset = in->stores[i],
                                  .update = updates[of->update]};
}

static uint32_t expr_count(const dlc_backend_module *view, uint32_t kernel)
{
    return view->kernels[kernel].pool->nodes.n;
}

static void describe_load(const kernel_view *in, dlc_expr expr, dlc_backend_expr *result)
{
    const dlc_expr_node *node = dlc_node_of(in->pool, expr);
    result->of_stage = DLC_SOURCE_IS_STAGE(node->imm.id);
    result->id = DLC_SOURCE_INDEX(node->imm.id);
    result->second = (node->flags & DLC_LOAD_SECOND) != 0;
    result->checked = (node->flags & DLC_LOAD_CHECKED) != 0;
    result->nindices = result->nargs = dlc_load_rank(in->pool, expr);
    result->guard = dlc_load_guard(in->pool, expr);
    result->otherwise = dlc_load_else(in->pool, expr);
    result->offset = in->accesses.data[expr].offset;
    result->inside = in->accesses.data[expr].inside;
}

static void expr(const dlc_backend_module *view, uint32_t kernel, uint32_t i,
                 dlc_backend_expr *result)
{
    const kernel_view *in = &view->kernels[kernel];
    const dlc_expr_node *node = dlc_node_of(in->pool, i);
    *result = (dlc_backend_expr){.op = dlc_exprs[node->op].text,
                                 .dtype = (dlc_dtype)node->dtype,
                                 .nargs = node->nargs,
                                 .args = in->pool->args.data + node->args};
    if (node->op == DLC_EXPR_LOAD)
        describe_load(in, i, result);
    else if (node->op == DLC_EXPR_CONST && dlc_is_float((dlc_dtype)node->dtype))
        result->f = node->imm.f;
    else if (node->op == DLC_EXPR_CONST)
        result->i = node->imm.i;
    else
        result->id = node->imm.id;
}

static void range(const dlc_backend_module *view, uint32_t kernel, uint32_t i, int64_t *lo,
                  int64_t *hi)
{
    const kernel_view *in = &view->kernels[kernel];
    dlc_interval interval = dlc_expr_range(in->pool, i, &in->ranges);
    *lo = interval.lo;
    *hi = interval.hi;
}

/* --- what comes back --- */
static void print(dlc_backend_output *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void print(dlc_backend_output *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dlc_str_vprintf(&to->text, format, args);
    va_end(args);
}

static void refuse(dlc_backend_module *view, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void refuse(dlc_backend_module *view, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (view->status == DLC_OK) /* what followed from it is not told */
        view->status =
            dlc_diag_vfail(view->diag, DLC_UNSUPPORTED, view->module->target->name, format, args);
    va_end(args);
}

const dlc_backend_api dlc_backend_functions = {
    DLC_BACKEND_VERSION,
    identifier,
    model,
    arena_bytes,
    value_count,
    value,
    input_count,
    input,
    output_count,
    output,
    step_count,
    step,
    kernel_count,
    kernel_name,
    axis_count,
    axis,
    buffer_count,
    buffer,
    stage_count,
    stage,
    expr_count,
    expr,
    range,
    print,
    refuse,
};
