/* How the kernels of one kind of target become code: a row for each of backends.def. What writes
 * files (executable.c) asks the row and knows no kind. */
#ifndef DLC_PACKAGE_BACKEND_H
#define DLC_PACKAGE_BACKEND_H

#include "base/file.h"
#include "package/child.h"
#include "package/plan.h"

typedef struct dlc_backend dlc_backend;

/* A module on its way into a file. */
typedef struct {
    const dlc_module *module;
    const dlc_backend *backend;
    dlc_vec(int) archs; /* compute capabilities of CUDA, ascending */
    dlc_emit_options emit;
    const void *prepared; /* the row's own */
    dlc_child_code code;
    dlc_plan_cuda cuda; /* what the plan says of its kernels */
    dlc_blob plan;
} dlc_part;

/* What a launch takes on a device, and what bounds it, as predicted. */
typedef struct {
    const char *device, *bound;
    double us;
} dlc_kernel_price;

/* What one kernel costs on the target, where that is known; -1: unknown. */
typedef struct {
    uint32_t threads, units_per_block, registers, frame_bytes, blocks, nprices;
    int64_t shared_bytes, code_bytes;
    const dlc_kernel_price *prices; /* of devices that run the target's code */
} dlc_kernel_cost;

typedef struct {
    dlc_artifact artifact;
    dlc_status (*write)(dlc_part *part, dlc_output *output, dlc_arena *arena, dlc_diag *diag);
} dlc_text_form;

struct dlc_backend {
    uint8_t emulated;    /* code of this machine's processor for a target that is another */
    uint8_t is_function; /* kernels are functions of the file; else binaries that it carries */
    const dlc_text_form *texts;
    uint32_t ntexts;

    /* What the code is made from, before plans are laid out. NULL: the module is enough. */
    dlc_status (*prepare)(dlc_part *part, dlc_arena *arena, dlc_diag *diag);
    /* Both came to the same kernels, whose code then stands once. NULL: never. */
    int (*is_same)(const dlc_part *a, const dlc_part *b);
    /* The code, in a child process: a dlc_child_body over the part. is_function: blobs are objects
     * of functions dlc_k<number>. */
    dlc_child_body emit;
    /* What was emitted joins the file's binaries. NULL: is_function. */
    dlc_status (*take)(dlc_part *part, dlc_pieces *binaries, dlc_arena *arena, dlc_diag *diag);
    /* dlc_arch of the functions; -1: there are none. */
    int (*arch)(const dlc_part *part);

    /* A line for `dlc targets`. NULL: nothing to say. */
    void (*describe)(const dlc_target *target, char *text, size_t size_bytes);
    /* Costs by kernel of the module, for `dlc inspect`; a message where a part of them, the prices, is not known. NULL: none are. */
    dlc_status (*report)(const dlc_module *module, uint32_t njobs, dlc_arena *arena, dlc_diag *diag,
                         dlc_kernel_cost **costs);
};

/* The row for a target, or for its emulation on this machine; NULL: there is none. */
const dlc_backend *dlc_backend_of(const dlc_target *target, int emulated);
/* Texts apart, every row has every artifact. */
int dlc_backend_has(const dlc_backend *backend, dlc_artifact artifact);
/* "so", …; and the row called `text`, DLC_ARTIFACT_COUNT: none. */
const char *dlc_artifact_text(dlc_artifact artifact);
dlc_artifact dlc_artifact_find(const char *text);

/* "there are so, o, a, h, ll and asm": of a row, or with NULL all. */
void dlc_artifact_list(const dlc_backend *backend, dlc_str *out);

#endif
