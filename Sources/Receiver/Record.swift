internal import Core
internal import FoundationEssentials
internal import Linux

/// What is durable of an upload, beside its bytes: the file `ID.json`.
struct Record: Codable, Sendable {
    /// 128 random bits in hexadecimal. Whoever knows it may write, so no log shows more than its beginning.
    var id: String
    /// Bytes of the whole upload.
    var length: Int64
    /// The `Upload-Metadata` header as sent.
    var metadata: String
    /// Milliseconds since 1970, UTC.
    var created: Int64
    var touched: Int64
    /// So many bytes of `ID.data` were on the disk when this was written.
    var offset: Int64 = 0
    /// The boot of the machine that wrote this, and the mount of the file system. While both last, what was written after
    /// is in the file too, whatever became of the process.
    var boot: String
    /// SHA-256 of the whole, in hexadecimal, once known.
    var digest: String?
    /// Percent-coded path below the receiver's folder. Written before the data gets this name; so a record with a name
    /// and without data is a finished upload.
    var name: String?
    /// By which to tell the delivered file from one that was put in its place: a removed file's inode is soon another's.
    var inode: UInt64?
    var modified: Int64?
    var born: Int64?
    /// Whether the file under `name` came from this upload; else it was there before, with the same content.
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

    /// The id of this boot and of the mount that holds `folder`: a disk that was pulled out and is back may have lost what
    /// was not synced. Empty when the kernel does not tell the boot, and then nothing is trusted that was not synced.
    static func currentBoot(at folder: FilePath) -> String {
        // Without /proc more is sent again, and nothing is lost.
        let bytes = (try? Files.read("/proc/sys/kernel/random/boot_id", limit: 64)) ?? []
        let boot = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        guard !boot.isEmpty, let mount = uniqueMount(holding: folder) else { return boot }
        return "\(boot) \(mount)"
    }
}
