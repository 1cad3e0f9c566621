//! The table of known costs, and its figures for one micro-architecture.

use std::fmt;

/// Why a snippet has a known cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownCostKind {
    /// Each instruction waits for the previous one.
    Chain,
    /// A chain through several kinds of unit.
    Mix,
    /// Independent copies that keep a unit busy.
    Copies,
    /// A chain with moves that the core eliminates.
    Moves,
    /// A chain through memory.
    Forward,
}

impl KnownCostKind {
    const NAMES: [(&'static str, KnownCostKind); 5] = [
        ("chain", KnownCostKind::Chain),
        ("mix", KnownCostKind::Mix),
        ("copies", KnownCostKind::Copies),
        ("moves", KnownCostKind::Moves),
        ("forward", KnownCostKind::Forward),
    ];
}

impl fmt::Display for KnownCostKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KnownCostKind::NAMES.iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

/// The micro-architectures of each column of the table.
const COLUMN_CORES: [&[&str]; 6] = [
    &["Golden Cove", "Raptor Cove"],
    &["Sunny Cove", "Cypress Cove", "Willow Cove"],
    &["Skylake"],
    &["Zen 5"],
    &["Zen 4"],
    &["Zen 3"],
];

/// A snippet and its cost.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownCost {
    /// Why the cost is known.
    pub kind: KnownCostKind,
    /// The snippet.
    pub code: String,
    /// Code that runs once before it.
    pub init: String,
    /// Core cycles in each of the table's columns.
    costs: [Option<f64>; COLUMN_CORES.len()],
}

impl KnownCost {
    /// Core cycles on a micro-architecture, if known.
    pub fn cost(&self, microarchitecture: &str) -> Option<f64> {
        let column = COLUMN_CORES.iter().position(|names| names.contains(&microarchitecture))?;
        self.costs[column]
    }

    /// Whether none of its instructions adds or multiplies integers in general registers, as the
    /// ruler does.
    pub fn is_unlike_ruler(&self) -> bool {
        let mnemonic = |statement: &str| statement.split_whitespace().next().unwrap_or("").to_string();
        self.code.split(';').map(mnemonic).all(|name| name != "add" && name != "imul")
    }

    fn parse_line(line: &str) -> Result<KnownCost, String> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [kind, code, init, costs @ .., source] = cells.as_slice() else {
            return Err(format!("too few cells: {line}"));
        };
        let kind = KnownCostKind::NAMES.iter().find(|(name, _)| name == kind).map(|(_, kind)| *kind);
        let cost = |cell: &&str| match *cell {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| format!("no number: {text}")),
        };
        let costs: Vec<Option<f64>> = costs.iter().map(cost).collect::<Result<_, _>>()?;
        if source.is_empty() {
            return Err(format!("no source: {line}"));
        }
        Ok(KnownCost {
            kind: kind.ok_or_else(|| format!("unknown kind: {line}"))?,
            code: code.to_string(),
            init: init.to_string(),
            costs: costs.try_into().map_err(|_| format!("not {} costs: {line}", COLUMN_CORES.len()))?,
        })
    }
}

/// Parses a table: one row per line, cells between `|`, `#` for comments.
pub fn parse_cost_table(text: &str) -> Result<Vec<KnownCost>, String> {
    text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).map(KnownCost::parse_line).collect()
}

/// The table of this crate.
pub fn known_costs() -> Vec<KnownCost> {
    parse_cost_table(include_str!("costs.txt")).expect("the tests parse it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_cells_are_parsed() {
        let rows = parse_cost_table("# c\nchain | mov rax, [rax] | mov rax, r14 | 5 | | 4 | 4 | 4 | | U\n").unwrap();
        assert_eq!((rows[0].kind, rows[0].init.as_str()), (KnownCostKind::Chain, "mov rax, r14"));
        assert_eq!(rows[0].cost("Raptor Cove"), Some(5.0));
        assert_eq!((rows[0].cost("Sunny Cove"), rows[0].cost("Bonnell")), (None, None));
    }

    #[test]
    fn a_bad_row_is_refused() {
        for line in ["chain | nop | | 1 | U", "other | nop | | 1 | 1 | 1 | 1 | 1 | 1 | U", "chain"] {
            assert!(parse_cost_table(line).is_err(), "{line}");
        }
        assert!(parse_cost_table("chain | nop | | x | 1 | 1 | 1 | 1 | 1 | U").is_err());
        assert!(parse_cost_table("chain | nop | | 1 | 1 | 1 | 1 | 1 | 1 | ").is_err());
    }

    #[test]
    fn the_table_is_long_enough_and_assembles() {
        let rows = known_costs();
        for row in &rows {
            for text in [&row.code, &row.init] {
                cyclescope::asm::parse_assembly(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            }
        }
        for core in ["Golden Cove", "Sunny Cove", "Skylake", "Zen 4"] {
            let known: Vec<_> = rows.iter().filter(|row| row.cost(core).is_some()).collect();
            let unlike = known.iter().filter(|row| row.is_unlike_ruler()).count();
            assert!(known.len() >= 40 && unlike >= 25, "{core}: {} rows, {unlike}", known.len());
        }
    }

    #[test]
    fn instructions_of_the_ruler_are_recognized() {
        let row = |code: &str| parse_cost_table(&format!("mix | {code} | | 1 | | | | | | U")).unwrap().remove(0);
        assert!(!row("crc32 rax, rbx; add rax, rbx").is_unlike_ruler());
        assert!(row("addps xmm0, xmm1; paddd xmm0, xmm1").is_unlike_ruler());
    }
}
