/// A custom step: a program or an address that is notified of events. Its result never affects an upload.
package struct Hook: Hashable, Sendable {
    package enum Target: Hashable, Sendable {
        /// A program, which reads the event from its standard input.
        case command(CommandHook)
        case web(WebHook)

        /// Whether it is a program that policy applies to.
        package var isPolicedProgram: Bool {
            if case .command(let command) = self { command.network == .policy } else { false }
        }

        /// The hook for people, without arguments and paths, which may be secrets.
        package var shown: String {
            switch self {
            case .command(let command): FilePath(command.words.first ?? "").display
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

    /// Whether policy applies to its bytes.
    package var network: HookNetwork {
        switch target {
        case .command(let command): command.network
        case .web(let web): web.network
        }
    }

    /// - Parameters:
    ///   - folder: The folder of the event; `nil` for an event without one.
    ///   - destination: The destination of the event; `nil` for an event without one.
    package func matches(folder: String?, destination: String?) -> Bool {
        (folders.isEmpty || folder.map(folders.contains) ?? false)
            && (destinations.isEmpty || destination.map(destinations.contains) ?? false)
    }
}

/// Whether policy applies to the bytes of a hook.
package enum HookNetwork: String, Hashable, Sendable, CaseIterable {
    /// Each byte obeys `policy`, like those of uploads.
    case policy
    /// An address: at any time over any network that is not forbidden, regardless of its cost and of bandwidth limits.
    /// A program: it opens sockets of its own, which nothing polices.
    case any
}

/// A program that is started for each event.
package struct CommandHook: Hashable, Sendable {
    /// The program and its arguments.
    package var words: [String]
    /// With `network: policy`, it gets a proxy in its environment and is held to it, and these are the servers that it
    /// may connect to. `nil`: policy does not apply to it.
    package var servers: ProgramServers?

    package init(_ words: [String], servers: ProgramServers? = nil) {
        self.words = words
        self.servers = servers
    }

    package var network: HookNetwork { servers == nil ? .any : .policy }
}

/// An address to which events are posted.
package struct WebHook: Hashable, Sendable {
    package var url: String
    package var headers: [String: SecretSource]
    /// The secret that signs notices; `nil` for no signature.
    package var secret: SecretSource?
    package var network: HookNetwork
    /// PEM certificates that are trusted instead of the system's.
    package var caFile: FilePath?

    package init(
        url: String, headers: [String: SecretSource] = [:], secret: SecretSource? = nil, network: HookNetwork = .policy,
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
