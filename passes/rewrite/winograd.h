/* The 3x3 convolution that winograd.c rewrites, and what it takes (winograd_time.c). */
#ifndef DLC_PASSES_REWRITE_WINOGRAD_H
#define DLC_PASSES_REWRITE_WINOGRAD_H

#include "passes/rewrite/rewrite.h"
#include "passes/rewrite/winograd_form.h"

enum { DLC_WINOGRAD_CUT_RESULTS = 2 }; /* in a row of the form whose transforms lose little, so that its points may be cut to bf16 */

typedef struct {
    const dlc_rewriting *in;
    dlc_kernel *kernel; /* a copy, whose pool grows */
    dlc_expr x, w;      /* the loads, of floats of 32 bits or less, or of bytes; expressions of the kernel given too */
    dlc_dtype sum;      /* of products of the points */
    uint32_t image[2], tap[2]; /* axes by dimension: of the results, of the window */
    int64_t step[2];    /* between taps */
    int64_t stride[2];  /* between windows of neighbours: 1, or 2 in both directions */
    uint32_t phase[2];  /* axes, where it is more than 1: results are at step * image + phase */
    uint32_t ic, oc;
    dlc_ids others;     /* further reduced axes, as taps along a third direction */
    dlc_expr size[2];   /* of the results, of one phase */
    int64_t nominal[2]; /* of all of them, as far as estimates go */
    int has_rows;       /* of tiles: an axis of their own */
    int is_turned;      /* by a kernel behind */
    int64_t inputs, outputs; /* channels; inputs for each point of the further axes */
    int64_t nothers;    /* points of them */
    int64_t most;       /* of bytes: the largest result, sign aside, that the filters allow */
    double images;      /* the least there are */
    uint32_t form;
    dlc_arena *arena;   /* of what is made */
} dlc_winograd_site;

/* In each direction of a tile. */
static inline int64_t dlc_winograd_results(const dlc_winograd_site *at)
{
    return dlc_winograd_forms[at->form].m;
}

static inline int dlc_winograd_is_exact(const dlc_winograd_site *at)
{
    return at->sum == DLC_I32;
}

static inline const dlc_buffer *dlc_winograd_buffer(const dlc_winograd_site *at, dlc_expr load)
{
    return &at->kernel->buffers.data[dlc_node_of(at->kernel->pool, load)->imm.id];
}

/* Factors are bf16, which the target multiplies by pairs. */
static inline int dlc_winograd_has_pairs(const dlc_winograd_site *at)
{
    return dlc_winograd_buffer(at, at->x)->type.dtype == DLC_BF16 && dlc_winograd_buffer(at, at->w)->type.dtype == DLC_BF16 &&
           dlc_dot_pays(at->in->target, DLC_DOT_VDPBF16PS);
}

/* Where the user asks for that precision, points of the form that loses little are cut, too. */
static inline int dlc_winograd_cuts_points(const dlc_winograd_site *at)
{
    return at->in->cuts_bf16 && at->inputs % 2 == 0 && dlc_winograd_has_pairs(at);
}

/* Of transforms while they are computed. */
static inline dlc_dtype dlc_winograd_row_type(const dlc_winograd_site *at)
{
    return dlc_winograd_is_exact(at) ? DLC_I16 : DLC_F32;
}

/* Of the points that are multiplied, in the form with m results in a row. */
static inline dlc_dtype dlc_winograd_point_type(const dlc_winograd_site *at, int64_t m)
{
    return dlc_winograd_cuts_points(at) && m == DLC_WINOGRAD_CUT_RESULTS ? DLC_BF16 : dlc_winograd_row_type(at);
}

/* The largest magnitude that a result of bytes can have (winograd_range.c). */
int64_t dlc_winograd_most(const dlc_winograd_site *at);
/* Of the filters, as the form has them; DLC_WINOGRAD_FORMS: as they are. */
double dlc_winograd_filter_bytes(const dlc_winograd_site *at, uint32_t form);
/* Microseconds of one thread, products, transforms and weights from memory; DLC_WINOGRAD_FORMS: as it is. */
double dlc_winograd_time(const dlc_winograd_site *at, uint32_t form);

#endif
