# If a requirement of a run is missing, the module gives the reason, and does the rest.
# boot: --smp 2
# boot: --smp 2 --cpu max,la57=off,-nx
# boot: --smp 2 --cpu max,la57=off,-tsc
. ./tap.sh
. ./ring0.sh

of=/sys/module/disturber/parameters
# The whole reason, from the module and from the command, which knows some by itself.
reason() { [ "$(cat /sys/module/cyclescope/parameters/refused)" = "$1" ] && measure nop && [ $exit = 3 ]; }
reports() { reason "$1" && grep -qF "$1" /tmp/record; }
no_device() { cyclescope-guest marker-counts 2>&1 | tee /tmp/refused | grep -q "$1"; }

refused_at_all() {
	plan 4
	check "the module loads" insmod /modules/cyclescope.ko
	check "and refuses the machine: $1" reason "$1"
	check "markers too" no_device "$1"
	check "the module unloads" rmmod cyclescope
	exit
}
grep -qw nx /proc/cpuinfo || refused_at_all "the processor has no NX or no SSE2"
grep -qw tsc /proc/cpuinfo || refused_at_all "the kernel does not know the rate of the time stamp counter"

# beside OPTION: reloads the module after another one that disturbs it from the start.
beside() {
	lsmod | grep -q '^cyclescope ' && rmmod cyclescope
	lsmod | grep -q '^disturber ' && rmmod disturber
	insmod /modules/disturber.ko "$1" && insmod /modules/cyclescope.ko
}
markers_only() { rmmod cyclescope && insmod /modules/cyclescope.ko markers_only=1; }
writes_tsc_aux() { measure --init 'mov ecx, 0xc0000103; xor edx, edx; mov eax, 77' wrmsr && grep -q '"changed":\["IA32_TSC_AUX"' /tmp/record; }
hangs() { ends "$1" 4 '"code":"hang"' 'x: jmp x'; }

plan 21
check "the module loads if nothing is missing" beside refuse=
check "and refuses nothing" [ -z "$(cat /sys/module/cyclescope/parameters/refused)" ]
hangs "an endless loop ends"
check "TSC_AUX is restored" writes_tsc_aux

check "for markers only" markers_only
check "code is refused" reports "the module was loaded for markers only (markers_only=1)"
check "markers run" cyclescope-guest marker-counts

check "without NMIs the module loads" beside lose_nmis=1
ends "an endless loop is refused" 2 '"code":"refused".*without a second CPU' 'x: jmp x'
ends "so is a loop that may not end" 2 '"code":"refused".*without a second CPU' 'dec rax; x: jz x'
check "so is a run with a deadline" events unguarded
ends "code that ends runs" 5 '"samples":[1-9]' 'add rax, rax'

check "if CR4 can't be changed, the module loads" beside refuse=cr4
check "the change was tried" [ "$(cat $of/refused)" -gt 0 ]
check "code is refused" reports "a hypervisor forbids the change of CR4 around measured code"
check "markers run" cyclescope-guest marker-counts

check "if registers can't be read, the module loads" beside refuse=msr
check "they were tried" [ "$(cat $of/refused)" -gt 0 ]
ends "code runs" 5 '"samples":[1-9]' 'add rax, rax'
hangs "an endless loop ends"
refuse "TSC_AUX is not written" writes_tsc_aux
