# What happens to a run from outside, and code that tries to leave ring 0.
# boot: --smp 2
. ./tap.sh
. ./ring0.sh
plan 3

check "the module loads" insmod /modules/cyclescope.ko
check "callers that are moved to another CPU meanwhile" events moved
note "$(cat /tmp/output)"
check "ordinary code runs" ordinary
