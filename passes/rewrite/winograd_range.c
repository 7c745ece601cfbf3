/* How large a convolution's results of bytes can be, all its inputs at the ends of their type, as the filters' signs have it; and its weights. */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/winograd.h"

typedef struct {
    int64_t least, most;
} range;

static range range_of(dlc_dtype dtype)
{
    return dlc_is_unsigned(dtype) ? (range){0, UINT8_MAX} : (range){INT8_MIN, INT8_MAX};
}

static int64_t magnitude(range r)
{
    return -r.least > r.most ? -r.least : r.most;
}

/* The filter's dimension that counts output channels: how many of them, and the elements from one to the next. */
static void find_channels(const dlc_winograd_site *at, int64_t *n, int64_t *step)
{
    const dlc_pool *pool = at->kernel->pool;
    const dlc_type *type = &dlc_winograd_buffer(at, at->w)->type;
    *n = *step = 1;
    for (uint32_t d = dlc_load_rank(pool, at->w); d-- > 0;) {
        int64_t size = dlc_expr_value(pool, type->dims[d]);
        if (dlc_bare_axis(pool, dlc_arg(pool, at->w, d)) == at->oc) {
            *n = size;
            return;
        }
        *step *= size;
    }
}

static void add_range(dlc_winograd_site *at, int64_t most, int64_t greatest)
{
    at->most = most > at->most ? most : at->most;
    at->greatest = greatest > at->greatest ? greatest : at->greatest;
}

/* The largest magnitudes of one launch. */
static void add_filter(dlc_winograd_site *at, const uint8_t *bytes, int64_t elems)
{
    range x = range_of((dlc_dtype)dlc_node_of(at->kernel->pool, at->x)->dtype);
    int is_unsigned = dlc_is_unsigned((dlc_dtype)dlc_node_of(at->kernel->pool, at->w)->dtype);
    int64_t nchannels, step;
    range weight = {0, 0};
    find_channels(at, &nchannels, &step);
    for (int64_t c = 0; c < nchannels; c++) {
        range sum = {0, 0};
        for (int64_t outer = c * step; outer < elems; outer += nchannels * step)
            for (int64_t i = outer; i < outer + step; i++) {
                int64_t w = is_unsigned ? bytes[i] : (int8_t)bytes[i], a = w * x.least, b = w * x.most;
                sum.least += a < b ? a : b;
                sum.most += a < b ? b : a;
                weight = (range){w < weight.least ? w : weight.least, w > weight.most ? w : weight.most};
            }
        add_range(at, magnitude(sum), 0);
    }
    add_range(at, 0, magnitude(weight));
}

void dlc_winograd_find_range(dlc_winograd_site *at)
{
    const dlc_module *module = at->in->module;
    uint32_t filter = dlc_node_of(at->kernel->pool, at->w)->imm.id;
    range x = range_of((dlc_dtype)dlc_node_of(at->kernel->pool, at->x)->dtype), w = range_of((dlc_dtype)dlc_node_of(at->kernel->pool, at->w)->dtype);
    int64_t taps = at->along[0].window * at->along[1].window, elems = at->inputs * at->nothers * at->outputs * taps;
    for (uint32_t s = 0; s < module->steps.n; s++) {
        const dlc_step *step = &module->steps.data[s];
        if (step->kind != DLC_STEP_LAUNCH || step->kernel != at->in->number)
            continue;
        const dlc_module_value *value = &module->values.data[step->values[filter]];
        int is_known = value->role == DLC_VALUE_CONST && !value->layout.nparts && value->data.bytes && (int64_t)value->data.size_bytes == elems;
        if (is_known)
            add_filter(at, value->data.bytes, elems);
        else
            add_range(at, magnitude(x) * magnitude(w) * at->inputs * at->nothers * taps, magnitude(w));
    }
}
