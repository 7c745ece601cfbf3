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
 * That kernel also computes what the product reads computed, and gathers rows that lie apart.
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

/* A factor of the product, that is to become parts. */
typedef struct {
    dlc_expr expr;    /* the load, whose buffer is taken apart whole, or what is computed at each point of */
    dlc_ids axes;     /* these; none: it is a load */
    const char *name; /* of the value with its parts, which has one dimension more than */
    uint32_t rank;
    dlc_expr sizes[DLC_MAX_RANK], index[DLC_MAX_RANK], guard; /* where the product reads it; guard 0: always */
    uint32_t place;   /* of the dimension of parts: outermost of weights, of rows in front of a run of terms */
} factor;

typedef struct {
    const dlc_rewriting *in;
    dlc_kernel *kernel; /* a copy, whose pool grows */
    uint32_t stage;
    dlc_contraction form;
    int64_t run;        /* terms that lie side by side in the rows' factor */
    factor factors[NMADE];
} site;

/* --- finding it --- */

static const dlc_buffer *buffer_of(const dlc_kernel *kernel, dlc_expr load)
{
    return &kernel->buffers.data[dlc_node_of(kernel->pool, load)->imm.id];
}

/* A load from a row-major buffer, at indices that are not data. */
static int is_plain(const dlc_kernel *kernel, dlc_expr load)
{
    const dlc_expr_node *node = dlc_node_of(kernel->pool, load);
    return node->op == DLC_EXPR_LOAD && !DLC_SOURCE_IS_STAGE(node->imm.id) && !node->flags && !buffer_of(kernel, load)->layout.nparts;
}

/* The load of f32 as a factor; false: there is no room for one more dimension. */
static int take_load(const site *at, dlc_expr load, dlc_role role, factor *result)
{
    const dlc_pool *pool = at->kernel->pool;
    double other = 0;
    if (!is_plain(at->kernel, load) || buffer_of(at->kernel, load)->role != role || dlc_node_of(pool, load)->dtype != DLC_F32)
        return 0;
    const dlc_buffer *buffer = buffer_of(at->kernel, load);
    *result = (factor){.expr = load, .name = dlc_arena_printf(at->in->arena, "%s.bf16x3", buffer->name), .rank = buffer->type.rank};
    result->guard = dlc_load_guard(pool, load);
    for (uint32_t d = 0; d < result->rank; d++) {
        result->sizes[d] = buffer->type.dims[d];
        result->index[d] = dlc_arg(pool, load, d);
    }
    dlc_expr otherwise = dlc_load_else(pool, load); /* must be 0, which is the sum of three */
    return result->rank && result->rank < DLC_MAX_RANK && (!otherwise || (dlc_expr_is_float(pool, otherwise, &other) && other == 0));
}

/* The load of rows as a factor, whose innermost index is an axis of terms. */
static int take_rows(site *at, factor *result)
{
    if (!take_load(at, at->form.a, DLC_ROLE_IN, result))
        return 0;
    result->place = result->rank - 1;
    uint32_t axis = dlc_bare_axis(at->kernel->pool, result->index[result->place]);
    return axis != DLC_NO_AXIS && dlc_ids_find(&at->form.k, axis, NULL) && dlc_const_extent(at->kernel, axis, &at->run);
}

/* Neighbours along the axis lie together, or are one. */
static int goes_along(const dlc_kernel *kernel, dlc_expr load, uint32_t axis)
{
    uint32_t last = dlc_load_rank(kernel->pool, load) - 1;
    dlc_expr coefficient, rest;
    int64_t step;
    for (uint32_t d = 0; d < last; d++)
        if (dlc_expr_uses_axis(kernel->pool, dlc_arg(kernel->pool, load, d), axis))
            return 0;
    return dlc_expr_linear(kernel->pool, dlc_arg(kernel->pool, load, last), axis, &coefficient, &rest) &&
           dlc_expr_is_int(kernel->pool, coefficient, &step) && (step == 0 || step == 1);
}

/* Rows of buffers alone, of one axis of terms, along which all of them go. */
static int are_computed_rows(const site *at)
{
    const dlc_pool *pool = at->kernel->pool;
    uint8_t *marks = dlc_new_array(at->in->scratch, uint8_t, (size_t)at->form.a + 1);
    if (at->form.k.n != 1 || dlc_node_of(pool, at->form.a)->dtype != DLC_F32)
        return 0;
    dlc_expr_reach(pool, at->form.a, marks);
    for (dlc_expr id = 1; id <= at->form.a; id++)
        if (marks[id] && dlc_node_of(pool, id)->op == DLC_EXPR_LOAD &&
            (!is_plain(at->kernel, id) || (dlc_load_rank(pool, id) && !goes_along(at->kernel, id, at->form.k.data[0]))))
            return 0;
    return 1;
}

/* What is computed in front of the product as a factor: each row and term once. */
static int take_computed(site *at, factor *result)
{
    const dlc_stage *stage = &at->kernel->stages.data[at->stage];
    *result = (factor){.expr = at->form.a, .name = dlc_arena_printf(at->in->arena, "%s.bf16x3", stage->name)};
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (dlc_expr_uses_axis(at->kernel->pool, at->form.a, stage->axes.data[i]))
            dlc_vec_push(at->in->scratch, &result->axes, stage->axes.data[i]);
    if (!are_computed_rows(at) || result->axes.n + 2 > DLC_MAX_RANK)
        return 0;
    dlc_vec_push(at->in->scratch, &result->axes, at->form.k.data[0]);
    for (uint32_t i = 0; i < result->axes.n; i++) {
        result->sizes[i] = at->kernel->axes.data[result->axes.data[i]].extent;
        result->index[i] = dlc_expr_axis(at->kernel->pool, result->axes.data[i]);
    }
    result->rank = result->axes.n;
    result->place = result->rank - 1;
    return dlc_const_extent(at->kernel, at->form.k.data[0], &at->run);
}

/* The load takes elements that the product reads, and hardly others: by its axes themselves, or in windows. */
static int is_whole(const site *at, const factor *rows)
{
    for (uint32_t d = 0; at->form.k.n == 1 && d < rows->rank; d++)
        if (dlc_bare_axis(at->kernel->pool, rows->index[d]) == DLC_NO_AXIS)
            return 0;
    return 1;
}

static int find_rows(site *at)
{
    factor *rows = &at->factors[OF_ROWS], computed;
    int is_load = take_rows(at, rows);
    if (is_load && is_whole(at, rows))
        return 1;
    if (!take_computed(at, &computed))
        return is_load;
    *rows = computed;
    return 1;
}

static double points_of(const site *at, const dlc_ids *axes)
{
    const int64_t *symbols = dlc_kernel_usual_values(at->kernel, DLC_NOMINAL_SYMBOL, at->in->scratch);
    double n = 1;
    for (uint32_t i = 0; i < axes->n; i++)
        n *= (double)dlc_expr_eval(at->kernel->pool, at->kernel->axes.data[axes->data[i]].extent, symbols);
    return n;
}

/* Long enough, and broad enough for tiles; what is asked for need not be broad. */
static int is_large(const site *at)
{
    int64_t wanted = at->in->wanted;
    if (points_of(at, &at->form.k) < (double)(wanted ? wanted : LEAST_TERMS))
        return 0;
    return wanted || ((at->run >= LEAST_RUN || at->run % RUN_STEP == 0) && points_of(at, &at->form.m) >= LEAST_SIDE &&
                      points_of(at, &at->form.n) >= LEAST_SIDE);
}

/* The first contraction of f32 by weights that is worth looking at. */
static int find_site(site *at)
{
    for (at->stage = 0; at->stage < at->kernel->stages.n; at->stage++) {
        const dlc_stage *stage = &at->kernel->stages.data[at->stage];
        if (stage->dtype[0] == DLC_F32 && dlc_contraction_of(at->kernel, stage, at->in->scratch, &at->form) && at->form.m.n && at->form.n.n &&
            take_load(at, at->form.b, DLC_ROLE_CONST, &at->factors[OF_WEIGHTS]) && !at->factors[OF_WEIGHTS].guard && find_rows(at) &&
            is_large(at))
            return 1;
    }
    return 0;
}

/* --- the parts of a factor --- */

/* The factor's indices or sizes, with `part` among them. */
static void with_part(const factor *f, const dlc_expr *from, dlc_expr part, dlc_expr *to)
{
    for (uint32_t d = 0; d < f->place; d++)
        to[d] = from[d];
    to[f->place] = part;
    for (uint32_t d = f->place; d < f->rank; d++)
        to[d + 1] = from[d];
}

/* bf16[3, …], or bf16[…, 3, c], in a copy of the kernel. */
static dlc_buffer parts_buffer(const factor *f, const dlc_kernel *kernel, dlc_role role)
{
    dlc_buffer buffer = {.name = f->name, .role = (uint8_t)role, .type = {.dtype = DLC_BF16, .rank = (uint8_t)(f->rank + 1)}};
    with_part(f, f->sizes, dlc_expr_i64(kernel->pool, NPARTS), buffer.type.dims);
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

/* Stages of a kernel that takes a factor apart: what the parts have in common is computed once. */
typedef struct {
    const factor *factor;
    dlc_kernel *kernel;
    uint32_t buffer; /* of the parts */
    dlc_ids axes;    /* one of each dimension */
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

static void add_part(const parting *p, int64_t part, dlc_expr bits)
{
    dlc_expr store[DLC_MAX_RANK];
    (void)add_stage(p, dlc_arena_printf(p->kernel->arena, "part%d", (int)part), DLC_BF16, dlc_expr_bitcast(p->kernel->pool, DLC_BF16, bits));
    dlc_stage *stage = &p->kernel->stages.data[p->kernel->stages.n - 1];
    with_part(p->factor, p->index, dlc_expr_i64(p->kernel->pool, part), store);
    stage->buffer = p->buffer;
    for (uint32_t d = 0; d <= p->axes.n; d++)
        dlc_vec_push(p->kernel->arena, &stage->store, store[d]);
}

/* Whole numbers do: a cast to bf16 would round what is exact already. A quiet bit keeps a NaN whose others are all in the lower half. */
static void add_parts(const parting *p, dlc_expr x)
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
    add_part(p, 0, dlc_expr2(pool, DLC_EXPR_OR, half_of(pool, bits), if_nan));
    add_part(p, 1, half_of(pool, near));
    add_part(p, 2, half_of(pool, dlc_expr_bitcast(pool, DLC_U32, last)));
}

/* --- the kernels --- */

/* A copy with buffers for the parts, of which the first one's number is returned. */
static dlc_kernel *copy_kernel(const site *at, uint32_t *first)
{
    dlc_kernel *kernel = dlc_kernel_clone(at->kernel, at->in->arena);
    *first = dlc_rewrite_insert(kernel, parts_buffer(&at->factors[OF_WEIGHTS], kernel, DLC_ROLE_CONST));
    (void)dlc_rewrite_insert(kernel, parts_buffer(&at->factors[OF_ROWS], kernel, DLC_ROLE_IN));
    return kernel;
}

/* Axes of a whole buffer; returns the load of its elements. */
static dlc_expr all_elements(parting *p)
{
    const dlc_pool *pool = p->kernel->pool;
    uint32_t from = dlc_node_of(pool, p->factor->expr)->imm.id;
    for (uint32_t d = 0; d < p->factor->rank; d++) {
        dlc_vec_push(p->kernel->arena, &p->axes, dlc_kernel_axis(p->kernel, dlc_arena_printf(p->kernel->arena, "i%u", d), p->factor->sizes[d]));
        p->index[d] = dlc_expr_axis(p->kernel->pool, p->axes.data[d]);
    }
    return dlc_expr_load(p->kernel->pool, DLC_F32, from, p->index, p->factor->rank, 0, 0, 0);
}

static dlc_expr computed_elements(parting *p)
{
    for (uint32_t d = 0; d < p->factor->rank; d++)
        p->index[d] = p->factor->index[d];
    p->axes = p->factor->axes;
    return add_stage(p, "rows", DLC_F32, p->factor->expr);
}

static void make_parts(const site *at, uint32_t made, dlc_rewritten *out)
{
    uint32_t first;
    parting p = {.factor = &at->factors[made], .kernel = copy_kernel(at, &first)};
    p.buffer = first + made;
    p.kernel->name = p.factor->name;
    p.kernel->stages.n = 0;
    for (uint32_t b = 0; b < p.kernel->buffers.n; b++)
        if (p.kernel->buffers.data[b].role == DLC_ROLE_OUT)
            p.kernel->buffers.data[b].role = DLC_ROLE_IN; /* of no stage that is left */
    p.kernel->buffers.data[p.buffer].role = DLC_ROLE_OUT;
    add_parts(&p, p.factor->axes.n ? computed_elements(&p) : all_elements(&p));
    dlc_rewrite_add_part(p.kernel, first, NMADE, out);
}

/* x0 + (x1 + x2) */
static dlc_expr sum_of_parts(const factor *f, dlc_pool *pool, uint32_t buffer)
{
    dlc_expr index[DLC_MAX_RANK], sum = 0;
    for (int64_t part = NPARTS; part-- > 0;) {
        with_part(f, f->index, dlc_expr_i64(pool, part), index);
        dlc_expr value = dlc_expr_load(pool, DLC_BF16, buffer, index, f->rank + 1, f->guard, 0, 0);
        value = dlc_expr_cast(pool, DLC_F32, value);
        sum = sum ? dlc_add(pool, sum, value) : value;
    }
    return sum;
}

/* The kernel as it was, of sums of parts. */
static void make_product(const site *at, dlc_rewritten *out)
{
    uint32_t first;
    dlc_kernel *kernel = copy_kernel(at, &first);
    dlc_expr rows = sum_of_parts(&at->factors[OF_ROWS], kernel->pool, first + OF_ROWS);
    dlc_expr value = dlc_mul(kernel->pool, rows, sum_of_parts(&at->factors[OF_WEIGHTS], kernel->pool, first + OF_WEIGHTS));
    kernel->stages.data[at->stage].value[0] = at->form.scale ? dlc_mul(kernel->pool, value, at->form.scale) : value;
    dlc_rewrite_add_part(kernel, first, NMADE, out);
}

static void take_apart(const site *at, dlc_rewritten *out)
{
    *out = (dlc_rewritten){0};
    for (uint32_t made = 0; made < NMADE; made++)
        dlc_vec_push(at->in->arena, &out->made, at->factors[made].name);
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

int dlc_rewrite_bf16x3(const dlc_rewriting *in, dlc_rewritten *out)
{
    site at = {.in = in};
    if (in->target->kind != DLC_TARGET_CPU || (!in->wanted && (!in->matrix || in->cuts_bf16 || !dlc_dot_pays(in->target, DLC_DOT_BF16X3))))
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
