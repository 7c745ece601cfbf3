/*
 * rint(x / c) in f32, c a number: what quantises a value. A divider takes as long as ten products (16 lanes, x86-64), so where fma is an
 * instruction x / c is fma(x, hi, x * lo), hi + lo being 1/c in two floats (N. Brisebarre, J.-M. Muller, S. K. Raina, "Accelerating
 * Correctly Rounded Floating-Point Division when the Divisor Is Known in Advance", IEEE Transactions on Computers 53(8), 2004, section 4).
 * To the bits of x / c, for every x:
 * - hi is rounded towards zero, so lo has its sign: infinities and signed zeros are what a division makes of them.
 * - Before its last rounding the result is off by at most 2^-45 of it: lo, which is less than 2^-23 of 1/c, is 1.5 units of its last place
 *   from what it stands for, or nearer, and x * lo is rounded. Its last rounding is that of x / c unless a midpoint of two floats lies
 *   between. Such x are few for a c: all are found and tried. Where one is rounded otherwise (for 7 c of 100) a neighbour of lo may do.
 * - Where x / c, or x * lo, is below the normal numbers both are rounded to zeros of one sign: that is why rint has to follow.
 */
#include "ir/expr/expand.h"

#include <math.h>
#include <stdlib.h>

enum { DIGITS = 24 }; /* of f32 */

typedef struct {
    float hi, lo;
} reciprocal;

static reciprocal reciprocal_of(float c)
{
    float hi = (float)(1.0 / c);
    if (fabs((double)hi * c) > 1) /* the product is exact */
        hi = nextafterf(hi, 0);
    return (reciprocal){hi, (float)((1 - (double)hi * c) / c)};
}

/* Of odd c, modulo 2^64: each step of Newton's doubles the digits that are right, of which c itself has three. */
static uint64_t inverse(uint64_t c)
{
    uint64_t x = c;
    for (int digits = 3; digits < 64; digits *= 2)
        x *= 2 - c * x;
    return x;
}

static int rounds_alike(float x, float c, reciprocal by)
{
    return fmaf(x, by.hi, x * by.lo) == x / c;
}

/*
 * With X and C the digits of x and c, as integers of DIGITS bits, X / C lies beside a midpoint M / 2^k, M odd: k is DIGITS where X >= C, else
 * DIGITS + 1. Within 2^-45 of it, j = 2^k X - C M is at most 2^(k + DIGITS - 45), 8 or 16, and not 0, for C has fewer than k digits. So for
 * each j: M = -j / C modulo 2^k, once factors of two are taken from C, j and 2^k.
 */
static int is_exact_beside(uint64_t c, int k, int64_t j, reciprocal by)
{
    int twos = __builtin_ctzll(c);
    if (__builtin_ctzll((uint64_t)j) != twos)
        return 1; /* M would be even, or there is none */
    uint64_t period = 1ull << (k - twos), least = 1ull << DIGITS;
    for (uint64_t m = -(uint64_t)(j / (1 << twos)) * inverse(c >> twos) % period; m < 2 * least; m += period) {
        uint64_t x = (uint64_t)((int64_t)(c * m) + j) >> k;
        if (m >= least && x >= least / 2 && x < least && (x >= c) == (k == DIGITS) && !rounds_alike((float)x, (float)c, by))
            return 0;
    }
    return 1;
}

static int is_exact(float digits, reciprocal by)
{
    enum { FARTHEST = 16 };
    for (int k = DIGITS; k <= DIGITS + 1; k++)
        for (int64_t j = 1; j <= FARTHEST; j++)
            if (!is_exact_beside((uint64_t)digits, k, j, by) || !is_exact_beside((uint64_t)digits, k, -j, by))
                return 0;
    return 1;
}

/* Of c's digits; the exponent changes nothing. lo = 0: there is none, or c is a power of two, whose reciprocal is exact. */
static reciprocal exact_reciprocal(float digits)
{
    reciprocal by = reciprocal_of(digits);
    const float los[] = {by.lo, nextafterf(by.lo, 1), nextafterf(by.lo, 0)};
    for (uint32_t i = 0; by.lo != 0 && i < sizeof los / sizeof *los; i++)
        if (is_exact(digits, (reciprocal){by.hi, los[i]}))
            return (reciprocal){by.hi, los[i]};
    return (reciprocal){0};
}

dlc_expr dlc_expand_rounded_quotient(const dlc_expand *e, dlc_expr x, double divisor)
{
    enum { MOST_EXPONENT = 60 }; /* far from where anything but a tiny quotient leaves the normal numbers */
    int exponent = 0;
    float digits = ldexpf(frexpf((float)divisor, &exponent), DIGITS);
    if (!e->fuses || !e->single || !isfinite(divisor) || divisor == 0 || abs(exponent) > MOST_EXPONENT)
        return 0;
    reciprocal by = exact_reciprocal(fabsf(digits));
    if (by.lo == 0)
        return 0;
    double scale = copysign(ldexp(1, DIGITS - exponent), divisor);
    dlc_expr low = dlc_x_mul(e, x, dlc_x_num(e, by.lo * scale));
    return dlc_expr1(e->pool, DLC_EXPR_RINT, dlc_expr3(e->pool, DLC_EXPR_FMA, x, dlc_x_num(e, by.hi * scale), low));
}
