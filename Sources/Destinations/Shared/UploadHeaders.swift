/// Further request headers that a person gave for one upload. They are added to the requests of its task to the
/// destination's own origin, and to no others.
package enum UploadHeaders {
    @TaskLocal package static var current: [String: String] = [:]
}
