/*
 * Windows, Fourier transforms and the mel scale, as compositions. A transform of n points is a
 * product with the matrix of its roots of unity; where n is a * b, points go into a grid and the
 * rows and the columns are transformed (Cooley and Tukey), so that the matrices stay small.
 */
#include "frontend/import.h"

#include <inttypes.h>
#include <math.h>

enum { LARGEST_MATRIX = 64 }; /* points transformed by one product where they can be split */

static const double PI = 3.14159265358979323846;

static dlc_value *times(dlc_import *im, dlc_value *x, double factor)
{
    return x ? f_mul(im, x, f_like(im, x, factor)) : NULL;
}

static dlc_value *plus(dlc_import *im, dlc_value *x, double term)
{
    return x ? f_add(im, x, f_like(im, x, term)) : NULL;
}

/* A size that an input of one element says; 0 when reported. */
static dlc_expr size_input(dlc_import *im, uint32_t input)
{
    uint32_t n;
    dlc_value *wide = f_cast(im, im_in(im, input), DLC_I64);
    const dlc_expr *elements = wide ? im_elements(im, wide, 0, INT32_MAX, &n) : NULL;
    if (elements && n != 1)
        im_fail(im, DLC_INVALID, "input %" PRIu32 " has %" PRIu32 " elements; one is wanted", input,
                n);
    return elements && n == 1 ? elements[0] : 0;
}

/* --- windows: a sum of cosines, in f64 --- */

/* cos(2 pi i k / n) for the points i */
static dlc_value *cosine(dlc_import *im, dlc_value *points, dlc_value *n, int k)
{
    return f_unary(im, DLC_OP_COS, f_div(im, times(im, points, 2 * PI * k), n));
}

/* The argument: 0 Hann, 1 Hamming, 2 Blackman. */
void import_window(dlc_import *im)
{
    int64_t is_periodic = im_int(im, "periodic", 1);
    dlc_dtype dtype = im_dtype(im, im_int(im, "output_datatype", 1), "output_datatype");
    dlc_expr size = im_ok(im) ? size_input(im, 0) : 0;
    if (!size)
        return;
    static const double hamming[3] = {25.0 / 46, -21.0 / 46, 0}, blackman[3] = {0.42, -0.5, 0.08},
                        hann[3] = {0.5, -0.5, 0};
    const double *terms = im->row->argument == 0 ? hann : im->row->argument == 1 ? hamming : blackman;
    dlc_value *points = f_iota(im, DLC_F64, size);
    dlc_value *n = f_dim(im, DLC_F64, is_periodic ? size : dlc_addi(im->pool, size, -1));
    dlc_value *y = plus(im, times(im, cosine(im, points, n, 1), terms[1]), terms[0]);
    if (terms[2] != 0)
        y = f_add(im, y, times(im, cosine(im, points, n, 2), terms[2]));
    im->out[0] = f_cast(im, y, dtype);
}

/* --- transforms --- */

/* Rows of n points, [rows, n]; no imaginary part: NULL. */
typedef struct {
    dlc_value *re, *im;
} rows;

/* f(2 pi (j k mod n) / n) for j < height, k < width: the product stays small, so f is precise. */
static dlc_value *roots(dlc_import *im, dlc_opcode f, dlc_expr n, dlc_expr height, dlc_expr width,
                        dlc_dtype dtype)
{
    dlc_value *j = f_insert_axis(im, f_iota(im, DLC_I64, height), 1);
    dlc_value *turn = f_binary(im, DLC_OP_MOD, f_mul(im, j, f_iota(im, DLC_I64, width)),
                               f_dim(im, DLC_I64, n));
    dlc_value *angle = f_div(im, times(im, f_cast(im, turn, DLC_F64), 2 * PI), f_dim(im, DLC_F64, n));
    return f_cast(im, f_unary(im, f, angle), dtype);
}

/* x times e^(i sign angle), elementwise or as matrices. */
static rows turned(dlc_import *im, rows x, dlc_value *cosines, dlc_value *sines, int sign,
                   dlc_opcode product)
{
    dlc_opcode more = sign > 0 ? DLC_OP_ADD : DLC_OP_SUB, less = sign > 0 ? DLC_OP_SUB : DLC_OP_ADD;
    rows y = {f_binary(im, product, x.re, cosines), f_binary(im, product, x.re, sines)};
    if (x.im) {
        y.re = f_binary(im, less, y.re, f_binary(im, product, x.im, sines));
        y.im = f_binary(im, more, f_binary(im, product, x.im, cosines), y.im);
    } else if (sign < 0) {
        y.im = f_unary(im, DLC_OP_NEG, y.im);
    }
    return y;
}

/* The first m of n frequencies by one product. */
static rows transform_whole(dlc_import *im, rows x, dlc_expr n, dlc_expr m, int sign)
{
    dlc_dtype dtype = x.re->type.dtype;
    return turned(im, x, roots(im, DLC_OP_COS, n, n, m, dtype),
                  roots(im, DLC_OP_SIN, n, n, m, dtype), sign, DLC_OP_MATMUL);
}

/* [rows * a, b] as [rows, a, b], with the last two swapped, as [rows * b, a] */
static dlc_value *swapped(dlc_import *im, dlc_value *x, dlc_expr nrows, int64_t a, int64_t b)
{
    const dlc_expr cube[3] = {nrows, im_i64(im, a), im_i64(im, b)};
    const dlc_expr flat[2] = {dlc_muli(im->pool, nrows, b), im_i64(im, a)};
    return x ? f_reshape(im, f_swap_last(im, f_reshape(im, x, cube, 3)), flat, 2) : NULL;
}

static dlc_value *regrouped(dlc_import *im, dlc_value *x, dlc_expr nrows, int64_t n)
{
    const dlc_expr dims[2] = {nrows, im_i64(im, n)};
    return x ? f_reshape(im, x, dims, 2) : NULL;
}

/* The largest divisor that one product takes, 1 when there is none worth it. */
static int64_t divisor(int64_t n)
{
    if (n <= LARGEST_MATRIX)
        return 1;
    for (int64_t a = LARGEST_MATRIX / 2; a > 1; a--) {
        if (n % a == 0)
            return a;
    }
    return 1;
}

/*
 * Point b j1 + j2, frequency k1 + a k2 of n = a b: transform the columns j1 -> k1, turn by j2 k1 / n,
 * transform the rows j2 -> k2. The rows may split again, which is a loop: `nrows` grows by each a,
 * and the frequencies are put in order from the last split back.
 */
static rows transform_known(dlc_import *im, rows x, dlc_expr nrows, int64_t n, int sign)
{
    int64_t splits[64], rest = n;
    uint32_t depth = 0;
    dlc_dtype dtype = x.re->type.dtype;
    for (int64_t a; (a = divisor(rest)) > 1; rest /= a) {
        int64_t b = rest / a;
        const dlc_expr cube[3] = {nrows, im_i64(im, b), im_i64(im, a)};
        rows columns = {swapped(im, x.re, nrows, a, b), swapped(im, x.im, nrows, a, b)};
        if (!columns.re)
            return columns;
        columns = transform_whole(im, columns, im_i64(im, a), im_i64(im, a), sign);
        if (!columns.re || !columns.im)
            return columns;
        dlc_expr all = im_i64(im, rest);
        rows grid = {f_reshape(im, columns.re, cube, 3), f_reshape(im, columns.im, cube, 3)};
        grid = turned(im, grid, roots(im, DLC_OP_COS, all, cube[1], cube[2], dtype),
                      roots(im, DLC_OP_SIN, all, cube[1], cube[2], dtype), sign, DLC_OP_MUL);
        x = (rows){swapped(im, grid.re, nrows, b, a), swapped(im, grid.im, nrows, b, a)};
        splits[depth++] = a;
        nrows = dlc_muli(im->pool, nrows, a);
    }
    if (x.re)
        x = transform_whole(im, x, im_i64(im, rest), im_i64(im, rest), sign);
    while (depth-- > 0 && x.re && x.im) { /* [rows * a, b] -> [rows, b * a] */
        int64_t a = splits[depth], b = rest;
        nrows = im_size(im, dlc_floordiv(im->pool, nrows, im_i64(im, a)));
        rest *= a;
        x.re = regrouped(im, swapped(im, x.re, nrows, a, b), nrows, rest);
        x.im = regrouped(im, swapped(im, x.im, nrows, a, b), nrows, rest);
    }
    return x;
}

static rows transform(dlc_import *im, rows x, dlc_expr n, dlc_expr m, int sign)
{
    int64_t known;
    if (!x.re)
        return x;
    if (!im_is_const(im, n, &known) || divisor(known) == 1)
        return transform_whole(im, x, n, m, sign);
    x = transform_known(im, x, x.re->type.dims[0], known, sign);
    if (!x.re || !x.im)
        return x;
    return (rows){f_slice(im, x.re, 1, im_i64(im, 0), m), f_slice(im, x.im, 1, im_i64(im, 0), m)};
}

/* Rows of `from` points cut or filled up with zeros to n. */
static dlc_value *fitted(dlc_import *im, dlc_value *x, dlc_expr n)
{
    if (!x || x->type.dims[1] == n)
        return x;
    const dlc_expr zero = im_i64(im, 0);
    const dlc_expr pads[4] = {zero, zero, zero,
                              im_size(im, dlc_sub(im->pool, n, x->type.dims[1]))};
    return f_node(im, DLC_OP_PAD, F_IN(x), F_ATTRS(dlc_attr_dims(DLC_ATTR_PADS, pads, 4)));
}

/* What real signals' frequencies past the half are: conjugates, in reverse. */
static rows unfolded(dlc_import *im, rows x, dlc_expr n)
{
    dlc_pool *pool = im->pool;
    dlc_expr half = im_size(im, dlc_addi(pool, dlc_floordiv(pool, n, im_i64(im, 2)), 1));
    dlc_expr more = dlc_sub(pool, n, half), one = im_i64(im, 1);
    x = (rows){fitted(im, x.re, half), fitted(im, x.im, half)};
    if (!x.re || !x.im)
        return x;
    dlc_value *re[2] = {x.re, f_reverse(im, f_slice(im, x.re, 1, one, more), 1)};
    dlc_value *mirrored = f_reverse(im, f_slice(im, x.im, 1, one, more), 1);
    dlc_value *parts[2] = {x.im, mirrored ? f_unary(im, DLC_OP_NEG, mirrored) : NULL};
    return (rows){f_concat(im, re, 2, 1), f_concat(im, parts, 2, 1)};
}

typedef struct {
    dlc_expr length; /* of the transform */
    im_axis_list axis;
    dlc_dtype dtype; /* to compute in */
    int64_t is_inverse, is_onesided;
} dft;

/* Part 0 or 1 of x[…, 2] as [before, axis, behind]; NULL where there is none. */
static dlc_value *part_of(dlc_import *im, dlc_value *x, uint32_t part, const dft *d)
{
    uint32_t rank = im_rank(x) - 1;
    int64_t nparts;
    if (!im_is_const(im, x->type.dims[rank], &nparts) || (nparts != 1 && nparts != 2)) {
        im_fail(im, DLC_INVALID, "the last dimension is neither 1 nor 2");
        return NULL;
    }
    if (part >= (uint32_t)nparts)
        return NULL;
    x = f_drop_axis(im, f_slice(im, x, rank, im_i64(im, part), im_i64(im, 1)), rank);
    return f_cast(im, im_around_axis(im, x, d->axis.at[0]), d->dtype);
}

/* [before, axis, behind] as rows along the axis */
static dlc_value *rows_of(dlc_import *im, dlc_value *x)
{
    if (!x)
        return NULL;
    const dlc_expr *v = x->type.dims, flat[2] = {dlc_mul(im->pool, v[0], v[2]), v[1]};
    return f_reshape(im, f_swap_last(im, x), flat, 2);
}

/* Rows back to the shape of x, their points along the axis, one part: […, 1] */
static dlc_value *rows_back(dlc_import *im, dlc_value *y, const dlc_value *around,
                            const dlc_value *x, const dft *d)
{
    dlc_expr dims[DLC_MAX_RANK];
    if (!y)
        return NULL;
    const dlc_expr *v = around->type.dims, cube[3] = {v[0], v[2], y->type.dims[1]};
    for (uint32_t i = 0; i + 1 < im_rank(x); i++)
        dims[i] = im_size(im, im_axis_pick(im, &d->axis, &cube[2], i, x->type.dims[i]));
    dims[im_rank(x) - 1] = im_i64(im, 1);
    y = f_swap_last(im, f_reshape(im, y, cube, 3));
    return f_reshape(im, f_cast(im, y, x->type.dtype), dims, im_rank(x));
}

static dlc_value *transformed(dlc_import *im, dlc_value *x, const dft *d)
{
    dlc_pool *pool = im->pool;
    dlc_value *re = part_of(im, x, 0, d), *imaginary = part_of(im, x, 1, d);
    rows in = {rows_of(im, re), rows_of(im, imaginary)};
    dlc_expr m = d->length;
    if (!in.re || !im_ok(im))
        return NULL;
    if (d->is_onesided && (d->is_inverse != 0) != (in.im != NULL)) {
        im_fail(im, DLC_INVALID,
                "onesided transforms are of real numbers, their inverses of complex ones");
        return NULL;
    }
    if (d->is_onesided && d->is_inverse)
        in = unfolded(im, in, d->length);
    else if (d->is_onesided)
        m = im_size(im, dlc_addi(pool, dlc_floordiv(pool, d->length, im_i64(im, 2)), 1));
    in = (rows){fitted(im, in.re, d->length), fitted(im, in.im, d->length)};
    rows out = transform(im, in, d->length, m, d->is_inverse ? 1 : -1);
    dlc_value *parts[2] = {out.re, out.im};
    uint32_t nparts = d->is_onesided && d->is_inverse ? 1 : 2;
    for (uint32_t p = 0; p < nparts; p++) {
        if (d->is_inverse && parts[p])
            parts[p] = f_div(im, parts[p], f_dim(im, d->dtype, d->length));
        parts[p] = rows_back(im, parts[p], re, x, d);
    }
    return f_concat(im, parts, nparts, im_rank(x) - 1);
}

/* False when reported. */
static int read_dft_axis(dlc_import *im, const dlc_value *x, im_axis_list *axis)
{
    uint32_t rank = im_rank(x);
    if (rank < 2) {
        im_fail(im, DLC_INVALID, "the input has rank %" PRIu32 "; 2 or more is wanted", rank);
        return 0;
    }
    *axis = (im_axis_list){.n = 1, .is_known = 1};
    if (im->opset >= 20 && im_in(im, 2)) {
        if (!im_axis_input(im, im_in(im, 2), rank, axis))
            return 0;
    } else {
        int at = im_axis(im, im->opset < 20 ? im_int(im, "axis", 1) : -2, rank);
        axis->at[0] = im_i64(im, at);
    }
    if (im_ok(im) && (axis->n != 1 || axis->at[0] == im_i64(im, rank - 1)))
        im_fail(im, DLC_INVALID, "one axis is wanted, and the last one holds the parts of numbers");
    dlc_graph_require(im->graph, dlc_expr2(im->pool, DLC_EXPR_NE, axis->at[0], im_i64(im, rank - 1)),
                      "node '%s': the last dimension holds the parts of numbers", im->origin->name);
    return im_ok(im);
}

/* In f64: what cancels in a sum of many is as small as it should be. */
void import_dft(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    dft d = {.is_inverse = im_int(im, "inverse", 0),
             .is_onesided = im_int(im, "onesided", 0),
             .dtype = DLC_F64};
    if (!read_dft_axis(im, x, &d.axis))
        return;
    d.length = im_i64(im, 0);
    for (uint32_t i = 0; i + 1 < im_rank(x); i++)
        d.length = im_axis_pick(im, &d.axis, &x->type.dims[i], i, d.length);
    d.length = im_size(im, d.length);
    if (im_in(im, 1))
        d.length = size_input(im, 1);
    else if (d.is_inverse && d.is_onesided)
        d.length = dlc_muli(im->pool, dlc_addi(im->pool, d.length, -1), 2);
    if (d.length)
        im->out[0] = transformed(im, x, &d);
}

/* signal [n, t, 1 or 2], or [n, t] as exporters write it; step, window, length: frames of the signal, times the window, transformed */
void import_stft(dlc_import *im)
{
    dlc_pool *pool = im->pool;
    dlc_value *x = im_in(im, 0), *window = im_in(im, 2);
    dft d = {.axis = {.at = {im_i64(im, 2)}, .n = 1},
             .is_onesided = im_int(im, "onesided", 1),
             .dtype = x->type.dtype == DLC_F64 ? DLC_F64 : DLC_F32};
    dlc_expr step = size_input(im, 1);
    if (im_in(im, 3))
        d.length = size_input(im, 3);
    else if (window && im_rank(window) == 1)
        d.length = window->type.dims[0];
    if (im_rank(x) == 2)
        x = f_insert_axis(im, x, 2);
    if (!step || !d.length || !x || im_rank(x) != 3) {
        if (im_ok(im))
            im_fail(im, DLC_INVALID, "a signal of rank 2 or 3, and a window or a frame length, are wanted");
        return;
    }
    dlc_graph_require(im->graph, dlc_lt(pool, im_i64(im, 0), step), "node '%s': the step is 0",
                      im->origin->name);
    dlc_expr count = dlc_floordiv(pool, dlc_sub(pool, x->type.dims[1], d.length), step);
    count = im_size(im, dlc_max(pool, dlc_addi(pool, count, 1), im_i64(im, 0))); /* of a signal shorter than a frame none */
    dlc_value *starts = f_mul(im, f_iota(im, DLC_I64, count), f_dim(im, DLC_I64, step));
    dlc_value *at = f_add(im, f_insert_axis(im, starts, 1), f_iota(im, DLC_I64, d.length));
    x = f_gather(im, x, at, 1);
    if (window && x && im_same_dim(im, window->type.dims[0], d.length, "window and frame"))
        x = f_mul(im, x, f_insert_axis(im, window, 1));
    if (x && im_ok(im))
        im->out[0] = transformed(im, x, &d);
}

/* --- the mel scale --- */

static dlc_value *mel_of(dlc_import *im, dlc_value *hertz)
{
    return times(im, f_unary(im, DLC_OP_LOG, plus(im, times(im, hertz, 1.0 / 700), 1)),
                 2595 / log(10));
}

static dlc_value *scalar_f64(dlc_import *im, uint32_t input)
{
    return f_reshape(im, f_cast(im, im_in(im, input), DLC_F64), NULL, 0);
}

/* Points of equal distance on the mel scale, as frequencies of the transform: i64[bins + 2] */
static dlc_value *mel_points(dlc_import *im, dlc_expr nbins)
{
    dlc_expr npoints = dlc_addi(im->pool, nbins, 2);
    dlc_value *low = mel_of(im, scalar_f64(im, 3)), *high = mel_of(im, scalar_f64(im, 4));
    dlc_value *step = f_div(im, f_sub(im, high, low), f_dim(im, DLC_F64, npoints));
    dlc_value *mel = f_add(im, f_mul(im, f_iota(im, DLC_F64, npoints), step), low);
    dlc_value *hertz = f_unary(im, DLC_OP_EXP, times(im, mel, log(10) / 2595));
    hertz = times(im, plus(im, hertz, -1), 700);
    dlc_value *at = f_mul(im, hertz, plus(im, scalar_f64(im, 1), 1));
    at = f_unary(im, DLC_OP_FLOOR, f_div(im, at, scalar_f64(im, 2)));
    return f_cast(im, at, DLC_I64);
}

static dlc_value *ratio(dlc_import *im, dlc_value *a, dlc_value *b)
{
    return f_div(im, f_cast(im, a, DLC_F64), f_cast(im, b, DLC_F64));
}

/* Triangles: up from a point to the next, down to the one behind it. */
void import_mel_weight_matrix(dlc_import *im)
{
    dlc_dtype dtype = im_dtype(im, im_int(im, "output_datatype", 1), "output_datatype");
    dlc_expr nbins = size_input(im, 0), length = size_input(im, 1);
    if (!nbins || !length || !im_ok(im))
        return;
    dlc_pool *pool = im->pool;
    dlc_expr nrows = im_size(im, dlc_addi(pool, dlc_floordiv(pool, length, im_i64(im, 2)), 1));
    dlc_value *points = mel_points(im, nbins), *at[3];
    for (uint32_t i = 0; i < 3; i++)
        at[i] = points ? f_slice(im, points, 0, im_i64(im, i), nbins) : NULL;
    dlc_value *j = f_insert_axis(im, f_iota(im, DLC_I64, nrows), 1);
    dlc_value *before = f_sub(im, at[1], at[0]), *behind = f_sub(im, at[2], at[1]);
    dlc_value *zero = f_scalar(im, DLC_F64, 0), *one = f_scalar(im, DLC_F64, 1);
    dlc_value *is_left = f_binary(im, DLC_OP_LE, at[0], j), *is_right = f_binary(im, DLC_OP_LT, j, at[2]);
    dlc_value *up = f_where(im, f_binary(im, DLC_OP_EQ, at[1], j), one,
                            ratio(im, f_sub(im, j, at[0]), before));
    dlc_value *rises = f_binary(im, DLC_OP_AND, is_left, f_binary(im, DLC_OP_LE, j, at[1]));
    dlc_value *down = ratio(im, f_sub(im, at[2], j), behind);
    dlc_value *falls = f_binary(im, DLC_OP_AND, f_binary(im, DLC_OP_LE, at[1], j), is_right);
    im->out[0] = f_cast(im, f_where(im, falls, down, f_where(im, rises, up, zero)), dtype);
}
