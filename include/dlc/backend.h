/*
 * Targets as plug-ins. A back end outside dlc is a shared library that exports
 *
 *     const dlc_backend_plugin *dlc_backend_get(void);
 *
 * and is used as `dlc compile model.onnx --target ./mine.so --emit c`. It links against nothing of
 * dlc: all it may call comes in the table it is handed. docs/add-a-target.md leads through
 * examples/backend, which makes C99 for machines without an operating system.
 *
 * What it is given is a compiled model before code: values and where they lie, kernels as equations
 * over axes, and steps that run kernels over values. It says what is computed and when, and nothing
 * of how: a back end emits each kernel as it likes. Names of operators, reductions and dtypes are
 * those of docs/ir.md. All strings and arrays live until `write` returns.
 *
 * An expression is a number within its kernel, 0 none. Operands have lower numbers than their
 * users, so walking numbers upwards meets operands first. Elementary functions (exp, tanh, …) have
 * been replaced by arithmetic: no mathematical library is needed.
 */
#ifndef DLC_BACKEND_H
#define DLC_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "dlc/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DLC_BACKEND_VERSION 1
#define DLC_BACKEND_NONE UINT32_MAX
enum { DLC_BACKEND_RANK = 8 };

typedef struct dlc_backend_module dlc_backend_module;
typedef struct dlc_backend_output dlc_backend_output;

typedef enum {
    DLC_BACKEND_TEMP,   /* in the arena */
    DLC_BACKEND_INPUT,  /* the caller's, `index` of the model's inputs */
    DLC_BACKEND_OUTPUT, /* the caller's */
    DLC_BACKEND_CONST   /* `data` */
} dlc_backend_role;

typedef struct {
    const char *name; /* the model's, any characters */
    dlc_dtype dtype;
    uint32_t rank;
    int64_t dims[DLC_BACKEND_RANK]; /* logical shape; -1: known at run time only */
    dlc_backend_role role;
    uint32_t index; /* INPUT, OUTPUT: which */
    int64_t offset; /* TEMP: bytes from the arena's start, a multiple of 64; -1: known at run time
                       only */
    int64_t size_bytes; /* as it lies in memory, padding included; -1 likewise */
    const void *data;   /* CONST: little-endian */
} dlc_backend_value;

/* A loop variable of a kernel, from 0 up to its extent. */
typedef struct {
    const char *name;
    int64_t extent; /* -1: known at run time only */
} dlc_backend_axis;

/* An argument of a kernel: elements of one dtype, addressed by element offsets. */
typedef struct {
    const char *name;
    dlc_dtype dtype;
    dlc_backend_role role; /* INPUT: read, CONST: read, OUTPUT: written */
} dlc_backend_buffer;

/*
 * An equation: at every point of `axes`, name = fold over `reduce` of value, or value itself.
 * Stages are in order; one may load those before it and, at earlier points of an axis (a
 * recurrence), itself and later ones.
 */
typedef struct {
    const char *name;
    uint32_t naxes, nreduce;
    const uint32_t *axes, *reduce; /* numbers of axes, outermost first */
    const char *combine; /* "none", "sum", "prod", "min", "max", "any", "all", "argmin", "argmax",
                            "argmin_last", "argmax_last" */
    uint32_t naccs;      /* accumulators: 2 for arg…: the key, and its index as i64 */
    uint32_t value[2];
    dlc_dtype dtype[2];
    uint32_t buffer;    /* where results are stored, too; DLC_BACKEND_NONE: nowhere */
    uint32_t second;    /* the second accumulator is what is stored */
    uint32_t offset;    /* expression: the element of the buffer */
    const char *update; /* "none", or how a result joins what lies there: "set", "sum", "prod",
                           "min", "max", in order of the axes */
} dlc_backend_stage;

/* op "const": i or f. "axis", "sym": id. "load": of buffer `id` at element `offset`, or of stage
 * `id` at args[0 … nindices), one for each of its axes; where `guard` is given and false the value
 * is `otherwise`, or 0, and nothing is read; `second`: its second accumulator; `checked`: data may
 * lead outside, then the value is the same and the run must fail. */
typedef struct {
    const char *op;
    dlc_dtype dtype;
    uint32_t nargs;
    const uint32_t *args;
    int64_t i;
    double f;
    uint32_t id;
    uint8_t of_stage, second, checked;
    uint32_t nindices, guard, otherwise, offset,
        inside; /* inside: of checked loads, whether the indices are in the source's dimensions */
} dlc_backend_expr;

/* kind "launch": `kernel` over values, one for each of its buffers. "copy": values[1] := values[0].
 * Any other name: a step that is no equation (sort, topk, …), inputs then outputs. */
typedef struct {
    const char *kind;
    const char *name; /* of the model's nodes */
    uint32_t kernel;
    uint32_t nvalues;
    const uint32_t *values;
} dlc_backend_step;

typedef struct {
    uint32_t version; /* DLC_BACKEND_VERSION of the compiler; functions are only added at the end */

    const char *(*identifier)(
        const dlc_backend_module *module); /* C identifier: --name, or from the output's name */
    const char *(*model)(const dlc_backend_module *module);
    int64_t (*arena_bytes)(const dlc_backend_module *module); /* -1: known at run time only */
    uint32_t (*value_count)(const dlc_backend_module *module);
    void (*value)(const dlc_backend_module *module, uint32_t value, dlc_backend_value *result);
    uint32_t (*input_count)(const dlc_backend_module *module);
    uint32_t (*input)(const dlc_backend_module *module, uint32_t i); /* its value */
    uint32_t (*output_count)(const dlc_backend_module *module);
    uint32_t (*output)(const dlc_backend_module *module, uint32_t i, const char **name);
    uint32_t (*step_count)(const dlc_backend_module *module);
    void (*step)(const dlc_backend_module *module, uint32_t step, dlc_backend_step *result);

    uint32_t (*kernel_count)(const dlc_backend_module *module); /* equal ones count once */
    const char *(*kernel_name)(const dlc_backend_module *module, uint32_t kernel);
    uint32_t (*axis_count)(const dlc_backend_module *module, uint32_t kernel);
    void (*axis)(const dlc_backend_module *module, uint32_t kernel, uint32_t axis,
                 dlc_backend_axis *result);
    uint32_t (*buffer_count)(const dlc_backend_module *module, uint32_t kernel);
    void (*buffer)(const dlc_backend_module *module, uint32_t kernel, uint32_t buffer,
                   dlc_backend_buffer *result);
    uint32_t (*stage_count)(const dlc_backend_module *module, uint32_t kernel);
    void (*stage)(const dlc_backend_module *module, uint32_t kernel, uint32_t stage,
                  dlc_backend_stage *result);
    uint32_t (*expr_count)(const dlc_backend_module *module,
                           uint32_t kernel); /* numbers 1 … count - 1 */
    void (*expr)(const dlc_backend_module *module, uint32_t kernel, uint32_t expr,
                 dlc_backend_expr *result);
    /* The interval of an i64 expression, from the extents of the axes. */
    void (*range)(const dlc_backend_module *module, uint32_t kernel, uint32_t expr, int64_t *lo,
                  int64_t *hi);

    void (*print)(dlc_backend_output *output, const char *format, ...);
    /* The compilation ends with this sentence: what was found, what is possible. Nothing is
     * written. */
    void (*refuse)(dlc_backend_module *module, const char *format, ...);
} dlc_backend_api;

/* A kind of file: `--emit text`. */
typedef struct {
    const char *text; /* also the ending of the file's name */
    const char *help;
    void (*write)(const dlc_backend_api *api, dlc_backend_module *module,
                  dlc_backend_output *output);
} dlc_backend_form;

typedef struct {
    uint32_t version;                        /* DLC_BACKEND_VERSION the plug-in was built with */
    const char *help;                        /* a line about the target */
    uint32_t vector_bytes, vector_registers; /* what fusion and layouts assume: at least 16 */
    uint32_t l1_bytes, l2_bytes;
    uint32_t nforms;
    const dlc_backend_form *forms;
} dlc_backend_plugin;

/* What a plug-in defines. */
#ifdef __GNUC__
__attribute__((visibility("default")))
#endif
const dlc_backend_plugin *
dlc_backend_get(void);

#ifdef __cplusplus
}
#endif

#endif
