package import Core
package import Linux

/// Tests make files by their whole paths.
package func == (source: SourcePath, path: FilePath) -> Bool { source.shown == path }

extension SourceFile {
    /// A file of a test: its directory is the folder.
    package init(_ path: FilePath) { self.init(folder: SourceFolders()[path.parent], relative: path.name) }
}

extension StagedFile {
    /// The file that a test has made.
    package var path: FilePath {
        get { place.shown }
        set { place = .path(newValue) }
    }
}
