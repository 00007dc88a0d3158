import Core
import TestKit
import Testing

@testable import Linux

/// A message in the kernel's form.
struct NetlinkBytes {
    var type: UInt16
    var flags: UInt16 = 0
    var header: [UInt8]
    var attributes: [(UInt16, [UInt8])] = []

    var body: [UInt8] {
        attributes.reduce(into: header) { out, attribute in
            out += raw(UInt16(attribute.1.count + 4)) + raw(attribute.0) + attribute.1
            while out.count % 4 != 0 { out.append(0) }
        }
    }
    var bytes: [UInt8] {
        raw(UInt32(16 + body.count)) + raw(type) + raw(flags) + raw(UInt32(1)) + raw(UInt32(0)) + body
    }

    static func link(
        _ type: UInt16 = 16, _ index: Int32 = 7, flags: UInt32 = 0x1_0043, state: UInt8? = 6, medium: UInt16 = 1,
        family: UInt8 = 0, with more: [(UInt16, [UInt8])] = []
    ) -> NetlinkBytes {
        var message = NetlinkBytes(
            type: type, header: [family, 0] + raw(medium) + raw(index) + raw(flags) + raw(UInt32(0)))
        message.attributes = [(3, Array("wwan0\0".utf8))] + more
        if let state { message.attributes.append((16, [state])) }
        return message
    }

    static func route(
        _ type: UInt16 = 24, length: UInt8 = 0, made: UInt8 = 3, kind: UInt8 = 1, flags: UInt32 = 0,
        with attributes: [(UInt16, [UInt8])] = [(4, raw(Int32(7)))]
    ) -> NetlinkBytes {
        NetlinkBytes(
            type: type, header: [2, length, 0, 0, 254, made, 0, kind] + raw(flags), attributes: attributes)
    }

    func message() throws -> NetlinkMessage { try #require(NetlinkMessage.all(in: bytes[...])?.first) }
}

@Suite("Netlink messages")
struct NetlinkTests {
    @Test("several messages in a datagram are each found; a truncated one or a wrong length invalidates all")
    func framing() throws {
        let one = NetlinkBytes.link().bytes
        let two = NetlinkBytes.route().bytes
        #expect(NetlinkMessage.all(in: (one + two)[...])?.map(\.type) == [16, 24])
        #expect(NetlinkMessage.all(in: []) == [])
        for cut in 1..<one.count {
            #expect(NetlinkMessage.all(in: one.dropLast(cut)) == nil, "\(cut) bytes are cut off")
        }
        for length in [UInt32(0), 1, 15, UInt32(one.count + 1), 0x7FFF_FFFF, 0xFFFF_FFFF] {
            #expect(NetlinkMessage.all(in: (raw(length) + one.dropFirst(4))[...]) == nil, "length \(length)")
        }
    }

    @Test("attributes end at an impossible length, and earlier ones count")
    func attributes() {
        let good = raw(UInt16(8)) + raw(UInt16(4)) + raw(Int32(7))
        for length in [UInt16(0), 1, 3, 9, 0xFFFF] {
            let found = NetlinkAttributes((good + raw(length) + raw(UInt16(5)) + [1, 2, 3, 4])[...])
            #expect(found.number(4, as: Int32.self) == 7)
            #expect(!found.contains(5), "length \(length)")
        }
        #expect(NetlinkAttributes([1][...]).isEmpty)
        // A number in three bytes or five is not the expected one.
        let odd = NetlinkAttributes((raw(UInt16(7)) + raw(UInt16(4)) + [1, 2, 3, 0])[...])
        #expect(odd.number(4, as: Int32.self) == nil)
        let flagged = NetlinkAttributes((raw(UInt16(8)) + raw(UInt16(0x8004)) + raw(Int32(7)))[...])
        #expect(flagged.number(4, as: Int32.self) == 7, "the highest bits are not part of the number")
    }

    @Test("a request is padded, and contains its length")
    func question() {
        var question = NetlinkRequest(26, header: [2, 32, 0, 0, 0, 0, 0, 0] + raw(UInt32(0)))
        question.add(1, [192, 0, 2, 1])
        question.add(27, UInt8(6))
        #expect(question.bytes.count == 16 + 12 + 8 + 8)
        #expect(question.bytes.starts(with: raw(UInt32(44)) + raw(UInt16(26)) + raw(UInt16(1))))
        #expect(question.bytes.suffix(8) == (raw(UInt16(5)) + raw(UInt16(27)) + [6, 0, 0, 0])[...])
    }

    @Test(
        "a link can carry bytes if it is up, running, and its state is up or unknown",
        arguments: [
            (0x1_0043, 6, true), (0x1_0043, 0, true), (0x1_0043, nil, true), (0x1_0003, 6, false), (0x1_0042, 6, false),
            (0x1_0043, 2, false), (0x1_0043, 3, false), (0x1_0043, 5, false), (0x1_0043, 1, false), (0, 0, false),
            (0x1_0043, 200, false),
        ] as [(UInt32, UInt8?, Bool)])
    func usable(_ flags: UInt32, _ state: UInt8?, _ isUsable: Bool) throws {
        let facts = try #require(LinkMessage(try NetlinkBytes.link(flags: flags, state: state).message()))
        #expect(facts.isUsable == isUsable)
        #expect(facts.name == "wwan0")
        #expect(facts.index == 7)
    }

    @Test("a lower link counts, unless it is the link itself, a veth peer, or in another namespace")
    func below() throws {
        func below(_ attributes: [(UInt16, [UInt8])]) throws -> Int32? {
            try #require(LinkMessage(try NetlinkBytes.link(with: attributes).message())).below
        }
        let on = (UInt16(5), raw(Int32(3)))
        #expect(try below([on]) == 3)
        #expect(try below([(5, raw(Int32(7)))]) == nil)
        #expect(try below([(5, raw(Int32(0)))]) == nil)
        #expect(try below([on, (37, raw(Int32(0)))]) == nil)
        func kind(_ name: String) -> (UInt16, [UInt8]) {
            (18, raw(UInt16(name.utf8.count + 5)) + raw(UInt16(1)) + Array(name.utf8) + [0])
        }
        #expect(try below([on, kind("veth")]) == nil)
        #expect(try below([on, kind("vlan")]) == 3)
        #expect(try #require(LinkMessage(try NetlinkBytes.link(with: [kind("vlan")]).message())).kind == "vlan")
    }

    @Test("a message too short for its type is ignored")
    func short() throws {
        for type in [UInt16(16), 17, 20, 24, 25, 28] {
            for count in 0..<12 {
                let message = try NetlinkBytes(type: type, header: [UInt8](repeating: 0, count: count)).message()
                if count < 12 { #expect(LinkMessage(message) == nil) }
                if count < 12 { #expect(RouteMessage(message) == nil) }
                if count < 8 { #expect(Links.address(in: message) == nil) }
                #expect(Routes.hardwareAddress(in: message) == nil)
            }
        }
    }

    @Test("an address on a point-to-point link is the local end")
    func address() throws {
        func address(_ attributes: [(UInt16, [UInt8])], length: UInt8 = 32) throws -> String? {
            let header = [2, length, 0, 0] + raw(UInt32(7))
            return Links.address(in: try NetlinkBytes(type: 20, header: header, attributes: attributes).message())?
                .address.description
        }
        #expect(try address([(1, [10, 0, 0, 1]), (2, [10, 0, 0, 2])]) == "10.0.0.2/32")
        #expect(try address([(1, [10, 0, 0, 1])], length: 24) == "10.0.0.1/24")
        #expect(try address([(1, [10, 0, 0, 1])], length: 33) == nil)
        #expect(try address([(1, [10, 0, 0])]) == nil)
        #expect(try address([]) == nil)
    }

    @Test("a route has hops, each with a gateway of either family")
    func hops() throws {
        let link = (UInt16(4), raw(Int32(7)))
        let gateway = (UInt16(5), [UInt8]([10, 0, 0, 1]))
        let plain = try #require(RouteMessage(try NetlinkBytes.route(with: [link, gateway]).message()))
        #expect(plain.hops == [RouteMessage.Hop(link: 7, gateway: IPAddress("10.0.0.1"), isDead: false)])
        let via = (UInt16(18), raw(UInt16(10)) + (IPAddress("fe80::1")?.bytes ?? []))
        #expect(
            try RouteMessage(NetlinkBytes.route(with: [link, via]).message())?.hops.first?.gateway
                == IPAddress("fe80::1")
        )
        for flags in [UInt32(1), 16, 17] {
            #expect(try RouteMessage(NetlinkBytes.route(flags: flags).message())?.hops.first?.isDead == true)
        }
        let one = raw(UInt16(16)) + [16, 0] + raw(Int32(3)) + raw(UInt16(8)) + raw(UInt16(5)) + [10, 0, 0, 1]
        let two = raw(UInt16(8)) + [0, 0] + raw(Int32(4))
        let several = try RouteMessage(NetlinkBytes.route(with: [(9, one + two)]).message())
        #expect(several?.hops.map(\.link) == [3, 4])
        #expect(several?.hops.map(\.isDead) == [true, false])
        for length in [UInt16(0), 7, 9, 0xFFFF] {
            let cut = try RouteMessage(NetlinkBytes.route(with: [(9, one + raw(length) + two.dropFirst(2))]).message())
            #expect(cut?.hops.map(\.link) == [3], "length \(length)")
        }
    }

    @Test("a hardware address counts if confirmed, and not while requested or unanswered")
    func neighbour() throws {
        for (state, isKnown) in [
            (0x01, false), (0x02, true), (0x04, true), (0x08, true), (0x10, true), (0x20, false),
            (0x40, false), (0x80, true), (0x00, false),
        ] as [(UInt16, Bool)] {
            let message = try NetlinkBytes(
                type: 28, header: [2, 0, 0, 0] + raw(Int32(7)) + raw(state) + [0, 1],
                attributes: [(1, [10, 0, 0, 1]), (2, [2, 0, 0, 0, 0, 1])]
            ).message()
            #expect((Routes.hardwareAddress(in: message)?.description == "02:00:00:00:00:01") == isKnown, "\(state)")
        }
    }

    @Test("a Wi-Fi name is any bytes, and an empty one is none")
    func wireless() throws {
        func name(_ ssid: [UInt8]?, command: UInt8 = 7) throws -> (link: Int32, name: Wireless.Name)? {
            var message = NetlinkBytes(type: 0x1C, header: [command, 1, 0, 0], attributes: [(3, raw(Int32(7)))])
            if let ssid { message.attributes.append((52, ssid)) }
            return Wireless.name(in: try message.message())
        }
        #expect(try name([0xFF, 0, 0x41])?.name.ssid == [0xFF, 0, 0x41])
        #expect(try name([])?.name == Wireless.Name(ssid: nil))
        #expect(try name(nil)?.link == 7)
        #expect(try name([1], command: 8) == nil)
    }
}
