//! Mask registers for results that are not retired.

use crate::test::{Filler, Look, Part, Test, Window};
use crate::window::integer_registers::HEADS;
use iced_x86::CpuidFeature::{AVX512BW, AVX512DQ};

const KADD: Filler = Filler {
    needs: &[AVX512BW],
    ..Filler::plain(
        "kaddd",
        &["kaddd k1, k6, k7", "kaddd k2, k6, k7", "kaddd k3, k6, k7", "kaddd k4, k6, k7"],
        &["rob"],
    )
};
const KOR: Filler = Filler {
    needs: &[AVX512DQ],
    ..Filler::plain(
        "korb",
        &["korb k1, k6, k7", "korb k2, k6, k7", "korb k3, k6, k7", "korb k4, k6, k7"],
        &["rob"],
    )
};

pub(crate) const TEST: Test = Test {
    name: "mask_registers",
    about: "how many results in mask registers the core holds until they retire",
    definition: "spare mask registers: those beside the architectural ones and those that the core keeps for itself",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::Window,
    look: Look::Overlap(Window { beside: 0, leads: &[0], heads: HEADS, fillers: &[KADD, KOR], most: 500 }),
};
