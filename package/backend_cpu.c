/* The CPU: kernels are functions of relocatable objects, made by LLVM. */
#include "package/backend.h"

#include <string.h>

static dlc_status emit(const void *work, dlc_arena *arena, dlc_diag *diag, dlc_blob **blobs,
                       uint32_t *nblobs)
{
    const dlc_part *part = work;
    return dlc_cpu_emit(part->module, &part->emit, arena, diag, blobs, nblobs);
}

static int arch(const dlc_part *part)
{
    return strncmp(part->module->target->triple, "aarch64", 7) ? DLC_ARCH_X86_64 : DLC_ARCH_AARCH64;
}

static dlc_status write_text(dlc_part *part, dlc_emit_kind kind, dlc_output *output,
                             dlc_arena *arena, dlc_diag *diag)
{
    part->emit.kind = kind;
    DLC_TRY(dlc_child_emit(emit, part, arena, diag, &part->code));
    for (uint32_t i = 0; i < part->code.nblobs; i++)
        DLC_TRY(dlc_output_write(output, part->code.blobs[i].bytes, part->code.blobs[i].size_bytes,
                                 diag));
    return DLC_OK;
}

static dlc_status write_llvm(dlc_part *part, dlc_output *output, dlc_arena *arena, dlc_diag *diag)
{
    return write_text(part, DLC_EMIT_LLVM_IR, output, arena, diag);
}

static dlc_status write_assembly(dlc_part *part, dlc_output *output, dlc_arena *arena,
                                 dlc_diag *diag)
{
    return write_text(part, DLC_EMIT_ASM, output, arena, diag);
}

static const dlc_text_form texts[] = {{DLC_ARTIFACT_LL, write_llvm},
                                      {DLC_ARTIFACT_ASM, write_assembly}};

extern const dlc_backend dlc_backend_CPU;
const dlc_backend dlc_backend_CPU = {
    .is_function = 1,
    .texts = texts,
    .ntexts = 2,
    .emit = emit,
    .arch = arch,
};
