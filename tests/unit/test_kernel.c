/* Kernels: text both ways, the verifier's refusals, compaction, identity, and the recogniser of
 * contractions. */
#include "ir/kernel/kernel.h"
#include "ir/kernel/nan.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/random.h"
#include "tests/unit/small_arena.h"
#include "tests/unit/suite.h"

static dlc_kernel *parse(const char *text)
{
    dlc_kernel *kernel;
    dlc_status status = dlc_kernel_parse(text, arena, &diag, &kernel);
    ck_assert_msg(status == DLC_OK, "%s: %s\n%s", diag.nmessages ? diag.messages[0].place : "",
                  diag.nmessages ? diag.messages[0].text : "", text);
    return kernel;
}

static char *print(const dlc_kernel *kernel, int names)
{
    dlc_str text = {0};
    dlc_kernel_print(kernel, names, &text);
    char *copy = dlc_arena_strdup(arena, dlc_str_text(&text));
    dlc_str_deinit(&text);
    return copy;
}

/* The eight kernels the IR was designed on; sigmoid and casts written out. */
static const char *const kernels[] = {
    "kernel @a(x: f32[n,64,56,56]@nhwc, w: f32[64,64,3,3]@const, b: f32[64]@const, r: "
    "f32[n,64,56,56]@nhwc)"
    " -> (y: f32[n,64,56,56]@nhwc) {\n"
    "  axis n=n, oc=64, oh=56, ow=56, ic=64, kh=3, kw=3\n"
    "  a[n,oc,oh,ow] = sum(kh,kw,ic) x[n, ic, oh+kh-1, ow+kw-1 else 0] * w[oc,ic,kh,kw]\n"
    "  y[n,oc,oh,ow] = max(0, a + b[oc]) + r[n,oc,oh,ow] }",
    "kernel @b(x: f32[n,768], g: f32[768]@const, b: f32[768]@const) -> (y: f32[n,768]) {\n"
    "  axis i=n, j=768\n"
    "  s[i] = sum(j) x[i,j]\n"
    "  v[i] = sum(j) (x[i,j] - s / 768) * (x[i,j] - s / 768)\n"
    "  y[i,j] = (x[i,j] - s / 768) / sqrt(v / 768 + 1e-5) * g[j] + b[j] }",
    "kernel @c(x: f32[n,21,512]) -> (y: f32[n,21,512]) {\n"
    "  axis a=n, j=21, c=512\n"
    "  m[a,c] = max(j) x[a,j,c]\n"
    "  e[a,j,c] = exp(x[a,j,c] - m)\n"
    "  l[a,c] = sum(j) e\n"
    "  y[a,j,c] = e / l }",
    "kernel @d(q: f32[n,t,12,64], k: f32[n,u,12,64], v: f32[n,u,12,64], mask: f32[n,u]) -> (y: "
    "f32[n,t,12,64]) {\n"
    "  axis b=n, h=12, i=t, j=u, d=64, e=64\n"
    "  s[b,h,i,j] = sum(d) q[b,i,h,d] * k[b,j,h,d]\n"
    "  z[b,h,i,j] = s * 0.125 + mask[b,j]\n"
    "  m[b,h,i] = max(j) z\n"
    "  p[b,h,i,j] = exp(z - m[b,h,i])\n"
    "  l[b,h,i] = sum(j) p\n"
    "  o[b,h,i,e] = sum(j) p[b,h,i,j] * v[b,j,h,e]\n"
    "  y[b,i,h,e] = o[b,h,i,e] / l[b,h,i] }",
    "kernel @e(table: f32[1000,64]@const, ids: i64[n], z: f32[n,32]) -> (y: f32[n,84]) {\n"
    "  axis i=n, j=84\n"
    "  r[i] = select(ids[i] < 0, ids[i] + 1000, ids[i])\n"
    "  c[i,j] = select(j < 58, table?[r, j+6-8 if 2 <= j < 58 else 0], z[i, j-58 if 58 <= j < 82 "
    "else 0])\n"
    "  y[i,j] = 0.5 * c * (1 + erf(c * 0.7071067811865476)) }",
    "kernel @f(xw: f32[t,n,4,h], rw: f32[4,h,h]@const, bias: f32[4,h]@const, h0: f32[n,h], c0: "
    "f32[n,h])"
    " -> (y: f32[t,n,h]) {\n"
    "  axis t=t, b=n, g=4, j=h, k=h\n"
    "  a[t,b,g,j] = sum(k) select(t > 0, y[t-1,b,k if t > 0], h0[b,k]) * rw[g,j,k]\n"
    "  z[t,b,g,j] = a + xw[t,b,g,j] + bias[g,j]\n"
    "  c[t,b,j]: f32 = 1 / (1 + exp(-z[t,b,2,j])) * c[t-1,b,j if t > 0 else c0[b,j]]"
    " + 1 / (1 + exp(-z[t,b,0,j])) * tanh(z[t,b,3,j])\n"
    "  y[t,b,j] = 1 / (1 + exp(-z[t,b,1,j])) * tanh(c) }",
    "kernel @g(x: u8[m,k], w: i8[k,n]@const, sw: f32[n]@const@within(-2), cb: i32[n]@const) -> (y: u8[m,n]) "
    "{\n"
    "  axis i=m, j=n, k=k\n"
    "  a[i,j] = sum(k) i32(x[i,k]) * i32(w[k,j])\n"
    "  f[i,j] = f32(a + cb[j]) * (0.02 * sw[j])\n"
    "  y[i,j] = u8.sat(rint(f / 0.05) + 3) }",
    "kernel @h<n: 1..64, s: 1..512>(x: f32[n,s,384], w: f32[384,1536]@const, b: f32[1536]@const) "
    "-> (y: f32[n,s,1536]) {\n"
    "  axis i=n, t=s, j=1536, k=384\n"
    "  a[i,t,j] = sum(k) x[i,t,k] * w[k,j]\n"
    "  c[i,t,j] = a + b[j]\n"
    "  y[i,t,j] = 0.5 * c * (1 + erf(c * 0.7071067811865476)) }",
    /* all of the grammar: stores elsewhere, updates, pairs, layouts, quoted names, typed literals,
       conversions */
    "kernel @\"odd/name\"<n: 0..100>(x: f16[n,32]@{0/8,1,0%8}, i: i32[n], z: f64[4,4]@out, \"p "
    "q\": bool[n,32])"
    " -> (k: i64[n], y: u8[n,64]) {\n"
    "  axis a=n, b=32, c=4, d=4\n"
    "  m[a] = argmax(b) f32(x[a,b]), b -> k[a] second\n"
    "  best[a,b] = x?[a, m.1[a]] + f16(0.1)\n"
    "  s[a,b] = u8(select(\"p q\"[a,b] and not (best < 0 or a % 8 == 3), best, f16(-inf))) -> y[a, "
    "b*2+1]\n"
    "  t[a,b] = xor(u8(b), u8(200)) -> y[a, b*2]\n"
    "  g[c,d] = fma(f64(c), f64(0.1), f64(d)) * f64(nan)\n"
    "  u[c,d] = min(g, 5.5) -> z[c, i64(i[0] + i32(7)) // 3] update sum\n"
    "}",
    "kernel @empty<n>(x: f32[4,0]) -> (y: f32[4]) {\n axis i=4, j=n\n y[i] = sum(j) x[0, 0] + f32(j) }",
    "kernel @usual<n: 1..64 usual 8, s usual 128, t>(x: f32[n,s,t]) -> (y: f32[n,s,t]) {\n"
    "  axis i=n, j=s, k=t\n"
    "  y[i,j,k] = exp(x[i,j,k]) }",
};
enum { NKERNELS = sizeof kernels / sizeof *kernels };

START_TEST(text_round_trips)
{
    dlc_kernel *kernel = parse(kernels[_i]);
    char *once = print(kernel, 1);
    char *twice = print(parse(once), 1);
    ck_assert_str_eq(once, twice);
    ck_assert_uint_eq(dlc_kernel_hash(kernel), dlc_kernel_hash(parse(once)));
    char *numbered = print(kernel, 0);
    ck_assert_str_eq(print(parse(numbered), 0), numbered);
}
END_TEST

START_TEST(example_kernels_verify)
{
    dlc_kernel *kernel = parse(kernels[_i]);
    dlc_status status = dlc_kernel_verify(kernel, &diag);
    ck_assert_msg(status == DLC_OK, "%s: %s", diag.nmessages ? diag.messages[0].place : "",
                  diag.nmessages ? diag.messages[0].text : "");
    dlc_kernel_simplify(kernel);
    dlc_kernel_compact(kernel);
    char *once = print(kernel, 1);
    ck_assert_int_eq(dlc_kernel_verify(kernel, &diag), DLC_OK);
    ck_assert_str_eq(print(parse(once), 1), once);
    dlc_kernel_simplify(kernel);
    dlc_kernel_compact(kernel);
    ck_assert_str_eq(print(kernel, 1), once);
}
END_TEST

START_TEST(printed_form)
{
    dlc_kernel *kernel = parse(kernels[0]);
    ck_assert_str_eq(
        print(kernel, 1),
        "kernel @a<n>(x: f32[n,64,56,56]@nhwc, w: f32[64,64,3,3]@const, b: f32[64]@const, "
        "r: f32[n,64,56,56]@nhwc) -> (y: f32[n,64,56,56]@nhwc) {\n"
        "  axis n_1=n, oc=64, oh=56, ow=56, ic=64, kh=3, kw=3\n"
        "  a[n_1,oc,oh,ow] = sum(kh,kw,ic) x[n_1, ic, oh + kh - 1, ow + kw - 1 if ow + kw < 57 and "
        "1 <= ow + kw and n_1 < n and oh + kh < 57 and 1 <= oh + kh and 0 <= n_1 and 0 <= ic and "
        "ic < 64] * "
        "w[oc, ic, kh, kw]\n"
        "  y[n_1,oc,oh,ow] = r[n_1, oc, oh, ow] + max(0.0, b[oc] + a)\n"
        "}\n");
}
END_TEST

/* x -> x*x twenty times over: the text grows with the nodes, not with the paths to them. */
START_TEST(shared_expressions_are_bound)
{
    dlc_kernel *kernel = parse("kernel @p(x: f32[8]) -> (y: f32[8]) {\n axis i=8\n y[i] = x[i] }");
    dlc_expr value = kernel->stages.data[0].value[0];
    for (int n = 0; n < 40; n++)
        value = dlc_expr3(kernel->pool, DLC_EXPR_MULADD, value, value,
                          dlc_expr_const(kernel->pool, DLC_F32, n));
    for (int n = 0; n < 2000; n++)
        value = dlc_expr1(kernel->pool, n % 2 ? DLC_EXPR_SQRT : DLC_EXPR_ABS, value);
    kernel->stages.data[0].value[0] = value;
    char *once = print(kernel, 1);
    ck_assert_uint_lt(strlen(once), 40000);
    ck_assert_str_eq(print(parse(once), 1), once);
}
END_TEST

static const struct {
    const char *text, *message;
} bad_texts[] = {
    {"kernel a() -> () {}", "found 'a' where '@' is due"},
    {"kernel @a(x: f33[4]) -> () {}", "'f33' is no element type"},
    {"kernel @a(x: f32[4]) -> (y: f32[4]) {\n axis i=4\n y[i] = z[i] }",
     "'z' is no axis, symbol, buffer or stage"},
    {"kernel @a(x: f32[4]) -> (y: f32[4]) {\n axis i=4\n y[i] = x[i,i] }", "'x' takes 1 indices"},
    {"kernel @a(x: f32[4]) -> (y: f32[4]) {\n axis i=4\n y[i] = x[i] + i }",
     "found a value of type i64 where f32 is due"},
    {"kernel @a(x: f32[4]) -> (y: f32[4]) {\n axis i=4\n y[i] = foo(x[i]) }",
     "'foo' is no function"},
    {"kernel @a(x: i32[4]) -> (y: i32[4]) {\n axis i=4\n y[i] = sqrt(x[i]) }",
     "'sqrt' takes no i32"},
    {"kernel @a(x: f32[4]) -> (y: f32[4]) {\n axis i=4\n t[i] = t[i-1 if i > 0]\n y[i] = t }",
     "'t' is read before it is defined: state its type, as in t[…]: f32 = …"},
    {"kernel @a(x: f32[4]) -> (y: f32[4]) {\n axis i=4\n y[i] = x[i] x[i] }",
     "found 'x' where a statement should end"},
    {"kernel @a(x: f32[4]) -> (y: f32[4]) {\n axis i=4\n y[i] = $2 }", "$2 is not defined above"},
    {"kernel @a(x: f32[4]) -> (y: f32[4]) {\n axis i=4\n y[i] = x[i]",
     "found 'the end' where a statement should end"},
    {"kernel @a(x: f32[4", "found 'the end' where ',' is due"},
    {"kernel @a<n: 1..4 usual 5>(x: f32[n])", "the symbol 'n' is never its usual 5"},
    {"kernel @a(x: f32[99999999999999999999])", "99999999999999999999 does not fit in 64 bits"},
    {"kernel @\"a\\q\"",
     "a name holds a backslash that starts no escape (\\\\ \\\" \\n \\t \\xNN)"},
    {"kernel @a(x: f32[4]@{1})", "'@{1}' is no layout of rank 1"},
    {"kernel @a(x: f32[4,4]@{0,0})", "'@{0,0}' is no layout of rank 2"},
    {"kernel @a(x: f32[4]@{0/2,0%3}", "'@{0/2,0%3}' is no layout of rank 1"},
    {"kernel @a(x: f32[i64(f32(n))])", "found a conversion to f32; a size has i64 and bool"},
    {"kernel @a(x: f32[i64(0.5 + 0.5)])", "'add' takes no f32 in a size"},
    {"\x01", "found the character '?' (0x01), which starts nothing"},
};

START_TEST(bad_text_is_refused)
{
    dlc_kernel *kernel;
    ck_assert_int_eq(dlc_kernel_parse(bad_texts[_i].text, arena, &diag, &kernel), DLC_INVALID);
    ck_assert_ptr_null(kernel);
    ck_assert_str_eq(diag.messages[0].text, bad_texts[_i].message);
}
END_TEST

START_TEST(deep_text_is_refused)
{
    dlc_str text = {0};
    dlc_str_add(&text, "kernel @a() -> (y: i64[4]) {\n axis i=4\n y[i] = ");
    for (int n = 0; n < 100000; n++)
        dlc_str_add(&text, n % 3 ? "(" : "-");
    dlc_kernel *kernel;
    ck_assert_int_eq(dlc_kernel_parse(dlc_str_text(&text), arena, &diag, &kernel), DLC_INVALID);
    ck_assert_str_eq(diag.messages[0].text, "expressions nest deeper than 1000");
    dlc_str_deinit(&text);
}
END_TEST

/* Flipped, dropped and repeated bytes: a refusal, or a kernel that prints and parses again. */
START_TEST(damaged_text_is_refused_or_meant)
{
    random_state = (uint64_t)_i;
    for (int n = 0; n < 2000; n++) {
        char *text = dlc_arena_strdup(arena, kernels[_i]);
        for (int edits = 0; edits < 3; edits++) {
            uint32_t size = (uint32_t)strlen(text), at = draw(size), dropped = draw(size - at);
            if (draw(2))
                text[at] = text[draw(size)];
            else
                memmove(text + at, text + at + dropped, size - at - dropped + 1);
            if (!*text)
                break;
        }
        dlc_kernel *kernel;
        if (dlc_kernel_parse(text, arena, &diag, &kernel) != DLC_OK)
            continue;
        char *once = print(kernel, 1);
        ck_assert_str_eq(print(parse(once), 1), once);
        if (dlc_kernel_verify(kernel, &diag) == DLC_OK) {
            dlc_kernel_simplify(kernel);
            dlc_kernel_compact(kernel);
            ck_assert_int_eq(dlc_kernel_verify(kernel, &diag), DLC_OK);
        }
    }
}
END_TEST

#define HEAD "kernel @a(x: f32[4,4]) -> (y: f32[4]) {\n axis i=4, j=4\n "
static const struct {
    const char *text, *message;
} bad_kernels[] = {
    {HEAD "y[i] = x[i,j] }", "the value depends on the axis 'j', which is none of the stage's"},
    {HEAD "y[i] = sum(j) x[i,j+1] }",
     "an index of 'x' runs from 1 to 4, and its dimension has 4 elements"},
    {"kernel @a(x: f32[4,0]) -> (y: f32[4]) {\n axis i=4\n y[i] = x[i,0] }",
     "an index of 'x' runs from 0 to 0, and its dimension has 0 elements"},
    {HEAD "t[i,j] = x[i,j]\n y[i] = sum(j) x[i,j] }", "nothing uses the stage 't'"},
    {HEAD "y[i] = 1.0\n }", "nothing loads the buffer 'x'"},
    {HEAD "y[i] = x[i,0] }", "no stage runs over the axis 'j'"},
    {HEAD "t[i,j] = x[i,j] -> y[i+j] }",
     "an index of 'y' runs from 0 to 6, and its dimension has 4 elements"},
    {HEAD "t[i,j] = x[i,j] -> y[i] }",
     "the stages that store 'y' have 16 points for its 4 elements"},
    {HEAD "t[i,i] = x[i,j]\n y[i] = sum(j) t[i,j] }", "runs over the axis 'i' twice"},
    {HEAD "t[i] = sum(j) x[i,j] * y[j]\n y[i] = t }",
     "loads 'y', which is not computed yet, and not at an earlier step"},
    {HEAD "y[i] = sum(j) x[i,j] + y[i-1] }",
     "loads an earlier step of 'y' without a guard for the first"},
    {HEAD "t[i] = sum(j) x[i,j]\n u[i] = t[i64(t[0])]\n y[i] = u }",
     "index 0 of 't' depends on data and is neither checked nor guarded"},
    {HEAD "t[i] = sum(j) i64(x[i,j])\n u[i] = t -> y[i] }",
     "stores i64 with 1 indices into 'y', f32 of rank 1"},
};

START_TEST(bad_kernels_are_refused)
{
    dlc_kernel *kernel = parse(bad_kernels[_i].text);
    ck_assert_int_eq(dlc_kernel_verify(kernel, &diag), DLC_INTERNAL);
    ck_assert_str_eq(diag.messages[0].text, bad_kernels[_i].message);
}
END_TEST

START_TEST(compaction_drops_what_is_unused)
{
    dlc_kernel *kernel =
        parse("kernel @a<z, n, m>(w: f32[z], x: f32[n], v: f32[m]) -> (y: f32[n]) {\n"
              "  axis q=z, i=n, k=m\n"
              "  lost[q] = w[q]\n  lost2[q] = lost\n  t[i] = x[i] + sqrt(x[i])\n  y[i] = t * 2 }");
    dlc_kernel_compact(kernel);
    ck_assert_str_eq(print(kernel, 1), "kernel @a<n>(x: f32[n]) -> (y: f32[n]) {\n"
                                       "  axis i=n\n"
                                       "  t[i] = x[i] + sqrt(x[i])\n"
                                       "  y[i] = t * 2.0\n"
                                       "}\n");
    ck_assert_uint_lt(kernel->pool->nodes.n, 12);
}
END_TEST

START_TEST(identity_is_up_to_names)
{
    dlc_kernel *a = parse("kernel @a(x: f32[n]) -> (y: f32[n]) {\n axis i=n\n y[i] = exp(x[i]) }");
    dlc_kernel *b = parse("kernel @b(u: f32[s]) -> (v: f32[s]) {\n axis j=s\n v[j] = exp(u[j]) }");
    dlc_kernel *c = parse("kernel @a(x: f32[n]) -> (y: f32[n]) {\n axis i=n\n y[i] = tanh(x[i]) }");
    dlc_kernel *d = parse("kernel @a<n usual 1>(x: f32[n]) -> (y: f32[n]) {\n axis i=n\n y[i] = exp(x[i]) }");
    ck_assert_uint_eq(dlc_kernel_hash(a), dlc_kernel_hash(b));
    ck_assert_str_eq(print(a, 0), print(b, 0));
    ck_assert_uint_ne(dlc_kernel_hash(a), dlc_kernel_hash(c));
    ck_assert_uint_ne(dlc_kernel_hash(a), dlc_kernel_hash(d)); /* code is chosen for other sizes */
}
END_TEST

START_TEST(simplify_uses_extents)
{
    dlc_kernel *kernel =
        parse("kernel @s<n, s>(x: f32[n,s,12,64]) -> (y: f32[n,s,768]) {\n"
              "  axis i=n, t=s, c=768\n"
              "  y[i,t,c] = x[((i*s+t)*768+c) // 768 // s, ((i*s+t)*768+c) // 768 % s,"
              " ((i*s+t)*768+c) // 64 % 12, ((i*s+t)*768+c) % 64 else 0] }");
    dlc_kernel_simplify(kernel);
    dlc_kernel_compact(kernel);
    ck_assert_str_eq(print(kernel, 1), "kernel @s<n, s>(x: f32[n,s,12,64]) -> (y: f32[n,s,768]) {\n"
                                       "  axis i=n, t=s, c=768\n"
                                       "  y[i,t,c] = x[i, t, c // 64, c % 64]\n"
                                       "}\n");
}
END_TEST

/* Of what is inside wherever it is computed no check is left; of what may be outside it stays. */
START_TEST(simplify_drops_checks)
{
    dlc_kernel *kernel = parse("kernel @s<n, s>(x: f32[n,s,3], z: f32[s], u: i64[3]) -> (y: f32[3,n,s]) {\n"
                               "  axis c=3, i=n, t=s\n"
                               "  y[c,i,t] = x?[i, t, c] * z?[i] * x?[i, t, u[c] % 3] }");
    dlc_kernel_simplify(kernel);
    dlc_kernel_compact(kernel);
    const char *text = print(kernel, 1);
    ck_assert_msg(strstr(text, "x[i, t, c]") && strstr(text, "z?[i]") && strstr(text, "x?[i, t, u[c] % 3]"), "%s", text);
    ck_assert_int_eq(dlc_kernel_verify(kernel, &diag), DLC_OK);
}
END_TEST

/* --- contractions --- */

static const struct {
    const char *kernel;            /* stage t is asked */
    const char *m, *n, *batch, *k; /* NULL m: no contraction */
    const char *a, *b, *scale;     /* NULL: not compared */
} contractions[] = {
    {"(x: f32[8,16], w: f32[16,32]) -> (y: f32[8,32]) {\n axis i=8, j=32, k=16\n"
     " t[i,j] = sum(k) x[i,k] * w[k,j] -> y[i,j] }",
     "i", "j", "", "k", "x[i, k]", "w[k, j]", NULL},
    {"(x: f32[16,8], w: f32[32,16]@const) -> (y: f32[8,32]) {\n axis i=8, j=32, k=16\n"
     " t[i,j] = sum(k) w[j,k] * x[k,i] -> y[i,j] }",
     "i", "j", "", "k", "x[k, i]", "w[j, k]", NULL},
    {"(w: f32[8,16]@const, x: f32[16,32]) -> (y: f32[8,32]) {\n axis i=8, j=32, k=16\n"
     " t[i,j] = sum(k) w[i,k] * x[k,j] -> y[i,j] }",
     "j", "i", "", "k", "x[k, j]", "w[i, k]", NULL}, /* constant data is B */
    {"(x: f32[2,3,8,8], w: f32[4,3,3,3]@const) -> (y: f32[2,4,6,6]) {\n axis n=2, oc=4, oh=6, "
     "ow=6, ic=3, kh=3, kw=3\n"
     " t[n,oc,oh,ow] = sum(kh,kw,ic) x[n,ic,oh+kh,ow+kw] * w[oc,ic,kh,kw] -> y[n,oc,oh,ow] }",
     "n oh ow", "oc", "", "kh kw ic", "x[n, ic, oh + kh, ow + kw]", "w[oc, ic, kh, kw]", NULL},
    {"(x: f32[2,8,8], w: f32[2,4,4,3]@const) -> (y: f32[2,4,6]) {\n axis g=2, oc=4, oh=6, ic=4, "
     "kh=3\n"
     " t[g,oc,oh] = sum(ic,kh) x[g,ic,oh+kh if oh < 5] * w[g,oc,ic,kh] -> y[g,oc,oh] }",
     "oh", "oc", "g", "ic kh", "x[g, ic, oh + kh if oh < 5]", "w[g, oc, ic, kh]", NULL},
    {"(x: f32[2,8,8], w: f32[8,3]@const) -> (y: f32[2,8,6]) {\n axis n=2, c=8, oh=6, kh=3\n"
     " t[n,c,oh] = sum(kh) x[n,c,oh+kh] * w[c,kh] -> y[n,c,oh] }",
     "n oh", "", "c", "kh", NULL, NULL, NULL}, /* depthwise */
    {"(x: f32[8,16]) -> (y: f32[8]) {\n axis i=8, j=16\n t[i] = sum(j) x[i,j] * x[i,j] -> y[i] }",
     "", "", "i", "j", "x[i, j]", "x[i, j]", NULL}, /* variance */
    {"(x: u8[8,16], w: i8[16,32]@const, s: i32[32]) -> (y: i32[8,32]) {\n axis i=8, j=32, k=16\n"
     " t[i,j] = sum(k) i32(x[i,k]) * s[j] * -i32(w[k,j]) -> y[i,j] }",
     "i", "j", "", "k", "i32(x[i, k])", "i32(w[k, j])", "s[j] * i32(-1)"},
    {"(x: f64[8,16], w: f64[16,32], s: f64[16]) -> (y: f64[8,32]) {\n axis i=8, j=32, k=16\n"
     " t[i,j] = sum(k) x[i,k] * w[k,j] * s[k] * 0.5 -> y[i,j] }",
     "i", "j", "", "k", NULL, NULL, "f64(0.5)"},
    {"(q: f32[2,4,64], p: f32[2,6,64]) -> (y: f32[2,4,6]) {\n axis b=2, i=4, j=6, d=64\n"
     " t[b,i,j] = sum(d) q[b,i,d] * p[b,j,d] -> y[b,i,j] }",
     "i", "j", "b", "d", "q[b, i, d]", "p[b, j, d]", NULL},
    {"(x: f32[t,4], w: f32[4,4]) -> (y: f32[t,4]) {\n axis s=t, j=4, k=4\n"
     " t[s,j]: f32 = sum(k) select(s > 0, t[s-1,k if s > 0], x[0,k]) * w[k,j] -> y[s,j] }",
     "", "j", "s", "k", NULL, NULL, NULL}, /* the recurrent axis is serial */
    {"(x: f32[8,16]) -> (y: f32[8]) {\n axis i=8, j=16\n t[i] = sum(j) x[i,j] -> y[i] }", NULL, "",
     "", "", NULL, NULL, NULL},
    {"(x: f32[8,16], s: f32[8]) -> (y: f32[8]) {\n axis i=8, j=16\n t[i] = sum(j) x[i,j] * s[i] -> "
     "y[i] }",
     NULL, "", "", "", NULL, NULL, NULL},
    {"(x: f32[8,16], w: f32[16]) -> (y: f32[8]) {\n axis i=8, j=16\n t[i] = max(j) x[i,j] * w[j] "
     "-> y[i] }",
     NULL, "", "", "", NULL, NULL, NULL},
    {"(x: f32[8,16], w: f32[16]) -> (y: f32[8]) {\n axis i=8, j=16\n t[i] = sum(j) x[i,j] + w[j] "
     "-> y[i] }",
     NULL, "", "", "", NULL, NULL, NULL},
};

static void check_axes(const dlc_kernel *kernel, const dlc_ids *ids, const char *wanted)
{
    dlc_str names = {0};
    for (uint32_t i = 0; i < ids->n; i++)
        dlc_str_printf(&names, "%s%s", i ? " " : "", kernel->axes.data[ids->data[i]].name);
    ck_assert_str_eq(dlc_str_text(&names), wanted);
    dlc_str_deinit(&names);
}

static void check_expr(const dlc_kernel *kernel, dlc_expr expr, const char *wanted)
{
    if (!wanted)
        return;
    ck_assert_uint_ne(expr, 0);
    dlc_str text = {0};
    dlc_expr_print(kernel, expr, &text);
    ck_assert_str_eq(dlc_str_text(&text), wanted);
    dlc_str_deinit(&text);
}

START_TEST(contractions_are_recognised)
{
    dlc_kernel *kernel = parse(dlc_arena_printf(arena, "kernel @c%s", contractions[_i].kernel));
    dlc_contraction c;
    int is_contraction = dlc_contraction_of(kernel, &kernel->stages.data[0], arena, &c);
    ck_assert_int_eq(is_contraction, contractions[_i].m != NULL);
    if (!is_contraction)
        return;
    check_axes(kernel, &c.m, contractions[_i].m);
    check_axes(kernel, &c.n, contractions[_i].n);
    check_axes(kernel, &c.batch, contractions[_i].batch);
    check_axes(kernel, &c.k, contractions[_i].k);
    check_expr(kernel, c.a, contractions[_i].a);
    check_expr(kernel, c.b, contractions[_i].b);
    check_expr(kernel, c.scale, contractions[_i].scale);
}
END_TEST

/* Of the stage m: is all that is made of it NaN in a row that has one? */
#define OF_ROWS(body) "kernel @k(x: f32[n,8], w: f32[n,8]) -> (y: f32[n,8]) { axis i=n, r=8, j=8, c=7 " body " }"
static const struct {
    const char *text;
    int arrives;
} folds[] = {
    {OF_ROWS("\nm[i] = max(r) x[i,r]\ne[i,j] = exp(x[i,j] - m)\ns[i] = sum(j) e\na[i,j] = e / s -> y[i,j]"), 1},
    {OF_ROWS("\nm[i] = max(j) x[i,j]\ns[i] = sum(j) exp(x[i,j] - m)\na[i,j] = x[i,j] - m - log(s) -> y[i,j]"), 1},
    {OF_ROWS("\nm[i] = min(r) x[i,r] * w[i,r]\ne[i,j] = exp(m - x[i,j] * w[i,j])\ns[i] = sum(j) e\na[i,j] = e * (1.0 / s) -> y[i,j]"), 1},
    {OF_ROWS("\nz[i,j] = x[i,j] + w[i,j]\nm[i] = max(j) z\ne[i,j] = exp(z - m)\ns[i] = sum(j) e\no[i] = sum(j) e * w[i,j]\na[i,j] = o / s -> y[i,j]"), 1},
    {OF_ROWS("\nm[i] = max(r) x[i,r]\na[i,j] = x[i,j] - m -> y[i,j]"), 0},                                                     /* at one point only */
    {OF_ROWS("\nm[i] = max(r) x[i,r]\ne[i,j] = exp(w[i,j] - m)\ns[i] = sum(j) e\na[i,j] = e / s -> y[i,j]"), 0},                 /* of others */
    {OF_ROWS("\nm[i] = max(r) x[i,r]\ne[i,c] = exp(x[i,c] - m)\ns[i] = sum(c) e\na[i,j] = x[i,j] / s -> y[i,j]"), 0},            /* of fewer */
    {OF_ROWS("\nm[i] = max(r) x[i,r]\ne[i,c] = exp(x[i,c+1] - m)\ns[i] = sum(c) e\na[i,j] = x[i,j] / s -> y[i,j]"), 0},
    {OF_ROWS("\nm[i] = max(r) x[i,r]\ne[i,j] = select(0.0 < x[i,j], exp(x[i,j] - m), 0.0)\ns[i] = sum(j) e\na[i,j] = e / s -> y[i,j]"), 0},
    {OF_ROWS("\nm[i] = max(r) x[i,r]\ne[i,j] = exp(x[i,j] - m)\ns[i] = max(j) e\na[i,j] = e / s -> y[i,j]"), 0},                 /* may lose it, too */
    {OF_ROWS("\nm[i] = max(r) x[i,r]\ne[i,j] = exp(x[i,j] - m)\ns[i] = sum(j) e\na[i,j] = f32(i32(e / s)) -> y[i,j]"), 0},       /* 0 */
    {OF_ROWS("\nm[i] = max(r) x[i,r]\ne[i,j] = exp(x[i,j] - m)\ns[i] = sum(j) e\na[i,j] = e / s[n-1-i] -> y[i,j]"), 0},          /* another row's */
    {OF_ROWS("\nm[i] = sum(r) x[i,r]\ne[i,j] = exp(x[i,j] - m)\ns[i] = sum(j) e\na[i,j] = e / s -> y[i,j]"), 0},                 /* no maximum */
    {"kernel @k(x: f32[n,8]) -> (y: f32[n,8], z: f32[n,8]) { axis i=n, j=8\nm[i] = max(j) x[i,j]\ne[i,j] = exp(x[i,j] - m) -> z[i,j]\n"
     "s[i] = sum(j) e\na[i,j] = e / s -> y[i,j] }", 0},
    {"kernel @k(x: f32[n,8]) -> (y: f32[n,8], z: f32[n]) { axis i=n, j=8\nm[i] = max(j) x[i,j] -> z[i]\ne[i,j] = exp(x[i,j] - m)\n"
     "s[i] = sum(j) e\na[i,j] = e / s -> y[i,j] }", 0},
    {"kernel @k(x: i32[n,8]) -> (y: i32[n,8]) { axis i=n, j=8\nm[i] = max(j) x[i,j]\ns[i] = sum(j) x[i,j] - m\na[i,j] = s + x[i,j] -> y[i,j] }", 0},
};

START_TEST(nan_arrives_or_may_be_lost)
{
    const dlc_kernel *kernel = parse(folds[_i].text);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (!strcmp(kernel->stages.data[s].name, "m"))
            ck_assert_msg(dlc_nan_arrives_anyway(kernel, s, arena) == folds[_i].arrives, "%s", folds[_i].text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernel");
    TCase *tests = tcase_create("kernel");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, text_round_trips, 0, NKERNELS);
    tcase_add_loop_test(tests, example_kernels_verify, 0, NKERNELS);
    tcase_add_test(tests, printed_form);
    tcase_add_loop_test(tests, nan_arrives_or_may_be_lost, 0, sizeof folds / sizeof *folds);
    tcase_add_test(tests, shared_expressions_are_bound);
    tcase_add_loop_test(tests, bad_text_is_refused, 0, sizeof bad_texts / sizeof *bad_texts);
    tcase_add_test(tests, deep_text_is_refused);
    tcase_add_loop_test(tests, damaged_text_is_refused_or_meant, 0, NKERNELS);
    tcase_add_loop_test(tests, bad_kernels_are_refused, 0,
                        sizeof bad_kernels / sizeof *bad_kernels);
    tcase_add_test(tests, compaction_drops_what_is_unused);
    tcase_add_test(tests, identity_is_up_to_names);
    tcase_add_test(tests, simplify_uses_extents);
    tcase_add_test(tests, simplify_drops_checks);
    tcase_add_loop_test(tests, contractions_are_recognised, 0,
                        sizeof contractions / sizeof *contractions);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
