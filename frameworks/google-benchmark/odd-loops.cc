// Loops that pause, end early or run on two threads. The test appends a benchmark that uses
// `shuffled`.
#include "cyclescope_benchmark.h"
#include <algorithm>
#include <vector>

static uint64_t multiply(uint64_t value, int number)
{
    for (int n = 0; n < number; n++) {
        value *= value;
        CYCLESCOPE_HIDE(value);
    }
    return value;
}

static void chain(benchmark::State &state)
{
    uint64_t value = 3;
    CYCLESCOPE_BENCHMARK(state) {
        value = multiply(value, 300);
        CYCLESCOPE_KEEP(value);
    }
}
BENCHMARK(chain)->UseManualTime();
BENCHMARK(chain)->Threads(2)->UseManualTime();

static void after_setup(benchmark::State &state)
{
    uint64_t value = 3;
    CYCLESCOPE_BENCHMARK(state) {
        CYCLESCOPE_PAUSE();
        value = multiply(value, 900);
        CYCLESCOPE_KEEP(value);
        CYCLESCOPE_RESUME();
        value = multiply(value, 300);
        CYCLESCOPE_KEEP(value);
    }
}
BENCHMARK(after_setup)->UseManualTime();

static void left(benchmark::State &state)
{
    int iterations = 0;
    CYCLESCOPE_BENCHMARK(state)
        if (++iterations == 5)
            break;
}
BENCHMARK(left)->UseManualTime();

static void skipped(benchmark::State &state)
{
    CYCLESCOPE_BENCHMARK(state) {
        state.SkipWithError("own reason");
        break;
    }
}
BENCHMARK(skipped)->UseManualTime();

static void google_pause(benchmark::State &state)
{
    CYCLESCOPE_BENCHMARK(state) {
        state.PauseTiming();
        state.ResumeTiming();
    }
}
BENCHMARK(google_pause)->UseManualTime();

static std::vector<int> shuffled()
{
    std::vector<int> numbers;
    for (int n = 0; n < 100; n++)
        numbers.push_back(n * 7919 % 101);
    return numbers;
}

BENCHMARK_MAIN();
