//! What options of `run` need of the rest of their command, as a list.

use crate::args::{ColdPart, CommonArgs, RunArgs};
use crate::output::Failure;

/// What an option may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionNeed {
    /// A single snippet or function, not a list or a sweep.
    OnePoint,
    /// A snippet, not a function.
    Snippet,
    /// An executor in user mode.
    UserMode,
    /// Code that is not flushed before each run.
    CachedCode,
}

/// What is known of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommandSubject {
    /// Whether it measures several points.
    pub has_points: bool,
    /// Whether it measures functions, or a region of a run.
    pub is_function: bool,
}

/// An option, and each of its needs with the remedy where it is not met.
struct NeedyOption {
    name: &'static str,
    is_given: fn(&CommonArgs, &RunArgs) -> bool,
    needs: &'static [(OptionNeed, &'static str)],
}

const NEEDY_OPTIONS: &[NeedyOption] = &[
    NeedyOption {
        name: "--beside-shared",
        is_given: |common, _| common.beside_shared,
        needs: &[(OptionNeed::Snippet, "leave --beside-shared out, or measure its instructions as a snippet")],
    },
    NeedyOption {
        name: "--counters",
        is_given: |_, args| args.events.counters.is_some(),
        needs: &[(
            OptionNeed::CachedCode,
            "leave `code` out of --cold: the instructions that flush it are counted too",
        )],
    },
    NeedyOption {
        name: "--counts",
        is_given: |_, args| args.counts,
        needs: &[(OptionNeed::OnePoint, "leave --counts out, or measure one of them alone")],
    },
    NeedyOption {
        name: "--write-elf",
        is_given: |_, args| args.write_elf.is_some(),
        needs: &[
            (OptionNeed::OnePoint, "leave --write-elf out, or measure one of them alone"),
            (OptionNeed::UserMode, "leave out --executor, or --write-elf"),
            (OptionNeed::Snippet, "build the function with -g, and run it in the debugger itself"),
        ],
    },
];

impl OptionNeed {
    /// Why a command does not meet the need; `None` if it does.
    fn find_obstacle(self, common: &CommonArgs, args: &RunArgs, subject: CommandSubject) -> Option<&'static str> {
        let (is_met, obstacle) = match self {
            OptionNeed::OnePoint => (!subject.has_points, "needs one snippet or function, and there are several"),
            OptionNeed::Snippet => (!subject.is_function, "needs a snippet, not a function or a region of a run"),
            OptionNeed::UserMode => (common.offer().is_default(), "needs an executor in user mode"),
            OptionNeed::CachedCode => (!args.cold.contains(&ColdPart::Code), "needs code that stays in the caches"),
        };
        (!is_met).then_some(obstacle)
    }
}

/// Fails if an option lacks what it needs.
pub fn require_needs(common: &CommonArgs, args: &RunArgs, subject: CommandSubject) -> Result<(), Failure> {
    let given = NEEDY_OPTIONS.iter().filter(|option| (option.is_given)(common, args));
    let refusal = given.flat_map(|option| option.needs.iter().map(move |need| (option, need))).find_map(
        |(option, (need, remedy))| {
            let obstacle = need.find_obstacle(common, args, subject)?;
            Some(Failure::usage(format!("{} {obstacle}", option.name), Some(remedy)))
        },
    );
    refusal.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse_run_words;
    use std::ffi::OsString;

    fn refusal(line: &str, subject: CommandSubject) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (common, args) = parse_run_words(words).expect("a command");
        require_needs(&common, &args, subject).err().map(|failure| failure.text().to_string())
    }

    #[test]
    fn options_name_what_they_need() {
        let one = CommandSubject::default();
        let points = CommandSubject { has_points: true, ..one };
        let function = CommandSubject { is_function: true, ..one };
        let all = "cyclescope run nop --counts --counters cycles";
        assert_eq!(refusal(all, one), None);
        for (line, subject, parts) in [
            (all, points, ["--counts needs one snippet", "several"]),
            ("cyclescope run nop --write-elf a", points, ["--write-elf needs one snippet", "several"]),
            ("cyclescope run nop --write-elf a", function, ["--write-elf needs a snippet", "function"]),
            ("cyclescope run nop --counters cycles --cold data,code", one, ["--counters needs code", "caches"]),
        ] {
            let text = refusal(line, subject).unwrap_or_default();
            assert!(parts.iter().all(|part| text.contains(part)), "{line}: {text}");
        }
        assert_eq!(refusal("cyclescope run nop --counters cycles --cold data", points), None);
        let sorted = NEEDY_OPTIONS.windows(2).all(|pair| pair[0].name < pair[1].name);
        assert!(sorted && NEEDY_OPTIONS.iter().all(|option| !option.needs.is_empty()));
    }
}
