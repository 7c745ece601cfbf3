/* The convolution that winograd.c rewrites (winograd_site.c), and what it takes (winograd_time.c). */
#ifndef DLC_PASSES_REWRITE_WINOGRAD_H
#define DLC_PASSES_REWRITE_WINOGRAD_H

#include "passes/rewrite/rewrite.h"
#include "passes/rewrite/winograd_form.h"

/* One of the two directions of tiles. */
typedef struct {
    uint32_t image, tap; /* axes, of the results and of the window; DLC_NO_AXIS: there is no such */
    uint32_t phase;      /* axis, where step is more than 1: results are at step * image + phase */
    int64_t window;      /* taps; 1: there is no window */
    int64_t step;        /* between taps */
    int64_t stride;      /* between windows of neighbours: 1, or 2 */
    dlc_expr size;       /* of the results, of one phase */
    int64_t nominal;     /* of all of them, as far as estimates go */
    uint32_t form;
} dlc_winograd_direction;

typedef struct {
    const dlc_rewriting *in;
    dlc_kernel *kernel; /* a copy, whose pool grows */
    dlc_expr x, w;      /* the loads, of floats of 32 bits or less, or of bytes; expressions of the kernel given too */
    dlc_dtype sum;      /* of products of the points */
    dlc_winograd_direction along[2];
    uint32_t ic, oc;
    dlc_ids others;     /* further reduced axes, as taps along a third direction */
    int has_rows;       /* of tiles: an axis of their own */
    int is_turned;      /* by a kernel behind */
    int64_t inputs, outputs; /* channels; inputs for each point of the further axes */
    int64_t nothers;    /* points of them */
    int64_t most, greatest; /* of bytes: the largest result, sign aside, that the filters allow, and the largest weight */
    double images;      /* the least there are */
    dlc_arena *arena;   /* of what is made */
} dlc_winograd_site;

/* In each direction of a tile. */
static inline int64_t dlc_winograd_results(const dlc_winograd_site *at, uint32_t d)
{
    return dlc_winograd_forms[at->along[d].form].m;
}

static inline int64_t dlc_winograd_points(const dlc_winograd_site *at, uint32_t d)
{
    return dlc_winograd_forms[at->along[d].form].npoints;
}

/* A window has more taps than the form: it is so many windows, whose results are added. */
static inline int64_t dlc_winograd_groups(const dlc_winograd_site *at, uint32_t d)
{
    int64_t taps = dlc_winograd_forms[at->along[d].form].taps;
    return (at->along[d].window + taps - 1) / taps;
}

/* Taps from one of them to the next: taps that two of them have are the later one's. */
static inline int64_t dlc_winograd_between(const dlc_winograd_site *at, uint32_t d)
{
    int64_t n = dlc_winograd_groups(at, d);
    return n == 1 ? 0 : (at->along[d].window - dlc_winograd_forms[at->along[d].form].taps) / (n - 1);
}

static inline int dlc_winograd_is_exact(const dlc_winograd_site *at)
{
    return at->sum == DLC_I32;
}

static inline int dlc_winograd_has_phases(const dlc_winograd_site *at, uint32_t d)
{
    return at->along[d].step > 1;
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

/* Of transforms while they are computed. */
static inline dlc_dtype dlc_winograd_row_type(const dlc_winograd_site *at)
{
    return dlc_winograd_is_exact(at) ? DLC_I16 : DLC_F32;
}

/* The forms lose little: as much as tiles of 2 x 2 do, or those of more results in one direction. */
static inline int dlc_winograd_is_close(const dlc_winograd_site *at)
{
    return dlc_winograd_forms[at->along[0].form].loss * dlc_winograd_forms[at->along[1].form].loss < 2;
}

/* Of the points that are multiplied: where the user asks for bf16, those of forms that lose little are cut, too. */
static inline dlc_dtype dlc_winograd_point_type(const dlc_winograd_site *at)
{
    int is_cut = at->in->cuts_bf16 && at->inputs % 2 == 0 && dlc_winograd_has_pairs(at) && dlc_winograd_is_close(at);
    return is_cut ? DLC_BF16 : dlc_winograd_row_type(at);
}

/* In whole numbers the results of tiles are so many times as large. */
static inline int64_t dlc_winograd_times(const dlc_winograd_site *at)
{
    return dlc_winograd_forms[at->along[0].form].whole * dlc_winograd_forms[at->along[1].form].whole;
}

/* Fills all that does not depend on the form; in, arena and images are set. 0: the kernel is no convolution that has tiles. */
int dlc_winograd_find(dlc_winograd_site *at);
/* A copy of the kernel given, with axes for phases, the same in each copy; NULL: what follows the convolution does not go by them. */
dlc_kernel *dlc_winograd_copy(const dlc_winograd_site *at, dlc_arena *arena, uint32_t phase[2]);
/* Results of all phases. */
dlc_expr dlc_winograd_whole_size(const dlc_winograd_site *at, uint32_t d);
/* All phases have whole tiles of `results` each. */
int dlc_winograd_is_filled(const dlc_winograd_site *at, uint32_t d, int64_t results);

/* Of bytes: `most` and `greatest` (winograd_range.c). */
void dlc_winograd_find_range(dlc_winograd_site *at);
/* Of the filters, as the forms have them, and as they are. */
double dlc_winograd_filter_bytes(const dlc_winograd_site *at);
double dlc_winograd_filter_bytes_before(const dlc_winograd_site *at);
/* Microseconds of one thread, products, transforms and weights from memory, by the forms; and as it is. */
double dlc_winograd_time(const dlc_winograd_site *at);
double dlc_winograd_time_before(const dlc_winograd_site *at);

#endif
