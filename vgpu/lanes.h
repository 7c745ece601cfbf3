/* The functions of lanes.c, by the processor they are compiled for. */
#ifndef DLC_VGPU_LANES_H
#define DLC_VGPU_LANES_H

#include "vgpu/machine.h"

/* For an instruction whose rows are set; NULL: none of these. */
vgpu_compute vgpu_lanes_plain(const vgpu_insn *insn);
vgpu_compute vgpu_lanes_avx2(const vgpu_insn *insn);

#endif
