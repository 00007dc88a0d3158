import Core
import Credentials
import Linux
import TestKit
import Testing
import Transport

@testable import Destinations

@Suite("Indivisible pieces")
struct IndivisibleRequestTests {
    private static let tools = DestinationTools(
        transport: Transport(), secrets: SecretReader(), clocks: SystemClocks(), name: "archive", log: { _ in })
    private static let mib: Int64 = 1 << 20

    private static func make(_ type: String, _ values: [String: SettingValue]) throws -> any Destination {
        let kind = try #require(DestinationTable.builtIn.first { $0.type.name == type })
        return try kind.make(values, tools)
    }

    private static func bucket(_ part: Int64, single: Int64) throws -> any Destination {
        try make(
            "s3",
            [
                "endpoint": .text("http://127.0.0.1:9"), "bucket": .text("bucket"),
                "access_key": .secret(.literal("AK")),
                "secret_key": .secret(.literal("SK")), "part_size": .bytes(part * mib),
                "single_up_to": .bytes(single * mib),
            ])
    }

    @Test(
        "for a bucket: a part, or a file in one request, with the key that makes it smaller, down to the smallest part")
    func bucket() throws {
        let destination = try Self.bucket(16, single: 8)
        func piece(_ size: Int64?) -> IndivisibleRequest? { destination.uncutPiece(ofSize: size.map { $0 * Self.mib }) }
        #expect(piece(100) == IndivisibleRequest(bytes: 16 * Self.mib, keys: ["part_size"]))
        #expect(piece(12) == IndivisibleRequest(bytes: 12 * Self.mib, keys: ["part_size"]))
        #expect(piece(8) == IndivisibleRequest(bytes: 8 * Self.mib, keys: ["single_up_to", "part_size"]))
        #expect(piece(3) == IndivisibleRequest(bytes: 3 * Self.mib))
        #expect(piece(nil) == IndivisibleRequest(bytes: 16 * Self.mib, keys: ["part_size"]))
        let whole = try Self.bucket(5, single: 64)
        #expect(
            whole.uncutPiece(ofSize: 60 * Self.mib) == IndivisibleRequest(bytes: 60 * Self.mib, keys: ["single_up_to"]))
        #expect(whole.uncutPiece(ofSize: nil) == IndivisibleRequest(bytes: 64 * Self.mib, keys: ["single_up_to"]))
        #expect(try Self.bucket(5, single: 5).uncutPiece(ofSize: nil) == IndivisibleRequest(bytes: 5 * Self.mib))
    }

    @Test("for a form: a block, or the last one, if that includes the rest")
    func form() throws {
        let values: [String: SettingValue] = [
            "url": .text("http://127.0.0.1:9"), "preset": .text("resumable"), "block.size": .bytes(4 * Self.mib),
            "block.rule": .text("merge"),
        ]
        let merged = try Self.make("chunked-form", values)
        #expect(
            merged.uncutPiece(ofSize: 11 * Self.mib) == IndivisibleRequest(bytes: 7 * Self.mib, keys: ["block.size"]))
        #expect(merged.uncutPiece(ofSize: nil) == IndivisibleRequest(bytes: 8 * Self.mib - 1, keys: ["block.size"]))
        let short = try Self.make("chunked-form", values.merging(["block.rule": .text("short")]) { $1 })
        #expect(
            short.uncutPiece(ofSize: 11 * Self.mib) == IndivisibleRequest(bytes: 4 * Self.mib, keys: ["block.size"]))
    }

    @Test("a destination whose requests may end anywhere has no indivisible piece")
    func offset() throws {
        let tus = try Self.make("tus", ["url": .text("http://127.0.0.1:9/files")])
        #expect(tus.uncutPiece(ofSize: 100 * Self.mib) == nil && tus.uncutPiece(ofSize: nil) == nil)
    }
}
