/* Loading of target plug-ins. What they call is in view.c. */
#include "package/plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

typedef struct loaded {
    dlc_target target;
    struct loaded *next;
    char path[];
} loaded;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static loaded *list;

static dlc_status check(const dlc_backend_plugin *plugin, const char *path, dlc_diag *diag)
{
    if (!plugin || plugin->version != DLC_BACKEND_VERSION)
        return dlc_diag_fail(diag, DLC_USAGE, path,
                             "made for version %u of dlc/backend.h, this is version %u",
                             plugin ? plugin->version : 0, DLC_BACKEND_VERSION);
    if (plugin->vector_bytes < 16 || plugin->vector_bytes > 64 ||
        (plugin->vector_bytes & (plugin->vector_bytes - 1)) || plugin->vector_registers < 16)
        return dlc_diag_fail(diag, DLC_USAGE, path,
                             "says vectors of %u bytes in %u registers; 16, 32 or 64 bytes in at "
                             "least 16 are possible",
                             plugin->vector_bytes, plugin->vector_registers);
    if (!plugin->nforms || !plugin->forms || !plugin->l2_bytes)
        return dlc_diag_fail(diag, DLC_USAGE, path, "says %s",
                             plugin->l2_bytes ? "of no form what it writes"
                                              : "that a cache has no bytes");
    return DLC_OK;
}

static dlc_status add(const dlc_backend_plugin *plugin, const char *path, dlc_diag *diag,
                      const dlc_target **target)
{
    const dlc_target *base =
        dlc_target_find("x86-64-v2"); /* its rough machine: nothing else is known */
    size_t n = strlen(path) + 1;
    loaded *row = calloc(1, sizeof *row + n);
    if (!row)
        return dlc_diag_fail(diag, DLC_LIMIT, path, "no memory for it");
    memcpy(row->path, path, n);
    row->target = (dlc_target){.name = row->path,
                               .kind = DLC_TARGET_CPU,
                               .triple = "",
                               .cpu = "",
                               .vector_bytes = plugin->vector_bytes,
                               .vector_registers = plugin->vector_registers,
                               .l1_bytes = plugin->l1_bytes,
                               .l2_bytes = plugin->l2_bytes,
                               .scratch_bytes = plugin->l2_bytes / 2,
                               .machine = base->machine,
                               .plugin = plugin};
    row->next = list;
    list = row;
    *target = &row->target;
    return DLC_OK;
}

static dlc_status load(const char *path, dlc_diag *diag, const dlc_target **target)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return dlc_diag_fail(diag, DLC_USAGE, path, "%s", dlerror());
    const dlc_backend_plugin *(*get)(void) = NULL;
    *(void **)&get = dlsym(library, "dlc_backend_get");
    const dlc_backend_plugin *plugin = get ? get() : NULL;
    dlc_status status = get ? check(plugin, path, diag)
                            : dlc_diag_fail(diag, DLC_USAGE, path, "exports no dlc_backend_get");
    if (status == DLC_OK)
        status = add(plugin, path, diag, target);
    if (status != DLC_OK)
        dlclose(library);
    return status;
}

dlc_status dlc_plugin_open(const char *path, dlc_diag *diag, const dlc_target **target)
{
    dlc_status status = DLC_OK;
    pthread_mutex_lock(&lock);
    const loaded *at = list;
    while (at && strcmp(at->path, path) != 0)
        at = at->next;
    if (at)
        *target = &at->target;
    else
        status = load(path, diag, target);
    pthread_mutex_unlock(&lock);
    return status;
}

const dlc_backend_plugin *dlc_plugin_of(const dlc_target *target)
{
    return target->plugin;
}

const dlc_backend_form *dlc_plugin_form(const dlc_backend_plugin *plugin, const char *text)
{
    for (uint32_t i = 0; i < plugin->nforms; i++)
        if (!strcmp(plugin->forms[i].text, text))
            return &plugin->forms[i];
    return NULL;
}

void dlc_plugin_list(const dlc_backend_plugin *plugin, dlc_str *out)
{
    for (uint32_t i = 0; i < plugin->nforms; i++)
        dlc_str_printf(out, "%s%s",
                       !i                        ? ""
                       : i + 1 == plugin->nforms ? " and "
                                                 : ", ",
                       plugin->forms[i].text);
}

dlc_status dlc_plugin_write(const dlc_module *module, const dlc_backend_form *form,
                            const dlc_executable_options *options, dlc_diag *diag)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_backend_output output = {0};
    dlc_backend_module *view = dlc_view_create(module, options->name, arena, diag);
    form->write(&dlc_backend_functions, view, &output);
    dlc_status status = dlc_view_status(view);
    if (status == DLC_OK)
        status = dlc_output_whole(options->path, output.text.data, output.text.n, diag);
    dlc_str_deinit(&output.text);
    dlc_arena_destroy(arena);
    return status;
}
