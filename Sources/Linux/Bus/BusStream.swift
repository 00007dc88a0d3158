internal import Core

/// What is said over a connection to a bus, without the connection: bytes of the other end in, messages and bytes for the
/// other end out.
struct BusStream {
    /// Longer messages are passed over: what is asked for here takes a few KiB, and anybody on the machine may send us one.
    static let longest = 1 << 20
    /// Of the greeting, in which the bus speaks in lines.
    private static let longestLine = 4 << 10

    private enum Stage { case asked, believed, talking }
    private var stage = Stage.asked
    private var input: [UInt8] = []
    /// What is still to come of a message that is passed over.
    private var ignored = 0
    private var serial: UInt32 = 0
    /// Calls that wait for the greeting to end.
    private var calls: [UInt8] = []
    /// To be sent.
    var output: [UInt8]

    init() {
        // The bus asks the kernel who we are (unix(7), SO_PEERCRED), and so no number is named, which in a container could be
        // another one than the bus knows us by.
        output = [0] + Array("AUTH EXTERNAL\r\n".utf8)
    }

    /// Sends a call.
    ///
    /// - Returns: Its serial.
    mutating func send(_ call: BusMessage.Call) -> UInt32 {
        serial = serial == .max ? 1 : serial + 1
        if stage == .talking { output += call.bytes(serial: serial) } else { calls += call.bytes(serial: serial) }
        return serial
    }

    /// Takes what came.
    ///
    /// - Returns: The messages that are complete now, in order.
    /// - Throws: When it is not D-Bus, or the bus does not want us.
    mutating func take(_ bytes: some Collection<UInt8>) throws(BusError) -> [BusMessage] {
        let passed = min(ignored, bytes.count)
        ignored -= passed
        input += bytes.dropFirst(passed)
        while stage != .talking {
            guard let end = input.firstIndex(of: UInt8(ascii: "\n")) else {
                if input.count > Self.longestLine { throw BusError("what came over it is not D-Bus") }
                return []
            }
            // Its first word is what counts, and the rest is for a person.
            let line = String(decoding: input[..<end].prefix(200), as: UTF8.self)
            input.removeSubrange(...end)
            try greet(line)
        }
        return try messages()
    }

    /// The greeting (D-Bus specification, "Authentication Protocol"): the bus wants more, and there is no more than what
    /// the kernel told it.
    private mutating func greet(_ line: String) throws(BusError) {
        switch (stage, line.prefix { $0 != " " && $0 != "\r" }) {
        case (.asked, "DATA"):
            stage = .believed
            output += "DATA\r\n".utf8
        case (.asked, "OK"), (.believed, "OK"):
            stage = .talking
            output += Array("BEGIN\r\n".utf8) + calls
            calls = []
        default: throw BusError("it does not let this user in, and says “\(printable(line))”")
        }
    }

    private mutating func messages() throws(BusError) -> [BusMessage] {
        var found: [BusMessage] = []
        var rest = input[...]
        while let length = try BusMessage.length(rest) {
            if length > Self.longest {
                let passed = min(length, rest.count)
                rest.removeFirst(passed)
                ignored = length - passed
                continue
            }
            guard rest.count >= length else { break }
            if let message = try BusMessage.read(Array(rest.prefix(length))) { found.append(message) }
            rest.removeFirst(length)
        }
        input = Array(rest)
        return found
    }
}
