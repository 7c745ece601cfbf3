/* What this compiler is made of and can make: for `dlc --version`. */
#include "codegen/codegen.h"
#include "codegen/ptx/nvrtc.h"
#include "compiler/driver.h"
#include "compiler/texts.h"
#include "ir/schedule/target.h"
#include "package/child.h"

#include <string.h>

static void add_nvrtc(dlc_str *out)
{
    dlc_arena *arena = dlc_arena_create(0);
    const dlc_nvrtc *nvrtc;
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    if (dlc_nvrtc_open(&diag, &nvrtc) == DLC_OK)
        dlc_str_printf(out, "nvrtc: %d.%d (%s)\n", dlc_nvrtc_version(nvrtc) / 100,
                       dlc_nvrtc_version(nvrtc) % 100, dlc_nvrtc_path(nvrtc));
    else
        dlc_str_add(out, "nvrtc: not found; CUDA targets need it\n");
    dlc_arena_destroy(arena);
}

static void add_llvm(dlc_str *out)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_child_code code;
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    if (dlc_child_emit(dlc_cpu_version, NULL, arena, &diag, &code) == DLC_OK) {
        dlc_str_printf(out, "llvm: %s\n", (const char *)code.blobs[0].bytes);
        dlc_child_close(&code);
    } else {
        dlc_str_printf(out, "llvm: %s\n", diag.messages[0].text);
    }
    dlc_arena_destroy(arena);
}

const char *dlc_about(void)
{
    dlc_texts *texts = dlc_thread_texts();
    dlc_str out = {0};
    if (!texts)
        return "";
    dlc_str_printf(&out, "format: %d\n", DLC_ABI_VERSION);
    add_llvm(&out);
    add_nvrtc(&out);
    dlc_str_add(&out, "targets:");
    for (const char *const *name = dlc_target_names(); *name; name++)
        dlc_str_printf(&out, " %s", *name);
    dlc_str_add(&out, "\n");
    size_t n = out.n < sizeof texts->about ? out.n : sizeof texts->about - 1;
    *(char *)mempcpy(texts->about, dlc_str_text(&out), n) = '\0';
    dlc_str_deinit(&out);
    return texts->about;
}
