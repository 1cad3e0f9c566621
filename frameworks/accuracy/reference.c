/* What the functions take by the thread's CPU time, and by the core clock of a chain of additions
 * next to it. Prints a line for each: the name and its core cycles. */
#define _GNU_SOURCE
#include "functions.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WINDOWS = 61, ADDITIONS = 64 };
static const double WINDOW = 1e6; /* nanoseconds */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static double time_calls(uint64_t (*run)(uint64_t), long calls)
{
    uint64_t x = 3;
    const double start = now();
    for (long n = 0; n < calls; n++)
        x = run(x);
    __asm__ volatile("" : : "r"(x));
    return now() - start;
}

/* An addition of registers takes a core cycle on every x86-64 core (A. Fog, Instruction tables). */
static uint64_t add_64(uint64_t x)
{
    __asm__ volatile(".rept 64\n add %0, %0\n .endr" : "+r"(x));
    return x;
}

static double time_additions(long blocks)
{
    uint64_t x = 3;
    const double start = now();
    for (long n = 0; n < blocks; n++)
        x = add_64(x);
    __asm__ volatile("" : : "r"(x));
    return now() - start;
}

static int compare(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(void)
{
    prepare_functions();
    for (int number = 0; number < FUNCTIONS; number++) {
        uint64_t (*run)(uint64_t) = timed_functions[number].run;
        long calls = 1, blocks = 1;
        double cycles[WINDOWS];
        while (time_calls(run, calls) < WINDOW)
            calls *= 2;
        while (time_additions(blocks) < WINDOW)
            blocks *= 2;
        for (int window = 0; window < WINDOWS; window++) {
            const double before = time_additions(blocks), took = time_calls(run, calls), after = time_additions(blocks);
            cycles[window] = took / (double)calls * (double)(ADDITIONS * blocks) * 2 / (before + after);
        }
        qsort(cycles, WINDOWS, sizeof cycles[0], compare);
        printf("%s %.3f\n", timed_functions[number].name, cycles[WINDOWS / 2]);
    }
    return 0;
}
