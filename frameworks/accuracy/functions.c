/* Chains in registers, and code with memory, branches and vectors. The variable ADDED_PERCENT makes
 * the repeated ones longer. */
#include "functions.h"
#include <stdlib.h>
#include <string.h>

#define HIDE(value) __asm__ volatile("" : "+r"(value))

enum { WORDS = 4096, RING = 1024 };

static uint64_t words[WORDS], copied[WORDS];
static uint32_t ring[RING];
static unsigned char text[WORDS];
static int added;

void prepare_functions(void)
{
    const char *percent = getenv("ADDED_PERCENT");
    added = percent ? atoi(percent) : 0;
    for (unsigned n = 0; n < WORDS; n++) {
        words[n] = n * 0x9e3779b97f4a7c15u;
        text[n] = (unsigned char)(words[n] >> 56 | 1);
    }
    for (unsigned n = 0; n < RING; n++)
        ring[n] = (n * 5 + 7) % RING;
}

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
REPEAT(add_50, 50, x += x)
REPEAT(add_500, 500, x += x)
REPEAT(add_5000, 5000, x += x)
REPEAT(divide_20, 20, x = 0x123456789abcdefu / (x | 3))
REPEAT(divide_200, 200, x = 0x123456789abcdefu / (x | 3))
REPEAT(hash_16, 16, x = (x ^ text[n]) * 1099511628211u)
REPEAT(hash_100, 100, x = (x ^ text[n]) * 1099511628211u)
REPEAT(hash_1000, 1000, x = (x ^ text[n]) * 1099511628211u)
REPEAT(pointers_100, 100, x = ring[x % RING])
REPEAT(pointers_2000, 2000, x = ring[x % RING])

static uint64_t sum_1000(uint64_t x)
{
    for (int n = 0; n < 1000; n++)
        x += words[n];
    return x;
}

static uint64_t count_bits_1000(uint64_t x)
{
    for (int n = 0; n < 1000; n++)
        x += (uint64_t)__builtin_popcountll(words[n]);
    return x;
}

static uint64_t copy_4096(uint64_t x)
{
    words[0] = x;
    memcpy(copied, words, 4096);
    __asm__ volatile("" : : "r"(copied) : "memory");
    return copied[0];
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
    NAMED(sum_1000), NAMED(count_bits_1000), NAMED(copy_4096), NAMED(float_200),
};
