/*
 * Operators of opsets 1 to 6 whose form differs from later ones: broadcasting that was asked for by
 * attributes, inputs that were attributes, types that were texts. Each becomes the later form.
 */
#include "frontend/import.h"

#include <inttypes.h>
#include <string.h>

/* The second operand as `broadcast` and `axis` place it: its dimensions begin at the axis, else they
 * end with the first's. */
static dlc_value *placed(dlc_import *im)
{
    dlc_value *a = im_in(im, 0), *b = im_in(im, 1);
    int64_t broadcast = im_int(im, "broadcast", 0), axis = im_int(im, "axis", -1);
    int has_axis = im_has(im, "axis");
    dlc_expr dims[DLC_MAX_RANK];
    if (!broadcast && im_rank(a) != im_rank(b)) {
        im_fail(im, DLC_INVALID,
                "the operands have ranks %" PRIu32 " and %" PRIu32
                "; before opset 7, attribute 'broadcast' makes them meet",
                im_rank(a), im_rank(b));
        return NULL;
    }
    if (!broadcast || !has_axis || im_rank(b) == 0)
        return b;
    if (axis < 0)
        axis += im_rank(a);
    if (axis < 0 || axis + im_rank(b) > im_rank(a)) {
        im_fail(im, DLC_INVALID, "%" PRIu32 " dimensions from axis %" PRId64 " on leave the %" PRIu32
                " of the first operand", im_rank(b), axis, im_rank(a));
        return NULL;
    }
    uint32_t rank = im_rank(a) - (uint32_t)axis;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i < im_rank(b) ? b->type.dims[i] : im_i64(im, 1);
    return f_reshape(im, b, dims, rank);
}

void import_binary_1(dlc_import *im)
{
    im->out[0] = f_binary(im, (dlc_opcode)im->row->argument, im_in(im, 0), placed(im));
    im_keeps_shape(im, im->out[0], im_in(im, 0));
}

void import_swapped_1(dlc_import *im)
{
    im->out[0] = f_binary(im, (dlc_opcode)im->row->argument, placed(im), im_in(im, 0));
    im_keeps_shape(im, im->out[0], im_in(im, 0));
}

/* A slope per channel, or one for all. */
void import_prelu_1(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *slope = im_in(im, 1);
    if (im_rank(slope) == 1 && im_rank(x) > 1 && slope->type.dims[0] != im_i64(im, 1))
        slope = f_channel(im, slope, im_rank(x), 1);
    im->out[0] = f_binary(im, DLC_OP_PRELU, x, slope);
    im_keeps_shape(im, im->out[0], x);
}

void import_gemm_1(dlc_import *im)
{
    im_int(im, "broadcast", 0); /* what it allows is checked by the later form */
    import_gemm(im);
}

static int is_inference(dlc_import *im)
{
    if (im_int(im, "is_test", 0))
        return 1;
    im_note(im, "is_test = 0 speaks of training; what inference makes of it is computed");
    return im_ok(im);
}

void import_batch_normalization_1(dlc_import *im)
{
    if (is_inference(im))
        import_batch_normalization(im);
}

void import_dropout_1(dlc_import *im)
{
    if (is_inference(im))
        import_dropout(im);
}

void import_concat_1(dlc_import *im)
{
    int axis = im_axis(im, im_int(im, "axis", 1), im_rank(im_in(im, 0)));
    if (axis >= 0)
        im->out[0] = f_concat(im, im->in, im->nin, (uint32_t)axis);
}

/* `shape` as an attribute is the later form's second input. */
void import_reshape_1(dlc_import *im)
{
    uint32_t n = 0;
    const int64_t *shape = im_ints(im, "shape", &n);
    if (!shape) {
        im_fail(im, DLC_INVALID, "attribute 'shape' is required");
        return;
    }
    dlc_value **given = im->in, *both[2] = {im_in(im, 0), dlc_graph_ints(im->graph, shape, n)};
    im->in = both;
    im->nin = 2;
    import_reshape(im);
    im->in = given;
    im->nin = 1;
}

void import_cast_1(dlc_import *im)
{
    static const struct {
        const char *name;
        dlc_dtype dtype;
    } types[] = {{"FLOAT", DLC_F32},   {"DOUBLE", DLC_F64}, {"FLOAT16", DLC_F16}, {"BOOL", DLC_BOOL},
                 {"INT8", DLC_I8},     {"INT16", DLC_I16},  {"INT32", DLC_I32},   {"INT64", DLC_I64},
                 {"UINT8", DLC_U8},    {"UINT16", DLC_U16}, {"UINT32", DLC_U32},  {"UINT64", DLC_U64}};
    const char *to = im_text(im, "to", "");
    for (size_t i = 0; to && i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, to) == 0) {
            im->out[0] = f_cast(im, im_in(im, 0), types[i].dtype);
            return;
        }
    }
    im_fail(im, DLC_UNSUPPORTED, "casts to '%s'", to ? to : "");
}

void import_pad_1(dlc_import *im)
{
    im_rename(im, "paddings", "pads");
    import_pad_2(im);
}

/* One axis, so many times; both are inputs of x's type. */
void import_tile_1(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    uint32_t ntiles, naxes;
    dlc_expr dims[DLC_MAX_RANK];
    const dlc_expr *tiles = im_elements(im, f_cast(im, im_in(im, 1), DLC_I64), 0, INT32_MAX, &ntiles);
    const double *given = im_const_floats(im, im_in(im, 2), "the axis", &naxes);
    if (!tiles || !given)
        return;
    if (ntiles != 1 || naxes != 1) {
        im_fail(im, DLC_INVALID, "%" PRIu32 " tiles and %" PRIu32 " axes; one of each is wanted", ntiles, naxes);
        return;
    }
    int axis = im_axis(im, (int64_t)*given, im_rank(x));
    if (axis < 0)
        return;
    memcpy(dims, x->type.dims, sizeof dims);
    dims[axis] = im_size(im, dlc_mul(im->pool, dims[axis], *tiles));
    im->out[0] = f_node(im, DLC_OP_TILE, F_IN(x), F_ATTRS(dlc_attr_dims(DLC_ATTR_DIMS, dims, im_rank(x))));
}
