internal import CLinux
package import Core
internal import Glibc

/// The bytes that every link of this network namespace had sent and received at one moment, as the kernel counts them
/// (proc_net(5), `/proc/net/dev`).
///
/// The difference between two moments is the most that any process here can have sent and received.
package struct LinkBytes: Hashable, Sendable {
    /// Identifies this boot of the machine, and its network namespace.
    private let place: String
    private let at: MonotonicTime
    /// By name and number: a link that was created again has another number.
    private let bytes: [String: Counts]

    struct Counts: Hashable, Sendable {
        var sent: UInt64
        var received: UInt64

        static let none = Counts(sent: 0, received: 0)
    }

    /// The traffic that one link has sent.
    package struct Sent: Hashable, Sendable {
        package var bytes: UInt64
        /// As the driver counts them: the packets that it was given, or those that it made of them.
        package var packets: UInt64

        package init(bytes: UInt64, packets: UInt64) { (self.bytes, self.packets) = (bytes, packets) }
    }

    /// The counters of one link in the kernel's table.
    struct Row: Hashable {
        var received: UInt64
        var sent: Sent
    }

    /// After a longer time a counter of 32 bits, as in drivers of small machines, may have wrapped.
    private static let longest = Duration.seconds(30)

    /// - Parameter now: The time of the reading.
    /// - Returns: `nil` if `/proc` does not report it.
    package init?(at now: MonotonicTime) {
        guard let boot = Machine.boot, let space = Files.linkTarget("/proc/self/ns/net"),
            let table = try? Files.read("/proc/self/net/dev", limit: 1 << 20)
        else { return nil }
        place = "\(boot)-\(space.display)"
        at = now
        bytes = Self.read(String(decoding: table, as: UTF8.self)) { if_nametoindex($0) }
            .mapValues { Counts(sent: $0.sent.bytes, received: $0.received) }
    }

    init(place: String, at: MonotonicTime, bytes: [String: Counts]) {
        (self.place, self.at, self.bytes) = (place, at, bytes)
    }

    /// The traffic that links have sent so far, by name and number.
    ///
    /// - Parameter interface: Its name; `nil` for all that lead out of this machine.
    /// - Returns: `nil` if `/proc` does not report it.
    package static func sent(by interface: String?) -> [String: Sent]? {
        guard let table = try? Files.read("/proc/self/net/dev", limit: 1 << 20) else { return nil }
        let all = read(String(decoding: table, as: UTF8.self)) { if_nametoindex($0) }
        let meant = all.filter { link, _ in interface.map { link.hasPrefix("\($0):") } ?? !link.hasPrefix("lo:") }
        return meant.isEmpty ? nil : meant.mapValues(\.sent)
    }

    /// Whether the kernel may pass many segments to a link as one, with one header.
    ///
    /// - Parameter link: Its name and number, as in ``sent(by:)``.
    package static func joinsSegments(_ link: String) -> Bool {
        sluice_link_joins_segments(String(link.prefix { $0 != ":" })) != 0
    }

    /// Two header lines, then `name: received bytes, and seven more, sent bytes, sent packets, …`.
    static func read(_ table: String, number: (String) -> UInt32) -> [String: Row] {
        var rows: [String: Row] = [:]
        for line in table.split(separator: "\n").dropFirst(2) {
            guard let colon = line.firstIndex(of: ":") else { continue }
            let name = line[..<colon].drop { $0 == " " }
            let fields = line[line.index(after: colon)...].split(separator: " ")
            guard fields.count > 9, let received = UInt64(fields[0]), let sent = UInt64(fields[8]),
                let packets = UInt64(fields[9])
            else { continue }
            rows["\(name):\(number(String(name)))"] = Row(
                received: received, sent: Sent(bytes: sent, packets: packets))
        }
        return rows
    }

    // MARK: As text

    /// Names of links contain neither blanks nor colons.
    package var text: String {
        ([place, "\(at.nanoseconds)"]
            + bytes.sorted { $0.key < $1.key }.map { "\($0.key):\($0.value.sent):\($0.value.received)" })
            .joined(separator: " ")
    }

    /// - Returns: `nil` for a text of another form.
    package init?(_ text: String) {
        let fields = text.split(separator: " ")
        guard fields.count >= 2, let nanoseconds = Int64(fields[1]) else { return nil }
        var bytes: [String: Counts] = [:]
        for field in fields.dropFirst(2) {
            let parts = field.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count == 4, let sent = UInt64(parts[2]), let received = UInt64(parts[3]) else { return nil }
            bytes["\(parts[0]):\(parts[1])"] = Counts(sent: sent, received: received)
        }
        self.init(place: String(fields[0]), at: MonotonicTime(nanoseconds: nanoseconds), bytes: bytes)
    }

    // MARK: Differences

    /// The most that can have been sent and received since an earlier moment; `nil` where that is unknown: after a
    /// reboot, after a link has gone, or after a long time.
    package func upperBound(since earlier: LinkBytes) -> Spending? {
        let time = at.since(earlier.at)
        guard place == earlier.place, time >= .zero, time <= Self.longest else { return nil }
        func clamped(_ count: UInt64) -> Int64 { Int64(min(count, UInt64(Int64.max) / 1024)) }
        var most = Spending.none
        for (link, now) in bytes {
            let before = earlier.bytes[link] ?? .none
            guard now.sent >= before.sent, now.received >= before.received else { return nil }
            most += Spending(bytes: clamped(now.sent - before.sent), received: clamped(now.received - before.received))
        }
        return earlier.bytes.keys.allSatisfy { bytes[$0] != nil } ? most : nil
    }

    /// What these links have sent and received since an earlier moment. A link that was made again, and every link after
    /// a reboot, counts from zero; one that is gone counts nothing more. A counter that has become smaller was reset,
    /// unless it has 32 bits and the link can have carried so much that it has wrapped.
    ///
    /// - Parameter numbers: Those of the links.
    package func carried(by numbers: Set<Int32>, since earlier: LinkBytes) -> Spending {
        func clamped(_ count: UInt64) -> Int64 { Int64(min(count, UInt64(Int64.max) / 1024)) }
        var sum = Spending.none
        for (link, now) in bytes {
            guard let number = link.split(separator: ":").last.flatMap({ Int32($0) }), numbers.contains(number) else {
                continue
            }
            let known = place == earlier.place ? earlier.bytes[link] : nil
            let time = at.since(earlier.at)
            if let known, let sent = Self.growth(now.sent, since: known.sent, in: time),
                let received = Self.growth(now.received, since: known.received, in: time)
            {
                sum += Spending(bytes: clamped(sent), received: clamped(received))
            } else {
                sum += Spending(bytes: clamped(now.sent), received: clamped(now.received))
            }
        }
        return sum
    }

    /// - Returns: `nil` for a counter that was reset.
    private static func growth(_ now: UInt64, since before: UInt64, in time: Duration) -> UInt64? {
        if now >= before { return now - before }
        guard before < 1 << 32 else { return nil }
        let wrapped = (1 << 32) - before + now
        return wrapped <= fastest * UInt64(clamping: max(1, time.components.seconds + 1)) ? wrapped : nil
    }

    /// The most bytes that a link with counters of 32 bits carries in a second, as drivers of small machines have: 1
    /// Gbit/s.
    private static let fastest: UInt64 = 125_000_000

    /// Whether the kernel may still send bytes of TCP connections that no process owns any more. `true` where `/proc`
    /// does not tell.
    package static var isStillSending: Bool {
        for name in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] as [FilePath] {
            do {
                if hasUnsent(String(decoding: try Files.read(name, limit: 64 << 20), as: UTF8.self)) { return true }
            } catch {
                // Without IPv6 there is no such table.
                if !error.isMissing || name == "/proc/self/net/tcp" { return true }
            }
        }
        return false
    }

    /// FIN_WAIT1, LAST_ACK, CLOSING (include/net/tcp_states.h): closed here, and not completely acknowledged.
    static func hasUnsent(_ table: String) -> Bool {
        table.split(separator: "\n").dropFirst().contains { line in
            let fields = line.split(separator: " ", maxSplits: 4)
            return fields.count > 3 && ["04", "09", "0B"].contains(fields[3])
        }
    }
}
