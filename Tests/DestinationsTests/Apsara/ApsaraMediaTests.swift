import Core
import Credentials
import Linux
import Synchronization
import TestKit
import Testing
import Transport

@testable import Destinations

/// Media that are given up, not found or given too often.
@Suite("apsara-vod: remaining media", .timeLimit(.minutes(Patience.minutes(5))))
struct ApsaraMediaTests {
    private func again(_ end: ApsaraEnd, _ staged: StagedUpload, _ recorder: RecordingReporter) async throws
        -> RemoteObject
    {
        var order = staged.order
        order.generation = 2
        order.checkpoint = recorder.last
        return try await end.destination.upload(order, reporter: recorder)
    }

    private func notFound(_ end: ApsaraEnd, times: Int) async throws {
        try await end.server.control(
            "faults",
            "[{\"do\": \"error\", \"status\": 404, \"code\": \"InvalidVideo.NotFound\", \"times\": \(times), \"match\": {\"operation\": \"GetVideoInfo\"}}]"
        )
    }

    @Test("a medium not found after its bytes is queried again, less and less often")
    func notFoundYet() async throws {
        try await ApsaraEnd.open(.key) { end in
            try await notFound(end, times: 4)
            let (staged, recorder) = (try StagedUpload(100, removesSource: true), RecordingReporter())
            for wait in [15, 30, 60, 120] {
                #expect(try await staged.failure(to: end, recorder).remedy == .pending(after: .seconds(wait)))
            }
            #expect(try await staged.send(to: end, recorder).verifiedBy == "transcoded")
            #expect(try await end.media().count == 1)
        }
    }

    @Test("a medium not found five times is looked for by `retry`, and sent again only with a warning")
    func deleted() async throws {
        for isBack in [true, false] {
            try await ApsaraEnd.open(.key) { end in
                try await notFound(end, times: isBack ? 5 : 6)
                let (staged, recorder) = (try StagedUpload(100, removesSource: true), RecordingReporter())
                for _ in 0..<4 { _ = try await staged.failure(to: end, recorder) }
                let id = try #require(try await end.media().first?.id)
                let error = try await staged.failure(to: end, recorder)
                #expect(error.failure.code == .mediumDeleted && error.failure.message.contains(id), "\(error)")
                #expect(recorder.last?.fields.values.contains(id) == true)
                let object = try await again(end, staged, recorder)
                #expect(try await end.media().count == (isBack ? 1 : 2))
                #expect(object.warnings.contains { $0.contains(id) && $0.contains("there twice") } == !isBack)
            }
        }
    }

    @Test("a medium that VOD could not transcode is shown until there is another, and then in a warning")
    func failed() async throws {
        try await ApsaraEnd.open(.key) { end in
            try await end.server.control("settings", #"{"media_status": "TranscodeFail"}"#)
            let (staged, recorder) = (try StagedUpload(100, removesSource: true), RecordingReporter())
            _ = try await staged.failure(to: end, recorder)
            let id = try #require(try await end.media().first?.id)
            #expect(recorder.last?.fields.values.contains(id) == true)
            try await end.server.control("settings", #"{"media_status": null}"#)
            let object = try await again(end, staged, recorder)
            #expect(object.id != id && object.warnings.contains { $0.contains(id) }, "\(object.warnings)")
        }
    }

    @Test("truncated answers of an authorization service make requests rare", arguments: ["a.mp4", "a.png"])
    func cut(_ name: String) async throws {
        let asked = Mutex(0)
        let server = try FakeServer { exchange in
            _ = exchange.body()
            asked.withLock { $0 += 1 }
            exchange.cut()
        }
        defer { server.stop() }
        let clocks = ManualClocks()
        let destination = try Apsara(
            ["authorisation.url": .text("\(server.url)/auth")],
            DestinationTools(
                transport: Transport(), secrets: SecretReader(), clocks: clocks, name: "archive", log: { _ in }))
        let (staged, recorder) = (try StagedUpload(100, name: FilePath(name)), RecordingReporter())
        for _ in 0..<60 {
            var order = staged.order
            order.checkpoint = recorder.last
            let error = try #require(
                await #expect(throws: UploadError.self) { try await destination.upload(order, reporter: recorder) })
            // The message gives the reason of a wait that no answer asked for.
            if case .holdDestination(let after?) = error.remedy {
                #expect(after > .zero && error.failure.explainsWait == true, "\(error)")
            }
            clocks.advance(by: .seconds(5))
        }
        let count = asked.withLock { $0 }
        #expect((2...6).contains(count), "\(count) requests in five minutes")
    }

    // MARK: Pictures

    private func refreshes(_ end: ApsaraEnd) async throws -> Int {
        let record = JSONValue.read(Array(try await end.server.control("record").utf8))?.items ?? []
        return record.filter { $0["operation"]?.string == "Auth" }.count
    }

    @Test("a picture whose credential expires during parallel parts is moved once, also over a restart")
    func moved() async throws {
        try await ApsaraEnd.open(.service) { end in
            try await end.server.control(
                "faults", #"[{"do": "expire", "match": {"operation": "UploadPart"}, "nth": 4}]"#)
            let (staged, recorder) = (try StagedUpload(12 * ApsaraTests.part, name: "a.png"), RecordingReporter())
            let error = try await staged.failure(to: end, recorder)
            #expect(error.failure.code == .mediaMoved, "\(error)")
            #expect(try await refreshes(end) == 2)
            // As after a kill.
            var order = staged.order
            order.checkpoint = recorder.last
            let object = try await end.again().upload(order, reporter: recorder)
            #expect(try await refreshes(end) == 2)
            #expect(try await end.media().count == 2)
            #expect(object.warnings.contains { $0.contains("1 medium is left empty") }, "\(object.warnings)")
        }
    }
}
