# The paper's experiment: timing methods in user mode and in ring 0, side by side. Without SMAP: see
# suite-command.sh.
# boot: --smp 2 --cpu max,la57=off,-smap
. ./tap.sh
plan 13

methods=lfence-rdtsc-lfence,cpuid-rdtsc-rdtscp-cpuid,cpuid-rdtsc-cr0-rdtsc
# All methods take a minute and a half in emulation.
small="--executor kernel --clock $methods --ensembles 5 --samples 200 --budget 5"

json() { cyclescope evaluate --json --series $small --plots /tmp/plots --evidence /tmp/evidence >/tmp/lines; }
text() { cyclescope evaluate $small >/tmp/text && cp /tmp/text /dev/console; }
# Number of lines of a kind for a method in a mode.
lines() { [ "$(grep -F "\"kind\":\"$1\"" /tmp/lines | grep -F "\"clock\":\"$2\"" | grep -cF "\"executor\":\"$3\"")" -eq "$4" ]; }
both() {
	local mode
	for mode in user kernel; do
		lines evaluate "$1" $mode 1 && lines evaluate.ensemble "$1" $mode 5 &&
			lines evaluate.resolution "$1" $mode 1 && lines evaluate.contamination "$1" $mode 5 || return 1
	done
}
alone() { lines evaluate cpuid-rdtsc-cr0-rdtsc kernel 1 && lines evaluate cpuid-rdtsc-cr0-rdtsc user 0; }
emulated() { [ "$(grep -F '"kind":"evaluate",' /tmp/lines | grep -cF '"code":"emulated"')" -eq 5 ]; }
# All lines of a kind, this many, have no value for this figure.
refused() {
	[ "$(grep -cF "\"kind\":\"$1\"," /tmp/lines)" -eq "$3" ] &&
		[ "$(grep -F "\"kind\":\"$1\"," /tmp/lines | grep -cF "\"$2\":{\"value\":null,")" -eq "$3" ]
}
no_cycles() {
	refused evaluate overhead 5 && refused evaluate.resolution cost 5 && refused evaluate.contamination cost 30
}
verdicts() { [ "$(grep -cF '"kind":"evaluate.verdict"' /tmp/lines)" -eq 2 ]; }
apart() {
	[ "$(grep -cF '"executor": "user"' /tmp/evidence/manifest.json)" -ge 2 ] &&
		[ "$(grep -cF '"executor": "kernel"' /tmp/evidence/manifest.json)" -ge 3 ] &&
		[ -s /tmp/plots/minimum-lfence-rdtsc-lfence.svg ] && [ -s /tmp/plots/minimum-lfence-rdtsc-lfence-kernel.svg ] &&
		cyclescope replay /tmp/evidence
}
table() {
	local rows
	rows=$(grep -c '  in ring 0 ' /tmp/text)
	echo "# $rows rows of ring 0; lines that are too wide:"
	[ "$rows" -ge 9 ] && ! tr -d '\200-\277' </tmp/text | grep -E '.{81}'
}

refuse "without the module nothing is evaluated" cyclescope evaluate $small
insmod /modules/cyclescope.ko
check "an evaluation in both modes ends" json
check "LFENCE, RDTSC has rows of both modes" both lfence-rdtsc-lfence
check "the paper's method with RDTSCP has them too" both cpuid-rdtsc-rdtscp-cpuid
check "the method that writes CR0 runs only in ring 0" alone
check "each row says that the machine is emulated" emulated
check "so there is no figure in core cycles" no_cycles
check "each mode has a verdict" verdicts
check "files of the two modes stay separate, and their figures are reproduced" apart
check "the text is printed" text
check "methods that can't run in user mode are named" grep -q 'cr0-rdtsc was not run in user mode' /tmp/text
check "figures in core cycles are left out, with the reason" grep -q 'Left out: the machine is emulated' /tmp/text
check "its tables have rows of ring 0, 80 columns wide" table
