//! Draws the core as boxes: front end, instruction window, execution and memory, each with its
//! numbers, or verdicts for missing numbers.

use super::figure::FigureText;
use super::record::UarchLine;
use cyclescope::plot::{Arrow, BoxLine, Diagram, DiagramBox};
use cyclescope::study::uarch::TestedPart;

/// A box and its contents.
struct DiagramRoom {
    name: &'static str,
    /// The row, counted from the top.
    row: usize,
    /// The tests whose numbers it holds.
    tests: &'static [&'static str],
    /// A part of the core whose other numbers it also holds.
    rest: Option<TestedPart>,
}

/// The boxes, row by row.
const DIAGRAM_ROOMS: [DiagramRoom; 14] = [
    DiagramRoom { name: "Front end", row: 0, tests: &[], rest: Some(TestedPart::FrontEnd) },
    DiagramRoom {
        name: "Instructions a cycle",
        row: 0,
        tests: &[
            "decode_rate",
            "decode_double",
            "loop_rate",
            "length_changing_prefix",
            "dispatch_rate",
            "retire_rate",
            "branch_rate",
        ],
        rest: None,
    },
    DiagramRoom {
        name: "In flight",
        row: 1,
        tests: &["rob", "branches_in_flight", "taken_branches_in_flight"],
        rest: Some(TestedPart::Window),
    },
    DiagramRoom {
        name: "Registers",
        row: 2,
        tests: &[
            "int_registers",
            "vector_registers_xmm",
            "vector_registers_ymm",
            "vector_registers_zmm",
            "mask_registers",
            "mmx_registers",
            "x87_registers",
            "flags",
        ],
        rest: None,
    },
    DiagramRoom {
        name: "Schedulers",
        row: 2,
        tests: &["integer_scheduler", "load_scheduler", "vector_scheduler", "shared_schedulers"],
        rest: None,
    },
    DiagramRoom {
        name: "Loads and stores",
        row: 2,
        tests: &[
            "loads_in_flight",
            "loads_uncompleted",
            "stores_in_flight",
            "stores_in_flight_ymm",
            "stores_in_flight_zmm",
        ],
        rest: None,
    },
    DiagramRoom { name: "Caches and translation", row: 3, tests: &[], rest: Some(TestedPart::Memory) },
    DiagramRoom {
        name: "Loads and stores a cycle",
        row: 3,
        tests: &["load_rate", "cache_banks", "store_rate", "copy_rate", "daxpy"],
        rest: None,
    },
    DiagramRoom { name: "Latency of loads", row: 3, tests: &["load_latency", "strided_load"], rest: None },
    DiagramRoom {
        name: "Loads behind stores",
        row: 3,
        tests: &[
            "store_forwarding",
            "failed_forwarding",
            "memory_renaming",
            "memory_renaming_reach",
            "false_dependence",
            "disambiguation",
        ],
        rest: None,
    },
    DiagramRoom {
        name: "Bytes a cycle",
        row: 3,
        tests: &["read_bandwidth", "write_bandwidth", "copy_bandwidth", "nt_write_bandwidth"],
        rest: None,
    },
    DiagramRoom { name: "Execution", row: 4, tests: &[], rest: Some(TestedPart::Execution) },
    DiagramRoom {
        name: "Moves and zeros",
        row: 4,
        tests: &["rename_rate", "eliminated", "move_elimination", "copies_in_flight", "dependency_breaking"],
        rest: None,
    },
    DiagramRoom { name: "From unit to unit", row: 4, tests: &["bypass_delay", "mixed_throughput"], rest: None },
];

/// The paths of instructions and of data.
const DIAGRAM_ARROWS: [Arrow; 5] = [
    Arrow { from: (0, 0), to: 0 },
    Arrow { from: (1, 0), to: 0 },
    Arrow { from: (1, 0), to: 1 },
    Arrow { from: (1, 0), to: 2 },
    Arrow { from: (2, 2), to: 0 },
];

/// Draws the numbers of a machine.
pub fn draw_core(records: &[UarchLine], machine: &str) -> Diagram {
    let mut rows: Vec<Vec<DiagramBox>> = Vec::new();
    for room in &DIAGRAM_ROOMS {
        rows.resize_with(rows.len().max(room.row + 1), Vec::new);
        let mut entries: Vec<BoxLine> =
            records.iter().filter(|record| room.holds_record(record)).map(new_entry).collect();
        if entries.is_empty() {
            let name = "not measured".to_string();
            entries.push(BoxLine { name, figure: String::new(), faint: true });
        }
        rows[room.row].push(DiagramBox { name: room.name.to_string(), entries });
    }
    let title = "What this core holds and does".to_string();
    Diagram {
        title,
        note: format!("{machine}; numbers without a unit are entries"),
        rows,
        arrows: DIAGRAM_ARROWS.to_vec(),
    }
}

impl DiagramRoom {
    fn holds_record(&self, record: &UarchLine) -> bool {
        let named = |room: &DiagramRoom| room.tests.contains(&&*record.test);
        named(self) || self.rest == Some(record.part) && !DIAGRAM_ROOMS.iter().any(named)
    }
}

fn new_entry(record: &UarchLine) -> BoxLine {
    let number = record.value.format_short().filter(|_| record.is_found());
    BoxLine {
        name: record.describe_name(),
        faint: number.is_none(),
        figure: number.unwrap_or_else(|| record.verdict.name().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulated_lines;
    use super::*;

    fn drawn() -> Diagram {
        draw_core(&UarchLine::from_lines(&simulated_lines::simulated_lines()), "a machine")
    }

    #[test]
    fn every_number_is_in_the_box_of_its_test_or_part() {
        let drawn = drawn();
        let lines = |block: &DiagramBox| block.entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>();
        let blocks: Vec<(&str, String)> =
            drawn.rows.iter().flatten().map(|block| (block.name.as_str(), lines(block).join(", "))).collect();
        let expected = [
            ("Front end", "usable return stack"),
            ("Instructions a cycle", "not measured"),
            ("In flight", "reorder buffer"),
            ("Registers", "spare integer registers, spare mask registers"),
            ("Schedulers", "not measured"),
            ("Loads and stores", "not measured"),
            ("Caches and translation", "data caches, level 1: size, data caches, level 1: cost"),
            ("Loads and stores a cycle", "not measured"),
            ("Latency of loads", "not measured"),
            ("Loads behind stores", "not measured"),
            ("Bytes a cycle", "not measured"),
            ("Execution", "not measured"),
            ("Moves and zeros", "not measured"),
            ("From unit to unit", "not measured"),
        ];
        assert_eq!(blocks, expected.map(|(name, lines)| (name, lines.to_string())));
    }

    #[test]
    fn only_found_results_have_a_number() {
        let entries: Vec<BoxLine> = drawn().rows.concat().into_iter().flat_map(|block| block.entries).collect();
        let measured = entries.iter().filter(|entry| entry.name != "not measured");
        let figures: Vec<(&str, bool)> = measured.map(|entry| (entry.figure.as_str(), entry.faint)).collect();
        let all = [
            ("none", true),
            ("394", false),
            ("limited", true),
            ("unclear", true),
            ("48 KiB", false),
            ("4.98 cycles", false),
        ];
        assert_eq!(figures, all);
    }

    #[test]
    fn arrows_join_boxes_and_boxes_name_existing_tests() {
        let rows = drawn().rows;
        for Arrow { from: (row, place), to } in DIAGRAM_ARROWS {
            assert!(rows[row].get(place).is_some() && rows[row + 1].get(to).is_some());
        }
        let tests = cyclescope::study::find_study("uarch").and_then(|study| study.generic).expect("a study").subjects;
        for test in DIAGRAM_ROOMS.iter().flat_map(|room| room.tests) {
            assert!(tests.iter().any(|(name, _)| name == test), "{test}");
        }
    }
}
