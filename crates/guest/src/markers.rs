//! Tests every marker of the module: its calls, dormant and enabled, and the changed bytes.

use crate::command_result::CommandResult;
use cyclescope::error::RunError;
use cyclescope::executor::kernel::markers::{
    DesignNumber, KernelMarkerRounds, KernelMarkers, KernelProbe, KernelRuler, MarkerFunction, MarkerTargetCall,
    MarkerWorkload, ProbeGuard, TimedMarkerRounds,
};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use std::error::Error;
use std::time::Duration;

const LOOPS: u32 = 7;
const WARM_UP: u32 = 2;
const ROUNDS: u32 = 5;
const LINE: u64 = 64;
/// Placements of each site.
const PLACEMENTS: usize = 16;

/// Opens them on the last CPU: if there are two, the first one takes the devices' interrupts.
pub fn open_markers() -> Result<KernelMarkers, Box<dyn Error>> {
    let cpu = std::thread::available_parallelism()?.get() - 1;
    KernelMarkers::open(cpu, Duration::from_secs(10)).map_err(|error| error.to_string().into())
}

/// The symbol of a code in the module.
fn symbol_name(code: &MarkerFunction) -> String {
    let guard = match code.guard {
        ProbeGuard::Bare => "bare",
        ProbeGuard::Preemption => "preemption",
        ProbeGuard::Own => "own",
        ProbeGuard::Interrupts => "interrupts",
    };
    let around = match code.around {
        MarkerWorkload::Nothing => "nothing",
        MarkerWorkload::Memcpy => "memcpy",
    };
    format!("{}_{guard}_{around}_{}", code.name.replace('-', "_"), code.placement)
}

fn time_calls(markers: &mut KernelMarkers, calls: Vec<MarkerTargetCall>) -> Result<TimedMarkerRounds, RunError> {
    let count = calls.len();
    let timed = markers.run_rounds(&KernelMarkerRounds {
        calls,
        warm_up: WARM_UP,
        rounds: ROUNDS,
        delay: 16,
        seed: 1,
        deadline: Duration::from_secs(10),
    })?;
    assert_eq!(timed.samples.len(), count * ROUNDS as usize);
    assert!(timed.samples.iter().all(|sample| sample.start != 0 && sample.end > sample.start));
    Ok(timed)
}

/// Counts the calls of the counting probe in one run of some codes.
fn count_hits(markers: &mut KernelMarkers, codes: &[&MarkerFunction]) -> Result<u64, RunError> {
    let calls = codes.iter().map(|code| MarkerTargetCall { target: (*code).into(), loops: LOOPS }).collect();
    Ok(time_calls(markers, calls)?.hits)
}

/// Each design, by the first of its codes.
fn list_designs(codes: &[MarkerFunction]) -> Vec<(DesignNumber, String)> {
    let mut designs: Vec<(DesignNumber, String)> = codes.iter().map(|code| (code.design, code.name.clone())).collect();
    designs.dedup();
    designs
}

/// Whether the kernel checks the types of called functions (CFI). Only such a kernel has this
/// function.
fn has_call_type_checks() -> std::io::Result<bool> {
    Ok(std::fs::read_to_string("/proc/kallsyms")?.contains(" handle_cfi_failure\n"))
}

/// Checks the result of a switch. Some must fail: the base has no sites, a tracepoint takes no
/// format, and the probe without an ellipsis differs in type from the call.
fn check_switch(
    markers: &mut KernelMarkers,
    design: &(DesignNumber, String),
    probe: KernelProbe,
) -> Result<bool, Box<dyn Error>> {
    let other_type = probe == KernelProbe::Direct && has_call_type_checks()?;
    let expected = match design.1.as_str() {
        "none" => false,
        "tracepoint" => !other_type && !matches!(probe, KernelProbe::Varargs | KernelProbe::Format),
        _ => !other_type,
    };
    match markers.switch_sites(design.0, Some(probe)) {
        Ok(()) if expected => Ok(true),
        Err(RunError::System { errno: 95, .. }) if !expected => Ok(false),
        other => Err(format!("{} with {probe:?}: {other:?}", design.1).into()),
    }
}

/// Checks that every code calls its probe once per iteration when it is on, and never when it is
/// off.
pub fn check_counts() -> CommandResult {
    let mut markers = open_markers()?;
    let codes = markers.codes().to_vec();
    let designs = list_designs(&codes);
    let names: Vec<&str> = designs.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["flag", "immediate", "none", "static-key", "tracepoint"]);
    assert_eq!(codes.len(), (3 * 3 + 2) * 2 * PLACEMENTS);
    let all = u64::from(LOOPS * (WARM_UP + ROUNDS));
    for design in &designs {
        let own: Vec<&MarkerFunction> = codes.iter().filter(|code| code.design == design.0).collect();
        let silent = |markers: &mut KernelMarkers, state: &str| -> CommandResult {
            match count_hits(markers, &own)? {
                0 => Ok(()),
                calls => Err(format!("{}, {state}: {calls} calls counted", design.1).into()),
            }
        };
        silent(&mut markers, "at first")?;
        for probe in KernelProbe::ALL {
            match (check_switch(&mut markers, design, probe)?, probe) {
                (true, KernelProbe::Counting) => {
                    for code in &own {
                        let calls = count_hits(&mut markers, &[code])?;
                        if calls != all {
                            return Err(format!("{}: {calls} calls, not {all}", symbol_name(code)).into());
                        }
                    }
                }
                (true, _) => silent(&mut markers, "with another probe")?,
                (false, _) => {}
            }
        }
        markers.switch_sites(design.0, None)?;
        silent(&mut markers, "dormant again")?;
    }
    check_rulers(&mut markers, &codes)?;
    println!("{} codes", codes.len());
    Ok(())
}

/// Checks that rulers run between codes, in the requested order.
fn check_rulers(markers: &mut KernelMarkers, codes: &[MarkerFunction]) -> CommandResult {
    let rulers = [
        KernelRuler::ImulShort,
        KernelRuler::ImulLong,
        KernelRuler::AddShort,
        KernelRuler::AddLong,
        KernelRuler::Sentinel,
    ];
    let mut calls: Vec<MarkerTargetCall> =
        rulers.map(|ruler| MarkerTargetCall { target: ruler.into(), loops: 50 }).to_vec();
    calls.push(MarkerTargetCall { target: (&codes[0]).into(), loops: 1 });
    let samples = time_calls(markers, calls)?.samples;
    let ordered = samples.windows(2).all(|pair| pair[0].end < pair[1].start);
    if ordered { Ok(()) } else { Err("samples are not in their order".into()) }
}

/// Checks the bytes of each code, dormant and enabled.
pub fn check_bytes() -> CommandResult {
    let mut markers = open_markers()?;
    let codes = markers.codes().to_vec();
    let read = |markers: &KernelMarkers| -> Result<Vec<Vec<u8>>, RunError> {
        codes.iter().map(|code| markers.read_bytes(code)).collect()
    };
    let dormant = read(&markers)?;
    for (code, bytes) in codes.iter().zip(&dormant) {
        check_placement(code, bytes)?;
    }
    for design in list_designs(&codes) {
        if !check_switch(&mut markers, &design, KernelProbe::Counting)? {
            continue;
        }
        let enabled = read(&markers)?;
        markers.switch_sites(design.0, None)?;
        for ((code, dormant), enabled) in codes.iter().zip(&dormant).zip(&enabled) {
            // A changed byte of another design is an error, too.
            let name = if code.design == design.0 { code.name.as_str() } else { "none" };
            check_patch(code, name, dormant, enabled)
                .map_err(|error| format!("{}, {} on: {error}", symbol_name(code), design.1))?;
        }
        if read(&markers)? != dormant {
            return Err(format!("{}: not as before", design.1).into());
        }
    }
    println!("{} codes", codes.len());
    Ok(())
}

fn decode_code(code: &MarkerFunction, bytes: &[u8]) -> Vec<Instruction> {
    Decoder::with_ip(64, bytes, code.address, DecoderOptions::NONE).iter().collect()
}

/// Checks that a code consists of whole instructions, and that its loop begins at the reported
/// offset.
fn check_placement(code: &MarkerFunction, bytes: &[u8]) -> CommandResult {
    let instructions = decode_code(code, bytes);
    let ends = instructions.last().is_some_and(|last| {
        !last.is_invalid()
            && last.next_ip() == code.address + bytes.len() as u64
            && !matches!(last.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch)
    });
    let back = instructions.iter().filter(|at| at.is_jcc_short_or_near() && at.near_branch_target() < at.ip());
    let start = back.map(|at| at.near_branch_target()).min();
    if instructions.iter().any(Instruction::is_invalid) || !ends {
        return Err(format!("{} is not whole", symbol_name(code)).into());
    }
    if start.map(|at| at % LINE) != Some(code.placement.into()) {
        return Err(format!("the loop of {} begins at {start:x?}", symbol_name(code)).into());
    }
    Ok(())
}

/// Checks that switching a design on changes the expected instructions and nothing else.
fn check_patch(code: &MarkerFunction, design: &str, dormant: &[u8], enabled: &[u8]) -> CommandResult {
    let before = decode_code(code, dormant);
    let after = decode_code(code, enabled);
    let same_places = before.iter().map(Instruction::ip).eq(after.iter().map(Instruction::ip));
    if !same_places {
        return Err("instructions moved".into());
    }
    let at = |index: &Instruction| (index.ip() - code.address) as usize;
    let bytes_differ = |one: &Instruction| {
        let range = at(one)..at(one) + one.len();
        dormant[range.clone()] != enabled[range]
    };
    let changed: Vec<(&Instruction, &Instruction)> =
        before.iter().zip(&after).filter(|(before, _)| bytes_differ(before)).collect();
    let inside = |target: u64| (code.address..code.address + dormant.len() as u64).contains(&target);
    let to_jump = |(before, after): &(&Instruction, &Instruction)| {
        let nop = before.mnemonic() == Mnemonic::Nop || before.mnemonic() == Mnemonic::Xchg;
        nop && matches!(before.len(), 2 | 5) && after.mnemonic() == Mnemonic::Jmp && inside(after.near_branch_target())
    };
    // A tracepoint with one listener calls it directly; with several, it calls a function that goes
    // through a list.
    let to_listener = |(before, after): &(&Instruction, &Instruction)| {
        before.mnemonic() == Mnemonic::Call && after.mnemonic() == Mnemonic::Call
    };
    let expected = match (design, changed.as_slice()) {
        ("none" | "flag", []) => true,
        ("static-key", [one]) => to_jump(one),
        ("tracepoint", [one, more @ ..]) => to_jump(one) && more.len() <= 1 && more.iter().all(to_listener),
        ("immediate", [(before, after)]) => {
            let one_byte = dormant.iter().zip(enabled).filter(|(dormant, enabled)| dormant != enabled).count();
            let immediate = |one: &Instruction| {
                (one.mnemonic() == Mnemonic::Mov && one.op1_kind() == OpKind::Immediate8).then(|| one.immediate8())
            };
            one_byte == 1 && immediate(before) == Some(0) && immediate(after) == Some(1)
        }
        _ => false,
    };
    let replaced: Vec<String> = changed.iter().map(|(before, after)| format!("{before} to {after}")).collect();
    if expected { Ok(()) } else { Err(format!("changed: {replaced:?}").into()) }
}

/// Checks the lengths of codes against another program's count, in a file of lines `SYMBOL BYTES`.
pub fn check_lengths(path: &str) -> CommandResult {
    let counted = std::fs::read_to_string(path)?;
    let codes = open_markers()?.codes().to_vec();
    for code in &codes {
        let line = format!("{} {}", symbol_name(code), code.len);
        if !counted.lines().any(|other| other == line) {
            return Err(format!("the file lacks the line {line}").into());
        }
    }
    println!("{} codes", codes.len());
    Ok(())
}
