import Core
import TestKit
import TestTraits
import Testing
import Transport

@testable import Destinations

/// Lists in pages. Servers differ in where a page begins.
@Suite("s3: long lists of third-party servers", .needsPackages, .timeLimit(.minutes(Patience.minutes(5))))
struct S3ListTests {
    /// Does something this many times, eight in parallel.
    private func times(_ count: Int, _ body: @escaping @Sendable (Int) async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                if number >= 8 { try await group.next() }
                group.addTask { try await body(number) }
            }
            try await group.waitForAll()
        }
    }

    @Test("every object is listed once", arguments: Tier.onlyInFull(S3Maker.here))
    func objects(_ maker: S3Maker) async throws {
        try await S3End.open(maker) { end in
            // A page has 200.
            let names = (0..<401).map { "a b/\($0) é+.mp4" }
            @Sendable func put(_ name: String) async throws {
                let answer = try await end.ask("PUT", FilePath(name), [], [1])
                try #require(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
            }
            // If keys are paths, the first upload creates the folder: some servers fail when two requests would create
            // it at once.
            try await put(names[0])
            try await times(names.count - 1) { number in try await put(names[number + 1]) }
            var (found, mark): ([String], String?) = ([], nil)
            repeat {
                let page = try #require(try await end.destination.list(after: mark))
                found += page.items.map(\.id)
                mark = page.next
            } while mark != nil
            #expect(found.sorted() == names.sorted())
        }
    }

    @Test("every unfinished upload is listed once", arguments: Tier.onlyInFull(S3Maker.here.filter(\.listsManyUploads)))
    func uploads(_ maker: S3Maker) async throws {
        try await S3End.open(maker) { end in
            // A page has 1000, and several may have one key.
            try await times(1003) { number in
                let key = FilePath("a b/\(number / 3) é+.mp4")
                let answer = try await end.ask("POST", key, [("uploads", "")])
                try #require(answer.status == 200, "\(number): \(String(decoding: answer.body, as: UTF8.self))")
            }
            let found = try #require(try await end.destination.unfinished())
            #expect(found.count == 1003)
            #expect(Set(found.map(\.name)).count == 335)
        }
    }

    @Test(
        "every part is listed once, and none is sent again",
        arguments: Tier.onlyInFull(S3Maker.here.filter(\.acceptsSmallParts)))
    func parts(_ maker: S3Maker) async throws {
        let end = try await S3End(maker, chunk: 10)
        do {
            let staged = try StagedUpload(10 * 1003)
            let recorder = RecordingReporter()
            try await staged.sendStopped(to: end, recorder, accepting: 10 * 1002)
            _ = try await staged.send(to: end, recorder)
            #expect(recorder.sent.allSatisfy { $0 >= 10 * 1002 }, "\(recorder.sent)")
            let isWhole = try await end.content("front/clip.mp4") == staged.content
            #expect(isWhole)
        } catch {
            try await end.close()
            throw error
        }
        try await end.close()
    }
}
