internal import API
internal import Control
internal import Core

// The verbs that stop and start uploads. All of them may be repeated without harm.

extension Verb {
    /// - Parameters:
    ///   - all: The explanation of `--all`.
    ///   - uploads: The uploads of a folder or a destination that are meant.
    private static func scope(all: String, _ uploads: String) -> [Option] {
        [
            Option(flag: "all", all), Option("folder", "NAME", takes: .folders, "\(uploads) of this folder"),
            Option("destination", "NAME", takes: .destinations, "\(uploads) to this destination"),
        ]
    }

    private static let selectionUsages = [
        "[OPTION...] ID|KEY|PATH...", "(--folder NAME | --destination NAME | --all) [OPTION...]",
    ]

    static let pause: Verb = Verb(
        "pause", "hold uploads until you resume them", operands: "[ID|KEY|PATH...]", takes: .uploads("ongoing"),
        count: 0...1000,
        details: [
            "Without an upload, a folder or a destination it pauses everything. A pause of everything, of a folder or "
                + "of a destination holds later uploads too. A running upload stops within a second, and later "
                + "continues from there. The pause survives a restart; only `resume`, or the end of --for, ends it.",
            "With --after-part, parts that are being sent finish first, and so do files that are sent in one request. "
                + "Nothing new starts meanwhile. A later `pause` without it stops them at once; `resume` lets all "
                + "continue.",
        ],
        options: scope(all: "everything (default)", "uploads") + [
            Option(
                "for", "DURATION", "resume automatically after this time: 30m, 2h, 1d (not with ID, KEY or PATH)"),
            Option(flag: "after-part", "let the parts that are being sent finish first"),
        ] + Option.client,
        examples: [
            ("sluice pause", "Pauses everything."), ("sluice pause 01JD3K8Q", "Pauses one upload."),
            ("sluice pause --destination archive --for 2h", "Pauses uploads to one destination for two hours."),
            ("sluice pause --after-part", "Pauses everything, so that no byte is sent again later."),
        ]
    ) { call in
        var selection = try Selection(call.arguments)
        selection.afterPart = call.arguments.has("after-part")
        if let written = call.arguments.text("for") {
            guard let seconds = Units.seconds(written) else {
                throw Arguments.usage(
                    "--for takes a length of time like 30m or 2h, not `\(printable(written))`", .pause)
            }
            guard selection.ids.isEmpty else {
                throw Arguments.usage("--for goes with everything, a folder or a destination, not with ids", .pause)
            }
            selection.duration = seconds
        }
        return try await act("paused", selection, call) { try await $0.pause($1) }
    }

    static let resume: Verb = Verb(
        "resume", "release uploads that you paused", operands: "[ID|KEY|PATH...]", takes: .uploads("ongoing"),
        count: 0...1000,
        details: [
            "Use the same arguments as for `pause`; without any, it ends the pause of everything. An upload with "
                + "another hold keeps waiting; `sluice why` shows it. A destination that did not answer is tried again "
                + "at once."
        ],
        options: scope(all: "everything (default)", "uploads") + Option.client,
        examples: [
            ("sluice resume", "Ends the pause of `sluice pause`."), ("sluice resume 01JD3K8Q", "Resumes one upload."),
        ]
    ) { call in
        try await act("resumed", try Selection(call.arguments), call) { try await $0.resume($1) }
    }

    static let cancel: Verb = Verb(
        "cancel", "cancel uploads, and remove their unfinished data from the destination", operands: "[ID|KEY|PATH...]",
        usages: selectionUsages, takes: .uploads("ongoing"), count: 0...1000,
        details: [
            "The source stays, unless another destination has verified the file: then `after_upload` applies. It is "
                + "not picked up again until it changes. A completed upload cannot be cancelled."
        ],
        options: scope(all: "all ongoing uploads", "ongoing uploads") + Option.client,
        examples: [
            ("sluice cancel 01JD3K8Q", "Cancels one upload."),
            ("sluice cancel --folder front-door", "Cancels all ongoing uploads of a folder."),
        ]
    ) { call in
        let selection = try Selection(call.arguments)
        guard !selection.isEmpty else {
            throw Arguments.usage("name an ID, a folder or a destination, or use --all", .cancel)
        }
        return try await act("cancelled", selection, call) { try await $0.cancel($1) }
    }

    static let retry: Verb = Verb(
        "retry", "begin failed or cancelled uploads again", operands: "[ID|KEY|PATH...]", usages: selectionUsages,
        takes: .uploads("failed"), count: 0...1000,
        details: [
            "Each continues with what the destination still has, or begins again after a refusal. A waiting one is "
                + "tried at once; a paused one needs `resume`. --folder, --destination and --all retry failed ones only."
        ],
        options: scope(all: "all failed uploads", "failed uploads") + Option.client,
        examples: [
            ("sluice retry 01JD3K8Q", "Retries one upload."), ("sluice retry --all", "Retries everything that failed."),
        ]
    ) { call in
        let selection = try Selection(call.arguments)
        guard !selection.isEmpty else {
            throw Arguments.usage("name an ID, a folder or a destination, or use --all", .retry)
        }
        return try await act("retried", selection, call) { try await $0.retry($1) }
    }

    static let priority: Verb = Verb(
        "priority", "send ongoing uploads earlier or later than others", operands: "[ID|KEY|PATH...]",
        usages: [
            "--set NUMBER [OPTION...] ID|KEY|PATH...",
            "--set NUMBER (--folder NAME | --destination NAME | --all) [OPTION...]",
        ], takes: .uploads("ongoing"), count: 0...1000,
        details: [
            "Uploads of higher priority go first, and their files are copied first. It is the folder's `priority` unless "
                + "you change it; later files of the folder have the folder's again. A running transfer is not "
                + "interrupted. Rules of policy hold uploads of any priority."
        ],
        options: [Option("set", "NUMBER", required: true, "the priority: -1000 to 1000")]
            + scope(all: "all ongoing uploads", "ongoing uploads") + Option.client,
        examples: [
            ("sluice priority --set 10 01JD3K8Q", "Sends one upload before others."),
            ("sluice priority --set -5 --folder garden", "Sends what a folder has now after all others."),
        ]
    ) { call in
        var selection = try Selection(call.arguments)
        guard !selection.isEmpty else {
            throw Arguments.usage("name an ID, a folder or a destination, or use --all", .priority)
        }
        let written = call.arguments.text("set") ?? ""
        guard let number = Int(written), Selection.priorities.contains(number) else {
            throw Arguments.usage("--set takes a number from -1000 to 1000, not `\(printable(written))`", .priority)
        }
        selection.priority = number
        return try await act("changed", selection, call) { try await $0.prioritize($1) }
    }

    static let remove: Verb = Verb(
        "remove", "take finished uploads off their lists; uploaded files and sources stay", operands: "ID|KEY|PATH...",
        takes: .uploads("completed"), count: 1...1000,
        details: [
            "A finished upload is completed, failed or cancelled. It stays in the history (`list --list history`) "
                + "for some time, and `show` and `retry` find it there. The staged copy of a failed upload is "
                + "deleted if its source is unchanged; else it is kept in the staging folder under `rescued`."
        ],
        options: Option.client, examples: [("sluice remove 01JD3K8Q", "Takes one upload off its list.")]
    ) { call in
        try await act("removed", try Selection(call.arguments), call) { try await $0.remove($1) }
    }

    static let flush: Verb = Verb(
        "flush", "clear the lists of finished uploads",
        details: [
            "Takes all completed, failed and cancelled uploads off their lists, as `remove` does with single ones. "
                + "Ongoing uploads continue."
        ],
        options: [
            Option("list", "LIST", takes: .words(clearable), "only this list: \(enumerated(clearable, "or"))"),
            Option("folder", "NAME", takes: .folders, "only uploads of this folder"),
            Option("destination", "NAME", takes: .destinations, "only uploads to this destination"),
        ] + Option.client,
        examples: [
            ("sluice flush", "Clears all three lists."),
            ("sluice flush --list failed --folder front-door", "Clears failed uploads of one folder."),
        ]
    ) { call in
        let list = call.arguments.text("list")
        if let list, !clearable.contains(list) {
            throw Arguments.usage(
                "--list takes \(clearable.joined(separator: ", ")), not `\(printable(list))`", .flush)
        }
        let request = FlushRequest(
            list: list, folder: call.arguments.text("folder"), destination: call.arguments.text("destination"))
        let reply = try await call.withClient { try await $0.flush(request) }
        if call.json {
            try call.printJSON(reply)
        } else {
            try call.console.line(
                reply.count == 0 ? "nothing to do" : "\(reply.count) \(reply.count == 1 ? "upload" : "uploads") removed"
            )
        }
        return .ok
    }

    /// Lists that `flush` clears.
    private static let clearable = UploadList.clearable.map(\.rawValue)
}

extension Selection {
    fileprivate init(_ arguments: Arguments) throws {
        self.init(
            ids: try arguments.operands.map(reference), all: arguments.has("all"), folder: arguments.text("folder"),
            destination: arguments.text("destination"))
    }

    fileprivate var isEmpty: Bool { ids.isEmpty && !all && folder == nil && destination == nil }

    /// The subject of the message when no upload is concerned yet.
    fileprivate var subject: String {
        if let folder { return "folder \(printable(folder))" }
        if let destination { return "destination \(printable(destination))" }
        return ids.isEmpty ? "everything" : ids.map(printable).joined(separator: ", ")
    }
}

private func act(
    _ done: String, _ selection: Selection, _ call: Invocation,
    _ verb: (ControlClient, Selection) async throws -> UploadsReply
) async throws -> ExitCode {
    let reply = try await call.withClient { try await verb($0, selection) }
    // A pause also holds later uploads, so the message is printed even when there is none now.
    if reply.count == 0 && !call.json {
        try call.console.line(done == "paused" || done == "resumed" ? "\(done) \(selection.subject)" : "nothing to do")
        return .ok
    }
    try report(done, reply, call)
    return .ok
}

/// One line for each upload: the action, and why it still waits.
func report(_ done: String, _ reply: UploadsReply, _ call: Invocation) throws {
    if call.json { return try call.printJSON(reply) }
    for upload in reply.uploads {
        let holds = upload.holds.map { "; \(holdText($0, call.now()))" }.joined()
        try call.console.line("\(done) \(upload.id)  \(upload.name) -> \(upload.destination)" + holds)
    }
    let more = reply.count - reply.uploads.count
    if more > 0 { try call.console.line("and \(more) more: \(reply.count) in all") }
    if let refused = reply.refused, let refusal = reply.refusal {
        try call.console.line("\(refused) could not be \(done), the first because \(refusal)")
    }
}
