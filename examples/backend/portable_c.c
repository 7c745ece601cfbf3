/*
 * A target outside dlc: C99 for machines without heap, operating system or library. A model becomes one function over memory that the
 * caller owns; docs/add-a-target.md walks through this file.
 *
 *   cc -O2 -shared -fPIC portable_c.c kernel.c expression.c prelude.c $(pkg-config --cflags dlcrt) -o portable_c.so
 *   dlc compile ../../models/digits.onnx --shape image=1x1x8x8 --target ./portable_c.so --emit c,h -o digits.c
 *
 * Its one idea: a kernel is written as its equations stand. Axes that all stages share become outer loops, within which each stage is
 * a scalar or an array over the axes that are left; sums run in the order the kernel states.
 */
#include "portable_c.h"

#include <stdlib.h>
#include <string.h>

/* --- what can be written --- */

static int is_supported(dlc_dtype dtype)
{
    return dtype == DLC_BOOL || dlc_is_int(dtype) || dtype == DLC_F32 || dtype == DLC_F64;
}

static void check_values(const dlc_backend_api *api, dlc_backend_module *module)
{
    for (uint32_t i = 0; i < api->value_count(module); i++) {
        dlc_backend_value value;
        api->value(module, i, &value);
        if (value.size_bytes < 0)
            api->refuse(module, "the size of '%s' is known at run time only; fix it with --shape",
                        value.name);
        else if (!is_supported(value.dtype))
            api->refuse(module, "'%s' is %s; there are f32, f64, integers and bool here",
                        value.name, dlc_dtypes[value.dtype].text);
    }
}

static void check_steps(const dlc_backend_api *api, dlc_backend_module *module)
{
    for (uint32_t i = 0; i < api->step_count(module); i++) {
        dlc_backend_step step;
        api->step(module, i, &step);
        if (strcmp(step.kind, "launch") && strcmp(step.kind, "copy"))
            api->refuse(module, "step '%s' is no equation (%s), which needs a library", step.name,
                        step.kind);
    }
}

/* --- scratch of kernels: arrays of stages, behind the arena --- */

uint32_t stage_bytes(const writer *w, uint32_t stage)
{
    dlc_backend_stage of;
    dlc_backend_axis axis;
    int64_t n = 1;
    w->api->stage(w->module, w->kernel, stage, &of);
    for (uint32_t i = 0; i < of.naxes; i++) {
        w->api->axis(w->module, w->kernel, of.axes[i], &axis);
        n *= w->is_open[of.axes[i]] ? 1 : axis.extent;
    }
    return (uint32_t)(n * 8 * of.naccs); /* of any dtype, aligned */
}

/* Open axes are those of every stage that no load of a stage shifts. */
static int is_shared_axis(const writer *w, uint32_t axis)
{
    for (uint32_t s = 0; s < w->api->stage_count(w->module, w->kernel); s++) {
        dlc_backend_stage stage;
        int found = 0;
        w->api->stage(w->module, w->kernel, s, &stage);
        for (uint32_t i = 0; i < stage.naxes; i++)
            found |= stage.axes[i] == axis;
        if (!found || strcmp(stage.update, "none")) /* scatters keep the order of their axes */
            return 0;
    }
    for (uint32_t e = 1; e < w->api->expr_count(w->module, w->kernel); e++) {
        dlc_backend_expr expr, index;
        dlc_backend_stage stage;
        w->api->expr(w->module, w->kernel, e, &expr);
        if (strcmp(expr.op, "load") || !expr.of_stage)
            continue;
        w->api->stage(w->module, w->kernel, expr.id, &stage);
        for (uint32_t i = 0; i < stage.naxes; i++) {
            w->api->expr(w->module, w->kernel, expr.args[i], &index);
            if (stage.axes[i] == axis && (strcmp(index.op, "axis") || index.id != axis))
                return 0;
        }
    }
    return 1;
}

/* Recurrences between stages would need their axis outside of all of them. */
static void check_order(const writer *w, const dlc_backend_stage *stage, uint32_t number,
                        uint8_t *marks)
{
    for (uint32_t e = w->api->expr_count(w->module, w->kernel); e-- > 1;) {
        dlc_backend_expr expr;
        w->api->expr(w->module, w->kernel, e, &expr);
        if (!marks[e])
            continue;
        mark_operands(&expr, marks);
        if (!strcmp(expr.op, "load") && expr.of_stage && expr.id > number)
            w->api->refuse(w->module,
                           "kernel '%s': '%s' reads a later stage, and such recurrences are not "
                           "supported here",
                           w->api->kernel_name(w->module, w->kernel), stage->name);
    }
}

static void find_places(writer *w)
{
    uint32_t naxes = w->api->axis_count(w->module, w->kernel),
             nexprs = w->api->expr_count(w->module, w->kernel);
    uint32_t nstages = w->api->stage_count(w->module, w->kernel);
    w->is_open = calloc(naxes + 1, 1);
    w->places = calloc(nstages + 1, sizeof *w->places);
    w->scratch_bytes = 0;
    for (uint32_t s = 0; s < nstages; s++)
        w->places[s] = (uint32_t)UNREAD;
    for (uint32_t e = 1; e < nexprs; e++) {
        dlc_backend_expr expr;
        w->api->expr(w->module, w->kernel, e, &expr);
        if (!strcmp(expr.op, "load") && expr.of_stage)
            w->places[expr.id] = (uint32_t)SCALAR;
    }
    for (uint32_t a = 0; a < naxes; a++)
        w->is_open[a] = (uint8_t)is_shared_axis(w, a);
    for (uint32_t s = 0; s < nstages; s++) {
        dlc_backend_stage stage;
        uint8_t *marks = calloc(nexprs, 1);
        w->api->stage(w->module, w->kernel, s, &stage);
        marks[stage.value[0]] = marks[stage.value[1]] = marks[stage.offset] = 1;
        check_order(w, &stage, s, marks);
        free(marks);
        if (w->places[s] == (uint32_t)SCALAR && stage_bytes(w, s) > 8 * stage.naccs) {
            w->places[s] = w->scratch_bytes;
            w->scratch_bytes += stage_bytes(w, s);
        }
    }
}

/* --- the file --- */

static void print_identifier(const writer *w, const char *name)
{
    if (*name >= '0' && *name <= '9')
        w->api->print(w->out, "_");
    for (; *name; name++) {
        int is_word = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                      (*name >= '0' && *name <= '9');
        w->api->print(w->out, "%c", is_word ? *name : '_');
    }
}

static void print_prototype(const writer *w)
{
    const char *name = w->api->identifier(w->module), *output;
    dlc_backend_value value;
    w->api->print(w->out, "int %s_run(", name);
    for (uint32_t i = 0; i < w->api->input_count(w->module); i++) {
        w->api->value(w->module, w->api->input(w->module, i), &value);
        w->api->print(w->out, "const %s *in_", c_type(value.dtype));
        print_identifier(w, value.name);
        w->api->print(w->out, ", ");
    }
    for (uint32_t i = 0; i < w->api->output_count(w->module); i++) {
        w->api->value(w->module, w->api->output(w->module, i, &output), &value);
        w->api->print(w->out, "%s *out_", c_type(value.dtype));
        print_identifier(w, output);
        w->api->print(w->out, ", ");
    }
    w->api->print(w->out, "%s_arena *arena)", name);
}

static void print_value(const writer *w, uint32_t number)
{
    dlc_backend_value value;
    const char *name = NULL;
    w->api->value(w->module, number, &value);
    if (value.role == DLC_BACKEND_CONST) {
        w->api->print(w->out, "c%u", number);
    } else if (value.role == DLC_BACKEND_TEMP) {
        w->api->print(w->out, "(void *)(arena->bytes + %lld)", (long long)value.offset);
    } else if (value.role == DLC_BACKEND_INPUT) {
        w->api->print(w->out, "in_");
        print_identifier(w, value.name);
    } else {
        w->api->output(w->module, value.index, &name);
        w->api->print(w->out, "out_");
        print_identifier(w, name);
    }
}

static void print_element(const writer *w, const dlc_backend_value *value, int64_t i)
{
    const unsigned char *at =
        (const unsigned char *)value->data + i * dlc_dtype_bytes(value->dtype);
    union {
        float f32;
        double f64;
        int64_t i64;
        uint64_t u64;
    } bits = {.u64 = 0};
    memcpy(&bits, at, dlc_dtype_bytes(value->dtype));
    if (value->dtype == DLC_F32 || value->dtype == DLC_F64)
        print_float(w, value->dtype, value->dtype == DLC_F32 ? bits.f32 : bits.f64);
    else if (dlc_is_unsigned(value->dtype) || value->dtype == DLC_BOOL)
        w->api->print(w->out, "%llu%s", (unsigned long long)bits.u64,
                      value->dtype == DLC_U64 ? "u" : "");
    else /* the sign, from the element's own width */
        print_int(w, (int64_t)(bits.u64 << (64 - dlc_dtypes[value->dtype].bits)) >>
                         (64 - dlc_dtypes[value->dtype].bits));
}

/* Constants that steps read; returns their bytes. */
static int64_t print_constants(const writer *w, const uint8_t *used)
{
    int64_t total = 0;
    for (uint32_t v = 0; v < w->api->value_count(w->module); v++) {
        dlc_backend_value value;
        w->api->value(w->module, v, &value);
        if (!used[v] || value.role != DLC_BACKEND_CONST)
            continue;
        int64_t n = value.size_bytes / dlc_dtype_bytes(value.dtype);
        total += value.size_bytes;
        if (!w->out)
            continue;
        w->api->print(w->out, "\nstatic const %s c%u[%lld] = { /* %s */", c_type(value.dtype), v,
                      (long long)(n ? n : 1), plain(value.name) ? value.name : "");
        for (int64_t i = 0; i < n; i++) {
            w->api->print(w->out, "%s", i % 8 ? " " : "\n    ");
            print_element(w, &value, i);
            w->api->print(w->out, ",");
        }
        w->api->print(w->out, "%s\n};\n", n ? "" : "0");
    }
    return total;
}

static void print_launch(const writer *w, const dlc_backend_step *step, int64_t scratch)
{
    w->api->print(w->out, "    kernel%u(", step->kernel);
    for (uint32_t i = 0; i < step->nvalues; i++) {
        print_value(w, step->values[i]);
        w->api->print(w->out, ", ");
    }
    w->api->print(w->out, "arena->bytes + %lld, &fault);", (long long)scratch);
    if (plain(step->name))
        w->api->print(w->out, " /* %s */", step->name);
    w->api->print(w->out, "\n");
}

static void print_copy(const writer *w, const dlc_backend_step *step)
{
    dlc_backend_value value;
    w->api->value(w->module, step->values[1], &value);
    w->api->print(w->out, "    dlc_copy(");
    print_value(w, step->values[1]);
    w->api->print(w->out, ", ");
    print_value(w, step->values[0]);
    w->api->print(w->out, ", %lld);\n", (long long)value.size_bytes);
}

static void print_run(const writer *w, int64_t arena_bytes)
{
    w->api->print(w->out, "\n");
    print_prototype(w);
    w->api->print(w->out, "\n{\n    int fault = 0;\n    (void)arena;\n");
    for (uint32_t i = 0; i < w->api->step_count(w->module); i++) {
        dlc_backend_step step;
        w->api->step(w->module, i, &step);
        if (!strcmp(step.kind, "launch"))
            print_launch(w, &step, arena_bytes);
        else
            print_copy(w, &step);
    }
    w->api->print(w->out, "    return fault;\n}\n");
}

/* What both forms need to know. */
typedef struct {
    int64_t arena_bytes, scratch_bytes, constants_bytes;
    uint8_t *used; /* by value */
} sizes;

static sizes measure(writer *w)
{
    sizes all = {.arena_bytes = w->api->arena_bytes(w->module)};
    all.used = calloc(w->api->value_count(w->module) + 1, 1);
    for (uint32_t i = 0; i < w->api->step_count(w->module); i++) {
        dlc_backend_step step;
        w->api->step(w->module, i, &step);
        for (uint32_t v = 0; v < step.nvalues; v++)
            if (step.values[v] != DLC_BACKEND_NONE)
                all.used[step.values[v]] = 1;
    }
    for (w->kernel = 0; w->kernel < w->api->kernel_count(w->module); w->kernel++) {
        find_places(w);
        all.scratch_bytes =
            w->scratch_bytes > all.scratch_bytes ? w->scratch_bytes : all.scratch_bytes;
        free(w->is_open);
        free(w->places);
    }
    dlc_backend_output *out = w->out;
    w->out = NULL; /* only count */
    all.constants_bytes = print_constants(w, all.used);
    w->out = out;
    return all;
}

static void write_c(const dlc_backend_api *api, dlc_backend_module *module, dlc_backend_output *out)
{
    writer w = {.api = api, .module = module, .out = out};
    check_values(api, module);
    check_steps(api, module);
    sizes all = measure(&w);
    api->print(out,
               "/* %s: C99, no heap, no library. Constants %lld bytes, arena %lld. Bits are those "
               "of -std=c99. */\n",
               api->identifier(module), (long long)all.constants_bytes,
               (long long)(all.arena_bytes + all.scratch_bytes));
    api->print(out, "#include \"%s.h\"\n%s", api->identifier(module), prelude);
    print_constants(&w, all.used);
    for (w.kernel = 0; w.kernel < api->kernel_count(module); w.kernel++) {
        find_places(&w);
        print_kernel(&w);
        free(w.is_open);
        free(w.places);
    }
    print_run(&w, all.arena_bytes);
    free(all.used);
}

static void write_h(const dlc_backend_api *api, dlc_backend_module *module, dlc_backend_output *out)
{
    writer w = {.api = api, .module = module, .out = out};
    const char *name = api->identifier(module);
    check_values(api, module);
    check_steps(api, module);
    sizes all = measure(&w);
    int64_t bytes = all.arena_bytes + all.scratch_bytes;
    api->print(out,
               "/* Memory of a run: the caller's, any content; RAM beside it is stack. Constants: "
               "%lld bytes. */\n",
               (long long)all.constants_bytes);
    api->print(out, "#ifndef %s_H\n#define %s_H\n\n#include <stdint.h>\n\n", name, name);
    api->print(out,
               "typedef union {\n    unsigned char bytes[%lld];\n    double aligned;\n    int64_t "
               "aligned_too;\n} %s_arena;\n\n",
               (long long)(bytes > 8 ? bytes : 8), name);
    api->print(out, "/* Row-major. 0; or 1 when an index of the data was out of range. */\n");
    print_prototype(&w);
    api->print(out, ";\n\n#endif\n");
    free(all.used);
}

static const dlc_backend_form forms[] = {
    {"c", "the model as C99", write_c},
    {"h", "its header", write_h},
};

/* Narrow vectors, so that little is padded; the caches are what fusion takes for a scratchpad. */
static const dlc_backend_plugin plugin = {
    .version = DLC_BACKEND_VERSION,
    .help = "portable C99 for machines without an operating system",
    .vector_bytes = 16,
    .vector_registers = 16,
    .l1_bytes = 8 * 1024,
    .l2_bytes = 16 * 1024,
    .nforms = sizeof forms / sizeof *forms,
    .forms = forms,
};

const dlc_backend_plugin *dlc_backend_get(void)
{
    return &plugin;
}
