/* What one thread computes by one instruction of arithmetic; and conversions (tests/ptx/compute.c).
 */
#ifndef DLC_VGPU_COMPUTE_H
#define DLC_VGPU_COMPUTE_H

#include "vgpu/module.h"

uint64_t ptx_masked(ptx_type type, uint64_t bits);   /* the low bits of the type */
uint64_t ptx_extended(ptx_type type, uint64_t bits); /* sign-extended when the type is signed */
/* Bits of the result; operands are taken by the low bits of the type. *error: what is undefined,
 * else untouched. */
uint64_t ptx_compute(const ptx_insn *insn, const uint64_t *args, const char **error);

#endif
