#include "tests/device/stub.h"

#include <dlfcn.h>
#include <string.h>

#include "codegen/ptx/object.h"
#include "dlc/checksum.h"

const char no_code[STUB_CODE_BYTES] = "a cubin, for all the stub knows\0a PTX text";
static made_model models[MAX_PLANS];
dlc_plan_entry entries[MAX_PLANS];
const dlc_kernel_fn no_functions[8];
dlc_executable image;
dlc_pieces constants;
dlcrt_executable *executable;
const vgpu_control *stub;
uint32_t fixed_bytes[2];

/* --- executables --- */
void use_stub(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    ck_assert_msg(library != NULL, "%s", dlerror());
    stub = dlsym(library, "vgpu");
    ck_assert_msg(stub != NULL, "libcuda.so.1 is not the virtual GPU");
    stub->set_opaque();
    stub->set_device(1, 75);
    stub->set_version(12040);
}

static dlc_plan_binary *fake_binaries(const made_model *m, uint32_t arch)
{
    uint32_t n = m->ctx.module->kernels.n;
    dlc_plan_binary *binaries = dlc_new_array(m->arena, dlc_plan_binary, 2 * n + 1);
    for (uint32_t i = 0; i < n; i++) {
        binaries[2 * i] = (dlc_plan_binary){.kind = DLC_BINARY_CUBIN, .arch = arch, .size_bytes = PTX_AT};
        binaries[2 * i + 1] = (dlc_plan_binary){
            .kind = DLC_BINARY_PTX, .arch = arch, .offset = PTX_AT, .size_bytes = sizeof no_code - PTX_AT};
    }
    return binaries;
}

void add_plan(uint32_t i, made_model m, const char *target)
{
    models[i] = m;
    dlc_module *module = made_finish(&models[i], target);
    dlc_plan_cuda cuda = {0};
    dlc_cuda_sources sources;
    dlc_blob plan;
    if (module->target->kind == DLC_TARGET_CUDA) {
        ck_assert_int_eq(dlc_cuda_sources_make(module, m.arena, m.graph->diag, &sources), DLC_OK);
        for (uint32_t k = 0; k < 2 && k < sources.n && fixed_bytes[k]; k++)
            sources.launches[k].fixed_bytes = fixed_bytes[k];
        cuda = (dlc_plan_cuda){.launches = sources.launches,
                               .functions = sources.functions,
                               .binaries = fake_binaries(&models[i], (uint32_t)atoi(module->target->cpu)),
                               .nbinaries = 2};
    }
    ck_assert_int_eq(dlc_plan_build(module, &cuda, &constants, models[0].arena, m.graph->diag, &plan), DLC_OK);
    entries[i] = (dlc_plan_entry){.checksum = dlc_checksum(plan.bytes, plan.size_bytes),
                                  .plan = plan.bytes,
                                  .kernels = cuda.launches ? NULL : no_functions};
    image.nplans = i + 1;
}

void close_image(void)
{
    static _Alignas(64) unsigned char bytes[4096];
    ck_assert_uint_le(constants.size_bytes, sizeof bytes);
    for (uint32_t i = 0; i < constants.pieces.n; i++)
        memcpy(bytes + constants.offsets.data[i], constants.pieces.data[i].bytes, constants.pieces.data[i].size_bytes);
    image = (dlc_executable){.magic = DLC_EXECUTABLE_MAGIC,
                             .abi_version = DLC_ABI_VERSION,
                             .nplans = image.nplans,
                             .constants_bytes = constants.size_bytes,
                             .constants = bytes,
                             .binaries_bytes = sizeof no_code,
                             .binaries = no_code,
                             .plans = entries};
}

dlc_status open_on(const char *device)
{
    return dlcrt_executable_open_with(&(dlcrt_executable_options){.image = &image, .device = device}, &executable);
}

void teardown(void)
{
    dlcrt_executable_close(executable);
    for (uint32_t i = 0; i < image.nplans; i++)
        made_end(&models[i]);
    if (stub)
        ck_assert_int_eq(stub->nlive(), 0);
}

made_model add_model(int64_t rows)
{
    static const float c[N] = {1, 2, 3, 4, 5, 6, 7, 8};
    made_model m = made_begin("add");
    if (!rows) {
        dlc_graph_symbol(m.graph, "n", DLC_BIND_INPUT_DIM, NULL, 0);
        m.graph->symbols.data[0].lo = 1;
        m.graph->symbols.data[0].hi = 1 << 20;
    }
    dlc_value *x = made_input(&m, "x", DLC_F32, 2, (int64_t[]){rows ? rows : -1, N});
    dlc_type type = {.dtype = DLC_F32, .rank = 1, .dims = {dlc_expr_i64(m.graph->pool, N)}};
    dlc_value *constant = dlc_graph_constant(m.graph, "c", &type, c, sizeof c);
    dlc_graph_output(m.graph, "y", made_binary(&m, DLC_OP_ADD, "sum", x, constant));
    return m;
}

/* Its kernel, for one row: x, c, y, [n,] fault, first, units */
static void add_row(const void *code, const uint64_t *p, unsigned nblocks)
{
    (void)code;
    const float *x = (const float *)(uintptr_t)p[0], *c = (const float *)(uintptr_t)p[1];
    float *y = (float *)(uintptr_t)p[2];
    (void)nblocks;
    for (int i = 0; i < N; i++)
        y[i] = x[i] + c[i];
}

static void add_rows(const void *code, const uint64_t *p, unsigned nblocks)
{
    for (uint64_t row = 0; row < p[3]; row++)
        add_row(code, (uint64_t[]){p[0] + row * N * 4, p[1], p[2] + row * N * 4}, nblocks);
}

static void fault(const void *code, const uint64_t *p, unsigned nblocks)
{
    add_row(code, p, nblocks);
    *(int64_t *)(uintptr_t)p[3] = 1;
}

static void fault_rows(const void *code, const uint64_t *p, unsigned nblocks)
{
    add_rows(code, p, nblocks);
    *(int64_t *)(uintptr_t)p[4] = 1;
}

static unsigned six(const void *code)
{
    (void)code;
    return 6;
}

static unsigned seven(const void *code)
{
    (void)code;
    return 7;
}

const vgpu_kernels one_row = {six, add_row}, many_rows = {seven, add_rows}, faulty = {six, fault},
                   faulty_rows = {seven, fault_rows};

void open_static(void)
{
    use_stub();
    stub->set_kernels(&one_row);
    add_plan(0, add_model(1), "sm_75");
    close_image();
}

dlcrt_tensor row_of(float *data, int64_t rows)
{
    return (dlcrt_tensor){.data = data, .dtype = DLC_F32, .rank = 2, .dims = {rows, N}};
}

dlc_status run_once(dlcrt_context *context, float start)
{
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = start + (float)i;
    dlcrt_tensor in = row_of(x, 1), out = {0};
    DLC_TRY(dlcrt_context_run(context, &in, 1, &out, 1));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(((float *)out.data)[i], x[i] + (float)i + 1);
    return DLC_OK;
}

const char *const symbols[] = {
#define DLC_DRIVER(field, symbol, parameters) symbol,
#include "runtime/driver.def"
#undef DLC_DRIVER
};
const size_t nsymbols = sizeof symbols / sizeof symbols[0];
