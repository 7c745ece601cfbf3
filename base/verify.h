/* Whether a compilation checks what it makes as it goes: the graph and kernels behind each pass, places in memory, LLVM's modules. */
#ifndef DLC_BASE_VERIFY_H
#define DLC_BASE_VERIFY_H

/* True where DLC_VERIFY is set, in the environment and to neither nothing nor 0; always in a build that defines it (CMakePresets.json). */
int dlc_is_verifying(void);

#endif
