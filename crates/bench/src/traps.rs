//! Traps: snippets that fool timing programs. Each must be read right, or refused, or carry the caveat that fits.
//!
//! Right means: like a reference that start-up, buffers and the bodies' ends reach four times less, which is the
//! same snippet in bodies up to four times as long, taken with the bend of its own slopes as a margin.

use crate::costs::shorten;
use crate::lab::{Lab, Outcome};
use cyclescope::caveat::Code;
use cyclescope::record::exit;
use cyclescope::run::{Request, Run};
use cyclescope::snippet::Snippet;
use std::time::Duration;

/// A snippet and the caveats that fit it.
struct Trap {
    code: &'static str,
    init: &'static str,
    fits: &'static [Code],
}

const LAYOUT: &[Code] = &[Code::LayoutDependent, Code::TwoModes];
const BUFFER: &[Code] = &[Code::Nonlinear, Code::NotRepeatable, Code::LayoutDependent, Code::TwoModes];
const NONE: &[Code] = &[];

/// A store and a load through one base, as the renamed and the falsely renamed pair.
const TRAPS: &[Trap] = &[
    Trap { code: "movnti [r14], rax", init: "", fits: BUFFER },
    Trap { code: "clflush [r14]", init: "", fits: BUFFER },
    Trap { code: "nop", init: "", fits: LAYOUT },
    Trap { code: "nop; nop", init: "", fits: LAYOUT },
    Trap { code: "movabs rax, 0x123456789abcdef0", init: "", fits: LAYOUT },
    Trap { code: "jmp $+2", init: "", fits: BUFFER },
    Trap { code: "jmp $+2; nop; nop; nop; nop; nop; nop", init: "", fits: BUFFER },
    Trap { code: "call 1f; jmp 2f; 1: ret; 2:", init: "", fits: BUFFER },
    Trap { code: "add rax, [r14]", init: "", fits: LAYOUT },
    Trap { code: "mov [r14], rax; mov rbx, [r14+1024]", init: "", fits: LAYOUT },
    Trap { code: "mov [r14], rax; mov rbx, [r14+4096]", init: "", fits: LAYOUT },
    Trap { code: "mulsd xmm0, xmm1", init: "mov eax, 1; movq xmm0, rax", fits: NONE },
    Trap { code: "mov [r14], rax; mov rax, [r14]", init: "", fits: BUFFER },
    Trap { code: "mov [r14], rax; mov rax, [rdi]", init: "mov rdi, r14", fits: BUFFER },
    Trap { code: "push rax; pop rax", init: "", fits: BUFFER },
    Trap { code: "cmovz rax, rbx", init: "", fits: NONE },
];

/// How much longer the reference's bodies are, and the bytes that its longest may have: beyond an op cache another
/// part of the core sets the pace.
const LONGER: usize = 4;
const REFERENCE_BYTES: usize = 12 << 10;
/// A reading agrees with the reference within this number of core cycles or this share, beside both half widths.
const AGREE: [f64; 2] = [0.02, 0.02];

/// What became of a trap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Right,
    Refused,
    Warned,
    Wrong,
}

/// Runs the section.
pub fn run(lab: &mut Lab) -> Outcome {
    println!(
        "{:<44} {:>20} {:>20} {:>4}  {:<8} caveats",
        "snippet", "read", "in long bodies", "exit", "verdict"
    );
    let (mut held, mut tried) = (0, 0);
    for trap in TRAPS {
        let Some(snippet) = lab.snippet(trap.code, trap.init)? else { continue };
        let run = lab.measure(&snippet, &Request::default())?;
        let reference = reference(lab, &snippet, run.measurement.acquisition.units[0])?;
        let codes: Vec<Code> = run.caveats.iter().map(|caveat| caveat.code).collect();
        let verdict = verdict(cost(&run), reference, &codes, trap.fits);
        tried += 1;
        held += usize::from(verdict != Verdict::Wrong);
        let code = if run.is_noisy() { exit::NOISY } else { exit::DONE };
        let show = |cost: Option<[f64; 2]>| match cost {
            Some([value, half]) => format!("{value:.4} ± {half:.4}"),
            None => "no number".to_string(),
        };
        println!(
            "{:<44} {:>20} {:>20} {code:>4}  {:<8} {}",
            shorten(trap.code),
            show(cost(&run)),
            show(reference),
            format!("{verdict:?}").to_lowercase(),
            codes.iter().map(|code| format!("{code:?}")).collect::<Vec<_>>().join(", ")
        );
    }
    let figure = format!("{held} of {tried}");
    lab.demand("traps are right, refused, or carry the caveat that fits", Some(held == tried), figure);
    Ok(())
}

/// Value and half width of the snippet in bodies of fixed lengths, `LONGER` times as long as one of `unit` copies.
fn reference(lab: &mut Lab, snippet: &Snippet, unit: usize) -> Outcome<Option<[f64; 2]>> {
    let most = REFERENCE_BYTES / 4 / snippet.code().len();
    let unroll = Some((LONGER * unit).min(most.max(unit)));
    let budget = Some(Duration::from_millis(500));
    let request = Request { unroll, budget, warm_up: Some(24), ..Request::default() };
    let estimate = lab.measure(snippet, &request)?.measurement.estimate;
    Ok(estimate.map(|found| [found.cost.value, found.cost.half_width().hypot(found.bend.value)]))
}

/// Value and half width, where `run` gives a number.
fn cost(run: &Run) -> Option<[f64; 2]> {
    run.estimate().map(|estimate| [estimate.cost.value, estimate.cost.half_width()])
}

fn verdict(read: Option<[f64; 2]>, long: Option<[f64; 2]>, codes: &[Code], fits: &[Code]) -> Verdict {
    let Some([value, half]) = read else { return Verdict::Refused };
    let agrees = long.is_some_and(|[truth, other]| {
        (value - truth).abs() <= AGREE[0].max(AGREE[1] * truth) + half.hypot(other)
    });
    match agrees {
        true => Verdict::Right,
        false if codes.iter().any(|code| fits.contains(code)) => Verdict::Warned,
        false => Verdict::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_off_needs_its_caveat() {
        let long = Some([42.0, 0.1]);
        assert_eq!(verdict(None, long, &[], BUFFER), Verdict::Refused);
        assert_eq!(verdict(Some([42.3, 0.1]), long, &[], BUFFER), Verdict::Right);
        assert_eq!(verdict(Some([1.9, 0.1]), long, &[], BUFFER), Verdict::Wrong);
        assert_eq!(verdict(Some([1.9, 0.1]), long, &[Code::Noisy], BUFFER), Verdict::Wrong);
        assert_eq!(verdict(Some([1.9, 0.1]), long, &[Code::Nonlinear], BUFFER), Verdict::Warned);
        assert_eq!(verdict(Some([1.9, 0.1]), None, &[], BUFFER), Verdict::Wrong);
    }

    #[test]
    fn every_trap_assembles() {
        for trap in TRAPS {
            for text in [trap.code, trap.init] {
                cyclescope::asm::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            }
        }
    }
}
