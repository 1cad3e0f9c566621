//! Compares the compiled markers with `objdump`'s output for this executable.

use cyclescope_marker::anatomy::{AssemblyLine, compare_functions};
use cyclescope_marker::compiled_design::{CompiledDesign, CompiledFunction};
use cyclescope_marker::source::design::Enabling;
use object::{Object, ObjectSection};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// An instruction in `objdump`'s output: its bytes and its text.
struct Shown {
    bytes: String,
    text: String,
}

/// The instructions of these sections by their addresses in the file.
fn shown(sections: &BTreeSet<String>) -> Option<BTreeMap<u64, Shown>> {
    let mut command = Command::new("objdump");
    // Print every instruction on one line, and zeros as well.
    command.args(["--disassemble", "--wide", "--disassemble-zeroes", "--disassembler-options=intel"]);
    command.args(sections.iter().map(|section| format!("--section={section}")));
    let output = command.arg(std::env::current_exe().unwrap()).env("LC_ALL", "C").output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            cyclescope_skipped::report_skipped(format_args!("objdump of binutils does not run here: {error}"));
            return None;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |line: &str| {
        let mut columns = line.split('\t');
        let address = u64::from_str_radix(columns.next()?.trim().strip_suffix(':')?, 16).ok()?;
        let bytes = columns.next()?.split_whitespace().collect();
        Some((address, Shown { bytes, text: columns.next().unwrap_or("").to_string() }))
    };
    Some(String::from_utf8_lossy(&output.stdout).lines().filter_map(line).collect())
}

fn lines(compiled: &CompiledDesign, code: &CompiledFunction) -> Vec<AssemblyLine> {
    let base = compiled.find_function(&code.context, None).expect("each context has a base");
    compare_functions(base, code, compiled.design.enabling, &|_| None).assembly
}

#[test]
fn instructions_match_objdump() {
    let built = CompiledDesign::list_built();
    let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let file = object::File::parse(&*file).unwrap();
    let names = built.iter().flat_map(|it| it.codes.iter().map(move |code| it.section_of(code)));
    let Some(shown) = shown(&names.collect()) else { return };
    let (mut all, mut bytes) = (0, 0);
    let mut biases = BTreeSet::new();
    for compiled in &built {
        for code in &compiled.codes {
            let name = compiled.section_of(code);
            let place = file.section_by_name(&name).unwrap_or_else(|| panic!("there is no section {name}"));
            assert_eq!(place.size(), code.bytes.len() as u64, "{name}");
            // The file may be loaded at any address, but with a single offset.
            biases.insert(code.start.wrapping_sub(place.address()));
            let end = place.address() + place.size();
            let theirs: Vec<(usize, &str)> = shown
                .range(place.address()..end)
                .map(|(address, it)| ((address - place.address()) as usize, it.bytes.as_str()))
                .collect();
            let lines = lines(compiled, code);
            let ours: Vec<(usize, &str)> = lines.iter().map(|line| (line.offset, line.bytes.as_str())).collect();
            assert_eq!(ours, theirs, "{name}");
            all += theirs.len();
            bytes += code.bytes.len();
            patched_where_shown(compiled, code, &|offset| shown.get(&(place.address() + offset as u64)));
        }
    }
    assert_eq!(biases.len(), 1);
    assert_eq!(shown.len(), all);
    assert_eq!(shown.values().map(|it| it.bytes.len() / 2).sum::<usize>(), bytes);
}

/// Requires that enabling patches the instruction that `objdump` shows there.
fn patched_where_shown<'a>(
    compiled: &CompiledDesign,
    code: &CompiledFunction,
    at: &dyn Fn(usize) -> Option<&'a Shown>,
) {
    let name = compiled.section_of(code);
    let patches =
        matches!(compiled.design.enabling, Enabling::Immediate | Enabling::Jump | Enabling::Entry | Enabling::Tracer);
    assert_eq!(code.sites.len(), usize::from(patches && code.guard.is_some()), "{name}");
    for site in &code.sites {
        let text = |offset| at(offset).map_or("nothing begins there", |shown| shown.text.as_str());
        match compiled.design.enabling {
            // The immediate is the instruction's second byte.
            Enabling::Immediate => {
                let text = text(site.place - 1);
                assert!(text.starts_with("mov ") && text.trim().ends_with(",0x0"), "{name}: {text}");
            }
            Enabling::Jump => {
                let text = text(site.place);
                assert!(text.starts_with("nop") || text.starts_with("xchg   ax,ax"), "{name}: {text}");
                let target = (site.target - code.start) as usize;
                assert!(at(target).is_some(), "{name}: no instruction begins at the jump's target");
            }
            Enabling::Entry => {
                for offset in site.place..site.place + 5 {
                    assert_eq!(text(offset).trim(), "nop", "{name}");
                }
            }
            Enabling::Tracer => assert_eq!(text(site.place).trim(), "nop", "{name}"),
            other => panic!("{name}: {other:?} patches nothing"),
        }
    }
}
