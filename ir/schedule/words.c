/* The words of schedules. */
#include <string.h>

#include "ir/schedule/schedule.h"
#include "ir/schedule/text.h"

const char *const dlc_loop_names[] = {
#define DLC_LOOP(id, text) text,
#include "ir/schedule/loops.def"
#undef DLC_LOOP
};
const char *const dlc_place_names[] = {"reg", "scratch", "output", "buffer"};

int dlc_schedule_word_is_taken(const char *name)
{
    static const char *const words[] = {"copy", "const", "kept"};
    for (uint32_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(name, words[i]) == 0)
            return 1;
    for (uint32_t i = 0; i < DLC_LOOP_LEAF; i++)
        if (strcmp(name, dlc_loop_names[i]) == 0)
            return 1;
    return 0;
}
