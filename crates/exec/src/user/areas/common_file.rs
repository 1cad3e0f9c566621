//! Physical memory that areas of several executors of this process have in common.
//!
//! Each piece is a file without a name, as long as one of the areas lives. A worker gets nothing else of another one's: it maps the
//! file and closes it before it runs foreign code.

use super::super::regions::create_memory_file;
use cyclescope_core::error::RunError;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A file that some area may still use.
struct CommonFile {
    number: u64,
    bytes: usize,
    file: Weak<OwnedFd>,
}

static COMMON_FILES: Mutex<Vec<CommonFile>> = Mutex::new(Vec::new());

/// The memory of this number and length, which is made where no area has it.
pub(super) fn open_common_file(number: u64, bytes: usize) -> Result<Arc<OwnedFd>, RunError> {
    // Nothing panics while the list is changed.
    let mut files = COMMON_FILES.lock().unwrap_or_else(PoisonError::into_inner);
    files.retain(|known| known.file.strong_count() > 0);
    let same = files.iter().find(|known| (known.number, known.bytes) == (number, bytes));
    if let Some(file) = same.and_then(|known| known.file.upgrade()) {
        return Ok(file);
    }
    let file = Arc::new(create_memory_file("cyclescope-common", bytes)?);
    files.push(CommonFile { number, bytes, file: Arc::downgrade(&file) });
    Ok(file)
}
