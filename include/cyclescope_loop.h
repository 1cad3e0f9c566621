/*
 * cyclescope_loop.h: core cycles of a loop's iteration, for any program and any test framework, in
 * C99, C++11 and later with GCC or Clang
 *
 *     #include "cyclescope_loop.h"
 *
 *     TEST_CASE("parse")                       // of Catch2 or doctest, or any other function
 *     {
 *         CYCLESCOPE_LOOP("parse") {
 *             tree = parse(text);
 *             CYCLESCOPE_KEEP(tree);
 *         }
 *     }
 *
 * The loop runs its body for a twentieth of a second, and prints what an iteration takes:
 *
 *     parse: 1234.5 core cycles (1233.8 to 1235.1)
 *
 * That is the median of parts of about a tenth of a millisecond, with its 95 % interval. Each part
 * is measured together with a ruler, since the core's clock may change. On Linux, time in which
 * another program has the CPU is left out. Under `cyclescope ab` (the variable CYCLESCOPE_AB) the
 * loop runs for as long as that requests, prints nothing, and writes its parts as samples. Each
 * loop of a program needs its own name.
 *
 * CYCLESCOPE_LOOP_TO(result, "parse") puts the numbers into a `struct cyclescope_loop_result`
 * instead of printing them, for a framework's own report or a check.
 *
 * An iteration that does not use the result of the previous one overlaps with it. The loop's own
 * counter takes up to a cycle. `break` in the body ends the loop without a result.
 */
#ifndef CYCLESCOPE_LOOP_H
#define CYCLESCOPE_LOOP_H

#include "cyclescope.h"
#ifdef CYCLESCOPE_INTRINSICS
#error "cyclescope_loop.h needs GCC or Clang: there is no ruler without GNU assembly"
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Core cycles of an iteration: the median, and its 95 % interval. All are 0 without a result. */
struct cyclescope_loop_result {
    double cycles, low, high;
};

#define CYCLESCOPE_LOOP(name) CYCLESCOPE_LOOP_WITH((struct cyclescope_loop_result *)0, name)
#define CYCLESCOPE_LOOP_TO(result, name) CYCLESCOPE_LOOP_WITH(&(result), name)
#define CYCLESCOPE_LOOP_WITH(result, name) \
    for (struct cyclescope_loop cyclescope_this = cyclescope_loop_begin(result, name); cyclescope_loop_goes_on(&cyclescope_this);) \
        for (uint64_t cyclescope_left = cyclescope_this.iterations; \
            cyclescope_left > 0 || cyclescope_loop_complete(&cyclescope_this); cyclescope_left--)

/* Ticks in about a millisecond: TSCs count at 2 to 4 GHz. */
#define CYCLESCOPE_MILLISECOND 2.5e6
/* Ticks of a part: shorter than the time between two timer interrupts, so that most parts have none. */
#define CYCLESCOPE_PART (CYCLESCOPE_MILLISECOND / 10)
/* Milliseconds of a loop, alone and under `cyclescope ab` if that requests none. */
#define CYCLESCOPE_ALONE 50
#define CYCLESCOPE_COMPARED 10
/* Least number of parts in a run of `cyclescope ab`, which takes the lower quartile of 5 to 50, and
   most parts. */
#define CYCLESCOPE_LEAST_PARTS 20
#define CYCLESCOPE_MOST_PARTS 1000
/* Ticks after which the ruler is read again, three times as long as it takes. The core's clock may
   change every few milliseconds (Raptor Cove). This is not a multiple of the time that the reading
   took: another program may have run meanwhile. */
#define CYCLESCOPE_RULED (3 * CYCLESCOPE_PART)
/* Longest name that the protocol of `cyclescope ab` allows. */
#define CYCLESCOPE_LONGEST_NAME 200

/* A loop that runs. */
struct cyclescope_loop {
    const char *name;
    struct cyclescope_loop_result *result;
    const char *samples;            /* the file of `cyclescope ab`, or 0 */
    uint64_t iterations;            /* of the part that runs */
    int complete;                   /* whether the part ran to its end */
    int parts;                      /* number of parts of full length */
    double part, all, passed;       /* ticks of a part, of all parts, and so far */
    struct cyclescope_scale scale;  /* last reading of the ruler */
    uint64_t due;                   /* the tick at which the ruler is due again */
    double wall, thread;            /* elapsed and processor time before the part, in nanoseconds */
    uint64_t started;
    uint64_t each;                  /* iterations of a part of full length */
    double cycles[CYCLESCOPE_MOST_PARTS]; /* of an iteration */
};

/* Elapsed time, and the thread's processor time, in nanoseconds. */
static inline double cyclescope_wall(void)
{
#if defined(__linux__) && defined(CLOCK_MONOTONIC_RAW)
    struct timespec now = {0, 0};

    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
#else
    return 0;
#endif
}

static inline double cyclescope_thread(void)
{
#if defined(__linux__) && defined(CLOCK_THREAD_CPUTIME_ID)
    struct timespec now = {0, 0};

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
#else
    return 0;
#endif
}

/* Measured once, at the first loop, which also reports problems of this machine. */
static inline const struct cyclescope_calibration *cyclescope_loop_calibration(void)
{
    static struct cyclescope_calibration pair;

    if (pair.blocks == 0) {
        pair = cyclescope_calibrate();
        if (!pair.waits || !pair.rulers_agree || !pair.fixed_rate)
            fprintf(stderr, "cyclescope: core cycles are in doubt: %s\n",
                !pair.waits             ? "readings do not wait for the code"
                    : pair.rulers_agree ? "this CPU's TSC may not count at a fixed rate"
                                        : "the rulers disagree");
    }
    return &pair;
}

static inline void cyclescope_loop_rule(struct cyclescope_loop *loop)
{
    loop->scale = cyclescope_scale_now(cyclescope_loop_calibration());
    loop->due = cyclescope_lfence_rdtsc_lfence_end() + (uint64_t)CYCLESCOPE_RULED;
}

static inline struct cyclescope_loop cyclescope_loop_begin(struct cyclescope_loop_result *result, const char *name)
{
    const char *milliseconds = getenv("CYCLESCOPE_AB_MS"), *path = getenv("CYCLESCOPE_AB");
    double wish = milliseconds ? atof(milliseconds) : 0;
    struct cyclescope_loop loop;

    loop.name = name;
    loop.result = result;
    loop.samples = path && *path ? path : 0;
    loop.iterations = 0;
    loop.complete = loop.parts = 0;
    loop.all = CYCLESCOPE_MILLISECOND * (!loop.samples ? CYCLESCOPE_ALONE : wish > 0 ? wish : CYCLESCOPE_COMPARED);
    loop.part = loop.samples ? loop.all / CYCLESCOPE_LEAST_PARTS : CYCLESCOPE_PART;
    loop.passed = 0;
    loop.each = 1;
    if (result)
        result->cycles = result->low = result->high = 0;
    return loop;
}

/* Writes a sample of each part; the line's format is in docs/reference.md, ab. */
static inline int cyclescope_loop_write(const struct cyclescope_loop *loop)
{
    FILE *file = fopen(loop->samples, "a");
    int part, letter;

    if (!file)
        return 0;
    for (part = 0; part < loop->parts; part++) {
        fputs("{\"name\":\"", file);
        for (letter = 0; loop->name[letter] && letter < CYCLESCOPE_LONGEST_NAME; letter++) {
            /* Escaped as in a JSON string (RFC 8259, 7). */
            if (loop->name[letter] == '"' || loop->name[letter] == '\\')
                fputc('\\', file);
            fputc((unsigned char)loop->name[letter] < ' ' ? ' ' : loop->name[letter], file);
        }
        fprintf(file, "\",\"iterations\":%llu,\"cycles\":%.17g}\n", (unsigned long long)loop->each,
            loop->cycles[part] * (double)loop->each);
    }
    return fclose(file) == 0;
}

static inline void cyclescope_loop_end(struct cyclescope_loop *loop)
{
    struct cyclescope_loop_result found;
    int middle = loop->parts / 2, ranks = 0;

    if (loop->samples && !cyclescope_loop_write(loop)) {
        perror("cyclescope: a sample cannot be written");
        exit(1);
    }
    cyclescope_sort(loop->cycles, loop->parts);
    /* The number of parts below the true median is binomial: 1.96 standard deviations of it. */
    while (ranks < middle && (double)ranks * ranks < 0.96 * loop->parts)
        ranks++;
    found.cycles = loop->cycles[middle];
    found.low = loop->cycles[middle - ranks];
    found.high = loop->cycles[middle + ranks < loop->parts ? middle + ranks : loop->parts - 1];
    if (loop->result)
        *loop->result = found;
    else if (!loop->samples)
        printf("%s: %.1f core cycles (%.1f to %.1f)\n", loop->name, found.cycles, found.low, found.high);
}

/* Ends a part and begins the next one; returns whether there is one. */
static __attribute__((noinline, unused)) int cyclescope_loop_turn(struct cyclescope_loop *loop, uint64_t now)
{
    double wall, thread, ticks, away;
    struct cyclescope_scale before;

    if (loop->iterations == 0) {
        cyclescope_loop_rule(loop);
    } else {
        if (!loop->complete) {
            fprintf(stderr, "cyclescope: break left the loop %s, so it has no result\n", loop->name);
            return 0;
        }
        wall = cyclescope_wall();
        thread = cyclescope_thread();
        ticks = (double)(now - loop->started);
        /* The system's two clocks differ by up to 2 µs (Zen 4, virtual machine). */
        wall -= loop->wall;
        away = wall - (thread - loop->thread);
        if (away > 2000 + 1e-4 * wall && away < wall)
            ticks *= 1 - away / wall;
        before = loop->scale;
        if (now > loop->due)
            cyclescope_loop_rule(loop);
        if (ticks < loop->part / 2 && loop->parts == 0) {
            loop->each *= 2;
        } else {
            loop->cycles[loop->parts++] = cyclescope_cycles(before, loop->scale, ticks) / (double)loop->iterations;
            loop->passed += ticks;
        }
        if (loop->parts == CYCLESCOPE_MOST_PARTS || (loop->passed >= loop->all && loop->parts >= 5)) {
            cyclescope_loop_end(loop);
            return 0;
        }
    }
    loop->iterations = loop->each;
    loop->complete = 0;
    /* The call that reads a thread's processor time may end with a switch to another thread
       (Linux), so elapsed time is read after it here, and before it at the end. */
    loop->thread = cyclescope_thread();
    loop->wall = cyclescope_wall();
    return 1;
}

CYCLESCOPE_INLINE int cyclescope_loop_goes_on(struct cyclescope_loop *loop)
{
    const uint64_t now = cyclescope_lfence_rdtsc_lfence_end();

    if (!cyclescope_loop_turn(loop, now))
        return 0;
    loop->started = cyclescope_lfence_rdtsc_lfence_start();
    return 1;
}

/* Notes that a part ran to its end, and ends it. */
CYCLESCOPE_INLINE int cyclescope_loop_complete(struct cyclescope_loop *loop)
{
    loop->complete = 1;
    return 0;
}

#endif
