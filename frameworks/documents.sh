# The snippets of the documents, for `test`: each becomes a program and runs. A line `…` stands for code of the reader.


# Prints the block of the page that has this line.
own_snippet() { snippet in-your-own-program.md "^$(sed 's/[].*$+?(){}|[]/[&]/g' <<<"$1")\$"; }

# Builds and runs C or C++ from standard input.
run_c() {
    local language=$1
    cat >"$base/document.$language" && "${CXX:-c++}" -O2 -w -I ../include -I "$base" -x "$language" "$base/document.$language" \
        -o "$base/document" && "$base/document"
}

# The text of a method's header, its pairs, and its example.
document_timer() {
    local pairs
    [ -x "$cyclescope" ] || { left_out "the command cyclescope is not built"; return 0; }
    "$cyclescope" clock lfence-rdtsc-lfence --emit c >"$base/timer.h" || return 1
    pairs=$(own_snippet 'uint64_t start = cyclescope_lfence_rdtsc_lfence_start();') || return 1
    run_c c++ <<END || return 1
#include "timer.h"
static int64_t empty[1], full[1];
static uint64_t fnv(const char *text, int length) { uint64_t hash = 0; while (length > 0) hash = (hash ^ text[--length]) * 3; return hash; }
int main() { const char *text = "text"; int length = 4, i = 0; uint64_t hash; $pairs return full[0] < 0; }
END
    own_snippet 'an empty pair: 52 TSC ticks' | sed -n 's/^\$ //p' | (cd "$base" && bash -e)
}

# The ruler around pairs, and percentiles of them.
document_ruler() {
    local ruler percentile loop check
    ruler=$(own_snippet 'struct cyclescope_calibration pair = cyclescope_calibrate();') &&
        percentile=$(own_snippet 'struct cyclescope_percentile p95 = cyclescope_percentile(ticks, SAMPLES, pair.step, 0.95);') || return 1
    loop='for (int i = 0; i < SAMPLES; i++) { uint64_t started = cyclescope_lfence_rdtsc_lfence_start(); ticks[i] = double(cyclescope_lfence_rdtsc_lfence_end() - started); }'
    run_c c++ <<END || return 1
#include "cyclescope.h"
#include <cstdio>
enum { SAMPLES = 201 };
int main() { double ticks[SAMPLES], cycles; $(sed "s/^….*/$loop/" <<<"$ruler") $percentile return cycles > 1000; }
END
    own_snippet '50 dependent multiplications: 150.1 core cycles (140.4 to 152.4)' | sed -n 's/^\$ //p' | sed "s,-o example && ./example,-o $base/example \&\& $base/example," | (cd .. && bash -e)
}

# A test of a framework: its macros stand for Catch2's and doctest's.
document_loop() {
    local test check
    test=$(own_snippet 'TEST_CASE("hash")') && check=$(own_snippet 'CHECK(result.high < 5000);') || return 1
    run_c c++ <<END
static const char text[1000] = {};
static const int length = 1000;
static unsigned long fnv(const char *text, int length, unsigned long hash)
{
    while (length > 0)
        hash = (hash ^ (unsigned char)text[--length]) * 0x100000001b3;
    return hash;
}
#define TEST_CASE(name) static void test()
#define CHECK(holds) ((void)(holds))
$test
int main() { unsigned long hash = 0; test(); $check return result.cycles <= 0; }
END
}

# Regions of a Rust program.
document_region() {
    local regions folder=$base/document-region
    regions=$(own_snippet 'static PARSE: Region = Region::new("parse");') || return 1
    mkdir -p "$folder/src"
    cat >"$folder/Cargo.toml" <<END
[package]
name = "document-region"
version = "0.0.0"
edition = "2024"
[dependencies]
cyclescope-clock = { path = "$(realpath ../crates/clock)" }
[workspace]
END
    # The page ends both functions by an ellipsis or not at all.
    { echo "use cyclescope_clock::Region; struct Tree(#[expect(dead_code)] usize);"; sed 's/^    …$/    Tree(text.len())/' <<<"$regions"; echo '    parse("text"); }'; } \
        >"$folder/src/main.rs"
    "$cargo" run --quiet --offline --manifest-path "$folder/Cargo.toml" 2>&1 | tee "$base/region.txt"
    grep -q '^parse  *1 ' "$base/region.txt"
}

# Pairs that tell their CPU, and counters, in C and in Rust.
document_counters() {
    local pair counters rust library
    pair=$(own_snippet 'struct cyclescope_cpu_reading began = cyclescope_rdtscp_lfence_start_on_cpu();') &&
        counters=$(own_snippet 'int error = cyclescope_counters_open(&counters, events, 2);') &&
        rust=$(own_snippet 'let counters = EventCounters::open([CountedEvent::CYCLES, CountedEvent::INSTRUCTIONS])?;') || return 1
    run_c c++ <<END || return 1
#include "cyclescope_counter.h"
#include <cstdio>
static uint64_t fnv(const char *text, int length) { uint64_t hash = 0; while (length > 0) hash = (hash ^ text[--length]) * 3; return hash; }
int main()
{
    const char *text = "text";
    int length = 4;
    uint64_t hash, ticks = 1;
    $counters
    if (cyclescope_has_rdtscp()) { $pair }
    return ticks == 0;
}
END
    "$cargo" build --quiet --offline --manifest-path "$base/document-region/Cargo.toml" || return 1
    library=$(ls -t "$base"/debug/deps/libcyclescope_clock-*.rlib | head -n 1)
    rustc --edition 2024 --extern cyclescope_clock="$library" -L "$base/debug/deps" -o "$base/document-counters" - <<END || return 1
use cyclescope_clock::{CountedEvent, CounterError, EventCounters};
fn fnv(text: &str) -> u64 { text.bytes().fold(0, |hash, byte| (hash ^ u64::from(byte)) * 3) }
#[expect(unused_assignments, unused_variables)]
fn count(text: &str) -> Result<u64, CounterError> { let mut hash = 0; $rust Ok(hash) }
fn main() { match count("text") { Ok(_) | Err(CounterError::NoCounter | CounterError::Forbidden) => {} Err(error) => panic!("{error}") } }
END
    "$base/document-counters"
}

# Lines that an example must have. A part of a line before an ellipsis is enough.
document_examples() {
    local first file line
    while IFS='|' read -r first file; do
        while IFS= read -r line; do
            line=${line%%…*}
            line=${line%% \{ }
            [ -z "${line// /}" ] || grep -qF -e "$line" $file ||
                { echo "[failed] frameworks::$part: $file lacks \"$line\" of the page" >&2; return 1; }
        done < <(own_snippet "$first" | sed '/^$/,$d; s/^\$ //; /^… /s/^… *//')
    done <<'END'
cyclescope-criterion = { path = "…/frameworks/criterion" }|criterion/example/Cargo.toml
use cyclescope_criterion::CoreCycles;|criterion/example/benches/multiplications.rs
divan = { package = "cyclescope-divan", … }|divan/example/Cargo.toml
CYCLESCOPE_BENCHMARK(state) { … }|google-benchmark/multiplications.cc
$ pip install ./frameworks/python pytest-benchmark|python/example/test_hash.py
END
}

documents() {
    command -v "${CXX:-c++}" >/dev/null || { left_out "${CXX:-c++} is not installed"; return; }
    document_timer && document_ruler && document_loop && document_region && document_counters && document_examples
}
