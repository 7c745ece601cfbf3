/*
 * NVRTC through dlopen: thirteen functions, declared here because neither building nor CPU use may need CUDA.
 */
#include "codegen/ptx/nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nvrtc_program *program;

struct dlc_nvrtc {
    void *library;
    char path[512];
    int version;
    int archs[64];
    uint32_t narchs;
    const char *(*error_string)(int result);
    int (*get_version)(int *major, int *minor);
    int (*get_num_archs)(int *n);
    int (*get_archs)(int *archs);
    int (*create)(program *program, const char *source, const char *name, int nheaders, const char *const *headers,
                  const char *const *names);
    int (*destroy)(program *program);
    int (*compile)(program program, int noptions, const char *const *options);
    int (*log_size)(program program, size_t *bytes);
    int (*log)(program program, char *text);
    int (*cubin_size)(program program, size_t *bytes);
    int (*cubin)(program program, char *bytes);
    int (*ptx_size)(program program, size_t *bytes);
    int (*ptx)(program program, char *bytes);
};

static struct dlc_nvrtc nvrtc;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define FUNCTION(symbol, field) {symbol, offsetof(struct dlc_nvrtc, field)}
    FUNCTION("nvrtcGetErrorString", error_string), FUNCTION("nvrtcVersion", get_version),
    FUNCTION("nvrtcGetNumSupportedArchs", get_num_archs), FUNCTION("nvrtcGetSupportedArchs", get_archs),
    FUNCTION("nvrtcCreateProgram", create), FUNCTION("nvrtcDestroyProgram", destroy),
    FUNCTION("nvrtcCompileProgram", compile), FUNCTION("nvrtcGetProgramLogSize", log_size),
    FUNCTION("nvrtcGetProgramLog", log), FUNCTION("nvrtcGetCUBINSize", cubin_size), FUNCTION("nvrtcGetCUBIN", cubin),
    FUNCTION("nvrtcGetPTXSize", ptx_size), FUNCTION("nvrtcGetPTX", ptx),
#undef FUNCTION
};

static int resolve(void)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *address = dlsym(nvrtc.library, functions[i].name);
        if (!address)
            return 0;
        memcpy((char *)&nvrtc + functions[i].offset, &address, sizeof address);
    }
    return 1;
}

/* The library's other half, opened by its bare name at the first compilation: loaded already, it is found wherever it lies. */
static void load_builtins(const char *path)
{
    const char *slash = strrchr(path, '/');
    char pattern[1024];
    glob_t matches;
    if (!slash || snprintf(pattern, sizeof pattern, "%.*s/libnvrtc-builtins.so.*", (int)(slash - path), path) >=
                      (int)sizeof pattern)
        return;
    if (glob(pattern, 0, NULL, &matches))
        return;
    for (size_t i = 0; i < matches.gl_pathc; i++)
        (void)dlopen(matches.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&matches);
}

static int try_library(const char *path)
{
    nvrtc.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!nvrtc.library)
        return 0;
    load_builtins(path);
    int major = 0, minor = 0, n = 0;
    if (!resolve() || nvrtc.get_version(&major, &minor) || nvrtc.get_num_archs(&n) || n < 1 || n > 64 ||
        nvrtc.get_archs(nvrtc.archs)) {
        dlclose(nvrtc.library);
        nvrtc.library = NULL;
        return 0;
    }
    nvrtc.version = major * 100 + minor;
    nvrtc.narchs = (uint32_t)n;
    snprintf(nvrtc.path, sizeof nvrtc.path, "%s", path);
    return 1;
}

/* The last match is the newest version. */
static int try_pattern(const char *prefix, const char *pattern)
{
    char full[1024];
    glob_t matches;
    int found = 0;
    if (!prefix || snprintf(full, sizeof full, "%s%s", prefix, pattern) >= (int)sizeof full)
        return 0;
    if (glob(full, 0, NULL, &matches))
        return 0;
    for (size_t i = matches.gl_pathc; i-- > 0 && !found;)
        found = try_library(matches.gl_pathv[i]);
    globfree(&matches);
    return found;
}

/* Machine code of CUDA 12 runs on drivers of two major versions, that of CUDA 13 on one. Debian's own Python has
 * dist-packages. */
static int try_python(const char *prefix)
{
    static const char *const packages[] = {"cuda_nvrtc/lib/libnvrtc.so.12", "cu12/lib/libnvrtc.so.12",
                                           "cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.13"};
    char pattern[128];
    int found = 0;
    for (size_t i = 0; !found && i < sizeof packages / sizeof *packages; i++) {
        snprintf(pattern, sizeof pattern, "/lib*/python3*/*-packages/nvidia/%s", packages[i]);
        found = try_pattern(prefix, pattern);
    }
    return found;
}

static void search(void)
{
    const char *wanted = getenv("DLC_NVRTC"), *home = getenv("HOME");
    char local[512];
    if (wanted && *wanted) { /* what was named, or nothing: never another one in silence */
        if (!try_library(wanted) && !try_pattern(wanted, "/libnvrtc.so.12"))
            (void)try_pattern(wanted, "/libnvrtc.so.13");
        return;
    }
    if (try_library("libnvrtc.so.12") || try_library("libnvrtc.so.13"))
        return;
    if (try_pattern("", "/usr/local/cuda*/lib64/libnvrtc.so.12") || try_pattern("", "/usr/local/cuda*/lib64/libnvrtc.so.13") ||
        try_python(getenv("VIRTUAL_ENV")) || try_python(getenv("CONDA_PREFIX")))
        return;
    if (home && snprintf(local, sizeof local, "%s/.local", home) < (int)sizeof local && try_python(local))
        return;
    (void)(try_python("/usr") || try_python("/usr/local"));
}

dlc_status dlc_nvrtc_open(dlc_diag *diag, const dlc_nvrtc **result)
{
    pthread_once(&once, search);
    if (!nvrtc.library)
        return dlc_diag_fail(diag, DLC_NO_DEVICE, NULL,
                             "CUDA targets need NVRTC (libnvrtc.so.12 or .13), which was not found; "
                             "`pip install nvidia-cuda-nvrtc-cu12` or a CUDA toolkit brings it, DLC_NVRTC names its folder");
    *result = &nvrtc;
    return DLC_OK;
}

const char *dlc_nvrtc_path(const dlc_nvrtc *opened)
{
    return opened->path;
}

int dlc_nvrtc_version(const dlc_nvrtc *opened)
{
    return opened->version;
}

const int *dlc_nvrtc_archs(const dlc_nvrtc *opened, uint32_t *n)
{
    *n = opened->narchs;
    return opened->archs;
}

static const char *log_of(const dlc_nvrtc *n, program compiled, dlc_arena *arena)
{
    size_t bytes = 0;
    if (n->log_size(compiled, &bytes) || bytes < 2)
        return "no log";
    char *text = dlc_arena_alloc(arena, bytes + 1, 1);
    return n->log(compiled, text) ? "no log" : text;
}

static int take_cubin(const dlc_nvrtc *n, program compiled, dlc_arena *arena, dlc_nvrtc_code *code)
{
    int failed = n->cubin_size(compiled, &code->cubin_bytes);
    if (failed)
        return failed;
    char *copy = dlc_arena_alloc(arena, code->cubin_bytes, 16);
    code->cubin = copy;
    return n->cubin(compiled, copy);
}

static int take_ptx(const dlc_nvrtc *n, program compiled, dlc_arena *arena, dlc_nvrtc_code *code)
{
    int failed = n->ptx_size(compiled, &code->ptx_bytes);
    if (failed)
        return failed;
    char *copy = dlc_arena_alloc(arena, code->ptx_bytes, 16);
    code->ptx = copy;
    return n->ptx(compiled, copy);
}

enum { KNOWS_MINIMAL = 1204 }; /* the version from which on --minimal is an option: it leaves out what needs CUDA's headers */

/* target: "sm_80" for both, "compute_80" for PTX alone. */
static dlc_status build(const dlc_nvrtc *n, const char *source, const char *name, const char *target, int cubin,
                        dlc_arena *arena, dlc_diag *diag, dlc_nvrtc_code *code)
{
    const char *const options[] = {dlc_arena_printf(arena, "-arch=%s", target), "-fmad=false", "-prec-div=true",
                                   "-prec-sqrt=true", "-ftz=false", "-default-device", "-w", "--minimal"};
    int noptions = (int)(sizeof options / sizeof *options) - (n->version < KNOWS_MINIMAL);
    program compiled = NULL;
    int result = n->create(&compiled, source, name, 0, NULL, NULL);
    if (!result)
        result = n->compile(compiled, noptions, options);
    if (!result && cubin)
        result = take_cubin(n, compiled, arena, code);
    if (!result)
        result = take_ptx(n, compiled, arena, code);
    dlc_status status = DLC_OK;
    if (result) {
        status = dlc_diag_fail(diag, DLC_INTERNAL, name, "NVRTC %d.%d for %s: %s", n->version / 100, n->version % 100,
                               target, n->error_string(result));
        if (compiled)
            dlc_diag_detail(diag, "%s", log_of(n, compiled, arena));
    }
    if (compiled)
        n->destroy(&compiled);
    return status;
}

dlc_status dlc_nvrtc_compile_both(const dlc_nvrtc *n, const char *source, const char *name, int arch, dlc_arena *arena,
                                  dlc_diag *diag, dlc_nvrtc_code *code)
{
    return build(n, source, name, dlc_arena_printf(arena, "sm_%d", arch), 1, arena, diag, code);
}

dlc_status dlc_nvrtc_compile(const dlc_nvrtc *n, const char *source, const char *name, int arch, int ptx, dlc_arena *arena,
                             dlc_diag *diag, const void **bytes, size_t *size_bytes)
{
    dlc_nvrtc_code code;
    const char *target = dlc_arena_printf(arena, "%s_%d", ptx ? "compute" : "sm", arch);
    DLC_TRY(build(n, source, name, target, !ptx, arena, diag, &code));
    *bytes = ptx ? code.ptx : code.cubin;
    *size_bytes = ptx ? code.ptx_bytes : code.cubin_bytes;
    return DLC_OK;
}
