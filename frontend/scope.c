/*
 * What every part of an import asks of its state: failures at the node at hand, names in scope, the
 * bodies being imported.
 */
#include "frontend/import_steps.h"

#include <inttypes.h>
#include <string.h>

/* --- failures --- */

static void list_inputs(dlc_import *im)
{
    dlc_str line = {0};
    for (uint32_t i = 0; i < im->nin && i < 8; i++) {
        if (!im->in[i] || im->in[i] == &im->poison || im_list_of(im, im->in[i]))
            continue;
        line.n = 0;
        dlc_str_printf(&line, "    input %" PRIu32 "  ", i);
        dlc_str_add_quoted(&line, im->node->input[i]);
        dlc_str_add(&line, "  ");
        dlc_type_print(im->graph, &im->in[i]->type, &line);
        dlc_diag_detail(im->graph->diag, "%s", dlc_str_text(&line));
    }
    dlc_str_deinit(&line);
}

dlc_status im_fail(dlc_import *im, dlc_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = dlc_arena_vprintf(im->arena, format, args);
    va_end(args);
    dlc_fail_origin(im->graph, im->origin, status, "%s", text);
    list_inputs(im);
    return status;
}

void im_note(dlc_import *im, const char *text)
{
    dlc_fail_origin(im->graph, im->origin, DLC_OK, "%s", text);
    im->messages_before = im->graph->diag->nmessages;
}

int im_ok(const dlc_import *im)
{
    return im->graph->diag->nmessages == im->messages_before;
}

/* --- names --- */

int im_lookup(const dlc_scope *scope, const char *name, dlc_value **value)
{
    *value = NULL;
    for (; scope; scope = scope->outer) {
        void **item = dlc_table_find(&scope->values, name);
        if (item) {
            *value = *item;
            return 1;
        }
    }
    return 0;
}

dlc_status im_bind(dlc_import *im, dlc_scope *scope, const char *name, dlc_value *value)
{
    int is_new;
    void **item = dlc_table_insert(&scope->values, im->scopes, name, &is_new);
    if (is_new) {
        *item = value;
        return DLC_OK;
    }
    if (!im->origin)
        return dlc_diag_fail(im->graph->diag, DLC_INVALID, im->graph->file,
                             "value '%s' is defined a second time", name);
    return im_fail(im, DLC_INVALID, "value '%s' is defined a second time", name);
}

const dlc_body *im_body(const dlc_import *im)
{
    return &im->bodies.data[im->bodies.n - 1];
}

/* "ai.onnx" is the default domain's other name. */
const char *im_domain(const char *domain)
{
    return !domain || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

int im_wants(const dlc_import *im, uint32_t output)
{
    return output < im->node->n_output && *im->node->output[output];
}

/* --- bodies --- */

dlc_scope *im_scope(dlc_import *im, dlc_scope *outer)
{
    dlc_scope *scope = dlc_new(im->scopes, dlc_scope);
    scope->outer = outer;
    return scope;
}

void im_push(dlc_import *im, const dlc_body *body)
{
    dlc_vec_push(im->arena, &im->bodies, *body);
}

/* --- lists --- */

dlc_value *im_list_value(dlc_import *im, dlc_value *const *items, uint32_t n, int is_optional)
{
    im_list *list = dlc_new(im->arena, im_list);
    list->value.def = &im->lists;
    list->value.name = is_optional ? "optional" : "sequence";
    list->items = dlc_new_array(im->arena, dlc_value *, n + 1);
    list->n = n;
    list->is_optional = is_optional != 0;
    for (uint32_t i = 0; i < n; i++)
        list->items[i] = items[i];
    return &list->value;
}

dlc_value *im_rows_value(dlc_import *im, dlc_value *rows)
{
    dlc_value *value = rows ? im_list_value(im, NULL, 0, 0) : NULL;
    if (value)
        im_list_of(im, value)->rows = rows;
    return value;
}

im_list *im_list_of(const dlc_import *im, const dlc_value *value)
{
    return value && value->def == &im->lists ? (im_list *)(uintptr_t)value : NULL;
}
