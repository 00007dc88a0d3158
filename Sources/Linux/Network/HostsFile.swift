package import Core
internal import Synchronization

/// The file of names that this machine knows by itself (hosts(5)).
package enum HostsFile {
    private struct Content {
        var status: FileStatus
        var addresses: [String: [IPAddress]]
    }

    private static let path: FilePath = "/etc/hosts"
    private static let content = Mutex<Content?>(nil)

    /// The addresses of a name; none for one that is not in the file, and where the file cannot be read.
    ///
    /// - Parameter name: In lower case.
    package static func addresses(of name: String) -> [IPAddress] {
        // Some systems have a link there, which `Files.read` refuses.
        guard let path = Files.real(path), let status = try? FileStatus(at: path) else { return [] }
        return content.withLock { content in
            if let content, content.status == status { return content.addresses[name] ?? [] }
            // It is read again when it changes.
            guard let bytes = try? Files.read(path, limit: 4 << 20) else { return [] }
            let read = Content(status: status, addresses: parse(String(decoding: bytes, as: UTF8.self)))
            content = read
            return read.addresses[name] ?? []
        }
    }

    /// Each line has an address and its names; `#` begins a comment.
    static func parse(_ text: String) -> [String: [IPAddress]] {
        var found: [String: [IPAddress]] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace)
            guard let first = words.first, let address = IPAddress(String(first)) else { continue }
            for name in words.dropFirst() { found[name.lowercased(), default: []].append(address) }
        }
        return found
    }
}
