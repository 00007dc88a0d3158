internal import Core

extension VimeoFields {
    /// The fields of a request for one video, and warnings about values that had to be left out or cut.
    struct MetadataFields: Sendable {
        var fields: [String: JSONValue] = [:]
        var warnings: [String] = []
    }

    /// The fields for the video of an order.
    ///
    /// A destination's own templates count before the folder's `metadata` (`title` or `name`, `description`).
    ///
    /// - Throws: A sentence for a person, where the text that a template made cannot be sent.
    func metadata(of order: UploadOrder, password: String?) throws(InvalidTextError) -> MetadataFields {
        var metadata = MetadataFields()
        // Without a name a video is called "Untitled".
        let name = words("video.name", ["title", "name"], order) ?? text(order.name.stem)
        metadata.put("name", cut(name, "video.name", &metadata.warnings))
        if let description = words("video.description", ["description"], order) {
            metadata.put("description", cut(description, "video.description", &metadata.warnings))
        }
        if let license { metadata.put("license", license) }
        if let locale { metadata.put("locale", locale) }
        if let folder { metadata.put("folder_uri", folder) }
        if !contentRating.isEmpty { metadata.fields["content_rating"] = .list(contentRating.map { .text($0) }) }
        var privacy: [String: JSONValue] = [:]
        for field in ["view", "embed", "comments"] {
            guard let word = try word("video.privacy.\(field)", order) else { continue }
            privacy[field] = .text(word)
        }
        if let download { privacy["download"] = .bool(download) }
        if let add { privacy["add"] = .bool(add) }
        switch privacy["view"]?.text {
        case "password":
            guard let password else {
                throw InvalidTextError(text: "its privacy is `password`, and `video.password` is missing")
            }
            metadata.put("password", password)
        case "users":
            if users.isEmpty { throw InvalidTextError(text: "its privacy is `users`, and `video.users` is missing") }
            metadata.fields["users"] = .list(users.map { .object(["uri": .text($0)]) })
        default: break
        }
        if !privacy.isEmpty { metadata.fields["privacy"] = .object(privacy) }
        return metadata
    }

    struct InvalidTextError: Error, Hashable { let text: String }

    /// `nil` for an empty text, which would be refused or replace an existing one.
    private func words(_ own: String, _ names: [String], _ order: UploadOrder) -> String? {
        ([own] + names).lazy.compactMap { order.metadata[$0].flatMap { trimmed($0) } }.first
    }

    private func word(_ key: String, _ order: UploadOrder) throws(InvalidTextError) -> String? {
        guard let word = order.metadata[key].flatMap({ trimmed($0) }) else { return nil }
        guard let words = VimeoLimits.choices[key], !words.contains(word) else { return word }
        throw InvalidTextError(
            text: "`\(key)` made `\(FilePath(word).display)`, and Vimeo takes one of \(words.joined(separator: ", "))")
    }

    private func cut(_ text: String, _ key: String, _ warnings: inout [String]) -> String {
        guard let most = VimeoLimits.longest[key], text.count > most else { return text }
        warnings.append("`\(key)` had \(text.count) characters, and was cut to the \(most) that Vimeo takes")
        return String(text.prefix(most))
    }

    private func text(_ name: FilePath) -> String { name.text ?? name.display }
}

extension VimeoFields.MetadataFields {
    fileprivate mutating func put(_ name: String, _ text: String) { fields[name] = .text(text) }
}
