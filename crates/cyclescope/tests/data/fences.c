/* Tests whether readings of cyclescope.h wait for the code around them. Prints ticks: a long chain, and the part
   of it that a region after it shows; a short chain, and the part of it that a region around it shows. LFENCE and
   RDTSC alone measure the lengths of the chains, without the header's methods. */
#include "cyclescope.h"
#include <stdio.h>

enum { SAMPLES = 1001 };

/* Few instructions, so that later code may run before them: a core's queues hold fifty or more. */
#define LONG(value) __asm__ __volatile__(CYCLESCOPE_REPEATED(24, "divsd %0, %0", "divsd %0, %0") : "+x"(value))
#define SHORT(value) __asm__ __volatile__(CYCLESCOPE_REPEATED(20, "imul %0, %0", "imul %0, %0") : "+r"(value) : : "cc")

/* Times the code once and twice, in turns: the difference is its own time. */
#define OF(once, twice, code) \
    do { \
        start = fenced(); \
        code; \
        (once) = (double)(fenced() - start); \
        start = fenced(); \
        code; \
        code; \
        (twice) = (double)(fenced() - start); \
    } while (0)

static uint64_t fenced(void)
{
    uint32_t low, high;

    __asm__ __volatile__("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

int main(void)
{
    static double ticks[7][SAMPLES];
    const double step = cyclescope_step();
    double all[7], y = 1;
    unsigned long x = 3;
    uint64_t start;
    int i;

    for (i = 0; i < SAMPLES; i++) {
        OF(ticks[0][i], ticks[1][i], LONG(y));
        OF(ticks[2][i], ticks[3][i], SHORT(x));
        start = cyclescope_lfence_rdtsc_lfence_start();
        ticks[4][i] = (double)(cyclescope_lfence_rdtsc_lfence_end() - start);
        LONG(y);
        start = cyclescope_lfence_rdtsc_lfence_start();
        ticks[5][i] = (double)(cyclescope_lfence_rdtsc_lfence_end() - start);
        start = cyclescope_lfence_rdtsc_lfence_start();
        SHORT(x);
        ticks[6][i] = (double)(cyclescope_lfence_rdtsc_lfence_end() - start);
    }
    for (i = 0; i < 7; i++)
        all[i] = cyclescope_typical(ticks[i], SAMPLES, step);
    return printf("%.1f %.1f %.1f %.1f\n", all[1] - all[0], all[5] - all[4], all[3] - all[2], all[6] - all[4]) < 0;
}
