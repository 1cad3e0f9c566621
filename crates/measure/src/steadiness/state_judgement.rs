//! Decides which states the first copy uses up.

use super::finding::{Judge, UnsteadyState, register_name};
use super::history::{self, StateHistory, StateReading, cost_number, is_denormal, is_normal, is_stack_fault};
use super::register_use::find_deciding_registers;
use cyclescope_code::asm::format_instruction;
use cyclescope_code::program::{WatchPoint, WatchedState};
use iced_x86::{FlowControl, Instruction, OpKind, Register};
use std::collections::BTreeSet;

/// A dividend, a quotient or a bit selection is another one if its size differs by more than this
/// number of bits. Dividers take about a cycle for two to four bits.
const OTHER_SIZE_BITS: u64 = 4;
/// Most states that a result names.
const STATES_MOST: usize = 3;

/// How often something happens in the first copy and in later ones.
struct StateChange {
    first: u64,
    later: u64,
}

impl Judge<'_> {
    /// The states that differ, at most one for each instruction.
    pub(super) fn find_states(&self) -> Vec<UnsteadyState> {
        let mut named = BTreeSet::new();
        let mut states = Vec::new();
        for history in self.histories {
            let Some(first) = history.first() else { continue };
            let place = match history.point {
                // Flags of all instructions say less than the result of one.
                WatchPoint { state: WatchedState::FloatFlags, .. } if !states.is_empty() => continue,
                WatchPoint { state: WatchedState::StackStatus, .. } => None,
                WatchPoint { instruction, .. } => Some(instruction),
            };
            if states.len() < STATES_MOST
                && let Some(state) = self.judge_history(history, &first)
                && named.insert(place)
            {
                states.push(state);
            }
        }
        states
    }

    fn judge_history(&self, history: &StateHistory, first: &StateReading) -> Option<UnsteadyState> {
        let WatchPoint { instruction: index, state } = history.point;
        let instruction = &self.watched.instructions()[index];
        match state {
            WatchedState::RepeatCount => self.judge_repeats(history, first, instruction),
            WatchedState::ElementMask(mask) => self.judge_mask(history, first, instruction, mask),
            WatchedState::Dividend | WatchedState::Quotient => self.judge_division(history, first, instruction),
            WatchedState::Branch => self.judge_branch(history, first, index),
            WatchedState::BitSelection(register) => self.judge_selection(history, first, instruction, register),
            WatchedState::FloatResult(_) => self.judge_float_result(history, first, instruction),
            WatchedState::FloatFlags => self.judge_float_flags(history, first),
            WatchedState::StackStatus => self.judge_stack(history, first),
            WatchedState::Entry(_) => None,
        }
    }

    fn judge_repeats(
        &self,
        history: &StateHistory,
        first: &StateReading,
        instruction: &Instruction,
    ) -> Option<UnsteadyState> {
        let StateChange { first, later } = find_change(history, first, instruction, 0)?;
        let text = format!(
            "{} repeats {} in the first copy and {} in later ones: {} stays as the previous copy leaves it",
            describe_instruction(instruction),
            count_times(first),
            count_times(later),
            self.name_register(Register::RCX)
        );
        Some(UnsteadyState::refuse(text, self.advise_setup(vec![Register::RCX])))
    }

    fn judge_mask(
        &self,
        history: &StateHistory,
        first: &StateReading,
        instruction: &Instruction,
        mask: Register,
    ) -> Option<UnsteadyState> {
        let name = register_name(mask);
        let number = |reading: &StateReading| cost_number(history.point.state, instruction, reading.words);
        let nothing_sets = mask.is_vector_register() && !self.usage.is_vector_set(mask.number());
        let (first, later) = match find_change(history, first, instruction, 0) {
            Some(StateChange { first, later }) => (first, later),
            None if number(first) == 0 && nothing_sets => (0, 0),
            None => return None,
        };
        let counts = match (first, later) {
            (0, 0) => "accesses no elements".to_string(),
            // One mask register holds more bits than there are elements.
            (_, 0) if mask.is_k() => "accesses elements in the first copy and none in later ones".to_string(),
            _ => format!("accesses {first} elements in the first copy and {later} in later ones"),
        };
        let text = format!(
            "{} {counts}: it clears its mask {name}, and nothing sets it again",
            describe_instruction(instruction)
        );
        Some(UnsteadyState::refuse(text, self.advise_mask(mask, instruction, first)))
    }

    fn judge_division(
        &self,
        history: &StateHistory,
        first: &StateReading,
        instruction: &Instruction,
    ) -> Option<UnsteadyState> {
        let divisor = (instruction.op0_kind() == OpKind::Register).then(|| instruction.op0_register().full_register());
        let operands = [Some(Register::RAX), Some(Register::RDX), divisor].into_iter().flatten();
        // Numbers that the user chose are those to divide. Others may settle at any size but zero.
        let is_chosen = operands.clone().any(|register| self.usage.is_initialised(register));
        let is_chosen = is_chosen || divisor.is_none() && self.usage.init_writes_memory();
        let change = if is_chosen { find_mean_change } else { find_change };
        let StateChange { first, later } = change(history, first, instruction, OTHER_SIZE_BITS)?;
        if !is_chosen && later > first {
            return None;
        }
        let of = if history.point.state == WatchedState::Dividend { "dividend" } else { "quotient" };
        let text = format!(
            "the {of} of {} has {first} bits in the first copy and {later} in later ones: {} and {} hold the \
             previous result",
            describe_instruction(instruction),
            self.name_register(Register::RAX),
            self.name_register(Register::RDX)
        );
        let carried = operands.filter(|register| self.usage.is_carried(*register)).collect();
        Some(UnsteadyState::refuse(text, self.advise_setup(carried)))
    }

    fn judge_branch(&self, history: &StateHistory, first: &StateReading, index: usize) -> Option<UnsteadyState> {
        let instruction = &self.watched.instructions()[index];
        let name = describe_instruction(instruction);
        let [reached, not_taken] = first.words;
        let later = history.settled();
        let endless = history.later().iter().find(|reading| reading.is_endless());
        let differs = |number: fn([u64; 2]) -> u64| {
            let numbers = later.iter().map(|reading| number(reading.words));
            let (least, most) = (numbers.clone().min()?, numbers.max()?);
            (!(least..=most).contains(&number(first.words))).then(|| number(later[later.len() - 1].words))
        };
        let (change, is_loop) = if let Some(endless) = endless {
            let copy = endless.copy;
            (format!("is reached {} in the first copy, and does not end in copy {copy}", count_times(reached)), true)
        } else if let Some(now) = differs(|[reached, _]| reached) {
            let change =
                format!("is reached {} in the first copy and {} in later ones", count_times(reached), count_times(now));
            (change, reached.max(now) > 1)
        } else {
            let now = differs(|[reached, not_taken]| reached - not_taken)?;
            let taken = count_times(reached - not_taken);
            (format!("is taken {taken} in the first copy and {} in later ones", count_times(now)), false)
        };
        let deciding = find_deciding_registers(self.watched.instructions(), index);
        let carried: Vec<Register> = deciding.into_iter().filter(|register| self.usage.is_carried(*register)).collect();
        let carried = if carried.is_empty() { self.usage.carried().collect() } else { carried };
        // Numbers that the harness chose may settle in any direction, but not in any number of
        // iterations.
        let is_chosen =
            self.usage.init_writes_memory() || carried.iter().any(|register| self.usage.is_initialised(*register));
        if !is_chosen && !is_loop {
            return None;
        }
        let because = match self.join_names(&carried) {
            names if names.is_empty() => "memory stays as the previous copy leaves it".to_string(),
            names if carried.len() == 1 => format!("{names} stays as the previous copy leaves it"),
            names => format!("{names} stay as the previous copy leaves them"),
        };
        Some(UnsteadyState::refuse(format!("{name} {change}: {because}"), self.advise_setup(carried)))
    }

    fn judge_selection(
        &self,
        history: &StateHistory,
        first: &StateReading,
        instruction: &Instruction,
        register: Register,
    ) -> Option<UnsteadyState> {
        if !self.usage.is_initialised(register) {
            return None;
        }
        let StateChange { first, later } = find_change(history, first, instruction, OTHER_SIZE_BITS)?;
        let name = self.name_register(register);
        let text = format!(
            "{} selects {first} bits in the first copy and {later} in later ones: {name} stays as the previous copy \
             leaves it",
            describe_instruction(instruction)
        );
        Some(UnsteadyState::refuse(text, self.advise_setup(vec![register.full_register()])))
    }

    fn judge_float_result(
        &self,
        history: &StateHistory,
        first: &StateReading,
        instruction: &Instruction,
    ) -> Option<UnsteadyState> {
        let changes = |reading: &StateReading| !reading.is_endless() && !is_normal(instruction, reading.words);
        if !self.usage.init_sets_floats() || !is_normal(instruction, first.words) || !history.mostly(changes) {
            return None;
        }
        let text = format!(
            "{} has a normal number as its result in the first copy, and zero, an infinity or no number in later ones",
            describe_instruction(instruction)
        );
        Some(UnsteadyState::refuse(text, self.advise_vector()))
    }

    fn judge_float_flags(&self, history: &StateHistory, first: &StateReading) -> Option<UnsteadyState> {
        if !self.becomes_denormal(history, first) {
            return None;
        }
        let text = match self.usage.carried_vector() {
            Some(number) => format!("the numbers in XMM{number} become denormal in later copies"),
            None => "numbers become denormal in later copies".to_string(),
        };
        Some(UnsteadyState::refuse(text, self.advise_vector()))
    }

    /// Whether numbers that the user chose become denormal. Others may settle at any number.
    fn becomes_denormal(&self, history: &StateHistory, first: &StateReading) -> bool {
        self.usage.init_sets_floats() && !is_denormal(first) && history.later().iter().any(is_denormal)
    }

    fn judge_stack(&self, history: &StateHistory, first: &StateReading) -> Option<UnsteadyState> {
        let faults = is_stack_fault(first) || history.later().iter().any(is_stack_fault);
        let growth = history::stack_growth(history);
        let calls = self.watched.instructions().iter().any(|one| one.flow_control() == FlowControl::IndirectCall);
        let (text, remedy) = match growth {
            _ if !faults => {
                if !self.becomes_denormal(history, first) {
                    return None;
                }
                let remedy = "load them again in the snippet".to_string();
                ("the numbers on the x87 stack become denormal in later copies".to_string(), remedy)
            }
            1.. if calls => (
                format!("each call leaves {} on the x87 stack, which overflows", count_values(growth)),
                "measure a function that stores its result instead, and calls this one".to_string(),
            ),
            1.. => (
                format!("each copy leaves {} on the x87 stack, which overflows", count_values(growth)),
                format!("pop them: add '{}' to the snippet", repeat_instruction("fstp st0", growth)),
            ),
            0 => (
                "the snippet reads an x87 register that is empty".to_string(),
                format!("fill the stack with --init '{}'", repeat_instruction("fld1", self.needed_stack_values())),
            ),
            _ => (
                format!("each copy takes {} from the x87 stack, which becomes empty", count_values(-growth)),
                format!("push as many: add '{}' before the snippet", repeat_instruction("fld1", -growth)),
            ),
        };
        Some(UnsteadyState::refuse(text, remedy))
    }

    /// The second copy faults and the first does not.
    pub(super) fn describe_failure(&self) -> UnsteadyState {
        let carried: Vec<Register> = self.usage.carried().collect();
        let text =
            format!("the first copy ends; the second one finds {} as the first leaves it", self.join_names(&carried));
        UnsteadyState::refuse(text, self.advise_setup(carried))
    }
}

/// How the number that the cost depends on differs in later copies from the first one, if it is
/// beyond all of them by more than `margin`.
fn find_change(
    history: &StateHistory,
    first: &StateReading,
    instruction: &Instruction,
    margin: u64,
) -> Option<StateChange> {
    let number = |reading: &StateReading| cost_number(history.point.state, instruction, reading.words);
    let mut later = history.settled().iter().filter(|reading| !reading.is_endless()).map(number);
    let (least, most) = (later.clone().min()?, later.clone().max()?);
    let first = number(first);
    let is_other = first > most + margin || first + margin < least;
    is_other.then_some(StateChange { first, later: later.next_back()? })
}

/// The same for numbers that vary: their mean differs from the first one by more than `margin`.
fn find_mean_change(
    history: &StateHistory,
    first: &StateReading,
    instruction: &Instruction,
    margin: u64,
) -> Option<StateChange> {
    let number = |reading: &StateReading| cost_number(history.point.state, instruction, reading.words);
    let later: Vec<u64> = history.settled().iter().filter(|reading| !reading.is_endless()).map(number).collect();
    let mean = later.iter().sum::<u64>().checked_div(later.len() as u64)?;
    let first = number(first);
    (first.abs_diff(mean) > margin).then_some(StateChange { first, later: mean })
}

/// An instruction as text. Branches have their place, because their target has no name.
fn describe_instruction(instruction: &Instruction) -> String {
    let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
    if instruction.is_string_instruction() {
        let compares = instruction.rflags_modified() != 0;
        let prefix = match instruction.has_repne_prefix() {
            true => "repne",
            false if compares => "repe",
            false => "rep",
        };
        return format!("`{prefix} {name}`");
    }
    if instruction.flow_control() == FlowControl::Next {
        return format!("`{}`", format_instruction(instruction));
    }
    format!("`{name}` at +{:#x}", instruction.ip() & 0x3fff_ffff)
}

fn count_times(count: u64) -> String {
    if count == 1 { "once".to_string() } else { format!("{count} times") }
}

fn count_values(count: i64) -> String {
    if count == 1 { "one value".to_string() } else { format!("{count} values") }
}

fn repeat_instruction(text: &str, times: i64) -> String {
    vec![text; times.max(1) as usize].join("; ")
}
