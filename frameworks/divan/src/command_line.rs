//! The command line of a benchmark program: that of libtest, as far as it applies.

const OPTIONS: &str = "--list, --test, --exact, --skip NAME, --ignored, --include-ignored and parts of names";

/// What to do with the selected benchmarks.
#[derive(Debug, PartialEq)]
pub(crate) enum Mode {
    Measure,
    /// Print the names.
    List,
    /// Run each without measuring it.
    Test,
}

/// Which benchmarks with the attribute `ignore` run.
#[derive(Debug, PartialEq)]
enum IgnoreRule {
    Leave,
    Only,
    Include,
}

/// The parsed arguments.
#[derive(Debug)]
pub(crate) struct CommandLine {
    pub(crate) mode: Mode,
    ignored: IgnoreRule,
    exact: bool,
    filters: Vec<String>,
    skips: Vec<String>,
}

impl CommandLine {
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<CommandLine, String> {
        let (mut mode, mut ignored, mut exact) = (Mode::Measure, IgnoreRule::Leave, false);
        let (mut filters, mut skips) = (Vec::new(), Vec::new());
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                // cargo passes it.
                "--bench" => {}
                "--list" => mode = Mode::List,
                "--test" => mode = Mode::Test,
                "--exact" => exact = true,
                "--ignored" => ignored = IgnoreRule::Only,
                "--include-ignored" => ignored = IgnoreRule::Include,
                "--skip" => skips.push(arguments.next().ok_or("--skip needs a part of a name")?),
                "" => return Err("an empty filter selects everything: leave it out".to_string()),
                option if option.starts_with('-') => return Err(format!("no option {option}: it has {OPTIONS}")),
                _ => filters.push(argument),
            }
        }
        Ok(CommandLine { mode, ignored, exact, filters, skips })
    }

    /// Whether a benchmark is selected by its name.
    pub(crate) fn selects(&self, name: &str) -> bool {
        let fits = |filter: &String| if self.exact { name == filter } else { name.contains(filter) };
        (self.filters.is_empty() || self.filters.iter().any(fits)) && !self.skips.iter().any(fits)
    }

    /// Whether `--list` names a selected benchmark.
    pub(crate) fn lists(&self, ignored: bool) -> bool {
        ignored || self.ignored != IgnoreRule::Only
    }

    /// Whether a selected benchmark runs.
    pub(crate) fn runs(&self, ignored: bool) -> bool {
        match self.ignored {
            IgnoreRule::Leave => !ignored,
            IgnoreRule::Only => ignored,
            IgnoreRule::Include => true,
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<CommandLine, String> {
        CommandLine::parse(arguments.iter().map(|argument| argument.to_string()))
    }

    #[test]
    fn arguments_select_benchmarks() {
        let selected = |arguments: &[&str]| {
            let command = parse(arguments).unwrap();
            ["sort/10", "sort/100", "parse"].map(|name| command.selects(name))
        };
        assert_eq!(selected(&["--bench"]), [true; 3]);
        assert_eq!(selected(&["sort/10"]), [true, true, false]);
        assert_eq!(selected(&["--exact", "sort/10"]), [true, false, false]);
        assert_eq!(selected(&["--skip", "100"]), [true, false, true]);
        let runs = |arguments: &[&str]| [false, true].map(|ignored| parse(arguments).unwrap().runs(ignored));
        assert_eq!(
            [runs(&[]), runs(&["--ignored"]), runs(&["--include-ignored"])],
            [[true, false], [false, true], [true; 2]]
        );
        let lists = |arguments: &[&str]| [false, true].map(|ignored| parse(arguments).unwrap().lists(ignored));
        assert_eq!([lists(&["--list"]), lists(&["--list", "--ignored"])], [[true; 2], [false, true]]);
        assert_eq!([&["--list"], &["--test"]].map(|option| parse(option).unwrap().mode), [Mode::List, Mode::Test]);
    }

    #[test]
    fn what_is_not_supported_is_named() {
        assert!(parse(&["--sample-count", "7"]).unwrap_err().contains("--sample-count"));
        assert!(parse(&[""]).unwrap_err().contains("empty filter"));
        assert!(parse(&["--skip"]).is_err());
    }
}
