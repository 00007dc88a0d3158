import Core
import Linux
import Staging
import Store
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// The programs that have a file open for writing, as a test sets them.
private final class ScriptedWriters: WriterDetecting {
    let answer: Mutex<WriterSearch.Answer>
    init(_ answer: WriterSearch.Answer) { self.answer = Mutex(answer) }

    func findWriter(
        _ relative: FilePath, in folder: borrowing OpenFolder
    ) throws(SystemError) -> (status: FileStatus, answer: WriterSearch.Answer) {
        (try folder.status(at: relative), answer.withLock { $0 })
    }
}

/// Verified sources, and repeated checks whether a program has them open for writing.
@Suite("Release of a source that may be open", .timeLimit(.minutes(Patience.minutes(1))))
struct UnsureReleaseTests {
    private static let content = noise(10_000)

    /// A state with one verified source.
    private final class Scene: Sendable {
        let folder = TemporaryFolder()
        let clocks = ManualClocks()
        let parts: ComponentParts
        let path: FilePath
        let asset: Int64
        let writers: ScriptedWriters
        /// Files that were handed back to the watcher.
        let handedBack = Mutex<[FilePath]>([])

        init(
            _ answer: WriterSearch.Answer, _ unsure: UnsureReleaseRule? = nil, action: SourceAction = .delete,
            settledBy: SettleProof = .quiet, content: [UInt8] = UnsureReleaseTests.content, isCancelled: Bool = false
        ) async throws {
            writers = ScriptedWriters(answer)
            let staging = StagingArea(folder: folder.path.appending("staging"))
            try staging.prepare()
            let drop = folder.path.appending("drop")
            var cam = FolderSettings(
                watch: WatchRule(name: "cam", path: drop), routes: [UploadRoute(to: "nas")], afterUpload: action,
                empty: .skip,
                duplicates: .upload, priority: 0, name: try Template("{relative}"), metadata: [:], key: nil,
                context: [:], policy: PolicyOverrides())
            cam.releaseUnsure = unsure
            let settings = Settings(
                state: folder.path.appending("state"),
                staging: StagingSettings(path: staging.folder, copy: .auto, maxSize: nil, keepFree: 0),
                folders: [cam], destinations: [],
                policy: PolicySettings(total: 1, perDestination: 1, order: .oldestFirst, retry: Backoff()),
                control: ControlSettings(socket: folder.path.appending("control.sock")))
            parts = ComponentParts(
                runtime: RuntimeConfiguration(
                    settings: settings, staging: staging, destinations: [:], since: clocks.wall()),
                store: try await Store.open(settings.state, clocks: clocks, sorting: .oldestFirst), clocks: clocks,
                log: .silent)
            path = try folder.write("drop/a.mp4", content)
            let status = try FileStatus(at: path)
            let identity = FileIdentity(
                folder: "cam", relative: "a.mp4", size: status.size, modified: status.modified, inode: status.inode,
                born: nil, fileSystem: nil)
            let arrival = NewAsset(
                file: SettledFile(
                    folder: "cam", root: drop, relative: "a.mp4", status: status, identity: identity,
                    settledBy: settledBy),
                action: action, priority: 0,
                orders: [
                    NewAsset.PlannedUpload(
                        destination: "nas", name: "a.mp4", mediaType: "video/mp4", key: nil, context: [:],
                        metadata: [:])
                ])
            guard
                case .recorded(let asset, _)? = try await parts.store.write({ try $0.arrivals.record([arrival]) }).first
            else {
                throw Unexpected()
            }
            self.asset = asset
            let copied = try staging.copy(
                CopyRequest(SourceFile(path), identity, changed: status.changed), as: FilePath("\(asset)"))
            try staging.publish([copied])
            try await parts.store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: copied.sha256)]) }
            guard let claim = try await parts.store.claim("nas", passingOver: []) else { throw Unexpected() }
            if isCancelled {
                try await parts.store.write { try $0.attempts.finish(claim.upload.id, .yielded) }
                _ = try await parts.store.write { try $0.transitions.cancel([claim.upload.id]) }
            } else {
                let remote = RemoteObject(id: nil, url: "u", verifiedBy: "offset")
                try await parts.store.write { try $0.attempts.finish(claim.upload.id, .verified(remote)) }
            }
        }

        /// Runs a releaser until a condition holds, as after a start of the daemon.
        ///
        /// - Parameter other: Another run over the same state.
        func release(
            until what: String, in other: ComponentParts? = nil, _ condition: () async throws -> Bool
        ) async throws {
            let releaser = (other ?? parts).releaser(writers) { _, relative in
                self.handedBack.withLock { $0.append(relative) }
            }
            let running = Task { try await releaser.run() }
            defer { running.cancel() }
            try await eventually(what, holds: condition)
        }

        func source() async throws -> (state: SourceState, note: String?) {
            guard let record = try await parts.store.read({ try $0.assets.find(asset) }) else { throw Unexpected() }
            return (record.sourceState, record.sourceNote)
        }

        func isOver() async throws -> Bool {
            try await parts.store.read { try $0.releases.releasable(limit: 10) }.isEmpty
        }
        var stands: Bool { get throws { try FileStatus.ifPresent(at: path) != nil } }
        var isKnown: Bool {
            get async throws { try await parts.store.read { try $0.tombstones.knownFile("cam", "a.mp4") } != nil }
        }

        /// Writes other bytes, and keeps the size and the time.
        func rewrite() throws {
            let status = try FileStatus(at: path)
            let file = try Descriptor.open(path, for: .updating)
            try file.write(noise(100, seed: 3), named: path)
            try file.setModified(status.modified, named: path)
            try file.close(named: path)
        }

        struct Unexpected: Error {}
    }

    // MARK: Sources kept by earlier runs

    @Test("a folder with kept sources is reported again at the next start while one of them exists")
    func keptIsSaidAgain() async throws {
        let scene = try await Scene(.unknown(.notReported))
        try await scene.release(until: "it is kept") { try await scene.source().state == .kept }
        _ = scene.parts.unsureReleases.clear("cam")
        try await scene.release(until: "it is said again") { !scene.parts.unsureReleases.all.isEmpty }
        #expect(scene.parts.unsureReleases.all.first?.text.contains("CAP_LEASE") == true)
        _ = scene.parts.unsureReleases.clear("cam")
        try Files.remove(scene.path)
        let running = Task { try await scene.parts.releaser(scene.writers).run() }
        try await eventually("the releaser waits") { scene.parts.signals.release.isWaiting }
        running.cancel()
        #expect(scene.parts.unsureReleases.all.isEmpty)
    }

    @Test("a kept source is released when the kernel reports that no process has it open")
    func keptGoesWhenKnown() async throws {
        let scene = try await Scene(.unknown(.notReported))
        try await scene.release(until: "it is kept") { try await scene.source().state == .kept }
        scene.writers.answer.withLock { $0 = .absent }
        try await scene.release(until: "it is released") { try await scene.source().state == .released }
        #expect(try !scene.stands)
    }

    @Test("a kept source is released when release_unsure of its folder permits it")
    func keptGoesWhenSet() async throws {
        let scene = try await Scene(.unknown(.notReported))
        try await scene.release(until: "it is kept") { try await scene.source().state == .kept }
        var runtime = scene.parts.runtime
        runtime.settings.folders[0].releaseUnsure = .delete
        scene.parts.context.configuration.replace(runtime)
        try await scene.release(until: "it is released") { try await scene.source().state == .released }
        #expect(try !scene.stands)
    }

    // MARK: It is unknown which programs have it open

    @Test("a source on a local disk stays for good with the reason, is not uploaded again, and status names the remedy")
    func keeps() async throws {
        let scene = try await Scene(.unknown(.notReported))
        try await scene.release(until: "it is judged") { try await scene.isOver() }
        let source = try await scene.source()
        #expect(source.state == .kept)
        #expect(source.note?.contains("does not report whether it is open for writing") == true)
        #expect(try scene.stands)
        #expect(try await scene.isKnown)
        #expect(scene.handedBack.withLock { $0.isEmpty })
        #expect(try await scene.parts.store.read { try $0.assets.find(scene.asset) }?.state == .dropped)
        let said = scene.parts.unsureReleases.all.map(\.text)
        #expect(said.count == 1 && said[0].contains("folder cam") && said[0].contains("CAP_LEASE"))
    }

    @Test("a source on a shared file system is released after ten minutes, despite a restart or a clock change")
    func waits() async throws {
        let scene = try await Scene(.unknown(.elsewhere))
        func isWaiting() async throws -> Bool {
            let source = try await scene.source()
            return source.state == .releasing && source.note?.contains("release_unsure: after") == true
        }
        try await scene.release(until: "it waits", isWaiting)
        scene.clocks.advance(by: .seconds(300))
        scene.clocks.step(by: .seconds(86_400))
        try await scene.parts.store.write { try $0.releases.clearNotes(of: ["cam"]) }
        try await scene.release(until: "it waits again", isWaiting)
        scene.clocks.advance(by: .seconds(299))
        try await scene.parts.store.write { try $0.releases.clearNotes(of: ["cam"]) }
        try await scene.release(until: "it still waits", isWaiting)
        #expect(try scene.stands)
        scene.clocks.advance(by: .seconds(2))
        try await scene.release(until: "it is released") { try await scene.source().state == .released }
        #expect(try !scene.stands)
    }

    @Test("runs of less than ten minutes add up to one wait, as with a timer")
    func once() async throws {
        let scene = try await Scene(.unknown(.elsewhere))
        try await scene.release(until: "it waits") { try await scene.source().note != nil }
        await scene.parts.store.close()
        scene.clocks.advance(by: .seconds(601))
        let next = ComponentParts(
            runtime: scene.parts.runtime,
            store: try await Store.open(scene.parts.settings.state, clocks: scene.clocks, sorting: .oldestFirst),
            clocks: scene.clocks, log: .silent)
        try await scene.release(until: "it is released", in: next) {
            try await next.store.read { try $0.assets.find(scene.asset) }?.sourceState == .released
        }
        #expect(try !scene.stands)
    }

    @Test("a source that changed in those ten minutes is uploaded as a new version, even with the same size and time")
    func changesInTime() async throws {
        let scene = try await Scene(.unknown(.elsewhere), .after(.seconds(60)))
        try await scene.release(until: "it waits") { try await scene.source().note != nil }
        try scene.rewrite()
        scene.clocks.advance(by: .seconds(61))
        // It is handed back after its record.
        try await scene.release(until: "it is judged, and handed back") {
            try await scene.isOver() && !scene.handedBack.withLock { $0.isEmpty }
        }
        #expect(try scene.stands)
        #expect(try await !scene.isKnown)
        #expect(scene.handedBack.withLock { $0 } == ["a.mp4"])
    }

    @Test(
        "a folder may configure what happens to a source that may be open",
        arguments: [WriterSearch.Doubt.elsewhere, .notReported])
    func configured(_ doubt: WriterSearch.Doubt) async throws {
        let deleting = try await Scene(.unknown(doubt), .delete)
        try await deleting.release(until: "it is released") { try await deleting.source().state == .released }
        #expect(try !deleting.stands)
        let keeping = try await Scene(.unknown(doubt), .keep)
        try await keeping.release(until: "it is kept") { try await keeping.source().state == .kept }
        #expect(try keeping.stands)
    }

    @Test("waiting releases follow a reloaded configuration, and status drops the folder's warning")
    func reloaded() async throws {
        let scene = try await Scene(.unknown(.elsewhere))
        let releaser = scene.parts.releaser(scene.writers)
        let running = Task { try await releaser.run() }
        defer { running.cancel() }
        try await eventually("the release waits") { try await scene.source().note != nil }
        _ = scene.parts.unsureReleases.set("cam", Hold(.disk, since: scene.clocks.wall(), text: "x"))
        var runtime = scene.parts.runtime
        runtime.settings.folders[0].releaseUnsure = .delete
        scene.parts.context.configuration.replace(runtime)
        try await releaser.reevaluate(["cam"])
        scene.parts.signals.release.signal()
        try await eventually("the source has been released") { try await scene.source().state == .released }
        #expect(scene.parts.unsureReleases.all.isEmpty)
    }

    @Test("move applies the same check as delete")
    func moves() async throws {
        let scene = try await Scene(
            .unknown(.notReported), action: .move(to: try Template("/nowhere/that/is/{name}")))
        try await scene.release(until: "it is kept") { try await scene.source().state == .kept }
        #expect(try scene.stands)
    }

    @Test("a source whose retention time ended gets the same check")
    func keptForAWhile() async throws {
        let scene = try await Scene(.unknown(.notReported), action: .keep)
        try await scene.release(until: "it is kept") { try await scene.source().state == .kept }
        #expect(try await scene.parts.store.write { try $0.keptSources.expire([scene.asset]) } == [scene.asset])
        try await scene.release(until: "it is judged") { try await scene.isOver() }
        #expect(try scene.stands)
        #expect(try await scene.source().note?.contains("release_unsure: keep") == true)
        #expect(try await scene.parts.store.read { try $0.keptSources.oldest(in: "cam", limit: 10) }.isEmpty)
    }

    @Test(
        "an open file is never released, whatever the folder configures",
        arguments: [UnsureReleaseRule.delete, .after(.seconds(1))])
    func open(_ unsure: UnsureReleaseRule) async throws {
        let scene = try await Scene(.present, unsure, settledBy: .marker)
        scene.clocks.advance(by: .seconds(3600))
        try await scene.release(until: "it waits") {
            try await scene.source().note?.contains("it is open for writing") == true
        }
        #expect(try scene.stands)
        scene.writers.answer.withLock { $0 = .absent }
        try await scene.release(until: "it is released") { try await scene.source().state == .released }
    }

    @Test(
        "a granted lease is certain, whatever rung accepted the file",
        arguments: [SettleProof.quiet, .closed, .added])
    func certain(_ rung: SettleProof) async throws {
        let scene = try await Scene(.absent, .keep, settledBy: rung)
        try await scene.release(until: "it is released") { try await scene.source().state == .released }
    }

    @Test(
        "a marker is certain, a container check only for a complete container with an end",
        arguments: [true, false])
    func vouched(_ isWhole: Bool) async throws {
        let marked = try await Scene(.unknown(.notReported), settledBy: .marker)
        try await marked.release(until: "it is released") { try await marked.source().state == .released }
        let media = Repository.root.appending("Tests/Fixtures/media/whole")
        let recording = try Files.read(media.appending(isWhole ? "plain.mp4" : "fragmented.mp4"))
        let scene = try await Scene(.unknown(.notReported), settledBy: .container, content: recording)
        try await scene.release(until: "it is judged") { try await scene.isOver() }
        #expect(try await scene.source().state == (isWhole ? .released : .kept))
        #expect(try scene.stands == !isWhole)
    }

    // MARK: It is another version

    @Test("different bytes with the same size and time are a new version, and the old version delays nothing")
    func rewritten() async throws {
        let scene = try await Scene(.absent)
        try scene.rewrite()
        // It is handed back after its record.
        try await scene.release(until: "it is judged, and handed back") {
            try await scene.isOver() && !scene.handedBack.withLock { $0.isEmpty }
        }
        #expect(try await scene.source().state == .kept)
        #expect(try await scene.source().note == "its content changed after it was staged")
        #expect(try scene.stands)
        #expect(try await !scene.isKnown)
        #expect(scene.handedBack.withLock { $0 } == ["a.mp4"])
    }

    @Test("a file with only changed permissions is no new version")
    func permissions() async throws {
        let scene = try await Scene(.absent)
        let file = try Descriptor.open(scene.path, for: .reading)
        try file.setMode(0o640, named: scene.path)
        try await scene.release(until: "it is released") { try await scene.source().state == .released }
        #expect(scene.handedBack.withLock { $0.isEmpty })
        #expect(try await scene.isKnown)
    }

    @Test("a version in place of a cancelled one is a new version, and the copy of the cancelled one is kept")
    func cancelled() async throws {
        let scene = try await Scene(.absent, isCancelled: true)
        try scene.rewrite()
        // It is handed back after its record.
        try await scene.release(until: "it is judged, and handed back") {
            try await scene.isOver() && !scene.handedBack.withLock { $0.isEmpty }
        }
        #expect(try await scene.source().note?.contains("its copy is") == true)
        #expect(try await !scene.isKnown)
        #expect(scene.handedBack.withLock { $0 } == ["a.mp4"])
        let same = try await Scene(.absent, isCancelled: true)
        try await same.release(until: "it is judged") { try await same.isOver() }
        #expect(try await same.isKnown)
        #expect(same.handedBack.withLock { $0.isEmpty })
    }
}
