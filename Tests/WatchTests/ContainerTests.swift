import Core
import Linux
import TestKit
import Testing
import Watch

/// `settle.container: check`, on recordings of `Tests/Fixtures/media`.
@Suite("Folders that require complete containers")
struct ContainerTests {
    private let folder = TemporaryFolder()
    private let scene = Scene()

    private func recording(_ name: String) throws -> [UInt8] {
        try Files.read(Repository.root.appending("Tests/Fixtures/media").appending(FilePath(name)))
    }

    private func rule(_ broken: WatchRule.Broken = .wait, after: Duration = .seconds(3600)) -> WatchRule {
        var rule = WatchRule(name: "cam", path: folder.path)
        rule.container = .check
        rule.broken = broken
        rule.brokenAfter = after
        return rule
    }

    @Test("a complete file is taken, with its container as the reason")
    func whole() async throws {
        try await scene.watch([rule()]) { _ in
            for name in ["plain.mp4", "video.mkv", "camera.jpg"] {
                try folder.write(FilePath(name), recording("whole/" + name))
            }
            try await scene.settled("camera.jpg", "plain.mp4", "video.mkv")
        }
        #expect(scene.reports.settled.allSatisfy { $0.settledBy == .container })
    }

    @Test("an incomplete file waits with the reason, and is taken when the rest has arrived")
    func waits() async throws {
        let whole = try recording("whole/plain.mp4")
        try await scene.watch([rule()]) { watcher in
            try folder.write("clip.mp4", Array(whole.dropLast(1000)))
            try await eventually("the file waits, and its reason says what is missing") {
                watcher.settlingFiles().contains { file in
                    if case .container(let flaw) = file.reason { flaw.hasPrefix("ends ") } else { false }
                }
            }
            let rules = watcher.settlingFiles().map(\.rule)
            #expect(rules == ["`settle.container: check` with `settle.broken: wait`"])
            #expect(scene.names.isEmpty)
            try folder.write("clip.mp4", whole)
            try await scene.settled("clip.mp4")
        }
        #expect(scene.reports.settled.first?.settledBy == .container)
    }

    @Test("a file that stays incomplete is taken after its time, with a warning")
    func broken() async throws {
        try await scene.watch([rule(.upload, after: .milliseconds(400))]) { _ in
            try folder.write("clip.mkv", recording("cut/video.mkv"))
            try await scene.settled("clip.mkv")
        }
        #expect(scene.reports.settled.first?.settledBy == .broken)
        #expect(scene.reports.log.contains { $0.contains("clip.mkv has not changed for") && $0.contains("incomplete") })
    }

    @Test("a file that stays incomplete is not taken if so configured, and is reported")
    func left() async throws {
        var rule = rule()
        rule.reportAfter = .milliseconds(300)
        try await scene.watch([rule]) { _ in
            try folder.write("clip.avi", recording("cut/video.avi"))
            try await scene.wait("the incomplete file is reported") { reports in
                reports.log.contains { $0.contains("clip.avi has not settled") && $0.contains("no size in its RIFF") }
            }
        }
        #expect(scene.names.isEmpty)
    }

    @Test("other files and undecidable ones are taken as without the check")
    func others() async throws {
        try await scene.watch([rule()]) { _ in
            try folder.write("notes.txt", Array("hello".utf8))
            try await scene.settled("notes.txt")
        }
        #expect(scene.reports.settled.first?.settledBy == .lease)
    }

    @Test("with more files than simultaneous checks, each file gets its turn")
    func many() async throws {
        let whole = try recording("whole/picture.jpg")
        let names = (0..<40).map { "picture \($0).jpg" }
        try await scene.watch([rule()]) { _ in
            for name in names { try folder.write(FilePath(name), whole) }
            try await scene.settled(names)
        }
        #expect(scene.reports.settled.allSatisfy { $0.settledBy == .container })
    }

    @Test("a dropped candidate leaves no state")
    func gone() async throws {
        try await scene.watch([rule(.upload)]) { watcher in
            let path = try folder.write("clip.mp4", recording("cut/plain.mp4"))
            let file = try await eventually("the file waits") {
                watcher.settlingFiles().first { if case .container = $0.reason { true } else { false } }
            }
            #expect(
                file.explanation.hasSuffix(
                    "if it has not changed for `settle.broken_after: 1h`, it is uploaded as it is")
            )
            #expect(file.until.map { $0.since(file.since) >= .seconds(3600) } == true)
            try Files.remove(path)
            try await eventually("the file has been dropped") { watcher.settlingFiles().isEmpty }
        }
        #expect(scene.names.isEmpty)
    }
}
