/*
 * Choice of schedules from facts: which axes are roots, whether a contraction leads (choose_dot.c) or lanes do
 * (choose_lanes.c), and where temporaries live. A schedule cannot change what a kernel computes, so everything here is about
 * speed, and rests on extents (assumed ones for symbols), strides and the target's row. Facts are found once for a kernel; each
 * schedule is made on a copy of the kernel they are about, in which expressions have the same numbers.
 */
#include "passes/schedule/choose.h"
#include "passes/schedule/replay.h"

#include <math.h>
#include <string.h>

/* --- facts --- */

static int64_t clamp(int64_t value, int64_t lo, int64_t hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

static void assume_extents(dlc_chooser *c)
{
    const dlc_kernel *kernel = c->kernel;
    const int64_t *least = dlc_kernel_symbol_values(kernel, 1, c->arena);
    c->symbols = dlc_kernel_usual_values(kernel, DLC_NOMINAL_SYMBOL, c->arena);
    c->extent = dlc_new_array(c->arena, int64_t, kernel->axes.n + 1);
    c->least = dlc_new_array(c->arena, int64_t, kernel->axes.n + 1);
    const int64_t *usual = dlc_kernel_usual_values(kernel, 1, c->arena);
    c->is_expected = dlc_new_array(c->arena, uint8_t, kernel->axes.n + 1);
    c->is_known = dlc_new_array(c->arena, uint8_t, kernel->axes.n + 1);
    c->naxes = kernel->axes.n;
    for (uint32_t a = 0; a < kernel->axes.n; a++) {
        int64_t extent = dlc_expr_eval(kernel->pool, kernel->axes.data[a].extent, c->symbols);
        c->extent[a] = clamp(extent, 1, INT32_MAX);
        c->least[a] = clamp(dlc_expr_eval(kernel->pool, kernel->axes.data[a].extent, least), 1, INT32_MAX);
        c->is_expected[a] = c->extent[a] == clamp(dlc_expr_eval(kernel->pool, kernel->axes.data[a].extent, usual), 1, INT32_MAX);
        c->is_known[a] = (uint8_t)dlc_expr_is_int(kernel->pool, kernel->axes.data[a].extent, &extent);
    }
}

/* Where an access lies in its buffer; of a temporary, in its axes' order. */
static dlc_expr offset_of(dlc_chooser *c, dlc_source source, const dlc_expr *index, uint32_t rank)
{
    dlc_pool *pool = c->kernel->pool;
    if (!DLC_SOURCE_IS_STAGE(source)) {
        const dlc_buffer *buffer = &c->kernel->buffers.data[source];
        return dlc_layout_offset(pool, &buffer->layout, (uint8_t)rank, buffer->type.dims, index);
    }
    const dlc_stage *stage = &c->kernel->stages.data[DLC_SOURCE_INDEX(source)];
    dlc_expr offset = dlc_expr_i64(pool, 0);
    for (uint32_t d = 0; d < rank; d++)
        offset = dlc_add(pool, dlc_mul(pool, offset, c->kernel->axes.data[stage->axes.data[d]].extent), index[d]);
    return offset;
}

/* Points of the axes an expression depends on: how often the walker computes it. */
static double points_of(const dlc_chooser *c, const uint64_t *axes)
{
    double points = 1;
    for (uint32_t a = 0; a < c->kernel->axes.n; a++)
        if (axes[a / 64] >> a % 64 & 1)
            points *= (double)c->extent[a];
    return points;
}

static int is_arithmetic(const dlc_expr_node *node)
{
    return node->dtype != DLC_I64 && node->dtype != DLC_BOOL && node->op != DLC_EXPR_LOAD;
}

double dlc_choose_work(const dlc_chooser *c, const uint8_t *marks, const double *share)
{
    const dlc_pool *pool = c->kernel->pool;
    uint32_t words;
    const uint64_t *axes = dlc_kernel_axes_of(c->kernel, marks, c->arena, &words);
    double work = 0;
    for (dlc_expr id = 1; id < pool->nodes.n; id++) {
        const dlc_expr_node *node = dlc_node_of(pool, id);
        if (marks[id] && is_arithmetic(node) && dlc_exprs[node->op].cost)
            work += dlc_exprs[node->op].cost * points_of(c, axes + (size_t)id * words) * (share ? share[id] : 1);
    }
    return work;
}

static void note_access(dlc_chooser *c, uint32_t s, dlc_expr load, const dlc_ranges *ranges)
{
    dlc_pool *pool = c->kernel->pool;
    const dlc_expr_node node = *dlc_node_of(pool, load);
    dlc_expr index[DLC_MAX_INDEX];
    for (uint32_t d = 0; d + 2 < node.nargs; d++)
        index[d] = dlc_arg(pool, load, d);
    if (DLC_SOURCE_IS_STAGE(node.imm.id))
        c->is_read[DLC_SOURCE_INDEX(node.imm.id)] = 1;
    dlc_expr offset = dlc_expr_simplify(pool, offset_of(c, node.imm.id, index, node.nargs - 2u), ranges);
    dlc_vec_push(c->arena, &c->accesses[s], ((dlc_access_fact){node.imm.id, load, offset}));
}

static void note_stage(dlc_chooser *c, uint32_t s, const dlc_ranges *ranges)
{
    dlc_pool *pool = c->kernel->pool;
    const dlc_stage *stage = &c->kernel->stages.data[s];
    const uint8_t *marks = dlc_stage_marks(c->kernel, stage, c->arena);
    double points = dlc_choose_points(c, &stage->axes) * dlc_choose_points(c, &stage->reduce);
    dlc_contraction form;
    c->work[s] = dlc_choose_work(c, marks, NULL);
    if (stage->reduce.n) /* a scale is multiplied by once, behind the sum */
        c->work[s] += dlc_contraction_of(c->kernel, stage, c->arena, &form) && form.scale ? 0 : points;
    uint32_t n = pool->nodes.n; /* the pool grows by offsets */
    for (dlc_expr id = 1; id < n; id++)
        if (marks[id] && dlc_node_of(pool, id)->op == DLC_EXPR_LOAD)
            note_access(c, s, id, ranges);
    if (stage->buffer == DLC_NO_BUFFER)
        return;
    dlc_expr offset = dlc_expr_simplify(pool, offset_of(c, stage->buffer, stage->store.data, stage->store.n), ranges);
    dlc_vec_push(c->arena, &c->accesses[s], ((dlc_access_fact){stage->buffer, 0, offset}));
}

void dlc_choose_facts(dlc_chooser *c, dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena)
{
    memset(c, 0, sizeof *c);
    c->kernel = kernel, c->target = target, c->arena = arena;
    c->nstages = kernel->stages.n;
    c->across = c->woven = c->rows = DLC_NO_AXIS;
    c->accesses = dlc_new_array(arena, dlc_access_facts, kernel->stages.n);
    c->work = dlc_new_array(arena, double, kernel->stages.n);
    c->is_read = dlc_new_array(arena, uint8_t, kernel->stages.n);
    assume_extents(c);
    dlc_ranges ranges = dlc_kernel_ranges(kernel);
    dlc_arena *scratch = dlc_arena_create(0);
    ranges.known = dlc_known_create(scratch);
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        note_stage(c, s, &ranges);
    dlc_arena_destroy(scratch);
}

int64_t dlc_choose_stride(const dlc_chooser *c, dlc_expr offset, uint32_t axis)
{
    dlc_pool *pool = c->kernel->pool;
    dlc_expr coefficient, rest;
    int64_t stride;
    if (!dlc_expr_uses_axis(pool, offset, axis))
        return 0;
    if (!dlc_expr_linear(pool, offset, axis, &coefficient, &rest))
        return DLC_ODD_STRIDE;
    if (dlc_expr_is_int(pool, coefficient, &stride))
        return stride;
    if (dlc_expr_has_load(pool, coefficient))
        return DLC_ODD_STRIDE;
    stride = 0; /* a product of sizes: what it is assumed to be, but never mistaken for 1 */
    uint64_t *axes = dlc_new_array(c->arena, uint64_t, c->kernel->axes.n / 64 + 1);
    dlc_expr_axes(pool, coefficient, axes);
    for (uint32_t w = 0; w <= c->kernel->axes.n / 64; w++)
        if (axes[w])
            return DLC_ODD_STRIDE;
    stride = dlc_expr_eval(pool, coefficient, c->symbols);
    return stride < 2 ? 2 : stride >= DLC_ODD_STRIDE ? DLC_ODD_STRIDE - 1 : stride;
}

int64_t dlc_choose_extent(const dlc_chooser *c, uint32_t axis)
{
    return axis < c->naxes ? c->extent[axis] : dlc_expr_eval(c->kernel->pool, c->kernel->axes.data[axis].extent, c->symbols);
}

double dlc_choose_points(const dlc_chooser *c, const dlc_ids *axes)
{
    double points = 1;
    for (uint32_t i = 0; i < axes->n; i++)
        points *= (double)dlc_choose_extent(c, axes->data[i]);
    return points;
}

int dlc_choose_is_known(const dlc_chooser *c, uint32_t axis)
{
    int64_t extent;
    return axis < c->naxes ? c->is_known[axis] : dlc_expr_is_int(c->kernel->pool, c->kernel->axes.data[axis].extent, &extent);
}

int dlc_choose_are_known(const dlc_chooser *c, const dlc_ids *axes)
{
    for (uint32_t i = 0; i < axes->n; i++)
        if (!dlc_choose_is_known(c, axes->data[i]))
            return 0;
    return 1;
}

int dlc_choose_are_expected(const dlc_chooser *c, const dlc_ids *axes)
{
    for (uint32_t i = 0; i < axes->n; i++)
        if (!(axes->data[i] < c->naxes ? c->is_expected[axes->data[i]] : dlc_choose_is_known(c, axes->data[i])))
            return 0;
    return 1;
}

double dlc_choose_least(const dlc_chooser *c, const dlc_ids *axes)
{
    double points = 1;
    for (uint32_t i = 0; i < axes->n; i++)
        points *= (double)c->least[axes->data[i]];
    return points;
}

int64_t dlc_choose_rank(const dlc_chooser *c, uint32_t axis)
{
    int64_t stored = 0, loaded = 0;
    for (uint32_t s = 0; s < c->nstages; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++) {
            const dlc_access_fact *access = &c->accesses[s].data[i];
            int64_t stride = dlc_choose_stride(c, access->offset, axis);
            int64_t *most = access->load ? &loaded : &stored;
            stride = stride < 0 ? -stride : stride;
            if (stride != DLC_ODD_STRIDE && stride > *most)
                *most = stride;
        }
    return stored ? stored : loaded;
}

void dlc_choose_sort(const dlc_chooser *c, dlc_ids *axes)
{
    int64_t *rank = dlc_new_array(c->arena, int64_t, axes->n + 1);
    for (uint32_t i = 0; i < axes->n; i++) {
        uint32_t axis = axes->data[i], at = i;
        int64_t own = dlc_choose_rank(c, axis);
        for (; at > 0 && rank[at - 1] < own; at--) {
            rank[at] = rank[at - 1];
            axes->data[at] = axes->data[at - 1];
        }
        rank[at] = own;
        axes->data[at] = axis;
    }
}

/* Elements per vector: of the narrowest type that does arithmetic, from least_bytes on; wider types take several registers. */
uint32_t dlc_choose_width(const dlc_chooser *c, uint32_t least_bytes)
{
    uint32_t width = c->target->vector_bytes / least_bytes;
    return width < 1 ? 1 : width > 64 ? 64 : width;
}

int64_t dlc_choose_panel(const dlc_chooser *c, uint32_t elem_bytes, int64_t *nv)
{
    int64_t width = dlc_choose_width(c, elem_bytes), panel = c->target->panel_bytes / elem_bytes;
    if (!panel)
        return *nv * width;
    while (*nv > 1 && *nv * width % panel && panel % (*nv * width))
        --*nv;
    return panel;
}

double dlc_choose_over_threads(const dlc_unit_costs *u)
{
    enum { MOST_THREADS = 8 };
    double cycles = 0, blocks = ceil(u->blocks), rest = u->blocks < blocks ? u->last_cycles - u->cycles : 0;
    for (int threads = 1; threads <= MOST_THREADS; threads *= 2) {
        double own = ceil(u->samples * blocks * u->panels / threads), samples = floor(own / (blocks * u->panels));
        double begun = u->begun_cycles * (ceil(own / u->panels) - samples * (blocks - u->blocks));
        cycles += (u->cycles * own + rest * samples * u->panels + begun) * (threads > 2 ? 1 : 2);
    }
    return cycles;
}

/* --- roots --- */

static int is_in_all(const dlc_kernel *kernel, uint32_t axis)
{
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (!dlc_ids_find(&kernel->stages.data[s].axes, axis, NULL))
            return 0;
    return 1;
}

/* How the axis meets the loads of stages: at itself everywhere, or also at earlier points, or in any other way. */
typedef struct {
    uint8_t is_independent;
    uint8_t is_past;    /* where it is not the axis itself, it is an earlier point */
    uint8_t waits;      /* a stage loads a later stage */
} axis_use;

static void note_use(const dlc_chooser *c, uint32_t s, const dlc_access_fact *access, uint32_t axis, axis_use *use)
{
    dlc_pool *pool = c->kernel->pool;
    uint32_t at, source = DLC_SOURCE_INDEX(access->source);
    int64_t distance;
    if (!access->load || !DLC_SOURCE_IS_STAGE(access->source))
        return;
    use->waits |= source > s;
    if (!dlc_ids_find(&c->kernel->stages.data[source].axes, axis, &at))
        return;
    dlc_expr index = dlc_arg(pool, access->load, at);
    if (dlc_bare_axis(pool, index) == axis)
        return;
    use->is_independent = 0;
    if (!dlc_expr_is_int(pool, dlc_sub(pool, dlc_expr_axis(pool, axis), index), &distance) || distance < 1)
        use->is_past = 0;
}

static axis_use use_of(const dlc_chooser *c, uint32_t axis)
{
    axis_use use = {1, 1, 0};
    for (uint32_t s = 0; s < c->kernel->stages.n; s++)
        for (uint32_t i = 0; i < c->accesses[s].n; i++)
            note_use(c, s, &c->accesses[s].data[i], axis, &use);
    return use;
}

static int has_update(const dlc_kernel *kernel)
{
    for (uint32_t s = 0; s < kernel->stages.n; s++)
        if (kernel->stages.data[s].update != DLC_UPDATE_NONE)
            return 1;
    return 0;
}

/* Neighbours along the axis are stored side by side, and what the stage reads for them lies so or is the same. */
static int is_along_rows(const dlc_chooser *c, uint32_t s, uint32_t axis)
{
    for (uint32_t i = 0; i < c->accesses[s].n; i++) {
        const dlc_access_fact *access = &c->accesses[s].data[i];
        int64_t stride = dlc_choose_stride(c, access->offset, axis);
        if (stride != 1 && (stride || !access->load))
            return 0;
    }
    return 1;
}

/* A recurrence alone that goes from row to row: with the rows' loop around the lanes memory is passed in its order; inside, each vector of
 * columns passes all pages. */
static void find_scan(dlc_chooser *c)
{
    const dlc_stage *stage = &c->kernel->stages.data[0];
    int is_by_rows = 0;
    if (c->target->kind != DLC_TARGET_CPU || c->nstages != 1 || stage->buffer == DLC_NO_BUFFER || stage->reduce.n || stage->axes.n != c->roots.n + 1)
        return;
    for (uint32_t r = 0; r < c->roots.n; r++)
        is_by_rows |= is_along_rows(c, 0, c->roots.data[r]);
    for (uint32_t i = 0; is_by_rows && i < stage->axes.n; i++) {
        axis_use use = use_of(c, stage->axes.data[i]);
        if (!use.is_independent && use.is_past)
            dlc_vec_push(c->arena, &c->serial, stage->axes.data[i]);
    }
}

/* Parts of rows are units: of a page each, or more. */
void dlc_choose_split_scan(const dlc_chooser *c, dlc_lanes_choice *choice, double units, double unit_cycles)
{
    enum { PAGE_BYTES = 4096 };
    uint32_t at = choice->loops.n - 1 - c->serial.n;
    if (c->nstages != 1 || c->serial.n != 1 || choice->lane == DLC_NO_AXIS || choice->npar != at || units >= DLC_MIN_UNITS / 2 ||
        unit_cycles <= DLC_SPLIT_CYCLES)
        return;
    const dlc_stage *stage = &c->kernel->stages.data[0];
    int64_t page = PAGE_BYTES / dlc_dtype_bytes(c->kernel->buffers.data[stage->buffer].type.dtype), width = choice->width;
    int64_t tile = c->extent[choice->lane] / DLC_MIN_UNITS;
    tile = ((tile > page ? tile : page) + width - 1) / width * width;
    if (tile >= c->extent[choice->lane])
        return;
    dlc_vec_push(c->arena, &choice->loops, ((dlc_root_choice){0}));
    memmove(choice->loops.data + at + 1, choice->loops.data + at, (choice->loops.n - at - 1) * sizeof *choice->loops.data);
    choice->loops.data[at] = (dlc_root_choice){choice->lane, tile, 0};
    choice->npar++;
}

static void find_roots(dlc_chooser *c)
{
    if (has_update(c->kernel)) /* runs in index order, after the copy it updates */
        return;
    for (uint32_t a = 0; a < c->kernel->axes.n; a++) {
        axis_use use = use_of(c, a);
        if (!is_in_all(c->kernel, a))
            continue;
        if (use.is_independent)
            dlc_vec_push(c->arena, &c->roots, a);
        else if (use.is_past && use.waits)
            dlc_vec_push(c->arena, &c->serial, a);
    }
    find_scan(c);
}

/* --- places --- */

/* One value per iteration of the root loops. (What is read at earlier points of a serial axis keeps all of them.) */
static int is_within_roots(const dlc_chooser *c, const dlc_stage *stage)
{
    for (uint32_t i = 0; i < stage->axes.n; i++)
        if (!dlc_ids_find(&c->roots, stage->axes.data[i], NULL))
            return 0;
    return 1;
}

static void place_stages(dlc_chooser *c)
{
    for (uint32_t s = 0; s < c->kernel->stages.n; s++) {
        const dlc_stage *stage = &c->kernel->stages.data[s];
        uint8_t *place = &c->place[s];
        if (stage->buffer != DLC_NO_BUFFER)
            *place = c->is_read[s] && is_within_roots(c, stage) ? DLC_PLACE_REG : DLC_PLACE_BUFFER;
        else
            *place = is_within_roots(c, stage) ? DLC_PLACE_REG : DLC_PLACE_SCRATCH;
    }
}

/* --- what no schedule can do, or none would want --- */

static dlc_reason refuse(const char **detail, dlc_reason reason, const char *text)
{
    *detail = text;
    return reason;
}

static dlc_reason check_places(const dlc_chooser *c, const char **detail)
{
    const dlc_kernel *kernel = c->kernel;
    for (uint32_t s = 0; s < kernel->stages.n; s++) {
        const dlc_stage *stage = &kernel->stages.data[s];
        if (c->is_read[s] && stage->axes.n > DLC_MAX_RANK)
            return refuse(detail, DLC_REASON_SIZE,
                          dlc_arena_printf(c->arena, "%s is read at %u axes; up to %d are possible", stage->name, stage->axes.n,
                                           DLC_MAX_RANK));
        if (c->place[s] != DLC_PLACE_REG && c->is_read[s] && dlc_reduces[stage->combine].naccs > 1)
            return refuse(detail, DLC_REASON_ROOT,
                          dlc_arena_printf(c->arena, "the index that %s finds is needed whole", stage->name));
        for (uint32_t i = 0; i < c->accesses[s].n; i++) {
            const dlc_access_fact *access = &c->accesses[s].data[i];
            if (!access->load || !DLC_SOURCE_IS_STAGE(access->source))
                continue;
            const dlc_stage *source = &kernel->stages.data[DLC_SOURCE_INDEX(access->source)];
            if (dlc_node_of(kernel->pool, access->load)->flags & DLC_LOAD_CHECKED)
                return refuse(detail, DLC_REASON_ROOT,
                              dlc_arena_printf(c->arena, "%s is read at an index that depends on data", source->name));
        }
    }
    return DLC_REASON_NONE;
}

static dlc_reason check_scratch(const dlc_chooser *c, const dlc_schedule *schedule, const char **detail)
{
    int64_t bytes = dlc_expr_eval(schedule->kernel->pool, dlc_schedule_scratch(schedule), c->symbols);
    if (bytes <= (int64_t)c->target->scratch_bytes)
        return DLC_REASON_NONE;
    const char *text = dlc_arena_printf(c->arena, "temporaries take %lld KiB per tile; the target has %u KiB",
                                        (long long)(bytes + 1023) / 1024, c->target->scratch_bytes / 1024);
    return refuse(detail, c->roots.n ? DLC_REASON_SCRATCH : DLC_REASON_ROOT, text);
}

static dlc_reason check_size(const dlc_chooser *c, const dlc_schedule *schedule, const char **detail)
{
    enum { MOST_BUFFERS = 64, MOST_NODES = 4096 };
    const dlc_kernel *kernel = schedule->kernel;
    if (kernel->buffers.n > MOST_BUFFERS)
        return refuse(detail, DLC_REASON_PARAMS,
                      dlc_arena_printf(c->arena, "%u buffers; a kernel takes %d", kernel->buffers.n, MOST_BUFFERS));
    const uint8_t *marks = dlc_kernel_marks(kernel, c->arena);
    uint32_t nodes = 0;
    for (dlc_expr id = 1; id < kernel->pool->nodes.n; id++)
        nodes += marks[id];
    if (nodes > MOST_NODES)
        return refuse(detail, DLC_REASON_SIZE,
                      dlc_arena_printf(c->arena, "%u expression nodes; a kernel takes %d", nodes, MOST_NODES));
    return DLC_REASON_NONE;
}

/* --- forms --- */

static int choose_cuda(dlc_chooser *c)
{
    dlc_choose_cuda(c);
    return 1;
}

static int choose_lanes(dlc_chooser *c)
{
    (void)dlc_choose_lanes(c);
    return 1;
}

/* Ways to run a kernel: the first that can is chosen, the others are candidates. */
static const struct {
    uint8_t is_cuda, must_fit; /* must_fit: where its scratch is too much, the next one is better */
    int (*choose)(dlc_chooser *chooser);
} forms[] = {
    {1, 1, dlc_choose_block},
    {1, 1, dlc_choose_transpose},
    {1, 1, dlc_choose_block_tiles},
    {1, 0, choose_cuda},
    {0, 0, dlc_choose_groups},
    {0, 0, dlc_choose_dot},
    {0, 0, dlc_choose_at_points},
    {0, 1, dlc_choose_attention_tiles},
    {0, 1, dlc_choose_attention},
    {0, 1, dlc_choose_halo},
    {0, 1, dlc_choose_tiles},
    {0, 0, choose_lanes},
};
enum { NFORMS = sizeof forms / sizeof *forms };

void dlc_choose_start(dlc_chooser *c, dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena)
{
    dlc_choose_facts(c, kernel, target, arena);
    c->place = dlc_new_array(arena, uint8_t, kernel->stages.n + 1);
    find_roots(c);
    place_stages(c);
}

/* The kernel by that form, resolved; NULL: it is none for this kernel, or *detail says what is wrong with it. Facts stay. */
static dlc_schedule *try_form(const dlc_chooser *facts, uint32_t form, const char **detail)
{
    dlc_chooser c = *facts;
    dlc_diag diag;
    dlc_diag_init(&diag, c.arena);
    if (forms[form].is_cuda != (c.target->kind == DLC_TARGET_CUDA))
        return NULL;
    c.schedule = dlc_schedule_create(facts->kernel, c.target, c.arena);
    c.kernel = c.schedule->kernel;
    c.schedule->keeps = 1;
    c.place = dlc_arena_copy(c.arena, facts->place, c.kernel->stages.n + 1);
    if (!forms[form].choose(&c))
        return NULL;
    if (!forms[form].is_cuda)
        dlc_choose_far(c.schedule, c.arena);
    if (dlc_schedule_resolve(c.schedule, &diag) != DLC_OK) {
        *detail = diag.nmessages ? diag.messages[0].text : "its schedule is refused";
        return NULL;
    }
    const char *unused;
    return forms[form].must_fit && check_scratch(facts, c.schedule, &unused) != DLC_REASON_NONE ? NULL : c.schedule;
}

static int wait_in_outputs(dlc_schedule *schedule, dlc_arena *arena)
{
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    return !dlc_choose_outputs(schedule, arena) || dlc_schedule_resolve(schedule, &diag) == DLC_OK;
}

dlc_reason dlc_choose(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena, dlc_schedule **result,
                      const char **detail)
{
    dlc_chooser c;
    const char *unused;
    detail = detail ? detail : &unused;
    *detail = NULL;
    *result = NULL;
    dlc_choose_start(&c, dlc_kernel_clone(kernel, arena), target, arena);
    dlc_reason reason = check_places(&c, detail);
    if (reason != DLC_REASON_NONE) /* no right code for it */
        return reason;
    const char *wrong = NULL;
    for (uint32_t f = 0; f < NFORMS && !*result; f++)
        *result = try_form(&c, f, &wrong);
    if (!*result)
        return refuse(detail, DLC_REASON_ROOT, wrong);
    reason = check_size(&c, *result, detail);
    reason = reason != DLC_REASON_NONE ? reason : check_scratch(&c, *result, detail);
    if (reason == DLC_REASON_NONE && !wait_in_outputs(*result, arena))
        return refuse(detail, DLC_REASON_ROOT, "its schedule is refused");
    return reason;
}

void dlc_choose_forms(const dlc_kernel *kernel, const dlc_target *target, dlc_arena *arena, dlc_schedules *result)
{
    dlc_chooser c;
    const char *unused;
    *result = (dlc_schedules){0};
    dlc_choose_start(&c, dlc_kernel_clone(kernel, arena), target, arena);
    if (check_places(&c, &unused) != DLC_REASON_NONE)
        return;
    for (uint32_t f = 0; f < NFORMS; f++) {
        dlc_schedule *schedule = try_form(&c, f, &unused);
        if (schedule && wait_in_outputs(schedule, arena))
            dlc_vec_push(arena, result, schedule);
    }
}

/* --- the pass --- */

/* Constants follow the layouts the schedules gave them. */
static void lay_out_constants(dlc_module *module)
{
    for (uint32_t i = 0; i < module->steps.n; i++) {
        const dlc_step *step = &module->steps.data[i];
        if (step->kind != DLC_STEP_LAUNCH)
            continue;
        const dlc_kernel *kernel = module->kernels.data[step->kernel].schedule->kernel;
        for (uint32_t v = 0; v < step->nvalues; v++)
            if (kernel->buffers.data[v].role == DLC_ROLE_CONST)
                step->values[v] = dlc_module_pack(module, step->values[v], kernel->pool, &kernel->buffers.data[v]);
    }
}

/* The schedule as it reads from its text, which then says all there is: choosing leaves expressions in the pool, and code goes by
 * their order. */
static dlc_status settle(dlc_pass_ctx *ctx, dlc_module_kernel *kernel)
{
    dlc_str text = {0};
    dlc_schedule_print(kernel->schedule, &text);
    dlc_status status = dlc_schedule_parse(dlc_str_text(&text), kernel->kernel, ctx->target, ctx->module->arena, ctx->diag,
                                           &kernel->schedule);
    dlc_str_deinit(&text);
    return status;
}

static dlc_status choose_one(dlc_pass_ctx *ctx, uint32_t k)
{
    dlc_module_kernel *kernel = &ctx->module->kernels.data[k];
    const char *detail;
    dlc_choose(kernel->kernel, ctx->target, ctx->module->arena, &kernel->schedule, &detail);
    if (!kernel->schedule)
        return dlc_diag_fail(ctx->diag, DLC_INTERNAL, ctx->module->file, "kernel %u has no schedule: %s", k,
                             detail ? detail : "");
    dlc_mark mark = dlc_arena_mark(ctx->scratch);
    dlc_estimate_grain(kernel->schedule, ctx->scratch);
    dlc_arena_release(ctx->scratch, mark);
    return settle(ctx, kernel);
}

/* What was measured before is a wish: what is wrong with it is noted, and the choice stands. */
static void read_tuned(const dlc_pass_ctx *ctx, dlc_replay *tuned)
{
    dlc_diag_init(tuned->diag, ctx->module->arena);
    if (dlc_replay_read(ctx->tuned.file, ctx->tuned.text, tuned) == DLC_OK)
        return;
    (void)dlc_diag_fail(ctx->diag, DLC_OK, ctx->tuned.file, "ignored: %s", tuned->diag->messages[0].text);
    tuned->rows.n = 0;
}

static dlc_schedule *find_tuned(const dlc_pass_ctx *ctx, dlc_replay *tuned, uint32_t k)
{
    dlc_schedule *schedule;
    if (dlc_replay_find(tuned, ctx->module, k, &schedule) == DLC_OK)
        return schedule;
    (void)dlc_diag_fail(ctx->diag, DLC_OK, ctx->tuned.file, "a schedule is ignored: %s",
                        tuned->diag->messages[tuned->diag->nmessages - 1].text);
    return NULL;
}

static dlc_status find_schedule(dlc_pass_ctx *ctx, uint32_t k, dlc_replay *given, dlc_replay *tuned)
{
    dlc_module_kernel *kernel = &ctx->module->kernels.data[k];
    dlc_schedule *found;
    DLC_TRY(dlc_replay_find(given, ctx->module, k, &found));
    if (!found && kernel->schedule && ctx->schedules.keeps)
        return DLC_OK;
    if (!found)
        found = find_tuned(ctx, tuned, k);
    if (!found)
        return choose_one(ctx, k);
    kernel->schedule = found;
    return DLC_OK;
}

dlc_status dlc_pass_choose(dlc_pass_ctx *ctx)
{
    dlc_replay given = {.arena = ctx->module->arena, .target = ctx->target, .diag = ctx->diag}, tuned = given;
    dlc_diag unused;
    tuned.diag = &unused;
    ctx->schedules.is_read = 1;
    DLC_TRY(dlc_replay_read(ctx->schedules.file, ctx->schedules.text, &given));
    read_tuned(ctx, &tuned);
    for (uint32_t k = 0; k < ctx->module->kernels.n; k++) {
        ctx->changes++;
        DLC_TRY(find_schedule(ctx, k, &given, &tuned));
    }
    dlc_replay_report(&given, ctx->module);
    if (dlc_replay_ntaken(&tuned))
        (void)dlc_diag_fail(ctx->diag, DLC_OK, tuned.file, "%u of %u kernels have the schedule measured best",
                            dlc_replay_ntaken(&tuned), ctx->module->kernels.n);
    lay_out_constants(ctx->module);
    return DLC_OK;
}
