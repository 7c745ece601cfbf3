/*
 * Constants as they will lie in the executable. A schedule packs a constant by giving its kernel buffer a layout; the bytes follow
 * from the row-major tensor: the layout's parts, outer to inner, are an odometer over the elements, and what a block's last part
 * is padded with is zero. They are made where they are wanted, any stretch of them by itself, so that the weights of a model need
 * not lie in memory a second time.
 */
#include "ir/module/module.h"

#include <assert.h>
#include <string.h>

/* --- packing --- */

struct dlc_packing {
    const char *from;
    uint32_t rank, nparts, elem_bytes;
    int64_t count[DLC_MAX_PARTS];  /* values of the part */
    int64_t step[DLC_MAX_PARTS];   /* what one adds to its dimension's index */
    uint8_t dim[DLC_MAX_PARTS];
    int64_t dims[DLC_MAX_RANK], stride[DLC_MAX_RANK]; /* of the row-major source */
};

static dlc_packing *packing_of(dlc_module *module, const dlc_module_value *value, const void *from)
{
    dlc_packing *p = dlc_new(module->arena, dlc_packing);
    int64_t stride = 1;
    p->from = from;
    p->rank = value->type.rank;
    p->nparts = value->layout.nparts;
    p->elem_bytes = dlc_dtype_bytes(value->type.dtype);
    for (uint32_t d = value->type.rank; d-- > 0;) {
        p->dims[d] = dlc_expr_value(module->pool, value->type.dims[d]);
        p->stride[d] = stride;
        stride *= p->dims[d];
    }
    for (uint32_t i = 0; i < p->nparts; i++) {
        int64_t block = value->layout.part[i].block;
        p->dim[i] = value->layout.part[i].dim;
        p->count[i] = value->layout.part[i].inner ? block : (p->dims[p->dim[i]] + block - 1) / block;
        p->step[i] = value->layout.part[i].inner ? 1 : block;
    }
    return p;
}

/* Which value of each part element `first` has, and where that is in the source's dimensions. */
static void seek(const dlc_packing *p, size_t first, int64_t *at, int64_t *index)
{
    for (uint32_t i = p->nparts; i-- > 0;) {
        at[i] = (int64_t)(first % (size_t)p->count[i]);
        first /= (size_t)p->count[i];
        index[p->dim[i]] += at[i] * p->step[i];
    }
}

/* To the next value of the part before `i`, and the ones before that. */
static void carry(const dlc_packing *p, uint32_t i, int64_t *at, int64_t *index)
{
    while (i-- > 0) {
        index[p->dim[i]] += p->step[i];
        if (++at[i] < p->count[i])
            return;
        index[p->dim[i]] -= p->step[i] * p->count[i];
        at[i] = 0;
    }
}

/* `n` elements of the source, `stride` apart. */
static void gather(const dlc_packing *p, int64_t offset, int64_t stride, size_t n, char *to)
{
    const size_t size = p->elem_bytes;
    const char *from = p->from + (size_t)offset * size;
    if (stride == 1) {
        memcpy(to, from, n * size);
        return;
    }
    for (size_t i = 0; i < n; i++, from += (size_t)stride * size)
        if (size == 4) /* by far the most: a copy of a known size */
            memcpy(to + i * 4, from, 4);
        else
            memcpy(to + i * size, from, size);
}

/* The run of the innermost part that begins at this point: n elements, those outside the source zero. */
static void put_run(const dlc_packing *p, const int64_t *index, size_t n, char *to)
{
    const uint32_t last = p->nparts - 1, dim = p->dim[last];
    int64_t offset = 0, left = (p->dims[dim] - index[dim] + p->step[last] - 1) / p->step[last];
    size_t inside = left < 0 ? 0 : (size_t)left < n ? (size_t)left : n;
    for (uint32_t d = 0; d < p->rank; d++) {
        offset += index[d] * p->stride[d];
        inside = index[d] < p->dims[d] ? inside : 0;
    }
    if (inside)
        gather(p, offset, p->step[last] * p->stride[dim], inside, to);
    memset(to + inside * p->elem_bytes, 0, (n - inside) * p->elem_bytes);
}

void dlc_packing_put(const dlc_packing *p, size_t first_byte, size_t size_bytes, void *bytes)
{
    int64_t at[DLC_MAX_PARTS] = {0}, index[DLC_MAX_RANK] = {0};
    const uint32_t last = p->nparts - 1;
    char *to = bytes;
    if (!size_bytes)
        return;
    assert(first_byte % p->elem_bytes == 0 && size_bytes % p->elem_bytes == 0);
    seek(p, first_byte / p->elem_bytes, at, index);
    for (size_t left = size_bytes / p->elem_bytes, n; left; left -= n) {
        n = (size_t)(p->count[last] - at[last]);
        n = n < left ? n : left;
        put_run(p, index, n, to);
        to += n * p->elem_bytes;
        index[p->dim[last]] -= at[last] * p->step[last];
        at[last] = 0;
        carry(p, last, at, index);
    }
}

static size_t source_bytes(const dlc_packing *p)
{
    size_t bytes = p->elem_bytes;
    for (uint32_t d = 0; d < p->rank; d++)
        bytes *= (size_t)p->dims[d];
    return bytes;
}

uint64_t dlc_packing_hash(const dlc_packing *p, uint64_t seed)
{
    enum { SAMPLE = 64 };
    size_t bytes = source_bytes(p), n = bytes < SAMPLE ? bytes : SAMPLE;
    uint64_t hash = dlc_hash(p->dims, sizeof p->dims, dlc_hash(p->count, sizeof p->count, seed));
    return dlc_hash(p->from + bytes - n, n, dlc_hash(p->from, n, hash));
}

int dlc_packing_equal(const dlc_packing *a, const dlc_packing *b)
{
    if (a->rank != b->rank || a->nparts != b->nparts || a->elem_bytes != b->elem_bytes ||
        memcmp(a->count, b->count, sizeof a->count) || memcmp(a->step, b->step, sizeof a->step) ||
        memcmp(a->dim, b->dim, sizeof a->dim) || memcmp(a->dims, b->dims, sizeof a->dims))
        return 0;
    return a->from == b->from || !memcmp(a->from, b->from, source_bytes(a));
}

/* --- forms of a constant --- */

void dlc_module_add_form(dlc_module *module, uint32_t value)
{
    dlc_module_value *form = &module->values.data[value], *origin = &module->values.data[form->origin];
    form->form = origin->form;
    origin->form = value;
}

/* Whether it lies as the buffer wants: the same layout of the same shape. */
static int is_form(const dlc_module *module, const dlc_module_value *value, const dlc_pool *pool, const dlc_buffer *buffer)
{
    if (value->type.rank != buffer->type.rank || !dlc_layout_equal(&value->layout, &buffer->layout))
        return 0;
    for (uint32_t d = 0; d < buffer->type.rank; d++)
        if (dlc_expr_value(module->pool, value->type.dims[d]) != dlc_expr_value(pool, buffer->type.dims[d]))
            return 0;
    return 1;
}

int dlc_module_lay_out(dlc_module *module, dlc_module_value *value)
{
    const dlc_module_value *from = &module->values.data[value->origin];
    size_t elem_bytes = dlc_dtype_bytes(value->type.dtype), size_bytes;
    int64_t before, after, elems;
    if (from->role != DLC_VALUE_CONST || from->layout.nparts || from->type.dtype != value->type.dtype || !value->layout.nparts ||
        !dlc_type_elems(module->pool, &from->type, &before) || !dlc_type_elems(module->pool, &value->type, &after) ||
        before != after)
        return 0;
    dlc_expr size = dlc_layout_elems(module->pool, &value->layout, value->type.rank, value->type.dims);
    if (!dlc_expr_is_int(module->pool, size, &elems) || !dlc_mul_size((size_t)elems, elem_bytes, &size_bytes))
        return 0;
    value->packing = packing_of(module, value, from->data.bytes);
    value->data = (dlc_tensor){.size_bytes = size_bytes};
    return 1;
}

const void *dlc_module_bytes(const dlc_module *module, uint32_t at)
{
    dlc_module_value *value = &module->values.data[at];
    if (!value->packing || value->data.bytes)
        return value->data.bytes;
    void *bytes = dlc_arena_alloc(module->arena, value->data.size_bytes, 64);
    dlc_packing_put(value->packing, 0, value->data.size_bytes, bytes);
    return value->data.bytes = bytes;
}

uint32_t dlc_module_pack(dlc_module *module, uint32_t value, const dlc_pool *pool, const dlc_buffer *buffer)
{
    const dlc_module_value *packed = &module->values.data[value];
    uint32_t origin = packed->origin == DLC_NO_VALUE ? value : packed->origin;
    if (!buffer->layout.nparts)
        return origin;
    for (uint32_t form = module->values.data[origin].form; form != DLC_NO_VALUE; form = module->values.data[form].form)
        if (is_form(module, &module->values.data[form], pool, buffer))
            return form;
    const dlc_module_value *from = &module->values.data[origin];
    dlc_module_value made = {.name = dlc_arena_printf(module->arena, "%s.packed", from->name),
                             .type = {.dtype = buffer->type.dtype, .rank = buffer->type.rank},
                             .layout = buffer->layout,
                             .role = DLC_VALUE_CONST,
                             .origin = origin};
    for (uint32_t d = 0; d < buffer->type.rank; d++)
        made.type.dims[d] = dlc_expr_i64(module->pool, dlc_expr_value(pool, buffer->type.dims[d]));
    int is_laid_out = dlc_module_lay_out(module, &made);
    assert(is_laid_out);
    (void)is_laid_out;
    uint32_t result = dlc_module_add_value(module, &made);
    dlc_module_add_form(module, result);
    return result;
}
