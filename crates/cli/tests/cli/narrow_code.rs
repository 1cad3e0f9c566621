//! Commands with `--bits 32`.

use crate::support::{answer, cyclescope, folder, has_for_part, json, parse_lines};

/// The line of a snippet of 32-bit code; `None` where the system has no segment for it.
fn run(arguments: &[&str]) -> Option<serde_json::Value> {
    let all = [&["run", "--bits", "32"], arguments].concat();
    let line = json(&all, &[0, 3, 5]);
    if line["kind"] == "error" {
        assert!(line["text"].as_str().is_some_and(|text| text.contains("segment")), "{line}");
        cyclescope_skipped::report_left_out(&line["text"]);
        return None;
    }
    Some(line)
}

#[test]
fn a_chain_takes_as_long_as_the_rulers() {
    let Some(line) = run(&["imul eax, eax"]) else { return };
    assert_eq!((&line["bits"], &line["bytes"]), (&32.into(), &"0f af c0".into()), "{line}");
    let ruler = line["ruler"]["imul_latency"].as_f64();
    if let (Some(cost), Some(ruler)) = (line["cost"]["value"].as_f64(), ruler) {
        assert!((cost / ruler - 1.0).abs() < 0.1, "{line}");
    }
    let Some(att) = run(&["imull %eax, %eax"]) else { return };
    let Some(hex) = run(&["--hex", "0fafc0"]) else { return };
    assert_eq!([&att["bytes"], &hex["bytes"]], [&line["bytes"]; 2]);
    assert!(json(&["run", "--quick", "imul eax, eax"], &[0, 5]).get("bits").is_none(), "64 bits are the default");
}

#[test]
fn instructions_of_32_bit_code_are_measured() {
    for snippet in ["aaa", "aam", "into", "push ds; pop ds", "les eax, [esi]", "inc eax", "lea cx, [bx+si]"] {
        // Memory holds zero where LES reads a selector, which ES may have.
        let Some(line) = run(&["--quick", snippet]) else { return };
        assert_eq!(line["snippet"], snippet, "{line}");
    }
}

#[test]
fn evidence_of_32_bit_code_is_replayed() {
    let directory = folder();
    let path = directory.path().join("kept");
    let path = path.to_str().expect("UTF-8");
    let Some(line) = run(&["add eax, ecx", "--evidence", path]) else { return };
    let replayed = json(&["replay", path], &[0, 5]);
    assert_eq!([&replayed["cost"], &replayed["bits"]], [&line["cost"], &line["bits"]]);
    let again = json(&["replay", path, "--measure"], &[0, 5]);
    assert_eq!([&again["bytes"], &again["bits"]], [&line["bytes"], &line["bits"]]);
}

#[test]
fn what_a_mode_lacks_is_refused_with_its_remedy() {
    for (arguments, code, text) in [
        (&["--bits", "32", "mov rax, rbx"][..], 2, "`rax` exists only in 64-bit mode"),
        (&["--bits", "32", "add eax, r8d"], 2, "`r8d` exists only in 64-bit mode"),
        (&["--bits", "32", "movsxd eax, ecx"], 2, "exists only in 64-bit mode"),
        (&["aaa"], 2, "--bits 32"),
        (&["--bits", "16", "nop"], 2, "64 or 32"),
        (&["--bits", "32", "nop", "--write-elf", "f"], 2, "--write-elf"),
        (&["--bits", "32", "mov eax, offset x\nsection .data\nx dd 1"], 2, "x"),
        (&["--bits", "32", "nop", "--clock", "clock-gettime"], 3, "64-bit library"),
        (&["--bits", "32", "nop", "--executor", "kernel"], 3, "the module"),
    ] {
        let said = answer(cyclescope(&["run"]).args(arguments));
        assert_eq!(said.code, Some(code), "{arguments:?}: {said:?}");
        assert!(said.stderr.contains(text), "{arguments:?}: {said:?}");
    }
}

#[test]
fn what_needs_ring_0_needs_64_bit_code_too() {
    if run(&["--quick", "nop"]).is_none() {
        return;
    }
    for (arguments, code) in [(&["hlt"][..], 4), (&["nop", "--clock", "cpuid-rdtsc-cr0-rdtsc"], 3)] {
        let said = answer(cyclescope(&["run", "--bits", "32"]).args(arguments));
        let remedy = "add --executor kernel, which takes 64-bit code";
        assert!(said.code == Some(code) && said.stderr.contains(remedy), "{arguments:?}: {said:?}");
    }
}

#[test]
fn snippets_have_data_and_come_from_listings_and_assemblers() {
    let data = "section .data\nalign 16\nones: dd 1.0, 1.0, 1.0, 1.0\nplace: dd ones\nsection .text\n\
                addps xmm0, [ones]\nmov ecx, [place]\nmov edx, [ones+esi*4-4]\nadd edx, [ecx+4]\nxor esi, esi\n";
    let Some(line) = run(&["--quick", "--init", "mov esi, 1", data]) else { return };
    assert_eq!(line["bits"], 32, "{line}");
    let listing = "f.o:     file format elf32-i386\n\n00000000 <f>:\n   0:\t40                   \tinc    eax\n   \
                   1:\t0f af c0             \timul   eax,eax\n   4:\tc3                   \tret\n";
    let Some(line) = run(&["--quick", listing]) else { return };
    assert_eq!(line["bytes"], "40 0f af c0", "{line}");
    for (assembler, text) in
        [("nasm", "bits 32\ninc eax\nimul eax, eax\n"), ("as", ".code32\ninc %eax\nimul %eax, %eax\n")]
    {
        if has_for_part(assembler) {
            let Some(line) = run(&["--quick", "--assembler", assembler, text]) else { return };
            assert_eq!(line["bytes"], "40 0f af c0", "{assembler}: {line}");
        }
    }
    if has_for_part("nasm") {
        let Some(line) = run(&["--quick", "--assembler", "nasm", "--init", "mov esi, 1", data]) else { return };
        assert_eq!(line["bits"], 32, "{line}");
    }
}

#[test]
fn a_snippet_that_uses_all_registers_has_a_loop() {
    let all = "imul eax, ebx; imul ebx, ecx; imul ecx, edx; imul edx, esi; imul esi, edi; imul edi, ebp; imul ebp, eax";
    let Some(line) = run(&["--interval", "2%", all]) else { return };
    assert!(line["loop"].is_u64() && line.get("loop_obstacle").is_none_or(|why| why.is_null()), "{line}");
    // Where the counter is has no part in the cost of a longer body.
    if let (Some(looped), Some(unrolled)) = (line["looped"]["value"].as_f64(), line["unrolled"]["value"].as_f64()) {
        assert!((looped / unrolled - 1.0).abs() < 0.25, "{looped} and {unrolled}");
    }
}

#[test]
fn forms_of_32_bit_code_are_measured_resumed_and_replayed() {
    let directory = folder();
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_string();
    let (out, evidence) = (path("rows.jsonl"), path("evidence"));
    let forms = ["instr", "--bits", "32", "--quick", "salc", "Jne_rel8_32"];
    let said = answer(cyclescope(&forms).args(["--out", &out, "--evidence", &evidence]));
    if said.code == Some(3) {
        assert!(said.stderr.contains("segment"), "{said:?}");
        return cyclescope_skipped::report_skipped(&said.stderr);
    }
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("32-bit code"), "{said:?}");
    let rows = std::fs::read_to_string(&out).expect("the file was written");
    let measured = |text: &str| {
        let is_row = |line: &&str| line.contains(r#""kind":"instr","bits":32"#) && line.contains(r#""measured""#);
        text.lines().filter(is_row).count()
    };
    assert_eq!(measured(&rows), 2, "{rows}");
    let resumed = answer(&mut cyclescope(&["instr", "--resume", &out, "--json"]));
    assert_eq!((resumed.code, measured(&resumed.stdout)), (Some(0), 2), "{resumed:?}");
    let refused = answer(&mut cyclescope(&["instr", "--resume", &out, "--bits", "64"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("has forms of 32-bit mode, and --bits asks for 64-bit mode"), "{refused:?}");
    let replayed = answer(&mut cyclescope(&["replay", &evidence, "--json"]));
    assert_eq!((replayed.code, measured(&replayed.stdout)), (Some(0), 2), "{replayed:?}");
}

#[test]
fn background_load_has_the_mode_of_the_run() {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        return cyclescope_skipped::report_skipped("this process may use one CPU only");
    }
    // `inc eax` of 32-bit code is a prefix of 64-bit code.
    for (loads, modes) in [
        (&["--beside", "pusha; popa"][..], &[32][..]),
        (&["--beside", "run --hex '40 40'"], &[32]),
        (&["--beside", "run --bits 64 'inc r8'"], &[64]),
    ] {
        let arguments = [&["run", "--bits", "32", "aam", "--quick", "--json"], loads].concat();
        let said = answer(&mut cyclescope(&arguments));
        if said.code == Some(3) {
            assert!(said.stderr.contains("segment"), "{said:?}");
            return cyclescope_skipped::report_skipped(&said.stderr);
        }
        assert!([Some(0), Some(5)].contains(&said.code), "{said:?}");
        let lines = parse_lines(&said.stdout);
        let loads = lines.iter().filter(|line| line["kind"] == "beside");
        let bits: Vec<u64> = loads.map(|line| line["bits"].as_u64().unwrap_or(64)).collect();
        assert_eq!(bits, modes, "{said:?}");
        // A load that ran part of the time may lack a cost.
        let mut ran = lines.iter().filter(|line| line["kind"] == "beside" && line["share"].as_f64() > Some(0.9));
        assert!(ran.all(|line| line["cost"]["value"].is_number()), "{said:?}");
    }
    let said = answer(&mut cyclescope(&["run", "--bits", "32", "nop", "--beside", "cmovz ebp, ebx; test ecx, edx"]));
    assert!(said.code == Some(3) || said.code == Some(2) && said.stderr.contains("uses EBP"), "{said:?}");
}

#[test]
fn a_filter_for_forms_of_another_mode_names_the_option() {
    for (arguments, text) in [
        (&["--bits", "32", "add r64, r64"][..], "leave --bits 32 out"),
        (&["--bits", "32", "--mnemonic", "movsxd"], "leave --bits 32 out"),
        (&["--mnemonic", "aaa"], "use --bits 32"),
    ] {
        let said = answer(cyclescope(&["instr", "--list"]).args(arguments));
        assert_eq!(said.code, Some(2), "{arguments:?}: {said:?}");
        assert!(said.stderr.contains(text), "{arguments:?}: {said:?}");
    }
    let listed = answer(&mut cyclescope(&["instr", "--list", "--bits", "32", "les"]));
    assert!(listed.code == Some(0) && listed.stdout.contains("2 forms would be measured"), "{listed:?}");
}

#[test]
fn advice_names_the_registers_of_32_bit_code() {
    let said = answer(&mut cyclescope(&["run", "--bits", "32", "rep movsb"]));
    if said.code != Some(3) {
        let advice = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(advice.contains("ECX stays as") && advice.contains("mov esi, ebp; mov edi, ebx"), "{said:?}");
    }
}

/// The lines of a command in 32-bit code; `None` where the system or the compiler has none.
fn narrow_lines(arguments: &[&str]) -> Option<Vec<serde_json::Value>> {
    let said = answer(cyclescope(arguments).args(["--json", "--bits", "32"]));
    if said.code == Some(3) {
        assert!(["segment", "32-bit code"].iter().any(|reason| said.stdout.contains(reason)), "{said:?}");
        cyclescope_skipped::report_left_out(&said.stdout);
        return None;
    }
    assert!(matches!(said.code, Some(0 | 5)), "{said:?}");
    Some(parse_lines(&said.stdout))
}

#[test]
fn methods_are_evaluated_in_32_bit_code() {
    let kept = folder();
    let path = kept.path().join("kept");
    let path = path.to_str().expect("UTF-8");
    let shape = ["--quick", "--ensembles", "12", "--samples", "500"];
    let arguments = [&["evaluate", "--clock", "lfence-rdtsc-lfence,rdtsc", "--evidence", path][..], &shape].concat();
    let Some(lines) = narrow_lines(&arguments) else { return };
    let of_machine = |line: &serde_json::Value| line["kind"] == "machine" || line["kind"] == "evaluate.tsc";
    for line in lines.iter().filter(|line| !of_machine(line)) {
        assert_eq!(line["bits"], 32, "{line}");
    }
    let parts = lines.iter().find(|line| line["kind"] == "evaluate.parts").expect("a line");
    let code: Vec<&str> = parts["code"].as_array().expect("a list").iter().filter_map(|row| row[1].as_str()).collect();
    assert!(code.contains(&"rdtsc") && code.iter().all(|text| !text.contains("rip")), "{code:?}");
    let replayed = answer(&mut cyclescope(&["replay", path, "--json"]));
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let again = parse_lines(&replayed.stdout);
    let methods = |lines: &[serde_json::Value]| -> Vec<serde_json::Value> {
        lines.iter().filter(|line| line["kind"] == "evaluate").map(|line| line["overhead"].clone()).collect()
    };
    assert!(methods(&lines).len() == 2 && methods(&lines) == methods(&again), "{again:?}");
}

#[test]
fn markers_are_measured_in_32_bit_code() {
    let kept = folder();
    let path = kept.path().join("kept");
    let path = path.to_str().expect("UTF-8");
    let shape = ["--quick", "--context", "empty", "--evidence", path];
    let Some(lines) = narrow_lines(&[&["marker", "flag", "immediate", "log"][..], &shape].concat()) else { return };
    let markers: Vec<_> = lines.iter().filter(|line| line["kind"] == "marker").collect();
    assert!(markers.len() > 10 && markers.iter().all(|line| line["bits"] == 32), "{markers:?}");
    for line in &markers {
        assert_eq!(line["calls"]["counted"], line["calls"]["expected"], "{line}");
    }
    let skipped = lines.iter().find(|line| line["kind"] == "marker.skipped").expect("log has no 32-bit code");
    assert_eq!(skipped["design"], "log");
    let replayed = answer(&mut cyclescope(&["replay", path, "--json"]));
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let costs = |lines: &[serde_json::Value], kind: &str| -> Vec<serde_json::Value> {
        lines.iter().filter(|line| line["kind"] == kind).map(|line| line["cost"].clone()).collect()
    };
    assert_eq!(costs(&parse_lines(&replayed.stdout), "marker.replay"), costs(&lines, "marker"));
}

#[test]
fn compilers_without_32_bit_code_are_named() {
    let marker = ["marker", "none", "--bits", "32", "--quick", "--context", "empty"];
    if has_for_part("clang") {
        let said = answer(cyclescope(&marker).env("CC", "clang"));
        assert!(matches!(said.code, Some(0 | 3 | 5)) && !said.stderr.contains("unknown argument"), "{said:?}");
    }
    let said = answer(cyclescope(&marker).env("CC", "false"));
    assert!(said.code == Some(3) && said.stderr.contains("32-bit code"), "{said:?}");
}

/// A method of equal instructions costs the same in both modes.
#[test]
fn both_modes_agree_on_equal_instructions() {
    let evaluate =
        ["evaluate", "--clock", "rdtscp-lfence,lfence-rdtsc-lfence", "--ensembles", "20", "--samples", "20000"];
    let pair = |bits: &str| -> Option<Vec<[f64; 2]>> {
        let said = answer(cyclescope(&evaluate).args(["--json", "--quick", "--bits", bits]));
        if said.code == Some(3) {
            cyclescope_skipped::report_left_out(&said.stdout);
            return None;
        }
        let lines = parse_lines(&said.stdout);
        let methods = lines.iter().filter(|line| line["kind"] == "evaluate");
        methods.map(|line| Some([line["overhead"]["low"].as_f64()?, line["overhead"]["high"].as_f64()?])).collect()
    };
    // A busy sibling lengthens a pair by tens of cycles for a second: the least interval of each counts.
    let mut least: Option<[Vec<[f64; 2]>; 2]> = None;
    for _ in 0..8 {
        let (Some(wide), Some(narrow)) = (pair("64"), pair("32")) else { continue };
        let found = [wide, narrow];
        let least = least.get_or_insert_with(|| found.clone());
        for (known, interval) in least.iter_mut().flatten().zip(found.into_iter().flatten()) {
            if interval[1] < known[1] {
                *known = interval;
            }
        }
        // 32-bit code restores the same registers, with a shorter encoding: two cycles at most.
        let near =
            |([low, high], [low_32, high_32]): (&[f64; 2], &[f64; 2])| low - 2.0 <= *high_32 && low_32 - 2.0 <= *high;
        if least[0].iter().zip(&least[1]).all(near) {
            return;
        }
    }
    assert!(least.is_none(), "{least:?}");
    cyclescope_skipped::report_left_out("no interval of an overhead");
}

#[test]
fn other_commands_take_no_bits() {
    for arguments in [&["uarch", "--bits", "32"][..], &["ab", "--bits", "32", "true"], &["doctor", "--bits", "32"]] {
        let said = answer(&mut cyclescope(arguments));
        assert!(said.code == Some(2) && said.stderr.contains("--bits"), "{arguments:?}: {said:?}");
    }
    for (arguments, code, text) in [
        (&["marker", "--bits", "32", "--around-snippet", "nop"][..], 2, "--around-snippet"),
        (&["marker", "--bits", "32", "--executor", "kernel"], 3, "64-bit code only"),
        (&["evaluate", "--bits", "32", "--executor", "kernel"], 3, "64-bit code only"),
        (&["evaluate", "--bits", "32", "clock-gettime"], 3, "64-bit library"),
    ] {
        let said = answer(&mut cyclescope(arguments));
        assert_eq!(said.code, Some(code), "{arguments:?}: {said:?}");
        // A system may lack the segment, or the module.
        assert!(code == 3 || said.stderr.contains(text), "{arguments:?}: {said:?}");
    }
}
