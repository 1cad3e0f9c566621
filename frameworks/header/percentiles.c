/* Percentiles of simulated readings, whose clock has a step: within a tenth of a step of the true times. */
#include "cyclescope.h"
#include <stdio.h>

#define READINGS 20000
#define STEP 26

/* A clock's reading of a time that begins at a chance moment between two steps. */
static double reading(double time, unsigned *random)
{
    double begins;

    *random = *random * 1103515245u + 12345u;
    begins = STEP * ((*random >> 8) / 16777216.0);
    return STEP * (double)(int)((begins + time) / STEP);
}

static int expect(const char *what, double time, double share, const double *taken)
{
    static double readings[READINGS];
    struct cyclescope_percentile found;
    int i;

    for (i = 0; i < READINGS; i++)
        readings[i] = taken[i];
    found = cyclescope_percentile(readings, READINGS, STEP, share);
    if (found.value > time - 0.11 * STEP && found.value < time + 0.11 * STEP && found.low < time && time < found.high)
        return 0;
    printf("%s: %.2f (%.2f to %.2f) for %.2f\n", what, found.value, found.low, found.high, time);
    return 1;
}

int main(void)
{
    static double taken[READINGS];
    unsigned random = 1;
    int i, part, wrong = 0;

    for (part = 0; part < 20; part++) {
        double time = 100 + STEP * part / 20.0;

        for (i = 0; i < READINGS; i++)
            taken[i] = reading(time, &random);
        wrong += expect("the median of a constant time", time, 0.5, taken);
    }
    /* Times from 100 to 900. */
    for (i = 0; i < READINGS; i++)
        taken[i] = reading(100 + 800.0 * i / READINGS, &random);
    wrong += expect("the median of scattered times", 500, 0.5, taken);
    wrong += expect("nineteen twentieths of scattered times", 860, 0.95, taken);
    return wrong > 0;
}
