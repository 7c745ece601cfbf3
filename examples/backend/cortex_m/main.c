/*
 * The digits model on a Cortex-M4: start-up, the model, and its outputs through the debugger's console. Nothing else is linked. After
 * the commands of ../portable_c.c, in this folder:
 *
 *   python3 samples.py header ../../../models/digits_test.npz 20 >samples.h
 *   arm-none-eabi-gcc -std=c99 -Os -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard -ffreestanding -nostdlib -fno-tree-loop-distribute-patterns -I. -I.. -T link.ld main.c ../digits.c -o digits.elf
 *   qemu-system-arm -M mps2-an386 -nographic -semihosting-config enable=on,target=native -kernel digits.elf 2>console
 *   python3 samples.py compare ../../../models/digits_test.npz 20 console
 */
#include "digits.h"
#include "samples.h"

extern uint32_t stack_top[], stack_low[];
void start(void);

__attribute__((section(".vectors"), used)) static void *const vectors[] = {stack_top,
                                                                           (void *)start};

/* A call of the debugger: `what` with one argument. */
static void console(int what, const void *argument)
{
    register int r0 __asm__("r0") = what;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void print(const char *text)
{
    enum { SYS_WRITE0 = 4 };
    console(SYS_WRITE0, text);
}

static void print_hex(uint32_t value, const char *end)
{
    char text[9];
    for (int i = 0; i < 8; i++)
        text[i] = "0123456789abcdef"[value >> (28 - 4 * i) & 15];
    text[8] = 0;
    print(text);
    print(end);
}

static digits_arena arena;
enum { UNTOUCHED = 0x5ac3ec7e };

/* What the stack has been used to, in bytes. */
static uint32_t stack_used(void)
{
    const uint32_t *at = stack_low;
    while (*at == UNTOUCHED)
        at++;
    return (uint32_t)((stack_top - at) * 4);
}

static int run_all(void)
{
    int fault = 0;
    for (uint32_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        union {
            float f[10];
            uint32_t bits[10];
        } logits;
        fault |= digits_run(samples[i], logits.f, &arena);
        for (int k = 0; k < 10; k++)
            print_hex(logits.bits[k], k == 9 ? "\n" : " ");
    }
    return fault;
}

void start(void)
{
    enum { SYS_EXIT = 0x18, FINE = 0x20026, FAILED = 0x20023 };
    volatile uint32_t *const access_control = (volatile uint32_t *)0xe000ed88;
    *access_control |= 0xfu << 20; /* the floating-point unit is off after reset */
    __asm__ volatile("dsb\n\tisb");
    for (uint32_t *at = stack_low; at < (uint32_t *)__builtin_frame_address(0) - 16; at++)
        *at = UNTOUCHED;
    int fault = run_all();
    print("stack ");
    print_hex(stack_used(), "\n");
    console(SYS_EXIT, (const void *)(uintptr_t)(fault ? FAILED : FINE));
    for (;;)
        ;
}
