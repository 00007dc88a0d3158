/// Further request headers, which a person gave for one upload: for the requests that its task makes, to the destination's own origin
/// and nowhere else.
package enum UploadHeaders {
    @TaskLocal package static var current: [String: String] = [:]
}
