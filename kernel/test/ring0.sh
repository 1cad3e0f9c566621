# Functions for suites that measure in ring 0, on the last CPU.
#
#   measure OPTION... SNIPPET                      its output goes to /tmp/record, its exit code to $exit
#   ordinary                                       whether ordinary code still runs
#   fault TEXT VECTOR CODE ADDRESS INSTRUCTION OPTION... SNIPPET
#                                                  one result: this exception comes back, and ordinary code runs
#                                                  after it; address and instruction are patterns for grep
#   ends TEXT EXIT PATTERN OPTION... SNIPPET       one result: this exit code, and a line with this pattern

measure() {
	exit=0
	cyclescope run --executor kernel --quick --json "$@" >/tmp/record 2>&1 </dev/null || exit=$?
}

ordinary() { cyclescope-guest runs 10 0 >/tmp/ordinary 2>&1 </dev/null; }

ends() {
	local text=$1 wanted=$2 pattern=$3 status=0
	shift 3
	# On a busy host no round may be undisturbed: a missing number is measured again.
	local attempts=0
	while [ $((attempts += 1)) -le 20 ]; do
		measure "$@"
		{ [ "$wanted" = 5 ] && grep -q '"samples":0,' /tmp/record; } || break
	done
	[ "$exit" = "$wanted" ] && grep -q -e "$pattern" /tmp/record && ordinary || status=1
	result $status "$text"
	[ $status -eq 0 ] || note "exit code $exit, not $wanted with $pattern" "$(head -c 2000 /tmp/record)" \
		"ordinary code: $(cat /tmp/ordinary)"
}

fault() {
	local text=$1 vector=$2 code=$3 address=$4 instruction=$5
	shift 5
	ends "$text" 4 "\"vector\":$vector,\"error_code\":$code,\"address\":\"$address\",\"instruction\":$instruction,\"line\"" "$@"
}
