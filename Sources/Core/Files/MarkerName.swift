/// The name of a file that marks another file as finished: `{name}.done`, `{stem}.ok`.
package struct MarkerName: Hashable, Sendable {
    package enum Part: String, Hashable, Sendable, CaseIterable {
        /// The whole name of the file.
        case name
        /// Its name without the last extension.
        case stem
    }

    package let part: Part
    private let before: [UInt8]
    private let after: [UInt8]
    /// The text as it was written.
    package let source: String

    /// - Returns: `nil` unless the text contains exactly one placeholder, and other characters.
    package init?(_ text: String) {
        guard let part = Part.allCases.first(where: { text.utf8Occurrences(of: "{\($0.rawValue)}").count == 1 }),
            let range = text.utf8Occurrences(of: "{\(part.rawValue)}").first
        else { return nil }
        let bytes = Array(text.utf8)
        before = Array(bytes[..<range.lowerBound])
        after = Array(bytes[range.upperBound...])
        let rest = before + after
        let forbidden = [UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: "/"), 0]
        guard !rest.isEmpty, !rest.contains(where: { forbidden.contains($0) }) else { return nil }
        self.part = part
        source = text
    }

    /// The names of all markers, as a glob.
    package var pattern: String {
        String(decoding: before, as: UTF8.self) + "*" + String(decoding: after, as: UTF8.self)
    }

    /// The marker of a file with this name.
    package func marker(of name: FilePath) -> FilePath {
        FilePath(bytes: before + (part == .name ? name : name.stem).bytes + after)
    }

    /// Whether a name is that of a marker, for any file.
    package func isMarker(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        guard name.count > before.count + after.count else { return false }
        for index in before.indices where name[index] != before[index] { return false }
        let start = name.count - after.count
        for index in after.indices where name[start + index] != after[index] { return false }
        return true
    }

    /// The name of the file to which a marker belongs; `nil` where the marker only gives the beginning of that name.
    package func file(of marker: FilePath) -> FilePath? {
        guard part == .name, marker.bytes.withUnsafeBufferPointer(isMarker) else { return nil }
        return FilePath(bytes: marker.bytes.dropFirst(before.count).dropLast(after.count))
    }
}

extension String {
    fileprivate func utf8Occurrences(of text: String) -> [Range<Int>] {
        let (bytes, wanted) = (Array(utf8), Array(text.utf8))
        guard bytes.count >= wanted.count else { return [] }
        return (0...(bytes.count - wanted.count)).compactMap {
            bytes[$0..<($0 + wanted.count)].elementsEqual(wanted) ? $0..<($0 + wanted.count) : nil
        }
    }
}
