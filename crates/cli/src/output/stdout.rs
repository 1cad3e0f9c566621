//! Standard output: JSON lines, or text, with colours on a terminal.

use crate::output::failure::Failure;
use crate::output::terminal;
use cyclescope::record::SchemaLine;
use cyclescope_platform::console;
use serde::Serialize;
use std::io::{self, BufWriter, IsTerminal, Write};

/// Width of a line of text, in characters.
pub const WIDTH: usize = 80;

/// The output for results.
pub struct Output {
    json: bool,
    colours: bool,
    stream: BufWriter<Box<dyn Write>>,
}

impl Output {
    /// Opens standard output for JSON lines or text.
    pub fn new(json: bool) -> Output {
        let stdout = io::stdout();
        // By https://no-color.org, a nonempty value disables colours.
        let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colours = stdout.is_terminal() && !forbidden;
        Output { json, colours, stream: BufWriter::new(Box::new(stdout)) }
    }

    /// What a printer prints, without colours.
    #[cfg(test)]
    pub fn capture(json: bool, print: impl FnOnce(&mut Output) -> Result<(), Failure>) -> Vec<u8> {
        let printed = tests::SharedBytes::default();
        let mut output = Output { json, colours: false, stream: BufWriter::new(Box::new(printed.clone())) };
        print(&mut output).and_then(|()| output.flush()).expect("memory takes everything");
        drop(output);
        printed.0.take()
    }

    /// Opens standard output. Fails if it was closed when the program started, because results
    /// would be lost.
    pub fn open_stdout(json: bool) -> Result<Output, Failure> {
        if console::is_stdout_closed() {
            let remedy = "redirect it, as in `> result.txt`, or to /dev/null";
            let closed = Failure::internal("standard output is closed, so results can't be printed");
            return Err(closed.with_remedy(remedy));
        }
        Ok(Output::new(json))
    }

    /// Whether results are JSON lines.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Writes and flushes a JSON line, so that the measurement isn't lost later.
    pub fn write_record<T: Serialize>(&mut self, kind: &'static str, content: &T) -> Result<(), Failure> {
        self.write_json(&serde_json::to_string(&SchemaLine::new(kind, content)).expect("records are plain data"))
    }

    /// Writes and flushes a line that is already JSON.
    pub fn write_json(&mut self, line: &str) -> Result<(), Failure> {
        writeln!(self.stream, "{}", terminal::escape_json(line))?;
        Ok(self.stream.flush()?)
    }

    /// Writes a line of text.
    pub fn write_line(&mut self, text: impl AsRef<str>) -> Result<(), Failure> {
        Ok(writeln!(self.stream, "{}", terminal::render_line(text.as_ref(), self.colours))?)
    }

    /// Makes text bold if colours are on.
    pub fn bold(&self, text: &str) -> String {
        self.paint_text(terminal::BOLD, text)
    }

    /// Makes text faint if colours are on.
    pub fn faint(&self, text: &str) -> String {
        self.paint_text(terminal::FAINT, text)
    }

    /// Colours text as a warning if colours are on.
    pub fn yellow(&self, text: &str) -> String {
        self.paint_text(terminal::YELLOW, text)
    }

    fn paint_text(&self, style: char, text: &str) -> String {
        if self.colours { terminal::mark_style(style, text) } else { terminal::escape_controls(text) }
    }

    /// Writes buffered output.
    pub fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.stream.flush()?)
    }
}

/// Wraps a text into lines of at most `width` characters; longer words are split. Takes time in
/// proportion to the text.
pub fn wrap_text(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for mut word in text.split_whitespace() {
        loop {
            let line = lines.last_mut().expect("there is always a line");
            let used = line.chars().count();
            let gap = usize::from(used > 0);
            // The byte where the part of the word behind this line begins; `None` if all of it fits.
            let behind = match width.checked_sub(used + gap) {
                Some(room) => word.char_indices().nth(room).map(|(at, _)| at),
                None => Some(0),
            };
            let Some(behind) = behind else {
                line.push_str(if gap == 1 { " " } else { "" });
                line.push_str(word);
                break;
            };
            if used == 0 {
                line.push_str(&word[..behind]);
                word = &word[behind..];
            }
            lines.push(String::new());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Bytes that a writer and its owner share.
    #[derive(Clone, Default)]
    pub(super) struct SharedBytes(pub(super) Rc<RefCell<Vec<u8>>>);

    impl Write for SharedBytes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn text_wraps_between_words() {
        assert_eq!(wrap_text("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_text("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap_text("", 5), [""]);
        assert_eq!(wrap_text("a bcdef µµµµ gh", 3), ["a", "bcd", "ef", "µµµ", "µ", "gh"]);
        let long = "x".repeat(1 << 20);
        assert_eq!(wrap_text(&long, 16), vec!["x".repeat(16); 1 << 16]);
    }
}
