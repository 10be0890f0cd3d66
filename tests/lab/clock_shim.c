/* A clock that steps or drifts, for one process: LD_PRELOAD this, and CLOCK_SHIM names a file that holds the seconds by
 * which the wall clock is off; monotonic clocks are left alone. CLOCK_SHIM_PPM lets the wall clock and the monotonic one
 * run faster or slower from their first reading on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long offset_ns(void) {
    const char *path = getenv("CLOCK_SHIM");
    char text[32] = {0};
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    return got > 0 ? (long long)(1e9 * atof(text)) : 0;
}

static long long drift_ns(int (*real)(clockid_t, struct timespec *)) {
    static long long first_ns;
    const char *ppm = getenv("CLOCK_SHIM_PPM");
    struct timespec now;
    if (!ppm || real(CLOCK_MONOTONIC, &now)) return 0;
    long long now_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
    if (!first_ns) first_ns = now_ns;
    return (long long)((now_ns - first_ns) * 1e-6 * atof(ppm));
}

int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(which, now);
    if (answer != 0 || (which != CLOCK_REALTIME && which != CLOCK_MONOTONIC)) return answer;
    long long ns = now->tv_nsec + drift_ns(real) + (which == CLOCK_REALTIME ? offset_ns() : 0);
    now->tv_sec += ns / 1000000000;
    now->tv_nsec = ns % 1000000000;
    if (now->tv_nsec < 0) {
        now->tv_nsec += 1000000000;
        now->tv_sec -= 1;
    }
    return answer;
}
