/*
 * cyclescope_benchmark.h: core cycles in Google Benchmark, for C++11 and later with GCC or
 * Clang
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
 * The counter `core_cycles` has the core cycles of an iteration. It is the median over parts of
 * about a tenth of a millisecond, each measured together with a ruler: the core's clock may
 * change, and other programs may run on the same CPU. With `UseManualTime` the time column, and
 * everything that compares it, has core cycles too: one nanosecond there is one core cycle.
 * Without it the time is Google Benchmark's, and includes the ruler, a hundredth at most.
 *
 * Under `cyclescope ab` (the variable CYCLESCOPE_AB) each benchmark is measured for as long as
 * that requests, and the parts are samples. Google Benchmark then reports an error for each, so
 * that it does not continue. Samples have the benchmark's name if `State::name` gives it
 * (version 1.8), else the function's, and a number in the order of the calls:
 * "multiplications#2" is the second benchmark of that function.
 *
 * Not for `PauseTiming`, whose pauses are counted. After `SkipWithError` leave the function by
 * `return`.
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
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#define CYCLESCOPE_BENCHMARK(state) \
    for (cyclescope::timed cyclescope_timed(state, __func__); cyclescope_timed.goes_on();) \
        for (benchmark::IterationCount cyclescope_left = cyclescope_timed.iterations(); cyclescope_left > 0; --cyclescope_left)

namespace cyclescope {

/* Moves later allocations by a part of a page, a different one in each run of `cyclescope ab`:
 * the system moves the heap only by whole pages. It runs before `main`, while the heap has no
 * freed memory. */
inline bool move_heap()
{
    const char *layout = std::getenv("CYCLESCOPE_AB_LAYOUT");
    void *volatile block = layout ? std::malloc(std::strlen(layout) + 1) : nullptr;
    return block;
}
static const bool heap_moved __attribute__((unused)) = move_heap();

/* Measured once, at the first benchmark, which also reports problems of this machine. */
inline const cyclescope_calibration &calibrated()
{
    static const cyclescope_calibration found = [] {
        const cyclescope_calibration pair = cyclescope_calibrate();
        if (!pair.waits || !pair.rulers_agree || !pair.fixed_rate)
            std::fprintf(stderr, "cyclescope: core cycles are in doubt: %s\n",
                !pair.waits ? "readings do not wait for the code"
                : pair.rulers_agree ? "this CPU's TSC may not count at a fixed rate"
                                    : "the rulers disagree");
        return pair;
    }();
    return found;
}

/* The thread's processor time and the elapsed time, in nanoseconds. */
struct ran {
    double wall, thread;

    /* The call that reads a thread's processor time may end with a switch to another thread
     * (Linux). So elapsed time is read after it before the measured code, and before it
     * afterwards: another thread's time is never between them. */
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

    /* The share of the time since then in which the thread ran. Both clocks differ by at most 2
     * µs (Zen 4, virtual machine). */
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

/* The file of `cyclescope ab`, one line of JSON per sample: docs/reference.md, ab. */
class samples {
public:
    samples(const benchmark::State &state, const char *function) : path_(std::getenv("CYCLESCOPE_AB"))
    {
        if (wanted() && state.threads() == 1)
            name_ = escaped(name_of(state, function, 0).substr(0, LONGEST));
    }

    bool wanted() const { return path_ && *path_; }

    /* Requested duration of the benchmark, in milliseconds. */
    static double time()
    {
        const char *wish = std::getenv("CYCLESCOPE_AB_MS");
        const double time = wish ? std::atof(wish) : 0;
        return time > 0 ? time : WISHED;
    }

    /* Whether it could be written. */
    bool write(benchmark::IterationCount iterations, double cycles) const
    {
        std::FILE *file = std::fopen(path_, "a");
        if (!file)
            return false;
        /* The line is shorter than the file's buffer, so one system call writes it at the end. */
        std::fprintf(file, "{\"name\":\"%s\",\"iterations\":%llu,\"cycles\":%.17g}\n", name_.c_str(),
            static_cast<unsigned long long>(iterations), cycles);
        return std::fclose(file) == 0;
    }

private:
    /* Longest name that the protocol allows, and the duration in milliseconds if it requests
     * none: as in crates/clock/src/ab.rs. */
    static constexpr std::size_t LONGEST = 200;
    static constexpr double WISHED = 10;

    template <typename State> static auto name_of(const State &state, const char *, int) -> decltype(std::string(state.name()))
    {
        return state.name();
    }

    /* In order: Google Benchmark runs benchmarks in sequence. */
    template <typename State> static std::string name_of(const State &, const char *function, long)
    {
        static std::map<std::string, int> calls;
        return std::string(function) + "#" + std::to_string(++calls[function]);
    }

    /* Escaped as in a JSON string (RFC 8259, 7). */
    static std::string escaped(const std::string &text)
    {
        std::string escaped;
        for (const char c : text) {
            if (c == '"' || c == '\\')
                escaped += '\\';
            escaped += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
        }
        return escaped;
    }

    const char *path_;
    std::string name_;
};

/* The iterations of a benchmark, in parts. */
class timed {
public:
    timed(benchmark::State &state, const char *function)
        : state_(state), samples_(state, function), left_(state.max_iterations), part_(0), next_(1), started_(0), ruler_(0)
    {
        if (samples_.wanted()) {
            all_ = samples_.time() * MILLISECOND;
            long_ = all_ / SHORTLY;
            left_ = std::numeric_limits<benchmark::IterationCount>::max();
        }
    }

    /* Ends the current part and begins the next one. */
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
    /* MILLISECOND: ticks in about a millisecond, as TSCs count at 2 to 4 GHz. PART: ticks of a
     * part, shorter than the time between two timer interrupts, so that most parts have none.
     * RARE: the benchmark runs at least this many times as long as a reading of the ruler, so
     * that the ruler takes a hundredth of the time. SHORTLY: least number of parts in a run of
     * `cyclescope ab` with short iterations, which takes the lower quartile of 5 to 50. */
    static constexpr double MILLISECOND = 2.5e6, PART = MILLISECOND / 10, RARE = 100, SHORTLY = 20;

    struct reading {
        double cycles; /* of an iteration */
        benchmark::IterationCount iterations;
        bool whole;    /* whether the part has full length */
    };

    __attribute__((noinline)) bool turn(uint64_t now)
    {
        const cyclescope_calibration &pair = calibrated();
        if (samples_.wanted() && state_.threads() > 1) {
            state_.SkipWithError("cyclescope ab compares benchmarks of one thread");
            return false;
        }
        if (part_ == 0) {
            /* This starts Google Benchmark's timers. */
            if (!samples_.wanted() && !state_.KeepRunningBatch(left_))
                return false;
            ruler(pair);
        } else {
            end(pair, now);
        }
        if (samples_.wanted() && passed_ >= all_) {
            write();
            return false;
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
        const bool whole = ticks > long_ / 2;
        readings_.push_back({cyclescope_cycles(before, scale_, ticks) / double(part_), part_, whole});
        left_ -= part_;
        if (whole)
            passed_ += ticks;
        else
            next_ = 2 * part_;
    }

    /* Writes the parts of full length for `cyclescope ab`, and makes Google Benchmark continue
     * with the next benchmark. */
    void write()
    {
        for (const reading &part : readings_)
            if (part.whole && part.cycles > 0 && !samples_.write(part.iterations, part.cycles * double(part.iterations))) {
                std::perror("cyclescope: a sample cannot be written");
                std::exit(1);
            }
        state_.SkipWithError("no error: measured for cyclescope ab");
    }

    /* The median of the parts of full length; of all parts if none has it. */
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
    samples samples_;
    /* Ticks of a part, ticks that `cyclescope ab` requests in total, and ticks so far. */
    double long_ = PART, all_ = 0, passed_ = 0;
    benchmark::IterationCount left_, part_, next_;
    uint64_t started_, ruler_;
    cyclescope_scale scale_ = {};
    ran ran_ = ran();
    std::vector<reading> readings_;
};

} /* namespace cyclescope */

#endif
