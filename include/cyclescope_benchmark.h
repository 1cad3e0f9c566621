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
 * Without it the time is Google Benchmark's, without the time of the ruler.
 *
 * Set-up in the loop is left out between two macros. They take the place of `PauseTiming` and
 * `ResumeTiming`, which core cycles do not see: with those a benchmark ends with an error.
 *
 *         CYCLESCOPE_BENCHMARK(state) {
 *             CYCLESCOPE_PAUSE();
 *             std::vector<int> numbers = shuffled();
 *             CYCLESCOPE_RESUME();
 *             std::sort(numbers.begin(), numbers.end());
 *         }
 *
 * With several threads the counter and the time are those of an iteration of one thread.
 *
 * Under `cyclescope ab` (the variable CYCLESCOPE_AB) each benchmark is measured for as long as
 * that requests, and the parts are samples. Google Benchmark then reports an error for each, so
 * that it does not continue. The library tells a benchmark its function's name, or from version
 * 1.8 on that of `->Name`, and not its arguments. So samples have a number in the order of the
 * calls too: "multiplications#2" is the second benchmark of that name.
 *
 * The loop has to run to its end. `break` and `return` in it are for after `SkipWithError`;
 * without it the benchmark ends with an error too, and with no sample.
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
#include <type_traits>
#include <vector>

#define CYCLESCOPE_BENCHMARK(state) \
    for (cyclescope::iteration cyclescope_iteration __attribute__((unused)) : cyclescope::timed(state, __func__))

/* In the loop: leave out what runs between the two. */
#define CYCLESCOPE_PAUSE() cyclescope_iteration.benchmark->pause()
#define CYCLESCOPE_RESUME() cyclescope_iteration.benchmark->resume()

/* Google Benchmark's own pause ends a benchmark of this header with an error. Other benchmarks may
 * use it. The macro's name in its own expansion is the function. */
#define PauseTiming() PauseTiming(), ::cyclescope::timed::notice_pause()

namespace cyclescope {

/* Google Benchmark divides times by the number of threads up to version 1.8; the function below
 * came with 1.9. Where it exists, it is found through the argument's namespace and fits better. */
struct divides_by_threads {};
template <typename Namespace> struct any_pointer {
    template <typename Pointed> operator Pointed *() const;
};
divides_by_threads RegisterProfilerManager(...);
static constexpr bool times_are_divided =
    std::is_same<decltype(RegisterProfilerManager(any_pointer<benchmark::State>())), divides_by_threads>::value;

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
        if (wanted() && state.thread_index() == 0) {
            static std::map<std::string, int> calls;
            const std::string name = name_of(state, function, 0);
            const std::string number = "#" + std::to_string(++calls[name]);
            name_ = escaped(name.substr(0, LONGEST - number.size()) + number);
            /* An empty line tells `cyclescope ab` that samples follow. If none does, one is missing. */
            append("\n");
        }
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
        char numbers[100];
        std::snprintf(numbers, sizeof numbers, "\",\"iterations\":%llu,\"cycles\":%.17g}\n",
            static_cast<unsigned long long>(iterations), cycles);
        return append("{\"name\":\"" + name_ + numbers);
    }

    /* Tells `cyclescope ab` why there are no samples. */
    void write_error(const char *why) const
    {
        if (!name_.empty())
            append("{\"name\":\"" + name_ + "\",\"error\":\"" + escaped(why) + "\"}\n");
    }

private:
    /* Longest name that the protocol allows, and the duration in milliseconds if it requests
     * none: as in crates/clock/src/ab.rs. */
    static constexpr std::size_t LONGEST = 200;
    static constexpr double WISHED = 10;

    /* Whether it could be appended. A line is shorter than the file's buffer, so one system call
     * writes it at the end. */
    bool append(const std::string &line) const
    {
        std::FILE *file = std::fopen(path_, "a");
        if (!file)
            return false;
        std::fputs(line.c_str(), file);
        return std::fclose(file) == 0;
    }

    template <typename State> static auto name_of(const State &state, const char *, int) -> decltype(std::string(state.name()))
    {
        return state.name();
    }

    template <typename State> static std::string name_of(const State &, const char *function, long) { return function; }

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

class timed;

/* One iteration: access to the benchmark for the macros. */
struct iteration {
    timed *benchmark;
};

/* The iterations of a benchmark, in parts. */
class timed {
public:
    /* Counts the iterations of a part in a register. */
    struct iterator {
        timed *benchmark;
        benchmark::IterationCount left;

        __attribute__((always_inline)) bool operator!=(const iterator &)
        {
            if (left == 0)
                left = benchmark->next_part();
            return left != 0;
        }
        iterator &operator++()
        {
            --left;
            return *this;
        }
        iteration operator*() const { return {benchmark}; }
    };

    timed(benchmark::State &state, const char *function)
        : state_(state), samples_(state, function), left_(state.max_iterations), part_(0), next_(1), started_(0), ruler_(0)
    {
        if (samples_.wanted()) {
            all_ = samples_.time() * MILLISECOND;
            long_ = all_ / SHORTLY;
            left_ = std::numeric_limits<benchmark::IterationCount>::max();
        }
        pauses() = 0;
        running() = true;
    }

    /* Only here the loop was left early. The first error of a benchmark is the one that counts. */
    ~timed()
    {
        running() = false;
        if (!done_)
            refuse("the loop was left before its last iteration");
    }

    timed(const timed &) = delete;
    timed &operator=(const timed &) = delete;

    iterator begin() { return {this, 0}; }
    iterator end() { return {this, 0}; }

    /* Ends the current part and begins the next one; returns its iterations, at the end 0. */
    __attribute__((always_inline)) benchmark::IterationCount next_part()
    {
        const benchmark::IterationCount part = turn(cyclescope_lfence_rdtsc_lfence_end());
        started_ = part_start_ = cyclescope_lfence_rdtsc_lfence_start();
        return part;
    }

    __attribute__((always_inline)) void pause()
    {
        const uint64_t now = cyclescope_lfence_rdtsc_lfence_end();
        counted_ += now - started_;
        ++pieces_;
        paused_ = true;
    }

    __attribute__((always_inline)) void resume()
    {
        paused_ = false;
        started_ = cyclescope_lfence_rdtsc_lfence_start();
    }

    static void notice_pause() { pauses() += running(); }

private:
    /* MILLISECOND: ticks in about a millisecond, as TSCs count at 2 to 4 GHz. PART: ticks of a
     * part, shorter than the time between two timer interrupts, so that most parts have none.
     * RULED: ticks after which the ruler is read again, three times as long as it takes. The core's
     * clock may change every few milliseconds (Raptor Cove). This is not a multiple of the time that
     * the reading took: another program may have run meanwhile. SHORTLY: least number of parts in
     * a run of `cyclescope ab` with short iterations, which takes the lower quartile of 5 to 50. */
    static constexpr double MILLISECOND = 2.5e6, PART = MILLISECOND / 10, RULED = 3 * PART, SHORTLY = 20;

    /* Whether a loop of this header runs on this thread, and pauses that it does not see. */
    static bool &running()
    {
        static thread_local bool running = false;
        return running;
    }
    static int &pauses()
    {
        static thread_local int pauses = 0;
        return pauses;
    }

    struct reading {
        double cycles; /* of an iteration */
        benchmark::IterationCount iterations;
        bool whole;    /* whether the part has full length */
    };

    __attribute__((noinline)) benchmark::IterationCount turn(uint64_t now)
    {
        const cyclescope_calibration &pair = calibrated();
        if (samples_.wanted() && state_.threads() > 1)
            return refuse("cyclescope ab compares benchmarks of one thread");
        if (pauses() > 0)
            return refuse("core cycles do not see PauseTiming: use CYCLESCOPE_PAUSE and CYCLESCOPE_RESUME");
        if (part_ == 0) {
            /* This starts Google Benchmark's timers. */
            if (!state_.KeepRunningBatch(samples_.wanted() ? 1 : left_))
                return finish();
            ruler(pair);
        } else {
            end(pair, now);
        }
        if (state_.error_occurred())
            return refuse("it ended with an error");
        if (samples_.wanted() && passed_ >= all_) {
            write();
            return finish();
        }
        if (left_ == 0) {
            tell();
            state_.KeepRunningBatch(1);
            return finish();
        }
        part_ = std::min(left_, next_);
        counted_ = 0;
        pieces_ = 0;
        paused_ = false;
        ran_ = ran::before();
        return part_;
    }

    benchmark::IterationCount finish()
    {
        done_ = true;
        return 0;
    }

    benchmark::IterationCount refuse(const char *why)
    {
        if (samples_.wanted())
            samples_.write_error(why);
        state_.SkipWithError(why);
        return finish();
    }

    void ruler(const cyclescope_calibration &pair)
    {
        /* In parentheses, so that it is not the macro for the benchmark. */
        const bool pauses = !state_.error_occurred();
        if (pauses)
            (state_.PauseTiming)();
        scale_ = cyclescope_scale_now(&pair);
        ruler_ = cyclescope_lfence_rdtsc_lfence_end() + uint64_t(RULED);
        if (pauses)
            state_.ResumeTiming();
    }

    void end(const cyclescope_calibration &pair, uint64_t now)
    {
        if (!paused_) {
            counted_ += now - started_;
            ++pieces_;
        }
        const double share = ran::behind().share_of(ran_);
        const double ticks = double(counted_) * share, passed = double(now - part_start_) * share;
        const cyclescope_scale before = scale_;
        if (now > ruler_)
            ruler(pair);
        /* Each piece between two pauses has its own pair of readings; the conversion removes one. */
        const double pairs = double(pieces_ - 1) * (before.pair + scale_.pair) / 2;
        const bool whole = passed > long_ / 2;
        readings_.push_back({cyclescope_cycles(before, scale_, ticks - pairs) / double(part_), part_, whole});
        left_ -= part_;
        if (whole)
            passed_ += passed;
        else
            next_ = 2 * part_;
    }

    /* Writes the parts of full length for `cyclescope ab`, and makes Google Benchmark continue
     * with the next benchmark. */
    void write()
    {
        bool written = false;
        for (const reading &part : readings_)
            if (part.whole && part.cycles > 0) {
                if (!samples_.write(part.iterations, part.cycles * double(part.iterations))) {
                    std::perror("cyclescope: a sample cannot be written");
                    std::exit(1);
                }
                written = true;
            }
        if (!written)
            samples_.write_error("it takes no longer than the readings around it");
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
        state_.SetIterationTime(all / 1e9 * (times_are_divided ? state_.threads() : 1));
    }

    benchmark::State &state_;
    samples samples_;
    /* Ticks of a part, ticks that `cyclescope ab` requests in total, and ticks so far. */
    double long_ = PART, all_ = 0, passed_ = 0;
    benchmark::IterationCount left_, part_, next_;
    /* Ticks at the start of the current piece and part, and at which the ruler is due. */
    uint64_t started_, part_start_ = 0, ruler_;
    /* Ticks of the part without pauses, and the number of pieces between these. */
    uint64_t counted_ = 0, pieces_ = 0;
    bool paused_ = false, done_ = false;
    cyclescope_scale scale_ = {};
    ran ran_ = ran();
    std::vector<reading> readings_;
};

} /* namespace cyclescope */

#endif
