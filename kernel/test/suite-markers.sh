# Markers: sites in the module's own code are off, on and off again, judged by their counts and by
# their bytes. Without SMAP: see suite-command.sh.
# boot: --smp 2 --cpu max,la57=off,-smap
. ./tap.sh
plan 16

kib() { sed -n "s/^$1: *\([0-9]*\) kB/\1/p" /proc/meminfo; }
# Freed areas are purged together, later.
areas() { grep -cv unpurged /proc/vmallocinfo; }

in_the_middle() {
	hostile-markers endure &
	local runner=$! status=0
	sleep 1
	rmmod cyclescope 2>&1 && status=1
	wait $runner || status=1
	return $status
}

# A leak repeats, so one of three times without loss is enough. Switching in 50 devices makes and
# drops 50 areas.
leaves_nothing() {
	local turn slab free areas
	for turn in 1 2 3; do
		slab=$(kib Slab) free=$(kib MemAvailable) areas=$(areas)
		hostile-markers turns || return 1
		sleep 1
		echo "slab, KiB: $slab before, $(kib Slab) after; free, KiB: $free, $(kib MemAvailable); areas: $areas, $(areas)"
		[ $(($(kib Slab) - slab)) -le 100 ] && [ $((free - $(kib MemAvailable))) -le 400 ] &&
			[ $(($(areas) - areas)) -le 20 ] && return
	done
	return 1
}

# One row each, with counted calls and without a cost: nothing is timed here.
told_by_the_command() {
	local mode
	for mode in kernel user; do
		cyclescope marker --executor $mode --json >/tmp/markers || return 1
		echo "$mode: $(grep -c '"kind":"marker",' /tmp/markers) markers"
		grep -q '"counted":1000' /tmp/markers && grep -q '"counted":0' /tmp/markers || return 1
		grep '"kind":"marker",' /tmp/markers | grep -q '"cost":{"value":[-0-9]' && return 1
	done
	return 0
}

check "the module loads" insmod /modules/cyclescope.ko
check "each site calls its probe when it is on, and only then" cyclescope-guest marker-counts
check "its bytes change where they should, and come back" cyclescope-guest marker-bytes
if [ -s /modules/lengths ]; then
	check "each code is as long as objdump says" cyclescope-guest marker-lengths /modules/lengths
else
	skip "each code is as long as objdump says" "there is no objdump"
fi
check "the study has calls and bytes of each, and no time" cyclescope-guest marker-study
note "$(cat /tmp/output)"
check "and leaves all sites off" cyclescope-guest marker-bytes
check "the command has them too, in ring 0 and in user mode" told_by_the_command
note "$(cat /tmp/output)"
check "wrong values" hostile-markers values
check "bounds" hostile-markers bounds
check "sites belong to one file" hostile-markers owners
check "processes killed in the middle" hostile-markers killed
hostile-markers turns
check "devices opened, switched and closed leave nothing behind" leaves_nothing
note "$(cat /tmp/output)"
check "the module does not go in the middle" in_the_middle
check "the module goes" rmmod cyclescope
check "and comes again" insmod /modules/cyclescope.ko
check "with all sites off" cyclescope-guest marker-bytes
