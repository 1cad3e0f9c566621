# Instructions that only ring 0 runs, and some that user mode runs too. On an emulated machine no
# number is expected.
# boot: --smp 2
. ./tap.sh
plan 14

rows=/tmp/rows
privileged="mov_r64_cr mov_cr_r64 mov_r64_dr mov_dr_r64 clts cli sti swapgs stac clac wbinvd wbnoinvd invlpg* invpcid* \
	rdmsr wrmsr xsetbv xsaves* smsw_rm* sgdt* str_rm* rdpmc hlt lgdt* invd in_al_dx"
ordinary="imul_r64_rm64?r64,r64 add_r64_rm64?r64,r64 vex_vpgatherdd_xmm* div_rm64?r64"

measure() {
	set -f
	cyclescope instr --executor kernel --quick --json --seed 1 $privileged $ordinary >$rows
}
# The error, if the command failed.
why() { grep '"kind":"error"' $rows; }
# A form's name, and a pattern for its line.
row() { grep '"kind":"instr",' $rows | grep "\"code\":\"$1\"" | grep -q "$2"; }
measured() { row "$1" '"status":"measured"'; }
complete() { grep -q '"kind":"instr.summary".*"failed":0,' $rows; }
reasons() { ! grep '"status":"skipped"' $rows | grep -q '"reason":null'; }
ring_0() { ! grep '"kind":"instr",' $rows | grep -qv '"executor":"kernel"'; }

check "the module loads" insmod /modules/cyclescope.ko
check "instr runs in ring 0" measure
note "$(grep -o '"status":"[a-z]*","reason":[^]]*' $rows | sed 's/,"latency.*//' | sort | uniq -c)"
why | cut -c 1-600 | while read -r line; do note "$line"; done
check "no form fails" complete
note "$(grep '"status":"failed"' $rows | cut -c 1-600)"
check "skipped forms have a reason" reasons
check "every row names its ring" ring_0
for code in Mov_r64_cr Cli Sti Wbinvd Invlpg_m Rdmsr Swapgs; do
	check "$code is measured" measured $code
done
check "add is measured" measured Add_r64_rm64
check "HLT is refused, with a reason" row Hlt '"reason":"refused_in_ring_0: it can stop'
