internal import CMicroHTTPD
internal import Core
internal import Glibc
internal import Linux

/// Reads the head of a request from libmicrohttpd into values.
enum RequestHead {
    /// Size of request line and headers together. Longer ones are answered with 431.
    static let limit = 16 << 10

    /// Either the request, without its peer yet, or the reply that refuses it.
    static func read(
        _ connection: OpaquePointer, method: UnsafePointer<CChar>, version: UnsafePointer<CChar>, target: String,
        number: UInt64
    ) -> Result<WebRequest, RefusedError> {
        guard sluice_mhd_header_size(connection) <= limit else {
            return .failure(RefusedError(status: 431, text: "the headers are longer than \(limit) bytes"))
        }
        let framing = framing(of: connection)
        // RFC 9112, section 3.2.
        let lacksHost = framing.hosts.isEmpty && String(cString: version) != "HTTP/1.0"
        if let fault = fault(of: connection, method, version) ?? framing.fault
            ?? (lacksHost ? "the request lacks Host" : nil)
        {
            return .failure(RefusedError(status: 400, text: fault, closes: true))
        }
        let target = Self.origin(of: target)
        let cut = target.firstIndex(of: "?") ?? target.endIndex
        guard target.hasPrefix("/"), !target.contains(" "), let path = PercentCoding.text(decoding: target[..<cut]),
            let query = PercentCoding.query(decoding: target[cut...].dropFirst())
        else { return .failure(RefusedError(status: 400, text: "the path or query is not well formed")) }
        return .success(
            WebRequest(
                method: String(cString: method), path: path, rawTarget: target, query: query,
                headers: headers(of: connection), peer: WebPeer(), number: number))
    }

    /// The path and query of a target, also of one that names the server as well, as for a proxy: every server has to
    /// accept that (RFC 9112, section 3.2.2).
    private static func origin(of target: String) -> String {
        let lowered = target.prefix(8).lowercased()
        guard let scheme = ["http://", "https://"].first(where: { lowered.hasPrefix($0) }) else { return target }
        let rest = target.dropFirst(scheme.count).drop { $0 != "/" && $0 != "?" }
        return rest.hasPrefix("/") ? String(rest) : "/" + rest
    }

    struct RefusedError: Error {
        let status: Int
        let text: String
        /// The end of this request is unknown: the connection carries no other one.
        var closes = false
    }

    /// Finds headers that two programs may read differently (RFC 9112, sections 2.2, 5.1 and 5.2).
    private static func fault(
        of connection: OpaquePointer, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>
    ) -> String? {
        switch sluice_mhd_head_fault(connection, method, version) {
        case sluice_mhd_head_fine: nil
        case sluice_mhd_head_blank_in_name: "the name of a header has a space in it or after it"
        case sluice_mhd_head_folded: "a header continues on a second line"
        default: "a line of the head does not end in CR and LF"
        }
    }

    /// How a request gives the end of its body (RFC 9112, section 6.3). libmicrohttpd uses the first indication; a
    /// proxy in front of us may use another, and then one client's body is another's request.
    private struct Framing {
        var lengths: Set<String> = []
        var encodings: [String] = []
        var hosts: [String] = []

        var fault: String? {
            if hosts.count > 1 { return "the request has Host more than once" }
            // RFC 3986, section 3.2.2: none of its characters may end a host, or begin another part.
            if let host = hosts.first,
                host.utf8.contains(where: { $0 <= 0x20 || $0 >= 0x7F || " /?#@,\\".utf8.contains($0) })
            {
                return "Host is not a name and port"
            }
            if lengths.count > 1 { return "the request has several values of Content-Length" }
            if let length = lengths.first {
                let isNumber = !length.isEmpty && length.utf8.allSatisfy(\.isDigit)
                guard isNumber, Int64(length) != nil else { return "Content-Length is not a number of bytes" }
                if !encodings.isEmpty { return "the request has Content-Length and Transfer-Encoding" }
            }
            guard encodings.isEmpty || encodings.count == 1 && encodings[0].lowercased() == "chunked" else {
                return "the only supported Transfer-Encoding is chunked"
            }
            return nil
        }
    }

    private static func framing(of connection: OpaquePointer) -> Framing {
        var framing = Framing()
        withUnsafeMutablePointer(to: &framing) { into in
            _ = MHD_get_connection_values(
                connection, .HEADER_KIND,
                { context, _, name, value in
                    guard let context, let name else { return .YES }
                    let framing = context.assumingMemoryBound(to: Framing.self)
                    let text = value.map { String(cString: $0) } ?? ""
                    switch String(cString: name).lowercased() {
                    case "content-length": framing.pointee.lengths.insert(text)
                    case "transfer-encoding": framing.pointee.encodings.append(text)
                    case "host": framing.pointee.hosts.append(text)
                    default: break
                    }
                    return .YES
                }, into)
        }
        return framing
    }

    private static func headers(of connection: OpaquePointer) -> [String: String] {
        var headers: [String: String] = [:]
        withUnsafeMutablePointer(to: &headers) { into in
            _ = MHD_get_connection_values(
                connection, .HEADER_KIND,
                { context, _, name, value in
                    guard let context, let name else { return .YES }
                    let headers = context.assumingMemoryBound(to: [String: String].self)
                    let key = String(cString: name).lowercased()
                    let text = value.map { String(cString: $0) } ?? ""
                    headers.pointee[key] = headers.pointee[key].map { "\($0), \(text)" } ?? text
                    return .YES
                }, into)
        }
        return headers
    }
}

extension WebPeer {
    init(ofSocket socket: CInt) {
        if let peer = unixPeer(ofSocket: socket) {
            self.init(user: peer.user, group: peer.group)
            return
        }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        var name = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        let result = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard getpeername(socket, address, &length) == 0 else { return CInt(-1) }
                return getnameinfo(address, length, &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST)
            }
        }
        let text = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        self.init(address: result == 0 ? text : nil)
    }
}
