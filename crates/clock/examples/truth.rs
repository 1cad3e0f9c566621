//! Compares regions with loops of the same code that the system times: twenty functions, regions
//! within others, and the cost of an execution. Prints a line of JSON for each.
//!
//! The system's clock of the thread's processor time gives nanoseconds. A chain of
//! multiplications before and after each loop gives the core clock. Neither belongs to the crate.

use cyclescope_clock::{CoreCycles, Estimate, Region, Report, Row, hide, keep, report};
use std::arch::asm;
use std::ffi::{c_int, c_long};
use std::sync::OnceLock;

/// Seconds of a window in which a loop runs.
const WINDOW: f64 = 2e-4;
/// Thousands of links of a chain before and after a window: as long as one. The clock's own time is
/// then the same share of both. With a quarter of it 300 cycles read 298.3.
const THOUSANDS: u64 = 240;
/// Windows of which the lower quartile counts, and the share by which the core's clock may change in one.
const WINDOWS: usize = 101;
const STEADY: f64 = 0.01;
/// Seconds of executions of each region.
const TIMED: f64 = 0.03;

/// A function of a value. Each call waits for the value of the last one.
type Function = fn(u64) -> u64;

/// Linux, include/uapi/linux/time.h.
const CLOCK_THREAD_CPUTIME_ID: c_int = 3;

#[repr(C)]
struct Timespec {
    seconds: c_long,
    nanoseconds: c_long,
}

unsafe extern "C" {
    fn clock_gettime(clock: c_int, now: *mut Timespec) -> c_int;
}

/// Seconds during which this thread ran.
fn ran() -> f64 {
    let mut now = Timespec { seconds: 0, nanoseconds: 0 };
    // SAFETY: the structure belongs to the call.
    assert_eq!(unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut now) }, 0, "Linux has this clock");
    now.seconds as f64 + now.nanoseconds as f64 / 1e9
}

/// The quickest of many numbers: nothing disturbed it.
fn quickest(number: impl Fn() -> f64) -> f64 {
    (0..1000).map(|_| number()).fold(f64::INFINITY, f64::min)
}

/// Seconds of some code, without the clock's own.
fn seconds(code: impl FnOnce() -> u64) -> f64 {
    static CLOCK: OnceLock<f64> = OnceLock::new();
    let clock = CLOCK.get_or_init(|| {
        quickest(|| {
            let began = ran();
            ran() - began
        })
    });
    let began = ran();
    keep(code());
    ran() - began - clock
}

/// Seconds of a chain of this many thousand links. Blocks of it are short, since a busy sibling slows
/// straight multiplications by up to 5 %, and short loops of them not (Raptor Cove).
macro_rules! chain {
    ($instruction:literal) => {
        |thousands: u64| {
            seconds(|| {
                let mut value = 1u64;
                // SAFETY: it changes two registers, which are named, and flags.
                unsafe {
                    asm!(
                        "2:", ".rept 4", concat!($instruction, " {value}, {value}"), ".endr", "dec {left}", "jnz 2b",
                        value = inout(reg) value, left = inout(reg) 250 * thousands => _, options(nomem, nostack),
                    );
                }
                value
            })
        }
    };
}

const MULTIPLY: fn(u64) -> f64 = chain!("imul");
const ADD: fn(u64) -> f64 = chain!("add");

/// A multiplication takes a whole number of additions, which take one core cycle each. Beside a
/// busy sibling additions take longer.
fn latency() -> f64 {
    quantile((0..101).map(|_| MULTIPLY(20) / ADD(20)).collect(), 0.5).round()
}

/// Seconds of a core cycle.
fn rule() -> f64 {
    static LATENCY: OnceLock<f64> = OnceLock::new();
    MULTIPLY(THOUSANDS) / (1000 * THOUSANDS) as f64 / LATENCY.get_or_init(latency)
}

/// Seconds of calls.
fn call(function: Function, times: u64) -> f64 {
    seconds(|| (0..times).fold(3, |value, _| function(hide(value))))
}

/// Number of calls that take this many seconds.
fn calls_in(function: Function, seconds: f64) -> u64 {
    let mut times = 1;
    while call(function, times) < seconds / 2.0 {
        times *= 2;
    }
    times
}

/// The number that this share of them does not exceed.
fn quantile(mut numbers: Vec<f64>, share: f64) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get((share * numbers.len() as f64) as usize).copied().unwrap_or_default()
}

/// Core cycles of a call.
fn true_cycles(function: Function) -> f64 {
    let times = calls_in(function, WINDOW);
    let (mut cycles, mut before) = (Vec::new(), rule());
    for _ in 0..100 * WINDOWS {
        let taken = call(function, times) / times as f64;
        let after = rule();
        if (after / before - 1.0).abs() < STEADY {
            cycles.push(2.0 * taken / (before + after));
        }
        before = after;
        if cycles.len() == WINDOWS {
            break;
        }
    }
    // What disturbs a window only lengthens it.
    quantile(cycles, 0.25)
}

fn multiply<const NUMBER: usize>(value: u64) -> u64 {
    let value = (0..NUMBER).fold(value, |value, _| hide(value.wrapping_mul(value)));
    keep(value);
    value
}

/// Data of the functions.
struct Data {
    bytes: [u8; 4096],
    /// A ring through all lines of 32 KiB.
    ring: [u16; 16384],
    table: [u32; 256],
}

const fn data() -> Data {
    let mut data = Data { bytes: [0; 4096], ring: [0; 16384], table: [0; 256] };
    let mut place = 0;
    while place < 4096 {
        data.bytes[place] = (place * 7919 % 251) as u8;
        data.ring[4 * place] = ((4 * place + 4 * 1237) % 16384) as u16;
        place += 1;
    }
    let mut entry = 0;
    while entry < 256 {
        let (mut value, mut bit) = (entry as u32, 0);
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
            bit += 1;
        }
        data.table[entry] = value;
        entry += 1;
    }
    data
}

static DATA: Data = data();

/// Zero, which depends on a value for the processor.
fn zero_from(value: u64) -> u64 {
    hide(value & hide(0))
}

/// The bytes, at an address that depends on the value.
fn bytes(value: u64, length: usize) -> &'static [u8] {
    let from = zero_from(value) as usize;
    &DATA.bytes[from..from + length]
}

fn hash<const LENGTH: usize>(value: u64) -> u64 {
    bytes(value, LENGTH).iter().fold(value, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

fn divide(value: u64) -> u64 {
    (0..20).fold(value | 1 << 60, |value, _| value / hide(3) + (1 << 60))
}

fn multiply_floats(value: u64) -> u64 {
    let (first, factor) = (f64::from_bits(hide(1 << 62) | zero_from(value)), f64::from_bits(hide(0x3ff0 << 48)));
    (0..100).fold(first, |product, _| product * factor).to_bits()
}

fn walk<const STEPS: usize>(value: u64) -> u64 {
    let mut place = zero_from(value) as usize;
    for _ in 0..STEPS {
        place = usize::from(DATA.ring[place]);
    }
    place as u64
}

fn count_bits(value: u64) -> u64 {
    (0..50).fold(value, |value, number| u64::from(hide(value).count_ones()) + number)
}

fn shift(value: u64) -> u64 {
    (0..100).fold(value | 1, |value, _| {
        let value = value ^ value << 13;
        let value = value ^ value >> 7;
        value ^ value << 17
    })
}

/// The next Fibonacci numbers, without a branch on data.
fn add_last_two(value: u64) -> u64 {
    let (mut last, mut next) = (value & 1, zero_from(value) + 1);
    for _ in 0..60 {
        (last, next) = (next, hide(last.wrapping_add(next)));
    }
    next
}

/// Steps of 3n + 1, without a branch on data.
fn halve(value: u64) -> u64 {
    let mut number = 27 + zero_from(value);
    for _ in 0..80 {
        let [half, more] = [number >> 1, 3 * number + 1];
        let odd = (number & 1).wrapping_neg();
        number = hide(half ^ ((half ^ more) & odd));
    }
    number
}

/// The median of neighbours, over and over.
fn smooth(value: u64) -> u64 {
    let mut numbers = [0; 16];
    numbers.copy_from_slice(bytes(value, 16));
    let mut last = value as u8;
    for _ in 0..4 {
        for pair in 0..15 {
            let [one, other] = [numbers[pair], numbers[pair + 1]];
            last = one.min(other).max(last.min(one.max(other)));
            numbers[pair] = last;
        }
    }
    u64::from(last)
}

fn sum(value: u64) -> u64 {
    bytes(value, 4096).iter().map(|byte| u64::from(*byte)).sum::<u64>() & 1
}

fn check(value: u64) -> u64 {
    let step = |check: u32, byte: &u8| DATA.table[((check ^ u32::from(*byte)) & 0xff) as usize] ^ check >> 8;
    u64::from(bytes(value, 256).iter().fold(value as u32, step))
}

fn multiply_matrices(value: u64) -> u64 {
    let mut matrix = [[1.0f32 + zero_from(value) as f32; 4]; 4];
    for _ in 0..10 {
        let old = matrix;
        for (row, old_row) in matrix.iter_mut().zip(&old) {
            for (column, cell) in row.iter_mut().enumerate() {
                *cell = (0..4).map(|inner| old_row[inner] * old[inner][column]).sum::<f32>() * 0.125;
            }
        }
    }
    matrix[3][1] as u64
}

/// A function with its region.
struct Timed {
    name: &'static str,
    alone: Function,
    timed: Function,
}

/// Functions, alone and in a region.
macro_rules! timed {
    ($($name:literal: $function:expr,)*) => {
        [$({
            #[inline(never)]
            fn alone(value: u64) -> u64 {
                $function(value)
            }
            // Calls the same code, at the same address.
            fn timed(value: u64) -> u64 {
                static REGION: Region = Region::new($name);
                let _timed = REGION.begin();
                let value = alone(hide(value));
                keep(value);
                value
            }
            Timed { name: $name, alone, timed }
        },)*]
    };
}

const FUNCTIONS: [Timed; 20] = timed! {
    "multiply 10": multiply::<10>,
    "multiply 30": multiply::<30>,
    "multiply 100": multiply::<100>,
    "multiply 1000": multiply::<1000>,
    "multiply 10000": |value| (0..10).fold(value, |value, _| multiply::<1000>(value)),
    "hash 16": hash::<16>,
    "hash 100": hash::<100>,
    "hash 1000": hash::<1000>,
    "divide": divide,
    "multiply floats": multiply_floats,
    "walk 100": walk::<100>,
    "walk 1000": walk::<1000>,
    "count bits": count_bits,
    "shift": shift,
    "add last two": add_last_two,
    "halve": halve,
    "smooth": smooth,
    "sum": sum,
    "check": check,
    "matrices": multiply_matrices,
};

/// Begins an execution if regions are wanted.
fn begin<const REGIONS: bool>(region: &Region) -> Option<cyclescope_clock::Timed> {
    REGIONS.then(|| region.begin())
}

static INNER: Region = Region::new("50 multiplications");

#[inline(always)]
fn inner<const REGIONS: bool>(value: u64) -> u64 {
    let _timed = begin::<REGIONS>(&INNER);
    multiply::<50>(value)
}

/// A region around a number of others, with some multiplications before each.
macro_rules! around {
    ($function:ident, $name:literal, $number:literal, $between:literal) => {
        #[inline(never)]
        fn $function<const REGIONS: bool>(value: u64) -> u64 {
            static AROUND: Region = Region::new($name);
            let _timed = begin::<REGIONS>(&AROUND);
            (0..$number).fold(value, |value, _| inner::<REGIONS>(multiply::<$between>(value)))
        }
    };
}

around!(around_two, "around 2", 2, 0);
around!(around_hundred, "around 100", 100, 0);
around!(around_hundred_slow, "around 100 with code between", 100, 50);
around!(around_thousand, "around 1000", 1000, 0);

#[inline(never)]
fn around_small<const REGIONS: bool>(value: u64) -> u64 {
    static SMALL: Region = Region::new("hash 16 within");
    static AROUND: Region = Region::new("around 100 small");
    let _timed = begin::<REGIONS>(&AROUND);
    (0..100).fold(value, |value, _| {
        let _timed = begin::<REGIONS>(&SMALL);
        let value = hash::<16>(hide(value));
        keep(value);
        value
    })
}

static LEVELS: [Region; 6] = [
    Region::new("level 1"),
    Region::new("level 2"),
    Region::new("level 3"),
    Region::new("level 4"),
    Region::new("level 5"),
    Region::new("level 6"),
];

#[inline(never)]
fn nest<const REGIONS: bool>(depth: usize, value: u64) -> u64 {
    let _timed = begin::<REGIONS>(&LEVELS[LEVELS.len() - depth]);
    let value = multiply::<50>(value);
    let value = if depth > 1 { nest::<REGIONS>(depth - 1, value) } else { value };
    multiply::<50>(value)
}

#[inline(never)]
fn recurse<const REGIONS: bool>(depth: usize, value: u64) -> u64 {
    static RECURSIVE: Region = Region::new("recursive");
    let _timed = begin::<REGIONS>(&RECURSIVE);
    let value = multiply::<100>(value);
    if depth > 1 { recurse::<REGIONS>(depth - 1, value) } else { value }
}

static AROUND_RECURSION: Region = Region::new("around recursion");

#[inline(never)]
fn around_recursion<const REGIONS: bool>(value: u64) -> u64 {
    let _timed = begin::<REGIONS>(&AROUND_RECURSION);
    recurse::<REGIONS>(20, value)
}

/// A program with regions within others.
struct NestedRegions {
    /// The region around.
    name: &'static str,
    /// The region directly in it, and its executions, if their sum is compared.
    part: Option<(&'static str, f64)>,
    /// The code without regions and with them.
    alone: Function,
    timed: Function,
}

macro_rules! nested {
    ($($name:literal, $part:expr, $code:ident ( $($before:expr),* ),)*) => {
        [$(NestedRegions {
            name: $name,
            part: $part,
            alone: |value| $code::<false>($($before,)* value),
            timed: |value| $code::<true>($($before,)* value),
        },)*]
    };
}

const NESTED: [NestedRegions; 7] = nested! {
    "around 2", None, around_two(),
    "around 100", None, around_hundred(),
    "around 100 with code between", None, around_hundred_slow(),
    "around 1000", None, around_thousand(),
    "around 100 small", Some(("hash 16 within", 100.0)), around_small(),
    "level 1", Some(("level 2", 1.0)), nest(LEVELS.len()),
    "around recursion", None, around_recursion(),
};

/// Prints a line: the way, the name, the true core cycles, and those read with their interval.
fn print(way: &str, name: &str, truth: f64, read: &Estimate) {
    let [low, high] = read.interval.map(|cycles| cycles.0);
    println!(
        r#"{{"way":"{way}","name":"{name}","truth":{truth:.2},"read":{:.2},"low":{low:.2},"high":{high:.2}}}"#,
        read.value.0
    );
}

/// An estimate without an interval.
fn exact(cycles: f64) -> Estimate {
    let value = CoreCycles(cycles);
    Estimate { value, interval: [value; 2] }
}

fn find<'a>(report: &'a Report, name: &str) -> &'a Row {
    report.rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("{name} has no executions"))
}

/// Core cycles that a region's execution costs this program: its executions in turns with the same
/// code alone, by the system's clock.
fn execution_cost() -> f64 {
    let [without, with]: [Function; 2] = [inner::<false>, inner::<true>];
    let (times, mut seconds) = (calls_in(without, 1e-3), [0.0; 2]);
    let (mut rulers, rounds) = (Vec::new(), 300);
    for _ in 0..rounds {
        rulers.push(rule());
        for (sum, function) in seconds.iter_mut().zip([without, with]) {
            *sum += call(function, times);
        }
    }
    (seconds[1] - seconds[0]) / (rounds * times) as f64 / quantile(rulers, 0.5)
}

fn main() {
    let cost = execution_cost();
    print("cost", "an execution", cost, &exact(report().execution.0));
    for Timed { name, alone, timed } in &FUNCTIONS {
        let before = true_cycles(*alone);
        call(*timed, calls_in(*alone, TIMED));
        let truth = (before + true_cycles(*alone)) / 2.0;
        print("region", name, truth, &find(&report(), name).cycles);
    }
    for NestedRegions { name, part, alone, timed } in NESTED {
        let before = true_cycles(alone);
        call(timed, calls_in(alone, TIMED));
        let truth = (before + true_cycles(alone)) / 2.0;
        let report = report();
        let row = find(&report, name);
        print("nested", name, truth, &row.cycles);
        if let Some((inner, number)) = part {
            let sum = row.own.value.0 + number * find(&report, inner).cycles.value.0;
            print("parts", name, truth, &exact(sum));
        }
        if name == "around recursion" {
            let own = find(&report, "recursive").own;
            print("nested", "recursive: self", truth / 20.0, &own);
        }
    }
    if std::env::args().any(|argument| argument == "--report") {
        eprintln!("{}", report());
    }
}
