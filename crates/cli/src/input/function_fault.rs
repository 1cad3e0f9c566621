//! Faults in libraries: their place, and the ends of functions that are meant as such.

use crate::input::narrow_library;
use crate::output::Failure;
use cyclescope::asm::{CodeMode, Listing};
use cyclescope::error::{FaultCause, RunError};
use cyclescope::executor::FaultReport;
use cyclescope::record::{ErrorRecord, exit};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Adds the place in a library to a fault outside all programs.
pub fn locate_fault(error: RunError, report: Option<&FaultReport>) -> RunError {
    let (RunError::Fault { signal, address, instruction: None, cause }, Some(report)) = (&error, report) else {
        return error;
    };
    let narrow = narrow_library::describe_place(report.rip).map(|place| (place, CodeMode::Bits32));
    let place = narrow.or_else(|| Some((describe_symbol(report.rip)?, CodeMode::Bits64)));
    let (mut cause, Some((mut place, mode))) = (*cause, place) else { return error };
    if let Some(number) = report.system_call {
        place.push_str(&format!(" (system call {number})"));
    } else if !matches!(cause, FaultCause::Fetch | FaultCause::Trap) {
        // SAFETY: the processor began to execute this instruction of a library that stays loaded.
        let listing = unsafe { decode_instruction(report.rip, mode) };
        if let Some(instruction) = listing.instructions().first().filter(|found| !found.is_invalid()) {
            cause = cause.refine_by_instruction(instruction);
            place = format!("{} at {place}", listing.text().trim_end());
        }
    }
    RunError::Fault { signal, address: *address, instruction: Some(place), cause }
}

/// Decodes the instruction of a mode at an address of this process from the bytes up to the end of its page.
///
/// # Safety
///
/// The address must hold code.
unsafe fn decode_instruction(address: u64, mode: CodeMode) -> Listing {
    const PAGE: u64 = 4096;
    // Intel SDM vol. 2, 2.3.11.
    const LONGEST: u64 = 15;
    let length = LONGEST.min(PAGE - address % PAGE) as usize;
    // SAFETY: pages are readable as a whole.
    let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, length) };
    let first = Listing::from_code(bytes, mode).instructions().first().map_or(0, |first| first.len());
    Listing::from_code(&bytes[..first], mode)
}

/// The loader's facts about an address, if it is in a library.
fn find_loaded_symbol(address: u64) -> Option<libc::Dl_info> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the structure outlives the call, which fills it if the address is in a library.
    unsafe {
        let found = libc::dladdr(address as *const libc::c_void, info.as_mut_ptr()) != 0;
        found.then(|| info.assume_init())
    }
}

/// The text of a name in the loader's facts.
///
/// # Safety
///
/// The facts must be about a library that is still loaded.
unsafe fn loaded_text(text: *const libc::c_char) -> Option<String> {
    // SAFETY: the loader's names are NUL-terminated strings that live while the library is loaded.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// The name of the symbol that contains an address.
fn find_symbol_name(address: u64) -> Option<String> {
    // SAFETY: libraries stay loaded.
    unsafe { loaded_text(find_loaded_symbol(address)?.dli_sname) }
}

/// The symbol and library of an address, such as `symbol+0x12 of libm.so.6`.
fn describe_symbol(address: u64) -> Option<String> {
    let info = find_loaded_symbol(address)?;
    // SAFETY: libraries stay loaded.
    let file = unsafe { loaded_text(info.dli_fname) }?;
    let file = Path::new(&file).file_name()?.to_string_lossy().into_owned();
    let place = match find_symbol_name(address) {
        None => format!("+{:#x}", address.wrapping_sub(info.dli_fbase as u64)),
        Some(name) => format!("{name}+{:#x}", address.wrapping_sub(info.dli_saddr as u64)),
    };
    Some(format!("{place} of {file}"))
}

/// Makes `std::terminate` of a loaded library reach [`uncaught_exception`]. Its own handler would
/// print, which measured code can't.
pub fn catch_terminations(library: &Path) {
    let path = std::path::absolute(library).unwrap_or_else(|_| library.to_path_buf());
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return };
    // SAFETY: both names are NUL-terminated strings. The library is loaded already. The function
    // has this type (C++, [set.terminate]) and stores the pointer, which is valid while the process
    // lives.
    unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return;
        }
        let set = libc::dlsym(handle, c"_ZSt13set_terminatePFvvE".as_ptr());
        if !set.is_null() {
            type SetTerminate = unsafe extern "C" fn(unsafe extern "C" fn() -> !) -> *const libc::c_void;
            std::mem::transmute::<*mut libc::c_void, SetTerminate>(set)(uncaught_exception);
        }
        libc::dlclose(handle);
    }
}

/// Raises SIGILL at an address that [`explain_end`] knows.
#[unsafe(naked)]
unsafe extern "C" fn uncaught_exception() -> ! {
    core::arch::naked_asm!("ud2")
}

/// Says why a function ended the process, if it did so on purpose.
pub fn explain_end(report: &FaultReport) -> Option<Failure> {
    let failure = |text: &str, remedy: &str| {
        Some(Failure::Error(Box::new(ErrorRecord {
            code: "fault",
            exit: exit::FAULT,
            text: text.to_string(),
            remedy: Some(remedy.to_string()),
            signal: Some(report.signal),
            ..ErrorRecord::default()
        })))
    };
    if report.rip == uncaught_exception as *const () as u64 {
        return failure(
            "the function threw a C++ exception that it does not catch",
            "catch it inside the function, or give arguments with which it throws none",
        );
    }
    // The fault of a call lies there too.
    if let Some((symbol, file)) = narrow_library::find_missing_symbol(report.address) {
        return failure(
            &format!("the function uses `{symbol}`, which {file} lacks; 32-bit code has no C library here"),
            "define it in the same file, or link a library that needs no other: --elf FILE.o --cflags FILE.a; for memcpy \
             and memset in place of loops, --cflags -fno-tree-loop-distribute-patterns",
        );
    }
    // Calls of 32-bit code have numbers of their own.
    if narrow_library::describe_place(report.rip).is_some() {
        return None;
    }
    let call = i64::from(report.system_call?);
    let symbol = find_symbol_name(report.rip).unwrap_or_default();
    match call {
        libc::SYS_rt_sigprocmask | libc::SYS_tgkill
            if ["abort", "raise", "pthread_kill"].contains(&symbol.as_str()) =>
        {
            failure(
                "the function called abort: an assertion failed, or an exception or a panic had no handler",
                "give arguments and a buffer that the function accepts: see --arg and --contents",
            )
        }
        libc::SYS_write | libc::SYS_writev => failure(
            "the function writes to a file or the terminal; failed assertions and panics of Rust do so too, with their \
             message",
            "give arguments that it accepts, or measure a function without output: measured code may make no system \
             calls",
        ),
        libc::SYS_gettid => failure(
            "the function asked for its thread's number, as a panic of Rust does for its message",
            "give arguments with which it does not panic; std::panic::resume_unwind throws without a message",
        ),
        _ => None,
    }
}
