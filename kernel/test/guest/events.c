/* Events during a run, and code that tries to leave ring 0 by itself: events WHAT. See `tests`
 * at the end. */
#include "request.h"
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define TURNS		20
/* A test ends after this many interrupted rounds, or after enough attempts. */
#define ENOUGH		5
#define MOST_TURNS	2000

/* During NMIs from elsewhere: no NMI and no round of samples is lost. `repeated` shows whether
 * any came. */
static void interrupted_for(uint32_t rounds)
{
	struct request request;
	struct cyclescope_sample *samples = calloc(rounds, sizeof(*samples));
	const struct cyclescope_outcome *outcome = &request.run.outcome;
	unsigned int repeated = 0;

	demand(samples, "memory for samples");
	make(&request, open_device(), 1);
	request.run.samples = (uintptr_t)samples;
	request.run.rounds = rounds;
	request.run.total_ms = 600000;
	/* An emulator's CPU may pause for long. */
	request.run.deadline_us = info.longest_deadline_us;
	for (int turn = 0; turn < TURNS || (repeated < ENOUGH && turn < MOST_TURNS); turn++) {
		demand(!answer(&request), "an answer");
		if (outcome->status != CYCLESCOPE_DONE)
			fprintf(stderr, "status %u, vector %u, %u of %u rounds\n", outcome->status, outcome->vector,
				outcome->rounds_done, rounds);
		demand(outcome->status == CYCLESCOPE_DONE && outcome->rounds_done == rounds, "every round");
		for (uint32_t round = 0; round < rounds; round++) {
			demand(samples[round].end >= samples[round].start, "an end after the start");
			demand(!round || samples[round].start > samples[round - 1].end, "rounds in their order");
		}
		repeated += outcome->repeated;
	}
	demand(repeated > 0, "rounds that were hit");
	printf("%u rounds were hit and run again\n", repeated);
}

static void interrupted(void)
{
	interrupted_for(100000);
}

/* For slow emulators. */
static void interrupted_briefly(void)
{
	interrupted_for(40000);
}

/* Moves the thread that faults on a page to CPU `to`, and then provides the page. */
struct mover {
	int faults;
	pid_t thread;
	unsigned int to;
	bool moved;
};

static void *move_at_fault(void *argument)
{
	struct mover *mover = argument;
	struct pollfd ready = { .fd = mover->faults, .events = POLLIN };
	struct uffdio_zeropage zero = {};
	struct uffd_msg message;
	cpu_set_t set;

	/* No fault comes if the run is refused before. */
	if (poll(&ready, 1, 1000) <= 0)
		return NULL;
	demand(read(mover->faults, &message, sizeof(message)) == sizeof(message), "a fault");
	CPU_ZERO(&set);
	CPU_SET(mover->to, &set);
	demand(!sched_setaffinity(mover->thread, sizeof(set), &set), "the caller on another CPU");
	zero.range.start = message.arg.pagefault.address & ~(PAGE - 1ull);
	zero.range.len = PAGE;
	mover->moved = true;
	demand(!ioctl(mover->faults, UFFDIO_ZEROPAGE, &zero), "the page");
	return NULL;
}

/* The answer for a run on `cpu` whose caller moves from CPU `from` to CPU `to` while the module
 * copies the context. */
static int moved_answer(unsigned int cpu, unsigned int from, unsigned int to)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct mover mover = { .thread = syscall(SYS_gettid), .to = to };
	struct request request;
	pthread_t thread;
	int got;

	make(&request, open_device(), cpu);
	memcpy(request.code, "\x0f\x0b", 2);
	mover.faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	demand(mover.faults >= 0 && !ioctl(mover.faults, UFFDIO_API, &api), "a userfaultfd");
	range.range.start = (uintptr_t)request.context;
	range.range.len = PAGE;
	demand(!ioctl(mover.faults, UFFDIO_REGISTER, &range), "the context's page is watched");
	pin(from);
	pthread_create(&thread, NULL, move_at_fault, &mover);
	got = answer(&request);
	pthread_join(thread, NULL);
	printf("a run on CPU %u from CPU %u, %s CPU %u: %s\n", cpu, from, mover.moved ? "moved to" : "not moved to", to,
	       strerror(got));
	if (!got)
		demand(request.run.outcome.status == CYCLESCOPE_FAULT && request.run.outcome.vector == 6, "UD2 is told");
	close(mover.faults);
	close(request.file);
	drop(&request);
	return got;
}

/* Tables of one CPU must not be used on another one. */
static void moved(void)
{
	demand(moved_answer(1, 0, 1) == ESTALE, "ESTALE for a caller that comes too late");
	demand(moved_answer(0, 1, 0) == ESTALE, "ESTALE for a caller that comes too late");
	demand(moved_answer(1, 1, 0) == ESTALE, "ESTALE for a caller that leaves");
	demand(moved_answer(0, 0, 1) == ESTALE, "ESTALE for a caller that leaves");
	demand(moved_answer(1, 1, 1) == 0, "a run of one that stays");
	for (unsigned int cpu = 0; cpu < 2; cpu++) {
		pin(cpu);
		demand(works(open_device(), cpu), "a valid run");
	}
}

/* Root may lock the kernel down at any time; only the next boot reverts it. */
static void locked_down(void)
{
	int file = open_device(), lockdown = open("/sys/kernel/security/lockdown", O_WRONLY);
	struct request request;

	demand(works(file, 1), "a run before");
	demand(lockdown >= 0 && write(lockdown, "integrity", 9) == 9, "a kernel that is locked down");
	make(&request, file, 1);
	demand(answer(&request) == EACCES, "EACCES for a run of an open file");
	demand(open("/dev/cyclescope", O_RDWR) < 0 && errno == EACCES, "EACCES for another file");
}

/* If no NMI can end code, a run has to accept that by a flag. */
static void unguarded(void)
{
	struct request request;

	demand(!(info.flags & CYCLESCOPE_INFO_DEADLINE), "no deadline is offered");
	make(&request, open_device(), 1);
	demand(answer(&request) == EOPNOTSUPP, "EOPNOTSUPP for a run with a deadline");
	request.run.flags = CYCLESCOPE_RUN_UNGUARDED;
	demand(!answer(&request) && request.run.outcome.status == CYCLESCOPE_DONE, "a run without");
}

/* Starts a run of three seconds on a CPU in a separate thread. */
struct runner {
	struct request request;
	unsigned int cpu;
	pid_t thread;
	int got;
};

static void *run_long(void *argument)
{
	struct runner *runner = argument;

	pin(runner->cpu);
	__atomic_store_n(&runner->thread, syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	runner->got = answer(&runner->request);
	return NULL;
}

static void prepare_runner(struct runner *runner, unsigned int cpu)
{
	*runner = (struct runner){ .cpu = cpu };
	make(&runner->request, open_device(), cpu);
	runner->request.run.warm_up = 0x7fffffff;
	runner->request.run.total_ms = 3000;
	runner->request.run.deadline_us = info.longest_deadline_us;
}

/* The answer for a run that is disturbed after half a second. */
static int disturbed_answer(struct runner *runner, void (*disturb)(const struct runner *runner))
{
	pthread_t thread;

	pthread_create(&thread, NULL, run_long, runner);
	wait_ms(500);
	disturb(runner);
	pthread_join(thread, NULL);
	close(runner->request.file);
	return runner->got;
}

static void put(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);

	demand(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(file);
}

static void put_number(const char *path, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	put(path, text);
}

static void move_thread(const struct runner *runner)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	demand(!sched_setaffinity(runner->thread, sizeof(set), &set), "the caller on another CPU");
}

#define GROUP	"/tmp/groups/moved"

/* A group of processes that may use only CPU 0. */
static void move_process(const struct runner *runner)
{
	(void)runner;
	put_number(GROUP "/cgroup.procs", getpid());
}

#define ONLINE(cpu)	"/sys/devices/system/cpu/cpu" #cpu "/online"

static void take_cpu_1(const struct runner *runner)
{
	(void)runner;
	put(ONLINE(1), "0");
}

static void taken_by(const char *what, void (*disturb)(const struct runner *runner))
{
	struct runner runner;
	int got;

	pin(0);
	prepare_runner(&runner, 1);
	got = disturbed_answer(&runner, disturb);
	printf("%s: %s\n", what, strerror(got));
	demand(got == ESTALE, "ESTALE for a run that loses its CPU");
}

/* A caller loses its CPU while slices run. */
static void loses_cpu(void)
{
	taken_by("moved", move_thread);
	pin(1);
	demand(works(open_device(), 1), "a run on this CPU again");
	taken_by("the CPU goes offline", take_cpu_1);
	put(ONLINE(1), "1");
	pin(1);
	demand(works(open_device(), 1), "a run on the CPU that came back");
	put("/tmp/groups/cgroup.subtree_control", "+cpuset");
	demand(!mkdir(GROUP, 0700), "a group");
	put(GROUP "/cpuset.cpus", "0");
	taken_by("moved by its group", move_process);
	put_number("/tmp/groups/cgroup.procs", getpid());
	pin(1);
	demand(works(open_device(), 1), "a run on this CPU again");
}

/* rdtsc; shl rdx, 32; or rdx, rax; mov rcx, when; x: cmp rdx, rcx; ja x; then the usual code */
static void endless_from(struct request *request, uint64_t when)
{
	memcpy(request->code, "\x0f\x31\x48\xc1\xe2\x20\x48\x09\xc2\x48\xb9", 11);
	memcpy(request->code + 11, &when, 8);
	memcpy(request->code + 19, "\x48\x39\xca\x77\xfb", 5);
	two_readings(request->code + 24);
	request->piece.bytes = 24 + 26;
}

/* The CPU that watches the deadline goes offline; after that the code becomes endless. */
static void loses_watcher(void)
{
	struct runner runner;

	pin(2);
	prepare_runner(&runner, 0);
	endless_from(&runner.request, __builtin_ia32_rdtsc() + info.tsc_khz * 1500ull);
	demand(!disturbed_answer(&runner, take_cpu_1), "an answer");
	put(ONLINE(1), "1");
	demand(runner.request.run.outcome.status == CYCLESCOPE_DEADLINE, "another CPU's NMI");
	demand(runner.request.run.outcome.slices > 1, "slices before");
	pin(0);
	demand(works(open_device(), 0), "a valid run");
}

static const struct test tests[] = {
	{ "interrupted", interrupted }, { "interrupted-briefly", interrupted_briefly }, { "moved", moved },
	{ "locked-down", locked_down }, { "unguarded", unguarded }, { "loses-cpu", loses_cpu },
	{ "loses-watcher", loses_watcher },
};

int main(int count, char **words)
{
	return run_test(tests, sizeof(tests) / sizeof(*tests), count, words);
}
