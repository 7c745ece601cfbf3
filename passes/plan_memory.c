/*
 * Memory planning: every value gets its place in the arena, the caller's inputs and outputs, or the
 * constants. Buffers whose lifetimes do not meet share bytes. The arena is a row of regions:
 *
 * - static: sizes known now; largest first, each into the tightest gap that its neighbours in time
 *   leave ("greedy by size", Efficient Memory Management for Deep Neural Net Inference, 2020)
 * - one per phase: sizes that are expressions; *slots*, each a sequence of buffers with disjoint
 *   lifetimes, as large as the largest of them. Phases follow the order in which steps bind the
 *   symbols that sizes need, so an offset never depends on something not known when its buffer is
 *   written
 */
#include "passes/plan_memory.h"
#include "passes/pass.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    ALIGN_BYTES = 64,
    MOST_STATIC =
        8192,    /* the greedy placement is quadratic; beyond this static sizes use slots too */
    TYPICAL = 64 /* what a symbol counts for when sizes are compared */
};

/* --- static sizes --- */

typedef struct {
    dlc_lifetime *lifetime;
    int64_t size, offset;
} block;

static int larger_first(const void *a, const void *b)
{
    const block *left = a, *right = b;
    if (left->size != right->size)
        return left->size > right->size ? -1 : 1;
    return (left->lifetime > right->lifetime) - (left->lifetime < right->lifetime);
}

static int meet(const dlc_lifetime *a, const dlc_lifetime *b)
{
    return a->first <= b->last && b->first <= a->last;
}

static int64_t round_up(int64_t bytes)
{
    return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

/* The tightest gap between the placed blocks, in order of offset, that are alive at the same time.
 */
static int64_t best_gap(const block *item, block *const *placed, uint32_t nplaced)
{
    int64_t end = 0, best = -1, best_size = INT64_MAX;
    for (uint32_t i = 0; i < nplaced; i++) {
        if (!meet(item->lifetime, placed[i]->lifetime))
            continue;
        int64_t gap = placed[i]->offset - end;
        if (gap >= item->size && gap < best_size) {
            best = end;
            best_size = gap;
        }
        if (placed[i]->offset + placed[i]->size > end)
            end = placed[i]->offset + placed[i]->size;
    }
    return best >= 0 ? best : end;
}

static void insert_by_offset(block **placed, uint32_t nplaced, block *item)
{
    uint32_t at = nplaced;
    for (; at > 0 && placed[at - 1]->offset > item->offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = item;
}

/* Returns the region's bytes. */
static int64_t place_static(dlc_pool *pool, block *blocks, uint32_t n, dlc_arena *scratch)
{
    int64_t bytes = 0;
    block **placed = dlc_new_array(scratch, block *, n + 1);
    qsort(blocks, n, sizeof *blocks, larger_first);
    for (uint32_t i = 0; i < n; i++) {
        blocks[i].offset = best_gap(&blocks[i], placed, i);
        insert_by_offset(placed, i, &blocks[i]);
        blocks[i].lifetime->offset = dlc_expr_i64(pool, blocks[i].offset);
        if (blocks[i].offset + blocks[i].size > bytes)
            bytes = blocks[i].offset + blocks[i].size;
    }
    return bytes;
}

/* --- sizes that are expressions --- */

static int64_t value_of(const dlc_pool *pool, dlc_expr expr, const int64_t *symbols)
{
    int64_t value;
    return dlc_expr_is_int(pool, expr, &value) ? value : dlc_expr_eval(pool, expr, symbols);
}

typedef struct {
    dlc_expr size;   /* of the largest so far */
    int64_t typical; /* its value at the typical symbols */
    uint32_t last;
} slot;

typedef struct {
    dlc_pool *pool;
    const dlc_ranges *ranges;
    const int64_t *symbols;
    dlc_arena *scratch;
    dlc_vec(slot) slots;
} slotting;

static int earlier_first(const void *a, const void *b)
{
    const dlc_lifetime *left = *(dlc_lifetime *const *)a, *right = *(dlc_lifetime *const *)b;
    if (left->first != right->first)
        return left->first < right->first ? -1 : 1;
    return (left > right) - (left < right);
}

/* What putting `bytes` into the slot costs: growth first, then waste. Equal sizes cost nothing. */
static int64_t misfit(const slot *at, dlc_expr size, int64_t bytes)
{
    if (at->size == size)
        return 0;
    return bytes > at->typical ? 1 + 2 * (bytes - at->typical) : 1 + (at->typical - bytes);
}

static uint32_t find_slot(slotting *s, const dlc_lifetime *item, int64_t bytes)
{
    uint32_t best = UINT32_MAX;
    int64_t least = INT64_MAX;
    for (uint32_t i = 0; i < s->slots.n && least; i++) {
        const slot *at = &s->slots.data[i];
        if (at->last >= item->first || misfit(at, item->size, bytes) >= least)
            continue;
        best = i;
        least = misfit(at, item->size, bytes);
    }
    if (best == UINT32_MAX) {
        dlc_vec_push(s->scratch, &s->slots, ((slot){.size = item->size, .typical = bytes}));
        best = s->slots.n - 1;
    }
    return best;
}

static dlc_expr rounded(slotting *s, dlc_expr size)
{
    dlc_expr units = dlc_floordiv(s->pool, dlc_addi(s->pool, size, ALIGN_BYTES - 1),
                                  dlc_expr_i64(s->pool, ALIGN_BYTES));
    return dlc_expr_simplify(s->pool, dlc_muli(s->pool, units, ALIGN_BYTES), s->ranges);
}

/* Places the lifetimes of one phase from `base` on; returns the region's end. */
static dlc_expr place_slots(slotting *s, dlc_lifetime **items, uint32_t n, dlc_expr base)
{
    uint32_t *slot_of = dlc_new_array(s->scratch, uint32_t, n + 1);
    s->slots.n = 0;
    qsort(items, n, sizeof *items, earlier_first);
    for (uint32_t i = 0; i < n; i++) {
        int64_t bytes = value_of(s->pool, items[i]->size, s->symbols);
        slot_of[i] = find_slot(s, items[i], bytes);
        slot *at = &s->slots.data[slot_of[i]];
        at->last = items[i]->last;
        if (at->size != items[i]->size)
            at->size =
                dlc_expr_simplify(s->pool, dlc_max(s->pool, at->size, items[i]->size), s->ranges);
        if (bytes > at->typical)
            at->typical = bytes;
    }
    dlc_expr *offsets = dlc_new_array(s->scratch, dlc_expr, s->slots.n + 1);
    for (uint32_t i = 0; i < s->slots.n; i++) {
        offsets[i] = base;
        base = dlc_add(s->pool, base, rounded(s, s->slots.data[i].size));
    }
    for (uint32_t i = 0; i < n; i++)
        items[i]->offset = offsets[slot_of[i]];
    return base;
}

/* --- the arena --- */

static uint32_t count_static(const dlc_pool *pool, const dlc_lifetime *lifetimes, uint32_t n)
{
    uint32_t nstatic = 0;
    int64_t bytes;
    for (uint32_t i = 0; i < n; i++)
        nstatic += (uint32_t)dlc_expr_is_int(pool, lifetimes[i].size, &bytes);
    return nstatic;
}

static uint32_t last_phase(const dlc_lifetime *lifetimes, uint32_t n)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < n; i++)
        last = lifetimes[i].phase > last ? lifetimes[i].phase : last;
    return last;
}

dlc_expr dlc_arena_plan(dlc_pool *pool, const dlc_ranges *ranges, const int64_t *typical,
                        dlc_lifetime *lifetimes, uint32_t n, dlc_arena *scratch)
{
    slotting s = {.pool = pool, .ranges = ranges, .symbols = typical, .scratch = scratch};
    int is_greedy = count_static(pool, lifetimes, n) <= MOST_STATIC;
    block *blocks = dlc_new_array(scratch, block, n + 1);
    dlc_lifetime **items = dlc_new_array(scratch, dlc_lifetime *, n + 1);
    uint32_t nblocks = 0;
    int64_t bytes;
    for (uint32_t i = 0; i < n; i++)
        if (is_greedy && dlc_expr_is_int(pool, lifetimes[i].size, &bytes))
            blocks[nblocks++] = (block){.lifetime = &lifetimes[i], .size = round_up(bytes)};
    dlc_expr end = dlc_expr_i64(pool, place_static(pool, blocks, nblocks, scratch));
    for (uint32_t phase = 0, last = last_phase(lifetimes, n); phase <= last; phase++) {
        uint32_t nitems = 0;
        for (uint32_t i = 0; i < n; i++)
            if (lifetimes[i].phase == phase &&
                !(is_greedy && dlc_expr_is_int(pool, lifetimes[i].size, &bytes)))
                items[nitems++] = &lifetimes[i];
        end = place_slots(&s, items, nitems, end);
    }
    return end;
}

typedef struct {
    int64_t lo, hi; /* bytes */
} span;

static int share_bytes(const span *a, const span *b)
{
    return a->lo < b->hi && b->lo < a->hi && a->lo < a->hi && b->lo < b->hi;
}

int dlc_arena_clash(const dlc_pool *pool, const int64_t *symbols, const dlc_lifetime *lifetimes,
                    uint32_t n, dlc_expr arena_bytes, dlc_arena *scratch, uint32_t *a, uint32_t *b)
{
    int64_t total = dlc_expr_eval(pool, arena_bytes, symbols);
    span *spans = dlc_new_array(scratch, span, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        spans[i].lo = value_of(pool, lifetimes[i].offset, symbols);
        spans[i].hi = spans[i].lo + value_of(pool, lifetimes[i].size, symbols);
        *a = *b = i;
        if (spans[i].lo < 0 || spans[i].lo % ALIGN_BYTES || spans[i].hi > total)
            return 1;
        for (*b = 0; *b < i; ++*b)
            if (meet(&lifetimes[i], &lifetimes[*b]) && share_bytes(&spans[i], &spans[*b]))
                return 1;
    }
    return 0;
}

/* --- the pass --- */

typedef struct {
    dlc_pass_ctx *ctx;
    dlc_graph *graph;
    dlc_module *module;
    uint32_t *phase_of; /* by expression of the graph's pool */
    uint32_t nphases;
    dlc_vec(dlc_lifetime) lifetimes;
    uint32_t *lifetime_of;       /* by value id: index + 1 */
    dlc_vec(dlc_value *) values; /* by lifetime */
} planner;

/* The symbol a step binds, or -1. An opaque step counts first: its own results have their sizes
 * before it writes them. */
static int64_t bound_symbol(const dlc_graph *graph, const dlc_step *step)
{
    if (step->kind == DLC_STEP_BIND)
        return step->symbol;
    if (step->kind != DLC_STEP_OPAQUE)
        return -1;
    for (uint32_t s = 0; s < graph->symbols.n; s++)
        if (graph->symbols.data[s].bind == DLC_BIND_OPAQUE && graph->symbols.data[s].value &&
            graph->symbols.data[s].value->def == step->node)
            return s;
    return -1;
}

/* When each expression is known: 0 at the start, else after how many binding steps. Operands come
 * before users. */
static void find_phases(planner *p)
{
    const dlc_pool *pool = p->graph->pool;
    uint32_t *symbols = dlc_new_array(p->ctx->scratch, uint32_t, p->graph->symbols.n + 1);
    for (uint32_t i = 0; i < p->module->steps.n; i++) {
        int64_t symbol = bound_symbol(p->graph, &p->module->steps.data[i]);
        if (symbol >= 0)
            symbols[symbol] = ++p->nphases;
    }
    p->phase_of = dlc_new_array(p->ctx->scratch, uint32_t, pool->nodes.n);
    for (uint32_t e = 1; e < pool->nodes.n; e++) {
        const dlc_expr_node *node = dlc_node_of(pool, e);
        if (node->op == DLC_EXPR_SYM)
            p->phase_of[e] = symbols[node->imm.id];
        for (uint32_t a = 0; a < node->nargs; a++) {
            uint32_t phase = p->phase_of[dlc_arg(pool, e, a)];
            p->phase_of[e] = phase > p->phase_of[e] ? phase : p->phase_of[e];
        }
    }
}

static dlc_expr bytes_of(dlc_graph *graph, const dlc_value *value)
{
    dlc_expr elems =
        dlc_layout_elems(graph->pool, &value->layout, value->type.rank, value->type.dims);
    return dlc_muli(graph->pool, elems, dlc_dtype_bytes(value->type.dtype));
}

static dlc_status check_size(planner *p, const dlc_value *value)
{
    size_t bytes;
    for (uint32_t d = 0; d < value->type.rank; d++) {
        int64_t extent;
        if (!dlc_expr_is_int(p->graph->pool, value->type.dims[d], &extent))
            return DLC_OK; /* checked by the plan's own arithmetic, once the dimensions are known */
    }
    if (dlc_type_bytes(p->graph->pool, &value->type, &bytes))
        return DLC_OK;
    return dlc_diag_fail(p->ctx->diag, DLC_LIMIT, p->graph->file,
                         "value '%s' has more bytes than 64 bits count", value->name);
}

static int output_index(const dlc_graph *graph, const dlc_value *value)
{
    for (uint32_t o = 0; o < graph->outputs.n; o++)
        if (graph->outputs.data[o].value == value)
            return (int)o;
    return -1;
}

/* A kernel or opaque step writes the value: it gets its place, from this step on. */
static dlc_status define(planner *p, uint32_t step, dlc_value *value)
{
    DLC_TRY(check_size(p, value));
    dlc_placement *place = &p->module->placements[value->id];
    place->size_bytes = bytes_of(p->graph, value);
    place->store = DLC_STORE_ARENA;
    if (!value->noutputs) {
        dlc_vec_push(p->ctx->scratch, &p->lifetimes,
                     ((dlc_lifetime){step, step, 0, place->size_bytes, 0}));
        dlc_vec_push(p->ctx->scratch, &p->values, value);
        p->lifetime_of[value->id] = p->lifetimes.n;
        return DLC_OK;
    }
    if (value->noutputs > 1 || value->layout.nparts)
        return dlc_diag_fail(p->ctx->diag, DLC_INTERNAL, p->graph->file,
                             "output '%s' is %" PRIu32
                             " outputs%s; pass 'layout' gives each one of its own, row-major",
                             value->name, value->noutputs,
                             value->layout.nparts ? " and not row-major" : "");
    place->store = DLC_STORE_OUTPUT;
    place->index = (uint32_t)output_index(p->graph, value);
    return DLC_OK;
}

static int is_written(const planner *p, const dlc_step *step, uint32_t i)
{
    if (step->kind == DLC_STEP_LAUNCH)
        return p->module->kernels.data[step->kernel].kernel->buffers.data[i].role == DLC_ROLE_OUT;
    return step->kind == DLC_STEP_OPAQUE && i >= step->node->ninputs;
}

static dlc_status walk_step(planner *p, uint32_t at)
{
    const dlc_step *step = &p->module->steps.data[at];
    for (uint32_t i = 0; i < step->nvalues; i++) {
        dlc_value *value = step->values[i];
        if (!value)
            continue;
        uint32_t *lifetime = &p->lifetime_of[value->id];
        if (is_written(p, step, i) && !*lifetime &&
            p->module->placements[value->id].store == DLC_STORE_NONE)
            DLC_TRY(define(p, at, value));
        if (*lifetime)
            p->lifetimes.data[*lifetime - 1].last = at;
        if (p->module->placements[value->id].store == DLC_STORE_NONE)
            return dlc_diag_fail(p->ctx->diag, DLC_INTERNAL, p->graph->file,
                                 "step '%s' reads '%s', which no step wrote",
                                 step->name ? step->name : "", value->name);
    }
    return DLC_OK;
}

static void place_borders(planner *p)
{
    for (uint32_t i = 0; i < p->graph->inputs.n; i++) {
        const dlc_value *value = p->graph->inputs.data[i];
        p->module->placements[value->id] = (dlc_placement){
            .store = DLC_STORE_INPUT, .index = i, .size_bytes = bytes_of(p->graph, value)};
    }
    for (uint32_t i = p->module->constants.n; i-- > 0;) {
        const dlc_module_constant *constant = &p->module->constants.data[i];
        p->module->placements[constant->value->id] = (dlc_placement){
            .store = DLC_STORE_CONST,
            .index = i,
            .size_bytes = dlc_expr_i64(p->graph->pool, (int64_t)constant->size_bytes)};
    }
}

/* Symbol values within their ranges: `wanted` where it fits. */
static int64_t *symbol_values(const planner *p, int64_t wanted)
{
    int64_t *values = dlc_new_array(p->ctx->scratch, int64_t, p->graph->symbols.n + 1);
    for (uint32_t s = 0; s < p->graph->symbols.n; s++) {
        const dlc_symbol *symbol = &p->graph->symbols.data[s];
        values[s] = wanted < symbol->lo ? symbol->lo : wanted > symbol->hi ? symbol->hi : wanted;
    }
    return values;
}

/* No two live buffers share a byte: tried at three sizes in builds that verify. */
static dlc_status check(planner *p)
{
#ifdef DLC_VERIFY
    static const int64_t tried[] = {0, 1, 1000};
    for (uint32_t t = 0; t < sizeof tried / sizeof *tried && p->lifetimes.n <= MOST_STATIC; t++) {
        uint32_t a, b;
        if (dlc_arena_clash(p->graph->pool, symbol_values(p, tried[t]), p->lifetimes.data,
                            p->lifetimes.n, p->module->arena_bytes, p->ctx->scratch, &a, &b))
            return dlc_diag_fail(p->ctx->diag, DLC_INTERNAL, p->graph->file,
                                 "'%s' and '%s' are alive together and share bytes of the arena",
                                 p->values.data[a]->name, p->values.data[b]->name);
    }
#endif
    (void)p;
    return DLC_OK;
}

dlc_status dlc_pass_plan_memory(dlc_pass_ctx *ctx)
{
    planner p = {.ctx = ctx, .graph = ctx->graph, .module = ctx->module};
    ctx->module->placements =
        dlc_new_array(ctx->module->arena, dlc_placement, ctx->graph->nvalues + 1);
    p.lifetime_of = dlc_new_array(ctx->scratch, uint32_t, ctx->graph->nvalues + 1);
    place_borders(&p);
    for (uint32_t s = 0; s < ctx->module->steps.n; s++)
        DLC_TRY(walk_step(&p, s));
    find_phases(&p);
    for (uint32_t i = 0; i < p.lifetimes.n; i++)
        p.lifetimes.data[i].phase = p.phase_of[p.lifetimes.data[i].size];
    dlc_ranges ranges = dlc_graph_ranges(ctx->graph);
    ctx->module->arena_bytes = dlc_arena_plan(ctx->graph->pool, &ranges, symbol_values(&p, TYPICAL),
                                              p.lifetimes.data, p.lifetimes.n, ctx->scratch);
    for (uint32_t i = 0; i < p.lifetimes.n; i++)
        ctx->module->placements[p.values.data[i]->id].offset = p.lifetimes.data[i].offset;
    ctx->changes = p.lifetimes.n;
    return check(&p);
}
