# Processors with fewer or more features: no RDTSCP, page tables of five levels.
# boot: --smp 2 --cpu max,la57=off,-rdtscp
# boot: --smp 2 --packed --cpu max
. ./tap.sh
. ./ring0.sh
plan 6

check "the module loads" insmod /modules/cyclescope.ko
# 5: an emulated processor has no core cycles to report.
ends "ordinary code is measured" 5 '"samples":[1-9]' 'add rax, rax'
if grep -qw rdtscp /proc/cpuinfo; then
	check "page tables have five levels" grep -qw la57 /proc/cpuinfo
	measure --clock rdtscp-lfence 'add rax, rax'
	result $((exit != 5)) "a clock with RDTSCP works"
else
	check "page tables have four levels" sh -c '! grep -qw la57 /proc/cpuinfo'
	measure --clock rdtscp-lfence 'add rax, rax'
	result $((exit != 3)) "a clock with RDTSCP is unavailable"
fi
fault "a page fault" 14 2 0xfffffffffffffff8 '"push rax .*"' 'xor esp, esp; push rax'
ends "an endless loop" 4 '"code":"hang"' 'x: jmp x'
