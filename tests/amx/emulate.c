/* Decoding follows the VEX prefix of three bytes, map 0F38: the opcode and the prefix that `pp` stands for name the instruction. */
#include "tests/amx/emulate.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <ucontext.h>

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64, CONFIG_BYTES = 64, WORDS = ROW_BYTES / 4 };

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} config;

typedef struct {
    config shape;
    uint8_t data[TILES][ROWS][ROW_BYTES];
} state;

/* Of the present thread. The model is one that needs no call to find it in a handler. */
static _Thread_local state tiles __attribute__((tls_model("initial-exec")));

_Atomic uint64_t dlc_amx_products, dlc_amx_shapes;
void (*dlc_amx_refused)(const char *sentence);
static struct sigaction before;

/* --- what is refused --- */

static int refuse(const char *sentence)
{
    if (dlc_amx_refused) {
        dlc_amx_refused(sentence);
        return 0;
    }
    if (write(STDERR_FILENO, "amx: ", 5) < 0 || write(STDERR_FILENO, sentence, strlen(sentence)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
        _exit(1);
    abort();
}

static int is_there(unsigned tile)
{
    if (!tiles.shape.palette)
        return refuse("tiles have no shape");
    return (tile < TILES && tiles.shape.rows[tile]) || refuse("a tile has no shape");
}

/* --- shapes --- */

static int is_shape(const config *c)
{
    static const uint8_t zero[CONFIG_BYTES];
    if (c->palette > 1 || memcmp(c->reserved, zero, sizeof c->reserved) != 0 || memcmp(&c->bytes[TILES], zero, 16) != 0 ||
        memcmp(&c->rows[TILES], zero, TILES) != 0)
        return refuse("a configuration has another palette, or reserved bytes");
    for (int i = 0; i < TILES && c->palette; i++)
        if (c->rows[i] > ROWS || c->bytes[i] > ROW_BYTES || !c->rows[i] != !c->bytes[i])
            return refuse("a configuration has a tile of too many rows or bytes, or of one of them alone");
    return 1;
}

static void load_config(const void *memory)
{
    config c;
    memcpy(&c, memory, sizeof c);
    if (!is_shape(&c))
        return;
    memset(&tiles, 0, sizeof tiles);
    if (c.palette)
        tiles.shape = c;
    atomic_fetch_add_explicit(&dlc_amx_shapes, 1, memory_order_relaxed);
}

/* --- memory --- */

static void load(unsigned tile, const char *at, int64_t stride)
{
    if (!is_there(tile))
        return;
    memset(tiles.data[tile], 0, sizeof tiles.data[tile]);
    for (int r = 0; r < tiles.shape.rows[tile]; r++)
        memcpy(tiles.data[tile][r], at + r * stride, tiles.shape.bytes[tile]);
}

static void store(unsigned tile, char *at, int64_t stride)
{
    if (!is_there(tile))
        return;
    for (int r = 0; r < tiles.shape.rows[tile]; r++)
        memcpy(at + r * stride, tiles.data[tile][r], tiles.shape.bytes[tile]);
}

/* --- products --- */

static float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static float half_of(const uint8_t *at)
{
    uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
    float value;
    memcpy(&value, &bits, sizeof value);
    return flushed(value);
}

/* First elements of all pairs one after the other, second ones apart, then both, then the sum so far. */
static void multiply_halves(uint8_t *sum, unsigned a, unsigned b, int row, int column)
{
    float apart[2] = {0, 0}, c;
    for (int k = 0; k < tiles.shape.bytes[a] / 4; k++)
        for (int i = 0; i < 2; i++)
            apart[i] = flushed(fmaf(half_of(&tiles.data[a][row][4 * k + 2 * i]), half_of(&tiles.data[b][k][4 * column + 2 * i]), apart[i]));
    memcpy(&c, sum, sizeof c);
    c = flushed(flushed(c) + flushed(apart[0] + apart[1]));
    memcpy(sum, &c, sizeof c);
}

static int32_t byte_of(const uint8_t *at, int is_signed)
{
    return is_signed ? (int8_t)*at : *at;
}

static void multiply_bytes(uint8_t *sum, unsigned a, unsigned b, int row, int column, int a_signed, int b_signed)
{
    uint32_t c;
    memcpy(&c, sum, sizeof c);
    for (int k = 0; k < tiles.shape.bytes[a] / 4; k++)
        for (int i = 0; i < 4; i++)
            c += (uint32_t)(byte_of(&tiles.data[a][row][4 * k + i], a_signed) * byte_of(&tiles.data[b][k][4 * column + i], b_signed));
    memcpy(sum, &c, sizeof c);
}

static int is_product(unsigned c, unsigned a, unsigned b)
{
    const config *s = &tiles.shape;
    if (c == a || a == b || b == c)
        return refuse("a product has one tile twice");
    if (!is_there(c) || !is_there(a) || !is_there(b))
        return 0;
    if (s->bytes[a] % 4 || s->bytes[b] % 4 || s->bytes[c] % 4)
        return refuse("a tile of a product has parts of words");
    if (s->rows[c] != s->rows[a] || s->bytes[c] != s->bytes[b] || s->bytes[a] / 4 != s->rows[b])
        return refuse("the tiles of a product have shapes that do not fit");
    return 1;
}

static void multiply(int is_half, int a_signed, int b_signed, unsigned c, unsigned a, unsigned b)
{
    if (!is_product(c, a, b))
        return;
    for (int r = 0; r < tiles.shape.rows[c]; r++)
        for (int n = 0; n < tiles.shape.bytes[c] / 4; n++) {
            if (is_half)
                multiply_halves(&tiles.data[c][r][4 * n], a, b, r, n);
            else
                multiply_bytes(&tiles.data[c][r][4 * n], a, b, r, n, a_signed, b_signed);
        }
    atomic_fetch_add_explicit(&dlc_amx_products, 1, memory_order_relaxed);
}

/* --- decoding --- */

typedef struct {
    const uint8_t *at; /* the next byte */
    const greg_t *registers;
    unsigned r, x, b, v, prefix, opcode, mod, reg, rm;
    int64_t index;     /* of an address: times its scale; strides of tiles */
} decoder;

enum { PREFIX_NONE, PREFIX_66, PREFIX_F3, PREFIX_F2 };

static int64_t register_of(const decoder *d, unsigned n)
{
    static const int order[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return d->registers[order[n]];
}

static int64_t displacement(decoder *d, unsigned bytes)
{
    int8_t narrow;
    int32_t wide;
    memcpy(&narrow, d->at, sizeof narrow);
    memcpy(&wide, d->at, sizeof wide);
    d->at += bytes;
    return bytes == 1 ? narrow : bytes ? wide : 0;
}

/* Without the index, which is a stride. */
static char *address_of(decoder *d)
{
    int64_t base = 0;
    unsigned bytes = d->mod == 1 ? 1 : d->mod == 2 ? 4 : 0, low = d->rm;
    if (d->rm == 4) {
        uint8_t sib = *d->at++;
        unsigned index = (sib >> 3 & 7) | d->x << 3;
        low = sib & 7;
        d->index = index == 4 ? 0 : register_of(d, index) * (1 << (sib >> 6));
    }
    if (low == 5 && !d->mod) {
        bytes = 4;
        base = displacement(d, bytes);
        return (char *)(d->rm == 4 ? base : base + (int64_t)(uintptr_t)d->at);
    }
    base = register_of(d, low | d->b << 3);
    return (char *)(base + displacement(d, bytes));
}

static int shapes(decoder *d)
{
    if (d->mod == 3 && d->prefix == PREFIX_F2 && !d->rm) {
        if (is_there(d->reg))
            memset(tiles.data[d->reg], 0, sizeof tiles.data[d->reg]);
        return 1;
    }
    if (d->mod == 3 && d->prefix == PREFIX_NONE && !d->reg && !d->rm) {
        memset(&tiles, 0, sizeof tiles);
        return 1;
    }
    if (d->mod == 3 || d->reg || d->prefix > PREFIX_66)
        return 0;
    char *at = address_of(d);
    if (d->prefix == PREFIX_NONE)
        load_config(at + d->index);
    else
        memcpy(at + d->index, &tiles.shape, sizeof tiles.shape);
    return 1;
}

static int moves(decoder *d)
{
    if (d->mod == 3 || d->rm != 4 || d->prefix == PREFIX_NONE)
        return 0;
    char *at = address_of(d);
    if (d->prefix == PREFIX_F3)
        store(d->reg, at, d->index);
    else
        load(d->reg, at, d->index);
    return 1;
}

static int execute(decoder *d)
{
    switch (d->opcode) {
    case 0x49:
        return shapes(d);
    case 0x4b:
        return moves(d);
    case 0x5c:
        if (d->mod != 3 || d->prefix != PREFIX_F3)
            return 0;
        multiply(1, 0, 0, d->reg, d->rm, d->v);
        return 1;
    case 0x5e:
        if (d->mod != 3)
            return 0;
        multiply(0, d->prefix >= PREFIX_F3, d->prefix == PREFIX_66 || d->prefix == PREFIX_F2, d->reg, d->rm, d->v);
        return 1;
    default:
        return 0;
    }
}

/* A prefix of three bytes, map 0F38, 128 bits. */
static int decode(decoder *d)
{
    const uint8_t *p = d->at;
    if (p[0] != 0xc4 || (p[1] & 31) != 2 || p[2] & 0x84)
        return 0;
    d->r = !(p[1] & 0x80);
    d->x = !(p[1] & 0x40);
    d->b = !(p[1] & 0x20);
    d->v = ~(unsigned)p[2] >> 3 & 15;
    d->prefix = p[2] & 3;
    d->opcode = p[3];
    d->mod = p[4] >> 6;
    d->reg = (p[4] >> 3 & 7) | d->r << 3;
    d->rm = p[4] & 7;
    d->at += 5;
    return execute(d);
}

static void answer(int number, siginfo_t *info, void *data)
{
    ucontext_t *context = data;
    greg_t *registers = context->uc_mcontext.gregs;
    decoder d = {.at = (const uint8_t *)registers[REG_RIP], .registers = registers};
    if (decode(&d)) {
        registers[REG_RIP] = (greg_t)(uintptr_t)d.at;
        return;
    }
    (void)info;
    sigaction(number, &before, NULL); /* another instruction: raised again, and answered as it was before */
}

/* The processor has tiles and the system lets this process use them; then all of it does, or half would be done here. */
static int is_real(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    __builtin_cpu_init();
    return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") && __builtin_cpu_supports("amx-bf16") &&
           !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA);
}

__attribute__((constructor)) static void begin(void)
{
    if (is_real())
        return;
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGILL, &action, &before);
    setenv("DLC_CPU", "+amx-tile,+amx-int8,+amx-bf16", 0);
}
#endif
