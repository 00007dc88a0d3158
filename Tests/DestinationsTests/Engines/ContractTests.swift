import Core
import Digests
import Linux
import TestKit
import TestTraits
import Testing

@testable import Destinations

/// Properties that the daemon relies on, for every remote.
@Suite("Every destination", .needsPackages, .timeLimit(.minutes(Patience.minutes(3))))
struct ContractTests {
    private static let chunk = TestedRemote.chunk

    @Test("a file is unknown before its upload", arguments: TestedRemote.all)
    func startsEmpty(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let finding = try await end.destination.find(try StagedUpload(10).order)
            if case .found(let object) = finding { Issue.record("the destination reports \(object) before its upload") }
            #expect(try await end.objects.isEmpty)
            #expect(try await end.remains.isEmpty)
        }
    }

    @Test(
        "a file of any size arrives complete", arguments: TestedRemote.all,
        Tier.sample([0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk, 3 * chunk + 1], 3))
    func sizes(_ remote: TestedRemote, _ size: Int) async throws {
        try await remote.open { end in
            let staged = try StagedUpload(size)
            guard size > 0 || end.keepsEmpty else {
                #expect(try await staged.failure(to: end).remedy == .failUpload)
                return
            }
            let object = try await staged.send(to: end, RecordingReporter())
            #expect(object.warnings.isEmpty)
            #expect(!object.verifiedBy.isEmpty)
            #expect(try await end.objects == ["front/clip.mp4": staged.content])
            #expect(try await end.remains.isEmpty)
        }
    }

    static let names: [FilePath] = [
        FilePath(bytes: [0xFF, 0xFE, 0x2D, 0xC3]), "line\nbreak.mp4", "-rf", "a b\tc.mp4", "e\u{301}/é.mp4",
        "back\\slash%2F.mp4", "a..b/c...", FilePath(String(repeating: "n", count: 251) + ".mp4"),
        FilePath(String(repeating: "日", count: 85)), FilePath(bytes: [UInt8](repeating: 0x9F, count: 255)),
        FilePath((0..<10).map { "deep \($0)" }.joined(separator: "/")),
    ]

    @Test("names are kept byte for byte", arguments: TestedRemote.all)
    func names(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let names = Self.names.filter(end.keeps)
            for (number, name) in names.enumerated() {
                _ = try await StagedUpload(10, id: "\(number)", name: name).send(to: end, RecordingReporter())
            }
            let held = try await Set(end.objects.keys)
            #expect(held == Set(names.map { end.place(of: $0) }))
        }
    }

    @Test("the remote location is recorded before a byte is sent", arguments: TestedRemote.all)
    func notesFirst(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let staged = try StagedUpload(3 * Self.chunk)
            let recorder = RecordingReporter()
            _ = try await staged.send(to: end, recorder)
            #expect(!recorder.wasEarly)
            #expect(recorder.last != nil)
        }
    }

    @Test("if the first note cannot be written, no remains are left", arguments: TestedRemote.all)
    func deadBefore(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let recorder = RecordingReporter(refusing: 1)
            let staged = try StagedUpload(10)
            await #expect(throws: RecordingReporter.Dead.self) { try await staged.send(to: end, recorder) }
            #expect(try await end.objects.isEmpty)
            #expect(try await end.remains.isEmpty)
        }
    }

    @Test("an upload resumes after the accepted bytes, and sends none of them again", arguments: TestedRemote.all)
    func resumes(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let staged = try StagedUpload(4 * Self.chunk + 1)
            let recorder = RecordingReporter()
            try await staged.sendStopped(to: end, recorder, accepting: 2 * Self.chunk)
            let accepted = recorder.accepted
            #expect(try await end.objects.isEmpty, "an incomplete file is not visible")
            _ = try await staged.send(to: end, recorder)
            #expect(recorder.sent.allSatisfy { $0 >= accepted }, "\(recorder.sent) and \(accepted)")
            #expect(try await end.objects == ["front/clip.mp4": staged.content])
        }
    }

    @Test(
        "a draining upload ends at an acknowledged byte, and sends none twice",
        arguments: TestedRemote.all)
    func pausedBehindPart(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let staged = try StagedUpload(4 * Self.chunk + 1)
            let recorder = RecordingReporter()
            recorder.pause { $0.accepted > 0 }
            await #expect(throws: CancellationError.self) { try await staged.send(to: end, recorder) }
            let (accepted, sent) = (recorder.accepted, recorder.sent)
            #expect(accepted > 0 && accepted < staged.content.count)
            #expect(sent.allSatisfy { $0 <= accepted }, "all sent bytes are acknowledged: \(sent) and \(accepted)")
            #expect(try await end.objects.isEmpty)
            recorder.pause { _ in false }
            _ = try await staged.send(to: end, recorder)
            #expect(recorder.sent.allSatisfy { $0 >= accepted }, "\(recorder.sent) and \(accepted)")
            #expect(try await end.objects == ["front/clip.mp4": staged.content])
            #expect(try await end.remains.isEmpty)
        }
    }

    @Test(
        "draining before the first byte sends none; after the last one it completes",
        arguments: TestedRemote.all)
    func pausedAtTheEnds(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let staged = try StagedUpload(3 * Self.chunk)
            let recorder = RecordingReporter()
            recorder.pause { _ in true }
            await #expect(throws: CancellationError.self) { try await staged.send(to: end, recorder) }
            #expect(recorder.sent.isEmpty)
            recorder.pause { $0.accepted >= 3 * Self.chunk }
            _ = try await staged.send(to: end, recorder)
            #expect(try await end.objects == ["front/clip.mp4": staged.content])
        }
    }

    @Test(
        "stopped after any note and restarted, the file is there once and complete",
        arguments: Tier.sample(TestedRemote.all, 4))
    func stopped(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            var expected: [FilePath: [UInt8]] = [:]
            for note in 1... {
                let name = FilePath("stopped at \(note).mp4")
                let staged = try StagedUpload(2 * Self.chunk + 1, id: "\(note)", name: name, seed: UInt64(note))
                let recorder = RecordingReporter()
                let wasStopped = try await staged.sendStopped(to: end, recorder) { $0.taken == note }
                _ = try await staged.send(to: end, recorder)
                expected[name] = staged.content
                if !wasStopped { break }
            }
            #expect(expected.count > 4)
            #expect(try await end.objects == expected)
            #expect(try await end.remains.isEmpty)
        }
    }

    @Test(
        "a finished upload that is repeated sends no byte", arguments: TestedRemote.all, Tier.sample([true, false]))
    func again(_ remote: TestedRemote, remembers: Bool) async throws {
        try await remote.open { end in
            let staged = try StagedUpload(2 * Self.chunk)
            let recorder = RecordingReporter()
            _ = try await staged.send(to: end, recorder)
            // As after a crash before *completed* was stored, or after the loss of the store.
            let second = remembers ? recorder : RecordingReporter()
            _ = try await staged.send(to: end, second)
            // At a server that only counts blocks, the blocks with this name may belong to another upload, which was
            // refused. The last block is sent.
            let isCounted = !remembers && end is FormScene
            #expect(second.sent.isEmpty || isCounted && second.sent.first == Int64(Self.chunk))
            #expect(try await end.objects == ["front/clip.mp4": staged.content])
            #expect(try await end.remains.isEmpty)
        }
    }

    @Test("another file under the same name replaces nothing", arguments: TestedRemote.all)
    func taken(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let first = try StagedUpload(10, id: "1", seed: 1)
            let second = try StagedUpload(10, id: "2", seed: 2)
            _ = try await first.send(to: end, RecordingReporter())
            _ = try await second.send(to: end, RecordingReporter())
            _ = try await second.send(to: end, RecordingReporter())
            #expect(
                try await end.objects == ["front/clip.mp4": first.content, "front/clip (2).mp4": second.content])
        }
    }

    @Test("discarding removes a started upload, and may be repeated", arguments: TestedRemote.all)
    func discards(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let staged = try StagedUpload(3 * Self.chunk)
            let recorder = RecordingReporter()
            try await staged.sendStopped(to: end, recorder, accepting: Self.chunk)
            #expect(try await end.remains.count == 1)
            let checkpoint = try #require(recorder.last)
            for _ in 0..<2 { #expect(try await end.destination.discard(checkpoint)) }
            #expect(try await end.remains.isEmpty)
            #expect(try await end.objects.isEmpty)
        }
    }

    enum Mishap: CaseIterable, Sendable {
        case missing, shorter, longer, folder
    }

    @Test(
        "a staged copy that differs from its record is staged again", arguments: TestedRemote.all,
        Tier.sample(Mishap.allCases, 2))
    func damagedCopy(_ remote: TestedRemote, _ mishap: Mishap) async throws {
        try await remote.open { end in
            let staged = try StagedUpload(2 * Self.chunk)
            switch mishap {
            case .missing: try staged.restage(nil)
            case .shorter: try staged.restage(Array(staged.content.dropLast()))
            case .longer: try staged.restage(staged.content + [1])
            case .folder:
                try staged.restage(nil)
                try Files.makeFolders(staged.order.file.path)
            }
            let error = try await staged.failure(to: end)
            #expect(error.remedy == .restage(mishap == .missing ? .unreadable : .changed))
            #expect(try await end.objects.isEmpty)
        }
    }

    @Test("a staged copy with other bytes of the same number never gets a name", arguments: TestedRemote.all)
    func rottenCopy(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let staged = try StagedUpload(2 * Self.chunk)
            try staged.restage(noise(2 * Self.chunk, seed: 9))
            _ = try await staged.failure(to: end)
            #expect(try await end.objects.isEmpty)
        }
    }

    @Test(
        "an unreachable server holds the destination, reveals no secret, and the upload resumes",
        arguments: TestedRemote.all)
    func away(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let staged = try StagedUpload(3 * Self.chunk)
            let recorder = RecordingReporter()
            try await staged.sendStopped(to: end, recorder, accepting: Self.chunk)
            try await end.goAway()
            let error = try await staged.failure(to: end, recorder)
            guard case .holdDestination = error.remedy else { throw error }
            #expect(error.failure.retryable)
            #expect(error.failure.message.hasPrefix("archive: "))
            if let secret = end.secret {
                #expect(!error.failure.message.contains(secret))
                #expect(!recorder.everything.contains(secret))
            }
        }
    }

    @Test("the check of a destination reports whether uploads would work", arguments: TestedRemote.all)
    func checks(_ remote: TestedRemote) async throws {
        try await remote.open { end in
            let there = await end.destination.check()
            #expect(there.verdict != .failed, "\(there.detail)")
            #expect(try await end.objects.isEmpty)
            #expect(try await end.remains.isEmpty)
            try await end.goAway()
            let away = await end.destination.check()
            #expect(away.verdict == .failed, "\(away.detail)")
        }
    }
}
