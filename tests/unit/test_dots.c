/*
 * Rows of dot.def under schedules written by hand, for every target that code is made for here, with the row's instruction
 * and by its plain meaning: exact for integers, and to the same bits for bf16. A page nobody may touch lies behind every buffer.
 */
#include "tests/unit/dot_cases.h"

static const char *const targets[] = {
    "x86-64-v2", "x86-64-v3", "x86-64-v3+avx_vnni", "x86-64-v4", "x86-64-v4+vnni+bf16", "aarch64", "aarch64+dotprod+i8mm",
    "x86-64-v2+amx_int8+amx_bf16", "x86-64-v4+amx_int8+amx_bf16", "x86-64-v4+vnni+vbmi",
};
enum { NTARGETS = sizeof targets / sizeof *targets, SOME_TARGETS = 4 };

static const struct {
    const char *row, *x, *w;
} rows[] = {
    {"vpdpbusd", "u8", "i8"}, {"vpdpbusd", "i8", "u8"}, {"vpdpbusd", "i8", "i8"}, {"vpdpbusd", "u8", "u8"},
    {"sdot", "i8", "i8"},     {"sdot", "u8", "i8"},     {"udot", "u8", "u8"},     {"udot", "i8", "u8"},
    {"usdot", "u8", "i8"},    {"usdot", "i8", "u8"},    {"usdot", "i8", "i8"},    {"vdpbf16ps", "bf16", "bf16"},
    {"fma", "u8", "i8"},      {"fma", "bf16", "bf16"},      {"tdpbssd", "i8", "i8"},  {"tdpbsud", "i8", "u8"},
    {"tdpbusd", "u8", "i8"},  {"tdpbuud", "u8", "u8"},      {"tdpbf16ps", "bf16", "bf16"},
    {"pmaddwd", "u8", "i8"},  {"pmaddwd", "i8", "u8"},      {"pmaddwd", "i8", "i8"},  {"pmaddwd", "u8", "u8"},
    {"bf16x3", "parts", "parts"},
};
enum { NROWS = sizeof rows / sizeof *rows };

/* Whole tiles; ragged rows, columns and granules; K within one granule. */
static const int sizes[][3] = {{16, 64, 64}, {37, 70, 67}, {5, 33, 3}, {70, 97, 200}};
enum { NSIZES = sizeof sizes / sizeof *sizes };

/* The sum in registers; cut into pieces of 32, and asking for columns behind the last. */
static const char *const trees[] = {
    "    for i:%d {\n      a = dot %s i x j over [k] in reg\n      as a {\n        y\n      }\n    }\n",
    "    for i:%d {\n      for k:32 {\n        a = dot %s i x j over [k] in scratch ahead 1 via L2\n      }\n"
    "      for i, lane j:4 {\n        y\n      }\n    }\n",
};
enum { NTREES = sizeof trees / sizeof *trees };

/* --- the module --- */

/* Factors are f32 in three parts of bf16: those of a row in turn, those of the columns in planes. */
static void head_of_parts(dlc_str *text, const char *target, const int *size)
{
    dlc_str_printf(text,
                   "module @t for %s after choose {\n  input %%x: bf16[%d,3,%d]\n  input %%w: bf16[3,%d,%d]\n  output %%y: f32[%d,%d]\n}\n\n"
                   "kernel @k(x: bf16[%d,3,%d], w: bf16[3,%d,%d]) -> (y: f32[%d,%d]) {\n  axis i=%d, j=%d, k=%d\n"
                   "  a[i,j] = sum(k) (f32(x[i, 0, k]) + f32(x[i, 1, k]) + f32(x[i, 2, k])) * "
                   "(f32(w[0, k, j]) + (f32(w[2, k, j]) + f32(w[1, k, j])))\n  y[i,j] = a[i, j] + 1 -> y[i, j]\n}\n",
                   target, size[0], size[2], size[2], size[1], size[0], size[1], size[0], size[2], size[2], size[1], size[0], size[1],
                   size[0], size[1], size[2]);
}

static void head(dlc_str *text, const char *target, const char *x, const char *w, const int *size)
{
    if (!strcmp(x, "parts")) {
        head_of_parts(text, target, size);
        return;
    }
    const char *acc = strcmp(x, "bf16") && strcmp(x, "f32") ? "i32" : "f32";
    dlc_str_printf(text,
                   "module @t for %s after choose {\n  input %%x: %s[%d,%d]\n  input %%w: %s[%d,%d]\n  output %%y: %s[%d,%d]\n}\n\n"
                   "kernel @k(x: %s[%d,%d], w: %s[%d,%d]) -> (y: %s[%d,%d]) {\n  axis i=%d, j=%d, k=%d\n"
                   "  a[i,j] = sum(k) %s(x[i, k]) * %s(w[k, j])\n  y[i,j] = a[i, j] + 1 -> y[i, j]\n}\n",
                   target, x, size[0], size[2], w, size[2], size[1], acc, size[0], size[1], x, size[0], size[2], w, size[2],
                   size[1], acc, size[0], size[1], size[0], size[1], size[2], acc, acc);
}

static int is_of_tiles(const char *row)
{
    return !strncmp(row, "tdp", 3) || !strcmp(row, "bf16x3");
}

static void module_text(dlc_str *text, const char *target, int row, const int *size, int tree)
{
    int lanes = (int)dlc_target_find(target)->vector_bytes / 4, is_tile = is_of_tiles(rows[row].row);
    int columns = is_tile ? 32 : 2 * lanes;
    int is_words = !strcmp(rows[row].row, "pmaddwd"), is_wide = is_words && row % 2;
    int is_parts = !strcmp(rows[row].x, "parts");
    int granule = !strcmp(rows[row].row, "fma") ? 1 : is_words || is_parts || !strcmp(rows[row].x, "bf16") ? 2 : 4;
    head(text, target, rows[row].x, rows[row].w, size);
    if (granule == 1)
        dlc_str_printf(text, "schedule %s {\n  copy wp = a.w [j/%d, k, j%%%d]\n  par j:%d {\n    for k, lane j:%d {\n"
                             "      wp in scratch\n    }\n", target, columns, columns, columns, lanes);
    else
        dlc_str_printf(text, "schedule %s {\n  copy wp = a.%s [j/%d, %sk/%d, j%%%d, k%%%d]\n  par j:%d {\n    for %sk, lane j:%d {\n"
                             "      wp in scratch\n    }\n", target, is_parts ? "parts_right" : is_wide ? "wide_right" : "w", columns,
                       is_parts ? "part, " : "", granule, columns, granule, columns, is_parts ? "part, " : "", lanes);
    dlc_str_printf(text, trees[tree], is_tile ? 32 : 4, rows[row].row);
    dlc_str_add(text, "  }\n}\n\nsteps {\n  launch 0 (%x, %w) -> (%y)\n}\n");
}

/* --- data --- */

static dlcrt_tensor factor_of(const char *type, int d0, int d1, uint32_t seed, int is_w)
{
    return strcmp(type, "parts") ? tensor_of(type, d0, d1, seed) : in_parts(random_floats((size_t)d0 * (size_t)d1, seed), d0, d1, is_w);
}

/* Of a matrix, whatever it is made of. */
static double element_at(const dlcrt_tensor *t, int in_planes, int64_t i, int64_t k)
{
    int64_t columns = t->dims[t->rank - 1], row = in_planes ? i : 3 * i, apart = in_planes ? t->dims[1] : 1;
    if (t->rank == 2)
        return element(t, i * columns + k);
    return element(t, row * columns + k) + element(t, (row + apart) * columns + k) + element(t, (row + 2 * apart) * columns + k);
}

/* Each element told once, not once for each product: malloc'd. */
static double *doubles_of(const dlcrt_tensor *t, int in_planes, int64_t nrows, int64_t ncolumns)
{
    double *all = malloc((size_t)(nrows * ncolumns) * sizeof *all);
    for (int64_t i = 0; i < nrows; i++)
        for (int64_t k = 0; k < ncolumns; k++)
            all[i * ncolumns + k] = element_at(t, in_planes, i, k);
    return all;
}

static void compare(const dlcrt_tensor *x, const dlcrt_tensor *w, const dlcrt_tensor *y, const char *what)
{
    int64_t depth = x->dims[x->rank - 1], columns = w->dims[w->rank - 1];
    double *left = doubles_of(x, 0, x->dims[0], depth), *right = doubles_of(w, 1, depth, columns);
    for (int64_t i = 0; i < x->dims[0]; i++)
        for (int64_t j = 0; j < columns; j++) {
            double sum = 1, got;
            for (int64_t k = 0; k < depth; k++)
                sum += left[i * depth + k] * right[k * columns + j];
            got = y->dtype == DLC_F32 ? (double)((const float *)y->data)[i * columns + j]
                                      : (double)((const int32_t *)y->data)[i * columns + j];
            ck_assert_msg(fabs(got - sum) <= (y->dtype == DLC_F32 ? 1e-5 : 0), "%s: [%d,%d] = %.9g, not %.9g", what, (int)i, (int)j,
                          got, sum);
        }
    free(left);
    free(right);
}

/* --- the rows --- */

#if defined(__x86_64__)
static uint64_t products_so_far(void)
{
    return dlc_amx_products;
}

/* The machine's own are not counted. */
static int has_software_tiles(void)
{
    return !(dlc_cpu_detect() & dlc_target_features(DLC_HAS_AMX_INT8));
}
#else
static uint64_t products_so_far(void)
{
    return 0;
}

static int has_software_tiles(void)
{
    return 0;
}
#endif

START_TEST(rows_give_the_same_numbers_everywhere)
{
    int row = _i / (NSIZES * NTREES);
    const int *size = sizes[_i / NTREES % NSIZES];
    dlcrt_tensor inputs[] = {factor_of(rows[row].x, size[0], size[2], 1, 0), factor_of(rows[row].w, size[2], size[1], 2, 1)};
    dlcrt_tensor first = {0};
    int ntargets = getenv("DLC_LONG") ? NTARGETS : SOME_TARGETS;
    for (int k = 0; k < ntargets; k++) {
        int t = (_i + 2 * k) % NTARGETS; /* each row sees every target, if not with each size and tree */
        dlc_str text = {0};
        char what[160], message[1024];
        dlcrt_tensor y = {0};
        module_text(&text, targets[t], row, size, _i % NTREES);
        snprintf(what, sizeof what, "%s %s %s %dx%dx%d tree %d on %s", rows[row].row, rows[row].x, rows[row].w, size[0], size[1],
                 size[2], _i % NTREES, targets[t]);
        dlc_model *model = compiled(dlc_str_text(&text), targets[t], message, sizeof message);
        ck_assert_msg(model != NULL, "%s: %s\n%s", what, message, dlc_str_text(&text));
        dlc_model_close(model);
        dlc_str_deinit(&text);
        uint64_t products = products_so_far();
        if (!run_once(inputs, 2, &y, what))
            continue;
        int has_product = is_of_tiles(rows[row].row) && strstr(targets[t], "amx") && size[2] >= 4; /* at least a granule */
        if (has_product && has_software_tiles())
            ck_assert_msg(products_so_far() > products, "%s: no product of tiles", what);
        y.dtype = !strcmp(rows[row].x, "bf16") || !strcmp(rows[row].x, "parts") ? DLC_F32 : DLC_I32;
        compare(&inputs[0], &inputs[1], &y, what);
        if (first.data && strcmp(rows[row].row, "fma"))
            ck_assert_msg(!memcmp(first.data, y.data, y.size_bytes), "%s: other bits than before", what);
        first = y;
    }
}
END_TEST

/* Without a tile: each lane adds its own bytes, by the instruction where a factor has no sign. */
START_TEST(bytes_are_multiplied_lane_by_lane)
{
    static const char *const types[] = {"u8", "i8"};
    const int size[] = {7, 70, 67};
    const char *x = types[_i % 2], *w = types[_i / 2 % 2], *target = targets[_i / 4];
    dlcrt_tensor inputs[] = {tensor_of(x, size[0], size[2], 5), tensor_of(w, size[2], size[1], 6)}, y = {0};
    dlc_str text = {0};
    char message[1024];
    head(&text, target, x, w, size);
    dlc_str_printf(&text, "schedule %s {\n  par i, lane j:%d {\n    for k {\n      a in reg\n    }\n    y\n  }\n}\n\nsteps {\n"
                          "  launch 0 (%%x, %%w) -> (%%y)\n}\n", target, (int)dlc_target_find(target)->vector_bytes / 4);
    dlc_model *model = compiled(dlc_str_text(&text), target, message, sizeof message);
    ck_assert_msg(model != NULL, "%s: %s", target, message);
    dlc_model_close(model);
    dlc_str_deinit(&text);
    y.dtype = DLC_I32;
    if (run_once(inputs, 2, &y, target))
        compare(&inputs[0], &inputs[1], &y, target);
}
END_TEST

static const struct {
    const char *row, *x, *w;
    int granule;
} own[] = {
    {"vdpbf16ps", "bf16", "bf16", 2}, {"vpdpbusd", "u8", "i8", 4}, {"pmaddwd", "u8", "i8", 2}, {"vpdpwssd", "i8", "i8", 2},
    {"vpdpbusd", "i8", "u8", 4},      {"sdot", "i8", "i8", 4},     {"udot", "u8", "u8", 4},    {"usdot", "u8", "i8", 4},
};
enum { NOWN = sizeof own / sizeof *own, NOWN_WINDOWS = 4 };

/* A tile is not all that a row is for: each lane's own sum goes by it, of what is left of K too; of one vector a step, and of two. */
START_TEST(lanes_add_up_granules_for_themselves)
{
    const int size[] = {7, 70, 67}, row = _i;
    dlcrt_tensor inputs[] = {tensor_of(own[row].x, size[0], size[2], 7), tensor_of(own[row].w, size[2], size[1], 8)}, first = {0};
    int is_float = !strcmp(own[row].x, "bf16");
    int ntargets = getenv("DLC_LONG") ? NTARGETS : SOME_TARGETS;
    for (int k = 0; k < ntargets; k++) {
        int t = (_i + 2 * k) % NTARGETS;
        dlc_str text = {0};
        char message[1024], what[80];
        dlcrt_tensor y = {0};
        snprintf(what, sizeof what, "%s %s %s on %s", own[row].row, own[row].x, own[row].w, targets[t]);
        head(&text, targets[t], own[row].x, own[row].w, size);
        dlc_str_printf(&text, "schedule %s {\n  par i, lane j:%d x %d {\n    unroll k:%d {\n      a = dot %s over [k] in reg\n    }\n    y\n  }\n}\n\n"
                              "steps {\n  launch 0 (%%x, %%w) -> (%%y)\n}\n", targets[t], (int)dlc_target_find(targets[t])->vector_bytes / 4,
                       1 + k % 2, own[row].granule, own[row].row);
        dlc_model *model = compiled(dlc_str_text(&text), targets[t], message, sizeof message);
        ck_assert_msg(model != NULL, "%s: %s", what, message);
        dlc_model_close(model);
        dlc_str_deinit(&text);
        if (!run_once(inputs, 2, &y, what))
            continue;
        y.dtype = is_float ? DLC_F32 : DLC_I32;
        compare(&inputs[0], &inputs[1], &y, what);
        if (first.data)
            ck_assert_msg(!memcmp(first.data, y.data, y.size_bytes), "%s: other bits than before", what);
        first = y;
    }
}
END_TEST

/* Windows of a padded image, a row of it side by side: granules of their rows, of which some are left; weights as they lie, and by granules. */
enum { IMAGE = 9, DEPTHWISE = 21, WINDOW = 3 };

static void text_of_windows(dlc_str *text, const char *target, const dlcrt_tensor *w, int row, int is_packed)
{
    int is_float = !strcmp(own[row].x, "bf16"), granule = own[row].granule;
    const char *x = own[row].x, *k = own[row].w, *acc = is_float ? "f32" : "i32";
    dlc_str_printf(text, "module @t for %s after choose {\n  input %%x: %s[9,9,21]\n  const %%w: %s[21,3,3] = [", target, x, k);
    for (int i = 0; i < DEPTHWISE * WINDOW * WINDOW; i++)
        dlc_str_printf(text, "%s%.9g", i ? ", " : "", element(w, i));
    dlc_str_printf(text, "]\n  const %%p: %s[21,3,3]@{", k);
    if (is_packed)
        dlc_str_printf(text, "1/%d,2,0,1%%%d", granule, granule);
    else
        dlc_str_add(text, "1,2,0");
    dlc_str_printf(text,
                   "} of %%w\n  output %%y: %s[9,9,21]\n}\n\nkernel @k(x: %s[9,9,21], w: %s[21,3,3]@const) -> (y: %s[9,9,21]) {\n"
                   "  axis c=21, h=9, v=9, kh=3, kw=3\n  a[c,h,v] = sum(kh,kw) %s(x[h + kh - 1, v + kw - 1, c if 1 <= h + kh and h + kh < 10 "
                   "and 1 <= v + kw and v + kw < 10]) * %s(w[c, kh, kw])\n  y[c,h,v] = max(%s, a) -> y[h, v, c]\n}\n",
                   acc, x, k, acc, acc, acc, is_float ? "0.0" : "i32(0)");
    dlc_str_printf(text, "schedule %s {\n  copy wp = a.w [kh", target);
    if (is_packed)
        dlc_str_printf(text, "/%d, kw, c, kh%%%d]\n", granule, granule);
    else
        dlc_str_add(text, ", kw, c]\n");
    dlc_str_printf(text, "  const { wp }\n  par v:4, h, lane c:%d, unroll v {\n    unroll kh:%d, kw {\n      a = dot %s over [kh] in reg\n    }\n"
                         "    y\n  }\n}\n\nsteps {\n  launch 0 (%%x, %%p) -> (%%y)\n}\n",
                   (int)dlc_target_find(target)->vector_bytes / 4, granule, own[row].row);
}

static double window_at(const dlcrt_tensor *x, const dlcrt_tensor *w, int h, int v, int c)
{
    double sum = 0;
    for (int k = 0; k < WINDOW * WINDOW; k++) {
        int row = h + k / WINDOW - 1, column = v + k % WINDOW - 1;
        if (row >= 0 && row < IMAGE && column >= 0 && column < IMAGE)
            sum += element(x, (row * IMAGE + column) * DEPTHWISE + c) * element(w, c * WINDOW * WINDOW + k);
    }
    return fmax(0, sum);
}

START_TEST(windows_share_granules_of_rows)
{
    int is_float = !strcmp(own[_i].x, "bf16");
    dlcrt_tensor x = tensor_of(own[_i].x, IMAGE * IMAGE, DEPTHWISE, 9), first = {0};
    dlcrt_tensor w = tensor_of(own[_i].w, DEPTHWISE, WINDOW * WINDOW, 10), image = x;
    image.rank = 3;
    image.dims[0] = image.dims[1] = IMAGE;
    image.dims[2] = DEPTHWISE;
    for (int t = 0; t < 2 * NTARGETS; t++) {
        const char *target = targets[t / 2];
        dlc_str text = {0};
        char message[1024];
        dlcrt_tensor y = {0};
        if (!getenv("DLC_LONG") && (t + t / 2) % 2)
            continue; /* every target, and both ways for one or another */
        text_of_windows(&text, target, &w, _i, t % 2);
        dlc_model *model = compiled(dlc_str_text(&text), target, message, sizeof message);
        ck_assert_msg(model != NULL, "%s: %s\n%s", target, message, dlc_str_text(&text));
        dlc_model_close(model);
        dlc_str_deinit(&text);
        if (!run_once(&image, 1, &y, target))
            continue;
        for (int at = 0; at < IMAGE * IMAGE * DEPTHWISE; at++) {
            double wanted = window_at(&x, &w, at / DEPTHWISE / IMAGE, at / DEPTHWISE % IMAGE, at % DEPTHWISE);
            double got = is_float ? (double)((const float *)y.data)[at] : (double)((const int32_t *)y.data)[at];
            ck_assert_msg(fabs(got - wanted) <= (is_float ? 1e-5 : 0), "%s, %s: %d is %.9g, not %.9g", target, t % 2 ? "by granules" : "as they lie",
                          at, got, wanted);
        }
        if (first.data)
            ck_assert_msg(!memcmp(first.data, y.data, y.size_bytes), "%s: other bits than before", target);
        first = y;
    }
}
END_TEST

/* Weights that are constant are packed when the row is chosen: what of K is no granule, too. */
START_TEST(constants_are_packed_for_the_row)
{
    enum { M = 37, N = 70, K = 67 };
    static const char *const types[] = {"u8", "i8"};
    const char *x = types[_i % 2], *target = targets[_i / 2];
    dlcrt_tensor inputs[] = {tensor_of(x, M, K, 3), tensor_of("i8", K, N, 4)}, y = {0};
    dlc_str text = {0};
    char message[1024];
    dlc_str_printf(&text, "module @t for %s after lower {\n  input %%x: %s[%d,%d]\n  const %%w: i8[%d,%d] = [", target, x, M, K, K, N);
    for (int i = 0; i < K * N; i++)
        dlc_str_printf(&text, "%s%d", i ? ", " : "", (int)element(&inputs[1], i));
    dlc_str_printf(&text, "]\n  output %%y: i32[%d,%d]\n}\n\nkernel @k(x: %s[%d,%d], w: i8[%d,%d]@const) -> (y: i32[%d,%d]) {\n"
                          "  axis i=%d, j=%d, k=%d\n  a[i,j] = sum(k) i32(x[i, k]) * i32(w[k, j])\n  y[i,j] = a[i, j] + 1 -> y[i, j]\n}\n\n"
                          "steps {\n  launch 0 (%%x, %%w) -> (%%y)\n}\n", M, N, x, M, K, K, N, M, N, M, N, K);
    dlc_model *model = compiled(dlc_str_text(&text), target, message, sizeof message);
    ck_assert_msg(model != NULL, "%s: %s", target, message);
    dlc_model_close(model);
    dlc_str_deinit(&text);
    y.dtype = DLC_I32;
    if (run_once(inputs, 1, &y, target))
        compare(&inputs[0], &inputs[1], &y, target);
}
END_TEST

/* --- partial sums --- */

enum { PART_ROWS = 6, PART_COLUMNS = 33, PART_G = 5, PART_K = 37 };

/* Where parts begin: at multiples of g points and of k points, 0: at none; the total goes on over what is cut outside. */
static const struct {
    const char *tree;
    int g, k;
} parts[] = {
    {"a = dot fma i x j over [g, k] in reg as a { y }", 0, 0},
    {"a = dot fma i x j over [g, k:16] in reg as a { y }", 1, 16},
    {"a = dot fma i x j over [g:1, k] in reg as a { y }", 1, 0},
    {"a = dot fma i x j over [g:2, k] in reg as a { y }", 2, 0},
    {"a = dot fma i x j over [g, k:1] in reg as a { y }", 1, 1},
    {"for g { a = dot fma i x j over [k:16] in scratch } for i, lane j:4 { y }", 1, 16},
    {"for k:20 { for g { a = dot fma i x j over [k:8] in scratch } } for i, lane j:4 { y }", -1, 8},
};
enum { NPARTS = sizeof parts / sizeof *parts };

static float number(uint32_t at)
{
    return (float)(int32_t)(at * 2654435761u + 12345u) / 2147483648.0f;
}

static float with_term(int i, int j, int g, int k, float sum)
{
    return fmaf(number((uint32_t)((i * PART_G + g) * PART_K + k)), number((uint32_t)((g * PART_K + k) * 131 + j)), sum);
}

/* One term after the other; a part that is complete is added to the total. */
static float sum_by_parts(int i, int j, int tree)
{
    float total = 1, part = 0, sum = 0;
    if (parts[tree].g < 0) { /* pieces of k outside, in them g, in it parts */
        for (int first = 0; first < PART_K; first += 20)
            for (int g = 0; g < PART_G; g++)
                for (int k = first; k < PART_K && k < first + 20; k++) {
                    part = with_term(i, j, g, k, part);
                    if ((k - first) % parts[tree].k == parts[tree].k - 1 || k - first == 19 || k == PART_K - 1)
                        sum += part, part = 0;
                }
        return sum + total;
    }
    for (int g = 0; g < PART_G; g++)
        for (int k = 0; k < PART_K; k++) {
            if (parts[tree].g && (parts[tree].k ? k % parts[tree].k == 0 : g % parts[tree].g == 0 && k == 0))
                sum += part, part = 0;
            part = with_term(i, j, g, k, part);
        }
    return sum + part + total;
}

/* Bits are those of the sum that the schedule's text says, on targets that fuse. */
START_TEST(parts_are_summed_apart)
{
    static const char *const fused[] = {"x86-64-v3", "x86-64-v4", "aarch64"};
    const char *target = fused[_i / NPARTS];
    int tree = _i % NPARTS;
    dlcrt_tensor inputs[] = {{.dtype = DLC_F32, .rank = 3, .dims = {PART_ROWS, PART_G, PART_K}},
                             {.dtype = DLC_F32, .rank = 3, .dims = {PART_G, PART_K, PART_COLUMNS}}}, y = {0};
    dlc_str text = {0};
    char message[1024];
    dlc_str_printf(&text,
                   "module @t for %s after choose {\n  input %%x: f32[6,5,37]\n  input %%w: f32[5,37,33]\n"
                   "  output %%y: f32[6,33]\n}\n\n"
                   "kernel @k(x: f32[6,5,37], w: f32[5,37,33]) -> (y: f32[6,33]) {\n  axis i=6, j=33, g=5, k=37\n"
                   "  a[i,j] = sum(g,k) x[i, g, k] * w[g, k, j]\n  y[i,j] = a[i, j] + 1 -> y[i, j]\n}\n"
                   "schedule %s {\n  par j:16, i:4 {\n    %s\n  }\n}\n\nsteps {\n  launch 0 (%%x, %%w) -> (%%y)\n}\n",
                   target, target, parts[tree].tree);
    inputs[0].data = guarded(sizeof(float) * PART_ROWS * PART_G * PART_K);
    inputs[1].data = guarded(sizeof(float) * PART_G * PART_K * PART_COLUMNS);
    for (uint32_t n = 0; n < PART_ROWS * PART_G * PART_K; n++)
        ((float *)inputs[0].data)[n] = number(n);
    for (uint32_t n = 0; n < PART_G * PART_K; n++)
        for (uint32_t j = 0; j < PART_COLUMNS; j++)
            ((float *)inputs[1].data)[n * PART_COLUMNS + j] = number(n * 131 + j);
    dlc_model *model = compiled(dlc_str_text(&text), target, message, sizeof message);
    ck_assert_msg(model != NULL, "%s: %s\n%s", target, message, dlc_str_text(&text));
    dlc_model_close(model);
    dlc_str_deinit(&text);
    if (!run_once(inputs, 2, &y, target))
        return;
    for (int i = 0; i < PART_ROWS; i++)
        for (int j = 0; j < PART_COLUMNS; j++) {
            float got = ((const float *)y.data)[i * PART_COLUMNS + j], wanted = sum_by_parts(i, j, tree);
            ck_assert_msg(got == wanted, "%s, %s: [%d,%d] = %.9g, not %.9g", target, parts[tree].tree, i, j, (double)got,
                          (double)wanted);
        }
}
END_TEST

static const struct {
    const char *row, *instruction, *target;
    int loads, products;
} loops[] = {
    {"tdpbusd", "tdpbusd", "x86-64-v4+amx_int8", 4, 4},
    {"bf16x3", "tdpbf16ps", "x86-64-v4+amx_bf16", 16, 24}, /* of six times four loads, those of parts that are there already are left out */
};

/* The innermost loop of whole tiles holds what it multiplies, and no more: nothing is spilled, sums stay where they are. */
START_TEST(tiles_stay_in_their_registers)
{
    static const int size[] = {64, 64, 512};
    char message[1024], code[65536], *loop, *at;
    dlc_str text = {0};
    int nloads = 0, nproducts = 0, row = 0;
    while (strcmp(rows[row].row, loops[_i].row) != 0)
        row++;
    module_text(&text, loops[_i].target, row, size, 0);
    dlc_model *model = compiled(dlc_str_text(&text), loops[_i].target, message, sizeof message);
    ck_assert_msg(model && dlc_model_write(model, "asm", in_folder("dot.so"), NULL) == DLC_OK, "%s", message);
    FILE *file = fopen(in_folder("dot.so"), "r");
    code[fread(code, 1, sizeof code - 1, file)] = '\0';
    fclose(file);
    ck_assert_ptr_nonnull(loop = strstr(code, loops[_i].instruction));
    while (strncmp(loop, "\n.L", 3) != 0)
        loop--;
    for (at = loop; strncmp(at, "\tj", 2) != 0; at++) {
        nloads += !strncmp(at, "tileloadd", 9);
        nproducts += !strncmp(at, loops[_i].instruction, strlen(loops[_i].instruction));
        ck_assert(strncmp(at, "tilestored", 10) && strncmp(at, "%rsp", 4) && strncmp(at, "tilezero", 8) && strncmp(at, "ldtilecfg", 9));
    }
    ck_assert_int_eq(nloads, loops[_i].loads);
    ck_assert_int_eq(nproducts, loops[_i].products);
    dlc_model_close(model);
    dlc_str_deinit(&text);
}
END_TEST

/* Tiles of 25 and 24 rows have one shape, given where the function begins. */
START_TEST(fewer_rows_keep_the_shape)
{
    static const int size[] = {49, 64, 512};
    static char code[65536];
    char message[1024];
    dlc_str text = {0};
    int row = 0;
    while (strcmp(rows[row].row, "tdpbf16ps") != 0)
        row++;
    module_text(&text, "x86-64-v4+amx_bf16", row, size, 0);
    dlc_model *model = compiled(dlc_str_text(&text), "x86-64-v4+amx_bf16", message, sizeof message);
    ck_assert_msg(model && dlc_model_write(model, "asm", in_folder("dot.so"), NULL) == DLC_OK, "%s", message);
    FILE *file = fopen(in_folder("dot.so"), "r");
    code[fread(code, 1, sizeof code - 1, file)] = '\0';
    fclose(file);
    ck_assert_uint_eq(count_of(code, "ldtilecfg"), 1);
    ck_assert_uint_eq(count_of(code, "tdpbf16ps"), 8); /* four for each height */
    dlc_model_close(model);
    dlc_str_deinit(&text);
}
END_TEST

/* The assembly of one kernel f32[12,40] by f32[40,150] under the tree; in static memory. */
static const char *assembly_of(const char *target, const char *tree)
{
    static char code[1 << 20];
    char message[1024];
    dlc_str text = {0};
    dlc_str_printf(&text,
                   "module @t for %s after choose {\n  input %%x: f32[12,40]\n  input %%w: f32[40,150]\n  output %%y: f32[12,150]\n}\n\n"
                   "kernel @k(x: f32[12,40], w: f32[40,150]) -> (y: f32[12,150]) {\n  axis i=12, j=150, k=40\n"
                   "  a[i,j] = sum(k) x[i, k] * w[k, j] -> y[i, j]\n}\nschedule %s {\n%s}\n\nsteps {\n  launch 0 (%%x, %%w) -> (%%y)\n}\n",
                   target, target, tree);
    dlc_model *model = compiled(dlc_str_text(&text), target, message, sizeof message);
    ck_assert_msg(model && dlc_model_write(model, "asm", in_folder("dot.so"), NULL) == DLC_OK, "%s", message);
    FILE *file = fopen(in_folder("dot.so"), "r");
    code[fread(code, 1, sizeof code - 1, file)] = '\0';
    fclose(file);
    dlc_model_close(model);
    dlc_str_deinit(&text);
    ck_assert(strstr(code, "vfmadd"));
    return code;
}

/* Columns of a block of several panels in scratch are vectors, as those of one panel are. */
START_TEST(panels_of_a_block_are_vectors)
{
    ck_assert(!strstr(assembly_of("x86-64-v4", "  copy wp = a.w [j/32, k, j%32]\n  par j:64 {\n    for j:32, k, lane j:16 {\n"
                                               "      wp in scratch\n    }\n    for i:6, j:32 {\n      a = dot fma i x j over [k]\n"
                                               "    }\n  }\n"),
                      "vgather"));
}
END_TEST

/* Six columns are left over: without registers for masks they are stored by four and two. */
START_TEST(known_lanes_are_stored_in_parts)
{
    ck_assert(!strstr(assembly_of("x86-64-v3", "  par j:16, i:6 {\n    a = dot fma i x j over [k]\n  }\n"), "vmaskmovps\t%ymm"));
}
END_TEST

/* What is skipped is not multiplied: infinite filters of the upper taps do not reach the upper results, which meet padding there. */
START_TEST(padding_is_skipped)
{
    enum { ROWS = 9, COLUMNS = 7, CHANNELS = 8, FILTERS = 16, APART = 5 };
    dlcrt_tensor inputs[] = {{.dtype = DLC_F32, .rank = 3, .dims = {ROWS, COLUMNS, CHANNELS}},
                             {.dtype = DLC_F32, .rank = 3, .dims = {3, CHANNELS, FILTERS}}}, y = {0};
    char message[1024];
    inputs[0].data = guarded(sizeof(float) * ROWS * COLUMNS * CHANNELS);
    inputs[1].data = guarded(sizeof(float) * 3 * CHANNELS * FILTERS);
    for (uint32_t n = 0; n < ROWS * COLUMNS * CHANNELS; n++)
        ((float *)inputs[0].data)[n] = number(n);
    for (uint32_t n = 0; n < 3 * CHANNELS * FILTERS; n++)
        ((float *)inputs[1].data)[n] = n < CHANNELS * FILTERS ? INFINITY : number(n);
    dlc_model *model = compiled("module @t for x86-64-v2 after choose {\n  input %x: f32[9,7,8]\n  input %w: f32[3,8,16]\n"
                                "  output %y: f32[9,7,16]\n}\n\n"
                                "kernel @k(x: f32[9,7,8], w: f32[3,8,16]) -> (y: f32[9,7,16]) {\n  axis oh=9, ow=7, oc=16, kh=3, ic=8\n"
                                "  a[oh,ow,oc] = sum(kh,ic) x[oh + kh * 5 - 5, ow, ic else 0] * w[kh, ic, oc] -> y[oh, ow, oc]\n}\n"
                                "schedule x86-64-v2 {\n  copy rows = a.x [oh, ow, kh, ic]\n  par oh, ow:4 {\n    for ow, kh, lane ic:4 {\n"
                                "      rows in scratch\n    }\n    for oc:8 {\n      a = dot fma ow x oc over [kh, ic] skip [kh]\n    }\n"
                                "  }\n}\n\nsteps {\n  launch 0 (%x, %w) -> (%y)\n}\n",
                                "x86-64-v2", message, sizeof message);
    ck_assert_msg(model != NULL, "%s", message);
    dlc_model_close(model);
    if (!run_once(inputs, 2, &y, "x86-64-v2"))
        return;
    for (uint32_t n = 0; n < ROWS * COLUMNS * FILTERS; n++)
        ck_assert_int_eq(isfinite(((const float *)y.data)[n]) != 0, n < APART * COLUMNS * FILTERS);
}
END_TEST

/* --- parts --- */

enum { M_PARTS = 37, N_PARTS = 70, K_PARTS = 547 };

/* The product of floats under a schedule, by the row. */
static float *product_of(const float *x, const float *w, const char *row, const char *schedule, const char *target)
{
    static const int size[] = {M_PARTS, N_PARTS, K_PARTS};
    int is_parts = !strcmp(row, "bf16x3");
    dlcrt_tensor inputs[] = {{.dtype = DLC_F32, .rank = 2, .dims = {M_PARTS, K_PARTS}, .data = (void *)x},
                             {.dtype = DLC_F32, .rank = 2, .dims = {K_PARTS, N_PARTS}, .data = (void *)w}}, y = {0};
    dlc_str text = {0};
    char message[1024];
    if (is_parts)
        inputs[0] = in_parts(x, M_PARTS, K_PARTS, 0), inputs[1] = in_parts(w, K_PARTS, N_PARTS, 1);
    head(&text, target, is_parts ? "parts" : "f32", is_parts ? "parts" : "f32", size);
    dlc_str_printf(&text, "schedule %s {\n%s}\n\nsteps {\n  launch 0 (%%x, %%w) -> (%%y)\n}\n", target, schedule);
    dlc_model *model = compiled(dlc_str_text(&text), target, message, sizeof message);
    ck_assert_msg(model != NULL, "%s: %s\n%s", target, message, dlc_str_text(&text));
    dlc_model_close(model);
    dlc_str_deinit(&text);
    return run_once(inputs, 2, &y, target) ? y.data : NULL;
}

static const char tree_of_floats[] = "  par j:16, i:4 {\n    a = dot fma i x j over [k] in reg\n    as a {\n      y\n    }\n  }\n";
static const char *const trees_of_parts[] = {
    "  copy wp = a.parts_right [j/32, k/2, part, j%32, k%2]\n  par j:32 {\n    for k, part, lane j:16 {\n      wp in scratch\n    }\n"
    "    for i:32 {\n      a = dot bf16x3 i x j over [k] in reg\n      as a {\n        y\n      }\n    }\n  }\n",
    "  copy wp = a.parts_right [j/16, part, k/2, j%16, k%2]\n  par j:16 {\n    for part, k, lane j:16 {\n      wp in scratch\n    }\n"
    "    for i:48 {\n      for k:128 {\n        a = dot bf16x3 i x j over [k] in scratch\n      }\n      for i, lane j:4 {\n"
    "        y\n      }\n    }\n  }\n",
};

/* The largest error over the sum of the terms' magnitudes. */
static double error_of(const float *x, const float *w, const float *y)
{
    double largest = 0;
    for (int i = 0; i < M_PARTS; i++)
        for (int j = 0; j < N_PARTS; j++) {
            double sum = 1, magnitudes = 1;
            for (int k = 0; k < K_PARTS; k++) {
                sum += (double)x[i * K_PARTS + k] * w[k * N_PARTS + j];
                magnitudes += fabs((double)x[i * K_PARTS + k] * w[k * N_PARTS + j]);
            }
            largest = fmax(largest, fabs(y[i * N_PARTS + j] - sum) / magnitudes);
        }
    return largest;
}

START_TEST(parts_are_as_exact_as_floats)
{
    const float *x = random_floats(M_PARTS * K_PARTS, 7), *w = random_floats(K_PARTS * N_PARTS, 8);
    const char *target = _i % 2 ? "x86-64-v3" : "x86-64-v4+amx_bf16";
    const float *floats = product_of(x, w, "fma", tree_of_floats, target), *got = product_of(x, w, "bf16x3", trees_of_parts[_i / 2], target);
    if (!floats || !got)
        return;
    double error = error_of(x, w, got), wanted = error_of(x, w, floats);
    ck_assert_msg(error <= wanted && error < 1e-6, "%s: an error of %g, of floats %g", target, error, wanted);
}
END_TEST

/* What no sum of parts gives: infinite and NaN, opposite ones, zeros beside them, and numbers that bf16 rounds to infinity. */
static void spoil(float *x, float *w)
{
    x[0 * K_PARTS + 5] = INFINITY;
    x[1 * K_PARTS + 540] = -INFINITY;
    x[2 * K_PARTS + 546] = NAN;
    x[3 * K_PARTS + 130] = 3.4028234e38f;
    x[20 * K_PARTS + 300] = 3.3e38f;
    x[33 * K_PARTS + 9] = INFINITY;
    x[33 * K_PARTS + 10] = -INFINITY;
    w[5 * N_PARTS + 7] = 0;
    w[77 * N_PARTS + 69] = -INFINITY;
    w[400 * N_PARTS + 40] = 3.4028234e38f;
}

START_TEST(what_is_not_finite_stays_so)
{
    float *x = random_floats(M_PARTS * K_PARTS, 9), *w = random_floats(K_PARTS * N_PARTS, 10);
    const char *target = _i % 2 ? "x86-64-v3" : "x86-64-v4+amx_bf16";
    spoil(x, w);
    const float *sums = product_of(x, w, "bf16x3", trees_of_parts[_i / 2], target);
    if (!sums)
        return;
    for (int i = 0; i < M_PARTS; i++)
        for (int j = 0; j < N_PARTS; j++) {
            float sum = 0, got = sums[i * N_PARTS + j];
            double magnitudes = 1;
            for (int k = 0; k < K_PARTS; k++) {
                sum = fmaf(x[i * K_PARTS + k], w[k * N_PARTS + j], sum);
                magnitudes += fabs((double)x[i * K_PARTS + k] * w[k * N_PARTS + j]);
            }
            sum += 1;
            int is_right = isnan(sum) ? isnan(got) : isinf(sum) ? got == sum : fabs((double)got - sum) <= 1e-6 * magnitudes;
            ck_assert_msg(is_right, "%s, tree %d: [%d,%d] = %g, not %g", target, _i / 2, i, j, (double)got, (double)sum);
        }
}
END_TEST

/* --- refused --- */

static const struct {
    const char *x, *w, *schedule, *message;
} refused[] = {
    {"i8", "u8", "par j:32, i:4 { a = dot sdot i x j over [k] in reg as a { y } }",
     "a: sdot multiplies i8 by i8 into i32; rows are i8, columns u8, the sum i32"},
    {"bf16", "bf16", "par j:32, i:4 { a = dot vpdpbusd i x j over [k] in reg as a { y } }",
     "a: vpdpbusd multiplies u8 by i8 into i32; rows are bf16, columns bf16, the sum f32"},
    {"bf16", "bf16", "par j:32, i:32 { a = dot bf16x3 i x j over [k] in reg as a { y } }",
     "a: bf16x3 multiplies sums of three parts, f32(x[0, …]) + f32(x[1, …]) + f32(x[2, …]) of bf16, into f32"},
    {"bf16", "bf16", "copy wp = a.parts_right [j/32, part, k/2, j%32, k%2]\n par j:32, i:32 { a = dot tdpbf16ps i x j over [k] in reg }",
     "a has no operand 'parts_right', or several"},
    {"parts", "parts", "par j:32, i:32 { a = dot bf16x3 i x j over [k] in reg as a { y } }",
     "a: w must have 2 elements of k together and then j"},
    {"parts", "parts",
     "copy xt = a.parts_left [k/2, i, part, k%2]\n copy wp = a.parts_right [j/32, part, k/2, j%32, k%2]\n par j:32 { for part, k, lane j:16 "
     "{ wp in scratch } for part, k, i { xt in scratch } for i:32 { a = dot bf16x3 i x j over [k] in reg as a { y } } }",
     "a: xt must have 32 elements of k together, and rows at equal distances"},
    {"u8", "i8", "par j:32, i:4 { a = dot vpdpbusd i x j over [k] in reg as a { y } }",
     "a: w must have 4 elements of k together and then j"},
    {"u8", "i8",
     "copy xt = a.x [k/2, i, k%2]\n copy wp = a.w [j/32, k/4, j%32, k%4]\n par j:32 { for k, lane j:16 { wp in scratch } "
     "for k, i { xt in scratch } "
     "for i:4 { a = dot vpdpbusd i x j over [k] in reg as a { y } } }",
     "a: xt must have 4 elements of k together"},
    {"u8", "i8",
     "copy wp = a.w [j/32, k/2, j%32, k%2]\n par j:32 { for k, lane j:16 { wp in scratch } "
     "for i:4 { a = dot vpdpbusd i x j over [k] in reg as a { y } } }",
     "a: wp must have 4 elements of k together and then j"},
    {"u8", "i8",
     "copy wp = a.w [j/32, k/4, j%32, k%4]\n par j:32 { for k, lane j:16 { wp in scratch } for i:4 { for k:30 "
     "{ a = dot vpdpbusd i x j over [k] in scratch } for i, lane j:16 { y } } }",
     "a: for k:30 is no multiple of the 4 that vpdpbusd takes at once"},
    {"u8", "i8",
     "copy wp = a.w [j/32, k/4, j%32, k%4]\n par j:32 { for k, lane j:16 { wp in scratch } for i:4 { for k "
     "{ a = dot vpdpbusd i x j in scratch } for i, lane j:16 { y } } }",
     "a: vpdpbusd runs over an axis by 4 itself, and 'over' names none"},
    {"i8", "i8",
     "copy wp = a.w [j/32, k/4, j%32, k%4]\n par j:32 { for k, lane j:16 { wp in scratch } "
     "for i:13 { a = dot vpdpbusd i x j over [k] in reg as a { y } } }",
     "a: a tile of 13x32 takes 33 registers of 32"},
    {"u8", "i8",
     "copy wp = a.w [j/32, k/4, j%32, k%4]\n par j:32 { for k, lane j:16 { wp in scratch } "
     "for i:4 { a = dot vpdpbusd i x j over [k:16] in reg as a { y } } }",
     "a: vpdpbusd has no partial sums over k"},
    {"u8", "u8",
     "copy wp = a.w [j/32, k/4, j%32, k%4]\n par j:32 { for k, lane j:16 { wp in scratch } "
     "for i:32 { a = dot tdpbusd i x j over [k] in reg as a { y } } }",
     "a: tdpbusd multiplies u8 by i8 into i32; rows are u8, columns u8, the sum i32"},
    {"u8", "i8",
     "copy wp = a.w [j/48, k/4, j%48, k%4]\n par j:48 { for k, lane j:16 { wp in scratch } "
     "for i:32 { a = dot tdpbusd i x j over [k] in reg as a { y } } }",
     "a: a tile of 32x48 takes 11 registers of 8"},
    {"u8", "i8",
     "copy wp = a.w [j/32, k/4, j%32, k%4]\n par j:32 { for k, lane j:16 { wp in scratch } "
     "for i:20 { a = dot tdpbusd i x j over [k] in reg as a { y } } }",
     "a: tile registers of 10 rows need whole tiles of 20, and i has others"},
    {"u8", "i8",
     "copy wp = a.w [j/32, k/4, j%32, k%4]\n par j:32 { for k, lane j:16 { wp in scratch } "
     "for i:8, i:16 { a = dot tdpbusd i x j over [k] in reg as a { y } } }",
     "for i:16 is no part of for i:8"},
    {"u8", "i8",
     "copy wp = a.w [j/32, k/4, j%32, k%4]\n par j:32 { for k, lane j:16 { wp in scratch } "
     "for i:19 { a = dot tdpbusd i x j over [k] in reg as a { y } } }",
     "a: a tile of 19x32 is no number of tile registers of up to 16x16"},
    {"bf16", "bf16", "par i, lane j:16 { unroll k { a = dot vdpbf16ps over [k] in reg } y }",
     "a: vdpbf16ps takes 2 points of k, and no loop 'unroll k:2' around it leaves them open"},
    {"bf16", "bf16", "par i, lane j:16 { for k:2 { a = dot vdpbf16ps over [k] in reg } y }",
     "a: vdpbf16ps takes 2 points of k, and no loop 'unroll k:2' around it leaves them open"},
    {"bf16", "bf16", "par i, lane j:16 { for k:8 { unroll k:2 { a = dot vdpbf16ps over [k] in reg } } y }",
     "a: unroll k stands in another loop over its axis"},
    {"bf16", "bf16", "par i, lane j:16 { unroll k:2 { a in reg } y }", "unroll k: what is written out goes point by point"},
    {"u8", "i8", "par i, lane j:16 { unroll k:4 { a = dot sdot over [k] in reg } y }",
     "a: lanes add up by sdot products of i8 and i8, under casts to i32"},
    {"bf16", "bf16", "par i, j { unroll k:2 { a = dot vdpbf16ps over [k] in reg } y }",
     "a: vdpbf16ps without rows and columns is each lane's own sum, in lanes that it is not reduced along, on CPUs"},
    {"u8", "i8",
     "copy xt = a.x [k/4, i, k%4]\n copy wp = a.w [j/32, k/4, j%32, k%4]\n par j:32 { for k, lane j:16 { wp in scratch } "
     "for k, i { xt in scratch } for i:32 { a = dot tdpbusd i x j over [k] in reg as a { y } } }",
     "a: xt must have 64 elements of k together, and rows at equal distances"},
};
enum { NREFUSED = sizeof refused / sizeof *refused };

START_TEST(what_a_row_cannot_take_is_refused)
{
    static const int size[] = {16, 64, 64};
    dlc_str text = {0};
    char message[1024];
    head(&text, "x86-64-v4+vnni", refused[_i].x, refused[_i].w, size);
    dlc_str_printf(&text, "schedule x86-64-v4+vnni {\n%s\n}\n\nsteps {\n  launch 0 (%%x, %%w) -> (%%y)\n}\n", refused[_i].schedule);
    dlc_model *model = compiled(dlc_str_text(&text), "x86-64-v4+vnni", message, sizeof message);
    ck_assert_msg(!model && strstr(message, refused[_i].message), "'%s', not '%s'", message, refused[_i].message);
    dlc_str_deinit(&text);
}
END_TEST

/* Where in a byte of the weights the code of a point is. */
static const struct {
    const char *shift;
    int is_taken;
} places[] = {
    {"h * 4", 1},
    {"h * 6", 0},     /* of the second two bits only are in the byte */
    {"j % 2 * 4", 0}, /* columns differ */
    {"k % 2 * 4", 0}, /* and so do neighbours */
};

START_TEST(codes_are_taken_from_one_place)
{
    dlc_str text = {0};
    char message[1024];
    dlc_str_printf(&text,
                   "module @t for x86-64-v4+vnni after choose {\n  input %%x: i8[16,64]\n  input %%w: u8[32,64]\n  output %%y: i32[16,64]\n}\n\n"
                   "kernel @k(x: i8[16,64], w: u8[32,64]) -> (y: i32[16,64]) {\n  axis i=16, j=64, h=2, k=32\n"
                   "  a[i,j] = sum(h,k) i32(x[i, h * 32 + k]) * i32(and(shr(w[k, j], u8(%s)), u8(15)))\n  y[i,j] = a[i, j] + 1 -> y[i, j]\n}\n"
                   "schedule x86-64-v4+vnni {\n  copy wp = a.w [j/32, k/4, j%%32, k%%4]\n  par j:32 {\n    for k, lane j:16 {\n      wp in scratch\n    }\n"
                   "    for i:4 {\n      a = dot vpdpbusd i x j over [h, k] in reg\n      as a {\n        y\n      }\n    }\n  }\n}\n\n"
                   "steps {\n  launch 0 (%%x, %%w) -> (%%y)\n}\n", places[_i].shift);
    dlc_model *model = compiled(dlc_str_text(&text), "x86-64-v4+vnni", message, sizeof message);
    ck_assert_msg(places[_i].is_taken ? model != NULL : !model && strstr(message, "takes codes of wp from the bytes that hold them") != NULL,
                  "'%s': %s", places[_i].shift, model ? "is taken" : message);
    dlc_model_close(model);
    dlc_str_deinit(&text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dots");
    TCase *tests = tcase_create("dots");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, rows_give_the_same_numbers_everywhere, 0, NROWS * NSIZES * NTREES);
    tcase_add_loop_test(tests, bytes_are_multiplied_lane_by_lane, 0, 4 * NTARGETS);
    tcase_add_loop_test(tests, lanes_add_up_granules_for_themselves, 0, NOWN);
    tcase_add_loop_test(tests, windows_share_granules_of_rows, 0, NOWN_WINDOWS);
    tcase_add_loop_test(tests, constants_are_packed_for_the_row, 0, 2 * NTARGETS);
    tcase_add_loop_test(tests, parts_are_summed_apart, 0, 3 * NPARTS);
    tcase_add_loop_test(tests, tiles_stay_in_their_registers, 0, sizeof loops / sizeof *loops);
    tcase_add_test(tests, fewer_rows_keep_the_shape);
    tcase_add_test(tests, panels_of_a_block_are_vectors);
    tcase_add_test(tests, known_lanes_are_stored_in_parts);
    tcase_add_test(tests, padding_is_skipped);
    tcase_add_loop_test(tests, parts_are_as_exact_as_floats, 0, 4);
    tcase_add_loop_test(tests, what_is_not_finite_stays_so, 0, 4);
    tcase_add_loop_test(tests, what_a_row_cannot_take_is_refused, 0, NREFUSED);
    tcase_add_loop_test(tests, codes_are_taken_from_one_place, 0, sizeof places / sizeof *places);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
