/* Calls the pairs of cyclescope.h that every CPU with RDTSCP has, between two plain readings of the clock. Prints the
   names of those whose readings are not in between, or whose CPU is another one. */
#include "cyclescope.h"
#include <stdio.h>

/* A thread may move to another CPU, or wait there. */
enum { TRIES = 1000 };

/* CPUID and RDTSCP change four registers, while the compiler has values in all of them. */
static volatile unsigned seeds[6] = {1, 2, 3, 4, 5, 6};

static uint64_t plain(uint32_t *cpu)
{
    uint32_t low, high;

    __asm__ __volatile__("rdtscp\n\tlfence" : "=a"(low), "=d"(high), "=c"(*cpu) : : "memory");
    return (uint64_t)high << 32 | low;
}

#define TRY(name, reading, clock_of, cpu_of) \
    do { \
        int found = 0, tries; \
        for (tries = 0; tries < TRIES && !found; tries++) { \
            unsigned a = seeds[0], b = seeds[1], c = seeds[2], d = seeds[3], e = seeds[4], f = seeds[5]; \
            uint32_t cpu, other; \
            uint64_t before = plain(&cpu), after; \
            reading value = name; \
            after = plain(&other); \
            found = a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f == 654321 && cpu == other \
                && clock_of > before && clock_of < after && cpu_of == cpu; \
        } \
        if (!found) \
            printf("%s\n", #name); \
    } while (0)
#define PLAIN(pair, side) TRY(cyclescope_##pair##_##side(), uint64_t, value, cpu)
#define PAIR(pair) \
    PLAIN(pair, start); \
    PLAIN(pair, end)
#define ON_CPU(pair, side) TRY(cyclescope_##pair##_##side##_on_cpu(), struct cyclescope_cpu_reading, value.clock, value.cpu)
#define CPU_PAIR(pair) \
    PAIR(pair); \
    ON_CPU(pair, start); \
    ON_CPU(pair, end)

int main(void)
{
    if (!cyclescope_has_rdtscp())
        return puts("no RDTSCP") < 0;
    PAIR(rdtsc);
    PAIR(lfence_rdtsc);
    PAIR(lfence_rdtsc_lfence);
    PAIR(lfence_rdtsc_rdtscp_lfence);
    PAIR(mfence_lfence_rdtsc);
    PAIR(cpuid_rdtsc);
    PAIR(cpuid_rdtsc_cpuid);
    PAIR(cpuid_rdtsc_rdtscp);
    PAIR(cpuid_rdtsc_rdtscp_cpuid);
    CPU_PAIR(rdtscp);
    CPU_PAIR(rdtscp_cpuid);
    CPU_PAIR(rdtscp_lfence);
    CPU_PAIR(mfence_rdtscp_lfence);
    return 0;
}
