/* The standard streams at the start and the end of a program. */
#include "bench/command.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* The next opened file would get the number of a stream that the caller closed, and messages would go there. Opening it
 * in the wrong direction makes reads and writes fail. */
static void occupy_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

void command_begin(void)
{
    occupy_closed_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file at its size limit fails like one on a full disk, with a message */
}

int command_end(int status)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || status != EXIT_DONE) return status;
    perror("prony: stdout");
    return EXIT_FAILED;
}
