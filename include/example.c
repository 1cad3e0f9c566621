/* Fifty multiplications that wait for each other, in core cycles: cc -O2 -I include include/example.c -o example && ./example */
#include "cyclescope.h"
#include <stdio.h>

enum { SAMPLES = 201, WINDOWS = 101, TRIES = 10 * WINDOWS };

int main(void)
{
    static double ticks[SAMPLES], cycles[WINDOWS];
    struct cyclescope_calibration pair = cyclescope_calibrate();
    struct cyclescope_scale before, after;
    double middle;
    unsigned long x = 3;
    uint64_t start;
    int i, n, windows = 0, tries;

    if (!pair.waits || !pair.rulers_agree) {
        printf("no core cycles here: %s\n", pair.waits ? "the rulers disagree" : "LFENCE does not wait");
        return 1;
    }
    if (!pair.fixed_rate)
        fputs("core cycles are in doubt: this CPU's TSC may not count at a fixed rate\n", stderr);
    before = cyclescope_scale_now(&pair);
    for (tries = 0; windows < WINDOWS && tries < TRIES; tries++, before = after) {
        for (i = 0; i < SAMPLES; i++) {
            start = cyclescope_lfence_rdtsc_lfence_start();
            CYCLESCOPE_HIDE(x);
            for (n = 0; n < 50; n++)
                x *= x;
            CYCLESCOPE_KEEP(x);
            ticks[i] = (double)(cyclescope_lfence_rdtsc_lfence_end() - start);
        }
        after = cyclescope_scale_now(&pair);
        /* The core's clock has changed: take another window. */
        if (after.cycles <= 1.01 * before.cycles && before.cycles <= 1.01 * after.cycles)
            cycles[windows++] = cyclescope_cycles(before, after, cyclescope_typical(ticks, SAMPLES, pair.step));
    }
    if (windows == 0) {
        printf("no core cycles here: the core's clock changes all the time\n");
        return 1;
    }
    middle = cyclescope_middle(cycles, windows);
    printf("50 dependent multiplications: %.1f core cycles (%.1f to %.1f)\n", middle, middle + pair.pair - pair.most,
        middle + pair.pair - pair.least);
    if (cycles[3 * windows / 4] - cycles[windows / 4] > 0.05 * middle)
        fputs("in doubt: half of the windows differ by more than 5 %\n", stderr);
    return windows < WINDOWS;
}
