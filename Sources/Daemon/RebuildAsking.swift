internal import Core
internal import Linux
internal import Store

/// Asks the destinations what they hold, and gives up on those that cannot say.
actor RebuildAsking {
    private let destinations: [String: any Destination]
    private let options: RebuildOptions
    private let clocks: any Clocks
    /// Destinations that are asked no more, and why.
    private(set) var silent: [String: String] = [:]
    private var failuresInARow: [String: Int] = [:]
    private(set) var report = RebuildReport()

    init(_ destinations: [String: any Destination], _ options: RebuildOptions, clocks: any Clocks) {
        self.destinations = destinations
        self.options = options
        self.clocks = clocks
        if options.isOffline {
            for name in destinations.keys { silent[name] = "--offline: it was not asked" }
        }
    }

    /// Whether any of these may still be able to tell: only then is a digest worth its reading.
    func canTell(_ names: [String]) -> Bool { names.contains { silent[$0] == nil } }

    /// How the upload of this file stands.
    ///
    /// - Parameters:
    ///   - mayBeOld: The folder leaves alone what was there before it was watched, so "not there" is no reason to send.
    func standing(
        of order: Arrival.Order, id: String, _ file: StagedFile?, modified: Int64, mayBeOld: Bool
    ) async -> Restored.Standing {
        let name = order.destination
        guard silent[name] == nil, let destination = destinations[name], let file else {
            return undecided(name, silent[name] ?? "its content could not be read")
        }
        let wish = UploadOrder(
            id: id, generation: 1, file: file, name: order.name, mediaType: order.mediaType, modified: modified,
            metadata: order.metadata, checkpoint: nil)
        do {
            switch try await destination.find(wish) {
            case .held(let remote):
                failuresInARow[name] = 0
                report.held[name, default: 0] += 1
                return .done(remote)
            case .absent:
                failuresInARow[name] = 0
                if mayBeOld {
                    return undecided(
                        name, "\(name) does not hold it, but it may have been here before the folder was watched")
                }
                report.toSend[name, default: 0] += 1
                return .toSend
            case .unknown(let why):
                // Of the kind, and not of the file: the next would be asked in vain.
                silent[name] = why
                return undecided(name, why)
            }
        } catch {
            let failures = failuresInARow[name, default: 0] + 1
            failuresInARow[name] = failures
            // Each may cost a minute of waiting.
            if failures >= 3 { silent[name] = error.failure.message }
            return undecided(name, error.failure.message)
        }
    }

    private func undecided(_ name: String, _ why: String) -> Restored.Standing {
        report.reasons[name] = why
        switch options.undecided {
        case .send:
            report.toSend[name, default: 0] += 1
            return .toSend
        case .assumeSent:
            report.assumed[name, default: 0] += 1
            return .done(
                RemoteObject(
                    id: nil, url: nil, verifiedBy: "assumed",
                    warnings: ["counted as sent by `sluice rebuild`, without asking; the source is kept"]))
        case .hold:
            report.undecided[name, default: 0] += 1
            return .undecided(
                Failure(
                    .local, code: "perhaps_sent",
                    message: "may have been sent before the rebuild: \(why). `sluice retry` sends it, `sluice cancel` "
                        + "lets it be; the source stays until then", at: clocks.wall(), retryable: true))
        }
    }
}

extension Restored.Standing {
    /// A person's word, which is no reason to touch a source.
    var isAssumed: Bool { if case .done(let remote) = self { remote.verifiedBy == "assumed" } else { false } }
}
