internal import Core

/// The addresses of a name that libcurl must not look up itself.
struct ResolvedName {
    var host: String
    var port: UInt16
    var addresses: [IPAddress]

    /// In the form of CURLOPT_RESOLVE; with `+` it is valid for as long as an answer of libcurl's own.
    var entry: String {
        "+\(host):\(port):" + addresses.map { $0.isIPv6 ? "[\($0)]" : "\($0)" }.joined(separator: ",")
    }
}
