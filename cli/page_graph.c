/*
 * The picture of a plan: a box per step in the order they run, in rows like text, and an edge per
 * value between them. Blocks of equal kernels that follow each other are drawn once, on a strip that
 * says how often they run. Edges leave a box at its lower side and run in the gutter between two
 * rows, each in a lane of its own while there are lanes; the thickness says how many bytes.
 */
#include "cli/page.h"

#include <math.h>
#include <string.h>

enum {
    COLUMNS = 7,
    PITCH_X = 195,
    BOX_W = 172,
    BOX_H = 64,
    GUTTER = 38,
    PITCH_Y = BOX_H + GUTTER,
    TOP = 14,
    LANES = 7,
    MOST_PERIOD = 128
};

typedef struct {
    uint32_t step;   /* the first of those it stands for */
    uint32_t repeat; /* how many */
    uint32_t block;  /* 1 …: which repeated block it is part of; 0: none */
    double us, flops, bytes;
} box;

typedef struct {
    uint32_t from, to; /* boxes */
    const dlc_page_link *link; /* the largest of them */
    double bytes;
} edge;

typedef struct {
    const dlc_page *page;
    dlc_str *out;
    dlc_vec(box) boxes;
    dlc_vec(edge) edges;
    uint32_t *box_of; /* by step */
    uint32_t *nleft, *nlane; /* edges drawn so far: by box they leave, by gutter */
    double most_us, most_bytes;
} picture;

/* ---- folding ---- */

static int is_same(const dlc_page *page, uint32_t a, uint32_t b)
{
    const dlc_page_step *x = &page->steps.data[a], *y = &page->steps.data[b];
    return x->code == y->code && !strcmp(x->does, y->does);
}

/* How often the `period` steps from `at` on stand there one behind the other. */
static uint32_t count_repeats(const dlc_page *page, uint32_t at, uint32_t period)
{
    uint32_t n = period;
    while (at + n < page->steps.n && is_same(page, at + n, at + n % period))
        n++;
    return n / period;
}

static void add_box(picture *p, uint32_t at, uint32_t period, uint32_t repeat, uint32_t block)
{
    box b = {.step = at, .repeat = repeat, .block = block};
    for (uint32_t r = 0; r < repeat; r++) {
        const dlc_page_step *step = &p->page->steps.data[at + r * period];
        b.us += step->us;
        b.flops += step->flops;
        b.bytes += step->bytes;
        p->box_of[at + r * period] = p->boxes.n;
    }
    p->most_us = b.us > p->most_us ? b.us : p->most_us;
    dlc_vec_push(p->page->arena, &p->boxes, b);
}

static void fold(picture *p)
{
    uint32_t n = p->page->steps.n, nblocks = 0;
    for (uint32_t at = 0; at < n;) {
        uint32_t best = 1, repeat = 1;
        for (uint32_t period = 1; period <= MOST_PERIOD && at + 2 * period <= n; period++) {
            uint32_t count = count_repeats(p->page, at, period);
            if ((count - 1) * period > (repeat - 1) * best) {
                best = period;
                repeat = count;
            }
        }
        nblocks += repeat > 1;
        for (uint32_t i = 0; i < best; i++)
            add_box(p, at + i, best, repeat, repeat > 1 ? nblocks : 0);
        at += best * repeat;
    }
}

/* One edge per pair of boxes; from one repetition to the next there is none. */
static void collect_edges(picture *p)
{
    for (uint32_t i = 0; i < p->page->links.n; i++) {
        const dlc_page_link *link = &p->page->links.data[i];
        uint32_t from = p->box_of[link->from], to = p->box_of[link->to], k = 0;
        if (from >= to)
            continue;
        while (k < p->edges.n && (p->edges.data[k].from != from || p->edges.data[k].to != to))
            k++;
        if (k == p->edges.n)
            dlc_vec_push(p->page->arena, &p->edges, ((edge){from, to, link, 0}));
        edge *e = &p->edges.data[k];
        e->bytes += link->bytes;
        if (link->bytes > e->link->bytes || (link->tag && !e->link->tag))
            e->link = link;
        p->most_bytes = e->bytes > p->most_bytes ? e->bytes : p->most_bytes;
    }
}

/* ---- places ---- */

static int left_of(uint32_t b)
{
    return (int)(b % COLUMNS) * PITCH_X;
}

static int top_of(uint32_t b)
{
    return TOP + (int)(b / COLUMNS) * PITCH_Y;
}

/* The next lane of the gutter below a row. */
static int lane_below(picture *p, uint32_t row)
{
    return TOP + (int)row * PITCH_Y + BOX_H + 5 + 4 * (int)(p->nlane[row]++ % LANES);
}

/* ---- drawing ---- */

static void draw_strips(picture *p)
{
    for (uint32_t b = 0; b < p->boxes.n; b++) {
        const box *at = &p->boxes.data[b];
        uint32_t end = b;
        if (!at->block)
            continue;
        while (end + 1 < p->boxes.n && p->boxes.data[end + 1].block == at->block &&
               (end + 1) % COLUMNS)
            end++;
        int is_start = !b || p->boxes.data[b - 1].block != at->block;
        dlc_str_printf(p->out, "<rect x='%d' y='%d' width='%d' height='%d' rx='6' fill='#eef1f5'/>",
                       left_of(b) - 5, top_of(b) - 13, left_of(end) - left_of(b) + BOX_W + 10,
                       BOX_H + 18);
        dlc_str_printf(p->out, "<text x='%d' y='%d' class='s'>%s %u times</text>\n", left_of(b),
                       top_of(b) - 3, is_start ? "these run" : "…", at->repeat);
        b = end;
    }
}

static void draw_tag(picture *p, const edge *e, int x, int y)
{
    if (e->link->tag)
        dlc_str_printf(p->out,
                       "<circle cx='%d' cy='%d' r='8' fill='#fff' stroke='%s'/><text x='%d' y='%d' "
                       "class='t' text-anchor='middle'>%u</text>",
                       x, y, dlc_page_stroke(e->link), x, y + 4, e->link->tag);
}

static void draw_head(picture *p, const edge *e, int x, int y, int is_right)
{
    dlc_str_printf(p->out, "<path d='M%d %dl%s' fill='%s'/>", x, y,
                   is_right ? "-7 -4v8z" : "-4 -7h8z", dlc_page_stroke(e->link));
}

static void open_edge(picture *p, const edge *e)
{
    const dlc_page_link *link = e->link;
    dlc_str_add(p->out, "<g><title>");
    dlc_page_text(p->out, link->value, 120);
    dlc_str_add(p->out, " ");
    dlc_page_text(p->out, link->type, 80);
    dlc_str_add(p->out, ", ");
    dlc_page_bytes(p->out, link->bytes);
    dlc_str_printf(p->out, "\n%s: ", *link->reason ? link->reason : "between kernels");
    dlc_page_text(p->out, link->text, 300);
    dlc_str_printf(p->out, "</title><path fill='none' stroke='%s' stroke-width='%.1f' d='",
                   dlc_page_stroke(link),
                   1 + 4 * sqrt(e->bytes / (p->most_bytes > 0 ? p->most_bytes : 1)));
}

/* From the lower side of one box along the gutter to another's upper side, by a gap between columns where rows lie between. */
static void draw_detour(picture *p, const edge *e)
{
    uint32_t from_row = e->from / COLUMNS, to_row = e->to / COLUMNS;
    int start = left_of(e->from) + BOX_W / 2 + 12 * (int)(1 + p->nleft[e->from]++ % 6);
    int end = left_of(e->to) + BOX_W / 2 - 14 * (int)(1 + (e->to - e->from) % 5);
    int y = lane_below(p, from_row), top = top_of(e->to);
    open_edge(p, e);
    dlc_str_printf(p->out, "M%d %dV%d", start, top_of(e->from) + BOX_H, y);
    if (to_row > from_row + 1) {
        int gap = left_of(e->to) - 6 - 3 * (int)(e->from % 4);
        dlc_str_printf(p->out, "H%dV%d", gap, lane_below(p, to_row - 1));
    }
    if (to_row == from_row)
        top += BOX_H;
    dlc_str_printf(p->out, "H%dV%d'/>", end, top);
    if (to_row == from_row)
        dlc_str_printf(p->out, "<path d='M%d %dl-4 7h8z' fill='%s'/>", end, top,
                       dlc_page_stroke(e->link));
    else
        draw_head(p, e, end, top, 0);
    draw_tag(p, e, start + (end - start) * (int)(3 + e->link->tag) / 16, y);
    dlc_str_add(p->out, "</g>\n");
}

static void draw_edge(picture *p, const edge *e)
{
    int y = top_of(e->from) + BOX_H / 2, right = left_of(e->from) + BOX_W;
    if (e->to != e->from + 1 || e->to % COLUMNS == 0) {
        draw_detour(p, e);
        return;
    }
    open_edge(p, e);
    dlc_str_printf(p->out, "M%d %dH%d'/>", right, y, left_of(e->to) - 5);
    draw_head(p, e, left_of(e->to), y, 1);
    draw_tag(p, e, right + 9, y - 12);
    dlc_str_add(p->out, "</g>\n");
}

static void add_times(dlc_str *out, const box *b)
{
    if (b->repeat > 1)
        dlc_str_printf(out, "%u × ", b->repeat);
}

static void describe(dlc_str *out, const dlc_page_step *step, const box *b)
{
    dlc_str_add(out, "<g><title>");
    dlc_page_text(out, step->name, 300);
    dlc_str_printf(out, "\n%s -> %s", step->does, step->result);
    if (step->bound.roof)
        dlc_str_printf(out, "\n%.0f %% of %s", 100 * step->bound.share, step->bound.roof);
    if (b->repeat > 1)
        dlc_str_printf(out, "\nthe first of %u equal ones", b->repeat);
    dlc_str_add(out, "</title>");
}

static void draw_line(picture *p, int x, int y, const char *class)
{
    dlc_str_printf(p->out, "<text x='%d' y='%d' class='%s'>", x + 6, y, class);
}

static void draw_box(picture *p, uint32_t i)
{
    const box *b = &p->boxes.data[i];
    const dlc_page_step *step = &p->page->steps.data[b->step];
    int x = left_of(i), y = top_of(i);
    double us = b->us / b->repeat;
    describe(p->out, step, b);
    dlc_str_printf(p->out, "<rect class='box' x='%d' y='%d' width='%d' height='%d' rx='4' fill='%s'/>",
                   x, y, BOX_W, BOX_H, dlc_page_colour(p->page, b->step));
    draw_line(p, x, y + 15, "b");
    dlc_page_step_name(p->out, step, 20);
    dlc_str_add(p->out, "</text>");
    draw_line(p, x, y + 29, "s");
    dlc_str_printf(p->out, "%s ", step->does);
    dlc_page_text(p->out, step->result, 24);
    dlc_str_add(p->out, "</text>");
    draw_line(p, x, y + 42, "s");
    dlc_str_printf(p->out, "%.4g MFLOP, ", b->flops / b->repeat / 1e6);
    dlc_page_bytes(p->out, b->bytes / b->repeat);
    dlc_str_add(p->out, "</text>");
    draw_line(p, x, y + 56, "b");
    add_times(p->out, b);
    dlc_page_time(p->out, us);
    dlc_str_printf(p->out, " (%.1f %%)</text>", p->page->total_us > 0 ? 100 * b->us / p->page->total_us : 0);
    dlc_str_printf(p->out, "<rect x='%d' y='%d' width='%.1f' height='4' fill='#c0392b'/></g>\n", x,
                   y + BOX_H - 4, BOX_W * (p->most_us > 0 ? b->us / p->most_us : 0));
}

void dlc_page_graph(const dlc_page *page, dlc_str *out)
{
    picture p = {.page = page, .out = out};
    uint32_t nrows;
    p.box_of = dlc_new_array(page->arena, uint32_t, page->steps.n + 1);
    fold(&p);
    nrows = (p.boxes.n + COLUMNS - 1) / COLUMNS;
    p.nleft = dlc_new_array(page->arena, uint32_t, p.boxes.n + 1);
    p.nlane = dlc_new_array(page->arena, uint32_t, nrows + 1);
    collect_edges(&p);
    dlc_str_printf(out, "<svg id='graph' data-boxes='%u' viewBox='-6 0 %d %d' width='%d'>\n",
                   p.boxes.n, DLC_PAGE_WIDTH, TOP + (int)nrows * PITCH_Y, DLC_PAGE_WIDTH);
    draw_strips(&p);
    for (uint32_t i = 0; i < p.edges.n; i++)
        draw_edge(&p, &p.edges.data[i]);
    for (uint32_t i = 0; i < p.boxes.n; i++)
        draw_box(&p, i);
    dlc_str_add(out, "</svg>\n");
}
