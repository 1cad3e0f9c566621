//! Names for the addresses that the module's functions refer to, from the kernel's list.

use super::super::anatomy::kernel_address;
use iced_x86::{Decoder, DecoderOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

/// The kernel's list: lines `ADDRESS TYPE NAME`, with `[MODULE]` for a module's symbols. Without
/// permission, all addresses are 0.
pub(super) const SYMBOL_LIST: &str = "/proc/kallsyms";

/// Largest distance from a symbol at which an address belongs to it. Tracepoints and per-CPU
/// variables are structs.
const SYMBOL_REACH: u64 = 0x1000;

/// Bounds of sections have the linker's name in addition to the name of the object there.
fn is_bound_symbol(name: &str) -> bool {
    ["_start", "_begin", "_array", "_end"].iter().any(|bound| name.ends_with(bound))
}

/// Names by address.
#[derive(Debug, Default)]
pub(super) struct KernelSymbols(BTreeMap<u64, String>);

impl KernelSymbols {
    /// Finds the symbols at these addresses, or the closest ones before.
    pub(crate) fn find(addresses: &BTreeSet<u64>, list: impl BufRead) -> KernelSymbols {
        let mut best: BTreeMap<u64, (u64, String)> = BTreeMap::new();
        for line in list.lines().map_while(Result::ok) {
            let mut words = line.split_ascii_whitespace();
            let Some(start) = words.next().and_then(|word| u64::from_str_radix(word, 16).ok()) else {
                continue;
            };
            let Some(name) = words.nth(1).filter(|_| start != 0) else { continue };
            for address in addresses.range(start..start.saturating_add(SYMBOL_REACH)) {
                let known = best.get(address).map(|(known, _)| *known);
                let better = known.is_none_or(|known| known < start || (known == start && !is_bound_symbol(name)));
                if better {
                    best.insert(*address, (start, name.to_string()));
                }
            }
        }
        let named = |(address, (start, name)): (u64, (u64, String))| {
            let offset = address - start;
            (address, if offset == 0 { name } else { format!("{name}+{offset:#x}") })
        };
        KernelSymbols(best.into_iter().map(named).collect())
    }

    pub(crate) fn symbol_name(&self, address: u64) -> Option<String> {
        self.0.get(&address).cloned()
    }
}

/// The addresses that a function's instructions refer to.
pub(super) fn referenced_addresses(address: u64, bytes: &[u8]) -> impl Iterator<Item = u64> {
    Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).into_iter().flat_map(|instruction| {
        let target = Some(instruction.near_branch_target()).filter(|target| *target != 0);
        let memory = instruction.is_ip_rel_memory_operand().then(|| instruction.ip_rel_memory_address());
        [target, memory, kernel_address(&instruction)].into_iter().flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm;

    const LISTED: &str = "0000000000020000 A pcpu_hot\n\
        ffffffff81000000 T __thunk_start\n\
        ffffffff81000000 T __thunk_rax\n\
        ffffffff81000000 T __text_end\n\
        ffffffffc0001000 t flag_bare_nothing_0\t[cyclescope]\n\
        ffffffffc0003000 b probe\t[cyclescope]\n\
        ffffffffc0003008 b enabled\t[cyclescope]\n\
        nonsense\n";

    #[test]
    fn addresses_get_the_name_of_their_symbol() {
        let thunk = 0xffff_ffff_8100_0000;
        let addresses = [0x2_0008, thunk, 0xffff_ffff_c000_3000, 0xffff_ffff_c000_3008, 0xffff_ffff_c001_0000];
        let symbols = KernelSymbols::find(&addresses.into_iter().collect(), LISTED.as_bytes());
        let names = addresses.map(|address| symbols.symbol_name(address));
        let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
        assert_eq!(names, [Some("pcpu_hot+0x8"), Some("__thunk_rax"), Some("probe"), Some("enabled"), None]);
    }

    #[test]
    fn hidden_addresses_have_no_names() {
        let symbols = KernelSymbols::find(&[0, 8].into_iter().collect(), "0000000000000000 T hidden\n".as_bytes());
        assert!(symbols.symbol_name(0).is_none() && symbols.symbol_name(8).is_none());
    }

    #[test]
    fn functions_refer_to_code_variables_and_texts() {
        let bytes = asm::parse_assembly(
            "mov rdi, -0x3fffe000; cmp byte ptr [rip+0x100], 0; and rdi, -8; call after; after: ret",
        );
        let at = 0xffff_ffff_c000_1000;
        let found: Vec<u64> = referenced_addresses(at, bytes.unwrap().bytes()).collect();
        assert_eq!(found, [0xffff_ffff_c000_2000, at + 7 + 7 + 0x100, at + 7 + 7 + 4 + 5]);
    }
}
