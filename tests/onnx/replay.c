/*
 * replay [-j N] TARGETS FILE…: models whose modules must read back as they print, and whose own schedules, as text, must make the
 * same code. A folder stands for the model.onnx of each folder in it. Models that are refused as they are (exit status 3 of dlc)
 * are counted. Models take the targets in turns; with DLC_LONG each takes all.
 */
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/replay.h"

enum { MOST_JOBS = 64 };

typedef struct {
    char **paths;
    uint32_t n, cap;
} path_list;

typedef struct {
    uint32_t results[REPLAY_RIGHT + 1];
} tally;

static void add_path(path_list *list, char *path)
{
    if (list->n == list->cap) {
        list->cap = list->cap ? 2 * list->cap : 64;
        list->paths = realloc(list->paths, list->cap * sizeof *list->paths);
    }
    list->paths[list->n++] = path;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_folder(path_list *list, const char *folder)
{
    DIR *stream = opendir(folder);
    struct dirent *entry;
    struct stat info;
    uint32_t first = list->n;
    char *path;
    while (stream && (entry = readdir(stream))) {
        if (asprintf(&path, "%s/%s/model.onnx", folder, entry->d_name) >= 0 && stat(path, &info) == 0)
            add_path(list, path);
    }
    if (stream)
        closedir(stream);
    qsort(list->paths + first, list->n - first, sizeof *list->paths, by_name);
}

/* Target t of those that commas part; "": there are no more. */
static const char *target_at(const char *targets, uint32_t t)
{
    while (t-- && *targets) {
        targets += strcspn(targets, ",");
        targets += *targets == ',';
    }
    return targets;
}

/* Every njobs-th model, in a process of its own; its tally is the pipe's. */
static void run_some(const path_list *list, uint32_t job, uint32_t njobs, const char *targets, int out)
{
    tally counts = {0};
    uint32_t ntargets = 0;
    while (*target_at(targets, ntargets))
        ntargets++;
    for (uint32_t i = job; i < list->n; i += njobs)
        for (uint32_t t = 0; *target_at(targets, t); t++) {
            char target[64], message[400];
            const char *at = target_at(targets, t);
            if (!getenv("DLC_LONG") && i / njobs % ntargets != t) /* a job's models take turns */
                continue;
            snprintf(target, sizeof target, "%.*s", (int)strcspn(at, ","), at);
            int result = replay_model(list->paths[i], target, message, sizeof message);
            counts.results[result]++;
            if (result == REPLAY_DIFFERS)
                printf("%s, %s: %s\n", list->paths[i], target, message);
        }
    fflush(stdout);
    _exit(write(out, &counts, sizeof counts) != sizeof counts);
}

static uint32_t usable_jobs(const char *text)
{
    long n = text ? atol(text) : sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MOST_JOBS ? MOST_JOBS : (uint32_t)n;
}

int main(int argc, char **argv)
{
    int at = argc > 2 && !strcmp(argv[1], "-j") ? 3 : 1, ends[2];
    uint32_t njobs = usable_jobs(at == 3 ? argv[2] : NULL);
    path_list list = {0};
    tally all = {0}, one;
    struct stat info;
    if (argc < at + 2 || pipe(ends))
        return fprintf(stderr, "replay [-j N] TARGETS FILE...\n"), 2;
    for (int i = at + 1; i < argc; i++)
        stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode) ? add_folder(&list, argv[i]) : add_path(&list, strdup(argv[i]));
    for (uint32_t job = 0; job < njobs; job++)
        if (fork() == 0)
            run_some(&list, job, njobs, argv[at], ends[1]);
    close(ends[1]);
    int nfailed = 0, status;
    while (wait(&status) > 0)
        nfailed += status != 0;
    while (read(ends[0], &one, sizeof one) == sizeof one)
        for (uint32_t r = 0; r <= REPLAY_RIGHT; r++)
            all.results[r] += one.results[r];
    printf("%u models for %s: %u read back and replay the same, %u do not, %u are refused\n", list.n, argv[at],
           all.results[REPLAY_RIGHT], all.results[REPLAY_DIFFERS], all.results[REPLAY_REFUSED]);
    return nfailed || all.results[REPLAY_DIFFERS] || !all.results[REPLAY_RIGHT];
}
