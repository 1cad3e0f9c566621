//! The header for users' programs: compiled strictly as C and C++, for both modes, and its example run.

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

const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-pedantic", "-Werror"];
const MODES: [&str; 2] = ["-m64", "-m32"];

/// Compiles a program with the header; `None` if the compiler or its libraries are missing.
fn build_program(folder: &Path, source: &Path, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    let empty = folder.join("empty.c");
    std::fs::write(&empty, "#include <stdio.h>\nint main(void) { return 0; }\n").expect("a file");
    let tried = Command::new(compiler).args(options).arg(&empty).arg("-o").arg(folder.join("empty")).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        cyclescope_skipped::report_left_out(format_args!("no {compiler} {} with its libraries", options[0]));
        return None;
    }
    let program = folder.join("program");
    let mut command = Command::new(compiler);
    command.args(STRICT).args(options).arg("-I").arg(include_folder()).arg(source);
    let output = command.arg("-o").arg(&program).output().expect("a compiler");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && messages.is_empty(), "{compiler} {options:?}: {messages}");
    Some(program)
}

fn include_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include")
}

fn data_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn make_folder(name: &str) -> Folder {
    let folder = Folder(std::env::temp_dir().join(format!("cyclescope-{name}-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    folder
}

#[test]
fn the_header_compiles_and_counts_core_cycles() {
    let folder = make_folder("header");
    for (compiler, languages) in [
        ("gcc", &["c99", "c11", "gnu17"][..]),
        ("clang", &["c99", "c11"]),
        ("g++", &["c++11", "c++17", "c++20"]),
        ("clang++", &["c++17"]),
    ] {
        for (language, mode) in languages.iter().flat_map(|language| MODES.map(|mode| (language, mode))) {
            for level in ["-O0", "-O2"] {
                let standard = format!("-std={language}");
                let mut options = vec![mode, level, &*standard];
                if language.contains("++") {
                    options.extend(["-x", "c++"]);
                }
                let example = include_folder().join("example.c");
                let Some(program) = build_program(&folder.0, &example, compiler, &options) else { break };
                // Without optimisation the loop contains more than its multiplications.
                if level == "-O2" {
                    counts(&program);
                }
            }
        }
    }
}

#[test]
fn each_pair_reads_the_clock_where_it_is_called() {
    let folder = make_folder("pairs");
    let source = data_file("pairs.c");
    for (compiler, mode) in ["gcc", "clang"].into_iter().flat_map(|compiler| MODES.map(|mode| (compiler, mode))) {
        for options in [&["-O0"][..], &["-O2"], &["-O2", "-fPIC"], &["-O2", "-masm=intel"], &["-O1", "-march=native"]] {
            let options = [&[mode, "-std=c99"], options].concat();
            let Some(program) = build_program(&folder.0, &source, compiler, &options) else { break };
            let printed = Command::new(&program).output().expect("it runs").stdout;
            let printed = String::from_utf8_lossy(&printed);
            if printed.contains("no RDTSCP") {
                return cyclescope_skipped::report_skipped("this CPU has no RDTSCP");
            }
            assert!(printed.is_empty(), "{compiler} {options:?}: {printed}");
        }
    }
}

#[test]
fn the_other_headers_for_c_compile_in_both_modes() {
    let folder = make_folder("headers");
    let source = folder.0.join("all.c");
    let text = "#include \"cyclescope_counter.h\"\n#include \"cyclescope_loop.h\"\n\
        int main(void) { CYCLESCOPE_LOOP(\"nothing\") {} return 0; }\n";
    std::fs::write(&source, text).expect("a file");
    for (compiler, mode) in ["gcc", "clang"].into_iter().flat_map(|compiler| MODES.map(|mode| (compiler, mode))) {
        let _ = build_program(&folder.0, &source, compiler, &[mode, "-O2", "-std=gnu11"]);
    }
}

#[test]
fn the_header_agrees_with_cpuid() {
    let folder = make_folder("cpuid");
    let source = folder.0.join("cpu.c");
    let text = "#include \"cyclescope.h\"\n#include <stdio.h>\n\
        int main(void) { return printf(\"%d %d %d\", cyclescope_has_rdtscp(), cyclescope_has_invariant_tsc(), \
        cyclescope_shown(0xfffffff0u, 0)) < 0; }\n";
    std::fs::write(&source, text).expect("a file");
    let has_bit = |leaf: u32, bit: u32| __cpuid(0x8000_0000).eax >= leaf && __cpuid(leaf).edx >> bit & 1 == 1;
    let expected = format!("{} {} 0", u8::from(has_bit(0x8000_0001, 27)), u8::from(has_bit(0x8000_0007, 8)));
    for mode in MODES {
        let Some(program) = build_program(&folder.0, &source, "cc", &[mode]) else { continue };
        let printed = Command::new(&program).output().expect("it runs").stdout;
        assert_eq!(String::from_utf8_lossy(&printed), expected);
    }
}

/// Compares shares of chains, measured in turns in one process, so the machine does not matter.
#[test]
fn a_region_contains_all_its_code_and_none_before_it() {
    let folder = make_folder("fences");
    for mode in MODES {
        let options = [mode, "-O2", "-msse2"];
        let Some(program) = build_program(&folder.0, &data_file("fences.c"), "cc", &options) else { continue };
        let printed = Command::new(&program).output().expect("it runs").stdout;
        let printed = String::from_utf8_lossy(&printed);
        let ticks: Vec<f64> = printed.split_whitespace().flat_map(str::parse).collect();
        let [long, before, short, within] = ticks[..] else { panic!("{printed}") };
        // Twenty dependent multiplications take at least this long, unless the reading does not wait
        // for them.
        if short < 20.0 {
            return cyclescope_skipped::report_left_out(format_args!("LFENCE does not wait: {printed}"));
        }
        assert!(before.abs() < long / 4.0, "{mode}: {before} of {long} ticks before the region are counted");
        assert!((within - short).abs() < short / 3.0, "{mode}: {within} of {short} ticks in the region are counted");
    }
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
