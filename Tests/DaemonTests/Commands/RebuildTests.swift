import Core
import Destinations
import Linux
import Staging
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon
@testable import Store

/// The result of a rebuild from folders, copies, answers and old rows.
@Suite("Rebuild in process", .timeLimit(.minutes(Patience.minutes(2))))
struct RebuildTests {
    private static let held = RemoteLookup.found(RemoteObject(id: nil, url: nil, verifiedBy: "digest"))

    private struct Scene {
        let folder = TemporaryFolder()
        let remote = ScriptedRemote()
        var settings: Settings
        let kind: DestinationDefinition

        init(action: SourceAction = .keep, existing: WatchRule.Existing = .upload) throws {
            let root = folder.path
            try Files.makeFolders(root.appending("cam"))
            settings = Settings(
                state: root.appending("state"),
                staging: StagingSettings(path: root.appending("staging"), copy: .copy, maxSize: nil, keepFree: 0),
                folders: [
                    FolderSettings(
                        watch: WatchRule(
                            name: "cam", path: root.appending("cam"), exclude: ["*.log"], existing: existing),
                        routes: [UploadRoute(to: "nas")], afterUpload: action, empty: .skip, duplicates: .upload,
                        priority: 0,
                        name: try Template("{relative}"), metadata: [:], key: nil, context: [:],
                        policy: PolicyOverrides())
                ],
                destinations: [
                    DestinationSettings(
                        name: "nas", type: "scripted", values: [:], policy: PolicyOverrides(), place: "")
                ],
                policy: PolicySettings(
                    total: 8, perDestination: 8, order: .oldestFirst,
                    retry: Backoff(first: .seconds(1), ceiling: .seconds(1))),
                control: ControlSettings(socket: root.appending("control.sock")))
            let remote = remote
            kind = DestinationDefinition(type: DestinationSchema(name: "scripted", summary: "", keys: [])) { _, _ in
                remote
            }
        }

        func rebuild(_ change: (inout RebuildOptions) -> Void = { _ in }) async throws -> RebuildReport {
            var options = RebuildOptions()
            change(&options)
            return try await Rebuild.run(settings, kinds: [kind], options: options, log: .silent)
        }

        /// Opens the database for the body, and closes it before and afterwards.
        func read<R: Sendable>(_ body: @Sendable (ReadTransaction) throws -> R) async throws -> R {
            let store = try await Store.open(settings.state, clocks: SystemClocks(), sorting: .oldestFirst)
            let result = try await store.read(body)
            await store.close()
            return result
        }

        func rows() async throws -> [UploadRow] {
            try await read { tx in try tx.lists.ids(UploadFilter()).compactMap { try tx.uploads.row($0) } }
        }

        func states() async throws -> [String: UploadState] {
            let rows = try await rows()
            return Dictionary(rows.map { ($0.asset.identity.relative.display, $0.upload.state) }) { first, _ in first }
        }

        /// Makes the database one that is refused, with every row in it still readable.
        func spoil() throws {
            let connection = try Connection(path: settings.state.appending("sluice.db"))
            try connection.execute("PRAGMA application_id = 77")
            connection.close()
        }
    }

    @Test("rebuild names the cards that are not mounted, because their files count as new later")
    func cardsAway() async throws {
        var scene = try Scene()
        func troubles(_ scene: Scene) async throws -> [String] {
            let report = try await scene.rebuild { ($0.isForced, $0.isTrial) = (true, true) }
            return report.troubles.filter { $0.contains("files on cards") }
        }
        #expect(try await troubles(scene).isEmpty)
        var pattern = scene.settings.folders[0]
        let media = scene.folder.path.appending("media/*")
        pattern.watch.name = "card"
        pattern.watch.path = media.appending("DCIM")
        pattern.watch.requirement.mount = media
        scene.settings.patternFolders = [pattern]
        #expect(try await troubles(scene).count == 1)
        let store = try await Store.open(scene.settings.state, clocks: SystemClocks(), sorting: .oldestFirst)
        let card = Card(pattern: "card", fileSystem: "u", name: "card-EOS", point: "/media/x")
        try await store.write { try $0.folders.remember(card, folderAt: "/media/x/DCIM") }
        await store.close()
        let found = try await troubles(scene)
        #expect(found.count == 1 && found.first?.hasSuffix(": card-EOS") == true, "\(found)")
    }

    @Test("rebuild accepts the files that a scan accepts, and follows the answer of the destination")
    func answers() async throws {
        let scene = try Scene(action: .delete)
        for name in ["held", "absent", "deep/held", "no.log", ".hidden", "half.part"] {
            try scene.folder.write(FilePath("cam").appending(FilePath(name)), noise(50))
        }
        try scene.folder.write("cam/empty", [])
        scene.remote.find(Self.held, except: ["absent": .absent])
        let trial = try await scene.rebuild { $0.isTrial = true }
        #expect(trial.held == ["nas": 2] && trial.toSend == ["nas": 1] && trial.files == 4)
        #expect(try Files.names(in: scene.settings.state).map(\.display) == ["lock"])

        _ = try await scene.rebuild()
        #expect(
            try await scene.states() == ["held": .completed, "deep/held": .completed, "absent": .staging])
        // The release continues from here, as after any upload.
        let due = try await scene.read {
            try $0.releases.releasable(limit: 10).map(\.asset.identity.relative.display)
        }
        #expect(Set(due) == ["held", "deep/held"])
    }

    @Test(
        "a file of unknown state waits, is uploaded, or counts as uploaded with its source kept",
        arguments: [
            (RebuildOptions.Undecided.fail, UploadState.failed), (.send, .staging), (.assumeSent, .completed),
        ])
    func undecided(_ undecided: RebuildOptions.Undecided, _ state: UploadState) async throws {
        let scene = try Scene(action: .delete)
        try scene.folder.write("cam/a", noise(50))
        try scene.folder.write("cam/b", noise(51))
        _ = try await scene.rebuild { $0.undecided = undecided }
        #expect(try await scene.states() == ["a": state, "b": state])
        let actions = try await scene.rows().map(\.asset.action)
        #expect(actions == Array(repeating: undecided == .assumeSent ? .leave : .delete, count: 2))
        // The answer concerns the kind and not the file: asked once, and no file is read for nothing.
        #expect(scene.remote.asked <= 2)
    }

    @Test("a file that may have existed before its folder was watched is not uploaded without a command")
    func existing() async throws {
        let scene = try Scene(existing: .skip)
        try scene.folder.write("cam/old", noise(50))
        scene.remote.find(.absent)
        let report = try await scene.rebuild()
        #expect(report.undecided == ["nas": 1])
        #expect(try await scene.states() == ["old": .failed])
    }

    @Test("rows of the old database count if no destination knows the file; sources are kept and pauses restored")
    func salvage() async throws {
        let scene = try Scene(action: .delete)
        for number in 0..<30 { try scene.folder.write(FilePath("cam/\(number)"), noise(50, seed: UInt64(number))) }
        scene.remote.find(Self.held)
        _ = try await scene.rebuild()
        let store = try await Store.open(scene.settings.state, clocks: SystemClocks(), sorting: .oldestFirst)
        try await store.write {
            try $0.pauses.set(
                PauseRecord(scope: .destination, name: "nas", since: WallTime(milliseconds: 5), until: nil))
        }
        let account = SpendingAccount(destination: "nas", folder: "cam", network: .metered)
        try await store.write {
            try $0.ledger.pay(
                [Payment(account, Spending(bytes: 70))], reserving: [Reservation(account, Spending(bytes: 8))])
        }
        await store.close()
        // One of them has been replaced by now.
        try scene.folder.write("cam/7", noise(80))
        try scene.spoil()
        scene.remote.find(.unknown("no way to ask"))
        let report = try await scene.rebuild()
        #expect(report.assumed == ["nas": 29])
        #expect(report.undecided == ["nas": 1])
        let actions = try await scene.rows().filter { $0.upload.state == .completed }.map(\.asset.action)
        let (pauses, spent) = try await scene.read { tx in
            (
                try tx.pauses.all(),
                try tx.ledger.spent(since: WallTime(milliseconds: 0), networks: [.metered])
            )
        }
        // A new database does not restart a quota.
        #expect(spent == Spending(bytes: 78))
        #expect(Set(actions) == [.leave])
        #expect(pauses.map(\.name) == ["nas"])
    }

    @Test("rows before and after a damaged page are used")
    func partialSalvage() async throws {
        let scene = try Scene()
        let count = 400
        for number in 0..<count {
            try scene.folder.write(FilePath("cam/file \(number)"), noise(20, seed: UInt64(number)))
        }
        scene.remote.find(Self.held)
        _ = try await scene.rebuild()
        let path = scene.settings.state.appending("sluice.db")
        var content = try Files.read(path, limit: 64 << 20)
        let page = content.count / 4096 / 2 * 4096
        for at in page..<page + 4096 { content[at] = 0xA7 }
        try Files.replace(path, with: content)
        scene.remote.find(.unknown("no way to ask"))
        let report = try await scene.rebuild()
        #expect((report.assumed["nas"] ?? 0) + (report.undecided["nas"] ?? 0) == count)
        #expect(report.assumed["nas"] ?? 0 > count / 4, "\(report)")
    }

    @Test("a copy without attributes is matched to its file by content, and kept if no file matches")
    func looseCopies() async throws {
        let scene = try Scene()
        try scene.folder.write("cam/known", noise(50))
        try scene.folder.write("staging/3", noise(50))
        try scene.folder.write("staging/4", noise(60))
        scene.remote.find(.absent)
        let report = try await scene.rebuild()
        #expect(report.copies == 1 && report.unmatched.count == 1)
        #expect(try Files.read(scene.folder.path.appending("staging/recovered/4")) == noise(60))
        let asset = try await scene.read { try $0.assets.find(3) }
        #expect(asset?.state == .staged)
        #expect(try await scene.states() == ["known": .queued])
        // No new asset gets the number of a copy.
        try await #expect(
            scene.read {
                try $0.assets.lastNumber()
            } > 4)
    }

    @Test("a source that a release had renamed gets its name back, and is not uploaded again")
    func caught() async throws {
        let scene = try Scene(action: .delete)
        let source = try scene.folder.write("cam/clip.mp4", noise(50))
        let status = try FileStatus(at: source)
        let identity = FileIdentity(
            folder: "cam", relative: "clip.mp4", size: 50, modified: status.modified, inode: status.inode,
            born: status.born,
            fileSystem: nil)
        let staging = StagingArea(folder: scene.settings.staging.path, method: .copy)
        _ = try staging.prepare()
        let token = ReleaseToken(random: [1, 2, 3, 4, 5, 6, 7, 8])
        var origin = CopyOrigin(
            identity, root: source.parent, changed: status.changed,
            uploads: [
                .init(
                    id: "01M7YG9YF40Z35FRX0N0BNM6EQ", destination: "nas", name: "other name", key: nil,
                    context: ["who": "me"])
            ])
        origin.release = token
        let copy = try staging.copy(
            CopyRequest(SourceFile(source), identity, changed: status.changed), as: "5", origin: origin)
        try staging.publish([copy])
        try Files.rename(source, to: source.parent.appending(token.name(of: 5)))
        scene.remote.find(.absent, except: ["other name": Self.held])
        let report = try await scene.rebuild()
        #expect(report.givenBack.count == 1 && report.held == ["nas": 1] && report.toSend == [:])
        #expect(try Files.read(source) == noise(50))
        let upload = try await scene.read { try $0.uploads.find("01M7YG9YF40Z35FRX0N0BNM6EQ") }
        #expect(upload?.state == .completed)
        #expect(upload?.context == ["who": "me"])
    }

    @Test("an export is identified by its attributes: it is uploaded, and its source is released after verification")
    func exported() async throws {
        let scene = try Scene(action: .delete)
        let source = try scene.folder.write("cam/clip.mov", noise(50))
        let status = try FileStatus(at: source)
        let identity = FileIdentity(
            folder: "cam", relative: "clip.mov", size: 50, modified: status.modified, inode: status.inode,
            born: status.born,
            fileSystem: nil)
        let staging = StagingArea(folder: scene.settings.staging.path)
        _ = try staging.prepare()
        let export = Export(
            command: try CommandWords(["sh", "-c", "head -c 20 \"$1\" > \"$2\"", "sh", "{input}", "{output}"]),
            output: "clip.mp4", timeout: .seconds(20), minSize: 1, folder: "cam", relative: "clip.mov")
        let made = try staging.export(
            CopyRequest(SourceFile(source), identity, changed: status.changed), as: "5", export,
            origin: CopyOrigin(
                identity, root: source.parent, changed: status.changed,
                uploads: [
                    .init(
                        id: "01M7YG9YF40Z35FRX0N0BNM6EQ", destination: "nas", name: "clip.mp4", key: nil, context: [:])
                ]), digestsSource: true)
        try staging.publish([made.copy])
        // A chmod changes its ctime: only the source's own digest can show that it is the same.
        try Descriptor.open(source, for: .reading).setMode(0o640, named: source)
        scene.remote.find(.absent)
        let report = try await scene.rebuild()
        #expect(report.unmatched.isEmpty && report.copies == 1 && report.toSend == ["nas": 1])
        let rows = try await scene.rows()
        #expect(rows.count == 1)
        let row = try #require(rows.first)
        #expect(row.upload.size == 20 && row.asset.stagedSize == 20 && row.asset.size == 50)
        #expect(row.asset.stagingMode == .export && row.asset.action == .delete)
        let daemon = try await Daemon.start(scene.settings, kinds: [scene.kind], log: .silent)
        let work = Task { try await daemon.run() }
        try await eventually("the export is uploaded and its source deleted") {
            try FileStatus.ifPresent(at: source) == nil
        }
        work.cancel()
        try await work.value
        #expect(scene.remote.contents == [Array(noise(50).prefix(20))])
    }

    @Test("the start sets aside a copy without a database record, and deletes none")
    func strangeCopy() async throws {
        let scene = try Scene()
        scene.remote.find(.absent)
        _ = try await scene.rebuild()
        try scene.folder.write("staging/77", noise(70))
        let daemon = try await Daemon.start(scene.settings, kinds: [scene.kind], log: .silent)
        let work = Task { try await daemon.run() }
        let place = scene.folder.path.appending("staging/recovered/77")
        try await eventually("the copy has been set aside", holds: { try FileStatus.ifPresent(at: place) != nil })
        work.cancel()
        try await work.value
        #expect(try Files.read(place) == noise(70))
    }

    @Test("an absent folder stops the rebuild unless it is forced")
    func away() async throws {
        let scene = try Scene()
        try scene.folder.write("staging/3", noise(50))
        try Files.rename(scene.folder.path.appending("cam"), to: scene.folder.path.appending("elsewhere"))
        await #expect(throws: RebuildError.self) { try await scene.rebuild() }
        #expect(try await scene.rebuild { $0.isForced = true }.unmatched.count == 1)
    }
}
