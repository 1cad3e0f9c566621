//! The user-mode executor on this machine: it measures, and it survives every snippet.

mod faults;
mod figures;
mod lifetime;
mod narrow_code;
mod support;

use support::*;

#[test]
fn imul_takes_as_long_as_in_the_ruler() {
    let mut user = spawn();
    assert_measures(&mut user, "nothing");
}
