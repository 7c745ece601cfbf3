/* What printer and parser of modules share: the rows of dlc/opaque.def, and the words for roles. */
#ifndef DLC_IR_MODULE_TEXT_H
#define DLC_IR_MODULE_TEXT_H

#include "ir/expr/text.h"
#include "ir/module/module.h"

typedef struct {
    const char *text;
    uint8_t ninputs, noutputs, nattrs;
    const char *names; /* of the attributes, a blank between */
} dlc_opaque_row;
extern const dlc_opaque_row dlc_opaque_rows[];
extern const uint32_t dlc_nopaque_rows;
extern const char *const dlc_value_role_names[]; /* by dlc_value_role; NULL behind the last */

#endif
