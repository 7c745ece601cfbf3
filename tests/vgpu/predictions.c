/*
 * What the virtual GPU predicts for some kernels on each of its GPUs, kept in predictions.tsv until
 * a GPU tells how right it is. A kernel may become faster, not slower by more than a tenth;
 * DLC_BLESS=1 writes the file anew. And how a scale that was measured counts.
 */
#include "tests/vgpu/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/ptx/trial.h"
#include "tests/unit/suite.h"
#include "vgpu/predict.h"

static const char *const kept = "tests/vgpu/predictions.tsv";

static const struct {
    const char *name, *text;
} kernels[] = {
    {"matmul 128x384x384", "in x 128,384; const w 384,384; m = matmul x w; out m"},
    {"matmul 128x384x1536 gelu",
     "in x 128,384; const w 384,1536; const b 1536; const h scalar 0.5; m = matmul x w; "
     "a = add m b; e = erf a; g = mul a e; r = mul g h; out r"},
    {"matmul 128x1536x384", "in x 128,1536; const w 1536,384; m = matmul x w; out m"},
    {"matmul 256x256x256", "in x 256,256; in y 256,256; m = matmul x y; out m"},
    {"matmul 512x512x512 f16", "in x:f16 512,512; in y:f16 512,512; m = matmul x y; out m"},
    {"matmul 70x40x72 odd",
     "in x 70,40; const w 40,72; const b 72; m = matmul x w; a = add m b; out a"},
    {"gemv 1x2048x1000", "in x 1,2048; const w 2048,1000; m = matmul x w; out m"},
    {"scores 12x128x32x128", "in q 12,128,32; in k 12,32,128; m = matmul q k; out m"},
    {"attention 12x128x32",
     "in q 12,128,32; in k 12,32,128; in v 12,128,32; s = matmul q k; m = reduce_max s axes=2 "
     "keepdims=1; d = sub s m; e = exp d; l = reduce_sum e axes=2 keepdims=1; p = div e l; "
     "o = matmul p v; out o"},
    {"attention 12x197x64",
     "in q 12,197,64; in k 12,64,197; in v 12,197,64; s = matmul q k; m = reduce_max s axes=2 "
     "keepdims=1; d = sub s m; e = exp d; l = reduce_sum e axes=2 keepdims=1; p = div e l; "
     "o = matmul p v; out o"},
    {"convolution 3x3 14x14x64", "in x 1,64,14,14; const w 64,64,3,3; c = conv x w "
                                 "pads=1,1,1,1; r = relu c; out r"},
    {"convolution 1x1 14x14x256", "in x 1,256,14,14; const w 64,256,1,1; c = conv x w; out c"},
    {"convolution 3x3 7x7x128 f16",
     "in x:f16 1,128,7,7; const w:f16 64,128,3,3; c = conv x w pads=1,1,1,1; out c"},
    {"max pooling 3x3", "in x 1,64,28,28; p = max_pool x kernel=3,3 strides=2,2; out p"},
    {"softmax 1536x128",
     "in x 1536,128; m = reduce_max x axes=1 keepdims=1; d = sub x m; e = exp d; "
     "t = reduce_sum e axes=1 keepdims=1; s = div e t; out s"},
    {"layer norm 128x384",
     "in x 128,384; const g 384; const b 384; const e scalar 1e-5; m = reduce_mean x axes=1 "
     "keepdims=1; "
     "d = sub x m; q = mul d d; v = reduce_mean q axes=1 keepdims=1; a = add v e; r = sqrt a; "
     "n = div d r; o = mul n g; y = add o b; out y"},
    {"add 1048576", "in x 1048576; in y 1048576; a = add x y; out a"},
    {"exp 524288", "in x 524288; e = exp x; out e"},
    {"halves 1048576", "in x:f16 1048576; in y:f16 1048576; a = mul x y; out a"},
    {"bytes 1048576", "in x:u8 1048576; in y:u8 1048576; a = add x y; out a"},
    {"transpose 512x768", "in x 512,768; t = transpose x perm=1,0; out t"},
    {"sum of rows 512x1024", "in x 512,1024; s = reduce_sum x axes=1 keepdims=0; out s"},
    {"sum of columns 1024x512", "in x 1024,512; s = reduce_sum x axes=0 keepdims=0; out s"},
    {"gather 128 of 2000x384", "in x 2000,384; in i:i64 128; g = gather x i axis=0; out g"},
    {"running sum 64x256", "in x 64,256; c = cumsum x axis=1; out c"},
};
enum { NKERNELS = sizeof kernels / sizeof *kernels, LINE = 4096 };

/* The columns of a line, cut at tabs. */
static uint32_t split(char *line, char **columns, uint32_t most)
{
    uint32_t n = 0;
    line[strcspn(line, "\n")] = 0;
    for (char *at = line; at && n < most; n++) {
        columns[n] = at;
        at = strchr(at, '\t');
        if (at)
            *at++ = 0;
    }
    return n;
}

/* Of all kernels of the graph: microseconds by GPU, and what bounds the longest. */
static void predict(const char *text, double *us, char bounds[][16])
{
    enum { FIRST = 12 };
    char path[] = "/tmp/dlc_predictions_XXXXXX", line[LINE], *columns[FIRST + 2 * VGPU_GPU_COUNT];
    double longest[VGPU_GPU_COUNT] = {0};
    dlc_arena *arena = dlc_arena_create(0);
    const char *problem = bench_run(text, 80, &(bench_change){.runs_once = 1}, arena);
    ck_assert_msg(!problem, "%s: %s", text, problem);
    close(mkstemp(path));
    ck_assert(bench_driver()->write_report(path));
    FILE *file = fopen(path, "r");
    ck_assert(file && fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        uint32_t n = split(line, columns, FIRST + 2 * VGPU_GPU_COUNT);
        ck_assert_uint_eq(n, FIRST + 2 * VGPU_GPU_COUNT);
        for (int g = 0; g < VGPU_GPU_COUNT; g++) {
            double of_kernel = atof(columns[FIRST + 2 * g]);
            us[g] += of_kernel * atof(columns[1]);
            if (of_kernel > longest[g])
                snprintf(bounds[g], 16, "%.15s", columns[FIRST + 2 * g + 1]);
            longest[g] = of_kernel > longest[g] ? of_kernel : longest[g];
        }
    }
    fclose(file);
    unlink(path);
    dlc_arena_destroy(arena);
}

/* The kept microseconds of a kernel; false: there are none. */
static int find_kept(const char *name, double *us)
{
    char line[LINE], *columns[1 + 2 * VGPU_GPU_COUNT];
    FILE *file = fopen(kept, "r");
    int is_found = 0;
    while (file && !is_found && fgets(line, sizeof line, file)) {
        is_found = split(line, columns, 1 + 2 * VGPU_GPU_COUNT) == 1 + 2 * VGPU_GPU_COUNT &&
                   !strcmp(columns[0], name);
        for (int g = 0; is_found && g < VGPU_GPU_COUNT; g++)
            us[g] = atof(columns[1 + 2 * g]);
    }
    if (file)
        fclose(file);
    return is_found;
}

static void keep(int kernel, const double *us, char bounds[][16])
{
    FILE *file = fopen(kept, kernel ? "a" : "w");
    ck_assert_ptr_nonnull(file);
    if (!kernel) {
        fprintf(file, "kernel");
        for (int g = 0; g < VGPU_GPU_COUNT; g++)
            fprintf(file, "\t%s us\tbound", vgpu_gpus[g].name);
        fputc('\n', file);
    }
    fprintf(file, "%s", kernels[kernel].name);
    for (int g = 0; g < VGPU_GPU_COUNT; g++)
        fprintf(file, "\t%.2f\t%s", us[g], bounds[g]);
    fputc('\n', file);
    fclose(file);
}

START_TEST(test_prediction)
{
    double us[VGPU_GPU_COUNT] = {0}, before[VGPU_GPU_COUNT];
    char bounds[VGPU_GPU_COUNT][16] = {""};
    predict(kernels[_i].text, us, bounds);
    if (getenv("DLC_BLESS")) {
        keep(_i, us, bounds);
        return;
    }
    ck_assert_msg(find_kept(kernels[_i].name, before),
                  "%s is not in %s; DLC_BLESS=1 writes it anew", kernels[_i].name, kept);
    for (int g = 0; g < VGPU_GPU_COUNT; g++) {
        ck_assert_msg(us[g] <= 1.1 * before[g] + 0.2,
                      "%s on %s: %.2f us are predicted, by %s; %.2f were", kernels[_i].name,
                      vgpu_gpus[g].name, us[g], bounds[g], before[g]);
        if (us[g] < 0.9 * before[g])
            printf("%s on %s: %.2f us are predicted, by %s; %.2f were (DLC_BLESS=1 keeps it)\n",
                   kernels[_i].name, vgpu_gpus[g].name, us[g], bounds[g], before[g]);
    }
}
END_TEST

/* A file of figures for the row of A100s. */
static void calibrate(const char *lines)
{
    char path[] = "/tmp/dlc_scales_XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "name NVIDIA A100\n%s", lines);
    fclose(file);
    ck_assert(vgpu_calibrate(path));
    unlink(path);
}

/* What calibration measures of is the whole prediction, so that is what a scale is of; the bound is named without scales. */
START_TEST(test_scale)
{
    static const struct {
        uint64_t bytes;
        const char *lines;
        vgpu_bound bound;
        double scale;
    } rows[] = {
        {1 << 24, "", VGPU_BY_MEMORY, 1},
        {1 << 24, "scale_memory 3\n", VGPU_BY_MEMORY, 3},
        {1 << 24, "scale_f32 50\n", VGPU_BY_MEMORY, 1},
        {1 << 24, "scale_memory 0.02\nscale_launch 7\n", VGPU_BY_MEMORY, 0.02},
        {64, "scale_launch 2.5\nscale_memory 90\n", VGPU_BY_LAUNCH, 2.5},
    };
    vgpu_gpu *gpu = &vgpu_gpus[VGPU_A100_];
    const vgpu_gpu kept_row = *gpu;
    const vgpu_record_row row = {.grid = {1, 1, 1},
                                 .block = {32, 1, 1},
                                 .registers = 16,
                                 .launches = 1,
                                 .counts = {.blocks = 1, .bytes_read = rows[_i].bytes}};
    vgpu_bound bound;
    double before = vgpu_predict(gpu, &row, &bound);
    calibrate(rows[_i].lines);
    double scaled = vgpu_predict(gpu, &row, &bound);
    ck_assert_int_eq(bound, rows[_i].bound);
    ck_assert_double_eq_tol(scaled, rows[_i].scale * before, 1e-9 * before);
    *gpu = kept_row;
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("predictions");
    TCase *cases = tcase_create("predictions");
    dlc_arena *arena = dlc_arena_create(0);
    const char *reason = trial_unavailable(WAY_PTX, arena);
    if (reason)
        printf("skipped: %s\n", reason);
    dlc_arena_destroy(arena);
    tcase_add_loop_test(cases, test_scale, 0, 5);
    tcase_add_loop_test(cases, test_prediction, 0, reason ? 0 : NKERNELS);
    tcase_set_timeout(cases, 120);
    suite_add_tcase(suite, cases);
    int failed = suite_run(suite);
    return reason && !failed ? 77 : failed;
}
