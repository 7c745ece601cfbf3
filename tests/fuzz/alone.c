/*
 * A fuzz target without libFuzzer, for every compiler: its seeds as they are, then changed copies of them, the same each time.
 *
 *   fuzz_NAME [--rounds N] [--seconds S] FILE-OR-FOLDER…    seconds: of CPU time, so that what else runs takes no rounds away
 *
 * What ends it is in the file `fuzz-last`, in TMPDIR.
 */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/times.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

enum { MOST_SEEDS = 1024, MOST_BYTES = 65536, MOST_CHANGES = 5 };

typedef struct {
    uint8_t *bytes;
    size_t size_bytes;
} seed;

static seed seeds[MOST_SEEDS];
static uint32_t nseeds;
static uint64_t state = 1;
static const uint8_t *last;
static size_t last_bytes;

static uint32_t one_of(uint32_t below) /* splitmix64 */
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

static void add_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || nseeds == MOST_SEEDS) {
        fprintf(stderr, "%s is not read\n", path);
        exit(2);
    }
    seed *s = &seeds[nseeds++];
    s->bytes = malloc(MOST_BYTES);
    s->size_bytes = fread(s->bytes, 1, MOST_BYTES, file);
    fclose(file);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void add(const char *path)
{
    struct stat info;
    struct dirent **entries;
    char inside[1024];
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        add_file(path);
        return;
    }
    int n = scandir(path, &entries, NULL, by_name);
    for (int i = 0; i < n; i++) {
        snprintf(inside, sizeof inside, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && stat(inside, &info) == 0 && S_ISREG(info.st_mode))
            add_file(inside);
        free(entries[i]);
    }
    free(entries);
}

static void keep_last(int number)
{
    char path[1024];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/fuzz-last", folder && *folder ? folder : "/tmp");
    FILE *file = fopen(path, "wb");
    if (file) {
        fwrite(last, 1, last_bytes, file);
        fclose(file);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* A copy of just the size: who reads past it is seen. */
static void try(const uint8_t *bytes, size_t size_bytes)
{
    uint8_t *exact = malloc(size_bytes + !size_bytes);
    memcpy(exact, bytes, size_bytes);
    last = exact, last_bytes = size_bytes;
    LLVMFuzzerTestOneInput(exact, size_bytes);
    free(exact);
}

static void change(uint8_t *bytes, size_t *n)
{
    const seed *other = &seeds[one_of(nseeds)];
    size_t at = *n ? one_of((uint32_t)*n) : 0, length = 1 + one_of(16), from;
    switch (one_of(6)) {
    case 0: /* a bit */
        bytes[at] ^= (uint8_t)(1u << one_of(8));
        break;
    case 1: /* a byte */
        bytes[at] = (uint8_t)one_of(256);
        break;
    case 2: /* less */
        length = length < *n - at ? length : *n - at;
        memmove(bytes + at, bytes + at + length, *n - at - length);
        *n -= length;
        break;
    case 3: /* a word that means something somewhere */
        for (uint32_t k = 0; k < 4 && at + k < *n; k++)
            bytes[at + k] = (uint8_t)(one_of(2) ? 0xff : k == 3 ? 0x7f : 0);
        break;
    default: /* some of another seed */
        if (!other->size_bytes || *n + length > MOST_BYTES)
            break;
        from = one_of((uint32_t)other->size_bytes);
        length = length < other->size_bytes - from ? length : other->size_bytes - from;
        memmove(bytes + at + length, bytes + at, *n - at);
        memcpy(bytes + at, other->bytes + from, length);
        *n += length;
    }
}

static void try_changed(uint8_t *bytes)
{
    const seed *s = &seeds[one_of(nseeds)];
    size_t n = s->size_bytes;
    memcpy(bytes, s->bytes, n);
    for (uint32_t k = 1 + one_of(MOST_CHANGES); k-- > 0;)
        change(bytes, &n);
    try(bytes, n);
}

static double cpu_seconds(void)
{
    struct tms used;
    times(&used);
    return (double)(used.tms_utime + used.tms_stime + used.tms_cutime + used.tms_cstime) / (double)sysconf(_SC_CLK_TCK);
}

int main(int argc, char **argv)
{
    uint64_t nrounds = 1000, done = 0;
    double seconds = 1e9;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--rounds") && i + 1 < argc)
            nrounds = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
            seconds = atof(argv[++i]);
        else
            add(argv[i]);
    }
    if (!nseeds)
        seeds[nseeds++].bytes = calloc(1, MOST_BYTES);
    signal(SIGABRT, keep_last);
    signal(SIGSEGV, keep_last);
    uint8_t *bytes = malloc(MOST_BYTES + 16);
    double begun = cpu_seconds();
    for (uint32_t i = 0; i < nseeds; i++)
        try(seeds[i].bytes, seeds[i].size_bytes);
    while (done < nrounds && cpu_seconds() - begun < seconds) {
        try_changed(bytes);
        done++;
    }
    printf("%u seeds, %llu changed\n", nseeds, (unsigned long long)done);
    free(bytes);
    for (uint32_t i = 0; i < nseeds; i++)
        free(seeds[i].bytes);
    return 0;
}
