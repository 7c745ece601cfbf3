/*
 * The differential tester.
 *
 *   differ [--seed N] [--count N] [--seconds S] [--jobs N] [--nodes N] [--ways few|all] [--keep FOLDER]
 *       random graphs: seed N, N + 1, …; what is wrong is shrunk and written to FOLDER/SEED.dlc
 *   differ --print SEED           that graph
 *   differ --plans …              each graph's plan under each strategy, exported and read back, gives the same bytes
 *   differ CASE.dlc…              these, every way
 *
 * Ends with 1 when anything was wrong.
 */


#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/differ/judge.h"
#include "tests/differ/make.h"

enum { MOST_JOBS = 64 };

/* Every way there is; a random graph takes some of them. */
static const way all_ways[] = {
    {"x86-64-v2", "none", NULL, NULL},      {"x86-64-v2", "pointwise", NULL, NULL}, {"x86-64-v2", "greedy", NULL, NULL},
    {"x86-64-v3", "none", NULL, NULL},      {"x86-64-v3", "pointwise", NULL, NULL}, {"x86-64-v3", "greedy", NULL, NULL},
    {"x86-64-v4", "none", NULL, NULL},      {"x86-64-v4", "pointwise", NULL, NULL}, {"x86-64-v4", "greedy", NULL, NULL},
    {"native", "greedy", NULL, NULL},       {"native", "greedy", "split=3", NULL},  {"native", "greedy", NULL, "4"},
    {"native", "greedy", "bf16x3=2", NULL}, {"native", "greedy", "samples=2", NULL}, {"x86-64-v3", "none", "samples=2", NULL},
    {"x86-64-v3", WILD_STRATEGY, NULL, NULL}, {"x86-64-v4", WILD_STRATEGY, NULL, NULL},
    {"sm_75", "greedy", NULL, NULL},        {"sm_75", "none", NULL, NULL},          {"sm_80", "pointwise", NULL, NULL},
};
enum { NWAYS = sizeof all_ways / sizeof *all_ways, FIRST_GPU = 17 };

typedef struct {
    uint64_t seed, count, jobs, nodes;
    double seconds;
    const char *keep;
    int takes_all, plans;
} settings;

/* What all workers share. */
typedef struct {
    uint64_t done, wrong, refused, nelems, nskipped, by_verdict[JUDGE_CRASHES + 1], by_way[NWAYS];
} counts;

static double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Neighbouring seeds have nothing in common. */
static uint64_t spread(uint64_t seed)
{
    draws d = {.state = seed};
    return draws_bits(&d);
}

static void make_text(const settings *s, uint64_t seed, dlc_str *out)
{
    draws from = {.state = spread(seed)};
    make_graph(&from, 2 + one_of(&from, (uint32_t)s->nodes - 1), out);
}

/* greedy somewhere, something else elsewhere, and a GPU for one in five. */
static uint32_t draw_ways(const settings *s, uint64_t seed, way *ways, uint32_t *which)
{
    draws from = {.state = spread(~seed)};
    uint32_t n = 0;
    for (uint32_t w = 0; w < NWAYS && s->takes_all; w++)
        which[n++] = w;
    if (!n) {
        which[n++] = 2 + 3 * one_of(&from, 3);
        which[n++] = one_of(&from, FIRST_GPU);
        if (one_of(&from, 5) == 0)
            which[n++] = FIRST_GPU + one_of(&from, NWAYS - FIRST_GPU);
    }
    for (uint32_t i = 0; i < n; i++)
        ways[i] = all_ways[which[i]];
    return n;
}

static void write_case(const settings *s, uint64_t seed, const char *text, const judgement *j)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%llu.dlc", s->keep, (unsigned long long)seed);
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return;
    }
    size_t head = strcspn(text, "\n") + 1;
    fprintf(file, "%.*s# %s\n%s", (int)head, text, j->text, text + head);
    fclose(file);
}

static void report(const settings *s, uint64_t seed, const char *text, const way *w, const judgement *j)
{
    printf("%llu %s: %s\n", (unsigned long long)seed, judge_names[j->verdict], j->text);
    if (!s->keep)
        return;
    char *less = s->plans || !w ? strdup(text) : shrink_text(text, w, j);
    write_case(s, seed, less, j);
    free(less);
}

static void try_seed(const settings *s, uint64_t seed, counts *c)
{
    dlc_str text = {0};
    judgement j;
    way ways[NWAYS];
    uint32_t which[NWAYS], n = draw_ways(s, seed, ways, which);
    make_text(s, seed, &text);
    if (s->plans)
        judge_plans(dlc_str_text(&text), s->keep ? s->keep : "/tmp", &j);
    else
        judge_apart(dlc_str_text(&text), ways, n, &j);
    __atomic_fetch_add(&c->done, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->by_verdict[j.verdict], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->nelems, j.nelems, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->nskipped, j.nskipped, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n; i++)
        __atomic_fetch_add(&c->by_way[which[i]], 1, __ATOMIC_RELAXED);
    if (j.verdict >= JUDGE_DIFFERS)
        report(s, seed, dlc_str_text(&text), &ways[j.way], &j);
    else if (j.verdict == JUDGE_REFUSED && getenv("DIFFER_REFUSALS"))
        printf("%llu refused: %s\n", (unsigned long long)seed, j.text);
    dlc_str_deinit(&text);
}

static void work(const settings *s, uint64_t job, counts *c, double until)
{
    for (uint64_t i = job; i < s->count && (s->seconds <= 0 || clock_now() < until); i += s->jobs)
        try_seed(s, s->seed + i, c);
}

static int run_random(const settings *s)
{
    counts *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double begun = clock_now();
    int status, crashed = 0;
    for (uint64_t job = 0; job < s->jobs; job++)
        if (fork() == 0) {
            work(s, job, c, begun + s->seconds);
            fflush(stdout);
            _exit(0);
        }
    while (wait(&status) > 0)
        crashed |= status;
    uint64_t wrong = c->by_verdict[JUDGE_DIFFERS] + c->by_verdict[JUDGE_FAILS] + c->by_verdict[JUDGE_CRASHES];
    printf("%llu graphs from seed %llu in %.0f s: %llu agree, %llu refused, %llu wrong; %.1f million elements, %.1f %% not judged\n",
           (unsigned long long)c->done, (unsigned long long)s->seed, clock_now() - begun,
           (unsigned long long)c->by_verdict[JUDGE_AGREES], (unsigned long long)c->by_verdict[JUDGE_REFUSED],
           (unsigned long long)wrong, (double)c->nelems * 1e-6,
           100 * (double)c->nskipped / (double)(c->nelems + c->nskipped + 1));
    return wrong || crashed;
}

static int run_case(const char *path)
{
    judgement j;
    dlc_map map;
    dlc_arena *arena = dlc_arena_create(0);
    dlc_diag diag;
    dlc_diag_init(&diag, arena);
    if (dlc_map_open(path, &map, &diag) != DLC_OK) {
        fprintf(stderr, "%s cannot be read\n", path);
        return 1;
    }
    char *text = strndup((const char *)map.bytes, map.size_bytes);
    judge_apart(text, all_ways, NWAYS, &j);
    printf("%s %s: %s\n", path, judge_names[j.verdict], j.text);
    free(text);
    dlc_map_close(&map);
    dlc_arena_destroy(arena);
    return j.verdict != JUDGE_AGREES;
}

static int print_seed(const settings *s, uint64_t seed)
{
    dlc_str text = {0};
    make_text(s, seed, &text);
    fputs(dlc_str_text(&text), stdout);
    dlc_str_deinit(&text);
    return 0;
}

static int usage(void)
{
    fputs("differ [--seed N] [--count N] [--seconds S] [--jobs N] [--nodes N] [--ways few|all] [--plans] [--keep FOLDER] [CASE…]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    settings s = {.seed = 1, .count = UINT64_MAX, .jobs = 1, .nodes = 10};
    int wrong = 0, ncases = 0;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(word, "--plans"))
            s.plans = 1;
        else if (strncmp(word, "--", 2))
            wrong |= run_case(word), ncases++;
        else if (++i == argc)
            return usage();
        else if (!strcmp(word, "--print"))
            return print_seed(&s, strtoull(value, NULL, 10));
        else if (!strcmp(word, "--keep"))
            s.keep = value;
        else if (!strcmp(word, "--ways"))
            s.takes_all = !strcmp(value, "all");
        else if (!strcmp(word, "--seconds"))
            s.seconds = atof(value);
        else {
            uint64_t *number = !strcmp(word, "--seed") ? &s.seed : !strcmp(word, "--count") ? &s.count
                             : !strcmp(word, "--jobs") ? &s.jobs : !strcmp(word, "--nodes") ? &s.nodes : NULL;
            if (!number)
                return usage();
            *number = strtoull(value, NULL, 10);
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct stat folder;
    if (s.keep && (stat(s.keep, &folder) || !S_ISDIR(folder.st_mode) || access(s.keep, W_OK | X_OK))) {
        fprintf(stderr, "differ: --keep %s: is no folder that can be written to\n", s.keep);
        return 2;
    }
    if (s.nodes < 2 || !s.jobs)
        return usage();
    return ncases ? wrong : run_random(&s);
}
