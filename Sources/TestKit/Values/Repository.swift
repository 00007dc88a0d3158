package import Core
internal import Linux

/// The working copy that the tests were built from.
package enum Repository {
    /// The folder of `Package.swift`.
    package static let root: FilePath = {
        var folder = FilePath(#filePath).parent
        while !folder.isEmpty, folder != "/", !isThere(folder.appending("Package.swift")) { folder = folder.parent }
        return folder
    }()

    private static func isThere(_ path: FilePath) -> Bool { (try? FileLook(at: path)) != nil }
}
