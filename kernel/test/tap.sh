# Writes TAP for a suite, which starts with `plan`. A test also fails if the kernel has complained
# since the last one.
#
#   plan N                  number of results
#   check TEXT COMMAND...   one result: the command succeeds; otherwise its output follows
#   refuse TEXT COMMAND...  one result: the command fails
#   result STATUS TEXT      one result: STATUS is 0
#   skip TEXT REASON
#   note LINE...            a diagnostic
#   same LINE...            must be the same on every machine of the suite

count=0

say() { printf '%s\n' "$*" >&3; }
note() { printf '%s\n' "$*" | sed 's/^/# /' >&3; }
same() { printf '%s\n' "$*" | sed 's/^/# same: /' >&3; }

plan() {
	say "1..$1"
	dmesg -c >/dev/null
}

result() {
	count=$((count + 1))
	dmesg -c >/tmp/kernel-log
	if [ "$1" -eq 0 ] && ! grep -qE -f complaints /tmp/kernel-log; then
		say "ok $count - $2"
		return
	fi
	say "not ok $count - $2"
	note "exit code $1"
	[ ! -s /tmp/kernel-log ] || note "kernel log since the last test:" "$(head -n 60 /tmp/kernel-log)"
}

check() {
	local text=$1 status=0
	shift
	"$@" >/tmp/output 2>&1 </dev/null || status=$?
	result $status "$text"
	[ $status -eq 0 ] || [ ! -s /tmp/output ] || note "$(tail -n 40 /tmp/output)"
}

refuse() {
	local text=$1 status=1
	shift
	"$@" >/tmp/output 2>&1 </dev/null || status=0
	result $status "$text"
	[ $status -eq 0 ] || [ ! -s /tmp/output ] || note "$(tail -n 40 /tmp/output)"
}

skip() {
	count=$((count + 1))
	say "ok $count - $1 # SKIP $2"
}
