internal import API
internal import Config
internal import Core
internal import Destinations
internal import Store

// Facts of a snapshot for people that several queries need.

/// A class of waiting uploads, and what holds them.
struct HeldUploads {
    var upload: UploadClass
    var count: Int
    /// The one that ends last.
    var hold: Hold
    /// Those of rules.
    var rules: [Hold]
}

extension PolicySnapshot {
    /// The classes of waiting uploads that are held, each with its binding hold.
    ///
    /// - Parameter standby: The uploads that wait for another destination to have their files.
    func held(
        _ waiting: [(upload: UploadClass, count: Int)], standby: [UploadClass: Standby]
    ) -> [HeldUploads] {
        waiting.compactMap { one, count in
            let holds = holds(on: one)
            if let hold = holds.lastEnding {
                return HeldUploads(upload: one, count: count, hold: hold, rules: holds.filter { $0.rule != nil })
            }
            guard let waiting = standby[one] else { return nil }
            let hold = Hold(
                .alternative, since: inputs.now, until: inputs.now.advanced(by: waiting.wait),
                text: "go to \(one.destination) only if they are not verified in time at another destination")
            return HeldUploads(upload: one, count: Int(waiting.uploads.files), hold: hold, rules: [])
        }
    }

    /// The known space at a destination; `nil` if it has not been queried, or reported none.
    func space(at destination: String) -> SpaceView? {
        guard let capacity = destinations.capacity(of: destination), let space = capacity.space else { return nil }
        return SpaceView(space, askedAt: capacity.queriedAt)
    }

    /// The exceptions for an upload and for its folder.
    func exceptions(id: String?, folder: String?) -> [OverrideView] {
        overrides.records.filter { exception in
            exception.scope == .upload && exception.name == id || exception.scope == .folder && exception.name == folder
        }.map { OverrideView($0) }
    }

    /// Rules of the configuration without an effect, which a person may rely on.
    var ineffectiveRules: [(destination: String, words: String)] {
        settings.destinations.flatMap { destination -> [(destination: String, words: String)] in
            guard let site = configuration.destinations[destination.name]?.site,
                let reachability = network.routes[destination.name]?.reachability
            else { return [] }
            return destination.policy.rules.withoutEffect(at: site, reachability).map { (destination.name, $0) }
        }
    }
}
