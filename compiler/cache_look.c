/*
 * Whether a folder of executables (cache.c) has the one of a model. It needs no compiler, so it is a library of its own as well:
 * a start that finds its executable does not load libdlc, which where LLVM is linked in (wheels) has 60 MB to relocate.
 */
#include "compiler/cache.h"
#include "compiler/machine.h"
#include "compiler/tuned.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "compiler/options.h"
#include "dlc/abi.h"
#include "dlc/checksum.h"
#include "ir/schedule/target.h"

dlc_cache_key dlc_cache_key_of(const void *bytes, size_t size_bytes)
{
    dlc_cache_key k;
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

static void add_shapes(dlc_str *out, const char *what, const dlc_shape *shapes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        dlc_str_printf(out, "%s %s", what, shapes[i].name);
        for (uint32_t d = 0; d < shapes[i].rank; d++)
            dlc_str_printf(out, " %" PRId64, shapes[i].dims[d]);
        dlc_str_add(out, "\n");
    }
}

static int add_options(dlc_str *out, const dlc_options *o)
{
    dlc_str_printf(out, "dlc %s %d\n", DLC_VERSION, DLC_ABI_VERSION);
    add_targets(out, o->target, o->machine);
    dlc_str_printf(out, "passes %s\nemulate %d\nfold %" PRIu64 "\nrewrite %s\nwinograd %s\nmatrix %s\nprecision %s\n",
                   o->passes ? o->passes : "", o->emulate_gpu, o->max_fold_bytes, o->rewrite ? o->rewrite : "",
                   o->winograd ? o->winograd : "", o->matrix ? o->matrix : "", o->precision ? o->precision : "");
    add_shapes(out, "shape", o->shapes, o->nshapes);
    add_shapes(out, "typical", o->typical, o->ntypical);
    for (uint32_t i = 0; i < o->nvalues; i++)
        dlc_str_printf(out, "value %s %s\n", o->values[i].name, o->values[i].text);
    if (o->schedules)
        add_bytes_of(out, o->schedules);
    add_bytes_of(out, dlc_tuned_file(o->tuned, o->target));
    return !is_program(o->target) && add_fusion(out, o->fusion);
}

/* --- what a path led to --- */
static long long ns_of(const struct timespec *time)
{
    return (long long)time->tv_sec * 1000000000 + time->tv_nsec;
}

void dlc_cache_add_file(dlc_str *out, const char *path)
{
    struct stat info;
    if (stat(path, &info))
        dlc_str_printf(out, "- %s\n", path);
    else
        dlc_str_printf(out, "%lld %lld %lld %llu %s\n", (long long)info.st_size, ns_of(&info.st_mtim),
                       ns_of(&info.st_ctim), (unsigned long long)info.st_ino, path);
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
    const char *path = copy;
    for (int field = *copy == '-' ? 1 : 4; field && path; field--)
        path = strchr(path, ' ') ? strchr(path, ' ') + 1 : NULL;
    if (path)
        dlc_cache_add_file(&now, path);
    int is_same = now.n == n + 1 && !memcmp(dlc_str_text(&now), line, n);
    dlc_str_deinit(&now);
    return is_same;
}

/* The KEY that the entry has behind `head` when all its files are as they were, and their lines in s->files. */
static int read_entry(dlc_cache_search *s, const char *entry, const dlc_str *head, dlc_cache_key *found)
{
    dlc_str text = {0};
    read_whole(entry, &text);
    const char *at = dlc_str_text(&text);
    int is_whole = text.n && at[text.n - 1] == '\n' && strlen(at) == text.n;
    int is_same = is_whole && !strncmp(at, dlc_str_text(head), head->n);
    at += is_same ? head->n : 0;
    is_same = is_same && strcspn(at, "\n") == sizeof found->text - 1;
    if (is_same)
        *(char *)mempcpy(found->text, at, sizeof found->text - 1) = '\0';
    at += is_same ? sizeof found->text : 0;
    const char *lines = at;
    for (; is_same && *at; at += at[0] == '\n') {
        size_t n = strcspn(at, "\n");
        is_same = is_as_it_was(at, n);
        at += n;
    }
    if (is_same)
        dlc_str_add(&s->files, lines);
    dlc_str_deinit(&text);
    return is_same;
}

/* --- the entry of this boot --- */

/* The options say nothing but a target that may be part of a file's name: what such a name does not tell has no entry. */
static int is_plain(const dlc_options *o)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+,-";
    size_t n = o->target ? strlen(o->target) : 1;
    return n && n <= 100 && (!o->target || strspn(o->target, letters) == n) && !o->fusion && !o->passes && !o->nshapes && !o->nvalues &&
           !o->emulate_gpu && !o->machine && !o->max_fold_bytes && !o->rewrite && !o->schedules && !o->tuned && !o->winograd && !o->matrix &&
           !o->precision && !o->ntypical;
}

static char *start_of(const dlc_cache_search *s, const dlc_options *options)
{
    struct stat info;
    char *path = NULL;
    if (!is_plain(options) || stat(s->real, &info) ||
        asprintf(&path, "%s/%llx-%llx-%s.files", s->folder, (unsigned long long)info.st_dev, (unsigned long long)info.st_ino,
                 options->target ? options->target : "native") < 0)
        return NULL;
    return path;
}

/* The line of this version on this machine since it was started, until when its processor stays the same; nothing: Linux does not tell. */
static void add_here(dlc_str *out)
{
    dlc_str boot = {0};
    struct utsname system;
    const char *folder = dlc_cache_folder();
    read_whole("/proc/sys/kernel/random/boot_id", &boot);
    if (boot.n && !uname(&system))
        dlc_str_printf(out, "%s/%d %s %.*s %s\n", DLC_VERSION, DLC_ABI_VERSION, system.machine, (int)strcspn(boot.data, "\n"), boot.data,
                       folder ? folder : "");
    dlc_str_deinit(&boot);
}

static int read_start(dlc_cache_search *s, dlc_cache_key *found)
{
    dlc_str here = {0};
    add_here(&here);
    int is_same = here.n && read_entry(s, s->start, &here, found);
    const char *model = is_same ? dlc_str_text(&s->files) : NULL;
    for (int field = 4; field && model; field--)
        model = strchr(model, ' ') ? strchr(model, ' ') + 1 : NULL;
    size_t n = strlen(s->real);
    is_same = model && !strncmp(model, s->real, n) && model[n] == '\n';
    if (!is_same)
        dlc_str_deinit(&s->files);
    dlc_str_deinit(&here);
    return is_same;
}

/* What of this processor was measured, before it is read: a later change is then seen. */
static void add_sides(dlc_cache_search *s, const dlc_options *options)
{
    char machine[PATH_MAX];
    const char *tuned = dlc_tuned_file(options->tuned, options->target);
    if (dlc_machine_file(machine, sizeof machine))
        dlc_cache_add_file(&s->sides, machine);
    if (*tuned)
        dlc_cache_add_file(&s->sides, tuned);
}

/* --- writing --- */
static void write_entry(const char *entry, const dlc_str *text)
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

static void note_start(const dlc_cache_search *s, const dlc_cache_key *key)
{
    dlc_str text = {0};
    add_here(&text);
    int is_told = text.n != 0;
    dlc_str_printf(&text, "%s\n%s%s", key->text, dlc_str_text(&s->files), dlc_str_text(&s->sides));
    if (is_told && s->start && !strchr(s->real, '\n'))
        write_entry(s->start, &text);
    dlc_str_deinit(&text);
}

void dlc_cache_note(const dlc_cache_search *s, const dlc_cache_key *key)
{
    dlc_str text = {0};
    dlc_str_printf(&text, "%s\n%s", key->text, dlc_str_text(&s->files));
    if (s->entry && !strchr(s->real, '\n'))
        write_entry(s->entry, &text);
    dlc_str_deinit(&text);
    note_start(s, key);
}

/* --- finding --- */
int dlc_cache_fill(dlc_cache_search *s, const dlc_cache_key *k)
{
    int n = snprintf(s->file, s->file_bytes, "%s/%s.so", s->folder, k->text);
    return n > 0 && (size_t)n < s->file_bytes;
}

static char *entry_of(const dlc_cache_search *s)
{
    dlc_str text = {0};
    char *path = NULL;
    dlc_str_printf(&text, "%s\n%s", s->real, dlc_str_text(&s->options));
    dlc_cache_key k = dlc_cache_key_of(text.data, text.n);
    dlc_str_deinit(&text);
    return asprintf(&path, "%s/%s.files", s->folder, k.text) < 0 ? NULL : path;
}

int dlc_cache_begin(dlc_cache_search *s, const dlc_options *options)
{
    if (!realpath(s->path, s->real))
        return 0;
    s->start = start_of(s, options);
    return 1;
}

static int is_there(dlc_cache_search *s, const dlc_cache_key *key)
{
    return dlc_cache_fill(s, key) && !access(s->file, R_OK);
}

int dlc_cache_is_known(dlc_cache_search *s, const dlc_options *options)
{
    dlc_cache_key key;
    dlc_str nothing = {0};
    if (s->start && read_start(s, &key) && is_there(s, &key))
        return 1;
    dlc_str_deinit(&s->files);
    add_sides(s, options);
    s->has_key = add_options(&s->options, options);
    s->entry = s->has_key ? entry_of(s) : NULL;
    int is_known = s->entry && read_entry(s, s->entry, &nothing, &key) && is_there(s, &key);
    if (is_known)
        note_start(s, &key);
    else
        dlc_str_deinit(&s->files);
    return is_known;
}

void dlc_cache_end(dlc_cache_search *s)
{
    free(s->start);
    free(s->entry);
    dlc_str_deinit(&s->options);
    dlc_str_deinit(&s->files);
    dlc_str_deinit(&s->sides);
}

int dlc_cache_look(const char *path, const dlc_options *options, const char *folder, char *file, size_t file_bytes)
{
    dlc_cache_search s = {.path = path, .folder = folder, .file = file, .file_bytes = file_bytes};
    dlc_options own;
    dlc_options_take(&own, options);
    int is_known = dlc_cache_begin(&s, &own) && dlc_cache_is_known(&s, &own);
    dlc_cache_end(&s);
    return is_known;
}
