/* Damaged, foreign and forged executables: every one is refused by name of reason, and nothing is
 * followed out of bounds. */
#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "dlc/checksum.h"
#include "dlc/runtime.h"
#include "package/plan.h"
#include "tests/unit/made_model.h"
#include "tests/unit/suite.h"

static unsigned char *file;
static size_t file_bytes;
static int fd = -1;

static made_model small_model(void)
{
    made_model m = made_begin("small");
    dlc_graph_symbol(m.graph, "n", DLC_BIND_INPUT_DIM, NULL, 0);
    m.graph->symbols.data[0].hi = 1 << 20;
    dlc_value *x = made_input(&m, "x", DLC_F32, 1, (int64_t[]){-1});
    uint32_t count = dlc_graph_symbol(m.graph, "count", DLC_BIND_OPAQUE, NULL, 0);
    m.graph->symbols.data[count].hi = 1 << 20;
    dlc_attr symbol = dlc_attr_int(DLC_ATTR_SYMBOL, count);
    dlc_value *at = made_node(&m, DLC_OP_NONZERO, "at", 1, &x, 1, 1, &symbol)->outputs[0];
    dlc_graph_output(m.graph, "y", made_unary(&m, DLC_OP_NEG, "y", at));
    dlc_graph_output(m.graph, "z", made_unary(&m, DLC_OP_NEG, "z", x));
    dlc_graph_require(
        m.graph,
        dlc_le(m.graph->pool, dlc_expr_sym(m.graph->pool, 0), dlc_expr_i64(m.graph->pool, 100)),
        "n is above 100");
    return m;
}

/* Strings: a table of the plan's, steps that make more. */
static made_model string_model(void)
{
    static const int64_t delimiter[1] = {1};
    made_model m = made_begin("strings");
    dlc_graph_symbol(m.graph, "n", DLC_BIND_INPUT_DIM, NULL, 0);
    dlc_value *x = made_input(&m, "x", DLC_STR, 1, (int64_t[]){-1});
    ck_assert_int_eq(dlc_strings_add(&m.graph->strings, m.arena, "-"), 1);
    dlc_value *cut = dlc_graph_constant(m.graph, "cut", &(dlc_type){.dtype = DLC_STR}, delimiter, sizeof delimiter);
    uint32_t count = dlc_graph_symbol(m.graph, "count", DLC_BIND_OPAQUE, NULL, 0);
    const dlc_attr attrs[2] = {dlc_attr_int(DLC_ATTR_SYMBOL, count), dlc_attr_int(DLC_ATTR_MOST, -1)};
    dlc_node *split = made_node(&m, DLC_OP_TEXT_SPLIT, "parts", 2, (dlc_value *const[]){x, cut}, 2, 2, attrs);
    dlc_graph_output(m.graph, "parts", split->outputs[0]);
    dlc_graph_output(m.graph, "n", split->outputs[1]);
    return m;
}

static void write_model(made_model m)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/dlc_test_load_%d.so", getpid());
    dlc_module *module = made_finish(&m, "native");
    dlc_executable_options options = {
        .artifact = DLC_ARTIFACT_SO, .path = path, .name = "small", .njobs = 1};
    ck_assert_int_eq(dlc_executable_write(module, &options, m.graph->diag), DLC_OK);
    made_end(&m);
    FILE *stream = fopen(path, "rb");
    ck_assert_ptr_nonnull(stream);
    file_bytes = fread(file, 1, 1 << 20, stream);
    fclose(stream);
    unlink(path);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(pwrite(fd, file, file_bytes, 0), (ssize_t)file_bytes);
}

static void setup(void)
{
    file = malloc(1 << 20);
    fd = memfd_create("damaged", 0);
    ck_assert_int_ge(fd, 0);
    write_model(small_model());
}

static void teardown(void)
{
    close(fd);
    free(file);
}

/* The bytes of [address, address + n) of the image, or NULL. */
static unsigned char *at_address(unsigned char *bytes, uint64_t address, uint64_t n)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr s;
        if (header->e_phoff > file_bytes || header->e_phoff + (i + 1) * sizeof s > file_bytes)
            return NULL;
        memcpy(&s, bytes + header->e_phoff + i * sizeof s, sizeof s);
        if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr <= s.p_filesz &&
            n <= s.p_filesz - (address - s.p_vaddr) && s.p_offset <= file_bytes &&
            address - s.p_vaddr <= file_bytes - s.p_offset &&
            n <= file_bytes - s.p_offset - (address - s.p_vaddr))
            return bytes + s.p_offset + (address - s.p_vaddr);
    }
    return NULL;
}

/* The seal's place in the file, and a copy of it: a forged entry point is at any address. */
static unsigned char *seal_of(unsigned char *bytes, dlc_seal *seal)
{
    unsigned char *at = at_address(bytes, ((const Elf64_Ehdr *)bytes)->e_entry, sizeof(dlc_seal));
    if (at)
        memcpy(seal, at, sizeof *seal);
    return at;
}

/* Bytes of the file that no checksum covers. */
static size_t unsealed_bytes(void)
{
    size_t n = file_bytes - sizeof(dlc_seal);
    dlc_seal s;
    ck_assert_ptr_nonnull(seal_of(file, &s));
    for (uint32_t i = 0; i < DLC_SEAL_COUNT; i++)
        n -= s.parts[i].size_bytes;
    return n;
}

static dlc_status open_file(void)
{
    dlcrt_executable *executable = NULL;
    dlc_status status = dlcrt_executable_open_fd(fd, &executable);
    ck_assert((status == DLC_OK) == (executable != NULL));
    dlcrt_executable_close(executable);
    return status;
}

START_TEST(every_truncation_is_refused)
{
    ck_assert_msg(open_file() == DLC_OK, "%s", dlcrt_last_error());
    for (size_t n = file_bytes; n-- > 0;) {
        ck_assert_int_eq(ftruncate(fd, (off_t)n), 0);
        ck_assert_msg(open_file() == DLC_INVALID, "%zu bytes", n);
        ck_assert_str_ne(dlcrt_last_error(), "");
    }
}
END_TEST

/* The model's answers, or none. */
typedef struct {
    dlc_status status;
    float outputs[64];
    size_t sizes[2];
} answer;

static answer ask(void)
{
    answer a = {.status = DLC_INVALID};
    dlcrt_executable *executable = NULL;
    dlcrt_context *context = NULL;
    float values[5] = {1, 0, 3, 0, 5};
    dlcrt_tensor in = {.data = values, .dtype = DLC_F32, .rank = 1, .dims = {5}}, out[2] = {0};
    a.status = dlcrt_executable_open_fd(fd, &executable);
    if (a.status)
        return a;
    ck_assert_int_eq(
        dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 1}, &context), DLC_OK);
    ck_assert_msg(dlcrt_context_run(context, &in, 1, out, 2) == DLC_OK, "%s", dlcrt_last_error());
    unsigned char *to = (unsigned char *)a.outputs;
    for (int i = 0; i < 2; i++) {
        a.sizes[i] = out[i].size_bytes;
        memcpy(to, out[i].data, out[i].size_bytes);
        to += out[i].size_bytes;
    }
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
    return a;
}

/* Damage is refused, or lies in what is not loaded (symbols, names, sections, padding, the dynamic
 * linker's tables, which strip and patchelf rewrite) and changes nothing. */
static void check_refused_or_harmless(const answer *whole, size_t *nharmless, size_t at)
{
    answer found = ask();
    ck_assert_msg(found.status == DLC_INVALID || found.status == DLC_OK, "byte %zu", at);
    if (found.status == DLC_OK)
        ck_assert_msg(!memcmp(&found, whole, sizeof found), "byte %zu", at);
    *nharmless += found.status == DLC_OK;
}

START_TEST(every_flipped_bit_is_refused_or_harmless)
{
    answer whole = ask();
    size_t nharmless = 0;
    ck_assert_int_eq(whole.status, DLC_OK);
    for (size_t bit = 0; bit < file_bytes * 8; bit++) {
        unsigned char byte = file[bit / 8] ^ (unsigned char)(1u << bit % 8);
        ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)(bit / 8)), 1);
        check_refused_or_harmless(&whole, &nharmless, bit / 8);
        ck_assert_int_eq(pwrite(fd, &file[bit / 8], 1, (off_t)(bit / 8)), 1);
    }
    ck_assert_int_eq(open_file(), DLC_OK);
    ck_assert_uint_lt(nharmless, unsealed_bytes() * 8);
}
END_TEST

/* y = x + c: the weights are three chunks of checksums and a bit. */
enum { NWEIGHTS = 3 * DLC_SEAL_CHUNK / 4 + 100 };
static made_model heavy_model(void)
{
    made_model m = made_begin("heavy");
    static float weights[NWEIGHTS];
    dlc_type type = {.dtype = DLC_F32, .rank = 1};
    for (int i = 0; i < NWEIGHTS; i++)
        weights[i] = (float)i;
    type.dims[0] = dlc_expr_i64(m.graph->pool, NWEIGHTS);
    dlc_value *x = made_input(&m, "x", DLC_F32, 1, (int64_t[]){NWEIGHTS});
    dlc_value *c = dlc_graph_constant(m.graph, "c", &type, weights, sizeof weights);
    dlc_graph_output(m.graph, "y", made_binary(&m, DLC_OP_ADD, "y", x, c));
    return m;
}

/* The file opens; the first run tells, and leaves the output alone; so does every later one. */
static void check_run_refuses(const char *wanted)
{
    static float x[NWEIGHTS], y[NWEIGHTS];
    dlcrt_executable *executable;
    dlcrt_context *context;
    dlcrt_tensor in = {.data = x, .dtype = DLC_F32, .rank = 1, .dims = {NWEIGHTS}};
    dlcrt_tensor out = {.data = y, .size_bytes = sizeof y};
    ck_assert_int_eq(dlcrt_executable_open_fd(fd, &executable), DLC_OK);
    ck_assert_int_eq(dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 1}, &context), DLC_OK);
    memset(y, 0x5a, sizeof y);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(dlcrt_context_run(context, &in, 1, &out, 1), DLC_INVALID);
        ck_assert_ptr_nonnull(strstr(dlcrt_last_error(), wanted));
    }
    for (size_t i = 0; i < sizeof y; i++)
        ck_assert_int_eq(((unsigned char *)y)[i], 0x5a);
    ck_assert_int_eq(dlcrt_executable_verify(executable), DLC_INVALID);
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
}

START_TEST(damaged_weights_are_found_by_the_first_run)
{
    static const char *const wanted[] = {"bytes 0 to 65536 of its constants", "bytes 65536 to 131072 of",
                                         "bytes 131072 to 196608 of", "bytes 196608 to 19"};
    dlc_seal s;
    write_model(heavy_model());
    unsigned char *weights = NULL;
    ck_assert_ptr_nonnull(seal_of(file, &s));
    weights = at_address(file, s.parts[DLC_SEAL_CONSTANTS].address, s.parts[DLC_SEAL_CONSTANTS].size_bytes);
    ck_assert_ptr_nonnull(weights);
    for (int chunk = 0; chunk < 4; chunk++)
        for (int last = 0; last < 2; last++) {
            size_t at = (size_t)chunk * DLC_SEAL_CHUNK + (last ? chunk < 3 ? DLC_SEAL_CHUNK - 1 : 399 : 0);
            off_t place = (off_t)(weights - file) + (off_t)at;
            unsigned char byte = weights[at] ^ 4;
            ck_assert_int_eq(pwrite(fd, &byte, 1, place), 1);
            check_run_refuses(wanted[chunk]);
            ck_assert_int_eq(pwrite(fd, &weights[at], 1, place), 1);
        }
    dlcrt_executable *executable;
    ck_assert_int_eq(dlcrt_executable_open_fd(fd, &executable), DLC_OK);
    ck_assert_int_eq(dlcrt_executable_verify(executable), DLC_OK);
    dlcrt_executable_close(executable);
}
END_TEST

/* Words that were exchanged, and bytes behind the end. */
START_TEST(bytes_appended_or_swapped_are_refused_or_harmless)
{
    answer whole = ask();
    size_t nharmless = 0;
    ck_assert_int_eq(pwrite(fd, "", 1, (off_t)file_bytes), 1);
    check_refused_or_harmless(&whole, &nharmless, file_bytes);
    ck_assert_int_eq(ftruncate(fd, (off_t)file_bytes), 0);
    for (size_t i = 64; i + 16 <= file_bytes; i += 8) {
        if (!memcmp(file + i, file + i + 8, 8))
            continue;
        ck_assert_int_eq(pwrite(fd, file + i + 8, 8, (off_t)i), 8);
        ck_assert_int_eq(pwrite(fd, file + i, 8, (off_t)i + 8), 8);
        check_refused_or_harmless(&whole, &nharmless, i);
        ck_assert_int_eq(pwrite(fd, file + i, 16, (off_t)i), 16);
    }
}
END_TEST

/* Makes the checksums fit again, as far as the file leads to its seal. */
static void seal(unsigned char *bytes)
{
    dlc_seal s = {0};
    unsigned char *at = seal_of(bytes, &s);
    const size_t head = offsetof(dlc_seal, abi_version);
    for (uint32_t i = 0; at && i < DLC_SEAL_COUNT; i++) {
        const unsigned char *part = at_address(bytes, s.parts[i].address, s.parts[i].size_bytes);
        if (part)
            s.parts[i].checksum = dlc_checksum(part, s.parts[i].size_bytes);
    }
    s.checksum = dlc_checksum((char *)&s + head, sizeof s - head);
    if (at)
        memcpy(at, &s, sizeof s);
    ck_assert_int_eq(pwrite(fd, bytes, file_bytes, 0), (ssize_t)file_bytes);
}

/* With a fresh checksum, every word of the ELF headers and of the plan's surroundings takes hostile
 * values: refused or fine. */
START_TEST(forged_headers_are_followed_nowhere)
{
    static const uint64_t values[] = {0,          1,          0x7fffffff, 0x80000000,
                                      0xffffffff, 1ull << 62, 1ull << 63, UINT64_MAX};
    unsigned char *forged = malloc(file_bytes);
    for (size_t at = 0; at + 8 <= file_bytes; at += 4)
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            memcpy(forged, file, file_bytes);
            memcpy(forged + at, &values[v], values[v] > UINT32_MAX ? 8 : 4);
            seal(forged);
            (void)open_file();
        }
    free(forged);
}
END_TEST

/* A plan that goes on into a segment that nobody may read, or into none: of a file whose code is no sealed part. */
START_TEST(plans_end_where_nothing_can_be_read)
{
    enum { LAST = 3 }; /* segments that are loaded */
    Elf64_Phdr *segments = (Elf64_Phdr *)(file + ((Elf64_Ehdr *)file)->e_phoff);
    dlc_seal s = {0};
    unsigned char *sealed = seal_of(file, &s);
    dlc_plan *plan = NULL;
    for (size_t at = 0; !plan && at + sizeof *plan <= file_bytes; at += 8)
        if (!memcmp(file + at, DLC_PLAN_MAGIC, sizeof plan->magic))
            plan = (dlc_plan *)(file + at);
    ck_assert(sealed && plan);
    s.parts[DLC_SEAL_CODE].size_bytes = 0;
    memcpy(sealed, &s, sizeof s);
    for (uint32_t i = 0, nloaded = 0; nloaded < LAST; i++) {
        if (segments[i].p_type != PT_LOAD || !nloaded++)
            continue;
        segments[i].p_flags = 0;
        for (plan->size_bytes = 4096; plan->size_bytes < file_bytes; plan->size_bytes += 1024) {
            seal(file);
            ck_assert_int_ne(open_file(), DLC_OK);
        }
    }
}
END_TEST

/* The same for the plan's own tables, whose checksum is made to fit. Contexts size what passes;
 * nothing is run. */
START_TEST(forged_plans_are_followed_nowhere)
{
    static const uint64_t values[] = {0, 1, 7, 0x7fffffff, 0xffffffff, 1ull << 63, UINT64_MAX};
    made_model m = _i ? string_model() : small_model();
    dlc_module *module = made_finish(&m, "native");
    dlc_blob plan;
    dlc_pieces constants = {0};
    ck_assert_int_eq(
        dlc_plan_build(module, &(dlc_plan_cuda){0}, &constants, m.arena, m.graph->diag, &plan),
        DLC_OK);
    dlc_kernel_fn kernels[8] = {0};
    unsigned char *bytes = aligned_alloc(64, (plan.size_bytes + 63) / 64 * 64);
    for (size_t at = 0; at + 4 <= plan.size_bytes; at += 4)
        for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
            size_t n = values[v] > UINT32_MAX ? 8 : 4;
            if (at + n > plan.size_bytes)
                continue;
            memcpy(bytes, plan.bytes, plan.size_bytes);
            memcpy(bytes + at, &values[v], n);
            if (((dlc_plan *)bytes)->size_bytes > plan.size_bytes)
                continue; /* an entry of a loaded file is checked against it, a linked one has no
                             bounds to check */
            dlc_plan_entry entry = {dlc_checksum(bytes, ((dlc_plan *)bytes)->size_bytes),
                                    (dlc_plan *)bytes, kernels};
            dlc_executable forged = {.magic = DLC_EXECUTABLE_MAGIC,
                                     .abi_version = DLC_ABI_VERSION,
                                     .nplans = 1,
                                     .constants_bytes = constants.size_bytes,
                                     .constants = bytes,
                                     .plans = &entry};
            dlcrt_executable *executable;
            dlcrt_context *context;
            if (dlcrt_executable_from(&forged, &executable))
                continue;
            if (dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 1},
                                     &context) == DLC_OK) {
                dlcrt_tensor in = {.dtype = _i ? DLC_STR : DLC_F32, .rank = 1, .dims = {5}};
                (void)!dlcrt_context_prepare(context, &in, 1);
                dlcrt_context_destroy(context);
            }
            char text[4096];
            (void)dlcrt_executable_print(executable, text, sizeof text);
            dlcrt_executable_close(executable);
        }
    free(bytes);
    made_end(&m);
}
END_TEST

START_TEST(foreign_files_are_refused)
{
    dlcrt_executable *executable;
    static const char *const texts[] = {
        "", "hello", "\177ELF", "\177ELF and then nothing that an executable would have, or long"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert_int_eq(ftruncate(fd, 0), 0);
        ck_assert_int_eq(pwrite(fd, texts[i], strlen(texts[i]), 0), (ssize_t)strlen(texts[i]));
        ck_assert_int_eq(open_file(), DLC_INVALID);
    }
    ck_assert_int_eq(dlcrt_executable_open("/proc/self/exe", &executable), DLC_INVALID);
    ck_assert_ptr_nonnull(strstr(dlcrt_last_error(), "made by another program"));
    ck_assert_int_eq(dlcrt_executable_open("/nonexistent/model.so", &executable), DLC_IO);
    ck_assert_str_eq(dlcrt_last_error(), "/nonexistent/model.so: No such file or directory");
    ck_assert_int_eq(dlcrt_executable_open("/dev/zero", &executable), DLC_IO);
    ck_assert_int_eq(dlcrt_executable_open("/tmp", &executable), DLC_IO);
    ck_assert_int_eq(dlcrt_executable_open_fd(-1, &executable), DLC_IO);
    ck_assert_int_eq(dlcrt_executable_open(NULL, &executable), DLC_USAGE);
    ck_assert_int_eq(dlcrt_executable_from(NULL, &executable), DLC_USAGE);
}
END_TEST

START_TEST(another_version_is_refused)
{
    for (size_t at = 0; at + sizeof(dlc_executable) <= file_bytes; at += 8) {
        dlc_executable *image = (dlc_executable *)(file + at);
        if (memcmp(image->magic, DLC_EXECUTABLE_MAGIC, 8) != 0)
            continue;
        image->abi_version = DLC_ABI_VERSION + 1;
        seal(file);
        ck_assert_int_eq(open_file(), DLC_INVALID);
        ck_assert_ptr_nonnull(strstr(dlcrt_last_error(), "compile the model again"));
        return;
    }
    ck_abort_msg("no executable in the file");
}
END_TEST

START_TEST(conditions_and_sizes_are_checked)
{
    dlcrt_executable *executable;
    dlcrt_context *context;
    ck_assert_int_eq(dlcrt_executable_open_fd(fd, &executable), DLC_OK);
    ck_assert_int_eq(dlcrt_context_create(executable, NULL, &context), DLC_OK);
    dlcrt_tensor in = {.dtype = DLC_F32, .rank = 1, .dims = {100}};
    ck_assert_int_eq(dlcrt_context_prepare(context, &in, 1), DLC_OK);
    ck_assert_uint_eq(dlcrt_context_output_bytes(context, 1), 400);
    ck_assert_uint_eq(dlcrt_context_output_bytes(context, 0), 0); /* depends on data */
    in.dims[0] = 101;
    ck_assert_int_eq(dlcrt_context_prepare(context, &in, 1), DLC_INVALID);
    ck_assert_str_eq(dlcrt_last_error(), "n is above 100");
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("load");
    TCase *tests = tcase_create("load");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, every_truncation_is_refused);
    tcase_add_test(tests, every_flipped_bit_is_refused_or_harmless);
    tcase_add_test(tests, damaged_weights_are_found_by_the_first_run);
    tcase_add_test(tests, bytes_appended_or_swapped_are_refused_or_harmless);
    tcase_add_test(tests, forged_headers_are_followed_nowhere);
    tcase_add_test(tests, plans_end_where_nothing_can_be_read);
    tcase_add_loop_test(tests, forged_plans_are_followed_nowhere, 0, 2);
    tcase_add_test(tests, foreign_files_are_refused);
    tcase_add_test(tests, another_version_is_refused);
    tcase_add_test(tests, conditions_and_sizes_are_checked);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
