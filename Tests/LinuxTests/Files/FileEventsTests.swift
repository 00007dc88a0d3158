import Core
import Glibc
import Synchronization
import TestKit
import Testing

@testable import Linux

@Suite("File events", .timeLimit(.minutes(Patience.minutes(1))))
struct FileEventsTests {
    private final class Reports: Sendable {
        private let state = Mutex((count: 0, isThere: false))
        var count: Int { state.withLock { $0.count } }
        /// The result of the check at the last event.
        var isThere: Bool { state.withLock { $0.isThere } }
        func raise() { state.withLock { $0.count += 1 } }
        func add(_ path: FilePath) {
            let isThere = (try? FileStatus(at: path)) != nil
            state.withLock { $0 = ($0.count + 1, isThere) }
        }
    }

    private let folder = TemporaryFolder()
    private let reports = Reports()

    private func listen(to name: FilePath, limit: Int = .max) async throws -> FileEvents {
        let path = folder.path.appending(name)
        let events = try FileEvents(limit: limit) { [reports] in reports.add(path) }
        try await isTold("the start of watching is reported") { events.watch([path]) }
        return events
    }

    private func isTold(_ what: String, _ change: () throws -> Void) async throws {
        let before = reports.count
        try change()
        try await eventually(what) { reports.count > before }
    }

    @Test("a file that appears or disappears is reported at once, even if no folder of its path existed")
    func appears() async throws {
        let events = try await listen(to: "run/camera/recording")
        #expect(events.unwatched.isEmpty)
        let (run, camera) = (folder.path.appending("run"), folder.path.appending("run/camera"))
        try await isTold("the first folder of the path is reported") { try Files.makeFolders(run) }
        try await isTold("the second folder is reported") { try Files.makeFolders(camera) }
        try await isTold("the new file is reported") { try folder.write("run/camera/recording", []) }
        try await isTold("the removal of the file is reported") { try Files.remove(camera.appending("recording")) }
        try await isTold("the replacement of the file is reported") {
            try folder.write("run/camera/other", [])
            try Files.rename(camera.appending("other"), to: camera.appending("recording"))
        }
        try await isTold("the move of a folder above is reported") {
            try Files.rename(run, to: folder.path.appending("away"))
        }
        try await isTold("the return of the folder is reported") {
            try Files.rename(folder.path.appending("away"), to: run)
        }
        try await isTold("a later removal is reported") { try Files.remove(camera.appending("recording")) }
        events.stop()
    }

    @Test("a path created in one step is not missed")
    func race() async throws {
        let events = try await listen(to: "a/b/c/d/recording")
        let path = folder.path.appending("a/b/c/d/recording")
        for _ in 0..<50 {
            try folder.write("a/b/c/d/recording", [])
            try await eventually("the last event came while the file existed") { reports.isThere }
            try Files.remove(path)
            try Files.rename(folder.path.appending("a/b"), to: folder.path.appending("b"))
            try await eventually("the last event came after the file was gone") { !reports.isThere }
            for gone in ["b/c/d", "b/c", "b", "a"] as [FilePath] { rmdir(folder.path.appending(gone).display) }
        }
        events.stop()
    }

    @Test("other events in the folders wake no listener")
    func others() async throws {
        try folder.write("run/other", [])
        let events = try await listen(to: "run/recording")
        // A disk that another test mounts causes an event as well, and then the round proves nothing.
        let mounts = try MountEvents()
        try await eventually("a round has passed without a mount") {
            _ = mounts.hasChanged()
            let before = reports.count
            for number in 0..<50 {
                try folder.write(FilePath("run/\(number)"), [1])
                try folder.write(FilePath("run/recording.\(number)"), [1])
                try Files.remove(folder.path.appending(FilePath("run/\(number)")))
            }
            try await isTold("the new file is reported") { try folder.write("run/recording", []) }
            let count = reports.count - before
            try await isTold("the removal of the file is reported") {
                try Files.remove(folder.path.appending("run/recording"))
            }
            if mounts.hasChanged() { return false }
            #expect(count == 1)
            return true
        }
        events.stop()
    }

    @Test(
        "a disk mounted on the path is reported, and one mounted elsewhere is not",
        .enabled(if: DeadDisk.isPossible))
    func mounts() async throws {
        try folder.write("run/other", [])
        let events = try FileEvents { [reports] in reports.raise() }
        events.watch([folder.path.appending("run/recording")])
        try await eventually("the listener watches") { reports.count == 1 }
        let before = reports.count
        let elsewhere = try DeadDisk()
        try await isTold("the new file is reported") { try folder.write("run/recording", []) }
        #expect(reports.count == before + 1)
        let here = try DeadDisk(at: folder.path.appending("run"))
        try await eventually("the missing events of the path are reported") {
            events.unwatched.values.contains { $0.contains("mounted from elsewhere") }
        }
        try await isTold("the unmount is reported") { here.release() }
        try await eventually("the events of the path are no longer missing") { events.unwatched.isEmpty }
        elsewhere.release()
        events.stop()
    }

    @Test("missing events are reported: no watches left, or a file system without events")
    func unheard() async throws {
        let few = try await listen(to: "run/recording", limit: 1)
        #expect(few.unwatched.values.contains { $0.contains("inotify_add_watch") })
        few.stop()
        let events = try await listen(to: "run/recording")
        events.watch(["/proc/self/nothing"])
        try await eventually("the missing events of the path are reported") {
            events.unwatched["/proc/self/nothing"]?.contains("does not report") == true
        }
        events.watch([])
        try await eventually("no path is reported without events") { events.unwatched.isEmpty }
        events.stop()
    }
}
