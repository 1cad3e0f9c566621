//! The functions in Criterion: in core cycles, or in its own time if `ACCURACY_TIME` is set.

use criterion::Criterion;
use criterion::measurement::Measurement;
use cyclescope_accuracy::timed_functions;
use cyclescope_criterion::CoreCycles;

fn run_all<M: Measurement + 'static>(mut criterion: Criterion<M>) {
    for function in timed_functions() {
        function.write_reference();
        criterion.bench_function(function.name, |bencher| {
            let mut value = 3;
            bencher.iter(|| {
                value = (function.run)(value);
                value
            });
        });
        function.write_reference();
    }
    criterion.final_summary();
}

fn main() {
    let criterion = Criterion::default();
    match std::env::var_os("ACCURACY_TIME") {
        Some(_) => run_all(criterion.configure_from_args()),
        None => run_all(criterion.with_measurement(CoreCycles::new()).configure_from_args()),
    }
}
