/* Times a function by a loop of its own: ticks of the time stamp counter between two readings, and
 * the core clock before and after. Nothing here is of cyclescope or of a framework. It runs in the
 * program that it is compared with, since the addresses of code and data move sums and copies by
 * some percent.
 *
 * The core clock is that of a chain of multiplications. How many additions a multiplication takes
 * is measured, and an addition of registers takes a core cycle on every x86-64 core (A. Fog,
 * Instruction tables). Beside a busy sibling additions lose some percent, and multiplications none. */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include "reference.h"
#include "functions.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* Windows of which the median counts. Few of this length have a timer interrupt. A window in which
 * another thread had the CPU does not count, and one between two unlike readings of the core clock.
 * Code is long enough for a window if it is in each of some trials: another thread may run in one. */
enum { WINDOWS = 61, ATTEMPTS = 20 * WINDOWS, WINDOW_TICKS = 500000, TRIALS = 5 };
static const double STEADY = 0.01;
/* Links in a block of a chain, blocks with which both chains are compared, and comparisons. */
enum { LINKS = 64, COMPARED = 300, COMPARISONS = 101 };

uint64_t read_ticks(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence\n rdtsc\n lfence" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

long count_switches(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

static uint64_t time_calls(uint64_t (*run)(uint64_t), long calls)
{
    uint64_t x = 3;
    const uint64_t start = read_ticks();
    for (long n = 0; n < calls; n++)
        x = run(x);
    __asm__ volatile("" : : "r"(x));
    return read_ticks() - start;
}

#define CHAIN(name, instruction) \
    static uint64_t name(long blocks) \
    { \
        uint64_t x = 3; \
        const uint64_t start = read_ticks(); \
        for (long n = 0; n < blocks; n++) \
            __asm__ volatile(".rept 64\n " instruction " %0, %0\n .endr" : "+r"(x)); \
        return read_ticks() - start; \
    }

CHAIN(time_additions, "add")
CHAIN(time_multiplications, "imul")

static int compare(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double find_median(double *numbers, int number)
{
    qsort(numbers, (size_t)number, sizeof numbers[0], compare);
    return numbers[number / 2];
}

/* Core cycles of a multiplication, which are a whole number. */
static double measure_latency(void)
{
    double ratios[COMPARISONS];
    for (int n = 0; n < COMPARISONS; n++)
        ratios[n] = (double)time_multiplications(COMPARED) / (double)time_additions(COMPARED);
    return (double)(long)(find_median(ratios, COMPARISONS) + 0.5);
}

double measure_cycles_per_tick(void)
{
    static double latency;
    static long blocks = 1;
    if (latency == 0) {
        latency = measure_latency();
        for (int trial = 0; trial < TRIALS; trial++)
            while (time_multiplications(blocks) < WINDOW_TICKS)
                blocks *= 2;
    }
    return (double)(LINKS * blocks) * latency / (double)time_multiplications(blocks);
}

static double time_function(uint64_t (*run)(uint64_t))
{
    long calls = 1;
    int windows = 0;
    double cycles[WINDOWS] = {0};
    for (int trial = 0; trial < TRIALS; trial++)
        while (time_calls(run, calls) < WINDOW_TICKS)
            calls *= 2;
    double before = measure_cycles_per_tick();
    for (int attempt = 0; attempt < ATTEMPTS && windows < WINDOWS; attempt++) {
        const long switches = count_switches();
        const double ticks = (double)time_calls(run, calls), after = measure_cycles_per_tick();
        if (count_switches() == switches && after > before * (1 - STEADY) && after < before * (1 + STEADY))
            cycles[windows++] = ticks / (double)calls * (before + after) / 2;
        before = after;
    }
    return windows ? find_median(cycles, windows) : 0;
}

void write_reference(uint64_t (*run)(uint64_t))
{
    const char *path = getenv("ACCURACY_REFERENCE");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    for (int number = 0; number < FUNCTIONS; number++)
        if (timed_functions[number].run == run)
            fprintf(file, "%s %.3f\n", timed_functions[number].name, time_function(run));
    fclose(file);
}
