package import Core

/// The masks of uploads: what their files answer to the questions of conditions.
///
/// A mask is set when a file is recorded, and for good when it is staged: then also the length of a recording is known.
/// When the questions change, the files of uploads that wait are asked again in batches; until then they count as
/// unknown.
package struct FileMasks<Access> {
    let tx: Transaction<Access>

    private struct Row {
        let upload: String
        let facts: FileFacts
        let mask: FileMask
    }

    /// The facts of the file of an upload.
    func facts(of upload: UploadRecord) throws -> FileFacts {
        FileFacts(
            size: upload.size, kind: FileKind(mediaType: upload.mediaType),
            duration: try tx.media.of(upload.asset).duration)
    }

    private func rows(_ source: String, _ values: [Connection.Value]) throws -> [Row] {
        try tx.connection.all(
            """
            SELECT upload.id, upload.size, upload.media_type, upload.mask,
            (SELECT duration FROM media WHERE media.asset = upload.asset) FROM \(source)
            """, values
        ) { row in
            Row(
                upload: row.text(0),
                facts: FileFacts(
                    size: row.integer(1), kind: FileKind(mediaType: row.text(2)), duration: row.optionalInteger(4)),
                mask: FileMask(row.text(3)))
        }
    }

    /// The stored questions.
    func questions() throws -> FileQuestions {
        let lines = (try tx.settings.value("file questions") ?? "").split(separator: "\n").map(String.init)
        guard let number = lines.first.flatMap({ Int($0) }) else { return FileQuestions() }
        return FileQuestions(number: number, lines.dropFirst().compactMap { FilePredicate(code: $0) })
    }

    /// A class of waiting uploads that were not asked these questions.
    fileprivate func unasked(_ questions: FileQuestions) throws -> (one: UploadClass, state: String)? {
        try tx.connection.all(
            """
            SELECT folder, destination, mask, state FROM tally
            WHERE state IN ('staging', 'queued', 'uploading') AND uploads > 0 ORDER BY state DESC
            """
        ) { row in
            (UploadClass(folder: row.text(0), destination: row.text(1), mask: FileMask(row.text(2))), row.text(3))
        }.first { !questions.areAnswered(by: $0.0.mask) }
    }
}

extension FileMasks where Access == Writing {
    /// Stores the questions of a configuration. Masks that answer them all stay valid.
    ///
    /// - Returns: The questions that masks answer from now on: perhaps more than these.
    func set(_ list: [FilePredicate]) throws -> FileQuestions {
        let stored = try questions()
        if list.allSatisfy({ stored.list.contains($0) }) { return stored }
        let questions = FileQuestions(number: stored.number + 1, list)
        try tx.settings.set(
            "file questions", ([String(questions.number)] + list.map(\.code)).joined(separator: "\n"))
        return questions
    }

    /// Asks the file of an upload that is recorded, has changed or begins to wait.
    func update(_ upload: String) throws {
        if tx.session.questions.list.isEmpty { return }
        for row in try rows("upload WHERE upload.id = ?1", [.text(upload)]) { try update(row) }
    }

    private func update(_ row: Row) throws {
        let mask = tx.session.questions.mask(of: row.facts)
        if mask == row.mask { return }
        try tx.connection.run("UPDATE upload SET mask = ?2 WHERE id = ?1", [.text(row.upload), .text(mask.text)])
    }

    /// Asks the files of the next waiting uploads that were not asked: first those that are being sent, and then the
    /// newest.
    ///
    /// - Returns: Whether there were any.
    func updateNext(_ limit: Int) throws -> Bool {
        guard let (one, state) = try unasked(tx.session.questions) else { return false }
        let source =
            """
            upload INDEXED BY upload_class WHERE destination = ?1 AND folder = ?2 AND mask = ?3 AND state = ?4
            ORDER BY id DESC LIMIT \(limit)
            """
        let values: [Connection.Value] = [
            .text(one.destination), .text(one.folder), .text(one.mask.text), .text(state),
        ]
        for row in try rows(source, values) { try update(row) }
        tx.session.facts.changes.insert(.queued)
        return true
    }
}

extension Store {
    /// Asks these questions of every file from now on.
    ///
    /// - Returns: The questions that masks answer from now on. Uploads that wait are asked by
    ///   ``askWaitingFiles(_:)``.
    package func ask(_ list: [FilePredicate]) async throws -> FileQuestions {
        let stored = try read { tx in try tx.masks.questions() }
        let questions =
            list.allSatisfy { stored.list.contains($0) } ? stored : try await write { tx in try tx.masks.set(list) }
        session.questions = questions
        return questions
    }

    /// Asks the files of waiting uploads that were not asked the present questions.
    ///
    /// - Parameter limit: Uploads in one transaction.
    /// - Returns: Whether there may be more.
    package func askWaitingFiles(_ limit: Int = 1_000) async throws -> Bool {
        let isAny = try read { tx in try tx.masks.unasked(tx.session.questions) != nil }
        return isAny ? try await write { tx in try tx.masks.updateNext(limit) } : false
    }
}
