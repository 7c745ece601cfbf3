/*
 * LLVM's C API. LLVM's shared library is opened by the process that makes code, a child (package/child.h), and by no other: its
 * constructors abort where memory runs out, it takes 13 ms and 40 MB, and a host may have an LLVM of its own. So its functions are
 * called through a table, under their own names: `llvm_names.h`, made of llvm.def by CMake, has a #define for each row.
 * With DLC_LLVM_STATIC they are linked in, and there is no table.
 */
#ifndef DLC_CODEGEN_CPU_CALLS_H
#define DLC_CODEGEN_CPU_CALLS_H

#include <llvm-c/Analysis.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include "base/diag.h"

#ifdef DLC_LLVM_LIBRARY /* its SONAME */
typedef struct {
#define DLC_LLVM(name) __typeof__(&name) name;
#include "codegen/cpu/llvm.def"
#undef DLC_LLVM
} dlc_llvm_table;
extern dlc_llvm_table dlc_llvm_calls; /* filled in by dlc_llvm_open */
#include <llvm_names.h>
#endif

/* Before any of the functions; once is enough. DLC_IO, DLC_LIMIT: it cannot be loaded, in the dynamic linker's words. */
DLC_NODISCARD dlc_status dlc_llvm_open(dlc_diag *diag);
/* The file that holds LLVM's code, or NULL where none tells; once it is open. */
const char *dlc_llvm_file(void);

#endif
