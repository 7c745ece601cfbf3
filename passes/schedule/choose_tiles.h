/* Between choose_products.c and those that build trees of products, choose_tiles.c, choose_halo.c and choose_block_tiles.c. */
#ifndef DLC_PASSES_SCHEDULE_CHOOSE_TILES_H
#define DLC_PASSES_SCHEDULE_CHOOSE_TILES_H

#include "passes/schedule/choose.h"

/* A stage that is a product, by rows of the block. */
typedef struct {
    uint8_t is_dot, copies_left, copies_right, is_packed;
    uint8_t copies_block;   /* rows are copied for the whole block: columns come round once for all of them */
    uint8_t is_fed;         /* a product before it feeds it */
    dlc_expr left, right;   /* the rows' factor; the columns' */
    dlc_ids others;         /* kept axes that are neither roots nor columns: loops of one point */
    dlc_ids order;          /* reduced axes, outer to inner */
    uint32_t columns;
    uint32_t as_end;        /* maps [stage + 1, as_end) run over its tile */
    uint32_t feeds;         /* the product whose rows' factor is a map of this one alone, made over its tile; or DLC_NO_STAGE */
    int64_t n, panel;       /* columns of the register tile; those that the right factor is packed or copied by */
} dlc_tiles_product;

typedef struct {
    dlc_chooser *c;
    int feeds_products;     /* asked for: a product may be made over the tile of the one before it */
    dlc_ids points, rows;   /* roots */
    const dlc_ids *rows_of; /* by stage: axes that the left factor of a product has, and its right one has not */
    uint32_t row_axis;      /* rows as one */
    dlc_tiles_product *products;      /* by stage */
    uint32_t *item;         /* by stage: the loop nest it belongs to, in order */
    dlc_lanes_choice lanes; /* of the stages that are no products */
    int64_t m, t;           /* heights of the register tile and of the block */
} dlc_tiles;

static inline const dlc_stage *dlc_tiles_stage(const dlc_tiles *tiles, uint32_t stage)
{
    return &tiles->c->kernel->stages.data[stage];
}
/* Of its vectors. */
static inline uint32_t dlc_tiles_width(const dlc_tiles *tiles, uint32_t stage)
{
    return dlc_choose_width(tiles->c, dlc_dtype_bytes(dlc_tiles_stage(tiles, stage)->dtype[0]));
}
/* A contraction of floats that is worth a register tile. */
int dlc_products_contraction(const dlc_tiles *tiles, uint32_t stage, dlc_contraction *form);
/* The factor is an element of a buffer or of a stage of this kernel, always in bounds, its place affine; NULL: it is not. */
const dlc_access_fact *dlc_products_plain_load(const dlc_tiles *tiles, uint32_t stage, dlc_expr factor);
/* By rows_of: which stages are products, how their factors reach them, what runs over their tiles. How many; 0 also where one of
 * them has too many axes. */
uint32_t dlc_products_find(dlc_tiles *tiles);
/* Rows of the product's register tile that fit the registers, at least 1. */
int64_t dlc_products_height(const dlc_tiles *tiles, uint32_t stage);
/* The stage is a map over the axes of stage `at` that reads stages from `first` on at its own point alone. */
int dlc_products_is_map_at(const dlc_tiles *tiles, uint32_t stage, uint32_t at, uint32_t first);
/* The order of loop nests; where values live; lanes of what is no product. */
void dlc_products_place(dlc_tiles *tiles);
/* Constants are packed; copies of other factors become stages, by stage of their product. Stages that are products change then: a
 * constant whose layout cannot be chosen is copied too. */
void dlc_products_add_copies(dlc_tiles *tiles, uint32_t *left, uint32_t *right);
/* The copy, by lanes along `lane`, in panels of so many where that is not 0; other axes of it that no open loop has by points. */
void dlc_products_build_copy(const dlc_tiles *tiles, uint32_t copy, uint32_t lane, uint32_t width, int64_t panel);

/* Products by rows that are roots: which stages are products, what runs over their tiles, places, and lanes of all others. False: no
 * stage is a product. */
int dlc_tiles_find(dlc_tiles *tiles);
/* A product by rows inside the loops around the block, which are open, with what copies there are of its factors. */
void dlc_tiles_build_product(const dlc_tiles *tiles, uint32_t stage, const uint32_t *left, uint32_t right);
/* Bytes of scratch that a row takes. */
double dlc_tiles_row_bytes(const dlc_tiles *tiles);
/* The rows become one axis; loops over it and the points are around the lanes. */
void dlc_tiles_flatten(dlc_tiles *tiles);

#endif
