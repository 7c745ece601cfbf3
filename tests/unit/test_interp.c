/*
 * The interpreter against plain C loops: kernels of every form (map, window, row, contraction,
 * recurrence, scatter, pairs), several layouts and types, empty extents.
 */
#include "ir/interp/interp.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

static dlc_arena *arena;
static dlc_diag diag;
static dlc_kernel *k;
static dlc_pool *p;

static void setup(void)
{
    arena = dlc_arena_create(0);
    dlc_diag_init(&diag, arena);
    k = dlc_kernel_create(arena, "k");
    p = k->pool;
}

static void teardown(void)
{
    dlc_arena_destroy(arena);
}

/* --- building --- */

static dlc_expr num(int64_t value)
{
    return dlc_expr_i64(p, value);
}

static dlc_expr f32(double value)
{
    return dlc_expr_const(p, DLC_F32, value);
}

static uint32_t axis(const char *name, int64_t extent)
{
    return dlc_kernel_axis(k, name, num(extent));
}

static dlc_expr ax(uint32_t axis_id)
{
    return dlc_expr_axis(p, axis_id);
}

static uint32_t buffer(const char *name, dlc_role role, dlc_dtype dtype, uint8_t rank,
                       const dlc_expr *dims, dlc_layout layout)
{
    dlc_type type = {.dtype = dtype, .rank = rank};
    memcpy(type.dims, dims, rank * sizeof *dims);
    return dlc_kernel_buffer(k, name, &type, &layout, role);
}
#define DIMS(...)                                                                                  \
    (sizeof((dlc_expr[]){__VA_ARGS__}) / sizeof(dlc_expr)), (const dlc_expr[])                     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
static const dlc_layout rows = {0};

static dlc_expr load_of(dlc_source source, uint32_t rank, const dlc_expr *index)
{
    dlc_dtype dtype = DLC_SOURCE_IS_STAGE(source)
                          ? k->stages.data[DLC_SOURCE_INDEX(source)].dtype[0]
                          : k->buffers.data[source].type.dtype;
    return dlc_expr_load(p, dtype, source, index, rank, 0, 0, 0);
}
#define LOAD(source, ...) load_of(source, DIMS(__VA_ARGS__))

typedef struct {
    uint32_t axes[6], reduce[4];
    uint8_t naxes, nreduce;
    dlc_reduce combine;
    dlc_expr value, second;
    dlc_dtype dtype;
    int32_t buffer; /* index + 1; 0: a temporary */
    dlc_expr store[6];
    uint8_t nstore, update, store_second;
} stage_spec;

/* store left out: the stage's own axes. */
static uint32_t stage(const char *name, const stage_spec *spec)
{
    dlc_stage *s = dlc_kernel_stage(k, name);
    for (uint32_t i = 0; i < spec->naxes; i++)
        dlc_vec_push(arena, &s->axes, spec->axes[i]);
    for (uint32_t i = 0; i < spec->nreduce; i++)
        dlc_vec_push(arena, &s->reduce, spec->reduce[i]);
    s->combine = (uint8_t)spec->combine;
    s->value[0] = spec->value;
    s->value[1] = spec->second;
    s->dtype[0] = (dlc_dtype)dlc_node_of(p, spec->value)->dtype;
    s->dtype[1] = spec->second ? DLC_I64 : DLC_NONE;
    s->second = spec->store_second;
    s->update = spec->update;
    if (spec->buffer) {
        s->buffer = (uint32_t)spec->buffer - 1;
        for (uint32_t i = 0; i < (spec->nstore ? spec->nstore : spec->naxes); i++)
            dlc_vec_push(arena, &s->store, spec->nstore ? spec->store[i] : ax(spec->axes[i]));
    }
    return k->stages.n - 1;
}

static dlc_status run(dlc_interp_mode mode, void **buffers, const int64_t *symbols)
{
    return dlc_interp_run(k, mode, &(dlc_interp_args){.buffers = buffers, .symbols = symbols},
                          &diag);
}

/* Deterministic floats in [-1, 1). */
static void fill(float *to, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(int32_t)seed / 2147483648.0f;
    }
}

static void check_close(const float *got, const float *want, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs((double)got[i] - want[i]) <= tolerance * (1 + fabs(want[i])),
                      "[%zu] = %.9g, not %.9g", i, got[i], want[i]);
}

/* --- convolution: guards, layouts, strict order --- */

enum { CN = 2, CI = 3, CH = 9, CW = 20, CO = 10, CK = 3 };

static void build_conv(dlc_layout x_layout, dlc_layout y_layout)
{
    uint32_t x =
        buffer("x", DLC_ROLE_IN, DLC_F32, DIMS(num(CN), num(CI), num(CH), num(CW)), x_layout);
    uint32_t w =
        buffer("w", DLC_ROLE_CONST, DLC_F32, DIMS(num(CO), num(CI), num(CK), num(CK)), rows);
    uint32_t y =
        buffer("y", DLC_ROLE_OUT, DLC_F32, DIMS(num(CN), num(CO), num(CH), num(CW)), y_layout);
    uint32_t n = axis("n", CN), oc = axis("oc", CO), oh = axis("oh", CH), ow = axis("ow", CW),
             ic = axis("ic", CI), kh = axis("kh", CK), kw = axis("kw", CK);
    dlc_expr ih = dlc_addi(p, dlc_add(p, ax(oh), ax(kh)), -1),
             iw = dlc_addi(p, dlc_add(p, ax(ow), ax(kw)), -1);
    dlc_expr guard = dlc_and(p, dlc_in_range(p, ih, num(CH)), dlc_in_range(p, iw, num(CW)));
    dlc_expr index[4] = {ax(n), ax(ic), ih, iw};
    dlc_expr value = dlc_mul(p, dlc_expr_load(p, DLC_F32, x, index, 4, guard, 0, 0),
                             LOAD(w, ax(oc), ax(ic), ax(kh), ax(kw)));
    stage("y", &(stage_spec){.axes = {n, oc, oh, ow},
                             .naxes = 4,
                             .reduce = {ic, kh, kw},
                             .nreduce = 3,
                             .combine = DLC_REDUCE_SUM,
                             .value = value,
                             .buffer = (int32_t)y + 1});
}

static size_t at4(int is_nhwc, int channels, int n, int c, int h, int w)
{
    return is_nhwc ? (size_t)(((n * CH + h) * CW + w) * channels + c)
                   : (size_t)(((n * channels + c) * CH + h) * CW + w);
}

START_TEST(convolution)
{
    static float x[CN * CI * CH * CW], w[CO * CI * CK * CK], y[CN * CO * CH * CW],
        want[CN * CO * CH * CW];
    int is_nhwc = _i;
    dlc_layout layout = is_nhwc ? dlc_layout_channels_last(4) : rows;
    build_conv(layout, layout);
    fill(x, CN * CI * CH * CW, 1);
    fill(w, CO * CI * CK * CK, 2);
    for (int n = 0; n < CN; n++)
        for (int oc = 0; oc < CO; oc++)
            for (int oh = 0; oh < CH; oh++)
                for (int ow = 0; ow < CW; ow++) {
                    volatile float sum = 0;
                    for (int ic = 0; ic < CI; ic++)
                        for (int kh = 0; kh < CK; kh++)
                            for (int kw = 0; kw < CK; kw++) {
                                int ih = oh + kh - 1, iw = ow + kw - 1;
                                int is_inside = ih >= 0 && ih < CH && iw >= 0 && iw < CW;
                                volatile float product =
                                    (is_inside ? x[at4(is_nhwc, CI, n, ic, ih, iw)] : 0) *
                                    w[((oc * CI + ic) * CK + kh) * CK + kw];
                                sum = sum + product;
                            }
                    want[at4(is_nhwc, CO, n, oc, oh, ow)] = sum;
                }
    void *buffers[] = {x, w, y};
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_OK);
    ck_assert_mem_eq(y, want, sizeof y); /* the same bits: index order, two roundings */
    memset(y, 0, sizeof y);
    ck_assert_int_eq(run(DLC_WIDE, buffers, NULL), DLC_OK);
    check_close(y, want, CN * CO * CH * CW, 1e-6);
}
END_TEST

/* A packed filter: oc in blocks of 8, the last one padded. */
START_TEST(blocked_layout)
{
    enum { M = 19, N = 5, B = 8 };
    dlc_layout packed = {.nparts = 3};
    packed.part[0].dim = 0;
    packed.part[0].block = B;
    packed.part[1].dim = 1;
    packed.part[1].block = 1;
    packed.part[2].dim = 0;
    packed.part[2].block = B;
    packed.part[2].inner = 1;
    uint32_t x = buffer("x", DLC_ROLE_IN, DLC_I32, DIMS(num(M), num(N)), rows);
    uint32_t y = buffer("y", DLC_ROLE_OUT, DLC_I32, DIMS(num(M), num(N)), packed);
    uint32_t i = axis("i", M), j = axis("j", N);
    stage("y", &(stage_spec){.axes = {i, j},
                             .naxes = 2,
                             .value = LOAD(x, ax(i), ax(j)),
                             .buffer = (int32_t)y + 1});
    int32_t from[M * N], to[3 * N * B];
    for (int e = 0; e < M * N; e++)
        from[e] = e + 1;
    memset(to, 0, sizeof to);
    void *buffers[] = {from, to};
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_OK);
    for (int r = 0; r < M; r++)
        for (int c = 0; c < N; c++)
            ck_assert_int_eq(to[(r / B * N + c) * B + r % B], from[r * N + c]);
}
END_TEST

/* --- rows, with a symbol as the number of rows --- */

enum { ROW = 37 };

static void row_buffers(uint32_t *x, uint32_t *y, uint32_t *i, uint32_t *j)
{
    dlc_expr n = dlc_expr_sym(p, dlc_kernel_symbol_add(k, "n", 0, 1000, 0));
    *x = buffer("x", DLC_ROLE_IN, DLC_F32, DIMS(n, num(ROW)), rows);
    *y = buffer("y", DLC_ROLE_OUT, DLC_F32, DIMS(n, num(ROW)), rows);
    *i = dlc_kernel_axis(k, "i", n);
    *j = axis("j", ROW);
}

START_TEST(softmax)
{
    uint32_t x, y, i, j;
    row_buffers(&x, &y, &i, &j);
    uint32_t m = stage("m", &(stage_spec){.axes = {i},
                                          .naxes = 1,
                                          .reduce = {j},
                                          .nreduce = 1,
                                          .combine = DLC_REDUCE_MAX,
                                          .value = LOAD(x, ax(i), ax(j))});
    dlc_expr shifted = dlc_sub(p, LOAD(x, ax(i), ax(j)), LOAD(DLC_STAGE_SOURCE(m), ax(i)));
    uint32_t e = stage(
        "e",
        &(stage_spec){.axes = {i, j}, .naxes = 2, .value = dlc_expr1(p, DLC_EXPR_EXP, shifted)});
    uint32_t s = stage("s", &(stage_spec){.axes = {i},
                                          .naxes = 1,
                                          .reduce = {j},
                                          .nreduce = 1,
                                          .combine = DLC_REDUCE_SUM,
                                          .value = LOAD(DLC_STAGE_SOURCE(e), ax(i), ax(j))});
    stage("y",
          &(stage_spec){.axes = {i, j},
                        .naxes = 2,
                        .buffer = (int32_t)y + 1,
                        .value = dlc_expr2(p, DLC_EXPR_DIV, LOAD(DLC_STAGE_SOURCE(e), ax(i), ax(j)),
                                           LOAD(DLC_STAGE_SOURCE(s), ax(i)))});
    static float from[500 * ROW], to[500 * ROW], want[500 * ROW];
    const int64_t sizes[] = {1, 7, 500, 0};
    int64_t n = sizes[_i];
    fill(from, 500 * ROW, 3);
    from[5] = -INFINITY;
    for (int64_t r = 0; r < n; r++) {
        double most = -INFINITY, sum = 0;
        for (int c = 0; c < ROW; c++)
            most = fmax(most, from[r * ROW + c]);
        for (int c = 0; c < ROW; c++)
            sum += exp(from[r * ROW + c] - most);
        for (int c = 0; c < ROW; c++)
            want[r * ROW + c] = (float)(exp(from[r * ROW + c] - most) / sum);
    }
    void *buffers[] = {from, to};
    for (int mode = DLC_STRICT; mode <= DLC_WIDE; mode++) {
        memset(to, 0, sizeof to);
        ck_assert_int_eq(run((dlc_interp_mode)mode, buffers, &n), DLC_OK);
        check_close(to, want, (size_t)n * ROW, mode == DLC_WIDE ? 1e-7 : 1e-6);
    }
}
END_TEST

START_TEST(layer_norm)
{
    uint32_t x, y, i, j;
    row_buffers(&x, &y, &i, &j);
    dlc_expr at = LOAD(x, ax(i), ax(j));
    uint32_t s = stage("s", &(stage_spec){.axes = {i},
                                          .naxes = 1,
                                          .reduce = {j},
                                          .nreduce = 1,
                                          .combine = DLC_REDUCE_SUM,
                                          .value = at});
    dlc_expr mean = dlc_expr2(p, DLC_EXPR_DIV, LOAD(DLC_STAGE_SOURCE(s), ax(i)), f32(ROW));
    dlc_expr centred = dlc_sub(p, at, mean);
    uint32_t v = stage("v", &(stage_spec){.axes = {i},
                                          .naxes = 1,
                                          .reduce = {j},
                                          .nreduce = 1,
                                          .combine = DLC_REDUCE_SUM,
                                          .value = dlc_mul(p, centred, centred)});
    dlc_expr variance = dlc_expr2(p, DLC_EXPR_DIV, LOAD(DLC_STAGE_SOURCE(v), ax(i)), f32(ROW));
    dlc_expr root = dlc_expr1(p, DLC_EXPR_SQRT, dlc_add(p, variance, f32(1e-5)));
    stage("y", &(stage_spec){.axes = {i, j},
                             .naxes = 2,
                             .buffer = (int32_t)y + 1,
                             .value = dlc_expr2(p, DLC_EXPR_DIV, centred, root)});
    static float from[40 * ROW], to[40 * ROW], want[40 * ROW];
    int64_t n = 40;
    fill(from, 40 * ROW, 4);
    for (int r = 0; r < n; r++) {
        double sum = 0, square = 0;
        for (int c = 0; c < ROW; c++)
            sum += from[r * ROW + c];
        for (int c = 0; c < ROW; c++)
            square += pow(from[r * ROW + c] - sum / ROW, 2);
        for (int c = 0; c < ROW; c++)
            want[r * ROW + c] =
                (float)((from[r * ROW + c] - sum / ROW) / sqrt(square / ROW + 1e-5));
    }
    void *buffers[] = {from, to};
    ck_assert_int_eq(run(DLC_STRICT, buffers, &n), DLC_OK);
    check_close(to, want, (size_t)n * ROW, 2e-6);
    ck_assert_int_eq(run(DLC_WIDE, buffers, &n), DLC_OK);
    check_close(to, want, (size_t)n * ROW, 1e-7);
}
END_TEST

/* softmax(q k^T) v, causal by a select. */
START_TEST(attention)
{
    enum { H = 2, I = 17, D = 8 };
    uint32_t q = buffer("q", DLC_ROLE_IN, DLC_F32, DIMS(num(H), num(I), num(D)), rows);
    uint32_t key = buffer("k", DLC_ROLE_IN, DLC_F32, DIMS(num(H), num(I), num(D)), rows);
    uint32_t v = buffer("v", DLC_ROLE_IN, DLC_F32, DIMS(num(H), num(I), num(D)), rows);
    uint32_t y = buffer("y", DLC_ROLE_OUT, DLC_F32, DIMS(num(H), num(I), num(D)), rows);
    uint32_t h = axis("h", H), i = axis("i", I), j = axis("j", I), d = axis("d", D),
             e = axis("e", D);
    uint32_t s = stage("s", &(stage_spec){.axes = {h, i, j},
                                          .naxes = 3,
                                          .reduce = {d},
                                          .nreduce = 1,
                                          .combine = DLC_REDUCE_SUM,
                                          .value = dlc_mul(p, LOAD(q, ax(h), ax(i), ax(d)),
                                                           LOAD(key, ax(h), ax(j), ax(d)))});
    uint32_t z =
        stage("z", &(stage_spec){.axes = {h, i, j},
                                 .naxes = 3,
                                 .value = dlc_select(p, dlc_le(p, ax(j), ax(i)),
                                                     LOAD(DLC_STAGE_SOURCE(s), ax(h), ax(i), ax(j)),
                                                     f32(-INFINITY))});
    uint32_t m = stage("m", &(stage_spec){.axes = {h, i},
                                          .naxes = 2,
                                          .reduce = {j},
                                          .nreduce = 1,
                                          .combine = DLC_REDUCE_MAX,
                                          .value = LOAD(DLC_STAGE_SOURCE(z), ax(h), ax(i), ax(j))});
    uint32_t t = stage(
        "p",
        &(stage_spec){.axes = {h, i, j},
                      .naxes = 3,
                      .value = dlc_expr1(p, DLC_EXPR_EXP,
                                         dlc_sub(p, LOAD(DLC_STAGE_SOURCE(z), ax(h), ax(i), ax(j)),
                                                 LOAD(DLC_STAGE_SOURCE(m), ax(h), ax(i))))});
    uint32_t l = stage("l", &(stage_spec){.axes = {h, i},
                                          .naxes = 2,
                                          .reduce = {j},
                                          .nreduce = 1,
                                          .combine = DLC_REDUCE_SUM,
                                          .value = LOAD(DLC_STAGE_SOURCE(t), ax(h), ax(i), ax(j))});
    uint32_t o =
        stage("o", &(stage_spec){.axes = {h, i, e},
                                 .naxes = 3,
                                 .reduce = {j},
                                 .nreduce = 1,
                                 .combine = DLC_REDUCE_SUM,
                                 .value = dlc_mul(p, LOAD(DLC_STAGE_SOURCE(t), ax(h), ax(i), ax(j)),
                                                  LOAD(v, ax(h), ax(j), ax(e)))});
    stage("y", &(stage_spec){.axes = {h, i, e},
                             .naxes = 3,
                             .buffer = (int32_t)y + 1,
                             .value = dlc_expr2(p, DLC_EXPR_DIV,
                                                LOAD(DLC_STAGE_SOURCE(o), ax(h), ax(i), ax(e)),
                                                LOAD(DLC_STAGE_SOURCE(l), ax(h), ax(i)))});
    static float in[3][H * I * D], to[H * I * D], want[H * I * D];
    for (uint32_t b = 0; b < 3; b++)
        fill(in[b], H * I * D, 10 + b);
    for (int hh = 0; hh < H; hh++)
        for (int ii = 0; ii < I; ii++) {
            double sum = 0, out[D] = {0};
            for (int jj = 0; jj <= ii; jj++) {
                double dot = 0;
                for (int dd = 0; dd < D; dd++)
                    dot += (double)in[0][(hh * I + ii) * D + dd] * in[1][(hh * I + jj) * D + dd];
                sum += exp(dot);
                for (int dd = 0; dd < D; dd++)
                    out[dd] += exp(dot) * in[2][(hh * I + jj) * D + dd];
            }
            for (int dd = 0; dd < D; dd++)
                want[(hh * I + ii) * D + dd] = (float)(out[dd] / sum);
        }
    void *buffers[] = {in[0], in[1], in[2], to};
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_OK);
    check_close(to, want, H * I * D, 2e-6);
    ck_assert_int_eq(run(DLC_WIDE, buffers, NULL), DLC_OK);
    check_close(to, want, H * I * D, 1e-7);
}
END_TEST

/* --- indices from data --- */

START_TEST(gather)
{
    enum { T = 10, N = 6, C = 4 };
    uint32_t table = buffer("table", DLC_ROLE_IN, DLC_F32, DIMS(num(T), num(C)), rows);
    uint32_t ids = buffer("ids", DLC_ROLE_IN, DLC_I64, DIMS(num(N)), rows);
    uint32_t y = buffer("y", DLC_ROLE_OUT, DLC_F32, DIMS(num(N), num(C)), rows);
    uint32_t i = axis("i", N), c = axis("c", C);
    dlc_expr id = LOAD(ids, ax(i));
    dlc_expr index[2] = {dlc_select(p, dlc_lt(p, id, num(0)), dlc_addi(p, id, T), id), ax(c)};
    stage("y", &(stage_spec){.axes = {i, c},
                             .naxes = 2,
                             .buffer = (int32_t)y + 1,
                             .value = dlc_expr_load(p, DLC_F32, table, index, 2, 0, f32(7),
                                                    DLC_LOAD_CHECKED)});
    float from[T * C], to[N * C];
    int64_t good[N] = {3, -1, 0, 9, -10, 5}, bad[N] = {3, 1, 0, 10, 1, INT64_MIN};
    fill(from, T * C, 5);
    void *buffers[] = {from, good, to};
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_OK);
    for (int r = 0; r < N; r++)
        ck_assert_mem_eq(to + r * C, from + (good[r] < 0 ? good[r] + T : good[r]) * C,
                         C * sizeof *to);
    buffers[1] = bad;
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_INVALID);
    ck_assert_ptr_nonnull(strstr(diag.messages[0].text, "index out of range"));
    ck_assert_ptr_nonnull(strstr(diag.messages[0].text, "'table'"));
}
END_TEST

/* y = x, then y[ids[i]] += u[i] in order. */
START_TEST(scatter_add)
{
    enum { N = 5, U = 3000 };
    uint32_t x = buffer("x", DLC_ROLE_IN, DLC_F32, DIMS(num(N)), rows);
    uint32_t ids = buffer("ids", DLC_ROLE_IN, DLC_I64, DIMS(num(U)), rows);
    uint32_t u = buffer("u", DLC_ROLE_IN, DLC_F32, DIMS(num(U)), rows);
    uint32_t y = buffer("y", DLC_ROLE_OUT, DLC_F32, DIMS(num(N)), rows);
    uint32_t i = axis("i", N), j = axis("j", U);
    stage("y", &(stage_spec){
                   .axes = {i}, .naxes = 1, .value = LOAD(x, ax(i)), .buffer = (int32_t)y + 1});
    stage("s", &(stage_spec){.axes = {j},
                             .naxes = 1,
                             .value = LOAD(u, ax(j)),
                             .buffer = (int32_t)y + 1,
                             .nstore = 1,
                             .store = {LOAD(ids, ax(j))},
                             .update = _i ? DLC_UPDATE_SUM : DLC_UPDATE_SET});
    static float from[N], updates[U];
    static int64_t at[U];
    float to[N], want[N];
    fill(from, N, 6);
    fill(updates, U, 7);
    memcpy(want, from, sizeof want);
    for (int e = 0; e < U; e++) {
        at[e] = e * 7 % N;
        want[at[e]] = _i ? want[at[e]] + updates[e] : updates[e];
    }
    void *buffers[] = {from, at, updates, to};
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_OK);
    ck_assert_mem_eq(to, want, sizeof to);
    at[17] = N;
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_INVALID);
}
END_TEST

/* --- recurrences --- */

/* c[t, j] = c[t - 1, j] + x[t, j] */
START_TEST(cumulative_sum)
{
    enum { T = 50, N = 30 };
    uint32_t x = buffer("x", DLC_ROLE_IN, DLC_F32, DIMS(num(T), num(N)), rows);
    uint32_t y = buffer("y", DLC_ROLE_OUT, DLC_F32, DIMS(num(T), num(N)), rows);
    uint32_t t = axis("t", T), j = axis("j", N);
    dlc_expr index[2] = {dlc_addi(p, ax(t), -1), ax(j)};
    dlc_expr before =
        dlc_expr_load(p, DLC_F32, DLC_STAGE_SOURCE(0), index, 2, dlc_lt(p, num(0), ax(t)), 0, 0);
    /* the reduced order of axes must not matter: j first */
    stage("c", &(stage_spec){.axes = {t, j},
                             .naxes = 2,
                             .value = dlc_add(p, before, LOAD(x, ax(t), ax(j))),
                             .buffer = (int32_t)y + 1});
    static float from[T * N], to[T * N], want[T * N];
    fill(from, T * N, 8);
    for (int e = 0; e < T * N; e++)
        want[e] = (e < N ? 0 : want[e - N]) + from[e];
    void *buffers[] = {from, to};
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_OK);
    ck_assert_mem_eq(to, want, sizeof to);
}
END_TEST

/* A recurrent cell of two stages: a[t,j] = sum(k) h[t-1,k] w[j,k]; h[t,j] = tanh(a + x[t,j]). */
START_TEST(recurrent_cell)
{
    enum { T = 12, N = 9 };
    uint32_t x = buffer("x", DLC_ROLE_IN, DLC_F32, DIMS(num(T), num(N)), rows);
    uint32_t w = buffer("w", DLC_ROLE_IN, DLC_F32, DIMS(num(N), num(N)), rows);
    uint32_t h0 = buffer("h0", DLC_ROLE_IN, DLC_F32, DIMS(num(N)), rows);
    uint32_t y = buffer("y", DLC_ROLE_OUT, DLC_F32, DIMS(num(T), num(N)), rows);
    uint32_t t = axis("t", T), j = axis("j", N), l = axis("k", N);
    dlc_expr index[2] = {dlc_addi(p, ax(t), -1), ax(l)};
    dlc_expr before = dlc_expr_load(p, DLC_F32, DLC_STAGE_SOURCE(1), index, 2,
                                    dlc_lt(p, num(0), ax(t)), LOAD(h0, ax(l)), 0);
    stage("a", &(stage_spec){.axes = {t, j},
                             .naxes = 2,
                             .reduce = {l},
                             .nreduce = 1,
                             .combine = DLC_REDUCE_SUM,
                             .value = dlc_mul(p, before, LOAD(w, ax(j), ax(l)))});
    dlc_expr sum = dlc_add(p, LOAD(DLC_STAGE_SOURCE(0), ax(t), ax(j)), LOAD(x, ax(t), ax(j)));
    stage("h", &(stage_spec){.axes = {t, j},
                             .naxes = 2,
                             .value = dlc_expr1(p, DLC_EXPR_TANH, sum),
                             .buffer = (int32_t)y + 1});
    float from[T * N], weights[N * N], start[N], to[T * N], want[T * N];
    fill(from, T * N, 20);
    fill(weights, N * N, 21);
    fill(start, N, 22);
    for (int s = 0; s < T; s++)
        for (int r = 0; r < N; r++) {
            double dot = from[s * N + r];
            for (int c = 0; c < N; c++)
                dot += (double)(s ? want[(s - 1) * N + c] : start[c]) * weights[r * N + c];
            want[s * N + r] = (float)tanh(dot);
        }
    void *buffers[] = {from, weights, start, to};
    for (int mode = DLC_STRICT; mode <= DLC_WIDE; mode++) {
        ck_assert_int_eq(run((dlc_interp_mode)mode, buffers, NULL), DLC_OK);
        check_close(to, want, T * N, 2e-6);
    }
}
END_TEST

/* Steps along two axes: d[i,j] = x + max(d[i-1,j], d[i,j-1]). */
START_TEST(two_axes)
{
    enum { N = 11 };
    uint32_t x = buffer("x", DLC_ROLE_IN, DLC_F32, DIMS(num(N), num(N)), rows);
    uint32_t y = buffer("y", DLC_ROLE_OUT, DLC_F32, DIMS(num(N), num(N)), rows);
    uint32_t i = axis("i", N), j = axis("j", N);
    dlc_expr up[2] = {dlc_addi(p, ax(i), -1), ax(j)}, left[2] = {ax(i), dlc_addi(p, ax(j), -1)};
    dlc_source self = DLC_STAGE_SOURCE(0);
    dlc_expr best =
        dlc_max(p, dlc_expr_load(p, DLC_F32, self, up, 2, dlc_lt(p, num(0), ax(i)), 0, 0),
                dlc_expr_load(p, DLC_F32, self, left, 2, dlc_lt(p, num(0), ax(j)), 0, 0));
    stage("d", &(stage_spec){.axes = {i, j},
                             .naxes = 2,
                             .value = dlc_add(p, LOAD(x, ax(i), ax(j)), best),
                             .buffer = (int32_t)y + 1});
    float from[N * N], to[N * N], want[N * N];
    fill(from, N * N, 9);
    for (int r = 0; r < N; r++)
        for (int c = 0; c < N; c++) {
            float a = r ? want[(r - 1) * N + c] : 0, b = c ? want[r * N + c - 1] : 0;
            want[r * N + c] = from[r * N + c] + (a > b ? a : b);
        }
    void *buffers[] = {from, to};
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_OK);
    ck_assert_mem_eq(to, want, sizeof to);
}
END_TEST

/* --- pairs, identities, empty extents --- */

static const struct {
    dlc_reduce combine;
    float row[5];
    int64_t index;
    float key;
} pairs[] = {
    {DLC_REDUCE_ARGMAX, {1, 3, 2, 3, 0}, 1, 3},
    {DLC_REDUCE_ARGMAX_LAST, {1, 3, 2, 3, 0}, 3, 3},
    {DLC_REDUCE_ARGMIN, {1, 0, 2, 0, 5}, 1, 0},
    {DLC_REDUCE_ARGMIN_LAST, {1, 0, 2, -0.0f, 5}, 3, 0},
    {DLC_REDUCE_ARGMAX, {1, NAN, 9, NAN, 0}, 1, NAN},
    {DLC_REDUCE_ARGMIN_LAST, {1, NAN, 9, NAN, 0}, 3, NAN},
    {DLC_REDUCE_ARGMAX, {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY}, 0, -INFINITY},
    {DLC_REDUCE_ARGMIN, {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY}, 0, INFINITY},
};

/* Rows are repeated: with 1 the reduced axis is the strip, with 2000 the rows are. */
START_TEST(pair)
{
    enum { R = 2000 };
    int64_t nrows = _i % 2 ? R : 1;
    int c = _i / 2;
    uint32_t x = buffer("x", DLC_ROLE_IN, DLC_F32, DIMS(num(nrows), num(5)), rows);
    uint32_t y = buffer("y", DLC_ROLE_OUT, DLC_I64, DIMS(num(nrows)), rows);
    uint32_t z = buffer("z", DLC_ROLE_OUT, DLC_F32, DIMS(num(nrows)), rows);
    uint32_t i = axis("i", nrows), j = axis("j", 5);
    uint32_t s = stage("s", &(stage_spec){.axes = {i},
                                          .naxes = 1,
                                          .reduce = {j},
                                          .nreduce = 1,
                                          .combine = pairs[c].combine,
                                          .value = LOAD(x, ax(i), ax(j)),
                                          .second = ax(j),
                                          .buffer = (int32_t)y + 1,
                                          .store_second = 1});
    stage("z", &(stage_spec){.axes = {i},
                             .naxes = 1,
                             .value = LOAD(DLC_STAGE_SOURCE(s), ax(i)),
                             .buffer = (int32_t)z + 1});
    static float from[R * 5], keys[R];
    static int64_t to[R];
    for (int r = 0; r < R; r++)
        memcpy(from + r * 5, pairs[c].row, sizeof pairs[c].row);
    void *buffers[] = {from, to, keys};
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_OK);
    for (int64_t r = 0; r < nrows; r++) {
        ck_assert_int_eq(to[r], pairs[c].index);
        ck_assert(isnan(pairs[c].key) ? isnan(keys[r]) : keys[r] == pairs[c].key);
    }
}
END_TEST

static const struct {
    dlc_reduce combine;
    dlc_dtype dtype;
    double empty;
} identities[] = {
    {DLC_REDUCE_SUM, DLC_F32, 0},         {DLC_REDUCE_PROD, DLC_F32, 1},
    {DLC_REDUCE_MAX, DLC_F32, -INFINITY}, {DLC_REDUCE_MIN, DLC_F32, INFINITY},
    {DLC_REDUCE_MAX, DLC_I8, -128},       {DLC_REDUCE_MIN, DLC_I8, 127},
    {DLC_REDUCE_MIN, DLC_U16, 65535},     {DLC_REDUCE_MAX, DLC_U16, 0},
    {DLC_REDUCE_ALL, DLC_BOOL, 1},        {DLC_REDUCE_ANY, DLC_BOOL, 0},
    {DLC_REDUCE_SUM, DLC_BOOL, 0},        {DLC_REDUCE_MIN, DLC_I32, -1.0 + 2147483648.0},
};

/* An empty reduction is its identity; with no output there is nothing to do. */
START_TEST(empty)
{
    dlc_dtype dtype = identities[_i].dtype;
    uint32_t x = buffer("x", DLC_ROLE_IN, dtype, DIMS(num(3), num(0)), rows);
    uint32_t y = buffer("y", DLC_ROLE_OUT, dtype, DIMS(num(3)), rows);
    uint32_t z = buffer("z", DLC_ROLE_OUT, dtype, DIMS(num(3), num(0)), rows);
    uint32_t i = axis("i", 3), j = axis("j", 0);
    stage("y", &(stage_spec){.axes = {i},
                             .naxes = 1,
                             .reduce = {j},
                             .nreduce = 1,
                             .combine = identities[_i].combine,
                             .value = LOAD(x, ax(i), ax(j)),
                             .buffer = (int32_t)y + 1});
    stage("z", &(stage_spec){.axes = {i, j},
                             .naxes = 2,
                             .value = LOAD(x, ax(i), ax(j)),
                             .buffer = (int32_t)z + 1});
    uint64_t to[3] = {0};
    void *buffers[] = {NULL, to, NULL};
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_OK);
    dlc_scalar got = dlc_scalar_read(dtype, (char *)to + 2 * dlc_dtype_bytes(dtype));
    ck_assert(dlc_is_float(dtype) ? got.f == identities[_i].empty
                                  : (double)got.i == identities[_i].empty);
}
END_TEST

/* Integers wrap, sums of bool are or; the strip may be the reduced axis. */
START_TEST(integer_sums)
{
    enum { N = 3000 };
    uint32_t x = buffer("x", DLC_ROLE_IN, DLC_U8, DIMS(num(N)), rows);
    uint32_t y = buffer("y", DLC_ROLE_OUT, DLC_U8, DIMS(num(1)), rows);
    uint32_t z = buffer("z", DLC_ROLE_OUT, DLC_BOOL, DIMS(num(1)), rows);
    uint32_t w = buffer("w", DLC_ROLE_OUT, DLC_I32, DIMS(num(1)), rows);
    uint32_t i = axis("i", 1), j = axis("j", N);
    dlc_expr at = LOAD(x, ax(j));
    stage("y", &(stage_spec){.axes = {i},
                             .naxes = 1,
                             .reduce = {j},
                             .nreduce = 1,
                             .combine = DLC_REDUCE_SUM,
                             .value = at,
                             .buffer = (int32_t)y + 1});
    stage("z", &(stage_spec){.axes = {i},
                             .naxes = 1,
                             .reduce = {j},
                             .nreduce = 1,
                             .combine = DLC_REDUCE_SUM,
                             .value = dlc_expr_cast(p, DLC_BOOL, at),
                             .buffer = (int32_t)z + 1});
    stage("w", &(stage_spec){.axes = {i},
                             .naxes = 1,
                             .reduce = {j},
                             .nreduce = 1,
                             .combine = DLC_REDUCE_SUM,
                             .value = dlc_mul(p, dlc_expr_cast(p, DLC_I32, at),
                                              dlc_expr_const_i(p, DLC_I32, 1 << 25)),
                             .buffer = (int32_t)w + 1});
    static uint8_t from[N];
    uint8_t sum = 0, narrow = 0, any = 0;
    uint32_t wide = 0;
    int32_t got = 0;
    for (int e = 0; e < N; e++) {
        from[e] = (uint8_t)(e * 37);
        sum = (uint8_t)(sum + from[e]);
        wide += (uint32_t)from[e] << 25;
    }
    void *buffers[] = {from, &narrow, &any, &got};
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_OK);
    ck_assert_uint_eq(narrow, sum);
    ck_assert_uint_eq(any, 1);
    ck_assert_uint_eq((uint32_t)got, wide);
}
END_TEST

/* --- modes and limits --- */

/* Wide keeps what strict rounds away: (x + 1e8) - 1e8 in f32. */
START_TEST(wide_keeps)
{
    uint32_t x = buffer("x", DLC_ROLE_IN, DLC_F32, DIMS(num(3)), rows);
    uint32_t y = buffer("y", DLC_ROLE_OUT, DLC_F32, DIMS(num(3)), rows);
    uint32_t i = axis("i", 3);
    dlc_expr sum = dlc_add(p, LOAD(x, ax(i)), f32(1e8));
    stage("y", &(stage_spec){.axes = {i},
                             .naxes = 1,
                             .value = dlc_sub(p, sum, f32(1e8)),
                             .buffer = (int32_t)y + 1});
    float from[3] = {1, 2, 3}, to[3];
    double wide_to[3], *wide[2] = {NULL, wide_to}, third[3] = {1 / 3.0, 0, 0};
    void *buffers[] = {from, to};
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_OK);
    ck_assert(to[0] == 0);
    ck_assert_int_eq(run(DLC_WIDE, buffers, NULL), DLC_OK);
    ck_assert(to[0] == 1 && to[2] == 3);
    wide[0] = third;
    dlc_interp_args args = {.buffers = buffers, .wide = wide};
    ck_assert_int_eq(dlc_interp_run(k, DLC_WIDE, &args, &diag), DLC_OK);
    ck_assert_double_eq_tol(wide_to[0], 1 / 3.0,
                            1e-7); /* more digits than f32 at 1e8 has, and none lost at the store */
    ck_assert(wide_to[0] != (float)wide_to[0]);
}
END_TEST

START_TEST(budget)
{
    uint32_t y = buffer("y", DLC_ROLE_OUT, DLC_F32, DIMS(num(1000)), rows);
    uint32_t i = axis("i", 1000);
    uint32_t t = stage(
        "t", &(stage_spec){.axes = {i}, .naxes = 1, .value = dlc_expr_cast(p, DLC_F32, ax(i))});
    stage("y", &(stage_spec){.axes = {i},
                             .naxes = 1,
                             .value = LOAD(DLC_STAGE_SOURCE(t), ax(i)),
                             .buffer = (int32_t)y + 1});
    float to[1000];
    void *buffers[] = {to};
    dlc_interp_args args = {.buffers = buffers, .budget_bytes = 3999};
    ck_assert_int_eq(dlc_interp_run(k, DLC_STRICT, &args, &diag), DLC_LIMIT);
    args.budget_bytes = 4000;
    ck_assert_int_eq(dlc_interp_run(k, DLC_STRICT, &args, &diag), DLC_OK);
    ck_assert(to[999] == 999);
}
END_TEST

/* Axes in any order of loops: a transpose with coordinates in the value, over strips that cross
 * rows. */
START_TEST(coordinates)
{
    enum { A = 7, B = 5, C = 60 };
    uint32_t y = buffer("y", DLC_ROLE_OUT, DLC_I64, DIMS(num(C), num(A), num(B)), rows);
    uint32_t a = axis("a", A), b = axis("b", B), c = axis("c", C);
    dlc_expr linear =
        dlc_add(p, dlc_muli(p, ax(a), 10000), dlc_add(p, dlc_muli(p, ax(b), 100), ax(c)));
    dlc_expr value = dlc_select(p, dlc_lt(p, ax(b), num(3)), linear,
                                dlc_mod(p, dlc_mul(p, ax(c), ax(b)), num(13)));
    stage("y", &(stage_spec){.axes = {a, b, c},
                             .naxes = 3,
                             .value = value,
                             .buffer = (int32_t)y + 1,
                             .nstore = 3,
                             .store = {ax(c), ax(a), ax(b)}});
    static int64_t to[C * A * B];
    void *buffers[] = {to};
    ck_assert_int_eq(run(DLC_STRICT, buffers, NULL), DLC_OK);
    for (int64_t i = 0; i < A; i++)
        for (int64_t j = 0; j < B; j++)
            for (int64_t l = 0; l < C; l++)
                ck_assert_int_eq(to[(l * A + i) * B + j],
                                 j < 3 ? i * 10000 + j * 100 + l : l * j % 13);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interp");
    TCase *kernels = tcase_create("kernels");
    tcase_add_checked_fixture(kernels, setup, teardown);
    tcase_add_loop_test(kernels, convolution, 0, 2);
    tcase_add_test(kernels, blocked_layout);
    tcase_add_loop_test(kernels, softmax, 0, 4);
    tcase_add_test(kernels, layer_norm);
    tcase_add_test(kernels, attention);
    tcase_add_test(kernels, gather);
    tcase_add_loop_test(kernels, scatter_add, 0, 2);
    tcase_add_test(kernels, cumulative_sum);
    tcase_add_test(kernels, recurrent_cell);
    tcase_add_test(kernels, two_axes);
    tcase_add_loop_test(kernels, pair, 0, 2 * (int)(sizeof pairs / sizeof *pairs));
    tcase_add_loop_test(kernels, empty, 0, (int)(sizeof identities / sizeof *identities));
    tcase_add_test(kernels, integer_sums);
    tcase_add_test(kernels, wide_keeps);
    tcase_add_test(kernels, budget);
    tcase_add_test(kernels, coordinates);
    suite_add_tcase(suite, kernels);
    return suite_run(suite);
}
