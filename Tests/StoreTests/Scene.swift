import Core
import Linux
import Store
import TestKit

/// A store in a separate folder, and arrivals made for it.
struct Scene {
    let folder = TemporaryFolder()
    let clocks = ManualClocks()
    let store: Store

    init(sorting: UploadSort = .newestFirst) async throws {
        store = try await Store.open(folder.path.appending("state"), clocks: clocks, sorting: sorting)
    }

    static func file(_ name: String, size: Int64 = 100, modified: Int64 = 1_000, folder: String = "cam") -> SettledFile
    {
        self.file(FilePath(name), size: size, modified: modified, folder: folder)
    }

    static func file(
        _ name: FilePath, size: Int64 = 100, modified: Int64 = 1_000, folder: String = "cam"
    ) -> SettledFile {
        SettledFile(
            folder: folder, root: "/drop", relative: name,
            status: FileStatus(
                device: 1, inode: 7, size: size, modified: modified, changed: modified, born: nil, mode: 0o100644),
            identity: FileIdentity(
                folder: folder, relative: name, size: size, modified: modified, inode: 7, born: nil,
                fileSystem: "uuid"),
            settledBy: .lease)
    }

    static func arrival(
        _ file: SettledFile, to destinations: [String] = ["nas"], action: SourceAction = .delete, priority: Int = 0,
        key: String? = nil, again: Bool = false
    ) -> NewAsset {
        NewAsset(
            file: file, action: action, priority: priority,
            orders: destinations.map {
                NewAsset.PlannedUpload(
                    destination: $0, name: file.relative, mediaType: "video/mp4", key: key, context: ["camera": "door"],
                    metadata: [:])
            }, again: again)
    }

    /// Recorded and staged: its uploads may go.
    @discardableResult
    func stage(_ arrival: NewAsset, sha256: [UInt8] = noise(32)) async throws -> (asset: Int64, uploads: [String]) {
        let (asset, uploads): (Int64, [String])
        switch try await store.write({ try $0.arrivals.record([arrival]) }).first {
        case .recorded(let new, let ids), .newVersion(let new, let ids): (asset, uploads) = (new, ids)
        default: throw Unexpected()
        }
        try await store.write { try $0.staging.record([StagedCopy(asset: asset, sha256: sha256)]) }
        return (asset, uploads)
    }

    struct Unexpected: Error {}
}
