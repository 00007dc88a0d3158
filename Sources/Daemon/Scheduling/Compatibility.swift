internal import Config
internal import Core
internal import Linux
internal import Store

// Former names, until their callers have moved.

extension Scheduler {
    init(
        house: House, busAddress: String = NetworkManagerEvents.systemBus,
        closeInterface: @escaping @Sendable (String) async -> Void,
        loseAddresses: @escaping @Sendable (Set<IPAddress>) -> Void,
        reconsiderSource: @escaping @Sendable (String, FilePath) -> Void
    ) {
        self.init(
            house: house, busAddress: busAddress,
            connections: Connections(closeInterface: closeInterface, loseAddresses: loseAddresses),
            reconsiderSource: reconsiderSource)
    }
    func take(_ setup: RuntimeConfiguration, changed: Set<String>) async { await apply(setup, changed: changed) }
    func reloadExceptions() async throws { try await reloadOverrides() }
    var exceptions: [OverrideRecord] { overrideSet.records }
    var overrides: [OverrideRecord] { overrideSet.active(at: house.clocks.wall()) }
    var pauses: [PauseRecord] { pauseSet.records }
    func spare(_ places: [PausedPlace]) { drain(places) }
    func spareNoMore(_ places: [PausedPlace]) { stopDraining(places) }
    func takeBackWishes() async throws { try await continueUnpaused() }
    func choice(of id: String, to destination: String, from folder: String) -> Admission.RouteChoice? {
        snapshot.routeChoice(of: id, to: destination, from: folder)
    }
    func turn(of destination: String, folder: String) -> String { snapshot.turn(of: destination, folder: folder) }
    func slowest(of id: String, to destination: String, from folder: String) -> (what: String, rate: Int64)? {
        snapshot.slowest(of: id, to: destination, from: folder)
    }
    var short: [String: QuotaWait]? { quotaWaits.all }
    var excusedUploads: [(id: String, exemptions: Set<Exemption>)] { snapshot.exemptUploads }
    func neverHold(of upload: UploadRecord, size: Int64) -> Hold? { snapshot.neverHold(of: upload, size: size) }
    func roomHold(of destination: String, missing: Int64, name: String) -> Hold? {
        destinations.capacity(of: destination)?.hold(at: destination, missing: missing, name: name)
    }
    var reached: [String: NetworkMonitor.Reached] { network.routes }
    func hold(ofFolder name: String) -> Hold? { snapshot.shown.hold(ofFolder: name) }
    var rooms: [String: RemoteCapacity] { destinations.capacities }
    func pause(_ scope: PauseRecord.Scope, _ name: String) -> Admission.Pause? { pauseSet.pause(scope, name) }
    func isOpen(_ name: String) async -> Bool { await shown().isOpen(name) }
    func neverGoing(_ backlog: [Backlog]) -> [(folder: String, destination: String, files: Int, text: String)] {
        snapshot.neverGoing(backlog)
    }
    var admission: Admission { snapshot.admission }
    var plannedWorld: Admission.PolicyInputs { snapshot.planned.inputs }
    func remote(_ name: String) -> Admission.DestinationState { snapshot.destination(name) }
    func origin(_ name: String) -> Admission.FolderState { snapshot.folder(name) }
    var trust: ClockMonitor { clock }
}

extension NetworkMonitor.Reached {
    var way: Admission.RouteDecision { route }
}
