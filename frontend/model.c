/*
 * A model's bytes to a decoded message. protobuf-c copies what it decodes, so it never sees the
 * weights: the scan (wire.c) measures the message, the splice leaves references in place of big
 * payloads, and what remains is decoded by an allocator that holds the budget the scan was held
 * against.
 */
#include "frontend/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Of the decoded message, small blocks lie in the model's arena, side by side: malloc would take as much again for each of them.
 * Larger ones are allocated one by one, since the decoder gives its own tables back; these are never below LEAST_LARGE.
 */
enum { LEAST_LARGE = 1024, BLOCK_OVERHEAD = 16 };

struct dlc_onnx_block {
    dlc_onnx_block *previous, *next;
    _Alignas(16) size_t size_bytes;
};

static void *take_large(dlc_onnx *model, size_t size_bytes)
{
    dlc_onnx_block *block = size_bytes > SIZE_MAX - sizeof *block ? NULL : malloc(sizeof *block + size_bytes);
    if (!block)
        return NULL;
    *block = (dlc_onnx_block){.previous = model->last_block, .size_bytes = size_bytes};
    if (block->previous)
        block->previous->next = block;
    model->last_block = block;
    model->heap_bytes += size_bytes + BLOCK_OVERHEAD;
    return block + 1;
}

static void *take_small(dlc_onnx *model, size_t size_bytes)
{
    model->heap_bytes += size_bytes + BLOCK_OVERHEAD;
    return dlc_arena_alloc(model->arena, size_bytes, 8);
}

static void *take(void *user, size_t size_bytes)
{
    dlc_onnx *model = user;
    size_t total;
    void *memory = NULL;
    if (dlc_add_size(size_bytes, BLOCK_OVERHEAD, &total) && total <= model->heap_limit - model->heap_bytes)
        memory = size_bytes < LEAST_LARGE ? take_small(model, size_bytes) : take_large(model, size_bytes);
    model->is_refused |= !memory;
    return memory;
}

static void drop_block(dlc_onnx *model, dlc_onnx_block *block)
{
    *(block->next ? &block->next->previous : &model->last_block) = block->previous;
    if (block->previous)
        block->previous->next = block->next;
    model->heap_bytes -= block->size_bytes + BLOCK_OVERHEAD;
    free(block);
}

/* One of the last, unless a refusal makes the decoder give all back: then all go at once, when the model is closed. */
static void give(void *user, void *memory)
{
    dlc_onnx *model = user;
    dlc_onnx_block *block = memory && !model->is_refused ? model->last_block : NULL;
    while (block && block + 1 != memory)
        block = block->previous;
    if (block)
        drop_block(model, block);
}

void dlc_onnx_forget(dlc_onnx *model)
{
    while (model->last_block)
        drop_block(model, model->last_block);
    model->proto = NULL;
}

static dlc_wire_limits limits_of(const dlc_onnx_options *options)
{
    static const dlc_onnx_options defaults;
    const dlc_onnx_options *o = options ? options : &defaults;
    return (dlc_wire_limits){
        .max_depth = o->max_depth ? o->max_depth : 100,
        .max_items = o->max_nodes ? o->max_nodes : 10 * 1000 * 1000,
        .max_heap_bytes = o->max_heap_bytes,
    };
}

ProtobufCMessage *dlc_onnx_decode(dlc_onnx *model, const ProtobufCMessageDescriptor *type,
                                  const dlc_onnx_options *options)
{
    dlc_wire_limits limits = limits_of(options);
    dlc_wire_facts facts;
    if (dlc_wire_scan(type, model->bytes, model->size_bytes, &limits, model->file, model->diag,
                      &facts) != DLC_OK)
        return NULL;
    model->dense_limit = ((uint64_t)64 << 20) + 32 * (uint64_t)model->size_bytes;
    model->heap_bytes = 0;
    model->is_refused = 0;
    ProtobufCAllocator allocator = {take, give, model};
    uint8_t *spliced = take_large(model, facts.splice_bytes + 1);
    model->heap_limit = facts.heap_limit + model->heap_bytes;
    if (!spliced) {
        dlc_diag_fail(model->diag, DLC_LIMIT, model->file,
                      "no memory for its %zu bytes without weights", facts.splice_bytes);
        return NULL;
    }
    dlc_wire_splice(type, model->bytes, model->size_bytes, spliced);
    ProtobufCMessage *message =
        protobuf_c_message_unpack(type, &allocator, facts.splice_bytes, spliced);
    model->is_refused = 0;
    give(model, spliced);
    if (!message)
        dlc_diag_fail(model->diag, DLC_LIMIT, model->file,
                      "decoding took more than the %" PRIu64 " bytes of memory allowed",
                      facts.heap_limit);
    return message;
}

void dlc_onnx_close(dlc_onnx *model)
{
    if (!model)
        return;
    dlc_onnx_forget(model);
    dlc_external_close(model);
    dlc_map_close(&model->map);
}
