/*
 * The text form of a schedule, and its verifier:
 *
 *     schedule x86-64-v4 {
 *       par n, (oh,ow):12; for oc:64; width 16; grain 2
 *       a: dot fma 12x32 copy a
 *       y: buffer lanes unroll 32 partials 4
 *     }
 */
#include <inttypes.h>
#include <string.h>

#include "ir/schedule/schedule.h"

static const char *const place_names[] = {"reg", "scratch", "buffer"};

static const char *const dot_names[] = {
#define DLC_DOT(id, text, a, b, acc, granule) text,
#include "ir/schedule/dot.def"
#undef DLC_DOT
};

static const char *axis_name(const dlc_kernel *kernel, uint32_t axis)
{
    return axis < kernel->axes.n ? kernel->axes.data[axis].name : "?";
}

static void print_loop(const dlc_kernel *kernel, const dlc_loop *loop, dlc_str *out)
{
    if (loop->axes.n != 1)
        dlc_str_add(out, "(");
    for (uint32_t i = 0; i < loop->axes.n; i++)
        dlc_str_printf(out, "%s%s", i ? "," : "", axis_name(kernel, loop->axes.data[i]));
    if (loop->axes.n != 1)
        dlc_str_add(out, ")");
    if (loop->tile != 1)
        dlc_str_printf(out, ":%" PRId64, loop->tile);
}

static void print_loops(const dlc_kernel *kernel, const dlc_schedule *schedule, dlc_str *out)
{
    for (uint32_t l = 0; l < schedule->loops.n; l++) {
        dlc_str_add(out, l == 0 && schedule->npar ? "par " : l == schedule->npar ? (l ? "; for " : "for ") : ", ");
        if (schedule->loops.data[l].serial)
            dlc_str_add(out, "serial ");
        print_loop(kernel, &schedule->loops.data[l], out);
    }
    if (schedule->loops.n)
        dlc_str_add(out, "; ");
}

static void print_plan(const dlc_kernel *kernel, const dlc_schedule *schedule, uint32_t s, dlc_str *out)
{
    const dlc_stage_plan *plan = &schedule->plans[s];
    dlc_str_printf(out, "  %s: ", kernel->stages.data[s].name);
    if (plan->method == DLC_METHOD_DOT) {
        dlc_str_printf(out, "dot %s %ux%u", dot_names[plan->dot], plan->m, plan->n);
        dlc_str_add(out, plan->copy_a && plan->copy_b ? " copy a, b" : plan->copy_a ? " copy a" : plan->copy_b ? " copy b" : "");
        dlc_str_add(out, plan->swap ? " swap\n" : "\n");
        return;
    }
    if (plan->method == DLC_METHOD_TRANSPOSE) {
        dlc_str_add(out, "transpose\n");
        return;
    }
    dlc_str_printf(out, "%s lanes", place_names[plan->place]);
    if (plan->lane != DLC_NO_AXIS && schedule->lane == DLC_NO_AXIS)
        dlc_str_printf(out, " %s", axis_name(kernel, plan->lane));
    if (plan->unroll)
        dlc_str_printf(out, " unroll %u", plan->unroll);
    if (plan->partials > 1)
        dlc_str_printf(out, " partials %u", plan->partials);
    dlc_str_add(out, "\n");
}

void dlc_schedule_print(const dlc_kernel *kernel, const dlc_schedule *schedule, dlc_str *out)
{
    dlc_str_printf(out, "schedule %s {\n  ", schedule->target->name);
    print_loops(kernel, schedule, out);
    if (schedule->lane != DLC_NO_AXIS)
        dlc_str_printf(out, "lane %s; ", axis_name(kernel, schedule->lane));
    dlc_str_printf(out, "width %u; ", schedule->width);
    if (schedule->pack > 1)
        dlc_str_printf(out, "pack %u; ", schedule->pack);
    dlc_str_printf(out, "grain %" PRId64 "\n", schedule->grain);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        print_plan(kernel, schedule, s, out);
    dlc_str_add(out, "}\n");
}

/* --- verifier --- */

static int is_power_of_two(uint32_t value)
{
    return value && !(value & (value - 1));
}

static int has(const dlc_ids *ids, uint32_t id)
{
    for (uint32_t i = 0; i < ids->n; i++)
        if (ids->data[i] == id)
            return 1;
    return 0;
}

static uint32_t root_count(const dlc_schedule *schedule, uint32_t axis)
{
    uint32_t n = 0;
    for (uint32_t l = 0; l < schedule->loops.n; l++)
        n += (uint32_t)has(&schedule->loops.data[l].axes, axis);
    return n;
}

static dlc_status fail(const dlc_kernel *kernel, dlc_diag *diag, const char *stage, const char *what)
{
    return dlc_diag_fail(diag, DLC_INTERNAL, kernel->name, "schedule of stage '%s': %s", stage, what);
}

static dlc_status verify_loops(const dlc_kernel *kernel, const dlc_schedule *schedule, dlc_method method, dlc_diag *diag)
{
    for (uint32_t l = 0; l < schedule->loops.n; l++) {
        const dlc_loop *loop = &schedule->loops.data[l];
        int is_lane = schedule->lane != DLC_NO_AXIS && l + 1 == schedule->loops.n;
        if (loop->tile < 1 || (loop->tile > 1 && !is_lane && method == DLC_METHOD_LANES))
            return fail(kernel, diag, "*", "only the lane loop and the tiles of a dot or transpose have more than one point");
        if (is_lane && (loop->axes.n != 1 || loop->axes.data[0] != schedule->lane || loop->tile % schedule->width))
            return fail(kernel, diag, "*", "the last loop is not the lane's, in whole vectors");
        if (loop->serial && (l < schedule->npar || loop->axes.n != 1 || is_lane))
            return fail(kernel, diag, "*", "a serial loop is parallel, flattened or the lane's");
        for (uint32_t i = 0; i < loop->axes.n; i++)
            if (loop->axes.data[i] >= kernel->axes.n || root_count(schedule, loop->axes.data[i]) != 1)
                return fail(kernel, diag, "*", "an axis is unknown or has two root loops");
    }
    if (schedule->npar > schedule->loops.n)
        return fail(kernel, diag, "*", "more parallel loops than loops");
    return DLC_OK;
}

/* One map over root loops of one axis each, of which the last two are the tile. */
static dlc_status verify_transpose(const dlc_kernel *kernel, const dlc_schedule *schedule, dlc_diag *diag)
{
    const dlc_stage *stage = &kernel->stages.data[0];
    uint32_t n = schedule->loops.n;
    if (schedule->target->kind != DLC_TARGET_CUDA)
        return fail(kernel, diag, stage->name, "only blocks of CUDA transpose");
    if (kernel->stages.n != 1 || stage->combine != DLC_REDUCE_NONE || stage->update || stage->buffer == DLC_NO_BUFFER)
        return fail(kernel, diag, stage->name, "what is transposed is not one map");
    if (n < 2 || schedule->npar != n || schedule->lane != DLC_NO_AXIS)
        return fail(kernel, diag, stage->name, "a transpose has other loops than two tiles and what is parallel around them");
    for (uint32_t l = 0; l < n; l++)
        if (schedule->loops.data[l].axes.n != 1 || schedule->loops.data[l].tile != (l + 2 < n ? 1 : DLC_CUDA_TILE))
            return fail(kernel, diag, stage->name, "the last two loops of a transpose are not its tile");
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (!root_count(schedule, stage->axes.data[i]))
            return fail(kernel, diag, stage->name, "it has axes of its own");
    return DLC_OK;
}

/* Each stage must be defined over every root axis: else it would be computed once per tile it does not depend on. */
static dlc_status verify_stage(const dlc_kernel *kernel, const dlc_schedule *schedule, uint32_t s, dlc_method method,
                               dlc_diag *diag)
{
    const dlc_stage *stage = &kernel->stages.data[s];
    const dlc_stage_plan *plan = &schedule->plans[s];
    for (uint32_t l = 0; l < schedule->loops.n; l++)
        for (uint32_t i = 0; i < schedule->loops.data[l].axes.n; i++)
            if (!has(&stage->axes, schedule->loops.data[l].axes.data[i]))
                return fail(kernel, diag, stage->name, "a root axis is not one of its axes");
    if (plan->method == DLC_METHOD_TRANSPOSE)
        return verify_transpose(kernel, schedule, diag);
    if (plan->method == DLC_METHOD_DOT && schedule->target->kind == DLC_TARGET_CUDA)
        return plan->m && plan->n && plan->m % DLC_CUDA_SIDE == 0 && plan->n % DLC_CUDA_SIDE == 0 &&
                       schedule->npar == schedule->loops.n && !plan->copy_a && !plan->copy_b
                   ? DLC_OK
                   : fail(kernel, diag, stage->name, "the tile is not 16 x 16 threads of one block");
    if (plan->method == DLC_METHOD_DOT)
        return plan->n % schedule->width == 0 && plan->m >= 1
                   ? DLC_OK
                   : fail(kernel, diag, stage->name, "the register tile is not a number of whole vectors");
    if (method == DLC_METHOD_DOT)
        return DLC_OK;
    if (plan->place == DLC_PLACE_BUFFER && stage->buffer == DLC_NO_BUFFER)
        return fail(kernel, diag, stage->name, "it is placed in a buffer and has none");
    for (uint32_t i = 0; i < stage->axes.n && plan->place == DLC_PLACE_REG; i++)
        if (!root_count(schedule, stage->axes.data[i]))
            return fail(kernel, diag, stage->name, "it is placed in a register and has axes of its own");
    if (stage->update && (schedule->lane != DLC_NO_AXIS || plan->lane != DLC_NO_AXIS))
        return fail(kernel, diag, stage->name, "a scatter runs one element at a time");
    return DLC_OK;
}

dlc_status dlc_schedule_verify(const dlc_kernel *kernel, const dlc_schedule *schedule, dlc_diag *diag)
{
    dlc_method method = dlc_schedule_method(kernel, schedule);
    if (!is_power_of_two(schedule->width))
        return fail(kernel, diag, "*", "the width is not a power of two");
    if (!is_power_of_two(schedule->pack) ||
        (schedule->pack > 1 && (schedule->target->kind != DLC_TARGET_CUDA || method != DLC_METHOD_LANES)))
        return fail(kernel, diag, "*", "threads of a target without threads, or of a block, have several neighbours");
    DLC_TRY(verify_loops(kernel, schedule, method, diag));
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        DLC_TRY(verify_stage(kernel, schedule, s, method, diag));
    return DLC_OK;
}
