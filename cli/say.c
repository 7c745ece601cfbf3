/* What commands tell the user: results, progress, messages. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *dlc_status_text(dlc_status status)
{
    switch (status) {
    case DLC_OK:
        return "ok";
    case DLC_INVALID:
        return "invalid";
    case DLC_USAGE:
        return "usage";
    case DLC_UNSUPPORTED:
        return "unsupported";
    case DLC_MISMATCH:
        return "mismatch";
    case DLC_IO:
        return "io";
    case DLC_NO_DEVICE:
        return "no device";
    case DLC_LIMIT:
        return "limit";
    case DLC_CANCELLED:
        return "cancelled";
    case DLC_INTERNAL:
        break;
    }
    return "internal";
}

double dlc_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void dlc_say(const dlc_cli *cli, const char *format, ...)
{
    if (cli->args.json)
        return;
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
}

void dlc_progress(const dlc_cli *cli, const char *format, ...)
{
    if (cli->args.quiet || !isatty(STDERR_FILENO))
        return;
    fputs("\r\033[K", stderr);
    if (!format)
        return;
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

dlc_status dlc_runtime_failed(dlc_cli *cli, dlc_status status, const char *place)
{
    return dlc_diag_fail(&cli->diag, status, place, "%s", dlcrt_last_error());
}

cJSON *dlc_messages_json(const dlc_diag *diag)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < diag->nmessages; i++) {
        const dlc_message *message = &diag->messages[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "status", dlc_status_text(message->status));
        cJSON_AddNumberToObject(row, "exit", message->status);
        cJSON_AddStringToObject(row, "place", message->place);
        cJSON_AddStringToObject(row, "text", message->text);
        if (message->detail)
            cJSON_AddStringToObject(row, "detail", message->detail);
        cJSON_AddItemToArray(list, row);
    }
    return list;
}

static void print_detail(const char *detail)
{
    while (*detail) {
        size_t n = strcspn(detail, "\n");
        fprintf(stderr, "%s%.*s\n", *detail == ' ' ? "" : "    ", (int)n, detail);
        detail += n + (detail[n] == '\n');
    }
}

/* Red for failures, on a terminal whose user has not asked for none (NO_COLOR). */
static int has_colour(void)
{
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && !(none && *none) && terminal && strcmp(terminal, "dumb") != 0;
}

void dlc_report_messages(const dlc_cli *cli)
{
    int colour = has_colour();
    for (uint32_t i = 0; i < cli->diag.nmessages; i++) {
        const dlc_message *message = &cli->diag.messages[i];
        if (message->status == DLC_OK && cli->args.quiet)
            continue;
        int is_red = colour && message->status != DLC_OK;
        fprintf(stderr, "%sdlc:%s %s%s%s\n", is_red ? "\033[1;31m" : "", is_red ? "\033[0m" : "",
                message->place, *message->place ? ": " : "", message->text);
        if (message->detail)
            print_detail(message->detail);
    }
}
