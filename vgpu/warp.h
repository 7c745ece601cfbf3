/* Inside the core: a launch under way, its warps, and who does what to them. */
#ifndef DLC_VGPU_WARP_H
#define DLC_VGPU_WARP_H

#include "vgpu/machine.h"

/* Lanes of a warp that are at the same instruction. */
typedef struct {
    uint32_t pc, lanes;
    uint8_t waits; /* at the shuffle or barrier at pc, for the others it names */
} vgpu_front;

/* An asynchronous copy under way. */
typedef struct {
    uint64_t to, from;
    uint32_t bytes, from_bytes, lane, group;
} vgpu_copy;

/* A product of a group of warps under way: where its factors lie, and whether it adds to what is there. */
typedef struct {
    const vgpu_insn *insn;
    uint64_t a, b;
    int adds;
    uint32_t group;
} vgpu_product;

typedef enum { WARP_RUNS, WARP_WAITS, WARP_ENDED } vgpu_place;
enum { VGPU_GROUPS = 8 }; /* of copies whose times are kept */

typedef struct {
    uint8_t *regs;
    vgpu_front fronts[VGPU_LANES];
    uint32_t nfronts, born, alive, number; /* lanes that began, and that have not ended */
    uint32_t epoch, met; /* met: the time up to which its own lanes come after each other */
    uint32_t seen[VGPU_WARPS]; /* the time of every warp up to which this one comes after it */
    vgpu_place place;
    uint32_t barrier, barrier_pc; /* while it waits */
    uint64_t issued;
    int has_fenced;
    dlc_vec(vgpu_copy) copies;
    uint32_t ncommitted[VGPU_LANES];
    dlc_vec(vgpu_product) products;
    uint32_t nproduct_groups, proxied; /* proxied: the time up to which its stores are there for products */
    uint64_t sequence;                 /* of products, as a number: that of the other warps of the group */
    int is_fenced;                     /* no register of a sum was written since wgmma.fence */
    /* profile.c: cycles, where a load takes 0 and VGPU_LOAD_CYCLES. fence: no load may begin before;
     * ready: by register; copied: by group of copies. */
    uint32_t now[2], fence[2], *ready[2];
    uint32_t copied[2][VGPU_GROUPS], ngroups, newest[2];
} vgpu_warp;

/* Named barriers: who has come to them. */
typedef struct {
    uint32_t threads, waiting, wanted, pc; /* wanted 0: of the whole block */
    uint32_t seen[VGPU_WARPS];
} vgpu_barrier;

typedef struct vgpu_machine {
    const vgpu_code *code;
    vgpu_launch *launch;
    dlc_diag *diag;
    dlc_arena *arena;
    vgpu_memory shared;             /* of the block: dynamic, fixed */
    uint8_t *local, *local_written; /* [thread][local_bytes] */
    vgpu_warp *warps;
    uint32_t nwarps, nthreads, coordinates[3];
    uint64_t block, nblocks;
    vgpu_barrier barriers[VGPU_NBARRIERS];
    uint8_t *published; /* blocks that have fenced and told so by an atomic; NULL: none has */
    int has_acquired;   /* this block has seen such an atomic */
    int is_sampled;     /* the times of this block are kept */
    uint64_t *executed, *lanes; /* by instruction: how often warps did, with how many lanes */
    dlc_status status;
} vgpu_machine;

void vgpu_fail(vgpu_machine *m, const vgpu_warp *w, const vgpu_insn *insn, uint32_t lane,
               vgpu_fault fault, const char *what);

/* access.c: loads, stores, atomics and asynchronous copies of lanes. */
void vgpu_load(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes);
void vgpu_store(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes);
void vgpu_atomic(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes);
void vgpu_async(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes);

/* 16 bytes of shared memory as a product of a group of warps sees them; NULL: it failed. */
const uint8_t *vgpu_read_factor(vgpu_machine *m, const vgpu_warp *w, const vgpu_insn *insn, uint64_t address);

/* warpgroup.c */
void vgpu_warpgroup(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t lanes);
void vgpu_watch(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn);
void vgpu_warpgroup_end(vgpu_machine *m);

/* warp.c: on to the next barrier of the block, the end, or a failure. */
void vgpu_warp_run(vgpu_machine *m, vgpu_warp *w);
/* launch.c: the warp comes to a barrier of the block; it waits there unless it only arrives. */
void vgpu_barrier_reach(vgpu_machine *m, vgpu_warp *w, const vgpu_insn *insn, uint32_t pc);

/* profile.c */
enum { VGPU_LOAD_CYCLES = 1000 };
void vgpu_count_global(vgpu_counts *counts, const uint64_t *addresses, uint32_t lanes,
                       uint32_t bytes, int is_write);
void vgpu_count_shared(vgpu_counts *counts, const uint64_t *addresses, uint32_t lanes,
                       uint32_t bytes);
void vgpu_time(vgpu_warp *w, const vgpu_insn *insn);
void vgpu_time_meeting(vgpu_machine *m, uint32_t warps);
void vgpu_count_block(vgpu_machine *m);
/* Of its blocks so many ran: they count for all, so the counts are of this launch alone. */
void vgpu_count_launch(vgpu_machine *m, uint64_t nrun);

#endif
