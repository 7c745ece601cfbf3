/* Between the files that make a module of groups: lower.c, lower_regions.c for branches and loops, and lower_module.c for both. */
#ifndef DLC_PASSES_LOWER_LOWER_MODULE_H
#define DLC_PASSES_LOWER_LOWER_MODULE_H

#include "ir/module/module.h"
#include "passes/pass.h"

typedef struct {
    dlc_pass_ctx *ctx;
    dlc_module *module;
    dlc_arena *group;   /* of one group */
    uint32_t *value_of; /* by id of the graph's value: the module's + 1; 0: none yet */
} dlc_lowering;

uint32_t dlc_lowering_value(dlc_lowering *b, const dlc_value *value);
dlc_expr dlc_lowering_size(dlc_lowering *b, dlc_expr size);
dlc_type dlc_lowering_type(dlc_lowering *b, const dlc_type *type);
dlc_step dlc_lowering_new_step(dlc_lowering *b, dlc_step_kind kind, uint32_t nvalues);
/* Appends the step, named after the model's nodes it is of. */
void dlc_lowering_step(dlc_lowering *b, dlc_step *step, dlc_node *const *nodes, uint32_t n);
/* Binds the symbols that are read from what the node makes. */
void dlc_lowering_binds(dlc_lowering *b, const dlc_node *producer);

/* Of a mark, with what goes in and out there; the nodes that are of a region are no steps of their own. */
void dlc_lower_mark(dlc_lowering *b, dlc_node *node);
int dlc_is_of_region(const dlc_node *node);

#endif
