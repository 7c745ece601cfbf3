/* What tests ask of the stub driver; found in the library that the runtime opened, by dlsym. */
#ifndef DLC_TESTS_STUB_CUDA_H
#define DLC_TESTS_STUB_CUDA_H

#include <stdint.h>

enum { STUB_UNKNOWN = 999, STUB_PARAMETERS = 16 };

/* What a launch does. parameters: copies of the kernel's 8-byte parameters. */
typedef void (*stub_kernel)(const uint64_t *parameters, unsigned nblocks);

typedef struct {
    void (*fail_call)(const char *symbol, unsigned nth); /* the nth call from now on fails, once; NULL: none does */
    int (*has_failed)(void);
    unsigned (*calls)(const char *symbol); /* so far */
    int (*nlive)(void);                    /* allocations, modules, streams, graphs, contexts held and pushed */
    void (*set_device)(int count, int capability);
    void (*set_kernel)(stub_kernel kernel, unsigned nparameters);
    const void *(*newest_image)(void);     /* that a module was made of */
} stub_control;

#endif
