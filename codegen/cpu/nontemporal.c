/*
 * Stores past the caches. The instruction takes aligned addresses only, and a line that is filled by parts some time apart is sent to
 * memory by parts. Callers' buffers begin anywhere: malloc's large ones 16 bytes behind a page. So vectors of a buffer that is not aligned
 * are turned by what it is off, and each aligned store has the end of one vector and the beginning of the next:
 *
 *     memory      |. . . .|a a a b|b b b c|c c c .|      turn: lane i of a vector comes from lane i - words
 *     vectors            b-----b c-----c                 rest: the vector before, turned; its first `words` lanes are not stored yet
 *
 * That goes on for as long as vectors follow each other; where one does not, the rest before it and its own beginning are stored under
 * masks, as usual stores, and so is the last rest where the function ends: until then nobody may read or change what is stored so.
 * Vectors whose addresses differ from the buffer's by no multiple of their size are stored as usual, and so is all of a buffer that is
 * off by part of a word of 32 bits.
 */
#include "codegen/cpu/llvm.h"

enum { LEAST_BYTES = 16, WORD_SHIFT = 2, WORD_BYTES = 1 << WORD_SHIFT, MOST_WORDS = 16 };

static LLVMTypeRef words_type(const dlc_cpu *cpu, uint32_t bytes)
{
    return LLVMVectorType(LLVMInt32TypeInContext(cpu->context), bytes / WORD_BYTES);
}

static LLVMValueRef address_of(dlc_cpu *cpu, LLVMValueRef pointer)
{
    return LLVMBuildPtrToInt(cpu->builder, pointer, dlc_cpu_i64_type(cpu), "");
}

/* What a number is beyond a multiple of `bytes`. */
static LLVMValueRef beyond(dlc_cpu *cpu, LLVMValueRef number, uint32_t bytes)
{
    return LLVMBuildAnd(cpu->builder, number, dlc_cpu_i64(cpu, bytes - 1), "");
}

static LLVMValueRef is_zero(dlc_cpu *cpu, LLVMValueRef number)
{
    return LLVMBuildICmp(cpu->builder, LLVMIntEQ, number, dlc_cpu_i64(cpu, 0), "");
}

static LLVMValueRef lane_numbers(const dlc_cpu *cpu, uint32_t n)
{
    LLVMValueRef lanes[MOST_WORDS];
    for (uint32_t i = 0; i < n; i++)
        lanes[i] = dlc_cpu_i32(cpu, i);
    return LLVMConstVector(lanes, n);
}

static LLVMValueRef copied(dlc_cpu *cpu, LLVMValueRef word, uint32_t n)
{
    return dlc_llvm(dlc_cpu_splat(&cpu->base, DLC_I32, dlc_wrap(word), n));
}

/* What `next` is where there was no vector: no offset of one, and a line's all the same. */
static LLVMValueRef none_of(const dlc_cpu *cpu, uint32_t bytes)
{
    return dlc_cpu_i64(cpu, -(int64_t)bytes);
}

/* The buffer's, made where the function begins; vectors are of as many bytes. */
static dlc_line_run *run_of(dlc_cpu *cpu, uint32_t buffer, uint32_t bytes)
{
    dlc_line_run *run = &cpu->runs[buffer];
    if (run->bytes)
        return run->bytes == bytes ? run : NULL;
    uint32_t n = bytes / WORD_BYTES;
    run->bytes = bytes;
    LLVMPositionBuilderBefore(cpu->builder, LLVMGetBasicBlockTerminator(cpu->entry));
    run->next = LLVMBuildAlloca(cpu->builder, dlc_cpu_i64_type(cpu), "");
    run->rest = LLVMBuildAlloca(cpu->builder, words_type(cpu, bytes), "");
    LLVMBuildStore(cpu->builder, none_of(cpu, bytes), run->next);
    LLVMBuildStore(cpu->builder, LLVMConstNull(words_type(cpu, bytes)), run->rest);
    run->base = cpu->buffers[buffer];
    run->low = beyond(cpu, address_of(cpu, run->base), bytes);
    LLVMValueRef count = LLVMBuildLShr(cpu->builder, run->low, dlc_cpu_i64(cpu, WORD_SHIFT), "");
    LLVMValueRef words = copied(cpu, LLVMBuildTrunc(cpu->builder, count, LLVMInt32TypeInContext(cpu->context), ""), n);
    LLVMValueRef turn = LLVMBuildSub(cpu->builder, lane_numbers(cpu, n), words, "");
    run->turn = LLVMBuildAnd(cpu->builder, turn, copied(cpu, dlc_cpu_i32(cpu, n - 1), n), "");
    run->is_rest = LLVMBuildICmp(cpu->builder, LLVMIntULT, lane_numbers(cpu, n), words, "");
    LLVMPositionBuilderAtEnd(cpu->builder, cpu->block);
    return run;
}

static void store_whole(dlc_cpu *cpu, LLVMValueRef words, LLVMValueRef pointer, uint32_t bytes)
{
    LLVMMetadataRef one = LLVMValueAsMetadata(dlc_cpu_i32(cpu, 1));
    LLVMValueRef stored = LLVMBuildStore(cpu->builder, words, pointer);
    LLVMSetAlignment(stored, bytes);
    LLVMSetMetadata(stored, LLVMGetMDKindIDInContext(cpu->context, "nontemporal", 11),
                    LLVMMetadataAsValue(cpu->context, LLVMMDNodeInContext2(cpu->context, &one, 1)));
}

static LLVMValueRef at_byte(dlc_cpu *cpu, LLVMValueRef pointer, LLVMValueRef byte)
{
    return LLVMBuildGEP2(cpu->builder, LLVMInt8TypeInContext(cpu->context), pointer, &byte, 1, "");
}

/* The line in which the byte of the buffer lies where a vector begins. */
static LLVMValueRef line_of(dlc_cpu *cpu, const dlc_line_run *run, LLVMValueRef offset)
{
    return at_byte(cpu, run->base, LLVMBuildSub(cpu->builder, offset, run->low, ""));
}

static void store_lanes(dlc_cpu *cpu, const dlc_line_run *run, LLVMValueRef words, LLVMValueRef offset, LLVMValueRef lanes)
{
    LLVMValueRef line = line_of(cpu, run, offset), args[] = {words, line, dlc_cpu_i32(cpu, run->bytes), lanes};
    LLVMTypeRef types[] = {words_type(cpu, run->bytes), LLVMTypeOf(line)};
    dlc_cpu_intrinsic(cpu, "llvm.masked.store", types, 2, args, 4);
}

static LLVMValueRef rest_of(dlc_cpu *cpu, const dlc_line_run *run)
{
    return LLVMBuildLoad2(cpu->builder, words_type(cpu, run->bytes), run->rest, "");
}

static LLVMValueRef next_of(dlc_cpu *cpu, const dlc_line_run *run)
{
    return LLVMBuildLoad2(cpu->builder, dlc_cpu_i64_type(cpu), run->next, "");
}

/* What is left of the vectors before, if there are any. */
static void store_rest(dlc_cpu *cpu, const dlc_line_run *run)
{
    LLVMValueRef next = next_of(cpu, run), is_some = LLVMBuildICmp(cpu->builder, LLVMIntNE, next, none_of(cpu, run->bytes), "");
    LLVMValueRef lanes = LLVMBuildSelect(cpu->builder, is_some, run->is_rest, LLVMConstNull(LLVMTypeOf(run->is_rest)), "");
    store_lanes(cpu, run, rest_of(cpu, run), next, lanes);
}

static void store_turned(dlc_cpu *cpu, const dlc_line_run *run, LLVMValueRef words, LLVMValueRef offset)
{
    dlc_emitter *e = &cpu->base;
    uint32_t n = run->bytes / WORD_BYTES;
    LLVMTypeRef floats = LLVMVectorType(LLVMFloatTypeInContext(cpu->context), n);
    LLVMValueRef turned = dlc_cpu_permuted(cpu, n, LLVMBuildBitCast(cpu->builder, words, floats, ""), run->turn);
    turned = LLVMBuildBitCast(cpu->builder, turned, words_type(cpu, run->bytes), "");
    LLVMValueRef follows = LLVMBuildICmp(cpu->builder, LLVMIntEQ, next_of(cpu, run), offset, "");
    e->if_begin(e, dlc_wrap(follows));
    LLVMValueRef line = LLVMBuildSelect(cpu->builder, run->is_rest, rest_of(cpu, run), turned, "");
    store_whole(cpu, line, line_of(cpu, run, offset), run->bytes);
    e->if_end(e);
    e->if_begin(e, dlc_wrap(LLVMBuildNot(cpu->builder, follows, "")));
    store_rest(cpu, run);
    store_lanes(cpu, run, turned, offset, LLVMBuildNot(cpu->builder, run->is_rest, ""));
    e->if_end(e);
    LLVMBuildStore(cpu->builder, turned, run->rest);
    LLVMBuildStore(cpu->builder, LLVMBuildAdd(cpu->builder, offset, dlc_cpu_i64(cpu, run->bytes), ""), run->next);
}

void dlc_cpu_store_nontemporal(dlc_cpu *cpu, const dlc_access *access, LLVMValueRef value, LLVMValueRef pointer, uint32_t align)
{
    dlc_emitter *e = &cpu->base;
    uint32_t all = access->width * dlc_dtype_bytes(access->dtype), bytes = all < e->target->vector_bytes ? all : e->target->vector_bytes;
    dlc_line_run *run = bytes >= LEAST_BYTES ? run_of(cpu, access->buffer, bytes) : NULL;
    if (!run) {
        LLVMSetAlignment(LLVMBuildStore(cpu->builder, value, pointer), align);
        return;
    }
    LLVMValueRef words = LLVMBuildBitCast(cpu->builder, value, words_type(cpu, all), "");
    LLVMValueRef offset = LLVMBuildSub(cpu->builder, address_of(cpu, pointer), address_of(cpu, run->base), "");
    LLVMValueRef is_aligned = is_zero(cpu, run->low), is_turned = is_aligned;
    if (bytes > LEAST_BYTES)
        is_turned = is_zero(cpu, beyond(cpu, run->low, WORD_BYTES));
    if (access->multiple * dlc_dtype_bytes(access->dtype) % bytes) { /* else the buffer alone decides, the same for all its vectors */
        LLVMValueRef is_line = is_zero(cpu, beyond(cpu, offset, bytes));
        is_aligned = LLVMBuildAnd(cpu->builder, is_line, is_aligned, "");
        is_turned = LLVMBuildAnd(cpu->builder, is_line, is_turned, "");
    }
    e->if_begin(e, dlc_wrap(is_aligned));
    for (uint32_t at = 0; at < all; at += bytes)
        store_whole(cpu, dlc_cpu_lanes(cpu, words, at / WORD_BYTES, bytes / WORD_BYTES),
                    at_byte(cpu, pointer, dlc_cpu_i64(cpu, at)), bytes);
    e->if_end(e);
    e->if_begin(e, dlc_wrap(LLVMBuildNot(cpu->builder, is_aligned, "")));
    if (bytes > LEAST_BYTES) {
        e->if_begin(e, dlc_wrap(is_turned));
        for (uint32_t at = 0; at < all; at += bytes)
            store_turned(cpu, run, dlc_cpu_lanes(cpu, words, at / WORD_BYTES, bytes / WORD_BYTES),
                         LLVMBuildAdd(cpu->builder, offset, dlc_cpu_i64(cpu, at), ""));
        e->if_end(e);
    }
    e->if_begin(e, dlc_wrap(LLVMBuildNot(cpu->builder, is_turned, "")));
    LLVMSetAlignment(LLVMBuildStore(cpu->builder, value, pointer), align);
    e->if_end(e);
    e->if_end(e);
}

void dlc_cpu_nontemporal_end(dlc_cpu *cpu)
{
    int has_runs = 0;
    for (uint32_t b = 0; b < cpu->nbuffers; b++) {
        if (cpu->runs[b].bytes > LEAST_BYTES)
            store_rest(cpu, &cpu->runs[b]);
        has_runs |= cpu->runs[b].bytes != 0;
    }
    if (has_runs) /* whom the thread then tells must find it */
        dlc_cpu_intrinsic(cpu, "llvm.x86.sse.sfence", NULL, 0, NULL, 0);
}
