internal import Core
internal import Digests
internal import Transport

/// `create_with_bytes`: whether the bytes of a small file are sent with its creation (tus 1.0, "Creation With Upload").
enum CreateWithBytesPolicy: String, Sendable, CaseIterable {
    /// To a server that answers a repeated creation with the same upload, as `sluice receive` does.
    case auto
    case always = "true"
    case never = "false"
}

extension TusDialect {
    func createsWithBytes(_ order: UploadOrder, _ checkpoint: OffsetCheckpoint) async throws -> Bool {
        guard settings.createWithBytes != .never, !isGiven(order), !isProbing(checkpoint),
            !server.creationBodies.isRefused, !checkpoint.tus.isCreationBodyRefused,
            let announced = try await capabilities.current(self), announced.offers(.creation),
            announced.offers(.creationWithUpload), announced.maxSize.map({ order.file.size <= $0 }) ?? true
        else { return false }
        // A body with a checksum is for PATCH.
        if let wanted = settings.checksum, announced.checksums.contains(wanted.rawValue) { return false }
        return settings.createWithBytes == .always || announced.repeatsCreations
    }

    func create(
        carrying order: UploadOrder, _ checkpoint: inout OffsetCheckpoint, past digest: SentDigest,
        _ sent: @escaping @Sendable (Int64) -> Void
    ) async -> CreationResult {
        var carried = AuthorizedClient.Carried(unsent: CancellationError())
        do {
            try awaitNextCreation(checkpoint)
            // The answer was read just before, and is not asked for again.
            let announced = try await capabilities.current(self)
            let answer: AuthorizedClient.Answer? = try await server.creations.make(
                client, after: checkpoint.orphans ?? 0
            ) {
                carried = await client.sendBody(creation(of: order, checkpoint, past: digest), context, sent: sent)
                let answer = try carried.result.get()
                switch verdict(.POST, answer.response) {
                case .success:
                    let url = try requests.uploadAddress(answer, of: endpoint, log: log)
                    try requireOwn(url, answer.response, order)
                    checkpoint.url = url
                    checkpoint.server = WebAddress(endpoint).origin
                    UploadExpiry(answer.response, now: client.clocks.wall())?.store(in: &checkpoint)
                    checkpoint.tus.id = settings.preset?.idHeader.flatMap { answer.response.headers[$0] }
                    return answer
                // The creation without bytes that follows shows whether it is about the bytes. It also follows
                // redirects, and reads a renewed secret.
                case .moved, .lessMetadata, .stop(.failUpload), .stop(.misconfigured), .stop(.authenticate): return nil
                case .stop(let remedy): throw refused("creation", answer.response, remedy)
                default: throw refused("creation", answer.response, .failUpload)
                }
            }
            guard let answer else {
                let refusal = try carried.result.get().response
                if [307, 308, 405, 411, 413, 415].contains(refusal.status) {
                    (server.creationBodies.isRefused, checkpoint.tus.isCreationBodyRefused) = (true, true)
                } else if refusal.status == 403 || verdict(.POST, refusal) == .stop(.misconfigured) {
                    // Every attempt gets this answer until a person has corrected something. The bytes are not sent
                    // with each of them.
                    checkpoint.tus.isCreationBodyRefused = true
                }
                return CreationResult(answer: .declined, delivery: carried.delivery)
            }
            let offset = offset(in: answer.response)
            return CreationResult(
                answer: .created(
                    CreationResult.Created(
                        offset: offset,
                        isConfirmed: announced?.repeatsCreations == true && offset == order.file.size)),
                delivery: carried.delivery)
        } catch {
            if let error = error as? UploadError { noteNextCreation(error, &checkpoint) }
            return CreationResult(answer: .failed(error), delivery: carried.delivery)
        }
    }

    private func creation(of order: UploadOrder, _ checkpoint: OffsetCheckpoint, past digest: SentDigest) -> Request {
        let metadata = TusMetadata.header(
            order, isASCII: settings.isASCII, titleKey: settings.preset?.titleKey, isMinimal: false,
            isRepeat: checkpoint.wasReuploaded)
        return Request(
            "POST", endpoint,
            headers: [
                Self.version, ("Upload-Length", "\(order.file.size)"), ("Upload-Metadata", metadata), Self.bytesType,
            ], body: .file(order.file.place, offset: 0, count: order.file.size, check: digest),
            limits: settings.limits.sending)
    }

    func forgetCreation(_ checkpoint: inout OffsetCheckpoint) {
        (checkpoint.tus.creation, checkpoint.tus.repeatsCreation) = (nil, false)
    }

    func repeatsCreation(_ order: UploadOrder, _ checkpoint: inout OffsetCheckpoint) async throws -> Bool {
        var announced = try await capabilities.current(self)
        // Its last answer to OPTIONS did not come, or was not understood.
        if announced == nil, checkpoint.isCreating { announced = try await capabilities.query(self) }
        // A server recognises it by `sluiceId`, which has the generation.
        let address = Hasher.digest(.sha256, of: Array(endpoint.utf8))
        let creation = "\(order.generation) \(hexadecimal(address).prefix(16))"
        let isSame = checkpoint.tus.creation == creation
        let repeats = announced?.repeatsCreations ?? (isSame && checkpoint.tus.repeatsCreation)
        checkpoint.tus.creation = creation
        checkpoint.tus.repeatsCreation = repeats
        let isRepeated = isSame && repeats && !isSection
        // The creation without an answer carried the bytes: the next one may make a second complete file.
        if checkpoint.mayBeWhole, !isRepeated { checkpoint.wasReuploaded = true }
        return isRepeated
    }
}
