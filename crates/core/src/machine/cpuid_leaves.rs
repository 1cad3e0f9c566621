//! Table of CPUID leaves, read once; the source of facts for other modules.
//!
//! In a VM each CPUID exits to the hypervisor (1 000 to 70 000 ticks), so each leaf is read once
//! and kept. Tests and results from other machines build the same table from recorded values.

use cyclescope_platform::{cpus, processor};
use serde::{Serialize, Serializer};
use std::{fmt, io};

/// One of the four registers of a CPUID answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CpuidRegister {
    /// EAX.
    Eax,
    /// EBX.
    Ebx,
    /// ECX.
    Ecx,
    /// EDX.
    Edx,
}

/// The answers of CPUID on one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuidLeaves {
    table: Vec<CpuidLeaf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CpuidLeaf {
    leaf: u32,
    subleaf: u32,
    answer: [u32; 4],
}

/// Leaves to read with their number of subleaves: all that this module uses.
const LEAVES_TO_READ: &[(u32, u32)] = &[
    (0x0000_0000, 1),
    (0x0000_0001, 1),
    (0x0000_0002, 1),
    (0x0000_0007, 3),
    (0x0000_000A, 1),
    (0x0000_000D, 2),
    (0x0000_0012, 1),
    (0x0000_0014, 1),
    (0x0000_0015, 1),
    (0x0000_0016, 1),
    (0x0000_0019, 1),
    (0x0000_001A, 1),
    (0x0000_0021, 1),
    (0x4000_0000, 1),
    (0x4000_0010, 1),
    (0x8000_0000, 1),
    (0x8000_0001, 1),
    (0x8000_0002, 1),
    (0x8000_0003, 1),
    (0x8000_0004, 1),
    (0x8000_0005, 1),
    (0x8000_0006, 1),
    (0x8000_0007, 1),
    (0x8000_0008, 1),
    (0x8000_001F, 1),
    (0x8000_0021, 1),
    (0xC000_0000, 1),
    (0xC000_0001, 1),
];

/// Cache leaves list one cache per subleaf until the type field is 0 (SDM vol. 2A, CPUID 04h; APM
/// vol. 3, CPUID 8000_001Dh). No processor has more caches than this.
const MOST_CACHES: u32 = 8;

/// Largest number of leaf 18h subleaves to read, one TLB each; no processor has more.
pub(super) const MOST_TRANSLATIONS: u32 = 16;

impl CpuidLeaves {
    /// Executes CPUID on the thread's current CPU.
    ///
    /// Empty if the kernel makes CPUID fault for this process (`arch_prctl(ARCH_SET_CPUID, 0)`).
    pub(crate) fn read() -> CpuidLeaves {
        if processor::cpuid_faults() {
            return CpuidLeaves::default();
        }
        CpuidLeaves::from_reader(|leaf, subleaf| {
            let answer = raw_cpuid::native_cpuid::cpuid_count(leaf, subleaf);
            [answer.eax, answer.ebx, answer.ecx, answer.edx]
        })
    }

    /// Executes CPUID on `cpu`, in a separate thread so that the caller's affinity stays unchanged.
    pub(crate) fn read_on(cpu: u32) -> Result<CpuidLeaves, CpuRefusal> {
        run_on_cpu(cpu, CpuidLeaves::read)
    }

    /// Reads every leaf from `cpuid(leaf, subleaf)`; asks only for those that exist.
    pub(crate) fn from_reader(cpuid: impl Fn(u32, u32) -> [u32; 4]) -> CpuidLeaves {
        let mut leaves = CpuidLeaves::default();
        for &(leaf, subleaves) in LEAVES_TO_READ {
            if leaves.leaf_exists(leaf) {
                for subleaf in 0..subleaves {
                    leaves.push_leaf(leaf, subleaf, cpuid(leaf, subleaf));
                }
            }
        }
        // TLBs: the first subleaf gives the number of the last one (SDM vol. 2A, CPUID 18h).
        if leaves.leaf_exists(0x18) {
            let first = cpuid(0x18, 0);
            leaves.push_leaf(0x18, 0, first);
            for subleaf in 1..=first[0].min(MOST_TRANSLATIONS - 1) {
                leaves.push_leaf(0x18, subleaf, cpuid(0x18, subleaf));
            }
        }
        let caches = if leaves.is_amd() { 0x8000_001D } else { 4 };
        for subleaf in 0..MOST_CACHES {
            if !leaves.leaf_exists(caches) {
                break;
            }
            let answer = cpuid(caches, subleaf);
            leaves.push_leaf(caches, subleaf, answer);
            if answer[0] & 0x1F == 0 {
                break;
            }
        }
        leaves
    }

    /// Builds a table from recorded answers `(leaf, subleaf, [eax, ebx, ecx, edx])`.
    pub fn from_table(rows: &[(u32, u32, [u32; 4])]) -> CpuidLeaves {
        let mut leaves = CpuidLeaves::default();
        for &(leaf, subleaf, answer) in rows {
            leaves.push_leaf(leaf, subleaf, answer);
        }
        leaves
    }

    /// Whether nothing could be read.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The answer of CPUID; `None` if the leaf does not exist.
    pub(crate) fn find_leaf(&self, leaf: u32, subleaf: u32) -> Option<[u32; 4]> {
        self.table.iter().find(|row| row.leaf == leaf && row.subleaf == subleaf).map(|row| row.answer)
    }

    /// One register; 0 if the leaf does not exist, as the manuals define absent feature bits.
    pub(crate) fn register(&self, leaf: u32, subleaf: u32, register: CpuidRegister) -> u32 {
        self.find_leaf(leaf, subleaf).map_or(0, |answer| answer[register as usize])
    }

    /// One bit of a register; false if the leaf does not exist.
    pub(crate) fn has_bit(&self, leaf: u32, subleaf: u32, register: CpuidRegister, bit: u32) -> bool {
        self.register(leaf, subleaf, register) >> bit & 1 == 1
    }

    /// The vendor's twelve characters from leaf 0, for example `GenuineIntel`.
    pub(crate) fn vendor_text(&self) -> String {
        let [_, ebx, ecx, edx] = self.find_leaf(0, 0).unwrap_or_default();
        registers_to_text(&[ebx, edx, ecx])
    }

    fn is_amd(&self) -> bool {
        matches!(self.vendor_text().as_str(), "AuthenticAMD" | "HygonGenuine")
    }

    fn push_leaf(&mut self, leaf: u32, subleaf: u32, answer: [u32; 4]) {
        self.table.push(CpuidLeaf { leaf, subleaf, answer });
    }

    /// Whether a leaf exists. On Intel, reading beyond the highest leaf of a range returns another
    /// leaf's data (SDM vol. 2A, CPUID), so the range's own maximum decides.
    fn leaf_exists(&self, leaf: u32) -> bool {
        let first = leaf & 0xFFFF_0000;
        match first {
            _ if leaf == 0 => true,
            // The hypervisor's range exists if leaf 1 reports a hypervisor (ECX[31]).
            0x4000_0000 if !self.has_bit(1, 0, CpuidRegister::Ecx, 31) => false,
            0xC000_0000 if !is_centaur(&self.vendor_text()) => false,
            _ if leaf == first => true,
            _ => {
                let highest = self.register(first, 0, CpuidRegister::Eax);
                highest >> 16 == first >> 16 && leaf <= highest
            }
        }
    }
}

/// Why work could not run on a CPU.
#[derive(Debug)]
pub enum CpuRefusal {
    /// The system starts no thread.
    NoThread(io::Error),
    /// The system does not move a thread to this CPU.
    NotMoved(u32, io::Error),
    /// For another reason.
    Other(String),
}

impl fmt::Display for CpuRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpuRefusal::NoThread(error) => write!(f, "no thread could be started: {error}"),
            CpuRefusal::NotMoved(cpu, error) => write!(f, "this process may not run on CPU {cpu}: {error}"),
            CpuRefusal::Other(why) => f.write_str(why),
        }
    }
}

impl From<CpuRefusal> for String {
    fn from(refusal: CpuRefusal) -> String {
        refusal.to_string()
    }
}

/// Runs `work` on `cpu` in a separate thread.
pub fn run_on_cpu<T: Send>(cpu: u32, work: impl FnOnce() -> T + Send) -> Result<T, CpuRefusal> {
    if cpu as usize >= cpus::MOST_NAMED {
        let why = format!("CPU {cpu} is beyond the {} that can be named", cpus::MOST_NAMED);
        return Err(CpuRefusal::Other(why));
    }
    std::thread::scope(|scope| {
        let pinned = move || match cpus::move_thread(cpu) {
            Ok(()) => Ok(work()),
            Err(error) => Err(CpuRefusal::NotMoved(cpu, error)),
        };
        let thread = std::thread::Builder::new().spawn_scoped(scope, pinned);
        let panicked = |_| Err(CpuRefusal::Other("the thread on the CPU panicked".to_string()));
        thread.map_err(CpuRefusal::NoThread)?.join().unwrap_or_else(panicked)
    })
}

/// Whether the processor has Centaur's range of leaves at C000_0000h, which Zhaoxin continues.
fn is_centaur(vendor: &str) -> bool {
    matches!(vendor, "CentaurHauls" | "  Shanghai  ")
}

/// Registers as text, up to the first NUL.
pub(super) fn registers_to_text(registers: &[u32]) -> String {
    let bytes: Vec<u8> = registers.iter().flat_map(|register| register.to_le_bytes()).collect();
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

impl Serialize for CpuidLeaves {
    /// Serializes to a map from `"leaf.subleaf"` to `"eax ebx ecx edx"`, all hexadecimal.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.table.iter().map(|row| {
            let [eax, ebx, ecx, edx] = row.answer;
            (format!("{:08x}.{:x}", row.leaf, row.subleaf), format!("{eax:08x} {ebx:08x} {ecx:08x} {edx:08x}"))
        }))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An Emerald Rapids VM under KVM without 15h and 16h, with AVX-512 and without AMX.
    pub(crate) fn emerald_rapids_vm() -> CpuidLeaves {
        CpuidLeaves::from_table(&[
            (0, 0, [0x1c, 0x756e6547, 0x6c65746e, 0x49656e69]),
            (1, 0, [0x000c06f2, 0x01020800, 0xfffa3203, 0x1f8bfbff]),
            (7, 0, [2, 0xf1bf2ffb, 0x1a415f46, 0x20814010]),
            (7, 1, [0x1c30, 0, 0, 0]),
            (0xd, 0, [0xe7, 0xa80, 0x2b00, 0]),
            (0xd, 1, [0x1f, 0x980, 0, 0]),
            (0x15, 0, [0, 0, 0, 0]),
            (0x4000_0000, 0, [0x4000_0001, 0x4b4d564b, 0x564b4d56, 0x4d]),
            (0x8000_0000, 0, [0x8000_0021, 0, 0, 0]),
            (0x8000_0001, 0, [0, 0, 0x121, 0x2c100800]),
            (0x8000_0007, 0, [0, 0, 0, 0x100]),
            (0x8000_0021, 0, [0x244, 0, 0x86, 0]),
            (4, 0, [0x04000121, 0x02c0003f, 0x3f, 0]),
            (4, 1, [0x04000122, 0x01c0003f, 0x3f, 0]),
            (4, 2, [0x04000143, 0x03c0003f, 0x7ff, 0]),
            (4, 3, [0x04004163, 0x04c0003f, 0x33fff, 0]),
            (4, 4, [0, 0, 0, 0]),
        ])
    }

    #[test]
    fn absent_leaves_read_as_zero() {
        let leaves = CpuidLeaves::from_table(&[]);
        assert!(leaves.is_empty());
        assert!(!leaves.has_bit(7, 0, CpuidRegister::Ebx, 5));
        assert_eq!(leaves.vendor_text(), "");
    }

    #[test]
    fn a_forbidden_cpu_gives_a_reason() {
        assert!(CpuidLeaves::read_on(1_000_000).is_err());
        assert!(CpuidLeaves::read_on(1023).is_err_and(|why| why.to_string().contains("1023")));
    }

    #[test]
    fn only_leaves_up_to_the_maximum_are_read() {
        let recorded = emerald_rapids_vm();
        let leaves = CpuidLeaves::from_reader(|leaf, subleaf| {
            assert!(leaf != 0x4000_0010 && leaf != 0x21 && leaf >> 16 != 0xC000, "{leaf:x} doesn't exist");
            recorded.find_leaf(leaf, subleaf).unwrap_or_default()
        });
        assert_eq!(leaves.vendor_text(), "GenuineIntel");
        assert_eq!(leaves.find_leaf(4, 3), recorded.find_leaf(4, 3));
        assert_eq!(leaves.find_leaf(0x4000_0010, 0), None);
    }
}
