/* TensorProto files for those who have no protobuf: the importer reads them, the bytes move to
 * memory the caller owns. */
#include "compiler/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct read_args {
    const char *path; /* NULL: the bytes */
    const void *bytes;
    size_t size_bytes;
    dlcrt_tensor *tensor;
};

/* The strings behind the pointers to them: one block, so that one free ends both. */
static void *own_strings(const dlc_onnx_tensor *source)
{
    const char *const *texts = source->bytes;
    size_t n = source->size_bytes / sizeof *texts, total = source->size_bytes + 1;
    for (size_t i = 0; i < n; i++)
        total += strlen(texts[i]) + 1;
    const char **data = malloc(total);
    char *at = data ? (char *)(data + n) : NULL;
    for (size_t i = 0; data && i < n; i++) {
        data[i] = strcpy(at, texts[i]);
        at += strlen(at) + 1;
    }
    return data;
}

static dlc_status move_out(const dlc_onnx_tensor *source, dlcrt_tensor *tensor)
{
    char *name = strdup(source->name ? source->name : "");
    int is_text = dlc_is_text(source->dtype);
    void *data = is_text ? own_strings(source) : malloc(source->size_bytes ? source->size_bytes : 1);
    if (!name || !data) {
        free(name);
        free(data);
        return DLC_LIMIT;
    }
    if (source->size_bytes && !is_text)
        memcpy(data, source->bytes, source->size_bytes);
    *tensor = (dlcrt_tensor){.name = name,
                             .data = data,
                             .size_bytes = source->size_bytes,
                             .dtype = source->dtype,
                             .rank = source->rank};
    memcpy(tensor->dims, source->dims, source->rank * sizeof *source->dims);
    return DLC_OK;
}

static dlc_status read_file(dlc_model *model, void *opaque)
{
    const struct read_args *args = opaque;
    dlc_onnx_tensor source = {0};
    if (args->path)
        DLC_TRY(dlc_onnx_tensor_read(args->path, model->arena, &model->diag, &source));
    else
        DLC_TRY(dlc_onnx_tensor_parse(args->bytes, args->size_bytes, model->arena, &model->diag,
                                      &source));
    return move_out(&source, args->tensor);
}

static dlc_status guarded(struct read_args *args, char *message, size_t message_bytes)
{
    *args->tensor = (dlcrt_tensor){0};
    dlc_model *model = calloc(1, sizeof *model);
    if (!model)
        return DLC_LIMIT;
    model->arena = dlc_arena_create(0);
    model->notes = dlc_arena_create(0);
    dlc_diag_init(&model->diag, model->notes);
    dlc_status status = dlc_model_guard(model, read_file, args);
    dlc_model_note note = {0};
    if (message_bytes && dlc_model_message(model, 0, &note))
        snprintf(message, message_bytes, "%s%s%s", note.place, *note.place ? ": " : "", note.text);
    dlc_model_close(model);
    return status;
}

dlc_status dlc_tensor_read(const char *path, dlcrt_tensor *tensor, char *message,
                           size_t message_bytes)
{
    struct read_args args = {.path = path, .tensor = tensor};
    return guarded(&args, message, message_bytes);
}

dlc_status dlc_tensor_parse(const void *bytes, size_t size_bytes, dlcrt_tensor *tensor,
                            char *message, size_t message_bytes)
{
    struct read_args args = {.bytes = bytes, .size_bytes = size_bytes, .tensor = tensor};
    return guarded(&args, message, message_bytes);
}

void dlc_tensor_release(dlcrt_tensor *tensor)
{
    free((void *)(uintptr_t)tensor->name);
    free(tensor->data);
    *tensor = (dlcrt_tensor){0};
}
