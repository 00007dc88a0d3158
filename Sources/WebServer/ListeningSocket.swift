internal import Core
internal import Glibc
internal import Linux

/// A listening socket, and the file to remove when it closes.
struct ListeningSocket {
    /// Open; libmicrohttpd closes it.
    let number: CInt
    /// 0 for a Unix socket.
    let port: Int
    /// The name of a Unix socket, and the inode that distinguishes it from a successor's.
    let file: (path: FilePath, inode: UInt64)?
    /// Whether no interface had the address: connections arrive when one has it.
    let awaitsAddress: Bool

    init(_ address: ServerEndpoint) throws(WebServerError) {
        switch address {
        case .unix(let path, let mode): self = try Self.unix(path, mode: mode)
        case .tcp(let host, let port): self = try Self.tcp(host, port)
        }
    }

    private init(
        number: CInt, port: Int, file: (path: FilePath, inode: UInt64)? = nil, awaitsAddress: Bool = false
    ) {
        self.number = number
        self.port = port
        self.file = file
        self.awaitsAddress = awaitsAddress
    }

    /// Removes the name of a Unix socket, unless another server has replaced it meanwhile.
    func removeFile() {
        guard let file, let status = try? FileStatus(at: file.path), status.inode == file.inode else { return }
        // A failure does no harm: a stale name is replaced at the next start.
        try? Files.removeIfPresent(file.path)
    }

    // MARK: Unix

    private static func unix(_ path: FilePath, mode: UInt32) throws(WebServerError) -> ListeningSocket {
        func problem(_ text: String) -> WebServerError { WebServerError("listen on \(path.display): \(text)") }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        guard !path.isEmpty, path.bytes.count < capacity else {
            throw problem("the path of a Unix socket has at most \(capacity - 1) bytes; choose a shorter one")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.bytes) }
        let name = address
        func call(_ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt) -> CInt {
            withUnsafePointer(to: name) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
        let number = socket(AF_UNIX, streamSocket | closeOnExec, 0)
        guard number >= 0 else { throw problem(reason()) }
        var isKept = false
        defer { if !isKept { close(number) } }
        // bind(2) creates the name with the mode of the socket itself (minus the umask), so that the name is never
        // accessible to more users than it should be; changing the umask would affect every other thread.
        guard fchmod(number, mode_t(mode)) == 0 else { throw problem(reason()) }
        if call({ bind(number, $0, $1) }) != 0 {
            guard errno == EADDRINUSE else { throw problem(reason()) }
            // A file that cannot be examined must not be removed.
            guard let status = try? FileStatus(at: path), status.mode & 0o170000 == 0o140000 else {
                throw problem("a file that is not a socket is there; move it away")
            }
            let probe = socket(AF_UNIX, streamSocket | closeOnExec, 0)
            let isAnswered = call { connect(probe, $0, $1) } == 0 || errno != ECONNREFUSED
            close(probe)
            guard !isAnswered else { throw problem("another process listens there") }
            do { try Files.removeIfPresent(path) } catch { throw problem("\(error)") }
            guard call({ bind(number, $0, $1) }) == 0 else { throw problem(reason()) }
        }
        guard path.withCString({ chmod($0, mode_t(mode)) }) == 0, listen(number, backlog) == 0 else {
            throw problem(reason())
        }
        do {
            let status = try FileStatus(at: path)
            isKept = true
            return ListeningSocket(number: number, port: 0, file: (path, status.inode))
        } catch { throw problem("\(error)") }
    }

    // MARK: TCP

    private static func tcp(_ host: String, _ port: Int) throws(WebServerError) -> ListeningSocket {
        func problem(_ text: String) -> WebServerError { WebServerError("listen on \(host):\(port): \(text)") }
        guard (0...65_535).contains(port) else { throw problem("a port is a number from 0 to 65535") }
        var hints = addrinfo()
        hints.ai_socktype = streamSocket
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        var found: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(host, String(port), &hints, &found)
        guard result == 0, let first = found else { throw problem(String(cString: gai_strerror(result))) }
        defer { freeaddrinfo(found) }
        var last = "no address"
        // An address that comes later, as from DHCP at boot, must not end the daemon: where no address of the name can be
        // bound now, the kernel binds the first one before an interface has it (IP_FREEBIND, ip(7)).
        for awaitsAddress in [false, true] {
            var isAbsent = false
            for entry in sequence(first: first, next: { $0.pointee.ai_next }) {
                let number = socket(entry.pointee.ai_family, streamSocket | closeOnExec, 0)
                guard number >= 0 else {
                    last = reason()
                    continue
                }
                var on: CInt = 1
                let size = socklen_t(MemoryLayout<CInt>.size)
                setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &on, size)
                if awaitsAddress { setsockopt(number, CInt(IPPROTO_IP), IP_FREEBIND, &on, size) }
                if bind(number, entry.pointee.ai_addr, entry.pointee.ai_addrlen) == 0, listen(number, backlog) == 0 {
                    return ListeningSocket(
                        number: number, port: boundPort(number) ?? port, awaitsAddress: awaitsAddress)
                }
                isAbsent = isAbsent || errno == EADDRNOTAVAIL
                last = reason()
                close(number)
            }
            if !isAbsent { break }
        }
        throw problem(last)
    }

    private static func boundPort(_ number: CInt) -> Int? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(number, $0, &length) }
        }
        guard result == 0 else { return nil }
        // The port is at the same place in sockaddr_in and sockaddr_in6.
        return withUnsafeBytes(of: storage) { Int($0[2]) << 8 | Int($0[3]) }
    }
}

private let streamSocket = CInt(SOCK_STREAM.rawValue)
private let closeOnExec = CInt(SOCK_CLOEXEC.rawValue)
private let backlog: CInt = 128

private func reason() -> String { String(cString: strerror(errno)) }
