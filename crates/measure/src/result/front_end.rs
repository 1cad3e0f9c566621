//! Whether decoders limit the copies of a snippet: the caveat `front_end`.

use super::caveat::{Caveat, CaveatKind};
use super::record::RunRecord;

/// Decoders limit copies that cost more than in a loop by this share.
const FRONT_END_SHARE: f64 = 0.02;
/// Instructions and bytes per cycle from which decoders may be the limit. The narrowest decoders of
/// cores since 2010 deliver three to four instructions and 16 bytes per cycle (optimisation manuals
/// of Intel and AMD).
const DECODED_INSTRUCTIONS: f64 = 2.5;
const DECODED_BYTES: f64 = 12.0;

/// Returns a caveat if the cost without a loop is the headline, and decoders limit it or may limit
/// it.
pub fn check_front_end(record: &RunRecord, instructions: usize) -> Option<Caveat> {
    let unrolled = record.unrolled.filter(|unrolled| *unrolled == record.cost)?;
    let (value, low) = (unrolled.value?, unrolled.low?);
    let bytes = record.bytes.split_whitespace().count() as f64;
    let (of_instructions, of_bytes) = (instructions as f64 / value, bytes / value);
    if of_instructions < DECODED_INSTRUCTIONS && of_bytes < DECODED_BYTES {
        return None;
    }
    let text = if let Some((looped, high)) = record.looped.and_then(|looped| looped.value.zip(looped.high)) {
        if low <= high * (1.0 + FRONT_END_SHARE) {
            return None;
        }
        format!(
            "copies that run once take {value:.3} core cycles, and {looped:.3} in a loop: the decoders limit them; \
             leave out --unroll for the cost in a loop"
        )
    } else {
        record.loop_obstacle.as_ref()?;
        format!(
            "copies that run once reach {of_instructions:.1} instructions and {of_bytes:.0} bytes per cycle, which \
             may be the decoders' limit"
        )
    };
    Some(Caveat { code: CaveatKind::FrontEnd, text })
}
