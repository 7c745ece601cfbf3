/*
 * Kernels to objects: one LLVM module per kernel, so that the bytes do not depend on how many threads compile; to text: one
 * module of all, which assemblers and LLVM's tools read. The nest has placed every instruction already; only mem2reg and
 * early-cse run before code generation (more passes cost milliseconds and buy nothing measurable: a 12x32 register tile runs
 * at the machine's multiply-add peak either way).
 */
#include "codegen/codegen.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/verify.h"
#include "codegen/cache.h"
#include "codegen/cpu/llvm.h"

/* A kernel's function while its object is made: what LLVM sees says nothing of the kernel's number, so equal kernels are found in the cache
 * wherever they stand. As long as the longest name. */
static const char unnumbered[] = "dlc_k__number__";

typedef struct {
    const dlc_module *module;
    const dlc_emit_options *options;
    dlc_code_cache cache;         /* of objects alone */
    uint32_t nmodules, nkernels;  /* of a module */
    atomic_uint next;
    LLVMMemoryBufferRef *results; /* by module */
    char **errors;                /* by module; LLVM's text, or NULL */
} job;

static void initialise_targets(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeAArch64AsmParser();
}

LLVMTargetMachineRef dlc_cpu_machine(const dlc_target *target, char **error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    LLVMTargetRef llvm_target;
    pthread_once(&once, initialise_targets);
    if (LLVMGetTargetFromTriple(target->triple, &llvm_target, error))
        return NULL;
    return LLVMCreateTargetMachine(llvm_target, target->triple, target->cpu, "",
                                   LLVMCodeGenLevelAggressive, LLVMRelocPIC, LLVMCodeModelSmall);
}

static void build(const job *work, uint32_t index, LLVMContextRef context, LLVMModuleRef llvm,
                        dlc_arena *arena, dlc_diag *diag)
{
    const dlc_module_kernel *entry = &work->module->kernels.data[index];
    int is_object = work->options->kind == DLC_EMIT_OBJECT;
    const char *name = is_object ? unnumbered : dlc_arena_printf(arena, "dlc_k%u", work->options->first + index);
    dlc_kernel *kernel = dlc_nest_private_kernel(entry->schedule->kernel, work->module->target, arena);
    dlc_cpu *cpu = dlc_new(arena, dlc_cpu);
    dlc_nest *nest = dlc_new(arena, dlc_nest);
    dlc_cpu_begin(cpu, context, llvm, work->module->target, kernel, name, arena);
    dlc_nest_init(nest, kernel, entry->schedule, &cpu->base, arena, diag);
    dlc_nest_kernel(nest, (dlc_val)dlc_cpu_unit(cpu, 0), (dlc_val)dlc_cpu_unit(cpu, 1));
    dlc_cpu_end(cpu);
}

static char *optimise(LLVMModuleRef llvm, LLVMTargetMachineRef machine)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(llvm, "function(mem2reg,early-cse)", machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return NULL;
    char *text = LLVMGetErrorMessage(error), *copy = strdup(text);
    LLVMDisposeErrorMessage(text);
    return copy;
}

static char *copy_message(char *message)
{
    char *copy = strdup(message ? message : "unknown error");
    LLVMDisposeMessage(message);
    return copy;
}

/* Text, assembly or object of a finished module; an error's text otherwise. */
static char *emit(LLVMModuleRef llvm, LLVMTargetMachineRef machine, dlc_emit_kind kind, LLVMMemoryBufferRef *result)
{
    char *message = NULL, *error = optimise(llvm, machine);
    if (error)
        return error;
    if (kind == DLC_EMIT_LLVM_IR) {
        char *text = LLVMPrintModuleToString(llvm);
        *result = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "ll");
        LLVMDisposeMessage(text);
        return NULL;
    }
    LLVMCodeGenFileType type = kind == DLC_EMIT_ASM ? LLVMAssemblyFile : LLVMObjectFile;
    return LLVMTargetMachineEmitToMemoryBuffer(machine, llvm, type, &message, result) ? copy_message(message) : NULL;
}

/* What an object depends on beside its bitcode: LLVM's library by its file, which a distribution mends without another version. */
static void describe(dlc_code_cache *cache, const dlc_target *target)
{
    unsigned major, minor, patch;
    const char *path = dlc_llvm_file();
    struct stat file = {0};
    LLVMGetVersion(&major, &minor, &patch);
    if (path)
        (void)!stat(path, &file);
    snprintf(cache->about, sizeof cache->about, "LLVM %u.%u.%u, %jd bytes of %jd.%09ld; %s %s\n", major, minor, patch,
             (intmax_t)file.st_size, (intmax_t)file.st_mtim.tv_sec, file.st_mtim.tv_nsec, target->triple, target->cpu);
}

/* The same, of an object as it was made before, where it was. */
static char *emit_once(const job *work, LLVMModuleRef llvm, LLVMTargetMachineRef machine, LLVMMemoryBufferRef *result)
{
    char *message = NULL;
    if (dlc_is_verifying() && LLVMVerifyModule(llvm, LLVMReturnStatusAction, &message))
        return copy_message(message);
    LLVMDisposeMessage(message);
    if (work->cache.folder < 0)
        return emit(llvm, machine, work->options->kind, result);
    char *error = NULL;
    size_t n;
    LLVMMemoryBufferRef key = LLVMWriteBitcodeToMemoryBuffer(llvm);
    char *object = dlc_code_cache_find(&work->cache, LLVMGetBufferStart(key), LLVMGetBufferSize(key), &n);
    if (object) {
        *result = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, n, "object");
        free(object);
    } else {
        error = emit(llvm, machine, work->options->kind, result);
        if (*result)
            dlc_code_cache_add(&work->cache, LLVMGetBufferStart(key), LLVMGetBufferSize(key), LLVMGetBufferStart(*result),
                               LLVMGetBufferSize(*result));
    }
    LLVMDisposeMemoryBuffer(key);
    return error;
}

static void compile(job *work, uint32_t index, LLVMTargetMachineRef machine)
{
    LLVMContextRef context = LLVMContextCreate();
    LLVMModuleRef llvm = LLVMModuleCreateWithNameInContext("dlc", context);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    LLVMSetTarget(llvm, work->module->target->triple);
    LLVMSetModuleDataLayout(llvm, layout);
    LLVMDisposeTargetData(layout);
    for (uint32_t k = 0; k < work->nkernels; k++)
        build(work, index * work->nkernels + k, context, llvm, arena, &diag);
    work->errors[index] = emit_once(work, llvm, machine, &work->results[index]);
    LLVMDisposeModule(llvm);
    LLVMContextDispose(context);
    dlc_arena_destroy(arena);
}

static void *worker(void *argument)
{
    job *work = argument;
    char *error = NULL;
    LLVMTargetMachineRef machine = dlc_cpu_machine(work->module->target, &error);
    for (uint32_t index; (index = atomic_fetch_add(&work->next, 1)) < work->nmodules;) {
        if (machine)
            compile(work, index, machine);
        else
            work->errors[index] = strdup(error ? error : "LLVM does not know the target");
    }
    if (machine)
        LLVMDisposeTargetMachine(machine);
    if (error)
        LLVMDisposeMessage(error);
    return NULL;
}

static void run_workers(job *work, uint32_t njobs)
{
    pthread_t threads[64];
    uint32_t started = 0;
    for (; started + 1 < njobs && started < 64 && started + 1 < work->nmodules; started++)
        if (pthread_create(&threads[started], NULL, worker, work))
            break;
    worker(work);
    while (started)
        pthread_join(threads[--started], NULL);
}

/* Its name, in the object's table of strings. */
static void set_number(char *object, size_t size_bytes, uint32_t number)
{
    char *name = memmem(object, size_bytes, unnumbered, sizeof unnumbered);
    assert(name);
    memset(name, 0, sizeof unnumbered);
    snprintf(name, sizeof unnumbered, "dlc_k%u", number);
}

static dlc_status collect(job *work, dlc_arena *arena, dlc_diag *diag, dlc_blob *blobs)
{
    dlc_status status = DLC_OK;
    for (uint32_t k = 0; k < work->nmodules; k++) {
        if (work->errors[k])
            status = dlc_diag_fail(diag, DLC_INTERNAL, work->nkernels == 1 ? work->module->kernels.data[k].kernel->name : NULL,
                                   "code generation failed: %s", work->errors[k]);
        else if (!work->results[k]) /* LLVM says that it made one, and had no memory for it */
            status = dlc_diag_fail(diag, DLC_LIMIT, NULL, "the code generator ran out of memory");
        free(work->errors[k]);
        if (!work->results[k])
            continue;
        blobs[k].size_bytes = LLVMGetBufferSize(work->results[k]);
        char *bytes = dlc_arena_copy(arena, LLVMGetBufferStart(work->results[k]), blobs[k].size_bytes);
        if (work->options->kind == DLC_EMIT_OBJECT)
            set_number(bytes, blobs[k].size_bytes, work->options->first + k);
        blobs[k].bytes = bytes;
        LLVMDisposeMemoryBuffer(work->results[k]);
    }
    return status;
}

dlc_status dlc_cpu_emit(const dlc_module *module, const dlc_emit_options *options, dlc_arena *arena, dlc_diag *diag,
                        dlc_blob **blobs, uint32_t *nblobs)
{
    DLC_TRY(dlc_llvm_open(diag));
    uint32_t n = module->kernels.n;
    int is_text = options->kind != DLC_EMIT_OBJECT && n;
    job work = {.module = module, .options = options, .nmodules = is_text ? 1 : n, .nkernels = is_text ? n : 1, .cache.folder = -1};
    if (!is_text)
        DLC_TRY(dlc_code_cache_open(&work.cache, diag));
    if (work.cache.folder >= 0)
        describe(&work.cache, module->target);
    work.results = dlc_new_array(arena, LLVMMemoryBufferRef, n);
    work.errors = dlc_new_array(arena, char *, n);
    *blobs = dlc_new_array(arena, dlc_blob, n);
    *nblobs = work.nmodules;
    run_workers(&work, options->njobs ? options->njobs : 1);
    dlc_code_cache_close(&work.cache);
    return collect(&work, arena, diag, *blobs);
}

dlc_status dlc_cpu_preload(dlc_diag *diag)
{
    return dlc_llvm_open(diag);
}

dlc_status dlc_cpu_version(const void *work, dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs, uint32_t *nblobs)
{
    unsigned major, minor, patch;
    (void)work;
    DLC_TRY(dlc_llvm_open(diag));
    LLVMGetVersion(&major, &minor, &patch);
    const char *text = dlc_arena_printf(arena, "%u.%u.%u", major, minor, patch);
    *blobs = dlc_new(arena, dlc_blob);
    **blobs = (dlc_blob){.bytes = text, .size_bytes = strlen(text) + 1};
    *nblobs = 1;
    return DLC_OK;
}
