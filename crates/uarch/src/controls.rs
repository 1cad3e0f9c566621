//! What each program differs in from the one that is subtracted, its control: in what its test says, and in nothing else.

use super::list::TESTS;
use super::test::walk::{Steps, Walk};
use super::test::{Look, Test};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

/// The least that a program differs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Differs {
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

fn differs(program: &Steps, control: &Steps) -> Differs {
    let decoded = |steps: &Steps| -> Vec<Instruction> {
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
        [true, true, true] => Differs::Nothing,
        // A ring is gone round before.
        [true, _, false] => Differs::Memory,
        [true, false, true] => Differs::Before,
        [false, false, _] | [false, _, false] => Differs::More,
        _ if sorted(&own) == sorted(&other) => Differs::Order,
        _ if mnemonics(&own) == mnemonics(&other) => Differs::Operands,
        _ if ordered(mnemonics(&own)) == ordered(mnemonics(&other)) => Differs::OperandsAndOrder,
        _ if own.len() == other.len() => Differs::Instructions,
        _ => Differs::Number,
    }
}

/// Events of a batch.
const BATCH: usize = 5;

/// The programs of a test, by the keys of their rows, each with a count.
fn walks(test: &'static Test) -> Vec<(String, &'static Walk, usize)> {
    match &test.look {
        Look::Levels(walks) => {
            let count = walks.counts[0].max(20).min(walks.counts[1]);
            let key = |name: &str| format!("{}{name}", test.name);
            let others = walks.others.iter().map(|walk| (key(".others"), walk, count));
            walks.walks.iter().map(|walk| (key(""), walk, count)).chain(others).collect()
        }
        Look::Map(map) => {
            let ways = |row: &'static super::test::map::Course| {
                row.ways.iter().map(move |walk| (format!("{}.{}", test.name, row.name), walk, 0))
            };
            map.rows.iter().flat_map(ways).collect()
        }
        Look::Batches(batches) => {
            let all = batches.walks.iter().chain([&batches.beside.walk]);
            let all = all.map(|walk| (test.name.to_string(), walk, BATCH));
            all.chain([(format!("one of {}", test.name), &batches.one, 1)]).collect()
        }
        _ => {
            let rows = test.rows().iter();
            rows.flat_map(|row| row.ways.iter().map(move |way| (row.key(test.name), &way.walk, row.n)))
                .collect()
        }
    }
}

/// What the programs of each test, or of some of its rows, differ in from their controls. The longest beginning of a key counts.
const SAID: &[(&str, Differs)] = &[
    ("bypass_delay.", Differs::Order),
    ("bypass_delay.float_load_and_integer_add", Differs::Instructions),
    ("bypass_delay.integer_load_and_float_add", Differs::Instructions),
    ("bypass_delay.general_and_", Differs::Number),
    ("bypass_delay.mask_and_", Differs::Number),
    ("code_tlb", Differs::Operands),
    ("copies_in_flight.", Differs::Number),
    ("data_tlb", Differs::Memory),
    ("decode_prefix.", Differs::Operands),
    ("decode_prefix.1_prefix", Differs::Order),
    ("decode_prefix.4_prefixes", Differs::Order),
    ("disambiguation", Differs::Order),
    ("failed_forwarding.", Differs::Operands),
    ("failed_forwarding.16_of_8_bytes", Differs::Instructions),
    ("false_dependence.", Differs::Operands),
    ("first_decode.", Differs::Number),
    ("forwarding_ends.8_bytes", Differs::Number),
    ("forwarding_map.4_to", Differs::Number),
    ("forwarding_map.8_to", Differs::Number),
    ("huge_pages", Differs::Memory),
    ("huge_tlb", Differs::Memory),
    ("l1d_ways", Differs::Memory),
    ("l2_ways", Differs::Before),
    ("length_changing_prefix", Differs::Number),
    ("long_constants.", Differs::Operands),
    ("macro_fusion.", Differs::OperandsAndOrder),
    ("memory_renaming", Differs::Operands),
    ("memory_renaming.push_and_pop", Differs::Number),
    ("memory_renaming.xmm", Differs::Instructions),
    ("misprediction", Differs::Operands),
    ("misses_in_flight", Differs::Operands),
    ("one of misses_in_flight", Differs::Operands),
    ("one of walks_in_flight", Differs::Operands),
    ("partial_registers.", Differs::Operands),
    ("partial_registers.carry_", Differs::Instructions),
    ("retire_rate.", Differs::Number),
    ("return_stack", Differs::Number),
    ("return_stack.others", Differs::Instructions),
    ("slow_operands.", Differs::Before),
    ("special_numbers.", Differs::Before),
    ("split_access.", Differs::Operands),
    ("stack_engine.", Differs::Order),
    ("store_forwarding.high_4_of_8_bytes", Differs::Number),
    ("store_forwarding.last_of_8_bytes", Differs::Number),
    ("subnormals", Differs::Before),
    ("subnormals.square_root_operand", Differs::Operands),
    ("uop_cache_ways", Differs::Operands),
    ("upper_halves.", Differs::Before),
    ("upper_halves.before_vzeroupper", Differs::Order),
    ("upper_halves.in_turns_or_pairs", Differs::Order),
    ("upper_halves.vzeroupper", Differs::Number),
    ("walks_in_flight", Differs::Operands),
    ("wake_up.", Differs::Before),
];

/// A test that subtracts has to be in the list, and one that is in the list has to subtract.
#[test]
fn a_program_differs_from_its_control_in_what_its_test_says_alone() {
    let said = |key: &str| {
        let all = SAID.iter().filter(|(begin, _)| key.starts_with(begin));
        all.max_by_key(|(begin, _)| begin.len()).map(|(_, differs)| *differs)
    };
    for (key, walk, n) in TESTS.iter().flat_map(|test| walks(test)) {
        let found = walk.without.map(|without| differs(&(walk.program)(n), &without(n)));
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
        let own = (walk.program)(n);
        let control = walk.without.map(|without| without(n));
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
