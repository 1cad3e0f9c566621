//! Tests of memory areas in ring 0, as programs see them: rings, images, kept and fresh areas, and
//! refused ones.

use crate::command_result::CommandResult;
use crate::ring0::{open_kernel, wrap_snippet};
use cyclescope::context::FloatElement;
use cyclescope::error::RunError;
use cyclescope::executor::kernel::{KernelExecutor, KernelOptions};
use cyclescope::executor::{Batch, Executor, Layout, PlacedProgram, ProgramCall};
use cyclescope::program::memory::{
    AreaAddress, AreaFill, AreaPointer, MemoryArea, PageSize, PhysicalFrames, PointerPosition, PointerRing,
    ProgramMemory, RingOrder, StoreLifetime,
};
use std::time::Duration;

/// RSI, by its encoding number.
const RSI: u8 = 6;
const ELEMENTS: u64 = 1024;

/// Calls a snippet once in each of some layouts, with one area. The snippet runs `ud2` if it finds
/// another value.
fn run_in_area(kernel: &mut KernelExecutor, text: &str, area: &MemoryArea, layouts: u64) -> Result<(), RunError> {
    let code = cyclescope::asm::parse_assembly(text).expect("the snippet is right");
    let layout = |seed| Layout {
        code: vec![PlacedProgram { program: 0, offset: 0 }],
        round: vec![ProgramCall { place: 0, loop_count: 1 }],
        data: vec![0],
        seed,
    };
    let batch = Batch {
        programs: vec![wrap_snippet(code.bytes())],
        warm_up: 0,
        rounds: 1,
        layouts: (0..layouts).map(layout).collect(),
        memory: ProgramMemory { vectors: FloatElement::F64, areas: vec![area.clone()] },
        delay: 1,
        events: Vec::new(),
        deadline: Duration::from_secs(10),
    };
    kernel.run(&batch).map(|_| ())
}

fn expect_word(word: u64) -> String {
    format!("cmp qword ptr [rsi], {word}\nje good\nud2\ngood: nop")
}

/// Tests the contents of memory in ring 0, layout by layout.
pub fn check_areas() -> CommandResult {
    let mut kernel = open_kernel(KernelOptions::default().deadline)?;
    for order in [RingOrder::Sequential, RingOrder::RandomByLine, RingOrder::RandomByPage] {
        let ring = MemoryArea::from_ring(64 * ELEMENTS, PointerRing { stride: 64, order, seed: 5 }, RSI);
        let round = format!(
            "mov rax, rsi\nmov ecx, {}\nagain: mov rax, [rax]\ncmp rax, rsi\nje bad\ndec ecx\njnz again\n\
             mov rax, [rax]\ncmp rax, rsi\nje good\nbad: ud2\ngood: nop",
            ELEMENTS - 1
        );
        run_in_area(&mut kernel, &round, &ring, 2)?;
    }
    let pointer = Some(AreaPointer { register: RSI, at: PointerPosition::Start });
    let fresh = MemoryArea { pointer, ..MemoryArea::new(5000, AreaFill::Image(vec![42])) };
    let kept = MemoryArea { lifetime: StoreLifetime::Kept, ..fresh.clone() };
    run_in_area(&mut kernel, &format!("{}\ninc qword ptr [rsi]", expect_word(42)), &fresh, 3)?;
    run_in_area(&mut kernel, "inc qword ptr [rsi]", &kept, 3)?;
    run_in_area(&mut kernel, &expect_word(45), &kept, 2)?;
    run_in_area(&mut kernel, &expect_word(42), &fresh, 1)?;
    run_in_area(&mut kernel, &expect_word(42), &kept, 1)?;
    for lacking in [
        MemoryArea { pages: PageSize::Huge, ..fresh.clone() },
        MemoryArea { frames: PhysicalFrames::Repeated(1), ..fresh.clone() },
        MemoryArea { address: AreaAddress::Fixed(0x1000_0000), ..fresh.clone() },
        MemoryArea { bytes: 65 << 20, ..fresh.clone() },
    ] {
        match run_in_area(&mut kernel, "nop", &lacking, 1) {
            Err(RunError::Unavailable(error)) if !error.remedy.is_empty() => println!("{error}"),
            other => return Err(format!("{lacking:?} ended with {other:?}").into()),
        }
    }
    run_in_area(&mut kernel, &expect_word(42), &MemoryArea { bytes: 64 << 20, ..fresh }, 1)?;
    Ok(())
}
