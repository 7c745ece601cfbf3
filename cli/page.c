/* The page around the pictures: style, sentences, tables. */
#include "cli/page.h"

static const char style[] =
    "body{margin:16px auto;width:1360px;font:13px system-ui,sans-serif;color:#222;background:#fff}"
    "h1{font-size:20px;margin:0 0 2px}h2{font-size:15px;margin:14px 0 5px}p{margin:2px 0 8px}"
    "svg{display:block;font-family:system-ui,sans-serif}.b{font-size:11.5px;font-weight:600}"
    ".s{font-size:10.5px;fill:#444}.t{font-size:10px;font-weight:700}.box{stroke:#667;stroke-width:.6}"
    ".grid{stroke:#dde;fill:none}.axis{stroke:#555}.roof{stroke:#888;fill:none;stroke-dasharray:5 3}"
    "table{border-collapse:collapse}td,th{padding:2px 9px 2px 0;text-align:left;vertical-align:top;"
    "border-bottom:1px solid #e4e6ea}td.n,th.n{text-align:right;white-space:nowrap}"
    ".tiles{display:flex;gap:10px;margin:8px 0}.tile{flex:1;background:#f5f6f8;border-radius:6px;padding:7px 10px}"
    ".tile b{display:block;font-size:17px}.two{display:flex;gap:20px}.two>div{width:670px}"
    ".key{display:inline-block;width:11px;height:11px;border:1px solid #667;margin-right:5px}"
    "summary{cursor:pointer;font-weight:600;margin-top:12px}";

static void open_tile(dlc_str *out, const char *title)
{
    dlc_str_printf(out, "<div class='tile'>%s<b>", title);
}

static void add_bound(dlc_str *out, const dlc_page_step *step)
{
    if (step->bound.roof)
        dlc_str_printf(out, "%.0f %% of %s", 100 * step->bound.share, step->bound.roof);
    else
        dlc_str_add(out, "–");
}

static void add_slowest(const dlc_page *page, dlc_str *out)
{
    const dlc_page_step *step = &page->steps.data[dlc_page_by_time(page)[0]];
    open_tile(out, "slowest kernel");
    dlc_page_step_name(out, step, 26);
    dlc_str_add(out, "</b>");
    dlc_page_time(out, step->us);
    dlc_str_printf(out, ", %.1f %% of the time; ", page->total_us > 0 ? 100 * step->us / page->total_us : 0);
    if (step->bound.roof)
        dlc_str_printf(out, "bound by %s, of which it has %.0f %%", step->bound.roof, 100 * step->bound.share);
    dlc_str_add(out, "</div>\n");
}

static void add_largest(const dlc_page *page, dlc_str *out)
{
    open_tile(out, "largest value between kernels");
    if (!page->links.n) {
        dlc_str_add(out, "none</b></div>\n");
        return;
    }
    const dlc_page_link *link = &page->links.data[dlc_page_by_bytes(page)[0]];
    dlc_page_bytes(out, link->bytes);
    dlc_str_add(out, "</b>");
    dlc_page_step_name(out, &page->steps.data[link->from], 24);
    dlc_str_add(out, " → ");
    dlc_page_step_name(out, &page->steps.data[link->to], 24);
    dlc_str_printf(out, ": %s: ", *link->reason ? link->reason : "no edge of the graph");
    dlc_page_text(out, link->text, 200);
    dlc_str_add(out, "</div>\n");
}

static void add_tiles(const dlc_page *page, dlc_str *out)
{
    double flops = 0;
    for (uint32_t i = 0; i < page->steps.n; i++)
        flops += page->steps.data[i].flops;
    dlc_str_add(out, "<div class='tiles'>\n");
    open_tile(out, page->runs ? "one run" : "one run, estimated");
    dlc_page_time(out, page->total_us);
    dlc_str_printf(out, "</b>%.3g GFLOP at %.4g GFLOP/s, %u step%s</div>\n", flops / 1e9,
                   page->total_us > 0 ? flops / page->total_us / 1e3 : 0, page->steps.n,
                   page->steps.n == 1 ? "" : "s");
    if (page->steps.n)
        add_slowest(page, out);
    if (page->does.n) {
        open_tile(out, "most of the time");
        dlc_str_printf(out, "%s %.1f %%</b>%u of %u steps</div>\n", page->does.data[0].text,
                       page->total_us > 0 ? 100 * page->does.data[0].weight / page->total_us : 0,
                       page->does.data[0].n, page->steps.n);
    }
    add_largest(page, out);
    open_tile(out, "peak memory");
    dlc_page_bytes(out, page->context_bytes + page->constants_bytes);
    dlc_str_add(out, "</b>");
    dlc_page_bytes(out, page->constants_bytes);
    dlc_str_add(out, " of weights, ");
    dlc_page_bytes(out, page->context_bytes);
    dlc_str_add(out, " to run, ");
    dlc_page_bytes(out, page->arena_bytes);
    dlc_str_add(out, " of it for values</div>\n</div>\n");
}

static void add_does(const dlc_page *page, dlc_str *out)
{
    dlc_str_add(out, "<table id='shares'><tr><th>what<th class='n'>steps<th class='n'>time<th class='n'>share<th>\n");
    for (uint32_t i = 0; i < page->does.n && i < DLC_PAGE_NCOLOURS; i++) {
        const dlc_page_row *row = &page->does.data[i];
        double share = page->total_us > 0 ? row->weight / page->total_us : 0;
        dlc_str_printf(out, "<tr><td><span class='key' style='background:%s'></span>%s<td class='n'>%u<td class='n'>",
                       dlc_page_colours[i], row->text, row->n);
        dlc_page_time(out, row->weight);
        dlc_str_printf(out,
                       "<td class='n'>%.1f %%<td><svg width='260' height='12'><rect width='%.1f' height='12' "
                       "fill='%s' class='box'/></svg>\n",
                       100 * share, 260 * share, dlc_page_colours[i]);
    }
    dlc_str_add(out, "</table>\n");
}

static void add_step_row(const dlc_page *page, uint32_t i, dlc_str *out, uint32_t most)
{
    const dlc_page_step *step = &page->steps.data[i];
    dlc_str_printf(out, "<tr><td class='n'>%u<td>", i + 1);
    if (most)
        dlc_page_step_name(out, step, most);
    else
        dlc_page_text(out, step->name, 400);
    dlc_str_printf(out, "<td>%s<td class='n'>", step->does);
    dlc_page_time(out, step->us);
    dlc_str_printf(out, "<td class='n'>%.1f %%<td class='n'>", page->total_us > 0 ? 100 * step->us / page->total_us : 0);
    if (!most) {
        dlc_page_text(out, step->result, 60);
        dlc_str_printf(out, "<td class='n'>%.2f<td class='n'>", step->flops / 1e6);
        dlc_page_bytes(out, step->bytes);
        dlc_str_add(out, "<td class='n'>");
    }
    dlc_str_printf(out, "%.1f<td>", step->us > 0 ? step->flops / step->us / 1e3 : 0);
    add_bound(out, step);
    dlc_str_add(out, "\n");
}

static void add_slow_steps(const dlc_page *page, dlc_str *out)
{
    const uint32_t *order = dlc_page_by_time(page);
    dlc_str_add(out, "<table id='slowest'><tr><th class='n'>step<th>name<th>what<th class='n'>time<th class='n'>share"
                     "<th class='n'>GFLOP/s<th>has\n");
    for (uint32_t i = 0; i < page->steps.n && i < 9; i++)
        add_step_row(page, order[i], out, 30);
    dlc_str_add(out, "</table>\n");
}

static void add_link_row(const dlc_page *page, const dlc_page_link *link, uint32_t times, dlc_str *out)
{
    dlc_str_add(out, "<tr><td class='n'>");
    if (link->tag)
        dlc_str_printf(out, "%u", link->tag);
    dlc_str_add(out, "<td class='n'>");
    if (times > 1)
        dlc_str_printf(out, "%u × ", times);
    dlc_page_bytes(out, link->bytes);
    dlc_str_add(out, "<td>");
    dlc_page_step_name(out, &page->steps.data[link->from], 24);
    dlc_str_add(out, " → ");
    dlc_page_step_name(out, &page->steps.data[link->to], 24);
    dlc_str_printf(out, "<td style='color:%s'>%s<td>", dlc_page_stroke(link),
                   *link->reason ? link->reason : "no edge of the graph");
    dlc_page_text(out, link->text, 200);
    dlc_str_add(out, "\n");
}

/* All of them, or those that the picture numbers, alike ones together. */
static void add_links(const dlc_page *page, dlc_str *out, int are_all)
{
    const uint32_t *order = dlc_page_by_bytes(page);
    dlc_str_add(out, "<table><tr><th class='n'><th class='n'>size<th>from → to<th>why<th>\n");
    for (uint32_t i = 0; i < page->links.n; i++) {
        const dlc_page_link *link = &page->links.data[order[i]];
        if (are_all || link->tag)
            add_link_row(page, link, are_all ? 1 : link->times, out);
    }
    dlc_str_add(out, "</table>\n");
}

static void add_all_steps(const dlc_page *page, dlc_str *out)
{
    dlc_str_printf(out,
                   "<details><summary>all %u steps</summary><table><tr><th class='n'>step<th>nodes<th>what<th "
                   "class='n'>time<th class='n'>share<th class='n'>result<th class='n'>MFLOP<th class='n'>moved<th "
                   "class='n'>GFLOP/s<th>has\n",
                   page->steps.n);
    for (uint32_t i = 0; i < page->steps.n; i++)
        add_step_row(page, i, out, 0);
    dlc_str_printf(out, "</table></details>\n<details><summary>all %u values between steps</summary>", page->links.n);
    add_links(page, out, 1);
    dlc_str_add(out, "</details>\n");
}

static void add_head(const dlc_page *page, dlc_str *out)
{
    dlc_str_add(out, "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><link rel='icon' href='data:,'><title>");
    dlc_page_text(out, page->model, 200);
    dlc_str_printf(out, "</title><style>%s</style></head><body>\n<h1>", style);
    dlc_page_text(out, page->model, 200);
    dlc_str_add(out, "</h1><p>compiled for ");
    dlc_page_text(out, page->target, 80);
    if (page->runs)
        dlc_str_printf(out, "; the median of %u runs on %u thread%s", page->runs, page->threads,
                       page->threads == 1 ? "" : "s");
    else
        dlc_str_add(out, "; it does not run here, so times are the compiler's estimates");
    dlc_page_text(out, page->sizes, 400);
    dlc_str_printf(out, ". dlc %s</p>\n", page->version);
}

void dlc_page_print(const dlc_page *page, dlc_str *out)
{
    add_head(page, out);
    add_tiles(page, out);
    dlc_str_add(out, "<h2>Kernels in the order they run, and what goes between them</h2>\n");
    dlc_page_graph(page, out);
    dlc_str_add(out, "<h2>Largest values between kernels, and why they are not inside one</h2>\n");
    add_links(page, out, 0);
    dlc_str_add(out, "<div class='two'><div><h2>Roofline: what this machine could do, and what the kernels do</h2>\n");
    if (page->roofs.peaks.n)
        dlc_page_roofline(page, out);
    dlc_str_add(out, "</div><div><h2>Where the time goes</h2>\n");
    add_does(page, out);
    dlc_str_add(out, "<h2>Slowest kernels</h2>\n");
    add_slow_steps(page, out);
    dlc_str_add(out, "</div></div>\n<h2>Timeline of one run</h2>\n");
    dlc_page_timeline(page, out);
    dlc_str_add(out, "<h2>Memory plan: which value lies where, from step to step</h2>\n");
    dlc_page_memory(page, out);
    add_all_steps(page, out);
    dlc_str_add(out, "</body></html>\n");
}
