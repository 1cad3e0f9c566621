# A crash of the kernel during a run: the crash kernel takes over.
# long: --smp 2 --packed --memory 1024 --crash-kernel --append crashkernel=256M --provoked sysrq --provoked Trace:
. ./tap.sh
. ./ring0.sh

if grep -qw crashed /proc/cmdline; then
	dmesg -c >/dev/null
	count=2
	check "the crash kernel has taken over" test -e /proc/vmcore
	exit
fi
plan 3
check "the module loads" insmod /modules/cyclescope.ko
if [ ! -e /sys/kernel/kexec_crash_loaded ]; then
	skip "a crash kernel is loaded" "this kernel can't"
	skip "the crash kernel has taken over" "no crash kernel"
	exit
fi
(cd / && { printf '%s\n' bin bin/busybox init dev proc sys tmp; find suites; } | cpio -o -H newc >/tmp/initramfs 2>/dev/null)
check "a crash kernel is loaded" crash-kernel /kernel /tmp/initramfs \
	"console=ttyS0 panic=-1 nr_cpus=1 irqpoll suite=crash crashed"
echo 1 >/proc/sys/kernel/sysrq
# In endless loops: the other CPU can stop this one only by an NMI.
while :; do cyclescope run --executor kernel --quick 'x: jmp x'; done >/dev/null 2>&1 &
sleep 3
taskset 1 sh -c 'echo c >/proc/sysrq-trigger'
