/* A websocket echo server that outruns every generator: one thread,
 * edge-triggered epoll, whole frames unmasked and sent back. It knows what
 * clients of a benchmark send, and nothing more, so it is no example of a
 * server; it is there to make the generator the limit. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 1 << 17 };

struct peer {
    int open;      /* the handshake is done */
    size_t have;   /* bytes in in */
    unsigned char in[ROOM];
};

static struct peer *peers[65536];
static unsigned char out[ROOM * 2];

static uint32_t rol(uint32_t v, int n) { return v << n | v >> (32 - n); }

/* SHA-1 (RFC 3174) of a message of less than 120 bytes. */
static void sha1(const char *text, size_t len, unsigned char sum[20]) {
    unsigned char block[128] = {0};
    size_t total = len < 56 ? 64 : 128;
    memcpy(block, text, len);
    block[len] = 0x80;
    for (int i = 0; i < 8; i++) block[total - 1 - i] = (uint64_t)len * 8 >> 8 * i;
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    for (size_t at = 0; at < total; at += 64) {
        uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
        for (int i = 0; i < 16; i++)
            w[i] = (uint32_t)block[at + 4 * i] << 24 | block[at + 4 * i + 1] << 16 | block[at + 4 * i + 2] << 8 | block[at + 4 * i + 3];
        for (int i = 16; i < 80; i++) w[i] = rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
        for (int i = 0; i < 80; i++) {
            uint32_t f, k;
            if (i < 20) f = (b & c) | (~b & d), k = 0x5a827999;
            else if (i < 40) f = b ^ c ^ d, k = 0x6ed9eba1;
            else if (i < 60) f = (b & c) | (b & d) | (c & d), k = 0x8f1bbcdc;
            else f = b ^ c ^ d, k = 0xca62c1d6;
            uint32_t t = rol(a, 5) + f + e + k + w[i];
            e = d, d = c, c = rol(b, 30), b = a, a = t;
        }
        h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
    }
    for (int i = 0; i < 20; i++) sum[i] = h[i / 4] >> (24 - 8 * (i % 4));
}

static void base64(const unsigned char *b, size_t n, char *to) {
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = b[i] << 16 | (i + 1 < n ? b[i + 1] << 8 : 0) | (i + 2 < n ? b[i + 2] : 0);
        *to++ = set[v >> 18];
        *to++ = set[v >> 12 & 63];
        *to++ = i + 1 < n ? set[v >> 6 & 63] : '=';
        *to++ = i + 2 < n ? set[v & 63] : '=';
    }
    *to = 0;
}

/* Answers a handshake that has arrived whole; 0: not yet, -1: it is none. */
static int handshake(int fd, struct peer *p) {
    p->in[p->have] = 0;
    char *end = strstr((char *)p->in, "\r\n\r\n");
    char *key = strcasestr((char *)p->in, "sec-websocket-key:");
    if (!end) return 0;
    if (!key) return -1;
    char text[128], accept[32], answer[256];
    unsigned char sum[20];
    for (key += 18; *key == ' '; key++) {}
    snprintf(text, sizeof text, "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    sha1(text, strlen(text), sum);
    base64(sum, 20, accept);
    int n = snprintf(answer, sizeof answer, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", accept);
    if (write(fd, answer, n) != n) return -1;
    size_t used = end + 4 - (char *)p->in;
    memmove(p->in, p->in + used, p->have -= used);
    return p->open = 1;
}

/* Sends back all whole frames; -1: something else came. */
static int echo(int fd, struct peer *p) {
    size_t at = 0, put = 0;
    for (;;) {
        unsigned char *b = p->in + at;
        size_t left = p->have - at, head = 6, len;
        if (left < 2) break;
        if (!(b[1] & 0x80) || (b[0] & 15) > 2) return -1; /* not masked, or a control frame */
        len = b[1] & 127;
        if (len == 127) return -1;
        if (len == 126) {
            if (left < 4) break;
            len = b[2] << 8 | b[3], head = 8;
        }
        if (left < head + len) break;
        unsigned char *mask = b + head - 4, *data = b + head;
        out[put++] = b[0];
        out[put++] = b[1] & 127;
        if (head == 8) out[put++] = b[2], out[put++] = b[3];
        for (size_t i = 0; i < len; i++) out[put + i] = data[i] ^ mask[i & 3];
        put += len, at += head + len;
    }
    memmove(p->in, p->in + at, p->have -= at);
    return put && write(fd, out, put) != (ssize_t)put ? -1 : 0;
}

static int readable(int fd) {
    struct peer *p = peers[fd];
    for (;;) {
        size_t room = ROOM - 1 - p->have;
        if (!room) return -1;
        ssize_t n = read(fd, p->in + p->have, room);
        if (n < 0) return errno == EAGAIN ? 0 : -1;
        if (n == 0) return -1;
        p->have += n;
        if (!p->open && handshake(fd, p) < 0) return -1;
        if (p->open && echo(fd, p) < 0) return -1;
        if ((size_t)n < room) return 0;
    }
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: echo PORT\n");
        return 2;
    }
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
    for (;;) {
        int n = epoll_wait(ep, evs, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = evs[i].data.fd;
            if (fd != ls) {
                if (readable(fd) < 0) {
                    free(peers[fd]);
                    close(fd);
                }
                continue;
            }
            int c;
            while ((c = accept4(ls, 0, 0, SOCK_NONBLOCK)) >= 0) {
                if (c >= 65536 || !(peers[c] = calloc(1, sizeof **peers))) {
                    close(c);
                    continue;
                }
                setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                ev.events = EPOLLIN | EPOLLET, ev.data.fd = c;
                epoll_ctl(ep, EPOLL_CTL_ADD, c, &ev);
            }
        }
    }
}
