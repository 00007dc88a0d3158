internal import CYAML

/// The text is not YAML, or not in the accepted subset: the problem and its place (line and column from 1).
struct YAMLSyntaxError: Error {
    var line: Int
    var column: Int
    var text: String
}

/// libyaml's event parser over a text in memory.
///
/// A final class, not `Sendable`: libyaml stores the address of its own state and of the text, so both are allocated
/// and stay where they are until the last event is read.
final class YAMLEvents {
    enum Kind {
        case scalar(String, isPlain: Bool)
        case alias(String)
        case listStart, listEnd, mappingStart, mappingEnd
        case documentStart, documentEnd, streamEnd
        /// The start of the stream, which carries no information.
        case other
    }

    struct Event {
        var kind: Kind
        var anchor: String?
        var tag: String?
        var start: (line: Int, column: Int)
        var end: (line: Int, column: Int)
    }

    private let parser: UnsafeMutablePointer<yaml_parser_t>
    private let text: UnsafeMutableBufferPointer<UInt8>

    /// - Parameter bytes: Valid UTF-8 without a byte order mark.
    init(_ bytes: [UInt8]) {
        text = .allocate(capacity: max(1, bytes.count))
        _ = text.initialize(from: bytes)
        parser = .allocate(capacity: 1)
        guard yaml_parser_initialize(parser) != 0 else { fatalError("yaml_parser_initialize: out of memory") }
        yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
        yaml_parser_set_input_string(parser, text.baseAddress, bytes.count)
    }

    deinit {
        yaml_parser_delete(parser)  // first: it still refers to the text
        parser.deallocate()
        text.deallocate()
    }

    func next() throws(YAMLSyntaxError) -> Event {
        var event = yaml_event_t()
        guard yaml_parser_parse(parser, &event) != 0 else { throw mistake }
        defer { yaml_event_delete(&event) }
        var result = Event(
            kind: .other, start: Self.place(event.start_mark), end: Self.place(event.end_mark))
        switch event.type {
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            let bytes = UnsafeBufferPointer(start: scalar.value, count: scalar.length)
            result.kind = .scalar(
                String(decoding: bytes, as: UTF8.self), isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE)
            result.anchor = Self.string(scalar.anchor)
            result.tag = Self.string(scalar.tag)
        case YAML_ALIAS_EVENT: result.kind = .alias(Self.string(event.data.alias.anchor) ?? "")
        case YAML_SEQUENCE_START_EVENT:
            result.kind = .listStart
            result.anchor = Self.string(event.data.sequence_start.anchor)
            result.tag = Self.string(event.data.sequence_start.tag)
        case YAML_MAPPING_START_EVENT:
            result.kind = .mappingStart
            result.anchor = Self.string(event.data.mapping_start.anchor)
            result.tag = Self.string(event.data.mapping_start.tag)
        case YAML_SEQUENCE_END_EVENT: result.kind = .listEnd
        case YAML_MAPPING_END_EVENT: result.kind = .mappingEnd
        case YAML_DOCUMENT_START_EVENT: result.kind = .documentStart
        case YAML_DOCUMENT_END_EVENT: result.kind = .documentEnd
        case YAML_STREAM_END_EVENT: result.kind = .streamEnd
        default: break
        }
        return result
    }

    private var mistake: YAMLSyntaxError {
        let mark = Self.place(parser.pointee.problem_mark)
        let problem = parser.pointee.problem.map { String(cString: $0) } ?? "out of memory"
        guard parser.pointee.error != YAML_READER_ERROR else {
            // The reader has the byte's offset and no mark; this is how far the scanner had come.
            let here = Self.place(parser.pointee.mark)
            return YAMLSyntaxError(line: here.line, column: here.column, text: problem)
        }
        let context = parser.pointee.context.map { String(cString: $0) }
        let began = Self.place(parser.pointee.context_mark)
        var text = problem
        if let context {
            text += ", \(context)"
            if began.line != mark.line { text += " that begins in line \(began.line)" }
        }
        return YAMLSyntaxError(line: mark.line, column: mark.column, text: text)
    }

    private static func place(_ mark: yaml_mark_t) -> (line: Int, column: Int) {
        (Int(mark.line) + 1, Int(mark.column) + 1)
    }

    private static func string(_ text: UnsafeMutablePointer<UInt8>?) -> String? { text.map { String(cString: $0) } }
}
