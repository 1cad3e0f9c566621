//! A result file under way: whole lines only, one writer, and a journal of what is not yet a row.
//!
//! A row is made when a form's last pass is done. What earlier passes found is kept in a journal beside the file until
//! then. Both are written a line at a time, so that a program that is killed loses no more than the line in flight,
//! which is dropped when the file is resumed.

use super::session::Session;
use crate::failure::Failure;
use cyclescope::record::Line;
use cyclescope::study::instr::rows::row::Row;
use cyclescope::study::instr::rows::table::Table;
use cyclescope::study::instr::survey::Done;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The start of a file's first line, by which a file that was cut there is known.
const HEAD: &str = r#"{"schema":"cyclescope/1","kind":"machine""#;

/// A result file that is written.
pub struct ResultFile {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines.
    length: u64,
    /// Whether it is a new one.
    created: bool,
    journal: Option<File>,
}

/// The content of a result file.
#[derive(Default)]
pub struct Kept {
    /// The first line, and the session that it describes.
    pub head: Option<(Value, Session)>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// The first line of a journal.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct JournalHead {
    session: Session,
}

impl ResultFile {
    /// A new file, or an empty one.
    pub fn create(path: &Path) -> Result<ResultFile, Failure> {
        let file = ResultFile::open(path, true)?;
        if file.length > 0 {
            let remedy = format!("resume it with --resume {}, or name a new file", quoted(path));
            return Err(Failure::usage(format!("{} already exists", path.display()), Some(&remedy)));
        }
        // Of an earlier file of this name.
        let _ = std::fs::remove_file(file.journal_path());
        Ok(file)
    }

    /// A file to resume, and its content. A last line that is cut is dropped from it.
    pub fn resume(path: &Path) -> Result<(ResultFile, Kept), Failure> {
        let mut opened = ResultFile::open(path, false)?;
        let mut content = Vec::new();
        opened.file.read_to_end(&mut content).map_err(|error| opened.unreadable(&error))?;
        let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = &content[whole..];
        if whole == 0 && !(rest.starts_with(HEAD.as_bytes()) || HEAD.as_bytes().starts_with(rest)) {
            return Err(opened.foreign());
        }
        let kept = if whole == 0 { Kept::default() } else { opened.kept(&content[..whole])? };
        if !rest.is_empty() {
            opened.file.set_len(whole as u64).map_err(|error| opened.unwritten(&error))?;
        }
        opened.length = whole as u64;
        Ok((opened, kept))
    }

    fn open(path: &Path, create: bool) -> Result<ResultFile, Failure> {
        let mut options = File::options();
        let opened = options.read(true).append(true).create(create).open(path);
        let file = opened.map_err(|error| {
            let remedy =
                if create { "name a file where you may write" } else { "name a file that --out wrote" };
            Failure::usage(format!("{} can't be opened: {error}", path.display()), Some(remedy))
        })?;
        // Any other error means that the file system has no locks: then two writers can't be detected.
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            let text = format!("another cyclescope writes to {}", path.display());
            return Err(Failure::usage(text, Some("wait until it is done, or name another file")));
        }
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        Ok(ResultFile { path: path.to_path_buf(), file, length, created: create, journal: None })
    }

    fn kept(&self, content: &[u8]) -> Result<Kept, Failure> {
        let name = self.path.display().to_string();
        let table = Table::read(content).map_err(|error| Failure::file(&name, error))?;
        let machine = table.machine.ok_or_else(|| self.foreign())?;
        let session = Session::of(&machine).ok_or_else(|| self.foreign())?;
        Ok(Kept { head: Some((machine, session)), rows: table.rows })
    }

    /// Adds a line; what was written before stays good where that fails.
    pub fn append<T: Serialize>(&mut self, kind: &'static str, content: &T) -> Result<(), Failure> {
        let line = line(&Line::new(kind, content));
        if let Err(error) = self.file.write_all(&line) {
            // Half a line may have been written. Where this fails too, the next reader drops it.
            let _ = self.file.set_len(self.length);
            return Err(self.unwritten(&error));
        }
        self.length += line.len() as u64;
        Ok(())
    }

    /// Keeps what an earlier pass found.
    pub fn keep(&mut self, done: &Done, session: &Session) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        if self.journal.is_none() {
            let path = self.journal_path();
            let file = File::create(&path).map_err(|error| self.unwritten(&error))?;
            bytes = line(&JournalHead { session: session.clone() });
            self.journal = Some(file);
        }
        bytes.extend(line(done));
        let written = self.journal.as_mut().map_or(Ok(()), |journal| journal.write_all(&bytes));
        written.map_err(|error| self.unwritten(&error))
    }

    /// What earlier passes found before an interruption. The journal of another session and lines that are cut are
    /// passed over: what they contain is measured again.
    pub fn journal(&mut self, session: &Session) -> Result<Vec<Done>, Failure> {
        let content = match std::fs::read(self.journal_path()) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.unreadable(&error)),
        };
        let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = content[..whole].split(|byte| *byte == b'\n');
        let head: Option<JournalHead> = lines.next().and_then(|line| serde_json::from_slice(line).ok());
        if head.is_none_or(|head| head.session != *session) {
            return Ok(Vec::new());
        }
        let opened = File::options().append(true).open(self.journal_path());
        let opened = opened.and_then(|journal| journal.set_len(whole as u64).map(|()| journal));
        self.journal = Some(opened.map_err(|error| self.unwritten(&error))?);
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Ends it: all forms are rows.
    pub fn finish(self) {
        // That there is none is as good.
        let _ = std::fs::remove_file(self.journal_path());
    }

    /// The command that resumes the file.
    pub fn resume_command(&self) -> String {
        format!("cyclescope instr --resume {}", quoted(&self.path))
    }

    fn journal_path(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".journal");
        PathBuf::from(name)
    }

    fn foreign(&self) -> Failure {
        let text = format!("{} was not written by `cyclescope instr --out`", self.path.display());
        Failure::usage(text, Some("name one, or a new file with --out"))
    }

    fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::internal(format!("reading {} failed: {error}", self.path.display()))
    }

    fn unwritten(&self, error: &io::Error) -> Failure {
        let remedy = format!("free some space; what was written is valid: {}", self.resume_command());
        Failure::internal(format!("writing to {} failed: {error}", self.path.display())).with_remedy(&remedy)
    }
}

impl Drop for ResultFile {
    fn drop(&mut self) {
        // A file that got no line is of no use, and the next survey may want its name.
        if self.created
            && self.length == 0
            && self.file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn line<T: Serialize>(content: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(content).expect("results are plain data");
    bytes.push(b'\n');
    bytes
}

fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    shlex::try_quote(&path).map(|path| path.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut first = ResultFile::create(&path).unwrap();
        assert!(ResultFile::create(&path).is_err());
        first.append("machine", &serde_json::json!({"a": 1})).unwrap();
        drop(first);
        // It has a line now.
        assert!(ResultFile::create(&path).is_err() && path.exists());
    }

    fn session(seed: u64) -> Session {
        use clap::Parser;
        let cli = crate::args::Cli::try_parse_from(["cyclescope", "instr", "add"]).unwrap();
        let Some(crate::args::Command::Instr(args)) = cli.command else { panic!() };
        let effort = cyclescope::study::instr::experiments::effort::Effort::FULL;
        Session::new(&args, &[], (effort, 0.95), ("rdtscp", 0, seed), &cli.common)
    }

    #[test]
    fn a_journal_survives_a_cut_and_belongs_to_one_session() {
        use cyclescope::study::instr::experiments::reading::Reading;
        use cyclescope::study::instr::survey::Outcome;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let reading = Reading { cycles: vec![0.1, 1.0 / 3.0], ..Reading::default() };
        let done =
            |form| Done { form, pass: 0, outcome: Outcome::Measured(vec![reading.clone(), reading.clone()]) };
        let mut file = ResultFile::create(&path).unwrap();
        (0..3).for_each(|form| file.keep(&done(form), &session(1)).unwrap());
        let whole = std::fs::read(file.journal_path()).unwrap();
        let lines = whole.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, 4);
        for (cut, expected) in [(0, 3), (1, 2), (20, 2), (whole.len() - 5, 0)] {
            std::fs::write(file.journal_path(), &whole[..whole.len() - cut]).unwrap();
            file.journal = None;
            let known = file.journal(&session(1)).unwrap();
            assert_eq!(known, (0..expected).map(done).collect::<Vec<_>>(), "{cut}");
            // It continues with whole lines.
            file.keep(&done(7), &session(1)).unwrap();
            file.journal = None;
            assert_eq!(file.journal(&session(1)).unwrap().last(), Some(&done(7)), "{cut}");
        }
        std::fs::write(file.journal_path(), &whole).unwrap();
        file.journal = None;
        assert_eq!(file.journal(&session(2)).unwrap(), []);
        let journal = file.journal_path();
        file.finish();
        assert!(!journal.exists());
    }

    #[test]
    fn what_got_no_line_is_not_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        drop(ResultFile::create(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn only_files_of_a_survey_are_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let cases = [
            ("", true),
            ("{\"sch", true),
            (HEAD, true),
            ("notes", false),
            ("notes\n", false),
            ("{}\n", false),
        ];
        for (content, good) in cases {
            std::fs::write(&path, content).unwrap();
            assert_eq!(ResultFile::resume(&path).is_ok(), good, "{content}");
            // What is not ours stays as it is.
            assert!(good || std::fs::read_to_string(&path).unwrap() == content);
        }
    }
}
