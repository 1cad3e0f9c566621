//! What memory code finds, and where it is.

use super::super::{UserExecutor, chunk};
use super::{batch_of, once, one_worker, run, spawn, store_to};
use crate::{Batch, Executor};
use cyclescope_code::context::{AREA_REGISTERS, FloatElement};
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_core::error::RunError;

/// A page of this process; [`unmap`] releases it.
fn page(flags: i32) -> u64 {
    // SAFETY: a new mapping touches no other memory.
    let page = unsafe {
        libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags | libc::MAP_ANONYMOUS, -1, 0)
    };
    assert_ne!(page, libc::MAP_FAILED);
    page as u64
}

/// Releases a page that must still hold zeros.
fn unmap(page: u64) {
    // SAFETY: mapped by `page`, and unmapped once.
    unsafe {
        assert_eq!((page as *const u64).read_volatile(), 0);
        libc::munmap(page as *mut libc::c_void, 4096);
    }
}

#[test]
fn a_worker_has_no_memory_of_the_host_program() {
    let mut user = spawn();
    for flags in [libc::MAP_SHARED, libc::MAP_PRIVATE] {
        let page = page(flags);
        user.renew_process();
        // mov rax, page; mov rax, [rax]
        let load = [&[0x48, 0xb8][..], &page.to_le_bytes(), &[0x48, 0x8b, 0x00]].concat();
        let result = run(&mut user, &load);
        assert!(matches!(result, Err(RunError::Fault { address, .. }) if address == page), "{result:?}");
        unmap(page);
    }
}

#[test]
fn a_copy_of_the_host_program_shares_no_memory_with_it() {
    let mut user = one_worker(true);
    let (shared, private) = (page(libc::MAP_SHARED), page(libc::MAP_PRIVATE));
    // The worker existed before the mappings; the next one is made after them.
    user.renew_process();
    let result = run(&mut user, &store_to(shared));
    assert!(matches!(result, Err(RunError::Fault { address, .. }) if address == shared), "{result:?}");
    assert!(run(&mut user, &store_to(private)).is_ok());
    unmap(shared);
    unmap(private);
}

#[test]
fn functions_of_the_host_program_can_be_called() {
    // sub rsp, 8; mov rax, strtol; xor esi, esi; mov edx, 99; call rax; add rsp, 8: an invalid base
    // makes it set errno, which is thread-local
    let strtol = libc::strtol as *const () as u64;
    let snippet = [
        &[0x48, 0x83, 0xec, 0x08, 0x48, 0xb8][..],
        &strtol.to_le_bytes(),
        &[0x31, 0xf6, 0xba, 99, 0, 0, 0, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08],
    ]
    .concat();
    assert_eq!(run(&mut one_worker(true), &snippet).map(|samples| samples.len()), Ok(1));
}

#[test]
fn every_layout_finds_fresh_memory() {
    let mut user = spawn();
    for element in [FloatElement::F64, FloatElement::F32, FloatElement::F64] {
        // mov rcx, pattern; cmp [rsi], rcx; je +2; ud2; mov qword [rsi], 0
        let snippet = [
            &[0x48, 0xb9][..],
            &element.to_word().to_le_bytes(),
            &[0x48, 0x39, 0x0e, 0x74, 0x02, 0x0f, 0x0b, 0x48, 0xc7, 0x06, 0, 0, 0, 0],
        ]
        .concat();
        let run = |user: &mut UserExecutor, rounds| {
            let mut batch = batch_of(once(&snippet), 4, rounds);
            batch.memory = ProgramMemory::standard(element, true);
            user.run(&batch)
        };
        assert_eq!(run(&mut user, 1).map(|samples| samples.len()), Ok(4));
        assert!(matches!(run(&mut user, 2), Err(RunError::Fault { signal: "SIGILL", .. })));
    }
}

#[test]
fn area_registers_point_to_lines_that_do_not_alias() {
    let mut user = spawn();
    // Each register's address decides which instruction faults. The snippet checks nothing; the
    // test does.
    let chunk = &chunk::split_batch(&batch_of(once(&[0x90]), 1, 1)).expect("one chunk")[0];
    chunk.write_command(&batch_of(once(&[0x90]), 1, 1), 0, &mut user.regions, &user.areas, 1);
    let placed = user.regions.command_bytes_at(cyclescope_worker::command::LAYOUTS_AT);
    // SAFETY: a placed layout has just been written there.
    let placed = unsafe { *placed.cast::<cyclescope_worker::command::WorkerLayout>() };
    let addresses = AREA_REGISTERS.map(|register| placed.gpr[register]);
    for (index, address) in addresses.iter().enumerate() {
        assert_eq!(address % 64, 0);
        for other in &addresses[..index] {
            assert!((address % 4096).abs_diff(other % 4096) >= 64);
        }
    }
}

#[test]
fn overlapping_layouts_go_in_separate_commands() {
    let mut batch = batch_of(once(&[0x90]), 3, 1);
    let parts = |batch: &Batch| chunk::split_batch(batch).map(|chunks| chunks.len());
    assert_eq!(parts(&batch), Ok(1));
    batch.layouts[1].code[0].offset = batch.layouts[0].code[0].offset + 1;
    assert_eq!(parts(&batch), Ok(2));
    assert_eq!(spawn().run(&batch).map(|samples| samples.len()), Ok(3));
    for (places, commands) in [([0, 4096, 0], 1), ([4096, 0, 4095], 2), ([4096, 0, 4097], 2), ([0, 4096, 1], 2)] {
        for (layout, place) in batch.layouts.iter_mut().zip(places) {
            layout.code[0].offset = place;
        }
        assert_eq!(parts(&batch), Ok(commands), "{places:?}");
    }
    batch.layouts[1].code[0].offset = cyclescope_worker::view::ARENA_BYTES as u32 - 1;
    assert!(parts(&batch).is_err());
}
