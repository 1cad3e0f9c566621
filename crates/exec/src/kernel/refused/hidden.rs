//! Code that an indirect branch can reach: every offset counts, and no register facts hold.

use super::decode::{Found, Offsets};
use super::facts::Facts;
use super::flow::At;
use super::instruction::always;
use super::reason::Reason;

/// The first refused offset.
pub(super) fn refused(bytes: &[u8]) -> Option<At> {
    let mut offsets = Offsets::new(bytes);
    (0..bytes.len()).find_map(|offset| {
        let found = match offsets.at(offset) {
            Found::Cut => offsets.completed(offset),
            found => Some(found),
        };
        reason(found.as_ref()).map(|reason| At { offset, reason })
    })
}

fn reason(found: Option<&Found>) -> Option<Reason> {
    match found {
        None | Some(Found::Cut) => Some(Reason::CutOff),
        Some(Found::Unknown) => Some(Reason::UnknownEncoding),
        Some(Found::Instructions(instructions)) => {
            instructions.iter().find_map(|decoded| always(&decoded.instruction, &Facts::default()))
        }
    }
}
