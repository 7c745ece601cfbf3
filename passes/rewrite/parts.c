/* What rewrites share: buffers put into kernels, and kernels that are parts of what replaces one. */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/rewrite.h"

uint32_t dlc_rewrite_insert(dlc_kernel *kernel, dlc_buffer buffer)
{
    uint32_t at = kernel->buffers.n;
    dlc_vec_push(kernel->arena, &kernel->buffers, buffer);
    for (; at && kernel->buffers.data[at - 1].role == DLC_ROLE_OUT; at--)
        kernel->buffers.data[at] = kernel->buffers.data[at - 1];
    kernel->buffers.data[at] = buffer;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (kernel->stages.data[s].buffer != DLC_NO_BUFFER && kernel->stages.data[s].buffer >= at)
            kernel->stages.data[s].buffer++;
    return at;
}

void dlc_rewrite_add_part(dlc_kernel *kernel, uint32_t made, uint32_t nmade, dlc_rewritten *out)
{
    dlc_rewrite_part part = {.kernel = kernel};
    dlc_kernel_simplify(kernel);
    dlc_kernel_left left = dlc_kernel_compact_left(kernel);
    for (uint32_t b = 0; b < left.buffers.n; b++) {
        uint32_t from = left.buffers.data[b];
        uint32_t was = from < made ? from : from < made + nmade ? DLC_REWRITE_MADE | (from - made) : from - nmade;
        dlc_vec_push(kernel->arena, &part.buffers, was);
    }
    part.symbols = left.symbols;
    dlc_vec_push(kernel->arena, &out->parts, part);
}
