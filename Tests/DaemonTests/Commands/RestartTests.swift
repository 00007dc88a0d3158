import API
import Core
import Destinations
import Linux
import Store
import Synchronization
import TestKit
import Testing

@testable import Config
@testable import Daemon

/// A reload must have the same result as a stop and a start with the new file.
@Suite("Reload and restart", .serialized, .timeLimit(.minutes(Patience.minutes(5))))
struct RestartTests {
    /// A daemon that gets new settings in one way or the other.
    private final class ReconfiguredDaemon {
        let folder = TemporaryFolder()
        let isReloaded: Bool
        let remotes: [String: ScriptedRemote]
        let written: DaemonScene.Written
        private var daemon: Daemon?
        private var running: Task<Void, any Error>?

        init(isReloaded: Bool, _ settings: (FilePath) throws -> Settings) throws {
            self.isReloaded = isReloaded
            var remotes: [String: ScriptedRemote] = [:]
            for url in ["one", "two", "down"] { remotes[url] = ScriptedRemote() }
            remotes["down"]?.standard = .fail(.holdDestination(after: nil))
            self.remotes = remotes
            for name in ["a", "b", "c"] { try Files.makeFolders(folder.path.appending(FilePath(name))) }
            written = DaemonScene.Written(try settings(folder.path))
        }

        func start() async throws {
            let (remotes, written) = (remotes, written)
            let kind = DestinationDefinition(type: DestinationSchema(name: "scripted", summary: "", keys: [])) {
                values, _ in
                guard case .text(let url)? = values["url"], let remote = remotes[url] else {
                    throw UnusableSettingError(key: "url", problem: "is unknown")
                }
                return remote
            }
            // The last run's store releases its lock when it has no owner any more, which is soon.
            let daemon = try await eventually("the lock of the state has been released") { () -> Daemon? in
                do {
                    return try await Daemon.start(
                        written.settings, kinds: [kind], log: .silent,
                        reloading: Reloading(load: { try written.load() }))
                } catch is StateLockedError { return nil }
            }
            let never = AsyncSignal()
            running = Task { try await daemon.run { await never.wait() } }
            self.daemon = daemon
            try await rest()
        }

        func stop() async throws {
            running?.cancel()
            try await running?.value
            // The next start needs the lock that the store holds.
            (daemon, running) = (nil, nil)
        }

        func change(to settings: (FilePath) throws -> Settings) async throws {
            let new = try settings(folder.path)
            written.edit { $0 = new }
            if isReloaded {
                let view = try await daemon?.reload()
                #expect(view?.applied == true, "\(String(describing: view))")
            } else {
                try await stop()
                try await start()
            }
            try await rest()
        }

        func drop(_ name: String, _ content: [UInt8]) async throws {
            let beside = try folder.write("beside", content)
            let path = folder.path.appending(FilePath(name))
            try Files.rename(beside, to: path)
            // A file that a folder selects is taken up before the next change, so that both know it by the same
            // settings.
            let isTaken = written.settings.folders.contains { folder in
                path.relative(to: folder.watch.path).map {
                    NameRules(include: folder.watch.include, exclude: folder.watch.exclude).matches($0)
                } ?? false
            }
            guard isTaken, let daemon else { return }
            try await eventually("\(name) has an upload") {
                try await daemon.list(ListQuery()).uploads.contains { $0.path == path.display }
            }
        }

        /// Waits until all files have been seen, and all loops are at rest.
        func rest() async throws {
            try await eventually("all loops of the daemon are at rest", within: .seconds(30)) {
                await daemon?.isAtRest() ?? false
            }
        }

        /// The state as a person would see it.
        func picture() async throws -> [String] {
            guard let daemon else { return [] }
            let page = try await daemon.list(ListQuery())
            let uploads = page.uploads.map { upload in
                let path = FilePath(upload.path).relative(to: folder.path)?.display ?? upload.path
                return [
                    path, upload.folder, upload.destination, upload.state.rawValue, "\(upload.priority)",
                    upload.holds.map(\.kind.rawValue).joined(separator: "+"),
                ].joined(separator: " ")
            }
            let objects = remotes.flatMap { url, remote in remote.objects.map { "\(url) has \($0)" } }
            let status = try await daemon.status()
            return (uploads + objects).sorted() + status.folders.map { "\($0.name) \($0.state.rawValue)" }
                + status.destinations.map(\.name)
        }
    }

    private static func settings(_ dice: inout Dice) -> (FilePath) throws -> Settings {
        let names = ["a", "b", "c"].filter { _ in Int.random(in: 0..<3, using: &dice) > 0 }
        let all = ["p", "q"].filter { _ in Int.random(in: 0..<4, using: &dice) > 0 }
        let destinations = all.isEmpty ? ["p"] : all
        let urls = destinations.map { _ in ["one", "two", "one", "down"][Int.random(in: 0..<4, using: &dice)] }
        let folders = names.map { name in
            (
                name: name, path: Int.random(in: 0..<6, using: &dice) == 0 ? "c" : name,
                include: Int.random(in: 0..<2, using: &dice) == 0 ? [] : ["*.mp4"],
                to: Int.random(in: 0..<2, using: &dice) == 0
                    ? destinations : [destinations[Int.random(in: 0..<destinations.count, using: &dice)]],
                priority: Int.random(in: 0..<3, using: &dice),
                existing: Int.random(in: 0..<3, using: &dice) == 0 ? WatchRule.Existing.skip : .upload
            )
        }
        let order = UploadOrdering.allCases[Int.random(in: 0..<UploadOrdering.allCases.count, using: &dice)]
        return { root in
            Settings(
                state: root.appending("state"),
                staging: StagingSettings(
                    path: root.appending("staging"), copy: .copy, maxSize: nil, keepFree: 0),
                folders: try folders.map { folder in
                    FolderSettings(
                        watch: WatchRule(
                            name: folder.name, path: root.appending(FilePath(folder.path)), include: folder.include,
                            quietFor: .milliseconds(20), existing: folder.existing),
                        routes: folder.to.map { UploadRoute(to: $0) }, afterUpload: .keep, empty: .skip,
                        duplicates: .upload,
                        priority: folder.priority, name: try Template("{folder}/{relative}"), metadata: [:], key: nil,
                        context: [:], policy: PolicyOverrides())
                },
                destinations: zip(destinations, urls).map { name, url in
                    DestinationSettings(
                        name: name, type: "scripted", values: ["url": .text(url)], policy: PolicyOverrides(), place: "")
                },
                policy: PolicySettings(
                    total: 4, perDestination: 4, order: order,
                    retry: Backoff(first: .seconds(3600), ceiling: .seconds(3600))),
                control: ControlSettings(socket: root.appending("control.sock")))
        }
    }

    @Test("after any configuration change, reload and restart lead to the same state", arguments: 0..<4)
    func same(_ number: Int) async throws {
        var dice = Dice(seed: UInt64(4000 + number))
        let first = Self.settings(&dice)
        let daemons = [
            try ReconfiguredDaemon(isReloaded: true, first), try ReconfiguredDaemon(isReloaded: false, first),
        ]
        for daemon in daemons { try await daemon.start() }
        for step in 0..<6 {
            for file in 0..<3 {
                let name =
                    "\(["a", "b", "c"][Int.random(in: 0..<3, using: &dice)])/\(step)-\(file).\(Int.random(in: 0..<2, using: &dice) == 0 ? "mp4" : "txt")"
                let content = noise(10 + step * 10 + file)
                for daemon in daemons { try await daemon.drop(name, content) }
            }
            for daemon in daemons { try await daemon.rest() }
            let next = Self.settings(&dice)
            for daemon in daemons { try await daemon.change(to: next) }
            let (reloaded, restarted) = (try await daemons[0].picture(), try await daemons[1].picture())
            #expect(reloaded == restarted, "step \(step), seed \(4000 + number)")
        }
        for daemon in daemons { try await daemon.stop() }
    }
}
