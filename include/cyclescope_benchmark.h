/*
 * cyclescope_benchmark.h: core cycles in Google Benchmark, for C++11 and later with GCC or Clang
 *
 *     #include "cyclescope_benchmark.h"
 *
 *     static void parse(benchmark::State &state)
 *     {
 *         CYCLESCOPE_BENCHMARK(state) {                     // in place of `for (auto _ : state)`
 *             benchmark::DoNotOptimize(parsed(text));
 *         }
 *     }
 *     BENCHMARK(parse)->UseManualTime();
 *
 * The counter `core_cycles` has the core cycles of an iteration: the median over parts of about a millisecond, each beside a ruler, so that
 * the core's clock may move and other programs may run on the same CPU. With `UseManualTime` the column of the time, and what compares it, has
 * them too: a nanosecond there is a core cycle. Without it the time is Google Benchmark's, and the ruler is in it, a hundredth at most.
 *
 * Not for `PauseTiming`, whose pauses are counted. After `SkipWithError` leave the function by `return`.
 */
#ifndef CYCLESCOPE_BENCHMARK_H
#define CYCLESCOPE_BENCHMARK_H

#include "cyclescope.h"
#ifdef CYCLESCOPE_INTRINSICS
#error "cyclescope_benchmark.h needs GCC or Clang: there is no ruler without GNU assembly"
#endif
#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdio>
#include <vector>

#define CYCLESCOPE_BENCHMARK(state) \
    for (cyclescope::timed cyclescope_timed(state); cyclescope_timed.goes_on();) \
        for (benchmark::IterationCount cyclescope_left = cyclescope_timed.iterations(); cyclescope_left > 0; --cyclescope_left)

namespace cyclescope {

/* Measured once, at the first benchmark. What is wrong with this machine is told there. */
inline const cyclescope_calibration &calibrated()
{
    static const cyclescope_calibration found = [] {
        const cyclescope_calibration pair = cyclescope_calibrate();
        if (!pair.waits || !pair.rulers_agree)
            std::fprintf(stderr, "cyclescope: core cycles are in doubt: %s\n",
                pair.waits ? "the rulers disagree" : "readings do not wait for the code");
        return pair;
    }();
    return found;
}

/* What the thread ran for, beside the clock on the wall, in nanoseconds. */
struct ran {
    double wall, thread;

    /* Linux lets another thread run at the end of the call that tells what this one ran for, where it has to: the wall is read behind it
       before what is measured, and before it behind, so that the other one's time is not between them. */
    static ran before()
    {
        const double thread = of_thread();
        return {of_wall(), thread};
    }

    static ran behind()
    {
        const double wall = of_wall();
        return {wall, of_thread()};
    }

    /* The share of the time since then in which the thread ran. Both clocks differ by 2 µs at most (Zen 4, virtual machine). */
    double share_of(const ran &before) const
    {
        const double passed = wall - before.wall, done = thread - before.thread;
        return done > 0 && passed - done > 2000 + 1e-4 * passed ? done / passed : 1;
    }

private:
#if defined(__linux__)
    static double of(clockid_t clock)
    {
        timespec now = {};
        clock_gettime(clock, &now);
        return 1e9 * double(now.tv_sec) + double(now.tv_nsec);
    }
    static double of_thread() { return of(CLOCK_THREAD_CPUTIME_ID); }
    static double of_wall() { return of(CLOCK_MONOTONIC_RAW); }
#else
    static double of_thread() { return 0; }
    static double of_wall() { return 0; }
#endif
};

/* The iterations of a benchmark, in parts. */
class timed {
public:
    explicit timed(benchmark::State &state) : state_(state), left_(state.max_iterations), part_(0), next_(1), started_(0), ruler_(0) {}

    /* Ends the part that runs and begins the next one. */
    __attribute__((always_inline)) bool goes_on()
    {
        const uint64_t now = cyclescope_lfence_rdtsc_lfence_end();
        if (!turn(now))
            return false;
        started_ = cyclescope_lfence_rdtsc_lfence_start();
        return true;
    }

    benchmark::IterationCount iterations() const { return part_; }

private:
    /* Ticks of a part: about a millisecond. How many times as long as a reading of the ruler the benchmark goes on at least. */
    static constexpr double LONG = 2.5e6, RARE = 100;

    struct reading {
        double cycles; /* of an iteration */
        bool whole;    /* a part of full length */
    };

    __attribute__((noinline)) bool turn(uint64_t now)
    {
        const cyclescope_calibration &pair = calibrated();
        if (part_ == 0) {
            /* This starts Google Benchmark's timers. */
            if (!state_.KeepRunningBatch(left_))
                return false;
            ruler(pair);
        } else {
            end(pair, now);
        }
        if (left_ == 0) {
            tell();
            return state_.KeepRunningBatch(1);
        }
        part_ = std::min(left_, next_);
        ran_ = ran::before();
        return true;
    }

    void ruler(const cyclescope_calibration &pair)
    {
        const uint64_t began = cyclescope_lfence_rdtsc_lfence_start();
        scale_ = cyclescope_scale_now(&pair);
        const uint64_t ended = cyclescope_lfence_rdtsc_lfence_end();
        ruler_ = ended + uint64_t(RARE * double(ended - began));
    }

    void end(const cyclescope_calibration &pair, uint64_t now)
    {
        const double ticks = double(now - started_) * ran::behind().share_of(ran_);
        const cyclescope_scale before = scale_;
        if (now > ruler_)
            ruler(pair);
        readings_.push_back({cyclescope_cycles(&pair, before, scale_, ticks) / double(part_), ticks > LONG / 2});
        left_ -= part_;
        if (ticks < LONG / 2)
            next_ = 2 * part_;
    }

    /* The median of the parts of full length, of all where there are none. */
    void tell()
    {
        const bool whole = std::any_of(readings_.begin(), readings_.end(), [](const reading &part) { return part.whole; });
        std::vector<double> cycles;
        for (const reading &part : readings_)
            if (part.whole == whole)
                cycles.push_back(part.cycles);
        const auto middle = cycles.begin() + std::ptrdiff_t(cycles.size() / 2);
        std::nth_element(cycles.begin(), middle, cycles.end());
        const double all = *middle * double(state_.max_iterations);
        state_.counters["core_cycles"] = benchmark::Counter(all, benchmark::Counter::kAvgIterations);
        state_.SetIterationTime(all / 1e9);
    }

    benchmark::State &state_;
    benchmark::IterationCount left_, part_, next_;
    uint64_t started_, ruler_;
    cyclescope_scale scale_ = {};
    ran ran_ = ran();
    std::vector<reading> readings_;
};

} /* namespace cyclescope */

#endif
