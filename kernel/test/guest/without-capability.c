/* Runs a command as root without one of its capabilities: without-capability sys_rawio|sys_module COMMAND... */
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int count, char **words)
{
	int capability = count < 3 ? -1 : !strcmp(words[1], "sys_rawio") ? CAP_SYS_RAWIO :
			 !strcmp(words[1], "sys_module") ? CAP_SYS_MODULE : -1;

	/* When root executes a program, it does not regain capabilities outside of its bounding
	 * set. */
	if (capability < 0 || prctl(PR_CAPBSET_DROP, capability, 0, 0, 0))
		return 1;
	execvp(words[2], words + 2);
	return 1;
}
