// The functions in Google Benchmark: in core cycles, and in its own time.
#include "cyclescope_benchmark.h"
#include "functions.h"
#include "reference.h"

int main(int count, char **arguments)
{
    prepare_functions();
    for (const timed_function &function : timed_functions) {
        const auto run = function.run;
        benchmark::RegisterBenchmark((std::string("cycles/") + function.name).c_str(), [run](benchmark::State &state) {
            uint64_t value = 3;
            CYCLESCOPE_BENCHMARK(state)
                value = run(value);
            CYCLESCOPE_KEEP(value);
        })->UseManualTime();
        benchmark::RegisterBenchmark((std::string("time/") + function.name).c_str(), [run](benchmark::State &state) {
            uint64_t value = 3;
            for (auto _ : state)
                value = run(value);
            CYCLESCOPE_KEEP(value);
        })->UseRealTime();
    }
    const auto write_references = [] {
        for (const timed_function &function : timed_functions)
            write_reference(function.run);
    };
    benchmark::Initialize(&count, arguments);
    write_references();
    benchmark::RunSpecifiedBenchmarks();
    write_references();
}
