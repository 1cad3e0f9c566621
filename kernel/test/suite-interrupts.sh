# NMIs from elsewhere during measured code: the kernel gets each, and the interrupted round runs
# again.
# boot: --smp 2 --provoked Trace:
. ./tap.sh
. ./ring0.sh
plan 3

# Number of NMIs that the kernel has handled on the measured CPU.
nmis() { awk '$1 == "NMI:" { print $3 }' /proc/interrupts; }

# SysRq's list of all CPUs' stacks asks the others by NMI. Its "Call Trace:" is not a complaint
# here, so the log is cleared of it.
among_nmis() {
	local status=0 before=$(nmis)
	echo 1 >/proc/sys/kernel/printk
	echo 1 >/proc/sys/kernel/sysrq
	taskset 1 sh -c 'while [ ! -e /tmp/enough ]; do echo l >/proc/sysrq-trigger; echo >>/tmp/sent; done' &
	local sender=$!
	events interrupted || status=1
	touch /tmp/enough
	wait $sender
	dmesg -c >/tmp/log
	echo "$(wc -l </tmp/sent) NMIs sent to the measured CPU, $(($(nmis) - before)) taken by the kernel"
	[ $(($(nmis) - before)) -ge "$(wc -l </tmp/sent)" ] || status=1
	! grep -E 'Uhhuh|unknown reason|BUG:|Oops' /tmp/log && return $status
}

check "the module loads" insmod /modules/cyclescope.ko
check "no sample and no NMI is lost" among_nmis
note "$(cat /tmp/output)"
check "ordinary code runs" ordinary
