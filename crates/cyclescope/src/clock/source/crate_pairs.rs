//! The pairs of the crate `cyclescope-clock`: its file is written from the timing methods, and a test fails where it is another one.

use super::language::Words;
use super::{LANGUAGES, conditions, identifier};
use crate::clock::{ALL, Clock};
use crate::unit::Unit;
use iced_x86::CpuidFeature;
use std::path::PathBuf;

const HEAD: &str = "\
//! The timing methods that user mode can run.
//!
//! Written from those of the library by its test `the_clock_crate_has_these_pairs`.

use crate::cpu::Feature;
use crate::pair::{Counts, Pair};
use core::arch::asm;
";

/// The text of the file.
fn pairs() -> String {
    let user = ALL.iter().filter(|clock| !clock.needs_ring0());
    HEAD.to_string() + &user.map(pair).collect::<String>()
}

fn pair(clock: &Clock) -> String {
    let rust = LANGUAGES.iter().find(|language| language.name == "rust").expect("a language");
    let Words { include, parameter, start, end, .. } = (rust.words)(clock);
    let indented = |text: &str| {
        text.lines().map(|line| format!("    {line}\n").replace("    \n", "\n")).collect::<String>()
    };
    let [start, end] = [start, end].map(|body| indented(&body));
    let name = type_name(clock);
    let system = if clock.calls() { "#[cfg(target_os = \"linux\")]\n" } else { "" };
    let include = include.split("\n\n").filter(|part| !part.trim().is_empty());
    let include: String = include.map(|part| format!("\n{system}{}\n", part.trim())).collect();
    let promised = |made| {
        let those = clock.promises.each().into_iter().filter(move |(_, _, kept)| *kept == made);
        those.map(|(_, text, _)| text).collect::<Vec<_>>().join(", ")
    };
    let mut about = vec![format!("`{}`: {}.", clock.name, clock.about), String::new()];
    about.push(format!("Readings count {}.", clock.counts.text()));
    for (what, those) in [("Promised", promised(true)), ("Not promised", promised(false))] {
        if !those.is_empty() {
            about.push(format!("{what}: {those}."));
        }
    }
    about.extend(conditions(clock).iter().map(|text| format!("Condition: {text}.")));
    about.extend([String::new(), format!("Source: {}.", clock.source)]);
    let about: String =
        about.iter().map(|line| format!("/// {line}").trim_end().to_string() + "\n").collect();
    let needs: Vec<String> =
        clock.features().iter().map(|feature| format!("Feature::{}", named(*feature))).collect();
    let (needs, counts) = (needs.join(", "), counts(clock));
    let function = |about: &str, public: &str, name: &str, body: &str| {
        format!(
            "    /// {about}\n    #[inline(always)]\n    {public}fn {name}({parameter}) -> u64 {{\n{body}    }}\n"
        )
    };
    let functions = |public: &str| {
        let start = function("The reading before the measured code.", public, "start", &start);
        format!("{start}\n{}", function("The reading behind it.", public, "end", &end))
    };
    let head = format!("{include}\n{about}{system}#[derive(Debug, Clone, Copy)]\npub struct {name};\n\n");
    // What a reading has to be told is no part of the trait.
    if !parameter.is_empty() {
        return format!("{head}impl {name} {{\n{}}}\n", functions("pub "));
    }
    let constants = format!(
        "    const NAME: &'static str = \"{}\";\n    const COUNTS: Counts = Counts::{counts};\n    const NEEDS: &'static [Feature] = &[{needs}];\n",
        clock.name
    );
    format!("{head}{system}impl Pair for {name} {{\n{constants}\n{}}}\n", functions(""))
}

/// The name as Rust writes types.
fn type_name(clock: &Clock) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    identifier(clock).split('_').map(capital).collect()
}

fn counts(clock: &Clock) -> &'static str {
    match clock.counts {
        Unit::TscTicks => "TscTicks",
        Unit::Nanos => "Nanos",
        _ => "CoreCycles",
    }
}

fn named(feature: CpuidFeature) -> &'static str {
    match feature {
        CpuidFeature::RDTSCP => "Rdtscp",
        CpuidFeature::SERIALIZE => "Serialize",
        CpuidFeature::RDPRU => "Rdpru",
        other => panic!("the crate has no name for {other:?}"),
    }
}

#[test]
fn the_clock_crate_has_these_pairs() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../cyclescope-clock/src/pairs.rs");
    let text = pairs();
    if std::env::var_os("CYCLESCOPE_WRITE").is_some() {
        std::fs::write(&file, &text).expect("a file");
    }
    let there = std::fs::read_to_string(&file).expect("a file");
    assert!(
        there == text,
        "write it anew: CYCLESCOPE_WRITE=1 cargo test -p cyclescope --lib the_clock_crate"
    );
}
