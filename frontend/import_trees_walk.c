/*
 * The way down the trees: the nodes of all trees are records of a constant, and every sample goes down all trees at once. A leaf
 * leads to itself, so every path may take as many steps as the deepest; it has its number in place of a value.
 *
 * Where all nodes compare alike, in f32, a record is two words (descend in ir/graph/mean_index.c): children lie side by side, and
 * many levels are one kernel, without a branch. Trees of like depth go together, so shallow ones do not wait for the deepest. Other
 * forests have records of feature, value, no, yes, and go down a level at a time, a kernel for each:
 *
 *     at = nodes[at + 2 + (x[sample, nodes[at]] <= nodes[at + 1])]
 */
#include "frontend/import_trees.h"
#include "frontend/regions.h"

#include <inttypes.h>
#include <string.h>

/* --- a level at a time --- */

enum { RECORD = 4 }; /* feature; value, or the number of a leaf; where no and yes lead to */

static dlc_value *words(dlc_import *im, const uint32_t *values, uint32_t n)
{
    dlc_type type = {.dtype = DLC_U32, .rank = 1, .dims = {im_i64(im, n)}};
    return dlc_graph_constant(im->graph, "nodes", &type, values, (size_t)n * sizeof *values);
}

static dlc_value *bytes_table(dlc_import *im, const uint8_t *values, uint32_t n)
{
    uint32_t *wide = dlc_new_array(im->arena, uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++)
        wide[i] = values[i];
    return words(im, wide, n);
}

static dlc_value *doubles(dlc_import *im, const double *values, uint32_t n, dlc_dtype dtype)
{
    const dlc_expr dims[1] = {im_i64(im, n)};
    return f_reshape(im, ml_table(im, dtype, values, 1, n), dims, 1);
}

static dlc_value *compared(dlc_import *im, int mode, dlc_value *x, dlc_value *value)
{
    switch (mode) {
    case IM_LEQ:
        return f_binary(im, DLC_OP_LE, x, value);
    case IM_LT:
        return f_binary(im, DLC_OP_LT, x, value);
    case IM_GTE:
        return f_binary(im, DLC_OP_LE, value, x);
    case IM_GT:
        return f_binary(im, DLC_OP_LT, value, x);
    case IM_EQ:
        return f_binary(im, DLC_OP_EQ, x, value);
    default:
        return f_unary(im, DLC_OP_NOT, f_binary(im, DLC_OP_EQ, x, value));
    }
}

typedef struct {
    dlc_value *rows; /* where each sample's features begin in x, which is flat: [samples, 1] */
    dlc_value *nodes, *values, *modes, *tracks; /* values: doubles; modes, tracks: where nodes differ; by node, not by place */
    uint8_t used[IM_NMODES];
} tables;

/* An index without a sign is none that counts from the end. */
static dlc_value *pick(dlc_import *im, dlc_value *from, dlc_value *index)
{
    return f_gather(im, from, f_cast(im, index, DLC_I64), 0);
}

static dlc_value *field(dlc_import *im, const tables *t, dlc_value *at, uint32_t i)
{
    return pick(im, t->nodes, i ? f_add(im, at, f_like(im, at, i)) : at);
}

static dlc_value *value_of(dlc_import *im, const tables *t, dlc_value *at, dlc_value *node)
{
    return t->values ? pick(im, t->values, node)
                     : f_node(im, DLC_OP_BITCAST, F_IN(field(im, t, at, 1)), F_ATTRS(dlc_attr_int(DLC_ATTR_DTYPE, DLC_F32)));
}

/* Whether a sample goes to `yes`: of the modes that the trees use, the node's own. */
static dlc_value *condition(dlc_import *im, const im_forest *f, const tables *t, dlc_value *x,
                            dlc_value *at)
{
    int by_node = t->values || t->modes || t->tracks;
    dlc_value *node = by_node ? f_div(im, at, f_like(im, at, RECORD)) : NULL;
    dlc_value *value = value_of(im, t, at, node), *result = NULL;
    dlc_value *mode = t->modes ? pick(im, t->modes, node) : NULL;
    for (int m = 0; m < IM_LEAF; m++) {
        if (!t->used[m])
            continue;
        dlc_value *holds = compared(im, m, x, value);
        result = !result ? holds
                         : f_where(im, f_binary(im, DLC_OP_EQ, mode, f_like(im, mode, m)), holds,
                                   result);
    }
    if (f->has_tracks && result)
        result = f_binary(im, DLC_OP_OR, result,
                          f_binary(im, DLC_OP_AND, f_unary(im, DLC_OP_IS_NAN, x),
                                   f_cast(im, pick(im, t->tracks, node), DLC_BOOL)));
    return result;
}

static dlc_value *records(dlc_import *im, im_forest *f)
{
    uint32_t *made = dlc_new_array(im->arena, uint32_t, RECORD * (size_t)f->n + 1);
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t *record = made + RECORD * (size_t)i;
        float value = (float)f->values[i];
        record[0] = (uint32_t)f->features[i];
        memcpy(&record[1], &value, sizeof value);
        if (f->modes[i] == IM_LEAF)
            record[1] = f->nleaves++;
        record[2] = RECORD * (uint32_t)f->no[i];
        record[3] = RECORD * (uint32_t)f->yes[i];
    }
    return words(im, made, RECORD * f->n);
}

/* [samples, trees]: the nodes behind those at which the samples are. */
static dlc_value *next_level(dlc_import *im, const im_forest *f, const tables *t, dlc_value *x, dlc_value *at)
{
    dlc_value *feature = f_cast(im, field(im, t, at, 0), DLC_I64);
    dlc_value *seen = f_gather(im, x, f_add(im, t->rows, feature), 0);
    dlc_value *says_yes = f_cast(im, condition(im, f, t, seen, at), DLC_U32);
    return field(im, t, f_add(im, at, says_yes), 2);
}

/* The same step as often as the deepest tree wants: a loop whose state is where they are, one kernel. */
static dlc_value *walk_down(dlc_import *im, const im_forest *f, const tables *t, dlc_value *x, dlc_value *at)
{
    im_loop loop;
    if (f->depth < 2 || !x || !at)
        return at;
    if (!im_loop_begin(im, &loop, im_i64(im, f->depth - 1), 0))
        return NULL;
    dlc_value *state = f_state(im, &loop, at), *next = next_level(im, f, t, x, state);
    return next && im_loop_end(im, &loop) ? f_final(im, &loop, state, next) : NULL;
}

/* x as one row of all samples, which is read lane by lane; every feature must be there. */
static dlc_value *flat_rows(dlc_import *im, const im_forest *f, dlc_value *x, dlc_value **rows, dlc_expr *nsamples)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        most = f->features[i] > most ? f->features[i] : most;
        if (f->features[i] < 0)
            im_fail(im, DLC_INVALID, "node %" PRIu32 " asks for feature %" PRId64, i, f->features[i]);
    }
    int64_t known;
    if (x && im_is_const(im, x->type.dims[1], &known) && most >= known)
        im_fail(im, DLC_INVALID, "nodes_featureids asks for feature %" PRId64 " of an input of %" PRId64, most, known);
    if (!x || !im_ok(im))
        return NULL;
    dlc_expr width = x->type.dims[1], all = im_product(im, x->type.dims, 2);
    dlc_graph_require(im->graph, dlc_lt(im->pool, im_i64(im, most), width), "node '%s': it asks for feature %" PRId64 " of less",
                      im->origin->name, most);
    *nsamples = x->type.dims[0];
    *rows = f_insert_axis(im, f_mul(im, f_iota(im, DLC_I64, *nsamples), f_dim(im, DLC_I64, width)), 1);
    return f_reshape(im, x, &all, 1);
}

static dlc_value *root_places(dlc_import *im, const im_forest *f)
{
    uint32_t *places = dlc_new_array(im->arena, uint32_t, f->ntrees + 1);
    for (uint32_t t = 0; t < f->ntrees; t++)
        places[t] = RECORD * (uint32_t)f->roots[t];
    return words(im, places, f->ntrees);
}

static dlc_value *walk_mixed(dlc_import *im, im_forest *f, dlc_value *x)
{
    if (f->n > UINT32_MAX / RECORD) {
        im_fail(im, DLC_UNSUPPORTED, "%" PRIu32 " nodes; up to %" PRIu32 " are supported", f->n, UINT32_MAX / RECORD);
        return NULL;
    }
    tables t = {.nodes = records(im, f), .values = f->is_double ? doubles(im, f->values, f->n, DLC_F64) : NULL};
    uint32_t nused = 0;
    dlc_expr nsamples;
    for (uint32_t i = 0; i < f->n; i++)
        t.used[f->modes[i]] = 1;
    for (int m = 0; m < IM_LEAF; m++)
        nused += t.used[m];
    if (nused > 1)
        t.modes = bytes_table(im, f->modes, f->n);
    if (f->has_tracks)
        t.tracks = bytes_table(im, f->tracks, f->n);
    if (f->is_double)
        x = f_cast(im, x, DLC_F64);
    x = flat_rows(im, f, x, &t.rows, &nsamples);
    if (!x)
        return NULL;
    const dlc_expr one_row[2] = {im_i64(im, 1), im_i64(im, f->ntrees)},
                   dims[2] = {nsamples, one_row[1]};
    dlc_value *at = f_expand(im, f_reshape(im, root_places(im, f), one_row, 2), dims, 2);
    dlc_value *leaves = walk_down(im, f, &t, x, at);
    return leaves ? field(im, &t, leaves, 1) : NULL;
}

/* --- many levels at a time --- */

enum {
    PLAIN_RECORD = 2,       /* words */
    MOST_LEVELS = 48,       /* written out; more are a loop around them */
    GROUP_STEPS = 512,      /* a group of trees of its own is worth so many steps from record to record */
    GROUP_TREES = 16,       /* groups are whole vectors of trees, but the last */
    LEAF_NUMBER_BITS = 22   /* in the payload of the NaN that a leaf compares with */
};

typedef struct {
    dlc_import *im;
    im_forest *f;
    const char *mode;
    uint32_t nrecords, nbits; /* nbits: of a feature */
    uint32_t *records;
    uint32_t *numbers, *places; /* by node: of leaves; of the records that follow (0: none yet) */
    uint32_t *levels, *roots;   /* by tree: steps to its deepest leaf; where it begins, in words */
    int64_t *nodes;              /* by record */
    dlc_value **parts;           /* where the groups of trees end */
    uint32_t nparts;
} plain_forest;

static uint32_t bits_of(uint64_t most)
{
    uint32_t n = 1;
    while (most >> n)
        n++;
    return n;
}

/* All nodes compare alike, and a word holds what a record has to say. */
static int is_plain(plain_forest *p, const dlc_value *x)
{
    static const char *const modes[] = {"le", "lt", "ge", "gt", "eq"};
    const im_forest *f = p->f;
    int64_t nfeatures;
    int mode = -1;
    uint64_t most = 1, nleaves = 0;
    if (f->is_double || x->type.dtype != DLC_F32 || !im_is_const(p->im, x->type.dims[1], &nfeatures))
        return 0;
    for (uint32_t i = 0; i < f->n; i++) {
        nleaves += f->modes[i] == IM_LEAF;
        if (f->modes[i] == IM_LEAF)
            continue;
        if (f->modes[i] > IM_EQ || (mode >= 0 && mode != f->modes[i]) || f->features[i] < 0 || f->features[i] >= nfeatures)
            return 0;
        mode = f->modes[i];
        most = (uint64_t)f->features[i] > most ? (uint64_t)f->features[i] : most;
    }
    p->mode = modes[mode < 0 ? 0 : mode];
    p->nbits = bits_of(most);
    return p->nbits <= DLC_MOST_FEATURE_BITS && nleaves >> LEAF_NUMBER_BITS == 0 &&
           bits_of(PLAIN_RECORD * (2 * (uint64_t)f->n + f->ntrees + 1)) + p->nbits + 1 <= 32;
}

/* The record of a node at a place, and places for the two that follow it: once for equal branches, whose records share them. */
static void place_node(plain_forest *p, uint32_t at)
{
    const im_forest *f = p->f;
    int64_t node = p->nodes[at];
    uint32_t *record = p->records + PLAIN_RECORD * (size_t)at, next = at;
    float value = (float)f->values[node];
    if (f->modes[node] == IM_LEAF) {
        record[0] = 0x7fc00000u | p->numbers[node]; /* NaN: no comparison holds */
    } else {
        memcpy(record, &value, sizeof value);
        if (!p->places[node]) {
            p->places[node] = p->nrecords;
            p->nodes[p->nrecords++] = f->no[node];
            p->nodes[p->nrecords++] = f->yes[node];
        }
        next = p->places[node];
    }
    record[1] = (uint32_t)f->features[node] | (uint32_t)(f->has_tracks && f->tracks[node]) << p->nbits |
                PLAIN_RECORD * next << (p->nbits + f->has_tracks);
}

/* The tree's records, level by level. */
static void place_tree(plain_forest *p, uint32_t tree)
{
    uint32_t at = p->nrecords;
    p->roots[tree] = PLAIN_RECORD * at;
    p->nodes[p->nrecords++] = p->f->roots[tree];
    for (place_node(p, at++); at < p->nrecords; p->levels[tree]++)
        for (uint32_t end = p->nrecords; at < end; at++)
            place_node(p, at);
}

static dlc_value *place_trees(plain_forest *p)
{
    dlc_arena *arena = p->im->arena;
    const im_forest *f = p->f;
    size_t most = 2 * (size_t)f->n + f->ntrees + 1;
    p->nodes = dlc_new_array(arena, int64_t, most);
    p->numbers = dlc_new_array(arena, uint32_t, f->n + 1);
    p->places = dlc_new_array(arena, uint32_t, f->n + 1);
    p->levels = dlc_new_array(arena, uint32_t, f->ntrees + 1);
    p->roots = dlc_new_array(arena, uint32_t, f->ntrees + 1);
    p->records = dlc_new_array(arena, uint32_t, PLAIN_RECORD * most);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->modes[i] == IM_LEAF)
            p->numbers[i] = p->f->nleaves++;
    for (uint32_t t = 0; t < f->ntrees; t++)
        place_tree(p, t);
    return words(p->im, p->records, PLAIN_RECORD * (p->nrecords + 1)); /* the last of a table is nobody's first follower */
}

/* As many levels further, from the roots of a group of trees. */
static dlc_value *descend(const plain_forest *p, dlc_value *x, dlc_value *records, dlc_value *at, uint32_t levels)
{
    dlc_import *im = p->im;
    uint32_t turns = (levels + MOST_LEVELS - 1) / MOST_LEVELS;
    const dlc_expr dims[2] = {x->type.dims[0], at ? at->type.dims[1] : 0};
    if (!levels)
        return f_expand(im, at, dims, 2);
    const dlc_attr attrs[] = {dlc_attr_int(DLC_ATTR_LEVELS, (levels + turns - 1) / turns), dlc_attr_int(DLC_ATTR_BITS, p->nbits),
                              dlc_attr_int(DLC_ATTR_MISSING, p->f->has_tracks), dlc_attr_text(DLC_ATTR_MODE, p->mode)};
    if (turns == 1)
        return f_node(im, DLC_OP_DESCEND, F_IN(x, records, at), attrs, 4);
    im_loop loop;
    dlc_value *first = f_expand(im, at, dims, 2);
    if (!first || !im_loop_begin(im, &loop, im_i64(im, turns), 0))
        return NULL;
    dlc_value *state = f_state(im, &loop, first), *next = f_node(im, DLC_OP_DESCEND, F_IN(x, records, state), attrs, 4);
    return next && im_loop_end(im, &loop) ? f_final(im, &loop, state, next) : NULL;
}

/* Where the group of trees from `first` on, which are sorted, ends: those of lesser depth go by themselves where it saves enough. */
static uint32_t end_of_group(const plain_forest *p, const uint32_t *order, uint32_t first, uint32_t end)
{
    uint64_t most = 0;
    uint32_t best = end;
    for (uint32_t k = first + GROUP_TREES; k < end; k += GROUP_TREES) {
        uint64_t saved = (uint64_t)(k - first) * (p->levels[order[end - 1]] - p->levels[order[k - 1]]);
        if (saved > most && saved >= GROUP_STEPS) {
            most = saved;
            best = k;
        }
    }
    return best;
}

static void descend_groups(plain_forest *p, dlc_value *x, dlc_value *records, const uint32_t *order, uint32_t first, uint32_t end)
{
    dlc_import *im = p->im;
    uint32_t middle = end_of_group(p, order, first, end), n = end - first;
    if (middle < end) {
        descend_groups(p, x, records, order, first, middle);
        descend_groups(p, x, records, order, middle, end);
        return;
    }
    uint32_t *roots = dlc_new_array(im->arena, uint32_t, n + 1);
    for (uint32_t k = 0; k < n; k++)
        roots[k] = p->roots[order[first + k]];
    const dlc_expr dims[2] = {im_i64(im, 1), im_i64(im, n)};
    p->parts[p->nparts++] = descend(p, x, records, f_reshape(im, words(im, roots, n), dims, 2), p->levels[order[end - 1]]);
}

static dlc_value *walk_plain(plain_forest *p, dlc_value *x)
{
    dlc_import *im = p->im;
    const im_forest *f = p->f;
    dlc_value *records = place_trees(p);
    uint32_t *order = dlc_new_array(im->arena, uint32_t, f->ntrees + 1), n = 0;
    for (uint32_t levels = 0; levels < f->depth; levels++)
        for (uint32_t t = 0; t < f->ntrees; t++)
            if (p->levels[t] == levels)
                order[n++] = t;
    p->parts = dlc_new_array(im->arena, dlc_value *, f->ntrees + 1);
    descend_groups(p, x, records, order, 0, f->ntrees);
    dlc_value *at = p->nparts == 1 ? p->parts[0] : f_concat(im, p->parts, p->nparts, 1);
    dlc_value *word = at ? f_gather(im, records, f_cast(im, at, DLC_I64), 0) : NULL;
    return word ? f_binary(im, DLC_OP_AND, word, f_like(im, word, (1 << LEAF_NUMBER_BITS) - 1)) : NULL;
}

dlc_value *im_walk_trees(dlc_import *im, im_forest *f, dlc_value *x)
{
    plain_forest p = {.im = im, .f = f};
    return is_plain(&p, x) ? walk_plain(&p, x) : walk_mixed(im, f, x);
}
