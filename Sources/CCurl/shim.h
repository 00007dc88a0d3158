#pragma once
#include <curl/curl.h>

// Swift cannot call variadic C. One inline function for each argument type that curl documents;
// the name repeats the type, so that a reader can hold it against the manual page of the option.
static inline CURLcode sluice_set_long(CURL *h, CURLoption o, long v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode sluice_set_off(CURL *h, CURLoption o, curl_off_t v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode sluice_set_string(CURL *h, CURLoption o, const char *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode sluice_set_pointer(CURL *h, CURLoption o, void *v) { return curl_easy_setopt(h, o, v); }
static inline CURLcode sluice_set_list(CURL *h, CURLoption o, struct curl_slist *v) { return curl_easy_setopt(h, o, v); }

// curl's callbacks, one function for each kind, so that Swift passes a function and no pointer to one.
static inline CURLcode sluice_set_bytes_function(CURL *h, CURLoption o, size_t (*f)(char *, size_t, size_t, void *)) {
    return curl_easy_setopt(h, o, f);
}
static inline CURLcode sluice_set_seek_function(CURL *h, int (*f)(void *, curl_off_t, int)) {
    return curl_easy_setopt(h, CURLOPT_SEEKFUNCTION, f);
}
static inline CURLcode sluice_set_progress_function(
    CURL *h, int (*f)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t)) {
    return curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, f);
}
static inline CURLcode sluice_set_socket_function(CURL *h, int (*f)(void *, curl_socket_t, curlsocktype)) {
    return curl_easy_setopt(h, CURLOPT_SOCKOPTFUNCTION, f);
}
static inline CURLcode sluice_set_open_function(
    CURL *h, curl_socket_t (*f)(void *, curlsocktype, struct curl_sockaddr *)) {
    return curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, f);
}
static inline CURLcode sluice_set_close_function(CURL *h, int (*f)(void *, curl_socket_t)) {
    return curl_easy_setopt(h, CURLOPT_CLOSESOCKETFUNCTION, f);
}
static inline CURLcode sluice_set_ready_function(CURL *h, int (*f)(void *, char *, char *, int, int)) {
    return curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, f);
}
static inline CURLcode sluice_set_debug_function(CURL *h, int (*f)(CURL *, curl_infotype, char *, size_t, void *)) {
    return curl_easy_setopt(h, CURLOPT_DEBUGFUNCTION, f);
}
static inline CURLcode sluice_get_long(CURL *h, CURLINFO i, long *v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode sluice_get_off(CURL *h, CURLINFO i, curl_off_t *v) { return curl_easy_getinfo(h, i, v); }
static inline CURLcode sluice_get_pointer(CURL *h, CURLINFO i, void **v) { return curl_easy_getinfo(h, i, (char **)v); }
static inline CURLMcode sluice_multi_set_long(CURLM *m, CURLMoption o, long v) { return curl_multi_setopt(m, o, v); }
/// libcurl copies the bytes.
static inline CURLcode sluice_set_blob(CURL *h, CURLoption o, const void *bytes, size_t count) {
    struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
    return curl_easy_setopt(h, o, &blob);
}
/// A cache of `data` of its own for the easy handles that use `s`.
static inline CURLSHcode sluice_share(CURLSH *s, curl_lock_data data) {
    return curl_share_setopt(s, CURLSHOPT_SHARE, data);
}
/// The result that a message of type CURLMSG_DONE carries in its union.
static inline CURLcode sluice_message_result(const CURLMsg *m) { return m->data.result; }
