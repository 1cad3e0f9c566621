//! The cost of a snippet, with its caveats.
//!
//!     cargo run --release -p cyclescope --example snippet 'imul rax, rax; add rax, 1'

use cyclescope::Scope;
use cyclescope::error::Error;
use cyclescope::snippet::Snippet;

fn main() -> Result<(), Error> {
    let text = std::env::args().nth(1).unwrap_or("mulsd xmm0, xmm1".to_string());
    let snippet = Snippet::parse(&text)?;
    let mut scope = Scope::open()?;
    let run = scope.measure(&snippet)?;
    match run.cost() {
        Some(cost) => println!("{text}: {:.3} ± {:.3} core cycles", cost.value, cost.half_width()),
        None => println!("{text}: its number is refused"),
    }
    for caveat in &run.caveats {
        println!("  {:?}: {}", caveat.code, caveat.text);
    }
    println!("on {}, CPU {}", scope.machine().cpu.name(), scope.machine().target_cpu());
    Ok(())
}
