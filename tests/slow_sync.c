/* Makes fsync and fdatasync of a process take as long as a file says, and each write below a folder 1 ms: modelled
 * devices that are slow, without root.
 *
 *   cc -shared -fPIC -o slow_sync.so slow_sync.c -ldl
 *   LD_PRELOAD=./slow_sync.so SLOW_SYNC_US=/path/of/a/file  program
 *
 * The file holds microseconds in digits; nothing is synced, so that the real disk and what else is done to it play
 * no part. Without the file the call fails. SLOW_WRITE_IN names the folder, if any. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
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

static void slow_there(int fd)
{
    const char *folder = getenv("SLOW_WRITE_IN");
    char link[32], path[PATH_MAX];
    if (!folder)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    if (length > 0 && !strncmp(path, folder, strlen(folder)))
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at)
{
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real)
        real = (ssize_t(*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    slow_there(fd);
    return real(fd, bytes, count, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    return pwrite64(fd, bytes, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at)
{
    static ssize_t (*real)(int, const struct iovec *, int, off64_t);
    if (!real)
        real = (ssize_t(*)(int, const struct iovec *, int, off64_t))dlsym(RTLD_NEXT, "pwritev64");
    slow_there(fd);
    return real(fd, parts, count, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    return pwritev64(fd, parts, count, at);
}
