/*
 * The fusion engine: groups of nodes, and the only place that says whether two of them may become one. Legality is decided by
 * doing it: the union is lowered and a schedule chosen for it, exactly as `lower` and `choose` will. What is cheaper is asked
 * first: opaque steps, sizes known from data, and paths that leave the union (a search pruned by longest-path levels, so that a
 * chain costs nothing).
 */
#include "base/budget.h"
#include "passes/fuse/fuse_engine.h"

#include <string.h>

#define MIXED_WORTH 0.95 /* of the time before: what contractions that share their loops must save, for estimates to tell */

enum {
    MOST_NODES = 96,    /* per group: what one kernel's code may grow to */
    MOST_FLAT = 48,     /* per group of maps, which are merged without a trial */
    MOST_PRODUCTS = 6,  /* contractions of a kernel, of known models up to 3: 8 of symbolic sizes take LLVM 1 s, 16 take 6 s */
    MOST_FOLDS = 12,    /* stages that reduce, of known models up to 5: 29 pools that 2 MB of L2 hold take 8 s, 19 take 2 */
    MOST_EXPRS = 2048,  /* expressions of a union's kernel; those of known models have up to 400 */
    MOST_TRIED = 20000, /* expressions of a group's trials, those to no avail up to 900 there: a value may have 50,000 readers */
    FEW_UNITS = 4,       /* fewer leave threads without work */
    PARALLEL_WORTH = 6 /* us of one thread from which losing parallel units matters: more than another step and its threads' start take */
};

/* --- reasons --- */

static const struct {
    const char *text, *sentence;
    uint8_t is_cost;
} reasons[DLC_REASON_COUNT] = {
#define DLC_REASON(id, text, cost, sentence) [DLC_REASON_##id] = {text, sentence, cost},
#include "passes/fuse/reason.def"
#undef DLC_REASON
};

const char *dlc_reason_text(dlc_reason reason)
{
    return reasons[reason].text;
}

const char *dlc_reason_sentence(dlc_reason reason)
{
    return reasons[reason].sentence;
}

int dlc_reason_is_cost(dlc_reason reason)
{
    return reasons[reason].is_cost;
}

/* --- legality --- */

typedef dlc_fusion_verdict verdict;

/* Greatest last levels of joined groups by their first, as a Fenwick tree: element i ends a run of i & -i levels. */
static void note_span(dlc_fusion *f, const dlc_fusion_group *group)
{
    for (uint32_t i = group->first_level + 1; i <= f->nlevels; i += i & -i)
        if (f->ends[i] < group->last_level)
            f->ends[i] = group->last_level;
}

/*
 * Where paths to groups that end at this level may begin, at most. Levels rise along every edge, but a path may enter a group at a
 * high level and leave it at a low one: what leads to groups that begin below the bound counts as far as they reach.
 */
static uint32_t bound_of(const dlc_fusion *f, uint32_t bound)
{
    for (uint32_t last = bound;; bound = last) {
        for (uint32_t i = bound; i; i -= i & -i)
            if (last < f->ends[i])
                last = f->ends[i];
        if (last == bound)
            return bound;
    }
}

/* A path from one of these groups through a third one back into the union, which is what the latest search has seen. */
static int has_detour(dlc_fusion *f, dlc_ids todo, uint32_t bound)
{
    uint32_t inside = f->search++;
    while (todo.n) {
        uint32_t g = todo.data[--todo.n];
        for (uint32_t m = 0; m < f->groups[g].nodes.n; m++) {
            const dlc_ids *out = &f->out_edges[f->groups[g].nodes.data[m]];
            for (uint32_t i = 0; i < out->n; i++) {
                uint32_t next = f->group[f->edges[out->data[i]].to];
                if (f->seen[next] == inside && f->seen[g] != inside)
                    return 1;
                if (f->seen[next] >= inside || f->groups[next].first_level >= bound)
                    continue;
                f->seen[next] = f->search;
                dlc_vec_push(f->trial, &todo, next);
            }
        }
    }
    return 0;
}

static int has_pair_detour(dlc_fusion *f, uint32_t p, uint32_t c)
{
    dlc_ids todo = {0};
    f->search++;
    f->seen[p] = f->seen[c] = f->search;
    dlc_vec_push(f->trial, &todo, p);
    return has_detour(f, todo, bound_of(f, f->groups[c].last_level));
}

/* Whether an edge leads from P to C; and whether one of them is a size. */
static int find_edge(const dlc_fusion *f, uint32_t p, uint32_t c, int *is_size)
{
    int found = 0;
    *is_size = 0;
    for (uint32_t m = 0; m < f->groups[c].nodes.n; m++) {
        uint32_t to = f->groups[c].nodes.data[m];
        for (uint32_t e = f->first_edge[to]; e < f->first_edge[to + 1]; e++)
            if (f->group[f->edges[e].from] == p) {
                found = 1;
                *is_size |= f->edges[e].is_size;
            }
    }
    return found;
}

static double bytes_of(const dlc_fusion *f, const dlc_value *value)
{
    double bytes = dlc_dtype_bytes(value->type.dtype);
    for (uint8_t d = 0; d < value->type.rank; d++)
        bytes *= (double)dlc_expr_eval(f->graph->pool, value->type.dims[d], f->sizes);
    return bytes;
}

static int is_internal(const dlc_fusion *f, const dlc_value *value, uint32_t p, uint32_t c)
{
    for (const dlc_use *use = value->uses; use; use = use->next) {
        uint32_t handle = dlc_fuse_handle(f, use->node);
        if (handle == DLC_FUSION_NONE || (f->group[handle] != p && f->group[handle] != c))
            return 0;
    }
    return !value->noutputs;
}

/* Traffic a merge saves: a value's reading, and its writing when nobody else reads it. */
static double bytes_saved(const dlc_fusion *f, uint32_t p, uint32_t c)
{
    double saved = 0;
    for (uint32_t m = 0; m < f->groups[c].nodes.n; m++) {
        uint32_t to = f->groups[c].nodes.data[m];
        for (uint32_t e = f->first_edge[to]; e < f->first_edge[to + 1]; e++)
            if (f->group[f->edges[e].from] == p && !f->edges[e].is_size)
                saved += bytes_of(f, f->edges[e].value) * (is_internal(f, f->edges[e].value, p, c) ? 2 : 1);
    }
    return saved;
}

/* The nodes of both, ascending, into room for them, which may be what `a` lies in: from the end. */
static void merge_nodes(const dlc_ids *a, const dlc_ids *b, uint32_t *room)
{
    for (uint32_t i = a->n, j = b->n; i || j;) {
        int is_first = !j || (i && a->data[i - 1] > b->data[j - 1]);
        room[i + j - 1] = is_first ? a->data[i - 1] : b->data[j - 1];
        *(is_first ? &i : &j) -= 1;
    }
}

static dlc_ids merged_nodes(const dlc_fusion *f, uint32_t p, uint32_t c)
{
    const dlc_ids *a = &f->groups[p].nodes, *b = &f->groups[c].nodes;
    dlc_ids result = {.n = a->n + b->n, .cap = a->n + b->n};
    result.data = dlc_new_array(f->trial, uint32_t, result.n);
    merge_nodes(a, b, result.data);
    return result;
}

/* Into the room of the larger one, or twice as much: a chain of merges takes what its result takes. */
static dlc_ids joined_nodes(const dlc_fusion *f, uint32_t p, uint32_t c)
{
    const dlc_ids *a = &f->groups[p].nodes, *b = &f->groups[c].nodes;
    if (a->cap < b->cap) {
        const dlc_ids *other = a;
        a = b;
        b = other;
    }
    dlc_ids result = {.data = a->data, .n = a->n + b->n, .cap = a->cap};
    if (result.cap < result.n) {
        result.cap = result.n * 2;
        result.data = dlc_new_array(f->arena, uint32_t, result.cap);
    }
    merge_nodes(a, b, result.data);
    return result;
}

static uint32_t count_folds(const dlc_kernel *kernel)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        n += kernel->stages.data[s].reduce.n > 0;
    return n;
}

/* Lowers and schedules a set of nodes; NONE and the estimate, or why not. */
static dlc_reason lower_set(dlc_fusion *f, const dlc_ids *handles, dlc_estimate *estimate, const char **detail)
{
    dlc_node **nodes = dlc_new_array(f->trial, dlc_node *, handles->n + 1);
    dlc_group_kernel group;
    dlc_schedule *schedule;
    uint32_t nproducts = 0;
    for (uint32_t i = 0; i < handles->n; i++) {
        nodes[i] = f->nodes[handles->data[i]];
        nproducts += f->forms[handles->data[i]].is_contraction;
    }
    *estimate = (dlc_estimate){0};
    if (handles->n > 1 && nproducts > MOST_PRODUCTS) {
        *detail = dlc_arena_printf(f->arena, "%u contractions; a kernel takes %u", nproducts, MOST_PRODUCTS);
        return DLC_REASON_SIZE;
    }
    dlc_budget_at("fuse", dlc_fuse_result(nodes[handles->n - 1])->name);
    dlc_status status = dlc_group_lower(f->graph, nodes, handles->n, f->trial, &group);
    if (status != DLC_OK) {
        f->status = f->status == DLC_OK ? status : f->status;
        return DLC_REASON_OPAQUE;
    }
    if (!group.kernel->stages.n)
        return DLC_REASON_NONE;
    f->work = group.kernel->pool->nodes.n;
    if (handles->n > 1 && f->work > MOST_EXPRS) {
        *detail = dlc_arena_printf(f->arena, "%u expressions; a kernel of several nodes takes %u", f->work, MOST_EXPRS);
        return DLC_REASON_SIZE;
    }
    uint32_t nfolds = count_folds(group.kernel);
    if (handles->n > 1 && nfolds > MOST_FOLDS) {
        *detail = dlc_arena_printf(f->arena, "%u stages that reduce; a kernel takes %u", nfolds, MOST_FOLDS);
        return DLC_REASON_SIZE;
    }
    dlc_reason reason = dlc_choose(group.kernel, f->target, f->trial, &schedule, detail);
    if (schedule) {
        dlc_estimate_kernel(schedule, f->trial, estimate);
        estimate->time_us += estimate->shared_us; /* what is fused should do for many threads, too */
    }
    if (*detail)
        *detail = dlc_arena_strdup(f->arena, *detail);
    return reason;
}

static const dlc_estimate *estimate_of(dlc_fusion *f, uint32_t g)
{
    dlc_fusion_group *group = &f->groups[g];
    const char *detail = NULL;
    if (!group->estimate) {
        dlc_estimate found;
        lower_set(f, &group->nodes, &found, &detail);
        group->estimate = dlc_arena_copy(f->arena, &found, sizeof found);
    }
    return group->estimate;
}

static dlc_estimate sum_of(const dlc_estimate *a, const dlc_estimate *b)
{
    dlc_estimate sum = *a;
    sum.bytes += b->bytes;
    sum.moving_us += b->moving_us;
    sum.flops += b->flops;
    sum.cycles += b->cycles;
    sum.time_us += b->time_us;
    sum.again_blindly += b->again_blindly;
    sum.again_cycles += b->again_cycles;
    sum.nmixed += b->nmixed;
    sum.ndots += b->ndots;
    sum.units = a->units < b->units ? a->units : b->units;
    return sum;
}

enum { MOST_PARTS = 4 };
typedef struct {
    const dlc_estimate *of[MOST_PARTS];
    uint32_t n;
} parts_list;

/* Microseconds that parts take by themselves, on one thread of a processor, whose units would be halved, or fewer; *units: of one of them. */
static double parallel_us(const dlc_fusion *f, const parts_list *parts, double after, double *units)
{
    double sum = 0;
    for (uint32_t i = 0; i < parts->n; i++) {
        if (parts->of[i]->units < 2 * after)
            continue;
        double computing = parts->of[i]->cycles / f->target->machine->cycles_per_us;
        sum += computing > parts->of[i]->moving_us ? computing : parts->of[i]->moving_us;
        *units = parts->of[i]->units;
    }
    return sum;
}

/* A part that is as serial by itself takes no longer with the other in it: a scatter that fills what it stores into reads nothing for it. */
static int is_serial_anyway(const parts_list *parts, const dlc_estimate *after)
{
    for (uint32_t i = 0; i < parts->n; i++)
        if (parts->of[i]->units <= after->units && after->time_us <= parts->of[i]->time_us)
            return 1;
    return 0;
}

/* What the parts hand over is larger than what stays near: it is written to memory and read from there, and takes room. */
static int goes_through_memory(const dlc_fusion *f, const dlc_estimate *before, const dlc_estimate *after)
{
    return (before->bytes - after->bytes) / 2 > dlc_estimate_kept_bytes(f->target);
}

static dlc_reason weigh(dlc_fusion *f, const parts_list *parts, verdict *v)
{
    const dlc_estimate *a = &v->before, *b = &v->after;
    double units = 0;
    if (b->ndots < a->ndots) {
        v->detail = dlc_arena_printf(f->arena, "%u of %u contractions", a->ndots - b->ndots, a->ndots);
        return DLC_REASON_LOST_DOT;
    }
    if (b->bytes >= a->bytes)
        return DLC_REASON_NO_SAVING;
    if (b->units < FEW_UNITS && parallel_us(f, parts, b->units, &units) > PARALLEL_WORTH && !is_serial_anyway(parts, b)) {
        v->detail = dlc_arena_printf(f->arena, "%.0f units instead of %.0f", b->units, units);
        return DLC_REASON_LOST_PARALLELISM;
    }
    if (b->nmixed && b->again_blindly > a->again_blindly) {
        v->detail = dlc_arena_printf(f->arena, "for as many rows as there will be, %.1f us of them if these are many",
                                     (b->again_blindly - a->again_blindly) / f->target->machine->cycles_per_us);
        return DLC_REASON_LOST_REUSE;
    }
    if (b->nmixed > a->nmixed && b->time_us <= a->time_us * 1.02 && b->time_us > a->time_us * MIXED_WORTH &&
        !goes_through_memory(f, a, b)) {
        v->detail = dlc_arena_printf(f->arena, "%.1f instead of %.1f us", b->time_us, a->time_us);
        return DLC_REASON_SMALL_SAVING;
    }
    if (b->time_us <= a->time_us * 1.02)
        return DLC_REASON_NONE;
    if (b->units < f->target->machine->workers && b->flops <= a->flops * 1.25) {
        v->detail = dlc_arena_printf(f->arena, "%.0f units, %.1f instead of %.1f us", b->units, b->time_us, a->time_us);
        return DLC_REASON_LOST_PARALLELISM;
    }
    if (b->again_cycles > a->again_cycles + (b->cycles - a->cycles) / 2) {
        v->detail = dlc_arena_printf(f->arena, "%.1f instead of %.1f us", b->time_us, a->time_us);
        return DLC_REASON_LOST_REUSE;
    }
    v->detail = dlc_arena_printf(f->arena, "%.3g instead of %.3g Mflop, %.1f instead of %.1f us", b->flops * 1e-6,
                                 a->flops * 1e-6, b->time_us, a->time_us);
    return b->flops > a->flops * 1.25 ? DLC_REASON_RECOMPUTE : DLC_REASON_LOST_LAYOUT;
}

static int same_shape(const dlc_fusion *f, uint32_t p, uint32_t c)
{
    const dlc_value *a = dlc_fuse_result(f->nodes[f->groups[p].nodes.data[0]]);
    const dlc_value *b = dlc_fuse_result(f->nodes[f->groups[c].nodes.data[0]]);
    if (a->type.rank != b->type.rank || !dlc_layout_equal(a->layout, b->layout))
        return 0;
    for (uint8_t d = 0; d < a->type.rank; d++)
        if (a->type.dims[d] != b->type.dims[d])
            return 0;
    return 1;
}

/* Maps over one shape: the union is such a map again, whatever it computes. */
static int is_flat_pair(const dlc_fusion *f, uint32_t p, uint32_t c)
{
    return f->groups[p].is_flat && f->groups[c].is_flat && same_shape(f, p, c);
}

static dlc_reason cheap_reasons(dlc_fusion *f, uint32_t p, uint32_t c, const char **detail)
{
    int is_size;
    uint32_t nnodes = f->groups[p].nodes.n + f->groups[c].nodes.n;
    if (f->groups[p].is_opaque || f->groups[c].is_opaque)
        return DLC_REASON_OPAQUE;
    if (!find_edge(f, p, c, &is_size))
        return DLC_REASON_NO_SAVING;
    if (is_size)
        return DLC_REASON_UNBOUND;
    if (f->groups[p].has_update)
        return DLC_REASON_SCATTER;
    if (f->groups[p].tried_work > MOST_TRIED || f->groups[c].tried_work > MOST_TRIED)
        return DLC_REASON_TRIED;
    uint32_t most = is_flat_pair(f, p, c) ? MOST_FLAT : MOST_NODES;
    if (nnodes > most) {
        *detail = dlc_arena_printf(f->arena, "%u nodes; a group takes %u", nnodes, most);
        return DLC_REASON_SIZE;
    }
    return has_pair_detour(f, p, c) ? DLC_REASON_CYCLE : DLC_REASON_NONE;
}

static void judge_anew(dlc_fusion *f, uint32_t p, uint32_t c, int weigh_too, verdict *v)
{
    *v = (verdict){0};
    v->reason = cheap_reasons(f, p, c, &v->detail);
    if (v->reason != DLC_REASON_NONE)
        return;
    if (is_flat_pair(f, p, c)) {
        v->is_legal = 1;
        v->before.bytes = bytes_saved(f, p, c);
        v->before.time_us = v->before.bytes / 1e5 + 0.3;
        return;
    }
    dlc_ids nodes = merged_nodes(f, p, c);
    v->reason = lower_set(f, &nodes, &v->after, &v->detail);
    v->is_legal = v->reason == DLC_REASON_NONE;
    uint32_t work = f->work;
    if (v->is_legal && weigh_too) {
        parts_list parts = {{estimate_of(f, p), estimate_of(f, c)}, 2};
        v->before = sum_of(parts.of[0], parts.of[1]);
        v->reason = weigh(f, &parts, v);
    }
    f->groups[p].tried_work += work;
    f->groups[c].tried_work += work;
}

/* Strategies try a merge and then ask for it: what was found the first time holds until groups change. */
static void judge(dlc_fusion *f, uint32_t p, uint32_t c, int weigh_too, verdict *v)
{
    if (!weigh_too && f->tried_p == p && f->tried_c == c) {
        *v = f->tried;
        return;
    }
    judge_anew(f, p, c, weigh_too, v);
    f->tried = *v;
    f->tried_p = p;
    f->tried_c = c;
}

/* --- verdicts and merges --- */

static const char *sentence_of(dlc_fusion *f, const verdict *v)
{
    if (!v->detail)
        return dlc_reason_sentence(v->reason);
    return dlc_arena_printf(f->arena, "%s (%s)", dlc_reason_sentence(v->reason), v->detail);
}

static void record(dlc_fusion *f, uint32_t p, uint32_t c, dlc_reason reason, const char *text)
{
    for (uint32_t m = 0; m < f->groups[c].nodes.n; m++) {
        uint32_t to = f->groups[c].nodes.data[m];
        for (uint32_t e = f->first_edge[to]; e < f->first_edge[to + 1]; e++)
            if (f->group[f->edges[e].from] == p && !f->edges[e].is_size) {
                f->edges[e].reason = (uint8_t)reason;
                f->edges[e].text = text;
            }
    }
}

static void join(dlc_fusion *f, uint32_t p, uint32_t c, const verdict *v)
{
    dlc_ids nodes = joined_nodes(f, p, c);
    uint32_t to = nodes.data[0];
    dlc_fusion_group merged = f->groups[p];
    merged.is_flat = (uint8_t)is_flat_pair(f, p, c);
    merged.nodes = nodes;
    merged.has_update |= f->groups[c].has_update;
    if (f->groups[c].tried_work > merged.tried_work)
        merged.tried_work = f->groups[c].tried_work;
    merged.estimate = v->after.time_us > 0 ? dlc_arena_copy(f->arena, &v->after, sizeof v->after) : NULL;
    if (f->groups[c].first_level < merged.first_level)
        merged.first_level = f->groups[c].first_level;
    if (f->groups[c].last_level > merged.last_level)
        merged.last_level = f->groups[c].last_level;
    f->groups[p].nodes.n = f->groups[c].nodes.n = 0;
    f->groups[to] = merged;
    note_span(f, &merged);
    f->tried_p = f->tried_c = DLC_FUSION_NONE;
    for (uint32_t i = 0; i < nodes.n; i++)
        f->group[nodes.data[i]] = to;
}

/* Strategies from outside may ask for anything. */
static int is_node(const dlc_fusion *f, uint32_t node)
{
    return node < f->nnodes;
}

static void try_merge(dlc_fusion *f, uint32_t producer, uint32_t consumer, dlc_fusion_trial *trial)
{
    dlc_reason known = is_node(f, producer) && is_node(f, consumer) ? DLC_REASON_NONE : DLC_REASON_NO_SAVING;
    *trial = (dlc_fusion_trial){.reason = dlc_reason_text(known), .text = dlc_reason_sentence(known)};
    if (known != DLC_REASON_NONE || f->group[producer] == f->group[consumer])
        return;
    dlc_mark mark = dlc_arena_mark(f->trial);
    uint32_t p = f->group[producer], c = f->group[consumer];
    verdict v;
    judge(f, p, c, 1, &v);
    trial->legal = v.is_legal;
    trial->pays = v.reason == DLC_REASON_NONE;
    trial->reason = dlc_reason_text(v.reason);
    trial->text = sentence_of(f, &v);
    trial->bytes_before = v.before.bytes;
    trial->bytes_after = v.after.bytes;
    trial->time_before_us = v.before.time_us;
    trial->time_after_us = v.after.time_us;
    record(f, p, c, trial->pays ? DLC_REASON_NOT_CHOSEN : v.reason, trial->pays ? NULL : trial->text);
    dlc_arena_release(f->trial, mark);
}

static int merge(dlc_fusion *f, uint32_t producer, uint32_t consumer)
{
    if (!is_node(f, producer) || !is_node(f, consumer))
        return 0;
    dlc_mark mark = dlc_arena_mark(f->trial);
    uint32_t p = f->group[producer], c = f->group[consumer];
    verdict v;
    if (p == c)
        return 1;
    judge(f, p, c, 0, &v);
    if (v.is_legal)
        join(f, p, c, &v);
    else
        record(f, p, c, v.reason, sentence_of(f, &v));
    dlc_arena_release(f->trial, mark);
    return v.is_legal;
}

/* --- whole sets, as plans name them: whatever their parts are by themselves --- */

/* The groups of the nodes, as the latest search has seen them; how many nodes these have. */
static uint32_t collect_groups(dlc_fusion *f, const dlc_ids *nodes, dlc_ids *groups)
{
    uint32_t n = 0;
    f->search++;
    for (uint32_t i = 0; i < nodes->n; i++) {
        uint32_t g = f->group[nodes->data[i]];
        if (f->seen[g] == f->search)
            continue;
        f->seen[g] = f->search;
        n += f->groups[g].nodes.n;
        dlc_vec_push(f->trial, groups, g);
    }
    return n;
}

/* Follows an edge between two groups of the set, if it is one. */
static void reach(dlc_fusion *f, uint32_t g, uint32_t set, dlc_ids *todo)
{
    if (f->seen[g] != set)
        return;
    f->seen[g] = f->search;
    dlc_vec_push(f->trial, todo, g);
}

/*
 * Data connects the groups that the latest search has seen, and no size passes between them; one node of them at most stores at
 * indices that depend on data, and none of them reads what it stored.
 */
static int is_connected(dlc_fusion *f, const dlc_ids *groups)
{
    dlc_ids todo = {0};
    uint32_t set = f->search++, nreached = 0, nupdates = 0;
    reach(f, groups->data[0], set, &todo);
    for (; todo.n; nreached++) {
        const dlc_ids *nodes = &f->groups[todo.data[--todo.n]].nodes;
        for (uint32_t m = 0; m < nodes->n; m++) {
            uint32_t node = nodes->data[m];
            nupdates += f->forms[node].has_update;
            for (uint32_t e = f->first_edge[node]; e < f->first_edge[node + 1]; e++) {
                uint32_t from = f->edges[e].from;
                if (f->seen[f->group[from]] >= set && (f->edges[e].is_size || f->forms[from].has_update))
                    return 0;
                reach(f, f->group[from], set, &todo);
            }
            for (uint32_t i = 0; i < f->out_edges[node].n; i++)
                reach(f, f->group[f->edges[f->out_edges[node].data[i]].to], set, &todo);
        }
    }
    return nreached == groups->n && nupdates <= 1;
}

static int is_flat_set(const dlc_fusion *f, const dlc_ids *groups)
{
    int is_flat = 1;
    for (uint32_t i = 0; i < groups->n && is_flat; i++)
        is_flat = is_flat_pair(f, groups->data[0], groups->data[i]);
    return is_flat;
}

/* As a pair is judged, but for what trials have cost: a set is judged once. */
static int is_legal_set(dlc_fusion *f, const dlc_ids *groups, uint32_t nnodes, dlc_estimate *estimate)
{
    dlc_ids nodes = {.data = dlc_new_array(f->trial, uint32_t, nnodes)};
    const char *detail = NULL;
    uint32_t bound = 0;
    for (uint32_t i = 0; i < groups->n; i++) {
        const dlc_fusion_group *group = &f->groups[groups->data[i]];
        merge_nodes(&nodes, &group->nodes, nodes.data);
        nodes.n += group->nodes.n;
        bound = group->last_level > bound ? group->last_level : bound;
        if (group->is_opaque)
            return 0;
    }
    dlc_ids todo = {dlc_arena_copy(f->trial, groups->data, groups->n * sizeof *groups->data), groups->n, groups->n};
    if (!is_connected(f, groups) || has_detour(f, todo, bound_of(f, bound)))
        return 0;
    return is_flat_set(f, groups) || lower_set(f, &nodes, estimate, &detail) == DLC_REASON_NONE;
}

/* Few groups, on whose trials not too much work went. */
static int may_be_tried(const dlc_fusion *f, const dlc_ids *groups)
{
    for (uint32_t i = 0; i < groups->n; i++)
        if (f->groups[groups->data[i]].tried_work > MOST_TRIED)
            return 0;
    return groups->n <= MOST_PARTS;
}

/* No cost speaks against it, as its groups are. */
static int pays_as_set(dlc_fusion *f, const dlc_ids *groups, verdict *v)
{
    parts_list parts = {.n = groups->n};
    for (uint32_t i = 0; i < groups->n; i++) {
        parts.of[i] = estimate_of(f, groups->data[i]);
        v->before = i ? sum_of(&v->before, parts.of[i]) : *parts.of[i];
    }
    return weigh(f, &parts, v) == DLC_REASON_NONE;
}

static int merge_set(dlc_fusion *f, const dlc_ids *nodes, int must_pay)
{
    dlc_mark mark = dlc_arena_mark(f->trial);
    dlc_ids groups = {0};
    verdict v = {0};
    uint32_t n = collect_groups(f, nodes, &groups);
    f->work = 0;
    int is_wanted = n <= (is_flat_set(f, &groups) ? MOST_FLAT : MOST_NODES) && (!must_pay || may_be_tried(f, &groups)) &&
                    is_legal_set(f, &groups, n, &v.after);
    for (uint32_t i = 0; must_pay && i < groups.n; i++)
        f->groups[groups.data[i]].tried_work += f->work;
    is_wanted = is_wanted && (!must_pay || pays_as_set(f, &groups, &v));
    for (uint32_t i = 1; is_wanted && i < groups.n; i++)
        join(f, f->group[nodes->data[0]], groups.data[i], &v);
    dlc_arena_release(f->trial, mark);
    return is_wanted;
}

/* --- the table strategies see --- */

static uint32_t node_count(const dlc_fusion *f)
{
    return f->nnodes;
}

static const char *node_name(const dlc_fusion *f, uint32_t node)
{
    return is_node(f, node) ? dlc_fuse_result(f->nodes[node])->name : "";
}

static const char *node_op(const dlc_fusion *f, uint32_t node)
{
    return is_node(f, node) ? dlc_ops[f->nodes[node]->op].text : "";
}

static uint32_t producer_count(const dlc_fusion *f, uint32_t node)
{
    return is_node(f, node) ? f->nodes[node]->ninputs : 0;
}

static uint32_t producer(const dlc_fusion *f, uint32_t node, uint32_t i)
{
    const dlc_value *value = i < producer_count(f, node) ? f->nodes[node]->inputs[i] : NULL;
    return value ? dlc_fuse_handle(f, value->def) : DLC_FUSION_NONE;
}

static uint32_t reader_count(const dlc_fusion *f, uint32_t node)
{
    return is_node(f, node) ? f->out_edges[node].n : 0;
}

static uint32_t reader(const dlc_fusion *f, uint32_t node, uint32_t i)
{
    return i < reader_count(f, node) ? f->edges[f->out_edges[node].data[i]].to : DLC_FUSION_NONE;
}

static int is_map(const dlc_fusion *f, uint32_t node)
{
    return is_node(f, node) && (f->forms[node].is_pointwise || f->forms[node].is_view);
}

static uint32_t group_of(const dlc_fusion *f, uint32_t node)
{
    return is_node(f, node) ? f->group[node] : DLC_FUSION_NONE;
}

static uint32_t group_size(const dlc_fusion *f, uint32_t node)
{
    return is_node(f, node) ? f->groups[f->group[node]].nodes.n : 0;
}

static const dlc_fusion_api functions = {
    DLC_FUSION_VERSION, node_count, node_name, node_op,    producer_count, producer, reader_count,
    reader,             is_map,     group_of,  group_size, try_merge,      merge};

/* --- views --- */

/* A contraction reads each element many times: a view may cost it more than making the copy would. Of what it reads through other views a copy
 * has to be worth much: by estimates heads that attention takes apart would be copied for a tenth of their product, which is not measurable. */
static int joins_reader(dlc_fusion *f, uint32_t view, uint32_t to)
{
    const double equal = 1.02, near = 1.25, most = f->forms[to].is_contraction ? equal : near;
    dlc_fusion_trial trial = {.legal = 1};
    if (dlc_fuse_has_contraction(f, f->group[to]))
        try_merge(f, view, to, &trial);
    return trial.legal && trial.time_after_us <= trial.time_before_us * most && merge(f, view, to);
}

/* Its reader's group takes the view; a view that must lie in memory goes to its producer's, if that stays what it was. */
static void place_view(dlc_fusion *f, uint32_t view)
{
    const dlc_ids *out = &f->out_edges[view];
    dlc_fusion_trial trial;
    uint32_t from = producer(f, view, 0);
    if (out->n == 1 && !f->nodes[view]->outputs[0]->noutputs && joins_reader(f, view, f->edges[out->data[0]].to))
        return;
    if (from == DLC_FUSION_NONE || f->groups[f->group[view]].nodes.n > 1)
        return;
    try_merge(f, from, view, &trial);
    if (trial.pays)
        merge(f, from, view);
}

static void place_views(dlc_fusion *f)
{
    for (uint32_t view = f->nnodes; view-- > 0;)
        if (f->forms[view].is_view)
            place_view(f, view);
}

/* --- results --- */

static void fill_edges(dlc_pass_ctx *ctx, const dlc_fusion *f)
{
    ctx->edges.cap = f->first_edge[f->nnodes] + 1;
    ctx->edges.data = dlc_new_array(ctx->graph->arena, dlc_edge, ctx->edges.cap);
    for (uint32_t e = 0; e < f->first_edge[f->nnodes]; e++) {
        const dlc_fusion_edge *edge = &f->edges[e];
        if (!edge->value)
            continue; /* an order alone */
        uint32_t p = f->group[edge->from], c = f->group[edge->to];
        dlc_edge result = {.from = f->nodes[edge->from], .to = f->nodes[edge->to], .value = edge->value};
        dlc_reason reason = (dlc_reason)edge->reason;
        if (f->groups[p].is_opaque || f->groups[c].is_opaque)
            reason = DLC_REASON_OPAQUE;
        result.fused = p == c;
        result.reason = (uint8_t)(result.fused ? DLC_REASON_NONE : reason);
        result.text = !result.fused && edge->text && reason == edge->reason
                          ? dlc_arena_strdup(ctx->graph->arena, edge->text)
                          : dlc_reason_sentence((dlc_reason)result.reason);
        dlc_mark mark = dlc_arena_mark(f->trial);
        result.bytes_saved = bytes_of(f, edge->value) * (is_internal(f, edge->value, p, c) ? 2 : 1);
        dlc_arena_release(f->trial, mark);
        dlc_vec_push(ctx->graph->arena, &ctx->edges, result);
    }
}

static dlc_status run(dlc_pass_ctx *ctx, dlc_fusion *f)
{
    dlc_fuse_read_graph(f);
    place_views(f);
    uint32_t before = f->nnodes;
    dlc_status status = dlc_fusion_run(f, ctx->fusion ? ctx->fusion : "greedy");
    if (f->status != DLC_OK)
        return f->status;
    DLC_TRY(status);
    DLC_TRY(dlc_fuse_order(ctx, f));
    fill_edges(ctx, f);
    ctx->changes += before - ctx->groups->ngroups;
    return DLC_OK;
}

dlc_status dlc_pass_fuse(dlc_pass_ctx *ctx)
{
    dlc_fusion f = {.api = &functions, .graph = ctx->graph, .target = ctx->target, .diag = ctx->diag, .arena = ctx->scratch};
    f.merge_set = merge_set;
    f.tried_p = f.tried_c = DLC_FUSION_NONE;
    ctx->edges.n = 0;
    DLC_TRY(dlc_fuse_prepare(ctx));
    f.sizes = dlc_graph_usual_values(f.graph, DLC_NOMINAL_SYMBOL, f.arena);
    f.trial = dlc_arena_create(0);
    dlc_new(f.trial, dlc_node_kernel); /* so that its first block stays when marks are released */
    dlc_status status = run(ctx, &f);
    dlc_arena_destroy(f.trial);
    return status;
}
