/* The graph: text that reads back as it was written, uses through replacing and erasing, contents
 * of shape arithmetic, messages. */
#include "ir/graph/op.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/small_arena.h"
#include "tests/unit/suite.h"

static dlc_graph *parse(const char *text)
{
    dlc_graph *graph = NULL;
    dlc_status status = dlc_graph_parse(text, "t.dlc", arena, &diag, &graph);
    ck_assert_msg(status == DLC_OK, "%s: %s", diag.nmessages ? diag.messages[0].place : "",
                  diag.nmessages ? diag.messages[0].text : "");
    ck_assert_int_eq(dlc_graph_verify(graph, &diag), DLC_OK);
    return graph;
}

static const char *printed(const dlc_graph *graph)
{
    dlc_str text = {0};
    dlc_graph_print(graph, &text);
    const char *copy = dlc_arena_strdup(arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

/* Each is in the printer's own form. */
/* clang-format off */
static const char *const texts[] = {
    "graph @empty() {\n}\n",
    "symbol n = dim(%x, 0) in 0..2147483647 usual 16\n"
    "graph @usual(%x: f32[n,784]) {\n}\n",
    "graph @f(%x: f32[1,4,8,8]@nhwc) -> %p {\n"
    "  %w: f32[4,4,3,3] = const hash(00000000000000ff)\n"
    "  %c: f32[1,4,6,6]@nhwc = conv %x, %w {strides=[1, 1], group=1}\n"
    "  %r: f32[1,4,6,6]@nhwc = relu %c\n"
    "  %p: f32[1,4,3,3]@{0/2,1,2,3,0%2} = max_pool %r {kernel=[2, 2], strides=[2, 2]}\n"
    "}\n",
    "graph @constants() -> %a, %b as %out, %c, %d, %e, %f {\n"
    "  %a: f32[3] = const [0.5, -0, inf]\n"
    "  %b: i64[] = const [-9223372036854775808]\n"
    "  %c: u64[2] = const [18446744073709551615, 0]\n"
    "  %d: bool[2] = const [true, false]\n"
    "  %e: f16[64] = const fill(0.0999755859375)\n"
    "  %f: f32[0,3] = const []\n"
    "}\n",
    "graph @symbolic(%x: f32[batch,seq,64]) -> %y {\n"
    "  %y: f32[batch,seq,8,8] = reshape %x {dims=[batch, seq, 8, 8]}\n"
    "}\n",
    "symbol n = dim(%x, 0) in 1..64\n"
    "symbol \"a b\" = opaque(%z, 0) in 0..2147483647\n"
    "graph @names(%x: f32[n]) -> %\"two words\" {\n"
    "  %z: i64[1,\"a b\"] = nonzero %x {symbol=1}\n"
    "  %\"two words\": i64[2] = symbols {dims=[n * 2 + 1, \"a b\"]}\n"
    "}\n",
    "graph @attributes(%x: f32[1,1,4]) -> %r, %t, %i {\n"
    "  %r: f32[1,1,8] = resize %x {dims=[1, 1, 8], scales=[1, 1, 2], mode=\"linear\", coord=\"asymmetric\"}\n"
    "  %s: i8[1,1,8] = cast %r {dtype=i8, saturate=1}\n"
    "  %t: f32[1,1,2], %i: i64[1,1,2] = topk %x {axis=2, dims=[2], largest=0}\n"
    "}\n",
    "graph @conditions(%a: f32[2,n], %b: f32[m,2], %lo: f32[]) -> %d {\n"
    "  require n == m \"node 'matmul': columns of input 0 and rows of input 1: n and m must be equal\"\n"
    "  %c: f32[2,2] = matmul %a, %b\n"
    "  %d: f32[2,2] = clip %c, _, %lo\n"
    "}\n",
    "graph @either(%a: f32[n], %b: f32[m]) -> %c {\n"
    "  require n == 1 or n == m or m == 1 \"node 'add': broadcast dimensions: n and m must be equal, or one of them 1\"\n"
    "  %c: f32[select(n == 1, m, n)] = add %a, %b\n"
    "}\n",
    "symbol x.0 = dim(%x, 0) in 0..7\n"
    "symbol \"if\" = dim(%x, 1) in 0..2147483647\n"
    "graph @quoted(%x: f32[x.0,\"if\"]) -> %y {\n"
    "  %y: i64[2] = symbols {dims=[x.0 * \"if\", select(x.0 == 1, 2, i64(1 <= \"if\"))]}\n"
    "}\n",
    /* which of two equal dimensions a line writes is its own affair, and what equals them needs no further condition */
    "symbol n = dim(%x, 1) in 0..2147483647\n"
    "symbol c = opaque(%z, 0) in 0..2147483647\n"
    "graph @equals(%x: i64[1,n]) -> %s {\n"
    "  require n * 2 == c \"node 'sum': broadcast dimensions: c and n * 2 must be equal\"\n"
    "  %t: i64[1,n * 2] = concat %x, %x {axis=1}\n"
    "  %z: i64[2,c] = nonzero %x {symbol=1}\n"
    "  %s: i64[2,n * 2] = add %z, %t\n"
    "}\n",
    "symbol n = dim(%x, 0) in 0..2147483647\n"
    "symbol m = dim(%x, 1) in 0..2147483647\n"
    "symbol k = dim(%x, 2) in 0..2147483647\n"
    "symbol b = data(%c, 0) in 0..1\n"
    "graph @equal_in_a_branch(%x: f32[n,m,k], %c: bool[]) -> %y {\n"
    "  require b < 1 or m == 1 \"node 'squeeze': dimension 1 is m, and must be 1\"\n"
    "  require b < 1 or 1 <= n \"node 'squeeze': n is 0\"\n"
    "  %q: f32[] = const [0]\n"
    "  %i: bool[] = if {holds=[1 <= b]}\n"
    "    %r: f32[n,k] = reshape %x {dims=[n, k]}\n"
    "    %p: f32[] = reduce_max %r {axes=[0, 1], keepdims=0}\n"
    "  %e: bool[] = else %i\n"
    "  %o: bool[] = done %e\n"
    "  %y: f32[] = either %o, %p, %q\n"
    "}\n",
    "graph @sizes(%x: f32[h,w]) -> %y {\n"
    "  %y: i64[4] = symbols {dims=[(h + 1) // 2, h * w, max(h - 3, 0), (h + w) % 7]}\n"
    "}\n",
};
/* clang-format on */

START_TEST(text_round_trips)
{
    ck_assert_str_eq(printed(parse(texts[_i])), texts[_i]);
}
END_TEST

/* Inputs, and what each symbol mostly is, in the order of the inputs. */
/* clang-format off */
static const struct { const char *inputs, *usual; } usuals[] = {
    {"%x: f32[n,3,224,224]", "1"},
    {"%x: f32[n,3,h,w]", "1 256 256"},
    {"%x: f32[1,3,h,w]", "256 256"},
    {"%x: f32[n,c,h,w]", "1 0 0 0"},                          /* channels first, or last */
    {"%ids: i64[n,s], %mask: f32[n,1,s,s]", "1 0"},           /* what tokens see of each other */
    {"%x: f32[n,3,h,w], %depth: f32[n,1,h,w]", "1 256 256"},
    {"%x: f32[n,3,h,w], %size: i64[h]", "1 0 256"},
    {"%ids: i64[n,s], %mask: i64[n,s]", "1 0"},               /* tokens */
    {"%x: f32[n,t]", "1 0"},                                  /* a sound */
    {"%x: f32[n,80,t]", "1 0"},
    {"%x: f32[n,t,80]", "1 0"},
    {"%x: f32[n,1,28,28]", "1"},
    {"%x: f32[n,3,224,224], %age: f32[n,4]", "1"},            /* an image, and a row of features that is the same sample's */
    {"%token: i64[n,1], %keys: f32[n,12,past,64]", "1 0"},    /* a decoder's step */
    {"%x: f32[n,784]", "0"},                                  /* rows of features */
    {"%ids: i64[n,26]", "0"},
    {"%x: f32[t,1,80]", "0"},                                 /* steps of one sequence */
    {"%boxes: f32[n,4,2]", "0"},                              /* samples as small as one */
    {"%x: f32[n]", "0"},
    {"%x: u8[h,w,3]", "0 0"},                                 /* an image */
    {"%a: f32[m,k], %b: f32[k,n]", "0 0 0"},                  /* matrices */
    {"%a: f32[n,64], %b: f32[m,64], %far: f32[n,m]", "0 0"},
    {"%x: i64[n,s], %at: i64[s]", "1 0"},
    {"%adjacent: f32[n,n], %x: f32[n,h,w]", "0 0 0"},         /* nodes of a graph */
    {"%x: f32[t,n,80], %state: f32[2,n,64]", "1 0"},
    {"%x: f32[n,t,80], %state: f32[2,n,64]", "0 0"},          /* counts layers' columns as well */
    {"%x: f32[n * 2,3,64,64], %y: f32[n,3,64,64]", "1"},
    {"%x: f32[n,3,64,64], %y: f32[4,n * 2]", "0"},
};
/* clang-format on */

START_TEST(batches_of_samples_are_usually_one)
{
    dlc_graph *graph = parse(dlc_arena_printf(arena, "graph @f(%s) {\n}\n", usuals[_i].inputs));
    const int64_t *values = dlc_graph_usual_values(graph, 64, arena);
    dlc_str text = {0};
    for (uint32_t s = 0; s < graph->symbols.n; s++) {
        int64_t usual = dlc_graph_usual(graph, s);
        dlc_str_printf(&text, "%s%d", s ? " " : "", (int)usual);
        ck_assert_int_eq(values[s], usual ? usual : 64);
    }
    ck_assert_str_eq(dlc_str_text(&text), usuals[_i].usual);
    dlc_str_deinit(&text);
}
END_TEST

/* What is stated goes before the rule; within the symbol's range, both. */
START_TEST(usual_sizes_are_stated_or_bounded)
{
    dlc_graph *graph = parse("symbol n = dim(%x, 0) in 2..8\nsymbol m = dim(%y, 0) in 1..4096 usual 1000\n"
                             "graph @f(%x: f32[n,3,64,64], %y: f32[m,784]) {\n}\n");
    ck_assert_int_eq(dlc_graph_usual(graph, 0), 2);
    ck_assert_int_eq(dlc_graph_usual(graph, 1), 1000);
}
END_TEST

/* clang-format off */
static const struct { const char *text, *message; } refused[] = {
    {"graph", "a name starting with @"},
    {"graph @f(%x: f32[2]) -> %y { }", "output %y is not defined"},
    {"string \"a\"\nstring \"a\"\ngraph @f(%x: str[2]) -> %x { }", "the string stands there twice"},
    {"string \"a\"\ngraph @f(%x: str[2]) -> %c {\n %c: str[2] = const [1, 2]\n}", "there is no string 2"},
    {"graph @f(%x: str[2]) -> %y {\n %y: i64[2] = cast %x {dtype=i64}\n}", "str to i64; strings are read and written by text_read and text_write"},
    {"symbol n = data(%k, 0) in 0..9\ngraph @f(%k: i64[], %x: f32[n]) -> %x { }", "symbol n is a dimension of an input"},
    {"symbol n = opaque(%l, 0) in 0..9\ngraph @f(%x: f32[2]) -> %y {\n %l: bool[] = loop {symbol=0, holds=[n < 3]}\n"
     " %y: f32[2] = neg %x\n %d: bool[] = done %l\n}", "output %y is of a region"},
    {"symbol n = opaque(%l, 0) in 0..9\ngraph @f(%x: f32[2]) -> %d {\n %l: bool[] = loop {symbol=0, holds=[n < 3]}\n"
     " %d: bool[] = done %l\n}", "output %d is of a region"},
    {"graph @f(%x: f31[2]) { }", "an element type is wanted"},
    {"graph @f(%x: f32[2]@nhwc) { }", "a layout of 1 dimensions"},
    {"graph @f(%x: f32[2]) { %y: f32[2] = relu %z }", "value %z is not defined above"},
    {"graph @f(%x: f32[2]) { %y: f32[2] = relo %x }", "\"relo\" is no operator"},
    {"graph @f(%x: f32[2]) { %y: f32[3] = relu %x }", "%y is f32[2]; the line says f32[3]"},
    {"graph @f(%x: f32[2]) { %x: f32[2] = relu %x }", "value %x is defined twice"},
    {"graph @f(%x: f32[2]) { %y: f32[2] = elu %x {alpha=1, gamma=2} }", "elu has no attribute gamma"},
    {"graph @f(%x: f32[2]) { %y: f32[2] = elu %x {alpa=1} }", "\"alpa\" is no attribute"},
    {"graph @f(%x: f32[2]) { %y: f32[n] = relu %x }", "a symbol that is not declared"},
    {"graph @f() { %y: f32[3] = const [1, 2] }", "\",\" is wanted"},
    {"graph @f() { %y: f32[99999999999] = const }", "up to 4294967296 are made"},
    {"graph @f() { %y: i64[1] = symbols {dims=[max(1)]} }", "found ')' where ',' is due"},
    {"graph @f() { %y: i64[1] = symbols {dims=[lt(1, 2)]} }", "an integer expression is wanted"},
    {"graph @f() { %y: i64[1] = symbols {dims=[i64(0.5 + 0.5)]} }", "'add' takes no f32 in a size"},
    {"graph @f() { %y: i64[1] = symbols {dims=[1 + true]} }", "'add' takes no bool"},
    {"graph @f() { %y: i64[1] = symbols {dims=[(1]} }", "found ']' where ')' is due"},
    {"graph @f(%x: f32[\"n]) { }", "a quoted name does not end on its line"},
    {"graph @f() { } graph", "behind the graph"},
    {"graph @f(%x: f32[1,2,3,4,5,6,7,8,9]) { }", "more than 8 dimensions"},
    {"graph @f() { %y: i64[1] = const [9223372036854775808] }", "-9223372036854775808 to 9223372036854775807"},
    {"graph @f() { %y: u64[1] = const [-1] }", "0 to 18446744073709551615 is possible"},
    {"graph @f() { %y: i8[1] = const [128] }", "-128 to 127 is possible"},
    {"graph @f(%x: f32[2,2]) { %y: i64[2] = argmax %x {axis=99999999999999999999} }", "is possible"},
    {"symbol n = dim(%x, 0) in 1..64 usual 65 graph @f(%x: f32[n]) { }", "symbol n is never its usual 65"},
    {"symbol n = dim(%x, 1) in 1..64 graph @f(%x: f32[n]) { }", "%x is no graph input with a dimension 1"},
    {"symbol n = dim(%y, 0) in 1..64 graph @f(%x: f32[n]) { %y: f32[n] = relu %x }", "%y is no graph input"},
    {"symbol n = data(%x, 4) in 1..64 graph @f(%x: i64[4]) { }", "%x is no integer value with an element 4"},
    {"symbol n = data(%x, 0) in 1..64 graph @f(%x: f32[4]) { }", "%x is no integer value"},
    {"symbol n = opaque(%x, 0) in 1..64 graph @f(%x: i64[4]) { }", "the node that makes %x does not name it"},
};
/* clang-format on */

START_TEST(bad_text_is_refused)
{
    dlc_graph *graph;
    ck_assert_int_ne(dlc_graph_parse(refused[_i].text, "t.dlc", arena, &diag, &graph), DLC_OK);
    ck_assert_uint_ge(diag.nmessages, 1);
    ck_assert_msg(strstr(diag.messages[0].text, refused[_i].message) != NULL, "found: %s",
                  diag.messages[0].text);
}
END_TEST

static dlc_value *named(dlc_graph *graph, const char *name)
{
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        if (strcmp(graph->inputs.data[i]->name, name) == 0)
            return graph->inputs.data[i];
    for (dlc_node *node = graph->first; node; node = node->next)
        for (uint32_t o = 0; o < node->noutputs; o++)
            if (strcmp(node->outputs[o]->name, name) == 0)
                return node->outputs[o];
    ck_abort_msg("no value %s", name);
    return NULL;
}

/* Printing takes any depth, reading says where it ends. */
START_TEST(deep_sizes_are_refused)
{
    dlc_str text = {0};
    dlc_str_add(&text, "graph @f(%x: f32[n]) { %y: i64[1] = symbols {dims=[");
    for (int n = 0; n < 100000; n++)
        dlc_str_add(&text, "(");
    dlc_graph *graph;
    ck_assert_int_eq(dlc_graph_parse(dlc_str_text(&text), "t.dlc", arena, &diag, &graph),
                     DLC_INVALID);
    ck_assert_str_eq(diag.messages[0].text, "expressions nest deeper than 1000");
    ck_assert_str_eq(diag.messages[0].place, "t.dlc:1:1052");
    dlc_str_deinit(&text);
}
END_TEST

START_TEST(replace_and_erase_keep_uses)
{
    dlc_graph *graph = parse("graph @f(%x: f32[2]) -> %z, %y {\n"
                             "  %y: f32[2] = relu %x\n"
                             "  %z: f32[2] = add %y, %y\n"
                             "}\n");
    dlc_value *x = named(graph, "x"), *y = named(graph, "y");
    ck_assert_uint_eq(dlc_value_nuses(y), 3);
    dlc_value_replace(graph, y, x);
    ck_assert_uint_eq(dlc_value_nuses(y), 0);
    ck_assert_uint_eq(dlc_value_nuses(x), 4);
    dlc_graph_erase(graph, y->def);
    ck_assert_uint_eq(dlc_value_nuses(x), 3);
    ck_assert_int_eq(dlc_graph_verify(graph, &diag), DLC_OK);
    ck_assert_str_eq(printed(graph),
                     "graph @f(%x: f32[2]) -> %z, %x as %y {\n  %z: f32[2] = add %x, %x\n}\n");
}
END_TEST

/* A long list of uses loses them one by one in no more than linear time: merging equal nodes of one
 * value does that. */
START_TEST(uses_are_dropped_in_constant_time)
{
    enum { N = 100000 };
    dlc_graph *graph = parse("graph @f(%x: f32[2]) -> %y {\n  %y: f32[2] = relu %x\n}\n");
    dlc_value *x = named(graph, "x"), *y = named(graph, "y");
    dlc_node **nodes = dlc_new_array(graph->arena, dlc_node *, N);
    dlc_node_spec spec = {.op = DLC_OP_ADD, .inputs = (dlc_value *[]){x, x}, .ninputs = 2};
    for (uint32_t i = 0; i < N; i++)
        nodes[i] = dlc_graph_node(graph, &spec);
    ck_assert_uint_eq(dlc_value_nuses(x), 2 * N + 1);
    for (uint32_t i = 1; i < N; i += 2) { /* into another list and, with it, back */
        dlc_node_set_input(nodes[i], 1, y);
        dlc_value_replace(graph, nodes[i]->outputs[0], y);
    }
    ck_assert_int_eq(dlc_graph_verify(graph, &diag), DLC_OK);
    dlc_value_replace(graph, y, x);
    for (uint32_t i = 0; i < N; i++) /* the oldest use is the last of the list */
        dlc_graph_erase(graph, nodes[i]);
    ck_assert_uint_eq(dlc_value_nuses(x), 2);
    ck_assert_int_eq(dlc_graph_verify(graph, &diag), DLC_OK);
}
END_TEST

START_TEST(constants_stand_first_and_names_are_unique)
{
    dlc_graph *graph = parse("graph @f(%x: f32[2]) -> %y {\n  %y: f32[2] = relu %x\n}\n");
    dlc_value *a = dlc_graph_scalar(graph, DLC_F32, 0.1), *b = dlc_graph_scalar(graph, DLC_I8, 300);
    dlc_value *inputs[] = {named(graph, "x"), a};
    dlc_node_spec spec = {.op = DLC_OP_MUL,
                          .name = "y",
                          .inputs = inputs,
                          .ninputs = 2,
                          .before = named(graph, "y")->def};
    ck_assert_ptr_nonnull(dlc_graph_node(graph, &spec));
    ck_assert_ptr_eq(graph->first, a->def);
    ck_assert_ptr_eq(graph->first->next, b->def);
    ck_assert_int_eq(dlc_graph_verify(graph, &diag), DLC_OK);
    ck_assert_str_eq(printed(graph), "graph @f(%x: f32[2]) -> %y {\n"
                                     "  %scalar: f32[] = const [0.10000000149011612]\n"
                                     "  %scalar_2: i8[] = const [127]\n"
                                     "  %y_2: f32[2] = mul %x, %scalar\n"
                                     "  %y: f32[2] = relu %x\n"
                                     "}\n");
}
END_TEST

START_TEST(names_of_further_results_are_taken)
{
    dlc_graph *graph = parse("graph @f(%x: f32[1,1,4]) -> %m, %scalar {\n"
                             "  %m: f32[1,1,2], %scalar: i64[1,1,2] = topk %x {axis=2, dims=[2]}\n"
                             "}\n");
    dlc_graph_scalar(graph, DLC_F32, 1);
    ck_assert_str_eq(graph->first->outputs[0]->name, "scalar_2");
    ck_assert_int_eq(dlc_graph_verify(graph, &diag), DLC_OK);
}
END_TEST

START_TEST(verifier_finds_a_wrong_type)
{
    dlc_graph *graph =
        parse("graph @f(%x: f32[2], %w: f32[3]) -> %y {\n  %y: f32[2] = relu %x\n}\n");
    dlc_node_set_input(graph->first, 0, named(graph, "w"));
    ck_assert_int_eq(dlc_graph_verify(graph, &diag), DLC_INTERNAL);
    ck_assert_msg(strstr(diag.messages[0].text, "output 0 is f32[2]; its inputs give f32[3]") !=
                      NULL,
                  "%s", diag.messages[0].text);
}
END_TEST

START_TEST(messages_name_the_node)
{
    static const dlc_origin origin = {"layer2/conv1", "Conv", "", 13};
    dlc_graph *graph = dlc_graph_create(arena, &diag, "resnet.onnx");
    dlc_type x = {DLC_F32, 4, {0}}, w = {DLC_F32, 4, {0}};
    static const int64_t x_dims[] = {1, 64, 56, 56}, w_dims[] = {128, 21, 3, 3};
    for (int d = 0; d < 4; d++) {
        x.dims[d] = dlc_expr_i64(graph->pool, x_dims[d]);
        w.dims[d] = dlc_expr_i64(graph->pool, w_dims[d]);
    }
    dlc_value *inputs[] = {dlc_graph_input(graph, "relu_4", &x),
                           dlc_graph_input(graph, "conv1.weight", &w)};
    dlc_attr group = dlc_attr_int(DLC_ATTR_GROUP, 3);
    dlc_node_spec spec = {.op = DLC_OP_CONV,
                          .origin = &origin,
                          .inputs = inputs,
                          .ninputs = 2,
                          .attrs = &group,
                          .nattrs = 1};
    ck_assert_ptr_null(dlc_graph_node(graph, &spec));
    ck_assert_str_eq(diag.messages[0].place, "resnet.onnx: node 'layer2/conv1' (Conv, opset 13)");
    ck_assert_str_eq(diag.messages[0].text, "group = 3 does not divide the 64 input channels");
    ck_assert_str_eq(diag.messages[0].detail, "    input 0  'relu_4'        f32[1,64,56,56]\n"
                                              "    input 1  'conv1.weight'  f32[128,21,3,3]");
}
END_TEST

/* A sum of many inputs, each with a dimension of its own: the first 32 may be 1, what those make and each further one are equal; and no
 * condition's text grows with them. */
START_TEST(so_many_dimensions_broadcast)
{
    enum { N = 100, MOST_TEXT = 4096 };
    static const dlc_origin origin = {"sum", "Sum", "", 13};
    dlc_graph *graph = dlc_graph_create(arena, &diag, "sum.onnx");
    dlc_value *sum = NULL;
    uint32_t nboth = 0, nequal = 0;
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        uint32_t symbol = dlc_graph_symbol(graph, name, DLC_BIND_INPUT_DIM, NULL, 0);
        dlc_type type = {DLC_F32, 1, {dlc_expr_sym(graph->pool, symbol)}};
        dlc_value *x = dlc_graph_input(graph, name, &type), *inputs[] = {sum, x};
        graph->symbols.data[symbol].value = x;
        dlc_node_spec spec = {.op = DLC_OP_ADD, .origin = &origin, .inputs = inputs, .ninputs = 2};
        dlc_node *node = sum ? dlc_graph_node(graph, &spec) : NULL;
        ck_assert(!sum || node);
        sum = node ? node->outputs[0] : x;
    }
    ck_assert_uint_eq(graph->conditions.n, N - 1);
    for (uint32_t c = 0; c < graph->conditions.n; c++) {
        nboth += strstr(graph->conditions.data[c].text, "or one of them 1") != NULL;
        nequal += strstr(graph->conditions.data[c].text, "must be equal") != NULL;
        ck_assert_uint_lt(strlen(graph->conditions.data[c].text), MOST_TEXT);
    }
    ck_assert_uint_eq(nboth, 32);
    ck_assert_uint_eq(nequal, N - 1); /* the other sentence says so, too */
}
END_TEST

/* Shape arithmetic: nodes, the value asked for, its elements as text ("" : unknown). */
/* clang-format off */
static const struct { const char *nodes, *value, *content; } contents[] = {
    {"%s: i64[3] = symbols {dims=[n, 4, m]}", "s", "n 4 m"},
    {"%s: i64[3] = symbols {dims=[n, 4, m]}\n %i: i64[2] = const [2, -3]\n %y: i64[2] = gather %s, %i {axis=0}", "y", "m n"},
    {"%s: i64[2] = symbols {dims=[n, m]}\n %t: i64[1] = const [-1]\n %y: i64[3] = concat %s, %t {axis=0}", "y", "n m -1"},
    {"%s: i64[2] = symbols {dims=[n, m]}\n %y: i64[] = reduce_prod %s {axes=[0]}", "y", "n * m"},
    {"%s: i64[2] = symbols {dims=[n, m]}\n %c: i32[2] = cast %s {dtype=i32}\n %y: i64[2] = cast %c {dtype=i64}", "y", "n m"},
    {"%s: i64[2] = symbols {dims=[n, m]}\n %c: i8[2] = cast %s {dtype=i8}", "c", ""}, /* might wrap */
    {"%s: i64[2] = symbols {dims=[n, 4]}\n %f: f32[2] = cast %s {dtype=f32}", "f", ""},
    {"%s: i64[1] = symbols {dims=[5]}\n %f: f32[1] = cast %s {dtype=f32}\n %h: f32[] = const [0.5]\n"
     " %p: f32[1] = mul %f, %h\n %q: f32[1] = floor %p\n %y: i64[1] = cast %q {dtype=i64}", "y", "2"},
    {"%s: i64[2] = symbols {dims=[n, 4]}\n %z: i64[2] = const [-1, 4]\n %e: bool[2] = eq %s, %z\n"
     " %y: i64[2] = where %e, %z, %s", "y", "n 4"},
    {"%s: i64[3] = symbols {dims=[n, 4, 6]}\n %y: i64[3] = cumsum %s {axis=0}", "y", "n n + 4 n + 10"},
    {"%s: i64[3] = symbols {dims=[n, 4, 6]}\n %i: i64[1,1] = const [1]\n %u: i64[1] = const [9]\n"
     " %y: i64[3] = scatter_nd %s, %i, %u", "y", "n 9 6"},
    {"%s: i64[4] = symbols {dims=[n, 4, 6, m]}\n %y: i64[2] = slice %s {starts=[3], steps=[-2], dims=[2]}", "y", "m 4"},
    {"%a: i32[2] = const [7, -7]\n %b: i32[2] = const [2, 2]\n %y: i32[2] = div %a, %b", "y", "3 -3"},
    {"%a: i8[1] = const [127]\n %b: i8[1] = const [1]\n %y: i8[1] = add %a, %b", "y", "-128"},
};
/* clang-format on */

START_TEST(contents_follow_shape_arithmetic)
{
    dlc_graph *graph =
        parse(dlc_arena_printf(arena, "graph @f(%%x: f32[n,m]) {\n %s\n}\n", contents[_i].nodes));
    const dlc_value *value = named(graph, contents[_i].value);
    dlc_str text = {0};
    int64_t elems = 0;
    ck_assert(dlc_type_elems(graph->pool, &value->type, &elems));
    for (int64_t i = 0; i < elems && value->content; i++) {
        dlc_str_add(&text, i ? " " : "");
        dlc_dim_print(graph, value->content[i], &text);
    }
    ck_assert_str_eq(dlc_str_text(&text), contents[_i].content);
    dlc_str_deinit(&text);
}
END_TEST

/* clang-format off */
static const struct { const char *layout; uint8_t rank; const char *index; int64_t offset, elems; } layouts[] = {
    /* dims 6,5,4,3; index 5,4,3,2 */
    {"", 4, "", 359, 360},
    {"@nhwc", 4, "", ((5 * 4 + 3) * 3 + 2) * 5 + 4, 360},
    {"@{0/4,1,2,3,0%4}", 4, "", (((1 * 5 + 4) * 4 + 3) * 3 + 2) * 4 + 1, 480},
    {"@{3,2,1,0}", 4, "", ((2 * 4 + 3) * 5 + 4) * 6 + 5, 360},
};
/* clang-format on */

START_TEST(layouts_place_elements)
{
    static const int64_t dims[] = {6, 5, 4, 3};
    dlc_pool *pool = dlc_pool_create(arena);
    dlc_expr d[4], i[4];
    dlc_layout layout;
    const char *text = layouts[_i].layout;
    dlc_str again = {0};
    ck_assert(dlc_layout_parse(&text, 4, &layout));
    dlc_layout_print(&layout, 4, &again);
    ck_assert_str_eq(dlc_str_text(&again), layouts[_i].layout);
    for (int k = 0; k < 4; k++) {
        d[k] = dlc_expr_i64(pool, dims[k]);
        i[k] = dlc_expr_i64(pool, dims[k] - 1);
    }
    ck_assert_int_eq(dlc_expr_value(pool, dlc_layout_offset(pool, &layout, 4, d, i)),
                     layouts[_i].offset);
    ck_assert_int_eq(dlc_expr_value(pool, dlc_layout_elems(pool, &layout, 4, d)),
                     layouts[_i].elems);
    dlc_str_deinit(&again);
}
END_TEST

/* clang-format off */
static const char *const bad_layouts[] = {"@{0,1,2}", "@{0,1,2,2}", "@{0%4,1,2,3}", "@{0/4,1,2,3,0%2}", "@{0,1,2,4}", "@nwc", "@{"};
/* clang-format on */

START_TEST(bad_layouts_are_refused)
{
    dlc_layout layout;
    const char *text = bad_layouts[_i];
    ck_assert(!dlc_layout_parse(&text, 4, &layout));
}
END_TEST

#define ROWS(table) ((int)(sizeof table / sizeof *table))

int main(void)
{
    Suite *suite = suite_create("graph");
    TCase *tcase = tcase_create("graph");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, text_round_trips, 0, ROWS(texts));
    tcase_add_loop_test(tcase, bad_text_is_refused, 0, ROWS(refused));
    tcase_add_loop_test(tcase, batches_of_samples_are_usually_one, 0, ROWS(usuals));
    tcase_add_test(tcase, usual_sizes_are_stated_or_bounded);
    tcase_add_loop_test(tcase, contents_follow_shape_arithmetic, 0, ROWS(contents));
    tcase_add_loop_test(tcase, layouts_place_elements, 0, ROWS(layouts));
    tcase_add_loop_test(tcase, bad_layouts_are_refused, 0, ROWS(bad_layouts));
    tcase_add_test(tcase, deep_sizes_are_refused);
    tcase_add_test(tcase, replace_and_erase_keep_uses);
    tcase_add_test(tcase, uses_are_dropped_in_constant_time);
    tcase_add_test(tcase, constants_stand_first_and_names_are_unique);
    tcase_add_test(tcase, names_of_further_results_are_taken);
    tcase_add_test(tcase, verifier_finds_a_wrong_type);
    tcase_add_test(tcase, messages_name_the_node);
    tcase_add_test(tcase, so_many_dimensions_broadcast);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
