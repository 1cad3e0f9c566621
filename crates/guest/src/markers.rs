//! Every marker of the module: its calls, dormant and enabled, and the bytes that change.

use crate::outcome::Outcome;
use cyclescope::error::RunError;
use cyclescope::executor::kernel::markers::{
    Around, Call, Code, Design, Guard, Markers, Probe, Rounds, Ruler, Timed,
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

/// The last CPU: where there are two, the first one takes the devices' interrupts.
pub fn open() -> Result<Markers, Box<dyn Error>> {
    let cpu = std::thread::available_parallelism()?.get() - 1;
    Markers::open(cpu, Duration::from_secs(10)).map_err(|error| error.to_string().into())
}

/// A code by its symbol in the module.
fn symbol(code: &Code) -> String {
    let guard = match code.guard {
        Guard::Bare => "bare",
        Guard::Preemption => "preemption",
        Guard::Own => "own",
        Guard::Interrupts => "interrupts",
    };
    let around = match code.around {
        Around::Nothing => "nothing",
        Around::Memcpy => "memcpy",
    };
    format!("{}_{guard}_{around}_{}", code.name.replace('-', "_"), code.placement)
}

fn time(markers: &mut Markers, calls: Vec<Call>) -> Result<Timed, RunError> {
    let count = calls.len();
    let timed = markers.run(&Rounds {
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

/// Calls of the counting probe in one run of some codes.
fn hits(markers: &mut Markers, codes: &[&Code]) -> Result<u64, RunError> {
    let calls = codes.iter().map(|code| Call { target: (*code).into(), loops: LOOPS }).collect();
    Ok(time(markers, calls)?.hits)
}

/// Each design, by the first of its codes.
fn designs(codes: &[Code]) -> Vec<(Design, String)> {
    let mut designs: Vec<(Design, String)> =
        codes.iter().map(|code| (code.design, code.name.clone())).collect();
    designs.dedup();
    designs
}

/// Whether the kernel compares the types of functions where they are called (CFI): only such a one has this function.
fn compares_types() -> std::io::Result<bool> {
    Ok(std::fs::read_to_string("/proc/kallsyms")?.contains(" handle_cfi_failure\n"))
}

/// Whether a switch did what it should; the base has nothing to switch, a tracepoint no format, and the probe that takes its
/// arguments without an ellipsis is of another type than what is called.
fn switch(markers: &mut Markers, design: &(Design, String), probe: Probe) -> Result<bool, Box<dyn Error>> {
    let other_type = probe == Probe::Direct && compares_types()?;
    let expected = match design.1.as_str() {
        "none" => false,
        "tracepoint" => !other_type && !matches!(probe, Probe::Varargs | Probe::Format),
        _ => !other_type,
    };
    match markers.switch(design.0, Some(probe)) {
        Ok(()) if expected => Ok(true),
        Err(RunError::System { errno: 95, .. }) if !expected => Ok(false),
        other => Err(format!("{} with {probe:?}: {other:?}", design.1).into()),
    }
}

/// Every code calls its probe once an iteration where it is on, and not where it is off.
pub fn counts() -> Outcome {
    let mut markers = open()?;
    let codes = markers.codes().to_vec();
    let designs = designs(&codes);
    let names: Vec<&str> = designs.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["flag", "immediate", "none", "static-key", "tracepoint"]);
    assert_eq!(codes.len(), (3 * 3 + 2) * 2 * PLACEMENTS);
    let all = u64::from(LOOPS * (WARM_UP + ROUNDS));
    for design in &designs {
        let own: Vec<&Code> = codes.iter().filter(|code| code.design == design.0).collect();
        let silent = |markers: &mut Markers, state: &str| -> Outcome {
            match hits(markers, &own)? {
                0 => Ok(()),
                calls => Err(format!("{}, {state}: {calls} calls counted", design.1).into()),
            }
        };
        silent(&mut markers, "at first")?;
        for probe in Probe::ALL {
            match (switch(&mut markers, design, probe)?, probe) {
                (true, Probe::Counting) => {
                    for code in &own {
                        let calls = hits(&mut markers, &[code])?;
                        if calls != all {
                            return Err(format!("{}: {calls} calls, not {all}", symbol(code)).into());
                        }
                    }
                }
                (true, _) => silent(&mut markers, "with another probe")?,
                (false, _) => {}
            }
        }
        markers.switch(design.0, None)?;
        silent(&mut markers, "dormant again")?;
    }
    rulers(&mut markers, &codes)?;
    println!("{} codes", codes.len());
    Ok(())
}

/// Rulers run between codes, in the order asked for.
fn rulers(markers: &mut Markers, codes: &[Code]) -> Outcome {
    let rulers = [Ruler::ImulShort, Ruler::ImulLong, Ruler::AddShort, Ruler::AddLong, Ruler::Sentinel];
    let mut calls: Vec<Call> = rulers.map(|ruler| Call { target: ruler.into(), loops: 50 }).to_vec();
    calls.push(Call { target: (&codes[0]).into(), loops: 1 });
    let samples = time(markers, calls)?.samples;
    let ordered = samples.windows(2).all(|pair| pair[0].end < pair[1].start);
    if ordered { Ok(()) } else { Err("samples are not in their order".into()) }
}

/// The bytes of each code, dormant and enabled.
pub fn bytes() -> Outcome {
    let mut markers = open()?;
    let codes = markers.codes().to_vec();
    let read = |markers: &Markers| -> Result<Vec<Vec<u8>>, RunError> {
        codes.iter().map(|code| markers.bytes(code)).collect()
    };
    let dormant = read(&markers)?;
    for (code, bytes) in codes.iter().zip(&dormant) {
        placed(code, bytes)?;
    }
    for design in designs(&codes) {
        if !switch(&mut markers, &design, Probe::Counting)? {
            continue;
        }
        let enabled = read(&markers)?;
        markers.switch(design.0, None)?;
        for ((code, dormant), enabled) in codes.iter().zip(&dormant).zip(&enabled) {
            // What of another design has changed is a fault, too.
            let name = if code.design == design.0 { code.name.as_str() } else { "none" };
            patched(code, name, dormant, enabled)
                .map_err(|error| format!("{}, {} on: {error}", symbol(code), design.1))?;
        }
        if read(&markers)? != dormant {
            return Err(format!("{}: not as before", design.1).into());
        }
    }
    println!("{} codes", codes.len());
    Ok(())
}

fn decode(code: &Code, bytes: &[u8]) -> Vec<Instruction> {
    Decoder::with_ip(64, bytes, code.address, DecoderOptions::NONE).iter().collect()
}

/// Whole instructions up to the end, and a loop that begins where it is said to.
fn placed(code: &Code, bytes: &[u8]) -> Outcome {
    let instructions = decode(code, bytes);
    let ends = instructions.last().is_some_and(|last| {
        !last.is_invalid()
            && last.next_ip() == code.address + bytes.len() as u64
            && !matches!(last.flow_control(), FlowControl::Next | FlowControl::ConditionalBranch)
    });
    let back =
        instructions.iter().filter(|at| at.is_jcc_short_or_near() && at.near_branch_target() < at.ip());
    let start = back.map(|at| at.near_branch_target()).min();
    if instructions.iter().any(Instruction::is_invalid) || !ends {
        return Err(format!("{} is not whole", symbol(code)).into());
    }
    if start.map(|at| at % LINE) != Some(code.placement.into()) {
        return Err(format!("the loop of {} begins at {start:x?}", symbol(code)).into());
    }
    Ok(())
}

/// What a design changes when it is switched on, and nothing else.
fn patched(code: &Code, design: &str, dormant: &[u8], enabled: &[u8]) -> Outcome {
    let before = decode(code, dormant);
    let after = decode(code, enabled);
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
        nop && matches!(before.len(), 2 | 5)
            && after.mnemonic() == Mnemonic::Jmp
            && inside(after.near_branch_target())
    };
    // A tracepoint with one listener calls it itself; before, it called what goes through a list.
    let to_listener = |(before, after): &(&Instruction, &Instruction)| {
        before.mnemonic() == Mnemonic::Call && after.mnemonic() == Mnemonic::Call
    };
    let as_it_should = match (design, changed.as_slice()) {
        ("none" | "flag", []) => true,
        ("static-key", [one]) => to_jump(one),
        ("tracepoint", [one, more @ ..]) => to_jump(one) && more.len() <= 1 && more.iter().all(to_listener),
        ("immediate", [(before, after)]) => {
            let one_byte =
                dormant.iter().zip(enabled).filter(|(dormant, enabled)| dormant != enabled).count();
            let immediate = |one: &Instruction| {
                (one.mnemonic() == Mnemonic::Mov && one.op1_kind() == OpKind::Immediate8)
                    .then(|| one.immediate8())
            };
            one_byte == 1 && immediate(before) == Some(0) && immediate(after) == Some(1)
        }
        _ => false,
    };
    let told: Vec<String> = changed.iter().map(|(before, after)| format!("{before} to {after}")).collect();
    if as_it_should { Ok(()) } else { Err(format!("changed: {told:?}").into()) }
}

/// Codes are as long as another program counts them: lines `SYMBOL BYTES` in a file.
pub fn lengths(path: &str) -> Outcome {
    let counted = std::fs::read_to_string(path)?;
    let codes = open()?.codes().to_vec();
    for code in &codes {
        let line = format!("{} {}", symbol(code), code.len);
        if !counted.lines().any(|other| other == line) {
            return Err(format!("it does not say {line}").into());
        }
    }
    println!("{} codes", codes.len());
    Ok(())
}
