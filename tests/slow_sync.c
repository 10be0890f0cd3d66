/* Makes fsync and fdatasync of a process take as long as a file says: a modelled device that becomes slow, without root.
 *
 *   cc -shared -fPIC -o slow_sync.so slow_sync.c
 *   LD_PRELOAD=./slow_sync.so SLOW_SYNC_US=/path/of/a/file  program
 *
 * The file holds microseconds in digits; nothing is synced, so that the real disk and what else is done to it play
 * no part. Without the file the call fails. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int delay(void)
{
    const char *path = getenv("SLOW_SYNC_US");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        errno = EIO;
        return -1;
    }
    char digits[16] = {0};
    ssize_t length = read(fd, digits, sizeof digits - 1);
    close(fd);
    long us = length > 0 ? atol(digits) : 0;
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    while (us > 0 && nanosleep(&left, &left) != 0)
        ;
    return 0;
}

int fdatasync(int fd)
{
    (void)fd;
    return delay();
}

int fsync(int fd)
{
    (void)fd;
    return delay();
}
