internal import Core

/// The extensions of tus 1.0 that a person may list in place of those that the server announces.
enum TusExtension: String, CaseIterable, Sendable {
    case creation
    case creationWithUpload = "creation-with-upload"
    case creationDeferLength = "creation-defer-length"
    case expiration
    case checksum
    case checksumTrailer = "checksum-trailer"
    case concatenation
    case concatenationUnfinished = "concatenation-unfinished"
    case termination

    static func key(_ path: DestinationKey<TusSettings>.Property<Set<String>?>) -> DestinationKey<TusSettings> {
        DestinationKey(
            "extensions", .choices(allCases.map(\.rawValue)),
            "The extensions of the server: `auto` (default) asks it, a list is used in place of its answer."
        ) { value, settings in settings[keyPath: path] = [String].of(value).map { Set($0) } }
    }
}

extension TusAnnounced {
    /// The extensions that a person has listed. The server is not asked, so nothing else is known about it.
    init(listed: Set<String>) {
        self.init(
            versions: ["1.0.0"], extensions: listed, maxSize: nil,
            // A person who lists the extension has chosen an algorithm that the server has.
            checksums: listed.contains(TusExtension.checksum.rawValue) ? ["sha1", "sha256"] : [], canLookUp: false,
            free: nil)
    }

    func offers(_ name: TusExtension) -> Bool { extensions.contains(name.rawValue) }

    /// Whether the server says that it does not offer it. Servers that speak tus and announce no extension at all may
    /// still create uploads and remove them.
    func lacks(_ name: TusExtension) -> Bool { !extensions.isEmpty && !offers(name) }
}
