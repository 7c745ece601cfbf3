/* ONNX models as bytes, written by hand: a growing buffer and the few protobuf forms the tests
 * need. */
#ifndef DLC_TESTS_ONNX_BYTES_H
#define DLC_TESTS_ONNX_BYTES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint8_t *data;
    size_t n, cap;
} pb;

static inline void pb_byte(pb *b, uint8_t byte)
{
    if (b->n == b->cap)
        b->data = realloc(b->data, b->cap = b->cap ? b->cap * 2 : 64);
    b->data[b->n++] = byte;
}

static inline void pb_raw(pb *b, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pb_byte(b, ((const uint8_t *)bytes)[i]);
}

static inline void pb_varint(pb *b, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        pb_byte(b, (uint8_t)(value | 0x80));
    pb_byte(b, (uint8_t)value);
}

static inline void pb_int(pb *b, uint32_t field, uint64_t value)
{
    pb_varint(b, field << 3);
    pb_varint(b, value);
}

static inline void pb_bytes(pb *b, uint32_t field, const void *bytes, size_t n)
{
    pb_varint(b, field << 3 | 2);
    pb_varint(b, n);
    pb_raw(b, bytes, n);
}

static inline void pb_text(pb *b, uint32_t field, const char *text)
{
    pb_bytes(b, field, text, strlen(text));
}

/* Appends `sub` as a message field and frees it. */
static inline void pb_message(pb *b, uint32_t field, pb *sub)
{
    pb_bytes(b, field, sub->data, sub->n);
    free(sub->data);
    *sub = (pb){0};
}

/* --- ONNX --- */

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

/* dims: "2,n,3"; "" a scalar. */
static inline pb value_info(const char *name, int type, const char *dims)
{
    pb info = {0}, holder = {0}, tensor = {0}, shape = {0};
    for (const char *at = dims; *at;) {
        pb dim = {0};
        size_t n = strcspn(at, ",");
        if ((*at >= '0' && *at <= '9') || *at == '-')
            pb_int(&dim, 1, (uint64_t)strtoll(at, NULL, 10));
        else if (*at != '?')
            pb_bytes(&dim, 2, at, n);
        pb_message(&shape, 1, &dim);
        at += n + (at[n] == ',');
    }
    pb_int(&tensor, 1, (uint64_t)type);
    pb_message(&tensor, 2, &shape);
    pb_message(&holder, 1, &tensor);
    pb_text(&info, 1, name);
    pb_message(&info, 2, &holder);
    return info;
}

static inline void put_names(pb *node, uint32_t field, const char *names)
{
    for (const char *at = names; *at;) {
        size_t n = strcspn(at, " ");
        if (n == 1 && *at == '-') /* an absent one */
            pb_bytes(node, field, "", 0);
        else
            pb_bytes(node, field, at, n);
        at += n + (at[n] == ' ');
    }
}

/* inputs, outputs: names separated by spaces */
static inline pb node_of(const char *op, const char *inputs, const char *outputs)
{
    pb node = {0};
    put_names(&node, 1, inputs);
    put_names(&node, 2, outputs);
    pb_text(&node, 4, op);
    return node;
}

static inline void add_int(pb *node, const char *name, int64_t value)
{
    pb attribute = {0};
    pb_text(&attribute, 1, name);
    pb_int(&attribute, 3, (uint64_t)value);
    pb_int(&attribute, 20, 2);
    pb_message(node, 5, &attribute);
}

static inline void add_ints(pb *node, const char *name, const int64_t *values, size_t n)
{
    pb attribute = {0};
    pb_text(&attribute, 1, name);
    for (size_t i = 0; i < n; i++)
        pb_int(&attribute, 8, (uint64_t)values[i]);
    pb_int(&attribute, 20, 7);
    pb_message(node, 5, &attribute);
}

static inline void add_text(pb *node, const char *name, const char *text)
{
    pb attribute = {0};
    pb_text(&attribute, 1, name);
    pb_text(&attribute, 4, text);
    pb_int(&attribute, 20, 3);
    pb_message(node, 5, &attribute);
}

static inline void add_graph(pb *node, const char *name, pb *graph)
{
    pb attribute = {0};
    pb_text(&attribute, 1, name);
    pb_message(&attribute, 6, graph);
    pb_int(&attribute, 20, 5);
    pb_message(node, 5, &attribute);
}

static inline pb tensor_of(const char *name, int type, const int64_t *dims, size_t rank,
                           const void *raw, size_t n)
{
    pb tensor = {0};
    for (size_t i = 0; i < rank; i++)
        pb_int(&tensor, 1, (uint64_t)dims[i]);
    pb_int(&tensor, 2, (uint64_t)type);
    pb_text(&tensor, 8, name);
    pb_bytes(&tensor, 9, raw, n);
    return tensor;
}

/* Wraps a graph as a model of one opset and frees it. */
static inline pb model_of(pb *graph, int opset)
{
    pb model = {0}, import = {0};
    pb_int(&model, 1, 9);
    pb_int(&import, 2, (uint64_t)opset);
    pb_message(&model, 8, &import);
    pb_message(&model, 7, graph);
    return model;
}

static inline void add_part(pb *graph, uint32_t field, pb part)
{
    pb_message(graph, field, &part);
}
enum { NODE = 1, INITIALIZER = 5, INPUT = 11, OUTPUT = 12, VALUE_INFO = 13 };

/* Relu(x * w) with a weight, an attribute and a named dimension: a bit of everything. */
static inline pb small_model(void)
{
    static const float weights[4] = {1, 2, 3, 4};
    static const int64_t dims[2] = {2, 2};
    pb graph = {0}, flatten = node_of("Flatten", "r", "y");
    add_int(&flatten, "axis", 1);
    add_part(&graph, NODE, node_of("MatMul", "x w", "m"));
    add_part(&graph, NODE, node_of("Relu", "m", "r"));
    add_part(&graph, NODE, flatten);
    pb_text(&graph, 2, "small");
    add_part(&graph, INITIALIZER, tensor_of("w", FLOAT, dims, 2, weights, sizeof weights));
    add_part(&graph, INPUT, value_info("x", FLOAT, "batch,2"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "batch,2"));
    return model_of(&graph, 17);
}

#endif
