/*
 * Runs emulated kernels on the data of a file, once each, and writes what they made: the other half
 * of emulated.c, compiled together with the generated C, with its sanitizers. Every buffer is an
 * allocation of its own, so the address sanitizer sees where it ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    void *const *buffers;
    const long *symbols;
    void *scratch;
    long *fault;
} kernel_args;
extern void (*const trial_kernels[])(const kernel_args *args, long begin, long end);

static FILE *in, *out;

static void *read_bytes(long n)
{
    void *bytes = NULL;
    if (posix_memalign(&bytes, 64, n ? (size_t)n : 1) || (n && fread(bytes, (size_t)n, 1, in) != 1))
        exit(3);
    return bytes;
}

static long read_number(void)
{
    long number;
    if (fread(&number, sizeof number, 1, in) != 1)
        exit(3);
    return number;
}

static void run(long k)
{
    long nbuffers = read_number(), nsymbols = read_number(), units = read_number(),
         block = read_number(), stride = read_number(), scratch_bytes = read_number(), fault = 0;
    void *buffers[64], *scratch = NULL;
    long sizes[64], is_output[64], *symbols = read_bytes(nsymbols * (long)sizeof(long));
    for (long b = 0; b < nbuffers; b++) {
        sizes[b] = read_number();
        is_output[b] = read_number();
        buffers[b] = read_bytes(sizes[b]);
    }
    if (posix_memalign(&scratch, 64, scratch_bytes ? (size_t)scratch_bytes : 1))
        exit(3);
    memset(scratch, 0xcb, (size_t)scratch_bytes);
    kernel_args args = {buffers, symbols, scratch, &fault};
    if (stride == 0)
        trial_kernels[k](&args, 0, units);
    for (long first = 0; stride && first < units; first += block) {
        long end = first + block < units ? first + block : units;
        if (first / block % stride == 0 || end == units)
            trial_kernels[k](&args, first, end);
    }
    fwrite(&fault, sizeof fault, 1, out);
    for (long b = 0; b < nbuffers; b++) {
        if (is_output[b])
            fwrite(buffers[b], (size_t)sizes[b], 1, out);
        free(buffers[b]);
    }
    free(symbols);
    free(scratch);
}

int main(int argc, char **argv)
{
    if (argc != 3 || !(in = fopen(argv[1], "rb")) || !(out = fopen(argv[2], "wb")))
        return 3;
    long n = read_number();
    for (long k = 0; k < n; k++)
        run(k);
    return fclose(out) ? 3 : 0;
}
