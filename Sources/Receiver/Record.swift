internal import Core
internal import FoundationEssentials
internal import Linux

/// The durable state of an upload besides its bytes: the file `ID.json`.
struct Record: Codable, Sendable {
    /// 128 random bits in hexadecimal. A client that knows the id may write, so logs only show its beginning.
    var id: String
    /// Size of the whole upload in bytes.
    var length: Int64
    /// The `Upload-Metadata` header as sent.
    var metadata: String
    /// Milliseconds since 1970, UTC.
    var created: Int64
    var touched: Int64
    /// Number of bytes of `ID.data` that were on the disk when this was written.
    var offset: Int64 = 0
    /// The boot of the machine at the time of writing, and the mount of the file system. While both last, later written
    /// bytes are in the file too, even if the process died.
    var boot: String
    /// SHA-256 of the whole file, in hexadecimal, once known.
    var digest: String?
    /// Percent-coded path below the receiver's folder. Written before the data gets this name; so a record with a name
    /// and without data is a finished upload.
    var name: String?
    /// Distinguishes the delivered file from one that replaced it: the inode number of a removed file is soon reused.
    var inode: UInt64?
    var modified: Int64?
    var born: Int64?
    /// Whether the file under `name` came from this upload; otherwise it existed before, with the same content.
    var isOurs: Bool?

    static func read(_ path: FilePath) throws -> Record {
        let text = try Files.read(path)
        try checkJSON(text)
        return try JSONDecoder().decode(Record.self, from: Data(text))
    }

    /// Durable when this returns.
    func write(_ path: FilePath) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        try Files.replace(path, with: Array(try encoder.encode(self)))
    }

    /// The id of this boot and of the mount that contains `folder`: a disk that was removed and inserted again may have
    /// lost unsynced bytes. Empty when the kernel does not tell the boot, and then unsynced bytes are not trusted.
    static func currentBoot(at folder: FilePath) -> String {
        // Without /proc more bytes are sent again, and nothing is lost.
        let bytes = (try? Files.read("/proc/sys/kernel/random/boot_id", limit: 64)) ?? []
        let boot = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        guard !boot.isEmpty, let mount = uniqueMount(holding: folder) else { return boot }
        return "\(boot) \(mount)"
    }
}
