//! Physical memory that areas of several executors of this process share.
//!
//! Each piece is a file without a name, which exists as long as one of the areas. A worker shares
//! nothing else with another: it maps the file and closes it before it runs foreign code.

use super::super::regions::{MemoryFile, create_memory_file};
use cyclescope_core::error::RunError;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A file that an area may still use.
struct CommonFile {
    number: u64,
    bytes: usize,
    file: Weak<MemoryFile>,
}

static COMMON_FILES: Mutex<Vec<CommonFile>> = Mutex::new(Vec::new());

/// Opens the memory of this number and length; creates it if no area has it.
pub(super) fn open_common_file(number: u64, bytes: usize) -> Result<Arc<MemoryFile>, RunError> {
    // No code panics while it changes the list.
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
