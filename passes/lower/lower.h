/* The steps of dlc_group_lower (passes/fuse/fuse.h), in the order it runs them. Memory from the kernel's arena. */
#ifndef DLC_PASSES_LOWER_LOWER_H
#define DLC_PASSES_LOWER_LOWER_H

#include "ir/kernel/algebra.h"
#include "passes/fuse/fuse.h"

void dlc_lower_inline(dlc_kernel *kernel);  /* lower_inline.c: maps become part of their readers */
void dlc_lower_axes(dlc_kernel *kernel);    /* lower_axes.c: unit axes, one axis for what is one, splits */
void dlc_lower_phases(dlc_kernel *kernel);  /* lower_phases.c: taps of transposed convolutions by the points that they are of use to */
void dlc_lower_merge(dlc_kernel *kernel);   /* lower_merge.c: buffers in physical order, contiguous axes become one */
void dlc_lower_unify(dlc_kernel *kernel);   /* lower_axes.c: axes of stages that read each other become one */
void dlc_lower_bounds(dlc_kernel *kernel, dlc_value *const *values); /* lower_bounds.c: by buffer; of constants that scale what becomes bytes */
void dlc_lower_guards(dlc_kernel *kernel);  /* lower_axes.c: guards on values that are there anyway become selects */
/* The index runs over some value more than once, as a window's do: its terms in two axes overlap. */
int dlc_lower_overlaps(const dlc_kernel *kernel, dlc_expr index);

#endif
