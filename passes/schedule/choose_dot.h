/* Between choose_dot.c, choose_dot_pack.c, choose_dot_copies.c and choose_dot_order.c: a register tile while it is chosen. */
#ifndef DLC_PASSES_SCHEDULE_CHOOSE_DOT_H
#define DLC_PASSES_SCHEDULE_CHOOSE_DOT_H

#include "passes/schedule/choose.h"

typedef struct {
    dlc_chooser *c;
    uint32_t s;
    const dlc_stage *stage;
    dlc_ids order;        /* of the reduced axes, outer to inner */
    const char *a_name, *b_name; /* of copies */
    uint32_t rows_axis, columns_axis; /* flattened; rows: DLC_NO_AXIS when there is one */
    int64_t block;        /* columns that a unit, or a copy of B, spans */
    dlc_contraction form; /* swapped already */
    dlc_ids summed;       /* batches whose results the next stage adds up: loops within a unit */
    uint8_t swap, copy_a, copy_b;
    dlc_dot row;
    int64_t granule;      /* of it: points of the innermost reduced axis a step */
    uint8_t is_flipped;   /* a sign of A is changed, which costs registers */
    uint8_t is_widened;   /* A is bytes, which are copied as what the row multiplies */
    uint32_t part;        /* the axis that counts parts of factors, of which the form has the first; DLC_NO_AXIS: the row takes them whole */
    uint8_t rows_part, columns_part; /* the index that does */
    int64_t m, n;         /* the tile */
    uint8_t has_lines;    /* rows of a register, or in lanes of a tile, are of one line of an image, and a copy of A has the points of its
                           * windows once */
    int64_t row_block;    /* rows of a unit, tile by tile behind each panel of columns; 0: a unit has one tile of them */
    int64_t panel;        /* columns that B is packed or copied by */
    uint32_t width;
    double rows, columns, depth; /* assumed sizes of m, n, k */
} dlc_dot_choice;

/* What a tree of a dot is made of; loops over batches stand outermost. */
typedef enum { DLC_COLUMNS_ROWS, DLC_ROWS_COLUMNS, DLC_COLUMNS_COPY_ROWS } dlc_dot_loops;

/* The layout of a copy, as a list. */
typedef struct {
    dlc_copy_part parts[DLC_MAX_PARTS];
    uint32_t n;
} dlc_part_list;

/* The factor itself is an element of a buffer, always in bounds; NULL: it is not. */
const dlc_access_fact *dlc_dot_plain_load(const dlc_dot_choice *d, dlc_expr factor);
int dlc_dot_is_affine_in(const dlc_dot_choice *d, const dlc_access_fact *access, const dlc_ids *axes);
/* What is best for as many rows as are assumed is best: they are known, or usual and more than a few, of which it costs little to have room
 * for more of them. */
int dlc_dot_expects_rows(const dlc_dot_choice *d);
/* Read where it lies: an affine element; own: axes of its columns or rows. (A guarded one is copied: testing the border per element costs
 * registers.) */
int dlc_dot_is_direct(const dlc_dot_choice *d, dlc_expr factor, const dlc_ids *own);
int dlc_dot_is_constant_load(const dlc_dot_choice *d, dlc_expr factor);
/* The constant's element that the factor is, or that it converts, or the largest one of those that it is computed of, if that is done for
 * few rows: what is packed keeps its type. 0: it is none. */
dlc_expr dlc_dot_constant_of(const dlc_dot_choice *d, dlc_expr factor);
/* B is computed of constants; and in the tile, for few rows. */
int dlc_dot_is_computed(const dlc_dot_choice *d);
int dlc_dot_is_in_tile(const dlc_dot_choice *d);
/* Axes that the factor does not depend on have no part; false: there are too many. */
int dlc_dot_add_axes(const dlc_dot_choice *d, dlc_part_list *list, dlc_expr factor, const uint32_t *axes, uint32_t n);
/* batch (one that is added up: behind the panels), panels of n, K in the order of the reduction, n within the panel, then the granule.
 * Columns over several axes are one number of all, or all but the innermost are parts of their own. */
int dlc_dot_panel_parts(const dlc_dot_choice *d, dlc_expr element, int is_number, dlc_part_list *list);
/* Columns of a panel where one tile's rows meet a large constant: fewer than the tile's; else as they are. */
int64_t dlc_dot_panel_of_rows(const dlc_dot_choice *d);
/* The constants that B is made of are laid out by panels; false: B is not read so: it is made of others, lies otherwise, or is computed,
 * for more than a few rows, which read a copy of it. */
int dlc_dot_pack(dlc_dot_choice *d);
/* What stage `s` has of constants for each column and each of the batches that are added up, likewise; others stay as they lie. */
void dlc_dot_pack_behind(dlc_dot_choice *d, uint32_t s);
/* A short axis along which B is computed in a way of its own, such as the parts of a byte that codes are: it is written out, innermost. */
int dlc_dot_is_written_out(const dlc_dot_choice *d, uint32_t axis);
void dlc_dot_order_computed(const dlc_dot_choice *d, dlc_ids *order);
/* The same for a copy of B: axes that all constants depend on come first, which are their number; lanes stand behind these, so what a block
 * of codes has in common is read, and converted, once for all of it. All axes: lanes stand innermost. */
uint32_t dlc_dot_order_copied(const dlc_dot_choice *d, dlc_ids *order);

/* --- copies (choose_dot_copies.c): axes are as they were when one is added, and flat when its loops are built --- */

uint32_t dlc_dot_add_copy_a(const dlc_dot_choice *d);
uint32_t dlc_dot_add_copy_b(const dlc_dot_choice *d);
void dlc_dot_build_copy_a(const dlc_dot_choice *d, uint32_t copy);
void dlc_dot_build_copy_b(const dlc_dot_choice *d, uint32_t copy);

/* --- rows of an image (choose_dot_windows.c) --- */

/* Registers have rows of one line of an image each, which A's indices, as sums of rows' axes and reduced ones, leave at equal distances. m is
 * their tile then, and has_lines says so. */
int dlc_dot_takes_lines(dlc_dot_choice *d);
enum { DLC_LINES_SHARE = 4 }; /* of L2: lines that are copied in lanes take one in so many bytes at most */
/* The same in lanes, of rows that are copied: m is a line, or an equal part of it, at most as many rows as are given. */
int dlc_dot_shares_lines(dlc_dot_choice *d, int64_t most);
/* Axes that A's indices add up, where rows are of lines, by what counts the sums. */
void dlc_dot_in_windows(const dlc_dot_choice *d, dlc_ids *axes);
/* The image by lines; by points where rows are of one axis. */
typedef struct {
    int64_t step; /* from the line of a row to that of the next */
    double halo;  /* lines that windows reach beyond their first */
    double bytes; /* of a line, border included */
} dlc_dot_lines;
dlc_dot_lines dlc_dot_lines_of(const dlc_dot_choice *d);

/* The order of the loops, and the blocks of columns and rows that go with it (choose_dot_order.c). */
dlc_dot_loops dlc_dot_choose_order(dlc_dot_choice *d);
/* Points of K in a block, where sums go by blocks, and the columns and rows of a unit that go with them; 0: they go along all of it. */
int64_t dlc_dot_points_of_rows(dlc_dot_choice *d);
int64_t dlc_dot_points_of_copies(dlc_dot_choice *d); /* the same of copied rows */
int64_t dlc_dot_points_of_windows(dlc_dot_choice *d); /* and of an image's, in place */
int64_t dlc_dot_round_to(double value, int64_t multiple); /* up, and to one multiple at least */
double dlc_dot_count_of(double size, int64_t tile);       /* of tiles, the last one too */

#endif
