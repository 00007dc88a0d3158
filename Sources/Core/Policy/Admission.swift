/// Decides whether uploads of one class (a folder to a destination) may start now, and if not, why not.
///
/// A pure function of the configuration and the present inputs: no clock, file or socket. `until` of a hold says when
/// to ask again.
package struct Admission: Hashable, Sendable {
    /// Parallel uploads, over all destinations.
    package var total: Int
    /// The rules of `policy`.
    package var rules: PolicyRules

    package init(total: Int, rules: PolicyRules = PolicyRules()) {
        self.total = total
        self.rules = rules
    }

    /// A pause that a person set: of everything, a folder or a destination.
    package struct Pause: Hashable, Sendable {
        package var since: WallTime
        package var until: WallTime?

        package init(since: WallTime, until: WallTime?) {
            self.since = since
            self.until = until
        }
    }

    /// The inputs of a decision: everything that the daemon knows at that moment.
    package struct PolicyInputs: Sendable {
        package var now: WallTime
        package var monotonic: MonotonicTime
        /// The local time zone.
        package var zone: Zone
        /// Why the wall clock cannot be trusted; `nil` when it can.
        package var clockTrouble: Hold?
        /// Running uploads in total.
        package var running: Int
        package var everything: Pause?
        /// A person has limited the total speed to zero for a while.
        package var globalStop: Pause?
        /// The known facts about networks; `nil` while no rule needs them.
        package var network: Metering?
        /// The usage of every quota.
        package var quotas: QuotaState
        /// The machine's power source; `nil` without a battery, and while no rule needs it.
        package var power: Power?
        /// Not for a question about a machine that cannot be seen.
        package var knowsPower = true
        /// Read while a rule asks for it.
        package var temperature: Temperature
        /// The last answer of each source of `busy` that is still valid.
        package var busy: [BusySource: BusyAnswer]

        package init(
            now: WallTime, monotonic: MonotonicTime, zone: Zone = .utc, clockTrouble: Hold? = nil, running: Int,
            everything: Pause?, network: Metering? = nil, quotas: QuotaState = QuotaState(policy: PolicyRules()),
            power: Power? = nil, temperature: Temperature = .unreadable, busy: [BusySource: BusyAnswer] = [:]
        ) {
            self.now = now
            self.monotonic = monotonic
            self.zone = zone
            self.clockTrouble = clockTrouble
            self.running = running
            self.everything = everything
            self.network = network
            self.quotas = quotas
            self.power = power
            self.temperature = temperature
            self.busy = busy
        }
    }

    /// The present state of one destination.
    package struct DestinationState: Hashable, Sendable {
        package var name: String
        package var slots: Int
        package var running: Int
        package var pause: Pause?
        package var health: DestinationHealth
        /// The rules of its own settings.
        package var rules: PolicyRules
        package var reachability: Reachability
        /// Since when the network state is as it is, and has its present meaning.
        package var reachabilitySince: WallTime

        package init(
            name: String, slots: Int, running: Int, pause: Pause?, health: DestinationHealth,
            rules: PolicyRules = PolicyRules(), reachability: Reachability = .local,
            reachabilitySince: WallTime = WallTime(milliseconds: 0)
        ) {
            self.name = name
            self.slots = slots
            self.running = running
            self.pause = pause
            self.health = health
            self.rules = rules
            self.reachability = reachability
            self.reachabilitySince = reachabilitySince
        }
    }

    /// The present state of one folder.
    package struct FolderState: Hashable, Sendable {
        package var name: String
        /// The folder with a pattern whose card it is; `nil` for a folder of its own.
        package var pattern: String?
        /// The file, or what is known of each of the files.
        package var file: FileAnswers
        package var pause: Pause?
        package var rules: PolicyRules
        /// The rules from which a person has exempted it, regardless of the place that contains them.
        package var exempt: Set<Exemption>

        package init(
            name: String, pattern: String? = nil, file: FileAnswers = .noFile, pause: Pause? = nil,
            rules: PolicyRules = PolicyRules(), exempt: Set<Exemption> = []
        ) {
            self.name = name
            self.pattern = pattern
            self.file = file
            self.pause = pause
            self.rules = rules
            self.exempt = exempt
        }

        /// The same where no condition asks for the file.
        package var ofAnyFile: FolderState {
            var folder = self
            folder.file = .noFile
            return folder
        }
    }

    package enum Verdict: Hashable, Sendable {
        /// This many more may start.
        case go(Int)
        /// Only the occupied slots prevent it.
        case busy
        case wait([Hold])
    }

    /// The holds of uploads to `remote`, regardless of free slots.
    package func holds(for remote: DestinationState, from folder: FolderState? = nil, in inputs: PolicyInputs) -> [Hold]
    {
        hardBlockers(on: remote, from: folder, in: inputs) + (remote.health.currentHold.map { [$0] } ?? [])
    }

    /// The holds that forbid every byte to `remote`: all except its own health, which still allows a probe.
    ///
    /// - Parameter isUnderWay: For an upload that has begun and has reserved its bytes; its reservation ends it.
    package func hardBlockers(
        on remote: DestinationState, from folder: FolderState? = nil, in inputs: PolicyInputs, isUnderWay: Bool = false
    ) -> [Hold] {
        var holds = [pause(inputs.everything, "everything"), pause(remote.pause, "destination \(remote.name)")]
            .compactMap { $0 }
        if let still = inputs.globalStop {
            holds.append(
                Hold(
                    .global, since: still.since, until: still.until,
                    text: "`sluice limit 0` stops all transfers; `sluice limit off` ends that"))
        }
        let exempt = folder?.exempt ?? []
        holds += rules.holds("policy", in: inputs, excusing: exempt)
        holds += remote.rules.holds("destinations.\(remote.name)", in: inputs, excusing: exempt)
        if let folder { holds += hardBlockers(on: folder, in: inputs) }
        holds += pauseHolds(remote, folder, over: nil, in: inputs)
        let applied: AppliedRules?
        switch routeDecision(to: remote, from: folder, in: inputs) {
        case .closed(let more, let rules):
            holds += more
            // An exhausted quota is also shown after that, and before the network changes.
            applied = rules
        case .open(let route): applied = route.ledger == .local ? nil : route.applied
        }
        // While the clock is not trusted, the counted usage and its end are unknown: the clock's own hold says that.
        if let applied, !exempt.contains(.quota), inputs.clockTrouble == nil {
            let kind = QuotaState.Class(remote.name, from: folder?.name, applied.quotas)
            holds += inputs.quotas.holds(for: kind, isStarting: !isUnderWay)
        }
        return inputs.withoutDuplicates(holds)
    }

    /// The holds that forbid uploads from a folder, to any destination.
    package func hardBlockers(on folder: FolderState, in inputs: PolicyInputs) -> [Hold] {
        let holds = [pause(folder.pause, "folder \(folder.name)")].compactMap { $0 }
        return inputs.withoutDuplicates(
            holds + folder.rules.holds("folder \(folder.name)", in: inputs, excusing: folder.exempt))
    }

    private func pause(_ pause: Pause?, _ what: String) -> Hold? {
        pause.map { Hold(.global, since: $0.since, until: $0.until, text: "\(what) is paused") }
    }

    /// When a hold may change without an event: the caller evaluates again then.
    package func nextChange(_ remotes: [DestinationState], _ folders: [FolderState], in inputs: PolicyInputs)
        -> WallTime?
    {
        let pauses = [inputs.everything, inputs.globalStop] + remotes.map(\.pause) + folders.map(\.pause)
        let times =
            pauses.compactMap { $0?.until }
            + ([rules] + remotes.map(\.rules) + folders.map(\.rules)).compactMap { $0.nextChange(in: inputs) }
            + [inputs.clockTrouble?.until, inputs.quotas.nextChange].compactMap { $0 }
        return times.min()
    }

    /// - Parameter folder: For uploads from this folder alone; adds the holds of its own rules.
    package func verdict(for remote: DestinationState, from folder: FolderState? = nil, in inputs: PolicyInputs)
        -> Verdict
    {
        let hardBlockers = hardBlockers(on: remote, from: folder, in: inputs)
        let slots = slots(at: remote, in: inputs)
        if hardBlockers.isEmpty { return slots }
        guard case .wait(let more) = slots else { return .wait(hardBlockers) }
        return .wait(hardBlockers + more)
    }

    /// The verdict of health and slots for uploads to `remote` that no rule forbids.
    package func slots(at remote: DestinationState, in inputs: PolicyInputs) -> Verdict {
        // When a probe is due, the destination's trouble no longer prevents one upload.
        if let current = remote.health.currentHold, !remote.health.mayProbe(at: inputs.monotonic) {
            return .wait([current])
        }
        let free = free(for: remote, running: remote.running, inAll: inputs.running)
        return free > 0 ? .go(free) : .busy
    }

    /// How many more uploads to `remote` have slots; 0 or less for none.
    ///
    /// - Parameters:
    ///   - running: Running uploads to it.
    ///   - all: Running uploads to all destinations.
    package func free(for remote: DestinationState, running: Int, inAll all: Int) -> Int {
        // A destination that was down is tried with one upload at a time until one gets an answer.
        let slots = remote.health.trouble == nil ? remote.slots : 1
        return min(slots - running, total - all)
    }
}
