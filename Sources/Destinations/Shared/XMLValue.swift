internal import CExpat
internal import Core
internal import Transport

/// XML from a server. Only a few values are read: elements with their text, by their names without prefix. Attributes
/// and namespaces are ignored.
struct XMLValue: Sendable, Hashable {
    let name: String
    private(set) var children: [XMLValue] = []
    private(set) var content = ""

    private init(_ name: String) { self.name = name }

    /// The first element of this name below this one.
    subscript(name: String) -> XMLValue? { children.first { $0.name == name } }

    func all(_ name: String) -> [XMLValue] { children.filter { $0.name == name } }

    /// The text of the element; `nil` when it is only blanks.
    var text: String? {
        let start = content.drop(while: \.isWhitespace)
        guard let last = start.lastIndex(where: { !$0.isWhitespace }) else { return nil }
        return String(start[...last])
    }

    /// A whole number that is not negative.
    var whole: Int64? { text.flatMap { plainInteger($0) } }

    /// - Returns: The root; `nil` for a text that is no XML, is nested deeper than any sensible answer, or declares a
    ///   document type, with which a few bytes can become gigabytes.
    static func read(_ bytes: [UInt8]) -> XMLValue? {
        // White space may come before the declaration, from a service that keeps a slow answer alive.
        let bytes = bytes.drop { $0 == 0x20 || (0x09...0x0D).contains($0) }
        guard !bytes.isEmpty, bytes.count <= Int(CInt.max), let parser = XML_ParserCreate(nil) else { return nil }
        defer { XML_ParserFree(parser) }
        let reading = Reading(parser)
        return withExtendedLifetime(reading) {
            XML_SetUserData(parser, Unmanaged.passUnretained(reading).toOpaque())
            XML_SetElementHandler(
                parser, { data, name, _ in Reading.of(data)?.begin(name) }, { data, _ in Reading.of(data)?.end() })
            XML_SetCharacterDataHandler(parser) { Reading.of($0)?.add($1, $2) }
            XML_SetStartDoctypeDeclHandler(parser) { data, _, _, _, _ in Reading.of(data)?.stop() }
            let status = bytes.withContiguousStorageIfAvailable { bytes in
                bytes.withMemoryRebound(to: CChar.self) { XML_Parse(parser, $0.baseAddress, CInt($0.count), 1) }
            }
            return status == XML_STATUS_OK ? reading.root : nil
        }
    }

    /// The state of reading: the open elements, outermost first.
    private final class Reading {
        private let parser: XML_Parser
        private var open: [XMLValue] = []
        private(set) var root: XMLValue?

        private static let deepest = 32

        init(_ parser: XML_Parser) { self.parser = parser }

        static func of(_ data: UnsafeMutableRawPointer?) -> Reading? {
            data.map { Unmanaged<Reading>.fromOpaque($0).takeUnretainedValue() }
        }

        func stop() { XML_StopParser(parser, XML_Bool(0)) }

        func begin(_ name: UnsafePointer<XML_Char>?) {
            guard let name, open.count < Self.deepest else { return stop() }
            let whole = String(cString: name)
            open.append(XMLValue(whole.split(separator: ":").last.map(String.init) ?? whole))
        }

        func end() {
            guard let element = open.popLast() else { return }
            if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
        }

        func add(_ text: UnsafePointer<XML_Char>?, _ count: CInt) {
            guard let text, !open.isEmpty else { return }
            text.withMemoryRebound(to: UInt8.self, capacity: Int(count)) {
                open[open.count - 1].content += String(
                    decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self)
            }
        }
    }

    /// Escapes a text for an element or an attribute. Characters that XML cannot represent are left out.
    static func escaped(_ text: String) -> String {
        text.unicodeScalars.reduce(into: "") { out, scalar in
            switch scalar {
            case "&": out += "&amp;"
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "\"": out += "&quot;"
            case "\r": out += "&#13;"
            case _ where scalar.value < 0x20 && scalar != "\n" && scalar != "\t": break
            default: out.unicodeScalars.append(scalar)
            }
        }
    }
}
