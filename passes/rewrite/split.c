/*
 * Split: a[…] = sum(k) v becomes ap[ks,…] = sum(kk) v(k := ks * len + kk) and, in a kernel of its own, a[…] = sum(ks) ap. A
 * contraction of few rows and columns and many terms, or a sum of few results, then has n times as many independent tiles, which a
 * device with many processors wants; the threads of a CPU read a matrix by whole rows so. ks stands first: it is one more batch of
 * the contraction, whose columns stay as they are; the parts lie in the order of the kernel's own result.
 *
 * A sum of floats changes by the order of its terms alone, and that order is the same in every run. The cut needs n to divide
 * the axis, so that no part is longer than another and nothing is guarded.
 */
#include "ir/kernel/algebra.h"
#include "passes/rewrite/rewrite.h"
#include "passes/schedule/choose.h"

enum {
    LEAST_PART = 32,      /* terms of a part: below, starting it costs as much */
    MOST_PARTS = 32,
    WORTH_PERCENT = 90,   /* of the time before: estimates are not finer */
    FULL = 3              /* rounds of a GPU's multiprocessors, from which on the last one is not seen */
};

/* What is split. */
typedef struct {
    const dlc_rewriting *in;
    uint32_t stage;
    uint32_t place;  /* of the axis in the stage's `reduce` */
    int64_t extent;
} site;

static int loads_stages(const dlc_kernel *kernel, const dlc_stage *stage, dlc_arena *scratch)
{
    const uint8_t *marks = dlc_stage_marks(kernel, stage, scratch);
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(kernel->pool, id);
        if (marks[id] && node->op == DLC_EXPR_LOAD && DLC_SOURCE_IS_STAGE(node->imm.id))
            return 1;
    }
    return 0;
}

/* The longest reduced axis of constant extent. */
static int find_axis(site *at, const dlc_stage *stage)
{
    at->extent = 0;
    for (uint32_t i = 0; i < stage->reduce.n; i++) {
        int64_t extent;
        if (!dlc_const_extent(at->in->kernel, stage->reduce.data[i], &extent) || extent <= at->extent)
            continue;
        at->extent = extent;
        at->place = i;
    }
    return at->extent > 1;
}

/* Stages that are sums, or contractions alone; the last of them is noted. */
static uint32_t count_sums(site *at, dlc_kernel *kernel, int of_products)
{
    uint32_t nfound = 0;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const dlc_stage *stage = &kernel->stages.data[s];
        dlc_contraction form;
        if (of_products ? !dlc_contraction_of(kernel, stage, at->in->scratch, &form)
                        : stage->combine != DLC_REDUCE_SUM || !stage->reduce.n)
            continue;
        at->stage = s;
        nfound++;
    }
    return nfound;
}

/* The kernel's one contraction, else its one sum, of buffers alone. */
static int find_site(site *at)
{
    dlc_kernel *kernel = dlc_kernel_clone(at->in->kernel, at->in->scratch); /* the recogniser adds to its pool */
    uint32_t nproducts = count_sums(at, kernel, 1);
    if (nproducts > 1 || (nproducts == 0 && count_sums(at, kernel, 0) != 1))
        return 0;
    const dlc_stage *stage = &kernel->stages.data[at->stage];
    return stage->axes.n < DLC_MAX_RANK && !stage->update && !loads_stages(kernel, stage, at->in->scratch) &&
           find_axis(at, stage);
}

/* --- the two kernels --- */

/* The stage's axes in the order in which the kernel stores along them. */
static dlc_ids stored_order(const dlc_kernel *kernel, const dlc_stage *stage)
{
    dlc_ids order = {0};
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        for (uint32_t d = 0; d < kernel->stages.data[s].store.n; d++) {
            uint32_t axis = dlc_bare_axis(kernel->pool, kernel->stages.data[s].store.data[d]);
            if (axis != DLC_NO_AXIS && dlc_ids_find(&stage->axes, axis, NULL) && !dlc_ids_find(&order, axis, NULL))
                dlc_vec_push(kernel->arena, &order, axis);
        }
    for (uint32_t a = 0; a < stage->axes.n; a++)
        if (!dlc_ids_find(&order, stage->axes.data[a], NULL))
            dlc_vec_push(kernel->arena, &order, stage->axes.data[a]);
    return order;
}

/* f32[n, …]: the parts of the stage's value. */
static dlc_buffer parts_buffer(dlc_kernel *kernel, const dlc_stage *stage, const dlc_ids *order, int64_t n, dlc_role role)
{
    dlc_buffer buffer = {.name = dlc_arena_printf(kernel->arena, "%s.parts", stage->name), .role = (uint8_t)role};
    buffer.type.dtype = stage->dtype[0];
    buffer.type.dims[buffer.type.rank++] = dlc_expr_i64(kernel->pool, n);
    for (uint32_t a = 0; a < order->n; a++)
        buffer.type.dims[buffer.type.rank++] = kernel->axes.data[order->data[a]].extent;
    return buffer;
}

static uint32_t parts_axis(dlc_kernel *kernel, const site *at, int64_t n)
{
    const char *name = kernel->axes.data[at->in->kernel->stages.data[at->stage].reduce.data[at->place]].name;
    return dlc_kernel_axis(kernel, dlc_arena_printf(kernel->arena, "%ss", name), dlc_expr_i64(kernel->pool, n));
}

static dlc_ids with_first(dlc_arena *arena, uint32_t first, const dlc_ids *rest)
{
    dlc_ids ids = {0};
    dlc_vec_push(arena, &ids, first);
    for (uint32_t i = 0; i < rest->n; i++)
        dlc_vec_push(arena, &ids, rest->data[i]);
    return ids;
}

/* ap[ks,…] = sum(kk) v(k := ks * len + kk) */
static void make_parts(const site *at, int64_t n, dlc_rewritten *out)
{
    dlc_kernel *kernel = dlc_kernel_clone(at->in->kernel, at->in->arena);
    dlc_pool *pool = kernel->pool;
    uint32_t ks = parts_axis(kernel, at, n), made = kernel->buffers.n;
    dlc_stage *stage = &kernel->stages.data[at->stage];
    uint32_t k = stage->reduce.data[at->place];
    uint32_t kk = dlc_kernel_axis(kernel, dlc_arena_printf(kernel->arena, "%sk", kernel->axes.data[k].name),
                                  dlc_expr_i64(pool, at->extent / n));
    dlc_expr *with = dlc_new_array(at->in->scratch, dlc_expr, kernel->axes.n);
    with[k] = dlc_add(pool, dlc_muli(pool, dlc_expr_axis(pool, ks), at->extent / n), dlc_expr_axis(pool, kk));
    dlc_ids order = stored_order(kernel, stage), store = with_first(kernel->arena, ks, &order);
    dlc_vec_push(kernel->arena, &kernel->buffers, parts_buffer(kernel, stage, &order, n, DLC_ROLE_OUT));
    for (uint32_t b = 0; b < made; b++)
        if (kernel->buffers.data[b].role == DLC_ROLE_OUT)
            kernel->buffers.data[b].role = DLC_ROLE_IN; /* of no stage that is left */
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        kernel->stages.data[s].buffer = DLC_NO_BUFFER;
        kernel->stages.data[s].update = DLC_UPDATE_NONE;
    }
    stage->value[0] = dlc_expr_substitute(pool, stage->value[0], with, kernel->axes.n);
    stage->reduce.data[at->place] = kk;
    stage->axes = with_first(kernel->arena, ks, &stage->axes);
    stage->buffer = made;
    stage->store = (dlc_ids){0};
    for (uint32_t a = 0; a < store.n; a++)
        dlc_vec_push(kernel->arena, &stage->store, dlc_expr_axis(pool, store.data[a]));
    dlc_rewrite_add_part(kernel, made, 1, out);
}

/* a[…] = sum(ks) ap, and what the kernel does with it */
static void make_sum(const site *at, int64_t n, dlc_rewritten *out)
{
    dlc_kernel *kernel = dlc_kernel_clone(at->in->kernel, at->in->arena);
    uint32_t ks = parts_axis(kernel, at, n);
    dlc_stage *stage = &kernel->stages.data[at->stage];
    dlc_ids order = stored_order(kernel, stage), axes = with_first(kernel->arena, ks, &order);
    uint32_t made = dlc_rewrite_insert(kernel, parts_buffer(kernel, stage, &order, n, DLC_ROLE_IN));
    dlc_expr index[DLC_MAX_RANK];
    for (uint32_t a = 0; a < axes.n; a++)
        index[a] = dlc_expr_axis(kernel->pool, axes.data[a]);
    stage->value[0] = dlc_expr_load(kernel->pool, stage->dtype[0], made, index, axes.n, 0, 0, 0);
    stage->reduce = (dlc_ids){0};
    dlc_vec_push(kernel->arena, &stage->reduce, ks);
    dlc_rewrite_add_part(kernel, made, 1, out);
}

static void split(const site *at, int64_t n, dlc_rewritten *out)
{
    *out = (dlc_rewritten){0};
    dlc_vec_push(at->in->arena, &out->made, dlc_arena_printf(at->in->arena, "%s.parts",
                                                             at->in->kernel->stages.data[at->stage].name));
    make_parts(at, n, out);
    make_sum(at, n, out);
}

/* --- how many --- */

static double time_of(const dlc_rewriting *in, const dlc_rewritten *out)
{
    double time = 0, share;
    for (uint32_t p = 0; p < out->parts.n; p++) {
        double part = dlc_rewrite_time(in, out->parts.data[p].kernel, &share);
        if (part < 0)
            return -1;
        time += part;
    }
    return time;
}

/* The number of parts that the estimates like best; 0: the kernel as it is. */
static int64_t choose_parts(const site *at)
{
    const dlc_rewriting *in = at->in;
    dlc_rewriting trial = *in;
    site tried = *at;
    trial.arena = in->scratch;
    tried.in = &trial;
    double share = FULL, before = -1;
    int64_t best = 0;
    if (in->target->kind == DLC_TARGET_CUDA && at->extent >= 2 * LEAST_PART)
        before = dlc_rewrite_time(in, in->kernel, &share);
    double least = before * WORTH_PERCENT / 100;
    if (before < 0 || share >= FULL)
        return 0;
    for (int64_t n = 2; n <= MOST_PARTS && at->extent / n >= LEAST_PART; n++) {
        dlc_rewritten out;
        if (at->extent % n)
            continue;
        split(&tried, n, &out);
        double time = time_of(in, &out);
        if (time < 0 || time >= least)
            continue;
        least = time;
        best = n;
    }
    return best;
}

/*
 * On a CPU: one row by a matrix that lies as it came, all of which comes from L3 or memory, and whose rows are too short to be cut into
 * pieces for the threads. Parts of K are whole rows one behind the other, which hardware fetches early.
 */
static int64_t parts_of_rows(const site *at)
{
    enum { MOST = 8 };
    dlc_kernel *kernel = dlc_kernel_clone(at->in->kernel, at->in->scratch);
    const dlc_stage *stage = &kernel->stages.data[at->stage];
    const dlc_pool *pool = kernel->pool;
    dlc_contraction form;
    size_t bytes;
    int64_t columns, n = MOST;
    if (stage->reduce.n != 1 || !dlc_contraction_of(kernel, stage, at->in->scratch, &form) ||
        form.batch.n || form.m.n + form.n.n != 1)
        return 0;
    uint32_t column = form.n.n ? form.n.data[0] : form.m.data[0];
    const dlc_expr load = form.n.n ? form.b : form.a;
    const dlc_expr_node *node = dlc_node_of(pool, load);
    if (node->op != DLC_EXPR_LOAD || DLC_SOURCE_IS_STAGE(node->imm.id) || node->flags || dlc_load_guard(pool, load) ||
        !dlc_const_extent(kernel, column, &columns) || dlc_load_rank(pool, load) < 2)
        return 0;
    const dlc_buffer *matrix = &kernel->buffers.data[node->imm.id];
    uint32_t last = dlc_load_rank(pool, load) - 1;
    if (matrix->role == DLC_ROLE_CONST || matrix->layout.nparts || !dlc_type_bytes(kernel->pool, &matrix->type, &bytes) ||
        !dlc_goes_by_rows(at->in->target, (double)bytes) || dlc_bare_axis(pool, dlc_arg(pool, load, last)) != column ||
        dlc_bare_axis(pool, dlc_arg(pool, load, last - 1)) != stage->reduce.data[0] ||
        columns * dlc_dtype_bytes(matrix->type.dtype) >= DLC_ROW_PIECES * DLC_LONG_PIECE)
        return 0;
    while (n > 1 && at->extent % n)
        n--;
    return n >= DLC_ROW_PIECES && at->extent / n >= LEAST_PART ? n : 0;
}

/* The stage sums what it loads, and neighbouring elements of that are of neighbouring results. */
static int has_rows(const dlc_kernel *kernel, const dlc_stage *stage)
{
    const dlc_pool *pool = kernel->pool;
    dlc_expr load = stage->value[0];
    if (dlc_node_of(pool, load)->op != DLC_EXPR_LOAD || !dlc_load_rank(pool, load))
        return 0;
    uint32_t axis = dlc_bare_axis(pool, dlc_arg(pool, load, dlc_load_rank(pool, load) - 1));
    return axis != DLC_NO_AXIS && dlc_ids_find(&stage->axes, axis, NULL);
}

/*
 * On a CPU: a sum along rows of few elements that L2 does not hold, as the mean of an image of few channels. By its results threads would
 * read every row, or a line of each, and cores would have copies of what others have written and will write again (Zen 4, two threads, 12544
 * rows of 32 that are scaled in place by the kernel behind their mean: 63 us so, 12 by parts).
 */
static int64_t parts_of_few(const site *at)
{
    enum { FEW_LINES = 4, MOST = 8 };
    const dlc_kernel *kernel = at->in->kernel;
    const dlc_stage *stage = &kernel->stages.data[at->stage];
    double bytes = dlc_dtype_bytes(stage->dtype[0]);
    int64_t extent, n = MOST;
    if (at->in->target->kind != DLC_TARGET_CPU || stage->combine != DLC_REDUCE_SUM || !has_rows(kernel, stage))
        return 0;
    for (uint32_t i = 0; i < stage->axes.n; i++) {
        if (!dlc_const_extent(kernel, stage->axes.data[i], &extent))
            return 0;
        bytes *= (double)extent;
    }
    if (bytes > FEW_LINES * DLC_LINE_BYTES || bytes * (double)at->extent < at->in->target->l2_bytes)
        return 0;
    while (n > 1 && at->extent % n)
        n--;
    return n >= DLC_ROW_PIECES ? n : 0;
}

int dlc_rewrite_split(const dlc_rewriting *in, dlc_rewritten *out)
{
    site at = {.in = in};
    if (!find_site(&at))
        return 0;
    int64_t n = in->wanted ? in->wanted : parts_of_rows(&at);
    n = n || in->wanted ? n : parts_of_few(&at);
    n = n ? n : choose_parts(&at);
    if (!n || at.extent % n || at.extent / n < 1)
        return 0;
    split(&at, n, out);
    return 1;
}
