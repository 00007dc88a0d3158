import Core
import TestKit
import Testing

@testable import Linux

@Suite("Network events")
struct NetworkEventKindTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let what: String
        let bytes: [UInt8]
        let kind: NetworkEvents.Kind?
        var testDescription: String { what }
        init(_ what: String, _ message: NetlinkBytes, _ kind: NetworkEvents.Kind?) {
            self.what = what
            bytes = message.bytes
            self.kind = kind
        }
    }

    static let rows = [
        Row("a link that can carry bytes", .link(), .other),
        Row("a link that is down", .link(flags: 0x1002), .mayForbid),
        Row("a link without carrier", .link(flags: 0x1003, state: 2), .mayForbid),
        Row("a link that is gone", .link(17), .mayForbid),
        Row("a port of a bridge", .link(family: 7), .other),
        Row("a scan of a Wi-Fi driver", .link(with: [(11, [1, 2, 3, 4])]), nil),
        Row("a new default route", .route(), .mayForbid),
        Row("a new route to a network by a gateway", .route(length: 24), .mayForbid),
        Row("the route that an address brings with it", .route(length: 24, made: 2), .other),
        Row("the local route of an address", .route(length: 32, made: 4, kind: 2), .other),
        Row("a route that is gone", .route(25), .mayForbid),
        Row("a note of what was looked up", .route(flags: 0x200), nil),
        Row("the same, gone", .route(25, flags: 0x200), nil),
        Row("a new address", NetlinkBytes(type: 20, header: [2, 24, 0, 0] + raw(UInt32(7))), .other),
        Row("an address that is gone", NetlinkBytes(type: 21, header: [2, 24, 0, 0] + raw(UInt32(7))), .mayForbid),
        Row("a rule for routes", NetlinkBytes(type: 32, header: [UInt8](repeating: 0, count: 12)), .mayForbid),
        Row("a next hop", NetlinkBytes(type: 104, header: [UInt8](repeating: 0, count: 8)), .mayForbid),
        Row("a link too short to be read", NetlinkBytes(type: 16, header: [0, 0]), .mayForbid),
        Row("a route too short to be read", NetlinkBytes(type: 24, header: [0, 0]), .mayForbid),
        Row("an end of a list", NetlinkBytes(type: 3, header: raw(Int32(0))), nil),
    ]

    @Test("an event says whether routes may have changed", arguments: rows)
    func kind(_ row: Row) { #expect(NetworkEvents.kind(of: row.bytes[...]) == row.kind) }

    @Test("a replaced route is reported at once, whatever program set it")
    func replaced() {
        var message = NetlinkBytes.route(length: 24, made: 2)
        message.flags = 0x100
        #expect(NetworkEvents.kind(of: message.bytes[...]) == .mayForbid)
    }

    @Test("a router is reported when another device answers at its address, other neighbours are not")
    func routers() throws {
        let (known, other) = ([2, 0, 0, 0, 0, 1] as [UInt8], [2, 0, 0, 0, 0, 2] as [UInt8])
        let router = Neighbour(link: 7, address: try #require(IPAddress("10.0.0.1")))
        func kind(
            _ type: UInt16 = 28, link: Int32 = 7, state: UInt16 = 2, address: [UInt8] = [10, 0, 0, 1], is: [UInt8]?,
            after: [UInt8]?
        ) -> NetworkEvents.Kind? {
            let message = NetlinkBytes(
                type: type, header: [2, 0, 0, 0] + raw(link) + raw(state) + [0, 1],
                attributes: [(1, address)] + (`is`.map { [(UInt16(2), $0)] } ?? []))
            return NetworkEvents.kind(
                of: message.bytes[...], following: [router: after.flatMap { HardwareAddress($0[...]) }])
        }
        #expect(kind(is: other, after: known) == .mayForbid)
        #expect(kind(state: 0x80, is: other, after: known) == .mayForbid)
        #expect(kind(is: known, after: nil) == .mayForbid)
        #expect(kind(state: 4, is: known, after: known) == nil)
        #expect(kind(link: 8, is: other, after: known) == nil)
        #expect(kind(address: [10, 0, 0, 2], is: other, after: known) == nil)
        // The router was queried and has not answered, does not answer, or was removed.
        #expect(kind(state: 1, is: nil, after: known) == nil)
        #expect(kind(state: 0x20, is: other, after: known) == nil)
        #expect(kind(29, is: known, after: known) == nil)
    }

    @Test("of several events the strictest counts, and an unreadable one may be any")
    func several() {
        let good = NetlinkBytes.link().bytes
        #expect(NetworkEvents.kind(of: (good + NetlinkBytes.link(17).bytes + good)[...]) == .mayForbid)
        #expect(NetworkEvents.kind(of: good.dropLast(1)) == .mayForbid)
        #expect(NetworkEvents.kind(of: []) == nil)
    }
}
