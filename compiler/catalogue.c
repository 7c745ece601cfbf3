/* What can be named in options, with a line about each: rows of the tables that name them (dlc/dlc.h). */
#include "compiler/driver.h"
#include "compiler/machine.h"
#include "compiler/texts.h"

#include "package/backend.h"
#include "passes/rewrite/rewrite.h"

#include <string.h>

static const struct {
    const char *name, *help;
} strategies[] = {
#define DLC_FUSION(name, help) {#name, help},
#include "passes/fuse/fusion.def"
#undef DLC_FUSION
};

static const char *target_help(const char *name)
{
    dlc_texts *texts = dlc_thread_texts();
    const dlc_target *target = dlc_target_find(name);
    const dlc_backend *backend = target ? dlc_backend_of(target, 0) : NULL;
    if (!texts)
        return "";
    texts->help[0] = '\0';
    if (!strcmp(name, "native"))
        dlc_machine_describe(texts->help, sizeof texts->help);
    else if (backend && backend->describe)
        backend->describe(target, texts->help, sizeof texts->help);
    return texts->help;
}

static int catalogue_target(uint32_t i, const char **name, const char **help)
{
    const char *const *names = dlc_target_names();
    uint32_t n = 0;
    while (names[n] && n < i)
        n++;
    if (!names[n])
        return 0;
    *name = names[n];
    *help = target_help(names[n]);
    return 1;
}

int dlc_catalogue(dlc_catalogue_kind kind, uint32_t i, const char **name, const char **help)
{
    *help = "";
    switch (kind) {
    case DLC_CATALOGUE_TARGETS:
        return catalogue_target(i, name, help);
    case DLC_CATALOGUE_PASSES:
        if (i >= dlc_npasses)
            return 0;
        *name = dlc_passes[i].name;
        *help = dlc_passes[i].help;
        return 1;
    case DLC_CATALOGUE_STRATEGIES:
        if (i >= sizeof strategies / sizeof *strategies)
            return 0;
        *name = strategies[i].name;
        *help = strategies[i].help;
        return 1;
    case DLC_CATALOGUE_REWRITES:
        if (i >= dlc_nrewrites)
            return 0;
        *name = dlc_rewrites[i].name;
        *help = dlc_rewrites[i].help;
        return 1;
    }
    return 0;
}
