//! Traps: snippets that fool timing programs. Each must be read right, or refused, or carry a
//! fitting caveat.
//!
//! Right means equal to a reference in which start-up, buffers and the ends of bodies have a
//! quarter of the effect. It is the same snippet in bodies up to four times as long, with the bend
//! of its slopes as a margin.

use crate::costs::shorten_code;
use crate::lab::{Lab, SectionResult};
use cyclescope::caveat::CaveatKind;
use cyclescope::record::exit;
use cyclescope::run::{RunOutcome, RunRequest};
use cyclescope::snippet::Snippet;
use std::time::Duration;

/// A snippet and its fitting caveats.
struct Trap {
    code: &'static str,
    init: &'static str,
    fits: &'static [CaveatKind],
}

const LAYOUT_CAVEATS: &[CaveatKind] = &[CaveatKind::LayoutDependent, CaveatKind::TwoModes];
const BUFFER_CAVEATS: &[CaveatKind] =
    &[CaveatKind::Nonlinear, CaveatKind::NotRepeatable, CaveatKind::LayoutDependent, CaveatKind::TwoModes];
const NO_CAVEATS: &[CaveatKind] = &[];

/// Pairs of a store and a load through one base: renamed ones and falsely renamed ones.
const TRAPS: &[Trap] = &[
    Trap { code: "movnti [r14], rax", init: "", fits: BUFFER_CAVEATS },
    Trap { code: "clflush [r14]", init: "", fits: BUFFER_CAVEATS },
    Trap { code: "nop", init: "", fits: LAYOUT_CAVEATS },
    Trap { code: "nop; nop", init: "", fits: LAYOUT_CAVEATS },
    Trap { code: "movabs rax, 0x123456789abcdef0", init: "", fits: LAYOUT_CAVEATS },
    Trap { code: "jmp $+2", init: "", fits: BUFFER_CAVEATS },
    Trap { code: "jmp $+2; nop; nop; nop; nop; nop; nop", init: "", fits: BUFFER_CAVEATS },
    Trap { code: "call 1f; jmp 2f; 1: ret; 2:", init: "", fits: BUFFER_CAVEATS },
    Trap { code: "add rax, [r14]", init: "", fits: LAYOUT_CAVEATS },
    Trap { code: "mov [r14], rax; mov rbx, [r14+1024]", init: "", fits: LAYOUT_CAVEATS },
    Trap { code: "mov [r14], rax; mov rbx, [r14+4096]", init: "", fits: LAYOUT_CAVEATS },
    Trap { code: "mulsd xmm0, xmm1", init: "mov eax, 1; movq xmm0, rax", fits: NO_CAVEATS },
    Trap { code: "mov [r14], rax; mov rax, [r14]", init: "", fits: BUFFER_CAVEATS },
    Trap { code: "mov [r14], rax; mov rax, [rdi]", init: "mov rdi, r14", fits: BUFFER_CAVEATS },
    Trap { code: "push rax; pop rax", init: "", fits: BUFFER_CAVEATS },
    Trap { code: "cmovz rax, rbx", init: "", fits: NO_CAVEATS },
];

/// How much longer the reference's bodies are, and the largest size of its longest: beyond an op
/// cache another part of the core limits the speed.
const REFERENCE_FACTOR: usize = 4;
const REFERENCE_BYTES: usize = 12 << 10;
/// A reading agrees with the reference within this number of core cycles or this share, plus both
/// half widths.
const AGREEMENT: [f64; 2] = [0.02, 0.02];

/// The result of a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrapVerdict {
    Right,
    Refused,
    Warned,
    Wrong,
}

/// Runs the section.
pub fn check_traps(lab: &mut Lab) -> SectionResult {
    println!("{:<44} {:>20} {:>20} {:>4}  {:<8} caveats", "snippet", "read", "in long bodies", "exit", "verdict");
    let (mut held, mut tried) = (0, 0);
    for trap in TRAPS {
        let Some(snippet) = lab.assemble_snippet(trap.code, trap.init)? else { continue };
        let run = lab.measure(&snippet, &RunRequest::default())?;
        let reference = measure_reference(lab, &snippet, run.measurement.acquisition.units[0])?;
        let codes: Vec<CaveatKind> = run.caveats.iter().map(|caveat| caveat.code).collect();
        let verdict = judge_reading(cost_interval(&run), reference, &codes, trap.fits);
        tried += 1;
        held += usize::from(verdict != TrapVerdict::Wrong);
        let code = if run.falls_short() { exit::FELL_SHORT } else { exit::DONE };
        let show = |cost: Option<[f64; 2]>| match cost {
            Some([value, half]) => format!("{value:.4} ± {half:.4}"),
            None => "no number".to_string(),
        };
        println!(
            "{:<44} {:>20} {:>20} {code:>4}  {:<8} {}",
            shorten_code(trap.code),
            show(cost_interval(&run)),
            show(reference),
            format!("{verdict:?}").to_lowercase(),
            codes.iter().map(|code| format!("{code:?}")).collect::<Vec<_>>().join(", ")
        );
    }
    let figure = format!("{held} of {tried}");
    lab.record_demand("traps are right, refused, or carry the caveat that fits", Some(held == tried), figure);
    Ok(())
}

/// Value and half width of the snippet in bodies of fixed lengths, [`REFERENCE_FACTOR`] times as
/// long as one of `unit` copies.
fn measure_reference(lab: &mut Lab, snippet: &Snippet, unit: usize) -> SectionResult<Option<[f64; 2]>> {
    let most = REFERENCE_BYTES / 4 / snippet.code().len();
    let unroll = Some((REFERENCE_FACTOR * unit).min(most.max(unit)));
    let budget = Some(Duration::from_millis(500));
    let request = RunRequest { unroll, budget, warm_up: Some(24), ..RunRequest::default() };
    let estimate = lab.measure(snippet, &request)?.measurement.estimate;
    Ok(estimate.map(|found| [found.cost.value, found.cost.half_width().hypot(found.bend.value)]))
}

/// Value and half width, if `run` gives a number.
fn cost_interval(run: &RunOutcome) -> Option<[f64; 2]> {
    run.estimate().map(|estimate| [estimate.cost.value, estimate.cost.half_width()])
}

fn judge_reading(
    read: Option<[f64; 2]>,
    long: Option<[f64; 2]>,
    codes: &[CaveatKind],
    fits: &[CaveatKind],
) -> TrapVerdict {
    let Some([value, half]) = read else { return TrapVerdict::Refused };
    let agrees = long.is_some_and(|[truth, other]| {
        (value - truth).abs() <= AGREEMENT[0].max(AGREEMENT[1] * truth) + half.hypot(other)
    });
    match agrees {
        true => TrapVerdict::Right,
        false if codes.iter().any(|code| fits.contains(code)) => TrapVerdict::Warned,
        false => TrapVerdict::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_off_needs_its_caveat() {
        let long = Some([42.0, 0.1]);
        assert_eq!(judge_reading(None, long, &[], BUFFER_CAVEATS), TrapVerdict::Refused);
        assert_eq!(judge_reading(Some([42.3, 0.1]), long, &[], BUFFER_CAVEATS), TrapVerdict::Right);
        assert_eq!(judge_reading(Some([1.9, 0.1]), long, &[], BUFFER_CAVEATS), TrapVerdict::Wrong);
        assert_eq!(judge_reading(Some([1.9, 0.1]), long, &[CaveatKind::Noisy], BUFFER_CAVEATS), TrapVerdict::Wrong);
        assert_eq!(
            judge_reading(Some([1.9, 0.1]), long, &[CaveatKind::Nonlinear], BUFFER_CAVEATS),
            TrapVerdict::Warned
        );
        assert_eq!(judge_reading(Some([1.9, 0.1]), None, &[], BUFFER_CAVEATS), TrapVerdict::Wrong);
    }

    #[test]
    fn every_trap_assembles() {
        for trap in TRAPS {
            for text in [trap.code, trap.init] {
                cyclescope::asm::parse_assembly(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            }
        }
    }
}
