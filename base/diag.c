/* Diagnostics: a list of messages in an arena; the first failure decides the status of the whole.
 */
#include "base/diag.h"

void dlc_diag_init(dlc_diag *diag, dlc_arena *arena)
{
    *diag = (dlc_diag){.arena = arena};
}

static void append(dlc_diag *diag, dlc_message message)
{
    if (diag->nmessages == diag->capacity) {
        uint32_t grown = diag->capacity ? diag->capacity * 2 : 8;
        dlc_message *messages = dlc_new_array(diag->arena, dlc_message, grown);
        for (uint32_t i = 0; i < diag->nmessages; i++)
            messages[i] = diag->messages[i];
        diag->messages = messages;
        diag->capacity = grown;
    }
    diag->messages[diag->nmessages++] = message;
}

dlc_status dlc_diag_vfail(dlc_diag *diag, dlc_status status, const char *place, const char *format,
                          va_list args)
{
    append(diag, (dlc_message){
                     .status = status,
                     .place = place ? dlc_arena_strdup(diag->arena, place) : "",
                     .text = dlc_arena_vprintf(diag->arena, format, args),
                 });
    if (diag->status == DLC_OK)
        diag->status = status;
    return status;
}

dlc_status dlc_diag_fail(dlc_diag *diag, dlc_status status, const char *place, const char *format,
                         ...)
{
    va_list args;
    va_start(args, format);
    dlc_diag_vfail(diag, status, place, format, args);
    va_end(args);
    return status;
}

void dlc_diag_detail(dlc_diag *diag, const char *format, ...)
{
    if (!diag->nmessages)
        return;
    dlc_message *newest = &diag->messages[diag->nmessages - 1];
    va_list args;
    va_start(args, format);
    char *text = dlc_arena_vprintf(diag->arena, format, args);
    va_end(args);
    newest->detail =
        newest->detail ? dlc_arena_printf(diag->arena, "%s\n%s", newest->detail, text) : text;
}
