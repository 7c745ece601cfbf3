/*
 * dlc completion, dlc man: what shells complete and what man shows, from the tables of commands and
 * options, so that neither can fall behind them.
 */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What stands behind an option when it is no file: words, or a command that prints them. */
static const struct {
    const char *option, *words, *command;
} values[] = {
    {"target", NULL, "dlc targets"},      {"fusion", NULL, "dlc strategies"},
    {"passes", NULL, "dlc passes"},       {"dump-after", NULL, "dlc passes"},
    {"emit", "so o a h ll asm cu", NULL}, {"format", "text json dot", NULL},
    {"device", "cpu cuda", NULL},         {"method", "mse minmax percentile entropy", NULL},
    {"against", "oracle onnxruntime", NULL}, {"bisect", "nodes passes", NULL},
};
enum { NVALUES = sizeof values / sizeof *values };

static int find_values(const char *option)
{
    for (int i = 0; i < NVALUES; i++)
        if (!strcmp(values[i].option, option))
            return i;
    return -1;
}

/* The text with a backslash before each of `special`. */
static void add_escaped(dlc_str *out, const char *text, const char *special)
{
    for (; *text; text++) {
        if (strchr(special, *text))
            dlc_str_add(out, "\\");
        dlc_str_addn(out, text, 1);
    }
}

static dlc_status show(dlc_cli *cli, dlc_str *text)
{
    if (cli->args.json) {
        cli->json = cJSON_CreateObject();
        cJSON_AddStringToObject(cli->json, "text", dlc_str_text(text));
    } else {
        fputs(dlc_str_text(text), stdout);
    }
    dlc_str_deinit(text);
    return DLC_OK;
}

/* --- bash --- */
static void add_bash_words(dlc_str *out, dlc_command command)
{
    dlc_option_row option;
    for (uint32_t i = 0; dlc_option_get(command, i, &option); i++)
        dlc_str_printf(out, "%s--%s", i ? " " : "", option.name);
}

static void add_commands(dlc_str *out)
{
    for (int i = 0; i < DLC_COMMAND_COUNT; i++)
        dlc_str_printf(out, "%s%s", i ? " " : "", dlc_command_name((dlc_command)i));
}

static void print_bash(dlc_str *out)
{
    dlc_str_add(
        out, "_dlc() {\n"
             "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
             "    if [ \"$COMP_CWORD\" = 1 ]; then\n        words=\"");
    add_commands(out);
    dlc_str_add(out, " --help --version\"\n    else\n        case $before in\n");
    for (int i = 0; i < NVALUES; i++)
        if (values[i].words)
            dlc_str_printf(out, "        --%s) words=\"%s\" ;;\n", values[i].option,
                           values[i].words);
        else
            dlc_str_printf(out, "        --%s) words=$(%s 2>/dev/null | cut -d ' ' -f 1) ;;\n",
                           values[i].option, values[i].command);
    dlc_str_add(out, "        *)\n            case ${COMP_WORDS[1]} in\n");
    for (int i = 0; i < DLC_COMMAND_COUNT; i++) {
        dlc_str_printf(out, "            %s) words=\"", dlc_command_name((dlc_command)i));
        add_bash_words(out, (dlc_command)i);
        dlc_str_add(out, i == DLC_COMMAND_completion ? " bash zsh fish" : "");
        if (i == DLC_COMMAND_help) {
            dlc_str_add(out, " ");
            add_commands(out);
        }
        dlc_str_add(out, "\" ;;\n");
    }
    dlc_str_add(out, "            esac ;;\n        esac\n    fi\n"
                     "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
                     "complete -o default -F _dlc dlc\n");
}

/* --- zsh --- */
static void add_zsh_option(dlc_str *out, const dlc_option_row *option)
{
    int at = find_values(option->name);
    dlc_str_printf(out, " \\\n            '--%s%s[", option->name, option->argument ? "=" : "");
    for (const char *text = option->help; *text; text++) {
        if (*text == '\'')
            dlc_str_add(out, "'\\'");
        else if (strchr("[]:\\", *text))
            dlc_str_add(out, "\\");
        dlc_str_addn(out, text, 1);
    }
    dlc_str_add(out, "]");
    if (option->argument && at >= 0 && values[at].words)
        dlc_str_printf(out, ":value:(%s)", values[at].words);
    else if (option->argument && at >= 0)
        dlc_str_printf(out, ":value:($(%s 2>/dev/null | cut -d \" \" -f 1))", values[at].command);
    else if (option->argument)
        dlc_str_add(out, ":value:_files");
    dlc_str_add(out, "'");
}

static void print_zsh(dlc_str *out)
{
    dlc_option_row option;
    dlc_str_add(out, "#compdef dlc\n_dlc() {\n    local -a commands=(\n");
    for (int i = 0; i < DLC_COMMAND_COUNT; i++) {
        dlc_command_row row = dlc_command_get((dlc_command)i);
        dlc_str_printf(out, "        \"%s:", row.name);
        add_escaped(out, row.help, "\"\\`$");
        dlc_str_add(out, "\"\n");
    }
    dlc_str_add(out, "    )\n    if (( CURRENT == 2 )); then\n        _describe command commands\n"
                     "        return\n    fi\n    local command=$words[2]\n    shift words\n"
                     "    (( CURRENT-- ))\n    case $command in\n");
    for (int i = 0; i < DLC_COMMAND_COUNT; i++) {
        dlc_str_printf(out, "    %s)\n        _arguments", dlc_command_name((dlc_command)i));
        for (uint32_t k = 0; dlc_option_get((dlc_command)i, k, &option); k++)
            add_zsh_option(out, &option);
        dlc_str_printf(out, " \\\n            '*:operand:%s' ;;\n",
                       i == DLC_COMMAND_completion ? "(bash zsh fish)" : "_files");
    }
    dlc_str_add(out, "    esac\n}\ncompdef _dlc dlc\n");
}

/* --- fish --- */
static void add_fish_option(dlc_str *out, const char *command, const dlc_option_row *option)
{
    int at = find_values(option->name);
    dlc_str_printf(out, "complete -c dlc -n '__fish_seen_subcommand_from %s' -l %s", command,
                   option->name);
    if (option->letter)
        dlc_str_printf(out, " -s %c", option->letter);
    if (option->argument && at >= 0 && values[at].words)
        dlc_str_printf(out, " -x -a '%s'", values[at].words);
    else if (option->argument && at >= 0)
        dlc_str_printf(out, " -x -a '(%s 2>/dev/null | cut -d \" \" -f 1)'", values[at].command);
    else if (option->argument)
        dlc_str_add(out, " -r");
    dlc_str_add(out, " -d '");
    add_escaped(out, option->help, "'\\");
    dlc_str_add(out, "'\n");
}

static void print_fish(dlc_str *out)
{
    dlc_option_row option;
    for (int i = 0; i < DLC_COMMAND_COUNT; i++) {
        dlc_command_row row = dlc_command_get((dlc_command)i);
        dlc_str_printf(out, "complete -c dlc -f -n __fish_use_subcommand -a %s -d '", row.name);
        add_escaped(out, row.help, "'\\");
        dlc_str_add(out, "'\n");
        for (uint32_t k = 0; dlc_option_get((dlc_command)i, k, &option); k++)
            add_fish_option(out, row.name, &option);
    }
    dlc_str_add(out, "complete -c dlc -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh "
                     "fish'\n");
}

dlc_status dlc_cmd_completion(dlc_cli *cli)
{
    static const struct {
        const char *name;
        void (*print)(dlc_str *);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    static const char *const names[] = {"bash", "zsh", "fish"};
    const char *wanted = cli->args.operands.data[0];
    for (uint32_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        dlc_str text = {0};
        if (strcmp(shells[i].name, wanted) != 0)
            continue;
        shells[i].print(&text);
        return show(cli, &text);
    }
    const char *near = dlc_nearest(wanted, names, sizeof names / sizeof *names);
    return dlc_diag_fail(&cli->diag, DLC_USAGE, NULL,
                         "there is no completion for '%s'%s%s%s; there are bash, zsh and fish",
                         wanted, near ? "; '" : "", near ? near : "", near ? "' is near it" : "");
}

/* --- man --- */
/* A character beyond ASCII as \[uXXXX]; returns how many bytes of UTF-8 it took. */
static uint32_t add_roff_wide(dlc_str *out, const char *text)
{
    unsigned char first = (unsigned char)*text;
    uint32_t n = first >= 0xf0   ? 4
                 : first >= 0xe0 ? 3
                                 : 2,
             code = first & (0xffu >> (n + 1)), i = 1;
    for (; i < n && ((unsigned char)text[i] & 0xc0) == 0x80; i++)
        code = code << 6 | ((unsigned char)text[i] & 0x3f);
    dlc_str_printf(out, "\\[u%04" PRIX32 "]", code);
    return i;
}

static void add_roff(dlc_str *out, const char *text)
{
    static const struct {
        char character;
        const char *escape;
    } escapes[] = {{'\\', "\\e"}, {'-', "\\-"}, {'`', "\\(ga"}, {'\'', "\\(aq"}, {'.', "\\&."}};
    while (*text) {
        const char *escape = NULL;
        for (uint32_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
            if (escapes[i].character == *text)
                escape = escapes[i].escape;
        if ((unsigned char)*text >= 0x80) {
            text += add_roff_wide(out, text);
            continue;
        }
        dlc_str_addn(out, escape ? escape : text, escape ? strlen(escape) : 1);
        text++;
    }
}

static void add_roff_option(dlc_str *out, const dlc_option_row *option)
{
    dlc_str_add(out, ".TP\n");
    if (option->letter)
        dlc_str_printf(out, "\\fB\\-%c\\fR, ", option->letter);
    dlc_str_add(out, "\\fB\\-\\-");
    add_roff(out, option->name);
    dlc_str_add(out, "\\fR");
    if (option->argument) {
        dlc_str_add(out, " \\fI");
        add_roff(out, option->argument);
        dlc_str_add(out, "\\fR");
    }
    dlc_str_add(out, "\n");
    add_roff(out, option->help);
    dlc_str_add(out, "\n");
}

static void add_roff_command(dlc_str *out, dlc_command command)
{
    dlc_command_row row = dlc_command_get(command);
    dlc_option_row option;
    dlc_str_printf(out, ".SS dlc %s", row.name);
    dlc_str_add(out, *row.operands ? " " : "");
    add_roff(out, row.operands);
    dlc_str_add(out, "\n");
    add_roff(out, row.help);
    dlc_str_add(out, "\n");
    for (uint32_t i = 0; dlc_option_get(command, i, &option); i++)
        add_roff_option(out, &option);
}

dlc_status dlc_cmd_man(dlc_cli *cli)
{
    static const dlc_status statuses[] = {DLC_OK,          DLC_INVALID,  DLC_USAGE,
                                          DLC_UNSUPPORTED, DLC_MISMATCH, DLC_IO,
                                          DLC_NO_DEVICE,   DLC_LIMIT,    DLC_CANCELLED,
                                          DLC_INTERNAL};
    dlc_str out = {0};
    dlc_str_printf(&out, ".TH DLC 1 \"\" \"dlc %s\" \"User Commands\"\n", dlcrt_version());
    dlc_str_add(&out,
                ".SH NAME\ndlc \\- ahead-of-time compiler for ONNX models\n"
                ".SH SYNOPSIS\n.B dlc\n.I command\n[options] [operands]\n"
                ".SH DESCRIPTION\ndlc turns an ONNX model into one file of machine code that "
                "runs without the compiler. "
                "M is an ONNX model or an executable; \\- is standard input.\n.SH COMMANDS\n");
    for (int i = 0; i < DLC_COMMAND_COUNT; i++)
        add_roff_command(&out, (dlc_command)i);
    dlc_str_add(&out, ".SH EXIT STATUS\n");
    for (uint32_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        dlc_str_printf(&out, ".TP\n%d\n%s\n", statuses[i], dlc_status_text(statuses[i]));
    dlc_str_add(&out, ".SH ENVIRONMENT\n.TP\n.B DLC_NUM_THREADS\nthreads of a run\n"
                      ".TP\n.B DLC_DEVICE\nwhere executables run: cpu, cuda, cuda:N\n"
                      ".TP\n.B DLC_NVRTC\nwhere NVRTC is, a file or a folder\n"
                      ".TP\n.B DLC_KERNEL_CACHE\na folder of this user where code of kernels for CPUs, emulated ones too, is kept, so that a "
                      "model compiled again takes it from there\n"
                      ".TP\n.B DLC_VERIFY\nset, and not 0: what a compilation makes is checked as it goes, the graph and kernels after every pass, "
                      "places in memory and LLVM's modules\n");
    return show(cli, &out);
}
