# External events during a run, and code that tries to leave ring 0.
# boot: --smp 3
. ./tap.sh
. ./ring0.sh
plan 6

loses_cpu() { mkdir /tmp/groups && mount -t cgroup2 groups /tmp/groups && events loses-cpu; }

check "the module loads" insmod /modules/cyclescope.ko
check "callers that are moved to another CPU meanwhile" events moved
note "$(cat /tmp/output)"
check "a caller loses its CPU between two slices" loses_cpu
note "$(cat /tmp/output)"
check "the CPU that watches the deadline goes offline" events loses-watcher
check "perf switches the CPU's records at any moment" insmod /modules/imitator.ko
check "ordinary code runs" ordinary
