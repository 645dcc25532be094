/* A server that outruns every generator: one thread, edge-triggered epoll, a
 * canned response for each blank line that arrives. It parses nothing, so it
 * is no example of a server; it is there to make the generator the limit. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char reply[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
enum { LEN = sizeof reply - 1, BATCH = 256 };
static char out[LEN * BATCH];

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: server PORT\n");
        return 2;
    }
    for (int i = 0; i < BATCH; i++) memcpy(out + i * LEN, reply, LEN);
    int ls = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(ls, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(ls, (struct sockaddr *)&a, sizeof a) || listen(ls, 4096)) {
        perror("listen");
        return 1;
    }
    int ep = epoll_create1(0);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = ls}, evs[256];
    epoll_ctl(ep, EPOLL_CTL_ADD, ls, &ev);
    static char buf[65536];
    for (;;) {
        int n = epoll_wait(ep, evs, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = evs[i].data.fd;
            if (fd == ls) {
                int c;
                while ((c = accept4(ls, 0, 0, SOCK_NONBLOCK)) >= 0) {
                    setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                    ev.events = EPOLLIN, ev.data.fd = c;
                    epoll_ctl(ep, EPOLL_CTL_ADD, c, &ev);
                }
                continue;
            }
            ssize_t r = recv(fd, buf, sizeof buf, 0);
            if (r <= 0) {
                close(fd);
                continue;
            }
            int count = 0;
            for (char *p = buf, *end = buf + r; (p = memchr(p, '\n', end - p)); p++)
                if (p - buf >= 3 && p[-1] == '\r' && p[-2] == '\n') count++;
            for (; count > 0; count -= BATCH) {
                int k = count < BATCH ? count : BATCH;
                if (send(fd, out, (size_t)k * LEN, MSG_NOSIGNAL) < 0) break;
            }
        }
    }
}
