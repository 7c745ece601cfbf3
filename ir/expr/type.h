/* Tensor types: dtype, logical shape over symbols (ONNX's order), physical layout. Values are small structs, copied freely. */
#ifndef DLC_IR_EXPR_TYPE_H
#define DLC_IR_EXPR_TYPE_H

#include "base/str.h"
#include "dlc/dtype.h"
#include "ir/expr/expr.h"

enum { DLC_MAX_RANK = 8, DLC_MAX_PARTS = 12 };
#define DLC_MAX_ELEMS ((int64_t)1 << 40) /* of one tensor, empty dimensions counted as 1 */

/* dims are i64 expressions in the graph's pool, over symbols only; hash-consing makes equal dimensions equal ids. */
typedef struct {
    dlc_dtype dtype;
    uint8_t rank;
    dlc_expr dims[DLC_MAX_RANK];
} dlc_type;

/* What binds a symbol at run time. */
typedef enum {
    DLC_BIND_INPUT_DIM, /* dimension `index` of the model's input `value` */
    DLC_BIND_DATA,      /* element `index` of an integer value, read after it was computed */
    DLC_BIND_OPAQUE,    /* written by an opaque step */
    DLC_BIND_RESULT     /* dimension `index` of what a region gives, known once it did */
} dlc_bind;

/* A condition the plan checks once per run, as soon as it can: `holds` (bool over symbols), or DLC_INVALID with `text`. */
typedef struct {
    dlc_expr holds;
    const char *text;
} dlc_condition;

/*
 * Where element (i0, i1, …) lies: parts from outer to inner, each a logical dimension or, with block > 1, the remainder of
 * it modulo `block` (the part of the same dimension further out is then its quotient). nparts = 0 is row-major.
 * NHWC is 0,2,3,1; a packed filter oc/32,ic,kh,kw,oc%32 is {0/32},{1},{2},{3},{0%32}.
 */
typedef struct {
    uint8_t nparts;
    struct {
        uint8_t dim;
        uint8_t inner;  /* 1: index mod block, extent block; 0: index floordiv block (block 1: the index itself) */
        int32_t block;  /* >= 1 */
        int32_t pad;    /* elements behind each row of the part, where nothing lies: of copies in shared memory alone */
    } part[DLC_MAX_PARTS];
} dlc_layout;

int dlc_layout_equal(const dlc_layout *a, const dlc_layout *b);
dlc_layout dlc_layout_permuted(uint8_t rank, const uint8_t *order); /* order[p]: dimension of part p, outer to inner */
dlc_layout dlc_layout_channels_last(uint8_t rank);                  /* n, spatial…, c; rank >= 3 */
/* Offset in elements of index[rank] in `pool` (a block's last part is padded up: sizes are dlc_layout_elems). */
dlc_expr dlc_layout_offset(dlc_pool *pool, const dlc_layout *layout, uint8_t rank, const dlc_expr *dims,
                           const dlc_expr *index);
/* Number of elements of the buffer, padding of blocks included. */
dlc_expr dlc_layout_elems(dlc_pool *pool, const dlc_layout *layout, uint8_t rank, const dlc_expr *dims);

/* "" for row-major, else "@nhwc" (@nwc, @ndhwc) or "@{0/32,1,2,3,0%32}": parts from outer to inner. */
void dlc_layout_print(const dlc_layout *layout, uint8_t rank, dlc_str *out);
/* Reads what dlc_layout_print writes at *text and moves *text behind it; false: no layout of this rank. */
int dlc_layout_parse(const char **text, uint8_t rank, dlc_layout *layout);

/* Number of elements (bytes) when every dimension is a constant >= 0 and the limit holds; else false. */
int dlc_type_elems(const dlc_pool *pool, const dlc_type *type, int64_t *elems);
int dlc_type_bytes(const dlc_pool *pool, const dlc_type *type, size_t *size_bytes);

dlc_expr dlc_dims_product(dlc_pool *pool, const dlc_expr *dims, uint32_t n); /* 1 for n = 0 */

#endif
