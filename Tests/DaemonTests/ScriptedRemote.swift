import Core
import Destinations
import Linux
import Synchronization
import TestKit
import Transport

@testable import Daemon

/// A remote that acts as a test tells it, and records its requests. It holds its objects by name.
final class ScriptedRemote: Destination {
    enum Act: Sendable {
        case take
        case fail(Remedy)
        /// Answers 403.
        case refuseKey
        /// Waits until the test lets it continue, and then answers 403.
        case waitRefusing
        /// Receives every byte, keeps none, and then fails.
        case lose(Remedy)
        /// Left out of its bundle when it was begun there; alone it is accepted.
        case leaveOut
        /// Reports that it has nothing yet, and then fails.
        case failAfterWord(Remedy)
        /// Reports its name for the upload, and then fails.
        case failNamed(Remedy)
        /// Waits before it has made anything, until the test lets it continue.
        case waitOpening
        /// Waits with an object made and no byte accepted, until the test lets it continue or the daemon stops it.
        case waitUploading
        /// Accepts it in four parts, and waits with each until the test lets that arrive.
        case waitParts
    }

    private struct State {
        var standard = Act.take
        var acts: [FilePath: Act] = [:]
        var running: [FilePath: AsyncSignal] = [:]
        var waiting: Set<FilePath> = []
        var began: [FilePath] = []
        var objects: [(number: Int, name: FilePath)] = []
        var made = 0
        var finding = RemoteLookup.unknown("scripted")
        var findings: [FilePath: RemoteLookup] = [:]
        var asked = 0
        var bundling: Bundling?
        var bundles: [[FilePath]] = []
        var moments: [String: @Sendable (UploadOrder) -> Void] = [:]
        var contents: [[UInt8]] = []
        var tellsSpace = false
        var space: RemoteSpace?
        var isUnreachable = false
        var looks = 0
        /// Its answers to questions for its size limit: none for a remote without one.
        var sizeLimits: [Int64?]?
        var sizeQuestions = 0
        var parts: [Int] = []
        var mediaID: String?
        var renewal: CredentialRenewal?
        var requestSize: RequestSize?
        var onQuestion: (@Sendable (RequestContext) async -> Void)?
    }

    private let state = Mutex(State())
    let site: DestinationSite

    init(site: DestinationSite = .here) { self.site = site }

    var requestSize: RequestSize? { state.withLock { $0.requestSize } }
    func recall(_ size: RequestSize) { state.withLock { $0.requestSize = size } }
    /// Sets the request size that it has learned from now on.
    func learn(_ size: RequestSize?) { state.withLock { $0.requestSize = size } }

    /// The act for every name that has none of its own.
    var standard: Act {
        get { state.withLock { $0.standard } }
        set { state.withLock { $0.standard = newValue } }
    }

    private static let failure = Failure(
        .transient, code: .init(rawValue: "scripted"), message: "as the test says", at: WallTime(milliseconds: 0),
        retryable: true)

    /// Its name for uploads as soon as they are opened.
    var mediaID: String? {
        get { state.withLock { $0.mediaID } }
        set { state.withLock { $0.mediaID = newValue } }
    }
    /// The credential that it renews when the next upload is opened.
    func renew(_ renewal: CredentialRenewal) { state.withLock { $0.renewal = renewal } }

    func set(_ act: Act, for name: FilePath) { state.withLock { $0.acts[name] = act } }

    /// Lets all waiting uploads continue, and accepts all from now on.
    func letGo() {
        let signals = state.withLock { state in
            state.standard = .take
            state.acts = [:]
            return Array(state.running.values)
        }
        for signal in signals { signal.signal() }
    }

    /// Answers 403 to all from now on, including waiting uploads.
    func refuseAll() {
        let signals = state.withLock { state in
            (state.standard, state.acts) = (.refuseKey, [:])
            return Array(state.running.values)
        }
        for signal in signals { signal.signal() }
    }

    /// Called with each removal and each query for its space. One that was stopped meanwhile fails.
    func whenAsked(_ body: (@Sendable (RequestContext) async -> Void)?) { state.withLock { $0.onQuestion = body } }

    private func runQuestion(_ context: RequestContext) async throws(UploadError) {
        await state.withLock { $0.onQuestion }?(context)
        if Task.isCancelled { throw UploadError(Self.failure, remedy: .holdDestination(after: nil)) }
    }

    /// Called with the file's order at each of these moments: `opened`, `sent`.
    func when(_ moment: String, _ body: @escaping @Sendable (UploadOrder) -> Void) {
        state.withLock { $0.moments[moment] = body }
    }

    private func runBody(of moment: String, _ order: UploadOrder) {
        state.withLock { $0.moments.removeValue(forKey: moment) }?(order)
    }

    /// The contents of the accepted files, by the number of the object.
    var contents: [[UInt8]] { state.withLock { $0.contents } }

    var running: [FilePath] { state.withLock { Array($0.running.keys) } }
    /// Uploads that wait for the test, or will in a moment: an upload that is about to fail runs for a moment too.
    var waiting: Set<FilePath> { state.withLock { $0.waiting } }
    /// Every upload call so far, in order.
    var began: [FilePath] { state.withLock { $0.began } }
    /// The objects at the remote: more than once for a file that was sent twice.
    var objects: [FilePath] { state.withLock { $0.objects.map(\.name) } }

    func upload(
        _ order: UploadOrder, reporter: any UploadReporter, context: RequestContext
    ) async throws -> RemoteObject {
        let (name, signal) = (order.name, AsyncSignal())
        let act = state.withLock { state in
            state.began.append(name)
            state.running[name] = signal
            let act = state.acts[name] ?? state.standard
            switch act {
            case .waitOpening, .waitUploading, .waitParts, .waitRefusing: state.waiting.insert(name)
            case .take, .fail, .refuseKey, .lose, .leaveOut, .failAfterWord, .failNamed: break
            }
            return act
        }
        defer {
            state.withLock { state in
                state.running[name] = nil
                state.waiting.remove(name)
            }
        }
        reporter.entered(.opening)
        if case .fail(let remedy) = act {
            throw UploadError(Self.failure, remedy: remedy)
        }
        if case .waitRefusing = act { await signal.wait() }
        switch act {
        case .refuseKey, .waitRefusing:
            var failure = Self.failure
            (failure.kind, failure.http) = (.auth, 403)
            throw UploadError(failure, remedy: .authenticate)
        default: break
        }
        // As every destination must: an object may exist from the moment of the request.
        var checkpoint = order.checkpoint ?? Checkpoint()
        checkpoint["asked"] = "1"
        try await reporter.record(checkpoint)
        if case .lose(let remedy) = act {
            reporter.sending(order.file.size)
            throw UploadError(Self.failure, remedy: remedy)
        }
        if case .failAfterWord(let remedy) = act {
            try await reporter.accepted(0, checkpoint)
            throw UploadError(Self.failure, remedy: remedy)
        }
        if case .failNamed(let remedy) = act {
            if let mediaID { try await reporter.recordName(mediaID) }
            throw UploadError(Self.failure, remedy: remedy)
        }
        if case .waitOpening = act { await signal.wait() }
        try Task.checkCancellation()
        if checkpoint["object"] == nil {
            let number = state.withLock { state in
                state.made += 1
                state.objects.append((state.made, name))
                return state.made
            }
            checkpoint["object"] = "\(number)"
            try await reporter.record(checkpoint)
        }
        if let mediaID { try await reporter.recordName(mediaID) }
        if let renewal = state.withLock({ $0.renewal.take() }) { try await reporter.credential(renewal) }
        reporter.entered(.uploading)
        if case .waitUploading = act { await signal.wait() }
        if case .waitParts = act { try await takeParts(order, checkpoint, signal, reporter) }
        try Task.checkCancellation()
        runBody(of: "opened", order)
        reporter.spent(order.file.size)
        try await reporter.accepted(order.file.size, checkpoint)
        // A file that cannot be read is no concern of this remote.
        let content = (try? Self.read(order.file)) ?? []
        state.withLock { $0.contents.append(content) }
        runBody(of: "sent", order)
        return RemoteObject(id: nil, url: nil, verifiedBy: "script")
    }

    private static func read(_ file: StagedFile) throws -> [UInt8] {
        let open = try Descriptor.open(file.place)
        var content = [UInt8](repeating: 0, count: Int(file.size))
        let got = try content.withUnsafeMutableBytes { try open.read(into: $0, at: 0, named: file.place.shown) }
        return Array(content.prefix(got))
    }

    /// Like an engine: asks before each part whether to end there.
    private func takeParts(
        _ order: UploadOrder, _ checkpoint: Checkpoint, _ signal: AsyncSignal, _ reporter: any UploadReporter
    ) async throws {
        var checkpoint = checkpoint
        for part in (checkpoint["parts"].flatMap { Int($0) } ?? 0)..<4 {
            if reporter.shouldPause { throw CancellationError() }
            state.withLock { $0.parts.append(part) }
            await signal.wait()
            try Task.checkCancellation()
            checkpoint["parts"] = "\(part + 1)"
            try await reporter.accepted(order.file.size * Int64(part + 1) / 4, checkpoint)
        }
    }

    /// Every part begun so far, in order.
    var parts: [Int] { state.withLock { $0.parts } }

    /// Lets the parts in flight arrive, without any other change.
    func step() {
        for signal in state.withLock({ Array($0.running.values) }) { signal.signal() }
    }

    func takesTogether(_ bundling: Bundling) { state.withLock { $0.bundling = bundling } }
    var bundling: Bundling? { state.withLock { $0.bundling } }
    /// The names of every bundle so far.
    var bundles: [[FilePath]] { state.withLock { $0.bundles } }

    /// Leaves out the uploads that are to fail; waits as told for names without their own act.
    func upload(
        together orders: [UploadOrder], reporter: any BundleReporter, context: RequestContext
    ) async throws -> [String: RemoteObject] {
        let signal = AsyncSignal()
        let names = orders.map(\.name)
        let (acts, standard) = state.withLock { state in
            state.bundles.append(names)
            for name in names { state.running[name] = signal }
            return (names.map { state.acts[$0] ?? state.standard }, state.standard)
        }
        defer { state.withLock { state in for name in names { state.running[name] = nil } } }
        reporter.entered(.opening)
        let plain = zip(orders, acts).filter { if case .fail = $0.1 { false } else { true } }.map(\.0)
        var checkpoints: [String: Checkpoint] = [:]
        let numbers = state.withLock { state in
            plain.map { _ in
                state.made += 1
                return state.made
            }
        }
        for (order, number) in zip(plain, numbers) { checkpoints[order.id] = Checkpoint(["object": "\(number)"]) }
        let held = try await reporter.record(checkpoints)
        for (order, number) in zip(plain, numbers) where held.contains(order.id) {
            state.withLock { $0.objects.append((number, order.name)) }
        }
        reporter.entered(.uploading)
        if case .waitUploading = standard { await signal.wait() }
        try Task.checkCancellation()
        var made: [String: RemoteObject] = [:]
        let leftOut = Set(zip(orders, acts).filter { if case .leaveOut = $0.1 { true } else { false } }.map(\.0.id))
        for order in plain
        where held.contains(order.id) && !leftOut.contains(order.id) && !reporter.shouldPause(order.id) {
            reporter.spent(order.id, order.file.size)
            made[order.id] = RemoteObject(id: nil, url: nil, verifiedBy: "script")
        }
        return made
    }

    func discard(_ checkpoint: Checkpoint, context: RequestContext) async throws(UploadError) -> Bool {
        try await runQuestion(context)
        state.withLock { $0.objects.removeAll { "\($0.number)" == checkpoint["object"] } }
        return true
    }

    /// Its finding for every name that has none of its own.
    func find(_ finding: RemoteLookup, except findings: [FilePath: RemoteLookup] = [:]) {
        state.withLock { ($0.finding, $0.findings) = (finding, findings) }
    }

    var asked: Int { state.withLock { $0.asked } }

    func find(_ order: UploadOrder, context: RequestContext) async throws(UploadError) -> RemoteLookup {
        state.withLock { state in
            state.asked += 1
            return state.findings[order.name] ?? state.finding
        }
    }

    func check(context: RequestContext) async -> CheckResult { CheckResult(.ok, "scripted") }

    /// The report of its space from now on.
    func tell(_ space: RemoteSpace?) { state.withLock { ($0.tellsSpace, $0.space) = (true, space) } }
    /// Makes queries for its space fail from now on.
    func hideSpace() { state.withLock { ($0.tellsSpace, $0.isUnreachable) = (true, true) } }
    /// The number of queries so far.
    var looks: Int { state.withLock { $0.looks } }
    var reportsSpace: Bool { state.withLock { $0.tellsSpace } }

    /// The largest file that it takes from now on; `nil` for a failing question. The last answer stays.
    func limit(to sizes: [Int64?]) { state.withLock { $0.sizeLimits = sizes } }
    var sizeQuestions: Int { state.withLock { $0.sizeQuestions } }
    var limitsSize: Bool { state.withLock { $0.sizeLimits != nil } }

    func querySizeLimit(context: RequestContext) async throws(UploadError) -> Int64? {
        let limit = state.withLock { state in
            state.sizeQuestions += 1
            guard let limits = state.sizeLimits else { return Int64?.none }
            return (limits.count > 1 ? state.sizeLimits?.removeFirst() : limits.first) ?? nil
        }
        guard let limit else { throw UploadError(Self.failure, remedy: .retry(after: nil)) }
        return limit
    }

    func space(context: RequestContext) async throws(UploadError) -> RemoteSpace? {
        let (space, isUnreachable) = state.withLock { state in
            state.looks += 1
            return (state.space, state.isUnreachable)
        }
        try await runQuestion(context)
        if isUnreachable {
            var error = UploadError(
                Failure(
                    .transient, code: .unreachable, message: "no server responds there", at: WallTime(milliseconds: 0),
                    retryable: true),
                remedy: .holdDestination(after: nil))
            error.contact = .none
            throw error
        }
        return space
    }
}
