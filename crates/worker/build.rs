//! Compiles the worker's executable: this library without the standard library, and
//! `image/main.rs`, linked to a fixed address.

use std::path::PathBuf;
use std::process::Command;

/// Options for compiling both parts.
const COMPILER_OPTIONS: [&str; 8] = [
    "--edition=2024",
    "-Copt-level=2",
    "-Cpanic=abort",
    "-Crelocation-model=static",
    "-Ccodegen-units=1",
    "-Coverflow-checks=off",
    "-Cdebug-assertions=off",
    "--cap-lints=warn",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=image");
    println!("cargo:rustc-check-cfg=cfg(image)");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        // There a worker is another process of the calling program.
        return;
    }
    let variable_path = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let out = variable_path("OUT_DIR").expect("cargo names it");
    let compiler = || {
        let mut command = Command::new(variable_path("RUSTC").expect("cargo names it"));
        command.args(COMPILER_OPTIONS).arg("--target").arg(variable_path("TARGET").expect("cargo names it"));
        if let Some(linker) = variable_path("RUSTC_LINKER") {
            command.arg("-C").arg(format!("linker={}", linker.display()));
        }
        command
    };
    let library = out.join("libcyclescope_worker.rlib");
    let mut command = compiler();
    command.args(["--crate-type=rlib", "--crate-name=cyclescope_worker", "--cfg=image", "src/lib.rs", "-o"]);
    run_compiler(command.arg(&library));
    let mut command = compiler();
    command.args(["--crate-type=bin", "--crate-name=image", "image/main.rs"]);
    command.arg("--extern").arg(format!("cyclescope_worker={}", library.display()));
    let script = std::path::absolute("image/link.ld").expect("the current folder has a name");
    for option in ["-nostdlib", "-nostartfiles", "-static", "-no-pie", "-Wl,--build-id=none", "-Wl,-z,noexecstack"] {
        command.arg(format!("-Clink-arg={option}"));
    }
    command.arg(format!("-Clink-arg=-Wl,-T,{}", script.display())).arg("-Cstrip=symbols");
    run_compiler(command.arg("-o").arg(out.join("worker")));
}

fn run_compiler(command: &mut Command) {
    let status = command.status().expect("the Rust compiler runs");
    assert!(status.success(), "{command:?} failed: {status}");
}
