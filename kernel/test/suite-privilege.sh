# A user who may not run code in ring 0 gets an error with its remedy.
# boot: --smp 2
. ./tap.sh
. ./ring0.sh
plan 6

mkdir -p /etc
echo 'user:x:1000:1000:user:/tmp:/bin/sh' >/etc/passwd
# A JSON record says what is missing and what helps.
told() {
	local wanted=$1 record exit=0
	shift
	record=$("$@") || exit=$?
	echo "exit code $exit: $record"
	[ "$exit" = 3 ] && echo "$record" | grep -q -e "\"code\":\"unavailable\",\"exit\":3,.*$wanted"
}
kernel="cyclescope run --executor kernel --json nop"

check "without the module" told 'not loaded.*"remedy":"build and load it' $kernel
check "the module loads" insmod /modules/cyclescope.ko
check "as an ordinary user" told 'is for root.*"remedy":"run as root' su user -c "$kernel"
check "as root without the capability" told 'is for root.*"remedy":"run as root' without-rawio $kernel
check "root with it" ordinary
check "the module goes" rmmod cyclescope
