/*
 * Variants: what is best for a few rows is not for many, and where only the run knows how many there are it takes one of two kernels.
 *
 *     launch 0 (%x, %w) -> (%y) sizes (n)     ->     if 15 <= n
 *                                                    launch 1 (%x, %w) -> (%y) sizes (n)      n: 15..
 *                                                    else
 *                                                    launch 0 (%x, %w) -> (%y) sizes (n)      n: ..14
 *                                                    end
 *
 * Both compute the same. The ranges of a size are all that tells them apart, and schedules are chosen by these: weights that are computed, as
 * of codes of few bits, are so in each tile of few rows, and once for all tiles of many. Constants lie alike for both, and are there once.
 */
#include "dlc/abi.h"
#include "passes/fuse/fuse.h"
#include "passes/lower/lower.h"
#include "passes/schedule/choose.h"

enum { MANY = DLC_FEW_COMPUTED_FOR + 1 };

/* One size that alone makes rows many from some number on. */
typedef struct {
    uint32_t symbol; /* of the kernel; DLC_NO_SYMBOL: it has none */
    int64_t least;
    uint32_t many, few; /* numbers of kernels */
} variant;

typedef dlc_vec(dlc_step) step_list;

/* Rows where `symbol` is `value` and all others are as small as they may be, but one at least. */
static int64_t rows_of(const dlc_kernel *kernel, const dlc_ids *rows, uint32_t symbol, int64_t value, dlc_arena *arena)
{
    int64_t *values = dlc_kernel_symbol_values(kernel, 1, arena), n = 1;
    values[symbol] = value;
    for (uint32_t i = 0; i < rows->n; i++) {
        int64_t extent = dlc_expr_eval(kernel->pool, kernel->axes.data[rows->data[i]].extent, values);
        n *= extent > MANY ? MANY : extent < 0 ? 0 : extent;
    }
    return n;
}

/* The least value of it that makes rows many, and fewer may be; 0: there is none. */
static int64_t least_of(const dlc_kernel *kernel, const dlc_ids *rows, uint32_t symbol, dlc_arena *arena)
{
    const dlc_kernel_symbol *size = &kernel->symbols.data[symbol];
    for (int64_t value = size->lo > 1 ? size->lo : 1; value <= MANY && value <= size->hi; value++)
        if (rows_of(kernel, rows, symbol, value, arena) >= MANY)
            return value > size->lo && (!size->usual || value <= size->usual) ? value : 0;
    return 0;
}

static dlc_kernel *within(const dlc_kernel *kernel, uint32_t symbol, int64_t lo, int64_t hi, dlc_arena *arena)
{
    dlc_kernel *copy = dlc_kernel_clone(kernel, arena);
    dlc_kernel_symbol *size = &copy->symbols.data[symbol];
    size->lo = lo;
    size->hi = hi;
    if (size->usual < lo || size->usual > hi)
        size->usual = 0;
    return copy;
}

static int has_parts(const dlc_kernel *kernel)
{
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        if (kernel->buffers.data[b].is_part)
            return 1;
    return 0;
}

/* Constants lie in one way for both, so that they are there once. */
static int lie_alike(const dlc_kernel *a, const dlc_kernel *b)
{
    for (uint32_t i = 0; i < a->buffers.n; i++) {
        const dlc_buffer *buffer = &a->buffers.data[i], *other = &b->buffers.data[i];
        if (buffer->role == DLC_ROLE_CONST && !dlc_layout_equal(&buffer->layout, &other->layout))
            return 0;
    }
    return 1;
}

/* What is chosen for many, which must not leave the caches, and for few. */
static int are_both(const dlc_pass_ctx *ctx, const dlc_kernel *kernel, const variant *v)
{
    const dlc_kernel_symbol *size = &kernel->symbols.data[v->symbol];
    dlc_schedule *many, *few;
    return dlc_choose(within(kernel, v->symbol, v->least, size->hi, ctx->scratch), ctx->target, ctx->scratch, &many, NULL) == DLC_REASON_NONE &&
           dlc_choose(within(kernel, v->symbol, size->lo, v->least - 1, ctx->scratch), ctx->target, ctx->scratch, &few, NULL) == DLC_REASON_NONE &&
           lie_alike(many->kernel, few->kernel);
}

static variant find_variant(dlc_pass_ctx *ctx, uint32_t k)
{
    const dlc_kernel *kernel = ctx->module->kernels.data[k].kernel;
    variant v = {.symbol = DLC_NO_SYMBOL};
    dlc_mark mark = dlc_arena_mark(ctx->scratch);
    dlc_chooser c;
    dlc_ids rows = {0};
    if (!kernel->symbols.n || has_parts(kernel))
        return v;
    dlc_choose_start(&c, dlc_kernel_clone(kernel, ctx->scratch), ctx->target, ctx->scratch);
    c.schedule = dlc_schedule_create(c.kernel, c.target, c.arena);
    c.kernel = c.schedule->kernel;
    if (dlc_choose_is_for_tiles(&c, &rows))
        for (uint32_t s = 0; s < kernel->symbols.n && !v.least; s++) {
            v.least = least_of(kernel, &rows, s, ctx->scratch);
            v.symbol = v.least ? s : DLC_NO_SYMBOL;
        }
    if (v.symbol != DLC_NO_SYMBOL && !are_both(ctx, kernel, &v))
        v.symbol = DLC_NO_SYMBOL;
    dlc_arena_release(ctx->scratch, mark);
    return v;
}

static void add_mark(dlc_module *module, step_list *steps, dlc_step_kind kind, dlc_expr size, const dlc_step *of)
{
    dlc_step step = {.kind = (uint8_t)kind, .symbol = DLC_NO_SYMBOL, .size = size};
    dlc_step_set_nodes(module, &step, of->nodes, of->nnodes);
    dlc_vec_push(module->arena, steps, step);
}

static void add_launches(dlc_module *module, step_list *steps, const dlc_step *launch, const variant *v)
{
    dlc_expr size = launch->symbols[v->symbol], least = dlc_expr_i64(module->pool, v->least);
    dlc_step many = *launch, few = *launch;
    many.kernel = v->many;
    few.kernel = v->few;
    many.values = dlc_arena_copy(module->arena, many.values, many.nvalues * sizeof *many.values);
    add_mark(module, steps, DLC_STEP_IF, dlc_le(module->pool, least, size), launch);
    dlc_vec_push(module->arena, steps, many);
    add_mark(module, steps, DLC_STEP_ELSE, 0, launch);
    dlc_vec_push(module->arena, steps, few);
    add_mark(module, steps, DLC_STEP_END, 0, launch);
}

dlc_status dlc_pass_variants(dlc_pass_ctx *ctx)
{
    dlc_module *module = ctx->module;
    uint32_t nkernels = module->kernels.n, depth = 0;
    variant *variants = dlc_new_array(ctx->scratch, variant, nkernels + 1), *v;
    step_list steps = {0};
    if (ctx->target->kind != DLC_TARGET_CPU)
        return DLC_OK;
    for (uint32_t k = 0; k < nkernels; k++) {
        v = &variants[k];
        *v = find_variant(ctx, k);
        if (v->symbol == DLC_NO_SYMBOL)
            continue;
        const dlc_kernel *kernel = module->kernels.data[k].kernel;
        const dlc_kernel_symbol *size = &kernel->symbols.data[v->symbol];
        v->many = dlc_module_add_kernel(module, within(kernel, v->symbol, v->least, size->hi, module->arena));
        v->few = dlc_module_add_kernel(module, within(kernel, v->symbol, size->lo, v->least - 1, module->arena));
    }
    for (uint32_t s = 0; s < module->steps.n; s++) {
        const dlc_step *step = &module->steps.data[s];
        depth += step->kind == DLC_STEP_IF || step->kind == DLC_STEP_LOOP;
        depth -= step->kind == DLC_STEP_END;
        v = step->kind == DLC_STEP_LAUNCH && depth + 1 < DLC_MOST_REGIONS ? &variants[step->kernel] : NULL;
        if (!v || v->symbol == DLC_NO_SYMBOL) {
            dlc_vec_push(module->arena, &steps, *step);
            continue;
        }
        add_launches(module, &steps, step, v);
        ctx->changes++;
    }
    module->steps.data = steps.data;
    module->steps.n = steps.n;
    module->steps.cap = steps.cap;
    if (ctx->changes)
        dlc_module_drop_kernels(module);
    return DLC_OK;
}
