// Chains of 50 and of 150 multiplications, in core cycles:
// c++ -O2 -I ../../include multiplications.cc -lbenchmark -lpthread -o multiplications && ./multiplications
#include "cyclescope_benchmark.h" // the first line of three, in place of <benchmark/benchmark.h>

static void multiplications(benchmark::State &state)
{
    uint64_t value = 3;
    const int64_t number = state.range(0);

    CYCLESCOPE_BENCHMARK(state) // the second, in place of for (auto _ : state)
    {
        for (int64_t n = 0; n < number; n++)
            value *= value;
        CYCLESCOPE_KEEP(value);
    }
}
BENCHMARK(multiplications)->Arg(50)->Arg(150)->UseManualTime(); // the third
BENCHMARK_MAIN();
