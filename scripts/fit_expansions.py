#!/usr/bin/env python3
"""Fits the polynomials of ir/expand_*.c and prints ir/expr/expand_table.h.

Each row of FITS is a weighted minimax problem: sum c_k x^e_k ~ g(x) on [lo, hi], with the error weighted so that it is
the relative error of the function in the end. Remez' exchange on a grid, in 60 digits; for f32 the coefficients are
rounded one by one, from the lowest power up, refitting the rest, so that each rounding is made good by what follows.
Needs numpy and mpmath:  scripts/fit_expansions.py > ir/expr/expand_table.h   (a minute; prints the errors to stderr)
"""
import sys

import mpmath as mp
import numpy as np

mp.mp.dps = 60
HALF_LN2 = mp.log(2) / 2 * (1 + mp.mpf(2) ** -10)
QUARTER_PI = mp.pi / 4 * (1 + mp.mpf(2) ** -10)


def near_zero(f, taylor, shift):
    """(f(x) - its first terms) / x^shift: by the series near 0, where the quotient would cancel."""
    tail = taylor[shift:]
    head = taylor[:shift]

    def g(x):
        if abs(x) < mp.mpf("0.02"):
            return mp.polyval(tail[::-1], x)
        return (f(x) - mp.polyval(head[::-1], x)) / x ** shift
    return g


def odd(f, terms):
    """g(z) with f(x) = x + x z g(z), z = x^2."""
    t = mp.taylor(f, 0, 2 * terms + 4)
    tail = t[3::2]

    def g(z):
        if z < mp.mpf("0.001"):
            return mp.polyval(tail[::-1], z)
        x = mp.sqrt(z)
        return (f(x) - x) / (x * z)
    return g


def solve(matrix, right):
    return mp.lu_solve(mp.matrix(matrix), mp.matrix(right))


def remez(grid, target, weight, basis):
    """Coefficients and largest weighted error; basis[j][i] = function j at grid point i."""
    n, points = len(basis), len(grid)
    picks = [int(round((points - 1) * (1 - np.cos(np.pi * i / n)) / 2)) for i in range(n + 1)]
    best = None
    for _ in range(40):
        rows = [[basis[j][p] for j in range(n)] + [(-1) ** i / weight[p]] for i, p in enumerate(picks)]
        c = list(solve(rows, [target[p] for p in picks]))[:n]
        error = [weight[i] * (target[i] - sum(c[j] * basis[j][i] for j in range(n))) for i in range(points)]
        worst = max(abs(e) for e in error)
        if best is None or worst < best[1]:
            best = (c, worst)
        runs = [[0]]
        for i in range(1, points):
            if (error[i] > 0) == (error[runs[-1][-1]] > 0):
                runs[-1].append(i)
            else:
                runs.append([i])
        peaks = [max(run, key=lambda i: abs(error[i])) for run in runs]
        while len(peaks) > n + 1:  # drop the weaker end
            peaks.pop(0 if abs(error[peaks[0]]) < abs(error[peaks[-1]]) else -1)
        if len(peaks) < n + 1 or peaks == picks:
            break
        picks = peaks
    return best


def to_f32(value):
    return mp.mpf(float(np.float32(float(value))))


def fit(g, weight, lo, hi, powers, single, points=600):
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * (i + mp.mpf(1) / 2) / points) for i in range(points)]
    target = [g(x) for x in grid]
    weights = [weight(x) for x in grid]
    columns = [[x ** p for x in grid] for p in powers]
    done = []
    while single and len(done) < len(powers) - 1:
        c, _ = remez(grid, target, weights, columns[len(done):])
        done.append(to_f32(c[0]))
        target = [t - done[-1] * v for t, v in zip(target, columns[len(done) - 1])]
    c, worst = remez(grid, target, weights, columns[len(done):])
    tail = [to_f32(v) for v in c] if single else [mp.mpf(float(v)) for v in c]
    rest = [weights[i] * (target[i] - sum(t * columns[len(done) + j][i] for j, t in enumerate(tail)))
            for i in range(points)]
    return done + tail, max(abs(e) for e in rest)


def exp_tail():
    return near_zero(mp.exp, mp.taylor(mp.exp, 0, 40), 2)


def log_tail():
    return near_zero(lambda f: mp.log(1 + f), [mp.mpf(0)] + [mp.mpf((-1) ** (k + 1)) / k for k in range(1, 60)], 3)


def atanh_tail(z):
    """(log((1+s)/(1-s)) - 2s)/s with z = s^2"""
    return sum(2 * z ** k / (2 * k + 1) for k in range(1, 60))


ROOT = mp.sqrt(2)
LOG_LO, LOG_HI = 1 / ROOT - 1, ROOT - 1
S_HI = ((ROOT - 1) / (ROOT + 1)) ** 2 * (1 + mp.mpf(2) ** -10)
ATAN_HI = (ROOT - 1) ** 2 * (1 + mp.mpf(2) ** -10)


def log_weight(f):
    return abs(f ** 3 / mp.log(1 + f)) if abs(f) > mp.mpf("1e-9") else f * f


def cos_tail(z):
    return sum((-1) ** k * z ** (k - 2) / mp.factorial(2 * k) for k in range(2, 25))


def odd_weight(f):
    return lambda z: abs(mp.sqrt(z) * z / f(mp.sqrt(z))) if z > mp.mpf("1e-20") else z


def rows():
    """name, single, comment, g, weight, lo, hi, powers"""
    for single in (True, False):
        t = "f32" if single else "f64"
        pick = (lambda a, b: a) if single else (lambda a, b: b)
        yield (f"exp_{t}", single, "exp(r) = 1 + r + r^2 P(r), |r| <= ln2 / 2", exp_tail(),
               lambda r: r * r * mp.exp(-r), -HALF_LN2, HALF_LN2, range(pick(5, 10)))
        if single:
            yield (f"log_{t}", single, "log(1+f) = f - f^2/2 + f^3 P(f), 1+f in [sqrt(1/2), sqrt(2)]", log_tail(),
                   log_weight, LOG_LO, LOG_HI, range(8))
        else:
            yield (f"log_{t}", single, "log((1+s)/(1-s)) = 2s + s z P(z), z = s^2",
                   lambda z: atanh_tail(z) / z if z > 0 else mp.mpf(2) / 3, lambda z: z, mp.mpf(0), S_HI, range(7))
        quarter = QUARTER_PI ** 2
        yield (f"sin_{t}", single, "sin r = r + r z P(z), z = r^2, |r| <= pi/4", odd(mp.sin, 16), odd_weight(mp.sin),
               mp.mpf(0), quarter, range(pick(3, 6)))
        yield (f"cos_{t}", single, "cos r = 1 - z/2 + z^2 P(z)", cos_tail, lambda z: z * z / mp.cos(mp.sqrt(z)),
               mp.mpf(0), quarter, range(pick(3, 6)))
        yield (f"asin_{t}", single, "asin x = x + x z P(z), |x| <= 1/2", odd(mp.asin, 16), odd_weight(mp.asin),
               mp.mpf(0), mp.mpf("0.25"), range(pick(5, 13)))
        yield (f"atan_{t}", single, "atan x = x + x z P(z), |x| <= tan(pi/8)", odd(mp.atan, 16), odd_weight(mp.atan),
               mp.mpf(0), ATAN_HI, range(pick(5, 12)))
        yield (f"sinh_{t}", single, "sinh x = x + x z P(z), |x| <= 1", odd(mp.sinh, 16), odd_weight(mp.sinh),
               mp.mpf(0), mp.mpf(1), range(pick(4, 8)))
        yield (f"erf_{t}", single, "erf x = 1 - exp(b + b P(b)), b = -|x|", lambda b: mp.log(mp.erfc(-b)) / b - 1,
               lambda b: b * mp.erfc(-b) / mp.erf(b), mp.mpf(pick("-3.93", "-5.95")), mp.mpf("-1e-6"),
               range(pick(8, 27)))
    yield ("log2_wide", False, "for pow of f32, in f64: log2((1+s)/(1-s)) = s P(z)",
           lambda z: (2 + atanh_tail(z)) / mp.log(2), lambda z: 1 / (2 + atanh_tail(z)), mp.mpf(0), S_HI, range(6))
    yield ("exp2_wide", False, "2^r = 1 + r P(r), |r| <= 1/2", near_zero(lambda r: mp.power(2, r),
           [mp.log(2) ** k / mp.factorial(k) for k in range(40)], 1), lambda r: abs(r), mp.mpf("-0.5001"),
           mp.mpf("0.5001"), range(7))
    yield ("log_tail", False, "for pow of f64: log((1+s)/(1-s)) = 2/3 s (3 + z + z^2 P(z))",
           lambda z: sum(3 * z ** (k - 2) / (2 * k + 1) for k in range(2, 60)), lambda z: z * z / 3, mp.mpf(0), S_HI,
           range(8))


HEAD = """/*
 * Coefficients of ir/expand_*.c, lowest power first. Printed by scripts/fit_expansions.py; behind each comment the largest
 * error of the polynomial alone, relative to the function.
 */
#ifndef DLC_IR_EXPAND_TABLE_H
#define DLC_IR_EXPAND_TABLE_H
"""


def main():
    print(HEAD)
    for name, single, comment, g, weight, lo, hi, powers in rows():
        coefficients, worst = fit(g, weight, lo, hi, powers, single)
        bits = float(mp.log(worst, 2))
        print(f"{name:10s} {len(powers):2d} coefficients, error 2^{bits:.1f}", file=sys.stderr)
        print(f"/* {comment}; 2^{bits:.1f} */")
        print(f"static const double {name}[] = {{")
        for value in coefficients:
            print(f"    {float(value).hex()},")
        print("};")
    print("\n#endif")


if __name__ == "__main__":
    main()
