/* Chains in registers, and code with memory, branches and vectors. The variable ADDED_PERCENT makes
 * the repeated ones longer. */
#include "functions.h"
#include <stdlib.h>
#include <string.h>

#define HIDE(value) __asm__ volatile("" : "+r"(value))

enum { WORDS = 4096, RING = 1024 };

/* Between the two are bytes that keep a load of one from having the place in a page of a store to the
 * other, which waits for it or not from call to call. */
static struct {
    uint64_t words[WORDS], between[40], copied[WORDS];
} data __attribute__((aligned(4096)));
static uint32_t ring[RING];
static unsigned char text[WORDS];
static int added;

void prepare_functions(void)
{
    const char *percent = getenv("ADDED_PERCENT");
    added = percent ? atoi(percent) : 0;
    for (unsigned n = 0; n < WORDS; n++) {
        data.words[n] = n * 0x9e3779b97f4a7c15u;
        text[n] = (unsigned char)(data.words[n] >> 56 | 1);
    }
    for (unsigned n = 0; n < RING; n++)
        ring[n] = (n * 5 + 7) % RING;
}

/* Several links in an iteration: at one cycle an iteration the misprediction of the loop's end, which
 * depends on the branches of the caller, would not be hidden behind the chain. */
#define ADD_5(x) __asm__ volatile(".rept 5\n add %0, %0\n .endr" : "+r"(x))

#define REPEAT(name, times, code) \
    static uint64_t name(uint64_t x) \
    { \
        for (int n = 0, end = (times) + (times) * added / 100; n < end; n++) { \
            code; \
            HIDE(x); \
        } \
        return x; \
    }

REPEAT(multiply_10, 10, x *= x)
REPEAT(multiply_20, 20, x *= x)
REPEAT(multiply_50, 50, x *= x)
REPEAT(multiply_200, 200, x *= x)
REPEAT(multiply_1000, 1000, x *= x)
REPEAT(multiply_5000, 5000, x *= x)
REPEAT(add_50, 10, ADD_5(x))
REPEAT(add_500, 100, ADD_5(x))
REPEAT(add_5000, 1000, ADD_5(x))
REPEAT(divide_20, 20, x = 0x123456789abcdefu / (x | 3))
REPEAT(divide_200, 200, x = 0x123456789abcdefu / (x | 3))
REPEAT(hash_16, 16, x = (x ^ text[n]) * 1099511628211u)
REPEAT(hash_100, 100, x = (x ^ text[n]) * 1099511628211u)
REPEAT(hash_1000, 1000, x = (x ^ text[n]) * 1099511628211u)
REPEAT(pointers_100, 100, x = ring[x % RING])
REPEAT(pointers_2000, 2000, x = ring[x % RING])

#define ADD_WORD(n) \
    x += data.words[n]; \
    HIDE(x)

static uint64_t sum_1000(uint64_t x)
{
    /* Five additions in an iteration, for the same reason as above, each after the one before. */
    for (int n = 0; n < 1000; n += 5) {
        ADD_WORD(n);
        ADD_WORD(n + 1);
        ADD_WORD(n + 2);
        ADD_WORD(n + 3);
        ADD_WORD(n + 4);
    }
    return x;
}

static uint64_t count_bits_1000(uint64_t x)
{
    /* Without the instruction, which not every x86-64 CPU has, and without the compiler's function
     * for it: its calls take longer at some positions of the stack. */
    for (int n = 0; n < 1000; n++) {
        uint64_t bits = data.words[n];
        bits -= bits >> 1 & 0x5555555555555555u;
        bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
        x += ((bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56;
    }
    return x;
}

/* Several times, since code around a call overlaps with some cycles of a copy. */
static uint64_t copy_4096_x4(uint64_t x)
{
    for (int n = 0; n < 4; n++) {
        /* Waits for x without a store to the source, which a wide load of the copy would have to
         * await. */
        uint64_t zero = 0;
        HIDE(zero);
        memcpy(data.copied, data.words + (x & zero), 4096);
        __asm__ volatile("" : : "r"(data.copied) : "memory");
        x = data.copied[0];
    }
    return x;
}

static uint64_t float_200(uint64_t x)
{
    double y = (double)(x & 7) + 1.0;
    for (int n = 0; n < 200; n++) {
        y = y * 0.5 + 1.0;
        __asm__ volatile("" : "+x"(y));
    }
    return (uint64_t)y;
}

#define NAMED(name) {#name, name}

const struct timed_function timed_functions[FUNCTIONS] = {
    NAMED(multiply_10), NAMED(multiply_20), NAMED(multiply_50), NAMED(multiply_200), NAMED(multiply_1000),
    NAMED(multiply_5000), NAMED(add_50), NAMED(add_500), NAMED(add_5000), NAMED(divide_20), NAMED(divide_200),
    NAMED(hash_16), NAMED(hash_100), NAMED(hash_1000), NAMED(pointers_100), NAMED(pointers_2000),
    NAMED(sum_1000), NAMED(count_bits_1000), NAMED(copy_4096_x4), NAMED(float_200),
};
