/*
 * Generated code against the interpreter, with a page nobody may touch right before or right behind
 * every buffer of the caller: graphs whose vectors and register tiles do not fit their sizes.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dlc/dlc.h"
#include "tests/unit/suite.h"

enum { MAX_TENSORS = 6, MOST_SIZES = 8, PAGE_BYTES = 65536 };

static const char *const targets[] = {
#ifdef __x86_64__
    "x86-64-v2",
    "x86-64-v3",
    "x86-64-v4",
#else
    "native",
#endif
};
enum { NTARGETS = sizeof targets / sizeof *targets };

/* m: sizes of the symbol, if there is one; i64 inputs hold indices below `below`. */
static const struct {
    const char *text;
    int64_t below, m[MOST_SIZES];
} cases[] = {
    /* tiles of two heights: rows that the shorter ones lack are not read, nor their indices refused
     */
    {"graph @rows(%x: f32[197,64], %w: f32[64,40], %r: f32[197,1]) -> %y {\n"
     "  %a: f32[197,40] = matmul %x, %w\n"
     "  %y: f32[197,40] = add %a, %r\n"
     "}\n",
     0,
     {1}},
    {"graph @looked_up(%x: f32[197,64], %w: f32[64,40], %t: f32[50], %i: i64[197,1]) -> %y {\n"
     "  %a: f32[197,40] = matmul %x, %w\n"
     "  %r: f32[197,1] = gather %t, %i {axis=0}\n"
     "  %y: f32[197,40] = add %a, %r\n"
     "}\n",
     50,
     {1}},
    {"graph @looked_up(%x: f32[m,64], %w: f32[64,40], %t: f32[50], %i: i64[m,1]) -> %y {\n"
     "  %a: f32[m,40] = matmul %x, %w\n"
     "  %r: f32[m,1] = gather %t, %i {axis=0}\n"
     "  %y: f32[m,40] = add %a, %r\n"
     "}\n",
     50,
     {1, 2, 5, 11, 13, 29, 56}},
    /* columns that are left over, by halves of a vector, all of one and not */
    {"graph @left(%x: f32[37,50], %v: f32[50,24], %w: f32[24,35], %u: f32[35,19], %t: f32[19,1]) -> %y {\n"
     "  %a: f32[37,24] = matmul %x, %v\n"
     "  %r: f32[37,24] = relu %a\n"
     "  %b: f32[37,35] = matmul %r, %w\n"
     "  %c: f32[37,19] = matmul %b, %u\n"
     "  %y: f32[37,1] = matmul %c, %t\n"
     "}\n",
     0,
     {1}},
    /* weights of few bits: few rows and many by other kernels, of which the second makes panels of them; or blocks of panels, with sums in
     * scratch */
    {"graph @panels(%x: f32[m,256]) -> %y {\n"
     "  %bytes: u8[72,8,16] = const hash(1)\n"
     "  %s: f32[72,8,1] = const hash(2)\n"
     "  %z: u8[72,8,1] = const hash(3)\n"
     "  %u: u8[72,8,2,16] = unpack %bytes {bits=4}\n"
     "  %codes: u8[72,8,32] = reshape %u {dims=[72, 8, 32]}\n"
     "  %c: f32[72,8,32] = cast %codes {dtype=f32}\n"
     "  %f: f32[72,8,1] = cast %z {dtype=f32}\n"
     "  %d: f32[72,8,32] = sub %c, %f\n"
     "  %e: f32[72,8,32] = mul %d, %s\n"
     "  %w: f32[72,256] = reshape %e {dims=[72, 256]}\n"
     "  %t: f32[256,72] = transpose %w {perm=[1, 0]}\n"
     "  %y: f32[m,72] = matmul %x, %t\n"
     "}\n",
     0,
     {1, 14, 15, 29, 130}},
    {"graph @blocks(%x: f32[m,4480]) -> %y {\n"
     "  %bytes: u8[40,140,16] = const hash(1)\n"
     "  %s: f32[40,140,1] = const hash(2)\n"
     "  %z: u8[40,140,1] = const hash(3)\n"
     "  %u: u8[40,140,2,16] = unpack %bytes {bits=4}\n"
     "  %codes: u8[40,140,32] = reshape %u {dims=[40, 140, 32]}\n"
     "  %c: f32[40,140,32] = cast %codes {dtype=f32}\n"
     "  %f: f32[40,140,1] = cast %z {dtype=f32}\n"
     "  %d: f32[40,140,32] = sub %c, %f\n"
     "  %e: f32[40,140,32] = mul %d, %s\n"
     "  %w: f32[40,4480] = reshape %e {dims=[40, 4480]}\n"
     "  %t: f32[4480,40] = transpose %w {perm=[1, 0]}\n"
     "  %p: f32[m,40] = matmul %x, %t\n"
     "  %y: f32[m,40] = relu %p\n"
     "}\n",
     0,
     {2, 15, 41}},
    {"graph @blocks(%x: f32[m,4480]) -> %y {\n"
     "  %bytes: u8[33,140,16] = const hash(1)\n"
     "  %s: f32[33,140,1] = const hash(2)\n"
     "  %z: u8[33,140,1] = const hash(3)\n"
     "  %u: u8[33,140,2,16] = unpack %bytes {bits=4}\n"
     "  %codes: u8[33,140,32] = reshape %u {dims=[33, 140, 32]}\n"
     "  %c: f32[33,140,32] = cast %codes {dtype=f32}\n"
     "  %f: f32[33,140,1] = cast %z {dtype=f32}\n"
     "  %d: f32[33,140,32] = sub %c, %f\n"
     "  %e: f32[33,140,32] = mul %d, %s\n"
     "  %w: f32[33,4480] = reshape %e {dims=[33, 4480]}\n"
     "  %t: f32[4480,33] = transpose %w {perm=[1, 0]}\n"
     "  %y: f32[m,33] = matmul %x, %t\n"
     "}\n",
     0,
     {16}},
    /* down the rows by several vectors side by side, a few left over and a part of one; a long sum by parts */
    {"graph @down(%x: f32[9,700,300], %g: f32[9,300]) -> %y {\n"
     "  %s: f32[9,300] = reduce_sum %x {axes=[1], keepdims=0}\n"
     "  %l: f32[9,300] = reduce_max %x {axes=[1], keepdims=0}\n"
     "  %m: f32[9,300] = mul %s, %g\n"
     "  %y: f32[9,300] = add %m, %l\n"
     "}\n",
     0,
     {1}},
    {"graph @down(%x: i64[9,40,3,300]) -> %y {\n"
     "  %y: i64[9,300] = reduce_sum %x {axes=[1,2], keepdims=0}\n"
     "}\n",
     50,
     {1}},
    /* squares of narrow elements, with lanes and points left over, and fewer lanes than a vector has */
    {"graph @narrow(%x: u8[3,37,53]) -> %y {\n"
     "  %t: u8[3,53,37] = transpose %x {perm=[0,2,1]}\n"
     "  %y: f32[3,53,37] = cast %t {dtype=f32}\n"
     "}\n",
     0,
     {1}},
    {"graph @narrow(%x: f32[2,12,70]) -> %y {\n"
     "  %h: f16[2,12,70] = cast %x {dtype=f16}\n"
     "  %t: f16[2,70,12] = transpose %h {perm=[0,2,1]}\n"
     "  %y: f32[2,70,12] = cast %t {dtype=f32}\n"
     "}\n",
     0,
     {1}},
    /* windows of neighbours side by side, and fewer where the row ends: in units, and in a loop */
    {"graph @beside(%x: f32[1,32,13,19], %v: f32[32,32,1,1], %w: f32[32,1,3,3]) -> %e {\n"
     "  %c: f32[1,32,13,19] = conv %x, %v\n"
     "  %d: f32[1,32,13,19] = conv %c, %w {group=32, pads=[1,1,1,1]}\n"
     "  %r: f32[1,32,13,19] = relu %d\n"
     "  %e: f32[1,32,13,19] = conv %r, %v\n"
     "}\n",
     0,
     {1}},
    {"graph @beside(%x: f32[1,32,33,21], %v: f32[32,32,1,1], %w: f32[32,1,3,3]) -> %e {\n"
     "  %c: f32[1,32,33,21] = conv %x, %v\n"
     "  %d: f32[1,32,33,21] = conv %c, %w {group=32, pads=[1,1,1,1]}\n"
     "  %r: f32[1,32,33,21] = relu %d\n"
     "  %e: f32[1,32,33,21] = conv %r, %v\n"
     "}\n",
     0,
     {1}},
    {"graph @windows(%x: f32[1,40,20,21], %v: f32[40,40,1,1], %w: f32[40,1,5,5], %u: f32[40,1,3,3]) -> %z {\n"
     "  %c: f32[1,40,20,21] = conv %x, %v\n"
     "  %d: f32[1,40,20,21] = conv %c, %w {group=40, pads=[2,2,2,2]}\n"
     "  %s: f32[1,40,10,11] = conv %d, %u {group=40, pads=[1,1,1,1], strides=[2,2]}\n"
     "  %p: f32[1,40,8,9] = avg_pool %s {kernel=[3,3], strides=[1,1]}\n"
     "  %z: f32[1,40,8,9] = conv %p, %v\n"
     "}\n",
     0,
     {1}},
    /* groups of few channels along the lanes: whole vectors of an image, parts of one, and lanes that are left over */
    {"graph @groups(%x: f32[1,9,11,64], %w: f32[64,4,3,3], %b: f32[64,1,1]) -> %y {\n"
     "  %t: f32[1,64,9,11] = transpose %x {perm=[0,3,1,2]}\n"
     "  %d: f32[1,64,9,11] = conv %t, %w {group=16, pads=[1,1,1,1]}\n"
     "  %c: f32[1,64,9,11] = add %d, %b\n"
     "  %r: f32[1,64,9,11] = relu %c\n"
     "  %y: f32[1,9,11,64] = transpose %r {perm=[0,2,3,1]}\n"
     "}\n",
     0,
     {1}},
    {"graph @groups(%x: f32[2,7,9,20], %w: f32[40,2,3,1]) -> %y {\n"
     "  %t: f32[2,20,7,9] = transpose %x {perm=[0,3,1,2]}\n"
     "  %c: f32[2,40,5,5] = conv %t, %w {group=10, strides=[1,2]}\n"
     "  %y: f32[2,5,5,40] = transpose %c {perm=[0,2,3,1]}\n"
     "}\n",
     0,
     {1}},
    {"graph @multiplied(%x: f32[1,m,11,12], %w: f32[24,1,3,3]) -> %y {\n"
     "  %t: f32[1,12,m,11] = transpose %x {perm=[0,3,1,2]}\n"
     "  %c: f32[1,24,m,11] = conv %t, %w {group=12, pads=[1,1,1,1]}\n"
     "  %y: f32[1,m,11,24] = transpose %c {perm=[0,2,3,1]}\n"
     "}\n",
     0,
     {1, 2, 9}},
    /* transposed windows by phases: of points shifted and not, of windows that the stride divides and does not, of one tap, by channels */
    {"graph @phases(%x: f32[1,24,7,9], %w: f32[24,40,4,4], %v: f32[40,20,3,6], %u: f32[20,1,2,2]) -> %y {\n"
     "  %a: f32[1,40,14,18] = conv_transpose %x, %w {pads=[1,1,1,1], strides=[2,2]}\n"
     "  %b: f32[1,20,28,54] = conv_transpose %a, %v {pads=[1,2,0,1], strides=[2,3]}\n"
     "  %r: f32[1,20,28,54] = relu %b\n"
     "  %y: f32[1,20,56,108] = conv_transpose %r, %u {group=20, strides=[2,2]}\n"
     "}\n",
     0,
     {1}},
    {"graph @phases(%x: f32[2,8,m], %w: f32[8,6,8]) -> %y {\n"
     "  %t: f32[2,6,4*m] = conv_transpose %x, %w {pads=[2,2], strides=[4]}\n"
     "  %y: f32[2,6,4*m] = tanh %t\n"
     "}\n",
     0,
     {1, 2, 17}},
    {"graph @normalised(%x: f32[2,24,7,9], %w: f32[24,20,4,2]) -> %y {\n"
     "  %a: f32[2,20,14,18] = conv_transpose %x, %w {pads=[1,0,1,0], strides=[2,2]}\n"
     "  %m: f32[2,20,1,1] = reduce_sum %a {axes=[2,3], keepdims=1}\n"
     "  %y: f32[2,20,14,18] = sub %a, %m\n"
     "}\n",
     0,
     {1}},
    /* rows of an image along the lanes, for channels that fill no vector: of planes, copied and not, in one dimension and in three, of
       two images, by phases of one size and of two */
    {"graph @planes(%x: f32[2,9,13,37]) -> %y {\n"
     "  %w: f32[2,9,3,5] = const hash(00000000000000a1)\n"
     "  %b: f32[2,1,1] = const [0.5, -1.5]\n"
     "  %c: f32[2,2,13,35] = conv %x, %w {pads=[1,1,1,1]}\n"
     "  %d: f32[2,2,13,35] = add %c, %b\n"
     "  %y: f32[2,2,13,35] = tanh %d\n"
     "}\n",
     0,
     {1}},
    {"graph @planes(%x: f32[1,3,20,41], %z: f32[1,8,18,39]) -> %y {\n"
     "  %w: f32[8,3,3,3] = const hash(00000000000000a2)\n"
     "  %c: f32[1,8,18,39] = conv %x, %w\n"
     "  %y: f32[1,8,18,39] = add %c, %z\n"
     "}\n",
     0,
     {1}},
    {"graph @planes(%x: f32[1,20,67]) -> %y {\n"
     "  %w: f32[1,20,11] = const hash(00000000000000a3)\n"
     "  %y: f32[1,1,57] = conv %x, %w\n"
     "}\n",
     0,
     {1}},
    {"graph @planes(%x: f32[1,12,5,6,20]) -> %y {\n"
     "  %w: f32[1,12,3,3,3] = const hash(00000000000000a4)\n"
     "  %y: f32[1,1,5,6,20] = conv %x, %w {pads=[1,1,1,1,1,1]}\n"
     "}\n",
     0,
     {1}},
    {"graph @planes(%x: f32[2,24,7,19]) -> %y {\n"
     "  %v: f32[24,24,1,1] = const hash(00000000000000a5)\n"
     "  %w: f32[24,2,4,4] = const hash(00000000000000a6)\n"
     "  %c: f32[2,24,7,19] = conv %x, %v\n"
     "  %r: f32[2,24,7,19] = relu %c\n"
     "  %a: f32[2,2,14,38] = conv_transpose %r, %w {pads=[1,1,1,1], strides=[2,2]}\n"
     "  %y: f32[2,2,14,38] = tanh %a\n"
     "}\n",
     0,
     {1}},
    {"graph @planes(%x: f32[2,24,7,19]) -> %y {\n"
     "  %w: f32[24,1,3,3] = const hash(00000000000000a7)\n"
     "  %y: f32[2,1,13,37] = conv_transpose %x, %w {pads=[1,1,1,1], strides=[2,2]}\n"
     "}\n",
     0,
     {1}},
    {"graph @planes(%x: f32[1,24,7,19]) -> %y {\n"
     "  %w: f32[24,2,4,5] = const hash(00000000000000a8)\n"
     "  %y: f32[1,2,22,59] = conv_transpose %x, %w {strides=[3,3], output_padding=[1,2], pads=[1,1,0,1]}\n"
     "}\n",
     0,
     {1}},
    /* the same of a channel of its own for each result, neighbours down the rows side by side: rows that tiles fill and that they do not */
    {"graph @planes(%x: f32[2,5,33,37]) -> %y {\n"
     "  %w: f32[5,1,5,7] = const hash(00000000000000a9)\n"
     "  %b: f32[5,1,1] = const hash(00000000000000aa)\n"
     "  %c: f32[2,5,33,36] = conv %x, %w {group=5, pads=[2,2,2,3]}\n"
     "  %d: f32[2,5,33,36] = add %c, %b\n"
     "  %y: f32[2,5,33,36] = relu %d\n"
     "}\n",
     0,
     {1}},
    {"graph @planes(%x: f32[1,6,20,19]) -> %y {\n"
     "  %w: f32[6,1,4,4] = const hash(00000000000000ab)\n"
     "  %y: f32[1,6,9,16] = conv %x, %w {group=6, strides=[2,1]}\n"
     "}\n",
     0,
     {1}},
    /* lanes against the order of memory, the last ones off: nothing before the first element is read */
    {"graph @backwards(%x: f32[1003], %z: f32[1003]) -> %y {\n"
     "  %r: f32[1003] = slice %x {starts=[1002], steps=[-1], dims=[1003]}\n"
     "  %y: f32[1003] = add %r, %z\n"
     "}\n",
     0,
     {1}},
    /* attention of a few queries at a time: a last block that is not full, what is added to scores by key, and a row's own factor */
    {"graph @attention(%q: f32[2,310,24], %k: f32[2,700,24], %v: f32[2,700,20], %a: f32[1,1,700], %b: f32[2,1,1]) -> %o {\n"
     "  %t: f32[2,24,700] = transpose %k {perm=[0,2,1]}\n"
     "  %s: f32[2,310,700] = matmul %q, %t\n"
     "  %c: f32[2,310,700] = mul %s, %b\n"
     "  %d: f32[2,310,700] = add %c, %a\n"
     "  %x: f32[2,310,1] = reduce_max %d {axes=[2], keepdims=1}\n"
     "  %z: f32[2,310,700] = sub %d, %x\n"
     "  %e: f32[2,310,700] = exp %z\n"
     "  %l: f32[2,310,1] = reduce_sum %e {axes=[2], keepdims=1}\n"
     "  %p: f32[2,310,700] = div %e, %l\n"
     "  %o: f32[2,310,20] = matmul %p, %v\n"
     "}\n",
     0,
     {1}},
    /* what two lanes share without a sum */
    {"graph @doubled(%x: f32[7,21], %z: f32[7,42]) -> %y {\n"
     "  %a: f32[7,21,1] = reshape %x {dims=[7,21,1]}\n"
     "  %b: f32[7,21,2] = expand %a {dims=[7,21,2]}\n"
     "  %c: f32[7,42] = reshape %b {dims=[7,42]}\n"
     "  %y: f32[7,42] = add %c, %z\n"
     "}\n",
     0,
     {1}},
    /* rows shorter than a vector, from where there is nothing before and behind */
    {"graph @framed(%x: f32[20,29,3]) -> %y {\n"
     "  %y: f32[26,35,4] = pad %x {pads=[3,3,0,3,3,1], mode=\"constant\"}\n"
     "}\n",
     0,
     {1}},
    /* lanes and the guard of a load from scratch part ways */
    {"graph @shifted(%x: f32[2,21,67]) -> %y {\n"
     "  %e: f32[2,21,67] = exp %x\n"
     "  %l: f32[2,1,67] = reduce_sum %e {axes=[1], keepdims=1}\n"
     "  %p: f32[2,21,67] = pad %e {pads=[0,1,0,0,-1,0]}\n"
     "  %s: f32[2,21,41] = slice %p {starts=[0,0,0], steps=[1,1,1], dims=[2,21,41]}\n"
     "  %c: f32[2,21,67] = pad %s {pads=[0,0,0,0,0,26]}\n"
     "  %y: f32[2,21,67] = div %c, %l\n"
     "}\n",
     0,
     {1}},
    /* lanes past the end are 0 / 0, and no part of the sum */
    {"graph @masked_quotients(%x: f32[2,4,17,32], %w: f32[1,4,3,5]) -> %y {\n"
     "  %e: f32[2,4,17,32] = exp %x\n"
     "  %l: f32[2,4,1,32] = reduce_sum %e {axes=[2], keepdims=1}\n"
     "  %p: f32[2,4,17,32] = div %e, %l\n"
     "  %y: f32[2,1,8,14] = conv %p, %w {pads=[0,0,0,0], strides=[2,2], dilations=[1,1], group=1}\n"
     "}\n",
     0,
     {1}},
    /* a step works in a result nobody reads, before other sizes are known */
    {"symbol found = opaque(%z, 0) in 0..2147483647\n"
     "graph @unread(%x: f32[5,40]) -> %y {\n"
     "  %v: f32[5,3] = topk %x {axis=1, largest=1, sorted=1, dims=[3]}\n"
     "  %z: i64[2,found] = nonzero %x {symbol=0}\n"
     "  %m: i64[2,1] = reduce_max %z {axes=[1], keepdims=1}\n"
     "  %s: i64[1,1] = reduce_sum %m {axes=[0], keepdims=1}\n"
     "  %f: f32[1,1] = cast %s {dtype=f32}\n"
     "  %y: f32[5,3] = add %v, %f\n"
     "}\n",
     0,
     {1}},
    /* rounded floats as bytes and shorts, far beyond what these hold, infinite and no number */
    {"graph @rounded(%x: f32[4099]) -> %y {\n"
     "  %k: f32[] = const [700]\n"
     "  %c: f32[] = const [117]\n"
     "  %z: f32[] = const [1e-05]\n"
     "  %a: f32[4099] = mul %x, %k\n"
     "  %r: f32[4099] = round %a\n"
     "  %s: f32[4099] = add %r, %c\n"
     "  %e: f32[4099] = exp %a\n"
     "  %l: f32[4099] = log %a\n"
     "  %m: f32[4099] = mul %e, %z\n"
     "  %re: f32[4099] = round %m\n"
     "  %rl: f32[4099] = round %l\n"
     "  %u: u8[4099] = cast %s {dtype=u8}\n"
     "  %b: i8[4099] = cast %s {dtype=i8}\n"
     "  %h: i16[4099] = cast %re {dtype=i16}\n"
     "  %n: i16[4099] = cast %rl {dtype=i16}\n"
     "  %fu: f32[4099] = cast %u {dtype=f32}\n"
     "  %fb: f32[4099] = cast %b {dtype=f32}\n"
     "  %fh: f32[4099] = cast %h {dtype=f32}\n"
     "  %fn: f32[4099] = cast %n {dtype=f32}\n"
     "  %y0: f32[4099] = add %fu, %fb\n"
     "  %y1: f32[4099] = add %fh, %fn\n"
     "  %y: f32[4099] = add %y0, %y1\n"
     "}\n",
     0,
     {1}},
};
enum { NCASES = sizeof cases / sizeof *cases };

static char folder[64];

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/dlc_test_code_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void teardown(void)
{
    unlink(in_folder("code.dlc"));
    unlink(in_folder("code.so"));
    rmdir(folder);
}

/* Memory that begins (is_low) or ends at a page nobody may touch. Never given back: each test is a
 * process. */
static void *guarded(size_t size_bytes, int is_low)
{
    size_t inner = (size_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES,
           all = inner + 2 * PAGE_BYTES;
    char *bytes = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(bytes != MAP_FAILED);
    ck_assert_int_eq(mprotect(bytes + PAGE_BYTES, inner, PROT_READ | PROT_WRITE), 0);
    return bytes + PAGE_BYTES + (is_low ? 0 : inner - size_bytes);
}

static dlc_model *open_model(const char *text, const char *target)
{
    FILE *file = fopen(in_folder("code.dlc"), "w");
    ck_assert(file && fputs(text, file) >= 0 && !fclose(file));
    dlc_model *model;
    dlc_model_note note = {0};
    dlc_status status =
        dlc_model_open(in_folder("code.dlc"), &(dlc_options){.target = target, .jobs = 1}, &model);
    dlc_model_message(model, 0, &note);
    ck_assert_msg(status == DLC_OK, "%s", note.text);
    return model;
}

static size_t nelems(const dlcrt_tensor *tensor)
{
    size_t n = 1;
    for (uint32_t d = 0; d < tensor->rank; d++)
        n *= (size_t)tensor->dims[d];
    return n;
}

static uint32_t make_inputs(dlc_model *model, int64_t m, int64_t below, int is_low,
                            dlcrt_tensor *inputs)
{
    dlcrt_tensor_info info;
    uint32_t n = 0;
    for (; dlc_model_input(model, n, &info); n++) {
        ck_assert_uint_lt(n, MAX_TENSORS);
        inputs[n] = (dlcrt_tensor){.dtype = info.dtype, .rank = info.rank};
        for (uint32_t d = 0; d < info.rank; d++)
            inputs[n].dims[d] = info.dims[d] < 0 ? m : info.dims[d];
        size_t count = nelems(&inputs[n]);
        inputs[n].data = guarded(count * (info.dtype == DLC_I64 ? 8 : 4), is_low);
        for (size_t i = 0; i < count; i++) {
            if (info.dtype == DLC_I64)
                ((int64_t *)inputs[n].data)[i] = (int64_t)(i * 7 + 3) % below;
            else
                ((float *)inputs[n].data)[i] = (float)((i * 7919 + n) % 1009) / 1009.0f - 0.5f;
        }
    }
    return n;
}

static void compare(const dlcrt_tensor *got, const dlcrt_tensor *want, const char *what)
{
    const float *x = got->data, *y = want->data;
    size_t n = nelems(want);
    float most = 1;
    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(y[i]));
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabsf(x[i] - y[i]) <= 1e-5f * most, "%s: [%zu] = %g, not %g", what, i,
                      (double)x[i], (double)y[i]);
}

/* False when this machine cannot run the target. */
static int run_once(const dlcrt_tensor *inputs, uint32_t ninputs, int is_low, const dlcrt_tensor *want, const char *what)
{
    dlcrt_executable *executable;
    dlcrt_context *context;
    dlcrt_tensor got = {0};
    dlc_status status = dlcrt_executable_open(in_folder("code.so"), &executable);
    if (status == DLC_NO_DEVICE)
        return 0;
    ck_assert_msg(status == DLC_OK, "%s: %s", what, dlcrt_last_error());
    ck_assert_int_eq(dlcrt_context_create(executable, NULL, &context), DLC_OK);
    ck_assert_msg(dlcrt_context_prepare(context, inputs, ninputs) == DLC_OK, "%s: %s", what,
                  dlcrt_last_error());
    got.size_bytes = dlcrt_context_output_bytes(context, 0);
    got.data = guarded(got.size_bytes, is_low);
    status = dlcrt_context_run(context, inputs, ninputs, &got, 1);
    ck_assert_msg(status == DLC_OK, "%s: %s", what, dlcrt_last_error());
    compare(&got, want, what);
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
    return 1;
}

/* A size of a case, and one end of its buffers: what the interpreter makes of it, which no target changes. */
typedef struct {
    dlcrt_tensor inputs[MAX_TENSORS], want;
    uint32_t ninputs;
} wanted;

static void want_all(int c, wanted (*all)[2])
{
    dlc_model *oracle = open_model(cases[c].text, targets[0]);
    for (int i = 0; i < MOST_SIZES && cases[c].m[i]; i++)
        for (int is_low = 0; is_low < 2; is_low++) {
            wanted *w = &all[i][is_low];
            dlcrt_tensor want = {0};
            w->ninputs = make_inputs(oracle, cases[c].m[i], cases[c].below, is_low, w->inputs);
            ck_assert_int_eq(dlc_model_interpret(oracle, w->inputs, w->ninputs, &want, 1), DLC_OK);
            w->want = want;
            w->want.data = malloc(nelems(&want) * sizeof(float) + 1);
            memcpy(w->want.data, want.data, nelems(&want) * sizeof(float));
        }
    dlc_model_close(oracle);
}

START_TEST(code_is_right_and_keeps_to_its_buffers)
{
    int c = _i;
    wanted all[MOST_SIZES][2] = {0};
    want_all(c, all);
    for (int t = 0; t < NTARGETS; t++) {
        dlc_model *model = open_model(cases[c].text, targets[t]);
        ck_assert_int_eq(dlc_model_write(model, "so", in_folder("code.so"), NULL), DLC_OK);
        for (int i = 0; i < MOST_SIZES && cases[c].m[i]; i++)
            for (int is_low = 0; is_low < 2; is_low++) {
                char what[96];
                const wanted *w = &all[i][is_low];
                snprintf(what, sizeof what, "case %d, m = %d, %s", c, (int)cases[c].m[i], targets[t]);
                if (!run_once(w->inputs, w->ninputs, is_low, &w->want, what))
                    break;
            }
        dlc_model_close(model);
    }
    for (int i = 0; i < MOST_SIZES; i++)
        for (int is_low = 0; is_low < 2; is_low++)
            free(all[i][is_low].want.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("code");
    TCase *tests = tcase_create("code");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, code_is_right_and_keeps_to_its_buffers, 0, NCASES);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
