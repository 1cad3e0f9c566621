/* Counts core cycles and instructions of a loop, or what the kernel counts where this machine shows
 * no counters: cc -O2 counter_example.c -o counters && ./counters */
#include <stdio.h>
#include "cyclescope_counter.h"

int main(void)
{
    static const struct cyclescope_counted_event hardware[] = {CYCLESCOPE_CYCLES, CYCLESCOPE_INSTRUCTIONS};
    static const struct cyclescope_counted_event kernel[] = {CYCLESCOPE_TASK_CLOCK, CYCLESCOPE_PAGE_FAULTS};
    const char *what[] = {"core cycles", "instructions"};
    struct cyclescope_counters counters;
    struct cyclescope_counts before, after;
    uint64_t number, sum = 0;
    int error = cyclescope_counters_open(&counters, hardware, 2), event;

    if (error) {
        printf("no core cycles and instructions: %s\n", cyclescope_counter_text(error));
        what[0] = "ns of the thread";
        what[1] = "page faults";
        error = cyclescope_counters_open(&counters, kernel, 2);
    }
    if (!error)
        error = cyclescope_counters_read(&counters, &before);
    for (number = 0; number < 100000; number++) {
        sum ^= number;
        CYCLESCOPE_HIDE(sum);
    }
    if (!error)
        error = cyclescope_counters_read(&counters, &after);
    if (error) {
        fprintf(stderr, "error: %s\n", cyclescope_counter_text(error));
        return 1;
    }
    for (event = 0; event < 2; event++)
        printf("%llu %s%s\n", (unsigned long long)(after.count[event] - before.count[event]), what[event],
            cyclescope_has_moved(&before, &after) ? ", on two CPUs" : "");
    cyclescope_counters_close(&counters);
    return 0;
}
