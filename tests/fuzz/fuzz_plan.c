/* libFuzzer entry: changes of the plan of an executable, whose checksum is made right. See forge.h. */
#include "tests/fuzz/forge.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

/* The first byte says which model; then 6 bytes each: where, how many of the 4 bytes that follow, and those. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes)
{
    static forge_base bases[FORGE_NMODELS];
    forge_base *base = &bases[size_bytes ? bytes[0] % FORGE_NMODELS : 0];
    if (!base->plan)
        forge_open((uint32_t)(base - bases), base);
    unsigned char *plan = malloc(base->plan_bytes);
    memcpy(plan, base->plan, base->plan_bytes);
    for (size_t at = 1; at + 6 <= size_bytes; at += 6) {
        size_t place = (size_t)(bytes[at] << 8 | bytes[at + 1]) * (base->plan_bytes - 4) >> 16, n = 1 + (bytes[at + 1] & 3);
        memcpy(plan + (n == 4 ? place & ~(size_t)3 : place), bytes + at + 2, n);
    }
    (void)forge_try(base, plan);
    free(plan);
    return 0;
}
