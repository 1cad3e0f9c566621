/*
 * cyclescope.h: timing methods, and core cycles, for your own program in C99, C++11 and later
 * Written by cyclescope's own tests from its timing methods: a method here is what `cyclescope run --clock` measures with.
 *
 * Each method is a pair of functions that are always built in:
 *
 *     uint64_t start = cyclescope_lfence_rdtsc_lfence_start();
 *     ... the code ...
 *     uint64_t ticks = cyclescope_lfence_rdtsc_lfence_end() - start;
 *
 * The compiler moves no access over a reading to memory that other code can reach. Computations in registers, and in
 * local variables that nothing points to, it may move over both readings, into the pair and out of it:
 * use CYCLESCOPE_HIDE on what the code works on, behind the start, and CYCLESCOPE_KEEP on its results, before the end. A compiler without
 * GNU assembly (Microsoft's) has neither: there let the code work on what is `volatile`.
 *
 * Ticks of the time stamp counter are no core cycles. With GCC and Clang:
 *
 *     struct cyclescope_calibration pair = cyclescope_calibrate();
 *     struct cyclescope_scale before = cyclescope_scale_now(&pair);
 *     ... many pairs, less than a few milliseconds ...
 *     struct cyclescope_scale after = cyclescope_scale_now(&pair);
 *     double cycles = cyclescope_cycles(before, after, ticks);
 *
 * Both are of lfence-rdtsc-lfence: of readings by another method they say nothing. Where `before` and `after` differ by more than
 * 1 % the core's clock changed: measure again. Take many pairs, and the mean of those that are not far beyond the median; and many such
 * windows, of which the middle ones count: what a pair takes now is known to a core cycle in each.
 */
#ifndef CYCLESCOPE_H
#define CYCLESCOPE_H

#if !defined(__x86_64__) && !defined(_M_X64)
#error "this is for x86-64"
#endif
#include <stdint.h>
#if defined(__linux__)
#include <time.h>
#endif
#if defined(_MSC_VER) && !defined(__clang__)
#define CYCLESCOPE_INTRINSICS
#endif
#ifdef CYCLESCOPE_INTRINSICS
#include <intrin.h>
#endif
#ifdef _MSC_VER
#define CYCLESCOPE_INLINE static __forceinline
#else
#define CYCLESCOPE_INLINE static inline __attribute__((always_inline))
#endif

/* Whether CPUID shows a bit of EDX in a leaf from 80000001h on. Hypervisors may hide what the CPU has. */
static inline int cyclescope_shown(unsigned leaf, int bit)
{
#ifdef CYCLESCOPE_INTRINSICS
    int found[4];

    __cpuid(found, (int)0x80000000u);
    if ((unsigned)found[0] < leaf)
        return 0;
    __cpuid(found, (int)leaf);
    return (unsigned)found[3] >> bit & 1;
#else
    uint32_t a, b, c, d;

    __asm__ __volatile__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "0"(0x80000000u), "2"(0));
    if (a < leaf)
        return 0;
    __asm__ __volatile__("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "0"(leaf), "2"(0));
    return d >> bit & 1;
#endif
}

/* Whether the CPU has RDTSCP: methods with it end a program without. */
static inline int cyclescope_has_rdtscp(void) { return cyclescope_shown(0x80000001u, 27); }

/* Whether the TSC counts at a fixed rate in all states. Where it does not, ticks before a change of the core's clock or a rest of the core
   say nothing of those behind it. */
static inline int cyclescope_has_invariant_tsc(void) { return cyclescope_shown(0x80000007u, 8); }

#ifndef CYCLESCOPE_INTRINSICS
/* CYCLESCOPE_HIDE(x)  the compiler knows nothing of x from here on, and takes it as changed
   CYCLESCOPE_KEEP(x)  the value of x is needed here

   Integers, pointers, float, double and vectors stay in their registers. All else goes through memory, with a store and a
   load in the code: long double, __int128, complex numbers, structures, unions, and arrays of more than 8 bytes. Shorter
   arrays, and classes of C++ that are not copied as bytes, do not compile: name their elements. x is a variable. */
#ifndef CYCLESCOPE_HIDE
/* Classes of types, in C and in C++: 8 is floating point; from 9 to 18 are complex numbers, structures and unions; vectors
   have a negative one, or 19. */
#define CYCLESCOPE_IN_MEMORY(x) \
    (__builtin_classify_type(x) > 0 && __builtin_classify_type(x) < 19 \
        && (__builtin_classify_type(x) > 8 || sizeof(x) > 8))
#define CYCLESCOPE_IN_VECTOR(x) \
    (__builtin_classify_type(x) == 8 || __builtin_classify_type(x) < 0 || __builtin_classify_type(x) > 18)
/* What is meant for a vector register. Clang refuses what is too long for one, in code that never runs too: there it gets a byte of it. A vector
   of 8 bytes is to Clang one of MMX, and a double is none. */
#ifndef __clang__
#define CYCLESCOPE_VECTOR(x) (x)
#elif defined(__cplusplus)
template <bool is, bool is_short, class type> struct cyclescope_vector { typedef char of; };
template <class type> struct cyclescope_vector<true, false, type> { typedef type of; };
template <class type> struct cyclescope_vector<true, true, type> { typedef double of; };
#define CYCLESCOPE_VECTOR(x) \
    (*(typename cyclescope_vector<CYCLESCOPE_IN_VECTOR(x), sizeof(x) == 8, __typeof__(x)>::of *)&(x))
#else
#define CYCLESCOPE_VECTOR(x) \
    (*(__typeof__(*__builtin_choose_expr(CYCLESCOPE_IN_VECTOR(x), \
        __builtin_choose_expr(sizeof(x) == 8, (double *)0, &(x)), (char *)0)) *)&(x))
#endif
#define CYCLESCOPE_HIDE(x) \
    do { \
        if (CYCLESCOPE_IN_MEMORY(x)) \
            __asm__ volatile("" : "+m"(x)); \
        else if (CYCLESCOPE_IN_VECTOR(x)) \
            __asm__ volatile("" : "+x"(CYCLESCOPE_VECTOR(x))); \
        else \
            __asm__ volatile("" : "+r"(x)); \
    } while (0)
#ifdef __clang__
/* Of several places clang takes memory, which is a store in the code that is measured. */
#define CYCLESCOPE_KEEP(x) \
    do { \
        if (CYCLESCOPE_IN_MEMORY(x)) \
            __asm__ volatile("" ::"m"(x)); \
        else if (CYCLESCOPE_IN_VECTOR(x)) \
            __asm__ volatile("" ::"x"(CYCLESCOPE_VECTOR(x))); \
        else \
            __asm__ volatile("" ::"r"(x)); \
    } while (0)
#else
#define CYCLESCOPE_KEEP(x) __asm__ volatile("" ::"r,m,x"(x))
#endif
#endif
#endif

#if defined(CLOCK_MONOTONIC_RAW) && !defined(CYCLESCOPE_INTRINSICS)
/*
 * `clock-gettime`: what an ordinary program uses; shows what the other methods gain.
 *
 * Readings count nanoseconds.
 * Promised: leading code is done, the body waits for the start, the body is done at the end, following code waits.
 * Not promised: stores are drained.
 * Condition: LFENCE waits on Intel CPUs, and on AMD's where the system made it do so (cyclescope doctor tells).
 * Condition: calls the C library on the caller's stack.
 *
 * Source: clock_gettime(2), CLOCK_MONOTONIC_RAW.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_clock_gettime_start(void)
{
    struct timespec now;

    __asm__ __volatile__("lfence" : : : "memory"); /* earlier instructions have executed, later ones wait */
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    __asm__ __volatile__("lfence" : : : "memory"); /* earlier instructions have executed, later ones wait */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

CYCLESCOPE_INLINE uint64_t cyclescope_clock_gettime_end(void)
{
    struct timespec now;

    __asm__ __volatile__("lfence" : : : "memory"); /* earlier instructions have executed, later ones wait */
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    __asm__ __volatile__("lfence" : : : "memory"); /* earlier instructions have executed, later ones wait */
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
#endif

/*
 * `cpuid-rdtsc`: serialised, but the second CPUID's time and variance are in every sample.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body is done at the end, stores are drained.
 * Not promised: the body waits for the start, following code waits.
 * Condition: CPUID leaves a virtual machine, which takes thousands of ticks that vary.
 *
 * Source: G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, 324264-001, section 3.1.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_cpuid_rdtsc_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    int leaf[4];

    __cpuid(leaf, 0);
    reading = __rdtsc();
    return reading;
#else
    uint64_t low, high, rbx;

    __asm__ __volatile__(
        "{mov %%rbx, %2|mov %2, rbx}\n\t"    /* the compiler may need RBX for itself */
        "{mov $0, %%eax|mov eax, 0}\n\t"
        "cpuid\n\t"                          /* everything earlier is done, stores too; later code waits */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        "{mov %2, %%rbx|mov rbx, %2}\n\t"
        : "=&a"(low), "=&d"(high), "=&r"(rbx)
        :
        : "rcx", "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_cpuid_rdtsc_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    int leaf[4];

    __cpuid(leaf, 0);
    reading = __rdtsc();
    return reading;
#else
    uint64_t low, high, rbx;

    __asm__ __volatile__(
        "{mov %%rbx, %2|mov %2, rbx}\n\t"    /* the compiler may need RBX for itself */
        "{mov $0, %%eax|mov eax, 0}\n\t"
        "cpuid\n\t"                          /* everything earlier is done, stores too; later code waits */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        "{mov %2, %%rbx|mov rbx, %2}\n\t"
        : "=&a"(low), "=&d"(high), "=&r"(rbx)
        :
        : "rcx", "memory");
    return high << 32 | low;
#endif
}

/*
 * `cpuid-rdtsc-cpuid`: serialised before and after each reading; two CPUIDs are inside the measured interval.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body waits for the start, the body is done at the end, following code waits, stores are drained.
 * Condition: CPUID leaves a virtual machine, which takes thousands of ticks that vary.
 *
 * Source: Agner Fog, Test programs for measuring clock cycles and performance monitoring, section 7.12.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_cpuid_rdtsc_cpuid_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    int leaf[4];

    __cpuid(leaf, 0);
    reading = __rdtsc();
    __cpuid(leaf, 0);
    return reading;
#else
    uint64_t low, high, rbx;

    __asm__ __volatile__(
        "{mov %%rbx, %2|mov %2, rbx}\n\t"    /* the compiler may need RBX for itself */
        "{mov $0, %%eax|mov eax, 0}\n\t"
        "cpuid\n\t"                          /* everything earlier is done, stores too; later code waits */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        "{mov %%eax, %%esi|mov esi, eax}\n\t"
        "{mov %%edx, %%edi|mov edi, edx}\n\t" /* keeps the reading */
        "{mov $0, %%eax|mov eax, 0}\n\t"
        "cpuid\n\t"                          /* everything earlier is done, stores too; later code waits */
        "{mov %2, %%rbx|mov rbx, %2}\n\t"
        : "=&S"(low), "=&D"(high), "=&r"(rbx)
        :
        : "rax", "rcx", "rdx", "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_cpuid_rdtsc_cpuid_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    int leaf[4];

    __cpuid(leaf, 0);
    reading = __rdtsc();
    __cpuid(leaf, 0);
    return reading;
#else
    uint64_t low, high, rbx;

    __asm__ __volatile__(
        "{mov %%rbx, %2|mov %2, rbx}\n\t"    /* the compiler may need RBX for itself */
        "{mov $0, %%eax|mov eax, 0}\n\t"
        "cpuid\n\t"                          /* everything earlier is done, stores too; later code waits */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        "{mov %%eax, %%esi|mov esi, eax}\n\t"
        "{mov %%edx, %%edi|mov edi, edx}\n\t" /* keeps the reading */
        "{mov $0, %%eax|mov eax, 0}\n\t"
        "cpuid\n\t"                          /* everything earlier is done, stores too; later code waits */
        "{mov %2, %%rbx|mov rbx, %2}\n\t"
        : "=&S"(low), "=&D"(high), "=&r"(rbx)
        :
        : "rax", "rcx", "rdx", "memory");
    return high << 32 | low;
#endif
}

/*
 * `cpuid-rdtsc-rdtscp`: no CPUID inside the pair; code that follows may begin before the end is read.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body is done at the end.
 * Not promised: the body waits for the start, following code waits, stores are drained.
 * Condition: CPUID leaves a virtual machine, which takes thousands of ticks that vary.
 * Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
 *
 * Source: G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, 324264-001, section 3.2.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_cpuid_rdtsc_rdtscp_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    int leaf[4];

    __cpuid(leaf, 0);
    reading = __rdtsc();
    return reading;
#else
    uint64_t low, high, rbx;

    __asm__ __volatile__(
        "{mov %%rbx, %2|mov %2, rbx}\n\t"    /* the compiler may need RBX for itself */
        "{mov $0, %%eax|mov eax, 0}\n\t"
        "cpuid\n\t"                          /* everything earlier is done, stores too; later code waits */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        "{mov %2, %%rbx|mov rbx, %2}\n\t"
        : "=&a"(low), "=&d"(high), "=&r"(rbx)
        :
        : "rcx", "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_cpuid_rdtsc_rdtscp_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    unsigned int auxiliary;

    reading = __rdtscp(&auxiliary);
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "rdtscp\n\t"                         /* reads the TSC into EDX:EAX when earlier instructions have executed */
        : "=a"(low), "=d"(high)
        :
        : "rcx", "memory");
    return high << 32 | low;
#endif
}

/*
 * `cpuid-rdtsc-rdtscp-cpuid`: the paper's recommendation; both CPUIDs are outside the pair.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body is done at the end, following code waits.
 * Not promised: the body waits for the start, stores are drained.
 * Condition: CPUID leaves a virtual machine, which takes thousands of ticks that vary.
 * Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
 *
 * Source: G. Paoloni, How to Benchmark Code Execution Times on Intel IA-32 and IA-64, 324264-001, section 3.2.1.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_cpuid_rdtsc_rdtscp_cpuid_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    int leaf[4];

    __cpuid(leaf, 0);
    reading = __rdtsc();
    return reading;
#else
    uint64_t low, high, rbx;

    __asm__ __volatile__(
        "{mov %%rbx, %2|mov %2, rbx}\n\t"    /* the compiler may need RBX for itself */
        "{mov $0, %%eax|mov eax, 0}\n\t"
        "cpuid\n\t"                          /* everything earlier is done, stores too; later code waits */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        "{mov %2, %%rbx|mov rbx, %2}\n\t"
        : "=&a"(low), "=&d"(high), "=&r"(rbx)
        :
        : "rcx", "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_cpuid_rdtsc_rdtscp_cpuid_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    unsigned int auxiliary;
    int leaf[4];

    reading = __rdtscp(&auxiliary);
    __cpuid(leaf, 0);
    return reading;
#else
    uint64_t low, high, rbx;

    __asm__ __volatile__(
        "{mov %%rbx, %2|mov %2, rbx}\n\t"    /* the compiler may need RBX for itself */
        "rdtscp\n\t"                         /* reads the TSC into EDX:EAX when earlier instructions have executed */
        "{mov %%eax, %%esi|mov esi, eax}\n\t"
        "{mov %%edx, %%edi|mov edi, edx}\n\t" /* keeps the reading */
        "{mov $0, %%eax|mov eax, 0}\n\t"
        "cpuid\n\t"                          /* everything earlier is done, stores too; later code waits */
        "{mov %2, %%rbx|mov rbx, %2}\n\t"
        : "=&S"(low), "=&D"(high), "=&r"(rbx)
        :
        : "rax", "rcx", "rdx", "memory");
    return high << 32 | low;
#endif
}

/*
 * `lfence-rdtsc`: waits for what comes before; what follows may begin before the reading.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body is done at the end.
 * Not promised: the body waits for the start, following code waits, stores are drained.
 * Condition: LFENCE waits on Intel CPUs, and on AMD's where the system made it do so (cyclescope doctor tells).
 *
 * Source: Notes on using rdtsc(p): Zen 4 and Alder Lake as examples.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_lfence_rdtsc_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    _mm_lfence();
    reading = __rdtsc();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        : "=a"(low), "=d"(high)
        :
        : "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_lfence_rdtsc_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    _mm_lfence();
    reading = __rdtsc();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        : "=a"(low), "=d"(high)
        :
        : "memory");
    return high << 32 | low;
#endif
}

/*
 * `lfence-rdtsc-lfence`: fully fenced and cheap; does not wait for stores.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body waits for the start, the body is done at the end, following code waits.
 * Not promised: stores are drained.
 * Condition: LFENCE waits on Intel CPUs, and on AMD's where the system made it do so (cyclescope doctor tells).
 *
 * Source: Intel SDM vol. 2, RDTSC, notes on ordering.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_lfence_rdtsc_lfence_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    _mm_lfence();
    reading = __rdtsc();
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_lfence_rdtsc_lfence_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    _mm_lfence();
    reading = __rdtsc();
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "memory");
    return high << 32 | low;
#endif
}

/*
 * `lfence-rdtsc-rdtscp-lfence`: the improved method of Intel's paper with LFENCE for CPUID; the body may begin before the start is read.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body is done at the end, following code waits.
 * Not promised: the body waits for the start, stores are drained.
 * Condition: LFENCE waits on Intel CPUs, and on AMD's where the system made it do so (cyclescope doctor tells).
 * Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
 *
 * Source: Intel's paper, section 3.2.1, with LFENCE in CPUID's place.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_lfence_rdtsc_rdtscp_lfence_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    _mm_lfence();
    reading = __rdtsc();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        : "=a"(low), "=d"(high)
        :
        : "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_lfence_rdtsc_rdtscp_lfence_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    unsigned int auxiliary;

    reading = __rdtscp(&auxiliary);
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "rdtscp\n\t"                         /* reads the TSC into EDX:EAX when earlier instructions have executed */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "rcx", "memory");
    return high << 32 | low;
#endif
}

/*
 * `mfence-lfence-rdtsc`: fully fenced and waits until stores are globally visible.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body waits for the start, the body is done at the end, following code waits, stores are drained.
 * Condition: LFENCE waits on Intel CPUs, and on AMD's where the system made it do so (cyclescope doctor tells).
 *
 * Source: Intel SDM vol. 2, RDTSC, notes on ordering.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_mfence_lfence_rdtsc_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    _mm_mfence();
    _mm_lfence();
    reading = __rdtsc();
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "mfence\n\t"                         /* earlier loads and stores are globally visible */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_mfence_lfence_rdtsc_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    _mm_mfence();
    _mm_lfence();
    reading = __rdtsc();
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "mfence\n\t"                         /* earlier loads and stores are globally visible */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "memory");
    return high << 32 | low;
#endif
}

/*
 * `mfence-rdtscp-lfence`: fully fenced and waits until stores are globally visible, where RDTSCP waits for MFENCE.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body waits for the start, the body is done at the end, following code waits, stores are drained.
 * Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
 * Condition: LFENCE waits on Intel CPUs, and on AMD's where the system made it do so (cyclescope doctor tells).
 *
 * Source: Intel SDM vol. 2, RDTSCP, notes on ordering.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_mfence_rdtscp_lfence_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    unsigned int auxiliary;

    _mm_mfence();
    reading = __rdtscp(&auxiliary);
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "mfence\n\t"                         /* earlier loads and stores are globally visible */
        "rdtscp\n\t"                         /* reads the TSC into EDX:EAX when earlier instructions have executed */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "rcx", "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_mfence_rdtscp_lfence_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    unsigned int auxiliary;

    _mm_mfence();
    reading = __rdtscp(&auxiliary);
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "mfence\n\t"                         /* earlier loads and stores are globally visible */
        "rdtscp\n\t"                         /* reads the TSC into EDX:EAX when earlier instructions have executed */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "rcx", "memory");
    return high << 32 | low;
#endif
}

/*
 * `rdpmc`: counts core cycles directly, where perf events give user mode a counter.
 *
 * Readings count core cycles.
 * Promised: leading code is done, the body waits for the start, the body is done at the end, following code waits.
 * Not promised: stores are drained.
 * Condition: LFENCE waits on Intel CPUs, and on AMD's where the system made it do so (cyclescope doctor tells).
 * Condition: needs a running counter of perf_event_open(2): its number is `index` - 1 of the event's mapped page.
 *
 * Source: Intel SDM vol. 2, RDPMC; perf_event_open(2), cap_user_rdpmc.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_rdpmc_start(uint32_t counter)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    _mm_lfence();
    reading = __readpmc(counter);
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        "rdpmc\n\t"                          /* reads the counter of ECX into EDX:EAX */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        : "c"(counter)
        : "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_rdpmc_end(uint32_t counter)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    _mm_lfence();
    reading = __readpmc(counter);
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        "rdpmc\n\t"                          /* reads the counter of ECX into EDX:EAX */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        : "c"(counter)
        : "memory");
    return high << 32 | low;
#endif
}

#ifndef CYCLESCOPE_INTRINSICS
/*
 * `rdpru`: counts core cycles directly, on AMD CPUs that allow it in user mode.
 *
 * Readings count core cycles.
 * Promised: leading code is done, the body waits for the start, the body is done at the end, following code waits.
 * Not promised: stores are drained.
 * Condition: LFENCE waits on Intel CPUs, and on AMD's where the system made it do so (cyclescope doctor tells).
 * Condition: needs RDPRU (CPUID leaf 80000008h, EBX bit 4) and a system that lets user mode read APERF.
 *
 * Source: AMD APM vol. 3, RDPRU.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_rdpru_start(void)
{
    uint64_t low, high;

    __asm__ __volatile__(
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        ".byte 0xb9, 0x01, 0x00, 0x00, 0x00\n\t"
        ".byte 0x0f, 0x01, 0xfd\n\t"         /* reads APERF into EDX:EAX */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "rcx", "memory");
    return high << 32 | low;
}

CYCLESCOPE_INLINE uint64_t cyclescope_rdpru_end(void)
{
    uint64_t low, high;

    __asm__ __volatile__(
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        ".byte 0xb9, 0x01, 0x00, 0x00, 0x00\n\t"
        ".byte 0x0f, 0x01, 0xfd\n\t"         /* reads APERF into EDX:EAX */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "rcx", "memory");
    return high << 32 | low;
}
#endif

/*
 * `rdtsc`: the cheapest reading; orders nothing, so parts of short code fall outside the pair.
 *
 * Readings count TSC ticks.
 * Not promised: leading code is done, the body waits for the start, the body is done at the end, following code waits, stores are drained.
 *
 * Source: Intel SDM vol. 2, RDTSC.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_rdtsc_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    reading = __rdtsc();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        : "=a"(low), "=d"(high)
        :
        : "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_rdtsc_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    reading = __rdtsc();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        : "=a"(low), "=d"(high)
        :
        : "memory");
    return high << 32 | low;
#endif
}

/*
 * `rdtscp`: waits for what comes before; the body may begin before the start is read.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body is done at the end.
 * Not promised: the body waits for the start, following code waits, stores are drained.
 * Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
 *
 * Source: Intel SDM vol. 2, RDTSCP.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_rdtscp_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    unsigned int auxiliary;

    reading = __rdtscp(&auxiliary);
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "rdtscp\n\t"                         /* reads the TSC into EDX:EAX when earlier instructions have executed */
        : "=a"(low), "=d"(high)
        :
        : "rcx", "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_rdtscp_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    unsigned int auxiliary;

    reading = __rdtscp(&auxiliary);
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "rdtscp\n\t"                         /* reads the TSC into EDX:EAX when earlier instructions have executed */
        : "=a"(low), "=d"(high)
        :
        : "rcx", "memory");
    return high << 32 | low;
#endif
}

/*
 * `rdtscp-cpuid`: fully fenced, but the first CPUID is inside the measured interval.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body waits for the start, the body is done at the end, following code waits.
 * Not promised: stores are drained.
 * Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
 * Condition: CPUID leaves a virtual machine, which takes thousands of ticks that vary.
 *
 * Source: Notes on using rdtsc(p): Zen 4 and Alder Lake as examples.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_rdtscp_cpuid_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    unsigned int auxiliary;
    int leaf[4];

    reading = __rdtscp(&auxiliary);
    __cpuid(leaf, 0);
    return reading;
#else
    uint64_t low, high, rbx;

    __asm__ __volatile__(
        "{mov %%rbx, %2|mov %2, rbx}\n\t"    /* the compiler may need RBX for itself */
        "rdtscp\n\t"                         /* reads the TSC into EDX:EAX when earlier instructions have executed */
        "{mov %%eax, %%esi|mov esi, eax}\n\t"
        "{mov %%edx, %%edi|mov edi, edx}\n\t" /* keeps the reading */
        "{mov $0, %%eax|mov eax, 0}\n\t"
        "cpuid\n\t"                          /* everything earlier is done, stores too; later code waits */
        "{mov %2, %%rbx|mov rbx, %2}\n\t"
        : "=&S"(low), "=&D"(high), "=&r"(rbx)
        :
        : "rax", "rcx", "rdx", "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_rdtscp_cpuid_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    unsigned int auxiliary;
    int leaf[4];

    reading = __rdtscp(&auxiliary);
    __cpuid(leaf, 0);
    return reading;
#else
    uint64_t low, high, rbx;

    __asm__ __volatile__(
        "{mov %%rbx, %2|mov %2, rbx}\n\t"    /* the compiler may need RBX for itself */
        "rdtscp\n\t"                         /* reads the TSC into EDX:EAX when earlier instructions have executed */
        "{mov %%eax, %%esi|mov esi, eax}\n\t"
        "{mov %%edx, %%edi|mov edi, edx}\n\t" /* keeps the reading */
        "{mov $0, %%eax|mov eax, 0}\n\t"
        "cpuid\n\t"                          /* everything earlier is done, stores too; later code waits */
        "{mov %2, %%rbx|mov rbx, %2}\n\t"
        : "=&S"(low), "=&D"(high), "=&r"(rbx)
        :
        : "rax", "rcx", "rdx", "memory");
    return high << 32 | low;
#endif
}

/*
 * `rdtscp-lfence`: fully fenced; RDTSCP waits for what comes before, LFENCE delays what comes after.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body waits for the start, the body is done at the end, following code waits.
 * Not promised: stores are drained.
 * Condition: needs RDTSCP (CPUID leaf 80000001h, EDX bit 27); the CPU faults without it.
 * Condition: LFENCE waits on Intel CPUs, and on AMD's where the system made it do so (cyclescope doctor tells).
 *
 * Source: Notes on using rdtsc(p): Zen 4 and Alder Lake as examples.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_rdtscp_lfence_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    unsigned int auxiliary;

    reading = __rdtscp(&auxiliary);
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "rdtscp\n\t"                         /* reads the TSC into EDX:EAX when earlier instructions have executed */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "rcx", "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_rdtscp_lfence_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;
    unsigned int auxiliary;

    reading = __rdtscp(&auxiliary);
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        "rdtscp\n\t"                         /* reads the TSC into EDX:EAX when earlier instructions have executed */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "rcx", "memory");
    return high << 32 | low;
#endif
}

/*
 * `serialize-rdtsc`: fully serialised without leaving a virtual machine; needs a recent CPU.
 *
 * Readings count TSC ticks.
 * Promised: leading code is done, the body waits for the start, the body is done at the end, following code waits, stores are drained.
 * Condition: needs SERIALIZE (CPUID leaf 7, EDX bit 14); the CPU faults without it.
 * Condition: LFENCE waits on Intel CPUs, and on AMD's where the system made it do so (cyclescope doctor tells).
 *
 * Source: Intel SDM vol. 3A, 9.3.
 */
CYCLESCOPE_INLINE uint64_t cyclescope_serialize_rdtsc_start(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    _serialize();
    reading = __rdtsc();
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        ".byte 0x0f, 0x01, 0xe8\n\t"         /* everything earlier is done, stores too; later code waits */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "memory");
    return high << 32 | low;
#endif
}

CYCLESCOPE_INLINE uint64_t cyclescope_serialize_rdtsc_end(void)
{
#ifdef CYCLESCOPE_INTRINSICS
    uint64_t reading;

    _serialize();
    reading = __rdtsc();
    _mm_lfence();
    return reading;
#else
    uint64_t low, high;

    __asm__ __volatile__(
        ".byte 0x0f, 0x01, 0xe8\n\t"         /* everything earlier is done, stores too; later code waits */
        "rdtsc\n\t"                          /* reads the TSC into EDX:EAX */
        "lfence\n\t"                         /* earlier instructions have executed, later ones wait */
        : "=a"(low), "=d"(high)
        :
        : "memory");
    return high << 32 | low;
#endif
}

#ifndef CYCLESCOPE_INTRINSICS

/* What is known of core cycles: a multiplication of registers takes a whole number of them, and an addition one, where each waits for the one
   before. Additions tell the number; multiplications are the ruler, for their unit rests meanwhile: beside other work on the core's second
   thread additions lost 1 to 5 %, multiplications 0.1 % (Zen 4). */

/* What a clock tells now. The pair is measured with it: beside other work on the core's second thread it took 81 to 88 core cycles (Zen 4). */
struct cyclescope_scale {
    double cycles; /* core cycles that pass in a tick */
    double pair;   /* what a pair adds to a chain of multiplications, in ticks */
    double spread; /* the share by which `cycles` of either half of the reading differ from those of both */
};

/* What a pair of lfence-rdtsc-lfence takes on this machine, in core cycles. */
struct cyclescope_calibration {
    double pair;      /* what it adds to a chain of multiplications, at the time of the calibration */
    double least;     /* what it adds to code that it hides most of */
    double most;      /* and least of */
    double latency;   /* of a multiplication */
    double step;      /* of its readings, in ticks */
    int waits;        /* whether the readings wait for the code between them */
    int rulers_agree; /* whether a multiplication takes a whole number of additions */
    int fixed_rate;   /* whether CPUID says that the TSC counts at a fixed rate: where not, core cycles are in doubt */
    unsigned blocks;  /* of multiplications in the ruler's longer chain */
};

#define CYCLESCOPE_ROUNDS 101
#define CYCLESCOPE_TRIALS 63
/* Readings of the ruler's shorter chain beside one of the longer: they are the quicker ones, and the pair comes from them. */
#define CYCLESCOPE_SHORTER 3
#define CYCLESCOPE_CODES 5 /* that a pair is measured around */
#define CYCLESCOPE_LINKS 64
#define CYCLESCOPE_ADDITIONS 512

/* Ticks of some code between two readings. It may change RAX, which it takes and leaves as `value`, and XMM0. */
#define CYCLESCOPE_TIMED(ticks, value, code) \
    do { \
        uint64_t cyclescope_started = cyclescope_lfence_rdtsc_lfence_start(); \
        __asm__ __volatile__(code : "+a"(value) : : "xmm0", "cc"); \
        (ticks) = (double)(cyclescope_lfence_rdtsc_lfence_end() - cyclescope_started); \
    } while (0)

/* In either syntax of a compiler. */
#define CYCLESCOPE_REPEATED(times, att, intel) ".rept " #times "\n\t{" att "|" intel "}\n\t.endr\n\t"

/* Sorts, by Shell's method: a reading of the ruler has eight hundred numbers. */
static inline void cyclescope_sort(double *numbers, int count)
{
    int gap, i, j;

    for (gap = count / 2; gap > 0; gap /= 2)
        for (i = gap; i < count; i++)
            for (j = i; j >= gap && numbers[j - gap] > numbers[j]; j -= gap) {
                double other = numbers[j];

                numbers[j] = numbers[j - gap];
                numbers[j - gap] = other;
            }
}

/* The mean of sorted numbers up to some limit. */
static inline double cyclescope_mean(const double *sorted, int count, double limit)
{
    double sum = 0;
    int i;

    for (i = 0; i < count && sorted[i] <= limit; i++)
        sum += sorted[i];
    return i > 0 ? sum / i : 0;
}

/* The mean of what is not far beyond the middle: the step of the clock is in single readings and not in their mean. */
static inline double cyclescope_typical(double *ticks, int count, double step)
{
    cyclescope_sort(ticks, count);
    return cyclescope_mean(ticks, count, 1.5 * ticks[count / 2] + 2 * step);
}

/* The mean of the middle half: of windows, of which other work may have disturbed some. */
static inline double cyclescope_middle(double *numbers, int count)
{
    cyclescope_sort(numbers, count);
    return cyclescope_mean(numbers + count / 4, count - 2 * (count / 4), numbers[count - 1]);
}

/* Additions that take so many core cycles, so that readings fall anywhere between two steps of the clock. */
static inline void cyclescope_pass(int cycles)
{
    uint64_t value = 1;

    while (cycles-- > 0)
        __asm__ __volatile__("{add %0, %0|add %0, %0}" : "+r"(value) : : "cc");
}

/* Code of two lengths, in ticks: what a pair adds to it, and the shorter one alone. */
struct cyclescope_added {
    double pair, code;
};

/* Of readings of a shorter code, some a round, and of one so many times as long. All lose what is as far beyond their middle: else an interrupt
   of some length would count in the longer one only. */
static inline struct cyclescope_added cyclescope_added(
    double (*taken)[CYCLESCOPE_ROUNDS], int shorter, double times, double step)
{
    double beyond = 0, one = 0, many = 0;
    struct cyclescope_added added;
    int i;

    for (i = 0; i <= shorter; i++) {
        cyclescope_sort(taken[i], CYCLESCOPE_ROUNDS);
        if (i == 0)
            beyond = taken[0][CYCLESCOPE_ROUNDS / 2] / 2 + 2 * step;
        many = cyclescope_mean(taken[i], CYCLESCOPE_ROUNDS, taken[i][CYCLESCOPE_ROUNDS / 2] + beyond);
        if (i < shorter)
            one += many / shorter;
    }
    added.code = (many - one) / (times - 1);
    added.pair = one - added.code;
    return added;
}

/* Ticks of blocks of multiplications. The branch behind each is known long before them, and takes no time. */
static inline double cyclescope_multiplications(unsigned blocks)
{
    uint64_t value = 1, started;

    /* Both are in their registers before the start: a constant would be put there behind it, and the chain wait a cycle for it. */
    __asm__ __volatile__("" : "+r"(value), "+r"(blocks));
    started = cyclescope_lfence_rdtsc_lfence_start();
    __asm__ __volatile__("2:\n\t" CYCLESCOPE_REPEATED(64, "imul %0, %0", "imul %0, %0") "{decl %1|dec %1}\n\tjnz 2b\n\t"
                         : "+r"(value), "+r"(blocks)
                         :
                         : "cc");
    return (double)(cyclescope_lfence_rdtsc_lfence_end() - started);
}

/* One block and many in turns, so that other work on this core meets both. */
static inline struct cyclescope_added cyclescope_turns(unsigned blocks, double step)
{
    double taken[CYCLESCOPE_SHORTER + 1][CYCLESCOPE_ROUNDS];
    int i, length;

    for (i = 0; i < CYCLESCOPE_ROUNDS; i++) {
        cyclescope_pass(i * 37 % 64);
        for (length = 0; length < CYCLESCOPE_SHORTER; length++)
            taken[length][i] = cyclescope_multiplications(1);
        taken[length][i] = cyclescope_multiplications(blocks);
    }
    return cyclescope_added(taken, CYCLESCOPE_SHORTER, blocks, step);
}

/* The same of code at two lengths, the longer one twice as long. */
#define CYCLESCOPE_ADDED(added, step, begin, length, twice, att, intel) \
    do { \
        double cyclescope_taken[2][CYCLESCOPE_ROUNDS]; \
        uint64_t cyclescope_value = 1; \
        int cyclescope_round; \
        for (cyclescope_round = 0; cyclescope_round < CYCLESCOPE_ROUNDS; cyclescope_round++) { \
            cyclescope_pass(cyclescope_round * 37 % 64); \
            CYCLESCOPE_TIMED( \
                cyclescope_taken[0][cyclescope_round], cyclescope_value, begin CYCLESCOPE_REPEATED(length, att, intel)); \
            CYCLESCOPE_TIMED( \
                cyclescope_taken[1][cyclescope_round], cyclescope_value, begin CYCLESCOPE_REPEATED(twice, att, intel)); \
        } \
        (added) = cyclescope_added(cyclescope_taken, 1, 2, step); \
    } while (0)

/* Reads the ruler, and the pair: a tenth of a millisecond. */
static inline struct cyclescope_scale cyclescope_scale_now(const struct cyclescope_calibration *pair)
{
    struct cyclescope_added one = cyclescope_turns(pair->blocks, pair->step);
    struct cyclescope_added other = cyclescope_turns(pair->blocks, pair->step);
    double both = one.code + other.code;
    struct cyclescope_scale scale;

    if (both < 1)
        both = 1;
    scale.cycles = 2 * CYCLESCOPE_LINKS * pair->latency / both;
    scale.pair = (one.pair + other.pair) / 2;
    scale.spread = (one.code > other.code ? one.code - other.code : other.code - one.code) / both;
    return scale;
}

/* Core cycles of the code in a pair whose difference is `ticks`, between two readings of the ruler. */
static inline double cyclescope_cycles(struct cyclescope_scale before, struct cyclescope_scale after, double ticks)
{
    return (ticks - (before.pair + after.pair) / 2) * (before.cycles + after.cycles) / 2;
}

/* The step of the readings: the mean distance of the numbers of ticks that code of many lengths takes, without the tenths at both ends.
   Where readings are off by one it is less than the step, and at least a third of it. */
static inline double cyclescope_step(void)
{
    double taken[CYCLESCOPE_ROUNDS];
    uint64_t started;
    int i, tenth = CYCLESCOPE_ROUNDS / 10, gaps = 0;

    for (i = 0; i < CYCLESCOPE_ROUNDS; i++) {
        started = cyclescope_lfence_rdtsc_lfence_start();
        cyclescope_pass(i * 37 % 256);
        taken[i] = (double)(cyclescope_lfence_rdtsc_lfence_end() - started);
    }
    cyclescope_sort(taken, CYCLESCOPE_ROUNDS);
    for (i = tenth + 1; i < CYCLESCOPE_ROUNDS - tenth; i++)
        gaps += taken[i] > taken[i - 1];
    return gaps > 0 ? (taken[CYCLESCOPE_ROUNDS - tenth - 1] - taken[tenth]) / gaps : 1;
}

/* Measures the pair: some milliseconds. */
static inline struct cyclescope_calibration cyclescope_calibrate(void)
{
    /* In blocks of the ruler: multiplications in an addition's time, the pair, and what it adds to other code more. */
    double latencies[CYCLESCOPE_TRIALS], pairs[CYCLESCOPE_CODES][CYCLESCOPE_TRIALS], block, latency, whole, all;
    struct cyclescope_added of[CYCLESCOPE_CODES];
    struct cyclescope_calibration found;
    int trial, code;

    found.step = cyclescope_step();
    /* Twenty steps of the clock, where a multiplication takes two ticks. */
    found.blocks = found.step > 25.6 ? (unsigned)(20 * found.step / (2 * CYCLESCOPE_LINKS)) : 4;
    for (trial = -1; trial < CYCLESCOPE_TRIALS; trial++) {
        of[0] = cyclescope_turns(found.blocks, found.step);
        CYCLESCOPE_ADDED(of[1], found.step, "", 512, 1024, "add %%rax, %%rax", "add rax, rax");
        CYCLESCOPE_ADDED(of[2], found.step, "{xorps %%xmm0, %%xmm0|xorps xmm0, xmm0}\n\t", 64, 128, "mulsd %%xmm0, %%xmm0",
            "mulsd xmm0, xmm0");
        CYCLESCOPE_ADDED(of[3], found.step, "", 64, 128, "nop; nop; nop; nop; nop; nop", "nop; nop; nop; nop; nop; nop");
        CYCLESCOPE_ADDED(of[4], found.step, "", 64, 128, "", "");
        if (trial < 0)
            continue; /* the first one fetches the code */
        block = of[0].code > 1 ? of[0].code : 1;
        latencies[trial] = of[1].code > 1 ? CYCLESCOPE_ADDITIONS / of[1].code * block / CYCLESCOPE_LINKS : 0;
        pairs[0][trial] = of[0].pair / block;
        for (code = 1; code < CYCLESCOPE_CODES; code++)
            pairs[code][trial] = (of[code].pair - of[0].pair) / block;
    }
    cyclescope_sort(latencies, CYCLESCOPE_TRIALS);
    /* Other work makes it less: the upper quartile. */
    latency = latencies[3 * CYCLESCOPE_TRIALS / 4];
    whole = (double)(int)(latency + 0.5);
    found.rulers_agree = latency - whole < 0.02 * whole && whole - latency < 0.02 * whole;
    found.latency = found.rulers_agree ? whole : latency;
    for (code = 0; code < CYCLESCOPE_CODES; code++) {
        cyclescope_sort(pairs[code], CYCLESCOPE_TRIALS);
        all = pairs[code][CYCLESCOPE_TRIALS / 2] * CYCLESCOPE_LINKS * found.latency;
        if (code == 0)
            found.pair = found.least = found.most = all;
        else if (found.pair + all < found.least)
            found.least = found.pair + all;
        else if (found.pair + all > found.most)
            found.most = found.pair + all;
    }
    /* Where they do not, the chain is hidden beside them, or goes on behind them. */
    found.waits = found.pair > 0 && latency > 1.5;
    found.fixed_rate = cyclescope_has_invariant_tsc();
    return found;
}

#endif /* CYCLESCOPE_INTRINSICS */
#endif
