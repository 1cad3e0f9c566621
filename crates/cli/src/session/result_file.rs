//! Writes a result file: whole lines only, by one writer, with a journal for incomplete lines.
//!
//! If a study finds a line in several parts, the parts go to a journal next to the file until the
//! line is complete. Both files are written one line at a time. A killed program loses at most the
//! last line, which is dropped on resume.

use crate::output::Failure;
use cyclescope::input::{self, BadInput, InputKind};
use cyclescope::record::SCHEMA;
use cyclescope_platform::files;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Start of a file's first line. It identifies a file that was cut inside that line.
const FIRST_LINE_START: &str = r#"{"schema":"cyclescope/1","kind":"machine""#;

/// A result file that is being written.
pub struct ResultFile {
    path: PathBuf,
    file: File,
    /// Bytes of complete lines.
    length: u64,
    /// Whether the file is new.
    created: bool,
    /// Bytes of a first line that was written before any result.
    head: u64,
    journal: Option<File>,
    /// Bytes in the journal.
    journal_length: u64,
    /// The command that writes the file.
    command: &'static str,
    /// Identifies the study in the journal.
    session: Value,
    announced: bool,
    /// Whether the command can resume the file.
    resumes: bool,
    /// The command that resumes the file, if its name and the file aren't enough.
    command_line: Option<String>,
}

/// The first line of a journal. It identifies a file that this program wrote.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct JournalHead {
    schema: String,
    kind: String,
    session: Value,
}

impl JournalHead {
    fn new(session: Value) -> JournalHead {
        JournalHead { schema: SCHEMA.to_string(), kind: JOURNAL_KIND.to_string(), session }
    }

    /// Parses the first line of a file; `None` if this program did not write it.
    fn parse(line: &[u8]) -> Option<JournalHead> {
        let head: JournalHead = serde_json::from_slice(line).ok()?;
        (head.schema == SCHEMA && head.kind == JOURNAL_KIND).then_some(head)
    }
}

/// Kind of a journal's first line, and the start of that line.
const JOURNAL_KIND: &str = "journal";
const JOURNAL_START: &str = r#"{"schema":"cyclescope/1","kind":"journal","session":"#;

/// Cuts a file to a length, where the next line begins. Not every system writes at the end by itself.
fn cut_file(file: &mut File, bytes: u64) -> io::Result<()> {
    if file.metadata()?.len() != bytes {
        file.set_len(bytes)?;
    }
    file.seek(SeekFrom::Start(bytes)).map(drop)
}

impl ResultFile {
    /// Creates a file, or reuses an empty one.
    pub fn create(path: &Path, command: &'static str, resumes: bool) -> Result<ResultFile, Failure> {
        let mut file = ResultFile::open_locked(path, command, true)?;
        file.resumes = resumes;
        if file.length > 0 {
            let remedy = match file.resumes {
                true => format!("resume it with --resume {}, or name a new file", quote_path(path)),
                false => "name a new file".to_string(),
            };
            return Err(Failure::usage(format!("{} already exists", path.display()), Some(&remedy)));
        }
        // That of an earlier file with this name.
        file.remove_journal()?;
        Ok(file)
    }

    /// Opens a file to resume; `read` parses its complete lines. If `read` succeeds, an incomplete
    /// last line is removed from the file.
    pub fn resume<T>(
        path: &Path,
        command: &'static str,
        read: impl FnOnce(&[u8]) -> Result<T, Failure>,
    ) -> Result<(ResultFile, T), Failure> {
        let mut opened = ResultFile::open_locked(path, command, false)?;
        let remedy = "name a file that --out wrote";
        let content = input::read_stream(&mut opened.file, InputKind::Results)
            .map_err(|why| Failure::from_input(&BadInput { file: path.to_path_buf(), why }, remedy))?;
        let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = &content[whole..];
        if whole == 0
            && !(rest.starts_with(FIRST_LINE_START.as_bytes()) || FIRST_LINE_START.as_bytes().starts_with(rest))
        {
            return Err(foreign_file(path, command));
        }
        let kept = read(&content[..whole])?;
        cut_file(&mut opened.file, whole as u64).map_err(|error| opened.write_failure(&error))?;
        opened.length = whole as u64;
        Ok((opened, kept))
    }

    fn open_locked(path: &Path, command: &'static str, create: bool) -> Result<ResultFile, Failure> {
        let file = files::open_results(path, create).map_err(|error| {
            let remedy = if create { "name a file in a writable directory" } else { "name a file that --out wrote" };
            Failure::usage(format!("{} can't be opened: {error}", path.display()), Some(remedy))
        })?;
        if !create && !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(foreign_file(path, command));
        }
        // Any other error means that the file system has no locks, so a second writer can't be
        // detected.
        if matches!(files::try_lock(&file), Ok(false)) {
            let text = format!("another cyclescope is writing to {}", path.display());
            return Err(Failure::usage(text, Some("wait until it ends, or name another file")));
        }
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let path = path.to_path_buf();
        Ok(ResultFile {
            path,
            file,
            length,
            created: create,
            head: 0,
            journal: None,
            journal_length: 0,
            command,
            session: Value::Null,
            announced: false,
            resumes: true,
            command_line: None,
        })
    }

    /// Writes what is known before any result. If no result follows, the file is removed when the
    /// program ends, but not when it is killed.
    pub fn write_first_line(&mut self, line: &str) -> Result<(), Failure> {
        self.append_line(line)?;
        self.head = self.length;
        Ok(())
    }

    /// Cuts the file to this length, to drop lines of an incomplete group.
    pub fn truncate_to(&mut self, bytes: u64) -> Result<(), Failure> {
        if bytes < self.length {
            cut_file(&mut self.file, bytes).map_err(|error| self.write_failure(&error))?;
            self.length = bytes;
        }
        Ok(())
    }

    /// Sets the study's identity; journal parts of other studies are ignored.
    pub fn set_session(&mut self, session: Value) {
        self.session = session;
    }

    /// Sets the command that resumes the file: these words, with `--resume` after the command's
    /// name.
    pub fn set_resume_command(&mut self, words: &[&str]) {
        let path = self.path.display().to_string();
        let mut words = words.to_vec();
        let behind = words.iter().position(|word| *word == self.command).map_or(words.len(), |at| at + 1);
        words.splice(behind..behind, ["--resume", &path]);
        self.command_line = shlex::try_join(words).ok();
    }

    /// Appends a line. If that fails, earlier lines stay intact.
    pub fn append_line(&mut self, line: &str) -> Result<(), Failure> {
        let line = format!("{line}\n");
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            // Half a line may have been written. If this fails too, the next reader drops it.
            let _ = cut_file(&mut self.file, self.length);
            return Err(self.write_failure(&error));
        }
        self.length += line.len() as u64;
        Ok(())
    }

    /// Saves a part of an incomplete line to the journal, unless the journal would grow longer than
    /// [`ResultFile::read_journal`] reads. After an interruption, what it lacks is measured again.
    pub fn append_part(&mut self, part: &str) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        if self.journal.is_none() {
            self.remove_journal()?;
            let file = File::create_new(self.journal_path()).map_err(|error| self.write_failure(&error))?;
            bytes = to_json_line(&JournalHead::new(self.session.clone()));
            self.journal = Some(file);
            self.journal_length = 0;
        }
        bytes.extend(format!("{part}\n").into_bytes());
        if self.journal_length + bytes.len() as u64 > InputKind::Journal.most_bytes() {
            return Ok(());
        }
        self.journal_length += bytes.len() as u64;
        let written = self.journal.as_mut().map_or(Ok(()), |journal| journal.write_all(&bytes));
        written.map_err(|error| self.write_failure(&error))
    }

    /// Reads the parts saved before an interruption. Journals of other studies and incomplete lines
    /// are ignored; what they hold is measured again.
    pub fn read_journal(&mut self) -> Result<Vec<Value>, Failure> {
        let path = self.journal_path();
        let remedy = "remove it; its contents are measured again";
        let mut journal = match input::open_for_append(&path, InputKind::Journal) {
            Ok(journal) => journal,
            Err(bad) if bad.is_missing() => return Ok(Vec::new()),
            Err(bad) => return Err(Failure::from_input(&bad, remedy)),
        };
        let content = input::read_stream(&mut journal, InputKind::Journal)
            .map_err(|why| Failure::from_input(&BadInput { file: path.clone(), why }, remedy))?;
        require_journal(&path, &content)?;
        let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = content[..whole].split(|byte| *byte == b'\n');
        let head = lines.next().and_then(JournalHead::parse);
        if head.is_none_or(|head| head.session != self.session) {
            return Ok(Vec::new());
        }
        cut_file(&mut journal, whole as u64).map_err(|error| self.write_failure(&error))?;
        (self.journal, self.journal_length) = (Some(journal), whole as u64);
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Removes the journal, if there is one.
    ///
    /// # Errors
    ///
    /// If the file with its name is not a journal that this program wrote.
    pub fn remove_journal(&self) -> Result<(), Failure> {
        let path = self.journal_path();
        let content = match input::open_for_append(&path, InputKind::Journal) {
            Ok(file) => input::read_stream(file, InputKind::Journal).unwrap_or_default(),
            Err(bad) if bad.is_missing() => return Ok(()),
            Err(_) => return Err(foreign_journal(&path)),
        };
        require_journal(&path, &content)?;
        std::fs::remove_file(&path).map_err(|error| self.write_failure(&error))
    }

    /// Whether [`ResultFile::announce_resume`] was called.
    pub fn is_announced(&self) -> bool {
        self.announced
    }

    /// Returns the message for an interruption from now on; `None` if the command can't resume the
    /// file.
    pub fn announce_resume(&mut self) -> Option<String> {
        self.announced = true;
        self.resumes.then(|| format!("interrupted; resume with {}", self.resume_command()))
    }

    /// The command that resumes the file.
    fn resume_command(&self) -> String {
        let short = || format!("cyclescope {} --resume {}", self.command, quote_path(&self.path));
        self.command_line.clone().unwrap_or_else(short)
    }

    fn journal_path(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".journal");
        PathBuf::from(name)
    }

    fn write_failure(&self, error: &io::Error) -> Failure {
        let resume = if self.resumes { format!(": {}", self.resume_command()) } else { String::new() };
        let remedy = format!("free some space; the lines written so far are valid{resume}");
        Failure::from_writing(format!("can't write to {}", self.path.display()), error, &remedy)
    }
}

impl Drop for ResultFile {
    fn drop(&mut self) {
        // A file without results is useless, and the next survey may want its name.
        if self.created
            && self.length == self.head
            && self.file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == self.head)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The failure for a file that another command or program wrote.
pub fn foreign_file(path: &Path, command: &str) -> Failure {
    let text = format!("{} was not written by `cyclescope {command} --out`", path.display());
    Failure::usage(text, Some("name a file that it wrote, or a new file with --out"))
}

/// Fails for a file that is not a journal of this program. One that was cut inside its first line is.
fn require_journal(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let first = content.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    let start = JOURNAL_START.as_bytes();
    let is_cut = !first.ends_with(b"\n") && (first.starts_with(start) || start.starts_with(first));
    if is_cut || JournalHead::parse(first).is_some() { Ok(()) } else { Err(foreign_journal(path)) }
}

fn foreign_journal(path: &Path) -> Failure {
    let text = format!("{} is in the way: it is not a journal that this program wrote", path.display());
    Failure::usage(text, Some("move it, or name another file"))
}

fn to_json_line<T: Serialize>(content: &T) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(content).expect("results are plain data");
    bytes.push(b'\n');
    bytes
}

fn quote_path(path: &Path) -> String {
    let path = path.display().to_string();
    shlex::try_quote(&path).map(|path| path.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_fuzz::{InputShape, fuzz_reader};
    use serde_json::json;

    fn created(path: &Path) -> Result<ResultFile, Failure> {
        ResultFile::create(path, "instr", true)
    }

    #[test]
    fn file_has_only_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut first = created(&path).unwrap();
        assert!(created(&path).is_err());
        first.append_line("{}").unwrap();
        drop(first);
        // The file now has a line.
        assert!(created(&path).is_err() && path.exists());
    }

    #[test]
    fn journal_survives_truncation_and_belongs_to_one_study() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let part = |form: u64| json!({"form": form, "cycles": [0.1, 1.0 / 3.0]});
        let mut file = created(&path).unwrap();
        file.set_session(json!({"seed": 1, "share": 0.95}));
        (0..3).for_each(|form| file.append_part(&part(form).to_string()).unwrap());
        let whole = std::fs::read(file.journal_path()).unwrap();
        let lines = whole.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, 4);
        for (cut, expected) in [(0, 3), (1, 2), (20, 2), (whole.len() - 5, 0)] {
            std::fs::write(file.journal_path(), &whole[..whole.len() - cut]).unwrap();
            file.journal = None;
            let known = file.read_journal().unwrap();
            assert_eq!(known, (0..expected).map(part).collect::<Vec<_>>(), "{cut}");
            // Appending continues after the last complete line.
            file.append_part(&part(7).to_string()).unwrap();
            file.journal = None;
            assert_eq!(file.read_journal().unwrap().last(), Some(&part(7)), "{cut}");
        }
        std::fs::write(file.journal_path(), &whole).unwrap();
        file.journal = None;
        file.set_session(json!({"seed": 2, "share": 0.95}));
        assert_eq!(file.read_journal().unwrap(), Vec::<Value>::new());
        let journal = file.journal_path();
        file.remove_journal().unwrap();
        assert!(!journal.exists());
        file.remove_journal().unwrap();
    }

    #[test]
    fn a_journal_stays_short_enough_to_be_read_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = created(&folder.path().join("a.jsonl")).unwrap();
        file.append_part("1").unwrap();
        let length = file.journal_path().metadata().unwrap().len();
        file.journal_length = InputKind::Journal.most_bytes() - 2;
        file.append_part("2").unwrap();
        assert_eq!(file.journal_path().metadata().unwrap().len(), length + 2, "it fits");
        file.append_part("3").unwrap();
        assert_eq!(file.journal_path().metadata().unwrap().len(), length + 2, "it does not fit");
        file.remove_journal().unwrap();
    }

    #[test]
    fn only_a_journal_of_this_program_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let journal = folder.path().join("a.jsonl.journal");
        let whole = String::from_utf8(to_json_line(&JournalHead::new(json!({"seed": 1})))).unwrap();
        for theirs in ["notes\n", "{}\n", "{\"session\":null}\n", &whole[5..]] {
            std::fs::write(&journal, theirs).unwrap();
            let refused = created(&path).err().unwrap();
            assert!(refused.text().contains("a.jsonl.journal is in the way"), "{refused:?}");
            assert_eq!(std::fs::read_to_string(&journal).unwrap(), theirs);
            assert!(!path.exists());
        }
        let cuts = (0..whole.len()).step_by(7).map(|end| whole[..end].to_string());
        for ours in cuts.chain([whole.clone(), format!("{whole}{{\"form\":1}}\n{{\"cut")]) {
            std::fs::write(&journal, &ours).unwrap();
            drop(created(&path).unwrap_or_else(|failure| panic!("{ours}: {failure:?}")));
            assert!(!journal.exists(), "{ours}");
        }
    }

    #[test]
    fn journal_is_not_written_through_a_symlink() {
        let folder = tempfile::tempdir().unwrap();
        let (path, theirs) = (folder.path().join("a.jsonl"), folder.path().join("theirs"));
        let whole = "{\"session\":null}\n{\"form\":1}\n{\"cut";
        std::fs::write(&theirs, whole).unwrap();
        let mut file = created(&path).unwrap();
        std::os::unix::fs::symlink(&theirs, file.journal_path()).unwrap();
        assert!(file.read_journal().is_err());
        assert!(file.append_part("{}").is_err());
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), whole);
        assert!(file.journal_path().is_symlink());
    }

    #[test]
    fn resume_command_includes_required_options() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b");
        let mut file = created(&path).unwrap();
        assert_eq!(file.resume_command(), format!("cyclescope instr --resume '{}'", path.display()));
        file.set_resume_command(&["cyclescope", "instr", "--executor", "kernel", "--", "x"]);
        let expected = format!("cyclescope instr --resume '{}' --executor kernel -- x", path.display());
        assert_eq!(file.resume_command(), expected);
    }

    #[test]
    fn any_file_is_resumed_or_rejected() {
        use crate::studies::{check_resumed_file, check_resumed_points};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let results = include_bytes!("../../../cyclescope/tests/hostile/results.jsonl");
        let journal = b"{\"schema\":\"cyclescope/1\",\"kind\":\"journal\",\"session\":null}\n{\"form\":1,\"pass\":0}\n{\"form\":2}\n{\"cut".to_vec();
        let both = [&results[..], b"\0", &journal].concat();
        fuzz_reader("resumed", InputShape::JsonLines, &[both, b"\n".to_vec()], |bytes| {
            let mut parts = bytes.splitn(2, |byte| *byte == 0);
            let (content, journal) = (parts.next().unwrap(), parts.next().unwrap_or_default());
            std::fs::write(&path, content).unwrap();
            let instr = ResultFile::resume(&path, "instr", |content| check_resumed_file(&path, content));
            drop(instr);
            let Ok((mut file, _)) = ResultFile::resume(&path, "run", |content| check_resumed_points(&path, content))
            else {
                return;
            };
            std::fs::write(file.journal_path(), journal).unwrap();
            if let Err(refused) = file.read_journal() {
                assert!(refused.text().contains("is in the way"), "{refused:?}");
            }
        });
    }

    #[test]
    fn file_without_results_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        drop(created(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn foreign_file_is_rejected_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let refuse = |content: &[u8]| match content {
            b"" => Ok(()),
            _ => Err(foreign_file(&path, "instr")),
        };
        for (content, good) in
            [("", true), ("{\"sch", true), (FIRST_LINE_START, true), ("notes", false), ("{}\nnotes", false)]
        {
            std::fs::write(&path, content).unwrap();
            assert_eq!(ResultFile::resume(&path, "instr", refuse).is_ok(), good, "{content}");
            assert!(good || std::fs::read_to_string(&path).unwrap() == content);
        }
    }
}
