/// A request to scan folders now.
package struct RescanRequest: Codable, Sendable, Hashable {
    /// The folder's name; all folders when it is absent.
    package var folder: String?
    /// Whether the answer comes after the scan.
    package var wait: Bool

    package init(folder: String? = nil, wait: Bool = false) {
        self.folder = folder
        self.wait = wait
    }
}

package struct RescanView: Codable, Sendable, Hashable {
    package var name: String
    package var path: String
    /// As in `status`.
    package var state: ShownFolderState
    /// Files that the scan found, and the new ones among them; absent without `wait`. Files that were already settling
    /// are not among them.
    package var files: Int?
    package var new: Int?
    /// Files that have not settled yet.
    package var settling: Int

    package init(name: String, path: String, state: ShownFolderState, files: Int?, new: Int?, settling: Int) {
        self.name = name
        self.path = path
        self.state = state
        self.files = files
        self.new = new
        self.settling = settling
    }
}

package struct RescanReply: Codable, Sendable, Hashable {
    /// Whether the scan is over; `false` without `wait`.
    package var done: Bool
    package var folders: [RescanView]

    package init(done: Bool, folders: [RescanView]) {
        self.done = done
        self.folders = folders
    }
}
