/*
 * Tile registers (dot.def: family TILE) through LLVM's intrinsics whose registers are immediate numbers. Those on typed values leave
 * registers and their configuration to LLVM, which makes one for each function, for known shapes, and spills; here both are known: sums and
 * factors have their numbers, and there is one shape for most of a kernel, given where the function begins. What has another
 * (edges, ends of K) gives it, and gives the kernel's back.
 */
#include "codegen/cpu/llvm.h"

#include <string.h>

enum { BLOCK_ALIGN = 64, CONFIG_BYTES = 64, ROW_BYTES_AT = 16, ROWS_AT = 48, PALETTE = 1 };

static const struct {
    uint8_t row;
    const char *name;
} instructions[] = {
    {DLC_DOT_TDPBF16PS, "llvm.x86.tdpbf16ps"}, {DLC_DOT_BF16X3, "llvm.x86.tdpbf16ps"}, {DLC_DOT_TDPBSSD, "llvm.x86.tdpbssd"},
    {DLC_DOT_TDPBSUD, "llvm.x86.tdpbsud"},     {DLC_DOT_TDPBUSD, "llvm.x86.tdpbusd"},  {DLC_DOT_TDPBUUD, "llvm.x86.tdpbuud"},
};
enum { NINSTRUCTIONS = sizeof instructions / sizeof *instructions };

static LLVMTypeRef byte_type(const dlc_cpu *cpu)
{
    return LLVMInt8TypeInContext(cpu->context);
}

static LLVMValueRef number(const dlc_cpu *cpu, uint32_t tile)
{
    return LLVMConstInt(byte_type(cpu), tile, 0);
}

static LLVMValueRef bytes_at(dlc_cpu *cpu, LLVMValueRef pointer, int64_t byte)
{
    LLVMValueRef index = LLVMConstInt(LLVMInt64TypeInContext(cpu->context), (uint64_t)byte, 1);
    return LLVMBuildGEP2(cpu->builder, byte_type(cpu), pointer, &index, 1, "");
}

static LLVMValueRef entry_slot(dlc_cpu *cpu, LLVMTypeRef type)
{
    LLVMPositionBuilderBefore(cpu->builder, LLVMGetBasicBlockTerminator(cpu->entry));
    LLVMValueRef slot = LLVMBuildAlloca(cpu->builder, type, "");
    LLVMSetAlignment(slot, BLOCK_ALIGN);
    LLVMPositionBuilderAtEnd(cpu->builder, cpu->block);
    return slot;
}

/* --- blocks --- */

static dlc_var block_new(dlc_emitter *e, dlc_dtype dtype, uint32_t elements)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    return (dlc_var)entry_slot(cpu, LLVMArrayType2(dlc_cpu_type(cpu, dtype, 1), elements));
}

static LLVMValueRef in_block(dlc_cpu *cpu, dlc_var block, LLVMTypeRef type, dlc_val index)
{
    LLVMValueRef at = dlc_llvm(index);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        type = LLVMGetElementType(type);
    return LLVMBuildGEP2(cpu->builder, type, (LLVMValueRef)block, &at, 1, "");
}

static uint32_t alignment_of(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? 4 * LLVMGetVectorSize(type) : 4;
}

static dlc_val block_get(dlc_emitter *e, dlc_var block, dlc_dtype dtype, uint32_t width, dlc_val index)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    LLVMTypeRef type = dlc_cpu_type(cpu, dtype, width);
    LLVMValueRef value = LLVMBuildLoad2(cpu->builder, type, in_block(cpu, block, type, index), "");
    LLVMSetAlignment(value, alignment_of(type));
    return dlc_wrap(value);
}

static void block_set(dlc_emitter *e, dlc_var block, dlc_val index, dlc_val value)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    LLVMTypeRef type = LLVMTypeOf(dlc_llvm(value));
    LLVMSetAlignment(LLVMBuildStore(cpu->builder, dlc_llvm(value), in_block(cpu, block, type, index)), alignment_of(type));
}

/* --- shapes --- */

static int is_known(const dlc_tile_shape *shape)
{
    int known = 1;
    for (uint32_t i = 0; i < shape->n; i++)
        known = known && LLVMIsConstant(dlc_llvm(shape->rows[i])) && LLVMIsConstant(dlc_llvm(shape->bytes[i]));
    return known;
}

/* Registers the shape does not name are whole. */
static void write_known(const dlc_tile_shape *shape, uint8_t *config)
{
    memset(config, 0, CONFIG_BYTES);
    config[0] = PALETTE;
    for (uint32_t i = 0; i < DLC_TILES; i++) {
        int is_named = i < shape->n;
        config[ROWS_AT + i] = is_named ? (uint8_t)LLVMConstIntGetZExtValue(dlc_llvm(shape->rows[i])) : DLC_TILE_ROWS;
        config[ROW_BYTES_AT + 2 * i] = is_named ? (uint8_t)LLVMConstIntGetZExtValue(dlc_llvm(shape->bytes[i])) : DLC_TILE_BYTES;
    }
}

/* One global for each shape. */
static LLVMValueRef known_config(dlc_cpu *cpu, const uint8_t *config)
{
    LLVMValueRef data = LLVMConstStringInContext(cpu->context, (const char *)config, CONFIG_BYTES, 1);
    for (LLVMValueRef g = LLVMGetFirstGlobal(cpu->module); g; g = LLVMGetNextGlobal(g))
        if (LLVMGetInitializer(g) == data)
            return g;
    LLVMValueRef global = LLVMAddGlobal(cpu->module, LLVMTypeOf(data), "tiles");
    LLVMSetInitializer(global, data);
    LLVMSetGlobalConstant(global, 1);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetAlignment(global, BLOCK_ALIGN);
    return global;
}

/* A shape of which only the run knows some. */
static LLVMValueRef found_config(dlc_cpu *cpu, const dlc_tile_shape *shape)
{
    static const uint8_t none[CONFIG_BYTES] = {PALETTE};
    LLVMTypeRef bytes = LLVMInt16TypeInContext(cpu->context), whole = LLVMVectorType(byte_type(cpu), CONFIG_BYTES);
    LLVMValueRef slot = entry_slot(cpu, whole), lanes[CONFIG_BYTES];
    for (uint32_t i = 0; i < CONFIG_BYTES; i++)
        lanes[i] = number(cpu, none[i]);
    LLVMBuildStore(cpu->builder, LLVMConstVector(lanes, CONFIG_BYTES), slot);
    for (uint32_t i = 0; i < shape->n; i++) {
        LLVMBuildStore(cpu->builder, LLVMBuildTrunc(cpu->builder, dlc_llvm(shape->rows[i]), byte_type(cpu), ""),
                       bytes_at(cpu, slot, ROWS_AT + i));
        LLVMBuildStore(cpu->builder, LLVMBuildTrunc(cpu->builder, dlc_llvm(shape->bytes[i]), bytes, ""),
                       bytes_at(cpu, slot, ROW_BYTES_AT + 2 * (int64_t)i));
    }
    return slot;
}

static void configure(dlc_cpu *cpu, LLVMValueRef config)
{
    dlc_cpu_intrinsic(cpu, "llvm.x86.ldtilecfg", NULL, 0, &config, 1);
}

static int has(const dlc_emitter *e, dlc_dot row)
{
    return dlc_dot_fact(e->target, row) != 0;
}

static void shape(dlc_emitter *e, dlc_dot row, const dlc_tile_shape *shape)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    LLVMValueRef config = NULL;
    uint8_t known[CONFIG_BYTES];
    cpu->facts |= dlc_dot_fact(e->target, row);
    cpu->has_tiles = 1;
    if (is_known(shape)) {
        write_known(shape, known);
        config = known_config(cpu, known);
        cpu->tile_shape = cpu->tile_shape ? cpu->tile_shape : config;
    }
    int is_other = !config || config != cpu->tile_shape;
    if (is_other || cpu->has_other_shape)
        configure(cpu, config ? config : found_config(cpu, shape));
    cpu->has_other_shape = (uint8_t)is_other;
}

/* Which one that is, is known when the function ends where none has come yet; then nothing before has relied on it. */
static void end(dlc_emitter *e)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    if (!cpu->has_other_shape)
        return;
    if (!cpu->tile_shape) {
        uint8_t whole[CONFIG_BYTES];
        write_known(&(dlc_tile_shape){.n = 0}, whole);
        cpu->tile_shape = known_config(cpu, whole);
    }
    configure(cpu, cpu->tile_shape);
    cpu->has_other_shape = 0;
}

void dlc_cpu_tiles_end(dlc_cpu *cpu)
{
    if (!cpu->has_tiles)
        return;
    LLVMPositionBuilderBefore(cpu->builder, LLVMGetBasicBlockTerminator(cpu->entry));
    configure(cpu, cpu->tile_shape);
    LLVMPositionBuilderAtEnd(cpu->builder, cpu->block);
    dlc_cpu_intrinsic(cpu, "llvm.x86.tilerelease", NULL, 0, NULL, 0);
}

/* --- registers --- */

static void zero(dlc_emitter *e, uint32_t tile)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    LLVMValueRef args[] = {number(cpu, tile)};
    dlc_cpu_intrinsic(cpu, "llvm.x86.tilezero", NULL, 0, args, 1);
}

static void move_rows(dlc_cpu *cpu, uint32_t tile, LLVMValueRef at, int64_t row_bytes, int is_store)
{
    LLVMValueRef args[] = {number(cpu, tile), at, LLVMConstInt(LLVMInt64TypeInContext(cpu->context), (uint64_t)row_bytes, 1)};
    dlc_cpu_intrinsic(cpu, is_store ? "llvm.x86.tilestored64" : "llvm.x86.tileloadd64", NULL, 0, args, 3);
}

static void load(dlc_emitter *e, uint32_t tile, const dlc_access *access, int64_t row_bytes)
{
    move_rows((dlc_cpu *)e, tile, dlc_cpu_address((dlc_cpu *)e, access), row_bytes, 0);
}

static void move(dlc_emitter *e, uint32_t tile, dlc_var block, int64_t at_byte, int64_t row_bytes, int is_store)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    move_rows(cpu, tile, bytes_at(cpu, (LLVMValueRef)block, at_byte), row_bytes, is_store);
}

static void multiply(dlc_emitter *e, dlc_dot row, uint32_t sums, uint32_t a, uint32_t b)
{
    dlc_cpu *cpu = (dlc_cpu *)e;
    LLVMValueRef args[] = {number(cpu, sums), number(cpu, a), number(cpu, b)};
    for (uint32_t i = 0; i < NINSTRUCTIONS; i++)
        if (instructions[i].row == row)
            dlc_cpu_intrinsic(cpu, instructions[i].name, NULL, 0, args, 3);
}

const dlc_tile_emitter dlc_cpu_tiles = {
    .block_new = block_new, .block_get = block_get, .block_set = block_set, .has = has,   .shape = shape,
    .end = end,             .zero = zero,           .load = load,           .move = move, .multiply = multiply,
};
