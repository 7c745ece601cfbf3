/* Between choose_tiles.c and choose_block_tiles.c: products in a row, and what lies between them. */
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
    uint32_t row_axis;      /* rows as one */
    dlc_tiles_product *products;      /* by stage */
    uint32_t *item;         /* by stage: the loop nest it belongs to, in order */
    dlc_lanes_choice lanes; /* of the stages that are no products */
    int64_t m, t;           /* heights of the register tile and of the block */
} dlc_tiles;

/* Which stages are products, by which rows, what runs over their tiles; places, and lanes of all others. False: nothing is. */
int dlc_tiles_find(dlc_tiles *tiles);
/* Bytes of scratch that a row takes. */
double dlc_tiles_row_bytes(const dlc_tiles *tiles);
/* The rows become one axis; loops over it and the points are around the lanes. */
void dlc_tiles_flatten(dlc_tiles *tiles);

#endif
