/*
 * Maps and rows that move more than the last cache holds, through memory from one end to the other. What one stores has left the caches
 * before another kernel reads it: it goes past them, and no line is read only to be overwritten. What one reads is asked for some rows
 * early: hardware that fetches by itself begins anew with every row, and rests while the row is computed with.
 */
#include "ir/schedule/resolve.h"
#include "passes/schedule/choose.h"

enum {
    AHEAD_BYTES = 12 << 10, /* so early: what memory brings while it is waited for, three times over */
    PIECE_BYTES = 2048      /* long: half a page, or more */
};

static int is_far(const dlc_chooser *c, dlc_source source)
{
    return !DLC_SOURCE_IS_STAGE(source) &&
           dlc_choose_elems(c, source) * dlc_dtype_bytes(c->kernel->buffers.data[source].type.dtype) > c->target->l2_bytes;
}

/* Products wait for multiplications, and what is unrolled reads windows or squares. */
static int is_excluded(const dlc_schedule *schedule)
{
    for (uint32_t n = 0; n < schedule->nodes.n; n++)
        if (schedule->nodes.data[n].row != DLC_DOT_NONE || schedule->nodes.data[n].own != DLC_DOT_NONE || schedule->nodes.data[n].kind == DLC_LOOP_UNROLL)
            return 1;
    return 0;
}

/* The axis along the vectors of a leaf; DLC_NO_AXIS: there are none. */
static uint32_t lane_of(const dlc_schedule *schedule, uint32_t leaf)
{
    for (uint32_t n = dlc_schedule_parent(schedule, leaf); n != DLC_ROOT_NODE; n = dlc_schedule_parent(schedule, n))
        if (schedule->nodes.data[n].kind == DLC_LOOP_LANE)
            return schedule->nodes.data[n].axis;
    return DLC_NO_AXIS;
}

/* A far read that goes on through memory as the loop around the lanes does, by long pieces or without gaps; *step: bytes an iteration. */
static int is_stream(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t leaf, const dlc_access_fact *access, double *step)
{
    uint32_t around = dlc_schedule_ahead_loop(schedule, leaf), lane = lane_of(schedule, leaf);
    double size = dlc_dtype_bytes(c->kernel->buffers.data[access->source].type.dtype);
    if (around == DLC_ROOT_NODE || dlc_choose_stride(c, access->offset, lane) != 1)
        return 0;
    const dlc_schedule_node *loop = &schedule->nodes.data[around];
    int64_t stride = dlc_choose_stride(c, access->offset, loop->axis);
    double piece = size * (double)(loop->axis == lane ? loop->tile : c->extent[lane]);
    *step = size * (double)stride * (double)loop->tile;
    return stride > 0 && stride != DLC_ODD_STRIDE && (piece >= PIECE_BYTES || *step <= piece);
}

/* Far buffers that the leaf reads, and the most bytes that an iteration goes on by in one; 0 where one of them is no stream. */
static int far_reads(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t leaf, uint32_t *n, double *most)
{
    const dlc_access_facts *accesses = &c->accesses[schedule->nodes.data[leaf].stage];
    double step;
    *n = 0;
    *most = 0;
    for (uint32_t i = 0; i < accesses->n; i++) {
        if (!accesses->data[i].load || !is_far(c, accesses->data[i].source))
            continue;
        if (!is_stream(c, schedule, leaf, &accesses->data[i], &step))
            return 0;
        *most = step > *most ? step : *most;
        ++*n;
    }
    return 1;
}

/* Iterations that the leaf reads ahead; 0: L2 has no room for them. */
static uint8_t iterations_ahead(const dlc_chooser *c, uint32_t nreads, double step)
{
    double n = step < AHEAD_BYTES ? (AHEAD_BYTES + step - 1) / step : 1;
    n = n < DLC_MOST_AHEAD ? n : DLC_MOST_AHEAD;
    return (uint8_t)(nreads * step * (n + 1) < c->target->l2_bytes / 2.0 ? n : 0);
}

/* One leaf asks for all that comes from far; of several that read as much the last, behind which the next row begins. 0: what is read
 * does not come in streams. */
static int read_ahead(const dlc_chooser *c, dlc_schedule *schedule)
{
    uint32_t best = DLC_ROOT_NODE, most = 0, nreads;
    double step, best_step = 0;
    for (uint32_t n = 0; n < schedule->nodes.n; n++) {
        if (schedule->nodes.data[n].kind != DLC_LOOP_LEAF)
            continue;
        if (!far_reads(c, schedule, n, &nreads, &step))
            return 0;
        if (!nreads || nreads < most)
            continue;
        best = n;
        most = nreads;
        best_step = step;
    }
    if (most)
        schedule->nodes.data[best].ahead = iterations_ahead(c, most, best_step);
    return 1;
}

/* Vectors of whole lines, each at the beginning of one where the buffer begins so. */
static int fills_lines(const dlc_chooser *c, const dlc_stage *stage, const dlc_access_fact *store, uint32_t lane)
{
    int64_t line = DLC_LINE_BYTES / dlc_dtype_bytes(c->kernel->buffers.data[stage->buffer].type.dtype);
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (stage->axes.data[i] != lane && dlc_choose_stride(c, store->offset, stage->axes.data[i]) % line != 0)
            return 0;
    return dlc_choose_stride(c, store->offset, lane) == 1;
}

static int stores_far(const dlc_chooser *c, const dlc_schedule *schedule, uint32_t leaf)
{
    const dlc_schedule_node *node = &schedule->nodes.data[leaf];
    const dlc_stage *stage = &c->kernel->stages.data[node->stage];
    const dlc_access_facts *accesses = &c->accesses[node->stage];
    uint32_t lane = lane_of(schedule, leaf);
    int is_read_back = node->place == DLC_PLACE_BUFFER && c->is_read[node->stage];
    if (stage->buffer == DLC_NO_BUFFER || dlc_is_updated(c->kernel, stage->buffer) || is_read_back || lane == DLC_NO_AXIS || !is_far(c, stage->buffer))
        return 0;
    for (uint32_t i = 0; i < accesses->n; i++)
        if (!accesses->data[i].load && fills_lines(c, stage, &accesses->data[i], lane))
            return 1;
    return 0;
}

void dlc_choose_far(dlc_schedule *schedule, dlc_arena *arena)
{
    const dlc_target *target = schedule->target;
    dlc_chooser c;
    dlc_choose_facts(&c, schedule->kernel, target, arena);
    double cache = target->machine->l3_bytes > target->l2_bytes ? target->machine->l3_bytes : target->l2_bytes;
    if (is_excluded(schedule) || dlc_choose_moved(&c) <= cache || !read_ahead(&c, schedule))
        return;
    for (uint32_t n = 0; n < schedule->nodes.n; n++)
        if (schedule->nodes.data[n].kind == DLC_LOOP_LEAF)
            schedule->nodes.data[n].nontemporal = (uint8_t)stores_far(&c, schedule, n);
}

/* --- rows that wait where they are stored --- */

/*
 * A softmax's exponentials wait for their sum. In scratch they take room beside the output's own lines, which come from L2 or beyond while
 * nothing is computed; in the output these come while exponentials are. (What is stored past the caches must not be read back.)
 */
static int waits_along_lanes(const dlc_chooser *c, const dlc_schedule *schedule, const dlc_reads *reads, uint32_t leaf)
{
    const dlc_schedule_node *node = &schedule->nodes.data[leaf];
    uint32_t lane = lane_of(schedule, leaf), loop = dlc_schedule_parent(schedule, leaf), map;
    if (node->kind != DLC_LOOP_LEAF || node->row != DLC_DOT_NONE || node->place != DLC_PLACE_SCRATCH || loop == DLC_ROOT_NODE ||
        schedule->nodes.data[loop].kind != DLC_LOOP_LANE || dlc_schedule_parent(schedule, loop) != schedule->homes[node->stage].at)
        return 0; /* no row: what lies apart in the output may share a set of L1 */
    map = dlc_schedule_output_for(schedule, reads, node->stage);
    for (uint32_t i = 0; map != DLC_NO_STAGE && i < c->accesses[map].n; i++)
        if (!c->accesses[map].data[i].load)
            return dlc_choose_stride(c, c->accesses[map].data[i].offset, lane) == 1;
    return 0;
}

int dlc_choose_outputs(dlc_schedule *schedule, dlc_arena *arena)
{
    dlc_chooser c;
    dlc_reads reads = {0};
    int found = 0;
    dlc_reads_find(schedule, arena, &reads);
    dlc_choose_facts(&c, schedule->kernel, schedule->target, arena);
    for (uint32_t n = 0; n < schedule->nodes.n && !found; n++) /* one: another may not stand there too */
        if (waits_along_lanes(&c, schedule, &reads, n)) {
            schedule->nodes.data[n].place = DLC_PLACE_OUTPUT;
            found = 1;
        }
    return found;
}
