//! Compiles the functions, the same ones for Rust, C and C++, and their reference.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn run(command: &mut Command) {
    assert!(command.status().is_ok_and(|status| status.success()), "{command:?} failed");
}

fn main() {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let library = folder.join("libfunctions.a");
    for name in ["functions", "reference"] {
        let (source, object) = (format!("{name}.c"), folder.join(name).with_extension("o"));
        run(Command::new("cc").args(["-O2", "-c", &source, "-o"]).arg(&object));
        run(Command::new("ar").arg("crs").args([&library, &object]));
        println!("cargo::rerun-if-changed={source}");
        println!("cargo::rerun-if-changed={name}.h");
    }
    println!("cargo::rustc-link-search=native={}", folder.display());
}
