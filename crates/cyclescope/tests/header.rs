//! The header for users' programs: compiled strictly as C and C++, and its example run.

use std::arch::x86_64::__cpuid;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-m64"];

/// Compiles the example; nothing where there is no such compiler with its libraries.
fn built(folder: &Path, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    let empty = folder.join("empty.c");
    std::fs::write(&empty, "#include <stdio.h>\nint main(void) { return 0; }\n").expect("a file");
    let tried = Command::new(compiler).args(options).arg(&empty).arg("-o").arg(folder.join("empty")).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        cyclescope_skipped::report_left_out(format_args!("no {compiler} with its libraries"));
        return None;
    }
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let program = folder.join("example");
    let mut command = Command::new(compiler);
    command.args(STRICT).args(options).arg("-I").arg(&include).arg(include.join("example.c"));
    let output = command.arg("-o").arg(&program).output().expect("a compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{compiler} {options:?}: {said}");
    Some(program)
}

#[test]
fn compilers_take_the_header_and_it_counts_core_cycles() {
    let folder = Folder(std::env::temp_dir().join(format!("cyclescope-header-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    for (compiler, languages) in [
        ("gcc", &["c99", "c11", "gnu17"][..]),
        ("clang", &["c99", "c11"]),
        ("g++", &["c++11", "c++17", "c++20"]),
        ("clang++", &["c++17"]),
    ] {
        for language in languages {
            for level in ["-O0", "-O2"] {
                let standard = format!("-std={language}");
                let mut options = vec![level, &*standard];
                if language.contains("++") {
                    options.extend(["-x", "c++"]);
                }
                let Some(program) = built(&folder.0, compiler, &options) else { continue };
                // Without optimisation the loop is more than its multiplications.
                if level == "-O2" {
                    counts(&program);
                }
            }
        }
    }
}

#[test]
fn the_header_says_of_the_cpu_what_cpuid_does() {
    let folder = Folder(std::env::temp_dir().join(format!("cyclescope-cpuid-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let [source, program] = ["told.c", "told"].map(|name| folder.0.join(name));
    let text = "#include \"cyclescope.h\"\n#include <stdio.h>\n\
        int main(void) { return printf(\"%d %d %d\", cyclescope_has_rdtscp(), cyclescope_has_invariant_tsc(), \
        cyclescope_shown(0xfffffff0u, 0)) < 0; }\n";
    std::fs::write(&source, text).expect("a file");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let built = Command::new("cc").arg("-I").arg(&include).arg(&source).arg("-o").arg(&program).status();
    if !built.is_ok_and(|status| status.success()) {
        return cyclescope_skipped::report_left_out(format_args!("no cc with its libraries"));
    }
    let said = Command::new(&program).output().expect("it runs").stdout;
    let told = |leaf: u32, bit: u32| __cpuid(0x8000_0000).eax >= leaf && __cpuid(leaf).edx >> bit & 1 == 1;
    let expected = format!("{} {} 0", u8::from(told(0x8000_0001, 27)), u8::from(told(0x8000_0007, 8)));
    assert_eq!(String::from_utf8_lossy(&said), expected);
}

/// Shares of chains, measured in one process and in turns: no number of a machine.
#[test]
fn a_region_has_all_of_what_is_in_it_and_nothing_of_what_is_before_it() {
    let folder = Folder(std::env::temp_dir().join(format!("cyclescope-fences-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let program = folder.0.join("fences");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = Command::new("cc")
        .args(["-O2", "-I"])
        .args([here.join("../../include"), here.join("tests/data/fences.c")])
        .arg("-o")
        .arg(&program)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return cyclescope_skipped::report_left_out(format_args!("no cc with its libraries"));
    }
    let said = Command::new(&program).output().expect("it runs").stdout;
    let said = String::from_utf8_lossy(&said);
    let ticks: Vec<f64> = said.split_whitespace().flat_map(str::parse).collect();
    let [long, before, short, within] = ticks[..] else { panic!("{said}") };
    // Twenty multiplications that wait for each other take more, unless the reading does not wait for them.
    if short < 20.0 {
        return cyclescope_skipped::report_left_out(format_args!("LFENCE does not wait: {said}"));
    }
    assert!(before.abs() < long / 4.0, "{before} of {long} ticks before the region are in it");
    assert!((within - short).abs() < short / 3.0, "{within} of {short} ticks in the region are in it");
}

/// A multiplication takes a whole number of additions, where rulers agree.
fn counts(program: &Path) {
    let output = Command::new(program).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("no core cycles here") || !output.status.success() {
        return cyclescope_skipped::report_left_out(format_args!("the core's clock, or LFENCE: {}", said.trim()));
    }
    let numbers: Vec<f64> = said
        .split(|other: char| !other.is_ascii_digit() && !['.', '-'].contains(&other))
        .flat_map(str::parse)
        .collect();
    let [_, cycles, low, high] = numbers[..] else { panic!("{said}") };
    let nearest = (cycles / 50.0).round() * 50.0;
    assert!(low - 0.05 * nearest < nearest && nearest < high + 0.05 * nearest && nearest > 0.0, "{said}");
}
