/*
 * The compiler as a library: what it says, what it refuses, and that no damage to a model does more
 * than end in a status.
 */
#include "dlc/dlc.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/machine.h"
#include "tests/unit/suite.h"

static const char good[] = "tests/cli/models/good.onnx";

START_TEST(describes_inputs_and_outputs)
{
    dlc_model *model;
    dlcrt_tensor_info info;
    ck_assert_int_eq(dlc_model_open(good, NULL, &model), DLC_OK);
    ck_assert(dlc_model_input(model, 0, &info));
    ck_assert_str_eq(info.name, "x");
    ck_assert_str_eq(info.type, "f32[batch,3]");
    ck_assert_int_eq(info.dims[0], -1);
    ck_assert_str_eq(info.dim_names[0], "batch");
    ck_assert(!dlc_model_input(model, 1, &info));
    ck_assert(dlc_model_output(model, 0, &info));
    ck_assert_int_eq(info.dims[1], 4);
    dlc_model_close(model);
}
END_TEST

START_TEST(shapes_are_fixed)
{
    dlc_shape shape = {.name = "x", .rank = 2, .dims = {7, -1}};
    dlc_model *model;
    dlcrt_tensor_info info;
    ck_assert_int_eq(dlc_model_open(good, &(dlc_options){.shapes = &shape, .nshapes = 1}, &model),
                     DLC_OK);
    ck_assert(dlc_model_output(model, 0, &info));
    ck_assert_str_eq(info.type, "f32[7,4]");
    dlc_model_close(model);
}
END_TEST

static const struct {
    const char *path;
    dlc_options options;
    dlc_status status;
    const char *text; /* within the first message */
} refusals[] = {
    {"nowhere.onnx", {0}, DLC_IO, "cannot be opened"},
    {good, {.target = "pdp11"}, DLC_USAGE, "there is no target 'pdp11'"},
    {good, {.shapes = &(dlc_shape){.name = "z", .rank = 1}, .nshapes = 1}, DLC_USAGE, "'z'"},
    {good, {.shapes = &(dlc_shape){.name = "x", .rank = 1}, .nshapes = 1}, DLC_USAGE, "'x'"},
    {good, {.typical = &(dlc_shape){.name = "z", .rank = 1}, .ntypical = 1}, DLC_USAGE, "typical sizes were given for 'z', which is no input"},
    {good, {.typical = &(dlc_shape){.name = "x", .rank = 1}, .ntypical = 1}, DLC_USAGE, "1 typical sizes were given for input 'x', which has rank 2"},
    {good, {.max_nodes = 1}, DLC_LIMIT, "1"},
    {"tests/cli/models/unknown_op.onnx", {0}, DLC_UNSUPPORTED, "FooBar"},
    {"tests/cli/models/matmul_k.onnx", {0}, DLC_INVALID, "5 and 3 differ"},
};

START_TEST(refuses)
{
    dlc_model *model;
    dlc_model_note note;
    ck_assert_int_eq(dlc_model_open(refusals[_i].path, &refusals[_i].options, &model),
                     refusals[_i].status);
    ck_assert(dlc_model_message(model, 0, &note));
    ck_assert_int_eq(note.status, refusals[_i].status);
    ck_assert_msg(strstr(note.text, refusals[_i].text) != NULL, "'%s' does not say '%s'", note.text,
                  refusals[_i].text);
    dlc_model_close(model);
}
END_TEST

typedef struct {
    char text[8][200];
    uint32_t n;
} heard;

static void hear(void *user, const dlc_model_note *note)
{
    heard *all = user;
    ck_assert_uint_lt(all->n, 8);
    snprintf(all->text[all->n++], sizeof *all->text, "%s", note->text);
}

/* Whoever wants to hear of messages at once hears each of them once, also of what several targets say. */
static void check_heard(const char *path, dlc_options options, dlc_status wanted)
{
    heard all = {.n = 0};
    dlc_model *model;
    dlc_model_note note;
    options.log = hear;
    options.user = &all;
    dlc_status status = dlc_model_open(path, &options, &model);
    int fd = memfd_create("executable", MFD_CLOEXEC);
    if (status == DLC_OK)
        status = dlc_model_write_fd(model, "so", fd, "good");
    ck_assert_int_eq(status, wanted);
    for (uint32_t i = 0; i < all.n; i++) {
        ck_assert(dlc_model_message(model, i, &note));
        ck_assert_str_eq(note.text, all.text[i]);
    }
    ck_assert_uint_eq(all.n, 1);
    ck_assert(!dlc_model_message(model, all.n, &note));
    close(fd);
    dlc_model_close(model);
}

/* How often a text that has `part` was heard. */
static uint32_t times_heard(const heard *all, const char *part)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n; i++)
        n += strstr(all->text[i], part) != NULL;
    return n;
}

/* A limit's message stands behind all others: what later calls find is heard all the same, and it but once. */
START_TEST(limits_are_heard_once)
{
    heard all = {.n = 0};
    const char *text;
    dlc_model *model;
    dlc_options options = {.max_memory_bytes = 1, .log = hear, .user = &all};
    ck_assert_int_eq(dlc_model_open(good, &options, &model), DLC_LIMIT);
    ck_assert_uint_eq(times_heard(&all, "--max-memory"), 1);
    ck_assert_int_eq(dlc_model_write(model, "so", good, "good"), DLC_USAGE);
    ck_assert_int_eq(dlc_model_write(model, "so", good, "good"), DLC_USAGE);
    ck_assert_uint_eq(times_heard(&all, "is the model itself"), 2);
    ck_assert_uint_eq(all.n, 3);
    dlc_model_close(model);
    all.n = 0;
    options = (dlc_options){.target = "x86-64-v2,x86-64-v3", .log = hear, .user = &all};
    ck_assert_int_eq(dlc_model_open(good, &options, &model), DLC_OK);
    ck_assert_int_eq(dlc_model_text(model, DLC_TEXT_EXPLAIN, "text", &text), DLC_USAGE);
    ck_assert_uint_eq(times_heard(&all, "texts are about one target"), 1);
    ck_assert_int_eq(dlc_model_part(model, 0, 1, 0), DLC_USAGE);
    ck_assert_uint_eq(times_heard(&all, "for one target"), 1);
    ck_assert_uint_eq(all.n, 2);
    dlc_model_close(model);
}
END_TEST

static void *read_file(const char *path, size_t *n)
{
    FILE *stream = fopen(path, "rb");
    ck_assert_ptr_nonnull(stream);
    void *bytes = malloc(1 << 20);
    *n = fread(bytes, 1, 1 << 20, stream);
    fclose(stream);
    return bytes;
}

/* What is asked before something is written, and by whoever writes. */
START_TEST(a_model_is_written_over_by_nothing)
{
    heard all = {.n = 0};
    dlc_options options = {.log = hear, .user = &all};
    dlc_model *model;
    dlc_quantizer *quantizer;
    dlc_tuned tuned;
    size_t n;
    ck_assert_int_eq(dlc_model_open(good, &options, &model), DLC_OK);
    ck_assert_int_eq(dlc_model_may_write(model, "tests/../tests/cli/models/good.onnx"), DLC_USAGE);
    ck_assert_uint_eq(times_heard(&all, "is the model itself ('tests/cli/models/good.onnx'); another file is wanted"), 1);
    ck_assert_int_eq(dlc_model_tune(model, &(dlc_tuning){.size_bytes = sizeof(dlc_tuning), .file = good}, &tuned), DLC_USAGE);
    ck_assert_uint_eq(times_heard(&all, "is the model itself; "), 1);
    ck_assert_int_eq(dlc_model_may_write(model, "tests/cli/models/unknown_op.onnx"), DLC_OK);
    ck_assert_int_eq(dlc_model_may_write(model, "nowhere"), DLC_OK);
    ck_assert_int_eq(dlc_model_may_write(model, NULL), DLC_USAGE);
    ck_assert_int_eq(dlc_model_may_write(NULL, "nowhere"), DLC_USAGE);
    dlc_model_close(model);
    ck_assert_int_eq(dlc_quantizer_open(good, 1, NULL, &quantizer), DLC_OK);
    ck_assert_int_eq(dlc_quantizer_probe(quantizer, good), DLC_USAGE);
    ck_assert_int_eq(dlc_quantizer_write(quantizer, (const double[]){0}, (const double[]){1}, good), DLC_USAGE);
    ck_assert_ptr_nonnull(strstr(dlc_quantizer_message(quantizer), "good.onnx: is the model itself; "));
    dlc_quantizer_close(quantizer);
    void *bytes = read_file(good, &n);
    ck_assert_int_eq(dlc_model_open_bytes(bytes, n, good, NULL, &model), DLC_OK);
    ck_assert_int_eq(dlc_model_may_write(model, good), DLC_OK); /* it came from memory */
    dlc_model_close(model);
    free(bytes);
}
END_TEST

/* A callback that asks the model for more hears nothing twice. */
typedef struct {
    heard all;
    dlc_model *model;
} asker;

static void hear_and_ask(void *user, const dlc_model_note *note)
{
    asker *a = user;
    const char *text;
    hear(&a->all, note);
    if (a->model)
        ck_assert_int_eq(dlc_model_text(a->model, DLC_TEXT_IMPORTED, NULL, &text), DLC_OK);
}

START_TEST(a_callback_hears_no_message_twice)
{
    asker a = {.model = NULL};
    const char *text;
    dlc_options options = {.log = hear_and_ask, .user = &a};
    ck_assert_int_eq(dlc_model_open(good, &options, &a.model), DLC_OK);
    ck_assert_int_eq(dlc_model_text(a.model, DLC_TEXT_INSPECT, "html", &text), DLC_USAGE);
    ck_assert_uint_eq(times_heard(&a.all, "'html' is unknown"), 1);
    ck_assert_uint_eq(a.all.n, 1);
    dlc_model_close(a.model);
}
END_TEST

START_TEST(the_cache_is_heard)
{
    heard all = {.n = 0};
    char file[200];
    dlc_model *model;
    dlc_options options = {.log = hear, .user = &all};
    ck_assert_int_eq(dlc_cache_find("nowhere.onnx", &options, "/tmp", file, sizeof file, &model), DLC_IO);
    ck_assert_uint_eq(all.n, 1);
    ck_assert_uint_eq(times_heard(&all, "No such file"), 1);
    dlc_model_close(model);
}
END_TEST

START_TEST(messages_are_heard_at_once)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/dlc_tuned_%d", getpid());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("nothing of ours\n", file);
    fclose(file);
    check_heard("tests/cli/models/unknown_op.onnx", (dlc_options){0}, DLC_UNSUPPORTED);
    check_heard("tests/cli/models/unknown_op.onnx", (dlc_options){.target = "x86-64-v2,x86-64-v3"}, DLC_UNSUPPORTED);
    check_heard(good, (dlc_options){.tuned = path}, DLC_OK);
    check_heard(good, (dlc_options){.tuned = path, .target = "x86-64-v2,x86-64-v3"}, DLC_OK);
    unlink(path);
}
END_TEST

START_TEST(texts)
{
    const char *text;
    dlc_model *model;
    ck_assert_int_eq(dlc_model_open(good, NULL, &model), DLC_OK);
    ck_assert_int_eq(dlc_model_text(model, DLC_TEXT_IMPORTED, NULL, &text), DLC_OK);
    ck_assert_ptr_nonnull(strstr(text, "matmul %x, %w"));
    ck_assert_int_eq(dlc_model_text(model, DLC_TEXT_INSPECT, "json", &text), DLC_OK);
    ck_assert_ptr_nonnull(strstr(text, "\"kernels\""));
    ck_assert_int_eq(dlc_model_text(model, DLC_TEXT_INSPECT, "html", &text), DLC_USAGE);
    ck_assert_int_eq(dlc_model_text(model, DLC_TEXT_EXPLAIN, "text", &text), DLC_OK);
    ck_assert_ptr_nonnull(strstr(text, "edges fused"));
    ck_assert_int_eq(dlc_model_write(model, "exe", "/tmp/x", NULL), DLC_USAGE);
    ck_assert_int_eq(dlc_model_write(model, "so", "/tmp/x", "no-identifier"), DLC_USAGE);
    dlc_model_close(model);
}
END_TEST

START_TEST(interprets)
{
    float x[2][3] = {{1, 0, 0}, {0, 1, 0}};
    dlcrt_tensor input = {.name = "x", .data = x, .dtype = DLC_F32, .rank = 2, .dims = {2, 3}},
                 output;
    dlc_model *model;
    dlc_model_note note;
    ck_assert_int_eq(dlc_model_open(good, NULL, &model), DLC_OK);
    ck_assert_int_eq(dlc_model_interpret(model, &input, 1, &output, 1), DLC_OK);
    ck_assert_int_eq(output.dims[0], 2);
    ck_assert_double_eq_tol(((float *)output.data)[0], 0.345584, 1e-6);
    ck_assert_double_eq(((float *)output.data)[6], 0); /* relu(-0.5369…) */
    input.dims[1] = 4;
    ck_assert_int_eq(dlc_model_interpret(model, &input, 1, &output, 1), DLC_INVALID);
    ck_assert(dlc_model_message(model, 0, &note));
    ck_assert_str_eq(note.text, "input 'x' is f32[2,4], where f32[batch,3] is wanted");
    ck_assert_int_eq(dlc_model_interpret(model, NULL, 0, &output, 1), DLC_INVALID);
    dlc_model_close(model);
}
END_TEST

/* ---- damage ---- */

typedef struct {
    unsigned char bytes[65536];
    size_t n;
    char path[64]; /* of a memory file that holds the damaged bytes */
    int fd;
} victim;

static void open_victim(victim *v, const char *path)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    v->n = fread(v->bytes, 1, sizeof v->bytes, file);
    fclose(file);
    v->fd = memfd_create("victim", 0);
    snprintf(v->path, sizeof v->path, "/proc/self/fd/%d", v->fd);
}

/* Whatever came in: all the way to the memory plan, or a status with a message. */
static dlc_status compile_bytes(const victim *v, size_t n)
{
    dlc_model *model;
    dlc_model_note note;
    const char *text;
    ck_assert_int_eq(ftruncate(v->fd, 0), 0);
    ck_assert_int_eq(pwrite(v->fd, v->bytes, n, 0), (ssize_t)n);
    dlc_status status = dlc_model_open(v->path, NULL, &model);
    if (status == DLC_OK)
        status = dlc_model_text(model, DLC_TEXT_GRAPH, NULL, &text);
    if (status != DLC_OK)
        ck_assert(dlc_model_message(model, 0, &note));
    ck_assert_int_ne(status, DLC_INTERNAL);
    dlc_model_close(model);
    return status;
}

static float first_output(const char *so, int fd)
{
    dlcrt_executable *executable;
    dlcrt_context *context;
    float values[6] = {1, 2, 3, 4, 5, 6};
    dlcrt_tensor in = {.data = values, .dtype = DLC_F32, .rank = 2, .dims = {2, 3}}, out = {0};
    dlc_status status =
        so ? dlcrt_executable_open(so, &executable) : dlcrt_executable_open_fd(fd, &executable);
    ck_assert_msg(status == DLC_OK, "%s", dlcrt_last_error());
    ck_assert_int_eq(dlcrt_context_create(executable, NULL, &context), DLC_OK);
    ck_assert_msg(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK, "%s", dlcrt_last_error());
    float result = *(float *)out.data;
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
    return result;
}

/* From memory to memory: no file is read or written, and the bytes are those of the file. */
START_TEST(bytes_become_an_executable_in_memory)
{
    size_t n, size_bytes;
    void *bytes = read_file(good, &n);
    dlc_model *model;
    dlc_options options = {.size_bytes = sizeof options, .target = "native"};
    ck_assert_int_eq(dlc_model_open_bytes(bytes, n, "the model", &options, &model), DLC_OK);
    int fd = memfd_create("executable", MFD_CLOEXEC);
    ck_assert_int_eq(dlc_model_write_fd(model, "so", fd, "good"), DLC_OK);
    dlc_model_close(model);
    float answer = first_output(NULL, fd);
    char path[64];
    snprintf(path, sizeof path, "/tmp/dlc_driver_%d.so", getpid());
    ck_assert_int_eq(dlc_model_open(good, NULL, &model), DLC_OK);
    ck_assert_int_eq(dlc_model_write(model, "so", path, "good"), DLC_OK);
    dlc_model_close(model);
    ck_assert_float_eq(first_output(path, -1), answer);
    void *file = read_file(path, &size_bytes), *memory = malloc(size_bytes);
    ck_assert_int_eq(pread(fd, memory, size_bytes, 0), (ssize_t)size_bytes);
    ck_assert_int_eq(lseek(fd, 0, SEEK_END), (off_t)size_bytes);
    ck_assert(!memcmp(file, memory, size_bytes));
    unlink(path);
    close(fd);
    free(file);
    free(memory);
    /* what cannot be written or read */
    ck_assert_int_eq(dlc_model_open_bytes(bytes, n, "the model", NULL, &model), DLC_OK);
    ck_assert_int_eq(dlc_model_write_fd(model, "so", -1, NULL), DLC_IO);
    dlc_model_close(model);
    ck_assert_int_eq(dlc_model_open_bytes(bytes, n / 2, "half", NULL, &model), DLC_INVALID);
    dlc_model_note note;
    ck_assert(dlc_model_message(model, 0, &note));
    ck_assert_ptr_nonnull(strstr(note.place, "half"));
    dlc_model_close(model);
    ck_assert_int_eq(dlc_model_open_bytes(NULL, 0, NULL, NULL, &model), DLC_INVALID);
    dlc_model_close(model);
    free(bytes);
}
END_TEST

static char cache[64], copy[96];

static void copy_model(void)
{
    size_t n;
    void *bytes = read_file(good, &n);
    FILE *stream = fopen(copy, "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, n, stream), n);
    fclose(stream);
    free(bytes);
}

/* Looks for `copy`; whether something was compiled or at least read. What looks without the compiler knows the same. */
static int find_in_cache(const dlc_options *options, char *file)
{
    dlc_model *model;
    char looked[256] = "";
    int is_known = dlc_cache_look(copy, options, cache, looked, sizeof looked);
    dlc_status status = dlc_cache_find(copy, options, cache, file, 256, &model);
    dlc_model_note note;
    ck_assert_msg(status == DLC_OK, "%s",
                  model && dlc_model_message(model, 0, &note) ? note.text : "");
    int was_read = model != NULL;
    dlc_model_close(model);
    ck_assert_int_eq(is_known, !was_read);
    ck_assert(!is_known || !strcmp(looked, file));
    ck_assert(dlc_cache_look(copy, options, cache, looked, sizeof looked) && !strcmp(looked, file));
    ck_assert_float_eq(first_output(file, -1), first_output(file, -1));
    return was_read;
}

START_TEST(a_second_start_compiles_nothing)
{
    char first[256], second[256], damaged[320];
    snprintf(cache, sizeof cache, "/tmp/dlc_cache_%d/deep", getpid());
    snprintf(copy, sizeof copy, "/tmp/dlc_cached_%d.onnx", getpid());
    setenv("DLC_CACHE_DIR", cache, 1); /* what was measured of this machine before is another matter */
    copy_model();
    ck_assert(find_in_cache(NULL, first));
    ck_assert(!find_in_cache(NULL, second));
    ck_assert_str_eq(first, second);
    /* other options, another executable; the same bytes at another time, the same */
    ck_assert(find_in_cache(&(dlc_options){.fusion = "none"}, second));
    ck_assert_str_ne(first, second);
    ck_assert(find_in_cache(&(dlc_options){.target = "x86-64-v2"}, second));
    ck_assert_str_ne(first, second);
    unlink(copy);
    copy_model();
    ck_assert(find_in_cache(NULL, second));
    ck_assert_str_eq(first, second);
    ck_assert(!find_in_cache(NULL, second));
    /* other bytes of the same number in the same file at the same time, as far as anyone can set it */
    struct stat before;
    ck_assert_int_eq(stat(copy, &before), 0);
    FILE *stream = fopen(copy, "r+");
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(fseek(stream, -1, SEEK_END), 0);
    int last = fgetc(stream);
    ck_assert_int_eq(fseek(stream, -1, SEEK_END), 0);
    fputc(last, stream);
    fclose(stream);
    ck_assert_int_eq(utimensat(AT_FDCWD, copy, (struct timespec[]){before.st_atim, before.st_mtim}, 0), 0);
    ck_assert(find_in_cache(NULL, second));
    ck_assert(!find_in_cache(NULL, second));
    /* what was measured of the processor changes what native is, and another boot may be on another processor */
    snprintf(damaged, sizeof damaged, "sed -i '1s/ [-0-9a-f]* / another /' %s/*-native.files", cache);
    ck_assert_int_eq(system(damaged), 0);
    ck_assert(!find_in_cache(NULL, second));
    snprintf(damaged, sizeof damaged, "%s/machine", cache);
    ck_assert(!find_in_cache(NULL, second));
    FILE *machine = fopen(damaged, "w");
    ck_assert_ptr_nonnull(machine);
    char name[256] = "";
    dlc_machine_name(name, sizeof name);
    fprintf(machine, "processor %s\ncycles_per_us 1234\n", name);
    fclose(machine);
    ck_assert(find_in_cache(NULL, second));
    ck_assert_str_ne(first, second);
    unlink(damaged);
    ck_assert(!find_in_cache(NULL, second));
    ck_assert_str_eq(first, second);
    /* what someone deleted is made again */
    unlink(first);
    ck_assert(find_in_cache(NULL, second));
    /* entries that say nothing are not believed */
    snprintf(damaged, sizeof damaged, "for f in %s/*.files; do echo x >$f; done", cache);
    ck_assert_int_eq(system(damaged), 0);
    ck_assert(find_in_cache(NULL, second));
    dlc_model *model;
    dlc_options program = {.fusion = "./mine.so"};
    ck_assert_int_eq(dlc_cache_find(copy, &program, cache, second, sizeof second, &model),
                     DLC_USAGE);
    dlc_model_close(model);
    ck_assert(!dlc_cache_look(copy, &program, cache, second, sizeof second) &&
              !dlc_cache_look("/nowhere.onnx", NULL, cache, second, sizeof second) &&
              !dlc_cache_look(copy, NULL, cache, second, 40));
    ck_assert_int_eq(dlc_cache_find("/nowhere.onnx", NULL, cache, second, 256, &model), DLC_IO);
    dlc_model_close(model);
    unlink(copy);
    snprintf(damaged, sizeof damaged, "rm -r /tmp/dlc_cache_%d", getpid());
    ck_assert_int_eq(system(damaged), 0);
}
END_TEST

START_TEST(every_truncation_is_refused)
{
    victim v;
    open_victim(&v, good);
    for (size_t n = 0; n < v.n; n++)
        ck_assert_int_ne(compile_bytes(&v, n), DLC_OK);
    ck_assert_int_eq(compile_bytes(&v, v.n), DLC_OK);
    close(v.fd);
}
END_TEST

static const char *const flipped[] = {"tests/cli/models/good.onnx",
                                      "tests/cli/models/conv_group.onnx", "models/digits.onnx"};
enum { NFLIPPED = sizeof flipped / sizeof *flipped, MOST_FLIPS = 2880, PIECES = 4, /* a test has a piece, or sanitizers take minutes */
       STRIDE = 7919 }; /* a prime: flips, and bits, lie everywhere */

/* Every bit of a small model is flipped, of a large one as many as MOST_FLIPS; none twice. Weights fill most of the digits model: its
 * flips stay in the first bytes (the nodes) and the last (the interface). */
START_TEST(flips_end_in_a_status)
{
    victim v;
    open_victim(&v, flipped[_i / PIECES]);
    size_t nedge = v.n < 1200 ? v.n : 600, nbits = 8 * (v.n < 1200 ? v.n : 2 * nedge), n = nbits < MOST_FLIPS ? nbits : MOST_FLIPS;
    for (size_t i = (size_t)(_i % PIECES); i < n; i += PIECES) {
        size_t bit = i * STRIDE % nbits, at = bit / 8;
        at = at < nedge ? at : v.n - 1 - (at - nedge);
        unsigned char mask = (unsigned char)(1u << bit % 8);
        v.bytes[at] ^= mask;
        (void)compile_bytes(&v, v.n);
        v.bytes[at] ^= mask;
    }
    close(v.fd);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("driver");
    TCase *tcase = tcase_create("library");
    tcase_set_timeout(tcase, 200);
    tcase_add_test(tcase, describes_inputs_and_outputs);
    tcase_add_test(tcase, shapes_are_fixed);
    tcase_add_loop_test(tcase, refuses, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(tcase, messages_are_heard_at_once);
    tcase_add_test(tcase, limits_are_heard_once);
    tcase_add_test(tcase, a_model_is_written_over_by_nothing);
    tcase_add_test(tcase, a_callback_hears_no_message_twice);
    tcase_add_test(tcase, the_cache_is_heard);
    tcase_add_test(tcase, texts);
    tcase_add_test(tcase, interprets);
    tcase_add_test(tcase, bytes_become_an_executable_in_memory);
    tcase_add_test(tcase, a_second_start_compiles_nothing);
    tcase_add_test(tcase, every_truncation_is_refused);
    tcase_add_loop_test(tcase, flips_end_in_a_status, 0, NFLIPPED * PIECES);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
