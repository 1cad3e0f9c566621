//! A function's instructions as lines that are the same in every process. Places outside have a
//! name or none, but no address.

use super::flow_graph::{FlowGraph, fixed_address};
use crate::compiled_design::CompiledDesign;
use cyclescope_code::asm;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

/// Name of an unnamed place outside.
const ELSEWHERE: &str = "elsewhere";

/// The condition for reaching an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodePath {
    /// Reached while the marker is dormant.
    Likely,
    /// Only reached while it is enabled.
    Unlikely,
    /// Never reached.
    Padding,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssemblyLine {
    /// Offset from the function's start.
    pub offset: usize,
    /// Its bytes in hexadecimal.
    pub bytes: String,
    /// Text in Intel syntax; branch targets are offsets from the function's start.
    pub text: String,
    /// The condition for reaching it.
    pub path: CodePath,
    /// Whether it belongs to the marker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub site: bool,
    /// Whether it is an executed NOP that only aligns what follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aligning: bool,
}

impl AssemblyLine {
    /// Length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / 2
    }
}

/// Formats as `+0x10  84c0  test al, al`, plus the role of the line.
impl fmt::Display for AssemblyLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = match (self.path, self.site) {
            (CodePath::Padding, _) => "padding",
            (CodePath::Unlikely, _) => "unlikely",
            (CodePath::Likely, true) => "likely, marker",
            (CodePath::Likely, false) if self.aligning => "likely, aligns",
            (CodePath::Likely, false) => "likely",
        };
        let offset = format!("+{:#x}", self.offset);
        write!(out, "{offset:<7}{:<24}{:<43} {note}", self.bytes, self.text)
    }
}

/// Classification of a function's instructions.
pub(super) struct InstructionPaths {
    pub likely: Vec<bool>,
    pub whole: Vec<bool>,
    pub site: BTreeSet<usize>,
    pub aligning: BTreeSet<usize>,
}

pub(super) fn build_lines(
    flow: &FlowGraph,
    code: &[u8],
    paths: &InstructionPaths,
    names: &dyn Fn(u64) -> Option<String>,
) -> Vec<AssemblyLine> {
    let line = |(node, instruction): (usize, &Instruction)| {
        let offset = flow.node_offset(node);
        let bytes = &code[offset..offset + instruction.len()];
        let path = match (paths.likely[node], paths.whole[node]) {
            (true, _) => CodePath::Likely,
            (false, true) => CodePath::Unlikely,
            (false, false) => CodePath::Padding,
        };
        AssemblyLine {
            offset,
            bytes: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            text: format_instruction(flow, instruction, names),
            path,
            site: paths.site.contains(&node) || path == CodePath::Unlikely,
            aligning: paths.aligning.contains(&node),
        }
    };
    flow.instructions().iter().enumerate().map(line).collect()
}

/// The addresses of the kernel's and its modules' code (Linux:
/// Documentation/arch/x86/x86_64/mm.rst).
const KERNEL_CODE: RangeInclusive<u64> = 0xffff_ffff_8000_0000..=0xffff_ffff_feff_ffff;

/// The kernel address that an instruction loads into a register as a constant. The kernel's code is
/// addressable with 32 bits.
pub(in super::super) fn kernel_address(instruction: &Instruction) -> Option<u64> {
    let moves = instruction.mnemonic() == Mnemonic::Mov && instruction.op1_kind() == OpKind::Immediate32to64;
    moves.then(|| instruction.immediate(1)).filter(|value| KERNEL_CODE.contains(value))
}

fn format_instruction(flow: &FlowGraph, instruction: &Instruction, names: &dyn Fn(u64) -> Option<String>) -> String {
    let name = |address: u64| match flow.node_at_address(address) {
        Some(node) => format!("+{:#x}", flow.node_offset(node)),
        None => names(address).unwrap_or_else(|| ELSEWHERE.to_string()),
    };
    let text = asm::format_instruction(instruction);
    let branch = matches!(
        instruction.flow_control(),
        FlowControl::Call | FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
    );
    if branch {
        let mnemonic = text.rsplit_once(' ').map_or(text.as_str(), |(mnemonic, _)| mnemonic);
        return format!("{mnemonic} {}", name(instruction.near_branch_target()));
    }
    if let (Some(address), Some((before, _))) = (kernel_address(instruction), text.rsplit_once(", ")) {
        return format!("{before}, {}", name(address));
    }
    match (fixed_address(instruction), text.split_once('['), text.rsplit_once(']')) {
        (Some(address), Some((before, _)), Some((_, behind))) => {
            format!("{before}[{}]{behind}", name(address))
        }
        _ => text,
    }
}

/// Names for the addresses that a design's functions refer to.
pub fn name_addresses(compiled: &CompiledDesign) -> impl Fn(u64) -> Option<String> {
    let CompiledDesign { enabled, probe, grace_period, .. } = *compiled;
    move |address| match address {
        _ if Some(address) == enabled => Some("enabled".to_string()),
        _ if Some(address) == probe => Some("probe".to_string()),
        _ if Some(address) == grace_period => Some("grace_period".to_string()),
        _ => None,
    }
}
