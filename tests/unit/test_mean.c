/*
 * Meanings, run by the interpreter: hand-computed cases for what other engines get wrong, and
 * independent loops (written from the definitions, not from the meanings) for contractions and
 * windows. Every kernel is verified on the way, and every row of ops.def that has a meaning must
 * occur.
 */
#include "ir/interp/interp.h"
#include "ir/graph/op.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/small_arena.h"
#include "tests/unit/suite.h"

static uint8_t is_covered[DLC_OP_COUNT];

static const char *message(void)
{
    return diag.nmessages ? diag.messages[diag.nmessages - 1].text : "";
}

/* --- running graphs without symbols: memory per value --- */

static void *bytes_of(dlc_graph *graph, void **memory, const dlc_value *value)
{
    size_t size = 0;
    if (value->data)
        return (void *)(uintptr_t)value->data->bytes;
    ck_assert(dlc_type_bytes(graph->pool, &value->type, &size));
    if (!memory[value->id])
        memory[value->id] = dlc_arena_alloc(arena, size + 1, 64);
    return memory[value->id];
}

static dlc_status run_node(dlc_graph *graph, dlc_node *node, dlc_interp_mode mode, void **memory)
{
    dlc_node_kernel built;
    ck_assert_msg(dlc_node_kernel_of(graph, node, arena, &built) == DLC_OK, "%s", message());
    dlc_status verified = dlc_kernel_verify(built.kernel, &diag);
    ck_assert_msg(verified == DLC_OK, "%s: %s", dlc_ops[node->op].text, message());
    dlc_kernel_simplify(built.kernel);
    verified = dlc_kernel_verify(built.kernel, &diag);
    ck_assert_msg(verified == DLC_OK, "%s, simplified: %s", dlc_ops[node->op].text, message());
    void **buffers = dlc_new_array(arena, void *, built.values.n + 1);
    for (uint32_t b = 0; b < built.values.n; b++)
        buffers[b] = bytes_of(graph, memory, built.values.data[b]);
    dlc_interp_args args = {.buffers = buffers};
    is_covered[node->op] = 1;
    return dlc_interp_run(built.kernel, mode, &args, &diag);
}

/* Runs all nodes; *result: the bytes of output 0. */
static dlc_status run_text(const char *text, dlc_interp_mode mode, dlc_graph **graph, void **result)
{
    dlc_status status = dlc_graph_parse(text, "t", arena, &diag, graph);
    ck_assert_msg(status == DLC_OK, "%s: %s", message(), text);
    void **memory = dlc_new_array(arena, void *, (*graph)->nvalues + 1);
    for (dlc_node *node = (*graph)->first; node && status == DLC_OK; node = node->next)
        if (node->op != DLC_OP_CONSTANT)
            status = run_node(*graph, node, mode, memory);
    *result = bytes_of(*graph, memory, (*graph)->outputs.data[0].value);
    return status;
}

/* --- hand-computed cases --- */

/* clang-format off */
static const struct { const char *nodes, *expected; } cases[] = {
    /* pointwise: NaN, infinities, signs, halves to even */
    {"%x: f32[4] = const [-1, nan, 2, -inf]\n %y: f32[4] = relu %x", "0 nan 2 0"},
    {"%x: f32[2] = const [-3, 0]\n %y: f32[2] = neg %x", "3 0"},
    {"%x: f32[2] = const [-3, nan]\n %y: f32[2] = abs %x", "3 nan"},
    {"%x: f32[4] = const [-3, 0, 7, nan]\n %y: f32[4] = sign %x", "-1 0 1 nan"},
    {"%x: u8[2] = const [0, 200]\n %y: u8[2] = sign %x", "0 1"},
    {"%x: f32[4] = const [0.5, 1.5, 2.5, -0.5]\n %y: f32[4] = round %x", "0 2 2 0"},
    {"%x: f32[2] = const [1.5, -1.5]\n %y: f32[2] = floor %x", "1 -2"},
    {"%x: f32[2] = const [1.5, -1.5]\n %y: f32[2] = ceil %x", "2 -1"},
    {"%x: f32[2] = const [4, -1]\n %y: f32[2] = sqrt %x", "2 nan"},
    {"%x: f32[2] = const [4, 0]\n %y: f32[2] = reciprocal %x", "0.25 inf"},
    {"%x: f32[2] = const [0, 1]\n %y: f32[2] = exp %x", "1 2.718281828"},
    {"%x: f32[2] = const [1, 0]\n %y: f32[2] = log %x", "0 -inf"},
    {"%x: f32[1] = const [1]\n %y: f32[1] = sin %x", "0.8414709848"},
    {"%x: f32[1] = const [1]\n %y: f32[1] = cos %x", "0.5403023059"},
    {"%x: f32[1] = const [1]\n %y: f32[1] = tan %x", "1.557407725"},
    {"%x: f32[1] = const [0.5]\n %y: f32[1] = asin %x", "0.5235987756"},
    {"%x: f32[1] = const [0.5]\n %y: f32[1] = acos %x", "1.047197551"},
    {"%x: f32[1] = const [0.5]\n %y: f32[1] = atan %x", "0.463647609"},
    {"%x: f32[1] = const [0.5]\n %y: f32[1] = sinh %x", "0.5210953055"},
    {"%x: f32[1] = const [0.5]\n %y: f32[1] = cosh %x", "1.127625965"},
    {"%x: f32[1] = const [0.5]\n %y: f32[1] = asinh %x", "0.4812118251"},
    {"%x: f32[1] = const [1.5]\n %y: f32[1] = acosh %x", "0.9624236501"},
    {"%x: f32[1] = const [0.5]\n %y: f32[1] = atanh %x", "0.5493061443"},
    {"%x: f32[2] = const [0.0001, 50]\n %y: f32[2] = tanh %x", "0.0000999999997 1"},
    {"%x: f32[2] = const [0.0001, 9]\n %y: f32[2] = erf %x", "0.000112837916 1"},
    {"%x: f32[4] = const [0, -200, 200, 1]\n %y: f32[4] = sigmoid %x", "0.5 0 1 0.7310585786"},
    {"%x: f32[2] = const [-2, 3]\n %y: f32[2] = leaky_relu %x {alpha=0.5}", "-1 3"},
    {"%x: f32[2] = const [1, 3]\n %y: f32[2] = thresholded_relu %x {alpha=1}", "0 3"},
    {"%x: f32[2] = const [0, 1000]\n %y: f32[2] = soft_cap %x {alpha=3}", "0 3"},
    {"%x: f32[2] = const [-200, 200]\n %y: f32[2] = elu %x {alpha=2}", "-2 200"},
    {"%x: f32[2] = const [-200, 2]\n %y: f32[2] = selu %x {alpha=2, gamma=3}", "-6 6"},
    {"%x: f32[2] = const [-2, 2]\n %y: f32[2] = celu %x {alpha=2}", "-1.264241118 2"},
    {"%x: f32[3] = const [-200, 200, 0]\n %y: f32[3] = softplus %x", "0 200 0.6931471806"},
    {"%x: f32[2] = const [-3, 1]\n %y: f32[2] = softsign %x", "-0.75 0.5"},
    {"%x: f32[3] = const [-3, 1, 9]\n %y: f32[3] = hard_sigmoid %x {alpha=0.25, beta=0.5}", "0 0.75 1"},
    {"%x: f32[3] = const [-4, 0, 6]\n %y: f32[3] = hard_swish %x", "0 0 6"},
    {"%x: f32[2] = const [0, 100]\n %y: f32[2] = mish %x", "0 100"},
    {"%x: f32[2] = const [0, 1]\n %y: f32[2] = swish %x {alpha=1}", "0 0.7310585786"},
    {"%x: f32[2] = const [1, -10]\n %y: f32[2] = gelu %x", "0.8413447461 0"},
    {"%x: f32[1] = const [1]\n %y: f32[1] = gelu %x {mode=\"tanh\"}", "0.8411919906"},
    {"%x: f32[3] = const [-2, 1, 2]\n %y: f32[3] = shrink %x {alpha=0.5, beta=1.5}", "-1.5 0 1.5"},
    {"%x: bool[2] = const [true, false]\n %y: bool[2] = not %x", "0 1"},
    {"%x: u8[1] = const [1]\n %y: u8[1] = not %x", "254"},
    {"%x: f32[3] = const [nan, 1, inf]\n %y: bool[3] = is_nan %x", "1 0 0"},
    {"%x: f32[3] = const [-inf, nan, inf]\n %y: bool[3] = is_inf %x {mode=\"positive\"}", "0 0 1"},
    {"%x: f32[3] = const [-inf, nan, inf]\n %y: bool[3] = is_inf %x", "1 0 1"},
    {"%x: f32[4] = const [-1.9, nan, 300, -300]\n %y: i8[4] = cast %x {dtype=i8}", "-1 0 127 -128"},
    {"%x: f32[3] = const [0, nan, 0.1]\n %y: bool[3] = cast %x {dtype=bool}", "0 1 1"},
    {"%x: i32[2] = const [300, -300]\n %y: i8[2] = cast %x {dtype=i8}", "44 -44"},
    {"%x: i32[2] = const [300, -300]\n %y: i8[2] = cast %x {dtype=i8, saturate=1}", "127 -128"},
    {"%x: f32[2,3] = const [2, 3, 4, -1, 0.5, 8]\n %y: f32[2,3] = cumprod %x {axis=1}", "2 6 24 -1 -0.5 -4"},
    {"%x: i32[4] = const [2, 3, 4, 5]\n %y: i32[4] = cumprod %x {axis=0, exclusive=1, reverse=1}", "60 20 5 1"},
    /* small floats: ties to even, saturation, carries into the exponent, specials, minus zero */
    {"%x: f32[6] = const [0.2265625, 500, -0.0, nan, 0.001, 464]\n"
     " %y: f8e4m3fn[6] = cast %x {dtype=f8e4m3fn, saturate=1}", "38 126 128 127 1 126"},
    {"%x: f32[4] = const [480, inf, nan, -1e9]\n %y: f8e4m3fn[4] = cast %x {dtype=f8e4m3fn, saturate=0}",
     "127 127 127 255"},
    {"%x: f32[5] = const [60000, inf, -inf, nan, 61440]\n %y: f8e5m2[5] = cast %x {dtype=f8e5m2, saturate=0}",
     "123 124 252 126 124"},
    {"%x: f32[4] = const [-0.0, nan, 300, 1]\n %y: f8e4m3fnuz[4] = cast %x {dtype=f8e4m3fnuz, saturate=0}",
     "0 128 128 64"},
    {"%x: f64[1] = const [1.0625000000001]\n %y: f8e4m3fn[1] = cast %x {dtype=f8e4m3fn}", "57"},
    {"%x: f32[5] = const [0.25, 0.75, 2.5, -9, nan]\n %y: f4e2m1[5] = cast %x {dtype=f4e2m1}", "0 2 4 15 8"},
    {"%x: f32[4] = const [1.1, 0, 0.25, 2]\n %y: f8e8m0[4] = cast %x {dtype=f8e8m0, mode=\"down\"}",
     "127 0 125 128"},
    {"%x: i32[4] = const [-9, 8, 7, -1]\n %y: i4[4] = cast %x {dtype=i4}", "7 248 7 255"},
    {"%x: u8[3] = const [5, 7, 255]\n %y: u2[3] = cast %x {dtype=u2}", "1 3 3"},
    {"%x: f8e4m3fn[5] = const [1, 126, 255, 56, 184]\n %y: f32[5] = cast %x {dtype=f32}",
     "0.001953125 448 nan 1 -1"},
    {"%x: f8e5m2[3] = const [124, 252, 1]\n %y: f32[3] = cast %x {dtype=f32}", "inf -inf 1.52587890625e-05"},
    {"%x: f8e5m2fnuz[2] = const [128, 127]\n %y: f32[2] = cast %x {dtype=f32}", "nan 57344"},
    {"%x: i4[3] = const [248, 7, 12]\n %y: i8[3] = cast %x {dtype=i8}", "-8 7 -4"},
    {"%x: f8e8m0[2] = const [127, 255]\n %y: f32[2] = cast %x {dtype=f32}", "1 nan"},
    {"%x: f32[1] = const [1]\n %y: i32[1] = bitcast %x {dtype=i32}", "1065353216"},
    /* two inputs */
    {"%a: f32[2,1] = const [1, 2]\n %b: f32[2] = const [10, 20]\n %y: f32[2,2] = add %a, %b", "11 21 12 22"},
    {"%a: i32[1] = const [2147483647]\n %b: i32[] = const [1]\n %y: i32[1] = add %a, %b", "-2147483648"},
    {"%a: f32[2] = const [1, 2]\n %b: f32[2] = const [10, 20]\n %y: f32[2] = sub %a, %b", "-9 -18"},
    {"%a: f16[2] = const [3, 2]\n %b: f16[2] = const [10, 20]\n %y: f16[2] = mul %a, %b", "30 40"},
    {"%a: i32[4] = const [7, -7, 7, -2147483648]\n %b: i32[4] = const [2, 2, 0, -1]\n %y: i32[4] = div %a, %b",
     "3 -3 0 -2147483648"},
    {"%a: i32[4] = const [7, -7, 7, -7]\n %b: i32[4] = const [3, 3, -3, 0]\n %y: i32[4] = mod %a, %b", "1 2 -2 0"},
    {"%a: i32[4] = const [7, -7, 7, -7]\n %b: i32[4] = const [3, 3, -3, 0]\n %y: i32[4] = rem %a, %b", "1 -1 1 0"},
    {"%a: f32[2] = const [-5.5, 5.5]\n %b: f32[2] = const [2, -2]\n %y: f32[2] = rem %a, %b", "-1.5 1.5"},
    {"%a: f32[3] = const [0, 2, -2]\n %b: f32[3] = const [0, 0.5, 3]\n %y: f32[3] = pow %a, %b", "1 1.414213562 -8"},
    {"%a: f32[2] = const [3, -2]\n %b: i64[] = const [2]\n %y: f32[2] = pow %a, %b", "9 4"},
    {"%a: i64[4] = const [3, -1, 2, 0]\n %b: i64[4] = const [39, -3, -1, 0]\n %y: i64[4] = pow %a, %b",
     "4052555153018976267 -1 0 1"},
    {"%a: i32[2] = const [3, 7]\n %b: f32[2] = const [4, 0.5]\n %y: i32[2] = pow %a, %b", "81 2"},
    {"%a: f32[3] = const [1, nan, 3]\n %b: f32[3] = const [nan, 2, 2]\n %y: f32[3] = min %a, %b", "nan nan 2"},
    {"%a: f32[3] = const [1, nan, 3]\n %b: f32[3] = const [nan, 2, 2]\n %y: f32[3] = max %a, %b", "nan nan 3"},
    {"%x: f32[3] = const [-9, nan, 9]\n %l: f32[] = const [3]\n %h: f32[] = const [1]\n %y: f32[3] = clip %x, %l, %h",
     "1 nan 1"},
    {"%x: i8[3] = const [-9, 0, 9]\n %h: i8[] = const [1]\n %y: i8[3] = clip %x, _, %h", "-9 0 1"},
    {"%x: f32[2,2] = const [-1, -2, 3, -4]\n %s: f32[2] = const [10, 100]\n %y: f32[2,2] = prelu %x, %s",
     "-10 -200 3 -400"},
    {"%a: f32[2,1] = const [2, 3]\n %b: f32[2] = const [10, 100]\n %c: f32[] = const [0.5]\n %y: f32[2,2] = muladd %a, %b, %c",
     "20.5 200.5 30.5 300.5"},
    {"%a: f32[1] = const [16777215]\n %c: f32[1] = const [-281474943156224]\n %y: f32[1] = muladd %a, %a, %c", "1"}, /* rounded once */
    {"%a: bool[2] = const [true, true]\n %b: bool[2] = const [true, false]\n %y: bool[2] = and %a, %b", "1 0"},
    {"%a: u8[1] = const [12]\n %b: u8[1] = const [10]\n %y: u8[1] = or %a, %b", "14"},
    {"%a: u8[1] = const [12]\n %b: u8[1] = const [10]\n %y: u8[1] = xor %a, %b", "6"},
    {"%a: u8[3] = const [3, 3, 255]\n %b: u8[3] = const [1, 8, 9]\n %y: u8[3] = shl %a, %b", "6 0 0"},
    {"%a: i8[3] = const [-3, 64, -1]\n %b: i8[3] = const [1, 9, 9]\n %y: i8[3] = shr %a, %b", "-2 0 -1"},
    {"%a: f32[3] = const [1, nan, 2]\n %b: f32[3] = const [2, 1, 2]\n %y: bool[3] = lt %a, %b", "1 0 0"},
    {"%a: f32[3] = const [1, nan, 2]\n %b: f32[3] = const [2, 1, 2]\n %y: bool[3] = le %a, %b", "1 0 1"},
    {"%a: f32[3] = const [1, nan, 2]\n %b: f32[3] = const [2, nan, 2]\n %y: bool[3] = eq %a, %b", "0 0 1"},
    {"%c: bool[2,1] = const [true, false]\n %a: f32[2] = const [1, 2]\n %b: f32[] = const [9]\n"
     " %y: f32[2,2] = where %c, %a, %b", "1 2 9 9"},
    /* reductions: empty ones, NaN, ties, rounding once */
    {"%x: f32[2,2] = const [1, 2, 3, 4]\n %y: f32[2] = reduce_sum %x {axes=[0]}", "4 6"},
    {"%x: f32[0] = const []\n %y: f32[] = reduce_sum %x {axes=[0]}", "0"},
    {"%x: f32[0] = const []\n %y: f32[] = reduce_prod %x {axes=[0]}", "1"},
    {"%x: f32[0] = const []\n %y: f32[] = reduce_max %x {axes=[0]}", "-inf"},
    {"%x: f32[0] = const []\n %y: f32[] = reduce_mean %x {axes=[0]}", "nan"},
    {"%x: f32[2,2] = const [1, 2, 3, 4]\n %y: f32[1,1] = reduce_mean %x {axes=[0, 1], keepdims=1}", "2.5"},
    {"%x: i32[2] = const [2147483647, 2147483645]\n %y: i32[] = reduce_mean %x {axes=[0]}", "2147483646"},
    {"%x: f16[4096] = const fill(1)\n %y: f16[] = reduce_sum %x {axes=[0]}", "4096"}, /* f16 sums stop at 2048 */
    {"%x: f32[3] = const [2, nan, 3]\n %y: f32[] = reduce_min %x {axes=[0]}", "nan"},
    {"%x: bool[2] = const [true, false]\n %y: bool[] = reduce_max %x {axes=[0]}", "1"},
    {"%x: bool[2] = const [true, false]\n %y: bool[] = reduce_min %x {axes=[0]}", "0"},
    {"%x: f32[5] = const [1, 3, 0, 3, 1]\n %y: i64[] = argmax %x {axis=0}", "1"},
    {"%x: f32[5] = const [1, 3, 0, 3, 1]\n %y: i64[] = argmax %x {axis=0, last=1}", "3"},
    {"%x: f32[2,2] = const [1, 0, 0, 0]\n %y: i64[2,1] = argmin %x {axis=1, keepdims=1, last=1}", "1 1"},
    {"%x: f32[2,3] = const [1, 2, 3, 4, 5, 6]\n %y: f32[2,3] = cumsum %x {axis=1}", "1 3 6 4 9 15"},
    {"%x: f32[2,3] = const [1, 2, 3, 4, 5, 6]\n %y: f32[2,3] = cumsum %x {axis=0, reverse=1}", "5 7 9 4 5 6"},
    {"%x: i32[3] = const [1, 2, 3]\n %y: i32[3] = cumsum %x {axis=0, exclusive=1}", "0 1 3"},
    {"%x: f16[3] = const [1, 2, 3]\n %y: f16[3] = cumsum %x {axis=0, exclusive=1, reverse=1}", "5 3 0"},
    /* contractions */
    {"%a: f32[2,2] = const [1, 2, 3, 4]\n %b: f32[2,1] = const [5, 6]\n %y: f32[2,1] = matmul %a, %b", "17 39"},
    {"%a: f32[2,0] = const []\n %b: f32[0,2] = const []\n %y: f32[2,2] = matmul %a, %b", "0 0 0 0"},
    {"%a: f32[2,2] = const [1, 2, 3, 4]\n %y: f32[2] = einsum %a {equation=\"ii->i\"}", "1 4"},
    {"%a: f32[2,2] = const [1, 2, 3, 4]\n %y: f32[] = einsum %a {equation=\"ij->\"}", "10"},
    {"%a: f32[2] = const [1, 2]\n %b: f32[2] = const [3, 4]\n %y: f32[2,2] = einsum %a, %b {equation=\"i,j->ji\"}",
     "3 6 4 8"},
    /* windows: padding, dilation, dropped windows, NaN, indices */
    {"%x: f32[1,1,4] = const [-1, -2, -3, -4]\n %y: f32[1,1,5] = max_pool %x {kernel=[2], pads=[1, 1]}", "-1 -1 -2 -3 -4"},
    {"%x: u8[1,1,3] = const [5, 7, 6]\n %y: u8[1,1,2] = max_pool %x {kernel=[2]}", "7 7"},
    {"%x: f32[1,1,3] = const [1, nan, 2]\n %y: f32[1,1,2] = max_pool %x {kernel=[2]}", "nan nan"},
    {"%x: f32[1,1,4] = const [1, 2, 3, 4]\n %y: f32[1,1,3] = avg_pool %x {kernel=[3], strides=[2], pads=[1, 1], dims=[3]}",
     "1.5 3 4"},
    {"%x: f32[1,1,4] = const [1, 2, 3, 4]\n"
     " %y: f32[1,1,3] = avg_pool %x {kernel=[3], strides=[2], pads=[1, 1], dims=[3], count_pad=1}", "1 3 2"},
    {"%x: f32[1,1,3] = const [3, -4, 0]\n %y: f32[1,1,2] = lp_pool %x {kernel=[2], p=2}", "5 4"},
    {"%x: f32[1,1,3] = const [3, -4, 0]\n %y: f32[1,1,2] = lp_pool %x {kernel=[2], p=1}", "7 4"},
    {"%x: f32[1,1,3] = const [1, 2, 3]\n %w: f32[1,1,2] = const [10, 1]\n %y: f32[1,1,4] = conv %x, %w {pads=[1, 1]}",
     "1 12 23 30"},
    {"%x: f32[1,1,2] = const [1, 2]\n %w: f32[1,1,3] = const [1, 10, 100]\n"
     " %y: f32[1,1,6] = conv_transpose %x, %w {strides=[2], output_padding=[1]}", "1 10 102 20 200 0"},
    /* views */
    {"%x: f32[2,3] = const [1, 2, 3, 4, 5, 6]\n %y: f32[3,2] = reshape %x {dims=[3, 2]}", "1 2 3 4 5 6"},
    {"%x: f32[0,3] = const []\n %y: f32[3,0,2] = reshape %x {dims=[3, 0, 2]}", ""},
    {"%x: f32[2,3] = const [1, 2, 3, 4, 5, 6]\n %y: f32[3,2] = transpose %x {perm=[1, 0]}", "1 4 2 5 3 6"},
    {"%x: f32[2,1] = const [1, 2]\n %y: f32[2,2,2] = expand %x {dims=[2, 2, 2]}", "1 1 2 2 1 1 2 2"},
    {"%x: f32[5] = const [0, 1, 2, 3, 4]\n %y: f32[3] = slice %x {starts=[4], steps=[-2], dims=[3]}", "4 2 0"},
    {"%a: f32[2,1] = const [1, 2]\n %b: f32[2,0] = const []\n %c: f32[2,2] = const [3, 4, 5, 6]\n"
     " %y: f32[2,3] = concat %a, %b, %c {axis=1}", "1 3 4 2 5 6"},
    {"%x: f32[3] = const [1, 2, 3]\n %v: f32[] = const [9]\n %y: f32[5] = pad %x, %v {pads=[-1, 3]}", "2 3 9 9 9"},
    {"%x: f32[3] = const [1, 2, 3]\n %y: f32[9] = pad %x {pads=[3, 3], mode=\"reflect\"}", "2 3 2 1 2 3 2 1 2"},
    {"%x: f32[2] = const [1, 2]\n %y: f32[5] = pad %x {pads=[2, 1], mode=\"edge\"}", "1 1 1 2 2"},
    {"%x: f32[3] = const [1, 2, 3]\n %y: f32[6] = pad %x {pads=[2, 1], mode=\"wrap\"}", "2 3 1 2 3 1"},
    {"%x: f32[2] = const [1, 2]\n %y: f32[6] = tile %x {dims=[6]}", "1 2 1 2 1 2"},
    {"%c: bool[] = const [true]\n %a: f32[2] = const [1, 2]\n %b: f32[2] = const [3, 4]\n %y: f32[2] = where %c, %a, %b",
     "1 2"}, /* nothing loads %b */
    /* indices that are data */
    {"%x: f32[3,2] = const [1, 2, 3, 4, 5, 6]\n %i: i64[2] = const [-1, 0]\n %y: f32[2,2] = gather %x, %i {axis=0}",
     "5 6 1 2"},
    {"%x: f32[1] = const [7]\n %i: i64[2] = const [-1, 0]\n %y: f32[2] = gather %x, %i {axis=0}", "7 7"},
    {"%x: f32[2,2] = const [1, 2, 3, 4]\n %i: i32[2,2] = const [0, 0, -1, 0]\n %y: f32[2,2] = gather_elements %x, %i {axis=1}",
     "1 1 4 3"},
    /* x[row, 1] <= 0.5 leads to the leaf at 4, else to that at 2; a leaf leads to itself; NaN is where the third bit says */
    {"%x: f32[4,2] = const [9, 0.25, 9, 0.5, 9, 0.75, 9, nan]\n %r: u32[8] = const [1056964608, 5, 2143289344, 4, 2143289345, 8, 0, 0]\n"
     " %p: u32[1,2] = const [0, 2]\n %y: u32[4,2] = descend %x, %r, %p {levels=3, bits=1, mode=\"le\"}", "4 2 4 2 2 2 2 2"},
    {"%x: f32[4,2] = const [9, 0.25, 9, 0.5, 9, 0.75, 9, nan]\n %r: u32[8] = const [1056964608, 11, 2143289344, 8, 2143289345, 16, 0, 0]\n"
     " %p: u32[1,1] = const [0]\n %y: u32[4,1] = descend %x, %r, %p {levels=1, bits=1, mode=\"gt\", missing=1}", "2 2 4 4"},
    {"%x: f32[2,1] = const [1, 2]\n %r: u32[6] = const [1073741824, 4294967295, 0, 0, 0, 0]\n" /* past the end: the last but one */
     " %p: u32[2,1] = const [0, 99]\n %y: u32[2,1] = descend %x, %r, %p {levels=1, bits=1, mode=\"lt\"}", "4 0"},
    {"%x: f32[2,2] = const [1, 2, 3, 4]\n %i: i64[2,1] = const [1, -1]\n %y: f32[2] = gather_nd %x, %i {batch_dims=1}",
     "2 4"},
    {"%x: f32[2,2] = const [1, 2, 3, 4]\n %i: i64[2,2] = const [0, 1, -1, 0]\n %y: f32[2] = gather_nd %x, %i", "2 3"},
    {"%x: f32[3] = const [1, 2, 3]\n %i: i64[3] = const [1, 1, -1]\n %u: f32[3] = const [10, 20, 30]\n"
     " %y: f32[3] = scatter_elements %x, %i, %u {axis=0}", "1 20 30"},
    {"%x: f32[3] = const [1, 2, 3]\n %i: i64[3] = const [1, 1, -1]\n %u: f32[3] = const [10, 20, 30]\n"
     " %y: f32[3] = scatter_elements %x, %i, %u {axis=0, reduction=\"add\"}", "1 32 33"},
    {"%x: f32[2,2] = const [1, 2, 3, 4]\n %i: i64[2,1] = const [1, 1]\n %u: f32[2,2] = const [10, 0, 0, 10]\n"
     " %y: f32[2,2] = scatter_nd %x, %i, %u {reduction=\"max\"}", "1 2 10 10"},
    {"%x: f32[3,2] = const [1, 2, 3, 4, 5, 6]\n %l: i64[2] = const [2, 3]\n %y: f32[3,2] = reverse_sequence %x, %l {axes=[0, 1]}",
     "3 6 1 4 5 2"},
    {"%x: u8[2,1] = const [177, 6]\n %y: u8[2,2,1] = unpack %x {bits=4}", "1 11 6 0"},
    {"%x: u8[2] = const [228, 27]\n %y: u8[4,2] = unpack %x {bits=2}", "0 3 1 2 2 1 3 0"},
    {"%i: i64[3] = const [-1, 1, 9]\n %v: f32[2] = const [5, 6]\n %y: f32[3,2] = one_hot %i, %v {axis=1, dims=[2]}",
     "5 6 5 6 5 5"},
    /* generators */
    {"%y: i64[3] = symbols {dims=[4, 5, 6]}", "4 5 6"},
    {"%a: f32[] = const [1]\n %d: f32[] = const [-0.5]\n %y: f32[3] = range %a, %d {dims=[3]}", "1 0.5 0"},
    {"%x: f32[2,3] = const [1, 2, 3, 4, 5, 6]\n %k: i64[] = const [1]\n %y: f32[2,3] = trilu %x, %k", "0 2 3 0 0 6"},
    {"%x: f32[2,3] = const [1, 2, 3, 4, 5, 6]\n %y: f32[2,3] = trilu %x {upper=0}", "1 0 0 4 5 0"},
    {"%y: i8[2,3] = eye {dims=[2, 3], axis=1, dtype=i8}", "0 1 0 0 0 1"},
    /* images */
    {"%x: f32[2] = const [1, 2]\n %y: f32[4] = resize %x {dims=[4], mode=\"nearest\", coord=\"asymmetric\", nearest=\"floor\"}",
     "1 1 2 2"},
    {"%x: f32[2] = const [1, 2]\n %y: f32[4] = resize %x {dims=[4], mode=\"linear\"}", "1 1.25 1.75 2"},
    {"%x: f32[3] = const [1, 2, 4]\n %y: f32[5] = resize %x {dims=[5], mode=\"linear\", coord=\"align_corners\"}",
     "1 1.5 2 3 4"},
    {"%x: f32[4] = const [1, 2, 3, 4]\n %y: f32[2] = resize %x {dims=[2], mode=\"linear\", antialias=1}",
     "1.625 3.375"},
    {"%x: f32[4] = const [1, 2, 3, 4]\n"
     " %y: f32[2] = resize %x {dims=[2], mode=\"cubic\", coord=\"asymmetric\", exclude_outside=1}", "1 3"},
    {"%x: f32[1,1,2,2] = const [1, 2, 3, 4]\n %g: f32[1,1,3,2] = const [-1, -1, 0, 0, 3, 3]\n"
     " %y: f32[1,1,1,3] = grid_sample %x, %g {align_corners=1}", "1 2.5 0"},
    {"%x: f32[1,1,2,2] = const [1, 2, 3, 4]\n %g: f32[1,1,2,2] = const [1, -1, 3, 3]\n"
     " %y: f32[1,1,1,2] = grid_sample %x, %g {align_corners=1, coord=\"reflection\", mode=\"nearest\"}", "2 1"},
    {"%x: f32[2,1,1,3] = const [1, 2, 4, 10, 20, 40] %g: f32[3,1,1,2] = const [0, 0, 1.5, 0, 5, 0] %i: i64[3] = const [1, 0, -1]"
     " %y: f32[3,1,1,1] = grid_sample %x, %g, %i {unit=\"pixels\"}", "10 3 0"},
    {"%x: f32[1,1,2,3] = const [1, 2, 3, 10, 20, 30]"
     " %y: f32[1,1,4] = col2im %x {dims=[4], strides=[1], dilations=[1], pads=[0, 0]}", "1 12 23 30"},
};
/* clang-format on */

static double element(dlc_dtype dtype, const void *bytes, int64_t i)
{
    dlc_scalar scalar = dlc_scalar_read(dtype, (const char *)bytes + i * dlc_dtype_bytes(dtype));
    return dlc_is_float(dtype) ? scalar.f : (double)scalar.i;
}

static void check_elements(dlc_graph *graph, const void *bytes, const char *expected,
                           const char *nodes)
{
    const dlc_type *type = &graph->outputs.data[0].value->type;
    int64_t elems = 0;
    ck_assert(dlc_type_elems(graph->pool, type, &elems));
    for (int64_t i = 0; i < elems; i++) {
        char *end;
        double wanted = strtod(expected, &end), found = element(type->dtype, bytes, i);
        ck_assert_msg(end != expected, "%s: too few numbers", nodes);
        int is_near = wanted == found || (isnan(wanted) && isnan(found)) ||
                      fabs(wanted - found) <= 2e-7 * fmax(1, fabs(wanted));
        ck_assert_msg(is_near, "%s: element %d is %.9g, expected %.9g", nodes, (int)i, found,
                      wanted);
        expected = end;
    }
}

static char *graph_text(const char *nodes)
{
    return dlc_arena_printf(arena, "graph @t() -> %%y {\n %s\n}\n", nodes);
}

START_TEST(hand_computed)
{
    static const dlc_interp_mode modes[] = {DLC_STRICT, DLC_WIDE};
    for (int m = 0; m < 2; m++) {
        dlc_graph *graph;
        void *bytes;
        ck_assert_msg(run_text(graph_text(cases[_i].nodes), modes[m], &graph, &bytes) == DLC_OK,
                      "%s", message());
        check_elements(graph, bytes, cases[_i].expected, cases[_i].nodes);
    }
}
END_TEST

/* --- indices out of range --- */

/* clang-format off */
static const char *const out_of_range[] = {
    "%x: f32[3] = const [1, 2, 3]\n %i: i64[1] = const [3]\n %y: f32[1] = gather %x, %i {axis=0}",
    "%x: f32[1] = const [1]\n %i: i64[1] = const [-2]\n %y: f32[1] = gather %x, %i {axis=0}",
    "%x: f32[3] = const [1, 2, 3]\n %i: i64[1,1] = const [-4]\n %y: f32[1] = gather_nd %x, %i",
    "%x: f32[2,1] = const [1, 2]\n %l: i64[1] = const [3]\n %y: f32[2,1] = reverse_sequence %x, %l {axes=[0, 1]}",
    ("%x: f32[3] = const [1, 2, 3]\n %i: i64[1] = const [3]\n %u: f32[1] = const [0]\n"
     " %y: f32[3] = scatter_elements %x, %i, %u {axis=0}"),
};
/* clang-format on */

START_TEST(indices_out_of_range_are_reported)
{
    dlc_graph *graph;
    void *bytes;
    ck_assert_int_eq(run_text(graph_text(out_of_range[_i]), DLC_STRICT, &graph, &bytes),
                     DLC_INVALID);
    ck_assert_msg(strstr(message(), "out of range") != NULL, "%s", message());
}
END_TEST

/* --- convolutions against loops --- */

typedef struct {
    int64_t n, ic, oc, group, h, w, kh, kw, sh, sw, dh, dw, pt, pl, pb, pr, eh,
        ew; /* eh, ew: output padding */
} conv_case;

/* clang-format off */
static const conv_case convs[] = {
    {.n = 2, .ic = 3, .oc = 4, .group = 1, .h = 7, .w = 6, .kh = 3, .kw = 2, .sh = 1, .sw = 1, .dh = 1, .dw = 1},
    {.n = 1, .ic = 4, .oc = 6, .group = 2, .h = 9, .w = 8, .kh = 3, .kw = 3, .sh = 2, .sw = 1, .dh = 1, .dw = 2, .pt = 1, .pl = 2,
     .pb = 0, .pr = 1, .eh = 1},
    {.n = 1, .ic = 4, .oc = 4, .group = 4, .h = 6, .w = 6, .kh = 3, .kw = 3, .sh = 1, .sw = 2, .dh = 1, .dw = 1, .pt = 1, .pl = 1,
     .pb = 1, .pr = 1, .ew = 1}, /* depthwise */
    {.n = 1, .ic = 2, .oc = 6, .group = 2, .h = 5, .w = 5, .kh = 2, .kw = 2, .sh = 3, .sw = 3, .dh = 2, .dw = 1, .pt = 1, .pl = 0,
     .pb = 2, .pr = 0, .eh = 2, .ew = 1}, /* three filters per channel */
    {.n = 1, .ic = 1, .oc = 1, .group = 1, .h = 1, .w = 1, .kh = 1, .kw = 1, .sh = 1, .sw = 1, .dh = 1, .dw = 1},
};
/* clang-format on */

static char *conv_text(const conv_case *c, int transposed, int64_t oh, int64_t ow)
{
    return dlc_arena_printf(
        arena,
        "graph @t() -> %%y {\n %%x: f32[%d,%d,%d,%d] = const hash(1)\n %%w: f32[%d,%d,%d,%d] = "
        "const hash(2)\n"
        " %%y: f32[%d,%d,%d,%d] = %s %%x, %%w {strides=[%d, %d], dilations=[%d, %d], pads=[%d, %d, "
        "%d, %d], group=%d%s}\n}\n",
        (int)c->n, (int)c->ic, (int)c->h, (int)c->w, (int)(transposed ? c->ic : c->oc),
        (int)((transposed ? c->oc : c->ic) / c->group), (int)c->kh, (int)c->kw, (int)c->n,
        (int)c->oc, (int)oh, (int)ow, transposed ? "conv_transpose" : "conv", (int)c->sh,
        (int)c->sw, (int)c->dh, (int)c->dw, (int)c->pt, (int)c->pl, (int)c->pb, (int)c->pr,
        (int)c->group,
        transposed ? dlc_arena_printf(arena, ", output_padding=[%d, %d]", (int)c->eh, (int)c->ew)
                   : "");
}

/* One term: output channel o of image i at (y, x) takes input channel c at (v, u) times the filter
 * at (a, b). */
typedef void (*conv_term)(const conv_case *c, const float *x, const float *w, double *out,
                          int64_t oh, int64_t ow, const int64_t *at);

/* at: image, group, channel out and in within it, output place, filter place */
static void gather_term(const conv_case *c, const float *x, const float *w, double *out, int64_t oh,
                        int64_t ow, const int64_t *at)
{
    int64_t v = at[4] * c->sh - c->pt + at[6] * c->dh, u = at[5] * c->sw - c->pl + at[7] * c->dw;
    int64_t icg = c->ic / c->group, ocg = c->oc / c->group, o = at[1] * ocg + at[2],
            i = at[1] * icg + at[3];
    if (v < 0 || v >= c->h || u < 0 || u >= c->w)
        return;
    out[((at[0] * c->oc + o) * oh + at[4]) * ow + at[5]] +=
        (double)x[((at[0] * c->ic + i) * c->h + v) * c->w + u] *
        w[((o * icg + at[3]) * c->kh + at[6]) * c->kw + at[7]];
}

/* The transposed convolution in its own form: each input element is spread over the output. */
static void scatter_term(const conv_case *c, const float *x, const float *w, double *out,
                         int64_t oh, int64_t ow, const int64_t *at)
{
    int64_t v = at[4] * c->sh - c->pt + at[6] * c->dh, u = at[5] * c->sw - c->pl + at[7] * c->dw;
    int64_t icg = c->ic / c->group, ocg = c->oc / c->group, o = at[1] * ocg + at[2],
            i = at[1] * icg + at[3];
    if (v < 0 || v >= oh || u < 0 || u >= ow)
        return;
    out[((at[0] * c->oc + o) * oh + v) * ow + u] +=
        (double)x[((at[0] * c->ic + i) * c->h + at[4]) * c->w + at[5]] *
        w[((i * ocg + at[2]) * c->kh + at[6]) * c->kw + at[7]];
}

static void all_terms(const conv_case *c, conv_term term, int64_t rows, int64_t columns,
                      const float *x, const float *w, double *out, int64_t oh, int64_t ow)
{
    int64_t sizes[] = {c->n,  c->group, c->oc / c->group, c->ic / c->group, rows, columns,
                       c->kh, c->kw},
            at[8] = {0};
    for (int d = 7; d >= 0;) {
        term(c, x, w, out, oh, ow, at);
        for (d = 7; d >= 0 && ++at[d] == sizes[d]; d--)
            at[d] = 0;
    }
}

static void check_conv(const conv_case *c, int transposed)
{
    int64_t reach_h = c->dh * (c->kh - 1) + 1, reach_w = c->dw * (c->kw - 1) + 1;
    int64_t oh = (c->h + c->pt + c->pb - reach_h) / c->sh + 1,
            ow = (c->w + c->pl + c->pr - reach_w) / c->sw + 1;
    if (transposed) {
        oh = (c->h - 1) * c->sh + reach_h + c->eh - c->pt - c->pb;
        ow = (c->w - 1) * c->sw + reach_w + c->ew - c->pl - c->pr;
    }
    dlc_graph *graph;
    void *bytes;
    ck_assert_msg(run_text(conv_text(c, transposed, oh, ow), DLC_STRICT, &graph, &bytes) == DLC_OK,
                  "%s", message());
    const dlc_node *node = graph->last;
    double *out = dlc_new_array(arena, double, (size_t)(c->n * c->oc * oh * ow));
    all_terms(c, transposed ? scatter_term : gather_term, transposed ? c->h : oh,
              transposed ? c->w : ow, node->inputs[0]->data->bytes, node->inputs[1]->data->bytes,
              out, oh, ow);
    for (int64_t i = 0; i < c->n * c->oc * oh * ow; i++)
        ck_assert_msg(fabs(((float *)bytes)[i] - out[i]) < 1e-5, "element %d is %g, expected %g",
                      (int)i, (double)((float *)bytes)[i], out[i]);
}

START_TEST(conv_is_its_sum)
{
    check_conv(&convs[_i], 0);
}
END_TEST

START_TEST(conv_transpose_spreads)
{
    check_conv(&convs[_i], 1);
}
END_TEST

/* --- pooling with indices against loops --- */

START_TEST(max_pool_counts_in_the_unpadded_input)
{
    static const char *const modes[] = {"row", "column"};
    enum { C = 2, H = 5, W = 4, OH = 3, OW = 3 };
    dlc_graph *graph;
    void *bytes;
    char *text = dlc_arena_printf(
        arena,
        "graph @t() -> %%i {\n %%x: f32[1,2,5,4] = const hash(3)\n"
        " %%y: f32[1,2,3,3], %%i: i64[1,2,3,3] = max_pool %%x {kernel=[3, 2], strides=[2, 2], "
        "pads=[1, 1, 1, 1], mode=\"%s\"}\n}\n",
        modes[_i]);
    ck_assert_msg(run_text(text, DLC_STRICT, &graph, &bytes) == DLC_OK, "%s", message());
    const float *x = graph->last->inputs[0]->data->bytes;
    for (int o = 0; o < C * OH * OW; o++) {
        int c = o / (OH * OW), top = o / OW % OH * 2 - 1, left = o % OW * 2 - 1, best = -1;
        for (int h = top; h < top + 3; h++)
            for (int w = left; w < left + 2; w++)
                if (h >= 0 && h < H && w >= 0 && w < W &&
                    (best < 0 || x[(c * H + h) * W + w] > x[best]))
                    best = (c * H + h) * W + w;
        int h = best / W % H, w = best % W;
        ck_assert_int_eq(((int64_t *)bytes)[o], _i ? c * H * W + w * H + h : best);
    }
}
END_TEST

/* --- every row --- */

START_TEST(each_meaning_was_run)
{
    for (int op = 0; op < DLC_OP_COUNT; op++)
        ck_assert_msg(dlc_op_is_opaque(op) || is_covered[op] || op == DLC_OP_CONSTANT,
                      "%s has no case", dlc_ops[op].text);
}
END_TEST

#define ROWS(table) ((int)(sizeof table / sizeof *table))

int main(void)
{
    Suite *suite = suite_create("mean");
    TCase *tcase = tcase_create("mean");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, hand_computed, 0, ROWS(cases));
    tcase_add_loop_test(tcase, indices_out_of_range_are_reported, 0, ROWS(out_of_range));
    tcase_add_loop_test(tcase, conv_is_its_sum, 0, ROWS(convs));
    tcase_add_loop_test(tcase, conv_transpose_spreads, 0, ROWS(convs));
    tcase_add_loop_test(tcase, max_pool_counts_in_the_unpadded_input, 0, 2);
    tcase_add_test(tcase, each_meaning_was_run);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* the last test reads what the others ran */
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
