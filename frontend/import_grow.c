/*
 * States of a Loop that only grow: each iteration puts something behind the state and nothing else reads it, as loops that collect
 * their results do. The loop is read as one that stacks what is put behind, which it joins at its end:
 *     state = Concat(state, piece), list = SequenceInsert(list, piece)   becomes   a result `piece` of each iteration
 */
#include "frontend/import_control.h"

#include <string.h>

enum { MOST_COPIES = 8 };

typedef struct {
    const Onnx__GraphProto *graph;
    uint8_t *is_left_out; /* nodes */
} editor;

static uint32_t uses_in(const Onnx__GraphProto *graph, const char *name)
{
    uint32_t n = 0;
    for (size_t i = 0; i < graph->n_node; i++) {
        const Onnx__NodeProto *node = graph->node[i];
        for (size_t k = 0; k < node->n_input; k++)
            n += !strcmp(node->input[k], name);
        for (size_t a = 0; a < node->n_attribute; a++)
            if (node->attribute[a]->g)
                n += 2 * (uses_in(node->attribute[a]->g, name) > 0); /* never alone */
    }
    for (size_t i = 0; i < graph->n_output; i++)
        n += graph->output[i]->name && !strcmp(graph->output[i]->name, name);
    return n;
}

static int64_t maker(const Onnx__GraphProto *graph, const char *name)
{
    for (size_t i = 0; i < graph->n_node; i++)
        if (graph->node[i]->n_output == 1 && !strcmp(graph->node[i]->output[0], name))
            return (int64_t)i;
    return -1;
}

static int is_copy(const Onnx__NodeProto *node)
{
    return node->n_input == 1 && (!strcmp(node->op_type, "Identity") || !strcmp(node->op_type, "Cast"));
}

/* From a name with one reader back over copies to what made it, which is left out with them; -1: it is made for others too. */
static int64_t made_for(editor *e, const char **name)
{
    for (int i = 0; i < MOST_COPIES; i++) {
        int64_t at = maker(e->graph, *name);
        if (uses_in(e->graph, *name) != 1)
            return -1;
        if (at < 0 || !is_copy(e->graph->node[at]))
            return at;
        e->is_left_out[at] = 1;
        *name = e->graph->node[at]->input[0];
    }
    return -1;
}

/* What state i grows by, NULL: it does something else. */
static const char *piece_of(editor *e, const dlc_repeat *r, uint32_t i, im_grown *grown)
{
    const char *state = e->graph->input[r->nbefore + i]->name, *out = e->graph->output[1 + i]->name;
    int64_t at = state && out ? made_for(e, &out) : -1;
    const Onnx__NodeProto *node = at < 0 ? NULL : e->graph->node[at];
    if (!node || node->n_input != 2 || (node->domain && *node->domain))
        return NULL;
    const char *before = node->input[0];
    grown->is_list = !strcmp(node->op_type, "SequenceInsert");
    if ((!grown->is_list && strcmp(node->op_type, "Concat")) || made_for(e, &before) >= 0 || strcmp(before, state) ||
        uses_in(e->graph, state) != 1)
        return NULL;
    for (size_t a = 0; a < node->n_attribute; a++)
        if (!strcmp(node->attribute[a]->name, "axis"))
            grown->axis = node->attribute[a]->i;
    e->is_left_out[at] = 1;
    return node->input[1];
}

static Onnx__ValueInfoProto *named(dlc_import *im, const char *name)
{
    Onnx__ValueInfoProto *info = dlc_new(im->arena, Onnx__ValueInfoProto);
    onnx__value_info_proto__init(info);
    info->name = dlc_arena_strdup(im->arena, name);
    return info;
}

/* The body without what was left out, its states in [0, n) kept where pieces[i] is NULL, and the pieces as results. */
static void rewrite(dlc_import *im, dlc_repeat *r, const editor *e, const char *const *pieces, const im_grown *grown)
{
    const Onnx__GraphProto *old = r->graph;
    Onnx__GraphProto *graph = dlc_new(im->arena, Onnx__GraphProto);
    uint32_t nstates = 0, nresults = r->nresults;
    dlc_value **initial = dlc_new_array(im->arena, dlc_value *, r->nstates + 1);
    *graph = *old;
    graph->node = dlc_new_array(im->arena, Onnx__NodeProto *, old->n_node + 1);
    graph->input = dlc_new_array(im->arena, Onnx__ValueInfoProto *, old->n_input + 1);
    graph->output = dlc_new_array(im->arena, Onnx__ValueInfoProto *, old->n_output + 1);
    r->grown = dlc_new_array(im->arena, im_grown, r->nstates + r->nresults + 1);
    r->outputs = dlc_new_array(im->arena, uint32_t, r->nstates + r->nresults + 1);
    graph->n_node = 0;
    for (size_t i = 0; i < old->n_node; i++)
        if (!e->is_left_out[i])
            graph->node[graph->n_node++] = old->node[i];
    memcpy(graph->input, old->input, r->nbefore * sizeof *graph->input);
    graph->output[0] = old->output[0];
    for (uint32_t i = 0; i < r->nstates; i++) {
        if (pieces[i])
            continue;
        r->outputs[nstates] = i;
        initial[nstates] = r->initial[i];
        graph->input[r->nbefore + nstates] = old->input[r->nbefore + i];
        graph->output[1 + nstates++] = old->output[1 + i];
    }
    for (uint32_t i = 0; i < r->nresults; i++) {
        r->outputs[nstates + i] = r->nstates + i;
        graph->output[1 + nstates + i] = old->output[1 + r->nstates + i];
    }
    for (uint32_t i = 0; i < r->nstates; i++) {
        if (!pieces[i])
            continue;
        r->grown[nresults] = grown[i];
        r->grown[nresults].initial = r->initial[i];
        r->outputs[nstates + nresults] = i;
        graph->output[1 + nstates + nresults++] = named(im, pieces[i]);
    }
    graph->n_input = r->nbefore + nstates;
    graph->n_output = 1 + nstates + nresults;
    r->graph = graph;
    r->nstates = nstates;
    r->nresults = nresults;
    r->initial = initial;
}

void im_grow_states(dlc_import *im, dlc_repeat *r)
{
    editor e = {.graph = r->graph, .is_left_out = dlc_new_array(im->arena, uint8_t, r->graph->n_node + 1)};
    const char **pieces = dlc_new_array(im->arena, const char *, r->nstates + 1);
    im_grown *grown = dlc_new_array(im->arena, im_grown, r->nstates + 1);
    uint8_t *before = dlc_new_array(im->arena, uint8_t, r->graph->n_node + 1);
    uint32_t ngrown = 0;
    for (uint32_t i = 0; i < r->nstates; i++) {
        memcpy(before, e.is_left_out, r->graph->n_node);
        pieces[i] = piece_of(&e, r, i, &grown[i]);
        ngrown += pieces[i] != NULL;
        if (!pieces[i])
            memcpy(e.is_left_out, before, r->graph->n_node);
    }
    if (ngrown)
        rewrite(im, r, &e, pieces, grown);
}

/* [n, …] with the first axis put before axis `axis` of the rest, and joined with it. */
static dlc_value *joined(dlc_import *im, dlc_value *rows, uint32_t axis)
{
    uint8_t perm[DLC_MAX_RANK];
    dlc_expr dims[DLC_MAX_RANK];
    uint32_t rank = im_rank(rows);
    for (uint32_t d = 0; d < rank; d++)
        perm[d] = (uint8_t)(d < axis ? d + 1 : d == axis ? 0 : d);
    dlc_value *turned = axis ? f_transpose(im, rows, perm) : rows;
    for (uint32_t d = 0; turned && d + 1 < rank; d++)
        dims[d] = turned->type.dims[d < axis ? d : d + 1];
    if (!turned)
        return NULL;
    dims[axis] = im_size(im, dlc_mul(im->pool, turned->type.dims[axis], turned->type.dims[axis + 1]));
    return f_reshape(im, turned, dims, rank - 1);
}

dlc_value *im_join_rows(dlc_import *im, dlc_value *rows, int64_t given, int is_new)
{
    uint8_t perm[DLC_MAX_RANK];
    int axis = rows ? im_axis(im, given, im_rank(rows) - (is_new ? 0 : 1)) : -1;
    if (axis < 0)
        return NULL;
    if (!is_new)
        return joined(im, rows, (uint32_t)axis);
    for (uint32_t d = 0; d < im_rank(rows); d++)
        perm[d] = (uint8_t)(d < (uint32_t)axis ? d + 1 : d == (uint32_t)axis ? 0 : d);
    return axis ? f_transpose(im, rows, perm) : rows;
}

dlc_value *im_grown_state(dlc_import *im, const im_grown *grown, dlc_value *rows)
{
    const im_list *list = im_list_of(im, grown->initial);
    if (!rows)
        return NULL;
    if (grown->is_list && list && !list->n && !list->rows && !list->is_optional)
        return im_rows_value(im, rows);
    if (grown->is_list || list) {
        im_fail(im, DLC_UNSUPPORTED, "a sequence that grows as often as only the run knows is supported where it is empty before");
        return NULL;
    }
    dlc_value *all = im_join_rows(im, rows, grown->axis, 0);
    return all ? f_concat(im, (dlc_value *[]){grown->initial, all}, 2, (uint32_t)im_axis(im, grown->axis, im_rank(all))) : NULL;
}
