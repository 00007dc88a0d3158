/// The name of a host in the form in which names are compared: in lower case, and without a dot at its end, which only
/// says that no domain is to be added (RFC 1034, section 3.1).
package func comparableHostName(_ name: some StringProtocol) -> String {
    let lower = name.lowercased()
    return lower.utf8.last == UInt8(ascii: ".") && lower.utf8.count > 1 ? String(lower.dropLast()) : lower
}
