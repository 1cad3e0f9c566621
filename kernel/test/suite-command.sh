# The command line tool runs in the guest, together with the module. Without SMAP: QEMU before 9.1
# reads the stack of an IRET in user mode as if the kernel had requested it, and the executor for
# user mode uses that instruction.
# boot: --cpu max,la57=off,-smap
# boot: --cpu max,la57=off,-smap --smp 2
. ./tap.sh
plan 7

doctor_says() { cyclescope doctor --quick | tee /tmp/doctor | grep -q "$1"; }
# Exit code 5: an emulated processor gives no number.
changed() { cyclescope run --quick --json --executor kernel --init "mov eax, 3" "mov cr8, rax" | grep -q '"changed":\["CR8"\]'; }
reports_one_cpu() { [ "$(nproc)" -gt 1 ] || grep -q "rejected without --force" /tmp/doctor; }

check "doctor reports that the module is not loaded" doctor_says "module  *not loaded"
check "and the effect of a single CPU" reports_one_cpu
check "the module loads" insmod /modules/cyclescope.ko
check "doctor reports that it is loaded" doctor_says "module  *loaded, version 4"
check "and the effect of a single CPU" reports_one_cpu
check "its rate of the TSC" grep -q "its TSC rate .* MHz, by the kernel" /tmp/doctor
check "a run reports the state that code changed" changed
