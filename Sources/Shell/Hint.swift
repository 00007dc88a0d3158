/// What may stand somewhere on the command line, as far as a shell can help to type it.
package enum Hint: Sendable, Hashable {
    /// Whatever a person thinks of: a text, a number, a length of time.
    case nothing
    /// One of these, or at least often.
    case words([String])
    case verbs
    case file
    case directory
    /// Ids, of one list or all, and paths.
    case uploads(String? = nil)
    case folders
    case destinations

    /// What `sluice completions` is asked for it; `nil` where nobody has to be asked.
    var question: [String]? {
        switch self {
        case .uploads(let list): ["uploads"] + (list.map { [$0] } ?? [])
        case .folders: ["folders"]
        case .destinations: ["destinations"]
        default: nil
        }
    }

    /// What stands in the script; `nil` where it is another thing each time.
    func fixed(_ verbs: [Verb]) -> [String]? {
        switch self {
        case .words(let words): words
        case .verbs: verbs.map(\.name)
        default: nil
        }
    }

    /// Whether names of files are among it.
    var takesFiles: Bool {
        switch self {
        case .file, .uploads: true
        default: false
        }
    }
}
