/* Makes fsync and fdatasync of a process as slow as a file says: a storage that became slow, without root.
 *
 *   cc -shared -fPIC -o slow_sync.so slow_sync.c -ldl
 *   LD_PRELOAD=./slow_sync.so SLOW_SYNC_US=/path/of/a/file  program
 *
 * The file holds microseconds in digits; without it, or empty, nothing is delayed. The real call is made as well. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void delay(void)
{
    const char *path = getenv("SLOW_SYNC_US");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    char digits[16] = {0};
    ssize_t length = read(fd, digits, sizeof digits - 1);
    close(fd);
    long us = length > 0 ? atol(digits) : 0;
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    while (us > 0 && nanosleep(&left, &left) != 0)
        ;
}

int fdatasync(int fd)
{
    delay();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}

int fsync(int fd)
{
    delay();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(fd);
}
