# Random code in ring 0. The kernel hands unknown words of its command line on as variables.
# boot: --smp 2
# long: --smp 2 --timeout 240 --append thorough=12
. ./tap.sh
plan 2

check "the module loads" insmod /modules/cyclescope.ko
check "random code" cyclescope-guest fuzz $((8000 * ${thorough:-1})) 1
note "$(cat /tmp/output)"
