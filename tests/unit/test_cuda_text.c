/*
 * CUDA text: kernels of small graphs as CUDA C. Emulated they give the interpreter's numbers, maps
 * bit for bit and sums up to rounding, in whatever order threads run; NVRTC, where it is, takes the
 * same text; threads that diverge end with a message.
 */
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/ptx/nvrtc.h"
#include "codegen/ptx/text.h"
#include "dlc/abi.h"
#include "tests/unit/small_graph.h"
#include "tests/unit/suite.h"

typedef void (*kernel_fn)(const dlc_kernel_args *args, int64_t begin, int64_t end);

static const struct {
    const char *graph, *target;
    double limit; /* 0: the same bits */
    int has_dot, meets;
} cases[] = {
    {"in x 3,45; r = relu x; y = tanh r; out y", "sm_75", 0, 0, 0},
    {"in x 4,7; in y 4,1; a = add x y; e = exp a; out e", "sm_90", 0, 0, 0},
    {"in x:f16 6,40; y = sqrt x; z = erf y; out z", "sm_75", 0, 0, 0},
    {"in x:i64 5,9; in y:i64 9; a = mul x y; out a", "sm_75", 0, 0, 0},
    {"in x 5,70; s = reduce_sum x axes=1; out s", "sm_75", 1e-6, 0, 1},
    {"in x batch,70; s = reduce_max x axes=1; out s", "sm_75", 0, 0, 1},
    {"in a 70,33; in b 33,80; c = matmul a b; r = relu c; out r", "sm_75", 1e-6, 1, 1},
    {"in x 2,33,50; in r 2,50,33; t = transpose x perm=0,2,1; s = add t r; out s", "sm_75", 0, 0,
     1},
    {"in a batch,17; const b 17,40; c = matmul a b; out c", "sm_80", 1e-6, 1, 1},
};
enum { NCASES = sizeof cases / sizeof *cases };

typedef struct {
    void *library;
    const kernel_fn *kernels;
} emulated;

static void write_text(const char *path, const dlc_str *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text->data, 1, text->n, file), text->n);
    ck_assert_int_eq(fclose(file), 0);
}

/* The text as a library whose `kernels` point to its functions; `seed`: the order threads run in.
 */
static emulated compile(const dlc_str *text, int seed)
{
    char folder[] = "/tmp/dlc-cuda-XXXXXX", command[400];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof command, "%s/k.c", folder);
    write_text(command, text);
    snprintf(
        command, sizeof command,
        "cc -O1 -w -fwrapv -ffp-contract=off -fno-math-errno -fno-strict-aliasing -march=native "
        "-fPIC -shared -o %s/k.so %s/k.c " TRIAL_OBJECTS "/%s_fibers.o",
        folder, folder, seed ? "seed" : "plain");
    ck_assert_int_eq(system(command), 0);
    snprintf(command, sizeof command, "%s/k.so", folder);
    emulated result = {.library = dlopen(command, RTLD_NOW | RTLD_LOCAL)};
    ck_assert_msg(result.library != NULL, "%s", dlerror());
    result.kernels = dlsym(result.library, "kernels");
    unlink(command);
    snprintf(command, sizeof command, "%s/k.c", folder);
    unlink(command);
    rmdir(folder);
    return result;
}

static dlc_str text_of(small_graph *s, const dlc_module *module)
{
    dlc_str text = {0};
    dlc_cuda_emulation_begin(&text);
    for (uint32_t k = 0; k < module->kernels.n; k++) {
        const dlc_module_kernel *row = &module->kernels.data[k];
        if (dlc_cuda_emulation_add(row->schedule, k, s->arena, s->diag, &text) !=
            DLC_OK)
            small_fail(s, "CUDA C");
    }
    dlc_cuda_emulation_end(&text);
    dlc_str_add(&text, "void (*const kernels[])(const dlc_kernel_args *, long, long) = {");
    for (uint32_t k = 0; k < module->kernels.n; k++)
        dlc_str_printf(&text, "dlc_k%u, ", k);
    dlc_str_add(&text, "};\n");
    return text;
}

static void launch(small_graph *s, const dlc_module *module, const dlc_step *step, void **memory,
                   kernel_fn function)
{
    static _Alignas(64) char scratch[1 << 18];
    const dlc_module_kernel *row = &module->kernels.data[step->kernel];
    dlc_kernel *kernel = row->kernel;
    void **buffers = dlc_new_array(s->arena, void *, step->nvalues + 1);
    int64_t *symbols = dlc_new_array(s->arena, int64_t, kernel->symbols.n + 1), fault = 0;
    for (uint32_t b = 0; b < step->nvalues; b++)
        buffers[b] = memory[step->values[b]];
    for (uint32_t i = 0; i < kernel->symbols.n; i++)
        symbols[i] = s->size_of_symbols;
    dlc_expr units = dlc_schedule_units(kernel, row->schedule);
    function(&(dlc_kernel_args){buffers, symbols, scratch, &fault}, 0,
             dlc_expr_eval(kernel->pool, units, symbols));
    ck_assert_int_eq(fault, 0);
}

static void **run_emulated(small_graph *s, const dlc_module *module, const dlc_str *text, int seed)
{
    void **memory = small_memory(s), **values = small_values(s, module, memory);
    emulated made = compile(text, seed);
    for (uint32_t i = 0; i < module->steps.n; i++)
        launch(s, module, &module->steps.data[i], values,
               made.kernels[module->steps.data[i].kernel]);
    dlclose(made.library);
    return memory;
}

static int has_dot(const dlc_module *module)
{
    for (uint32_t k = 0; k < module->kernels.n; k++) {
        const dlc_schedule *schedule = module->kernels.data[k].schedule;
        for (uint32_t n = 0; n < schedule->nodes.n; n++)
            if (schedule->nodes.data[n].row != DLC_DOT_NONE)
                return 1;
    }
    return 0;
}

START_TEST(kernels_give_the_interpreters_numbers)
{
    small_graph s = small_begin(cases[_i].graph);
    const dlc_module *module = run_strategy(&s, "greedy", cases[_i].target);
    dlc_str text = text_of(&s, module);
    ck_assert_int_eq(has_dot(module), cases[_i].has_dot);
    ck_assert_int_eq(strstr(dlc_str_text(&text), "\"k0\", 128, 4, 0}") == NULL, cases[_i].meets);
    void **in_order = run_emulated(&s, module, &text, 0),
         **permuted = run_emulated(&s, module, &text, 7);
    ck_assert_double_le(small_difference(&s, run_nodes(&s), in_order), cases[_i].limit);
    ck_assert_double_le(small_difference(&s, in_order, permuted), 0);
    dlc_str_deinit(&text);
    small_end(&s);
}
END_TEST

/* Rows and maps move in accesses of 128 bits where each of them begins at a multiple of its size.
 */
static const struct {
    const char *graph, *access; /* NULL: single elements */
} accesses[] = {
    {"in x 6,384; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d", "dlc_get_f32x4"},
    {"in x 6,388; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d", "dlc_get_f32x4"},
    {"in x 6,386; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d", "dlc_get_f32x2"},
    {"in x 6,385; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d", NULL},
    {"in x n,384; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d", "dlc_get_f32x4"},
    {"in x 6,n; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d", NULL},
    {"in x:f64 6,384; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d", "dlc_get_f64x2"},
    {"in x:f16 6,384; m = reduce_max x axes=1 keepdims=1; d = sub x m; out d", "dlc_get_u16x4"},
    {"in x 1024,256; r = relu x; out r", "dlc_put_f32x4"},
    {"in x 1024,260; s = slice x starts=0,4 steps=1,1 dims=1024,256; r = relu s; out r",
     "dlc_get_f32x4"},
    {"in x 1024,260; s = slice x starts=0,2 steps=1,1 dims=1024,256; r = relu s; out r",
     "dlc_get_f32x2"},
    {"in x 1024,260; s = slice x starts=0,1 steps=1,1 dims=1024,256; r = relu s; out r", NULL},
    {"in x 64,96; r = relu x; out r", NULL}, /* too few threads would be left */
    /* four channels of a padded image lie within one row: they are there, or none of them is */
    {"in x 1,16,9,9 nhwc; const w 24,16,3,3; c = conv x w pads=1,1,1,1 nhwc; out c", " ? dlc_get_f32x4(&((const float *)b0)"},
    {"in x 1,16,9,9 nhwc; const w 24,16,3,3; c = conv x w pads=1,1,1,1 nhwc; out c", "= dlc_get_f32x4(&((const float *)b1)"}, /* laid out along K */
};

START_TEST(neighbours_move_together)
{
    small_graph s = small_begin(accesses[_i].graph);
    const dlc_module *module = run_strategy(&s, "greedy", "sm_75");
    const dlc_module_kernel *row = &module->kernels.data[0];
    dlc_cuda_kernel made;
    ck_assert_int_eq(dlc_cuda_source(row->schedule, "k", s.arena, s.diag, &made),
                     DLC_OK);
    const char *found = strstr(made.source, accesses[_i].access ? accesses[_i].access : "x2(");
    ck_assert_msg(!found == !accesses[_i].access, "%s", made.source);
    if (!accesses[_i].access)
        ck_assert_ptr_null(strstr(made.source, "x4("));
    small_end(&s);
}
END_TEST

START_TEST(nvrtc_takes_the_text)
{
    small_graph s = small_begin(cases[_i].graph);
    const dlc_module *module = run_strategy(&s, "greedy", cases[_i].target);
    const dlc_nvrtc *nvrtc;
    if (dlc_nvrtc_open(s.diag, &nvrtc) != DLC_OK) {
        printf("skipped: no NVRTC\n");
        small_end(&s);
        return;
    }
    for (uint32_t k = 0; k < module->kernels.n; k++) {
        dlc_cuda_kernel made;
        const void *bytes;
        size_t size_bytes = 0;
        if (dlc_cuda_source(module->kernels.data[k].schedule, "k",
                            s.arena, s.diag, &made) != DLC_OK)
            small_fail(&s, "CUDA C");
        const char *whole = dlc_arena_printf(s.arena, "%s%s", dlc_cuda_prelude, made.source);
        if (dlc_nvrtc_compile(nvrtc, whole, "k.cu", atoi(module->target->cpu), 0, s.arena, s.diag,
                              &bytes, &size_bytes) != DLC_OK)
            small_fail(&s, "NVRTC");
        ck_assert_uint_gt(size_bytes, 0);
    }
    small_end(&s);
}
END_TEST

/* --- neighbours --- */

/* Most sectors of 32 bytes that a warp touches in one load or store of a kernel of one block. */
static const struct {
    const char *graph;
    int nsectors;
} neighbours[] = {
    {"in x 32,32; r = relu x; out r", 4},
    {"in x 32,32; t = transpose x perm=1,0; out t", 4},
    {"in x 32,32; in y 32,32; in z 32,32; a = mul x y; t = transpose a perm=1,0; b = add t z; "
     "out b",
     4},
};

/* Each index of a buffer's element is noted, by thread. */
static const char recorder[] =
    "enum { THREADS = 256, MOST = 64 };\n"
    "static long noted[THREADS][MOST];\n"
    "static int nnoted[THREADS];\n"
    "int most_sectors(void)\n{\n    int most = 0;\n"
    "    for (int first = 0; first < THREADS; first += 32)\n"
    "        for (int i = 0; i < nnoted[first]; i++) {\n"
    "            int n = 0;\n"
    "            for (int a = 0; a < 32; a++) {\n"
    "                int is_new = 1;\n"
    "                for (int b = 0; b < a; b++)\n"
    "                    is_new &= noted[first + a][i] / 8 != noted[first + b][i] / 8;\n"
    "                n += is_new;\n"
    "            }\n"
    "            most = n > most ? n : most;\n        }\n    return most;\n}\n"
    "#define NOTED noted[here->number][nnoted[here->number]++]\n";

/* "(… b0)[i]" becomes "(… b0)[NOTED = i]". */
static dlc_str recording(const dlc_str *text)
{
    const char *kernel = strstr(dlc_str_text(text), "DLC_KERNEL k0(");
    dlc_str out = {0};
    ck_assert_ptr_nonnull(kernel);
    dlc_str_printf(&out, "%.*s%s", (int)(kernel - text->data), text->data, recorder);
    for (; *kernel; kernel++) {
        dlc_str_printf(&out, "%c", *kernel);
        if (!strncmp(kernel - 4, " *)b", 4) && kernel[1] == ')' && kernel[2] == '[') {
            dlc_str_add(&out, ")[NOTED = ");
            kernel += 2;
        }
    }
    return out;
}

START_TEST(warps_access_neighbours)
{
    small_graph s = small_begin(neighbours[_i].graph);
    const dlc_module *module = run_strategy(&s, "greedy", "sm_75");
    dlc_str text = text_of(&s, module), changed = recording(&text);
    emulated made = compile(&changed, 0);
    void **memory = small_memory(&s);
    ck_assert_uint_eq(module->steps.n, 1);
    launch(&s, module, &module->steps.data[0], memory, made.kernels[0]);
    int (*most_sectors)(void) = (int (*)(void))dlsym(made.library, "most_sectors");
    ck_assert_int_eq(most_sectors(), neighbours[_i].nsectors);
    dlclose(made.library);
    dlc_str_deinit(&text);
    dlc_str_deinit(&changed);
    small_end(&s);
}
END_TEST

static const struct {
    const char *body, *message;
} divergences[] = {
    {"if (DLC_THREAD < 5) dlc_warp_sync();", "waits at a warp's barrier"},
    {"if (DLC_THREAD == 40) return; dlc_block_sync();", "waits at a block's barrier"},
    {"if (DLC_THREAD & 1) dlc_warp_sync(); else\n dlc_warp_sync();", "waits at a warp's barrier"},
    {"if (DLC_THREAD != 3) dlc_shuffle_u32(1, 0);", "waits at a shuffle"},
};

/* Runs it in a child; its standard error. */
static int run_diverging(const emulated *made, char *said, size_t n)
{
    int fds[2], state;
    ck_assert_int_eq(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(fds[1], STDERR_FILENO);
        made->kernels[0](&(dlc_kernel_args){0}, 0, 1);
        _exit(0);
    }
    close(fds[1]);
    size_t have = 0;
    for (ssize_t got; have < n - 1 && (got = read(fds[0], said + have, n - 1 - have)) > 0;)
        have += (size_t)got;
    said[have] = 0;
    close(fds[0]);
    ck_assert_int_eq(waitpid(child, &state, 0), child);
    return WIFSIGNALED(state) ? WTERMSIG(state) : 0;
}

START_TEST(divergence_ends_with_a_message)
{
    dlc_str text = {0};
    char said[2000];
    dlc_cuda_emulation_begin(&text);
    dlc_str_printf(&text,
                   "static void run(dlc_thread *here)\n{\n%s\n}\n"
                   "static const dlc_launched launched = {run, \"odd\", 64, 1, 1};\n"
                   "static void k0(const dlc_kernel_args *a, long b, long e)\n{\n    "
                   "dlc_launch(&launched, a, b, e);\n}\n"
                   "void (*const kernels[])(const dlc_kernel_args *, long, long) = {k0};\n",
                   divergences[_i].body);
    emulated made = compile(&text, 0);
    ck_assert_int_eq(run_diverging(&made, said, sizeof said), SIGABRT);
    ck_assert_msg(strstr(said, "emulated kernel odd") && strstr(said, divergences[_i].message),
                  "%s", said);
    dlclose(made.library);
    dlc_str_deinit(&text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda text");
    TCase *tests = tcase_create("cuda text");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, neighbours_move_together, 0, sizeof accesses / sizeof *accesses);
#ifdef __x86_64__
    tcase_add_loop_test(tests, kernels_give_the_interpreters_numbers, 0, NCASES);
    tcase_add_loop_test(tests, warps_access_neighbours, 0, sizeof neighbours / sizeof *neighbours);
    tcase_add_loop_test(tests, divergence_ends_with_a_message, 0,
                        sizeof divergences / sizeof *divergences);
#endif
    tcase_add_loop_test(tests, nvrtc_takes_the_text, 0, NCASES);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
