/*
 * The verifier of schedules: what passes it runs right. Everything it needs are affine forms and intervals. Each message is a
 * sentence about a stage or a loop, by the names the text has.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "ir/kernel/algebra.h"
#include "ir/schedule/resolve.h"
#include "ir/schedule/text.h"
#include "ir/schedule/verifier.h"

enum { MOST_LANES = 256, MOST_PARTIALS = 8, MOST_UNROLLED = 4096, MOST_WRITTEN_OUT = 1 << 16, MOST_ROWS = 64, MOST_VECTORS = 32 };

dlc_status dlc_verifier_fail(const dlc_verifier *v, const char *format, ...)
{
    va_list args;
    dlc_str text = {0};
    va_start(args, format);
    dlc_str_vprintf(&text, format, args);
    va_end(args);
    dlc_status status = dlc_diag_fail(v->diag, DLC_INVALID, v->kernel->name, "schedule: %s", dlc_str_text(&text));
    dlc_str_deinit(&text);
    return status;
}

static const dlc_stage *stage_at(const dlc_verifier *v, uint32_t s)
{
    return &v->kernel->stages.data[s];
}

static const char *axis_name(const dlc_verifier *v, uint32_t axis)
{
    return axis < v->kernel->axes.n ? v->kernel->axes.data[axis].name : "?";
}

const char *dlc_verifier_loop(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *node = dlc_verifier_node(v, n);
    return dlc_arena_printf(v->schedule->arena, "%s %s", dlc_loop_names[node->kind],
                            node->axis == DLC_NO_AXIS ? stage_at(v, node->stage)->name : axis_name(v, node->axis));
}

static uint32_t parent(const dlc_verifier *v, uint32_t n)
{
    return dlc_schedule_parent(v->schedule, n);
}

static int is_kind(const dlc_verifier *v, uint32_t n, dlc_loop_kind kind)
{
    return n != DLC_ROOT_NODE && dlc_verifier_node(v, n)->kind == kind;
}

/* The innermost node of the kind around n, or DLC_ROOT_NODE. */
static uint32_t around(const dlc_verifier *v, uint32_t n, dlc_loop_kind kind)
{
    do
        n = parent(v, n);
    while (n != DLC_ROOT_NODE && dlc_verifier_node(v, n)->kind != kind);
    return n;
}

/* --- loops --- */

/* All it holds is a lane's own sum, which takes its tiles. */
static int is_for_own(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, dlc_verifier_node(v, n)->end - 1);
    for (uint32_t i = n + 1; i < dlc_verifier_node(v, n)->end - 1; i++)
        if (dlc_verifier_node(v, i)->kind == DLC_LOOP_LEAF)
            return 0;
    return leaf->kind == DLC_LOOP_LEAF && leaf->own != DLC_DOT_NONE && leaf->over.data[0] == dlc_verifier_node(v, n)->axis;
}

/* A loop that is there for one fold, on a CPU: nothing in it outlives an iteration but the sum. */
static int is_fold_loop(const dlc_verifier *v, uint32_t n, uint32_t lanes)
{
    const dlc_schedule_node *loop = dlc_verifier_node(v, n), *leaf = dlc_verifier_node(v, loop->end - 1);
    const dlc_stage *stage = leaf->kind == DLC_LOOP_LEAF ? stage_at(v, leaf->stage) : NULL;
    int is_last = n + 1 == loop->end - 1 || (dlc_verifier_node(v, n + 1)->end == loop->end && dlc_verifier_node(v, n + 1)->kind != DLC_LOOP_LEAF);
    return v->schedule->target->kind == DLC_TARGET_CPU && (loop->kind == DLC_LOOP_FOR || loop->kind == DLC_LOOP_UNROLL) &&
           (loop->tile == 1 || is_for_own(v, n)) && stage && is_last && dlc_ids_find(&stage->reduce, loop->axis, NULL) &&
           !dlc_ids_find(&stage->reduce, dlc_verifier_node(v, lanes)->axis, NULL);
}

static dlc_status verify_lane(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *node = dlc_verifier_node(v, n);
    enum { WARP = 32 };
    int is_warp = v->schedule->target->kind == DLC_TARGET_CUDA && around(v, n, DLC_LOOP_THREAD) == DLC_ROOT_NODE;
    if (node->tile < 1 || node->tile > MOST_LANES || (node->tile & (node->tile - 1)))
        return dlc_verifier_fail(v, "%s: %" PRId64 " lanes are no power of two up to %d", dlc_verifier_loop(v, n), node->tile, MOST_LANES);
    if (is_warp && (node->tile % WARP || node->tile / WARP > 4))
        return dlc_verifier_fail(v, "%s: %" PRId64 " lanes are not 1, 2 or 4 to a thread of a warp", dlc_verifier_loop(v, n), node->tile);
    if (is_warp && node->tile / WARP != dlc_schedule_pack_of(v->schedule))
        return dlc_verifier_fail(v, "%s: %" PRId64 " lanes beside others of %u: a thread has as many of each", dlc_verifier_loop(v, n), node->tile,
                    WARP * dlc_schedule_pack_of(v->schedule));
    if (around(v, n, DLC_LOOP_LANE) != DLC_ROOT_NODE)
        return dlc_verifier_fail(v, "%s lies inside %s: lanes have no lanes", dlc_verifier_loop(v, n), dlc_verifier_loop(v, around(v, n, DLC_LOOP_LANE)));
    if (node->count < 1 || node->count > MOST_PARTIALS)
        return dlc_verifier_fail(v, "%s: %u vectors a step; 1 to %d are possible", dlc_verifier_loop(v, n), node->count, MOST_PARTIALS);
    for (uint32_t i = n + 1; i < node->end; i++) {
        const dlc_schedule_node *inner = dlc_verifier_node(v, i);
        if (node->count > 1 && inner->kind != DLC_LOOP_LEAF && !is_fold_loop(v, i, n))
            return dlc_verifier_fail(v, "%s: %u vectors a step hold stages and folds alone, no %s", dlc_verifier_loop(v, n), node->count, dlc_verifier_loop(v, i));
        if (inner->kind != DLC_LOOP_LEAF)
            continue;
        const dlc_stage *stage = stage_at(v, inner->stage);
        if (!dlc_ids_find(&stage->axes, node->axis, NULL) && !dlc_ids_find(&stage->reduce, node->axis, NULL))
            return dlc_verifier_fail(v, "%s: %s does not have this axis", dlc_verifier_loop(v, n), stage->name);
        if (inner->row != DLC_DOT_NONE)
            return dlc_verifier_fail(v, "%s: %s is a register tile, which has lanes of its own", dlc_verifier_loop(v, n), stage->name);
        if (!dlc_goes_by_lanes(v->schedule->target, v->kernel, stage, node->axis))
            return dlc_verifier_fail(v, "%s: %s stores at data indices, one element at a time", dlc_verifier_loop(v, n), stage->name);
    }
    return DLC_OK;
}

/* Tiles of one axis shrink inwards; lanes may be as many as the tile around them. */
static dlc_status verify_tile(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *node = dlc_verifier_node(v, n);
    uint32_t outer = dlc_schedule_loop_over(v->schedule, parent(v, n), node->axis);
    if (node->tile < 1 || node->tile > INT32_MAX)
        return dlc_verifier_fail(v, "%s:%" PRId64 " is no tile", dlc_verifier_loop(v, n), node->tile);
    if (outer != DLC_ROOT_NODE && node->tile >= dlc_verifier_node(v, outer)->tile + (node->kind == DLC_LOOP_LANE))
        return dlc_verifier_fail(v, "%s:%" PRId64 " is no part of %s:%" PRId64, dlc_verifier_loop(v, n), node->tile, dlc_verifier_loop(v, outer),
                    dlc_verifier_node(v, outer)->tile);
    if (outer != DLC_ROOT_NODE && dlc_verifier_node(v, outer)->kind == DLC_LOOP_LANE)
        return dlc_verifier_fail(v, "%s lies inside the lanes of its axis", dlc_verifier_loop(v, n));
    return DLC_OK;
}

static dlc_status verify_as(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *node = dlc_verifier_node(v, n);
    if (node->stage >= v->kernel->stages.n)
        return dlc_verifier_fail(v, "as: there is no such stage");
    for (uint32_t i = n + 1; i < node->end; i++)
        if (dlc_verifier_node(v, i)->kind != DLC_LOOP_LEAF)
            return dlc_verifier_fail(v, "%s holds stages alone, no %s", dlc_verifier_loop(v, n), dlc_verifier_loop(v, i));
    return DLC_OK;
}

/* Of a parallel loop: one around it over the same axis, or DLC_ROOT_NODE. */
static uint32_t same_par(const dlc_verifier *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (dlc_verifier_node(v, i)->axis == dlc_verifier_node(v, n)->axis)
            return i;
    return DLC_ROOT_NODE;
}

static int is_leading_par(const dlc_verifier *v, uint32_t n)
{
    for (uint32_t i = 0; i <= n; i++)
        if (dlc_verifier_node(v, i)->kind != DLC_LOOP_PAR || dlc_verifier_node(v, i)->end != v->schedule->nodes.n)
            return 0;
    return 1;
}

/* Copies of what the loop holds, with loops around that are written out, too; those have passed. */
static int64_t copies_of(const dlc_verifier *v, uint32_t n)
{
    int64_t copies = 1;
    for (; n != DLC_ROOT_NODE && copies <= MOST_UNROLLED; n = parent(v, n)) {
        if (dlc_verifier_node(v, n)->kind == DLC_LOOP_UNROLL)
            copies *= dlc_schedule_most_points(v->schedule, n);
    }
    return copies;
}

static dlc_status verify_loop(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *node = dlc_verifier_node(v, n);
    if (node->end == n + 1)
        return dlc_verifier_fail(v, "%s is empty", dlc_verifier_loop(v, n));
    if (node->kind == DLC_LOOP_AS)
        return verify_as(v, n);
    if (node->axis >= v->kernel->axes.n)
        return dlc_verifier_fail(v, "a loop has no axis");
    if (around(v, n, DLC_LOOP_AS) != DLC_ROOT_NODE)
        return dlc_verifier_fail(v, "%s lies inside a register tile", dlc_verifier_loop(v, n));
    if (node->kind == DLC_LOOP_PAR && !is_leading_par(v, n))
        return dlc_verifier_fail(v, "%s: parallel loops stand outermost, around everything", dlc_verifier_loop(v, n));
    if (node->kind == DLC_LOOP_PAR && same_par(v, n) != DLC_ROOT_NODE)
        return dlc_verifier_fail(v, "%s stands in %s: an axis is shared out among units once", dlc_verifier_loop(v, n),
                                 dlc_verifier_loop(v, same_par(v, n)));
    int64_t most = dlc_schedule_most_points(v->schedule, n);
    if (node->kind == DLC_LOOP_UNROLL && (most < 0 || most > MOST_UNROLLED))
        return dlc_verifier_fail(v, "%s: only loops of up to %d known iterations are written out", dlc_verifier_loop(v, n), MOST_UNROLLED);
    if (node->kind == DLC_LOOP_UNROLL && copies_of(v, n) > MOST_UNROLLED)
        return dlc_verifier_fail(v, "%s: with the loops around that are written out, more than %d iterations", dlc_verifier_loop(v, n), MOST_UNROLLED);
    if (node->kind == DLC_LOOP_UNROLL && node->tile != 1 && !is_for_own(v, n))
        return dlc_verifier_fail(v, "%s: what is written out goes point by point", dlc_verifier_loop(v, n));
    DLC_TRY(verify_tile(v, n));
    return node->kind == DLC_LOOP_LANE ? verify_lane(v, n) : DLC_OK;
}

/* --- leaves --- */

static dlc_status verify_open_axis(const dlc_verifier *v, uint32_t leaf, uint32_t axis)
{
    const char *name = stage_at(v, dlc_verifier_node(v, leaf)->stage)->name;
    uint32_t loop = dlc_schedule_loop_over(v->schedule, parent(v, leaf), axis);
    if (loop == DLC_ROOT_NODE)
        return dlc_verifier_fail(v, "%s: no loop over its axis %s", name, axis_name(v, axis));
    if (dlc_verifier_node(v, loop)->kind != DLC_LOOP_LANE && dlc_verifier_node(v, loop)->tile != 1)
        return dlc_verifier_fail(v, "%s: the tile %s:%" PRId64 " is left open", name, dlc_verifier_loop(v, loop), dlc_verifier_node(v, loop)->tile);
    return DLC_OK;
}

static dlc_status verify_par_of(const dlc_verifier *v, uint32_t leaf)
{
    const dlc_stage *stage = stage_at(v, dlc_verifier_node(v, leaf)->stage);
    for (uint32_t n = parent(v, leaf); n != DLC_ROOT_NODE; n = parent(v, n)) {
        uint32_t axis = dlc_verifier_node(v, n)->axis;
        if (dlc_verifier_node(v, n)->kind != DLC_LOOP_PAR)
            continue;
        if (dlc_ids_find(&stage->reduce, axis, NULL))
            return dlc_verifier_fail(v, "%s: %s is reduced over it", dlc_verifier_loop(v, n), stage->name);
        if (stage->update != DLC_UPDATE_NONE)
            return dlc_verifier_fail(v, "%s: %s stores at data indices, in order", dlc_verifier_loop(v, n), stage->name);
        if (stage->buffer != DLC_NO_BUFFER && !dlc_ids_find(&stage->axes, axis, NULL))
            return dlc_verifier_fail(v, "%s is stored by every iteration of %s", stage->name, dlc_verifier_loop(v, n));
    }
    return DLC_OK;
}

/* The whole of what a scatter changes is there before it runs. */
static dlc_status verify_changed(const dlc_verifier *v, uint32_t leaf)
{
    uint32_t s = dlc_verifier_node(v, leaf)->stage;
    for (uint32_t n = 0; n < v->schedule->nodes.n; n++) {
        const dlc_schedule_node *other = dlc_verifier_node(v, n);
        uint32_t outermost = n;
        if (other->kind != DLC_LOOP_LEAF || other->stage >= s || stage_at(v, other->stage)->buffer != stage_at(v, s)->buffer)
            continue;
        while (parent(v, outermost) != DLC_ROOT_NODE)
            outermost = parent(v, outermost);
        if (dlc_verifier_node(v, outermost)->end > leaf)
            return dlc_verifier_fail(v, "%s changes what %s has not stored yet", stage_at(v, s)->name, stage_at(v, other->stage)->name);
    }
    return DLC_OK;
}

/* Loops that repeat a scatter, or run it in another order than its axes, change what it stores. */
static dlc_status verify_scatter(const dlc_verifier *v, uint32_t leaf)
{
    const dlc_stage *stage = stage_at(v, dlc_verifier_node(v, leaf)->stage);
    uint32_t next = stage->axes.n;
    if (stage->update != DLC_UPDATE_NONE)
        DLC_TRY(verify_changed(v, leaf));
    for (uint32_t n = parent(v, leaf); n != DLC_ROOT_NODE && stage->update != DLC_UPDATE_NONE; n = parent(v, n)) {
        if (dlc_ids_find(&stage->reduce, dlc_verifier_node(v, n)->axis, NULL))
            continue;
        if (!next || stage->axes.data[next - 1] != dlc_verifier_node(v, n)->axis ||
            (dlc_verifier_node(v, n)->tile != 1 && dlc_verifier_node(v, n)->kind != DLC_LOOP_LANE))
            return dlc_verifier_fail(v, "%s stores at data indices: its loops run in the order of its axes, once", stage->name);
        next--;
    }
    return DLC_OK;
}

/* Rows are of one factor, columns of the other. */
static int has_roles(const dlc_contraction *form, const dlc_schedule_node *leaf)
{
    const dlc_ids *a = &form->m, *b = &form->n;
    if (dlc_ids_find(a, leaf->columns, NULL)) {
        a = &form->n;
        b = &form->m;
    }
    return dlc_ids_find(b, leaf->columns, NULL) && (leaf->rows == DLC_NO_AXIS || dlc_ids_find(a, leaf->rows, NULL));
}

/* The factors as the leaf's row takes them; false: it does not. */
static int find_operands(const dlc_verifier *v, uint32_t n, dlc_contraction *form, dlc_dot_operands *operands)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    int is_swapped = dlc_ids_find(&form->m, leaf->columns, NULL);
    return dlc_dot_takes((dlc_dot)leaf->row, v->kernel->pool, is_swapped ? form->b : form->a, is_swapped ? form->a : form->b,
                         stage_at(v, leaf->stage)->dtype[0], operands);
}

static const char *source_name(const dlc_verifier *v, dlc_expr load)
{
    dlc_source source = dlc_node_of(v->kernel->pool, load)->imm.id;
    uint32_t at = DLC_SOURCE_INDEX(source);
    return DLC_SOURCE_IS_STAGE(source) ? stage_at(v, at)->name : v->kernel->buffers.data[at].name;
}

/* What a row with granules loads: elements that are there, of memory. */
static dlc_status verify_granule_load(const dlc_verifier *v, uint32_t n, dlc_expr load)
{
    const char *name = stage_at(v, dlc_verifier_node(v, n)->stage)->name, *row = dlc_dots[dlc_verifier_node(v, n)->row].text;
    const dlc_expr_node *node = dlc_node_of(v->kernel->pool, load);
    if (node->op != DLC_EXPR_LOAD)
        return dlc_verifier_fail(v, "%s: %s loads its factors, and one is computed; copy it first", name, row);
    if (dlc_load_guard(v->kernel->pool, load) || node->flags)
        return dlc_verifier_fail(v, "%s: the load of %s is guarded; copy it first", name, source_name(v, load));
    return DLC_OK;
}

/* Types and the axis along which a row takes granules; where they lie is known only when homes are. */
static dlc_status verify_row(const dlc_verifier *v, uint32_t n, dlc_contraction *form)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    const dlc_stage *stage = stage_at(v, leaf->stage);
    const dlc_dot_info *row = &dlc_dots[leaf->row];
    dlc_dot_operands operands;
    int is_taken = find_operands(v, n, form, &operands);
    if (!is_taken && row->granule == 1)
        return dlc_verifier_fail(v, "%s: %s has no sums of %s", stage->name, row->text, dlc_dtypes[stage->dtype[0]].text);
    if (!is_taken && row->parts > 1)
        return dlc_verifier_fail(v, "%s: %s multiplies sums of three parts, f32(x[0, …]) + f32(x[1, …]) + f32(x[2, …]) of bf16, into f32",
                                 stage->name, row->text);
    if (!is_taken && row->granule > 1 && row->a == DLC_F32)
        return dlc_verifier_fail(v, "%s: %s multiplies factors that are cut to tf32: f32.bits(and(u32.bits(x), 4294959104))", stage->name,
                                 row->text);
    if (!is_taken)
        return dlc_verifier_fail(v, "%s: %s multiplies %s%s by %s into %s; rows are %s, columns %s, the sum %s", stage->name, row->text,
                    dlc_dot_widens((dlc_dot)leaf->row, DLC_U8) ? "bytes and " : "", dlc_dtypes[row->a].text, dlc_dtypes[row->b].text, dlc_dtypes[row->acc].text,
                    dlc_dtypes[dlc_node_of(v->kernel->pool, operands.rows)->dtype].text,
                    dlc_dtypes[dlc_node_of(v->kernel->pool, operands.columns)->dtype].text, dlc_dtypes[stage->dtype[0]].text);
    if (row->granule == 1)
        return DLC_OK;
    if (!leaf->over.n)
        return dlc_verifier_fail(v, "%s: %s runs over an axis by %u itself, and 'over' names none", stage->name, row->text, row->granule);
    uint32_t axis = leaf->over.data[leaf->over.n - 1], loop = dlc_schedule_loop_over(v->schedule, parent(v, n), axis);
    for (; loop != DLC_ROOT_NODE; loop = dlc_schedule_loop_over(v->schedule, parent(v, loop), axis))
        if (dlc_verifier_node(v, loop)->tile % row->granule)
            return dlc_verifier_fail(v, "%s: %s:%" PRId64 " is no multiple of the %u that %s takes at once", stage->name, dlc_verifier_loop(v, loop),
                        dlc_verifier_node(v, loop)->tile, row->granule, row->text);
    if (operands.mask && !dlc_dot_unpacks(v->kernel, &operands, leaf->columns, axis))
        return dlc_verifier_fail(v, "%s: %s takes codes of %s from the bytes that hold them, of all columns and %u neighbours from the same "
                                    "part; copy them first", stage->name, row->text, source_name(v, operands.columns), row->granule);
    DLC_TRY(verify_granule_load(v, n, operands.rows));
    return verify_granule_load(v, n, operands.columns);
}

/*
 * Values that a register tile keeps: accumulators, the vectors of a step, one of the rows, a product that is yet to be added; in tile
 * registers all that a step loads. Changed signs need as many sums of columns as there are vectors, ones and the sign.
 */
static int64_t registers_of(const dlc_verifier *v, uint32_t n, dlc_contraction *form, int64_t rows, int64_t vectors)
{
    dlc_dot_operands operands;
    int64_t registers = (rows == 1 ? vectors + 2 : rows * vectors + vectors + 1) + dlc_dots[dlc_verifier_node(v, n)->row].takes - 1;
    if (dlc_schedule_is_tile(v->schedule, n)) {
        int64_t high = rows / dlc_schedule_register_rows(v->schedule, n), wide = vectors * dlc_schedule_dot_lanes(v->schedule, n) / DLC_TILE_COLUMNS;
        return high * wide + high + wide;
    }
    return find_operands(v, n, form, &operands) && operands.is_flipped ? registers + vectors + 2 : registers;
}

static dlc_status verify_dot_tile(const dlc_verifier *v, uint32_t n, dlc_contraction *form)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    const dlc_stage *stage = stage_at(v, leaf->stage);
    const dlc_target *target = v->schedule->target;
    int64_t lanes = dlc_schedule_dot_lanes(v->schedule, n), rows = 1;
    uint32_t columns = dlc_schedule_columns(v->schedule, n), at = dlc_schedule_rows(v->schedule, n);
    if (columns == DLC_ROOT_NODE || (leaf->rows != DLC_NO_AXIS && at == DLC_ROOT_NODE))
        return dlc_verifier_fail(v, "%s: no loop leaves a tile of its %s open", stage->name, columns == DLC_ROOT_NODE ? "columns" : "rows");
    if (at != DLC_ROOT_NODE)
        rows = dlc_verifier_node(v, at)->tile;
    int64_t vectors = lanes ? dlc_verifier_node(v, columns)->tile / lanes : 0;
    if (lanes < (v->schedule->threads ? 1 : 2) || dlc_verifier_node(v, columns)->tile % lanes || vectors > MOST_VECTORS || rows > MOST_ROWS)
        return dlc_verifier_fail(v, "%s: a tile of %" PRId64 "x%" PRId64 " is no number of whole vectors of %" PRId64 " (at most %d rows, %d "
                    "vectors)", stage->name, rows, dlc_verifier_node(v, columns)->tile, lanes, MOST_ROWS, MOST_VECTORS);
    int is_matrix = dlc_schedule_is_matrix(v->schedule, n);
    if (is_matrix && (at == DLC_ROOT_NODE || rows % DLC_MATRIX || dlc_verifier_node(v, columns)->tile % DLC_MATRIX))
        return dlc_verifier_fail(v, "%s: a tile of %" PRId64 "x%" PRId64 " is no number of matrices of %dx%d", stage->name, rows,
                    dlc_verifier_node(v, columns)->tile, DLC_MATRIX, DLC_MATRIX);
    int is_tile = dlc_schedule_is_tile(v->schedule, n);
    if (is_tile && (at == DLC_ROOT_NODE || rows % dlc_schedule_register_rows(v->schedule, n) ||
                    dlc_verifier_node(v, columns)->tile % DLC_TILE_COLUMNS))
        return dlc_verifier_fail(v, "%s: a tile of %" PRId64 "x%" PRId64 " is no number of tile registers of up to %dx%d", stage->name, rows,
                    dlc_verifier_node(v, columns)->tile, DLC_TILE_ROWS, DLC_TILE_COLUMNS);
    if (is_tile && rows % DLC_TILE_ROWS && !dlc_schedule_has_whole_tiles(v->schedule, at))
        return dlc_verifier_fail(v, "%s: tile registers of %u rows need whole tiles of %" PRId64 ", and %s has others", stage->name,
                    dlc_schedule_register_rows(v->schedule, n), rows, axis_name(v, leaf->rows));
    int64_t registers = is_matrix ? dlc_matrix_registers(rows, dlc_verifier_node(v, columns)->tile)
                        : v->schedule->threads ? dlc_deals_registers(rows, dlc_verifier_node(v, columns)->tile)
                                             : registers_of(v, n, form, rows, vectors);
    uint32_t most = is_tile ? DLC_TILES : target->vector_registers;
    if (registers > most)
        return dlc_verifier_fail(v, "%s: a tile of %" PRId64 "x%" PRId64 " takes %" PRId64 " registers of %u", stage->name, rows,
                    dlc_verifier_node(v, columns)->tile, registers, most);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t loop = i ? at : columns;
        if (v->schedule->threads ? loop != DLC_ROOT_NODE && !is_kind(v, loop, is_matrix ? DLC_LOOP_WARP : DLC_LOOP_THREAD)
                                 : loop != DLC_ROOT_NODE && !is_kind(v, loop, DLC_LOOP_PAR) && !is_kind(v, loop, DLC_LOOP_FOR))
            return dlc_verifier_fail(v, "%s: %s leaves no tile to it", stage->name, dlc_verifier_loop(v, loop));
    }
    return DLC_OK;
}

static dlc_status verify_skipped(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    const char *name = stage_at(v, leaf->stage)->name;
    if (v->schedule->threads || dlc_dots[leaf->row].family != DLC_FAMILY_LANES)
        return dlc_verifier_fail(v, "%s: a tile of %s skips nothing", name, v->schedule->threads ? "a thread" : dlc_dots[leaf->row].text);
    if (leaf->nskipped == leaf->over.n)
        return dlc_verifier_fail(v, "%s skips all that it is over; the innermost axis has to stay", name);
    for (uint32_t i = 0; i < leaf->nskipped && leaf->part > 1; i++)
        if (leaf->over.data[i] == leaf->cut)
            return dlc_verifier_fail(v, "%s: partial sums have several points of %s, which cannot be skipped", name, axis_name(v, leaf->cut));
    if (!dlc_dot_inside(v->kernel, v->schedule, leaf, v->schedule->arena))
        return dlc_verifier_fail(v, "%s: its rows are no copy of what is padded with zeros there; nothing can be skipped", name);
    return DLC_OK;
}

static dlc_status verify_dot_axes(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    const dlc_stage *stage = stage_at(v, leaf->stage);
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (stage->axes.data[i] != leaf->rows && stage->axes.data[i] != leaf->columns)
            DLC_TRY(verify_open_axis(v, n, stage->axes.data[i]));
    if (leaf->part && (dlc_dots[leaf->row].granule > 1 || v->schedule->threads))
        return dlc_verifier_fail(v, "%s: %s has no partial sums over %s", stage->name,
                                 v->schedule->threads ? "a thread's tile" : dlc_dots[leaf->row].text, axis_name(v, leaf->cut));
    if (leaf->nskipped)
        DLC_TRY(verify_skipped(v, n));
    for (uint32_t i = 0; i < leaf->over.n; i++)
        if (!dlc_ids_find(&stage->reduce, leaf->over.data[i], NULL))
            return dlc_verifier_fail(v, "%s is not reduced over %s", stage->name, axis_name(v, leaf->over.data[i]));
    for (uint32_t i = 0; i < stage->reduce.n; i++) {
        uint32_t position = 0;
        if (!dlc_ids_find(&leaf->over, stage->reduce.data[i], &position))
            DLC_TRY(verify_open_axis(v, n, stage->reduce.data[i]));
        for (uint32_t j = position + 1; j < leaf->over.n; j++)
            if (leaf->over.data[j] == stage->reduce.data[i])
                return dlc_verifier_fail(v, "%s: over %s twice", stage->name, axis_name(v, leaf->over.data[j]));
        uint32_t loop = dlc_schedule_loop_over(v->schedule, parent(v, n), stage->reduce.data[i]);
        if (loop != DLC_ROOT_NODE && dlc_verifier_node(v, loop)->kind != DLC_LOOP_FOR)
            return dlc_verifier_fail(v, "%s: %s cuts its sum", stage->name, dlc_verifier_loop(v, loop));
    }
    return DLC_OK;
}

/* A loop around the leaf over an axis that its stage reduces, or DLC_ROOT_NODE. */
static uint32_t fold_of(const dlc_verifier *v, uint32_t leaf)
{
    const dlc_stage *stage = stage_at(v, dlc_verifier_node(v, leaf)->stage);
    for (uint32_t n = parent(v, leaf); n != DLC_ROOT_NODE; n = parent(v, n))
        if (dlc_ids_find(&stage->reduce, dlc_verifier_node(v, n)->axis, NULL))
            return n;
    return DLC_ROOT_NODE;
}

static dlc_status verify_dot(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    const dlc_stage *stage = stage_at(v, leaf->stage);
    dlc_contraction form;
    if (dlc_schedule_is_matrix(v->schedule, n) && !dlc_dot_fact(v->schedule->target, (dlc_dot)leaf->row))
        return dlc_verifier_fail(v, "%s: %s does not have %s", stage->name, v->schedule->target->name, dlc_dots[leaf->row].text);
    if (v->schedule->target->kind != DLC_TARGET_CPU && dlc_schedule_is_tile(v->schedule, n))
        return dlc_verifier_fail(v, "%s: %s does not have %s", stage->name, v->schedule->target->name, dlc_dots[leaf->row].text);
    if (v->schedule->target->kind != DLC_TARGET_CPU && !v->schedule->threads)
        return dlc_verifier_fail(v, "%s: %s has no register tiles but those of a thread", stage->name, v->schedule->target->name);
    if (!stage->reduce.n || !dlc_contraction_of(v->kernel, stage, v->schedule->arena, &form))
        return dlc_verifier_fail(v, "%s is no sum of products of two factors", stage->name);
    if (form.scale && fold_of(v, n) != DLC_ROOT_NODE && !v->schedule->threads)
        return dlc_verifier_fail(v, "%s: its sum is cut and has a factor outside of it", stage->name);
    if (!has_roles(&form, leaf))
        return dlc_verifier_fail(v, "%s: rows and columns are not of one factor each", stage->name);
    if (around(v, n, DLC_LOOP_AS) != DLC_ROOT_NODE)
        return dlc_verifier_fail(v, "%s: a register tile lies inside another", stage->name);
    DLC_TRY(verify_row(v, n, &form));
    DLC_TRY(verify_dot_tile(v, n, &form));
    return verify_dot_axes(v, n);
}

/* A map at the elements of the tile it lies in. */
static dlc_status verify_element(const dlc_verifier *v, uint32_t n, uint32_t as)
{
    const dlc_stage *stage = stage_at(v, dlc_verifier_node(v, n)->stage), *tile = stage_at(v, dlc_verifier_node(v, as)->stage);
    if (stage->combine != DLC_REDUCE_NONE || stage->update != DLC_UPDATE_NONE)
        return dlc_verifier_fail(v, "%s: %s is no map", dlc_verifier_loop(v, as), stage->name);
    if (stage->axes.n != tile->axes.n)
        return dlc_verifier_fail(v, "%s: %s has other axes", dlc_verifier_loop(v, as), stage->name);
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (!dlc_ids_find(&tile->axes, stage->axes.data[i], NULL))
            return dlc_verifier_fail(v, "%s: %s does not have its axis %s", dlc_verifier_loop(v, as), tile->name,
                        axis_name(v, stage->axes.data[i]));
    return DLC_OK;
}

/* Vectors, of registers, that the leaf is computed by at once. */
static int64_t vectors_at(const dlc_verifier *v, uint32_t n)
{
    uint32_t lane = around(v, n, DLC_LOOP_LANE);
    const dlc_stage *stage = stage_at(v, dlc_verifier_node(v, n)->stage);
    if (lane == DLC_ROOT_NODE || v->schedule->target->kind == DLC_TARGET_CUDA)
        return 1;
    int64_t bytes = dlc_verifier_node(v, lane)->tile * dlc_dtype_bytes(stage->dtype[0]), whole = v->schedule->target->vector_bytes;
    return bytes > whole ? bytes / whole : 1;
}

/* What is written out too often takes a compiler minutes, and memory without end. */
static dlc_status verify_written_out(const dlc_verifier *v, uint32_t n)
{
    const dlc_stage *stage = stage_at(v, dlc_verifier_node(v, n)->stage);
    int64_t copies = copies_of(v, parent(v, n)) * vectors_at(v, n), nodes = 0;
    if (copies <= MOST_WRITTEN_OUT / MOST_UNROLLED)
        return DLC_OK;
    const uint8_t *marks = dlc_stage_marks(v->kernel, stage, v->schedule->arena);
    for (dlc_expr e = 1; e < v->kernel->pool->nodes.n; e++)
        nodes += marks[e];
    if (copies * nodes > MOST_WRITTEN_OUT)
        return dlc_verifier_fail(v, "%s: its loops write out %" PRId64 " operations; %d are the most", stage->name, copies * nodes,
                                 MOST_WRITTEN_OUT);
    return DLC_OK;
}

/* Each lane's own sum of the granule that a loop leaves open. */
static dlc_status verify_own_dot(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    const dlc_stage *stage = stage_at(v, leaf->stage);
    const dlc_dot_info *row = &dlc_dots[leaf->own];
    uint32_t lane = around(v, n, DLC_LOOP_LANE), axis = leaf->over.data[0], loop = dlc_schedule_loop_over(v->schedule, parent(v, n), axis);
    dlc_dot_operands operands;
    if (v->schedule->target->kind != DLC_TARGET_CPU || lane == DLC_ROOT_NODE || dlc_ids_find(&stage->reduce, dlc_verifier_node(v, lane)->axis, NULL))
        return dlc_verifier_fail(v, "%s: %s without rows and columns is each lane's own sum, in lanes that it is not reduced along, on CPUs",
                                 stage->name, row->text);
    if (leaf->ahead)
        return dlc_verifier_fail(v, "%s: %s without rows and columns reads nothing ahead", stage->name, row->text);
    if (!dlc_dot_takes_own((dlc_dot)leaf->own, v->kernel->pool, stage, stage->value[0], &operands))
        return dlc_verifier_fail(v, "%s: lanes add up by %s products of %s and %s, under casts to %s", stage->name, row->text,
                                 dlc_dtypes[row->a].text, dlc_dtypes[row->b].text, dlc_dtypes[row->acc].text);
    if (!dlc_ids_find(&stage->reduce, axis, NULL))
        return dlc_verifier_fail(v, "%s is not reduced over %s", stage->name, axis_name(v, axis));
    if (loop == DLC_ROOT_NODE || dlc_verifier_node(v, loop)->kind != DLC_LOOP_UNROLL || dlc_verifier_node(v, loop)->tile != row->granule)
        return dlc_verifier_fail(v, "%s: %s takes %u points of %s, and no loop 'unroll %s:%u' around it leaves them open", stage->name, row->text,
                                 row->granule, axis_name(v, axis), axis_name(v, axis), row->granule);
    if (dlc_schedule_loop_over(v->schedule, parent(v, loop), axis) != DLC_ROOT_NODE)
        return dlc_verifier_fail(v, "%s: %s stands in another loop over its axis; what %s takes goes over all of it", stage->name,
                                 dlc_verifier_loop(v, loop), row->text);
    return DLC_OK;
}

static dlc_status verify_leaf(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    uint32_t as = around(v, n, DLC_LOOP_AS);
    if (leaf->stage >= v->kernel->stages.n)
        return dlc_verifier_fail(v, "a leaf is no stage");
    const dlc_stage *stage = stage_at(v, leaf->stage);
    DLC_TRY(verify_par_of(v, n));
    DLC_TRY(verify_scatter(v, n));
    DLC_TRY(verify_written_out(v, n));
    if (leaf->place == DLC_PLACE_BUFFER && stage->buffer == DLC_NO_BUFFER)
        return dlc_verifier_fail(v, "%s is not stored and has no place", stage->name);
    if (leaf->nontemporal && (stage->buffer == DLC_NO_BUFFER || dlc_is_updated(v->kernel, stage->buffer)))
        return dlc_verifier_fail(v, "%s is not stored once and for all: it cannot be nontemporal", stage->name);
    if (leaf->nontemporal && v->schedule->target->kind == DLC_TARGET_CUDA)
        return dlc_verifier_fail(v, "%s: %s has no nontemporal stores", stage->name, v->schedule->target->name);
    if (leaf->row != DLC_DOT_NONE)
        return verify_dot(v, n);
    if (leaf->ahead && !v->schedule->threads && dlc_schedule_ahead_loop(v->schedule, n) == DLC_ROOT_NODE)
        return dlc_verifier_fail(v, "%s: there is no loop around lanes of it or rows of its tile over which it could read ahead", stage->name);
    if (as != DLC_ROOT_NODE)
        return verify_element(v, n, as); /* a map: no sum of its own */
    for (uint32_t i = 0; i < stage->axes.n; i++)
        DLC_TRY(verify_open_axis(v, n, stage->axes.data[i]));
    if (leaf->own != DLC_DOT_NONE)
        DLC_TRY(verify_own_dot(v, n));
    for (uint32_t i = 0; i < stage->reduce.n; i++)
        if (leaf->own == DLC_DOT_NONE || stage->reduce.data[i] != leaf->over.data[0])
            DLC_TRY(verify_open_axis(v, n, stage->reduce.data[i]));
    return DLC_OK;
}

static dlc_status verify_once(const dlc_verifier *v)
{
    uint8_t *seen = dlc_new_array(v->schedule->arena, uint8_t, v->kernel->stages.n + 1);
    for (uint32_t n = 0; n < v->schedule->nodes.n; n++)
        if (dlc_verifier_node(v, n)->kind == DLC_LOOP_LEAF && dlc_verifier_node(v, n)->stage < v->kernel->stages.n &&
            seen[dlc_verifier_node(v, n)->stage]++)
            return dlc_verifier_fail(v, "%s is computed twice", stage_at(v, dlc_verifier_node(v, n)->stage)->name);
    for (uint32_t s = 0; s < v->kernel->stages.n; s++)
        if (!seen[s])
            return dlc_verifier_fail(v, "%s is computed nowhere", stage_at(v, s)->name);
    return DLC_OK;
}

dlc_status dlc_schedule_verify_tree(dlc_schedule *schedule, dlc_diag *diag)
{
    dlc_verifier v = {.schedule = schedule, .kernel = schedule->kernel, .diag = diag};
    DLC_TRY(verify_once(&v));
    for (uint32_t n = 0; n < schedule->nodes.n; n++)
        DLC_TRY(dlc_verifier_node(&v, n)->kind == DLC_LOOP_LEAF ? verify_leaf(&v, n) : verify_loop(&v, n));
    return DLC_OK;
}

/* --- order --- */

/* The serial loop in which the read is of an earlier iteration, or DLC_ROOT_NODE. */
static uint32_t recurring_loop(const dlc_verifier *v, const dlc_read *read)
{
    const dlc_ids *axes = &stage_at(v, read->source)->axes;
    const dlc_home *home = &v->schedule->homes[read->source], *reader = &v->schedule->homes[read->reader];
    for (uint32_t i = 0; i < axes->n; i++) {
        if (dlc_read_distance(v->kernel, read, i) < 1)
            continue;
        uint32_t loop = dlc_schedule_loop_over(v->schedule, parent(v, home->leaf), axes->data[i]);
        while (loop != DLC_ROOT_NODE && !dlc_schedule_is_inside(v->schedule, reader->leaf, loop))
            loop = DLC_ROOT_NODE;
        if (is_kind(v, loop, DLC_LOOP_FOR) && dlc_verifier_node(v, loop)->tile == 1)
            return loop;
    }
    return DLC_ROOT_NODE;
}

/* Producers stand before their readers, but for what is read of earlier iterations of a serial loop. */
static dlc_status verify_order(const dlc_verifier *v, const dlc_read *read)
{
    const dlc_home *home = &v->schedule->homes[read->source], *reader = &v->schedule->homes[read->reader];
    const char *name = stage_at(v, read->source)->name, *by = stage_at(v, read->reader)->name;
    int is_before = home->leaf < reader->leaf;
    if (!is_before || read->source == read->reader) {
        uint32_t loop = recurring_loop(v, read);
        if (loop == DLC_ROOT_NODE)
            return dlc_verifier_fail(v, "%s is read by %s before it is computed", name, by);
        for (uint32_t n = parent(v, home->leaf); n != loop; n = parent(v, n))
            if (is_kind(v, n, DLC_LOOP_LANE) && dlc_verifier_node(v, n)->axis == dlc_verifier_node(v, loop)->axis)
                return dlc_verifier_fail(v, "%s: %s is read at earlier points of it", dlc_verifier_loop(v, n), name);
        return DLC_OK;
    }
    if (home->fold != DLC_ROOT_NODE && dlc_schedule_is_inside(v->schedule, reader->leaf, home->fold))
        return dlc_verifier_fail(v, "%s reads %s inside %s that reduces it", by, name, dlc_verifier_loop(v, home->fold));
    return DLC_OK;
}

/* What is computed under an axis that has a loop around both, is read at the point it was computed for. */
static dlc_status verify_points(const dlc_verifier *v, const dlc_read *read)
{
    const dlc_stage *source = stage_at(v, read->source);
    const dlc_home *home = &v->schedule->homes[read->source];
    uint32_t reader = v->schedule->homes[read->reader].leaf, recurring = recurring_loop(v, read);
    for (uint32_t i = 0; i < source->axes.n; i++) {
        uint32_t loop = dlc_schedule_loop_over(v->schedule, parent(v, home->leaf), source->axes.data[i]);
        if (dlc_read_is_own(v->kernel, read, i))
            continue;
        for (; loop != DLC_ROOT_NODE; loop = dlc_schedule_loop_over(v->schedule, parent(v, loop), source->axes.data[i])) {
            int is_past = recurring != DLC_ROOT_NODE && loop > recurring; /* all of an earlier iteration is there */
            if (!dlc_schedule_is_inside(v->schedule, reader, loop) || is_past)
                continue;
            if (is_kind(v, loop, DLC_LOOP_PAR) || is_kind(v, loop, DLC_LOOP_WARP) || is_kind(v, loop, DLC_LOOP_THREAD))
                return dlc_verifier_fail(v, "%s: %s is read at other points of it", dlc_verifier_loop(v, loop), source->name);
            if (dlc_read_distance(v->kernel, read, i) < 1)
                return dlc_verifier_fail(v, "%s is read by %s at another point of %s, not yet computed", source->name,
                            stage_at(v, read->reader)->name, dlc_verifier_loop(v, loop));
            if (is_kind(v, loop, DLC_LOOP_LANE))
                return dlc_verifier_fail(v, "%s: %s is read at earlier points of it", dlc_verifier_loop(v, loop), source->name);
        }
    }
    return DLC_OK;
}

/* The node whose iterations a value in a register lives in. */
static uint32_t value_node(const dlc_verifier *v, uint32_t s)
{
    const dlc_home *home = &v->schedule->homes[s];
    return parent(v, home->fold == DLC_ROOT_NODE ? home->leaf : home->fold);
}

static dlc_status verify_tile_reader(const dlc_verifier *v, const dlc_read *read)
{
    uint32_t leaf = v->schedule->homes[read->source].leaf, as = around(v, v->schedule->homes[read->reader].leaf, DLC_LOOP_AS);
    const char *name = stage_at(v, read->source)->name;
    if (as == DLC_ROOT_NODE || dlc_verifier_node(v, as)->stage != read->source)
        return dlc_verifier_fail(v, "%s in reg is read by %s outside of 'as %s'", name, stage_at(v, read->reader)->name, name);
    if (as < leaf || (v->schedule->threads ? !dlc_deals_are_equal(v->schedule, leaf, as) : parent(v, as) != parent(v, leaf)))
        return dlc_verifier_fail(v, "as %s does not follow it in the same loop", name);
    return DLC_OK;
}

static dlc_status verify_reg(const dlc_verifier *v, const dlc_read *read)
{
    uint32_t node = value_node(v, read->source), reader = v->schedule->homes[read->reader].leaf;
    const dlc_stage *source = stage_at(v, read->source);
    const char *by = stage_at(v, read->reader)->name;
    for (uint32_t i = 0; i < source->axes.n; i++)
        if (!dlc_read_is_own(v->kernel, read, i))
            return dlc_verifier_fail(v, "%s in reg is read by %s at another point of %s", source->name, by,
                        axis_name(v, source->axes.data[i]));
    if (dlc_load_guard(v->kernel->pool, read->load))
        return dlc_verifier_fail(v, "%s in reg is read by %s under a guard", source->name, by);
    if (dlc_verifier_node(v, v->schedule->homes[read->source].leaf)->row != DLC_DOT_NONE)
        return verify_tile_reader(v, read);
    if (!dlc_schedule_is_inside(v->schedule, reader, node))
        return dlc_verifier_fail(v, "%s in reg is read by %s outside of %s", source->name, by, dlc_verifier_loop(v, node));
    return DLC_OK;
}

static dlc_status verify_memory_reader(const dlc_verifier *v, const dlc_read *read)
{
    const dlc_stage *source = stage_at(v, read->source);
    const char *by = stage_at(v, read->reader)->name;
    if (dlc_reduces[source->combine].naccs > 1)
        return dlc_verifier_fail(v, "the index that %s finds is needed whole by %s", source->name, by);
    if (dlc_node_of(v->kernel->pool, read->load)->flags & DLC_LOAD_CHECKED)
        return dlc_verifier_fail(v, "%s is read by %s at an index that depends on data", source->name, by);
    if (source->axes.n > DLC_MAX_RANK)
        return dlc_verifier_fail(v, "%s has %u axes; memory has %d dimensions", source->name, source->axes.n, DLC_MAX_RANK);
    return DLC_OK;
}

static dlc_status verify_fold(const dlc_verifier *v, uint32_t s)
{
    const dlc_home *home = &v->schedule->homes[s];
    const dlc_stage *stage = stage_at(v, s);
    const dlc_schedule_node *leaf = dlc_verifier_node(v, home->leaf);
    if (home->fold == DLC_ROOT_NODE)
        return DLC_OK;
    int is_dot = leaf->row != DLC_DOT_NONE;
    if (is_dot && v->schedule->threads) /* verify_deal.c */
        return DLC_OK;
    if (is_dot && leaf->place != DLC_PLACE_SCRATCH)
        return dlc_verifier_fail(v, "%s: its sum is cut by %s and must be in scratch", stage->name, dlc_verifier_loop(v, home->fold));
    for (uint32_t n = parent(v, home->leaf); n != home->fold; n = parent(v, n)) /* a dot's tiles wait in scratch for their turn */
        if (!dlc_ids_find(&stage->reduce, dlc_verifier_node(v, n)->axis, NULL) &&
            !(is_dot && dlc_ids_find(&stage->axes, dlc_verifier_node(v, n)->axis, NULL)))
            return dlc_verifier_fail(v, "%s: %s is opened inside %s that reduces it", stage->name, dlc_verifier_loop(v, n),
                        dlc_verifier_loop(v, home->fold));
    return DLC_OK;
}

dlc_status dlc_schedule_verify_reads(dlc_schedule *schedule, const dlc_reads *reads, dlc_diag *diag)
{
    dlc_verifier v = {.schedule = schedule, .kernel = schedule->kernel, .reads = reads, .diag = diag};
    for (uint32_t s = 0; s < v.kernel->stages.n; s++)
        DLC_TRY(verify_fold(&v, s));
    for (uint32_t i = 0; i < reads->n; i++) {
        const dlc_read *read = &reads->data[i];
        DLC_TRY(verify_order(&v, read));
        DLC_TRY(verify_points(&v, read));
        DLC_TRY(schedule->homes[read->source].place == DLC_PLACE_REG ? verify_reg(&v, read) : verify_memory_reader(&v, read));
    }
    for (uint32_t n = 0; n < schedule->nodes.n; n++) {
        uint32_t leaf = is_kind(&v, n, DLC_LOOP_AS) ? schedule->homes[dlc_verifier_node(&v, n)->stage].leaf : 0;
        if (!is_kind(&v, n, DLC_LOOP_AS))
            continue;
        int is_same = schedule->threads ? dlc_deals_are_equal(schedule, leaf, n) : parent(&v, n) == parent(&v, leaf);
        if (dlc_verifier_node(&v, leaf)->row == DLC_DOT_NONE || dlc_verifier_node(&v, leaf)->place != DLC_PLACE_REG || !is_same || n < leaf)
            return dlc_verifier_fail(&v, "%s: %s is no register tile in the same loop", dlc_verifier_loop(&v, n),
                        stage_at(&v, dlc_verifier_node(&v, n)->stage)->name);
    }
    return DLC_OK;
}

/* --- memory --- */

/* Both factors of a row with granules lie as it loads them. */
static dlc_status verify_granules(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    dlc_contraction form;
    dlc_dot_operands operands;
    if (leaf->kind != DLC_LOOP_LEAF || leaf->row == DLC_DOT_NONE || dlc_dots[leaf->row].granule == 1 ||
        dlc_schedule_is_matrix(v->schedule, n) ||
        !dlc_contraction_of(v->kernel, stage_at(v, leaf->stage), v->schedule->arena, &form) ||
        !find_operands(v, n, &form, &operands))
        return DLC_OK;
    const char *name = stage_at(v, leaf->stage)->name, *axis = axis_name(v, leaf->over.data[leaf->over.n - 1]);
    int is_tile = dlc_schedule_is_tile(v->schedule, n);
    if (!dlc_dot_has_granules(v->schedule, n, operands.rows, 0))
        return dlc_verifier_fail(v, "%s: %s must have %u elements of %s together%s", name, source_name(v, operands.rows),
                    is_tile ? DLC_TILE_BYTES / 4u * dlc_dots[leaf->row].granule : dlc_dots[leaf->row].granule, axis,
                    is_tile ? ", and rows at equal distances" : "");
    if (!dlc_dot_has_granules(v->schedule, n, operands.columns, 1))
        return dlc_verifier_fail(v, "%s: %s must have %u elements of %s together and then %s", name, source_name(v, operands.columns),
                    dlc_dots[leaf->row].granule, axis, axis_name(v, leaf->columns));
    return DLC_OK;
}

dlc_status dlc_schedule_verify_places(dlc_schedule *schedule, const dlc_reads *reads, dlc_diag *diag)
{
    enum { MOST_MIB = 256 };
    dlc_verifier v = {.schedule = schedule, .kernel = schedule->kernel, .reads = reads, .diag = diag};
    int64_t bytes, most = (int64_t)MOST_MIB << 20;
    for (uint32_t s = 0; s < v.kernel->stages.n; s++) {
        const dlc_home *home = &schedule->homes[s];
        if (home->place == DLC_PLACE_OUTPUT && home->stored == DLC_NO_STAGE)
            return dlc_verifier_fail(&v, "%s in output: no map that is the last to read it, at its own points, stores the same type there",
                                     stage_at(&v, s)->name);
        for (uint32_t n = parent(&v, home->leaf); n != home->at && n != DLC_ROOT_NODE; n = parent(&v, n))
            if (home->is_read && is_kind(&v, n, DLC_LOOP_PAR))
                return dlc_verifier_fail(&v, "%s is made under %s and read outside of it", stage_at(&v, s)->name, dlc_verifier_loop(&v, n));
    }
    for (uint32_t n = 0; n < schedule->nodes.n; n++)
        DLC_TRY(verify_granules(&v, n));
    if (schedule->target->kind == DLC_TARGET_CUDA)
        most = schedule->target->scratch_bytes;
    if (dlc_expr_is_int(v.kernel->pool, schedule->scratch, &bytes) && bytes > most)
        return dlc_verifier_fail(&v, "scratch: %" PRId64 " bytes, %s has %" PRId64, bytes, schedule->target->name, most);
    return DLC_OK;
}
