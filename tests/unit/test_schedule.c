/*
 * The language of schedules: texts that print as they read and give the right numbers, as code of this machine; and what is
 * refused, sentence by sentence of ir/schedule/verify.c.
 */
#include "tests/unit/schedule_cases.h"
#include "tests/unit/suite.h"

#ifdef __x86_64__
#define TARGET "x86-64-v3"
#else
#define TARGET "aarch64"
#endif

#define UNEVEN \
    "kernel @mm(x: f32[49,24], w: f32[24,40], b: f32[40]) -> (y: f32[49,40]) {\n  axis i=49, j=40, k=24\n" \
    "  a[i,j] = sum(k) x[i, k] * w[k, j]\n  y[i,j] = max(0.0, b[j] + a)\n}\n"
#define MATMUL \
    "kernel @mm(x: f32[m,96], w: f32[96,40], b: f32[40]) -> (y: f32[m,40]) {\n  axis i=m, j=40, k=96\n" \
    "  a[i,j] = sum(k) x[i, k] * w[k, j]\n  y[i,j] = max(0.0, b[j] + a)\n}\n"
#define SOFTMAX(size, at, axes, kept) \
    "kernel @softmax(x: f32[" size "]) -> (y: f32[" size "]) {\n  axis i=m, j=50\n" \
    "  h[i] = max(j) x[" at "]\n  e[" axes "] = exp(x[" at "] - h)\n  l[i] = sum(j) e\n  y[" axes "] = e / l\n}\n"
#define ROUNDS "kernel @rounds(x: f32[12,20]) -> (y: bf16[12,20]) {\n  axis i=12, j=20\n  y[i,j] = bf16(x[i, j]) -> y[i, j]\n}\n"
#define MAP "kernel @map(x: f32[12,20]) -> (y: f32[12,20]) {\n  axis i=12, j=20\n  y[i,j] = x[i, j] + 1.0\n}\n"
#define CHAIN \
    "kernel @chain(x: f32[12,20]) -> (y: f32[12,20]) {\n  axis i=12, j=20\n" \
    "  t[i,j] = x[i, j] + 1.0\n  y[i,j] = t[i, j] + t[i, j - 1 else 0]\n}\n"
#define SUM "kernel @sum(x: f32[12,20]) -> (y: f32[12]) {\n  axis i=12, j=20\n  y[i] = sum(j) x[i, j]\n}\n"
#define SCATTER \
    "kernel @scatter(x: f32[8,16], at: i64[4], u: f32[4,16]) -> (y: f32[8,16]) {\n  axis i=8, j=16, k=4, l=16\n" \
    "  c[i,j] = x[i, j] -> y[i, j]\n  s[k,l] = u[k, l] -> y[at[k], l] update sum\n}\n"

/* Three buffers one behind the other, and a border on each side: the lanes' loop is cut where the source changes. */
#define CONCAT(p, q, all) \
    "kernel @concat(x: f32[m," #p "], y: f32[m," #q "], z: f32[m,9]) -> (o: f32[m," #all "]) {\n  axis i=m, j=" #all "\n" \
    "  o[i,j] = select(j < " #p ", x[i, j if j < " #p "], select(j < " #p " + " #q ", y[i, j - " #p " if j < " #p " + " #q " and " #p \
    " <= j], z[i, j - " #p " - " #q " if " #p " + " #q " <= j and 2 <= j and j + 1 < " #all "]))\n}\n"

/* What is read of s begins at 2, and ends where the run says: for m below 3 there is nothing to compute. */
#define AHEAD \
    "kernel @ahead(x: f32[4], z: f32[m,16]) -> (y: f32[16]) {\n  axis i=4, j=m, k=16\n  s[i,j] = min(x[i], 1.0)\n" \
    "  y[k] = sum(j) z[j, k] * s[0, j + 2 if j < m - 2 and -2 <= j]\n}\n"

/* s lies behind t in scratch, is there before t is computed, and is read after it. */
#define BESIDE \
    "kernel @beside(x: i64[16]) -> (y: i64[16], z: i64[16]) {\n  axis i=16, j=16\n  t[j] = x[j] * 2\n" \
    "  y[j] = t + 1\n  s[i] = x[i] - 3\n  z[i] = s + 1\n}\n"

/* Where each read says where the next one is; and a row of `row` elements, from which lanes take what they want. */
#define DESCENT(row, all) \
    "kernel @descent(x: f32[n," #row "], t: u32[80], f: i32[" #row "]) -> (y: f32[n," #all "]) {\n  axis i=n, j=" #all "\n" \
    "  d[i,j] = t[i64(mod(t[i64(mod(t[j], u32(64)))], u32(64)))]\n" \
    "  y[i,j] = x[i, i64(mod(d, u32(" #row ")))] + f32(f[i64(mod(d + u32(1), u32(" #row ")))])\n}\n"

#define DILATED(padding) \
    "kernel @conv(x: f32[9,7,24], w: f32[3,3,24,32]) -> (y: f32[9,7,32]) {\n  axis oh=9, ow=7, oc=32, kh=3, kw=3, ic=24\n" \
    "  a[oh,ow,oc] = sum(kh,kw,ic) x[oh + kh * 5 - 5, ow + kw * 4 - 4, ic " padding "] * w[kh, kw, ic, oc] -> y[oh, ow, oc]\n}\n"
#define DILATED_TREE(dot) \
    "  copy rows = a.x [oh, ow, kh, kw, ic]\n  par (oh, ow):5 {\n    for oh_ow, kh, kw, lane ic:8 {\n      rows in scratch\n    }\n" \
    "    for oc:16 {\n      a = dot fma oh_ow x oc over " dot "\n    }\n  }\n"

static const struct {
    const char *kernel, *tree;
} right[] = {
    {DESCENT(5, 50), "  par i, lane j:8 x 2 {\n    d in reg\n    y\n  }\n"},
    {DESCENT(8, 64), "  par i, lane j:8 x 4 {\n    d in scratch\n    y\n  }\n"},
    {DESCENT(13, 27), "  par i, lane j:8 x 2 {\n    d in reg\n    y\n  }\n"}, /* vectors side by side, the last one in part; two registers a row */
    {DESCENT(16, 31), "  par i, lane j:8 x 4 {\n    d in reg\n    y\n  }\n"},
    {DESCENT(17, 16), "  par i, lane j:8 x 4 {\n    d in reg\n    y\n  }\n"}, /* too long a row */
    {DESCENT(12, 40), "  par j, lane i:8 {\n    d in reg\n    y\n  }\n"}, /* of each lane its own row */
    {BESIDE, /* the vectors of a step take the same memory in turn */
     "  for i {\n    s in scratch\n  }\n  lane j:8 x 2 {\n    t in scratch\n    y\n  }\n  for i {\n    z\n  }\n"},
    {AHEAD, "  for i, lane j:8 {\n    s in scratch\n  }\n  lane k:8, for j {\n    y\n  }\n"},
    {CONCAT(16, 24, 49), "  par i, lane j:8 {\n    o\n  }\n"},
    {CONCAT(11, 9, 29), "  par i, lane j:8 {\n    o\n  }\n"},
    {CONCAT(3, 33, 45), "  par i, lane j:16 {\n    o\n  }\n"},
    {SOFTMAX("m,50", "i, j", "i,j", "i"),
     "  par i {\n    lane j:8 x 4 {\n      h in reg\n    }\n    lane j:8 {\n      e in scratch\n    }\n    lane j:8 x 4 {\n"
     "      l in reg\n    }\n    lane j:8 {\n      y\n    }\n  }\n"},
    {SOFTMAX("m,50", "i, j", "i,j", "i"), /* exp and its sum in one pass */
     "  par i {\n    lane j:8 x 4 {\n      h in reg\n    }\n    lane j:8 {\n      e in scratch\n      l in reg\n    }\n"
     "    lane j:8 {\n      y\n    }\n  }\n"},
    {SOFTMAX("m,50", "i, j", "i,j", "i"), /* exponentials wait where what is made of them is stored */
     "  par i {\n    lane j:8 x 4 {\n      h in reg\n    }\n    lane j:8 x 4 {\n      e in output\n      l in reg\n    }\n"
     "    lane j:8 {\n      y\n    }\n  }\n"},
    {SOFTMAX("m,50", "i, j", "i,j", "i"), /* the same point by point, of rows two by two */
     "  par i:2 {\n    for i, j {\n      h in scratch\n    }\n    for i, j {\n      e in output\n    }\n    for i, j {\n      l in scratch\n    }\n"
     "    for i, lane j:8 {\n      y\n    }\n  }\n"},
    {SOFTMAX("50,m", "j, i", "j,i", "i"), /* the axis in the middle: no lane is folded */
     "  par i:8, lane i:8 {\n    for j {\n      h in reg\n    }\n    for j {\n      e in scratch\n      l in reg\n    }\n"
     "    for j {\n      y\n    }\n  }\n"},
    {MATMUL, "  par i:6, j:16 {\n    a = dot fma i x j over [k] in reg\n    as a {\n      y\n    }\n  }\n"},
    /* blocks of rows leave over what register tiles of their own height take: 49 by 21 and 6, and by 28, 21 and 6 */
    {UNEVEN, "  par i:21, j:16, for i:6 {\n    a = dot fma i x j over [k] in reg\n    as a {\n      y\n    }\n  }\n"},
    {UNEVEN, "  par i:28, j:16, for i:21, i:6 {\n    a = dot fma i x j over [k] in reg\n    as a {\n      y\n    }\n  }\n"},
    {UNEVEN, "  par i:20 {\n    for k:16, j:16, i:6 {\n      a = dot fma i x j over [k] in scratch\n    }\n    for i, lane j:8 {\n      y\n    }\n  }\n"},
    {MATMUL, /* the sum in pieces, which meet in scratch */
     "  par i:12 {\n    for k:32, j:16, i:6 {\n      a = dot fma i x j over [k] in scratch\n    }\n    for i, lane j:8 {\n      y\n"
     "    }\n  }\n"},
    {MATMUL, /* rows copied */
     "  copy rows = a.x [i, k]\n  par i:6 {\n    for i, lane k:8 {\n      rows in scratch\n    }\n    for j:16 {\n"
     "      a = dot fma i x j over [k] in reg\n      as a {\n        y\n      }\n    }\n  }\n"},
    {MATMUL, /* panels copied, with a layout */
     "  copy panel = a.w [j/16, k, j%16]\n  par j:16 {\n    for k, lane j:8 {\n      panel in scratch\n    }\n    for i:6 {\n"
     "      a = dot fma i x j over [k] in reg\n      as a {\n        y\n      }\n    }\n  }\n"},
    {"kernel @conv(x: f32[14,14,24], w: f32[3,3,24,32], b: f32[32]) -> (y: f32[14,14,32]) {\n"
     "  axis oh=14, ow=14, oc=32, kh=3, kw=3, ic=24\n"
     "  a[oh,ow,oc] = sum(kh,kw,ic) x[oh + kh - 1, ow + kw - 1, ic else 0] * w[kh, kw, ic, oc]\n"
     "  y[oh,ow,oc] = max(0.0, b[oc] + a)\n}\n",
     "  copy rows = a.x [oh, ow, kh, kw, ic]\n  par (oh, ow):12 {\n    for oh_ow, kh, kw, lane ic:8 {\n      rows in scratch\n    }\n"
     "    for oc:16, oh_ow:6 {\n      a = dot fma oh_ow x oc over [kh, kw, ic] in reg\n      as a {\n        y\n      }\n    }\n  }\n"},
    {DILATED("else 0"), /* an image copied once, border included */
     "  copy rows = a.x [oh+5*kh, ow+4*kw, ic]\n  par (oh, ow):21 {\n    for oh_kh, ow_kw, lane ic:8 {\n      rows in scratch\n    }\n"
     "    for oc:16, oh_ow:6 {\n      a = dot fma oh_ow x oc over [kh, kw, ic:10] skip [kh, kw]\n    }\n  }\n"},
    {DILATED("else 0"), /* lines of it, with pixels as they are asked for */
     "  copy rows = a.x [oh+5*kh, ow, kw, ic]\n  par oh:2 {\n    for oh_kh, ow, kw, lane ic:8 {\n      rows in scratch\n    }\n"
     "    for oh, oc:16, ow:4 {\n      a = dot fma ow x oc over [kh, kw, ic]\n    }\n  }\n"},
    {"kernel @down(x: f32[m,21,8], w: f32[3,5,8,16]) -> (y: f32[m,7,16]) {\n  axis oh=m, ow=7, oc=16, kh=3, kw=5, ic=8\n"
     "  a[oh,ow,oc] = sum(kh,kw,ic) x[oh + kh - 1, ow * 3 + kw - 1, ic else 0] * w[kh, kw, ic, oc] -> y[oh, ow, oc]\n}\n",
     "  copy rows = a.x [oh+kh, 3*ow+kw, ic]\n  par oh:3 {\n    for oh_kh, ow_kw, lane ic:8 {\n      rows in scratch\n    }\n"
     "    for oh, oc:16, ow:4 {\n      a = dot fma ow x oc over [kh, kw, ic]\n    }\n  }\n"},
    {DILATED("else 0"), /* taps that are all padding are left out */
     DILATED_TREE("[kh, kw, ic:10] skip [kh, kw]")},
    {DILATED("else 0"), /* row by row, of taps whole rows; parts are of rows of taps */
     "  copy rows = a.x [oh, ow, kh, kw, ic]\n  par oh, ow:3 {\n    for ow, kh, kw, lane ic:8 {\n      rows in scratch\n    }\n"
     "    for oc:16 {\n      a = dot fma ow x oc over [kh:1, kw, ic] skip [kh]\n    }\n  }\n"},
    {DILATED("else 0"), /* a tap by itself, before the rest */
     "  copy rows = a.x [oh, ow, kh, kw, ic]\n  par oh, ow {\n    for kh, kw, lane ic:8 {\n      rows in scratch\n    }\n"
     "    for oc:16 {\n      a = dot fma 1 x oc over [kw, kh, ic] skip [kw]\n    }\n  }\n"},
    {"kernel @gemv(x: f32[200], w: f32[200,90], b: f32[90]) -> (y: f32[90]) {\n  axis j=90, k=200\n"
     "  a[j] = sum(k) x[k] * w[k, j]\n  y[j] = b[j] + a\n}\n",
     "  par j:32 {\n    a = dot fma 1 x j over [k] in reg\n    as a {\n      y\n    }\n  }\n"},
    {"kernel @block(x: f32[10,9,8], we: f32[8,48], wd: f32[3,3,48], wp: f32[48,16]) -> (y: f32[10,9,16]) {\n"
     "  axis ih=10, iw=9, ce=48, ci=8, oh=10, ow=9, kh=3, kw=3, co=16\n"
     "  a[ih,iw,ce] = sum(ci) x[ih, iw, ci] * we[ci, ce]\n  e[ih,iw,ce] = min(6.0, max(0.0, a))\n"
     "  d[oh,ow,ce] = sum(kh,kw) e[oh + kh - 1, ow + kw - 1, ce else 0] * wd[kh, kw, ce]\n  r[oh,ow,ce] = min(6.0, max(0.0, d))\n"
     "  p[oh,ow,co] = sum(ce) r[oh, ow, ce] * wp[ce, co]\n  y[oh,ow,co] = p * 0.5\n}\n",
     "  par oh:4 {\n    for ih, iw:6, ce:16 {\n      a = dot fma iw x ce over [ci] in reg\n      as a {\n        e in scratch\n      }\n"
     "    }\n    for oh, ow, lane ce:8 {\n      for kh, kw {\n        d in reg\n      }\n      r in scratch\n    }\n"
     "    for oh, ow:6, co:16 {\n      p = dot fma ow x co over [ce] in reg\n      as p {\n        y\n      }\n    }\n  }\n"},
    {"kernel @attention(q: f32[12,64], k: f32[32,64], v: f32[32,48]) -> (y: f32[12,48]) {\n"
     "  axis i=12, j=32, d=64, c=48\n  s[i,j] = sum(d) q[i, d] * k[j, d]\n  h[i] = max(j) s\n  e[i,j] = exp((s - h) * 0.125)\n"
     "  l[i] = sum(j) e\n  o[i,c] = sum(j) e[i, j] * v[j, c]\n  y[i,c] = o / l\n}\n",
     "  copy kt = s.k [d, j]\n  par i:12 {\n    for d, lane j:8 {\n      kt in scratch\n    }\n    for i:6, j:16 {\n"
     "      s = dot fma i x j over [d] in scratch\n    }\n    for i {\n      lane j:8 x 4 {\n        h in reg\n      }\n"
     "      lane j:8 {\n        e in scratch\n        l in scratch\n      }\n    }\n    for i:6, c:16 {\n"
     "      o = dot fma i x c over [j] in reg\n      as o {\n        y\n      }\n    }\n  }\n"},
    {MATMUL, "  par j:6, i:16 {\n    a = dot fma j x i over [k] in reg\n    as a {\n      y\n    }\n  }\n"}, /* the other way round */
    {MAP, "  for i, lane j:1 {\n    y\n  }\n"}, /* vectors of one */
    {SUM, "  for i, lane j:1 x 4 {\n    y\n  }\n"},
    {SOFTMAX("m,50", "i, j", "i,j", "i"),
     "  par i {\n    lane j:1 {\n      h in reg\n    }\n    lane j:1 {\n      e in scratch\n      l in reg\n    }\n"
     "    lane j:1 x 2 {\n      y\n    }\n  }\n"},
    {SOFTMAX("50,m", "j, i", "j,i", "i"),
     "  lane i:1 {\n    for j {\n      h in reg\n    }\n    for j {\n      e in scratch\n      l in reg\n    }\n"
     "    for j {\n      y\n    }\n  }\n"},
    {MAP, "  unroll i, lane j:8 {\n    y\n  }\n"},
    {"kernel @behind(x: f32[4]) -> (y: f32[4,9]) {\n  axis i=4, j=9\n  t[i] = x[i] * 2.0\n  y[i,j] = t + 1.0\n}\n",
     "  unroll i {\n    t in scratch\n  }\n  for i, j {\n    y\n  }\n"}, /* written out, read behind */
    {SCATTER, "  for i, lane j:8 {\n    c\n  }\n  for k, l {\n    s\n  }\n"},
    {SCATTER, "  for i, lane j:8 {\n    c\n  }\n  for k, lane l:8 {\n    s\n  }\n"}, /* rows */
};

static const struct {
    const char *kernel, *tree, *sentence;
} wrong[] = {
    {DILATED("else 0"), DILATED_TREE("[kh, kw, ic] skip [kw]"), "what is skipped are the first axes of those behind 'over', in their order"},
    {DILATED("else 0"), DILATED_TREE("[kh, kw, ic] skip [kh, kw, ic]"), "a skips all that it is over; the innermost axis has to stay"},
    {DILATED("else 0"), DILATED_TREE("[kh, kw:2, ic] skip [kh, kw]"), "a: partial sums have several points of kw, which cannot be skipped"},
    {DILATED("else 1.0"), DILATED_TREE("[kh, kw, ic] skip [kh, kw]"),
     "a: its rows are no copy of what is padded with zeros there; nothing can be skipped"},
    {DILATED("else 0"), DILATED_TREE("[ic, kh, kw] skip [ic]"),
     "a: its rows are no copy of what is padded with zeros there; nothing can be skipped"},
#define COPIED(layout) "  copy rows = a.x " layout "\n  par oh, ow {\n    for kh, kw, lane ic:8 {\n      rows in scratch\n    }\n  }\n"
    {DILATED("else 0"), COPIED("[oh+kh, ow+4*kw, ic]"), "a.x depends on axes of a sum in the layout of 'rows' in other ways, too"},
    {DILATED("else 0"), COPIED("[oh+5*kh, ow+oh, ic]"), "a.x depends on axes of a sum in the layout of 'rows' in other ways, too"},
    {DILATED("else 0"), COPIED("[2*oh+5*kh, ow, kw, ic]"), "one axis of a sum counts single points"},
    {DILATED("else 0"), COPIED("[2*oh, ow, kw, ic]"), "one axis of a sum counts single points"},
    {DILATED("else 0"), COPIED("[oh+5*oh, ow, kw, ic]"), "an axis stands twice in a sum"},
    {DILATED("else 0"), COPIED("[oh+5*kh+4, ow, kw, ic]"), "a sum of axes has no elements behind it"},
    {DILATED("else 0"), COPIED("[oh+5*kh/2, ow, kw, ic]"), "a sum of axes has no blocks"},
    {DILATED("else 0"), COPIED("[oh+65, ow, kh, kw, ic]"), "65 lies outside of 1 to 64"},
    {DILATED("else 0"), COPIED("[oh+5*kh, oh, ow, kw, ic]"), "the layout of 'rows' does not have each of its axes once"},
    {MATMUL, "  par i:6, j:16 {\n    a = dot fma i x j over [k] skip [k] in reg\n    as a {\n      y\n    }\n  }\n",
     "a skips all that it is over"},
    {MAP, "  for i, lane j:12 {\n    y\n  }\n", "lane j: 12 lanes are no power of two up to 256"},
    {MAP, "  lane i:4, lane j:4 {\n    y\n  }\n", "lane j lies inside lane i: lanes have no lanes"},
    {MAP, "  for i, lane j:4 x 16 {\n    y\n  }\n", "lane j: 16 vectors a step; 1 to 8 are possible"},
    {MAP, "  lane j:4 x 2 {\n    for i {\n      y\n    }\n  }\n", "lane j: 2 vectors a step hold stages and folds alone, no for i"},
    {"kernel @beside(x: f32[5], w: f32[3,4,8], v: f32[3,4]) -> (y: f32[5], z: f32[8]) {\n  axis i=5, j=8, k=3, l=4\n  y[i] = x[i]\n"
     "  z[j] = sum(k,l) v[k, l] * w[k, l, j]\n}\n",
     "  for l, i {\n    for j:8 {\n      z = dot fma 1 x j over [k] in scratch\n    }\n  }\n  for i {\n    y\n  }\n",
     "z: for i is opened inside for l that reduces it"},
    {SUM, "  lane j:4 {\n    for i {\n      y\n    }\n  }\n", "for i is opened inside lane j that reduces it"},
    {MATMUL, "  par i:6 {\n    lane k:8 {\n      for j:16 {\n        a = dot fma i x j in reg\n      }\n    }\n    for i, j {\n      y\n    }\n  }\n",
     "lane k: a is a register tile, which has lanes of its own"},
    {SCATTER, "  for i, lane j:8 {\n    c nontemporal\n  }\n  for k, l {\n    s\n  }\n", "c is not stored once and for all"},
    {SCATTER, "  for i, j {\n    c\n  }\n  lane k:8, for l {\n    s\n  }\n", "lane k: s stores at data indices, one element at a time"},
    {SCATTER, "  for i, j {\n    c\n  }\n  for l, k {\n    s\n  }\n", "s stores at data indices: its loops run in the order of its axes, once"},
    {SCATTER, "  for k, l {\n    s\n  }\n  for i, j {\n    c\n  }\n", "s changes what c has not stored yet"},
    {MAP, "  for i:4, i:4, i, j {\n    y\n  }\n", "for i:4 is no part of for i:4"},
    {MAP, "  lane i:4 {\n    for i, j {\n      y\n    }\n  }\n", "lies inside the lanes of its axis"},
    {MAP, "  for i, j {\n    y\n  }\n  for i {\n  }\n", "for i is empty"},
    {MAP, "  for i {\n    par j {\n      y\n    }\n  }\n", "par j: parallel loops stand outermost, around everything"},
    {MAP, "  par i:4, i:2, for i, j {\n    y\n  }\n", "par i stands in par i: an axis is shared out among units once"},
    {MATMUL, "  unroll i {\n    for j, k {\n      a in scratch\n    }\n  }\n  for i, j {\n    y\n  }\n",
     "unroll i: only loops of up to 4096 known iterations are written out"},
    {"kernel @map(x: f32[80,90]) -> (y: f32[80,90]) {\n  axis i=80, j=90\n  y[i,j] = x[i, j] + 1.0\n}\n",
     "  unroll i, j {\n    y\n  }\n", "unroll j: with the loops around that are written out, more than 4096 iterations"},
    {MAP, "  unroll i:4 {\n    for i, j {\n      y\n    }\n  }\n", "unroll i: what is written out goes point by point"},
    {MAP, "  for i {\n    y\n  }\n", "y: no loop over its axis j"},
    {MAP, "  for i, j:4 {\n    y\n  }\n", "y: the tile for j:4 is left open"},
    {SUM, "  par j, for i {\n    y\n  }\n", "par j: y is reduced over it"},
    {SCATTER, "  par k {\n    for i, j {\n      c\n    }\n    for l {\n      s\n    }\n  }\n", "par k"},
    {MAP, "", "y is computed nowhere"},
    {MAP, "  for i, j {\n    y\n    y\n  }\n", "y is computed twice"},
    {CHAIN, "  for i, j {\n    t\n    y\n  }\n", "t is not stored and has no place"},
    {CHAIN, "  for i, j {\n    y\n  }\n  for i, j {\n    t in scratch\n  }\n", "t is read by y before it is computed"},
    {CHAIN, "  for i, j {\n    t in reg\n    y\n  }\n", "t in reg is read by y at another point of j"},
    {CHAIN, "  par i, j {\n    t in scratch\n    y\n  }\n", "par j: t is read at other points of it"},
    {CHAIN, "  for i, lane j:4 {\n    t in scratch\n    y\n  }\n", "lane j: t is read at earlier points of it"},
    {CHAIN, "  for i {\n    for j {\n      t in output\n    }\n    for j {\n      y\n    }\n  }\n",
     "t in output: no map that is the last to read it, at its own points, stores the same type there"},
    {SOFTMAX("m,50", "i, j", "i,j", "i"),
     "  par i {\n    lane j:8 {\n      h in reg\n    }\n    for j {\n      e in output\n    }\n    for j {\n      l in reg\n    }\n"
     "    lane j:8 {\n      y nontemporal\n    }\n  }\n",
     "e in output: no map that is the last to read it, at its own points, stores the same type there"},
    {SOFTMAX("m,50", "i, j", "i,j", "i"),
     "  par i {\n    for j {\n      h in output\n    }\n    for j {\n      e in scratch\n    }\n    for j {\n      l in reg\n    }\n"
     "    lane j:8 {\n      y\n    }\n  }\n",
     "h in output: no map that is the last to read it, at its own points, stores the same type there"},
    {MATMUL, "  for i, j, k {\n    a in reg\n    y\n  }\n", "y reads a inside for k that reduces it"},
    {MATMUL, "  par i:6, j:16 {\n    a = dot fma i x j over [k] in reg\n    for i, j {\n      y\n    }\n  }\n", "a in reg is read by y outside of 'as a'"},
    {MATMUL, "  par i:6, j:16, for k:8 {\n    a = dot fma i x j over [k] in reg\n    as a {\n      y\n    }\n  }\n",
     "a: its sum is cut by for k and must be in scratch"},
    {MATMUL, "  par i:16, j:32 {\n    a = dot fma i x j over [k] in reg\n    as a {\n      y\n    }\n  }\n", "registers of"},
    {MATMUL, "  par i:6, j:16 {\n    a = dot fma i x i over [k] in reg\n    as a {\n      y\n    }\n  }\n", "rows and columns are not of one factor each"},
    {SUM, "  par i:8 {\n    y = dot fma 1 x i over [j]\n  }\n", "y is no sum of products of two factors"},
    {MATMUL, "  par i:6, j:16 {\n    a = dot fma i x j over [k] in reg\n    as a {\n      for i {\n        y\n      }\n    }\n  }\n",
     "as a holds stages alone, no for i"},
    {MATMUL, "  par i:6, j:16 {\n    as a {\n      y\n    }\n    a = dot fma i x j over [k] in reg\n  }\n", "a is read by y before it is computed"},
    {MAP, "  for i, j {\n    z\n  }\n", "'z' is no stage of the kernel"},
    {MAP, "  for q, j {\n    y\n  }\n", "'q' is no axis of the kernel"},
};

/* Lanes of a warp, in the CUDA target's own words. */
START_TEST(lanes_of_a_warp)
{
    dlc_diag diag;
    dlc_schedule *schedule = NULL;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag_init(&diag, arena);
    const char *text = "schedule sm_75 {\n  for i, lane j:128 {\n    t in scratch\n  }\n  for i, lane j:32 {\n    y\n  }\n}\n";
    ck_assert_int_eq(dlc_schedule_parse(text, kernel_of(CHAIN, arena), NULL, arena, &diag, &schedule), DLC_INVALID);
    ck_assert_ptr_nonnull(strstr(diag.messages[0].text, "lane j: 32 lanes beside others of 128: a thread has as many of each"));
    dlc_arena_destroy(arena);
}
END_TEST

#ifdef __x86_64__
/* Rows of up to two registers of 16. */
START_TEST(rows_in_wide_registers)
{
    expect_right(DESCENT(12, 50), "x86-64-v4", 0, "  par i, lane j:16 x 2 {\n    d in reg\n    y\n  }\n");
    expect_right(DESCENT(29, 75), "x86-64-v4", 0, "  par i, lane j:16 x 4 {\n    d in reg\n    y\n  }\n");
    expect_right(DESCENT(32, 16), "x86-64-v4", 0, "  par i, lane j:16 {\n    d in reg\n    y\n  }\n");
}
END_TEST
#endif

/* What comes ahead changes no number, wherever it lies: in place, widened, in a copy, behind the last column, no load at all. */
START_TEST(columns_come_ahead)
{
    static const char *const factors[][2] = {{"f32", "w[k, j]"}, {"f16", "f32(w[k, j])"}, {"f32", "exp(w[k, j])"}};
    for (int i = 0; i < 3; i++) {
        char kernel[512];
        snprintf(kernel, sizeof kernel, "kernel @k(x: f32[m,40], w: %s[40,n]) -> (y: f32[m,n]) {\n  axis i=m, j=n, k=40\n"
                 "  a[i,j] = sum(k) x[i, k] * %s -> y[i, j]\n}\n", factors[i][0], factors[i][1]);
        expect_right(kernel, "x86-64-v3", 0, "  par j:16, i:4 {\n    a = dot fma i x j over [k] ahead 1 via L2\n  }\n");
        expect_right(kernel, "x86-64-v3", 0, "  par j:16, i:4 {\n    a = dot fma i x j over [k:8] ahead 1 via L2\n  }\n");
        expect_right(kernel, "x86-64-v3", 0, "  par i, j:16 {\n    a = dot fma 1 x j over [k] ahead 1 via L2\n  }\n");
    }
    const char *residual = "kernel @k(x: f32[m,40], w: f32[40,n], r: f32[m,n]) -> (y: f32[m,n]) {\n  axis i=m, j=n, k=40\n"
                           "  a[i,j] = sum(k) x[i, k] * w[k, j]\n  b[i,j] = a + r[i, j] -> y[i, j]\n}\n";
    expect_right(residual, "x86-64-v3", 0, "  par j:16, i:4 {\n    a = dot fma i x j over [k] in reg\n    as a {\n      b ahead 1 via L2\n    }\n  }\n");
    expect_refused(residual, "x86-64-v3", 0, "  par i, j:16 {\n    a = dot fma 1 x j over [k] in reg\n    as a {\n      b ahead 1 via L2\n    }\n  }\n",
                   "no loop around lanes of it or rows of its tile over which it could read ahead");
    expect_refused("kernel @k(x: f32[64,32], w: f32[32,64]) -> (y: f32[64,64]) {\n  axis i=64, j=64, k=32\n"
                   "  a[i,j] = sum(k) x[i, k] * w[k, j] -> y[i, j]\n}\n", "sm_80", 256,
                   "  par i:64, j:64 {\n    thread i:4, j:4 {\n      a = dot fma i x j over [k] ahead 1 via L2\n    }\n  }\n",
                   "threads of a block copy ahead what it multiplies");
}
END_TEST

/* What was computed of a tile's last element is not the value at the points of loops behind it. */
START_TEST(elements_end_with_their_tile)
{
    static const char kernel[] = "kernel @k(x0: f64[33], x1: f64[33,40], x2: f64[40], x3: f64[40,33]) -> (y0: f64[40], y2: f64[40,33]) {\n"
                                 "  axis a0=40, a1=33\n  s0[a0] = sum(a1) x0[a1] * x1[a1, a0] -> y0[a0]\n  s1[a0] = x2[a0] + s0\n"
                                 "  s2[a0,a1] = x3[a0, a1] + s1 -> y2[a0, a1]\n}\n";
    expect_right(kernel, "x86-64-v3", 0, "  for a0:8 {\n    s0 = dot fma 1 x a0 over [a1] in reg\n    as s0 {\n      s1 in scratch\n    }\n"
                 "    lane a1:16, for a0 {\n      s2\n    }\n  }\n");
    expect_right(kernel, "x86-64-v3", 0, "  for a0:4 {\n    s0 = dot fma 1 x a0 over [a1] in reg\n    as s0 {\n      s1 in scratch\n    }\n"
                 "    for a0, unroll a1 {\n      s2\n    }\n  }\n");
}
END_TEST

/* Lanes that read every second, third or fourth element, from anywhere, at the end of what there is, behind guards, some of them off. */
START_TEST(lanes_stride)
{
    static const char *const types[] = {"f32", "f64", "f16", "u8", "i64", "bool"}, *const targets[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
    for (int stride = 2; stride <= 5; stride++)
        for (int t = 0; t < 6; t++)
            for (int target = 0; target < 3; target++) {
                char kernel[512];
                snprintf(kernel, sizeof kernel, "kernel @k(x: %s[3,%d]) -> (y: %s[3,37,2]) {\n  axis i=3, j=37, k=2\n"
                         "  a[i,j,k] = x[i, j*%d + k] -> y[i, j, k]\n}\n", types[t], 36 * stride + 2, types[t], stride);
                expect_right(kernel, targets[target], 0, "  par i, k, lane j:8 {\n    a\n  }\n");
                expect_right(kernel, targets[target], 0, "  par i, lane j:16, unroll k {\n    a\n  }\n");
                expect_right(kernel, targets[target], 0, "  par i, lane j:32, for k {\n    a\n  }\n");
                snprintf(kernel, sizeof kernel, "kernel @k(x: %s[n]) -> (y: %s[n]) {\n  axis i=n\n"
                         "  a[i] = x[i*%d - 3 if 3 <= i*%d and i*%d < n + 3 else %s] -> y[i]\n}\n", types[t], types[t], stride, stride, stride,
                         t == 5 ? "1" : t < 3 ? "2.0" : "2");
                for (int lanes = 8; lanes <= 32; lanes *= 2) {
                    char tree[64];
                    snprintf(tree, sizeof tree, "  par i:%d, lane i:%d {\n    a\n  }\n", 2 * lanes, lanes);
                    expect_right(kernel, targets[target], 0, tree);
                }
            }
}
END_TEST

/* Where what a map or a row reads is asked for early, and its results go past the caches, numbers stay what they are: at the end, where
 * rows begin anywhere, between guards, in parts. */
START_TEST(streams_go_past_the_caches)
{
    expect_right("kernel @k(x: f32[m,n]) -> (y: f32[m,n]) {\n  axis i=m, j=n, k=n\n  a[i] = max(k) x[i, k]\n"
                 "  b[i,j] = exp(x[i, j] - a) -> y[i, j]\n}\n", "x86-64-v3", 0,
                 "  par i {\n    lane k:8 x 4 {\n      a in reg ahead 2 via L2\n    }\n    lane j:8 {\n      b ahead 3 via L2 nontemporal\n    }\n  }\n");
    expect_right("kernel @k(x: f16[37,64], w: f32[64]) -> (y: f32[37,64], z: i8[37,64]) {\n  axis i=37, j=64\n"
                 "  a[i,j] = f32(x[i, j]) * w[j] -> y[i, j]\n  b[i,j] = i8(a) -> z[i, j]\n}\n", "x86-64-v4", 0,
                 "  par i:4, for i, lane j:32 {\n    a in reg ahead 64 via L2 nontemporal\n    b nontemporal\n  }\n");
    expect_right("kernel @k(x: f32[37,84]) -> (y: f32[37,84]) {\n  axis i=37, j=84\n  a[i,j] = x[i, j] * 3.0 -> y[i, j]\n}\n", "x86-64-v4", 0,
                 "  par i, lane j:16 {\n    a nontemporal\n  }\n");
    expect_right("kernel @k(x: f64[37,10], z: u8[37,48]) -> (y: f64[37,10], w: u8[37,48]) {\n  axis i=37, j=10, k=48\n  a[i,j] = x[i, j] * 3.0 -> y[i, j]\n"
                 "  b[i,k] = z[i, k] + u8(7) -> w[i, k]\n}\n", "x86-64-v3", 0,
                 "  par i {\n    lane j:8 {\n      a nontemporal\n    }\n    lane k:8 {\n      b nontemporal\n    }\n  }\n");
    expect_right("kernel @k(x: f32[n]) -> (y: f32[n]) {\n  axis i=n\n  a[i] = x[i - 3 if 3 <= i and i < n + 3 else 1.0] -> y[i]\n}\n", "x86-64-v2", 0,
                 "  par i:64, lane i:4 {\n    a ahead 1 via L2 nontemporal\n  }\n");
    expect_right("kernel @k(x: f32[5,9], z: f32[9,n]) -> (y: f32[5,n]) {\n  axis i=5, j=n, k=9\n"
                 "  a[i,j] = sum(k) x[i, k] * z[k, j] -> y[i, j]\n}\n", "x86-64-v3", 0,
                 "  par i:2, j:16 {\n    a = dot fma i x j over [k] nontemporal\n  }\n");
    expect_refused("kernel @k(x: f32[64]) -> (y: f32[64]) {\n  axis i=64\n  a[i] = x[i] + 1.0 -> y[i]\n}\n", "sm_80", 0,
                   "  par i:32, lane i:32 {\n    a nontemporal\n  }\n", "sm_80 has no nontemporal stores");
    expect_refused("kernel @k(x: f32[64]) -> (y: f32[64]) {\n  axis i=64\n  a[i] = x[i] + 1.0 -> y[i]\n}\n", "x86-64-v3", 0,
                   "  par i {\n    a ahead 1 via L2\n  }\n", "no loop around lanes of it or rows of its tile over which it could read ahead");
    expect_refused("kernel @k(x: f32[64]) -> (y: f32[64]) {\n  axis i=64\n  a[i] = x[i] + 1.0\n  b[i] = a * a -> y[i]\n}\n", "x86-64-v3", 0,
                   "  par i:16, lane i:8 {\n    a in reg nontemporal\n    b\n  }\n", "a is not stored once and for all");
}
END_TEST

/* What lanes have stored, if they kept it in registers too, is there for all of them before a scatter changes it. */
START_TEST(a_scatter_waits_for_the_lanes)
{
    expect_right(SCATTER, "sm_75", 0, "  lane i:64, for j {\n    c in reg\n  }\n  for k, l {\n    s\n  }\n");
    expect_right(SCATTER, "sm_75", 0, "  for i, lane j:32 {\n    c\n  }\n  for k, l {\n    s\n  }\n");
}
END_TEST

#define AGAIN \
    "kernel @again(x: f32[8,17,32], w: f32[8,17,32]) -> (y: f32[8,17,32]) {\n  axis b=8, i=17, c=32, j=32\n" \
    "  s[b,i,c] = x[b, i, c] + w[b, i, c]\n  y[b,i,j] = max(0.0, s[b, i, j * -1 + 31])\n}\n"

/* What lanes store in each iteration has been read by the others before the next: in a warp, and in one of a block. */
START_TEST(lanes_have_read_before_the_next_iteration)
{
    static const char body[] = " b, for i {\n    lane c:32 {\n      s in scratch\n    }\n    lane j:32 {\n      y\n    }\n  }\n";
    char tree[sizeof body + 8];
    snprintf(tree, sizeof tree, "  par%s", body);
    expect_right(AGAIN, "sm_75", 0, tree);
    snprintf(tree, sizeof tree, "  warp%s", body);
    expect_right(AGAIN, "sm_75", 128, tree);
}
END_TEST

START_TEST(right_ones_read_back_and_run)
{
    expect_right(right[_i].kernel, TARGET, 0, right[_i].tree);
}
END_TEST

START_TEST(wrong_ones_are_refused_in_a_sentence)
{
    expect_refused(wrong[_i].kernel, TARGET, 0, wrong[_i].tree, wrong[_i].sentence);
}
END_TEST

/* --- what code of a schedule needs of the machine that runs it --- */

#define BYTES(x, w) \
    "kernel @bytes(x: " x "[7,67], w: " w "[67,70]) -> (y: i32[7,70]) {\n  axis i=7, j=70, k=67\n" \
    "  a[i,j] = sum(k) i32(x[i, k]) * i32(w[k, j])\n  y[i,j] = a + 1\n}\n"
#define TABLE(size) \
    "kernel @table(x: u8[64], t: u8[" size "]) -> (y: u8[64]) {\n  axis i=64\n  y[i] = t[i64(x[i])]\n}\n"
#define BYTE_LANES(n) "  par i, lane j:" n " {\n    for k {\n      a in reg\n    }\n    y\n  }\n"
#define BYTE_GRANULES "  par i, lane j:16 {\n    unroll k:4 {\n      a = dot vpdpbusd over [k] in reg\n    }\n    y\n  }\n"

static const struct {
    const char *kernel, *target, *tree;
    uint32_t facts;
} needs[] = {
    {BYTES("u8", "i8"), "x86-64-v3+avx_vnni", BYTE_LANES("8"), DLC_HAS_AVX_VNNI},
    {BYTES("i8", "u8"), "x86-64-v4+vnni", BYTE_LANES("16"), DLC_HAS_VNNI},
    {BYTES("i8", "i8"), "x86-64-v4+vnni", BYTE_LANES("16"), 0},
    {BYTES("u8", "i8"), "x86-64-v4", BYTE_LANES("16"), 0},
    {BYTES("u8", "i8"), "x86-64-v4+vbmi+vnni", BYTE_GRANULES, DLC_HAS_VNNI | DLC_HAS_VBMI},
    {BYTES("u8", "i8"), "x86-64-v4+vnni", BYTE_GRANULES, DLC_HAS_VNNI},
    {TABLE("256"), "x86-64-v4+vbmi+vnni", "  lane i:16 {\n    y\n  }\n", DLC_HAS_VBMI},
    {TABLE("300"), "x86-64-v4+vbmi+vnni", "  lane i:16 {\n    y\n  }\n", 0},
    {MAP, "x86-64-v4+vbmi+vnni+bf16", "  for i, lane j:16 {\n    y\n  }\n", 0},
    {ROUNDS, "x86-64-v4+vbmi+vnni+bf16", "  for i, lane j:16 {\n    y\n  }\n", DLC_HAS_BF16},
    {ROUNDS, "x86-64-v3+bf16", "  for i, lane j:8 {\n    y\n  }\n", 0},
    {ROUNDS, "x86-64-v4", "  for i, lane j:16 {\n    y\n  }\n", 0},
};

START_TEST(code_needs_what_it_uses)
{
    dlc_diag diag;
    dlc_schedule *schedule = NULL;
    char text[1024];
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag_init(&diag, arena);
    snprintf(text, sizeof text, "schedule %s {\n%s}\n", needs[_i].target, needs[_i].tree);
    dlc_status status = dlc_schedule_parse(text, kernel_of(needs[_i].kernel, arena), NULL, arena, &diag, &schedule);
    ck_assert_msg(status == DLC_OK, "%s", diag.nmessages ? diag.messages[0].text : "");
    ck_assert_uint_eq(dlc_schedule_facts(schedule, arena), needs[_i].facts);
    dlc_arena_destroy(arena);
}
END_TEST

/* An instruction that was measured as no faster than floats' is not taken; what was not measured is. */
START_TEST(rows_pay_as_measured)
{
    dlc_target target = *dlc_target_find("x86-64-v4+bf16");
    dlc_machine machine = *target.machine;
    target.machine = &machine;
    ck_assert(dlc_dot_pays(&target, DLC_DOT_VDPBF16PS));
    machine.ops_per_us[DLC_IS_FMA] = 100;
    ck_assert(dlc_dot_pays(&target, DLC_DOT_VDPBF16PS));
    machine.ops_per_us[DLC_IS_BF16] = 200;
    ck_assert(dlc_dot_pays(&target, DLC_DOT_VDPBF16PS));
    machine.ops_per_us[DLC_IS_BF16] = 50;
    ck_assert(!dlc_dot_pays(&target, DLC_DOT_VDPBF16PS));
    ck_assert(!dlc_dot_pays(dlc_target_find("x86-64-v4"), DLC_DOT_VDPBF16PS));
    target.facts |= DLC_HAS_AMX_BF16;
    machine.ops_per_us[DLC_IS_AMX_BF16] = 700; /* six products for one of floats */
    ck_assert(!dlc_dot_pays(&target, DLC_DOT_BF16X3));
    ck_assert(dlc_dot_pays(&target, DLC_DOT_TDPBF16PS));
    machine.ops_per_us[DLC_IS_AMX_BF16] = 1400;
    ck_assert(dlc_dot_pays(&target, DLC_DOT_BF16X3));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schedule");
    TCase *tests = tcase_create("schedule");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, lanes_of_a_warp);
#ifdef __x86_64__
    tcase_add_test(tests, rows_in_wide_registers);
#endif
    tcase_add_test(tests, columns_come_ahead);
    tcase_add_test(tests, streams_go_past_the_caches);
    tcase_add_test(tests, lanes_stride);
    tcase_add_test(tests, elements_end_with_their_tile);
    tcase_add_test(tests, a_scatter_waits_for_the_lanes);
    tcase_add_test(tests, lanes_have_read_before_the_next_iteration);
    tcase_add_loop_test(tests, right_ones_read_back_and_run, 0, sizeof right / sizeof *right);
    tcase_add_loop_test(tests, wrong_ones_are_refused_in_a_sentence, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(tests, rows_pay_as_measured);
    tcase_add_loop_test(tests, code_needs_what_it_uses, 0, sizeof needs / sizeof *needs);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
