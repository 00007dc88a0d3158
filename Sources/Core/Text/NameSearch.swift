/// A part of a path that a person looks for. Upper and lower case are the same.
///
/// A text with escapes, as ``FilePath/display`` writes them, also finds the bytes that it displays: people copy names
/// from where they see them.
package struct NameSearch: Hashable, Sendable {
    /// A path is found by any of these.
    private let patterns: Set<Pattern>

    package init(_ text: String) {
        // As UploadFinder reads the name of a file.
        patterns = Set([FilePath(text), FilePath(display: text)].compactMap { $0 }.map { Pattern($0.bytes) })
    }

    package func matches(_ path: FilePath) -> Bool { path.bytes.withUnsafeBytes { matches($0) } }
    package func matches(_ path: UnsafeRawBufferPointer) -> Bool { patterns.contains { $0.matches(path) } }

    private struct Pattern: Hashable {
        /// For each letter in turn, the bytes of each of its forms.
        private var letters: [[[UInt8]]] = []
        /// Whether a match may begin with a byte: most places in a path are passed over by it.
        private var mayBegin = [Bool](repeating: false, count: 256)

        init(_ bytes: [UInt8]) {
            var rest = bytes[...]
            while let first = rest.first {
                // A byte that is not UTF-8 stands for itself.
                let (forms, length) =
                    Self.scalar(at: rest).map { (Self.forms(of: $0), UTF8.width($0)) } ?? ([[first]], 1)
                letters.append(forms)
                rest = rest.dropFirst(length)
            }
            for form in letters.first ?? [] { mayBegin[Int(form[0])] = true }
        }

        func matches(_ path: UnsafeRawBufferPointer) -> Bool {
            letters.isEmpty || path.indices.contains { mayBegin[Int(path[$0])] && matches(path, at: $0) }
        }

        private func matches(_ path: UnsafeRawBufferPointer, at start: Int) -> Bool {
            var place = start
            for forms in letters {
                let fitting = forms.first { form in
                    place + form.count <= path.count && form.indices.allSatisfy { path[place + $0] == form[$0] }
                }
                guard let fitting else { return false }
                place += fitting.count
            }
            return true
        }

        private static func scalar(at bytes: ArraySlice<UInt8>) -> Unicode.Scalar? {
            for length in 1...4 where length <= bytes.count {
                if let text = String(validating: bytes.prefix(length), as: UTF8.self) {
                    return text.unicodeScalars.first
                }
            }
            return nil
        }

        private static func forms(of scalar: Unicode.Scalar) -> [[UInt8]] {
            let upper = scalar.properties.uppercaseMapping
            let texts = [String(scalar), scalar.properties.lowercaseMapping, upper, upper.lowercased()]
            return Array(Set(texts.map { Array($0.utf8) }))
        }
    }
}
