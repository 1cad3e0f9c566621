# A user who may not run code in ring 0 gets an error with its remedy, and the kernel reports
# whether root's code ran in it.
# boot: --smp 2
. ./tap.sh
. ./ring0.sh
plan 11

mkdir -p /etc
echo 'user:x:1000:1000:user:/tmp:/bin/sh' >/etc/passwd
# A JSON record with the reason and the remedy.
reports() {
	local wanted=$1 record exit=0
	shift
	record=$("$@") || exit=$?
	echo "exit code $exit: $record"
	[ "$exit" = 3 ] && echo "$record" | grep -q -e "\"code\":\"unavailable\",\"exit\":3,.*$wanted"
}
kernel="cyclescope run --executor kernel --json nop"
# Whether the kernel reports that root has run code in it (U,
# Documentation/admin-guide/tainted-kernels.rst).
tainted() { [ $(($(cat /proc/sys/kernel/tainted) >> 6 & 1)) = "$1" ]; }

check "without the module" reports 'not loaded.*"remedy":"build and load it' $kernel
check "the module loads" insmod /modules/cyclescope.ko
check "as an ordinary user" reports 'is for root.*"remedy":"run as root' su user -c "$kernel"
for capability in sys_rawio sys_module; do
	check "as root without the capability $capability" reports 'is for root.*"remedy":"run as root' \
		without-capability $capability $kernel
done
cyclescope-guest marker-counts >/dev/null
check "the kernel reports no code of root" tainted 0
check "root with all of them" ordinary
check "the kernel reports code of root" tainted 1

# Only the next boot reverts it.
mount -t securityfs security /sys/kernel/security 2>/dev/null
if [ -w /sys/kernel/security/lockdown ]; then
	check "a locked-down kernel refuses a run of an open file" events locked-down
	check "and refuses to open the device" reports 'is locked down.*"remedy":"boot without' $kernel
else
	skip "a locked-down kernel refuses a run of an open file" "the kernel has no lockdown"
	skip "and refuses to open the device" "the kernel has no lockdown"
fi
check "the module unloads" rmmod cyclescope
