internal import CMicroHTTPD
internal import Glibc
internal import Linux

/// The head of a request as libmicrohttpd holds it, read into values.
enum RequestHead {
    /// Bytes of request line and headers together. Longer ones are answered with 431.
    static let limit = 16 << 10

    /// Either the request, or the reply that refuses it.
    static func read(
        _ connection: OpaquePointer, method: UnsafePointer<CChar>, target: String, number: UInt64
    ) -> Result<WebRequest, Refusal> {
        guard sluice_mhd_header_size(connection) <= limit else {
            return .failure(Refusal(status: 431, text: "the headers are longer than \(limit) bytes"))
        }
        let cut = target.firstIndex(of: "?") ?? target.endIndex
        guard target.hasPrefix("/"), let path = PercentCoding.text(decoding: target[..<cut]),
            let query = PercentCoding.query(decoding: target[cut...].dropFirst())
        else { return .failure(Refusal(status: 400, text: "the path or query is not well formed")) }
        return .success(
            WebRequest(
                method: String(cString: method), path: path, rawTarget: target, query: query,
                headers: headers(of: connection), peer: peer(of: connection), number: number))
    }

    struct Refusal: Error {
        let status: Int
        let text: String
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

    private static func peer(of connection: OpaquePointer) -> WebPeer {
        let socket = sluice_mhd_socket(connection)
        if let peer = unixPeer(ofSocket: socket) { return WebPeer(user: peer.user, group: peer.group) }
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
        return WebPeer(address: result == 0 ? text : nil)
    }
}
