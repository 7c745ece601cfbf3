/* Roofline, timeline and memory plan: axes and rectangles of plain SVG. */
#include "cli/page.h"

#include <math.h>
#include <string.h>

/* ---- roofline: rate over intensity, both logarithmic ---- */

enum { ROOF_W = 660, ROOF_H = 400, ROOF_LEFT = 52, ROOF_BOTTOM = 34, ROOF_TOP = 10, ROOF_RIGHT = 12 };

typedef struct {
    double x0, x1, y0, y1; /* logarithms of operations per byte, and per microsecond */
} frame;

static double across(const frame *f, double intensity)
{
    return ROOF_LEFT + (log10(intensity) - f->x0) / (f->x1 - f->x0) * (ROOF_W - ROOF_LEFT - ROOF_RIGHT);
}

static double down(const frame *f, double rate)
{
    return ROOF_H - ROOF_BOTTOM - (log10(rate) - f->y0) / (f->y1 - f->y0) * (ROOF_H - ROOF_BOTTOM - ROOF_TOP);
}

static int has_point(const dlc_page_step *step)
{
    return step->code >= 0 && step->flops > 0 && step->bytes > 0 && step->us > 0;
}

/* The lowest peak, and those that some step is bound by. */
static int is_drawn(const dlc_page *page, const dlc_roof *peak)
{
    int is_lowest = 1;
    for (uint32_t i = 0; i < page->roofs.peaks.n; i++)
        is_lowest &= page->roofs.peaks.data[i].per_us >= peak->per_us;
    for (uint32_t i = 0; i < page->steps.n && !is_lowest; i++)
        if (page->steps.data[i].bound.roof == peak->name)
            return 1;
    return is_lowest;
}

/* Whole decades around all points and the highest roof. */
static frame frame_of(const dlc_page *page)
{
    frame f = {-1, 2, 5, 5};
    for (uint32_t i = 0; i < page->roofs.peaks.n; i++)
        if (is_drawn(page, &page->roofs.peaks.data[i]))
            f.y1 = fmax(f.y1, log10(page->roofs.peaks.data[i].per_us) + 0.15);
    for (uint32_t i = 0; i < page->steps.n; i++) {
        const dlc_page_step *step = &page->steps.data[i];
        if (!has_point(step))
            continue;
        f.x0 = fmin(f.x0, floor(log10(step->flops / step->bytes)));
        f.x1 = fmax(f.x1, ceil(log10(step->flops / step->bytes)));
        f.y0 = fmin(f.y0, floor(log10(step->flops / step->us)));
        f.y1 = fmax(f.y1, log10(step->flops / step->us) + 0.15);
    }
    f.x0 = fmax(f.x0, -4);
    f.y0 = fmax(f.y0, f.y1 - 7);
    return f;
}

static void draw_grid(const frame *f, dlc_str *out)
{
    for (double e = ceil(f->x0); e <= f->x1; e++)
        dlc_str_printf(out,
                       "<path class='grid' d='M%.1f %dV%d'/><text class='s' x='%.1f' y='%d' "
                       "text-anchor='middle'>%g</text>\n",
                       across(f, pow(10, e)), ROOF_TOP, ROOF_H - ROOF_BOTTOM, across(f, pow(10, e)),
                       ROOF_H - ROOF_BOTTOM + 14, pow(10, e));
    for (double e = ceil(f->y0); e <= f->y1; e++)
        dlc_str_printf(out,
                       "<path class='grid' d='M%d %.1fH%d'/><text class='s' x='%d' y='%.1f' "
                       "text-anchor='end'>%g</text>\n",
                       ROOF_LEFT, down(f, pow(10, e)), ROOF_W - ROOF_RIGHT, ROOF_LEFT - 5,
                       down(f, pow(10, e)) + 4, pow(10, e - 3));
    dlc_str_printf(out,
                   "<text class='s' x='%d' y='%d' text-anchor='middle'>operations per byte moved</text>"
                   "<text class='s' transform='translate(11 %d) rotate(-90)' text-anchor='middle'>"
                   "Gop/s</text>\n",
                   (ROOF_W + ROOF_LEFT) / 2, ROOF_H - 4, ROOF_H / 2);
}

/* A level's line ends at the highest peak. */
static void draw_level(const frame *f, const dlc_roof *level, double peak, dlc_str *out)
{
    double begin = fmax(pow(10, f->x0), pow(10, f->y0) / level->per_us);
    double end = fmin(pow(10, f->x1), peak / level->per_us);
    if (begin >= end)
        return;
    double x0 = across(f, begin), y0 = down(f, begin * level->per_us);
    double x1 = across(f, end), y1 = down(f, end * level->per_us);
    dlc_str_printf(out, "<path class='roof' d='M%.1f %.1fL%.1f %.1f'/>", x0, y0, x1, y1);
    dlc_str_printf(out,
                   "<text class='s' transform='translate(%.1f %.1f) rotate(%.1f)'>%s, %.0f GB/s</text>\n",
                   x0 + 0.12 * (x1 - x0) - 3, y0 + 0.12 * (y1 - y0) - 4,
                   atan2(y1 - y0, x1 - x0) * 57.29578, level->name, level->per_us / 1e3);
}

static void draw_roofs(const dlc_page *page, const frame *f, dlc_str *out)
{
    double peak = 0;
    for (uint32_t i = 0; i < page->roofs.peaks.n; i++) {
        const dlc_roof *roof = &page->roofs.peaks.data[i];
        if (!is_drawn(page, roof))
            continue;
        peak = fmax(peak, roof->per_us);
        dlc_str_printf(out,
                       "<path class='roof' d='M%d %.1fH%d'/><text class='s' x='%d' y='%.1f' "
                       "text-anchor='end'>%s, %.0f Gop/s</text>\n",
                       ROOF_LEFT, down(f, roof->per_us), ROOF_W - ROOF_RIGHT, ROOF_W - ROOF_RIGHT - 4,
                       down(f, roof->per_us) - 4, roof->name, roof->per_us / 1e3);
    }
    for (uint32_t i = 0; i < page->roofs.levels.n; i++)
        draw_level(f, &page->roofs.levels.data[i], peak, out);
}

/* The area of a point is its share of the time. */
static void draw_point(const dlc_page *page, const frame *f, uint32_t i, dlc_str *out)
{
    const dlc_page_step *step = &page->steps.data[i];
    double share = page->total_us > 0 ? step->us / page->total_us : 0;
    dlc_str_printf(out, "<circle cx='%.1f' cy='%.1f' r='%.1f' fill='%s' stroke='#333' fill-opacity='.8'><title>",
                   across(f, fmax(step->flops / step->bytes, pow(10, f->x0))),
                   down(f, fmax(step->flops / step->us, pow(10, f->y0))), 3 + 26 * sqrt(share) / 2,
                   dlc_page_colour(page, i));
    dlc_page_text(out, step->name, 200);
    dlc_str_printf(out, "\n%.1f Gop/s", step->flops / step->us / 1e3);
    if (step->bound.roof)
        dlc_str_printf(out, ", %.0f %% of %s", 100 * step->bound.share, step->bound.roof);
    dlc_str_add(out, "</title></circle>\n");
}

void dlc_page_roofline(const dlc_page *page, dlc_str *out)
{
    const uint32_t *order = dlc_page_by_time(page);
    frame f = frame_of(page);
    dlc_str_printf(out, "<svg id='roofline' viewBox='0 0 %d %d' width='%d'>\n", ROOF_W, ROOF_H, ROOF_W);
    draw_grid(&f, out);
    draw_roofs(page, &f, out);
    for (uint32_t i = 0; i < page->steps.n; i++) /* small ones in front */
        if (has_point(&page->steps.data[order[i]]))
            draw_point(page, &f, order[i], out);
    dlc_str_add(out, "</svg>\n");
}

/* ---- ticks ---- */

/* A round number, so that `most` has some ten of it at the most. */
static double tick_of(double most)
{
    double tick = pow(10, floor(log10(most > 0 ? most : 1)) - 1);
    static const double factors[] = {1, 2, 5, 10, 20};
    for (int i = 0; i < 5; i++)
        if (most / (tick * factors[i]) <= 11)
            return tick * factors[i];
    return tick * 20;
}

/* ---- timeline ---- */

void dlc_page_timeline(const dlc_page *page, dlc_str *out)
{
    enum { BAR = 54, HEIGHT = 82 };
    const dlc_page_step *steps = page->steps.data;
    double end = page->steps.n ? steps[page->steps.n - 1].begin_us + steps[page->steps.n - 1].us : 0;
    double scale = end > 0 ? DLC_PAGE_WIDTH / end : 0, tick = tick_of(end);
    dlc_str_printf(out, "<svg id='timeline' viewBox='0 0 %d %d' width='%d'>\n", DLC_PAGE_WIDTH, HEIGHT,
                   DLC_PAGE_WIDTH);
    for (uint32_t i = 0; i < page->steps.n; i++) {
        double x = steps[i].begin_us * scale, width = steps[i].us * scale;
        dlc_str_printf(out,
                       "<g><title>%u. ", i + 1);
        dlc_page_text(out, steps[i].name, 200);
        dlc_str_add(out, "\n");
        dlc_page_time(out, steps[i].us);
        dlc_str_printf(out,
                       "</title><rect class='box' x='%.2f' y='0' width='%.2f' height='%d' fill='%s'/>",
                       x, width, BAR, dlc_page_colour(page, i));
        if (width > 44) {
            dlc_str_printf(out, "<text class='s' x='%.1f' y='22'>", x + 3);
            dlc_page_text(out, dlc_page_last(steps[i].name, (uint32_t)(width / 6.2)), (uint32_t)(width / 6.2));
            dlc_str_printf(out, "</text><text class='s' x='%.1f' y='38'>", x + 3);
            dlc_page_time(out, steps[i].us);
            dlc_str_add(out, "</text>");
        }
        dlc_str_add(out, "</g>\n");
    }
    for (double at = 0; at <= end && scale > 0; at += tick) {
        dlc_str_printf(out, "<path class='axis' d='M%.1f %dv5'/><text class='s' x='%.1f' y='%d'>", at * scale,
                       BAR, at * scale + 2, BAR + 18);
        dlc_page_time(out, at);
        dlc_str_add(out, "</text>\n");
    }
    dlc_str_add(out, "</svg>\n");
}

/* ---- memory ---- */

enum { MEMORY_H = 230, MEMORY_LEFT = 64, MEMORY_BOTTOM = 20 };

static double height_of(const dlc_page *page, double bytes)
{
    return page->arena_bytes > 0 ? bytes / page->arena_bytes * (MEMORY_H - MEMORY_BOTTOM - 10) : 0;
}

static void draw_life(const dlc_page *page, const dlc_page_life *life, dlc_str *out)
{
    double pitch = (double)(DLC_PAGE_WIDTH - MEMORY_LEFT) / (page->steps.n ? page->steps.n : 1);
    double x = MEMORY_LEFT + life->first * pitch, width = (life->last - life->first + 1) * pitch;
    double height = height_of(page, life->bytes);
    double y = MEMORY_H - MEMORY_BOTTOM - height_of(page, life->offset) - height;
    dlc_str_add(out, "<g><title>");
    dlc_page_text(out, life->value, 200);
    dlc_str_printf(out, " %s\n", life->type);
    dlc_page_bytes(out, life->bytes);
    dlc_str_printf(out, " from step %u to %u", life->first + 1, life->last + 1);
    dlc_str_printf(out, "</title><rect class='box' x='%.1f' y='%.1f' width='%.1f' height='%.1f' fill='%s'/>", x,
                   y, width, height, dlc_page_colour(page, life->first));
    if (width > 60 && height > 24) {
        dlc_str_printf(out, "<text class='s' x='%.1f' y='%.1f'>", x + 3, y + 12);
        dlc_page_text(out, dlc_page_last(life->value, (uint32_t)(width / 6.2)), (uint32_t)(width / 6.2));
        dlc_str_printf(out, "</text><text class='s' x='%.1f' y='%.1f'>", x + 3, y + 23);
        dlc_page_bytes(out, life->bytes);
        dlc_str_add(out, "</text>");
    }
    dlc_str_add(out, "</g>\n");
}

void dlc_page_memory(const dlc_page *page, dlc_str *out)
{
    double tick = tick_of(page->arena_bytes) * 2;
    double pitch = (double)(DLC_PAGE_WIDTH - MEMORY_LEFT) / (page->steps.n ? page->steps.n : 1);
    dlc_str_printf(out, "<svg id='memory' viewBox='0 0 %d %d' width='%d'>\n", DLC_PAGE_WIDTH, MEMORY_H,
                   DLC_PAGE_WIDTH);
    for (double at = 0; at <= page->arena_bytes && page->arena_bytes > 0; at += tick) {
        double y = MEMORY_H - MEMORY_BOTTOM - height_of(page, at);
        dlc_str_printf(out, "<path class='grid' d='M%d %.1fH%d'/><text class='s' x='%d' y='%.1f' text-anchor='end'>",
                       MEMORY_LEFT, y, DLC_PAGE_WIDTH, MEMORY_LEFT - 5, y + 4);
        dlc_page_bytes(out, at);
        dlc_str_add(out, "</text>\n");
    }
    for (uint32_t i = 0; i < page->lives.n; i++)
        draw_life(page, &page->lives.data[i], out);
    for (uint32_t i = 0; i < page->steps.n; i += page->steps.n / 26 + 1)
        dlc_str_printf(out, "<text class='s' x='%.1f' y='%d'>%u</text>\n", MEMORY_LEFT + i * pitch, MEMORY_H - 6,
                       i + 1);
    dlc_str_add(out, "</svg>\n");
}
