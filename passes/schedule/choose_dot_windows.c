/*
 * Rows of an image, by lines of it. In tile registers: a register loads rows that lie at equal distances, as the pixels of one line of an image
 * do: where each has pixels of one line, nothing but the image itself is read, by every tap of a convolution in turn. What is padded is copied,
 * border included, by lines that the taps share; a copy by windows has each pixel as often as there are taps, and comes from L2.
 */
#include "passes/schedule/choose_dot.h"

enum {
    LEAST_ROWS = 8, /* of a register: those of columns that are loaded beside take their time */
    LEAST_LONE = 13 /* of a register that has its columns to itself */
};

typedef dlc_dot_choice dot;

/* An index of the rows' factor: a sum of several of its axes, or of one. */
typedef struct {
    dlc_ids axes;
    int64_t steps[DLC_MAX_RANK];
} window;

/* The index by axes that are no batches. False: it is no such sum. */
static int window_of(const dot *d, dlc_expr index, window *w)
{
    dlc_pool *pool = d->c->kernel->pool;
    const dlc_ids *lists[] = {&d->form.m, &d->form.k};
    int has_one = 0;
    *w = (window){{0}, {0}};
    for (uint32_t l = 0; l < 2; l++)
        for (uint32_t i = 0; i < lists[l]->n; i++) {
            dlc_expr coefficient, rest;
            uint32_t axis = lists[l]->data[i];
            if (!dlc_expr_uses_axis(pool, index, axis))
                continue;
            if (w->axes.n == DLC_MAX_RANK || !dlc_expr_linear(pool, index, axis, &coefficient, &rest) ||
                !dlc_expr_is_int(pool, coefficient, &w->steps[w->axes.n]) || w->steps[w->axes.n] < 1)
                return 0;
            has_one |= w->steps[w->axes.n] == 1;
            dlc_vec_push(d->c->arena, &w->axes, axis);
        }
    return w->axes.n < 2 || has_one;
}

/* The window that adds up the axis, among the indices of the factor; its axes may be none. False: some index is no sum. */
static int window_with(const dot *d, uint32_t axis, window *found)
{
    const dlc_pool *pool = d->c->kernel->pool;
    uint32_t times = 0;
    *found = (window){{0}, {0}};
    for (uint32_t i = 0; i < dlc_load_rank(pool, d->form.a); i++) {
        window w;
        if (!window_of(d, dlc_arg(pool, d->form.a, i), &w))
            return 0;
        if (dlc_ids_find(&w.axes, axis, NULL)) {
            times++;
            if (w.axes.n > 1)
                *found = w;
        }
    }
    return times < 2;
}

/* Each axis is in one index, and what several are added up in says all that the factor, its border included, depends on of them. */
static int are_windows(const dot *d)
{
    const dlc_ids *lists[] = {&d->form.m, &d->form.k};
    window w;
    for (uint32_t l = 0; l < 2; l++)
        for (uint32_t i = 0; i < lists[l]->n; i++)
            if (!window_with(d, lists[l]->data[i], &w) || (w.axes.n && !dlc_schedule_counts(d->c->schedule, d->form.a, &w.axes, w.steps)))
                return 0;
    return 1;
}

void dlc_dot_in_windows(const dot *d, dlc_ids *axes)
{
    dlc_ids all = {0};
    for (uint32_t i = 0; i < axes->n; i++) {
        window w = {0};
        uint32_t axis = axes->data[i];
        if (d->has_lines && axis != d->part && window_with(d, axis, &w) && w.axes.n)
            axis = dlc_schedule_window_axis(d->c->schedule, &w.axes, w.steps);
        if (!dlc_ids_find(&all, axis, NULL))
            dlc_vec_push(d->c->arena, &all, axis);
    }
    *axes = all;
}

/* Points of the window behind its first. */
static double reach_of(const dot *d, const window *w, uint32_t but)
{
    double reach = 0;
    for (uint32_t i = 0; i < w->axes.n; i++)
        reach += w->axes.data[i] == but ? 0 : (double)(w->steps[i] * (d->c->extent[w->axes.data[i]] - 1));
    return reach;
}

dlc_dot_lines dlc_dot_lines_of(const dot *d)
{
    const dlc_pool *pool = d->c->kernel->pool;
    uint32_t outer = d->form.m.data[d->form.m.n > 1 ? d->form.m.n - 2 : 0];
    dlc_dot_lines lines = {.step = 1, .bytes = dlc_dtype_bytes((dlc_dtype)dlc_dots[d->row].a) * dlc_dots[d->row].parts};
    for (uint32_t i = 0; i < dlc_load_rank(pool, d->form.a); i++) {
        window w;
        uint32_t at;
        if (!window_of(d, dlc_arg(pool, d->form.a, i), &w))
            continue;
        if (dlc_ids_find(&w.axes, outer, &at)) {
            lines.step = w.steps[at];
            lines.halo = reach_of(d, &w, outer);
        } else {
            lines.bytes *= 1 + reach_of(d, &w, DLC_NO_AXIS);
        }
    }
    return lines;
}

/* As many as share a line equally. */
static int64_t rows_of_line(const dot *d)
{
    int64_t line = d->c->extent[d->form.m.data[d->form.m.n - 1]], rows = DLC_TILE_ROWS;
    if (d->form.m.n == 1)
        return rows;
    while (line % rows)
        rows--;
    return rows;
}

static int64_t step_of(const window *w, uint32_t axis)
{
    uint32_t at;
    return dlc_ids_find(&w->axes, axis, &at) ? w->steps[at] : 0;
}

/* Points of K that lie together in the image: those of the innermost axis, and of a window right around it. */
static int64_t run_of(const dot *d)
{
    uint32_t n = d->order.n, last = d->order.data[n - 1];
    int64_t run = d->c->extent[last];
    window w;
    if (n > 1 && window_with(d, last, &w) && !w.axes.n && window_with(d, d->order.data[n - 2], &w) && step_of(&w, d->order.data[n - 2]) == 1)
        run *= d->c->extent[d->order.data[n - 2]];
    return run;
}

/* What registers that a run does not fill cost a row, beside copying it by runs. */
static int is_worth_lines(const dot *d)
{
    int64_t run = run_of(d), granules = run / d->granule, most = DLC_TILE_BYTES / (d->granule * dlc_dtype_bytes((dlc_dtype)dlc_dots[d->row].a));
    int64_t chunks = (granules + most - 1) / most;
    if (run % d->granule || granules % chunks)
        return 0;
    double runs = d->depth / (double)run, all = (double)chunks * runs, copied = runs * (DLC_RUN_CYCLES + DLC_VECTOR_CYCLES * (double)chunks);
    double further = all - dlc_dot_count_of(d->depth, d->granule * most);
    return further * dlc_dot_pairs(d->row) * d->columns / DLC_TILE_COLUMNS <= copied;
}

/* Rows of one image, or of one plane of it: the others are batches. */
static void take_image(dot *d)
{
    dlc_ids rows = {0}, batch = {0};
    for (uint32_t i = 0; i < d->form.batch.n; i++)
        dlc_vec_push(d->c->arena, &batch, d->form.batch.data[i]);
    for (uint32_t i = 0; i < d->form.m.n; i++)
        dlc_vec_push(d->c->arena, i + 2 < d->form.m.n ? &batch : &rows, d->form.m.data[i]);
    dlc_choose_sort(d->c, &batch);
    d->form.m = rows;
    d->form.batch = batch;
    d->rows = dlc_choose_points(d->c, &rows);
}

int dlc_dot_takes_lines(dot *d)
{
    dot before = *d;
    if (!d->form.m.n || !dlc_choose_are_known(d->c, &d->form.m))
        return 0;
    if (d->form.m.n > 2)
        take_image(d);
    int64_t rows = rows_of_line(d), high = d->m / DLC_TILE_ROWS, points = (int64_t)d->rows;
    while (high > 1 && d->form.m.n > 1 && points % (high * rows))
        high--;
    if (rows < (high > 1 ? LEAST_ROWS : LEAST_LONE) || !are_windows(d) || !is_worth_lines(d)) {
        *d = before;
        return 0;
    }
    d->m = high * rows;
    d->has_lines = 1;
    return 1;
}

/* L2, for one line of rows. */
static int has_room(const dot *d)
{
    dlc_dot_lines image = dlc_dot_lines_of(d);
    return ((double)image.step + image.halo) * image.bytes <= d->c->target->l2_bytes / DLC_LINES_SHARE;
}

/*
 * Copied rows by lines of an image, in lanes: taps share the copy's pixels, it is a third of one by windows, and a tile that is a line, or a part
 * of one, meets taps in the border with all of its rows, which leaves them out (choose_padding.c). Lines are cut equally, where that leaves
 * tiles as high as sums need that hide each other's latency. `most`: rows that fit.
 * (Emerald Rapids, bytes, 3x3 of 256 channels at 14x14: .87 of the time, of 512 at 7x7 .95; .92 both with two threads.) Not where a line's copy
 * is much of L2.
 */
int dlc_dot_shares_lines(dot *d, int64_t most)
{
    enum { LEAST_SUMS = 14 }; /* registers of a tile: three products are to have two loads at most */
    dot before = *d;
    uint32_t nrows = d->form.m.n, n = d->order.n, last = n ? d->order.data[n - 1] : 0;
    window w;
    if (nrows < 2 || n < 2 || d->is_widened || d->part != DLC_NO_AXIS || !dlc_choose_is_known(d->c, d->form.m.data[nrows - 1]) ||
        !dlc_choose_is_known(d->c, d->form.m.data[nrows - 2]) || !dlc_choose_are_known(d->c, &d->form.k))
        return 0;
    take_image(d);
    int64_t line = d->c->extent[d->form.m.data[1]], rows = line < most ? line : most;
    while (line % rows)
        rows--;
    int64_t vectors = d->n / d->width;
    int is_high = rows * vectors >= LEAST_SUMS && 3 * (rows + vectors) <= 2 * rows * vectors;
    if (!is_high || !are_windows(d) || !window_with(d, last, &w) || w.axes.n || d->c->extent[last] % d->granule || !has_room(d)) {
        *d = before;
        return 0;
    }
    d->m = rows;
    d->has_lines = 1;
    return 1;
}
