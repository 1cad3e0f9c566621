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
 * `BENCHMARK_MAIN()` is another one here: where `cyclescope ab` runs the program, it measures each benchmark shortly and writes samples of it.
 * In a `main` of your own call `cyclescope::run_benchmarks(argc, argv)` instead of what Google Benchmark has.
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
#include <cstdlib>
#include <string>
#include <vector>
#if defined(__linux__)
#include <sys/resource.h>
#endif

#define CYCLESCOPE_BENCHMARK(state) \
    for (cyclescope::timed cyclescope_timed(state); cyclescope_timed.goes_on();) \
        for (benchmark::IterationCount cyclescope_left = cyclescope_timed.iterations(); cyclescope_left > 0; --cyclescope_left)

#undef BENCHMARK_MAIN
#define BENCHMARK_MAIN() \
    int main(int argc, char **argv) \
    { \
        return cyclescope::run_benchmarks(argc, argv); \
    } \
    int main(int, char **)

namespace cyclescope {

/* Core cycles of the iterations of a part. */
struct sample {
    benchmark::IterationCount iterations;
    double cycles;
};

/* Those of the benchmark that ended last: only what reports it knows its name. */
inline std::vector<sample> &last()
{
    static std::vector<sample> samples;
    return samples;
}

/* Measured once, at the first benchmark. What is wrong with this machine is told there. */
inline const cyclescope_calibration &calibrated()
{
    static const cyclescope_calibration found = [] {
        const cyclescope_calibration pair = cyclescope_calibrate();
        const auto doubt = [](bool holds, const char *why) {
            if (holds)
                std::fprintf(stderr, "cyclescope: core cycles are in doubt: %s\n", why);
        };
        doubt(!pair.fixed_rate, "this CPU's TSC may not count at a fixed rate");
        doubt(!pair.waits, "readings do not wait for the code");
        doubt(!pair.rulers_agree, "the rulers disagree");
        return pair;
    }();
    return found;
}

/* What the thread ran for, beside the clock on the wall, in nanoseconds, and how often it gave its CPU to another one. */
struct ran {
    double wall, thread;
    long switches;

    /* Linux lets another thread run at the end of the call that tells what this one ran for, where it has to: the wall is read behind it
       before what is measured, and before it behind, so that the other one's time is not between them. */
    static ran before()
    {
        const long switches = of_switches();
        const double thread = of_thread();
        return {of_wall(), thread, switches};
    }

    static ran behind()
    {
        const double wall = of_wall();
        const double thread = of_thread();
        return {wall, thread, of_switches()};
    }

    /* The share of the time since then in which the thread ran: all of it where no other one did, whatever the clocks say. Both clocks
       differ by 2 µs at most (Zen 4, virtual machine). */
    double share_of(const ran &before) const
    {
        const double passed = wall - before.wall, done = thread - before.thread;
        return switches != before.switches && done > 0 && passed - done > 2000 + 1e-4 * passed ? done / passed : 1;
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
    static long of_switches()
    {
        rusage usage = {};
        /* Where the call fails there was no switch. */
        getrusage(RUSAGE_THREAD, &usage);
        return usage.ru_nvcsw + usage.ru_nivcsw;
    }
#else
    static long of_switches() { return 0; }
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
        benchmark::IterationCount iterations;
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
        readings_.push_back({cyclescope_cycles(&pair, before, scale_, ticks) / double(part_), ticks > LONG / 2, part_});
        left_ -= part_;
        if (ticks < LONG / 2)
            next_ = 2 * part_;
    }

    /* The median of the parts of full length, of all where there are none. */
    void tell()
    {
        const bool whole = std::any_of(readings_.begin(), readings_.end(), [](const reading &part) { return part.whole; });
        std::vector<double> cycles;
        last().clear();
        for (const reading &part : readings_)
            if (part.whole == whole) {
                cycles.push_back(part.cycles);
                last().push_back({part.iterations, part.cycles * double(part.iterations)});
            }
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
    ran ran_ = {0, 0, 0};
    std::vector<reading> readings_;
};

/* Writes samples for `cyclescope ab`: the section `ab` of docs/reference.md has the protocol. */
class sample_reporter : public benchmark::BenchmarkReporter {
public:
    explicit sample_reporter(const char *path) : file_(std::fopen(path, "ab")), written_(file_ != nullptr) {}
    ~sample_reporter() override { closed(); }
    sample_reporter(const sample_reporter &) = delete;
    sample_reporter &operator=(const sample_reporter &) = delete;

    bool ReportContext(const Context &) override { return true; }

    void ReportRuns(const std::vector<Run> &runs) override
    {
        for (const Run &run : runs)
            if (run.run_type == Run::RT_Iteration && run.counters.count("core_cycles") != 0)
                for (const sample &each : last())
                    write(run.benchmark_name(), each);
        last().clear();
    }

    /* Whether all samples are in the file. */
    bool closed()
    {
        if (file_ != nullptr && std::fclose(file_) != 0)
            written_ = false;
        file_ = nullptr;
        return written_;
    }

private:
    void write(const std::string &name, const sample &each)
    {
        char took[96];

        /* Of what takes no longer than the readings nothing is known. */
        if (file_ == nullptr || !(each.cycles > 0))
            return;
        std::snprintf(took, sizeof took, "\",\"iterations\":%lld,\"cycles\":%.17g}\n", static_cast<long long>(each.iterations), each.cycles);
        const std::string line = "{\"name\":\"" + escaped(name) + took;
        /* A line is one call of the system. */
        if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
            written_ = false;
    }

    /* As JSON has it between quotation marks (RFC 8259, 7). */
    static std::string escaped(const std::string &text)
    {
        std::string escaped;
        char code[8];

        for (const char c : text) {
            if (c == '"' || c == '\\')
                escaped += '\\';
            if (static_cast<unsigned char>(c) < ' ') {
                std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
                escaped += code;
            } else {
                escaped += c;
            }
        }
        return escaped;
    }

    std::FILE *file_;
    bool written_;
};

/* Runs what the arguments of the command line name; returns the exit code. */
inline int run_benchmarks(int argc, char **argv)
{
    const char *path = std::getenv("CYCLESCOPE_AB"), *wish = std::getenv("CYCLESCOPE_AB_MS");
    const bool compared = path != nullptr && *path != '\0';
    std::vector<char *> arguments(argv, argv + argc);
    std::string shortly;

    if (compared) {
        const double milliseconds = wish != nullptr ? std::atof(wish) : 0;

        /* The manual time has a nanosecond for each cycle: three, for a core of 3 GHz. Ten milliseconds where there is no wish, as the crate
           cyclescope-clock has it. */
        shortly = "--benchmark_min_time=" + std::to_string(3e-3 * (milliseconds > 0 ? milliseconds : 10));
        arguments.push_back(&shortly[0]);
    }
    argc = int(arguments.size());
    arguments.push_back(nullptr);
    benchmark::Initialize(&argc, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(argc, arguments.data()))
        return 1;
    if (compared) {
        sample_reporter samples(path);

        benchmark::RunSpecifiedBenchmarks(&samples);
        if (!samples.closed()) {
            std::fprintf(stderr, "cyclescope: samples could not be written to %s\n", path);
            return 1;
        }
    } else {
        benchmark::RunSpecifiedBenchmarks();
    }
    benchmark::Shutdown();
    return 0;
}

} /* namespace cyclescope */

#endif
