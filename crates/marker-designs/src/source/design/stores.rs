//! ```text
//! mov qword ptr [line 0], 0
//! mov qword ptr [line 1], 0
//! …
//! ```
//!
//! Stores to otherwise unused cache lines, in a marker's place. Some loops change speed when a few
//! more stores wait after theirs. A copy of 4096 bytes whose parts cross cache lines took 150
//! cycles on Zen 5. It took 138 with 8 to 12 stores to other lines between two copies. An enabled
//! marker stores as well, so its cost contains this difference. The time of these loops shows
//! whether a loop is of this kind.

use super::definition::{DesignLanguage, Enabling, SiteDesign};

macro_rules! stores {
    ($name:literal, $about:literal, $site:expr) => {
        SiteDesign {
            name: $name,
            about: $about,
            source: "",
            language: DesignLanguage::C,
            declarations: "static volatile long NAME_lines[12][64 / sizeof(long)] __attribute__((aligned(64)));",
            base: "",
            site: $site,
            enabling: Enabling::Never,
            package: None,
            only: &[],
        }
    };
}

macro_rules! four {
    ($one:literal, $two:literal, $three:literal, $four:literal) => {
        concat!(
            "NAME_lines[",
            $one,
            "][0] = 0; NAME_lines[",
            $two,
            "][0] = 0; ",
            "NAME_lines[",
            $three,
            "][0] = 0; NAME_lines[",
            $four,
            "][0] = 0; "
        )
    };
}

pub(super) const FOUR: SiteDesign =
    stores!("stores-4", "no marker: stores to 4 cache lines in its place", four!(0, 1, 2, 3));
pub(super) const EIGHT: SiteDesign = stores!(
    "stores-8",
    "no marker: stores to 8 cache lines in its place",
    concat!(four!(0, 1, 2, 3), four!(4, 5, 6, 7))
);
pub(super) const TWELVE: SiteDesign = stores!(
    "stores-12",
    "no marker: stores to 12 cache lines in its place",
    concat!(four!(0, 1, 2, 3), four!(4, 5, 6, 7), four!(8, 9, 10, 11))
);
