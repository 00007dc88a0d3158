internal import API
internal import Control
internal import Core
internal import Linux

extension Verb {
    static let top: Verb = Verb(
        "top", "watch and control the uploads on a full screen",
        details: [
            "Shows running transfers with their progress, the queue with what holds it, destinations, ways, quotas and disk, "
                + "and takes keys: `?` lists them, and `o` shows all that has no room below many uploads. It follows the "
                + "size of the window, and waits while the daemon restarts.",
            "Without a terminal, or with one that $TERM does not name, it prints the same once, as plain text.",
        ],
        options: [Option.config, Option.socket],
        examples: [
            ("sluice top", "Shows what happens now, until you press q."),
            ("sluice top | less", "Prints the same once."),
        ]
    ) { call in
        // Until it draws, there is nothing to give back.
        call.signals?.whenOneArrives { $0.obey() }
        try await call.withClient { client in
            let facts = try await firstFacts(client, at: call.now())
            let isScreen = call.console.isTerminal && RawTerminal.isHere && !call.console.isDumb
            guard isScreen else {
                for line in TopScreen.plain(facts, call.console, now: call.now()) { try call.console.line(line) }
                return
            }
            try await TopLoop(call: call, client: client, facts: facts).run()
        }
        return .ok
    }
}

/// What the daemon says at the start, where there is nothing to show without it.
private func firstFacts(_ client: ControlClient, at now: WallTime) async throws -> TopFacts {
    do {
        return try await awaiting(atMost: .seconds(15)) { try await TopFacts(client, list: .ongoing, at: now) }
    } catch let error as TimeLimitError { throw ControlError.protocolFault("\(error)") }
}

/// `top` on a terminal: reads keys, asks the daemon every second, and draws.
private actor TopLoop {
    private enum Happening: Sendable {
        case keys([TopKey])
        /// Time has passed without a key.
        case tick
        case facts(Result<TopFacts, any Error>)
        case done(TopCommands.Answer)
        /// A page that was asked for at a turn of the state.
        case page(Result<TopState.Page, any Error>, of: Int)
        /// The process goes on after it was stopped.
        case resumed
        case suspend, end
    }

    private let call: Invocation
    private let client: ControlClient
    private var facts: TopFacts
    private var state = TopState()
    private var isAsking = false
    /// Whether something has changed since the question that is under way.
    private var asksAgain = false
    private var askedAt: MonotonicTime
    private var commands = TopCommands()
    private var drawn: [String] = []
    private var drawnSize = (width: 0, height: 0)
    private let clocks = SystemClocks()
    private let happenings: AsyncStream<Happening>
    private let report: AsyncStream<Happening>.Continuation

    /// How long a key is waited for: a new size of the window shows after this time at the latest.
    private static let keyWait: CInt = 250
    private static let interval: Duration = .seconds(1)
    /// How long an answer is waited for: a daemon that is stopped accepts connections.
    private static let patience: Duration = .seconds(8)
    /// The same for what a person asks for.
    private static let commandPatience: Duration = .seconds(15)
    /// How long the end of `top` waits for the answers to commands.
    private static let lastPatience: Duration = .seconds(2)
    /// The alternate screen, without a cursor (xterm, private modes 1049 and 25).
    private static let ownScreen = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[2J"
    /// The screen of the shell, with its cursor.
    private static let mainScreen = "\u{1B}[?25h\u{1B}[?1049l"

    init(call: Invocation, client: ControlClient, facts: TopFacts) {
        self.call = call
        self.client = client
        self.facts = facts
        askedAt = clocks.monotonic()
        (happenings, report) = AsyncStream.makeStream()
        state.show(facts.uploads, isCurrent: true)
    }

    func run() async throws {
        try await show()
        // What was asked for before the last key is done: the connection ends with the program.
        let count = commands.unanswered
        if await !commands.end(within: Self.lastPatience) {
            call.console.error("sluice top: \(TopScreen.unanswered(count)), and may not have been done")
        }
    }

    private func show() async throws {
        let terminal = try RawTerminal()
        defer {
            try? call.console.raw(Self.mainScreen)  // if the terminal is gone, neither is seen
            terminal.restore()
        }
        try call.console.raw(Self.ownScreen)
        call.signals?.whenOneArrives { [report] signal in
            switch signal {
            case .suspend: report.yield(.suspend)
            case .resume: report.yield(.resumed)
            case .hangUp, .interrupt, .terminate: report.yield(.end)
            }
        }
        let reader = Task { [report] in await Self.readKeys(terminal, report) }
        defer { reader.cancel() }
        try draw()
        for await happening in happenings {
            guard try handle(happening, terminal) else { break }
            if !isAsking, clocks.monotonic().since(askedAt) >= Self.interval { ask() }
            try draw()
        }
    }

    private static func readKeys(_ terminal: RawTerminal, _ report: AsyncStream<Happening>.Continuation) async {
        while !Task.isCancelled {
            // The terminal may be gone.
            guard let bytes = try? await blocking({ try terminal.read(within: keyWait) }) else {
                report.yield(.end)
                return
            }
            report.yield(bytes.isEmpty ? .tick : .keys(TopKey.keys(in: bytes)))
        }
    }

    /// - Returns: Whether to go on.
    private func handle(_ happening: Happening, _ terminal: RawTerminal) throws -> Bool {
        switch happening {
        case .end: return false
        case .suspend: try suspend(terminal)
        case .resumed:
            terminal.resume()
            try redraw()
        case .tick: break
        case .keys(let keys):
            for key in keys {
                if key == .suspend {
                    try suspend(terminal)
                    continue
                }
                let screen = screen
                let effect = state.press(key, screen.uploads, page: screen.rows, of: screen.pageText.count)
                if effect == .quit { return false }
                perform(effect)
            }
        case .facts(.success(let new)):
            state.lost = nil
            // Those of another list were asked for before a person changed it.
            if new.list == state.list {
                facts = new
                state.show(new.uploads, isCurrent: !asksAgain && commands.unanswered == 0)
            }
            answered()
        case .facts(.failure(let error)):
            guard isAbsence(error) || error is TimeLimitError else { throw error }
            state.lost = TopState.Loss(since: state.lost?.since ?? call.now(), error)
            answered()
        case .done(let answer):
            commands.answered()
            state.answer = answer.after(state.answer)
            ask()
        case .page(let page, let turn): state.show(page, of: turn)
        }
        return true
    }

    private func suspend(_ terminal: RawTerminal) throws {
        try call.console.raw(Self.mainScreen)
        try terminal.suspend()
        try redraw()
    }

    private func redraw() throws {
        try call.console.raw(Self.ownScreen)
        // The whole screen again.
        drawnSize = (width: 0, height: 0)
        ask()
    }

    /// One question at a time: a slow daemon is not asked more.
    private func ask() {
        asksAgain = isAsking
        if isAsking { return }
        isAsking = true
        askedAt = clocks.monotonic()
        let (client, list, now, report) = (client, state.list, call.now(), report)
        Task {
            do {
                let facts = try await awaiting(atMost: Self.patience) {
                    try await TopFacts(client, list: list, at: now)
                }
                report.yield(.facts(.success(facts)))
            } catch { report.yield(.facts(.failure(error))) }
        }
    }

    private func answered() {
        isAsking = false
        if asksAgain { ask() }
    }

    private func perform(_ effect: TopState.Effect) {
        switch effect {
        case .none, .quit: return
        case .refresh:
            // It may be the list that is known.
            if facts.list == state.list { state.show(facts.uploads, isCurrent: false) }
            ask()
        case .why(let upload):
            open { client, console, now in
                TopState.Page(
                    title: "Why, at \(LocalTime(now).clock)",
                    content: .text(whyLines(try await client.why(upload.id), console, now: now)))
            }
        case .show(let upload):
            open { client, console, now in
                TopState.Page(
                    title: "\(upload.id), at \(LocalTime(now).clock)",
                    content: .text(detailLines(try await client.show(upload.id), console, now: now)))
            }
        case .run(let command, let upload):
            commands.send(at: call.now(), within: Self.commandPatience) { [client] in
                try await Self.run(command, upload, client)
            } report: { [report] in
                report.yield(.done($0))
            }
        }
    }

    private func open(
        _ body: @escaping @Sendable (ControlClient, Console, WallTime) async throws -> TopState.Page
    ) {
        let (client, console, now, report) = (client, call.console, call.now(), report)
        let turn = state.ask(at: now)
        Task {
            do {
                let page = try await awaiting(atMost: Self.commandPatience) { try await body(client, console, now) }
                report.yield(.page(.success(page), of: turn))
            } catch { report.yield(.page(.failure(error), of: turn)) }
        }
    }

    /// - Returns: What was done.
    private static func run(
        _ command: TopState.Command, _ upload: UploadView?, _ client: ControlClient
    ) async throws -> String {
        var selection = Selection(ids: upload.map { [$0.id] } ?? [])
        let done: String
        switch command {
        case .pause, .pauseAll: (done, _) = ("paused", try await client.pause(selection))
        case .resume, .resumeAll: (done, _) = ("resumed", try await client.resume(selection))
        case .cancel: (done, _) = ("cancelled", try await client.cancel(selection))
        case .retry: (done, _) = ("retried", try await client.retry(selection))
        case .remove: (done, _) = ("taken off its list:", try await client.remove(selection))
        case .priority(let number):
            selection.priority = number
            (done, _) = ("priority \(number):", try await client.prioritize(selection))
        }
        return "\(done) \(upload?.name ?? "everything")"
    }

    // MARK: Drawing

    private var screen: TopScreen {
        TopScreen(
            facts: facts, state: state, commands: commands, console: call.console, now: call.now(),
            width: call.console.width, height: min(call.console.height, 500))
    }

    private func draw() throws {
        let screen = screen
        let lines = screen.lines
        let isResized = drawnSize != (screen.width, screen.height)
        if lines == drawn, !isResized { return }
        var text = isResized ? "\u{1B}[2J" : ""
        for (row, line) in lines.enumerated() where isResized || row >= drawn.count || drawn[row] != line {
            // Before the text: after one that fills the row some terminals erase its last letter.
            text += "\u{1B}[\(row + 1);1H\u{1B}[2K\(line)"
        }
        if lines.count < drawn.count { text += "\u{1B}[J" }
        try call.console.raw(text)
        (drawn, drawnSize) = (lines, (screen.width, screen.height))
    }
}
