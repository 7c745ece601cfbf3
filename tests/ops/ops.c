/*
 * Every operator, by every executor: the rows of cases.def become graphs of one node per element
 * type, which run in the strict interpreter, the wide one, and as compiled code for each target
 * this machine can run, CUDA kernels in emulation among them, fused and not.
 *
 *   ops            all cases
 *   ops CONV ADD   those of these operators
 */
#include "dlc/dlc.h"
#include "ir/interp/interp.h"
#include "ir/graph/op.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef enum { MAP, JUMP, SUM } comparison;
typedef struct {
    dlc_opcode op;
    const char *inputs, *attrs;
    comparison compare;
    double factor;
} op_case;

static const op_case cases[] = {
#define OP_CASE(op, inputs, attrs, compare, factor) {DLC_OP_##op, inputs, attrs, compare, factor},
#include "cases.def"
#undef OP_CASE
};
enum { NCASES = sizeof cases / sizeof *cases, MAX_INPUTS = 4 };

/* Tolerance against the wide mode, relative to the largest of the value, 1 and, for sums, the
 * largest result. */
static double tolerance(dlc_dtype dtype)
{
    switch (dtype) {
#define DLC_TOLERANCE(id, operator, model) \
    case DLC_##id:                         \
        return operator;
#include "cli/tolerance.def"
#undef DLC_TOLERANCE
    default:
        return 0;
    }
}

typedef struct {
    dlc_arena *arena;
    dlc_diag diag;
    dlc_graph *graph;
    const op_case *c;
    void **strict, **wide; /* by value id */
    int is_text; /* the nodes of strings, by those who have them; else all others */
    int nfailures;
} bench;

/* Strings in the order that a run sees them, so that its numbers for them are these indices. */
static const char *const texts[] = {"", "one", "two", "three", "four", "fünf", "six"};
enum { NTEXTS = sizeof texts / sizeof *texts };

static void complain(bench *b, const dlc_value *value, const char *who, const char *what)
{
    if (b->nfailures++ < 6)
        printf("FAIL %s %s {%s}: %s, %s: %s\n", dlc_ops[b->c->op].text, b->c->inputs, b->c->attrs,
               value ? value->name : "", who, what);
}

/* --- building --- */

static dlc_dtype find_dtype(const char *text, size_t n)
{
    for (int t = 0; t < DLC_DTYPE_COUNT; t++)
        if (strlen(dlc_dtypes[t].text) == n && !strncmp(dlc_dtypes[t].text, text, n))
            return (dlc_dtype)t;
    return DLC_NONE;
}

/* "T[2,3]:s" */
static dlc_type parse_type(dlc_graph *graph, const char *text, dlc_dtype t)
{
    size_t n = strcspn(text, "[");
    dlc_type type = {.dtype = n == 1 && *text == 'T' ? t : find_dtype(text, n)};
    for (const char *at = text + n + 1; *at && *at != ']';) {
        char *end;
        type.dims[type.rank++] = dlc_expr_i64(graph->pool, strtoll(at, &end, 10));
        at = *end == ',' ? end + 1 : end;
    }
    return type;
}

static uint32_t parse_numbers(const char *text, double *numbers)
{
    uint32_t n = 0;
    for (char *end; *text; text = *end == ',' ? end + 1 : end)
        numbers[n++] = strtod(text, &end);
    return n;
}

static dlc_attr parse_attr(dlc_graph *graph, const char *word)
{
    size_t n = strcspn(word, "=");
    const char *text = word + n + 1;
    for (int a = 0; a < DLC_ATTR_COUNT; a++) {
        if (strlen(dlc_attrs[a].text) != n || strncmp(dlc_attrs[a].text, word, n))
            continue;
        dlc_attr_id id = (dlc_attr_id)a;
        double *numbers = dlc_new_array(graph->arena, double, 16);
        int64_t ints[16];
        uint32_t count;
        switch ((dlc_attr_kind)dlc_attrs[a].kind) {
        case DLC_ATTR_KIND_INT:
            return dlc_attr_int(id, id == DLC_ATTR_DTYPE ? find_dtype(text, strlen(text))
                                                         : atoll(text));
        case DLC_ATTR_KIND_FLOAT:
            return dlc_attr_float(id, atof(text));
        case DLC_ATTR_KIND_TEXT:
            return dlc_attr_text(id, text);
        case DLC_ATTR_KIND_FLOATS:
            count = parse_numbers(text, numbers);
            return dlc_attr_floats(id, numbers, count);
        default:
            count = parse_numbers(text, numbers);
            for (uint32_t i = 0; i < count; i++)
                ints[i] = (int64_t)numbers[i];
            return dlc_attr_ints(graph, id, ints, count);
        }
    }
    printf("no attribute %s\n", word);
    exit(2);
}

/* The case's node for element type t, its inputs before it. NULL: the operator does not take that
 * type. */
static dlc_node *add_node(dlc_graph *graph, const op_case *c, dlc_dtype t, int is_real)
{
    dlc_value *inputs[MAX_INPUTS];
    dlc_attr attrs[8];
    dlc_node_spec spec = {.op = c->op, .inputs = inputs, .attrs = attrs};
    char *rest = NULL, *text = dlc_arena_strdup(graph->arena, c->inputs);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        const char *name =
            dlc_arena_printf(graph->arena, "x%u_%s", spec.ninputs, dlc_dtypes[t].text);
        inputs[spec.ninputs] = NULL;
        if (*word != '?') {
            dlc_type type = parse_type(graph, word, t);
            inputs[spec.ninputs] = dlc_graph_input(graph, name, &type);
        }
        spec.ninputs++;
    }
    text = dlc_arena_strdup(graph->arena, c->attrs);
    for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        attrs[spec.nattrs++] = parse_attr(graph, word);
    spec.name = dlc_arena_printf(graph->arena, "y_%s", dlc_dtypes[t].text);
    dlc_node *node = dlc_graph_node(graph, &spec);
    if (node && is_real)
        dlc_graph_output(graph, spec.name, node->outputs[0]);
    return node;
}

static int takes_dtype(const op_case *c, dlc_dtype t)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    dlc_graph *graph = dlc_graph_create(arena, &diag, "ops");
    int takes = add_node(graph, c, t, 0) != NULL;
    dlc_arena_destroy(arena);
    return takes;
}

static void build(bench *b)
{
    b->arena = dlc_arena_create(0);
    dlc_diag_init(&b->diag, b->arena);
    b->graph = dlc_graph_create(b->arena, &b->diag, "ops");
    b->graph->name = "ops";
    int uses_t = strstr(b->c->inputs, "T[") != NULL;
    for (int t = DLC_BOOL; t < DLC_DTYPE_COUNT; t++)
        if ((uses_t || t == DLC_F32) && dlc_is_text((dlc_dtype)t) == b->is_text && takes_dtype(b->c, (dlc_dtype)t))
            add_node(b->graph, b->c, (dlc_dtype)t, 1);
    if (!b->graph->outputs.n && !b->is_text)
        complain(b, NULL, "graph", "the node is refused for every type");
}

/* --- data --- */

static size_t elems_of(const bench *b, const dlc_value *value)
{
    size_t n = 1;
    for (uint8_t d = 0; d < value->type.rank; d++)
        n *= (size_t)dlc_expr_value(b->graph->pool, value->type.dims[d]);
    return n;
}

static dlc_scalar special(dlc_dtype dtype, uint32_t i)
{
    static const double floats[] = {1,         -0.0,   0.5, INFINITY, -2.5, NAN,   1e-40,  3e38,
                                    -INFINITY, 100.25, -7,  1e-8,     0.0,  -0.3,  2,      -1,
                                    3.5,       88,     17,  -100,     0.75, 255.5, -128.6, 1e6};
    static const int64_t ints[] = {0,         1,   -1, 7,  INT64_MIN, INT64_MAX,
                                   2,         -8,  31, 32, 64,        INT32_MIN,
                                   INT32_MAX, 200, -3, 63, 127,       -128};
    if (dlc_is_float(dtype))
        return (dlc_scalar){.f = floats[i % (sizeof floats / sizeof *floats)]};
    return (dlc_scalar){.i = ints[i % (sizeof ints / sizeof *ints)]};
}

/* Element i by the letters behind the colon; u in [0, 1) is pseudo-random. */
static dlc_scalar element(dlc_dtype dtype, const char *fill, uint32_t i, double u)
{
    double range = fill[0] == 'u' ? 4 : 1, value = (2 * u - 1) * range;
    int64_t limit = fill[0] == 'i' || fill[0] == 'n' ? atoll(fill + 1) : 10;
    if (fill[0] == 's' && u < 0.7)
        return special(dtype, i);
    if (fill[0] == 'p')
        value = 0.1 + 4 * u;
    if (dlc_is_float(dtype))
        return (dlc_scalar){.f = value};
    if (dtype == DLC_BOOL)
        return (dlc_scalar){.i = u < 0.5};
    if (fill[0] == 'i' || (fill[0] != 'n' && fill[0] != 'p' && !dlc_is_unsigned(dtype)))
        return (dlc_scalar){.i = (int64_t)floor((2 * u - 1) * (double)limit)};
    return (dlc_scalar){.i = (int64_t)(u * (double)limit) + (fill[0] == 'p')};
}

static void *fill_input(const bench *b, const dlc_value *value, const char *word, uint32_t seed)
{
    size_t n = elems_of(b, value), bytes = dlc_dtype_bytes(value->type.dtype);
    char *data = dlc_arena_alloc(b->arena, n * bytes + 8, 64);
    const char *colon = strchr(word, ':');
    uint64_t state = seed * 77777u + 1;
    for (uint32_t i = 0; i < n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        dlc_scalar v = element(value->type.dtype, colon ? colon + 1 : "u", (uint32_t)(state >> 40),
                               (double)(state >> 11) * 0x1p-53);
        if (dlc_is_float(value->type.dtype))
            v.f = dlc_round_to(value->type.dtype, v.f);
        else if (value->type.dtype == DLC_BOOL)
            v.i &= 1;
        else if (dlc_is_text(value->type.dtype))
            v.i = i % NTEXTS;
        dlc_scalar_write(value->type.dtype, data + i * bytes, v);
    }
    return data;
}

static void fill_inputs(bench *b)
{
    b->strict = dlc_new_array(b->arena, void *, b->graph->nvalues);
    b->wide = dlc_new_array(b->arena, void *, b->graph->nvalues);
    for (dlc_node *node = b->graph->first; node; node = node->next) {
        char *rest = NULL, *text = dlc_arena_strdup(b->arena, b->c->inputs);
        char *word = strtok_r(text, " ", &rest);
        for (uint32_t i = 0; i < node->ninputs; i++, word = strtok_r(NULL, " ", &rest))
            if (node->inputs[i]) {
                uint32_t id = node->inputs[i]->id;
                b->strict[id] = b->wide[id] = fill_input(b, node->inputs[i], word, id + 1);
            }
    }
}

/* --- interpreters --- */

static void interpret(bench *b, dlc_interp_mode mode, void **memory)
{
    for (dlc_node *node = b->graph->first; node; node = node->next) {
        dlc_node_kernel one;
        if (dlc_node_kernel_of(b->graph, node, b->arena, &one) != DLC_OK) {
            complain(b, node->outputs[0], "meaning", b->diag.messages[b->diag.nmessages - 1].text);
            continue;
        }
        if (dlc_kernel_verify(one.kernel, &b->diag) != DLC_OK)
            complain(b, node->outputs[0], "verify", b->diag.messages[b->diag.nmessages - 1].text);
        void **buffers = dlc_new_array(b->arena, void *, one.values.n);
        for (uint32_t i = 0; i < one.values.n; i++) {
            dlc_value *value = one.values.data[i];
            if (!memory[value->id])
                memory[value->id] = dlc_arena_alloc(b->arena, elems_of(b, value) * 8 + 8, 64);
            buffers[i] = memory[value->id];
        }
        if (dlc_interp_run(one.kernel, mode, &(dlc_interp_args){.buffers = buffers}, &b->diag) !=
            DLC_OK)
            complain(b, node->outputs[0], mode == DLC_WIDE ? "wide" : "strict",
                     b->diag.messages[b->diag.nmessages - 1].text);
    }
}

/* --- comparison --- */

static double as_double(dlc_dtype dtype, dlc_scalar value)
{
    return dlc_is_float(dtype) ? value.f : (double)value.i;
}

static double largest_finite(dlc_dtype dtype, const char *data, size_t n)
{
    double most = 1;
    for (size_t i = 0; i < n; i++) {
        double size =
            fabs(as_double(dtype, dlc_scalar_read(dtype, data + i * dlc_dtype_bytes(dtype))));
        if (isfinite(size) && size > most)
            most = size;
    }
    return most;
}

/* exact: the same bits, NaN payloads apart. */
static void compare(bench *b, const dlc_value *value, const char *who, const void *got,
                    const void *want, int is_exact)
{
    dlc_dtype dtype = value->type.dtype;
    size_t n = elems_of(b, value), bytes = dlc_dtype_bytes(dtype);
    double limit = tolerance(dtype) * b->c->factor;
    double scale = b->c->compare == SUM ? largest_finite(dtype, want, n) : 1;
    for (size_t i = 0; i < n; i++) {
        const char *at = (const char *)got + i * bytes, *wanted = (const char *)want + i * bytes;
        double x = as_double(dtype, dlc_scalar_read(dtype, at)),
               y = as_double(dtype, dlc_scalar_read(dtype, wanted));
        if (!memcmp(at, wanted, bytes) || (isnan(x) && isnan(y)))
            continue;
        if (!is_exact && (x == y || fabs(x - y) <= limit * fmax(scale, fabs(y))))
            continue;
        char text[120];
        snprintf(text, sizeof text, "[%zu] = %.17g, not %.17g", i, x, y);
        complain(b, value, who, text);
        return;
    }
}

static void compare_modes(bench *b)
{
    for (uint32_t o = 0; b->c->compare != JUMP && o < b->graph->outputs.n; o++) {
        const dlc_value *value = b->graph->outputs.data[o].value;
        compare(b, value, "strict against wide", b->strict[value->id], b->wide[value->id], 0);
    }
}

/* --- compiled code --- */

static void *pointers_of(const bench *b, const dlc_value *value, const int64_t *numbers)
{
    size_t n = elems_of(b, value);
    const char **pointers = dlc_new_array(b->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        pointers[i] = texts[numbers[i]];
    return (void *)pointers;
}

/* A string that is none of these has a number that none has. */
static void *numbers_of(const bench *b, const dlc_value *value, const char *const *pointers)
{
    size_t n = elems_of(b, value);
    int64_t *numbers = dlc_new_array(b->arena, int64_t, n + 1);
    for (size_t i = 0; i < n; i++)
        while (numbers[i] < NTEXTS && strcmp(pointers[i], texts[numbers[i]]) != 0)
            numbers[i]++;
    return numbers;
}

static void run_compiled(bench *b, const char *path, const char *target, int is_fused)
{
    char who[64];
    dlcrt_executable *executable;
    dlcrt_context *context;
    snprintf(who, sizeof who, "compiled for %s", target);
    dlc_status status = dlcrt_executable_open(path, &executable);
    if (status == DLC_NO_DEVICE)
        return;
    if (status != DLC_OK) {
        complain(b, NULL, who, dlcrt_last_error());
        return;
    }
    if (dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 2, .poison = 1},
                             &context) != DLC_OK) {
        complain(b, NULL, who, dlcrt_last_error());
        dlcrt_executable_close(executable);
        return;
    }
    dlcrt_tensor *inputs = dlc_new_array(b->arena, dlcrt_tensor, b->graph->inputs.n);
    dlcrt_tensor *outputs = dlc_new_array(b->arena, dlcrt_tensor, b->graph->outputs.n);
    for (uint32_t i = 0; i < b->graph->inputs.n; i++) {
        const dlc_value *value = b->graph->inputs.data[i];
        void *data = b->strict[value->id];
        inputs[i] = (dlcrt_tensor){.data = dlc_is_text(value->type.dtype) ? pointers_of(b, value, data) : data,
                                   .dtype = value->type.dtype, .rank = value->type.rank};
        for (uint8_t d = 0; d < value->type.rank; d++)
            inputs[i].dims[d] = dlc_expr_value(b->graph->pool, value->type.dims[d]);
    }
    status = dlcrt_context_run(context, inputs, b->graph->inputs.n, outputs, b->graph->outputs.n);
    if (status != DLC_OK)
        complain(b, NULL, who, dlcrt_last_error());
    for (uint32_t o = 0; status == DLC_OK && o < b->graph->outputs.n; o++) {
        const dlc_value *value = b->graph->outputs.data[o].value;
        int is_exact = b->c->compare != SUM && is_fused;
        const void *want = b->c->compare == SUM ? b->wide[value->id] : b->strict[value->id];
        const void *got = dlc_is_text(value->type.dtype) ? numbers_of(b, value, outputs[o].data) : outputs[o].data;
        compare(b, value, who, got, want, is_exact || (b->c->compare == JUMP));
    }
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
}

static void compile_and_run(bench *b, const char *folder, const char *target, const char *fusion,
                            int is_fused)
{
    char text_path[256], so_path[256];
    snprintf(text_path, sizeof text_path, "%s/ops.dlc", folder);
    snprintf(so_path, sizeof so_path, "%s/ops.so", folder);
    dlc_model *model = NULL;
    dlc_model_note note = {0};
    dlc_options options = {.target = target, .fusion = fusion, .jobs = 1, .verify_each = 1};
    options.emulate_gpu = !strncmp(target, "sm_", 3);
    dlc_status status = dlc_model_open(text_path, &options, &model);
    if (status == DLC_OK)
        status = dlc_model_write(model, "so", so_path, "ops");
    if (status == DLC_OK) {
        run_compiled(b, so_path, target, is_fused);
    } else {
        for (uint32_t i = 0; dlc_model_message(model, i, &note) && note.status == DLC_OK; i++)
            continue;
        complain(b, NULL, target, note.text ? note.text : "no message");
    }
    dlc_model_close(model);
}

static void write_graph(bench *b, const char *folder)
{
    char path[256];
    dlc_str text = {0};
    snprintf(path, sizeof path, "%s/ops.dlc", folder);
    dlc_graph_print(b->graph, &text);
    FILE *file = fopen(path, "w");
    if (!file || fputs(dlc_str_text(&text), file) < 0 || fclose(file)) {
        perror(path);
        exit(2);
    }
    dlc_str_deinit(&text);
}

static const struct {
    const char *target, *fusion;
    int is_fused; /* muladd is an fma */
} ways[] = {
#ifdef __x86_64__
    {"x86-64-v2", "none", 0},
    {"x86-64-v3", "greedy", 1},
    {"x86-64-v4", "none", 1},
    {"sm_75", "none", 1}, /* emulated */
#else
    {"native", "greedy", 1},
#endif
};

static int run_nodes(const op_case *c, const char *folder, int is_text)
{
    bench b = {.c = c, .is_text = is_text};
    build(&b);
    if (b.graph->outputs.n) {
        fill_inputs(&b);
        interpret(&b, DLC_STRICT, b.strict);
        interpret(&b, DLC_WIDE, b.wide);
        compare_modes(&b);
        write_graph(&b, folder);
    }
    for (uint32_t w = 0; b.graph->outputs.n && w < sizeof ways / sizeof *ways; w++)
        if (!is_text || strncmp(ways[w].target, "sm_", 3) != 0) /* GPUs have no strings */
            compile_and_run(&b, folder, ways[w].target, ways[w].fusion, ways[w].is_fused);
    dlc_arena_destroy(b.arena);
    return b.nfailures > 0;
}

static int run_case(const op_case *c, const char *folder)
{
    int has_failed = run_nodes(c, folder, 0);
    return run_nodes(c, folder, 1) || has_failed;
}

/* Every row of ops.def that is an equation has a case; constants are data. */
static int check_all_have_cases(void)
{
    int nmissing = 0;
    for (int op = 0; op < DLC_OP_COUNT; op++) {
        int has_case = dlc_op_is_opaque(op) || op == DLC_OP_CONSTANT;
        for (uint32_t i = 0; i < NCASES; i++)
            has_case |= cases[i].op == (dlc_opcode)op;
        if (!has_case)
            printf("FAIL %s has no case in cases.def\n", dlc_ops[op].text);
        nmissing += !has_case;
    }
    return nmissing;
}

static int is_wanted(const op_case *c, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcasecmp(argv[i], dlc_ops[c->op].text))
            return 1;
    return argc == 1;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/dlc-ops-XXXXXX", path[64];
    int nfailed = check_all_have_cases(), nrun = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!mkdtemp(folder)) {
        perror(folder);
        return 2;
    }
    const char *why;
    if (dlc_preload(&why)) {
        fprintf(stderr, "%s\n", why);
        return 2;
    }
    for (uint32_t i = 0; i < NCASES; i++) {
        if (!is_wanted(&cases[i], argc, argv))
            continue;
        nfailed += run_case(&cases[i], folder);
        nrun++;
    }
    static const char *const files[] = {"ops.dlc", "ops.so"};
    for (int f = 0; f < 2; f++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[f]);
        unlink(path);
    }
    rmdir(folder);
    printf("%d cases, %d failed\n", nrun, nfailed);
    return nfailed > 0;
}
