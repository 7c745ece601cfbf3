/*
 * A register tile that the lanes of a warp hold as matrices (dot.def: family WARP), of 16 rows and 16 columns each:
 *
 *     for k by 16: a = matrices of the rows' copy, b = of the columns';  sums += a * b     (of f16; of tf32 8, of bytes 32)
 *
 * Lane l has of every 8 rows row l / 4, of every 8 columns columns 2 (l mod 4) and the next: as rows and vectors of a tile of its own,
 * over which everything behind it runs as over a thread's.
 */
#include "codegen/nest.h"

enum { WARP = 32, REGISTERS = 4 /* of four matrices of 8 x 8 */ };

static dlc_expr lane_of(const dlc_nest *nest)
{
    return dlc_mod(nest->kernel->pool, dlc_expr_axis(nest->kernel->pool, nest->worker[0]), dlc_expr_i64(nest->kernel->pool, WARP));
}

static dlc_expr quotient(const dlc_nest *nest, dlc_expr value, int64_t by)
{
    return dlc_floordiv(nest->kernel->pool, value, dlc_expr_i64(nest->kernel->pool, by));
}

static dlc_expr remainder_of(const dlc_nest *nest, dlc_expr value, int64_t by)
{
    return dlc_mod(nest->kernel->pool, value, dlc_expr_i64(nest->kernel->pool, by));
}

static dlc_expr simplified(dlc_nest *nest, dlc_expr expr)
{
    return dlc_expr_simplify(nest->kernel->pool, expr, &nest->ranges);
}

void dlc_matrix_open(dlc_nest *nest, dlc_expr first, int is_columns, dlc_register_axis *open)
{
    enum { LANES_OF_ROW = 4, NEIGHBOURS = 2 };
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr lane = lane_of(nest);
    if (is_columns) {
        open->first = simplified(nest, dlc_add(pool, first, dlc_muli(pool, remainder_of(nest, lane, LANES_OF_ROW), NEIGHBOURS)));
        return;
    }
    dlc_expr own = dlc_add(pool, first, quotient(nest, lane, LANES_OF_ROW));
    for (uint32_t r = 0; r < open->n; r++)
        open->points[r] = simplified(nest, dlc_addi(pool, own, (int64_t)r * DLC_FRAGMENT));
}

typedef struct {
    uint32_t own;    /* the axis beside K */
    dlc_expr load;
    int is_along_k;  /* neighbours in memory are neighbours in K */
    int is_columns;
    int64_t depth;   /* of a matrix: 32 bytes of K */
} factor;

static factor factor_of(const dlc_nest *nest, dlc_expr load, uint32_t own, int is_columns, int64_t depth)
{
    const dlc_expr_node *node = dlc_node_of(nest->kernel->pool, load);
    uint32_t s = DLC_SOURCE_INDEX(node->imm.id), position;
    factor f = {own, load, 1, is_columns, depth};
    if (dlc_ids_find(&nest->kernel->stages.data[s].axes, own, &position))
        f.is_along_k = nest->schedule->homes[s].stride[position] != dlc_expr_i64(nest->kernel->pool, 1);
    return f;
}

/*
 * The 16 x `depth` elements from (first, k) on. In memory they are rows along the axis of neighbours; the row that lane l names, and where in
 * it, is such that the registers come in the order in which the instruction takes them: of A by rows first, of B by K first.
 */
static void load_matrix(dlc_nest *nest, const factor *f, uint32_t axis, dlc_expr k, dlc_expr first, dlc_val *result)
{
    dlc_pool *pool = nest->kernel->pool;
    dlc_expr lane = lane_of(nest), *with = dlc_new_array(nest->arena, dlc_expr, nest->axes.n);
    int rows_first = f->is_along_k != f->is_columns; /* the second matrix is the rows behind, or what lies behind in the same rows */
    dlc_expr row = rows_first ? remainder_of(nest, lane, DLC_MATRIX)
                              : dlc_add(pool, remainder_of(nest, lane, DLC_FRAGMENT),
                                        dlc_muli(pool, quotient(nest, lane, DLC_MATRIX), DLC_FRAGMENT));
    dlc_expr within = rows_first ? quotient(nest, lane, DLC_MATRIX) : remainder_of(nest, quotient(nest, lane, DLC_FRAGMENT), 2);
    within = dlc_muli(pool, within, f->is_along_k ? f->depth / 2 : DLC_FRAGMENT);
    with[f->own] = dlc_add(pool, first, f->is_along_k ? row : within);
    with[axis] = dlc_add(pool, k, f->is_along_k ? within : row);
    dlc_expr load = simplified(nest, dlc_expr_substitute(pool, f->load, with, nest->axes.n));
    dlc_nest_matrices(nest, load, !f->is_along_k, result);
}

static void multiply_step(dlc_nest *nest, const dlc_schedule_node *leaf, const factor *rows, const factor *columns, dlc_expr k)
{
    const dlc_stage_state *state = &nest->states[leaf->stage];
    uint32_t axis = leaf->over.data[0], nrows = state->nrows * DLC_FRAGMENT / DLC_MATRIX;
    uint32_t ncolumns = state->nvectors * DLC_FRAGMENT / DLC_MATRIX;
    dlc_val a[DLC_MAX_ROWS][REGISTERS], b[REGISTERS];
    for (uint32_t r = 0; r < nrows; r++)
        load_matrix(nest, rows, axis, k, dlc_addi(nest->kernel->pool, nest->tiles[leaf->rows].first, (int64_t)r * DLC_MATRIX), a[r]);
    for (uint32_t c = 0; c < ncolumns; c++) {
        load_matrix(nest, columns, axis, k, dlc_addi(nest->kernel->pool, nest->tiles[leaf->columns].first, (int64_t)c * DLC_MATRIX), b);
        for (uint32_t r = 0; r < nrows; r++)
            for (uint32_t half = 0; half < 2; half++) {
                dlc_var *top = &state->tile[2 * r * state->nvectors + 2 * c + half];
                nest->emit->multiply(nest->emit, (dlc_dot)leaf->row, a[r], &b[2 * half], top[0], top[state->nvectors]);
            }
    }
}

void dlc_matrix_multiply(dlc_nest *nest, uint32_t n, dlc_expr rows, dlc_expr columns)
{
    const dlc_schedule_node *leaf = &nest->schedule->nodes.data[n];
    dlc_pool *pool = nest->kernel->pool;
    uint32_t axis = leaf->over.data[0], loop = dlc_schedule_loop_over(nest->schedule, n, axis);
    dlc_expr first = nest->tiles[axis].last ? nest->tiles[axis].first : dlc_expr_i64(pool, 0);
    dlc_expr size = nest->tiles[axis].last ? dlc_expr_i64(pool, nest->schedule->nodes.data[loop].tile) : nest->kernel->axes.data[axis].extent;
    int64_t depth = dlc_dots[leaf->row].granule;
    factor left = factor_of(nest, rows, leaf->rows, 0, depth), right = factor_of(nest, columns, leaf->columns, 1, depth);
    uint32_t step = dlc_nest_stepped_axis(nest, size, depth);
    dlc_nest_loop(nest, step, dlc_nest_i64(nest, 0), dlc_nest_uniform(nest, size), depth);
    multiply_step(nest, leaf, &left, &right, dlc_add(pool, first, dlc_expr_axis(pool, step)));
    dlc_nest_loop_end(nest);
}
