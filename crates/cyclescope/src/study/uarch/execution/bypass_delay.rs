//! Results that go from one kind of unit to another.

use crate::study::uarch::test::rate::{Contrast, Row, Way};
use crate::study::uarch::test::text::{repeated, way};
use crate::study::uarch::test::{Look, Part, Test};

/// No value of which an operation would take longer.
const ZEROS: &str = "pxor xmm2, xmm2; pxor xmm3, xmm3; pxor xmm6, xmm6; pxor xmm7, xmm7";

// Both programs have the same instructions: in turns they cross over four times, and in pairs twice.
pub(in crate::study::uarch) const TEST: Test = Test {
    name: "bypass_delay",
    about: "what a result costs that goes to a unit of another kind, and back",
    definition: "core cycles by which a chain takes longer that crosses over once more and back; how much of it is in each direction is not known, and an operation that is faster behind its like counts too",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Execution,
    look: Look::Contrast(Contrast {
        rows: &[
            Row::new(
                "integer_add_and_float_add",
                1,
                1.0,
                &[
                    way!(
                        ZEROS,
                        "paddd xmm2, xmm6; addps xmm2, xmm6; paddd xmm2, xmm6; addps xmm2, xmm6",
                        less "paddd xmm2, xmm6; paddd xmm2, xmm6; addps xmm2, xmm6; addps xmm2, xmm6"
                    ),
                    way!(
                        ZEROS,
                        "psubd xmm3, xmm7; subpd xmm3, xmm7; psubd xmm3, xmm7; subpd xmm3, xmm7",
                        less "psubd xmm3, xmm7; psubd xmm3, xmm7; subpd xmm3, xmm7; subpd xmm3, xmm7"
                    ),
                ],
            ),
            Row::new(
                "integer_add_and_float_multiply",
                1,
                1.0,
                &[
                    way!(
                        ZEROS,
                        "paddd xmm2, xmm6; mulps xmm2, xmm6; paddd xmm2, xmm6; mulps xmm2, xmm6",
                        less "paddd xmm2, xmm6; paddd xmm2, xmm6; mulps xmm2, xmm6; mulps xmm2, xmm6"
                    ),
                    way!(
                        ZEROS,
                        "psubd xmm3, xmm7; mulpd xmm3, xmm7; psubd xmm3, xmm7; mulpd xmm3, xmm7",
                        less "psubd xmm3, xmm7; psubd xmm3, xmm7; mulpd xmm3, xmm7; mulpd xmm3, xmm7"
                    ),
                ],
            ),
            Row::new(
                "integer_and_and_float_add",
                1,
                1.0,
                &[
                    way!(
                        ZEROS,
                        "pand xmm2, xmm6; addps xmm2, xmm6; pand xmm2, xmm6; addps xmm2, xmm6",
                        less "pand xmm2, xmm6; pand xmm2, xmm6; addps xmm2, xmm6; addps xmm2, xmm6"
                    ),
                    way!(
                        ZEROS,
                        "por xmm3, xmm7; subpd xmm3, xmm7; por xmm3, xmm7; subpd xmm3, xmm7",
                        less "por xmm3, xmm7; por xmm3, xmm7; subpd xmm3, xmm7; subpd xmm3, xmm7"
                    ),
                ],
            ),
            Row::new(
                "float_and_and_integer_add",
                1,
                1.0,
                &[
                    way!(
                        ZEROS,
                        "andps xmm2, xmm6; paddd xmm2, xmm6; andps xmm2, xmm6; paddd xmm2, xmm6",
                        less "andps xmm2, xmm6; andps xmm2, xmm6; paddd xmm2, xmm6; paddd xmm2, xmm6"
                    ),
                    way!(
                        ZEROS,
                        "orpd xmm3, xmm7; psubd xmm3, xmm7; orpd xmm3, xmm7; psubd xmm3, xmm7",
                        less "orpd xmm3, xmm7; orpd xmm3, xmm7; psubd xmm3, xmm7; psubd xmm3, xmm7"
                    ),
                ],
            ),
            Row::new(
                "shuffle_and_float_add",
                1,
                1.0,
                &[
                    way!(
                        ZEROS,
                        "pshufd xmm2, xmm2, 27; addps xmm2, xmm6; pshufd xmm2, xmm2, 27; addps xmm2, xmm6",
                        less "pshufd xmm2, xmm2, 27; pshufd xmm2, xmm2, 27; addps xmm2, xmm6; addps xmm2, xmm6"
                    ),
                    way!(
                        ZEROS,
                        "pshufd xmm3, xmm3, 78; subpd xmm3, xmm7; pshufd xmm3, xmm3, 78; subpd xmm3, xmm7",
                        less "pshufd xmm3, xmm3, 78; pshufd xmm3, xmm3, 78; subpd xmm3, xmm7; subpd xmm3, xmm7"
                    ),
                ],
            ),
        ],
        apart: 0.25,
        apart_share: 0.1,
    }),
};
