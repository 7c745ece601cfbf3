/*
 * Products of f32 in three parts of bf16: the factors of a contraction by constant weights become exact sums
 *
 *     x = x0 + x1 + x2     w = w0 + w1 + w2     a[…] = sum(k) x * w   becomes   a[…] = sum(k) (x0 + (x1 + x2)) * (w0 + (w1 + w2))
 *
 * of 8 of their 24 bits each, which a matrix unit multiplies (row bf16x3 of dot.def). x0 is x cut toward zero, so that no finite x makes it
 * infinite; x1 is what is left, rounded, ties away from zero; x2 is the rest. The sum of all three is x itself, but for bits of less than
 * 2^-133, the least bf16. Where x is an infinity or NaN, x0 is as well, and the others are 0.
 *
 * Parts of w are made at compile time and stand side by side as whole tensors. Parts of x are made by a kernel of their own, once for all
 * windows and columns: those of a run of channels lie one behind the other, so that what a tile reads of one pixel is in neighbouring lines.
 */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/rewrite.h"

enum {
    NPARTS = 3,
    LEAST_TERMS = 64,  /* of a sum: shorter ones are bound by what goes around them */
    LEAST_RUN = 64,    /* of terms that lie together, or a multiple of: */
    RUN_STEP = 32,     /* what a tile register has of them */
    LEAST_SIDE = 16,   /* rows, and columns, of a tile register */
    WORTH_PERCENT = 90 /* of the time before: estimates are not finer */
};

/* The values between the parts. */
enum { OF_WEIGHTS, OF_ROWS, NMADE };

/* What is taken apart. */
typedef struct {
    const dlc_rewriting *in;
    dlc_kernel *kernel; /* a copy, whose pool grows */
    uint32_t stage;
    dlc_contraction form;
} site;

/* --- finding it --- */

static const dlc_buffer *buffer_of(const dlc_kernel *kernel, dlc_expr load)
{
    return &kernel->buffers.data[dlc_node_of(kernel->pool, load)->imm.id];
}

/* A load of f32 from a row-major buffer that has room for one more dimension. */
static int is_plain(const dlc_kernel *kernel, dlc_expr factor, dlc_role role)
{
    const dlc_expr_node *node = dlc_node_of(kernel->pool, factor);
    if (node->op != DLC_EXPR_LOAD || DLC_SOURCE_IS_STAGE(node->imm.id) || node->flags || node->dtype != DLC_F32)
        return 0;
    const dlc_buffer *buffer = buffer_of(kernel, factor);
    return buffer->role == role && buffer->type.dtype == DLC_F32 && buffer->type.rank && buffer->type.rank < DLC_MAX_RANK &&
           !buffer->layout.nparts;
}

/* Outside of its guard the load gives 0, which is the sum of three. */
static int gives_zero(const dlc_pool *pool, dlc_expr load)
{
    double value;
    dlc_expr other = dlc_load_else(pool, load);
    return !other || (dlc_expr_is_float(pool, other, &value) && value == 0);
}

static double points_of(const site *at, const dlc_ids *axes)
{
    const int64_t *symbols = dlc_kernel_symbol_values(at->kernel, DLC_NOMINAL_SYMBOL, at->in->scratch);
    double n = 1;
    for (uint32_t i = 0; i < axes->n; i++)
        n *= (double)dlc_expr_eval(at->kernel->pool, at->kernel->axes.data[axes->data[i]].extent, symbols);
    return n;
}

/* Terms lie side by side in the rows' factor: so many; 0: they do not, or only a run knows. */
static int64_t run_of(const site *at)
{
    const dlc_pool *pool = at->kernel->pool;
    uint32_t axis = dlc_bare_axis(pool, dlc_arg(pool, at->form.a, dlc_load_rank(pool, at->form.a) - 1));
    int64_t extent;
    return axis != DLC_NO_AXIS && dlc_ids_find(&at->form.k, axis, NULL) && dlc_const_extent(at->kernel, axis, &extent) ? extent : 0;
}

/* Long enough, and broad enough for tiles; what is asked for need not be broad. */
static int is_large(const site *at)
{
    int64_t run = run_of(at), wanted = at->in->wanted;
    if (!run || points_of(at, &at->form.k) < (double)(wanted ? wanted : LEAST_TERMS))
        return 0;
    return wanted || ((run >= LEAST_RUN || run % RUN_STEP == 0) && points_of(at, &at->form.m) >= LEAST_SIDE &&
                      points_of(at, &at->form.n) >= LEAST_SIDE);
}

/* The first contraction of f32 by weights that is worth looking at. */
static int find_site(site *at)
{
    for (at->stage = 0; at->stage < at->kernel->stages.n; at->stage++) {
        const dlc_stage *stage = &at->kernel->stages.data[at->stage];
        if (stage->dtype[0] == DLC_F32 && dlc_contraction_of(at->kernel, stage, at->in->scratch, &at->form) &&
            is_plain(at->kernel, at->form.a, DLC_ROLE_IN) && is_plain(at->kernel, at->form.b, DLC_ROLE_CONST) && at->form.m.n &&
            at->form.n.n && gives_zero(at->kernel->pool, at->form.a) && !dlc_load_guard(at->kernel->pool, at->form.b) && is_large(at))
            return 1;
    }
    return 0;
}

/* --- the parts of a factor --- */

static const char *name_of(const site *at, dlc_expr load)
{
    return dlc_arena_printf(at->in->arena, "%s.bf16x3", buffer_of(at->kernel, load)->name);
}

/* Where the axis of parts stands: of weights outermost, of rows in front of a run. */
static uint32_t place_of(const site *at, uint32_t made)
{
    return made == OF_WEIGHTS ? 0 : buffer_of(at->kernel, at->form.a)->type.rank - 1u;
}

static dlc_expr load_of(const site *at, uint32_t made)
{
    return made == OF_WEIGHTS ? at->form.b : at->form.a;
}

/* `rank` indices or sizes, with `part` among them. */
static void with_part(const site *at, uint32_t made, const dlc_expr *from, uint32_t rank, dlc_expr part, dlc_expr *to)
{
    uint32_t place = place_of(at, made);
    for (uint32_t d = 0; d < place; d++)
        to[d] = from[d];
    to[place] = part;
    for (uint32_t d = place; d < rank; d++)
        to[d + 1] = from[d];
}

/* bf16[3, …], or bf16[…, 3, c], in a copy of the kernel. */
static dlc_buffer parts_buffer(const site *at, const dlc_kernel *kernel, uint32_t made)
{
    const dlc_buffer *from = buffer_of(at->kernel, load_of(at, made));
    dlc_buffer buffer = {.name = name_of(at, load_of(at, made)), .role = made == OF_WEIGHTS ? DLC_ROLE_CONST : DLC_ROLE_IN};
    buffer.type = (dlc_type){.dtype = DLC_BF16, .rank = (uint8_t)(from->type.rank + 1)};
    with_part(at, made, from->type.dims, from->type.rank, dlc_expr_i64(kernel->pool, NPARTS), buffer.type.dims);
    return buffer;
}

static dlc_expr upper_bits(dlc_pool *pool, dlc_expr bits)
{
    const uint32_t upper = 0xffff0000u;
    return dlc_expr2(pool, DLC_EXPR_AND, bits, dlc_expr_const_i(pool, DLC_U32, upper));
}

/* The 16 bits that a bf16 keeps of a float's. */
static dlc_expr half_of(dlc_pool *pool, dlc_expr bits)
{
    return dlc_expr_cast(pool, DLC_U16, dlc_expr2(pool, DLC_EXPR_SHR, bits, dlc_expr_const_i(pool, DLC_U32, 16)));
}

/* Stages of a kernel that takes one buffer apart: what the parts have in common is computed once. */
typedef struct {
    dlc_kernel *kernel;
    dlc_ids axes; /* one of each dimension */
    dlc_expr index[DLC_MAX_RANK];
} parting;

static dlc_expr add_stage(const parting *p, const char *name, dlc_dtype dtype, dlc_expr value)
{
    uint32_t number = p->kernel->stages.n;
    dlc_stage *stage = dlc_kernel_stage(p->kernel, name);
    for (uint32_t d = 0; d < p->axes.n; d++)
        dlc_vec_push(p->kernel->arena, &stage->axes, p->axes.data[d]);
    stage->dtype[0] = dtype;
    stage->value[0] = value;
    return dlc_expr_load(p->kernel->pool, dtype, DLC_STAGE_SOURCE(number), p->index, p->axes.n, 0, 0, 0);
}

static void add_part(const site *at, const parting *p, uint32_t made, uint32_t buffer, int64_t part, dlc_expr bits)
{
    dlc_expr store[DLC_MAX_RANK];
    (void)add_stage(p, dlc_arena_printf(p->kernel->arena, "part%d", (int)part), DLC_BF16, dlc_expr_bitcast(p->kernel->pool, DLC_BF16, bits));
    dlc_stage *stage = &p->kernel->stages.data[p->kernel->stages.n - 1];
    with_part(at, made, p->index, p->axes.n, dlc_expr_i64(p->kernel->pool, part), store);
    stage->buffer = buffer;
    for (uint32_t d = 0; d <= p->axes.n; d++)
        dlc_vec_push(p->kernel->arena, &stage->store, store[d]);
}

/* Whole numbers do: a cast to bf16 would round what is exact already. A quiet bit keeps a NaN whose others are all in the lower half. */
static void add_parts(const site *at, const parting *p, uint32_t made, uint32_t buffer, dlc_expr x)
{
    const int64_t half = 0x8000, quiet = 0x40;
    dlc_pool *pool = p->kernel->pool;
    dlc_expr zero = dlc_expr_const(pool, DLC_F32, 0), no_bits = dlc_expr_const_i(pool, DLC_U16, 0);
    dlc_expr is_finite = dlc_lt(pool, dlc_expr1(pool, DLC_EXPR_ABS, x), dlc_expr_const(pool, DLC_F32, __builtin_inf()));
    dlc_expr bits = add_stage(p, "bits", DLC_U32, dlc_expr_bitcast(pool, DLC_U32, x));
    dlc_expr cut = dlc_expr_bitcast(pool, DLC_F32, upper_bits(pool, bits));
    dlc_expr rest = add_stage(p, "rest", DLC_F32, dlc_select(pool, is_finite, dlc_sub(pool, x, cut), zero));
    dlc_expr near = add_stage(p, "near", DLC_U32, dlc_add(pool, dlc_expr_bitcast(pool, DLC_U32, rest), dlc_expr_const_i(pool, DLC_U32, half)));
    dlc_expr last = dlc_sub(pool, rest, dlc_expr_bitcast(pool, DLC_F32, upper_bits(pool, near)));
    dlc_expr if_nan = dlc_select(pool, dlc_eq(pool, x, x), no_bits, dlc_expr_const_i(pool, DLC_U16, quiet));
    add_part(at, p, made, buffer, 0, dlc_expr2(pool, DLC_EXPR_OR, half_of(pool, bits), if_nan));
    add_part(at, p, made, buffer, 1, half_of(pool, near));
    add_part(at, p, made, buffer, 2, half_of(pool, dlc_expr_bitcast(pool, DLC_U32, last)));
}

/* --- the kernels --- */

/* A copy with buffers for the parts, of which the first one's number is returned. */
static dlc_kernel *copy_kernel(const site *at, int has_stages, uint32_t *first)
{
    dlc_kernel *kernel = dlc_kernel_clone(at->kernel, at->in->arena);
    for (uint32_t b = 0; !has_stages && b < kernel->buffers.n; b++)
        if (kernel->buffers.data[b].role == DLC_ROLE_OUT)
            kernel->buffers.data[b].role = DLC_ROLE_IN; /* of no stage that is left */
    kernel->stages.n = has_stages ? kernel->stages.n : 0;
    *first = dlc_rewrite_insert(kernel, parts_buffer(at, kernel, OF_WEIGHTS));
    (void)dlc_rewrite_insert(kernel, parts_buffer(at, kernel, OF_ROWS));
    return kernel;
}

/* Takes a factor's whole buffer apart. */
static void make_parts(const site *at, uint32_t made, dlc_rewritten *out)
{
    uint32_t first, from = dlc_node_of(at->kernel->pool, load_of(at, made))->imm.id;
    parting p = {.kernel = copy_kernel(at, 0, &first)};
    const dlc_type type = p.kernel->buffers.data[from].type;
    p.kernel->name = name_of(at, load_of(at, made));
    for (uint32_t d = 0; d < type.rank; d++) {
        dlc_vec_push(p.kernel->arena, &p.axes, dlc_kernel_axis(p.kernel, dlc_arena_printf(p.kernel->arena, "i%u", d), type.dims[d]));
        p.index[d] = dlc_expr_axis(p.kernel->pool, p.axes.data[d]);
    }
    p.kernel->buffers.data[first + made].role = DLC_ROLE_OUT;
    add_parts(at, &p, made, first + made, dlc_expr_load(p.kernel->pool, DLC_F32, from, p.index, type.rank, 0, 0, 0));
    dlc_rewrite_add_part(p.kernel, first, NMADE, out);
}

/* x0 + (x1 + x2) where the load was. */
static dlc_expr sum_of_parts(const site *at, dlc_kernel *kernel, uint32_t made, uint32_t buffer)
{
    dlc_pool *pool = kernel->pool;
    dlc_expr load = load_of(at, made), plain[DLC_MAX_RANK], index[DLC_MAX_RANK], sum = 0;
    uint32_t rank = dlc_load_rank(pool, load);
    for (uint32_t d = 0; d < rank; d++)
        plain[d] = dlc_arg(pool, load, d);
    for (int64_t part = NPARTS; part-- > 0;) {
        with_part(at, made, plain, rank, dlc_expr_i64(pool, part), index);
        dlc_expr value = dlc_expr_load(pool, DLC_BF16, buffer, index, rank + 1, dlc_load_guard(pool, load), 0, 0);
        value = dlc_expr_cast(pool, DLC_F32, value);
        sum = sum ? dlc_add(pool, sum, value) : value;
    }
    return sum;
}

/* The kernel as it was, of sums of parts. */
static void make_product(const site *at, dlc_rewritten *out)
{
    uint32_t first;
    dlc_kernel *kernel = copy_kernel(at, 1, &first);
    dlc_expr rows = sum_of_parts(at, kernel, OF_ROWS, first + OF_ROWS), weights = sum_of_parts(at, kernel, OF_WEIGHTS, first + OF_WEIGHTS);
    dlc_expr value = dlc_mul(kernel->pool, rows, weights);
    kernel->stages.data[at->stage].value[0] = at->form.scale ? dlc_mul(kernel->pool, value, at->form.scale) : value;
    dlc_rewrite_add_part(kernel, first, NMADE, out);
}

static void take_apart(const site *at, dlc_rewritten *out)
{
    *out = (dlc_rewritten){0};
    dlc_vec_push(at->in->arena, &out->made, name_of(at, at->form.b));
    dlc_vec_push(at->in->arena, &out->made, name_of(at, at->form.a));
    make_parts(at, OF_WEIGHTS, out);
    make_parts(at, OF_ROWS, out);
    make_product(at, out);
}

/* --- whether it pays --- */

/* The share of the time before that is left, of what runs; negative: it cannot be scheduled. */
static double share_left(const site *at)
{
    dlc_rewriting trial = *at->in;
    site tried = *at;
    dlc_rewritten out;
    double share, before = dlc_rewrite_time(at->in, at->in->kernel, &share), after = 0;
    trial.arena = trial.scratch;
    tried.in = &trial;
    take_apart(&tried, &out);
    for (uint32_t p = OF_ROWS; p < out.parts.n; p++) {
        double time = dlc_rewrite_time(at->in, out.parts.data[p].kernel, &share);
        if (time < 0 || before <= 0)
            return -1;
        after += time;
    }
    return after / before;
}

static int has_matrix_unit(const dlc_target *target)
{
    const uint32_t facts = DLC_HAS_AMX_BF16 | DLC_HAS_BF16;
    return (target->facts & facts) == facts;
}

int dlc_rewrite_bf16x3(const dlc_rewriting *in, dlc_rewritten *out)
{
    site at = {.in = in};
    if (in->target->kind != DLC_TARGET_CPU || (!in->wanted && (!in->matrix || in->cuts_bf16 || !has_matrix_unit(in->target))))
        return 0;
    at.kernel = dlc_kernel_clone(in->kernel, in->scratch);
    if (!find_site(&at))
        return 0;
    double left = in->wanted ? 0 : share_left(&at);
    if (left < 0 || left * 100 > WORTH_PERCENT)
        return 0;
    take_apart(&at, out);
    out->left = left;
    return 1;
}
