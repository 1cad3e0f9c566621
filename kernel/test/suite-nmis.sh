# NMIs during measured code, between any two instructions: the kernel gets each, and the interrupted
# round runs again.
# long: --smp 2 --singly --timeout 600
# long: --smp 2 --append pti=on
. ./tap.sh
. ./ring0.sh
plan 5

# disturb BURSTS GAP: bursts of NMIs to the measured CPU, until the run is over.
disturb() {
	local of=/sys/module/disturber/parameters status=0
	rm -f /tmp/enough
	taskset 1 sh -c "while [ ! -e /tmp/enough ]; do echo 1 $1 $2 >$of/nmis; done" &
	local sender=$!
	events interrupted-briefly || status=1
	touch /tmp/enough
	wait $sender
	echo "$(cat $of/taken) NMIs taken, $(cat $of/lost) bursts lost"
	[ "$(cat $of/lost)" = 0 ] && return $status
}

check "the module loads" insmod /modules/cyclescope.ko
check "another module loads" insmod /modules/disturber.ko
check "single NMIs" disturb 100 0
note "$(cat /tmp/output)"
echo 1 >/proc/sys/kernel/unknown_nmi_panic
check "two NMIs at once" disturb 100 20000
note "$(cat /tmp/output)"
check "ordinary code runs" ordinary
