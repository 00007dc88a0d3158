internal import Core
internal import Digests
internal import Linux

extension OpenTargetFolder {
    /// Writes a bundle of small files. All files are written and flushed together before the first is waited for, and
    /// one sync of the folder makes all names durable.
    ///
    /// A file that meets an error is left out. It is uploaded alone later, meets the same error and reports it.
    func sendBundle(
        _ pieces: [BundledFile], isWanted: @escaping @Sendable (String) -> Bool,
        _ spent: @escaping @Sendable (String, Int64) -> Void
    ) async throws -> Set<String> {
        let named = try await run("") { pulse in
            var written: [(piece: BundledFile, file: Written)] = []
            for piece in pieces where isWanted(piece.order.id) {
                try pulse.reportProgress()
                if let file = try? self.write(piece, pulse, spent) { written.append((piece, file)) }
            }
            var synced: [BundledFile] = []
            for (piece, file) in written {
                try pulse.reportProgress()
                if (try? file.finish(named: piece.part)) != nil { synced.append(piece) }
            }
            CrashPoint.reached("part-synced")
            let whole = try synced.filter { piece in
                try pulse.reportProgress()
                let file = piece.order.file
                return (try? self.digest(of: piece.part, expecting: file.size, pulse)) == file.sha256
            }
            CrashPoint.reached("part-verified")
            try self.target.checkRoot(self.root)
            var named: [BundledFile] = []
            for piece in whole {
                // A stop leaves the remaining files as they are. Files that have their final name are complete, and are
                // reported.
                if (try? pulse.reportProgress()) == nil { break }
                if (try? self.renameNoReplace(piece.part, to: piece.name)) == true { named.append(piece) }
            }
            if named.isEmpty { return named }
            CrashPoint.reached("part-renamed")
            try self.folder.sync(named: self.relative)
            return named
        }
        return Set(named.map(\.order.id))
    }

    /// - Returns: `nil` when the name is not free.
    private func write(
        _ piece: BundledFile, _ pulse: SlowDisk.Pulse, _ spent: @escaping @Sendable (String, Int64) -> Void
    ) throws -> Written? {
        let (file, id) = (piece.order.file, piece.order.id)
        guard try FileStatus.ifPresent(at: piece.name, in: folder) == nil else { return nil }
        let staged = try openStaged(file)
        guard try FileStatus(of: staged, named: file.place.shown).size == file.size else { return nil }
        let part = try make(piece.part, for: file)
        let end = try copy(staged, file, from: 0, to: part, piece.part, pulse, { spent(id, $0) }, { _ in })
        guard end == file.size else { return nil }
        setAttributes(part, piece.part, piece.order)
        part.startFlushing(from: 0, count: end)
        return Written(part)
    }

    /// Holds a file open from its writing to its sync, which reports write errors in between.
    private final class Written {
        private var file: Descriptor?

        init(_ file: consuming Descriptor) { self.file = consume file }

        func finish(named name: FilePath) throws {
            guard let file = file.take() else { return }
            try file.sync(named: name)
            try file.close(named: name)
        }
    }
}
