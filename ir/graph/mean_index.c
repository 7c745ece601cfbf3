/*
 * Meanings of operators whose indices are data. Negative indices count from the end; one outside is
 * reported by the run (checked loads, checked stores). A scatter is a copy of the data and, after
 * it, a stage that updates the copy in the order of its axes, so with duplicate indices the last
 * one wins.
 */
#include "ir/graph/mean.h"

#include <string.h>

/* y[a…, j…, b…] = x[a…, index[j…], b…] */
dlc_status dlc_mean_gather(dlc_mean *mean)
{
    int64_t axis = dlc_node_int(mean->node, DLC_ATTR_AXIS, 0);
    const dlc_type *in = dlc_mean_in(mean, 0), *index = dlc_mean_in(mean, 1);
    dlc_ids axes = {0};
    dlc_expr y[DLC_MAX_RANK], at[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, y);
    for (uint8_t d = 0; d < in->rank; d++)
        at[d] = d < axis ? y[d] : d > axis ? y[d + index->rank - 1] : 0;
    at[axis] = dlc_mean_wrap(mean, dlc_mean_load(mean, 1, y + axis),
                             dlc_mean_in_dim(mean, 0, (uint32_t)axis));
    return dlc_mean_finish(mean, &axes, dlc_mean_load_checked(mean, 0, at));
}

/* y[…] = x[…, index[…], …] along the axis */
dlc_status dlc_mean_gather_elements(dlc_mean *mean)
{
    int64_t axis = dlc_node_int(mean->node, DLC_ATTR_AXIS, 0);
    dlc_ids axes = {0};
    dlc_expr at[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, at);
    dlc_expr index = dlc_mean_load(mean, 1, at);
    at[axis] = dlc_mean_wrap(mean, index, dlc_mean_in_dim(mean, 0, (uint32_t)axis));
    return dlc_mean_finish(mean, &axes, dlc_mean_load_checked(mean, 0, at));
}

/* --- descend --- */

typedef struct {
    dlc_mean *mean;
    dlc_pool *pool;
    dlc_expr row;                /* of x */
    int64_t nwords, nfeatures, bits;
    int takes_missing;
    const char *mode;
} descent;

static dlc_expr u32_of(const descent *d, int64_t value)
{
    return dlc_expr_const_i(d->pool, DLC_U32, value);
}

static dlc_expr at_most(const descent *d, dlc_expr value, int64_t most)
{
    return dlc_min(d->pool, u32_of(d, most), value);
}

/* Word 0 or 1 of a record; a place is that of its word 0. */
static dlc_expr record_word(const descent *d, dlc_expr place, int which)
{
    dlc_expr at = which ? dlc_add(d->pool, place, u32_of(d, 1)) : place, index = dlc_expr_cast(d->pool, DLC_I64, at);
    return dlc_mean_load(d->mean, 1, &index);
}

static dlc_expr seen_by(const descent *d, dlc_expr word)
{
    int64_t mask = ((int64_t)1 << d->bits) - 1;
    dlc_expr feature = dlc_expr2(d->pool, DLC_EXPR_AND, word, u32_of(d, mask));
    if (mask >= d->nfeatures)
        feature = at_most(d, feature, d->nfeatures - 1);
    const dlc_expr at[2] = {d->row, dlc_expr_cast(d->pool, DLC_I64, feature)};
    return dlc_mean_load(d->mean, 0, at);
}

static dlc_expr takes_second(const descent *d, dlc_expr x, dlc_expr value, dlc_expr word)
{
    int is_strict = d->mode[1] == 't';
    dlc_expr a = d->mode[0] == 'g' ? value : x, b = d->mode[0] == 'g' ? x : value;
    dlc_expr holds = d->mode[0] == 'e' ? dlc_eq(d->pool, x, value) : is_strict ? dlc_lt(d->pool, a, b) : dlc_le(d->pool, a, b);
    if (!d->takes_missing)
        return holds;
    dlc_expr bit = dlc_expr2(d->pool, DLC_EXPR_AND, word, u32_of(d, (int64_t)1 << d->bits));
    return dlc_expr2(d->pool, DLC_EXPR_OR, holds,
                     dlc_and(d->pool, dlc_expr2(d->pool, DLC_EXPR_NE, x, x), dlc_expr2(d->pool, DLC_EXPR_NE, bit, u32_of(d, 0))));
}

/*
 * From record to record: word 0 is a value, f32; word 1 has, from its lowest bits up, the feature that is compared with it, whether
 * a missing one takes the second place, and the first place that follows; the second is the record behind it. A place past the end
 * is the last but one.
 */
dlc_status dlc_mean_descend(dlc_mean *mean)
{
    const dlc_type *x = dlc_mean_in(mean, 0), *records = dlc_mean_in(mean, 1);
    dlc_pool *pool = mean->kernel->pool;
    dlc_ids axes = {0};
    dlc_expr y[DLC_MAX_RANK];
    descent d = {mean, pool, 0, dlc_expr_value(mean->graph->pool, records->dims[0]), dlc_expr_value(mean->graph->pool, x->dims[1]),
                 dlc_node_int(mean->node, DLC_ATTR_BITS, 0), (int)dlc_node_int(mean->node, DLC_ATTR_MISSING, 0),
                 dlc_node_text(mean->node, DLC_ATTR_MODE, "le")};
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, y);
    d.row = y[0];
    dlc_expr at = at_most(&d, dlc_mean_load_broadcast(mean, 2, y, 2), d.nwords - 2);
    for (int64_t l = dlc_node_int(mean->node, DLC_ATTR_LEVELS, 0); l > 0; l--) {
        dlc_expr word = record_word(&d, at, 1), value = dlc_expr_bitcast(pool, DLC_F32, record_word(&d, at, 0));
        dlc_expr second = takes_second(&d, seen_by(&d, word), value, word);
        dlc_expr first = at_most(&d, dlc_expr2(pool, DLC_EXPR_SHR, word, u32_of(&d, d.bits + d.takes_missing)), d.nwords - 4);
        at = dlc_add(pool, first, dlc_select(pool, second, u32_of(&d, 2), u32_of(&d, 0)));
    }
    return dlc_mean_finish(mean, &axes, at);
}

/* Entries of the index tuple at tuple[0..rank-2] of input 1, as indices of dimensions first.. of
 * input 0. */
static void load_tuple(dlc_mean *mean, const dlc_expr *tuple, uint8_t first, int64_t length,
                       dlc_expr *at)
{
    uint8_t rank = dlc_mean_in(mean, 1)->rank;
    dlc_expr place[DLC_MAX_RANK];
    memcpy(place, tuple, (rank - 1u) * sizeof *place);
    for (int64_t e = 0; e < length; e++) {
        uint8_t d = (uint8_t)(first + e);
        place[rank - 1] = dlc_expr_i64(mean->kernel->pool, e);
        at[d] = dlc_mean_wrap(mean, dlc_mean_load(mean, 1, place), dlc_mean_in_dim(mean, 0, d));
    }
}

static int64_t tuple_length(const dlc_mean *mean)
{
    const dlc_type *index = dlc_mean_in(mean, 1);
    return dlc_expr_value(mean->graph->pool, index->dims[index->rank - 1]);
}

/* y[b…, j…, rest…] = x[b…, tuple(b…, j…)…, rest…] */
dlc_status dlc_mean_gather_nd(dlc_mean *mean)
{
    uint8_t batch = (uint8_t)dlc_node_int(mean->node, DLC_ATTR_BATCH_DIMS, 0);
    const dlc_type *in = dlc_mean_in(mean, 0), *index = dlc_mean_in(mean, 1);
    int64_t length = tuple_length(mean);
    dlc_ids axes = {0};
    dlc_expr y[DLC_MAX_RANK], at[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, y);
    for (uint8_t d = 0; d < batch; d++)
        at[d] = y[d];
    load_tuple(mean, y, batch, length, at);
    for (int64_t d = batch + length; d < in->rank; d++)
        at[d] = y[index->rank - 1 + d - batch - length];
    return dlc_mean_finish(mean, &axes, dlc_mean_load_checked(mean, 0, at));
}

/* --- scatter --- */

static dlc_update update_of(const dlc_mean *mean)
{
    static const struct {
        const char *text;
        dlc_update update;
    } reductions[] = {
        {"none", DLC_UPDATE_SET}, {"add", DLC_UPDATE_SUM}, {"mul", DLC_UPDATE_PROD},
        {"min", DLC_UPDATE_MIN},  {"max", DLC_UPDATE_MAX},
    };
    const char *text = dlc_node_text(mean->node, DLC_ATTR_REDUCTION, "none");
    uint32_t r = 0;
    while (strcmp(reductions[r].text, text) != 0) /* inference refused all others */
        r++;
    return reductions[r].update;
}

static void copy_data(dlc_mean *mean)
{
    dlc_ids axes = {0};
    dlc_expr at[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, at);
    mean->out[0] = dlc_mean_map(mean, "copy", &axes, dlc_mean_load(mean, 0, at));
}

/* The stage over the updates' axes that writes each one at `at` of the copy. */
static dlc_status update_at(dlc_mean *mean, const dlc_ids *axes, const dlc_expr *update_index,
                            const dlc_expr *at)
{
    uint32_t number = dlc_mean_map(mean, "update", axes, dlc_mean_load(mean, 2, update_index));
    dlc_stage *stage = &mean->kernel->stages.data[number];
    stage->update = (uint8_t)update_of(mean);
    for (uint8_t d = 0; d < dlc_mean_result(mean)->rank; d++)
        dlc_vec_push(mean->kernel->arena, &stage->store, at[d]);
    return DLC_OK;
}

dlc_status dlc_mean_scatter_elements(dlc_mean *mean)
{
    int64_t axis = dlc_node_int(mean->node, DLC_ATTR_AXIS, 0);
    dlc_ids axes = {0};
    dlc_expr index[DLC_MAX_RANK], at[DLC_MAX_RANK];
    copy_data(mean);
    dlc_mean_axes(mean, dlc_mean_in(mean, 2), &axes, index);
    memcpy(at, index, sizeof at);
    at[axis] = dlc_mean_wrap(mean, dlc_mean_load(mean, 1, index),
                             dlc_mean_in_dim(mean, 0, (uint32_t)axis));
    return update_at(mean, &axes, index, at);
}

dlc_status dlc_mean_scatter_nd(dlc_mean *mean)
{
    const dlc_type *in = dlc_mean_in(mean, 0), *index = dlc_mean_in(mean, 1);
    int64_t length = tuple_length(mean);
    dlc_ids axes = {0};
    dlc_expr place[DLC_MAX_RANK], at[DLC_MAX_RANK];
    copy_data(mean);
    dlc_mean_axes(mean, dlc_mean_in(mean, 2), &axes, place);
    load_tuple(mean, place, 0, length, at);
    for (int64_t d = length; d < in->rank; d++)
        at[d] = place[index->rank - 1 + d - length];
    return update_at(mean, &axes, place, at);
}

/* --- others --- */

/* y[t, b] = x[t < length[b] ? length[b] - 1 - t : t, b] */
dlc_status dlc_mean_reverse_sequence(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    uint32_t n;
    const dlc_expr *which = dlc_node_dims(mean->node, DLC_ATTR_AXES, &n);
    int64_t time = dlc_expr_value(mean->graph->pool, which[0]),
            batch = dlc_expr_value(mean->graph->pool, which[1]);
    dlc_ids axes = {0};
    dlc_expr at[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, at);
    dlc_expr length = dlc_expr_cast(pool, DLC_I64, dlc_mean_load(mean, 1, &at[batch])),
             t = at[time];
    dlc_expr mirrored = dlc_addi(pool, dlc_sub(pool, length, t), -1);
    at[time] = dlc_select(pool, dlc_lt(pool, t, length), mirrored, t);
    return dlc_mean_finish(mean, &axes, dlc_mean_load_checked(mean, 0, at));
}

/* y[…, i, …] = index[…] == i ? values[1] : values[0]; an index outside hits nothing. */
dlc_status dlc_mean_one_hot(dlc_mean *mean)
{
    dlc_pool *pool = mean->kernel->pool;
    int64_t axis = dlc_node_int(mean->node, DLC_ATTR_AXIS, 0);
    dlc_ids axes = {0};
    dlc_expr y[DLC_MAX_RANK], at[DLC_MAX_RANK];
    dlc_mean_axes(mean, dlc_mean_result(mean), &axes, y);
    for (uint8_t d = 0; d < dlc_mean_in(mean, 0)->rank; d++)
        at[d] = y[d + (d >= axis)];
    dlc_expr depth = dlc_mean_dim(mean, dlc_mean_result(mean)->dims[axis]);
    dlc_expr index = dlc_mean_wrap(mean, dlc_mean_load(mean, 0, at), depth);
    dlc_expr zero = dlc_expr_i64(pool, 0), one = dlc_expr_i64(pool, 1);
    dlc_expr off = dlc_mean_load(mean, 1, &zero), on = dlc_mean_load(mean, 1, &one);
    return dlc_mean_finish(mean, &axes, dlc_select(pool, dlc_eq(pool, index, y[axis]), on, off));
}
