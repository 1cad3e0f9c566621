//! Contents of areas, and invalid areas.

use super::*;
use cyclescope_core::error::BadBatch;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn ring(stride: u32, order: RingOrder) -> PointerRing {
    PointerRing { stride, order, seed: 7 }
}

fn contents(area: &MemoryArea, address: u64) -> Vec<u8> {
    let mut bytes = vec![0xa5; area.frame_bytes() as usize];
    area.write_contents(address, &mut bytes);
    bytes
}

/// Addresses that a ring visits from its first element until it returns there.
fn ring_addresses(area: &MemoryArea, address: u64) -> Vec<u64> {
    let bytes = contents(area, address);
    let mut all = vec![address];
    loop {
        let at = (all[all.len() - 1] - address) as usize % bytes.len();
        let next = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        if next == address {
            return all;
        }
        assert!(all.len() <= area.bytes as usize / 8, "the ring does not close");
        all.push(next);
    }
}

proptest! {
    #[test]
    fn a_ring_visits_every_element_once(
        bytes in 8u64..100_000,
        words in 1u32..600,
        seed: u64,
        order in prop_oneof![Just(RingOrder::Sequential), Just(RingOrder::RandomByLine), Just(RingOrder::RandomByPage)],
    ) {
        let ring = PointerRing { stride: 8 * words, order, seed };
        let area = MemoryArea::from_ring(bytes, ring, 6);
        let all = ring_addresses(&area, 0x7000_0000);
        prop_assert_eq!(all.len() as u64, ring.element_count(bytes));
        let distinct: BTreeSet<u64> = all.iter().copied().collect();
        prop_assert_eq!(distinct.len(), all.len());
        prop_assert!(all.iter().all(|at| (at - 0x7000_0000) % u64::from(ring.stride) == 0));
        prop_assert!(all.iter().all(|at| at + 8 <= 0x7000_0000 + bytes));
        let turns = all.windows(2).filter(|pair| pair[0] >> 12 != pair[1] >> 12).count();
        let pages: BTreeSet<u64> = all.iter().map(|at| at >> 12).collect();
        match order {
            RingOrder::Sequential => prop_assert!(all.windows(2).all(|pair| pair[0] < pair[1])),
            // The ring may enter the first page in its middle, and then leaves that page twice.
            RingOrder::RandomByPage => prop_assert!(turns <= pages.len()),
            RingOrder::RandomByLine => {}
        }
    }
}

#[test]
fn random_orders_differ_by_seed_and_from_each_other() {
    let area = |order, seed| MemoryArea::from_ring(1 << 20, PointerRing { stride: 64, order, seed }, 6);
    let order = |order, seed| ring_addresses(&area(order, seed), 0x10_0000);
    let by_line = order(RingOrder::RandomByLine, 1);
    assert_ne!(by_line, order(RingOrder::RandomByLine, 2));
    assert_eq!(by_line, order(RingOrder::RandomByLine, 1));
    let turns = |all: &[u64]| all.windows(2).filter(|pair| pair[0] >> 12 != pair[1] >> 12).count();
    // With 256 pages, the next page is the same one with probability 1/256.
    assert!(turns(&by_line) > 16_384 * 98 / 100, "{}", turns(&by_line));
    let by_page = order(RingOrder::RandomByPage, 1);
    assert!((255..=256).contains(&turns(&by_page)), "{}", turns(&by_page));
    let in_page: Vec<u64> = by_page.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    assert!(in_page.iter().filter(|step| **step == 64).count() < 16_384 / 20, "no order within pages");
}

#[test]
fn a_ring_in_repeated_pages_gives_each_element_its_place() {
    // 64 pages and one line per page, all in one physical page.
    let area = MemoryArea {
        frames: PhysicalFrames::Repeated(1),
        ..MemoryArea::from_ring(64 * 4096 + 4096, ring(4096 + 64, RingOrder::RandomByLine), 6)
    };
    let memory = ProgramMemory { vectors: FloatElement::F64, areas: vec![area] };
    assert_eq!(memory.check(), Ok(()));
    let all = ring_addresses(&memory.areas[0], 0x4000_0000);
    assert_eq!(all.len(), 64);
    let lines: BTreeSet<u64> = all.iter().map(|at| at % 4096).collect();
    assert_eq!(lines.len(), 64);
    let mut memory = memory;
    memory.areas[0].fill = AreaFill::Ring(ring(4096, RingOrder::RandomByLine));
    assert!(memory.check().unwrap_err().what.contains("share 1 places"));
}

#[test]
fn fills_end_at_the_last_byte() {
    let area = MemoryArea::new(5000, AreaFill::Bytes(vec![1, 2, 3]));
    let bytes = contents(&area, 0);
    assert_eq!(bytes.len(), 8192);
    assert!(bytes[..5000].iter().enumerate().all(|(at, byte)| usize::from(*byte) == at % 3 + 1));
    assert!(bytes[5000..].iter().all(|byte| *byte == 0));
    let bytes = contents(&MemoryArea::new(5000, AreaFill::Image(vec![9; 10])), 0);
    assert!(bytes[..10].iter().all(|byte| *byte == 9) && bytes[10..].iter().all(|byte| *byte == 0));
    let bytes = contents(&MemoryArea::new(4096, AreaFill::Pattern(FloatElement::F32)), 0);
    assert!(bytes.chunks(8).all(|word| word == FloatElement::F32.to_word().to_le_bytes()));
}

#[test]
fn standard_memory_has_five_areas() {
    let memory = ProgramMemory::standard(FloatElement::F32, true);
    assert_eq!(memory.check(), Ok(()));
    let addresses: Vec<u64> = (1..6).map(|area| area << 32).collect();
    let registers: Vec<(usize, u64)> = memory.pointer_registers(&addresses, &[0, -64, 0, 0, 64]).collect();
    let at =
        |area: u64, shift: i64| (((area + 1) << 32) + (512 << 10) + 320 * (2 * area + 1)).wrapping_add_signed(shift);
    assert_eq!(registers, [(14, at(0, 0)), (7, at(1, -64)), (6, at(2, 0)), (4, at(3, 0)), (5, at(4, 64))]);
    for area in 0..5 {
        let (allowed, most) = (memory.allowed_shifts(area), (512 << 10) - (64 << 10));
        assert!(allowed.contains(&most) && allowed.contains(&-most), "{allowed:?}");
        assert!(!allowed.contains(&(512 << 10)) && !allowed.contains(&(-512 << 10)));
    }
    assert!(memory.areas.iter().all(|area| area.lifetime == StoreLifetime::Fresh));
    let untouched = ProgramMemory::standard(FloatElement::F32, false);
    assert!(untouched.areas.iter().all(|area| area.lifetime == StoreLifetime::Unused));
}

#[test]
fn a_call_has_a_whole_buffer_and_a_stack_below_its_pointer() {
    for (bytes, stack) in [(1, 1), (1 << 20, 8 << 20), (MOST_AREA_BYTES, 4096)] {
        let memory = ProgramMemory::for_call(bytes, AreaFill::Random(3), stack);
        assert_eq!(memory.check(), Ok(()));
        assert_eq!((memory.pointer_offset(0), memory.areas[0].bytes), (Some(0), bytes));
    }
    assert!(ProgramMemory::for_call(MOST_AREA_BYTES + 1, AreaFill::Random(3), 1).check().is_err());
    let [one, same, other] = [1, 1, 2].map(|seed| contents(&MemoryArea::new(4097, AreaFill::Random(seed)), 0));
    assert!(one == same && one != other && one[4096..4097] != [0] && one[4097..].iter().all(|byte| *byte == 0));
}

/// The error for a memory whose second area was changed this way.
fn check_changed(change: impl Fn(&mut MemoryArea)) -> BadBatch {
    let mut memory = ProgramMemory::default();
    change(&mut memory.areas[1]);
    memory.check().unwrap_err()
}

#[test]
fn errors_name_the_area_and_the_defect() {
    let pointer = |register, at| Some(AreaPointer { register, at });
    type Change = Box<dyn Fn(&mut MemoryArea)>;
    let cases: [(Change, &str); 18] = [
        (Box::new(|area| area.bytes = 0), "0 bytes"),
        (Box::new(|area| area.bytes = MOST_AREA_BYTES + 1), "bytes"),
        (Box::new(|area| area.fill = AreaFill::Bytes(Vec::new())), "no bytes"),
        (Box::new(|area| area.fill = AreaFill::Image(vec![0; (1 << 20) + 1])), "filled with 1048577"),
        (Box::new(|area| area.fill = AreaFill::Ring(ring(0, RingOrder::Sequential))), "stride of 0"),
        (Box::new(|area| area.fill = AreaFill::Ring(ring(12, RingOrder::Sequential))), "stride of 12"),
        (
            Box::new(|area| {
                area.bytes = 7;
                area.fill = AreaFill::Ring(ring(8, RingOrder::Sequential));
            }),
            "does not fit",
        ),
        (Box::new(|area| area.frames = PhysicalFrames::Repeated(0)), "0 physical pages"),
        (Box::new(|area| area.frames = PhysicalFrames::Repeated(257)), "257 physical pages"),
        (Box::new(move |area| area.pointer = pointer(15, PointerPosition::Start)), "register 15"),
        (Box::new(move |area| area.pointer = pointer(14, PointerPosition::Start)), "another area already"),
        (Box::new(|area| area.bytes = 1000), "staggered middle"),
        (
            Box::new(move |area| {
                area.bytes = MOST_ABOVE_TOP - 1;
                area.pointer = pointer(3, PointerPosition::Top);
            }),
            "the top of its",
        ),
        (Box::new(|area| area.address = AreaAddress::Fixed(0)), "not the start of a page"),
        (Box::new(|area| area.address = AreaAddress::Fixed(0x1001)), "not the start of a page"),
        (Box::new(|area| area.address = AreaAddress::Fixed((1 << 47) - 4096)), "beyond the addresses"),
        (
            Box::new(|area| {
                area.pages = PageSize::Huge;
                area.address = AreaAddress::Fixed(0x10_0000);
            }),
            "not the start of a page",
        ),
        (
            Box::new(|area| {
                area.access = AreaAccess::Code;
                area.present = PagePresence::Everywhere;
            }),
            "holds code",
        ),
    ];
    for (change, what) in cases {
        let error = check_changed(change);
        assert!(error.part == "area 1" && error.what.contains(what), "{what}: {error:?}");
        assert!(!error.expected.is_empty());
    }
    let mut memory = ProgramMemory::default();
    memory.areas[0].address = AreaAddress::Fixed(0x1000_0000);
    memory.areas[3].address = AreaAddress::Fixed(0x1000_0000 + (1 << 20) - 4096);
    assert!(memory.check().unwrap_err().what.contains("overlaps"));
    memory.areas = vec![MemoryArea::new(1, AreaFill::Bytes(vec![0])); MOST_AREAS + 1];
    assert_eq!(memory.check().unwrap_err().part, "the memory");
}

#[test]
fn a_memory_survives_serialization() {
    let mut memory = ProgramMemory::default();
    memory.areas.push(MemoryArea {
        pages: PageSize::Huge,
        address: AreaAddress::Fixed(0x4000_0000),
        access: AreaAccess::Code,
        lifetime: StoreLifetime::Kept,
        ..MemoryArea::from_ring(3 << 20, ring(64, RingOrder::RandomByPage), 3)
    });
    memory.areas.push(MemoryArea {
        frames: PhysicalFrames::Repeated(2),
        ..MemoryArea::new(1 << 20, AreaFill::Image(vec![1, 2]))
    });
    let text = serde_json::to_string(&memory).unwrap();
    assert_eq!(serde_json::from_str::<ProgramMemory>(&text).unwrap(), memory);
    assert!(text.contains(r#""image":"0102""#), "{text}");
    for earlier in [r#"[1,2]"#, r#""0102""#] {
        let text = text.replace(r#""0102""#, earlier);
        assert_eq!(serde_json::from_str::<ProgramMemory>(&text).unwrap(), memory);
    }
    for wrong in [r#""010""#, r#""01020""#, r#""01g2""#, r#""+1-2""#, "7", "[256]"] {
        let text = text.replace(r#""0102""#, wrong);
        assert!(serde_json::from_str::<ProgramMemory>(&text).is_err(), "{wrong}");
    }
    // Evidence of earlier runs has areas without it.
    let older = text.replace(r#","access":"data""#, "");
    assert!(older != text && serde_json::from_str::<ProgramMemory>(&older).unwrap() == memory, "{text}");
    assert!(text.contains(r#""fixed":1073741824"#) && text.contains(r#""order":"random_by_page""#), "{text}");
}
