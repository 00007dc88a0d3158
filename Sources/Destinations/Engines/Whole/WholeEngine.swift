internal import Core
internal import Linux

/// Uploads a file to a remote that knows only names: sends it under a temporary name, reads it back, and renames it.
///
/// Contains nothing that is particular to a vendor. A file is renamed only when the remote was seen to hold its
/// content. An interrupted upload continues, but the earlier bytes are read back too. If a file with the same content
/// already has the name, the upload is done. Does not wait: an error that needs time or a person is thrown with its
/// remedy.
struct WholeEngine: Sendable {
    let dialect: any WholeDialect
    let taken: NameConflictRule

    func upload(_ order: UploadOrder, _ reporter: any UploadReporter) async throws -> RemoteObject {
        try await order.file.checkStatus(dialect.failure)
        reporter.entered(.opening)
        guard let place = try await dialect.openFolder(order.name, isMaking: true) else {
            throw UploadError(
                dialect.failure(
                    .transient, .folderGone, "the folder disappeared while it was created", retryable: true),
                remedy: .retry(after: nil))
        }
        return try await WholeUpload(self, order, reporter, place).finish()
    }

    /// Removes the temporary file. A file that already has its name stays: it is complete, and another upload may be
    /// counted as done because of it.
    ///
    /// - Returns: `false` for a file that has its name.
    func discard(_ checkpoint: WholeCheckpoint) async throws -> Bool {
        if checkpoint.stored.isFinished { return false }
        guard let path = WholeUpload.part(of: checkpoint),
            let place = try await dialect.openFolder(path, isMaking: false)
        else { return true }
        try await place.remove(path.name)
        return true
    }

    func find(_ order: UploadOrder) async throws -> RemoteLookup {
        guard let place = try await dialect.openFolder(order.name, isMaking: false) else { return .absent }
        for number in 1..<Self.maxNames {
            let name = order.name.name.numbered(number)
            switch try await place.status(at: name, for: order.file) {
            case .free: return .absent
            case .same:
                // The file that was found may only be in a cache: a source may be deleted because of this answer.
                try await place.makeDurable(name)
                return .found(RemoteObject(id: nil, url: place.address(of: name), verifiedBy: "held"))
            case .other: if taken != .suffix { return .absent }
            }
        }
        return .absent
    }

    /// A limit, so that a folder full of the same name is an error and not an endless search.
    static let maxNames = 10_000
}

/// One attempt. Owned by one task from beginning to end.
final class WholeUpload {
    private let engine: WholeEngine
    private let order: UploadOrder
    private let reporter: any UploadReporter
    private let place: any RemoteDirectory
    private var checkpoint: WholeCheckpoint
    private var part: FilePath

    private var file: StagedFile { order.file }
    private var dialect: any WholeDialect { engine.dialect }

    init(_ engine: WholeEngine, _ order: UploadOrder, _ reporter: any UploadReporter, _ place: any RemoteDirectory) {
        self.engine = engine
        self.order = order
        self.reporter = reporter
        self.place = place
        checkpoint = WholeCheckpoint(order.checkpoint ?? Checkpoint())
        // A temporary file of an earlier generation may be continued.
        if let earlier = Self.part(of: checkpoint), earlier.parent == order.name.parent {
            part = earlier.name
        } else {
            part = Self.partName(order)
        }
    }

    func finish() async throws -> RemoteObject {
        guard var name = try await freeName() else { return try await alreadyHeld() }
        try await begin()
        reporter.entered(.uploading)
        do { try await sendMissing() } catch let error as UploadError where error.remedy.restages {
            await removeDamaged()
            throw error
        }
        while true {
            try Task.checkCancellation()
            CrashPoint.reached("part-verified")
            if try await place.rename(part, to: name, isReplacing: engine.taken == .replace) {
                return RemoteObject(
                    id: nil, url: place.address(of: name), verifiedBy: "digest", warnings: place.warnings)
            }
            // Another writer took the name first.
            guard let next = try await freeName() else { return try await alreadyHeld() }
            name = next
        }
    }

    /// The name that already held the file when it was looked for last.
    private var heldName: FilePath?

    /// - Returns: `nil` when ``heldName`` holds the same content.
    private func freeName() async throws -> FilePath? {
        for number in 1..<WholeEngine.maxNames {
            let name = order.name.name.numbered(number)
            switch (try await place.status(at: name, for: file), engine.taken) {
            case (.free, _), (.other(isFile: true), .replace): return name
            case (.same, _):
                // The existing file was read.
                reporter.received(file.size)
                heldName = name
                return nil
            case (.other, .suffix): continue
            case (.other(isFile: false), .replace): throw nameConflict(name, "is not a file, and cannot be replaced")
            case (.other, .fail):
                throw nameConflict(name, "exists already with other content, and `taken: fail` is set")
            }
        }
        throw nameConflict(order.name.name, "and 10,000 numbers after it are taken")
    }

    private func nameConflict(_ name: FilePath, _ why: String) -> UploadError {
        UploadError(
            dialect.failure(.permanent, .nameTaken, "\(place.address(of: name)) \(why)", retryable: false),
            remedy: .failUpload)
    }

    /// Nothing has to be sent: another writer uploaded the file, or this upload did before a crash.
    private func alreadyHeld() async throws -> RemoteObject {
        let name = heldName ?? order.name.name
        reporter.entered(.finishing)
        try await place.makeDurable(name)
        if checkpoint.has(\.part) { try await place.remove(part) }
        return RemoteObject(id: nil, url: place.address(of: name), verifiedBy: "held", warnings: place.warnings)
    }

    // MARK: Bytes

    /// Records the temporary name before a file exists under it: without a record it would never be removed.
    private func begin() async throws {
        let wanted = Self.beginning(order, part)
        if checkpoint.stored.contains(wanted.stored) { return }
        checkpoint = wanted
        try await reporter.record(checkpoint.stored)
    }

    /// The checkpoint of a file before anything was sent.
    static func beginning(_ order: UploadOrder, _ part: FilePath) -> WholeCheckpoint {
        var checkpoint = WholeCheckpoint()
        checkpoint.part = order.name.parent.appending(part)
        checkpoint.sha256 = hexadecimal(order.file.sha256)
        return checkpoint
    }

    /// Sends the missing bytes, until the remote itself shows that it has the content.
    private func sendMissing() async throws {
        var offset = try await resumption()
        var isSecond = false
        while true {
            try await send(from: offset)
            reporter.entered(.finishing)
            CrashPoint.reached("part-synced")
            // All bytes are reported before the first one is sent.
            reporter.received(file.size)
            if try await place.holds(file, as: part) { return }
            // The copy in staging may have rotted. Nothing at the remote can repair that.
            try await file.checkContent(dialect.failure)
            try await start(over: 0)
            if isSecond {
                var failure = dialect.failure(
                    .transient, .readBackDiffers,
                    "\(place.address(of: part)) had other content when it was read back than was written, "
                        + "twice in a row: check its disk, its memory and the connection to it; the next attempt follows "
                        + "after a minute", retryable: true)
                failure.explainsWait = true
                throw UploadError(failure, remedy: .holdDestination(after: .seconds(60)))
            }
            // A power cut of the remote leaves a file with the right length and with holes.
            isSecond = true
            offset = 0
            reporter.entered(.uploading)
        }
    }

    /// The offset at which to continue: after the durable bytes, as far as they exist.
    private func resumption() async throws -> Int64 {
        let durable = checkpoint.offset ?? 0
        guard durable > 0 else { return 0 }
        let length = try await place.length(of: part) ?? 0
        // The temporary file is longer than the file: it contains another writer's bytes.
        let offset = length > file.size ? 0 : min(durable, length)
        if offset != durable { try await start(over: offset) }
        return offset
    }

    /// The copy is damaged, and perhaps no other upload follows: removes the bytes that were sent from it.
    private func removeDamaged() async {
        do { try await place.remove(part) } catch {
            // The damage is reported, not this error. The checkpoint names the file, so the next attempt or a cancel
            // finds it.
            return
        }
    }

    private func start(over offset: Int64) async throws {
        checkpoint.offset = offset
        try await reporter.accepted(offset, checkpoint.stored)
    }

    private func send(from start: Int64) async throws {
        guard start < file.size || file.size == 0 else { return }
        var offset = start
        let reporter = reporter
        repeat {
            try Task.checkCancellation()
            if reporter.shouldPause { throw CancellationError() }
            let next = try await place.send(
                from: offset, of: order, to: part, { reporter.spent($0) }, { reporter.sending($0) })
            // A file that is sent in one piece needs no record: it is sent again if necessary.
            if offset > 0 || next < file.size {
                checkpoint.offset = next
                try await reporter.accepted(next, checkpoint.stored)
            }
            offset = next
        } while offset < file.size
    }

    /// The temporary file that a checkpoint names.
    ///
    /// - Returns: `nil` for a name that no temporary file has: a damaged checkpoint must not lead to a complete file,
    ///   which would be overwritten or removed.
    static func part(of checkpoint: WholeCheckpoint) -> FilePath? {
        guard let path = checkpoint.part else { return nil }
        let name = path.name.bytes
        guard name.first == UInt8(ascii: "."), name.suffix(suffix.count).elementsEqual(suffix),
            name.indices.contains(where: { name[$0...].starts(with: mark) })
        else { return nil }
        return path
    }

    private static let mark = Array(".sluice-".utf8)
    private static let suffix = Array(".part".utf8)

    /// Hidden, different for every upload and generation, and no longer than a name may be.
    static func partName(_ order: UploadOrder) -> FilePath {
        let tail = mark + Array("\(order.id)-\(order.generation)".utf8) + suffix
        let stem = FilePath.shortened(order.name.name.bytes, to: FilePath.longestName - 1 - tail.count)
        return FilePath(bytes: [UInt8(ascii: ".")] + stem + tail)
    }
}
