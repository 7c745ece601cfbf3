/* Transforms of Winograd's tiles, as expressions (winograd.c says what they are for). */
#ifndef DLC_PASSES_REWRITE_WINOGRAD_FORM_H
#define DLC_PASSES_REWRITE_WINOGRAD_FORM_H

#include "ir/expr/expr.h"

enum { DLC_WINOGRAD_TAPS = 3, DLC_WINOGRAD_PAIRS = 2, DLC_WINOGRAD_POINTS = 2 * DLC_WINOGRAD_PAIRS + 2, DLC_WINOGRAD_FORMS = 3 };

/* By number of results in a row, ascending: polynomials at 0, infinity and pairs of ± a number; then that of results whose windows are two
 * apart. */
typedef struct {
    int64_t m, stride, npoints; /* as many points as a row of the input has elements: stride * (m - 1) + 3 */
    uint32_t npairs;
    double pair[DLC_WINOGRAD_PAIRS];
} dlc_winograd_form;
extern const dlc_winograd_form dlc_winograd_forms[DLC_WINOGRAD_FORMS];

/* Points of a row of the input, d. */
void dlc_winograd_input(dlc_pool *pool, uint32_t form, const dlc_expr *d, dlc_expr *points);
/* Results (m) of a row of points, z. */
void dlc_winograd_output(dlc_pool *pool, uint32_t form, const dlc_expr *z, dlc_expr *results);
/* Points of a row of the filter are g times its taps: G, or `times` of it. */
void dlc_winograd_filter(uint32_t form, double times, double (*g)[DLC_WINOGRAD_TAPS]);
/* The sum of taps, `of`, each by its weight. */
dlc_expr dlc_winograd_weigh(dlc_pool *pool, const double *by, const dlc_expr *of);

#endif
