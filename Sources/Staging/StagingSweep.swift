internal import Core
package import Linux

/// Goes through a staging folder from its beginning to its end, before anything is copied into it: removes what a crash
/// left half done, and names the whole copies, some at a time. There may be a million of them.
///
/// An actor on a thread of its own, since every step waits for the disk.
package actor StagingSweep {
    private let area: StagingArea
    private let thread = OwnThread(name: "sweep")
    private var stream: FolderStream?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    package init(_ area: StagingArea) { self.area = area }

    /// The numbers that are the names of the next whole copies, in order; `nil` at the end.
    ///
    /// - Parameter most: How many names are read, at least 1.
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
        // Side by side in the store, too.
        return whole.sorted()
    }
}
