/* Estimates where caches and memory decide: on a machine of a large and slow L3. Times in comments are an Emerald Rapids'. */
#include "tests/unit/estimated.h"

static dlc_machine slow_l3(void)
{
    dlc_machine machine = *dlc_target_find("x86-64-v4")->machine;
    machine.cycles_per_us = 2680, machine.near_bytes_per_us = 123000, machine.l3_bytes_per_us = 20000, machine.far_bytes_per_us = 14500;
    machine.l3_bytes = 260 << 20, machine.sum_latency = 4, machine.element_loads = 1.76, machine.spread_cycles = 0.71;
    machine.tile_cycles = 0.55, machine.burst_cycles = 2.85, machine.row_cycles = 20, machine.again_bytes = 42, machine.fitted = 1;
    return machine;
}

static double us_on(const dlc_machine *machine, const char *kernel_text, const char *schedule_text, double threads)
{
    dlc_target target = *dlc_target_find("x86-64-v4");
    target.machine = machine;
    target.l1_bytes = 48 << 10, target.l2_bytes = 2 << 20;
    return estimated_us(&target, kernel_text, schedule_text, threads);
}

static double us_of(const char *kernel, const char *schedule, double threads)
{
    dlc_machine machine = slow_l3();
    return us_on(&machine, kernel, schedule, threads);
}

#define PRODUCT(rows, k, columns) "kernel @f(x: f32[" #rows "," #k "], w: f32[" #k "," #columns "]@const) -> (y: f32[" #rows "," #columns "]) {\n" \
                                  "  axis i=" #rows ", j=" #columns ", k=" #k "\n  y[i,j] = sum(k) x[i, k] * w[k, j]\n}\n"
#define TILES(width, loops, ahead) "schedule x86-64-v4 {\n  copy columns = y.w [j/" #width ", k, j%" #width "]\n  const { columns }\n  " \
                                   loops " {\n    y = dot fma i x j over [k]" ahead "\n  }\n}\n"
#define AHEAD(width, loops) TILES(width, loops, " ahead 1 via L2")

/* Tiles of rows that meet a panel one after the other share what they ask for; where the next tile has the next panel, each asks for all of it.
 * 196 x 384 by 64: 56.4 and 72 us by 4 rows, 55.4 and 56.8 by 6. */
START_TEST(panels_are_asked_for_by_shares)
{
    double shared = us_of(PRODUCT(196, 384, 64), AHEAD(64, "par j:64, i:4"), 1), all = us_of(PRODUCT(196, 384, 64), AHEAD(64, "par i:4, j:64"), 1);
    double tall = us_of(PRODUCT(196, 384, 64), AHEAD(64, "par j:64, i:6"), 1), tall_all = us_of(PRODUCT(196, 384, 64), AHEAD(64, "par i:6, j:64"), 1);
    ck_assert_msg(all > 1.15 * shared, "%.2f and %.2f us", all, shared);
    ck_assert_msg(tall_all < 1.1 * tall, "%.2f and %.2f us", tall_all, tall); /* multiplications hide it */
    shared = us_of(PRODUCT(196, 384, 64), TILES(64, "par j:64, i:4", ""), 1), all = us_of(PRODUCT(196, 384, 64), TILES(64, "par i:4, j:64", ""), 1);
    ck_assert_double_eq(shared, all); /* nothing is asked for */
}
END_TEST

/* Threads that share columns read half of the weights each, also of those that L2 holds, but all rows, of which another thread's cache has half. */
#define BY_COLUMNS AHEAD(32, "par j:32, for i:14")
#define BY_ROWS AHEAD(32, "par i:14, for j:32")
START_TEST(threads_share_weights_or_rows)
{
    double columns = us_of(PRODUCT(56, 512, 512), BY_COLUMNS, 2), rows = us_of(PRODUCT(56, 512, 512), BY_ROWS, 2);
    ck_assert_msg(columns < 0.98 * rows, "%.2f and %.2f us", columns, rows);
    columns = us_of(PRODUCT(1568, 192, 32), TILES(16, "par j:16, for i:14", ""), 2);
    rows = us_of(PRODUCT(1568, 192, 32), TILES(16, "par i:14, for j:16", ""), 2);
    ck_assert_msg(rows < 0.96 * columns, "%.2f and %.2f us", columns, rows);
}
END_TEST

/* A line that is asked for though it is there is looked for, and does not come: tiles of 5 and 6 rows by four vectors, whose next one has the next
 * panel, take 1.07 and 1.01 times what 14 by two do. */
START_TEST(lines_that_are_there_do_not_come)
{
    double two = us_of(PRODUCT(784, 256, 128), AHEAD(32, "par i:14, j:32"), 1), six = us_of(PRODUCT(784, 256, 128), AHEAD(64, "par i:6, j:64"), 1);
    double five = us_of(PRODUCT(784, 256, 128), AHEAD(64, "par i:5, j:64"), 1);
    ck_assert_msg(six < 1.04 * two && five > 1.04 * six && five < 1.09 * two, "%.2f, %.2f and %.2f us", two, six, five);
}
END_TEST

/* The first part of a sum is its total; what the others take is the machine's. 7 rows of two vectors take .97 of what 14 do, of 27 by 64 in three
 * parts. */
#define PARTS(part, rows) "schedule x86-64-v4 {\n  copy columns = y.w [j/32, k, j%32]\n  const { columns }\n  par j:32, i:" #rows " {\n" \
                          "    y = dot fma i x j over [k" part "]\n  }\n}\n"
START_TEST(first_parts_are_totals)
{
    dlc_machine machine = slow_l3();
    double one = us_of(PRODUCT(784, 54, 32), PARTS("", 14), 1), two = us_of(PRODUCT(784, 54, 32), PARTS(":27", 14), 1);
    double three = us_of(PRODUCT(784, 54, 32), PARTS(":18", 14), 1);
    ck_assert_msg(two > 1.02 * one && three - one > 1.9 * (two - one), "%.2f, %.2f and %.2f us", one, two, three);
    machine.part_cycles = 0.5;
    ck_assert_double_lt(us_on(&machine, PRODUCT(784, 54, 32), PARTS(":27", 14), 1) - one, 0.6 * (two - one));
    machine.part_cycles = 0.7;
    double high = us_on(&machine, PRODUCT(784, 27, 64), PARTS(":9", 14), 1), low = us_on(&machine, PRODUCT(784, 27, 64), PARTS(":9", 7), 1);
    ck_assert_msg(low > 0.92 * high && low < high, "%.2f and %.2f us", low, high);
}
END_TEST

/* Steps of one vector of columns take more, too, on a machine that says so: 14 rows by one 1.24 times what they take by two, of a product that is
 * half of its kernel. */
START_TEST(narrow_steps_take_what_the_machine_says)
{
    dlc_machine machine = slow_l3();
    machine.narrow_cycles = 0.5;
    double free = us_of(PRODUCT(784, 256, 128), TILES(16, "par j:16, i:14", ""), 1);
    double narrow = us_on(&machine, PRODUCT(784, 256, 128), TILES(16, "par j:16, i:14", ""), 1);
    ck_assert_msg(narrow > 1.03 * free && narrow < 1.08 * free, "%.2f and %.2f us", narrow, free);
    ck_assert_double_eq(us_on(&machine, PRODUCT(784, 256, 128), BY_ROWS, 1), us_of(PRODUCT(784, 256, 128), BY_ROWS, 1));
}
END_TEST

/* A row that is shorter than a step of several vectors is folded vector by vector: 3x3 maxima of 64 channels by four vectors 79 us, by one or
 * eight 86. */
#define MAXIMA(count) "schedule x86-64-v4 {\n  par i {\n    lane c:16" count " {\n      unroll k {\n        m in reg\n      }\n      y\n" \
                      "    }\n  }\n}\n"
START_TEST(short_rows_are_folded_by_vectors)
{
    const char *kernel = "kernel @f(x: f32[64,9,64]) -> (y: f32[64,64]) {\n  axis i=64, c=64, k=9\n  m[i,c] = max(k) x[i, k, c]\n"
                         "  y[i,c] = m + 1.0\n}\n";
    double one = us_of(kernel, MAXIMA(""), 1), four = us_of(kernel, MAXIMA(" x 4"), 1), eight = us_of(kernel, MAXIMA(" x 8"), 1);
    ck_assert_msg(four < 0.99 * one, "%.2f and %.2f us", four, one);
    ck_assert_double_eq(eight, one);
}
END_TEST

/* Of attention by heads each thread has its own keys and values, by queries both read all of them. */
#define ATTENTION "kernel @f(q: f32[128,384], k: f32[128,384], v: f32[128,384]) -> (y: f32[128,12,32]) {\n  axis h=12, i=128, j=128, d=32, e=32\n" \
                  "  a[h,i,j] = sum(d) q[i, h * 32 + d] * k[j, h * 32 + d]\n  y[h,i,e] = sum(j) v[j, h * 32 + e] * exp(a) -> y[i, h, e]\n}\n"
#define HEADS(pars) "schedule x86-64-v4 {\n  copy columns = a.q [h, i/64, d, i%64]\n  par " pars " {\n    for d:16, lane i:16, unroll d {\n" \
                    "      columns in scratch\n    }\n    for j:5 {\n      a = dot fma j x i over [d] in scratch\n    }\n    for e:32, i:13 {\n" \
                    "      y = dot fma i x e over [j]\n    }\n  }\n}\n"
START_TEST(threads_share_heads_or_queries)
{
    double heads = us_of(ATTENTION, HEADS("h, i:64"), 2), queries = us_of(ATTENTION, HEADS("i:64, h"), 2);
    ck_assert_msg(queries > 1.015 * heads, "%.2f and %.2f us", queries, heads);
    ck_assert_double_eq(us_of(ATTENTION, HEADS("h, i:64"), 1), us_of(ATTENTION, HEADS("i:64, h"), 1));
}
END_TEST

/* Results that L2 does not hold, by panels of columns or whole rows: .83 of the time. Neighbours' windows of more pages than are followed; those
 * that lie near do not differ, nor does anything where L3 is as good as L2. */
#define WIDE PRODUCT(12544, 16, 64)
#define WINDOWS(size, results) "kernel @f(x: f32[" #size "," #size ",96], w: f32[3,3,96]@const) -> (y: f32[" #results "," #results ",96]) {\n" \
                               "  axis c=96, oh=" #results ", ow=" #results ", kh=3, kw=3\n" \
                               "  y[c,oh,ow] = sum(kh,kw) x[oh * 2 + kh, ow * 2 + kw, c] * w[kh, kw, c] -> y[oh, ow, c]\n}\n"
#define BESIDE(n) "schedule x86-64-v4 {\n  par oh, ow:" #n ", lane c:16, unroll ow, kh, kw {\n    y\n  }\n}\n"
START_TEST(far_bytes_come_in_order)
{
    dlc_machine other = slow_l3();
    double rows = us_of(WIDE, TILES(32, "par i:1568, for i:14, j:32", ""), 1), panels = us_of(WIDE, TILES(32, "par i:1568, for j:32, i:14", ""), 1);
    double near7 = us_of(WINDOWS(57, 28), BESIDE(7), 1), near14 = us_of(WINDOWS(57, 28), BESIDE(14), 1);
    double far7 = us_of(WINDOWS(113, 56), BESIDE(7), 1), far14 = us_of(WINDOWS(113, 56), BESIDE(14), 1);
    ck_assert_msg(panels > 1.08 * rows, "%.2f and %.2f us", panels, rows);
    ck_assert_msg(far14 / far7 > 1.03 && near14 < near7 * 1.01, "%.2f and %.2f us, %.2f and %.2f us", far14, far7, near14, near7);
    other.l3_bytes_per_us = 97000;
    rows = us_on(&other, WIDE, TILES(32, "par i:1568, for i:14, j:32", ""), 1);
    panels = us_on(&other, WIDE, TILES(32, "par i:1568, for j:32, i:14", ""), 1);
    ck_assert_msg(panels < 1.01 * rows, "%.2f and %.2f us", panels, rows);
}
END_TEST

/* Rows that are copied begin where additions say, unless borders are tested for. */
#define SCALED(rest) "kernel @f(x: f32[12544,32], s: f32[32], w: f32[32,16]@const) -> (y: f32[12544,16]) {\n  axis i=12544, j=16, k=32\n" \
                     "  y[i,j] = sum(k) s[k] * x[i, k" rest "] * w[k, j]\n}\n"
#define COPIED "schedule x86-64-v4 {\n  copy rows = y.left [i, k]\n  par i:14, j:16 {\n    for i, lane k:16 {\n      rows in scratch\n    }\n" \
               "    y = dot fma i x j over [k]\n  }\n}\n"
START_TEST(plain_rows_begin_at_once)
{
    double plain = us_of(SCALED(""), COPIED, 1), tested = us_of(SCALED(" if 1 <= i"), COPIED, 1);
    ck_assert_msg(tested > 1.3 * plain, "%.2f and %.2f us", tested, plain);
}
END_TEST

/* The first sum of a norm reads rows alone, and is begun while the row before is worked on; the sum of squares waits for it. One vector at a time,
 * not four: 1.05 and 1.17 times. Of long rows nobody looks so far ahead. */
#define NORM(n) "kernel @f(x: f32[128," #n "]) -> (y: f32[128," #n "]) {\n  axis i=128, r=" #n ", q=" #n ", j=" #n "\n  m[i] = sum(r) x[i, r]\n" \
                "  v[i] = sum(q) (x[i, q] - m) * (x[i, q] - m)\n  y[i,j] = v * (x[i, j] - m)\n}\n"
#define FOLDS(first, second) "schedule x86-64-v4 {\n  par i {\n    lane r:16" first " {\n      m in reg\n    }\n    lane q:16" second " {\n" \
                             "      v in reg\n    }\n    lane j:16 {\n      y\n    }\n  }\n}\n"
START_TEST(first_folds_are_begun_early)
{
    double four = us_of(NORM(384), FOLDS(" x 4", " x 4"), 1), first = us_of(NORM(384), FOLDS("", " x 4"), 1);
    double second = us_of(NORM(384), FOLDS(" x 4", ""), 1);
    ck_assert_msg(first - four < 0.65 * (second - four) && second > 1.14 * four, "%.2f, %.2f and %.2f us", four, first, second);
    four = us_of(NORM(1024), FOLDS(" x 4", " x 4"), 1), first = us_of(NORM(1024), FOLDS("", " x 4"), 1);
    second = us_of(NORM(1024), FOLDS(" x 4", ""), 1);
    ck_assert_msg(first - four > 0.8 * (second - four), "%.2f, %.2f and %.2f us", four, first, second);
}
END_TEST

/* Of attention the rows of the second product lie side by side, and ports spread more of them than of rows apart: by 16 columns it takes what it
 * does by 32. A panel whose elements are copied one by one takes as long as the machine says. */
#define WIDTH(lanes, columns, rows) \
    "schedule x86-64-v4 {\n  copy columns = a.q [h, i/64, d, i%64]\n  par h, i:64 {\n    for d:16, lane i:" #lanes ", unroll d {\n" \
    "      columns in scratch\n    }\n    for j:5 {\n      a = dot fma j x i over [d] in scratch\n    }\n" \
    "    for e:" #columns ", i:" #rows " {\n      y = dot fma i x e over [j]\n    }\n  }\n}\n"
START_TEST(side_by_side_are_spread_sooner)
{
    dlc_machine soon = slow_l3(), late = slow_l3();
    double narrow = us_of(ATTENTION, WIDTH(16, 16, 13), 1), wide = us_of(ATTENTION, WIDTH(16, 32, 12), 1);
    ck_assert_msg(narrow < 1.02 * wide, "%.2f and %.2f us", narrow, wide);
    soon.panel_cycles = 0.75, late.panel_cycles = 1.3;
    double turned = us_on(&soon, ATTENTION, WIDTH(16, 32, 12), 1), copied = us_on(&soon, ATTENTION, WIDTH(8, 32, 12), 1);
    ck_assert_msg(copied > 1.01 * turned && copied < 1.06 * turned, "%.2f and %.2f us", turned, copied);
    ck_assert_double_eq(us_on(&late, ATTENTION, WIDTH(16, 32, 12), 1), turned);
    ck_assert_double_eq(us_on(&late, ATTENTION, WIDTH(8, 32, 12), 1), us_of(ATTENTION, WIDTH(8, 32, 12), 1));
    ck_assert_double_gt(us_on(&late, ATTENTION, WIDTH(8, 32, 12), 1), 1.03 * copied);
}
END_TEST

/* Results by pieces of one line, of two and of four: 266, 228 and 209 us beside another product. */
START_TEST(lone_lines_are_waited_for)
{
    double one = us_of(WIDE, TILES(16, "par i:1568, for j:16, i:14", ""), 1), two = us_of(WIDE, TILES(32, "par i:1568, for j:32, i:14", ""), 1);
    double one_row = us_of(WIDE, TILES(16, "par i:1568, for i:14, j:16", ""), 1);
    double two_rows = us_of(WIDE, TILES(32, "par i:1568, for i:14, j:32", ""), 1);
    ck_assert_msg(one - one_row > 1.3 * (two - two_rows), "%.2f less %.2f and %.2f less %.2f us", one, one_row, two, two_rows);
}
END_TEST

/* Panels that come to L2 while those before them are multiplied are read slower than those that are there: of 2.4 MB of weights 8 rows by 48
 * columns, which go through a panel twice as fast as 14 by 32, take more, of .6 MB the same. */
#define BLOCK(columns, rows) AHEAD(columns, "par i:56, for j:" #columns ", i:" #rows)
START_TEST(panels_that_just_came_are_waited_for)
{
    double low = us_of(PRODUCT(196, 384, 1536), BLOCK(48, 8), 1), high = us_of(PRODUCT(196, 384, 1536), BLOCK(32, 14), 1);
    double low_near = us_of(PRODUCT(196, 384, 384), BLOCK(48, 8), 1), high_near = us_of(PRODUCT(196, 384, 384), BLOCK(32, 14), 1);
    ck_assert_msg(low / high > 1.01 * low_near / high_near, "%.2f and %.2f, %.2f and %.2f us", low, high, low_near, high_near);
}
END_TEST

/* Each of two threads finds in its own L2 what it goes through in the order of memory: windows of 112x112x64 by rows 60 us, by columns of windows 76,
 * of one thread 148. Of results by columns half were last in the other's. */
#define FEW_WINDOWS "kernel @f(x: f32[113,113,64], w: f32[3,3,64]@const) -> (y: f32[56,56,64]) {\n  axis c=64, oh=56, ow=56, kh=3, kw=3\n" \
                    "  y[c,oh,ow] = sum(kh,kw) x[oh * 2 + kh, ow * 2 + kw, c] * w[kh, kw, c] -> y[oh, ow, c]\n}\n"
#define BY_WINDOWS(pars) "schedule x86-64-v4 {\n  par " pars ", lane c:16, unroll ow, kh, kw {\n    y\n  }\n}\n"
START_TEST(threads_find_what_they_had)
{
    double rows = us_of(FEW_WINDOWS, BY_WINDOWS("oh, for ow:7"), 2), columns = us_of(FEW_WINDOWS, BY_WINDOWS("ow:7, for oh"), 2);
    ck_assert_msg(columns > 1.1 * rows, "%.2f and %.2f us", rows, columns);
    ck_assert_double_eq(us_of(FEW_WINDOWS, BY_WINDOWS("oh, for ow:7"), 1), us_of(FEW_WINDOWS, BY_WINDOWS("ow:7, for oh"), 1));
    rows = us_of(PRODUCT(784, 32, 192), TILES(48, "par i:8, for j:48", ""), 2);
    columns = us_of(PRODUCT(784, 32, 192), TILES(48, "par j:48, for i:8", ""), 2);
    ck_assert_msg(columns > 1.04 * rows, "%.2f and %.2f us", rows, columns);
}
END_TEST

/* Queries, keys and values in one buffer: by queries, each thread reads all keys and values. By heads 531 us, by queries 1.15 times. */
#define TOGETHER "kernel @f(x: f32[197,2304]) -> (y: f32[197,12,64]) {\n  axis h=12, i=197, j=197, d=64, e=64\n" \
                 "  a[h,i,j] = sum(d) x[i, h * 64 + d] * x[j, h * 64 + d + 768]\n" \
                 "  y[h,i,e] = sum(j) x[j, h * 64 + e + 1536] * exp(a) -> y[i, h, e]\n}\n"
#define TOGETHER_BY(pars) \
    "schedule x86-64-v4 {\n  copy columns = a.left [h, i/64, d, i%64]\n  par " pars " {\n    for d:16, lane i:16, unroll d {\n" \
    "      columns in scratch\n    }\n    for j:5 {\n      a = dot fma j x i over [d] in scratch\n    }\n" \
    "    for e:32, i:13 {\n      y = dot fma i x e over [j]\n    }\n  }\n}\n"
START_TEST(a_buffer_is_dealt_where_all_of_it_is)
{
    double heads = us_of(TOGETHER, TOGETHER_BY("h, i:64"), 2), queries = us_of(TOGETHER, TOGETHER_BY("i:64, h"), 2);
    ck_assert_msg(queries > 1.05 * heads, "%.2f and %.2f us", heads, queries);
}
END_TEST

/* Rows of an expansion that windows read wait in scratch: of few windows' rows in L2, of many not. By 14 rows, of which two blocks share less, 1.055
 * times what it takes by 7 where scratch of 1 MB is beside .6 MB, .98 times where .9 MB is beside .4. */
#define EXPANDED(columns, results) \
    "kernel @f(x: f32[57," #columns ",32], u: f32[32,128]@const, w: f32[3,3,128]@const) -> (y: f32[28," #results ",128]) {\n" \
    "  axis c=128, h=57, v=" #columns ", d=32, oh=28, ow=" #results ", kh=3, kw=3\n  a[c,h,v] = sum(d) x[h, v, d] * u[d, c]\n" \
    "  y[c,oh,ow] = sum(kh,kw) a[c, oh * 2 + kh, ow * 2 + kw] * w[kh, kw, c] -> y[oh, ow, c]\n}\n"
#define ROWS_OF(n) \
    "schedule x86-64-v4 {\n  copy columns = a.u [c/32, d, c%32]\n  const { columns }\n  par oh:" #n " {\n    for c:32, h, v:14 {\n" \
    "      a = dot fma v x c over [d] in scratch\n    }\n    for oh, ow, lane c:16, unroll kh, kw {\n      y\n    }\n  }\n}\n"
START_TEST(scratch_has_room_in_l2)
{
    double few = us_of(EXPANDED(113, 56), ROWS_OF(7), 1), many = us_of(EXPANDED(113, 56), ROWS_OF(14), 1);
    double short_few = us_of(EXPANDED(57, 28), ROWS_OF(7), 1), short_many = us_of(EXPANDED(57, 28), ROWS_OF(14), 1);
    ck_assert_msg(many > few && short_many < short_few, "%.2f and %.2f, %.2f and %.2f us", few, many, short_few, short_many);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("estimate");
    TCase *tcase = tcase_create("estimate");
    tcase_add_test(tcase, panels_are_asked_for_by_shares);
    tcase_add_test(tcase, threads_share_weights_or_rows);
    tcase_add_test(tcase, lines_that_are_there_do_not_come);
    tcase_add_test(tcase, first_parts_are_totals);
    tcase_add_test(tcase, narrow_steps_take_what_the_machine_says);
    tcase_add_test(tcase, short_rows_are_folded_by_vectors);
    tcase_add_test(tcase, threads_share_heads_or_queries);
    tcase_add_test(tcase, far_bytes_come_in_order);
    tcase_add_test(tcase, plain_rows_begin_at_once);
    tcase_add_test(tcase, first_folds_are_begun_early);
    tcase_add_test(tcase, side_by_side_are_spread_sooner);
    tcase_add_test(tcase, lone_lines_are_waited_for);
    tcase_add_test(tcase, panels_that_just_came_are_waited_for);
    tcase_add_test(tcase, threads_find_what_they_had);
    tcase_add_test(tcase, a_buffer_is_dealt_where_all_of_it_is);
    tcase_add_test(tcase, scratch_has_room_in_l2);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
