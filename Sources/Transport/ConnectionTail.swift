/// The last bytes that were written to a connection.
struct ConnectionTail {
    /// Bytes that were written and not acknowledged.
    var queued: Int64
    /// Bytes among them that have not left and never will.
    var kept: Int64
    /// TLS holds more bytes than libcurl counts as sent: only whole records are written.
    var isSecure: Bool
}
