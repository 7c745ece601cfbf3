/* Quantisation for those who have no protobuf: the front end rewrites the model under the library's guard. */
#include "compiler/driver.h"
#include "frontend/quantize.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dlc_quantizer {
    dlc_model *holder; /* of memory and messages */
    dlc_onnx_quantizer *onnx;
    char text[600];
};

typedef struct {
    dlc_quantizer *quantizer;
    const char *path, *exclude;
    int per_channel;
    const double *lo, *hi;
} call;

static dlc_status do_open(dlc_model *model, void *args)
{
    const call *c = args;
    return dlc_onnx_quantizer_open(c->path, c->per_channel, c->exclude, model->arena, &model->diag, &c->quantizer->onnx);
}

static dlc_status do_probe(dlc_model *model, void *args)
{
    const call *c = args;
    DLC_TRY(dlc_model_check_apart(model, c->path));
    return dlc_onnx_quantizer_probe(c->quantizer->onnx, c->path);
}

static dlc_status do_write(dlc_model *model, void *args)
{
    const call *c = args;
    DLC_TRY(dlc_model_check_apart(model, c->path));
    return dlc_onnx_quantizer_write(c->quantizer->onnx, c->lo, c->hi, c->path);
}

static dlc_status guard(dlc_model_body body, call *c)
{
    dlc_model_note note, last = {.place = "", .text = ""};
    dlc_status status = dlc_model_guard(c->quantizer->holder, body, c);
    for (uint32_t i = 0; status != DLC_OK && dlc_model_message(c->quantizer->holder, i, &note); i++)
        last = note;
    snprintf(c->quantizer->text, sizeof c->quantizer->text, "%s%s%s", last.place, *last.place ? ": " : "", last.text);
    return status;
}

dlc_status dlc_quantizer_open(const char *path, int per_channel, const char *exclude, dlc_quantizer **result)
{
    dlc_quantizer *q = *result = calloc(1, sizeof *q);
    dlc_model *holder = calloc(1, sizeof *holder);
    if (!q || !holder) {
        free(holder);
        return DLC_LIMIT;
    }
    holder->arena = dlc_arena_create(0);
    holder->notes = dlc_arena_create(0);
    dlc_diag_init(&holder->diag, holder->notes);
    holder->path = path ? dlc_arena_strdup(holder->notes, path) : NULL;
    q->holder = holder;
    return guard(do_open, &(call){.quantizer = q, .path = path, .per_channel = per_channel, .exclude = exclude});
}

dlc_status dlc_quantizer_probe(dlc_quantizer *quantizer, const char *path)
{
    return guard(do_probe, &(call){.quantizer = quantizer, .path = path});
}

dlc_status dlc_quantizer_write(dlc_quantizer *quantizer, const double *lo, const double *hi, const char *path)
{
    return guard(do_write, &(call){.quantizer = quantizer, .path = path, .lo = lo, .hi = hi});
}

void dlc_quantizer_close(dlc_quantizer *quantizer)
{
    if (!quantizer)
        return;
    dlc_onnx_quantizer_close(quantizer->onnx);
    dlc_model_close(quantizer->holder);
    free(quantizer);
}

int dlc_quantizer_layer(const dlc_quantizer *quantizer, uint32_t i, dlc_quantizer_row *row)
{
    const dlc_onnx_layer *layer = dlc_onnx_quantizer_layer(quantizer->onnx, i);
    if (layer)
        *row = (dlc_quantizer_row){layer->node, layer->op, layer->value, layer->range, layer->weight_noise};
    return layer != NULL;
}

int dlc_quantizer_value(const dlc_quantizer *quantizer, uint32_t i, const char **name)
{
    *name = dlc_onnx_quantizer_value(quantizer->onnx, i);
    return *name != NULL;
}

const char *dlc_quantizer_message(const dlc_quantizer *quantizer)
{
    return quantizer ? quantizer->text : "out of memory";
}
