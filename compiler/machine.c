/*
 * The file that keeps what was measured: a line per quantity, named as in machine.def, or as a fact
 * and "_ops_per_us". What is not there is the row's. A file in the cache's folder is for the
 * processor it names; the folder may have come from another machine.
 */
#include "compiler/machine.h"
#include "compiler/texts.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "dlc/dlc.h"

static const struct {
    const char *text;
    size_t at;
    int is_probed;
} fields[] = {
#define DLC_MACHINE(field, probed, help) {#field, offsetof(dlc_machine, field), probed},
#include "ir/schedule/machine.def"
#undef DLC_MACHINE
};
enum { NFIELDS = sizeof fields / sizeof *fields };

static char processor_name[256];

/* "model name : …" of Linux, or nothing. */
static void read_name(void)
{
    FILE *stream = fopen("/proc/cpuinfo", "re");
    char line[512];
    while (stream && !*processor_name && fgets(line, sizeof line, stream)) {
        const char *colon = strchr(line, ':');
        line[strcspn(line, "\n")] = '\0';
        if (colon && (!strncmp(line, "model name", 10) || !strncmp(line, "CPU part", 8)))
            snprintf(processor_name, sizeof processor_name, "%s", colon + 1 + strspn(colon + 1, " "));
    }
    if (stream)
        fclose(stream);
}

/* Linux writes that file anew for each reader, with a measurement for every core, so one reading must do. */
void dlc_machine_name(char *name, size_t size_bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_name);
    snprintf(name, size_bytes, "%s", processor_name);
}

/* --- text --- */
static void print_line(dlc_str *out, const char *name, const char *end, double value)
{
    if (value > 0)
        dlc_str_printf(out, "%s%s %.0f\n", name, end, value);
}

void dlc_machine_print(const dlc_machine *machine, dlc_str *out)
{
    char name[256];
    dlc_machine_name(name, sizeof name);
    dlc_str_printf(out, "processor %s\n", name);
    for (uint32_t i = 0; i < NFIELDS; i++)
        if (fields[i].is_probed)
            print_line(out, fields[i].text, "",
                       *(const double *)((const char *)machine + fields[i].at));
    for (uint32_t i = 0; i < DLC_NFACTS; i++)
        print_line(out, dlc_target_facts[i].text, "_ops_per_us", machine->ops_per_us[i]);
}

/* Where the number called so is kept, or NULL. */
static double *place_of(dlc_machine *machine, const char *name, size_t n)
{
    static const char end[] = "_ops_per_us";
    for (uint32_t i = 0; i < NFIELDS; i++)
        if (fields[i].is_probed && strlen(fields[i].text) == n && !memcmp(fields[i].text, name, n))
            return (double *)((char *)machine + fields[i].at);
    for (uint32_t i = 0; i < DLC_NFACTS; i++) {
        size_t m = strlen(dlc_target_facts[i].text);
        if (n == m + sizeof end - 1 && !memcmp(dlc_target_facts[i].text, name, m) &&
            !memcmp(name + m, end, sizeof end - 1))
            return &machine->ops_per_us[i];
    }
    return NULL;
}

/* False at a line that is none of ours, which *bad then is. */
static int read_text(const char *text, char *processor, size_t size_bytes, dlc_machine *machine,
                     const char **bad)
{
    for (*bad = text; **bad; *bad += strcspn(*bad, "\n"), *bad += **bad == '\n') {
        size_t n = strcspn(*bad, " \n");
        char *end;
        if (n == 9 && !memcmp(*bad, "processor", 9)) {
            snprintf(processor, size_bytes, "%.*s",
                     (int)strcspn(*bad + 9 + ((*bad)[9] == ' '), "\n"),
                     *bad + 9 + ((*bad)[9] == ' '));
            continue;
        }
        double *place = place_of(machine, *bad, n), value = dlc_text_double(*bad + n, &end);
        int is_divided_by = place == &machine->cycles_per_us || place == &machine->near_bytes_per_us ||
                            place == &machine->far_bytes_per_us;
        if (!place || end == *bad + n || (*end != '\n' && *end) || !(value >= 0 && value < 1e12) || (is_divided_by && value == 0))
            return 0;
        *place = value;
    }
    return 1;
}

/* --- files --- */
const char *dlc_machine_file(char *path, size_t size_bytes)
{
    const char *folder = dlc_cache_folder();
    if (!folder || (size_t)snprintf(path, size_bytes, "%s/machine", folder) >= size_bytes)
        return NULL;
    return path;
}

/* *is_there: the file holds a machine, and this one if it is the cache's. */
static dlc_status read_file(const char *file, int is_named, dlc_diag *diag, dlc_machine *machine,
                            int *is_there)
{
    char processor[256] = "", here[256], text[8192];
    const char *bad;
    *is_there = 0;
    FILE *stream = fopen(file, "re");
    if (!stream)
        return is_named ? dlc_diag_fail(diag, DLC_IO, file, "%s", strerror(errno)) : DLC_OK;
    size_t n = fread(text, 1, sizeof text - 1, stream);
    fclose(stream);
    text[n] = '\0';
    if (!read_text(text, processor, sizeof processor, machine, &bad))
        return is_named ? dlc_diag_fail(diag, DLC_INVALID, file,
                                        "'%.*s' is nothing that dlc targets --probe writes",
                                        (int)strcspn(bad, "\n"), bad)
                        : DLC_OK;
    dlc_machine_name(here, sizeof here);
    *is_there = is_named || !strcmp(here, processor);
    return DLC_OK;
}

dlc_status dlc_machine_target(const char *name, const char *file, dlc_diag *diag,
                              const dlc_target **target)
{
    char path[4096];
    int is_there, is_named = file != NULL;
    *target = dlc_target_find(name);
    if (!*target || strncmp(name, "native", 6) != 0 || (name[6] && name[6] != '+'))
        return DLC_OK;
    if (!file && !(file = dlc_machine_file(path, sizeof path)))
        return DLC_OK;
    dlc_machine machine = *(*target)->machine;
    DLC_TRY(read_file(file, is_named, diag, &machine, &is_there));
    if (is_there)
        *target = dlc_target_on(*target, &machine);
    return DLC_OK;
}

void dlc_machine_describe(char *text, size_t size_bytes)
{
    const dlc_target *native = dlc_target_find("native"), *measured = native;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_str out = {0};
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    if (native && dlc_machine_target("native", NULL, &diag, &measured) == DLC_OK) {
        const dlc_machine *machine = measured->machine;
        dlc_str_printf(&out, "this processor: %s with", native->cpu);
        for (uint32_t i = 0; i < DLC_NFACTS; i++)
            if (native->facts >> i & 1)
                dlc_str_printf(&out, " %s", dlc_target_facts[i].text);
        if (measured == native)
            dlc_str_add(&out, "; --probe measures it");
        else
            dlc_str_printf(&out,
                           "; measured: %.0f GFLOP/s a thread, L2 %.0f GB/s, memory %.1f GB/s",
                           machine->ops_per_us[DLC_IS_FMA] / 1e3, machine->near_bytes_per_us / 1e3,
                           machine->far_bytes_per_us / 1e3);
    }
    snprintf(text, size_bytes, "%s", dlc_str_text(&out));
    dlc_str_deinit(&out);
    dlc_arena_destroy(arena);
}

static dlc_status probe(const char *file, dlc_diag *diag, dlc_str *text, char *path,
                        size_t size_bytes)
{
    const dlc_target *native = dlc_target_find("native");
    dlc_machine machine;
    if (!native)
        return dlc_diag_fail(diag, DLC_UNSUPPORTED, NULL, "there is no target for this processor");
    if (file)
        snprintf(path, size_bytes, "%s", file); /* "": nothing is kept */
    else if (dlc_machine_file(path, size_bytes))
        dlc_make_folders(path);
    else
        return dlc_diag_fail(diag, DLC_USAGE, NULL,
                             "neither XDG_CACHE_HOME nor HOME names a folder; name a file");
    dlc_machine_measure(native, &machine);
    dlc_machine_print(&machine, text);
    return *path ? dlc_output_whole(path, text->data, text->n, diag) : DLC_OK;
}

dlc_status dlc_machine_probe(const char *file, const char **written, const char **text)
{
    dlc_texts *texts = dlc_thread_texts();
    *written = *text = "";
    if (!texts)
        return DLC_LIMIT;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_str out = {0};
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    texts->probed_file[0] = '\0';
    dlc_status status = probe(file, &diag, &out, texts->probed_file, sizeof texts->probed_file);
    snprintf(texts->probed, sizeof texts->probed, "%s",
             status == DLC_OK ? dlc_str_text(&out)
             : diag.nmessages ? diag.messages[diag.nmessages - 1].text
                              : "");
    *written = texts->probed_file;
    *text = texts->probed;
    dlc_str_deinit(&out);
    dlc_arena_destroy(arena);
    return status;
}
