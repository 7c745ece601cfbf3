/*
 * The emitter's table for CUDA: text. A unit of work is a warp's, and the width of a vector is the warp: lane l of a vector is
 * thread l's value, so a vector operation is one instruction, a vector load of neighbours is coalesced, and what is uniform is
 * computed by all threads alike. Each open level has a text of its own; a level's text is complete before a loop inside it is
 * appended, so code for an outer level simply goes to that level's text.
 */
#include <assert.h>
#include <string.h>

#include "codegen/ptx/text.h"

static dlc_cuda *cuda_of(dlc_emitter *e)
{
    return (dlc_cuda *)e;
}

static const char *text(dlc_val value)
{
    return (const char *)value;
}

void dlc_cuda_line(dlc_cuda *cuda, const char *format, ...)
{
    dlc_str *body = &cuda->bodies[cuda->at];
    va_list args;
    va_start(args, format);
    for (uint32_t i = 0; i <= cuda->at; i++)
        dlc_str_add(body, "    ");
    dlc_str_vprintf(body, format, args);
    dlc_str_add(body, "\n");
    va_end(args);
}

/* --- lanes --- */

static dlc_val splat(dlc_emitter *e, dlc_dtype dtype, dlc_val value, uint32_t width)
{
    (void)e;
    (void)dtype;
    (void)width;
    return value;
}

static dlc_val iota(dlc_emitter *e, uint32_t width)
{
    (void)e;
    return (dlc_val)(width > 1 ? "lane" : "0");
}

static const char *shuffle_name(dlc_dtype dtype)
{
    if (dtype == DLC_F64)
        return "f64";
    if (dlc_is_float(dtype))
        return "f32";
    return dlc_dtypes[dtype].bits == 64 ? "u64" : "u32";
}

static dlc_val shuffle(dlc_cuda *cuda, dlc_dtype dtype, dlc_val value, const char *from)
{
    const char *name = shuffle_name(dtype);
    if (dlc_is_float(dtype))
        return dlc_cuda_value(cuda, dtype, "dlc_shuffle_%s(%s, %s)", name, text(value), from);
    return dlc_cuda_value(cuda, dtype, "(%s)dlc_shuffle_%s((dlc_%s)%s, %s)", dlc_cuda_type(cuda, dtype), name, name,
                          text(value), from);
}

static dlc_val rotate(dlc_emitter *e, dlc_dtype dtype, dlc_val value, uint32_t width, uint32_t by)
{
    dlc_cuda *cuda = cuda_of(e);
    assert(width <= DLC_CUDA_WARP);
    return shuffle(cuda, dtype, value, dlc_arena_printf(cuda->arena, "(lane + %u) & %u", by, width - 1));
}

static dlc_val lane(dlc_emitter *e, dlc_dtype dtype, dlc_val value, uint32_t width, uint32_t index)
{
    (void)width;
    dlc_cuda *cuda = cuda_of(e);
    return shuffle(cuda, dtype, value, dlc_arena_printf(cuda->arena, "%u", index));
}

static dlc_val symbol(dlc_emitter *e, uint32_t id)
{
    dlc_cuda *cuda = cuda_of(e);
    return (dlc_val)dlc_arena_printf(cuda->arena, "s%u", id);
}

/* --- memory --- */

const char *dlc_cuda_element(dlc_cuda *cuda, const dlc_access *access, int is_const)
{
    const char *type = dlc_cuda_memory_type(access->dtype), *qualifier = is_const ? "const " : "";
    const char *base = access->mem == DLC_MEM_SCRATCH
                           ? dlc_arena_printf(cuda->arena, "((%s%s *)(scratch + %s))", qualifier, type, text(access->bytes))
                           : dlc_arena_printf(cuda->arena, "((%s%s *)b%u)", qualifier, type, access->buffer);
    const char *offset = access->offset ? text(access->offset) : "0";
    if (access->mode == DLC_ACCESS_VECTOR)
        offset = dlc_arena_printf(cuda->arena, "%s + lane", offset);
    if (access->disp)
        return dlc_arena_printf(cuda->arena, "%s[%s + %lld]", base, offset, (long long)access->disp);
    return dlc_arena_printf(cuda->arena, "%s[%s]", base, offset);
}

static dlc_val load(dlc_emitter *e, const dlc_access *access)
{
    dlc_cuda *cuda = cuda_of(e);
    const char *value = dlc_cuda_from_memory(cuda, access->dtype, dlc_cuda_element(cuda, access, 1)), *other;
    int masked = access->mask && access->mode != DLC_ACCESS_UNIFORM;
    if (!masked && !access->inside)
        return dlc_cuda_value(cuda, access->dtype, "%s", value);
    other = access->passthru ? text(access->passthru)
            : access->inside ? text(dlc_cuda_konst(e, access->dtype, access->fill, 1))
                             : text(dlc_cuda_konst(e, access->dtype, (dlc_scalar){0}, 1));
    if (masked && access->inside)
        return dlc_cuda_value(cuda, access->dtype, "%s && %s ? %s : %s", text(access->mask), text(access->inside), value,
                              other);
    return dlc_cuda_value(cuda, access->dtype, "%s ? %s : %s", text(masked ? access->mask : access->inside), value, other);
}

/* Uniform stores are made by one lane, unless threads are points of their own. */
static void store(dlc_emitter *e, const dlc_access *access, dlc_val value)
{
    dlc_cuda *cuda = cuda_of(e);
    const char *bits = dlc_cuda_to_memory(cuda, access->dtype, value);
    const char *condition = "";
    if (access->mode == DLC_ACCESS_UNIFORM && !cuda->per_thread)
        condition = "if (lane == 0) ";
    else if (access->mask && access->mode != DLC_ACCESS_UNIFORM)
        condition = dlc_arena_printf(cuda->arena, "if (%s) ", text(access->mask));
    dlc_cuda_line(cuda, "%s%s = %s;", condition, dlc_cuda_element(cuda, access, 0), bits);
}

static void sync(dlc_emitter *e, int is_block)
{
    dlc_cuda_line(cuda_of(e), is_block ? "dlc_block_sync();" : "dlc_warp_sync();");
}

static dlc_val worker(dlc_emitter *e, dlc_loop_kind kind)
{
    (void)e;
    return (dlc_val)(kind == DLC_LOOP_WARP ? "warp" : "thread");
}

static void deal(dlc_emitter *e, dlc_loop_kind kind)
{
    cuda_of(e)->per_thread = kind == DLC_LOOP_THREAD;
}

/* --- variables --- */

static dlc_var var_new(dlc_emitter *e, dlc_dtype dtype, uint32_t width)
{
    dlc_cuda *cuda = cuda_of(e);
    const char *name = dlc_arena_printf(cuda->arena, "r%u", cuda->nvalues++);
    (void)width;
    dlc_str_printf(&cuda->declarations, "    %s %s;\n", dlc_cuda_type(cuda, dtype), name);
    return (dlc_var)name;
}

/* The variable itself: callers use the value before they set it again. */
static dlc_val var_get(dlc_emitter *e, dlc_var var)
{
    (void)e;
    return (dlc_val)var;
}

static void var_set(dlc_emitter *e, dlc_var var, dlc_val value)
{
    dlc_cuda_line(cuda_of(e), "%s = %s;", (const char *)var, text(value));
}

/* --- control flow --- */

static void open_level(dlc_cuda *cuda, const char *header)
{
    cuda->at = ++cuda->level;
    cuda->headers[cuda->level] = header;
    dlc_str_deinit(&cuda->bodies[cuda->level]);
    cuda->bodies[cuda->level] = (dlc_str){0};
}

static void close_level(dlc_cuda *cuda)
{
    const char *body = dlc_str_text(&cuda->bodies[cuda->level]), *header = cuda->headers[cuda->level];
    cuda->at = --cuda->level;
    if (*body) {
        dlc_cuda_line(cuda, "%s {", header);
        dlc_str_add(&cuda->bodies[cuda->at], body);
        dlc_cuda_line(cuda, "}");
    }
}

static dlc_val loop_begin(dlc_emitter *e, dlc_val lo, dlc_val hi, int64_t step)
{
    dlc_cuda *cuda = cuda_of(e);
    const char *name = dlc_arena_printf(cuda->arena, "i%u", cuda->nvalues++);
    open_level(cuda, dlc_arena_printf(cuda->arena, "for (%s %s = %s; %s < %s; %s += %lld)", dlc_cuda_type(cuda, DLC_I64),
                                      name, text(lo), name, text(hi), name, (long long)step));
    return (dlc_val)name;
}

static void loop_end(dlc_emitter *e)
{
    close_level(cuda_of(e));
}

static void if_begin(dlc_emitter *e, dlc_val condition)
{
    open_level(cuda_of(e), dlc_arena_printf(cuda_of(e)->arena, "if (%s)", text(condition)));
}

static void position(dlc_emitter *e, uint32_t level)
{
    cuda_of(e)->at = level < cuda_of(e)->level ? level : cuda_of(e)->level;
}

static void fault(dlc_emitter *e, dlc_val bad, uint32_t width)
{
    (void)width;
    dlc_cuda_line(cuda_of(e), "if (%s) *fault = 1;", text(bad));
}

static const dlc_emitter table = {
    .konst = dlc_cuda_konst,  .arith = dlc_cuda_arith, .splat = splat,       .iota = iota,         .rotate = rotate,
    .lane = lane,             .symbol = symbol,        .load = load,         .store = store,       .var_new = var_new,
    .var_get = var_get,       .var_set = var_set,      .loop_begin = loop_begin, .loop_end = loop_end,
    .if_begin = if_begin,     .if_end = loop_end,      .position = position, .fault = fault,       .sync = sync,
    .worker = worker,         .deal = deal,
};

/* --- the kernel --- */

static int64_t elements_at_most(const dlc_kernel *kernel, const dlc_buffer *buffer, const dlc_ranges *ranges)
{
    dlc_expr elems = dlc_layout_elems(kernel->pool, &buffer->layout, buffer->type.rank, buffer->type.dims);
    return dlc_expr_range(kernel->pool, elems, ranges).hi;
}

/* Values of i64 that come from elsewhere than axes and symbols. */
static int has_long_data(const dlc_kernel *kernel)
{
    for (uint32_t i = 1; i < kernel->pool->nodes.n; i++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, i);
        int is_cast = node->op == DLC_EXPR_CAST || node->op == DLC_EXPR_BITCAST || node->op == DLC_EXPR_CAST_SAT;
        if (node->dtype == DLC_I64 && (is_cast || node->op == DLC_EXPR_LOAD || node->op == DLC_EXPR_SHL))
            return 1;
    }
    return 0;
}

/* 32 bits hold every index, and no i64 is data: then the type of indices is int, which costs half. */
static int has_small_index(dlc_kernel *kernel)
{
    dlc_ranges ranges = dlc_kernel_ranges(kernel);
    if (kernel->symbols.n || has_long_data(kernel))
        return 0;
    for (uint32_t b = 0; b < kernel->buffers.n; b++) {
        const dlc_buffer *buffer = &kernel->buffers.data[b];
        if (buffer->type.dtype == DLC_I64 || elements_at_most(kernel, buffer, &ranges) > INT32_MAX / 8)
            return 0;
    }
    for (uint32_t i = 1; i < kernel->pool->nodes.n; i++) {
        if (dlc_node_of(kernel->pool, i)->dtype != DLC_I64)
            continue;
        dlc_interval range = dlc_expr_range(kernel->pool, i, &ranges);
        if (range.lo < INT32_MIN / 2 || range.hi > INT32_MAX / 2)
            return 0;
    }
    return 1;
}

static void add_parameters(const dlc_kernel *kernel, dlc_str *out)
{
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        dlc_str_printf(out, "%svoid *DLC_RESTRICT b%u, ", kernel->buffers.data[b].role == DLC_ROLE_OUT ? "" : "const ", b);
    for (uint32_t s = 0; s < kernel->symbols.n; s++)
        dlc_str_printf(out, "long long s%u, ", s);
    dlc_str_add(out, "long long *fault, long long first, long long units");
}

/* Warps of a block, each with scratch of its own: as many as shared memory leaves, four at most. */
static uint32_t warps_of(const dlc_kernel *kernel, dlc_expr scratch, int64_t shared_bytes)
{
    int64_t bytes;
    if (!dlc_expr_is_int(kernel->pool, scratch, &bytes))
        return 1;
    uint32_t warps = 4;
    while (warps > 1 && bytes * warps > shared_bytes)
        warps /= 2;
    return warps;
}

static void assemble(dlc_cuda *cuda, const char *name, uint32_t warps, dlc_expr scratch, dlc_str *out)
{
    const char *index = dlc_cuda_type(cuda, DLC_I64);
    int64_t bytes = 0;
    dlc_str_printf(out, "DLC_KERNEL %s(DLC_HERE ", name);
    add_parameters(cuda->kernel, out);
    dlc_str_add(out, ")\n{\n    DLC_SHARED(dlc_shared);\n");
    if (cuda->is_block) {
        dlc_str_printf(out, "    unsigned char *scratch = dlc_shared;\n"
                            "    const int thread = DLC_THREAD, lane = thread & 31, warp = thread >> 5;\n"
                            "    const %s unit = (%s)(first + DLC_BLOCK), unit_end = unit + 1;\n"
                            "    (void)thread; (void)lane; (void)warp;\n", index, index);
    } else {
        (void)dlc_expr_is_int(cuda->kernel->pool, scratch, &bytes);
        dlc_str_printf(out, "    const int lane = DLC_THREAD & 31, warp = DLC_THREAD >> 5;\n"
                            "    unsigned char *scratch = dlc_shared + warp * %lld;\n"
                            "    const long long number = first + DLC_BLOCK * %u + warp;\n"
                            "    const %s unit = (%s)number, unit_end = unit + 1;\n",
                       (long long)bytes, warps, index, index);
    }
    dlc_str_add(out, "    (void)scratch; (void)fault; (void)first; (void)units;\n");
    dlc_str_add(out, dlc_str_text(&cuda->declarations));
    if (!cuda->is_block) /* a warp as a whole: whom shuffles and barriers name is there */
        dlc_str_add(out, "    if (number >= units)\n        return;\n");
    dlc_str_add(out, dlc_str_text(&cuda->bodies[0]));
    dlc_str_add(out, "}\n");
}

/* Units are blocks, whose scratch is shared memory, or warps. */
static dlc_cuda_kernel launch_of(const dlc_schedule *schedule, uint32_t warps)
{
    int64_t bytes = 0;
    if (!schedule->threads)
        return (dlc_cuda_kernel){.threads = warps * DLC_CUDA_WARP, .units_per_block = warps, .scratches = warps};
    int is_known = dlc_expr_is_int(schedule->kernel->pool, dlc_schedule_scratch(schedule), &bytes);
    return (dlc_cuda_kernel){.threads = schedule->threads, .units_per_block = 1, .fixed_bytes = is_known ? (uint32_t)bytes : 0,
                             .scratches = !is_known};
}

dlc_status dlc_cuda_source(const dlc_schedule *schedule, const char *name, dlc_arena *arena, dlc_diag *diag,
                           dlc_cuda_kernel *result)
{
    dlc_kernel *kernel = dlc_nest_private_kernel(schedule->kernel, NULL, arena);
    dlc_cuda *cuda = dlc_new(arena, dlc_cuda);
    dlc_nest *nest = dlc_new(arena, dlc_nest);
    dlc_expr scratch = dlc_schedule_scratch(schedule);
    uint32_t warps = warps_of(kernel, scratch, schedule->target->scratch_bytes);
    cuda->base = table;
    if (dlc_schedule_pack_of(schedule) > 1 || schedule->threads)
        dlc_cuda_pack(cuda);
    cuda->base.target = schedule->target;
    cuda->arena = arena;
    cuda->kernel = kernel;
    cuda->small_index = (uint8_t)has_small_index(kernel);
    cuda->has_long_data = (uint8_t)has_long_data(kernel);
    cuda->is_block = schedule->threads != 0;
    dlc_nest_init(nest, kernel, schedule, &cuda->base, arena, diag);
    dlc_nest_kernel(nest, (dlc_val) "unit", (dlc_val) "unit_end");
    dlc_str out = {0};
    assemble(cuda, name, warps, scratch, &out);
    *result = launch_of(schedule, warps);
    result->source = dlc_arena_strdup(arena, dlc_str_text(&out));
    dlc_str_deinit(&out);
    dlc_str_deinit(&cuda->declarations);
    for (uint32_t i = 0; i < DLC_MAX_LEVELS; i++)
        dlc_str_deinit(&cuda->bodies[i]);
    return DLC_OK;
}
