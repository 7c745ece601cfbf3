/* An NVRTC that goes wrong: WRONG says how. What else there is comes from the one whose name is REAL_NVRTC. */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct real_program *program;

static void *real(const char *name)
{
    static void *library;
    if (!library)
        library = dlopen(getenv("REAL_NVRTC"), RTLD_NOW);
    return library ? dlsym(library, name) : NULL;
}

static int is_wrong(const char *how)
{
    const char *wanted = getenv("WRONG");
    return wanted && !strcmp(wanted, how);
}

#define PASS(result, name, parameters, arguments)                      \
    result name parameters                                             \
    {                                                                  \
        result(*function) parameters;                                  \
        void *address = real(#name);                                   \
        memcpy(&function, &address, sizeof address);                   \
        return function arguments;                                     \
    }
PASS(const char *, nvrtcGetErrorString, (int code), (code))
PASS(int, nvrtcVersion, (int *major, int *minor), (major, minor))
PASS(int, nvrtcGetNumSupportedArchs, (int *n), (n))
PASS(int, nvrtcGetSupportedArchs, (int *archs), (archs))
PASS(int, nvrtcCreateProgram,
     (program * made, const char *source, const char *name, int n, const char *const *headers, const char *const *names),
     (made, source, name, n, headers, names))
PASS(int, nvrtcDestroyProgram, (program * made), (made))
PASS(int, nvrtcGetProgramLogSize, (program made, size_t *bytes), (made, bytes))
PASS(int, nvrtcGetProgramLog, (program made, char *text), (made, text))
PASS(int, nvrtcGetCUBINSize, (program made, size_t *bytes), (made, bytes))
PASS(int, nvrtcGetCUBIN, (program made, char *bytes), (made, bytes))
PASS(int, nvrtcGetPTXSize, (program made, size_t *bytes), (made, bytes))

int nvrtcCompileProgram(program made, int n, const char *const *options)
{
    int (*function)(program, int, const char *const *);
    void *address = real("nvrtcCompileProgram");
    memcpy(&function, &address, sizeof address);
    if (is_wrong("crash"))
        raise(SIGSEGV);
    while (is_wrong("slow"))
        sleep(1);
    while (is_wrong("large")) {
        volatile char *bytes = malloc(1 << 24);
        if (!bytes)
            abort();
        bytes[0] = 1;
    }
    return function(made, n, options);
}

int nvrtcGetPTX(program made, char *bytes)
{
    int (*function)(program, char *);
    size_t n = 0;
    void *address = real("nvrtcGetPTX");
    memcpy(&function, &address, sizeof address);
    int result = function(made, bytes);
    if (is_wrong("text") && !nvrtcGetPTXSize(made, &n))
        memset(bytes, '?', n - 1);
    return result;
}
