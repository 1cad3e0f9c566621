//! What a marker adds to the code: which instructions are on which path, and how many bytes.
//!
//! **Paths.** Control flow is followed from the function's entry: through both sides of conditional branches, through
//! calls into functions that lie with it, and, where enabling patches a NOP into a jump, to the jump's target. What
//! is reached by nothing is *padding*. A *gate* is an edge that only an enabled marker goes; what is reached without
//! gates is *likely*, what is only reached through one *unlikely*. Gates are found so:
//!
//! - Where enabling patches a jump, the jump is the gate.
//! - Where enabling changes a value, a gate is a side of a conditional branch. Without it the dormant function is whole:
//!   a return can be reached from wherever it could be, every call that the base has is there as often, and one more
//!   conditional branch than the base has, the gate's own (so a loop's guard is none: without it the loop is lost).
//!   Of such sides on the way to a call that the base does not have, the first is the gate: several tests in a row are
//!   one gate and unlikely code. Where there is no such call, gates are those whose code comes back to the rest, the
//!   outermost of each, if the base has no code alike that a branch leads around.
//! - An indirect call, a tracer's NOP and a NOP at a function's entry have no gate: all is likely.
//!
//! **The site's own bytes.** Likely: the gate's branch, what sets the flags that it reads and what loads the value for
//! that, backwards within the block; the NOP that enabling replaces; of an indirect call the call and what sets up its
//! arguments. Unlikely: all of the unlikely path, the jump back included. The document on Linux kernel markers counts
//! the likely bytes so (2 + 2 + 2 = 6 with an immediate value, 7 + 2 + 2 = 11 with a load); of unlikely bytes it counts
//! 32, where its listing has 51 from +0x13 through the jump back at +0x44, and it leaves out what the marker does to
//! the function's prologue.
//!
//! **The difference of the whole function** has the rest: registers that are saved, moves between them, guards that an
//! indirect call has on the likely path. NOPs that only align are left out of all counts: padding, and those that are
//! run through in front of a branch's target that is a multiple of 8.
//!
//! Limits: one stretch of bytes, so an unlikely path in another section is not counted; indirect jumps lead nowhere; a
//! call is taken to return; a slice stops at its block's start, and what a test needs from outside of the loop counts in
//! the difference only. Where compilers made several tests of one (or the loops with and without the marker differ in
//! shape), no side keeps all of the base; then gates are all sides from which every way leads through a call of the
//! marker's before a return or once around, if without all of them returns, the base's calls and the loop are still
//! there. If they are not, no gate is named, and nothing is called unlikely.

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

/// The bytes of a line of the cache (Intel SDM vol. 2, CPUID leaf 4; the same on AMD's).
const CACHE_LINE: usize = 64;

/// What a marker adds to a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkerAnatomy {
    /// Bytes of the marker's own instructions on the likely path.
    pub likely_bytes: usize,
    /// Bytes of the unlikely path.
    pub unlikely_bytes: usize,
    /// Bytes on the likely path, less those of the function without the marker.
    pub function_likely_bytes: i64,
    /// Bytes on the unlikely path, less those of the function without the marker.
    pub function_unlikely_bytes: i64,
    /// The offsets of the branches and NOPs that lead to the unlikely path.
    pub gates: Vec<usize>,
    /// The function.
    pub assembly: Vec<AssemblyLine>,
    /// The function without the marker.
    pub base_assembly: Vec<AssemblyLine>,
}

/// How many lines of the cache a function's instructions lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheLines {
    /// The function without the marker.
    pub base: usize,
    /// The likely path.
    pub likely: usize,
    /// Both paths.
    pub both: usize,
}

/// Compares a function that has a marker with the same function without it. `names` names addresses outside of them.
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
    /// The lines of the cache that are touched where both functions start `offset` bytes behind a line's start.
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

/// NOPs that are run through are fetched, too.
fn count_touched_lines(lines: &[AssemblyLine], offset: usize, paths: &[CodePath]) -> usize {
    let on_path = lines.iter().filter(|line| paths.contains(&line.path));
    let touched = on_path.flat_map(|line| {
        let first = offset + line.offset;
        first / CACHE_LINE..=(first + line.len() - 1) / CACHE_LINE
    });
    touched.collect::<BTreeSet<usize>>().len()
}
