/*
 * Loads that cross a store: contiguous along another axis than the result. Strides alone say so,
 * whatever operators made the map: a transpose, a permuted operand of an addition, an image whose
 * channels become its last dimension.
 */
#include "ir/schedule/schedule.h"

/* The coefficient of the axis in an offset; 0 when it is not in it, INT64_MIN when it is no
 * constant. */
static int64_t stride_of(dlc_pool *pool, dlc_expr offset, uint32_t axis)
{
    dlc_expr coefficient, rest;
    int64_t stride;
    return dlc_expr_linear(pool, offset, axis, &coefficient, &rest) &&
                   dlc_expr_is_int(pool, coefficient, &stride)
               ? stride
               : INT64_MIN;
}

static int is_across(dlc_kernel *kernel, const dlc_ranges *ranges, dlc_expr load, uint32_t in,
                     uint32_t out)
{
    dlc_pool *pool = kernel->pool;
    dlc_source source = dlc_node_of(pool, load)->imm.id;
    uint8_t rank = (uint8_t)dlc_load_rank(pool, load);
    dlc_expr index[DLC_MAX_RANK];
    if (DLC_SOURCE_IS_STAGE(source))
        return 0;
    const dlc_buffer *buffer = &kernel->buffers.data[source];
    for (uint8_t d = 0; d < rank; d++)
        index[d] = dlc_arg(pool, load, d);
    dlc_expr offset = dlc_layout_offset(pool, &buffer->layout, rank, buffer->type.dims, index);
    offset = dlc_expr_simplify(pool, offset, ranges);
    int64_t along_out = stride_of(pool, offset, out);
    return stride_of(pool, offset, in) == 1 && along_out != 0 && along_out != 1;
}

/* From the value down: loads within what a load through a tile needs are none of the map's own. */
void dlc_schedule_crossing(dlc_kernel *kernel, const dlc_target *target, uint32_t in, uint32_t out,
                           dlc_crossing *crossing)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr root = kernel->stages.data[0].value[0];
    uint8_t *marks = dlc_new_array(kernel->arena, uint8_t, (size_t)root + 1);
    dlc_ranges ranges = dlc_kernel_ranges(kernel);
    *crossing = (dlc_crossing){0};
    marks[root] = 1;
    for (dlc_expr id = root; id > 0; id--) {
        const dlc_expr_node node = *dlc_node_of(pool, id);
        uint32_t bytes = DLC_CUDA_TILE * DLC_CUDA_PITCH * dlc_dtype_bytes((dlc_dtype)node.dtype);
        if (!marks[id])
            continue;
        if (node.op == DLC_EXPR_LOAD && crossing->bytes + bytes <= target->scratch_bytes &&
            is_across(kernel, &ranges, id, in, out)) {
            dlc_vec_push(kernel->arena, &crossing->loads, id);
            dlc_vec_push(kernel->arena, &crossing->places, crossing->bytes);
            crossing->bytes += bytes;
            continue;
        }
        for (uint32_t i = 0; i < node.nargs; i++)
            marks[dlc_arg(pool, id, i)] = 1;
    }
}
