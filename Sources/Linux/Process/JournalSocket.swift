package import Core
internal import Glibc

/// A connection to journald by its native protocol: an entry has fields, and each of them can be searched for
/// (systemd's "Native Journal Protocol", https://systemd.io/JOURNAL_NATIVE_PROTOCOL/).
package final class JournalSocket: Sendable {
    /// journald's socket.
    package static let standard: FilePath = "/run/systemd/journal/socket"

    private let number: CInt
    private let path: FilePath

    /// - Returns: `nil` where no service listens there.
    package init?(_ path: FilePath = JournalSocket.standard) {
        number = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        self.path = path
        guard number >= 0 else { return nil }
        guard access(path.display, W_OK) == 0 else {
            close(number)
            return nil
        }
    }

    deinit { close(number) }

    /// Sends one datagram to the present listener: journald may have been restarted. Never waits.
    ///
    /// - Returns: Whether it was accepted. It is not when it is too long for a datagram, or journald is too slow.
    func send(_ fields: [(name: String, value: String)]) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        guard path.bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.bytes) }
        let message = fields.reduce(into: [UInt8]()) { Self.append($1.name, $1.value, to: &$0) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.bytes.count + 1)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                sendto(number, message, message.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT), address, length)
            }
        } == message.count
    }

    /// A value with a line break is preceded by its length, in 64 bits, the lowest byte first.
    static func append(_ name: String, _ value: String, to message: inout [UInt8]) {
        let (newline, value) = (UInt8(ascii: "\n"), Array(value.utf8))
        message += name.utf8
        if value.contains(newline) {
            message.append(newline)
            withUnsafeBytes(of: UInt64(value.count).littleEndian) { message += $0 }
        } else {
            message.append(UInt8(ascii: "="))
        }
        message += value
        message.append(newline)
    }

    /// The journal's name of a field: letters, digits and underscores, after a prefix of ours.
    static func name(of field: String) -> String {
        "SLUICE_" + String(field.uppercased().map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    }
}
