//! The functions in the interface of divan.

use cyclescope_accuracy::{TimedFunction, timed_functions};
use divan::Bencher;

fn main() {
    divan::main();
}

#[divan::bench(args = timed_functions())]
fn cycles(bencher: Bencher, function: TimedFunction) {
    function.write_reference();
    let mut value = 3;
    bencher.bench_local(|| {
        value = (function.run)(value);
        value
    });
    function.write_reference();
}
