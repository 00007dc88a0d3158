package import Core

/// A folder, a destination, and the answers of the file to the questions of conditions. Policy is decided for these, and
/// not for each upload.
package struct UploadClass: Sendable, Hashable {
    package var files: FileClass
    package var destination: String

    package var folder: String { files.folder }
    package var mask: FileMask { files.mask }

    /// The same folder and destination, whatever the file.
    package var ofAnyFile: UploadClass { UploadClass(folder: folder, destination: destination) }

    package init(folder: String, destination: String, mask: FileMask = .unknown) {
        files = FileClass(folder: folder, mask: mask)
        self.destination = destination
    }
}
