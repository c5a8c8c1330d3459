/* A library to be loaded before others (LD_PRELOAD): the host name "two.test" has two addresses, of which this machine
 * has the second only (192.0.2.1 is reserved for documentation). Other names are unknown. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake_address {
    struct addrinfo info;
    struct sockaddr_in name;
} fake_address;

static fake_address fake_pair[2];

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int getaddrinfo(const char *restrict host, const char *restrict port, const struct addrinfo *restrict hints,
                         struct addrinfo **restrict found)
{
    static const char *const texts[2] = {"192.0.2.1", "127.0.0.1"};
    (void)hints;
    if (!host || strcmp(host, "two.test") != 0) return EAI_NONAME;
    for (int i = 0; i < 2; i++) {
        fake_address *address = &fake_pair[i];
        address->name = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
        inet_pton(AF_INET, texts[i], &address->name.sin_addr);
        address->info = (struct addrinfo){.ai_family = AF_INET,
                                          .ai_socktype = SOCK_STREAM,
                                          .ai_addrlen = sizeof address->name,
                                          .ai_addr = (struct sockaddr *)&address->name,
                                          .ai_next = i ? NULL : &fake_pair[1].info};
    }
    *found = &fake_pair[0].info;
    return 0;
}

EXPORTED void freeaddrinfo(struct addrinfo *found)
{
    (void)found;
}
