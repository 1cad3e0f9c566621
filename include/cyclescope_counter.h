/*
 * cyclescope_counter.h: performance events of a thread, counted in its own program without root, in
 * C99, C++11 and later, on Linux with GCC or Clang
 *
 *     static const struct cyclescope_counted_event events[] = {CYCLESCOPE_CYCLES, CYCLESCOPE_INSTRUCTIONS};
 *     struct cyclescope_counters counters;
 *     struct cyclescope_counts before, after;
 *     int error = cyclescope_counters_open(&counters, events, 2);
 *
 *     if (error)
 *         fprintf(stderr, "%s\n", cyclescope_counter_text(error));
 *     cyclescope_counters_read(&counters, &before);
 *     ... the code ...
 *     cyclescope_counters_read(&counters, &after);
 *     cyclescope_counters_close(&counters);
 *     ... after.count[1] - before.count[1] instructions; see also cyclescope_has_moved ...
 *
 * The events count user code of the thread that opened them, on any CPU, all at the same time. Where
 * the kernel allows RDPMC, a reading takes no system call. Otherwise, and for events of the kernel,
 * it is one read(2). Nothing here is shared between threads: each opens its own counters. Another
 * thread of the process may read them too, always with read(2). A child of fork opens its own.
 *
 * RDPMC has never run on a real counter so far: no machine of the tests shows one. The Rust twin is
 * `EventCounters` of the crate cyclescope-clock.
 */
#ifndef CYCLESCOPE_COUNTER_H
#define CYCLESCOPE_COUNTER_H

#include "cyclescope.h"
#if !defined(__linux__) || defined(CYCLESCOPE_INTRINSICS)
#error "cyclescope_counter.h is for Linux, with GCC or Clang"
#endif
#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifndef __cplusplus
/* Strict C hides it. */
extern long syscall(long number, ...);
#endif

/* Largest number of events that are counted at the same time. */
#define CYCLESCOPE_MOST_COUNTERS 8
#define CYCLESCOPE_COUNTER_PAGE 4096

/* An event: `type` and `config` of perf_event_open(2). */
struct cyclescope_counted_event {
    uint32_t unit;
    uint64_t config;
};

/* Initial values of such structures. The last two are events of the kernel: nanoseconds of the
   thread, and page faults. */
#define CYCLESCOPE_CYCLES {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}
#define CYCLESCOPE_INSTRUCTIONS {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS}
#define CYCLESCOPE_BRANCHES {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS}
#define CYCLESCOPE_BRANCH_MISSES {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES}
#define CYCLESCOPE_TASK_CLOCK {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK}
#define CYCLESCOPE_PAGE_FAULTS {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}
/* An event by this core's encoding, such as 0x02c2 for event C2 with unit mask 02. */
#define CYCLESCOPE_RAW_EVENT(encoding) {PERF_TYPE_RAW, encoding}

/* Why events can't be counted. cyclescope_counter_text has the reasons. */
enum cyclescope_counter_error {
    CYCLESCOPE_COUNTER_OK = 0,
    CYCLESCOPE_COUNTER_NONE,
    CYCLESCOPE_COUNTER_FORBIDDEN,
    CYCLESCOPE_COUNTER_TOO_MANY,
    CYCLESCOPE_COUNTER_UNKNOWN,
    CYCLESCOPE_COUNTER_TAKEN,
    CYCLESCOPE_COUNTER_TOO_MANY_FILES,
    CYCLESCOPE_COUNTER_WRONG_NUMBER,
    CYCLESCOPE_COUNTER_KERNEL
};

/* Open events, the group's leader first. */
struct cyclescope_counters {
    int count;
    int file[CYCLESCOPE_MOST_COUNTERS];
    /* NULL if it can't be mapped. */
    void *page[CYCLESCOPE_MOST_COUNTERS];
    /* The thread that opened them. */
    uintptr_t thread;
    int has_rdtscp;
};

/* A reading: the counts since the events were opened, in their order. */
struct cyclescope_counts {
    uint64_t count[CYCLESCOPE_MOST_COUNTERS];
    /* What RDTSCP returns from IA32_TSC_AUX; 0 without RDTSCP. Linux puts the CPU into the low 12 bits. */
    uint32_t cpu;
};

/* Whether two readings were on different CPUs. If so, a time between them has the difference of their
   TSCs in it, and cores of other kinds may count other things. */
static inline int cyclescope_has_moved(const struct cyclescope_counts *before, const struct cyclescope_counts *after)
{
    return before->cpu != after->cpu;
}

static inline const char *cyclescope_counter_text(int error)
{
    switch (error) {
    case CYCLESCOPE_COUNTER_OK:
        return "the events count";
    case CYCLESCOPE_COUNTER_NONE:
        return "no unit counts this event here: the processor has no counters, or a hypervisor hides them";
    case CYCLESCOPE_COUNTER_FORBIDDEN:
        return "the system forbids it: kernel.perf_event_paranoid, or a container's filter";
    case CYCLESCOPE_COUNTER_TOO_MANY:
        return "there are more events than counters";
    case CYCLESCOPE_COUNTER_UNKNOWN:
        return "the unit has no such event";
    case CYCLESCOPE_COUNTER_TAKEN:
        return "something else has the counter";
    case CYCLESCOPE_COUNTER_TOO_MANY_FILES:
        return "the process has too many open files";
    case CYCLESCOPE_COUNTER_WRONG_NUMBER:
        return "the number of events is not from 1 to 8";
    default:
        return "another error of the kernel; errno has its number";
    }
}

/* `several`: other events count at the same time. */
static inline int cyclescope_counter_error_of(int number, int several)
{
    switch (number) {
    case EINVAL:
    case ENOSPC:
        if (several)
            return CYCLESCOPE_COUNTER_TOO_MANY;
        return number == EINVAL ? CYCLESCOPE_COUNTER_UNKNOWN : CYCLESCOPE_COUNTER_KERNEL;
    case ENOENT:
    case ENXIO:
    case ENODEV:
    case EOPNOTSUPP:
    case ENOSYS:
        return CYCLESCOPE_COUNTER_NONE;
    case EACCES:
    case EPERM:
        return CYCLESCOPE_COUNTER_FORBIDDEN;
    case EBUSY:
        return CYCLESCOPE_COUNTER_TAKEN;
    case ENFILE:
    case EMFILE:
        return CYCLESCOPE_COUNTER_TOO_MANY_FILES;
    default:
        return CYCLESCOPE_COUNTER_KERNEL;
    }
}

/* A number that each thread has of its own: the address of its control block. */
CYCLESCOPE_INLINE uintptr_t cyclescope_this_thread(void)
{
    uintptr_t address;

#ifdef __x86_64__
    __asm__("{mov %%fs:0, %0|mov %0, fs:0}" : "=r"(address));
#else
    __asm__("{mov %%gs:0, %0|mov %0, gs:0}" : "=r"(address));
#endif
    return address;
}

/* Reads an event with RDPMC (Linux, perf_event.h, struct perf_event_mmap_page). Returns 0 if the
   kernel does not allow that, or if no hardware counter has the event. */
static inline int cyclescope_read_page(const void *mapped, uint64_t *count)
{
    const volatile struct perf_event_mmap_page *page = (const volatile struct perf_event_mmap_page *)mapped;
    uint32_t lock, number, low, high;
    uint64_t offset, counter;
    unsigned unused;

    if (!page || !page->cap_user_rdpmc)
        return 0;
    do {
        lock = page->lock;
        /* LFENCE keeps earlier instructions before the reading, and later ones behind it. */
        __asm__ __volatile__("lfence" : : : "memory");
        number = page->index;
        offset = (uint64_t)page->offset;
        unused = (64u - page->pmc_width) & 63;
        if (!number)
            return 0;
        __asm__ __volatile__("rdpmc\n\tlfence" : "=a"(low), "=d"(high) : "c"(number - 1) : "memory");
    } while (page->lock != lock);
    /* The kernel starts counters below 0, so that an overflow interrupts it. */
    counter = ((uint64_t)high << 32 | low) << unused;
    *count = offset + (uint64_t)((int64_t)counter >> unused);
    return 1;
}

static inline int cyclescope_read_pages(const struct cyclescope_counters *counters, struct cyclescope_counts *counts)
{
    int number;

    /* RDPMC reads the counters of the thread that runs. */
    if (counters->thread != cyclescope_this_thread())
        return 0;
    for (number = 0; number < counters->count; number++)
        if (!cyclescope_read_page(counters->page[number], &counts->count[number]))
            return 0;
    return 1;
}

/* Reads all counts. Returns 0, or a value of enum cyclescope_counter_error if something has taken a
   counter away. */
static inline int cyclescope_counters_read(const struct cyclescope_counters *counters, struct cyclescope_counts *counts)
{
    /* The number of events comes first. */
    uint64_t words[1 + CYCLESCOPE_MOST_COUNTERS];
    uint32_t low, high;
    ssize_t bytes;

    if (!cyclescope_read_pages(counters, counts)) {
        bytes = read(counters->file[0], words, sizeof(words));
        if (bytes < 0)
            return CYCLESCOPE_COUNTER_KERNEL;
        /* A pinned group without counters is at its end of file. */
        if (bytes != (ssize_t)sizeof(words[0]) * (1 + counters->count))
            return CYCLESCOPE_COUNTER_TAKEN;
        memcpy(counts->count, words + 1, sizeof(words[0]) * (size_t)counters->count);
    }
    counts->cpu = 0;
    if (counters->has_rdtscp)
        __asm__ __volatile__("rdtscp" : "=a"(low), "=d"(high), "=c"(counts->cpu) : : "memory");
    return CYCLESCOPE_COUNTER_OK;
}

/* Whether readings of this thread take no system call. */
static inline int cyclescope_counters_read_by_rdpmc(const struct cyclescope_counters *counters)
{
    struct cyclescope_counts counts;

    return cyclescope_read_pages(counters, &counts);
}

/* Closes all events. Does nothing if they are closed already. */
static inline void cyclescope_counters_close(struct cyclescope_counters *counters)
{
    while (counters->count > 0) {
        counters->count--;
        if (counters->page[counters->count])
            munmap(counters->page[counters->count], CYCLESCOPE_COUNTER_PAGE);
        close(counters->file[counters->count]);
    }
}

/* Opens events of this thread, from 1 to 8. Returns 0, or a value of enum cyclescope_counter_error;
   then nothing is open. */
static inline int cyclescope_counters_open(struct cyclescope_counters *counters,
                                           const struct cyclescope_counted_event *events, int count)
{
    struct perf_event_attr attributes;
    struct cyclescope_counts counts;
    int number, file, error;
    void *page;

    counters->count = 0;
    if (count < 1 || count > CYCLESCOPE_MOST_COUNTERS)
        return CYCLESCOPE_COUNTER_WRONG_NUMBER;
    counters->thread = cyclescope_this_thread();
    counters->has_rdtscp = cyclescope_has_rdtscp();
    for (number = 0; number < count; number++) {
        memset(&attributes, 0, sizeof(attributes));
        attributes.size = PERF_ATTR_SIZE_VER0;
        attributes.type = events[number].unit;
        attributes.config = events[number].config;
        attributes.read_format = PERF_FORMAT_GROUP;
        attributes.exclude_kernel = 1;
        attributes.exclude_hv = 1;
        /* The group counts always, or it is an error. Its leader is started last: an event that
           joins a running group may count only from the next tick on (Linux 6.18). */
        attributes.pinned = number == 0;
        attributes.disabled = number == 0;
        file = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, number ? counters->file[0] : -1,
            (unsigned long)PERF_FLAG_FD_CLOEXEC);
        if (file < 0) {
            error = cyclescope_counter_error_of(errno, number > 0);
            cyclescope_counters_close(counters);
            return error;
        }
        page = mmap(NULL, CYCLESCOPE_COUNTER_PAGE, PROT_READ, MAP_SHARED, file, 0);
        counters->page[number] = page == MAP_FAILED ? NULL : page;
        counters->file[number] = file;
        counters->count = number + 1;
    }
    if (ioctl(counters->file[0], PERF_EVENT_IOC_ENABLE, 0))
        error = cyclescope_counter_error_of(errno, 0);
    else
        error = cyclescope_counters_read(counters, &counts);
    if (error)
        cyclescope_counters_close(counters);
    return error;
}

#endif
