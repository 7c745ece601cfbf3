/*
 * A model's outside: versions, initializers, inputs with their symbols, outputs, and the types it
 * declares. A dimension called by one name everywhere is one symbol; it is bound where the name is
 * met first.
 */
#include "frontend/import_steps.h"

#include <inttypes.h>
#include <string.h>

#define PLACE(im, ...) dlc_arena_printf((im)->arena, "%s: " __VA_ARGS__)

/* --- versions --- */

static dlc_status read_opset(dlc_import *im, const Onnx__OperatorSetIdProto *opset,
                             dlc_table *table, const char *place)
{
    const char *domain = im_domain(opset->domain);
    int is_new;
    void **item = dlc_table_insert(table, im->arena, domain, &is_new);
    if (!is_new && *(const int64_t *)*item != opset->version)
        dlc_diag_fail(im->graph->diag, DLC_OK, place,
                      "imports domain '%s' twice; the last one, version %" PRId64 ", is taken",
                      domain, opset->version);
    int64_t *version = dlc_new(im->arena, int64_t);
    *version = opset->version;
    *item = version;
    if (!*domain && (opset->version < DLC_OPSET_FIRST || opset->version > DLC_OPSET_LAST))
        return dlc_diag_fail(im->graph->diag, opset->version < 1 ? DLC_INVALID : DLC_UNSUPPORTED,
                             place, "uses opset %" PRId64 "; supported: %d to %d", opset->version,
                             DLC_OPSET_FIRST, DLC_OPSET_LAST);
    return DLC_OK;
}

dlc_status im_read_opsets(dlc_import *im, Onnx__OperatorSetIdProto **opsets, size_t n,
                          dlc_table *table, const char *place)
{
    for (size_t i = 0; i < n; i++)
        DLC_TRY(read_opset(im, opsets[i], table, place));
    return DLC_OK;
}

static void add_property(dlc_import *im, const char *key, const char *value, int is_field)
{
    if (value && (*value || !is_field))
        dlc_vec_push(im->graph->arena, &im->graph->properties, ((dlc_property){key ? key : "", value, is_field}));
}

static void read_properties(dlc_import *im, const Onnx__ModelProto *proto)
{
    add_property(im, "producer_name", proto->producer_name, 1);
    add_property(im, "producer_version", proto->producer_version, 1);
    add_property(im, "domain", proto->domain, 1);
    if (proto->model_version)
        add_property(im, "model_version", dlc_arena_printf(im->arena, "%" PRId64, proto->model_version), 1);
    add_property(im, "doc_string", proto->doc_string, 1);
    add_property(im, "graph.doc_string", proto->graph->doc_string, 1);
    for (size_t i = 0; i < proto->n_metadata_props; i++)
        add_property(im, proto->metadata_props[i]->key, proto->metadata_props[i]->value, 0);
}

dlc_status im_read_header(dlc_import *im)
{
    const Onnx__ModelProto *proto = im->proto;
    dlc_diag *diag = im->graph->diag;
    const char *file = im->graph->file;
    if (!proto->has_ir_version || proto->ir_version < 1)
        return dlc_diag_fail(diag, DLC_INVALID, file, "is no ONNX model: it states no ir_version");
    if (proto->ir_version > DLC_IR_LAST)
        return dlc_diag_fail(diag, DLC_UNSUPPORTED, file,
                             "has ir_version %" PRId64 "; supported: up to %d", proto->ir_version,
                             DLC_IR_LAST);
    if (!proto->graph)
        return dlc_diag_fail(diag, DLC_INVALID, file, "is no ONNX model: it has no graph");
    if (!proto->n_opset_import && proto->ir_version < 3) {
        Onnx__OperatorSetIdProto first = {.domain = (char *)(uintptr_t)"", .version = 1};
        return read_opset(im, &first, &im->opsets, file);
    }
    if (!proto->n_opset_import)
        return dlc_diag_fail(diag, DLC_INVALID, file,
                             "imports no operator set (ir_version %" PRId64
                             "); supported: opset %d to %d",
                             proto->ir_version, DLC_OPSET_FIRST, DLC_OPSET_LAST);
    if (proto->n_training_info)
        return dlc_diag_fail(diag, DLC_UNSUPPORTED, file,
                             "holds training information; only inference is supported");
    if (proto->graph->name && *proto->graph->name)
        im->graph->name = proto->graph->name;
    read_properties(im, proto);
    return im_read_opsets(im, proto->opset_import, proto->n_opset_import, &im->opsets, file);
}

/* --- constants --- */

static const int64_t *numbers_of(dlc_import *im, const char *const *texts, size_t n)
{
    int64_t *numbers = dlc_new_array(im->arena, int64_t, n + 1);
    for (size_t i = 0; i < n; i++)
        numbers[i] = dlc_strings_add(&im->graph->strings, im->graph->arena, texts[i]);
    return numbers;
}

dlc_value *im_constant(dlc_import *im, const char *name, const dlc_dense *dense)
{
    dlc_type type = {.dtype = dense->dtype, .rank = (uint8_t)dense->rank};
    for (uint32_t i = 0; i < dense->rank; i++)
        type.dims[i] = dlc_expr_i64(im->pool, dense->dims[i]);
    const void *bytes = dense->bytes;
    if (dlc_is_text(dense->dtype))
        bytes = numbers_of(im, (const char *const *)dense->bytes, dense->size_bytes / sizeof(const char *));
    return dlc_graph_constant(im->graph, name, &type, bytes, dense->size_bytes);
}

dlc_value *im_strings(dlc_import *im, const char *const *texts, uint32_t n, uint32_t rank)
{
    dlc_dense dense = {.dtype = DLC_STR, .rank = rank, .dims = {n}, .bytes = texts, .size_bytes = n * sizeof *texts};
    return im_constant(im, "strings", &dense);
}

static void add_initializer(dlc_import *im, dlc_scope *scope, const char *name, const char *place,
                            dlc_status status, const dlc_dense *dense)
{
    if (!name || !*name)
        dlc_diag_fail(im->graph->diag, DLC_INVALID, place, "has no name");
    else
        (void)im_bind(im, scope, name,
                      status == DLC_OK ? im_constant(im, name, dense) : &im->poison);
}

void im_read_initializers(dlc_import *im, const Onnx__GraphProto *graph, dlc_scope *scope)
{
    dlc_dense dense;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const Onnx__TensorProto *tensor = graph->initializer[i];
        const char *place =
            PLACE(im, "initializer '%s'", im->graph->file, tensor->name ? tensor->name : "");
        dlc_status status = dlc_tensor_decode(im->model, tensor, place, &dense);
        add_initializer(im, scope, tensor->name, place, status, &dense);
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *tensor = graph->sparse_initializer[i];
        const char *name = tensor->values ? tensor->values->name : NULL;
        const char *place = PLACE(im, "sparse initializer '%s'", im->graph->file, name ? name : "");
        dlc_status status = dlc_sparse_decode(im->model, tensor, place, &dense);
        add_initializer(im, scope, name, place, status, &dense);
    }
}

/* --- inputs --- */

static int64_t given_dim(const dlc_import *im, const char *input, uint32_t rank, uint32_t i)
{
    for (uint32_t k = 0; k < im->options->nshapes; k++) {
        if (strcmp(im->options->shapes[k].name, input) == 0 && im->options->shapes[k].rank == rank)
            return im->options->shapes[k].dims[i];
    }
    return -1;
}

static dlc_expr named_symbol(dlc_import *im, const char *name, uint32_t index, int *is_new)
{
    void **item = dlc_table_insert(&im->symbols, im->arena, name, is_new);
    if (*is_new)
        *item =
            (void *)(uintptr_t)(dlc_graph_symbol(im->graph, name, DLC_BIND_INPUT_DIM, NULL, index) +
                                1);
    return dlc_expr_sym(im->pool, (uint32_t)(uintptr_t)*item - 1);
}

/* "?", "-1" and "None", as some exporters write them, say that a dimension is not known: two of them need not be one size. */
static int is_name(const char *param)
{
    return strpbrk(param, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") && strcmp(param, "None") != 0;
}

static const char *param_of(const Onnx__TensorShapeProto__Dimension *dim)
{
    int is_param = dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    return is_param && dim->dim_param && is_name(dim->dim_param) ? dim->dim_param : NULL;
}

/* A number; negative ones, as some exporters write them, say that it is not known. */
static int is_stated(const Onnx__TensorShapeProto__Dimension *dim)
{
    return dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
           dim->dim_value >= 0;
}

/* Where the user gave a number for a dimension that the model calls by a name, the name is that
 * number everywhere. */
static void note_sizes(dlc_import *im, const Onnx__ValueInfoProto *info)
{
    int is_tensor =
        info->name && info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    const Onnx__TensorShapeProto *shape = is_tensor ? info->type->tensor_type->shape : NULL;
    for (uint32_t i = 0; shape && i < shape->n_dim; i++) {
        int64_t given = given_dim(im, info->name, (uint32_t)shape->n_dim, i);
        const char *param = param_of(shape->dim[i]);
        int is_new;
        if (param && given >= 0)
            *dlc_table_insert(&im->sizes, im->arena, param, &is_new) =
                (void *)(uintptr_t)dlc_expr_i64(im->pool, given);
    }
}

/* A dimension of an input; *is_new: it made a symbol, which waits for its value. */
static dlc_expr input_dim(dlc_import *im, const char *input,
                          const Onnx__TensorShapeProto__Dimension *dim, uint32_t rank, uint32_t i,
                          int *is_new)
{
    int64_t given = given_dim(im, input, rank, i);
    const char *param = param_of(dim);
    *is_new = 0;
    if (given >= 0)
        return dlc_expr_i64(im->pool, given);
    if (is_stated(dim))
        return dlc_expr_i64(im->pool, dim->dim_value);
    void **size = param ? dlc_table_find(&im->sizes, param) : NULL;
    if (size)
        return (dlc_expr)(uintptr_t)*size;
    if (param)
        return named_symbol(im, param, i, is_new);
    *is_new = 1;
    const char *fresh = dlc_arena_printf(im->arena, "%s_d%" PRIu32, input, i);
    return dlc_expr_sym(im->pool, dlc_graph_symbol(im->graph, fresh, DLC_BIND_INPUT_DIM, NULL, i));
}

static dlc_status input_type(dlc_import *im, const Onnx__ValueInfoProto *info, const char *place,
                             dlc_type *type, const Onnx__TensorShapeProto **shape)
{
    dlc_diag *diag = im->graph->diag;
    if (!info->type || info->type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET)
        return dlc_diag_fail(diag, DLC_INVALID, place, "has no type");
    if (info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return dlc_diag_fail(diag, DLC_UNSUPPORTED, place,
                             "is a sequence, map, optional or sparse tensor; only dense tensors "
                             "are supported");
    int32_t element = info->type->tensor_type->elem_type;
    type->dtype = dlc_dtype_of_onnx(element);
    if (type->dtype == DLC_NONE)
        return dlc_diag_fail(
            diag, element <= 0 || element > 28 ? DLC_INVALID : DLC_UNSUPPORTED, place,
            "has elements of type %" PRId32
            " (%s); supported: bool, integers, floats and strings",
            element, dlc_onnx_type_name(element));
    *shape = info->type->tensor_type->shape;
    if (!*shape)
        return dlc_diag_fail(diag, DLC_UNSUPPORTED, place,
                             "has no shape, so not even its rank is known");
    if ((*shape)->n_dim > DLC_MAX_RANK)
        return dlc_diag_fail(diag, DLC_UNSUPPORTED, place, "has rank %zu; at most %d is supported",
                             (*shape)->n_dim, DLC_MAX_RANK);
    type->rank = (uint8_t)(*shape)->n_dim;
    return DLC_OK;
}

/* Some exporters write 0 for a size that they do not know. */
static void note_empty(dlc_import *im, const dlc_type *type, const char *place)
{
    int64_t size;
    for (uint32_t i = 0; i < type->rank; i++) {
        if (!dlc_expr_is_int(im->pool, type->dims[i], &size) || size)
            continue;
        dlc_diag_fail(im->graph->diag, DLC_OK, place, "has dimension %" PRIu32 " of size 0, so it takes no elements; --shape gives it another size", i);
        return;
    }
}

static dlc_value *make_input(dlc_import *im, const Onnx__ValueInfoProto *info, const char *place)
{
    dlc_type type = {0};
    const Onnx__TensorShapeProto *shape = NULL;
    if (input_type(im, info, place, &type, &shape) != DLC_OK)
        return &im->poison;
    uint32_t first_new = im->graph->symbols.n;
    for (uint32_t i = 0; i < type.rank; i++) {
        int is_new;
        type.dims[i] = input_dim(im, info->name, shape->dim[i], type.rank, i, &is_new);
    }
    note_empty(im, &type, place);
    dlc_value *given = im_given_value(im, info->name, &type);
    if (given)
        return given;
    dlc_value *value = dlc_graph_input(im->graph, info->name, &type);
    for (uint32_t s = first_new; s < im->graph->symbols.n; s++)
        im->graph->symbols.data[s].value = value;
    return value;
}

/* --- lists: as many inputs NAME[0], NAME[1], … as the user says --- */

static const Onnx__TypeProto *inside(const Onnx__TypeProto *type)
{
    if (type && type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE)
        return type->sequence_type->elem_type;
    if (type && type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE)
        return type->optional_type->elem_type;
    return NULL;
}

/* The index of what was given for this name, or nshapes. */
static uint32_t given_shape(const dlc_import *im, const char *name)
{
    uint32_t k = 0;
    while (k < im->options->nshapes && strcmp(im->options->shapes[k].name, name) != 0)
        k++;
    return k;
}

/* How many: a length given for the name, else as many as there are shapes of items; -1: neither. */
static int64_t given_length(dlc_import *im, const char *name)
{
    uint32_t whole = given_shape(im, name), n = 0;
    if (whole < im->options->nshapes)
        return im->options->shapes[whole].rank == 1 ? im->options->shapes[whole].dims[0] : -1;
    while (given_shape(im, dlc_arena_printf(im->arena, "%s[%" PRIu32 "]", name, n)) <
           im->options->nshapes)
        n++;
    return n ? (int64_t)n : -1;
}

/* Item k, or an input that is a tensor: a shape that the user gives holds whether the type has another rank or leaves it open. */
static dlc_value *make_item(dlc_import *im, const Onnx__TypeProto *type, const char *name,
                            const char *place)
{
    Onnx__TypeProto__Tensor tensor = *type->tensor_type;
    Onnx__TypeProto whole = *type;
    Onnx__ValueInfoProto info = ONNX__VALUE_INFO_PROTO__INIT;
    Onnx__TensorShapeProto shape = ONNX__TENSOR_SHAPE_PROTO__INIT;
    Onnx__TensorShapeProto__Dimension none = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT,
                                      *dims[DLC_MAX_RANK];
    uint32_t given = given_shape(im, name);
    info.name = (char *)(uintptr_t)name;
    info.type = &whole;
    whole.tensor_type = &tensor;
    if (given < im->options->nshapes && im->options->shapes[given].rank <= DLC_MAX_RANK &&
        (!tensor.shape || tensor.shape->n_dim != im->options->shapes[given].rank)) {
        for (uint32_t d = 0; d < DLC_MAX_RANK; d++)
            dims[d] = &none;
        shape.dim = dims;
        shape.n_dim = im->options->shapes[given].rank;
        tensor.shape = &shape;
    }
    return make_input(im, &info, place);
}

static dlc_value *make_list(dlc_import *im, const Onnx__ValueInfoProto *info, const char *place)
{
    const Onnx__TypeProto *type = inside(info->type), *item = inside(type) ? inside(type) : type;
    int is_optional = info->type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
    int64_t n = given_length(im, info->name);
    if (!item || item->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || n < 0 || n > 65536) {
        dlc_diag_fail(im->graph->diag, DLC_UNSUPPORTED, place,
                      "is %s of tensors, as many as the model does not say; --shape '%s=2' says it, "
                      "--shape '%s[0]=4x5' the shape of the first",
                      is_optional ? "an optional" : "a sequence", info->name, info->name);
        return &im->poison;
    }
    dlc_value **items = dlc_new_array(im->arena, dlc_value *, (size_t)n + 1);
    for (uint32_t k = 0; k < n; k++) {
        const char *name = dlc_arena_printf(im->arena, "%s[%" PRIu32 "]", info->name, k);
        items[k] = make_item(im, item, name, place);
        if (items[k] == &im->poison)
            return &im->poison;
    }
    if (!is_optional || !n || item == type)
        return im_list_value(im, items, (uint32_t)n, is_optional);
    dlc_value *sequence = im_list_value(im, items, (uint32_t)n, 0);
    return im_list_value(im, &sequence, 1, 1);
}

/* What is given for NAME[k] is of the input NAME. */
static size_t name_length(const char *name)
{
    const char *bracket = strrchr(name, '[');
    return bracket && name[strlen(name) - 1] == ']' ? (size_t)(bracket - name) : strlen(name);
}

static int is_tensor(const Onnx__TypeProto *type)
{
    return type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
}

static int is_of_list(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_input; i++) {
        const char *input = graph->input[i]->name;
        size_t n = name_length(name);
        if (input && inside(graph->input[i]->type) &&
            (strcmp(input, name) == 0 || (strlen(input) == n && strncmp(input, name, n) == 0)))
            return 1;
    }
    return 0;
}

/* It holds, and is to blame if the model is none with it. */
static void note_rank(dlc_import *im, const char *input, uint32_t given, size_t declared)
{
    im->other_rank = dlc_arena_printf(im->arena, "a shape of rank %" PRIu32 " was given for input '%s', which the model declares with rank %zu",
                                      given, input, declared);
    dlc_diag_fail(im->graph->diag, DLC_OK, im->graph->file, "%s; the given one holds", im->other_rank);
}

static void check_given_shapes(dlc_import *im, const Onnx__GraphProto *graph)
{
    for (uint32_t k = 0; k < im->options->nshapes; k++) {
        const char *name = im->options->shapes[k].name;
        size_t i = 0;
        if (is_of_list(graph, name))
            continue;
        while (i < graph->n_input &&
               strcmp(graph->input[i]->name ? graph->input[i]->name : "", name) != 0)
            i++;
        const Onnx__TypeProto *type = i < graph->n_input ? graph->input[i]->type : NULL;
        size_t rank = type && type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE &&
                              type->tensor_type->shape
                          ? type->tensor_type->shape->n_dim
                          : im->options->shapes[k].rank;
        if (i == graph->n_input)
            dlc_diag_fail(im->graph->diag, DLC_USAGE, im->graph->file,
                          "a shape was given for '%s', which is no input", name);
        else if (rank != im->options->shapes[k].rank)
            note_rank(im, name, im->options->shapes[k].rank, rank);
        im->shapes_given = 1;
    }
}

/* --- declared types --- */

static int is_other_dtype(const Onnx__TypeProto__Tensor *declared, const dlc_type *type)
{
    return declared->elem_type && dlc_dtype_of_onnx(declared->elem_type) != type->dtype;
}

static int is_other_shape(const dlc_import *im, const Onnx__TypeProto__Tensor *declared,
                          const dlc_type *type)
{
    const Onnx__TensorShapeProto *shape = declared->shape;
    if (!shape)
        return 0;
    if (shape->n_dim != type->rank)
        return 1;
    for (uint32_t i = 0; i < type->rank && !im->shapes_given; i++) {
        int64_t inferred;
        if (is_stated(shape->dim[i]) &&
            dlc_expr_is_int(im->pool, type->dims[i], &inferred) &&
            inferred != shape->dim[i]->dim_value)
            return 1;
    }
    return 0;
}

static void print_declared(const Onnx__TypeProto__Tensor *declared, dlc_str *out)
{
    dlc_dtype dtype = dlc_dtype_of_onnx(declared->elem_type);
    dlc_str_add(out, dtype == DLC_NONE ? dlc_onnx_type_name(declared->elem_type)
                                                    : dlc_dtypes[dtype].text);
    for (size_t i = 0; declared->shape && i < declared->shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = declared->shape->dim[i];
        dlc_str_add(out, i ? "," : "[");
        if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            dlc_str_printf(out, "%" PRId64, dim->dim_value);
        else
            dlc_str_add(out, dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM
                                 ? dim->dim_param
                                 : "?");
    }
    if (declared->shape && declared->shape->n_dim)
        dlc_str_add(out, "]");
}

/* What an initializer holds is known, so a declaration that says otherwise is no hint. */
static void check_initializer(dlc_import *im, const Onnx__ValueInfoProto *info, const dlc_value *value)
{
    const Onnx__TypeProto__Tensor *declared =
        info->type && info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ? info->type->tensor_type : NULL;
    if (!declared || value == &im->poison ||
        (!is_other_dtype(declared, &value->type) && !is_other_shape(im, declared, &value->type)))
        return;
    dlc_str is = {0}, was = {0};
    dlc_type_print(im->graph, &value->type, &is);
    print_declared(declared, &was);
    dlc_diag_fail(im->graph->diag, DLC_INVALID, PLACE(im, "initializer '%s'", im->graph->file, info->name),
                  "is %s, but the model declares %s", dlc_str_text(&is), dlc_str_text(&was));
    dlc_str_deinit(&is);
    dlc_str_deinit(&was);
}

/* Up to IR 3 every initializer is listed as an input too; later it is a default that a caller may
 * replace, which nobody can here. */
static int is_initializer(dlc_import *im, const dlc_scope *scope, const Onnx__ValueInfoProto *info,
                          const char *place)
{
    void **item = dlc_table_find(&scope->values, info->name);
    const dlc_value *value = item ? *item : NULL;
    if (!value || (value != &im->poison && !value->data))
        return 0;
    check_initializer(im, info, value);
    if (im->proto->ir_version >= 4)
        dlc_diag_fail(im->graph->diag, DLC_OK, place, "its initializer is taken as a constant");
    return 1;
}

static void note_results(dlc_import *im, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_output; i++) {
        const Onnx__ValueInfoProto *info = graph->output[i];
        int is_new;
        if (!info->name || dlc_table_find(&im->declared, info->name))
            continue;
        void **item = dlc_table_insert(&im->results, im->scopes, info->name, &is_new);
        if (is_new)
            *item = (void *)(uintptr_t)info;
    }
}

void im_read_inputs(dlc_import *im, dlc_scope *scope)
{
    const Onnx__GraphProto *graph = im->proto->graph;
    check_given_shapes(im, graph);
    im_check_given_values(im, graph);
    for (size_t i = 0; im->shapes_given && i < graph->n_input; i++)
        note_sizes(im, graph->input[i]);
    for (size_t i = 0; i < graph->n_input; i++) {
        const Onnx__ValueInfoProto *info = graph->input[i];
        const char *place = PLACE(im, "input '%s'", im->graph->file, info->name ? info->name : "");
        if (!info->name || !*info->name) {
            dlc_diag_fail(im->graph->diag, DLC_INVALID, place, "input %zu has no name", i);
            continue;
        }
        if (!is_initializer(im, scope, info, place))
            (void)im_bind(im, scope, info->name,
                          inside(info->type)     ? make_list(im, info, place)
                          : is_tensor(info->type) ? make_item(im, info->type, info->name, place)
                                                  : make_input(im, info, place));
    }
    for (size_t i = 0; i < graph->n_value_info; i++) {
        const Onnx__ValueInfoProto *info = graph->value_info[i];
        int is_new;
        if (!info->name)
            continue;
        *dlc_table_insert(&im->declared, im->scopes, info->name, &is_new) = (void *)(uintptr_t)info;
        void **item = dlc_table_find(&scope->values, info->name);
        if (item && *item && ((const dlc_value *)*item)->data)
            check_initializer(im, info, *item);
    }
    note_results(im, graph);
}

/* --- declared types, of values that nodes make --- */

/* A shape that contradicts is a hint that was wrong, told once; a type that does is a fault. */
void im_check_declared(dlc_import *im, const Onnx__ValueInfoProto *info, const dlc_value *value)
{
    if (!info->type || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        im_list_of(im, value))
        return;
    const Onnx__TypeProto__Tensor *declared = info->type->tensor_type;
    int is_wrong = is_other_dtype(declared, &value->type);
    if (!is_wrong && (im->has_contradiction || !is_other_shape(im, declared, &value->type)))
        return;
    im->has_contradiction |= !is_wrong;
    dlc_status status = is_wrong ? DLC_INVALID : DLC_OK;
    const char *verdict = is_wrong ? "" : "; declared shapes are hints, what follows is computed";
    dlc_str is = {0}, was = {0};
    dlc_type_print(im->graph, &value->type, &is);
    print_declared(declared, &was);
    if (im->origin)
        im_fail(im, status, "'%s' is %s, but the model declares %s%s", info->name,
                dlc_str_text(&is), dlc_str_text(&was), verdict);
    else
        dlc_diag_fail(im->graph->diag, status,
                      PLACE(im, "output '%s'", im->graph->file, info->name),
                      "is %s, but the model declares %s%s", dlc_str_text(&is), dlc_str_text(&was),
                      verdict);
    dlc_str_deinit(&is);
    dlc_str_deinit(&was);
}

/* A list as the outputs NAME[0], NAME[1], …; an optional's sequence as its own. */
static uint32_t write_output(dlc_import *im, const char *name, dlc_value *value)
{
    const im_list *list = im_list_of(im, value);
    if (!list) {
        dlc_graph_output(im->graph, name, value);
        return 1;
    }
    if (list->is_optional && list->n && im_list_of(im, list->items[0]))
        list = im_list_of(im, list->items[0]);
    if (list->rows)
        dlc_diag_fail(im->graph->diag, DLC_UNSUPPORTED, PLACE(im, "output '%s'", im->graph->file, name),
                      "is a sequence whose length only the run knows; one of known length, or a tensor, is supported");
    for (uint32_t k = 0; k < list->n; k++) {
        if (list->items[k] != &im->poison && !im_list_of(im, list->items[k]))
            dlc_graph_output(im->graph, dlc_arena_printf(im->arena, "%s[%" PRIu32 "]", name, k),
                             list->items[k]);
    }
    return list->n;
}

void im_write_outputs(dlc_import *im, dlc_scope *scope)
{
    size_t nwanted = 0;
    const Onnx__GraphProto *graph = im->proto->graph;
    dlc_table listed = {0};
    int is_new;
    im->origin = NULL;
    if (!graph->n_output)
        dlc_diag_fail(im->graph->diag, DLC_INVALID, im->graph->file, "the graph has no output");
    for (size_t i = 0; i < graph->n_output; i++) {
        const Onnx__ValueInfoProto *info = graph->output[i];
        const char *name = info->name ? info->name : "";
        void **item = dlc_table_find(&scope->values, name);
        if (!item) {
            dlc_diag_fail(im->graph->diag, DLC_INVALID,
                          PLACE(im, "output '%s'", im->graph->file, name),
                          "is defined by no node, input or initializer");
            continue;
        }
        if (*item == &im->poison)
            continue;
        im_check_declared(im, info, *item);
        (void)dlc_table_insert(&listed, im->arena, name, &is_new);
        if (!is_new)
            dlc_diag_fail(im->graph->diag, DLC_INVALID,
                          PLACE(im, "output '%s'", im->graph->file, name), "is listed twice");
        nwanted += write_output(im, name, *item);
    }
    if (im->graph->diag->status == DLC_OK && im->graph->outputs.n != nwanted)
        dlc_diag_fail(im->graph->diag, DLC_INTERNAL, im->graph->file,
                      "an output was not made, and no node says why; this is a defect of dlc");
}
