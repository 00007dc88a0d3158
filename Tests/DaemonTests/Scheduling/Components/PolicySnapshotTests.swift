import Core
import Linux
import Staging
import Store
import TestKit
import Testing

@testable import Config
@testable import Daemon

@Suite("Policy snapshot")
struct PolicySnapshotTests {
    private let clocks = ManualClocks()
    private let folder = TemporaryFolder()

    private func snapshot(
        _ rules: PolicyRules = PolicyRules(), concurrency: Int? = nil, pauses: PauseSet = PauseSet(),
        overrides: OverrideSet = OverrideSet(), transfers: RunningTransfers = RunningTransfers()
    ) throws -> PolicySnapshot {
        let root = folder.path
        let policy = PolicySettings(
            total: 4, perDestination: 2, order: .oldestFirst,
            retry: Backoff(first: .seconds(10), ceiling: .seconds(1000)), rules: rules)
        let settings = Settings(
            state: root.appending("state"),
            staging: StagingSettings(path: root.appending("staging"), copy: .copy, maxSize: nil, keepFree: 0),
            folders: [
                FolderSettings(
                    watch: WatchRule(name: "cam", path: root.appending("cam")), routes: [UploadRoute(to: "nas")],
                    afterUpload: .keep,
                    empty: .skip, duplicates: .upload, priority: 0, name: try Template("{relative}"), metadata: [:],
                    key: nil, context: [:], policy: PolicyOverrides(concurrency: concurrency))
            ],
            destinations: [
                DestinationSettings(name: "nas", type: "directory", values: [:], policy: PolicyOverrides(), place: "")
            ],
            policy: policy, control: ControlSettings(socket: root.appending("control.sock")))
        var facts = SchedulerFacts()
        _ = facts.network.record(
            NetworkMonitor.Reached(reachability: .local, route: .open(.local), since: clocks.wall()), for: "nas")
        (facts.pauses, facts.overrides, facts.transfers) = (pauses, overrides, transfers)
        facts.busy.add([rules])
        return PolicySnapshot(
            RuntimeConfiguration(
                settings: settings, staging: StagingArea(folder: root.appending("staging"), method: .copy),
                destinations: [:], since: clocks.wall()),
            clocks: clocks, quotas: QuotaState(policy: rules), facts: facts)
    }

    private func running(_ count: Int) -> RunningTransfers {
        var transfers = RunningTransfers()
        for number in 0..<count {
            transfers.add(
                RunningTransfers.Transfer(
                    destination: "nas", route: .local, folders: ["\(number)": "cam"], inPlace: [], accounts: [:],
                    task: Task {}),
                transfers.nextNumber())
        }
        return transfers
    }

    @Test("free slots are the destination's slots minus its running transfers")
    func slots() throws {
        #expect(try snapshot().verdict(for: "nas") == .go(2))
        #expect(try snapshot(transfers: running(1)).verdict(for: "nas") == .go(1))
        #expect(try snapshot(transfers: running(2)).verdict(for: "nas") == .busy)
    }

    @Test("a folder with its own limit is full when that many of its files run")
    func full() throws {
        #expect(try snapshot(concurrency: 2, transfers: running(1)).fullFolders == [])
        #expect(try snapshot(concurrency: 2, transfers: running(2)).fullFolders == ["cam"])
        #expect(try snapshot(transfers: running(2)).fullFolders == [])
    }

    @Test("a draining pause holds waiting uploads and no running transfer")
    func draining() throws {
        var pauses = PauseSet()
        pauses.drain([PauseScope(scope: .all, name: "")])
        pauses.replace([PauseRecord(scope: .all, name: "", since: clocks.wall(), until: nil)])
        let snapshot = try snapshot(pauses: pauses, transfers: running(1))
        let transfer = try #require(snapshot.transfers.all.first)
        #expect(!snapshot.blockers(on: transfer).isEmpty)
        #expect(snapshot.cutting.blockers(on: transfer).isEmpty)
        #expect(!snapshot.blockers(at: "nas").isEmpty)
    }

    @Test("an exemption of one upload applies to that upload only")
    func exemption() throws {
        var overrides = OverrideSet()
        overrides.replace([
            OverrideRecord(
                scope: .upload, name: "a", kind: .exemption(.metered), since: clocks.wall(),
                until: clocks.wall().advanced(by: .seconds(60)), who: "root")
        ])
        let snapshot = try snapshot(overrides: overrides)
        let cam = FileClass(folder: "cam", mask: .unknown)
        #expect(snapshot.folder(cam, exempting: snapshot.exemptions(of: "a")).exempt == [.metered])
        #expect(snapshot.folder(cam, exempting: snapshot.exemptions(of: "b")).exempt.isEmpty)
        #expect(snapshot.exemptUploads.map(\.id) == ["a"])
    }

    @Test(
        "an unchecked source of `busy` holds uploads, but not a plan or an idle view"
    )
    func busy() throws {
        let rule = BusyRule(.command(["/bin/busy"]), every: .seconds(60), timeout: .seconds(5))
        let rules = PolicyRules(busy: rule)
        let snapshot = try snapshot(rules)
        #expect(!snapshot.blockers(at: "nas").isEmpty)
        #expect(snapshot.planned.blockers(at: "nas").isEmpty)
        #expect(snapshot.shown.blockers(at: "nas").isEmpty)
        #expect(snapshot.assumingFree.blockers(at: "nas").isEmpty)
        // Only an upload that nothing else holds has a source asked.
        let ready = UploadClass(folder: "cam", destination: "nas")
        #expect(snapshot.wantedSources([ready], []) == [rule.source])
        #expect(snapshot.wantedSources([], []) == [])
        var pauses = PauseSet()
        pauses.replace([PauseRecord(scope: .folder, name: "cam", since: clocks.wall(), until: nil)])
        #expect(try self.snapshot(rules, pauses: pauses).wantedSources([ready], []) == [])
    }

    @Test("a destination missing from the configuration holds its uploads with a remedy")
    func gone() throws {
        let holds = try snapshot().holds(folder: "cam", destination: "cloud")
        #expect(holds.map(\.kind) == [.destination])
        #expect(holds.first?.text.contains("sluice cancel --destination cloud") == true)
    }
}
