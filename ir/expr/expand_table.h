/*
 * Coefficients of ir/expand_*.c, lowest power first. Printed by scripts/fit_expansions.py; behind each comment the largest
 * error of the polynomial alone, relative to the function.
 */
#ifndef DLC_IR_EXPR_EXPAND_TABLE_H
#define DLC_IR_EXPR_EXPAND_TABLE_H

/* exp(r) = 1 + r + r^2 P(r), |r| <= ln2 / 2; 2^-28.2 */
static const double exp_f32[] = {
    0x1.fffffc0000000p-2,
    0x1.55548c0000000p-3,
    0x1.55585a0000000p-5,
    0x1.123d620000000p-7,
    0x1.6ab7600000000p-10,
};
/* log(1+f) = f - f^2/2 + f^3 P(f), 1+f in [sqrt(1/2), sqrt(2)]; 2^-26.7 */
static const double log_f32[] = {
    0x1.5555540000000p-2,
    -0x1.0002280000000p-2,
    0x1.99a0360000000p-3,
    -0x1.5472260000000p-3,
    0x1.22cd160000000p-3,
    -0x1.0d7fec0000000p-3,
    0x1.05fcc60000000p-3,
    -0x1.3aa3b80000000p-4,
};
/* sin r = r + r z P(z), z = r^2, |r| <= pi/4; 2^-27.9 */
static const double sin_f32[] = {
    -0x1.5555460000000p-3,
    0x1.1107740000000p-7,
    -0x1.9951ea0000000p-13,
};
/* cos r = 1 - z/2 + z^2 P(z); 2^-33.0 */
static const double cos_f32[] = {
    0x1.55554a0000000p-5,
    -0x1.6c0c280000000p-10,
    0x1.99e80c0000000p-16,
};
/* asin x = x + x z P(z), |x| <= 1/2; 2^-27.6 */
static const double asin_f32[] = {
    0x1.5555c80000000p-3,
    0x1.3302040000000p-4,
    0x1.747bba0000000p-5,
    0x1.8c3e280000000p-6,
    0x1.595c920000000p-5,
};
/* atan x = x + x z P(z), |x| <= tan(pi/8); 2^-30.4 */
static const double atan_f32[] = {
    -0x1.55554a0000000p-2,
    0x1.9991e00000000p-3,
    -0x1.23b9640000000p-3,
    0x1.b21fba0000000p-4,
    -0x1.f2ca260000000p-5,
};
/* sinh x = x + x z P(z), |x| <= 1; 2^-31.6 */
static const double sinh_f32[] = {
    0x1.5555560000000p-3,
    0x1.1110e00000000p-7,
    0x1.a022bc0000000p-13,
    0x1.756c1e0000000p-19,
};
/* erf x = 1 - exp(b + b P(b)), b = -|x|; 2^-24.6 */
static const double erf_f32[] = {
    0x1.06ebae0000000p-3,
    -0x1.45f2900000000p-1,
    0x1.a523b40000000p-4,
    0x1.3cbf220000000p-6,
    0x1.d814aa0000000p-13,
    -0x1.43b1d20000000p-10,
    -0x1.8814000000000p-12,
    -0x1.4c0c580000000p-15,
};
/* exp(r) = 1 + r + r^2 P(r), |r| <= ln2 / 2; 2^-56.5 */
static const double exp_f64[] = {
    0x1.000000000000ap-1,
    0x1.55555555554f9p-3,
    0x1.55555555507f4p-5,
    0x1.1111111127e77p-7,
    0x1.6c16c1844a382p-10,
    0x1.a01a0129b7cd9p-13,
    0x1.a01999b010e85p-16,
    0x1.71df262716a4bp-19,
    0x1.28adcc3aba394p-22,
    0x1.ad7f05d5ba36fp-26,
};
/* log((1+s)/(1-s)) = 2s + s z P(z), z = s^2; 2^-58.1 */
static const double log_f64[] = {
    0x1.5555555555593p-1,
    0x1.999999997fb41p-2,
    0x1.2492494216b03p-2,
    0x1.c71c51e8cb9ddp-3,
    0x1.746645fe185afp-3,
    0x1.39a0f9f4e8e96p-3,
    0x1.2f0d5a42f20fep-3,
};
/* sin r = r + r z P(z), z = r^2, |r| <= pi/4; 2^-56.8 */
static const double sin_f64[] = {
    -0x1.5555555555548p-3,
    0x1.111111110f790p-7,
    -0x1.a01a019bf5a89p-13,
    0x1.71de356066a89p-19,
    -0x1.ae5e5492b00b2p-26,
    0x1.5d8e07f15c176p-33,
};
/* cos r = 1 - z/2 + z^2 P(z); 2^-59.2 */
static const double cos_f64[] = {
    0x1.555555555554bp-5,
    -0x1.6c16c16c14f49p-10,
    0x1.a01a019c7d092p-16,
    -0x1.27e4f7e561095p-22,
    0x1.1ee9d3f491764p-29,
    -0x1.8fa29d900890ap-37,
};
/* asin x = x + x z P(z), |x| <= 1/2; 2^-59.2 */
static const double asin_f64[] = {
    0x1.5555555555577p-3,
    0x1.333333332e103p-4,
    0x1.6db6db721418ap-5,
    0x1.f1c71a946c1aap-6,
    0x1.6e8bdeed0c867p-6,
    0x1.1c49ef916a428p-6,
    0x1.ca1f9e9d78facp-7,
    0x1.7585092ea580fp-7,
    0x1.613f25bd2a404p-7,
    0x1.e5d0f44a60290p-9,
    0x1.63a6e09f14329p-6,
    -0x1.580b66a8ed455p-6,
    0x1.0b4adc4d7de4ap-5,
};
/* atan x = x + x z P(z), |x| <= tan(pi/8); 2^-58.2 */
static const double atan_f64[] = {
    -0x1.5555555555554p-2,
    0x1.9999999999643p-3,
    -0x1.249249247526dp-3,
    0x1.c71c71b72724bp-4,
    -0x1.745d14b4b91fap-4,
    0x1.3b136dbca7a11p-4,
    -0x1.110c6c5053394p-4,
    0x1.e17181d78581bp-5,
    -0x1.ab7a5b6616a4dp-5,
    0x1.70e09f3dad23cp-5,
    -0x1.121a950aece04p-5,
    0x1.f17380577e370p-7,
};
/* sinh x = x + x z P(z), |x| <= 1; 2^-56.8 */
static const double sinh_f64[] = {
    0x1.5555555555555p-3,
    0x1.1111111111111p-7,
    0x1.a01a01a019fc1p-13,
    0x1.71de3a5573f79p-19,
    0x1.ae6456741b913p-26,
    0x1.61246afa2c9cbp-33,
    0x1.ae756e99ccc2cp-41,
    0x1.9a7940c35f816p-49,
};
/* erf x = 1 - exp(b + b P(b)), b = -|x|; 2^-56.3 */
static const double erf_f64[] = {
    0x1.06eba8214db69p-3,
    -0x1.45f306dc9c881p-1,
    0x1.a4f4e2a1b4e67p-4,
    0x1.396685950a418p-6,
    -0x1.b6b6838477724p-13,
    -0x1.bca672cde687ap-10,
    -0x1.3564e8c997ceep-11,
    -0x1.b1f806c9152bdp-16,
    0x1.0ea5e0d17a1e5p-14,
    0x1.f406dc78e2fdbp-16,
    0x1.dbeb3b2103c42p-19,
    -0x1.631b87b5ad6e3p-19,
    -0x1.9c1da85d41a62p-20,
    -0x1.4e174a5c38947p-23,
    0x1.1d0424c0c1956p-22,
    0x1.cf2f6dd50acefp-23,
    0x1.af2a83dd492bap-24,
    0x1.2567604551a72p-25,
    0x1.374b59b419dd1p-27,
    0x1.06c32bb4244f5p-29,
    0x1.6172c90e7baffp-32,
    0x1.76d43dc913b65p-35,
    0x1.3292dd2d81abcp-38,
    0x1.74c0b8e9f2ce6p-42,
    0x1.3c8fda19c1e29p-46,
    0x1.4e39eac10dc09p-51,
    0x1.490df2d3bcf0ep-57,
};
/* for pow of f32, in f64: log2((1+s)/(1-s)) = s P(z); 2^-44.6 */
static const double log2_wide[] = {
    0x1.71547652b8250p+1,
    0x1.ec709dc53e407p-1,
    0x1.2776c290f640cp-1,
    0x1.a61a30b8f4ad4p-2,
    0x1.479501da8e988p-2,
    0x1.21b5e289a571fp-2,
};
/* 2^r = 1 + r P(r), |r| <= 1/2; 2^-34.3 */
static const double exp2_wide[] = {
    0x1.62e42fef7b5e3p-1,
    0x1.ebfbe07adebc6p-3,
    0x1.c6b08df4759f3p-5,
    0x1.3b29f0d6e3587p-7,
    0x1.5d872386d804bp-10,
    0x1.445e8c7641d08p-13,
    0x1.00f14af161176p-16,
};
/* for pow of f64: log((1+s)/(1-s)) = 2/3 s (3 + z + z^2 P(z)); 2^-67.6 */
static const double log_tail[] = {
    0x1.3333333333330p-1,
    0x1.b6db6db6dc86dp-2,
    0x1.555555541e8ebp-2,
    0x1.1745d22694cd2p-2,
    0x1.d89d139e84aa0p-3,
    0x1.99b121ac6d095p-3,
    0x1.66a53688111b5p-3,
    0x1.70583e4ead912p-3,
};

#endif
