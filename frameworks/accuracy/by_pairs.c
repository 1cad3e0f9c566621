/* The functions between single readings of the C header: prints their names and core cycles. */
#include "cyclescope.h"
#include "functions.h"
#include "reference.h"
#include <stdio.h>

/* Readings of a window, windows of which the middle half counts, and the share by which the core's
 * clock may change in one. */
enum { SAMPLES = 201, WINDOWS = 101, TRIES = 10 * WINDOWS };
static const double STEADY = 0.01;

static double time_window(uint64_t (*run)(uint64_t), double step)
{
    double ticks[SAMPLES];
    uint64_t value = 3;
    for (int n = 0; n < SAMPLES; n++) {
        const uint64_t start = cyclescope_lfence_rdtsc_lfence_start();
        CYCLESCOPE_HIDE(value);
        value = run(value);
        CYCLESCOPE_KEEP(value);
        ticks[n] = (double)(cyclescope_lfence_rdtsc_lfence_end() - start);
    }
    return cyclescope_typical(ticks, SAMPLES, step);
}

int main(void)
{
    const struct cyclescope_calibration pair = cyclescope_calibrate();
    prepare_functions();
    for (int n = 0; n < FUNCTIONS; n++) {
        const struct timed_function *function = &timed_functions[n];
        double cycles[WINDOWS];
        int windows = 0;
        write_alone_reference(function->run);
        struct cyclescope_scale before = cyclescope_scale_now(&pair);
        for (int tries = 0; windows < WINDOWS && tries < TRIES; tries++) {
            const double ticks = time_window(function->run, pair.step);
            const struct cyclescope_scale after = cyclescope_scale_now(&pair);
            if (after.cycles <= (1 + STEADY) * before.cycles && before.cycles <= (1 + STEADY) * after.cycles)
                cycles[windows++] = cyclescope_cycles(before, after, ticks);
            before = after;
        }
        write_alone_reference(function->run);
        printf("%s %.3f\n", function->name, cyclescope_middle(cycles, windows));
    }
    return 0;
}
