# The module and its device can be loaded and unloaded.
# boot: --packed
. ./tap.sh
plan 6

mode() { [ "$(stat -c %a /dev/cyclescope)" = 600 ]; }

check "the module loads" insmod /modules/cyclescope.ko
check "its device exists" test -c /dev/cyclescope
check "the device is root's alone" mode
check "the module unloads" rmmod cyclescope
refuse "so does the device" test -e /dev/cyclescope
check "the module loads again" insmod /modules/cyclescope.ko
