/*
 * Tree ensembles: what the attributes of three operators say becomes a forest, every sample goes down all its trees to a leaf
 * (import_trees_walk.c), and what leaves weigh is summed over the trees.
 */
#include "frontend/import_trees.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 512, FEW_TARGETS = 4 };

static void allocate(dlc_import *im, im_forest *f, uint32_t n, uint32_t ntargets)
{
    f->n = n;
    f->ntargets = ntargets;
    f->modes = dlc_new_array(im->arena, uint8_t, n + 1);
    f->features = dlc_new_array(im->arena, int64_t, n + 1);
    f->yes = dlc_new_array(im->arena, int64_t, n + 1);
    f->no = dlc_new_array(im->arena, int64_t, n + 1);
    f->roots = dlc_new_array(im->arena, int64_t, n + 1);
    f->values = dlc_new_array(im->arena, double, n + 1);
    f->tracks = dlc_new_array(im->arena, uint8_t, n + 1);
    f->weights = dlc_new_array(im->arena, double, (size_t)n * ntargets + 1);
    f->weighs = dlc_new_array(im->arena, uint8_t, (size_t)n * ntargets + 1);
}

/* No node is reached in two ways: its parent is one, and roots have none. The depth is that of the deepest. */
static int measure(dlc_import *im, im_forest *f)
{
    uint32_t *depth = dlc_new_array(im->arena, uint32_t, f->n + 1);
    int64_t *todo = dlc_new_array(im->arena, int64_t, f->n + 2);
    for (uint32_t t = 0; t < f->ntrees; t++) {
        uint32_t n = 0;
        depth[f->roots[t]] = 1;
        for (todo[n++] = f->roots[t]; n;) {
            int64_t at = todo[--n];
            if (depth[at] > f->depth)
                f->depth = depth[at];
            if (f->modes[at] == IM_LEAF)
                continue;
            const int64_t next[2] = {f->yes[at], f->no[at]};
            for (int k = 0; k < 1 + (next[0] != next[1]); k++) {
                depth[next[k]] = depth[at] + 1;
                todo[n++] = next[k];
            }
        }
    }
    for (uint32_t i = 0; i < f->n; i++)
        if (!depth[i]) {
            im_fail(im, DLC_INVALID, "entry %" PRIu32 " of the nodes is reached from no root: its parents form a circle", i);
            return 0;
        }
    if (f->depth > DEEPEST)
        im_fail(im, DLC_UNSUPPORTED, "a tree of depth %" PRIu32 "; up to %d are supported",
                f->depth, DEEPEST);
    return im_ok(im);
}

/* --- what the leaves weigh --- */

/* [samples, targets]: of few targets each by itself, along the trees. */
static dlc_value *combined(dlc_import *im, const im_forest *f, dlc_opcode op, dlc_value *leaves, dlc_value *weights)
{
    static const uint8_t trees[1] = {1};
    dlc_value *parts[FEW_TARGETS], *rows = f_cast(im, leaves, DLC_I64);
    if (f->ntargets > FEW_TARGETS)
        return f_reduce(im, op, f_gather(im, weights, rows, 0), trees, 1, 0);
    for (uint32_t k = 0; k < f->ntargets; k++) {
        const dlc_expr all[1] = {im_i64(im, f->nleaves)};
        dlc_value *column = f_reshape(im, f_slice(im, weights, 1, im_i64(im, k), im_i64(im, 1)), all, 1);
        parts[k] = f_reduce(im, op, f_gather(im, column, rows, 0), trees, 1, 1);
    }
    return f->ntargets == 1 ? parts[0] : f_concat(im, parts, f->ntargets, 1);
}

static dlc_value *aggregated(dlc_import *im, const im_forest *f, dlc_value *leaves, const char *how)
{
    dlc_dtype dtype = f->is_double ? DLC_F64 : DLC_F32;
    int is_extreme = how[0] == 'M';
    double fill = !is_extreme ? 0 : how[1] == 'I' ? INFINITY : -INFINITY;
    double *next = f->weights; /* those of leaves, in the order of their numbers */
    for (uint32_t i = 0; i < f->n; i++)
        for (uint32_t k = 0; k < f->ntargets && f->modes[i] == IM_LEAF; k++) {
            size_t at = (size_t)i * f->ntargets + k;
            *next++ = f->weighs[at] ? f->weights[at] : fill;
        }
    dlc_value *weights = ml_table(im, dtype, f->weights, f->nleaves, f->ntargets);
    dlc_opcode op = !is_extreme ? DLC_OP_REDUCE_SUM
                    : how[1] == 'I' ? DLC_OP_REDUCE_MIN
                                    : DLC_OP_REDUCE_MAX;
    dlc_value *y = combined(im, f, op, leaves, weights);
    return how[0] == 'A' ? f_div(im, y, f_like(im, y, f->ntrees)) : y;
}

/* --- reading: nodes by tree and number (versions 1 and 3) --- */

typedef struct {
    int64_t tree, number;
    uint32_t place; /* in the lists */
} node_name;

/* Sorted: the search is short whatever numbers a file makes up. */
typedef struct {
    node_name *names;
    uint32_t n;
} node_table;

static int by_tree_and_number(const void *a, const void *b)
{
    const node_name *x = a, *y = b;
    return x->tree != y->tree ? (x->tree > y->tree) - (x->tree < y->tree) : (x->number > y->number) - (x->number < y->number);
}

static node_table number_nodes(dlc_import *im, const int64_t *trees, const int64_t *numbers, uint32_t n)
{
    node_table t = {dlc_new_array(im->arena, node_name, n + 1), n};
    int is_sorted = 1; /* as converters write them */
    for (uint32_t i = 0; i < n; i++) {
        t.names[i] = (node_name){trees[i], numbers[i], i};
        is_sorted &= !i || by_tree_and_number(&t.names[i - 1], &t.names[i]) < 0;
    }
    if (!is_sorted)
        qsort(t.names, n, sizeof *t.names, by_tree_and_number);
    for (uint32_t i = 1; i < n && im_ok(im); i++)
        if (by_tree_and_number(&t.names[i - 1], &t.names[i]) == 0)
            im_fail(im, DLC_INVALID, "nodes_nodeids names node %" PRId64 " of tree %" PRId64 " twice", t.names[i].number,
                    t.names[i].tree);
    return t;
}

/* Index of a node that must be there, or -1 when reported. */
static int64_t index_of(dlc_import *im, const node_table *t, int64_t tree, int64_t node)
{
    const node_name key = {.tree = tree, .number = node}, *found = bsearch(&key, t->names, t->n, sizeof key, by_tree_and_number);
    if (found)
        return found->place;
    im_fail(im, DLC_INVALID, "tree %" PRId64 " has no node %" PRId64, tree, node);
    return -1;
}

static int mode_of(dlc_import *im, const char *text)
{
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
    for (int m = 0; m <= IM_LEAF; m++) {
        if (strcmp(text, names[m]) == 0)
            return m;
    }
    im_fail(im, DLC_UNSUPPORTED, "a node's mode is '%s'", text);
    return IM_LEAF;
}

/* Numbers from NAME or the tensor NAME_as_tensor; *is_double: the latter was f64. */
static const double *either(dlc_import *im, const char *name, uint32_t *n, uint8_t *is_double)
{
    char tensor[64];
    const double *floats = ml_floats(im, name, n);
    snprintf(tensor, sizeof tensor, "%s_as_tensor", name);
    if (!im_has(im, tensor))
        return floats;
    dlc_value *value = im_tensor_attribute(im, tensor);
    if (!value)
        return NULL;
    *is_double |= value->type.dtype == DLC_F64;
    return im_const_floats(im, value, tensor, n);
}

/* Lists that say one thing each of the same: as many entries as the first, and at least one. */
static int are_as_long(dlc_import *im, const char *const *names, const uint32_t *n, int nlists, const char *of)
{
    for (int i = 0; i < nlists && im_ok(im); i++)
        if (!n[i])
            im_fail(im, DLC_INVALID, "%s is missing or empty; one entry for each %s is wanted", names[i], of);
        else if (n[i] != n[0])
            im_fail(im, DLC_INVALID, "%s has %" PRIu32 " entries, %s has %" PRIu32, names[i], n[i], names[0], n[0]);
    return im_ok(im);
}

/* For each node, or not at all (NULL): whether a missing value takes the yes branch. */
static const int64_t *read_tracks(dlc_import *im, const char *nodes, uint32_t nnodes)
{
    static const char name[] = "nodes_missing_value_tracks_true";
    uint32_t n = 0;
    const int64_t *tracks = im_ints(im, name, &n);
    if (n && n != nnodes)
        im_fail(im, DLC_INVALID, "%s has %" PRIu32 " entries, %s has %" PRIu32 "; as many or none are possible", name, n, nodes,
                nnodes);
    return n ? tracks : NULL;
}

typedef struct {
    const int64_t *trees, *numbers, *ids;
    const double *weights;
    uint32_t n;
} weighing;

static int read_weighing(dlc_import *im, const char *what, weighing *w, uint8_t *is_double)
{
    char name[4][32];
    uint32_t n[4] = {0};
    static const char *const parts[] = {"treeids", "nodeids", "ids", "weights"};
    for (int i = 0; i < 4; i++)
        snprintf(name[i], sizeof name[i], "%s_%s", what, parts[i]);
    w->trees = im_ints(im, name[0], &n[0]);
    w->numbers = im_ints(im, name[1], &n[1]);
    w->ids = im_ints(im, name[2], &n[2]);
    w->weights = either(im, name[3], &n[3], is_double);
    w->n = n[0];
    return are_as_long(im, (const char *const[]){name[0], name[1], name[2], name[3]}, n, 4, "weight of a leaf");
}

typedef struct {
    const int64_t *trees, *numbers, *features, *yes, *no, *tracks;
    const char **modes;
    const double *values;
    uint32_t n;
} node_lists;

static int read_nodes(dlc_import *im, node_lists *l, uint8_t *is_double)
{
    enum { NEEDED = 7 };
    static const char *const names[NEEDED] = {"nodes_treeids",     "nodes_nodeids", "nodes_featureids", "nodes_truenodeids",
                                              "nodes_falsenodeids", "nodes_modes",   "nodes_values"};
    uint32_t n[NEEDED] = {0}, nrates;
    l->trees = im_ints(im, names[0], &n[0]);
    l->numbers = im_ints(im, names[1], &n[1]);
    l->features = im_ints(im, names[2], &n[2]);
    l->yes = im_ints(im, names[3], &n[3]);
    l->no = im_ints(im, names[4], &n[4]);
    l->modes = im_texts(im, names[5], &n[5]);
    l->values = either(im, names[6], &n[6], is_double);
    l->n = n[0];
    (void)im_floats(im, "nodes_hitrates", &nrates);
    (void)im_attribute(im, "nodes_hitrates_as_tensor");
    if (!are_as_long(im, names, n, NEEDED, "node"))
        return 0;
    l->tracks = read_tracks(im, names[0], l->n);
    return im_ok(im);
}

/* Where a branch leads to, or -1 when reported. It may lead to one node in both cases; a node of two branches is of no tree. */
static int64_t child_of(dlc_import *im, const node_lists *l, const node_table *numbers, uint32_t i, int is_yes, uint32_t *parents)
{
    int64_t wanted = is_yes ? l->yes[i] : l->no[i], at = index_of(im, numbers, l->trees[i], wanted);
    if (at < 0)
        return -1;
    if (parents[at] && parents[at] != i + 1) {
        im_fail(im, DLC_INVALID, "%s: node %" PRId64 " of tree %" PRId64 " follows node %" PRId64 " and node %" PRId64
                "; one parent is possible", is_yes ? "nodes_truenodeids" : "nodes_falsenodeids", wanted, l->trees[i],
                l->numbers[parents[at] - 1], l->numbers[i]);
        return -1;
    }
    parents[at] = i + 1;
    return at;
}

/* The nodes that follow none, one of each tree at most. */
static void find_roots(dlc_import *im, const node_table *t, const uint32_t *parents, im_forest *f)
{
    const node_name *last = NULL;
    for (uint32_t i = 0; i < t->n && im_ok(im); i++) {
        const node_name *name = &t->names[i];
        if (parents[name->place])
            continue;
        if (last && last->tree == name->tree)
            im_fail(im, DLC_INVALID, "nodes_truenodeids and nodes_falsenodeids lead neither to node %" PRId64 " of tree %" PRId64
                    " nor to node %" PRId64 "; one root a tree is possible", last->number, name->tree, name->number);
        last = name;
    }
    for (uint32_t i = 0; i < t->n; i++)
        if (!parents[i])
            f->roots[f->ntrees++] = i;
}

static void read_forest(dlc_import *im, const node_lists *l, const weighing *w, uint32_t ntargets,
                        im_forest *f)
{
    const node_table numbers = number_nodes(im, l->trees, l->numbers, l->n);
    allocate(im, f, l->n, ntargets);
    uint32_t *parents = dlc_new_array(im->arena, uint32_t, l->n + 1); /* above 0; 0: none yet */
    for (uint32_t i = 0; i < l->n && im_ok(im); i++) {
        f->modes[i] = (uint8_t)mode_of(im, l->modes[i]);
        f->yes[i] = f->no[i] = i;
        if (f->modes[i] == IM_LEAF)
            continue;
        f->features[i] = l->features[i];
        f->values[i] = l->values[i];
        f->tracks[i] = l->tracks && l->tracks[i];
        f->has_tracks |= f->tracks[i];
        f->yes[i] = child_of(im, l, &numbers, i, 1, parents);
        f->no[i] = im_ok(im) ? child_of(im, l, &numbers, i, 0, parents) : -1;
    }
    if (im_ok(im))
        find_roots(im, &numbers, parents, f);
    for (uint32_t i = 0; i < w->n && im_ok(im); i++) {
        int64_t at = index_of(im, &numbers, w->trees[i], w->numbers[i]);
        if (at >= 0 && (w->ids[i] < 0 || w->ids[i] >= ntargets))
            im_fail(im, DLC_INVALID, "a leaf weighs for target %" PRId64 " of %" PRIu32, w->ids[i],
                    ntargets);
        if (!im_ok(im))
            return;
        f->weights[(size_t)at * ntargets + (size_t)w->ids[i]] += w->weights[i];
        f->weighs[(size_t)at * ntargets + (size_t)w->ids[i]] = 1;
    }
    if (im_ok(im))
        (void)measure(im, f);
}

static dlc_value *with_base(dlc_import *im, dlc_value *y, const double *base, uint32_t n)
{
    return base && n && y ? f_add(im, y, ml_table(im, y->type.dtype, base, 1, n)) : y;
}

void import_tree_regressor(dlc_import *im)
{
    node_lists nodes;
    weighing weights;
    im_forest f = {0};
    uint32_t nbase;
    const char *transform = ml_transform(im);
    const char *how = im_choice(im, "aggregate_function", "SUM", "SUM|AVERAGE|MIN|MAX");
    int64_t ntargets = im_int(im, "n_targets", 1);
    const double *base = either(im, "base_values", &nbase, &f.is_double);
    dlc_value *x = ml_features(im);
    if (!x || !transform || !how || !read_nodes(im, &nodes, &f.is_double) ||
        !read_weighing(im, "target", &weights, &f.is_double))
        return;
    if (ntargets < 1 || ntargets > INT16_MAX || (base && nbase > 1 && nbase != ntargets)) {
        im_fail(im, DLC_INVALID, "n_targets is %" PRId64 ", with %" PRIu32 " base values", ntargets,
                nbase);
        return;
    }
    f.is_double |= x->type.dtype == DLC_F64;
    read_forest(im, &nodes, &weights, (uint32_t)ntargets, &f);
    if (!im_ok(im))
        return;
    dlc_value *y = with_base(im, aggregated(im, &f, im_walk_trees(im, &f, x), how), base, nbase);
    im->out[0] = ml_transformed(im, y, transform);
}

/* --- classifiers --- */

/* Two labels of which the leaves weigh for one alone: its score decides. Scores of the first label,
 * as converters write it, stand for the second, and give the first's. */
static void two_labels(dlc_import *im, const weighing *w, const ml_labels *labels, dlc_value *score,
                       const char *transform, int is_first)
{
    int is_probability = 1;
    for (uint32_t i = 0; i < w->n; i++)
        is_probability &= w->weights[i] >= 0;
    dlc_value *wins = f_binary(im, DLC_OP_LT, f_like(im, score, is_probability ? 0.5 : 0), score);
    const dlc_expr rows[1] = {score->type.dims[0]};
    im->out[0] =
        ml_label_of(im, labels, f_reshape(im, f_cast(im, wins, DLC_I64), rows, 1));
    int is_plain = is_probability ? transform[0] != 'L' : transform[0] == 'P';
    dlc_value *nothing = f_expand(im, f_like(im, score, 0), score->type.dims, 2);
    if (im_wants(im, 1) && !is_first)
        im->out[1] = ml_transformed(
            im, f_concat(im, (dlc_value *const[]){nothing, score}, 2, 1), transform);
    else if (im_wants(im, 1) && is_plain)
        im->out[1] = f_cast(im, ml_pair(im, score, 1), DLC_F32);
    else if (im_wants(im, 1))
        im->out[1] = ml_transformed(im, ml_pair(im, score, 0), transform);
}

static int is_one_sided(const weighing *w, uint32_t *id)
{
    *id = w->n ? (uint32_t)w->ids[0] : 0;
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->ids[i] != w->ids[0])
            return 0;
    }
    return 1;
}

/* Of all targets one is left. */
static void keep_target(im_forest *f, uint32_t target)
{
    for (uint32_t i = 0; i < f->n; i++) {
        f->weights[i] = f->weights[(size_t)i * f->ntargets + target];
        f->weighs[i] = f->weighs[(size_t)i * f->ntargets + target];
    }
    f->ntargets = 1;
}

void import_tree_classifier(dlc_import *im)
{
    node_lists nodes;
    weighing weights;
    im_forest f = {0};
    ml_labels labels;
    uint32_t nbase, id;
    const char *transform = ml_transform(im);
    const double *base = either(im, "base_values", &nbase, &f.is_double);
    dlc_value *x = ml_features(im);
    if (!x || !transform || !read_nodes(im, &nodes, &f.is_double) ||
        !read_weighing(im, "class", &weights, &f.is_double) ||
        !ml_read_labels(im, "classlabels_int64s", "classlabels_strings", &labels))
        return;
    f.is_double |= x->type.dtype == DLC_F64;
    read_forest(im, &nodes, &weights, labels.n, &f);
    if (!im_ok(im))
        return;
    int is_single = labels.n == 2 && is_one_sided(&weights, &id);
    if (is_single)
        keep_target(&f, id);
    dlc_value *scores = aggregated(im, &f, im_walk_trees(im, &f, x), "SUM");
    if (is_single && scores) {
        scores = with_base(im, scores, base ? base + (nbase == 2) : NULL, nbase ? 1 : 0);
        if (scores)
            two_labels(im, &weights, &labels, scores, transform, id == 0);
        return;
    }
    if (base && nbase && nbase != labels.n && nbase != 1)
        im_fail(im, DLC_INVALID, "%" PRIu32 " base values for %" PRIu32 " labels", nbase, labels.n);
    scores = im_ok(im) ? with_base(im, scores, base, nbase) : NULL;
    if (!scores)
        return;
    im->out[0] = ml_label_of(im, &labels, ml_greatest(im, scores));
    if (im_wants(im, 1))
        im->out[1] = ml_transformed(im, scores, transform);
}

/* --- TreeEnsemble-5: roots and branches by index, leaves in lists of their own --- */

static const double *tensor_of(dlc_import *im, const char *name, uint32_t *n, uint8_t *is_double)
{
    *n = 0;
    dlc_value *value = im_has(im, name) ? im_tensor_attribute(im, name) : NULL;
    if (!value)
        return NULL;
    *is_double |= value->type.dtype == DLC_F64;
    return im_const_floats(im, value, name, n);
}

/* Membership is a chain of nodes that ask for one member each, and all lead to the same place: the
 * place is copied, a leaf or a whole branch. */
typedef struct {
    const int64_t *features, *yes, *no, *yes_leaf, *no_leaf, *tracks, *targets, *roots;
    const double *splits, *modes, *weights, *members;
    uint32_t n, nleaves, nroots, nmembers, *first_member;
} tree_lists;

enum { MEMBER = 6 }; /* among nodes_modes: is it one of a set */

static int read_lists(dlc_import *im, tree_lists *l, uint8_t *is_double)
{
    uint32_t n[6] = {0}, nweights = 0;
    uint8_t unused = 0;
    l->features = im_ints(im, "nodes_featureids", &l->n);
    l->yes = im_ints(im, "nodes_truenodeids", &n[0]);
    l->no = im_ints(im, "nodes_falsenodeids", &n[1]);
    l->yes_leaf = im_ints(im, "nodes_trueleafs", &n[2]);
    l->no_leaf = im_ints(im, "nodes_falseleafs", &n[3]);
    l->splits = tensor_of(im, "nodes_splits", &n[4], is_double);
    l->modes = tensor_of(im, "nodes_modes", &n[5], &unused);
    l->tracks = read_tracks(im, "nodes_featureids", l->n);
    l->targets = im_ints(im, "leaf_targetids", &l->nleaves);
    l->weights = tensor_of(im, "leaf_weights", &nweights, is_double);
    l->roots = im_ints(im, "tree_roots", &l->nroots);
    l->members = tensor_of(im, "membership_values", &l->nmembers, &unused);
    (void)im_attribute(im, "nodes_hitrates");
    int is_whole = l->features && l->yes && l->no && l->yes_leaf && l->no_leaf && l->splits &&
                   l->modes && l->targets && l->weights && l->roots && nweights == l->nleaves;
    for (int i = 0; i < 6; i++)
        is_whole &= n[i] == l->n;
    if (im_ok(im) && !is_whole)
        im_fail(im, DLC_INVALID, "the lists of nodes or leaves are absent or differ in length");
    for (uint32_t i = 0; im_ok(im) && i < l->n; i++)
        if (!(l->modes[i] >= 0 && l->modes[i] <= MEMBER))
            im_fail(im, DLC_INVALID, "nodes_modes[%" PRIu32 "] is %g; 0 to %d are possible", i, l->modes[i], MEMBER);
    return im_ok(im);
}

typedef struct {
    dlc_import *im;
    const tree_lists *l;
    im_forest *f;
    uint32_t capacity, next_member, nwalked;
    uint8_t *seen; /* nodes that a walk met */
    int64_t twice; /* the first that was met again; -1: none */
} planting;

/* A new node; -1 when there are too many. */
static int64_t new_node(planting *p)
{
    if (p->f->n < p->capacity)
        return p->f->n++;
    im_fail(p->im, DLC_UNSUPPORTED, "the trees have more than %" PRIu32 " nodes, each member of a "
            "set counted", p->capacity);
    return -1;
}

static void plant(planting *p, int64_t at, int64_t place, int is_leaf, uint32_t depth);

static void plant_leaf(planting *p, int64_t at, int64_t leaf)
{
    im_forest *f = p->f;
    if (leaf < 0 || leaf >= p->l->nleaves || p->l->targets[leaf] < 0 ||
        p->l->targets[leaf] >= f->ntargets) {
        im_fail(p->im, DLC_INVALID, "there is no leaf %" PRId64 ", or no target for it", leaf);
        return;
    }
    size_t slot = (size_t)at * f->ntargets + (size_t)p->l->targets[leaf];
    f->modes[at] = IM_LEAF;
    f->yes[at] = f->no[at] = at;
    f->weights[slot] = p->l->weights[leaf];
    f->weighs[slot] = 1;
}

static void plant_branch(planting *p, int64_t at, int64_t node, uint8_t mode, double value,
                         int64_t *no)
{
    im_forest *f = p->f;
    f->modes[at] = mode;
    f->features[at] = p->l->features[node];
    f->values[at] = value;
    f->tracks[at] = p->l->tracks && p->l->tracks[node];
    f->has_tracks |= f->tracks[at];
    f->yes[at] = new_node(p);
    *no = f->no[at] = im_ok(p->im) ? new_node(p) : -1;
}

static void plant(planting *p, int64_t at, int64_t place, int is_leaf, uint32_t depth)
{
    const tree_lists *l = p->l;
    int64_t no = at;
    if (is_leaf) {
        plant_leaf(p, at, place);
        return;
    }
    if (place < 0 || place >= l->n || depth > DEEPEST) {
        im_fail(p->im, DLC_INVALID, "node %" PRId64 " is not there, or too deep", place);
        return;
    }
    if (l->modes[place] != MEMBER) {
        plant_branch(p, at, place, (uint8_t)l->modes[place], l->splits[place], &no);
        if (im_ok(p->im))
            plant(p, p->f->yes[at], l->yes[place], l->yes_leaf[place] != 0, depth + 1);
    } else {
        for (uint32_t m = l->first_member[place]; m < l->nmembers && !isnan(l->members[m]); m++) {
            int64_t here = no;
            plant_branch(p, here, place, IM_EQ, l->members[m], &no);
            if (im_ok(p->im))
                plant(p, p->f->yes[here], l->yes[place], l->yes_leaf[place] != 0, depth + 1);
            if (!im_ok(p->im))
                return;
        }
    }
    if (im_ok(p->im))
        plant(p, no, l->no[place], l->no_leaf[place] != 0, depth + 1);
}

/* Sets follow each other in the order in which a walk, yes first, meets their nodes. */
static void find_members(planting *p, tree_lists *l, int64_t place, int is_leaf, uint32_t depth)
{
    if (is_leaf || place < 0 || place >= l->n || depth > DEEPEST || !im_ok(p->im))
        return;
    if (p->seen[place] && p->twice < 0)
        p->twice = place;
    p->seen[place] = 1;
    if (p->nwalked++ > p->capacity) { /* more than there are nodes: one was met again */
        im_fail(p->im, DLC_INVALID, "node %" PRId64 " is reached in several ways, which is no tree", p->twice);
        return;
    }
    if (l->modes[place] == MEMBER) {
        l->first_member[place] = p->next_member;
        while (p->next_member < l->nmembers && !isnan(l->members[p->next_member]))
            p->next_member++;
        p->next_member++;
    }
    find_members(p, l, l->yes[place], l->yes_leaf[place] != 0, depth + 1);
    find_members(p, l, l->no[place], l->no_leaf[place] != 0, depth + 1);
}

void import_tree_ensemble(dlc_import *im)
{
    static const char *const hows[] = {"AVERAGE", "SUM", "MIN", "MAX"};
    static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                             "PROBIT"};
    tree_lists l;
    im_forest f = {0};
    int64_t how = im_int(im, "aggregate_function", 1), transform = im_int(im, "post_transform", 0);
    int64_t ntargets = im_int(im, "n_targets", 1);
    dlc_value *x = ml_features(im);
    if (!x || !read_lists(im, &l, &f.is_double))
        return;
    if (how < 0 || how > 3 || transform < 0 || transform > 4 || ntargets < 1 ||
        ntargets > INT16_MAX) {
        im_fail(im, DLC_INVALID, "aggregate_function, post_transform or n_targets is out of range");
        return;
    }
    f.is_double |= x->type.dtype == DLC_F64;
    uint32_t capacity = 2 * (l.n + l.nroots) + l.nleaves + 4 * l.nmembers + 2;
    allocate(im, &f, capacity, (uint32_t)ntargets);
    f.n = 0;
    l.first_member = dlc_new_array(im->arena, uint32_t, l.n + 1);
    planting p = {.im = im, .l = &l, .f = &f, .capacity = capacity, .twice = -1};
    p.seen = dlc_new_array(im->arena, uint8_t, l.n + 1);
    for (uint32_t t = 0; t < l.nroots && im_ok(im); t++) {
        int64_t r = l.roots[t], at = new_node(&p);
        int is_leaf = r >= 0 && r < l.n && l.yes_leaf[r] && l.no_leaf[r] && l.yes[r] == l.no[r];
        f.roots[f.ntrees++] = at;
        find_members(&p, &l, r, is_leaf, 1);
        if (at >= 0)
            plant(&p, at, is_leaf ? l.yes[r] : r, is_leaf, 1);
    }
    if (!im_ok(im) || !measure(im, &f))
        return;
    dlc_value *y = aggregated(im, &f, im_walk_trees(im, &f, x), hows[how]);
    dlc_dtype dtype = x->type.dtype;
    im->out[0] = f_cast(im, transform ? ml_transformed(im, y, transforms[transform]) : y, dtype);
}
