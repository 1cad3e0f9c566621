//! Memory areas in ring 0 as programs find them there: rings, images, kept and fresh ones, and what is refused.

use crate::outcome::Outcome;
use crate::ring0::{around, open};
use cyclescope::context::Element;
use cyclescope::error::RunError;
use cyclescope::executor::kernel::{Kernel, KernelOptions};
use cyclescope::executor::{Batch, Call, Executor, Layout, Placed};
use cyclescope::program::memory::{
    Address, Area, At, Fill, Frames, Lifetime, Memory, Order, Pages, Pointer, Ring,
};
use std::time::Duration;

/// RSI, by its encoding number.
const RSI: u8 = 6;
const ELEMENTS: u64 = 1024;

/// One call of a snippet in each of some layouts, with one area. The snippet runs `ud2` where it finds another value.
fn run(kernel: &mut Kernel, text: &str, area: &Area, layouts: u64) -> Result<(), RunError> {
    let code = cyclescope::asm::parse(text).expect("the snippet is right");
    let layout = |seed| Layout {
        code: vec![Placed { program: 0, offset: 0 }],
        round: vec![Call { place: 0, loop_count: 1 }],
        data: vec![0],
        seed,
    };
    let batch = Batch {
        programs: vec![around(code.bytes())],
        warm_up: 0,
        rounds: 1,
        layouts: (0..layouts).map(layout).collect(),
        memory: Memory { vectors: Element::F64, areas: vec![area.clone()] },
        delay: 1,
        deadline: Duration::from_secs(10),
    };
    kernel.run(&batch).map(|_| ())
}

fn is(word: u64) -> String {
    format!("cmp qword ptr [rsi], {word}\nje good\nud2\ngood: nop")
}

/// Tests the contents of memory in ring 0, layout by layout.
pub fn areas() -> Outcome {
    let mut kernel = open(KernelOptions::default().deadline)?;
    for order in [Order::Sequential, Order::RandomByLine, Order::RandomByPage] {
        let ring = Area::ring(64 * ELEMENTS, Ring { stride: 64, order, seed: 5 }, RSI);
        let round = format!(
            "mov rax, rsi\nmov ecx, {}\nagain: mov rax, [rax]\ncmp rax, rsi\nje bad\ndec ecx\njnz again\n\
             mov rax, [rax]\ncmp rax, rsi\nje good\nbad: ud2\ngood: nop",
            ELEMENTS - 1
        );
        run(&mut kernel, &round, &ring, 2)?;
    }
    let pointer = Some(Pointer { register: RSI, at: At::Start });
    let fresh = Area { pointer, ..Area::new(5000, Fill::Image(vec![42])) };
    let kept = Area { lifetime: Lifetime::Kept, ..fresh.clone() };
    run(&mut kernel, &format!("{}\ninc qword ptr [rsi]", is(42)), &fresh, 3)?;
    run(&mut kernel, "inc qword ptr [rsi]", &kept, 3)?;
    run(&mut kernel, &is(45), &kept, 2)?;
    run(&mut kernel, &is(42), &fresh, 1)?;
    run(&mut kernel, &is(42), &kept, 1)?;
    for lacking in [
        Area { pages: Pages::Huge, ..fresh.clone() },
        Area { frames: Frames::Repeated(1), ..fresh.clone() },
        Area { address: Address::Fixed(0x1000_0000), ..fresh.clone() },
        Area { bytes: 65 << 20, ..fresh.clone() },
    ] {
        match run(&mut kernel, "nop", &lacking, 1) {
            Err(RunError::Unavailable(error)) if !error.remedy.is_empty() => println!("{error}"),
            other => return Err(format!("{lacking:?} ended with {other:?}").into()),
        }
    }
    run(&mut kernel, &is(42), &Area { bytes: 64 << 20, ..fresh }, 1)?;
    Ok(())
}
