internal import API
internal import Core

/// What a person has chosen in `top`, and what was answered.
struct TopState: Sendable {
    /// Text over the whole screen, which may be scrolled.
    struct Page: Sendable {
        var title: String
        var lines: [String]
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
    /// The chosen upload; the first row until a person moves.
    private(set) var chosen: String?
    var page: Page?
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

    private(set) var question: Question?
    /// The answer to the last command, until a key is pressed.
    var answer: (text: String, isError: Bool)?
    /// When the daemon stopped answering, and why.
    var lost: (since: WallTime, reason: String)?

    /// The chosen row.
    func index(in uploads: [UploadView]) -> Int {
        uploads.firstIndex { $0.id == chosen } ?? 0
    }

    /// - Parameter page: The number of rows of a screen.
    mutating func press(_ key: TopKey, _ uploads: [UploadView], page rows: Int) -> Effect {
        answer = nil
        if key == .interrupt { return .quit }
        if let question {
            self.question = nil
            return key == .letter("y") ? .run(question.command, upload: question.upload) : .none
        }
        if page != nil { return pressInPage(key, rows) }
        let now = index(in: uploads)
        switch key {
        case .up, .letter("k"): move(to: now - 1, uploads)
        case .down, .letter("j"): move(to: now + 1, uploads)
        case .pageUp: move(to: now - rows, uploads)
        case .pageDown, .letter(" "): move(to: now + rows, uploads)
        case .first, .letter("g"): move(to: 0, uploads)
        case .last, .letter("G"): move(to: uploads.count - 1, uploads)
        case .tab:
            let next = (Self.lists.firstIndex(of: list) ?? 0) + 1
            list = Self.lists[next % Self.lists.count]
            chosen = nil
            return .refresh
        case .letter("q"): return .quit
        case .letter("?"), .letter("h"): page = Page(title: "Keys", lines: Self.help)
        case .letter("P"): question = Question(command: .pauseAll)
        case .letter("R"): question = Question(command: .resumeAll)
        default: return pressOnUpload(key, uploads.isEmpty ? nil : uploads[now])
        }
        return .none
    }

    private mutating func pressOnUpload(_ key: TopKey, _ upload: UploadView?) -> Effect {
        guard let upload else { return .none }
        switch key {
        case .enter, .letter("i"): return .show(upload)
        case .letter("w"): return .why(upload)
        case .letter("p"): return .run(.pause, upload: upload)
        case .letter("r"): return .run(.resume, upload: upload)
        case .letter("t"): return .run(.retry, upload: upload)
        case .letter("+"): return .run(.priority(min(1000, upload.priority + 1)), upload: upload)
        case .letter("-"): return .run(.priority(max(-1000, upload.priority - 1)), upload: upload)
        case .letter("c"): question = Question(command: .cancel, upload: upload)
        case .letter("x"): question = Question(command: .remove, upload: upload)
        default: break
        }
        return .none
    }

    private mutating func pressInPage(_ key: TopKey, _ rows: Int) -> Effect {
        func scroll(_ by: Int) {
            guard var page else { return }
            page.offset = max(0, min(page.offset + by, page.lines.count - rows))
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
