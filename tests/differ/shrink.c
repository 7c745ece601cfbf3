/* Less of a graph that is still wrong: fewer outputs, values that become inputs, nodes that give way to what they read. */
#include "tests/differ/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dlc/dlc.h"
#include "ir/graph/op.h"

typedef struct {
    dlc_arena *arena;
    dlc_diag diag;
    dlc_graph *graph;
} parsed;

static int read_graph(const char *text, parsed *p)
{
    p->arena = dlc_arena_create(0);
    dlc_diag_init(&p->diag, p->arena);
    if (dlc_graph_parse(text, "case", p->arena, &p->diag, &p->graph) == DLC_OK)
        return 1;
    dlc_arena_destroy(p->arena);
    return 0;
}

/* Inputs that nothing needs any more. */
static void drop_inputs(dlc_graph *graph)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        dlc_value *value = graph->inputs.data[i];
        int is_needed = dlc_value_is_used(value);
        for (uint32_t s = 0; s < graph->symbols.n; s++)
            is_needed |= graph->symbols.data[s].value == value;
        if (is_needed)
            graph->inputs.data[n++] = value;
    }
    graph->inputs.n = n;
}

/* The text of a graph without what nobody reads; malloc, NULL: it is no graph any more. */
static char *printed(dlc_graph *graph, const char *head)
{
    dlc_str text = {0};
    const char *clean = NULL;
    char *result = NULL;
    dlc_model *model = NULL;
    drop_inputs(graph);
    dlc_graph_print(graph, &text);
    dlc_options options = {.passes = "dce"};
    if (dlc_model_open_bytes(dlc_str_text(&text), strlen(dlc_str_text(&text)), "case", &options, &model) == DLC_OK &&
        dlc_model_text(model, DLC_TEXT_GRAPH, "text", &clean) == DLC_OK) {
        size_t n = strcspn(head, "\n") + 1, size = n + strlen(clean) + 1;
        result = malloc(size);
        snprintf(result, size, "%.*s%s", (int)n, head, clean);
    }
    dlc_model_close(model);
    dlc_str_deinit(&text);
    return result;
}

/* Value k is no longer computed: an input (0), or what its node reads (1, 2, …) stands there. False: not here. */
static int cut(dlc_graph *graph, dlc_value *value, uint32_t how)
{
    dlc_node *node = value->def;
    char name[64];
    if (dlc_op_is_mark(node->op) || node->op == DLC_OP_CONSTANT || value->nbinds)
        return 0;
    if (how == 0) {
        snprintf(name, sizeof name, dlc_is_float(value->type.dtype) ? "cut_%s" : "cut_%s_u2", value->name);
        dlc_value_replace(graph, value, dlc_graph_input(graph, dlc_arena_strdup(graph->arena, name), &value->type));
        return 1;
    }
    dlc_value *with = how <= node->ninputs ? node->inputs[how - 1] : NULL;
    if (!with || with->type.dtype != value->type.dtype || with->type.rank != value->type.rank ||
        memcmp(with->type.dims, value->type.dims, value->type.rank * sizeof *value->type.dims))
        return 0;
    dlc_value_replace(graph, value, with);
    return 1;
}

/* Change number k of the text; malloc. *is_end: there is no such one. NULL: it does not fit. */
static char *changed(const char *text, uint32_t k, int *is_end)
{
    parsed p;
    char *result = NULL;
    *is_end = 1;
    if (!read_graph(text, &p))
        return NULL;
    uint32_t noutputs = p.graph->outputs.n;
    if (k < noutputs && noutputs > 1) {
        *is_end = 0;
        p.graph->outputs.data[k].value->noutputs--;
        memmove(&p.graph->outputs.data[k], &p.graph->outputs.data[k + 1], (noutputs - 1 - k) * sizeof *p.graph->outputs.data);
        p.graph->outputs.n--;
        result = printed(p.graph, text);
    }
    uint32_t at = noutputs;
    for (dlc_node *node = p.graph->last; node && *is_end; node = node->prev)
        for (uint32_t how = 0; how < 4 && *is_end; how++)
            if (at++ == k) {
                *is_end = 0;
                if (node->noutputs && node->outputs[0] && cut(p.graph, node->outputs[0], how))
                    result = printed(p.graph, text);
            }
    dlc_arena_destroy(p.arena);
    return result;
}

char *shrink_text(const char *text, const way *w, const judgement *j)
{
    char *best = strdup(text);
    int is_end = 0, tries = 0;
    for (uint32_t k = 0; !is_end && tries < 400; k++) {
        judgement found;
        char *less = changed(best, k, &is_end);
        if (!less || !strcmp(less, best)) {
            free(less);
            continue;
        }
        judge_apart(less, w, 1, &found);
        tries++;
        if (found.verdict == j->verdict && strlen(less) < strlen(best) + 40) {
            free(best);
            best = less;
            k = (uint32_t)-1; /* from the start: more may fit now */
        } else {
            free(less);
        }
    }
    return best;
}
