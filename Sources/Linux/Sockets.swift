internal import CLinux
internal import Glibc

/// What is asked of sockets that somebody else opened (libcurl). Nothing here fails loudly: each is a wish, and a
/// socket that cannot take it still carries bytes.
package enum Sockets {
    /// For a socket that will send files: little waits in it unsent, so that a stop stops, and a vanished peer is noticed.
    ///
    /// A full socket was seen to deliver 4.3 MB after it was closed; with 128 KiB not yet sent it is 0.13 MB. No fixed
    /// `SO_SNDBUF`: it would cap long paths.
    ///
    /// - Parameter patience: For how long sent bytes may stay without acknowledgement (`TCP_USER_TIMEOUT`, tcp(7)).
    package static func prepareForUpload(_ socket: CInt, patience: Duration) {
        let milliseconds = UInt32(clamping: patience.components.seconds * 1000)
        sluice_prepare_upload_socket(socket, milliseconds)
    }

    /// The next close throws away what was not sent and resets the connection (`SO_LINGER` 0, socket(7)).
    package static func resetOnClose(_ socket: CInt) { sluice_reset_on_close(socket) }

    /// The local TCP port, 0 where there is none.
    package static func localPort(_ socket: CInt) -> Int { Int(sluice_local_port(socket)) }
}
