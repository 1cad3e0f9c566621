//! Random code in ring 0: every piece is refused or returns an outcome, and nothing else has
//! changed.

use crate::command_result::CommandResult;
use crate::draw;
use crate::guarded_memory::{CanaryMemory, sum_kernel_memory};
use crate::ring0::{open_kernel, run_program, wrap_snippet};
use cyclescope::error::RunError;
use cyclescope::executor::Executor;
use cyclescope::random::{Random, mix_seeds};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Twice a slice. A call of this little code takes some µs without an endless loop, also when
/// emulated.
const CALL_DEADLINE: Duration = Duration::from_millis(4);
/// Smallest share of completed code, so that the test covers more than faults.
const MIN_COMPLETED_SHARE: f64 = 0.3;

/// Runs `count` pieces of code.
pub fn fuzz_ring0(count: u64, seed: u64) -> CommandResult {
    let canary = CanaryMemory::new();
    let before = sum_kernel_memory()?;
    if sum_kernel_memory()? != before {
        return Err("the kernel changes its text by itself".into());
    }
    let mut kernel = open_kernel(CALL_DEADLINE)?;
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    let mut completed = 0;
    let mut refused = 0;
    let began = Instant::now();
    for number in 0..count {
        let code = draw::draw_code(&mut Random::new(mix_seeds(seed, number)));
        let offset = (number * 4099 % 0x30_0000) as u32;
        let end = match run_program(&mut kernel, wrap_snippet(&code), 1, offset) {
            Ok(_) => {
                completed += 1;
                "completed".to_string()
            }
            Err(RunError::Refused { .. }) => {
                refused += 1;
                "refused".to_string()
            }
            Err(RunError::Exception { vector: 15 | 18 | 20.., .. }) => "interrupt".to_string(),
            Err(RunError::Exception { name, .. }) => name,
            Err(RunError::Hung { .. } | RunError::Late { .. }) => "deadline".to_string(),
            Err(RunError::DirtyCanary { fence }) => format!("{fence} damaged"),
            Err(error) => return Err(format!("number {number} of seed {seed}, {code:02x?}: {error}").into()),
        };
        *ends.entry(end).or_default() += 1;
    }
    let seconds = began.elapsed().as_secs_f64();
    for (end, count) in &ends {
        println!("{count} {end}");
    }
    let ran = count - refused;
    println!(
        "{count} in {seconds:.0} s; {ran} ran, {completed} of them to their end; left changed: {:?}",
        kernel.restored_state()
    );
    if (completed as f64) < MIN_COMPLETED_SHARE * ran as f64 {
        return Err("too little of the code came to its end".into());
    }
    if sum_kernel_memory()? != before {
        return Err("the kernel's text or constants have changed".into());
    }
    match canary.count_changed_words() {
        0 => Ok(()),
        words => Err(format!("{words} words of this process have changed").into()),
    }
}
