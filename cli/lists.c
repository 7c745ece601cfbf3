/*
 * Sequences and optionals of test data. Fields of the wire format: a model's graph is 7, its inputs
 * 11 and outputs 12, whose name is 1 and type 2; in a type a sequence is 4 and an optional 9. In
 * data tensors are 3, and the sequence of an optional is 5.
 */
#include "cli/lists.h"

#include "base/file.h"
#include "cli/library.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    const uint8_t *at, *end;
} span;

static int read_varint(span *s, uint64_t *value)
{
    *value = 0;
    for (uint32_t shift = 0; s->at < s->end && shift < 64; shift += 7) {
        uint8_t byte = *s->at++;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return 1;
    }
    return 0;
}

/* The next field; *part is what it holds, where that has a length. False at the end, or where the
 * bytes are no message. */
static int next_field(span *s, uint32_t *field, span *part)
{
    uint64_t tag, n = 0;
    if (s->at == s->end || !read_varint(s, &tag))
        return 0;
    *field = (uint32_t)(tag >> 3);
    *part = (span){s->at, s->at};
    if ((tag & 7) == 0)
        return read_varint(s, &n);
    if ((tag & 7) == 2 && !read_varint(s, &n))
        return 0;
    n = (tag & 7) == 1 ? 8 : (tag & 7) == 5 ? 4 : n;
    if (n > (uint64_t)(s->end - s->at))
        return 0;
    *part = (span){s->at, s->at + n};
    s->at += n;
    return (tag & 7) != 3 && (tag & 7) != 4;
}

static dlc_port read_port(span info, dlc_arena *arena)
{
    dlc_port port = {.name = ""};
    span part, inner;
    for (uint32_t field, kind; next_field(&info, &field, &part);) {
        if (field == 1)
            port.name = dlc_arena_strndup(arena, (const char *)part.at, (size_t)(part.end - part.at));
        while (field == 2 && next_field(&part, &kind, &inner))
            port.is_list = kind == 4 || kind == 9;
    }
    return port;
}

dlc_status dlc_ports_read(const char *path, dlc_arena *arena, dlc_diag *diag, dlc_ports *inputs,
                          dlc_ports *outputs)
{
    dlc_map map;
    DLC_TRY(dlc_map_open(path, &map, diag));
    span model = {map.bytes, (const uint8_t *)map.bytes + map.size_bytes}, graph, part;
    for (uint32_t field, inner; next_field(&model, &field, &graph);) {
        while (field == 7 && next_field(&graph, &inner, &part)) {
            if (inner == 11)
                dlc_vec_push(arena, inputs, read_port(part, arena));
            else if (inner == 12)
                dlc_vec_push(arena, outputs, read_port(part, arena));
        }
    }
    dlc_map_close(&map);
    return DLC_OK;
}

static dlc_status take_tensor(const dlc_library *library, span bytes, const char *name,
                              dlc_arena *arena, dlc_diag *diag, dlc_tensors *tensors)
{
    char message[512] = "is no tensor";
    dlcrt_tensor read;
    dlc_status status = library->tensor_parse(bytes.at, (size_t)(bytes.end - bytes.at), &read,
                                              message, sizeof message);
    if (status != DLC_OK)
        return dlc_diag_fail(diag, status, name, "%s", message);
    dlcrt_tensor tensor = read;
    tensor.name = dlc_arena_printf(arena, "%s[%" PRIu32 "]", name, tensors->n);
    tensor.data = dlc_arena_alloc(arena, read.size_bytes ? read.size_bytes : 1, 64);
    memcpy(tensor.data, read.data, read.size_bytes);
    dlc_tensor_own_strings(&tensor, arena);
    library->tensor_release(&read);
    dlc_vec_push(arena, tensors, tensor);
    return DLC_OK;
}

dlc_status dlc_list_read(const char *path, const char *name, dlc_arena *arena, dlc_diag *diag,
                         dlc_tensors *tensors)
{
    const dlc_library *library;
    dlc_map map;
    DLC_TRY(dlc_library_load(&library, diag));
    DLC_TRY(dlc_map_open(path, &map, diag));
    span list = {map.bytes, (const uint8_t *)map.bytes + map.size_bytes}, part, item;
    dlc_status status = DLC_OK;
    for (uint32_t field, inner; status == DLC_OK && next_field(&list, &field, &part);) {
        if (field == 3)
            status = take_tensor(library, part, name, arena, diag, tensors);
        while (field == 5 && status == DLC_OK && next_field(&part, &inner, &item))
            status = inner == 3 ? take_tensor(library, item, name, arena, diag, tensors) : DLC_OK;
    }
    dlc_map_close(&map);
    return status;
}
