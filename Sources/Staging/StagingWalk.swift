internal import Core
package import Linux

/// Goes through a staging folder from beginning to end, before any copy is made: removes incomplete files of a crash,
/// and returns the complete copies, some at a time. There may be a million of them.
///
/// An actor on its own thread, since every step waits for the disk.
package actor StagingWalk {
    private let area: StagingArea
    private let thread = OwnThread(name: "sweep")
    private var stream: FolderStream?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    package init(_ area: StagingArea) { self.area = area }

    /// The numbers of the next complete copies, in order; `nil` at the end.
    ///
    /// - Parameter most: The number of names that are read, at least 1.
    package func next(atMost most: Int) throws(SystemError) -> [Int64]? {
        let stream: FolderStream
        if let open = self.stream { stream = open } else { stream = try FolderStream(area.folder, followsLink: true) }
        self.stream = stream
        var whole: [Int64] = []
        var half: [FilePath] = []
        for read in 0..<most {
            let more = try stream.next { name, _ in
                let name = FilePath(fromKernel: name)
                if name.fileExtension == "part" || name.fileExtension == "export" {
                    half.append(name)
                } else if let number = name.text.flatMap({ Int64($0) }) {
                    whole.append(number)
                }
            }
            if !more {
                if read == 0 { return nil }
                break
            }
        }
        for name in half { try Files.removeTree(area.path(name)) }
        // Near each other in the store, too.
        return whole.sorted()
    }
}
