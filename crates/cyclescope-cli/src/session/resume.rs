//! What all commands do that go on with a result file: options that were not given come from the file, and a file of
//! something else is refused.

use crate::args::Common;
use crate::output::failure::Failure;
use cyclescope::executor::Offer;
use std::path::Path;

/// The options of every command that a file has.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    /// Where the code ran.
    pub executor: &'a str,
    /// The timing method.
    pub clock: &'a str,
    /// The seed.
    pub seed: u64,
    /// Whether --quick was given.
    pub quick: bool,
    /// The CPU that was measured on.
    pub cpu: u32,
}

impl Settings<'_> {
    /// The options with what was not given taken from here.
    ///
    /// # Errors
    ///
    /// Where the code ran in ring 0 and the options don't say so: a file alone must not take code there.
    pub fn adopted(&self, common: &Common, path: &Path) -> Result<Common, Failure> {
        let mut common = common.clone();
        let kept = Offer::named(self.executor);
        if common.executor.is_none() && !kept.is_some_and(Offer::is_default) {
            let text = format!("{} says that its code runs in `{}`", path.display(), self.executor);
            let remedy = format!(
                "add --executor {} if you trust the file, or begin a new one with --out",
                self.executor
            );
            let unknown = "begin a new file with --out";
            return Err(Failure::usage(text, Some(if kept.is_some() { &remedy } else { unknown })));
        }
        common.seed = common.seed.or(Some(self.seed));
        common.quick |= self.quick;
        common.cpu = common.cpu.or(Some(self.cpu));
        if common.clock.is_empty() {
            common.clock = vec![self.clock.to_string()];
        }
        Ok(common)
    }
}

/// Fails where the session of a file differs from what is asked for, and from this machine.
pub fn require(differences: &[String], command: &str, path: &Path) -> Result<(), Failure> {
    if differences.is_empty() {
        return Ok(());
    }
    let remedy = format!(
        "resume with `cyclescope {command} --resume FILE` alone, on the same machine and with the same version; or name a new \
         file with --out"
    );
    let text = format!("{} can't be resumed: {}", path.display(), differences.join("; "));
    Err(Failure::usage(text, Some(&remedy)))
}

/// Fails where evidence would be of a part alone: these options, each with whether it is given, make it so.
pub fn refuse_evidence(common: &Common, others: &[(&str, bool)], of: &str) -> Result<(), Failure> {
    match others.iter().find(|(_, given)| *given).filter(|_| common.evidence.is_some()) {
        Some((option, _)) => {
            let remedy = format!("leave one of them out: evidence is of {of} from its beginning to its end");
            Err(Failure::usage(format!("--evidence does not go with {option}"), Some(&remedy)))
        }
        None => Ok(()),
    }
}
