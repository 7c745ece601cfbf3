/*
 * A folder of executables by content. An executable's name is a hash of the bytes of the model and
 * of the files beside it, and of all that changes its code. Reading a large model only to hash it
 * would cost more than opening its executable, so a second kind of entry remembers, for a path and
 * options, the files' sizes, times and numbers and what they led to:
 *
 *   KEY.so            the executable
 *   KEY.files         its first line: KEY of a .so; then a line per file: size mtime inode path
 *
 * Entries appear by renaming, whole or not at all; a missing or unreadable one is made again.
 */
#include "compiler/driver.h"
#include "compiler/machine.h"
#include "compiler/tuned.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dlc/abi.h"
#include "dlc/checksum.h"
#include "ir/schedule/target.h"

/* Two unlike 64-bit hashes as text. */
typedef struct {
    char text[33];
} key;

static key key_of(const void *bytes, size_t size_bytes)
{
    key k;
    snprintf(k.text, sizeof k.text, "%016" PRIx64 "%016" PRIx64, dlc_checksum(bytes, size_bytes),
             dlc_hash(bytes, size_bytes, DLC_ABI_VERSION));
    return k;
}

/* --- what changes the code --- */
static void add_target(dlc_str *out, const char *name, const char *machine)
{
    const dlc_target *t = NULL;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    if (dlc_machine_target(name, machine, &diag, &t) != DLC_OK)
        t = NULL;
    dlc_arena_destroy(arena);
    if (!t)
        dlc_str_printf(out, "target %s\n", name); /* opening the model refuses it */
    else
        dlc_str_printf(out, "target %s %s %s %" PRIx32 " %" PRIu32 " %" PRIu32 " %" PRIu32 " %016" PRIx64 "\n",
                       t->name, t->triple, t->cpu, t->facts, t->vector_bytes, t->l1_bytes,
                       t->l2_bytes, dlc_hash(t->machine, sizeof *t->machine, 0)); /* doubles alone, without gaps */
}

static void add_targets(dlc_str *out, const char *names, const char *machine)
{
    for (const char *at = names ? names : "native"; *at;) {
        size_t n = strcspn(at, ",");
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        add_target(out, name, machine);
        at += at[n] ? n + 1 : n;
    }
}

/* Names that end in .so: targets and strategies that are programs. */
static int is_program(const char *names)
{
    const char *at = names ? strstr(names, ".so") : NULL;
    return at && (!at[3] || at[3] == ',');
}

static void add_bytes_of(dlc_str *out, const char *path)
{
    FILE *stream = fopen(path, "rbe");
    char part[4096];
    for (size_t got; stream && (got = fread(part, 1, sizeof part, stream));)
        dlc_str_addn(out, part, got);
    if (stream)
        fclose(stream);
}

/* A plan of fusion by its bytes; false for a strategy that is a program. */
static int add_fusion(dlc_str *out, const char *fusion)
{
    size_t n = fusion ? strlen(fusion) : 0;
    dlc_str_printf(out, "fusion %s\n", fusion ? fusion : "");
    if (is_program(fusion))
        return 0;
    if (n < 5 || strcmp(fusion + n - 5, ".json") != 0)
        return 1;
    add_bytes_of(out, fusion);
    return 1;
}

static int add_options(dlc_str *out, const dlc_options *o)
{
    dlc_str_printf(out, "dlc %s %d\n", dlc_version(), DLC_ABI_VERSION);
    add_targets(out, o->target, o->machine);
    dlc_str_printf(out, "passes %s\nemulate %d\nfold %" PRIu64 "\nrewrite %s\nwinograd %s\n",
                   o->passes ? o->passes : "", o->emulate_gpu, o->max_fold_bytes, o->rewrite ? o->rewrite : "",
                   o->winograd ? o->winograd : "");
    for (uint32_t i = 0; i < o->nshapes; i++) {
        dlc_str_printf(out, "shape %s", o->shapes[i].name);
        for (uint32_t d = 0; d < o->shapes[i].rank; d++)
            dlc_str_printf(out, " %" PRId64, o->shapes[i].dims[d]);
        dlc_str_add(out, "\n");
    }
    for (uint32_t i = 0; i < o->nvalues; i++)
        dlc_str_printf(out, "value %s %s\n", o->values[i].name, o->values[i].text);
    if (o->schedules)
        add_bytes_of(out, o->schedules);
    add_bytes_of(out, dlc_tuned_file(o->tuned, o->target));
    return !is_program(o->target) && add_fusion(out, o->fusion);
}

/* --- what a path led to --- */
static void add_file(dlc_str *out, const char *path)
{
    struct stat info = {0};
    if (stat(path, &info))
        return;
    dlc_str_printf(out, "%lld %lld.%09ld %llu %s\n", (long long)info.st_size,
                   (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                   (unsigned long long)info.st_ino, path);
}

/* The whole file, or nothing of one that is not there. */
static void read_whole(const char *path, dlc_str *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char part[4096];
    ssize_t got = 0;
    while (fd >= 0 && (got = read(fd, part, sizeof part)) > 0)
        dlc_str_addn(out, part, (size_t)got);
    if (got < 0)
        dlc_str_deinit(out);
    if (fd >= 0)
        close(fd);
}

/* The line tells a file as it is now. */
static int is_as_it_was(const char *line, size_t n)
{
    dlc_str now = {0};
    char copy[PATH_MAX + 128];
    if (n >= sizeof copy)
        return 0;
    *(char *)mempcpy(copy, line, n) = '\0';
    if (strchr(copy, '/'))
        add_file(&now, strchr(copy, '/'));
    int is_same = now.n == n + 1 && !memcmp(dlc_str_text(&now), line, n);
    dlc_str_deinit(&now);
    return is_same;
}

/* The first line of the entry when all its files are as they were. */
static int read_files(const char *entry, key *found)
{
    dlc_str text = {0};
    read_whole(entry, &text);
    const char *at = dlc_str_text(&text);
    int is_whole = text.n && at[text.n - 1] == '\n' && strlen(at) == text.n;
    int is_same = is_whole && strcspn(at, "\n") == sizeof found->text - 1;
    if (is_same)
        *(char *)mempcpy(found->text, at, sizeof found->text - 1) = '\0';
    for (at += is_same ? sizeof found->text : 0; is_same && *at; at += at[0] == '\n') {
        size_t n = strcspn(at, "\n");
        is_same = is_as_it_was(at, n);
        at += n;
    }
    dlc_str_deinit(&text);
    return is_same;
}

/* Lost when it cannot be written: the next start hashes again. */
static void write_files(const char *entry, const dlc_str *text)
{
    dlc_arena *arena = dlc_arena_create(0);
    dlc_output output;
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    if (dlc_output_open(&output, entry, &diag) == DLC_OK) {
        output.is_temporary = 1;
        if (dlc_output_write(&output, text->data, text->n, &diag) == DLC_OK)
            (void)!dlc_output_commit(&output, 0666, &diag);
        dlc_output_abandon(&output);
    }
    dlc_arena_destroy(arena);
}

/* --- finding --- */
typedef struct {
    const char *path, *folder;
    char real[PATH_MAX];
    dlc_str options, files;
    char *file;
    size_t file_bytes;
} search;

static int fill_file(search *s, const key *k)
{
    int n = snprintf(s->file, s->file_bytes, "%s/%s.so", s->folder, k->text);
    return n > 0 && (size_t)n < s->file_bytes;
}

static char *entry_of(const search *s)
{
    dlc_str text = {0};
    char *path = NULL;
    dlc_str_printf(&text, "%s\n%s", s->real, dlc_str_text(&s->options));
    key k = key_of(text.data, text.n);
    dlc_str_deinit(&text);
    return asprintf(&path, "%s/%s.files", s->folder, k.text) < 0 ? NULL : path;
}

/* Hashes the model as it was read: its own bytes and those of the files beside it. */
static dlc_status hash_model(search *s, dlc_model *model, key *result)
{
    dlc_map map;
    dlc_str text = {0};
    const void *bytes;
    size_t size_bytes;
    DLC_TRY(dlc_map_open(s->real, &map, &model->diag));
    key k = key_of(map.bytes ? map.bytes : (const uint8_t *)"", map.size_bytes);
    dlc_map_close(&map);
    dlc_str_printf(&text, "%s\n%s", k.text, dlc_str_text(&s->options));
    const char *path;
    for (uint32_t i = 0;
         model->onnx && (path = dlc_onnx_external(model->onnx, i, &bytes, &size_bytes)); i++) {
        k = key_of(bytes ? bytes : "", size_bytes);
        dlc_str_printf(&text, "%s\n", k.text);
        char real[PATH_MAX];
        if (realpath(path, real))
            add_file(&s->files, real);
    }
    *result = key_of(text.data, text.n);
    dlc_str_deinit(&text);
    return DLC_OK;
}

static dlc_status make(search *s, const dlc_options *options, dlc_model **model, const char *entry)
{
    key k;
    add_file(&s->files, s->real); /* before it is read: a later change is then seen */
    DLC_TRY(dlc_model_open(s->path, options, model));
    DLC_TRY(hash_model(s, *model, &k));
    if (!fill_file(s, &k))
        return dlc_diag_fail(&(*model)->diag, DLC_USAGE, s->folder, "its path is too long");
    if (access(s->file, R_OK)) {
        dlc_make_folders(s->file);
        DLC_TRY(dlc_model_write(*model, "so", s->file, "model"));
    }
    dlc_str text = {0};
    dlc_str_printf(&text, "%s\n%s", k.text, dlc_str_text(&s->files));
    if (entry && !strchr(s->real, '\n'))
        write_files(entry, &text);
    dlc_str_deinit(&text);
    return DLC_OK;
}

/* A model that can hold a message. */
static dlc_status refuse(dlc_model **model, const dlc_options *options, dlc_status status,
                         const char *place, const char *text)
{
    dlc_options empty = {.target = options->target};
    (void)!dlc_model_open_bytes("", 0, place, &empty, model);
    if (!*model)
        return DLC_LIMIT;
    (*model)->diag.nmessages = 0;
    (*model)->options.log = options->log;
    (*model)->options.user = options->user;
    return dlc_model_tell(*model, dlc_diag_fail(&(*model)->diag, status, place, "%s", text));
}

dlc_status dlc_cache_find(const char *path, const dlc_options *options, const char *folder,
                          char *file, size_t file_bytes, dlc_model **model)
{
    search s = {.path = path, .folder = folder, .file = file, .file_bytes = file_bytes};
    dlc_options own;
    key k;
    dlc_options_take(&own, options);
    *model = NULL;
    if (!realpath(path, s.real))
        return refuse(model, &own, DLC_IO, path, strerror(errno));
    if (!add_options(&s.options, &own)) {
        dlc_str_deinit(&s.options);
        return refuse(model, &own, DLC_USAGE, path,
                      "what a strategy or target that is a program makes of it cannot be cached");
    }
    char *entry = entry_of(&s);
    dlc_status status = DLC_OK;
    if (!entry || !read_files(entry, &k) || !fill_file(&s, &k) || access(file, R_OK))
        status = make(&s, &own, model, entry);
    free(entry);
    dlc_str_deinit(&s.options);
    dlc_str_deinit(&s.files);
    return *model ? dlc_model_tell(*model, status) : status;
}
