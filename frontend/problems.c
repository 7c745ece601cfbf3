/* A model with one unsupported operator often has it a hundred times: equal complaints become one
 * that is counted. */
#include "frontend/import_steps.h"

#include <inttypes.h>
#include <string.h>

enum { NAMED = 4 };

typedef struct {
    uint32_t kept, count; /* index of the first message of its kind; how many there are */
} problem;

static const char *key_of(dlc_arena *arena, const dlc_message *message)
{
    return dlc_arena_printf(arena, "%d %s", (int)message->status, message->text);
}

/* "model.onnx: node 'a' (Conv, …)" without the file, which the first place names. */
static const char *bare_place(const char *place)
{
    const char *colon = strstr(place, ": ");
    return colon ? colon + 2 : place;
}

static void add_place(dlc_diag *diag, dlc_message *first, const char *place, uint32_t count)
{
    const char *detail = first->detail ? first->detail : "";
    if (count <= NAMED + 1)
        first->detail = dlc_arena_printf(diag->arena, "%s%s    also: %s", detail,
                                         *detail ? "\n" : "", bare_place(place));
}

void dlc_problems_group(dlc_diag *diag, uint32_t first)
{
    dlc_table seen = {0};
    dlc_vec(problem) problems = {0};
    uint32_t kept = first;
    for (uint32_t i = first; i < diag->nmessages; i++) {
        dlc_message message = diag->messages[i];
        int is_new;
        void **item = dlc_table_insert(&seen, diag->arena, key_of(diag->arena, &message), &is_new);
        if (is_new) {
            problem fresh = {kept, 1};
            dlc_vec_push(diag->arena, &problems, fresh);
            *item = (void *)(uintptr_t)problems.n;
            diag->messages[kept++] = message;
            continue;
        }
        problem *known = &problems.data[(uintptr_t)*item - 1];
        add_place(diag, &diag->messages[known->kept], message.place, ++known->count);
    }
    diag->nmessages = kept;
    for (uint32_t i = 0; i < problems.n; i++) {
        dlc_message *message = &diag->messages[problems.data[i].kept];
        if (problems.data[i].count > 1)
            message->text = dlc_arena_printf(diag->arena, "%s (%" PRIu32 " times)", message->text,
                                             problems.data[i].count);
    }
}
