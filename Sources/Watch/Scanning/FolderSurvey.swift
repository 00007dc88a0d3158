package import Core
package import Linux

/// Scans the configured folders once, without watching: returns the files that a scan would take, by the same rules.
///
/// A value that remembers the directories that are still to be read, so that it can be used in pieces.
package struct FolderSurvey: Sendable {
    /// The result for one directory.
    package struct Piece: Sendable {
        package var files: [SettledFile] = []
        /// Sources that a release caught, with the number of their asset, under their release names.
        package var caught: [(asset: Int64, path: SourcePath)] = []
        /// Directories or files that could not be examined, in words.
        package var troubles: [String] = []
        /// Whether the configured folder itself is missing or cannot be read.
        package var isFolderAway = false
    }

    private let rules: [WatchRule]
    private let folders: SourceFolders
    private let fileSystems = FileSystems()
    /// Directories to read: the distinct root, and the path below it.
    private var waiting: [(root: FilePath, relative: FilePath)]
    /// Contents of ignore files, by the directory's path.
    private var ignores: [FilePath: Ignore] = [:]
    private let clocks: any Clocks
    /// Also files that the daemon leaves alone at present: for their size, their age, or a marker that is missing.
    private var includesUnready = false

    package init(rules: [WatchRule], in folders: SourceFolders, clocks: any Clocks) {
        self.rules = rules
        self.folders = folders
        self.clocks = clocks
        var roots: [FilePath] = []
        for rule in rules where !roots.contains(rule.path) { roots.append(rule.path) }
        waiting = roots.reversed().map { ($0, FilePath("")) }
    }

    /// Scans only `folder`, with everything below it. Parts of it in configured folders are taken by their rules.
    /// Ignore files above it count as well, except for `folder` itself. Waits for the disk.
    ///
    /// - Parameter includesUnready: Also returns files that the daemon leaves alone at present: for their size, their age,
    ///   or a marker that is missing.
    package init(
        rules: [WatchRule], in folders: SourceFolders, below folder: FilePath, clocks: any Clocks,
        includesUnready: Bool = false
    ) {
        self.init(rules: rules, in: folders, clocks: clocks)
        self.includesUnready = includesUnready
        waiting = waiting.compactMap { root, _ in
            // A configured folder below it is scanned completely.
            if root == folder || root.relative(to: folder) != nil { return (root, FilePath("")) }
            return folder.relative(to: root).map { (root, $0) }
        }
        for (root, relative) in waiting where !relative.isEmpty {
            var above = relative
            while !above.isEmpty {
                above = above.parent
                let directory = root.appending(above)
                // If it cannot be read, the daemon reports it when it scans there.
                guard let stream = try? folders[root].open().stream(above) else { continue }
                let (ignore, _) = Ignore.read(in: stream, named: directory)
                if ignore != .nothing { ignores[directory] = ignore }
            }
        }
    }

    /// Reads the next directory. Waits for the disk.
    ///
    /// - Returns: `nil` when all are read.
    package mutating func next() -> Piece? {
        guard let (path, relative) = waiting.popLast() else { return nil }
        var piece = Piece()
        let (root, compiled) = prepared(path)
        var below: [FilePath] = []
        do {
            let top = try root.folder.open()
            let stream = try top.stream(relative)
            if relative.isEmpty, let missing = try root.mountCheck.missing(in: top) {
                piece.troubles.append("folder \(path.display) is absent: \(missing)")
                piece.isFolderAway = true
                return piece
            }
            let ignored = readIgnores(root, relative, stream, &piece)
            let device = try stream.status().device
            let fileSystem = fileSystems.identity(of: stream, device: device)
            while try stream.next({ name, kind in
                examine(
                    name, kind, stream, root, compiled, relative, ignored, (device, fileSystem), &piece, &below)
            }) {}
        } catch {
            // A directory that vanished between the listing and its turn contains no files.
            if relative.isEmpty || !error.isMissing { piece.troubles.append("\(error)") }
            piece.isFolderAway = relative.isEmpty
        }
        waiting += below.sorted(by: { $1.bytes.lexicographicallyPrecedes($0.bytes) }).map { (path, $0) }
        return piece
    }

    /// The reason why no file of a folder is taken although the folder can be read; `nil` when there is none, or when
    /// it cannot be read. Waits for the disk.
    package static func obstacle(in folder: SourceFolder) -> String? {
        guard let stream = try? folder.open().stream("") else { return nil }
        return Ignore.read(in: stream, named: folder.path).trouble
    }

    private func examine(
        _ name: UnsafeBufferPointer<UInt8>, _ kind: FolderStream.Kind, _ stream: FolderStream, _ root: Root,
        _ compiled: [CompiledRule], _ relative: FilePath, _ ignored: IgnoreChain,
        _ device: (number: UInt64, system: FileSystemIdentity?),
        _ piece: inout Piece, _ below: inout [FilePath]
    ) {
        guard kind != .other else { return }
        let path = relative.appending(FilePath(fromKernel: name))
        if kind == .folder {
            if root.isRecursive, !TemporaryNames.contains(name), !ignored.ignores(name, isFolder: true) {
                below.append(path)
            }
            return
        }
        if let (asset, _) = ReleaseToken.parse(FilePath(fromKernel: name)) {
            piece.caught.append((asset, SourcePath(root: root.path, relative: path)))
            return
        }
        let contenders = root.matchers.contenders(in: relative, of: root, rules: compiled)
        let isTaken = contenders.hasMatch(for: name)
        guard isTaken || kind == .unknown, !ignored.ignores(name) || kind == .unknown else { return }
        do {
            guard let status = try stream.status(at: name) else { return }
            if status.isDirectory {
                if root.isRecursive, !TemporaryNames.contains(name), !ignored.ignores(name, isFolder: true) {
                    below.append(path)
                }
                return
            }
            guard status.isRegular, let winner = contenders.firstMatch(for: name, size: status.size),
                !ignored.ignores(name)
            else { return }
            let settings = compiled[winner].settings
            // Files that the daemon leaves alone, or waits for, were never sent.
            if !includesUnready, settings.limits.objection(to: status, now: clocks.wall()) != nil { return }
            if !includesUnready, let marker = settings.marker,
                try !stream.has(marker.marker(of: FilePath(fromKernel: name)))
            {
                return
            }
            let system =
                status.device == device.number
                ? device.system : try fileSystems.identity(of: root.folder.open(), at: path, device: status.device)
            piece.files.append(
                SettledFile(
                    folder: settings.name, root: settings.path, relative: path, status: status,
                    identity: FileIdentity(status, folder: settings.name, relative: path, on: system),
                    settledBy: .quiet))
        } catch { piece.troubles.append("\(error)") }
    }

    private mutating func readIgnores(
        _ root: Root, _ relative: FilePath, _ stream: FolderStream, _ piece: inout Piece
    ) -> IgnoreChain {
        let directory = root.path.appending(relative)
        let (ignore, trouble) = Ignore.read(in: stream, named: directory)
        if let trouble { piece.troubles.append(trouble) }
        if ignore != .nothing { ignores[directory] = ignore }
        var chain = IgnoreChain()
        var (at, below): (FilePath, FilePath) = (relative, "")
        while true {
            if let ignore = ignores[root.path.appending(at)] { chain.add(ignore, below: below) }
            if at.isEmpty { return chain }
            below = at.name.appending(below)
            at = at.parent
        }
    }

    /// The root with its matchers. Made for each directory, since their chain of classes is no value; it is small.
    private func prepared(_ path: FilePath) -> (Root, [CompiledRule]) {
        let compiled = rules.map { CompiledRule($0, skipsExisting: false) }
        var paths: [FilePath] = []
        for rule in rules where !paths.contains(rule.path) { paths.append(rule.path) }
        let roots = paths.map { path in
            let own = rules.indices.filter { rules[$0].path == path }
            // If it cannot be opened, it keeps its own path; the scan reports it when it gets there.
            let real = (try? folders[path].open())?.realPath
            return Root(
                folders[path], rules: own, of: compiled, real: real, nextCheck: MonotonicTime(nanoseconds: 0))
        }
        let root = roots.first { $0.path == path } ?? roots[0]
        root.match(among: roots, rules: compiled)
        return (root, compiled)
    }
}
