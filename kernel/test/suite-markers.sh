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
command_reports_them() {
	local mode
	for mode in kernel user; do
		cyclescope marker --executor $mode --quick --json >/tmp/markers || return 1
		echo "$mode: $(grep -c '"kind":"marker",' /tmp/markers) markers"
		grep -q '"counted":1000' /tmp/markers && grep -q '"counted":0' /tmp/markers || return 1
		grep '"kind":"marker",' /tmp/markers | grep -q '"cost":{"value":[-0-9]' && return 1
	done
	return 0
}

check "the module loads" insmod /modules/cyclescope.ko
check "each site calls its probe when it is on, and only then" cyclescope-guest marker-counts
check "its bytes change as expected, and are restored" cyclescope-guest marker-bytes
if [ -s /modules/lengths ]; then
	check "each code has the length from objdump" cyclescope-guest marker-lengths /modules/lengths
else
	skip "each code has the length from objdump" "objdump is missing"
fi
check "the study reports calls and bytes of each, without times" cyclescope-guest marker-study
note "$(cat /tmp/output)"
check "and leaves all sites off" cyclescope-guest marker-bytes
check "the command reports them too, in ring 0 and in user mode" command_reports_them
note "$(cat /tmp/output)"
check "wrong values" hostile-markers values
check "bounds" hostile-markers bounds
check "sites belong to one file" hostile-markers owners
check "processes killed during a run" hostile-markers killed
hostile-markers turns
check "devices opened, switched and closed leave nothing behind" leaves_nothing
note "$(cat /tmp/output)"
check "the module does not unload during a run" in_the_middle
check "the module unloads" rmmod cyclescope
check "and loads again" insmod /modules/cyclescope.ko
check "with all sites off" cyclescope-guest marker-bytes
