# Random code in ring 0.
# boot: --smp 2 --timeout 240
. ./tap.sh
plan 2

check "the module loads" insmod /modules/cyclescope.ko
check "100000 pieces of random code" cyclescope-guest fuzz 100000 1
note "$(cat /tmp/output)"
