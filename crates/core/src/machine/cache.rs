//! Cache sizes from CPUID 04h (Intel) and 8000_001Dh (AMD), which share one format, and from the
//! kernel. A hypervisor may change the former, and the latter only repeats it.

use super::cpuid_leaves::CpuidLeaves;
use super::fact::{Fact, SystemFiles};
use super::topology::parse_cpu_list;
use serde::Serialize;

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Data and instructions.
    Unified,
}

/// One cache as CPUID describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// Level, from 1.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Size in bytes.
    pub bytes: u64,
    /// Line size in bytes.
    pub line: u32,
    /// Associativity, in ways.
    pub ways: u32,
}

/// One cache as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelCache {
    /// Level, from 1.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Size in bytes.
    pub bytes: u64,
    /// The CPUs that share it.
    pub cpus: Vec<u32>,
}

/// The caches of a CPU according to the kernel (Documentation/ABI/stable/sysfs-devices-system-cpu).
pub(crate) fn read_kernel_caches(files: &SystemFiles, cpu: u32) -> Fact<Vec<KernelCache>> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let mut caches = Vec::new();
    while files.path(&format!("{folder}/index{}", caches.len())).is_dir() {
        match read_kernel_cache(files, &format!("{folder}/index{}", caches.len())) {
            Fact::Known(cache) => caches.push(cache),
            Fact::Unknown(why) => return Fact::Unknown(why),
        }
    }
    if caches.is_empty() { Fact::unknown(format!("{folder} names no cache")) } else { Fact::Known(caches) }
}

fn read_kernel_cache(files: &SystemFiles, folder: &str) -> Fact<KernelCache> {
    let read = || -> Result<KernelCache, String> {
        let text = |name: &str| match files.read_text(&format!("{folder}/{name}")) {
            Fact::Known(text) => Ok(text.trim().to_string()),
            Fact::Unknown(why) => Err(why),
        };
        let odd = |name: &str, text: &str| format!("{folder}/{name} is `{text}`");
        let (level, kind, size) = (text("level")?, text("type")?, text("size")?);
        let kind = match kind.as_str() {
            "Data" => CacheKind::Data,
            "Instruction" => CacheKind::Instruction,
            "Unified" => CacheKind::Unified,
            _ => return Err(odd("type", &kind)),
        };
        let kibibytes = size.strip_suffix('K').and_then(|number| number.parse::<u64>().ok());
        let bytes = kibibytes.and_then(|number| number.checked_mul(1024)).ok_or_else(|| odd("size", &size))?;
        let cpus = parse_cpu_list(&text("shared_cpu_list")?)?;
        Ok(KernelCache { level: level.parse().map_err(|_| odd("level", &level))?, kind, bytes, cpus })
    };
    Fact::from(read())
}

/// All caches of the CPU in the table (SDM vol. 2A, CPUID 04h; APM vol. 3, CPUID 8000_001Dh).
pub(crate) fn read_caches(leaves: &CpuidLeaves) -> Vec<Cache> {
    let list = |leaf: u32| -> Vec<Cache> {
        (0..).map_while(|subleaf| leaves.find_leaf(leaf, subleaf)).map_while(parse_cache).collect()
    };
    let amd = list(0x8000_001D);
    if amd.is_empty() { list(4) } else { amd }
}

fn parse_cache([eax, ebx, ecx, _]: [u32; 4]) -> Option<Cache> {
    let kind = match eax & 0x1F {
        1 => CacheKind::Data,
        2 => CacheKind::Instruction,
        3 => CacheKind::Unified,
        _ => return None,
    };
    let ways = (ebx >> 22) + 1;
    let partitions = (ebx >> 12 & 0x3FF) + 1;
    let line = (ebx & 0xFFF) + 1;
    let sets = u64::from(ecx) + 1;
    let bytes = u64::from(ways) * u64::from(partitions) * u64::from(line) * sets;
    Some(Cache { level: eax >> 5 & 7, kind, bytes, line, ways })
}

#[cfg(test)]
mod tests {
    use super::super::cpuid_leaves::tests::emerald_rapids_vm;
    use super::*;

    #[test]
    fn caches_of_the_kernel_are_read_or_a_reason_is_given() {
        let root = std::env::temp_dir().join(format!("cyclescope-caches-{}", std::process::id()));
        let files = SystemFiles::rooted_at(&root);
        assert!(read_kernel_caches(&files, 3).why().expect("no cache").contains("names no cache"));
        let folder = root.join("sys/devices/system/cpu/cpu3/cache");
        for (index, [level, kind, size, cpus]) in
            [["1", "Data", "48K", "3"], ["3", "Unified", "32768K", "0-3"]].into_iter().enumerate()
        {
            let folder = folder.join(format!("index{index}"));
            std::fs::create_dir_all(&folder).expect("a folder");
            for (name, text) in [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", cpus)] {
                std::fs::write(folder.join(name), format!("{text}\n")).expect("a file");
            }
        }
        let first = KernelCache { level: 1, kind: CacheKind::Data, bytes: 48 << 10, cpus: vec![3] };
        let last = KernelCache { level: 3, kind: CacheKind::Unified, bytes: 32 << 20, cpus: vec![0, 1, 2, 3] };
        assert_eq!(read_kernel_caches(&files, 3).known(), Some(&vec![first, last]));
        std::fs::write(folder.join("index1/size"), "much").expect("a file");
        assert!(read_kernel_caches(&files, 3).why().expect("no size").contains("is `much`"));
        std::fs::remove_dir_all(root).expect("a folder");
    }

    #[test]
    fn a_recorded_vm_gives_its_caches() {
        let sizes: Vec<_> = read_caches(&emerald_rapids_vm())
            .iter()
            .map(|cache| (cache.level, cache.kind, cache.bytes >> 10, cache.line))
            .collect();
        assert_eq!(
            sizes,
            [
                (1, CacheKind::Data, 48, 64),
                (1, CacheKind::Instruction, 32, 64),
                (2, CacheKind::Unified, 2048, 64),
                (3, CacheKind::Unified, 266_240, 64),
            ]
        );
    }

    #[test]
    fn without_the_leaf_there_are_no_caches() {
        assert!(read_caches(&CpuidLeaves::default()).is_empty());
    }
}
