/* Schedules as text (docs/ir.md). */
#include <inttypes.h>
#include <string.h>

#include "ir/expr/lexer.h"
#include "ir/schedule/schedule.h"
#include "ir/schedule/text.h"

typedef struct {
    const dlc_schedule *schedule;
    dlc_kernel_names names;
    dlc_str *out;
    uint8_t *is_said; /* by axis: a flattened axis that has been introduced */
    uint32_t depth;
} printer;

static void print_name(const printer *p, const char *name)
{
    if (dlc_schedule_word_is_taken(name))
        dlc_str_add_quoted(p->out, name);
    else
        dlc_name_print(name, 0, p->out);
}

static void print_names(const printer *p, const dlc_ids *axes)
{
    for (uint32_t i = 0; i < axes->n; i++) {
        dlc_str_add(p->out, i ? ", " : "");
        print_name(p, p->names.axes[axes->data[i]]);
    }
}

/* `(oh, ow)` where it is first mentioned, `oh_ow` from then on. */
static void print_axis(printer *p, uint32_t axis)
{
    const dlc_schedule *schedule = p->schedule;
    for (uint32_t f = 0; f < schedule->flats.n && !p->is_said[axis]; f++) {
        dlc_ids axes = schedule->flats.data[f];
        if (axes.data[axes.n - 1] != axis)
            continue;
        axes.n--;
        p->is_said[axis] = 1;
        dlc_str_add(p->out, "(");
        print_names(p, &axes);
        dlc_str_add(p->out, ")");
        return;
    }
    print_name(p, p->names.axes[axis]);
}

static void indent(const printer *p)
{
    for (uint32_t i = 0; i < p->depth; i++)
        dlc_str_add(p->out, "  ");
}

/* `2*oh + kh` without spaces. */
static void print_window(const printer *p, const dlc_schedule_window *window)
{
    for (uint32_t i = 0; i < window->axes.n; i++) {
        dlc_str_add(p->out, i ? "+" : "");
        if (window->steps.data[i] > 1)
            dlc_str_printf(p->out, "%" PRId64 "*", window->steps.data[i]);
        print_name(p, p->names.axes[window->axes.data[i]]);
    }
}

static void print_part(const printer *p, const dlc_copy_part *part)
{
    const dlc_schedule_window *window = dlc_schedule_window_of(p->schedule, part->axes.data[0]);
    if (window) {
        print_window(p, window);
        return;
    }
    dlc_str_add(p->out, part->axes.n > 1 ? "(" : "");
    print_names(p, &part->axes);
    dlc_str_add(p->out, part->axes.n > 1 ? ")" : "");
    if (part->inner || part->block > 1)
        dlc_str_printf(p->out, "%s%d", part->inner ? "%" : "/", part->block);
    if (part->pad)
        dlc_str_printf(p->out, "+%d", part->pad);
}

/* A buffer or stage by the name that it is printed with, which symbols may keep it from having; others stand for themselves. */
static void print_operand(printer *p, const char *operand)
{
    const dlc_kernel *kernel = p->schedule->kernel;
    const char *name = operand;
    for (uint32_t s = kernel->stages.n; s-- > 0;)
        name = strcmp(kernel->stages.data[s].name, operand) ? name : p->names.stages[s];
    for (uint32_t b = kernel->buffers.n; b-- > 0;)
        name = strcmp(kernel->buffers.data[b].name, operand) ? name : p->names.buffers[b];
    print_name(p, name);
}

static void print_copies(printer *p)
{
    const dlc_schedule *schedule = p->schedule;
    for (uint32_t i = 0; i < schedule->copies.n; i++) {
        const dlc_schedule_copy *copy = &schedule->copies.data[i];
        dlc_str_add(p->out, "  copy ");
        print_name(p, copy->copy == DLC_NO_STAGE ? copy->name : p->names.stages[copy->copy]);
        dlc_str_add(p->out, " = ");
        print_name(p, p->names.stages[copy->stage]);
        dlc_str_add(p->out, ".");
        print_operand(p, copy->operand);
        for (uint32_t k = 0; k < copy->parts.n; k++) {
            dlc_str_add(p->out, k ? ", " : " [");
            print_part(p, &copy->parts.data[k]);
        }
        dlc_str_add(p->out, copy->parts.n ? "]\n" : "\n");
    }
    for (uint32_t i = 0; i < schedule->copies.n; i++)
        if (schedule->copies.data[i].copy == DLC_NO_STAGE) {
            dlc_str_add(p->out, "  const { ");
            print_name(p, schedule->copies.data[i].name);
            dlc_str_add(p->out, " }\n");
        }
}

static void print_over(printer *p, const dlc_schedule_node *leaf)
{
    for (uint32_t i = 0; i < leaf->over.n; i++) {
        dlc_str_add(p->out, i ? ", " : " over [");
        print_name(p, p->names.axes[leaf->over.data[i]]);
        if (leaf->part && leaf->cut == leaf->over.data[i])
            dlc_str_printf(p->out, ":%" PRId64, leaf->part);
    }
    dlc_str_add(p->out, leaf->over.n ? "]" : "");
    for (uint32_t i = 0; i < leaf->nskipped; i++) {
        dlc_str_add(p->out, i ? ", " : " skip [");
        print_name(p, p->names.axes[leaf->over.data[i]]);
    }
    dlc_str_add(p->out, leaf->nskipped ? "]" : "");
}

static void print_leaf(printer *p, const dlc_schedule_node *leaf)
{
    indent(p);
    print_name(p, p->names.stages[leaf->stage]);
    if (leaf->row != DLC_DOT_NONE) {
        dlc_str_printf(p->out, " = dot %s ", dlc_dots[leaf->row].text);
        if (leaf->rows == DLC_NO_AXIS)
            dlc_str_add(p->out, "1");
        else
            print_axis(p, leaf->rows);
        dlc_str_add(p->out, " x ");
        print_axis(p, leaf->columns);
        print_over(p, leaf);
    }
    if (leaf->own != DLC_DOT_NONE) {
        dlc_str_printf(p->out, " = dot %s", dlc_dots[leaf->own].text);
        print_over(p, leaf);
    }
    if (leaf->place != DLC_PLACE_BUFFER)
        dlc_str_printf(p->out, " in %s", dlc_place_names[leaf->place]);
    if (leaf->ahead)
        dlc_str_printf(p->out, " ahead %u via %s", leaf->ahead,
                       leaf->row == DLC_DOT_NONE && p->schedule->threads ? "reg" : "L2");
    if (leaf->nontemporal)
        dlc_str_add(p->out, " nontemporal");
    dlc_str_add(p->out, "\n");
}

/* A kind is said once for neighbours of the same. */
static void print_loop(printer *p, const dlc_schedule_node *node, const dlc_schedule_node *before)
{
    if (node->kind == DLC_LOOP_AS) {
        dlc_str_add(p->out, "as ");
        print_name(p, p->names.stages[node->stage]);
        return;
    }
    if (!before || before->kind != node->kind)
        dlc_str_printf(p->out, "%s ", dlc_loop_names[node->kind]);
    print_axis(p, node->axis);
    if (node->tile != 1 || node->kind == DLC_LOOP_LANE)
        dlc_str_printf(p->out, ":%" PRId64, node->tile);
    if (node->count > 1)
        dlc_str_printf(p->out, " x %u", node->count);
}

static int is_only_child(const dlc_schedule *schedule, uint32_t n)
{
    const dlc_schedule_node *node = &schedule->nodes.data[n], *child = node + 1;
    return node->end > n + 1 && child->end == node->end && child->kind != DLC_LOOP_LEAF && child->kind != DLC_LOOP_AS;
}

static void print_nodes(printer *p, uint32_t n, uint32_t end)
{
    const dlc_schedule *schedule = p->schedule;
    while (n < end) {
        uint32_t next = schedule->nodes.data[n].end;
        if (schedule->nodes.data[n].kind == DLC_LOOP_LEAF) {
            print_leaf(p, &schedule->nodes.data[n]);
        } else {
            indent(p);
            dlc_str_add(p->out, schedule->nodes.data[n].kept ? "kept " : "");
            print_loop(p, &schedule->nodes.data[n], NULL);
            while (is_only_child(schedule, n)) {
                dlc_str_add(p->out, ", ");
                print_loop(p, &schedule->nodes.data[n + 1], &schedule->nodes.data[n]);
                n++;
            }
            dlc_str_add(p->out, " {\n");
            p->depth++;
            print_nodes(p, n + 1, next);
            p->depth--;
            indent(p);
            dlc_str_add(p->out, "}\n");
        }
        n = next;
    }
}

void dlc_schedule_print(const dlc_schedule *schedule, dlc_str *out)
{
    dlc_arena *scratch = dlc_arena_create(0);
    printer p = {.schedule = schedule, .out = out, .depth = 1};
    p.is_said = dlc_new_array(scratch, uint8_t, schedule->kernel->axes.n + 1);
    dlc_kernel_names_make(schedule->kernel, 1, scratch, &p.names);
    dlc_str_printf(out, "schedule %s grain %" PRId64, schedule->target->name, schedule->grain);
    if (schedule->threads)
        dlc_str_printf(out, " threads %u", schedule->threads);
    dlc_str_add(out, " {\n");
    print_copies(&p);
    print_nodes(&p, 0, schedule->nodes.n);
    dlc_str_add(out, "}\n");
    dlc_arena_destroy(scratch);
}
