/* The table of back ends, and that of what can be written. */
#include "package/backend.h"

#include <string.h>

#define DLC_BACKEND(id, kind, emulated) extern const dlc_backend dlc_backend_##id;
#include "package/backends.def"
#undef DLC_BACKEND

static const struct {
    uint8_t kind, emulated;
    const dlc_backend *backend;
} rows[] = {
#define DLC_BACKEND(id, kind, emulated) {DLC_TARGET_##kind, emulated, &dlc_backend_##id},
#include "package/backends.def"
#undef DLC_BACKEND
};

const dlc_backend *dlc_backend_of(const dlc_target *target, int emulated)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].kind == target->kind && rows[i].emulated == (emulated != 0))
            return rows[i].backend;
    return NULL;
}

static const char *const artifacts[DLC_ARTIFACT_COUNT] = {
#define DLC_ARTIFACT(id, text, ending, help) text,
#include "dlc/artifacts.def"
#undef DLC_ARTIFACT
};

const char *dlc_artifact_text(dlc_artifact artifact)
{
    return artifacts[artifact];
}

dlc_artifact dlc_artifact_find(const char *text)
{
    uint32_t i = 0;
    while (i < DLC_ARTIFACT_COUNT && strcmp(artifacts[i], text) != 0)
        i++;
    return (dlc_artifact)i;
}

int dlc_backend_has(const dlc_backend *backend, dlc_artifact artifact)
{
    if (artifact <= DLC_ARTIFACT_H)
        return 1;
    for (uint32_t i = 0; i < backend->ntexts; i++)
        if (backend->texts[i].artifact == artifact)
            return 1;
    return 0;
}

void dlc_artifact_list(const dlc_backend *backend, dlc_str *out)
{
    const char *last = NULL;
    for (uint32_t i = 0; i < DLC_ARTIFACT_COUNT; i++) {
        if (backend && !dlc_backend_has(backend, (dlc_artifact)i))
            continue;
        if (last)
            dlc_str_printf(out, "%s%s", out->n ? ", " : "", last);
        last = artifacts[i];
    }
    dlc_str_printf(out, "%s%s", out->n ? " and " : "", last ? last : "");
}
