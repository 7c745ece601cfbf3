/*
 * The verifier of dealt loops: what threads of a block do at the same time cannot wait for each other inside of a deal, what a
 * register tile reads of others is in shared memory, and a thread keeps its tile from deal to deal only if both deal alike.
 */
#include <inttypes.h>

#include "base/str.h"
#include "ir/kernel/algebra.h"
#include "ir/schedule/resolve.h"
#include "ir/schedule/text.h"
#include "ir/schedule/verifier.h"

enum { WARP = 32, MOST_THREADS = 1024, ACCESS_BYTES = 16, MOST_LANES = 4 };

static const dlc_stage *stage_of(const dlc_verifier *v, uint32_t leaf)
{
    return &v->kernel->stages.data[dlc_verifier_node(v, leaf)->stage];
}

static uint32_t parent(const dlc_verifier *v, uint32_t n)
{
    return dlc_schedule_parent(v->schedule, n);
}

static int is_kind(const dlc_verifier *v, uint32_t n, dlc_loop_kind kind)
{
    return n != DLC_ROOT_NODE && dlc_verifier_node(v, n)->kind == kind;
}

static int is_dealt(const dlc_verifier *v, uint32_t n)
{
    return is_kind(v, n, DLC_LOOP_WARP) || is_kind(v, n, DLC_LOOP_THREAD);
}

/* The innermost dealt loop around n, or DLC_ROOT_NODE. */
static uint32_t dealt_around(const dlc_verifier *v, uint32_t n)
{
    return dlc_schedule_deal_around(v->schedule, parent(v, n));
}

int64_t dlc_deals_registers(int64_t rows, int64_t columns)
{
    enum { OTHERS = 40 }; /* addresses, counters, what is loaded ahead */
    return rows * columns + rows + columns + OTHERS;
}

int64_t dlc_matrix_registers(int64_t rows, int64_t columns)
{
    return rows * columns / WARP + rows / DLC_MATRIX * 4 + columns / DLC_FRAGMENT * 2 + dlc_deals_registers(0, 0);
}

/* --- the tree --- */

static dlc_status verify_dealt_loop(const dlc_verifier *v, uint32_t n)
{
    uint32_t outer = dlc_schedule_deal(v->schedule, n), around = parent(v, outer);
    if (!v->schedule->threads)
        return dlc_verifier_fail(v, "%s: the schedule does not say of how many threads a block is", dlc_verifier_loop(v, n));
    if (dealt_around(v, outer) != DLC_ROOT_NODE)
        return dlc_verifier_fail(v, "%s lies inside %s: what is dealt is not dealt again", dlc_verifier_loop(v, n),
                    dlc_verifier_loop(v, dealt_around(v, outer)));
    for (; around != DLC_ROOT_NODE; around = parent(v, around))
        if (!is_kind(v, around, DLC_LOOP_PAR) && !is_kind(v, around, DLC_LOOP_FOR))
            return dlc_verifier_fail(v, "%s lies inside %s, where not all threads are", dlc_verifier_loop(v, n), dlc_verifier_loop(v, around));
    for (uint32_t other = outer; other < n; other++)
        if (dlc_verifier_node(v, other)->axis == dlc_verifier_node(v, n)->axis)
            return dlc_verifier_fail(v, "%s is dealt twice", dlc_verifier_loop(v, n));
    return DLC_OK;
}

/* A thread's own neighbours: all of the tile that the thread loop around leaves open, which never is cut. */
static dlc_status verify_own_lanes(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *lane = dlc_verifier_node(v, n);
    int64_t extent;
    uint32_t loop = parent(v, n);
    if (!is_kind(v, loop, DLC_LOOP_THREAD) || lane->count > 1)
        return dlc_verifier_fail(v, "%s: lanes of a thread stand right inside its loops, one vector a step", dlc_verifier_loop(v, n));
    loop = dlc_schedule_loop_over(v->schedule, loop, lane->axis);
    if (!is_kind(v, loop, DLC_LOOP_THREAD) || dlc_verifier_node(v, loop)->tile != lane->tile || lane->tile > MOST_LANES)
        return dlc_verifier_fail(v, "%s: lanes of a thread are the tile of a thread loop, 2 or 4", dlc_verifier_loop(v, n));
    for (; loop != DLC_ROOT_NODE; loop = dlc_schedule_loop_over(v->schedule, parent(v, loop), lane->axis))
        if (!dlc_const_extent(v->kernel, lane->axis, &extent) || extent % lane->tile || dlc_verifier_node(v, loop)->tile % lane->tile)
            return dlc_verifier_fail(v, "%s: the end of the axis would cut its lanes", dlc_verifier_loop(v, n));
    for (uint32_t i = n + 1; i < lane->end; i++)
        if (dlc_verifier_node(v, i)->kind == DLC_LOOP_LEAF &&
            (!dlc_ids_find(&stage_of(v, i)->axes, lane->axis, NULL) ||
             dlc_dtype_bytes(stage_of(v, i)->dtype[0]) * lane->tile > ACCESS_BYTES))
            return dlc_verifier_fail(v, "%s: %s is no vector of them, of at most %d bytes", dlc_verifier_loop(v, n), stage_of(v, i)->name,
                        ACCESS_BYTES);
    return DLC_OK;
}

/* Tiles and what runs over them have their deal to themselves. */
static dlc_status verify_tile_deal(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *node = dlc_verifier_node(v, n);
    uint32_t loop = parent(v, n);
    const char *name = v->kernel->stages.data[node->stage].name;
    int is_matrix = dlc_schedule_is_matrix(v->schedule, n);
    if (!is_kind(v, loop, is_matrix ? DLC_LOOP_WARP : DLC_LOOP_THREAD))
        return dlc_verifier_fail(v, "%s: a register tile stands right inside the loops that deal it", name);
    for (uint32_t i = loop + 1; i < dlc_verifier_node(v, loop)->end; i = dlc_verifier_node(v, i)->end)
        if (dlc_verifier_node(v, i)->kind != DLC_LOOP_AS && dlc_verifier_node(v, i)->row == DLC_DOT_NONE)
            return dlc_verifier_fail(v, "%s: the loops that deal a register tile hold nothing else", dlc_verifier_loop(v, loop));
    if (node->kind == DLC_LOOP_LEAF && dlc_dots[node->row].granule > 1 && !is_matrix)
        return dlc_verifier_fail(v, "%s: threads have no tiles of %s", name, dlc_dots[node->row].text);
    return DLC_OK;
}

static dlc_status verify_dealt_leaf(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    const dlc_stage *stage = stage_of(v, n);
    if (dealt_around(v, n) == DLC_ROOT_NODE)
        return dlc_verifier_fail(v, "%s is computed by every thread: no loop deals it", stage->name);
    if (stage->update != DLC_UPDATE_NONE)
        return dlc_verifier_fail(v, "%s stores at data indices, in order; threads of a block have none", stage->name);
    for (uint32_t loop = dealt_around(v, n); loop != DLC_ROOT_NODE && is_dealt(v, loop); loop = parent(v, loop)) {
        if (dlc_ids_find(&stage->reduce, dlc_verifier_node(v, loop)->axis, NULL))
            return dlc_verifier_fail(v, "%s: %s is reduced over it; lanes of a warp fold", dlc_verifier_loop(v, loop), stage->name);
        if (leaf->place != DLC_PLACE_REG && !dlc_ids_find(&stage->axes, dlc_verifier_node(v, loop)->axis, NULL))
            return dlc_verifier_fail(v, "%s is stored by every iteration of %s", stage->name, dlc_verifier_loop(v, loop));
    }
    return leaf->row != DLC_DOT_NONE ? verify_tile_deal(v, n) : DLC_OK;
}

/* A leaf with an operand that is asked for early: of a dot, or of any other stage. */
static int comes_ahead(const dlc_verifier *v, uint32_t n, int is_dot)
{
    const dlc_schedule_node *node = dlc_verifier_node(v, n);
    return is_kind(v, n, DLC_LOOP_LEAF) && node->ahead && (node->row != DLC_DOT_NONE) == is_dot;
}

dlc_status dlc_deals_verify_tree(dlc_schedule *schedule, dlc_diag *diag)
{
    dlc_verifier v = {.schedule = schedule, .kernel = schedule->kernel, .diag = diag};
    if (schedule->threads && schedule->target->kind != DLC_TARGET_CUDA)
        return dlc_verifier_fail(&v, "%s has no blocks of threads", schedule->target->name);
    if (schedule->threads % WARP || schedule->threads > MOST_THREADS)
        return dlc_verifier_fail(&v, "%u threads are not whole warps, at most %d threads", schedule->threads, MOST_THREADS);
    for (uint32_t n = 0; n < schedule->nodes.n; n++) {
        if (is_dealt(&v, n))
            DLC_TRY(verify_dealt_loop(&v, n));
        else if (comes_ahead(&v, n, 0) && !schedule->threads && schedule->target->kind == DLC_TARGET_CUDA)
            return dlc_verifier_fail(&v, "%s: only what threads of a block copy is loaded ahead", stage_of(&v, n)->name);
        else if (comes_ahead(&v, n, 1) && schedule->threads)
            return dlc_verifier_fail(&v, "%s: threads of a block copy ahead what it multiplies; a tile fetches nothing",
                                     stage_of(&v, n)->name);
        else if (!schedule->threads)
            continue;
        else if (is_kind(&v, n, DLC_LOOP_LANE) && is_kind(&v, dealt_around(&v, n), DLC_LOOP_THREAD))
            DLC_TRY(verify_own_lanes(&v, n));
        else if (is_kind(&v, n, DLC_LOOP_AS))
            DLC_TRY(verify_tile_deal(&v, n));
        else if (is_kind(&v, n, DLC_LOOP_LEAF))
            DLC_TRY(verify_dealt_leaf(&v, n));
    }
    return DLC_OK;
}

/* --- places --- */

/* The node in whose body a tile's value is: its deal, or the outermost loop that cuts its sum. */
static uint32_t holder(const dlc_schedule *schedule, uint32_t tile)
{
    uint32_t fold = schedule->homes[schedule->nodes.data[tile].stage].fold;
    return fold == DLC_ROOT_NODE ? dlc_schedule_deal(schedule, dlc_schedule_parent(schedule, tile)) : fold;
}

int dlc_deals_are_equal(const dlc_schedule *schedule, uint32_t tile, uint32_t as)
{
    uint32_t a = dlc_schedule_parent(schedule, tile), b = dlc_schedule_parent(schedule, as);
    uint32_t outer_a = dlc_schedule_deal(schedule, a), outer_b = dlc_schedule_deal(schedule, b);
    if (a - outer_a != b - outer_b ||
        (a != b && dlc_schedule_parent(schedule, holder(schedule, tile)) != dlc_schedule_parent(schedule, outer_b)))
        return 0;
    for (uint32_t i = 0; i <= a - outer_a; i++)
        if (schedule->nodes.data[outer_a + i].axis != schedule->nodes.data[outer_b + i].axis ||
            schedule->nodes.data[outer_a + i].tile != schedule->nodes.data[outer_b + i].tile)
            return 0;
    return a != b || schedule->homes[schedule->nodes.data[tile].stage].fold == DLC_ROOT_NODE;
}

/* Iterations of the deal, or -1: not known. */
static int64_t all_trips(const dlc_verifier *v, uint32_t inner)
{
    int64_t all = 1;
    for (uint32_t n = dlc_schedule_deal(v->schedule, inner); n <= inner; n++) {
        int64_t trips = dlc_schedule_trips(v->schedule, n);
        if (trips < 0 || all > INT32_MAX)
            return -1;
        all *= trips;
    }
    return all;
}

/* What runs over the axis is whole tiles all the way, or the factor is in shared memory and its region is. */
static dlc_status verify_tile_factor(const dlc_verifier *v, uint32_t leaf, uint32_t axis, dlc_expr factor)
{
    const char *name = stage_of(v, leaf)->name;
    uint32_t loop = dlc_schedule_loop_over(v->schedule, parent(v, leaf), axis);
    uint32_t outer = dlc_schedule_loop_over(v->schedule, parent(v, loop), axis);
    int64_t size, extent, tile = dlc_verifier_node(v, loop)->tile;
    dlc_expr all = v->schedule->ranges[loop].size;
    if (outer != DLC_ROOT_NODE)
        size = dlc_verifier_node(v, outer)->tile;
    else if (!dlc_expr_is_int(v->kernel->pool, all, &size))
        return dlc_verifier_fail(v, "%s: how much %s deals is not known", name, dlc_verifier_loop(v, loop));
    if (size % tile)
        return dlc_verifier_fail(v, "%s: %s deals tiles of %" PRId64 " of %" PRId64, name, dlc_verifier_loop(v, loop), tile, size);
    if (dlc_const_extent(v->kernel, axis, &extent) && extent % size == 0)
        return DLC_OK;
    const dlc_expr_node *node = dlc_node_of(v->kernel->pool, factor);
    int is_row = dlc_verifier_node(v, leaf)->rows == axis; /* the last row is read in place of those behind it */
    if (!is_row && (node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id) ||
                    !dlc_schedule_is_filled(v->schedule, DLC_SOURCE_INDEX(node->imm.id))))
        return dlc_verifier_fail(v, "%s: its last tile along %s is not whole; copy the factor first", name, v->kernel->axes.data[axis].name);
    return DLC_OK;
}

static int64_t stride_of(const dlc_verifier *v, uint32_t s, uint32_t axis)
{
    const dlc_ids *axes = &v->kernel->stages.data[s].axes;
    uint32_t position;
    int64_t stride;
    return dlc_ids_find(axes, axis, &position) &&
                   dlc_expr_is_int(v->kernel->pool, v->schedule->homes[s].stride[position], &stride) ? stride : -1;
}

/* A factor of matrices is a copy in shared memory: neighbours along K or along its own axis, in rows that begin at accesses. */
static dlc_status verify_matrix_factor(const dlc_verifier *v, uint32_t n, uint32_t own, dlc_expr factor)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    const dlc_pool *pool = v->kernel->pool;
    const dlc_expr_node *node = dlc_node_of(pool, dlc_dot_factor((dlc_dot)leaf->row, pool, factor));
    uint32_t s = DLC_SOURCE_INDEX(node->imm.id), k = leaf->over.data[leaf->over.n - 1];
    if (node->op != DLC_EXPR_LOAD || !DLC_SOURCE_IS_STAGE(node->imm.id) || !dlc_schedule_is_filled(v->schedule, s))
        return dlc_verifier_fail(v, "%s: %s multiplies what threads of the block have copied", stage_of(v, n)->name,
                                 dlc_dots[leaf->row].text);
    uint32_t element_bytes = dlc_dtype_bytes(v->kernel->stages.data[s].dtype[0]);
    int64_t row = ACCESS_BYTES / element_bytes;
    int64_t along = stride_of(v, s, own), deep = stride_of(v, s, k);
    if (element_bytes != 2 && deep != 1)
        return dlc_verifier_fail(v, "%s: %s takes neighbours along %s, and %s has others", stage_of(v, n)->name,
                                 dlc_dots[leaf->row].text, v->kernel->axes.data[k].name, v->kernel->stages.data[s].name);
    if (!(along == 1 && deep > 0 && deep % row == 0) && !(deep == 1 && along > 0 && along % row == 0))
        return dlc_verifier_fail(v, "%s: rows of %s do not begin at multiples of %d bytes", stage_of(v, n)->name,
                                 v->kernel->stages.data[s].name, ACCESS_BYTES);
    return DLC_OK;
}

/* Matrices are whole in K too. */
static dlc_status verify_matrix(const dlc_verifier *v, uint32_t n, dlc_expr left, dlc_expr right)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    uint32_t k = leaf->over.data[leaf->over.n - 1];
    int64_t extent;
    if (leaf->over.n != 1 || (dlc_schedule_loop_over(v->schedule, parent(v, n), k) == DLC_ROOT_NODE &&
                              (!dlc_const_extent(v->kernel, k, &extent) || extent % dlc_dots[leaf->row].granule)))
        return dlc_verifier_fail(v, "%s: %s runs over one axis by %u, in tiles that a loop leaves", stage_of(v, n)->name,
                                 dlc_dots[leaf->row].text, dlc_dots[leaf->row].granule);
    DLC_TRY(verify_matrix_factor(v, n, leaf->rows, left));
    return verify_matrix_factor(v, n, leaf->columns, right);
}

static dlc_status verify_tile(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    uint32_t inner = parent(v, n), fold = v->schedule->homes[leaf->stage].fold;
    const char *name = stage_of(v, n)->name;
    dlc_contraction form;
    int64_t trips = all_trips(v, inner);
    uint32_t workers = v->schedule->threads / (dlc_schedule_is_matrix(v->schedule, n) ? WARP : 1);
    if (trips < 1 || trips > workers)
        return dlc_verifier_fail(v, "%s: %" PRId64 " tiles are dealt to %u %s keeps one", name, trips, workers,
                                 workers < v->schedule->threads ? "warps; a warp" : "threads; a thread");
    for (uint32_t i = parent(v, dlc_schedule_deal(v->schedule, inner)); fold != DLC_ROOT_NODE && i != DLC_ROOT_NODE && i >= fold;
         i = parent(v, i))
        if (!dlc_ids_find(&stage_of(v, n)->reduce, dlc_verifier_node(v, i)->axis, NULL))
            return dlc_verifier_fail(v, "%s: %s is opened inside %s that reduces it", name, dlc_verifier_loop(v, i), dlc_verifier_loop(v, fold));
    if (!dlc_contraction_of(v->kernel, stage_of(v, n), v->schedule->arena, &form))
        return dlc_verifier_fail(v, "%s is no sum of products of two factors", name);
    int is_swapped = dlc_ids_find(&form.m, leaf->columns, NULL);
    if (dlc_schedule_is_matrix(v->schedule, n))
        return verify_matrix(v, n, is_swapped ? form.b : form.a, is_swapped ? form.a : form.b);
    DLC_TRY(verify_tile_factor(v, n, leaf->columns, is_swapped ? form.a : form.b));
    return leaf->rows == DLC_NO_AXIS ? DLC_OK : verify_tile_factor(v, n, leaf->rows, is_swapped ? form.b : form.a);
}

static dlc_status verify_ahead(const dlc_verifier *v, uint32_t n)
{
    const dlc_schedule_node *leaf = dlc_verifier_node(v, n);
    const dlc_stage *stage = stage_of(v, n);
    uint32_t inner = dlc_schedule_thread_of(v->schedule, n);
    uint32_t deal = inner == DLC_ROOT_NODE ? inner : dlc_schedule_deal(v->schedule, inner);
    uint32_t loop = deal == DLC_ROOT_NODE ? deal : parent(v, deal);
    int64_t trips = deal == DLC_ROOT_NODE ? -1 : all_trips(v, inner);
    if (!dlc_schedule_is_filled(v->schedule, leaf->stage) || !is_kind(v, loop, DLC_LOOP_FOR))
        return dlc_verifier_fail(v, "%s is no copy by thread loops right inside a serial loop: it cannot be loaded ahead", stage->name);
    if (v->schedule->homes[leaf->stage].at != loop)
        return dlc_verifier_fail(v, "%s is read outside of %s and cannot be loaded ahead", stage->name, dlc_verifier_loop(v, loop));
    if (trips < 1 || trips > (int64_t)DLC_MOST_PIECES * v->schedule->threads)
        return dlc_verifier_fail(v, "%s: a thread holds at most %d elements of it ahead", stage->name, DLC_MOST_PIECES);
    for (uint32_t i = loop + 1; i < deal; i++)
        if (is_kind(v, i, DLC_LOOP_LEAF) && !dlc_verifier_node(v, i)->ahead)
            return dlc_verifier_fail(v, "%s is loaded ahead and stands behind %s, which is not", stage->name, stage_of(v, i)->name);
    for (uint32_t i = deal; i < dlc_verifier_node(v, deal)->end; i++)
        if (is_kind(v, i, DLC_LOOP_LEAF) && !dlc_verifier_node(v, i)->ahead)
            return dlc_verifier_fail(v, "%s is loaded ahead and shares its loops with %s, which is not", stage->name, stage_of(v, i)->name);
    for (uint32_t i = 0; i < v->reads->n; i++)
        if (v->reads->data[i].reader == leaf->stage &&
            dlc_schedule_is_inside(v->schedule, v->schedule->homes[v->reads->data[i].source].leaf, loop))
            return dlc_verifier_fail(v, "%s is loaded ahead and reads what %s computes", stage->name, dlc_verifier_loop(v, loop));
    return DLC_OK;
}

dlc_status dlc_deals_verify_places(dlc_schedule *schedule, const dlc_reads *reads, dlc_diag *diag)
{
    dlc_verifier v = {.schedule = schedule, .kernel = schedule->kernel, .reads = reads, .diag = diag};
    for (uint32_t n = 0; n < schedule->nodes.n && schedule->threads; n++) {
        const dlc_schedule_node *leaf = dlc_verifier_node(&v, n);
        if (leaf->kind != DLC_LOOP_LEAF)
            continue;
        const dlc_home *home = &schedule->homes[leaf->stage];
        uint32_t deal = dlc_schedule_deal_around(schedule, home->at);
        if (home->place == DLC_PLACE_SCRATCH && is_kind(&v, deal, DLC_LOOP_THREAD))
            return dlc_verifier_fail(&v, "%s in scratch lives inside %s, whose iterations run side by side", stage_of(&v, n)->name,
                        dlc_verifier_loop(&v, deal));
        if (leaf->row != DLC_DOT_NONE)
            DLC_TRY(verify_tile(&v, n));
        if (leaf->ahead)
            DLC_TRY(verify_ahead(&v, n));
    }
    return DLC_OK;
}
