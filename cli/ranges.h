/* Which range of numbers the codes of a value should span, from what was seen of it. */
#ifndef DLC_CLI_RANGES_H
#define DLC_CLI_RANGES_H

#include <stddef.h>
#include <stdint.h>

enum { DLC_RANGE_BINS = 2048 };

typedef enum { DLC_RANGE_MSE, DLC_RANGE_MINMAX, DLC_RANGE_PERCENTILE, DLC_RANGE_ENTROPY, DLC_RANGE_COUNT } dlc_range_method;
extern const char *const dlc_range_methods[DLC_RANGE_COUNT];

/* Seen in two passes over the data: bounds first, then the histogram between them. */
typedef struct {
    double least, most; /* 0 included */
    uint64_t n;
    double bins[DLC_RANGE_BINS];
} dlc_seen;

void dlc_seen_bounds(dlc_seen *seen, const float *values, size_t n);
void dlc_seen_count(dlc_seen *seen, const float *values, size_t n);
/* lo <= 0 <= hi */
void dlc_seen_range(const dlc_seen *seen, dlc_range_method method, double *lo, double *hi);
/* Mean square of what 8-bit codes of this range lose, over the mean square of the value; and the share that they cut off. */
double dlc_seen_noise(const dlc_seen *seen, double lo, double hi, double *cut);

#endif
