internal import API
internal import Config
internal import Core
internal import Linux
internal import Media
internal import Staging
internal import Store

/// Shows what is in a video or a photo, for the web page: one small picture of each file, made when it is asked for.
///
/// Nothing else depends on it: it makes one picture at a time with the lowest priority, none while the machine is to
/// rest, and keeps what it has made in a folder with a limited size.
struct Thumbnails: Sendable {
    private let context: Context
    private let stateHealth: StateHealth
    private let finder: UploadFinder
    private let rest: RestCheck
    private let locator: SourceLocator
    let cache: ThumbnailCache
    private let queue = ThumbnailQueue()
    /// Reads of a disk that does not answer do not hold up the daemon's threads.
    private let disk: SlowDisk
    private let limit: Duration

    /// A file without a picture is not tried again for this long: another ffmpeg may read it then.
    private static let remembered = Duration.seconds(86_400)
    /// The same for one that reached a limit, perhaps because the machine was busy.
    private static let overdueRemembered = Duration.seconds(600)
    /// Time between two looks at policy while a picture is made.
    private static let policyCheck = Duration.milliseconds(500)
    /// How exactly the last use of a picture is known: for less nothing is written.
    private static let useStep = Duration.seconds(86_400)

    /// - Parameter limit: ffmpeg is killed after this long.
    init(
        context: Context, stateHealth: StateHealth, finder: UploadFinder, scheduler: Scheduler, locator: SourceLocator,
        probe: BusyProbe = BusyProbe(), limit: Duration = ThumbnailMaker.usualLimit
    ) {
        (self.context, self.stateHealth, self.finder) = (context, stateHealth, finder)
        self.locator = locator
        rest = RestCheck(context: context, scheduler: scheduler, probe: probe)
        cache = ThumbnailCache(in: context.settings.state)
        self.limit = limit
        disk = SlowDisk(timeout: limit + .seconds(10))
    }

    /// The picture of an upload's file.
    ///
    /// - Parameters:
    ///   - reference: As for `show`.
    ///   - hasLeft: Whether the client has left. Asked several times a second.
    /// - Throws: ``Refusal`` with the reason why there is none; `unavailable` if there may be one soon.
    func thumbnail(of reference: String, hasLeft: @escaping @Sendable () -> Bool) async throws -> ThumbnailView {
        guard context.settings.control.thumbnails else {
            throw Refusal(.notFound, "no picture: `control: {thumbnails: false}` is set")
        }
        let row = try await finder.find(reference)
        let asset = row.asset
        @Sendable func refusal(_ reason: String, isForNow: Bool) -> Refusal {
            Refusal(
                isForNow ? .unavailable : .notFound, "no picture\(isForNow ? " now" : ""): \(reason)",
                id: row.upload.id)
        }
        guard Self.mayHavePicture(asset.identity.relative.name) else {
            throw refusal("the name is not that of a video or a photo", isForNow: false)
        }
        let key = ThumbnailCache.key(
            of: asset.identity, root: asset.root, changed: asset.changed, sha256: asset.sha256)
        if let known = try await known(key) { return try known.get(refusal) }
        do {
            return try await queue.run(unless: hasLeft) { () throws -> ThumbnailView in
                // Another upload of the same file may have come first.
                if let known = try await known(key) { return try known.get(refusal) }
                if let hold = await rest.hold(readsPower: true) {
                    throw refusal("none is made while uploads are held: \(hold.text)", isForNow: true)
                }
                return try await make(asset, key, hasLeft: hasLeft).get(refusal)
            }
        } catch is ThumbnailQueue.LeftError {
            throw refusal("the client has left", isForNow: true)
        } catch is ThumbnailQueue.FullError {
            throw Refusal(
                .unavailable, "too many pictures are asked for at once: ask again in some seconds", id: row.upload.id)
        }
    }

    /// The kinds that ffmpeg may know. A drawing (SVG) is a text with references, which it does not read.
    private static func mayHavePicture(_ name: FilePath) -> Bool {
        let type = MediaType.of(name)
        return type.hasPrefix("video/") || type == "application/mxf"
            || type.hasPrefix("image/") && type != "image/svg+xml"
    }

    // MARK: Results

    private enum Result {
        case picture(ThumbnailView)
        case none(String)
        /// For a reason that says nothing about the file, and may soon be over.
        case noneNow(String)

        func get(_ refusal: (String, Bool) -> Refusal) throws(Refusal) -> ThumbnailView {
            switch self {
            case .picture(let view): return view
            case .none(let reason): throw refusal(reason, false)
            case .noneNow(let reason): throw refusal(reason, true)
            }
        }
    }

    /// The stored result; `nil` where there is none, or it is to be tried again.
    private func known(_ key: String) async throws -> Result? {
        guard let found = try await blocking({ [cache] in cache.find(key) }) else { return nil }
        switch found.entry {
        case .picture(let bytes):
            if !isRecent(found, Self.useStep) {
                let now = context.clocks.wall()
                try await blocking { [cache] in cache.noteUse(of: key, at: now) }
            }
            return .picture(ThumbnailView(bytes: bytes, tag: found.tag))
        case .none(let reason):
            return isRecent(found, Self.remembered) ? .none("\(reason); it is tried again a day later") : nil
        case .overdue(let reason):
            return isRecent(found, Self.overdueRemembered)
                ? .none("\(reason); it is tried again ten minutes later") : nil
        }
    }

    private func isRecent(_ found: ThumbnailCache.Found, _ limit: Duration) -> Bool {
        let age = Duration.milliseconds(context.clocks.wall().milliseconds - found.modified.milliseconds)
        // Negative after the clock was set back.
        return age >= .zero && age < limit
    }

    // MARK: Making

    private func make(
        _ asset: AssetRecord, _ key: String, hasLeft: @escaping @Sendable () -> Bool
    ) async throws -> Result {
        guard Confinement.Support.here.holdsDecoders else { return .none(ThumbnailMaker.obstacle() ?? "") }
        guard let maker = ThumbnailMaker.installed(limit: limit) else { return .none("ffmpeg is not installed") }
        let (copy, source) = (context.staging.path(asset.stagedName), locator.source(of: asset))
        // Set when policy holds uploads in the meantime, or the daemon stops.
        let stop = StopFlag()
        let watch = Task {
            while !stop.isSet {
                try await Alarms.shared.sleep(for: Self.policyCheck)
                if await rest.hold(readsPower: false) != nil { stop.set() }
            }
        }
        defer { watch.cancel() }
        let outcome: Outcome
        do {
            outcome = try await withTaskCancellationHandler {
                try await disk.run { pulse in
                    guard let file = Self.open(asset, copy: copy, source: source) else {
                        return (try? locator.isAway(asset)) == true ? .away : .gone
                    }
                    do throws(ThumbnailMaker.Failure) {
                        return .picture(try maker.picture(of: file) { stop.isSet || hasLeft() })
                    } catch {
                        return .failed(error)
                    }
                }
            } onCancel: {
                stop.set()
            }
        } catch is SlowDisk.TimeoutError {
            return .noneNow("the disk of the file does not answer")
        }
        switch outcome {
        case .away: return .noneNow("the disk of the file is not there")
        case .gone: return .none("neither the staged copy nor the unchanged source is there any more")
        case .failed(.unavailable(let reason)): return .none(reason)
        case .failed(.stopped): return .noneNow("ffmpeg was stopped: the client has left, or uploads are held")
        case .failed(.overdue(let reason)): return await store(.overdue(reason), key)
        case .failed(let failure): return await store(.none(failure.text), key)
        case .picture(let bytes): return await store(.picture(bytes), key)
        }
    }

    private enum Outcome: Sendable {
        case picture([UInt8])
        case failed(ThumbnailMaker.Failure)
        case gone
        case away
    }

    /// The staged copy; else the source, if it is the version that was recorded. Waits for the disk.
    private static func open(_ asset: AssetRecord, copy: FilePath, source: SourceFile) -> Descriptor? {
        // What cannot be opened is not there, for a picture.
        if let file = try? Descriptor.open(copy, for: .reading),
            let status = try? FileStatus(of: file, named: copy), status.isRegular
        {
            return file
        }
        let shown = source.path.shown
        guard asset.stagingMode != .received, let file = try? source.open(),
            let status = try? FileStatus(of: file, named: shown), status.isRegular,
            status.size == asset.size, status.modified == asset.identity.modified, status.changed == asset.changed,
            asset.identity.inode == nil || asset.identity.inode == status.inode
        else { return nil }
        return file
    }

    private func store(_ entry: ThumbnailCache.Entry, _ key: String) async -> Result {
        if !stateHealth.isFailing, context.settings.control.thumbnails {
            do {
                _ = try await blocking { [cache] in try cache.store(entry, as: key) }
            } catch {
                context.log.debug("a thumbnail was not stored", ["reason": "\(error)"])
            }
        }
        switch entry {
        case .picture(let bytes): return .picture(ThumbnailView(bytes: bytes, tag: ThumbnailCache.tag(of: entry)))
        case .none(let reason), .overdue(let reason): return .none(reason)
        }
    }
}
