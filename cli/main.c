/* The program: finds the command, runs it, and reports once, at the end, as text or as one JSON
 * line. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef DLC_VERSION
#define DLC_VERSION "0"
#endif

static dlc_status (*const run_command[])(dlc_cli *) = {
#define DLC_COMMAND(name, operands, least, most, help) dlc_cmd_##name,
#include "cli/commands.def"
#undef DLC_COMMAND
};

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

/* ---- reports ---- */

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

void dlc_report_messages(const dlc_cli *cli)
{
    for (uint32_t i = 0; i < cli->diag.nmessages; i++) {
        const dlc_message *message = &cli->diag.messages[i];
        if (message->status == DLC_OK && cli->args.quiet)
            continue;
        fprintf(stderr, "dlc: %s%s%s\n", message->place, *message->place ? ": " : "",
                message->text);
        if (message->detail)
            print_detail(message->detail);
    }
}

static void report_json(dlc_cli *cli, dlc_status status)
{
    cJSON *json = cli->json ? cli->json : cJSON_CreateObject();
    cJSON_AddStringToObject(json, "status", dlc_status_text(status));
    cJSON_AddNumberToObject(json, "exit", status);
    if (cli->diag.nmessages)
        cJSON_AddItemToObject(json, "messages", dlc_messages_json(&cli->diag));
    char *text = cJSON_PrintUnformatted(json);
    puts(text ? text : "{}");
    cJSON_free(text);
    cJSON_Delete(json);
    cli->json = NULL;
}

static dlc_status flush(dlc_cli *cli, dlc_status status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "dlc: standard output cannot be written\n");
    (void)cli;
    return status == DLC_OK ? DLC_IO : status;
}

dlc_status dlc_cmd_help(dlc_cli *cli)
{
    dlc_str text = {0};
    if (cli->args.operands.n) {
        const char *name = cli->args.operands.data[0];
        int found = dlc_command_find(name);
        if (found < 0)
            return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                                 "there is no command '%s'; `dlc --help` lists them", name);
        dlc_args_command_help((dlc_command)found, &text);
    } else {
        dlc_args_help(&text);
    }
    fputs(dlc_str_text(&text), stdout);
    dlc_str_deinit(&text);
    return DLC_OK;
}

static dlc_status run(dlc_cli *cli)
{
    if (cli->args.version) {
        printf("dlc %s\n", DLC_VERSION);
        return DLC_OK;
    }
    if (cli->args.help && cli->args.command != DLC_COMMAND_help) {
        dlc_str text = {0};
        dlc_args_command_help(cli->args.command, &text);
        fputs(dlc_str_text(&text), stdout);
        dlc_str_deinit(&text);
        return DLC_OK;
    }
    return run_command[cli->args.command](cli);
}

int main(int argc, char **argv)
{
    dlc_cli cli = {.arena = dlc_arena_create(0)};
    dlc_diag_init(&cli.diag, cli.arena);
    dlc_status status = dlc_args_parse(argc, argv, &cli.args, cli.arena, &cli.diag);
    cli.args.json = dlc_args_want_json(argc, argv);
    int wants_text =
        argc < 2 || cli.args.help || cli.args.version || cli.args.command == DLC_COMMAND_help;
    if (status == DLC_OK)
        status = run(&cli);
    dlc_progress(&cli, NULL);
    fflush(stdout);
    if (cli.args.json && !(wants_text && status == DLC_OK))
        report_json(&cli, status);
    else
        dlc_report_messages(&cli);
    status = flush(&cli, argc < 2 && status == DLC_OK ? DLC_USAGE : status);
    cJSON_Delete(cli.json);
    dlc_arena_destroy(cli.arena);
    return (int)status;
}
