/* linked IMAGE.npy LOGITS.npy: runs the digits model linked into this program and compares with the expected logits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "digits.h"
#include "dlc/runtime.h"

/* The data of a version 1 npy file of f32, and how many elements it has. */
static float *read_npy(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    unsigned char head[10];
    if (!file || fread(head, 1, sizeof head, file) != sizeof head || memcmp(head, "\x93NUMPY\x01", 7))
        return NULL;
    long start = 10 + head[8] + 256L * head[9];
    fseek(file, 0, SEEK_END);
    *n = (size_t)(ftell(file) - start) / sizeof(float);
    fseek(file, start, SEEK_SET);
    float *data = malloc(*n * sizeof *data);
    if (data && fread(data, sizeof *data, *n, file) != *n)
        return NULL;
    fclose(file);
    return data;
}

static int fail(const char *what)
{
    fprintf(stderr, "linked: %s: %s\n", what, dlcrt_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    size_t npixels = 0, nlogits = 0;
    float *image = argc == 3 ? read_npy(argv[1], &npixels) : NULL;
    float *expected = argc == 3 ? read_npy(argv[2], &nlogits) : NULL;
    dlcrt_executable *executable;
    dlcrt_context *context;
    if (!image || !expected)
        return fail("two npy files are needed");
    if (dlcrt_executable_from(&dlc_executable_digits, &executable) != DLC_OK ||
        dlcrt_context_create(executable, NULL, &context) != DLC_OK)
        return fail("the model does not load");
    dlcrt_tensor input = {.data = image, .dtype = DLC_F32, .rank = 4, .dims = {(int64_t)(npixels / 64), 1, 8, 8}};
    dlcrt_tensor output = {0};
    if (dlcrt_context_run(context, &input, 1, &output, 1) != DLC_OK)
        return fail("the model does not run");
    double worst = 0, largest = 0;
    for (size_t i = 0; i < nlogits; i++) {
        worst = fmax(worst, fabs((double)((float *)output.data)[i] - expected[i]));
        largest = fmax(largest, fabs((double)expected[i]));
    }
    printf("largest error over largest value %.3g\n", worst / largest);
    dlcrt_context_destroy(context);
    dlcrt_executable_close(executable);
    free(image);
    free(expected);
    return output.rank == 2 && output.size_bytes == nlogits * sizeof(float) && worst <= 1e-5 * largest ? 0 : 1;
}
