/// A recording's metadata. The values may be wrong: a camera whose clock was never set writes its time too.
package struct MediaFacts: Hashable, Sendable {
    /// When recording began. A time without a zone is read as this machine's local time.
    package var recorded: WallTime?
    /// In milliseconds.
    package var duration: Int64?
    /// In pixels as shown, after rotation.
    package var width: Int?
    package var height: Int?
    package var make: String?
    package var model: String?

    package init(
        recorded: WallTime? = nil, duration: Int64? = nil, width: Int? = nil, height: Int? = nil, make: String? = nil,
        model: String? = nil
    ) {
        self.recorded = recorded
        self.duration = duration
        self.width = width
        self.height = height
        self.make = make
        self.model = model
    }

    package var isEmpty: Bool { self == MediaFacts() }

    /// Make and model together: many models begin with their make.
    package var camera: String? {
        guard let make else { return model }
        guard let model else { return make }
        return model.lowercased().hasPrefix(make.lowercased()) ? model : "\(make) \(model)"
    }

    /// The duration in whole seconds, in a form for names: `42s`, `3m05s`, `1h02m03s`.
    package var durationText: String? {
        guard let duration, duration >= 0 else { return nil }
        let seconds = Int(duration / 1000)
        let (hours, minutes) = (seconds / 3600, seconds % 3600 / 60)
        if hours > 0 { return "\(hours)h\(padded(minutes, 2))m\(padded(seconds % 60, 2))s" }
        return minutes > 0 ? "\(minutes)m\(padded(seconds % 60, 2))s" : "\(seconds)s"
    }
}
