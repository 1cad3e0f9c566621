/* What happens to a run while it runs, and code that tries to leave ring 0 by itself: events WHAT. See `tests` at the end. */
#include "request.h"
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>

#define TURNS		20

/* Beside NMIs from elsewhere: no NMI and no round of samples is lost. `repeated` shows whether any came. */
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
	/* An emulator's CPU may stop for long. */
	request.run.deadline_us = info.longest_deadline_us;
	for (int turn = 0; turn < TURNS; turn++) {
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

/* Where the emulator is slow. */
static void interrupted_briefly(void)
{
	interrupted_for(40000);
}

/* The thread that a page is missed by is moved to `to`, and gets it there. */
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

	/* Nobody misses it where the run is refused before. */
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

/* The answer for a run on `cpu` of a caller that is moved from CPU `from` to CPU `to` while the module copies the
 * context. */
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

static const struct test tests[] = {
	{ "interrupted", interrupted }, { "interrupted-briefly", interrupted_briefly }, { "moved", moved },
};

int main(int count, char **words)
{
	return run_test(tests, sizeof(tests) / sizeof(*tests), count, words);
}
