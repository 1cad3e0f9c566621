# The module's functions may be traced and probed while it runs code, except those on the way into
# the capsule and out of it.
# boot: --smp 2
. ./tap.sh
. ./ring0.sh
plan 10

of=/sys/module/disturber/parameters
tracing=/sys/kernel/tracing
# From saving the CPU's state to restoring it, including the functions that the kernel calls for an
# NMI meanwhile.
way='capsule_enter capsule_inside capsule_leaving capsule_gates capsule_end capsule_hand_on enter cpu_state_save cyclescope_read_cpu_state
	cpu_state_restore deadline_slice_begins deadline_slice_ends nmis_taken records_stop stop records_after_nmi records_restore
	cyclescope_handle_nmi cyclescope_claim_nmi'

# Markers' codes have known names; names added by compilers begin with an underline.
functions() {
	sed -nE 's/^[0-9a-f]+ [tT] ([a-z][a-z_0-9.]*)[[:space:]]\[cyclescope\]$/\1/p' /proc/kallsyms |
		grep -vE '_(nothing|memcpy)_[0-9]+$|\.' | sort -u
}
is_on_the_way() { echo $way | tr ' ' '\n' | grep -qx "$1"; }
probe() { echo "cyclescope:$1" >$of/probe; }

# Some may be inlined into their caller.
none_on_the_way() {
	local function tried=0
	for function in $(functions); do
		is_on_the_way $function || continue
		tried=$((tried + 1))
		! probe $function || { echo "a probe is at $function"; return 1; }
	done 2>/dev/null
	echo "$tried functions"
	[ $tried -ge 12 ]
}
all_others() {
	local function tried=0 status=0
	for function in $(functions); do
		is_on_the_way $function && continue
		tried=$((tried + 1))
		probe $function || { echo "no probe at $function"; status=1; }
	done
	echo "$tried functions"
	[ $tried -ge 30 ] && return $status
}
everything_runs() {
	ordinary && measure 'add rax, rax' && [ $exit = 5 ] && measure 'ud2' && [ $exit = 4 ] && measure 'x: jmp x' && [ $exit = 4 ] &&
		cyclescope-guest marker-counts
}
traced() {
	echo ':mod:cyclescope' >$tracing/set_ftrace_filter && echo function >$tracing/current_tracer || return 1
	everything_runs || return 1
	echo 0 >$tracing/tracing_on
}
not_traceable() {
	local function status=0
	grep -q ' \[cyclescope\]$' $tracing/available_filter_functions || status=1
	for function in $way; do
		! grep "^$function \[cyclescope\]$" $tracing/available_filter_functions || status=1
	done
	return $status
}

check "the module loads" insmod /modules/cyclescope.ko
check "another module loads" insmod /modules/disturber.ko
check "no probe can be set on the way" none_on_the_way
note "$(cat /tmp/output)"
check "one can be set at every other function" all_others
note "$(cat /tmp/output)"
check "code and markers run with them" everything_runs
check "the probes are hit" [ "$(cat $of/hits)" -gt 0 ]
check "they go" rmmod disturber
mount -t tracefs tracing $tracing 2>/dev/null
if [ -w $tracing/set_ftrace_filter ]; then
	check "nothing on the way can be traced" not_traceable
	check "code and markers run while all that can be is traced" traced
	check "the functions are in the trace" grep -q device_ioctl $tracing/trace
else
	for text in "nothing on the way can be traced" "code and markers run while all that can be is traced" \
		"the functions are in the trace"; do
		skip "$text" "the kernel has no tracer of functions"
	done
fi
