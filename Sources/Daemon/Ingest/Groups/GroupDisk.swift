internal import Config
internal import Core
internal import Linux
internal import Store
internal import Watch

/// Finds the files of groups on the disk, and what was recorded of them.
struct GroupDisk: Sendable {
    struct File: Sendable {
        let relative: FilePath
        let status: FileStatus
        /// This version was recorded, or skipped.
        let isKnown: Bool
    }

    let context: Context
    let sources: SourceFolders
    let fileSystems: FileSystems

    func names(in directory: FilePath, _ root: FilePath) async throws -> [FilePath] {
        let source = sources[root]
        return try await blocking { try source.open().stream(directory).names() }
    }

    /// The files among these that exist.
    func files(_ paths: some Collection<FilePath> & Sendable, in root: FilePath, of folder: String) async throws
        -> [File]
    {
        if paths.isEmpty { return [] }
        let (fileSystems, source) = (fileSystems, sources[root])
        let found = try await blocking {
            // Another medium may have got the device number since.
            fileSystems.forget()
            return try paths.compactMap { relative -> (FilePath, FileStatus, FileIdentity)? in
                let top = try source.open()
                let found: FileStatus?
                // Links are not followed, so there is no file behind one.
                do throws(SystemError) {
                    found = try top.statusIfPresent(at: relative)
                } catch {
                    guard error.isLink else { throw error }
                    found = nil
                }
                guard let status = found, status.isRegular else { return nil }
                let system = fileSystems.identity(of: top, at: relative, device: status.device)
                return (relative, status, FileIdentity(status, folder: folder, relative: relative, on: system))
            }
        }
        let known = try await context.store.areKnown(found.map(\.2))
        return zip(found, known).map { File(relative: $0.0, status: $0.1, isKnown: $1) }
    }

    /// All files in a directory that their folder takes, and the first directory or file that could not be inspected.
    func survey(_ directory: FilePath, in root: FilePath, of folder: String) async throws -> (
        files: [SettledFile], trouble: String?
    ) {
        let (rules, sources, clocks) = (context.settings.presentFolders.map(\.watch), sources, context.clocks)
        return try await blocking {
            var survey = FolderSurvey(
                rules: rules, in: sources, below: root.appending(directory), clocks: clocks, includesUnready: true)
            var (files, trouble): ([SettledFile], String?) = ([], nil)
            while let piece = survey.next() {
                files += piece.files.filter { $0.folder == folder }
                trouble = trouble ?? piece.troubles.first
            }
            return (files, trouble)
        }
    }

    /// Whether these were recorded.
    func recorded(_ files: [SettledFile]) async throws -> [File] {
        if files.isEmpty { return [] }
        let known = try await context.store.areKnown(files.map(\.identity))
        return zip(files, known).map { File(relative: $0.relative, status: $0.status, isKnown: $1) }
    }

    /// A file that was recorded within the last day and is gone: it was released before these came.
    func releasedFile(
        beginningWith start: FilePath, of folder: String, where isMeant: @Sendable (FilePath) -> Bool
    ) async throws -> FilePath? {
        let since = context.clocks.wall().advanced(by: .seconds(-86_400))
        return try await context.store.read {
            try $0.tombstones.recorded(in: folder, beginningWith: start, since: since)
        }.first(where: isMeant)
    }

    /// Those of these files that were recorded, whenever that was.
    func released(_ files: [FilePath], of folder: String) async throws -> Set<FilePath> {
        if files.isEmpty { return [] }
        return try await context.store.read { tx in
            Set(try files.filter { try tx.tombstones.knownFile(folder, $0)?.wasRecorded == true })
        }
    }

    /// Why a listed path is no file, in words that follow "it".
    func objection(to path: FilePath, in root: FilePath, of folder: String) async throws -> String {
        let source = sources.source(SourcePath(root: root, relative: path))
        do {
            if try await !blocking({ try source.isPresent() }) { return "does not exist" }
        } catch let error as SystemError where error.isLink {
            // The way to it leads through a link.
        }
        return await obstacle(to: path, in: root, of: folder) ?? "is no file"
    }

    /// Why a listed file that does not settle never will, in words that follow "it"; `nil` where it may.
    func obstacle(to file: FilePath, in root: FilePath, of folder: String) async -> String? {
        let (rules, sources, now) = (context.settings.presentFolders.map(\.watch), sources, context.clocks.wall())
        let evaluation = try? await blocking {
            PathEvaluation.of(root.appending(file), rules: rules, in: sources, now: now)
        }
        return switch evaluation {
        case .excluded(_, let reason): reason
        case .accepted(let other) where other != folder: "belongs to the folder \(other)"
        default: nil
        }
    }

    /// Whether an ignore file or a link in its path excludes a file.
    func isExcluded(_ file: FilePath, by folder: FolderSettings) async -> Bool {
        let (rule, sources) = (folder.watch, sources)
        return (try? await blocking { PathEvaluation.isExcluded(file, by: rule, in: sources) }) == true
    }

    /// Whether a program writes a file.
    func isOpenForWriting(_ file: FilePath, in root: FilePath) async -> Bool {
        let source = sources[root]
        return (try? await blocking { try Lease.status(at: file, in: source.open()).writer == .present }) == true
    }
}
