/// A body of `multipart/form-data`, read strictly: errors that a lenient server ignores are reported here.
package struct MultipartForm: Sendable {
    package struct Part: Sendable {
        package var name: String
        /// `nil` for a text part.
        package var filename: [UInt8]?
        package var contentType: String?
        package var body: [UInt8]
    }

    package let parts: [Part]

    package struct Objection: Error, CustomStringConvertible {
        package let description: String
    }

    package init(_ body: [UInt8], contentType: String?) throws {
        let mark = "multipart/form-data; boundary="
        guard let contentType, contentType.hasPrefix(mark) else {
            throw Objection(description: "the type is \(contentType ?? "missing")")
        }
        let boundary = String(contentType.dropFirst(mark.count))
        guard boundary.filter({ $0 != "-" }).count >= 16, boundary.utf8.count <= 70 else {
            throw Objection(description: "the boundary \(boundary) is no good one")
        }
        let delimiter = Array("--\(boundary)".utf8)
        var rest = body[...]
        guard rest.starts(with: delimiter) else { throw Objection(description: "it does not begin with its boundary") }
        rest = rest.dropFirst(delimiter.count)
        var parts: [Part] = []
        let next = Array("\r\n".utf8) + delimiter
        while rest.starts(with: "\r\n".utf8) {
            rest = rest.dropFirst(2)
            guard let headEnd = Self.find(Array("\r\n\r\n".utf8), in: rest),
                let end = Self.find(next, in: rest[(headEnd + 4)...])
            else { throw Objection(description: "a part does not end") }
            parts.append(try Self.part(Array(rest[..<headEnd]), Array(rest[(headEnd + 4)..<end])))
            rest = rest[(end + next.count)...]
        }
        guard rest.elementsEqual("--\r\n".utf8) else {
            throw Objection(description: "it does not end with its boundary")
        }
        self.parts = parts
        if Set(parts.map(\.name)).count != parts.count { throw Objection(description: "a name comes twice") }
    }

    package func text(_ name: String) -> [UInt8]? { parts.first { $0.name == name && $0.filename == nil }?.body }
    package var file: Part? { parts.first { $0.filename != nil } }

    private static func part(_ head: [UInt8], _ body: [UInt8]) throws -> Part {
        var part = Part(name: "", body: body)
        var hasDisposition = false
        for line in split(head) {
            let disposition = Array("Content-Disposition: form-data; name=\"".utf8)
            if line.starts(with: disposition) {
                hasDisposition = true
                guard line.last == UInt8(ascii: "\"") else { throw Objection(description: "a name does not end") }
                let values = Array(line.dropFirst(disposition.count).dropLast())
                let between = Array("\"; filename=\"".utf8)
                if let cut = find(between, in: values[...]) {
                    part.name = String(decoding: values[..<cut], as: UTF8.self)
                    part.filename = Array(values[(cut + between.count)...])
                } else {
                    part.name = String(decoding: values, as: UTF8.self)
                }
                let quote = UInt8(ascii: "\"")
                if part.name.contains("\"") || part.filename?.contains(quote) == true {
                    throw Objection(description: "a quote stands in a name")
                }
            } else if line.starts(with: "Content-Type: ".utf8) {
                part.contentType = String(decoding: line.dropFirst("Content-Type: ".utf8.count), as: UTF8.self)
            } else {
                throw Objection(description: "a part has the header \(String(decoding: line, as: UTF8.self))")
            }
        }
        guard hasDisposition else { throw Objection(description: "a part has no name") }
        guard (part.filename != nil) == (part.contentType != nil) else {
            throw Objection(description: "a type belongs to files, and to them alone: \(part.name)")
        }
        return part
    }

    private static func split(_ head: [UInt8]) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var rest = head[...]
        while let cut = find([13, 10], in: rest) {
            lines.append(Array(rest[..<cut]))
            rest = rest[(cut + 2)...]
        }
        return lines + [Array(rest)]
    }

    /// - Returns: The first position of `needle`.
    private static func find(_ needle: [UInt8], in hay: ArraySlice<UInt8>) -> Int? {
        guard let first = needle.first, hay.count >= needle.count else { return nil }
        let last = hay.endIndex - needle.count
        return hay.withUnsafeBufferPointer { bytes in
            let base = hay.startIndex
            for at in 0...(last - base) where bytes[at] == first {
                if needle.indices.allSatisfy({ bytes[at + $0] == needle[$0] }) { return base + at }
            }
            return nil
        }
    }
}
