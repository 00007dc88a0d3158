/// The end of what was written to a connection.
struct ConnectionTail {
    /// Bytes that were written and not acknowledged.
    var queued: Int64
    /// Bytes among them that have not left and never will.
    var kept: Int64
    /// TLS has more in hand than libcurl counts as sent: a record is cut only when it is whole.
    var isSecure: Bool
}
