/* Times a function by a loop of its own: ticks of the time stamp counter between two readings, and
 * the core clock before and after. Nothing here is of cyclescope or of a framework. It runs in the
 * program that it is compared with, since the addresses of code and data move sums and copies by
 * some percent.
 *
 * The core clock is that of a chain of multiplications. How many additions a multiplication takes
 * is measured, and an addition of registers takes a core cycle on every x86-64 core (A. Fog,
 * Instruction tables). Beside a busy sibling additions lose some percent, and multiplications less. */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include "reference.h"
#include "functions.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Windows of which the median counts. They are short, so that most have no interrupt. A window in
 * which another thread had the CPU does not count. Code is long enough for a window if it is in each
 * of some trials: another thread may run in one. */
enum { WINDOWS = 301, ATTEMPTS = 20 * WINDOWS, WINDOW_TICKS = 40000, TRIALS = 5 };
/* Neighbouring readings of the core clock, of which the median counts for a window. To take only
 * windows between two like readings would prefer those without interrupts to the windows. */
enum { NEIGHBOURS = 5 };
/* Links in a block of a chain, blocks with which both chains are compared, and comparisons. Blocks are
 * short: a busy sibling slowed straight multiplications by up to 5 %, and short loops of them not
 * (Raptor Cove). */
enum { LINKS = 4, COMPARED = 4800, COMPARISONS = 101 };
/* Links of the chain that shows what the fences around an execution take. */
enum { FENCED_LINKS = 64 };

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

/* Each call begins when the one before is done, and ends before the next one. */
static uint64_t time_fenced_calls(uint64_t (*run)(uint64_t), long calls)
{
    uint64_t x = 3;
    const uint64_t start = read_ticks();
    for (long n = 0; n < calls; n++) {
        __asm__ volatile("lfence" : "+r"(x) : : "memory");
        x = run(x);
        __asm__ volatile("lfence" : "+r"(x) : : "memory");
    }
    return read_ticks() - start;
}

static uint64_t multiply_fenced_links(uint64_t x)
{
    __asm__ volatile(".rept 64\n imul %0, %0\n .endr" : "+r"(x));
    return x;
}

#define CHAIN(name, instruction) \
    static uint64_t name(long blocks) \
    { \
        uint64_t x = 3; \
        const uint64_t start = read_ticks(); \
        for (long n = 0; n < blocks; n++) \
            __asm__ volatile(".rept 4\n " instruction " %0, %0\n .endr" : "+r"(x)); \
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

static double find_latency(void)
{
    static double latency;
    if (latency == 0)
        latency = measure_latency();
    return latency;
}

double measure_cycles_per_tick(void)
{
    static long blocks;
    if (blocks == 0) {
        blocks = 1;
        for (int trial = 0; trial < TRIALS; trial++)
            while (time_multiplications(blocks) < WINDOW_TICKS)
                blocks *= 2;
    }
    return (double)(LINKS * blocks) * find_latency() / (double)time_multiplications(blocks);
}

/* The core cycles of a call. */
static double time_function(uint64_t (*run)(uint64_t), uint64_t (*time)(uint64_t (*)(uint64_t), long))
{
    long calls = 1;
    int windows = 0;
    double ticks[WINDOWS], clock[WINDOWS + 1], cycles[WINDOWS] = {0}, near[NEIGHBOURS];
    for (int trial = 0; trial < TRIALS; trial++)
        while (time(run, calls) < WINDOW_TICKS)
            calls *= 2;
    clock[0] = measure_cycles_per_tick();
    for (int attempt = 0; attempt < ATTEMPTS && windows < WINDOWS; attempt++) {
        const long switches = count_switches();
        const double taken = (double)time(run, calls), after = measure_cycles_per_tick();
        if (count_switches() != switches)
            continue;
        ticks[windows] = taken;
        clock[++windows] = after;
    }
    for (int window = NEIGHBOURS / 2; window < windows - NEIGHBOURS / 2; window++) {
        memcpy(near, clock + window - NEIGHBOURS / 2, sizeof near);
        cycles[window - NEIGHBOURS / 2] = ticks[window] / (double)calls * find_median(near, NEIGHBOURS);
    }
    return windows < NEIGHBOURS ? 0 : find_median(cycles, windows - NEIGHBOURS + 1);
}

/* The core cycles of a call that overlaps with no other code. */
static double time_function_alone(uint64_t (*run)(uint64_t))
{
    const double chain = time_function(multiply_fenced_links, time_fenced_calls);
    return time_function(run, time_fenced_calls) - (chain - FENCED_LINKS * find_latency());
}

static double time_function_in_loop(uint64_t (*run)(uint64_t))
{
    return time_function(run, time_calls);
}

static void append_line(uint64_t (*run)(uint64_t), double (*measure)(uint64_t (*)(uint64_t)))
{
    const char *path = getenv("ACCURACY_REFERENCE");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    for (int number = 0; number < FUNCTIONS; number++)
        if (timed_functions[number].run == run)
            fprintf(file, "%s %.3f\n", timed_functions[number].name, measure(run));
    fclose(file);
}

void write_reference(uint64_t (*run)(uint64_t))
{
    append_line(run, time_function_in_loop);
}

void write_alone_reference(uint64_t (*run)(uint64_t))
{
    append_line(run, time_function_alone);
}
