/// A folder and a destination. Policy is decided for these, and not for each upload.
package struct UploadClass: Sendable, Hashable {
    package var folder: String
    package var destination: String

    package init(folder: String, destination: String) {
        self.folder = folder
        self.destination = destination
    }
}
