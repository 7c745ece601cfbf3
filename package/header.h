/* The C header of a model. */
#ifndef DLC_PACKAGE_HEADER_H
#define DLC_PACKAGE_HEADER_H

#include "base/str.h"
#include "ir/module/module.h"

/* Declares dlc_executable_NAME and NAME_open, and defines NAME_run with a typed parameter per
 * input, output and symbol. */
void dlc_header_print(const dlc_module *module, const char *name, dlc_str *out);

#endif
