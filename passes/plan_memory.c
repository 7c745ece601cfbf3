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
 *
 * What a step writes has the memory of a value that it reads for the last time, where its kernel may work in place
 * (ir/schedule/in_place.c); both are one buffer then.
 *
 * Large values of static sizes begin in the middle of a page. A load waits for a store before it whose address has the same low 12
 * bits, whatever the others ("4K aliasing": Intel's optimization manual, on AVX; AMD's processors do it too). A map whose result lies up to
 * eight lines behind what it reads, not counting whole pages, takes two to three times as long. So distances between large values are
 * whole pages, and half of one more to those of callers, which begin where pages do or a little behind.
 */
#include "passes/plan_memory.h"
#include "passes/pass.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096, LARGE_BYTES = 16 * PAGE_BYTES };
enum { MOST_STATIC = 8192 }; /* the greedy placement is quadratic; beyond this static sizes use slots too */

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

static int64_t round_up(int64_t bytes, int64_t to)
{
    return (bytes + to - 1) / to * to;
}

/* The first place from `offset` on, a multiple of DLC_PLACE_ALIGN. */
static int64_t begin_from(int64_t offset, int64_t bytes)
{
    return bytes < LARGE_BYTES ? offset : round_up(offset + PAGE_BYTES / 2, PAGE_BYTES) - PAGE_BYTES / 2;
}

/* The tightest gap between the placed blocks, in order of offset, that are alive at the same time.
 */
static int64_t best_gap(const block *item, block *const *placed, uint32_t nplaced)
{
    int64_t end = 0, best = -1, best_size = INT64_MAX;
    for (uint32_t i = 0; i < nplaced; i++) {
        if (!meet(item->lifetime, placed[i]->lifetime))
            continue;
        int64_t gap = placed[i]->offset - end, begin = begin_from(end, item->size);
        if (begin + item->size <= placed[i]->offset && gap < best_size) {
            best = begin;
            best_size = gap;
        }
        if (placed[i]->offset + placed[i]->size > end)
            end = placed[i]->offset + placed[i]->size;
    }
    return best >= 0 ? best : begin_from(end, item->size);
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

/* In a branch that is not taken a difference of sizes may be negative: it takes nothing away. */
static dlc_expr rounded(slotting *s, dlc_expr size)
{
    size = dlc_expr_simplify(s->pool, dlc_max(s->pool, size, dlc_expr_i64(s->pool, 0)), s->ranges);
    dlc_expr units = dlc_floordiv(s->pool, dlc_addi(s->pool, size, DLC_PLACE_ALIGN - 1),
                                  dlc_expr_i64(s->pool, DLC_PLACE_ALIGN));
    return dlc_expr_simplify(s->pool, dlc_muli(s->pool, units, DLC_PLACE_ALIGN), s->ranges);
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
            blocks[nblocks++] = (block){.lifetime = &lifetimes[i], .size = round_up(bytes, DLC_PLACE_ALIGN)};
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
        if (spans[i].lo < 0 || spans[i].lo % DLC_PLACE_ALIGN || spans[i].hi > total)
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
    dlc_module *module;
    uint32_t *phase_of; /* by expression of the module's pool */
    dlc_vec(dlc_lifetime) lifetimes;
    dlc_ids values;     /* by lifetime */
    uint32_t *lifetime_of; /* by value: index + 1 */
    int is_placed;      /* places are there, and only looked at */
} planner;

/* When each expression is known: 0 at the start, else after how many binding steps. An opaque step counts first: its own
 * results have their sizes before it writes them. Operands come before users. */
static void find_phases(planner *p)
{
    const dlc_pool *pool = p->module->pool;
    uint32_t nphases, *phases = dlc_module_phases(p->module, &nphases, p->ctx->scratch);
    p->phase_of = dlc_new_array(p->ctx->scratch, uint32_t, pool->nodes.n);
    for (uint32_t e = 1; e < pool->nodes.n; e++) {
        const dlc_expr_node *node = dlc_node_of(pool, e);
        if (node->op == DLC_EXPR_SYM)
            p->phase_of[e] = phases[node->imm.id] == UINT32_MAX ? 0 : phases[node->imm.id];
        for (uint32_t a = 0; a < node->nargs; a++) {
            uint32_t phase = p->phase_of[dlc_arg(pool, e, a)];
            p->phase_of[e] = phase > p->phase_of[e] ? phase : p->phase_of[e];
        }
    }
}

static dlc_status check_size(planner *p, const dlc_module_value *value)
{
    size_t bytes;
    for (uint32_t d = 0; d < value->type.rank; d++) {
        int64_t extent;
        if (!dlc_expr_is_int(p->module->pool, value->type.dims[d], &extent))
            return DLC_OK; /* checked by the plan's own arithmetic, once the dimensions are known */
    }
    if (dlc_type_bytes(p->module->pool, &value->type, &bytes))
        return DLC_OK;
    return dlc_diag_fail(p->ctx->diag, DLC_LIMIT, p->module->file,
                         "value '%s' has more bytes than 64 bits count", value->name);
}

/* The value lives in step `at`, where it is written if it has not lived before; or what it lies in does. */
static dlc_status touch(planner *p, uint32_t at, uint32_t part, dlc_value_role role)
{
    uint32_t value = dlc_module_place_of(p->module, part), *lifetime = &p->lifetime_of[value];
    if (p->module->values.data[value].role != role)
        return DLC_OK;
    if (!*lifetime) {
        DLC_TRY(check_size(p, &p->module->values.data[value]));
        dlc_lifetime made = {at, at, 0, dlc_module_value_bytes(p->module, value), 0};
        dlc_vec_push(p->ctx->scratch, &p->lifetimes, made);
        dlc_vec_push(p->ctx->scratch, &p->values, value);
        *lifetime = p->lifetimes.n;
    }
    p->lifetimes.data[*lifetime - 1].last = at;
    return DLC_OK;
}

/* The run refuses such sizes: their bytes are more than the plan's arithmetic holds. */
static int overflows(const planner *p, dlc_expr bytes, const int64_t *symbols)
{
    uint32_t n = p->module->symbols.n;
    dlc_interval *at = dlc_new_array(p->ctx->scratch, dlc_interval, n + 1);
    for (uint32_t s = 0; s < n; s++)
        at[s] = (dlc_interval){symbols[s], symbols[s]};
    return dlc_expr_range(p->module->pool, bytes, &(dlc_ranges){.symbols = at, .nsymbols = n}).hi >= INT64_MAX >> 10;
}

/* No two live buffers share a byte: tried at three sizes. */
static dlc_status check(planner *p, dlc_expr arena_bytes, dlc_status wrong)
{
    static const int64_t tried[] = {0, 1, 1000};
    for (uint32_t t = 0; t < sizeof tried / sizeof *tried && p->lifetimes.n <= MOST_STATIC; t++) {
        uint32_t a, b;
        const int64_t *symbols = dlc_module_symbol_values(p->module, tried[t], p->ctx->scratch);
        if (overflows(p, arena_bytes, symbols))
            continue;
        if (!dlc_arena_clash(p->module->pool, symbols, p->lifetimes.data, p->lifetimes.n, arena_bytes,
                             p->ctx->scratch, &a, &b))
            continue;
        const char *one = p->module->values.data[p->values.data[a]].name, *other = p->module->values.data[p->values.data[b]].name;
        if (a == b)
            return dlc_diag_fail(p->ctx->diag, wrong, p->module->file, "'%s' lies outside of its memory, or at no multiple of %d",
                                 one, DLC_PLACE_ALIGN);
        return dlc_diag_fail(p->ctx->diag, wrong, p->module->file, "'%s' and '%s' are alive together and share bytes", one, other);
    }
    return DLC_OK;
}

/*
 * What was there before a loop and is read in it is read again by the next iteration; what the loop makes for those behind it, it
 * may put together in all iterations. Such values live as long as the loop. `first` is LOOP's step, `last` END's.
 */
static void live_through(planner *p, uint32_t first, uint32_t last)
{
    for (uint32_t i = 0; i < p->lifetimes.n; i++) {
        dlc_lifetime *at = &p->lifetimes.data[i];
        if (at->first < first && at->last >= first && at->last < last)
            at->last = last;
        if (at->first > first && at->first < last && at->last > last)
            at->first = first;
    }
}

/* Inner loops end first. */
static void live_through_loops(planner *p)
{
    dlc_ids open = {0};
    for (uint32_t s = 0; s < p->module->steps.n; s++) {
        const dlc_step *step = &p->module->steps.data[s];
        if (step->kind == DLC_STEP_IF || step->kind == DLC_STEP_LOOP)
            dlc_vec_push(p->ctx->scratch, &open, s);
        if (step->kind != DLC_STEP_END)
            continue;
        uint32_t opener = open.data[--open.n];
        if (p->module->steps.data[opener].kind == DLC_STEP_LOOP)
            live_through(p, opener, s);
    }
}

/* --- in place --- */

static dlc_lifetime *lifetime_at(const planner *p, uint32_t value)
{
    uint32_t at = value == DLC_NO_VALUE ? 0 : p->lifetime_of[value];
    return at && dlc_module_place_of(p->module, value) == value ? &p->lifetimes.data[at - 1] : NULL;
}

/* No other value of the step lies where value i does. */
static int is_alone(const planner *p, const dlc_step *step, uint32_t i)
{
    uint32_t place = dlc_module_place_of(p->module, step->values[i]);
    for (uint32_t k = 0; k < step->nvalues; k++)
        if (k != i && step->values[k] != DLC_NO_VALUE && dlc_module_place_of(p->module, step->values[k]) == place)
            return 0;
    return 1;
}

/* Value `from` of the step is read for the last time when value `to` is written for the first, and is as large. */
static int is_followed(const planner *p, uint32_t s, uint32_t from, uint32_t to)
{
    const dlc_step *step = &p->module->steps.data[s];
    const dlc_module_value *values = p->module->values.data;
    const dlc_lifetime *read = lifetime_at(p, step->values[from]), *written = lifetime_at(p, step->values[to]);
    return read && read != written && read->last == s && read->size == written->size && is_alone(p, step, from) &&
           (!p->is_placed || values[step->values[from]].offset == values[step->values[to]].offset);
}

/* `to`, which nothing has been joined to yet, lives on where `from` has lived. */
static void join(planner *p, uint32_t from, uint32_t to)
{
    uint32_t gone = p->lifetime_of[to], stays = p->lifetime_of[from];
    p->lifetimes.data[stays - 1].last = p->lifetimes.data[gone - 1].last;
    p->lifetimes.data[gone - 1].size = 0;
    p->lifetime_of[to] = stays;
}

static void join_written(planner *p, uint32_t s, uint32_t to)
{
    const dlc_step *step = &p->module->steps.data[s];
    uint8_t *may = NULL;
    for (uint32_t from = 0; from < step->nvalues; from++) {
        if (from == to || !is_followed(p, s, from, to))
            continue;
        if (!may) {
            may = dlc_new_array(p->ctx->scratch, uint8_t, step->nvalues + 1);
            dlc_schedule_find_in_place(p->module->kernels.data[step->kernel].schedule, to, may);
        }
        if (may[from]) {
            join(p, step->values[from], step->values[to]);
            return;
        }
    }
}

static void join_in_place(planner *p)
{
    for (uint32_t s = 0; s < p->module->steps.n; s++) {
        const dlc_step *step = &p->module->steps.data[s];
        for (uint32_t to = 0; to < step->nvalues && step->kind == DLC_STEP_LAUNCH; to++) {
            const dlc_lifetime *written = lifetime_at(p, step->values[to]);
            if (written && written->first == s && is_alone(p, step, to))
                join_written(p, s, to);
        }
    }
}

/* Lifetimes that others took are none. */
static void drop_joined(planner *p)
{
    uint32_t n = 0, *moved = dlc_new_array(p->ctx->scratch, uint32_t, p->lifetimes.n + 1);
    for (uint32_t i = 0; i < p->lifetimes.n; i++) {
        if (!p->lifetimes.data[i].size)
            continue;
        p->lifetimes.data[n] = p->lifetimes.data[i];
        p->values.data[n] = p->values.data[i];
        moved[i + 1] = ++n;
    }
    p->lifetimes.n = p->values.n = n;
    for (uint32_t v = 0; v < p->module->values.n; v++)
        p->lifetime_of[v] = moved[p->lifetime_of[v]];
}

/* The lifetimes of all values of the role. */
static dlc_status find_lifetimes(planner *p, dlc_value_role role)
{
    const dlc_module *module = p->module;
    p->lifetime_of = dlc_new_array(p->ctx->scratch, uint32_t, module->values.n + 1);
    for (uint32_t s = 0; s < module->steps.n; s++) {
        const dlc_step *step = &module->steps.data[s];
        for (uint32_t i = 0; i < step->nvalues; i++)
            if (step->values[i] != DLC_NO_VALUE)
                DLC_TRY(touch(p, s, step->values[i], role));
    }
    live_through_loops(p);
    join_in_place(p);
    drop_joined(p);
    find_phases(p);
    for (uint32_t i = 0; i < p->lifetimes.n; i++)
        p->lifetimes.data[i].phase = p->phase_of[p->lifetimes.data[i].size];
    return DLC_OK;
}

/* Plans all values of the role; *bytes: what they take together. */
static dlc_status plan(dlc_pass_ctx *ctx, dlc_value_role role, dlc_expr *bytes)
{
    dlc_module *module = ctx->module;
    planner p = {.ctx = ctx, .module = module};
    DLC_TRY(find_lifetimes(&p, role));
    dlc_ranges ranges = dlc_module_ranges(module);
    *bytes = dlc_arena_plan(module->pool, &ranges, dlc_module_usual_values(module, DLC_NOMINAL_SYMBOL, ctx->scratch),
                            p.lifetimes.data, p.lifetimes.n, ctx->scratch);
    for (uint32_t v = 0; v < module->values.n; v++)
        if (p.lifetime_of[v])
            module->values.data[v].offset = p.lifetimes.data[p.lifetime_of[v] - 1].offset;
    ctx->changes += p.lifetimes.n;
    return ctx->is_verifying ? check(&p, *bytes, DLC_INTERNAL) : DLC_OK;
}

static dlc_status check_places(dlc_pass_ctx *ctx, dlc_value_role role, dlc_expr bytes)
{
    planner p = {.ctx = ctx, .module = ctx->module, .is_placed = 1};
    DLC_TRY(find_lifetimes(&p, role));
    for (uint32_t i = 0; i < p.lifetimes.n; i++) {
        const dlc_module_value *value = &ctx->module->values.data[p.values.data[i]];
        dlc_lifetime *lifetime = &p.lifetimes.data[i];
        lifetime->offset = value->offset;
        if (!value->offset || p.phase_of[value->offset] > lifetime->phase)
            return dlc_diag_fail(ctx->diag, DLC_INVALID, ctx->module->file, "'%s' has no place that is known when it is written",
                                 value->name);
    }
    return check(&p, bytes, DLC_INVALID);
}

dlc_status dlc_places_verify(dlc_pass_ctx *ctx)
{
    DLC_TRY(check_places(ctx, DLC_VALUE_TEMP, ctx->module->arena_bytes));
    return check_places(ctx, DLC_VALUE_HOST, ctx->module->host_bytes);
}

/* The pass `transfer` has been here, where memory is apart. */
static dlc_status check_transfers(const dlc_pass_ctx *ctx)
{
    const dlc_module *module = ctx->module;
    for (uint32_t s = 0; s < module->steps.n && dlc_pass_has_device_memory(ctx); s++) {
        const dlc_step *step = &module->steps.data[s];
        for (uint32_t i = 0; dlc_step_is_on_host(step) && i < step->nvalues; i++) {
            uint32_t v = step->values[i];
            int role = v == DLC_NO_VALUE ? DLC_VALUE_HOST : module->values.data[v].role;
            if (role != DLC_VALUE_HOST && role != DLC_VALUE_CONST)
                return dlc_diag_fail(ctx->diag, DLC_USAGE, module->file,
                                     "step '%s' runs on the host and '%s' lies on the device; put 'transfer' before "
                                     "'plan_memory'", step->name, module->values.data[v].name);
        }
    }
    return DLC_OK;
}

dlc_status dlc_pass_plan_memory(dlc_pass_ctx *ctx)
{
    DLC_TRY(check_transfers(ctx));
    DLC_TRY(dlc_module_verify(ctx->module, DLC_INTERNAL, ctx->diag));
    for (uint32_t v = 0; v < ctx->module->values.n; v++)
        ctx->module->values.data[v].offset = 0;
    DLC_TRY(plan(ctx, DLC_VALUE_TEMP, &ctx->module->arena_bytes));
    return plan(ctx, DLC_VALUE_HOST, &ctx->module->host_bytes);
}
