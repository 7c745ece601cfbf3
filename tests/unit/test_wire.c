/* The wire scan: what it refuses, where it says so, and that no damage to a small model does harm
 * behind it. */
#include "frontend/onnx.h"
#include "frontend/wire.h"
#include "tests/unit/onnx_bytes.h"

#include "onnx.pb-c.h"

#include <check.h>

#include "tests/unit/random.h"
#include "tests/unit/suite.h"

static const dlc_wire_limits usual = {100, 10 * 1000 * 1000, 0};

typedef struct {
    dlc_arena *arena;
    dlc_diag diag;
    dlc_wire_facts facts;
    dlc_status status;
} scan;

static scan scan_bytes(const pb *bytes, const dlc_wire_limits *limits)
{
    scan s = {.arena = dlc_arena_create(0)};
    dlc_diag_init(&s.diag, s.arena);
    s.status = dlc_wire_scan(&onnx__model_proto__descriptor, bytes->data, bytes->n, limits, "m",
                             &s.diag, &s.facts);
    return s;
}

static void expect(pb *bytes, const dlc_wire_limits *limits, dlc_status status, const char *text)
{
    scan s = scan_bytes(bytes, limits);
    ck_assert_int_eq(s.status, status);
    if (text) {
        ck_assert_uint_eq(s.diag.nmessages, 1);
        ck_assert_msg(strstr(s.diag.messages[0].text, text) != NULL, "'%s' lacks '%s'",
                      s.diag.messages[0].text, text);
    }
    dlc_arena_destroy(s.arena);
    free(bytes->data);
    *bytes = (pb){0};
}

START_TEST(good_model_is_spliced)
{
    pb model = small_model();
    scan s = scan_bytes(&model, &usual);
    ck_assert_int_eq(s.status, DLC_OK);
    ck_assert_uint_eq(s.facts.nodes, 3);
    ck_assert_uint_eq(s.facts.attributes, 1);
    ck_assert_uint_eq(s.facts.tensors, 1);
    ck_assert_uint_eq(s.facts.weight_bytes, 16);
    uint8_t *spliced = malloc(s.facts.splice_bytes);
    dlc_wire_splice(&onnx__model_proto__descriptor, model.data, model.n, spliced);
    Onnx__ModelProto *proto = onnx__model_proto__unpack(NULL, s.facts.splice_bytes, spliced);
    ck_assert_ptr_nonnull(proto);
    const Onnx__TensorProto *w = proto->graph->initializer[0];
    dlc_wire_ref ref;
    ck_assert_uint_eq(w->raw_data.len, sizeof ref);
    memcpy(&ref, w->raw_data.data, sizeof ref);
    ck_assert_uint_eq(ref.size_bytes, 16);
    float second;
    memcpy(&second, model.data + ref.offset + 4, 4);
    ck_assert_float_eq(second, 2);
    ck_assert_str_eq(proto->graph->node[2]->attribute[0]->name, "axis");
    onnx__model_proto__free_unpacked(proto, NULL);
    free(spliced);
    dlc_arena_destroy(s.arena);
    free(model.data);
}
END_TEST

/* A graph nested in an attribute of a node of a graph, and so on. */
static pb nested(int depth)
{
    pb graph = {0};
    for (int i = 0; i < depth; i++) {
        pb node = {0}, outer = {0};
        add_graph(&node, "g", &graph);
        pb_message(&outer, NODE, &node);
        graph = outer;
    }
    return model_of(&graph, 17);
}

START_TEST(nesting_is_bounded)
{
    pb fine = nested(30), bomb = nested(3000), exact = nested(34);
    expect(&fine, &usual, DLC_OK, NULL);
    expect(&exact, &usual, DLC_LIMIT, "nested more than 100 deep");
    expect(&bomb, &usual, DLC_LIMIT, "nested more than 100 deep");
}
END_TEST

START_TEST(heap_is_projected)
{
    pb graph = {0};
    for (int i = 0; i < 1000 * 1000; i++)
        pb_raw(&graph, "\x0a\x00", 2); /* an empty node: 2 bytes become some 200 */
    pb model = model_of(&graph, 17);
    expect(&model, &usual, DLC_LIMIT, "bytes of memory");
    pb few = small_model();
    expect(&few, &(dlc_wire_limits){100, 1000, 500}, DLC_LIMIT, "the limit is 500");
    pb nodes = small_model();
    expect(&nodes, &(dlc_wire_limits){100, 2, 0}, DLC_LIMIT, "more than 2 NodeProto");
}
END_TEST

/* The projection is what decoding really takes, or more. */
static size_t taken, most_taken;
static void *counted_alloc(void *user, size_t n)
{
    (void)user;
    size_t *block = malloc(n + 16);
    *block = n;
    taken += n;
    most_taken = taken > most_taken ? taken : most_taken;
    return (char *)block + 16;
}
static void counted_free(void *user, void *memory)
{
    (void)user;
    if (!memory)
        return;
    size_t *block = (size_t *)(void *)((char *)memory - 16);
    taken -= *block;
    free(block);
}

START_TEST(projection_covers_decoding)
{
    pb graph = {0};
    for (int i = 0; i < 5000; i++) {
        pb node = node_of("Relu", "some_input", "some_output");
        add_int(&node, "axis", i);
        pb_message(&graph, NODE, &node);
    }
    pb model = model_of(&graph, 17);
    scan s = scan_bytes(&model, &usual);
    ck_assert_int_eq(s.status, DLC_OK);
    ProtobufCAllocator counted = {counted_alloc, counted_free, NULL};
    Onnx__ModelProto *proto = onnx__model_proto__unpack(&counted, model.n, model.data);
    ck_assert_ptr_nonnull(proto);
    ck_assert_uint_le(most_taken, s.facts.heap_bytes);
    onnx__model_proto__free_unpacked(proto, &counted);
    ck_assert_uint_eq(taken, 0);
    dlc_arena_destroy(s.arena);
    free(model.data);
}
END_TEST

static const struct {
    const char *bytes;
    size_t n;
    const char *text;
} faults[] = {
    {"\x08", 1, "no complete varint"},
    {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "no complete varint"},
    {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "no complete varint"}, /* past 64 bits */
    {"\x00\x01", 2, "byte 0: not a field tag"},
    {"\x3a\x05\x0a", 3, "says 5 bytes where 1 are left"},
    {"\x3a\x80", 2, "length of field 'graph'"},
    {"\x3b\x3c", 2, "groups are not part of ONNX"},
    {"\x38\x01", 2, "field 'graph' (7) of ModelProto has wire type 0"},
    {"\x08\x01\x08\x01", 4, "byte 2: field 'ir_version' of ModelProto occurs twice"},
    {"\x12\x02"
     "a\0",
     4, "byte 3: string 'producer_name' of ModelProto holds a NUL"},
    {"\x12\x02\xc0\x80", 4, "not UTF-8"},
    {"\x12\x03\xed\xa0\x80", 5, "not UTF-8"}, /* a surrogate */
    {"\x12\x01\xe2", 3, "not UTF-8"},
    /* graph { initializer { raw_data, float_data } } */
    {"\x3a\x0e\x2a\x0c\x4a\x04"
     "abcd\x22\x04"
     "abcd",
     16, "both raw_data and float_data"},
    {"\x3a\x07\x2a\x05\x22\x03"
     "abc",
     9, "no multiple of 4"},
};

START_TEST(faults_are_named)
{
    pb bytes = {0};
    pb_raw(&bytes, faults[_i].bytes, faults[_i].n);
    expect(&bytes, &usual, DLC_INVALID, faults[_i].text);
}
END_TEST

START_TEST(unknown_fields_are_dropped)
{
    pb model = small_model();
    pb_text(&model, 500, "from the future");
    scan s = scan_bytes(&model, &usual);
    ck_assert_int_eq(s.status, DLC_OK);
    uint8_t *spliced = malloc(s.facts.splice_bytes);
    dlc_wire_splice(&onnx__model_proto__descriptor, model.data, model.n, spliced);
    Onnx__ModelProto *proto = onnx__model_proto__unpack(NULL, s.facts.splice_bytes, spliced);
    ck_assert_ptr_nonnull(proto);
    ck_assert_uint_eq(proto->base.n_unknown_fields, 0);
    onnx__model_proto__free_unpacked(proto, NULL);
    free(spliced);
    dlc_arena_destroy(s.arena);
    free(model.data);
}
END_TEST

/* A whole import: clean refusal with a message, or a graph. */
static void import_damaged(const uint8_t *bytes, size_t n)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_onnx *model;
    dlc_graph *graph;
    uint8_t *exact = malloc(n ? n : 1); /* so that a sanitizer sees a read past the end */
    memcpy(exact, bytes, n);
    dlc_diag_init(&diag, arena);
    dlc_status status = dlc_onnx_read(exact, n, "damaged", NULL, arena, &diag, &model, &graph);
    ck_assert((status == DLC_OK) == (graph != NULL));
    if (status != DLC_OK)
        ck_assert_uint_gt(diag.nmessages, 0);
    dlc_onnx_close(model);
    dlc_arena_destroy(arena);
    free(exact);
}

START_TEST(every_truncation)
{
    pb model = small_model();
    for (size_t n = 0; n < model.n; n++)
        import_damaged(model.data, n);
    free(model.data);
}
END_TEST

START_TEST(every_bit)
{
    pb model = small_model();
    for (size_t bit = 0; bit < 8 * model.n; bit++) {
        model.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        import_damaged(model.data, model.n);
        model.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(model.data);
}
END_TEST

START_TEST(many_random_bytes)
{
    pb model = small_model();
    uint8_t *copy = malloc(model.n);
    for (int i = 0; i < 10000; i++) {
        memcpy(copy, model.data, model.n);
        for (int k = 0; k <= i % 4; k++)
            copy[draw((uint32_t)model.n)] = (uint8_t)draw(256);
        import_damaged(copy, model.n);
    }
    free(copy);
    free(model.data);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("wire");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, good_model_is_spliced);
    tcase_add_test(tcase, nesting_is_bounded);
    tcase_add_test(tcase, heap_is_projected);
    tcase_add_test(tcase, projection_covers_decoding);
    tcase_add_loop_test(tcase, faults_are_named, 0, sizeof faults / sizeof *faults);
    tcase_add_test(tcase, unknown_fields_are_dropped);
    tcase_add_test(tcase, every_truncation);
    tcase_add_test(tcase, every_bit);
    tcase_add_test(tcase, many_random_bytes);
    Suite *suite = suite_create("wire");
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
