# Two NMIs at once, the first of which serves the sources of both: the kernel still gets the second
# one.
# boot: --smp 2 --debugger --append apic_extnmi=all
. ./tap.sh
. ./ring0.sh
plan 6

# Number that the kernel has handled on the measured CPU.
taken() { awk '$1 == "NMI:" { print $3 }' /proc/interrupts; }
address() { sed -n "s/^\([0-9a-f]*\) t $1[[:space:]]\[cyclescope\]$/\1/p" /proc/kallsyms; }
# Each pair, and the one that is raised again.
until_paired() {
	local tries=0
	while [ $(($(taken) - before)) -lt 6 ]; do
		ordinary || return 1
		tries=$((tries + 1))
		[ $tries -lt 300 ] || return 1
	done
}
# The other CPU gets them too, without any source.
of_unknown_origin() { grep 'unknown reason .* on CPU 1' /tmp/log; }

check "the module loads" insmod /modules/cyclescope.ko
check "another module loads" insmod /modules/disturber.ko
echo 1 >/sys/module/disturber/parameters/both
before=$(taken)
note "debugger pair $(address capsule_inside) $(address capsule_leaving) $(address capsule_gates)"
check "code runs until each pair has arrived" until_paired
cat /tmp/kernel-log >/tmp/log
dmesg >>/tmp/log
check "the kernel has handled them" [ $(($(taken) - before)) -ge 6 ]
refuse "none is of unknown origin" of_unknown_origin
check "ordinary code runs" ordinary
