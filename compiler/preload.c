/* For processes that compile many models: what each compilation's child would load for itself comes to it by fork. */
#include "codegen/codegen.h"
#include "compiler/driver.h"
#include "compiler/texts.h"

#include <stdio.h>

dlc_status dlc_preload(const char **why)
{
    dlc_texts *texts = dlc_thread_texts();
    *why = "";
    if (!texts)
        return DLC_LIMIT;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    dlc_status status = dlc_cpu_preload(&diag);
    if (status) {
        snprintf(texts->why, sizeof texts->why, "%s", diag.messages[0].text);
        *why = texts->why;
    }
    dlc_arena_destroy(arena);
    return status;
}
