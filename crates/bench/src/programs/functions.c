/* Twenty functions through the loop and the single pairs of the headers, beside a loop of its own that
 * the system times: cc -O2 -I include. Prints a line of JSON for each. The core clock is that of a chain
 * of multiplications by the same clock. */
#define _GNU_SOURCE
#include "cyclescope_loop.h"

typedef uint64_t (*function)(uint64_t);

/* Nanoseconds of a window; number of windows, of which the lower quartile counts: what disturbs one
 * only lengthens it. */
#define WINDOW 2e5
#define WINDOWS 101
/* Blocks of a thousand multiplications before and after a window, and the share by which the clock may change in it. */
#define BLOCKS 60
#define STEADY 0.01
/* Pairs in a window between two rulers, and windows. */
#define PAIRS 201
#define PAIR_WINDOWS 51

static double ran(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* Nanoseconds of the clock itself: of the quickest of many pairs. */
static double clock_cost(void)
{
    static double cost;
    int i;

    if (cost > 0)
        return cost;
    for (i = 0, cost = 1e9; i < 1000; i++) {
        double began = ran(), taken = ran() - began;

        if (taken < cost)
            cost = taken;
    }
    return cost;
}

#define CHAIN(name, instruction) \
    static double name(uint64_t blocks) \
    { \
        uint64_t value = blocks, left = blocks; \
        double began = ran(); \
        __asm__ volatile("1:\n\t.rept 1000\n\t" instruction " %0, %0\n\t.endr\n\tdec %1\n\tjnz 1b" : "+r"(value), "+r"(left) : : "cc"); \
        return ran() - began - clock_cost(); \
    }
CHAIN(add_up, "add")
CHAIN(multiply_up, "imul")

/* Nanoseconds of a core cycle. Additions take one, and multiplications a whole number, also beside a busy sibling. */
static double rule(void)
{
    static double latency;

    if (latency == 0) {
        double ratios[101];
        int i;

        for (i = 0; i < 101; i++)
            ratios[i] = multiply_up(20) / add_up(20);
        latency = (double)(int)(cyclescope_middle(ratios, 101) + 0.5);
    }
    return multiply_up(BLOCKS) / (1000 * BLOCKS) / latency;
}

static double call(function code, uint64_t times)
{
    uint64_t value = 3, i;
    double began = ran();

    for (i = 0; i < times; i++) {
        value = code(value);
        CYCLESCOPE_HIDE(value);
    }
    return ran() - began - clock_cost();
}

static double true_cycles(function code)
{
    double cycles[WINDOWS], before = rule(), after;
    uint64_t times = 1;
    int number = 0, tries;

    while (call(code, times) < WINDOW / 2)
        times *= 2;
    for (tries = 0; number < WINDOWS && tries < 100 * WINDOWS; tries++, before = after) {
        double taken = call(code, times) / (double)times;

        after = rule();
        if (after < (1 + STEADY) * before && before < (1 + STEADY) * after)
            cycles[number++] = 2 * taken / (before + after);
    }
    cyclescope_sort(cycles, number);
    return cycles[number / 4];
}

/* Core cycles by single pairs, as in include/example.c. */
static double paired(const struct cyclescope_calibration *pair, function code)
{
    static double ticks[PAIRS], cycles[PAIR_WINDOWS];
    struct cyclescope_scale before = cyclescope_scale_now(pair), after;
    uint64_t value = 3, started;
    int windows = 0, tries, i;

    for (tries = 0; windows < PAIR_WINDOWS && tries < 10 * PAIR_WINDOWS; tries++, before = after) {
        for (i = 0; i < PAIRS; i++) {
            started = cyclescope_lfence_rdtsc_lfence_start();
            value = code(value);
            CYCLESCOPE_KEEP(value);
            ticks[i] = (double)(cyclescope_lfence_rdtsc_lfence_end() - started);
        }
        after = cyclescope_scale_now(pair);
        if (after.cycles < (1 + STEADY) * before.cycles && before.cycles < (1 + STEADY) * after.cycles)
            cycles[windows++] = cyclescope_cycles(before, after, cyclescope_typical(ticks, PAIRS, pair->step));
    }
    return windows > 0 ? cyclescope_middle(cycles, windows) : 0;
}

static uint8_t bytes[4096];
static uint16_t ring[16384];
static uint32_t table[256];

static void fill(void)
{
    int i, bit;

    for (i = 0; i < 4096; i++) {
        bytes[i] = (uint8_t)(i * 7919 % 251);
        ring[4 * i] = (uint16_t)((4 * i + 4 * 1237) % 16384);
    }
    for (i = 0; i < 256; i++)
        for (bit = 0, table[i] = (uint32_t)i; bit < 8; bit++)
            table[i] = table[i] & 1 ? table[i] >> 1 ^ 0xedb88320 : table[i] >> 1;
}

/* A number of which the compiler knows nothing. It is no load, which could run ahead of the last call. */
static inline uint64_t hidden(uint64_t number)
{
    CYCLESCOPE_HIDE(number);
    return number;
}

/* Zero, which depends on the value for the processor. */
static inline uint64_t zero_from(uint64_t value) { return value & hidden(0); }

#define FUNCTION(name) static __attribute__((noinline)) uint64_t name(uint64_t value)
#define TIMES(number, what) \
    { \
        int i; \
        for (i = 0; i < number; i++) { \
            what; \
            CYCLESCOPE_HIDE(value); \
        } \
        return value; \
    }
FUNCTION(multiply_10) TIMES(10, value *= value)
FUNCTION(multiply_30) TIMES(30, value *= value)
FUNCTION(multiply_100) TIMES(100, value *= value)
FUNCTION(multiply_1000) TIMES(1000, value *= value)
FUNCTION(multiply_10000) TIMES(10000, value *= value)
FUNCTION(multiply_million) TIMES(1000000, value *= value)
FUNCTION(shift) TIMES(100, value ^= value << 13; value ^= value >> 7; value ^= value << 17)
FUNCTION(count_bits) TIMES(50, value = (uint64_t)__builtin_popcountll(value) + (uint64_t)i)
FUNCTION(divide) TIMES(20, value = (value >> 1) / hidden(3) + ((uint64_t)1 << 60))
FUNCTION(halve) TIMES(80, value = (value >> 1) ^ (((value >> 1) ^ (3 * value + 1)) & (0 - (value & 1))))

static inline uint64_t hash(uint64_t value, int length)
{
    const uint8_t *from = bytes + zero_from(value);
    int i;

    for (i = 0; i < length; i++)
        value = (value ^ from[i]) * 0x100000001b3;
    return value;
}
FUNCTION(hash_16) { return hash(value, 16); }
FUNCTION(hash_100) { return hash(value, 100); }
FUNCTION(hash_1000) { return hash(value, 1000); }
FUNCTION(hash_4000) { return hash(value, 4000); }

static inline uint64_t walk(uint64_t value, int steps)
{
    uint64_t place = zero_from(value);

    while (steps-- > 0)
        place = ring[place];
    return place;
}
FUNCTION(walk_100) { return walk(value, 100); }
FUNCTION(walk_1000) { return walk(value, 1000); }

FUNCTION(add_last_two)
{
    uint64_t last = value & 1, next = zero_from(value) + 1, sum;
    int i;

    for (i = 0; i < 60; i++) {
        sum = last + next;
        CYCLESCOPE_HIDE(sum);
        last = next;
        next = sum;
    }
    return next;
}

FUNCTION(multiply_floats)
{
    double product = 2 + (double)zero_from(value), factor = (double)hidden(1);
    int i;

    for (i = 0; i < 100; i++)
        product *= factor;
    return (uint64_t)product;
}

FUNCTION(sum)
{
    const uint8_t *from = bytes + zero_from(value);
    uint32_t all = 0;
    int i;

    for (i = 0; i < 4000; i++)
        all += from[i];
    return all & 1;
}

FUNCTION(check)
{
    const uint8_t *from = bytes + zero_from(value);
    uint32_t all = (uint32_t)value;
    int i;

    for (i = 0; i < 256; i++)
        all = table[(all ^ from[i]) & 0xff] ^ all >> 8;
    return all;
}

static const struct {
    const char *name;
    function code;
} FUNCTIONS[] = {
#define ENTRY(name) {#name, name}
    ENTRY(multiply_10), ENTRY(multiply_30), ENTRY(multiply_100), ENTRY(multiply_1000), ENTRY(multiply_10000),
    ENTRY(multiply_million), ENTRY(shift), ENTRY(count_bits), ENTRY(divide), ENTRY(halve), ENTRY(hash_16), ENTRY(hash_100),
    ENTRY(hash_1000), ENTRY(hash_4000), ENTRY(walk_100), ENTRY(walk_1000), ENTRY(add_last_two), ENTRY(multiply_floats),
    ENTRY(sum), ENTRY(check),
};

int main(void)
{
    struct cyclescope_calibration pair = cyclescope_calibrate();
    unsigned i;

    fill();
    for (i = 0; i < sizeof FUNCTIONS / sizeof *FUNCTIONS; i++) {
        function code = FUNCTIONS[i].code;
        double truth = true_cycles(code), single;
        struct cyclescope_loop_result loop;
        uint64_t value = 3;

        CYCLESCOPE_LOOP_TO(loop, "") {
            value = code(value);
            CYCLESCOPE_HIDE(value);
        }
        single = paired(&pair, code);
        truth = (truth + true_cycles(code)) / 2;
        printf("{\"way\":\"loop\",\"name\":\"%s\",\"truth\":%.3f,\"read\":%.3f}\n", FUNCTIONS[i].name, truth, loop.cycles);
        printf("{\"way\":\"pairs\",\"name\":\"%s\",\"truth\":%.3f,\"read\":%.3f}\n", FUNCTIONS[i].name, truth, single);
    }
    return 0;
}
