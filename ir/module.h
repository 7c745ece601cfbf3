/*
 * A compiled graph before code: kernels with schedules, steps, and where every buffer lies. Made by passes/ (lower, choose,
 * plan_memory), consumed by codegen/ (kernels to code, steps to the executable's plan). One module per target.
 */
#ifndef DLC_IR_MODULE_H
#define DLC_IR_MODULE_H

#include "ir/graph/graph.h"
#include "ir/kernel/kernel.h"
#include "ir/schedule/schedule.h"

typedef enum { DLC_STEP_LAUNCH, DLC_STEP_OPAQUE, DLC_STEP_BIND } dlc_step_kind;

/* Where the bytes of a value are while the plan runs. */
typedef enum { DLC_STORE_NONE, DLC_STORE_ARENA, DLC_STORE_INPUT, DLC_STORE_OUTPUT, DLC_STORE_CONST } dlc_store;

typedef struct {
    uint8_t kind;         /* dlc_step_kind */
    uint32_t kernel;      /* LAUNCH: index into module->kernels */
    dlc_value **values;   /* LAUNCH: one per kernel buffer. OPAQUE: inputs then outputs of `node` */
    uint32_t nvalues;
    uint32_t *constants;  /* LAUNCH: per kernel buffer, index into module->constants for DLC_ROLE_CONST, else UINT32_MAX */
    dlc_expr *symbols;    /* LAUNCH: graph-pool expression per kernel symbol */
    uint32_t nsymbols;
    dlc_node *node;       /* OPAQUE: the node. BIND: NULL */
    uint32_t symbol;      /* BIND: graph symbol read from an element of a value (DLC_BIND_DATA) */
    const char *name;     /* for profiles and `inspect`: origin nodes joined by '+' */
    dlc_ids origin;       /* node ids of the whole group */
} dlc_step;

typedef struct {
    dlc_kernel *kernel;     /* equal kernels share one entry */
    dlc_schedule *schedule;
    uint64_t hash;
} dlc_module_kernel;

typedef struct {
    uint8_t store;       /* dlc_store */
    uint32_t index;      /* INPUT, OUTPUT: which; CONST: index into module->constants */
    dlc_expr offset;     /* ARENA: bytes, graph pool, multiple of 64 */
    dlc_expr size_bytes; /* in the value's layout */
} dlc_placement;

/* A constant as it lies in the executable: the value's tensor, in the layout its readers want. */
typedef struct {
    dlc_value *value;
    dlc_layout layout;   /* differs from row-major when a schedule packed it */
    size_t size_bytes;   /* in that layout */
    const void *bytes;   /* laid out already (borrowed when row-major) */
    uint64_t hash;
} dlc_module_constant;

typedef struct dlc_module {
    dlc_arena *arena;
    dlc_graph *graph;
    const dlc_target *target;
    dlc_vec(dlc_module_kernel) kernels;
    dlc_vec(dlc_step) steps;
    dlc_vec(dlc_module_constant) constants;
    dlc_placement *placements; /* by value id */
    dlc_expr arena_bytes;      /* graph pool */
} dlc_module;

#endif
