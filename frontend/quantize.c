/*
 * The rewritten model is the old message with new lists of nodes, initializers and outputs: what is
 * not touched is not copied, and new parts live in the arena. Unlike import, which never copies a
 * weight, the message is decoded whole here.
 */
#include "frontend/quantize.h"

#include <math.h>
#include <string.h>

#include "base/vec.h"
#include "frontend/model.h"

enum { CODES = 255, MOST_CODE = 127, LEAST_OPSET = 13 };
static const uint64_t most_elements = (uint64_t)1 << 40;

typedef struct {
    dlc_onnx_layer row;
    size_t node;                /* in the graph */
    Onnx__TensorProto *weight;  /* f32, of which `values` */
    const float *values;
    size_t n, inner, channels;  /* element i is of channel i / inner % channels */
    int64_t axis;
} layer;

struct dlc_onnx_quantizer {
    dlc_arena *arena;
    dlc_diag *diag;
    const char *path;
    int per_channel;
    Onnx__ModelProto *model;
    Onnx__GraphProto *graph;
    dlc_vec(layer) layers;
    dlc_vec(const char *) values;
};

static const struct {
    const char *op;
    int axis;
} rows[] = {
#define DLC_QUANTIZED(op, axis) {op, axis},
#include "frontend/quantize.def"
#undef DLC_QUANTIZED
};

/* ---- what there is to quantise ---- */

static int is_listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list ? list : ""; *at && n; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && !memcmp(at, name, n))
            return 1;
    return 0;
}

static Onnx__TensorProto *find_weight(const dlc_onnx_quantizer *q, const char *name)
{
    for (size_t i = 0; i < q->graph->n_initializer; i++) {
        Onnx__TensorProto *t = q->graph->initializer[i];
        if (t->name && !strcmp(t->name, name))
            return t;
    }
    return NULL;
}

static int64_t attribute(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->name && !strcmp(node->attribute[i]->name, name))
            return node->attribute[i]->i;
    return 0;
}

/* The weight's elements and how channels lie in them; false: it is none that can be quantised. */
static int read_weight(layer *l)
{
    const Onnx__TensorProto *w = l->weight;
    l->n = 1;
    for (size_t d = 0; d < w->n_dims; d++) {
        if (w->dims[d] <= 0 || (uint64_t)w->dims[d] > most_elements / l->n)
            return 0;
        l->n *= (size_t)w->dims[d];
    }
    if (w->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT || w->n_dims < 2 || w->n_external_data)
        return 0;
    l->values = w->raw_data.len == l->n * 4 ? (const void *)w->raw_data.data : w->n_float_data == l->n ? w->float_data : NULL;
    l->axis += l->axis < 0 ? (int64_t)w->n_dims : 0;
    l->channels = (size_t)w->dims[l->axis];
    l->inner = 1;
    for (size_t d = (size_t)l->axis + 1; d < w->n_dims; d++)
        l->inner *= (size_t)w->dims[d];
    return l->values != NULL;
}

static uint32_t range_of(dlc_onnx_quantizer *q, const char *value)
{
    uint32_t i = 0;
    while (i < q->values.n && strcmp(q->values.data[i], value) != 0)
        i++;
    if (i == q->values.n)
        dlc_vec_push(q->arena, &q->values, value);
    return i;
}

/* Largest absolute value of each channel, or of all. */
static float *scales_of(const dlc_onnx_quantizer *q, const layer *l, size_t *n)
{
    *n = q->per_channel ? l->channels : 1;
    float *scales = dlc_new_array(q->arena, float, *n + 1);
    for (size_t i = 0; i < l->n; i++) {
        float *scale = &scales[q->per_channel ? i / l->inner % l->channels : 0], value;
        memcpy(&value, (const char *)l->values + 4 * i, sizeof value);
        *scale = fabsf(value) > *scale ? fabsf(value) : *scale;
    }
    for (size_t i = 0; i < *n; i++)
        scales[i] = scales[i] > 0 && isfinite(scales[i]) ? scales[i] / MOST_CODE : 1;
    return scales;
}

static int8_t *codes_of(const dlc_onnx_quantizer *q, layer *l, const float *scales)
{
    int8_t *codes = dlc_arena_alloc(q->arena, l->n, 64);
    double noise = 0, signal = 0;
    for (size_t i = 0; i < l->n; i++) {
        float scale = scales[q->per_channel ? i / l->inner % l->channels : 0], value;
        memcpy(&value, (const char *)l->values + 4 * i, sizeof value);
        float code = fminf(fmaxf(rintf(value / scale), -MOST_CODE), MOST_CODE);
        codes[i] = (int8_t)code;
        noise += (double)(value - code * scale) * (double)(value - code * scale);
        signal += (double)value * (double)value;
    }
    l->row.weight_noise = signal > 0 ? noise / signal : 0;
    return codes;
}

static void add_layer(dlc_onnx_quantizer *q, size_t at, const char *exclude)
{
    const Onnx__NodeProto *node = q->graph->node[at];
    size_t row = 0, n;
    while (row < sizeof rows / sizeof *rows && strcmp(rows[row].op, node->op_type ? node->op_type : "") != 0)
        row++;
    if (row == sizeof rows / sizeof *rows || (node->domain && *node->domain) || node->n_input < 2 ||
        is_listed(exclude, node->op_type) || is_listed(exclude, node->name ? node->name : "") ||
        find_weight(q, node->input[0]) || !*node->input[0])
        return;
    layer l = {.row = {.node = node->name ? node->name : "", .op = rows[row].op, .value = node->input[0]},
               .node = at,
               .weight = find_weight(q, node->input[1]),
               .axis = rows[row].axis};
    if (!strcmp(rows[row].op, "Gemm") && attribute(node, "transB"))
        l.axis = 0;
    if (!l.weight || !read_weight(&l))
        return;
    l.row.range = range_of(q, l.row.value);
    dlc_mark mark = dlc_arena_mark(q->arena);
    (void)codes_of(q, &l, scales_of(q, &l, &n));
    dlc_arena_release(q->arena, mark);
    dlc_vec_push(q->arena, &q->layers, l);
}

static dlc_status check_model(const dlc_onnx_quantizer *q)
{
    int64_t opset = 0;
    if (!q->model || !q->model->graph)
        return dlc_diag_fail(q->diag, DLC_INVALID, q->path, "is no ONNX model with a graph");
    for (size_t i = 0; i < q->model->n_opset_import; i++)
        if (!q->model->opset_import[i]->domain || !*q->model->opset_import[i]->domain)
            opset = q->model->opset_import[i]->version;
    const char *location;
    const Onnx__TensorProto *outside = dlc_external_find(q->model, NULL, NULL, &location);
    if (outside)
        return dlc_diag_fail(q->diag, DLC_UNSUPPORTED, q->path,
                             "'%.200s' lies in a file beside the model, '%.200s'; models that hold their weights can be quantised",
                             outside->name ? outside->name : "", location);
    if (opset < LEAST_OPSET)
        return dlc_diag_fail(q->diag, DLC_UNSUPPORTED, q->path,
                             "is of opset %lld; quantisation along channels is of opset %d on: export or convert it anew",
                             (long long)opset, LEAST_OPSET);
    return DLC_OK;
}

static dlc_status decode(dlc_onnx_quantizer *q)
{
    dlc_map map;
    dlc_wire_facts facts;
    dlc_wire_limits limits = {.max_depth = 100, .max_items = 10 * 1000 * 1000};
    DLC_TRY(dlc_map_open(q->path, &map, q->diag));
    const uint8_t *bytes = map.bytes ? map.bytes : (const uint8_t *)"";
    dlc_status status = dlc_wire_scan(&onnx__model_proto__descriptor, bytes, map.size_bytes, &limits, q->path, q->diag, &facts);
    if (status == DLC_OK)
        q->model = onnx__model_proto__unpack(NULL, map.size_bytes, bytes);
    dlc_map_close(&map);
    return status;
}

dlc_status dlc_onnx_quantizer_open(const char *path, int per_channel, const char *exclude, dlc_arena *arena, dlc_diag *diag,
                                   dlc_onnx_quantizer **result)
{
    dlc_onnx_quantizer *q = *result = dlc_new(arena, dlc_onnx_quantizer);
    *q = (dlc_onnx_quantizer){.arena = arena, .diag = diag, .path = path, .per_channel = per_channel};
    DLC_TRY(decode(q));
    DLC_TRY(check_model(q));
    q->graph = q->model->graph;
    for (size_t i = 0; i < q->graph->n_node; i++)
        add_layer(q, i, exclude);
    if (q->layers.n)
        return DLC_OK;
    return dlc_diag_fail(diag, DLC_UNSUPPORTED, path,
                         "has no Conv, MatMul or Gemm of float32 with a constant weight%s: there is nothing to quantise",
                         exclude ? " that is not excluded" : "");
}

void dlc_onnx_quantizer_close(dlc_onnx_quantizer *q)
{
    if (q && q->model)
        onnx__model_proto__free_unpacked(q->model, NULL);
    if (q)
        q->model = NULL;
}

const dlc_onnx_layer *dlc_onnx_quantizer_layer(const dlc_onnx_quantizer *q, uint32_t i)
{
    return i < q->layers.n ? &q->layers.data[i].row : NULL;
}

const char *dlc_onnx_quantizer_value(const dlc_onnx_quantizer *q, uint32_t i)
{
    return i < q->values.n ? q->values.data[i] : NULL;
}

/* ---- files ---- */

static dlc_status write_model(dlc_onnx_quantizer *q, Onnx__GraphProto *graph, const char *path)
{
    Onnx__ModelProto model = *q->model;
    model.graph = graph;
    size_t n = onnx__model_proto__get_packed_size(&model);
    if (n > INT32_MAX)
        return dlc_diag_fail(q->diag, DLC_UNSUPPORTED, path, "would have %zu bytes; an ONNX file has 2 GB at most", n);
    uint8_t *bytes = dlc_arena_alloc(q->arena, n, 64);
    onnx__model_proto__pack(&model, bytes);
    dlc_status status = dlc_output_whole(path, bytes, n, q->diag);
    return status;
}

static int is_output(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_output; i++)
        if (graph->output[i]->name && !strcmp(graph->output[i]->name, name))
            return 1;
    return 0;
}

/* A type without a shape: the importer finds it out. */
static Onnx__ValueInfoProto *describe(dlc_onnx_quantizer *q, const char *name)
{
    Onnx__ValueInfoProto *info = dlc_new(q->arena, Onnx__ValueInfoProto);
    Onnx__TypeProto *type = dlc_new(q->arena, Onnx__TypeProto);
    Onnx__TypeProto__Tensor *tensor = dlc_new(q->arena, Onnx__TypeProto__Tensor);
    onnx__value_info_proto__init(info);
    onnx__type_proto__init(type);
    onnx__type_proto__tensor__init(tensor);
    tensor->has_elem_type = 1;
    tensor->elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT;
    type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    type->tensor_type = tensor;
    info->name = dlc_arena_strdup(q->arena, name);
    info->type = type;
    return info;
}

dlc_status dlc_onnx_quantizer_probe(dlc_onnx_quantizer *q, const char *path)
{
    Onnx__GraphProto graph = *q->graph;
    graph.output = dlc_new_array(q->arena, Onnx__ValueInfoProto *, graph.n_output + q->values.n);
    memcpy(graph.output, q->graph->output, q->graph->n_output * sizeof *graph.output);
    for (uint32_t i = 0; i < q->values.n; i++)
        if (!is_output(q->graph, q->values.data[i]))
            graph.output[graph.n_output++] = describe(q, q->values.data[i]);
    return write_model(q, &graph, path);
}

/* ---- rewriting ---- */

typedef struct {
    dlc_onnx_quantizer *q;
    dlc_vec(Onnx__NodeProto *) nodes;
    dlc_vec(Onnx__TensorProto *) constants;
    const char **weights;  /* by layer: its weight as the codes give it; NULL: not made yet */
    const char **values;   /* by range */
} rewriter;

static char *named(const rewriter *r, const char *name, const char *ending)
{
    return dlc_arena_printf(r->q->arena, "%s_%s", name, ending);
}

static const char *add_constant(rewriter *r, const char *name, int32_t type, const void *bytes, size_t size_bytes, size_t ndims,
                                int64_t *dims)
{
    Onnx__TensorProto *t = dlc_new(r->q->arena, Onnx__TensorProto);
    onnx__tensor_proto__init(t);
    t->name = dlc_arena_strdup(r->q->arena, name);
    t->has_data_type = 1;
    t->data_type = type;
    t->n_dims = ndims;
    t->dims = dims;
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){size_bytes, dlc_arena_alloc(r->q->arena, size_bytes, 8)};
    memcpy(t->raw_data.data, bytes, size_bytes);
    dlc_vec_push(r->q->arena, &r->constants, t);
    return t->name;
}

static void set_axis(rewriter *r, Onnx__NodeProto *node, int64_t axis)
{
    Onnx__AttributeProto *a = dlc_new(r->q->arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(a);
    a->name = dlc_arena_strdup(r->q->arena, "axis");
    a->has_type = 1;
    a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    a->has_i = 1;
    a->i = axis;
    node->attribute = dlc_new_array(r->q->arena, Onnx__AttributeProto *, 1);
    node->attribute[0] = a;
    node->n_attribute = 1;
}

static Onnx__NodeProto *add_node(rewriter *r, const char *op, const char *x, const char *scale, const char *zero, const char *y)
{
    Onnx__NodeProto *node = dlc_new(r->q->arena, Onnx__NodeProto);
    const char *inputs[] = {x, scale, zero};
    onnx__node_proto__init(node);
    node->op_type = dlc_arena_strdup(r->q->arena, op);
    node->name = dlc_arena_strdup(r->q->arena, y);
    node->input = dlc_new_array(r->q->arena, char *, 3);
    node->output = dlc_new_array(r->q->arena, char *, 1);
    for (int i = 0; i < 3; i++)
        node->input[i] = dlc_arena_strdup(r->q->arena, inputs[i]);
    node->n_input = 3;
    node->output[0] = dlc_arena_strdup(r->q->arena, y);
    node->n_output = 1;
    dlc_vec_push(r->q->arena, &r->nodes, node);
    return node;
}

static const char *quantise_value(rewriter *r, const char *name, double lo, double hi)
{
    lo = lo < 0 ? lo : 0;
    hi = hi > 0 ? hi : 0;
    float scale = hi > lo ? (float)((hi - lo) / CODES) : 1;
    uint8_t zero = (uint8_t)fmin(fmax(rint(-lo / (double)scale), 0), CODES);
    const char *scale_name =
        add_constant(r, named(r, name, "scale"), ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, &scale, sizeof scale, 0, NULL);
    const char *zero_name =
        add_constant(r, named(r, name, "zero_point"), ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, &zero, 1, 0, NULL);
    char *code = named(r, name, "quantized"), *result = named(r, name, "dequantized");
    add_node(r, "QuantizeLinear", name, scale_name, zero_name, code);
    add_node(r, "DequantizeLinear", code, scale_name, zero_name, result);
    return result;
}

static const char *quantise_weight(rewriter *r, layer *l)
{
    size_t n;
    const char *name = l->weight->name;
    const float *scales = scales_of(r->q, l, &n);
    int64_t *dims = dlc_new_array(r->q->arena, int64_t, 1);
    int8_t *zeros = dlc_new_array(r->q->arena, int8_t, n);
    *dims = (int64_t)n;
    size_t rank = r->q->per_channel ? 1 : 0;
    const char *codes = add_constant(r, named(r, name, "quantized"), ONNX__TENSOR_PROTO__DATA_TYPE__INT8,
                                     codes_of(r->q, l, scales), l->n, l->weight->n_dims, l->weight->dims);
    const char *scale = add_constant(r, named(r, name, "scale"), ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, scales, 4 * n, rank, dims);
    const char *zero = add_constant(r, named(r, name, "zero_point"), ONNX__TENSOR_PROTO__DATA_TYPE__INT8, zeros, n, rank, dims);
    char *result = named(r, name, "dequantized");
    Onnx__NodeProto *node = add_node(r, "DequantizeLinear", codes, scale, zero, result);
    if (r->q->per_channel)
        set_axis(r, node, l->axis);
    return result;
}

/* Layers that share a weight share its codes, if channels lie alike. */
static const char *weight_of(rewriter *r, uint32_t i)
{
    layer *l = &r->q->layers.data[i];
    for (uint32_t k = 0; k < i; k++)
        if (r->q->layers.data[k].weight == l->weight && r->q->layers.data[k].axis == l->axis)
            return r->weights[k];
    return quantise_weight(r, l);
}

static Onnx__NodeProto *rewrite_node(rewriter *r, uint32_t i, const double *lo, const double *hi)
{
    const layer *l = &r->q->layers.data[i];
    const Onnx__NodeProto *old = r->q->graph->node[l->node];
    Onnx__NodeProto *node = dlc_new(r->q->arena, Onnx__NodeProto);
    if (!r->values[l->row.range])
        r->values[l->row.range] = quantise_value(r, l->row.value, lo[l->row.range], hi[l->row.range]);
    r->weights[i] = weight_of(r, i);
    *node = *old;
    node->input = dlc_new_array(r->q->arena, char *, old->n_input);
    memcpy(node->input, old->input, old->n_input * sizeof *node->input);
    node->input[0] = dlc_arena_strdup(r->q->arena, r->values[l->row.range]);
    node->input[1] = dlc_arena_strdup(r->q->arena, r->weights[i]);
    return node;
}

static int is_read(const rewriter *r, const char *name)
{
    for (uint32_t i = 0; i < r->nodes.n; i++) {
        const Onnx__NodeProto *node = r->nodes.data[i];
        for (size_t k = 0; k < node->n_input; k++)
            if (!strcmp(node->input[k], name))
                return 1;
        for (size_t k = 0; k < node->n_attribute; k++)
            if (node->attribute[k]->g || node->attribute[k]->n_graphs)
                return 1; /* a body may read it */
    }
    return is_output(r->q->graph, name);
}

/* Whether a layer's codes stand for the constant now, and nothing else reads it. */
static int is_replaced(const rewriter *r, const Onnx__TensorProto *t)
{
    for (uint32_t i = 0; i < r->q->layers.n; i++)
        if (r->q->layers.data[i].weight == t)
            return !is_read(r, t->name);
    return 0;
}

/* Constants that old models list among their inputs, too. */
static void drop_input(rewriter *r, Onnx__GraphProto *graph, const char *name)
{
    Onnx__ValueInfoProto **kept = dlc_new_array(r->q->arena, Onnx__ValueInfoProto *, graph->n_input + 1);
    size_t n = 0;
    for (size_t i = 0; i < graph->n_input; i++)
        if (!graph->input[i]->name || strcmp(graph->input[i]->name, name) != 0)
            kept[n++] = graph->input[i];
    graph->input = kept;
    graph->n_input = n;
}

dlc_status dlc_onnx_quantizer_write(dlc_onnx_quantizer *q, const double *lo, const double *hi, const char *path)
{
    rewriter r = {.q = q};
    Onnx__GraphProto graph = *q->graph;
    uint32_t next = 0;
    r.weights = dlc_new_array(q->arena, const char *, q->layers.n + 1);
    r.values = dlc_new_array(q->arena, const char *, q->values.n + 1);
    for (size_t i = 0; i < graph.n_node; i++) {
        int is_layer = next < q->layers.n && q->layers.data[next].node == i;
        Onnx__NodeProto *node = is_layer ? rewrite_node(&r, next, lo, hi) : graph.node[i];
        next += (uint32_t)is_layer;
        dlc_vec_push(q->arena, &r.nodes, node);
    }
    for (size_t i = 0; i < graph.n_initializer; i++) {
        if (is_replaced(&r, graph.initializer[i]))
            drop_input(&r, &graph, graph.initializer[i]->name);
        else
            dlc_vec_push(q->arena, &r.constants, graph.initializer[i]);
    }
    graph.node = r.nodes.data;
    graph.n_node = r.nodes.n;
    graph.initializer = r.constants.data;
    graph.n_initializer = r.constants.n;
    return write_model(q, &graph, path);
}
