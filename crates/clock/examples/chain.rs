//! Times fifty dependent multiplications within a program.

use cyclescope_clock::{Region, hide, keep};

static CHAIN: Region = Region::new("50 multiplications");
static AROUND: Region = Region::new("two of them");

fn chain(value: u64) -> u64 {
    let _timed = CHAIN.begin();
    let product = (0..50).fold(hide(value), |value, _| value.wrapping_mul(value));
    // Completes the product before the region ends.
    keep(product);
    product
}

fn main() {
    let _report = cyclescope_clock::report_at_end();
    let mut value = 3;
    for _ in 0..100_000 {
        let _timed = AROUND.begin();
        value = chain(chain(value));
    }
}
