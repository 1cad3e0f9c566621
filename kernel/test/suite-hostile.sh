# Wrong, excessive or withdrawn requests.
# boot: --smp 2
# long: --smp 2 --append thorough=10
. ./tap.sh
. ./ring0.sh
plan 17

in_the_middle() {
	hostile endure &
	local runner=$! status=0
	sleep 1
	rmmod cyclescope 2>&1 && status=1
	wait $runner || status=1
	return $status
}

check "the module loads" insmod /modules/cyclescope.ko
check "wrong values" hostile values
check "wrong memory" hostile memory
check "random requests" hostile random
note "$(cat /tmp/output)"
check "too many at once" hostile crowd
check "several threads" hostile threads
check "device and memory taken away during a run" hostile taken-away
check "processes killed during a run" hostile processes
check "slices too short for a round" hostile short-slices
check "a selector of an LDT" hostile ldt-selector
check "areas are as fresh as requested" hostile areas
check "areas have their initial contents" cyclescope-guest areas
check "invalid lists of areas" hostile wrong-areas
check "the module does not unload during a run" in_the_middle
check "ordinary code runs" ordinary
check "the module unloads" rmmod cyclescope
check "and loads again" insmod /modules/cyclescope.ko
