# Performance events in ring 0. The emulated processor has no counters: events of the kernel count.
# boot: --cpu max,la57=off,-smap --smp 2
. ./tap.sh
plan 12

kib() { sed -n "s/^$1: *\([0-9]*\) kB/\1/p" /proc/meminfo; }
# An event takes more than a KiB, and each time 1000 runs fail with two of them open.
leaves_nothing() {
	local before
	counters failing || return 1
	for turn in 1 2 3; do
		before=$(kib Slab)
		counters failing || return 1
		sleep 1
		[ $(($(kib Slab) - before)) -le 1000 ] && return
	done
	return 1
}
# Exit code 5: an emulated processor gives no number.
counts() {
	cyclescope run --quick --json --executor kernel --counters task-clock,dummy,page-faults 'imul rax, rax' >/tmp/record
	[ $? = 5 ] && grep -q '"name":"dummy","value":0.0,' /tmp/record && grep -q '"counter_passes":1' /tmp/record
}
# Beside load the interval may reach below zero, and is measured again. It must not end there.
has_time() {
	local turn
	for turn in 1 2 3 4 5; do
		! grep -q '"name":"task-clock","value":[^,]*,"low":[^,]*,"high":-' /tmp/record || return 1
		! grep -q '"name":"task-clock","value":[0-9.]*[1-9]' /tmp/record || return 0
		counts || return 1
	done
	return 1
}
says_why() {
	cyclescope run --quick --json --executor kernel --counters instructions nop >/tmp/record
	[ $? = 3 ] && grep -qE 'no performance monitoring unit|hides the counters' /tmp/record
}

check "the module loads" insmod /modules/cyclescope.ko
check "events of the kernel count" counters software
note "$(cat /tmp/output)"
check "a missing counter has its error" counters hardware
note "$(cat /tmp/output)"
check "wrong events" counters wrong
check "runs that fail leave no event open" leaves_nothing
check "processes killed while they count" counters killed
check "the command counts" counts
check "and has the time per copy" has_time
note "$(cut -c 1-1500 /tmp/record)"
check "it says why an event does not count" says_why
note "$(cat /tmp/record)"
check "the module unloads" rmmod cyclescope
check "and loads again" insmod /modules/cyclescope.ko
check "events of the kernel count again" counters software
