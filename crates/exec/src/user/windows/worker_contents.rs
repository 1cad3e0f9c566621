//! What a worker contains besides this program: libraries whose functions are called, images of
//! object files, and small functions of the caller.
//!
//! Each worker is a new process and loads all of it again, because its command line names it. The
//! caller runs none of it: it maps a library's file to learn its address, which is the same in all
//! processes where it is free. A worker that finds it taken ends, and says so by its exit code.

use super::handle::handle_from_number;
use super::process::last_errno;
use super::regions::{ContentsMapping, MAPPING_STEP, MemoryFile, MemoryMapping, create_memory_file, reserve_addresses};
use cyclescope_core::error::{RunError, Unavailable};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Mutex;
use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::LibraryLoader::{
    DONT_RESOLVE_DLL_REFERENCES, LOAD_WITH_ALTERED_SEARCH_PATH, LoadLibraryExW,
};
use windows_sys::Win32::System::Memory::{
    FILE_MAP_READ, MEM_COMMIT, MEM_RESERVE, MEMORY_BASIC_INFORMATION, MapViewOfFile, PAGE_EXECUTE_READ, PAGE_READONLY,
    PAGE_READWRITE, UnmapViewOfFile, VirtualAlloc, VirtualProtect, VirtualQuery,
};

/// Something that workers contain, at an address.
enum WorkerContent {
    /// Code, whose addresses stay reserved here.
    Code { reserved: MemoryMapping, offset: usize, pieces: Vec<Vec<u8>> },
    /// An image of code and data, which workers copy from a section of memory.
    Image { reserved: MemoryMapping, parts: ImageParts, section: MemoryFile, bytes: Vec<u8> },
    /// A library.
    Library { start: u64, path: PathBuf },
}

/// The lengths in bytes of an image's code, constants and variables, which follow each other: whole
/// pages.
pub type ImageParts = [usize; 3];

/// Addresses for an image, free in all workers.
pub struct ImagePlace {
    reserved: MemoryMapping,
    parts: ImageParts,
}

impl ImagePlace {
    /// Reserves addresses.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub fn reserve(parts: ImageParts) -> io::Result<ImagePlace> {
        Ok(ImagePlace { reserved: reserve_addresses(None, parts.iter().sum())?, parts })
    }

    /// The first address.
    pub fn start(&self) -> u64 {
        self.reserved.start()
    }

    /// Places an image in all workers that start from now on and call functions.
    ///
    /// # Errors
    ///
    /// Those of the system.
    ///
    /// # Panics
    ///
    /// If the image is not as long as its parts.
    pub fn place(self, bytes: Vec<u8>) -> Result<(), RunError> {
        let ImagePlace { reserved, parts } = self;
        assert_eq!(bytes.len(), parts.iter().sum::<usize>(), "an image consists of its parts");
        let section = create_memory_file("image", bytes.len())?;
        ContentsMapping::map(&section, bytes.len())?.contents_mut().copy_from_slice(&bytes);
        CONTENTS.lock().expect("no holder panics").push(WorkerContent::Image { reserved, parts, section, bytes });
        Ok(())
    }
}

/// All contents, for as long as this process lives.
static CONTENTS: Mutex<Vec<WorkerContent>> = Mutex::new(Vec::new());

/// Pages have one piece of code each.
const PAGE: usize = 4096;
/// Places tried for code: as far as the largest library.
const TRIES: u64 = 1 << 14;
/// Marks of the words of a worker's command line.
const CODE_MARK: &str = "code";
const IMAGE_MARK: &str = "image";
const LIBRARY_MARK: &str = "library";

/// Exit code of a worker that can't load a library; the lower half is the error.
const LIBRARY_REFUSED: i32 = 0x1_0000;
/// Exit code of a worker in which the address of a content is taken.
const ADDRESS_TAKEN: i32 = 0x2_0000;

/// Loads a library into all workers that start from now on and call functions. Returns its address
/// there.
///
/// # Errors
///
/// Those of the system.
pub fn load_library(path: &Path) -> io::Result<u64> {
    let start = map_library(path.as_os_str(), DONT_RESOLVE_DLL_REFERENCES)?;
    let mut contents = CONTENTS.lock().expect("no holder panics");
    let is_known =
        |content: &WorkerContent| matches!(content, WorkerContent::Library { start: own, .. } if *own == start);
    if !contents.iter().any(is_known) {
        contents.push(WorkerContent::Library { start, path: path.to_path_buf() });
    }
    Ok(start)
}

/// Places code in all workers that start from now on and call functions: each piece in a page of its
/// own and at the offset of `near` in its page, behind that address. Returns the addresses of the
/// pieces.
///
/// # Errors
///
/// Those of the system.
pub fn place_code(near: u64, pieces: &[&[u8]]) -> io::Result<Vec<u64>> {
    let bytes = (pieces.len() + 1) * PAGE;
    let first = near.next_multiple_of(MAPPING_STEP);
    let mut places = (first..).step_by(MAPPING_STEP as usize).take(TRIES as usize);
    let reserved = places.find_map(|at| reserve_addresses(Some(at), bytes).ok());
    let reserved = reserved.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let offset = near as usize % PAGE;
    let start = reserved.start() + offset as u64;
    let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
    let addresses = (0..pieces.len()).map(|number| start + (number * PAGE) as u64).collect();
    CONTENTS.lock().expect("no holder panics").push(WorkerContent::Code { reserved, offset, pieces });
    Ok(addresses)
}

/// Whether an address is in one of these libraries, and not in one that they need.
pub(super) fn is_in_library(address: u64) -> bool {
    let mut found = MEMORY_BASIC_INFORMATION::default();
    // SAFETY: the structure lives through the call.
    let bytes = unsafe { VirtualQuery(address as *const _, &mut found, size_of_val(&found)) };
    let contents = CONTENTS.lock().expect("no holder panics");
    let is_own = |content: &WorkerContent| matches!(content, WorkerContent::Library { start, .. } if *start == found.AllocationBase as u64);
    bytes != 0 && contents.iter().any(is_own)
}

/// Bytes of an image at an address, if one has them.
pub(super) fn read_image(address: u64, bytes: usize) -> Option<Vec<u8>> {
    let contents = CONTENTS.lock().expect("no holder panics");
    contents.iter().find_map(|content| {
        let WorkerContent::Image { reserved, bytes: image, .. } = content else { return None };
        let at = usize::try_from(address.checked_sub(reserved.start())?).ok()?;
        image.get(at..at.checked_add(bytes)?).map(<[u8]>::to_vec)
    })
}

/// The handles of sections that workers inherit.
pub(super) fn inherited_handles() -> Vec<HANDLE> {
    let contents = CONTENTS.lock().expect("no holder panics");
    let sections = contents.iter().filter_map(|content| match content {
        WorkerContent::Image { section, .. } => Some(section.raw()),
        WorkerContent::Code { .. } | WorkerContent::Library { .. } => None,
    });
    sections.collect()
}

/// The contents as quoted words of a command line. Code and images come first, so that no library
/// takes their places.
pub(super) fn describe_contents() -> OsString {
    let contents = CONTENTS.lock().expect("no holder panics");
    let mut words = OsString::new();
    for content in contents.iter() {
        match content {
            WorkerContent::Code { reserved, offset, pieces } => {
                let hex = |piece: &Vec<u8>| piece.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                let pieces: Vec<String> = pieces.iter().map(hex).collect();
                words.push(format!(" {CODE_MARK} {} {offset} {}", reserved.start(), pieces.join(",")));
            }
            WorkerContent::Image { reserved, parts: [code, constants, variables], section, .. } => {
                let (start, section) = (reserved.start(), section.number());
                words.push(format!(" {IMAGE_MARK} {start} {section} {code} {constants} {variables}"));
            }
            WorkerContent::Library { .. } => {}
        }
    }
    for content in contents.iter() {
        if let WorkerContent::Library { start, path } = content {
            words.push(format!(" {LIBRARY_MARK} {start} \""));
            words.push(path);
            words.push("\"");
        }
    }
    words
}

/// Loads the contents that a command line names. The error is an exit code.
pub(super) fn load_contents(mut words: impl Iterator<Item = OsString>) -> Result<(), i32> {
    while let Some(mark) = words.next() {
        let mut number = || {
            let number = words.next().and_then(|word| word.to_str()?.parse::<u64>().ok());
            number.ok_or(ADDRESS_TAKEN)
        };
        let start = number()?;
        if mark == CODE_MARK {
            let offset = number()?;
            let pieces = words.next().ok_or(ADDRESS_TAKEN)?;
            write_code(start, offset as usize, &pieces.to_string_lossy())?;
        } else if mark == IMAGE_MARK {
            let section = number()? as i32;
            copy_image(start, section, [number()? as usize, number()? as usize, number()? as usize])?;
        } else {
            let path = words.next().ok_or(ADDRESS_TAKEN)?;
            let loaded = map_library(&path, LOAD_WITH_ALTERED_SEARCH_PATH);
            let loaded = loaded.map_err(|error| LIBRARY_REFUSED | error.raw_os_error().unwrap_or(0) & 0xffff)?;
            if loaded != start {
                return Err(ADDRESS_TAKEN);
            }
        }
    }
    Ok(())
}

/// Writes pieces of code to reserved pages.
fn write_code(start: u64, offset: usize, pieces: &str) -> Result<(), i32> {
    let pieces: Vec<&str> = pieces.split(',').collect();
    let bytes = (pieces.len() + 1) * PAGE;
    // SAFETY: new memory at free addresses replaces nothing. Each piece is shorter than the page
    // behind its start.
    unsafe {
        let pages = VirtualAlloc(start as *const _, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE).cast::<u8>();
        if pages as u64 != start {
            return Err(ADDRESS_TAKEN);
        }
        for (number, piece) in pieces.iter().enumerate() {
            let code = (0..piece.len()).step_by(2).filter_map(|at| u8::from_str_radix(piece.get(at..at + 2)?, 16).ok());
            let code: Vec<u8> = code.take(PAGE).collect();
            pages.add(offset % PAGE + number * PAGE).copy_from_nonoverlapping(code.as_ptr(), code.len());
        }
        let mut before = 0;
        if VirtualProtect(pages.cast(), bytes, PAGE_EXECUTE_READ, &mut before) == 0 {
            return Err(ADDRESS_TAKEN);
        }
    }
    Ok(())
}

/// Copies an image from a section to its addresses, and gives its parts their rights.
fn copy_image(start: u64, section: i32, parts: ImageParts) -> Result<(), i32> {
    let bytes = parts.iter().sum();
    // SAFETY: new memory at free addresses replaces nothing; the section has all bytes of the image.
    unsafe {
        let source = MapViewOfFile(handle_from_number(section), FILE_MAP_READ, 0, 0, bytes);
        let pages = VirtualAlloc(start as *const _, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE).cast::<u8>();
        if source.Value.is_null() || pages as u64 != start {
            return Err(ADDRESS_TAKEN);
        }
        pages.copy_from_nonoverlapping(source.Value.cast(), bytes);
        UnmapViewOfFile(source);
        let (mut part, mut before) = (pages, 0);
        for (bytes, rights) in parts.into_iter().zip([PAGE_EXECUTE_READ, PAGE_READONLY]) {
            if bytes > 0 && VirtualProtect(part.cast(), bytes, rights, &mut before) == 0 {
                return Err(ADDRESS_TAKEN);
            }
            part = part.add(bytes);
        }
    }
    Ok(())
}

/// Maps a library into this process: its address.
fn map_library(path: &OsStr, how: u32) -> io::Result<u64> {
    let path: Vec<u16> = path.encode_wide().chain([0]).collect();
    // SAFETY: the path ends with 0. In a worker the library's start code runs, which may do what the
    // worker may; here it does not run.
    let module = unsafe { LoadLibraryExW(path.as_ptr(), ptr::null_mut(), how) };
    match module.is_null() {
        true => Err(io::Error::from_raw_os_error(last_errno())),
        false => Ok(module as u64),
    }
}

/// The error for a worker that ended with this code because of its contents.
pub(super) fn explain_exit(code: i32) -> Option<RunError> {
    let (why, remedy) = match code & !0xffff {
        LIBRARY_REFUSED => {
            let error = io::Error::from_raw_os_error(code & 0xffff);
            (
                format!("the process that calls them can't load it: {error}"),
                "put the DLLs that it needs into its folder",
            )
        }
        ADDRESS_TAKEN => (
            "its address is taken in the process that calls them".to_string(),
            "link it with another address, such as -Wl,--image-base,0x3a0000000",
        ),
        _ => return None,
    };
    let remedy = remedy.to_string();
    Some(RunError::Unavailable(Unavailable { what: "functions of the library".to_string(), why, remedy }))
}
