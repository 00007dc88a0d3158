internal import Core
internal import Glibc

/// The address of a bus: a Unix socket, under a name in the file system or without one ("abstract").
struct BusAddress: Hashable, Sendable {
    let name: [UInt8]
    let isAbstract: Bool

    /// `nil` for an abstract name, which has no file.
    var path: FilePath? { isAbstract ? nil : FilePath(bytes: name) }

    /// The address for people.
    var display: String { (isAbstract ? "@" : "") + FilePath(bytes: name).display }

    /// The system's bus: `$DBUS_SYSTEM_BUS_ADDRESS`, or the default of systemd and Debian.
    static var ofSystem: String {
        let named = getenv("DBUS_SYSTEM_BUS_ADDRESS").map { String(cString: $0) } ?? ""
        return named.isEmpty ? "unix:path=/run/dbus/system_bus_socket" : named
    }

    /// Reads addresses in D-Bus's form (D-Bus specification, "Server Addresses"):
    /// `unix:path=/a;unix:abstract=b,guid=…`, with `%20` for characters other than letters. Transports other than Unix
    /// sockets are skipped.
    static func parse(_ text: String) -> [BusAddress] {
        text.utf8.split(separator: UInt8(ascii: ";")).compactMap { entry -> BusAddress? in
            guard entry.starts(with: "unix:".utf8) else { return nil }
            for pair in entry.dropFirst(5).split(separator: UInt8(ascii: ",")) {
                for (key, isAbstract) in [("path=", false), ("abstract=", true)] where pair.starts(with: key.utf8) {
                    guard let name = unescaped(Array(pair.dropFirst(key.utf8.count))), !name.isEmpty,
                        !name.contains(0)
                    else { return nil }
                    return BusAddress(name: name, isAbstract: isAbstract)
                }
            }
            return nil
        }
    }

    private static func unescaped(_ text: [UInt8]) -> [UInt8]? {
        var out: [UInt8] = []
        var rest = text[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                out.append(byte)
                continue
            }
            guard let value = bytes(hexadecimal: String(decoding: rest.prefix(2), as: UTF8.self)), value.count == 1
            else { return nil }
            out += value
            rest = rest.dropFirst(2)
        }
        return out
    }
}
