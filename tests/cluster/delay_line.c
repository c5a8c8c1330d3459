/* delay_line PREFIX PORTS DELAY_US MBIT
 *
 * An Ethernet switch in user space with a known delay and rate, for kernels without tc netem. It creates the tap
 * devices PREFIX0 to PREFIX(PORTS-1) with the addresses 02:00:00:00:00:00 onwards, prints "ready", and forwards frames
 * until its standard input ends. A frame leaves its port once the frames before it have left, at MBIT megabits a
 * second, and arrives DELAY_US later. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PORTS = 8, MOST_FRAMES = 4096, FRAME_BYTES = 9216, READ_AT_ONCE = 16 };

typedef struct frame {
    int64_t arrives_ns;
    size_t size;
    unsigned char bytes[FRAME_BYTES];
} frame;

/* A ring: `first` is the next frame to arrive. */
typedef struct port {
    int file;
    int64_t free_ns; /* when the last frame has left */
    size_t first, count;
    frame *frames;
} port;

static port ports[MOST_PORTS];
static int port_count;

static int64_t now_ns(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
}

static int open_port(port *p, const char *prefix, int number)
{
    struct ifreq request;
    memset(&request, 0, sizeof request);
    request.ifr_flags = IFF_TAP | IFF_NO_PI;
    snprintf(request.ifr_name, sizeof request.ifr_name, "%.10s%d", prefix, number);
    p->file = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (p->file < 0 || ioctl(p->file, TUNSETIFF, &request) < 0) return -1;
    request.ifr_hwaddr.sa_family = 1; /* ARPHRD_ETHER */
    memset(request.ifr_hwaddr.sa_data, 0, 6);
    request.ifr_hwaddr.sa_data[0] = 2;
    request.ifr_hwaddr.sa_data[5] = (char)number;
    if (ioctl(p->file, SIOCSIFHWADDR, &request) < 0) return -1;
    p->frames = calloc(MOST_FRAMES, sizeof *p->frames);
    return p->frames ? 0 : -1;
}

/* Takes frames from a port. A full ring drops frames, as a switch does. */
static void take_frames(port *p, int64_t delay_ns, double ns_per_byte)
{
    static unsigned char spare[FRAME_BYTES];
    for (int i = 0; i < READ_AT_ONCE; i++) {
        frame *f = p->count < MOST_FRAMES ? &p->frames[(p->first + p->count) % MOST_FRAMES] : NULL;
        const ssize_t size = read(p->file, f ? f->bytes : spare, FRAME_BYTES);
        if (size <= 0) return;
        const int64_t now = now_ns();
        if (!f) continue;
        if (p->free_ns < now) p->free_ns = now;
        p->free_ns += (int64_t)((double)size * ns_per_byte);
        f->size = (size_t)size;
        f->arrives_ns = p->free_ns + delay_ns;
        p->count++;
    }
}

/* Hands over what has arrived. Returns when the next frame arrives; INT64_MAX: no frame is on its way. */
static int64_t give_frames(void)
{
    int64_t next = INT64_MAX;
    for (int i = 0; i < port_count; i++) {
        port *p = &ports[i];
        while (p->count && p->frames[p->first].arrives_ns <= now_ns()) {
            const frame *f = &p->frames[p->first];
            for (int to = 0; to < port_count; to++) {
                const int is_for = f->bytes[0] & 1 ? to != i : f->bytes[5] == to;
                if (is_for && write(ports[to].file, f->bytes, f->size) < 0 && errno != EIO && errno != EAGAIN)
                    perror("delay_line");
            }
            p->first = (p->first + 1) % MOST_FRAMES;
            p->count--;
        }
        if (p->count && p->frames[p->first].arrives_ns < next) next = p->frames[p->first].arrives_ns;
    }
    return next;
}

int main(int argc, char **argv)
{
    struct pollfd waits[MOST_PORTS + 1] = {{.fd = STDIN_FILENO, .events = POLLIN}};
    port_count = argc == 5 ? atoi(argv[2]) : 0;
    if (port_count < 2 || port_count > MOST_PORTS || atof(argv[4]) <= 0) {
        fprintf(stderr, "usage: delay_line PREFIX PORTS DELAY_US MBIT\n");
        return 2;
    }
    const int64_t delay_ns = (int64_t)(atof(argv[3]) * 1000);
    const double ns_per_byte = 8000 / atof(argv[4]);
    prctl(PR_SET_TIMERSLACK, 1);
    for (int i = 0; i < port_count; i++) {
        if (open_port(&ports[i], argv[1], i) < 0) {
            perror("delay_line");
            return 1;
        }
        waits[i + 1] = (struct pollfd){.fd = ports[i].file, .events = POLLIN};
    }
    puts("ready");
    fflush(stdout);
    for (char byte;;) {
        const int64_t next = give_frames(), wait_ns = next == INT64_MAX ? INT64_MAX : next - now_ns();
        struct timespec limit = {wait_ns / 1000000000, wait_ns % 1000000000};
        if (wait_ns < 0) limit = (struct timespec){0, 0};
        if (ppoll(waits, (nfds_t)port_count + 1, next == INT64_MAX ? NULL : &limit, NULL) < 0 && errno != EINTR)
            return 1;
        if ((waits[0].revents & (POLLIN | POLLHUP)) && read(STDIN_FILENO, &byte, 1) <= 0) return 0;
        for (int i = 0; i < port_count; i++)
            if (waits[i + 1].revents & POLLIN) take_frames(&ports[i], delay_ns, ns_per_byte);
    }
}
