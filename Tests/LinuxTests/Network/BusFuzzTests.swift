import Core
import TestKit
import TestTraits
import Testing

@testable import Linux

@Suite("Fuzz: D-Bus", .ownThreads, .timeLimit(.minutes(Fuzz.minutes)))
struct BusFuzzTests {
    /// An answer to GetAll, as dbus-daemon passes it on: `{"Metered": <u 1>, "IpInterface": <s "eth0">, "Devices": <ao
    /// …>}`.
    private static func answer(isBigEndian: Bool) -> [UInt8] {
        var body = Writer(isBigEndian: isBigEndian)
        body.array(align: 8) { body in
            body.property("Metered", "u") { $0.number(1) }
            body.property("IpInterface", "s") { $0.text("eth0") }
            body.property("Devices", "ao") {
                $0.array(align: 4) { $0.text("/org/freedesktop/NetworkManager/Devices/1") }
            }
            body.property("Ssid", "ay") { $0.array(align: 1) { $0.bytes += [0xE9, 0, 1] } }
            body.property("Odd", "(xdbv)") { body in
                body.align(8)
                body.bytes += [UInt8](repeating: 0, count: 16)
                body.number(1)
                body.bytes += [1, UInt8(ascii: "y"), 0, 7]
            }
        }
        return message(2, isBigEndian: isBigEndian, "a{sv}", body.bytes)
    }

    private static func message(_ kind: UInt8, isBigEndian: Bool, _ signature: String, _ body: [UInt8]) -> [UInt8] {
        var head = Writer(isBigEndian: isBigEndian)
        head.bytes = [UInt8(ascii: isBigEndian ? "B" : "l"), kind, 1, 1]
        head.number(UInt32(body.count))
        head.number(77)
        head.array(align: 8) { head in
            for (code, type, value) in [(UInt8(7), "s", ":1.5"), (1, "o", "/a/b"), (8, "g", signature)] {
                head.align(8)
                head.bytes += [code, 1] + type.utf8 + [0]
                if type == "g" { head.bytes += [UInt8(value.utf8.count)] + value.utf8 + [0] } else { head.text(value) }
            }
            head.align(8)
            head.bytes += [5, 1, UInt8(ascii: "u"), 0]
            head.number(3)
        }
        head.align(8)
        return head.bytes + body
    }

    private struct Writer {
        let isBigEndian: Bool
        var bytes: [UInt8] = []

        init(isBigEndian: Bool) { self.isBigEndian = isBigEndian }

        mutating func align(_ size: Int) { while bytes.count % size != 0 { bytes.append(0) } }
        mutating func number(_ value: UInt32) {
            align(4)
            bytes += Self.bytes(value, isBigEndian)
        }
        mutating func text(_ text: String) {
            number(UInt32(text.utf8.count))
            bytes += Array(text.utf8) + [0]
        }
        mutating func array(align size: Int, _ body: (inout Writer) -> Void) {
            number(0)
            let place = bytes.count - 4
            align(size)
            let start = bytes.count
            body(&self)
            bytes.replaceSubrange(place..<(place + 4), with: Self.bytes(UInt32(bytes.count - start), isBigEndian))
        }
        mutating func property(_ name: String, _ type: String, _ body: (inout Writer) -> Void) {
            align(8)
            text(name)
            bytes += [UInt8(type.utf8.count)] + Array(type.utf8) + [0]
            body(&self)
        }
        private static func bytes(_ value: UInt32, _ isBigEndian: Bool) -> [UInt8] {
            let little = (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) }
            return isBigEndian ? little.reversed() : little
        }
    }

    @Test("a message is read in either byte order", arguments: [false, true])
    func order(isBigEndian: Bool) throws {
        var stream = BusStream()
        let greeting = Array("DATA\r\nOK 1234\r\n".utf8)
        let bytes = greeting + Self.answer(isBigEndian: isBigEndian)
        // As over a connection: in pieces of any size.
        for size in [1, 7, 4096] {
            stream = BusStream()
            var found: [BusMessage] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                found += try stream.parse(bytes[start..<min(bytes.count, start + size)])
            }
            let message = try #require(found.first)
            #expect(found.count == 1)
            #expect(
                message.kind == .reply && message.replyTo == 3 && message.sender == ":1.5" && message.path == "/a/b")
            let values = try #require(message.values?.first?.byName)
            #expect(values["Metered"]?.unsigned == 1)
            #expect(values["IpInterface"]?.string == "eth0")
            #expect(values["Devices"]?.objects == ["/org/freedesktop/NetworkManager/Devices/1"])
            #expect(values["Ssid"] == .bytes([0xE9, 0, 1]))
            #expect(values["Metered"]?.string == nil && values["IpInterface"]?.object == nil)
        }
        #expect(stream.output.starts(with: Array("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n".utf8)))
    }

    @Test("too long a message is skipped, and the next is read")
    func tooLong() throws {
        var stream = BusStream()
        _ = try stream.parse(Array("OK 1\r\n".utf8))
        let long = Self.message(4, isBigEndian: false, "ay", Array(repeating: 0, count: BusStream.longest))
        var found: [BusMessage] = []
        let bytes = long + Self.answer(isBigEndian: false)
        for start in stride(from: 0, to: bytes.count, by: 8192) {
            found += try stream.parse(bytes[start..<min(bytes.count, start + 8192)])
        }
        #expect(found.map(\.kind) == [.reply])
        #expect(throws: BusError.self) {
            _ = try stream.parse([UInt8(ascii: "l"), 4, 0, 1, 255, 255, 255, 255, 1, 0, 0, 0, 255, 255, 255, 255])
        }
    }

    @Test("nesting that is too deep or without space is malformed")
    func malformed() {
        func read(_ signature: String, _ bytes: [UInt8]) -> [BusValue]? {
            var reader = BusReader(bytes, isBigEndian: false, at: 0)
            return try? reader.values(signature)
        }
        let variant: [UInt8] = [1, UInt8(ascii: "v"), 0]
        let byte: [UInt8] = [1, UInt8(ascii: "y"), 0, 1]
        let deep = (0..<100).flatMap { _ in variant } + byte
        #expect(read("v", deep) == nil)
        #expect(read(String(repeating: "(", count: 100) + "y" + String(repeating: ")", count: 100), [1]) == nil)
        #expect(read("a()", [8, 0, 0, 0, 0, 0, 0, 0] + [UInt8](repeating: 0, count: 8)) == nil)
        for signature in ["a", "(", "{sv}", "a{s", "a{vs", "(y", "y)", "a{}", "z", "a{sv)"] {
            #expect(read(signature, [UInt8](repeating: 1, count: 64)) == nil, "\(signature)")
        }
        #expect(read("b", [2, 0, 0, 0]) == nil)
        #expect(read("s", [200, 255, 255, 255, 65, 0]) == nil)
        #expect(read("s", [1, 0, 0, 0, 0xFF, 0]) == nil)
        #expect(read("o", [4, 0, 0, 0] + Array("/a/ ".utf8) + [0]) == nil)
        #expect(read("o", [1, 0, 0, 0] + Array("/".utf8) + [0]) == [.text(UInt8(ascii: "o"), "/")])
        #expect(read("ay", [0xFF, 0xFF, 0xFF, 0x7F]) == nil)
    }

    @Test("any input on a connection ends in messages, or ends the connection")
    func stream() throws {
        let signal = Self.message(4, isBigEndian: false, "", [])
        let seeds = [false, true].map { Self.answer(isBigEndian: $0) + signal + Self.answer(isBigEndian: $0) }
        let mutator = Mutator(
            seeds, words: ["a{sv}", "a{oa{sa{sv}}}", "(((", "))", "v", "l\u{4}", "OK\r\n", "\0\0\0\u{7F}"])
        let service = BusService.networkManager(listsWiFi: true)
        try Fuzz("bus", rounds: 3000).each(mutator) { round in
            var stream = BusStream()
            _ = try stream.parse(Array("OK 1\r\n".utf8))
            var mirror = ServiceMirror(service)
            mirror.change(owner: ":1.5")
            var rest = round.input[...]
            do throws(BusError) {
                while !rest.isEmpty {
                    let size = Int.random(in: 1...200, using: &round.dice)
                    for message in try stream.parse(rest.prefix(size)) {
                        guard let value = message.values?.first else { continue }
                        // Every query gets this answer.
                        for question in mirror.nextQuestions() { mirror.apply(.value(value), to: question) }
                        mirror.invalidate(about: message.path ?? "/")
                    }
                    rest = rest.dropFirst(size)
                }
            } catch { return }
            let report = BusService.readNetworkManager(mirror)
            for name in report.devices.keys { try round.expect(!name.isEmpty, "a device without a name") }
            var modems = ServiceMirror(.modemManager)
            modems.change(owner: ":1.5")
            for (_, answer) in mirror.answers {
                for question in modems.nextQuestions() { modems.apply(answer, to: question) }
            }
            _ = BusService.readModemManager(modems)
        }
    }

    @Test("any greeting of a bus succeeds or ends the connection")
    func greeting() throws {
        let mutator = Mutator(
            [Array("DATA\r\nOK 0123456789abcdef\r\n".utf8), Array("REJECTED EXTERNAL\r\n".utf8)],
            words: ["OK", "DATA", "ERROR", "\r\n", "\r", "\n", "\0", " "])
        try Fuzz("bus greeting", rounds: 3000).each(mutator) { round in
            var stream = BusStream()
            do throws(BusError) { _ = try stream.parse(round.input) } catch {
                try round.expect(error.description.utf8.count < 20_000, "the error is too long")
            }
        }
    }
}
