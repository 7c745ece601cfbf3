/* Between choose_attention.c and choose_attention_tiles.c: attention while its schedule is chosen. */
#ifndef DLC_PASSES_SCHEDULE_CHOOSE_ATTENTION_H
#define DLC_PASSES_SCHEDULE_CHOOSE_ATTENTION_H

#include "passes/schedule/choose_tiles.h"

typedef struct {
    dlc_tiles t;
    uint32_t scores, values; /* the products' stages */
    uint32_t query, key;     /* axes */
} dlc_attention;

static inline const dlc_stage *dlc_attention_stage(const dlc_attention *attention, uint32_t stage)
{
    return dlc_tiles_stage(&attention->t, stage);
}
/* A product is the first stage, another is the last but for what runs over its tile, and there is no third; what lies between them has rows
 * of keys, or is one value, at each query. The axes are known then. */
int dlc_attention_find(dlc_attention *attention);
/* It has a value for each key, or folds them. */
int dlc_attention_is_by_keys(const dlc_attention *attention, uint32_t stage);
/* Behind the last stage of [first, end) that may share a loop over the keys with the first: sums are there behind it. */
uint32_t dlc_attention_group_end(const dlc_attention *attention, uint32_t first, uint32_t end);

#endif
