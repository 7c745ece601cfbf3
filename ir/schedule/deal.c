/* Loops that are dealt to the warps or threads of a block: what their runs of loops are, and how often they go. */
#include "ir/kernel/algebra.h"
#include "ir/schedule/schedule.h"

static int is_dealt(const dlc_schedule_node *node)
{
    return node->kind == DLC_LOOP_WARP || node->kind == DLC_LOOP_THREAD;
}

/* Node n holds the next alone, and both are of one kind. */
static int goes_on(const dlc_schedule *schedule, uint32_t n)
{
    const dlc_schedule_node *node = &schedule->nodes.data[n], *child = node + 1;
    return node->end > n + 1 && child->end == node->end && child->kind == node->kind;
}

uint32_t dlc_schedule_deal(const dlc_schedule *schedule, uint32_t n)
{
    while (n > 0 && is_dealt(&schedule->nodes.data[n]) && goes_on(schedule, n - 1))
        n--;
    return n;
}

uint32_t dlc_schedule_deal_end(const dlc_schedule *schedule, uint32_t outer)
{
    while (goes_on(schedule, outer))
        outer++;
    return outer;
}

uint32_t dlc_schedule_deal_around(const dlc_schedule *schedule, uint32_t n)
{
    while (n != DLC_ROOT_NODE && !is_dealt(&schedule->nodes.data[n]))
        n = dlc_schedule_parent(schedule, n);
    return n;
}

int dlc_schedule_is_of_warp(const dlc_schedule *schedule, uint32_t s)
{
    uint32_t n = schedule->threads ? dlc_schedule_deal_around(schedule, schedule->homes[s].at) : DLC_ROOT_NODE;
    return n != DLC_ROOT_NODE && schedule->nodes.data[n].kind == DLC_LOOP_WARP;
}

uint32_t dlc_schedule_thread_of(const dlc_schedule *schedule, uint32_t n)
{
    uint32_t loop = dlc_schedule_parent(schedule, n);
    while (loop != DLC_ROOT_NODE &&
           (schedule->nodes.data[loop].kind == DLC_LOOP_LANE || schedule->nodes.data[loop].kind == DLC_LOOP_AS))
        loop = dlc_schedule_parent(schedule, loop);
    return loop != DLC_ROOT_NODE && schedule->nodes.data[loop].kind == DLC_LOOP_THREAD ? loop : DLC_ROOT_NODE;
}

int64_t dlc_schedule_trips(const dlc_schedule *schedule, uint32_t n)
{
    const dlc_schedule_node *node = &schedule->nodes.data[n];
    uint32_t outer = dlc_schedule_loop_over(schedule, dlc_schedule_parent(schedule, n), node->axis);
    int64_t size;
    if (outer != DLC_ROOT_NODE)
        size = schedule->nodes.data[outer].tile;
    else if (!dlc_expr_is_int(schedule->kernel->pool, schedule->ranges[n].size, &size))
        return -1;
    return (size + node->tile - 1) / node->tile;
}

/* Iterations of the thread loops down to `inner` that one thread has, or 0: not known, or too many to write out. */
static int64_t pieces_of(const dlc_schedule *schedule, uint32_t inner)
{
    int64_t all = 1, most = (int64_t)DLC_MOST_PIECES * schedule->threads;
    for (uint32_t n = dlc_schedule_deal(schedule, inner); n <= inner; n++) {
        int64_t trips = dlc_schedule_trips(schedule, n);
        if (trips < 1 || trips > most / all)
            return 0;
        all *= trips;
    }
    return (all + schedule->threads - 1) / schedule->threads;
}

static int is_copy(const dlc_schedule *schedule, const dlc_schedule_node *leaf)
{
    return leaf->stage >= schedule->nstages && leaf->row == DLC_DOT_NONE && leaf->place == DLC_PLACE_SCRATCH;
}

int dlc_schedule_is_copying(const dlc_schedule *schedule, uint32_t outer)
{
    uint32_t inner = dlc_schedule_deal_end(schedule, outer);
    for (uint32_t n = inner + 1; n < schedule->nodes.data[inner].end; n++) {
        const dlc_schedule_node *node = &schedule->nodes.data[n];
        if (node->kind != DLC_LOOP_LANE && (node->kind != DLC_LOOP_LEAF || !is_copy(schedule, node)))
            return 0;
    }
    return schedule->nodes.data[outer].kind == DLC_LOOP_THREAD && pieces_of(schedule, inner) > 0;
}

int dlc_schedule_is_filled(const dlc_schedule *schedule, uint32_t s)
{
    uint32_t inner = dlc_schedule_thread_of(schedule, schedule->homes[s].leaf);
    return s >= schedule->nstages && inner != DLC_ROOT_NODE && dlc_schedule_is_copying(schedule, dlc_schedule_deal(schedule, inner));
}

int dlc_schedule_is_matrix(const dlc_schedule *schedule, uint32_t n)
{
    const dlc_schedule_node *node = &schedule->nodes.data[n];
    if (node->kind == DLC_LOOP_LEAF)
        return dlc_dots[node->row].family == DLC_FAMILY_WARP;
    for (uint32_t i = 0; node->kind == DLC_LOOP_AS && i < schedule->nodes.n; i++)
        if (schedule->nodes.data[i].kind == DLC_LOOP_LEAF && schedule->nodes.data[i].stage == node->stage)
            return dlc_schedule_is_matrix(schedule, i);
    return 0;
}

int dlc_schedule_is_tile(const dlc_schedule *schedule, uint32_t leaf)
{
    return dlc_dots[schedule->nodes.data[leaf].row].family == DLC_FAMILY_TILE;
}

uint32_t dlc_schedule_dot_lanes(const dlc_schedule *schedule, uint32_t leaf)
{
    enum { ACCESS_BYTES = 16, MOST = 4 };
    uint32_t columns = dlc_schedule_columns(schedule, leaf);
    uint32_t bytes = dlc_dtype_bytes(schedule->kernel->stages.data[schedule->nodes.data[leaf].stage].dtype[0]);
    if (dlc_schedule_is_matrix(schedule, leaf))
        return 2;
    if (!schedule->threads || columns == DLC_ROOT_NODE)
        return schedule->target->vector_bytes / bytes;
    uint32_t lanes = ACCESS_BYTES / bytes < MOST ? ACCESS_BYTES / bytes : MOST;
    while (lanes > 1 && schedule->nodes.data[columns].tile % lanes)
        lanes /= 2;
    return lanes;
}

uint32_t dlc_schedule_rest_lanes(const dlc_schedule *schedule, uint32_t leaf, int64_t left)
{
    enum { LEAST_BYTES = 16 }; /* of a vector: every processor has those */
    uint32_t lanes = dlc_schedule_dot_lanes(schedule, leaf);
    uint32_t bytes = dlc_dtype_bytes(schedule->kernel->stages.data[schedule->nodes.data[leaf].stage].dtype[0]);
    if (schedule->threads || dlc_schedule_is_tile(schedule, leaf))
        return lanes;
    while (lanes * bytes >= 2 * LEAST_BYTES && left <= lanes / 2)
        lanes /= 2;
    return lanes;
}
