//! The datasheet: the figures of a vendor's optimisation guide, a line each.

use super::core_figure::{CoreFigure, FigurePart, FigureWords};
use super::record::UarchLine;
use crate::output::page::{TextPage, print_note};
use crate::output::terminal::escape_controls;
use crate::output::{Failure, Output, WIDTH, wrap_text};

/// Width of the names' column.
const NAME_WIDTH: usize = 24;

/// The figures of a part of the core.
struct SheetGroup {
    title: &'static str,
    figures: &'static [CoreFigure],
}

/// A line of the datasheet in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SheetLine {
    /// The part of the core.
    pub group: &'static str,
    /// The figure's name.
    pub name: &'static str,
    /// The figure.
    pub words: FigureWords,
}

/// The groups, in the order in which an instruction passes them.
const SHEET_GROUPS: &[SheetGroup] = &[
    SheetGroup {
        title: "Front end",
        figures: &[
            CoreFigure::new("instruction cache", &[FigurePart::new(&["instruction_cache.1.size"])]),
            CoreFigure::new(
                "fetch",
                &[FigurePart::in_unit(
                    &["fetch_rate.4_bytes", "fetch_rate.6_bytes", "fetch_rate.8_bytes"],
                    "bytes a cycle",
                )],
            ),
            CoreFigure::new(
                "decoders",
                &[FigurePart::in_unit(
                    &["decode_rate.1_byte", "decode_rate.2_bytes", "decode_rate.3_bytes", "decode_rate.4_bytes"],
                    "instructions a cycle",
                )],
            ),
            CoreFigure::new(
                "µop cache",
                &[FigurePart::new(&["uop_cache.1.size"]), FigurePart::in_unit(&["uop_cache_ways"], "ways")],
            ),
            CoreFigure::new("loop buffer", &[FigurePart::new(&["loop_buffer"])]),
            CoreFigure::new("code translations", &[FigurePart::new(&["code_tlb"])]),
            CoreFigure::new(
                "dispatch",
                &[FigurePart::in_unit(&["dispatch_rate.instructions"], "instructions a cycle")],
            ),
        ],
    },
    SheetGroup {
        title: "Branches",
        figures: &[
            CoreFigure::new(
                "jump targets",
                &[
                    FigurePart::new(&["branch_targets.1.size"]),
                    FigurePart::in_unit(&["branch_targets.1.cost"], "cycles a jump"),
                ],
            ),
            CoreFigure::new(
                "conditional targets",
                &[
                    FigurePart::new(&["conditional_targets.1.size"]),
                    FigurePart::in_unit(&["conditional_targets.1.cost"], "cycles a branch"),
                ],
            ),
            CoreFigure::new("indirect targets in turn", &[FigurePart::new(&["indirect_history.1.size"])]),
            CoreFigure::new("return stack", &[FigurePart::new(&["return_stack"])]),
            CoreFigure::new("counted loops", &[FigurePart::in_unit(&["counted_loops"], "iterations")]),
            CoreFigure::new("predicted pattern", &[FigurePart::in_unit(&["direction_predictor.1.size"], "branches")]),
            CoreFigure::new(
                "misprediction",
                &[
                    FigurePart::in_unit(&["misprediction"], "cycles"),
                    FigurePart::in_unit(&["misprediction_decoded"], "cycles from decoders"),
                ],
            ),
            CoreFigure::new(
                "branches a cycle",
                &[
                    FigurePart::in_unit(&["branch_rate.not_taken"], "not taken"),
                    FigurePart::in_unit(&["branch_rate.in_turn"], "in turn"),
                ],
            ),
        ],
    },
    SheetGroup {
        title: "Window",
        figures: &[
            CoreFigure::new("reorder buffer", &[FigurePart::new(&["rob"])]),
            CoreFigure::new("spare integer registers", &[FigurePart::new(&["int_registers"])]),
            CoreFigure::new(
                "spare vector registers",
                &[
                    FigurePart::in_unit(&["vector_registers_xmm"], "xmm"),
                    FigurePart::in_unit(&["vector_registers_ymm"], "ymm"),
                    FigurePart::in_unit(&["vector_registers_zmm"], "zmm"),
                ],
            ),
            CoreFigure::new("spare mask registers", &[FigurePart::new(&["mask_registers"])]),
            CoreFigure::new("renamed flags", &[FigurePart::new(&["flags"])]),
            CoreFigure::new("loads in flight", &[FigurePart::new(&["loads_in_flight"])]),
            CoreFigure::new("stores in flight", &[FigurePart::new(&["stores_in_flight"])]),
            CoreFigure::new("taken branches in flight", &[FigurePart::new(&["taken_branches_in_flight"])]),
            CoreFigure::new("integer scheduler", &[FigurePart::new(&["integer_scheduler"])]),
            CoreFigure::new("load scheduler", &[FigurePart::new(&["load_scheduler"])]),
            CoreFigure::new("vector scheduler", &[FigurePart::new(&["vector_scheduler"])]),
            CoreFigure::new(
                "retirement",
                &[FigurePart::in_unit(&["retire_rate.instructions"], "instructions a cycle")],
            ),
        ],
    },
    SheetGroup {
        title: "Execution",
        figures: &[
            CoreFigure::new("additions a cycle", &[FigurePart::in_unit(&["mixed_throughput.alu"], "")]),
            CoreFigure::new(
                "renamed moves",
                &[
                    FigurePart::in_unit(&["rename_rate.move_64_bits"], "a cycle"),
                    FigurePart::in_unit(&["rename_rate.move_xmm"], "xmm a cycle"),
                ],
            ),
            CoreFigure::new(
                "renamed zeros",
                &[
                    FigurePart::in_unit(&["rename_rate.zero_64_bits"], "a cycle"),
                    FigurePart::in_unit(&["rename_rate.zero_xmm"], "xmm a cycle"),
                ],
            ),
            CoreFigure::new(
                "integer to float bypass",
                &[FigurePart::in_unit(&["bypass_delay.integer_add_and_float_add"], "cycles")],
            ),
            CoreFigure::new(
                "subnormal product",
                &[FigurePart::in_unit(&["subnormals.multiply_result"], "cycles more")],
            ),
        ],
    },
    SheetGroup {
        title: "Memory",
        figures: &[
            CoreFigure::new(
                "first data cache",
                &[
                    FigurePart::new(&["data_caches.1.size"]),
                    FigurePart::in_unit(&["l1d_ways"], "ways"),
                    FigurePart::in_unit(&["data_caches.1.cost"], "cycles"),
                ],
            ),
            CoreFigure::new(
                "second cache",
                &[
                    FigurePart::new(&["data_caches.2.size"]),
                    FigurePart::in_unit(&["l2_ways"], "ways"),
                    FigurePart::in_unit(&["data_caches.2.cost"], "cycles"),
                ],
            ),
            CoreFigure::new(
                "third cache",
                &[FigurePart::new(&["data_caches.3.size"]), FigurePart::in_unit(&["data_caches.3.cost"], "cycles")],
            ),
            CoreFigure::new("memory", &[FigurePart::in_unit(&["data_caches.beyond.cost"], "cycles")]),
            CoreFigure::new(
                "loads a cycle",
                &[
                    FigurePart::in_unit(&["load_rate.8_bytes"], "of 8 bytes"),
                    FigurePart::in_unit(&["load_rate.32_bytes"], "of 32 bytes"),
                    FigurePart::in_unit(&["load_rate.64_bytes"], "of 64"),
                ],
            ),
            CoreFigure::new(
                "stores a cycle",
                &[
                    FigurePart::in_unit(&["store_rate.8_bytes"], "of 8 bytes"),
                    FigurePart::in_unit(&["store_rate.32_bytes"], "of 32 bytes"),
                    FigurePart::in_unit(&["store_rate.64_bytes"], "of 64"),
                ],
            ),
            CoreFigure::new(
                "read bytes a cycle",
                &[
                    FigurePart::in_unit(&["read_bandwidth.16_KiB"], "first"),
                    FigurePart::in_unit(&["read_bandwidth.128_KiB"], "second"),
                    FigurePart::in_unit(&["read_bandwidth.8_MiB"], "third"),
                    FigurePart::in_unit(&["read_bandwidth.64_MiB"], "memory"),
                ],
            ),
            CoreFigure::new(
                "data translations",
                &[
                    FigurePart::new(&["data_tlb.1.size"]),
                    FigurePart::new(&["data_tlb.2.size"]),
                    FigurePart::in_unit(&["data_tlb.2.cost"], "cycles for the second"),
                ],
            ),
            CoreFigure::new("misses in flight", &[FigurePart::new(&["misses_in_flight"])]),
            CoreFigure::new("write-combining buffers", &[FigurePart::in_unit(&["write_combining"], "lines")]),
            CoreFigure::new(
                "store to load",
                &[
                    FigurePart::in_unit(&["store_forwarding.8_bytes"], "cycles"),
                    FigurePart::in_unit(&["store_forwarding.16_bytes"], "cycles of 16 bytes"),
                ],
            ),
            CoreFigure::new(
                "failed forwarding",
                &[FigurePart::in_unit(&["failed_forwarding.8_of_4_bytes"], "cycles more")],
            ),
            CoreFigure::new("4 KiB aliasing", &[FigurePart::in_unit(&["false_dependence.4_KiB"], "cycles more")]),
            CoreFigure::new("load across lines", &[FigurePart::in_unit(&["split_access.load_8_lines"], "cycles more")]),
            CoreFigure::new(
                "store across pages",
                &[FigurePart::in_unit(&["split_access.store_8_pages"], "cycles more")],
            ),
        ],
    },
];

/// The lines of the datasheet. Figures without a record are left out.
pub fn describe_datasheet(records: &[UarchLine]) -> Vec<SheetLine> {
    let lines = |group: &'static SheetGroup| {
        let of = move |figure: &CoreFigure| {
            figure.describe(records).map(|words| SheetLine { group: group.title, name: figure.name, words })
        };
        group.figures.iter().filter_map(of)
    };
    SHEET_GROUPS.iter().flat_map(lines).collect()
}

/// Prints the datasheet.
pub fn print_datasheet(records: &[UarchLine], output: &mut Output) -> Result<(), Failure> {
    let mut page = TextPage::new(output);
    let mut group = "";
    for line in describe_datasheet(records) {
        if line.group != group {
            group = line.group;
            page.output.write_line(page.output.bold(group))?;
        }
        let remark = if line.words.remark.is_empty() { String::new() } else { format!("  [{}]", line.words.remark) };
        let text = escape_controls(&format!("{}{remark}", line.words.text));
        let mut name = format!("  {:<NAME_WIDTH$}  ", line.name);
        for text in wrap_text(&text, WIDTH - NAME_WIDTH - 4) {
            page.output.write_line(format!("{name}{text}"))?;
            name = " ".repeat(NAME_WIDTH + 4);
        }
    }
    print_note(&mut page, "Intervals are shown where they are wide. --all prints every number, --why its reasons.")
}

#[cfg(test)]
mod tests {
    use super::super::simulated_line;
    use super::*;

    #[test]
    fn the_datasheet_fits_a_screen_and_names_existing_numbers() {
        let keys: Vec<&str> = SHEET_GROUPS
            .iter()
            .flat_map(|group| group.figures)
            .flat_map(|figure| figure.parts)
            .flat_map(|part| part.keys)
            .copied()
            .collect();
        let tests = cyclescope::study::find_study("uarch").and_then(|study| study.generic).expect("a study").subjects;
        for key in &keys {
            let test = key.split('.').next().unwrap();
            assert!(tests.iter().any(|(name, _)| *name == test), "{key}");
        }
        let lines: Vec<_> =
            keys.iter().map(|key| simulated_line(key, key, "found", Some([12.0, 3.0, 40.0]), "core_cycles")).collect();
        let records = UarchLine::from_lines(&lines);
        let printed = Output::capture(false, |output| print_datasheet(&records, output));
        let printed = String::from_utf8(printed).unwrap();
        assert!(printed.lines().all(|line| line.chars().count() <= WIDTH), "{printed}");
        let figures = describe_datasheet(&records).len();
        assert!(figures >= 40 && figures + SHEET_GROUPS.len() <= 58, "{figures}");
        assert!(printed.contains("reorder buffer"), "{printed}");
    }
}
