/*
 * Images as rows of register tiles, under schedules written by hand: windows that are copied, in parts too, and lines of which tile registers
 * have pixels each, with the instruction and without.
 */
#include "tests/unit/dot_cases.h"

enum { PART_H = 9, PART_W = 35, PART_C = 38, PART_F = 40 };

/* x at (i, j) of the image, 0 around it. */
static double pixel(const float *x, int h, int w, int c)
{
    return h < 0 || h >= PART_H || w < 0 || w >= PART_W ? 0 : x[(h * PART_W + w) * PART_C + c];
}

/* A window past the border is copied part by part; constants lie as the row wants them. */
START_TEST(parts_of_windows_and_of_constants)
{
    static const char *const layouts[][2] = {{"[oh, ow, part, kh, kw, ic]", "[oc/32, part, kh, kw, ic/2, oc%32, ic%2]"},
                                             {"[oh, part, ow, kh, kw, ic]", "[oc/32, kh, kw, ic/2, part, oc%32, ic%2]"},
                                             {"[oh+kh, ow+kw, part, ic]", "[oc/32, kh, kw, ic/2, part, oc%32, ic%2]"}};
    const char *loops_of_copy = _i / 2 < 2 ? "ow, part, kh, kw, lane ic:8" : "oh_kh, ow_kw, part, lane ic:8";
    const char *target = _i % 2 ? "x86-64-v3" : "x86-64-v4+amx_bf16";
    const float *x = random_floats(PART_H * PART_W * PART_C, 11), *w = random_floats(9 * PART_C * PART_F, 12);
    dlcrt_tensor image = in_parts(x, PART_H * PART_W, PART_C, 0), filter = in_parts(w, 9 * PART_C, PART_F, 1), y = {0};
    dlc_str text = {0};
    char message[1024];
    image.rank = 4;
    memcpy(image.dims, (int64_t[]){PART_H, PART_W, 3, PART_C}, 4 * sizeof *image.dims);
    dlc_str_printf(&text, "module @t for %s after lower {\n  input %%x: bf16[9,35,3,38]\n  const %%w: bf16[3,3,3,38,40] = [", target);
    for (int i = 0; i < 27 * PART_C * PART_F; i++)
        dlc_str_printf(&text, "%s%.9g", i ? ", " : "", element(&filter, i));
    dlc_str_printf(&text,
                   "]\n  output %%y: f32[9,35,40]\n}\n\n"
                   "kernel @k(x: bf16[9,35,3,38], w: bf16[3,3,3,38,40]@const) -> (y: f32[9,35,40]) {\n"
                   "  axis oh=9, ow=35, oc=40, kh=3, kw=3, ic=38\n"
                   "  a[oh,ow,oc] = sum(kh,kw,ic) (f32(x[oh + kh - 1, ow + kw - 1, 0, ic else 0]) + f32(x[oh + kh - 1, ow + kw - 1, 1, ic else 0]) + "
                   "f32(x[oh + kh - 1, ow + kw - 1, 2, ic else 0])) * (f32(w[0, kh, kw, ic, oc]) + f32(w[1, kh, kw, ic, oc]) + "
                   "f32(w[2, kh, kw, ic, oc])) -> y[oh, ow, oc]\n}\n"
                   "schedule %s {\n  copy rows = a.parts_left %s\n  copy wp = a.parts_right %s\n  const { wp }\n"
                   "  par oh {\n    for %s {\n      rows in scratch\n    }\n    for oc:32, ow:32 {\n"
                   "      a = dot bf16x3 ow x oc over [kh, kw, ic]\n    }\n  }\n}\n\nsteps {\n  launch 0 (%%x, %%w) -> (%%y)\n}\n",
                   target, layouts[_i / 2][0], layouts[_i / 2][1], loops_of_copy);
    dlc_model *model = compiled(dlc_str_text(&text), target, message, sizeof message);
    ck_assert_msg(model != NULL, "%s: %s", target, message);
    dlc_model_close(model);
    dlc_str_deinit(&text);
    if (!run_once(&image, 1, &y, target))
        return;
    for (int n = 0; n < PART_H * PART_W * PART_F; n++) {
        double sum = 0, magnitudes = 0;
        for (int k = 0; k < 9 * PART_C; k++) {
            double term = pixel(x, n / PART_F / PART_W + k / PART_C / 3 - 1, n / PART_F % PART_W + k / PART_C % 3 - 1, k % PART_C) *
                          w[k * PART_F + n % PART_F];
            sum += term;
            magnitudes += fabs(term);
        }
        ck_assert_msg(fabs(((const float *)y.data)[n] - sum) <= (_i / 2 < 2 ? 1e-5 : 1e-6 * magnitudes), "%s: [%d] = %.9g, not %.9g", target, n,
                      (double)((const float *)y.data)[n], sum);
    }
}
END_TEST

enum { IMAGE_C = 40, IMAGE_F = 40 };
/* Images h x w, read by 3x3 windows at `step` and `apart` points from each other; tiles, and blocks of them, of rows. */
static const struct {
    const char *x, *w, *row, *fact, *layout;
    int h, w_points, step, apart, tile, block;
} images[] = {
    {"bf16", "bf16", "tdpbf16ps", "amx_bf16", "[oh+kh, ow+kw, ic]", 6, 14, 1, 1, 28, 56},
    {"bf16", "bf16", "tdpbf16ps", "amx_bf16", "[2*oh+kh, 2*ow+kw, ic]", 12, 28, 2, 1, 28, 84},
    {"bf16", "bf16", "tdpbf16ps", "amx_bf16", "[ow+kw, oh+kh, ic]", 3, 13, 1, 1, 13, 39},
    {"u8", "i8", "tdpbusd", "amx_int8", "[oh+2*kh, ow+2*kw, ic]", 4, 36, 1, 2, 24, 72},
    {"i8", "i8", "tdpbssd", "amx_int8", "[oh+kh, ow+kw, ic]", 5, 32, 1, 1, 32, 64},
};
enum { NIMAGES = sizeof images / sizeof *images };

/* Of image i, 0 around it. */
static double sum_of_window(const dlcrt_tensor *x, const dlcrt_tensor *w, int i, int oh, int ow, int f)
{
    double sum = 0;
    for (int k = 0; k < 9 * IMAGE_C; k++) {
        int h = oh * images[i].step + (k / IMAGE_C / 3 - 1) * images[i].apart, v = ow * images[i].step + (k / IMAGE_C % 3 - 1) * images[i].apart;
        if (h >= 0 && h < images[i].h && v >= 0 && v < images[i].w_points)
            sum += element(x, (h * images[i].w_points + v) * IMAGE_C + k % IMAGE_C) * element(w, k * IMAGE_F + f);
    }
    return sum;
}

/* A copy has each pixel once, border included; each tile register has rows of one line. */
START_TEST(lines_of_an_image_are_rows)
{
    int i = _i / 2, step = images[i].step, h = images[i].h / step, width = images[i].w_points / step;
    int is_float = !strcmp(images[i].x, "bf16"), granule = is_float ? 2 : 4;
    const char *acc = is_float ? "f32" : "i32", *outer = images[i].layout[1] == 'o' && images[i].layout[2] == 'w' ? "ow_kw, oh_kh" : "oh_kh, ow_kw";
    dlcrt_tensor x = tensor_of(images[i].x, images[i].h * images[i].w_points, IMAGE_C, 21), w = tensor_of(images[i].w, 9 * IMAGE_C, IMAGE_F, 22), y = {0};
    char target[64], message[1024];
    dlc_str text = {0};
    snprintf(target, sizeof target, "x86-64-v%s%s", _i % 2 ? "3" : "4+", _i % 2 ? "" : images[i].fact);
    x.rank = 3, w.rank = 4;
    memcpy(x.dims, (int64_t[]){images[i].h, images[i].w_points, IMAGE_C}, 3 * sizeof *x.dims);
    memcpy(w.dims, (int64_t[]){3, 3, IMAGE_C, IMAGE_F}, 4 * sizeof *w.dims);
    dlc_str_printf(&text, "module @t for %s after choose {\n  input %%x: %s[%d,%d,40]\n  input %%w: %s[3,3,40,40]\n  output %%y: %s[%d,%d,40]\n}\n\n",
                   target, images[i].x, images[i].h, images[i].w_points, images[i].w, acc, h, width);
    dlc_str_printf(&text, "kernel @k(x: %s[%d,%d,40], w: %s[3,3,40,40]) -> (y: %s[%d,%d,40]) {\n  axis oh=%d, ow=%d, oc=40, kh=3, kw=3, ic=40\n",
                   images[i].x, images[i].h, images[i].w_points, images[i].w, acc, h, width, h, width);
    dlc_str_printf(&text, "  a[oh,ow,oc] = sum(kh,kw,ic) %s(x[oh * %d + kh * %d - %d, ow * %d + kw * %d - %d, ic else 0]) * %s(w[kh, kw, ic, oc]) -> "
                   "y[oh, ow, oc]\n}\n", acc, step, images[i].apart, images[i].apart, step, images[i].apart, images[i].apart, acc);
    dlc_str_printf(&text, "schedule %s {\n  copy rows = a.x %s\n  copy wp = a.w [oc/32, kh, kw, ic/%d, oc%%32, ic%%%d]\n  par (oh, ow):%d {\n"
                   "    for %s, lane ic:8 {\n      rows in scratch\n    }\n    for oc:32 {\n      for kh, kw, ic, lane oc:4 {\n        wp in scratch\n"
                   "      }\n      for oh_ow:%d {\n        a = dot %s oh_ow x oc over [kh, kw, ic]\n      }\n    }\n  }\n}\n\n"
                   "steps {\n  launch 0 (%%x, %%w) -> (%%y)\n}\n",
                   target, images[i].layout, granule, granule, images[i].block, outer, images[i].tile, images[i].row);
    dlc_model *model = compiled(dlc_str_text(&text), target, message, sizeof message);
    ck_assert_msg(model != NULL, "%s: %s\n%s", target, message, dlc_str_text(&text));
    dlc_model_close(model);
    dlc_str_deinit(&text);
    if (!run_once((dlcrt_tensor[]){x, w}, 2, &y, target))
        return;
    for (int n = 0; n < h * width * IMAGE_F; n++) {
        double sum = sum_of_window(&x, &w, i, n / IMAGE_F / width, n / IMAGE_F % width, n % IMAGE_F);
        double got = is_float ? (double)((const float *)y.data)[n] : (double)((const int32_t *)y.data)[n];
        ck_assert_msg(fabs(got - sum) <= (is_float ? 1e-4 : 0), "%s, image %d: [%d] = %.9g, not %.9g", target, i, n, got, sum);
    }
}
END_TEST

/* In lanes, a tile is a line of an image of bytes: taps share the copied pixels, and those in the border are left out. */
enum { LINES = 6, PIXELS = 7, CHANNELS = 8, FILTERS = 32, TAPS = 3 };

/* A result of a convolution whose window begins a line and a pixel before the image. */
static int32_t result_at(const uint8_t *x, const int8_t *w, int step, int h, int v, int o)
{
    int32_t sum = 0;
    for (int r = 0; r < TAPS; r++)
        for (int s = 0; s < TAPS; s++) {
            int line = h * step + r - 1, pixel = v * step + s - 1;
            for (int c = 0; c < CHANNELS && line >= 0 && line < LINES * step && pixel >= 0 && pixel < PIXELS * step; c++)
                sum += x[(line * PIXELS * step + pixel) * CHANNELS + c] * w[((r * TAPS + s) * CHANNELS + c) * FILTERS + o];
        }
    return sum;
}

START_TEST(taps_of_bytes_share_pixels)
{
    static const char *const skips[] = {"", " skip [r]", " skip [r, s]"};
    int step = 1 + _i % 2;
    const char *skip = skips[_i / 2];
    dlcrt_tensor inputs[] = {tensor_of("u8", LINES * step * PIXELS * step, CHANNELS, 7), tensor_of("i8", TAPS * TAPS * CHANNELS, FILTERS, 9)};
    dlcrt_tensor y = {0};
    dlc_str text = {0};
    char message[1024], image[32], times[8] = "";
    snprintf(image, sizeof image, "u8[%d,%d,%d]", LINES * step, PIXELS * step, CHANNELS);
    if (step > 1)
        snprintf(times, sizeof times, "%d*", step);
    dlc_str_printf(&text, "module @t for x86-64-v4+vnni after choose {\n  input %%x: %s\n  input %%w: i8[3,3,8,32]\n  output %%y: i32[6,7,32]\n}\n\n"
                          "kernel @k(x: %s, w: i8[3,3,8,32]) -> (y: i32[6,7,32]) {\n  axis h=6, v=7, o=32, r=3, s=3, c=8\n"
                          "  a[h,v,o] = sum(r,s,c) i32(x[h * %d + r - 1, v * %d + s - 1, c if 1 <= h * %d + r and h * %d + r < %d and "
                          "1 <= v * %d + s and v * %d + s < %d]) * i32(w[r, s, c, o]) -> y[h, v, o]\n}\n",
                   image, image, step, step, step, step, LINES * step + 1, step, step, PIXELS * step + 1);
    dlc_str_printf(&text, "schedule x86-64-v4+vnni {\n  copy rows = a.x [%sh+r, %sv+s, c]\n  copy wp = a.w [r, s, c/4, o, c%%4]\n"
                          "  par (h, v):21, o:32 {\n    for h_r, v_s, lane c:8 {\n      rows in scratch\n    }\n"
                          "    for r, s, c, lane o:16 {\n      wp in scratch\n    }\n"
                          "    for h_v:7 {\n      a = dot vpdpbusd h_v x o over [r, s, c]%s\n    }\n  }\n}\n\n"
                          "steps {\n  launch 0 (%%x, %%w) -> (%%y)\n}\n", times, times, skip);
    inputs[0].rank = 3;
    memcpy(inputs[0].dims, (int64_t[]){LINES * step, PIXELS * step, CHANNELS}, 3 * sizeof(int64_t));
    inputs[1].rank = 4;
    memcpy(inputs[1].dims, (int64_t[]){TAPS, TAPS, CHANNELS, FILTERS}, 4 * sizeof(int64_t));
    dlc_model *model = compiled(dlc_str_text(&text), "x86-64-v4+vnni", message, sizeof message);
    ck_assert_msg(model != NULL, "%s\n%s", message, dlc_str_text(&text));
    dlc_model_close(model);
    dlc_str_deinit(&text);
    if (!run_once(inputs, 2, &y, skip))
        return;
    for (int n = 0; n < LINES * PIXELS * FILTERS; n++)
        ck_assert_int_eq(((const int32_t *)y.data)[n],
                         result_at(inputs[0].data, inputs[1].data, step, n / FILTERS / PIXELS, n / FILTERS % PIXELS, n % FILTERS));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dot_images");
    TCase *tests = tcase_create("dot_images");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, parts_of_windows_and_of_constants, 0, 6);
    tcase_add_loop_test(tests, lines_of_an_image_are_rows, 0, NIMAGES * 2);
    tcase_add_loop_test(tests, taps_of_bytes_share_pixels, 0, 6);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
