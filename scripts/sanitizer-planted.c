// A program with one planted flaw, for scripts/sanitize: if the sanitizer does not report it, a run without reports proves nothing.
//
//   planted race|overflow|leak
//
// `race` waits until it is killed, like the daemons of a test. Its report must be written before that.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int shared;
static void *volatile lost;

static void *count(void *unused) {
    (void)unused;
    for (int i = 0; i < 1000; i++) shared++;
    return NULL;
}

static int race(void) {
    pthread_t one, other;
    if (pthread_create(&one, NULL, count, NULL) || pthread_create(&other, NULL, count, NULL)) return 71;
    pthread_join(one, NULL);
    pthread_join(other, NULL);
    pause();
    return 0;
}

static int overflow(size_t length) {
    volatile char *bytes = malloc(length);
    if (!bytes) return 71;
    int after = bytes[length];
    free((void *)bytes);
    return after & 1;
}

static int leak(void) {
    lost = malloc(100);
    lost = NULL;
    return 0;
}

int main(int count, char **arguments) {
    if (count != 2) return 64;
    if (strcmp(arguments[1], "race") == 0) return race();
    if (strcmp(arguments[1], "overflow") == 0) return overflow((size_t)count + 5);
    if (strcmp(arguments[1], "leak") == 0) return leak();
    return 64;
}
