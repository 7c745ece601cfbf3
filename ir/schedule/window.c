/*
 * Axes of copies that count the points of a sum of axes. A convolution reads its image at 2*oh + kh: by an axis of these points a copy has
 * each pixel once, where one by oh and kh has it once for each tap that meets it.
 */
#include "ir/kernel/algebra.h"
#include "ir/schedule/schedule.h"

const dlc_schedule_window *dlc_schedule_window_of(const dlc_schedule *schedule, uint32_t axis)
{
    for (uint32_t i = 0; i < schedule->windows.n; i++)
        if (schedule->windows.data[i].axis == axis)
            return &schedule->windows.data[i];
    return NULL;
}

static dlc_expr sum_of(dlc_pool *pool, const dlc_ids *axes, const int64_t *steps)
{
    dlc_expr sum = dlc_expr_i64(pool, 0);
    for (uint32_t i = 0; i < axes->n; i++)
        sum = dlc_add(pool, sum, dlc_muli(pool, dlc_expr_axis(pool, axes->data[i]), steps[i]));
    return sum;
}

dlc_expr dlc_schedule_point_of(const dlc_schedule *schedule, uint32_t axis)
{
    const dlc_schedule_window *window = dlc_schedule_window_of(schedule, axis);
    dlc_pool *pool = schedule->kernel->pool;
    return window ? sum_of(pool, &window->axes, window->steps.data) : dlc_expr_axis(pool, axis);
}

const char *dlc_schedule_joined_name(const dlc_schedule *schedule, const dlc_ids *axes)
{
    dlc_kernel_names names;
    dlc_kernel_names_make(schedule->kernel, 1, schedule->arena, &names);
    const char *name = names.axes[axes->data[0]];
    for (uint32_t i = 1; i < axes->n; i++)
        name = dlc_arena_printf(schedule->arena, "%s_%s", name, names.axes[axes->data[i]]);
    return name;
}

uint32_t dlc_schedule_window_axis(dlc_schedule *schedule, const dlc_ids *axes, const int64_t *steps)
{
    dlc_kernel *kernel = schedule->kernel;
    dlc_pool *pool = kernel->pool;
    dlc_expr extent = dlc_expr_i64(pool, 1);
    dlc_schedule_window window = {0};
    for (uint32_t i = 0; i < schedule->windows.n; i++)
        if (dlc_schedule_point_of(schedule, schedule->windows.data[i].axis) == sum_of(pool, axes, steps))
            return schedule->windows.data[i].axis;
    for (uint32_t i = 0; i < axes->n; i++) {
        extent = dlc_add(pool, extent, dlc_muli(pool, dlc_addi(pool, kernel->axes.data[axes->data[i]].extent, -1), steps[i]));
        dlc_vec_push(schedule->arena, &window.axes, axes->data[i]);
        dlc_vec_push(schedule->arena, &window.steps, steps[i]);
    }
    window.axis = dlc_kernel_axis(kernel, dlc_schedule_joined_name(schedule, axes), extent);
    dlc_vec_push(schedule->arena, &schedule->windows, window);
    return window.axis;
}

static uint32_t first_of_step_1(const int64_t *steps)
{
    uint32_t i = 0;
    while (steps[i] != 1)
        i++;
    return i;
}

/* A step along another axis, and as far back along one of step 1, changes nothing. */
int dlc_schedule_counts(dlc_schedule *schedule, dlc_expr value, const dlc_ids *axes, const int64_t *steps)
{
    dlc_kernel *kernel = schedule->kernel;
    dlc_pool *pool = kernel->pool;
    dlc_ranges ranges = dlc_kernel_ranges(kernel);
    uint32_t through = first_of_step_1(steps);
    for (uint32_t i = 0; i < axes->n; i++) {
        dlc_expr *with = dlc_new_array(schedule->arena, dlc_expr, kernel->axes.n);
        if (i == through)
            continue;
        with[axes->data[i]] = dlc_addi(pool, dlc_expr_axis(pool, axes->data[i]), 1);
        with[axes->data[through]] = dlc_addi(pool, dlc_expr_axis(pool, axes->data[through]), -steps[i]);
        dlc_expr moved = dlc_expr_substitute(pool, value, with, kernel->axes.n);
        if (moved != value && dlc_expr_simplify(pool, moved, &ranges) != dlc_expr_simplify(pool, value, &ranges))
            return 0;
    }
    return 1;
}

/* The value where the sum is the axis that counts it: an axis of step 1 goes through all of it while the others stand at 0. */
static dlc_expr in_window(dlc_schedule *schedule, dlc_expr value, const dlc_schedule_window *window)
{
    dlc_kernel *kernel = schedule->kernel;
    dlc_pool *pool = kernel->pool;
    dlc_ranges ranges = dlc_kernel_ranges(kernel);
    dlc_expr *with = dlc_new_array(schedule->arena, dlc_expr, kernel->axes.n);
    uint32_t through = first_of_step_1(window->steps.data);
    for (uint32_t i = 0; i < window->axes.n; i++)
        with[window->axes.data[i]] = i == through ? dlc_expr_axis(pool, window->axis) : dlc_expr_i64(pool, 0);
    if (!dlc_schedule_counts(schedule, value, &window->axes, window->steps.data))
        return 0;
    return dlc_expr_simplify(pool, dlc_expr_substitute(pool, value, with, kernel->axes.n), &ranges);
}

dlc_expr dlc_schedule_windowed(dlc_schedule *schedule, dlc_expr value, const dlc_ids *axes)
{
    for (uint32_t i = 0; i < axes->n && value; i++) {
        const dlc_schedule_window *window = dlc_schedule_window_of(schedule, axes->data[i]);
        if (window)
            value = in_window(schedule, value, window);
    }
    return value;
}
