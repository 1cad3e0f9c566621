//! Loads libraries into this process by the system's loader, and therefore into every process forked
//! from it. The loader of 32-bit code is [`narrow_library`].

use crate::input::c_library::is_own_c_library;
use crate::input::call_addresses::{CallAddresses, CallSymbols};
use crate::input::elf;
pub use crate::input::elf::make_library;
use crate::input::function_fault;
use crate::input::function_symbol::{FunctionSymbol, missing_function};
use crate::input::narrow_library;
use crate::output::Failure;
use cyclescope::asm::CodeMode;
use cyclescope::executor::user::reserve_narrow_addresses;
use cyclescope::random::Random;
use std::ffi::{CStr, CString};
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of loaded copies of a library.
const COPIES_MOST: usize = 16;

/// Loads a library of a mode and finds the functions of a call in each of its copies.
pub fn find_addresses(
    library: &Path,
    source: &Path,
    symbols: &CallSymbols,
    mode: CodeMode,
) -> Result<Vec<CallAddresses>, Failure> {
    match mode {
        CodeMode::Bits64 => {
            let _aside = StdoutRedirect::new();
            load_copies(library, source, symbols)
        }
        CodeMode::Bits32 => load_narrow_copies(library, source, symbols),
    }
}

/// Finds the functions' addresses in the library and in copies of it that the linker loads
/// elsewhere. The addresses of a function and its data change its cost between program starts, so
/// each run uses another copy.
///
/// A process has one C library, whose memory allocator this program has prepared. A second one would
/// ask the system for memory, so the functions of that library have one address.
fn load_copies(library: &Path, source: &Path, symbols: &CallSymbols) -> Result<Vec<CallAddresses>, Failure> {
    let image = elf::read_machine_code(library)?;
    let copies = if is_own_c_library(&image, library, source)? { 1 } else { COPIES_MOST };
    let all = |library: &Path| {
        let at = |symbol: &FunctionSymbol| {
            let hidden = symbol.address.filter(|_| !symbol.is_exported);
            find_symbol(library, source, &symbol.linker_name, hidden)
        };
        let addresses = CallAddresses::find(symbols, at)?;
        function_fault::catch_terminations(library);
        Ok::<_, Failure>(addresses)
    };
    let mut addresses = vec![all(library)?];
    while addresses.len() < copies {
        let Some(file) = MemoryFile::new(&image) else { break };
        // Without /proc, or where memory files can't be executed, the functions have only one
        // address.
        let Ok(copy) = all(&file.path()) else { break };
        shift_mappings(copy.function);
        addresses.push(copy);
    }
    Ok(addresses)
}

/// Loads copies of a library of 32-bit code, each at another address, as [`load_copies`] does.
fn load_narrow_copies(library: &Path, source: &Path, symbols: &CallSymbols) -> Result<Vec<CallAddresses>, Failure> {
    let image = elf::read_machine_code(library)?;
    let place = |symbol: &FunctionSymbol| symbol.address.ok_or_else(|| missing_function(source, &symbol.linker_name));
    // A library without its function may have no code at all.
    let offsets = CallAddresses::find(symbols, place)?;
    let load = |number| narrow_library::load_library(&image, source, number).map(|start| offsets.move_to(start));
    (0..COPIES_MOST as u64).map(load).collect()
}

/// Loads a library and finds an exported function or constant, or the one at the library-relative
/// address `hidden`.
pub fn find_symbol(library: &Path, source: &Path, name: &str, hidden: Option<u64>) -> Result<u64, Failure> {
    // The loader would search the system's folders for a bare name.
    let path = std::path::absolute(library).unwrap_or_else(|_| library.to_path_buf());
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| nul_in_name(source))?;
    let symbol = CString::new(name).map_err(|_| nul_in_name(source))?;
    // SAFETY: both are NUL-terminated strings. The library's constructors run in this process,
    // which `isolation` created for that purpose. The library stays loaded while the process lives.
    let address = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        match hidden {
            _ if handle.is_null() => None,
            Some(address) => Some(load_base(handle).map_or(0, |start| start.wrapping_add(address))),
            None => Some(libc::dlsym(handle, symbol.as_ptr()) as u64),
        }
    };
    match address {
        Some(0) => Err(missing_function(source, name)),
        Some(address) => Ok(address),
        None => {
            let why = take_linker_error();
            let remedy = "add the library that defines it; for an object or archive of --elf, with --cflags, such as \
                --cflags -lm";
            let text = format!("the library can't be loaded: {why}");
            let failure = if why.contains("undefined symbol") {
                Failure::usage(text, Some(remedy))
            } else if REFUSED_MAPPINGS.iter().any(|refused| why.contains(refused)) {
                Failure::internal(text).with_remedy(MAPPING_REMEDY)
            } else if let Some(errno) = find_refusal(&why) {
                Failure::internal(text).with_system_remedy(Some(errno))
            } else {
                Failure::usage(text, None)
            };
            Err(failure.replace_in_text(&library.to_string_lossy(), &source.to_string_lossy()))
        }
    }
}

/// Parts of the loader's messages for a library that the system does not map (glibc,
/// `elf/dl-load.c`, `dl-map-segments.h`, `dl-reloc.c`).
const REFUSED_MAPPINGS: [&str; 5] = [
    "failed to map segment",
    "cannot map zero-fill pages",
    "cannot change memory protections",
    "cannot apply additional memory protection",
    "cannot allocate memory",
];
/// Errors of the system, and not of the file.
const REFUSALS: [i32; 7] =
    [libc::EPERM, libc::ENOSYS, libc::ENOMEM, libc::EMFILE, libc::ENFILE, libc::EAGAIN, libc::EIO];

/// The error with which the system refused something to the loader, which ends its message with it.
fn find_refusal(why: &str) -> Option<i32> {
    let ends = |errno: &i32| {
        let text = std::io::Error::from_raw_os_error(*errno).to_string();
        text.split(" (os error").next().is_some_and(|text| why.ends_with(text))
    };
    REFUSALS.into_iter().find(ends)
}

const MAPPING_REMEDY: &str = "allow more memory (`ulimit -v`, the container's limit), and code in its folder, which may \
    be mounted with noexec: see $TMPDIR; a filter of the container may refuse mmap and mprotect too";

/// The address that a loaded library's own addresses are relative to.
///
/// # Safety
///
/// The handle must belong to a loaded library.
unsafe fn load_base(handle: *mut libc::c_void) -> Option<u64> {
    let mut map: *const u64 = std::ptr::null();
    // SAFETY: the call writes a pointer to `struct link_map`, whose first member is this address
    // (`link.h`). The structure lives while the library is loaded.
    unsafe {
        let found = libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast()) == 0;
        (found && !map.is_null()).then(|| *map)
    }
}

fn nul_in_name(library: &Path) -> Failure {
    Failure::usage(format!("the name of {} or of its function contains a NUL byte", library.display()), None)
}

fn take_linker_error() -> String {
    // SAFETY: dlerror returns null or a string that lives until the thread calls it again.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}

/// While it exists, output of foreign code goes to stderr, because stdout is for results.
pub struct StdoutRedirect {
    stdout: libc::c_int,
}

impl StdoutRedirect {
    /// Starts the redirection.
    pub fn new() -> StdoutRedirect {
        // SAFETY: duplicates file descriptors; nothing else uses the copy.
        unsafe {
            let stdout = libc::fcntl(libc::STDOUT_FILENO, libc::F_DUPFD_CLOEXEC, 3);
            libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO);
            StdoutRedirect { stdout }
        }
    }
}

impl Drop for StdoutRedirect {
    fn drop(&mut self) {
        // SAFETY: flushes the C library's streams, which this program doesn't use itself, and
        // restores the descriptor.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::dup2(self.stdout, libc::STDOUT_FILENO);
            libc::close(self.stdout);
        }
    }
}

/// A file in memory that disappears when it is no longer mapped.
struct MemoryFile {
    file: OwnedFd,
    /// Number of memory files created before it.
    number: u32,
}

impl MemoryFile {
    /// Creates a file with this content.
    fn new(content: &[u8]) -> Option<MemoryFile> {
        // SAFETY: the name is NUL-terminated, and nothing else owns the new descriptor.
        let file = unsafe {
            let descriptor = libc::memfd_create(c"library".as_ptr(), libc::MFD_CLOEXEC);
            if descriptor < 0 {
                return None;
            }
            OwnedFd::from_raw_fd(descriptor)
        };
        let mut file = std::fs::File::from(file);
        file.write_all(content).ok()?;
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        Some(MemoryFile { file: file.into(), number: NUMBER.fetch_add(1, Ordering::Relaxed) })
    }

    /// A path that no other file of this process has had, even if another one had the same
    /// descriptor number. The linker would take a file with a known name for the library that it
    /// already loaded. Each bit of the file's number is a folder that the path enters and leaves.
    fn path(&self) -> PathBuf {
        let bits = (0..u32::BITS - self.number.leading_zeros()).map(|bit| self.number >> bit & 1);
        let detours: String = bits.map(|bit| if bit == 0 { "fd/../" } else { "task/../" }).collect();
        format!("/proc/self/{detours}fd/{}", self.file.as_raw_fd()).into()
    }
}

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Maps code, each piece in a page of its own and at the offset of `address` in its page: as far from
/// the calling code as the library is. The addresses of the pieces.
pub fn map_code(address: u64, pieces: &[&[u8]], mode: CodeMode) -> Result<Vec<u64>, Failure> {
    // The last piece may extend past its page.
    let bytes = (pieces.len() + 1) * PAGE;
    let failed = || Failure::from_system("mapping memory failed", &std::io::Error::last_os_error());
    let (place, fixed) = match mode {
        CodeMode::Bits64 => (std::ptr::null_mut(), 0),
        CodeMode::Bits32 => (reserve_narrow_addresses(bytes)? as *mut libc::c_void, libc::MAP_FIXED),
    };
    // SAFETY: a new mapping next to the libraries, at an address that the kernel chooses or that is
    // reserved for it, touches no other memory and is never unmapped. All pieces end inside its last
    // page.
    unsafe {
        let (write, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed);
        let pages = libc::mmap(place, bytes, write, flags, -1, 0);
        if pages == libc::MAP_FAILED {
            return Err(failed());
        }
        let mut place = pages.cast::<u8>().add(address as usize % PAGE);
        let mut mapped = Vec::with_capacity(pieces.len());
        for code in pieces {
            place.copy_from_nonoverlapping(code.as_ptr(), code.len());
            mapped.push(place as u64);
            place = place.wrapping_add(PAGE);
        }
        if libc::mprotect(pages, bytes, libc::PROT_READ | libc::PROT_EXEC) != 0 {
            return Err(failed());
        }
        Ok(mapped)
    }
}

/// Reserves a random number of pages, taken from this address, so that the distance to the next
/// mapping is random too.
fn shift_mappings(address: u64) {
    const PAGES_MOST: usize = 1 << 12;
    let pages = 1 + Random::new(address).below(PAGES_MOST);
    // SAFETY: a new inaccessible mapping, at an address that the kernel chooses.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        libc::mmap(std::ptr::null_mut(), pages * PAGE, libc::PROT_NONE, flags, -1, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_is_refused_to_the_loader_is_no_fault_of_the_library() {
        let refusal = |why| find_refusal(&format!("/tmp/f.so: {why}"));
        assert_eq!(refusal("cannot stat shared object: Function not implemented"), Some(libc::ENOSYS));
        assert_eq!(refusal("cannot open shared object file: Too many open files"), Some(libc::EMFILE));
        assert_eq!(refusal("cannot open shared object file: No such file or directory"), None);
        assert_eq!(refusal("invalid ELF header"), None);
    }
}
