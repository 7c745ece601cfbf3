/*
 * How large constants are, in kernels that make bytes of floats. Packing limits what an i32 holds, so what may be larger is limited before,
 * element by element. A sum of products, an i32, times a scale of at most 2^-2, plus a bias of at most 2^24, is known not to be. Two bounds, no
 * more: layers whose numbers differ share a kernel.
 */
#include "passes/lower/lower.h"

#include <math.h>

enum { MOST_ELEMS = 1 << 16 }; /* one of each channel */
static const int8_t bounds[] = {-2, 24};

static int makes_bytes(const dlc_kernel *kernel)
{
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (node->op == DLC_EXPR_CAST && (node->dtype == DLC_U8 || node->dtype == DLC_I8) &&
            dlc_node_of(kernel->pool, dlc_arg(kernel->pool, id, 0))->dtype == DLC_F32)
            return 1;
    }
    return 0;
}

static void bound(dlc_buffer *buffer, const dlc_tensor *data)
{
    double most = 0;
    for (size_t at = 0; at < data->size_bytes; at += sizeof(float)) {
        double size = fabs(dlc_scalar_read(DLC_F32, (const char *)data->bytes + at).f);
        most = size <= most ? most : size != size ? INFINITY : size;
    }
    for (uint32_t i = sizeof bounds; i-- > 0;)
        if (most <= ldexp(1, bounds[i])) {
            buffer->is_bounded = 1;
            buffer->bound_log2 = bounds[i];
        }
}

void dlc_lower_bounds(dlc_kernel *kernel, dlc_value *const *values)
{
    if (!makes_bytes(kernel))
        return;
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        dlc_buffer *buffer = &kernel->buffers.data[b];
        if (buffer->role == DLC_ROLE_CONST && buffer->type.dtype == DLC_F32 && values[b]->data->bytes &&
            values[b]->data->size_bytes <= MOST_ELEMS * sizeof(float))
            bound(buffer, values[b]->data);
    }
}
