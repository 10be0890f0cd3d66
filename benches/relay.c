/* The least that a proxy between clients and a server can cost: it looks for bytes all the time and passes them on unread.
 *
 *   cc -O2 -o relay relay.c && ./relay LISTEN_PORT SERVER_PORT
 *
 * One thread, 127.0.0.1 alone, up to 500 clients. benches/proxy.py compares the proxy with it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST = 1024, LENGTH = 65536 };

static int other[MOST]; /* the descriptor of the other side, by descriptor */
static char buffer[LENGTH];

static struct sockaddr_in local(const char *port)
{
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(atoi(port))};
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return place;
}

static void watch(int loop, int fd)
{
    int on = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    struct sockaddr_in here = local(words[1]), server = local(words[2]);
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0), loop = epoll_create1(0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) != 0 || listen(listener, 64) != 0)
        return 1;
    watch(loop, listener);
    for (;;) {
        struct epoll_event events[64];
        int ready = epoll_wait(loop, events, 64, 0);
        for (int at = 0; at < ready; at++) {
            int fd = events[at].data.fd;
            if (fd == listener) {
                int client = accept(listener, NULL, NULL), behind = socket(AF_INET, SOCK_STREAM, 0);
                if (behind >= MOST || client >= MOST || connect(behind, (struct sockaddr *)&server, sizeof server) != 0)
                    return 1;
                other[client] = behind;
                other[behind] = client;
                watch(loop, client);
                watch(loop, behind);
                continue;
            }
            ssize_t length = other[fd] ? recv(fd, buffer, LENGTH, MSG_DONTWAIT) : -1;
            if (length > 0 && send(other[fd], buffer, length, MSG_NOSIGNAL) == length)
                continue;
            if (other[fd] && (length == 0 || errno != EAGAIN)) { /* hung up: both sides go */
                int there = other[fd];
                other[fd] = other[there] = 0;
                close(there);
                close(fd);
            }
        }
    }
}
