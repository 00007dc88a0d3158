import Core
import Linux
import TestKit
import Testing

/// Daemon and receiver, or daemon and the folder of its `directory`, on disks whose power can be cut.
///
/// The camera of this scene syncs the files that it drops, and their folders: data that another program did not sync is
/// not our concern.
struct PoweredScene {
    /// The folders that share a disk.
    enum Layout: String, Sendable, CaseIterable {
        /// One disk for all.
        case together
        /// State and staging on the box's disk, the source on a card, the far end on a third. `move` stays on the card.
        case apart
        /// The same, and `move` takes sources from the card to the box's disk.
        case across
        /// State and staging on a disk each; source and far end share the third.
        case split
    }
    /// The machines that lose power: all, or one of the two. The daemon survives a cut of the far one.
    enum Power: String, Sendable, CaseIterable { case all, box, far }
    /// The destination of files: the receiver, or a folder of the far disk, like that of a NAS that is mounted.
    enum Target: String, Sendable, CaseIterable { case receiver, directory }

    struct Variant: CustomTestStringConvertible, Sendable {
        let kind: LoopDisk.Kind
        let layout: Layout
        let source: DaemonFixture.Source
        var target = Target.receiver
        var keeping = StagingMode.copy
        var testDescription: String {
            "\(target.rawValue) on \(kind.rawValue), disks \(layout.rawValue), source \(source.rawValue)"
                + (keeping == .copy ? "" : ", \(keeping.rawValue)")
        }
    }

    let fixture: DaemonFixture
    let camera: Camera
    private let box: [LoopDisk]
    private let far: [LoopDisk]
    let variant: Variant

    init(_ variant: Variant, seed: UInt64) async throws {
        // Sparse, and large enough for the files of a long run.
        func disk() async throws -> LoopDisk { try await LoopDisk(variant.kind, size: 1 << 30) }
        self.variant = variant
        let first = try await disk()
        var places: [String: FilePath]
        switch variant.layout {
        case .together:
            (box, far) = ([first], [first])
            places = ["drop", "done", "staging", "state", "received", "archive"].reduce(into: [:]) {
                $0[$1] = first.path
            }
        case .apart, .across:
            let (card, far) = (try await disk(), try await disk())
            (box, self.far) = ([first, card], [far])
            places = ["drop": card.path, "staging": first.path, "state": first.path]
            for name in ["received", "archive"] { places[name] = far.path }
            places["done"] = variant.layout == .across ? first.path : card.path
        case .split:
            let (staging, shared) = (try await disk(), try await disk())
            (box, far) = ([first, staging, shared], [shared])
            places = ["state": first.path, "staging": staging.path]
            for name in ["drop", "done", "received", "archive"] { places[name] = shared.path }
        }
        fixture = try DaemonFixture(source: variant.source, binary: try Setting.binary(), places: places)
        fixture.stagingKeys = ", keep_free: 0 B"
        if variant.target == .directory { fixture.uploadTo = ["archive"] }
        switch variant.keeping {
        // Bytes that are handed over come from no folder.
        case .copy, .received: break
        case .inPlace: fixture.folderKeys = ["staging: {copy: in-place}"]
        // The output equals the input, so that the files that arrive can be compared.
        case .export: fixture.folderKeys = ["export: {command: [cp, \"{input}\", \"{output}\"], output: \"{name}\"}"]
        }
        camera = Camera(fixture, dice: Dice(seed: seed), isDurable: true)
    }

    /// The power cuts that are possible with these disks.
    var powers: [Power] { variant.layout == .apart || variant.layout == .across ? Power.allCases : [.all] }

    /// The disks fail first, so that nothing is written while processes end; then the processes that used them end;
    /// then the disks come back. The processes do not.
    func cut(_ power: Power) async throws {
        var disks: [LoopDisk] = []
        for disk in (power == .far ? [] : box) + (power == .box ? [] : far)
        where !disks.contains(where: { $0 === disk }) {
            disks.append(disk)
        }
        for disk in disks { try await disk.shutDown() }
        if power != .far { fixture.killDaemon() }
        if power != .box { fixture.killReceiver() }
        for disk in disks { try await disk.remount() }
    }

    /// Starts the processes that ``cut(_:)`` ended.
    func start(after power: Power) async throws {
        if power != .box { try await startReceiver() }
        if power != .far { try fixture.startDaemon() }
    }

    /// A folder needs no server.
    func startReceiver(environment: [String: String] = [:]) async throws {
        if variant.target == .receiver { try await fixture.startReceiver(environment: environment) }
    }

    /// Waits until no transfer is under way any more, and checks every promise.
    func drain() async throws {
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(90))
        try await outcome.check()
    }
}
