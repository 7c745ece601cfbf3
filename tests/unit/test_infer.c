/*
 * Result types of operators: a row is a node as text, the inputs' types before it, and either the
 * type that must follow or a part of the message that must come.
 */
#include "ir/graph/op.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

typedef struct {
    const char *inputs; /* "%a: f32[2,3], %b: …" */
    const char *node;   /* operator, operands, attributes */
    const char *type;   /* of the result; NULL: refused */
    const char *message;
} infer_case;

/* clang-format off */
static const infer_case cases[] = {
    /* pointwise and broadcasting */
    {"%a: f32[2,3,4], %b: f32[4]", "add %a, %b", "f32[2,3,4]", NULL},
    {"%a: f32[1], %b: f32[0,5]", "add %a, %b", "f32[0,5]", NULL}, /* an empty dimension wins over 1 */
    {"%a: f32[2,1,4], %b: f32[3,1]", "mul %a, %b", "f32[2,3,4]", NULL},
    {"%a: f32[], %b: f32[n]", "sub %a, %b", "f32[n]", NULL},
    {"%a: f32[n,4], %b: f32[n,1]", "sub %a, %b", "f32[n,4]", NULL},
    {"%a: f32[n,4], %b: f32[m,4]", "sub %a, %b", "f32[select(n == 1, m, n),4]", NULL},
    {"%a: f32[n], %b: f32[3]", "sub %a, %b", "f32[3]", NULL},
    {"%a: f32[2,3], %b: f32[2,4]", "add %a, %b", NULL, "broadcast dimensions: 3 and 4 differ"},
    {"%a: f32[n,2,3], %b: f32[m,3,4]", "matmul %a, %b", "f32[select(n == 1, m, n),2,4]", NULL},
    {"%a: f32[2], %b: f64[2]", "add %a, %b", NULL, "inputs 0 and 1 are f32 and f64"},
    {"%a: f32[2], %b: f64[2]", "pow %a, %b", "f32[2]", NULL},
    {"%a: f32[n], %b: f32[n + 1]", "add %a, %b", NULL, "n and n + 1 differ"},
    {"%a: f32[2]", "add %a", NULL, "1 inputs; add takes 2 to 2"},
    {"%a: f32[2]", "add %a, _", NULL, "input 1 is absent"},
    {"%a: bool[2], %b: bool[2]", "add %a, %b", NULL, "input 0 is bool; add takes a number"},
    {"%a: i32[2]", "sqrt %a", NULL, "input 0 is i32; sqrt takes a float"},
    {"%a: f32[2]", "relu %a {alpha=1}", NULL, "relu has no attribute alpha"},
    {"%a: f32[2]", "leaky_relu %a", NULL, "attribute alpha is absent"},
    {"%a: f32[2]", "elu %a {alpha=1, alpha=2}", NULL, "given twice"},
    {"%a: f32[2]", "gelu %a {mode=\"sigmoid\"}", NULL, "mode = sigmoid is not one of none|tanh"},
    {"%a: f32[2]", "cast %a {dtype=i8}", "i8[2]", NULL},
    {"%a: f32[2]", "cast %a {dtype=i8, saturate=2}", NULL, "saturate = 2 is not one of 0|1"},
    {"%a: f32[2]", "bitcast %a {dtype=i8}", NULL, "differ in size"},
    {"%a: f32[2], %b: f32[2]", "lt %a, %b", "bool[2]", NULL},
    {"%a: f32[2], %b: f32[2]", "where %a, %b, %b", NULL, "input 0 is f32; where takes bool"},
    {"%c: bool[2,1], %a: f32[3], %b: f32[]", "where %c, %a, %b", "f32[2,3]", NULL},
    {"%x: f32[9], %lo: f32[]", "clip %x, _, %lo", "f32[9]", NULL},
    {"%x: f32[9], %lo: f32[2]", "clip %x, %lo", NULL, "one element is wanted"},
    /* reductions */
    {"%x: f32[2,n,4]", "reduce_sum %x {axes=[1]}", "f32[2,4]", NULL},
    {"%x: f32[2,n,4]", "reduce_mean %x {axes=[0, 2], keepdims=1}", "f32[1,n,1]", NULL},
    {"%x: f32[2,3]", "reduce_sum %x {axes=[2]}", NULL, "axes[0] = 2 is outside [0, 1]"},
    {"%x: f32[2,3]", "reduce_sum %x {axes=[1, 0]}", NULL, "axes ascend"},
    {"%x: i8[2,3]", "reduce_sum %x {axes=[1], dtype=i32}", "i32[2]", NULL},
    {"%x: f32[2,3]", "reduce_sum %x {axes=[1], dtype=i32}", NULL, "integers, or floats, that are no wider than dtype are wanted"},
    {"%x: bool[2,3]", "reduce_sum %x {axes=[1]}", NULL, "takes a number"},
    {"%x: bool[2,3]", "reduce_max %x {axes=[1]}", "bool[2]", NULL},
    {"%x: f32[2,3]", "argmax %x {axis=1}", "i64[2]", NULL},
    {"%x: f32[2,0]", "argmax %x {axis=1}", NULL, "is empty; it has no argmax"},
    {"%x: f32[2,3]", "cumsum %x {axis=-1}", NULL, "axis = -1 is outside [0, 1]"},
    /* contractions */
    {"%a: f32[2,3], %b: f32[3,4]", "matmul %a, %b", "f32[2,4]", NULL},
    {"%a: f32[5,1,2,3], %b: f32[7,3,4]", "matmul %a, %b", "f32[5,7,2,4]", NULL},
    {"%a: f32[2,3], %b: f32[4,5]", "matmul %a, %b", NULL, "columns of input 0 and rows of input 1: 3 and 4 differ"},
    {"%a: f32[3], %b: f32[3,5]", "matmul %a, %b", NULL, "ranks are 1 and 2"},
    {"%a: f32[2,3], %b: f32[3,4]", "einsum %a, %b {equation=\"ij,jk->ki\"}", "f32[4,2]", NULL},
    {"%a: f32[2,2]", "einsum %a {equation=\"ii->i\"}", "f32[2]", NULL},
    {"%a: f32[2,3]", "einsum %a {equation=\"ii->i\"}", NULL, "sizes of 'i': 2 and 3 differ"},
    {"%a: f32[2,3]", "einsum %a {equation=\"ij\"}", NULL, "no \"->\""},
    {"%a: f32[2,3]", "einsum %a {equation=\"ij,jk->ik\"}", NULL, "does not have 1 operands"},
    {"%a: f32[2,3]", "einsum %a {equation=\"ijk->i\"}", NULL, "has 3 letters; the input has 2 dimensions"},
    {"%a: f32[2,3]", "einsum %a {equation=\"ij->k\"}", NULL, "'k' of the output is in no operand"},
    {"%a: f32[2,3]", "einsum %a {equation=\"i1->i\"}", NULL, "has '1' at 1"},
    /* windows */
    {"%x: f32[1,4,8,8], %w: f32[6,4,3,3]", "conv %x, %w", "f32[1,6,6,6]", NULL},
    {"%x: f32[n,4,8,8], %w: f32[6,2,3,3]", "conv %x, %w {pads=[1, 1, 1, 1], strides=[2, 2], group=2}", "f32[n,6,4,4]",
     NULL},
    {"%x: f32[1,4,h,8], %w: f32[6,4,3,3]", "conv %x, %w {dilations=[2, 1]}", "f32[1,6,h + -4,6]", NULL},
    {"%x: f32[1,12 // n,8,8], %w: f32[6,2,3,3]", "conv %x, %w {group=2}", "f32[1,6,6,6]", NULL},
    {"%x: f32[1,c,8,8], %w: f32[4,6,3,3]", "conv_transpose %x, %w", "f32[1,6,10,10]", NULL},
    {"%x: f32[n,5], %b: f32[min(n, 1),5]", "add %x, %b", "f32[n,5]", NULL},
    {"%x: f32[min(n, 1),5], %b: f32[4,5]", "add %x, %b", "f32[4,5]", NULL},
    {"%x: f32[1,64,8,8], %w: f32[128,21,3,3]", "conv %x, %w {group=3}", NULL,
     "group = 3 does not divide the 64 input channels"},
    {"%x: f32[1,4,8,8], %w: f32[6,4,3,3]", "conv %x, %w {group=0}", NULL, "group = 0 does not divide"},
    {"%x: f32[1,4,8,8], %w: f32[6,4,3,3]", "conv %x, %w {strides=[0, 1]}", NULL, "strides[0] = 0 is outside [1, "},
    {"%x: f32[1,4,8,8], %w: f32[6,4,3,3]", "conv %x, %w {pads=[1, 1]}", NULL, "pads has 2 entries; 4 are wanted"},
    {"%x: f32[1,4,8,8], %w: f32[6,4,9,3]", "conv %x, %w", NULL, "a window of 9 is larger than the 8 of the input"},
    {"%x: f32[1,4,8,8], %w: f32[6,5,3,3]", "conv %x, %w", NULL, "takes 5 channels per group; the input has 4 in 1"},
    {"%x: f32[1,4,8,8], %w: f32[6,4,3]", "conv %x, %w", NULL, "the filter has 3 dimensions; the input has 4"},
    {"%x: f32[1,4,8,8], %w: f32[6,4,3,k]", "conv %x, %w", NULL, "filter dimension 3 is k; a constant size is wanted"},
    {"%x: f32[1,4,3,3], %w: f32[4,5,3,3]", "conv_transpose %x, %w {strides=[2, 2], output_padding=[1, 1], pads=[1, 1, 1, 1]}",
     "f32[1,5,6,6]", NULL},
    {"%x: f32[1,4,3,3], %w: f32[5,5,3,3]", "conv_transpose %x, %w", NULL, "takes 5 channels; the input has 4"},
    {"%x: f32[1,4,8,8]", "max_pool %x {kernel=[2, 2], strides=[2, 2]}", "f32[1,4,4,4]", NULL},
    {"%x: f32[1,4,7,7]", "max_pool %x {kernel=[2, 2], strides=[2, 2], dims=[4, 4]}", "f32[1,4,4,4]", NULL},
    {"%x: f32[1,4,7,7]", "max_pool %x {kernel=[2, 2], strides=[2, 2], dims=[5, 4]}", NULL, "5 windows at stride 2 leave"},
    {"%x: f32[1,4,7,7]", "max_pool %x {kernel=[0, 2]}", NULL, "kernel[0] = 0"},
    {"%x: i32[1,4,7,7]", "avg_pool %x {kernel=[2, 2]}", NULL, "avg_pool takes a float"},
    /* views */
    {"%x: f32[2,3,4]", "reshape %x {dims=[6, 4]}", "f32[6,4]", NULL},
    {"%x: f32[2,3,4]", "reshape %x {dims=[7, 4]}", NULL, "has 24 elements"},
    {"%x: f32[n,3,4]", "reshape %x {dims=[n, 12]}", "f32[n,12]", NULL},
    {"%x: f32[2,3,4]", "reshape %x {dims=[1099511627776, 1099511627776]}", NULL, "differ"},
    {"%x: f32[2,3,4]", "transpose %x {perm=[2, 0, 1]}", "f32[4,2,3]", NULL},
    {"%x: f32[2,3,4]", "transpose %x {perm=[2, 0, 0]}", NULL, "names dimension 0 twice"},
    {"%x: f32[3,1]", "expand %x {dims=[2, 3, 5]}", "f32[2,3,5]", NULL},
    {"%x: f32[3,2]", "expand %x {dims=[3, 5]}", NULL, "2 and 5 differ"},
    {"%x: f32[n], %z: f32[m]", "expand %x {dims=[m]}", "f32[m]", NULL},
    {"%x: f32[1]", "expand %x {dims=[2097152, 2097152]}", NULL, "up to 2^40 elements"},
    {"%x: f32[1]", "expand %x {dims=[-2]}", NULL, "dims[0] = -2 is outside"},
    {"%x: f32[9,5]", "slice %x {starts=[8, 1], steps=[-2, 1], dims=[4, 3]}", "f32[4,3]", NULL},
    {"%x: f32[9]", "slice %x {starts=[8], steps=[-3], dims=[4]}", NULL, "4 elements from 8 at step -3 leave the 9"},
    {"%x: f32[9]", "slice %x {starts=[0], steps=[0], dims=[1]}", NULL, "steps[0] = 0"},
    {"%b: f32[1,9,4], %s: f32[1,2,9], %t: f32[]", "suppress %b, %s, %t, %t {dims=[3]}", "i64[1,2,3]", NULL},
    {"%b: f32[1,9,4], %s: f32[1,2,8], %t: f32[]", "suppress %b, %s, %t, %t {dims=[3]}", NULL, "boxes and their scores"},
    {"%b: f32[1,9,4], %s: f32[1,2,9], %t: f64[]", "suppress %b, %s, %t, %t {dims=[3]}", NULL, "f32 is wanted"},
    {"%a: f32[2,n], %b: f32[2,3]", "concat %a, %b {axis=1}", "f32[2,n + 3]", NULL},
    {"%a: f32[2,1], %b: f32[3,1]", "concat %a, %b {axis=1}", NULL, "dimension 0 of inputs 0 and 1: 2 and 3 differ"},
    {"%x: f32[4,4]", "pad %x {pads=[1, -1, 0, 2]}", "f32[5,5]", NULL},
    {"%x: f32[4]", "pad %x {pads=[-3, -3]}", NULL, "dimension 0 would have -2 elements"},
    {"%x: f32[0]", "pad %x {pads=[1, 1], mode=\"edge\"}", NULL, "is empty; mode edge needs an element"},
    {"%x: f32[2,3]", "tile %x {dims=[2, 9]}", "f32[2,9]", NULL},
    {"%x: f32[2,3]", "tile %x {dims=[2, 8]}", NULL, "8 is no multiple of 3"},
    /* indices */
    {"%x: f32[5,6,7], %i: i64[2,3]", "gather %x, %i {axis=1}", "f32[5,2,3,7]", NULL},
    {"%x: f32[5,6], %i: i32[]", "gather %x, %i {axis=1}", "f32[5]", NULL},
    {"%x: f32[5,6], %i: f32[2]", "gather %x, %i {axis=1}", NULL, "indices are i32 or i64"},
    {"%x: f32[], %i: i64[2]", "gather %x, %i {axis=0}", NULL, "axis = 0 is outside [0, -1]"},
    {"%x: f32[n,6], %r: u32[8], %p: u32[1,3]", "descend %x, %r, %p {levels=2, bits=3, mode=\"le\"}", "u32[n,3]", NULL},
    {"%x: f32[4,6], %r: u32[8], %p: u32[3,3]", "descend %x, %r, %p {levels=2, bits=3, mode=\"le\"}", NULL, "rows of x and of places"},
    {"%x: f32[4,6], %r: u32[2], %p: u32[1,3]", "descend %x, %r, %p {levels=2, bits=3, mode=\"le\"}", NULL, "two records at least"},
    {"%x: f32[4,6], %r: u32[8], %p: u32[1,3]", "descend %x, %r, %p {levels=65, bits=3, mode=\"le\"}", NULL, "levels is 65"},
    {"%x: f32[5,6], %i: i64[7,2]", "gather_elements %x, %i {axis=1}", NULL, "dimension 0: 7 indices; the data has 5"},
    {"%x: f32[2,3,4], %i: i64[2,5,2]", "gather_nd %x, %i", "f32[2,5,4]", NULL},
    {"%x: f32[2,3,4], %i: i64[2,5,1]", "gather_nd %x, %i {batch_dims=1}", "f32[2,5,4]", NULL},
    {"%x: f32[2,3], %i: i64[2,5,3]", "gather_nd %x, %i", NULL, "tuples have 3 entries; 1 to 2 are possible"},
    {"%x: f32[4,5], %i: i64[2,1], %u: f32[2,5]", "scatter_nd %x, %i, %u {reduction=\"add\"}", "f32[4,5]", NULL},
    {"%x: f32[4,5], %i: i64[2,1], %u: f32[2,4]", "scatter_nd %x, %i, %u", NULL, "dimensions of the updates: 4 and 5"},
    {"%i: i64[2,3], %v: f32[2]", "one_hot %i, %v {axis=2, dims=[9]}", "f32[2,3,9]", NULL},
    {"%i: i64[2,3], %v: f32[3]", "one_hot %i, %v {axis=2, dims=[9]}", NULL, "two are wanted: off and on"},
    {"%x: f32[4,5], %l: i64[5]", "reverse_sequence %x, %l {axes=[0, 1]}", "f32[4,5]", NULL},
    {"%x: f32[4,5], %l: i64[5]", "reverse_sequence %x, %l {axes=[1, 1]}", NULL, "both axis 1"},
    /* generators, images, opaque */
    {"%x: f32[n,7]", "symbols {dims=[n, 7]}", "i64[2]", NULL},
    {"%x: f32[n,7]", "symbols {dims=[n, 7], mode=\"scalar\"}", NULL, "a scalar has one"},
    {"%a: f32[], %b: f32[]", "range %a, %b {dims=[5]}", "f32[5]", NULL},
    {"%x: f32[]", "eye {dims=[3, 4], dtype=i8}", "i8[3,4]", NULL},
    {"%x: f32[4]", "trilu %x", NULL, "a triangle has two or more"},
    {"%x: f32[1,2,4,4]", "resize %x {dims=[1, 2, 8, 9], mode=\"linear\"}", "f32[1,2,8,9]", NULL},
    {"%x: f32[4]", "resize %x {dims=[8], scales=[0], mode=\"linear\"}", NULL, "a scale is positive"},
    {"%x: f32[4]", "resize %x {dims=[8], mode=\"area\"}", NULL, "mode = area is not one of nearest|linear|cubic"},
    {"%x: f32[0]", "resize %x {dims=[8], mode=\"linear\"}", NULL, "nothing to sample"},
    {"%x: f32[400]", "resize %x {dims=[4], mode=\"linear\", antialias=1}", NULL, "1/32 or more is possible"},
    {"%x: f32[1,2,4,4], %g: f32[1,5,6,2]", "grid_sample %x, %g", "f32[1,2,5,6]", NULL},
    {"%x: f32[1,2,4,4], %g: f32[1,5,6,3]", "grid_sample %x, %g", NULL, "2 coordinates are wanted"},
    {"%x: f32[3,2,4,4], %g: f32[7,5,6,2], %i: i64[7]", "grid_sample %x, %g, %i", "f32[7,2,5,6]", NULL},
    {"%x: f32[3,2,4,4], %g: f32[7,5,6,2], %i: i32[7]", "grid_sample %x, %g, %i", NULL, "an i64 vector is wanted"},
    {"%x: f32[1,2,2,2,3,3]", "col2im %x {dims=[6, 4], strides=[2, 1], dilations=[1, 1], pads=[0, 0, 0, 0]}", "f32[1,2,6,4]", NULL},
    {"%x: f32[1,2,2,2,3,3]", "col2im %x {dims=[8, 4], strides=[2, 1], dilations=[1, 1], pads=[0, 0, 0, 0]}", NULL,
     "numbers of windows: 3 and 4"},
    {"%x: f32[1,2,2,2,3]", "col2im %x {dims=[8, 4], strides=[2, 1], dilations=[1, 1], pads=[0, 0, 0, 0]}", NULL,
     "windows have rank 5"},
    {"%x: f32[4,5]", "topk %x {axis=1, dims=[6]}", NULL, "k = 6 is more than the 5 elements"},
    {"%x: f32[4,5]", "nonzero %x {symbol=7}", NULL, "symbol = 7 is no symbol"},
    {"%x: str[4]", "add %x, %x", NULL, "input 0 is str; add takes a number"},
    {"%x: str[4]", "eq %x, %x", NULL, "no narrow type and no string"},
    {"%x: f32[4]", "text_join %x, %x", NULL, "input 0 is f32; text_join takes strings"},
    {"%x: str[4], %y: str[1]", "text_join %x, %y", NULL, "dimensions of the inputs"},
    {"%x: str[4], %y: str[2]", "text_split %x, %y {symbol=0}", NULL, "input 1"},
    {"%x: str[4]", "text_split %x, %x {symbol=9}", NULL, "input 1"},
    {"%x: str[4], %p: i64[4,2]", "text_match %x, %p", NULL, "i64[n,3] of 1 to 4096 rows is wanted"},
    {"%x: str[4]", "text_read %x {dtype=f16}", NULL, "strings are read as integers, f32 and f64"},
    {"%x: str[4]", "text_write %x", NULL, "text_write takes no narrow type and no string"},
};
/* clang-format on */

START_TEST(each_case)
{
    const infer_case *c = &cases[_i];
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_graph *graph = NULL;
    dlc_diag_init(&diag, arena);
    char *text = dlc_arena_printf(arena, "graph @t(%s) -> %%y {\n  %%y: %s = %s\n}\n", c->inputs,
                                  c->type ? c->type : "f32[]", c->node);
    dlc_status status = dlc_graph_parse(text, "t", arena, &diag, &graph);
    const char *found = diag.nmessages ? diag.messages[0].text : "no message";
    if (c->type)
        ck_assert_msg(status == DLC_OK, "%s: %s", c->node, found);
    else
        ck_assert_msg(status != DLC_OK && strstr(found, c->message), "%s: found: %s", c->node,
                      found);
    if (graph)
        ck_assert_msg(dlc_graph_verify(graph, &diag) == DLC_OK, "%s: %s", c->node,
                      diag.nmessages ? diag.messages[0].text : "");
    dlc_arena_destroy(arena);
}
END_TEST

/* What symbols decide becomes a condition of the run, and both dimensions one expression. */
START_TEST(symbols_make_conditions)
{
    static const char text[] = "graph @t(%a: f32[4,n], %b: f32[m,4]) -> %z {\n"
                               "  %y: f32[4,4] = matmul %a, %b\n"
                               "  %z: f32[4,4] = matmul %y, %y\n"
                               "}\n";
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_graph *graph;
    dlc_diag_init(&diag, arena);
    ck_assert_int_eq(dlc_graph_parse(text, "t", arena, &diag, &graph), DLC_OK);
    ck_assert_uint_eq(graph->conditions.n, 1);
    ck_assert_msg(strstr(graph->conditions.data[0].text, "n and m must be equal") != NULL, "%s",
                  graph->conditions.data[0].text);
    ck_assert_uint_eq(dlc_graph_same(graph, dlc_expr_sym(graph->pool, 1)),
                      dlc_expr_sym(graph->pool, 0));
    dlc_arena_destroy(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("infer");
    TCase *tcase = tcase_create("infer");
    tcase_add_loop_test(tcase, each_case, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_test(tcase, symbols_make_conditions);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
