//! A region with its registers and memory, as something that programs can call.

use super::executable_file::ExecutableFile;
use super::process_map::{PAGE, ProcessMap};
use super::region_pages::{RegionPages, find_pieces, is_unused, join_pages, new_area, write_code};
use super::region_pass::{EXIT_JUMP_BYTES, RegionPass};
use super::stopped_task::{ProgramEnd, StoppedTask};
use super::traced_process::{RunStop, TracedProcess, tracing_failure};
use super::trampoline::{Trampoline, data_bytes};
use crate::args::{RegionArgs, RunArgs};
use crate::output::{Failure, print_warning};
use cyclescope::error::Unavailable;
use cyclescope::executor::user::signal_name;
use cyclescope::machine::features::allows_fsgsbase;
use cyclescope::program::memory::{AreaAddress, MOST_AREAS, MemoryArea, ProgramMemory};
use cyclescope::record::{ErrorRecord, RegionRecord, exit};
use cyclescope::snippet::Snippet;
use cyclescope::study::run::RunSubject;
use std::time::{Duration, Instant};

/// Bytes of stack for the code that calls the region, which has its own stack.
const STACK_BYTES: u64 = 64 << 10;
/// Areas besides those of the region: code and data of the trampoline, and the stack.
const OTHER_AREAS: usize = 3;
/// Most bytes of all areas of the region. Pages between those that it touches fill them up. Evidence
/// has their contents in hexadecimal, and reads parts of at most 64 MiB.
const AREA_BYTES_MOST: u64 = 24 << 20;
/// Bytes of a jump with a displacement of one byte, and how far it reaches from its start (Intel SDM
/// vol. 2, JMP).
const SHORT_JUMP_BYTES: usize = 2;
const SHORT_JUMP_BACK: u64 = 126;
const SHORT_JUMP_FORWARD: u64 = 129;
/// Bytes for the trampoline's code. A page that is not mapped separates it from its data.
const CODE_BYTES: u64 = PAGE;
const DATA_DISTANCE: u64 = CODE_BYTES + PAGE;
/// Seconds for the program to arrive at the region and leave it.
const TIMEOUT_S: f64 = 60.0;
/// Runs of the program until its addresses don't collide with this program's.
const ATTEMPTS: usize = 4;

/// A region taken from a run.
pub struct CapturedRegion {
    /// The memory of programs that run it.
    pub memory: ProgramMemory,
    /// What was taken.
    pub record: RegionRecord,
    entry: u64,
    start: u64,
    end: u64,
    text: String,
}

/// The options that name a region, with its addresses in the file.
struct RegionPlace<'a> {
    file: ExecutableFile,
    start: u64,
    end: u64,
    hit: u64,
    arguments: Vec<String>,
    limit: Duration,
    args: &'a RegionArgs,
}

impl CapturedRegion {
    /// Takes the region that --elf, --from and --to name from a run.
    pub fn capture(args: &RunArgs) -> Result<CapturedRegion, Failure> {
        let place = RegionPlace::from_args(args)?.end_at_closing_jump()?;
        let own = ProcessMap::read(&[std::process::id()]);
        let own = own.map_err(|error| tracing_failure("reading the mappings of this process", &error))?;
        for _ in 0..ATTEMPTS {
            let region = place.capture()?;
            let is_free = |area: &&MemoryArea| match area.address {
                AreaAddress::Fixed(address) => !own.overlaps(&(address..address + area.mapped_bytes())),
                AreaAddress::Free => true,
            };
            if region.memory.areas.iter().all(|area| is_free(&area)) {
                return Ok(region);
            }
        }
        Err(Failure::from(Unavailable {
            what: format!("the region of {}", place.file.path().display()),
            why: "each run of the program had memory where this program has its own".to_string(),
            remedy: "allow random addresses: sysctl -w kernel.randomize_va_space=2, and no setarch -R".to_string(),
        }))
    }

    /// Calls of the trampoline that run the region, and calls that only enter and leave it.
    pub fn build_subject(&self) -> RunSubject {
        RunSubject {
            instances: vec![self.encode_call(self.start, true, &self.text)],
            empty_calls: vec![self.encode_call(self.end, false, "an empty region")],
        }
    }

    /// ```text
    /// mov r12, trampoline
    /// mov r13, target
    /// mov r14d, 1          ; this and the next instruction if the end is checked once
    /// call r12
    /// xor r14d, r14d
    /// call r12             ; the snippet
    /// ```
    fn encode_call(&self, target: u64, is_checked: bool, text: &str) -> Snippet {
        const CALL: [u8; 3] = [0x41, 0xff, 0xd4];
        let mut init = vec![0x49, 0xbc];
        init.extend(self.entry.to_le_bytes());
        init.extend([0x49, 0xbd]);
        init.extend(target.to_le_bytes());
        if is_checked {
            init.extend([0x41, 0xbe, 1, 0, 0, 0]);
            init.extend(CALL);
        }
        init.extend([0x45, 0x31, 0xf6]);
        Snippet::new(CALL.to_vec(), init, text)
    }
}

impl<'a> RegionPlace<'a> {
    fn from_args(args: &'a RunArgs) -> Result<RegionPlace<'a>, Failure> {
        let region = &args.region;
        let (Some(path), Some(from), Some(to)) = (&args.source.elf, &args.from, &region.to) else {
            let remedy = "add --elf PROGRAM --from ADDRESS --to ADDRESS";
            return Err(Failure::usage("a region needs an executable and two addresses", Some(remedy)));
        };
        let file = ExecutableFile::read(path)?;
        let start = file.find_address("--from", &from.to_string_lossy())?;
        let end = file.find_address("--to", to)?;
        let arguments = shlex::split(region.arguments.as_deref().unwrap_or_default())
            .ok_or_else(|| Failure::usage("--args has an unclosed quote", None))?;
        let limit = Duration::from_secs_f64(region.timeout.unwrap_or(TIMEOUT_S));
        let hit = region.hit.unwrap_or(1);
        Ok(RegionPlace { file, start, end, hit, arguments, limit, args: region })
    }

    /// The place of one iteration, which begins and ends at the same address, ends at the jump back:
    /// the code at its start can't be replaced by the exit.
    fn end_at_closing_jump(self) -> Result<RegionPlace<'a>, Failure> {
        if self.start != self.end {
            return Ok(self);
        }
        let (process, _, pass) = self.pass_once()?;
        let Some(jump) = pass.closing_jump.map(|jump| process.file_address(jump)).filter(|jump| *jump != self.start)
        else {
            let remedy = "name the last jump of the iteration, or the address behind the loop, with --to";
            let text = "--from and --to are the same address, to which no single jump leads back";
            return Err(Failure::usage(text, Some(remedy)));
        };
        let name = self.file.name_address(jump);
        print_warning(&format!("the region of one iteration ends before its jump back, as with --to {name}"));
        Ok(RegionPlace { end: jump, ..self })
    }

    /// Runs the program to the region, and once through it.
    fn pass_once(&self) -> Result<(TracedProcess, StoppedTask, RegionPass), Failure> {
        let deadline = Instant::now() + self.limit;
        let mut process = TracedProcess::start(&self.file, &self.arguments, deadline)?;
        let task = match process.run_to(self.start, self.hit, deadline)? {
            RunStop::Arrived(task) => task,
            RunStop::Ended { arrivals, how } => return Err(self.explain_end(arrivals, how)),
            RunStop::TimeOver { arrivals } => return Err(self.explain_timeout(arrivals)),
        };
        let end = process.loaded_address(self.end);
        let left = deadline.saturating_duration_since(Instant::now());
        let pass = RegionPass::record(&process, &self.file, &task, end, left)?;
        Ok((process, task, pass))
    }

    /// Takes the region from one run.
    fn capture(&self) -> Result<CapturedRegion, Failure> {
        let (process, task, pass) = self.pass_once()?;
        let end = process.loaded_address(self.end);
        let map = ProcessMap::read(&[task.number(), std::process::id()]);
        let map = map.map_err(|error| tracing_failure("reading the program's mappings", &error))?;
        self.build(pass, &map, process.loaded_address(self.start), end)
    }

    fn build(&self, pass: RegionPass, map: &ProcessMap, start: u64, end: u64) -> Result<CapturedRegion, Failure> {
        if pass.uses_bases && !allows_fsgsbase() {
            return Err(Failure::from(Unavailable {
                what: "a region with thread-local variables".to_string(),
                why: "programs can't set the bases of FS and GS (fsgsbase) on this CPU or kernel".to_string(),
                remedy: "use a kernel of 5.9 or later, or a region without them".to_string(),
            }));
        }
        let mut pass = pass;
        self.require_writable_data(&pass)?;
        let pieces = find_pieces(&pass.pages);
        let room = data_bytes(&pass, &pieces) as u64;
        let Some(entry) = map.find_gap(end, DATA_DISTANCE + room) else {
            return Err(Failure::from(Unavailable {
                what: format!("the region of {}", self.file.path().display()),
                why: "no addresses near the program's code are free".to_string(),
                remedy: "build the program as position-independent (-pie)".to_string(),
            }));
        };
        let trampoline = Trampoline::build(&pass, &pieces, entry, entry + DATA_DISTANCE);
        self.put_exit_jump(&mut pass.pages, end, trampoline.exit)?;
        let runs = join_pages(&pass.pages, MOST_AREAS - OTHER_AREAS);
        let bytes: u64 = runs.iter().map(|run| run.range.end - run.range.start).sum();
        if bytes > AREA_BYTES_MOST {
            let text = format!(
                "the region's {} pages lie so far apart that they need more than {} MiB",
                pass.pages.len(),
                AREA_BYTES_MOST >> 20
            );
            return Err(Failure::usage(text, Some("choose a region, or arguments, with fewer places in memory")));
        }
        let record = RegionRecord {
            program: self.file.path().display().to_string(),
            from: self.file.name_address(self.start),
            to: self.file.name_address(self.end),
            arguments: self.args.arguments.clone(),
            hit: self.hit,
            instructions: pass.instructions,
            pages: pass.pages.len(),
            restored_bytes: pieces.iter().map(|piece| piece.bytes.len()).sum(),
            loops: pass.loops.clone(),
        };
        let mut areas: Vec<MemoryArea> = runs.iter().map(|run| run.to_area(&pass.pages)).collect();
        areas.push(new_area(entry, trampoline.code, true));
        areas.push(new_area(entry + DATA_DISTANCE, trampoline.data, false));
        let text = format!("{} to {} of {}", record.from, record.to, record.program);
        let memory = ProgramMemory::for_region(STACK_BYTES, areas);
        memory.check().map_err(|bad| Failure::internal(format!("{}: {}", bad.part, bad.what)))?;
        Ok(CapturedRegion { memory, record, entry, start, end, text })
    }

    /// Fails if the region writes a page that it executes.
    fn require_writable_data(&self, pass: &RegionPass) -> Result<(), Failure> {
        let mixed = pass.pages.iter().find(|(_, page)| page.is_code && page.is_written());
        match mixed {
            Some((address, _)) => {
                let text = format!("the region writes to the page of its own code at {address:#x}");
                Err(Failure::usage(text, Some("choose a region that does not change code")))
            }
            None => Ok(()),
        }
    }

    /// Puts a jump to the trampoline's exit in place of the code at the region's end. If the region
    /// uses some of these bytes, a short jump leads to unused bytes nearby.
    fn put_exit_jump(&self, pages: &mut RegionPages, end: u64, exit: u64) -> Result<(), Failure> {
        let near = end.saturating_sub(SHORT_JUMP_BACK)..end + SHORT_JUMP_FORWARD;
        let place = match is_unused(pages, end, EXIT_JUMP_BYTES) {
            true => Some(end),
            false => near
                .filter(|at| at.abs_diff(end) >= EXIT_JUMP_BYTES as u64 && is_unused(pages, *at, EXIT_JUMP_BYTES))
                .min_by_key(|at| at.abs_diff(end))
                .filter(|_| is_unused(pages, end, SHORT_JUMP_BYTES)),
        };
        let Some(place) = place else {
            let text = format!(
                "the region uses the bytes at --to, {}, where its end has to be marked",
                self.file.name_address(self.end)
            );
            return Err(Failure::usage(text, Some("choose another --to, such as the next instruction after it")));
        };
        if place != end {
            let displacement = place.wrapping_sub(end + SHORT_JUMP_BYTES as u64) as u8;
            write_code(pages, end, &[0xeb, displacement]);
        }
        let displacement = exit.wrapping_sub(place + EXIT_JUMP_BYTES as u64) as u32;
        write_code(pages, place, &[&[0xe9][..], &displacement.to_le_bytes()].concat());
        Ok(())
    }

    fn explain_end(&self, arrivals: u64, how: ProgramEnd) -> Failure {
        let program = self.file.path().display();
        let missed = self.describe_missed(arrivals);
        match how {
            ProgramEnd::Exit(code) => {
                let remedy = match arrivals {
                    0 => "name an address that runs, or arguments with which it runs (--args)".to_string(),
                    _ => format!("use --hit {arrivals} or less"),
                };
                Failure::usage(format!("{program} ended with exit code {code} and {missed}"), Some(&remedy))
            }
            ProgramEnd::Signal(signal) => {
                let signal = signal_name(signal);
                program_failure("fault", format!("{program} ended by {signal} and {missed}"), Some(signal))
            }
        }
    }

    fn explain_timeout(&self, arrivals: u64) -> Failure {
        let text = format!(
            "{} ran for {} s and {}",
            self.file.path().display(),
            self.limit.as_secs_f64(),
            self.describe_missed(arrivals)
        );
        program_failure("hang", text, None)
    }

    fn describe_missed(&self, arrivals: u64) -> String {
        let from = self.file.name_address(self.start);
        match arrivals {
            0 => format!("never arrived at --from, {from}"),
            _ => format!("arrived at --from, {from}, only {arrivals} times"),
        }
    }
}

fn program_failure(code: &'static str, text: String, signal: Option<&'static str>) -> Failure {
    let remedy = match signal {
        Some(_) => "run the program by itself with the same arguments, and give it what it needs (--args)",
        None => "allow it more time with --timeout, or give it arguments with which it arrives sooner (--args)",
    };
    Failure::Error(Box::new(ErrorRecord {
        code,
        exit: exit::FAULT,
        text,
        remedy: Some(remedy.to_string()),
        signal,
        ..ErrorRecord::default()
    }))
}
