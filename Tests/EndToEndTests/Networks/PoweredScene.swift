import Core
import Linux
import TestKit
import Testing

/// Daemon and receiver, or daemon and the folder of its `directory`, on disks whose power can be cut.
///
/// The camera of this scene syncs what it drops, file and folder: what a program did not sync is not in our hands.
struct PoweredScene {
    /// Which folders share a disk.
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
    /// Whose power goes: everybody's, or that of one of the two machines. The daemon outlives the far one.
    enum Power: String, Sendable, CaseIterable { case all, box, far }
    /// Where files go: to the receiver, or into a folder of the far disk, as of a NAS that is mounted.
    enum Target: String, Sendable, CaseIterable { case receiver, directory }

    struct Variant: CustomTestStringConvertible, Sendable {
        let kind: LoopDisk.Kind
        let layout: Layout
        let source: DaemonFixture.Source
        var target = Target.receiver
        var keeping = Keeping.copy
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
        // Sparse, and large enough for what a long run drops.
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
        // What is handed over comes from no folder.
        case .copy, .received: break
        case .inPlace: fixture.folderKeys = ["staging: {copy: in-place}"]
        // It makes what it was given, so that what arrives can be compared.
        case .export: fixture.folderKeys = ["export: {command: [cp, \"{input}\", \"{output}\"], output: \"{name}\"}"]
        }
        camera = Camera(fixture, dice: Dice(seed: seed), isDurable: true)
    }

    /// Whose power can go alone on these disks.
    var powers: [Power] { variant.layout == .apart || variant.layout == .across ? Power.allCases : [.all] }

    /// The disks go first, so that nothing is written on the way out; then the processes that lived on them; then the
    /// disks come back. The processes do not.
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

    /// Starts what ``cut(_:)`` ended.
    func start(after power: Power) async throws {
        if power != .box { try await startReceiver() }
        if power != .far { try fixture.startDaemon() }
    }

    /// A folder needs nobody who serves it.
    func startReceiver(environment: [String: String] = [:]) async throws {
        if variant.target == .receiver { try await fixture.startReceiver(environment: environment) }
    }

    /// Waits until nothing is under way any more, and checks every promise.
    func drain() async throws {
        let outcome = Outcome(fixture: fixture, clips: camera.clips)
        try await outcome.wait(within: .seconds(90))
        try await outcome.check()
    }
}
