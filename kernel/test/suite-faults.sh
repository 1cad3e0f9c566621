# Exceptions of measured code in ring 0 come back as errors with their names, and the kernel notices
# nothing.
# boot: --smp 2 --packed
# long: --smp 2 --packed --append pti=on --append thorough=10
. ./tap.sh
. ./ring0.sh
plan 44

check "the module loads" insmod /modules/cyclescope.ko
ends "ordinary code is measured" 5 '"samples":[1-9]' 'add rax, rax'

text=0x$(sed -n 's/ T _stext$//p' /proc/kallsyms)
# The private address space.
own='0xffff96000[0-9a-f]*'
at() { echo "\"$1 in the snippet\""; }

fault "#DE" 0 0 "$own" "$(at 'div ecx at +0x2')" 'xor ecx, ecx; div ecx'
fault "#DB" 1 0 "$own" "$(at 'nop at +0xa')" 'pushfq; or qword ptr [rsp], 0x100; popfq; nop'
fault "#BP" 3 0 "$own" "$(at 'int3 at +0x0')" 'int3'
fault "#UD" 6 0 "$own" "$(at 'ud2 at +0x1')" 'nop; ud2'
# The emulator raises #GP for a non-canonical stack address, processors #SS.
fault "#SS" '1[23]' 0 "$own" "$(at 'push rax at +0xa')" 'mov rsp, 0x8000000000000000; push rax'
fault "#GP, a non-canonical address" 13 0 "$own" "$(at 'mov rax, .rax. at +0xa')" \
	'mov rax, 0x8000000000000000; mov rax, [rax]'
fault "#GP, a missing segment" 13 65532 "$own" "$(at 'mov ds, ax at +0x5')" 'mov eax, 0xffff; mov ds, ax'
fault "#PF, NULL is read" 14 0 0x0 "$(at 'mov eax, .rax. at +0x2')" 'xor eax, eax; mov eax, [rax]'
fault "#PF, user memory is written" 14 2 0x400000 "$(at 'mov .rax., eax at +0x5')" 'mov eax, 0x400000; mov [rax], eax'
fault "#PF, the kernel's text is read" 14 0 "$text" "$(at 'mov eax, .rax. at +.*')" "mov rax, $text; mov eax, [rax]"
fault "#PF, the kernel's text is written" 14 2 "$text" "$(at 'mov .rax., eax at +.*')" "mov rax, $text; mov [rax], eax"
# After an indirect call each byte of the address counts as code, and the kernel's address differs
# between boots. The address is split in two in several ways until the code may run.
for part in 0 0x1010101 0x2020202 0x4040404 0x8080808 0x9090909; do
	call="mov rax, $(printf '0x%x' $((text - part))); add rax, $part; call rax"
	measure "$call"
	[ "$exit" = 2 ] || break
done
fault "#PF, the kernel is called" 14 16 "$text" null "$call"
fault "#PF, the code itself is written" 14 3 "$own" "$(at 'mov .rax., al at +0x7')" 'x: lea rax, [rip + x]; mov [rax], al'
fault "#PF, data are executed" 14 17 "$own" null 'call rdi'
fault "#PF, an unmapped stack" 14 2 0xfffffffffffffff8 "$(at 'push rax at +0x2')" 'xor esp, esp; push rax'
fault "#MF" 16 0 "$own" "$(at 'fwait at .*')" --init 'fninit; push 0x33b; fldcw [rsp]; pop rax' \
	'fld1; fldz; fdivp st(1), st(0); fwait'
fault "an interrupt's number" 128 0 "$own" "$(at 'int 0x80 at +0x0')" 'int 0x80'
fault "the number of an exception with an error code" 13 0 "$own" "$(at 'int 0xD at +0x0')" 'int 13'
fault "the number of a page fault" 14 0 "$own" "$(at 'int 0xE at +0x0')" 'int 14'
ends "the NMI's number" 2 '"code":"refused"' 'int 2'
fault "the timer's number" 236 0 "$own" "$(at 'int 0xEC at +0x0')" 'int 0xec'
# To ring 3, which may not use the capsule's pages (Intel SDM vol. 3A, 4.7): user access, present, a
# fetch.
fault "IRETQ to ring 3" 14 21 "$own" "$(at 'nop at +.*')" \
	"mov rax, rsp; push 0x2b; push rax; push 2; push 0x33; lea rcx, [rip + x]; push rcx; iretq; x: nop"
# The address is cut to 32 bits.
fault "IRETQ to 32-bit code" 14 16 '0x[0-9a-f]\{1,8\}' '.*' \
	"mov rax, rsp; push 0x18; push rax; push 2; push 8; lea rcx, [rip + x]; push rcx; iretq; x: nop"
# The trap waits for the instruction after the load of SS, and may come in the handler of its
# exception.
ends "MOV SS, then INT3, with TF" 4 '"vector":[13],' \
	'mov ecx, ss; pushfq; or qword ptr [rsp], 0x100; popfq; mov ss, ecx; int3'
fault "after GS lost its base" 6 0 "$own" "$(at 'ud2 at .*')" 'xor eax, eax; wrgsbase rax; ud2'
fault "after GS was swapped" 6 0 "$own" "$(at 'ud2 at .*')" 'swapgs; ud2'
fault "after segments were loaded" 6 0 "$own" "$(at 'ud2 at .*')" \
	'xor eax, eax; mov ds, ax; mov es, ax; mov fs, ax; mov gs, ax; ud2'
fault "after interrupts were masked" 6 0 "$own" "$(at 'ud2 at .*')" 'mov eax, 15; mov cr8, rax; ud2'
fault "after breakpoints were set" 6 0 "$own" "$(at 'ud2 at .*')" 'mov dr0, r14; mov dr3, r14; ud2'

ends "interrupts let in while they are masked" 5 '"changed":\["CR8"' 'mov eax, 15; mov cr8, rax; sti; nop; nop; cli'
ends "and they come afterwards" 5 '"samples":[1-9]' 'mov eax, 15; mov cr8, rax; sti; nop; nop; cli; xor eax, eax; mov cr8, rax; sti; nop; nop; cli'
ends "masked interrupts are let in again" 5 '"samples":[1-9]' 'mov eax, 15; mov cr8, rax'
ends "the stack and GS come back" 5 '"samples":[1-9]' 'xor esp, esp; xor eax, eax; wrgsbase rax; swapgs'
ends "a misaligned access does not fault in ring 0" 5 '"samples":[1-9]' \
	'pushfq; or qword ptr [rsp], 0x40000; popfq; mov rax, [r14 + 1]'
ends "an endless loop" 4 '"code":"hang"' 'x: jmp x'
# By the deadline's NMI, or because no round finishes between two interrupts.
ends "an endless loop with interrupts let in" 4 '"code":"\(hang\|late\)"' 'sti; x: jmp x'
ends "a refused instruction" 2 '"code":"refused".*"instruction":"hlt"' 'hlt'

check "bad stacks in a row" cyclescope-guest row $((2000 * ${thorough:-1}))
ends "ordinary code is still measured" 5 '"samples":[1-9]' 'add rax, rax'

# As a virtual machine leaves it on Intel's processors (Intel SDM vol. 3C, 28.5.2).
check "another module loads" insmod /modules/disturber.ko
echo 1 >/sys/module/disturber/parameters/wide_idt
ends "with a larger limit of the IDT, ordinary code is measured" 5 '"samples":[1-9]' 'add rax, rax'
fault "and an exception comes back" 6 0 "$own" "$(at 'ud2 at +0x1')" 'nop; ud2'
