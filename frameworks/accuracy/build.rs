//! Compiles the functions, the same ones for Rust, C and C++.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn run(command: &mut Command) {
    assert!(command.status().is_ok_and(|status| status.success()), "{command:?} failed");
}

fn main() {
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let (object, library) = (folder.join("functions.o"), folder.join("libfunctions.a"));
    run(Command::new("cc").args(["-O2", "-c", "functions.c", "-o"]).arg(&object));
    run(Command::new("ar").arg("crs").args([&library, &object]));
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rerun-if-changed=functions.c");
}
