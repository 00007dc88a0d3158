internal import API
internal import Config
internal import Core
internal import Linux
internal import Staging
internal import Store

/// Uploads bytes that a person or a program hands over without a file.
struct ByteReceiver: Sendable {
    let context: Context
    let lifecycle: DaemonPhase
    let reception: Reception
    let views: UploadViews

    func receive(
        _ request: ReceiveRequest, _ next: @escaping @Sendable () async throws -> [UInt8]?
    ) async throws -> UploadsReply {
        try lifecycle.requireReady()
        let checks = RequestChecks(configuration: context.configuration.value)
        try checks.checkOptions(to: request.to, key: request.key, context: request.context)
        if let problem = Self.problem(ofName: request.name) { throw Refusal(.badRequest, "`name` \(problem)") }
        let to = try destinations(for: request)
        let url = try checks.checkRequests(
            request.headers, url: request.url, uploadURL: request.uploadURL, for: to)
        let ids = try await reception.receive(request, url, to: to, next)
        return try await views.reply(ids)
    }

    private func destinations(for request: ReceiveRequest) throws -> [String] {
        var named: Set<String> = []
        let to = request.to.filter { named.insert($0).inserted }
        if !to.isEmpty { return to }
        let known = context.settings.destinations.map(\.name)
        guard let only = known.first, known.count == 1 else {
            throw Refusal(
                .badRequest,
                "no folder determines the destination of these bytes: name one (`to`): "
                    + known.joined(separator: ", "))
        }
        return [only]
    }

    /// - Returns: `nil` for a name that a file may have.
    private static func problem(ofName name: String) -> String? {
        if name.isEmpty || name.utf8.count > 255 { return "needs 1 to 255 bytes" }
        if name == "." || name == ".." || name.contains("/") { return "must be a file name without a folder" }
        return printable(name) == name ? nil : "contains a control character"
    }
}

/// Receives the bytes of one file into the staging folder, and records it when it is complete and durable.
///
/// The asset is *staged* from its creation: it has no source, and later steps treat it like an asset whose source has
/// been removed. Nothing is acknowledged before the transaction at the end, and a start removes what is left of an
/// unfinished reception.
struct Reception: Sendable {
    let context: Context
    let making: LiveStaging
    let mediaReading: MediaReading
    let counters: Counters
    let stager: Stager
    let intake: Intake

    /// Space is requested in steps of at least this.
    private static let step: Int64 = 16 << 20

    /// - Returns: The ids of its uploads.
    func receive(
        _ request: ReceiveRequest, _ url: GivenURL?, to destinations: [String],
        _ next: @Sendable () async throws -> [UInt8]?
    ) async throws -> [String] {
        var draft = arrival(of: request, url, to: destinations, size: 0)
        let isKeyOnce = request.isKeyOnce
        try refuseDuplicateKey(
            try await context.store.read { [draft] tx in
                try tx.uploads.keyHolder(draft.orders, orEnded: isKeyOnce)
            }, orEnded: isKeyOnce)
        try await stager.beginReception()
        var reservation = StagingBudget.Reservation()
        do {
            try await stager.change(&reservation, arrived: 0, more: request.size ?? 0, of: request.name)
            let (number, ids) = try await context.store.write { [draft] tx in
                try tx.receptions.begin(uploads: draft.orders.count)
            }
            CrashPoint.reached("receiving")
            making.begin(number, draft.file.path.shown, .receiving, total: request.size ?? 0)
            defer { making.end(number) }
            do {
                let copy = try await copy(number, ids, &draft, &reservation, next)
                try await record(draft, number, ids, copy, isKeyOnce: isKeyOnce)
            } catch {
                await abandon(number)
                throw error
            }
            await stager.endReception(reservation)
            return ids
        } catch {
            await stager.endReception(reservation)
            throw refusal(error)
        }
    }

    /// Also when the task is cancelled: the next start removes the copy, which has no use until then.
    private func abandon(_ number: Int64) async {
        let staging = context.staging
        do {
            try await blocking { try staging.remove(FilePath("\(number)")) }
            try await context.store.write { try $0.receptions.end(number) }
        } catch {
            context.log.warning(
                "cannot remove a file that was not accepted; the next start removes it",
                ["copy": "\(number)", "reason": "\(error)"])
        }
    }

    private func copy(
        _ number: Int64, _ ids: [String], _ draft: inout NewAsset, _ reservation: inout StagingBudget.Reservation,
        _ next: @Sendable () async throws -> [UInt8]?
    ) async throws -> StagingArea.FreshCopy {
        let (staging, name) = (context.staging, FilePath("\(number)"))
        let incoming = try await blocking { try staging.receive(name) }
        var arrived: Int64 = 0
        while let bytes = try await next() {
            let count = Int64(bytes.count)
            if arrived + count > reservation.size {
                let name = draft.file.relative.display
                // If the staging folder is nearly full, only the present bytes.
                do {
                    try await stager.change(&reservation, arrived: arrived, more: max(count, Self.step), of: name)
                } catch {
                    guard let refusal = error as? Refusal, refusal.code == .noRoom, count < Self.step else {
                        throw error
                    }
                    try await stager.change(&reservation, arrived: arrived, more: count, of: name)
                }
            }
            try await blocking { try incoming.write(bytes) }
            arrived += count
            making.copied(number, arrived)
        }
        draft.file.status.size = arrived
        draft.file.identity.size = arrived
        let (file, orders) = (draft.file, draft.orders)
        return try await blocking {
            let copy = try incoming.finish { _ in
                CopyOrigin(
                    file.identity, root: file.root, changed: file.status.changed,
                    uploads: zip(orders, ids).map { order, id in
                        CopyOrigin.Upload(
                            id: id, destination: order.destination, name: order.name, key: order.key,
                            context: order.context, url: order.url?.stored)
                    })
            }
            try staging.publish([copy])
            return copy
        }
    }

    private func record(
        _ arrival: NewAsset, _ number: Int64, _ ids: [String], _ copy: StagingArea.FreshCopy, isKeyOnce: Bool
    ) async throws {
        let (reading, place) = (mediaReading, context.staging.path(FilePath("\(number)")))
        let leaf = arrival.file.relative
        let facts = try await blocking { reading.facts(of: nil, orOf: place, named: leaf, probes: false) }
        try refuseDuplicateKey(
            try await context.store.write {
                try $0.receptions.record(
                    arrival, as: number, uploads: ids, sha256: copy.sha256, facts: facts, isKeyOnce: isKeyOnce)
            }, orEnded: isKeyOnce)
        CrashPoint.reached("taken")
        counters.add(.files, [arrival.file.folder])
        context.log.info(
            "received and recorded",
            ["path": arrival.file.path.display, "size": "\(copy.size)", "sha256": hexadecimal(copy.sha256)])
    }

    private func refuseDuplicateKey(_ holder: String?, orEnded: Bool) throws {
        guard let holder else { return }
        let text = orEnded ? "upload \(holder) has the same key" : "upload \(holder) with the same key is in progress"
        throw Refusal(.conflict, text, id: holder)
    }

    private func arrival(
        of request: ReceiveRequest, _ url: GivenURL?, to destinations: [String], size: Int64
    ) -> NewAsset {
        let folder = FolderSettings.received
        let now = context.clocks.wall().milliseconds * 1_000_000
        let (root, relative) = (folder.watch.path, FilePath(request.name))
        let status = FileStatus(
            device: 0, inode: 0, size: size, modified: now, changed: now, born: nil, mode: 0o100600)
        let identity = FileIdentity(
            folder: folder.watch.name, relative: relative, size: size, modified: now, inode: nil, born: nil,
            fileSystem: nil)
        return intake.assets.arrival(
            of: SettledFile(
                folder: folder.watch.name, root: root, relative: relative, status: status, identity: identity,
                settledBy: .added), folder, to: destinations.map { UploadRoute(to: $0) }, key: request.key,
            context: request.context,
            headers: request.headers, url: url)
    }

    /// The error of the disk, as a refusal that a person can act on.
    private func refusal(_ error: any Error) -> any Error {
        switch error {
        case StagingError.full(let error):
            Refusal(.noRoom, "not enough space in \(context.staging.folder.display): \(error)")
        case StagingError.tooLarge(let error):
            Refusal(.noRoom, "the staging folder cannot hold a file of this size: \(error)")
        case StagingError.broken(let error):
            Refusal(.unavailable, "the staging folder does not work: \(error); `sluice doctor` examines it")
        default: error
        }
    }
}
