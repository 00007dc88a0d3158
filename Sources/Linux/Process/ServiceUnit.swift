package import Core

/// The rights with which systemd starts a service, according to its unit and the drop-ins beside it (systemd.unit(5),
/// systemd.exec(5)).
package struct ServiceUnit: Hashable, Sendable {
    /// A name or a number; `nil` where none is set, which means root.
    package private(set) var user: String?
    package private(set) var group: String?
    /// From `SupplementaryGroups=`.
    package private(set) var groups: [String] = []

    /// The places of units; the first counts.
    package static let places: [FilePath] = [
        "/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
        "/lib/systemd/system",
    ]

    /// - Parameter name: For an instance, as in `sluice@door.service`, its template is read as well.
    /// - Returns: `nil` where there is no such unit, or it may not be read.
    package init?(_ name: String, in places: [FilePath] = places) {
        func read(_ path: FilePath) -> String? {
            // A missing or unreadable file is ignored.
            (try? Files.read(path, limit: 1 << 20)).map { String(decoding: $0, as: UTF8.self) }
        }
        let stem = name.prefix { $0 != "@" }
        let isInstance = name.contains("@") && !name.hasPrefix("\(stem)@.")
        let template = "\(stem)@" + (name.lastIndex(of: ".").map { name[$0...] } ?? "")
        let names = [name] + (isInstance ? [template] : [])
        let files = names.flatMap { name in places.map { $0.appending(FilePath(name)) } }
        guard let unit = files.lazy.compactMap({ read($0) }).first else { return nil }
        parse(unit)
        var dropIns: [FilePath: FilePath] = [:]
        for folder in names.flatMap({ name in places.map { $0.appending(FilePath(name + ".d")) } }) {
            for file in (try? Files.names(in: folder)) ?? [] where file.display.hasSuffix(".conf") {
                // A file with the same name in a place of higher rank replaces it.
                if dropIns[file] == nil { dropIns[file] = folder.appending(file) }
            }
        }
        for (_, path) in dropIns.sorted(by: { $0.key.display < $1.key.display }) {
            if let text = read(path) { parse(text) }
        }
    }

    private mutating func parse(_ text: String) {
        var isService = false
        // A backslash at the end of a line continues it on the next one.
        for line in text.replacing("\\\n", with: " ").split(separator: "\n") {
            let line = line.drop { $0 == " " || $0 == "\t" }
            if line.hasPrefix("[") { isService = line.hasPrefix("[Service]") }
            guard isService, !line.hasPrefix("#"), !line.hasPrefix(";"), let sign = line.firstIndex(of: "=") else {
                continue
            }
            let words = line[line.index(after: sign)...].split { $0 == " " || $0 == "\t" || $0 == "\r" }.map(
                String.init)
            switch line[..<sign].split(separator: " ").first {
            case "User": user = words.first
            case "Group": group = words.first
            // An empty value clears all before it.
            case "SupplementaryGroups": groups = words.isEmpty ? [] : groups + words
            default: break
            }
        }
    }
}
