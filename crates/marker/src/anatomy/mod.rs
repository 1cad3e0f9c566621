//! The code that a marker adds: its instructions by path, and their bytes.
//!
//! **Paths.** Control flow starts at the function's entry. It follows both sides of conditional
//! branches, and calls into functions stored with it. If enabling patches a NOP into a jump, it
//! also follows that jump. Unreached code is *padding*. A *gate* is an edge that only an enabled
//! marker takes. Code reachable without gates is *likely*; code only reachable through one is
//! *unlikely*. Gates are found as follows:
//!
//! - If enabling patches a jump, the jump is the gate.
//! - If enabling changes a value, a gate is a side of a conditional branch that the dormant
//!   function does not need. Without it, every node that could reach a return still can, and all
//!   calls of the base remain. There is one more conditional branch than in the base: the gate's
//!   own. (A loop's guard is therefore not a gate: without it the loop is lost.) The first such
//!   side on the way to a call that the base does not have is the gate. Several tests in a row are
//!   one gate and unlikely code. Without such a call, the gates are the outermost sides whose code
//!   rejoins the rest, provided that the base has no similar code that a branch skips.
//! - An indirect call, a tracer's NOP and a NOP at a function's entry have no gate: all code is
//!   likely.
//!
//! **The site's own bytes.** Likely: the gate's branch, and backwards within its block, the
//! instructions that set its flags and load the tested value; the NOP that enabling replaces; an
//! indirect call and the instructions that set up its arguments. Unlikely: the whole unlikely path,
//! including the jump back.
//!
//! The document on Linux kernel markers counts likely bytes in the same way (2 + 2 + 2 = 6 with an
//! immediate value, 7 + 2 + 2 = 11 with a load). It counts 32 unlikely bytes, but its listing has
//! 51 from +0x13 through the jump back at +0x44. It also omits the marker's effect on the
//! function's prologue.
//!
//! **The difference of the whole function** contains the rest: saved registers, moves between them,
//! and guards of an indirect call on the likely path. All counts exclude NOPs that only align:
//! padding, and executed NOPs before a branch target that is a multiple of 8.
//!
//! Limits:
//!
//! - The code is one range of bytes, so an unlikely path in another section is not counted.
//! - Indirect jumps have no target, and a call is assumed to return.
//! - A slice stops at the start of its block. Values that a test takes from outside the loop only
//!   count in the difference.
//! - If a compiler duplicated a test, or the loops with and without the marker differ in shape, no
//!   side keeps all of the base. The gates are then all sides whose every path makes one of the
//!   marker's calls before a return or another iteration. This requires that all else returns
//!   without them, and that the base's calls and the loop remain. Otherwise no gate is named, and
//!   no code is unlikely.

mod flow_graph;
mod function_code;
mod gate;
mod listing;
mod slice;
#[cfg(test)]
mod tests;

pub(crate) use function_code::FunctionCode;
pub(super) use listing::kernel_address;
pub use listing::{AssemblyLine, CodePath, name_addresses};

use super::source::design::Enabling;
use flow_graph::{EdgeCut, FlowGraph};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Bytes in a cache line (Intel SDM vol. 2, CPUID leaf 4; the same on AMD's processors).
const CACHE_LINE: usize = 64;

/// The code that a marker adds to a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkerAnatomy {
    /// Bytes of the marker's own instructions on the likely path.
    pub likely_bytes: usize,
    /// Bytes of the unlikely path.
    pub unlikely_bytes: usize,
    /// Bytes on the likely path, minus those of the function without the marker.
    pub function_likely_bytes: i64,
    /// Bytes on the unlikely path, minus those of the function without the marker.
    pub function_unlikely_bytes: i64,
    /// The offsets of the branches and NOPs that lead to the unlikely path.
    pub gates: Vec<usize>,
    /// Instructions of the function with the marker.
    pub assembly: Vec<AssemblyLine>,
    /// Instructions of the function without the marker.
    pub base_assembly: Vec<AssemblyLine>,
}

/// Number of cache lines that contain a function's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheLines {
    /// The function without the marker.
    pub base: usize,
    /// The likely path.
    pub likely: usize,
    /// Both paths.
    pub both: usize,
}

/// Compares a function with a marker to the same function without it. `names` names addresses
/// outside of them.
pub fn compare_functions<'a>(
    base: impl Into<FunctionCode<'a>>,
    site: impl Into<FunctionCode<'a>>,
    enabling: Enabling,
    names: &dyn Fn(u64) -> Option<String>,
) -> MarkerAnatomy {
    let (base, site) = (base.into(), site.into());
    let (base_flow, flow) = (FlowGraph::new(&base, enabling), FlowGraph::new(&site, enabling));
    let gates = match enabling {
        Enabling::Jump | Enabling::Entry => flow.patched_edges(),
        Enabling::Variable(_) | Enabling::Immediate | Enabling::Switch(_) => gate::find_gates(&base_flow, &flow),
        Enabling::Never | Enabling::Probe | Enabling::Tracer => Vec::new(),
    };
    let own = slice::find_own_instructions(&base_flow, &flow, &site, enabling, &gates);
    let base_lines = list_lines(&base_flow, &base, &[], BTreeSet::new(), names);
    let lines = list_lines(&flow, &site, &gates, own, names);
    let own_bytes = |path| count_bytes(lines.iter().filter(|line| line.site), path);
    let difference = |path| count_bytes(lines.iter(), path) as i64 - count_bytes(base_lines.iter(), path) as i64;
    MarkerAnatomy {
        likely_bytes: own_bytes(CodePath::Likely),
        unlikely_bytes: own_bytes(CodePath::Unlikely),
        function_likely_bytes: difference(CodePath::Likely),
        function_unlikely_bytes: difference(CodePath::Unlikely),
        gates: gates.iter().map(|(node, _)| flow.node_offset(*node)).collect(),
        assembly: lines,
        base_assembly: base_lines,
    }
}

impl MarkerAnatomy {
    /// Number of cache lines touched if both functions start `offset` bytes after a line's start.
    pub(crate) fn cache_lines(&self, offset: usize) -> CacheLines {
        CacheLines {
            base: count_touched_lines(&self.base_assembly, offset, &[CodePath::Likely, CodePath::Unlikely]),
            likely: count_touched_lines(&self.assembly, offset, &[CodePath::Likely]),
            both: count_touched_lines(&self.assembly, offset, &[CodePath::Likely, CodePath::Unlikely]),
        }
    }
}

fn list_lines(
    flow: &FlowGraph,
    function: &FunctionCode,
    gates: &[EdgeCut],
    site: BTreeSet<usize>,
    names: &dyn Fn(u64) -> Option<String>,
) -> Vec<AssemblyLine> {
    let likely = flow.reachable_nodes(gates);
    let aligning = slice::find_aligning_nops(flow, &likely).difference(&site).copied().collect();
    let paths = listing::InstructionPaths { likely, whole: flow.reachable_nodes(&[]), site, aligning };
    listing::build_lines(flow, function.bytes, &paths, names)
}

fn count_bytes<'a>(lines: impl Iterator<Item = &'a AssemblyLine>, path: CodePath) -> usize {
    lines.filter(|line| line.path == path && !line.aligning).map(AssemblyLine::len).sum()
}

/// Executed NOPs are fetched as well.
fn count_touched_lines(lines: &[AssemblyLine], offset: usize, paths: &[CodePath]) -> usize {
    let on_path = lines.iter().filter(|line| paths.contains(&line.path));
    let touched = on_path.flat_map(|line| {
        let first = offset + line.offset;
        first / CACHE_LINE..=(first + line.len() - 1) / CACHE_LINE
    });
    touched.collect::<BTreeSet<usize>>().len()
}
