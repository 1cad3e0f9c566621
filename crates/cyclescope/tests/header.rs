//! The header for users' programs: compiled strictly as C and C++, and its example run.

use std::arch::x86_64::__cpuid;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-m64"];

/// Compiles the example; `None` if the compiler or its libraries are missing.
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
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && messages.is_empty(), "{compiler} {options:?}: {messages}");
    Some(program)
}

#[test]
fn the_header_compiles_and_counts_core_cycles() {
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
                // Without optimisation the loop contains more than its multiplications.
                if level == "-O2" {
                    counts(&program);
                }
            }
        }
    }
}

#[test]
fn the_header_agrees_with_cpuid() {
    let folder = Folder(std::env::temp_dir().join(format!("cyclescope-cpuid-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let [source, program] = ["cpu.c", "cpu"].map(|name| folder.0.join(name));
    let text = "#include \"cyclescope.h\"\n#include <stdio.h>\n\
        int main(void) { return printf(\"%d %d %d\", cyclescope_has_rdtscp(), cyclescope_has_invariant_tsc(), \
        cyclescope_shown(0xfffffff0u, 0)) < 0; }\n";
    std::fs::write(&source, text).expect("a file");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let built = Command::new("cc").arg("-I").arg(&include).arg(&source).arg("-o").arg(&program).status();
    if !built.is_ok_and(|status| status.success()) {
        return cyclescope_skipped::report_left_out(format_args!("no cc with its libraries"));
    }
    let printed = Command::new(&program).output().expect("it runs").stdout;
    let has_bit = |leaf: u32, bit: u32| __cpuid(0x8000_0000).eax >= leaf && __cpuid(leaf).edx >> bit & 1 == 1;
    let expected = format!("{} {} 0", u8::from(has_bit(0x8000_0001, 27)), u8::from(has_bit(0x8000_0007, 8)));
    assert_eq!(String::from_utf8_lossy(&printed), expected);
}

/// Compares shares of chains, measured in turns in one process, so the machine does not matter.
#[test]
fn a_region_contains_all_its_code_and_none_before_it() {
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
    let printed = Command::new(&program).output().expect("it runs").stdout;
    let printed = String::from_utf8_lossy(&printed);
    let ticks: Vec<f64> = printed.split_whitespace().flat_map(str::parse).collect();
    let [long, before, short, within] = ticks[..] else { panic!("{printed}") };
    // Twenty dependent multiplications take at least this long, unless the reading does not wait
    // for them.
    if short < 20.0 {
        return cyclescope_skipped::report_left_out(format_args!("LFENCE does not wait: {printed}"));
    }
    assert!(before.abs() < long / 4.0, "{before} of {long} ticks before the region are counted");
    assert!((within - short).abs() < short / 3.0, "{within} of {short} ticks in the region are counted");
}

/// If the rulers agree, a multiplication takes a whole number of additions.
fn counts(program: &Path) {
    let output = Command::new(program).output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    if printed.contains("no core cycles here") || !output.status.success() {
        return cyclescope_skipped::report_left_out(format_args!("the core's clock, or LFENCE: {}", printed.trim()));
    }
    let numbers: Vec<f64> = printed
        .split(|other: char| !other.is_ascii_digit() && !['.', '-'].contains(&other))
        .flat_map(str::parse)
        .collect();
    let [_, cycles, low, high] = numbers[..] else { panic!("{printed}") };
    let nearest = (cycles / 50.0).round() * 50.0;
    assert!(low - 0.05 * nearest < nearest && nearest < high + 0.05 * nearest && nearest > 0.0, "{printed}");
}
