/* What a busy machine does to the ruler: the latency of a multiplication stays a whole number, and the next reading
 * of a loop's ruler is soon due. */
#include "cyclescope_loop.h"

/* Measured latencies, the whole number, and whether it is certain. */
static const double latencies[][3] = {{3.001, 3, 1}, {3.06, 3, 1}, {2.885, 3, 1}, {2.65, 3, 0}, {5.9, 6, 1}, {0.2, 1, 0}};

int main(void)
{
    static struct cyclescope_loop loop;
    int wrong = 0, certain;
    unsigned n;

    for (n = 0; n < sizeof latencies / sizeof latencies[0]; n++)
        if (cyclescope_whole_latency(latencies[n][0], &certain) != latencies[n][1] || certain != (latencies[n][2] > 0)) {
            printf("a latency of %.3f\n", latencies[n][0]);
            wrong = 1;
        }
    cyclescope_loop_rule(&loop);
    if (loop.due > cyclescope_lfence_rdtsc_lfence_end() + (uint64_t)CYCLESCOPE_RULED) {
        printf("the ruler is due too late\n");
        wrong = 1;
    }
    return wrong;
}
