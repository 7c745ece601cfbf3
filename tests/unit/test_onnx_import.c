/* Importing: types and symbols, refusals by name, all problems at once, functions, branches. */
#include "tests/unit/onnx_import.h"
#include "tests/unit/suite.h"

/* --- one node: what comes out, or the complaint --- */

/* clang-format off */
static const struct {
    const char *op, *inputs; /* x: f32, y: f32, i: i64 data of the run, k: i64 constant */
    const char *x, *y, *i;   /* their shapes; NULL: there is none */
    int64_t k[4];
    int nk, opset;
    const char *attribute;
    int64_t value;
    const char *result, *refusal; /* either one */
} nodes[] = {
    {"Add", "x y", "2,3,4", "4", NULL, {0}, 0, 17, NULL, 0, "f32[2,3,4]", NULL},
    {"Add", "x y", "batch,3", "batch,1", NULL, {0}, 0, 17, NULL, 0, "f32[batch,3]", NULL},
    {"Add", "x y", "2,3", "2,4", NULL, {0}, 0, 17, NULL, 0, NULL, "3"},
    {"MatMul", "x y", "n,3", "3,n", NULL, {0}, 0, 17, NULL, 0, "f32[n,n]", NULL},
    {"MatMul", "x y", "3", "3,4", NULL, {0}, 0, 17, NULL, 0, "f32[4]", NULL},
    {"Softmax", "x", "2,3,4", NULL, NULL, {0}, 0, 11, "axis", 1, "f32[2,3,4]", NULL},
    {"Softmax", "x", "2,3,4", NULL, NULL, {0}, 0, 13, "axis", 3, NULL, "axis 3 is outside of [-3, 2]"},
    {"Reshape", "x k", "n,6,4", NULL, NULL, {0, -1}, 2, 17, NULL, 0, "f32[n,24]", NULL},
    {"Reshape", "x k", "n,6,4", NULL, NULL, {-1, 8}, 2, 17, NULL, 0, "f32[n * 3,8]", NULL},
    {"Reshape", "x k", "2,3", NULL, NULL, {4, -1}, 2, 17, NULL, 0, NULL, "elements"},
    {"Reshape", "x k", "2,3", NULL, NULL, {-1, -1}, 2, 17, NULL, 0, NULL, "shape[1] is a second -1"},
    {"Reshape", "x k", "2,3", NULL, NULL, {6, 1, 0}, 3, 17, NULL, 0, NULL, "no dimension 2 to copy"},
    {"Expand", "x k", "3,1", NULL, NULL, {2, 1, 6}, 3, 17, NULL, 0, "f32[2,3,6]", NULL},
    {"Expand", "x i", "3,1", NULL, "2", {0}, 0, 17, NULL, 0, "f32[3,i.1]", NULL},
    {"Tile", "x i", "3,1", NULL, "2", {0}, 0, 17, NULL, 0, "f32[i.0 * 3,i.1]", NULL},
    {"ConstantOfShape", "i", NULL, NULL, "2", {0}, 0, 17, NULL, 0, "f32[i.0,i.1]", NULL},
    {"Transpose", "x", "2,n,4", NULL, NULL, {0}, 0, 17, NULL, 0, "f32[4,n,2]", NULL},
    {"Flatten", "x", "2,3,4", NULL, NULL, {0}, 0, 17, "axis", -1, "f32[6,4]", NULL},
    {"Flatten", "x", "2,3,4", NULL, NULL, {0}, 0, 17, "axis", 4, NULL, "axis 4 is outside of [-3, 3]"},
    {"Unsqueeze", "x k", "2,3", NULL, NULL, {0, -1}, 2, 17, NULL, 0, "f32[1,2,3,1]", NULL},
    {"Squeeze", "x", "1,3,1", NULL, NULL, {0}, 0, 17, NULL, 0, "f32[3]", NULL},
    {"Squeeze", "x", "n,3,1", NULL, NULL, {0}, 0, 17, NULL, 0, "f32[n,3]", NULL},
    {"ReduceSum", "x k", "2,3,4", NULL, NULL, {-1}, 1, 13, "keepdims", 0, "f32[2,3]", NULL},
    {"ReduceSum", "x i", "2,2,2", NULL, "1", {0}, 0, 13, NULL, 0, "f32[select(select(i.0 < 0, i.0 + 3, i.0) == 0, 1, 2),"
     "select(select(i.0 < 0, i.0 + 3, i.0) == 1, 1, 2),select(select(i.0 < 0, i.0 + 3, i.0) == 2, 1, 2)]", NULL},
    {"ReduceMean", "x k", "2,3,4", NULL, NULL, {-1}, 1, 13, NULL, 0, NULL, "axes are an attribute in opset 13"},
    {"TopK", "x i", "2,9", NULL, "1", {0}, 0, 17, NULL, 0, "f32[2,i.0]", NULL},
    {"Shape", "x", "n,3", NULL, NULL, {0}, 0, 17, NULL, 0, "i64[2]", NULL},
    {"DepthToSpace", "x", "1,8,2,3", NULL, NULL, {0}, 0, 17, "blocksize", 2, "f32[1,2,4,6]", NULL},
    {"DepthToSpace", "x", "1,8,2,3", NULL, NULL, {0}, 0, 17, "blocksize", (int64_t)1 << 62, NULL, "blocksize is 4611686018427387904"},
    {"Conv", "x y", "1,4,9,9", "8,4,3,3", NULL, {0}, 0, 17, NULL, 0, "f32[1,8,7,7]", NULL},
    {"Conv", "x y", "1,4,9,9", "8,4,3,3", NULL, {0}, 0, 17, "group", 0, NULL, "group = 0 does not divide the 4 input channels"},
    {"SpaceToDepth", "x", "1,2,4,6", NULL, NULL, {0}, 0, 13, NULL, 0, NULL, "blocksize is 0; 1 to 32767 are possible"},
    {"Pow", "x y", "2", "3,2", NULL, {0}, 0, 13, NULL, 0, "f32[3,2]", NULL},
    {"PRelu", "x y", "2", "3,2", NULL, {0}, 0, 13, NULL, 0, NULL, "may only be broadcast to it"},
    {"Relu", "x", "2", NULL, NULL, {0}, 0, 17, "alpha", 1, NULL, "attribute 'alpha' is unknown for this operator and opset"},
    {"Relu", "x y", "2", "2", NULL, {0}, 0, 17, NULL, 0, NULL, "has 2 inputs; at most 1 are possible"},
    {"Relu", "z", "2", NULL, NULL, {0}, 0, 17, NULL, 0, NULL, "input 0 'z' is defined by no earlier node"},
    {"Clip", "x - y", "2", "", NULL, {0}, 0, 17, NULL, 0, "f32[2]", NULL},
    {"Gelu", "x", "2", NULL, NULL, {0}, 0, 17, NULL, 0, NULL, "operator 'Gelu' is supported from opset 20 to 28, not 17"},
    {"FooBar", "x", "2", NULL, NULL, {0}, 0, 17, NULL, 0, NULL, "operator 'FooBar' is not supported"},
    {"Softmax", "x", "2,3", NULL, NULL, {0}, 0, 1, NULL, 0, "f32[2,3]", NULL},
    {"Softmax", "x", "2,3", NULL, NULL, {0}, 0, 29, NULL, 0, NULL, "uses opset 29; supported: 1 to 28"},
    {"Add", "x y", "2,3,4", "3", NULL, {0}, 0, 6, "broadcast", 1, NULL, "4 and 3 differ"},
    {"Add", "x y", "2,3,4", "4", NULL, {0}, 0, 6, "broadcast", 1, "f32[2,3,4]", NULL},
    {"Add", "x y", "2,3,4", "4", NULL, {0}, 0, 6, NULL, 0, NULL, "attribute 'broadcast' makes them meet"},
    {"Cos", "x", "2", NULL, NULL, {0}, 0, 6, NULL, 0, NULL, "supported from opset 7 to 28, not 6"},
};
/* clang-format on */

START_TEST(one_node)
{
    pb graph = {0}, node = node_of(nodes[_i].op, nodes[_i].inputs, "o");
    if (nodes[_i].attribute)
        add_int(&node, nodes[_i].attribute, nodes[_i].value);
    add_part(&graph, NODE, node);
    if (nodes[_i].x)
        add_part(&graph, INPUT, value_info("x", FLOAT, nodes[_i].x));
    if (nodes[_i].y)
        add_part(&graph, INPUT, value_info("y", FLOAT, nodes[_i].y));
    if (nodes[_i].i)
        add_part(&graph, INPUT, value_info("i", INT64, nodes[_i].i));
    int64_t nk = nodes[_i].nk;
    if (nk)
        add_part(&graph, INITIALIZER, tensor_of("k", INT64, &nk, 1, nodes[_i].k, (size_t)nk * 8));
    pb output = {0};
    pb_text(&output, 1, "o");
    add_part(&graph, OUTPUT, output);
import i = read_graph(& graph, nodes[_i].opset);
    if (nodes[_i].result)
        expect_output(&i, nodes[_i].result);
    else
        expect_refusal(&i, i.status, nodes[_i].refusal);
}
END_TEST

/* --- one node of more inputs, all f32 and graph inputs, and of attributes of other kinds --- */

static const struct {
    const char *op, *inputs, *shapes; /* of those that are there, separated by ';' */
    int opset;
    const char *attribute, *text; /* of kind STRING, or NULL */
    const char *ints_name;        /* of kind INTS, or NULL */
    int64_t ints[4];
    uint32_t nints;
    const char *result, *refusal; /* either one */
} wider[] = {
    {"LSTM", "x w r - - h c", "5,n,3;1,16,3;1,16,4;1,n,4;1,n,4", 17, NULL, NULL, NULL, {0}, 0,
     "f32[5,1,n,4]", NULL},
    {"LSTM", "x w r - - h", "5,2,3;1,16,3;1,16,4;1,1,4", 17, NULL, NULL, NULL, {0}, 0, NULL,
     "the batch of an initial state: 1 and 2 differ"},
    {"LSTM", "x w r - - h c", "5,2,3;1,16,3;1,16,4;1,2,4;1,2,1", 17, NULL, NULL, NULL, {0}, 0, NULL,
     "the hidden size of an initial state: 1 and 4 differ"},
    {"LSTM", "x w r - - - - p", "5,2,3;2,16,3;2,16,4;1,12", 17, "direction", "bidirectional", NULL, {0}, 0, NULL,
     "directions of the peepholes: 1 and 2 differ"},
    {"LSTM", "x w r - - h", "5,2,3;2,16,3;2,16,4;1,2,4", 17, "direction", "bidirectional", NULL,
     {0}, 0, NULL, "directions of an initial state: 1 and 2 differ"},
    {"ConvTranspose", "x w", "1,1,h,w;1,1,1,1", 17, "auto_pad", "SAME_UPPER", "strides", {3, 3}, 2,
     "f32[1,1,h * 3,w * 3]", NULL},
    {"ConvTranspose", "x w", "1,1,h,w;1,1,3,3", 17, NULL, NULL, "output_shape", {8, 9}, 2,
     "f32[1,1,8,9]", NULL},
    {"MaxPool", "x", "1,1,5,5", 17, "auto_pad", "VALID", "kernel_shape", {2, 2}, 2,
     "f32[1,1,4,4]", NULL},
    {"Attention", "q q q m", "1,2,4,8;4,4", 24, NULL, NULL, NULL, {0}, 0, "f32[1,2,4,8]", NULL},
    {"Attention", "q q q m", "1,2,4,8;4,6", 24, NULL, NULL, NULL, {0}, 0, NULL,
     "the mask is for 2 keys more than there are"},
    {"Attention", "q q q m", "1,2,4,8;5,1,1,4", 24, NULL, NULL, NULL, {0}, 0, NULL,
     "would make f32[5,2,4,4] of f32[1,2,4,4]"},
    {"RotaryEmbedding", "x c s", "1,4,8;1,4,4;1,4,4", 24, NULL, NULL, NULL, {0}, 0, NULL,
     "num_heads is 0"},
    {"RotaryEmbedding", "x c s", "1,2,4,8;3,4,4;3,4,4", 24, NULL, NULL, NULL, {0}, 0, NULL,
     "may only be broadcast to it"},
    {"Softmax", "x", "", 17, NULL, NULL, NULL, {0}, 0, NULL, "axis -1 of a scalar"},
};

/* The inputs' names are single letters; a shape belongs to each when it is first met. */
static void add_inputs(pb *graph, const char *inputs, const char *shapes)
{
    for (const char *at = inputs; *at; at++) {
        char name[2] = {*at, 0}, shape[32];
        if (*at == ' ' || *at == '-' || memchr(inputs, *at, (size_t)(at - inputs)))
            continue;
        size_t n = strcspn(shapes, ";");
        snprintf(shape, sizeof shape, "%.*s", (int)n, shapes);
        add_part(graph, INPUT, value_info(name, FLOAT, shape));
        shapes += n + (shapes[n] == ';');
    }
}

START_TEST(one_wider_node)
{
    pb graph = {0}, node = node_of(wider[_i].op, wider[_i].inputs, "o"), output = {0};
    if (wider[_i].attribute)
        add_text(&node, wider[_i].attribute, wider[_i].text);
    if (wider[_i].ints_name)
        add_ints(&node, wider[_i].ints_name, wider[_i].ints, wider[_i].nints);
    if (!strcmp(wider[_i].op, "MaxPool")) /* overruled by auto_pad */
        add_ints(&node, "pads", (const int64_t[]){1, 1, 1, 1}, 4);
    add_part(&graph, NODE, node);
    add_inputs(&graph, wider[_i].inputs, wider[_i].shapes);
    pb_text(&output, 1, "o");
    add_part(&graph, OUTPUT, output);
    import i = read_graph(&graph, wider[_i].opset);
    if (wider[_i].result)
        expect_output(&i, wider[_i].result);
    else
        expect_refusal(&i, DLC_INVALID, wider[_i].refusal);
}
END_TEST

/* --- the whole model --- */

START_TEST(every_problem_is_reported)
{
    pb graph = {0};
    add_part(&graph, NODE, node_of("FooBar", "x", "a"));
    add_part(&graph, NODE, node_of("FooBar", "x", "b"));
    add_part(&graph, NODE, node_of("Relu", "b", "c")); /* silent: its input failed */
    add_part(&graph, NODE, node_of("Relu", "nowhere", "d"));
    add_part(&graph, INPUT, value_info("x", FLOAT, "2"));
    add_part(&graph, OUTPUT, value_info("c", FLOAT, "2"));
import i = read_graph(& graph, 17);
    ck_assert_int_eq(i.status, DLC_UNSUPPORTED);
    ck_assert_uint_eq(i.diag.nmessages, 2);
    ck_assert_str_eq(i.diag.messages[0].text, "operator 'FooBar' is not supported (2 times)");
    ck_assert_ptr_nonnull(strstr(i.diag.messages[0].place, "node 'a' (FooBar, opset 17)"));
    ck_assert_ptr_nonnull(strstr(i.diag.messages[0].detail, "node 'b'"));
    ck_assert_ptr_nonnull(strstr(i.diag.messages[1].text, "'nowhere'"));
    done(&i);
}
END_TEST

START_TEST(declared_types_must_hold)
{
    pb graph = {0};
    add_part(&graph, NODE, node_of("Relu", "x", "y"));
    add_part(&graph, INPUT, value_info("x", FLOAT, "2,3"));
    add_part(&graph, OUTPUT, value_info("y", INT64, "2,3"));
import i = read_graph(& graph, 17);
    expect_refusal(&i, DLC_INVALID, "is f32[2,3], but the model declares i64[2,3]");
}
END_TEST

START_TEST(declared_shapes_are_hints)
{
    pb graph = {0};
    add_part(&graph, NODE, node_of("Relu", "x", "y"));
    add_part(&graph, INPUT, value_info("x", FLOAT, "2,3"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "2,4"));
    import i = read_graph(&graph, 17);
    ck_assert_uint_eq(i.diag.nmessages, 1);
    ck_assert_ptr_nonnull(
        strstr(i.diag.messages[0].text, "is f32[2,3], but the model declares f32[2,4]"));
    expect_output(&i, "f32[2,3]");
}
END_TEST

START_TEST(unknown_dimensions_are_symbols)
{
    pb graph = {0};
    add_part(&graph, NODE, node_of("Relu", "x", "y"));
    add_part(&graph, INPUT, value_info("x", FLOAT, "-1,3"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "-1,3"));
    import i = read_graph(&graph, 17);
    expect_output(&i, "f32[x_d0,3]");
}
END_TEST

START_TEST(unknown_dimensions_have_no_names)
{
    pb graph = {0};
    add_part(&graph, NODE, node_of("Relu", "x", "y"));
    add_part(&graph, INPUT, value_info("x", FLOAT, "?,?,None,n,n"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "?,?,None,n,n"));
    import i = read_graph(&graph, 17);
    expect_output(&i, "f32[x_d0,x_d1,x_d2,n,n]");
}
END_TEST

START_TEST(domains_may_be_imported_twice)
{
    pb graph = {0}, opset = {0};
    add_part(&graph, NODE, node_of("Relu", "x", "y"));
    add_part(&graph, INPUT, value_info("x", FLOAT, "2"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "2"));
    pb model = model_of(&graph, 17);
    pb_text(&opset, 1, "ai.onnx");
    pb_int(&opset, 2, 15);
    add_part(&model, 8, opset);
    import i = read_model(&model, NULL);
    ck_assert_uint_eq(i.diag.nmessages, 1);
    ck_assert_ptr_nonnull(strstr(i.diag.messages[0].text, "version 15, is taken"));
    expect_output(&i, "f32[2]");
}
END_TEST

static void given_value(const char *text, const char *result, const char *refusal)
{
    pb graph = {0};
    dlc_onnx_options options = {.nvalues = 1};
    options.values = (void *)malloc(sizeof *options.values);
    options.values[0].name = "s";
    options.values[0].text = text;
    add_part(&graph, NODE, node_of("Expand", "x s", "y"));
    add_part(&graph, INPUT, value_info("x", FLOAT, "1"));
    add_part(&graph, INPUT, value_info("s", INT64, "2"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "a,b"));
    pb model = model_of(&graph, 17);
    import i = read_model(&model, &options);
    if (refusal)
        expect_refusal(&i, DLC_USAGE, refusal);
    else
        expect_output(&i, result);
    free(options.values);
}

START_TEST(given_values_are_constants)
{
    given_value("3,4", "f32[3,4]", NULL);
    given_value("3", NULL, "the value '3' was given for input 's', where 2 of i64 are wanted");
    given_value("3,x", NULL, "where 2 of i64 are wanted");
}
END_TEST

START_TEST(names_are_defined_once)
{
    pb graph = {0};
    add_part(&graph, NODE, node_of("Relu", "x", "y"));
    add_part(&graph, NODE, node_of("Neg", "x", "y"));
    add_part(&graph, INPUT, value_info("x", FLOAT, "2"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "2"));
import i = read_graph(& graph, 17);
    expect_refusal(&i, DLC_INVALID, "value 'y' is defined a second time");
}
END_TEST

START_TEST(inputs_and_outputs_have_names_of_their_own)
{
    pb graph = {0};
    add_part(&graph, NODE, node_of("Relu", "x", "y"));
    add_part(&graph, INPUT, value_info("x", FLOAT, "2"));
    add_part(&graph, INPUT, value_info("x", FLOAT, "3"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "2"));
    import i = read_graph(&graph, 17);
    expect_refusal(&i, DLC_INVALID, "value 'x' is defined a second time");
    graph = (pb){0};
    add_part(&graph, NODE, node_of("Relu", "x", "y"));
    add_part(&graph, INPUT, value_info("x", FLOAT, "2"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "2"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "2"));
    i = read_graph(&graph, 17);
    expect_refusal(&i, DLC_INVALID, "is listed twice");
}
END_TEST

/* Each of these shapes says with data of the run which of its sizes is the -1. */
START_TEST(sizes_of_the_run_do_not_pile_up)
{
    enum { STEPS = 20 };
    pb graph = {0}, output = {0};
    for (int k = 0; k < STEPS; k++) {
        char inputs[32], result[16], shape[16];
        snprintf(shape, sizeof shape, "s%d", k);
        snprintf(result, sizeof result, "v%d", k);
        snprintf(inputs, sizeof inputs, "v%d %s", k - 1, shape);
        add_part(&graph, NODE, node_of("Reshape", inputs, result));
        add_part(&graph, INPUT, value_info(shape, INT64, "3"));
    }
    add_part(&graph, INPUT, value_info("v-1", FLOAT, "2,3"));
    pb_text(&output, 1, "v19");
    add_part(&graph, OUTPUT, output);
    import i = read_graph(&graph, 17);
    ck_assert_int_eq(i.status, DLC_OK);
    dlc_str text = {0};
    dlc_type_print(i.graph, &i.graph->outputs.data[0].value->type, &text);
    ck_assert_uint_lt(text.n, 4096);
    dlc_str_deinit(&text);
    done(&i);
}
END_TEST

START_TEST(given_shapes_replace_symbols)
{
    pb model = small_model();
    const int64_t dims[2] = {5, -1};
    dlc_onnx_options options = {.nshapes = 1};
    options.shapes = (void *)malloc(sizeof *options.shapes);
    options.shapes[0].name = "x";
    options.shapes[0].dims = dims;
    options.shapes[0].rank = 2;
import i = read_model(& model, & options);
    expect_output(&i, "f32[5,2]");
    options.shapes[0].name = "nothing";
    model = small_model();
    i = read_model(&model, &options);
    expect_refusal(&i, DLC_USAGE, "a shape was given for 'nothing', which is no input");
    free(options.shapes);
}
END_TEST

START_TEST(weights_stay_in_the_file)
{
    pb model = small_model();
import i = read_model(& model, NULL);
    ck_assert_int_eq(i.status, DLC_OK);
    const uint8_t *weight = i.graph->first->outputs[0]->data->bytes;
    ck_assert(weight >= i.bytes.data && weight < i.bytes.data + i.bytes.n);
    done(&i);
}
END_TEST

/* --- functions and branches --- */

START_TEST(functions_are_inlined)
{
    pb inner_body[1] = {node_of("Relu", "a", "b")};
    pb outer_body[2] = {call_of("inner", "p", "q"), call_of("inner", "q", "r")};
    pb functions[2] = {function_of("outer", "p", "r", outer_body, 2),
                       function_of("inner", "a", "b", inner_body, 1)};
    pb model = calling_model("outer", functions, 2);
import i = read_model(& model, NULL);
    ck_assert_int_eq(i.status, DLC_OK);
    ck_assert_uint_eq(i.graph->nnodes, 2);
    done(&i);
}
END_TEST

/* Twelve functions that call each other ten times: 10^12 nodes, counted and refused at once. */
START_TEST(function_bombs_are_counted)
{
    pb functions[12];
    for (int f = 0; f < 12; f++) {
        pb body[10];
        char callee[16], from[16], to[16];
        snprintf(callee, sizeof callee, "f%d", f + 1);
        for (int k = 0; k < 10; k++) {
            snprintf(from, sizeof from, "v%d", k);
            snprintf(to, sizeof to, "v%d", k + 1);
            body[k] = f == 11 ? node_of("Relu", from, to) : call_of(callee, from, to);
        }
        char name[16];
        snprintf(name, sizeof name, "f%d", f);
        functions[f] = function_of(name, "v0", "v10", body, 10);
    }
    pb model = calling_model("f0", functions, 12);
import i = read_model(& model, NULL);
    expect_refusal(&i, DLC_LIMIT, "nodes with its functions inlined; the limit is 10000000");
}
END_TEST

START_TEST(recursion_is_refused)
{
    pb body[1] = {call_of("f", "a", "b")};
    pb functions[1] = {function_of("f", "a", "b", body, 1)};
    pb model = calling_model("f", functions, 1);
import i = read_model(& model, NULL);
    expect_refusal(&i, DLC_INVALID, "function 'f' calls itself");
}
END_TEST

/* A result may be an input; where the call leaves that out, somebody must say so. */
START_TEST(absent_inputs_are_no_results)
{
    pb body[1] = {node_of("Relu", "a", "c")};
    pb functions[1] = {function_of("f", "a b", "b", body, 1)};
    pb model = calling_model("f", functions, 1);
    import i = read_model(&model, NULL);
    expect_refusal(&i, DLC_INVALID, "result 0 'b' of its body is an input that the call leaves out");
}
END_TEST

/* Tools append nodes behind those that read them; others put up with it. A circle has no order. */
START_TEST(nodes_come_in_any_order)
{
    pb graph = {0}, branch = {0}, node = node_of("If", "c", "y");
    add_part(&branch, NODE, node_of("Add", "late s", "r"));
    add_part(&branch, NODE, node_of("Relu", "x", "s"));
    add_part(&branch, OUTPUT, value_info("r", FLOAT, "2"));
    pb other = branch_of("Neg");
    add_graph(&node, "then_branch", &branch);
    add_graph(&node, "else_branch", &other);
    add_part(&graph, NODE, node_of("Exp", "y", "z"));
    add_part(&graph, NODE, node);
    add_part(&graph, NODE, node_of("Abs", "x", "late"));
    add_part(&graph, INPUT, value_info("c", BOOL, ""));
    add_part(&graph, INPUT, value_info("x", FLOAT, "2"));
    add_part(&graph, OUTPUT, value_info("z", FLOAT, "2"));
    import i = read_graph(&graph, 17);
    ck_assert_int_eq(i.status, DLC_OK);
    ck_assert_int_eq(i.graph->last->op, DLC_OP_EXP);
    done(&i);
    pb circle = {0};
    add_part(&circle, NODE, node_of("Add", "x b", "a"));
    add_part(&circle, NODE, node_of("Exp", "a", "b"));
    add_part(&circle, INPUT, value_info("x", FLOAT, "2"));
    add_part(&circle, OUTPUT, value_info("b", FLOAT, "2"));
    i = read_graph(&circle, 17);
    expect_refusal(&i, DLC_INVALID, "'b' is defined by no earlier node");
}
END_TEST

/* A Loop that runs Relu over its states; states: names of its inputs behind trip count and
 * condition. */
static import read_loop(int64_t trips, const char *inputs, int with_unknown)
{
    pb graph = {0}, body = {0}, node = node_of("Loop", inputs, "y z");
    add_part(&body, NODE, node_of("Identity", "c", "d"));
    add_part(&body, NODE, node_of("Relu", "s", "t"));
    add_part(&body, INPUT, value_info("i", INT64, ""));
    add_part(&body, INPUT, value_info("c", BOOL, ""));
    add_part(&body, INPUT, value_info("s", FLOAT, "2"));
    add_part(&body, INPUT, value_info("u", FLOAT, "2"));
    add_part(&body, OUTPUT, value_info("d", BOOL, ""));
    add_part(&body, OUTPUT, value_info("t", FLOAT, "2"));
    add_part(&body, OUTPUT, value_info("u", FLOAT, "2"));
    add_graph(&node, "body", &body);
    if (with_unknown)
        add_int(&node, "foo", 1);
    add_part(&graph, NODE, node);
    add_part(&graph, INITIALIZER, tensor_of("m", INT64, NULL, 0, &trips, sizeof trips));
    add_part(&graph, INPUT, value_info("x", FLOAT, "2"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "2"));
    add_part(&graph, OUTPUT, value_info("z", FLOAT, "2"));
    return read_graph(&graph, 17);
}

START_TEST(loops_are_unrolled_or_regions)
{
    import i = read_loop(3, "m - x x", 0);
    ck_assert_int_eq(i.status, DLC_OK);
    ck_assert_int_eq(i.graph->last->op, DLC_OP_RELU);
    ck_assert_ptr_eq(i.graph->outputs.data[1].value, i.graph->inputs.data[0]);
    done(&i);
    i = read_loop(INT64_MAX, "m - x x", 0);
    ck_assert_int_eq(i.status, DLC_OK);
    ck_assert_int_eq(i.graph->last->op, DLC_OP_FINAL);
    ck_assert_ptr_null(i.graph->region);
    done(&i);
    i = read_loop(3, "m - - x", 0);
    expect_refusal(&i, DLC_INVALID, "input 2, a state of the loop, is absent");
    i = read_loop(3, "m - x x", 1);
    expect_refusal(&i, DLC_UNSUPPORTED, "attribute 'foo' is unknown");
}
END_TEST

static import read_if(int is_constant)
{
    static const uint8_t yes = 1;
    pb graph = {0}, node = node_of("If", "c", "y"), then_branch = branch_of("Relu"),
       else_branch = branch_of("Neg");
    add_graph(&node, "then_branch", &then_branch);
    add_graph(&node, "else_branch", &else_branch);
    add_part(&graph, NODE, node);
    if (is_constant)
        add_part(&graph, INITIALIZER, tensor_of("c", BOOL, NULL, 0, &yes, 1));
    else
        add_part(&graph, INPUT, value_info("c", BOOL, ""));
    add_part(&graph, INPUT, value_info("x", FLOAT, "2"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "2"));
    return read_graph(&graph, 17);
}

START_TEST(branches_are_taken_or_regions)
{
    import i = read_if(1);
    ck_assert_int_eq(i.status, DLC_OK);
    ck_assert_int_eq(i.graph->last->op, DLC_OP_RELU);
    done(&i);
    i = read_if(0);
    ck_assert_int_eq(i.status, DLC_OK);
    ck_assert_int_eq(i.graph->last->op, DLC_OP_EITHER);
    ck_assert_ptr_null(i.graph->region);
    done(&i);
}
END_TEST

/* --- the table --- */

static void check_order(const char *domain, int first, int last)
{
    size_t n;
    const dlc_onnx_row *rows = im_rows(domain, &n);
    ck_assert_uint_gt(n, 0);
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_ge(rows[i].since, first);
        ck_assert_int_le(rows[i].since, rows[i].until);
        ck_assert_int_le(rows[i].until, last);
        if (!i)
            continue;
        int order = strcmp(rows[i - 1].name, rows[i].name);
        ck_assert_msg(order < 0 || (order == 0 && rows[i - 1].until < rows[i].since),
                      "%s stands behind %s", rows[i].name, rows[i - 1].name);
        ck_assert_ptr_eq(im_row(domain, rows[i].name, rows[i].since), &rows[i]);
    }
}

START_TEST(rows_are_in_order)
{
    check_order("", DLC_OPSET_FIRST, DLC_OPSET_LAST);
    check_order("ai.onnx.ml", 1, INT16_MAX);
    check_order("com.microsoft", 1, INT16_MAX);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("import");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, one_node, 0, sizeof nodes / sizeof *nodes);
    tcase_add_test(tcase, every_problem_is_reported);
    tcase_add_test(tcase, nodes_come_in_any_order);
    tcase_add_test(tcase, declared_types_must_hold);
    tcase_add_test(tcase, declared_shapes_are_hints);
    tcase_add_test(tcase, unknown_dimensions_are_symbols);
    tcase_add_test(tcase, unknown_dimensions_have_no_names);
    tcase_add_test(tcase, domains_may_be_imported_twice);
    tcase_add_test(tcase, given_values_are_constants);
    tcase_add_test(tcase, names_are_defined_once);
    tcase_add_loop_test(tcase, one_wider_node, 0, sizeof wider / sizeof *wider);
    tcase_add_test(tcase, inputs_and_outputs_have_names_of_their_own);
    tcase_add_test(tcase, sizes_of_the_run_do_not_pile_up);
    tcase_add_test(tcase, given_shapes_replace_symbols);
    tcase_add_test(tcase, weights_stay_in_the_file);
    tcase_add_test(tcase, functions_are_inlined);
    tcase_add_test(tcase, function_bombs_are_counted);
    tcase_add_test(tcase, recursion_is_refused);
    tcase_add_test(tcase, absent_inputs_are_no_results);
    tcase_add_test(tcase, loops_are_unrolled_or_regions);
    tcase_add_test(tcase, branches_are_taken_or_regions);
    tcase_add_test(tcase, rows_are_in_order);
    Suite *suite = suite_create("onnx_import");
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
