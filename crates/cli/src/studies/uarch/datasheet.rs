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

const fn figure(name: &'static str, parts: &'static [FigurePart]) -> CoreFigure {
    CoreFigure { name, parts }
}

const fn part(keys: &'static [&'static str], unit: &'static str) -> FigurePart {
    FigurePart { keys, unit }
}

/// The groups, in the order in which an instruction passes them.
const SHEET_GROUPS: &[SheetGroup] = &[
    SheetGroup {
        title: "Front end",
        figures: &[
            figure("instruction cache", &[part(&["instruction_cache.1.size"], "")]),
            figure(
                "fetch",
                &[part(&["fetch_rate.4_bytes", "fetch_rate.6_bytes", "fetch_rate.8_bytes"], "bytes a cycle")],
            ),
            figure(
                "decoders",
                &[part(
                    &["decode_rate.1_byte", "decode_rate.2_bytes", "decode_rate.3_bytes", "decode_rate.4_bytes"],
                    "instructions a cycle",
                )],
            ),
            figure("µop cache", &[part(&["uop_cache.1.size"], ""), part(&["uop_cache_ways"], "ways")]),
            figure("loop buffer", &[part(&["loop_buffer"], "")]),
            figure("code translations", &[part(&["code_tlb"], "")]),
            figure("dispatch", &[part(&["dispatch_rate.instructions"], "instructions a cycle")]),
        ],
    },
    SheetGroup {
        title: "Branches",
        figures: &[
            figure(
                "jump targets",
                &[part(&["branch_targets.1.size"], ""), part(&["branch_targets.1.cost"], "cycles a jump")],
            ),
            figure(
                "conditional targets",
                &[part(&["conditional_targets.1.size"], ""), part(&["conditional_targets.1.cost"], "cycles a branch")],
            ),
            figure("indirect targets in turn", &[part(&["indirect_history.1.size"], "")]),
            figure("return stack", &[part(&["return_stack"], "")]),
            figure("counted loops", &[part(&["counted_loops"], "iterations")]),
            figure("predicted pattern", &[part(&["direction_predictor.1.size"], "branches")]),
            figure(
                "misprediction",
                &[part(&["misprediction"], "cycles"), part(&["misprediction_decoded"], "cycles from decoders")],
            ),
            figure(
                "branches a cycle",
                &[part(&["branch_rate.not_taken"], "not taken"), part(&["branch_rate.in_turn"], "in turn")],
            ),
        ],
    },
    SheetGroup {
        title: "Window",
        figures: &[
            figure("reorder buffer", &[part(&["rob"], "")]),
            figure("spare integer registers", &[part(&["int_registers"], "")]),
            figure(
                "spare vector registers",
                &[
                    part(&["vector_registers_xmm"], "xmm"),
                    part(&["vector_registers_ymm"], "ymm"),
                    part(&["vector_registers_zmm"], "zmm"),
                ],
            ),
            figure("spare mask registers", &[part(&["mask_registers"], "")]),
            figure("renamed flags", &[part(&["flags"], "")]),
            figure("loads in flight", &[part(&["loads_in_flight"], "")]),
            figure("stores in flight", &[part(&["stores_in_flight"], "")]),
            figure("taken branches in flight", &[part(&["taken_branches_in_flight"], "")]),
            figure("integer scheduler", &[part(&["integer_scheduler"], "")]),
            figure("load scheduler", &[part(&["load_scheduler"], "")]),
            figure("vector scheduler", &[part(&["vector_scheduler"], "")]),
            figure("retirement", &[part(&["retire_rate.instructions"], "instructions a cycle")]),
        ],
    },
    SheetGroup {
        title: "Execution",
        figures: &[
            figure("additions a cycle", &[part(&["mixed_throughput.alu"], "")]),
            figure(
                "renamed moves",
                &[part(&["rename_rate.move_64_bits"], "a cycle"), part(&["rename_rate.move_xmm"], "xmm a cycle")],
            ),
            figure(
                "renamed zeros",
                &[part(&["rename_rate.zero_64_bits"], "a cycle"), part(&["rename_rate.zero_xmm"], "xmm a cycle")],
            ),
            figure("integer to float bypass", &[part(&["bypass_delay.integer_add_and_float_add"], "cycles")]),
            figure("subnormal product", &[part(&["subnormals.multiply_result"], "cycles more")]),
        ],
    },
    SheetGroup {
        title: "Memory",
        figures: &[
            figure(
                "first data cache",
                &[
                    part(&["data_caches.1.size"], ""),
                    part(&["l1d_ways"], "ways"),
                    part(&["data_caches.1.cost"], "cycles"),
                ],
            ),
            figure(
                "second cache",
                &[
                    part(&["data_caches.2.size"], ""),
                    part(&["l2_ways"], "ways"),
                    part(&["data_caches.2.cost"], "cycles"),
                ],
            ),
            figure("third cache", &[part(&["data_caches.3.size"], ""), part(&["data_caches.3.cost"], "cycles")]),
            figure("memory", &[part(&["data_caches.beyond.cost"], "cycles")]),
            figure(
                "loads a cycle",
                &[
                    part(&["load_rate.8_bytes"], "of 8 bytes"),
                    part(&["load_rate.32_bytes"], "of 32 bytes"),
                    part(&["load_rate.64_bytes"], "of 64"),
                ],
            ),
            figure(
                "stores a cycle",
                &[
                    part(&["store_rate.8_bytes"], "of 8 bytes"),
                    part(&["store_rate.32_bytes"], "of 32 bytes"),
                    part(&["store_rate.64_bytes"], "of 64"),
                ],
            ),
            figure(
                "read bytes a cycle",
                &[
                    part(&["read_bandwidth.16_KiB"], "first"),
                    part(&["read_bandwidth.128_KiB"], "second"),
                    part(&["read_bandwidth.8_MiB"], "third"),
                    part(&["read_bandwidth.64_MiB"], "memory"),
                ],
            ),
            figure(
                "data translations",
                &[
                    part(&["data_tlb.1.size"], ""),
                    part(&["data_tlb.2.size"], ""),
                    part(&["data_tlb.2.cost"], "cycles for the second"),
                ],
            ),
            figure("misses in flight", &[part(&["misses_in_flight"], "")]),
            figure("write-combining buffers", &[part(&["write_combining"], "lines")]),
            figure(
                "store to load",
                &[
                    part(&["store_forwarding.8_bytes"], "cycles"),
                    part(&["store_forwarding.16_bytes"], "cycles of 16 bytes"),
                ],
            ),
            figure("failed forwarding", &[part(&["failed_forwarding.8_of_4_bytes"], "cycles more")]),
            figure("4 KiB aliasing", &[part(&["false_dependence.4_KiB"], "cycles more")]),
            figure("load across lines", &[part(&["split_access.load_8_lines"], "cycles more")]),
            figure("store across pages", &[part(&["split_access.store_8_pages"], "cycles more")]),
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
