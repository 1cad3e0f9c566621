//! Code that an indirect branch can reach: every offset counts, and no register facts hold.

use super::decode::{OffsetContents, OffsetDecoder};
use super::flow::RefusedOffset;
use super::instruction::find_general_reason;
use super::reason::RefusalReason;
use super::register_facts::RegisterFacts;

/// The first refused offset.
pub(super) fn find_hidden_refusal(bytes: &[u8]) -> Option<RefusedOffset> {
    let mut offsets = OffsetDecoder::new(bytes);
    (0..bytes.len()).find_map(|offset| {
        let found = match offsets.decode_at(offset) {
            OffsetContents::Cut => offsets.decode_cut_off(offset),
            found => Some(found),
        };
        find_reason(found.as_ref()).map(|reason| RefusedOffset { offset, reason })
    })
}

fn find_reason(found: Option<&OffsetContents>) -> Option<RefusalReason> {
    match found {
        None | Some(OffsetContents::Cut) => Some(RefusalReason::CutOff),
        Some(OffsetContents::Unknown) => Some(RefusalReason::UnknownEncoding),
        Some(OffsetContents::Instructions(instructions)) => {
            instructions.iter().find_map(|decoded| find_general_reason(&decoded.instruction, &RegisterFacts::default()))
        }
    }
}
