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

typedef struct {
    _Alignas(16) size_t size_bytes;
} block_header;

static void *take(void *user, size_t size_bytes)
{
    dlc_onnx *model = user;
    size_t total;
    if (!dlc_add_size(size_bytes, sizeof(block_header), &total) ||
        total > model->heap_limit - model->heap_bytes)
        return NULL;
    block_header *block = malloc(total);
    if (!block)
        return NULL;
    block->size_bytes = total;
    model->heap_bytes += total;
    return block + 1;
}

static void give(void *user, void *memory)
{
    if (!memory)
        return;
    dlc_onnx *model = user;
    block_header *block = (block_header *)memory - 1;
    model->heap_bytes -= block->size_bytes;
    free(block);
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
    model->heap_limit = facts.heap_limit;
    model->heap_bytes = 0;
    model->allocator = (ProtobufCAllocator){take, give, model};
    uint8_t *spliced = malloc(facts.splice_bytes + 1);
    if (!spliced) {
        dlc_diag_fail(model->diag, DLC_LIMIT, model->file,
                      "no memory for its %zu bytes without weights", facts.splice_bytes);
        return NULL;
    }
    dlc_wire_splice(type, model->bytes, model->size_bytes, spliced);
    ProtobufCMessage *message =
        protobuf_c_message_unpack(type, &model->allocator, facts.splice_bytes, spliced);
    free(spliced);
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
    if (model->proto)
        protobuf_c_message_free_unpacked(&model->proto->base, &model->allocator);
    model->proto = NULL;
    dlc_external_close(model);
    dlc_map_close(&model->map);
}
