/* What tests and scripts ask of the virtual GPU's driver; found in the library that was opened, by
 * dlsym("vgpu"). */
#ifndef DLC_VGPU_CONTROL_H
#define DLC_VGPU_CONTROL_H

#include <stdint.h>

enum { VGPU_UNKNOWN = 999, VGPU_MAX_PARAMETERS = 64 };

/* Kernels of a test's own: how many 8-byte parameters the one of an image has, and what its launch
 * does. */
typedef struct {
    unsigned (*nparameters)(const void *image);
    void (*launch)(const void *image, const uint64_t *parameters, unsigned nblocks);
} vgpu_kernels;

typedef struct {
    void (*fail_call)(const char *symbol,
                      unsigned nth); /* the nth call from now on fails, once; NULL: none does */
    int (*has_failed)(void);
    unsigned (*calls)(const char *symbol); /* so far */
    int (*nlive)(
        void); /* allocations, modules, streams, events, graphs, contexts held and pushed */
    void (*set_device)(int count, int capability);
    void (*set_version)(int version); /* 12040: CUDA 12.4 */
    /* Images are any bytes and memory is the process's: for kernels of a test's own. Before
     * anything is allocated. */
    void (*set_opaque)(void);
    void (*set_kernels)(const vgpu_kernels *kernels);
    const void *(*newest_image)(void);   /* that a module was made of */
    const char *(*fault)(void);          /* what ended the last launch that failed, or "" */
    void (*set_order)(int is_backwards); /* of blocks and warps */
    void (*set_limit)(uint64_t instructions); /* of a warp in a launch, which else has timed out */
    int (*write_report)(
        const char *path); /* what was launched, counted and predicted; 0: could not */
} vgpu_control;

#endif
