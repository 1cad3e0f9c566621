//! The functions in regions of the crate `clock`: prints their names, core cycles, no scatter, and the ends of
//! the interval.

use cyclescope_accuracy::timed_functions;
use cyclescope_clock::{Region, hide, keep, report};

/// Executions of a region.
const EXECUTIONS: u32 = 20_000;

fn main() {
    for function in timed_functions() {
        let region = Region::new(function.name);
        function.write_alone_reference();
        let mut value = 3;
        for _ in 0..EXECUTIONS {
            let _timed = region.begin();
            value = (function.run)(hide(value));
            keep(value);
        }
        function.write_alone_reference();
    }
    for row in report().rows {
        let [low, high] = row.cycles.interval;
        println!("{} {:.3} - {:.3} {:.3}", row.name, row.cycles.value.0, low.0, high.0);
    }
}
