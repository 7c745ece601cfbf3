/*
 * The page of `dlc report`: what the compiler decided and what a run took, as one HTML file with plain SVG in it. It loads
 * nothing and runs no script. cmd_report.c fills in a dlc_page, page.c and page_*.c draw it.
 */
#ifndef DLC_CLI_PAGE_H
#define DLC_CLI_PAGE_H

#include "cli/profile.h"

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

enum { DLC_PAGE_NCOLOURS = 9, DLC_PAGE_WIDTH = 1360, DLC_PAGE_TAGS = 8 };

typedef struct {
    const char *name, *does, *result;
    const char *peak;     /* of its arithmetic, as a profile names it; "": not known */
    int64_t code;         /* equal ones run the same; -1: a step in C */
    double flops, bytes;  /* estimates of the compiler */
    double begin_us, us;  /* of the run; without one, estimates */
    uint32_t does_row;    /* of page->does */
    dlc_bound bound;
} dlc_page_step;

/* A value that one step writes and another reads. */
typedef struct {
    uint32_t from, to; /* steps */
    const char *value, *type, *reason, *text;
    double bytes;
    uint32_t tag; /* 1 …: its number in the picture; 0: none */
    uint32_t times; /* with a tag: how many there are alike, in repeated blocks */
    uint32_t reason_row; /* of page->reasons */
} dlc_page_link;

typedef struct {
    const char *value, *type;
    double offset, bytes;
    uint32_t first, last; /* steps */
} dlc_page_life;

/* What steps do, or why they are apart: rows by weight, heaviest first. */
typedef struct {
    const char *text;
    double weight; /* us, or bytes */
    uint32_t n;
} dlc_page_row;
typedef dlc_vec(dlc_page_row) dlc_page_rows;

typedef struct {
    dlc_arena *arena;
    const char *model, *target, *device, *sizes, *version;
    uint32_t threads, runs; /* runs 0: nothing ran, times are estimates */
    dlc_vec(dlc_page_step) steps;
    dlc_vec(dlc_page_link) links;
    dlc_vec(dlc_page_life) lives;
    dlc_page_rows does, reasons;
    dlc_roofs roofs;
    double arena_bytes, context_bytes, constants_bytes;
    double total_us;
} dlc_page;

/* Fills in rows, tags, bounds and totals from steps, links and roofs. */
void dlc_page_reckon(dlc_page *page);
void dlc_page_print(const dlc_page *page, dlc_str *out);

/* --- between the files of the page --- */
extern const char *const dlc_page_colours[DLC_PAGE_NCOLOURS]; /* of boxes, by row of page->does */
extern const char *const dlc_page_strokes[DLC_PAGE_NCOLOURS]; /* of edges, by row of page->reasons */
const char *dlc_page_colour(const dlc_page *page, uint32_t step);
const char *dlc_page_stroke(const dlc_page_link *link);
/* Text of HTML; what is no UTF-8 or no character of XML becomes '?'. most: of bytes; the rest is cut, and "…" added. */
void dlc_page_text(dlc_str *out, const char *text, uint32_t most);
void dlc_page_bytes(dlc_str *out, double bytes); /* 12.8 MB */
void dlc_page_time(dlc_str *out, double us);     /* 1.23 ms */
/* The end of a step's first node's name, and how many more it has: layer1.0/conv2/Conv +1. */
void dlc_page_step_name(dlc_str *out, const dlc_page_step *step, uint32_t most);
const char *dlc_page_last(const char *name, uint32_t most); /* from a '/' on, if that is no longer than `most` */
uint32_t *dlc_page_by_time(const dlc_page *page); /* steps, slowest first */
uint32_t *dlc_page_by_bytes(const dlc_page *page); /* links, largest first */

void dlc_page_graph(const dlc_page *page, dlc_str *out);
void dlc_page_roofline(const dlc_page *page, dlc_str *out);
void dlc_page_timeline(const dlc_page *page, dlc_str *out);
void dlc_page_memory(const dlc_page *page, dlc_str *out);

#endif
