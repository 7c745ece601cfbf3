/*
 * The command line. Both tables become arrays once; parsing (getopt_long), the help texts and the
 * nearest name for a typing error are all loops over them.
 */
#include "cli/args.h"

#include "base/text.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name, *operands;
    int least, most;
    const char *help;
} command_row;

static const command_row commands[] = {
#define DLC_COMMAND(name, operands, least, most, help) {#name, operands, least, most, help},
#include "cli/commands.def"
#undef DLC_COMMAND
};

typedef enum { KIND_FLAG, KIND_TEXT, KIND_COUNT, KIND_BYTES, KIND_REAL, KIND_LIST } option_kind;

typedef struct {
    const char *name;
    char letter;
    uint8_t kind;
    const char *argument;
    uint32_t on; /* bit set of commands */
    size_t field;
    const char *help;
} option_row;

#define ON(command) (1u << DLC_COMMAND_##command)
#define EVERYWHERE (0xffffffffu)
#define RUNNING (ON(run) | ON(bench) | ON(test) | ON(report) | ON(compare))
#define COMPILING (ON(compile) | RUNNING | ON(inspect) | ON(explain) | ON(opt))
static const option_row options[] = {
#define DLC_OPTION(field, name, letter, kind, argument, on, help)                                  \
    {name, letter, KIND_##kind, argument, on, offsetof(dlc_args, field), help},
#include "cli/options.def"
#undef DLC_OPTION
};
enum { NOPTIONS = sizeof options / sizeof *options, FIRST_CODE = 256, MAX_WORD = 40 };

const char *dlc_command_name(dlc_command command)
{
    return commands[command].name;
}

dlc_command_row dlc_command_get(dlc_command command)
{
    const command_row *row = &commands[command];
    return (dlc_command_row){row->name, row->operands, row->help};
}

int dlc_option_get(dlc_command command, uint32_t i, dlc_option_row *result)
{
    for (uint32_t row = 0; row < NOPTIONS; row++) {
        const option_row *option = &options[row];
        if (!(option->on & (1u << command)) || i--)
            continue;
        *result = (dlc_option_row){option->name, option->letter, option->argument, option->help};
        return 1;
    }
    return 0;
}

int dlc_command_find(const char *name)
{
    for (int i = 0; i < DLC_COMMAND_COUNT; i++)
        if (!strcmp(commands[i].name, name))
            return i;
    return -1;
}

/* ---- unknown names ---- */

dlc_status dlc_args_unknown_command(const char *name, dlc_diag *diag)
{
    const char *names[DLC_COMMAND_COUNT];
    for (int i = 0; i < DLC_COMMAND_COUNT; i++)
        names[i] = commands[i].name;
    for (uint32_t i = 0; i < NOPTIONS; i++)
        if ((options[i].on & ON(help)) && !strcmp(options[i].name, name))
            return dlc_diag_fail(diag, DLC_USAGE, NULL, "there is no command '%s'; `dlc --%s` is an option", name, name);
    const char *near = dlc_nearest(name, names, DLC_COMMAND_COUNT);
    return near ? dlc_diag_fail(diag, DLC_USAGE, NULL, "there is no command '%s'; '%s' is near it",
                                name, near)
                : dlc_diag_fail(diag, DLC_USAGE, NULL,
                                "there is no command '%s'; `dlc --help` lists them", name);
}

static dlc_status unknown_option(const char *command, uint32_t on, const char *text, dlc_diag *diag)
{
    char word[MAX_WORD + 1];
    const char *bare = text + strspn(text, "-");
    snprintf(word, sizeof word, "%.*s", (int)strcspn(bare, "="), bare);
    const char *names[NOPTIONS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < NOPTIONS; i++)
        if (options[i].on & on)
            names[n++] = options[i].name;
    const char *near = dlc_nearest(word, names, n);
    return near ? dlc_diag_fail(diag, DLC_USAGE, NULL, "%s has no option '%s'; '--%s' is near it",
                                command, text, near)
                : dlc_diag_fail(diag, DLC_USAGE, NULL,
                                "%s has no option '%s'; `dlc %s%s` lists them", command, text,
                                on == ON(help) ? "--help" : "help ", on == ON(help) ? "" : command);
}

/* ---- values ---- */

static dlc_status bad_value(const option_row *option, const char *text, const char *wanted,
                            dlc_diag *diag)
{
    return dlc_diag_fail(diag, DLC_USAGE, NULL, "--%s is '%s', where %s is wanted", option->name,
                         text, wanted);
}

static dlc_status parse_count(const option_row *option, const char *text, uint64_t *result,
                              dlc_diag *diag)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    uint64_t scale = 1;
    if (option->kind == KIND_BYTES && *end && strchr("KMG", *end)) {
        scale = *end == 'K' ? 1u << 10 : *end == 'M' ? 1u << 20 : 1u << 30;
        end++;
    }
    if (errno || *end || end == text || *text == '-' || value < 1 ||
        __builtin_mul_overflow(value, scale, result))
        return bad_value(
            option, text,
            option->kind == KIND_BYTES ? "a size such as 64M" : "a whole number from 1", diag);
    if (option->kind == KIND_COUNT && value > UINT32_MAX)
        return bad_value(option, text, "a number below 2^32", diag);
    return DLC_OK;
}

static dlc_status parse_real(const option_row *option, const char *text, double *result,
                             dlc_diag *diag)
{
    char *end;
    *result = dlc_text_double(text, &end);
    if (!strcmp(option->argument, "S") && !strcmp(end, "s")) /* of seconds */
        end++;
    if (*end || end == text || !isfinite(*result) || *result < 0)
        return bad_value(option, text, "a number from 0", diag);
    return DLC_OK;
}

/* `capacity`: as many texts as the line has words. */
static void add_text(dlc_texts *list, const char *text, uint32_t capacity, dlc_arena *arena)
{
    if (!list->data)
        list->data = dlc_new_array(arena, const char *, capacity);
    list->data[list->n++] = text;
}

static dlc_status store(const option_row *option, const char *text, uint32_t nwords, dlc_args *args,
                        dlc_arena *arena, dlc_diag *diag)
{
    void *field = (char *)args + option->field;
    switch ((option_kind)option->kind) {
    case KIND_FLAG:
        *(int *)field = 1;
        return DLC_OK;
    case KIND_TEXT:
        if (!*text)
            return bad_value(option, text, option->argument, diag);
        *(const char **)field = text;
        return DLC_OK;
    case KIND_COUNT:
    case KIND_BYTES:
        return parse_count(option, text, field, diag);
    case KIND_REAL:
        return parse_real(option, text, field, diag);
    case KIND_LIST:
        add_text(field, text, nwords, arena);
        return DLC_OK;
    }
    return DLC_INTERNAL;
}

/* ---- parsing ---- */

/* The options of one command in getopt's form: "+:" (stop at nothing, report a missing argument),
 * letters, long names. */
typedef struct {
    struct option rows[NOPTIONS + 1];
    char letters[2 * NOPTIONS + 3];
} getopt_table;

static void make_table(uint32_t on, getopt_table *table)
{
    *table = (getopt_table){.letters = ":"};
    uint32_t n = 0;
    for (uint32_t i = 0; i < NOPTIONS; i++) {
        if (!(options[i].on & on))
            continue;
        int has_argument = options[i].kind == KIND_FLAG ? no_argument : required_argument;
        table->rows[n++] =
            (struct option){options[i].name, has_argument, NULL, FIRST_CODE + (int)i};
        if (options[i].letter)
            strcat(table->letters, (char[]){options[i].letter, has_argument ? ':' : 0, 0});
    }
}

static uint32_t row_of_code(int code)
{
    if (code >= FIRST_CODE)
        return (uint32_t)(code - FIRST_CODE);
    uint32_t i = 0;
    while (i < NOPTIONS && options[i].letter != code)
        i++;
    return i;
}

static dlc_status refuse(const char *command, uint32_t on, int code, char **argv, dlc_diag *diag)
{
    const char *text = argv[optind - 1];
    uint32_t row = optopt ? row_of_code(optopt) : NOPTIONS;
    if (code == ':' && row < NOPTIONS)
        return dlc_diag_fail(diag, DLC_USAGE, NULL, "--%s needs %s behind it", options[row].name,
                             options[row].argument);
    if (row < NOPTIONS && !strncmp(text, "--", 2))
        return dlc_diag_fail(diag, DLC_USAGE, NULL, "--%s takes no value", options[row].name);
    if (!strncmp(text, "--", 2) || !optopt)
        return unknown_option(command, on, text, diag);
    return unknown_option(command, on, (char[]){'-', (char)optopt, 0}, diag);
}

static dlc_status check_operands(const command_row *command, const dlc_args *args, dlc_diag *diag)
{
    if ((int)args->operands.n < command->least)
        return dlc_diag_fail(diag, DLC_USAGE, NULL, "dlc %s needs %s behind it; see `dlc help %s`",
                             command->name, command->operands, command->name);
    if (!command->most && args->operands.n)
        return dlc_diag_fail(diag, DLC_USAGE, NULL, "dlc %s takes no operand; '%s' is one too many", command->name,
                             args->operands.data[0]);
    if (command->most >= 0 && (int)args->operands.n > command->most)
        return dlc_diag_fail(diag, DLC_USAGE, NULL,
                             "dlc %s takes %d operand%s (%s); '%s' is one too many", command->name,
                             command->most, command->most == 1 ? "" : "s", command->operands,
                             args->operands.data[command->most]);
    for (uint32_t i = 0; i < args->operands.n; i++)
        if (!*args->operands.data[i])
            return dlc_diag_fail(diag, DLC_USAGE, NULL, "operand %u of dlc %s is empty, where %s is wanted", i + 1,
                                 command->name, command->operands);
    return DLC_OK;
}

static dlc_status parse_options(int argc, char **argv, uint32_t on, const char *command,
                                dlc_args *args, dlc_arena *arena, dlc_diag *diag)
{
    getopt_table table;
    make_table(on, &table);
    opterr = 0;
    optind = 1;
    for (int code; (code = getopt_long(argc, argv, table.letters, table.rows, NULL)) != -1;) {
        uint32_t row = code == ':' || code == '?' ? NOPTIONS : row_of_code(code);
        if (row == NOPTIONS)
            return refuse(command, on, code, argv, diag);
        DLC_TRY(store(&options[row], optarg, (uint32_t)argc, args, arena, diag));
    }
    for (int i = optind; i < argc; i++)
        add_text(&args->operands, argv[i], (uint32_t)argc, arena);
    return DLC_OK;
}

static void reset(dlc_args *args)
{
    *args = (dlc_args){.command = DLC_COMMAND_help};
    for (uint32_t i = 0; i < NOPTIONS; i++)
        if (options[i].kind == KIND_REAL)
            *(double *)((char *)args + options[i].field) = -1;
}

dlc_status dlc_args_parse(int argc, char **argv, dlc_args *args, dlc_arena *arena, dlc_diag *diag)
{
    reset(args);
    if (argc < 2)
        return DLC_OK;
    if (argv[1][0] == '-')
        return parse_options(argc, argv, ON(help), "dlc", args, arena, diag);
    int found = dlc_command_find(argv[1]);
    if (found < 0)
        return dlc_args_unknown_command(argv[1], diag);
    args->command = (dlc_command)found;
    DLC_TRY(parse_options(argc - 1, argv + 1, 1u << found, argv[1], args, arena, diag));
    if (args->help || args->version)
        return DLC_OK;
    return check_operands(&commands[found], args, diag);
}

int dlc_args_want_json(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--json"))
            return 1;
    return 0;
}

/* ---- help ---- */

void dlc_args_help(dlc_str *out)
{
    dlc_str_add(
        out,
        "dlc compiles ONNX models ahead of time into one small file.\n\n"
        "    dlc compile model.onnx -o model.so\n"
        "    dlc run model.so --inputs inputs.npz --outputs outputs.npz\n\n"
        "Commands (M is an ONNX model or an executable; `dlc help COMMAND` for the options):\n");
    for (int i = 0; i < DLC_COMMAND_COUNT; i++)
        dlc_str_printf(out, "  %-11s %s\n", commands[i].name, commands[i].help);
    dlc_str_add(
        out,
        "\nExit status: 0 ok, 1 model or input invalid, 2 usage, 3 unsupported, 4 numbers differ, "
        "5 input or "
        "output failed,\n6 device or CPU feature missing, 7 resource limit, 70 defect of dlc.\n");
}

/* Help wraps at 100 columns behind a margin. */
static void add_wrapped(dlc_str *out, const char *text)
{
    enum { MARGIN = 32, WIDTH = 100 - MARGIN };
    while (strlen(text) > WIDTH) {
        size_t n = WIDTH;
        while (n && text[n] != ' ')
            n--;
        dlc_str_printf(out, "%.*s\n%*s", (int)n, text, MARGIN, "");
        text += n + 1;
    }
    dlc_str_printf(out, "%s\n", text);
}

void dlc_args_command_help(dlc_command command, dlc_str *out)
{
    const command_row *row = &commands[command];
    dlc_str_printf(out, "dlc %s%s%s [options]: %s\n\n", row->name, *row->operands ? " " : "",
                   row->operands, row->help);
    for (uint32_t i = 0; i < NOPTIONS; i++) {
        const option_row *option = &options[i];
        if (!(option->on & (1u << command)))
            continue;
        char left[64], letter[8] = "    ";
        if (option->letter)
            snprintf(letter, sizeof letter, "-%c, ", option->letter);
        snprintf(left, sizeof left, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
                 option->argument ? option->argument : "");
        dlc_str_printf(out, "%-*s", 31, left);
        dlc_str_add(out, strlen(left) >= 31 ? "\n                                " : " ");
        add_wrapped(out, option->help);
    }
}
