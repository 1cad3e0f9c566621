# Without a second CPU nothing ends an endless loop: code that may not end is refused, other code
# runs.
# boot:
# long: --smp 2 --append nosmp
. ./tap.sh
. ./ring0.sh
plan 9

check "the module loads" insmod /modules/cyclescope.ko
ends "ordinary code is measured" 5 '"samples":[1-9]' 'add rax, rax'
ends "an endless loop is refused" 2 '"code":"refused".*without a second CPU' 'x: jmp x'
ends "a repeated string instruction is refused" 2 '"code":"refused".*nothing stops it' 'rep movsb'
ends "an indirect branch is refused" 2 '"code":"refused".*without a second CPU' 'call rax'
ends "with --force it runs" 5 '"samples":[1-9]' --force --unroll 4 --init 'mov ecx, 8' 'mov ecx, 8; rep movsb'
ends "a branch forward runs" 5 '"samples":[1-9]' 'test rax, rax; jz x; add rax, rax; x: nop'
fault "a page fault" 14 2 0xfffffffffffffff8 '"push rax .*"' 'xor esp, esp; push rax'
ends "code that lets interrupts in" 5 '"samples":[1-9]' 'sti; nop; nop; cli'
