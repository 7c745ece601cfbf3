/*
 * Scan of the protobuf wire format. One walker with an explicit stack goes over the fields of all
 * messages in file order; which fields are messages comes from the decoder's own descriptors. It
 * runs twice: to check and measure, and to write the spliced stream, a copy in which each tensor's
 * big payload is a reference into the file. Message lengths shrink by that, so each is written as a
 * five-byte varint and patched when its message ends.
 */
#include "frontend/wire.h"

#include "onnx.pb-c.h"

#include <inttypes.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 };
enum {
    FLOAT_DATA = 4,
    INT32_DATA = 5,
    STRING_DATA = 6,
    INT64_DATA = 7,
    RAW_DATA = 9,
    DOUBLE_DATA = 10,
    UINT64_DATA = 11
};
enum { PADDED_LENGTH = 5 };
/* protobuf-c's bookkeeping per field of the messages being decoded, in slabs that double; malloc's
 * own per block. */
enum { SCANNED_MEMBER = 64, BLOCK_OVERHEAD = 16 };

typedef struct {
    const ProtobufCMessageDescriptor *type;
    size_t end;       /* first byte after the message */
    size_t length_at; /* where its length stands in the spliced stream */
    uint64_t seen;    /* fields met, by index in type->fields */
    uint64_t nfields;
    uint64_t widest; /* most fields of any message at this depth; survives the message */
} frame;

typedef struct {
    const uint8_t *bytes;
    size_t at;
    uint8_t *out; /* NULL: only measure */
    size_t nout;
    frame *frames;
    uint32_t depth;
    const dlc_wire_limits *limits;
    dlc_wire_facts *facts;
    const char *place;
    dlc_diag *diag;
} walker;

typedef struct {
    const ProtobufCFieldDescriptor *info; /* NULL: not in the schema */
    uint32_t number;
    uint8_t wire;
    size_t start;   /* of the tag */
    size_t payload; /* of the value, behind a length */
    size_t size;    /* of the value */
} field;

#define REFUSE(w, offset, status, format, ...)                                                     \
    dlc_diag_fail((w)->diag, status, (w)->place, "byte %zu: " format, (size_t)(offset), __VA_ARGS__)

static const char *bare_name(const ProtobufCMessageDescriptor *type)
{
    return type->short_name ? type->short_name : "message";
}

/* Reads a varint of at most `most` bytes within [at, end); 0 when there is none. */
static size_t read_varint(const uint8_t *bytes, size_t at, size_t end, unsigned most,
                          uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < most && at + i < end; i++) {
        uint8_t byte = bytes[at + i];
        if (i == 9 && byte > 1)
            return 0; /* past 64 bits */
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80)
            return i + 1;
    }
    return 0;
}

static uint8_t wire_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return LENGTH;
    default:
        return VARINT;
    }
}

static int is_packed(const field *f)
{
    return f->wire == LENGTH && wire_of(f->info->type) != LENGTH;
}

/* Well-formed UTF-8 without NUL (names become C strings); RFC 3629. Returns the index of the first
 * bad byte, or n. */
static size_t utf8_end(const uint8_t *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint8_t c = text[i];
        size_t more = c < 0x80             ? 0
                      : (c & 0xe0) == 0xc0 ? 1
                      : (c & 0xf0) == 0xe0 ? 2
                      : (c & 0xf8) == 0xf0 ? 3
                                           : 9;
        if (c == 0 || more == 9 || n - i <= more)
            return i;
        uint32_t code = more ? c & (0x3f >> more) : c;
        for (size_t k = 1; k <= more; k++) {
            if ((text[i + k] & 0xc0) != 0x80)
                return i;
            code = code << 6 | (text[i + k] & 0x3f);
        }
        static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
        if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return i;
        i += more + 1;
    }
    return n;
}

static void emit(walker *w, const void *bytes, size_t n)
{
    if (w->out)
        memcpy(w->out + w->nout, bytes, n);
    w->nout += n;
}

static void patch_length(walker *w, size_t at, size_t length)
{
    if (!w->out)
        return;
    for (unsigned i = 0; i < PADDED_LENGTH; i++)
        w->out[at + i] = (uint8_t)((length >> (7 * i) & 0x7f) | (i + 1 < PADDED_LENGTH ? 0x80 : 0));
}

static dlc_status read_tag(walker *w, const frame *top, field *f)
{
    uint64_t tag;
    size_t n = read_varint(w->bytes, w->at, top->end, 5, &tag);
    *f = (field){.start = w->at,
                 .payload = w->at + n,
                 .number = (uint32_t)(tag >> 3),
                 .wire = (uint8_t)(tag & 7)};
    if (!n || tag > UINT32_MAX || !f->number)
        return REFUSE(w, w->at, DLC_INVALID, "not a field tag (in %s)", bare_name(top->type));
    f->info = protobuf_c_message_descriptor_get_field(top->type, f->number);
    return DLC_OK;
}

static dlc_status read_extent(walker *w, const frame *top, field *f)
{
    uint64_t value;
    size_t n, left = top->end - f->payload;
    const char *name = f->info ? f->info->name : "unknown";
    switch (f->wire) {
    case VARINT:
        n = read_varint(w->bytes, f->payload, top->end, 10, &value);
        if (!n)
            return REFUSE(w, f->payload, DLC_INVALID, "field '%s' (%u) of %s is no complete varint",
                          name, f->number, bare_name(top->type));
        f->size = n;
        return DLC_OK;
    case FIXED32:
    case FIXED64:
        f->size = f->wire == FIXED32 ? 4 : 8;
        break;
    case LENGTH:
        n = read_varint(w->bytes, f->payload, top->end, 10, &value);
        if (!n)
            return REFUSE(w, f->payload, DLC_INVALID,
                          "the length of field '%s' (%u) of %s is no complete varint", name,
                          f->number, bare_name(top->type));
        f->payload += n;
        left -= n;
        f->size = value > SIZE_MAX ? SIZE_MAX : (size_t)value;
        break;
    default:
        return REFUSE(w, f->start, DLC_INVALID,
                      "field '%s' (%u) of %s has wire type %u; groups are not part of ONNX", name,
                      f->number, bare_name(top->type), f->wire);
    }
    if (f->size > left)
        return REFUSE(w, f->start, DLC_INVALID,
                      "field '%s' (%u) of %s says %zu bytes where %zu are left%s", name, f->number,
                      bare_name(top->type), f->size, left,
                      w->depth > 1 ? "" : "; the file is cut off, or no ONNX model");
    return DLC_OK;
}

static void add_heap(walker *w, uint64_t bytes)
{
    if (__builtin_add_overflow(w->facts->heap_bytes, bytes, &w->facts->heap_bytes))
        w->facts->heap_bytes = UINT64_MAX;
}

static unsigned field_index(const frame *top, const field *f)
{
    return (unsigned)(f->info - top->type->fields);
}

static dlc_status check_once(walker *w, frame *top, const field *f)
{
    uint64_t bit = (uint64_t)1 << (field_index(top, f) & 63);
    if (f->info->label != PROTOBUF_C_LABEL_REPEATED && (top->seen & bit))
        return REFUSE(w, f->start, DLC_INVALID, "field '%s' of %s occurs twice", f->info->name,
                      bare_name(top->type));
    if (!(top->seen & bit))
        add_heap(w, BLOCK_OVERHEAD); /* of a repeated field's array */
    top->seen |= bit;
    return DLC_OK;
}

static uint64_t element_bytes(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return 8;
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

static dlc_status count_packed(walker *w, const frame *top, const field *f, uint64_t *count)
{
    uint8_t wire = wire_of(f->info->type);
    if (wire != VARINT) {
        unsigned each = wire == FIXED32 ? 4 : 8;
        *count = f->size / each;
        return f->size % each == 0
                   ? DLC_OK
                   : REFUSE(w, f->start, DLC_INVALID,
                            "packed field '%s' of %s has %zu bytes, no multiple of %u",
                            f->info->name, bare_name(top->type), f->size, each);
    }
    *count = 0;
    for (size_t at = f->payload, end = f->payload + f->size; at < end; ++*count) {
        uint64_t value;
        size_t n = read_varint(w->bytes, at, end, 10, &value);
        if (!n)
            return REFUSE(w, at, DLC_INVALID,
                          "element %" PRIu64 " of packed field '%s' of %s is no complete varint",
                          *count, f->info->name, bare_name(top->type));
        at += n;
    }
    return DLC_OK;
}

/* Names are copied, joined and written; texts are not. */
static int is_name(const field *f)
{
    return strcmp(f->info->name, "doc_string") != 0 && strcmp(f->info->name, "value") != 0;
}

static dlc_status check_string(walker *w, const frame *top, const field *f)
{
    enum { MAX_NAME = 1 << 20 };
    if (f->size > MAX_NAME && is_name(f))
        return REFUSE(w, f->start, DLC_LIMIT, "string '%s' of %s has %zu bytes; up to %d are possible", f->info->name,
                      bare_name(top->type), (size_t)f->size, MAX_NAME);
    size_t good = utf8_end(w->bytes + f->payload, f->size);
    if (good == f->size)
        return DLC_OK;
    return REFUSE(w, f->payload + good, DLC_INVALID, "string '%s' of %s holds %s", f->info->name,
                  bare_name(top->type),
                  w->bytes[f->payload + good] ? "bytes that are not UTF-8" : "a NUL");
}

/* Bit of a tensor's field that holds elements, 0 for the others. */
static unsigned data_bit(uint32_t number)
{
    switch (number) {
    case FLOAT_DATA:
    case INT32_DATA:
    case STRING_DATA:
    case INT64_DATA:
    case RAW_DATA:
    case DOUBLE_DATA:
    case UINT64_DATA:
        return 1u << number;
    default:
        return 0;
    }
}

/* One kind of data per tensor, and bytes that stay in the file come in one piece. top->seen knows
 * the earlier fields. */
static dlc_status check_tensor_data(walker *w, const frame *top, const field *f)
{
    if (!data_bit(f->number) || (f->wire == LENGTH && f->size == 0))
        return DLC_OK;
    for (unsigned i = 0; i < top->type->n_fields; i++) {
        const ProtobufCFieldDescriptor *other = &top->type->fields[i];
        if (!(top->seen >> i & 1) || !data_bit(other->id))
            continue;
        if (other->id != f->number)
            return REFUSE(w, f->start, DLC_INVALID, "a tensor has both %s and %s", other->name,
                          f->info->name);
        if (f->wire == LENGTH && (f->number == FLOAT_DATA || f->number == DOUBLE_DATA))
            return REFUSE(w, f->start, DLC_UNSUPPORTED, "%s of a tensor comes in several pieces",
                          f->info->name);
    }
    return DLC_OK;
}

static int is_reference(const frame *top, const field *f)
{
    if (top->type != &onnx__tensor_proto__descriptor || f->wire != LENGTH || f->size == 0)
        return 0;
    return f->number == RAW_DATA || f->number == FLOAT_DATA || f->number == DOUBLE_DATA;
}

static void emit_reference(walker *w, const field *f)
{
    static const uint8_t header[2] = {RAW_DATA << 3 | LENGTH, sizeof(dlc_wire_ref)};
    dlc_wire_ref ref = {f->payload, f->size, f->number, 0};
    emit(w, header, sizeof header);
    emit(w, &ref, sizeof ref);
    w->facts->weight_bytes += f->size;
    add_heap(w, BLOCK_OVERHEAD + sizeof ref);
}

static dlc_status take_scalar(walker *w, const frame *top, const field *f)
{
    uint64_t count = 1;
    if (is_packed(f))
        DLC_TRY(count_packed(w, top, f, &count));
    if (f->info->type == PROTOBUF_C_TYPE_STRING)
        DLC_TRY(check_string(w, top, f));
    if (f->wire == LENGTH && !is_packed(f))
        add_heap(w, f->size + 1 + BLOCK_OVERHEAD);
    if (f->info->label == PROTOBUF_C_LABEL_REPEATED)
        add_heap(w, count * element_bytes(f->info->type));
    emit(w, w->bytes + f->start, f->payload + f->size - f->start);
    return DLC_OK;
}

static dlc_status count_message(walker *w, const field *f)
{
    const ProtobufCMessageDescriptor *type = f->info->descriptor;
    dlc_wire_facts *facts = w->facts;
    uint64_t *counter = type == &onnx__node_proto__descriptor        ? &facts->nodes
                        : type == &onnx__attribute_proto__descriptor ? &facts->attributes
                        : type == &onnx__tensor_proto__descriptor    ? &facts->tensors
                                                                     : NULL;
    facts->messages++;
    add_heap(w, type->sizeof_message + BLOCK_OVERHEAD + element_bytes(PROTOBUF_C_TYPE_MESSAGE));
    if (counter && ++*counter > w->limits->max_items)
        return REFUSE(w, f->start, DLC_LIMIT, "more than %" PRIu64 " %s messages",
                      w->limits->max_items, bare_name(type));
    if (w->depth == w->limits->max_depth)
        return REFUSE(w, f->start, DLC_LIMIT, "messages are nested more than %" PRIu32 " deep",
                      w->limits->max_depth);
    return DLC_OK;
}

static void push(walker *w, const ProtobufCMessageDescriptor *type, size_t end)
{
    frame *top = &w->frames[w->depth++];
    *top = (frame){.type = type, .end = end, .length_at = w->nout, .widest = top->widest};
}

static dlc_status enter_message(walker *w, const field *f)
{
    DLC_TRY(count_message(w, f));
    static const uint8_t placeholder[PADDED_LENGTH];
    uint64_t tag;
    emit(w, w->bytes + f->start, read_varint(w->bytes, f->start, f->payload, 5, &tag));
    push(w, f->info->descriptor, f->payload + f->size);
    emit(w, placeholder, sizeof placeholder);
    w->at = f->payload;
    return DLC_OK;
}

static dlc_status take_field(walker *w, frame *top)
{
    field f;
    DLC_TRY(read_tag(w, top, &f));
    DLC_TRY(read_extent(w, top, &f));
    w->at = f.payload + f.size;
    top->nfields++;
    if (!f.info)
        return DLC_OK; /* not in the schema: neither decoded nor kept */
    if (f.wire != wire_of(f.info->type) &&
        !(is_packed(&f) && f.info->label == PROTOBUF_C_LABEL_REPEATED))
        return REFUSE(w, f.start, DLC_INVALID, "field '%s' (%u) of %s has wire type %u",
                      f.info->name, f.number, bare_name(top->type), f.wire);
    if (top->type == &onnx__tensor_proto__descriptor)
        DLC_TRY(check_tensor_data(w, top, &f));
    DLC_TRY(check_once(w, top, &f));
    if (f.info->type == PROTOBUF_C_TYPE_MESSAGE)
        return enter_message(w, &f);
    if (is_reference(top, &f)) {
        uint64_t count = 0;
        if (is_packed(&f))
            DLC_TRY(count_packed(w, top, &f, &count));
        emit_reference(w, &f);
        return DLC_OK;
    }
    return take_scalar(w, top, &f);
}

static dlc_status leave_message(walker *w)
{
    frame *top = &w->frames[--w->depth];
    if (top->nfields > top->widest) {
        add_heap(w, (top->nfields - top->widest) * SCANNED_MEMBER);
        top->widest = top->nfields;
    }
    if (w->depth == 0)
        return DLC_OK;
    size_t length = w->nout - top->length_at - PADDED_LENGTH;
    if (length > INT32_MAX)
        return REFUSE(w, top->end, DLC_LIMIT, "a %s holds %zu bytes besides weights; at most 2 GiB",
                      bare_name(top->type), length);
    patch_length(w, top->length_at, length);
    return DLC_OK;
}

static dlc_status walk(walker *w, const ProtobufCMessageDescriptor *root, size_t size_bytes)
{
    frame frames[DLC_WIRE_MAX_DEPTH];
    for (uint32_t i = 0; i < DLC_WIRE_MAX_DEPTH; i++)
        frames[i].widest = 0;
    w->frames = frames;
    push(w, root, size_bytes);
    while (w->depth) {
        frame *top = &w->frames[w->depth - 1];
        if (w->at == top->end)
            DLC_TRY(leave_message(w));
        else
            DLC_TRY(take_field(w, top));
    }
    return DLC_OK;
}

static uint64_t default_heap(uint64_t kept_bytes)
{
    return ((uint64_t)64 << 20) + 32 * kept_bytes;
}

dlc_status dlc_wire_scan(const ProtobufCMessageDescriptor *root, const uint8_t *bytes,
                         size_t size_bytes, const dlc_wire_limits *limits, const char *place,
                         dlc_diag *diag, dlc_wire_facts *facts)
{
    *facts = (dlc_wire_facts){.heap_bytes = root->sizeof_message + BLOCK_OVERHEAD};
    dlc_wire_limits capped = *limits;
    if (capped.max_depth > DLC_WIRE_MAX_DEPTH)
        capped.max_depth = DLC_WIRE_MAX_DEPTH;
    walker w = {.bytes = bytes, .limits = &capped, .facts = facts, .place = place, .diag = diag};
    DLC_TRY(walk(&w, root, size_bytes));
    facts->splice_bytes = w.nout;
    facts->heap_limit = limits->max_heap_bytes ? limits->max_heap_bytes
                                               : default_heap(size_bytes - facts->weight_bytes);
    if (facts->heap_bytes > facts->heap_limit)
        return dlc_diag_fail(diag, DLC_LIMIT, place,
                             "decoding would take %" PRIu64
                             " bytes of memory; the limit is %" PRIu64
                             " (64 MiB + 32 x the file without weights unless set)",
                             facts->heap_bytes, facts->heap_limit);
    return DLC_OK;
}

void dlc_wire_splice(const ProtobufCMessageDescriptor *root, const uint8_t *bytes,
                     size_t size_bytes, uint8_t *out)
{
    dlc_wire_facts facts = {0};
    dlc_wire_limits limits = {DLC_WIRE_MAX_DEPTH, UINT64_MAX, 0};
    dlc_diag unused = {0};
    walker w = {.bytes = bytes,
                .out = out,
                .limits = &limits,
                .facts = &facts,
                .place = "",
                .diag = &unused};
    (void)walk(&w, root, size_bytes); /* the scan has proven that it succeeds */
}
