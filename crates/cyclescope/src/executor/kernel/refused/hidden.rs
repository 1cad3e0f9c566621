//! Code that an indirect branch can reach: every offset counts, and nothing is known of the registers.

use super::decode::{Found, Offsets};
use super::facts::Facts;
use super::flow::At;
use super::instruction::{always, is_far};
use super::reason::Reason;

/// Whether some offset holds a branch that can change the size of the code segment.
pub(super) fn has_far(bytes: &[u8]) -> bool {
    let mut offsets = Offsets::new(bytes, 64);
    (0..bytes.len()).any(|offset| match offsets.at(offset) {
        Found::Steps(steps) => steps.iter().any(|step| is_far(&step.instruction)),
        Found::Cut => matches!(offsets.completed(offset), Some(Found::Steps(steps)) if steps.iter().any(|step| is_far(&step.instruction))),
        Found::Unknown => false,
    })
}

/// The first offset of all that is refused. With far branches the code may run as 32-bit or 16-bit code.
pub(super) fn refused(bytes: &[u8], far: bool) -> Option<At> {
    let sizes: &[u32] = if far { &[64, 32, 16] } else { &[64] };
    sizes.iter().find_map(|bits| {
        let mut offsets = Offsets::new(bytes, *bits);
        (0..bytes.len()).find_map(|offset| {
            let found = match offsets.at(offset) {
                Found::Cut => offsets.completed(offset),
                found => Some(found),
            };
            reason(found.as_ref()).map(|reason| At { offset, reason })
        })
    })
}

fn reason(found: Option<&Found>) -> Option<Reason> {
    match found {
        None | Some(Found::Cut) => Some(Reason::CutOff),
        Some(Found::Unknown) => Some(Reason::UnknownEncoding),
        Some(Found::Steps(steps)) => {
            steps.iter().find_map(|step| always(&step.instruction, &Facts::default()))
        }
    }
}
