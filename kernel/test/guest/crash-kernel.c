/* Loads the kernel that takes over after a crash: crash-kernel IMAGE INITRAMFS COMMAND-LINE */
#include <fcntl.h>
#include <linux/kexec.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words)
{
	int image, initramfs;

	if (count != 4)
		return 2;
	image = open(words[1], O_RDONLY);
	initramfs = open(words[2], O_RDONLY);
	if (syscall(SYS_kexec_file_load, image, initramfs, strlen(words[3]) + 1, words[3], KEXEC_FILE_ON_CRASH)) {
		perror(words[1]);
		return 1;
	}
	return 0;
}
