//! Throughput recipes: how a form's throughput programs differ.
//!
//! A core reaches its best rate for a form in some programs only. So each form gets several recipes.

/// How the registers and flags that every instance reads and writes get a new value before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DependencyBreaking {
    /// Not at all: dependencies stay.
    None,
    /// XOR of a register with itself, which also sets the flags. FXCH for the top of the x87 stack.
    Zero,
    /// MOV from a register that keeps its value. FLD for the top of the x87 stack, CMP for flags.
    Copy,
    /// Like `Copy`, but only before the first instance of a period.
    Once,
    /// Like `Copy`, and rotating registers that instances read also get a new value after this number
    /// of uses: for forms with few registers to rotate through.
    Renew(usize),
}

/// The addresses of the memory operands in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressPattern {
    /// One address for all.
    One,
    /// This many adjacent addresses.
    Adjacent(usize),
    /// In this many cache lines.
    Lines(usize),
    /// This many cache lines, written whole: each part once, in order.
    Walk(usize),
}

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

impl AddressPattern {
    /// Number of addresses for operands of `bytes` bytes.
    pub(crate) fn count(self, bytes: usize) -> usize {
        match self {
            AddressPattern::One => 1,
            AddressPattern::Walk(lines) => lines * (LINE_BYTES / bytes.clamp(1, LINE_BYTES)),
            AddressPattern::Adjacent(count) | AddressPattern::Lines(count) => count,
        }
    }

    /// The displacement of an instance whose operand has `bytes` bytes.
    pub(crate) fn displacement(self, copy: usize, bytes: usize) -> i32 {
        let at = copy % self.count(bytes);
        match self {
            AddressPattern::One => 0,
            AddressPattern::Adjacent(_) => (at * bytes.next_power_of_two().clamp(8, 64)) as i32,
            AddressPattern::Lines(_) => (at * LINE_BYTES) as i32,
            AddressPattern::Walk(_) => (at * bytes) as i32,
        }
    }

    pub(super) fn describe(self) -> String {
        match self {
            AddressPattern::One => "one address".to_string(),
            AddressPattern::Adjacent(count) => format!("{count} adjacent addresses"),
            AddressPattern::Lines(count) => format!("{count} cache lines"),
            AddressPattern::Walk(lines) => {
                format!("{lines} cache lines written whole, {LINE_BYTES} bytes each")
            }
        }
    }
}

/// Vector instructions that run beside the instances. A core chooses the port of an instruction
/// when it dispatches it. Few instructions of another kind change the choices for their neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VectorCompanions {
    /// Number of instances between them.
    pub after: usize,
    /// Number of companions in one place.
    pub count: usize,
}

/// A recipe for a throughput program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThroughputRecipe {
    /// Upper limit of registers that results rotate through.
    pub destinations: usize,
    /// Approximate number of instances in the body.
    pub copies: usize,
    /// Number of instances between two NOPs.
    pub nop_after: Option<usize>,
    /// Other instructions between the instances.
    pub companions: Option<VectorCompanions>,
    /// Instructions in front of the loop: see [`ProgramRecipe::lead`].
    ///
    /// [`ProgramRecipe::lead`]: cyclescope_code::program::ProgramRecipe::lead
    pub lead: usize,
    /// Addresses of the memory operands.
    pub addresses: AddressPattern,
    /// How unavoidable dependencies are broken.
    pub breaking: DependencyBreaking,
}

impl ThroughputRecipe {
    /// Whether other instructions change how instances are dispatched.
    pub(crate) fn is_steered(&self) -> bool {
        self.nop_after.is_some() || self.needs_search()
    }

    /// Whether the program only serves to find another scheduling mode.
    pub(crate) fn needs_search(&self) -> bool {
        self.companions.is_some() || self.lead > 0
    }
}

/// Uses of a register for each instruction that renews it, which takes a slot of the core's width: few for
/// instructions with a long latency, and many for those with a high rate.
pub(crate) const RENEWAL_USES: [usize; 2] = [4, 16];

const fn new_recipe(
    destinations: usize,
    copies: usize,
    nop_after: Option<usize>,
    addresses: AddressPattern,
) -> ThroughputRecipe {
    ThroughputRecipe {
        destinations,
        copies,
        nop_after,
        companions: None,
        lead: 0,
        addresses,
        breaking: DependencyBreaking::Copy,
    }
}

const fn add_lead(lead: usize) -> ThroughputRecipe {
    ThroughputRecipe { lead, ..new_recipe(6, 240, None, AddressPattern::One) }
}

const fn add_companions(recipe: ThroughputRecipe, after: usize, count: usize) -> ThroughputRecipe {
    ThroughputRecipe { companions: Some(VectorCompanions { after, count }), ..recipe }
}

/// The recipes tried for every form, the most informative first.
///
/// Golden Cove loads twice per cycle from one address or from lines 64 bytes apart, but three times
/// from adjacent addresses.
pub(crate) const RECIPES: [ThroughputRecipe; 9] = [
    new_recipe(24, 96, None, AddressPattern::Adjacent(8)),
    new_recipe(8, 192, None, AddressPattern::One),
    new_recipe(12, 120, Some(2), AddressPattern::Adjacent(24)),
    new_recipe(6, 240, None, AddressPattern::Lines(24)),
    new_recipe(24, 144, Some(1), AddressPattern::Adjacent(16)),
    new_recipe(10, 160, Some(3), AddressPattern::One),
    new_recipe(4, 128, None, AddressPattern::Adjacent(4)),
    new_recipe(16, 200, None, AddressPattern::Lines(8)),
    new_recipe(24, 192, None, AddressPattern::Adjacent(8)),
];

/// Recipes that steer the core to other scheduling modes.
///
/// Some rates depend on the choice of ports at dispatch, which the code alone does not determine.
/// On Zen 5, compares of masks with memory take 0.50 or 0.58 cycles, depending on the place of the
/// loop's first instruction among eight. So the leads go through all places of a core that is eight
/// wide, in a loop that returns to few of them: 240 instances and three instructions at its end.
/// Conversions of two µops (`vcvtpd2dq xmm, ymm`) take 0.80 cycles there by themselves, and 0.67
/// with one other vector instruction for eight of them. `btc r64, imm8` takes 0.86, and 0.75 with
/// two of them for seven.
pub(crate) const STEERED_RECIPES: [ThroughputRecipe; 10] = [
    add_lead(1),
    add_lead(2),
    add_lead(3),
    add_lead(4),
    add_lead(5),
    add_lead(6),
    add_lead(7),
    add_companions(new_recipe(24, 96, None, AddressPattern::Adjacent(8)), 8, 1),
    add_companions(new_recipe(8, 192, None, AddressPattern::One), 8, 1),
    add_companions(new_recipe(4, 196, None, AddressPattern::Adjacent(4)), 7, 2),
];
