# The programs of `check` and `compare`, which source this.

base=$(realpath -m "${CARGO_TARGET_DIR:-../../target}")/frameworks
export CARGO_TARGET_DIR=$base
folder=$base/accuracy
mkdir -p "$folder"

left_out() {
    echo "[left out] $*" >&2
    return 77
}

# Prints the path of a benchmark program that cargo builds.
program() {
    cargo bench --locked --quiet --profile quick -p cyclescope-accuracy --bench "$1" --no-run --message-format=json |
        sed -nE 's/.*"executable":"([^"]+)".*/\1/p' | tail -n 1
}

# Builds the program of Google Benchmark in the folder.
build_google() {
    echo '#include <benchmark/benchmark.h>' | c++ -x c++ -fsyntax-only - 2>/dev/null ||
        { left_out "Google Benchmark is not installed (libbenchmark-dev)"; return; }
    cc -O2 -Wall -Wextra -c functions.c -o "$folder/functions.o"
    cc -O2 -Wall -Wextra -c reference.c -o "$folder/reference.o"
    c++ -O2 -I ../../include google.cc "$folder/functions.o" "$folder/reference.o" -lbenchmark -lpthread -o "$folder/google"
}

# Builds the program of the header's loop in the folder.
build_loop() {
    cc -O2 -Wall -Wextra -I ../../include by_loop.c functions.c reference.c -o "$folder/loop"
}

# Builds the program of the header's single readings in the folder.
build_pairs() {
    cc -O2 -Wall -Wextra -I ../../include by_pairs.c functions.c reference.c -o "$folder/pairs"
}

# Checks that pytest and the Python package are there.
require_pytest() {
    [ -x "$base/venv/bin/pytest" ] || left_out "the Python package is not built (frameworks/test python)"
}
