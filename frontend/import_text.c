/* Texts as numbers: counts of n-grams, as comparisons of all windows with all of the pool. */
#include "frontend/import_string.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct {
    const int64_t *pool, *starts, *places; /* of n-grams of each length; where each counts */
    uint32_t npool, nstarts, nplaces;
    int64_t shortest, longest, most_skipped, width;
    dlc_value *x; /* [rows, length] */
} grams;

/* How often each of `n` grams of `length` occurs with `distance` between its elements: i64[rows, n] */
static dlc_value *occurrences(dlc_import *im, const grams *g, dlc_value *pool, int64_t length,
                              int64_t distance)
{
    static const uint8_t last[1] = {3}, positions[1] = {2};
    int64_t *steps = dlc_new_array(im->arena, int64_t, (size_t)length);
    for (int64_t k = 0; k < length; k++)
        steps[k] = k * distance;
    dlc_expr count = dlc_addi(im->pool, g->x->type.dims[1], -(length - 1) * distance);
    count = im_size(im, dlc_max(im->pool, count, im_i64(im, 0)));
    dlc_value *at = f_add(im, f_insert_axis(im, f_iota(im, DLC_I64, count), 1),
                          dlc_graph_ints(im->graph, steps, (uint32_t)length));
    dlc_value *windows = f_insert_axis(im, f_gather(im, g->x, at, 1), 1); /* [rows, 1, count, length] */
    dlc_value *equal = f_binary(im, DLC_OP_EQ, windows, f_insert_axis(im, pool, 1));
    equal = f_reduce(im, DLC_OP_REDUCE_MIN, f_cast(im, equal, DLC_I32), last, 1, 0);
    return f_reduce(im, DLC_OP_REDUCE_SUM, equal, positions, 1, 0);
}

/* Counts of the grams of one length, over all distances; single elements have none. */
static dlc_value *counted(dlc_import *im, const grams *g, int64_t start, int64_t n, int64_t length)
{
    dlc_value *sum = NULL, *pool = dlc_graph_ints(im->graph, g->pool + start, (uint32_t)(n * length));
    const dlc_expr dims[2] = {im_i64(im, n), im_i64(im, length)};
    pool = f_reshape(im, pool, dims, 2);
    for (int64_t skipped = 0; skipped <= (length == 1 ? 0 : g->most_skipped); skipped++) {
        dlc_value *more = occurrences(im, g, pool, length, skipped + 1);
        sum = sum ? f_add(im, sum, more) : more;
    }
    return sum;
}

/* Columns in the order of the pool, then a zero, put where ngram_indexes says. */
static dlc_value *placed(dlc_import *im, const grams *g, dlc_value *const *parts, uint32_t nparts,
                         const int64_t *column_of)
{
    dlc_value **all = dlc_new_array(im->arena, dlc_value *, nparts + 1u);
    const dlc_expr zero_dims[2] = {g->x->type.dims[0], im_i64(im, 1)};
    for (uint32_t i = 0; i < nparts; i++)
        all[i] = parts[i];
    all[nparts] = f_expand(im, f_scalar(im, DLC_I32, 0), zero_dims, 2);
    return f_gather(im, f_concat(im, all, nparts + 1, 1),
                    dlc_graph_ints(im->graph, column_of, (uint32_t)g->width), 1);
}

static dlc_value *count_grams(dlc_import *im, const grams *g)
{
    dlc_value **parts = dlc_new_array(im->arena, dlc_value *, g->nstarts + 1);
    int64_t *column_of = dlc_new_array(im->arena, int64_t, (size_t)g->width), gram = 0, column = 0;
    uint32_t nparts = 0;
    for (int64_t i = 0; i < g->width; i++)
        column_of[i] = -1;
    for (uint32_t i = 0; i < g->nstarts; i++) {
        int64_t length = i + 1, end = i + 1 < g->nstarts ? g->starts[i + 1] : g->npool,
                n = (end - g->starts[i]) / length;
        if (n <= 0)
            continue;
        int is_used = length >= g->shortest && length <= g->longest;
        for (int64_t k = 0; k < n && is_used; k++) {
            int64_t place = gram + k < g->nplaces ? g->places[gram + k] : -1;
            if (place < 0 || column_of[place] >= 0) {
                im_fail(im, DLC_UNSUPPORTED, "n-gram %" PRId64 " has no place of its own", gram + k);
                return NULL;
            }
            column_of[place] = column++;
        }
        if (is_used)
            parts[nparts++] = counted(im, g, g->starts[i], n, length);
        gram += n;
    }
    if (gram != g->nplaces) {
        im_fail(im, DLC_INVALID, "ngram_indexes has %" PRIu32 " entries; the pool has %" PRId64 " n-grams", g->nplaces, gram);
        return NULL;
    }
    for (int64_t i = 0; i < g->width; i++)
        column_of[i] = column_of[i] < 0 ? column : column_of[i];
    return placed(im, g, parts, nparts, column_of);
}

/* Strings are compared as their numbers. */
static const int64_t *pool_numbers(dlc_import *im, uint32_t *n)
{
    const char **texts = im_texts(im, "pool_strings", n);
    dlc_value *pool = texts ? im_strings(im, texts, *n, 1) : NULL;
    return pool ? pool->data->bytes : NULL;
}

static int read_grams(dlc_import *im, grams *g)
{
    *g = (grams){.shortest = im_int(im, "min_gram_length", 1),
                 .longest = im_int(im, "max_gram_length", 1),
                 .most_skipped = im_int(im, "max_skip_count", 0),
                 .x = im_in(im, 0)};
    g->pool = im_ints(im, "pool_int64s", &g->npool);
    g->starts = im_ints(im, "ngram_counts", &g->nstarts);
    g->places = im_ints(im, "ngram_indexes", &g->nplaces);
    if (im_has(im, "pool_strings") && !g->npool)
        g->pool = pool_numbers(im, &g->npool);
    if (!g->pool || !g->starts || !g->places || im_rank(g->x) > 2 || !im_rank(g->x))
        im_fail(im, DLC_INVALID, "a pool, ngram_counts, ngram_indexes and an input of rank 1 or 2 are wanted");
    else if (dlc_is_text(g->x->type.dtype) != (im_has(im, "pool_strings") && !im_has(im, "pool_int64s")))
        im_fail(im, DLC_INVALID, "an input of %s, where the pool is of %s", dlc_dtypes[g->x->type.dtype].text,
                im_has(im, "pool_strings") ? "strings" : "integers");
    else if (g->shortest < 1 || g->longest < g->shortest)
        im_fail(im, DLC_INVALID, "min_gram_length is %" PRId64 " and max_gram_length %" PRId64, g->shortest, g->longest);
    else if ((!dlc_is_int(g->x->type.dtype) && !dlc_is_text(g->x->type.dtype)) || g->most_skipped < 0 || g->most_skipped > 64)
        im_fail(im, DLC_UNSUPPORTED, "an input that is not of integers, or %" PRId64 " skips",
                g->most_skipped);
    for (uint32_t i = 0; im_ok(im) && i < g->nplaces; i++) {
        if (g->places[i] < 0 || g->places[i] > 1 << 24)
            im_fail(im, DLC_INVALID, "ngram_indexes[%" PRIu32 "] is %" PRId64, i, g->places[i]);
        else if (g->places[i] >= g->width)
            g->width = g->places[i] + 1;
    }
    for (uint32_t i = 0; im_ok(im) && i < g->nstarts; i++) {
        if (g->starts[i] < 0 || g->starts[i] > g->npool || (i && g->starts[i] < g->starts[i - 1]))
            im_fail(im, DLC_INVALID, "ngram_counts[%" PRIu32 "] is %" PRId64, i, g->starts[i]);
    }
    return im_ok(im);
}

/* TF: counts; IDF: weights of those that occur; TFIDF: counts times weights. */
void import_tf_idf(dlc_import *im)
{
    grams g;
    uint32_t nweights = 0;
    const char *mode = im_choice(im, "mode", "TF", "TF|IDF|TFIDF");
    const float *weights = im_floats(im, "weights", &nweights);
    if (!mode || !read_grams(im, &g))
        return;
    int is_row = im_rank(g.x) == 1;
    g.x = im_numbers(im, g.x);
    g.x = f_cast(im, is_row ? f_insert_axis(im, g.x, 0) : g.x, DLC_I64);
    dlc_value *y = g.x ? f_cast(im, count_grams(im, &g), DLC_F32) : NULL;
    if (!y)
        return;
    if (strcmp(mode, "IDF") == 0)
        y = f_min(im, y, f_like(im, y, 1));
    if (strcmp(mode, "TF") != 0 && weights) {
        if (nweights != g.width)
            im_fail(im, DLC_UNSUPPORTED, "%" PRIu32 " weights for %" PRId64 " results", nweights,
                    g.width);
        y = f_mul(im, y, f_floats(im, weights, nweights));
    }
    im->out[0] = is_row ? f_drop_axis(im, y, 0) : y;
}
