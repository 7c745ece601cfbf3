/*
 * Which tensor of a model lies in a file beside it, whether the import reads it or not. Tensors stand in graphs, bodies, functions,
 * attributes and sparse tensors, so messages are walked by their descriptors, no deeper than they were decoded.
 */
#include "frontend/model.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *folder, *path; /* path NULL: any file will do */
    const char *location;      /* the one looked at last: tensors that share a file stand side by side */
} search;

static int leads_there(search *s, const char *location)
{
    char path[PATH_MAX];
    if (s->location && !strcmp(s->location, location))
        return 0;
    s->location = location;
    int n = s->path ? snprintf(path, sizeof path, "%s/%s", s->folder, location) : 0;
    return !s->path || (n < (int)sizeof path && dlc_is_one_file(path, s->path));
}

static int lies_there(search *s, const Onnx__TensorProto *tensor)
{
    if (!tensor->has_data_location || tensor->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return 0;
    for (size_t i = 0; i < tensor->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = tensor->external_data[i];
        if (entry->key && entry->value && !strcmp(entry->key, "location") && leads_there(s, entry->value))
            return 1;
    }
    return 0;
}

static const Onnx__TensorProto *find(search *s, const ProtobufCMessage *message);

/* Which member of a oneof is set need not be asked: only types have them, which hold no tensor. */
static const Onnx__TensorProto *find_in(search *s, const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const char *base = (const char *)message;
    const Onnx__TensorProto *found = NULL;
    ProtobufCMessage *one, **list = &one;
    size_t n;
    if (field->type != PROTOBUF_C_TYPE_MESSAGE || field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return NULL;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        memcpy(&n, base + field->quantifier_offset, sizeof n);
        memcpy(&list, base + field->offset, sizeof list);
    } else {
        memcpy(&one, base + field->offset, sizeof one);
        n = one != NULL;
    }
    for (size_t i = 0; i < n && !found; i++)
        found = find(s, list[i]);
    return found;
}

static const Onnx__TensorProto *find(search *s, const ProtobufCMessage *message)
{
    const Onnx__TensorProto *found = NULL;
    if (message->descriptor == &onnx__tensor_proto__descriptor)
        return lies_there(s, (const Onnx__TensorProto *)(const void *)message) ? (const void *)message : NULL;
    for (unsigned i = 0; i < message->descriptor->n_fields && !found; i++)
        found = find_in(s, message, &message->descriptor->fields[i]);
    return found;
}

const Onnx__TensorProto *dlc_external_find(const Onnx__ModelProto *model, const char *folder, const char *path, const char **location)
{
    search s = {.folder = folder, .path = path};
    const Onnx__TensorProto *found = find(&s, &model->base);
    *location = s.location;
    return found;
}

const char *dlc_onnx_holder(const dlc_onnx *model, const char *path, const char **location)
{
    const Onnx__TensorProto *found = model->proto && model->folder ? dlc_external_find(model->proto, model->folder, path, location) : NULL;
    return !found ? NULL : found->name ? found->name : "";
}
