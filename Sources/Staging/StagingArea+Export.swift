package import Core
internal import Glibc
package import Linux

/// A command that makes the file to upload from a source.
package struct Export: Sendable {
    package var command: CommandWords
    /// The name of its output.
    package var output: FilePath
    package var timeout: Duration
    /// The minimum size of its output.
    package var minSize: Int64
    /// The values for its arguments besides input and output.
    package var folder: String
    package var relative: FilePath
    /// Hides secrets in what it prints.
    package var cover: @Sendable (String) -> String
    /// Opens the part of the network that it gets while it runs; `nil`: it opens sockets of its own.
    package var network: (@Sendable () throws(SystemError) -> ProgramNetwork)?

    package init(
        command: CommandWords, output: FilePath, timeout: Duration, minSize: Int64, folder: String, relative: FilePath,
        cover: @escaping @Sendable (String) -> String = { $0 },
        network: (@Sendable () throws(SystemError) -> ProgramNetwork)? = nil
    ) {
        self.cover = cover
        self.network = network
        self.command = command
        self.output = output
        self.timeout = timeout
        self.minSize = minSize
        self.folder = folder
        self.relative = relative
    }

    fileprivate func words(input: FilePath, output: FilePath) -> [[UInt8]] {
        command.filled { name in
            switch name {
            case .input: input.bytes
            case .output: output.bytes
            case .folder: Array(folder.utf8)
            case .relative: relative.bytes
            case .name: relative.name.bytes
            case .stem: relative.stem.bytes
            case .ext: relative.fileExtension?.bytes ?? []
            }
        }
    }

    fileprivate var program: String { command.source.first ?? "" }
}

extension StagingArea {
    /// Runs a command that makes a partial file from a source, in a scratch folder of its own: ``publish(_:)`` follows.
    ///
    /// The source is checked before and after, as for a copy; the output is digested.
    ///
    /// - Parameters:
    ///   - digestsSource: Whether the source's own digest is needed too, which is one more reading of it.
    ///   - requestedDigests: Digests of the parts of the output that a destination will need.
    ///   - progress: Called with the progress that the command reports.
    package func export(
        _ wanted: CopyRequest, as name: FilePath, _ export: Export, origin: CopyOrigin? = nil, digestsSource: Bool,
        requestedDigests: (_ size: Int64) -> [PartDigests.RequestedDigest] = { _ in [] },
        progress: (ExportProgress) -> Void = { _ in }, isStopped: @escaping () -> Bool = { false }
    ) throws(StagingError) -> (copy: FreshCopy, sourceSHA256: [UInt8]?) {
        do {
            let made = try make(wanted, as: name, export, origin, digestsSource, requestedDigests, progress, isStopped)
            try? Files.removeTree(scratch(name))
            return made
        } catch {
            // The first error is the one worth reporting; remaining files are swept at the next start.
            try? Files.removeTree(scratch(name))
            try? Files.removeIfPresent(partial(name))
            throw error
        }
    }

    private func make(
        _ wanted: CopyRequest, as name: FilePath, _ export: Export, _ origin: CopyOrigin?, _ digestsSource: Bool,
        _ requestedDigests: (Int64) -> [PartDigests.RequestedDigest], _ progress: (ExportProgress) -> Void,
        _ isStopped: @escaping () -> Bool
    ) throws(StagingError) -> (copy: FreshCopy, sourceSHA256: [UInt8]?) {
        let from = try open(wanted)
        let scratch = scratch(name)
        try writing { () throws(SystemError) in
            try Files.removeTree(scratch)
            try Files.makeFolders(scratch, mode: 0o700)
        }
        let input = try linkForCommand(
            from, named: wanted.source.name, in: scratch.appending(export.output == "input" ? "source" : "input"))
        let output = scratch.appending(export.output)
        let result = try run(export, input, output, scratch, progress, isStopped)
        if result.ending == .stopped { throw .stopped(wanted.shown) }
        if result.ending == .status(0) { try refuseLink(output, export) }
        // Whatever the result: a failure is not reported for a source that changed or vanished.
        try verifyUnchanged(wanted, from)
        try judge(result, export)
        let pace = CopyProgress(isStopped: isStopped)
        var sourceSHA256: [UInt8]?
        if digestsSource {
            sourceSHA256 = try DigestingCopier.digest(
                of: from, named: wanted.shown, size: wanted.identity.size, pace: pace
            ).sha256
        }
        let made = try check(output, export)
        let size = try reading(output) { () throws(SystemError) in try FileStatus(of: made, named: output).size }
        let content = try DigestingCopier.digest(
            of: made, named: output, size: size, requestedDigests: requestedDigests(size), pace: pace)
        guard content.bytes == size else {
            throw .commandFailed(
                code: .exportChanges,
                "`\(export.program)` has ended, and \(export.output.display) still changes: a program that it "
                    + "started continues to write")
        }
        try verifyUnchanged(wanted, from)
        try writing { () throws(SystemError) in
            try made.setMode(0o600, named: output)
            if var origin {
                origin.sha256 = hexadecimal(content.sha256)
                origin.staged = size
                origin.source = sourceSHA256.map(hexadecimal)
                origin.write(to: made, named: output)
            }
            try Files.removeIfPresent(partial(name))
            try Files.rename(output, to: partial(name))
        }
        made.startFlushing(from: 0, count: 0)
        from.forget(from: 0, count: 0)
        CrashPoint.reached("copied")
        return (FreshCopy(name, content.sha256, content.parts, size: size, made), sourceSHA256)
    }

    /// The source as the command sees it.
    private struct Input {
        let path: FilePath
        /// Number of the descriptor of the open source.
        let number: CInt
    }

    /// Makes a link with the source's own name to the checked open file, which the command inherits: the file at the
    /// source's path by then does not matter. The link is in a folder of its own, since the output may have the same
    /// name.
    private func linkForCommand(
        _ source: borrowing Descriptor, named name: FilePath, in folder: FilePath
    ) throws(StagingError) -> Input {
        return try source.withNumber { number throws(StagingError) in
            try writing { () throws(SystemError) in
                try Files.makeFolders(folder, mode: 0o700)
                try Files.makeLink(folder.appending(name), to: FilePath("/proc/self/fd/\(number)"))
            }
            return Input(path: folder.appending(name), number: number)
        }
    }

    private func run(
        _ export: Export, _ input: Input, _ output: FilePath, _ scratch: FilePath,
        _ progress: (ExportProgress) -> Void, _ isStopped: () -> Bool
    ) throws(StagingError) -> Program.Result {
        let network: ProgramNetwork?
        do throws(SystemError) { network = try export.network?() } catch {
            throw .commandEnded("the proxy for connections of `\(export.program)` cannot listen: \(error.reason)")
        }
        let program = Program(
            words: export.words(input: input.path, output: output),
            environment: Program.plainEnvironment + ["TMPDIR=\(scratch.text ?? folder.display)"]
                + (network?.environment ?? []), folder: scratch,
            passedDescriptor: input.number, confinement: network?.confinement)
        var known = ExportProgress()
        do throws(SystemError) {
            var result = try program.run(
                within: export.timeout,
                line: { line, _ in
                    var next = known
                    next.parse(line)
                    if next != known {
                        known = next
                        progress(next)
                    }
                }, isStopped: isStopped)
            if let network { result.errorOutput = network.cover(result.errorOutput) }
            result.errorOutput = export.cover(result.errorOutput)
            return result
        } catch {
            switch error.code {
            case ENOENT, ENOTDIR, EACCES, EPERM, ENOEXEC, ELOOP, ENAMETOOLONG, E2BIG:
                throw .noCommand(
                    "`\(export.program)` cannot be started: \(error.reason)", isOfAll: error.code != E2BIG)
            default: throw .commandEnded("`\(export.program)` cannot be started now: \(error.reason)")
            }
        }
    }

    /// With more free space than this, the command did not fail because of a full staging folder, unless its file is
    /// larger still: then the next attempt finds it full.
    private static let littleSpace: Int64 = 256 << 20

    private func judge(_ result: Program.Result, _ export: Export) throws(StagingError) {
        let said = Self.lastLines(result.errorOutput)
        func failed(_ code: Failure.Code, _ how: String) -> StagingError {
            // The message does not name the disk: a full one is no fault of the file, and another disk is not ours.
            let complains =
                result.errorOutput.contains("No space left on device")
                || result.errorOutput.contains("Disk quota exceeded")
            if complains, let free = try? free(), free < Self.littleSpace {
                return .full(SystemError(call: "export", subject: folder.display, code: ENOSPC))
            }
            return .commandFailed(code: code, "`\(export.program)` \(how)" + (said.isEmpty ? "" : "; it said: \(said)"))
        }
        switch result.ending {
        case .status(0), .stopped: return
        case .status(let status): throw failed(.exportFailed, "ended with status \(status)")
        case .overdue: throw failed(.exportTimeout, "took longer than export.timeout allows")
        case .signal(let number) where [SIGKILL, SIGTERM, SIGINT, SIGHUP].contains(number):
            throw .commandEnded("`\(export.program)` was ended by signal \(number), as when memory runs out")
        case .signal(let number): throw failed(.exportFailed, "crashed with signal \(number)")
        }
    }

    /// The last three lines, at most 600 bytes.
    private static func lastLines(_ text: String) -> String {
        let lines = text.split(whereSeparator: \.isNewline).suffix(3).map { $0.trimmed }
        return String(lines.filter { !$0.isEmpty }.joined(separator: " | ").suffix(600))
    }

    /// Refuses an output that is another name of the source, or of any file: others could change what was digested.
    /// Must be called before the source is checked, whose ctime such a link changes: it would settle and be linked
    /// again, for ever.
    private func refuseLink(_ output: FilePath, _ export: Export) throws(StagingError) {
        // A file that cannot be opened is found, and reported, by the check that follows.
        guard let made = try? Descriptor.open(output, for: .reading),
            let links = try? Files.links(of: made, named: output), links > 1,
            let status = try? FileStatus(of: made, named: output), status.isRegular
        else { return }
        throw .commandFailed(
            code: .exportNoOutput,
            "`\(export.program)` made \(export.output.display) a hard link of another file: it must create its own file"
        )
    }

    private func openOutput(
        _ output: FilePath, else refused: (SystemError) -> StagingError
    ) throws(StagingError) -> Descriptor {
        do throws(SystemError) { return try Descriptor.open(output, for: .reading) } catch { throw refused(error) }
    }

    /// Opens the output, if it is valid: a file of its own that is not empty.
    private func check(_ output: FilePath, _ export: Export) throws(StagingError) -> Descriptor {
        func refused(_ problem: String) -> StagingError {
            .commandFailed(
                code: .exportNoOutput,
                "`\(export.program)` ended with status 0, but \(export.output.display) \(problem)")
        }
        let made = try openOutput(output) { error in
            refused(
                error.isMissing
                    ? "is not there: does it write to `{output}`?"
                    : error.isLink
                        ? "is a symbolic link: it must write a file (`{input}` is a link, which `cp -a` and `mv` copy as a link: `cp -L` copies the file)"
                        : "cannot be opened: \(error.reason)")
        }
        let status = try reading(output) { () throws(SystemError) in try FileStatus(of: made, named: output) }
        guard status.isRegular else { throw refused("is not a file") }
        guard status.size >= export.minSize else {
            throw refused(
                "has \(shownBytes(status.size)), and the minimum is \(shownBytes(export.minSize)) (export.min_size)")
        }
        return made
    }
}
