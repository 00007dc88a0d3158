/// A custom step: a program or an address that is notified of events. Its result never affects an upload.
package struct Hook: Hashable, Sendable {
    package enum Target: Hashable, Sendable {
        /// A program, which reads the event from its standard input, and its arguments.
        case command([String])
        case web(WebHook)

        /// The hook for people, without arguments and paths, which may be secrets.
        package var shown: String {
            switch self {
            case .command(let words): FilePath(words.first ?? "").display
            case .web(let web): web.shown
            }
        }
    }

    /// The shortest and the longest wait between tries of a notice: twice as long each time.
    package static let defaultBackoff = Backoff(first: .seconds(5), ceiling: .seconds(1800))
    /// The event types of a hook without `on`.
    package static let defaultEvents = [EventType.completed, .failed]

    /// The name of a hook that was given none.
    ///
    /// - Parameter index: Its position in the file, from 0.
    package static func name(ofNumber index: Int) -> String { "hook-\(index + 1)" }

    package var name: String
    /// Types of events.
    package var on: [EventType]
    /// Only events of these folders; empty for all.
    package var folders: [String]
    package var destinations: [String]
    package var target: Target
    /// Time limit of one notice.
    package var timeout: Duration
    package var retry: Backoff
    /// A notice that could not be delivered for this long is dropped.
    package var giveUpAfter: Duration

    package init(
        name: String, on: [EventType] = defaultEvents, folders: [String] = [], destinations: [String] = [],
        target: Target,
        timeout: Duration = .seconds(30), retry: Backoff = defaultBackoff, giveUpAfter: Duration = .seconds(86_400)
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
    ///   - folder: The folder of the event; `nil` for an event without one.
    ///   - destination: The destination of the event; `nil` for an event without one.
    package func matches(folder: String?, destination: String?) -> Bool {
        (folders.isEmpty || folder.map(folders.contains) ?? false)
            && (destinations.isEmpty || destination.map(destinations.contains) ?? false)
    }
}

/// An address to which events are posted.
package struct WebHook: Hashable, Sendable {
    package enum Network: String, Hashable, Sendable, CaseIterable {
        /// Each byte obeys `policy`, like those of uploads.
        case policy
        /// At any time over any network that is not forbidden, regardless of its cost and of bandwidth limits.
        case any
    }

    package var url: String
    package var headers: [String: SecretSource]
    /// The secret that signs notices; `nil` for no signature.
    package var secret: SecretSource?
    package var network: Network
    /// PEM certificates that are trusted instead of the system's.
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

    /// Scheme, host and port. Only these may be shown, since a path is often a secret itself.
    package var shown: String {
        let end = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        return String(url[..<end] + url[end...].prefix { !"/?#".contains($0) })
    }
}
