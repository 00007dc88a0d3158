import Core
import Testing

@testable import Linux

@Suite("Link byte counters")
struct LinkBytesTests {
    private func count(
        _ bytes: [String: UInt64], received: UInt64 = 0, after seconds: Int64 = 0, place: String = "boot-net"
    ) -> LinkBytes {
        LinkBytes(
            place: place, at: MonotonicTime(nanoseconds: seconds * 1_000_000_000),
            bytes: bytes.mapValues { LinkBytes.Counts(sent: $0, received: received) })
    }

    @Test("sent bytes are at most the sum of all links since, including new links")
    func most() {
        let before = count(["lo:1": 10, "eth0:2": 1000])
        #expect(count(["lo:1": 10, "eth0:2": 1000], after: 1).upperBound(since: before) == Spending.none)
        #expect(count(["lo:1": 15, "eth0:2": 1700], after: 30).upperBound(since: before) == Spending(bytes: 705))
        #expect(
            count(["lo:1": 10, "eth0:2": 1001, "wg0:9": 50], after: 1).upperBound(since: before) == Spending(bytes: 51))
    }

    @Test("received bytes are at most the sum of all links since")
    func received() {
        let before = count(["lo:1": 10, "eth0:2": 1000], received: 70)
        let after = count(["lo:1": 10, "eth0:2": 1000, "wg0:9": 0], received: 100, after: 1)
        #expect(after.upperBound(since: before) == Spending(received: 160))
        #expect(count(["lo:1": 10, "eth0:2": 1000], received: 69, after: 1).upperBound(since: before) == nil)
    }

    @Test(
        "after a reboot, in another namespace, after a removed or recreated link, or after long, the count is unknown")
    func unknown() {
        let before = count(["eth0:2": 1000], after: 10)
        #expect(count(["eth0:2": 1700], after: 11, place: "other-net").upperBound(since: before) == nil)
        #expect(count(["eth0:3": 1700], after: 11).upperBound(since: before) == nil)
        #expect(count([:], after: 11).upperBound(since: before) == nil)
        #expect(count(["eth0:2": 999], after: 11).upperBound(since: before) == nil)
        #expect(count(["eth0:2": 1700], after: 41).upperBound(since: before) == nil)
        #expect(count(["eth0:2": 1700], after: 9).upperBound(since: before) == nil)
    }

    @Test("counters are stored as text and parsed back; invalid text is none")
    func text() {
        let count = count(["eth0:2": .max, "veth=a,b@if3:17": 5], received: 9, after: 7)
        #expect(LinkBytes(count.text) == count)
        for text in [
            "", "place", "place x", "place 5 eth0", "place 5 eth0:2:x", "place 5 eth0:2:-1:0", "place 5 eth0:2:7",
        ] {
            #expect(LinkBytes(text) == nil, "\(text)")
        }
    }

    @Test("the kernel's table is parsed by name, with sent and received bytes")
    func table() {
        let table = """
            Inter-|   Receive                                                |  Transmit
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
                lo:  123      4    0    0    0     0          0         0      123       4    0    0    0     0       0          0
              eth0:99999999 1234    0    0    0     0          0         0  7654321    5678    0    0    0     0       0          0
            """
        #expect(
            LinkBytes.read(table) { $0 == "lo" ? 1 : 2 } == [
                "lo:1": LinkBytes.Row(received: 123, sent: LinkBytes.Sent(bytes: 123, packets: 4)),
                "eth0:2": LinkBytes.Row(
                    received: 99_999_999, sent: LinkBytes.Sent(bytes: 7_654_321, packets: 5678)),
            ])
    }

    @Test(
        "locally closed connections with unacknowledged bytes may still send", arguments: ["04", "09", "0B"])
    func unsent(_ state: String) {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        func line(_ state: String) -> String {
            "   0: 0100007F:1F90 0100007F:C350 \(state) 00000000:00000000 00:0 0 0 0\n"
        }
        #expect(!LinkBytes.hasUnsent(head))
        #expect(!LinkBytes.hasUnsent(head + ["01", "05", "06", "07", "08", "0A"].map(line).joined()))
        #expect(LinkBytes.hasUnsent(head + line("01") + line(state)))
    }

    @Test("this machine's kernel reports counters")
    func here() throws {
        let now = MonotonicTime(nanoseconds: 5)
        let count = try #require(LinkBytes(at: now))
        #expect(LinkBytes(count.text) == count)
        #expect(count.upperBound(since: count) == Spending.none)
    }

    @Test(
        "a counter of 32 bits that wraps is counted on; one that was reset counts from zero",
        arguments: [
            // 4,294,967,296 - 4,294,000,000 + 1,000
            (4_294_000_000, 1_000, 10, 968_296), (4_294_000_000, 1_000, 0, 968_296),
            // More than 1 Gbit/s: it was reset.
            (1_000_000_000, 1_000, 10, 1_000), (3_900_000_000, 1_000, 1, 1_000),
            // A counter of 64 bits does not wrap.
            (4_294_967_296, 1_000, 10, 1_000),
        ])
    func wraps(_ before: Int, _ now: Int, _ seconds: Int, _ carried: Int64) throws {
        let earlier = try #require(LinkBytes("boot 0 wwan0:9:\(before):5"))
        let later = try #require(LinkBytes("boot \(seconds)000000000 wwan0:9:\(now):7"))
        let received: Int64 = carried == 1_000 ? 7 : 2
        #expect(later.carried(by: [9], since: earlier) == Spending(bytes: carried, received: received))
    }
}
