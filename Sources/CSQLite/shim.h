#pragma once
#include <sqlite3.h>

// SQLITE_TRANSIENT is a macro with a cast, which Swift does not import: SQLite copies what it is given.
static inline int sluice_bind_text(sqlite3_stmt *s, int index, const char *text, int length) {
    return sqlite3_bind_text(s, index, text, length, SQLITE_TRANSIENT);
}
static inline int sluice_bind_blob(sqlite3_stmt *s, int index, const void *bytes, int length) {
    // A null pointer would bind NULL instead of an empty blob.
    return length == 0 ? sqlite3_bind_zeroblob(s, index, 0) : sqlite3_bind_blob(s, index, bytes, length, SQLITE_TRANSIENT);
}
// Variadic, which Swift does not import. The log stays as it is when the last connection closes.
static inline int sluice_leave_log(sqlite3 *db) {
    return sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}
