//! Gates: the edges that only an enabled marker goes, found by flow.

use super::flow::{Callee, Cut, Flow, Kind};
use iced_x86::Mnemonic;

/// A side of a conditional branch, and what is reached without it.
struct Candidate {
    cut: Cut,
    remains: Vec<bool>,
    /// How many instructions and places outside are only reached through it.
    lost: usize,
    /// Whether all of the base's branches and calls are still there, and the gate's branch as one more.
    keeps_base: bool,
}

/// The gates of a function whose marker tests something and branches; none where it has none that can be recognised.
pub(super) fn gates(base: &Flow, site: &Flow) -> Vec<Cut> {
    let candidates = candidates(base, site);
    let calls = own_calls(base, site, &candidates);
    let found = if calls.is_empty() { quiet(base, site, &candidates) } else { before(&calls, &candidates) };
    let mut cuts: Vec<Cut> = found.iter().map(|candidate| candidate.cut).collect();
    // A guard's own call may have a gate where the probe's has none.
    if found.len() < calls.len() {
        let leading = leading(base, site, &calls);
        cuts = if leading.is_empty() { cuts } else { leading };
    }
    cuts.sort_by_key(|(node, _)| *node);
    cuts.dedup();
    cuts
}

/// Sides of conditional branches that a dormant marker can do without: from wherever a return could be reached, it
/// still can.
fn candidates(base: &Flow, site: &Flow) -> Vec<Candidate> {
    let whole = site.reached(&[]);
    let returning = site.returning(&[]);
    let in_base = base.reached(&[]);
    let (branches, calls) = (base.branches(&in_base), base.calls(&in_base));
    let sides = (0..whole.len()).filter(|node| whole[*node] && site.is_conditional(*node));
    let cuts = sides.flat_map(|node| [(node, Kind::Taken), (node, Kind::NotTaken)]);
    let candidate = |cut: Cut| {
        let remains = site.reached(&[cut]);
        let still = site.returning(&[cut]);
        let lost = (0..whole.len()).filter(|node| whole[*node] && !remains[*node]).count();
        if lost == 0 || (0..whole.len()).any(|node| remains[node] && returning[node] && !still[node]) {
            return None;
        }
        let left = site.calls(&remains);
        let all_calls = calls
            .iter()
            .all(|(callee, nodes)| left.get(callee).is_some_and(|left| left.len() >= nodes.len()));
        let keeps_base = all_calls && site.branches(&remains) > branches;
        Some(Candidate { cut, remains, lost, keeps_base })
    };
    cuts.filter_map(candidate).collect()
}

/// Calls that the base does not have. Where it has some to the same callee, those behind a gate are the marker's.
fn own_calls(base: &Flow, site: &Flow, candidates: &[Candidate]) -> Vec<usize> {
    let in_base = base.calls(&base.reached(&[]));
    let mut own = Vec::new();
    for (callee, mut nodes) in site.calls(&site.reached(&[])) {
        let known = in_base.get(&callee).map_or(0, Vec::len);
        let gated = |node: usize| candidates.iter().any(|it| it.keeps_base && !it.remains[node]);
        nodes.sort_by_key(|node| gated(*node));
        own.extend(nodes.into_iter().skip(known));
    }
    own
}

/// The calls of a marker that nothing enables, in the order of their addresses.
pub(super) fn ungated_calls(base: &Flow, site: &Flow) -> Vec<usize> {
    let in_base = base.calls(&base.reached(&[]));
    let mut own = Vec::new();
    for (callee, nodes) in site.calls(&site.reached(&[])) {
        if !matches!(callee, Callee::Left(_)) {
            own.extend(nodes.into_iter().skip(in_base.get(&callee).map_or(0, Vec::len)));
        }
    }
    own.sort_unstable();
    own
}

/// For each call the first gate on the way to it.
fn before<'a>(calls: &[usize], candidates: &'a [Candidate]) -> Vec<&'a Candidate> {
    let ahead = |call: usize| candidates.iter().filter(move |candidate| !candidate.remains[call]);
    let first = |call: &usize| ahead(*call).filter(|it| it.keeps_base).max_by_key(|it| it.lost);
    calls.iter().filter_map(first).collect()
}

/// Where no single edge is the gate, since a compiler made several of one test: all sides of branches from which every
/// way leads through a call of the marker's before it comes to a return or around. None where without them the dormant
/// function would not be whole: a return, a call of the base or the loop would be lost.
fn leading(base: &Flow, site: &Flow, calls: &[usize]) -> Vec<Cut> {
    let whole = site.reached(&[]);
    let bound = site.bound_for(calls);
    let sides = |node: usize| site.edges(node).iter().filter(|edge| bound[edge.to]);
    let branches =
        (0..whole.len()).filter(|node| whole[*node] && site.is_conditional(*node) && !bound[*node]);
    let mut cuts: Vec<Cut> =
        branches.flat_map(|node| sides(node).map(move |edge| (node, edge.kind))).collect();
    let remains = site.reached(&cuts);
    // Those behind others are unlikely code.
    cuts.retain(|(node, _)| remains[*node]);
    let (returning, still) = (site.returning(&[]), site.returning(&cuts));
    let left = site.calls(&remains);
    let keeps_calls = base.calls(&base.reached(&[])).into_iter().all(|(callee, nodes)| {
        matches!(callee, Callee::Left(_)) || left.get(&callee).is_some_and(|left| left.len() >= nodes.len())
    });
    let keeps_returns = (0..whole.len()).all(|node| !remains[node] || !returning[node] || still[node]);
    let keeps_loop = !site.goes_around(&whole, &[]) || site.goes_around(&remains, &cuts);
    if keeps_calls && keeps_returns && keeps_loop { cuts } else { Vec::new() }
}

/// Gates in front of code without calls of its own: it comes back to the rest, and the base has nothing like it.
fn quiet<'a>(base: &Flow, site: &Flow, candidates: &'a [Candidate]) -> Vec<&'a Candidate> {
    let whole = site.reached(&[]);
    let twins: Vec<Vec<Mnemonic>> = {
        let whole = base.reached(&[]);
        let sides = (0..whole.len()).filter(|node| whole[*node] && base.is_conditional(*node));
        let cuts = sides.flat_map(|node| [(node, Kind::Taken), (node, Kind::NotTaken)]);
        cuts.map(|cut| lost(base, &whole, &base.reached(&[cut]))).collect()
    };
    let returns = |candidate: &Candidate| {
        let behind = (0..whole.len()).filter(|node| whole[*node] && !candidate.remains[*node]);
        behind.flat_map(|node| site.edges(node)).any(|edge| candidate.remains[edge.to])
    };
    let fit = |candidate: &&Candidate| {
        candidate.keeps_base && returns(candidate) && !twins.contains(&lost(site, &whole, &candidate.remains))
    };
    let fitting: Vec<&Candidate> = candidates.iter().filter(fit).collect();
    let inner = |it: &Candidate| fitting.iter().any(|other| other.lost > it.lost && !other.remains[it.cut.0]);
    fitting.iter().copied().filter(|it| !inner(it)).collect()
}

/// What is only reached through an edge, as mnemonics.
fn lost(flow: &Flow, whole: &[bool], remains: &[bool]) -> Vec<Mnemonic> {
    let instructions = flow.instructions().iter().enumerate();
    instructions.filter(|(node, _)| whole[*node] && !remains[*node]).map(|(_, it)| it.mnemonic()).collect()
}
