/*
 * The emitter's table for CPUs: LLVM IR through the C API. Control flow is a stack of open loops and branches; code for an
 * outer level goes before the branch that ends its block, so hoisting is a matter of where the builder stands. Mutable
 * variables are stack slots of the entry block, which mem2reg turns into registers.
 */
#include "codegen/cpu/llvm.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "dlc/abi.h"

static dlc_cpu *cpu_of(dlc_emitter *e)
{
    return (dlc_cpu *)e;
}

LLVMTypeRef dlc_cpu_memory_type(const dlc_cpu *cpu, dlc_dtype dtype, uint32_t width)
{
    LLVMTypeRef type;
    if (dtype == DLC_F32)
        type = LLVMFloatTypeInContext(cpu->context);
    else if (dtype == DLC_F64)
        type = LLVMDoubleTypeInContext(cpu->context);
    else
        type = LLVMIntTypeInContext(cpu->context, dlc_dtypes[dtype].bits);
    return width > 1 ? LLVMVectorType(type, width) : type;
}

LLVMTypeRef dlc_cpu_type(const dlc_cpu *cpu, dlc_dtype dtype, uint32_t width)
{
    if (dtype == DLC_F16 || dtype == DLC_BF16)
        dtype = DLC_F32;
    if (dtype != DLC_BOOL)
        return dlc_cpu_memory_type(cpu, dtype, width);
    LLVMTypeRef type = LLVMInt1TypeInContext(cpu->context);
    return width > 1 ? LLVMVectorType(type, width) : type;
}

LLVMValueRef dlc_cpu_intrinsic(dlc_cpu *cpu, const char *name, const LLVMTypeRef *types, uint32_t ntypes,
                               LLVMValueRef *args, uint32_t nargs)
{
    LLVMTypeRef overloads[4];
    if (ntypes)
        memcpy(overloads, types, ntypes * sizeof *types);
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    assert(id);
    LLVMValueRef function = LLVMGetIntrinsicDeclaration(cpu->module, id, overloads, ntypes);
    LLVMTypeRef type = LLVMIntrinsicGetType(cpu->context, id, overloads, ntypes);
    return LLVMBuildCall2(cpu->builder, type, function, args, nargs, "");
}

static LLVMTypeRef pointer_type(const dlc_cpu *cpu)
{
    return LLVMPointerTypeInContext(cpu->context, 0);
}

/* --- lanes --- */

static dlc_val iota(dlc_emitter *e, uint32_t width)
{
    LLVMValueRef lanes[256];
    for (uint32_t i = 0; i < width; i++)
        lanes[i] = dlc_cpu_i64(cpu_of(e), i);
    return dlc_wrap(width > 1 ? LLVMConstVector(lanes, width) : lanes[0]);
}

static dlc_val rotate(dlc_emitter *e, dlc_dtype dtype, dlc_val value, uint32_t width, uint32_t by)
{
    dlc_cpu *cpu = cpu_of(e);
    (void)dtype;
    LLVMValueRef lanes[256], vector = dlc_llvm(value);
    for (uint32_t i = 0; i < width; i++)
        lanes[i] = LLVMConstInt(LLVMInt32TypeInContext(cpu->context), (i + by) % width, 0);
    return dlc_wrap(LLVMBuildShuffleVector(cpu->builder, vector, LLVMGetPoison(LLVMTypeOf(vector)),
                                           LLVMConstVector(lanes, width), ""));
}

/*
 * A square is turned by exchanging, for each power of two, the halves of pairs that are so far apart. Within 128 bits, by the
 * instructions that interleave: after them lane 4 q + i of vector 4 g + c is row 4 g + i at column 4 q + c.
 */
static void turn(dlc_emitter *e, uint32_t width, const dlc_val *rows, dlc_val *columns)
{
    enum { FOUR = 4, MOST = 32 };
    dlc_cpu *cpu = cpu_of(e);
    LLVMValueRef v[MOST];
    for (uint32_t g = 0; g < width; g += FOUR) {
        LLVMValueRef half[FOUR];
        for (uint32_t k = 0; k < FOUR; k++) { /* rows 0 and 2, or 1 and 3, whose lanes 0 and 1, or 2 and 3, alternate */
            uint32_t lanes[MOST];
            for (uint32_t i = 0; i < width; i++)
                lanes[i] = i / FOUR * FOUR + k / 2 * 2 + i % FOUR / 2 + i % 2 * width;
            half[k] = dlc_cpu_pick(cpu, dlc_llvm(rows[g + k % 2]), dlc_llvm(rows[g + k % 2 + 2]), width, lanes);
        }
        for (uint32_t c = 0; c < FOUR; c++) {
            uint32_t lanes[MOST];
            for (uint32_t i = 0; i < width; i++)
                lanes[i] = i / FOUR * FOUR + c % 2 * 2 + i % FOUR / 2 + i % 2 * width;
            v[g + c] = dlc_cpu_pick(cpu, half[c / 2 * 2], half[c / 2 * 2 + 1], width, lanes);
        }
    }
    for (uint32_t apart = FOUR; apart < width; apart *= 2)
        for (uint32_t r = 0; r < width; r++) {
            uint32_t low[MOST], high[MOST];
            if (r & apart)
                continue;
            for (uint32_t i = 0; i < width; i++) {
                low[i] = i & apart ? width + i - apart : i;
                high[i] = i & apart ? width + i : i + apart;
            }
            LLVMValueRef a = v[r], b = v[r + apart];
            v[r] = dlc_cpu_pick(cpu, a, b, width, low);
            v[r + apart] = dlc_cpu_pick(cpu, a, b, width, high);
        }
    for (uint32_t c = 0; c < width; c++)
        columns[c] = dlc_wrap(v[c]);
}

static dlc_val lane(dlc_emitter *e, dlc_dtype dtype, dlc_val value, uint32_t width, uint32_t index)
{
    (void)width;
    dlc_cpu *cpu = cpu_of(e);
    (void)dtype;
    if (LLVMGetTypeKind(LLVMTypeOf(dlc_llvm(value))) != LLVMVectorTypeKind)
        return value;
    return dlc_wrap(LLVMBuildExtractElement(cpu->builder, dlc_llvm(value), dlc_cpu_i64(cpu, index), ""));
}

static dlc_val symbol(dlc_emitter *e, uint32_t id)
{
    dlc_cpu *cpu = cpu_of(e);
    LLVMValueRef index = dlc_cpu_i64(cpu, id);
    LLVMValueRef at = LLVMBuildGEP2(cpu->builder, dlc_cpu_i64_type(cpu), cpu->symbols, &index, 1, "");
    return dlc_wrap(LLVMBuildLoad2(cpu->builder, dlc_cpu_i64_type(cpu), at, ""));
}

/* --- memory --- */

/* A constant array of `width` copies of a value: what guarded-off vectors read. */
static LLVMValueRef fill_of(dlc_cpu *cpu, dlc_dtype dtype, dlc_scalar value, uint32_t width)
{
    for (uint32_t i = 0; i < cpu->fills.n; i++) {
        const dlc_fill *fill = &cpu->fills.data[i];
        if (fill->dtype == dtype && fill->width >= width && !memcmp(&fill->value, &value, sizeof value))
            return fill->global;
    }
    uint8_t element[16] = {0};
    LLVMTypeRef type = dlc_cpu_memory_type(cpu, dtype, 1);
    LLVMValueRef lanes[256], one;
    dlc_scalar_write(dtype, element, value);
    if (dlc_is_float(dtype) && dlc_dtypes[dtype].bits >= 32) {
        one = LLVMConstReal(type, value.f);
    } else {
        uint64_t bits = 0;
        memcpy(&bits, element, dlc_dtype_bytes(dtype));
        one = LLVMConstInt(type, bits, 0);
    }
    for (uint32_t i = 0; i < width; i++)
        lanes[i] = one;
    LLVMValueRef data = LLVMConstArray2(type, lanes, width);
    LLVMValueRef global = LLVMAddGlobal(cpu->module, LLVMTypeOf(data), "fill");
    LLVMSetInitializer(global, data);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetAlignment(global, 64);
    dlc_vec_push(cpu->arena, &cpu->fills, ((dlc_fill){dtype, value, width, global}));
    return global;
}

static LLVMValueRef offset_by(dlc_cpu *cpu, LLVMTypeRef type, LLVMValueRef pointer, LLVMValueRef index)
{
    return LLVMBuildGEP2(cpu->builder, type, pointer, &index, 1, "");
}

LLVMValueRef dlc_cpu_copied_to_lanes(LLVMValueRef v)
{
    if (!LLVMIsAShuffleVectorInst(v) || !LLVMIsAInsertElementInst(LLVMGetOperand(v, 0)))
        return NULL;
    for (unsigned i = 0; i < LLVMGetNumMaskElements(v); i++)
        if (LLVMGetMaskValue(v, i) != 0)
            return NULL;
    return LLVMGetOperand(LLVMGetOperand(v, 0), 1);
}

/* What is the same for all lanes moves the pointer, and what is left is often known to fit 32 bits: gathers are half as many then. */
static LLVMValueRef gathered_from(dlc_cpu *cpu, LLVMTypeRef type, LLVMValueRef pointer, LLVMValueRef offset)
{
    for (unsigned i = 0; LLVMIsAInstruction(offset) && LLVMGetInstructionOpcode(offset) == LLVMAdd && i < 2; i++) {
        LLVMValueRef same = dlc_cpu_copied_to_lanes(LLVMGetOperand(offset, i));
        if (same)
            return offset_by(cpu, type, offset_by(cpu, type, pointer, same), LLVMGetOperand(offset, 1 - i));
    }
    return offset_by(cpu, type, pointer, offset);
}

LLVMValueRef dlc_cpu_address(dlc_cpu *cpu, const dlc_access *access)
{
    LLVMTypeRef type = dlc_cpu_memory_type(cpu, access->dtype, 1);
    LLVMValueRef pointer;
    if (access->mem == DLC_MEM_SCRATCH)
        pointer = offset_by(cpu, LLVMInt8TypeInContext(cpu->context), cpu->scratch, dlc_llvm(access->bytes));
    else
        pointer = cpu->buffers[access->buffer];
    if (access->offset && (access->mode < DLC_ACCESS_GATHER || access->row))
        pointer = offset_by(cpu, type, pointer, dlc_llvm(access->offset));
    if (access->disp)
        pointer = offset_by(cpu, type, pointer, dlc_cpu_i64(cpu, access->disp));
    if (access->offset && access->mode == DLC_ACCESS_GATHER && !access->row)
        pointer = gathered_from(cpu, type, pointer, dlc_llvm(access->offset));
    if (access->inside && access->mode != DLC_ACCESS_GATHER)
        pointer = LLVMBuildSelect(cpu->builder, dlc_llvm(access->inside), pointer,
                                  fill_of(cpu, access->dtype, access->fill, access->width), "");
    return pointer;
}

uint32_t dlc_cpu_alignment(const dlc_access *access)
{
    uint32_t bytes = dlc_dtype_bytes(access->dtype);
    if (!access->aligned || access->mode != DLC_ACCESS_VECTOR)
        return bytes;
    return bytes * access->width > 64 ? 64 : bytes * access->width;
}

static LLVMValueRef all_lanes(const dlc_cpu *cpu, uint32_t width)
{
    return LLVMConstAllOnes(dlc_cpu_type(cpu, DLC_BOOL, width));
}

/* The type of what is loaded or stored. */
static dlc_dtype accessed(const dlc_access *access)
{
    return !access->granule ? access->dtype : access->granule * dlc_dtype_bytes(access->dtype) == 2 ? DLC_I16 : DLC_I32;
}

/* --- masks ---
 * LLVM 19 cuts accesses wider than a register, and takes a half whose mask it knows to be false for one whose mask is true. So
 * they are cut here, by the masks' own structure: what is known of a half is a constant then. */

/* These lanes of the mask; its width stands for one that is off. */
static LLVMValueRef picked_mask(const dlc_cpu *cpu, LLVMValueRef mask, LLVMValueRef *index, uint32_t n)
{
    if (LLVMIsConstant(mask) || !LLVMIsABinaryOperator(mask) || LLVMGetInstructionOpcode(mask) != LLVMAnd)
        return LLVMBuildShuffleVector(cpu->builder, mask, LLVMConstNull(LLVMTypeOf(mask)), LLVMConstVector(index, n), "");
    LLVMValueRef a = picked_mask(cpu, LLVMGetOperand(mask, 0), index, n), b = picked_mask(cpu, LLVMGetOperand(mask, 1), index, n);
    LLVMValueRef all = all_lanes(cpu, n);
    if (LLVMIsNull(a) || b == all)
        return a;
    return LLVMIsNull(b) || a == all ? b : LLVMBuildAnd(cpu->builder, a, b, "");
}

static LLVMValueRef mask_of_lanes(const dlc_cpu *cpu, LLVMValueRef mask, uint32_t first, uint32_t n)
{
    LLVMValueRef index[64];
    for (uint32_t i = 0; i < n; i++)
        index[i] = dlc_cpu_i32(cpu, first + i);
    return picked_mask(cpu, mask, index, n);
}

/* Elements of a piece of the access. */
static uint32_t piece_of(const dlc_cpu *cpu, dlc_dtype dtype, const dlc_access *access)
{
    uint32_t bytes = cpu->base.target->vector_bytes, n = bytes / dlc_dtype_bytes(dtype);
    int is_cut = bytes < 64 && access->mode != DLC_ACCESS_GATHER && access->width > n && access->width % n == 0;
    return is_cut ? n : access->width;
}

/* Masked lanes read as zero in memory's type. */
static LLVMValueRef load_piece(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef pointer, LLVMValueRef mask, uint32_t n)
{
    LLVMTypeRef type = dlc_cpu_memory_type(cpu, accessed(access), n);
    LLVMTypeRef types[] = {type, LLVMTypeOf(pointer)};
    uint32_t align = n == access->width ? dlc_cpu_alignment(access) : dlc_dtype_bytes(access->dtype);
    LLVMValueRef args[] = {pointer, dlc_cpu_i32(cpu, align), mask, LLVMConstNull(type)};
    if (LLVMIsNull(mask))
        return LLVMConstNull(type);
    if (mask == all_lanes(cpu, n) && access->mode != DLC_ACCESS_GATHER) {
        LLVMValueRef value = LLVMBuildLoad2(cpu->builder, type, pointer, "");
        LLVMSetAlignment(value, align);
        return value;
    }
    return dlc_cpu_intrinsic(cpu, access->mode == DLC_ACCESS_GATHER ? "llvm.masked.gather" : "llvm.masked.load", types, 2, args, 4);
}

static LLVMValueRef joined(const dlc_cpu *cpu, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef index[128];
    uint32_t na = LLVMGetVectorSize(LLVMTypeOf(a)), nb = LLVMGetVectorSize(LLVMTypeOf(b));
    for (uint32_t i = 0; i < na + nb; i++)
        index[i] = dlc_cpu_i32(cpu, i);
    if (na > nb) { /* both sides of a shuffle have one type */
        LLVMValueRef wide[128];
        for (uint32_t i = 0; i < na; i++)
            wide[i] = dlc_cpu_i32(cpu, i < nb ? i : nb);
        b = LLVMBuildShuffleVector(cpu->builder, b, LLVMConstNull(LLVMTypeOf(b)), LLVMConstVector(wide, na), "");
    }
    return LLVMBuildShuffleVector(cpu->builder, a, b, LLVMConstVector(index, na + nb), "");
}

static LLVMValueRef masked_load(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef pointer, LLVMValueRef mask)
{
    uint32_t n = piece_of(cpu, accessed(access), access);
    LLVMValueRef all = NULL;
    if (n == access->width)
        return load_piece(cpu, access, pointer, mask, n);
    for (uint32_t first = 0; first < access->width; first += n) {
        LLVMValueRef at = offset_by(cpu, dlc_cpu_memory_type(cpu, accessed(access), 1), pointer, dlc_cpu_i64(cpu, first));
        LLVMValueRef piece = load_piece(cpu, access, at, mask_of_lanes(cpu, mask, first, n), n);
        all = all ? joined(cpu, all, piece) : piece;
    }
    return all;
}

/* Each half of the table lies in two registers; a byte's highest bit says which half it means. */
static LLVMValueRef looked_up(dlc_cpu *cpu, LLVMValueRef table, LLVMValueRef bytes)
{
    enum { LANES = 64, HALF = DLC_LOOKUP / 2 };
    LLVMTypeRef byte = LLVMInt8TypeInContext(cpu->context), vector = LLVMVectorType(byte, LANES);
    uint32_t width = LLVMGetVectorSize(LLVMTypeOf(bytes));
    LLVMValueRef halves[2], index = bytes;
    if (width < LANES) {
        LLVMValueRef lanes[LANES];
        for (uint32_t i = 0; i < LANES; i++)
            lanes[i] = dlc_cpu_i32(cpu, i < width ? i : width);
        index = LLVMBuildShuffleVector(cpu->builder, bytes, LLVMConstNull(LLVMTypeOf(bytes)), LLVMConstVector(lanes, LANES), "");
    }
    for (uint32_t h = 0; h < 2; h++) {
        LLVMValueRef parts[2];
        for (uint32_t i = 0; i < 2; i++) {
            parts[i] = LLVMBuildLoad2(cpu->builder, vector, offset_by(cpu, byte, table, dlc_cpu_i64(cpu, h * HALF + i * LANES)), "");
            LLVMSetAlignment(parts[i], 1);
        }
        halves[h] = dlc_cpu_intrinsic(cpu, "llvm.x86.avx512.vpermi2var.qi.512", NULL, 0,
                                      (LLVMValueRef[]){parts[0], index, parts[1]}, 3);
    }
    LLVMValueRef is_high = LLVMBuildICmp(cpu->builder, LLVMIntSLT, index, LLVMConstNull(vector), "");
    LLVMValueRef value = LLVMBuildSelect(cpu->builder, is_high, halves[1], halves[0], "");
    cpu->facts |= DLC_HAS_VBMI;
    return width < LANES ? dlc_cpu_lanes(cpu, value, 0, width) : value;
}

/* --- rows in registers --- */

/* Elements [first, first + width) of the row, 0 behind its end. */
static LLVMValueRef part_of_row(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef pointer, uint32_t first)
{
    LLVMTypeRef type = dlc_cpu_memory_type(cpu, DLC_F32, access->width), i1 = LLVMInt1TypeInContext(cpu->context);
    LLVMValueRef lanes[64], at = offset_by(cpu, dlc_cpu_memory_type(cpu, DLC_F32, 1), pointer, dlc_cpu_i64(cpu, first));
    for (uint32_t i = 0; i < access->width; i++)
        lanes[i] = LLVMConstInt(i1, first + i < access->row, 0);
    LLVMTypeRef types[] = {type, LLVMTypeOf(pointer)};
    LLVMValueRef args[] = {at, dlc_cpu_i32(cpu, 4), LLVMConstVector(lanes, access->width), LLVMConstNull(type)};
    return dlc_cpu_intrinsic(cpu, "llvm.masked.load", types, 2, args, 4);
}

LLVMValueRef dlc_cpu_permuted(dlc_cpu *cpu, uint32_t width, LLVMValueRef floats, LLVMValueRef from)
{
    LLVMValueRef args[] = {floats, from};
    return dlc_cpu_intrinsic(cpu, width == 16 ? "llvm.x86.avx512.permvar.sf.512" : "llvm.x86.avx2.permps", NULL, 0, args, 2);
}

static LLVMValueRef picked(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef pointer)
{
    LLVMTypeRef numbers = LLVMVectorType(LLVMInt32TypeInContext(cpu->context), access->width);
    LLVMValueRef pick = LLVMBuildTrunc(cpu->builder, dlc_llvm(access->pick), numbers, ""), low = part_of_row(cpu, access, pointer, 0);
    int is_wide = access->width == 16, is_long = access->row > access->width;
    if (!is_long)
        return dlc_cpu_permuted(cpu, access->width, low, pick);
    LLVMValueRef high = part_of_row(cpu, access, pointer, access->width), both[] = {low, pick, high};
    if (is_wide)
        return dlc_cpu_intrinsic(cpu, "llvm.x86.avx512.vpermi2var.ps.512", NULL, 0, both, 3);
    LLVMValueRef end = dlc_llvm(dlc_cpu_konst(&cpu->base, DLC_I32, (dlc_scalar){.i = access->width}, access->width));
    LLVMValueRef is_low = LLVMBuildICmp(cpu->builder, LLVMIntULT, pick, end, "");
    return LLVMBuildSelect(cpu->builder, is_low, dlc_cpu_permuted(cpu, access->width, low, pick),
                           dlc_cpu_permuted(cpu, access->width, high, pick), "");
}

/* Lanes that the mask has off are 0, as gathered ones; no memory is touched for any lane. */
static LLVMValueRef picked_load(dlc_cpu *cpu, const dlc_access *access, LLVMTypeRef type, LLVMValueRef pointer, LLVMValueRef mask)
{
    LLVMValueRef value = LLVMBuildBitCast(cpu->builder, picked(cpu, access, pointer), type, "");
    return mask ? LLVMBuildSelect(cpu->builder, mask, value, LLVMConstNull(type), "") : value;
}

/* --- lanes at equal distances ---
 * Vectors of neighbours, of which every second, third or fourth is taken. (On Zen 5 a gather of 8 lanes takes 80 cycles.) */

/* Those of the part's elements that a lane takes, and which the mask has on. */
static LLVMValueRef mask_of_part(const dlc_cpu *cpu, const dlc_access *access, LLVMValueRef mask, uint32_t part)
{
    LLVMValueRef index[64];
    for (uint32_t i = 0; i < access->width; i++) {
        uint32_t at = part * access->width + i;
        index[i] = dlc_cpu_i32(cpu, at % access->stride ? access->width : at / access->stride);
    }
    return picked_mask(cpu, mask, index, access->width);
}

/* The last part of those that have all lanes, or none, ends where the last lane's element does. */
static LLVMValueRef strided_load(dlc_cpu *cpu, const dlc_access *access, LLVMTypeRef type, LLVMValueRef mask)
{
    uint32_t n = access->width, last = access->stride - 1, back = access->mask ? 0 : last;
    dlc_access first = *access;
    LLVMTypeRef one = dlc_cpu_memory_type(cpu, access->dtype, 1);
    LLVMValueRef index[64], all = NULL;
    first.mode = DLC_ACCESS_VECTOR;
    first.offset = access->first;
    LLVMValueRef pointer = dlc_cpu_address(cpu, &first);
    for (uint32_t part = 0; part <= last; part++) {
        LLVMValueRef at = offset_by(cpu, one, pointer, dlc_cpu_i64(cpu, part * n - (part == last ? back : 0)));
        LLVMValueRef of_part = access->mask ? mask_of_part(cpu, access, mask, part) : mask;
        LLVMValueRef value = of_part ? masked_load(cpu, &first, at, of_part) : LLVMBuildLoad2(cpu->builder, type, at, "");
        if (!mask)
            LLVMSetAlignment(value, dlc_dtype_bytes(access->dtype));
        all = all ? joined(cpu, all, value) : value;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i * access->stride;
        index[i] = dlc_cpu_i32(cpu, at >= last * n ? at + back : at);
    }
    return LLVMBuildShuffleVector(cpu->builder, all, LLVMGetPoison(LLVMTypeOf(all)), LLVMConstVector(index, n), "");
}

static int is_strided(const dlc_access *access, LLVMValueRef mask)
{
    int is_small = dlc_dtype_bytes(access->dtype) < 4; /* masked loads of those are branches, element by element */
    return access->mode == DLC_ACCESS_GATHER && access->stride && !access->row && !((mask || access->inside) && is_small) &&
           access->stride * access->width <= 128 && access->width <= 64;
}

/* --- few elements for many lanes --- */

static LLVMValueRef spread_load(dlc_cpu *cpu, const dlc_access *access, LLVMTypeRef type, LLVMValueRef pointer, LLVMValueRef mask)
{
    LLVMValueRef lanes[64];
    for (uint32_t l = 0; l < access->width; l++)
        lanes[l] = LLVMConstInt(LLVMInt1TypeInContext(cpu->context), l < access->row, 0);
    LLVMValueRef value = masked_load(cpu, access, pointer, LLVMConstVector(lanes, access->width));
    for (uint32_t l = 0; l < access->width; l++)
        lanes[l] = dlc_cpu_i32(cpu, access->numbers[l]);
    value = LLVMBuildShuffleVector(cpu->builder, value, LLVMGetPoison(type), LLVMConstVector(lanes, access->width), "");
    return mask ? LLVMBuildSelect(cpu->builder, mask, value, LLVMConstNull(type), "") : value;
}

/* Lanes that are masked are zero. */
static void note_limit(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef value)
{
    const dlc_buffer *buffer = access->mem == DLC_MEM_BUFFER ? &cpu->kernel->buffers.data[access->buffer] : NULL;
    if (buffer && buffer->is_bounded && access->dtype == DLC_F32 && access->width > 1)
        dlc_vec_push(cpu->arena, &cpu->limited, ((dlc_limited){value, ldexp(1, buffer->bound_log2)}));
}

static dlc_val load(dlc_emitter *e, const dlc_access *access)
{
    dlc_cpu *cpu = cpu_of(e);
    if (access->mode == DLC_ACCESS_LOOKUP)
        return dlc_wrap(dlc_cpu_from_memory(cpu, access->dtype, access->width,
                                            looked_up(cpu, dlc_cpu_address(cpu, access), dlc_llvm(access->offset))));
    LLVMTypeRef type = dlc_cpu_memory_type(cpu, accessed(access), access->width);
    LLVMValueRef mask = dlc_llvm(access->mask), value, other = dlc_llvm(access->passthru);
    if (access->mode == DLC_ACCESS_GATHER && access->inside) {
        LLVMValueRef inside = dlc_llvm(dlc_cpu_splat(e, DLC_BOOL, access->inside, access->width));
        mask = mask ? LLVMBuildAnd(cpu->builder, mask, inside, "") : inside;
        other = other ? other : dlc_llvm(dlc_cpu_konst(e, access->dtype, access->fill, access->width));
    }
    LLVMValueRef pointer = dlc_cpu_address(cpu, access);
    if (access->mode == DLC_ACCESS_GATHER && !mask && !access->row && !is_strided(access, NULL))
        mask = all_lanes(cpu, access->width);
    if (access->mode == DLC_ACCESS_SPREAD) {
        value = spread_load(cpu, access, type, pointer, mask);
    } else if (is_strided(access, dlc_llvm(access->mask))) {
        value = strided_load(cpu, access, type, mask);
    } else if (access->row) {
        value = picked_load(cpu, access, type, pointer, mask);
    } else if (mask && access->mode != DLC_ACCESS_UNIFORM) {
        value = masked_load(cpu, access, pointer, mask);
    } else {
        value = LLVMBuildLoad2(cpu->builder, type, pointer, "");
        LLVMSetAlignment(value, dlc_cpu_alignment(access));
    }
    value = dlc_cpu_from_memory(cpu, accessed(access), access->width, value);
    note_limit(cpu, access, value);
    if (mask && other)
        value = LLVMBuildSelect(cpu->builder, mask, value, other, "");
    return dlc_wrap(value);
}

static void fetch(dlc_emitter *e, const dlc_access *access)
{
    enum { READ = 0, TO_L2 = 2, DATA = 1 };
    dlc_cpu *cpu = cpu_of(e);
    LLVMValueRef pointer = dlc_cpu_address(cpu, access);
    LLVMTypeRef type = LLVMTypeOf(pointer);
    LLVMValueRef args[] = {pointer, dlc_cpu_i32(cpu, READ), dlc_cpu_i32(cpu, TO_L2), dlc_cpu_i32(cpu, DATA)};
    dlc_cpu_intrinsic(cpu, "llvm.prefetch", &type, 1, args, 4);
}

int dlc_cpu_is_x86(const dlc_cpu *cpu)
{
    return strncmp(cpu->base.target->triple, "x86_64", 6) == 0;
}

int dlc_cpu_is_avx512(const dlc_cpu *cpu)
{
    enum { ZMM_BYTES = 64 };
    return cpu->base.target->vector_bytes == ZMM_BYTES;
}

/* How many lanes a mask has that is known to be the first ones; 0: it is another, or not known. */
static uint32_t first_lanes(LLVMValueRef mask, uint32_t width)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < width; i++) {
        LLVMValueRef lane = LLVMIsConstant(mask) ? LLVMGetAggregateElement(mask, i) : NULL;
        if (!lane || !LLVMIsAConstantInt(lane))
            return 0;
        if (LLVMConstIntGetZExtValue(lane) && n++ < i)
            return 0;
    }
    return n;
}

/* Of 7 by 4, 2 and 1: without registers for masks a masked store takes as long as a dozen of these (Zen 3). */
static void store_first_lanes(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef value, LLVMValueRef pointer, uint32_t n)
{
    LLVMTypeRef type = dlc_cpu_memory_type(cpu, accessed(access), 1);
    uint32_t count = LLVMGetVectorSize(LLVMTypeOf(value));
    for (uint32_t first = 0; first < n; first += count) {
        while (count > n - first)
            count /= 2;
        LLVMValueRef part = count > 1 ? dlc_cpu_lanes(cpu, value, first, count)
                                      : LLVMBuildExtractElement(cpu->builder, value, dlc_cpu_i32(cpu, first), "");
        LLVMValueRef at = LLVMBuildStore(cpu->builder, part, offset_by(cpu, type, pointer, dlc_cpu_i64(cpu, first)));
        LLVMSetAlignment(at, dlc_dtype_bytes(access->dtype));
    }
}

static void store_piece(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef value, LLVMValueRef pointer, LLVMValueRef mask, uint32_t n)
{
    LLVMTypeRef types[] = {LLVMTypeOf(value), LLVMTypeOf(pointer)};
    uint32_t align = n == access->width ? dlc_cpu_alignment(access) : dlc_dtype_bytes(access->dtype);
    LLVMValueRef args[] = {value, pointer, dlc_cpu_i32(cpu, align), mask};
    if (LLVMIsNull(mask))
        return;
    uint32_t nfirst = access->mode == DLC_ACCESS_VECTOR && !dlc_cpu_is_avx512(cpu) ? first_lanes(mask, n) : 0;
    if (nfirst) {
        store_first_lanes(cpu, access, value, pointer, nfirst);
        return;
    }
    dlc_cpu_intrinsic(cpu, access->mode == DLC_ACCESS_GATHER ? "llvm.masked.scatter" : "llvm.masked.store", types, 2, args, 4);
}

static void masked_store(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef value, LLVMValueRef pointer, LLVMValueRef mask)
{
    uint32_t n = piece_of(cpu, accessed(access), access);
    LLVMTypeRef type = dlc_cpu_memory_type(cpu, accessed(access), 1);
    if (n == access->width) {
        store_piece(cpu, access, value, pointer, mask, n);
        return;
    }
    for (uint32_t first = 0; first < access->width; first += n)
        store_piece(cpu, access, dlc_cpu_lanes(cpu, value, first, n), offset_by(cpu, type, pointer, dlc_cpu_i64(cpu, first)),
                    mask_of_lanes(cpu, mask, first, n), n);
}

/* --- variables --- */

enum { VAR_ALIGN = 64 }; /* of those aside */

static dlc_var var_new(dlc_emitter *e, dlc_dtype dtype, uint32_t width)
{
    dlc_cpu *cpu = cpu_of(e);
    LLVMPositionBuilderBefore(cpu->builder, LLVMGetBasicBlockTerminator(cpu->entry));
    LLVMValueRef slot = LLVMBuildAlloca(cpu->builder, dlc_cpu_type(cpu, dtype, width), "");
    LLVMPositionBuilderAtEnd(cpu->builder, cpu->block);
    return (dlc_var)slot;
}

/* As an array of one it is none that mem2reg takes, and the frame is aligned for it from the start, for what is spilled too. */
static dlc_var var_aside(dlc_emitter *e, dlc_dtype dtype, uint32_t width)
{
    dlc_cpu *cpu = cpu_of(e);
    LLVMTypeRef type = dlc_cpu_type(cpu, dtype, width);
    LLVMPositionBuilderBefore(cpu->builder, LLVMGetBasicBlockTerminator(cpu->entry));
    LLVMValueRef slot = LLVMBuildAlloca(cpu->builder, LLVMArrayType2(type, 1), "");
    LLVMSetAlignment(slot, VAR_ALIGN);
    LLVMPositionBuilderAtEnd(cpu->builder, cpu->block);
    return (dlc_var)slot;
}

static dlc_val var_get(dlc_emitter *e, dlc_var var)
{
    LLVMValueRef slot = (LLVMValueRef)var;
    LLVMTypeRef type = LLVMGetAllocatedType(slot);
    int is_aside = LLVMGetTypeKind(type) == LLVMArrayTypeKind;
    LLVMValueRef value = LLVMBuildLoad2(cpu_of(e)->builder, is_aside ? LLVMGetElementType(type) : type, slot, "");
    if (is_aside)
        LLVMSetAlignment(value, VAR_ALIGN);
    return dlc_wrap(value);
}

static void var_set(dlc_emitter *e, dlc_var var, dlc_val value)
{
    LLVMValueRef slot = (LLVMValueRef)var, store = LLVMBuildStore(cpu_of(e)->builder, dlc_llvm(value), slot);
    if (LLVMGetTypeKind(LLVMGetAllocatedType(slot)) == LLVMArrayTypeKind)
        LLVMSetAlignment(store, VAR_ALIGN);
}

/* --- control flow --- */

static LLVMBasicBlockRef new_block(dlc_cpu *cpu)
{
    return LLVMAppendBasicBlockInContext(cpu->context, cpu->function, "");
}

/* What is computed in a branch that is always taken is known to LLVM behind it. */
static dlc_open *open_level(dlc_cpu *cpu, LLVMValueRef condition)
{
    dlc_open *open = &cpu->open[++cpu->level];
    *open = (dlc_open){.body = new_block(cpu)};
    open->exit = new_block(cpu);
    int is_taken = LLVMIsAConstantInt(condition) && LLVMConstIntGetZExtValue(condition);
    open->outer_branch = is_taken ? LLVMBuildBr(cpu->builder, open->body) : LLVMBuildCondBr(cpu->builder, condition, open->body, open->exit);
    cpu->block = open->body;
    LLVMPositionBuilderAtEnd(cpu->builder, open->body);
    return open;
}

static dlc_val loop_begin(dlc_emitter *e, dlc_val lo, dlc_val hi, int64_t step)
{
    dlc_cpu *cpu = cpu_of(e);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(cpu->builder);
    LLVMValueRef first = dlc_llvm(lo);
    dlc_open *open = open_level(cpu, LLVMBuildICmp(cpu->builder, LLVMIntSLT, first, dlc_llvm(hi), ""));
    open->index = LLVMBuildPhi(cpu->builder, dlc_cpu_i64_type(cpu), "");
    open->hi = dlc_llvm(hi);
    open->step = step;
    LLVMAddIncoming(open->index, &first, &before, 1);
    return dlc_wrap(open->index);
}

static void close_level(dlc_cpu *cpu)
{
    const dlc_open *open = &cpu->open[cpu->level--];
    LLVMMoveBasicBlockAfter(open->exit, cpu->block);
    cpu->block = open->exit;
    LLVMPositionBuilderAtEnd(cpu->builder, open->exit);
}

static void loop_end(dlc_emitter *e)
{
    dlc_cpu *cpu = cpu_of(e);
    const dlc_open *open = &cpu->open[cpu->level];
    LLVMValueRef next = LLVMBuildNSWAdd(cpu->builder, open->index, dlc_cpu_i64(cpu, open->step), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(cpu->builder);
    LLVMValueRef again = LLVMBuildICmp(cpu->builder, LLVMIntSLT, next, open->hi, "");
    LLVMBuildCondBr(cpu->builder, again, open->body, open->exit);
    LLVMAddIncoming(open->index, &next, &latch, 1);
    close_level(cpu);
}

static void if_begin(dlc_emitter *e, dlc_val condition)
{
    open_level(cpu_of(e), dlc_llvm(condition));
}

static void if_end(dlc_emitter *e)
{
    dlc_cpu *cpu = cpu_of(e);
    LLVMBuildBr(cpu->builder, cpu->open[cpu->level].exit);
    close_level(cpu);
}

/* Narrow lanes a few elements apart are a part of one vector, where masks have a bit for each byte: scattered, they go one by one. */
static int is_part_of_vector(const dlc_cpu *cpu, const dlc_access *access)
{
    enum { ALL_MASKS = 64 };
    uint32_t bytes = dlc_dtype_bytes(access->dtype);
    return access->mode == DLC_ACCESS_GATHER && access->first && !access->mask && bytes < 4 && dlc_cpu_is_x86(cpu) &&
           cpu->base.target->vector_bytes == ALL_MASKS && access->stride * access->width * bytes <= ALL_MASKS;
}

static void strided_store(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef value)
{
    uint32_t n = cpu->base.target->vector_bytes / dlc_dtype_bytes(access->dtype);
    LLVMTypeRef i1 = LLVMInt1TypeInContext(cpu->context);
    LLVMValueRef from[64], on[64];
    dlc_access vector = *access;
    for (uint32_t i = 0; i < n; i++) {
        int is_lane = i % access->stride == 0 && i / access->stride < access->width;
        from[i] = dlc_cpu_i32(cpu, is_lane ? i / access->stride : 0);
        on[i] = LLVMConstInt(i1, (unsigned)is_lane, 0);
    }
    vector.mode = DLC_ACCESS_VECTOR;
    vector.offset = access->first;
    value = LLVMBuildShuffleVector(cpu->builder, value, LLVMGetPoison(LLVMTypeOf(value)), LLVMConstVector(from, n), "");
    LLVMValueRef pointer = dlc_cpu_address(cpu, &vector);
    LLVMTypeRef types[] = {LLVMTypeOf(value), LLVMTypeOf(pointer)};
    LLVMValueRef args[] = {value, pointer, dlc_cpu_i32(cpu, dlc_dtype_bytes(access->dtype)), LLVMConstVector(on, n)};
    dlc_cpu_intrinsic(cpu, "llvm.masked.store", types, 2, args, 4);
}

static void store(dlc_emitter *e, const dlc_access *access, dlc_val stored)
{
    dlc_cpu *cpu = cpu_of(e);
    if (!access->granule && dlc_cpu_store_rounded(cpu, access, dlc_llvm(stored)))
        return;
    LLVMValueRef value = dlc_cpu_to_memory(cpu, accessed(access), access->width, dlc_llvm(stored));
    LLVMValueRef pointer = dlc_cpu_address(cpu, access), mask = dlc_llvm(access->mask);
    if (is_part_of_vector(cpu, access)) {
        strided_store(cpu, access, value);
        return;
    }
    if (access->mode == DLC_ACCESS_GATHER || (mask && access->mode == DLC_ACCESS_VECTOR)) {
        masked_store(cpu, access, value, pointer, mask ? mask : all_lanes(cpu, access->width));
        return;
    }
    if (access->nontemporal && access->mode == DLC_ACCESS_VECTOR && dlc_cpu_is_x86(cpu))
        dlc_cpu_store_nontemporal(cpu, access, value, pointer, dlc_cpu_alignment(access));
    else
        LLVMSetAlignment(LLVMBuildStore(cpu->builder, value, pointer), dlc_cpu_alignment(access));
}

static void position(dlc_emitter *e, uint32_t level)
{
    dlc_cpu *cpu = cpu_of(e);
    if (level < cpu->level)
        LLVMPositionBuilderBefore(cpu->builder, cpu->open[level + 1].outer_branch);
    else
        LLVMPositionBuilderAtEnd(cpu->builder, cpu->block);
}

/* The variable that faults are gathered in, which few functions have; what is being emitted goes on where it was. */
static LLVMValueRef faulty(dlc_cpu *cpu)
{
    if (cpu->is_faulty)
        return cpu->is_faulty;
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(cpu->context);
    LLVMTypeRef bit = LLVMInt1TypeInContext(cpu->context);
    LLVMPositionBuilderBefore(builder, LLVMGetBasicBlockTerminator(cpu->entry));
    cpu->is_faulty = LLVMBuildAlloca(builder, bit, "");
    LLVMBuildStore(builder, LLVMConstInt(bit, 0, 0), cpu->is_faulty);
    LLVMDisposeBuilder(builder);
    return cpu->is_faulty;
}

static void fault(dlc_emitter *e, dlc_val bad, uint32_t width)
{
    dlc_cpu *cpu = cpu_of(e);
    LLVMValueRef any = dlc_llvm(bad);
    if (width > 1) {
        LLVMTypeRef type = LLVMTypeOf(any);
        any = dlc_cpu_intrinsic(cpu, "llvm.vector.reduce.or", &type, 1, &any, 1);
    }
    LLVMTypeRef bit = LLVMInt1TypeInContext(cpu->context);
    LLVMValueRef before = LLVMBuildLoad2(cpu->builder, bit, faulty(cpu), "");
    LLVMBuildStore(cpu->builder, LLVMBuildOr(cpu->builder, before, any, ""), cpu->is_faulty);
}

/* Faults are gathered in a register and told once. */
static void tell_faults(dlc_cpu *cpu)
{
    LLVMValueRef any = LLVMBuildLoad2(cpu->builder, LLVMInt1TypeInContext(cpu->context), cpu->is_faulty, "");
    LLVMValueRef where = LLVMBuildSelect(cpu->builder, any, cpu->fault, cpu->no_fault, "");
    LLVMBuildStore(cpu->builder, dlc_cpu_i64(cpu, 1), where);
}

/* --- the function --- */

static LLVMValueRef argument_field(dlc_cpu *cpu, LLVMValueRef args, uint32_t field)
{
    LLVMValueRef at = offset_by(cpu, pointer_type(cpu), args, dlc_cpu_i64(cpu, field));
    return LLVMBuildLoad2(cpu->builder, pointer_type(cpu), at, "");
}

LLVMValueRef dlc_cpu_unit(dlc_cpu *cpu, int end)
{
    return LLVMGetParam(cpu->function, end ? 2 : 1);
}

/* Lanes of a vector are one thread's: nothing to wait for. */
static void sync(dlc_emitter *e, int is_block)
{
    (void)is_block;
    (void)e;
}

static const dlc_emitter table = {
    .konst = dlc_cpu_konst, .arith = dlc_cpu_arith, .splat = dlc_cpu_splat, .iota = iota,
    .rotate = rotate,       .turn = turn,           .lane = lane,           .symbol = symbol,       .load = load,
    .hold = dlc_cpu_hold,   .store_held = dlc_cpu_store_held, .store_woven = dlc_cpu_store_woven,
    .hold_byte = dlc_cpu_hold_byte, .store_packed = dlc_cpu_store_packed,
    .store = store,         .var_new = var_new,     .var_aside = var_aside, .var_get = var_get,     .var_set = var_set,
    .shuffles = 1,          .loop_begin = loop_begin, .loop_end = loop_end, .if_begin = if_begin,   .if_end = if_end,
    .position = position,   .fault = fault,         .fetch = fetch,         .sync = sync,           .dot_step = dlc_cpu_dot_step,
    .interleave = dlc_cpu_interleave, .widen = dlc_cpu_widen,
    .tiles = &dlc_cpu_tiles,
};

static void add_attribute(dlc_cpu *cpu, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(cpu->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(cpu->context, kind, 0));
}

void dlc_cpu_begin(dlc_cpu *cpu, LLVMContextRef context, LLVMModuleRef module, const dlc_target *target,
                   const dlc_kernel *kernel, const char *name, dlc_arena *arena)
{
    memset(cpu, 0, sizeof *cpu);
    cpu->base = table;
    cpu->base.target = target;
    cpu->base.selects = cpu->base.passes_caches = (uint8_t)dlc_cpu_is_x86(cpu);
    cpu->arena = arena;
    cpu->kernel = kernel;
    cpu->context = context;
    cpu->module = module;
    cpu->builder = LLVMCreateBuilderInContext(context);
    cpu->has_f16c = target->vector_bytes > 16 || strncmp(target->triple, "x86_64", 6) != 0;
    LLVMTypeRef params[] = {pointer_type(cpu), dlc_cpu_i64_type(cpu), dlc_cpu_i64_type(cpu)};
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), params, 3, 0);
    cpu->function = LLVMAddFunction(module, name, type);
    LLVMSetVisibility(cpu->function, LLVMHiddenVisibility);
    add_attribute(cpu, "nounwind");
    cpu->entry = new_block(cpu);
    LLVMBasicBlockRef start = new_block(cpu);
    LLVMPositionBuilderAtEnd(cpu->builder, cpu->entry);
    LLVMValueRef args = LLVMGetParam(cpu->function, 0);
    LLVMValueRef buffers = argument_field(cpu, args, 0);
    cpu->symbols = argument_field(cpu, args, 1);
    cpu->scratch = argument_field(cpu, args, 2);
    cpu->fault = argument_field(cpu, args, 3);
    cpu->no_fault = LLVMBuildAlloca(cpu->builder, dlc_cpu_i64_type(cpu), "");
    cpu->buffers = dlc_new_array(arena, LLVMValueRef, kernel->buffers.n + 1);
    cpu->runs = dlc_new_array(arena, dlc_line_run, kernel->buffers.n + 1);
    cpu->nbuffers = kernel->buffers.n;
    for (uint32_t b = 0; b < kernel->buffers.n; b++)
        cpu->buffers[b] = argument_field(cpu, buffers, b);
    LLVMBuildBr(cpu->builder, start);
    cpu->block = start;
    LLVMPositionBuilderAtEnd(cpu->builder, start);
}

/* Instructions beyond those of the target's row are for this function alone: others keep the code they had. */
static void add_features(dlc_cpu *cpu)
{
    dlc_str text = {0};
    for (uint32_t i = 0; i < DLC_NFACTS; i++)
        for (const char *at = dlc_target_facts[i].features; cpu->facts >> i & 1 && *at;) {
            size_t n = strcspn(at, ",");
            dlc_str_printf(&text, "%s+%.*s", dlc_str_text(&text)[0] ? "," : "", (int)n, at);
            at += n + (at[n] == ',');
        }
    const char *all = dlc_str_text(&text);
    LLVMAttributeRef attribute = LLVMCreateStringAttribute(cpu->context, "target-features", 15, all, (unsigned)strlen(all));
    LLVMAddAttributeAtIndex(cpu->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
    dlc_str_deinit(&text);
}

void dlc_cpu_end(dlc_cpu *cpu)
{
    dlc_cpu_tiles_end(cpu);
    dlc_cpu_nontemporal_end(cpu);
    if (cpu->is_faulty)
        tell_faults(cpu);
    if (cpu->facts)
        add_features(cpu);
    LLVMBuildRetVoid(cpu->builder);
    LLVMDisposeBuilder(cpu->builder);
}
