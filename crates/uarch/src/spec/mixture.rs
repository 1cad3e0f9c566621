//! Tests of classes of instructions that compete for units, as data.

/// A test of which classes of instructions slow each other down.
#[derive(Debug)]
pub(crate) struct MixtureSpec {
    /// Classes that use only what every instruction uses before execution. The slowest counts.
    pub slot_classes: &'static [MixtureClass],
    /// The classes.
    pub classes: &'static [MixtureClass],
    /// Untimed setup.
    pub init: &'static str,
    /// Number of random groups of three classes that check the results of pairs.
    pub triple_count: usize,
}

/// Instructions that the core executes alike, and that do not wait for each other.
#[derive(Debug)]
pub(crate) struct MixtureClass {
    /// The name in results, and in the record's key behind the test's name.
    pub name: &'static str,
    /// Its instructions, in turn, in legacy encoding and in VEX. Registers that instructions read
    /// and write take turns too.
    pub code: [&'static [&'static str]; 2],
    /// Other instructions of the class, which should execute alike. If they do not, orders disagree
    /// and there is no number.
    pub alternatives: [&'static [&'static str]; 2],
}

/// A class with the same text in both encodings.
pub(crate) const fn general_class(
    name: &'static str,
    code: &'static [&'static str],
    others: &'static [&'static str],
) -> MixtureClass {
    MixtureClass { name, code: [code, code], alternatives: [others, others] }
}

impl MixtureClass {
    /// The instruction at a place of an order, in either encoding.
    fn pick_instruction(&self, order: MixOrder, place: usize, vex: bool) -> &'static str {
        let all = if order == MixOrder::Runs { self.alternatives } else { self.code };
        let code = all[usize::from(vex)];
        code[place % code.len()]
    }
}

/// A class and a number of its instructions.
pub(crate) type ClassCount = (&'static MixtureClass, usize);

/// The order of the instructions of a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MixOrder {
    /// Each class is spread as evenly as possible.
    Spread,
    /// Each class in runs of four, with its alternatives.
    Runs,
    /// Each class in pairs.
    Pairs,
}

impl MixOrder {
    /// All orders. The last one decides if the others disagree.
    pub(crate) const ALL: [MixOrder; 3] = [MixOrder::Spread, MixOrder::Runs, MixOrder::Pairs];

    /// Instructions that stay together.
    fn run_length(self) -> usize {
        match self {
            MixOrder::Spread => 1,
            MixOrder::Runs => 4,
            MixOrder::Pairs => 2,
        }
    }
}

/// The text of a mixture, in either encoding.
pub(crate) fn mixture_text(shares: &[ClassCount], order: MixOrder, vex: bool) -> String {
    let run = order.run_length();
    // Each run's place is its middle, as a share of the whole.
    let mut runs: Vec<(f64, usize, std::ops::Range<usize>)> = Vec::new();
    for (class, (_, number)) in shares.iter().enumerate() {
        for first in (0..*number).step_by(run) {
            let last = (first + run).min(*number);
            runs.push(((first + last) as f64 / 2.0 / *number as f64, class, first..last));
        }
    }
    runs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let text = |(_, class, numbers): &(f64, usize, std::ops::Range<usize>)| {
        let instruction = |number| shares[*class].0.pick_instruction(order, number, vex);
        numbers.clone().map(instruction).collect::<Vec<_>>().join("; ")
    };
    runs.iter().map(text).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: MixtureClass =
        MixtureClass { name: "one", code: [&["a", "b"], &["va"]], alternatives: [&["c"], &["vc", "vd"]] };
    const OTHER: MixtureClass =
        MixtureClass { name: "other", code: [&["x"], &["vx"]], alternatives: [&["y"], &["vy"]] };

    #[test]
    fn classes_are_spread_or_come_in_runs() {
        let spread = mixture_text(&[(&ONE, 6), (&OTHER, 3)], MixOrder::Spread, false);
        assert_eq!(spread, "a; x; b; a; x; b; a; x; b");
        assert_eq!(
            mixture_text(&[(&ONE, 8), (&OTHER, 2)], MixOrder::Runs, true),
            "vc; vd; vc; vd; vy; vy; vc; vd; vc; vd"
        );
    }
}
