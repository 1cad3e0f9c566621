//! Checks memory that no code in ring 0 may change: the kernel's text and constants, and memory of
//! a process.

use std::error::Error;
use std::fs::{File, read_to_string};
use std::os::unix::fs::FileExt;

/// Symbols around the kernel's text and read-only data.
const CONSTANT_RANGES: [(&str, &str); 2] = [("_stext", "_etext"), ("__start_rodata", "__end_rodata")];
const CANARY_WORDS: usize = (64 << 20) / 8;

/// A checksum over the kernel's text and constants.
pub fn sum_kernel_memory() -> Result<u64, Box<dyn Error>> {
    let symbols = read_to_string("/proc/kallsyms")?;
    let address = |name: &str| -> Result<u64, Box<dyn Error>> {
        let line = symbols.lines().find(|line| line.split(' ').nth(2) == Some(name));
        let digits = line.and_then(|line| line.split(' ').next()).ok_or(format!("/proc/kallsyms has no {name}"))?;
        Ok(u64::from_str_radix(digits, 16)?)
    };
    let memory = File::open("/proc/kcore")?;
    let mut sum = 0;
    for (from, to) in CONSTANT_RANGES {
        let (from, to) = (address(from)?, address(to)?);
        let mut bytes = vec![0; (to - from) as usize];
        memory.read_exact_at(&mut bytes, find_kcore_offset(&memory, from)?)?;
        sum = bytes.iter().fold(sum, add_to_sum);
    }
    Ok(sum)
}

/// FNV-1a.
fn add_to_sum(sum: u64, byte: &u8) -> u64 {
    (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
}

/// The offset of a kernel address in /proc/kcore, an ELF file.
fn find_kcore_offset(memory: &File, address: u64) -> Result<u64, Box<dyn Error>> {
    let mut head = [0; 64];
    memory.read_exact_at(&mut head, 0)?;
    let (table, count) = (read_word(&head, 32), u16::from_le_bytes([head[56], head[57]]));
    for index in 0..u64::from(count) {
        let mut segment = [0; 56];
        memory.read_exact_at(&mut segment, table + 56 * index)?;
        let (offset, start, bytes) = (read_word(&segment, 8), read_word(&segment, 16), read_word(&segment, 32));
        if (start..start.saturating_add(bytes)).contains(&address) {
            return Ok(offset + address - start);
        }
    }
    Err(format!("/proc/kcore has no {address:#x}").into())
}

fn read_word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

/// Memory of this process, filled with a pattern.
pub struct CanaryMemory(Vec<u64>);

impl CanaryMemory {
    /// 64 MiB.
    pub fn new() -> CanaryMemory {
        CanaryMemory((0..CANARY_WORDS).map(pattern_word).collect())
    }

    /// Number of words that have changed.
    pub fn count_changed_words(&self) -> usize {
        self.0.iter().enumerate().filter(|(index, word)| **word != pattern_word(*index)).count()
    }
}

fn pattern_word(index: usize) -> u64 {
    (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
