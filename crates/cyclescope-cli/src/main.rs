//! The cyclescope command line.

fn main() {
    println!("cyclescope {}", env!("CARGO_PKG_VERSION"));
}
