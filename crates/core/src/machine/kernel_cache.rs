//! Cache sizes according to the kernel. A hypervisor may change those of CPUID.

use super::cache::CacheKind;
use super::fact::{Fact, SystemFiles, explain_missing};
use super::topology::parse_cpu_list;
use serde::Serialize;

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
    if caches.is_empty() {
        Fact::unknown(explain_missing(format!("{folder} names no cache")))
    } else {
        Fact::Known(caches)
    }
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

#[cfg(test)]
mod tests {
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
}
