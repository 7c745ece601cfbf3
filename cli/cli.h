/* What the commands share: the command line, messages, the JSON result. */
#ifndef DLC_CLI_CLI_H
#define DLC_CLI_CLI_H

#include "base/vec.h"
#include "cli/args.h"
#include "cli/library.h"
#include "dlc/runtime.h"

#include <cjson/cJSON.h>
#include <stdio.h>

typedef struct {
    dlc_arena *arena;
    dlc_diag diag;
    dlc_args args;
    cJSON *json; /* the command's result with --json, printed by main on the last line */
    const char *piped; /* the operand that stands for standard input, read into memory; or NULL */
    int piped_fd;
    int has_stdout; /* 0: it was closed when the program began */
    dlc_vec(const char *) written; /* paths that dlc_cli_may_write was asked about */
} dlc_cli;

#define DLC_COMMAND(name, operands, least, most, help)                                             \
    DLC_NODISCARD dlc_status dlc_cmd_##name(dlc_cli *cli);
#include "cli/commands.def"
#undef DLC_COMMAND

const char *dlc_status_text(dlc_status status);
/* As it is, but for characters that would steer a terminal (ESC, C1, marks of direction) and bytes that are no UTF-8: as \uXXXX,
 * which JSON takes, too. All that may hold a model's names goes through it. */
void dlc_print(FILE *to, const char *text);
/* Text for people, on standard output; nothing with --json. */
void dlc_say(const dlc_cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line about what goes on, on a terminal's standard error only; NULL clears it. */
void dlc_progress(const dlc_cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The runtime's last error as a message of this command. Returns status. */
dlc_status dlc_runtime_failed(dlc_cli *cli, dlc_status status, const char *place);
/* Messages so far, to standard error or as JSON array. */
void dlc_report_messages(const dlc_cli *cli);
cJSON *dlc_messages_json(const dlc_diag *diag);
double dlc_seconds(void); /* monotonic */
double dlc_median(double *values, uint32_t n); /* puts them in order; 0: there are none */

/*
 * Makes a text about the model on the command line and prints it (opt: to --output). With --json it
 * is the result: as it is when format is "json", else under `key`.
 */
/* A file that holds the whole text, or what it held before. */
DLC_NODISCARD dlc_status dlc_write_text(dlc_cli *cli, const char *path, const char *text);
DLC_NODISCARD dlc_status dlc_write_bytes(dlc_cli *cli, const char *path, const void *bytes, size_t size_bytes);
DLC_NODISCARD dlc_status dlc_show_text(dlc_cli *cli, dlc_text_kind kind, const char *key,
                                       const char *format);

/* --- cli/model.c: models and executables behind one name --- */
/* Options of the compiler from the command line. Shapes are parsed into cli->arena. */
DLC_NODISCARD dlc_status dlc_cli_options(dlc_cli *cli, dlc_options *options);
/* Refuses options that say how to compile, where M is compiled already. */
DLC_NODISCARD dlc_status dlc_cli_check_compiled(dlc_cli *cli, const char *path);
/* The library, loaded on first use; its messages and status become the command's. */
DLC_NODISCARD dlc_status dlc_cli_open(dlc_cli *cli, const char *path, const dlc_options *options,
                                      dlc_model **model);
void dlc_cli_close(dlc_cli *cli, dlc_model *model); /* moves the model's messages to cli->diag */
/* An operand "-" becomes the path of a file in memory that holds standard input. */
DLC_NODISCARD dlc_status dlc_cli_pipe(dlc_cli *cli);
int dlc_is_executable_file(const char *path);
/*
 * Refuses a file that the command line names for reading. Whatever a command writes is asked about before it opens a model: dlc_cli_open
 * then refuses files of that model. (cli/overwrite.c)
 */
DLC_NODISCARD dlc_status dlc_cli_may_write(dlc_cli *cli, const char *path);
/* -o is `-`, which compile and opt take for standard output; whatever else is written has a file. */
int dlc_cli_is_stdout(const dlc_cli *cli);
/* And one that cannot be written, before anything takes time. */
DLC_NODISCARD dlc_status dlc_cli_can_write(dlc_cli *cli, const char *path);
/* The file of the i-th output in --output-dir, and whether as many may be written there; without that option they may. */
const char *dlc_cli_output(dlc_cli *cli, uint32_t i);
DLC_NODISCARD dlc_status dlc_cli_may_write_outputs(dlc_cli *cli, uint32_t noutputs);
/* What dlc_cli_open asks: whether the model at `path`, where the line names it, was read from a file that the command writes. */
DLC_NODISCARD dlc_status dlc_cli_check_model(dlc_cli *cli, const dlc_library *library, const char *path, dlc_model *model);
typedef struct {
    uint64_t artifact_bytes;
    double load_ms;
} dlc_load_info;
/*
 * Opens M: an executable as it is; a model is compiled to a file without a name by a child process, so
 * that this process never holds the compiler. The artifact's size and the time to load it go where
 * info is not NULL.
 */
DLC_NODISCARD dlc_status dlc_load(dlc_cli *cli, const char *path, const dlc_options *options,
                                  dlcrt_executable **result, dlc_load_info *info);
/* The same in two steps, to open an artifact several times: a descriptor of the executable's file; then the file as it is, or a
 * copy of it, which lies in other pages of memory. */
DLC_NODISCARD dlc_status dlc_artifact_make(dlc_cli *cli, const char *path, const dlc_options *options, int *file);
DLC_NODISCARD dlc_status dlc_artifact_open(dlc_cli *cli, const char *path, int file, int is_copied,
                                           dlcrt_executable **result, dlc_load_info *info);

#endif
