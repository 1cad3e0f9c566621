# A machine check in the middle of the module's steps for an NMI does not let in a second one.
# boot: --smp 2 --debugger --append apic_extnmi=all
. ./tap.sh
. ./ring0.sh
plan 4

# Number that the kernel has handled on the measured CPU.
taken() { awk -v which="$1:" '$1 == which { print $3 }' /proc/interrupts; }
address() { sed -n "s/^\([0-9a-f]*\) t $1[[:space:]]\[cyclescope\]$/\1/p" /proc/kallsyms; }
until_checked() {
	local tries=0
	while [ "$(taken MCE)" -lt 3 ]; do
		ordinary || return 1
		tries=$((tries + 1))
		[ $tries -lt 300 ] || return 1
	done
}

check "the module loads" insmod /modules/cyclescope.ko
nmis=$(taken NMI)
note "debugger check $(address capsule_inside) $(address capsule_leaving) $(address capsule_gates)"
check "code runs until each machine check has arrived" until_checked
# Two for each; the kernel may handle two pending ones at once.
check "the kernel gets the NMIs" [ $(($(taken NMI) - nmis)) -ge 3 ]
check "ordinary code runs" ordinary
