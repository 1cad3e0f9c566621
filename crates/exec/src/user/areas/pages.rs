//! Facts about mappings from the kernel: their pages, conflicting mappings, their largest number.

use crate::ObtainedPages;
use cyclescope_core::error::Unavailable;

/// The mappings in the text of a `maps` or `smaps` file (proc(5)): start, end, and the lines of
/// each, the first one without addresses.
fn parse_mappings(text: &str) -> impl Iterator<Item = (u64, u64, Vec<&str>)> {
    let mut lines = text.lines().peekable();
    std::iter::from_fn(move || {
        let (start, end, first) = parse_header(lines.next()?)?;
        let mut about = vec![first];
        while let Some(line) = lines.next_if(|line| parse_header(line).is_none()) {
            about.push(line);
        }
        Some((start, end, about))
    })
}

fn parse_header(line: &str) -> Option<(u64, u64, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?, rest))
}

/// A figure in KiB of a mapping.
fn find_kibibytes(about: &[&str], name: &str) -> u64 {
    let value = |line: &&str| line.strip_prefix(name)?.strip_suffix(" kB")?.trim().parse().ok();
    about.iter().find_map(value).unwrap_or(0)
}

/// The kind of an area's pages according to a `smaps` file; an error where not all of them are
/// huge.
pub(super) fn find_page_kind(smaps: &str, address: u64, bytes: u64) -> Result<ObtainedPages, Unavailable> {
    let (mut pooled, mut transparent) = (0, 0);
    let inside = |start: u64, end: u64| address <= start && end <= address + bytes;
    for (start, end, about) in parse_mappings(smaps).filter(|(start, end, _)| inside(*start, *end)) {
        if find_kibibytes(&about, "KernelPageSize:") == 2048 {
            pooled += end - start;
        }
        transparent += find_kibibytes(&about, "AnonHugePages:") << 10;
    }
    match (pooled, transparent) {
        (pooled, _) if pooled == bytes => Ok(ObtainedPages::PooledHuge),
        (_, transparent) if transparent == bytes => Ok(ObtainedPages::TransparentHuge),
        _ => Err(Unavailable {
            what: format!("{} MiB in pages of 2 MiB", bytes >> 20),
            why: format!(
                "{} MiB of them came in such pages (transparent_hugepage/enabled: {})",
                (pooled + transparent) >> 20,
                read_transparent_setting(),
            ),
            remedy: format!(
                "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, or set {} pages aside: sysctl -w \
                 vm.nr_hugepages={0}",
                bytes >> 21
            ),
        }),
    }
}

fn read_transparent_setting() -> String {
    let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    setting.map_or_else(|_| "not in this kernel".to_string(), |text| text.trim().to_string())
}

/// The mappings of this process in a range of addresses.
pub(super) fn find_occupant(address: u64, bytes: u64) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut there = parse_mappings(&maps).filter(|(start, end, _)| *start < address + bytes && address < *end);
    // Permissions, offset, device, inode, name.
    let name = |about: &[&str]| about[0].split_whitespace().nth(4).map(str::to_string);
    there.find_map(|(_, _, about)| name(&about)).unwrap_or_else(|| "other memory".to_string())
}

/// Number of mappings that the kernel allows one process; the default where it is not reported.
pub(super) fn read_max_mappings() -> u64 {
    const DEFAULT: u64 = 65530;
    let text = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap_or_default();
    text.trim().parse().unwrap_or(DEFAULT)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000200000 rw-p 00000000 00:00 0 
Size:               2048 kB
KernelPageSize:        4 kB
AnonHugePages:      2048 kB
7f0000200000-7f0000400000 rw-p 00000000 00:00 0
Size:               2048 kB
KernelPageSize:        4 kB
AnonHugePages:         0 kB
7f0000400000-7f0000800000 rw-p 00000000 00:0f 1234     /anon_hugepage (deleted)
Size:               4096 kB
KernelPageSize:     2048 kB
AnonHugePages:         0 kB
";

    #[test]
    fn pages_are_read_from_smaps() {
        let at = |address, bytes| find_page_kind(SMAPS, address, bytes);
        assert_eq!(at(0x7f00_0000_0000, 2 << 20), Ok(ObtainedPages::TransparentHuge));
        assert_eq!(at(0x7f00_0040_0000, 4 << 20), Ok(ObtainedPages::PooledHuge));
        let error = at(0x7f00_0000_0000, 4 << 20).unwrap_err();
        assert!(error.why.starts_with("2 MiB of them") && error.remedy.contains("vm.nr_hugepages=2"), "{error:?}");
        assert!(at(0x1000_0000, 2 << 20).unwrap_err().why.starts_with("0 MiB"));
        assert!(find_page_kind("", 0x7f00_0000_0000, 2 << 20).is_err());
    }

    #[test]
    fn mappings_at_an_address_are_named() {
        let code = find_occupant as *const () as u64;
        assert!(find_occupant(code, 1).contains("cyclescope"), "{}", find_occupant(code, 1));
        assert!(read_max_mappings() > 0);
    }
}
