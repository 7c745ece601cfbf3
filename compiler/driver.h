/* The library's model, private to this folder. */
#ifndef DLC_COMPILER_DRIVER_H
#define DLC_COMPILER_DRIVER_H

#include "base/budget.h"
#include "base/file.h"
#include "compiler/options.h"
#include "dlc/dlc.h"
#include "frontend/onnx.h"
#include "passes/pass.h"
#include "runtime/strings.h"

#include <setjmp.h>

struct dlc_model {
    dlc_options options;
    const char *path;   /* NULL: from memory */
    dlc_arena *arena;   /* graph, module */
    dlc_arena *scratch; /* one pass */
    dlc_arena *notes;   /* messages and texts: outlives a lack of memory in the others */
    dlc_diag diag;
    dlc_map text; /* of a graph or module in text form */
    dlc_map schedules; /* of the options */
    dlc_onnx *onnx;
    dlc_graph *graph; /* NULL: a module in text form, which is ctx.module */
    const char *rest; /* of a module: the default passes behind the one that made it */
    int has_target;   /* one was asked for */
    dlc_pass_ctx ctx;
    int has_run;               /* the passes */
    dlc_status run_status;     /* what they ended in */
    dlc_str buffer;            /* the newest text */
    void *output_block;        /* outputs of the newest interpretation */
    dlcrt_strings strings;     /* that those point to */
    void (*see)(void *user, const dlc_watched *seen); /* what is interpreted; or NULL */
    void *see_user;
    struct dlc_model **others; /* the model once more for each further target */
    uint32_t nothers;
    jmp_buf *out_of_memory; /* of the innermost guard */
    uint32_t max_seconds; /* of each call */
    dlc_budget budget;    /* of all arenas but notes */
    uint32_t nlogged;     /* messages of diag that options.log has */
    char limit_text[400]; /* the message of running out of memory, "" when it did not happen */
    uint8_t is_limit_logged;
};

/*
 * Runs `body`; running out of memory beneath it ends there with DLC_LIMIT, and with what is found options.log is called. A guard
 * within another's body leaves the outer one as it was.
 */
typedef dlc_status (*dlc_model_body)(dlc_model *model, void *args);
DLC_NODISCARD dlc_status dlc_model_guard(dlc_model *model, dlc_model_body body, void *args);

/* Calls options.log with messages that it does not have; the status, for what returns one. */
DLC_NODISCARD dlc_status dlc_model_tell(dlc_model *model, dlc_status status);
/* dlc_model_may_write, told by the caller (compiler/apart.c); NULL: in memory. */
DLC_NODISCARD dlc_status dlc_model_check_apart(dlc_model *model, const char *path);
/* Refuses weights that have no place where the path's file is to be written (compiler/room.c); NULL: in memory. */
DLC_NODISCARD dlc_status dlc_model_check_room(dlc_model *model, const char *path);

/* Runs the passes of the options once; later calls repeat the status. */
DLC_NODISCARD dlc_status dlc_model_run_passes(dlc_model *model);

/* The model's i-th input or output, of its graph or else its module; NULL: there are fewer. Dimensions are of that one's pool. */
const dlc_type *dlc_model_input_type(const dlc_model *model, uint32_t i, const char **name);
const dlc_type *dlc_model_output_type(const dlc_model *model, uint32_t i, const char **name);
void dlc_model_type_print(const dlc_model *model, const dlc_type *type, dlc_str *out);
DLC_NODISCARD dlc_status dlc_model_needs_graph(dlc_model *model, const char *what); /* refuses `what` without one */

/* Texts (compiler/inspect.c, compiler/explain.c, compiler/draw.c), appended to model->buffer. */
DLC_NODISCARD dlc_status dlc_model_inspect(dlc_model *model, const char *format);
DLC_NODISCARD dlc_status dlc_model_explain(dlc_model *model, const char *format);
void dlc_model_draw_dot(dlc_model *model);

#endif
