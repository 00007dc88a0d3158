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

    /// The source files in a folder and in all folders below, without links.
    package static func swiftFiles(below folder: FilePath) throws -> [FilePath] {
        var (found, folders) = ([FilePath](), [root.appending(folder)])
        while let next = folders.popLast() {
            for path in try Files.names(in: next).map({ next.appending($0) }) {
                let status = try FileStatus(at: path)
                if status.isDirectory { folders.append(path) }
                if status.isRegular, path.fileExtension == "swift" { found.append(path) }
            }
        }
        return found
    }

    private static func isThere(_ path: FilePath) -> Bool { (try? FileStatus(at: path)) != nil }
}
