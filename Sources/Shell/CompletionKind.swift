/// The kind of a word on the command line, for completion in a shell.
package enum CompletionKind: Sendable, Hashable {
    /// Free input: a text, a number, a duration.
    case nothing
    /// One of these, or at least usually.
    case words([String])
    case verbs
    case file
    case directory
    /// Ids, of one list or all, and paths.
    case uploads(String? = nil)
    case folders
    case destinations

    /// The question for `sluice completions`; `nil` where the daemon is not needed.
    var question: [String]? {
        switch self {
        case .uploads(let list): ["uploads"] + (list.map { [$0] } ?? [])
        case .folders: ["folders"]
        case .destinations: ["destinations"]
        default: nil
        }
    }

    /// The fixed words in the script; `nil` where the words vary.
    func fixed(_ verbs: [Verb]) -> [String]? {
        switch self {
        case .words(let words): words
        case .verbs: verbs.map(\.name)
        default: nil
        }
    }

    /// Whether names of files are possible.
    var takesFiles: Bool {
        switch self {
        case .file, .uploads: true
        default: false
        }
    }
}
