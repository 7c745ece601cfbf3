/*
 * Random kernels as text: stages over subsets of a few axes that load buffers and each other, at their own points and at
 * neighbours, with sums and other folds, contractions, recurrences and scatters; extents are small numbers or symbols.
 */
#ifndef DLC_TESTS_RANDOM_KERNEL_H
#define DLC_TESTS_RANDOM_KERNEL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ir/kernel/kernel.h"
#include "tests/unit/random.h"

enum { MOST_AXES = 5, MOST_STAGES = 5, MOST_INPUTS = 4 };

typedef struct {
    uint32_t axes[MOST_AXES], naxes;
} axis_list;

typedef struct {
    char extents[MOST_AXES][8];
    const char *dtype;
    int is_float;
    uint32_t naxes, nstages, nbuffers, n_used; /* axes that something has: bits */
    axis_list stages[MOST_STAGES], reduced[MOST_STAGES], buffers[MOST_INPUTS * MOST_STAGES * 2];
    uint8_t is_read[MOST_STAGES], is_stored[MOST_STAGES], is_const[MOST_INPUTS * MOST_STAGES * 2];
} kernel_plan;

static inline int list_has(const axis_list *list, uint32_t axis)
{
    for (uint32_t i = 0; i < list->naxes; i++)
        if (list->axes[i] == axis)
            return 1;
    return 0;
}

static inline void draw_axes(const kernel_plan *p, uint32_t least, uint32_t most, const axis_list *without, axis_list *list)
{
    uint32_t n = least + draw(most - least + 1);
    list->naxes = 0;
    for (uint32_t tries = 0; tries < 12 && list->naxes < n; tries++) {
        uint32_t axis = draw(p->naxes);
        if (!list_has(list, axis) && !(without && list_has(without, axis)))
            list->axes[list->naxes++] = axis;
    }
}

static inline void add_axes(const axis_list *list, const char *separator, dlc_str *out)
{
    for (uint32_t i = 0; i < list->naxes; i++)
        dlc_str_printf(out, "%sa%u", i ? separator : "", list->axes[i]);
}

/* An index per axis of what is loaded: the stage's own axis, now and then a neighbour of it; else 0. */
static inline void add_indices(const kernel_plan *p, uint32_t s, const axis_list *of, int neighbours, dlc_str *out)
{
    int is_guarded = 0;
    for (uint32_t i = 0; i < of->naxes; i++) {
        uint32_t axis = of->axes[i];
        int is_own = list_has(&p->stages[s], axis) || list_has(&p->reduced[s], axis);
        dlc_str_add(out, i ? ", " : "");
        if (!is_own) {
            dlc_str_add(out, "0");
            is_guarded = 1;
        } else if (neighbours && draw(4) == 0) {
            dlc_str_printf(out, "a%u %s %u", axis, draw(2) ? "+" : "-", 1 + draw(2));
            is_guarded = 1;
        } else {
            dlc_str_printf(out, "a%u", axis);
        }
    }
    dlc_str_add(out, is_guarded ? " else 0" : "");
}

/* A load of a new buffer over these axes. */
static inline void add_buffer_load(kernel_plan *p, uint32_t s, const axis_list *axes, int neighbours, dlc_str *out)
{
    uint32_t b = p->nbuffers++;
    p->buffers[b] = *axes;
    p->is_const[b] = draw(3) == 0;
    for (uint32_t i = 0; i < axes->naxes; i++) {
        p->n_used |= 1u << axes->axes[i];
        p->is_const[b] &= p->extents[axes->axes[i]][0] != 'n'; /* constants have constant sizes */
    }
    dlc_str_printf(out, "x%u[", b);
    add_indices(p, s, axes, neighbours, out);
    dlc_str_add(out, "]");
}

static inline axis_list some_of(const kernel_plan *p, uint32_t s)
{
    axis_list all = p->stages[s], some = {0};
    for (uint32_t i = 0; i < p->reduced[s].naxes; i++)
        all.axes[all.naxes++] = p->reduced[s].axes[i];
    for (uint32_t i = 0; i < all.naxes; i++)
        if (draw(4) && some.naxes < 4)
            some.axes[some.naxes++] = all.axes[i];
    for (uint32_t i = some.naxes; i > 1; i--) {
        uint32_t at = draw(i), axis = some.axes[i - 1];
        some.axes[i - 1] = some.axes[at];
        some.axes[at] = axis;
    }
    if (!some.naxes)
        some.axes[some.naxes++] = all.axes[0];
    return some;
}

static inline void add_operand(kernel_plan *p, uint32_t s, dlc_str *out)
{
    uint32_t from = s ? draw(s + 1) : s;
    if (from < s) {
        dlc_str_printf(out, "s%u[", from);
        add_indices(p, s, &p->stages[from], draw(3) == 0, out);
        dlc_str_add(out, "]");
        p->is_read[from] = 1;
        return;
    }
    axis_list axes = some_of(p, s);
    add_buffer_load(p, s, &axes, draw(3) == 0, out);
}

static inline void add_value(kernel_plan *p, uint32_t s, dlc_str *out)
{
    static const char *const forms[] = {"%o + %o", "%o * %o", "max(%o, %o)", "%o - %o", "%o", "min(%o, 1)", "%o * %o + %o"};
    static const char *const float_forms[] = {"exp(min(%o, 1.0))", "%o * 0.5", "%o / (2.0 + abs(%o))"};
    uint32_t n = sizeof forms / sizeof *forms, all = n + (p->is_float ? 3 : 0), at = draw(all);
    const char *form = at < n ? forms[at] : float_forms[at - n];
    for (; *form; form++) {
        if (form[0] == '%' && form[1] == 'o') {
            add_operand(p, s, out);
            form++;
        } else {
            dlc_str_printf(out, "%c", *form);
        }
    }
}

/* sum over k of A[m, k] * B[k, n], with axes drawn; A or B may be an earlier stage, read at neighbours. */
static inline void add_product(kernel_plan *p, uint32_t s, dlc_str *out)
{
    axis_list a = p->reduced[s], b = p->reduced[s];
    for (uint32_t i = 0; i < p->stages[s].naxes; i++) {
        uint32_t axis = p->stages[s].axes[i], side = i + 1 == p->stages[s].naxes ? 1 : draw(8) ? 0 : 2;
        if (side != 1 && a.naxes < MOST_AXES)
            a.axes[a.naxes++] = axis;
        if (side != 0 && b.naxes < MOST_AXES)
            b.axes[b.naxes++] = axis;
    }
    if (s && draw(3) == 0)
        add_operand(p, s, out);
    else
        add_buffer_load(p, s, &a, draw(4) == 0, out);
    dlc_str_add(out, " * ");
    add_buffer_load(p, s, &b, 0, out);
}

static inline void add_stage(kernel_plan *p, uint32_t s, dlc_str *out)
{
    static const char *const folds[] = {"sum", "sum", "max", "min", "sum"};
    int is_recurrence = draw(12) == 0, is_product = draw(3) == 0;
    draw_axes(p, 1, is_product ? 3 : 4, NULL, &p->stages[s]);
    p->reduced[s].naxes = 0;
    if (!is_recurrence && (is_product || draw(3) == 0))
        draw_axes(p, 1, 2, &p->stages[s], &p->reduced[s]);
    for (uint32_t i = 0; i < p->stages[s].naxes; i++)
        p->n_used |= 1u << p->stages[s].axes[i];
    for (uint32_t i = 0; i < p->reduced[s].naxes; i++)
        p->n_used |= 1u << p->reduced[s].axes[i];
    dlc_str_printf(out, "  s%u[", s);
    add_axes(&p->stages[s], ",", out);
    dlc_str_printf(out, "]%s%s = ", is_recurrence ? ": " : "", is_recurrence ? p->dtype : "");
    if (p->reduced[s].naxes) {
        dlc_str_printf(out, "%s(", is_product ? "sum" : folds[draw(5)]);
        add_axes(&p->reduced[s], ", ", out);
        dlc_str_add(out, ") ");
    }
    if (p->reduced[s].naxes && is_product)
        add_product(p, s, out);
    else
        add_value(p, s, out);
    if (is_recurrence) { /* its own earlier point along one of its axes */
        uint32_t along = draw(p->stages[s].naxes);
        dlc_str_printf(out, " %s s%u[", draw(2) ? "+" : "-", s);
        for (uint32_t i = 0; i < p->stages[s].naxes; i++)
            dlc_str_printf(out, "%sa%u%s", i ? ", " : "", p->stages[s].axes[i], i == along ? " - 1" : "");
        dlc_str_add(out, " else 0]");
    }
}

static inline void draw_plan(kernel_plan *p)
{
    static const uint32_t extents[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 20, 31, 33, 40};
    static const char *const dtypes[] = {"f32", "f32", "f32", "f16", "f64", "i32", "f32", "i64"};
    *p = (kernel_plan){.naxes = 2 + draw(MOST_AXES - 1), .nstages = 1 + draw(MOST_STAGES)};
    p->dtype = dtypes[draw(8)];
    p->is_float = p->dtype[0] == 'f';
    int is_half = !strcmp(p->dtype, "f16"); /* long sums of halves tell nothing: each order rounds another way */
    uint32_t points = 1, symbols = (uint32_t)is_half, most = is_half ? 128 : 30000;
    for (uint32_t a = 0; a < p->naxes; a++) {
        uint32_t extent = extents[draw(14)];
        if (points * extent > most)
            extent = is_half ? 1 : 1 + draw(3);
        points *= extent;
        if (symbols < 1 && draw(8) == 0 && points < 4000) {
            symbols++;
            points *= 8;
            snprintf(p->extents[a], sizeof p->extents[a], "n");
        } else {
            snprintf(p->extents[a], sizeof p->extents[a], "%u", extent);
        }
    }
}

static inline void add_dims(const kernel_plan *p, const axis_list *axes, dlc_str *out)
{
    for (uint32_t i = 0; i < axes->naxes; i++)
        dlc_str_printf(out, "%s%s", i ? "," : "", p->extents[axes->axes[i]]);
}

/* A scatter behind the copy that it updates. */
static inline void draw_scatter(dlc_str *out)
{
    static const char *const updates[] = {"sum", "set", "max"};
    uint32_t i = 2 + draw(8), j = 1 + draw(20), k = 1 + draw(12);
    dlc_str_printf(out, "kernel @k(x: f32[%u,%u], at: i64[%u], u: f32[%u,%u]) -> (y: f32[%u,%u]) {\n", i, j, k, k, j, i, j);
    dlc_str_printf(out, "  axis a0=%u, a1=%u, a2=%u, a3=%u\n", i, j, k, j);
    dlc_str_add(out, "  s0[a0,a1] = x[a0, a1] -> y[a0, a1]\n");
    dlc_str_printf(out, "  s1[a2,a3] = u[a2, a3] * 2.0 -> y[min(at[a2], %u), a3] update %s\n}\n", i - 1, updates[draw(3)]);
}

/* Text of a kernel; most are right. */
static inline void draw_kernel(dlc_str *out)
{
    kernel_plan p;
    dlc_str body = {0};
    if (draw(20) == 0) {
        draw_scatter(out);
        return;
    }
    draw_plan(&p);
    for (uint32_t s = 0; s < p.nstages; s++) {
        add_stage(&p, s, &body);
        dlc_str_printf(&body, "@%u\n", s); /* where its store will stand, once it is known who is read */
    }
    dlc_str_add(out, "kernel @k(");
    for (uint32_t b = 0; b < p.nbuffers; b++) {
        dlc_str_printf(out, "%sx%u: %s[", b ? ", " : "", b, p.dtype);
        add_dims(&p, &p.buffers[b], out);
        dlc_str_add(out, p.is_const[b] ? "]@const" : "]");
    }
    dlc_str_add(out, ") -> (");
    const char *before = "";
    for (uint32_t s = 0; s < p.nstages; s++) {
        p.is_stored[s] = !p.is_read[s] || draw(5) == 0;
        if (!p.is_stored[s])
            continue;
        dlc_str_printf(out, "%sy%u: %s[", before, s, p.dtype);
        add_dims(&p, &p.stages[s], out);
        dlc_str_add(out, "]");
        before = ", ";
    }
    dlc_str_add(out, ") {\n  axis ");
    before = "";
    for (uint32_t a = 0; a < p.naxes; a++)
        if (p.n_used >> a & 1) {
            dlc_str_printf(out, "%sa%u=%s", before, a, p.extents[a]);
            before = ", ";
        }
    dlc_str_add(out, "\n");
    const char *at = dlc_str_text(&body);
    for (uint32_t s = 0; s < p.nstages; s++) {
        const char *end = strchr(at, '@');
        dlc_str_printf(out, "%.*s", (int)(end - at), at);
        if (p.is_stored[s]) {
            dlc_str_printf(out, " -> y%u[", s);
            add_axes(&p.stages[s], ", ", out);
            dlc_str_add(out, "]");
        }
        dlc_str_add(out, "\n");
        at = strchr(end, '\n') + 1;
    }
    dlc_str_add(out, "}\n");
    dlc_str_deinit(&body);
}

/* The kernel of this number; texts that the verifier refuses are drawn again. */
static inline dlc_kernel *make_kernel(uint64_t seed, uint64_t number, dlc_arena *arena)
{
    for (uint64_t attempt = 0;; attempt++) {
        dlc_str text = {0};
        dlc_diag diag;
        dlc_kernel *kernel = NULL;
        dlc_diag_init(&diag, arena);
        random_state = seed * 1000003 + number * 7919 + attempt * 104729;
        draw_kernel(&text);
        dlc_status status = dlc_kernel_parse(dlc_str_text(&text), arena, &diag, &kernel);
        if (status == DLC_OK)
            status = dlc_kernel_verify(kernel, &diag);
        if (status != DLC_OK && getenv("DLC_SHOW"))
            fprintf(stderr, "%s%s\n", dlc_str_text(&text), diag.messages[0].text);
        dlc_str_deinit(&text);
        if (status == DLC_OK)
            return kernel;
    }
}

#endif
