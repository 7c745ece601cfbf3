/*
 * Runs one program: counts its loops up, runs the instructions of every loop that moved, folds into
 * accumulators and stores.
 *
 *     for each point of the output loops          (one of them may go by strips)
 *         accumulators := identity
 *         for each point of the reduced loops     (or one of these may)
 *             accumulators := combine(accumulators, value)
 *         store
 */
#include "base/budget.h"
#include "ir/interp/run.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct {
    dlc_interp *interp;
    dlc_interp_program *program;
    const dlc_stage *stage;
    int64_t *counters; /* per loop: where it stands */
    uint32_t n;        /* points of the strip at hand */
    uint32_t nout;     /* loops that are not reduced */
    char *rooms;
    int64_t *offsets, *flags; /* scratch strips */
    uint8_t lane;
    void *acc[2];
    dlc_interp_fault *fault;
} runner;

static dlc_interp_instr *instr_at(const runner *r, uint32_t id)
{
    return &r->program->instrs.data[id];
}

static int64_t int_of(const runner *r, uint32_t id)
{
    return *(const int64_t *)instr_at(r, id)->at.at;
}

static void *room_of(const runner *r, uint32_t room)
{
    return r->rooms + (size_t)room * DLC_STRIP * 8;
}

static void report(runner *r, dlc_status status, const dlc_interp_memory *memory)
{
    if (r->fault->status == DLC_OK)
        *r->fault = (dlc_interp_fault){status, memory};
}

/* --- axes --- */

/* Coordinate of a strip axis at a point of the flattened strip: (point / inner) mod extent. */
static int64_t inner_points(const runner *r, const dlc_interp_loop *loop, uint32_t axis)
{
    int64_t inner = 1;
    for (uint32_t k = loop->axes.n; k-- > 0 && loop->axes.data[k] != axis;)
        inner *= r->interp->extents[loop->axes.data[k]];
    return inner;
}

static void run_axis(runner *r, dlc_interp_instr *instr, int64_t *to)
{
    const dlc_interp_loops *loops = &r->program->loops;
    const dlc_interp_loop *loop = &loops->data[instr->level - 1];
    int64_t at = r->counters[instr->level - 1];
    uint32_t n = instr->is_strip ? r->n : 1;
    if (loop->axes.n == 1) {
        dlc_strip_ramp(at, 1, n, to);
        return;
    }
    int64_t inner = inner_points(r, loop, instr->axis), extent = r->interp->extents[instr->axis];
    int64_t coordinate = at / inner % extent, rest = at % inner;
    for (uint32_t i = 0; i < n; i++) {
        to[i] = coordinate;
        if (++rest < inner)
            continue;
        rest = 0;
        coordinate = coordinate + 1 < extent ? coordinate + 1 : 0;
    }
}

/* --- loads --- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* The points [*lo, *hi) of n that every bound admits. */
static void admitted(const runner *r, const dlc_interp_load *load, uint32_t n, uint32_t *lo,
                     uint32_t *hi)
{
    int64_t first = 0, end = n;
    for (uint32_t i = 0; i < load->nbounds; i++) {
        const dlc_interp_bound *bound = &load->bounds[i];
        if (bound->b == DLC_NO_INSTR) {
            if (!int_of(r, bound->a))
                end = 0;
            continue;
        }
        /* room + slope * i > 0 */
        int64_t room = int_of(r, bound->b) - int_of(r, bound->a) + bound->or_equal;
        if (bound->slope == 0) {
            if (room <= 0)
                end = 0;
        } else if (bound->slope > 0) {
            int64_t from = floor_div(-room, bound->slope) + 1;
            first = from > first ? from : first;
        } else {
            int64_t to = floor_div(room - 1, -bound->slope) + 1;
            end = to < end ? to : end;
        }
    }
    *hi = (uint32_t)(end < 0 ? 0 : end);
    *lo = (uint32_t)(first < *hi ? first : *hi);
}

static void fill_otherwise(const runner *r, const dlc_interp_instr *instr, uint32_t lo, uint32_t hi,
                           char *to)
{
    static const int64_t zero;
    uint32_t bytes = dlc_lane_bytes(instr->lane);
    dlc_strip from = {&zero, 0};
    if (instr->load->otherwise != DLC_NO_INSTR)
        from = instr_at(r, instr->load->otherwise)->at;
    if (lo >= hi)
        return;
    if (from.step)
        memcpy(to + (size_t)lo * bytes, (const char *)from.at + (size_t)lo * bytes,
               (size_t)(hi - lo) * bytes);
    else
        dlc_strip_fill(instr->lane, from.at, hi - lo, to + (size_t)lo * bytes);
}

/* Points lo..hi step through memory. */
static void load_linear(runner *r, dlc_interp_instr *instr, uint32_t lo, uint32_t hi, char *to)
{
    const dlc_interp_load *load = instr->load;
    int64_t start = int_of(r, load->offset) + lo * load->stride,
            last = start + (int64_t)(hi - lo - 1) * load->stride;
    if (lo == hi)
        return;
    if (start < 0 || last < 0 || start >= load->memory->nelems || last >= load->memory->nelems) {
        report(r, DLC_INTERNAL, load->memory);
        fill_otherwise(r, instr, lo, hi, to);
        return;
    }
    uint32_t n = hi - lo;
    int is_aligned = (uintptr_t)load->memory->base % dlc_dtype_bytes(load->memory->dtype) == 0; /* bytes of a file may not be */
    if (load->is_in_place && is_aligned && instr->is_strip && n == r->n) {
        instr->at = (dlc_strip){
            (const char *)load->memory->base + start * dlc_dtype_bytes(load->memory->dtype), 1};
        return;
    }
    dlc_elements from = {load->memory->base, load->memory->dtype, NULL, start, load->stride};
    dlc_strip_load(&from, instr->lane, n, to + (size_t)lo * dlc_lane_bytes(instr->lane));
}

/* flags[i] = the point may be read. */
static void find_flags(runner *r, const dlc_interp_load *load, uint32_t n)
{
    uint32_t lo, hi;
    admitted(r, load, n, &lo, &hi);
    for (uint32_t i = 0; i < n; i++)
        r->flags[i] = i >= lo && i < hi;
    if (load->guard != DLC_NO_INSTR) {
        dlc_strip guard = instr_at(r, load->guard)->at;
        for (uint32_t i = 0; i < n; i++)
            r->flags[i] &= ((const int64_t *)guard.at)[i * guard.step];
    }
    if (load->check == DLC_NO_INSTR)
        return;
    dlc_strip check = instr_at(r, load->check)->at;
    for (uint32_t i = 0; i < n; i++) {
        int64_t is_inside = ((const int64_t *)check.at)[i * check.step];
        if (r->flags[i] && !is_inside)
            report(r, DLC_INVALID, load->memory);
        r->flags[i] &= is_inside;
    }
}

/* Point by point: an offset of each, and flags; what may not be read reads element 0 and is
 * replaced. */
static void load_scattered(runner *r, dlc_interp_instr *instr, uint32_t n, char *to)
{
    const dlc_interp_load *load = instr->load;
    find_flags(r, load, n);
    dlc_strip offset = instr_at(r, load->offset)->at;
    int64_t base = int_of(r, load->offset);
    int has_gaps = 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t at = load->is_linear ? base + i * load->stride
                                     : ((const int64_t *)offset.at)[i * offset.step];
        if (r->flags[i] && (at < 0 || at >= load->memory->nelems)) {
            report(r, DLC_INTERNAL, load->memory);
            r->flags[i] = 0;
        }
        has_gaps |= !r->flags[i];
        r->offsets[i] = r->flags[i] ? at : 0;
    }
    dlc_elements from = {load->memory->base, load->memory->dtype, r->offsets, 0, 0};
    if (load->memory->nelems > 0)
        dlc_strip_load(&from, instr->lane, n, to);
    for (uint32_t i = 0; has_gaps && i < n; i++)
        if (!r->flags[i])
            fill_otherwise(r, instr, i, i + 1, to);
}

static void load_strip(runner *r, dlc_interp_instr *instr, char *to)
{
    const dlc_interp_load *load = instr->load;
    uint32_t n = instr->is_strip ? r->n : 1, lo, hi;
    if (load->guard != DLC_NO_INSTR || load->check != DLC_NO_INSTR || !load->is_linear) {
        load_scattered(r, instr, n, to);
        return;
    }
    admitted(r, load, n, &lo, &hi);
    load_linear(r, instr, lo, hi, to);
    fill_otherwise(r, instr, 0, lo, to);
    fill_otherwise(r, instr, hi, n, to);
}

static void run_load(runner *r, dlc_interp_instr *instr, char *to)
{
    dlc_interp_load *load = instr->load;
    uint32_t bytes = dlc_lane_bytes(instr->lane);
    if (!load->strides || !instr->is_strip) {
        load_strip(r, instr, to);
        return;
    }
    if (!load->kept) {
        load->kept = dlc_arena_alloc(r->interp->arena, (size_t)load->nkept * bytes, 64);
        load->is_filled =
            dlc_new_array(r->interp->arena, uint8_t, (size_t)(load->nkept / load->kept_strip) + 1);
    }
    int64_t at = 0;
    for (uint32_t l = 0; l < r->program->loops.n; l++)
        at += r->counters[l] * load->strides[l];
    instr->at.at = load->kept + (size_t)at * bytes;
    if (load->is_filled[at / load->kept_strip])
        return;
    load->is_filled[at / load->kept_strip] = 1;
    load_strip(r, instr, load->kept + (size_t)at * bytes);
}

/* --- instructions --- */

/* What indices and bounds are made of, for one point and without a loop: nearly all that is computed per step of a fold. */
static int apply_to_indices(const runner *r, dlc_interp_instr *instr)
{
    if (instr->is_strip || instr->op.from != DLC_I64 || instr->nargs != 2)
        return 0;
    int64_t x = int_of(r, instr->args[0]), y = int_of(r, instr->args[1]);
    switch ((dlc_expr_op)instr->op.op) {
    case DLC_EXPR_ADD:
        instr->value.i = (int64_t)((uint64_t)x + (uint64_t)y);
        return 1;
    case DLC_EXPR_SUB:
        instr->value.i = (int64_t)((uint64_t)x - (uint64_t)y);
        return 1;
    case DLC_EXPR_MUL:
        instr->value.i = (int64_t)((uint64_t)x * (uint64_t)y);
        return 1;
    case DLC_EXPR_LT:
        instr->value.i = x < y;
        return 1;
    case DLC_EXPR_LE:
        instr->value.i = x <= y;
        return 1;
    default:
        return 0;
    }
}

static void run_instr(runner *r, dlc_interp_instr *instr)
{
    void *to = instr->is_strip ? room_of(r, instr->room) : (void *)&instr->value;
    instr->at = (dlc_strip){to, instr->is_strip};
    if (instr->is_const)
        return;
    if (instr->load) {
        run_load(r, instr, to);
    } else if (instr->is_ramp) {
        dlc_strip_ramp(int_of(r, instr->args[0]), instr->slope, r->n, to);
    } else if (instr->op.op == DLC_EXPR_AXIS) {
        run_axis(r, instr, to);
    } else if (!apply_to_indices(r, instr)) {
        dlc_strip args[3];
        for (uint32_t k = 0; k < instr->nargs; k++)
            args[k] = instr_at(r, instr->args[k])->at;
        dlc_strip_apply(&instr->op, args, instr->is_strip ? r->n : 1, to);
    }
}

static void run_levels(runner *r, uint32_t first, uint32_t last)
{
    for (uint32_t i = r->program->first_of_level[first]; i < r->program->first_of_level[last + 1];
         i++)
        run_instr(r, instr_at(r, i));
}

/* --- accumulators --- */

static dlc_expr_op combine_op(const dlc_stage *stage)
{
    int is_bool = stage->dtype[0] == DLC_BOOL;
    switch ((dlc_reduce)stage->combine) {
    case DLC_REDUCE_SUM:
        return is_bool ? DLC_EXPR_OR : DLC_EXPR_ADD;
    case DLC_REDUCE_PROD:
        return is_bool ? DLC_EXPR_AND : DLC_EXPR_MUL;
    case DLC_REDUCE_MIN:
        return is_bool ? DLC_EXPR_AND : DLC_EXPR_MIN;
    case DLC_REDUCE_MAX:
        return is_bool ? DLC_EXPR_OR : DLC_EXPR_MAX;
    case DLC_REDUCE_ANY:
        return DLC_EXPR_OR;
    default:
        return DLC_EXPR_AND;
    }
}

/* The largest value of a type, or the smallest. */
static dlc_scalar limit(dlc_dtype dtype, int is_largest)
{
    if (dlc_is_float(dtype))
        return (dlc_scalar){.f = is_largest ? INFINITY : -INFINITY};
    return (dlc_scalar){.i = is_largest ? (int64_t)dlc_dtype_highest(dtype)
                                        : dlc_dtype_lowest(dtype)};
}

static dlc_scalar identity(const dlc_stage *stage)
{
    dlc_dtype dtype = stage->dtype[0];
    double number = 0;
    switch ((dlc_reduce)stage->combine) {
    case DLC_REDUCE_MIN:
    case DLC_REDUCE_ARGMIN:
    case DLC_REDUCE_ARGMIN_LAST:
        return limit(dtype, 1);
    case DLC_REDUCE_MAX:
    case DLC_REDUCE_ARGMAX:
    case DLC_REDUCE_ARGMAX_LAST:
        return limit(dtype, 0);
    case DLC_REDUCE_PROD:
    case DLC_REDUCE_ALL:
        number = 1;
        break;
    default:
        break;
    }
    return dlc_is_float(dtype) ? (dlc_scalar){.f = number} : (dlc_scalar){.i = (int64_t)number};
}

static int is_pair(const dlc_stage *stage)
{
    return dlc_reduces[stage->combine].naccs == 2;
}

/* True when the key at a new index wins. -1: no index yet. */
static int is_better(const runner *r, dlc_scalar key, int64_t index, dlc_scalar best,
                     int64_t best_index)
{
    const dlc_stage *stage = r->stage;
    dlc_dtype dtype = stage->dtype[0];
    int is_max = stage->combine == DLC_REDUCE_ARGMAX || stage->combine == DLC_REDUCE_ARGMAX_LAST;
    int is_last =
        stage->combine == DLC_REDUCE_ARGMAX_LAST || stage->combine == DLC_REDUCE_ARGMIN_LAST;
    int is_nan = 0, best_is_nan = 0;
    if (best_index < 0)
        return 1;
    if (dlc_is_float(dtype)) {
        is_nan = isnan(key.f) != 0;
        best_is_nan = isnan(best.f) != 0;
    }
    if (is_nan != best_is_nan)
        return is_nan;
    if (!is_nan) {
        dlc_scalar up[2] = {is_max ? best : key, is_max ? key : best}, down[2] = {up[1], up[0]};
        if (dlc_scalar_apply(DLC_EXPR_LT, dtype, DLC_BOOL, up).i)
            return 1;
        if (dlc_scalar_apply(DLC_EXPR_LT, dtype, DLC_BOOL, down).i)
            return 0;
    }
    return is_last ? index > best_index : index < best_index;
}

static void combine_pair(runner *r, dlc_strip key, dlc_strip index, uint32_t n, int is_fold)
{
    int64_t *best_index = r->acc[1];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = is_fold ? 0 : i;
        dlc_scalar new_key = dlc_strip_get(r->lane, key, i);
        int64_t new_index = ((const int64_t *)index.at)[i * index.step];
        dlc_scalar best = dlc_strip_get(r->lane, (dlc_strip){r->acc[0], 1}, at);
        if (!is_better(r, new_key, new_index, best, best_index[at]))
            continue;
        dlc_strip_put(r->lane, r->acc[0], at, new_key);
        best_index[at] = new_index;
    }
}

static int strip_is_reduced(const runner *r)
{
    const dlc_interp_program *program = r->program;
    return program->strip_loop < program->loops.n &&
           program->loops.data[program->strip_loop].is_reduced;
}

/* Points of the accumulators: the strip of outputs, or one. */
static uint32_t acc_points(const runner *r)
{
    return strip_is_reduced(r) ? 1 : r->n;
}

static void start_accumulators(runner *r)
{
    const int64_t none = -1;
    dlc_scalar start = identity(r->stage), as_lane;
    dlc_strip_put(r->lane, &as_lane, 0, start);
    dlc_strip_fill(r->lane, &as_lane, acc_points(r), r->acc[0]);
    if (is_pair(r->stage))
        dlc_strip_fill(DLC_LANE_INT, &none, acc_points(r), r->acc[1]);
}

static void accumulate(runner *r)
{
    const dlc_interp_program *program = r->program;
    if (program->value[0] == DLC_NO_INSTR) {
        dlc_strip_mac(r->lane, instr_at(r, program->factor[0])->at,
                      instr_at(r, program->factor[1])->at, r->n, r->acc[0]);
        return;
    }
    dlc_strip value = instr_at(r, program->value[0])->at;
    int is_fold = strip_is_reduced(r);
    if (is_pair(r->stage)) {
        combine_pair(r, value, instr_at(r, program->value[1])->at, r->n, is_fold);
        return;
    }
    dlc_dtype dtype = r->stage->dtype[0];
    dlc_strip_op op = {(uint8_t)combine_op(r->stage), (uint8_t)dtype, (uint8_t)dtype,
                       (uint8_t)r->interp->is_wide};
    if (is_fold) {
        dlc_strip_fold(&op, value, r->n, r->acc[0]);
        return;
    }
    dlc_strip args[2] = {{r->acc[0], 1}, value};
    dlc_strip_apply(&op, args, r->n, r->acc[0]);
}

/* --- stores --- */

static dlc_expr_op update_op(uint8_t update)
{
    static const uint8_t ops[] = {[DLC_UPDATE_SUM] = DLC_EXPR_ADD,
                                  [DLC_UPDATE_PROD] = DLC_EXPR_MUL,
                                  [DLC_UPDATE_MIN] = DLC_EXPR_MIN,
                                  [DLC_UPDATE_MAX] = DLC_EXPR_MAX};
    return (dlc_expr_op)ops[update];
}

/* One point at a time, in order: two points may hit one element. */
static void scatter(runner *r, const dlc_interp_memory *memory, dlc_elements *into, dlc_dtype dtype,
                    dlc_strip value, uint32_t n)
{
    dlc_lane_type type = dlc_lane_of(dtype, r->interp->is_wide);
    uint8_t update = r->stage->update;
    dlc_strip_op op = {(uint8_t)(update == DLC_UPDATE_SET ? 0 : update_op(update)), dtype, dtype,
                       (uint8_t)r->interp->is_wide};
    if (dtype == DLC_BOOL && update == DLC_UPDATE_SUM)
        op.op = DLC_EXPR_OR;
    for (uint32_t i = 0; i < n; i++) {
        int64_t at = into->offsets ? into->offsets[i] : into->start + i * into->stride;
        if (r->program->check != DLC_NO_INSTR) {
            dlc_strip check = instr_at(r, r->program->check)->at;
            if (!((const int64_t *)check.at)[i * check.step]) {
                report(r, DLC_INVALID, memory);
                continue;
            }
        }
        dlc_elements element = {memory->base, memory->dtype, NULL, at, 0};
        dlc_scalar old, now = {0};
        dlc_strip one = {
            (const char *)value.at + (size_t)i * value.step * dlc_lane_bytes(type.lane), 0};
        if (update != DLC_UPDATE_SET) {
            dlc_strip_load(&element, type.lane, 1, &old);
            dlc_strip args[2] = {{&old, 0}, one};
            dlc_strip_apply(&op, args, 1, &now);
            one = (dlc_strip){&now, 0};
        }
        dlc_strip_store(&element, type.lane, one, 1);
    }
}

static int is_inside(const dlc_interp_memory *memory, const dlc_elements *elements, uint32_t n)
{
    if (!elements->offsets) {
        int64_t last = elements->start + (int64_t)(n - 1) * elements->stride;
        return elements->start >= 0 && last >= 0 && elements->start < memory->nelems &&
               last < memory->nelems;
    }
    for (uint32_t i = 0; i < n; i++)
        if (elements->offsets[i] < 0 || elements->offsets[i] >= memory->nelems)
            return 0;
    return 1;
}

static dlc_elements place(const runner *r, const dlc_interp_memory *memory, uint32_t offset,
                          int is_linear, int64_t stride)
{
    dlc_elements into = {memory->base, memory->dtype, NULL, 0, 0};
    const dlc_interp_instr *instr = instr_at(r, offset);
    if (is_linear) {
        into.start = *(const int64_t *)instr->at.at;
        into.stride = stride;
    } else {
        into.offsets = instr->at.at;
    }
    return into;
}

static void store_result(runner *r, uint32_t second, dlc_strip value)
{
    const dlc_interp_program *program = r->program;
    uint32_t n = acc_points(r), stage = (uint32_t)(r->stage - r->interp->kernel->stages.data);
    dlc_dtype dtype = r->stage->dtype[second];
    uint8_t lane = dlc_lane_of(dtype, r->interp->is_wide).lane;
    const dlc_interp_memory *temp = &r->interp->temps[second][stage];
    if (temp->base) {
        dlc_elements into =
            place(r, temp, program->temp, program->is_temp_linear, program->temp_stride);
        if (is_inside(temp, &into, n))
            dlc_strip_store(&into, lane, value, n);
        else
            report(r, DLC_INTERNAL, temp);
    }
    if (r->stage->buffer == DLC_NO_BUFFER || r->stage->second != second)
        return;
    const dlc_interp_memory *memory = &r->interp->buffers[r->stage->buffer];
    dlc_elements into =
        place(r, memory, program->store, program->is_store_linear, program->store_stride);
    if (r->stage->update != DLC_UPDATE_NONE)
        scatter(r, memory, &into, dtype, value, n);
    else if (is_inside(memory, &into, n))
        dlc_strip_store(&into, lane, value, n);
    else
        report(r, DLC_INTERNAL, memory);
}

/* --- loops --- */

/* Starts loop l anew, or moves it by what it did last; false at its end. */
static int move(runner *r, uint32_t l, int is_start, const int64_t *fixed, uint32_t nfixed)
{
    const dlc_interp_loop *loop = &r->program->loops.data[l];
    if (l < nfixed) {
        r->counters[l] = fixed[l];
        return is_start && loop->trip > 0;
    }
    r->counters[l] = is_start ? 0 : r->counters[l] + (loop->is_strip ? r->n : 1);
    int64_t left = loop->trip - r->counters[l];
    if (loop->is_strip)
        r->n = (uint32_t)(left < DLC_STRIP ? left : DLC_STRIP);
    return left > 0;
}

/* Moves the innermost of loops [first, end) that can; those inside start anew. Returns the
 * outermost that moved, or `end`. */
static uint32_t next(runner *r, uint32_t first, uint32_t end, const int64_t *fixed, uint32_t nfixed)
{
    for (uint32_t l = end; l-- > first;) {
        if (!move(r, l, 0, fixed, nfixed))
            continue;
        for (uint32_t inner = l + 1; inner < end; inner++)
            move(r, inner, 1, fixed, nfixed);
        return l;
    }
    return end;
}

/* Starts all loops of [first, end); false when one has no points. */
static int start(runner *r, uint32_t first, uint32_t end, const int64_t *fixed, uint32_t nfixed)
{
    int has_points = 1;
    for (uint32_t l = first; l < end; l++)
        has_points &= move(r, l, 1, fixed, nfixed);
    return has_points;
}

static void reduce(runner *r)
{
    uint32_t nloops = r->program->loops.n;
    start_accumulators(r);
    if (!start(r, r->nout, nloops, NULL, 0))
        return;
    for (uint32_t moved = r->nout; moved < nloops; moved = next(r, r->nout, nloops, NULL, 0)) {
        run_levels(r, moved + 1, nloops);
        accumulate(r);
        dlc_budget_read(r->n * sizeof(double)); /* about: so weights go from memory as they are read */
    }
}

static void run_point(runner *r)
{
    const dlc_interp_program *program = r->program;
    if (r->stage->combine == DLC_REDUCE_NONE) {
        store_result(r, 0, instr_at(r, program->value[0])->at);
        return;
    }
    reduce(r);
    store_result(r, 0, (dlc_strip){r->acc[0], 1});
    if (is_pair(r->stage))
        store_result(r, 1, (dlc_strip){r->acc[1], 1});
}

void dlc_interp_run_program(dlc_interp *interp, dlc_interp_program *program, uint32_t stage,
                            const int64_t *fixed, uint32_t nfixed, dlc_interp_fault *fault)
{
    runner r = {.interp = interp,
                .program = program,
                .stage = &interp->kernel->stages.data[stage],
                .fault = fault,
                .n = 1};
    r.lane = dlc_lane_of(r.stage->dtype[0], interp->is_wide).lane;
    if (!program->rooms) {
        program->rooms =
            dlc_arena_alloc(interp->arena, ((size_t)program->nrooms + 4) * DLC_STRIP * 8, 64);
        program->counters = dlc_new_array(interp->arena, int64_t, program->loops.n);
    }
    r.rooms = program->rooms;
    r.counters = program->counters;
    r.offsets = room_of(&r, program->nrooms);
    r.flags = room_of(&r, program->nrooms + 1);
    r.acc[0] = room_of(&r, program->nrooms + 2);
    r.acc[1] = room_of(&r, program->nrooms + 3);
    while (r.nout < program->loops.n && !program->loops.data[r.nout].is_reduced)
        r.nout++;
    if (start(&r, 0, r.nout, fixed, nfixed)) {
        run_levels(&r, 0, 0);
        uint32_t moved = 0;
        do {
            if (r.nout > 0)
                run_levels(&r, moved + 1, r.nout);
            run_point(&r);
            dlc_budget_read(r.n * sizeof(double));
            moved = next(&r, 0, r.nout, fixed, nfixed);
        } while (moved < r.nout && fault->status == DLC_OK);
    }
}
