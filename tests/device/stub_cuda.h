/* What tests ask of the stub driver; found in the library that the runtime opened, by dlsym. */
#ifndef DLC_TESTS_STUB_CUDA_H
#define DLC_TESTS_STUB_CUDA_H

#include <stdint.h>

enum { STUB_UNKNOWN = 999, STUB_PARAMETERS = 64 };

/* What kernels are: how many 8-byte parameters the one of an image has, and what its launch does. */
typedef struct {
    unsigned (*nparameters)(const void *image);
    void (*launch)(const void *image, const uint64_t *parameters, unsigned nblocks);
} stub_kernels;

typedef struct {
    void (*fail_call)(const char *symbol, unsigned nth); /* the nth call from now on fails, once; NULL: none does */
    int (*has_failed)(void);
    unsigned (*calls)(const char *symbol); /* so far */
    int (*nlive)(void);                    /* allocations, modules, streams, graphs, contexts held and pushed */
    void (*set_device)(int count, int capability);
    void (*set_version)(int version); /* 12040: CUDA 12.4 */
    void (*set_kernels)(const stub_kernels *kernels);
    const void *(*newest_image)(void);     /* that a module was made of */
} stub_control;

#endif
