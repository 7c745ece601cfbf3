/* Operators whose indices are data: Gather's and Scatter's families, TopK, OneHot, NonZero,
 * triangles. */
#include "frontend/import.h"

#include <inttypes.h>
#include <string.h>

static int axis_of(dlc_import *im, int64_t otherwise)
{
    return im_axis(im, im_int(im, "axis", otherwise), im_rank(im_in(im, 0)));
}

/* Constant indices lie in the dimensions they are of: element e in axis `first`, or of tuples of n in first + e % n. What is
 * only known at run time is checked there. */
static int are_in_range(dlc_import *im, uint32_t first, uint32_t n)
{
    const dlc_value *x = im_in(im, 0), *indices = im_in(im, 1);
    int64_t count, extent[DLC_MAX_RANK] = {0}, is_known = 0;
    if (!indices->data || !dlc_is_int(indices->type.dtype) || !dlc_type_elems(im->pool, &indices->type, &count) ||
        first + n > im_rank(x))
        return 1;
    for (uint32_t i = 0; i < n; i++)
        is_known |= (int64_t)im_is_const(im, x->type.dims[first + i], &extent[i]) << i;
    for (int64_t e = 0; e < count; e++) {
        uint32_t at = (uint32_t)(e % n);
        int64_t index = im_int_at(indices, (uint32_t)e);
        if (!(is_known >> at & 1) || (index >= -extent[at] && index < extent[at]))
            continue;
        im_fail(im, DLC_INVALID,
                "element %" PRId64 " of its indices '%s' is %" PRId64 "; axis %" PRIu32 " of '%s' has %" PRId64
                " elements, so %" PRId64 " to %" PRId64 " are possible",
                e, indices->name, index, first + at, x->name, extent[at], -extent[at], extent[at] - 1);
        return 0;
    }
    return 1;
}

/* The tuples of GatherND and ScatterND. */
static int are_tuples_in_range(dlc_import *im, int64_t batch)
{
    const dlc_value *indices = im_in(im, 1);
    int64_t n;
    if (!im_rank(indices) || batch < 0 || batch >= (int64_t)im_rank(im_in(im, 0)) ||
        !im_is_const(im, indices->type.dims[im_rank(indices) - 1], &n) || n < 1 || n > DLC_MAX_RANK)
        return 1;
    return are_in_range(im, (uint32_t)batch, (uint32_t)n);
}

void import_gather(dlc_import *im)
{
    int axis = axis_of(im, 0);
    if (axis >= 0 && are_in_range(im, (uint32_t)axis, 1))
        im->out[0] = f_gather(im, im_in(im, 0), im_in(im, 1), (uint32_t)axis);
}

void import_gather_elements(dlc_import *im)
{
    int axis = axis_of(im, 0);
    if (axis >= 0 && are_in_range(im, (uint32_t)axis, 1))
        im->out[0] = f_node(im, DLC_OP_GATHER_ELEMENTS, F_IN(im_in(im, 0), im_in(im, 1)),
                            F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, axis)));
}

void import_gather_nd(dlc_import *im)
{
    int64_t batch = im->opset >= 12 ? im_int(im, "batch_dims", 0) : 0;
    if (!are_tuples_in_range(im, batch))
        return;
    im->out[0] = f_node(im, DLC_OP_GATHER_ND, F_IN(im_in(im, 0), im_in(im, 1)),
                        F_ATTRS(dlc_attr_int(DLC_ATTR_BATCH_DIMS, batch)));
}

static const char *reduction(dlc_import *im)
{
    if (im->opset < 16)
        return "none";
    return im_choice(im, "reduction", "none",
                     im->opset >= 18 ? "none|add|mul|min|max" : "none|add|mul");
}

void import_scatter_elements(dlc_import *im)
{
    int axis = axis_of(im, 0);
    const char *how = reduction(im);
    if (axis >= 0 && how && are_in_range(im, (uint32_t)axis, 1))
        im->out[0] = f_node(
            im, DLC_OP_SCATTER_ELEMENTS, F_IN(im_in(im, 0), im_in(im, 1), im_in(im, 2)),
            F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, axis), dlc_attr_text(DLC_ATTR_REDUCTION, how)));
}

void import_scatter_nd(dlc_import *im)
{
    const char *how = reduction(im);
    if (how && are_tuples_in_range(im, 0))
        im->out[0] = f_node(im, DLC_OP_SCATTER_ND, F_IN(im_in(im, 0), im_in(im, 1), im_in(im, 2)),
                            F_ATTRS(dlc_attr_text(DLC_ATTR_REDUCTION, how)));
}

/* --- TopK --- */

void import_top_k(dlc_import *im)
{
    dlc_value *x = im_in(im, 0);
    int64_t largest = im->opset >= 11 ? im_int(im, "largest", 1) : 1,
            sorted = im->opset >= 11 ? im_int(im, "sorted", 1) : 1;
    int axis = axis_of(im, -1);
    dlc_expr k = im->opset < 10 ? im_i64(im, im_int(im, "k", 0)) : 0;
    uint32_t n = 1;
    if (im->opset >= 10) {
        const dlc_expr *elements =
            im_in(im, 1) ? im_elements(im, im_in(im, 1), 0, INT32_MAX, &n) : NULL;
        if (!im_in(im, 1))
            im_fail(im, DLC_INVALID, "input 1 (k) is required");
        k = elements && n == 1 ? elements[0] : 0;
    }
    int64_t known;
    if (n != 1)
        im_fail(im, DLC_INVALID, "k has %" PRIu32 " elements; one is wanted", n);
    else if (k && im_is_const(im, k, &known) && known < 0)
        im_fail(im, DLC_INVALID, "k is %" PRId64, known);
    if (axis < 0 || !im_ok(im) || !k)
        return;
    const dlc_attr attrs[4] = {
        dlc_attr_int(DLC_ATTR_AXIS, axis), dlc_attr_int(DLC_ATTR_LARGEST, largest != 0),
        dlc_attr_int(DLC_ATTR_SORTED, sorted != 0), dlc_attr_dims(DLC_ATTR_DIMS, &k, 1)};
    dlc_node *node = f_node_with(im, DLC_OP_TOPK, &x, 1, 2, attrs, 4);
    for (uint32_t i = 0; node && i < im->nout; i++)
        im->out[i] = node->outputs[i];
}

/* --- NonZero and Compress: their size is only known once they ran --- */

dlc_value *im_nonzero(dlc_import *im, dlc_value *x)
{
    if (!x)
        return NULL;
    uint32_t symbol =
        dlc_graph_symbol(im->graph, dlc_arena_printf(im->arena, "%s.count", im->origin->name),
                         DLC_BIND_OPAQUE, NULL, 0);
    int64_t most;
    if (dlc_type_elems(im->pool, &x->type, &most) && most < im->graph->symbols.data[symbol].hi)
        im->graph->symbols.data[symbol].hi = most;
    return f_node(im, DLC_OP_NONZERO, F_IN(x), F_ATTRS(dlc_attr_int(DLC_ATTR_SYMBOL, symbol)));
}

void import_non_zero(dlc_import *im)
{
    im->out[0] = im_nonzero(im, im_in(im, 0));
}

void import_compress(dlc_import *im)
{
    dlc_value *x = im_in(im, 0), *condition = im_in(im, 1);
    int axis = im_has(im, "axis") ? axis_of(im, 0) : 0;
    if (im_rank(condition) != 1)
        im_fail(im, DLC_INVALID, "the condition has rank %" PRIu32 "; 1 is wanted",
                im_rank(condition));
    if (axis < 0 || !im_ok(im))
        return;
    if (!im_has(im, "axis")) {
        const dlc_expr all = im_product(im, x->type.dims, im_rank(x));
        x = f_reshape(im, x, &all, 1);
    }
    dlc_value *index = im_nonzero(im, condition);
    im->out[0] = f_gather(im, x, index ? f_drop_axis(im, index, 0) : NULL, (uint32_t)axis);
}

/* --- OneHot, Trilu, ReverseSequence --- */

void import_one_hot(dlc_import *im)
{
    dlc_value *indices = im_in(im, 0), *depth = im_in(im, 1);
    int axis = im_axis(im, im_int(im, "axis", -1), im_rank(indices) + 1);
    uint32_t n;
    depth = f_cast(im, depth, DLC_I64);
    const dlc_expr *size = depth ? im_elements(im, depth, 0, INT32_MAX, &n) : NULL;
    if (!size || axis < 0)
        return;
    if (n != 1) {
        im_fail(im, DLC_INVALID, "depth has %" PRIu32 " elements; one is wanted", n);
        return;
    }
    im->out[0] =
        f_node(im, DLC_OP_ONE_HOT, F_IN(f_cast(im, indices, DLC_I64), im_in(im, 2)),
               F_ATTRS(dlc_attr_int(DLC_ATTR_AXIS, axis), dlc_attr_dims(DLC_ATTR_DIMS, size, 1)));
}

void import_trilu(dlc_import *im)
{
    int64_t upper = im_int(im, "upper", 1);
    dlc_value *const inputs[2] = {im_in(im, 0), im_in(im, 1)};
    im->out[0] = f_node(im, DLC_OP_TRILU, inputs, inputs[1] ? 2 : 1,
                        F_ATTRS(dlc_attr_int(DLC_ATTR_UPPER, upper != 0)));
}

void import_reverse_sequence(dlc_import *im)
{
    int64_t batch = im_int(im, "batch_axis", 1), time = im_int(im, "time_axis", 0);
    if ((batch != 0 && batch != 1) || time != 1 - batch) {
        im_fail(im, DLC_INVALID,
                "batch_axis is %" PRId64 " and time_axis %" PRId64 "; one is 0, the other 1", batch,
                time);
        return;
    }
    const int64_t axes[2] = {time, batch};
    im->out[0] = f_node(im, DLC_OP_REVERSE_SEQUENCE, F_IN(im_in(im, 0), im_in(im, 1)),
                        F_ATTRS(dlc_attr_ints(im->graph, DLC_ATTR_AXES, axes, 2)));
}
