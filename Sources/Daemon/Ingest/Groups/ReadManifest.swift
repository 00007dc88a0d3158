internal import Core
internal import Linux

/// A version of a manifest, with its content.
struct ReadManifest: Sendable {
    /// That of the file when it was read.
    var status: FileStatus
    var result: Result<Manifest, Manifest.Problem>

    /// Reads a manifest. Waits for its disk.
    ///
    /// - Returns: `nil` when it does not exist.
    static func read(_ path: SourcePath, in sources: SourceFolders) throws(SystemError) -> ReadManifest? {
        let source = sources.source(path)
        guard try source.statusIfPresent()?.isRegular == true else { return nil }
        let descriptor = try source.open()
        let status = try FileStatus(of: descriptor, named: path.shown)
        guard status.size <= Manifest.longest else {
            let text = "is larger than \(shownBytes(Int64(Manifest.longest))): it is no list of files"
            return ReadManifest(status: status, result: .failure(Manifest.Problem(text: text)))
        }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while content.count < Int(status.size) {
            let count = try descriptor.read(into: &buffer, named: path.shown)
            if count == 0 { break }
            content += buffer[..<count]
        }
        do throws(Manifest.Problem) {
            let manifest = try Manifest(content, of: path.relative, in: path.root)
            return ReadManifest(status: status, result: .success(manifest))
        } catch { return ReadManifest(status: status, result: .failure(error)) }
    }
}
