/* The command line: commands.def and options.def turned into one struct, a parser and the help
 * texts. */
#ifndef DLC_CLI_ARGS_H
#define DLC_CLI_ARGS_H

#include "base/diag.h"
#include "base/near.h"
#include "base/str.h"

typedef enum {
#define DLC_COMMAND(name, operands, least, most, help) DLC_COMMAND_##name,
#include "cli/commands.def"
#undef DLC_COMMAND
    DLC_COMMAND_COUNT
} dlc_command;

typedef struct {
    const char **data;
    uint32_t n;
} dlc_texts;

typedef int dlc_arg_FLAG;
typedef const char *dlc_arg_TEXT;
typedef uint64_t dlc_arg_COUNT; /* below 2^32; 0: not given */
typedef uint64_t dlc_arg_BYTES; /* 0: not given */
typedef double dlc_arg_REAL;    /* below 0: not given */
typedef dlc_texts dlc_arg_LIST;

typedef struct {
    dlc_command command;
    dlc_texts operands;
#define DLC_OPTION(field, name, letter, kind, argument, on, help) dlc_arg_##kind field;
#include "cli/options.def"
#undef DLC_OPTION
} dlc_args;

/* Parses everything; --help and --version stop the checks. DLC_USAGE says what is wrong and what is
 * near it. */
DLC_NODISCARD dlc_status dlc_args_parse(int argc, char **argv, dlc_args *args, dlc_arena *arena,
                                        dlc_diag *diag);
/* Whether --json is on the line, wherever parsing stopped. */
int dlc_args_want_json(int argc, char **argv);

const char *dlc_command_name(dlc_command command);
/* Text of `dlc --help` and of `dlc help COMMAND`. */
void dlc_args_help(dlc_str *out);
void dlc_args_command_help(dlc_command command, dlc_str *out);
int dlc_command_find(const char *name); /* or -1 */
DLC_NODISCARD dlc_status dlc_args_unknown_command(const char *name, dlc_diag *diag); /* fails, with what is near it */

/* The tables' rows, for manual and completion. */
typedef struct {
    const char *name, *operands, *help;
} dlc_command_row;
typedef struct {
    const char *name;
    char letter;          /* 0: none */
    const char *argument; /* NULL: a flag */
    const char *help;
} dlc_option_row;
dlc_command_row dlc_command_get(dlc_command command);
/* The i-th option that the command takes; false when there is no such one. */
int dlc_option_get(dlc_command command, uint32_t i, dlc_option_row *result);

#endif
