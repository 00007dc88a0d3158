internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

/// Sentences among the warnings of the status.
enum StatusWarnings {
    /// Directories whose files are not seen, or not at once, until a person solves the problem.
    static func ofFolders(_ states: [WatchState]) -> [String] {
        var shown: Set<FilePath> = []
        // Folders may share a path, and its troubles with it.
        return states.filter { shown.insert($0.path).inserted }.flatMap { state in
            state.troubles
                + (state.moreTroubles > 0 ? ["\(state.moreTroubles) more directories of \(state.path.display)"] : [])
        }
    }

    /// An address that lets others on the network read the tokens.
    static func ofControl(_ control: ControlSettings) -> [String] {
        guard let remote = control.remote, remote.allowsPlainHTTP, remote.tls == nil, !remote.listen.isLoopback else {
            return []
        }
        return [
            "control.listen: others on the network can read the tokens and file names, since \(remote.listen) has no TLS "
                + "(insecure_http)"
        ]
    }

    /// Files that do not settle, for a person to inspect.
    static func ofOverdueFiles(_ files: [WaitingFile]) -> [String] {
        let late = files.filter(\.isOverdue)
        let named = late.prefix(3).map { "\($0.path.display) does not settle: \($0.fullExplanation)" }
        return named + (late.count > 3 ? ["\(late.count - 3) more files do not settle"] : [])
    }

    /// Uploads that a newer program has left in states of its own.
    static func ofUnknownStates(_ states: [(state: String, uploads: Int)]) -> [String] {
        states.map {
            "\($0.uploads) uploads have the state `\($0.state)`, which only a newer version of Sluice knows: they stay as "
                + "they are until that version runs"
        }
    }

    /// Uploads whose destination was removed from the configuration: no other line would report them.
    static func ofUnknownDestinations(_ ongoing: [Tally], known: Set<String>) -> [String] {
        var waiting: [String: Int] = [:]
        for tally in ongoing where !known.contains(tally.destination) {
            waiting[tally.destination, default: 0] += tally.uploads
        }
        return waiting.filter { $0.value > 0 }.sorted { $0.key < $1.key }.map {
            "\($0.value) uploads wait for destination \($0.key), which is not in the configuration"
        }
    }
}
