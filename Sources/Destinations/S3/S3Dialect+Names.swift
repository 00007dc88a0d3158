internal import Core
internal import Linux

// Chooses the key of a file, so that no existing object is overwritten.

extension S3Dialect {
    enum Name {
        case free(FilePath)
        /// The same content is there.
        case held(RemoteObject)
    }

    func settle(
        _ order: UploadOrder, _ plan: PartPlan, _ checkpoint: inout Checkpoint, restarts: Int64
    ) async throws -> RemoteObject? {
        if let assignedObject = settings.assignedObject {
            return try await settle(at: assignedObject, order, plan, &checkpoint, restarts)
        }
        // Before one small request a name needs no question, because the service itself guards it.
        let key: FilePath
        if isSingle, isGuarded, settings.taken != .replace, restarts == 0, case let first = try self.key(order, 1),
            !api.isTaken(first, from: order.file.sha256)
        {
            key = first
            try reserve(key, order)
        } else {
            switch try await name(for: order, plan) {
            case .free(let name): key = name
            case .held(let object): return object
            }
        }
        checkpoint["server"] = api.server
        checkpoint["key"] = key.display
        checkpoint["checksum"] = settings.checksum.rawValue
        if checkpoint["asked_at"] == nil { checkpoint["asked_at"] = "\(api.client.clocks.wall().milliseconds)" }
        return nil
    }

    /// The key of an order, in UTF-8.
    func key(_ order: UploadOrder, _ number: Int) throws(UploadError) -> FilePath {
        let longest = settings.preset.wire.longestKey
        // Services answer in XML, which cannot represent most control characters.
        let isText = order.name.text != nil && !order.name.bytes.contains { $0 < 0x20 && ![9, 10, 13].contains($0) }
        var name = isText ? order.name : FilePath(order.name.display)
        if let first = name.bytes.first, settings.preset.wire.noFirst.contains(first) {
            name = FilePath(bytes: [UInt8(ascii: "_")] + name.bytes)
        }
        // A key may be longer than a file name, in which a number needs space.
        let key = number == 1 && name.bytes.count <= longest ? name : name.numbered(number)
        guard key.bytes.count <= longest else {
            throw refusal("name_too_long", "its key has \(key.bytes.count) bytes, and the maximum is \(longest)")
        }
        return key
    }

    /// - Parameter isTaking: The caller will send the file there.
    func name(for order: UploadOrder, _ plan: PartPlan, isTaking: Bool = true) async throws -> Name {
        let first = isTaking ? api.nextName(for: order.id) : 1
        for number in first..<Self.mostNames {
            if number == first + Self.mostLooks, isTaking { throw manyTaken(order, number) }
            if number == first + Self.looksUnasked { try await checkHonesty(order) }
            let key = try key(order, number)
            if isTaking { try reserve(key, order) }
            let there: S3API.Object
            switch isTaking ? try await sight(of: key) : try await api.status(at: key).map({ .there($0) }) ?? .nothing {
            case .there(let object): there = object
            case .nothing:
                api.setNextName(nil, for: order.id)
                return .free(key)
            case .hidden, .ended: return try await unseenName(order, from: number)
            }
            switch try await likeness(of: there, at: key, to: order.file, plan, isOurs: false) {
            case .same:
                api.setNextName(nil, for: order.id)
                return .held(RemoteObject(id: key.display, url: api.address(of: key), verifiedBy: "held"))
            case .damaged(let error): throw error
            case .other: break
            }
            if settings.taken != .replace, let sha256 = there.sha256.flatMap({ bytes(hexadecimal: $0) }) {
                api.note(key, with: sha256)
            }
            switch settings.taken {
            case .suffix: continue
            case .replace: return .free(key)
            case .fail:
                throw nameTaken(key)
            }
        }
        throw refusal("name_taken", "\(order.name.display) and 10,000 numbers after it are taken")
    }

    /// Number of names that one attempt looks at; the next attempt continues after them.
    private static let mostLooks = 30
    /// After this many taken names in a row, the code tests whether the service calls every name taken.
    private static let looksUnasked = 8

    private func manyTaken(_ order: UploadOrder, _ next: Int) -> UploadError {
        api.setNextName(next, for: order.id)
        return UploadError(
            failure(
                .transient, "names_taken",
                "\(order.name.display) and \(next - 1) names after it belong to other files; the next names are tried in a moment",
                retryable: true), remedy: .pending(after: .seconds(30)))
    }

    /// - Throws: ``UploadError`` where the service says that an object exists which cannot exist.
    private func checkHonesty(_ order: UploadOrder) async throws {
        let nobodys = try key(order, 1).parent.appending(FilePath("sluice-" + hexadecimal(Random.bytes(16))))
        guard try await api.status(at: nobodys) != nil else { return }
        throw UploadError(
            failure(
                .config, "all_names_taken",
                "\(api.client.host(settings.endpoint)) reports an object for every name: a login portal or a proxy "
                    + "answers, or the address is wrong", retryable: true), remedy: .misconfigured)
    }

    func reserve(_ key: FilePath, _ order: UploadOrder) throws(UploadError) {
        guard settings.assignedObject == nil, settings.taken != .replace, !api.reserve(key, for: order.id) else {
            return
        }
        throw UploadError(
            failure(
                .transient, "name_in_use",
                "\(api.address(of: key)) is the target of another running upload; this one waits for its end",
                retryable: true), remedy: .pending(after: .seconds(30)))
    }

    /// An object that has the key now did not exist when the upload was begun: it is not overwritten.
    func resumption(_ piece: PartsPiece, isPerhapsThere: Bool) async throws -> PartsResumption {
        let key = key(piece.checkpoint)
        try reserve(key, piece.order)
        guard isPerhapsThere || !isGuarded && settings.taken != .replace else { return .goesOn }
        let there: S3API.Object
        switch try await sight(of: key) {
        case .there(let object): there = object
        case .nothing: return .goesOn
        case .hidden, .ended:
            if settings.assignedObject == nil, settings.taken != .replace, !isGuarded { throw try await unguarded() }
            return try await settings.assignedObject?.isWhole() == true ? .finished(object(piece, "held")) : .goesOn
        }
        switch try await likeness(of: there, at: key, to: piece.order.file, piece.plan, isOurs: true) {
        case .damaged(let error): throw error
        case .other: break
        case .same:
            // The parts were never asked to be assembled, so they did not become this object. They are removed.
            return isSingle || isPerhapsThere
                ? .finished(object(piece, "held")) : .lost("\(api.address(of: key)) exists by now")
        }
        return settings.taken == .replace || isGuarded
            ? .goesOn : .lost("\(api.address(of: key)) belongs to another file by now")
    }
}
