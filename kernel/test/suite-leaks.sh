# Runs and opened devices leak nothing.
# boot: --smp 2
# long: --smp 2 --append thorough=2
. ./tap.sh
plan 5

kib() { sed -n "s/^$1: *\([0-9]*\) kB/\1/p" /proc/meminfo; }
# Freed areas are purged together, later.
areas() { grep -cv unpurged /proc/vmallocinfo; }
# Caches and threads come and go, but a leak repeats, so one of three times without loss is enough.
# 128 bytes per run or a page per device exceed the limits. Stacks of threads are areas of vmalloc
# too; 160 devices make 1900 areas.
fell() { [ $(($2 - $1)) -le "$3" ]; }
kept_slabs=1 kept_memory=1 kept_areas=1

check "the module loads" insmod /modules/cyclescope.ko
# Allocations that are made only once.
cyclescope-guest runs 500 10 >/dev/null
status=0
for turn in 1 2 3; do
	sleep 1
	slab=$(kib Slab) free=$(kib MemAvailable) areas=$(areas)
	cyclescope-guest runs $((6000 * ${thorough:-1})) $((160 * ${thorough:-1})) >/tmp/output 2>&1 || status=1
	sleep 1
	note "slab, KiB: $slab before, $(kib Slab) after; free, KiB: $free, $(kib MemAvailable); areas: $areas, $(areas)"
	fell $slab "$(kib Slab)" 600 && kept_slabs=0
	fell "$(kib MemAvailable)" $free 600 && kept_memory=0
	fell $areas "$(areas)" 20 && kept_areas=0
	[ $kept_slabs$kept_memory$kept_areas = 000 ] && break
done
result $status "many runs and devices"
result $kept_slabs "slabs do not grow"
result $kept_memory "free memory does not shrink"
result $kept_areas "areas of vmalloc do not grow"
