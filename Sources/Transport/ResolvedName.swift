internal import Core

/// The addresses of a name, which libcurl is not to look up by itself.
struct ResolvedName {
    var host: String
    var port: UInt16
    var addresses: [IPAddress]

    /// As CURLOPT_RESOLVE has it; with `+` it is believed for as long as an answer of libcurl's own.
    var entry: String {
        "+\(host):\(port):" + addresses.map { $0.isIPv6 ? "[\($0)]" : "\($0)" }.joined(separator: ",")
    }
}
