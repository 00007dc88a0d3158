internal import Core

/// The protocol of a connection to a bus, without the connection: takes bytes from the other end, returns messages and
/// bytes for the other end.
struct BusStream {
    /// Longer messages are skipped: the answers needed here take a few KiB, and any process on the machine may send us
    /// a message.
    static let longest = 1 << 20
    /// For the greeting, in which the bus sends lines.
    private static let longestLine = 4 << 10

    private enum Stage { case authenticating, confirming, established }
    private var stage = Stage.authenticating
    private var input: [UInt8] = []
    /// Remaining bytes of a message that is being skipped.
    private var ignored = 0
    private var serial: UInt32 = 0
    /// Calls that wait for the greeting to end.
    private var calls: [UInt8] = []
    /// Bytes to be sent.
    var output: [UInt8]

    init() {
        // The bus asks the kernel for our user (unix(7), SO_PEERCRED). So no number is sent: in a container it could
        // differ from the one that the bus sees.
        output = [0] + Array("AUTH EXTERNAL\r\n".utf8)
    }

    /// Sends a call.
    ///
    /// - Returns: Its serial.
    mutating func send(_ call: BusMessage.Call) -> UInt32 {
        serial = serial == .max ? 1 : serial + 1
        if stage == .established { output += call.bytes(serial: serial) } else { calls += call.bytes(serial: serial) }
        return serial
    }

    /// Takes received bytes.
    ///
    /// - Returns: The messages that are complete now, in order.
    /// - Throws: When it is not D-Bus, or the bus rejects us.
    mutating func parse(_ bytes: some Collection<UInt8>) throws(BusError) -> [BusMessage] {
        let passed = min(ignored, bytes.count)
        ignored -= passed
        input += bytes.dropFirst(passed)
        while stage != .established {
            guard let end = input.firstIndex(of: UInt8(ascii: "\n")) else {
                if input.count > Self.longestLine { throw BusError("the data from it is not D-Bus") }
                return []
            }
            // The first word decides, and the rest is for a person.
            let line = String(decoding: input[..<end].prefix(200), as: UTF8.self)
            input.removeSubrange(...end)
            try handleAuthentication(line)
        }
        return try messages()
    }

    /// The greeting (D-Bus specification, "Authentication Protocol"). If the bus asks for more, there is no more data
    /// than the kernel reported to it.
    private mutating func handleAuthentication(_ line: String) throws(BusError) {
        switch (stage, line.prefix { $0 != " " && $0 != "\r" }) {
        case (.authenticating, "DATA"):
            stage = .confirming
            output += "DATA\r\n".utf8
        case (.authenticating, "OK"), (.confirming, "OK"):
            stage = .established
            output += Array("BEGIN\r\n".utf8) + calls
            calls = []
        default: throw BusError("it rejects this user, and says “\(printable(line))”")
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
