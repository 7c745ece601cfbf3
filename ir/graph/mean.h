/* What the mean_*.c files share: a prototype per meaning, and the helpers of ir/graph/op.h in shorter
 * words. */
#ifndef DLC_IR_GRAPH_MEAN_H
#define DLC_IR_GRAPH_MEAN_H

#include "ir/graph/op.h"

/* One prototype per meaning named in ops.def. (An opaque row declares dlc_mean_NULL, which nothing
 * defines or calls.) */
#define DLC_OP(id, text, lo, hi, nout, infer, mean, traits, types, attrs)                          \
    dlc_status dlc_mean_##mean(dlc_mean *);
#include "ir/graph/ops.def"
#undef DLC_OP

enum { DLC_ABSENT = 0xffffffffu }; /* in[i] of an input that is not there */

static inline const dlc_type *dlc_mean_in(const dlc_mean *mean, uint32_t input)
{
    return &mean->node->inputs[input]->type;
}
static inline const dlc_type *dlc_mean_result(const dlc_mean *mean)
{
    return &mean->node->outputs[0]->type;
}
static inline int dlc_mean_has(const dlc_mean *mean, uint32_t input)
{
    return input < mean->node->ninputs && mean->node->inputs[input];
}

/* f16 and bf16 are computed in f32, everything else in its own type. */
dlc_dtype dlc_mean_wide(dlc_dtype dtype);
/* A dimension of input i, in the kernel's pool. */
dlc_expr dlc_mean_in_dim(dlc_mean *mean, uint32_t input, uint32_t dim);
/* dims[] of a type, in the kernel's pool. */
void dlc_mean_dims(dlc_mean *mean, const dlc_type *type, dlc_expr *dims);
/* A list attribute in the kernel's pool: n entries, `otherwise` where the attribute is absent. */
void dlc_mean_list(dlc_mean *mean, dlc_attr_id id, uint32_t n, int64_t otherwise, dlc_expr *out);
/* A fresh axis, appended to `axes`; its expression. */
dlc_expr dlc_mean_axis(dlc_mean *mean, const char *name, dlc_expr extent, dlc_ids *axes);
/* The result as a map over its own axes: casts `value` to the result's dtype and sets out[0]. */
dlc_status dlc_mean_finish(dlc_mean *mean, const dlc_ids *axes, dlc_expr value);
/*
 * Reduces `value` over `reduce` and makes the result out[0]: as the reduction itself when its type
 * is the result's, else by a map that casts. */
dlc_status dlc_mean_finish_reduce(dlc_mean *mean, const dlc_ids *axes, const dlc_ids *reduce,
                                  dlc_reduce combine, dlc_expr value);
/* index < 0 ? index + extent : index, as i64. */
dlc_expr dlc_mean_wrap(dlc_mean *mean, dlc_expr index, dlc_expr extent);
/* The element of a one-element input. */
dlc_expr dlc_mean_load_scalar(dlc_mean *mean, uint32_t input);
/* Load whose indices depend on data: out of range is reported by the run. */
dlc_expr dlc_mean_load_checked(dlc_mean *mean, uint32_t input, const dlc_expr *index);
/* Smallest value of a max: -inf or the type's least; largest of a min. */
dlc_expr dlc_mean_lowest(dlc_pool *pool, dlc_dtype dtype);
dlc_expr dlc_mean_highest(dlc_pool *pool, dlc_dtype dtype);

/* A code of a narrow type (dlc_is_code) as a number, f32 or i32; and the code of a number. mode, of
 * f8e8m0: u(p), d(own) or n(earest). */
dlc_expr dlc_narrow_decode(dlc_pool *pool, dlc_dtype from, dlc_expr code);
dlc_expr dlc_narrow_encode(dlc_pool *pool, dlc_dtype to, dlc_expr x, int saturate, char mode);

#endif
