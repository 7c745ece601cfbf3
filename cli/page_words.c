/* Words, numbers and colours of the page. */
#include "cli/page.h"

#include <string.h>

const char *const dlc_page_colours[DLC_PAGE_NCOLOURS] = {"#cfe2ff", "#d1e7dd", "#fff3cd",
                                                         "#e2d9f3", "#f8d7da", "#cff4fc",
                                                         "#ffe5d0", "#e9ecef", "#ffffff"};
const char *const dlc_page_strokes[DLC_PAGE_NCOLOURS] = {"#b03a2e", "#1f618d", "#b9770e",
                                                         "#117864", "#76448a", "#5f6a6a",
                                                         "#a04000", "#1a5276", "#999999"};

static uint32_t at_most(uint32_t row)
{
    return row < DLC_PAGE_NCOLOURS ? row : DLC_PAGE_NCOLOURS - 1;
}

const char *dlc_page_colour(const dlc_page *page, uint32_t step)
{
    return dlc_page_colours[at_most(page->steps.data[step].does_row)];
}

const char *dlc_page_stroke(const dlc_page_link *link)
{
    return dlc_page_strokes[at_most(link->reason_row)];
}

/* Bytes of the character that begins there; 0: it is none. */
static uint32_t utf8_bytes(const unsigned char *c)
{
    uint32_t n = *c < 0x80 ? 1 : *c < 0xc2 ? 0 : *c < 0xe0 ? 2 : *c < 0xf0 ? 3 : *c < 0xf5 ? 4 : 0;
    for (uint32_t i = 1; i < n; i++)
        if ((c[i] & 0xc0) != 0x80)
            return 0;
    return *c == 0x7f || (*c < 32 && *c != '\n') ? 0 : n;
}

void dlc_page_text(dlc_str *out, const char *text, uint32_t most)
{
    const char *end = text + strlen(text);
    int is_cut = end - text > (long)most;
    end = is_cut ? text + most : end;
    while (text < end) {
        uint32_t n = utf8_bytes((const unsigned char *)text);
        if (*text && strchr("<>&\"'", *text))
            dlc_str_printf(out, "&#%d;", *text);
        else if (n)
            dlc_str_addn(out, text, n);
        else
            dlc_str_add(out, "?");
        text += n ? n : 1;
    }
    if (is_cut)
        dlc_str_add(out, "…");
}

void dlc_page_bytes(dlc_str *out, double bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB"};
    int unit = 0;
    while (bytes >= 999.5 && unit < 3) {
        bytes /= 1e3;
        unit++;
    }
    dlc_str_printf(out, bytes < 10 && unit ? "%.2f %s" : bytes < 100 && unit ? "%.1f %s" : "%.0f %s", bytes,
                   units[unit]);
}

void dlc_page_time(dlc_str *out, double us)
{
    if (us >= 1e6)
        dlc_str_printf(out, "%.2f s", us / 1e6);
    else if (us >= 1e3)
        dlc_str_printf(out, us >= 1e5 ? "%.0f ms" : us >= 1e4 ? "%.1f ms" : "%.2f ms", us / 1e3);
    else
        dlc_str_printf(out, us >= 10 || us == 0 ? "%.0f µs" : "%.1f µs", us);
}

const char *dlc_page_last(const char *name, uint32_t most)
{
    size_t n = strcspn(name, "+");
    const char *best = name;
    for (const char *c = name + n; n > most && c > name; c--)
        if (c[-1] == '/' && (size_t)(name + n - c) <= most)
            best = c;
    return best + (*best == '/');
}

void dlc_page_step_name(dlc_str *out, const dlc_page_step *step, uint32_t most)
{
    uint32_t more = 0;
    const char *name = dlc_page_last(step->name, most);
    char first[256] = "";
    strncat(first, name, strcspn(name, "+") < sizeof first - 1 ? strcspn(name, "+") : sizeof first - 1);
    dlc_page_text(out, first, most);
    for (const char *c = step->name; *c; c++)
        more += *c == '+';
    if (more)
        dlc_str_printf(out, " +%u", more);
}
