//! Draws the core as the block diagram of a vendor's guide: from fetch to retirement, and from
//! registers to memory, each box with its two to four figures. A box without a number is dashed.

use super::core_figure::{CoreFigure, FigurePart};
use super::record::UarchLine;
use cyclescope::plot::{Arrow, BoxFrame, BoxLine, Diagram, DiagramBox};

/// Width and height in pixels.
const SIZE: (i32, i32) = (1200, 900);

/// A box of the diagram.
struct CoreBox {
    name: &'static str,
    frame: BoxFrame,
    figures: &'static [CoreFigure],
}

const fn frame(left: i32, top: i32, width: i32, height: i32) -> BoxFrame {
    BoxFrame { left, top, width, height }
}

/// The boxes, from top to bottom.
const CORE_BOXES: [CoreBox; 18] = [
    CoreBox {
        name: "Branch prediction",
        frame: frame(20, 76, 370, 116),
        figures: &[
            CoreFigure::new("jump targets", &[FigurePart::new(&["branch_targets.1.size"])]),
            CoreFigure::new("conditional targets", &[FigurePart::new(&["conditional_targets.1.size"])]),
            CoreFigure::new("return stack", &[FigurePart::new(&["return_stack"])]),
            CoreFigure::new("misprediction", &[FigurePart::in_unit(&["misprediction"], "cycles")]),
        ],
    },
    CoreBox {
        name: "Instruction cache",
        frame: frame(420, 76, 360, 116),
        figures: &[
            CoreFigure::new("size", &[FigurePart::new(&["instruction_cache.1.size"])]),
            CoreFigure::new("translations", &[FigurePart::new(&["code_tlb"])]),
            CoreFigure::new(
                "fetch",
                &[FigurePart::in_unit(
                    &["fetch_rate.4_bytes", "fetch_rate.6_bytes", "fetch_rate.8_bytes"],
                    "bytes a cycle",
                )],
            ),
        ],
    },
    CoreBox {
        name: "Other CPUs",
        frame: frame(810, 76, 370, 116),
        figures: &[
            CoreFigure::new("line from CPU to CPU", &[FigurePart::new(&["core_to_core.0.1"])]),
            CoreFigure::new("busy sibling", &[FigurePart::new(&["environment.busy_sibling"])]),
        ],
    },
    CoreBox {
        name: "Decoders",
        frame: frame(420, 220, 360, 76),
        figures: &[CoreFigure::new(
            "instructions a cycle",
            &[FigurePart::in_unit(
                &["decode_rate.1_byte", "decode_rate.2_bytes", "decode_rate.3_bytes", "decode_rate.4_bytes"],
                "",
            )],
        )],
    },
    CoreBox {
        name: "µop cache",
        frame: frame(20, 220, 370, 76),
        figures: &[
            CoreFigure::new("entries", &[FigurePart::new(&["uop_cache.1.size"])]),
            CoreFigure::new("ways", &[FigurePart::in_unit(&["uop_cache_ways"], "ways")]),
        ],
    },
    CoreBox {
        name: "Rename and dispatch",
        frame: frame(20, 326, 760, 96),
        figures: &[
            CoreFigure::new("instructions a cycle", &[FigurePart::in_unit(&["dispatch_rate.instructions"], "")]),
            CoreFigure::new("moves a cycle", &[FigurePart::in_unit(&["rename_rate.move_64_bits"], "")]),
            CoreFigure::new("zeros a cycle", &[FigurePart::in_unit(&["rename_rate.zero_64_bits"], "")]),
        ],
    },
    CoreBox {
        name: "Reorder buffer and retirement",
        frame: frame(810, 326, 370, 96),
        figures: &[
            CoreFigure::new("instructions in flight", &[FigurePart::new(&["rob"])]),
            CoreFigure::new("retired a cycle", &[FigurePart::in_unit(&["retire_rate.instructions"], "")]),
            CoreFigure::new("taken branches in flight", &[FigurePart::new(&["taken_branches_in_flight"])]),
        ],
    },
    CoreBox {
        name: "Integer registers and scheduler",
        frame: frame(20, 450, 370, 96),
        figures: &[
            CoreFigure::new("spare registers", &[FigurePart::new(&["int_registers"])]),
            CoreFigure::new("renamed flags", &[FigurePart::new(&["flags"])]),
            CoreFigure::new("scheduler", &[FigurePart::new(&["integer_scheduler"])]),
        ],
    },
    CoreBox {
        name: "Loads and stores in flight",
        frame: frame(420, 450, 360, 96),
        figures: &[
            CoreFigure::new("loads", &[FigurePart::new(&["loads_in_flight"])]),
            CoreFigure::new("stores", &[FigurePart::new(&["stores_in_flight"])]),
            CoreFigure::new("scheduler", &[FigurePart::new(&["load_scheduler"])]),
        ],
    },
    CoreBox {
        name: "Vector registers and scheduler",
        frame: frame(810, 450, 370, 96),
        figures: &[
            CoreFigure::new("spare registers", &[FigurePart::new(&["vector_registers_xmm"])]),
            CoreFigure::new("spare mask registers", &[FigurePart::new(&["mask_registers"])]),
            CoreFigure::new("scheduler", &[FigurePart::new(&["vector_scheduler"])]),
        ],
    },
    CoreBox {
        name: "Integer units",
        frame: frame(20, 574, 370, 96),
        figures: &[
            CoreFigure::new("additions a cycle", &[FigurePart::in_unit(&["mixed_throughput.alu"], "")]),
            CoreFigure::new(
                "branches a cycle",
                &[FigurePart::in_unit(&["branch_rate.not_taken", "branch_rate.in_turn"], "")],
            ),
        ],
    },
    CoreBox {
        name: "Load and store units",
        frame: frame(420, 574, 360, 96),
        figures: &[
            CoreFigure::new(
                "loads a cycle",
                &[
                    FigurePart::in_unit(&["load_rate.8_bytes"], ""),
                    FigurePart::in_unit(&["load_rate.64_bytes"], "of 64 bytes"),
                ],
            ),
            CoreFigure::new(
                "stores a cycle",
                &[
                    FigurePart::in_unit(&["store_rate.8_bytes"], ""),
                    FigurePart::in_unit(&["store_rate.64_bytes"], "of 64 bytes"),
                ],
            ),
            CoreFigure::new("store to load", &[FigurePart::in_unit(&["store_forwarding.8_bytes"], "cycles")]),
        ],
    },
    CoreBox {
        name: "Vector units",
        frame: frame(810, 574, 370, 96),
        figures: &[
            CoreFigure::new("additions a cycle", &[FigurePart::in_unit(&["mixed_throughput.vector_add"], "")]),
            CoreFigure::new(
                "integer to float",
                &[FigurePart::in_unit(&["bypass_delay.integer_add_and_float_add"], "cycles more")],
            ),
        ],
    },
    CoreBox {
        name: "First data cache",
        frame: frame(420, 698, 360, 96),
        figures: &[
            CoreFigure::new(
                "size",
                &[FigurePart::new(&["data_caches.1.size"]), FigurePart::in_unit(&["l1d_ways"], "ways")],
            ),
            CoreFigure::new("latency", &[FigurePart::in_unit(&["data_caches.1.cost"], "cycles")]),
            CoreFigure::new("read", &[FigurePart::in_unit(&["read_bandwidth.16_KiB"], "bytes a cycle")]),
        ],
    },
    CoreBox {
        name: "Translations of data",
        frame: frame(810, 698, 370, 96),
        figures: &[
            CoreFigure::new("first", &[FigurePart::new(&["data_tlb.1.size"])]),
            CoreFigure::new(
                "second",
                &[FigurePart::new(&["data_tlb.2.size"]), FigurePart::in_unit(&["data_tlb.2.cost"], "cycles")],
            ),
        ],
    },
    CoreBox {
        name: "Second cache",
        frame: frame(20, 698, 370, 96),
        figures: &[
            CoreFigure::new(
                "size",
                &[FigurePart::new(&["data_caches.2.size"]), FigurePart::in_unit(&["l2_ways"], "ways")],
            ),
            CoreFigure::new("latency", &[FigurePart::in_unit(&["data_caches.2.cost"], "cycles")]),
            CoreFigure::new("read", &[FigurePart::in_unit(&["read_bandwidth.128_KiB"], "bytes a cycle")]),
        ],
    },
    CoreBox {
        name: "Third cache",
        frame: frame(20, 818, 370, 72),
        figures: &[
            CoreFigure::new("size", &[FigurePart::new(&["data_caches.3.size"])]),
            CoreFigure::new("latency", &[FigurePart::in_unit(&["data_caches.3.cost"], "cycles")]),
        ],
    },
    CoreBox {
        name: "Memory",
        frame: frame(420, 818, 360, 72),
        figures: &[
            CoreFigure::new("latency", &[FigurePart::in_unit(&["data_caches.beyond.cost"], "cycles")]),
            CoreFigure::new("read", &[FigurePart::in_unit(&["read_bandwidth.64_MiB"], "bytes a cycle")]),
        ],
    },
];

/// The paths of instructions and of data, by the boxes' names.
const CORE_PATHS: [(&str, &str); 15] = [
    ("Branch prediction", "Instruction cache"),
    ("Instruction cache", "Decoders"),
    ("Decoders", "µop cache"),
    ("Decoders", "Rename and dispatch"),
    ("µop cache", "Rename and dispatch"),
    ("Rename and dispatch", "Reorder buffer and retirement"),
    ("Rename and dispatch", "Integer registers and scheduler"),
    ("Rename and dispatch", "Loads and stores in flight"),
    ("Integer registers and scheduler", "Integer units"),
    ("Loads and stores in flight", "Load and store units"),
    ("Vector registers and scheduler", "Vector units"),
    ("Load and store units", "First data cache"),
    ("First data cache", "Second cache"),
    ("Second cache", "Third cache"),
    ("Third cache", "Memory"),
];

/// Draws the figures of a machine.
pub fn draw_core(records: &[UarchLine], machine: &str) -> Diagram {
    let place = |name: &str| CORE_BOXES.iter().position(|block| block.name == name);
    let arrow = |(from, to): &(&str, &str)| Some(Arrow { from: place(from)?, to: place(to)? });
    Diagram {
        title: "The core".to_string(),
        note: format!("{machine}; a dashed box has no measured figure"),
        size: SIZE,
        boxes: CORE_BOXES.iter().map(|block| block.draw(records)).collect(),
        arrows: CORE_PATHS.iter().filter_map(arrow).collect(),
    }
}

impl CoreBox {
    fn draw(&self, records: &[UarchLine]) -> DiagramBox {
        let entry = |figure: &CoreFigure| {
            let words = figure.describe(records);
            let faint = !words.as_ref().is_some_and(|words| words.is_found);
            let text = words.map_or("not measured".to_string(), |words| words.text);
            BoxLine { name: figure.name.to_string(), figure: text, faint }
        };
        let entries = self.figures.iter().map(entry).collect();
        DiagramBox { name: self.name.to_string(), frame: self.frame, entries }
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulated_lines;
    use super::*;

    #[test]
    fn boxes_hold_their_figures() {
        let drawn = draw_core(&UarchLine::from_lines(&simulated_lines::simulated_lines()), "a machine");
        let lines = |name: &str| {
            let block = drawn.boxes.iter().find(|block| block.name == name).unwrap();
            block.entries.iter().map(|entry| (entry.figure.as_str(), entry.faint)).collect::<Vec<_>>()
        };
        assert_eq!(lines("First data cache"), [("48 KiB", false), ("4.98 cycles", false), ("not measured", true)]);
        assert_eq!(lines("Reorder buffer and retirement")[0], ("394 entries", false));
        assert_eq!(lines("Integer registers and scheduler")[0], ("limited by reorder buffer", true));
    }

    #[test]
    fn boxes_name_existing_numbers_stay_apart_and_on_the_page() {
        let tests = cyclescope::study::find_study("uarch").and_then(|study| study.generic).expect("a study").subjects;
        for key in
            CORE_BOXES.iter().flat_map(|block| block.figures).flat_map(|figure| figure.parts).flat_map(|part| part.keys)
        {
            let test = key.split('.').next().unwrap();
            assert!(tests.iter().any(|(name, _)| *name == test), "{key}");
        }
        let ends = |frame: &BoxFrame| (frame.left + frame.width, frame.top + frame.height);
        for (place, block) in CORE_BOXES.iter().enumerate() {
            let (right, bottom) = ends(&block.frame);
            assert!(right <= SIZE.0 && bottom <= SIZE.1, "{}", block.name);
            for other in &CORE_BOXES[..place] {
                let (other_right, other_bottom) = ends(&other.frame);
                let apart = right <= other.frame.left
                    || other_right <= block.frame.left
                    || bottom <= other.frame.top
                    || other_bottom <= block.frame.top;
                assert!(apart, "{} and {}", block.name, other.name);
            }
        }
        let names = CORE_PATHS.iter().flat_map(|(from, to)| [from, to]);
        assert!(names.into_iter().all(|name| CORE_BOXES.iter().any(|block| block.name == *name)));
    }
}
