/*
 * Constants as they will lie in the executable. A schedule packs a constant by giving its kernel buffer a layout; here the
 * bytes follow: one walk over the layout's parts, outer to inner, that gathers from the row-major tensor and leaves zeros where a
 * block's last part is padded.
 */
#include "passes/lower/lower.h"

#include <string.h>

void dlc_constants_init(dlc_constants *constants, dlc_module *module, dlc_arena *scratch)
{
    memset(constants, 0, sizeof *constants);
    constants->module = module;
    constants->scratch = scratch;
}

/* --- packing --- */

typedef struct {
    uint32_t nparts;
    int64_t count[DLC_MAX_PARTS];  /* values of the part */
    int64_t step[DLC_MAX_PARTS];   /* what one adds to its dimension's index */
    uint8_t dim[DLC_MAX_PARTS];
    int64_t dims[DLC_MAX_RANK], stride[DLC_MAX_RANK]; /* of the row-major source */
} packing;

static packing packing_of(const dlc_pool *pool, const dlc_buffer *buffer)
{
    packing p = {.nparts = buffer->layout.nparts};
    int64_t stride = 1;
    for (uint32_t d = buffer->type.rank; d-- > 0;) {
        p.dims[d] = dlc_expr_value(pool, buffer->type.dims[d]);
        p.stride[d] = stride;
        stride *= p.dims[d];
    }
    for (uint32_t i = 0; i < p.nparts; i++) {
        int64_t block = buffer->layout.part[i].block;
        p.dim[i] = buffer->layout.part[i].dim;
        p.count[i] = buffer->layout.part[i].inner ? block : (p.dims[p.dim[i]] + block - 1) / block;
        p.step[i] = buffer->layout.part[i].inner ? 1 : block;
    }
    return p;
}

static int next_point(const packing *p, int64_t *at, int64_t *index)
{
    for (uint32_t i = p->nparts; i-- > 0;) {
        index[p->dim[i]] += p->step[i];
        if (++at[i] < p->count[i])
            return 1;
        index[p->dim[i]] -= p->step[i] * p->count[i];
        at[i] = 0;
    }
    return 0;
}

static void pack(const packing *p, uint32_t rank, size_t elem_bytes, const char *from, char *to)
{
    int64_t at[DLC_MAX_PARTS] = {0}, index[DLC_MAX_RANK] = {0};
    do {
        int64_t offset = 0;
        int inside = 1;
        for (uint32_t d = 0; d < rank; d++) {
            offset += index[d] * p->stride[d];
            inside &= index[d] < p->dims[d];
        }
        if (inside)
            memcpy(to, from + (size_t)offset * elem_bytes, elem_bytes);
        to += elem_bytes;
    } while (next_point(p, at, index));
}

static const void *packed_bytes(dlc_module *module, const dlc_value *value, dlc_pool *pool, const dlc_buffer *buffer,
                                size_t *size_bytes)
{
    const dlc_type *type = &buffer->type;
    size_t elem_bytes = dlc_dtype_bytes(type->dtype);
    int64_t elems = dlc_expr_value(pool, dlc_layout_elems(pool, &buffer->layout, type->rank, type->dims));
    packing p = packing_of(pool, buffer);
    *size_bytes = (size_t)elems * elem_bytes;
    char *bytes = dlc_arena_array(module->arena, (size_t)elems, elem_bytes, 64);
    if (elems)
        pack(&p, type->rank, elem_bytes, value->data->bytes, bytes);
    return bytes;
}

/* --- the table --- */

/* What makes two uses of a value one constant: how it lies. The shape counts only where there is a layout. */
static uint64_t key_of(const dlc_value *value, const dlc_pool *pool, const dlc_buffer *buffer)
{
    uint64_t key = dlc_hash(&value->id, sizeof value->id, 1);
    if (!buffer || !buffer->layout.nparts)
        return key;
    for (uint32_t d = 0; d < buffer->type.rank; d++) {
        int64_t dim = dlc_expr_value(pool, buffer->type.dims[d]);
        key = dlc_hash(&dim, sizeof dim, key);
    }
    for (uint32_t p = 0; p < buffer->layout.nparts; p++) {
        int64_t part[3] = {buffer->layout.part[p].dim, buffer->layout.part[p].inner, buffer->layout.part[p].block};
        key = dlc_hash(part, sizeof part, key);
    }
    return key;
}

static void grow(dlc_constants *constants)
{
    uint32_t nslots = constants->nslots ? constants->nslots * 2 : 128;
    uint32_t *slots = dlc_new_array(constants->scratch, uint32_t, nslots);
    for (uint32_t i = 0; i < constants->nslots; i++) {
        if (!constants->slots[i])
            continue;
        uint32_t slot = (uint32_t)constants->module->constants.data[constants->slots[i] - 1].hash & (nslots - 1);
        while (slots[slot])
            slot = (slot + 1) & (nslots - 1);
        slots[slot] = constants->slots[i];
    }
    constants->slots = slots;
    constants->nslots = nslots;
}

uint32_t dlc_constants_add(dlc_constants *constants, dlc_value *value, dlc_pool *pool, const dlc_buffer *buffer)
{
    dlc_module *module = constants->module;
    if (module->constants.n * 2 >= constants->nslots)
        grow(constants);
    uint64_t key = key_of(value, pool, buffer);
    uint32_t slot = (uint32_t)key & (constants->nslots - 1);
    for (; constants->slots[slot]; slot = (slot + 1) & (constants->nslots - 1)) {
        const dlc_module_constant *other = &module->constants.data[constants->slots[slot] - 1];
        if (other->hash == key && other->value == value)
            return constants->slots[slot] - 1;
    }
    dlc_module_constant constant = {.value = value, .hash = key};
    constant.bytes = value->data->bytes;
    constant.size_bytes = value->data->size_bytes;
    if (buffer && buffer->layout.nparts) {
        constant.layout = buffer->layout;
        constant.bytes = packed_bytes(module, value, pool, buffer, &constant.size_bytes);
    }
    dlc_vec_push(module->arena, &module->constants, constant);
    return (constants->slots[slot] = module->constants.n) - 1;
}
