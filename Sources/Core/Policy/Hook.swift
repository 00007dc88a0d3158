/// A custom step: a program or an address that is told when something happens. Nothing that it does or leaves undone
/// touches an upload.
package struct Hook: Hashable, Sendable {
    package enum Target: Hashable, Sendable {
        /// A program, which reads the event from its standard input, and its arguments.
        case command([String])
        case web(WebHook)

        /// For people: arguments and paths may be secrets.
        package var shown: String {
            switch self {
            case .command(let words): FilePath(words.first ?? "").display
            case .web(let web): web.shown
            }
        }
    }

    /// The least that is waited for each notice, and the most: twice as long each time.
    package static let patience = Backoff(first: .seconds(5), ceiling: .seconds(1800))
    /// The endings that need no `on`.
    package static let usual = ["completed", "failed"]
    /// What a hook may be told of. `progress` is none of it: it comes twice a second, and is not kept.
    package static let types = [
        "loaded", "added", "state", "attempt", "attempt_failed", "recovered", "completed", "failed", "cancelled",
        "removed", "flushed", "source",
        "credential", "safe_to_remove", "paused", "resumed", "quota_reached", "remote_delete",
    ]
    /// What a person sends by hand.
    package static let test = "test"

    /// Of a hook that was given none.
    ///
    /// - Parameter index: In the file, from 0.
    package static func name(ofNumber index: Int) -> String { "hook-\(index + 1)" }

    package var name: String
    /// Types of events.
    package var on: [String]
    /// Only events of these; empty for all.
    package var folders: [String]
    package var destinations: [String]
    package var target: Target
    /// How long one notice may take.
    package var timeout: Duration
    package var retry: Backoff
    /// A notice that could not be delivered for so long never is.
    package var giveUpAfter: Duration

    package init(
        name: String, on: [String] = usual, folders: [String] = [], destinations: [String] = [], target: Target,
        timeout: Duration = .seconds(30), retry: Backoff = patience, giveUpAfter: Duration = .seconds(86_400)
    ) {
        self.name = name
        self.on = on
        self.folders = folders
        self.destinations = destinations
        self.target = target
        self.timeout = timeout
        self.retry = retry
        self.giveUpAfter = giveUpAfter
    }

    /// - Parameters:
    ///   - folder: That the event is about; `nil` for an event that is about none.
    ///   - destination: The same.
    package func wants(folder: String?, destination: String?) -> Bool {
        (folders.isEmpty || folder.map(folders.contains) ?? false)
            && (destinations.isEmpty || destination.map(destinations.contains) ?? false)
    }
}

/// An address that events are posted to.
package struct WebHook: Hashable, Sendable {
    package enum Network: String, Hashable, Sendable, CaseIterable {
        /// Each byte obeys `policy`, as those of uploads do.
        case policy
        /// At any time over any network that is not forbidden, whatever it costs and however slow uploads are to be.
        case any
    }

    package var url: String
    package var headers: [String: SecretSource]
    /// By which notices are signed; `nil` for no signature.
    package var secret: SecretSource?
    package var network: Network
    /// PEM certificates to trust in place of the system's.
    package var caFile: FilePath?

    package init(
        url: String, headers: [String: SecretSource] = [:], secret: SecretSource? = nil, network: Network = .policy,
        caFile: FilePath? = nil
    ) {
        self.caFile = caFile
        self.url = url
        self.headers = headers
        self.secret = secret
        self.network = network
    }

    /// Scheme, host and port: what may be shown, since a path is often a secret itself.
    package var shown: String {
        let end = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        return String(url[..<end] + url[end...].prefix { !"/?#".contains($0) })
    }
}
