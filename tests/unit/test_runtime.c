/* The runtime over compiled models: results, every refusal with its text, threads, memory, faults.
 */
#include <check.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "dlc/runtime.h"
#include "tests/unit/made_model.h"
#include "tests/unit/suite.h"

static char path[64];
static dlcrt_executable *executable;
static dlcrt_context *context;

#define OK(call) ck_assert_msg((call) == DLC_OK, "%s", dlcrt_last_error())

static void compile_module(made_model *m, const char *target)
{
    dlc_module *module = made_finish(m, target);
    dlc_executable_options options = {
        .artifact = DLC_ARTIFACT_SO, .path = path, .name = m->graph->name, .njobs = 1};
    dlc_status status = dlc_executable_write(module, &options, m->graph->diag);
    ck_assert_msg(status == DLC_OK, "%s",
                  m->graph->diag->nmessages ? m->graph->diag->messages[0].text : "");
}

static void open_compiled(made_model *m, uint32_t threads)
{
    compile_module(m, "native");
    made_end(m);
    OK(dlcrt_executable_open(path, &executable));
    OK(dlcrt_context_create(executable, &(dlcrt_context_options){.threads = threads, .poison = 1},
                            &context));
}

static void setup(void)
{
    snprintf(path, sizeof path, "/tmp/dlc_test_runtime_%d.so", getpid());
}

static void teardown(void)
{
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
    context = NULL;
    executable = NULL;
    unlink(path);
}

/* --- models --- */
/* y = (x + c)^2 over x f32[n,4]; outputs y, the constant c and x itself. */
static made_model chain_model(void)
{
    static const float c[4] = {1, 2, 3, 4};
    made_model m = made_begin("chain");
    dlc_graph_symbol(m.graph, "n", DLC_BIND_INPUT_DIM, NULL, 0);
    m.graph->symbols.data[0].lo = 1;
    m.graph->symbols.data[0].hi = 1 << 20;
    dlc_value *x = made_input(&m, "x", DLC_F32, 2, (int64_t[]){-1, 4});
    dlc_type type = {.dtype = DLC_F32, .rank = 1, .dims = {dlc_expr_i64(m.graph->pool, 4)}};
    dlc_value *constant = dlc_graph_constant(m.graph, "c", &type, c, sizeof c);
    dlc_value *t = made_binary(&m, DLC_OP_ADD, "t", x, constant);
    dlc_graph_output(m.graph, "y", made_binary(&m, DLC_OP_MUL, "y", t, t));
    dlc_graph_output(m.graph, "c", constant);
    dlc_graph_output(m.graph, "same", x);
    return m;
}

/* y = -x over f32[2048,64]: enough work for several threads. */
static made_model wide_model(void)
{
    made_model m = made_begin("wide");
    dlc_value *x = made_input(&m, "x", DLC_F32, 2, (int64_t[]){2048, 64});
    dlc_graph_output(m.graph, "y", made_unary(&m, DLC_OP_EXP, "y", x));
    return m;
}

/* y = table[ids] over ids i64[n] */
static made_model gather_model(void)
{
    static float table[10][4];
    for (int i = 0; i < 40; i++)
        table[i / 4][i % 4] = (float)i;
    made_model m = made_begin("gather");
    dlc_graph_symbol(m.graph, "n", DLC_BIND_INPUT_DIM, NULL, 0);
    m.graph->symbols.data[0].hi = 1 << 20;
    dlc_value *ids = made_input(&m, "ids", DLC_I64, 1, (int64_t[]){-1});
    dlc_type type = {.dtype = DLC_F32,
                     .rank = 2,
                     .dims = {dlc_expr_i64(m.graph->pool, 10), dlc_expr_i64(m.graph->pool, 4)}};
    dlc_value *constant = dlc_graph_constant(m.graph, "table", &type, table, sizeof table);
    dlc_value *inputs[] = {constant, ids};
    dlc_attr axis = dlc_attr_int(DLC_ATTR_AXIS, 0);
    dlc_graph_output(m.graph, "y",
                     made_node(&m, DLC_OP_GATHER, "y", 2, inputs, 1, 1, &axis)->outputs[0]);
    return m;
}

/* y = -nonzero(x) over x f32[n,3]: the output's size is known only after the first step. */
static made_model nonzero_model(void)
{
    made_model m = made_begin("nonzero");
    dlc_graph_symbol(m.graph, "n", DLC_BIND_INPUT_DIM, NULL, 0);
    m.graph->symbols.data[0].hi = 1 << 20;
    dlc_value *x = made_input(&m, "x", DLC_F32, 2, (int64_t[]){-1, 3});
    uint32_t count = dlc_graph_symbol(m.graph, "count", DLC_BIND_OPAQUE, NULL, 0);
    m.graph->symbols.data[count].hi = 1 << 30;
    dlc_attr symbol = dlc_attr_int(DLC_ATTR_SYMBOL, count);
    dlc_value *at = made_node(&m, DLC_OP_NONZERO, "at", 1, &x, 1, 1, &symbol)->outputs[0];
    dlc_graph_output(m.graph, "y",
                     made_unary(&m, DLC_OP_NEG, "y", made_unary(&m, DLC_OP_NEG, "z", at)));
    dlc_graph_output(m.graph, "x2", made_unary(&m, DLC_OP_NEG, "x2", x));
    return m;
}

/* values of the 2 largest along axis 1 of f32[2,5]; the indices are not asked for */
static made_model topk_model(void)
{
    made_model m = made_begin("topk");
    dlc_value *x = made_input(&m, "x", DLC_F32, 2, (int64_t[]){2, 5});
    dlc_expr k = dlc_expr_i64(m.graph->pool, 2);
    dlc_attr attrs[] = {dlc_attr_int(DLC_ATTR_AXIS, 1), dlc_attr_int(DLC_ATTR_LARGEST, 1),
                        dlc_attr_int(DLC_ATTR_SORTED, 1), dlc_attr_dims(DLC_ATTR_DIMS, &k, 1)};
    dlc_value *values = made_node(&m, DLC_OP_TOPK, "top", 1, &x, 1, 4, attrs)->outputs[0];
    dlc_graph_output(m.graph, "y", made_unary(&m, DLC_OP_NEG, "y", values));
    return m;
}

static dlcrt_tensor matrix(void *data, int64_t rows, int64_t columns)
{
    return (dlcrt_tensor){.data = data, .dtype = DLC_F32, .rank = 2, .dims = {rows, columns}};
}

/* --- results --- */
START_TEST(dynamic_sizes_run_through_one_context)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    for (int64_t n = 1; n < 2000; n = n * 3 + 1) {
        float *x = calloc((size_t)n * 4, sizeof *x), *y = calloc((size_t)n * 4, sizeof *y);
        for (int64_t i = 0; i < n * 4; i++)
            x[i] = (float)i;
        dlcrt_tensor in = matrix(x, n, 4), out[3] = {{.data = y, .size_bytes = (size_t)n * 16}};
        OK(dlcrt_context_run(context, &in, 1, out, 3));
        for (int64_t i = 0; i < n * 4; i++) {
            float sum = (float)i + (float)(i % 4 + 1);
            ck_assert_float_eq(y[i], sum * sum);
            ck_assert_float_eq(((float *)out[2].data)[i], x[i]);
        }
        ck_assert_float_eq(((float *)out[1].data)[3], 4);
        ck_assert_int_eq(out[0].rank, 2);
        ck_assert_int_eq(out[0].dims[0], n);
        ck_assert_uint_eq(dlcrt_context_output_bytes(context, 0), (size_t)n * 16);
        free(x);
        free(y);
    }
}
END_TEST

START_TEST(tensors_are_found_by_name_at_any_address)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    unsigned char memory[64], result[64];
    float x[4] = {1, 2, 3, 4}, y[4], same[4];
    memcpy(memory + 1, x, sizeof x); /* misaligned */
    dlcrt_tensor in = matrix(memory + 1, 1, 4);
    dlcrt_tensor out[3] = {{.name = "same", .data = same, .size_bytes = 16},
                           {.name = "y", .data = result + 3, .size_bytes = 16},
                           {.name = "c"}};
    in.name = "x";
    OK(dlcrt_context_run(context, &in, 1, out, 3));
    memcpy(y, result + 3, sizeof y);
    ck_assert_float_eq(y[3], 64);
    ck_assert_float_eq(same[0], 1);
}
END_TEST

START_TEST(sizes_from_data_grow_the_context)
{
    made_model m = nonzero_model();
    open_compiled(&m, 1);
    dlcrt_tensor_info info;
    for (int64_t n = 1; n < 3000; n *= 7) {
        float *x = calloc((size_t)n * 3, sizeof *x);
        for (int64_t i = 0; i < n * 3; i += 2)
            x[i] = 1;
        dlcrt_tensor in = matrix(x, n, 3), out[2] = {{0}};
        OK(dlcrt_context_run(context, &in, 1, out, 2));
        int64_t count = (n * 3 + 1) / 2;
        ck_assert_int_eq(out[0].dims[0], 2);
        ck_assert_int_eq(out[0].dims[1], count);
        ck_assert(dlcrt_context_output(context, 0, &info) && info.dims[1] == count);
        for (int64_t i = 0; i < count; i++) {
            ck_assert_int_eq(((int64_t *)out[0].data)[i], 2 * i / 3);
            ck_assert_int_eq(((int64_t *)out[0].data)[count + i], 2 * i % 3);
        }
        ck_assert_float_eq(((float *)out[1].data)[0], -1);
        free(x);
    }
    float x[3] = {1, 1, 1};
    int64_t few[2];
    dlcrt_tensor in = matrix(x, 1, 3), out[2] = {{.data = few, .size_bytes = sizeof few}};
    ck_assert_int_eq(dlcrt_context_run(context, &in, 1, out, 2), DLC_INVALID);
    ck_assert_str_eq(dlcrt_last_error(), "output 'y' needs 48 bytes, its buffer has 16");
}
END_TEST

START_TEST(topk_works_without_its_indices)
{
    made_model m = topk_model();
    open_compiled(&m, 1);
    float x[10] = {3, 1, NAN, 5, 2, 1, 1, 0, -1, 7}, y[4];
    dlcrt_tensor in = matrix(x, 2, 5), out = {.data = y, .size_bytes = sizeof y};
    OK(dlcrt_context_run(context, &in, 1, &out, 1));
    ck_assert(isnan(y[0]));
    ck_assert_float_eq(y[1], -5);
    ck_assert_float_eq(y[2], -7);
    ck_assert_float_eq(y[3], -1);
}
END_TEST

/* --- refusals --- */
static float good[8];
static const struct {
    const char *what;
    dlcrt_tensor input;
    uint32_t ninputs;
    const char *text;
} refusals[] = {
    {"count",
     {.data = good, .dtype = DLC_F32, .rank = 2, .dims = {1, 4}},
     0,
     "0 inputs given, the model has 1"},
    {"name",
     {.name = "X", .data = good, .dtype = DLC_F32, .rank = 2, .dims = {1, 4}},
     1,
     "no input is called 'X'; the model has 'x'"},
    {"dtype",
     {.data = good, .dtype = DLC_F64, .rank = 2, .dims = {1, 4}},
     1,
     "input 'x': dtype f64, wanted f32[n,4]"},
    {"no dtype",
     {.data = good, .rank = 2, .dims = {1, 4}},
     1,
     "input 'x': dtype none, wanted f32[n,4]"},
    {"unknown dtype",
     {.data = good, .dtype = (dlc_dtype)77, .rank = 2, .dims = {1, 4}},
     1,
     "input 'x': dtype unknown, wanted f32[n,4]"},
    {"rank",
     {.data = good, .dtype = DLC_F32, .rank = 1, .dims = {4}},
     1,
     "input 'x': shape [4], wanted f32[n,4] (another rank)"},
    {"large rank",
     {.data = good, .dtype = DLC_F32, .rank = 99, .dims = {4}},
     1,
     "input 'x': rank 99, wanted f32[n,4]"},
    {"dimension",
     {.data = good, .dtype = DLC_F32, .rank = 2, .dims = {2, 5}},
     1,
     "input 'x': shape [2,5], wanted f32[n,4], with the other dimensions given [2,4]"},
    {"negative",
     {.data = good, .dtype = DLC_F32, .rank = 2, .dims = {-1, 4}},
     1,
     "input 'x': dimension 0 (n) is -1, wanted 1 to 1048576"},
    {"zero below the range",
     {.data = good, .dtype = DLC_F32, .rank = 2, .dims = {0, 4}},
     1,
     "input 'x': dimension 0 (n) is 0, wanted 1 to 1048576"},
    {"above the range",
     {.data = good, .dtype = DLC_F32, .rank = 2, .dims = {INT64_C(1) << 40, 4}},
     1,
     "input 'x': dimension 0 (n) is 1099511627776, wanted 1 to 1048576"},
    {"bytes",
     {.data = good, .size_bytes = 15, .dtype = DLC_F32, .rank = 2, .dims = {1, 4}},
     1,
     "input 'x': 15 bytes, wanted 16 for f32[n,4]"},
    {"no data",
     {.dtype = DLC_F32, .rank = 2, .dims = {1, 4}},
     1,
     "input 'x': data is NULL, wanted 16 bytes"},
};

START_TEST(wrong_inputs_are_refused_by_name)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        float y[4] = {7, 7, 7, 7};
        dlcrt_tensor in = refusals[i].input, out[3] = {{.data = y, .size_bytes = sizeof y}};
        ck_assert_msg(dlcrt_context_run(context, &in, refusals[i].ninputs, out, 3) == DLC_INVALID,
                      "%s", refusals[i].what);
        ck_assert_str_eq(dlcrt_last_error(), refusals[i].text);
        for (int k = 0; k < 4; k++)
            ck_assert_float_eq(y[k], 7);
        dlcrt_tensor fine = matrix(good, 1, 4); /* and the context still works */
        OK(dlcrt_context_run(context, &fine, 1, out, 3));
    }
}
END_TEST

START_TEST(wrong_outputs_are_refused)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    float x[8] = {0}, y[4];
    dlcrt_tensor in = matrix(x, 1, 4), out[3] = {{.data = y, .size_bytes = 12}};
    ck_assert_int_eq(dlcrt_context_run(context, &in, 1, out, 3), DLC_INVALID);
    ck_assert_str_eq(dlcrt_last_error(), "output 'y' needs 16 bytes, its buffer has 12");
    ck_assert_int_eq(dlcrt_context_run(context, &in, 1, out, 2), DLC_INVALID);
    ck_assert_str_eq(dlcrt_last_error(), "2 outputs given, the model has 3");
    out[0] = (dlcrt_tensor){.data = x + 2, .size_bytes = 16};
    ck_assert_int_eq(dlcrt_context_run(context, &in, 1, out, 3), DLC_INVALID);
    ck_assert_str_eq(dlcrt_last_error(),
                     "output 'y' and input 'x' share memory; give them buffers of their own");
    out[0] = (dlcrt_tensor){.name = "y"};
    out[1] = (dlcrt_tensor){.name = "y"};
    ck_assert_int_eq(dlcrt_context_run(context, &in, 1, out, 3), DLC_INVALID);
    ck_assert_str_eq(dlcrt_last_error(), "output 'y' is given twice");
    ck_assert_int_eq(dlcrt_context_run(NULL, &in, 1, out, 3), DLC_USAGE);
}
END_TEST

/* The context's memory of one run is no input of the next, nor another output: it would be written
 * while it is read, or given back to grow. */
START_TEST(memory_of_the_context_is_not_both_in_and_out)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    float x[8] = {1, 2, 3, 4}, y[8];
    dlcrt_tensor in = matrix(x, 1, 4), out[3] = {{0}};
    OK(dlcrt_context_run(context, &in, 1, out, 3));
    void *own = out[0].data;
    for (int way = 0; way < 4; way++) {
        dlcrt_tensor again[3] = {{.data = way == 1 ? own : NULL, .size_bytes = way == 1 ? 16 : 0}};
        in.data = way < 2 ? own : x;
        if (way == 2)
            again[2] = (dlcrt_tensor){.data = own, .size_bytes = 16};
        if (way == 3)
            again[0] = (dlcrt_tensor){.data = (char *)x + 12, .size_bytes = SIZE_MAX};
        ck_assert_int_eq(dlcrt_context_run(context, &in, 1, again, 3), DLC_INVALID);
        ck_assert_str_eq(
            dlcrt_last_error(),
            way == 2 ? "outputs 'same' and 'y' share memory; give them buffers of their own"
                     : "output 'y' and input 'x' share memory; give them buffers of their own");
    }
    in.data = own; /* copied out of it, all is well */
    dlcrt_tensor apart[3] = {{.data = y, .size_bytes = sizeof y}};
    OK(dlcrt_context_run(context, &in, 1, apart, 3));
    ck_assert_float_eq(y[3], 68 * 68);
    in.data = x;
    OK(dlcrt_context_run(context, &in, 1, out, 3)); /* the same outputs again */
    ck_assert_float_eq(((float *)out[0].data)[3], 64);
}
END_TEST

START_TEST(an_index_out_of_range_names_the_node)
{
    made_model m = gather_model();
    open_compiled(&m, 2);
    int64_t ids[3] = {9, -10, 0};
    float y[12];
    dlcrt_tensor in = {.data = ids, .dtype = DLC_I64, .rank = 1, .dims = {3}},
                 out = {.data = y, .size_bytes = sizeof y};
    OK(dlcrt_context_run(context, &in, 1, &out, 1));
    ck_assert_float_eq(y[0], 36);
    ck_assert_float_eq(y[5], 1);
    static const int64_t wrong[] = {10, -11, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ids[1] = wrong[i];
        ck_assert_int_eq(dlcrt_context_run(context, &in, 1, &out, 1), DLC_INVALID);
        ck_assert_str_eq(dlcrt_last_error(), "node 'y': index out of range");
    }
    ids[1] = 0;
    OK(dlcrt_context_run(context, &in, 1, &out, 1));
}
END_TEST

/* Every byte around the caller's buffers is unmapped: kernels stay inside, tails included. */
START_TEST(nothing_outside_the_buffers_is_touched)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    enum { PAGE = 4096 };
    unsigned char *memory =
        mmap(NULL, 6 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(memory != MAP_FAILED);
    for (int i = 0; i < 6; i += 2)
        ck_assert_int_eq(mprotect(memory + i * PAGE, PAGE, PROT_NONE), 0);
    for (int64_t n = 1; n <= 40; n++) {
        size_t size_bytes = (size_t)n * 16;
        for (int at_end = 0; at_end < 2; at_end++) {
            size_t slack = at_end ? PAGE - size_bytes : 0;
            dlcrt_tensor in = matrix(memory + PAGE + slack, n, 4);
            dlcrt_tensor out[3] = {{.data = memory + 3 * PAGE + slack, .size_bytes = size_bytes}};
            OK(dlcrt_context_run(context, &in, 1, out, 3));
        }
    }
    munmap(memory, 6 * PAGE);
}
END_TEST

/* --- threads --- */
START_TEST(any_number_of_threads_gives_the_same_bits)
{
    static const uint32_t counts[] = {1, 2, 3, 7, 16};
    made_model m = wide_model();
    open_compiled(&m, 1);
    size_t n = 2048 * 64;
    float *x = malloc(n * 4), *first = malloc(n * 4), *y = malloc(n * 4);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)i / 10000 - 3;
    dlcrt_tensor in = matrix(x, 2048, 64), out = {.data = first, .size_bytes = n * 4};
    OK(dlcrt_context_run(context, &in, 1, &out, 1));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        dlcrt_context *other;
        OK(dlcrt_context_create(executable, &(dlcrt_context_options){.threads = counts[i]},
                                &other));
        ck_assert_uint_eq(dlcrt_context_threads(other), counts[i]);
        for (int run = 0; run < 50; run++) {
            memset(y, 0, n * 4);
            out.data = y;
            OK(dlcrt_context_run(other, &in, 1, &out, 1));
            ck_assert_mem_eq(y, first, n * 4);
        }
        dlcrt_context_destroy(other);
    }
    free(x);
    free(first);
    free(y);
}
END_TEST

START_TEST(the_environment_says_how_many_threads)
{
    static const struct {
        const char *text;
        uint32_t nthreads; /* 0: refused */
    } rows[] = {{"3", 3}, {"1", 1}, {"-1", 0}, {"four", 0}, {"4x", 0}, {" 4", 0}};
    made_model m = chain_model();
    open_compiled(&m, 1);
    uint32_t usual = dlcrt_context_threads(context);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dlcrt_context *other;
        setenv("DLC_NUM_THREADS", rows[i].text, 1);
        dlc_status status = dlcrt_context_create(executable, NULL, &other);
        ck_assert_int_eq(status, rows[i].nthreads ? DLC_OK : DLC_USAGE);
        if (status == DLC_OK)
            ck_assert_uint_eq(dlcrt_context_threads(other), rows[i].nthreads);
        else
            ck_assert_ptr_nonnull(strstr(dlcrt_last_error(), rows[i].text));
        dlcrt_context_destroy(other);
        OK(dlcrt_context_create(executable, &(dlcrt_context_options){.threads = usual}, &other));
        dlcrt_context_destroy(other); /* who says it is not asked */
    }
    unsetenv("DLC_NUM_THREADS");
}
END_TEST

static void *run_many(void *argument)
{
    (void)argument;
    dlcrt_context *own;
    float x[400], y[400];
    for (int i = 0; i < 400; i++)
        x[i] = (float)i;
    if (dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 2}, &own))
        return "no context";
    const char *failure = NULL;
    for (int run = 0; run < 300 && !failure; run++) {
        dlcrt_tensor in = matrix(x, run % 100 + 1, 4),
                     out[3] = {{.data = y, .size_bytes = sizeof y}};
        if (dlcrt_context_run(own, &in, 1, out, 3))
            failure = "a run failed";
        else if (y[3] != 49)
            failure = "a wrong result";
    }
    dlcrt_context_destroy(own);
    return (void *)(uintptr_t)failure;
}

START_TEST(contexts_run_in_parallel)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_many, NULL), 0);
    for (int i = 0; i < 8; i++) {
        void *failure;
        pthread_join(threads[i], &failure);
        ck_assert_msg(!failure, "%s", (const char *)failure);
    }
}
END_TEST

static void *cancel_soon(void *target)
{
    usleep(20000);
    dlcrt_context_cancel(target, 1);
    return NULL;
}

START_TEST(runs_can_be_cancelled_and_limited)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    float x[400] = {0}, y[400];
    dlcrt_tensor in = matrix(x, 100, 4), out[3] = {{.data = y, .size_bytes = sizeof y}};
    pthread_t thread;
    dlc_status status;
    OK(dlcrt_context_run(context, &in, 1, out, 3));
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, context), 0);
    while ((status = dlcrt_context_run(context, &in, 1, out, 3)) == DLC_OK)
        continue;
    pthread_join(thread, NULL);
    ck_assert_int_eq(status, DLC_CANCELLED);
    ck_assert_ptr_nonnull(strstr(dlcrt_last_error(), "cancelled"));
    ck_assert_int_eq(dlcrt_context_run(context, &in, 1, out, 3), DLC_CANCELLED);
    dlcrt_context_cancel(context, 0);
    OK(dlcrt_context_run(context, &in, 1, out, 3));
    dlcrt_context_limit(context, 1e-9);
    usleep(1000);
    status = dlcrt_context_run(context, &in, 1, out, 3);
    ck_assert_int_eq(status, DLC_LIMIT);
    dlcrt_context_limit(context, 3600);
    OK(dlcrt_context_run(context, &in, 1, out, 3));
    dlcrt_context_limit(context, 0);
    OK(dlcrt_context_run(context, &in, 1, out, 3));
    dlcrt_context_cancel(NULL, 1);
    dlcrt_context_limit(NULL, 1);
}
END_TEST

/* --- memory --- */
START_TEST(memory_has_a_limit)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    enum { ROWS = 1 << 18 };
    float *x = calloc(ROWS, 4 * sizeof *x);
    dlcrt_tensor small = matrix(x, 100, 4), large = matrix(x, ROWS, 4), out[3] = {{0}};
    dlcrt_context_destroy(context);
    OK(dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 1, .max_mebibytes = 2}, &context));
    OK(dlcrt_context_run(context, &small, 1, out, 3));
    ck_assert_int_eq(dlcrt_context_run(context, &large, 1, memset(out, 0, sizeof out), 3), DLC_LIMIT); /* 4 MiB an output */
    ck_assert_msg(strstr(dlcrt_last_error(), "the limit is 2 MiB") != NULL, "%s", dlcrt_last_error());
    ck_assert_uint_le(dlcrt_context_bytes(context), 2 << 20);
    OK(dlcrt_context_run(context, &small, 1, memset(out, 0, sizeof out), 3));
    free(x);
}
END_TEST

START_TEST(a_steady_run_allocates_nothing)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    float x[400] = {0}, y[400];
    dlcrt_tensor in = matrix(x, 100, 4), out[3] = {{.data = y, .size_bytes = sizeof y}};
    OK(dlcrt_context_run(context, &in, 1, out, 3));
    struct mallinfo2 before = mallinfo2();
    size_t bytes = dlcrt_context_bytes(context);
    for (int i = 0; i < 1000; i++)
        OK(dlcrt_context_run(context, &in, 1, out, 3));
    struct mallinfo2 after = mallinfo2();
    ck_assert_uint_eq(before.uordblks, after.uordblks);
    ck_assert_uint_eq(before.fordblks, after.fordblks);
    ck_assert_uint_eq(bytes, dlcrt_context_bytes(context));
}
END_TEST

START_TEST(loading_and_unloading_leaves_nothing)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    int first = dup(0);
    close(first);
    for (int i = 0; i < 200; i++) {
        dlcrt_executable *again;
        dlcrt_context *own;
        OK(dlcrt_executable_open(path, &again));
        OK(dlcrt_context_create(again, &(dlcrt_context_options){.threads = 2}, &own));
        dlcrt_executable_close(again); /* the context keeps it */
        float x[4] = {0}, y[4];
        dlcrt_tensor in = matrix(x, 1, 4), out[3] = {{.data = y, .size_bytes = sizeof y}};
        OK(dlcrt_context_run(own, &in, 1, out, 3));
        dlcrt_context_destroy(own);
    }
    int last = dup(0);
    close(last);
    ck_assert_int_eq(first, last);
}
END_TEST

/* Address space shrinks step by step: whatever cannot be had ends in a message, or it works. */
START_TEST(memory_that_runs_out_is_a_message)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return; /* they need terabytes of it */
#endif
    made_model m = wide_model();
    compile_module(&m, "native");
    made_end(&m);
    static float x[2048 * 64], y[2048 * 64];
    uint32_t nfailed = 0;
    for (size_t room = 0; room < (4u << 20); room += 64 << 10) {
        pid_t child = fork();
        if (child == 0) {
            char line[64] = "";
            int fd = open("/proc/self/statm", O_RDONLY);
            (void)!read(fd, line, sizeof line - 1);
            close(fd);
            size_t now = (size_t)atol(line) * 4096;
            setrlimit(RLIMIT_AS, &(struct rlimit){now + room, now + room});
            dlcrt_tensor in = matrix(x, 2048, 64), out = {.data = y, .size_bytes = sizeof y};
            dlc_status status = dlcrt_executable_open(path, &executable);
            if (status == DLC_OK)
                status = dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 3},
                                              &context);
            if (status == DLC_OK)
                status = dlcrt_context_run(context, &in, 1, &out, 1);
            dlcrt_context_destroy(context);
            dlcrt_executable_close(executable);
            _exit(status == DLC_OK ||
                          (*dlcrt_last_error() && (status == DLC_LIMIT || status == DLC_IO))
                      ? (int)status
                      : 99);
        }
        int state;
        ck_assert_int_eq(waitpid(child, &state, 0), child);
        ck_assert_msg(WIFEXITED(state) && WEXITSTATUS(state) != 99, "with %zu bytes: state %d",
                      room, state);
        nfailed += WEXITSTATUS(state) != 0;
    }
    ck_assert_uint_gt(nfailed, 0);
    ck_assert_uint_lt(nfailed, 64);
}
END_TEST

/* --- models that compute nothing --- */
START_TEST(a_model_may_have_no_kernel_and_no_input)
{
    static const float c[3] = {1, 2, 3};
    made_model m = made_begin("constant");
    dlc_type type = {.dtype = DLC_F32, .rank = 1, .dims = {dlc_expr_i64(m.graph->pool, 3)}};
    dlc_graph_output(m.graph, "y", dlc_graph_constant(m.graph, "c", &type, c, sizeof c));
    open_compiled(&m, 2);
    float y[3];
    dlcrt_tensor out = {.data = y, .size_bytes = sizeof y};
    OK(dlcrt_context_run(context, NULL, 0, &out, 1));
    ck_assert_float_eq(y[2], 3);
}
END_TEST

/* --- what can be asked --- */
START_TEST(an_executable_describes_itself)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    dlcrt_tensor_info input, output;
    ck_assert_uint_eq(dlcrt_executable_ninputs(executable), 1);
    ck_assert_uint_eq(dlcrt_executable_noutputs(executable), 3);
    ck_assert(dlcrt_executable_input(executable, 0, &input));
    ck_assert(!dlcrt_executable_input(executable, 1, &input));
    ck_assert_str_eq(input.name, "x");
    ck_assert_str_eq(input.type, "f32[n,4]");
    ck_assert_int_eq(input.dims[0], -1);
    ck_assert_int_eq(input.dims[1], 4);
    ck_assert_str_eq(input.dim_names[0], "n");
    ck_assert(dlcrt_executable_output(executable, 1, &output));
    ck_assert_str_eq(output.type, "f32[4]");
    dlcrt_executable_info info;
    dlcrt_executable_describe(executable, &info);
    ck_assert_str_eq(info.model, "chain");
    ck_assert_uint_eq(info.nkernels, 2);
    ck_assert(!info.is_static);
    dlcrt_step_info step;
    ck_assert(dlcrt_executable_step(executable, 0, &step) && step.is_kernel);
    ck_assert_str_eq(step.name, "t");
    char text[64];
    size_t n = dlcrt_executable_print(executable, text, sizeof text);
    ck_assert_uint_gt(n, sizeof text);
    ck_assert_uint_eq(strlen(text), sizeof text - 1);
}
END_TEST

/* What runs of one file, by both executables opened of it, is one series; a text that is cut off is as long as it would be. */
START_TEST(runs_are_counted)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    float x[4] = {0}, y[4];
    dlcrt_tensor in = matrix(x, 1, 4), wrong = matrix(x, 1, 3), out[3] = {{.data = y, .size_bytes = sizeof y}};
    for (int i = 0; i < 3; i++)
        OK(dlcrt_context_run(context, &in, 1, out, 3));
    ck_assert_int_eq(dlcrt_context_run(context, &wrong, 1, out, 3), DLC_INVALID);
    const dlcrt_executable *list[] = {executable, NULL, executable};
    static const char *const parts[] = {"# TYPE dlc_runs_total counter\ndlc_runs_total{model=\"chain\",file=\"", "status=\"ok\"} 6\n",
                                        "status=\"invalid\"} 2\n", "\ndlc_runs_active{", "\ndlc_run_seconds_total{", "\ndlc_weights_bytes{"};
    char text[2048], part[32];
    size_t n = dlcrt_counters_print(list, 3, text, sizeof text);
    ck_assert_uint_eq(n, strlen(text));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(strstr(text, parts[i]) != NULL, "'%s' is not in\n%s", parts[i], text);
    ck_assert_ptr_null(strstr(strstr(text, "\ndlc_contexts{") + 1, "\ndlc_contexts{"));
    ck_assert_uint_eq(dlcrt_counters_print(list, 3, part, sizeof part), n);
    ck_assert_uint_eq(strlen(part), sizeof part - 1);
    ck_assert_uint_gt(dlcrt_counters_print(NULL, 1, NULL, 0), 0);
}
END_TEST

/* A label is UTF-8, whatever bytes a file has for a name; without a name, executables of one content are one series. */
START_TEST(labels_of_counters_tell_files_apart)
{
    static const char *const shown[] = {"a\\\\xff\\\"b\\\\xc3.so", "\303\251\xe2\x82\xac\\n.so"};
    static const char *const named[] = {"a\xff\"b\xc3.so", "\303\251\xe2\x82\xac\n.so"};
    char odd[2][96], text[4096];
    dlcrt_executable *list[5] = {0};
    made_model m = chain_model();
    open_compiled(&m, 1);
    for (int i = 0; i < 2; i++) {
        snprintf(odd[i], sizeof odd[i], "%s.%s", path, named[i]);
        ck_assert_int_eq(link(path, odd[i]), 0);
        OK(dlcrt_executable_open(odd[i], &list[i]));
        unlink(odd[i]);
    }
    for (int i = 2; i < 4; i++) {
        int fd = open(path, O_RDONLY);
        OK(dlcrt_executable_open_fd(fd, &list[i]));
        close(fd);
    }
    made_model other = chain_model();
    other.graph->outputs.n = 1;
    compile_module(&other, "native");
    made_end(&other);
    int fd = open(path, O_RDONLY);
    OK(dlcrt_executable_open_fd(fd, &list[4]));
    close(fd);
    ck_assert_uint_lt(dlcrt_counters_print((const dlcrt_executable *const *)list, 5, text, sizeof text), sizeof text);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(strstr(text, shown[i]) != NULL, "'%s' is not in\n%s", shown[i], text);
    ck_assert_msg(count_of(text, "\ndlc_contexts{") == 4 && count_of(text, "file=\"executable ") == 2 * 5, "%s", text);
    for (int i = 0; i < 5; i++)
        dlcrt_executable_close(list[i]);
}
END_TEST

START_TEST(a_profile_times_every_step)
{
    made_model m = chain_model();
    open_compiled(&m, 1);
    dlcrt_context *timed;
    OK(dlcrt_context_create(executable, &(dlcrt_context_options){.threads = 1, .profile = 1},
                            &timed));
    float x[4] = {0}, y[4];
    dlcrt_tensor in = matrix(x, 1, 4), out[3] = {{.data = y, .size_bytes = sizeof y}};
    OK(dlcrt_context_run(timed, &in, 1, out, 3));
    int64_t last = 0;
    dlcrt_step_profile profile;
    for (uint32_t i = 0; dlcrt_context_profile(timed, i, &profile); i++) {
        ck_assert_int_le(last, profile.begin_ns);
        ck_assert_int_le(profile.begin_ns, profile.end_ns);
        ck_assert_double_gt(profile.bytes, 0);
        last = profile.end_ns;
    }
    ck_assert_int_gt(last, 0);
    dlcrt_context_destroy(timed);
}
END_TEST

START_TEST(a_profile_tells_what_each_thread_did)
{
    enum { ROWS = 4096, NTHREADS = 2 };
    static float x[ROWS * 4], y[ROWS * 4];
    made_model m = chain_model();
    open_compiled(&m, 1);
    dlcrt_context *timed, *untimed;
    OK(dlcrt_context_create(executable, &(dlcrt_context_options){.threads = NTHREADS, .profile = 1}, &timed));
    OK(dlcrt_context_create(executable, &(dlcrt_context_options){.threads = NTHREADS}, &untimed));
    dlcrt_tensor in = matrix(x, ROWS, 4), out[3] = {{.data = y, .size_bytes = sizeof y}};
    OK(dlcrt_context_run(timed, &in, 1, out, 3));
    dlcrt_step_profile step;
    dlcrt_thread_profile thread;
    for (uint32_t i = 0; dlcrt_context_profile(timed, i, &step); i++) {
        int64_t busy_ns = 0;
        for (uint32_t t = 0; dlcrt_context_thread_profile(timed, i, t, &thread); t++) {
            busy_ns += thread.busy_ns;
            ck_assert_int_le(thread.busy_ns, step.end_ns - step.begin_ns);
            ck_assert(!thread.busy_ns || (thread.end_ns - thread.busy_ns >= step.begin_ns && thread.end_ns <= step.end_ns));
        }
        ck_assert_int_gt(busy_ns, 0);
        ck_assert(!dlcrt_context_thread_profile(timed, i, NTHREADS, &thread));
        ck_assert(dlcrt_context_thread_profile(untimed, i, 0, &thread) && !thread.busy_ns);
    }
    ck_assert(!dlcrt_context_thread_profile(NULL, 0, 0, &thread));
    dlcrt_context_destroy(timed);
    dlcrt_context_destroy(untimed);
}
END_TEST

START_TEST(another_processor_is_refused)
{
    made_model m = chain_model();
    compile_module(&m, "x86-64-v3");
    made_end(&m);
#if defined(__x86_64__)
    setenv("DLC_CPU", "x86-64-v2", 1);
    ck_assert_int_eq(dlcrt_executable_open(path, &executable), DLC_NO_DEVICE);
    ck_assert_ptr_nonnull(
        strstr(dlcrt_last_error(), "made for x86-64-v3; this processor lacks avx, avx2, fma"));
    setenv("DLC_CPU", "x86-64-v2,avx,avx2,fma,bmi,bmi2,f16c", 1);
    ck_assert_int_eq(dlcrt_executable_open(path, &executable), DLC_NO_DEVICE);
    ck_assert_ptr_nonnull(strstr(dlcrt_last_error(), "lacks lzcnt"));
    setenv("DLC_CPU", "x86-64-v2,avx,avx2,fma,bmi,bmi2,f16c,+lzcnt", 1);
    OK(dlcrt_executable_open(path, &executable));
    dlcrt_executable_close(executable);
    setenv("DLC_CPU", "+lzcnt", 1);
    OK(dlcrt_executable_open(path, &executable));
    dlcrt_executable_close(executable);
    setenv("DLC_CPU", "x86-64-v3", 1);
    OK(dlcrt_executable_open(path, &executable));
    dlcrt_executable_close(executable);
    executable = NULL;
    m = chain_model();
    compile_module(&m, "aarch64");
    made_end(&m);
    ck_assert_int_eq(dlcrt_executable_open(path, &executable), DLC_NO_DEVICE);
    ck_assert_ptr_nonnull(strstr(dlcrt_last_error(), "made for aarch64, this machine is x86-64"));
#endif
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime");
    TCase *tests = tcase_create("runtime");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, dynamic_sizes_run_through_one_context);
    tcase_add_test(tests, tensors_are_found_by_name_at_any_address);
    tcase_add_test(tests, sizes_from_data_grow_the_context);
    tcase_add_test(tests, topk_works_without_its_indices);
    tcase_add_test(tests, wrong_inputs_are_refused_by_name);
    tcase_add_test(tests, wrong_outputs_are_refused);
    tcase_add_test(tests, memory_of_the_context_is_not_both_in_and_out);
    tcase_add_test(tests, an_index_out_of_range_names_the_node);
    tcase_add_test(tests, nothing_outside_the_buffers_is_touched);
    tcase_add_test(tests, any_number_of_threads_gives_the_same_bits);
    tcase_add_test(tests, the_environment_says_how_many_threads);
    tcase_add_test(tests, contexts_run_in_parallel);
    tcase_add_test(tests, runs_can_be_cancelled_and_limited);
    tcase_add_test(tests, memory_has_a_limit);
    tcase_add_test(tests, a_steady_run_allocates_nothing);
    tcase_add_test(tests, loading_and_unloading_leaves_nothing);
    tcase_add_test(tests, memory_that_runs_out_is_a_message);
    tcase_add_test(tests, a_model_may_have_no_kernel_and_no_input);
    tcase_add_test(tests, an_executable_describes_itself);
    tcase_add_test(tests, runs_are_counted);
    tcase_add_test(tests, labels_of_counters_tell_files_apart);
    tcase_add_test(tests, a_profile_times_every_step);
    tcase_add_test(tests, a_profile_tells_what_each_thread_did);
    tcase_add_test(tests, another_processor_is_refused);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
