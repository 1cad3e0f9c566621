# Runs and opened devices leave nothing behind.
# boot: --smp 2
. ./tap.sh
plan 5

kib() { sed -n "s/^$1: *\([0-9]*\) kB/\1/p" /proc/meminfo; }
# Freed ones wait to be taken out together.
areas() { grep -cv unpurged /proc/vmallocinfo; }
# Caches come and go; what leaks with each of 10000 runs or 200 devices is more, be it 128 bytes or a page.
within() { note "$1: $2 before, $3 after"; [ $(($3 - $2)) -le "$4" ] && [ $(($2 - $3)) -le "$5" ]; }
much=1000000

check "the module loads" insmod /modules/cyclescope.ko
# Whatever is only made once.
cyclescope-guest runs 1000 20 >/dev/null
sleep 1
slab=$(kib Slab) free=$(kib MemAvailable) areas=$(areas)
check "10000 runs, 200 devices" cyclescope-guest runs 10000 200
sleep 1
within "slab, KiB" $slab $(kib Slab) 600 $much
result $? "slabs are as before"
within "free, KiB" $free $(kib MemAvailable) $much 600
result $? "free memory is as before"
within "areas of vmalloc" $areas "$(areas)" 2 $much
result $? "areas of vmalloc are as before"
