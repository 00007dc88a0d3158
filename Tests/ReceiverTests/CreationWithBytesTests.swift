import Core
import TestKit
import Testing
import WebServer

@Suite("Creations with bytes at the receiver", .timeLimit(.minutes(Patience.minutes(1))))
struct CreationWithBytesTests {
    private static let content = noise(5000)
    private static let words = ["filename": "a", "sluiceId": "01.1", "sha256": sha256(content)]

    private func create(
        _ inbox: ReceiverFixture, _ body: [UInt8], of length: Int = 5000, _ words: [String: String] = words
    ) async throws -> Wire.Reply {
        let metadata = ReceiverFixture.metadata(words.mapValues { Array($0.utf8) })
        return try await inbox.ask(
            "POST", "/files/",
            [
                "Upload-Length": String(length), "Upload-Metadata": metadata,
                "Content-Type": ReceiverFixture.offsetType,
            ], body)
    }

    @Test("all bytes deliver the file at once; the same creation again is answered with the same upload")
    func whole() async throws {
        try await ReceiverFixture.open { inbox in
            let reply = try await create(inbox, Self.content)
            #expect(reply.status == 201 && reply.headers["upload-offset"] == "5000")
            #expect(try inbox.content("a") == Self.content)
            for body in [Self.content, []] {
                let again = try await create(inbox, body)
                #expect(again.status == 201 && again.headers["location"] == reply.headers["location"])
                #expect(again.headers["upload-offset"] == "5000")
            }
            #expect(try inbox.delivered() == ["a"] && inbox.unfinished() == 0)
        }
    }

    @Test("some of the bytes are kept, and a PATCH continues")
    func part() async throws {
        try await ReceiverFixture.open { inbox in
            let reply = try await create(inbox, Array(Self.content.prefix(2000)))
            #expect(reply.status == 201 && reply.headers["upload-offset"] == "2000")
            let location = try #require(reply.headers["location"])
            #expect(try await inbox.patch(location, at: 2000, Array(Self.content.dropFirst(2000))).status == 204)
            #expect(try inbox.content("a") == Self.content)
        }
    }

    @Test("bytes with another digest are not kept, and the upload is at its beginning")
    func damaged() async throws {
        try await ReceiverFixture.open { inbox in
            let reply = try await create(inbox, noise(5000, seed: 9))
            #expect(reply.status == 201 && reply.headers["upload-offset"] == "0")
            let location = try #require(reply.headers["location"])
            #expect(try await inbox.patch(location, at: 0, Self.content).status == 204)
            #expect(try inbox.content("a") == Self.content)
        }
    }

    @Test("a body that is too long, or breaks off, leaves nothing")
    func unusable() async throws {
        try await ReceiverFixture.open(maxSize: 6000) { inbox in
            #expect(try await create(inbox, noise(5001)).status == 413)
            #expect(try await create(inbox, noise(100), of: 6001).status == 413)
            #expect(try await create(inbox, noise(100), ["filename": "../a"]).status == 400)
            let wire = try Wire(port: inbox.port)
            try await wire.send(
                ReceiverFixture.head(
                    "POST", "/files/",
                    [
                        "Upload-Length": "5000", "Upload-Metadata": "filename YQ==", "Content-Length": "5000",
                        "Content-Type": ReceiverFixture.offsetType,
                    ]))
            try await wire.send(noise(1000))
            try await eventually("the bytes arrive") { try inbox.unfinished() == 1 }
            wire.closeAndWait()
            try await eventually("they are removed") { try inbox.unfinished() == 0 }
            #expect(try inbox.delivered() == [])
        }
    }

    @Test("a body of unknown length that is too long leaves nothing")
    func tooLongInChunks() async throws {
        try await ReceiverFixture.open { inbox in
            let wire = try Wire(port: inbox.port)
            try await wire.send(
                ReceiverFixture.head(
                    "POST", "/files/",
                    [
                        "Upload-Length": "5000", "Upload-Metadata": "filename YQ==", "Transfer-Encoding": "chunked",
                        "Content-Type": ReceiverFixture.offsetType,
                    ]))
            for size in [3000, 3000] {
                try await wire.send("\(String(size, radix: 16))\r\n")
                try await wire.send(noise(size))
                try await wire.send("\r\n")
            }
            try await wire.send("0\r\n\r\n")
            #expect(try await wire.reply().status == 413)
            #expect(try inbox.delivered() == [] && inbox.unfinished() == 0)
        }
    }

    @Test("content that the folder has is not kept twice")
    func held() async throws {
        try await ReceiverFixture.open { inbox in
            _ = try await create(inbox, Self.content)
            let reply = try await create(
                inbox, Self.content, ["filename": "a", "sluiceId": "02.1", "sha256": sha256(Self.content)])
            #expect(reply.status == 201 && reply.headers["upload-offset"] == "5000")
            #expect(try inbox.delivered() == ["a"] && inbox.unfinished() == 0)
        }
    }
}
