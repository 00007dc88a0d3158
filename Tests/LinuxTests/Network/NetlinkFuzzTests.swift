import Core
import TestKit
import TestTraits
import Testing

@testable import Linux

@Suite("Fuzz: netlink", .ownThreads, .timeLimit(.minutes(Fuzz.minutes)))
struct NetlinkFuzzTests {
    @Test("damaged messages end in facts or in none")
    func damaged() throws {
        let seeds = [
            NetlinkBytes.link(
                with: [(10, raw(Int32(3))), (18, raw(UInt16(9)) + raw(UInt16(1)) + Array("vlan\0".utf8))]),
            NetlinkBytes.route(with: [
                (4, raw(Int32(7))), (5, [10, 0, 0, 1]), (9, raw(UInt16(8)) + [0, 0] + raw(Int32(4))),
            ]),
            NetlinkBytes(type: 20, header: [2, 24, 0, 0] + raw(UInt32(7)), attributes: [(1, [10, 0, 0, 1])]),
            NetlinkBytes(
                type: 28, header: [2, 0, 0, 0] + raw(Int32(7)) + raw(UInt16(2)) + [0, 1],
                attributes: [(1, [10, 0, 0, 1]), (2, [1, 2, 3, 4, 5, 6])]),
            NetlinkBytes(type: 0x1C, header: [7, 1, 0, 0], attributes: [(3, raw(Int32(7))), (52, [1, 2])]),
        ].map(\.bytes)
        let mutator = Mutator(seeds, words: ["\0\0\0\0", "\u{7F}\u{7F}", "\u{4}\0", "\u{10}\0\0\0", "\0"])
        try Fuzz("netlink", rounds: 3000).each(mutator) { round in
            let kind = NetworkEvents.kind(of: round.input[...])
            guard let messages = NetlinkMessage.all(in: round.input[...]) else {
                return try round.expect(kind == .mayForbid, "an unreadable message is not reported")
            }
            try round.expect(messages.count <= round.input.count / 16, "\(messages.count) messages")
            for message in messages {
                if let facts = RouteMessage(message) {
                    try round.expect(facts.hops.count <= 1 + message.body.count / 8, "\(facts.hops.count) hops")
                }
                if let address = Links.address(in: message) {
                    try round.expect(address.address.prefix <= 128, "\(address)")
                }
                if let facts = LinkMessage(message) {
                    try round.expect(facts.below != facts.index, "the link is below itself")
                }
                _ = Routes.hardwareAddress(in: message)
                _ = Routes.neighbour(in: message)
                _ = Wireless.name(in: message)
            }
        }
    }
}
