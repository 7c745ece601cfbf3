/*
 * What lanes do to memory, checked byte by byte. Every element remembers who wrote and who read it
 * last, with the time of then: a warp's time goes on at each barrier it takes part in, and a
 * barrier tells its warps each other's times. Two accesses are in order when one thread made both
 * or a barrier lies between; blocks of a launch are in order only where one has told the other by
 * a fence and an atomic. Threads may all store one constant: that is how kernels tell of faults.
 */
#include <string.h>

#include "vgpu/compute.h"
#include "vgpu/memory.h"
#include "vgpu/warp.h"

/* A stamp: block + 1 (31 bits), time (22), warp (5), lane (6; SEVERAL: more than one). */
enum { SEVERAL = 32, TIMES = (1 << 22) - 1 };
enum {
    NONCOHERENT = 1,
    BY_ATOMIC = 2,
    BY_CONSTANT = 4
}; /* marks of a record: how it was read, how it was written */

typedef enum { READ, WRITE, ATOMIC } way;
typedef struct {
    const vgpu_insn *insn;
    uint32_t bytes, element_bytes, unused; /* unused: nobody looks at these bytes */
    way way;
    int lands; /* it is the end of an asynchronous copy */
    int is_plain; /* it loads, and others may write before and behind the launch */
    int may_be_local;
    vgpu_region *region; /* of the lane before */
    uint64_t addresses[VGPU_LANES];
    int is_shared;
} access;

static uint64_t stamp_of(const vgpu_machine *m, const vgpu_warp *w, uint32_t lane)
{
    return (m->block + 1) << 33 | (uint64_t)(w->epoch & TIMES) << 11 | (uint64_t)w->number << 6 |
           lane;
}

static int is_ordered(const vgpu_machine *m, const vgpu_warp *w, uint64_t before, uint32_t lane)
{
    uint64_t block = before >> 33;
    uint32_t time = (uint32_t)(before >> 11) & TIMES, warp = (uint32_t)(before >> 6) & 31;
    if (before == 0)
        return 1;
    if (block != m->block + 1)
        return m->has_acquired && m->published && m->published[block - 1];
    return warp == w->number ? (before & 63) == lane || time < w->met : time < w->seen[warp];
}

static void note_read(const vgpu_warp *w, uint64_t stamp, vgpu_record *r)
{
    if (r->reader >> 33 == stamp >> 33 && (r->reader >> 6 & 31) == (stamp >> 6 & 31)) {
        int are_apart = (uint32_t)(r->reader >> 11 & TIMES) >= w->met && (r->reader & 63) != (stamp & 63);
        r->reader = are_apart ? (stamp & ~UINT64_C(63)) | SEVERAL : stamp;
        return;
    }
    r->other = r->reader;
    r->reader = stamp;
}

/* A load of what nobody has written in this launch, which is most of all accesses: 1 when it is noted. */
static inline int note_plain(const vgpu_warp *w, const access *a, uint64_t stamp, vgpu_record *r)
{
    if (!a->is_plain || r->writer)
        return 0;
    if (r->reader == 0)
        r->reader = stamp;
    else if (r->reader != stamp)
        note_read(w, stamp, r);
    return 1;
}

/* To products of groups of warps: its warp has said so since. */
static int is_visible(const vgpu_machine *m, uint64_t writer)
{
    return (uint32_t)(writer >> 11 & TIMES) < m->warps[writer >> 6 & 31].proxied;
}

/* What is wrong with a lane's access to an element, or NULL. */
static const char *note(const vgpu_machine *m, const vgpu_warp *w, const access *a, uint32_t lane,
                        vgpu_record *r)
{
    uint64_t stamp = stamp_of(m, w, lane);
    int is_noncoherent = a->insn->ptx->is_noncoherent;
    if (note_plain(w, a, stamp, r))
        return NULL;
    if (a->way == READ) {
        if (is_noncoherent && r->writer)
            return "a non-coherent load of what the kernel writes";
        if (r->writer && r->writer != stamp && !is_ordered(m, w, r->writer, lane))
            return "a race: reads what another thread wrote";
        if (a->insn->kind == VGPU_WARPGROUP && r->writer && !is_visible(m, r->writer))
            return "a product of a group of warps reads what no fence.proxy.async has made visible";
        r->marks |= is_noncoherent ? NONCOHERENT : 0;
        if (r->reader != stamp)
            note_read(w, stamp, r);
        return NULL;
    }
    uint8_t how = a->way == ATOMIC ? BY_ATOMIC : a->insn->is_constant ? BY_CONSTANT : 0;
    int are_alike = (how & r->marks) != 0;
    if (r->marks & NONCOHERENT)
        return "a non-coherent load of what the kernel writes";
    if ((!are_alike && !is_ordered(m, w, r->writer, lane)) || !is_ordered(m, w, r->reader, lane) ||
        !is_ordered(m, w, r->other, lane))
        return "a race: writes what another thread accessed";
    *r = (vgpu_record){.writer = stamp, .marks = how};
    return NULL;
}

/* --- places --- */
static vgpu_region *region_of(vgpu_machine *m, const access *a, uint64_t address)
{
    ptx_space space = (ptx_space)a->insn->ptx->space;
    vgpu_region *region = NULL;
    if (a->insn->kind == VGPU_ASYNC)
        space = a->way == WRITE ? PTX_SHARED : PTX_GLOBAL;
    if (space != PTX_GLOBAL)
        region = vgpu_memory_find(&m->shared, address);
    if (!region && space != PTX_SHARED)
        region = vgpu_memory_find(m->launch->memory, address);
    return region;
}

static uint8_t *bad(vgpu_machine *m, const vgpu_warp *w, const access *a, uint32_t lane,
                    vgpu_fault fault, const char *what)
{
    vgpu_fail(m, w, a->insn, lane, fault, what);
    return NULL;
}

/* Bytes of shared memory that an asynchronous copy has yet to write. */
enum { WRITTEN = 1, ARRIVING = 2 };

/* Whether all bytes, a power of 2 of them up to 16, have that mark and nothing else. */
static int are_all(const uint8_t *marks, uint32_t n, uint8_t mark)
{
    uint64_t first, last, pattern = UINT64_C(0x0101010101010101) * mark;
    uint32_t half;
    if (n < sizeof half) {
        for (uint32_t i = 0; i < n; i++)
            if (marks[i] != mark)
                return 0;
        return 1;
    }
    if (n == sizeof half) {
        memcpy(&half, marks, sizeof half);
        return half == (uint32_t)pattern;
    }
    memcpy(&first, marks, sizeof first);
    memcpy(&last, marks + n - sizeof last, sizeof last);
    return first == pattern && last == pattern;
}

/* Bytes were initialised; those that are written now are. NULL, or what is wrong. */
static const char *check_written(const access *a, uint8_t *written)
{
    if (are_all(written, a->bytes, WRITTEN)) /* nearly always */
        return NULL;
    for (uint32_t i = 0; i < a->bytes; i++) {
        if (a->way != WRITE && written[i] != WRITTEN && !(a->unused >> i & 1))
            return written[i] ? "reads what has yet to arrive" : "reads what nobody has written";
        if (a->way != READ && written[i] == ARRIVING && !a->lands)
            return "writes where an asynchronous copy has yet to arrive";
        if (a->way != READ)
            written[i] = WRITTEN;
    }
    return NULL;
}

static uint8_t *touch_local(vgpu_machine *m, const vgpu_warp *w, const access *a, uint32_t lane,
                            uint64_t address)
{
    uint64_t offset = address - PTX_LOCAL_BASE, size = m->code->function->local_bytes;
    size_t at = (size_t)(w->number * VGPU_LANES + lane) * size + offset;
    if (address < PTX_LOCAL_BASE || offset + a->bytes > size)
        return bad(m, w, a, lane, VGPU_BAD_ADDRESS,
                   a->way == READ ? "reads out of bounds" : "writes out of bounds");
    const char *problem = check_written(a, m->local_written + at);
    return problem ? bad(m, w, a, lane, VGPU_FAILED, problem) : m->local + at;
}

static const char *note_all(vgpu_machine *m, const vgpu_warp *w, const access *a, uint32_t lane,
                            uint64_t offset)
{
    vgpu_memory *memory = a->is_shared ? &m->shared : m->launch->memory;
    uint32_t step = a->element_bytes < 4 ? 1 : 4;
    vgpu_page *page = vgpu_memory_page(memory, a->region, offset, step == 1);
    uint64_t at = offset % VGPU_PAGE, sector = at / VGPU_SECTOR;
    uint64_t *sectors = a->way == READ ? page->read : page->written;
    sectors[sector / 64] |= UINT64_C(1) << sector % 64;
    if (page->is_fine)
        step = 1;
    vgpu_record *r = &page->records[page->is_fine ? at : at / 4];
    for (uint32_t i = 0; i < a->bytes; i += step, r++) {
        const char *problem = a->unused >> i & 1 ? NULL : note(m, w, a, lane, r);
        if (problem)
            return problem;
    }
    return NULL;
}

static int lies_in(const vgpu_region *region, uint64_t address, uint32_t bytes)
{
    return region && address >= region->base && address - region->base < region->size_bytes &&
           region->size_bytes - (address - region->base) >= bytes;
}

/* The bytes, checked; NULL when the access is wrong. */
static uint8_t *touch(vgpu_machine *m, const vgpu_warp *w, access *a, uint32_t lane,
                      uint64_t address)
{
    a->addresses[lane] = address;
    if (address & (a->bytes - 1)) /* a power of 2 */
        return bad(m, w, a, lane, VGPU_MISALIGNED, "an access that is not aligned");
    if (a->may_be_local && (a->insn->ptx->space == PTX_LOCAL || (address >= PTX_LOCAL_BASE && address < 2 * PTX_LOCAL_BASE)))
        return touch_local(m, w, a, lane, address);
    if (!lies_in(a->region, address, a->bytes)) {
        a->region = region_of(m, a, address);
        a->is_shared =
            m->shared.n && a->region >= m->shared.regions && a->region < m->shared.regions + m->shared.n;
    }
    if (!lies_in(a->region, address, a->bytes) || (a->way != READ && !a->region->is_writable))
        return bad(m, w, a, lane, VGPU_BAD_ADDRESS,
                   a->way == READ ? "reads out of bounds" : "writes out of bounds");
    uint64_t offset = address - a->region->base;
    const char *problem = note_all(m, w, a, lane, offset);
    if (!problem && a->region->written)
        problem = check_written(a, a->region->written + offset);
    return problem ? bad(m, w, a, lane, VGPU_FAILED, problem) : a->region->bytes + offset;
}

static void count(const vgpu_machine *m, const access *a, uint32_t lanes)
{
    vgpu_counts *counts = m->launch->counts;
    if (!counts || a->insn->ptx->space == PTX_LOCAL)
        return;
    if (a->is_shared)
        vgpu_count_shared(counts, a->addresses, lanes, a->bytes);
    else
        vgpu_count_global(counts, a->addresses, lanes, a->bytes, a->way != READ);
}

static int may_be_local(const vgpu_insn *insn)
{
    return insn->ptx->space == PTX_LOCAL || insn->ptx->space == PTX_GENERIC;
}

static access access_of(const vgpu_insn *insn, way w)
{
    uint32_t bytes = insn->ptx->type.bits / 8u;
    return (access){.insn = insn,
                    .bytes = bytes * insn->ptx->nelems,
                    .element_bytes = bytes,
                    .unused = w == READ ? insn->ptx->unused : 0,
                    .way = w,
                    .is_plain = w == READ && !insn->ptx->is_noncoherent,
                    .may_be_local = may_be_local(insn)};
}

static uint64_t address_of(const vgpu_warp *w, const vgpu_insn *insn, uint32_t operand,
                           uint32_t lane)
{
    return vgpu_get(w->regs, insn->src[operand], lane) + (uint64_t)insn->ptx->src[operand].offset;
}

#define EACH_LANE(lane, lanes)                                                                     \
    for (uint32_t left_ = (lanes), lane;                                                           \
         left_ && (lane = (uint32_t)__builtin_ctz(left_), 1) && m->status == DLC_OK;               \
         left_ &= left_ - 1)

/* --- instructions --- */
static void load_parameter(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    uint32_t bytes = insn->ptx->type.bits / 8u;
    EACH_LANE(lane, lanes)
    {
        uint64_t at = address_of(w, insn, 0, lane), value = 0;
        if (at + bytes * insn->ptx->nelems > m->code->function->param_bytes) {
            vgpu_fail(m, w, insn, lane, VGPU_BAD_ADDRESS, "reads beyond its parameters");
            return;
        }
        for (uint32_t i = 0; i < insn->ptx->nelems; i++) {
            memcpy(&value, m->launch->parameters + at + i * bytes, bytes);
            vgpu_set(w->regs, insn->dst[i], lane, ptx_extended(insn->ptx->type, value));
        }
    }
}

/* Matrices of 8 x 8 elements of 16 bits: lanes 8 i to 8 i + 7 say where the rows of the i-th are; of each, lane l gets elements
 * 2 (l mod 4) and the next of row l / 4, or of transposed ones, of column l / 4. */
static void load_matrices(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    enum { SIDE = 8, ROW_BYTES = 16 };
    access a = {.insn = insn, .bytes = ROW_BYTES, .element_bytes = 2, .way = READ, .is_plain = 1, .may_be_local = may_be_local(insn)};
    uint32_t n = insn->ptx->nelems, naming = n == 4 ? lanes : lanes & ((1u << SIDE * n) - 1);
    uint16_t rows[VGPU_LANES][SIDE];
    if (lanes != UINT32_MAX || n == 3) {
        vgpu_fail(m, w, insn, 0, VGPU_FAILED, "matrices are loaded by a whole warp, 1, 2 or 4 of them");
        return;
    }
    EACH_LANE(lane, naming)
    {
        const uint8_t *at = touch(m, w, &a, lane, address_of(w, insn, 0, lane));
        if (at && !a.is_shared)
            vgpu_fail(m, w, insn, lane, VGPU_BAD_ADDRESS, "matrices are loaded from shared memory");
        if (at)
            memcpy(rows[lane], at, ROW_BYTES);
    }
    for (uint32_t i = 0; i < n && m->status == DLC_OK; i++)
        for (uint32_t lane = 0; lane < VGPU_LANES; lane++) {
            uint32_t r = lane / 4, c = 2 * (lane % 4), is_t = insn->ptx->is_transposed;
            uint32_t low = is_t ? rows[SIDE * i + c][r] : rows[SIDE * i + r][c];
            uint32_t high = is_t ? rows[SIDE * i + c + 1][r] : rows[SIDE * i + r][c + 1];
            vgpu_set(w->regs, insn->dst[i], lane, low | high << 16);
        }
    count(m, &a, naming);
}

/* As a register holds it. */
static inline uint64_t element_at(const uint8_t *at, ptx_type type)
{
    uint32_t word;
    uint64_t value = 0;
    if (type.bits == 32) {
        memcpy(&word, at, sizeof word);
        return type.kind == 's' ? (uint64_t)(int32_t)word : word;
    }
    memcpy(&value, at, type.bits / 8u);
    return ptx_extended(type, value);
}

void vgpu_load(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    access a = access_of(insn, READ);
    if (insn->ptx->op == PTX_LDMATRIX) {
        load_matrices(m, w, insn, lanes);
        return;
    }
    if (insn->ptx->space == PTX_PARAM) {
        load_parameter(m, w, insn, lanes);
        return;
    }
    EACH_LANE(lane, lanes)
    {
        const uint8_t *at = touch(m, w, &a, lane, address_of(w, insn, 0, lane));
        for (uint32_t i = 0; at && i < insn->ptx->nelems; i++)
            vgpu_set(w->regs, insn->dst[i], lane, element_at(at + i * a.element_bytes, insn->ptx->type));
    }
    count(m, &a, lanes);
}

void vgpu_store(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    access a = access_of(insn, WRITE);
    EACH_LANE(lane, lanes)
    {
        uint8_t *at = touch(m, w, &a, lane, address_of(w, insn, 0, lane));
        for (uint32_t i = 0; at && i < insn->ptx->nelems; i++) {
            uint64_t value = vgpu_get(w->regs, insn->elems[i], lane);
            memcpy(at + i * a.element_bytes, &value, a.element_bytes);
        }
    }
    count(m, &a, lanes);
}

const uint8_t *vgpu_read_factor(vgpu_machine *m, const vgpu_warp *w, const vgpu_insn *insn, uint64_t address)
{
    enum { CHUNK_BYTES = 16 };
    access a = {.insn = insn, .bytes = CHUNK_BYTES, .element_bytes = 2, .way = READ, .is_plain = 1, .may_be_local = may_be_local(insn)};
    return touch(m, w, &a, 0, address);
}

/* What an atomic leaves behind. */
static uint64_t updated(const vgpu_insn *insn, uint64_t old, uint64_t b, uint64_t c,
                        const char **error)
{
    static const uint8_t ops[] = {[PTX_ADDS] = PTX_ADD,
                                  [PTX_MINS] = PTX_MIN,
                                  [PTX_MAXS] = PTX_MAX,
                                  [PTX_ANDS] = PTX_AND,
                                  [PTX_ORS] = PTX_OR};
    ptx_insn how = *insn->ptx;
    uint64_t args[4] = {old, b};
    if (how.mode == PTX_EXCH)
        return b;
    if (how.mode == PTX_CAS)
        return ptx_masked(how.type, old) == ptx_masked(how.type, b) ? c : old;
    how.op = ops[how.mode];
    return ptx_compute(&how, args, error);
}

void vgpu_atomic(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    access a = access_of(insn, ATOMIC);
    const char *error = NULL;
    if (w->has_fenced && !m->published)
        m->published = dlc_new_array(m->arena, uint8_t, m->nblocks);
    if (w->has_fenced)
        m->published[m->block] = 1;
    m->has_acquired = 1;
    a.bytes = a.element_bytes;
    EACH_LANE(lane, lanes)
    {
        uint64_t old = 0, result;
        uint8_t *at = touch(m, w, &a, lane, address_of(w, insn, 0, lane));
        if (!at)
            return;
        memcpy(&old, at, a.bytes);
        result = updated(insn, old, vgpu_get(w->regs, insn->src[1], lane),
                         insn->ptx->nsrc > 2 ? vgpu_get(w->regs, insn->src[2], lane) : 0, &error);
        memcpy(at, &result, a.bytes);
        if (insn->ptx->op == PTX_ATOM)
            vgpu_set(w->regs, insn->dst[0], lane, ptx_extended(insn->ptx->type, old));
    }
    if (error)
        vgpu_fail(m, w, insn, 0, VGPU_FAILED, error);
    count(m, &a, lanes);
}

/* --- asynchronous copies: until somebody waits for them, what they write is not initialised --- */
static void begin_copies(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    uint32_t bytes = (uint32_t)insn->ptx->src[2].value;
    access to = {.insn = insn, .bytes = bytes, .element_bytes = 4, .way = WRITE, .may_be_local = may_be_local(insn)}, from = to;
    from.way = READ;
    EACH_LANE(lane, lanes)
    {
        vgpu_copy copy = {.to = address_of(w, insn, 0, lane),
                          .from = address_of(w, insn, 1, lane),
                          .bytes = bytes,
                          .from_bytes = bytes,
                          .lane = lane,
                          .group = w->ncommitted[lane]};
        if (insn->ptx->nsrc > 3)
            copy.from_bytes = (uint32_t)vgpu_get(w->regs, insn->src[3], lane);
        if (copy.from_bytes > bytes || (bytes != 4 && bytes != 8 && bytes != 16)) {
            vgpu_fail(m, w, insn, lane, VGPU_FAILED, "an asynchronous copy of a size that is none");
            return;
        }
        if (!touch(m, w, &to, lane, copy.to))
            return;
        memset(to.region->written + (copy.to - to.region->base), ARRIVING, bytes);
        memset(to.region->bytes + (copy.to - to.region->base), 0xff, bytes);
        if (copy.from_bytes && !touch(m, w, &from, lane, copy.from))
            return;
        from.addresses[lane] = copy.from;
        dlc_vec_push(m->arena, &w->copies, copy);
    }
    count(m, &to, lanes);
    count(m, &from, lanes);
}

static void land(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, const vgpu_copy *copy)
{
    access to = {.insn = insn, .bytes = copy->bytes, .element_bytes = 4, .way = WRITE, .lands = 1, .may_be_local = may_be_local(insn)};
    uint8_t *at = touch(m, w, &to, copy->lane, copy->to);
    if (!at)
        return;
    const vgpu_region *from = vgpu_memory_find(m->launch->memory, copy->from);
    memset(at, 0, copy->bytes);
    if (copy->from_bytes)
        memcpy(at, from->bytes + (copy->from - from->base), copy->from_bytes);
}

/* Lanes wait until at most `open` of their groups are under way. */
static void wait_copies(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes,
                        uint32_t open)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->copies.n; i++) {
        const vgpu_copy copy = w->copies.data[i];
        int is_all = insn->ptx->mode == PTX_WAIT_ALL;
        if ((lanes >> copy.lane & 1) && (is_all || copy.group + open < w->ncommitted[copy.lane]))
            land(m, w, insn, &copy);
        else
            w->copies.data[kept++] = copy;
    }
    w->copies.n = kept;
}

void vgpu_async(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes)
{
    switch (insn->ptx->mode) {
    case PTX_COMMIT_GROUP:
        for (uint32_t lane = 0; lane < VGPU_LANES; lane++)
            w->ncommitted[lane] += lanes >> lane & 1;
        break;
    case PTX_WAIT_GROUP:
    case PTX_WAIT_ALL:
        wait_copies(m, w, insn, lanes, (uint32_t)insn->ptx->src[0].value);
        break;
    default:
        begin_copies(m, w, insn, lanes);
    }
}
