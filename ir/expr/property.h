/* What the file of a model says of itself: it goes from the graph into the executable as it is, and nothing asks for it. */
#ifndef DLC_IR_PROPERTY_H
#define DLC_IR_PROPERTY_H

#include "base/vec.h"

typedef struct {
    const char *key, *value;
    int is_field; /* of the format, called as there; 0: one of the user's own */
} dlc_property;
typedef dlc_vec(dlc_property) dlc_properties;

#endif
