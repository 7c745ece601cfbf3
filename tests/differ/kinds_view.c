/* Random views, and what moves elements by indices that are data. */
#include "tests/differ/kinds.h"

#include <string.h>

/* --- views --- */

/* Neighbours joined, or a dimension cut in two. */
void kind_reshape(make *m)
{
    item x = make_pick(m, WANT_ANY, 0, 5);
    dlc_expr dims[DLC_MAX_RANK + 1];
    uint32_t n = 0;
    if (!x.value)
        return;
    const dlc_type *type = &x.value->type;
    uint32_t at = type->rank ? one_of(m->from, type->rank) : 0;
    int joins = type->rank > 1 && at + 1u < type->rank && chance(m->from, 55);
    for (uint32_t d = 0; d < type->rank; d++) {
        int64_t size = 0;
        int is_known = dlc_expr_is_int(m->graph->pool, type->dims[d], &size);
        if (joins && d == at) {
            dims[n++] = dlc_mul(m->graph->pool, type->dims[d], type->dims[d + 1]);
            d++;
        } else if (d == at && is_known && size > 1 && size % 2 == 0) {
            dims[n++] = make_int(m, chance(m->from, 50) ? 2 : size / 2);
            dims[n] = make_int(m, size / dlc_expr_value(m->graph->pool, dims[n - 1]));
            n++;
        } else {
            dims[n++] = type->dims[d];
        }
    }
    if (chance(m->from, 25) && n < 5) { /* a dimension of 1 */
        uint32_t to = one_of(m->from, n + 1);
        memmove(dims + to + 1, dims + to, (n - to) * sizeof *dims);
        dims[to] = make_int(m, 1);
        n++;
    }
    make_keep(m, make_reshape(m, x.value, dims, n), x.size, x.below);
}

void kind_transpose(make *m)
{
    item x = make_pick(m, WANT_ANY, 2, 5);
    int64_t perm[DLC_MAX_RANK];
    if (!x.value)
        return;
    for (uint32_t d = 0; d < x.value->type.rank; d++) {
        uint32_t k = one_of(m->from, d + 1);
        perm[d] = perm[k];
        perm[k] = d;
    }
    dlc_attr attr = dlc_attr_ints(m->graph, DLC_ATTR_PERM, perm, x.value->type.rank);
    make_keep(m, make_node(m, DLC_OP_TRANSPOSE, &x.value, 1, &attr, 1), x.size, x.below);
}

void kind_expand(make *m)
{
    item x = make_pick(m, WANT_ANY, 0, 4);
    dlc_expr dims[DLC_MAX_RANK];
    if (!x.value)
        return;
    uint32_t more = one_of(m->from, 2), rank = x.value->type.rank + more;
    dims[0] = make_int(m, 1 + one_of(m->from, 4));
    for (uint32_t d = more; d < rank; d++) {
        int64_t size = 0;
        dims[d] = x.value->type.dims[d - more];
        if (dlc_expr_is_int(m->graph->pool, dims[d], &size) && size == 1)
            dims[d] = make_int(m, 1 + one_of(m->from, 5));
    }
    dlc_attr attr = dlc_attr_dims(DLC_ATTR_DIMS, dims, rank);
    make_keep(m, make_node(m, DLC_OP_EXPAND, &x.value, 1, &attr, 1), x.size, x.below);
}

/* From where, how far, and how many; all of a dimension that only the run knows. */
static void some_part(make *m, dlc_expr dim, int64_t *start, int64_t *step, dlc_expr *count)
{
    int64_t size = 0;
    *start = 0;
    *step = 1;
    *count = dim;
    if (!dlc_expr_is_int(m->graph->pool, dim, &size) || size < 2 || chance(m->from, 35))
        return;
    int64_t first = one_of(m->from, (uint32_t)size), last = one_of(m->from, (uint32_t)size);
    *step = chance(m->from, 65) ? 1 : 1 + one_of(m->from, 3);
    if (last < first)
        *step = -*step;
    *start = first;
    *count = make_int(m, (last - first) / *step + 1);
}

void kind_slice(make *m)
{
    item x = make_pick(m, WANT_ANY, 1, 5);
    int64_t starts[DLC_MAX_RANK], steps[DLC_MAX_RANK];
    dlc_expr dims[DLC_MAX_RANK];
    if (!x.value)
        return;
    for (uint32_t d = 0; d < x.value->type.rank; d++)
        some_part(m, x.value->type.dims[d], &starts[d], &steps[d], &dims[d]);
    dlc_attr attrs[] = {dlc_attr_ints(m->graph, DLC_ATTR_STARTS, starts, x.value->type.rank),
                        dlc_attr_ints(m->graph, DLC_ATTR_STEPS, steps, x.value->type.rank),
                        dlc_attr_dims(DLC_ATTR_DIMS, dims, x.value->type.rank)};
    make_keep(m, make_node(m, DLC_OP_SLICE, &x.value, 1, attrs, 3), x.size, x.below);
}

void kind_concat(make *m)
{
    item x = make_pick(m, WANT_ANY, 1, 5);
    dlc_value *in[4];
    uint32_t n = 0, count = 1 + one_of(m->from, 3);
    if (!x.value)
        return;
    dlc_type type = x.value->type;
    int64_t axis = one_of(m->from, type.rank);
    in[n++] = x.value;
    while (n <= count) {
        dlc_value *found = chance(m->from, 50) ? make_find(m, &x.value->type, x.value) : NULL;
        if (chance(m->from, 60))
            type.dims[axis] = make_int(m, 1 + one_of(m->from, 8));
        in[n] = found ? found : chance(m->from, 15) ? x.value : make_source(m, type.dtype, type.dims, type.rank, x.below);
        if (!in[n++])
            return;
    }
    dlc_attr attr = dlc_attr_int(DLC_ATTR_AXIS, axis);
    make_keep(m, make_node(m, DLC_OP_CONCAT, in, n, &attr, 1), x.size + 1, 0);
}

void kind_pad(make *m)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    item x = make_pick(m, WANT_ANY, 1, 5);
    int64_t pads[2 * DLC_MAX_RANK];
    if (!x.value)
        return;
    uint32_t rank = x.value->type.rank, mode = chance(m->from, 60) ? 0 : one_of(m->from, 4);
    for (uint32_t d = 0; d < 2 * rank; d++)
        pads[d] = chance(m->from, 55) ? 0 : mode || chance(m->from, 80) ? (int64_t)one_of(m->from, 3) : -1;
    dlc_attr attrs[] = {dlc_attr_ints(m->graph, DLC_ATTR_PADS, pads, 2 * rank), dlc_attr_text(DLC_ATTR_MODE, modes[mode])};
    dlc_value *in[] = {x.value, mode || x.value->type.dtype == DLC_BOOL ? NULL : make_scalar(m, x.value->type.dtype, 1)};
    make_keep(m, make_node(m, DLC_OP_PAD, in, in[1] ? 2 : 1, attrs, 2), x.size, 0);
}

void kind_tile(make *m)
{
    item x = make_pick(m, WANT_ANY, 1, 4);
    dlc_expr dims[DLC_MAX_RANK];
    if (!x.value)
        return;
    for (uint32_t d = 0; d < x.value->type.rank; d++)
        dims[d] = dlc_muli(m->graph->pool, x.value->type.dims[d], 1 + one_of(m->from, 3));
    dlc_attr attr = dlc_attr_dims(DLC_ATTR_DIMS, dims, x.value->type.rank);
    make_keep(m, make_node(m, DLC_OP_TILE, &x.value, 1, &attr, 1), x.size, x.below);
}

/* --- indices that are data --- */

/* Integers below `most` of these dimensions: a value of the graph brought into the range, or new; sometimes too large. */
static dlc_value *some_indices(make *m, int any_shape, const dlc_expr *dims, uint32_t rank, int64_t most)
{
    item x = any_shape && chance(m->from, 25) ? make_pick(m, WANT_INT, 1, 3) : (item){0};
    if (chance(m->from, 2))
        most *= 2;
    if (!x.value || most < 1)
        return most < 1 ? NULL : make_source(m, chance(m->from, 70) ? DLC_I64 : DLC_I32, dims, rank, most);
    dlc_value *wide = make_cast(m, x.value, DLC_I64);
    return wide ? make_binary(m, DLC_OP_MOD, wide, make_scalar(m, DLC_I64, (double)most)) : NULL;
}

static int64_t known_dim(make *m, dlc_expr dim)
{
    int64_t size = 0;
    return dlc_expr_is_int(m->graph->pool, dim, &size) ? size : 0;
}

void kind_gather(make *m)
{
    static const uint8_t sizes[] = {1, 2, 3, 5, 8};
    item x = make_pick(m, WANT_ANY, 1, 4);
    if (!x.value)
        return;
    uint32_t axis = one_of(m->from, x.value->type.rank), rank = one_of(m->from, 3);
    dlc_expr dims[2] = {make_int(m, sizes[one_of(m->from, 5)]), make_int(m, sizes[one_of(m->from, 5)])};
    int64_t most = known_dim(m, x.value->type.dims[axis]);
    dlc_attr attr = dlc_attr_int(DLC_ATTR_AXIS, axis);
    dlc_value *indices = some_indices(m, 1, dims, rank, most);
    make_keep(m, indices ? make_node(m, DLC_OP_GATHER, (dlc_value *[]){x.value, indices}, 2, &attr, 1) : NULL, x.size, x.below);
}

void kind_gather_elements(make *m)
{
    item x = make_pick(m, WANT_ANY, 1, 4);
    if (!x.value)
        return;
    uint32_t axis = one_of(m->from, x.value->type.rank);
    dlc_expr dims[DLC_MAX_RANK];
    memcpy(dims, x.value->type.dims, sizeof dims);
    dims[axis] = make_int(m, 1 + one_of(m->from, 6));
    dlc_attr attr = dlc_attr_int(DLC_ATTR_AXIS, axis);
    dlc_value *indices = some_indices(m, 0, dims, x.value->type.rank, known_dim(m, x.value->type.dims[axis]));
    if (!indices)
        return;
    if (chance(m->from, 60)) {
        make_keep(m, make_node(m, DLC_OP_GATHER_ELEMENTS, (dlc_value *[]){x.value, indices}, 2, &attr, 1), x.size, x.below);
        return;
    }
    dlc_expr rows[2] = {make_int(m, 1 + one_of(m->from, 6)), make_int(m, 1)};
    indices = some_indices(m, 0, rows, 2, known_dim(m, x.value->type.dims[0]));
    make_keep(m, indices ? make_node(m, DLC_OP_GATHER_ND, (dlc_value *[]){x.value, indices}, 2, NULL, 0) : NULL, x.size, x.below);
}

/* Where an index comes twice only reductions that do not mind the order are judged. */
void kind_scatter(make *m)
{
    static const char *const reductions[] = {"add", "max", "min", "mul"};
    item x = make_pick(m, WANT_NUM, 1, 4);
    if (!x.value)
        return;
    uint32_t axis = one_of(m->from, x.value->type.rank);
    dlc_expr dims[DLC_MAX_RANK];
    memcpy(dims, x.value->type.dims, sizeof dims);
    dims[axis] = make_int(m, 1 + one_of(m->from, 6));
    dlc_attr attrs[] = {dlc_attr_text(DLC_ATTR_REDUCTION, reductions[one_of(m->from, 3)]), dlc_attr_int(DLC_ATTR_AXIS, axis)};
    int64_t most = known_dim(m, x.value->type.dims[axis]);
    if (most == 1)
        attrs[0] = dlc_attr_text(DLC_ATTR_REDUCTION, "add");
    dlc_value *indices = some_indices(m, 0, dims, x.value->type.rank, most);
    dlc_value *updates = indices ? make_source(m, x.value->type.dtype, dims, x.value->type.rank, 0) : NULL;
    dlc_value *in[] = {x.value, indices, updates};
    make_tame(m, updates ? make_node(m, DLC_OP_SCATTER_ELEMENTS, in, 3, attrs, 2) : NULL, x.size * 4);
}

void kind_reverse_sequence(make *m)
{
    item x = make_pick(m, WANT_ANY, 2, 4);
    if (!x.value)
        return;
    int64_t axes[] = {one_of(m->from, 2), 0};
    axes[1] = 1 - axes[0];
    dlc_attr attr = dlc_attr_ints(m->graph, DLC_ATTR_AXES, axes, 2);
    dlc_value *lengths = some_indices(m, 0, &x.value->type.dims[axes[1]], 1, known_dim(m, x.value->type.dims[axes[0]]) + 1);
    make_keep(m, lengths ? make_node(m, DLC_OP_REVERSE_SEQUENCE, (dlc_value *[]){x.value, lengths}, 2, &attr, 1) : NULL, x.size, x.below);
}

void kind_generate(make *m)
{
    item x = make_pick(m, WANT_NUM, 1, 4);
    if (!x.value)
        return;
    dlc_dtype t = x.value->type.dtype;
    dlc_attr dims = dlc_attr_dims(DLC_ATTR_DIMS, x.value->type.dims, 1), upper = dlc_attr_int(DLC_ATTR_UPPER, one_of(m->from, 2));
    if (chance(m->from, 40))
        make_keep(m, make_node(m, DLC_OP_TRILU, (dlc_value *[]){x.value, make_scalar(m, DLC_I64, one_of(m->from, 3))}, 2, &upper, 1),
                  x.size, 0);
    else if (chance(m->from, 40))
        make_keep(m, make_node(m, DLC_OP_RANGE, (dlc_value *[]){make_scalar(m, t, 0), make_scalar(m, t, 1)}, 2, &dims, 1), 17, 0);
    else if (chance(m->from, 50))
        make_keep(m, make_node(m, DLC_OP_SYMBOLS, NULL, 0, &dims, 1), 17, 0);
    else {
        dlc_expr depth = make_int(m, 2 + one_of(m->from, 6)), two = make_int(m, 2);
        dlc_value *in[] = {some_indices(m, 0, x.value->type.dims, 1, 4), make_source(m, t, &two, 1, 0)};
        dlc_attr attrs[] = {dlc_attr_int(DLC_ATTR_AXIS, one_of(m->from, 2)), dlc_attr_dims(DLC_ATTR_DIMS, &depth, 1)};
        make_keep(m, in[0] && in[1] ? make_node(m, DLC_OP_ONE_HOT, in, 2, attrs, 2) : NULL, 1, 0);
    }
}

/* --- steps in C --- */

void kind_topk(make *m)
{
    item x = make_pick(m, WANT_NUM, 1, 4);
    if (!x.value)
        return;
    uint32_t axis = one_of(m->from, x.value->type.rank);
    int64_t most = known_dim(m, x.value->type.dims[axis]);
    dlc_expr k = make_int(m, most ? 1 + one_of(m->from, (uint32_t)most) : 1);
    dlc_attr attrs[] = {dlc_attr_int(DLC_ATTR_AXIS, axis), dlc_attr_int(DLC_ATTR_LARGEST, one_of(m->from, 2)),
                        dlc_attr_int(DLC_ATTR_SORTED, 1), dlc_attr_dims(DLC_ATTR_DIMS, &k, 1)};
    make_keep(m, make_node(m, DLC_OP_TOPK, &x.value, 1, attrs, 4), x.size, x.below);
}

void kind_nonzero(make *m)
{
    item x = make_pick(m, WANT_ANY, 1, 3);
    if (!x.value || m->graph->symbols.n > 40)
        return;
    int64_t elems = make_elems(m, &x.value->type);
    uint32_t symbol = dlc_graph_symbol(m->graph, dlc_arena_printf(m->arena, "z%u", m->nnodes), DLC_BIND_OPAQUE, NULL, 0);
    m->graph->symbols.data[symbol].hi = elems > MAKE_MOST_ELEMS ? MAKE_MOST_ELEMS : elems;
    dlc_attr attr = dlc_attr_int(DLC_ATTR_SYMBOL, symbol);
    if (make_keep(m, make_node(m, DLC_OP_NONZERO, &x.value, 1, &attr, 1), 1, 0))
        return;
    m->graph->symbols.n--;
}
