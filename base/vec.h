/* A growable array in an arena: `dlc_vec(int) v = {0}; dlc_vec_push(arena, &v, 3); v.data[0]; v.n`. */
#ifndef DLC_BASE_VEC_H
#define DLC_BASE_VEC_H

#include "base/arena.h"

#define dlc_vec(type)                                                                              \
    struct {                                                                                       \
        type *data;                                                                                \
        uint32_t n, cap;                                                                           \
    }

#define dlc_vec_push(arena, vec, item)                                                             \
    ((vec)->n == (vec)->cap                                                                        \
         ? (void)((vec)->data = dlc_vec_grow((arena), (vec)->data, (vec)->n, &(vec)->cap,          \
                                             sizeof *(vec)->data))                                 \
         : (void)0,                                                                                \
     (void)((vec)->data[(vec)->n++] = (item)))

void *dlc_vec_grow(dlc_arena *arena, void *data, uint32_t n, uint32_t *cap, size_t item_bytes);

typedef dlc_vec(uint32_t) dlc_ids;

#endif
