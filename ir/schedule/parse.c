/*
 * Schedules from text (docs/ir.md): what dlc_schedule_print writes. The kernel is given; names are those of its text. Axes in
 * parentheses become one where they are first mentioned, as in the text.
 */
#include <stdlib.h>
#include <string.h>

#include "ir/expr/lexer.h"
#include "ir/kernel/algebra.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/text.h"

typedef struct {
    dlc_lexer *lex;
    dlc_schedule *schedule;
    dlc_kernel_names names;
    uint32_t depth;
    dlc_vec(const char *) constants; /* packed ones, until `const` names them */
} parser;

enum { MOST_DEPTH = 48, MOST_PAD = 64 };

static int is_ok(const parser *p)
{
    return p->lex->status == DLC_OK;
}

static int is_end(const parser *p)
{
    return !is_ok(p) || p->lex->token.kind == DLC_TOKEN_END;
}

static void skip_lines(parser *p)
{
    dlc_lexer_skip_lines(p->lex);
}

static void refresh_names(parser *p)
{
    dlc_kernel_names_make(p->schedule->kernel, 1, p->schedule->arena, &p->names);
}

static uint32_t find(char *const *names, uint32_t n, const char *name)
{
    for (uint32_t i = n; i-- > 0;)
        if (strcmp(names[i], name) == 0)
            return i;
    return UINT32_MAX;
}

static uint32_t parse_axis(parser *p)
{
    const char *name = dlc_lexer_name(p->lex);
    uint32_t axis = find(p->names.axes, p->schedule->kernel->axes.n, name);
    if (axis == UINT32_MAX && is_ok(p))
        dlc_lexer_fail(p->lex, "'%s' is no axis of the kernel", name);
    return axis;
}

static uint32_t parse_stage(parser *p)
{
    const char *name = dlc_lexer_name(p->lex);
    uint32_t stage = find(p->names.stages, p->schedule->kernel->stages.n, name);
    if (stage == UINT32_MAX && is_ok(p))
        dlc_lexer_fail(p->lex, "'%s' is no stage of the kernel", name);
    return stage;
}

/* Axes up to the closing mark, which is taken; each once. */
static void parse_axes(parser *p, const char *end, dlc_ids *axes)
{
    while (!is_end(p) && !dlc_lexer_take(p->lex, end)) {
        if (axes->n)
            dlc_lexer_expect(p->lex, ",");
        uint32_t axis = parse_axis(p);
        if (is_ok(p) && dlc_ids_find(axes, axis, NULL))
            dlc_lexer_fail(p->lex, "axis '%s' stands twice", p->names.axes[axis]);
        dlc_vec_push(p->schedule->arena, axes, axis);
    }
    if (!axes->n && is_ok(p))
        dlc_lexer_fail(p->lex, "no axis stands where at least one is due");
}

static int64_t parse_count(parser *p, int64_t most)
{
    int64_t value = dlc_lexer_int(p->lex);
    if (is_ok(p) && (value < 1 || value > most))
        dlc_lexer_fail(p->lex, "%lld lies outside of 1 to %lld", (long long)value, (long long)most);
    return value;
}

/* --- copies --- */

static int is_number(const parser *p)
{
    return is_ok(p) && p->lex->token.kind == DLC_TOKEN_INT;
}

static void add_term(parser *p, int64_t step, dlc_ids *axes, int64_t *steps)
{
    if (axes->n == DLC_MAX_RANK) {
        dlc_lexer_fail(p->lex, "a sum has at most %d axes", DLC_MAX_RANK);
        return;
    }
    steps[axes->n] = step;
    dlc_vec_push(p->schedule->arena, axes, parse_axis(p));
    if (is_ok(p) && axes->n > 1 && dlc_ids_find(&(dlc_ids){.data = axes->data, .n = axes->n - 1}, axes->data[axes->n - 1], NULL))
        dlc_lexer_fail(p->lex, "an axis stands twice in a sum");
}

/* The sum that begins with `step` times an axis, or a lone axis and what stands behind that. */
static void parse_sum(parser *p, int64_t step, dlc_copy_part *part)
{
    dlc_ids axes = {0};
    int64_t steps[DLC_MAX_RANK];
    int has_one = 0;
    add_term(p, step, &axes, steps);
    while (is_ok(p) && dlc_lexer_take(p->lex, "+")) {
        int64_t number = is_number(p) ? parse_count(p, INT32_MAX) : 0;
        if (number && !dlc_lexer_take(p->lex, "*")) {
            part->pad = (int32_t)number;
            if (number > MOST_PAD)
                dlc_lexer_fail(p->lex, "%lld lies outside of 1 to %d", (long long)number, MOST_PAD);
            break;
        }
        add_term(p, number ? number : 1, &axes, steps);
    }
    for (uint32_t i = 0; i < axes.n; i++)
        has_one |= steps[i] == 1;
    if (is_ok(p) && (!has_one || (part->pad && axes.n > 1)))
        dlc_lexer_fail(p->lex, part->pad ? "a sum of axes has no elements behind it" : "one axis of a sum counts single points");
    if (!is_ok(p))
        return;
    dlc_vec_push(p->schedule->arena, &part->axes,
                 axes.n > 1 ? dlc_schedule_window_axis(p->schedule, &axes, steps) : axes.data[0]);
    if (axes.n > 1)
        refresh_names(p);
}

static void parse_part(parser *p, dlc_copy_part *part)
{
    *part = (dlc_copy_part){.block = 1};
    if (dlc_lexer_take(p->lex, "(")) {
        parse_axes(p, ")", &part->axes);
    } else {
        int64_t step = is_number(p) ? parse_count(p, INT32_MAX) : 0;
        if (step)
            dlc_lexer_expect(p->lex, "*");
        parse_sum(p, step ? step : 1, part);
    }
    if (part->pad) /* what follows it is no block */
        return;
    part->inner = (uint8_t)dlc_lexer_is(p->lex, "%");
    if (dlc_lexer_take(p->lex, "%") || dlc_lexer_take(p->lex, "/"))
        part->block = (int32_t)parse_count(p, INT32_MAX);
    if (dlc_lexer_take(p->lex, "+"))
        part->pad = (int32_t)parse_count(p, MOST_PAD);
    if (is_ok(p) && part->block > 1 && dlc_schedule_window_of(p->schedule, part->axes.data[0]))
        dlc_lexer_fail(p->lex, "a sum of axes has no blocks");
}

typedef dlc_vec(dlc_copy_part) part_list;

static void parse_parts(parser *p, part_list *parts)
{
    if (!dlc_lexer_take(p->lex, "["))
        return;
    do {
        dlc_copy_part part;
        parse_part(p, &part);
        if (parts->n == DLC_MAX_PARTS)
            dlc_lexer_fail(p->lex, "a layout has at most %d parts", DLC_MAX_PARTS);
        dlc_vec_push(p->schedule->arena, parts, part);
    } while (is_ok(p) && dlc_lexer_take(p->lex, ","));
    dlc_lexer_expect(p->lex, "]");
}

/* Each axis of the copy once as itself, or as quotient and remainder of one block. */
static int is_layout_of(const part_list *parts, const dlc_ids *axes)
{
    for (uint32_t i = 0; i < axes->n; i++) {
        uint32_t outer = 0, inner = 0;
        int32_t blocks[2] = {1, 1};
        for (uint32_t k = 0; k < parts->n; k++)
            if (dlc_ids_find(&parts->data[k].axes, axes->data[i], NULL)) {
                *(parts->data[k].inner ? &inner : &outer) += 1;
                blocks[parts->data[k].inner] = parts->data[k].block;
            }
        if (outer != 1 || inner > 1 || (inner ? blocks[0] != blocks[1] : blocks[0] != 1))
            return 0;
    }
    for (uint32_t k = 0; k < parts->n; k++)
        for (uint32_t i = 0; i < parts->data[k].axes.n; i++)
            if (!dlc_ids_find(axes, parts->data[k].axes.data[i], NULL))
                return 0;
    return 1;
}

/* The part that is the axis, or the sum it is added up in; NULL: none. */
static const dlc_copy_part *part_with(const parser *p, const part_list *parts, uint32_t axis)
{
    for (uint32_t k = 0; k < parts->n; k++) {
        const dlc_copy_part *part = &parts->data[k];
        const dlc_schedule_window *window = part->axes.n ? dlc_schedule_window_of(p->schedule, part->axes.data[0]) : NULL;
        if (dlc_ids_find(window ? &window->axes : &part->axes, axis, NULL))
            return part;
    }
    return NULL;
}

/* The reader's axis, or what counts the sum of the layout that it is in. */
static void add_reader_axis(const parser *p, const part_list *parts, uint32_t axis, dlc_ids *axes)
{
    const dlc_copy_part *part = part_with(p, parts, axis);
    uint32_t first = part ? part->axes.data[0] : axis, own = dlc_schedule_window_of(p->schedule, first) ? first : axis;
    if (!dlc_ids_find(axes, own, NULL))
        dlc_vec_push(p->schedule->arena, axes, own);
}

/* The axes of the reader that a copy may have: kept ones, that of parts, then reduced ones in the order of the layout. */
static void reader_axes(const parser *p, uint32_t stage, const part_list *parts, dlc_ids *axes)
{
    const dlc_stage *reader = &p->schedule->kernel->stages.data[stage];
    for (uint32_t i = 0; i < reader->axes.n; i++)
        add_reader_axis(p, parts, reader->axes.data[i], axes);
    if (p->schedule->part != DLC_NO_AXIS)
        dlc_vec_push(p->schedule->arena, axes, p->schedule->part);
    for (uint32_t k = 0; k < parts->n; k++)
        for (uint32_t i = 0; i < parts->data[k].axes.n; i++) {
            uint32_t axis = parts->data[k].axes.data[i];
            if (dlc_ids_find(&reader->reduce, axis, NULL) && !dlc_ids_find(axes, axis, NULL))
                dlc_vec_push(p->schedule->arena, axes, axis);
        }
    for (uint32_t i = 0; i < reader->reduce.n; i++)
        add_reader_axis(p, parts, reader->reduce.data[i], axes);
}

static int is_named_const(const parser *p, const char *name)
{
    for (uint32_t i = 0; i < p->constants.n; i++)
        if (strcmp(p->constants.data[i], name) == 0)
            return 1;
    return 0;
}

/* As the kernel has it, which prints it otherwise beside a symbol of that name. */
static const char *name_of_operand(const parser *p, const char *printed)
{
    const dlc_kernel *kernel = p->schedule->kernel;
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (strcmp(p->names.buffers[b], printed) == 0)
            return kernel->buffers.data[b].name;
    for (uint32_t s = 0; s < p->schedule->nstages; s++)
        if (strcmp(p->names.stages[s], printed) == 0)
            return kernel->stages.data[s].name;
    return printed;
}

static void add_copy(parser *p, const char *name, uint32_t stage, const char *operand, const part_list *parts)
{
    dlc_schedule *schedule = p->schedule;
    operand = name_of_operand(p, operand);
    dlc_expr value = dlc_schedule_operand(schedule, stage, operand);
    dlc_ids axes = {0};
    if (!value) {
        dlc_lexer_fail(p->lex, "%s has no operand '%s', or several", p->names.stages[stage], operand);
        return;
    }
    if (is_named_const(p, name)) {
        if (!dlc_schedule_pack(schedule, name, stage, value, parts->data, parts->n))
            dlc_lexer_fail(p->lex, "'%s' is no layout of the elements of a constant that one stage reads once", name);
        return;
    }
    reader_axes(p, stage, parts, &axes);
    if (!dlc_schedule_windowed(schedule, value, &axes)) {
        dlc_lexer_fail(p->lex, "%s.%s depends on axes of a sum in the layout of '%s' in other ways, too", p->names.stages[stage], operand, name);
        return;
    }
    uint32_t copy = dlc_schedule_copy_add(schedule, name, stage, operand, value, &axes);
    if (parts->n && !is_layout_of(parts, &schedule->kernel->stages.data[copy].axes))
        dlc_lexer_fail(p->lex, "the layout of '%s' does not have each of its axes once", name);
    for (uint32_t k = 0; k < parts->n; k++)
        dlc_vec_push(schedule->arena, &schedule->copies.data[schedule->copies.n - 1].parts, parts->data[k]);
}

static void parse_copy(parser *p)
{
    part_list parts = {0};
    const char *name = dlc_lexer_name(p->lex);
    dlc_lexer_expect(p->lex, "=");
    uint32_t stage = parse_stage(p);
    dlc_lexer_expect(p->lex, ".");
    const char *operand = dlc_lexer_name(p->lex);
    if (is_ok(p) && (!strcmp(operand, "parts_left") || !strcmp(operand, "parts_right"))) {
        dlc_schedule_part_axis(p->schedule);
        refresh_names(p);
    }
    parse_parts(p, &parts);
    if (is_ok(p))
        add_copy(p, name, stage, operand, &parts);
    if (is_ok(p))
        refresh_names(p);
}

/* --- the tree --- */

static uint32_t parse_loop_axis(parser *p)
{
    dlc_ids axes = {0};
    if (!dlc_lexer_take(p->lex, "("))
        return parse_axis(p);
    parse_axes(p, ")", &axes);
    if (!is_ok(p))
        return UINT32_MAX;
    if (axes.n < 2) {
        dlc_lexer_fail(p->lex, "parentheses hold axes that become one: at least two");
        return UINT32_MAX;
    }
    uint32_t axis = dlc_schedule_flatten(p->schedule, &axes);
    refresh_names(p);
    return axis;
}

static int take_kind(parser *p, dlc_loop_kind *kind)
{
    for (uint32_t k = 0; k < DLC_LOOP_LEAF; k++)
        if (dlc_lexer_take(p->lex, dlc_loop_names[k])) {
            *kind = (dlc_loop_kind)k;
            return 1;
        }
    return 0;
}

static void parse_loop(parser *p, dlc_loop_kind kind)
{
    int64_t tile = 1, count = 1;
    if (kind == DLC_LOOP_AS) {
        uint32_t stage = parse_stage(p);
        if (is_ok(p))
            dlc_schedule_open_as(p->schedule, stage);
        return;
    }
    uint32_t axis = parse_loop_axis(p);
    if (dlc_lexer_take(p->lex, ":"))
        tile = parse_count(p, INT32_MAX);
    if (dlc_lexer_take(p->lex, "x"))
        count = parse_count(p, 64);
    if (count > 1 && kind != DLC_LOOP_LANE)
        dlc_lexer_fail(p->lex, "only lanes have several vectors a step");
    if (!is_ok(p))
        return;
    if (kind == DLC_LOOP_LANE)
        dlc_schedule_open_lane(p->schedule, axis, tile, (uint32_t)count);
    else
        dlc_schedule_open(p->schedule, kind, axis, tile);
}

static void parse_nodes(parser *p);

static void parse_loops(parser *p, dlc_loop_kind kind)
{
    uint32_t n = 0;
    do {
        take_kind(p, &kind);
        parse_loop(p, kind);
        n++;
    } while (is_ok(p) && dlc_lexer_take(p->lex, ","));
    dlc_lexer_expect(p->lex, "{");
    if (p->depth + n > MOST_DEPTH)
        dlc_lexer_fail(p->lex, "loops lie deeper than %d", MOST_DEPTH);
    p->depth += n;
    if (is_ok(p))
        parse_nodes(p);
    p->depth -= n;
    dlc_lexer_expect(p->lex, "}");
    if (is_ok(p))
        dlc_schedule_close(p->schedule, n);
}

static dlc_dot parse_row(parser *p)
{
    const char *name = dlc_lexer_name(p->lex);
    for (uint32_t r = 1; r < DLC_DOT_COUNT; r++)
        if (strcmp(dlc_dots[r].text, name) == 0)
            return (dlc_dot)r;
    if (is_ok(p))
        dlc_lexer_fail(p->lex, "dot.def has no row '%s'", name);
    return DLC_DOT_NONE;
}

/* Axes; points of one of them may be said, which make partial sums. */
static void parse_over(parser *p, dlc_ids *over, uint32_t *cut, int64_t *part)
{
    dlc_lexer_expect(p->lex, "[");
    do {
        dlc_vec_push(p->schedule->arena, over, parse_axis(p));
        if (!dlc_lexer_take(p->lex, ":"))
            continue;
        if (*part)
            dlc_lexer_fail(p->lex, "two axes have partial sums");
        *cut = over->data[over->n - 1];
        *part = parse_count(p, INT32_MAX);
    } while (is_ok(p) && dlc_lexer_take(p->lex, ","));
    dlc_lexer_expect(p->lex, "]");
}

/* The first of those axes again. */
static uint32_t parse_skipped(parser *p, const dlc_ids *over)
{
    uint32_t n = 0;
    dlc_lexer_expect(p->lex, "[");
    do {
        uint32_t axis = parse_axis(p);
        if (is_ok(p) && (n >= over->n || over->data[n++] != axis))
            dlc_lexer_fail(p->lex, "what is skipped are the first axes of those behind 'over', in their order");
    } while (is_ok(p) && dlc_lexer_take(p->lex, ","));
    dlc_lexer_expect(p->lex, "]");
    return n;
}

/* Without rows and columns: each lane's own sum. */
static void parse_own_dot(parser *p, uint32_t stage, dlc_dot row)
{
    dlc_lexer_expect(p->lex, "[");
    uint32_t axis = parse_axis(p);
    dlc_lexer_expect(p->lex, "]");
    if (is_ok(p))
        dlc_schedule_own_dot(p->schedule, stage, row, axis, DLC_PLACE_BUFFER);
}

static void parse_dot(parser *p, uint32_t stage)
{
    dlc_dot row = parse_row(p);
    uint32_t rows = DLC_NO_AXIS, columns, cut = DLC_NO_AXIS, nskipped = 0;
    int64_t part = 0;
    dlc_ids over = {0};
    if (dlc_lexer_take(p->lex, "over")) {
        parse_own_dot(p, stage, row);
        return;
    }
    if (p->lex->token.kind == DLC_TOKEN_INT)
        parse_count(p, 1);
    else
        rows = parse_axis(p);
    dlc_lexer_expect(p->lex, "x");
    columns = parse_axis(p);
    if (dlc_lexer_take(p->lex, "over"))
        parse_over(p, &over, &cut, &part);
    if (is_ok(p) && dlc_lexer_take(p->lex, "skip"))
        nskipped = parse_skipped(p, &over);
    if (!is_ok(p))
        return;
    dlc_schedule_dot(p->schedule, stage, row, rows, columns, &over, DLC_PLACE_BUFFER);
    p->schedule->nodes.data[p->schedule->nodes.n - 1].nskipped = nskipped;
    dlc_schedule_dot_cut(p->schedule, cut, part);
}

static void parse_place(parser *p)
{
    const char *name = dlc_lexer_name(p->lex);
    for (uint32_t i = 0; i < DLC_PLACE_BUFFER; i++)
        if (strcmp(dlc_place_names[i], name) == 0) {
            p->schedule->nodes.data[p->schedule->nodes.n - 1].place = (uint8_t)i;
            return;
        }
    if (is_ok(p))
        dlc_lexer_fail(p->lex, "'%s' is no place: reg, scratch or output", name);
}

static void parse_leaf(parser *p)
{
    uint32_t stage = parse_stage(p);
    if (!is_ok(p))
        return;
    if (dlc_lexer_take(p->lex, "=")) {
        dlc_lexer_expect(p->lex, "dot");
        parse_dot(p, stage);
    } else {
        dlc_schedule_leaf(p->schedule, stage, DLC_PLACE_BUFFER);
    }
    if (is_ok(p) && dlc_lexer_take(p->lex, "in"))
        parse_place(p);
    if (is_ok(p) && dlc_lexer_take(p->lex, "ahead")) {
        dlc_schedule_node *leaf = &p->schedule->nodes.data[p->schedule->nodes.n - 1];
        int is_copy = leaf->row == DLC_DOT_NONE && p->schedule->threads;
        leaf->ahead = (uint8_t)parse_count(p, is_copy || leaf->row != DLC_DOT_NONE ? 1 : DLC_MOST_AHEAD);
        dlc_lexer_expect(p->lex, "via");
        dlc_lexer_expect(p->lex, is_copy ? "reg" : "L2");
    }
    if (is_ok(p) && dlc_lexer_take(p->lex, "nontemporal"))
        p->schedule->nodes.data[p->schedule->nodes.n - 1].nontemporal = 1;
}

static void parse_nodes(parser *p)
{
    skip_lines(p);
    while (!is_end(p) && !dlc_lexer_is(p->lex, "}")) {
        dlc_loop_kind kind;
        uint32_t first = p->schedule->nodes.n;
        int is_kept = dlc_lexer_take(p->lex, "kept");
        if (take_kind(p, &kind))
            parse_loops(p, kind);
        else if (is_kept)
            dlc_lexer_fail(p->lex, "'kept' stands before a loop");
        else
            parse_leaf(p);
        if (is_ok(p) && is_kept)
            p->schedule->nodes.data[first].kept = 1;
        skip_lines(p);
    }
}

/* --- the whole --- */

/* `const { name }` stands behind the copies it speaks of: what it names is found first. */
static void find_constants(parser *p)
{
    dlc_lexer ahead = *p->lex;
    uint32_t depth = 0;
    while (ahead.status == DLC_OK && ahead.token.kind != DLC_TOKEN_END && (depth != 1 || !dlc_lexer_is(&ahead, "}"))) {
        depth += (uint32_t)dlc_lexer_is(&ahead, "{");
        depth -= (uint32_t)dlc_lexer_is(&ahead, "}");
        if (dlc_lexer_take(&ahead, "const") && dlc_lexer_take(&ahead, "{")) {
            while (ahead.token.kind == DLC_TOKEN_WORD) {
                dlc_vec_push(p->schedule->arena, &p->constants, ahead.token.text);
                dlc_lexer_advance(&ahead);
            }
            dlc_lexer_take(&ahead, "}");
            continue;
        }
        dlc_lexer_advance(&ahead);
    }
}

static void parse_const(parser *p)
{
    dlc_lexer_expect(p->lex, "{");
    while (p->lex->token.kind == DLC_TOKEN_WORD) {
        const char *name = dlc_lexer_name(p->lex);
        int found = 0;
        for (uint32_t i = 0; i < p->schedule->copies.n; i++)
            found |= strcmp(p->schedule->copies.data[i].name, name) == 0;
        if (!found)
            dlc_lexer_fail(p->lex, "'%s' is no copy", name);
    }
    dlc_lexer_expect(p->lex, "}");
}

static void parse_body(parser *p)
{
    if (dlc_lexer_take(p->lex, "grain"))
        p->schedule->grain = parse_count(p, INT64_MAX);
    if (dlc_lexer_take(p->lex, "threads"))
        p->schedule->threads = (uint32_t)parse_count(p, INT32_MAX);
    dlc_lexer_expect(p->lex, "{");
    skip_lines(p);
    while (is_ok(p) && (dlc_lexer_is(p->lex, "copy") || dlc_lexer_is(p->lex, "const"))) {
        if (dlc_lexer_take(p->lex, "copy"))
            parse_copy(p);
        else if (dlc_lexer_take(p->lex, "const"))
            parse_const(p);
        skip_lines(p);
    }
    parse_nodes(p);
}

/* The word behind `schedule`, which is the present token: names of targets have dashes. One that is known need not be a row. */
static const dlc_target *parse_target(dlc_lexer *lex, const dlc_target *known)
{
    const char *at = lex->token.start + 8;
    at += strspn(at, " \t");
    size_t length = strcspn(at, " \t\n{");
    const char *name = dlc_arena_strndup(lex->arena, at, length);
    const dlc_target *target = known && !strcmp(known->name, name) ? known : dlc_target_find(name);
    if (!target) {
        dlc_lexer_fail(lex, "there is no target '%s'", name);
        return NULL;
    }
    lex->at = at + length;
    dlc_lexer_start(lex);
    return target;
}

dlc_schedule *dlc_schedule_parse_inside(dlc_lexer *lex, const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena)
{
    dlc_lexer inner;
    parser p = {.lex = &inner};
    if (!dlc_lexer_is(lex, "schedule")) {
        dlc_lexer_fail(lex, "found '%s' where 'schedule' is due", lex->token.text);
        return NULL;
    }
    dlc_lexer_enter(lex, &inner);
    const dlc_target *found = parse_target(&inner, target);
    if (found && target && strcmp(target->name, found->name) != 0)
        dlc_lexer_fail(&inner, "the schedule is for %s, not for %s", found->name, target->name);
    if (is_ok(&p)) {
        p.schedule = dlc_schedule_create(kernel, target ? target : found, arena);
        refresh_names(&p);
        find_constants(&p);
        parse_body(&p);
    }
    if (is_ok(&p) && !dlc_lexer_is(&inner, "}"))
        dlc_lexer_fail(&inner, "found '%s' where '}' is due", inner.token.text);
    if (is_ok(&p))
        inner.status = dlc_schedule_resolve(p.schedule, lex->diag);
    dlc_lexer_resume(lex, is_ok(&p) ? inner.token.start + 1 : inner.token.start, inner.status);
    return is_ok(&p) ? p.schedule : NULL;
}

dlc_status dlc_schedule_parse(const char *text, const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena,
                              dlc_diag *diag, dlc_schedule **result)
{
    dlc_lexer lex = {.at = text, .line_start = text, .file = kernel->name, .line = 1, .arena = arena, .diag = diag};
    dlc_lexer_start(&lex);
    dlc_lexer_skip_lines(&lex);
    *result = dlc_schedule_parse_inside(&lex, kernel, target, arena);
    dlc_lexer_skip_lines(&lex);
    if (lex.status == DLC_OK && lex.token.kind != DLC_TOKEN_END)
        dlc_lexer_fail(&lex, "found '%s' behind the schedule", lex.token.text);
    return lex.status;
}
