/* What commands tell the user: results, progress, messages. */
#include "cli/cli.h"

#include <inttypes.h>
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

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double dlc_median(double *values, uint32_t n)
{
    if (!n)
        return 0;
    qsort(values, n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The code of the UTF-8 sequence at `at`, its length in *n; bytes that are none: U+FFFD, one at a time. */
static uint32_t code_at(const unsigned char *at, size_t *n)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : at[0] >> 3 == 30 ? 4 : 0;
    uint32_t code = length == 1 ? at[0] : length ? at[0] & (0x7fu >> length) : 0;
    *n = 1;
    for (size_t i = 1; i < length; i++) {
        if (at[i] >> 6 != 2)
            return 0xfffd;
        code = code << 6 | (at[i] & 0x3f);
    }
    if (!length || code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0xfffd;
    *n = length;
    return code;
}

/* Characters that steer a terminal or turn what follows around: ESC, C1, marks of direction. */
static int steers(uint32_t code)
{
    return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0) || code == 0x061c ||
           (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xfeff || code == 0xfffd;
}

void dlc_print(FILE *to, const char *text)
{
    const char *from = text;
    for (size_t n; *text; text += n) {
        uint32_t code = code_at((const unsigned char *)text, &n);
        if (!steers(code))
            continue;
        fwrite(from, 1, (size_t)(text - from), to);
        fprintf(to, "\\u%04" PRIx32, code);
        from = text + n;
    }
    fputs(from, to);
}

static void print_formatted(FILE *to, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
static void print_formatted(FILE *to, const char *format, va_list args)
{
    char room[512], *text = room; /* most lines need no memory, and none may be lost */
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(room, sizeof room, format, args);
    if (n >= (int)sizeof room && vasprintf(&text, format, again) < 0)
        dlc_out_of_memory((size_t)n, 0);
    va_end(again);
    dlc_print(to, text);
    if (text != room)
        free(text);
}

void dlc_say(const dlc_cli *cli, const char *format, ...)
{
    if (cli->args.json)
        return;
    va_list args;
    va_start(args, format);
    print_formatted(stdout, format, args);
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
    print_formatted(stderr, format, args);
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
        char *line = strndup(detail, n);
        fputs(*detail == ' ' ? "" : "    ", stderr);
        dlc_print(stderr, line ? line : "");
        fputs("\n", stderr);
        free(line);
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
        fprintf(stderr, "%sdlc:%s ", is_red ? "\033[1;31m" : "", is_red ? "\033[0m" : "");
        dlc_print(stderr, message->place);
        fputs(*message->place ? ": " : "", stderr);
        dlc_print(stderr, message->text);
        fputs("\n", stderr);
        if (message->detail)
            print_detail(message->detail);
    }
}
