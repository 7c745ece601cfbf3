/* Artifacts: the same bytes twice, no symbol too many, two models in one program, whole or absent.
 */
#include <check.h>
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "package/child.h"
#include "dlc/abi.h"
#include "dlc/runtime.h"
#include "package/linkage.h"
#include "tests/unit/made_model.h"
#include "tests/unit/suite.h"

static char folder[64];

static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/dlc_test_executable_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static uint32_t count_files(void)
{
    DIR *dir = opendir(folder);
    uint32_t n = 0;
    for (struct dirent *entry; (entry = readdir(dir));)
        n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(dir);
    return n;
}

static void teardown(void)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(folder);
}

static const char *in_folder(const char *name)
{
    static char paths[4][160];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, 160, "%s/%s", folder, name);
    return path;
}

/* y = op(x + c), z = x + c over f32[3,8] */
static made_model small_model(const char *name, dlc_opcode op)
{
    static const float c[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    made_model m = made_begin(name);
    dlc_value *x = made_input(&m, "x", DLC_F32, 2, (int64_t[]){3, 8});
    dlc_type type = {.dtype = DLC_F32, .rank = 1, .dims = {dlc_expr_i64(m.graph->pool, 8)}};
    dlc_value *t =
        made_binary(&m, DLC_OP_ADD, "t", x, dlc_graph_constant(m.graph, "c", &type, c, sizeof c));
    dlc_graph_output(m.graph, "y", made_unary(&m, op, "y", t));
    dlc_graph_output(m.graph, "z", t);
    return m;
}

static dlc_status write_as(made_model *m, dlc_artifact artifact, const char *path, uint32_t njobs)
{
    dlc_module *module = m->ctx.module ? m->ctx.module : made_finish(m, "native");
    dlc_executable_options options = {
        .artifact = artifact, .path = path, .name = m->graph->name, .njobs = njobs};
    return dlc_executable_write(module, &options, m->graph->diag);
}

static const char *message(const made_model *m)
{
    return m->graph->diag->nmessages ? m->graph->diag->messages[0].text : "";
}

static unsigned char *read_all(const char *path, size_t *size_bytes)
{
    int fd = open(path, O_RDONLY);
    struct stat info;
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &info), 0);
    unsigned char *bytes = malloc((size_t)info.st_size + 1);
    *size_bytes = (size_t)info.st_size;
    ck_assert_int_eq(read(fd, bytes, *size_bytes), (ssize_t)*size_bytes);
    bytes[*size_bytes] = '\0';
    close(fd);
    return bytes;
}

static const dlc_artifact artifacts[] = {DLC_ARTIFACT_SO, DLC_ARTIFACT_O,  DLC_ARTIFACT_A,
                                         DLC_ARTIFACT_H,  DLC_ARTIFACT_LL, DLC_ARTIFACT_ASM};

START_TEST(the_same_model_gives_the_same_bytes)
{
    size_t n[2];
    unsigned char *bytes[2];
    for (uint32_t i = 0; i < 2; i++) {
        made_model m = small_model("same", DLC_OP_NEG);
        const char *path = in_folder(i ? "another_name" : "one");
        ck_assert_msg(write_as(&m, artifacts[_i], path, i + 1) == DLC_OK, "%s", message(&m));
        bytes[i] = read_all(path, &n[i]);
        made_end(&m);
    }
    ck_assert_uint_gt(n[0], 0);
    ck_assert_uint_eq(n[0], n[1]);
    ck_assert_mem_eq(bytes[0], bytes[1], n[0]);
    ck_assert_ptr_null(memmem(bytes[0], n[0], folder, strlen(folder)));
    free(bytes[0]);
    free(bytes[1]);
    ck_assert_uint_eq(count_files(), 2); /* nothing else is left */
}
END_TEST

enum { NCONVOLUTIONS = 8 };

/* Convolutions whose taps lie nearly as far apart as the image is wide: tiles leave padding out (dlc_dot_inside). No two kernels are alike. */
static made_model dilated_model(void)
{
    static const float weights[(16 + NCONVOLUTIONS) * (16 + NCONVOLUTIONS) * 9] = {1};
    made_model m = made_begin("dilated");
    dlc_pool *pool = m.graph->pool;
    dlc_value *at = made_input(&m, "x", DLC_F32, 4, (int64_t[]){1, 16, 9, 9});
    dlc_expr three = dlc_expr_i64(pool, 3), *apart = dlc_new_array(m.arena, dlc_expr, 4);
    for (uint32_t i = 0; i < 4; i++)
        apart[i] = dlc_expr_i64(pool, 8);
    dlc_attr attrs[] = {dlc_attr_dims(DLC_ATTR_PADS, apart, 4), dlc_attr_dims(DLC_ATTR_DILATIONS, apart, 2)};
    for (uint32_t i = 0; i < NCONVOLUTIONS; i++) {
        dlc_type type = {.dtype = DLC_F32, .rank = 4, .dims = {dlc_expr_i64(pool, 17 + i), dlc_expr_i64(pool, 16 + i), three, three}};
        size_t size_bytes = (size_t)(17 + i) * (16 + i) * 9 * sizeof *weights;
        dlc_value *inputs[] = {at, dlc_graph_constant(m.graph, "w", &type, weights, size_bytes)};
        at = made_node(&m, DLC_OP_CONV, "y", 2, inputs, 1, 2, attrs)->outputs[0];
    }
    dlc_graph_output(m.graph, "y", at);
    return m;
}

/* Threads compile the kernels of a module, which share arenas: what one needs meanwhile is its own. */
START_TEST(threads_do_not_meet)
{
    size_t n[2];
    unsigned char *bytes[2];
    for (int i = 0; i < 2; i++) {
        made_model m = dilated_model();
        const char *path = in_folder("dilated");
        ck_assert_msg(write_as(&m, DLC_ARTIFACT_SO, path, i ? 4 : 1) == DLC_OK, "%s", message(&m));
        uint32_t nskipping = 0;
        for (uint32_t k = 0; k < m.ctx.module->kernels.n; k++)
            for (uint32_t at = 0; at < m.ctx.module->kernels.data[k].schedule->nodes.n; at++)
                nskipping += m.ctx.module->kernels.data[k].schedule->nodes.data[at].nskipped > 0;
        ck_assert_uint_ge(nskipping, 2);
        bytes[i] = read_all(path, &n[i]);
        made_end(&m);
    }
    ck_assert_uint_eq(n[0], n[1]);
    ck_assert_mem_eq(bytes[0], bytes[1], n[0]);
    free(bytes[0]);
    free(bytes[1]);
}
END_TEST

/* Symbols of the dynamic table that are (not) defined. */
static uint32_t dynamic_symbols(const unsigned char *bytes, int defined, const char *names[8])
{
    const Elf64_Ehdr *header = (const void *)bytes;
    const Elf64_Shdr *sections = (const void *)(bytes + header->e_shoff);
    uint32_t n = 0;
    for (uint32_t i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM)
            continue;
        const Elf64_Sym *symbols = (const void *)(bytes + sections[i].sh_offset);
        const char *strings = (const char *)bytes + sections[sections[i].sh_link].sh_offset;
        for (uint64_t k = 1; k < sections[i].sh_size / sizeof *symbols && n < 8; k++)
            if ((symbols[k].st_shndx != SHN_UNDEF) == defined)
                names[n++] = strings + symbols[k].st_name;
    }
    return n;
}

START_TEST(a_shared_object_exports_itself_and_needs_nothing)
{
    static const char *const targets[] = {"native", "x86-64-v2", "x86-64-v3", "x86-64-v4",
                                          "aarch64"};
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        made_model m = small_model("small", DLC_OP_EXP);
        made_finish(&m, targets[i]);
        ck_assert_msg(write_as(&m, DLC_ARTIFACT_SO, in_folder("small.so"), 1) == DLC_OK, "%s",
                      message(&m));
        size_t n;
        unsigned char *bytes = read_all(in_folder("small.so"), &n);
        const char *names[8];
        ck_assert_uint_eq(dynamic_symbols(bytes, 0, names), 0);
        ck_assert_uint_eq(dynamic_symbols(bytes, 1, names), 2);
        ck_assert(!strcmp(names[0], "dlc_executable") || !strcmp(names[1], "dlc_executable"));
        ck_assert(!strcmp(names[0], "dlc_executable_small") ||
                  !strcmp(names[1], "dlc_executable_small"));
        free(bytes);
        made_end(&m);
    }
}
END_TEST

/* --- the linker --- */
/* An object of one section of code with one relocation, as an assembler writes it. */
typedef struct {
    Elf64_Ehdr header;
    uint64_t code[2];
    Elf64_Rela relocation;
    Elf64_Sym symbols[3];
    char names[32];
    Elf64_Shdr sections[6];
} small_object;

static small_object make_object(uint16_t machine, const char *section, uint32_t type)
{
    small_object o = {
        .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, 1},
                   .e_type = ET_REL,
                   .e_machine = machine,
                   .e_shoff = offsetof(small_object, sections),
                   .e_shentsize = sizeof(Elf64_Shdr),
                   .e_shnum = 5,
                   .e_shstrndx = 4},
        .relocation = {4, ELF64_R_INFO(UINT64_C(2), type), 0},
        .symbols = {{0},
                    {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1},
                    {.st_name = 8, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE)}},
        .sections = {{0},
                     {.sh_name = 14,
                      .sh_type = SHT_PROGBITS,
                      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                      .sh_offset = offsetof(small_object, code),
                      .sh_size = sizeof o.code,
                      .sh_addralign = 16},
                     {.sh_type = SHT_RELA,
                      .sh_info = 1,
                      .sh_offset = offsetof(small_object, relocation),
                      .sh_size = sizeof o.relocation},
                     {.sh_type = SHT_SYMTAB,
                      .sh_link = 4,
                      .sh_offset = offsetof(small_object, symbols),
                      .sh_size = sizeof o.symbols},
                     {.sh_type = SHT_STRTAB,
                      .sh_offset = offsetof(small_object, names),
                      .sh_size = sizeof o.names}},
    };
    memcpy(o.names, "\0dlc_k0\0other", 14);
    snprintf(o.names + 14, sizeof o.names - 14, "%s", section);
    return o;
}

static const struct {
    dlc_link_machine machine;
    uint16_t object;
    const char *section;
    uint32_t type;
    const char *defined, *message;
} links[] = {
    {DLC_LINK_X86_64, EM_X86_64, ".text", R_X86_64_PLT32, "other", NULL},
    {DLC_LINK_AARCH64, EM_AARCH64, ".text", R_AARCH64_CALL26, "other", NULL},
    {DLC_LINK_AARCH64, EM_AARCH64, ".text.a", R_AARCH64_ADR_PREL_PG_HI21, "other", NULL},
    {DLC_LINK_X86_64, EM_X86_64, ".text", R_X86_64_PLT32, "memcpy",
     "the generated code needs 'other'"},
    {DLC_LINK_X86_64, EM_X86_64, ".text", R_X86_64_GOTPCREL, "other",
     "the generated code has a relocation of type 9 against 'other' in '.text', which is not "
     "linked"},
    {DLC_LINK_AARCH64, EM_AARCH64, ".text", R_X86_64_PLT32, "other",
     "the generated code has a relocation of type 4 against 'other' in '.text', which is not "
     "linked"},
    {DLC_LINK_X86_64, EM_X86_64, ".text", R_X86_64_64, "other",
     "an address in '.text', which is read-only"},
    {DLC_LINK_X86_64, EM_X86_64, ".init", R_X86_64_PLT32, "other",
     "section '.init' (type 1, flags 0x6) of the generated code is of no kind that is linked"},
    {DLC_LINK_X86_64, EM_AARCH64, ".text", R_X86_64_PLT32, "other",
     "the generated code is no object of its processor"},
    {DLC_LINK_X86_64, EM_X86_64, ".text", R_X86_64_PLT32, "dlc_k0",
     "the generated code defines 'dlc_k0' twice"},
};

START_TEST(what_is_linked_is_known_and_the_rest_refused)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    small_object object = make_object(links[_i].object, links[_i].section, links[_i].type);
    dlc_blob blob = {.bytes = &object, .size_bytes = sizeof object}, words = {.bytes = (uint64_t[2]){0}, .size_bytes = 16};
    dlc_link_pointer pointer = {8, "dlc_k0"};
    dlc_link_data data = {.name = links[_i].defined,
                          .section = ".data.rel.ro",
                          .pieces = &words,
                          .npieces = 1,
                          .align_bytes = 64,
                          .pointers = &pointer,
                          .npointers = 1};
    dlc_link_input input = {links[_i].machine, &data, 1, &blob, 1};
    dlc_linkage *linkage;
    dlc_output output;
    ck_assert_int_eq(dlc_output_open(&output, in_folder("linked.so"), &diag), DLC_OK);
    dlc_status status = dlc_link_open(&input, arena, &diag, &linkage);
    if (status == DLC_OK)
        status = dlc_link_write_shared(linkage, &output);
    ck_assert_int_eq(status, links[_i].message ? DLC_INTERNAL : DLC_OK);
    if (links[_i].message)
        ck_assert_str_eq(diag.messages[0].text, links[_i].message);
    dlc_output_abandon(&output);
    dlc_arena_destroy(arena);
}
END_TEST

/* Whatever stands in an object, nothing is followed out of bounds. */
START_TEST(damaged_objects_are_followed_nowhere)
{
    static const uint64_t values[] = {0, 1, 0x7fffffff, 0xffffffff, 1ull << 63, UINT64_MAX};
    for (size_t at = 0; at + 8 <= sizeof(small_object); at += 2)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            dlc_arena *arena = dlc_arena_create(0);
            dlc_diag diag;
            dlc_diag_init(&diag, arena);
            small_object *object = malloc(sizeof *object);
            *object = make_object(EM_X86_64, ".text", R_X86_64_PLT32);
            memcpy((char *)object + at, &values[v], values[v] > UINT32_MAX ? 8 : 4);
            dlc_blob blob = {.bytes = object, .size_bytes = sizeof *object}, words = {.bytes = (uint64_t[2]){0}, .size_bytes = 16};
            dlc_link_data data = {.name = "other",
                                  .section = ".dlc.x",
                                  .pieces = &words,
                                  .npieces = 1,
                                  .align_bytes = 64};
            dlc_link_input input = {DLC_LINK_X86_64, &data, 1, &blob, 1};
            dlc_linkage *linkage;
            dlc_output output;
            ck_assert_int_eq(dlc_output_open(&output, in_folder("linked.so"), &diag), DLC_OK);
            if (dlc_link_open(&input, arena, &diag, &linkage) == DLC_OK)
                (void)!dlc_link_write_shared(linkage, &output);
            dlc_output_abandon(&output);
            free(object);
            dlc_arena_destroy(arena);
        }
}
END_TEST

/* Each way of writing an address, against what an assembler wrote. */
START_TEST(relocations_write_what_an_assembler_would)
{
    static const struct {
        dlc_link_machine machine;
        uint32_t type, before, after;
        uint64_t place, target;
    } rows[] = {
        {DLC_LINK_X86_64, R_X86_64_PC32, 0, 0xfffffffc, 0x1000, 0xffc},
        {DLC_LINK_AARCH64, R_AARCH64_PREL32, 0, 0x10, 0x1000, 0x1010},
        /* adrp x0, +1 page and -1 page; add x0, x0, #0x123; bl +8 and -4 */
        {DLC_LINK_AARCH64, R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, 0xb0000000, 0x1ffc, 0x2123},
        {DLC_LINK_AARCH64, R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, 0xf0ffffe0, 0x2000, 0x1123},
        {DLC_LINK_AARCH64, R_AARCH64_ADD_ABS_LO12_NC, 0x91000000, 0x91048c00, 0, 0x2123},
        {DLC_LINK_AARCH64, R_AARCH64_CALL26, 0x94000000, 0x94000002, 0x1000, 0x1008},
        {DLC_LINK_AARCH64, R_AARCH64_JUMP26, 0x14000000, 0x17ffffff, 0x1000, 0xffc},
        /* ldr q0, [x0, #0x120]; ldr x0, [x0, #0x128]; ldr s0, [x0, #0x124] */
        {DLC_LINK_AARCH64, R_AARCH64_LDST128_ABS_LO12_NC, 0x3dc00000, 0x3dc04800, 0, 0x2120},
        {DLC_LINK_AARCH64, R_AARCH64_LDST64_ABS_LO12_NC, 0xf9400000, 0xf9409400, 0, 0x2128},
        {DLC_LINK_AARCH64, R_AARCH64_LDST32_ABS_LO12_NC, 0xbd400000, 0xbd412400, 0, 0x2124},
        /* out of reach: 0 */
        {DLC_LINK_X86_64, R_X86_64_PC32, 1, 0, 0, UINT64_C(1) << 31},
        {DLC_LINK_AARCH64, R_AARCH64_CALL26, 1, 0, 0, UINT64_C(1) << 27},
        {DLC_LINK_AARCH64, R_AARCH64_LDST128_ABS_LO12_NC, 1, 0, 0, 0x2128},
    };
    dlc_arena *arena = dlc_arena_create(0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dlc_diag diag;
        dlc_diag_init(&diag, arena);
        dlc_linkage linkage = {.arena = arena, .diag = &diag};
        uint32_t word = rows[i].before;
        int row = dlc_reloc_find(rows[i].machine, rows[i].type);
        ck_assert_int_ge(row, 0);
        dlc_status status = dlc_reloc_apply(&linkage, (uint32_t)row, (unsigned char *)&word,
                                            rows[i].place, rows[i].target);
        ck_assert_msg((status == DLC_OK) == (rows[i].after != 0), "row %zu", i);
        if (status == DLC_OK)
            ck_assert_msg(word == rows[i].after, "row %zu: 0x%x", i, word);
    }
    dlc_arena_destroy(arena);
}
END_TEST

static const char main_text[] =
    "#include \"one.h\"\n"
    "#include \"two.h\"\n"
    "static float x[24], y[24], z[24];\n"
    "static int run(dlc_status (*open)(dlcrt_executable **),\n"
    "               dlc_status (*run_it)(dlcrt_context *, const float *, float *, float *), float "
    "expected)\n"
    "{\n"
    "    dlcrt_executable *e = 0;\n"
    "    dlcrt_context *c = 0;\n"
    "    if (open(&e) || dlcrt_context_create(e, 0, &c) || run_it(c, x, y, z))\n"
    "        return 1;\n"
    "    dlcrt_context_destroy(c);\n"
    "    dlcrt_executable_close(e);\n"
    "    return y[0] != expected || z[7] != 8;\n"
    "}\n"
    "int main(void)\n"
    "{\n"
    "    return run(one_open, one_run, -1) || run(two_open, two_run, 1) || one_ninputs != 1 || "
    "two_noutputs != 2;\n"
    "}\n";

static int shell(const char *command)
{
    int state = system(command);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

/* With a compiler at hand, in C and in C++; the runtime is compiled with the program. */
START_TEST(two_models_link_into_one_program)
{
    static const dlc_artifact kinds[] = {DLC_ARTIFACT_O, DLC_ARTIFACT_A};
    const char *compilers[] = {"cc", "c++ -x c++"};
    if (shell("cc --version >/dev/null 2>&1"))
        return;
    for (int i = 0; i < 2; i++) {
        const char *extension = i ? "a" : "o", *names[] = {"one", "two"};
        for (int k = 0; k < 2; k++) {
            char name[16];
            made_model m = small_model(names[k], k ? DLC_OP_ABS : DLC_OP_NEG);
            snprintf(name, sizeof name, "%s.%s", names[k], extension);
            ck_assert_msg(write_as(&m, kinds[i], in_folder(name), 1) == DLC_OK, "%s", message(&m));
            snprintf(name, sizeof name, "%s.h", names[k]);
            ck_assert_int_eq(write_as(&m, DLC_ARTIFACT_H, in_folder(name), 1), DLC_OK);
            made_end(&m);
        }
        FILE *stream = fopen(in_folder("main.c"), "w");
        fputs(main_text, stream);
        fclose(stream);
        char command[1024];
        snprintf(
            command, sizeof command,
            "cd %s && %s -Wall -Wextra -Werror -O1 -I\"$OLDPWD/include\" -c main.c -o main.o && "
            "cc -D_GNU_SOURCE -I\"$OLDPWD\" -I\"$OLDPWD/include\" -o both main.o one.%s two.%s "
            "\"$OLDPWD\"/runtime/*.c "
            "-lpthread && ./both",
            folder, compilers[i], extension, extension);
        if (i && shell("c++ --version >/dev/null 2>&1"))
            return;
        ck_assert_int_eq(shell(command), 0);
    }
}
END_TEST

/* All kernels are in one text, which other tools read. */
START_TEST(text_can_be_assembled)
{
    static const struct {
        const char *target, *file, *tool;
        dlc_artifact artifact;
    } rows[] = {
        {"x86-64-v3", "t.s", "as", DLC_ARTIFACT_ASM},
        {"aarch64", "t.s", "aarch64-linux-gnu-as", DLC_ARTIFACT_ASM},
        {"x86-64-v3", "t.ll", "llvm-as-19", DLC_ARTIFACT_LL},
    };
#ifdef __x86_64__
    char command[256];
    made_model m = small_model("text", DLC_OP_EXP);
    made_finish(&m, rows[_i].target);
    ck_assert_uint_ge(m.ctx.module->kernels.n, 2);
    ck_assert_int_eq(write_as(&m, rows[_i].artifact, in_folder(rows[_i].file), 1), DLC_OK);
    made_end(&m);
    snprintf(command, sizeof command, "%s --version >/dev/null 2>&1", rows[_i].tool);
    if (shell(command))
        return;
    snprintf(command, sizeof command, "cd %s && %s %s -o object", folder, rows[_i].tool,
             rows[_i].file);
    ck_assert_int_eq(shell(command), 0);
#endif
}
END_TEST

/* Names of a model are any text; the header compiles as C and C++, after any other header. */
START_TEST(any_names_give_a_header_that_compiles)
{
    static const char *const names[] = {
        "int64_t",
        "operator",
        "and",
        "not",
        "linux",
        "NULL",
        "DLC_OK",
        "memset",
        "errno",
        "dlc_status",
        "dlcrt_context_run",
        "in",
        "context",
        "SIZE_MAX",
        "private",
        "restrict",
        "this",
        "try",
        "x y",
        "x_y",
        "",
        "\xcf\x80",
        "*/",
        "/*",
        "a\nb\\",
        "?\?/",
        "1st",
        "_Bool",
        "xor",
        "nullptr",
        "typeof",
        "thread_local",
    };
    enum { NNAMES = sizeof names / sizeof *names };
    if (shell("c++ --version >/dev/null 2>&1"))
        return;
    made_model m = made_begin("int_");
    for (uint32_t i = 0; i < NNAMES; i++) {
        const char *name = dlc_arena_strdup(m.arena, names[i]);
        uint32_t symbol = dlc_graph_symbol(m.graph, name, DLC_BIND_INPUT_DIM, NULL, 0);
        dlc_value *x = made_input(&m, name, DLC_F32, 1, (int64_t[]){-(int64_t)symbol - 1});
        dlc_graph_output(m.graph, name, made_unary(&m, DLC_OP_NEG, "y", x));
    }
    ck_assert_msg(write_as(&m, DLC_ARTIFACT_H, in_folder("names.h"), 1) == DLC_OK, "%s",
                  message(&m));
    made_end(&m);
    FILE *stream = fopen(in_folder("main.c"), "w");
    fputs("#include <complex.h>\n#include <errno.h>\n#include <stdio.h>\n#include \"names.h\"\n",
          stream);
    fclose(stream);
    char command[512];
    static const char *const compilers[] = {"cc -std=gnu99", "cc -std=gnu17",
                                            "c++ -std=gnu++20 -x c++"};
    for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        snprintf(
            command, sizeof command,
            "cd %s && %s -Wall -Wextra -Wshadow -Werror -I\"$OLDPWD/include\" -fsyntax-only main.c",
            folder, compilers[i]);
        ck_assert_msg(shell(command) == 0, "%s", compilers[i]);
    }
}
END_TEST

START_TEST(failures_leave_the_old_file_and_nothing_else)
{
    made_model m = small_model("bad name", DLC_OP_NEG);
    int fd = open(in_folder("old.so"), O_WRONLY | O_CREAT, 0666);
    ck_assert_int_eq(write(fd, "old", 3), 3);
    close(fd);
    ck_assert_int_eq(write_as(&m, DLC_ARTIFACT_SO, in_folder("old.so"), 1), DLC_USAGE);
    m.graph->name = "good";
    ck_assert_int_eq(write_as(&m, DLC_ARTIFACT_SO, "/nonexistent/folder/x.so", 1), DLC_IO);
    /* a kernel that cannot be: the child crashes or refuses, the parent says so */
    dlc_module_kernel *kernel = &m.ctx.module->kernels.data[0];
    setenv("PATH", "/nonexistent", 1); /* no other program takes part */
    ck_assert_int_eq(write_as(&m, DLC_ARTIFACT_SO, in_folder("new.so"), 1), DLC_OK);
    unlink(in_folder("new.so"));
    dlc_schedule *schedule = kernel->schedule;
    dlc_schedule broken = *schedule;
    broken.nodes.data = NULL;
    kernel->schedule = &broken;
    dlc_status status = write_as(&m, DLC_ARTIFACT_LL, in_folder("old.so"), 1);
    ck_assert(status == DLC_INTERNAL || status == DLC_LIMIT);
    made_end(&m);
    size_t n;
    unsigned char *bytes = read_all(in_folder("old.so"), &n);
    ck_assert_str_eq((char *)bytes, "old");
    free(bytes);
    ck_assert_uint_eq(count_files(), 1);
}
END_TEST

/* Whether the largest part of this file that is mapped lies in huge pages as it does in the file. */
static int lies_in_huge_pages(const char *path)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    uint64_t begin, end, offset, most = 0, slip = 1;
    ck_assert_ptr_nonnull(maps);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, path) && sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 && end - begin > most) {
            most = end - begin;
            slip = (begin - offset) % DLC_HUGE_PAGE;
        }
    fclose(maps);
    return slip == 0;
}

/* 100 MB of weights: bound by writing the file, and never copied in memory. */
START_TEST(large_weights_cost_little)
{
    size_t n = 25 << 20;
    float *weights = mmap(NULL, n * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(weights != MAP_FAILED);
    for (size_t i = 0; i < n; i++)
        weights[i] = (float)i;
    made_model m = made_begin("large");
    dlc_value *x = made_input(&m, "x", DLC_F32, 1, (int64_t[]){1});
    dlc_type type = {
        .dtype = DLC_F32, .rank = 1, .dims = {dlc_expr_i64(m.graph->pool, (int64_t)n)}};
    dlc_value *w = dlc_graph_constant(m.graph, "w", &type, weights, n * 4);
    dlc_graph_output(m.graph, "y", made_binary(&m, DLC_OP_ADD, "y", x, w));
    ck_assert_msg(write_as(&m, DLC_ARTIFACT_SO, in_folder("large.so"), 1) == DLC_OK, "%s",
                  message(&m));
    made_end(&m);
    dlcrt_executable *executable;
    dlcrt_context *context;
    ck_assert_msg(dlcrt_executable_open(in_folder("large.so"), &executable) == DLC_OK, "%s",
                  dlcrt_last_error());
    ck_assert(lies_in_huge_pages(in_folder("large.so")));
    ck_assert_int_eq(dlcrt_context_create(executable, NULL, &context), DLC_OK);
    float one = 1;
    dlcrt_tensor in = {.data = &one, .dtype = DLC_F32, .rank = 1, .dims = {1}}, out = {0};
    ck_assert_msg(dlcrt_context_run(context, &in, 1, &out, 1) == DLC_OK, "%s", dlcrt_last_error());
    for (size_t i = 0; i < n; i += 4097)
        ck_assert_float_eq(((float *)out.data)[i], (float)i + 1);
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
    munmap(weights, n * 4);
}
END_TEST

static dlc_status killed(const void *work, dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs,
                         uint32_t *nblobs)
{
    (void)work, (void)arena, (void)diag, (void)blobs, (void)nblobs;
    return raise(SIGKILL) ? DLC_INTERNAL : DLC_OK;
}

START_TEST(a_killed_generator_is_called_killed)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_child_code code;
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    ck_assert_int_eq(dlc_child_emit(killed, NULL, arena, &diag, &code), DLC_LIMIT);
    ck_assert_ptr_nonnull(strstr(diag.messages[0].text, "was killed from outside"));
    dlc_arena_destroy(arena);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("executable");
    TCase *tests = tcase_create("executable");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, the_same_model_gives_the_same_bytes, 0,
                        sizeof artifacts / sizeof artifacts[0]);
    tcase_add_test(tests, threads_do_not_meet);
    tcase_add_test(tests, a_shared_object_exports_itself_and_needs_nothing);
    tcase_add_loop_test(tests, what_is_linked_is_known_and_the_rest_refused, 0,
                        sizeof links / sizeof *links);
    tcase_add_test(tests, damaged_objects_are_followed_nowhere);
    tcase_add_test(tests, relocations_write_what_an_assembler_would);
    tcase_add_test(tests, two_models_link_into_one_program);
    tcase_add_loop_test(tests, text_can_be_assembled, 0, 3);
    tcase_add_test(tests, any_names_give_a_header_that_compiles);
    tcase_add_test(tests, failures_leave_the_old_file_and_nothing_else);
    tcase_add_test(tests, large_weights_cost_little);
    tcase_add_test(tests, a_killed_generator_is_called_killed);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
