/* A network of hosts on one machine: a switch between network namespaces that delays and drops frames.
 *
 *     switch CONTROL PID:ADDRESS...
 *
 * Each process PID has a network namespace of its own; there this makes a device with ADDRESS (a /24) and reads and writes
 * its frames. CONTROL is a file with one 32-bit number a port: the delay in microseconds of each frame from or to this
 * port, or 0xffffffff to drop them. It may change at any time. All ends with this process. Needs root and /dev/net/tun. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PORTS 16
#define QUEUE 16384
#define FRAME 1600

struct frame { long long due_ns; int length; unsigned char bytes[FRAME]; };
struct line { struct frame *frames; unsigned head, tail; };  /* from one port to one other, first in, first out */

static struct line lines[PORTS][PORTS];
static unsigned char macs[PORTS][6];
static volatile unsigned *control;
static int ports, fds[PORTS];

static void die(const char *what) { perror(what); exit(1); }

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void up(const char *device, const char *address) {
    struct ifreq request = {0};
    int sock = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in *own = (struct sockaddr_in *)&request.ifr_addr;
    strncpy(request.ifr_name, device, IFNAMSIZ - 1);
    if (address) {
        own->sin_family = AF_INET;
        if (inet_pton(AF_INET, address, &own->sin_addr) != 1) die(address);
        if (ioctl(sock, SIOCSIFADDR, &request)) die("SIOCSIFADDR");
        inet_pton(AF_INET, "255.255.255.0", &own->sin_addr);
        if (ioctl(sock, SIOCSIFNETMASK, &request)) die("SIOCSIFNETMASK");
    }
    if (ioctl(sock, SIOCGIFFLAGS, &request)) die("SIOCGIFFLAGS");
    request.ifr_flags |= IFF_UP | IFF_RUNNING;
    if (ioctl(sock, SIOCSIFFLAGS, &request)) die("SIOCSIFFLAGS");
    close(sock);
}

static int opened(const char *pid, const char *address) {
    char path[64];
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET)) die(path);
    close(space);
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap < 0) die("/dev/net/tun");
    strcpy(request.ifr_name, "host0");
    if (ioctl(tap, TUNSETIFF, &request)) die("TUNSETIFF");
    up("lo", NULL);
    up("host0", address);
    return tap;
}

/* A full queue drops the frame, as a switch does. */
static void enqueue(int from, int to, const unsigned char *bytes, int length) {
    unsigned here = control[from], there = control[to];
    struct line *line = &lines[from][to];
    if (here == ~0u || there == ~0u || line->tail - line->head == QUEUE) return;
    struct frame *frame = &line->frames[line->tail++ % QUEUE];
    frame->due_ns = now_ns() + 1000LL * (here + there);
    frame->length = length;
    memcpy(frame->bytes, bytes, length);
}

static void take(int from) {
    unsigned char bytes[FRAME];
    int length;
    while ((length = read(fds[from], bytes, sizeof bytes)) >= 14) {
        memcpy(macs[from], bytes + 6, 6);
        int to = -1;
        for (int port = 0; port < ports; port++)
            if (port != from && !memcmp(macs[port], bytes, 6)) to = port;
        for (int port = 0; port < ports; port++)
            if (port != from && (to < 0 || port == to)) enqueue(from, port, bytes, length);
    }
}

/* Sends what is due, and returns the time until the next frame is [ns]. */
static long long give(void) {
    long long next_ns = 1000000000LL;
    for (int from = 0; from < ports; from++)
        for (int to = 0; to < ports; to++)
            for (struct line *line = &lines[from][to]; line->head != line->tail; line->head++) {
                struct frame *frame = &line->frames[line->head % QUEUE];
                long long left_ns = frame->due_ns - now_ns();
                if (left_ns > 0) {
                    if (left_ns < next_ns) next_ns = left_ns;
                    break;
                }
                if (write(fds[to], frame->bytes, frame->length) < 0) { /* the host is not up: lost */ }
            }
    return next_ns;
}

int main(int argc, char **argv) {
    ports = argc - 2;
    if (ports < 1 || ports > PORTS) return 2;
    prctl(PR_SET_PDEATHSIG, 9);
    prctl(PR_SET_TIMERSLACK, 1);
    int file = open(argv[1], O_RDWR);
    if (file < 0) die(argv[1]);
    control = mmap(NULL, PORTS * sizeof *control, PROT_READ, MAP_SHARED, file, 0);
    if (control == MAP_FAILED) die("mmap");
    for (int port = 0; port < ports; port++) {
        char *address = strchr(argv[2 + port], ':');
        *address++ = 0;
        fds[port] = opened(argv[2 + port], address);
        for (int other = 0; other < ports; other++)
            lines[port][other].frames = calloc(QUEUE, sizeof(struct frame));
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        long long next_ns = give();
        struct timespec wait = {next_ns / 1000000000, next_ns % 1000000000};
        struct pollfd polls[PORTS];
        for (int port = 0; port < ports; port++) polls[port] = (struct pollfd){fds[port], POLLIN, 0};
        if (ppoll(polls, ports, &wait, NULL) > 0)
            for (int port = 0; port < ports; port++)
                if (polls[port].revents) take(port);
    }
}
