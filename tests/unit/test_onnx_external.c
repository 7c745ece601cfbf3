/* Data beside a model: which paths are followed, and what is known of the files. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/onnx_import.h"
#include "tests/unit/suite.h"

static void put_file(const char *folder, const char *name, const void *bytes, size_t n)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static void add_entry(pb *tensor, const char *key, const char *value)
{
    pb entry = {0};
    pb_text(&entry, 1, key);
    pb_text(&entry, 2, value);
    pb_message(tensor, 13, &entry);
}

static const struct {
    const char *location, *offset, *length;
    dlc_status status;
    const char *text;
} externals[] = {
    {"w.bin", "4", "16", DLC_OK, NULL},
    {"./w.bin", "4", NULL, DLC_OK, NULL},
    {"sub/w.bin", NULL, "16", DLC_OK, NULL},
    {"w.bin", "8", "16", DLC_INVALID, "offset 8 and length 16 leave the file's 20 bytes"},
    {"w.bin", "18446744073709551612", "16", DLC_INVALID, "leave the file's 20 bytes"},
    {"w.bin", "-4", "16", DLC_INVALID, "offset = '-4' is no size"},
    {"w.bin", "4", "8", DLC_INVALID, "holds 8 bytes where 4 elements of type FLOAT take 16"},
    {"missing.bin", NULL, NULL, DLC_IO, "No such file"},
    {"../w.bin", NULL, NULL, DLC_INVALID, "is no path beneath the model's folder"},
    {"sub/../w.bin", NULL, NULL, DLC_INVALID, "is no path beneath"},
    {"/etc/passwd", NULL, NULL, DLC_INVALID, "is no path beneath"},
    {"", NULL, NULL, DLC_INVALID, "is no path beneath"},
    {"link.bin", NULL, NULL, DLC_INVALID, "a link on its path is not followed"},
    {"outside/w.bin", NULL, NULL, DLC_INVALID, "a link on its path is not followed"},
    {"sub", NULL, NULL, DLC_IO, "is no regular file"},
    {"fifo", NULL, NULL, DLC_IO, "is no regular file"},
};

static pb external_tensor(const char *location, const char *offset, const char *length)
{
    pb tensor = {0};
    pb_int(&tensor, 1, 4);
    pb_int(&tensor, 2, FLOAT);
    pb_text(&tensor, 8, "w");
    add_entry(&tensor, "location", location);
    if (offset)
        add_entry(&tensor, "offset", offset);
    if (length)
        add_entry(&tensor, "length", length);
    pb_int(&tensor, 14, 1);
    return tensor;
}

static pb external_model(const char *location, const char *offset, const char *length)
{
    pb graph = {0};
    add_part(&graph, NODE, node_of("Add", "x w", "y"));
    add_part(&graph, INITIALIZER, external_tensor(location, offset, length));
    add_part(&graph, INPUT, value_info("x", FLOAT, "4"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "4"));
    return model_of(&graph, 17);
}

static void make_folder(char *folder)
{
    static const float data[5] = {0, 1, 2, 3, 4};
    char path[300], target[300];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    put_file(folder, "w.bin", data, sizeof data);
    snprintf(path, sizeof path, "%s/sub", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    put_file(path, "w.bin", data + 1, 16);
    snprintf(target, sizeof target, "%s/outside", folder);
    ck_assert_int_eq(symlink(path, target), 0);
    snprintf(path, sizeof path, "%s/w.bin", folder);
    snprintf(target, sizeof target, "%s/link.bin", folder);
    ck_assert_int_eq(symlink(path, target), 0);
    snprintf(path, sizeof path, "%s/fifo", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
}

static void remove_folder(const char *folder)
{
    static const char *const names[] = {"fifo", "link.bin", "outside", "sub/w.bin",
                                        "sub",  "w.bin",    "m.onnx",  ""};
    char path[300];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)remove(path);
    }
}

START_TEST(external_data)
{
    char folder[] = "/tmp/dlc_external_XXXXXX", path[300];
    make_folder(folder);
    pb bytes = external_model(externals[_i].location, externals[_i].offset, externals[_i].length);
    put_file(folder, "m.onnx", bytes.data, bytes.n);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    import i = {.arena = dlc_arena_create(0), .bytes = bytes };
    dlc_diag_init(&i.diag, i.arena);
    i.status = dlc_onnx_open(path, NULL, i.arena, &i.diag, &i.model, &i.graph);
    remove_folder(folder);
    ck_assert_msg(i.status == externals[_i].status, "%s",
                  i.diag.nmessages ? i.diag.messages[0].text : "accepted");
    if (externals[_i].text) {
        expect_refusal(&i, externals[_i].status, externals[_i].text);
        return;
    }
    float first;
    memcpy(&first, i.graph->first->outputs[0]->data->bytes, 4);
    ck_assert_float_eq(first, 1);
    done(&i);
}
END_TEST

/* Models whose tensor lies beside them in "w.bin", whether it is read or not. */
static pb holds_initializer(void)
{
    return external_model("./w.bin", "4", "16");
}

/* With a part of the graph that nobody reads. */
static pb relu_and(uint32_t field, pb part)
{
    pb graph = {0};
    add_part(&graph, NODE, node_of("Relu", "x", "y"));
    add_part(&graph, field, part);
    add_part(&graph, INPUT, value_info("x", FLOAT, "2"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "2"));
    return model_of(&graph, 17);
}

static pb holds_unread(void)
{
    return relu_and(INITIALIZER, external_tensor("w.bin", NULL, "16"));
}

static pb holds_sparse(void)
{
    pb sparse = {0};
    add_part(&sparse, 1, external_tensor("w.bin", NULL, "16"));
    return relu_and(15, sparse);
}

static pb constant_of(void)
{
    pb node = node_of("Constant", "", "c"), attribute = {0};
    pb_text(&attribute, 1, "value");
    add_part(&attribute, 5, external_tensor("w.bin", NULL, "16"));
    pb_int(&attribute, 20, 4);
    pb_message(&node, 5, &attribute);
    return node;
}

static pb holds_in_function(void)
{
    pb body[] = {node_of("Relu", "a", "b")}, unread[] = {constant_of()};
    pb functions[] = {function_of("called", "a", "b", body, 1), function_of("other", "", "c", unread, 1)};
    return calling_model("called", functions, 2);
}

static pb holds_in_branch(void)
{
    static const uint8_t yes = 1;
    pb graph = {0}, node = node_of("If", "c", "y"), taken = branch_of("Relu"), other = branch_of("Neg");
    add_part(&other, INITIALIZER, external_tensor("w.bin", NULL, "16"));
    add_graph(&node, "then_branch", &taken);
    add_graph(&node, "else_branch", &other);
    add_part(&graph, NODE, node);
    add_part(&graph, INITIALIZER, tensor_of("c", BOOL, NULL, 0, &yes, 1));
    add_part(&graph, INPUT, value_info("x", FLOAT, "2"));
    add_part(&graph, OUTPUT, value_info("y", FLOAT, "2"));
    return model_of(&graph, 17);
}

static pb (*const holders[])(void) = {holds_initializer, holds_unread, holds_sparse, holds_in_function, holds_in_branch};

static const struct {
    const char *path;
    int is_held;
} held[] = {
    {"w.bin", 1},     {"link.bin", 1}, {"sub/../w.bin", 1}, {"sub/w.bin", 0}, {"outside/w.bin", 0},
    {"m.onnx", 0}, {"missing", 0},  {"fifo", 0},         {"sub", 0},
};

START_TEST(a_file_is_known_by_its_tensor)
{
    char folder[] = "/tmp/dlc_external_XXXXXX", path[300];
    make_folder(folder);
    pb bytes = holders[_i]();
    put_file(folder, "m.onnx", bytes.data, bytes.n);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    import i = {.arena = dlc_arena_create(0), .bytes = bytes };
    dlc_diag_init(&i.diag, i.arena);
    (void)!dlc_onnx_open(path, NULL, i.arena, &i.diag, &i.model, &i.graph);
    for (size_t k = 0; k < sizeof held / sizeof *held; k++) {
        const char *location = "", *tensor;
        snprintf(path, sizeof path, "%s/%s", folder, held[k].path);
        tensor = dlc_onnx_holder(i.model, path, &location);
        ck_assert_msg((tensor != NULL) == held[k].is_held, "%s", held[k].path);
        ck_assert(!tensor || (!strcmp(tensor, "w") && strstr(location, "w.bin")));
    }
    remove_folder(folder);
    done(&i);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("external");
    tcase_add_loop_test(tcase, external_data, 0, sizeof externals / sizeof *externals);
    tcase_add_loop_test(tcase, a_file_is_known_by_its_tensor, 0, sizeof holders / sizeof *holders);
    Suite *suite = suite_create("onnx_external");
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
