/* Tests cyclescope_counter.h, and pairs that tell their CPU. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cyclescope_counter.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define PAGES 1000

static const struct cyclescope_counted_event events[] = {
    CYCLESCOPE_PAGE_FAULTS, {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY}, CYCLESCOPE_TASK_CLOCK
};

static void demand(int met, const char *what)
{
    if (!met) {
        fprintf(stderr, "not met: %s\n", what);
        exit(1);
    }
}

static void touch_pages(void)
{
    volatile char *memory = (volatile char *)mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t page;

    demand(memory != MAP_FAILED, "memory");
    madvise((void *)memory, PAGES * 4096, MADV_NOHUGEPAGE);
    for (page = 0; page < PAGES; page++)
        memory[page * 4096] = 1;
    munmap((void *)memory, PAGES * 4096);
}

/* Counts the page faults of this thread, and of no other. */
static void *count_faults(void *all)
{
    struct cyclescope_counters counters;
    struct cyclescope_counts before, after;

    demand(!cyclescope_counters_open(&counters, events, 3), "counters of a thread");
    demand(!cyclescope_counters_read_by_rdpmc(&counters), "events of the kernel are on no counter");
    demand(!cyclescope_counters_read(&counters, &before), "a reading");
    touch_pages();
    demand(!cyclescope_counters_read(&counters, &after), "a reading");
    before.count[0] = after.count[0] - before.count[0];
    demand(before.count[0] >= PAGES && before.count[0] < PAGES + 200, "its own page faults");
    demand(after.count[1] == 0 && after.count[2] > before.count[2], "no dummies, and time that passes");
    cyclescope_counters_close(&counters);
    cyclescope_counters_close(&counters);
    return all;
}

static void *read_of_another(void *counters)
{
    struct cyclescope_counts counts;

    demand(!cyclescope_counters_read((struct cyclescope_counters *)counters, &counts), "another thread reads");
    return counts.count[0] >= PAGES ? counters : NULL;
}

static void check_threads(void)
{
    struct cyclescope_counters counters;
    pthread_t threads[THREADS];
    void *same;
    int thread;

    for (thread = 0; thread < THREADS; thread++)
        demand(!pthread_create(&threads[thread], NULL, count_faults, NULL), "a thread");
    for (thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    demand(!cyclescope_counters_open(&counters, events, 3), "counters");
    touch_pages();
    demand(!pthread_create(&threads[0], NULL, read_of_another, &counters), "a thread");
    pthread_join(threads[0], &same);
    demand(same == &counters, "the counts of the thread that opened them");
    cyclescope_counters_close(&counters);
}

static void check_errors(void)
{
    static const struct cyclescope_counted_event unknown[] = {CYCLESCOPE_PAGE_FAULTS, {PERF_TYPE_SOFTWARE, 1 << 20}};
    struct cyclescope_counters counters;
    int error;

    demand(cyclescope_counters_open(&counters, events, 0) == CYCLESCOPE_COUNTER_WRONG_NUMBER, "an error for none");
    demand(cyclescope_counters_open(&counters, events, 9) == CYCLESCOPE_COUNTER_WRONG_NUMBER, "an error for nine");
    demand(cyclescope_counters_open(&counters, unknown, 2) == CYCLESCOPE_COUNTER_NONE, "an error for an unknown event");
    demand(counters.count == 0, "nothing stays open");
    for (error = CYCLESCOPE_COUNTER_OK; error <= CYCLESCOPE_COUNTER_KERNEL; error++)
        demand(strlen(cyclescope_counter_text(error)) > 10, "a text for each error");
}

static void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    demand(!sched_setaffinity(0, sizeof(set), &set), "this thread on its CPU");
}

/* Moves in the middle of a pair. */
static void check_migration(int counts)
{
    struct cyclescope_cpu_reading started, stayed, moved;
    struct cyclescope_counters counters;
    struct cyclescope_counts before = {{0}, 0}, between, after = {{0}, 0};
    int cpus[2], found = 0, cpu;
    cpu_set_t set;

    demand(!sched_getaffinity(0, sizeof(set), &set), "the CPUs of this thread");
    for (cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpus[found++] = cpu;
    if (found < 2 || !cyclescope_has_rdtscp()) {
        printf("skipped: a migration needs two CPUs and RDTSCP\n");
        return;
    }
    pin(cpus[0]);
    demand(!counts || !cyclescope_counters_open(&counters, events, 3), "counters");
    demand(!counts || !cyclescope_counters_read(&counters, &before), "a reading");
    demand(!counts || !cyclescope_counters_read(&counters, &between), "a reading");
    started = cyclescope_rdtscp_lfence_start_on_cpu();
    stayed = cyclescope_rdtscp_lfence_end_on_cpu();
    pin(cpus[1]);
    moved = cyclescope_rdtscp_lfence_end_on_cpu();
    demand(cyclescope_on_one_cpu(started, stayed) && stayed.clock > started.clock, "a pair on one CPU");
    demand(!cyclescope_on_one_cpu(started, moved), "a pair across two CPUs");
    demand((started.cpu & 0xfff) == (uint32_t)cpus[0] && (moved.cpu & 0xfff) == (uint32_t)cpus[1], "the CPUs' numbers");
    started = cyclescope_rdtscp_cpuid_start_on_cpu();
    pin(cpus[0]);
    moved = cyclescope_rdtscp_cpuid_end_on_cpu();
    demand((started.cpu & 0xfff) == (uint32_t)cpus[1] && (moved.cpu & 0xfff) == (uint32_t)cpus[0], "numbers beside CPUID");
    if (!counts)
        return;
    pin(cpus[1]);
    demand(!cyclescope_counters_read(&counters, &after), "a reading");
    demand(!cyclescope_has_moved(&before, &between) && cyclescope_has_moved(&before, &after), "counts across two CPUs");
    cyclescope_counters_close(&counters);
}

int main(void)
{
    struct cyclescope_counters counters;
    int error = cyclescope_counters_open(&counters, events, 3);

    if (error == CYCLESCOPE_COUNTER_FORBIDDEN) {
        printf("skipped: %s\n", cyclescope_counter_text(error));
    } else {
        demand(!error, cyclescope_counter_text(error));
        cyclescope_counters_close(&counters);
        check_threads();
        check_errors();
    }
    check_migration(!error);
    return 0;
}
