internal import Core
internal import Linux

/// One attempt. Owned by one task from beginning to end; the tasks that send parts get and return values.
///
/// Its fields of the checkpoint, in addition to the dialect's and those of ``PartsBounds`` and ``FinalAnswer``:
///
/// | field | means |
/// |---|---|
/// | `begun` | the dialect's fields name an upload at the remote |
/// | `part_size`, `rule`, `size`, `sha256` | how the file was cut, and its identity: settings may change meanwhile |
/// | `creating`, `orphans` | as of ``OffsetUpload`` |
/// | `found_again` | creations without an answer whose upload was found and continued |
/// | `sending` | where a part must not be sent twice: the part that may have left |
/// | `completing` | the remote may have been asked to assemble the file |
/// | `done`, `done_url`, `done_by` | the part whose answer said that the file is there, and that answer |
/// | `reconfirmed` | the last part was sent again, because no answer said that the file is there |
/// | `restarts` | times it was started from the first part again because of the remote's answer |
/// | `beginnings` | times it was started again for any reason: each one has another name at the remote |
/// | `last_left` | the last part may have left: answers about it are about this upload |
/// | `end_unanswered` | the remote says that it has the last part, and no answer to that was seen |
/// | `held_before` | the remote had the last part under this name before it left here |
/// | `completions_refused` | times that the remote did not assemble the file: ``CompletionPatience`` |
/// | `lost` | times that it was started again because the remote did not know it any more, before its last byte can have left |
/// | `reuploaded` | sent once more after the outcome of the first time remained unknown |
/// | `ended_in` | the generation in which it was given up on |
/// | `refused_before` | as of ``OffsetProgress`` |
/// | `doubled` | the last part was sent again, or the upload started again, after the remote may have completed the file |
/// | `denied` | times that the body of the last answer refused the file, where a part must not be sent twice |
/// | `remains` | unfinished uploads that could not be removed at the remote |
/// | `damaged` | times that a part arrived damaged, in a row |
/// | `gone_seen` | times that the remote did not know the upload, in a row |
final class PartsUpload {
    static let begun = "begun"
    /// Fields that stay when the upload starts again.
    static let counted = [
        "orphans", "found_again", "reuploaded", "restarts", "beginnings", "lost", "remains", "doubled",
        "refused_before", "denied", FinalAnswer.leftToOthers,
    ]

    let engine: PartsEngine
    let order: UploadOrder
    let reporter: any UploadReporter
    /// The status of the staged copy when the attempt began.
    private let status: FileStatus
    var checkpoint: Checkpoint
    /// Empty until the upload is opened.
    private(set) var plan: PartPlan?
    var bounds: PartsBounds
    private(set) var taken: [Int: AcknowledgedPart] = [:]
    private(set) var acked: Int64 = 0
    let flight = PartsInFlight()
    let along: DigestAlong
    /// Parts that are known to have the staged content, regardless of the copy's present state.
    var proven: Set<Int> = []
    private var renewals = 0
    /// How often an answer changed the fields for later requests.
    var renamings = 0
    /// Parts that arrived since then, in order.
    var arrivals: [Int] = []
    /// The upload was continued, and nothing was sent since.
    var isResuming = false
    /// When the upload was continued, the remote may have had all of it.
    private(set) var wasPerhapsWhole = false

    var dialect: any PartsDialect { engine.dialect }

    init(_ engine: PartsEngine, _ order: UploadOrder, _ reporter: any UploadReporter, _ status: FileStatus) {
        self.engine = engine
        self.order = order
        self.reporter = reporter
        self.status = status
        along = DigestAlong(order.file.place)
        checkpoint = order.checkpoint ?? Checkpoint()
        bounds = PartsBounds(Checkpoint(), count: 0, tracksReach: false)
    }

    /// Durable when it returns.
    func record() async throws {
        bounds.store(in: &checkpoint)
        try await reporter.record(checkpoint)
    }

    func run() async throws(Exit) -> RemoteObject {
        do {
            reporter.entered(.opening)
            try await checkQuota()
            let plan = try await open()
            self.plan = plan
            try await reconcile(plan)
            try await judgeRefusal(plan)
            while true {
                reporter.entered(.uploading)
                try await sendMissing(plan)
                reporter.entered(.finishing)
                if let object = try await complete(plan) { return object }
            }
        } catch let exit as Exit { throw exit } catch { throw .failed(error) }
    }

    func piece(_ plan: PartPlan) -> PartsPiece { PartsPiece(order: order, plan: plan, checkpoint: checkpoint) }

    func missing(of plan: PartPlan) -> [Int] { (0..<plan.count).filter { taken[$0] == nil } }

    // MARK: Opening

    private func open() async throws -> PartPlan {
        if checkpoint[Self.begun] == nil { return try await create() }
        // A person wants the file sent again: earlier refusals and losses do not count.
        if FinalAnswer.isOfBefore(checkpoint, order) { throw try await renewed("it is tried again", isWanted: true) }
        if !engine.resumes, renewals == 0, !isPerhapsWhole {
            throw try await renewed("the unfinished upload is not continued", isWanted: true)
        }
        guard dialect.isOurs(checkpoint) else { throw try await renewed("the destination is another server now") }
        guard let plan = storedPlan, checkpoint["sha256"] == hexadecimal(order.file.sha256) else {
            throw try await renewed("the unfinished upload has other content")
        }
        bounds = PartsBounds(checkpoint, count: plan.count, tracksReach: dialect.tracksReach)
        wasPerhapsWhole = bounds.mayBeWhole
        taken = [:]
        for part in try await reporter.parts()
        where part.index >= 0 && part.index < plan.count && plan[part.index].length == part.size {
            taken[part.index] = part
        }
        acked = taken.values.reduce(0) { $0 + $1.size }
        isResuming = !taken.isEmpty
        // Perhaps only the answer was lost.
        let isPerhapsThere =
            checkpoint["completing"] != nil
            || plan.count == 1 && !dialect.endsByRequest(plan) && checkpoint["final_sent"] != nil
        switch try await dialect.resumption(piece(plan), isPerhapsThere: isPerhapsThere) {
        case .goesOn: break
        case .finished(let object): throw Exit.finished(object)
        case .lost(let reason): throw try await renewed(reason)
        }
        if !dialect.repeatsSafely, let sending = checkpoint["sending"].flatMap({ Int($0) }), taken[sending] == nil,
            checkpoint["done"] == nil
        {
            if checkpoint["final_sent"] != nil, !dialect.endsByRequest(plan) { checkpoint["doubled"] = "1" }
            let said = (checkpoint["refused_words"] ?? checkpoint["unclear_end"]).map { " (\($0))" } ?? ""
            throw try await renewed(
                "it is not known whether part \(sending + 1) has arrived\(said), and this server takes no part twice",
                cause: .interruption)
        }
        return plan
    }

    /// The plan with which the upload was begun.
    var storedPlan: PartPlan? { PartPlan(checkpoint, order) }

    private func create() async throws -> PartPlan {
        let plan = try dialect.plan(order)
        for (field, value) in plan.checkpoint(order).fields { checkpoint[field] = value }
        let restarts = max(checkpoint.number("restarts"), checkpoint.number("beginnings"))
        if let object = try await dialect.settle(order, plan, &checkpoint, restarts: restarts) {
            throw Exit.finished(object)
        }
        let before = checkpoint
        if dialect.opensByRequest {
            if checkpoint["creating"] != nil { checkpoint.count("orphans") }
            checkpoint["creating"] = "1"
            try await reporter.record(checkpoint)
        }
        do { try await dialect.begin(order, plan, &checkpoint) } catch let error as UploadError {
            if error.failure.code == AuthorizedClient.creationsUnknown {
                // No request was sent: the uncertainty is as before.
                checkpoint = before
                try await reporter.record(checkpoint)
            } else if error.leavesNothingBehind, dialect.opensByRequest {
                checkpoint["creating"] = nil
                try await reporter.record(checkpoint)
            }
            throw error
        }
        checkpoint["creating"] = nil
        checkpoint[Self.begun] = "1"
        // Recorded before the first byte: without a recorded name the upload would be paid for and lost.
        bounds = PartsBounds(Checkpoint(), count: plan.count, tracksReach: dialect.tracksReach)
        try await record()
        if dialect.opensByRequest, let name = dialect.name(of: checkpoint) {
            try await reporter.named(name.id, at: name.url)
        }
        taken = [:]
        acked = 0
        isResuming = false
        return plan
    }

    // MARK: The remote's parts

    /// Handles an upload with all parts at the remote whose last part was refused.
    private func judgeRefusal(_ plan: PartPlan) async throws {
        guard dialect.onlyCounts, checkpoint["refused_status"] != nil else { return }
        // The refusal stands until a part is accepted again: a later answer that one is missing may be an old one.
        guard missing(of: plan).isEmpty else { return }
        if engine.finalError == .fail, let refusal = FinalAnswer.refusal(in: checkpoint, dialect.failure) {
            throw refusal
        }
    }

    private func reconcile(_ plan: PartPlan) async throws {
        try await askWhatIsThere(plan)
        // A remote that has completed the file has no parts of it any more, or all of them.
        if dialect.inquiry != .none, !taken.isEmpty, taken[plan.count - 1] == nil { wasPerhapsWhole = false }
    }

    private func askWhatIsThere(_ plan: PartPlan) async throws {
        switch dialect.inquiry {
        case .none: return
        // There is nothing to ask for before the first part.
        case .list:
            guard order.checkpoint?[Self.begun] != nil || renewals > 0 else { return }
            try await believe(Array(0..<plan.count), plan)
        case .each:
            let known = taken.keys.sorted()
            let ends = Set([known.first, known.last].compactMap { $0 }).sorted()
            if !ends.isEmpty, try await believe(ends, plan) < ends.count { try await believe(known, plan) }
            // Asks beyond the known parts for as long as the remote has more.
            var next = 0
            while true {
                let batch = Array(missing(of: plan).filter { $0 >= next }.prefix(engine.parallel))
                guard let last = batch.last, try await believe(batch, plan) == batch.count else { return }
                next = last + 1
            }
        }
    }

    /// Asks for these parts, and uses the remote's answer.
    ///
    /// - Returns: How many of them it has.
    @discardableResult
    private func believe(_ indices: [Int], _ plan: PartPlan) async throws -> Int {
        guard !indices.isEmpty else { return 0 }
        let held: [AcknowledgedPart]
        switch try await dialect.held(among: indices, piece(plan)) {
        case .parts(let parts): held = parts
        case .unknown: return indices.count { taken[$0] != nil }
        case .gone(let error): throw try await afterGone(error)
        }
        var found: [Int: AcknowledgedPart] = [:]
        for part in held where part.index >= 0 && part.index < plan.count && plan[part.index].length == part.size {
            found[part.index] = part
        }
        // Another upload of the same file may have this name, and may have been refused: the last part has to leave
        // here.
        if dialect.sharesName(plan), !bounds.mayBeWhole, checkpoint["last_left"] == nil,
            found.removeValue(forKey: plan.count - 1) != nil
        {
            checkpoint["held_before"] = "1"
        }
        // A part with another tag than the acknowledged one is another part.
        let lost = indices.filter { index in
            guard let mine = taken[index] else { return false }
            guard let theirs = found[index] else { return true }
            return !mine.tag.isEmpty && !theirs.tag.isEmpty && !dialect.isSame(mine.tag, theirs.tag)
        }
        var new: [AcknowledgedPart] = []
        for part in indices.compactMap({ taken[$0] == nil ? found[$0] : nil })
        where try await dialect.vouches(for: part, plan[part.index], piece(plan)) { new.append(part) }
        if let alien = new.first(where: { !bounds.mayHaveLeft($0.index) }) {
            // Another writer's parts are not removed.
            checkpoint[Checkpoint.isOfAnother] = "1"
            throw try await renewed(
                "the server has part \(alien.index + 1), which was never sent from here: there is a second writer",
                isGone: true)
        }
        // The remote says that it has the last part, and no answer to that part was received.
        if dialect.onlyCounts, !dialect.endsByRequest(plan), new.contains(where: { $0.index == plan.count - 1 }),
            checkpoint["unclear_end"] == nil, checkpoint["refused_status"] == nil
        {
            checkpoint["end_unanswered"] = "1"
            try await record()
        }
        if !lost.isEmpty || !new.isEmpty { try await note(new, lost: lost) }
        if indices.contains(where: { taken[$0] == nil }) { bounds.lacks() }
        return indices.count { taken[$0] != nil }
    }

    /// Records which parts the remote has and lacks.
    func note(_ parts: [AcknowledgedPart], lost: [Int] = []) async throws {
        for index in lost { if let part = taken.removeValue(forKey: index) { acked -= part.size } }
        for part in parts {
            acked += part.size - (taken[part.index]?.size ?? 0)
            taken[part.index] = part
            bounds.took(part.index)
        }
        flight.acknowledge(acked, ended: parts.map(\.index))
        try await reporter.took(parts, lost: lost, acked: acked)
    }

    /// Checks that the staged copy is still the file from the beginning of the attempt.
    func checkCopy() throws {
        guard try order.file.checkLook(dialect.failure).hasSameContent(as: status) else {
            throw order.file.changed("is another file than it was a moment ago", dialect.failure)
        }
    }

    // MARK: Starting again

    /// Handles a remote that does not know the upload.
    func afterGone(_ error: UploadError) async throws -> any Error {
        guard let plan = plan ?? storedPlan else { return error }
        if let object = try await dialect.found(piece(plan)) { return Exit.finished(object) }
        if engine.finalError == .fail, dialect.onlyCounts,
            let refusal = FinalAnswer.refusal(in: checkpoint, dialect.failure),
            refusal.failure.http.map({ ![404, 410].contains($0) }) ?? true
        {
            return refusal
        }
        if acked >= Self.muchProgress, checkpoint.count("gone_seen") < 3 {
            try await record()
            let words = "the upload with \(acked) bytes is not found; asking again"
            return dialect.error(.transient, "upload_missing", words, .pending(after: .seconds(15)))
        }
        // When the remote was asked to assemble the file, it has all parts.
        let isCompleting = checkpoint["completing"] != nil
        let isAbsent = isPerhapsWhole ? try await dialect.isAbsent(piece(plan)) : false
        if isAbsent, renewals == 0, order.checkpoint?["completing"] != nil { checkpoint["reuploaded"] = "1" }
        if isAbsent || !bounds.mayBeWhole && !isCompleting {
            return try await renewed("the server no longer knows it", isGone: true, isWanted: true)
        }
        if engine.gone == .assumeComplete, bounds.isDelivered || isCompleting, checkpoint["refused_status"] == nil {
            return Exit.finished(
                RemoteObject(
                    id: nil, url: nil, verifiedBy: "assumption", warnings: [FinalAnswer.assumption] + warnings))
        }
        if engine.gone == .hold || checkpoint["reuploaded"] != nil {
            checkpoint["ended_in"] = "\(order.generation)"
            try await record()
            return dialect.error(
                .protocol, "outcome_unknown",
                "the upload is gone after its last byte may have been sent: it may be finished or lost"
                    + FinalAnswer.doubts(checkpoint).map { "; " + $0 }.joined(), .giveUp)
        }
        checkpoint["reuploaded"] = "1"
        return try await renewed("it is gone after its last byte may have been sent", isGone: true)
    }

    /// With this many acknowledged bytes, a single 404 does not discard them: a proxy may have lost its backend.
    private static let muchProgress: Int64 = 64 << 20
    /// After this many starts from the first part, the file is refused.
    static let mostRestarts: Int64 = 10

    /// Whether the file has to be looked for, even if a later attempt does not continue this one.
    var isPerhapsWhole: Bool {
        let endsByRequest = storedPlan.map { dialect.endsByRequest($0) } ?? dialect.completesByRequest
        return checkpoint["completing"] != nil || checkpoint["final_sent"] != nil && !endsByRequest
    }

    /// The cause of a new start.
    enum RenewalCause { case remote, interruption }

    /// Forgets the upload; the next run starts a new one.
    ///
    /// - Parameters:
    ///   - isGone: The server says that there is nothing.
    ///   - isWanted: Nothing went wrong: it does not count as a failure.
    func renewed(
        _ reason: String, isGone: Bool = false, isWanted: Bool = false, cause: RenewalCause = .remote
    ) async throws -> any Error {
        let old = checkpoint
        checkpoint = Checkpoint()
        for field in Self.counted + dialect.lasting { checkpoint[field] = old[field] }
        // The remote may have the upload although it was given up.
        if FinalAnswer.isOfBefore(old, order) {
            checkpoint["reuploaded"] = old["ended_in"].map { _ in "1" }
            checkpoint["denied"] = nil
            checkpoint["refused_before"] = old["refused_status"] ?? checkpoint["refused_before"]
        }
        // Network interruptions are never blamed on the file.
        let restarts = isWanted || cause == .interruption ? 0 : checkpoint.count("restarts")
        checkpoint.count("beginnings")
        let lost = isGone && isWanted ? checkpoint.count("lost") : checkpoint.number("lost")
        let wasBegun = old[Self.begun] != nil
        // Also where the server said that it knows of none: it may be wrong, and "not there" is success.
        let isOthers = old[Checkpoint.isOfAnother] != nil
        let remains = wasBegun && dialect.canAbort && dialect.isOurs(old) && !isOthers ? old : nil
        if wasBegun, !isGone, remains == nil { checkpoint.count("remains") }
        if isOthers { FinalAnswer.leave(dialect.name(of: old)?.id, in: &checkpoint) }
        taken = [:]
        acked = 0
        try await reporter.renewed(checkpoint, leaving: remains)
        if restarts > Self.mostRestarts {
            return dialect.error(
                .protocol, "upload_lost",
                "it was begun \(restarts) times and not finished, now because \(reason)"
                    + FinalAnswer.doubts(checkpoint).map { "; " + $0 }.joined(), .giveUp)
        }
        renewals += 1
        if renewals > 1 {
            return dialect.error(
                .protocol, "upload_lost", "the upload was lost twice in a row: \(reason)",
                .pending(after: Backoff.ofLosses(max(restarts, checkpoint.number("restarts")) + lost)))
        }
        return Exit.renewed
    }

    /// Warnings for a person about a completed file.
    var warnings: [String] { PartsWarnings.of(checkpoint) }
}
