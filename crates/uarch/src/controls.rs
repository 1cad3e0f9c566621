//! What each program differs in from the one that is subtracted, its control: in what its test says, and in nothing else.

use super::spec::{Experiment, ProgramFamily, StepLoop, TestSpec};
use super::test_list::TESTS;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

/// The least that a program differs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ControlDifference {
    /// In nothing.
    Nothing,
    /// In its memory: where its lines are, or in which pages.
    Memory,
    /// In what runs once before: numbers, and the state of the core.
    Before,
    /// In the order of its instructions.
    Order,
    /// In operands: registers, addresses, widths, constants.
    Operands,
    /// In operands and in the order.
    OperandsAndOrder,
    /// In instructions, of which there are as many.
    Instructions,
    /// In how many instructions there are.
    Number,
    /// In instructions, and in memory or in what runs once before.
    More,
}

fn differs(program: &StepLoop, control: &StepLoop) -> ControlDifference {
    let decoded = |steps: &StepLoop| -> Vec<Instruction> {
        let all = Decoder::new(64, &steps.body, DecoderOptions::NONE);
        // What is never reached is no part of a program.
        all.into_iter().filter(|one| one.mnemonic() != Mnemonic::Int3).collect()
    };
    let [own, other] = [program, control].map(decoded);
    let sorted = |all: &[Instruction]| {
        let mut all: Vec<String> = all.iter().map(Instruction::to_string).collect();
        all.sort();
        all
    };
    let mnemonics = |all: &[Instruction]| all.iter().map(|one| one.mnemonic()).collect::<Vec<Mnemonic>>();
    let ordered = |mut all: Vec<Mnemonic>| {
        all.sort();
        all
    };
    let same = [program.body == control.body, program.init == control.init, program.memory == control.memory];
    match same {
        [true, true, true] => ControlDifference::Nothing,
        // A ring is gone round before.
        [true, _, false] => ControlDifference::Memory,
        [true, false, true] => ControlDifference::Before,
        [false, false, _] | [false, _, false] => ControlDifference::More,
        _ if sorted(&own) == sorted(&other) => ControlDifference::Order,
        _ if mnemonics(&own) == mnemonics(&other) => ControlDifference::Operands,
        _ if ordered(mnemonics(&own)) == ordered(mnemonics(&other)) => ControlDifference::OperandsAndOrder,
        _ if own.len() == other.len() => ControlDifference::Instructions,
        _ => ControlDifference::Number,
    }
}

/// Events of a batch.
const BATCH: usize = 5;

/// The programs of a test, by the keys of their rows, each with a count.
fn walks(test: &'static TestSpec) -> Vec<(String, &'static ProgramFamily, usize)> {
    match &test.experiment {
        Experiment::Levels(walks) => {
            let count = walks.count_range[0].max(20).min(walks.count_range[1]);
            let key = |name: &str| format!("{}{name}", test.name);
            let others = walks.fallback_programs.iter().map(|walk| (key(".others"), walk, count));
            walks.programs.iter().map(|walk| (key(""), walk, count)).chain(others).collect()
        }
        Experiment::CostMap(map) => {
            let ways = |row: &'static super::spec::MapRow| {
                row.programs.iter().map(move |walk| (format!("{}.{}", test.name, row.name), walk, 0))
            };
            map.rows.iter().flat_map(ways).collect()
        }
        Experiment::Batches(batches) => {
            let all = batches.programs.iter().chain([&batches.witness.family]);
            let all = all.map(|walk| (test.name.to_string(), walk, BATCH));
            all.chain([(format!("one of {}", test.name), &batches.single_event, 1)]).collect()
        }
        _ => {
            let rows = test.rows().iter();
            rows.flat_map(|row| row.variants.iter().map(move |way| (row.record_key(test.name), &way.family, row.n)))
                .collect()
        }
    }
}

/// What the programs of each test, or of some of its rows, differ in from their controls. The longest beginning of a key counts.
const SAID: &[(&str, ControlDifference)] = &[
    ("bypass_delay.", ControlDifference::Order),
    ("bypass_delay.float_load_and_integer_add", ControlDifference::Instructions),
    ("bypass_delay.integer_load_and_float_add", ControlDifference::Instructions),
    ("bypass_delay.general_and_", ControlDifference::Number),
    ("bypass_delay.mask_and_", ControlDifference::Number),
    ("code_tlb", ControlDifference::Operands),
    ("copies_in_flight.", ControlDifference::Number),
    ("data_tlb", ControlDifference::Memory),
    ("decode_prefix.", ControlDifference::Operands),
    ("decode_prefix.1_prefix", ControlDifference::Order),
    ("decode_prefix.4_prefixes", ControlDifference::Order),
    ("disambiguation", ControlDifference::Order),
    ("failed_forwarding.", ControlDifference::Operands),
    ("failed_forwarding.16_of_8_bytes", ControlDifference::Instructions),
    ("false_dependence.", ControlDifference::Operands),
    ("first_decode.", ControlDifference::Number),
    ("forwarding_ends.8_bytes", ControlDifference::Number),
    ("forwarding_map.4_to", ControlDifference::Number),
    ("forwarding_map.8_to", ControlDifference::Number),
    ("huge_pages", ControlDifference::Memory),
    ("huge_tlb", ControlDifference::Memory),
    ("l1d_ways", ControlDifference::Memory),
    ("l2_ways", ControlDifference::Before),
    ("length_changing_prefix", ControlDifference::Number),
    ("long_constants.", ControlDifference::Operands),
    ("macro_fusion.", ControlDifference::OperandsAndOrder),
    ("memory_renaming", ControlDifference::Operands),
    ("memory_renaming.push_and_pop", ControlDifference::Number),
    ("memory_renaming.xmm", ControlDifference::Instructions),
    ("misprediction", ControlDifference::Operands),
    ("misses_in_flight", ControlDifference::Operands),
    ("one of misses_in_flight", ControlDifference::Operands),
    ("one of walks_in_flight", ControlDifference::Operands),
    ("partial_registers.", ControlDifference::Operands),
    ("partial_registers.carry_", ControlDifference::Instructions),
    ("retire_rate.", ControlDifference::Number),
    ("return_stack", ControlDifference::Number),
    ("return_stack.others", ControlDifference::Instructions),
    ("slow_operands.", ControlDifference::Before),
    ("special_numbers.", ControlDifference::Before),
    ("split_access.", ControlDifference::Operands),
    ("stack_engine.", ControlDifference::Order),
    ("store_forwarding.high_4_of_8_bytes", ControlDifference::Number),
    ("store_forwarding.last_of_8_bytes", ControlDifference::Number),
    ("subnormals", ControlDifference::Before),
    ("subnormals.square_root_operand", ControlDifference::Operands),
    ("uop_cache_ways", ControlDifference::Operands),
    ("upper_halves.", ControlDifference::Before),
    ("upper_halves.before_vzeroupper", ControlDifference::Order),
    ("upper_halves.in_turns_or_pairs", ControlDifference::Order),
    ("upper_halves.vzeroupper", ControlDifference::Number),
    ("walks_in_flight", ControlDifference::Operands),
    ("wake_up.", ControlDifference::Before),
];

/// A test that subtracts has to be in the list, and one that is in the list has to subtract.
#[test]
fn a_program_differs_from_its_control_in_what_its_test_says_alone() {
    let said = |key: &str| {
        let all = SAID.iter().filter(|(begin, _)| key.starts_with(begin));
        all.max_by_key(|(begin, _)| begin.len()).map(|(_, differs)| *differs)
    };
    for (key, walk, n) in TESTS.iter().flat_map(|test| walks(test)) {
        let found = walk.control(n).map(|control| differs(&walk.program(n), &control));
        assert_eq!(found, said(&key), "{key}, {}", walk.name);
    }
}

/// The next program finds the core as this one found it.
#[test]
fn what_a_program_changes_of_the_core_is_as_before_behind_it() {
    let has = |code: &[u8], mnemonic| {
        Decoder::new(64, code, DecoderOptions::NONE).iter().any(|one| one.mnemonic() == mnemonic)
    };
    let mut modes = 0;
    for (key, walk, n) in TESTS.iter().flat_map(|test| walks(test)) {
        let own = walk.program(n);
        let control = walk.control(n);
        for steps in std::iter::once(&own).chain(&control) {
            let mode = has(&steps.init, Mnemonic::Ldmxcsr);
            assert_eq!(mode, has(&steps.following, Mnemonic::Ldmxcsr), "{key}, {}", walk.name);
            modes += usize::from(mode);
        }
        let same = control.is_none_or(|control| control.following == own.following);
        assert!(same, "{key}, {}", walk.name);
    }
    assert!(modes > 0);
}
