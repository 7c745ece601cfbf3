/*
 * What the page says in numbers: which kinds of steps take how much of the time, which links are
 * largest, and what bounds a step.
 */
#include "cli/page.h"

#include <stdlib.h>
#include <string.h>

static uint32_t add_row(dlc_page *page, dlc_page_rows *rows, const char *text, double weight)
{
    uint32_t i = 0;
    while (i < rows->n && strcmp(rows->data[i].text, text) != 0)
        i++;
    if (i == rows->n)
        dlc_vec_push(page->arena, rows, ((dlc_page_row){.text = text}));
    rows->data[i].weight += weight;
    rows->data[i].n++;
    return i;
}

static int heavier(const void *a, const void *b)
{
    double x = ((const dlc_page_row *)a)->weight, y = ((const dlc_page_row *)b)->weight;
    return (x < y) - (x > y);
}

static uint32_t find_row(const dlc_page_rows *rows, const char *text)
{
    uint32_t i = 0;
    while (i + 1 < rows->n && strcmp(rows->data[i].text, text) != 0)
        i++;
    return i;
}

static void reckon_rows(dlc_page *page)
{
    for (uint32_t i = 0; i < page->steps.n; i++)
        add_row(page, &page->does, page->steps.data[i].does, page->steps.data[i].us);
    for (uint32_t i = 0; i < page->links.n; i++)
        add_row(page, &page->reasons, page->links.data[i].reason, page->links.data[i].bytes);
    if (page->does.n)
        qsort(page->does.data, page->does.n, sizeof *page->does.data, heavier);
    if (page->reasons.n)
        qsort(page->reasons.data, page->reasons.n, sizeof *page->reasons.data, heavier);
    for (uint32_t i = 0; i < page->steps.n; i++)
        page->steps.data[i].does_row = find_row(&page->does, page->steps.data[i].does);
    for (uint32_t i = 0; i < page->links.n; i++)
        page->links.data[i].reason_row = find_row(&page->reasons, page->links.data[i].reason);
}

/* ---- orders ---- */

typedef struct {
    double key;
    uint32_t i;
} ranked;

static int by_key(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key) - (x->key > y->key) : (x->i > y->i) - (x->i < y->i);
}

static uint32_t *rank(dlc_arena *arena, ranked *rows, uint32_t n)
{
    uint32_t *order = dlc_new_array(arena, uint32_t, n + 1);
    qsort(rows, n, sizeof *rows, by_key);
    for (uint32_t i = 0; i < n; i++)
        order[i] = rows[i].i;
    return order;
}

uint32_t *dlc_page_by_time(const dlc_page *page)
{
    ranked *rows = dlc_new_array(page->arena, ranked, page->steps.n + 1);
    for (uint32_t i = 0; i < page->steps.n; i++)
        rows[i] = (ranked){page->steps.data[i].us, i};
    return rank(page->arena, rows, page->steps.n);
}

uint32_t *dlc_page_by_bytes(const dlc_page *page)
{
    ranked *rows = dlc_new_array(page->arena, ranked, page->links.n + 1);
    for (uint32_t i = 0; i < page->links.n; i++)
        rows[i] = (ranked){page->links.data[i].bytes, i};
    return rank(page->arena, rows, page->links.n);
}

/* Between equal kernels, as large, and apart for the same reason: a block that is repeated has one of each. */
static int is_alike(const dlc_page *page, const dlc_page_link *a, const dlc_page_link *b)
{
    const dlc_page_step *steps = page->steps.data;
    return a->bytes == b->bytes && steps[a->from].code >= 0 && steps[a->from].code == steps[b->from].code && steps[a->to].code >= 0 &&
           steps[a->to].code == steps[b->to].code && !strcmp(a->reason, b->reason) && !strcmp(a->text, b->text);
}

/* The largest are numbered; of those that are alike the first. */
static void tag_links(dlc_page *page)
{
    const uint32_t *order = dlc_page_by_bytes(page);
    dlc_page_link *tagged[DLC_PAGE_TAGS];
    uint32_t ntagged = 0;
    for (uint32_t i = 0; i < page->links.n; i++) {
        dlc_page_link *link = &page->links.data[order[i]];
        uint32_t k = 0;
        while (k < ntagged && !is_alike(page, tagged[k], link))
            k++;
        if (k == ntagged && ntagged == DLC_PAGE_TAGS)
            continue;
        if (k == ntagged) {
            tagged[ntagged++] = link;
            link->tag = ntagged;
        }
        tagged[k]->times++;
    }
}

void dlc_page_reckon(dlc_page *page)
{
    reckon_rows(page);
    page->total_us = 0;
    for (uint32_t i = 0; i < page->steps.n; i++) {
        dlc_page_step *step = &page->steps.data[i];
        if (step->code >= 0)
            step->bound = dlc_roofs_bound(&page->roofs, step->peak, step->us, step->flops, step->bytes);
        page->total_us += step->us;
    }
    tag_links(page);
}
