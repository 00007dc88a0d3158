internal import API
internal import Control
internal import Core
internal import Linux

/// What a person has chosen in `top`, and what was answered.
struct TopState: Sendable {
    /// Text over the whole screen, which may be scrolled.
    struct Page: Sendable {
        enum Content: Sendable {
            case text([String])
            /// All warnings, and all that stands below the uploads, as the daemon says it last.
            case overview
        }

        var title: String
        var content: Content
        var offset = 0
    }

    /// Something that the person wants the daemon to do.
    enum Command: Hashable, Sendable {
        case pause, resume, cancel, retry, remove
        case priority(Int)
        case pauseAll, resumeAll
    }

    /// What the loop has to do after a key.
    enum Effect: Hashable, Sendable {
        case none, quit, refresh
        case run(Command, upload: UploadView?)
        case why(UploadView), show(UploadView)
    }

    static let lists: [UploadList] = [.ongoing, .failed, .completed, .cancelled]

    var list = UploadList.ongoing
    /// The chosen upload: the first that was shown until a person moves. It stays so when it has left the list. Then
    /// nothing is chosen: a command that was meant for it must not concern another one that has come into its row.
    private(set) var chosen: String?
    /// The row of the chosen upload when it was shown last.
    private var row = 0
    /// The priorities that were asked for by upload, until the daemon shows them.
    private var priorities: [String: Int] = [:]
    var page: Page?
    /// Since when the daemon is asked for a page.
    private(set) var askingSince: WallTime?
    /// Counts what leads to a page or away from it: an answer is shown only if nothing of that came after its question.
    private var turns = 0
    /// A command that waits for `y`.
    struct Question: Sendable {
        var command: Command
        /// `nil`: it concerns everything.
        var upload: UploadView?

        var text: String {
            let verb =
                switch command {
                case .cancel: "Cancel"
                case .pauseAll: "Pause"
                case .resumeAll: "Resume"
                default: "Take off its list"
                }
            return verb + (upload.map { ": \(printable($0.name)) to \(printable($0.destination))?" } ?? " everything?")
        }
    }

    private(set) var question: Question? {
        didSet { if question != nil { turn() } }
    }
    /// The answer to the last command, until a key is pressed.
    var answer: TopCommands.Answer?
    /// Why there are no new facts.
    struct Loss: Sendable {
        var since: WallTime
        var headline: String
        var reason: String

        init(since: WallTime, _ error: any Error) {
            self.since = since
            reason = error is TimeLimitError ? TopState.words(error) : "\(error)"
            headline =
                switch error as? ControlError {
                case .denied?: "No access to the daemon"
                case .protocolFault?: "No answer that can be read"
                default: error is TimeLimitError ? "No answer" : "No daemon"
                }
        }
    }

    /// An error of a question to the daemon, in words.
    static func words(_ error: any Error) -> String {
        switch error {
        case let error as Refusal: error.message
        case let error as TimeLimitError: "the daemon does not answer within \(error.limit.components.seconds) s"
        default: "\(error)"
        }
    }

    /// The daemon is asked for a page.
    ///
    /// - Returns: What to give ``show(_:of:)`` with the answer.
    mutating func ask(at now: WallTime) -> Int {
        turn()
        askingSince = now
        return turns
    }

    /// Shows a page that the daemon was asked for, or why there is none, unless the person has gone elsewhere since.
    mutating func show(_ answer: Result<Page, any Error>, of turn: Int) {
        guard turn == turns else { return }
        askingSince = nil
        switch answer {
        case .success(let page): self.page = page
        case .failure(let error): self.answer = TopCommands.Answer(text: Self.words(error), isError: true)
        }
    }

    private mutating func turn() {
        turns += 1
        askingSince = nil
    }

    private mutating func open(_ page: Page) {
        turn()
        self.page = page
    }

    /// Set while the daemon cannot be asked.
    var lost: Loss?

    /// The chosen row, or the one where the chosen upload was.
    func index(in uploads: [UploadView]) -> Int {
        row(of: chosen, in: uploads) ?? max(0, min(row, uploads.count - 1))
    }

    /// The chosen upload; `nil` when it is not in the list.
    func upload(in uploads: [UploadView]) -> UploadView? {
        if chosen == nil { return uploads.first }
        return row(of: chosen, in: uploads).map { uploads[$0] }
    }

    private func row(of id: String?, in uploads: [UploadView]) -> Int? { uploads.firstIndex { $0.id == id } }

    /// Takes over the uploads that are shown from now on.
    ///
    /// - Parameter isCurrent: Whether they show the result of every command.
    mutating func show(_ uploads: [UploadView], isCurrent: Bool) {
        chosen = uploads.isEmpty ? nil : chosen ?? uploads.first?.id
        row = index(in: uploads)
        if isCurrent { priorities = [:] }
    }

    /// - Parameters:
    ///   - rows: The number of rows of a screen.
    ///   - count: The lines of the page in this window, if one is open.
    mutating func press(
        _ key: TopKey, _ uploads: [UploadView], page rows: Int, of count: Int = 0
    ) -> Effect {
        answer = nil
        if key == .interrupt { return .quit }
        if let question {
            self.question = nil
            return key == .letter("y") ? .run(question.command, upload: question.upload) : .none
        }
        if page != nil { return pressInPage(key, rows, of: count) }
        let now = index(in: uploads)
        switch key {
        case .up, .letter("k"): move(to: now - 1, uploads)
        // Another upload is now where the chosen one was.
        case .down, .letter("j"): move(to: upload(in: uploads) == nil ? now : now + 1, uploads)
        case .pageUp: move(to: now - rows, uploads)
        case .pageDown, .letter(" "): move(to: now + rows, uploads)
        case .first, .letter("g"): move(to: 0, uploads)
        case .last, .letter("G"): move(to: uploads.count - 1, uploads)
        case .tab:
            let next = (Self.lists.firstIndex(of: list) ?? 0) + 1
            list = Self.lists[next % Self.lists.count]
            (chosen, row) = (nil, 0)
            turn()
            return .refresh
        case .letter("q"): return .quit
        case .letter("o"): open(Page(title: "Overview", content: .overview))
        case .letter("?"), .letter("h"): open(Page(title: "Keys", content: .text(Self.help)))
        case .letter("P"): question = Question(command: .pauseAll)
        case .letter("R"): question = Question(command: .resumeAll)
        default: return pressOnUpload(key, upload(in: uploads), isEmpty: uploads.isEmpty)
        }
        return .none
    }

    private mutating func pressOnUpload(_ key: TopKey, _ upload: UploadView?, isEmpty: Bool) -> Effect {
        guard let upload else {
            if !isEmpty, Self.keysOnUpload.contains(key) {
                answer = TopCommands.Answer(
                    text: "the chosen upload is not in this list any more: choose another one", isError: true)
            }
            return .none
        }
        switch key {
        case .enter, .letter("i"): return .show(upload)
        case .letter("w"): return .why(upload)
        case .letter("p"): return .run(.pause, upload: upload)
        case .letter("r"): return .run(.resume, upload: upload)
        case .letter("t"): return .run(.retry, upload: upload)
        case .letter("+"): return prioritize(upload, by: 1)
        case .letter("-"): return prioritize(upload, by: -1)
        case .letter("c"): question = Question(command: .cancel, upload: upload)
        case .letter("x"): question = Question(command: .remove, upload: upload)
        default: break
        }
        return .none
    }

    private static let keysOnUpload: Set<TopKey> = Set([.enter] + "iwprt+-cx".map { .letter($0) })

    private mutating func prioritize(_ upload: UploadView, by step: Int) -> Effect {
        // The key may be pressed again before the daemon has answered.
        let priority = max(-1000, min(1000, (priorities[upload.id] ?? upload.priority) + step))
        priorities[upload.id] = priority
        return .run(.priority(priority), upload: upload)
    }

    private mutating func pressInPage(_ key: TopKey, _ rows: Int, of count: Int) -> Effect {
        func scroll(_ by: Int) {
            guard var page else { return }
            // In a larger window it may end before its offset.
            page.offset = max(0, min(min(page.offset, count - rows) + by, count - rows))
            self.page = page
        }
        switch key {
        case .up, .letter("k"): scroll(-1)
        case .down, .letter("j"): scroll(1)
        case .pageUp: scroll(-rows)
        case .pageDown, .letter(" "): scroll(rows)
        default: page = nil
        }
        return .none
    }

    private mutating func move(to row: Int, _ uploads: [UploadView]) {
        guard !uploads.isEmpty else { return }
        chosen = uploads[max(0, min(row, uploads.count - 1))].id
    }

    static let help = [
        "up, down, k, j      choose an upload",
        "page up, page down  a screen up or down; Home, End: the first, the last",
        "Tab                 the next list: ongoing, failed, completed, cancelled",
        "o                   overview: all of the queue, destinations, folders, ways, quotas and disk",
        "w                   why it waits, or by which way it goes",
        "Enter, i            everything about it",
        "p, r                pause it, resume it",
        "P, R                pause everything, resume everything; it asks first",
        "t                   retry it",
        "+, -                raise its priority, lower it",
        "c                   cancel it; it asks first",
        "x                   take it off its list, once it has ended; it asks first",
        "Ctrl-Z              stop, until the shell continues it (fg)",
        "q, Ctrl-C           leave",
    ]
}
