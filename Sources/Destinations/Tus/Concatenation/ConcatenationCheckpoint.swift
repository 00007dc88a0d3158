internal import Core

/// The fields of an upload in sections: the checkpoint of each partial upload, and the state of the request that joins
/// them.
struct ConcatenationCheckpoint: TypedCheckpoint {
    var stored: Checkpoint

    init(_ stored: Checkpoint) { self.stored = stored }

    /// Fields that stay when the upload starts again.
    static let lasting = [fields.isSingle.name]

    struct Fields: CheckpointFields {
        static let all = Fields()

        /// The offset in the file at which each section ends, in order.
        let ends = CheckpointField<[String]>("section_ends")
        /// The digest of the file, in hexadecimal digits.
        let content = CheckpointField<String?>("section_content")
        /// The file is sent as one upload from now on.
        let isSingle = CheckpointField<Bool>("single")
        /// The request that joins the partial uploads may have arrived, and no answer to it is known.
        let isJoining = CheckpointField<Bool>("joining")
        /// Times that the server refused that request.
        let refusals = CheckpointField<Int64?>("join_refused")
        /// The message of the last unsuccessful answer to it, which leaves open whether they are joined.
        let joinAnswer = CheckpointField<String?>("join_answer")
        /// When the server answered it, in ms since 1970. From then on the upload is the joined one.
        let joinedAt = CheckpointField<Int64?>("joined_at")
        /// Of a partial upload: its address exactly as the server wrote it.
        let location = CheckpointField<String?>("location")
    }

    var isJoined: Bool { self.joinedAt != nil }

    /// The sections of the file that were begun; `nil` where there are none, or those of other content.
    func sections(of file: StagedFile) -> [TusSection]? {
        let ends = self.ends.compactMap { Int64($0) }
        guard let last = ends.last, last == file.size, self.content == hexadecimal(file.sha256),
            ends.count == self.ends.count, ends.first ?? 0 > 0,
            zip(ends, ends.dropFirst()).allSatisfy({ $0 < $1 })
        else { return nil }
        return zip([0] + ends, ends).map { TusSection(range: $0..<$1) }
    }

    /// The checkpoint of each partial upload, in order.
    var partialUploads: [OffsetCheckpoint] {
        get { self.ends.indices.map { OffsetCheckpoint(stored.removing(prefix: Self.prefix($0))) } }
        set {
            for (index, upload) in newValue.enumerated() {
                let prefix = Self.prefix(index)
                stored.remove(stored.fields.keys.filter { $0.hasPrefix(prefix) })
                stored.merge(upload.stored.adding(prefix: prefix))
            }
        }
    }

    /// A partial upload at the server.
    struct Part: Hashable, Sendable {
        let url: String
        /// Bytes of the section.
        let size: Int64
    }

    /// Those that may be removed.
    var removableParts: [Part] {
        var parts: [Part] = []
        var start: Int64 = 0
        for (end, upload) in zip(self.ends.map { Int64($0) }, partialUploads) {
            // A damaged checkpoint.
            guard let end, end > start else { break }
            if let url = upload.url, !upload.isOfAnotherWriter { parts.append(Part(url: url, size: end - start)) }
            start = end
        }
        return parts
    }

    private static func prefix(_ index: Int) -> String { "section\(index)." }
}

extension OffsetCheckpoint {
    var concatenation: ConcatenationCheckpoint {
        get { self[as: ConcatenationCheckpoint.self] }
        set { self[as: ConcatenationCheckpoint.self] = newValue }
    }

    /// The checkpoint with which the partial uploads of this one are removed; `nil` for none.
    var partialUploads: OffsetCheckpoint? {
        if concatenation.removableParts.isEmpty { return nil }
        var remains = self
        remains.url = nil
        return remains
    }

    /// The checkpoint of the next beginning, as one upload. Creations of partial uploads without an answer still count.
    var asSingle: OffsetCheckpoint {
        var next = OffsetCheckpoint(stored.keeping(OffsetCheckpoint.lasting))
        next.concatenation.isSingle = true
        let lost = concatenation.lostCreations
        if lost > 0 { next.orphans = (next.orphans ?? 0) + lost }
        return next
    }
}

extension ConcatenationCheckpoint {
    /// Creations of partial uploads whose answer is not known.
    fileprivate var lostCreations: Int64 {
        partialUploads.reduce(0) { $0 + ($1.orphans ?? 0) + ($1.isCreating ? 1 : 0) }
    }

    /// Moves that number to the whole upload, which counts it from now on.
    static func countLostCreations(in checkpoint: inout OffsetCheckpoint) {
        let lost = checkpoint.concatenation.lostCreations
        guard lost > 0 else { return }
        checkpoint.orphans = (checkpoint.orphans ?? 0) + lost
        checkpoint.concatenation.partialUploads = checkpoint.concatenation.partialUploads.map {
            var upload = $0
            (upload.orphans, upload.isCreating) = (nil, false)
            return upload
        }
    }
}
