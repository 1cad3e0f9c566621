//! Generates the pairs of the crate `cyclescope-clock`, and the header for C and C++, from the
//! timing methods. A test fails if one of the files differs.

use super::language::TemplateWords;
use super::{C_GUARDS, LANGUAGES, c, clock_identifier, list_conditions, rust};
use crate::asm::CodeMode;
use crate::clock::{ALL_CLOCKS, Clock, ClockSide, ClockStep};
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature;
use std::path::PathBuf;

const GENERATED: &str = "Generated from those of the library by its test `generated_files_match_the_methods`.";

/// A module of the crate with pairs that belong together.
struct PairRoom {
    name: &'static str,
    /// What its pairs read, and after what.
    about: &'static str,
    /// Whether a method belongs here; each method for user mode belongs to one room.
    holds: fn(&Clock) -> bool,
}

const ROOMS: [PairRoom; 5] = [
    PairRoom {
        name: "core_counter",
        about: "Methods that read a counter of core cycles.",
        holds: |clock| counts_variant(clock) == "CoreCycles",
    },
    PairRoom {
        name: "direct_tsc",
        about: "Methods that start with the reading of the time stamp counter.",
        holds: |clock| starts_tsc_with(clock, &[ClockStep::Rdtsc, ClockStep::Rdtscp]),
    },
    PairRoom {
        name: "fenced_tsc",
        about: "Methods that start with a fence, then read the time stamp counter.",
        holds: |clock| starts_tsc_with(clock, &[ClockStep::Lfence, ClockStep::Mfence]),
    },
    PairRoom {
        name: "serialized_tsc",
        about: "Methods that start with a serialising instruction, then read the time stamp counter.",
        holds: |clock| starts_tsc_with(clock, &[ClockStep::Cpuid, ClockStep::Serialize]),
    },
    PairRoom {
        name: "system_clock",
        about: "Methods that ask the system for the time.",
        holds: |clock| clock.calls_system(),
    },
];

/// Whether the method reads the TSC, and one of these steps is the first of its start.
fn starts_tsc_with(clock: &Clock, steps: &[ClockStep]) -> bool {
    clock.counts == Unit::TscTicks && clock.start.first().is_some_and(|first| steps.contains(first))
}

fn user_clocks() -> impl Iterator<Item = &'static Clock> {
    ALL_CLOCKS.iter().filter(|clock| !clock.needs_ring0())
}

impl PairRoom {
    fn clocks(&self) -> Vec<&'static Clock> {
        user_clocks().filter(|clock| (self.holds)(clock)).collect()
    }

    /// Lines of `mod.rs` that declare the module, and those that export its pairs.
    fn declare(&self) -> [String; 2] {
        let clocks = self.clocks();
        let system =
            if clocks.iter().any(|clock| clock.calls_system()) { "#[cfg(target_os = \"linux\")]\n" } else { "" };
        let types: Vec<String> = clocks.iter().map(|clock| type_name(clock)).collect();
        let types = match &types[..] {
            [one] => one.clone(),
            several => format!("{{{}}}", several.join(", ")),
        };
        let name = self.name;
        [format!("{system}mod {name};\n"), format!("{system}pub use {name}::{types};\n")]
    }

    /// Text of the module's file.
    fn file(&self) -> String {
        let clocks = self.clocks();
        let cpu = if clocks.iter().any(|clock| reads_cpu(clock)) { "CpuPair, CpuReading, " } else { "" };
        let pairs: String = clocks.into_iter().map(rust_pair).collect();
        format!(
            "//! {}\n//!\n//! {GENERATED}\n\nuse crate::cpu::Feature;\nuse crate::pair::{{Counts, {cpu}Pair}};\n\
             use core::arch::asm;\n{pairs}",
            self.about
        )
    }
}

/// Text of the file that declares the rooms.
fn rooms_file() -> String {
    let declared = ROOMS.map(|room| room.declare());
    let modules: String = declared.iter().map(|[module, _]| module.as_str()).collect();
    let exports: String = declared.iter().map(|[_, export]| export.as_str()).collect();
    format!(
        "//! The timing methods that user mode can run.\n//!\n//! {GENERATED}\n\n\
         // A method is in the module of the clock that it reads. Those of the time stamp counter differ in\n\
         // the instruction that starts them.\n{modules}\n{exports}"
    )
}

/// Whether both readings tell their CPU.
fn reads_cpu(clock: &Clock) -> bool {
    ClockSide::BOTH.iter().all(|side| clock.side_steps(*side).contains(&ClockStep::Rdtscp))
}

fn rust_pair(clock: &Clock) -> String {
    let language = LANGUAGES.iter().find(|language| language.name == "rust").expect("a language");
    let TemplateWords { include, parameter, start, end, .. } = (language.words)(clock, CodeMode::Bits64);
    let indented =
        |text: &str| text.lines().map(|line| format!("    {line}\n").replace("    \n", "\n")).collect::<String>();
    let [start, end] = [start, end].map(|body| indented(&body));
    let name = type_name(clock);
    let include = include.split("\n\n").filter(|part| !part.trim().is_empty());
    let include: String = include.map(|part| format!("\n{}\n", part.trim())).collect();
    let about = comment_lines(&describe_method(clock), "/// ");
    let needs: Vec<String> =
        clock.required_features().iter().map(|feature| format!("Feature::{}", feature_variant(*feature))).collect();
    let (needs, counts) = (needs.join(", "), counts_variant(clock));
    let function = |about: &str, public: &str, name: &str, body: &str| {
        format!("    /// {about}\n    #[inline(always)]\n    {public}fn {name}({parameter}) -> u64 {{\n{body}    }}\n")
    };
    let functions = |public: &str| {
        let start = function("Reading before the measured code.", public, "start", &start);
        format!("{start}\n{}", function("Reading after the measured code.", public, "end", &end))
    };
    let head = format!("{include}\n{about}#[derive(Debug, Clone, Copy)]\npub struct {name};\n\n");
    // The trait has no readings with a parameter.
    if !parameter.is_empty() {
        return format!("{head}impl {name} {{\n{}}}\n", functions("pub "));
    }
    let constants = format!(
        "    const NAME: &'static str = \"{}\";\n    const COUNTS: Counts = Counts::{counts};\n    \
         const NEEDS: &'static [Feature] = &[{needs}];\n",
        clock.name
    );
    let pair = format!("{head}impl Pair for {name} {{\n{constants}\n{}}}\n", functions(""));
    if !reads_cpu(clock) {
        return pair;
    }
    let [start, end] = ClockSide::BOTH.map(|side| indented(&rust::cpu_reading_body(clock, side)));
    let function =
        |name: &str, body: &str| format!("    #[inline(always)]\n    fn {name}() -> CpuReading {{\n{body}    }}\n");
    let functions = [function("start_on_cpu", &start), function("end_on_cpu", &end)].join("\n");
    format!("{pair}\nimpl CpuPair for {name} {{\n{functions}}}\n")
}

/// Name of a method as a Rust type.
fn type_name(clock: &Clock) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    clock_identifier(clock).split('_').map(capital).collect()
}

fn counts_variant(clock: &Clock) -> &'static str {
    match clock.counts {
        Unit::TscTicks => "TscTicks",
        Unit::Nanos => "Nanos",
        _ => "CoreCycles",
    }
}

fn feature_variant(feature: CpuidFeature) -> &'static str {
    match feature {
        CpuidFeature::RDTSCP => "Rdtscp",
        CpuidFeature::SERIALIZE => "Serialize",
        CpuidFeature::RDPRU => "Rdpru",
        other => panic!("the crate has no name for {other:?}"),
    }
}

/// Description of a method for its users.
fn describe_method(clock: &Clock) -> Vec<String> {
    let promised = |made| {
        let those = clock.promises.list_promises().into_iter().filter(move |(_, _, kept)| *kept == made);
        those.map(|(_, text, _)| text).collect::<Vec<_>>().join(", ")
    };
    let mut about = vec![format!("`{}`: {}.", clock.name, clock.about), String::new()];
    about.push(format!("Readings count {}.", clock.counts.text()));
    for (what, those) in [("Promised", promised(true)), ("Not promised", promised(false))] {
        if !those.is_empty() {
            about.push(format!("{what}: {those}."));
        }
    }
    about.extend(list_conditions(clock, CodeMode::Bits64).iter().map(|text| format!("Condition: {text}.")));
    about.extend([String::new(), format!("Source: {}.", clock.source)]);
    about
}

/// The lines as a comment of at most 100 columns.
fn comment_lines(lines: &[String], prefix: &str) -> String {
    let mut text = String::new();
    for line in lines {
        let mut row = prefix.to_string();
        for word in line.split(' ') {
            if row.len() > prefix.len() && row.len() + word.len() > 100 {
                text.push_str(row.trim_end());
                text.push('\n');
                row = prefix.to_string();
            }
            row.push_str(word);
            row.push(' ');
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

/// Text of the header.
fn header_file() -> String {
    let pairs: String = user_clocks().map(c_pair).collect();
    include_str!("header.txt")
        .replace("@MAJOR@", env!("CARGO_PKG_VERSION_MAJOR"))
        .replace("@MINOR@", env!("CARGO_PKG_VERSION_MINOR"))
        .replace("@PATCH@", env!("CARGO_PKG_VERSION_PATCH"))
        .replace("@GUARDS@", C_GUARDS)
        .replace("@PAIRS@", &pairs)
}

fn c_pair(clock: &Clock) -> String {
    let language = LANGUAGES.iter().find(|language| language.name == "c").expect("a language");
    let TemplateWords { parameter, .. } = (language.words)(clock, CodeMode::Bits64);
    let name = clock_identifier(clock);
    let about = comment_lines(&describe_method(clock), " * ");
    let functions: String = [("start", ClockSide::Start), ("end", ClockSide::End)]
        .into_iter()
        .map(|(side, of)| {
            let body = c::header_body(clock, of);
            let body = match intrinsics_body(clock, of) {
                Some(others) => format!("#ifdef CYCLESCOPE_INTRINSICS\n{others}#else\n{body}#endif\n"),
                None => body,
            };
            format!("\nCYCLESCOPE_INLINE uint64_t cyclescope_{name}_{side}({parameter})\n{{\n{body}}}\n")
        })
        .collect();
    let with_cpu: String = [("start", ClockSide::Start), ("end", ClockSide::End)]
        .into_iter()
        .filter(|_| reads_cpu(clock))
        .map(|(side, of)| {
            let others = intrinsics_body(clock, of).expect("they have RDTSCP").replace(
                "    return reading;\n",
                "    whole.clock = reading;\n    whole.cpu = auxiliary;\n    return whole;\n",
            );
            let others = format!("    struct cyclescope_cpu_reading whole;\n{others}");
            let body =
                format!("#ifdef CYCLESCOPE_INTRINSICS\n{others}#else\n{}#endif\n", c::cpu_reading_body(clock, of));
            let head = format!("CYCLESCOPE_INLINE struct cyclescope_cpu_reading cyclescope_{name}_{side}_on_cpu(void)");
            format!("\n{head}\n{{\n{body}}}\n")
        })
        .collect();
    let functions = functions + &with_cpu;
    let condition = match (clock.calls_system(), intrinsics_body(clock, ClockSide::Start)) {
        (true, _) => "#if defined(CLOCK_MONOTONIC_RAW) && !defined(CYCLESCOPE_INTRINSICS)\n",
        (_, None) => "#ifndef CYCLESCOPE_INTRINSICS\n",
        _ => "",
    };
    let after = if condition.is_empty() { "" } else { "#endif\n" };
    format!("\n{condition}/*\n{about} */{functions}{after}")
}

/// One side with intrinsic functions, which the compiler keeps in order; `None` if a step has none.
fn intrinsics_body(clock: &Clock, side: ClockSide) -> Option<String> {
    let mut declared = "    uint64_t reading;\n".to_string();
    let mut text = String::new();
    for step in clock.side_steps(side) {
        let line = match step {
            ClockStep::Lfence => "_mm_lfence();",
            ClockStep::Mfence => "_mm_mfence();",
            ClockStep::Serialize => "_serialize();",
            ClockStep::Cpuid => {
                if !declared.contains("leaf") {
                    declared.push_str("    int leaf[4];\n");
                }
                "__cpuid(leaf, 0);"
            }
            ClockStep::Rdtsc => "reading = __rdtsc();",
            ClockStep::Rdtscp => {
                declared.push_str("    unsigned int auxiliary;\n");
                "reading = __rdtscp(&auxiliary);"
            }
            ClockStep::Rdpmc => "reading = __readpmc(counter);",
            ClockStep::Store => continue,
            ClockStep::RewriteCr0 | ClockStep::Rdpru | ClockStep::ClockGettime => return None,
        };
        text.push_str(&format!("    {line}\n"));
    }
    Some(format!("{declared}\n{text}    return reading;\n"))
}

#[test]
fn generated_files_match_the_methods() {
    let pairs = |name: &str| format!("crates/clock/src/pairs/{name}.rs");
    let mut files = vec![("include/cyclescope.h".to_string(), header_file()), (pairs("mod"), rooms_file())];
    files.extend(ROOMS.iter().map(|room| (pairs(room.name), room.file())));
    for (file, text) in files {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(&file);
        if std::env::var_os("CYCLESCOPE_WRITE").is_some() {
            std::fs::write(&path, &text).expect("a file");
        }
        let current = std::fs::read_to_string(&path).expect("a file");
        let command = "CYCLESCOPE_WRITE=1 cargo test -p cyclescope-code --lib generated_files";
        assert!(current == text, "{file} does not match the methods; generate it again: {command}");
    }
}

#[test]
fn each_method_is_in_one_room() {
    for clock in user_clocks() {
        let rooms: Vec<&str> = ROOMS.iter().filter(|room| (room.holds)(clock)).map(|room| room.name).collect();
        assert!(rooms.len() == 1, "{} is in {rooms:?}", clock.name);
    }
}
