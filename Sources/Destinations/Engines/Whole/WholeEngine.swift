internal import Core
internal import Linux

/// Takes a file to a remote that knows names and no uploads: under a temporary name, read back, and then renamed.
///
/// Knows no vendor. A name is given only to content that the remote itself was seen to hold; what was sent before is
/// gone on with, and never believed. A name that is held by the same content is done. Does not wait: what needs time or a
/// person is thrown with its remedy.
struct WholeEngine: Sendable {
    let dialect: any WholeDialect
    let taken: TakenRule

    func upload(_ order: UploadOrder, _ notes: any UploadNotes) async throws -> RemoteObject {
        try order.file.checkLook(dialect.failure)
        notes.entered(.opening)
        guard let place = try await dialect.reach(order.name, isMaking: true) else {
            throw UploadError(
                dialect.failure(.transient, "folder_gone", "the folder went while it was made", retryable: true),
                remedy: .again(after: nil))
        }
        return try await WholeRun(self, order, notes, place).finish()
    }

    /// Removes the temporary file. A file that has its name stays: it is whole, and another upload may have been counted
    /// as done since it is there.
    ///
    /// - Returns: `false` for a file that has its name.
    func discard(_ checkpoint: Checkpoint) async throws -> Bool {
        if checkpoint[Checkpoint.isFinished] != nil { return false }
        guard let path = WholeRun.part(of: checkpoint),
            let place = try await dialect.reach(path, isMaking: false)
        else { return true }
        try await place.remove(path.name)
        return true
    }

    func find(_ order: UploadOrder) async throws -> Finding {
        guard let place = try await dialect.reach(order.name, isMaking: false) else { return .absent }
        for number in 1..<Self.mostNames {
            let name = order.name.name.numbered(number)
            switch try await place.look(at: name, for: order.file) {
            case .nobody: return .absent
            case .same:
                // What is found may be in a cache only: a source may go because of this answer.
                try await place.settle(name)
                return .held(RemoteObject(id: nil, url: place.address(of: name), verifiedBy: "held"))
            case .other: if taken != .suffix { return .absent }
            }
        }
        return .absent
    }

    /// A bound, so that a folder full of the same name is an error and not an endless search.
    static let mostNames = 10_000
}

/// One attempt. Owned by one task from beginning to end.
///
/// Its fields of the checkpoint:
///
/// | field | means |
/// |---|---|
/// | `part` | the temporary file, below the remote's root, as `FilePath.display` writes it |
/// | `sha256` | what it is to become: another content is not put behind its bytes |
/// | `offset` | its bytes below are durable at the remote, as far as that tells |
final class WholeRun {
    private let engine: WholeEngine
    private let order: UploadOrder
    private let notes: any UploadNotes
    private let place: any WholePlace
    private var checkpoint: Checkpoint
    private var part: FilePath

    private var file: StagedFile { order.file }
    private var dialect: any WholeDialect { engine.dialect }

    init(_ engine: WholeEngine, _ order: UploadOrder, _ notes: any UploadNotes, _ place: any WholePlace) {
        self.engine = engine
        self.order = order
        self.notes = notes
        self.place = place
        checkpoint = order.checkpoint ?? Checkpoint()
        // One of an earlier generation may be gone on with.
        if let earlier = Self.part(of: checkpoint), earlier.parent == order.name.parent {
            part = earlier.name
        } else {
            part = Self.partName(order)
        }
    }

    func finish() async throws -> RemoteObject {
        guard var name = try await freeName() else { return try await alreadyHeld() }
        try await begin()
        notes.entered(.uploading)
        do { try await bring() } catch let error as UploadError where error.remedy == .restage {
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
            // Somebody was faster.
            guard let next = try await freeName() else { return try await alreadyHeld() }
            name = next
        }
    }

    /// The name that the file held already had when it was looked for last.
    private var heldName: FilePath?

    /// - Returns: `nil` when ``heldName`` holds the same content.
    private func freeName() async throws -> FilePath? {
        for number in 1..<WholeEngine.mostNames {
            let name = order.name.name.numbered(number)
            switch (try await place.look(at: name, for: file), engine.taken) {
            case (.nobody, _), (.other(isFile: true), .replace): return name
            case (.same, _):
                // That was read.
                notes.received(file.size)
                heldName = name
                return nil
            case (.other, .suffix): continue
            case (.other(isFile: false), .replace): throw taken(name, "is no file, and cannot be replaced")
            case (.other, .fail): throw taken(name, "is there already with another content, and `taken: fail` is set")
            }
        }
        throw taken(order.name.name, "and 10,000 numbers after it are taken")
    }

    private func taken(_ name: FilePath, _ why: String) -> UploadError {
        UploadError(
            dialect.failure(.permanent, "name_taken", "\(place.address(of: name)) \(why)", retryable: false),
            remedy: .giveUp)
    }

    /// Nothing is to be sent: somebody brought it, or this upload did before a crash.
    private func alreadyHeld() async throws -> RemoteObject {
        let name = heldName ?? order.name.name
        notes.entered(.finishing)
        try await place.settle(name)
        if checkpoint["part"] != nil { try await place.remove(part) }
        return RemoteObject(id: nil, url: place.address(of: name), verifiedBy: "held", warnings: place.warnings)
    }

    // MARK: Bytes

    /// Writes the temporary name down before there is anything under it: what nobody remembers is never removed.
    private func begin() async throws {
        let wanted = Self.beginning(order, part)
        if wanted.fields.allSatisfy({ checkpoint[$0.key] == $0.value }) { return }
        checkpoint = wanted
        try await notes.record(checkpoint)
    }

    /// The checkpoint of a file of which nothing was sent.
    static func beginning(_ order: UploadOrder, _ part: FilePath) -> Checkpoint {
        Checkpoint([
            "part": order.name.parent.appending(part).display, "sha256": hexadecimal(order.file.sha256),
        ])
    }

    /// Brings what is missing, until the remote itself shows that it has the content.
    private func bring() async throws {
        var offset = try await resumption()
        var isSecond = false
        while true {
            try await send(from: offset)
            notes.entered(.finishing)
            CrashPoint.reached("part-synced")
            // All of it, before the first byte of it comes.
            notes.received(file.size)
            if try await place.holds(file, as: part) { return }
            // The copy in staging may have rotted, which nothing at the remote can mend.
            try await file.checkContent(dialect.failure)
            try await start(over: 0)
            if isSecond {
                throw UploadError(
                    dialect.failure(
                        .transient, "read_back_differs",
                        "\(place.address(of: part)) was read back with another content than was written, twice in a row: "
                            + "look at its disk, its memory and the way there", retryable: true),
                    remedy: .holdDestination(after: .seconds(60)))
            }
            // A power cut of the remote leaves a file that is long enough and has holes.
            isSecond = true
            offset = 0
            notes.entered(.uploading)
        }
    }

    /// Where to go on: behind what was made durable, as far as that is there.
    private func resumption() async throws -> Int64 {
        let durable = checkpoint.number("offset")
        guard durable > 0 else { return 0 }
        let length = try await place.length(of: part) ?? 0
        // Longer than the file: somebody else's bytes are in it.
        let offset = length > file.size ? 0 : min(durable, length)
        if offset != durable { try await start(over: offset) }
        return offset
    }

    /// The copy is damaged, and perhaps nothing comes in its place: what was made of it does not stay at the remote.
    private func removeDamaged() async {
        do { try await place.remove(part) } catch {
            // The damage is what is told. The checkpoint names the file, so the next attempt or a cancel meets it.
            return
        }
    }

    private func start(over offset: Int64) async throws {
        checkpoint["offset"] = "\(offset)"
        try await notes.accepted(offset, checkpoint)
    }

    private func send(from start: Int64) async throws {
        guard start < file.size || file.size == 0 else { return }
        var offset = start
        let notes = notes
        repeat {
            try Task.checkCancellation()
            if notes.isToPause { throw CancellationError() }
            let next = try await place.send(
                from: offset, of: order, to: part, { notes.spent($0) }, { notes.sending($0) })
            // A file that goes in one piece needs no note: it is sent again if it has to be.
            if offset > 0 || next < file.size {
                checkpoint["offset"] = "\(next)"
                try await notes.accepted(next, checkpoint)
            }
            offset = next
        } while offset < file.size
    }

    /// The temporary file that a checkpoint names.
    ///
    /// - Returns: `nil` for a name that no temporary file has: a damaged checkpoint must not lead to a file that is whole,
    ///   which would be written over or removed.
    static func part(of checkpoint: Checkpoint) -> FilePath? {
        guard let path = checkpoint["part"].flatMap({ FilePath(display: $0) }) else { return nil }
        let name = path.name.bytes
        guard name.first == UInt8(ascii: "."), name.suffix(suffix.count).elementsEqual(suffix),
            name.indices.contains(where: { name[$0...].starts(with: mark) })
        else { return nil }
        return path
    }

    private static let mark = Array(".sluice-".utf8)
    private static let suffix = Array(".part".utf8)

    /// Hidden, told from every other upload and generation, and as long as a name may be at most.
    static func partName(_ order: UploadOrder) -> FilePath {
        let tail = mark + Array("\(order.id)-\(order.generation)".utf8) + suffix
        let stem = FilePath.shortened(order.name.name.bytes, to: FilePath.longestName - 1 - tail.count)
        return FilePath(bytes: [UInt8(ascii: ".")] + stem + tail)
    }
}
