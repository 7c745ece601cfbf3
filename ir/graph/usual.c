/*
 * What a size that only a run knows mostly is, where choices need one. The first dimension of a model's input, if it is a symbol that is no
 * other dimension of any, counts samples, and mostly there is one: who exports a batch as dynamic wants any, and asks for one image, text or
 * sound at a time. That is so where a sample is much by itself: an image, rows of a signal, tokens of some number. Of a row of features
 * ([N,784]) there are as many as a product wants; so there may be of samples as small as one (boxes, keypoints), and [T,1,F] are steps of a
 * sequence. The last two dimensions of [N,C,H,W], C known, are an image's. What is stated (`usual`, --typical) goes before all that.
 */
#include "ir/graph/graph.h"

#include <inttypes.h>
#include <string.h>

enum {
    IMAGE = 256,         /* points a side: detectors' and segmenters' are some times as large, but not their deep layers' */
    LEAST_SAMPLE = 256,  /* elements of it */
    LEAST_FEATURES = 16  /* of a row, of rows of which nobody knows how many there are */
};

static int is_symbol(const dlc_pool *pool, dlc_expr dim, uint32_t symbol)
{
    const dlc_expr_node *node = dlc_node_of(pool, dim);
    return node->op == DLC_EXPR_SYM && node->imm.id == symbol;
}

static int has_symbol(const dlc_pool *pool, dlc_expr dim, uint32_t symbol)
{
    int found = is_symbol(pool, dim, symbol);
    if (found || !dlc_node_of(pool, dim)->nargs)
        return found;
    dlc_mark mark = dlc_arena_mark(pool->arena);
    uint8_t *marks = dlc_new_array(pool->arena, uint8_t, (size_t)dim + 1);
    dlc_expr_reach(pool, dim, marks);
    for (dlc_expr id = 1; id <= dim && !found; id++)
        found = marks[id] && is_symbol(pool, id, symbol);
    dlc_arena_release(pool->arena, mark);
    return found;
}

/* Rows of some input: of a product's second factor, or of what is compared with the first. */
static int counts_rows(const dlc_graph *graph, dlc_expr dim)
{
    for (uint32_t i = 0; i < graph->inputs.n; i++)
        if (graph->inputs.data[i]->type.rank > 1 && graph->inputs.data[i]->type.dims[0] == dim)
            return 1;
    return 0;
}

/* A sample is more than one row: of a size that only the run knows, too, or of several dimensions. A matrix of other inputs' rows is none, nor
 * are lines of an image without a batch, which has few channels behind two sizes that are not known. */
static int is_much(const dlc_graph *graph, const dlc_type *type)
{
    int64_t elems = 1, size = 0;
    uint32_t nlong = 0, nunknown = 0;
    for (uint8_t d = 1; d < type->rank; d++)
        if (dlc_expr_is_int(graph->pool, type->dims[d], &size)) {
            nlong += size > 1;
            elems *= elems < LEAST_SAMPLE ? size : 1;
        } else {
            nunknown++;
            if (counts_rows(graph, type->dims[d]))
                return 0;
        }
    if (nunknown)
        return type->rank != 3 || elems >= LEAST_FEATURES || dlc_expr_is_int(graph->pool, type->dims[1], &size) || nunknown == 2;
    return nlong > 1 && elems >= LEAST_SAMPLE;
}

static int counts_samples(const dlc_graph *graph, uint32_t symbol)
{
    int is_sample_much = 0;
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        const dlc_type *type = &graph->inputs.data[i]->type;
        for (uint8_t d = 1; d < type->rank; d++)
            if (has_symbol(graph->pool, type->dims[d], symbol))
                return 0;
        is_sample_much |= type->rank && is_symbol(graph->pool, type->dims[0], symbol) && is_much(graph, type);
    }
    return is_sample_much;
}

/* Of [N,C,H,W], of whose sizes C alone is known. */
static int is_image(const dlc_graph *graph, const dlc_type *type)
{
    int64_t size;
    return type->rank == 4 && dlc_expr_is_int(graph->pool, type->dims[1], &size) && !dlc_expr_is_int(graph->pool, type->dims[2], &size) &&
           !dlc_expr_is_int(graph->pool, type->dims[3], &size);
}

/* Of images, and no dimension of another input: masks ([N,1,S,S]) have those of what they are for. */
static int is_side(const dlc_graph *graph, uint32_t symbol)
{
    int found = 0;
    for (uint32_t i = 0; i < graph->inputs.n; i++) {
        const dlc_type *type = &graph->inputs.data[i]->type;
        for (uint8_t d = 0; d < type->rank; d++) {
            if (!has_symbol(graph->pool, type->dims[d], symbol))
                continue;
            if (d < 2 || !is_image(graph, type) || !is_symbol(graph->pool, type->dims[d], symbol))
                return 0;
            found = 1;
        }
    }
    return found;
}

static int64_t usual_of_input(const dlc_graph *graph, uint32_t symbol)
{
    return is_side(graph, symbol) ? IMAGE : counts_samples(graph, symbol);
}

int64_t dlc_graph_usual(const dlc_graph *graph, uint32_t symbol)
{
    const dlc_symbol *of = &graph->symbols.data[symbol];
    int64_t usual = of->usual ? of->usual : of->bind == DLC_BIND_INPUT_DIM ? usual_of_input(graph, symbol) : 0;
    return usual ? dlc_symbol_value(usual, of->lo, of->hi) : 0;
}

int64_t *dlc_graph_usual_values(const dlc_graph *graph, int64_t otherwise, dlc_arena *arena)
{
    int64_t *values = dlc_new_array(arena, int64_t, graph->symbols.n + 1);
    for (uint32_t s = 0; s < graph->symbols.n; s++) {
        int64_t usual = dlc_graph_usual(graph, s);
        values[s] = dlc_symbol_value(usual ? usual : otherwise, graph->symbols.data[s].lo, graph->symbols.data[s].hi);
    }
    return values;
}

/* --- what the user states --- */

/* `given`: by symbol, what was stated before. */
static dlc_status state_dim(dlc_graph *graph, const dlc_usual *stated, dlc_expr dim, uint32_t d, int64_t *given)
{
    const dlc_expr_node *node = dlc_node_of(graph->pool, dim);
    int64_t size, wanted = stated->dims[d];
    if (dlc_expr_is_int(graph->pool, dim, &size))
        return size == wanted ? DLC_OK
                              : dlc_diag_fail(graph->diag, DLC_USAGE, graph->file,
                                              "dimension %" PRIu32 " of input '%s' is always %" PRId64 "; %" PRId64 " was given as typical", d,
                                              stated->input, size, wanted);
    if (node->op != DLC_EXPR_SYM)
        return dlc_diag_fail(graph->diag, DLC_USAGE, graph->file,
                             "dimension %" PRIu32 " of input '%s' is computed of others, which typical sizes can be given for", d, stated->input);
    dlc_symbol *symbol = &graph->symbols.data[node->imm.id];
    if (wanted < 1 || wanted != dlc_symbol_value(wanted, symbol->lo, symbol->hi))
        return dlc_diag_fail(graph->diag, DLC_USAGE, graph->file,
                             "dimension %" PRIu32 " of input '%s' is %" PRId64 " to %" PRId64 "; %" PRId64 " was given as typical", d, stated->input,
                             symbol->lo > 1 ? symbol->lo : 1, symbol->hi, wanted);
    if (given[node->imm.id] && given[node->imm.id] != wanted)
        return dlc_diag_fail(graph->diag, DLC_USAGE, graph->file, "%" PRId64 " and %" PRId64 " were given as typical for %s", given[node->imm.id],
                             wanted, symbol->name);
    symbol->usual = given[node->imm.id] = wanted;
    return DLC_OK;
}

dlc_status dlc_graph_state_usual(dlc_graph *graph, const dlc_usual *stated, uint32_t n)
{
    int64_t *given = dlc_new_array(graph->arena, int64_t, graph->symbols.n + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = 0;
        while (k < graph->inputs.n && strcmp(graph->inputs.data[k]->name, stated[i].input) != 0)
            k++;
        if (k == graph->inputs.n)
            return dlc_diag_fail(graph->diag, DLC_USAGE, graph->file, "typical sizes were given for '%s', which is no input", stated[i].input);
        const dlc_type *type = &graph->inputs.data[k]->type;
        if (type->rank != stated[i].rank)
            return dlc_diag_fail(graph->diag, DLC_USAGE, graph->file, "%" PRIu32 " typical sizes were given for input '%s', which has rank %d",
                                 stated[i].rank, stated[i].input, type->rank);
        for (uint32_t d = 0; d < type->rank; d++)
            if (stated[i].dims[d] != -1)
                DLC_TRY(state_dim(graph, &stated[i], type->dims[d], d, given));
    }
    return DLC_OK;
}
