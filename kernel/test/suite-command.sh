# The command line tool runs in the guest, beside the module.
# Without SMAP: QEMU before 9.1 reads the stack of an IRET in user mode as if the kernel had asked, and the executor for
# user mode uses that instruction.
# boot: --cpu max,la57=off,-smap
. ./tap.sh
plan 2

check "the module loads" insmod /modules/cyclescope.ko
check "cyclescope doctor runs" cyclescope doctor
