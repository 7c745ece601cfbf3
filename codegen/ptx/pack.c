/*
 * Packs: every thread of a warp has several neighbouring elements of a vector, lane l of it pack * l, pack * l + 1, …, or one
 * thread alone has 2 or 4, so that memory moves in accesses of up to 128 bits. A value of more than a warp's width, or of 2 or 4,
 * is one value per element; each function here calls the one for a single element as often as needed, once where all elements
 * are the same.
 */
#include "codegen/ptx/text.h"

enum { MOST = 4, WIDEST = 16 /* bytes of an access */ };

typedef struct {
    const char *of[MOST];
} pack;

typedef struct {
    uint32_t n;
    dlc_var of[MOST];
} pack_var;

static dlc_cuda *cuda_of(dlc_emitter *e)
{
    return (dlc_cuda *)e;
}

/* Elements of a thread. */
static uint32_t count(uint32_t width)
{
    return width < DLC_CUDA_WARP ? width : width / DLC_CUDA_WARP;
}

static int is_pack(uint32_t width)
{
    return count(width) > 1;
}

/* The place of element i among those of a vector. */
static const char *place_of(dlc_cuda *cuda, uint32_t width, uint32_t i)
{
    return width < DLC_CUDA_WARP ? dlc_arena_printf(cuda->arena, "%u", i)
                                 : dlc_arena_printf(cuda->arena, "(lane * %u + %u)", count(width), i);
}

static const pack *pack_of(dlc_val value)
{
    return (const pack *)value;
}

static dlc_val element_of(dlc_val value, uint32_t i)
{
    return value ? (dlc_val)pack_of(value)->of[i] : NULL;
}

static dlc_val splat(dlc_emitter *e, dlc_dtype dtype, dlc_val value, uint32_t width)
{
    (void)dtype;
    if (!is_pack(width))
        return value;
    pack *result = dlc_new(cuda_of(e)->arena, pack);
    for (uint32_t i = 0; i < MOST; i++)
        result->of[i] = (const char *)value;
    return (dlc_val)result;
}

static dlc_val konst(dlc_emitter *e, dlc_dtype dtype, dlc_scalar value, uint32_t width)
{
    return splat(e, dtype, cuda_of(e)->single.konst(e, dtype, value, width), width);
}

static dlc_val arith(dlc_emitter *e, dlc_expr_op op, dlc_dtype from, dlc_dtype to, uint32_t width, const dlc_val *args)
{
    dlc_cuda *cuda = cuda_of(e);
    uint32_t nargs = (uint32_t)dlc_exprs[op].nargs;
    if (!is_pack(width))
        return cuda->single.arith(e, op, from, to, width, args);
    pack *result = dlc_new(cuda->arena, pack);
    for (uint32_t i = 0; i < count(width); i++) {
        dlc_val own[4];
        int is_same = i > 0;
        for (uint32_t a = 0; a < nargs; a++) {
            own[a] = element_of(args[a], i);
            is_same &= own[a] == element_of(args[a], 0);
        }
        result->of[i] = is_same ? result->of[0] : (const char *)cuda->single.arith(e, op, from, to, DLC_CUDA_WARP, own);
    }
    return (dlc_val)result;
}

static dlc_val iota(dlc_emitter *e, uint32_t width)
{
    dlc_cuda *cuda = cuda_of(e);
    if (!is_pack(width))
        return cuda->single.iota(e, width);
    pack *result = dlc_new(cuda->arena, pack);
    for (uint32_t i = 0; i < count(width); i++)
        result->of[i] = place_of(cuda, width, i);
    return (dlc_val)result;
}

static dlc_val lane(dlc_emitter *e, dlc_dtype dtype, dlc_val value, uint32_t width, uint32_t index)
{
    dlc_cuda *cuda = cuda_of(e);
    if (width < DLC_CUDA_WARP)
        return is_pack(width) ? element_of(value, index) : value;
    if (is_pack(width))
        return cuda->single.lane(e, dtype, element_of(value, index % count(width)), DLC_CUDA_WARP, index / count(width));
    return cuda->single.lane(e, dtype, value, width, index);
}

static dlc_val part(dlc_emitter *e, dlc_val value, uint32_t i)
{
    (void)e;
    return element_of(value, i);
}

/* --- memory --- */

static dlc_access element_access(dlc_cuda *cuda, const dlc_access *access, uint32_t i)
{
    dlc_access own = *access;
    own.width = DLC_CUDA_WARP;
    own.mask = element_of(access->mask, i);
    own.passthru = element_of(access->passthru, i);
    if (access->mode == DLC_ACCESS_GATHER) {
        own.offset = element_of(access->offset, i);
    } else {
        const char *offset = access->offset ? (const char *)access->offset : "0";
        own.mode = DLC_ACCESS_GATHER;
        own.offset = (dlc_val)dlc_arena_printf(cuda->arena, "%s + %s", offset, place_of(cuda, access->width, i));
    }
    return own;
}

/* The name of a pack's type in the prelude: dlc_f32x4 is four of what f32 is in memory. */
static const char *type_name(dlc_cuda *cuda, dlc_dtype dtype, uint32_t n)
{
    const char *name = dtype == DLC_BOOL || dlc_is_code(dtype) ? "u8" : dtype == DLC_F16 || dtype == DLC_BF16 ? "u16" : dlc_dtypes[dtype].text;
    return dlc_arena_printf(cuda->arena, "%sx%u", name, n);
}

static int is_one_access(const dlc_access *access)
{
    uint32_t n = count(access->width);
    return access->mode == DLC_ACCESS_VECTOR && !access->mask && access->multiple % n == 0 &&
           dlc_dtype_bytes(access->dtype) * n <= WIDEST;
}

static dlc_val load(dlc_emitter *e, const dlc_access *access)
{
    dlc_cuda *cuda = cuda_of(e);
    uint32_t n = count(access->width);
    if (!is_pack(access->width))
        return cuda->single.load(e, access);
    pack *result = dlc_new(cuda->arena, pack);
    if (!is_one_access(access)) {
        for (uint32_t i = 0; i < n; i++) {
            dlc_access own = element_access(cuda, access, i);
            result->of[i] = (const char *)cuda->single.load(e, &own);
        }
        return (dlc_val)result;
    }
    dlc_access first = element_access(cuda, access, 0);
    const char *type = type_name(cuda, access->dtype, n);
    const char *all = dlc_arena_printf(cuda->arena, "p%u", cuda->nvalues++);
    const char *got = dlc_arena_printf(cuda->arena, "dlc_get_%s(&%s)", type, dlc_cuda_element(cuda, &first, 1));
    if (access->inside)
        got = dlc_arena_printf(cuda->arena, "%s ? %s : dlc_all_%s(%s)", (const char *)access->inside, got, type,
                               dlc_cuda_to_memory(cuda, access->dtype, konst(e, access->dtype, access->fill, 1)));
    dlc_cuda_line(cuda, "const dlc_%s %s = %s;", type, all, got);
    for (uint32_t i = 0; i < n; i++)
        result->of[i] = (const char *)dlc_cuda_value(
            cuda, access->dtype, "%s",
            dlc_cuda_from_memory(cuda, access->dtype, dlc_arena_printf(cuda->arena, "%s.v[%u]", all, i)));
    return (dlc_val)result;
}

static void store(dlc_emitter *e, const dlc_access *access, dlc_val value)
{
    dlc_cuda *cuda = cuda_of(e);
    uint32_t n = count(access->width);
    if (!is_pack(access->width)) {
        cuda->single.store(e, access, value);
        return;
    }
    if (!is_one_access(access)) {
        for (uint32_t i = 0; i < n; i++) {
            dlc_access own = element_access(cuda, access, i);
            cuda->single.store(e, &own, element_of(value, i));
        }
        return;
    }
    dlc_access first = element_access(cuda, access, 0);
    const char *values = "";
    for (uint32_t i = 0; i < n; i++)
        values = dlc_arena_printf(cuda->arena, "%s, %s", values,
                                  dlc_cuda_to_memory(cuda, access->dtype, element_of(value, i)));
    dlc_cuda_line(cuda, "dlc_put_%s(&%s%s);", type_name(cuda, access->dtype, n), dlc_cuda_element(cuda, &first, 0), values);
}

/* --- variables --- */

static dlc_var var_new(dlc_emitter *e, dlc_dtype dtype, uint32_t width)
{
    dlc_cuda *cuda = cuda_of(e);
    pack_var *var = dlc_new(cuda->arena, pack_var);
    var->n = count(width);
    for (uint32_t i = 0; i < var->n; i++)
        var->of[i] = cuda->single.var_new(e, dtype, DLC_CUDA_WARP);
    return (dlc_var)var;
}

static dlc_val var_get(dlc_emitter *e, dlc_var variable)
{
    dlc_cuda *cuda = cuda_of(e);
    const pack_var *var = (const pack_var *)variable;
    if (var->n == 1)
        return cuda->single.var_get(e, var->of[0]);
    pack *result = dlc_new(cuda->arena, pack);
    for (uint32_t i = 0; i < var->n; i++)
        result->of[i] = (const char *)cuda->single.var_get(e, var->of[i]);
    return (dlc_val)result;
}

static void var_set(dlc_emitter *e, dlc_var variable, dlc_val value)
{
    const pack_var *var = (const pack_var *)variable;
    for (uint32_t i = 0; i < var->n; i++)
        cuda_of(e)->single.var_set(e, var->of[i], var->n == 1 ? value : element_of(value, i));
}

/* --- matrices --- */

static void matrices(dlc_emitter *e, const dlc_access *access, int is_transposed, dlc_val *result)
{
    enum { REGISTERS = 4 };
    dlc_cuda *cuda = cuda_of(e);
    const char *all = dlc_arena_printf(cuda->arena, "m%u", cuda->nvalues++);
    dlc_cuda_line(cuda, "const dlc_matrices %s = dlc_%s_matrices(&%s);", all, is_transposed ? "turn" : "get",
                  dlc_cuda_element(cuda, access, 1));
    for (uint32_t i = 0; i < REGISTERS; i++)
        result[i] = (dlc_val)dlc_arena_printf(cuda->arena, "%s.v[%u]", all, i);
}

static void multiply(dlc_emitter *e, dlc_dot row, const dlc_val *a, const dlc_val *b, dlc_var top, dlc_var bottom)
{
    const pack_var *first = (const pack_var *)top, *second = (const pack_var *)bottom;
    dlc_cuda_line(cuda_of(e), "dlc_%s(&%s, &%s, &%s, &%s, %s, %s, %s, %s, %s, %s);", dlc_dots[row].text, (const char *)first->of[0],
                  (const char *)first->of[1], (const char *)second->of[0], (const char *)second->of[1], (const char *)a[0],
                  (const char *)a[1], (const char *)a[2], (const char *)a[3], (const char *)b[0], (const char *)b[1]);
}

static void fault(dlc_emitter *e, dlc_val bad, uint32_t width)
{
    dlc_cuda *cuda = cuda_of(e);
    if (!is_pack(width)) {
        cuda->single.fault(e, bad, width);
        return;
    }
    for (uint32_t i = 0; i < count(width); i++)
        if (i == 0 || element_of(bad, i) != element_of(bad, 0))
            cuda->single.fault(e, element_of(bad, i), DLC_CUDA_WARP);
}

void dlc_cuda_pack(dlc_cuda *cuda)
{
    cuda->single = cuda->base;
    cuda->base.splat = splat, cuda->base.konst = konst, cuda->base.arith = arith, cuda->base.iota = iota;
    cuda->base.lane = lane, cuda->base.part = part, cuda->base.load = load, cuda->base.store = store;
    cuda->base.var_new = var_new, cuda->base.var_get = var_get, cuda->base.var_set = var_set, cuda->base.fault = fault;
    cuda->base.matrices = matrices, cuda->base.multiply = multiply;
}
