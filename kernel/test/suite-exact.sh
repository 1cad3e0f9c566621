# One instruction takes one tick: raw readings are whole numbers, and the same on every machine.
# boot: --icount
# boot: --icount
. ./tap.sh
plan 2

check "the module loads" insmod /modules/cyclescope.ko
check "a chain takes as many ticks as it has instructions" cyclescope-guest exact
same "$(cat /tmp/output)"
