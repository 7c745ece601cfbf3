/*
 * The protobuf wire format, looked at before protobuf-c decodes it: everything a hostile file could
 * do to the decoder is refused here, by byte offset, without recursion or allocation.
 */
#ifndef DLC_FRONTEND_WIRE_H
#define DLC_FRONTEND_WIRE_H

#include "base/diag.h"

#include <protobuf-c/protobuf-c.h>

enum { DLC_WIRE_MAX_DEPTH = 1000 };

typedef struct {
    uint32_t max_depth; /* nesting of messages, at most DLC_WIRE_MAX_DEPTH */
    uint64_t max_items; /* nodes, attributes, tensors: of each kind */
    uint64_t
        max_heap_bytes; /* of the decoded message; 0: 64 MiB + 32 x the file without its weights */
} dlc_wire_limits;

typedef struct {
    uint64_t messages, nodes, attributes, tensors;
    uint64_t heap_bytes;   /* projected: what protobuf-c will allocate, at most */
    uint64_t heap_limit;   /* that it was held against */
    uint64_t weight_bytes; /* left in the file */
    size_t splice_bytes;   /* of the stream without the weights */
} dlc_wire_facts;

/*
 * Where a tensor's elements lie in the file. In the spliced stream this struct, byte by byte, is
 * the content of the tensor's raw_data: non-empty raw_data, and packed float_data and double_data,
 * which have the same bytes.
 */
typedef struct {
    uint64_t offset, size_bytes;
    uint32_t field; /* number of the TensorProto field the bytes come from */
    uint32_t pad;
} dlc_wire_ref;

/*
 * Checks a message of type `root`: varints, exact nesting of lengths, wire types against the
 * schema, UTF-8 without NUL in strings, no singular field twice, one kind of data per tensor,
 * depth, counts, projected heap.
 */
DLC_NODISCARD dlc_status dlc_wire_scan(const ProtobufCMessageDescriptor *root, const uint8_t *bytes,
                                       size_t size_bytes, const dlc_wire_limits *limits,
                                       const char *place, dlc_diag *diag, dlc_wire_facts *facts);
/* Writes the stream without weights and unknown fields; out has facts->splice_bytes. Only after a
 * successful scan. */
void dlc_wire_splice(const ProtobufCMessageDescriptor *root, const uint8_t *bytes,
                     size_t size_bytes, uint8_t *out);

#endif
