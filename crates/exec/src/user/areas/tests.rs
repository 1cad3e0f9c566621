//! Tests of areas of every kind, as programs see them.

use super::super::UserExecutor;
use super::super::tests::{batch_of, once, one_worker, spawn};
use super::*;
use crate::{Batch, Executor, Sample};
use cyclescope_code::context::FloatElement;
use cyclescope_code::program::memory::{AreaFill, AreaPointer, PointerPosition, PointerRing, RingOrder};
use cyclescope_worker::view;
use std::sync::atomic::{AtomicU64, Ordering};

/// RSI and RDI, by their encoding numbers.
const RSI: u8 = 6;
const RDI: u8 = 7;

/// `ud2` after a failed comparison, so that it raises SIGILL.
const OR_DIE: &str = "\nje fine\nud2\nfine: nop";

fn pointed(area: MemoryArea, register: u8) -> MemoryArea {
    MemoryArea { pointer: Some(AreaPointer { register, at: PointerPosition::Start }), ..area }
}

/// A batch of one snippet with these areas, in `layouts` layouts of one call each.
fn batch(text: &str, areas: &[MemoryArea], layouts: usize) -> Batch {
    let code = cyclescope_code::asm::parse_assembly(text).expect("the snippet is right");
    let mut batch = batch_of(once(code.bytes()), layouts, 1);
    batch.memory = ProgramMemory { vectors: FloatElement::F64, areas: areas.to_vec() };
    batch.layouts.iter_mut().for_each(|layout| layout.data = vec![0; areas.len()]);
    batch
}

fn run(user: &mut UserExecutor, text: &str, areas: &[MemoryArea], layouts: usize) -> Result<Vec<Sample>, RunError> {
    user.run(&batch(text, areas, layouts))
}

#[track_caller]
fn assert_holds(user: &mut UserExecutor, text: &str, areas: &[MemoryArea]) {
    let result = run(user, &format!("{text}{OR_DIE}"), areas, 2);
    assert_eq!(result.map(|samples| samples.len()), Ok(2), "{text}");
}

fn assert_dies(user: &mut UserExecutor, text: &str, areas: &[MemoryArea]) {
    let result = run(user, &format!("{text}{OR_DIE}"), areas, 1);
    assert!(matches!(result, Err(RunError::Fault { signal: "SIGILL", .. })), "{text}: {result:?}");
}

/// Follows the ring at RSI, which must return to its start after exactly `elements` steps.
fn round(elements: u64) -> String {
    format!(
        "mov rax, rsi\nmov ecx, {}\nagain: mov rax, [rax]\ncmp rax, rsi\nje bad\ndec ecx\njnz again\n\
         mov rax, [rax]\ncmp rax, rsi\nje good\nbad: ud2\ngood: cmp eax, eax",
        elements - 1
    )
}

#[test]
fn programs_find_rings_of_every_order_and_kind_of_page() {
    let mut user = spawn();
    for order in [RingOrder::Sequential, RingOrder::RandomByLine, RingOrder::RandomByPage] {
        let ring = PointerRing { stride: 64, order, seed: 11 };
        let area = MemoryArea::from_ring(1 << 20, ring, RSI);
        for area in [area.clone(), MemoryArea { present: PagePresence::AtPointer, ..area }] {
            assert_holds(&mut user, &round(ring.element_count(area.bytes)), &[area]);
        }
    }
    let ring = PointerRing { stride: 4096 + 64, order: RingOrder::RandomByLine, seed: 11 };
    let area = MemoryArea { frames: PhysicalFrames::Repeated(1), ..MemoryArea::from_ring(65 * 4096, ring, RSI) };
    assert_holds(&mut user, &round(64), &[area]);
}

#[test]
fn a_program_cannot_write_the_initial_contents_of_areas() {
    let area =
        |frames, present| MemoryArea { frames, present, ..MemoryArea::new(8192, AreaFill::Image(vec![7; 4096])) };
    // The worker's own memory with a copy, repeated pages with a copy, and a private mapping.
    let areas = [
        pointed(area(PhysicalFrames::Own, PagePresence::Everywhere), RSI),
        area(PhysicalFrames::Repeated(1), PagePresence::Everywhere),
        pointed(area(PhysicalFrames::Own, PagePresence::AtPointer), RDI),
    ];
    let mut user = one_worker(false);
    let kept =
        "cmp byte ptr [rsi], 7\njne bad\ncmp byte ptr [rdi], 7\njne bad\ncmp eax, eax\njmp fine\nbad: ud2\nfine: nop";
    run(&mut user, kept, &areas, 1).expect("they hold their contents");
    for number in 0..2 {
        let source = user.areas.area_setups()[number].source_at;
        let result = run(&mut user, &format!("mov rax, {source}\nmov [rax], rax"), &areas, 1);
        let faults =
            |address| matches!(result, Err(RunError::Fault { signal: "SIGSEGV", address: at, .. }) if at == address);
        assert!(source != 0 && faults(source), "{number}: {result:?}");
    }
    run(&mut user, "mov qword ptr [rsi], 0\nmov qword ptr [rdi], 0", &areas, 1).expect("areas can be written");
    run(&mut user, kept, &areas, 1).expect("the next layout finds the contents again");
}

#[test]
fn a_large_area_is_accessible_from_end_to_end() {
    let mut user = spawn();
    let ring = PointerRing { stride: 4096, order: RingOrder::RandomByPage, seed: 1 };
    let area = MemoryArea::from_ring(64 << 20, ring, RSI);
    assert_holds(&mut user, &round(16384), &[area]);
}

#[test]
#[ignore = "takes 2 GiB of memory"]
fn the_largest_area_is_accessible_from_end_to_end() {
    let mut user = spawn();
    let ring = PointerRing { stride: 4096, order: RingOrder::RandomByPage, seed: 1 };
    assert_holds(&mut user, &round(1 << 18), &[MemoryArea::from_ring(1 << 30, ring, RSI)]);
}

/// Whether this machine promises huge pages.
fn has_huge_pages() -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let transparent = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let pooled = read("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages").trim().parse().unwrap_or(0u32);
    transparent.contains("[madvise]") || transparent.contains("[always]") || pooled >= 4
}

#[test]
fn huge_pages_are_huge_or_refused_with_a_remedy() {
    let mut user = spawn();
    let ring = PointerRing { stride: 64, order: RingOrder::RandomByLine, seed: 5 };
    let area = MemoryArea { pages: PageSize::Huge, ..MemoryArea::from_ring(8 << 20, ring, RSI) };
    let text = format!("{}{OR_DIE}", round(ring.element_count(area.bytes)));
    match run(&mut user, &text, std::slice::from_ref(&area), 2) {
        Ok(_) => {
            let placed = user.placed_areas()[0];
            assert_ne!(placed.pages, ObtainedPages::Small);
            assert_eq!(placed.address % HUGE_PAGE_BYTES, 0);
            assert!(has_huge_pages(), "huge pages came from nowhere");
        }
        Err(RunError::Unavailable(error)) => {
            assert!(!has_huge_pages(), "{error:?}");
            assert!(error.why.contains("MiB of them") && error.remedy.contains("nr_hugepages"), "{error:?}");
        }
        other => panic!("{other:?}"),
    }
    // The executor continues with small pages.
    assert_holds(&mut user, &round(ring.element_count(area.bytes)), &[MemoryArea { pages: PageSize::Small, ..area }]);
    assert_eq!(user.placed_areas()[0].pages, ObtainedPages::Small);
}

#[test]
fn repeated_pages_share_memory() {
    let mut user = spawn();
    let own = pointed(
        MemoryArea { present: PagePresence::Everywhere, ..MemoryArea::new(64 << 12, AreaFill::Bytes(vec![0])) },
        RSI,
    );
    let repeated = MemoryArea { frames: PhysicalFrames::Repeated(2), ..own.clone() };
    let store = "mov qword ptr [rsi + 8], 77\nmov rax, [rsi + 4096*62 + 8]\ncmp rax, 77";
    assert_holds(&mut user, store, std::slice::from_ref(&repeated));
    assert_dies(&mut user, store, std::slice::from_ref(&own));
    // The second physical page is separate.
    assert_dies(&mut user, &store.replace("*62", "*63"), std::slice::from_ref(&repeated));
    // Fresh in each layout, whichever page wrote it.
    let fresh = "cmp qword ptr [rsi + 4096*10], 0\nje new\nud2\nnew: mov qword ptr [rsi + 4096*30], 1\ncmp eax, eax";
    assert_holds(&mut user, fresh, &[repeated]);
}

#[test]
fn more_mappings_than_the_kernel_allows_are_refused() {
    let mut user = spawn();
    let area = MemoryArea { frames: PhysicalFrames::Repeated(1), ..MemoryArea::new(1 << 30, AreaFill::Bytes(vec![0])) };
    match run(&mut user, "nop", std::slice::from_ref(&area), 1) {
        Err(RunError::Unavailable(error)) => assert!(error.remedy.contains("vm.max_map_count="), "{error:?}"),
        other => assert!(pages::read_max_mappings() > 1 << 18, "{other:?}"),
    }
    // Each of the two areas fits alone, but not both.
    let half = ((pages::read_max_mappings() - OTHER_MAPPINGS) / 2 + 1) << 12;
    if half <= 1 << 30 {
        let areas =
            vec![
                MemoryArea { frames: PhysicalFrames::Repeated(1), ..MemoryArea::new(half, AreaFill::Bytes(vec![0])) };
                2
            ];
        let error = run(&mut user, "nop", &areas, 1).unwrap_err();
        let refused = matches!(&error, RunError::Unavailable(error) if error.what.starts_with("area 1"));
        assert!(refused, "{error:?}");
    }
    let huge = MemoryArea { frames: PhysicalFrames::Repeated(1), pages: PageSize::Huge, ..area };
    assert!(matches!(run(&mut user, "nop", &[huge], 1), Err(RunError::Unavailable(_))));
    assert!(run(&mut user, "nop", &[], 1).is_ok());
}

/// Addresses that are free in this process, far from those that the kernel chooses for other tests.
fn free_addresses(bytes: usize) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0x1000_0000_0000);
    let mut tried = std::iter::repeat_with(|| NEXT.fetch_add(1 << 32, Ordering::Relaxed));
    tried.find(|at| reserve_addresses(Some(*at), bytes).is_ok()).expect("addresses")
}

#[test]
fn a_fixed_address_is_used_or_refused() {
    let mut user = spawn();
    let address = free_addresses(1 << 20);
    let fixed = |address| MemoryArea {
        address: AreaAddress::Fixed(address),
        ..MemoryArea::new(8192, AreaFill::Bytes(vec![7]))
    };
    let look = format!("mov rax, {address}\nmov rax, [rax + 8184]\nmov rcx, 0x0707070707070707\ncmp rax, rcx");
    for _ in 0..2 {
        assert_holds(&mut user, &look, &[fixed(address)]);
        assert_eq!(user.placed_areas()[0].address, address);
        // The same address for another memory.
        assert_holds(&mut user, &look, &[MemoryArea { present: PagePresence::Everywhere, ..fixed(address) }]);
    }
    let ours = Box::new(0u8);
    let occupied = std::ptr::from_ref(&*ours) as u64 & !4095;
    match run(&mut user, "nop", &[fixed(occupied)], 1) {
        Err(RunError::Unavailable(error)) => {
            assert!(
                error.what.contains(&format!("{occupied:#x}")) && error.why.contains("in this process"),
                "{error:?}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert_holds(&mut user, &look, &[fixed(address)]);
    let RunError::Unavailable(low) = fixed_address_error(0, 4096, 4096, rustix::io::Errno::PERM.into()) else {
        panic!("another error")
    };
    assert!(low.why.contains("vm.mmap_min_addr"));
}

#[test]
fn code_runs_in_areas_for_it_and_is_not_written() {
    let mut user = spawn();
    let address = free_addresses(1 << 20);
    // `mov eax, 77; ret`
    let code = AreaFill::Image(vec![0xb8, 77, 0, 0, 0, 0xc3]);
    let area = MemoryArea { address: AreaAddress::Fixed(address), ..MemoryArea::new(4096, code) };
    let executable = MemoryArea { access: AreaAccess::Code, ..area.clone() };
    let stack = MemoryArea {
        pointer: Some(AreaPointer { register: 4, at: PointerPosition::Middle }),
        ..MemoryArea::new(1 << 16, AreaFill::Image(Vec::new()))
    };
    let call = format!("mov rdx, {address}\ncall rdx\ncmp eax, 77");
    for _ in 0..2 {
        assert_holds(&mut user, &call, &[executable.clone(), stack.clone()]);
        let result = run(&mut user, &call, &[area.clone(), stack.clone()], 1);
        assert!(matches!(result, Err(RunError::Fault { signal: "SIGSEGV", .. })), "{result:?}");
        let store = format!("mov rdx, {address}\nmov byte ptr [rdx], 1");
        let result = run(&mut user, &store, &[executable.clone(), stack.clone()], 1);
        assert!(matches!(result, Err(RunError::Fault { signal: "SIGSEGV", .. })), "{result:?}");
    }
}

#[test]
fn kept_areas_keep_what_programs_store_and_fresh_ones_do_not() {
    let zeros = MemoryArea::new(16 << 12, AreaFill::Bytes(vec![0]));
    let kinds = [
        zeros.clone(),
        MemoryArea { present: PagePresence::Everywhere, ..zeros.clone() },
        MemoryArea { frames: PhysicalFrames::Repeated(1), ..zeros },
    ];
    let count = "inc qword ptr [rsi]";
    let word_is = |number: u64| format!("cmp qword ptr [rsi], {number}");
    for kind in kinds {
        let fresh = pointed(kind, RSI);
        let kept = MemoryArea { lifetime: StoreLifetime::Kept, ..fresh.clone() };
        let mut user = one_worker(false);
        let mut run =
            |text: &str, area: &MemoryArea, layouts| run(&mut user, text, std::slice::from_ref(area), layouts);
        run(count, &kept, 3).expect("it counts");
        run(count, &kept, 2).expect("it counts on");
        run(&format!("{}{OR_DIE}", word_is(5)), &kept, 2).expect("five layouts have counted");
        // Another memory of the same shape, and back.
        run(count, &fresh, 1).expect("it counts");
        run(&format!("{}{OR_DIE}", word_is(0)), &fresh, 2).expect("each layout begins anew");
        run(&format!("{}{OR_DIE}", word_is(0)), &kept, 1).expect("kept areas begin anew after another memory");
        run(count, &kept, 4).expect("it counts");
        let fault = run("ud2", &kept, 1);
        assert!(matches!(fault, Err(RunError::Fault { .. })), "{fault:?}");
        run(&format!("{}{OR_DIE}", word_is(0)), &kept, 1).expect("kept areas begin anew after a fault");
    }
}

#[test]
fn a_batch_runs_in_the_worker_that_was_prepared_for_it() {
    for functions in [false, true] {
        let mut user = one_worker(functions);
        for bytes in [1 << 16, 1 << 20, 1 << 16] {
            let batch = batch("nop", &[pointed(MemoryArea::new(bytes, AreaFill::Bytes(vec![1])), RDI)], 1);
            let before = user.worker_pid();
            let prepared = user.prepare(&batch).expect("it can run");
            assert_ne!(Some(prepared), before);
            assert_eq!(user.run(&batch).map(|samples| samples.len()), Ok(1));
            assert_eq!(user.worker_pid(), Some(prepared));
        }
    }
}

#[test]
fn a_memory_with_other_contents_keeps_the_worker() {
    let mut user = one_worker(false);
    let area = |word: u8| pointed(MemoryArea::new(1 << 16, AreaFill::Bytes(vec![word])), RDI);
    let look = |word: u8| format!("cmp byte ptr [rdi + 0x8000], {word}");
    assert_holds(&mut user, &look(1), &[area(1)]);
    let pid = user.worker_pid();
    assert_holds(&mut user, &look(2), &[area(2)]);
    assert_holds(&mut user, &look(1), &[area(1)]);
    assert_eq!(user.worker_pid(), pid);
    assert_holds(&mut user, &look(1), &[MemoryArea { present: PagePresence::Everywhere, ..area(1) }]);
    assert_ne!(user.worker_pid(), pid);
}

#[test]
fn access_past_the_end_of_an_area_faults() {
    let mut user = spawn();
    let area = pointed(
        MemoryArea { present: PagePresence::Everywhere, ..MemoryArea::new(4096, AreaFill::Bytes(vec![0])) },
        RSI,
    );
    run(&mut user, "mov byte ptr [rsi + 4095], 1", std::slice::from_ref(&area), 1).expect("the last byte");
    let start = user.placed_areas()[0].address;
    let source = user.areas.area_setups()[0].source_at;
    let context = user.regions.worker_address(view::COMMAND_AT);
    for address in [start - 1, start + 4096, source, context] {
        let store = format!("mov rax, {address}\nmov byte ptr [rax], 1");
        let result = run(&mut user, &store, std::slice::from_ref(&area), 1);
        assert!(
            matches!(result, Err(RunError::Fault { signal: "SIGSEGV", address: at, .. }) if at == address),
            "{address:#x}: {result:?}"
        );
    }
}

#[test]
fn registers_without_an_area_keep_their_numbers() {
    let mut user = spawn();
    let area = pointed(MemoryArea::new(4096, AreaFill::Bytes(vec![0])), 3);
    let address = "mov rax, rbx\nand rax, 4095\nmov rcx, rdi\nsub rcx, 0x1000f\nor rax, rcx";
    assert_holds(&mut user, &format!("{address}\ncmp rax, 0"), &[area]);
}

#[test]
fn more_memory_than_is_free_is_refused_in_words() {
    assert!(super::require_free_bytes(5 << 20, Some(5 << 20)).is_ok() && super::require_free_bytes(1, None).is_ok());
    let error = super::require_free_bytes((5 << 20) + 1, Some(5 << 20)).expect_err("too little");
    assert_eq!(error.what, "6 MiB for the memory areas");
    assert!(error.why.contains("only 5 MiB"), "{error}");
}
