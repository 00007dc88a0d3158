internal import CLinux
internal import Glibc

// Messages to and from the kernel's networking (netlink(7)), as bytes. Every length is checked.

/// Numbers of netlink(7), rtnetlink(7), linux/genetlink.h and linux/nl80211.h.
enum Netlink {
    static let routing: CInt = 0
    static let deviceEvents: CInt = 15
    static let generic: CInt = 16

    /// Types of messages.
    enum Kind {
        static let error: UInt16 = 2
        static let done: UInt16 = 3
        static let newLink: UInt16 = 16
        static let deleteLink: UInt16 = 17
        static let getLink: UInt16 = 18
        static let newAddress: UInt16 = 20
        static let deleteAddress: UInt16 = 21
        static let getAddress: UInt16 = 22
        static let newRoute: UInt16 = 24
        static let deleteRoute: UInt16 = 25
        static let getRoute: UInt16 = 26
        static let newNeighbour: UInt16 = 28
        static let deleteNeighbour: UInt16 = 29
        static let getNeighbour: UInt16 = 30
        static let newRule: UInt16 = 32
        static let deleteRule: UInt16 = 33
        static let getRule: UInt16 = 34
        /// From this one on, types belong to subsystems that netlink itself does not know; those below are about the
        /// transfer.
        static let first: UInt16 = 16
    }

    enum Flag {
        static let request: UInt16 = 0x1
        /// More messages follow, up to a ``Kind/done``.
        static let many: UInt16 = 0x2
        /// The list changed while it was being made.
        static let interrupted: UInt16 = 0x10
        static let dump: UInt16 = 0x300
        /// For a new object: it replaced another.
        static let replaces: UInt16 = 0x100
    }

    static let headerSize = 16
    /// AF_BRIDGE.
    static let bridgeFamily: UInt8 = 7
}

/// One message, without its header.
struct NetlinkMessage: Hashable {
    var type: UInt16
    var flags: UInt16
    var sequence: UInt32
    var body: ArraySlice<UInt8>

    /// The messages in a datagram.
    ///
    /// - Returns: `nil` when a length is impossible.
    static func all(in datagram: ArraySlice<UInt8>) -> [NetlinkMessage]? {
        var rest = datagram
        var messages: [NetlinkMessage] = []
        while !rest.isEmpty {
            guard let length = rest.number(at: 0, as: UInt32.self), length >= Netlink.headerSize,
                let length = Int(exactly: length), length <= rest.count,
                let type = rest.number(at: 4, as: UInt16.self), let flags = rest.number(at: 6, as: UInt16.self),
                let sequence = rest.number(at: 8, as: UInt32.self)
            else { return nil }
            let body = rest.prefix(length).dropFirst(Netlink.headerSize)
            messages.append(NetlinkMessage(type: type, flags: flags, sequence: sequence, body: body))
            rest = rest.dropFirst(aligned(length))
        }
        return messages
    }

    /// The attributes after the first `count` bytes of the body, by number. Of several with one number the first
    /// counts. An attribute that does not fit ends the list.
    func attributes(after count: Int) -> NetlinkAttributes { NetlinkAttributes(body.dropFirst(aligned(count))) }
}

/// Attributes by number: each consists of a length, a number and the value (netlink(7)).
struct NetlinkAttributes: Hashable {
    private var values: [UInt16: ArraySlice<UInt8>] = [:]

    init(_ bytes: ArraySlice<UInt8>) {
        var rest = bytes
        while let length = rest.number(at: 0, as: UInt16.self), let number = rest.number(at: 2, as: UInt16.self),
            length >= 4, Int(length) <= rest.count
        {
            // The two highest bits describe how the value is written.
            let number = number & 0x3FFF
            if values[number] == nil { values[number] = rest.prefix(Int(length)).dropFirst(4) }
            rest = rest.dropFirst(aligned(Int(length)))
        }
    }

    subscript(number: UInt16) -> ArraySlice<UInt8>? { values[number] }
    func number<N: FixedWidthInteger>(_ number: UInt16, as type: N.Type = N.self) -> N? {
        // An attribute of another length is not the expected one.
        values[number].flatMap { $0.count == MemoryLayout<N>.size ? $0.number(at: 0, as: N.self) : nil }
    }
    func nested(_ number: UInt16) -> NetlinkAttributes? { values[number].map { NetlinkAttributes($0) } }
    /// The text up to its zero byte.
    func text(_ number: UInt16) -> ArraySlice<UInt8>? { values[number].map { $0.prefix { $0 != 0 } } }
    var isEmpty: Bool { values.isEmpty }
    func contains(_ number: UInt16) -> Bool { values[number] != nil }
}

/// A question, to which attributes are appended.
struct NetlinkRequest {
    private(set) var bytes: [UInt8] = []

    /// - Parameter header: The bytes of the type before its attributes.
    init(_ type: UInt16, dump: Bool = false, header: [UInt8]) {
        bytes = raw(UInt32(0)) + raw(type) + raw(Netlink.Flag.request | (dump ? Netlink.Flag.dump : 0))
        bytes += raw(UInt32(1)) + raw(UInt32(0)) + header
        pad()
    }

    mutating func add(_ number: UInt16, _ value: some Collection<UInt8>) {
        bytes += raw(UInt16(clamping: value.count + 4)) + raw(number) + value
        pad()
    }

    mutating func add(_ number: UInt16, _ value: some FixedWidthInteger) { add(number, raw(value)) }

    static let sequence: UInt32 = 1

    private mutating func pad() {
        while bytes.count % 4 != 0 { bytes.append(0) }
        bytes.replaceSubrange(0..<4, with: raw(UInt32(clamping: bytes.count)))
    }
}

/// A socket for questions to the kernel. It is closed after one or a few questions.
struct NetlinkSocket: ~Copyable {
    private let descriptor: Descriptor

    init(_ protocolNumber: CInt = Netlink.routing) throws(SystemError) {
        descriptor = Descriptor(
            adopting: try systemCall("socket", on: "netlink") { sluice_netlink(protocolNumber, 1) })
    }

    /// - Parameter subject: The subject of the question, for the error.
    /// - Returns: The messages of the answer.
    /// - Throws: The kernel's error; `EBADMSG` for an invalid answer.
    borrowing func query(_ request: NetlinkRequest, about subject: String) throws(SystemError) -> [NetlinkMessage] {
        // A list that changed meanwhile is requested again, and the last one counts: on a machine that is never quiet
        // the next event causes the next reading.
        var answer: [NetlinkMessage] = []
        for _ in 0..<5 {
            let (messages, isWhole) = try queryOnce(request, about: subject)
            answer = messages
            if isWhole { break }
        }
        return answer
    }

    private borrowing func queryOnce(
        _ request: NetlinkRequest, about subject: String
    ) throws(SystemError) -> (messages: [NetlinkMessage], isWhole: Bool) {
        try descriptor.withNumber { number throws(SystemError) in
            _ = try systemCall("sendto", on: subject) {
                request.bytes.withUnsafeBytes { sluice_netlink_send(number, $0.baseAddress, $0.count) }
            }
        }
        var answer: [NetlinkMessage] = []
        var isWhole = true
        while true {
            for message in try receive(about: subject) where message.sequence == NetlinkRequest.sequence {
                if message.flags & Netlink.Flag.interrupted != 0 { isWhole = false }
                switch message.type {
                case Netlink.Kind.error, Netlink.Kind.done:
                    // The end of a list contains an error number as well, if it did not end well.
                    let code = message.body.number(at: 0, as: Int32.self) ?? 0
                    if code != 0 { throw SystemError(call: "netlink", subject: subject, code: 0 &- code) }
                    return (answer, isWhole)
                default:
                    if message.type >= Netlink.Kind.first { answer.append(message) }
                    if message.flags & Netlink.Flag.many == 0 { return (answer, isWhole) }
                }
            }
        }
    }

    /// The next datagram from the kernel.
    private borrowing func receive(about subject: String) throws(SystemError) -> [NetlinkMessage] {
        // The kernel makes none larger than 32 KiB, except for single messages.
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            var sender: UInt32 = 0
            let got = try descriptor.withNumber { number throws(SystemError) in
                try systemCall("recvfrom", on: subject) {
                    buffer.withUnsafeMutableBytes { sluice_netlink_receive(number, $0.baseAddress, $0.count, &sender) }
                }
            }
            if sender != 0 { continue }
            guard got <= buffer.count, let messages = NetlinkMessage.all(in: buffer[..<Int(got)]) else {
                throw SystemError(call: "recvfrom", subject: subject, code: EBADMSG)
            }
            return messages
        }
    }
}

extension ArraySlice<UInt8> {
    /// The number at `offset` from the start, in this machine's byte order; `nil` when there are too few bytes.
    func number<N: FixedWidthInteger>(at offset: Int, as type: N.Type = N.self) -> N? {
        guard offset >= 0, offset <= count, count - offset >= MemoryLayout<N>.size else { return nil }
        return withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: N.self) }
    }
}

/// The bytes of a number in this machine's byte order.
func raw(_ number: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }

/// Messages and attributes begin at multiples of four.
private func aligned(_ count: Int) -> Int { (count + 3) & ~3 }
