/* What Swift's libraries of Debian 13 need of its glibc and the glibc of Debian 12 (2.36) does not have. Only scripts/cross-arm64
   links this. The functions are hidden, so that libraries do not find them in the program in place of their own. */

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* Headers of 2.38 redirect the older functions to these, which also read binary numbers (0b1). */
HIDDEN long __isoc23_strtol(const char *text, char **end, int base) { return strtol(text, end, base); }

HIDDEN long long __isoc23_strtoll(const char *text, char **end, int base) { return strtoll(text, end, base); }

HIDDEN int __isoc23_sscanf(const char *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int count = vsscanf(text, format, arguments);
    va_end(arguments);
    return count;
}

HIDDEN size_t strlcpy(char *into, const char *text, size_t size) {
    size_t length = strlen(text);
    if (size > 0) {
        size_t copied = length < size ? length : size - 1;
        memcpy(into, text, copied);
        into[copied] = '\0';
    }
    return length;
}
