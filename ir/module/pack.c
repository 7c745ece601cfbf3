/*
 * Constants as they will lie in the executable. A schedule packs a constant by giving its kernel buffer a layout; here the
 * bytes follow: one walk over the layout's parts, outer to inner, that gathers from the row-major tensor and leaves zeros where a
 * block's last part is padded.
 */
#include "ir/module/module.h"

#include <assert.h>
#include <string.h>

/* --- packing --- */

typedef struct {
    uint32_t nparts;
    int64_t count[DLC_MAX_PARTS];  /* values of the part */
    int64_t step[DLC_MAX_PARTS];   /* what one adds to its dimension's index */
    uint8_t dim[DLC_MAX_PARTS];
    int64_t dims[DLC_MAX_RANK], stride[DLC_MAX_RANK]; /* of the row-major source */
} packing;

static packing packing_of(const dlc_pool *pool, const dlc_module_value *value)
{
    packing p = {.nparts = value->layout.nparts};
    int64_t stride = 1;
    for (uint32_t d = value->type.rank; d-- > 0;) {
        p.dims[d] = dlc_expr_value(pool, value->type.dims[d]);
        p.stride[d] = stride;
        stride *= p.dims[d];
    }
    for (uint32_t i = 0; i < p.nparts; i++) {
        int64_t block = value->layout.part[i].block;
        p.dim[i] = value->layout.part[i].dim;
        p.count[i] = value->layout.part[i].inner ? block : (p.dims[p.dim[i]] + block - 1) / block;
        p.step[i] = value->layout.part[i].inner ? 1 : block;
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
    packing p = packing_of(module->pool, value);
    char *bytes = dlc_arena_array(module->arena, (size_t)elems, elem_bytes, 64);
    if (elems)
        pack(&p, value->type.rank, elem_bytes, from->data.bytes, bytes);
    value->data = (dlc_tensor){.bytes = bytes, .size_bytes = size_bytes};
    return 1;
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
