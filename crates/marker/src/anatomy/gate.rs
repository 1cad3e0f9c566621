//! Gates: the edges that only an enabled marker takes, found by control flow.

use super::flow_graph::{Callee, EdgeCut, EdgeKind, FlowGraph};
use iced_x86::Mnemonic;

/// A side of a conditional branch, and the nodes reachable without it.
struct GateCandidate {
    cut: EdgeCut,
    remains: Vec<bool>,
    /// Number of instructions and outside places that are only reachable through it.
    lost: usize,
    /// Whether all of the base's branches and calls remain, plus the gate's branch.
    keeps_base: bool,
}

/// The gates of a function whose marker tests a value and branches; empty if none is recognisable.
pub(super) fn find_gates(base: &FlowGraph, site: &FlowGraph) -> Vec<EdgeCut> {
    let candidates = list_candidates(base, site);
    let calls = list_own_calls(base, site, &candidates);
    let found = if calls.is_empty() {
        find_callless_gates(base, site, &candidates)
    } else {
        find_first_gates(&calls, &candidates)
    };
    let mut cuts: Vec<EdgeCut> = found.iter().map(|candidate| candidate.cut).collect();
    // A guard's own call may have a gate when the probe's call has none.
    if found.len() < calls.len() {
        let leading = find_sides_to_calls(base, site, &calls);
        cuts = if leading.is_empty() { cuts } else { leading };
    }
    cuts.sort_by_key(|(node, _)| *node);
    cuts.dedup();
    cuts
}

/// Sides of conditional branches that a dormant marker does not need: every node that could reach a
/// return still can.
fn list_candidates(base: &FlowGraph, site: &FlowGraph) -> Vec<GateCandidate> {
    let whole = site.reachable_nodes(&[]);
    let returning = site.nodes_that_return(&[]);
    let in_base = base.reachable_nodes(&[]);
    let (branches, calls) = (base.count_branches(&in_base), base.calls_by_callee(&in_base));
    let sides = (0..whole.len()).filter(|node| whole[*node] && site.is_conditional(*node));
    let cuts = sides.flat_map(|node| [(node, EdgeKind::Taken), (node, EdgeKind::NotTaken)]);
    let candidate = |cut: EdgeCut| {
        let remains = site.reachable_nodes(&[cut]);
        let still = site.nodes_that_return(&[cut]);
        let lost = (0..whole.len()).filter(|node| whole[*node] && !remains[*node]).count();
        if lost == 0 || (0..whole.len()).any(|node| remains[node] && returning[node] && !still[node]) {
            return None;
        }
        let left = site.calls_by_callee(&remains);
        let all_calls =
            calls.iter().all(|(callee, nodes)| left.get(callee).is_some_and(|left| left.len() >= nodes.len()));
        let keeps_base = all_calls && site.count_branches(&remains) > branches;
        Some(GateCandidate { cut, remains, lost, keeps_base })
    };
    cuts.filter_map(candidate).collect()
}

/// Calls that the base does not have. If it has calls to the same callee, those after a gate belong
/// to the marker.
fn list_own_calls(base: &FlowGraph, site: &FlowGraph, candidates: &[GateCandidate]) -> Vec<usize> {
    let in_base = base.calls_by_callee(&base.reachable_nodes(&[]));
    let mut own = Vec::new();
    for (callee, mut nodes) in site.calls_by_callee(&site.reachable_nodes(&[])) {
        let known = in_base.get(&callee).map_or(0, Vec::len);
        let gated = |node: usize| candidates.iter().any(|it| it.keeps_base && !it.remains[node]);
        nodes.sort_by_key(|node| gated(*node));
        own.extend(nodes.into_iter().skip(known));
    }
    own
}

/// The calls of a marker that nothing enables, ordered by address.
pub(super) fn list_ungated_calls(base: &FlowGraph, site: &FlowGraph) -> Vec<usize> {
    let in_base = base.calls_by_callee(&base.reachable_nodes(&[]));
    let mut own = Vec::new();
    for (callee, nodes) in site.calls_by_callee(&site.reachable_nodes(&[])) {
        if !matches!(callee, Callee::Left(_)) {
            own.extend(nodes.into_iter().skip(in_base.get(&callee).map_or(0, Vec::len)));
        }
    }
    own.sort_unstable();
    own
}

/// For each call, the first gate on the way to it.
fn find_first_gates<'a>(calls: &[usize], candidates: &'a [GateCandidate]) -> Vec<&'a GateCandidate> {
    let ahead = |call: usize| candidates.iter().filter(move |candidate| !candidate.remains[call]);
    let first = |call: &usize| ahead(*call).filter(|it| it.keeps_base).max_by_key(|it| it.lost);
    calls.iter().filter_map(first).collect()
}

/// Gates for a test that the compiler duplicated, so that no single edge is the gate. They are all
/// branch sides whose every path makes one of the marker's calls before it returns or loops. Empty
/// if the dormant function would then lose a return, a call of the base or the loop.
fn find_sides_to_calls(base: &FlowGraph, site: &FlowGraph, calls: &[usize]) -> Vec<EdgeCut> {
    let whole = site.reachable_nodes(&[]);
    let bound = site.nodes_bound_for(calls);
    let sides = |node: usize| site.edges(node).iter().filter(|edge| bound[edge.to]);
    let branches = (0..whole.len()).filter(|node| whole[*node] && site.is_conditional(*node) && !bound[*node]);
    let mut cuts: Vec<EdgeCut> = branches.flat_map(|node| sides(node).map(move |edge| (node, edge.kind))).collect();
    let remains = site.reachable_nodes(&cuts);
    // Cuts after other cuts are unlikely code.
    cuts.retain(|(node, _)| remains[*node]);
    let (returning, still) = (site.nodes_that_return(&[]), site.nodes_that_return(&cuts));
    let left = site.calls_by_callee(&remains);
    let keeps_calls = base.calls_by_callee(&base.reachable_nodes(&[])).into_iter().all(|(callee, nodes)| {
        matches!(callee, Callee::Left(_)) || left.get(&callee).is_some_and(|left| left.len() >= nodes.len())
    });
    let keeps_returns = (0..whole.len()).all(|node| !remains[node] || !returning[node] || still[node]);
    let keeps_loop = !site.has_loop(&whole, &[]) || site.has_loop(&remains, &cuts);
    if keeps_calls && keeps_returns && keeps_loop { cuts } else { Vec::new() }
}

/// Gates of unlikely code without its own calls: it rejoins the rest, and the base contains nothing
/// similar.
fn find_callless_gates<'a>(
    base: &FlowGraph,
    site: &FlowGraph,
    candidates: &'a [GateCandidate],
) -> Vec<&'a GateCandidate> {
    let whole = site.reachable_nodes(&[]);
    let twins: Vec<Vec<Mnemonic>> = {
        let whole = base.reachable_nodes(&[]);
        let sides = (0..whole.len()).filter(|node| whole[*node] && base.is_conditional(*node));
        let cuts = sides.flat_map(|node| [(node, EdgeKind::Taken), (node, EdgeKind::NotTaken)]);
        cuts.map(|cut| lost_mnemonics(base, &whole, &base.reachable_nodes(&[cut]))).collect()
    };
    let returns = |candidate: &GateCandidate| {
        let behind = (0..whole.len()).filter(|node| whole[*node] && !candidate.remains[*node]);
        behind.flat_map(|node| site.edges(node)).any(|edge| candidate.remains[edge.to])
    };
    let fit = |candidate: &&GateCandidate| {
        candidate.keeps_base && returns(candidate) && !twins.contains(&lost_mnemonics(site, &whole, &candidate.remains))
    };
    let fitting: Vec<&GateCandidate> = candidates.iter().filter(fit).collect();
    let inner = |it: &GateCandidate| fitting.iter().any(|other| other.lost > it.lost && !other.remains[it.cut.0]);
    fitting.iter().copied().filter(|it| !inner(it)).collect()
}

/// The mnemonics of the code that is only reachable through an edge.
fn lost_mnemonics(flow: &FlowGraph, whole: &[bool], remains: &[bool]) -> Vec<Mnemonic> {
    let instructions = flow.instructions().iter().enumerate();
    instructions.filter(|(node, _)| whole[*node] && !remains[*node]).map(|(_, it)| it.mnemonic()).collect()
}
