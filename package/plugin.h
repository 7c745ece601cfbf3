/* Targets outside the tree: dlc/backend.h's plug-ins. */
#ifndef DLC_PACKAGE_PLUGIN_H
#define DLC_PACKAGE_PLUGIN_H

#include "codegen/codegen.h"
#include "dlc/backend.h"

/* The target of the plug-in at `path`, called by that path. It stays loaded for as long as the
 * process lives, as targets do. */
DLC_NODISCARD dlc_status dlc_plugin_open(const char *path, dlc_diag *diag,
                                         const dlc_target **target);
/* target->plugin as what it is; NULL: a target of targets.def. */
const dlc_backend_plugin *dlc_plugin_of(const dlc_target *target);
/* The form called so, or NULL; and all of them: "c and h". */
const dlc_backend_form *dlc_plugin_form(const dlc_backend_plugin *plugin, const char *text);
void dlc_plugin_list(const dlc_backend_plugin *plugin, dlc_str *out);
/* Writes the module in this form to options->path, whole or not at all. */
DLC_NODISCARD dlc_status dlc_plugin_write(const dlc_module *module, const dlc_backend_form *form,
                                          const dlc_executable_options *options, dlc_diag *diag);

/* --- package/view.c --- */
/* What dlc/backend.h shows of a module, made once; memory of `arena`. */
struct dlc_backend_module;
struct dlc_backend_module *dlc_view_create(const dlc_module *module, const char *identifier,
                                           dlc_arena *arena, dlc_diag *diag);
/* What the plug-in said, if it refused: DLC_UNSUPPORTED and its sentence in the diag. */
dlc_status dlc_view_status(const struct dlc_backend_module *view);
/* Text that `print` adds to. */
struct dlc_backend_output {
    dlc_str text;
};
extern const dlc_backend_api dlc_backend_functions;

#endif
