/* Resize, Upsample, GridSample: what was asked for in scales, sizes, policies and axes becomes
 * sizes and scales per dimension. */
#include "frontend/import.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct {
    const char *mode, *coord, *nearest;
    double cubic_a, extrapolation;
    int64_t exclude_outside, antialias;
    uint8_t axes[DLC_MAX_RANK]; /* what roi, scales and sizes speak of, in their order */
    uint32_t naxes;
    double scales[DLC_MAX_RANK], roi[2 * DLC_MAX_RANK];
    dlc_expr dims[DLC_MAX_RANK];
    int has_scales, has_roi;
    dlc_value *scales_data, *roi_data; /* of full rank, where only the run knows them */
} resizing;

static dlc_value *sizes_of(dlc_import *im, const dlc_expr *dims, uint32_t rank, dlc_dtype dtype)
{
    dlc_value *sizes =
        f_node(im, DLC_OP_SYMBOLS, NULL, 0, F_ATTRS(dlc_attr_dims(DLC_ATTR_DIMS, dims, rank)));
    return f_cast(im, sizes, dtype);
}

/* What antialiasing divides by is known at run time alone: as many neighbours as that needs, even. */
static const dlc_expr *run_taps(dlc_import *im, const dlc_value *x, const resizing *r)
{
    uint32_t n, rank = im_rank(x);
    int64_t in, out;
    int is_known = !r->scales_data;
    for (uint32_t d = 0; d < rank && is_known && !r->has_scales; d++)
        is_known = r->dims[d] == x->type.dims[d] || (im_is_const(im, x->type.dims[d], &in) &&
                                                     im_is_const(im, r->dims[d], &out));
    if (!r->antialias || is_known || r->mode[0] == 'n')
        return NULL;
    dlc_value *scale = r->scales_data ? f_cast(im, r->scales_data, DLC_F64)
                                      : f_div(im, sizes_of(im, r->dims, rank, DLC_F64),
                                              sizes_of(im, x->type.dims, rank, DLC_F64));
    scale = f_min(im, scale, f_like(im, scale, 1));
    dlc_value *reach = f_div(im, f_like(im, scale, r->mode[0] == 'c' ? 2 : 1), scale);
    dlc_value *taps = f_mul(im, f_unary(im, DLC_OP_CEIL, reach), f_like(im, reach, 2));
    return taps ? im_elements(im, f_cast(im, taps, DLC_I64), 2, 65536, &n) : NULL;
}

static dlc_value *build(dlc_import *im, dlc_value *x, const resizing *r)
{
    dlc_attr attrs[13];
    uint32_t n = 0, rank = im_rank(x);
    const dlc_expr *taps = run_taps(im, x, r);
    if (taps)
        attrs[n++] = dlc_attr_dims(DLC_ATTR_TAPS, taps, rank);
    attrs[n++] = dlc_attr_dims(DLC_ATTR_DIMS, r->dims, rank);
    attrs[n++] = dlc_attr_text(DLC_ATTR_MODE, r->mode);
    attrs[n++] = dlc_attr_text(DLC_ATTR_COORD, r->coord);
    if (r->mode[0] == 'n')
        attrs[n++] = dlc_attr_text(DLC_ATTR_NEAREST, r->nearest);
    if (r->mode[0] == 'c')
        attrs[n++] = dlc_attr_float(DLC_ATTR_CUBIC_A, r->cubic_a);
    if (r->has_scales && !r->scales_data)
        attrs[n++] = dlc_attr_floats(DLC_ATTR_SCALES, r->scales, rank);
    if (r->has_roi && !r->roi_data)
        attrs[n++] = dlc_attr_floats(DLC_ATTR_ROI, r->roi, 2 * rank);
    if (r->has_roi)
        attrs[n++] = dlc_attr_float(DLC_ATTR_EXTRAPOLATION, r->extrapolation);
    if (r->mode[0] != 'n') {
        attrs[n++] = dlc_attr_int(DLC_ATTR_EXCLUDE_OUTSIDE, r->exclude_outside != 0);
        attrs[n++] = dlc_attr_int(DLC_ATTR_ANTIALIAS, r->antialias != 0);
    }
    dlc_value *const inputs[3] = {x, r->scales_data, r->roi_data};
    uint32_t ninputs = r->roi_data ? 3 : r->scales_data ? 2 : 1;
    dlc_node *node = f_node_with(im, DLC_OP_RESIZE, inputs, ninputs, 1, attrs, n);
    return node ? node->outputs[0] : NULL;
}

/* floor(in * scale), as the float product has it; of a symbol only for scales that are simple
 * fractions. */
static dlc_expr scaled_dim(dlc_import *im, dlc_expr in, double scale)
{
    int64_t known;
    if (im_is_const(im, in, &known)) {
        double size = floor((double)((float)known * (float)scale));
        if (size >= 0 && size <= (double)INT32_MAX)
            return im_i64(im, (int64_t)size);
        im_fail(im, DLC_INVALID, "a scale of %g makes %" PRId64 " elements %g", scale, known, size);
        return 0;
    }
    for (int64_t q = 1; q <= 64; q++) {
        double p = rint(scale * (double)q);
        if ((float)(p / (double)q) == (float)scale && p >= 1 && p <= 4096)
            return im_size(
                im, dlc_floordiv(im->pool, dlc_muli(im->pool, in, (int64_t)p), im_i64(im, q)));
    }
    im_fail(im, DLC_UNSUPPORTED,
            "a scale of %g for a dimension known only at run time; fractions with small terms are "
            "supported",
            scale);
    return 0;
}

static void init_resizing(dlc_import *im, const dlc_value *x, resizing *r)
{
    *r = (resizing){.mode = "nearest",
                    .coord = "asymmetric",
                    .nearest = "floor",
                    .cubic_a = -0.75,
                    .naxes = im_rank(x)};
    for (uint32_t i = 0; i < im_rank(x) && i < DLC_MAX_RANK; i++) {
        r->axes[i] = (uint8_t)i;
        r->scales[i] = 1;
        r->roi[im_rank(x) + i] = 1;
        r->dims[i] = x->type.dims[i];
    }
    (void)im;
}

static int take_scales(dlc_import *im, const dlc_value *x, const double *scales, uint32_t n,
                       resizing *r)
{
    r->has_scales = 1;
    if (n != r->naxes)
        im_fail(im, DLC_INVALID, "%" PRIu32 " scales for %" PRIu32 " dimensions", n, r->naxes);
    for (uint32_t i = 0; i < n && im_ok(im); i++) {
        uint32_t axis = r->axes[i];
        double span = r->has_roi ? r->roi[im_rank(x) + axis] - r->roi[axis] : 1;
        if (!(scales[i] > 0) || !isfinite(scales[i])) {
            im_fail(im, DLC_INVALID, "scales[%" PRIu32 "] is %g", i, scales[i]);
            return 0;
        }
        r->scales[axis] = scales[i];
        if (scales[i] != 1 || span != 1)
            r->dims[axis] = scaled_dim(im, x->type.dims[axis], scales[i] * span);
    }
    return im_ok(im);
}

/* --- scales and sizes of the run --- */

static int is_known(dlc_import *im, dlc_value *value)
{
    int64_t n;
    double element;
    if (!dlc_type_elems(im->pool, &value->type, &n))
        return 1; /* whoever reads it reports */
    return value->data || n == 0 || (n == 1 && im_const_scalar(im, value, &element));
}

/* of[k] at dimension axes[k], `otherwise` elsewhere: a gather from both. */
static dlc_value *spread(dlc_import *im, const resizing *r, uint32_t rank, dlc_value *of,
                         double otherwise)
{
    int64_t from[DLC_MAX_RANK];
    const dlc_expr one = im_i64(im, 1);
    for (uint32_t i = 0; i < rank; i++)
        from[i] = r->naxes;
    for (uint32_t k = 0; k < r->naxes; k++)
        from[r->axes[k]] = k;
    dlc_value *parts[2] = {of, f_reshape(im, f_like(im, of, otherwise), &one, 1)};
    return f_gather(im, f_concat(im, parts, 2, 0), dlc_graph_ints(im->graph, from, rank), 0);
}

/* Sizes computed in the graph become the result's. */
static void take_computed(dlc_import *im, const dlc_value *x, dlc_value *sizes, resizing *r)
{
    uint32_t n;
    dlc_value *whole = f_cast(im, sizes, DLC_I64);
    const dlc_expr *dims = whole ? im_elements(im, whole, 0, INT32_MAX, &n) : NULL;
    for (uint32_t i = 0; dims && i < im_rank(x); i++)
        r->dims[i] = dims[i];
}

/* floor(in * scale * width of the region), each product in the scales' type */
static void take_run_scales(dlc_import *im, const dlc_value *x, dlc_value *scales, resizing *r)
{
    int64_t n;
    uint32_t rank = im_rank(x);
    if (im_rank(scales) != 1 || !dlc_type_elems(im->pool, &scales->type, &n) || n != r->naxes) {
        im_fail(im, DLC_INVALID, "there is not a scale for each of %" PRIu32 " dimensions",
                r->naxes);
        return;
    }
    r->has_scales = 1;
    r->scales_data = spread(im, r, rank, scales, 1);
    dlc_value *sizes = f_mul(im, sizes_of(im, x->type.dims, rank, scales->type.dtype), r->scales_data);
    if (r->has_roi) {
        dlc_value *roi = r->roi_data;
        if (!roi) {
            float floats[2 * DLC_MAX_RANK];
            for (uint32_t i = 0; i < 2 * rank; i++)
                floats[i] = (float)r->roi[i];
            roi = f_floats(im, floats, 2 * rank);
        }
        roi = f_cast(im, roi, scales->type.dtype);
        dlc_value *ends = f_slice(im, roi, 0, im_i64(im, rank), im_i64(im, rank)),
                  *starts = f_slice(im, roi, 0, im_i64(im, 0), im_i64(im, rank));
        sizes = f_mul(im, sizes, f_sub(im, ends, starts));
    }
    take_computed(im, x, f_unary(im, DLC_OP_FLOOR, sizes), r);
}

/* keep_aspect of sizes that are data, or of dimensions that are symbols */
static void keep_run_aspect(dlc_import *im, const dlc_value *x, dlc_value *wanted, int is_larger,
                            resizing *r)
{
    static const uint8_t all[1] = {0};
    int64_t axes[DLC_MAX_RANK];
    for (uint32_t k = 0; k < r->naxes; k++)
        axes[k] = r->axes[k];
    dlc_value *in = sizes_of(im, x->type.dims, im_rank(x), DLC_F64);
    dlc_value *taken = f_gather(im, in, dlc_graph_ints(im->graph, axes, r->naxes), 0);
    dlc_value *scale = f_reduce(im, is_larger ? DLC_OP_REDUCE_MAX : DLC_OP_REDUCE_MIN,
                                f_div(im, f_cast(im, wanted, DLC_F64), taken), all, 1, 1);
    const dlc_expr n = im_i64(im, r->naxes);
    r->has_scales = 1;
    r->scales_data = spread(im, r, im_rank(x), f_expand(im, scale, &n, 1), 1);
    dlc_value *sizes = f_mul(im, in, r->scales_data);
    take_computed(im, x, f_unary(im, DLC_OP_FLOOR, f_add(im, sizes, f_like(im, sizes, 0.5))), r);
}

/* --- up to opset 10: asymmetric --- */

/* The dimensions that shrink, or the others. */
static dlc_value *resize_some(dlc_import *im, dlc_value *x, const double *scales, uint32_t n,
                              const char *mode, int shrinks)
{
    resizing r;
    double some[DLC_MAX_RANK];
    uint32_t nchanged = 0;
    for (uint32_t i = 0; i < n && i < DLC_MAX_RANK; i++) {
        some[i] = (scales[i] < 1) == shrinks ? scales[i] : 1;
        nchanged += some[i] != 1;
    }
    if (!nchanged)
        return x;
    init_resizing(im, x, &r);
    r.mode = mode;
    r.nearest = shrinks ? "ceil" : "floor";
    return take_scales(im, x, some, n, &r) ? build(im, x, &r) : NULL;
}

/* The text does not say how nearest rounds. Opset 10's own test data rounds up where a dimension
 * shrinks and down where it grows, and so does ONNX Runtime. Linear is separable as well. */
static void resize_old(dlc_import *im, const double *scales, uint32_t n, const char *mode)
{
    dlc_value *x = im_in(im, 0);
    if (!mode || !scales)
        return;
    if (n != im_rank(x)) {
        im_fail(im, DLC_INVALID, "%" PRIu32 " scales for %" PRIu32 " dimensions", n, im_rank(x));
        return;
    }
    for (uint32_t i = 0; i < n && strcmp(im->origin->op_type, "Upsample") == 0; i++)
        if (!(scales[i] >= 1)) {
            im_fail(im, DLC_INVALID, "scale %" PRIu32 " is %g; scales of 1 and more are possible", i, scales[i]);
            return;
        }
    x = resize_some(im, x, scales, n, mode, 1);
    im->out[0] = x ? resize_some(im, x, scales, n, mode, 0) : NULL;
}

/* Whether a dimension shrinks is not known, which linear and Upsample do not ask. */
static void resize_old_run(dlc_import *im)
{
    resizing r;
    dlc_value *x = im_in(im, 0);
    const char *mode = im_choice(im, "mode", "nearest", "nearest|linear");
    init_resizing(im, x, &r);
    if (!mode)
        return;
    r.mode = mode;
    if (mode[0] == 'n' && im->opset >= 10)
        im_fail(im, DLC_UNSUPPORTED,
                "scales that are only known at run time, in opset 10; how mode nearest rounds "
                "depends on them");
    else
        take_run_scales(im, x, im_in(im, 1), &r);
    if (im_ok(im))
        im->out[0] = build(im, x, &r);
}

static const char *old_mode(dlc_import *im)
{
    return im_choice(im, "mode", "nearest", "nearest|linear");
}

void import_upsample_1(dlc_import *im)
{
    const double scales[4] = {1, 1, im_float(im, "height_scale", 1), im_float(im, "width_scale", 1)};
    const char *mode = im_choice(im, "mode", "nearest", "nearest|bilinear");
    resize_old(im, scales, 4, mode && mode[0] == 'b' ? "linear" : mode);
}

void import_upsample_7(dlc_import *im)
{
    uint32_t n;
    const float *given = im_floats(im, "scales", &n);
    if (!given) {
        im_fail(im, DLC_INVALID, "attribute 'scales' is required");
        return;
    }
    double *scales = dlc_new_array(im->arena, double, n + 1);
    for (uint32_t i = 0; i < n; i++)
        scales[i] = given[i];
    resize_old(im, scales, n, old_mode(im));
}

void import_upsample_9(dlc_import *im)
{
    uint32_t n = 0;
    if (!is_known(im, im_in(im, 1))) {
        resize_old_run(im);
        return;
    }
    const double *scales = im_const_floats(im, im_in(im, 1), "scales", &n);
    resize_old(im, scales, n, old_mode(im));
}

void import_resize_10(dlc_import *im)
{
    import_upsample_9(im);
}

/* --- from opset 11 --- */

static int read_modes(dlc_import *im, resizing *r)
{
    const char *coords =
        im->opset < 13 ? "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_half_pixel_for_"
                         "nn|tf_crop_and_resize"
        : im->opset < 19
            ? "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_crop_and_resize"
            : "half_pixel|half_pixel_symmetric|pytorch_half_pixel|align_corners|asymmetric|tf_crop_"
              "and_resize";
    r->mode = im_choice(im, "mode", "nearest", "nearest|linear|cubic");
    r->coord = im_choice(im, "coordinate_transformation_mode", "half_pixel", coords);
    r->nearest = im_choice(im, "nearest_mode", "round_prefer_floor",
                           "round_prefer_floor|round_prefer_ceil|floor|ceil");
    r->cubic_a = im_float(im, "cubic_coeff_a", -0.75);
    r->exclude_outside = im_int(im, "exclude_outside", 0);
    r->extrapolation = im_float(im, "extrapolation_value", 0);
    r->antialias = im->opset >= 18 ? im_int(im, "antialias", 0) : 0;
    r->has_roi = r->coord && strcmp(r->coord, "tf_crop_and_resize") == 0;
    return im_ok(im);
}

static int read_resize_axes(dlc_import *im, const dlc_value *x, resizing *r)
{
    uint32_t n;
    uint8_t sorted[DLC_MAX_RANK];
    const int64_t *axes = im->opset >= 18 ? im_ints(im, "axes", &n) : NULL;
    if (!axes)
        return 1;
    if (!im_axes(im, axes, n, im_rank(x), sorted))
        return 0;
    r->naxes = n;
    for (uint32_t i = 0; i < n; i++)
        r->axes[i] = (uint8_t)(axes[i] < 0 ? axes[i] + im_rank(x) : axes[i]);
    return 1;
}

static int read_roi(dlc_import *im, const dlc_value *x, resizing *r)
{
    uint32_t n = 0;
    if (!r->has_roi)
        return 1;
    if (im_in(im, 1) && !is_known(im, im_in(im, 1))) {
        dlc_value *halves[2];
        const dlc_expr half = im_i64(im, r->naxes);
        for (uint32_t h = 0; h < 2; h++)
            halves[h] = spread(im, r, im_rank(x),
                               f_slice(im, im_in(im, 1), 0, h ? half : im_i64(im, 0), half), h);
        r->roi_data = f_concat(im, halves, 2, 0);
        return im_ok(im);
    }
    const double *roi = im_in(im, 1) ? im_const_floats(im, im_in(im, 1), "roi", &n) : NULL;
    if (im_ok(im) && n != 2 * r->naxes)
        im_fail(im, DLC_INVALID, "roi has %" PRIu32 " entries; %" PRIu32 " are wanted", n,
                2 * r->naxes);
    for (uint32_t i = 0; i < r->naxes && im_ok(im); i++) {
        r->roi[r->axes[i]] = roi[i];
        r->roi[im_rank(x) + r->axes[i]] = roi[r->naxes + i];
    }
    return im_ok(im);
}

/* One scale for all, such that no dimension is larger (or smaller) than asked for; half a pixel
 * rounds up. */
static void keep_aspect(dlc_import *im, const dlc_value *x, const dlc_expr *sizes, int is_larger,
                        resizing *r)
{
    double scale = is_larger ? 0 : INFINITY;
    int64_t in, out;
    for (uint32_t i = 0; i < r->naxes; i++) {
        if (!im_is_const(im, x->type.dims[r->axes[i]], &in) || !im_is_const(im, sizes[i], &out) ||
            in < 1) {
            keep_run_aspect(im, x, im_in(im, 3), is_larger, r);
            return;
        }
        double ratio = (double)out / (double)in;
        scale = is_larger ? fmax(scale, ratio) : fmin(scale, ratio);
    }
    r->has_scales = 1;
    for (uint32_t i = 0; i < r->naxes; i++) {
        (void)im_is_const(im, x->type.dims[r->axes[i]], &in);
        double size = floor(scale * (double)in + 0.5);
        if (!(size >= 0 && size <= (double)INT32_MAX)) {
            im_fail(im, DLC_INVALID, "a scale of %g makes %" PRId64 " elements %g", scale, in,
                    size);
            return;
        }
        r->scales[r->axes[i]] = scale;
        r->dims[r->axes[i]] = im_i64(im, (int64_t)size);
    }
}

static void take_sizes(dlc_import *im, const dlc_value *x, const char *policy, resizing *r)
{
    uint32_t n;
    const dlc_expr *sizes = im_elements(im, im_in(im, 3), 0, INT32_MAX, &n);
    if (!sizes)
        return;
    if (n != r->naxes)
        im_fail(im, DLC_INVALID, "%" PRIu32 " sizes for %" PRIu32 " dimensions", n, r->naxes);
    else if (strcmp(policy, "stretch") != 0)
        keep_aspect(im, x, sizes, strcmp(policy, "not_smaller") == 0, r);
    for (uint32_t i = 0; im_ok(im) && !r->has_scales && i < n; i++)
        r->dims[r->axes[i]] = sizes[i];
}

/* An empty tensor stands for an absent input (opset 11). */
static int is_given(dlc_import *im, uint32_t input)
{
    int64_t n;
    return im_in(im, input) && !(dlc_type_elems(im->pool, &im_in(im, input)->type, &n) && n == 0);
}

void import_resize_11(dlc_import *im)
{
    resizing r;
    dlc_value *x = im_in(im, 0);
    uint32_t n = 0;
    init_resizing(im, x, &r);
    const char *policy = im->opset >= 18 ? im_choice(im, "keep_aspect_ratio_policy", "stretch",
                                                     "stretch|not_larger|not_smaller")
                                         : "stretch";
    if (!read_modes(im, &r) || !policy || !read_resize_axes(im, x, &r) || !read_roi(im, x, &r))
        return;
    if (is_given(im, 2) == is_given(im, 3)) {
        im_fail(im, DLC_INVALID,
                is_given(im, 2) ? "both scales and sizes are given"
                                : "neither scales nor sizes are given");
        return;
    }
    if (is_given(im, 3)) {
        take_sizes(im, x, policy, &r);
    } else if (!is_known(im, im_in(im, 2))) {
        take_run_scales(im, x, im_in(im, 2), &r);
    } else {
        const double *scales = im_const_floats(im, im_in(im, 2), "scales", &n);
        if (scales)
            take_scales(im, x, scales, n, &r);
    }
    if (im_ok(im))
        im->out[0] = build(im, x, &r);
}

void import_grid_sample(dlc_import *im)
{
    const char *mode = im->opset < 20
                           ? im_choice(im, "mode", "bilinear", "bilinear|nearest|bicubic")
                           : im_choice(im, "mode", "linear", "linear|nearest|cubic");
    const char *padding = im_choice(im, "padding_mode", "zeros", "zeros|border|reflection");
    int64_t align = im_int(im, "align_corners", 0);
    if (!mode || !padding)
        return;
    if (strncmp(mode, "bi", 2) == 0)
        mode += 2;
    im->out[0] =
        f_node(im, DLC_OP_GRID_SAMPLE, F_IN(im_in(im, 0), im_in(im, 1)),
               F_ATTRS(dlc_attr_text(DLC_ATTR_MODE, mode), dlc_attr_text(DLC_ATTR_COORD, padding),
                       dlc_attr_int(DLC_ATTR_ALIGN_CORNERS, align != 0)));
}
