/* The program: finds the command, runs it, and reports once, at the end, as text or as one JSON
 * line. */
#include "base/budget.h"
#include "cli/cli.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef DLC_VERSION
#define DLC_VERSION "0"
#endif

static dlc_status (*const run_command[])(dlc_cli *) = {
#define DLC_COMMAND(name, operands, least, most, help) dlc_cmd_##name,
#include "cli/commands.def"
#undef DLC_COMMAND
};

/* ---- reports ---- */

static void report_json(dlc_cli *cli, dlc_status status)
{
    enum { SCHEMA = 1 }; /* raised when a member changes its meaning */
    cJSON *json = cli->json ? cli->json : cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "schema", SCHEMA);
    cJSON_AddStringToObject(json, "status", dlc_status_text(status));
    cJSON_AddNumberToObject(json, "exit", status);
    if (cli->diag.nmessages)
        cJSON_AddItemToObject(json, "messages", dlc_messages_json(&cli->diag));
    char *text = cJSON_PrintUnformatted(json);
    dlc_print(stdout, text ? text : "{}");
    puts("");
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

static void add_command(cJSON *list, dlc_command command)
{
    dlc_command_row row = dlc_command_get(command);
    dlc_option_row option;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToArray(list, json);
    cJSON_AddStringToObject(json, "name", row.name);
    cJSON_AddStringToObject(json, "operands", row.operands);
    cJSON_AddStringToObject(json, "help", row.help);
    cJSON *options = cJSON_AddArrayToObject(json, "options");
    for (uint32_t i = 0; dlc_option_get(command, i, &option); i++) {
        cJSON *each = cJSON_CreateObject();
        cJSON_AddItemToArray(options, each);
        cJSON_AddStringToObject(each, "name", option.name);
        if (option.letter)
            cJSON_AddStringToObject(each, "letter", (char[]){option.letter, 0});
        if (option.argument)
            cJSON_AddStringToObject(each, "argument", option.argument);
        cJSON_AddStringToObject(each, "help", option.help);
    }
}

/* Help about one command, or (DLC_COMMAND_COUNT) about all. */
static dlc_status show_help(dlc_cli *cli, dlc_command command)
{
    dlc_str text = {0};
    if (cli->args.json) {
        cli->json = cJSON_CreateObject();
        cJSON *list = cJSON_AddArrayToObject(cli->json, "commands");
        for (int i = 0; i < DLC_COMMAND_COUNT; i++)
            if (command == DLC_COMMAND_COUNT || command == (dlc_command)i)
                add_command(list, (dlc_command)i);
        return DLC_OK;
    }
    if (command == DLC_COMMAND_COUNT)
        dlc_args_help(&text);
    else
        dlc_args_command_help(command, &text);
    fputs(dlc_str_text(&text), stdout);
    dlc_str_deinit(&text);
    return DLC_OK;
}

dlc_status dlc_cmd_help(dlc_cli *cli)
{
    if (!cli->args.operands.n)
        return show_help(cli, DLC_COMMAND_COUNT);
    const char *name = cli->args.operands.data[0];
    int found = dlc_command_find(name);
    if (found < 0)
        return dlc_args_unknown_command(name, &cli->diag);
    return show_help(cli, (dlc_command)found);
}

/* The library's lines "name: text" as members of the JSON result. */
static void add_members(cJSON *json, const char *lines)
{
    for (const char *end; (end = strchr(lines, '\n')); lines = end + 1) {
        char name[32], value[512];
        const char *colon = strchr(lines, ':');
        snprintf(name, sizeof name, "%.*s", (int)(colon - lines), lines);
        snprintf(value, sizeof value, "%.*s", (int)(end - colon - 2), colon + 2);
        cJSON_AddStringToObject(json, name, value);
    }
}

/* The first line is the program's; an installation without the compiler has no others. */
static dlc_status show_version(dlc_cli *cli)
{
    const dlc_library *library;
    dlc_diag unheard;
    dlc_diag_init(&unheard, cli->arena);
    const char *about = dlc_library_load(&library, &unheard) == DLC_OK
                            ? library->about()
                            : "compiler: not installed (libdlc.so)\n";
    cli->json = cJSON_CreateObject();
    cJSON_AddStringToObject(cli->json, "version", DLC_VERSION);
    add_members(cli->json, about);
    dlc_say(cli, "dlc %s\n%s", DLC_VERSION, cli->args.quiet ? "" : about);
    return DLC_OK;
}

static dlc_status run(dlc_cli *cli)
{
    if (cli->args.version)
        return show_version(cli);
    if (cli->args.help && cli->args.command != DLC_COMMAND_help)
        return show_help(cli, cli->args.command);
    return run_command[cli->args.command](cli);
}

/* A daemon may have closed the standard descriptors, and ignore the end of children: files opened
 * later must not become what is printed to, and children are waited for. */
static void stand_alone(dlc_cli *cli)
{
    cli->has_stdout = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
    int fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = dup(fd);
    if (fd >= 0)
        close(fd);
    signal(SIGCHLD, SIG_DFL);
}

/* A buffer that libc could not allocate would lose what is printed without a word. */
static void own_buffer(void)
{
    static char buffer[BUFSIZ];
    setvbuf(stdout, buffer, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof buffer);
}

/* For JSON, the library's too, which shares cJSON with the program. */
static void *alloc_or_leave(size_t size_bytes)
{
    void *memory = malloc(size_bytes);
    if (!memory)
        dlc_out_of_memory(size_bytes, DLC_OUT_OF_MEMORY);
    return memory;
}

int main(int argc, char **argv)
{
    dlc_cli cli = {.arena = dlc_arena_create(0)};
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = alloc_or_leave, .free_fn = free});
    stand_alone(&cli);
    own_buffer();
    dlc_diag_init(&cli.diag, cli.arena);
    dlc_status status = dlc_args_parse(argc, argv, &cli.args, cli.arena, &cli.diag);
    cli.args.json = dlc_args_want_json(argc, argv);
    dlc_budget budget = {.most_bytes = (size_t)cli.args.max_memory}; /* of files that are read here; the library's are its own */
    if (budget.most_bytes)
        dlc_budget_use(&budget);
    if (status == DLC_OK && !cli.args.help && !cli.args.version)
        status = dlc_cli_pipe(&cli);
    if (status == DLC_OK)
        status = run(&cli);
    dlc_progress(&cli, NULL);
    fflush(stdout);
    if (cli.args.json)
        report_json(&cli, status);
    else
        dlc_report_messages(&cli);
    status = flush(&cli, argc < 2 && status == DLC_OK ? DLC_USAGE : status);
    cJSON_Delete(cli.json);
    dlc_arena_destroy(cli.arena);
    return (int)status;
}
