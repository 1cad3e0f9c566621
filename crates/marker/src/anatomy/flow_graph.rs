//! The control flow of a function: its instructions, and the edges between them.
//!
//! A call leads to the called function, if that is stored with this one, and to the next
//! instruction. Every call is assumed to return. Everything outside is one more node, which ends
//! the flow.

use super::super::compiled_design::PatchSite;
use super::super::source::design::Enabling;
use super::function_code::FunctionCode;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::BTreeMap;

/// A function's instructions and the edges between them.
pub(super) struct FlowGraph {
    start: u64,
    len: usize,
    entry: usize,
    instructions: Vec<Instruction>,
    /// Edges of each instruction, then of each place outside.
    edges: Vec<Vec<FlowEdge>>,
    outside: Vec<u64>,
}

/// An edge from one instruction to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlowEdge {
    pub to: usize,
    pub kind: EdgeKind,
}

/// The condition for taking an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgeKind {
    /// To the following instruction.
    Next,
    Jump,
    Call,
    /// A side of a conditional branch.
    Taken,
    NotTaken,
    /// Only when the marker is enabled.
    Patched,
}

/// An edge by its start. An instruction has at most one edge of a kind.
pub(super) type EdgeCut = (usize, EdgeKind);

/// The target of a call or of a jump out of the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Callee {
    /// A function stored with this one.
    Inside,
    Address(u64),
    /// Through a pointer at this address.
    Pointer(u64),
    /// Through a register, or a pointer in a register.
    Computed,
    /// A jump that leaves the function for good.
    Left(u64),
}

impl FlowGraph {
    pub(crate) fn new(function: &FunctionCode, enabling: Enabling) -> FlowGraph {
        let options = DecoderOptions::NONE;
        let decoder = Decoder::with_ip(function.mode.bits(), function.bytes, function.start, options);
        let instructions: Vec<Instruction> = decoder.into_iter().collect();
        let mut flow = FlowGraph {
            start: function.start,
            len: function.bytes.len(),
            entry: 0,
            edges: vec![Vec::new(); instructions.len()],
            instructions,
            outside: Vec::new(),
        };
        flow.entry = flow.node_at_offset(function.entry).unwrap_or(0);
        for node in 0..flow.instructions.len() {
            flow.connect_node(node);
        }
        if matches!(enabling, Enabling::Jump | Enabling::Entry) {
            for PatchSite { place, target } in function.sites {
                if let Some(node) = flow.node_at_offset(*place) {
                    flow.add_edge(node, *target, EdgeKind::Patched);
                }
            }
        }
        flow
    }

    fn connect_node(&mut self, node: usize) {
        let instruction = self.instructions[node];
        let target = instruction.near_branch_target();
        let next = match instruction.flow_control() {
            FlowControl::Next | FlowControl::Interrupt | FlowControl::IndirectCall => Some(EdgeKind::Next),
            FlowControl::Call => {
                if self.node_at_address(target).is_some() {
                    self.add_edge(node, target, EdgeKind::Call);
                }
                Some(EdgeKind::Next)
            }
            FlowControl::UnconditionalBranch => {
                self.add_edge(node, target, EdgeKind::Jump);
                None
            }
            FlowControl::ConditionalBranch => {
                self.add_edge(node, target, EdgeKind::Taken);
                Some(EdgeKind::NotTaken)
            }
            // A transaction's start also leads to its abort handler. No compiler emits one for a
            // marker.
            FlowControl::XbeginXabortXend => Some(EdgeKind::Next),
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => None,
        };
        if let Some(kind) = next.filter(|_| !instruction.is_invalid()) {
            self.add_edge(node, instruction.next_ip(), kind);
        }
    }

    fn add_edge(&mut self, from: usize, address: u64, kind: EdgeKind) {
        let to = self.node_at_address(address).unwrap_or_else(|| {
            let existing = self.outside.iter().position(|outside| *outside == address);
            let index = existing.unwrap_or_else(|| {
                self.outside.push(address);
                self.edges.push(Vec::new());
                self.outside.len() - 1
            });
            self.instructions.len() + index
        });
        self.edges[from].push(FlowEdge { to, kind });
    }

    pub(crate) fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The offset of an instruction from the function's start.
    pub(crate) fn node_offset(&self, node: usize) -> usize {
        (self.instructions[node].ip() - self.start) as usize
    }

    /// The instruction at an offset.
    pub(crate) fn node_at_offset(&self, offset: usize) -> Option<usize> {
        self.node_at_address(self.start.wrapping_add(offset as u64))
    }

    pub(crate) fn node_at_address(&self, address: u64) -> Option<usize> {
        let found = self.instructions.binary_search_by_key(&address, Instruction::ip).ok();
        found.filter(|_| address.wrapping_sub(self.start) < self.len as u64)
    }

    pub(crate) fn edges(&self, node: usize) -> &[FlowEdge] {
        &self.edges[node]
    }

    pub(crate) fn is_conditional(&self, node: usize) -> bool {
        self.flow_control(node) == Some(FlowControl::ConditionalBranch)
    }

    pub(crate) fn is_nop(&self, node: usize) -> bool {
        self.instructions[node].mnemonic() == Mnemonic::Nop
    }

    pub(crate) fn is_call(&self, node: usize) -> bool {
        matches!(self.flow_control(node), Some(FlowControl::Call | FlowControl::IndirectCall))
    }

    fn flow_control(&self, node: usize) -> Option<FlowControl> {
        self.instructions.get(node).map(Instruction::flow_control)
    }

    /// The edges that enabling adds.
    pub(crate) fn patched_edges(&self) -> Vec<EdgeCut> {
        let patched = |node: &usize| self.edges[*node].iter().any(|edge| edge.kind == EdgeKind::Patched);
        (0..self.edges.len()).filter(patched).map(|node| (node, EdgeKind::Patched)).collect()
    }

    /// The targets of branches and calls.
    pub(crate) fn mark_targets(&self) -> Vec<bool> {
        let mut targets = vec![false; self.edges.len()];
        for edge in self.edges.iter().flatten() {
            targets[edge.to] |= !matches!(edge.kind, EdgeKind::Next | EdgeKind::NotTaken);
        }
        targets
    }

    /// The nodes reachable from the entry without these edges.
    pub(crate) fn reachable_nodes(&self, cuts: &[EdgeCut]) -> Vec<bool> {
        let mut reached = vec![false; self.edges.len()];
        let mut open = Vec::from_iter((!self.instructions.is_empty()).then_some(self.entry));
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                let edges = self.edges[node].iter().filter(|edge| !cuts.contains(&(node, edge.kind)));
                open.extend(edges.map(|edge| edge.to));
            }
        }
        reached
    }

    /// The nodes that can reach a return without these edges.
    pub(crate) fn nodes_that_return(&self, cuts: &[EdgeCut]) -> Vec<bool> {
        let leaves = |node| {
            let control = self.flow_control(node);
            control.is_none_or(|it| matches!(it, FlowControl::Return | FlowControl::IndirectBranch))
        };
        let mut returning: Vec<bool> = (0..self.edges.len()).map(leaves).collect();
        let mut news = true;
        while news {
            news = false;
            for node in (0..self.edges.len()).rev() {
                let leads = |edge: &FlowEdge| returning[edge.to] && !cuts.contains(&(node, edge.kind));
                if !returning[node] && self.edges[node].iter().any(leads) {
                    returning[node] = true;
                    news = true;
                }
            }
        }
        returning
    }

    /// The nodes whose every path reaches one of `nodes` in finitely many steps.
    pub(crate) fn nodes_bound_for(&self, nodes: &[usize]) -> Vec<bool> {
        let mut bound = vec![false; self.edges.len()];
        nodes.iter().for_each(|node| bound[*node] = true);
        let mut news = true;
        while news {
            news = false;
            for node in (0..self.edges.len()).rev().filter(|node| !self.edges[*node].is_empty()) {
                if !bound[node] && self.edges[node].iter().all(|edge| bound[edge.to]) {
                    bound[node] = true;
                    news = true;
                }
            }
        }
        bound
    }

    /// Whether there is a loop among these nodes without these edges.
    pub(crate) fn has_loop(&self, among: &[bool], cuts: &[EdgeCut]) -> bool {
        // Repeatedly removes nodes without remaining successors. Only loops and paths to them
        // remain.
        let mut left = among.to_vec();
        let leads = |left: &[bool], node: usize| {
            self.edges[node].iter().any(|edge| left[edge.to] && !cuts.contains(&(node, edge.kind)))
        };
        while let Some(node) = (0..left.len()).find(|node| left[*node] && !leads(&left, *node)) {
            left[node] = false;
        }
        left.contains(&true)
    }

    /// The calls among these instructions, and the places outside.
    pub(crate) fn calls_by_callee(&self, among: &[bool]) -> BTreeMap<Callee, Vec<usize>> {
        let mut calls: BTreeMap<Callee, Vec<usize>> = BTreeMap::new();
        for node in (0..self.edges.len()).filter(|node| among[*node]) {
            let callee = match self.instructions.get(node) {
                None => Some(Callee::Left(self.outside[node - self.instructions.len()])),
                Some(instruction) => self.find_callee(instruction),
            };
            if let Some(callee) = callee {
                calls.entry(callee).or_default().push(node);
            }
        }
        calls
    }

    fn find_callee(&self, instruction: &Instruction) -> Option<Callee> {
        match instruction.flow_control() {
            FlowControl::Call if self.node_at_address(instruction.near_branch_target()).is_some() => {
                Some(Callee::Inside)
            }
            FlowControl::Call => Some(Callee::Address(instruction.near_branch_target())),
            FlowControl::IndirectCall => Some(fixed_address(instruction).map_or(Callee::Computed, Callee::Pointer)),
            _ => None,
        }
    }

    /// Number of conditional branches among these instructions.
    pub(crate) fn count_branches(&self, among: &[bool]) -> usize {
        (0..self.edges.len()).filter(|node| among[*node] && self.is_conditional(*node)).count()
    }
}

/// The address of a memory operand without register or segment.
pub(super) fn fixed_address(instruction: &Instruction) -> Option<u64> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(instruction.ip_rel_memory_address());
    }
    let memory = (0..instruction.op_count()).any(|n| instruction.op_kind(n) == OpKind::Memory);
    let none = instruction.memory_base() == Register::None
        && instruction.memory_index() == Register::None
        && instruction.segment_prefix() == Register::None;
    (memory && none).then(|| instruction.memory_displacement64())
}
