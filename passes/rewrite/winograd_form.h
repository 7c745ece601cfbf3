/* Transforms of Winograd's tiles, as expressions (winograd.c says what they are for). */
#ifndef DLC_PASSES_REWRITE_WINOGRAD_FORM_H
#define DLC_PASSES_REWRITE_WINOGRAD_FORM_H

#include "ir/expr/expr.h"

enum { DLC_WINOGRAD_TAPS = 4, DLC_WINOGRAD_PAIRS = 2, DLC_WINOGRAD_POINTS = 2 * DLC_WINOGRAD_PAIRS + 2, DLC_WINOGRAD_FORMS = 7, DLC_WINOGRAD_PLAIN = 0 };

/* Of one direction. Polynomials at 0, infinity and pairs of ± a number; the plain one leaves a direction as it is, of which there is no
 * window, and there is one of results whose windows are two apart, and two of four results in whole numbers. */
typedef struct {
    int64_t m, taps, stride, npoints; /* as many points as a row of the input has elements: stride * (m - 1) + taps */
    uint32_t npairs;
    double pair[DLC_WINOGRAD_PAIRS];
    int64_t whole; /* in whole numbers results come so many times as large; 0: its numbers are none */
    int is_whole;  /* of such alone */
    int64_t left[2]; /* of that, by which results weigh points of the first pair, and the last point, and not the filter */
    double loss;   /* root mean square of a result's error over that of plain sums, where points are rounded as factors are */
} dlc_winograd_form;
extern const dlc_winograd_form dlc_winograd_forms[DLC_WINOGRAD_FORMS];

/* Points of a row of the input, d. */
void dlc_winograd_input(dlc_pool *pool, uint32_t form, const dlc_expr *d, dlc_expr *points);
/* Results (m) of a row of points, z. */
void dlc_winograd_output(dlc_pool *pool, uint32_t form, const dlc_expr *z, dlc_expr *results);
/* Points of a row of the filter are g times its taps: `times` G, 1 or what makes it whole. */
void dlc_winograd_filter(uint32_t form, double times, double (*g)[DLC_WINOGRAD_TAPS]);
/* The largest point of taps that are 1 or -1. */
double dlc_winograd_growth(uint32_t form, double times);
/* z / times, where z is so many times as large as what a window gives, or has lost what does not fit an i32 (winograd_form.c). */
dlc_expr dlc_winograd_divided(dlc_pool *pool, int64_t times, dlc_expr z);
/* Bits that division takes of an i32: results have as many less. */
uint32_t dlc_winograd_bits(int64_t times);
/* The sum of taps, `of`, each by its weight. */
dlc_expr dlc_winograd_weigh(dlc_pool *pool, const double *by, const dlc_expr *of);

#endif
