# NMIs and machine checks of the machine itself during measured code: the kernel gets each, and the
# interrupted round runs again.
# boot: --smp 2 --append apic_extnmi=all --monitor nmi
# A deferred error that does no harm yet: valid, uncorrected, enabled, deferred; in progress, to be
# continued.
# boot: --smp 2 --monitor mce_1_5_0xb000100000000000_5_0_0
. ./tap.sh
. ./ring0.sh
plan 4

which=NMI
grep -q apic_extnmi /proc/cmdline || which=MCE
# Number that the kernel has handled on the measured CPU.
taken() { awk -v which="$which:" '$1 == which { print $3 }' /proc/interrupts; }

among() {
	local status=0 before=$(taken)
	events interrupted || status=1
	echo "$(($(taken) - before)) taken by the kernel"
	[ $(($(taken) - before)) -gt 0 ] && return $status
}

check "the module loads" insmod /modules/cyclescope.ko
note disturb
check "no sample is lost" among
note "$(cat /tmp/output)"
hits=$(sed -n 's/ rounds were hit.*//p' /tmp/output)
check "the kernel gets each event" [ "$(sed -n 's/ taken by.*//p' /tmp/output)" -ge "${hits:-1}" ]
check "ordinary code runs" ordinary
