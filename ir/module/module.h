/*
 * A compiled graph before code: kernels with schedules, steps that run them, and the values between the steps. Made by
 * `lower` from a graph, which it does not need from then on, or read from text (docs/ir.md); schedules and places are filled
 * in by further passes; consumed by codegen/ (kernels to code) and package/ (steps to the executable's plan). One per target.
 */
#ifndef DLC_IR_MODULE_MODULE_H
#define DLC_IR_MODULE_MODULE_H

#include "base/strings.h"
#include "ir/expr/property.h"
#include "ir/expr/tensor.h"
#include "ir/kernel/kernel.h"
#include "ir/schedule/schedule.h"

enum { DLC_NO_VALUE = 0xffffffffu, DLC_NO_SYMBOL = 0xffffffffu };

/* Where the bytes of a value are while the plan runs. */
typedef enum {
    DLC_VALUE_TEMP,   /* in the arena, where kernels run */
    DLC_VALUE_INPUT,  /* the caller's */
    DLC_VALUE_OUTPUT, /* the caller's; one step writes it, or several in parts */
    DLC_VALUE_CONST,  /* in the executable */
    DLC_VALUE_HOST    /* in host memory, when kernels run on a device: operands of steps in C */
} dlc_value_role;

/* How a constant's bytes follow from its origin's. */
typedef struct dlc_packing dlc_packing;

typedef struct {
    const char *name;   /* unique in the module */
    dlc_type type;      /* dims in the module's pool */
    dlc_layout layout;
    uint8_t role;       /* dlc_value_role */
    uint32_t index;     /* INPUT, OUTPUT: which */
    uint32_t origin;    /* the value it is another form of (CONST: packed for a kernel; HOST: copied), or DLC_NO_VALUE */
    uint32_t form;      /* CONST: the next other form of its origin (of the origin: the first), or DLC_NO_VALUE */
    dlc_tensor data;    /* CONST: bytes as they lie; NULL where `packing` makes them: see dlc_module_bytes */
    const dlc_packing *packing; /* CONST that is another form of its origin; else NULL */
    uint32_t whole;     /* with `skip`: the TEMP, or INPUT or OUTPUT of a CPU, that it lies in */
    dlc_expr skip;      /* TEMP: the bytes of `whole` before it, which may change from step to step; 0: it lies in none */
    dlc_expr offset;    /* TEMP, HOST: bytes, a multiple of 64, from plan_memory on; 0: no place, or `whole` has it */
} dlc_module_value;

/* A size that a run finds out. INPUT_DIM: dimension `index` of input number `input`; others are bound by a step. */
typedef struct {
    const char *name;
    int64_t lo, hi; /* inclusive */
    int64_t usual;  /* what it mostly is, for choices and estimates alone; 0: nobody knows */
    uint8_t bind;   /* dlc_bind */
    uint32_t input, index;
} dlc_module_symbol;

typedef struct {
    const char *name; /* the model's */
    uint32_t value;
} dlc_module_output;

/* IF … ELSE … END and LOOP … END stand in pairs, nested; the steps between run as `size` says. */
typedef enum {
    DLC_STEP_LAUNCH, DLC_STEP_OPAQUE, DLC_STEP_BIND, DLC_STEP_COPY, DLC_STEP_SET, DLC_STEP_IF, DLC_STEP_ELSE, DLC_STEP_LOOP,
    DLC_STEP_END
} dlc_step_kind;
enum { DLC_MAX_STEP_ATTRS = 4 };

typedef struct {
    uint8_t kind;         /* dlc_step_kind */
    uint8_t opaque;       /* OPAQUE: dlc_opaque, the row of dlc/opaque.def */
    uint8_t nattrs;       /* OPAQUE: in that row's order; BIND: one, the element */
    uint32_t kernel;      /* LAUNCH: index into module->kernels */
    uint32_t *values;     /* LAUNCH: one per kernel buffer. OPAQUE: inputs then outputs, as the row has them. BIND: the value
                             read. COPY: from, to, of one size, or a part of it */
    uint32_t nvalues;
    dlc_expr *symbols;    /* LAUNCH: module-pool expression per kernel symbol */
    uint32_t nsymbols;
    uint32_t symbol;      /* BIND, SET; OPAQUE that finds out a size: the module's symbol; else DLC_NO_SYMBOL */
    dlc_expr size;        /* SET: what the symbol becomes. IF, LOOP: a bool. COPY: bytes before what is written; 0: none */
    int64_t attrs[DLC_MAX_STEP_ATTRS];
    const char *name;     /* for profiles and messages: its nodes joined by '+'; BIND: the symbol's */
    const char **nodes;   /* names of the model's nodes that it computes, in their order */
    uint32_t nnodes;
} dlc_step;

typedef struct {
    dlc_kernel *kernel;     /* equal kernels share one entry */
    dlc_schedule *schedule; /* NULL before `choose` */
    uint64_t hash;
} dlc_module_kernel;

typedef struct dlc_module {
    dlc_arena *arena;
    const char *file; /* for messages */
    const char *name;
    dlc_properties properties; /* not part of the text form */
    dlc_strings strings;       /* that constants hold */
    const dlc_target *target;
    dlc_pool *pool;   /* sizes */
    dlc_vec(dlc_module_symbol) symbols;
    dlc_vec(dlc_condition) conditions;
    dlc_vec(dlc_module_value) values;
    dlc_ids inputs;   /* values, in the model's order */
    dlc_vec(dlc_module_output) outputs;
    dlc_vec(dlc_module_kernel) kernels;
    dlc_vec(dlc_step) steps;
    dlc_expr arena_bytes, host_bytes; /* from plan_memory on; 0: not planned */
    const char *after; /* the pass that was here last */
    uint32_t *names;  /* values by name, and kernels by hash: open addressing, index + 1 */
    uint32_t nnames;
    uint32_t *shared;
    uint32_t nshared;
} dlc_module;

dlc_module *dlc_module_create(dlc_arena *arena, const dlc_target *target, const char *file, const char *name);
/* Appends a copy of *value (its inputs and outputs are listed by the caller); a name that is taken gets a suffix. */
uint32_t dlc_module_add_value(dlc_module *module, const dlc_module_value *value);
uint32_t dlc_module_find_value(const dlc_module *module, const char *name); /* or DLC_NO_VALUE */
static inline dlc_module_value *dlc_module_value_of(const dlc_module *module, uint32_t value)
{
    return &module->values.data[value];
}
/* The value whose bytes it is: itself, or the one that it lies in. */
static inline uint32_t dlc_module_place_of(const dlc_module *module, uint32_t value)
{
    return module->values.data[value].skip ? module->values.data[value].whole : value;
}
/* Makes the value the next input; an output called `name`. */
void dlc_module_input(dlc_module *module, uint32_t value);
void dlc_module_output_add(dlc_module *module, const char *name, uint32_t value);
enum { DLC_PLACE_ALIGN = 64 }; /* bytes: of every place in memory that a step is given */
dlc_expr dlc_module_value_bytes(const dlc_module *module, uint32_t value); /* in its layout */
int dlc_module_is_row_major(const dlc_module_value *value);
dlc_ranges dlc_module_ranges(const dlc_module *module); /* of its symbols */
/* When each symbol is known, by symbol: 0 with the inputs, else the phase it begins; on every way through the steps phases follow each
 * other in this order, but where a loop goes back. UINT32_MAX: no step binds it. *nphases counts them all. */
uint32_t *dlc_module_phases(const dlc_module *module, uint32_t *nphases, dlc_arena *arena);
/* Values for the symbols: `wanted` where their ranges allow it, else what is next to it. */
int64_t *dlc_module_symbol_values(const dlc_module *module, int64_t wanted, dlc_arena *arena);
/* The usual ones; `otherwise` where nobody knows. */
int64_t *dlc_module_usual_values(const dlc_module *module, int64_t otherwise, dlc_arena *arena);

/* Whether the step writes its i-th value. */
int dlc_step_writes(const dlc_module *module, const dlc_step *step, uint32_t i);
/* Whether it is C on the host, wherever kernels run. */
int dlc_step_is_on_host(const dlc_step *step);
/* Sets name and nodes; equal names one behind the other count once, and what would fill a line is cut. */
void dlc_step_set_nodes(dlc_module *module, dlc_step *step, const char *const *nodes, uint32_t n);

/*
 * The constant in the form a kernel's buffer wants: `buffer` (of `pool`) has its elements row-major in another shape, and a
 * layout that says where each goes. The value itself where the layout is plain; each other form is made once.
 */
uint32_t dlc_module_pack(dlc_module *module, uint32_t value, const dlc_pool *pool, const dlc_buffer *buffer);

/* Bytes [first_byte, first_byte + size_bytes), whole elements, of what the packing makes; and whether two make the same. */
void dlc_packing_put(const dlc_packing *packing, size_t first_byte, size_t size_bytes, void *bytes);
int dlc_packing_equal(const dlc_packing *a, const dlc_packing *b);
uint64_t dlc_packing_hash(const dlc_packing *packing, uint64_t seed); /* the same for equal ones */
/* A constant's bytes as they lie; those of a form are made at the first call and kept in the module's arena. */
const void *dlc_module_bytes(const dlc_module *module, uint32_t value);

/* Says how the data of a constant that is not in the module yet follow from its origin's; false: that one has other elements. */
int dlc_module_lay_out(dlc_module *module, dlc_module_value *value);
/* The value, whose origin is stated, is found from now on. */
void dlc_module_add_form(dlc_module *module, uint32_t value);

/* The kernel's entry: an equal one, or a new one. */
uint32_t dlc_module_add_kernel(dlc_module *module, dlc_kernel *kernel);

/* Kernels that no step launches any more; numbers change. */
void dlc_module_drop_kernels(dlc_module *module);

/* Counts, types, order: every step fits its kernel and reads what is there; sizes are bound before they are used. `wrong`: what
 * it is when not, DLC_INTERNAL behind a pass, DLC_INVALID in a text. */
DLC_NODISCARD dlc_status dlc_module_verify(const dlc_module *module, dlc_status wrong, dlc_diag *diag);

void dlc_module_size_print(const dlc_module *module, dlc_expr size, dlc_str *out);
void dlc_module_type_print(const dlc_module *module, const dlc_type *type, dlc_str *out);

/* Text form, both ways (docs/ir.md): all there is but the bytes of large constants. */
void dlc_module_print(const dlc_module *module, dlc_str *out);
DLC_NODISCARD dlc_status dlc_module_parse(const char *text, const char *file, dlc_arena *arena, dlc_diag *diag,
                                          dlc_module **result);

#endif
